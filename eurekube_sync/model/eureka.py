"""What a Eureka server holds, as immutable values: instances, their keys, statuses, ports and leases. Names are ours:
camelCase lives in the adapters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import NamedTuple

from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.values import dataclass, derive


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """Whether renewals, first registrations and cancels go to Eureka in batches."""

    on: bool
    why: str  # one sentence for a person; where it could be otherwise, it says how


class InstanceKey(NamedTuple):
    """What an instance is known by: its app, upper case, and its id. One id in two apps shares one override."""

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
    """A port of an instance. Eureka always holds two; a client uses the enabled one, the secure one first."""

    number: int
    enabled: bool


class LeaseTimes(NamedTuple):
    """Seconds. A lease expires after `duration` from a register, and after twice that from a renew (Lease.renew)."""

    renewal: int
    duration: int


RENEWAL_INTERVAL = 30
"""Seconds between two renewals of a lease of ours. Faster or slower would bend the server's self-preservation."""
OUR_LEASE = LeaseTimes(RENEWAL_INTERVAL, 300)  # what our instances get, unless `--lease-duration` says otherwise
CACHE_SECONDS = 45.0
"""How old a list of Eureka may be, unless `--registry-cache` says otherwise: 30 s in the server, and some."""
DEFAULT_LEASE = LeaseTimes(30, 90)  # what a server takes for a lease without times (LeaseInfo)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """All that a registration says of an instance. We register UP or DOWN; another status only where an `owner` command
    moves an instance as it is."""

    key: InstanceKey
    host_name: str  # what Spring clients call: an IPv6 address is bracketed here and bare in `ip_addr`
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
    """What a person or tool set by `PUT .../status`; UNKNOWN for none. Registered only with one that moves to another
    id."""

    @property
    def main_port(self) -> int:
        """The plain port; the secure one where only that is on."""
        return self.secure_port.number if self.secure_port.enabled and not self.port.enabled else self.port.number


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedInstance:
    """An instance as Eureka lists it. Fields that the server left out are empty, zero or UNKNOWN."""

    instance: Instance  # with the effective status: overrides are applied
    last_dirty_timestamp: int = 0
    """Unix milliseconds. A register with an older one is ignored with a 204 (AbstractInstanceRegistry.register)."""
    last_renewal: int = 0
    """Milliseconds of the server's clock: of the last register, or of the last renewal **plus** the duration
    (Lease.renew). Two uncached reads that differ in it show that somebody renews."""

    key: InstanceKey = field(init=False)  # the instance's, as the two below
    status: InstanceStatus = field(init=False)
    metadata: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        derive(self, "key", self.instance.key)
        derive(self, "status", self.instance.status)
        derive(self, "metadata", self.instance.metadata)

    @property
    def renewed(self) -> float:
        """When it was last renewed, in Unix seconds of the server's clock. One that was registered and not renewed
        since seems older by its duration."""
        return self.last_renewal / 1000 - (self.instance.lease.duration or DEFAULT_LEASE.duration)

    def unchanged(self) -> Instance:
        """What would be registered to leave it as it is: UP, or DOWN, because Eureka keeps an override by itself."""
        status = InstanceStatus.UP if self.status is InstanceStatus.UP else InstanceStatus.DOWN
        return replace(self.instance, status=status, override=InstanceStatus.UNKNOWN)
