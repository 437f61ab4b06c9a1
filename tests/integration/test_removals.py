"""Removals on real servers. Two of three apps, or a namespace with four, may go at once. Held are
the deletion of 30 apps, and 60 pods that become unready, while a dead pod of another app is
removed."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import requests

from tests.integration.program import Program, Registry
from tests.servers.world import EndpointState, KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

NODE = "removals-node"
TWO_MINUTES = 120.0


@dataclass
class Shop:
    """Apps whose pods the test controls, as their kubelet does."""

    world: KubernetesWorld
    registry: Registry
    owner: str
    pods: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """Addresses by namespace and app. The pod of the n-th address is `app-n`."""

    def deploy(self, namespace: str, app: str, pods: int) -> None:
        """Create a Service, a syncer and this many ready pods."""
        with contextlib.suppress(requests.HTTPError):
            self.world.create_node(NODE)
        with contextlib.suppress(requests.HTTPError):
            self.world.create_namespace(namespace)
        self.world.create_service(namespace, app, ports={"http": 8080})
        number = len(self.pods)
        addresses = [f"10.{50 + number}.{n // 250}.{n % 250 + 1}" for n in range(pods)]
        for n, address in enumerate(addresses):
            self.world.create_pod(
                namespace, f"{app}-{n}", labels={"app": app}, node=NODE, ips=[address]
            )
        self.pods[namespace, app] = addresses
        self.world.wait_for_slices(namespace, app, dict.fromkeys(addresses, "Ready"))
        syncer = {"apiVersion": "eurekube.io/v1", "kind": "EurekaSyncer", "metadata": {"name": app}}
        self.world.request(
            "POST", syncers(namespace), {**syncer, "spec": {"selector": {"app": app}}}
        )

    def ids(self, namespace: str, app: str) -> list[str]:
        """The ids of the app's instances, of dead pods too."""
        return [
            f"{self.owner}:{namespace}:{app}:{address}:8080"
            for address in self.pods[namespace, app]
        ]

    def up(self, namespace: str, app: str) -> int:
        """How many of the app's instances are UP, by uncached reads."""
        return sum(
            self.registry.status(app.upper(), id_) == "UP" for id_ in self.ids(namespace, app)
        )

    def registered(self, program: Program) -> None:
        """Make one pass, and wait until the list shows all of its registrations."""
        program.good()
        for namespace, app in self.pods:
            self.registry.list_follows(app.upper(), self.ids(namespace, app))

    def kubelet(self, namespace: str) -> None:
        """End the terminating pods of a namespace."""
        for pod in self.world.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]:
            if "deletionTimestamp" in pod["metadata"]:
                self.world.delete_pod(namespace, pod["metadata"]["name"])

    def is_there(self, path: str) -> bool:
        """Whether the API server has the object."""
        try:
            self.world.request("GET", path)
        except requests.HTTPError as error:
            if error.response.status_code != 404:
                raise
            return False
        return True


def syncers(namespace: str, name: str = "") -> str:
    """The path of a namespace's syncers."""
    return f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekasyncers/{name}".rstrip("/")


@pytest.fixture
def shop(program: Program, registry: Registry, kubernetes_world: KubernetesWorld) -> Iterator[Shop]:
    """A world without apps. Afterwards its namespaces are deleted."""
    shop = Shop(kubernetes_world, registry, program.owner)
    yield shop
    for namespace in {namespace for namespace, _ in shop.pods}:
        with contextlib.suppress(requests.HTTPError):
            kubernetes_world.request("DELETE", f"/api/v1/namespaces/{namespace}")
        shop.kubelet(namespace)


@contextlib.contextmanager
def daemon(program: Program) -> Iterator[None]:
    """The program as it is deployed, pass after pass, with the default second look."""
    process = program.start("--daemon", "--interval=5s")
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        program.seen.append(out + err)
    assert process.returncode == 0, out + err
    assert "Traceback" not in err, err


def test_two_of_three_apps_are_deleted_at_once(program: Program, shop: Shop) -> None:
    """Their syncers and instances are gone within two minutes, although the pods are alive. The
    third app stays."""
    for app in ("one", "two", "three"):
        shop.deploy("removals-a", app, 2)
    with daemon(program):
        wait_until(
            lambda: all(shop.up(*one) == 2 for one in shop.pods), "the apps were not registered"
        )
        for app in ("one", "two"):
            shop.world.request("DELETE", syncers("removals-a", app))

        def gone() -> bool:
            there = [app for app in ("one", "two") if shop.is_there(syncers("removals-a", app))]
            return (
                not there and not shop.up("removals-a", "one") and not shop.up("removals-a", "two")
            )

        wait_until(gone, "two of three apps did not go", seconds=TWO_MINUTES)
        assert shop.up("removals-a", "three") == 2


def test_a_namespace_with_four_apps_is_deleted(program: Program, shop: Shop) -> None:
    """It is gone within two minutes, with its instances. The app of another namespace stays."""
    for app in ("one", "two", "three", "four"):
        shop.deploy("removals-b", app, 2)
    shop.deploy("removals-c", "five", 2)
    with daemon(program):
        wait_until(
            lambda: all(shop.up(*one) == 2 for one in shop.pods), "the apps were not registered"
        )
        shop.world.request("DELETE", "/api/v1/namespaces/removals-b")

        def gone() -> bool:
            shop.kubelet("removals-b")
            return not shop.is_there("/api/v1/namespaces/removals-b")

        wait_until(gone, "the namespace did not go", seconds=TWO_MINUTES)
        assert [shop.up(*one) for one in shop.pods] == [0, 0, 0, 0, 2]


