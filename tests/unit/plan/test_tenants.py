"""Two namespaces claim one address and port of one app: neither causes the removal of the other's
instances.

A tenant may write any address into the Services, syncers and slices of its own namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.desired.claims import Right, Rival, Serving, Taken
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import (
    EndpointSlice,
    Node,
    PodReadiness,
    PodRef,
    Service,
    ServicePort,
    SyncerRef,
)
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import LastSeen
from eurekube_sync.plan.left_out import first_registered
from eurekube_sync.plan.make import plan_blind
from tests.processor_time import processor_seconds
from tests.unit.worlds.build import (
    DOWN,
    OWNER,
    UP,
    changed,
    desired,
    endpoint,
    observed,
    piece,
    service,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld

BANK, EVIL = "bank", "a-evil"
"""The second sorts first by name, which decides between two syncers of one age."""
VICTIM = SyncerRef(BANK, "rating")
PODS = (1, 2, 3)
PORT = ServicePort(name="http", port=8080)
OLD = 1.0
"""The creation time of a syncer that waited from before the victim created its own."""


def bank() -> FakeWorld:
    """Three registered, ready pods of one namespace. The brake is off, so it does not keep them."""
    world = FakeWorld()
    world.brake = BrakeLimits(loss_percent=100, apps_floor=10**6, confirm_after=0)
    world.cluster.apply(service(namespace=BANK), pods(*PODS), syncer(namespace=BANK))
    world.run()
    assert standing(world, BANK) == set(PODS)
    return world


def pods(*numbers: int) -> EndpointSlice:
    """The slice of the victim's Service."""
    return piece(*(endpoint(number) for number in numbers), namespace=BANK)


def standing(world: FakeWorld, namespace: str) -> set[int]:
    """The last numbers of the addresses at which a namespace has UP instances."""
    held = [
        one
        for one in world.registry.held.values()
        if one.key.id.split(":")[1] == namespace and one.status is UP
    ]
    return {int(one.instance.ip_addr.rpartition(".")[2]) for one in held}


def settled(world: FakeWorld) -> None:
    """Enough passes for anything that waits for a second look."""
    for _ in range(3):
        world.run()
        world.later(30)


def conflict(world: FakeWorld, ref: SyncerRef) -> str:
    """The message of the condition Conflict, or an empty text."""
    status = world.cluster.syncers[ref].status
    found = status.condition("Conflict") if status else None
    assert found is not None
    return found.message


Attack = Callable[..., list[Any]]


def by_host_name(*numbers: int, ready: bool, created: float, **spec: Any) -> list[Any]:
    """A syncer for each address, with the address as a fixed host name."""
    hosts = [
        syncer(
            f"shelf-{number}",
            namespace=EVIL,
            created=created,
            mode="service",
            port=8080,
            service={"hostname": f"10.0.0.{number}"},
            **spec,
        )
        for number in numbers
    ]
    return [service(namespace=EVIL), piece(endpoint(99, ready=ready), namespace=EVIL), *hosts]


def by_external_ip(*numbers: int, ready: bool, created: float, **spec: Any) -> list[Any]:
    """One Service with all of the addresses."""
    hosts = tuple(f"10.0.0.{number}" for number in numbers)
    return [
        replace(service("rating", PORT, namespace=EVIL), external_ips=hosts),
        piece(endpoint(99, ready=ready), namespace=EVIL),
        syncer(
            namespace=EVIL,
            created=created,
            mode="service",
            service={"address": "ExternalIP"},
            **spec,
        ),
    ]


def by_slices(*numbers: int, ready: bool, created: float, **spec: Any) -> list[Any]:
    """A Service without a selector, and a hand-written slice."""
    return _slices([endpoint(number, ready=ready, pod=None) for number in numbers], created, spec)


def by_pods(*numbers: int, ready: bool, created: float, **spec: Any) -> list[Any]:
    """A hand-written slice that names pods of its own namespace, which may not exist."""
    return _slices(
        [endpoint(number, ready=ready, pod=f"evil-{number}") for number in numbers], created, spec
    )


def by_their_pods(*numbers: int, ready: bool, created: float, **spec: Any) -> list[Any]:
    """The same with the UIDs of the other tenant's pods, which anybody may read in Eureka."""
    return _slices([endpoint(number, ready=ready) for number in numbers], created, spec)


