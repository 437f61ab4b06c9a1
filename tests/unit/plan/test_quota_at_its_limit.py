"""A namespace at its quota: its apps lose no capacity, and its tenant gets no more places."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.errors import RegistryUnavailable
from eurekube_sync.model.kubernetes import PodRef, SyncerObject, SyncerRef
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.observe.eureka import LastSeen
from tests.unit.apply.test_gates import Rollout
from tests.unit.plan.test_quota import YOUNG, pods, ready, standing, world_of, young
from tests.unit.worlds.build import NS, OUT, REF, endpoint, foreign, key, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

NOBODY_READS = Unknown(cause=Cause.UNAVAILABLE, message="it did not answer")


def another(world: FakeWorld, name: str, *numbers: int, created: float = 3000, **spec: object) -> SyncerRef:
    """Add another syncer with these pods, and an app of its own name."""
    world.cluster.apply(
        service(name, labels={"app": name}),
        syncer(name, created=created, selector={"app": name}, **spec),  # type: ignore[arg-type]
        piece(*map(endpoint, numbers), service=name),
    )
    return SyncerRef(NS, name)


def unready(world: FakeWorld, *endpoints: tuple[int, bool]) -> None:
    """Set the pods of the older app, and whether each is ready."""
    world.cluster.apply(piece(*(endpoint(number, ready=up) for number, up in endpoints)))


# Apps at the quota keep their capacity.


def test_a_rollout_at_the_quota_waits_for_no_place_and_loses_none() -> None:
    """A pod beyond the quota waits. It is registered in the pass in which an old pod ends, before that one is
    cancelled. An older syncer whose pods wait does not get the place."""
    world = world_of(1, 2)
    young(world, 11)
    world.run()
    pods(world, 1, 2, 3)
    young(world, 11, 12)
    world.run()
    assert standing(world) == {1, 2, 11}
    young(world, 12)
    world.run()
    assert standing(world) == {1, 2, 12}
    changes = [call for call in world.wire.calls if call.split()[0] in ("register", "cancel")]
    assert [call.split()[0] for call in changes] == ["register", "cancel"]


def test_a_pod_that_crashes_at_the_quota_is_replaced_at_once() -> None:
    """It keeps its place against other apps, but not against its own. When it is ready again it is UP, and nothing new
    is registered."""
    world = world_of(1, 2, 3)
    world.run()
    another(world, "elder", 21, created=1)
    unready(world, (1, True), (2, True), (3, False))
    world.run()
    assert standing(world) == {1, 2}, "the older syncer does not get its place"
    unready(world, (1, True), (2, True), (3, False), (4, True), (5, True))
    world.run()
    assert standing(world) == {1, 2, 4}
    world.run()
    assert standing(world) == {1, 2, 4}, "one stands in for one"
    pods(world, 1, 2, 3, 4, 5)
    world.run()
    assert standing(world) == {1, 2, 3, 4}
    pods(world, 2, 3, 4, 5)
    world.run()
    assert standing(world) == {2, 3, 4, 5}


def test_a_crash_of_one_app_takes_no_place_of_another() -> None:
    """Both apps have an unready pod and get a new one for it, in the same pass or later. A third app that waits gets no
    place of theirs."""
    world = world_of(1, 2)
    young(world, 11)
    world.run()
    another(world, "waiting", 21, created=1)
    unready(world, (1, False), (2, True), (3, True))
    world.run()
    assert standing(world) == {2, 3, 11}
    world.cluster.apply(piece(endpoint(11, ready=False), endpoint(12), service="young"))
    world.run()
    assert standing(world) == {2, 3, 12}
    unready(world, (1, False), (2, False), (3, True))
    world.run()
    assert standing(world) == {3, 12}
    unready(world, (1, False), (2, False), (3, True), (4, True))
    world.run()
    assert standing(world) == {3, 4, 12}


def test_crashing_pods_fill_no_more_than_twice_the_quota() -> None:
    """Each generation was ready once, and stays registered while its pods exist."""
    world = world_of(1, 2, 3)
    seen: list[tuple[int, bool]] = []
    for generation in range(1, 30, 3):
        seen = [*((number, False) for number, _ in seen), *((generation + one, True) for one in range(3))]
        unready(world, *seen)
        world.run()
        assert len(world.registry.held) <= 6
    pods(world, *(number for number, _ in seen))
    world.run()
    assert len(standing(world)) <= 6


@pytest.mark.parametrize("braked", [False, True])
def test_an_app_whose_pods_all_crashed_is_replaced_whole(braked: bool) -> None:
    """Half of its registered instances are not ready. Each ready one is replaced at once."""
    world = world_of(1, 2, most=2)
    if braked:
        world.brake = BrakeLimits()
    world.run()
    for seen in ((3, 4), (5, 6)):
        unready(world, (1, False), (2, False), *((number, True) for number in seen))
        for _ in range(4):
            world.run()
            world.later(30)
            assert standing(world)


def test_the_last_of_an_app_has_a_successor_whatever_crashes_beside_it() -> None:
    """Three generations of another app crash. Then the only pod of this app is replaced."""
    world = world_of(1, 2, most=3)
    world.brake = BrakeLimits()
    young(world, 11)
    world.run()
    for ready_from, last in ((3, 2), (3, 4), (5, 4), (5, 5), (6, 5)):
        unready(world, *((number, number >= ready_from) for number in range(1, last + 1)))
        for _ in range(2):
            world.run()
            world.later(30)
    for alive in ((11,), (11, 12), (12,), (12,), (12,)):
        young(world, *alive)
        world.run()
        world.later(30)
    assert 12 in standing(world)


@pytest.mark.parametrize("elder", [False, True])
def test_in_a_blue_green_change_the_places_pass_to_the_new_syncer(elder: bool) -> None:
    """Two syncers register one app. The same pass removes one's instances and registers the other's, although an older
    syncer waits."""
    world = world_of(1, 2, 3)
    world.run()
    if elder:
        another(world, "elder", 21, 22, 23, created=1)
    another(world, "green", 11, 12, 13, appName="rating")
    world.run()
    assert standing(world) == {1, 2, 3}
    pods(world)
    world.run()
    assert standing(world) == {11, 12, 13}


def test_a_deleted_syncer_gives_its_places_to_those_that_wait() -> None:
    """It does so in the same pass."""
    world = world_of(1, 2, 3)
    world.run()
    young(world, 11, 12)
    world.run()
    world.cluster.delete(REF)
    world.run()
    assert standing(world) == {11, 12}


def test_a_pod_keeps_its_old_name_while_an_older_syncer_has_the_places() -> None:
    """The app got another name. Otherwise the pod would be registered under neither."""
    world = world_of(1, 2)
    young(world, 11)
    world.run()
    pods(world, 1, 2, 3)
    young(world, 11, appName="other")
    for _ in range(3):
        world.run()
        assert world.statuses()["YOUNG 10.0.0.11:8080"] == "UP"
        assert ready(world, YOUNG)[0] == "OverQuota"
    world.scope = Scope(most_instances=9)
    world.run()
    assert "YOUNG 10.0.0.11:8080" not in world.statuses()
    assert world.statuses()["OTHER 10.0.0.11:8080"] == "UP"


@pytest.mark.parametrize("mode", ["service", "pod"])
def test_a_service_or_bare_endpoint_keeps_its_old_name_as_well(mode: str) -> None:
    """The address shows that it is the same."""
    world = world_of(1, 2)
    world.cluster.apply(
        service("young", labels={"app": "young"}),
        piece(endpoint(11, pod=None), service="young"),
    )

    def named(app: str) -> SyncerObject:
        there: dict[str, Any] = {"service": {"hostname": "10.0.0.11"}} if mode == "service" else {}
        return syncer("young", created=2000, selector={"app": "young"}, mode=mode, appName=app, **there)

    world.cluster.apply(named("young"))
    world.run()
    assert standing(world) == {1, 2, 11}
    pods(world, 1, 2, 3)
    world.cluster.apply(named("other"))
    for _ in range(3):
        world.run()
        assert [name.split()[0] for name in world.statuses() if "10.0.0.11" in name] == ["YOUNG"]
    world.scope = Scope(most_instances=9)
    world.run()
    assert [name.split()[0] for name in world.statuses() if "10.0.0.11" in name] == ["OTHER"]


def test_an_out_of_service_instance_keeps_its_place() -> None:
    """It will serve again."""
    world = world_of(1, 2, 3)
    world.run()
    world.registry.override(key(1), OUT)
    pods(world, 1, 2, 3, 4)
    world.run()
    assert standing(world) == {2, 3}


# A quota that was lowered far below what is registered.


def test_pods_are_replaced_far_beyond_a_quota_that_was_lowered() -> None:
    """All of them may be replaced at once."""
    world = world_of(*range(1, 9), most=9)
    world.run()
    world.scope = Scope(most_instances=1)
    pods(world, *range(11, 19), 20)
    world.run()
    assert standing(world) == set(range(11, 19))


# A tenant gets no more places.


def test_instances_of_a_broken_spec_keep_their_places() -> None:
    """They are kept, and they count."""
    world = world_of(1, 2, 3)
    world.run()
    world.cluster.apply(syncer(port="not a port of it"))
    young(world, 11, 12, 13)
    world.run()
    assert ready(world)[0] == "NoSuchPort"
    assert standing(world) == {1, 2, 3}
    assert ready(world, YOUNG)[0] == "OverQuota"


def test_instances_of_another_class_keep_their_places() -> None:
    """Instances without an installation are kept here and count. So do those of another installation."""
    world = world_of(1, 2, 3)
    world.run()
    world.registry.put(foreign())
    world.cluster.apply(syncer(syncerClass="nobody"))
    young(world, 11, 12, 13)
    world.run()
    assert standing(world) == {1, 2, 3, int(foreign().instance.ip_addr.rpartition(".")[2])}
    assert ready(world, YOUNG)[0] == "OverQuota"


def test_an_instance_whose_slices_are_missing_keeps_its_place() -> None:
    """It is kept while the slices are incomplete."""
    world = world_of(1, 2, 3)
    world.run()
    world.cluster.pods[NS] = tuple(PodRef(f"rating-{number}", f"uid-of-rating-{number}") for number in (1, 2, 3))
    world.cluster.slices.clear()
    young(world, 11)
    world.run()
    assert standing(world) == {1, 2, 3}


@pytest.mark.parametrize("road", ["names", "orphans", "policy"])
def test_held_removals_allow_no_more_than_twice_the_quota(road: str) -> None:
    """New instances are registered before old ones are cancelled. The brake may hold those for ever, or a policy may
    let them expire, while the tenant goes on."""
    most, world = 12, FakeWorld()
    world.scope = Scope(most_instances=most)
    spec: dict[str, Any] = {"policy": "UpsertOnly"} if road == "policy" else {}
    names = "rating" if spec else "app-{}"
    before: SyncerRef | None = None
    for generation in range(6):
        numbers = range(1 + generation * 20, 1 + generation * 20 + most)
        if before and road == "orphans":
            del world.cluster.syncers[before]
        elif before:
            world.cluster.apply(piece(service=before.name))
        before = another(world, f"s{generation}", *numbers, appName=names.format(generation), **spec)
        for _ in range(2):
            world.run()
            world.later(5)
            assert len(world.registry.held) <= 2 * most
    assert len(world.registry.held) > 0


def test_recovered_pods_give_no_room_beyond_twice_the_quota() -> None:
    """Twice as many are UP as there are places: substitutes, and pods that recovered. Their removals are held, and
    another syncer wants the places."""
    world = world_of(1, 2, 3)
    world.brake = BrakeLimits()
    world.run()
    unready(world, *((number, number > 3) for number in range(1, 7)))
    world.run()
    world.run()
    pods(world, 1, 2, 3, 4, 5, 6)
    world.run()
    assert standing(world) == {1, 2, 3, 4, 5, 6}
    pods(world)
    another(world, "green", *range(11, 20))
    for _ in range(3):
        world.run()
        assert standing(world) == {1, 2, 3, 4, 5, 6}
    world.later(30)
    world.run()
    assert standing(world) == {11, 12, 13}


def test_one_app_that_the_brake_holds_gives_no_way_beyond_twice_the_quota() -> None:
    """While another syncer's removals of the app are held, so is every removal of it, even with a successor."""
    most, world = 12, FakeWorld()
    world.scope = Scope(most_instances=most)
    another(world, "lost", *range(1, 7), appName="rating")
    another(world, "moving", *range(10, 16), appName="rating")
    world.run()
    world.cluster.apply(piece(service="lost"))
    for generation in range(1, 12):
        another(world, "moving", *range(10 + generation * 6, 16 + generation * 6), appName="rating")
        world.run()
        world.later(5)
        assert len(world.registry.held) <= 2 * most


