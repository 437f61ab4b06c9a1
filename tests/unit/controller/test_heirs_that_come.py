"""A release renames a syncer together with its Service or its port. Until all of that is there, the
new syncer is not served, and the instances that it will claim stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eurekube_sync.desired.scope import ALLOWED_APPS, Scope
from eurekube_sync.model.kubernetes import PodRef, ServicePort, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import SYNCER
from eurekube_sync.model.struct import replace
from tests.unit.controller.test_reconcile import add_app
from tests.unit.controller.test_unread_heirs import (
    BOTH,
    HEIR,
    deleted,
    limit_0,
    message,
    passes,
    setting,
    up,
    without_finalizer,
)
from tests.unit.worlds.build import (
    DENIED,
    NS,
    REF,
    endpoint,
    key,
    piece,
    service,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld

WAYS = (deleted, without_finalizer, limit_0)
PODS = tuple(PodRef(f"rating-{number}", f"uid-of-rating-{number}") for number in (1, 2))


def world() -> FakeWorld:
    """The old syncer serves two pods, which live on whatever the slices say."""
    found = setting()
    del found.cluster.syncers[HEIR]
    found.cluster.pods[NS] = PODS
    return found


def heir(**spec: Any) -> SyncerObject:
    """The new syncer."""
    return syncer("heir", created=2000, **spec)


WEB = ServicePort(name="web", port=80, target=8080)
METRICS = ServicePort(name="metrics", port=9090, target=9090)


def without_slices(world: FakeWorld) -> None:
    """The Service has another name, and no slice yet."""
    cluster = world.cluster
    cluster.services = [one for one in cluster.services if one.name != "rating"]
    cluster.slices = [one for one in cluster.slices if one.name != piece().name]
    cluster.apply(service("new"), heir())


def slices_written(world: FakeWorld) -> None:
    """The controller has made the slice of the new Service."""
    world.cluster.apply(piece(endpoint(1), endpoint(2), service="new"))


def before_its_port(world: FakeWorld) -> None:
    """The syncer names a port that the Service will have."""
    world.cluster.apply(heir(port="web"))


def port_renamed(world: FakeWorld) -> None:
    """The Service has the port now, and its slices."""
    world.cluster.apply(service("rating", WEB), piece(endpoint(1), endpoint(2), port_name="web"))


def before_its_slices(world: FakeWorld) -> None:
    """The Service has the new port, and its slices still the old one."""
    world.cluster.apply(service("rating", WEB), heir(port="web"))


def beside_metrics(world: FakeWorld) -> None:
    """A Service for metrics has the same labels, and no port is named http."""
    port_renamed(world)
    world.cluster.apply(
        service("metrics", METRICS),
        piece(endpoint(1), endpoint(2), service="metrics", port=9090, port_name="metrics"),
        heir(),
    )


def port_named(world: FakeWorld) -> None:
    """The next release names the port."""
    world.cluster.apply(heir(port="web"))


COMES: dict[str, tuple[Callable[[FakeWorld], None], Callable[[FakeWorld], None]]] = {
    "the Service has no slice yet": (without_slices, slices_written),
    "the Service lacks the port yet": (before_its_port, port_renamed),
    "the slices lack the port yet": (before_its_slices, port_renamed),
    "the port is ambiguous": (beside_metrics, port_named),
}


@pytest.mark.parametrize("what", COMES)
@pytest.mark.parametrize("leave", WAYS)
def test_nothing_goes_while_the_heir_cannot_be_served_yet(
    leave: Callable[[FakeWorld], None], what: str
) -> None:
    """As long as that lasts. Then the heir takes over, without a gap."""
    found = world()
    release, rest = COMES[what]
    leave(found)
    release(found)
    for _ in range(4):
        passes(found, 1)
        assert up(found) == BOTH
    rest(found)
    passes(found, 1)
    assert up(found) == BOTH
    passes(found, 3)
    assert {found.registry.held[one].metadata[SYNCER] for one in BOTH} == {str(HEIR)}
    assert REF not in found.cluster.syncers or leave is limit_0


def test_a_deletion_says_for_whom_it_waits() -> None:
    """And why that one is not served."""
    found = world()
    without_slices(found)
    deleted(found)
    passes(found)
    why = "syncer rating/heir may claim it, and is not served: NoEndpointSlices"
    assert message(found) == f"the deletion waits for 2 instances, such as {key(1)}: {why}"


@pytest.mark.parametrize("leave", WAYS)
def test_a_dead_pod_goes_although_the_heir_is_not_served(
    leave: Callable[[FakeWorld], None],
) -> None:
    """The namespace's pods are listed for it."""
    found = world()
    without_slices(found)
    leave(found)
    found.cluster.ended.add("uid-of-rating-2")
    passes(found, 3)
    assert up(found) == {key(1)}


