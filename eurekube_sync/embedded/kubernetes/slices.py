"""Pure functions that make the EndpointSlices of a Service from its pods and nodes.

Follows the reconciler of k8s.io/endpointslice in the choice of pods, the three conditions, named
target ports, and one set of slices per address family and set of ports.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

MANAGED_BY = "endpointslice-controller.k8s.io"
_PER_SLICE = 100
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

Object = Mapping[str, Any]
Fields = dict[str, Any]


def slices_of(
    service: Object, pods: Iterable[Object], node: Callable[[str], Object | None]
) -> tuple[Fields, ...]:
    """Make the slices of one Service, without uid and times. A Service without a selector has
    none."""
    spec = service["spec"]
    if not spec.get("selector") or spec.get("type") == "ExternalName":
        return ()
    selected = _selected(spec["selector"], pods)
    made: list[Fields] = []
    for family in spec.get("ipFamilies") or ("IPv4",):
        for ports, endpoints in _by_ports(spec, selected, family, node):
            for start in range(0, max(len(endpoints), 1), _PER_SLICE):
                part = endpoints[start : start + _PER_SLICE]
                made.append(slice_of(service, family, ports, part, len(made)))
    return tuple(made)


def _by_ports(
    spec: Object, pods: Iterable[Object], family: str, node: Callable[[str], Object | None]
) -> list[tuple[list[Fields], list[Fields]]]:
    """Return each set of ports with its endpoints; no ports and no endpoints if there are none."""
    groups: list[tuple[list[Fields], list[Fields]]] = []
    for pod in pods:
        address = address_of(pod, family)
        pod_node = node(pod["spec"].get("nodeName") or "")
        if address is None:
            continue
        if pod_node is None and not spec.get("publishNotReadyAddresses"):
            continue  # the real controller skips a pod whose Node does not exist
        ports = ports_of(spec, pod)
        endpoint = _endpoint(spec, pod, address, pod_node)
        for known, endpoints in groups:
            if known == ports:
                endpoints.append(endpoint)
                break
        else:
            groups.append((ports, [endpoint]))
    return groups or [([], [])]


def _selected(selector: Object, pods: Iterable[Object]) -> list[Object]:
    """Return the pods that a selector selects, sorted by name."""
    selected: list[Object] = []
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        if selector.items() <= labels.items():
            selected.append(pod)
    return sorted(selected, key=lambda pod: str(pod["metadata"]["name"]))


def has_address(pod: Object) -> bool:
    """Say whether a pod has an address, without which it is in no slice."""
    status = pod.get("status") or {}
    return bool(status.get("podIP") or status.get("podIPs"))


def address_of(pod: Object, family: str) -> str | None:
    """Return the pod's address of a family; None without one, or if the pod has ended."""
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return None
    for entry in status.get("podIPs") or [{"ip": status.get("podIP")}]:
        address: str = entry.get("ip") or ""
        if address and (":" in address) == (family == "IPv6"):
            return address
    return None


def ports_of(spec: Object, pod: Object) -> list[Fields]:
    """Return the Service's ports with the pod's port numbers, without named ports that the pod does
    not have."""
    ports: list[Fields] = []
    for port in spec.get("ports") or ():
        number = port.get("targetPort", port.get("port"))
        if not isinstance(number, int):
            number = _container_port(pod, number, port["protocol"])
        if number is None:
            continue
        name = port.get("name") or ""
        ports.append({"name": name, "port": number, "protocol": port["protocol"]})
    return ports


def _container_port(pod: Object, name: str, protocol: str) -> int | None:
    """Return the pod's port of a name; of several, the first counts."""
    for container in pod["spec"].get("containers") or ():
        for port in container.get("ports") or ():
            if (port.get("name"), port.get("protocol", "TCP")) == (name, protocol):
                return int(port["containerPort"])
    return None


def _endpoint(spec: Object, pod: Object, address: str, node: Object | None) -> Fields:
    metadata = pod["metadata"]
    serving = _is_ready(pod)
    terminating = "deletionTimestamp" in metadata
    ready = bool(spec.get("publishNotReadyAddresses")) or (serving and not terminating)
    target = {field: metadata[field] for field in ("namespace", "name", "uid")}
    endpoint: Fields = {
        "addresses": [address],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": {"kind": "Pod", **target},
    }
    if pod["spec"].get("nodeName"):
        endpoint["nodeName"] = pod["spec"]["nodeName"]
    labels = node["metadata"].get("labels") if node else None
    zone = (labels or {}).get("topology.kubernetes.io/zone")
    if zone:
        endpoint["zone"] = zone
    return endpoint


def _is_ready(pod: Object) -> bool:
    """Say whether the pod's condition Ready is True."""
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            return bool(condition.get("status") == "True")
    return False


def slice_of(
    service: Object,
    family: str,
    ports: list[Fields],
    endpoints: list[Fields],
    index: int,
    *,
    by: str = MANAGED_BY,
) -> Fields:
    """Make one slice of a Service. Each `index` gives another name."""
    metadata = service["metadata"]
    name, uid = metadata["name"], metadata["uid"]
    labels = {
        **(metadata.get("labels") or {}),
        "endpointslice.kubernetes.io/managed-by": by,
        "kubernetes.io/service-name": name,
    }
    if service["spec"].get("clusterIP") == "None":
        labels["service.kubernetes.io/headless"] = ""
    digest = hashlib.sha256(f"{uid}/{index}".encode()).digest()
    suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:5])
    owner = {"apiVersion": "v1", "kind": "Service", "name": name, "uid": uid, "controller": True}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{name}-{suffix}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner],
        },
        "addressType": family,
        "endpoints": endpoints or None,
        "ports": ports or None,
    }
