"""A syncer is renamed, and in that pass a list fails that only the new one needs: nothing goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.desired.scope import ALLOWED_APPS, Scope
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import EndpointPort, ServicePort, SyncerRef
from eurekube_sync.model.ownership import SYNCER
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.struct import replace
from tests.unit.controller.test_reconcile import add_app
from tests.unit.worlds.build import (
    DENIED,
    NS,
    REF,
    UP,
    endpoint,
    instance,
    key,
    piece,
    service,
    stored,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld

HEIR = SyncerRef(NS, "heir")
WAITS = "syncer rating/heir may claim it, and could not be read"
BOTH = {key(1), key(2)}

NEEDS: dict[str, dict[str, Any]] = {
    "pods": {"metadataFrom": [{"key": "version", "podLabel": "version"}]},
    "readiness": {"readinessGate": True},
}
"""What only the heir asks for, by the list that it then needs."""


def setting(**spec: Any) -> FakeWorld:
    """The old syncer serves two pods, and the heir, which is younger, claims the same. Other apps
    exist, so the brake does not keep the last instances."""
    world = FakeWorld()
    world.sightings = Sightings()
    for number, name in enumerate(("x", "y"), 50):
        add_app(world, name, number)
    world.cluster.apply(service(), piece(endpoint(1), endpoint(2)), syncer(created=1000))
    world.cluster.apply(syncer("heir", created=2000, **spec))
    passes(world)
    return world


def passes(world: FakeWorld, number: int = 2) -> None:
    """Enough passes for all that waits for a second look, or for the server's cache."""
    for _ in range(number):
        world.later(60)
        world.run()


def unreadable(world: FakeWorld, what: str) -> None:
    """A list of the namespace answers 403."""
    if what == "nodes":
        world.cluster.nodes = DENIED
    else:
        world.cluster.unknown[what, NS] = DENIED


def readable(world: FakeWorld) -> None:
    """All lists succeed again."""
    world.cluster.nodes = Complete(data=())
    world.cluster.unknown.clear()


def up(world: FakeWorld) -> set[InstanceKey]:
    """The UP instances of RATING."""
    return {
        one.key
        for one in world.registry.held.values()
        if one.status is UP and one.key.app == "RATING"
    }


def deleted(world: FakeWorld) -> None:
    """As `kubectl delete` does it."""
    world.cluster.delete(REF)


def without_finalizer(world: FakeWorld) -> None:
    """A person removed the finalizer, so the object is gone."""
    del world.cluster.syncers[REF]


def limit_0(world: FakeWorld) -> None:
    """As docs/suspend.md says it."""
    world.cluster.apply(syncer(limit=0))


def moved(world: FakeWorld) -> None:
    """The old syncer selects another Service, which has another pod."""
    world.cluster.apply(service("else", labels={"app": "else"}), piece(endpoint(9), service="else"))
    world.cluster.apply(syncer(selector={"app": "else"}, appName="rating"))


WAYS = (deleted, without_finalizer, limit_0, moved)


@pytest.mark.parametrize("what", NEEDS)
@pytest.mark.parametrize("leave", WAYS)
def test_nothing_goes_while_a_list_fails_that_only_the_heir_needs(
    leave: Callable[[FakeWorld], None], what: str
) -> None:
    """As long as it fails. Then the heir takes over, without a gap."""
    world = setting(**NEEDS[what])
    leave(world)
    unreadable(world, what)
    for _ in range(4):
        passes(world, 1)
        assert up(world) >= BOTH
    if leave is deleted:
        assert f"{WAITS}" in message(world)
    readable(world)
    passes(world, 1)
    assert up(world) >= BOTH
    passes(world, 3)
    assert {world.registry.held[one].metadata[SYNCER] for one in BOTH} == {str(HEIR)}
    assert REF not in world.cluster.syncers or leave not in (deleted, without_finalizer)


def message(world: FakeWorld) -> str:
    """What the deletion waits for."""
    status = world.cluster.syncers[REF].status
    synced = status.condition("Synced") if status else None
    assert synced is not None
    assert synced.reason == "Deleting"
    return synced.message


