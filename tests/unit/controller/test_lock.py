"""The lock: at most one copy works at a time, despite failures of machines, clocks and the API."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eurekube_sync.controller.lock import (
    EVERY,
    PATIENCE,
    RENEW_WITHIN,
    Held,
    HeldBy,
    Lock,
    UnderLock,
    wait_for,
)
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.model.deadline import Deadline, TimeLimit
from eurekube_sync.model.errors import ClusterConflict, ClusterDenied, ClusterUnavailable, LockLost
from eurekube_sync.model.kubernetes import LOCK_SECONDS, FailedPass, GoodPass, LockRecord
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import endpoint, piece, service, syncer
from tests.unit.worlds.clock import Clock
from tests.unit.worlds.fakes import FakeWorld
from tests.unit.worlds.lock import NAME, Store

FAILED = FailedPass(at=8.0, reason="Denied", result="cannot list Pods")
GOOD = GoodPass(at=7.0, holder="a", owner="shop", scope="all", result="in sync, 2 renewed")


@dataclass
class Machine:
    """A machine with a clock of its own: its start, its speed and its time of day."""

    real: Clock
    offset: float = 0
    rate: float = 1
    skew: float = 0
    stopped: bool = False

    def monotonic(self) -> float:
        return self.offset + self.rate * self.real.time

    def now(self) -> float:
        return self.real.time + self.skew

    def sleep(self, seconds: float) -> None:
        self.real.sleep(seconds)

    def stopping(self) -> bool:
        return self.stopped


class Pair:
    """Two copies on two machines, and the lock's object."""

    def __init__(self, *, skew: float = 0, offset: float = 0, rate: float = 1) -> None:
        self.real = Clock(0)
        self.store = Store()
        self.machines = (
            Machine(self.real),
            Machine(self.real, offset=offset, rate=rate, skew=skew),
        )
        self.a, self.b = (
            Lock(self.store, machine, NAME, name)
            for machine, name in zip(self.machines, "ab", strict=True)
        )

    def later(self, seconds: float) -> None:
        self.real.sleep(seconds)


def unavailable() -> None:
    raise ClusterUnavailable("no answer")


def test_the_first_one_takes_it_and_the_other_waits() -> None:
    """The first copy creates the object. The other one reports who has the lock."""
    pair = Pair()
    pair.a.attempt()
    pair.b.attempt()
    assert (pair.a.held, pair.b.held) == (True, False)
    assert (pair.a.standing(), pair.b.standing()) == (Held(), HeldBy("a"))


def test_a_holder_that_renews_keeps_it() -> None:
    """It does so for hours, with one write each time and no read."""
    pair = Pair()
    for _ in range(2000):
        pair.a.attempt()
        pair.b.attempt()
        assert pair.a.held
        assert not pair.b.held
        pair.later(EVERY)
    assert pair.store.record is not None
    assert pair.store.record.transitions == 0
    assert [call for call in pair.store.calls if call == "replace"] == ["replace"] * 1999


def test_a_killed_holder_is_replaced_when_its_time_is_over() -> None:
    """The takeover comes after the duration, and at most one look later."""
    pair = Pair()
    pair.a.attempt()
    waited = 0.0
    while not pair.b.held:
        pair.b.attempt()
        pair.later(EVERY)
        waited += EVERY
    assert LOCK_SECONDS <= waited <= LOCK_SECONDS + 2 * EVERY
    assert pair.store.record is not None
    assert (pair.store.record.holder, pair.store.record.transitions) == ("b", 1)


def test_a_holder_stops_before_another_one_may_begin() -> None:
    """The API fails for the holder alone, which stops seconds before the other copy takes over."""
    pair = Pair()
    pair.a.attempt()
    pair.b.attempt()
    pair.later(RENEW_WITHIN)
    assert not pair.a.held
    pair.b.attempt()
    assert not pair.b.held
    pair.later(LOCK_SECONDS - RENEW_WITHIN)
    pair.b.attempt()
    assert pair.b.held


def test_a_slow_read_makes_no_renewal_look_older() -> None:
    """The answer takes ten seconds. What it shows was so when the read was answered, or later."""
    pair = Pair()
    pair.a.attempt()
    pair.b.attempt()
    pair.later(LOCK_SECONDS - 1)
    pair.store.trouble = lambda: pair.later(10)
    pair.b.attempt()
    assert (pair.b.held, pair.b.standing()) == (False, HeldBy("a"))


