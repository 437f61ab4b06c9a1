"""What happens to an object before it is written: it is checked, and refused in the words of the real server; a custom
resource takes the form of its schema; a built-in one gets defaults and addresses, as far as somebody here reads them.

Functions of the request, the resource and the version that is stored; no store, no clock. Custom resources are
validated proper by the function that the server is given.
"""

from __future__ import annotations

import copy
import ipaddress
from collections import Counter
from collections.abc import Mapping
from typing import Any

from eurekube_sync.embedded.kubernetes import errors
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.store import Object

_ROOT_FIELDS = ("apiVersion", "kind", "metadata")
_METADATA_FIELDS = (
    *("annotations", "labels", "finalizers", "ownerReferences", "managedFields"),
    *("name", "namespace", "generateName", "uid", "resourceVersion", "generation", "selfLink"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
)


def typed(resource: Resource, body: Any) -> Object:
    """The body with its kind and apiVersion, or a refusal if it is no object."""
    if not isinstance(body, dict):
        raise errors.bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    head = {"kind": resource.kind, "apiVersion": resource.api_version}
    return {**body, **head, "metadata": body.get("metadata") or {}}


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
    spec: Object = {"type": "ClusterIP", **(service.get("spec") or {})}
    service["spec"] = spec
    service.setdefault("status", {"loadBalancer": {}})
    before: Mapping[str, Any] = (old or {}).get("spec") or {}
    ports = [
        {"protocol": "TCP", **port, "targetPort": port.get("targetPort") or port.get("port")}
        for port in spec.pop("ports", None) or ()
    ]
    if ports:
        spec["ports"] = ports
    if spec["type"] == "ExternalName":
        for field in _OF_ADDRESSES:
            spec.pop(field, None)
        return
    kept = {field: before[field] for field in _OF_ADDRESSES if field in before}
    service["spec"] = spec = {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"], **kept, **spec}
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
    spec["containers"] = [
        {**one, "ports": [{"protocol": "TCP", **port} for port in one["ports"]]} if one.get("ports") else one
        for one in spec.get("containers") or ()
    ]
    pod.setdefault("status", {"phase": "Pending", "qosClass": "BestEffort"})


def complete_namespace(namespace: Object) -> None:
    """The label, the finalizer and the phase of a Namespace."""
    metadata = namespace["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    namespace.setdefault("spec", {"finalizers": ["kubernetes"]})
    namespace.setdefault("status", {"phase": "Active"})


def complete_definition(definition: Object, time: str) -> None:
    """The status of a CustomResourceDefinition that is accepted at once."""
    accepted = condition("Established", "InitialNamesAccepted", "the initial names have been accepted", time)
    definition.setdefault("status", {"conditions": [accepted]})


def condition(kind: str, reason: str, message: str, time: str) -> Object:
    """A condition that is so."""
    return {"lastTransitionTime": time, "message": message, "reason": reason, "status": "True", "type": kind}
