"""A daemon remembers its writes for as long as Eureka's lists may hide them."""

from __future__ import annotations

import pytest

from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import (
    Cancel,
    Grounds,
    Outcome,
    Outcomes,
    Register,
    Renew,
    Result,
    Update,
)
from eurekube_sync.model.eureka import InstanceStatus, LeaseTimes, ObservedInstance, Port
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Observed, OwnWrites
from tests.unit.controller.test_reconcile import A, B, article, ours, pods
from tests.unit.worlds.build import (
    DOWN,
    OUT,
    OWNERSHIP,
    PROOF,
    REF,
    UP,
    endpoint,
    instance,
    key,
    stored,
)
from tests.unit.worlds.fakes import FakeWorld


@pytest.fixture
def daemon() -> FakeWorld:
    """The article's world with lists up to 30 s old, after the first pass of a process that
    continues."""
    world = article(cache=30)
    world.own_writes = OwnWrites(seconds=45)
    world.run()
    world.later(5)
    return world


def test_a_stale_list_that_hides_our_registrations_costs_nothing(daemon: FakeWorld) -> None:
    """No POST, no DELETE and no uncached read follows."""
    daemon.run()
    assert set(daemon.wire.verbs()) & {"read", "register", "cancel"} == set()
    assert daemon.wire.verbs().count("renew") == 2


def test_an_instance_that_the_list_does_not_show_yet_is_cancelled_with_its_pod(
    daemon: FakeWorld,
) -> None:
    """Without the memory it would stay until the list shows it."""
    pods(daemon, endpoint(1))
    daemon.run()
    assert ours(daemon) == {A: "UP"}


def test_a_stale_list_that_shows_a_cancelled_instance_makes_no_second_delete(
    daemon: FakeWorld,
) -> None:
    """It is not renewed. It is read again, because a late renewal may have brought it back."""
    daemon.later(30)
    daemon.run()
    pods(daemon, endpoint(1))
    daemon.run()
    assert "cancel" in daemon.wire.verbs()
    daemon.later(5)
    daemon.run()
    assert daemon.wire.verbs().count("renew") == 1
    assert not {"register", "cancel"} & set(daemon.wire.verbs())


def test_down_and_up_again_within_the_caches_time_reach_eureka(daemon: FakeWorld) -> None:
    """The list shows it as UP all the time."""
    daemon.later(30)
    daemon.run()
    pods(daemon, endpoint(1), endpoint(2, ready=False))
    daemon.run()
    assert ours(daemon) == {A: "UP", B: "DOWN"}
    daemon.later(5)
    pods(daemon, endpoint(1), endpoint(2))
    daemon.run()
    assert ours(daemon) == {A: "UP", B: "UP"}


def test_the_memory_ends_when_the_lists_are_sure_to_show_the_write() -> None:
    """After that only the list counts."""
    writes = OwnWrites(seconds=45)
    writes.note(Outcomes.of([registered(1), renewed(2)]), 100)
    assert set(writes.recent(144.9)) == {key(1)}
    assert writes.recent(145) == {}


def test_a_write_that_may_have_failed_is_forgotten() -> None:
    """A failed call proves nothing, and neither does what was known before it."""
    writes = OwnWrites(seconds=45)
    writes.note(Outcomes.of([registered(1)]), 0)
    cancel = Cancel(key=key(1), syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=UP)
    writes.note(Outcomes.of([Outcome(action=cancel, result=Result.FAILED)]), 1)
    assert writes.recent(2) == {}
    writes.note(Outcomes.of([Outcome(action=cancel, result=Result.DONE)]), 3)
    assert writes.recent(4) == {key(1): None}


@pytest.mark.parametrize("status", [UP, OUT])
def test_an_instance_that_was_registered_again_is_remembered(status: InstanceStatus) -> None:
    """This is a registration like any other, and a person's override survives the lease."""
    writes = OwnWrites(seconds=45)
    if_gone = Renew(key=key(1), syncer=REF, why="", if_gone=instance(1))
    writes.note(
        Outcomes.of([Outcome(action=if_gone, result=Result.REGISTERED_AGAIN, status=status)]), 0
    )
    found = writes.recent(1)[key(1)]
    assert found is not None
    assert (found.status, found.metadata) == (status, instance(1).metadata)


@pytest.mark.parametrize("secure", [True, False])
@pytest.mark.parametrize("heals", [True, False])
def test_the_remembered_instance_equals_the_one_in_eureka(heals: bool, secure: bool) -> None:
    """Every field that a pass compares is equal, so no pass repeats a recent write."""
    wanted = replace(
        instance(1, metadata={"version": "7"}, vip="rating,second"),
        port=Port(8080, not secure),
        secure_port=Port(8443, secure),
        host_name="rating-1.example",
        secure_vip_address="rating-secure",
        home_page_url="http://10.0.0.1/home",
        status_page_url="http://10.0.0.1/status",
        health_check_url="http://10.0.0.1/health",
        lease=LeaseTimes(30, 77),
        status=DOWN,
    )
    action = (
        Renew(key=key(1), syncer=REF, why="", if_gone=wanted)
        if heals
        else replace(REGISTER, instance=wanted)
    )
    writes = OwnWrites(seconds=45)
    result = Result.REGISTERED_AGAIN if heals else Result.DONE
    writes.note(Outcomes.of([Outcome(action=action, result=result, status=DOWN)]), 0)
    assert writes.recent(1)[key(1)] == replace(stored(wanted), last_dirty_timestamp=0)


def test_the_status_is_the_one_that_eureka_gave_it() -> None:
    """A person's OUT_OF_SERVICE stays, whatever was sent."""
    writes = OwnWrites(seconds=45)
    writes.note(Outcomes.of([Outcome(action=UPDATE, result=Result.DONE, status=OUT)]), 0)
    found = writes.recent(1)[key(1)]
    assert found is not None
    assert found.status is OUT


