"""`--policy upsert-only` and `suspend` on real servers: which instances stay after their endpoints
and their syncer, and what a suspension changes."""

from __future__ import annotations

import pytest
import requests

from tests.integration.program import Program, Registry
from tests.integration.test_safety import (
    NAMESPACE,
    SYNCERS,
    give_endpoints,
    set_endpoints,
    shop,
    up_ids,
)
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers

__all__ = ["shop"]
SYNCER = f"{SYNCERS}/shop"
COUNT = 3


def create(world: KubernetesWorld, **spec: object) -> None:
    """The namespace's one syncer."""
    body = {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaSyncer",
        "metadata": {"name": "shop"},
        "spec": {"selector": {"app": "shop"}, **spec},
    }
    world.request("POST", SYNCERS, body)


def ids_of(program: Program, addresses: list[str]) -> list[str]:
    """The ids of the instances at these addresses."""
    return [f"{program.owner}:{NAMESPACE}:shop:{address}:8080" for address in addresses]


def is_gone(world: KubernetesWorld) -> bool:
    """Whether the syncer is gone."""
    return not world.request("GET", SYNCERS)["items"]


def test_upsert_only_removes_nothing_and_a_deletion_does_not_wait(
    program: Program, registry: Registry, shop: None, kubernetes_world: KubernetesWorld
) -> None:
    """An instance without an endpoint is renewed. The instances of a deleted syncer are, too. The
    second pass under `sync` cancels them."""
    world, upserting = kubernetes_world, "--policy=upsert-only"
    addresses = give_endpoints(world, COUNT)
    create(world)
    program.good(upserting)
    registry.list_follows("SHOP", ids_of(program, addresses))
    set_endpoints(world, addresses[:1])
    program.good(upserting)
    assert set(program.eureka.methods()) == {"GET", "PUT"}
    assert up_ids(program, registry, addresses) == COUNT

    world.request("DELETE", SYNCER)
    program.good(upserting)
    assert is_gone(world)
    program.good(upserting)
    assert program.eureka.methods() == {"GET": 1, "PUT": COUNT}
    assert up_ids(program, registry, addresses) == COUNT
    assert program.run("--passes=2", "--interval=25s").returncode == 0
    assert [registry.status("SHOP", id_) for id_ in ids_of(program, addresses)] == [None] * COUNT


def test_a_suspended_syncer_changes_nothing(
    program: Program, registry: Registry, shop: None, kubernetes_world: KubernetesWorld
) -> None:
    """Other endpoints change nothing. A new process registers nothing that Eureka lost, and the end
    of the suspension does. A deletion takes place."""
    world = kubernetes_world
    addresses = give_endpoints(world, COUNT)
    create(world)
    program.good()
    registry.list_follows("SHOP", ids_of(program, addresses))
    world.request("PATCH", SYNCER, {"spec": {"suspend": True}})
    set_endpoints(world, ["10.21.0.1", *addresses[1:]])
    for _ in range(2):
        program.good()
        assert set(program.eureka.methods()) == {"GET", "PUT"}
    assert up_ids(program, registry, addresses) == COUNT
    assert up_ids(program, registry, ["10.21.0.1"]) == 0

    set_endpoints(world, addresses)
    for id_ in ids_of(program, addresses):
        requests.delete(f"{registry.url}/apps/SHOP/{id_}", timeout=30).raise_for_status()
    program.good()
    assert up_ids(program, registry, addresses) == 0
    world.request("PATCH", SYNCER, {"spec": {"suspend": False}})
    program.run_until(lambda: up_ids(program, registry, addresses) == COUNT)

    world.request("PATCH", SYNCER, {"spec": {"suspend": True}})
    world.request("DELETE", SYNCER)
    program.run_until(lambda: is_gone(world))
    assert [registry.status("SHOP", id_) for id_ in ids_of(program, addresses)] == [None] * COUNT
