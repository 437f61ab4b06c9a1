"""Deletions of syncers, pass by pass: what they wait for, when they end, and that no instance is
lost or left behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, CLEANUP_FINALIZER
from eurekube_sync.model.errors import ClusterUnavailable
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import ConditionStatus, EventRecord, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import SYNCER
from eurekube_sync.model.ports import Elsewhere
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import (
    DENIED,
    NS,
    REF,
    TERMINATING,
    endpoint,
    key,
    piece,
    service,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld

BOTH = {"RATING 10.0.0.1:8080": "UP", "RATING 10.0.0.2:8080": "UP"}


def article(*, cache: float = 0) -> FakeWorld:
    """The app `rating` with two registered pods."""
    world = FakeWorld(cache=cache)
    world.cluster.apply(syncer(), service(), piece(endpoint(1), endpoint(2)))
    world.run()
    return world


def abandon(world: FakeWorld) -> None:
    """Annotate the syncer, as a person does with `kubectl annotate`."""
    world.cluster.syncers[REF] = replace(
        world.cluster.syncers[REF], annotations={ABANDON_ANNOTATION: "true"}
    )


def told(world: FakeWorld) -> EventRecord:
    """Return the last event."""
    return world.cluster.events[-1]


# --- Eureka is away -------------------------------------------------------------------------------


def test_a_deletion_waits_for_eureka_says_so_and_ends_when_it_is_back() -> None:
    """A condition and an event give the reason. No pass of the outage removes the finalizer."""
    world = article()
    world.registry.unreadable = DENIED
    world.cluster.delete(REF)
    for _ in range(3):
        world.later(60)
        world.run()
        status = world.cluster.syncers[REF].status
        synced = status.condition("Synced") if status else None
        assert synced is not None
        assert (synced.status, synced.reason) == (ConditionStatus.FALSE, "Deleting")
        assert synced.message == "Eureka could not be read: 403: grant list"
    assert (told(world).reason, told(world).message) == (
        "Deleting",
        "Eureka could not be read: 403: grant list",
    )
    assert not told(world).warning  # a deletion ends by itself
    world.registry.unreadable = None
    for _ in range(2):
        world.run()
    assert (world.statuses(), world.cluster.syncers) == ({}, {})


def test_a_deletion_that_waits_for_another_finalizer_costs_no_call() -> None:
    """Once our finalizer is removed, all our instances are gone. An instance that is listed later
    is still cancelled."""
    world = article()
    theirs = (*world.cluster.syncers[REF].finalizers, "example.com/theirs")
    world.cluster.syncers[REF] = replace(world.cluster.syncers[REF], finalizers=theirs)
    world.cluster.delete(REF)
    late = world.registry.held[key(1)]
    for _ in range(3):
        world.later(60)
        world.run()
    assert world.cluster.syncers[REF].finalizers == ("example.com/theirs",)
    assert not {"read_instance", "cancel"} & set(world.wire.verbs())
    world.registry.put(late)
    world.run()
    assert world.statuses() == {}


def test_an_abandoned_deletion_says_how_long_its_instances_live() -> None:
    """Eureka cannot be read. The finalizer is removed at once."""
    world = article()
    world.registry.unreadable = DENIED
    world.cluster.delete(REF)
    abandon(world)
    world.run()
    assert world.cluster.syncers == {}
    assert world.statuses() == BOTH
    assert (told(world).reason, told(world).warning) == ("Abandoned", True)
    assert "Eureka could not be read" in told(world).message
    assert "expires 10 minutes after its last renewal" in told(world).message


def test_an_abandoned_deletion_during_a_crd_deletion_ends_and_removes_nothing() -> None:
    """A person may abandon the syncers to finish a mistaken deletion of the CRD. This must not be
    an outage."""
    world = article()
    world.cluster.crd = TERMINATING
    world.cluster.delete(REF)
    abandon(world)
    world.run()
    assert world.cluster.syncers == {}
    assert world.statuses() == BOTH
    assert told(world).message.startswith(
        f"the annotation {ABANDON_ANNOTATION} ended the deletion early. 2 "
    )


def test_an_abandoned_deletion_that_leaves_nothing_is_no_warning() -> None:
    """While Eureka answers, the deleted syncer's instances are cancelled as usual."""
    world = article()
    world.cluster.delete(REF)
    abandon(world)
    world.run()
    assert (world.statuses(), world.cluster.syncers) == ({}, {})
    assert (
        told(world).warning,
        told(world).message.endswith("Eureka holds no instance of the syncer"),
    ) == (
        False,
        True,
    )


