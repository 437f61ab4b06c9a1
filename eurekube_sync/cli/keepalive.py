"""`keepalive`: renews all that is ours from Eureka alone, while the cluster or `run` is away."""

from __future__ import annotations

import click

from eurekube_sync.between_passes import BetweenPasses
from eurekube_sync.cli.connect import Connection, connect_registry
from eurekube_sync.cli.garbage import look_rarely_for_cycles, looking_for_cycles
from eurekube_sync.cli.options.calls import Calls, batch_option, call_options
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.eureka import EurekaAccess, eureka_options
from eurekube_sync.cli.options.leases import Leases, kept_lease_options
from eurekube_sync.cli.options.owner import owner_option
from eurekube_sync.cli.options.passes import Passes, pass_options
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.options.scope import name_scope_options
from eurekube_sync.cli.passes import teller
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.cli.snapshot_file import SnapshotFile
from eurekube_sync.cli.values import Duration, File, Name
from eurekube_sync.clock import SystemClock
from eurekube_sync.exit_codes import ExitCode
from eurekube_sync.keepalive import KeepaliveSettings, keepalive
from eurekube_sync.loop import Schedule, run_passes
from eurekube_sync.scope import Scope


@click.command(short_help="Renew what is ours, without a cluster.")
@owner_option
@eureka_options
@option(
    "--cluster",
    type=Name(),
    metavar="UID",
    default=None,
    help="Only instances of this cluster. Default: all of the owner's.",
)
@name_scope_options
@call_options
@batch_option
@pass_options
@kept_lease_options
@option(
    "--snapshot",
    metavar="FILE",
    type=File(),
    default=None,
    help="Register again what run --snapshot has kept here, and Eureka has lost.",
)
@option("--snapshot-max-age", type=Duration(), default="24h", help="Bring nothing back from an older snapshot.")
@report_options
def command(
    owner: str,
    eureka: EurekaAccess,
    cluster: str | None,
    scope: Scope,
    calls: Calls,
    eureka_batch: str,
    passes: Passes,
    leases: Leases,
    snapshot: str | None,
    snapshot_max_age: float,
    form: ReportForm,
) -> ExitCode:
    """Renew all that is ours from Eureka alone: one pass, --passes N, or --daemon. No cluster is asked.

    Nothing is withdrawn, and without --snapshot nothing is added. Start it when `run` is away: beside it the renewals
    of both add up.
    """
    form.set_up_logs()
    leases.check(passes)
    settings = KeepaliveSettings(
        owner=owner,
        cluster=cluster,
        scope=scope,
        snapshot_max_age=snapshot_max_age,
        dry_run=passes.dry_run,
        deadline=passes.timeout,
    )
    connection = Connection(
        eureka=eureka,
        calls=calls,
        eureka_batch=eureka_batch,
        dry_run=passes.dry_run,
        renewal_interval=leases.renewal_interval,
        renewal_slack=passes.renewal_slack,
        lease_duration=leases.duration,
    )
    load = SnapshotFile(snapshot).load if snapshot else None
    tell = teller(form, passes, leases.renewal_interval, eureka.notices)
    schedule = Schedule(passes=passes.number, interval=passes.interval)
    look_rarely_for_cycles()
    clock = SystemClock()
    with stopped_by_signals(clock), connect_registry(connection, clock) as world:
        between = BetweenPasses(world, interval=passes.interval) if passes.number is None else None
        return run_passes(lambda: keepalive(world, settings, load), clock, schedule, tell, looking_for_cycles(between))
