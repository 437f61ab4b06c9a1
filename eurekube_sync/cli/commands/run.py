"""The commands `run` and `keepalive`: one pass, several passes, or passes until a signal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli import process
from eurekube_sync.cli.connect import (
    Installation,
    connect,
    connect_lock,
    connect_registry,
    installation_options,
    required_options,
)
from eurekube_sync.cli.monitoring.metrics import Monitor, scope_text
from eurekube_sync.cli.options import passes as choices
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import on_command_line, option
from eurekube_sync.cli.options.passes import Monitoring, Passes
from eurekube_sync.cli.options.report import ReportForm, pass_report_options
from eurekube_sync.cli.options.scope import (
    drain_option,
    former_options,
    lock_option,
    name_scope_options,
    owner_option,
)
from eurekube_sync.cli.options.servers import (
    batch_option,
    call_options,
    eureka_options,
    from_option,
)
from eurekube_sync.cli.output.passes import Reporter, reporter
from eurekube_sync.cli.output.table import console_for
from eurekube_sync.cli.output.words import summary
from eurekube_sync.cli.values import NAME
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.lock import UnderLock
from eurekube_sync.controller.loop import BetweenPasses, Schedule, run_passes
from eurekube_sync.controller.one_pass import PassReport, PassSettings
from eurekube_sync.controller.reconcile import keepalive, reconcile
from eurekube_sync.model.eureka import RENEWAL_INTERVAL, LeaseTimes
from eurekube_sync.model.kubernetes import GoodPass
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.wording import counted, duration


@click.command(cls=Command, short_help="Make Eureka equal to what the cluster says.")
@choices.pass_options
@from_option
@installation_options(
    *required_options,
    former_options,
    lock_option,
    drain_option,
    choices.brake_options,
    batch_option,
    *choices.lease_options,
)
@option("--detailed-exitcode", is_flag=True)
@option("--fail-on-held/--no-fail-on-held", default=None)
@option("--fail-on-broken", is_flag=True)
@choices.approve_option
@choices.monitoring_options
@pass_report_options
def run_command(
    installation: Installation,
    passes: Passes,
    dumps: tuple[str, ...],
    detailed_exitcode: bool,
    fail_on_held: bool | None,
    fail_on_broken: bool,
    approve: str | None,
    monitoring: Monitoring,
    form: ReportForm,
) -> ExitCode:
    """Make Eureka equal to what the cluster says: one pass, --passes N, or --daemon.

    The report goes to standard output, the logs go to standard error. A password for Eureka is read
    from a file, or from the variable EUREKUBE_SYNC_EUREKA_PASSWORD.
    """
    held = not passes.many if fail_on_held is None else fail_on_held
    fails = {
        "fail_on_held": held,
        "fail_on_broken": fail_on_broken,
        "detailed_exitcode": detailed_exitcode,
    }
    schedule = _schedule(installation, passes, form, **fails)
    if installation.owner in installation.former.owners:
        raise click.UsageError(
            f"--former-owner {installation.owner} is the present --owner: give the earlier name"
        )
    if detailed_exitcode and not passes.dry_run:
        raise click.UsageError(
            "--detailed-exitcode says what a dry run found: give --dry-run with it"
        )
    installation = _of_files(installation, dumps, passes) if dumps else installation
    process.avoid_garbage_collection()
    clock = SystemClock()
    settings = installation.settings(
        lease=LeaseTimes(RENEWAL_INTERVAL, int(installation.lease_duration)),
        approved=choices.read_approval(approve, now=clock.now()) if approve else None,
        dry_run=passes.dry_run,
        looks=bool(dumps),
        deadline=passes.pass_timeout,
        registry_cache=installation.registry_cache,
    )
    reporters = [reporter(form, passes)]
    if monitoring.record is not None:
        from eurekube_sync.cli.commands.replay import Recorder

        reporters.insert(
            0, Recorder(monitoring.record, most_bytes=monitoring.record_limit * 1024 * 1024).keep
        )
    watching = process.watched(monitoring, clock, settings.owner, settings.scope, passes)
    with process.stopped_by_signals(clock), watching as (monitor, passed):
        ours = replace(_renewing(installation, passes), count=monitor.called)
        code = _run(ours, settings, passes, schedule, clock, monitor, passed, reporters)
    if not passes.many and not passes.dry_run and form.at_terminal:
        minutes = counted(2 * installation.lease_duration / 60, "minute")
        hint = (
            f"leases expire in {minutes} unless something renews them: use run --daemon or a "
            "CronJob"
        )
        console_for(sys.stdout).print(hint, style="dim")
    return code


def _schedule(
    installation: Installation, passes: Passes, form: ReportForm, **more: bool
) -> Schedule:
    """Return the schedule. Raises click.UsageError for options that contradict each other."""
    lease = installation.lease_duration
    if lease != int(lease):
        raise click.UsageError("--lease-duration must be whole seconds")
    if passes.many and passes.interval > lease / 2:
        raise click.UsageError(
            f"--interval {duration(passes.interval)} is more than half of --lease-duration "
            f"{duration(lease)}: give at "
            f"most {duration(lease / 2)}"
        )
    if form.output == "markdown" and not passes.dry_run:
        raise click.UsageError(
            "--output markdown shows what a dry run found: give --dry-run with it"
        )
    return Schedule(
        passes=None if passes.daemon else passes.passes,
        interval=passes.interval,
        watched=form.at_terminal,
        **more,
    )


def _renewing(installation: Installation, passes: Passes) -> Installation:
    return replace(installation, only_looks=passes.dry_run, renewal_slack=passes.renewal_slack)


def _of_files(installation: Installation, files: tuple[str, ...], passes: Passes) -> Installation:
    """Return the installation with these files instead of the cluster, limited to the namespaces in
    the files."""
    from eurekube_sync.adapters.kubernetes.dumped import DumpedConnection
    from eurekube_sync.manifests.dumps import read_dumps

    if not passes.dry_run:
        raise click.UsageError("--from plans from files: give --dry-run with it")
    if on_command_line("kubeconfig") or on_command_line("context"):
        raise click.UsageError(
            "--from is read instead of a cluster: leave out --kubeconfig and --context"
        )
    dumped, scope = DumpedConnection(read_dumps(files, stdin=sys.stdin.buffer)), installation.scope
    if scope.namespaces is None:
        scope = replace(scope, namespaces=dumped.namespaces)
    return replace(installation, scope=scope, to_cluster=dumped)


def _run(
    ours: Installation,
    settings: PassSettings,
    passes: Passes,
    schedule: Schedule,
    clock: SystemClock,
    monitor: Monitor,
    passed: process.Passed,
    reporters: Sequence[Reporter],
) -> ExitCode:
    """Run all passes, under the lock if there is one."""
    # An approval is meant for now, even if a daemon has the lock. Two passes at once do no harm.
    without_lock = passes.dry_run or (settings.approved is not None and not passes.daemon)
    lock = None if without_lock else connect_lock(ours, clock)

    def work() -> ExitCode:
        """Run all passes, or those until this process loses the lock."""
        nonlocal settings
        # After a lost lock, `work` is called again without the approval, which may be used up.
        given, settings = settings, replace(settings, approved=None)
        with connect(ours, clock) as world:
            under, begun = (
                UnderLock(lock, world.time_limit.only_while) if lock else None,
                clock.monotonic(),
            )

            def make(renew_only: Unknown | None) -> PassReport:
                monitor.turned()
                with ours.waits.seen():
                    return reconcile(world, replace(given, renew_only=renew_only))

            def one_pass() -> PassReport:
                nonlocal given, begun
                begun = clock.monotonic()
                report = under.one_pass(make) if under else make(None)
                if report.approval_spent:
                    given = replace(given, approved=None)
                return report

            def tell_all(report: PassReport, code: ExitCode) -> None:
                if lock and code in (ExitCode.OK, ExitCode.REMOVAL_HELD):
                    at, scope, result = clock.now(), scope_text(given.scope), summary(report)
                    lock.passed(
                        GoodPass(
                            at=at,
                            holder=lock.identity,
                            owner=given.owner,
                            scope=scope,
                            result=result,
                        )
                    )
                passed(report, code, clock.monotonic() - begun)
                for report_pass in reporters:
                    report_pass(report, code)

            between = BetweenPasses(world, interval=passes.interval) if passes.daemon else None
            return run_passes(
                one_pass, clock, schedule, tell_all, process.collecting_garbage(between)
            )

    return (
        work()
        if lock is None
        else process.under_lock(lock, clock, monitor, work, daemon=passes.daemon)
    )


@click.command(cls=Command, short_help="Renew the owner's instances, without asking a cluster.")
@option("--cluster", type=NAME, metavar="UID")
@installation_options(
    owner_option,
    *eureka_options,
    name_scope_options,
    *call_options,
    batch_option,
    choices.kept_lease_option,
)
@choices.pass_options
@pass_report_options
def keepalive_command(
    cluster: str | None, installation: Installation, passes: Passes, form: ReportForm
) -> ExitCode:
    """Renew all instances of the owner: one pass, --passes N, or --daemon. It asks Eureka only, and
    no cluster.

    Nothing is added or removed. Start it while `run` cannot run, and end it when `run` is back: two
    programs that renew the same leases disturb Eureka's self-preservation.
    """
    schedule = _schedule(installation, passes, form)
    settings = PassSettings(
        owner=installation.owner,
        scope=installation.scope,
        dry_run=passes.dry_run,
        deadline=passes.pass_timeout,
    )
    report_pass = reporter(form, passes)
    process.avoid_garbage_collection()
    clock = SystemClock()
    with (
        process.stopped_by_signals(clock),
        connect_registry(_renewing(installation, passes), clock) as world,
    ):
        between = BetweenPasses(world, interval=passes.interval) if passes.daemon else None

        def one_pass() -> PassReport:
            with installation.waits.seen():
                return keepalive(world, settings, cluster)

        return run_passes(
            one_pass, clock, schedule, report_pass, process.collecting_garbage(between)
        )
