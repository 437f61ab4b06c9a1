"""What this process wrote to Eureka a moment ago, which the server's cached lists may still hide.

Laid over the list, so that a stale one neither hides a fresh instance nor shows a cancelled one. Only a daemon has such
a memory, and nothing rests on it: whatever a pass would change is read uncached all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from eurekube_sync.model.actions import Cancel, Outcomes, Result
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance


class OwnWrites:
    """The writes of the last `seconds`; all times monotonic seconds."""

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
