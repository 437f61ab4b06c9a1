"""A syncer is renamed on real servers while the new one cannot be read, or is not served."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.deployment.rendered import shipped
from tests.deployment.rights import SERVICE_ACCOUNT, granted
from tests.integration.hand_made import (
    events_of,
    make_app,
    make_namespace,
    make_syncer,
    remove_app,
    syncers_of,
)
from tests.integration.program import Program, Registry
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers

NAMESPACE, NODE = "renamed", "node-of-renamed"
ADDRESS, NEW = "10.24.0.1", "10.24.0.2"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/eurekube-sync"
LABEL = {"key": "version", "podLabel": "version"}


@pytest.fixture
def world(kubernetes_world: KubernetesWorld, crd: None) -> Iterator[KubernetesWorld]:
    """A Service `shop` with one ready pod; and another app, without which the brake would keep the
    last instance of all."""
    world = kubernetes_world
    make_namespace(world, NAMESPACE)
    with contextlib.suppress(requests.HTTPError):
        world.create_node(NODE)
    world.create_service(NAMESPACE, "shop", ports={"http": 8080})
    world.create_pod(NAMESPACE, "shop-1", labels={"app": "shop"}, node=NODE, ips=[ADDRESS])
    world.wait_for_slices(NAMESPACE, "shop", {ADDRESS: "Ready"})
    make_app(world, NAMESPACE, "other", ["10.24.0.9"])
    make_syncer(world, NAMESPACE, "other", "other")
    yield world
    remove_app(world, NAMESPACE, "other")
    world.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/services/shop")
    for item in world.request("GET", PODS)["items"]:
        world.delete_pod(NAMESPACE, item["metadata"]["name"])


def synced(world: KubernetesWorld, name: str) -> tuple[str, str]:
    """Reason and message of a syncer's condition Synced."""
    conditions = world.request("GET", f"{syncers_of(NAMESPACE)}/{name}")["status"]["conditions"]
    (found,) = [one for one in conditions if one["type"] == "Synced"]
    return found["reason"], found["message"]


def marked_syncer(registry: Registry, id_: str) -> Any:
    """The syncer in the mark of an instance of SHOP."""
    instance = registry.instance("SHOP", id_)
    return instance and instance["metadata"]["eurekube.syncer"]


@contextlib.contextmanager
def always_up(registry: Registry, id_: str) -> Iterator[None]:
    """Ask Eureka without end for an instance of SHOP, which must be UP each time."""
    stopped = threading.Event()
    faults: list[str | None] = []

    def read() -> None:
        while not stopped.is_set():
            if (status := registry.status("SHOP", id_)) != "UP":
                faults.append(status)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        yield
    finally:
        stopped.set()
        reading.join()
    assert faults == []


@pytest.mark.parametrize("way", ["deleted", "limit 0"])
def test_a_syncer_is_renamed_while_the_pods_may_not_be_listed(
    way: str, program: Program, registry: Registry, world: KubernetesWorld
) -> None:
    """The right to list Pods is taken away in that moment. At no time does Eureka lack an UP
    instance of the app, and the new syncer takes over once the right is back."""
    id_ = f"{program.owner}:{NAMESPACE}:shop:{ADDRESS}:8080"

    def marked() -> Any:
        return marked_syncer(registry, id_)

    with granted(world, shipped()) as token:
        program.token = token
        make_syncer(world, NAMESPACE, "first", "shop")
        program.good()
        make_syncer(world, NAMESPACE, "heir", "shop", metadataFrom=[LABEL])
        program.good()
        rules = world.request("GET", ROLE)["rules"]
        without = [rule for rule in rules if rule.get("resources") != ["pods"]]
        with always_up(registry, id_):
            world.request("PATCH", ROLE, {"rules": without})
            world.wait_for_right(SERVICE_ACCOUNT, "list", "pods", granted=False)
            if way == "deleted":
                world.request("DELETE", f"{syncers_of(NAMESPACE)}/first")
            else:
                world.request("PATCH", f"{syncers_of(NAMESPACE)}/first", {"spec": {"limit": 0}})
            for _ in range(3):
                done = program.run()
                assert done.returncode == 11, done.stdout + done.stderr
            assert marked() == f"{NAMESPACE}/first"
            if way == "deleted":
                reason, message = synced(world, "first")
                assert reason == "Deleting"
                assert f"syncer {NAMESPACE}/heir may claim it, and could not be read" in message
            world.request("PATCH", ROLE, {"rules": rules})
            world.wait_for_right(SERVICE_ACCOUNT, "list", "pods")
            program.run_until(lambda: marked() == f"{NAMESPACE}/heir")


