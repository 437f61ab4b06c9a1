"""A daemon remembers what it wrote, for as long as the server's lists may hide it."""

from __future__ import annotations

import pytest

from eurekube_sync.actions import Cancel, Grounds, Register, Renew
from eurekube_sync.outcome import Outcome, Outcomes, Result
from eurekube_sync.own_writes import OwnWrites

from .build import PROOF, REF, UP, endpoint, instance, key
from .fakes import FakeWorld
from .test_reconcile import A, B, article, ours, pods


@pytest.fixture
def daemon() -> FakeWorld:
    """The article's world, with lists up to 30 s old, after a first pass by a process that goes on."""
    world = article(cache=30)
    world.own_writes = OwnWrites(seconds=45)
    world.run()
    world.later(5)
    return world


def test_a_stale_list_that_hides_our_registrations_costs_nothing(daemon: FakeWorld) -> None:
    """No POST, no DELETE, and not even an uncached read."""
    daemon.run()
    assert set(daemon.wire.verbs()) & {"read", "register", "cancel"} == set()
    assert daemon.wire.verbs().count("renew") == 2


def test_an_instance_that_the_list_does_not_show_yet_is_cancelled_with_its_pod(daemon: FakeWorld) -> None:
    """Without the memory it would stand until the list shows it."""
    pods(daemon, endpoint(1))
    daemon.run()
    assert ours(daemon) == {A: "UP"}


def test_a_stale_list_that_shows_a_cancelled_instance_makes_no_second_delete(daemon: FakeWorld) -> None:
    """It is not renewed, and read again: it may have come back by a late heartbeat."""
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
    """The list shows UP all the while."""
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
    """From then on the list counts alone."""
    writes = OwnWrites(seconds=45)
    writes.note(Outcomes.of([registered(1), renewed(2)]), 100)
    assert set(writes.recent(144.9)) == {key(1)}
    assert writes.recent(145) == {}


def test_what_may_or_may_not_have_been_written_is_forgotten() -> None:
    """A call that failed proves nothing, nor does what was known before it."""
    writes = OwnWrites(seconds=45)
    writes.note(Outcomes.of([registered(1)]), 0)
    cancel = Cancel(key=key(1), syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=UP)
    writes.note(Outcomes.of([Outcome(action=cancel, result=Result.FAILED)]), 1)
    assert writes.recent(2) == {}
    writes.note(Outcomes.of([Outcome(action=cancel, result=Result.DONE)]), 3)
    assert writes.recent(4) == {key(1): None}


def test_an_instance_that_was_brought_back_is_remembered() -> None:
    """A heal is a registration."""
    writes = OwnWrites(seconds=45)
    heal = Renew(key=key(1), syncer=REF, why="", heal=instance(1))
    writes.note(Outcomes.of([Outcome(action=heal, result=Result.HEALED, status=UP)]), 0)
    found = writes.recent(1)[key(1)]
    assert found is not None
    assert (found.status, found.metadata) == (UP, instance(1).metadata)


def registered(number: int) -> Outcome:
    action = Register(instance=instance(number), syncer=REF, why="")
    return Outcome(action=action, result=Result.DONE, status=UP)


def renewed(number: int) -> Outcome:
    return Outcome(action=Renew(key=key(number), syncer=REF, why=""), result=Result.DONE, status=UP)
