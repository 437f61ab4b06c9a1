"""`run`: one pass, some passes, or passes until a signal."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable

import click
import yaml

from eurekube_sync.brake import BrakeLimits
from eurekube_sync.cli.connect import Connection, connect
from eurekube_sync.cli.logs import set_up_logs
from eurekube_sync.cli.options import brake_options, connection_options, lease_options, option
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.cli.streams import discard_output
from eurekube_sync.cli.values import Duration
from eurekube_sync.clock import SystemClock
from eurekube_sync.exit_codes import ExitCode
from eurekube_sync.loop import Schedule, run_passes
from eurekube_sync.model import LeaseTimes
from eurekube_sync.observed import Scope
from eurekube_sync.reconcile import PassReport, PassSettings
from eurekube_sync.report.machine import as_data
from eurekube_sync.report.table import console_for, pass_table

log = logging.getLogger(__name__)


@click.command(short_help="Make Eureka equal to what the cluster says.")
@connection_options
@option("--passes", type=click.IntRange(1), default=1, help="How many passes; the exit code is the last one's.")
@option("--daemon", is_flag=True, help="Pass after pass, until SIGTERM.")
@option("--interval", type=Duration(least=1), default="30s", help="From the start of a pass to the start of the next.")
@option("--pass-timeout", type=Duration(least=1), default="120s", help="A pass begins nothing new after this long.")
@option("--dry-run", is_flag=True, help="Show what a pass would do; write nothing anywhere.")
@option("--detailed-exitcode", is_flag=True, help=f"With --dry-run: exit {ExitCode.CHANGES_PENDING} on changes.")
@option(
    "--fail-on-held/--no-fail-on-held",
    default=None,
    help=f"Exit {ExitCode.REMOVALS_HELD} when the brake holds removals.  [default: for a single pass]",
    show_default=False,
)
@lease_options
@brake_options
@option("--output", "-o", type=click.Choice(["table", "json", "yaml"]), default="table", help="Form of the report.")
@option("--log-format", type=click.Choice(["text", "json"]), default="text", help="Form of the logs, on stderr.")
@option("--verbose", "-v", is_flag=True, help="Log each call.")
def command(
    owner: str,
    eureka_url: str,
    eureka_username: str | None,
    kubeconfig: str | None,
    context: str | None,
    namespaces: tuple[tuple[str, ...], ...],
    concurrency: int,
    call_timeout: float,
    passes: int,
    daemon: bool,
    interval: float,
    pass_timeout: float,
    dry_run: bool,
    detailed_exitcode: bool,
    fail_on_held: bool | None,
    lease_duration: float,
    renewal_interval: float,
    registry_cache: float,
    brake_percent: float,
    brake_count: int,
    brake_ceiling: int,
    brake_apps_percent: float,
    brake_apps: int,
    approve: str | None,
    output: str,
    log_format: str,
    verbose: bool,
) -> ExitCode:
    """Make Eureka equal to what the cluster says: one pass, --passes N, or --daemon.

    The report goes to standard output, the logs go to standard error. A password for Eureka is read from the variable
    EUREKUBE_SYNC_EUREKA_PASSWORD.
    """
    set_up_logs(as_json=log_format == "json", verbose=verbose)
    if daemon and passes > 1:
        raise click.UsageError("--daemon goes on until SIGTERM and --passes ends: give one of them")
    many = daemon or passes > 1
    _check_leases(interval if many else 0.0, renewal_interval, lease_duration)
    chosen = frozenset(name for names in namespaces for name in names)
    settings = PassSettings(
        owner=owner,
        scope=Scope(namespaces=chosen or None),
        lease=LeaseTimes(int(renewal_interval), int(lease_duration)),
        brake=BrakeLimits(
            loss_percent=brake_percent,
            loss_floor=brake_count,
            loss_ceiling=brake_ceiling,
            apps_percent=brake_apps_percent,
            apps_floor=brake_apps,
        ),
        approved=approve,
        dry_run=dry_run,
        deadline=pass_timeout,
        registry_cache=registry_cache,
    )
    schedule = Schedule(
        passes=None if daemon else passes,
        interval=interval,
        fail_on_held=not many if fail_on_held is None else fail_on_held,
        detailed_exitcode=detailed_exitcode,
    )
    connection = Connection(
        eureka_url=eureka_url,
        eureka_username=eureka_username,
        kubeconfig=kubeconfig,
        context=context,
        concurrency=concurrency,
        call_timeout=call_timeout,
        registry_cache=registry_cache,
        renewal_interval=renewal_interval,
        renewal_slack=interval / 2 if many else 0.0,
    )
    clock = SystemClock()
    with stopped_by_signals(clock), connect(connection, clock) as world:
        code = run_passes(world, settings, schedule, _teller(output))
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


def _teller(output: str) -> Callable[[PassReport, ExitCode], None]:
    """Reports a pass. A report that cannot be written ends neither the passes nor changes their exit code."""
    console = console_for(sys.stdout)

    def write(report: PassReport, code: ExitCode) -> None:
        match output:
            case "json":
                click.echo(json.dumps(as_data(report, code), indent=2, ensure_ascii=False))
            case "yaml":
                click.echo(yaml.safe_dump(as_data(report, code), sort_keys=False, explicit_start=True), nl=False)
            case _:
                console.print(pass_table(report))
        sys.stdout.flush()

    def tell(report: PassReport, code: ExitCode) -> None:
        try:
            write(report, code)
        except (BrokenPipeError, SystemExit):  # rich raises the latter for a closed pipe
            discard_output()
        except OSError as error:
            discard_output()
            log.warning("the report cannot be written: %s", error.strerror)

    return tell
