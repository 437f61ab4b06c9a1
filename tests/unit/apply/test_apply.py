"""Actions on Eureka: how they are called, and what their outcomes are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from eurekube_sync.adapters.threads import ThreadWorkers
from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.brake.removals import failed_adds
from eurekube_sync.model.actions import (
    Cancel,
    Change,
    Grounds,
    Outcome,
    Register,
    Renew,
    Result,
    Update,
)
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.errors import RegistryRejected, RegistryUnavailable
from eurekube_sync.model.eureka import InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import SYNCER
from eurekube_sync.model.sources import Cause
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Unread
from tests.in_process.workers import InTurn
from tests.unit.worlds.build import (
    DENIED,
    DOWN,
    OUT,
    OWNERSHIP,
    PROOF,
    REF,
    UP,
    changed,
    instance,
    key,
    stored,
)
from tests.unit.worlds.clock import START, Clock
from tests.unit.worlds.fakes import Registry, Wire

DOWN_AGAIN = RegistryUnavailable("Eureka did not answer")


@dataclass
class Bench:
    """An applier with its registry."""

    clock: Clock = field(default_factory=Clock)
    wire: Wire = field(default_factory=Wire)
    seconds: float = 120

    def __post_init__(self) -> None:
        self.registry = Registry(self.wire, self.clock)
        self.applier = Applier(
            self.registry,
            self.clock,
            InTurn(),
            RenewalLedger(period=0, slack=0),
            OWNERSHIP.holds,
            Deadline(self.clock, self.seconds),
        )

    def status(self, number: int = 1) -> InstanceStatus:
        return self.registry.held[key(number)].status

    def reading(self, number: int) -> ObservedInstance:
        """What an uncached read shows now of a registered instance."""
        return replace(self.registry.held[key(number)], read_at=int(self.clock.now() * 1000))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def renew(number: int = 1, *, if_gone: bool = False, status: InstanceStatus | None = UP) -> Renew:
    return Renew(
        key=key(number),
        syncer=REF,
        why="",
        if_gone=instance(number) if if_gone else None,
        status=status,
    )


def register(number: int = 1) -> Register:
    return Register(instance=instance(number), syncer=REF, why="")


def update(
    number: int = 1, *, was: InstanceStatus = UP, becomes: InstanceStatus = UP, timestamp: int = 1
) -> Update:
    wanted = instance(number, status=becomes)
    changes = (Change(field="status", was=was.value, becomes=wanted.status.value),)
    return Update(
        instance=wanted,
        syncer=REF,
        why="",
        changes=changes,
        was=was,
        stored_timestamp=timestamp,
        proof=PROOF,
    )


def cancel(number: int = 1, *, was: InstanceStatus | None = UP) -> Cancel:
    return Cancel(
        key=key(number), syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=was
    )


def only(outcomes: Sequence[Outcome]) -> Outcome:
    (outcome,) = outcomes
    return outcome


def test_an_update_whose_finalizer_failed_changes_nothing(bench: Bench) -> None:
    """The instance stays registered and unchanged."""
    bench.registry.put(stored(instance(), status=DOWN))
    outcome = only(bench.applier.change([update(was=DOWN)], {REF: "no finalizer"}))
    assert (outcome.result, outcome.status, outcome.detail) == (Result.FAILED, DOWN, "no finalizer")


@pytest.mark.parametrize("barred", [{}, {REF: "no finalizer"}])
def test_an_expired_instance_that_was_not_registered_again_counts_as_absent(
    bench: Bench, barred: dict[object, str]
) -> None:
    """The renewal got a 404. Whatever the list showed, no instance is registered now."""
    bench.registry.refuse[key()] = DOWN_AGAIN
    outcome = only(bench.applier.change([renew(if_gone=True)], {REF: "no"} if barred else {}))
    assert (outcome.result, outcome.status) == (Result.FAILED, None)


def test_nothing_is_cancelled_while_an_expired_instance_is_not_registered_again() -> None:
    """An expired instance does not count as an UP instance that is left. Its failed registration
    counts as a failed add."""
    gone = Outcome(action=renew(1, if_gone=True), result=Result.GONE)
    unhealed = Outcome(action=renew(1, if_gone=True), result=Result.FAILED)
    standing = {key(n): stored(instance(n)) for n in (1, 2)}
    assert set(failed_adds([cancel(2)], [gone, unhealed], standing)) == {key(2)}


# --- Renewals -------------------------------------------------------------------------------------


def test_a_renewal_that_meets_no_lease_is_gone(bench: Bench) -> None:
    """A later step decides whether to register the instance again."""
    bench.registry.put(stored(instance(1)))
    ended = {o.action.key: (o.result, o.status) for o in bench.applier.renew([renew(1), renew(2)])}
    assert ended == {key(1): (Result.DONE, UP), key(2): (Result.GONE, None)}


def test_a_renewal_without_a_list_counts_as_what_it_would_register_again(bench: Bench) -> None:
    """While the list is Unknown, the desired status is the best estimate."""
    bench.registry.put(stored(instance(1)), stored(instance(2)))
    outcomes = bench.applier.renew([renew(1, if_gone=True, status=None), renew(2, status=None)])
    assert {o.action.key: o.status for o in outcomes} == {key(1): UP, key(2): None}


def test_renewals_begin_somewhere_else_each_time() -> None:
    """Passes that are cut short must not leave out the same leases each time."""
    bench = Bench(seconds=10_000)
    renewals = [renew(number) for number in range(10)]
    firsts = set()
    for _ in range(50):
        bench.wire.calls.clear()
        assert {outcome.action for outcome in bench.applier.renew(renewals)} == set(renewals)
        firsts.add(bench.wire.calls[0])
        bench.clock.sleep(10)
    assert len(firsts) == 10


def test_the_instance_with_the_oldest_renewal_is_renewed_first() -> None:
    """A new process has no memory, and its passes may take any time. So a rotation by time does not
    suffice."""
    bench = Bench(seconds=10_000)
    listed = [
        replace(stored(instance(number)), last_renewal=1 + (number * 7) % 10)
        for number in range(10)
    ]
    for _ in range(5):
        bench.wire.calls.clear()
        bench.applier.renew([renew(number) for number in range(11)], listed)
        assert bench.wire.calls == [
            f"renew {key(number)}" for number in (10, 0, 3, 6, 9, 2, 5, 8, 1, 4, 7)
        ]
        bench.clock.sleep(10)


def test_the_leases_of_a_small_namespace_are_not_renewed_before_older_ones() -> None:
    """Otherwise the leases of a large namespace would expire in passes that are cut short."""
    bench = Bench(seconds=10_000)
    small = stored(instance(9, ref=SyncerRef("small", "rating")))
    listed = [
        *(replace(stored(instance(number)), last_renewal=number) for number in (1, 2, 3)),
        small,
    ]
    listed[-1] = replace(small, last_renewal=4)
    bench.applier.renew([renew(1), renew(2), renew(3), replace(renew(9), key=small.key)], listed)
    assert bench.wire.calls == [f"renew {one.key}" for one in listed]


def test_a_lease_is_as_old_as_the_pass_that_renewed_it(bench: Bench) -> None:
    """The program may be paused, or the answer may be slow. The next renewal must not be late by
    the same time."""
    ledger = RenewalLedger(period=30, slack=0)

    def one_pass() -> Applier:
        deadline = Deadline(bench.clock, bench.seconds)
        return Applier(bench.registry, bench.clock, InTurn(), ledger, OWNERSHIP.holds, deadline)

    bench.registry.put(stored(instance()))
    bench.wire.then = lambda: bench.clock.sleep(50)
    assert only(one_pass().renew([renew()])).result is Result.DONE
    assert [outcome.action.key for outcome in one_pass().renew([renew()])] == [key()]


# --- Registrations, updates, repeated registrations -----------------------------------------------


def test_a_register_is_followed_at_once_by_a_renewal(bench: Bench) -> None:
    """The renewal doubles the length of the lease, and proves that it exists."""
    outcome = only(bench.applier.change([register()], {}))
    assert bench.wire.verbs() == ["register", "renew"]
    assert (outcome.result, outcome.status, bench.status()) == (Result.DONE, UP, UP)


@pytest.mark.parametrize(
    ("stored_at", "written"), [(1, int(START * 1000)), (int(START * 1000), int(START * 1000) + 1)]
)
def test_a_register_is_newer_than_what_is_stored(
    bench: Bench, stored_at: int, written: int
) -> None:
    """Eureka ignores an older timestamp with a 204, and our clock may be behind."""
    bench.registry.put(stored(instance(), status=DOWN, timestamp=stored_at))
    only(bench.applier.change([update(was=DOWN, timestamp=stored_at)], {}))
    assert (bench.status(), bench.registry.held[key()].last_dirty_timestamp) == (UP, written)


@pytest.mark.parametrize(
    ("was", "becomes", "expected"),
    [(DOWN, UP, UP), (UP, UP, UP), (OUT, UP, OUT), (OUT, DOWN, DOWN), (DOWN, DOWN, DOWN)],
)
def test_an_update_reports_the_resulting_status(
    bench: Bench, was: InstanceStatus, becomes: InstanceStatus, expected: InstanceStatus
) -> None:
    """An OUT_OF_SERVICE that a person set outlasts a registration of UP."""
    bench.registry.put(stored(instance(), status=was))
    if was is OUT:
        bench.registry.override(key(), OUT)
    outcome = only(bench.applier.change([update(was=was, becomes=becomes)], {}))
    assert outcome.status is bench.status() is expected


def test_a_register_that_is_taken_and_not_there_is_a_failure(bench: Bench) -> None:
    """The server says that it has the instance, but a renewal does not find it."""
    bench.registry.overrides[key().id] = InstanceStatus.UNKNOWN
    outcome = only(bench.applier.change([register()], {}))
    assert (outcome.result, outcome.cause) == (Result.FAILED, None)
    assert "did not show the instance a moment later" in outcome.detail


def test_registering_again_reads_first_and_never_replaces_an_instance_of_others(
    bench: Bench,
) -> None:
    """An instance with our id, but without our mark, is a conflict."""
    bench.registry.put(stored(instance(), metadata={}))
    outcome = only(bench.applier.change([renew(if_gone=True)], {}))
    assert (outcome.result, bench.wire.verbs()) == (Result.CONFLICT, ["read_instance"])


def test_registering_again_is_newer_than_what_is_there(bench: Bench) -> None:
    """Eureka answers a renewal with 404 if the instance's status is UNKNOWN."""
    bench.registry.put(
        stored(instance(), status=InstanceStatus.UNKNOWN, timestamp=int(START * 1000) + 5)
    )
    outcome = only(bench.applier.change([renew(if_gone=True)], {}))
    assert (outcome.result, outcome.status, bench.status()) == (Result.REGISTERED_AGAIN, UP, UP)


