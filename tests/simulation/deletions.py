"""The promises about deletions, and the finalizers that wait for them.

finalizer   it is removed only when no instance of its syncer is left, and no other finalizer is
            removed at all
abandoned   a deletion that a person abandoned ends with the next pass, whether Eureka answers or
            not, unless another cluster uses our owner's name
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .asked import SYNC
from .clashes import Clashes
from .conduct import POLICY
from .leases import may_lapse
from .truth import FINALIZER, Ref, SyncerTruth
from .view import PassView, Violation, named, syncer_of

if TYPE_CHECKING:
    from .judge import Judge


_LISTED_BY = 45.0
"""Seconds after which a list shows what was registered."""


class Deletions:
    """Sees every change of the world, every write to Kubernetes, and the end of every pass."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._clashes = Clashes(judge.cluster)

    def look(self) -> None:
        """Notes the instances in Eureka now."""
        self._clashes.look(self._judge.known, self._judge.world.clock.time)

    def judge(self, before: Mapping[Ref, SyncerTruth]) -> None:
        """Judges a write to Kubernetes; `before` are the syncers before it."""
        for ref, was in before.items():
            still = self._judge.truth.syncers.get(ref)
            kept = still.finalizers if still is not None and still.uid == was.uid else ()
            lost = set(was.finalizers) - set(kept)
            if lost - {FINALIZER}:
                raise Violation("finalizer", f"another's finalizer of {named(ref)} was taken off")
            if FINALIZER in lost and not was.going:
                raise Violation(
                    "finalizer", f"{named(ref)} lost our finalizer, and nobody deletes it"
                )
            if FINALIZER in lost and was.abandoned:
                self._judge.reached["a deletion abandoned"] += 1
            elif FINALIZER in lost:
                self._judge_nothing_left(ref)

    def refused(self, view: PassView) -> bool:
        """Whether another cluster's instance may have stopped the pass."""
        return self._clashes.stopped(view)

    def _judge_nothing_left(self, ref: Ref) -> None:
        known = self._judge.known
        for state in known:
            for key in self._judge.ours_of(state):
                # By a clock that is far ahead a lease on a peer that is away has long lapsed, and
                # no list is as old as the deletion.
                young = self._judge.world.clock.time - self._judge.up_since(key) < _LISTED_BY
                if not self._judge.clock_right and (
                    young or any(key not in other for other in known)
                ):
                    continue
                if key in self._judge.too_late:
                    continue  # it is an orphan, which a later pass takes out
                # What a person has put out of service and in again is UP, and the cached list does
                # not show it yet.
                left = state[key][0].metadata.get(
                    POLICY, SYNC
                ) != SYNC and self._judge.overrides.ever(key)
                if syncer_of(state[key][0]) == ref and not may_lapse(state[key]) and not left:
                    raise Violation(
                        "finalizer", f"{named(ref)} lost our finalizer while {key} stands"
                    )

    def judge_pass(self, view: PassView) -> None:
        """Judges the end of a pass."""
        for ref, syncer in self._judge.truth.syncers.items():
            since = self._judge.truth.abandoned_since.get(syncer.uid)
            served = not self._judge.story.installation.halves
            if (
                since is None
                or since > view.begun
                or view.troubled_cluster
                or not served
                or self.refused(view)
            ):
                continue
            if FINALIZER in syncer.finalizers:
                raise Violation(
                    "abandoned",
                    f"a person abandoned {named(ref)}, and a whole pass kept our finalizer",
                )
