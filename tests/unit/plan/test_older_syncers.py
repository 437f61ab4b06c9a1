"""An older syncer claims a younger one's addresses without registering them: no instance is removed
for that."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from eurekube_sync.desired.claims import Right, Rival, Serving, Taken
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import EndpointSlice, PodReadiness, ServicePort, SyncerRef
from eurekube_sync.model.ownership import SYNCER
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.plan.make import plan_blind
from tests.unit.controller.test_reconcile import add_app
from tests.unit.worlds.build import (
    DOWN,
    NS,
    OUT,
    UP,
    desired,
    endpoint,
    instance,
    key,
    piece,
    service,
    stored,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld

OPS, SHOP = "ops", "shop"
ALLOWED = Scope(allowed=frozenset({(OPS, SHOP), (NS, SHOP)}))
ACROSS = {"app": "rating", "namespace": SHOP}
"""Neither is the pods' own namespace, whose syncers would come first at any age."""
OLDER, YOUNGER = SyncerRef(OPS, "older"), SyncerRef(NS, "younger")
BLUE = {"app": "rating", "color": "blue"}
PODS = (1, 2)


def setting(*, among_others: bool = True, **spec: Any) -> FakeWorld:
    """The younger syncer serves two pods. Other apps exist, so the brake does not keep its last
    instances."""
    world = FakeWorld()
    world.scope = ALLOWED
    for number, name in enumerate(("x", "y") if among_others else (), 50):
        add_app(world, name, number)
    world.cluster.apply(service(namespace=SHOP), pods(*PODS))
    world.cluster.apply(syncer("younger", created=2000, selector=ACROSS, **spec))
    settled(world)
    return world


def pods(*numbers: int, unready: Collection[int] = ()) -> EndpointSlice:
    """The slice of the Service `rating`."""
    return piece(
        *(endpoint(number, ready=number not in unready) for number in numbers), namespace=SHOP
    )


def older(world: FakeWorld, **spec: Any) -> None:
    """Add an older syncer of another namespace, which selects the same pods."""
    world.cluster.apply(syncer("older", namespace=OPS, created=1000, selector=ACROSS, **spec))


def settled(world: FakeWorld) -> None:
    """Enough passes for anything that waits for a second look."""
    for _ in range(3):
        world.run()
        world.later(30)


def up(world: FakeWorld) -> set[InstanceKey]:
    """The UP instances of RATING."""
    return {
        one.key
        for one in world.registry.held.values()
        if one.status is UP and one.key.app == "RATING"
    }


def conflict(world: FakeWorld, ref: SyncerRef = YOUNGER) -> str:
    """The message of the condition Conflict."""
    status = world.cluster.syncers[ref].status
    condition = status.condition("Conflict") if status else None
    assert condition is not None
    return condition.message


def under(namespace: str) -> set[InstanceKey]:
    """The keys of both pods, with a namespace's ids."""
    return {key(number, namespace=namespace) for number in PODS}


def test_a_suspended_older_syncer_removes_nothing() -> None:
    """It registers nothing in their place. The younger syncer's condition says who has the
    addresses."""
    world = setting()
    older(world, suspend=True)
    settled(world)
    assert up(world) == under(NS)
    assert "syncer ops/older is older and has the address" in conflict(world)
    world.run()
    assert world.wire.writes() == []


@pytest.mark.parametrize("number", PODS)
def test_an_out_of_service_instance_stays_when_an_older_syncer_has_no_place(number: int) -> None:
    """A cancel would lose a person's decision."""
    world = setting()
    world.registry.override(key(number), OUT)
    world.cluster.apply(syncer("older", created=1000, selector=ACROSS, limit=1))
    settled(world)
    assert world.registry.held[key(number)].status is OUT


def test_a_younger_syncers_instance_follows_its_pod_beside_a_suspended_one() -> None:
    """It turns UP and DOWN with its pod, and is removed with it."""
    world = setting()
    older(world, suspend=True)
    world.cluster.apply(pods(*PODS, unready=[2]))
    world.run()
    assert world.registry.held[key(2)].status is DOWN
    world.cluster.apply(pods(*PODS))
    world.run()
    assert up(world) == under(NS)
    world.cluster.apply(pods(1))
    world.run()
    assert set(up(world)) == {key(1)}


