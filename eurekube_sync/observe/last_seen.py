"""What this process last saw UP in Eureka. It comes back to a suspended syncer when Eureka has lost it, and where
nobody can see what is registered, though a limit or a drain that cannot be read lets nothing else in. Nothing else
rests on this memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from eurekube_sync.desired.claims import Desired, Serving
from eurekube_sync.desired.conduct import LIMIT
from eurekube_sync.model.actions import Cancel, Outcomes
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.ownership import POD, syncer_of
from eurekube_sync.observe.eureka import Observed


class LastSeen:
    """What was UP after the last pass that could read Eureka: the memory of one process."""

    def __init__(self) -> None:
        self._ours: Mapping[InstanceKey, ObservedInstance] = {}
        """As that pass knew them."""
        self._left: Mapping[InstanceKey, Instance | None] = {}
        """Of what it wrote, and of what Eureka had lost before, what is UP; None for what is not."""

    def note(self, observed: Observed, outcomes: Outcomes, renewed: Collection[InstanceKey], desired: Desired) -> None:
        """Remember what such a pass left, and forget all else. What Eureka has no more is remembered while this process
        renewed it lately: it may come back in a later pass. But not where it was to be cancelled: another process did
        that."""
        ours, left = observed.ours, dict[InstanceKey, Instance | None]()
        if not self._left.keys() | self._ours.keys() <= ours.keys():
            gone = {key: up for key in renewed if key not in ours and (up := self._up(key))}
            left |= {key: up for key, up in gone.items() if not _was_to_go(up, desired)}
        for outcome in outcomes.others:
            key = outcome.action.key
            is_now = outcome.registered or (ours[key].instance if key in ours else None)
            if outcome.status is InstanceStatus.UP and is_now is not None:
                left[key] = is_now
            elif key in ours or isinstance(outcome.action, Cancel):
                left[key] = None
        self._ours, self._left = ours, left

    def still_wanted(self, desired: Desired, renewed: Iterable[InstanceKey]) -> frozenset[InstanceKey]:
        """What was UP and is wanted for the same pod and under the same limit: another limit may leave fewer places,
        and the mark of what comes back would hide that. `renewed` is what this process renewed lately, and did not
        cancel since."""
        pairs = ((key, self._up(key), desired.wanted(key)) for key in renewed)
        known = ((key, up, one) for key, up, one in pairs if up and one and not one.elsewhere)
        return frozenset(key for key, up, one in known if _marks(one.instance) == _marks(up))

    def _up(self, key: InstanceKey) -> Instance | None:
        if key in self._left:
            return self._left[key]
        one = self._ours.get(key)
        return one.instance if one is not None and one.status is InstanceStatus.UP else None


def _was_to_go(instance: Instance, desired: Desired) -> bool:
    """Whether its syncer has no endpoint for it any more."""
    syncer = syncer_of(instance)
    claim = desired.claims.get(syncer) if syncer is not None else None
    if not isinstance(claim, Serving) or claim.keeps_any or claim.conduct.suspend:
        return False
    return instance.key not in claim.verdicts


def _marks(instance: Instance) -> tuple[str | None, str | None]:
    """Whose pod's it is, and under which limit it came in."""
    return instance.metadata.get(POD), instance.metadata.get(LIMIT)