def test_a_syncer_is_renamed_with_its_service(
    program: Program, registry: Registry, world: KubernetesWorld
) -> None:
    """The new Service has no slice yet when the old syncer and the old Service are deleted. At no
    time does Eureka lack an UP instance of the app."""
    id_ = f"{program.owner}:{NAMESPACE}:shop:{ADDRESS}:8080"
    make_syncer(world, NAMESPACE, "first", "shop")
    program.good()
    services = f"/api/v1/namespaces/{NAMESPACE}/services"
    new = f"{services}/shop-next"
    # Without a selector the controller writes no slice: it is late.
    labels = {"app": "shop-next"}
    world.create_service(NAMESPACE, "shop-next", ports={"web": 8080}, selector={}, labels=labels)
    try:
        with always_up(registry, id_):
            make_syncer(world, NAMESPACE, "heir", "shop-next", appName="shop", port="web")
            world.request("DELETE", f"{syncers_of(NAMESPACE)}/first")
            world.request("DELETE", f"{services}/shop")
            for _ in range(3):
                program.run()
            assert marked_syncer(registry, id_) == f"{NAMESPACE}/first"
            why = f"syncer {NAMESPACE}/heir may claim it, and is not served: NoEndpointSlices"
            assert why in synced(world, "first")[1]
            world.request("PATCH", new, {"spec": {"selector": {"app": "shop"}}})
            world.wait_for_slices(NAMESPACE, "shop-next", {ADDRESS: "Ready"})
            program.run_until(lambda: marked_syncer(registry, id_) == f"{NAMESPACE}/heir")
    finally:
        world.request("DELETE", new)
        world.create_service(NAMESPACE, "shop", ports={"http": 8080})  # for the next test


def test_a_pod_that_waits_while_its_app_is_gone_is_no_success(
    program: Program, registry: Registry, world: KubernetesWorld
) -> None:
    """The Service's ports get other names and numbers, so that the syncer's port is gone. The old
    pod ends, and the new one is ready: `run` says so in each mode, with a condition and one event,
    until the port is right."""
    ids = [f"{program.owner}:{NAMESPACE}:shop:{address}:8080" for address in (ADDRESS, NEW)]
    make_syncer(world, NAMESPACE, "first", "shop", port="http")
    program.good()
    assert registry.status("SHOP", ids[0]) == "UP"
    registry.list_follows(
        "SHOP", [ids[0]]
    )  # else the next pass would count an instance that its list does not show
    path = f"{syncers_of(NAMESPACE)}/first"
    service = f"/api/v1/namespaces/{NAMESPACE}/services/shop"
    before = world.request("GET", service)["spec"]["ports"]
    moved = [
        {"name": name, "port": port, "targetPort": port}
        for name, port in (("web", 9000), ("admin", 9090))
    ]
    world.request("PATCH", service, {"spec": {"ports": moved}})
    world.create_pod(NAMESPACE, "shop-2", labels={"app": "shop"}, node=NODE, ips=[NEW])
    world.delete_pod(NAMESPACE, "shop-1")
    world.wait_for_slices(NAMESPACE, "shop", {NEW: "Ready"})

    # The end of the last instance waits for a second look, 20 s later.
    for options in (("--passes=2", "--interval=25s"), ()):
        done = program.run(*options)
        assert done.returncode == 34, done.stdout + done.stderr
        assert (
            "app SHOP has no UP instance in Eureka, and 1 ready endpoint of it waits" in done.stdout
        )
    conditions = {one["type"]: one for one in world.request("GET", path)["status"]["conditions"]}
    assert conditions["Ready"]["reason"] == "LastInstanceLost"
    assert len(events_of(world, NAMESPACE, "LastInstanceLost")) == 1

    world.request("PATCH", service, {"spec": {"ports": before}})
    world.wait_for_slices(NAMESPACE, "shop", {NEW: "Ready"})
    program.good()
    assert registry.status("SHOP", ids[1]) == "UP"
