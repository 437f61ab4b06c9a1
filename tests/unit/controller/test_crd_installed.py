"""A CRD that is installed again has no syncers yet. An instance whose syncer is created late is no
orphan."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.model.actions import Cancel
from eurekube_sync.model.kubernetes import CrdAge, PodRef, SyncerRef
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.struct import replace
from tests.unit.controller.test_reconcile import add_app
from tests.unit.worlds.build import DENIED, NS, OUT, endpoint, key, piece, syncer
from tests.unit.worlds.fakes import FakeWorld

APPS = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
DEAD, UNREADY = "10.0.0.1:8080", "10.0.0.6:8080"
"""The two pods of `a` in some tests, by what becomes of them."""


def installed_anew(*, after: float = 600, more_of_a: Sequence[int] = ()) -> FakeWorld:
    """A daemon's world. Five apps are registered, and the CRD was just installed again, without a
    syncer. The app `a` may have more pods than one."""
    world = FakeWorld()
    world.sightings = Sightings()
    for name, number in APPS.items():
        add_app(world, name, number)
    turn_pods_of_a(world, **{f"pod{number}": True for number in (1, *more_of_a)})
    world.run()
    world.later(after)
    world.cluster.syncers.clear()
    world.cluster.crd = Complete(data=CrdAge(world.clock.now(), world.clock.now()))
    world.later(10)
    return world


def create(world: FakeWorld, *names: str) -> None:
    """Create the syncers, as a deployment tool does."""
    for name in names:
        world.cluster.apply(syncer(name, selector={"app": name}, created=world.clock.now()))


def turn_pods_of_a(world: FakeWorld, **pods: bool) -> None:
    """Give `a` these endpoints, by names like `pod1`, each ready or not."""
    endpoints = [endpoint(int(name[3:]), ready=ready) for name, ready in pods.items()]
    world.cluster.apply(piece(*endpoints, service="a"))


def up_of_a(world: FakeWorld) -> list[str]:
    """The addresses at which `a` is UP."""
    standing = world.statuses().items()
    return sorted(
        name.split()[1] for name, status in standing if (name[:2], status) == ("A ", "UP")
    )


def standing(world: FakeWorld) -> set[str]:
    """The apps that have an UP instance."""
    return {name.split()[0].lower() for name, status in world.statuses().items() if status == "UP"}


def test_instances_stay_until_their_late_syncer_is_created_again() -> None:
    """The last instance stays too, minutes after the others, although the limits of the brake would
    let it go."""
    world = installed_anew()
    for name in "abcd":
        create(world, name)
        world.run()
        world.later(30)
        assert standing(world) == set(APPS)
    for _ in range(5):
        report = world.run()
        world.later(60)
        assert standing(world) == set(APPS)
        assert report.held is not None
        assert [hold.reason for hold in report.held.holds] == [Reason.CRD_INSTALLED]
        assert (
            "1 UP instance of rating/e is older than the CustomResourceDefinition (an earlier"
            in report.held.reason
        )
    create(world, "e")
    assert world.run().held is None
    assert standing(world) == set(APPS)


def test_at_the_address_of_another_apps_pod_nothing_waits_though_its_namespace_has_no_syncer() -> (
    None
):
    """Callers of A would reach a pod of B."""
    world = installed_anew()
    world.cluster.apply(piece(service="a"), piece(endpoint(1, pod="b-9"), service="b"))
    assert world.run().held is not None
    assert standing(world) == set(APPS) - {"a"}


def test_a_person_releases_instances_of_syncers_that_will_not_return() -> None:
    """A plan id releases them, like any other held removal."""
    world = installed_anew()
    create(world, *"abc")
    held = world.run().held
    assert held is not None
    assert held.reason.startswith("2 UP instances of rating/d and of 1 more syncer are older")
    world.run(approved=held.plan_id)
    assert standing(world) == {"a", "b", "c"}


def test_a_hold_for_a_new_crd_hides_or_delays_no_other_removal() -> None:
    """The held instances count as registered."""
    world = installed_anew()
    create(world, *"abcd")
    world.run()
    world.cluster.apply(piece(endpoint(1, ready=False), service="a"))
    for _ in range(2):
        world.run()
        assert standing(world) == set(APPS)  # for the second look
        world.later(15)
    world.run()
    assert standing(world) == {"b", "c", "d", "e"}


@pytest.mark.parametrize("written", ["before", "after"])
def test_an_instance_written_after_the_new_crd_is_an_orphan_as_usual(written: str) -> None:
    """Its syncer lived under the present CRD, so somebody deleted it."""
    world = installed_anew()
    create(world, *APPS)
    if written == "after":
        world.registry.held[key(5, app="e")] = replace(
            world.registry.held[key(5, app="e")],
            last_dirty_timestamp=int(world.clock.now() * 1000),
            registered=int(world.clock.now() * 1000),
        )
    del world.cluster.syncers[SyncerRef(NS, "e")]  # somebody removed its finalizer by hand
    for _ in range(3):
        world.run()
        world.later(15)
    assert ("e" in standing(world)) is (written == "before")


@pytest.mark.parametrize("wrong", ["ours", "Eureka's"])
def test_a_clock_that_was_ahead_makes_no_instance_younger_than_the_crd(wrong: str) -> None:
    """One clock was ten minutes ahead when the instances were written, and is right again. The CRD
    was installed again within that time."""
    world = installed_anew(after=300)
    for instance in list(world.registry.held.values()):
        if wrong == "ours":
            instance = replace(
                instance, last_dirty_timestamp=instance.last_dirty_timestamp + 600_000
            )
        else:
            instance = replace(instance, registered=instance.registered + 600_000)
        world.registry.put(instance)
    for _ in range(3):
        report = world.run()
        assert report.held is not None
        assert {hold.reason for hold in report.held.holds} == {Reason.CRD_INSTALLED}
        assert standing(world) == set(APPS)
        world.later(30)


def test_an_out_of_service_instance_stays_so_until_its_syncer_is_back() -> None:
    """A cancel would forget the override, and the syncer would register the instance as UP."""
    world = installed_anew()
    world.registry.override(key(5, app="e"), OUT)
    create(world, *"abcd")
    for _ in range(3):
        report = world.run()
        world.later(30)
        assert world.registry.held[key(5, app="e")].status is OUT
        assert report.plan.of(Cancel) == ()
    create(world, "e")
    world.run()
    assert world.registry.held[key(5, app="e")].status is OUT


def test_a_pass_that_finds_the_pod_alive_forgets_that_it_was_dead() -> None:
    """So it is after a fault of the API server. The wait for a dead pod begins again."""
    world = installed_anew(more_of_a=[6])
    turn_pods_of_a(world, pod6=True)
    world.run()
    world.cluster.pods[NS] = tuple(
        PodRef(f"rating-{number}", f"uid-of-rating-{number}") for number in range(1, 7)
    )
    world.later(30)
    world.run()
    del world.cluster.pods[NS]
    world.later(12)
    world.run()
    assert up_of_a(world) == [DEAD, UNREADY]
    world.later(30)
    world.run()
    assert up_of_a(world) == [UNREADY]


# --- A dead pod, seen before its syncer was back, in an app that begins to wait then --------------


@pytest.fixture
def dying() -> FakeWorld:
    """A pod of `a` was seen dead while there was no syncer. Now its syncer is back, and the other
    pod of `a` is unready: the app would have no instance left, and waits for a second look."""
    world = installed_anew(more_of_a=[6])
    turn_pods_of_a(world, pod6=True)
    held = world.run().held
    assert held is not None
    assert [hold.removals[0].key.id for hold in held.holds if hold.dead] == [key(1, app="a").id]
    create(world, *APPS)
    turn_pods_of_a(world, pod6=False)
    return world


def test_a_dead_pod_does_not_wait_with_the_rest_of_its_app(dying: FakeWorld) -> None:
    """It had its first look 30 s before, so the pass looks again."""
    dying.later(30)
    assert dying.run().held is not None
    assert up_of_a(dying) == [UNREADY]
    dying.later(30)
    dying.run()
    assert up_of_a(dying) == []


@pytest.mark.parametrize("seconds", [10, 30])
def test_a_pass_that_did_not_look_whether_a_pod_is_dead_leaves_the_first_look_as_it_is(
    dying: FakeWorld, seconds: float
) -> None:
    """It is no second look either. The list of Pods fails, and after 10 s it would be too early for
    a second look, so there is no list."""
    dying.cluster.unknown[("pods", NS)] = DENIED
    dying.later(seconds)
    dying.run()
    assert up_of_a(dying) == [DEAD, UNREADY]
    dying.cluster.unknown.clear()
    dying.later(12)
    dying.run()
    assert up_of_a(dying) == [UNREADY]


@pytest.mark.parametrize("source", ["services", "slices"])
def test_a_pass_that_cannot_read_a_source_forgets_no_dead_pod(
    dying: FakeWorld, source: str
) -> None:
    """It plans no removal. In the next pass, the first look is 42 s old."""
    dying.later(30)
    dying.cluster.unknown[source, NS] = DENIED
    dying.run()
    assert up_of_a(dying) == [DEAD, UNREADY]
    dying.cluster.unknown.clear()
    for seconds, left in ((12, [UNREADY]), (21, [])):
        dying.later(seconds)
        dying.run()
        assert up_of_a(dying) == left


def test_a_pass_that_cannot_read_eureka_begins_the_wait_again(dying: FakeWorld) -> None:
    """It plans no removal. Two good passes after it, 20 s apart, the pod is gone."""
    dying.later(30)
    dying.registry.unreadable = DENIED
    dying.run()
    dying.registry.unreadable = None
    for seconds, left in ((12, [DEAD, UNREADY]), (21, [])):
        dying.later(seconds)
        dying.run()
        assert up_of_a(dying) == left
