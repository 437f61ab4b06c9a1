"""Which pods are to be sent callers, by the words of the contract; shared with nothing in the product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from .addresses import reached_at
from .asked import Asked
from .world import is_true

Way = tuple[str, bool]
"""By what a syncer tells that a pod serves: its `terminating` and its `readinessGate`."""
_WAYS: tuple[Way, ...] = tuple(product(("Cancel", "KeepWhileServing"), (False, True)))


def way_of(asked: Asked) -> Way:
    """What it says of it."""
    return asked.terminating, asked.readiness_gate


def serves(pod: Mapping[str, Any], asked: Asked) -> bool:
    """Whether callers are to be sent to a pod: it is ready and stays, or serves to its end and is asked to."""
    return _serves_so(pod, way_of(asked))


def _serves_so(pod: Mapping[str, Any], way: Way) -> bool:
    terminating, gated = way
    if "deletionTimestamp" in pod["metadata"]:
        return terminating == "KeepWhileServing" and is_true(pod, "Ready")
    # Ready itself waits for our gate.
    return is_true(pod, "ContainersReady" if gated else "Ready")


def is_behind(pod: Mapping[str, Any], service: Mapping[str, Any]) -> bool:
    """Whether a Service selects it, and it has an address."""
    metadata, selector = pod["metadata"], service["spec"]["selector"]
    return (
        metadata["namespace"] == service["metadata"]["namespace"]
        and selector.items() <= metadata.get("labels", {}).items()
        and bool(pod["status"].get("podIP"))
    )


def ready_behind(services: list[dict[str, Any]], pods: list[dict[str, Any]]) -> Iterator[tuple[str, str, str, Way]]:
    """Namespace, label and address of each that serves in some way, and of the Service before it, with the way."""
    for service in services:
        metadata = service["metadata"]
        namespace, label = metadata["namespace"], metadata["labels"]["app"]
        hosts = _addresses_of(service)
        for pod in pods:
            if not is_behind(pod, service):
                continue
            for way in _WAYS:
                if _serves_so(pod, way):
                    for host in (pod["status"]["podIP"], *hosts):
                        yield namespace, label, host, way


def _addresses_of(service: Mapping[str, Any]) -> set[str]:
    return {host for kind in ("ClusterIP", "Auto", "ExternalIP") for host in reached_at(service, Asked(address=kind))}


def wished(serves: bool, asked: Asked) -> bool | None:
    """Whether it is to be UP; None: it is not to stand."""
    if serves:
        return True
    return None if asked.not_ready == "Cancel" else False
