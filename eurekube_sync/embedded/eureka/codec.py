"""The wire forms of a Spring Eureka server: JSON in and out, and the one page that is XML.

Follows `EurekaJacksonCodec` and Spring's `CloudJacksonJson`, oddities included, because clients depend on them.
"""

from __future__ import annotations

import json
from typing import Any
from xml.sax.saxutils import escape

from eurekube_sync.embedded.eureka.instance import ActionType, Applications, InstanceInfo, LeaseSettings, Listed, Status

_DATA_CENTER_CLASS = "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo"
_AMAZON_CLASS = "com.netflix.appinfo.AmazonInfo"
_DATA_CENTER_CLASSES = (_DATA_CENTER_CLASS, _AMAZON_CLASS, "com.netflix.appinfo.MyDataCenterInfo")
_DATA_CENTER_NAMES = ("Netflix", "Amazon", "MyOwn")
_EMPTY_METADATA = {"@class": "java.util.Collections$EmptyMap"}

_TEXTS_AFTER_METADATA = (
    "appGroupName",
    "homePageUrl",
    "statusPageUrl",
    "healthCheckUrl",
    "secureHealthCheckUrl",
    "vipAddress",
    "secureVipAddress",
)
_TEXTS = (*_TEXTS_AFTER_METADATA, "asgName")

Document = dict[str, Any]


def parse_registration(body: bytes, *, now_ms: int) -> InstanceInfo:
    """Read the body of a register call; a `ValueError` where Jackson throws, which makes a 400.

    Fields that are not known are skipped. The real parser refuses most structures among them.
    """
    root = json.loads(body)
    if root is None:
        raise TypeError("no instance at all")  # ApplicationResource.addInstance does not check: a 500
    if not isinstance(root, dict) or list(root) != ["instance"] or not isinstance(root["instance"], dict):
        raise ValueError("the root is not an instance")
    return parse_instance(root["instance"], now_ms=now_ms)


def parse_instance(given: Document, *, now_ms: int) -> InstanceInfo:
    """Read an instance without its root name, as it is in a batch; a `ValueError` where Jackson throws."""
    fields: Document = {name: value for name, value in given.items() if value is not None}
    if "app" not in fields:
        raise ValueError("name is required!")  # InstanceInfo.Builder.build
    port, port_enabled = _port(fields.get("port"), 7001, enabled=True)
    secure_port, secure_port_enabled = _port(fields.get("securePort"), 7002, enabled=False)
    return InstanceInfo(
        instance_id=_optional_text(fields.get("instanceId")),
        host_name=_optional_text(fields.get("hostName")),
        app=_text(fields["app"]).upper(),
        ip_addr=_optional_text(fields.get("ipAddr")),
        status=_status(fields.get("status"), Status.UP),
        overridden_status=_status(fields.get("overriddenStatus", fields.get("overriddenstatus")), Status.UNKNOWN),
        port=port,
        port_enabled=port_enabled,
        secure_port=secure_port,
        secure_port_enabled=secure_port_enabled,
        country_id=_integer(fields.get("countryId", 1)),
        data_center=_data_center(fields.get("dataCenterInfo")),
        lease=_lease(fields.get("leaseInfo")),
        metadata=_metadata(fields.get("metadata", {})),
        texts=_texts(fields),
        last_updated=_integer(fields.get("lastUpdatedTimestamp", now_ms)),
        last_dirty=_integer(fields.get("lastDirtyTimestamp", now_ms)),
        action=ActionType(fields["actionType"]) if fields.get("actionType") in tuple(ActionType) else None,
    )


def instance_document(listed: Listed) -> Document:
    """One instance in the order of `InstanceInfoSerializer`; the `@Auto` fields follow, times as text."""
    instance, lease = listed
    settings = instance.lease or LeaseSettings()
    document: Document = {"instanceId": instance.instance_id} if instance.instance_id is not None else {}
    document |= {
        "hostName": instance.host_name,
        "app": instance.app,
        "ipAddr": instance.ip_addr,
        "status": instance.status.value,
        "overriddenStatus": instance.overridden_status.value,
        "port": {"$": instance.port, "@enabled": _boolean(instance.port_enabled)},
        "securePort": {"$": instance.secure_port, "@enabled": _boolean(instance.secure_port_enabled)},
        "countryId": instance.country_id,
        "dataCenterInfo": {
            "@class": _AMAZON_CLASS if instance.data_center == "Amazon" else _DATA_CENTER_CLASS,
            "name": instance.data_center,
        },
        "leaseInfo": {
            "renewalIntervalInSecs": settings.renewal_interval,
            "durationInSecs": settings.duration,
            "registrationTimestamp": lease.registered,
            "lastRenewalTimestamp": lease.renewed,
            "evictionTimestamp": lease.evicted,
            "serviceUpTimestamp": lease.service_up,
        },
        "metadata": dict(instance.metadata) or _EMPTY_METADATA,
    }
    document |= {name: instance.texts[name] for name in _TEXTS_AFTER_METADATA if name in instance.texts}
    document["isCoordinatingDiscoveryServer"] = "false"
    document["lastUpdatedTimestamp"] = str(instance.last_updated)
    document["lastDirtyTimestamp"] = str(instance.last_dirty)
    if instance.action is not None:
        document["actionType"] = instance.action.value
    if "asgName" in instance.texts:
        document["asgName"] = instance.texts["asgName"]
    return document


