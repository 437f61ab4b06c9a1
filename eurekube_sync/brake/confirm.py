"""Confirmation: removals that a second pass has to see as well, some time after the first. These
are the last instances of an app, removed without evidence, and dead pods among too many removals.

A process remembers what its last pass saw; a new process reads it from the syncers' statuses. A
pass that does not plan the removal again forgets it, here and in the status. A pass that plans it
sees it, whatever else holds it then: else an app that comes and goes would keep another app's dead
pods UP, because each larger hold would begin their wait anew. (An endpoint of an import is not seen
to be gone while Eureka's list may only lack its instance: see `brake/imports`.) It sees it as well
if the endpoint only terminates, and it sees a dead pod whether its syncer is there or not. A pass
that plans it without a list of pods does not forget that its pod was dead, and is no second look at
that. A pass that confirms it, and whose call fails, does not forget it either. Nor does a pass that
could not list syncers or imports, or the Services or slices of one: else such a list that fails in
every second pass would keep dead pods UP. An orphan has no status, so only a process that makes a
second pass can confirm it; and only a pass that saw that the syncer was missing, too."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from math import inf
from types import MappingProxyType
from typing import Protocol, TypeAlias

from eurekube_sync.brake.evidence import SYNCER_MISSING
from eurekube_sync.brake.holds import Brake, Held, Hold, seen_as
from eurekube_sync.brake.weighing import OF_EXPORTS, Nouns
from eurekube_sync.model.actions import Removal
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted, one_or_more
from eurekube_sync.plan.value import checksum

Sight: TypeAlias = tuple[SyncerRef, str]
"""What a pass remembers of a removal that it planned: its syncer, and its mark alone or that of all
such removals of the syncer."""
Sighted: TypeAlias = Mapping[Sight, float]
"""Seconds since each removal was first seen."""


def seen_before(
    removals: Iterable[Removal],
    brake: Brake,
    *,
    dead: bool = False,
) -> frozenset[InstanceKey]:
    """Return the removals that a pass saw long enough ago: by their keys in this process, or by a
    syncer's mark in its status. With `dead`, that pass has to have seen their pods dead; else it
    may have."""
    if brake.limits.confirm_after <= 0:
        return frozenset(removal.key for removal in removals)  # there is no wait
    return _among(removals, _long_ago(brake), dead=dead)


def begun_before(
    removals: Iterable[Removal], brake: Brake, *, dead: bool = False
) -> frozenset[InstanceKey]:
    """Return the removals that a pass saw before, however short the time ago: their wait has
    begun. `dead` as in `seen_before`."""
    return _among(removals, brake.seen.keys(), dead=dead)


def _long_ago(brake: Brake) -> frozenset[Sight]:
    """Return what a pass saw so long ago that this one may confirm it."""
    seen = set()
    for sight, age in brake.seen.items():
        if age >= brake.limits.confirm_after:
            seen.add(sight)
    return frozenset(seen)


def _among(
    removals: Iterable[Removal], sights: Collection[Sight], *, dead: bool
) -> frozenset[InstanceKey]:
    """Return the removals that are among the sights. `dead` as in `seen_before`."""
    ways = [True]
    if not dead:
        ways.append(False)
    seen: set[InstanceKey] = set()
    for syncer, own in by_syncer(removals).items():
        for as_dead in ways:
            seen_together = (syncer, mark_of(own, dead=as_dead)) in sights
            for removal in own:
                sight = (syncer, seen_as(removal, dead=as_dead))
                if seen_together or sight in sights:
                    seen.add(removal.key)
    return frozenset(seen)


def overdue(held: Held, brake: Brake) -> list[Removal]:
    """Return the held removals of syncers of which an earlier pass saw some long enough ago. What
    was seen later in the same app delays those, unless their pods are dead."""
    waited = {syncer for syncer, _ in _long_ago(brake)}
    removals = []
    for removal in held.removals:
        if removal.syncer in waited:
            removals.append(removal)
    return removals


def dead_apart(holds: Iterable[Hold], dead: Collection[InstanceKey], brake: Brake) -> list[Hold]:
    """Return the holds without dead pods, and one hold for each syncer's dead pods."""
    kept: list[Hold] = []
    why_held: dict[InstanceKey, str] = {}
    of_dead: list[Removal] = []
    for hold in holds:
        kept.append(hold.without(dead))
        for removal in hold.removals:
            key = removal.key
            if key in dead and key not in why_held:
                why_held[key] = hold.why
                of_dead.append(removal)
    for syncer, own in by_syncer(of_dead).items():
        have = one_or_more(len(own), "has", "have")
        why = f"{len(own)} of syncer {syncer} {have} no pod any more"
        hold = awaiting(syncer, own, why, brake, dead=True)
        among = why_held[own[0].key]
        kept.append(replace(hold, among=among))
    return kept


def unconfirmed(
    last: Collection[Removal],
    seen: Collection[InstanceKey],
    brake: Brake,
    nouns: Nouns = OF_EXPORTS,
) -> Iterator[Hold]:
    """Hold the last instances of apps, except those `seen` before. An app waits until a pass saw
    everything that it would lose, so an outage that grows or returns begins its wait anew. (Dead
    pods that were seen before are not among the `last`: see `brake/braking`.)"""
    apps = set()
    for removal in last:
        if removal.key not in seen:
            apps.add(removal.key.app)
    # Also what was seen before, if its app loses something else as well.
    waiting = []
    for removal in last:
        if removal.key.app in apps:
            waiting.append(removal)
    for syncer, own in by_syncer(waiting).items():
        first, *more = sorted({removal.key.app for removal in own})
        shown = f"{nouns.app} {first}"
        if more:
            others = counted(len(more), f"more {nouns.app}")
            shown = f"{first} and {others}"
        why = f"{shown} would have no {nouns.instance} left"
        yield awaiting(syncer, own, why, brake)


