"""Changing addresses, and metadata from pods that may not be read: the program on real servers."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import requests

from tests.deployment.rendered import shipped
from tests.deployment.rights import SERVICE_ACCOUNT, granted
from tests.integration.program import Program, Registry
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers

NAMESPACE = "addresses"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
SYNCERS = f"/apis/eurekube.io/v1/namespaces/{NAMESPACE}/eurekasyncers"
NODE = "addresses-node"


@pytest.fixture
def world(kubernetes_world: KubernetesWorld) -> KubernetesWorld:
    """A node, and a namespace without Services, pods or syncers."""
    world = kubernetes_world
    with contextlib.suppress(requests.HTTPError):
        world.create_node(NODE)
    with contextlib.suppress(requests.HTTPError):
        world.create_namespace(NAMESPACE)
    for kind in ("services", "pods"):
        for item in world.request("GET", f"{CORE}/{kind}")["items"]:
            world.request(
                "DELETE", f"{CORE}/{kind}/{item['metadata']['name']}", {"gracePeriodSeconds": 0}
            )
    return world


def create_syncer(world: KubernetesWorld, name: str, **spec: Any) -> None:
    """Create a syncer of the Service with its name."""
    head = {"apiVersion": "eurekube.io/v1", "kind": "EurekaSyncer", "metadata": {"name": name}}
    world.request("POST", SYNCERS, {**head, "spec": {"selector": {"service": name}, **spec}})


def ready(world: KubernetesWorld, name: str) -> tuple[str, str, str]:
    """Value, reason and message of the syncer's condition Ready."""
    conditions = world.request("GET", f"{SYNCERS}/{name}")["status"]["conditions"]
    (found,) = [one for one in conditions if one["type"] == "Ready"]
    return found["status"], found["reason"], found["message"]


def balance(world: KubernetesWorld, *entries: dict[str, str]) -> None:
    """Set the load balancer's addresses, as a cloud's controller does."""
    status = {"loadBalancer": {"ingress": list(entries) or None}}
    world.request("PATCH", f"{CORE}/services/shop/status", {"status": status})


def test_a_load_balancer_is_waited_for_followed_and_never_dropped_for_being_away(
    program: Program, registry: Registry, world: KubernetesWorld
) -> None:
    """A pending address is a condition, with exit code 0. Instances are renewed while the address
    is away, and follow it when it is back."""
    world.create_service(NAMESPACE, "shop", ports={"http": 80}, type="LoadBalancer")
    world.create_pod(NAMESPACE, "shop-1", labels={"app": "shop"}, node=NODE, ips=["10.1.0.1"])
    world.wait_for_slices(NAMESPACE, "shop", {"10.1.0.1": "Ready"})
    create_syncer(world, "shop", mode="service", paths={"health": "/health"})
    first, second = (
        f"{program.owner}:{NAMESPACE}:shop:{host}:80" for host in ("203.0.113.7", "lb.example.com")
    )

    program.good()
    assert ready(world, "shop")[:2] == ("False", "AddressPending")
    assert program.eureka.methods() == {"GET": 1}

    balance(world, {"ip": "203.0.113.7"})
    program.good()
    instance = registry.instance("SHOP", first)
    assert instance is not None
    assert (instance["status"], instance["hostName"], instance["port"]["$"]) == (
        "UP",
        "203.0.113.7",
        80,
    )
    assert instance["healthCheckUrl"] == "http://203.0.113.7:80/health"
    assert ready(world, "shop")[:2] == ("True", "InSync")

    balance(world)
    registry.list_follows("SHOP", [first])
    program.good()
    assert program.eureka.methods() == {"GET": 1, "PUT": 1}
    assert ready(world, "shop")[:2] == ("False", "AddressPending")
    assert registry.status("SHOP", first) == "UP"

    balance(world, {"ip": "203.0.113.7"}, {"hostname": "lb.example.com"})
    program.good()
    instance = registry.instance("SHOP", second)
    assert instance is not None
    assert (instance["hostName"], instance["ipAddr"], instance["status"]) == (
        "lb.example.com",
        "lb.example.com",
        "UP",
    )

    registry.list_follows("SHOP", [first, second])
    world.set_ready(NAMESPACE, "shop-1", False)
    world.wait_for_slices(NAMESPACE, "shop", {"10.1.0.1": "NotReady"})
    asking = (
        "--brake-count=0",
        "--brake-percent=1",
    )  # a person has to approve, and no second pass may
    done = program.run("-o", "json", *asking)
    assert done.returncode == 31, (
        done.stdout + done.stderr
    )  # all our instances would turn DOWN, so the brake holds
    program.good(*asking, "--approve", ready(world, "shop")[2].rpartition(" ")[2])
    assert [registry.status("SHOP", id_) for id_ in (first, second)] == ["DOWN", "DOWN"]


def test_pods_that_may_not_be_read_take_no_metadata_away(
    program: Program, registry: Registry, world: KubernetesWorld
) -> None:
    """With the shipped rights labels become metadata. Without the right to list pods the instance
    stays as it is."""
    world.create_service(NAMESPACE, "shop", ports={"http": 8080})
    world.create_pod(
        NAMESPACE, "shop-1", labels={"app": "shop", "version": "2.1"}, node=NODE, ips=["10.1.0.1"]
    )
    world.wait_for_slices(NAMESPACE, "shop", {"10.1.0.1": "Ready"})
    create_syncer(world, "shop", metadataFrom=[{"key": "version", "podLabel": "version"}])
    id_ = f"{program.owner}:{NAMESPACE}:shop:10.1.0.1:8080"
    with granted(world, shipped()) as token:
        program.token = token
        program.good()
        instance = registry.instance("SHOP", id_)
        assert instance is not None
        assert instance["metadata"]["version"] == "2.1"

        role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/eurekube-sync"
        rules = world.request("GET", role)["rules"]
        world.request(
            "PATCH", role, {"rules": [rule for rule in rules if rule.get("resources") != ["pods"]]}
        )
        world.wait_for_right(SERVICE_ACCOUNT, "list", "pods", granted=False)
        for _ in range(2):
            done = program.run()
        assert done.returncode == 11, done.stdout + done.stderr
        assert "Pods" in done.stdout
        instance = registry.instance("SHOP", id_)
        assert instance is not None
        assert (instance["status"], instance["metadata"]["version"]) == ("UP", "2.1")
        assert ready(world, "shop")[:2] == ("Unknown", "SourceUnknown")
