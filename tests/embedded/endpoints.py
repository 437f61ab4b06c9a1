"""Two small controllers as pure functions: the Endpoints that a Service should have, and the slices
that mirror Endpoints written by hand.

Follows kube-controller-manager's endpoints controller (a terminating pod is in none; a Service's
first family only) and its endpointslicemirroring controller (Services without a selector only).
Knows no store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eurekube_sync.embedded.kubernetes.slices import (
    address_of,
    is_ready,
    ports_of,
    selected_pods,
    slice_of,
    target_of,
)

MIRRORED_BY = "endpointslicemirroring-controller.k8s.io"
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"

Object = Mapping[str, Any]


def endpoints_of(service: Object, pods: Iterable[Object]) -> dict[str, Any] | None:
    """The Endpoints of one Service, without uid and times; None for a Service without a
    selector."""
    spec, metadata = service["spec"], service["metadata"]
    if not spec.get("selector") or spec.get("type") == "ExternalName":
        return None
    family = (spec.get("ipFamilies") or ["IPv4"])[0]
    published = bool(spec.get("publishNotReadyAddresses"))
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for pod in selected_pods(spec, pods):
        address = address_of(pod, family)
        if address is None or ("deletionTimestamp" in pod["metadata"] and not published):
            continue
        ports = ports_of(spec, pod)
        group = groups.setdefault(
            tuple(tuple(sorted(port.items())) for port in ports), {"ports": ports}
        )
        entry: dict[str, Any] = {"ip": address, "targetRef": target_of(pod)}
        if (pod.get("spec") or {}).get("nodeName"):
            entry["nodeName"] = pod["spec"]["nodeName"]
        group.setdefault(
            "addresses" if published or is_ready(pod) else "notReadyAddresses", []
        ).append(entry)
    subsets = [{key: value for key, value in group.items() if value} for group in groups.values()]
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {
                **(metadata.get("labels") or {}),
                "endpoints.kubernetes.io/managed-by": "endpoint-controller",
            },
        },
        **({"subsets": subsets} if subsets else {}),
    }


def mirror_of(service: Object, endpoints: Object) -> tuple[dict[str, Any], ...]:
    """The slices that mirror Endpoints; none for those of a Service with a selector."""
    labels = endpoints["metadata"].get("labels") or {}
    if service["spec"].get("selector") or labels.get(SKIP_MIRROR) == "true":
        return ()
    found: list[dict[str, Any]] = []
    for subset in endpoints.get("subsets") or ():
        by_family: dict[str, list[dict[str, Any]]] = {}
        for name, ready in (("addresses", True), ("notReadyAddresses", False)):
            for address in subset.get(name) or ():
                family = "IPv6" if ":" in address["ip"] else "IPv4"
                by_family.setdefault(family, []).append(_mirrored(address, ready=ready))
        for family, entries in by_family.items():
            found.append(
                slice_of(
                    service, family, subset.get("ports") or [], entries, len(found), by=MIRRORED_BY
                )
            )
    return tuple(found)


def _mirrored(address: Object, *, ready: bool) -> dict[str, Any]:
    copied = {key: address[key] for key in ("targetRef", "nodeName", "hostname") if key in address}
    return {"addresses": [address["ip"]], "conditions": {"ready": ready}, **copied}
