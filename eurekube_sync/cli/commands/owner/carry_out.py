"""What each `owner` command is given: both servers and the form of its report. Carries it out until a signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.connect import Connection, connect, connect_registry
from eurekube_sync.cli.options.calls import Calls, call_options
from eurekube_sync.cli.options.declare import group
from eurekube_sync.cli.options.eureka import EurekaAccess, eureka_options
from eurekube_sync.cli.options.kubernetes import KubernetesAccess, kubernetes_options
from eurekube_sync.cli.options.owner import dry_run_option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.output.ownership import owner_data, owner_table
from eurekube_sync.cli.output.progress import progress_line
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.model.values import dataclass
from eurekube_sync.owner.moves import OwnerReport
from eurekube_sync.owner.world import OwnerWorld


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Where to work, and how to report."""

    eureka: EurekaAccess
    kubernetes: KubernetesAccess
    calls: Calls
    dry_run: bool
    form: ReportForm

    def carry_out(self, work: Callable[[OwnerWorld], OwnerReport | ExitCode], *, asks_cluster: bool = True) -> ExitCode:
        """Does the work. An exit code needs no report."""
        clock, notices = SystemClock(), self.eureka.notices
        with stopped_by_signals(clock), self._world(clock, asks_cluster=asks_cluster) as world:
            done = work(world)
            if isinstance(done, ExitCode):
                return done
            report = done.with_unreached(world.registry.unreached())
        return self.form.answer(report.code, lambda: owner_table(report), lambda: owner_data(report), notices)

    @contextmanager
    def _world(self, clock: SystemClock, *, asks_cluster: bool) -> Iterator[OwnerWorld]:
        # A sweep each second: every list is of all peers.
        to = Connection(eureka=self.eureka, kubernetes=self.kubernetes, calls=self.calls, sweep_interval=1.0)
        with progress_line() as tell:
            if asks_cluster:
                with connect(to, clock) as whole:
                    registry, workers = whole.registry, whole.workers
                    yield OwnerWorld(registry=registry, clock=clock, workers=workers, cluster=whole.cluster, tell=tell)
            else:
                with connect_registry(to, clock) as world:
                    yield OwnerWorld(registry=world.registry, clock=clock, workers=world.workers, tell=tell)


server_options = group(
    "servers", Servers, eureka_options, kubernetes_options, call_options, dry_run_option, report_options
)
"""The command gets them as `servers`."""