def _slices(endpoints: list[Any], created: float, spec: Mapping[str, Any]) -> list[Any]:
    return [
        replace(service(namespace=EVIL), selects=False),
        piece(*endpoints, namespace=EVIL),
        syncer(namespace=EVIL, created=created, **spec),
    ]


BY_HAND: tuple[Attack, ...] = (by_host_name, by_external_ip, by_slices)
ATTACKS: tuple[Attack, ...] = (*BY_HAND, by_pods, by_their_pods)
HOW = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
BY_NOBODY = pytest.mark.parametrize("attack", BY_HAND, ids=lambda attack: attack.__name__)


@HOW
@pytest.mark.parametrize("created", [OLD, 1000.0], ids=["older", "of the same second"])
@pytest.mark.parametrize("ready", [True, False], ids=["ready", "not ready"])
@pytest.mark.parametrize("suspend", [False, True], ids=["", "suspended"])
def test_another_namespaces_claim_removes_no_ready_pod(
    attack: Attack, created: float, ready: bool, suspend: bool
) -> None:
    """Neither its age nor whether it registers anything matters."""
    world = bank()
    world.cluster.apply(
        *attack(*PODS, ready=ready, created=created, suspend=suspend, vipAddress="nobody")
    )
    for _ in range(4):
        world.run()
        assert standing(world, BANK) == set(PODS)
        assert not [call for call in world.wire.writes() if call.startswith("cancel")]
        world.later(30)
    assert conflict(world, VICTIM) == ""


@HOW
@pytest.mark.parametrize("suspend", [False, True], ids=["", "suspended"])
@pytest.mark.parametrize("ready", [True, False], ids=["ready", "not ready"])
def test_another_namespaces_claim_blocks_no_new_pod(
    attack: Attack, suspend: bool, ready: bool
) -> None:
    """It names the addresses of future pods, and registers them first."""
    world = bank()
    world.cluster.apply(*attack(4, 5, 6, ready=ready, created=OLD))
    world.run()
    if suspend:
        world.cluster.apply(*attack(4, 5, 6, ready=ready, created=OLD, suspend=True))
    world.cluster.apply(pods(4, 5, 6))
    settled(world)
    assert standing(world, BANK) == {4, 5, 6}
    assert conflict(world, VICTIM) == ""


@BY_NOBODY
def test_an_address_that_the_cluster_gave_to_another_namespace_is_not_registered(
    attack: Attack,
) -> None:
    """The condition names the syncer that has the address. An address of nobody else is
    registered."""
    world = bank()
    made = attack(3, 4, ready=True, created=OLD)
    world.cluster.apply(*made)
    settled(world)
    assert standing(world, EVIL) == {4}
    told = {conflict(world, one.ref) for one in made if hasattr(one, "spec")} - {""}
    why = (
        "selects the pod or Service that has the address, so no other syncer registers a new "
        "instance there"
    )
    assert told == {f"RATING/{OWNER}:{EVIL}:rating:10.0.0.3:8080: syncer {VICTIM} {why}"}


@BY_NOBODY
def test_an_already_registered_instance_stays_and_follows_its_service(attack: Attack) -> None:
    """A forged slice can also name a pod of its namespace, so nothing is removed for it."""
    world = bank()
    world.cluster.apply(*attack(4, ready=True, created=OLD))
    world.run()
    assert standing(world, EVIL) == {4}
    world.cluster.apply(pods(*PODS, 4))
    settled(world)
    assert (standing(world, BANK), standing(world, EVIL)) == ({1, 2, 3, 4}, {4})
    world.cluster.apply(*attack(4, ready=False, created=OLD))
    settled(world)
    assert (standing(world, BANK), standing(world, EVIL)) == ({1, 2, 3, 4}, set())


@BY_NOBODY
@pytest.mark.parametrize("blind", [False, True], ids=["", "blind"])
@pytest.mark.parametrize("spec", [{}, {"suspend": True, "vipAddress": "other"}], ids=str)
def test_a_lost_instance_is_not_registered_again_at_another_namespaces_address(
    attack: Attack, spec: Mapping[str, Any], blind: bool
) -> None:
    """The list is older than the loss and still shows both. Or there is no list, and the process
    remembers both."""
    world = bank()
    world.last_seen, world.renewals = LastSeen(), RenewalLedger(period=30, slack=5)
    world.cluster.apply(*attack(4, ready=True, created=OLD))
    world.run()
    world.cluster.apply(pods(*PODS, 4), *attack(4, ready=True, created=OLD, **spec))
    settled(world)
    assert standing(world, EVIL) == {4}
    if blind:
        world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="away")
    else:
        world.registry.cached_for(30)
    world.registry.held.clear()
    world.run()
    assert (standing(world, BANK), standing(world, EVIL)) == ({1, 2, 3, 4}, set())


