"""What was seen before of removals that await a confirming pass: by this process, or by one before it.

A process remembers by itself. A process that just began reads the syncer's status: `unconfirmedRemoval` and
`unconfirmedSince`. A pass that does not see the removal again forgets it, here and in the status. Where the status
could not be written, what this process saw counts. Neither lasts for ever: where nobody looked for long, what was seen
before may have ended in between, and the wait begins anew. An orphan has no syncer and no status: only a process that
makes a second pass confirms it. Anything else (a mark in the instance, an Event) would be a write to what
nobody asks for any more, or would vanish with its namespace.
"""

from __future__ import annotations

from collections.abc import Mapping

from eurekube_sync.brake import Held
from eurekube_sync.desired.claims import Desired
from eurekube_sync.model.kubernetes import SyncerRef

Sighted = Mapping[tuple[SyncerRef, str], float]
"""Seconds since a removal was first seen, by its syncer and mark."""


class Sightings:
    """The memory of one process; all times monotonic seconds, which no change of the clock moves."""

    def __init__(self) -> None:
        self._first: dict[tuple[SyncerRef, str], float] | None = None
        self._looked = 0.0

    def before(self, desired: Desired, *, monotonic: float, now: float, within: float) -> Sighted:
        """What was seen before this pass; `now` in Unix seconds. Only before its first pass it has to be told. A look
        `within` so many seconds counts: of a status, which does not tell the last look, the first one."""
        if self._first is None:
            return {seen: age for seen, age in _told(desired, now).items() if age < within}
        if monotonic - self._looked >= within:
            return {}
        return {seen: monotonic - first for seen, first in self._first.items()}

    def note(self, held: Held | None, before: Sighted, *, monotonic: float) -> None:
        """Remember what awaits its confirmation after a pass, and forget all else."""
        awaited = [seen for hold in held.holds for seen in hold.sightings] if held else []
        self._first = {seen: monotonic - before.get(seen, 0.0) for seen in awaited}
        self._looked = monotonic

    def nothing_seen(self) -> None:
        """A pass ended before it could look: what was seen before it is not confirmed by what comes after it."""
        self._first = {}


def _told(desired: Desired, now: float) -> dict[tuple[SyncerRef, str], float]:
    """What statuses say. Their times are whole seconds, so that a second may be missing; one in the future, by another
    machine's clock, says nothing."""
    found = {}
    for ref, claim in desired.claims.items():
        status = claim.syncer.status
        since = status.unconfirmed_since if status else None
        if status and status.unconfirmed_removal and since is not None and since < now:
            found[ref, status.unconfirmed_removal] = now - since - 1
    return found
