"""The annotation that drains: through whole passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eurekube_sync.actions import Grounds, Update
from eurekube_sync.brake import BrakeLimits
from eurekube_sync.model import Service
from eurekube_sync.syncer import DRAIN_ANNOTATION

from .build import endpoint, foreign, piece, service, syncer
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