def test_instances_of_an_abandoned_deletion_are_orphans_later() -> None:
    """The CRD exists and the syncer does not. A later pass that can read Eureka cancels the
    instances."""
    world = article()
    world.cluster.apply(
        syncer("other", appName="other", selector={"service": "other"}),
        service("other", labels={}),
        piece(endpoint(7), service="other"),
    )
    world.run()
    world.registry.unreadable = DENIED
    world.cluster.delete(REF)
    abandon(world)
    world.run()
    world.registry.unreadable = None
    world.sightings = Sightings()
    for _ in range(2):  # an app's last instance is removed after a second pass
        world.run()
        world.later(20)
    assert world.statuses() == {"OTHER 10.0.0.7:8080": "UP"}


# --- A namespace is deleted -----------------------------------------------------------------------


def _pods_first(world: FakeWorld) -> None:
    world.cluster.slices.clear()


def _services_first(world: FakeWorld) -> None:
    world.cluster.services.clear()


def _all_first(world: FakeWorld) -> None:
    _pods_first(world)
    _services_first(world)


def _nothing_first(_: FakeWorld) -> None:
    pass


@pytest.mark.parametrize("gone_before", [_nothing_first, _pods_first, _services_first, _all_first])
@pytest.mark.parametrize("cache", [0, 30])
def test_the_instances_of_a_deleted_namespace_are_cancelled(
    gone_before: Callable[[FakeWorld], None], cache: int
) -> None:
    """Other objects of the namespace may be deleted before the syncer. The finalizer is removed
    with the last instance."""
    world = article(cache=cache)
    gone_before(world)
    world.cluster.delete(REF)
    seen_with = 0
    for _ in range(6):
        world.later(10)
        world.run()
        seen_with += bool(world.cluster.syncers)
        assert world.cluster.syncers or not world.statuses()
    assert (world.statuses(), world.cluster.syncers) == ({}, {})
    assert seen_with >= 4  # 45 s have to pass, and the list has to show no instance


# --- A syncer is deleted and created again --------------------------------------------------------


def recreated(world: FakeWorld, **spec: str) -> SyncerObject:
    """Delete the syncer by force and create it again between two passes, with another UID and no
    finalizer."""
    del world.cluster.syncers[REF]
    made = replace(syncer(created=2000), uid="another")
    made = replace(made, spec={**made.spec, **spec})
    world.cluster.apply(made)
    return made


def test_a_syncer_that_is_created_again_keeps_its_instances() -> None:
    """The instances belong to the new syncer by its name, and are renewed. It gets a finalizer in
    the same pass."""
    world = article()
    recreated(world)
    world.run()
    assert [call for call in world.wire.writes() if call.split()[0] in ("register", "cancel")] == []
    assert world.statuses() == BOTH
    assert world.cluster.syncers[REF].finalizers == (CLEANUP_FINALIZER,)


def test_a_syncer_created_again_under_another_app_moves_without_a_gap() -> None:
    """The new instances are registered before the old ones are cancelled."""
    world = article()
    recreated(world, appName="renamed")
    world.run()
    calls = [
        call.split()[0] for call in world.wire.calls if call.split()[0] in ("register", "cancel")
    ]
    assert calls == ["register", "register", "cancel", "cancel"]
    assert world.statuses() == {"RENAMED 10.0.0.1:8080": "UP", "RENAMED 10.0.0.2:8080": "UP"}


