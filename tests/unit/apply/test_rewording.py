"""A failure whose message varies: it must not cause a write for each syncer in each pass."""

from __future__ import annotations

import pytest

from eurekube_sync.apply.status import FIRST_PART_SECONDS, REWORDED_SECONDS, worth_writing
from eurekube_sync.model.deadline import Schedule
from eurekube_sync.model.errors import RegistryRejected
from eurekube_sync.model.kubernetes import Condition, ConditionStatus, SyncerStatus
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.controller.test_reconcile import article
from tests.unit.worlds.build import REF, endpoint, key, piece
from tests.unit.worlds.fakes import FakeWorld

DAY = 1_795_248_000.0
"""The start of a stretch."""


def seldom() -> Schedule:
    """A schedule as a process has it."""
    return Schedule(REWORDED_SECONDS, first_part=FIRST_PART_SECONDS)


def test_a_process_is_due_once_in_each_stretch() -> None:
    """A daemon is due in its first pass of each stretch. Its very first pass is due only at the
    start of a stretch, as for every process of a CronJob."""
    daemon = seldom()
    assert [daemon.due(DAY + 10 + 30 * number) for number in range(21)] == [
        number in (0, 10, 20) for number in range(21)
    ]
    processes = [
        [started.due(DAY + 60 * minute + second) for second in (5, 35)]
        for minute in range(10)
        for started in [seldom()]
    ]
    assert processes == [[minute % 5 == 0, False] for minute in range(10)]


@pytest.mark.parametrize("trouble", ["services", "eureka", "instance"])
def test_a_sentence_that_varies_is_written_each_five_minutes(trouble: str) -> None:
    """The message is about the cluster, Eureka's list or one refused instance. The reason and the
    time of the condition stay the same. The end of the failure is written at once."""
    world = article()
    world.rewording = seldom()
    world.run()
    writes = []
    for number in range(41):
        said = f"500: request id {number}"
        if trouble == "services":
            world.cluster.unknown["services", "*"] = Unknown(cause=Cause.UNAVAILABLE, message=said)
        elif trouble == "eureka":
            world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message=said)
        else:
            world.cluster.apply(piece(endpoint(1), endpoint(2), endpoint(3)))
            world.registry.refuse[key(3)] = RegistryRejected(said)
        world.later(30)
        world.run()
        writes.append(status_writes(world))
    assert sum(writes) == writes[0] + 1200 // REWORDED_SECONDS
    assert writes[0] == 1
    status = world.cluster.syncers[REF].status
    assert status is not None
    synced = status.condition("Synced")
    assert synced is not None
    assert world.clock.now() - synced.last_transition == 1200
    world.cluster.unknown.clear()
    world.registry.unreadable = None
    world.registry.refuse.clear()
    world.later(30)
    world.run()
    assert status_writes(world) == 1


def status_writes(world: FakeWorld) -> int:
    """Return the number of writes in the last pass."""
    return sum(call.startswith("write_status") for call in world.wire.calls)


def condition(type: str, status: ConditionStatus, reason: str, message: str = "a") -> Condition:
    return Condition(
        type=type,
        status=status,
        reason=reason,
        message=message,
        observed_generation=1,
        last_transition=1,
    )


def status(*conditions: Condition) -> SyncerStatus:
    return SyncerStatus(observed_generation=1, conditions=conditions, errors=("a", "b"))


@pytest.mark.parametrize(
    ("of", "waits"),
    [
        (condition("Synced", ConditionStatus.FALSE, "PartlyFailed"), True),
        (condition("Synced", ConditionStatus.UNKNOWN, "RegistryUnknown"), True),
        (condition("Ready", ConditionStatus.UNKNOWN, "ClusterUnavailable"), True),
        (condition("Synced", ConditionStatus.FALSE, "NoSuchPort"), False),
        (condition("Synced", ConditionStatus.FALSE, "Deleting"), False),
        (condition("RemovalHeld", ConditionStatus.TRUE, "TooManyRemovals"), False),
        (condition("Conflict", ConditionStatus.TRUE, "Conflict"), False),
    ],
)
def test_only_what_a_server_says_waits(of: Condition, waits: bool) -> None:
    """Our own sentences may tell a person what to do, such as how to release a removal. So they
    must be up to date."""
    before, after = status(of), status(replace(of, message="b"))
    assert worth_writing(before, after, words=False) is not waits
    assert worth_writing(before, after, words=True)
    assert worth_writing(None, after, words=False)
    assert not worth_writing(before, before, words=True)


def test_a_count_or_a_reason_never_waits() -> None:
    failed = condition("Synced", ConditionStatus.FALSE, "PartlyFailed")
    before = status(failed)
    assert worth_writing(before, replace(before, up=1), words=False)
    assert worth_writing(before, replace(before, errors=("a",)), words=False)
    assert worth_writing(before, status(replace(failed, reason="InSync")), words=False)
    assert not worth_writing(before, replace(before, errors=("c", "d")), words=False)