def test_nothing_new_is_registered_while_an_older_syncer_holds_the_address() -> None:
    """This covers a new pod, and any wanted instance while Eureka cannot be read."""
    world = setting()
    older(world, suspend=True)
    world.cluster.apply(pods(*PODS, 3))
    settled(world)
    assert up(world) == under(NS)
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="away")
    world.run()
    assert up(world) == under(NS)


def test_an_older_syncer_that_is_resumed_takes_over_without_a_gap() -> None:
    """Its own instances are registered first, and then the younger one's are cancelled."""
    world = setting()
    older(world, suspend=True)
    settled(world)
    older(world)
    world.run()
    calls = [call for call in world.wire.writes() if call.split()[0] in ("register", "cancel")]
    assert [call.split()[0] for call in calls] == ["register", "register", "cancel", "cancel"]
    assert up(world) == under(OPS)


def test_a_limit_gives_no_place_to_what_may_not_come_in() -> None:
    """The older syncer has two of three pods. The third pod gets the place."""
    world = FakeWorld()
    world.scope = ALLOWED
    world.cluster.apply(
        service("blue", labels=BLUE, namespace=SHOP), service("green", namespace=SHOP)
    )
    world.cluster.apply(piece(endpoint(1), endpoint(2), service="blue", namespace=SHOP))
    world.cluster.apply(piece(endpoint(3), service="green", namespace=SHOP))
    selector = {"matchLabels": {"color": "blue"}, "namespace": SHOP}
    world.cluster.apply(
        syncer(
            "older", namespace=OPS, created=1000, selector=selector, appName="rating", suspend=True
        ),
        syncer("younger", created=2000, selector=ACROSS, appName="rating", limit=1),
    )
    settled(world)
    assert up(world) == {key(3)}


def test_a_readiness_gate_does_not_wait_for_what_is_not_registered() -> None:
    """This is as if the older syncer registered it."""
    world = setting(among_others=False, readinessGate=True)
    older(world, suspend=True)
    gated = PodReadiness(
        namespace=SHOP, name="rating-3", uid="uid-of-rating-3", ready=True, registered=False
    )
    world.cluster.readiness[gated.uid] = gated
    world.cluster.apply(pods(*PODS, 3))
    world.run()
    assert world.cluster.opened["rating-3"][0] == "Conflict"
    assert up(world) == under(NS)


TWO_PORTS = (ServicePort(name="http", port=80), ServicePort(name="https", port=443))


@pytest.mark.parametrize("namespace", [NS, OPS])
def test_an_older_syncer_that_lacks_a_port_removes_nothing(namespace: str) -> None:
    """The pods of one Service have no secure port. The older syncer cannot register them, and
    reports that."""
    world = FakeWorld()
    world.scope = ALLOWED
    add_app(world, "x", 50)
    world.cluster.apply(
        service("blue", labels=BLUE, namespace=SHOP),
        piece(endpoint(1), endpoint(2), service="blue", namespace=SHOP),
        service("green", *TWO_PORTS, namespace=SHOP),
        piece(endpoint(3), service="green", namespace=SHOP),
        piece(
            endpoint(3),
            service="green",
            name="green-2",
            port=8443,
            port_name="https",
            namespace=SHOP,
        ),
        syncer("younger", created=2000, selector=ACROSS, appName="rating", port="http"),
    )
    settled(world)
    ref = SyncerRef(namespace, "older")
    ports: dict[str, Any] = {"port": "http", "securePort": "https"}
    world.cluster.apply(
        syncer(
            "older", namespace=namespace, created=1000, selector=ACROSS, appName="rating", **ports
        )
    )
    settled(world)
    assert up(world) == {key(1), key(2), key(3, namespace=namespace)}
    assert world.registry.held[key(1)].metadata[SYNCER] == str(YOUNGER)
    assert f"syncer {ref} is older and has the address" in conflict(world)
    status = world.cluster.syncers[ref].status
    ready = status.condition("Ready") if status else None
    assert ready is not None
    assert (
        "pod rating-1 has no port 'https' (yet): nothing new of it is registered" in ready.message
    )