def to_confirm(removals: Iterable[Removal], brake: Brake, *, dead: bool = False) -> list[Hold]:
    """Return one hold for each syncer's removals, whether they were seen before or not; with
    `dead`, their pods were seen dead. They hold nothing: a later pass has to know that this one
    planned them."""
    holds = []
    for syncer, own in by_syncer(removals).items():
        holds.append(awaiting(syncer, own, "", brake, dead=dead))
    return holds


def mark_of(removals: Iterable[Removal], *, dead: bool = False) -> str:
    """Return a checksum that is equal for the same instances; with `dead`, another one."""
    return checksum(seen_as(removal, dead=dead) for removal in removals)


def by_syncer(removals: Iterable[Removal]) -> dict[SyncerRef, list[Removal]]:
    """Sort the removals by the syncers in their instances' marks."""
    own: dict[SyncerRef, list[Removal]] = {}
    for removal in removals:
        own.setdefault(removal.syncer, []).append(removal)
    return dict(sorted(own.items()))


def awaiting(
    syncer: SyncerRef,
    own: Collection[Removal],
    why: str,
    brake: Brake,
    *,
    dead: bool = False,
) -> Hold:
    """Hold a syncer's removals until a second pass plans the same; `why` and `dead` as in `Hold`."""
    after = brake.limits.confirm_after
    within = brake.confirm_within
    when = f"at least {after:g} s"
    if within < inf:
        when = f"{after:g} s to {within:g} s"
    wait = f"no approval is needed if a second pass, {when} after the first, plans the same"
    grounds = {removal.grounds for removal in own}
    if grounds & SYNCER_MISSING:  # there is no status that the next process could read
        wait += (
            "; both passes must be of one process, because the syncer is gone: use run "
            "--passes 2 or --daemon"
        )
    mark = mark_of(own, dead=dead)
    return Hold(
        reason=Reason.AWAITING_CONFIRMATION,
        why=why,
        wait=wait,
        removals=tuple(own),
        syncer=syncer,
        mark=mark,
        dead=dead,
        first=(syncer, mark) not in brake.seen,
    )


def unread_of(seen: Sighted, is_unread: Callable[[SyncerRef], bool], *, within: float) -> Sighted:
    """Return what was seen of syncers that `is_unread` in this pass, for as long as a first look
    is valid."""
    unread: dict[Sight, float] = {}
    for sight, age in seen.items():
        syncer, _ = sight
        if age < within and is_unread(syncer):
            unread[sight] = age
    return unread


class Noted(Protocol):
    """The status of a syncer or import, which keeps a sight for the next process."""

    @property
    def unconfirmed_removal(self) -> str: ...

    @property
    def unconfirmed_since(self) -> int | None: ...


Statuses = Mapping[SyncerRef, Noted | None]


def _of_statuses(statuses: Statuses, *, now: float, within: float) -> Sighted:
    """Return what earlier passes wrote into the syncers' statuses. Times there are whole seconds,
    so one second may be missing. A time in the future, by another machine's clock, is ignored."""
    ages: dict[Sight, float] = {}
    for ref, status in statuses.items():
        if status is None or not status.unconfirmed_removal:
            continue
        since = status.unconfirmed_since
        if since is not None and now - within - 1 < since < now:
            ages[ref, status.unconfirmed_removal] = now - since - 1
    return ages


class Sightings:
    """What the passes of one process saw; all times in monotonic seconds, which clock changes do
    not affect."""

    def __init__(self, first: Sighted | None = None, looked: float = 0.0) -> None:
        # When each removal was first seen; None: no pass has looked.
        self.first = first
        self.looked = looked  # when the last pass looked

    def before(self, statuses: Statuses, *, begun: float, now: float, within: float) -> Sighted:
        """Return what was seen before this pass, and at most `within` seconds ago. The pass began
        at `begun`, in Unix seconds at `now`: only the time until then lies between two looks. A
        status holds only the time of the first sight, so that one counts."""
        if self.first is None:  # in its first pass a process uses the statuses
            return _of_statuses(statuses, now=now, within=within)
        if begun - self.looked >= within:
            return {}
        ages = {}
        for sight, first in self.first.items():
            ages[sight] = begun - first
        return ages

    def note(
        self,
        held: Held | None,
        before: Sighted,
        *,
        begun: float,
        looked: float,
        confirmed: Iterable[Removal] = (),
        unread: Sighted = MappingProxyType({}),
    ) -> None:
        """Remember the removals that a later pass can confirm, those that were seen before and are
        `unread` now, and the `confirmed` ones that failed; forget all others. The pass began at
        `begun`, and had read everything at `looked`."""
        first: dict[Sight, float] = {}
        for sight, age in unread.items():
            first[sight] = begun - age
        holds = held.awaited if held else ()
        for hold in holds:
            for sight in hold.sightings:
                first[sight] = looked
                if sight in before:
                    first[sight] = begun - before[sight]
        self.first = first
        self.looked = looked
        self.keep(confirmed)

    def keep(self, failed: Iterable[Removal]) -> None:
        """Let removals that were made and failed not wait again, after `note`."""
        first = dict(self.first or {})
        for removal in failed:
            # It may have been confirmed as dead.
            first[removal.syncer, seen_as(removal, dead=True)] = -inf
        self.first = first

    def nothing_seen(self) -> None:
        """Forget everything, because a pass ended before it could look."""
        self.first = {}