def test_a_renewal_during_a_slow_read_is_as_new_as_the_answer() -> None:
    """The holder renews while the other copy waits for the answer. The next read is not compared
    with the question."""
    pair = Pair()
    pair.a.attempt()

    def renews_meanwhile() -> None:
        pair.store.trouble = lambda: None
        pair.later(RENEW_WITHIN - 1)
        pair.a.attempt()

    pair.store.trouble = renews_meanwhile
    pair.b.attempt()
    pair.later(RENEW_WITHIN - 1)
    pair.b.attempt()
    assert (pair.a.held, pair.b.held) == (True, False)
    assert pair.b.standing() == HeldBy("a")


@pytest.mark.parametrize("taken_from", ["nobody", "a"])
def test_a_slow_write_shortens_the_time_of_who_takes_the_lock(taken_from: str) -> None:
    """The others count from the write, which may have come at once."""
    pair = Pair()
    if taken_from == "a":
        pair.a.attempt()
        pair.b.attempt()
        pair.later(LOCK_SECONDS)
    pair.store.back = lambda: pair.later(RENEW_WITHIN - 2)
    pair.b.attempt()
    assert pair.b.held
    pair.later(2)
    assert not pair.b.held


def test_a_released_lock_is_taken_at_once() -> None:
    """A normal end leaves no copy waiting."""
    pair = Pair()
    pair.a.attempt()
    pair.b.attempt()
    pair.a.release()
    assert not pair.a.held
    pair.b.attempt()
    assert pair.b.held


def test_who_does_not_hold_it_releases_nothing() -> None:
    """A copy that lost the lock, or never had it, writes nothing when it ends."""
    pair = Pair()
    pair.b.release()
    assert pair.store.calls == []
    pair.a.attempt()
    pair.b.attempt()
    pair.b.release()
    assert pair.store.record is not None
    assert pair.store.record.holder == "a"


def test_a_release_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The lock expires by itself, and the process ends as usual."""
    pair = Pair()
    pair.a.attempt()
    pair.store.trouble = unavailable
    pair.a.release()
    assert not pair.a.held
    assert "which expires in 15 s: no answer" in caplog.text


def test_a_paused_holder_that_wakes_finds_another_holder() -> None:
    """It does not hold the lock when it wakes, and learns who does."""
    pair = Pair()
    pair.a.attempt()
    pair.b.attempt()
    pair.later(60)
    pair.b.attempt()
    assert not pair.a.held
    pair.a.attempt()
    assert pair.a.standing() == HeldBy("b")
    assert pair.store.record is not None
    assert pair.store.record.holder == "b"


def test_a_paused_holder_whom_nobody_replaced_goes_on() -> None:
    """Nobody wrote to the object meanwhile, so nobody else worked."""
    pair = Pair()
    pair.a.attempt()
    pair.later(3600)
    assert not pair.a.held
    pair.a.attempt()
    assert pair.a.held


@pytest.mark.parametrize("skew", [-86_400.0, 86_400.0])
def test_the_time_of_day_of_two_machines_may_differ(skew: float) -> None:
    """No decision depends on the times in the object."""
    pair = Pair(skew=skew, offset=12_345)
    pair.a.attempt()
    pair.b.attempt()
    pair.later(LOCK_SECONDS - 1)
    pair.b.attempt()
    assert not pair.b.held
    pair.later(1)
    pair.b.attempt()
    assert pair.b.held


def test_two_that_race_for_a_free_lock() -> None:
    """One copy wins. The other one reads again, and learns who holds the lock."""
    pair = Pair()
    pair.store.record = LockRecord(holder="", version="0")
    pair.b.attempt()  # so that b has read the object before
    pair.b.release()
    once = iter([None])

    def a_is_first() -> None:
        if pair.store.calls[-1] == "replace" and next(once, "over") is None:
            pair.a.attempt()

    pair.store.trouble = a_is_first
    pair.b.attempt()
    assert (pair.a.held, pair.b.held) == (True, False)
    assert pair.b.standing() == HeldBy("a")


def test_one_that_is_always_too_late_does_not_know_who_has_it() -> None:
    """It gives up after three lost races."""
    store = Store(record=LockRecord(holder="", version="0"))
    clock = Clock(0)
    lock = Lock(store, clock, NAME, "a")

    def changed() -> None:
        assert store.record is not None
        if store.calls[-1] == "replace":
            store.record = replace(store.record, version=store.record.version + "0")

    store.trouble = changed
    lock.attempt()
    standing = lock.standing()
    assert isinstance(standing, Unknown)
    why = "it changed 3 times while this process tried to take it"
    assert standing.message.endswith(f"instances are only renewed: {why}")


def test_a_renewal_whose_answer_was_lost_counts_when_it_is_read() -> None:
    """The object has another version then, and still this copy's name."""
    pair = Pair()
    pair.a.attempt()
    pair.store.back = unavailable
    pair.later(EVERY)
    pair.a.attempt()
    pair.store.back = lambda: None
    pair.later(EVERY)
    pair.a.attempt()
    pair.later(RENEW_WITHIN - 0.1)
    assert pair.a.held


