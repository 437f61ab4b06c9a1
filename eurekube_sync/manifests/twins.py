"""The CRD's CEL rules in Python: one twin for each, keyed by the rule's exact text, and of each message expression.

A twin gets the value that the rule calls `self`, after it has passed the schema, and gives the paths below it that
break the rule: none when it holds, `()` for the value itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from eurekube_sync.manifests.findings import Path
from eurekube_sync.model.value_faults import same_port

Twin = Callable[[Any], Iterable[Path]]

_LABEL_KEY = re.compile(
    r"([a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
_METADATA_KEY = re.compile(r"[A-Za-z][A-Za-z0-9.-]*")
_RESERVED = ("@class", "class", "instanceId")


def _twin(holds: Callable[[Any], bool]) -> Twin:
    """A twin of a rule that is about the value as a whole."""
    return lambda value: () if holds(value) else ((),)


def _each_key(holds: Callable[[str], bool]) -> Twin:
    """A twin of a rule that all keys of a mapping must meet."""
    return lambda mapping: [(key,) for key in mapping if not holds(key)]


def _is_label_key(key: str) -> bool:
    return len(key) <= 317 and _LABEL_KEY.fullmatch(key) is not None


def _is_metadata_key(key: str) -> bool:
    return len(key) <= 128 and _METADATA_KEY.fullmatch(key) is not None


def _one_source(entry: Mapping[str, Any]) -> bool:
    sources = ("podLabel", "podAnnotation", "serviceLabel", "serviceAnnotation")
    return sum(source in entry for source in sources) == 1


def _selector_agrees(selector: Mapping[str, Any]) -> bool:
    labels = selector.get("matchLabels", {})
    return "app" not in selector or "app" not in labels or labels["app"] == selector["app"]


def _pod_sources(spec: Mapping[str, Any]) -> list[Path]:
    if spec["mode"] == "pod":
        return []
    return [
        (index, source)
        for index, entry in enumerate(spec.get("metadataFrom", ()))
        for source in ("podLabel", "podAnnotation")
        if source in entry
    ]


def _keys_twice(spec: Mapping[str, Any]) -> list[Path]:
    fixed = spec.get("metadata", {})
    return [(index, "key") for index, entry in enumerate(spec.get("metadataFrom", ())) if entry["key"] in fixed]


def _gives_key(spec: Mapping[str, Any], key: str) -> bool:
    """Whether the user's own metadata hold the key."""
    return key in spec.get("metadata", {}) or any(entry["key"] == key for entry in spec.get("metadataFrom", ()))


def _zone_from_endpoint(spec: Mapping[str, Any]) -> bool:
    return bool(spec.get("zone", {}).get("fromEndpoint"))


def _node_ports_only(service: Mapping[str, Any]) -> bool:
    ports = "hostname" not in service and service.get("address", "Auto") in ("Auto", "NodePort")
    return "nodeAddress" not in service or ports


def _ports_differ(spec: Mapping[str, Any]) -> bool:
    return "port" not in spec or "securePort" not in spec or spec["port"] != spec["securePort"]


TWINS: Mapping[str, Twin] = {
    # selector
    "has(self.app) || has(self.matchLabels) || has(self.matchExpressions) || has(self.service)": _twin(
        lambda selector: not {"app", "matchLabels", "matchExpressions", "service"}.isdisjoint(selector)
    ),
    "!has(self.app) || !has(self.matchLabels) || !('app' in self.matchLabels) || self.matchLabels['app'] == self.app": (
        _twin(_selector_agrees)
    ),
    "self.all(key, size(key) <= 317 && key.matches('^([a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
    "/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$'))": _each_key(_is_label_key),
    "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)": _twin(
        lambda one: one["operator"] not in ("In", "NotIn") or bool(one.get("values"))
    ),
    "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0": _twin(
        lambda one: one["operator"] not in ("Exists", "DoesNotExist") or not one.get("values")
    ),
    # metadata
    "self.all(key, size(key) <= 128 && key.matches('^[A-Za-z][A-Za-z0-9.-]*$'))": _each_key(_is_metadata_key),
    "self.all(key, !key.startsWith('eurekube.'))": _each_key(lambda key: not key.startswith("eurekube.")),
    "self.all(key, !(key in ['@class', 'class', 'instanceId']))": _each_key(lambda key: key not in _RESERVED),
    "!self.startsWith('eurekube.')": _twin(lambda key: not key.startswith("eurekube.")),
    "!(self in ['@class', 'class', 'instanceId'])": _twin(lambda key: key not in _RESERVED),
    "[has(self.podLabel), has(self.podAnnotation), has(self.serviceLabel), has(self.serviceAnnotation)].exists_one("
    "given, given)": _twin(_one_source),
    # service
    "!(has(self.hostname) && has(self.address))": _twin(lambda service: not {"hostname", "address"} <= service.keys()),
    "!has(self.nodeAddress) || (!has(self.hostname) && (!has(self.address) || self.address in ['Auto', 'NodePort']))": (
        _twin(_node_ports_only)
    ),
    # spec
    "!has(self.service) || self.mode == 'service'": _twin(
        lambda spec: "service" not in spec or spec["mode"] == "service"
    ),
    "self.mode == 'pod' || !has(self.readinessGate) || !self.readinessGate": _twin(
        lambda spec: spec["mode"] == "pod" or not spec.get("readinessGate")
    ),
    "self.mode == 'pod' || !has(self.hostName) || self.hostName.startsWith('ip')": _twin(
        lambda spec: spec["mode"] == "pod" or spec.get("hostName", "ip").startswith("ip")
    ),
    "self.mode == 'pod' || !has(self.zone) || !self.zone.fromEndpoint": _twin(
        lambda spec: spec["mode"] == "pod" or not _zone_from_endpoint(spec)
    ),
    "self.mode == 'pod' || !has(self.metadataFrom) || self.metadataFrom.all(source, !has(source.podLabel) && "
    "!has(source.podAnnotation))": _pod_sources,
    "!has(self.metadata) || !has(self.metadataFrom) || self.metadataFrom.all(source, !(source.key in self.metadata))": (
        _keys_twice
    ),
    "!has(self.zone) || !self.zone.fromEndpoint || ((!has(self.metadata) || !('zone' in self.metadata)) && "
    "(!has(self.metadataFrom) || self.metadataFrom.all(source, source.key != 'zone')))": _twin(
        lambda spec: not _zone_from_endpoint(spec) or not _gives_key(spec, "zone")
    ),
    "!has(self.paths) || !has(self.paths.managementPort) || ((!has(self.metadata) || !('management.port' in "
    "self.metadata)) && (!has(self.metadataFrom) || self.metadataFrom.all(source, source.key != 'management.port')))": (
        _twin(lambda spec: "managementPort" not in spec.get("paths", {}) or not _gives_key(spec, "management.port"))
    ),
    "!has(self.port) || !has(self.securePort) || self.port != self.securePort": _twin(_ports_differ),
}

MESSAGES: Mapping[str, Callable[[Any], str]] = {
    "'securePort must differ from port (both are ' + string(self.port) + ')'": lambda spec: same_port(spec["port"]),
}
"""The message expressions, for a value that breaks their rule."""