def test_nothing_goes_while_the_grants_cannot_be_read() -> None:
    """Then no syncer of the namespace is served, and the deletion needs no grant."""
    world = setting()
    world.scope = Scope(granted_only=True)
    world.cluster.annotations[NS] = {ALLOWED_APPS: "*"}
    passes(world)
    deleted(world)
    unreadable(world, "namespaces")
    passes(world, 3)
    assert up(world) == BOTH
    assert message(world) == f"the deletion waits for 2 instances, such as {key(1)}: {WAITS}"


@pytest.mark.parametrize("leave", [deleted, without_finalizer, limit_0])
def test_an_heir_in_a_namespace_whose_syncers_could_not_be_listed(
    leave: Callable[[FakeWorld], None],
) -> None:
    """It may select here, so it may be the heir. One that may not is none."""
    world = setting()
    del world.cluster.syncers[HEIR]
    world.cluster.apply(
        syncer("heir", namespace="ops", selector={"app": "rating", "namespace": NS})
    )
    world.scope = Scope(allowed=frozenset({("ops", NS)}))
    passes(world)
    leave(world)
    world.cluster.unknown["syncers", "ops"] = DENIED
    passes(world, 3)
    assert up(world) == BOTH
    world.scope = Scope()
    passes(world, 3)
    assert up(world) == set()


@pytest.mark.parametrize("leave", WAYS)
def test_a_dead_pod_goes_although_the_heir_cannot_be_read(
    leave: Callable[[FakeWorld], None],
) -> None:
    """The namespace's pods are listed for it, although no syncer needs them."""
    world = setting(**NEEDS["pods"])
    world.cluster.nodes = DENIED
    leave(world)
    world.cluster.ended.add("uid-of-rating-2")
    passes(world, 3)
    assert up(world) - {key(9)} == {key(1)}


def test_a_pod_whose_address_another_pod_has_goes_although_the_heir_cannot_be_read() -> None:
    """Its callers would reach another app."""
    world = setting(**NEEDS["pods"])
    deleted(world)
    unreadable(world, "pods")
    world.cluster.apply(service("new", labels={"app": "new"}))
    world.cluster.apply(piece(endpoint(1)), piece(endpoint(2, pod="another"), service="new"))
    passes(world, 3)
    assert up(world) == {key(1)}


@pytest.mark.parametrize("what", NEEDS)
def test_a_syncer_that_is_served_scales_down_although_another_cannot_be_read(what: str) -> None:
    """No Service has the pod any more, so an heir could not find it either."""
    world = setting(**NEEDS[what])
    unreadable(world, what)
    world.cluster.apply(piece(endpoint(1)))
    passes(world)
    assert up(world) == {key(1)}


def test_a_syncer_that_was_read_and_is_not_served_is_no_heir() -> None:
    """Its spec is wrong, and will be wrong in the next pass."""
    world = setting(limit="much")
    deleted(world)
    passes(world, 3)
    assert up(world) == set()
    assert REF not in world.cluster.syncers


def test_an_unlisted_id_of_a_deleted_syncer_is_not_cancelled_while_the_heir_cannot_be_read() -> (
    None
):
    """The heir may have registered it since Eureka made its list. The deletion waits, and says
    so."""
    world = setting(**NEEDS["pods"])
    world.registry.held.pop(key(2))
    world.registry.cached_for(1000)
    deleted(world)
    unreadable(world, "pods")
    heirs = replace(stored(instance(2)), instance=instance(2, ref=HEIR))
    world.registry.put(heirs)
    passes(world, 1)
    assert up(world) == BOTH
    world.registry.held.clear()
    world.registry.cached_for(0)
    passes(world, 3)
    assert message(world) == f"the deletion waits for 2 instances, such as {key(1)}: {WAITS}"
    readable(world)
    passes(world, 3)
    assert REF not in world.cluster.syncers


@pytest.mark.parametrize("leave", [deleted, limit_0])
def test_a_pod_that_an_heir_knows_too_little_of_waits_for_it(
    leave: Callable[[FakeWorld], None],
) -> None:
    """The heir is served, but a slice lacks its second port (yet). Nothing of another app waits."""
    world = setting(port="http", securePort="https")
    add_app(world, "else", 60)
    passes(world)
    both = (ServicePort(name="http", port=80, target=8080), ServicePort(name="https", port=443))
    world.cluster.apply(service("rating", *both))
    ports = (*piece().ports, EndpointPort(name="https", port=8443))
    world.cluster.apply(replace(piece(endpoint(1), name="first"), ports=ports))
    world.cluster.apply(piece(endpoint(2)))
    world.cluster.apply(syncer(port="http"))
    passes(world)
    leave(world)
    world.cluster.delete(SyncerRef(NS, "else"))
    report = world.run()
    assert up(world) == BOTH
    why = {action.key: action.why for action in report.plan.renewals}[key(2)]
    assert why == "syncer rating/heir may claim it: pod rating-2 has no port 'https' (yet)"
    assert key(60, app="else") not in world.registry.held


