"""A Gateway API that is not installed, or not any more, in a real cluster. It is a definite answer,
and no reason to remove anything."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.integration.gateways import API, accepted_by, installed_gateway_api
from tests.integration.hand_made import (
    make_app,
    make_namespace,
    make_syncer,
    remove_app,
    slices_of,
    syncers_of,
)
from tests.integration.program import Program, Registry
from tests.integration.test_addresses import explained_of
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers

NAMESPACE, BY_GATEWAY, BY_POD = "without-gateways", "by-gateway", "by-pod"
HOST = "by-gateway.example.com"
MISSING = "the Gateway API is not installed"


@pytest.fixture
def cluster(kubernetes_world: KubernetesWorld, crd: None) -> Iterator[KubernetesWorld]:
    """Two apps, of which one is registered by a Gateway."""
    world = kubernetes_world
    make_namespace(world, NAMESPACE)
    make_app(world, NAMESPACE, BY_GATEWAY, ["10.46.0.1"])
    make_app(world, NAMESPACE, BY_POD, ["10.46.1.1"])
    yield world
    for app in (BY_GATEWAY, BY_POD):
        remove_app(world, NAMESPACE, app)
        with contextlib.suppress(requests.HTTPError):
            world.request("DELETE", f"{syncers_of(NAMESPACE)}/{app}")


def make_syncers(world: KubernetesWorld) -> None:
    """One that needs the Gateway API, and one that does not."""
    gateway = {"mode": "service", "service": {"address": "Gateway"}}
    make_syncer(world, NAMESPACE, BY_GATEWAY, BY_GATEWAY, **gateway)
    make_syncer(world, NAMESPACE, BY_POD, BY_POD)


def make_route(world: KubernetesWorld) -> None:
    """Lead a host to the app by a Gateway that has accepted the route."""
    head = {"apiVersion": "gateway.networking.k8s.io/v1", "metadata": {"name": BY_GATEWAY}}
    listener = {"name": "http", "port": 8080, "protocol": "HTTP"}
    gateway = {"gatewayClassName": "example", "listeners": [listener]}
    path = f"{API}/namespaces/{NAMESPACE}"
    world.request("POST", f"{path}/gateways", {**head, "kind": "Gateway", "spec": gateway})
    route = {
        "parentRefs": [{"name": BY_GATEWAY}],
        "hostnames": [HOST],
        "rules": [{"backendRefs": [{"name": BY_GATEWAY, "port": 80}]}],
    }
    world.request("POST", f"{path}/httproutes", {**head, "kind": "HTTPRoute", "spec": route})
    world.request("PATCH", f"{path}/httproutes/{BY_GATEWAY}/status", accepted_by(BY_GATEWAY))


def condition(world: KubernetesWorld, syncer: str) -> dict[str, Any]:
    """The condition `Ready` of a syncer."""
    found = world.request("GET", f"{syncers_of(NAMESPACE)}/{syncer}")
    conditions: list[dict[str, Any]] = found["status"]["conditions"]
    (ready,) = [condition for condition in conditions if condition["type"] == "Ready"]
    return ready


def test_a_gateway_api_that_goes_takes_nothing_with_it(
    program: Program, registry: Registry, cluster: KubernetesWorld
) -> None:
    """Its syncer alone is not served, and its instance is renewed. Every other syncer goes on, and
    the pass is a good one. A person may still delete the syncer."""
    at_gateway = f"{program.owner}:{NAMESPACE}:{BY_GATEWAY}:{HOST}:8080"
    at_pods = [f"{program.owner}:{NAMESPACE}:{BY_POD}:10.46.1.{n}:8080" for n in (1, 2)]
    with installed_gateway_api(cluster):
        make_route(cluster)
        make_syncers(cluster)
        program.run_until(lambda: "in sync, 2 renewed" in program.seen[-1])
        assert registry.status(BY_GATEWAY.upper(), at_gateway) == "UP"

    endpoints = [{"addresses": [f"10.46.1.{n}"], "conditions": {"ready": True}} for n in (1, 2)]
    cluster.request("PATCH", f"{slices_of(NAMESPACE)}/{BY_POD}-1", {"endpoints": endpoints})
    # Each of these passes has to exit with 0.
    program.run_until(lambda: "nothing changed, 3 renewed" in program.seen[-1])
    assert registry.status(BY_GATEWAY.upper(), at_gateway) == "UP"
    assert [registry.status(BY_POD.upper(), id_) for id_ in at_pods] == ["UP", "UP"]
    ready = condition(cluster, BY_GATEWAY)
    assert (ready["status"], ready["reason"]) == ("False", "APIMissing")
    assert MISSING in ready["message"]
    assert "kubectl get crd httproutes.gateway.networking.k8s.io" in ready["message"]
    assert condition(cluster, BY_POD)["status"] == "True"
    code, said = explained_of(program, f"{NAMESPACE}/{BY_GATEWAY}")
    assert code == 6, said
    assert MISSING in said

    cluster.request("DELETE", f"{syncers_of(NAMESPACE)}/{BY_GATEWAY}")
    names = [BY_POD]
    program.run_until(lambda: _syncers(cluster) == names)
    assert registry.status(BY_GATEWAY.upper(), at_gateway) is None


def _syncers(world: KubernetesWorld) -> list[str]:
    items = world.request("GET", syncers_of(NAMESPACE))["items"]
    return [item["metadata"]["name"] for item in items]
