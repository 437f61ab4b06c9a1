"""Renews evenly, while a daemon waits for its next pass, the leases that fall due until then.

Of many leases a pass would send all that are due as fast as it can, and then nothing for the rest of its interval; and
spread within the pass they would delay its adds and removals. So they are renewed in the time that is left over,
each when it is a period old. What is not renewed by then, a pass renews at once, before anything else: on time comes
before even. Where batches are safe, and one holds all that falls due from pass to pass, the passes renew it: spread, it
would be many calls instead of one. Passes renew alone only where a whole number of intervals is about a period. A
process that makes one pass, or a number of them, renews all at once: it ends after the last, and knows of no lease when
it was renewed.

Only what the last pass found to be ours and to stay is renewed. Nothing is registered again here: a lease that is
gone, or that some servers lack, is due in the next pass, which knows what is desired."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import ceil

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.controller.one_pass import World
from eurekube_sync.controller.renew_only import RegistryWorld
from eurekube_sync.model.actions import Renew, Result
from eurekube_sync.model.deadline import Deadline, Streak
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.sources import Cause

MANY = 250
"""Leases; fewer are one short burst, and are renewed by the pass alone, whose report then tells of each."""
_ABOUT = 0.1
"""Part of a period by which passes may renew a lease early or late: Eureka's self-preservation allows 15 % fewer."""
_STRETCH = 5.0
"""Seconds: what falls due in it is spread over all of it, so that a lease is early or late by less."""
_STEP = 0.1
"""Seconds from one group of single calls to the next."""


class BetweenPasses:
    """Called after each pass of a daemon."""

    def __init__(
        self, world: World | RegistryWorld, renewals: RenewalLedger, *, interval: float, many: int = MANY
    ) -> None:
        """`interval` between the beginnings of two passes, in seconds."""
        self._world = world
        self._ledger = renewals
        self._interval = interval
        self._many = many

    def __call__(self, to_renew: Collection[InstanceKey], until: float) -> int:
        """Renews what of these falls due until that moment, in monotonic seconds, at which the next pass begins. A pass
        that came late, or took all of its interval, leaves no time for it; the next then renews what falls due before
        the one after, as it does where leases are few. Gives how many were renewed."""
        clock = self._world.clock
        busy = clock.monotonic() - (until - self._interval)
        batches = self._world.registry.batches()
        most = batches.size if batches is not None else None
        if not self._worth_it(len(to_renew), most) or busy >= self._interval:
            self._ledger.slack = self._interval / 2
            return 0
        # While the next pass is busy nothing is renewed evenly: half of what falls due then comes before, half after.
        self._ledger.slack = busy / 2
        renewed = 0
        failed: set[InstanceKey] = set()
        wanted, unanswered = frozenset(to_renew), Streak()
        while (now := clock.monotonic()) < until and not clock.stopping():
            end = min(until, now + _STRETCH)
            due = self._ledger.falling_due(wanted, end + (busy / 2 if end == until else 0.0))
            groups = _groups([key for key in due if key not in failed], end - now, most)
            for number, group in enumerate(groups):
                self._wait(now)
                # After one that took long the rest is spread over the rest of the time, not sent to catch up.
                begun = clock.monotonic()
                now = begun + (end - begun) / (len(groups) - number)
                if clock.stopping() or begun >= end or unanswered.broken:
                    break
                missed = self._renew(group, unanswered, until)
                renewed += len(group) - len(missed)
                failed.update(missed)
            if unanswered.broken:
                break  # the pass lists first, which finds a peer that answers
            self._wait(end)
        return renewed

    def _worth_it(self, leases: int, most: int | None) -> bool:
        """Whether the passes do not renew so many by themselves; `most` in a batch, None for single calls."""
        period = self._ledger.period
        passes = period / self._interval
        if passes < 1 or abs(round(passes) * self._interval - period) > _ABOUT * period:
            return leases > 0
        return leases >= self._many if most is None else leases > most * passes

    def _wait(self, until: float) -> None:
        self._world.clock.sleep(max(0.0, until - self._world.clock.monotonic()))

    def _renew(self, group: Sequence[InstanceKey], unanswered: Streak, until: float) -> list[InstanceKey]:
        """Those that were not renewed; they stay due."""
        world = self._world
        deadline = Deadline(world.clock, until - world.clock.monotonic(), world.time_limit)
        applier = Applier(world.registry, world.clock, world.workers, self._ledger, None, deadline)
        outcomes = applier.renew_now([Renew(key=key, syncer=None, why="it falls due") for key in group])
        for outcome in outcomes:
            unanswered.note(unreachable=outcome.cause is Cause.UNAVAILABLE)
            if outcome.lacking:
                self._ledger.again(outcome.action.key)
        return [outcome.action.key for outcome in outcomes if outcome.result is not Result.DONE]


def _groups(due: Sequence[InstanceKey], seconds: float, most: int | None) -> list[Sequence[InstanceKey]]:
    """In their order: full batches, or single calls of one number, so that one group a step is enough."""
    size = most or max(1, ceil(len(due) * _STEP / seconds))
    return [due[start : start + size] for start in range(0, len(due), size)]
