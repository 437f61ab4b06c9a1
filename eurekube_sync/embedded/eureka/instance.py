"""What a Eureka registry stores of one instance, as values that JSON is read into. Knows no HTTP and no clock.

Times are milliseconds since the epoch, as on the wire.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec


class Status(StrEnum):
    """`InstanceInfo.InstanceStatus`."""

    UP = "UP"
    DOWN = "DOWN"
    STARTING = "STARTING"
    OUT_OF_SERVICE = "OUT_OF_SERVICE"
    UNKNOWN = "UNKNOWN"

    @classmethod
    def _missing_(cls, value: object) -> Status:
        """As Jackson reads any other word."""
        return cls.UNKNOWN


class ActionType(StrEnum):
    """`InstanceInfo.ActionType`: what the last change of an instance was."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Port(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`InstanceInfo.PortWrapper`."""

    number: int = msgspec.field(name="$")
    enabled: bool | str = msgspec.field(name="@enabled", default="true")
    """Sent as a boolean or as text, and told as text."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "enabled", str(self.enabled).lower())


class DataCenter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`DataCenterInfo`, but for Amazon's."""

    kind: Literal["com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo", "com.netflix.appinfo.MyDataCenterInfo"] = (
        msgspec.field(name="@class")
    )
    name: Literal["Netflix", "Amazon", "MyOwn"] | None = None


class LeaseSettings(msgspec.Struct, frozen=True):
    """What the client asked for, in seconds; the defaults are `LeaseInfo`'s."""

    renewal_interval: int = msgspec.field(name="renewalIntervalInSecs", default=30)
    duration: int = msgspec.field(name="durationInSecs", default=90)

    def __post_init__(self) -> None:
        """What is not positive becomes the default."""
        for name, default in (("renewal_interval", 30), ("duration", 90)):
            if getattr(self, name) <= 0:
                msgspec.structs.force_setattr(self, name, default)


class InstanceInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One instance as its client described it; the defaults are those of `InstanceInfo` itself."""

    instance_id: str | None = None
    host_name: str | None = None
    app: str
    ip_addr: str | None = None
    status: Status = Status.UP
    overridden_status: Status = Status.UNKNOWN
    port: Port = Port(7001)
    secure_port: Port = Port(7002, False)
    country_id: int = 1
    data_center: DataCenter | None = msgspec.field(name="dataCenterInfo", default=None)
    lease: LeaseSettings = msgspec.field(name="leaseInfo", default=LeaseSettings())
    metadata: dict[str, str] = {}
    home_page_url: str | None = None
    status_page_url: str | None = None
    health_check_url: str | None = None
    secure_health_check_url: str | None = None
    vip_address: str | None = None
    """Possibly a comma list."""
    secure_vip_address: str | None = None
    app_group_name: str | None = None
    asg_name: str | None = None
    last_updated: int = msgspec.field(name="lastUpdatedTimestamp")
    last_dirty: int = msgspec.field(name="lastDirtyTimestamp")
    action: ActionType | None = msgspec.field(name="actionType", default=None)

    @property
    def id(self) -> str | None:
        """The id in force: an empty one falls back to the host name (`InstanceInfo.getId`)."""
        return self.instance_id or self.host_name


class LeaseTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The server's side of a lease."""

    registered: int = msgspec.field(name="registrationTimestamp")
    renewed: int = msgspec.field(name="lastRenewalTimestamp")
    """The time of the last renewal **plus** the duration (`Lease.renew`)."""
    evicted: int = msgspec.field(name="evictionTimestamp")
    service_up: int = msgspec.field(name="serviceUpTimestamp")


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
        (instance.data_center and instance.data_center.name, "Missing dataCenterInfo Name"),
    )
    return next((complaint for given, complaint in checks if not given), "")