def test_a_deleted_lock_is_made_again() -> None:
    """The holder creates it at its next renewal."""
    pair = Pair()
    pair.a.attempt()
    pair.store.record = None
    pair.a.attempt()
    assert pair.a.held
    assert pair.store.record is not None


def test_a_lock_that_cannot_be_read_is_unknown() -> None:
    """A new copy says so at once. A holder says so when it has to stop, and a waiting copy after
    the lock's duration."""
    pair = Pair()
    pair.a.attempt()
    pair.b.attempt()
    pair.store.trouble = unavailable
    late = Lock(pair.store, pair.machines[0], NAME, "c")
    late.attempt()
    assert late.standing() == Unknown(
        cause=Cause.UNAVAILABLE,
        message="the lock eurekube-sync/shop cannot be used, so instances are only renewed: no "
        "answer",
    )
    pair.later(RENEW_WITHIN - 1)
    pair.a.attempt()
    pair.b.attempt()
    assert (pair.a.standing(), pair.b.standing()) == (Held(), HeldBy("a"))
    pair.later(1)
    assert isinstance(pair.a.standing(), Unknown)
    pair.later(LOCK_SECONDS)
    pair.b.attempt()
    assert isinstance(pair.b.standing(), Unknown)
    assert not pair.b.held


def test_a_holder_that_nobody_renewed_is_unknown() -> None:
    """This is so after a pause, before it reads the object again."""
    pair = Pair()
    pair.a.attempt()
    pair.later(60)
    standing = pair.a.standing()
    assert isinstance(standing, Unknown)
    assert standing.message.endswith("this replica did not renew the lock in time")


def test_an_error_without_a_cause_is_no_answer_that_makes_sense() -> None:
    """Its exit code is that of a Kubernetes API that cannot be read."""
    pair = Pair()

    def refused() -> None:
        raise ClusterConflict("odd")

    pair.store.trouble = refused
    pair.a.attempt()
    standing = pair.a.standing()
    assert isinstance(standing, Unknown)
    assert standing.cause is Cause.UNUSABLE


def test_the_last_good_pass_is_written_with_the_next_renewal_and_stays() -> None:
    """It needs no call of its own. The renewals of the next holder leave it as it is."""
    pair = Pair()
    pair.a.attempt()
    pair.a.passed(GOOD)
    calls = len(pair.store.calls)
    pair.a.attempt()
    assert len(pair.store.calls) == calls + 1
    assert pair.store.record is not None
    assert pair.store.record.good == GOOD
    pair.a.attempt()
    pair.a.release()
    pair.b.attempt()
    assert pair.store.record.good == GOOD


def test_a_pass_that_ends_while_the_lock_is_renewed_is_written_by_the_next_renewal() -> None:
    """It must not be confused with the pass that was just written."""
    pair = Pair()
    pair.a.attempt()
    newer = replace(GOOD, at=8.0)
    pair.a.passed(GOOD)
    pair.store.back = lambda: pair.a.passed(newer)
    pair.a.attempt()
    assert pair.a.last_good == GOOD
    pair.store.back = lambda: None
    pair.a.attempt()
    assert pair.a.last_good == newer


