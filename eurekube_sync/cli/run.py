"""`run`: one pass, some passes, or passes until a signal."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from eurekube_sync.brake import BrakeLimits
from eurekube_sync.cli.approval import read_approval
from eurekube_sync.cli.connect import Connection, connect
from eurekube_sync.cli.eureka_access import EurekaAccess, eureka_access_options
from eurekube_sync.cli.logs import set_up_logs
from eurekube_sync.cli.options import (
    approve_option,
    batch_option,
    brake_options,
    call_options,
    cluster_options,
    eureka_options,
    lease_options,
    option,
    pass_options,
    report_options,
    scope_options,
)
from eurekube_sync.cli.passes import number_of_passes, renewed_every, teller
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.cli.snapshot_file import SnapshotKeeper
from eurekube_sync.clock import SystemClock
from eurekube_sync.exit_codes import ExitCode
from eurekube_sync.loop import Schedule, run_passes
from eurekube_sync.model import DrainBy, LeaseTimes
from eurekube_sync.ports import EndpointsSource
from eurekube_sync.reconcile import PassReport, PassSettings, reconcile
from eurekube_sync.report.table import console_for
from eurekube_sync.scope import Scope


@click.command(short_help="Make Eureka equal to what the cluster says.")
@eureka_options
@eureka_access_options
@cluster_options
@scope_options
@call_options
@batch_option
@pass_options
@option(
    "--drain-by",
    type=click.Choice([str(one) for one in DrainBy]),
    multiple=True,
    help="Ask these, too, for the annotation eurekube.io/drain, beside Services; may be repeated.",
)
@option("--detailed-exitcode", is_flag=True, help=f"With --dry-run: exit {ExitCode.CHANGES_PENDING} on changes.")
@option(
    "--fail-on-held/--no-fail-on-held",
    default=None,
    help=f"Exit {ExitCode.REMOVALS_HELD} when the brake holds removals.  [default: for a single pass]",
    show_default=False,
)
@lease_options
@brake_options
@approve_option
@option(
    "--snapshot",
    metavar="FILE",
    type=click.Path(),
    default=None,
    help="Keep here what stands after each good pass, for keepalive --snapshot.",
)
@report_options
def command(
    owner: str,
    eureka_url: str,
    eureka_access: EurekaAccess,
    kubeconfig: str | None,
    context: str | None,
    endpoints_source: EndpointsSource,
    scope: Scope,
    concurrency: int,
    call_timeout: float,
    eureka_batch: str,
    passes: int,
    daemon: bool,
    interval: float,
    pass_timeout: float,
    drain_by: tuple[str, ...],
    dry_run: bool,
    detailed_exitcode: bool,
    fail_on_held: bool | None,
    lease_duration: float,
    renewal_interval: float,
    registry_cache: float,
    brake: BrakeLimits,
    approve: str | None,
    snapshot: str | None,
    output: str,
    log_format: str,
    verbose: bool,
) -> ExitCode:
    """Make Eureka equal to what the cluster says: one pass, --passes N, or --daemon.

    The report goes to standard output, the logs go to standard error. A password for Eureka is read from a file, or
    from the variable EUREKUBE_SYNC_EUREKA_PASSWORD.
    """
    set_up_logs(as_json=log_format == "json", verbose=verbose)
    clock = SystemClock()
    number = number_of_passes(passes=passes, daemon=daemon)
    many = number != 1
    _check_leases(interval if many else 0.0, renewal_interval, lease_duration)
    settings = PassSettings(
        owner=owner,
        scope=scope,
        lease=LeaseTimes(int(renewal_interval), int(lease_duration)),
        brake=brake,
        approved=read_approval(approve, now=clock.now()) if approve else None,
        drain_by=frozenset(DrainBy(one) for one in drain_by),
        dry_run=dry_run,
        deadline=pass_timeout,
        registry_cache=registry_cache,
    )
    schedule = Schedule(
        passes=number,
        interval=interval,
        fail_on_held=not many if fail_on_held is None else fail_on_held,
        detailed_exitcode=detailed_exitcode,
    )
    connection = Connection(
        eureka_url=eureka_url,
        eureka_access=eureka_access,
        kubeconfig=kubeconfig,
        context=context,
        endpoints_source=endpoints_source,
        concurrency=concurrency,
        call_timeout=call_timeout,
        eureka_batch=eureka_batch,
        dry_run=dry_run,
        registry_cache=registry_cache,
        renewal_interval=renewal_interval,
        renewal_slack=interval / 2 if many else 0.0,
        lease_duration=lease_duration,
    )
    keeper = SnapshotKeeper(snapshot, scope) if snapshot else None
    tell = teller(output, renewed_every(renewal_interval, interval, many=many), eureka_access.notices, many=many)
    with stopped_by_signals(clock), connect(connection, clock) as world:
        if keeper is not None:
            world = replace(world, withdrawing=keeper.forget)

        def one_pass() -> PassReport:
            nonlocal settings
            report = reconcile(world, settings)
            if report.approval_spent:
                settings = replace(settings, approved=None)
            if keeper is not None:
                keeper.keep(report, clock.now())
            return report

        code = run_passes(one_pass, clock, schedule, tell)
    if not many and not dry_run and output == "table" and sys.stdout.isatty():
        minutes = 2 * lease_duration / 60
        hint = f"leases lapse in {minutes:g} minutes unless something keeps running: run --daemon, or a CronJob"
        console_for(sys.stdout).print(hint, style="dim")
    return code


def _check_leases(interval: float, renewal_interval: float, lease_duration: float) -> None:
    if renewal_interval < 1 or renewal_interval != int(renewal_interval) or lease_duration != int(lease_duration):
        raise click.UsageError("--renewal-interval and --lease-duration are whole seconds, at least 1")
    if lease_duration < 3 * renewal_interval:
        raise click.UsageError(
            f"--lease-duration {lease_duration:g}s is less than three times --renewal-interval {renewal_interval:g}s: "
            "one slow pass would let leases lapse"
        )
    if interval > lease_duration / 2:
        raise click.UsageError(
            f"--interval {interval:g}s is more than half of --lease-duration {lease_duration:g}s: "
            "one failed pass would let leases lapse"
        )
