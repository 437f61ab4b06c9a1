"""Deletions on real servers: of a namespace, of an abandoned syncer, of one that is created again,
and of one with a successor."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
import requests

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
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

NAMESPACE = "cleaner"
SYNCERS = syncers_of(NAMESPACE)
ADDRESSES = ("10.21.0.1", "10.21.0.2")


@pytest.fixture
def cart(kubernetes_world: KubernetesWorld) -> Iterator[None]:
    """The app `cart` with two addresses."""
    make_namespace(kubernetes_world, NAMESPACE)
    make_app(kubernetes_world, NAMESPACE, "cart", ADDRESSES)
    yield
    remove_app(kubernetes_world, NAMESPACE, "cart")


def ids(program: Program, app: str = "cart", namespace: str = NAMESPACE) -> list[str]:
    """The ids of the app's two instances."""
    return [f"{program.owner}:{namespace}:{app}:{address}:8080" for address in ADDRESSES]


def states(registry: Registry, program: Program, app: str = "cart") -> list[str | None]:
    """The statuses of both instances, by uncached reads."""
    return [registry.status(app.upper(), id_) for id_ in ids(program, app)]


def exists(world: KubernetesWorld, path: str) -> bool:
    """Whether an object exists."""
    try:
        world.request("GET", path)
    except requests.HTTPError as error:
        if error.response is None or error.response.status_code != 404:
            raise
        return False
    return True


@contextmanager
def watched(registry: Registry, wanted: Sequence[Sequence[tuple[str, str]]]) -> Iterator[list[str]]:
    """Reads uncached without pause, and expects an UP instance of each group at every moment. Gives
    the gaps that it saw."""
    gaps: list[str] = []
    stop = threading.Event()
    rounds = 0

    def watch() -> None:
        nonlocal rounds
        while not stop.is_set():
            for group in wanted:
                # A move between two reads is no gap, so the first instance is read again.
                if not any(registry.status(*key) == "UP" for key in (*group, group[0])):
                    gaps.append(f"{group}")
            rounds += 1

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield gaps
    finally:
        stop.set()
        thread.join()
    assert rounds > 5, "it looked too rarely to see anything"


def test_a_namespace_that_is_deleted_with_all_its_content_takes_its_instances_along(
    program: Program, registry: Registry, kubernetes_world: KubernetesWorld
) -> None:
    """Its pods terminate first (since 1.33 nothing else ends before), then Services, slices and the
    syncer. Events are refused there, which fails no pass. At the end neither the namespace nor an
    instance is left."""
    world, name = kubernetes_world, "cleaner-going"
    make_namespace(world, name)
    if not exists(world, "/api/v1/nodes/cleaner-node"):
        world.create_node("cleaner-node")
    world.create_service(name, "cart", ports={"http": 8080})
    for number, address in enumerate(ADDRESSES):
        world.create_pod(
            name,
            f"cart-{number}",
            labels={"app": "cart"},
            node="cleaner-node",
            ips=[address],
            ports={"http": 8080},
        )
    world.wait_for_slices(name, "cart", dict.fromkeys(ADDRESSES, "Ready"))
    make_syncer(world, name, "cart", "cart")
    program.good()
    mine = ids(program, namespace=name)
    assert [registry.status("CART", id_) for id_ in mine] == ["UP", "UP"]
    registry.list_follows("CART", mine)

    world.request("DELETE", f"/api/v1/namespaces/{name}")
    world.wait_for_slices(name, "cart", dict.fromkeys(ADDRESSES, "Terminating"))
    program.good()  # the syncer still exists, and its only app terminates: nothing is held
    assert [registry.status("CART", id_) for id_ in mine] == [None, None]
    for number in range(len(ADDRESSES)):
        world.delete_pod(name, f"cart-{number}")  # their kubelet would do this
    wait_until(
        lambda: "deletionTimestamp" in world.request("GET", f"{syncers_of(name)}/cart")["metadata"],
        "the namespace controller did not come to the syncer",
    )
    program.run_until(lambda: not exists(world, f"/api/v1/namespaces/{name}"))
    assert [registry.status("CART", id_) for id_ in mine] == [None, None]