def test_the_deletion_of_thirty_apps_is_held(program: Program, shop: Shop) -> None:
    """After `kubectl delete esync --all -A` every instance stays UP, and every syncer says why. An
    approval removes them."""
    for number in range(30):
        shop.deploy("removals-d", f"app{number}", 1)
    shop.registered(program)
    for number in range(30):
        shop.world.request("DELETE", syncers("removals-d", f"app{number}"))
    for _ in range(2):
        done = program.run()
        assert done.returncode == 31, done.stdout + done.stderr
        assert (
            "30 of 30 apps would have no UP instance left, because their syncers are being deleted"
            in done.stdout
        )
        assert program.eureka.methods()["DELETE"] == 0
        assert [shop.up(*one) for one in shop.pods] == [1] * 30
    found = shop.world.request("GET", syncers("removals-d", "app7"))
    assert found["metadata"]["finalizers"] == ["eurekube.io/cleanup"]
    held = next(one for one in found["status"]["conditions"] if one["type"] == "RemovalHeld")
    assert (held["status"], held["reason"]) == ("True", "TooManyRemovals")
    plan_id = held["message"].rpartition(" ")[2]
    done = program.run("--approve", plan_id)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [shop.up(*one) for one in shop.pods] == [0] * 30


def test_sixty_unready_pods_are_held_while_dead_pods_are_removed(
    program: Program, shop: Shop
) -> None:
    """The other app does not wait. One of the sixty pods ends, and its instance is removed as
    well."""
    shop.deploy("removals-e", "big", 60)
    shop.deploy("removals-e", "other", 3)
    shop.registered(program)
    for number in range(60):
        shop.world.set_ready("removals-e", f"big-{number}", False)
    shop.world.delete_pod("removals-e", "other-0")
    shop.world.delete_pod("removals-e", "big-0")
    states: dict[str, EndpointState] = dict.fromkeys(shop.pods["removals-e", "big"][1:], "NotReady")
    shop.world.wait_for_slices("removals-e", "big", states)
    shop.world.wait_for_slices(
        "removals-e", "other", dict.fromkeys(shop.pods["removals-e", "other"][1:], "Ready")
    )
    for _ in range(2):
        done = program.run()
        assert done.returncode == 31, done.stdout + done.stderr
        assert "UP instances, more than 30 %" in done.stdout
        assert (shop.up("removals-e", "big"), shop.up("removals-e", "other")) == (59, 2)


def test_a_hold_shows_on_every_screen_that_the_pods_still_run(program: Program, shop: Shop) -> None:
    """All Services got a wrong selector, and every pod is Ready. The condition, `status` and
    `explain` say so. What kubectl shows as READY is what Eureka holds. One app's pods then end, and
    the numbers follow."""
    apps = [f"app-{number}" for number in range(4)]
    for app in apps:
        shop.deploy("removals-f", app, 2)
    shop.registered(program)
    for app in apps:
        path = f"/api/v1/namespaces/removals-f/services/{app}"
        shop.world.request("PATCH", path, {"spec": {"selector": {"app": f"{app}s"}}})
    for app in apps:
        shop.world.wait_for_slices("removals-f", app, {})
    done = program.run("-o", "json")
    assert done.returncode == 31, done.stdout + done.stderr
    hold = json.loads(done.stdout)["hold"]
    assert hold["pods"] == {"ready": 8, "notReady": 0, "gone": 0, "unknown": 0}
    two = "2 of 2 pods still run and are Ready: this looks like a wrong selector; do not approve"
    approve = f"--approve {hold['planId']}"
    for app in apps:
        status = shop.world.request("GET", syncers("removals-f", app))["status"]
        assert (status["ready"], shop.up("removals-f", app)) == ("2/2", 2)
        (held,) = [one for one in status["conditions"] if one["type"] == "RemovalHeld"]
        assert two in held["message"]
        assert approve in held["message"]

    shown = answer_of(program, "status", "-o", "json")
    assert shown["hold"] == hold
    assert [(row["up"], row["desired"]) for row in shown["syncers"]] == [(2, 2)] * 4
    (explained,) = answer_of(program, "explain", "removals-f/app-1", "-o", "json")["explanations"]
    (brake,) = [link for link in explained["links"] if link["part"] == "brake"]
    assert brake["details"][:2] == [
        two,
        "Service app-1 selects app=app-1s: no pod has it; similar: app=app-1 (2 pods), app=app-0 "
        "(2 pods)",
    ]
    assert explained["fix"] == "kubectl edit service app-1 -n removals-f"
    assert approve in explained["otherwise"]

    for number in range(2):
        shop.world.delete_pod("removals-f", f"app-0-{number}")
    shop.world.set_ready("removals-f", "app-1-0", False)
    hold = json.loads(program.run("-o", "json").stdout)["hold"]
    assert hold["pods"]["ready"] == 5
    assert hold["pods"]["notReady"] == 1
    assert hold["advice"] == "SomeRun"


def answer_of(program: Program, command: str, *arguments: str) -> dict[str, Any]:
    """What a command that only looks prints as JSON."""
    looking = replace(program, options=())
    process = looking.start(*arguments, command=command)
    out, err = process.communicate(timeout=TWO_MINUTES)
    assert process.returncode == 6, out + err
    answer: dict[str, Any] = json.loads(out)
    return answer
