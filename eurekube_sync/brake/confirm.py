"""What a second pass has to see, some time after the first: the last of an app that is removed without evidence, and
the dead pods among too many removals.

What the pass before saw is in the memory of the process; a process that just began reads it from the status of the
syncer. A pass that does not see the removal again forgets it, here and in the status; one that confirms it, and whose
call fails, does not. An orphan has no status, so only a process that makes a second pass confirms it: a mark elsewhere
would be a write to what nobody asks for any more, or would vanish with its namespace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import inf

from eurekube_sync.brake.holds import Brake, Held, Hold, HoldReason
from eurekube_sync.desired.claims import Desired
from eurekube_sync.model.actions import Grounds, Removal
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.wording import counted, one_or_more

_AT_ONCE = frozenset({Grounds.DUPLICATE, Grounds.REPLACED})
"""Beside the pod's own instance ours is no loss, and at another pod's address it is a harm."""


def seen_before(removals: Iterable[Removal], brake: Brake) -> frozenset[InstanceKey]:
    """Those of them that a pass saw, long enough ago: each by itself, where the same process saw it, or all of a
    syncer's together, by the mark in its status."""
    found: set[InstanceKey] = set()
    for syncer, own in by_syncer(removals).items():
        together = _seen(brake, syncer, mark_of(own))
        found.update(one.key for one in own if together or _seen(brake, syncer, str(one.key)))
    return frozenset(found)


def parted(holds: Iterable[Hold], dead: Collection[InstanceKey], brake: Brake) -> list[Hold]:
    """The holds, with the dead ones of each in holds of their own, one for each syncer."""
    kept: list[Hold] = []
    waiting: dict[InstanceKey, tuple[str, Removal]] = {}
    for hold in holds:
        kept.append(hold.without(dead))
        for one in hold.removals:
            if one.key in dead:
                waiting.setdefault(one.key, (hold.why, one))
    for syncer, own in sorted(by_syncer(one for _, one in waiting.values()).items()):
        what = (
            f"{counted(len(own), 'instance')} of syncer {syncer} {one_or_more(len(own), 'has', 'have')} no pod any more"
        )
        kept.append(_awaiting(syncer, tuple(own), f"{waiting[own[0].key][0]}; {what}", brake))
    return kept


def without_evidence(removals: Iterable[Removal], emptied: Collection[str]) -> list[Removal]:
    """Of each app that would lose its last UP instance, what goes and has to be seen by a second pass."""
    last = (one for one in removals if one.key.app in emptied)
    return [one for one in last if not one.grounds.positive and one.grounds not in _AT_ONCE]


def unconfirmed(last: Collection[Removal], seen: Collection[InstanceKey], brake: Brake) -> Iterator[Hold]:
    """Those of the last of their apps that wait, beside what was `seen` before. What goes in another way is the same
    removal. An outage that comes back begins its wait anew, and one that grows waits for what is new. An app waits
    until a pass saw all that it would lose."""
    apps = {one.key.app for one in last if one.key not in seen}
    for syncer, own in sorted(by_syncer(last).items()):
        held = tuple(one for one in own if one.key.app in apps)
        names = sorted({one.key.app for one in held})
        shown = f"{names[0]} and {counted(len(names) - 1, 'more app')}" if len(names) > 1 else f"app {''.join(names)}"
        their = one_or_more(len(names), "its", "their")
        if held:
            yield _awaiting(syncer, held, f"{shown} would lose {their} last UP instance", brake)


def mark_of(removals: Iterable[Removal]) -> str:
    """Equal for the same removal."""
    return hashlib.sha256("\n".join(sorted(str(one.key) for one in removals)).encode()).hexdigest()[:12]


def by_syncer(removals: Iterable[Removal]) -> dict[SyncerRef, list[Removal]]:
    found: dict[SyncerRef, list[Removal]] = {}
    for one in removals:
        found.setdefault(one.syncer, []).append(one)
    return found


def _seen(brake: Brake, syncer: SyncerRef, mark: str) -> bool:
    """Whether a pass saw it, long enough ago; none has to, where the wait is none."""
    return brake.seen.get((syncer, mark), 0.0) >= brake.limits.confirm_after


def _awaiting(syncer: SyncerRef, own: tuple[Removal, ...], why: str, brake: Brake) -> Hold:
    mark, within, reason = mark_of(own), brake.confirm_within, HoldReason.AWAITING_CONFIRMATION
    after = brake.limits.confirm_after
    when = f"{after:g} s to {within:g} s" if within < inf else f"at least {after:g} s"
    what = one_or_more(len(own), "removal", "removals")
    why = f"{why}; a second pass, {when} after this one, has to confirm the {what}"
    if any(one.grounds in (Grounds.ORPHANED, Grounds.SWEPT) for one in own):
        why += "; the syncer is gone, so the same process must confirm that: use run --passes 2 or --daemon"
    first = (syncer, mark) not in brake.seen
    return Hold(reason=reason, why=why, removals=own, syncer=syncer, mark=mark, first=first)


Sighted = Mapping[tuple[SyncerRef, str], float]  # seconds since a removal was first seen, by its syncer and mark


class Sightings:
    """The memory of one process; all times monotonic seconds, which no change of the clock moves."""

    def __init__(self) -> None:
        self._first: dict[tuple[SyncerRef, str], float] | None = None
        self._looked = 0.0

    def before(self, desired: Desired, *, monotonic: float, now: float, within: float) -> Sighted:
        """What was seen before this pass; `now` in Unix seconds. A look `within` so many seconds counts: of a status,
        which does not tell the last look, the first one."""
        if self._first is None:  # before its first pass the statuses tell
            ages = {}
            for ref, claim in desired.claims.items():
                told = claim.syncer.status
                since = told.unconfirmed_since if told else None
                # Whole seconds, so that one may be missing. In the future, by another machine's clock, it says nothing.
                if told and told.unconfirmed_removal and since is not None and now - within - 1 < since < now:
                    ages[ref, told.unconfirmed_removal] = now - since - 1
            return ages
        if monotonic - self._looked >= within:
            return {}
        return {seen: monotonic - first for seen, first in self._first.items()}

    def note(self, held: Held | None, before: Sighted, *, monotonic: float, confirmed: Iterable[Removal] = ()) -> None:
        """Remember what awaits its confirmation after a pass, and what was `confirmed` and failed, which need not wait
        anew; and forget all else."""
        awaited = [seen for hold in held.holds for seen in hold.sightings] if held else []
        self._first = {seen: monotonic - before.get(seen, 0.0) for seen in awaited}
        self._first |= {(one.syncer, str(one.key)): -inf for one in confirmed}
        self._looked = monotonic

    def nothing_seen(self) -> None:
        """A pass ended before it could look: what was seen before it is not confirmed by what comes after it."""
        self._first = {}
