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
    chosen = selected_pods(spec, pods)
    found: list[Fields] = []
    for family in spec.get("ipFamilies") or ("IPv4",):
        groups: dict[tuple[Any, ...], tuple[list[Fields], list[Fields]]] = {}
        for pod in chosen:
            address = address_of(pod, family)
            pod_node = node(pod["spec"].get("nodeName") or "")
            if address is None or (pod_node is None and not spec.get("publishNotReadyAddresses")):
                continue  # the real controller skips a pod whose Node does not exist
            ports = ports_of(spec, pod)
            group = groups.setdefault(
                tuple(tuple(sorted(port.items())) for port in ports), (ports, [])
            )
            group[1].append(_endpoint(spec, pod, address, pod_node))
        for ports, endpoints in groups.values() or [([], [])]:
            for start in range(0, max(len(endpoints), 1), _PER_SLICE):
                found.append(
                    slice_of(
                        service, family, ports, endpoints[start : start + _PER_SLICE], len(found)
                    )
                )
    return tuple(found)


def selected_pods(spec: Object, pods: Iterable[Object]) -> list[Object]:
    """Return the pods that a Service selects, sorted by name."""
    wanted = spec["selector"].items()
    chosen = (pod for pod in pods if wanted <= (pod["metadata"].get("labels") or {}).items())
    return sorted(chosen, key=lambda pod: str(pod["metadata"]["name"]))


def has_address(pod: Object) -> bool:
    """Whether a pod has an address, without which it is in no slice."""
    status = pod.get("status") or {}
    return bool(status.get("podIP") or status.get("podIPs"))


def address_of(pod: Object, family: str) -> str | None:
    """Return the pod's address of a family; None without one, or if the pod has ended."""
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return None
    addresses = [entry.get("ip", "") for entry in status.get("podIPs") or ()] or [
        status.get("podIP") or ""
    ]
    return next(
        (address for address in addresses if address and (":" in address) == (family == "IPv6")),
        None,
    )


def ports_of(spec: Object, pod: Object) -> list[Fields]:
    """Return the Service's ports with the pod's port numbers, without named ports that the pod does
    not have."""
    declared = {
        (port.get("name"), port.get("protocol", "TCP")): int(port["containerPort"])
        for container in reversed(
            pod["spec"].get("containers") or ()
        )  # of ports with one name, the first counts
        for port in reversed(container.get("ports") or ())
    }
    found: list[Fields] = []
    for port in spec.get("ports") or ():
        target = port.get("targetPort", port.get("port"))
        number = target if isinstance(target, int) else declared.get((target, port["protocol"]))
        if number is not None:
            entry = {"name": port.get("name") or "", "port": number, "protocol": port["protocol"]}
            found.append(
                entry | ({"appProtocol": port["appProtocol"]} if port.get("appProtocol") else {})
            )
    return found


def _endpoint(spec: Object, pod: Object, address: str, node: Object | None) -> Fields:
    serving = is_ready(pod)
    terminating = "deletionTimestamp" in pod["metadata"]
    ready = bool(spec.get("publishNotReadyAddresses")) or (serving and not terminating)
    labels = (node or {"metadata": {}})["metadata"].get("labels") or {}
    places = {
        "nodeName": pod["spec"].get("nodeName"),
        "zone": labels.get("topology.kubernetes.io/zone"),
    }
    return {
        "addresses": [address],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": target_of(pod),
        **{name: place for name, place in places.items() if place},
    }


def is_ready(pod: Object) -> bool:
    """Whether the pod's condition Ready is True."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(
        entry.get("type") == "Ready" and entry.get("status") == "True" for entry in conditions
    )


def target_of(pod: Object) -> Fields:
    """Make the `targetRef` of a pod's endpoint."""
    return {
        "kind": "Pod",
        **{field: pod["metadata"][field] for field in ("namespace", "name", "uid")},
    }


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
    name = metadata["name"]
    labels = {
        **(metadata.get("labels") or {}),
        "endpointslice.kubernetes.io/managed-by": by,
        "kubernetes.io/service-name": name,
    }
    if service["spec"].get("clusterIP") == "None":
        labels["service.kubernetes.io/headless"] = ""
    digest = hashlib.sha256(f"{metadata['uid']}/{index}".encode()).digest()
    suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:5])
    owner = {"apiVersion": "v1", "kind": "Service", "name": name, "uid": metadata["uid"]}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{name}-{suffix}",
            "generateName": f"{name}-",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "addressType": family,
        "endpoints": endpoints or None,
        "ports": ports or None,
    }
