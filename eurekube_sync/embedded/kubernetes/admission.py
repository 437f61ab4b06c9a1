"""What happens to an object before it is written: it is checked, and refused in the words of the real server; a custom
resource takes the form of its schema; a built-in one gets defaults and addresses, as far as somebody here reads them.

Functions of the request, the resource and the version that is stored; no store, no clock. Custom resources are
validated proper by the function that the server is given.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Mapping
from typing import Any

from eurekube_sync.embedded.kubernetes import errors
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.store import Object


def typed(resource: Resource, body: Any) -> Object:
    """The body with its kind and apiVersion, or a refusal if it is no object."""
    if not isinstance(body, dict):
        raise errors.bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    head = {"kind": resource.kind, "apiVersion": resource.api_version}
    return {**body, **head, "metadata": body.get("metadata") or {}}


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
