"""`status`: the state of every syncer, the broken first."""

from __future__ import annotations

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.brake import BrakeLimits
from eurekube_sync.cli.connect import Connection, connect_to_look
from eurekube_sync.cli.options.brake import brake_options
from eurekube_sync.cli.options.calls import Calls, call_options
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.drain import look_for_drains_option
from eurekube_sync.cli.options.eureka import EurekaAccess, optional_eureka_options
from eurekube_sync.cli.options.kubernetes import KubernetesAccess, kubernetes_options
from eurekube_sync.cli.options.lock import LockChoice, look_at_lock_option
from eurekube_sync.cli.options.owner import named_owner, optional_owner_option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.options.scope import scope_options
from eurekube_sync.cli.output.overview import overview_data, overview_table
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.cli.values import NAME, Duration
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.look import LookWorld, look, with_details
from eurekube_sync.controller.one_pass import PassSettings
from eurekube_sync.desired.drain import Kind
from eurekube_sync.desired.scope import Scope
from eurekube_sync.explain.outcome import code_of_overview
from eurekube_sync.explain.overview import Overview, in_need, overview
from eurekube_sync.explain.overview import chosen as chosen_rows

_MOST_NAMESPACES = 20
"""Whose Pods are read to say why they are not ready; more would take a whole cluster's Pods."""


@click.command(cls=Command, short_help="Show the state of every syncer, the broken first.")
@optional_owner_option
@optional_eureka_options
@kubernetes_options
@scope_options
@option("--app", type=NAME, default=None, variable=False, help="Show only syncers of this app.")
@option(
    "--condition",
    type=NAME,
    default=None,
    variable=False,
    help="Show only syncers with this condition or reason, such as RemovalHeld, Ready=False or NotReady.",
)
@option("--all", "-a", "everything", is_flag=True, variable=False, help="Show syncers that are in sync as well.")
@option("--watch", "-w", is_flag=True, variable=False, help="Look again and again, until Ctrl-C.")
@option(
    "--interval", type=Duration(least=1), default="5s", variable=False, help="With --watch: the time between two looks."
)
@call_options
@look_for_drains_option
@look_at_lock_option
@brake_options
@report_options
def command(
    owner: str,
    eureka: EurekaAccess,
    kubernetes: KubernetesAccess,
    scope: Scope,
    app: str | None,
    condition: str | None,
    everything: bool,
    watch: bool,
    interval: float,
    calls: Calls,
    drains: frozenset[Kind],
    lock: LockChoice,
    brake: BrakeLimits,
    form: ReportForm,
) -> ExitCode:
    """Show the state of every syncer. The broken come first, with the reason and the time since then.

    It makes a dry pass and writes nothing. Without --eureka-url it shows only what the cluster says. Give it the same
    options or variables as run.
    """
    form.set_up_logs()
    settings = PassSettings(owner=owner, scope=scope, brake=brake, drains=drains, named=named_owner(owner))
    connection = Connection(eureka=eureka, kubernetes=kubernetes, calls=calls, dry_run=True)
    clock = SystemClock()
    servers = eureka.printable_urls
    with stopped_by_signals(clock), connect_to_look(connection, clock, lock) as seen:
        while True:
            with connection.waits.seen():
                found = chosen_rows(_overview(seen, settings), app=app, condition=condition)
            code = code_of_overview(found)
            if watch and form.at_terminal:
                click.clear()
            form.write(
                lambda found=found: overview_table(found, servers, eureka.notices, everything=everything),  # type: ignore[misc]
                lambda found=found, code=code: overview_data(found, servers, code, eureka.notices),  # type: ignore[misc]
                one_of_many=watch,
            )
            if not watch:
                return code
            clock.sleep(interval)
            if clock.stopping():
                return ExitCode.INTERRUPTED


def _overview(seen: LookWorld, settings: PassSettings) -> Overview:
    named = sorted(settings.scope.namespaces or ())
    found = look(seen, settings, named)
    needed = sorted({*named, *in_need(found)})
    return overview(with_details(seen, found, needed if len(needed) <= _MOST_NAMESPACES else ()))