def test_an_instance_of_the_older_syncer_itself_is_not_taken_over() -> None:
    """That syncer cannot see the whole endpoint for now, and keeps its registered instance."""
    mine = instance(1, ref=SyncerRef(NS, "older"))
    world = FakeWorld()
    world.registry.put(stored(mine))
    world.cluster.apply(
        service("rating", *TWO_PORTS),
        piece(endpoint(1)),
        piece(endpoint(3), name="rating-2", port=8443, port_name="https"),
        syncer("older", created=1000, port="http", securePort="https"),
        syncer("younger", created=2000, port="http"),
    )
    settled(world)
    assert world.registry.held[key(1)].metadata[SYNCER] == f"{NS}/older"
    assert up(world) == {key(1)}


def test_without_a_list_only_remembered_instances_are_registered_again() -> None:
    """It is unknown whether the older syncer's own instance is registered there."""
    claims = desired(
        [
            syncer("older", created=1, suspend=True, namespace=OPS, selector=ACROSS),
            syncer("younger", created=2, selector=ACROSS),
        ],
        [service(namespace=SHOP)],
        [piece(endpoint(1), namespace=SHOP)],
        scope=ALLOWED,
    )
    claim = claims.claims[YOUNGER]
    assert isinstance(claim, Serving)
    assert (claim.rivals, claim.of(Taken)) == ({key(1): Rival(OLDER, Right.AGE)}, {})
    renewals = {action.key: action for action in plan_blind(claims).actions}
    assert renewals[key(1)].if_gone is None  # type: ignore[union-attr]
    again = {action.key: action for action in plan_blind(claims, [key(1)]).actions}
    assert again[key(1)].if_gone is not None  # type: ignore[union-attr]


# --- An idle syncer does not decide about another's instances -------------------------------------


def beside_an_idle_one(world: FakeWorld, created: int, **spec: Any) -> None:
    """Add a syncer of the same namespace that selects the same pods."""
    world.cluster.apply(syncer("idle", created=created, selector=ACROSS, **spec))
    settled(world)


@pytest.mark.parametrize("created", [1000, 3000], ids=["an older one", "a younger one"])
@pytest.mark.parametrize(
    "idle",
    [{"suspend": True}, {"limit": 0}, {"limit": 0, "suspend": True}, {"port": "none"}],
    ids=["suspended", "with limit 0", "suspended with limit 0", "not served"],
)
def test_an_instance_is_judged_by_the_syncer_in_its_mark_not_by_an_idle_one(
    idle: dict[str, Any], created: int
) -> None:
    """The idle one would turn an unready pod DOWN, and registers nothing. The one in the mark says
    `notReady: Cancel`, so the instance goes, and its status does not say that all is well."""
    world = setting(notReady="Cancel")
    beside_an_idle_one(world, created, **idle)
    world.cluster.apply(pods(*PODS, unready=[2]))
    settled(world)
    assert up(world) == {key(1)}
    assert key(2) not in world.registry.held
    world.cluster.apply(pods(*PODS))
    settled(world)
    status = world.cluster.syncers[YOUNGER].status
    assert status is not None
    assert status.up == len(up(world))


@pytest.mark.parametrize("created", [1000, 3000], ids=["an older one", "a younger one"])
def test_an_instance_follows_its_pod_beside_a_suspended_syncer_of_its_namespace(
    created: int,
) -> None:
    """Down and up again, under the same id, until it ends. It stays its own syncer's."""
    world = setting()
    beside_an_idle_one(world, created, suspend=True)
    world.cluster.apply(pods(*PODS, unready=[2]))
    settled(world)
    assert world.registry.held[key(2)].status is DOWN
    world.cluster.apply(pods(*PODS))
    settled(world)
    assert up(world) == under(NS)
    assert {world.registry.held[one].metadata[SYNCER] for one in under(NS)} == {str(YOUNGER)}
    world.cluster.apply(pods(1))
    settled(world)
    assert world.registry.held.keys() & under(NS) == {key(1)}


def test_a_suspended_heir_keeps_what_is_no_longer_behind_the_services_of_the_old_syncer() -> None:
    """The old syncer has no verdict there, so it decides nothing."""
    world = setting()
    beside_an_idle_one(world, 3000, suspend=True)
    world.cluster.apply(service("else", namespace=SHOP, labels={"app": "else"}))
    world.cluster.apply(piece(endpoint(9), service="else", namespace=SHOP))
    world.cluster.apply(
        syncer(
            "younger", created=2000, selector={"app": "else", "namespace": SHOP}, appName="rating"
        )
    )
    settled(world)
    assert up(world) >= under(NS)