@pytest.mark.parametrize(
    ("result", "remembered"),
    [
        (Result.DONE, True),
        (Result.GONE, False),
        (Result.CONFLICT, False),
        (Result.FAILED, False),
        (Result.NOT_TRIED, False),
    ],
)
def test_a_renewal_shows_whether_a_written_instance_is_still_registered(
    result: Result, remembered: bool
) -> None:
    """A 404, an instance of others or a failure ends the memory. A renewal does not extend it."""
    writes = OwnWrites(seconds=45)
    writes.note(Outcomes.of([registered(1)]), 100)
    renewal = Renew(key=key(1), syncer=REF, why="")
    writes.note(Outcomes.of([Outcome(action=renewal, result=result, status=UP)]), 130)
    assert (key(1) in writes.recent(144)) is remembered
    assert writes.recent(145) == {}


def test_a_second_write_counts_from_its_own_time() -> None:
    """The list hides it as long as any other write. A cancel replaces the memory of the
    registration."""
    writes = OwnWrites(seconds=45)
    writes.note(Outcomes.of([registered(1)]), 100)
    writes.note(Outcomes.of([Outcome(action=UPDATE, result=Result.DONE, status=DOWN)]), 130)
    found = writes.recent(174)[key(1)]
    assert found is not None
    assert found.status is DOWN
    writes.note(Outcomes.of([Outcome(action=CANCEL, result=Result.DONE)]), 170)
    assert writes.recent(214) == {key(1): None}


@pytest.mark.parametrize(("age", "doubted"), [(44, False), (45, True)])
def test_the_age_of_a_write_counts_when_the_list_is_asked_for(age: float, doubted: bool) -> None:
    """A slow list is as old as its request. It should show what was written 45 s before that. If it
    does not, the instance is read again."""
    world = article()
    world.own_writes = OwnWrites(seconds=45)
    world.registry.cached_for(10**6)
    world.run()
    world.later(age)
    world.wire.then = lambda: world.later(5) if world.wire.calls[-1] == "list_instances" else None
    world.run()
    assert any(call.startswith("read_instance") for call in world.wire.calls) is doubted


def test_a_registration_is_remembered_until_a_list_shows_it() -> None:
    """A list shows it with the timestamp that it was registered with, or with a newer one. A cancel
    is forgotten, and so is what an uncached read did not find."""
    writes = OwnWrites(seconds=45)
    writes.note(Outcomes.of([registered(1), registered(2), registered(3)]), 100, since=1000)
    writes.note(Outcomes.of([registered(4)]), 110, since=1010)
    writes.note(
        Outcomes.of([Outcome(action=replace(CANCEL, key=key(5)), result=Result.DONE)]),
        110,
        since=1010,
    )
    old, new = stored(instance(1), timestamp=999_999), stored(instance(2), timestamp=1_000_000)
    assert list(writes.unshown(144, listed(old, new))) == []
    assert list(writes.unshown(160, listed(old, new))) == [key(4), key(1), key(3)]
    writes.settle({key(3): None, key(4): old})
    assert list(writes.unshown(10**6, listed(old, new))) == [key(4), key(1)]
    assert list(writes.unshown(10**6, listed(stored(instance(1), timestamp=1_000_001)))) == [key(4)]


def test_an_instance_that_stands_with_an_older_timestamp_is_shown_by_that_one() -> None:
    """Our clock went back after the pass began, or another process registered it later."""
    writes = OwnWrites(seconds=45)
    writes.note(Outcomes.of([registered(1), registered(2)]), 100, since=1000)
    older, newer = stored(instance(1), timestamp=980_000), stored(instance(2), timestamp=1_000_001)
    assert list(writes.unshown(160, listed(older))) == [key(1), key(2)]
    assert writes.settle({key(1): older, key(2): newer}) == [key(1)]
    assert list(writes.unshown(170, listed())) == [key(1), key(2)]
    assert list(writes.unshown(170, listed(older))) == [key(2)]
    assert writes.settle({key(1): older}) == []


def test_a_clock_that_went_back_makes_no_list_old_for_ever(daemon: FakeWorld) -> None:
    """What was registered while it was ahead stands with the right time. Lists count as they did,
    and the instances are read once more each, not in each pass."""
    for number in (1, 2):
        stands = daemon.registry.held[key(number)]
        earlier = stands.last_dirty_timestamp - 20_000
        daemon.registry.held[key(number)] = replace(stands, last_dirty_timestamp=earlier)
    read = []
    for _ in range(4):
        daemon.later(60)
        report = daemon.run()
        assert isinstance(report.registry, Complete)
        assert report.registry.data.outdated is None
        read.append(daemon.wire.verbs().count("read_instance"))
    assert read == [1, 1, 0, 0]


CANCEL = Cancel(key=key(1), syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=UP)
REGISTER = Register(instance=instance(1), syncer=REF, why="")
UPDATE = Update(
    instance=instance(1), syncer=REF, why="", changes=(), was=UP, stored_timestamp=1, proof=PROOF
)


def registered(number: int) -> Outcome:
    action = Register(instance=instance(number), syncer=REF, why="")
    return Outcome(action=action, result=Result.DONE, status=UP)


def renewed(number: int) -> Outcome:
    return Outcome(action=Renew(key=key(number), syncer=REF, why=""), result=Result.DONE, status=UP)


def listed(*instances: ObservedInstance) -> Observed:
    ours = {one.key: one for one in instances}
    return Observed(ownership=OWNERSHIP, scope=Scope(), ours=ours, others={}, asked=0)
