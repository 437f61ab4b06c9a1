"""Instances of Eureka and their keys, statuses, ports and leases, as immutable values. Only the
adapters know Eureka's own field names."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from eurekube_sync.model.sanitize import printable
from eurekube_sync.model.struct import replace


class Batching(Struct, frozen=True, kw_only=True):
    """Whether renewals, first registrations and cancels go to Eureka in batches."""

    on: bool
    why: str  # a sentence without its full stop; says how to change it where that is possible


class InstanceKey(NamedTuple):
    """An instance's app, in upper case, and its id. Two instances with one id in two apps share one
    override."""

    app: str
    id: str

    def __str__(self) -> str:
        return printable(f"{self.app}/{self.id}")  # anybody may register any name


class InstanceStatus(StrEnum):
    """`InstanceInfo.InstanceStatus` of Eureka."""

    UP = "UP"
    DOWN = "DOWN"
    STARTING = "STARTING"
    OUT_OF_SERVICE = "OUT_OF_SERVICE"
    UNKNOWN = "UNKNOWN"


class Port(NamedTuple):
    """A port of an instance. Each instance has two; a client uses the secure one if it is enabled,
    else the other."""

    number: int
    enabled: bool


class LeaseTimes(NamedTuple):
    """Seconds. A lease expires `duration` after a registration, and twice that after a renewal
    (Lease.renew)."""

    renewal: int
    duration: int

    @property
    def expires_after(self) -> int:
        """Seconds from a renewal to the end of the lease."""
        return 2 * self.duration


RENEWAL_INTERVAL = 30
"""Seconds between two renewals of a lease of ours. Eureka's self-preservation expects this
interval."""
OUR_LEASE = LeaseTimes(RENEWAL_INTERVAL, 300)  # of our instances, by default of `--lease-duration`
LIST_LAG = 210.0
"""Seconds of renewals that a list may lack. A renewal invalidates no cache. So if nothing else
changes, the list is made anew each 180 s, and readers get it at the next tick of 30 s
(ResponseCacheImpl). So the age of a lease is never read from a list."""
CACHE_SECONDS = 45.0  # how old a list of Eureka may be, by default of `--registry-cache`
DEFAULT_LEASE = LeaseTimes(30, 90)  # a server's default for a lease without times (LeaseInfo)


class Instance(Struct, frozen=True, kw_only=True):
    """All fields of a registration. We register UP or DOWN."""

    key: InstanceKey
    host_name: (
        str  # Spring clients call it. An IPv6 address has brackets here, and none in `ip_addr`.
    )
    ip_addr: str
    port: Port
    secure_port: Port
    vip_address: str
    secure_vip_address: str
    status: InstanceStatus
    lease: LeaseTimes
    metadata: Mapping[str, str]
    home_page_url: str = ""
    status_page_url: str = ""
    health_check_url: str = ""
    override: InstanceStatus = InstanceStatus.UNKNOWN
    """The status set by `PUT .../status`; UNKNOWN for none. Only an instance that moves to another
    id is registered with it."""

    @property
    def main_port(self) -> int:
        """The plain port, or the secure one if only that is enabled."""
        port = self.port
        if self.secure_port.enabled and not port.enabled:
            port = self.secure_port
        return port.number


def vip_names(vip: str) -> frozenset[str]:
    """Return the names in a VIP address; callers look them up without regard to case."""
    return frozenset(name.casefold() for name in vip.split(",") if name)


class ObservedInstance(Struct, frozen=True, kw_only=True):
    """An instance as Eureka lists it. Fields that the server left out are empty, zero or
    UNKNOWN."""

    instance: Instance  # with the effective status: overrides are applied
    last_dirty_timestamp: int = 0
    """Unix milliseconds. Eureka ignores a registration with an older one
    (AbstractInstanceRegistry.register)."""
    last_renewal: int = 0
    """Milliseconds of the server's clock: of the last registration, or of the last renewal **plus**
    the duration (Lease.renew)."""
    registered: int = (
        0  # milliseconds of the server's clock: of the last registration on this server
    )
    read_at: int = 0
    """Milliseconds of the server's clock, in whole seconds: when it answered the uncached read of
    this instance (the header `Date`). 0 in a list, or without that header."""
    unread: frozenset[str] = frozenset()
    """Names of fields that are malformed in Eureka's list, and therefore empty here. Only another
    owner's instance has some."""

    @property
    def key(self) -> InstanceKey:
        return self.instance.key

    @property
    def status(self) -> InstanceStatus:
        return self.instance.status

    @property
    def metadata(self) -> Mapping[str, str]:
        return self.instance.metadata

    @property
    def renewed(self) -> float:
        """When it was last renewed or registered, in Unix seconds of the server's clock."""
        duration = self.instance.lease.duration or DEFAULT_LEASE.duration
        return max(self.registered, self.last_renewal - 1000 * duration) / 1000

    def unchanged(self) -> Instance:
        """Return the registration that changes nothing. It is UP or DOWN, because Eureka keeps an
        override by itself."""
        status = InstanceStatus.UP if self.status is InstanceStatus.UP else InstanceStatus.DOWN
        return replace(self.instance, status=status, override=InstanceStatus.UNKNOWN)