def test_the_end_of_a_deletion_does_not_touch_a_newly_created_object() -> None:
    """The new object is created during the pass that ends the deletion. Its finalizer and status
    stay."""
    world = article()
    world.cluster.delete(REF)
    world.later(46)
    world.run()
    made = replace(syncer(), uid="another", finalizers=(CLEANUP_FINALIZER,))

    def swap() -> None:
        if world.wire.calls[-1] == "crd_live":
            world.cluster.syncers[REF] = made

    world.wire.then = swap
    world.later(10)
    world.run()
    assert world.cluster.syncers[REF] == made
    world.wire.then = lambda: None
    world.run()
    assert world.statuses() == BOTH


# --- Successors -----------------------------------------------------------------------------------


def waiting_for_a_suspended_one() -> tuple[FakeWorld, SyncerRef]:
    """An older syncer that is deleted, and a younger, suspended one that claims the same ids."""
    world = article()
    world.cluster.apply(
        syncer("other", selector={"app": "other"}), service("other", labels={"app": "other"})
    )
    world.cluster.apply(piece(endpoint(9), service="other"))
    young = syncer("young", created=2000, suspend=True)
    world.cluster.apply(young)
    world.run()
    world.later(60)
    world.run()
    world.cluster.delete(REF)
    for _ in range(3):
        world.later(60)
        report = world.run()
        assert BOTH.items() <= world.statuses().items()
        assert report.plan.changes == ()
        status = world.cluster.syncers[REF].status
        synced = status.condition("Synced") if status else None
        assert synced is not None
        assert synced.message == (
            f"the deletion waits for 2 instances, such as {key(1)}: syncer {young.ref} claims it, "
            "and could not take "
            f"it over: not changed, because syncer {young.ref} is suspended"
        )
    assert [event.reason for event in world.cluster.events if event.syncer == REF].count(
        "Deleting"
    ) == 1
    return world, young.ref


def test_a_deletion_waits_until_a_suspended_successor_is_resumed_and_takes_over() -> None:
    """A suspended syncer changes nothing, and its pods are desired. The deletion ends without a gap
    for callers."""
    world, young = waiting_for_a_suspended_one()
    world.cluster.apply(syncer(young.name, suspend=False))
    for _ in range(2):
        world.run()
        assert not [call for call in world.wire.calls if call.startswith("cancel")]
        world.later(60)
    assert BOTH.items() <= world.statuses().items()
    assert {
        one.metadata[SYNCER] for one in world.registry.held.values() if one.key.app == "RATING"
    } == {str(young)}
    assert REF not in world.cluster.syncers


def test_a_deletion_that_waits_for_a_suspended_successor_ends_with_that_ones_deletion() -> None:
    """No syncer desires the instances then."""
    world, young = waiting_for_a_suspended_one()
    world.cluster.delete(young)
    for _ in range(2):
        world.run()
        world.later(60)
    assert not BOTH.keys() & world.statuses().keys()
    assert not {REF, young} & world.cluster.syncers.keys()


def test_a_deletion_that_waits_for_a_suspended_successor_may_be_abandoned() -> None:
    """The successor renews the remaining instances, and takes them over when it is resumed."""
    world, young = waiting_for_a_suspended_one()
    abandon(world)
    world.run()
    assert REF not in world.cluster.syncers
    for suspend in (True, False):
        world.cluster.apply(syncer(young.name, suspend=suspend))
        for _ in range(2):
            world.later(60)
            world.run()
            assert BOTH.items() <= world.statuses().items()
    assert {
        one.metadata[SYNCER] for one in world.registry.held.values() if one.key.app == "RATING"
    } == {str(young)}


