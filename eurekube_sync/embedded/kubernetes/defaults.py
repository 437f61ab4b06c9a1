"""What the real server adds to a built-in object: defaults, allocated addresses and node ports.

One function per kind, called on a private copy of the object before it is stored.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from eurekube_sync.embedded.kubernetes.errors import invalid

_NETWORKS = {"IPv4": ipaddress.ip_network("10.96.0.0/16"), "IPv6": ipaddress.ip_network("fd00:10:96::/112")}
_NODE_PORTS = range(30000, 32768)

Object = dict[str, Any]


class Addresses:
    """Cluster IPs and node ports in use; the lowest free one is given, so that runs are equal."""

    def __init__(self, families: tuple[str, ...]) -> None:
        self.families = families
        self._used: set[str] = set()
        self._ports: set[int] = set()
        self._next = dict.fromkeys(_NETWORKS, 1)

    def take(self, family: str) -> str:
        """A free cluster IP of a family."""
        network = _NETWORKS[family]
        while True:
            address = str(network[self._next[family]])
            self._next[family] += 1
            if address not in self._used:
                self._used.add(address)
                return address

    def claim(self, address: str, service: str) -> None:
        """Use the cluster IP that a Service asks for; 422 if it is taken or outside of the range."""
        parsed = ipaddress.ip_address(address)
        why = ""
        if parsed not in _NETWORKS[f"IPv{parsed.version}"]:
            why = f"failed to allocate IP {address}: the provided IP is not in the valid range. "
        elif address in self._used:
            why = f"failed to allocate IP {address}: provided IP is already allocated"
        if why:
            text = f'Invalid value: ["{address}"]: {why}'
            raise invalid("Service", "", service, [("spec.clusterIPs", "FieldValueInvalid", text)])
        self._used.add(address)

    def take_port(self) -> int:
        """A free node port."""
        port = next(port for port in _NODE_PORTS if port not in self._ports)
        self._ports.add(port)
        return port

    def release(self, service: Mapping[str, Any]) -> None:
        """Free what a deleted Service had."""
        spec = service.get("spec") or {}
        for address in spec.get("clusterIPs") or ():
            if address != "None":
                self._used.discard(address)
                family = "IPv6" if ":" in address else "IPv4"
                offset = int(ipaddress.ip_address(address)) - int(_NETWORKS[family].network_address)
                self._next[family] = min(self._next[family], offset)
        self._ports.difference_update(port["nodePort"] for port in spec.get("ports") or () if "nodePort" in port)


def complete_service(service: Object, old: Mapping[str, Any] | None, addresses: Addresses) -> None:
    """Defaults, cluster IPs, families and node ports of a Service."""
    spec: Object = {**(service.get("spec") or {})}
    service["spec"] = spec
    service.setdefault("status", {"loadBalancer": {}})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec.get("ports"):
        spec["ports"] = [_service_port(port) for port in spec["ports"]]
    else:
        spec.pop("ports", None)
    before: Mapping[str, Any] = (old or {}).get("spec") or {}
    if spec["type"] == "ExternalName":
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            spec.pop(name, None)
        return
    spec.setdefault("internalTrafficPolicy", "Cluster")
    _check_ports(service)
    _cluster_addresses(service, before, addresses)
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
        kept = {port.get("port"): port.get("nodePort") for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            if "nodePort" not in port:
                port["nodePort"] = kept.get(port["port"]) or addresses.take_port()
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


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
    if not ports and spec.get("clusterIP") != "None":
        raise invalid("Service", "", name, [("spec.ports", "FieldValueRequired", "Required value")])
    if len(ports) > 1:
        missing = [index for index, port in enumerate(ports) if not port.get("name")]
        if missing:
            causes = [(f"spec.ports[{index}].name", "FieldValueRequired", "Required value") for index in missing]
            raise invalid("Service", "", name, causes)


def _cluster_addresses(service: Object, before: Mapping[str, Any], addresses: Addresses) -> None:
    spec = service["spec"]
    name = service["metadata"]["name"]
    if before.get("clusterIPs"):
        asked = spec.get("clusterIP") or before["clusterIP"]
        if asked != before["clusterIP"]:
            text = f'Invalid value: ["{asked}"]: may not change once set'
            raise invalid("Service", "", name, [("spec.clusterIPs[0]", "FieldValueInvalid", text)])
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            spec.setdefault(field, before[field])
        return
    headless = spec.get("clusterIP") == "None"
    if headless and not spec.get("selector"):
        spec.setdefault("ipFamilyPolicy", "RequireDualStack")
        spec.setdefault("ipFamilies", [addresses.families[0], *(f for f in _NETWORKS if f != addresses.families[0])])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    dual = spec["ipFamilyPolicy"] != "SingleStack"
    asked_families: Iterable[str] = spec.get("ipFamilies") or ()
    families = [*asked_families, *(family for family in addresses.families if family not in asked_families)]
    spec["ipFamilies"] = families if dual else families[:1]
    if headless:
        spec["clusterIPs"] = ["None"]
        return
    if spec.get("clusterIP"):
        addresses.claim(spec["clusterIP"], name)
        given = [spec["clusterIP"]]
    else:
        given = []
    for family in spec["ipFamilies"][len(given) :]:
        if family not in addresses.families:
            text = f'Invalid value: "{family}": not configured on this cluster'
            raise invalid("Service", "", name, [("spec.ipFamilies[0]", "FieldValueInvalid", text)])
        given.append(addresses.take(family))
    spec["clusterIP"], spec["clusterIPs"] = given[0], given


def complete_pod(pod: Object) -> None:
    """Defaults of a Pod, as far as somebody here reads them."""
    spec: Object = {**(pod.get("spec") or {})}
    pod["spec"] = spec
    name = pod["metadata"]["name"]
    if not spec.get("containers"):
        raise invalid("Pod", "", name, [("spec.containers", "FieldValueRequired", "Required value")])
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
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
    """An EndpointSlice without endpoints or ports carries null there, not an empty list [real 1.36]."""
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


def _condition(kind: str, reason: str, message: str, time: str) -> Object:
    return {"lastTransitionTime": time, "message": message, "reason": reason, "status": "True", "type": kind}
