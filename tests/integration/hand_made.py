"""Apps whose endpoints the test writes: a Service without a selector, its only slice, and its
syncer."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import requests

from tests.servers.world import KubernetesWorld


def make_namespace(world: KubernetesWorld, name: str) -> None:
    """Create a namespace, if it does not exist."""
    with contextlib.suppress(requests.HTTPError):
        world.create_namespace(name)


def make_app(world: KubernetesWorld, namespace: str, name: str, addresses: Sequence[str]) -> None:
    """Create the Service `name`, labelled `app=name`, and a slice with these addresses at port
    8080, all ready."""
    service = {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    }
    world.request("POST", f"/api/v1/namespaces/{namespace}/services", service)
    piece = {
        "metadata": {"name": f"{name}-1", "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080}],
        "endpoints": [
            {"addresses": [address], "conditions": {"ready": True}} for address in addresses
        ],
    }
    world.request("POST", slices_of(namespace), piece)


def remove_app(world: KubernetesWorld, namespace: str, name: str) -> None:
    """Remove the Service and the slice, if they exist."""
    for path in (
        f"/api/v1/namespaces/{namespace}/services/{name}",
        f"{slices_of(namespace)}/{name}-1",
    ):
        with contextlib.suppress(requests.HTTPError):
            world.request("DELETE", path)


def make_syncer(
    world: KubernetesWorld, namespace: str, name: str, app: str, **spec: Any
) -> dict[str, Any]:
    """Create a syncer that selects the app's Service."""
    body = {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaSyncer",
        "metadata": {"name": name},
        "spec": {"selector": {"app": app}, **spec},
    }
    return world.request("POST", syncers_of(namespace), body)


def syncers_of(namespace: str) -> str:
    """The path of a namespace's syncers."""
    return f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekasyncers"


def slices_of(namespace: str) -> str:
    """The path of a namespace's slices."""
    return f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"


def events_of(world: KubernetesWorld, namespace: str, reason: str) -> list[str]:
    """The messages of a namespace's events with this reason."""
    items = world.request("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    return [item["message"] for item in items if item["reason"] == reason]