def application_document(name: str, instances: tuple[Listed, ...]) -> Document:
    """`ApplicationSerializer`: always an array, also for one instance."""
    return {"name": name, "instance": [instance_document(listed) for listed in instances]}


def applications_document(applications: Applications) -> Document:
    """`ApplicationsSerializer`, with the escaped names `versions__delta` and `apps__hashcode`."""
    return {
        "versions__delta": "1",
        "apps__hashcode": _hash_code(applications),
        "application": [application_document(name, instances) for name, instances in applications],
    }


def _hash_code(applications: Applications) -> str:
    """`Applications.getReconcileHashCode`: statuses in order of name with their counts, as in `DOWN_1_UP_2_`."""
    counts: dict[str, int] = {}
    for _, instances in applications:
        for instance, _ in instances:
            counts[instance.status.value] = counts.get(instance.status.value, 0) + 1
    return "".join(f"{status}_{count}_" for status, count in sorted(counts.items()))


def to_json(root: str, document: Document) -> bytes:
    """The document under its root name, without spaces."""
    return json.dumps({root: document}, ensure_ascii=False, separators=(",", ":")).encode()


def to_xml(name: str, value: object) -> str:
    """The value as XStream writes it, without attributes."""
    inner = "".join(to_xml(key, item) for key, item in value.items()) if isinstance(value, dict) else escape(str(value))
    return f"<{name}>{inner}</{name}>"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _optional_text(value: object) -> str | None:
    return None if value is None else _text(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return _boolean(value)
    if isinstance(value, (dict, list)):
        raise ValueError("a structure where a text is expected")
    return "null" if value is None else str(value)


def _texts(fields: Document) -> dict[str, str]:
    texts = {name: _text(fields[name]) for name in _TEXTS if name in fields}
    return texts | ({"appGroupName": texts["appGroupName"].upper()} if "appGroupName" in texts else {})


def _integer(value: object) -> int:
    """`JsonParser.getValueAsInt`: what is not a number is 0."""
    try:
        return int(float(_text(value))) if not isinstance(value, int) else int(value)
    except ValueError:
        return 0


def _status(value: object, default: Status) -> Status:
    if value is None:
        return default
    return Status(value) if isinstance(value, str) and value in tuple(Status) else Status.UNKNOWN


def _port(value: object, default: int, *, enabled: bool) -> tuple[int, bool]:
    if value is None:
        return default, enabled
    if not isinstance(value, dict) or not value.keys() <= {"$", "@enabled"}:
        raise ValueError("a port has `$` and `@enabled`")
    number = _integer(value["$"]) if "$" in value else default
    return number, _text(value["@enabled"]) == "true" if "@enabled" in value else enabled


def _lease(value: object) -> LeaseSettings | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError("leaseInfo is no object")
    defaults = LeaseSettings()
    interval, duration = _integer(value.get("renewalIntervalInSecs") or 0), _integer(value.get("durationInSecs") or 0)
    return LeaseSettings(
        renewal_interval=interval if interval > 0 else defaults.renewal_interval,
        duration=duration if duration > 0 else defaults.duration,
    )


def _metadata(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("metadata is no object")
    return {key: _text(item) for key, item in value.items() if key != "@class"}


def _data_center(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, dict) or value.get("@class") not in _DATA_CENTER_CLASSES:
        raise ValueError("dataCenterInfo without a known @class")
    if value.keys() - {"@class", "name"} and value["@class"] != _AMAZON_CLASS:
        raise ValueError("an unknown key in dataCenterInfo")
    name = value.get("name")
    if name is not None and name not in _DATA_CENTER_NAMES:
        raise ValueError("an unknown data center")
    return name
