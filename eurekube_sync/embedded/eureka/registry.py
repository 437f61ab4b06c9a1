"""Leases, overrides, eviction and self-preservation: `AbstractInstanceRegistry` and `PeerAwareInstanceRegistryImpl`.

Pure but for its own state: every call is told the time. Knows no HTTP, no JSON and no response cache; it names the
cache entries that a change makes stale through `on_change`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from eurekube_sync.embedded.eureka.instance import (
    ActionType,
    Applications,
    InstanceInfo,
    LeaseTimes,
    Listed,
    Status,
)

RENEWAL_PERCENT_THRESHOLD = 0.85
_RATE_WINDOW_MS = 60_000


@dataclass(slots=True, kw_only=True)
class Lease:
    """`Lease`: expires `duration` after `last_update`, which a renewal sets to now **plus** the duration."""

    instance: InstanceInfo
    duration: int
    registered: int
    last_update: int
    evicted: int = 0
    service_up: int = 0

    def renew(self, now: int) -> None:
        self.last_update = now + self.duration

    def is_expired(self, now: int) -> bool:
        return self.evicted > 0 or now > self.last_update + self.duration

    def listed(self) -> Listed:
        times = LeaseTimes(
            registered=self.registered, renewed=self.last_update, evicted=self.evicted, service_up=self.service_up
        )
        return self.instance, times


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


class LeaseRegistry:
    """All leases by application and id. Times are milliseconds."""

    def __init__(
        self, *, start: int, self_preservation: bool, on_change: Callable[[InstanceInfo], None], shuffle: random.Random
    ) -> None:
        self._self_preservation = self_preservation
        self._on_change = on_change
        self._shuffle = shuffle
        self._leases: dict[str, dict[str, Lease]] = {}
        self._overrides: dict[str, Status] = {}
        self._renewals = MeasuredRate(start)
        self._expected_clients = 1  # Spring: defaultOpenForTrafficCount

    def register(self, instance: InstanceInfo, *, now: int) -> None:
        """`AbstractInstanceRegistry.register`: an older `lastDirtyTimestamp` keeps the instance that is there."""
        app, instance_id = instance.app, _required_id(instance)
        existing = self._leases.get(app, {}).get(instance_id)
        duration = instance.lease.duration * 1000
        if existing is None:
            self._expected_clients += 1 if self._expected_clients > 0 else 0
        elif existing.instance.last_dirty > instance.last_dirty:
            instance = existing.instance
        lease = Lease(instance=instance, duration=duration, registered=now, last_update=now)
        if existing is not None:
            lease.service_up = existing.service_up
        if instance.overridden_status is not Status.UNKNOWN:
            self._overrides.setdefault(instance_id, instance.overridden_status)
        instance = replace(
            instance,
            overridden_status=self._overrides.get(instance_id, instance.overridden_status),
            status=self._effective_status(instance, existing),
            action=ActionType.ADDED,
            last_updated=now,
        )
        lease.instance = instance
        if instance.status is Status.UP and lease.service_up == 0:
            lease.service_up = now
        self._leases.setdefault(app, {})[instance_id] = lease
        self._on_change(lease.instance)

    def renew(self, app: str, instance_id: str, *, now: int) -> bool:
        """`renew`: false when there is no lease, or the effective status is UNKNOWN. Makes no cache entry stale."""
        lease = self._lease(app, instance_id)
        if lease is None:
            return False
        status = self._effective_status(lease.instance, lease)
        if status is Status.UNKNOWN:
            return False
        if status is not lease.instance.status:
            lease.instance = replace(lease.instance, status=status)
        self._renewals.increment(now)
        lease.renew(now)
        return True

    def cancel(self, app: str, instance_id: str, *, now: int) -> bool:
        """`internalCancel`: forgets the override of that id even when there is no lease."""
        lease = self._leases.get(app, {}).pop(instance_id, None)
        self._overrides.pop(instance_id, None)
        if lease is None:
            return False
        lease.evicted = lease.evicted or now
        lease.instance = replace(lease.instance, action=ActionType.DELETED, last_updated=now)
        self._on_change(lease.instance)
        self._expected_clients -= 1 if self._expected_clients > 0 else 0
        return True

    def override_status(self, app: str, instance_id: str, status: Status, *, dirty: int, now: int) -> bool:
        """`statusUpdate`: stores the override, unless the instance already has that status; renews the lease."""
        lease = self._lease(app, instance_id)
        if lease is None:
            return False
        lease.renew(now)
        if lease.instance.status is status:
            return True
        if status is Status.UP and lease.service_up == 0:
            lease.service_up = now
        self._overrides[instance_id] = status
        self._modify(lease, replace(lease.instance, status=status, overridden_status=status), dirty=dirty, now=now)
        return True

    def delete_override(self, app: str, instance_id: str, status: Status, *, dirty: int, now: int) -> bool:
        """`deleteStatusOverride`: changes the status only when there was an override; renews the lease."""
        lease = self._lease(app, instance_id)
        if lease is None:
            return False
        lease.renew(now)
        if self._overrides.pop(instance_id, None) is not None:
            changed = replace(lease.instance, status=status, overridden_status=Status.UNKNOWN)
            self._modify(lease, changed, dirty=dirty, now=now)
        return True

    def find(self, app: str, instance_id: str, *, now: int) -> Listed | None:
        """`getInstanceByAppAndId`: nothing for an expired lease, if leases may expire now."""
        lease = self._lease(app, instance_id)
        if lease is None or (lease.is_expired(now) and self.expires_leases(now)):
            return None
        return lease.listed()

    def find_by_id(self, instance_id: str, *, now: int) -> Listed | None:
        """`getInstancesById`: the first application that has this id."""
        found = (self.find(app, instance_id, now=now) for app in self._leases)
        return next((listed for listed in found if listed is not None), None)

    def application(self, app: str) -> tuple[Listed, ...]:
        """`getApplication`: expired leases included; empty when there is no such application."""
        return tuple(lease.listed() for lease in self._leases.get(app, {}).values())

    def applications(self) -> Applications:
        """`getApplications`: those that have an instance."""
        return tuple((app, self.application(app)) for app, leases in self._leases.items() if leases)

    def expires_leases(self, now: int) -> bool:
        """`isLeaseExpirationEnabled`: the gate of self-preservation."""
        threshold = int(self._expected_clients * 2.0 * RENEWAL_PERCENT_THRESHOLD)
        return not self._self_preservation or (threshold > 0 and self._renewals.count(now) > threshold)

    def evict(self, now: int) -> None:
        """`evict`: at most 15 % of the registry in one run, in random order."""
        if not self.expires_leases(now):
            return
        leases = list(self._all())
        limit = len(leases) - int(len(leases) * RENEWAL_PERCENT_THRESHOLD)
        expired = [lease for lease in leases if lease.is_expired(now)]
        self._shuffle.shuffle(expired)
        for lease in expired[:limit]:
            self.cancel(lease.instance.app, _required_id(lease.instance), now=now)

    def _all(self) -> Iterator[Lease]:
        return (lease for leases in self._leases.values() for lease in leases.values())

    def _lease(self, app: str, instance_id: str) -> Lease | None:
        return self._leases.get(app, {}).get(instance_id)

    def _effective_status(self, instance: InstanceInfo, existing: Lease | None) -> Status:
        """`DownOrStartingRule`, `OverrideExistsRule`, `LeaseExistsRule`, then what the instance says."""
        trusted = (Status.UP, Status.OUT_OF_SERVICE)
        if instance.status not in trusted:
            return instance.status
        override = self._overrides.get(_required_id(instance))
        if override is not None:
            return override
        if existing is not None and existing.instance.status in trusted:
            return existing.instance.status
        return instance.status

    def _modify(self, lease: Lease, instance: InstanceInfo, *, dirty: int, now: int) -> None:
        lease.instance = replace(
            instance, action=ActionType.MODIFIED, last_updated=now, last_dirty=max(dirty, instance.last_dirty)
        )
        self._on_change(lease.instance)


def _required_id(instance: InstanceInfo) -> str:
    if instance.id is None:
        raise ValueError("an instance without an id")
    return instance.id
