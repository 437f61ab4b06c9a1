"""What the real server adds to a built-in object: defaults, allocated addresses and node ports.

One function per kind, called on a private copy of the object before it is stored.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from eurekube_sync.embedded.kubernetes.errors import invalid

_NETWORKS = {"IPv4": ipaddress.ip_network("10.96.0.0/16"), "IPv6": ipaddress.ip_network("fd00:10:96::/112")}

Object = dict[str, Any]


class Addresses:
    """Cluster IPs and node ports: the next one is given, so that runs are equal, and none is given twice."""

    def __init__(self, families: tuple[str, ...]) -> None:
        self.families = families
        self._hosts = {family: network.hosts() for family, network in _NETWORKS.items()}
        self._ports = iter(range(30000, 32768))

    def take(self, family: str) -> str:
        """A cluster IP of a family."""
        return str(next(self._hosts[family]))

    def take_port(self) -> int:
        """A node port."""
        return next(self._ports)


def complete_service(service: Object, old: Mapping[str, Any] | None, addresses: Addresses) -> None:
    """Defaults, cluster IPs, families and node ports of a Service, as far as somebody here reads them."""
    spec: Object = {**(service.get("spec") or {})}
    service["spec"] = spec
    service.setdefault("status", {"loadBalancer": {}})
    spec.setdefault("type", "ClusterIP")
    if spec.get("ports"):
        spec["ports"] = [_service_port(port) for port in spec["ports"]]
    else:
        spec.pop("ports", None)
    before: Mapping[str, Any] = (old or {}).get("spec") or {}
    if spec["type"] == "ExternalName":
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            spec.pop(name, None)
        return
    _check_ports(service)
    _cluster_addresses(service, before, addresses)
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
        kept = {port.get("port"): port.get("nodePort") for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            if "nodePort" not in port:
                port["nodePort"] = kept.get(port["port"]) or addresses.take_port()


def _service_port(port: Mapping[str, Any]) -> Object:
    filled = {**port}
    filled.setdefault("protocol", "TCP")
    if filled.get("targetPort") in (None, "", 0):
        filled["targetPort"] = filled.get("port")
    return filled


def _check_ports(service: Mapping[str, Any]) -> None:
    spec = service["spec"]
    name = service["metadata"]["name"]
    ports = spec.get("ports") or []
    missing = [
        f"spec.ports[{index}].name" for index, port in enumerate(ports) if len(ports) > 1 and not port.get("name")
    ]
    if not ports and spec.get("clusterIP") != "None":
        missing = ["spec.ports"]
    if missing:
        raise invalid("Service", "", name, [(field, "FieldValueRequired", "Required value") for field in missing])


def _cluster_addresses(service: Object, before: Mapping[str, Any], addresses: Addresses) -> None:
    spec = service["spec"]
    if before.get("clusterIPs"):
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            spec.setdefault(field, before[field])
        return
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    asked: Iterable[str] = spec.get("ipFamilies") or ()
    families = [*asked, *(family for family in addresses.families if family not in asked)]
    spec["ipFamilies"] = families[:1] if spec["ipFamilyPolicy"] == "SingleStack" else families
    given = [spec["clusterIP"]] if spec.get("clusterIP") else []
    if given != ["None"]:
        given += [addresses.take(family) for family in spec["ipFamilies"][len(given) :]]
    spec["clusterIP"], spec["clusterIPs"] = given[0], given


def complete_pod(pod: Object) -> None:
    """Defaults of a Pod, as far as somebody here reads them."""
    spec: Object = {**(pod.get("spec") or {})}
    pod["spec"] = spec
    name = pod["metadata"]["name"]
    if not spec.get("containers"):
        raise invalid("Pod", "", name, [("spec.containers", "FieldValueRequired", "Required value")])
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec["containers"] = [_container(container) for container in spec["containers"]]
    pod.setdefault("status", {"phase": "Pending", "qosClass": "BestEffort"})


def _container(container: Mapping[str, Any]) -> Object:
    filled = {**container}
    if filled.get("ports"):
        filled["ports"] = [{**port, "protocol": port.get("protocol", "TCP")} for port in filled["ports"]]
    return filled


def complete_namespace(namespace: Object) -> None:
    """The label, the finalizer and the phase of a Namespace."""
    metadata = namespace["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    namespace.setdefault("spec", {"finalizers": ["kubernetes"]})
    namespace.setdefault("status", {"phase": "Active"})


def complete_slice(endpoint_slice: Object) -> None:
    """An EndpointSlice without endpoints or ports has null there, not an empty list [real 1.36]."""
    endpoints = [{**each, "conditions": each.get("conditions") or {}} for each in endpoint_slice.get("endpoints") or ()]
    endpoint_slice["endpoints"] = endpoints or None
    ports = endpoint_slice.get("ports")
    if ports:
        filled = [{**port, "name": port.get("name") or "", "protocol": port.get("protocol", "TCP")} for port in ports]
        endpoint_slice["ports"] = filled
    else:
        endpoint_slice["ports"] = None


def complete_definition(definition: Object, time: str, *, new: bool) -> None:
    """The status of a CustomResourceDefinition that is accepted at once."""
    spec: Object = {**definition["spec"]}
    names = {**spec["names"]}
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    spec["names"] = names
    spec.setdefault("conversion", {"strategy": "None"})
    definition["spec"] = spec
    if new:
        definition["metadata"].setdefault("finalizers", ["customresourcecleanup.apiextensions.k8s.io"])
    definition.setdefault(
        "status",
        {
            "conditions": [
                _condition("NamesAccepted", "NoConflicts", "no conflicts found", time),
                _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", time),
            ],
            "acceptedNames": names,
            "storedVersions": [version["name"] for version in spec["versions"] if version.get("storage")],
        },
    )


def terminating(time: str) -> Object:
    """The condition of a CustomResourceDefinition that is being deleted."""
    return _condition("Terminating", "InstanceDeletionInProgress", "CustomResource deletion is in progress", time)


def _condition(kind: str, reason: str, message: str, time: str) -> Object:
    return {"lastTransitionTime": time, "message": message, "reason": reason, "status": "True", "type": kind}