def test_a_syncer_not_served_keeps_its_pods_whatever_foreign_slices_say() -> None:
    """Its Service is missing for a moment, as during the upgrade of a chart. A slice elsewhere
    names another pod there."""
    world = bank()
    world.cluster.apply(*by_pods(*PODS, ready=True, created=OLD))
    world.cluster.services = [one for one in world.cluster.services if one.namespace != BANK]
    world.cluster.slices = [one for one in world.cluster.slices if one.namespace != BANK]
    world.cluster.pods[BANK] = tuple(
        PodRef(f"rating-{number}", f"uid-of-rating-{number}") for number in PODS
    )
    settled(world)
    assert standing(world, BANK) == set(PODS)


def test_two_namespaces_pods_on_one_node_have_a_port_each() -> None:
    """Pods on the host's network share its address, and that is no conflict."""
    world = bank()
    theirs = (service(namespace=EVIL), piece(endpoint(1, pod="evil-1"), namespace=EVIL, port=9090))
    world.cluster.apply(*theirs, syncer(namespace=EVIL, created=OLD))
    settled(world)
    assert (standing(world, BANK), standing(world, EVIL)) == ({1, 2, 3}, {1})
    assert conflict(world, VICTIM) == conflict(world, SyncerRef(EVIL, "rating")) == ""


def test_an_address_that_passes_from_one_namespaces_pod_to_another_is_kept_from_neither() -> None:
    """The slices of the first namespace are old, so both instances stay until the slices are
    written again."""
    world = bank()
    theirs = (service(namespace=EVIL), piece(endpoint(1, pod="evil-1"), namespace=EVIL))
    world.cluster.apply(*theirs, syncer(namespace=EVIL, created=5000))
    world.run()
    assert (standing(world, BANK), standing(world, EVIL)) == ({1, 2, 3}, {1})
    world.cluster.apply(pods(2, 3))
    settled(world)
    assert (standing(world, BANK), standing(world, EVIL)) == ({2, 3}, {1})


def of_type(kind: str, **fields: Any) -> Service:
    """The tenant's Service, which callers outside reach at 10.0.0.1:8080."""
    port = ServicePort(name="http", port=8080, node_port=8080 if kind == "NodePort" else None)
    return replace(service("rating", port, namespace=BANK, type=kind), **fields)


ALLOTTED = {
    "ClusterIP": of_type("ClusterIP", cluster_ips=("10.0.0.1",)),
    "LoadBalancer": of_type("LoadBalancer", load_balancer=("10.0.0.1",)),
    "NodePort": of_type("NodePort"),
}
WRITTEN = {
    "ExternalIP": of_type("ClusterIP", external_ips=("10.0.0.1",)),
}


def serving(found: Service, kind: str, *rest: Any, **spec: Any) -> FakeWorld:
    """A world in which that Service is the instance."""
    world = FakeWorld()
    world.brake = BrakeLimits(loss_percent=100, apps_floor=10**6, confirm_after=0)
    world.cluster.nodes = Complete(data=(Node(name="n", internal=("10.0.0.1",)),))
    asked = syncer(namespace=BANK, mode="service", service={"address": kind}, **spec)
    world.cluster.apply(found, piece(endpoint(50), namespace=BANK), asked, *rest)
    world.run()
    return world


@HOW
@pytest.mark.parametrize("kind", ALLOTTED)
def test_a_services_own_address_belongs_to_its_namespace(attack: Attack, kind: str) -> None:
    """The cluster gives it to one Service, as it gives a pod's address to one pod. An earlier claim
    blocks nobody."""
    world = serving(ALLOTTED[kind], kind, *attack(1, ready=True, created=OLD))
    settled(world)
    assert standing(world, BANK) == {1}
    assert standing(world, EVIL) == (set() if attack in BY_HAND else {1})


@HOW
def test_a_registered_written_address_is_not_removed_either(attack: Attack) -> None:
    """The pod there is named by another namespace's slice, which may be forged."""
    world = serving(WRITTEN["ExternalIP"], "ExternalIP")
    assert standing(world, BANK) == {1}
    world.cluster.apply(*attack(1, ready=True, created=OLD))
    settled(world)
    assert standing(world, BANK) == {1}


