"""An app that comes and goes does not keep another app's pods UP: a larger hold in between is a
look, too."""

from __future__ import annotations

import pytest

from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.model.kubernetes import PodRef, SyncerRef
from eurekube_sync.model.reasons import Reason
from tests.unit.controller.test_reconcile import add_app
from tests.unit.worlds.build import NS, endpoint, instance, key, piece, stored
from tests.unit.worlds.fakes import FakeWorld

APPS = {"geo": 1, "pay": 2, "a": 3, "b": 4, "c": 5, "d": 6, "e": 7, "f": 8}


@pytest.fixture(params=["daemon", "one process for each pass"])
def world(request: pytest.FixtureRequest) -> FakeWorld:
    """Eight apps with one pod each."""
    world = FakeWorld()
    world.sightings = Sightings() if request.param == "daemon" else None
    for name, number in APPS.items():
        add_app(world, name, number)
    world.run()
    return world


def turn(world: FakeWorld, name: str, *, ready: bool) -> None:
    """Set the app's pod, ready or not."""
    world.cluster.apply(piece(endpoint(APPS[name], ready=ready), service=name))


def stands(world: FakeWorld, name: str) -> str | None:
    """Return the status of the app's instance."""
    return world.statuses().get(f"{name.upper()} 10.0.0.{APPS[name]}:8080")


def held_for(world: FakeWorld, name: str) -> str:
    """Return the reason of the condition RemovalHeld."""
    status = world.cluster.syncers[SyncerRef(NS, name)].status
    condition = status.condition("RemovalHeld") if status else None
    assert condition is not None
    return condition.reason


def test_a_flapping_app_keeps_no_dead_pod_of_another_app_up(world: FakeWorld) -> None:
    """`geo` is unready in every second pass, and then two apps would be empty. `pay` stays unready,
    and goes with the first pass that holds no other app."""
    turn(world, "pay", ready=False)
    world.run()
    world.later(30)
    turn(world, "geo", ready=False)
    world.run()
    assert (stands(world, "geo"), stands(world, "pay")) == ("UP", "UP")
    world.later(30)
    turn(world, "geo", ready=True)
    world.run()
    assert (stands(world, "geo"), stands(world, "pay")) == ("UP", "DOWN")


def test_a_look_of_a_larger_hold_counts_for_the_app_that_is_left(world: FakeWorld) -> None:
    """Both apps are held together. When `geo` is back, `pay` was seen 30 s before."""
    turn(world, "pay", ready=False)
    turn(world, "geo", ready=False)
    world.run()
    assert held_for(world, "pay") == held_for(world, "geo") == "TooManyRemovals"
    world.later(30)
    turn(world, "geo", ready=True)
    assert world.run().held is None
    assert (stands(world, "geo"), stands(world, "pay")) == ("UP", "DOWN")


def test_a_larger_hold_does_not_shorten_the_wait(world: FakeWorld) -> None:
    """10 s are no second look, whatever held the removal at the first."""
    turn(world, "pay", ready=False)
    turn(world, "geo", ready=False)
    world.run()
    world.later(10)
    turn(world, "geo", ready=True)
    world.run()
    assert (stands(world, "pay"), held_for(world, "pay")) == ("UP", "AwaitingConfirmation")
    world.later(12)
    world.run()
    assert stands(world, "pay") == "DOWN"


def test_a_pass_that_does_not_plan_the_removal_forgets_it(world: FakeWorld) -> None:
    """`pay` is ready for one pass, while a larger hold has `geo` and another app."""
    for name in ("pay", "geo", "a"):
        turn(world, name, ready=False)
    world.run()
    world.later(30)
    turn(world, "pay", ready=True)
    world.run()
    assert held_for(world, "geo") == "TooManyRemovals"
    world.later(30)
    turn(world, "pay", ready=False)
    for name in ("geo", "a"):
        turn(world, name, ready=True)
    world.run()
    assert (stands(world, "pay"), held_for(world, "pay")) == ("UP", "AwaitingConfirmation")


def test_a_look_beside_a_hold_by_size_counts_as_well(world: FakeWorld) -> None:
    """The larger hold is that of 30 %: every second pass, one pod of each of two apps is lost."""
    world.brake = BrakeLimits(loss_floor=1, loss_percent=10, apps_floor=5)
    turn(world, "pay", ready=False)
    turn(world, "geo", ready=False)
    world.run()
    assert held_for(world, "pay") == "TooManyRemovals"
    world.later(30)
    turn(world, "geo", ready=True)
    world.run()
    assert stands(world, "pay") == "DOWN"


def test_the_time_in_a_status_lasts_through_a_larger_hold(world: FakeWorld) -> None:
    """It is the time of the first look, and a pass that changes nothing of it writes no status."""
    turn(world, "pay", ready=False)
    world.run()
    first = world.cluster.syncers[SyncerRef(NS, "pay")].status
    assert first is not None
    world.later(10)
    turn(world, "geo", ready=False)
    world.run()
    second = world.cluster.syncers[SyncerRef(NS, "pay")].status
    assert second is not None
    assert first.unconfirmed_removal == second.unconfirmed_removal != ""
    assert first.unconfirmed_since == second.unconfirmed_since is not None
    world.later(5)
    world.run()
    assert world.wire.writes() == []


def test_an_orphan_is_seen_within_a_larger_hold_of_the_same_process() -> None:
    """It has no status, so only the process remembers it."""
    world = FakeWorld()
    world.sightings = Sightings()
    for name, number in APPS.items():
        add_app(world, name, number)
    world.run()
    orphan = stored(instance(9, app="gone", ref=SyncerRef(NS, "gone")))
    world.registry.put(orphan)
    world.cluster.pods[NS] = (PodRef("rating-9", "uid-of-rating-9"),)
    turn(world, "geo", ready=False)
    report = world.run()
    assert report.held is not None
    assert [hold.reason for hold in report.held.holds] == [Reason.TOO_MANY_REMOVALS]
    assert key(9, app="gone") in world.registry.held
    world.later(30)
    turn(world, "geo", ready=True)
    world.run()
    assert orphan.key not in world.registry.held
