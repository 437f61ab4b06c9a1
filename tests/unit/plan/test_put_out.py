"""A person sets an instance OUT_OF_SERVICE, and its Service loses its endpoints for a moment."""

from __future__ import annotations

import pytest

from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.cli.output.report import sentences
from eurekube_sync.model.sources import Cause, Unknown
from tests.unit.controller.test_reconcile import add_app
from tests.unit.worlds.build import DOWN, NS, OUT, UP, endpoint, key, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

PODS = range(1, 4)
PUT_OUT = key(3)
NO_ENDPOINT = "it has no endpoint any more; not cancelled, because a person set it OUT_OF_SERVICE"


def setting() -> FakeWorld:
    """Three pods, the last of which a person put out of service, among other apps."""
    world = FakeWorld()
    world.sightings = Sightings()
    for number, name in enumerate(("x", "y"), 50):
        add_app(world, name, number)
    world.cluster.apply(syncer(), service(), piece(*map(endpoint, PODS)))
    world.run()
    world.registry.override(PUT_OUT, OUT)
    world.run()
    return world


def broken(world: FakeWorld, *, living: bool = True) -> None:
    """The Service has a wrong selector, so that its slices are empty. The pods live on."""
    there = [one.pod for number in PODS if (one := endpoint(number)).pod is not None]
    world.cluster.pods[NS] = tuple(there if living else there[:-1])
    world.cluster.apply(piece())


def passes(world: FakeWorld, number: int) -> None:
    """This many passes, with a minute between them."""
    for _ in range(number):
        world.later(60)
        world.run()


@pytest.mark.parametrize("number", [1, 5])
def test_it_stays_out_of_service_when_the_selector_is_right_again(number: int) -> None:
    """Whether its UP siblings were held until then, or confirmed and cancelled."""
    world = setting()
    broken(world)
    passes(world, number)
    assert world.registry.held[PUT_OUT].status is OUT
    world.cluster.apply(piece(*map(endpoint, PODS)))
    passes(world, 2)
    assert world.registry.held[PUT_OUT].status is OUT
    assert [world.registry.held[key(number)].status for number in (1, 2)] == [UP, UP]


def test_it_stays_although_the_pods_may_not_be_listed_and_the_pass_is_none_the_worse() -> None:
    """Nothing shows that its pod is gone."""
    world = setting()
    broken(world)
    world.cluster.unknown["pods", NS] = Unknown(cause=Cause.DENIED, message="403")
    passes(world, 3)
    assert world.registry.held[PUT_OUT].status is OUT
    report = world.run()
    assert report.view is not None
    assert report.view.pods is None or NS not in report.view.pods.by_namespace


def test_the_report_and_the_condition_name_it() -> None:
    """Else no screen tells a person that it stays."""
    world = setting()
    broken(world)
    passes(world, 3)
    report = world.run()
    assert f"{PUT_OUT}: {NO_ENDPOINT}" in sentences(report)
    world.cluster.apply(piece(endpoint(1)))
    passes(world, 3)
    (status,) = [one.status for ref, one in world.cluster.syncers.items() if ref.name == "rating"]
    synced = status.condition("Synced") if status else None
    assert synced is not None
    assert (
        synced.message
        == "1 instance is no longer wanted, and stays as a person set it: OUT_OF_SERVICE"
    )


def test_it_goes_with_its_pod() -> None:
    """A complete list of the pods shows that, after the pass in which its app is held."""
    world = setting()
    broken(world, living=False)
    world.run()
    assert world.registry.held[PUT_OUT].status is OUT, "it is held with its siblings"
    passes(world, 3)
    assert PUT_OUT not in world.registry.held


def test_it_goes_at_once_where_nothing_else_of_its_app_is_held() -> None:
    """One pod ended, and the others serve."""
    world = setting()
    world.cluster.ended.add("uid-of-rating-3")
    world.cluster.apply(piece(endpoint(1), endpoint(2)))
    passes(world, 1)
    assert PUT_OUT not in world.registry.held
    assert world.registry.held[key(1)].status is not DOWN