@pytest.mark.parametrize("leave", [deleted, without_finalizer, limit_0, moved])
def test_an_address_without_a_pod_waits_for_the_heir(leave: Callable[[FakeWorld], None]) -> None:
    """Nothing proves that it is gone, so the pods are not listed for it. The heir cannot be read
    because of another pod, which was never ready."""
    world = setting(**NEEDS["readiness"])
    bare = (endpoint(number, pod=None) for number in (1, 2))
    world.cluster.apply(piece(*bare, endpoint(3, ready=False)))
    for one in BOTH:
        del world.registry.held[one]  # its mark names a pod
    passes(world)
    assert up(world) == BOTH
    leave(world)
    unreadable(world, "readiness")
    passes(world, 3)
    assert up(world) >= BOTH
    assert "list_pods" not in world.wire.verbs()


def rest_moves(world: FakeWorld, **heir: Any) -> set[InstanceKey]:
    """Two Services are instances of REST, and then its syncer selects only the first. Another
    syncer needs Nodes or Pods, which cannot be listed. Return both instances."""
    rest: dict[str, Any] = {
        "mode": "service",
        "service": {"address": "ClusterIP"},
        "appName": "rest",
    }
    labels = {"app": "rest"}
    world.cluster.apply(
        service("first", labels=labels, cluster_ips=("10.0.0.71",)),
        piece(endpoint(7), service="first"),
    )
    world.cluster.apply(
        service("second", labels=labels, cluster_ips=("10.0.0.72",)),
        piece(endpoint(8), service="second"),
    )
    world.cluster.apply(syncer("rest", selector=labels, **rest))
    passes(world)
    both = of_rest(world)
    assert len(both) == 2
    unreadable(world, "nodes")
    unreadable(world, "pods")
    world.cluster.apply(syncer("neighbour", **heir))
    world.cluster.apply(syncer("rest", selector={"service": "first"}, **rest))
    passes(world, 3)
    return both


def of_rest(world: FakeWorld) -> set[InstanceKey]:
    """The instances of REST."""
    return {one for one in world.registry.held if one.app == "REST"}


NODE_PORTS: dict[str, Any] = {"mode": "service", "service": {"address": "NodePort"}}


def test_a_service_that_is_no_longer_selected_waits_for_the_heir() -> None:
    """Its address is in no slice, and the heir may register it all the same."""
    world = setting()
    both = rest_moves(world, selector={"service": "second"}, appName="rest", **NODE_PORTS)
    assert of_rest(world) == both
    readable(world)
    world.cluster.delete(SyncerRef(NS, "neighbour"))
    passes(world, 3)
    assert len(of_rest(world)) == 1


@pytest.mark.parametrize(
    "neighbour",
    [
        {"selector": {"service": "second"}, "appName": "else", **NODE_PORTS},
        {"selector": {"service": "none"}, "appName": "rest", **NODE_PORTS},
        {"selector": {"service": "second"}, "appName": "rest", **NEEDS["pods"]},
    ],
    ids=["another app", "no Service", "only pods"],
)
def test_a_service_does_not_wait_for_a_syncer_that_could_not_register_it(
    neighbour: dict[str, Any],
) -> None:
    """The neighbour has another app, no Service, or registers pods."""
    world = setting()
    rest_moves(world, **neighbour)
    assert len(of_rest(world)) == 1


NEIGHBOURS: dict[str, dict[str, Any]] = {
    "its Service has other pods": {"selector": {"app": "else"}, "appName": "rating"},
    "no Service": {"selector": {"app": "none"}, "appName": "rating"},
    "another app": {"appName": "other"},
    "another app by its selector": {"selector": {"app": "other"}},
}