def test_a_copy_that_waits_knows_the_last_good_pass() -> None:
    """It reads it from the object, and knows of none before."""
    pair = Pair()
    assert pair.b.last_good is None
    pair.a.attempt()
    pair.a.passed(GOOD)
    pair.a.attempt()
    pair.b.attempt()
    assert pair.b.last_good == GOOD


def test_a_release_records_the_last_good_pass() -> None:
    """One call does both."""
    pair = Pair()
    pair.a.attempt()
    pair.a.passed(GOOD)
    pair.a.release()
    assert pair.store.record is not None
    assert (pair.store.record.holder, pair.store.record.good) == ("", GOOD)


def test_a_failed_pass_is_written_with_the_next_renewal_until_a_good_one_ends_it() -> None:
    """Whoever looks at the installation reads there why no pass is good. It is no good pass."""
    pair = Pair()
    pair.a.attempt()
    pair.a.passed(GOOD)
    pair.a.passed(FAILED)
    pair.a.attempt()
    assert pair.store.record is not None
    assert (pair.store.record.good, pair.store.record.failed) == (GOOD, FAILED)
    pair.a.attempt()
    assert pair.store.record.failed == FAILED
    newer = replace(FAILED, at=9.0)
    pair.store.back = lambda: pair.a.passed(newer)
    pair.a.passed(FAILED)
    pair.a.attempt()
    pair.store.back = lambda: None
    pair.a.release()
    assert pair.store.record.failed == newer
    pair.b.attempt()
    pair.b.passed(FAILED)
    pair.b.passed(replace(GOOD, at=10.0))
    pair.b.attempt()
    assert pair.store.record.failed is None


# --- Waiting --------------------------------------------------------------------------------------


def test_a_copy_that_waits_says_once_who_has_it(caplog: pytest.LogCaptureFixture) -> None:
    """It also says that it took the lock."""
    caplog.set_level(logging.INFO)
    pair = Pair()
    pair.a.attempt()
    assert wait_for(pair.b, pair.machines[1]) == Held()
    assert [record.message for record in caplog.records] == [
        "waiting for the lock eurekube-sync/shop, held by a",
        "acquired the lock eurekube-sync/shop",
    ]
    assert pair.real.time <= LOCK_SECONDS + EVERY


def test_a_free_lock_is_taken_without_a_message(caplog: pytest.LogCaptureFixture) -> None:
    """The run of a CronJob would otherwise log a line each minute."""
    caplog.set_level(logging.INFO)
    pair = Pair()
    assert wait_for(pair.a, pair.machines[0]) == Held()
    assert not caplog.records


def test_patience_ends_while_the_holder_renews() -> None:
    """A run of single passes leaves the work to the holder."""
    pair = Pair()
    pair.a.attempt()
    pair.store.trouble = lambda: (
        pair.a.attempt() if pair.store.calls[-1] == "read" and pair.a.held else None
    )
    assert wait_for(pair.b, pair.machines[1], patience=PATIENCE) == HeldBy("a")
    assert PATIENCE <= pair.real.time <= PATIENCE + EVERY


def test_the_lock_of_a_killed_run_is_taken_within_the_patience() -> None:
    """The next Job of a CronJob then does the work, and not the one after it."""
    pair = Pair()
    pair.a.attempt()
    assert wait_for(pair.b, pair.machines[1], patience=PATIENCE) == Held()


def test_a_dead_holders_lock_is_taken_whatever_duration_it_names() -> None:
    """Somebody edited the object, or another program wrote it."""
    pair = Pair()
    pair.a.attempt()
    assert pair.store.record is not None
    for written in (3600.0, 1.0):
        pair.store.record = replace(
            pair.store.record, holder="a", duration=written, version=f"{written}"
        )
        begun = pair.real.time
        assert wait_for(pair.b, pair.machines[1], patience=PATIENCE) == Held()
        assert pair.real.time - begun >= LOCK_SECONDS


def test_a_dead_holders_lock_is_taken_though_something_else_in_the_object_changes() -> None:
    """Somebody changes a label, or a deployment tool changes an annotation."""
    pair = Pair()
    pair.a.attempt()

    def touch() -> None:
        assert pair.store.record is not None
        pair.store.record = replace(pair.store.record, version=f"{pair.real.time}")

    assert wait_for(pair.b, pair.machines[1], patience=PATIENCE, waits=touch) == Held()


