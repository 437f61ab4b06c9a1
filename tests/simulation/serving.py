"""Which pods should get callers, by the words of the contract. It shares no code with the
product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from .addresses import reached_at
from .asked import Asked
from .world import is_true

Way = tuple[str, bool]
"""A syncer's `terminating` and `readinessGate`, which say when a pod serves."""
_WAYS: tuple[Way, ...] = tuple(product(("Cancel", "KeepWhileServing"), (False, True)))


def way_of(asked: Asked) -> Way:
    """Reads both from a spec."""
    return asked.terminating, asked.readiness_gate


def serves(pod: Mapping[str, Any], asked: Asked) -> bool:
    """Whether a pod should get callers: it is ready and stays, or it terminates and still serves,
    and the syncer wants that."""
    return _serves_so(pod, way_of(asked))


def _serves_so(pod: Mapping[str, Any], way: Way) -> bool:
    terminating, gated = way
    if "deletionTimestamp" in pod["metadata"]:
        return terminating == "KeepWhileServing" and is_true(pod, "Ready")
    # Ready itself waits for our gate.
    return is_true(pod, "ContainersReady" if gated else "Ready")


def is_behind(pod: Mapping[str, Any], service: Mapping[str, Any]) -> bool:
    """Whether a Service selects the pod, and it has an address."""
    metadata, selector = pod["metadata"], service["spec"]["selector"]
    return (
        metadata["namespace"] == service["metadata"]["namespace"]
        and selector.items() <= metadata.get("labels", {}).items()
        and bool(pod["status"].get("podIP"))
    )


def all_behind(
    services: list[dict[str, Any]], pods: list[dict[str, Any]]
) -> Iterator[tuple[str, str, str, str]]:
    """Namespace, label, address and UID of each pod behind a Service, ready or not."""
    for service in services:
        label = service["metadata"]["labels"]["app"]
        for pod in pods:
            if is_behind(pod, service):
                metadata = pod["metadata"]
                yield metadata["namespace"], label, pod["status"]["podIP"], metadata["uid"]


def ready_behind(
    services: list[dict[str, Any]], pods: list[dict[str, Any]]
) -> Iterator[tuple[str, str, str, Way]]:
    """Namespace, label and address of each pod that serves in some way, and of its Service, with
    the way."""
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
    return {
        host
        for kind in ("ClusterIP", "Auto", "ExternalIP")
        for host in reached_at(service, Asked(address=kind))
    }


def wished(serves: bool, asked: Asked) -> bool | None:
    """Whether it should be UP; None if it should not be registered."""
    if serves:
        return True
    return None if asked.not_ready == "Cancel" else False


def tells_its_port(asked: Asked, services: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the Services of a syncer have just one port that it may mean: the one that it names,
    or the one named `http`, or the only one."""
    named: set[Any] = set()
    every: set[Any] = set()
    for service in services:
        for port in service["spec"]["ports"]:
            every.add(port["targetPort"])
            if port["name"] == (asked.port or "http"):
                named.add(port["targetPort"])
    if not named and not asked.port:
        return len(every) == 1
    return len(named) == 1