def test_registering_again_needs_a_read_unless_no_read_works_at_all(bench: Bench) -> None:
    """If even the list is Unknown, the 404 of the renewal counts as the uncached answer."""
    bench.registry.unreadable = DENIED
    assert only(bench.applier.change([renew(if_gone=True)], {})).result is Result.FAILED
    assert (
        only(bench.applier.change([renew(if_gone=True, status=None)], {})).result
        is Result.REGISTERED_AGAIN
    )


# --- Removals -------------------------------------------------------------------------------------


def test_a_cancel_of_what_is_gone_is_as_good(bench: Bench) -> None:
    """A 404 means that the instance is gone."""
    bench.registry.put(stored(instance(1)))
    outcomes = bench.applier.remove([cancel(1), cancel(2, was=None)], {})
    assert [(o.result, o.status) for o in outcomes] == [(Result.DONE, None)] * 2
    assert bench.registry.held == {}


def test_down_is_a_register_never_an_override(bench: Bench) -> None:
    """An override by PUT status would outlast a later UP. A registration of DOWN does not."""
    bench.registry.put(stored(instance()))
    outcome = only(bench.applier.remove([update(was=UP, becomes=DOWN)], {}))
    assert (outcome.status, bench.status(), bench.registry.overrides) == (DOWN, DOWN, {})
    only(bench.applier.change([update(was=DOWN, becomes=UP)], {}))
    assert bench.status() is UP


