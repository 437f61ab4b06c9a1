"""What a second pass has to see, some time after the first: the last of an app that goes without evidence, and the dead
pods among too many removals."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from math import inf

from eurekube_sync.brake.holds import Hold, HoldReason
from eurekube_sync.brake.limits import Brake
from eurekube_sync.brake.loss import Scales
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
    for syncer, own in _by_syncer(removals).items():
        together = _seen(brake, syncer, mark_of(own))
        found.update(one.key for one in own if together or _seen(brake, syncer, str(one.key)))
    return frozenset(found)


def parted(holds: Iterable[Hold], dead: Collection[InstanceKey], brake: Brake) -> list[Hold]:
    """The holds, with the dead ones of each in holds of their own, one for each syncer."""
    kept: list[Hold] = []
    waiting: dict[SyncerRef, list[tuple[str, Removal]]] = {}
    taken: set[InstanceKey] = set()
    for hold in holds:
        kept.append(replace(hold, removals=tuple(one for one in hold.removals if one.key not in dead)))
        for one in hold.removals:
            if one.key in dead and one.key not in taken:
                waiting.setdefault(one.syncer, []).append((hold.why, one))
                taken.add(one.key)
    for syncer, found in sorted(waiting.items()):
        own = tuple(one for _, one in found)
        what = f"{len(own)} of these {one_or_more(len(own), 'has', 'have')} no pod any more"
        why = f"{found[0][0]}; {what}; a pass {_when(brake)} later has to confirm it{_hint(own)}"
        kept.append(_awaiting(syncer, own, why, brake))
    return kept


def unconfirmed(scales: Scales, removals: Collection[Removal], brake: Brake) -> Iterator[Hold]:
    """Of each app that would lose its last UP instance, what goes without evidence and no pass saw before.

    What goes in another way is the same removal. An outage that comes back begins its wait anew, and one that grows
    waits for what is new. An app waits until a pass saw all that it would lose.
    """
    emptied = scales.emptied(removals)
    last = [
        one for one in removals if one.key.app in emptied and not one.grounds.positive and one.grounds not in _AT_ONCE
    ]
    seen = seen_before(last, brake)
    apps = {one.key.app for one in last if one.key not in seen}
    for syncer, own in sorted(_by_syncer(last).items()):
        held = tuple(one for one in own if one.key.app in apps)
        names = sorted({one.key.app for one in held})
        shown = f"{names[0]} and {counted(len(names) - 1, 'more app')}" if len(names) > 1 else f"app {''.join(names)}"
        their = one_or_more(len(names), "its", "their")
        why = f"{shown} would lose {their} last UP instance; a pass {_when(brake)} later has to confirm it{_hint(own)}"
        if held:
            yield _awaiting(syncer, held, why, brake)


def mark_of(removals: Iterable[Removal]) -> str:
    """Equal for the same removal."""
    return hashlib.sha256("\n".join(sorted(str(one.key) for one in removals)).encode()).hexdigest()[:12]


def _by_syncer(removals: Iterable[Removal]) -> dict[SyncerRef, list[Removal]]:
    found: dict[SyncerRef, list[Removal]] = {}
    for one in removals:
        found.setdefault(one.syncer, []).append(one)
    return found


def _seen(brake: Brake, syncer: SyncerRef, mark: str) -> bool:
    """Whether a pass saw it, long enough ago; none has to, where the wait is none."""
    return brake.seen.get((syncer, mark), 0.0) >= brake.limits.confirm_after


def _awaiting(syncer: SyncerRef, own: tuple[Removal, ...], why: str, brake: Brake) -> Hold:
    mark = mark_of(own)
    return Hold(
        reason=HoldReason.AWAITING_CONFIRMATION,
        why=why,
        removals=own,
        syncer=syncer,
        mark=mark,
        first=(syncer, mark) not in brake.seen,
    )


def _when(brake: Brake) -> str:
    most = f" and at most {brake.confirm_within:g} s" if brake.confirm_within < inf else ""
    return f"at least {brake.limits.confirm_after:g} s{most}"


def _hint(removals: Iterable[Removal]) -> str:
    orphaned = any(one.grounds in (Grounds.ORPHANED, Grounds.SWEPT) for one in removals)
    return f"; {_SAME_PROCESS}" if orphaned else ""


_SAME_PROCESS = "an orphan has no status, so only the same process can confirm it: use run --passes 2 or --daemon"
