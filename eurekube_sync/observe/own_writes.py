"""What this process wrote to Eureka a moment ago, which the server's cached lists may still hide.

Laid over the list, so that a stale one neither hides a fresh instance nor shows a cancelled one. Only a daemon has such
a memory, and nothing rests on it: whatever a pass would change is read uncached all the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from eurekube_sync.model.actions import Cancel, Register, Renew, Update
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.outcomes import Outcome, Outcomes, Result


class OwnWrites:
    """The writes of the last `seconds`; all times monotonic seconds."""

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._writes: dict[InstanceKey, tuple[float, ObservedInstance | None]] = {}

    def note(self, outcomes: Outcomes, now: float) -> None:
        """Remember what a pass wrote; a failed call may have had its effect or not, and is forgotten."""
        for key, outcome in outcomes.by_key.items():
            wrote = _wrote(outcome)
            if outcome.failed or outcome.result in (Result.GONE, Result.CONFLICT):
                self._writes.pop(key, None)
            elif wrote is not _NOTHING:
                self._writes[key] = (now, wrote)

    def recent(self, now: float) -> Mapping[InstanceKey, ObservedInstance | None]:
        """What stands under each key that was written lately; None: it was cancelled."""
        self._writes = {key: (at, wrote) for key, (at, wrote) in self._writes.items() if now - at < self._seconds}
        return {key: wrote for key, (_, wrote) in self._writes.items()}


_NOTHING = ObservedInstance(key=InstanceKey("", ""))
"""Stands for an outcome that wrote nothing."""


def _wrote(outcome: Outcome) -> ObservedInstance | None:
    match outcome.action:
        case Register() | Update() if outcome.result is Result.DONE:
            return _standing(outcome.action.instance, outcome.status)
        case Renew() if outcome.result is Result.HEALED and outcome.action.heal is not None:
            return _standing(outcome.action.heal, outcome.status)
        case Cancel() if outcome.result is Result.DONE:
            return None
        case _:
            return _NOTHING


def _standing(instance: Instance, status: InstanceStatus | None) -> ObservedInstance:
    return ObservedInstance(
        key=instance.key,
        host_name=instance.host_name,
        ip_addr=instance.ip_addr,
        port=instance.port,
        secure_port=instance.secure_port,
        vip_address=instance.vip_address,
        secure_vip_address=instance.secure_vip_address,
        status=status or instance.status,
        lease=instance.lease,
        metadata=instance.metadata,
        home_page_url=instance.home_page_url,
        status_page_url=instance.status_page_url,
        health_check_url=instance.health_check_url,
    )
