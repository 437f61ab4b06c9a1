"""What a Eureka registry stores of one instance, as immutable values. Knows no JSON, no HTTP and no clock.

Times are milliseconds since the epoch, as on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Status(StrEnum):
    """`InstanceInfo.InstanceStatus`."""

    UP = "UP"
    DOWN = "DOWN"
    STARTING = "STARTING"
    OUT_OF_SERVICE = "OUT_OF_SERVICE"
    UNKNOWN = "UNKNOWN"


class ActionType(StrEnum):
    """`InstanceInfo.ActionType`: what the last change of an instance was."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """What the client asked for, in seconds; the defaults are `LeaseInfo`'s."""

    renewal_interval: int = 30
    duration: int = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceInfo:
    """One instance as its client described it; the defaults are those of `InstanceInfo` itself."""

    instance_id: str | None = None
    host_name: str | None = None
    app: str
    ip_addr: str | None = None
    status: Status = Status.UP
    overridden_status: Status = Status.UNKNOWN
    port: int = 7001
    port_enabled: bool = True
    secure_port: int = 7002
    secure_port_enabled: bool = False
    country_id: int = 1
    data_center: str | None = None
    lease: LeaseSettings | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    """The optional text fields (`vipAddress`, `homePageUrl`...) by their wire name."""
    last_updated: int
    last_dirty: int
    action: ActionType | None = None

    @property
    def id(self) -> str | None:
        """The id in force: an empty one falls back to the host name (`InstanceInfo.getId`)."""
        return self.instance_id or self.host_name

    @property
    def vip(self) -> str | None:
        """The VIP address, possibly a comma list."""
        return self.texts.get("vipAddress")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """The server's side of a lease; `renewed` is the time of the last renewal **plus** the duration (`Lease.renew`)."""

    registered: int
    renewed: int
    evicted: int
    service_up: int


Listed = tuple[InstanceInfo, LeaseTimes]
"""An instance together with its lease as it was when it was read."""

Applications = tuple[tuple[str, tuple[Listed, ...]], ...]
"""Applications by name, each with its instances."""


def complaint(instance: InstanceInfo, app: str) -> str:
    """What `ApplicationResource.addInstance` has against an instance; empty for nothing."""
    checks = (
        (instance.id, "Missing instanceId"),
        (instance.host_name, "Missing hostname"),
        (instance.ip_addr, "Missing ip address"),
        (instance.app, "Missing appName"),
        (instance.app == app, f"Mismatched appName, expecting {app} but was {instance.app}"),
        (instance.data_center, "Missing dataCenterInfo Name"),
    )
    return next((complaint for given, complaint in checks if not given), "")