def test_a_deletion_waits_for_eureka_until_a_person_abandons_it(
    program: Program, registry: Registry, cart: None, kubernetes_world: KubernetesWorld
) -> None:
    """The condition and an event say what it waits for. After that another event says how long the
    instances live, which stay."""
    world = kubernetes_world
    make_syncer(world, NAMESPACE, "cart", "cart")
    program.good()
    world.request("DELETE", f"{SYNCERS}/cart")
    away = ("--eureka-url", "http://127.0.0.1:9/eureka", "--pass-timeout", "20s")
    for _ in range(2):
        assert program.run(*away).returncode == 20
        status = world.request("GET", f"{SYNCERS}/cart")["status"]
        synced = next(c for c in status["conditions"] if c["type"] == "Synced")
        assert (synced["status"], synced["reason"]) == ("False", "Deleting")
        assert "Eureka could not be read" in synced["message"]
    assert any(
        "Eureka could not be read" in message for message in events_of(world, NAMESPACE, "Deleting")
    )

    world.request(
        "PATCH", f"{SYNCERS}/cart", {"metadata": {"annotations": {"eurekube.io/abandon": "true"}}}
    )
    assert program.run(*away).returncode == 20
    assert not exists(world, f"{SYNCERS}/cart")
    assert states(registry, program) == ["UP", "UP"]
    assert any(
        "expires 10 minutes after" in message
        for message in events_of(world, NAMESPACE, "Abandoned")
    )


def test_a_syncer_that_is_created_again_keeps_its_instances(
    program: Program, registry: Registry, cart: None, kubernetes_world: KubernetesWorld
) -> None:
    """It is deleted by force and created again between two passes. It has another UID and a
    finalizer of its own, and Eureka gets only renewals."""
    world = kubernetes_world
    first = make_syncer(world, NAMESPACE, "cart", "cart")
    program.good()
    world.request("PATCH", f"{SYNCERS}/cart", {"metadata": {"finalizers": None}})
    world.request("DELETE", f"{SYNCERS}/cart")
    assert not exists(world, f"{SYNCERS}/cart")
    second = make_syncer(world, NAMESPACE, "cart", "cart")
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    with watched(registry, [[("CART", id_)] for id_ in ids(program)]) as gaps:
        for _ in range(2):
            program.good("--eureka-batch=off")
            assert program.eureka.methods().keys() <= {"GET", "PUT"}
    assert gaps == []
    now = world.request("GET", f"{SYNCERS}/cart")
    assert now["metadata"]["finalizers"] == ["eurekube.io/cleanup"]
    assert now["status"]["ready"] == "2/2"


@pytest.mark.parametrize("app", ["cart", "basket"])
def test_a_successor_takes_over_without_a_gap(
    app: str, program: Program, registry: Registry, cart: None, kubernetes_world: KubernetesWorld
) -> None:
    """The successor has the same ids or others. Uncached reads without pause find each pod UP all
    the time. The old syncer keeps a finalizer of others."""
    world = kubernetes_world
    make_syncer(world, NAMESPACE, "old", "cart")
    program.good()
    world.request(
        "PATCH",
        f"{SYNCERS}/old",
        {"metadata": {"finalizers": ["eurekube.io/cleanup", "example.com/keeps"]}},
    )
    groups = [
        list(dict.fromkeys([("CART", old), (app.upper(), new)]))
        for old, new in zip(ids(program), ids(program, app), strict=True)
    ]
    with watched(registry, groups) as gaps:
        program.good()
        make_syncer(world, NAMESPACE, "new", "cart", appName=app)
        world.request("DELETE", f"{SYNCERS}/old")
        program.run_until(
            lambda: (
                world.request("GET", f"{SYNCERS}/old")["metadata"]["finalizers"]
                == ["example.com/keeps"]
            )
        )
        program.good()
    assert gaps == []
    assert states(registry, program, app) == ["UP", "UP"]
    if app != "cart":
        assert states(registry, program) == [None, None]
    world.request("PATCH", f"{SYNCERS}/old", {"metadata": {"finalizers": None}})
    assert not exists(world, f"{SYNCERS}/old")


@pytest.mark.parametrize("eureka", ["eureka_stock"], indirect=True)
@pytest.mark.parametrize("content", ["stays", "goes"])
def test_register_and_delete_within_the_servers_cache_leaves_nothing_behind(
    content: str,
    program: Program,
    registry: Registry,
    cart: None,
    kubernetes_world: KubernetesWorld,
) -> None:
    """The default server's list is up to 30 s old, and does not show the registration. The Service
    may be deleted too."""
    world = kubernetes_world
    assert registry.listed(program.owner) == {}  # fills the cache
    make_syncer(world, NAMESPACE, "cart", "cart")
    program.good()
    assert states(registry, program) == ["UP", "UP"]
    if content == "goes":
        remove_app(world, NAMESPACE, "cart")
    world.request("DELETE", f"{SYNCERS}/cart")

    def gone() -> bool:
        there = exists(world, f"{SYNCERS}/cart")
        assert there or states(registry, program) == [None, None]
        return not there

    program.run_until(gone)
    assert states(registry, program) == [None, None]
