"""What the real server adds to a built-in object: defaults, allocated addresses and node ports, as far as somebody here
reads them. One function per kind, called on a private copy of the object before it is stored.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from eurekube_sync.embedded.kubernetes.errors import invalid

_NETWORK = ipaddress.ip_network("10.96.0.0/16")
_OF_ADDRESSES = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")

Object = dict[str, Any]


class Addresses:
    """Cluster IPs and node ports: the next one is given, so that runs are equal, and none is given twice."""

    def __init__(self) -> None:
        self._addresses = 0
        self._ports = 29999

    def take(self) -> str:
        """A cluster IP."""
        self._addresses += 1
        return str(_NETWORK[self._addresses])

    def take_port(self) -> int:
        """A node port."""
        self._ports += 1
        return self._ports


def complete_service(service: Object, old: Mapping[str, Any] | None, addresses: Addresses) -> None:
    """Defaults, cluster IP and node ports of a Service in a cluster of IPv4."""
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
        raise invalid("Service", "", service["metadata"]["name"], faults)
    if before.get("clusterIPs"):
        for field in _OF_ADDRESSES:
            spec.setdefault(field, before[field])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    spec.setdefault("ipFamilies", ["IPv4"])
    spec["clusterIP"] = spec.get("clusterIP") or addresses.take()
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
        kept = {port.get("port"): port.get("nodePort") for port in before.get("ports") or ()}
        for port in ports:
            if "nodePort" not in port:
                port["nodePort"] = kept.get(port["port"]) or addresses.take_port()


def complete_pod(pod: Object) -> None:
    """Defaults of a Pod."""
    spec: Object = {"terminationGracePeriodSeconds": 30, **(pod.get("spec") or {})}
    pod["spec"] = spec
    if not spec.get("containers"):
        fault = ("spec.containers", "FieldValueRequired", "Required value")
        raise invalid("Pod", "", pod["metadata"]["name"], [fault])
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


def complete_slice(endpoint_slice: Object) -> None:
    """An EndpointSlice without endpoints or ports has null there, not an empty list [real 1.36]."""
    endpoints = [{**each, "conditions": each.get("conditions") or {}} for each in endpoint_slice.get("endpoints") or ()]
    ports = [{"name": "", "protocol": "TCP", **port} for port in endpoint_slice.get("ports") or ()]
    endpoint_slice["endpoints"], endpoint_slice["ports"] = endpoints or None, ports or None


def complete_definition(definition: Object, time: str, *, new: bool) -> None:
    """The status of a CustomResourceDefinition that is accepted at once."""
    spec = definition["spec"]
    kind = spec["names"]["kind"]
    names = {"singular": kind.lower(), "listKind": f"{kind}List", **spec["names"]}
    definition["spec"] = {"conversion": {"strategy": "None"}, **spec, "names": names}
    if new:
        definition["metadata"].setdefault("finalizers", ["customresourcecleanup.apiextensions.k8s.io"])
    conditions = [
        condition("NamesAccepted", "NoConflicts", "no conflicts found", time),
        condition("Established", "InitialNamesAccepted", "the initial names have been accepted", time),
    ]
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    definition.setdefault("status", {"conditions": conditions, "acceptedNames": names, "storedVersions": stored})


def condition(kind: str, reason: str, message: str, time: str) -> Object:
    """A condition that is so."""
    return {"lastTransitionTime": time, "message": message, "reason": reason, "status": "True", "type": kind}
