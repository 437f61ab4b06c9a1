"""A list that is older than Eureka's own cache makes it: a cache stands before Eureka, or its own
stands still."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eurekube_sync.cli.output.report import sentences
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.kubernetes import ConditionStatus
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.observe.eureka import OwnWrites
from tests.unit.controller.test_reconcile import A, B, article, ours, pods
from tests.unit.worlds.build import REF, endpoint, key
from tests.unit.worlds.fakes import FakeWorld

Process = Callable[[FakeWorld], PassReport]


def again(world: FakeWorld) -> PassReport:
    """Another pass of the same daemon."""
    world.later(60)
    return world.run()


def anew(world: FakeWorld) -> PassReport:
    """A pass of a new process, as of a CronJob."""
    world.own_writes = OwnWrites(seconds=45)
    return again(world)


PROCESSES = pytest.mark.parametrize("next_pass", [again, anew], ids=["daemon", "new-process"])


@pytest.fixture
def frozen() -> FakeWorld:
    """The article's world. From now on, each list shows pod 1 alone, and pod 2 DOWN."""
    world = article(cache=30)
    world.own_writes = OwnWrites(seconds=45)
    pods(world, endpoint(1), endpoint(2))
    world.run()
    world.later(60)
    pods(world, endpoint(1), endpoint(2, ready=False))
    world.run()
    assert ours(world) == {A: "UP", B: "DOWN"}
    world.registry.cached_for(10**6)
    return world


def told(world: FakeWorld, report: PassReport) -> tuple[bool, str]:
    """Whether the report says that the list is old, and the reason of the condition Synced."""
    status = world.cluster.syncers[REF].status
    assert status is not None
    synced = status.condition("Synced")
    assert synced is not None
    said = any(
        "Eureka's list does not show what was registered before" in text
        for text in sentences(report)
    )
    assert said is (synced.reason == "ListOutdated")
    assert (synced.status is ConditionStatus.UNKNOWN) is said
    return said, synced.reason


@PROCESSES
def test_a_pod_that_is_not_ready_does_not_stay_up(frozen: FakeWorld, next_pass: Process) -> None:
    """The list shows it DOWN, as it was before it became ready, and agrees with the cluster by
    chance."""
    pods(frozen, endpoint(1), endpoint(2))
    next_pass(frozen)
    assert ours(frozen) == {A: "UP", B: "UP"}
    next_pass(frozen)
    pods(frozen, endpoint(1), endpoint(2, ready=False))
    report = next_pass(frozen)
    assert ours(frozen) == {A: "UP", B: "DOWN"}
    assert told(frozen, report)[0]


@PROCESSES
def test_a_pod_that_is_ready_again_does_not_stay_down(
    frozen: FakeWorld, next_pass: Process
) -> None:
    """The list shows it UP, as it was before, and as many instances as there are. A new process
    sees that nobody was renewed in it for long."""
    pods(frozen, endpoint(1, ready=False), endpoint(2))
    next_pass(frozen)
    next_pass(frozen)
    assert ours(frozen) == {A: "DOWN", B: "UP"}
    frozen.later(300)
    pods(frozen, endpoint(1), endpoint(2))
    report = next_pass(frozen)
    assert ours(frozen)[A] == "UP"
    assert told(frozen, report)[0]


def test_a_daemon_cancels_what_the_list_never_showed(frozen: FakeWorld) -> None:
    """It remembers what it registered. The list has no instance of the pod, before and after."""
    pods(frozen, endpoint(1), endpoint(2, ready=False), endpoint(3))
    again(frozen)
    again(frozen)
    assert key(3) in frozen.registry.held
    pods(frozen, endpoint(1), endpoint(2, ready=False))
    again(frozen)
    assert key(3) not in frozen.registry.held


@PROCESSES
def test_the_age_is_told_until_the_list_is_new(frozen: FakeWorld, next_pass: Process) -> None:
    """The report has the least age. The condition has no time, so it does not change from pass to
    pass."""
    pods(frozen, endpoint(1), endpoint(2))
    next_pass(frozen)
    report = next_pass(frozen)
    (said,) = [text for text in sentences(report) if "list" in text]
    assert "The list is at least 1m old" in said
    before = frozen.cluster.syncers[REF].status
    report = next_pass(frozen)
    assert any("at least 2m old" in text for text in sentences(report))
    assert frozen.cluster.syncers[REF].status == before
    frozen.registry.cached_for(0)
    report = next_pass(frozen)
    assert told(frozen, report) == (False, "InSync")


@PROCESSES
def test_a_list_as_old_as_eurekas_own_cache_is_no_news(next_pass: Process) -> None:
    """It shows a write within the cache's time, and costs nothing."""
    world = article(cache=30)
    world.own_writes = OwnWrites(seconds=45)
    world.run()
    for _ in range(3):
        report = next_pass(world)
        assert told(world, report) == (False, "InSync")
    assert set(world.wire.verbs()) & {"read_instance", "register", "cancel"} == set()


@PROCESSES
def test_an_instance_that_somebody_else_cancelled_shows_no_age(next_pass: Process) -> None:
    """The list is right that it lacks it. It is read once, and then forgotten."""
    world = article(cache=30)
    world.own_writes = OwnWrites(seconds=45)
    world.run()
    del world.registry.held[key(2)]
    pods(world, endpoint(1))
    assert told(world, next_pass(world))[0] is False
    reads = [call for call in world.wire.calls if call.startswith("read_instance")]
    next_pass(world)
    assert [call for call in world.wire.calls if call.startswith("read_instance")] == []
    assert len(reads) <= 2


def test_while_eureka_cannot_be_listed_nothing_is_forgotten(frozen: FakeWorld) -> None:
    """What was registered before is compared with the next list."""
    pods(frozen, endpoint(1), endpoint(2))
    again(frozen)
    frozen.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="Eureka was not read")
    again(frozen)
    frozen.registry.unreadable = None
    pods(frozen, endpoint(1), endpoint(2, ready=False))
    again(frozen)
    assert ours(frozen) == {A: "UP", B: "DOWN"}