def test_a_suspended_syncer_has_the_places_of_what_it_holds() -> None:
    """No new instance is registered for it."""
    world = world_of(1, 2, 3)
    world.run()
    world.cluster.apply(syncer(suspend=True))
    pods(world, 4, 5, 6)
    young(world, 11)
    world.run()
    assert standing(world) == {1, 2, 3}


def test_an_instance_that_could_not_be_read_again_keeps_its_place() -> None:
    """It may be registered, wanted or not."""
    world = world_of(1, 2, 3)
    world.run()
    pods(world, 1, 2, 4)
    world.registry.refuse_read = {key(3): RegistryUnavailable("timeout")}
    world.run()
    assert standing(world) == {1, 2, 3}
    world.registry.refuse_read = {key(4): RegistryUnavailable("timeout")}
    young(world, 11)
    world.run()
    assert standing(world) == {1, 2}


# Instances after Eureka lost its leases.


def test_instances_that_this_process_saw_are_registered_again_first() -> None:
    """Neither an older syncer nor a pod with an earlier key gets their place."""
    world = world_of(3)
    world.last_seen = LastSeen()
    young(world, 12, 13)
    world.run()
    pods(world, 1, 2, 3)
    young(world, 11, 12, 13)
    world.run()
    assert standing(world) == {3, 12, 13}
    world.registry.held.clear()
    world.run()
    assert standing(world) == {3, 12, 13}
    world.registry.held.clear()
    world.last_seen = LastSeen()
    world.run()
    assert standing(world) == {1, 2, 3}, "a process that just began goes by age and key"


