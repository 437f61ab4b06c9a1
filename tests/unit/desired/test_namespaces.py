"""A syncer that selects Services of another namespace: its permission, its ids, and when it is not
served."""

from __future__ import annotations

import pytest

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.desired.claims import Deleting, NotServed
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.kubernetes import PodRef, SyncerRef
from eurekube_sync.model.ownership import POD, Ownership, pod_namespace_of, pod_uid_of
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import (
    CLUSTER,
    DENIED,
    NS,
    OWNER,
    REF,
    desired,
    endpoint,
    instance,
    piece,
    service,
    stored,
    syncer,
)
from tests.unit.worlds.clock import START
from tests.unit.worlds.fakes import FakeWorld

SHOP = "shop"
ALLOWED = Scope(allowed=frozenset({(NS, SHOP)}))
ACROSS = syncer(selector={"app": "rating", "namespace": SHOP})


@pytest.fixture
def world() -> FakeWorld:
    """Services and pods in `shop`, a syncer in `rating`, and an operator who allows it."""
    world = FakeWorld()
    world.scope = ALLOWED
    world.brake = BrakeLimits(loss_percent=100, apps_floor=10**6)
    world.cluster.apply(
        ACROSS, service(namespace=SHOP), piece(endpoint(1), endpoint(2), namespace=SHOP)
    )
    return world


def ready(world: FakeWorld) -> tuple[str, str]:
    """Reason and message of the syncer's condition Ready."""
    status = world.cluster.syncers[REF].status
    condition = status.condition("Ready") if status else None
    assert condition is not None
    return condition.reason, condition.message


def test_the_ids_carry_the_syncers_own_namespace(world: FakeWorld) -> None:
    """Only the syncers of a namespace can claim its ids. The mark names the pod's namespace."""
    world.run()
    assert sorted(key.id for key in world.registry.held) == [
        f"{OWNER}:{NS}:rating:10.0.0.1:8080",
        f"{OWNER}:{NS}:rating:10.0.0.2:8080",
    ]
    assert {one.metadata[POD] for one in world.registry.held.values()} == {
        f"{SHOP}/rating-1/uid-of-rating-1",
        f"{SHOP}/rating-2/uid-of-rating-2",
    }
    assert ready(world)[0] == "InSync"
    world.run()
    assert world.wire.writes() == []


def test_only_the_namespace_of_its_services_is_read(world: FakeWorld) -> None:
    """The syncer's own namespace has none of its Services."""
    report = world.run()
    assert report.view is not None
    assert set(report.view.slices.by_namespace) == {SHOP}


@pytest.mark.parametrize("standing", [True, False])
def test_without_permission_services_of_another_namespace_are_not_served(
    world: FakeWorld, standing: bool
) -> None:
    """Registered instances are renewed, and none is added. The condition names the option, and the
    namespace is not read."""
    if standing:
        world.run()
    world.scope = Scope()
    world.run()
    assert world.wire.verbs().count("renew") == (2 if standing else 0)
    assert not [call for call in world.wire.writes() if call.split()[0] in ("register", "cancel")]
    assert not {"list_services", "list_slices", "list_pods"} & set(world.wire.verbs())
    reason, message = ready(world)
    assert reason == "NamespaceNotAllowed"
    assert f"--allow-namespace {NS}:{SHOP}" in message


@pytest.mark.parametrize("kind", ["services", "slices"])
def test_the_syncer_is_not_served_while_the_other_namespace_is_unknown(
    world: FakeWorld, kind: str
) -> None:
    """Its own namespace is not read."""
    world.run()
    world.cluster.apply(piece(endpoint(2), namespace=SHOP))
    world.cluster.unknown[(kind, SHOP)] = DENIED
    world.cluster.unknown[(kind, NS)] = DENIED
    world.run()
    assert world.wire.verbs().count("renew") == 2
    assert ready(world)[0] == "SourceUnknown"
    del world.cluster.unknown[(kind, SHOP)]
    world.run()
    assert world.statuses() == {"RATING 10.0.0.2:8080": "UP"}


