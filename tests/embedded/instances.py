"""How Eureka reads an instance, oddities included: `EurekaJacksonCodec` and Spring's
`CloudJacksonJson`."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Literal, NamedTuple

import msgspec

from eurekube_sync.embedded.eureka import Document, id_of


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

    kind: Literal[
        "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
        "com.netflix.appinfo.MyDataCenterInfo",
    ] = msgspec.field(name="@class")
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
    action: Literal["ADDED", "MODIFIED", "DELETED"] | None = msgspec.field(
        name="actionType", default=None
    )

    @property
    def id(self) -> str:
        """The id in force."""
        return self.instance_id or self.host_name or ""


class LeaseTimes(NamedTuple):
    """The server's side of a lease, which expires a duration after `renewed`."""

    registered: int
    renewed: int
    """The time of the last renewal **plus** the duration (`Lease.renew`)."""


Listed = tuple[InstanceInfo, LeaseTimes]
"""An instance together with its lease as it was when it was read."""


def described(instance: Document) -> InstanceInfo:
    """What a server holds of an instance, for those who judge it."""
    metadata = {key: value for key, value in instance["metadata"].items() if key != "@class"}
    return msgspec.convert({**instance, "metadata": metadata}, InstanceInfo, strict=False)


def complaint(instance: Document, app: str) -> str:
    """What `ApplicationResource.addInstance` has against it; empty for nothing."""
    checks = (
        (id_of(instance), "Missing instanceId"),
        (instance.get("hostName"), "Missing hostname"),
        (instance.get("ipAddr"), "Missing ip address"),
        (instance["app"], "Missing appName"),
        (instance["app"] == app, f"Mismatched appName, expecting {app} but was {instance['app']}"),
        (instance.get("dataCenterInfo", {}).get("name"), "Missing dataCenterInfo Name"),
    )
    return next((text for given, text in checks if not given), "")


def parse_instance(given: Any, *, now_ms: int) -> Document:
    """Read an instance without its root name; a `ValueError` where Jackson throws. Fields that are
    not known are skipped; the real parser refuses most structures among them."""
    if not isinstance(given, dict):
        raise ValueError("the instance is no object")
    fields = {name: value for name, value in given.items() if value is not None}
    fields = {"lastUpdatedTimestamp": now_ms, "lastDirtyTimestamp": now_ms, **fields}
    if "overriddenstatus" in fields:  # either spelling is taken
        fields["overriddenStatus"] = fields["overriddenstatus"]
    if isinstance(metadata := fields.get("metadata"), dict):
        if any(isinstance(value, (dict, list)) for value in metadata.values()):
            raise ValueError("a structure where a text is expected")
        texts = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in metadata.items()
        }
        fields["metadata"] = {key: text for key, text in texts.items() if key != "@class"}
    info = msgspec.convert(fields, InstanceInfo, strict=False)
    return instance_document(msgspec.structs.replace(info, app=info.app.upper()))


def instance_document(info: InstanceInfo) -> Document:
    """One instance in the form of `InstanceInfoSerializer`, without the times of its lease."""
    document: Document = {
        name: value for name, value in msgspec.to_builtins(info).items() if value is not None
    }
    if info.data_center:
        document["dataCenterInfo"]["@class"] = (
            "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo"
        )
    document["metadata"] = info.metadata or {"@class": "java.util.Collections$EmptyMap"}
    document["lastUpdatedTimestamp"] = str(info.last_updated)
    document["lastDirtyTimestamp"] = str(info.last_dirty)
    return document
