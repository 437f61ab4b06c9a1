"""The commands `run` and `keepalive`: one pass, several passes, or passes until a signal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.apply.status import short
from eurekube_sync.brake.approval import PlanId
from eurekube_sync.cli import process
from eurekube_sync.cli.connect import (
    Installation,
    connect,
    connect_lock,
    connect_registry,
    installation_options,
    required_options,
    with_planned,
    with_saved_input,
)
from eurekube_sync.cli.installed import InstalledCommand
from eurekube_sync.cli.monitoring.metrics import Monitor, scope_text
from eurekube_sync.cli.options import passes as choices
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.passes import Monitoring, Passes
from eurekube_sync.cli.options.report import ReportForm, pass_report_options
from eurekube_sync.cli.options.scope import (
    drain_option,
    former_options,
    imports_option,
    lock_option,
    name_scope_options,
    owner_option,
)
from eurekube_sync.cli.options.servers import (
    SavedInput,
    batch_option,
    call_option,
    eureka_options,
    filename_option,
    saved_options,
)
from eurekube_sync.cli.output.passes import Reporter, reporter
from eurekube_sync.cli.output.report import summary
from eurekube_sync.cli.output.table import console_for
from eurekube_sync.cli.values import NAME
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import failure_of
from eurekube_sync.controller.lock import Lock, UnderLock
from eurekube_sync.controller.loop import BetweenPasses, Schedule, run_passes
from eurekube_sync.controller.one_pass import EurekaWorld, PassReport, PassSettings
from eurekube_sync.controller.reconcile import keepalive, reconcile
from eurekube_sync.desired.scope import Policy
from eurekube_sync.model.eureka import RENEWAL_INTERVAL, LeaseTimes
from eurekube_sync.model.kubernetes import FailedPass, GoodPass
from eurekube_sync.model.ownership import NO_FORMER
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted, duration

if TYPE_CHECKING:
    from eurekube_sync.cli.records import Recorder


@click.command(cls=InstalledCommand, short_help="Make Eureka match the cluster.")
@choices.pass_options
@saved_options
@filename_option
@installation_options(
    *required_options,
    former_options,
    lock_option,
    imports_option,
    drain_option,
    choices.brake_option,
    batch_option,
    *choices.lease_options,
)
@option("--detailed-exitcode", is_flag=True)
@option("--fail-on-held/--no-fail-on-held", default=None)
@choices.approve_option
@choices.monitoring_options
@pass_report_options
def run_command(
    installation: Installation,
    passes: Passes,
    saved: SavedInput,
    filename: tuple[str, ...],
    detailed_exitcode: bool,
    fail_on_held: bool | None,
    approve: str | None,
    monitoring: Monitoring,
    form: ReportForm,
) -> ExitCode:
    """Make Eureka match the cluster: one pass, --passes N, or --daemon.

    The report goes to stdout, logs go to stderr. With --dry-run it uses the settings of the
    installation that it finds in the cluster.
    """
    if fail_on_held is None:
        fail_on_held = not passes.many
    schedule = _schedule(
        installation, passes, form, fail_on_held=fail_on_held, detailed_exitcode=detailed_exitcode
    )
    _check_former(installation)
    _check_dry_run_only(passes, saved, filename, detailed_exitcode=detailed_exitcode)
    installation = with_saved_input(installation, saved)
    if filename:
        planned = with_planned(installation, filename)
        if planned is None:
            return ExitCode.INVALID_MANIFEST
        installation = planned
    process.avoid_garbage_collection()
    clock = SystemClock()
    approved = None
    if approve:
        approved = PlanId(approve, given=clock.now())
    settings = installation.settings(
        lease=LeaseTimes(RENEWAL_INTERVAL, int(installation.lease_duration)),
        approved=approved,
        dry_run=passes.dry_run,
        looks=installation.to_cluster is not None,
        deadline=passes.pass_timeout,
        registry_cache=installation.registry_cache,
    )
    reporters = [reporter(form, passes, process.asked_by_signal())]
    if installation.recorded is not None:
        reporters.append(installation.recorded.compare)
    recorder = _recorder(installation, monitoring, clock)
    if recorder is not None:
        installation = replace(installation, recording=recorder.recording)
    watching = process.watched(monitoring, clock, settings.owner, settings.scope, passes)
    with process.stopped_by_signals(clock), watching as (monitor, passed):
        ours = replace(_renewing(installation, passes), count=monitor.called)
        if recorder is not None:
            monitor.records(recorder.unwritten)
        code = _run(ours, settings, passes, schedule, clock, monitor, passed, reporters, recorder)
    if not passes.many and not passes.dry_run and form.at_terminal:
        _tell_of_expiry(installation)
    return code


def _tell_of_expiry(installation: Installation) -> None:
    """Say when the leases end that a single pass renewed."""
    # After a renewal, Eureka keeps a lease for twice its duration.
    seconds = 2 * installation.lease_duration
    minutes = counted(seconds / 60, "minute")
    hint = f"leases expire in {minutes} unless something renews them: use run --daemon or a CronJob"
    console_for(sys.stdout).print(hint, style="dim")


def _check_dry_run_only(
    passes: Passes, saved: SavedInput, filename: tuple[str, ...], *, detailed_exitcode: bool
) -> None:
    """Raise click.UsageError for an option that a real pass does not have."""
    if filename and saved.paths:
        raise click.UsageError("--filename and --from are mutually exclusive")
    if passes.dry_run:
        return
    if detailed_exitcode:
        raise click.UsageError("--detailed-exitcode requires --dry-run")
    if saved.paths:
        raise click.UsageError("--from requires --dry-run")
    if filename:
        raise click.UsageError("--filename requires --dry-run: kubectl apply applies it")


def _recorder(
    installation: Installation, monitoring: Monitoring, clock: SystemClock
) -> Recorder | None:
    """Return what keeps the records of the passes. A pass from a record makes no record."""
    if monitoring.record is None or installation.recorded is not None:
        return None
    from eurekube_sync.cli.records import Recorder, Recording

    most_bytes = monitoring.record.most_mib * 1024 * 1024
    return Recorder(monitoring.record.folder, Recording(clock), most_bytes=most_bytes)


def _check_former(installation: Installation) -> None:
    if installation.owner in installation.former.owners:
        raise click.UsageError(
            f"--former-owner {installation.owner} is the current --owner: give the earlier name"
        )
    if installation.former != NO_FORMER and installation.scope.policy is Policy.UPSERT_ONLY:
        raise click.UsageError("--policy upsert-only cancels no former id: move with --policy sync")


def _schedule(
    installation: Installation, passes: Passes, form: ReportForm, **more: bool
) -> Schedule:
    """Return the schedule. Raises click.UsageError for options that contradict each other."""
    lease = installation.lease_duration
    if lease != int(lease):
        raise click.UsageError("--lease-duration must be whole seconds")
    most = lease / 2
    if passes.many and passes.interval > most:
        raise click.UsageError(
            f"--interval {duration(passes.interval)} is more than half of --lease-duration "
            f"{duration(lease)}: give at most {duration(most)}"
        )
    if form.output == "markdown" and not passes.dry_run:
        raise click.UsageError("--output markdown requires --dry-run")
    number: int | None = passes.passes
    if passes.daemon:
        number = None
    return Schedule(
        passes=number,
        interval=passes.interval,
        watched=form.at_terminal,
        **more,
    )


def _renewing(installation: Installation, passes: Passes) -> Installation:
    return replace(installation, only_looks=passes.dry_run, renewal_slack=passes.renewal_slack)


def _run(
    ours: Installation,
    settings: PassSettings,
    passes: Passes,
    schedule: Schedule,
    clock: SystemClock,
    monitor: Monitor,
    passed: process.Passed,
    reporters: Sequence[Reporter],
    recorder: Recorder | None,
) -> ExitCode:
    """Run all passes, under the lock if there is one."""
    # An approval is meant for now, even if a daemon has the lock. Two passes at once do no harm.
    approves_once = settings.approved is not None and not passes.daemon
    lock = None
    if not passes.dry_run and not approves_once:
        lock = connect_lock(ours, clock)

    def work() -> ExitCode:
        """Run all passes, or those until this process loses the lock."""
        nonlocal settings
        given = settings
        # After a lost lock, `work` is called again without the approval, which may be used up.
        settings = replace(settings, approved=None)
        with connect(ours, clock) as world:
            monitor.uses(world.servers)
            under = None
            if lock is not None:
                under = UnderLock(lock, world.time_limit.only_while)
            begun = clock.monotonic()

            def make(renew_only: Unknown | None) -> PassReport:
                monitor.turned()
                if ours.recording is not None:
                    ours.recording.begin(world)
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
                if lock is not None:
                    result = _last_pass(report, code, lock, clock.now())
                    lock.passed(result)
                seconds = clock.monotonic() - begun
                if recorder is not None:
                    recorder.keep(report, code)  # before its metric is written
                passed(report, code, seconds)
                for report_pass in reporters:
                    report_pass(report, code)

            between = process.collecting_garbage(_between(world, passes))
            return run_passes(one_pass, clock, schedule, tell_all, between)

    if lock is None:
        return work()
    return process.under_lock(lock, clock, monitor, work, daemon=passes.daemon)


def _between(world: EurekaWorld, passes: Passes) -> BetweenPasses | None:
    """Return what renews leases between the passes of a daemon."""
    if not passes.daemon:
        return None
    return BetweenPasses(world, interval=passes.interval)


def _last_pass(report: PassReport, code: ExitCode, lock: Lock, now: float) -> GoodPass | FailedPass:
    """Return what the lock shows of a pass, for those who look at the installation."""
    if code in (ExitCode.OK, ExitCode.REMOVAL_HELD):
        return GoodPass(
            at=now,
            holder=lock.identity,
            owner=report.settings.owner,
            scope=scope_text(report.settings.scope),
            result=summary(report),
        )
    problem = failure_of(report)
    if problem is None:  # it had no time for everything, or there was nothing to do
        return FailedPass(at=now, reason=Reason.CUT_SHORT, result=summary(report))
    return FailedPass(at=now, reason=problem.reason, result=short(problem.sentence))


@click.command(cls=Command, short_help="Renew all instances of the owner, without a cluster.")
@option("--cluster", type=NAME, metavar="UID")
@installation_options(
    owner_option,
    *eureka_options,
    name_scope_options,
    call_option,
    batch_option,
    choices.kept_lease_option,
)
@choices.pass_options
@pass_report_options
def keepalive_command(
    cluster: str | None, installation: Installation, passes: Passes, form: ReportForm
) -> ExitCode:
    """Renew all instances of the owner: one pass, --passes N, or --daemon. Kubernetes is not called.

    Nothing is added or removed. Use it while `run` cannot run, and stop it when `run` is back: two
    programs that renew the same leases disturb Eureka's self-preservation.
    """
    schedule = _schedule(installation, passes, form)
    settings = PassSettings(
        owner=installation.owner,
        scope=installation.scope,
        dry_run=passes.dry_run,
        deadline=passes.pass_timeout,
    )
    report_pass = reporter(form, passes, process.asked_by_signal())
    process.avoid_garbage_collection()
    clock = SystemClock()
    with (
        process.stopped_by_signals(clock),
        connect_registry(_renewing(installation, passes), clock) as world,
    ):
        between = process.collecting_garbage(_between(world, passes))

        def one_pass() -> PassReport:
            with installation.waits.seen():
                return keepalive(world, settings, cluster)

        return run_passes(one_pass, clock, schedule, report_pass, between)
