"""`keepalive`: renews all that is ours from Eureka alone, while the cluster or `run` is away."""

from __future__ import annotations

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.connect import connect_registry
from eurekube_sync.cli.garbage import look_rarely_for_cycles, looking_for_cycles
from eurekube_sync.cli.installation import Installation, installation_options
from eurekube_sync.cli.options.calls import batch_option, call_options
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.eureka import eureka_options
from eurekube_sync.cli.options.owner import owner_option
from eurekube_sync.cli.options.passes import Leases, Passes, kept_lease_options, pass_options
from eurekube_sync.cli.options.report import ReportForm, pass_report_options
from eurekube_sync.cli.options.scope import name_scope_options
from eurekube_sync.cli.output.passes import teller
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.cli.values import NAME
from eurekube_sync.controller.between_passes import BetweenPasses
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.loop import Schedule, run_passes
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.controller.renew_only import KeepaliveSettings, keepalive


@click.command(cls=Command, short_help="Renew our instances, without asking a cluster.")
@option(
    "--cluster",
    type=NAME,
    metavar="UID",
    default=None,
    help="Renew only instances of the cluster with this UID. Default: all instances of the owner.",
)
@installation_options(owner_option, eureka_options, name_scope_options, call_options)
@batch_option
@pass_options
@kept_lease_options
@pass_report_options
def command(
    cluster: str | None, installation: Installation, eureka_batch: str, passes: Passes, leases: Leases, form: ReportForm
) -> ExitCode:
    """Renew all of our instances: one pass, --passes N, or --daemon. It asks Eureka only, and no cluster.

    Nothing is added or removed. Start it while `run` cannot run, and end it when `run` is back: two programs that renew
    the same leases disturb Eureka's self-preservation.
    """
    form.set_up_logs()
    leases.check(passes)
    form.check(dry_run=passes.dry_run)
    settings = KeepaliveSettings(
        owner=installation.owner,
        cluster=cluster,
        scope=installation.scope,
        dry_run=passes.dry_run,
        deadline=passes.timeout,
    )
    connection = installation.writing(eureka_batch, passes, leases)
    tell = teller(form, passes, installation.eureka.notices)
    schedule = Schedule(passes=passes.number, interval=passes.interval, watched=form.at_terminal)
    look_rarely_for_cycles()
    clock = SystemClock()
    with stopped_by_signals(clock), connect_registry(connection, clock) as world:
        between = BetweenPasses(world, world.renewals, interval=passes.interval) if passes.number is None else None

        def one_pass() -> PassReport:
            with connection.waits.seen():
                return keepalive(world, settings)

        return run_passes(one_pass, clock, schedule, tell, looking_for_cycles(between))