def test_a_removal_that_is_held_back_leaves_the_instance_registered(bench: Bench) -> None:
    """No call is made for it."""
    outcome = only(bench.applier.remove([cancel()], {key(): "why"}))
    assert (outcome.result, outcome.detail, outcome.status, bench.wire.calls) == (
        Result.HELD_BACK,
        "why",
        UP,
        [],
    )


def done(action: Register | Update | Renew, status: InstanceStatus | None = UP) -> Outcome:
    return Outcome(action=action, result=Result.DONE, status=status)


def refused(action: Register | Update | Renew, status: InstanceStatus | None = None) -> Outcome:
    return Outcome(action=action, result=Result.FAILED, status=status)


@pytest.mark.parametrize(
    ("outcomes", "stands", "blocked"),
    [
        ([], [1], []),  # no add was planned, so it may be the last
        ([done(register(2))], [1], []),
        ([refused(register(2))], [1], [1]),
        ([refused(register(2))], [1, 3], []),  # another stays UP
        ([refused(register(2)), done(register(3))], [1], []),  # another add succeeded
        ([refused(update(2, was=DOWN), DOWN)], [1], [1]),
        (
            [refused(register(2)), refused(renew(3), UP)],
            [1, 3],
            [],
        ),  # an instance whose renewal failed is still UP
        ([refused(register(2)), Outcome(action=renew(3), result=Result.GONE)], [1, 3], [1]),
        ([done(renew(3))], [1, 3], []),
        ([done(update(3, was=DOWN, becomes=DOWN), DOWN)], [1], []),
    ],
)
def test_the_last_up_instance_stays_while_its_successor_could_not_be_registered(
    outcomes: list[Outcome], stands: list[int], blocked: list[int]
) -> None:
    """Instance 1 is to be cancelled. The other UP instances and the results of the adds decide."""
    standing = {key(number): stored(instance(number)) for number in stands}
    assert set(failed_adds([cancel(1)], outcomes, standing)) == {key(number) for number in blocked}