@pytest.mark.parametrize("remembers", [True, False])
def test_while_eureka_cannot_be_read_no_more_than_the_quota_comes_back(remembers: bool) -> None:
    """A renewal with a 404 registers an instance that this process saw, or otherwise the first ones. An unready pod
    takes no place."""
    world = world_of(4)
    world.last_seen = LastSeen() if remembers else None
    young(world, 12, 13)
    world.run()
    unready(world, (1, False), (2, True), (3, True), (4, True))
    young(world, 11, 12, 13)
    another(world, "broken", 21, port="not a port of it")
    world.run()
    world.registry.held.clear()
    world.registry.unreadable = NOBODY_READS
    world.run()
    assert standing(world) == ({4, 12, 13} if remembers else {2, 3, 4})


# Readiness gates.


def test_a_gate_does_not_wait_for_a_place() -> None:
    """The rollout continues, and the pod's condition says why."""
    world = Rollout()
    world.scope = Scope(most_instances=1)
    world.pods(1)
    world.run()
    world.pods(1, 2)
    world.run()
    reason, message = world.cluster.opened["rating-2"]
    assert reason == "OverQuota"
    assert message.startswith("namespace rating may have at most 1 instance; the operator may allow more with")
    world.pods(2)
    world.run()
    assert standing(world) == {2}


@pytest.mark.parametrize("gated", [True, False])
def test_a_syncer_beyond_the_quota_says_that_its_gates_stay_closed(gated: bool) -> None:
    """The syncer is not read, so its pods are unknown."""
    world = Rollout()
    world.scope = Scope(most_syncers=1)
    another(world, "beyond", 2, readinessGate=gated)
    world.pods(1)
    world.run()
    assert world.opened() == {"rating-1": "Registered"}
    told = ready(world, SyncerRef(NS, "beyond"))
    assert told[0] == "OverQuota"
    assert ("readiness gates of this syncer's pods stay closed" in told[1]) is gated
