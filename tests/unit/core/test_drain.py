"""The annotation that drains: through whole passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eurekube_sync.actions import Grounds, Update
from eurekube_sync.brake import BrakeLimits
from eurekube_sync.model import Cause, Complete, DrainBy, Endpoint, Node, Pod, Service, Unknown
from eurekube_sync.syncer import DRAIN_ANNOTATION

from .build import NS, endpoint, foreign, piece, service, syncer
from .fakes import FakeWorld

A, B = (f"RATING 10.0.0.{number}:8080" for number in (1, 2))


def drained(of: Service, value: str = "true") -> Service:
    """The Service with the annotation."""
    return replace(of, annotations={DRAIN_ANNOTATION: value})


def setting(**spec: Any) -> FakeWorld:
    """An app in sync, whose last instances the brake lets go."""
    world = FakeWorld()
    world.brake = BrakeLimits(loss_percent=100, apps_percent=100, apps_floor=10)
    world.cluster.apply(service(), piece(endpoint(1), endpoint(2)), syncer(**spec))
    world.cluster.apply(syncer("other", selector={"app": "other"}), service("other", labels={"app": "other"}))
    world.cluster.apply(piece(endpoint(99), service="other"))
    world.registry.put(foreign())
    world.run()
    return world


@pytest.mark.parametrize("not_ready", ["Down", "Cancel"])
def test_a_drained_service_is_down_until_the_annotation_goes(not_ready: str) -> None:
    """Its instances stay registered, whatever `notReady` says; after a restart of Eureka they stay away."""
    world = setting(notReady=not_ready)
    world.cluster.apply(drained(service()))
    plan = world.run().plan
    assert {action.grounds for action in plan.of(Update)} == {Grounds.DRAINED}
    assert (world.statuses()[A], world.statuses()[B]) == ("DOWN", "DOWN")
    assert world.run().plan.changes == ()
    world.registry.held.clear()
    world.run()
    assert A not in world.statuses(), "a drained instance is not brought back"
    world.cluster.apply(service())
    world.run()
    assert (world.statuses()[A], world.statuses()[B]) == ("UP", "UP")


def test_one_drained_service_of_several_is_enough() -> None:
    """A pod behind two Services, of which one is drained."""
    world = setting()
    twin = service("rating-headless", cluster_ips=("None",))
    world.cluster.apply(drained(twin), piece(endpoint(1), service="rating-headless"))
    report = world.run()
    assert (world.statuses()[A], world.statuses()[B]) == ("DOWN", "UP")
    assert [action.why for action in report.plan.changes] == ["Service rating-headless is drained, by annotation"]


def test_only_true_drains() -> None:
    """As Kubernetes writes it."""
    world = setting()
    world.cluster.apply(drained(service(), "false"))
    assert world.run().plan.changes == ()


def test_a_drained_address_of_a_service_is_down() -> None:
    """In mode service, too."""
    world = setting()
    world.cluster.apply(syncer("other", selector={"app": "other"}, mode="service", service={"address": "ClusterIP"}))
    world.run()
    world.cluster.apply(drained(service("other", labels={"app": "other"})))
    world.run()
    assert [status for name, status in world.statuses().items() if name.startswith("OTHER")] == ["DOWN"]


POD = Pod(name="rating-1", uid="uid-of-rating-1", annotations={DRAIN_ANNOTATION: "true"})
DENIED = Unknown(cause=Cause.DENIED, message="403: grant list")


def on_node(number: int, node: str) -> Endpoint:
    """The pod's endpoint, on that node."""
    return replace(endpoint(number), node=node)


def test_a_drained_pod_is_down_where_pods_are_asked() -> None:
    """The others stay; without the option no Pod is read."""
    world = setting()
    world.cluster.pods[NS] = (POD,)
    world.run()
    assert (world.statuses()[A], "list_pods" in world.wire.verbs()) == ("UP", False)
    world.drain_by = frozenset({DrainBy.PODS})
    report = world.run()
    assert [(action.why, action.grounds) for action in report.plan.of(Update)] == [
        ("pod rating-1 is drained, by annotation", Grounds.DRAINED)
    ]
    assert (world.statuses()[A], world.statuses()[B]) == ("DOWN", "UP")
    world.cluster.pods[NS] = ()
    world.run()
    assert world.statuses()[A] == "UP"


def test_what_stands_on_a_drained_node_is_down_where_nodes_are_asked() -> None:
    """A pod without a node, or on one that the list does not know, is not drained."""
    world = setting()
    world.drain_by = frozenset({DrainBy.NODES})
    world.cluster.nodes = Complete(data=(Node(name="a", drained=True), Node(name="b")))
    world.cluster.slices = [one for one in world.cluster.slices if one.service != "rating"]
    world.cluster.apply(piece(on_node(1, "a"), on_node(2, "b"), on_node(3, ""), on_node(4, "c"), endpoint(5, pod=None)))
    world.run()
    found = {name.split()[1]: status for name, status in world.statuses().items() if name.startswith("RATING 10.0.0.")}
    assert found == {"10.0.0.1:8080": "DOWN", **{f"10.0.0.{n}:8080": "UP" for n in range(2, 6)}}


@pytest.mark.parametrize("by", DrainBy)
def test_while_nobody_can_tell_what_is_drained_nothing_changes(by: DrainBy) -> None:
    """A list that fails is not a list without the annotation: what a person drained must not come back by it."""
    world = setting()
    world.drain_by = frozenset({by})
    world.cluster.pods[NS] = (POD,)
    world.cluster.nodes = Complete(data=(Node(name="a", drained=True),))
    world.cluster.slices = [one for one in world.cluster.slices if one.service != "rating"]
    world.cluster.apply(piece(on_node(1, "a"), on_node(2, "b")))
    world.run()
    assert world.statuses()[A] == "DOWN"
    world.cluster.unknown[("pods", NS)] = DENIED
    world.cluster.nodes = DENIED
    assert world.run().plan.changes == ()
    world.cluster.delete(syncer().ref)
    world.run()
    world.later(60)
    world.run()
    assert A not in world.statuses(), "a deletion waits for no Pod and no Node"


def test_a_pod_younger_than_the_list_of_pods_waits_for_the_next() -> None:
    """Nobody can tell yet whether it is drained."""
    world = setting()
    world.drain_by = frozenset({DrainBy.PODS})
    listed = Complete(data=(Pod(name="rating-1", uid="uid-of-rating-1"),))
    world.cluster.unknown[("pods", NS)] = listed  # type: ignore[assignment]
    world.cluster.apply(piece(endpoint(1), endpoint(2), endpoint(3)))
    assert world.run().plan.changes == ()