def test_a_vip_counts_like_an_app() -> None:
    """An app may move to another name under the same VIP. It keeps its old instances until the new
    ones are registered."""
    old = replace(cancel(1), key=key(1, app="old"))
    standing = {old.key: stored(instance(1, app="old", vip="shared,other"))}
    new = Register(instance=instance(1, app="new", vip="shared"), syncer=REF, why="")
    assert set(failed_adds([old], [refused(new)], standing)) == {old.key}
    apart = Register(
        instance=instance(1, app="new", vip="apart"), syncer=SyncerRef("a", "b"), why=""
    )
    assert failed_adds([old], [refused(apart)], standing) == {}


@pytest.mark.parametrize(
    ("grounds", "held"), [(Grounds.ABSENCE, False), (Grounds.OVER_LIMIT, True)]
)
def test_only_what_its_limit_removes_waits_for_its_syncers_own_successor(
    grounds: Grounds, held: bool
) -> None:
    """A pod over the limit serves callers. Another pod may be dead, so another syncer's instance
    suffices to cancel it."""
    others = changed(stored(instance(9)), metadata={**instance(9).metadata, SYNCER: "rating/other"})
    standing = {key(1): stored(instance(1)), key(9): others}
    going = replace(cancel(1), grounds=grounds)
    assert set(failed_adds([going], [refused(register(2))], standing)) == (
        {key(1)} if held else set()
    )


def test_the_cancel_of_a_down_instance_is_not_held_back() -> None:
    """Callers lose nothing by the cancel of a DOWN instance."""
    standing = {key(1): stored(instance(1, status=DOWN))}
    assert failed_adds([cancel(1, was=DOWN)], [refused(register(2))], standing) == {}


# --- Failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "cause"), [(DOWN_AGAIN, Cause.UNAVAILABLE), (RegistryRejected("400"), None)]
)
def test_a_failed_call_is_an_outcome_and_the_others_go_on(
    bench: Bench, error: Exception, cause: Cause | None
) -> None:
    """The outcome has the cause, and the status that remains."""
    bench.registry.put(*(stored(instance(number)) for number in (1, 2)))
    bench.registry.refuse[key(1)] = error
    for outcomes in (
        bench.applier.renew([renew(1), renew(2)]),
        bench.applier.remove([cancel(1), cancel(2)], {}),
    ):
        by_key = {outcome.action.key: outcome for outcome in outcomes}
        assert (by_key[key(1)].result, by_key[key(1)].status, by_key[key(1)].cause) == (
            Result.FAILED,
            UP,
            cause,
        )
        assert by_key[key(2)].result is Result.DONE


