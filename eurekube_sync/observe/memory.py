"""What this process remembers of Eureka: what it wrote a moment ago, and what it last saw UP. Only a daemon has such
memories, and no removal rests on them: whatever a pass would change is read uncached all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from eurekube_sync.desired.claims import Desired, Serving
from eurekube_sync.desired.conduct import LIMIT
from eurekube_sync.model.actions import Cancel, Outcomes, Result
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.ownership import POD, syncer_of
from eurekube_sync.observe.eureka import Observed


class OwnWrites:
    """The writes of the last `seconds`, which the server's cached lists may still hide; all times monotonic seconds.
    Laid over the list, so that a stale one neither hides a fresh instance nor shows a cancelled one."""

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._writes: dict[InstanceKey, tuple[float, ObservedInstance | None]] = {}

    def note(self, outcomes: Outcomes, now: float) -> None:
        """Remember what a pass wrote. A failed call may have had its effect or not: that key is forgotten."""
        for outcome in outcomes.others:
            key = outcome.action.key
            if outcome.failed or outcome.result in (Result.GONE, Result.CONFLICT):
                self._writes.pop(key, None)
            elif isinstance(outcome.action, Cancel):
                self._writes[key] = (now, None)
            else:
                wrote = outcome.registered
                assert wrote  # what only renewed is none of the others
                status = outcome.status or wrote.status
                self._writes[key] = (now, ObservedInstance(instance=replace(wrote, status=status)))

    def recent(self, now: float) -> Mapping[InstanceKey, ObservedInstance | None]:
        """What was written lately, by key; None: it was cancelled."""
        self._writes = {key: (at, wrote) for key, (at, wrote) in self._writes.items() if now - at < self._seconds}
        return {key: wrote for key, (_, wrote) in self._writes.items()}


class LastSeen:
    """What was UP after the last pass that could read Eureka. It comes back to a suspended syncer when Eureka lost it,
    and while Eureka cannot be read, though a limit or a drain that cannot be read lets nothing else in."""

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
        found = set()
        for key in renewed:
            up, one = self._up(key), desired.wanted(key)
            if up and one and not one.elsewhere:
                now, then = one.instance.metadata, up.metadata
                if all(now.get(mark) == then.get(mark) for mark in (POD, LIMIT)):
                    found.add(key)
        return frozenset(found)

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
