"""A slice controller as one pure function: the EndpointSlices a Service should have, from its pods and nodes.

Follows k8s.io/endpointslice's reconciler: which pods count, the three conditions, named target ports, one set of
slices per address family and set of ports. Knows no store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

MANAGED_BY = "endpointslice-controller.k8s.io"
_PER_SLICE = 100
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

Object = Mapping[str, Any]
Nodes = Callable[[str], Object | None]


def slices_of(service: Object, pods: Iterable[Object], node: Nodes) -> tuple[dict[str, Any], ...]:
    """The slices of one Service, without uid and times; none for a Service without a selector."""
    spec = service["spec"]
    if not spec.get("selector") or spec.get("type") == "ExternalName":
        return ()
    wanted = spec["selector"].items()
    selected = (pod for pod in pods if wanted <= (pod["metadata"].get("labels") or {}).items())
    chosen = sorted(selected, key=lambda pod: str(pod["metadata"]["name"]))
    found: list[dict[str, Any]] = []
    for family in spec.get("ipFamilies") or ("IPv4",):
        groups: dict[tuple[Any, ...], tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {}
        for pod in chosen:
            address = address_of(pod, family)
            if address is None:
                continue
            pod_node = node((pod.get("spec") or {}).get("nodeName") or "")
            if pod_node is None and not spec.get("publishNotReadyAddresses"):
                continue  # the real one skips a pod whose Node object does not exist
            ports = ports_of(spec, pod)
            group = groups.setdefault(tuple(tuple(sorted(port.items())) for port in ports), (ports, []))
            group[1].append(_endpoint(spec, service, pod, address, pod_node))
        for ports, endpoints in groups.values() or [([], [])]:
            for start in range(0, max(len(endpoints), 1), _PER_SLICE):
                found.append(slice_of(service, family, ports, endpoints[start : start + _PER_SLICE], len(found)))
    return tuple(found)


def has_address(pod: Object) -> bool:
    """Whether a pod can be in a slice at all: one without an address changes none."""
    status = pod.get("status") or {}
    return bool(status.get("podIP") or status.get("podIPs"))


def address_of(pod: Object, family: str) -> str | None:
    """The pod's address of a family, while it has one and has not ended."""
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return None
    addresses = [entry.get("ip", "") for entry in status.get("podIPs") or ()] or [status.get("podIP") or ""]
    return next((address for address in addresses if address and (":" in address) == (family == "IPv6")), None)


def ports_of(spec: Mapping[str, Any], pod: Object) -> list[dict[str, Any]]:
    """The Service's ports with the pod's own numbers; a named one that it lacks is left out."""
    found: list[dict[str, Any]] = []
    for port in spec.get("ports") or ():
        number = _target(port, pod)
        if number is None:
            continue
        entry: dict[str, Any] = {"name": port.get("name") or "", "port": number, "protocol": port["protocol"]}
        if port.get("appProtocol"):
            entry["appProtocol"] = port["appProtocol"]
        found.append(entry)
    return found


def _target(port: Mapping[str, Any], pod: Object) -> int | None:
    target = port.get("targetPort", port.get("port"))
    if isinstance(target, int):
        return target
    for container in (pod.get("spec") or {}).get("containers") or ():
        for declared in container.get("ports") or ():
            if declared.get("name") == target and declared.get("protocol", "TCP") == port["protocol"]:
                return int(declared["containerPort"])
    return None


def _endpoint(
    spec: Mapping[str, Any], service: Object, pod: Object, address: str, node: Object | None
) -> dict[str, Any]:
    serving = is_ready(pod)
    terminating = "deletionTimestamp" in pod["metadata"]
    ready = bool(spec.get("publishNotReadyAddresses")) or (serving and not terminating)
    pod_spec = pod.get("spec") or {}
    endpoint: dict[str, Any] = {
        "addresses": [address],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
    }
    endpoint["targetRef"] = target_of(pod)
    if pod_spec.get("nodeName"):
        endpoint["nodeName"] = pod_spec["nodeName"]
    zone = ((node or {}).get("metadata") or {}).get("labels") or {}
    if zone.get("topology.kubernetes.io/zone"):
        endpoint["zone"] = zone["topology.kubernetes.io/zone"]
    return endpoint


def is_ready(pod: Object) -> bool:
    """The pod's own condition Ready."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(entry.get("type") == "Ready" and entry.get("status") == "True" for entry in conditions)


def target_of(pod: Object) -> dict[str, Any]:
    """`targetRef` of an endpoint."""
    metadata = pod["metadata"]
    return {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}


def slice_of(
    service: Object,
    family: str,
    ports: list[dict[str, Any]],
    endpoints: list[dict[str, Any]],
    index: int,
    *,
    by: str = MANAGED_BY,
) -> dict[str, Any]:
    """One slice of a Service, under a name of its own for each `index`."""
    metadata = service["metadata"]
    labels = {
        **(metadata.get("labels") or {}),
        "endpointslice.kubernetes.io/managed-by": by,
        "kubernetes.io/service-name": metadata["name"],
    }
    if service["spec"].get("clusterIP") == "None":
        labels["service.kubernetes.io/headless"] = ""
    digest = hashlib.sha256(f"{metadata['uid']}/{index}".encode()).digest()
    suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:5])
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{metadata['name']}-{suffix}",
            "generateName": f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "addressType": family,
        "endpoints": endpoints or None,
        "ports": ports or None,
    }