def test_after_twenty_failures_in_a_row_the_rest_is_not_tried(bench: Bench) -> None:
    """Eureka is away, and more calls would not help. Reads and changes are counted separately.
    Renewals are always tried."""
    for number in range(30):
        bench.registry.refuse[key(number)] = bench.registry.refuse_read[key(number)] = DOWN_AGAIN
    outcomes = bench.applier.remove([cancel(number) for number in range(30)], {})
    results = [outcome.result for outcome in outcomes]
    assert (results.count(Result.FAILED), results.count(Result.NOT_TRIED)) == (20, 10)
    assert {outcome.status for outcome in outcomes} == {UP}
    readings = bench.applier.read([key(number) for number in range(30)]).values()
    whys = [reading.why for reading in readings if isinstance(reading, Unread)]
    assert (len(whys), whys.count("Eureka did not answer 20 calls in a row")) == (30, 10)
    renewals = bench.applier.renew([renew(number) for number in range(30)])
    assert {outcome.result for outcome in renewals} == {Result.FAILED}


def test_a_success_or_a_refusal_between_failures_starts_the_count_anew(bench: Bench) -> None:
    """A server that refuses one instance is available."""
    for number in range(19):
        bench.registry.refuse[key(number)] = DOWN_AGAIN
    bench.registry.refuse[key(50)] = RegistryRejected("400")
    for last in (50, 51):
        outcomes = [
            only(bench.applier.remove([cancel(number)], {})) for number in (*range(19), last)
        ]
        assert Result.NOT_TRIED not in {outcome.result for outcome in outcomes}


def test_after_the_deadline_nothing_is_begun(bench: Bench) -> None:
    """Each instance keeps its status, and its outcome says that it was not tried."""
    bench.clock.sleep(120)
    outcomes = [
        *bench.applier.renew([renew()]),
        *bench.applier.change([register(), update(was=DOWN)], {}),
        *bench.applier.remove([cancel()], {}),
    ]
    assert bench.wire.calls == []
    assert {(outcome.result, outcome.detail) for outcome in outcomes} == {
        (Result.NOT_TRIED, "no time was left for it in this pass")
    }
    assert [outcome.status for outcome in outcomes] == [UP, None, DOWN, UP]
    assert isinstance(bench.applier.read([key()])[key()], Unread)


def test_each_key_is_read_once(bench: Bench) -> None:
    """The reads give an instance, a 404 and a failure."""
    bench.registry.put(stored(instance(1)))
    bench.registry.refuse_read[key(3)] = RegistryUnavailable("Eureka did not answer")
    readings = bench.applier.read([key(1), key(2), key(1), key(3)])
    assert readings == {
        key(1): bench.reading(1),
        key(2): None,
        key(3): Unread(why="Eureka did not answer"),
    }
    assert len(bench.wire.calls) == 3


