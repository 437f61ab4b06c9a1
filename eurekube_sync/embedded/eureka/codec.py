"""The wire forms of a Spring Eureka server: JSON in and out, and the one page that is XML.

Follows `EurekaJacksonCodec` and Spring's `CloudJacksonJson`, oddities included, because clients depend on them.
"""

from __future__ import annotations

import json
from typing import Any
from xml.sax.saxutils import escape

import msgspec

from eurekube_sync.embedded.eureka.instance import Applications, InstanceInfo, Listed

_DATA_CENTER_CLASS = "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo"
_EMPTY_METADATA = {"@class": "java.util.Collections$EmptyMap"}

Document = dict[str, Any]


def parse_registration(body: bytes, *, now_ms: int) -> InstanceInfo:
    """Read the body of a register call; a `ValueError` where Jackson throws, which makes a 400.

    Fields that are not known are skipped. The real parser refuses most structures among them.
    """
    root = json.loads(body)
    if not isinstance(root, dict) or list(root) != ["instance"]:
        raise ValueError("the root is not an instance")
    return parse_instance(root["instance"], now_ms=now_ms)


def parse_instance(given: Any, *, now_ms: int) -> InstanceInfo:
    """Read an instance without its root name, as it is in a batch; a `ValueError` where Jackson throws."""
    if not isinstance(given, dict):
        raise ValueError("the instance is no object")
    fields = {name: value for name, value in given.items() if value is not None}
    fields = {"lastUpdatedTimestamp": now_ms, "lastDirtyTimestamp": now_ms, **fields}
    if "overriddenstatus" in fields:  # either spelling is taken
        fields["overriddenStatus"] = fields["overriddenstatus"]
    if isinstance(metadata := fields.get("metadata"), dict):
        fields["metadata"] = {key: _text(value) for key, value in metadata.items() if key != "@class"}
    try:
        found = msgspec.convert(fields, InstanceInfo, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    return msgspec.structs.replace(found, app=found.app.upper())


def _text(value: object) -> str:
    if isinstance(value, (dict, list)):
        raise ValueError("a structure where a text is expected")
    return value if isinstance(value, str) else json.dumps(value)


def instance_document(listed: Listed) -> Document:
    """One instance in the form of `InstanceInfoSerializer`; the times of its last changes as text."""
    instance, lease = listed
    document: Document = {name: value for name, value in msgspec.to_builtins(instance).items() if value is not None}
    document["dataCenterInfo"]["@class"] = _DATA_CENTER_CLASS
    document["leaseInfo"] |= msgspec.to_builtins(lease)
    document["metadata"] = document["metadata"] or _EMPTY_METADATA
    document["isCoordinatingDiscoveryServer"] = "false"
    document["lastUpdatedTimestamp"] = str(instance.last_updated)
    document["lastDirtyTimestamp"] = str(instance.last_dirty)
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
