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

GROUP = "gateway.networking.k8s.io"
API, GRANT_API = f"/apis/{GROUP}/v1", f"/apis/{GROUP}/v1beta1"


@contextlib.contextmanager
def installed_gateway_api(world: KubernetesWorld) -> Iterator[None]:
    """Have HTTPRoutes, Gateways and ReferenceGrants in a cluster. Afterwards they are gone."""
    definitions: list[dict[str, Any]] = []
    for plural in ("httproutes", "gateways", "referencegrants"):
        file = gateway_api() / f"{GROUP}_{plural}.yaml"
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
        for path in (f"{API}/gateways", f"{API}/httproutes", f"{GRANT_API}/referencegrants"):
            world.request("GET", path)
        return True
    return False


def grant_to(service: str, *, namespace: str) -> dict[str, Any]:
    """A ReferenceGrant: HTTPRoutes of this namespace may lead to the Service."""
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "ReferenceGrant",
        "metadata": {"name": service},
        "spec": {
            "from": [{"group": GROUP, "kind": "HTTPRoute", "namespace": namespace}],
            "to": [{"group": "", "kind": "Service", "name": service}],
        },
    }


def accepted_by(gateway: str) -> dict[str, Any]:
    """The status of an HTTPRoute that this Gateway's controller accepted."""
    accepted = {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    controller = {"controllerName": "example.com/controller", "conditions": [accepted]}
    return {"status": {"parents": [{"parentRef": {"name": gateway}, **controller}]}}