def test_threads_do_what_one_after_the_other_does() -> None:
    """The results are in the order of the items. An exception of a call is raised."""
    with ThreadWorkers(4) as workers:
        assert workers.each(lambda n: n * 2, range(20)) == InTurn().each(lambda n: n * 2, range(20))
        with pytest.raises(ZeroDivisionError):
            workers.each(lambda n: 1 // n, [1, 0])


# --- Batches --------------------------------------------------------------------------------------


@pytest.fixture
def batching(bench: Bench) -> Bench:
    """A bench whose registry takes batches of two."""
    bench.registry.batch_size = 2
    return bench


def test_renewals_go_in_batches_and_each_has_its_outcome(batching: Bench) -> None:
    """An instance is renewed or gone. A renewed one is not due again in the same period."""
    ledger, deadline = RenewalLedger(period=30, slack=0), Deadline(batching.clock, batching.seconds)
    applier = Applier(
        batching.registry, batching.clock, InTurn(), ledger, OWNERSHIP.holds, deadline
    )
    batching.registry.put(*(stored(instance(number)) for number in (1, 2, 4, 5)))
    for wanted in (
        {1: Result.DONE, 2: Result.DONE, 3: Result.GONE, 4: Result.DONE, 5: Result.DONE},
        {3: Result.GONE},
    ):
        outcomes = applier.renew([renew(number) for number in range(1, 6)])
        assert {o.action.key: o.result for o in outcomes} == {
            key(n): result for n, result in wanted.items()
        }
    assert batching.wire.calls == [
        "renew_batch 2",
        "renew_batch 2",
        "renew_batch 1",
        "renew_batch 1",
    ]


def test_an_item_that_a_batch_leaves_open_is_sent_by_a_single_call(batching: Bench) -> None:
    """The single call says why the instance is refused. The other items of the batch are done."""
    batching.registry.put(*(stored(instance(number)) for number in (1, 2)))
    batching.registry.refuse[key(1)] = RegistryRejected("400: no address")
    outcomes = {o.action.key: o for o in batching.applier.renew([renew(1), renew(2)])}
    assert (outcomes[key(1)].result, outcomes[key(1)].detail) == (Result.FAILED, "400: no address")
    assert outcomes[key(2)].result is Result.DONE
    assert batching.wire.calls == ["renew_batch 2", f"renew {key(1)}"]

    batching.wire.calls.clear()
    outcomes = {o.action.key: o for o in batching.applier.change([register(1), register(3)], {})}
    assert [outcomes[key(n)].result for n in (1, 3)] == [Result.FAILED, Result.DONE]
    assert batching.wire.calls == ["register_batch 2", f"register {key(1)}"]

    batching.wire.calls.clear()
    outcomes = {o.action.key: o for o in batching.applier.remove([cancel(1), cancel(2)], {})}
    assert [outcomes[key(n)].result for n in (1, 2)] == [Result.FAILED, Result.DONE]
    assert batching.wire.calls == ["cancel_batch 2", f"cancel {key(1)}"]


def test_updates_and_what_must_stay_are_in_no_batch(batching: Bench) -> None:
    """A change is a separate POST. A barred syncer registers nothing, and a cancel that is held
    back is not made."""
    batching.registry.put(*(stored(instance(number)) for number in (1, 2, 3)))
    assert (
        only(batching.applier.change([register(4)], {REF: "no finalizer"})).result is Result.FAILED
    )
    batching.applier.change([update(1, becomes=DOWN)], {})
    outcomes = batching.applier.remove([cancel(2), cancel(3), update(1, was=DOWN)], {key(2): "why"})
    assert {o.action.key: o.result for o in outcomes} == {
        key(1): Result.DONE,
        key(2): Result.HELD_BACK,
        key(3): Result.DONE,
    }
    assert "register_batch" not in batching.wire.verbs()
    assert batching.wire.calls.count("cancel_batch 1") == 1


def test_expired_instances_are_read_and_registered_again_in_batches(batching: Bench) -> None:
    """Only an instance that the uncached read does not find is in a batch. Another owner's instance
    is not replaced. A registered instance needs a newer timestamp."""
    unknown = stored(instance(2), status=InstanceStatus.UNKNOWN, timestamp=int(START * 1000) + 5)
    batching.registry.put(stored(instance(1), metadata={}), unknown)
    outcomes = batching.applier.change([renew(number, if_gone=True) for number in (1, 2, 3)], {})
    assert {o.action.key: o.result for o in outcomes} == {
        key(1): Result.CONFLICT,
        key(2): Result.REGISTERED_AGAIN,
        key(3): Result.REGISTERED_AGAIN,
    }
    assert "register_batch 1" in batching.wire.calls
    assert (batching.status(2), batching.status(3)) == (UP, UP)


def test_batches_say_which_keys_are_absent(batching: Bench) -> None:
    """A registered key, whatever its status, is read by its own call. So is a key that a batch
    leaves open. No lease is renewed."""
    theirs = stored(instance(2), metadata={}, status=InstanceStatus.UNKNOWN)
    batching.registry.put(theirs)
    batching.registry.refuse[key(3)] = RegistryRejected("400: no address")
    keys = [key(number) for number in range(1, 5)]
    assert batching.applier.read([*keys, key(9)], keys) == {
        **dict.fromkeys((key(1), key(3), key(4), key(9))),
        key(2): batching.reading(2),
    }
    assert batching.wire.verbs().count("absent_batch") == 2
    read = {call for call in batching.wire.calls if call.startswith("read_instance")}
    assert read == {f"read_instance {key(number)}" for number in (2, 3, 9)}


def test_many_leases_of_ours_are_read_in_batches(batching: Bench) -> None:
    """Only those that this process renews. What no batch shows is read by a call of its own."""
    batching.registry.put(*(stored(instance(number)) for number in range(1, 7)))
    batching.applier.renew([renew(number) for number in range(1, 6)])
    batching.registry.override(key(3), OUT)
    batching.registry.refuse[key(4)] = RegistryRejected("400: no address")
    del batching.registry.held[key(5)]
    batching.wire.calls.clear()
    keys = [key(number) for number in range(1, 7)]
    readings = batching.applier.read(keys, renewable=keys)
    for one, reading in readings.items():
        if isinstance(reading, ObservedInstance):
            reading = replace(reading, read_at=0)
        assert reading == batching.registry.held.get(one)
    assert readings.keys() == set(keys)
    calls = batching.wire.calls
    assert sum(int(call.split()[1]) for call in calls if call.startswith("read_batch")) == 5
    assert {call for call in calls if call.startswith("read_instance")} == {
        f"read_instance {key(number)}" for number in (4, 5, 6)
    }


def test_less_than_a_batch_is_read_by_single_calls(batching: Bench) -> None:
    """They renew nothing."""
    batching.registry.put(stored(instance(1)))
    batching.applier.renew([renew(1)])
    batching.wire.calls.clear()
    batching.applier.read([key(1)], renewable=[key(1)])
    assert batching.wire.calls == [f"read_instance {key(1)}"]


def test_after_many_failed_reads_no_batch_of_reads_is_sent_either(batching: Bench) -> None:
    """Eureka does not answer, so the remaining keys are unread."""
    keys = [key(number) for number in range(1, 60)]
    batching.registry.put(*(stored(instance(number)) for number in range(1, 60)))
    batching.applier.renew([renew(number) for number in range(1, 60)])
    batching.registry.refuse_read.update(dict.fromkeys(keys, DOWN_AGAIN))
    batching.applier.read(keys)
    batching.wire.calls.clear()
    readings = batching.applier.read(keys, renewable=keys)
    assert batching.wire.calls == []
    assert all(isinstance(reading, Unread) for reading in readings.values())


def test_after_many_failed_reads_no_batch_is_sent_either(batching: Bench) -> None:
    """Eureka does not answer, so the remaining keys are unread."""
    for number in range(20):
        batching.registry.refuse_read[key(number)] = DOWN_AGAIN
    batching.applier.read([key(number) for number in range(20)])
    batching.wire.calls.clear()
    assert isinstance(batching.applier.read([key(30)], [key(30)])[key(30)], Unread)
    assert batching.wire.calls == []


def test_a_missing_instance_is_registered_on_the_server_if_it_is_desired(batching: Bench) -> None:
    """An undesired or barred instance is not registered. An OUT_OF_SERVICE instance is renewed by a
    single call, which its server replicates with the override."""
    batching.registry.put(
        *(stored(instance(number)) for number in (1, 2, 4)), stored(instance(3), status=OUT)
    )
    batching.registry.lacking = {key(number) for number in range(1, 5)}
    renewed = batching.applier.renew(
        [renew(1, if_gone=True), renew(2), renew(3, if_gone=True), renew(4)]
    )
    assert [o.result for o in renewed] == [Result.DONE] * 4
    assert all(outcome.lacking for outcome in renewed)
    assert batching.applier.register_where_lacking(renewed, {REF: "no finalizer"}) == []
    (brought,) = batching.applier.register_where_lacking(renewed, {})
    assert (brought.action.key, brought.result, brought.lacking) == (key(1), Result.DONE, False)
    assert batching.wire.calls.count("level_batch 2") == 1
    assert batching.wire.calls.count(f"renew {key(3)}") == 1
    assert batching.registry.lacking == {key(2), key(3), key(4)}


def test_namespaces_take_turns_when_missing_instances_are_registered(batching: Bench) -> None:
    """The time of the pass ends after one batch of two."""
    of_bank = instance(9, ref=SyncerRef("bank", "pay"))
    wanted = [*(instance(number) for number in range(1, 6)), of_bank]
    batching.registry.put(*map(stored, wanted))
    batching.registry.lacking = {one.key for one in wanted}
    renewed = batching.applier.renew([replace(renew(), key=one.key, if_gone=one) for one in wanted])
    batching.wire.then = lambda: batching.clock.sleep(200)
    brought = batching.applier.register_where_lacking(
        sorted(renewed, key=lambda one: one.action.key.id, reverse=True), {}
    )
    assert len(brought) == 2
    assert of_bank.key in {outcome.action.key for outcome in brought}


def test_a_server_that_is_back_is_asked_about_instances_not_yet_renewed(batching: Bench) -> None:
    """It is asked once. Renewals in this pass have already shown whether their instances are
    missing."""
    batching.registry.lacking = {key(1), key(2)}
    due, fresh, there = renew(1, if_gone=True), renew(2, if_gone=True), renew(3)
    renewed = [Outcome(action=due, result=Result.DONE, status=UP)]
    assert batching.applier.ask_returned_servers([due, fresh, there], renewed) == []
    batching.registry.returned = True
    assert batching.applier.ask_returned_servers([due, fresh, there], renewed) == [
        Outcome(action=fresh, result=Result.DONE, status=UP, lacking=True)
    ]
    assert batching.applier.ask_returned_servers([due, fresh, there], renewed) == []


def test_an_instance_that_a_server_did_not_take_is_due_again(batching: Bench) -> None:
    """It is due in the next pass, before its period is over. It still counts as missing on that
    server."""
    ledger = RenewalLedger(period=30, slack=5)
    applier = Applier(
        batching.registry,
        batching.clock,
        InTurn(),
        ledger,
        OWNERSHIP.holds,
        Deadline(batching.clock, 120),
    )
    batching.registry.put(stored(instance(1)), stored(instance(2)))
    batching.registry.lacking = {key(1), key(2)}
    begun = batching.clock.monotonic()
    for _ in range(2):  # the first renewal is dated at another time, to spread the leases
        renewed = applier.renew_now([renew(1, if_gone=True), renew(2, if_gone=True)])
    batching.registry.refuse[key(1)] = RegistryRejected("no")
    assert [outcome.action.key for outcome in applier.register_where_lacking(renewed, {})] == [
        key(2)
    ]
    assert ledger.due(map(key, (1, 2)), begun) == [key(1)]
    assert "renew" not in batching.wire.verbs(), (
        "a server that refuses it may hold another owner's instance"
    )


def test_the_last_instance_stays_while_a_server_lacks_its_successor() -> None:
    """Callers of that server would find no instance. The cancel is made if every server has another
    instance."""
    lacking = Outcome(action=renew(1, if_gone=True), result=Result.DONE, status=UP, lacking=True)
    standing = {key(n): stored(instance(n)) for n in (1, 2)}
    assert set(failed_adds([cancel(2)], [lacking], standing)) == {key(2)}
    assert failed_adds([cancel(2)], [replace(lacking, lacking=False)], standing) == {}
    assert failed_adds([cancel(2)], [lacking], {**standing, key(3): stored(instance(3))}) == {}
    out = replace(lacking, status=OUT)  # no server shows it to callers as UP
    assert (
        failed_adds([cancel(2)], [out], {**standing, key(1): stored(instance(1), status=OUT)}) == {}
    )


def test_an_instance_of_others_on_a_server_that_lacks_ours_is_a_conflict(batching: Bench) -> None:
    """Ours stays registered on the other servers."""
    batching.registry.put(stored(instance(1)))
    batching.registry.lacking = {key(1)}
    batching.registry.anothers = {key(1)}
    (conflict,) = batching.applier.register_where_lacking(
        batching.applier.renew([renew(if_gone=True)]), {}
    )
    assert (conflict.result, conflict.status) == (Result.CONFLICT, UP)


def test_after_the_deadline_no_batch_is_begun(batching: Bench) -> None:
    """The deadline is checked between two batches. The remaining instances are not tried."""
    batching.registry.put(*(stored(instance(number)) for number in range(1, 6)))
    batching.wire.then = lambda: batching.clock.sleep(70)
    outcomes = batching.applier.renew([renew(number) for number in range(1, 6)])
    assert batching.wire.calls == ["renew_batch 2", "renew_batch 2"]
    results = [outcome.result for outcome in outcomes]
    assert (results.count(Result.DONE), results.count(Result.NOT_TRIED)) == (4, 1)
    batching.registry.lacking = {key(1)}
    renewed = [
        replace(outcome, action=renew(1, if_gone=True), lacking=True) for outcome in outcomes[:1]
    ]
    assert batching.applier.register_where_lacking(renewed, {}) == []
    assert len(batching.wire.calls) == 2


def test_batches_that_end_on_the_way_leave_the_rest_to_single_calls(batching: Bench) -> None:
    """The same pass makes the single calls, and renews every lease."""
    batching.registry.put(*(stored(instance(number)) for number in range(1, 6)))

    def end() -> None:
        batching.registry.batch_size = None

    batching.wire.then = end
    outcomes = batching.applier.renew([renew(number) for number in range(1, 6)])
    assert {outcome.result for outcome in outcomes} == {Result.DONE}
    assert batching.wire.verbs() == ["renew_batch", "renew", "renew", "renew"]