def test_slow_answers_do_not_make_a_dead_holder_look_at_work() -> None:
    """A run gives up only after it saw the holder renew."""
    pair = Pair()
    pair.a.attempt()
    pair.store.trouble = lambda: pair.later(2.2) if pair.store.calls[-1] == "read" else None
    assert wait_for(pair.b, pair.machines[1], patience=PATIENCE) == Held()


def test_a_copy_that_waits_can_be_stopped() -> None:
    """SIGTERM stops it."""
    pair = Pair()
    pair.machines[1].stopped = True
    assert wait_for(pair.b, pair.machines[1]) is None


# --- Passes under the lock ------------------------------------------------------------------------


def under(pair: Pair) -> tuple[UnderLock, TimeLimit]:
    """Passes of copy a under the lock, and their time limit."""
    limit = TimeLimit(pair.machines[0])
    return UnderLock(pair.a, limit.only_while), limit


def test_a_pass_may_write_while_the_lock_is_held_and_not_a_moment_longer() -> None:
    """Both the time limit of every call and the deadline of every stage end with the lock."""
    pair = Pair()
    pair.a.attempt()
    passes, limit = under(pair)
    assert passes.before() is None
    deadline = Deadline(pair.machines[0], 120, limit)
    assert (limit.left() > 0, deadline.passed) == (True, False)
    pair.later(RENEW_WITHIN)
    assert (limit.left(), deadline.passed, deadline.cut_short) == (0.0, True, True)


def test_a_pass_that_lost_the_lock_says_who_has_it() -> None:
    """It says so before a pass and after one."""
    pair = Pair()
    pair.a.attempt()
    passes, _ = under(pair)
    assert passes.before() is None
    pair.b.attempt()
    pair.later(LOCK_SECONDS)
    pair.b.attempt()
    for check in (passes.after, passes.before):
        with pytest.raises(
            LockLost, match="lost the lock eurekube-sync/shop to b: it was not renewed in time"
        ):
            check()


def test_a_pass_ends_though_this_copy_has_the_lock_again_when_another_one_had_it_meanwhile() -> (
    None
):
    """Its plan is older than what the other copy did."""
    pair = Pair()
    pair.a.attempt()
    passes, limit = under(pair)
    assert passes.before() is None
    pair.b.attempt()
    pair.later(LOCK_SECONDS)
    pair.b.attempt()
    pair.b.release()
    pair.a.attempt()
    assert pair.a.held
    assert limit.left() == 0
    with pytest.raises(LockLost, match="lost the lock eurekube-sync/shop to another replica"):
        passes.after()


def test_a_pass_ends_also_where_the_answer_was_lost_with_which_this_copy_took_the_lock_again() -> (
    None
):
    """The next read of the object shows this copy's name, as after a renewal."""
    pair = Pair()
    pair.a.attempt()
    passes, limit = under(pair)
    assert passes.before() is None
    pair.b.attempt()
    pair.later(LOCK_SECONDS)
    pair.b.attempt()
    pair.b.release()
    pair.store.back = unavailable
    pair.a.attempt()
    pair.store.back = lambda: None
    pair.a.attempt()
    assert pair.a.held
    assert limit.left() == 0
    with pytest.raises(LockLost, match="lost the lock eurekube-sync/shop to another replica"):
        passes.after()


def test_passes_only_renew_while_nobody_knows_who_has_the_lock() -> None:
    """Leases must not expire because the Kubernetes API cannot be reached."""
    pair = Pair()
    passes, limit = under(pair)

    def denied() -> None:
        raise ClusterDenied("no Role")

    pair.store.trouble = denied
    for _ in range(3):
        why = passes.before()
        assert why is not None
        assert (why.cause, why.message.endswith("only renewed: no Role")) == (Cause.DENIED, True)
        assert limit.left() > 0
        passes.after()
        pair.later(30)
    pair.store.trouble = lambda: None
    assert passes.before() is None
    assert limit.left() > 0
    pair.later(RENEW_WITHIN)
    assert limit.left() == 0


