"""What a Eureka registry stores of one instance, and the JSON of it: `EurekaJacksonCodec` and Spring's
`CloudJacksonJson`, oddities included, because clients depend on them. Knows no HTTP and no clock.

Times are milliseconds since the epoch, as on the wire.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Literal

import msgspec

Document = dict[str, Any]


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
    """What the client asked for, in seconds. What is not positive becomes `LeaseInfo`'s default."""

    renewal_interval: int = msgspec.field(name="renewalIntervalInSecs", default=30)
    duration: int = msgspec.field(name="durationInSecs", default=90)

    def __post_init__(self) -> None:
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
    secure_vip_address: str | None = None
    app_group_name: str | None = None
    asg_name: str | None = None
    last_updated: int = msgspec.field(name="lastUpdatedTimestamp")
    last_dirty: int = msgspec.field(name="lastDirtyTimestamp")
    action: Literal["ADDED", "MODIFIED", "DELETED"] | None = msgspec.field(name="actionType", default=None)

    @property
    def id(self) -> str:
        """The id in force: an empty one falls back to the host name (`InstanceInfo.getId`)."""
        return self.instance_id or self.host_name or ""

    def complaint(self, app: str) -> str:
        """What `ApplicationResource.addInstance` has against it; empty for nothing."""
        checks = (
            (self.id, "Missing instanceId"),
            (self.host_name, "Missing hostname"),
            (self.ip_addr, "Missing ip address"),
            (self.app, "Missing appName"),
            (self.app == app, f"Mismatched appName, expecting {app} but was {self.app}"),
            (self.data_center and self.data_center.name, "Missing dataCenterInfo Name"),
        )
        return next((text for given, text in checks if not given), "")


class LeaseTimes(msgspec.Struct, kw_only=True):
    """The server's side of a lease, which expires a duration after `renewed`."""

    registered: int = msgspec.field(name="registrationTimestamp")
    renewed: int = msgspec.field(name="lastRenewalTimestamp")
    """The time of the last renewal **plus** the duration (`Lease.renew`)."""
    evicted: int = msgspec.field(name="evictionTimestamp", default=0)
    service_up: int = msgspec.field(name="serviceUpTimestamp", default=0)


Listed = tuple[InstanceInfo, LeaseTimes]
"""An instance together with its lease as it was when it was read."""

Applications = tuple[tuple[str, tuple[Listed, ...]], ...]
"""Applications by name, each with its instances."""


def parse_instance(given: Any, *, now_ms: int) -> InstanceInfo:
    """Read an instance without its root name; a `ValueError` where Jackson throws. Fields that are not known are
    skipped; the real parser refuses most structures among them."""
    if not isinstance(given, dict):
        raise ValueError("the instance is no object")
    fields = {name: value for name, value in given.items() if value is not None}
    fields = {"lastUpdatedTimestamp": now_ms, "lastDirtyTimestamp": now_ms, **fields}
    if "overriddenstatus" in fields:  # either spelling is taken
        fields["overriddenStatus"] = fields["overriddenstatus"]
    if isinstance(metadata := fields.get("metadata"), dict):
        if any(isinstance(value, (dict, list)) for value in metadata.values()):
            raise ValueError("a structure where a text is expected")
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in metadata.items()}
        fields["metadata"] = {key: text for key, text in texts.items() if key != "@class"}
    found = msgspec.convert(fields, InstanceInfo, strict=False)
    return msgspec.structs.replace(found, app=found.app.upper())


def instance_document(listed: Listed) -> Document:
    """One instance in the form of `InstanceInfoSerializer`; the times of its last changes as text."""
    instance, lease = listed
    document: Document = {name: value for name, value in msgspec.to_builtins(instance).items() if value is not None}
    document["dataCenterInfo"]["@class"] = "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo"
    document["leaseInfo"] |= msgspec.to_builtins(lease)
    document["metadata"] = document["metadata"] or {"@class": "java.util.Collections$EmptyMap"}
    document["isCoordinatingDiscoveryServer"] = "false"
    document["lastUpdatedTimestamp"] = str(instance.last_updated)
    document["lastDirtyTimestamp"] = str(instance.last_dirty)
    return document


def application_document(name: str, instances: tuple[Listed, ...]) -> Document:
    """`ApplicationSerializer`: always an array, also for one instance."""
    return {"name": name, "instance": [instance_document(listed) for listed in instances]}


def applications_document(applications: Applications) -> Document:
    """`ApplicationsSerializer`, with the escaped names `versions__delta` and `apps__hashcode`: the statuses in order of
    name with their counts, as in `DOWN_1_UP_2_` (`Applications.getReconcileHashCode`)."""
    counts: dict[str, int] = {}
    for _, instances in applications:
        for instance, _ in instances:
            counts[instance.status.value] = counts.get(instance.status.value, 0) + 1
    return {
        "versions__delta": "1",
        "apps__hashcode": "".join(f"{status}_{count}_" for status, count in sorted(counts.items())),
        "application": [application_document(name, instances) for name, instances in applications],
    }
