"""What this process last saw UP in Eureka. It comes back to a suspended syncer when Eureka has lost it, and where
nobody can see what is registered, though a limit or a drain that cannot be read lets nothing else in. Nothing else
rests on this memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.conduct import LIMIT
from eurekube_sync.model.actions import Cancel
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus
from eurekube_sync.model.outcomes import Outcomes
from eurekube_sync.model.ownership import POD
from eurekube_sync.observe.eureka import Observed


class LastSeen:
    """What was UP after the last pass that could read Eureka: the memory of one process."""

    def __init__(self) -> None:
        self._up: dict[InstanceKey, Instance] = {}

    def note(self, observed: Observed, outcomes: Outcomes, renewed: Iterable[InstanceKey]) -> None:
        """Remember what such a pass left of what this process renewed lately, and forget all else. What Eureka has no
        more is remembered: it may come back in a later pass. By those very keys, which are kept in any case: those of
        this pass may go with all else that it read."""
        up = {key: seen for key, seen in self._up.items() if key not in observed.ours}
        up |= {
            key: registered.instance
            for key, registered in observed.ours.items()
            if registered.status is InstanceStatus.UP and key not in outcomes.by_key
        }
        for key, outcome in outcomes.by_key.items():
            if isinstance(outcome.action, Cancel):
                up.pop(key, None)
            listed = observed.ours.get(key)
            left = outcome.registered or (listed.instance if listed else None)
            if outcome.status is InstanceStatus.UP and left is not None:
                up[key] = left
        self._up = {key: up[key] for key in renewed if key in up}

    def still_wanted(self, desired: Desired, renewed: Iterable[InstanceKey]) -> frozenset[InstanceKey]:
        """What was UP and is wanted for the same pod and under the same limit: another limit may leave fewer places,
        and the mark of what comes back would hide that. `renewed` is what this process renewed lately, and did not
        cancel since."""
        wanted = ((key, desired.wanted(key)) for key in renewed if key in self._up)
        return frozenset(key for key, one in wanted if one and _marks(one.instance) == _marks(self._up[key]))


def _marks(instance: Instance) -> tuple[str | None, str | None]:
    """Whose pod's it is, and under which limit it came in."""
    return instance.metadata.get(POD), instance.metadata.get(LIMIT)
