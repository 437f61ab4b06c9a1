"""`policy` and `suspend` on real servers: which instances stay after their syncer and for how long,
and what a suspension changes."""

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


@pytest.mark.parametrize("policy", ["UpsertOnly", "CreateOnly"])
def test_a_policy_holds_past_its_deleted_syncer(
    policy: str, program: Program, registry: Registry, shop: None, kubernetes_world: KubernetesWorld
) -> None:
    """The finalizer is removed without a cancel. The instances are DOWN, marked, and not
    renewed."""
    world = kubernetes_world
    ids = ids_of(program, give_endpoints(world, COUNT))
    create(world, policy=policy)
    program.good()
    world.request("DELETE", SYNCER)
    cancels = 0

    def let_go() -> bool:
        nonlocal cancels
        cancels += program.eureka.methods()["DELETE"]
        return is_gone(world)

    program.run_until(let_go)
    assert cancels == 0
    for id_ in ids:
        found = registry.instance("SHOP", id_)
        assert found is not None
        assert (found["status"], found["metadata"]["eurekube.policy"]) == ("DOWN", policy)
        assert found["metadata"]["eurekube.gone"] == "true"
    program.run_until(lambda: program.eureka.methods()["PUT"] == 0)
    assert program.eureka.methods()["DELETE"] == 0


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