def test_a_successor_under_other_ids_registers_before_the_old_ones_go() -> None:
    """The successor has another app name, so its instances have other ids. One pass makes both
    changes."""
    world = article()
    world.cluster.apply(syncer("successor", appName="renamed", created=2000))
    world.cluster.delete(REF)
    world.later(46)
    world.run()
    calls = [
        call.split()[0] for call in world.wire.calls if call.split()[0] in ("register", "cancel")
    ]
    assert calls == ["register", "register", "cancel", "cancel"]
    assert world.statuses() == {"RENAMED 10.0.0.1:8080": "UP", "RENAMED 10.0.0.2:8080": "UP"}


def test_instances_that_no_successor_wants_are_cancelled_with_the_deletion() -> None:
    """The successor selects another Service, which has one of the two pods."""
    world = article()
    world.cluster.apply(
        service("half", labels={}),
        piece(endpoint(2), service="half"),
        syncer("successor", appName="rating", selector={"service": "half"}, created=2000),
    )
    world.cluster.delete(REF)
    for _ in range(2):
        world.later(46)
        world.run()
    assert world.statuses() == {"RATING 10.0.0.2:8080": "UP"}
    assert set(world.cluster.syncers) == {SyncerRef(NS, "successor")}


# --- The server's cache ---------------------------------------------------------------------------


@pytest.mark.parametrize("gone_before", [_nothing_first, _all_first])
def test_register_and_delete_within_the_cache_leaves_nothing_behind(
    gone_before: Callable[[FakeWorld], None],
) -> None:
    """For 30 s the list does not show the registration. Meanwhile the syncer, and perhaps its
    Services, are deleted."""
    world = FakeWorld(cache=30)
    world.registry.list_instances()  # fill the cache while nothing is registered
    world.cluster.apply(syncer(), service(), piece(endpoint(1), endpoint(2)))
    world.run()
    assert world.statuses() == BOTH
    world.later(1)
    gone_before(world)
    world.cluster.delete(REF)
    for _ in range(12):
        world.run()
        assert world.cluster.syncers or not world.statuses()
        world.later(10)
    assert (world.statuses(), world.cluster.syncers) == ({}, {})


@pytest.mark.parametrize(("neighbour", "within"), [(False, 30 + 20 + 10), (True, 30)])
def test_a_registration_after_the_finalizer_is_gone_is_cancelled_as_an_orphan(
    neighbour: bool, within: int
) -> None:
    """The process that set the finalizer was paused and continues a minute later. A single call may
    come at any time. The list shows its instance after at most 30 s. An app's last instance then
    waits 20 s for a confirmation by a daemon with a pass every 10 s."""
    world = FakeWorld(cache=30)
    world.cluster.apply(
        syncer("other", selector={"app": "other"}), service("other", labels={"app": "other"})
    )
    world.cluster.apply(piece(endpoint(9), service="other"))
    if neighbour:
        world.cluster.apply(syncer("more", appName="rating", selector={"app": "other"}, created=5))
    world.run()
    world.cluster.apply(syncer(), service(), piece(endpoint(1)))
    daemon = Sightings()

    def paused() -> None:
        if world.wire.calls[-1] != f"add_finalizer {REF}":
            return
        world.wire.then = lambda: None
        world.cluster.delete(REF)
        while REF in world.cluster.syncers:
            world.later(10)
            world.sightings = daemon
            world.run()
        world.sightings = None

    before = set(world.statuses())
    world.wire.then = paused
    world.run()
    assert REF not in world.cluster.syncers
    assert set(world.statuses()) - before == {"RATING 10.0.0.1:8080"}
    world.sightings = daemon
    registered = world.clock.now()
    while set(world.statuses()) != before:
        world.later(10)
        world.run()
        assert world.clock.now() - registered <= within


# --- Finalizers that fail or hang -----------------------------------------------------------------