def test_pods_of_another_namespace_are_looked_for_there(world: FakeWorld) -> None:
    """The syncer is not served, because a Service is missing. Its pods are alive, and their absence
    from its own namespace proves nothing."""
    world.run()
    world.cluster.services = []
    world.run()
    assert "list_pods" in world.wire.verbs()
    assert world.statuses() == {"RATING 10.0.0.1:8080": "UP", "RATING 10.0.0.2:8080": "UP"}
    assert ready(world)[0] == "NoMatchingService"
    world.cluster.apply(piece(endpoint(2), namespace=SHOP))
    world.run()
    assert world.statuses() == {"RATING 10.0.0.2:8080": "UP"}


def test_a_syncer_that_selects_in_its_own_namespace_again_keeps_pods_elsewhere(
    world: FakeWorld,
) -> None:
    """The mark shows where an instance's pod is, not the present spec."""
    world.run()
    world.cluster.apply(syncer())
    world.run()
    assert world.statuses() == {"RATING 10.0.0.1:8080": "UP", "RATING 10.0.0.2:8080": "UP"}


def test_two_namespaces_that_claim_one_pod_do_not_both_register_it(world: FakeWorld) -> None:
    """Their ids differ, and callers would call the pod twice as often. A syncer of the pod's own
    namespace gets it, even if it is younger. The other one reports that."""
    own = SyncerRef(SHOP, "rating")
    world.cluster.apply(syncer(namespace=SHOP, created=2000))
    world.run()
    assert {key.id.split(":")[1] for key in world.registry.held} == {SHOP}
    status = world.cluster.syncers[REF].status
    conflict = status.condition("Conflict") if status else None
    assert conflict is not None
    assert (
        f"syncer {own} lives in the Service's own namespace and has the address" in conflict.message
    )
    world.cluster.delete(own)
    world.run()
    assert {key.id.split(":")[1] for key in world.registry.held} == {NS}


def test_a_pod_is_handed_over_to_its_own_namespace(world: FakeWorld) -> None:
    """The pod's own team creates a syncer later. The new instance is registered first, and the old
    one is then cancelled."""
    world.run()
    world.cluster.apply(syncer(namespace=SHOP, created=2000))
    report = world.run()
    writes = [
        call.split()[0] for call in world.wire.writes() if call.split()[0] in ("register", "cancel")
    ]
    assert writes == ["register", "register", "cancel", "cancel"]
    why = f"syncer {SHOP}/rating lives in the Service's own namespace and has the address"
    assert {action.why for action in report.plan.removals} == {why}


def test_of_two_syncers_of_other_namespaces_the_older_has_the_pod(world: FakeWorld) -> None:
    """The operator allows a second one, which was created earlier."""
    world.run()
    world.scope = Scope(allowed=frozenset({(NS, SHOP), ("ops", SHOP)}))
    world.cluster.apply(replace(ACROSS, namespace="ops", created=500))
    world.run()
    assert {key.id.split(":")[1] for key in world.registry.held} == {"ops"}


def test_a_deletion_that_may_not_look_any_more_cleans_up_by_the_marks() -> None:
    """Eureka's list shows what the syncer wrote. The other namespace is not read."""
    gone = replace(ACROSS, deleted=START, finalizers=(CLEANUP_FINALIZER,))
    claim = desired([gone]).claims[REF]
    assert isinstance(claim, Deleting)
    assert claim.keys == frozenset()
    claim = desired([gone], crd_live=DENIED).claims[REF]
    assert isinstance(claim, NotServed)
    assert claim.source == DENIED


@pytest.mark.parametrize(
    ("mark", "namespace", "uid"),
    [
        ("rating-1/u", NS, "u"),
        ("shop/rating-1/u", SHOP, "u"),
        ("rating-1", None, None),
        (None, None, None),
    ],
)
def test_the_pods_mark_is_read_with_and_without_a_namespace(
    mark: str | None, namespace: str | None, uid: str | None
) -> None:
    """Instances of an earlier version have a mark without a namespace."""
    marks = {name: value for name, value in instance().metadata.items() if name != POD}
    found = stored(instance(), metadata={**marks, **({POD: mark} if mark else {})})
    assert (pod_namespace_of(found), pod_uid_of(found)) == (namespace, uid)
    assert pod_namespace_of(stored(instance(), metadata={POD: "rating-1/u"})) is None


def test_a_pod_of_the_syncers_own_namespace_is_marked_as_ever() -> None:
    """Another mark would change every instance."""
    us = Ownership(owner=OWNER, cluster=CLUSTER)
    assert us.marked({}, REF, PodRef("p", "u"), pod_namespace=NS)[POD] == "p/u"