def test_a_service_as_the_instance_waits_for_its_heir() -> None:
    """The heir asks for a port that the Service does not have yet."""
    found = world()
    spec: dict[str, Any] = {"selector": {"app": "shop"}, "mode": "service"}
    found.cluster.apply(service("shop", labels={"app": "shop"}), piece(endpoint(7), service="shop"))
    found.cluster.apply(syncer("shop", **spec, service={"address": "ClusterIP"}))
    passes(found)
    shop = {one for one in found.registry.held if one.app == "SHOP"}
    assert len(shop) == 1
    found.cluster.apply(heir(**spec, service={"address": "ClusterIP"}, port="web"))
    found.cluster.delete(SyncerRef(NS, "shop"))
    passes(found, 3)
    assert {one for one in found.registry.held if one.app == "SHOP"} == shop
    found.cluster.apply(service("shop", WEB, labels={"app": "shop"}))
    passes(found, 3)
    (left,) = (one for key, one in found.registry.held.items() if key.app == "SHOP")
    assert left.metadata[SYNCER] == str(HEIR)


NOT_HEIRS: dict[str, dict[str, Any]] = {
    "it has no Service": {"selector": {"app": "none"}},
    "it is of another app": {"port": "web", "appName": "other"},
    "its Service has other pods": {"selector": {"app": "else"}, "appName": "rating", "port": "web"},
    "it is to register nothing": {"port": "web", "limit": 0},
    "its spec is wrong": {"port": "web", "limit": "much"},
}


@pytest.mark.parametrize("spec", NOT_HEIRS.values(), ids=NOT_HEIRS)
@pytest.mark.parametrize("leave", WAYS)
def test_nothing_waits_for_a_syncer_that_would_not_claim_it(
    leave: Callable[[FakeWorld], None], spec: dict[str, Any]
) -> None:
    """It would register none of these pods if it were served."""
    found = world()
    add_app(found, "else", 60)
    found.cluster.apply(heir(**spec))
    passes(found)
    leave(found)
    passes(found, 3)
    assert up(found) & BOTH == set()


def test_nothing_waits_for_a_syncer_that_the_operator_does_not_allow() -> None:
    """Its Namespace lacks the grant, or it may not select there. Otherwise a tenant could keep what
    another one deletes."""
    found = world()
    found.scope = Scope(granted_only=True)
    found.cluster.annotations = {NS: {ALLOWED_APPS: "rating"}, "ops": {}}
    found.cluster.apply(heir(vipAddress="foreign"))
    found.cluster.apply(
        replace(heir(selector={"app": "rating", "namespace": NS}, port="web"), namespace="ops")
    )
    passes(found)
    assert up(found) == BOTH
    deleted(found)
    passes(found, 3)
    assert up(found) == set()


def test_a_served_syncer_scales_down_although_another_one_is_not_served() -> None:
    """Its Service lists the pod no more. The other one has a Service without slices, perhaps for
    ever, and the pods may not be listed."""
    found = world()
    found.cluster.apply(service("new", labels={"app": "new"}))
    found.cluster.apply(heir(selector={"app": "new"}, appName="rating"), piece(endpoint(1)))
    found.cluster.unknown["pods", NS] = DENIED
    passes(found, 3)
    assert up(found) == {key(1)}