class Shop:
    """An app of two pods between fakes, whose passes belong to copy a. Without the lock none of
    their calls begins."""

    def __init__(self) -> None:
        self.pair, self.world = Pair(), FakeWorld()
        self.pair.real = self.world.clock
        self.pair.a = Lock(self.pair.store, self.world.clock, NAME, "a")
        self.passes = UnderLock(self.pair.a, self.world.time_limit.only_while)
        self.world.cluster.apply(service(), syncer(), piece(endpoint(1), endpoint(2)))
        self.slow = ""
        """The call that loses the lock."""
        self.made: list[bool] = []
        """For each pass, whether it could do everything."""
        self.world.wire.then = self.called
        self.pair.a.attempt()
        self.one_pass()
        self.pair.a.attempt()
        self.made.clear()

    def one_pass(self) -> PassReport:
        return self.passes.one_pass(self.make)

    def make(self, renew_only: Unknown | None) -> PassReport:
        self.made.append(renew_only is None)
        self.world.registry.unreadable = None
        return reconcile(self.world.world, replace(self.world.settings, renew_only=renew_only))

    def called(self) -> None:
        """A slow call that loses the lock, and with it the Kubernetes API."""
        if self.world.wire.verbs()[-1] == self.slow:
            self.world.clock.sleep(RENEW_WITHIN)
            self.pair.store.trouble = unavailable
            self.world.cluster.uid = silent
            self.slow = ""
        self.world.registry.unreadable = silent if self.world.time_limit.left() == 0 else None


silent = Unknown(cause=Cause.UNAVAILABLE, message="no answer")


def test_after_a_pass_that_lost_its_time_with_the_lock_another_one_renews() -> None:
    """The Kubernetes API fails as a pass begins. That pass may not lose its renewals."""
    shop = Shop()
    shop.slow = "identity"
    report = shop.one_pass()
    assert shop.made == [True, False]
    assert report.outcomes.succeeded == 2
    assert "only renewed: no answer" in str(report.view)


def test_a_pass_that_renewed_before_it_lost_the_lock_is_not_followed_by_another() -> None:
    """Its leases were just renewed."""
    shop = Shop()
    shop.slow = "list_services"
    report = shop.one_pass()
    assert shop.made == [True]
    assert report.outcomes.succeeded == 2


# --- Random events --------------------------------------------------------------------------------

SECONDS = st.sampled_from([0.0, 1.0, 4.5, 5.5, 9.5, 10.5, 14.5, 15.5, 60.0])
EVENTS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["attempt", "attempt", "attempt", "release"]),
        SECONDS,  # before it
        st.just(0.0) | SECONDS,  # on the way there
        st.just(0.0) | SECONDS,  # on the way back
        st.sampled_from(["", "", "there", "back"]),  # where the call is lost
        st.booleans(),  # whether the other copy acts meanwhile
    ),
    min_size=3,
    max_size=30,
)


@settings(max_examples=4 * settings().max_examples)
@given(
    EVENTS,
    st.sampled_from([-1e6, 0.0, 1e6]),
    st.sampled_from([-1e6, 0.0, 1e6]),
    st.sampled_from([0.9, 1.0, 1.1]),
)
def test_two_copies_never_both_hold_the_lock(
    events: list[tuple[str, str, float, float, float, str, bool]],
    skew: float,
    offset: float,
    rate: float,
) -> None:
    """Calls may be slow or lost, processes may pause, and the speed of both clocks may differ by
    less than a tenth."""
    pair = Pair(skew=skew, offset=offset, rate=rate)
    locks = {"a": pair.a, "b": pair.b}

    def check() -> None:
        assert not (pair.a.held and pair.b.held)

    for who, what, before, there, back, lost, meanwhile in events:
        other = locks["b" if who == "a" else "a"]
        pair.later(before)
        check()

        def on_the_way(
            seconds: float,
            fails: bool,
            other: Lock = other,
            meanwhile: bool = meanwhile,
        ) -> None:
            trouble, ways = (pair.store.trouble, pair.store.back), (lambda: None, lambda: None)
            pair.store.trouble, pair.store.back = ways
            if meanwhile and not other._one_at_a_time.locked():
                other.attempt()
                check()
            pair.later(seconds)
            check()
            pair.store.trouble, pair.store.back = trouble
            if fails:
                unavailable()

        pair.store.trouble = lambda there=there, lost=lost: on_the_way(there, lost == "there")  # type: ignore[misc]
        pair.store.back = lambda back=back, lost=lost: on_the_way(back, lost == "back")  # type: ignore[misc]
        getattr(locks[who], what)()
        check()
