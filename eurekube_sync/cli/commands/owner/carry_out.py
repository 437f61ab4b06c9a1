"""Connects an `owner` command, carries it out until a signal, and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.connect import Connection, connect, connect_registry
from eurekube_sync.cli.options.calls import Calls
from eurekube_sync.cli.options.eureka import EurekaAccess
from eurekube_sync.cli.options.kubernetes import KubernetesAccess
from eurekube_sync.cli.options.report import ReportForm
from eurekube_sync.cli.output.ownership import owner_data, owner_table
from eurekube_sync.cli.output.progress import ProgressLine
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.owner.report import OwnerReport, told_whole
from eurekube_sync.owner.world import OwnerWorld


def carry_out(
    work: Callable[[OwnerWorld], OwnerReport | ExitCode],
    eureka: EurekaAccess,
    kubernetes: KubernetesAccess | None,
    calls: Calls,
    form: ReportForm,
) -> ExitCode:
    """Does the work; without `kubernetes` no cluster is asked. An exit code needs no report."""
    clock = SystemClock()
    with stopped_by_signals(clock), _world(eureka, kubernetes, calls, clock) as world:
        done = work(world)
        if isinstance(done, ExitCode):
            return done
        report = told_whole(world, done)
    form.write(lambda: owner_table(report, eureka.notices), lambda: owner_data(report, eureka.notices))
    return report.code


@contextmanager
def _world(
    eureka: EurekaAccess, kubernetes: KubernetesAccess | None, calls: Calls, clock: SystemClock
) -> Iterator[OwnerWorld]:
    connection = Connection(eureka=eureka, calls=calls, sweep_interval=1.0)  # every list of all peers
    with ProgressLine() as line:
        if kubernetes is None:
            with connect_registry(connection, clock) as world:
                yield OwnerWorld(registry=world.registry, clock=clock, workers=world.workers, tell=line.tell)
        else:
            with connect(replace(connection, kubernetes=kubernetes), clock) as whole:
                yield OwnerWorld(
                    registry=whole.registry, clock=clock, workers=whole.workers, cluster=whole.cluster, tell=line.tell
                )
