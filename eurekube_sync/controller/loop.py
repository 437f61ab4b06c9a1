"""Run passes: once, a number of times, or until a signal, and renew between the passes of a
daemon. After a pass that fails the next one is made all the same."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from math import ceil
from typing import TypeAlias

from msgspec import Struct

from eurekube_sync.apply.leases import chunks
from eurekube_sync.controller.changes import News, Standing
from eurekube_sync.controller.diagnosis import problems_of_sources
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import EurekaWorld, PassReport
from eurekube_sync.controller.steps import applier_of
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Renew, Result
from eurekube_sync.model.deadline import Deadline, Streak
from eurekube_sync.model.errors import LockLost
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.sources import Cause
from eurekube_sync.model.struct import replace

log = logging.getLogger(__name__)


class Schedule(Struct, frozen=True, kw_only=True):
    """How often to make a pass, and what counts as failure."""

    passes: int | None = 1  # None: until a signal
    interval: float = 30  # seconds from the start of a pass to the start of the next
    fail_on_held: bool = True
    detailed_exitcode: bool = False
    watched: bool = False
    """A person sees the report: after a single pass its outages are not logged as well."""


Between: TypeAlias = Callable[[tuple[InstanceKey, ...], float], int]
"""Gets the registered keys and when the next pass begins, in monotonic seconds. Gives how many
leases it renewed."""


def run_passes(
    one_pass: Callable[[], PassReport],
    clock: Clock,
    schedule: Schedule,
    tell: Callable[[PassReport, ExitCode], None],
    between: Between | None = None,
) -> ExitCode:
    """Run the passes and return the exit code of the last. Call `tell` after each, and `between`
    after each but the last. A bug in a pass, or in its report, ends the process only if that pass
    is the last, because leases must be renewed. Raises LockLost if `one_pass` does."""
    done = 0
    renewed = 0
    lost = False  # an app was lost with the last pass, which a daemon must not end in silence
    outages = Standing()
    while True:
        begun = clock.monotonic()
        done += 1
        last = schedule.passes is not None and done >= schedule.passes
        to_renew: tuple[InstanceKey, ...] = ()
        try:
            report = replace(one_pass(), renewed_between=renewed)
            code = of_report(
                report,
                fail_on_held=schedule.fail_on_held,
                detailed=schedule.detailed_exitcode,
                single=schedule.passes == 1,
            )
            to_renew = report.to_renew
            lost = bool(report.lost)
            tell(report, code)
            if not (schedule.watched and schedule.passes == 1):
                _log(outages.note(report, problems_of_sources(report)))
            if report.bug is not None:
                raise report.bug
            if last:
                return code
            del report  # frees Eureka's list, before the next pass lists it again
        except LockLost:
            raise
        except Exception:
            if last:
                raise
            log.exception("unexpected error, pass aborted; the next pass runs as scheduled")
        following = begun + schedule.interval
        renewed = _renew_between(between, to_renew, following)
        if not clock.stopping():
            clock.sleep(max(0.0, following - clock.monotonic()))
        if clock.stopping():
            if schedule.passes is not None:
                return ExitCode.INCOMPLETE
            if lost:
                return ExitCode.APP_LOST
            return ExitCode.OK


def _log(news: News) -> None:
    for problem in news.began:
        log.warning("%s", problem.sentence)
    for end in news.ended:
        log.info("%s", end.sentence)


def _renew_between(
    between: Between | None, to_renew: tuple[InstanceKey, ...], following: float
) -> int:
    """Renew until the `following` pass begins, and return how many leases. A bug ends only this."""
    if between is None:
        return 0
    try:
        return between(to_renew, following)
    except Exception:
        log.exception("unexpected error, renewals between passes aborted; the next pass makes them")
        return 0


_MANY = 250
"""Leases. Passes alone renew fewer than these, in one short burst that their report lists."""
_ABOUT = 0.1
"""Part of a period by which passes may renew a lease early or late: Eureka's self-preservation
allows 15 % fewer."""
# Seconds over which the leases that fall due in them are spread: each is early or late by less
_STRETCH = 5.0
_STEP = 0.1  # seconds from one group of single calls to the next


class BetweenPasses:
    """Renew leases evenly while a daemon waits for its next pass, each when it is a period old.

    In a pass, many renewals would be one burst, or would delay its adds and removals. A lease that
    is not renewed here in time is renewed at once by the next pass, before anything else. Few
    leases, or as many as fit into one batch, are renewed by passes alone, if a whole number of
    intervals is about a period.

    Only what the last pass found to be ours and to stay is renewed, and nothing is registered
    again. A lease that is gone, or that some servers lack, is due in the next pass, which knows
    what is desired."""

    def __init__(self, world: EurekaWorld, *, interval: float, many: int = _MANY) -> None:
        """`interval` is from the start of a pass to the start of the next, in seconds."""
        self._world = world
        self._ledger = world.renewals
        self._interval = interval
        self._many = many

    def __call__(self, to_renew: Collection[InstanceKey], until: float) -> int:
        """Renew those of these leases that fall due before `until`, and return how many. `until` is
        the start of the next pass, in monotonic seconds. If no time is left, the next pass renews
        what falls due before the one after it."""
        clock = self._world.clock
        begun = until - self._interval  # the last pass
        busy = clock.monotonic() - begun
        batches = self._world.registry.batches()
        most = batches.size if batches is not None else None
        if not self._worth_it(len(to_renew), most) or busy >= self._interval:
            self._ledger.slack = self._interval / 2
            return 0
        # Nothing is renewed evenly during the next pass: half of what falls due then is renewed
        # before it, half after.
        self._ledger.slack = busy / 2
        renewed = 0
        failed: set[InstanceKey] = set()
        wanted = frozenset(to_renew)
        unanswered = Streak()
        while (now := clock.monotonic()) < until and not clock.stopping():
            end = min(until, now + _STRETCH)
            due_before = end
            if end == until:
                due_before += busy / 2
            due: list[InstanceKey] = []
            for key in self._ledger.falling_due(wanted, due_before):
                if key not in failed:
                    due.append(key)
            # Full batches; or groups of equally many single calls, so that one group a step is
            # enough.
            for_a_step = len(due) * _STEP / (end - now)
            size = most or max(1, ceil(for_a_step))
            groups = chunks(due, size)
            for number, group in enumerate(groups):
                self._wait(now)
                # After a slow group, the others are spread over the rest of the time, and not sent
                # in a burst.
                at = clock.monotonic()
                left = len(groups) - number
                now = at + (end - at) / left
                if clock.stopping() or at >= end or unanswered.broken:
                    break
                missed = self._renew(group, unanswered, until)
                renewed += len(group) - len(missed)
                failed.update(missed)
            if unanswered.broken:
                break  # the next pass lists first, which finds a server that answers
            self._wait(end)
        return renewed

    def _worth_it(self, leases: int, most: int | None) -> bool:
        """Say whether there are too many leases for passes alone. `most` is the size of a batch; None
        for single calls."""
        period = self._ledger.period
        passes = period / self._interval
        off_by = abs(round(passes) * self._interval - period)
        if passes < 1 or off_by > _ABOUT * period:
            return leases > 0  # passes alone would renew them too late or too early
        if most is None:
            return leases >= self._many
        return leases > most * passes

    def _wait(self, until: float) -> None:
        self._world.clock.sleep(max(0.0, until - self._world.clock.monotonic()))

    def _renew(
        self, group: Sequence[InstanceKey], unanswered: Streak, until: float
    ) -> list[InstanceKey]:
        """Renew these leases, and return those that were not renewed and stay due."""
        world = self._world
        left = until - world.clock.monotonic()
        deadline = Deadline(world.clock, left, world.time_limit)
        applier = applier_of(world, None, Scope(), deadline)
        renewals = [Renew(key=key, syncer=None, why="it falls due") for key in group]
        missed: list[InstanceKey] = []
        for outcome in applier.renew_now(renewals):
            unanswered.note(unreachable=outcome.cause is Cause.UNAVAILABLE)
            if outcome.lacking:
                self._ledger.again(outcome.action.key)
            if outcome.result is not Result.DONE:
                missed.append(outcome.action.key)
        return missed