# --- Addresses that the cluster gave to nobody ----------------------------------------------------

INGRESS = "shop.example.com"
BLUE, GREEN = SyncerRef("blue", "rating"), SyncerRef("green", "rating")


def colours(
    *, blue: Mapping[str, Any] | None = None, green: Mapping[str, Any] | None = None
) -> FakeWorld:
    """Two namespaces behind one Ingress. The syncer of blue is older."""
    world = FakeWorld()
    for namespace, created, spec in (("blue", 1000, blue), ("green", 2000, green)):
        if spec is not None:
            world.cluster.apply(*behind_ingress(namespace, created=created, **spec))
    return world


def behind_ingress(namespace: str, *, created: float, ready: bool = True, **spec: Any) -> list[Any]:
    """A Service, its pod, and a syncer with the host name of the Ingress."""
    return [
        service(namespace=namespace),
        piece(endpoint(1 if namespace == "blue" else 2, ready=ready), namespace=namespace),
        syncer(
            namespace=namespace,
            created=created,
            mode="service",
            service={"hostname": INGRESS},
            **spec,
        ),
    ]


def namespaces(world: FakeWorld) -> list[str]:
    """The namespaces of the UP instances."""
    return sorted(
        one.key.id.split(":")[1] for one in world.registry.held.values() if one.status is UP
    )


def test_of_two_new_ones_the_older_registers() -> None:
    """The other one learns who has the address, and gets it when that one is gone."""
    world = colours(blue={}, green={})
    settled(world)
    assert namespaces(world) == ["blue"]
    assert f"syncer {BLUE} of another namespace was first and has the address" in conflict(
        world, GREEN
    )
    assert conflict(world, BLUE) == ""
    world.cluster.delete(BLUE)
    settled(world)
    assert namespaces(world) == ["green"]
    assert conflict(world, GREEN) == ""


def test_the_registered_syncer_keeps_the_address_also_against_an_older_one() -> None:
    """It was registered first."""
    world = colours(green={})
    world.run()
    world.cluster.apply(*behind_ingress("blue", created=1000))
    settled(world)
    assert namespaces(world) == ["green"]
    assert f"syncer {GREEN} of another namespace was first and has the address" in conflict(
        world, BLUE
    )
    assert conflict(world, GREEN) == ""
    assert world.wire.writes() == []


@pytest.mark.parametrize("blue", [{"suspend": True}, {"ready": False}, {"limit": 0}], ids=str)
def test_an_older_one_that_registers_nothing_keeps_nobody_out(blue: Mapping[str, Any]) -> None:
    """It is suspended, not ready, or detached."""
    world = colours(blue=blue, green={})
    settled(world)
    assert namespaces(world) == ["green"]
    assert conflict(world, GREEN) == ""


def test_two_registered_rivals_both_stay() -> None:
    """Each was registered before the other one claimed its address, and each follows its own
    pods."""
    world = colours(blue={"port": 443}, green={})
    world.cluster.apply(*behind_ingress("blue", created=1000, appName="other"))
    world.run()
    for one in [*world.registry.held.values()]:
        world.registry.put(
            changed(one, key=InstanceKey("RATING", one.key.id.replace(":other:", ":rating:")))
        )
    world.cluster.apply(*behind_ingress("blue", created=1000))
    settled(world)
    assert namespaces(world) == ["blue", "green"]
    world.cluster.apply(*behind_ingress("green", created=2000, ready=False))
    settled(world)
    assert namespaces(world) == ["blue"]
    assert {one.status for one in world.registry.held.values()} >= {DOWN}


def test_a_registered_rival_is_read_before_an_older_syncer_registers() -> None:
    """The list is up to half a minute old, and may lack what another process registered."""
    world = FakeWorld(cache=30)
    world.run()
    world.cluster.apply(*behind_ingress("green", created=2000))
    world.run()
    world.cluster.apply(*behind_ingress("blue", created=1000))
    world.run()
    assert namespaces(world) == ["green"]


