"""One tenant has far more to do than a pass has time for. Another tenant's changes are still made
in the same pass.

Each call takes half a second of virtual time, so a pass of 100 s makes 200 calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.model.eureka import Port
from eurekube_sync.model.kubernetes import EndpointSlice, PodReadiness, SyncerRef
from tests.unit.worlds.build import changed, endpoint, foreign, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

TENANT, BANK = "a-tenant", "bank"
"""The second namespace sorts last, and so do its apps and ids."""
PAY = SyncerRef(BANK, "pay")
SECONDS = 100.0
MANY = 500


def bank(*numbers: int) -> EndpointSlice:
    """The pods of the other tenant."""
    return piece(*(endpoint(number) for number in numbers), service="pay", namespace=BANK)


def of_tenant(count: int, *, syncers: int = 1, **spec: Any) -> list[Any]:
    """This many endpoints, spread over the syncers, each with a Service of its own."""
    found: list[Any] = []
    for number in range(syncers):
        name = f"app-{number}"
        own = range(number * count // syncers, (number + 1) * count // syncers)
        slices = [endpoint(1000 + n, address=f"11.{n // 250}.{n % 250}.1") for n in own]
        found.append(service(name, labels={"app": name}, namespace=TENANT))
        found.append(syncer(name, namespace=TENANT, selector={"app": name}, **spec))
        found.append(piece(*slices, service=name, namespace=TENANT))
    return found


def world_of(*things: Any, batch: int | None) -> FakeWorld:
    """Two pods of the other tenant and the busy tenant's objects are registered. The brake is
    off."""
    world = FakeWorld()
    world.registry.batch_size = batch
    world.brake = BrakeLimits(loss_percent=100, apps_floor=10**6, confirm_after=0)
    world.cluster.apply(
        service("pay", labels={"app": "pay"}, namespace=BANK),
        syncer("pay", namespace=BANK, selector={"app": "pay"}),
        bank(1, 2),
        *things,
    )
    world.run()
    world.wire.then = lambda: world.clock.sleep(0.5)
    return world


def up_of(world: FakeWorld, namespace: str) -> set[str]:
    """The addresses of the UP instances in a namespace."""
    return {
        one.instance.ip_addr
        for one in world.registry.held.values()
        if one.key.id.split(":")[1] == namespace
    }


def no_load(world: FakeWorld) -> None:
    """The tenant changes nothing."""


def many_come(world: FakeWorld) -> None:
    """Many endpoints appear. With 40,000 of them another tenant's dead pod once waited for 20
    minutes."""
    world.cluster.apply(*of_tenant(MANY))


def many_come_of_many_syncers(world: FakeWorld) -> None:
    """Many syncers appear. Each lacks its finalizer, and needs a status."""
    world.cluster.apply(*of_tenant(MANY, syncers=MANY))


def many_change(world: FakeWorld) -> None:
    """Every registered instance is to be registered again."""
    world.cluster.apply(*of_tenant(MANY, metadata={"a": "b"}))


def many_go(world: FakeWorld) -> None:
    """All endpoints but one disappear."""
    world.cluster.apply(*of_tenant(1))


def many_register_themselves(world: FakeWorld) -> None:
    """Each pod has an instance of its own beside ours, each under an id of its own form."""
    world.cluster.apply(*of_tenant(MANY))
    for number in range(MANY):
        address = f"11.{number // 250}.{number % 250}.1"
        world.registry.put(
            changed(
                foreign(f"own:{number}", app="APP-0"),
                ip_addr=address,
                port=Port(8080, enabled=True),
            )
        )


LOADS = [
    no_load,
    many_come,
    many_come_of_many_syncers,
    many_change,
    many_go,
    many_register_themselves,
]


@pytest.mark.parametrize("batch", [None, 5])
@pytest.mark.parametrize("load", LOADS)
def test_a_pod_of_another_namespace_is_replaced_in_the_same_pass(
    load: Callable[[FakeWorld], None], batch: int | None
) -> None:
    """Its new pod is registered, another one gets new metadata, and then the dead one is cancelled.
    Few of the busy tenant's changes are made."""
    before = of_tenant(MANY) if load in (many_change, many_go) else []
    world = world_of(*before, batch=batch)
    load(world)
    world.cluster.apply(
        bank(2, 3), syncer("pay", namespace=BANK, selector={"app": "pay"}, metadata={"a": "b"})
    )
    report = world.run(deadline=SECONDS)
    assert report.cut_short is (load is not no_load)
    assert up_of(world, BANK) == {"10.0.0.2", "10.0.0.3"}
    of_bank = [one for key, one in world.registry.held.items() if key.app == "PAY"]
    assert [one.metadata.get("a") for one in of_bank] == ["b", "b"]


@pytest.mark.parametrize("batch", [None, 5])
def test_writes_to_kubernetes_for_another_namespace_are_done_in_the_same_pass(
    batch: int | None,
) -> None:
    """A new syncer gets its finalizer and its status. The deletion of another one ends."""
    world = world_of(batch=batch)
    many_come_of_many_syncers(world)
    cart = SyncerRef(BANK, "cart")
    world.cluster.apply(
        service("cart", labels={"app": "cart"}, namespace=BANK),
        syncer("cart", namespace=BANK, selector={"app": "cart"}),
        piece(endpoint(7), service="cart", namespace=BANK),
    )
    world.cluster.delete(PAY)
    assert world.run(deadline=SECONDS).cut_short
    assert up_of(world, BANK) == {"10.0.0.7"}
    status = world.cluster.syncers[cart].status
    assert status is not None
    assert status.ready == "1/1"
    assert any(event.syncer == cart for event in world.cluster.events), (
        "of good news only some is told in a pass"
    )
    for _ in range(2):  # a deletion waits until a list also shows that nothing is left
        world.run(deadline=SECONDS)
    assert PAY not in world.cluster.syncers


@pytest.mark.parametrize("suspend", [False, True])
def test_a_rollout_of_another_namespace_continues(suspend: bool) -> None:
    """Its gate opens in the same pass, before many of the busy tenant's and despite many changed
    statuses. The gate of a suspended syncer needs no read of Eureka."""
    world = world_of(batch=None)
    many = of_tenant(MANY, syncers=MANY, readinessGate=True, suspend=suspend)
    world.cluster.apply(
        syncer("pay", namespace=BANK, selector={"app": "pay"}, readinessGate=True), *many
    )
    gates = [*((TENANT, 1000 + number) for number in range(MANY)), (BANK, 2)]
    for namespace, number in gates:
        uid = f"uid-of-rating-{number}"
        pod = PodReadiness(
            namespace=namespace, name=f"rating-{number}", uid=uid, ready=True, registered=False
        )
        world.cluster.readiness[uid] = pod
    world.run(deadline=SECONDS)
    opened = {
        (pod.namespace, pod.name) for pod in world.cluster.readiness.values() if pod.registered
    }
    assert (BANK, "rating-2") in opened
    assert len(opened) < MANY
