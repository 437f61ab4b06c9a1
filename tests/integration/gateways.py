"""The Gateway API in a real cluster, by its released definitions, without a controller of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import requests
import yaml

from tests.integration.conftest import CRD_PATH
from tests.servers.go_builds import gateway_api
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

API = "/apis/gateway.networking.k8s.io/v1"


@contextlib.contextmanager
def installed_gateway_api(world: KubernetesWorld) -> Iterator[None]:
    """Have HTTPRoutes and Gateways in a cluster. Afterwards they are gone."""
    definitions: list[dict[str, Any]] = []
    for plural in ("httproutes", "gateways"):
        file = gateway_api() / f"gateway.networking.k8s.io_{plural}.yaml"
        definition = yaml.safe_load(file.read_text(encoding="utf-8"))
        definition.pop("status", None)
        definitions.append(definition)
    for definition in definitions:
        world.request("POST", CRD_PATH, definition)
    try:
        wait_until(lambda: _is_served(world), "the Gateway API was not established")
        yield
    finally:
        for definition in definitions:
            world.request("DELETE", f"{CRD_PATH}/{definition['metadata']['name']}")
        wait_until(lambda: not _is_served(world), "the Gateway API did not go")


def _is_served(world: KubernetesWorld) -> bool:
    with contextlib.suppress(requests.HTTPError):
        for plural in ("gateways", "httproutes"):
            world.request("GET", f"{API}/{plural}")
        return True
    return False


def accepted_by(gateway: str, *, namespace: str | None = None) -> dict[str, Any]:
    """The status of an HTTPRoute that this Gateway's controller accepted. `namespace` is the
    Gateway's, if the route names it."""
    parent = {"name": gateway} if namespace is None else {"name": gateway, "namespace": namespace}
    accepted = {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    controller = {"controllerName": "example.com/controller", "conditions": [accepted]}
    return {"status": {"parents": [{"parentRef": parent, **controller}]}}