def test_no_rival_is_registered_while_eureka_cannot_be_read() -> None:
    """It is unknown which of them is registered. One that this process saw is registered again."""
    claims = desired(
        [
            one
            for namespace in ("blue", "green")
            for one in behind_ingress(namespace, created=1)[2:]
        ],
        [service(namespace=namespace) for namespace in ("blue", "green")],
        [piece(endpoint(1), namespace=namespace) for namespace in ("blue", "green")],
    )
    blue, green = sorted(claims.wanted_by)
    one = claims.claims[BLUE]
    assert isinstance(one, Serving)
    assert one.rivals == {blue: Rival(GREEN, Right.UNDECIDED)}
    healed = {action.key: action.if_gone for action in plan_blind(claims, [green]).actions}  # type: ignore[union-attr]
    assert healed[blue] is None
    assert healed[green] is not None


def test_a_pass_without_eurekas_list_says_that_it_does_not_know() -> None:
    """The message says only what was seen."""
    world = colours(blue={}, green={})
    world.run()
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="away")
    world.run()
    assert namespaces(world) == ["blue"]
    assert "it is unknown which of the two syncers has an instance there" in conflict(world, GREEN)


def test_three_namespaces_at_one_address_have_one_holder() -> None:
    """The others name it."""
    world = colours(blue={}, green={})
    world.cluster.apply(*behind_ingress("red", created=500))
    settled(world)
    assert namespaces(world) == ["red"]
    for ref in (BLUE, GREEN):
        assert "syncer red/rating of another namespace was first and has the address" in conflict(
            world, ref
        )


def test_many_claims_of_two_namespaces_cost_in_a_straight_line() -> None:
    """Otherwise two tenants could take all the time of a pass."""

    def seconds(number: int) -> float:
        """The time for this many syncers of each, with one host name."""
        them = [
            syncer(
                f"s{n}",
                namespace=team,
                mode="service",
                appName=f"app{n}",
                service={"hostname": "shop.example.com"},
            )
            for team in ("a", "b")
            for n in range(number)
        ]
        wants = desired(
            them,
            [service(namespace=team) for team in "ab"],
            [piece(endpoint(1), namespace=t) for t in "ab"],
        )
        return processor_seconds(lambda: first_registered(wants, observed()))

    assert seconds(1600) < 80 * min(seconds(100) for _ in range(3))


def test_within_a_namespace_the_older_one_has_it_before_the_neighbours_are_asked() -> None:
    """The younger syncer learns of the other one in its own namespace, and makes no claim against
    others."""
    world = colours(blue={}, green={})
    world.cluster.apply(replace(behind_ingress("blue", created=3000)[2], name="second"))
    settled(world)
    assert namespaces(world) == ["blue"]
    assert f"syncer {BLUE} is older and has the address" in conflict(
        world, SyncerRef("blue", "second")
    )


def test_one_key_has_one_holder_wherever_its_services_are() -> None:
    """Two syncers of one namespace select in two others, and name one host. Their ids are the
    same."""
    scope = Scope(allowed=frozenset({("ops", "blue"), ("ops", "green")}))
    asked = [
        syncer(
            name,
            namespace="ops",
            created=created,
            mode="service",
            selector={"app": "rating", "namespace": name},
            service={"hostname": INGRESS},
        )
        for name, created in (("green", 1), ("blue", 2))
    ]
    found = desired(
        asked,
        [service(namespace=namespace) for namespace in ("blue", "green")],
        [piece(endpoint(1), namespace=namespace) for namespace in ("blue", "green")],
        scope=scope,
    )
    assert set(found.wanted_by.values()) == {SyncerRef("ops", "green")}
    younger = found.claims[SyncerRef("ops", "blue")]
    assert isinstance(younger, Serving)
    assert {one.rival for one in younger.of(Taken).values()} == {
        Rival(SyncerRef("ops", "green"), Right.AGE)
    }


# --- Readiness gates ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", [{"suspend": True}, {}, {"limit": 0}], ids=["suspended", "registered", "detached"]
)
def test_a_slice_does_not_affect_the_gate_of_another_namespaces_pod(
    how: dict[str, Any],
) -> None:
    """Anybody may read the UIDs of pods in Eureka."""
    world = bank()
    world.cluster.apply(syncer(namespace=BANK, readinessGate=True))
    gated = PodReadiness(
        namespace=BANK, name="rating-4", uid="uid-of-rating-4", ready=True, registered=False
    )
    world.cluster.readiness[gated.uid] = gated
    world.cluster.apply(*by_their_pods(4, ready=False, created=OLD, readinessGate=True, **how))
    world.run()
    assert world.cluster.opened == {}
    world.cluster.apply(pods(*PODS, 4))
    world.run()
    assert world.cluster.opened["rating-4"][0] == "Registered"
