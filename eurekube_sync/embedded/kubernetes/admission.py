"""What happens to an object before it is written: it is checked, and refused in the words of the real server; a custom
resource takes the form of its schema; a built-in one gets defaults and addresses, as far as somebody here reads them.

Functions of the request, the resource and the version that is stored; no store, no clock. Custom resources are
validated proper by the function that the server is given.
"""

from __future__ import annotations

import copy
import ipaddress
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from eurekube_sync.embedded.kubernetes import errors
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.store import Object

_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_ROOT_FIELDS = ("apiVersion", "kind", "metadata")
_METADATA_FIELDS = (
    *("annotations", "labels", "finalizers", "ownerReferences", "managedFields"),
    *("name", "namespace", "generateName", "uid", "resourceVersion", "generation", "selfLink"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
)


class _Metadata(msgspec.Struct):
    """What of ObjectMeta has to be text; a null is as Go reads it."""

    name: str | None = None
    namespace: str | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None


def typed(resource: Resource, body: Any) -> Object:
    """The body with its kind and apiVersion, or a refusal if it is of another shape."""
    if not isinstance(body, dict):
        raise errors.bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    metadata = body.get("metadata") or {}
    try:
        msgspec.convert(metadata, _Metadata)
    except msgspec.ValidationError as error:
        raise errors.unreadable(resource, f"json: cannot unmarshal metadata: {error}") from None
    for field in ("labels", "annotations"):
        if metadata.get(field):
            metadata = {**metadata, field: {key: value or "" for key, value in metadata[field].items()}}
    return {**body, "kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}


def check_name(resource: Resource, name: str) -> None:
    """A name is a DNS subdomain."""
    if not re.fullmatch(_SUBDOMAIN, name) or len(name) > 253:
        fault = ("metadata.name", "FieldValueInvalid", f'Invalid value: "{name}": {_SUBDOMAIN_TEXT}')
        raise errors.invalid(resource.kind, resource.group, name, [fault])


def check_version(resource: Resource, old: Mapping[str, Any], new: Mapping[str, Any], *, patch: bool) -> None:
    """Refuse another uid and an older version. The uid of a PATCH's outcome is no precondition."""
    name, uid, revision = old["name"], new.get("uid"), new.get("resourceVersion")
    if uid and uid != old["uid"]:
        if patch:
            fault = ("metadata.uid", "FieldValueInvalid", f'Invalid value: "{uid}": field is immutable')
            raise errors.invalid(resource.kind, resource.group, name, [fault])
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
        raise errors.conflict(resource, name, why)
    if revision and revision != old["resourceVersion"]:
        raise errors.conflict(resource, name)


def conformed(obj: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[Object, list[str]]:
    """A custom resource as its schema has it stored, and the dotted names of what was left out."""
    unknown: list[str] = []
    kept = _conformed({name: value for name, value in obj.items() if name not in _ROOT_FIELDS}, schema, "", unknown)
    metadata = {name: value for name, value in obj["metadata"].items() if name in _METADATA_FIELDS}
    others = sorted(f"metadata.{name}" for name in obj["metadata"] if name not in _METADATA_FIELDS)
    return {**{name: obj[name] for name in _ROOT_FIELDS}, **kept, "metadata": metadata}, sorted(unknown) + others


def _conformed(value: Any, schema: Mapping[str, Any], path: str, unknown: list[str]) -> Any:
    """Without what the schema does not name, without nulls where none are allowed, and with the defaults."""
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [_conformed(item, items, f"{path}[{index}]", unknown) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    properties: Mapping[str, Any] = schema.get("properties") or {}
    kept: Object = {}
    for name, inner in value.items():
        where = f"{path}.{name}" if path else name
        below = properties.get(name, schema.get("additionalProperties"))
        if isinstance(below, dict):
            if inner is not None or below.get("nullable"):
                kept[name] = _conformed(inner, below, where, unknown)
        elif below is True or schema.get("x-kubernetes-preserve-unknown-fields"):
            kept[name] = inner
        else:
            unknown.append(where)
    for name, below in properties.items():
        if name not in kept and "default" in below:
            kept[name] = _conformed(copy.deepcopy(below["default"]), below, name, unknown)
    return kept


_NETWORK = ipaddress.ip_network("10.96.0.0/16")
_OF_ADDRESSES = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def next_address(given: Counter[str]) -> str:
    """A cluster IP that nobody has; runs are equal."""
    given["addresses"] += 1
    return str(_NETWORK[given["addresses"]])


def complete_service(service: Object, old: Mapping[str, Any] | None, given: Counter[str]) -> None:
    """Defaults, cluster IP and node ports of a Service in a cluster of IPv4. `given` counts what was given."""
    spec: Object = {**(service.get("spec") or {})}
    service["spec"] = spec
    service.setdefault("status", {"loadBalancer": {}})
    spec.setdefault("type", "ClusterIP")
    ports = spec["ports"] = [{"protocol": "TCP", **port} for port in spec.get("ports") or ()]
    for port in ports:
        port["targetPort"] = port.get("targetPort") or port.get("port")
    if not ports:
        del spec["ports"]
    before: Mapping[str, Any] = (old or {}).get("spec") or {}
    if spec["type"] == "ExternalName":
        for field in _OF_ADDRESSES:
            spec.pop(field, None)
        return
    missing = [f"spec.ports[{at}].name" for at, port in enumerate(ports) if len(ports) > 1 and not port.get("name")]
    if not ports and spec.get("clusterIP") != "None":
        missing = ["spec.ports"]
    if missing:
        faults = [(field, "FieldValueRequired", "Required value") for field in missing]
        raise errors.invalid("Service", "", service["metadata"]["name"], faults)
    if before.get("clusterIPs"):
        for field in _OF_ADDRESSES:
            spec.setdefault(field, before[field])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    spec.setdefault("ipFamilies", ["IPv4"])
    spec["clusterIP"] = spec.get("clusterIP") or next_address(given)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
        kept = {port.get("port"): port.get("nodePort") for port in before.get("ports") or ()}
        for port in ports:
            if "nodePort" not in port:
                given["ports"] += 1
                port["nodePort"] = kept.get(port["port"]) or 29999 + given["ports"]


def complete_pod(pod: Object) -> None:
    """Defaults of a Pod."""
    spec: Object = {"terminationGracePeriodSeconds": 30, **(pod.get("spec") or {})}
    pod["spec"] = spec
    if not spec.get("containers"):
        fault = ("spec.containers", "FieldValueRequired", "Required value")
        raise errors.invalid("Pod", "", pod["metadata"]["name"], [fault])
    spec["containers"] = [
        {**one, "ports": [{"protocol": "TCP", **port} for port in one["ports"]]} if one.get("ports") else one
        for one in spec["containers"]
    ]
    pod.setdefault("status", {"phase": "Pending", "qosClass": "BestEffort"})


def complete_namespace(namespace: Object) -> None:
    """The label, the finalizer and the phase of a Namespace."""
    metadata = namespace["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    namespace.setdefault("spec", {"finalizers": ["kubernetes"]})
    namespace.setdefault("status", {"phase": "Active"})


def complete_definition(definition: Object, time: str, *, new: bool) -> None:
    """The finalizer and the status of a CustomResourceDefinition that is accepted at once."""
    if new:
        definition["metadata"].setdefault("finalizers", ["customresourcecleanup.apiextensions.k8s.io"])
    accepted = condition("Established", "InitialNamesAccepted", "the initial names have been accepted", time)
    definition.setdefault("status", {"conditions": [accepted]})


def condition(kind: str, reason: str, message: str, time: str) -> Object:
    """A condition that is so."""
    return {"lastTransitionTime": time, "message": message, "reason": reason, "status": "True", "type": kind}