@pytest.mark.parametrize("neighbour", NEIGHBOURS)
@pytest.mark.parametrize("leave", WAYS)
def test_nothing_waits_for_a_syncer_that_could_not_claim_it(
    leave: Callable[[FakeWorld], None], neighbour: str
) -> None:
    """The lists that show it could be read, and the list of pods could not."""
    world = setting()
    world.cluster.delete(HEIR)
    world.cluster.apply(service("else", labels={"app": "else"}), piece(endpoint(9), service="else"))
    world.cluster.apply(syncer("neighbour", **{**NEEDS["pods"], **NEIGHBOURS[neighbour]}))
    passes(world, 3)
    leave(world)
    unreadable(world, "pods")
    passes(world, 3)
    assert up(world) & BOTH == set()
    assert REF not in world.cluster.syncers or leave not in (deleted, without_finalizer)


@pytest.mark.parametrize("leave", WAYS)
def test_a_pod_that_no_service_has_goes_although_neither_heir_nor_pods_can_be_read(
    leave: Callable[[FakeWorld], None],
) -> None:
    """The heir would not find it. The other pod waits for the heir."""
    world = setting(**NEEDS["pods"])
    unreadable(world, "pods")
    leave(world)
    world.cluster.apply(piece(endpoint(1)))
    passes(world, 3)
    assert up(world) - {key(9)} == {key(1)}


SECOND: dict[str, dict[str, Any]] = {
    "it has no slice": {},
    "it became an ExternalName": {"type": "ExternalName"},
}
"""A second Service that the heir selects, and whose slices may lack a pod."""


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("leave", [deleted, without_finalizer, limit_0])
def test_an_heir_waits_for_slices_that_may_lack_the_pod(
    leave: Callable[[FakeWorld], None], second: str
) -> None:
    """They do not say what it could not claim."""
    world = setting(**NEEDS["pods"])
    unreadable(world, "pods")
    leave(world)
    world.cluster.apply(service("second", **SECOND[second]), piece(endpoint(1)))
    if SECOND[second]:
        world.cluster.apply(piece(endpoint(1), service="second"))
    passes(world, 3)
    assert up(world) == BOTH


@pytest.mark.parametrize("what", ["services", "slices"])
@pytest.mark.parametrize(
    ("heir", "waits"),
    [
        ({}, True),
        ({"appName": "rating"}, True),
        ({"appName": "other"}, False),
        ({"limit": "much"}, False),
    ],
)
def test_an_heir_whose_services_are_unknown(what: str, heir: dict[str, Any], waits: bool) -> None:
    """It may select each pod, and name each app but where its spec names one. An invalid one is
    none."""
    world = setting()
    world.cluster.apply(syncer("heir", **{"selector": {"matchLabels": {"app": "rating"}}, **heir}))
    without_finalizer(world)
    unreadable(world, what)
    passes(world, 3)
    assert (up(world) == BOTH) is waits


def test_a_pod_in_no_slice_goes_although_the_syncers_of_a_namespace_could_not_be_listed() -> None:
    """They could select only Services, and none has the pod."""
    world = setting()
    del world.cluster.syncers[HEIR]
    world.cluster.apply(
        syncer("heir", namespace="ops", selector={"app": "rating", "namespace": NS})
    )
    world.scope = Scope(allowed=frozenset({("ops", NS)}))
    passes(world)
    deleted(world)
    world.cluster.unknown["syncers", "ops"] = DENIED
    world.cluster.apply(piece(endpoint(1)))
    passes(world, 3)
    assert up(world) == {key(1)}


@pytest.mark.parametrize(
    ("other", "ends"), [({"selector": {"app": "else"}, "appName": "rating"}, True), ({}, False)]
)
def test_a_deletion_waits_only_for_an_heir_that_could_have_registered_an_id(
    other: dict[str, Any], ends: bool
) -> None:
    """No list shows the ids, and the heir may have registered those of its own pods."""
    world = setting()
    world.cluster.apply(service("else", labels={"app": "else"}), piece(endpoint(9), service="else"))
    world.cluster.apply(syncer("heir", **{**NEEDS["pods"], **other}))
    for one in BOTH:
        del world.registry.held[one]
    deleted(world)
    unreadable(world, "pods")
    passes(world, 3)
    assert (REF not in world.cluster.syncers) is ends