def crowd(world: FakeWorld, count: int) -> None:
    """Create this many syncers with one pod each."""
    for number in range(count):
        name = f"app-{number:02}"
        world.cluster.apply(
            syncer(name, selector={"service": name}),
            service(name, labels={}),
            piece(endpoint(number + 10), service=name),
        )


def test_a_cluster_that_does_not_take_finalizers_is_not_asked_for_all() -> None:
    """After 20 failed calls in a row, no further call is tried. Syncers that have their finalizer
    register their instances."""
    world = article()
    crowd(world, 60)
    world.cluster.apply(piece(endpoint(1), endpoint(2), endpoint(3)))
    world.cluster.refuse["add_finalizer"] = ClusterUnavailable("no answer in time")
    report = world.run()
    assert world.wire.verbs().count("add_finalizer") == 20
    assert world.statuses() == {**BOTH, "RATING 10.0.0.3:8080": "UP"}
    assert len(report.outcomes.failures) == 60
    status = world.cluster.syncers[SyncerRef(NS, "app-59")].status
    assert status is not None
    assert "did not answer 20 calls in a row" in status.errors[0]


def test_finalizers_that_hang_leave_the_registrations_their_time() -> None:
    """Finalizers get half of the time before the last stage. Syncers that have theirs register in
    the other half."""
    world = article()
    world.brake = BrakeLimits(apps_floor=100)
    crowd(world, 10)
    world.cluster.apply(piece(endpoint(1), endpoint(2), endpoint(3)))
    begun = world.clock.now()

    def hang() -> None:
        if world.wire.calls[-1].startswith("add_finalizer"):
            world.later(10)

    world.wire.then = hang
    report = world.run()
    assert report.cut_short
    assert 2 <= world.wire.verbs().count("add_finalizer") <= 7
    assert world.clock.now() - begun < 80
    assert world.statuses()["RATING 10.0.0.3:8080"] == "UP"


@pytest.mark.parametrize("slow", ["list_instances", "list_slices", "cancel"])
@pytest.mark.parametrize(("age", "ends"), [(44, False), (45, True)])
def test_a_deletion_is_as_old_as_it_was_when_the_list_was_asked_for(
    age: float, ends: bool, slow: str
) -> None:
    """The duration of the pass does not count. A list that was requested too early may not show a
    late registration."""
    world = article()
    world.brake = BrakeLimits(apps_floor=100)
    world.cluster.delete(REF)
    world.run()
    assert world.statuses() == {}
    world.later(age)
    world.wire.then = lambda: world.later(10) if world.wire.calls[-1].startswith(slow) else None
    world.run()
    assert (REF not in world.cluster.syncers) is ends


@pytest.mark.parametrize(("age", "ends"), [(300, False), (599, False), (600, True)])
def test_a_peer_that_is_away_is_waited_for_as_long_as_a_renewed_lease_lasts(
    age: float, ends: bool
) -> None:
    """A renewed lease lasts twice its duration. After that, instances on that peer alone have
    expired."""
    world = article()
    world.brake = BrakeLimits(apps_floor=100)
    world.registry.away = ("http://two",)
    world.cluster.delete(REF)
    world.run()
    world.later(age)
    world.run()
    assert (REF not in world.cluster.syncers) is ends


@pytest.mark.parametrize("age", [0, 44, 45])
def test_no_other_server_is_asked_before_a_deletion_may_end(
    age: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question costs a whole list."""
    world = article()
    world.brake = BrakeLimits(apps_floor=100)
    world.cluster.delete(REF)
    world.run()
    world.later(age)
    asked: list[float] = []
    elsewhere = world.registry.list_elsewhere

    def counting(listed: Complete[tuple[ObservedInstance, ...]]) -> Elsewhere:
        asked.append(world.clock.now())
        return elsewhere(listed)

    monkeypatch.setattr(world.registry, "list_elsewhere", counting)
    world.run()
    assert bool(asked) is (age >= 45)
