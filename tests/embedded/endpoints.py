"""The resource Endpoints, and the slices that mirror Endpoints written by hand.

Follows kube-controller-manager's endpointslicemirroring controller (Services without a selector
only). Knows no store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.slices import slice_of

ENDPOINTS = Resource(kind="Endpoints", plural="endpoints", short_names=("ep",))
MIRRORED_BY = "endpointslicemirroring-controller.k8s.io"
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"

Object = Mapping[str, Any]


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
