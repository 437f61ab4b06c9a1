"""Overrides, eviction and self-preservation: `AbstractInstanceRegistry` and
`PeerAwareInstanceRegistryImpl`.

Pure but for its own state: every call is told the time. Knows no HTTP, no JSON and no response
cache; it names the applications that a change makes stale through `on_change`.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from eurekube_sync.embedded.eureka import Document, Lease, LeaseRegistry, id_of
from tests.embedded.instances import Status

RENEWAL_PERCENT_THRESHOLD = 0.85
_RATE_WINDOW_MS = 60_000


class MeasuredRate:
    """`MeasuredRate`: the count of the last **completed** fixed window, not a sliding one."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._window = 0
        self._current = 0
        self._last = 0

    def increment(self, now: int) -> None:
        self._turn(now)
        self._current += 1

    def count(self, now: int) -> int:
        self._turn(now)
        return self._last

    def _turn(self, now: int) -> None:
        window = (now - self._start) // _RATE_WINDOW_MS
        if window > self._window:
            self._last = self._current if window == self._window + 1 else 0
            self._current = 0
            self._window = window


class FullRegistry(LeaseRegistry):
    """Leases that lapse, and statuses that a person may set. Times are milliseconds."""

    def __init__(
        self,
        *,
        start: int,
        self_preservation: bool,
        on_change: Callable[[str], None],
        shuffle: random.Random,
    ) -> None:
        super().__init__()
        self._self_preservation = self_preservation
        self._on_change = on_change
        self._shuffle = shuffle
        self._overrides: dict[str, Status] = {}
        self._renewals = MeasuredRate(start)
        self._expected_clients = 1  # Spring: defaultOpenForTrafficCount

    def register(self, instance: Document, *, now: int) -> None:
        if self.lease(instance["app"], id_of(instance)) is None:
            self._expected_clients += 1 if self._expected_clients > 0 else 0
        super().register(instance, now=now)
        self._on_change(instance["app"])

    def judged(self, instance: Document, existing: Lease | None) -> Document:
        instance_id, overridden = id_of(instance), Status(instance["overriddenStatus"])
        if overridden is not Status.UNKNOWN:
            self._overrides.setdefault(instance_id, overridden)
        override = self._overrides.get(instance_id, overridden)
        return {
            **instance,
            "overriddenStatus": override,
            "status": self._effective_status(instance, existing),
        }

    def renew(self, app: str, instance_id: str, *, now: int) -> bool:
        """False also when the effective status is UNKNOWN. Makes no cache entry stale."""
        lease = self.lease(app, instance_id)
        if lease is None:
            return False
        status = self._effective_status(lease.instance, lease)
        if status is Status.UNKNOWN:
            return False
        if status != lease.instance["status"]:
            lease.instance = {**lease.instance, "status": status}
        self._renewals.increment(now)
        return super().renew(app, instance_id, now=now)

    def cancel(self, app: str, instance_id: str) -> bool:
        """Forgets the override of that id even when there is no lease."""
        self._overrides.pop(instance_id, None)
        found = super().cancel(app, instance_id)
        if found:
            self._on_change(app)
            self._expected_clients -= 1 if self._expected_clients > 0 else 0
        return found

    def override_status(
        self, app: str, instance_id: str, status: Status, *, dirty: int, now: int
    ) -> bool:
        """`statusUpdate`: stores the override, unless the instance already has that status; renews
        the lease."""
        lease = self.lease(app, instance_id)
        if lease is None:
            return False
        lease.renew(now)
        if lease.instance["status"] == status:
            return True
        if status is Status.UP and lease.service_up == 0:
            lease.service_up = now
        self._overrides[instance_id] = status
        self._modify(
            lease,
            {**lease.instance, "status": status, "overriddenStatus": status},
            dirty=dirty,
            now=now,
        )
        return True

    def delete_override(
        self, app: str, instance_id: str, status: Status, *, dirty: int, now: int
    ) -> bool:
        """`deleteStatusOverride`: changes the status only when there was an override; renews the
        lease."""
        lease = self.lease(app, instance_id)
        if lease is None:
            return False
        lease.renew(now)
        if self._overrides.pop(instance_id, None) is not None:
            changed = {**lease.instance, "status": status, "overriddenStatus": Status.UNKNOWN}
            self._modify(lease, changed, dirty=dirty, now=now)
        return True

    def find(self, app: str, instance_id: str, *, now: int) -> Document | None:
        """Nothing for an expired lease, if leases may expire now."""
        lease = self.lease(app, instance_id)
        if lease is None or (_is_expired(lease, now) and self.expires_leases(now)):
            return None
        return lease.listed()

    def expires_leases(self, now: int) -> bool:
        """`isLeaseExpirationEnabled`: the gate of self-preservation."""
        threshold = int(self._expected_clients * 2.0 * RENEWAL_PERCENT_THRESHOLD)
        return not self._self_preservation or (
            threshold > 0 and self._renewals.count(now) > threshold
        )

    def evict(self, now: int) -> None:
        """`evict`: at most 15 % of the registry in one run, in random order."""
        if not self.expires_leases(now):
            return
        leases = [lease for leases in self.leases.values() for lease in leases.values()]
        limit = len(leases) - int(len(leases) * RENEWAL_PERCENT_THRESHOLD)
        expired = [lease for lease in leases if _is_expired(lease, now)]
        self._shuffle.shuffle(expired)
        for lease in expired[:limit]:
            self.cancel(lease.instance["app"], id_of(lease.instance))

    def _effective_status(self, instance: Document, existing: Lease | None) -> Status:
        """`DownOrStartingRule`, `OverrideExistsRule`, `LeaseExistsRule`, then what the instance
        says."""
        trusted = (Status.UP, Status.OUT_OF_SERVICE)
        status = Status(instance["status"])
        if status not in trusted:
            return status
        override = self._overrides.get(id_of(instance))
        if override is not None:
            return override
        if existing is not None and existing.instance["status"] in trusted:
            return Status(existing.instance["status"])
        return status

    def _modify(self, lease: Lease, instance: Document, *, dirty: int, now: int) -> None:
        dates = {
            "lastUpdatedTimestamp": str(now),
            "lastDirtyTimestamp": str(max(dirty, int(instance["lastDirtyTimestamp"]))),
        }
        lease.instance = {**instance, "actionType": "MODIFIED", **dates}
        self._on_change(instance["app"])


def _is_expired(lease: Lease, now: int) -> bool:
    return now > lease.renewed + lease.duration
