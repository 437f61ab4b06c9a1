"""`run`: one pass, some passes, or passes until a signal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.connect import Connection, connect, connect_lock, read_dumped
from eurekube_sync.cli.garbage import look_rarely_for_cycles, looking_for_cycles
from eurekube_sync.cli.installation import Installation, installation_options, written
from eurekube_sync.cli.options.brake import approve_option, brake_options, read_approval
from eurekube_sync.cli.options.calls import batch_option
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import group, on_command_line, option
from eurekube_sync.cli.options.kubernetes import from_option
from eurekube_sync.cli.options.lock import LockChoice, lock_option
from eurekube_sync.cli.options.monitoring import (
    Monitoring,
    Recording,
    monitoring_options,
    recording_options,
)
from eurekube_sync.cli.options.passes import Leases, Passes, lease_options, pass_options
from eurekube_sync.cli.options.report import ReportForm, pass_report_options
from eurekube_sync.cli.options.scope import drain_option
from eurekube_sync.cli.output.layout import console_for
from eurekube_sync.cli.output.passes import Tell, good_pass, teller
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.cli.under_lock import under_lock
from eurekube_sync.cli.watched import Watched, watched
from eurekube_sync.controller.between_passes import BetweenPasses
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.lock import Lock, UnderLock
from eurekube_sync.controller.loop import Schedule, run_passes
from eurekube_sync.controller.one_pass import PassReport, PassSettings
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted

if TYPE_CHECKING:
    from eurekube_sync.adapters.kubernetes.dumped import DumpedConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class Exits:
    """What counts as failure."""

    detailed_exitcode: bool
    fail_on_held: bool | None
    fail_on_broken: bool

    def schedule(self, passes: Passes, form: ReportForm) -> Schedule:
        """Of these passes. Raises click.UsageError for what does not go with them."""
        if self.detailed_exitcode and not passes.dry_run:
            raise click.UsageError("--detailed-exitcode says what a dry run found: give --dry-run with it")
        return Schedule(
            passes=passes.number,
            interval=passes.interval,
            fail_on_held=not passes.many if self.fail_on_held is None else self.fail_on_held,
            fail_on_broken=self.fail_on_broken,
            detailed_exitcode=self.detailed_exitcode,
            watched=form.at_terminal,
        )


exit_options = group(
    "exits",
    Exits,
    option(
        "--detailed-exitcode",
        is_flag=True,
        help=f"With --dry-run: exit {ExitCode.CHANGES_PENDING} if there are changes to make.",
    ),
    option(
        "--fail-on-held/--no-fail-on-held",
        default=None,
        help=f"Exit {ExitCode.REMOVAL_HELD} if the brake holds removals.  [default: only for a single pass]",
        show_default=False,
    ),
    option(
        "--fail-on-broken",
        is_flag=True,
        help=f"Exit {ExitCode.INCOMPLETE} if a syncer cannot be served, such as one with an invalid spec.",
    ),
)


@click.command(cls=Command, short_help="Make Eureka equal to what the cluster says.")
@pass_options
@from_option
@installation_options(*written, lock_option, drain_option, brake_options)
@batch_option
@exit_options
@lease_options
@approve_option
@monitoring_options
@recording_options
@pass_report_options
def command(
    installation: Installation,
    eureka_batch: str,
    passes: Passes,
    dumps: tuple[str, ...],
    exits: Exits,
    leases: Leases,
    approve: str | None,
    monitoring: Monitoring,
    recording: Recording,
    form: ReportForm,
) -> ExitCode:
    """Make Eureka equal to what the cluster says: one pass, --passes N, or --daemon.

    The report goes to standard output, the logs go to standard error. A password for Eureka is read from a file, or
    from the variable EUREKUBE_SYNC_EUREKA_PASSWORD.
    """
    form.set_up_logs()
    leases.check(passes)
    form.check(dry_run=passes.dry_run)
    schedule = exits.schedule(passes, form)
    installation, dumped = _of_files(installation, dumps, passes) if dumps else (installation, None)
    look_rarely_for_cycles()
    clock = SystemClock()
    settings = installation.settings(
        lease=leases.times,
        approved=read_approval(approve, now=clock.now()) if approve else None,
        dry_run=passes.dry_run,
        looks=dumped is not None,
        deadline=passes.timeout,
        registry_cache=leases.registry_cache,
    )
    tell = _reporting(form, passes, recording, installation.eureka.notices)
    with stopped_by_signals(clock), watched(monitoring, clock, settings.owner, settings.scope, passes) as watch:
        connection = installation.writing(eureka_batch, passes, leases, dumped=dumped, count=watch.monitor.called)
        process = _Process(connection=connection, clock=clock, schedule=schedule, passes=passes, tell=tell, watch=watch)
        code = process.run(installation.lock, settings)
    if not passes.many and not passes.dry_run and form.at_terminal:
        minutes = counted(2 * leases.duration / 60, "minute")
        hint = f"leases expire in {minutes} unless something renews them: use run --daemon or a CronJob"
        console_for(sys.stdout).print(hint, style="dim")
    return code


def _reporting(form: ReportForm, passes: Passes, recording: Recording, notices: Sequence[str]) -> Tell:
    """Reports each pass, and records it where that was asked for."""
    tell = teller(form, passes, notices)
    if recording.record is None:
        return tell
    from eurekube_sync.cli.recording import Recorder

    most = recording.record_limit * 1024 * 1024
    return Recorder(recording.record, most_bytes=most).beside(tell)


def _of_files(
    installation: Installation, files: Sequence[str], passes: Passes
) -> tuple[Installation, DumpedConnection]:
    """The installation over the namespaces that these files hold, and they in the cluster's place."""
    if not passes.dry_run:
        raise click.UsageError("--from plans from files: give --dry-run with it")
    if on_command_line("kubeconfig") or on_command_line("context"):
        raise click.UsageError("--from is read instead of a cluster: leave out --kubeconfig and --context")
    dumped, scope = read_dumped(files, stdin=sys.stdin.buffer), installation.scope
    if scope.namespaces is None:
        scope = replace(scope, namespaces=dumped.namespaces)
    return replace(installation, scope=scope), dumped


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """What all passes of this process share."""

    connection: Connection
    clock: SystemClock
    schedule: Schedule
    passes: Passes
    tell: Tell
    watch: Watched

    def run(self, choice: LockChoice, settings: PassSettings) -> ExitCode:
        """All passes, under the lock where there is one."""
        daemon = self.passes.number is None
        # A person who approves means now, beside a daemon that has the lock; two passes at once do no harm.
        without_lock = self.passes.dry_run or (settings.approved is not None and not daemon)
        held = None if without_lock else connect_lock(self.connection, self.clock, choice, settings)

        def work() -> ExitCode:
            nonlocal settings
            # Who lost the lock begins anew without the approval: it may be spent.
            given, settings = settings, replace(settings, approved=None)
            return self._passes(held, given)

        return work() if held is None else under_lock(held, self.clock, self.watch, work, daemon=daemon)

    def _passes(self, lock: Lock | None, settings: PassSettings) -> ExitCode:
        """All passes, or those until this process loses the lock."""
        clock, passes, watch = self.clock, self.passes, self.watch
        with connect(self.connection, clock) as world:
            under = UnderLock(lock, world.time_limit.only_while) if lock else None
            begun = clock.monotonic()

            def make(renew_only: Unknown | None) -> PassReport:
                watch.monitor.turned()
                with self.connection.waits.seen():
                    return reconcile(world, replace(settings, renew_only=renew_only))

            def one_pass() -> PassReport:
                nonlocal settings, begun
                begun = clock.monotonic()
                report = under.one_pass(make) if under else make(None)
                if report.approval_spent:
                    settings = replace(settings, approved=None)
                return report

            def told(report: PassReport, code: ExitCode) -> None:
                if lock and code in (ExitCode.OK, ExitCode.REMOVAL_HELD):
                    lock.passed(good_pass(report, lock.identity))
                watch.passed(report, code, clock.monotonic() - begun)
                self.tell(report, code)

            daemon = passes.number is None
            between = BetweenPasses(world, world.memory.renewals, interval=passes.interval) if daemon else None
            return run_passes(one_pass, clock, self.schedule, told, looking_for_cycles(between))
