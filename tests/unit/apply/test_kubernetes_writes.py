"""Writes of a pass to Kubernetes: which it makes, and which it leaves to the next pass."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from eurekube_sync.apply.conditions import PassResult
from eurekube_sync.apply.kubernetes import put_finalizers_on, settle, unsettled
from eurekube_sync.apply.status import MOST_GOOD_NEWS
from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, CLEANUP_FINALIZER
from eurekube_sync.model.actions import Outcomes, Register
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.errors import ClusterDenied, ClusterError, ClusterUnavailable
from eurekube_sync.model.kubernetes import SyncerRef, SyncerStatus
from eurekube_sync.model.sources import Complete
from eurekube_sync.plan.value import Plan
from tests.in_process.workers import InTurn
from tests.unit.worlds.build import (
    DENIED,
    REF,
    desired,
    endpoint,
    instance,
    observed,
    piece,
    service,
    stored,
    syncer,
)
from tests.unit.worlds.fakes import START, Clock, Cluster, FakeWorld, Wire


@dataclass
class Bench:
    """A cluster with a Service of one pod, and a deadline."""

    clock: Clock = field(default_factory=Clock)
    wire: Wire = field(default_factory=Wire)

    def __post_init__(self) -> None:
        self.cluster = Cluster(self.wire, self.clock)
        self.cluster.apply(service(), piece(endpoint()))
        self.deadline = Deadline(self.clock, 120)

    def claims(self) -> Desired:
        return desired(self.cluster.syncers.values(), self.cluster.services, self.cluster.slices)

    def settle(self) -> tuple[dict[SyncerRef, SyncerStatus], tuple[ClusterError, ...]]:
        return self.settle_all(self.claims())

    def settle_all(
        self, claims: Desired
    ) -> tuple[dict[SyncerRef, SyncerStatus], tuple[ClusterError, ...]]:
        registry = Complete(data=observed(asked=self.clock.now()))
        result = PassResult(
            desired=claims,
            registry=registry,
            plan=Plan(),
            held=None,
            outcomes=Outcomes(by_key={}),
            now=self.clock.now(),
            unseen=(),
            cache=45,
            expires_after=600,
        )
        due, _ = unsettled(result, words=True)
        return settle(self.cluster, self.clock, InTurn(), self.deadline, due)

    def put_on(self) -> tuple[dict[SyncerRef, str], tuple[ClusterError, ...]]:
        adds = [Register(instance=instance(), syncer=REF, why="")]
        return put_finalizers_on(self.cluster, InTurn(), self.deadline, self.claims(), adds)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_no_finalizer_is_put_on_after_the_deadline(bench: Bench) -> None:
    """A pass that has to stop begins no write. Without its finalizer, the syncer must not
    register."""
    bench.cluster.apply(syncer())
    bench.clock.stopped = True
    barred, errors = bench.put_on()
    assert (set(barred), errors, bench.wire.calls) == ({REF}, (), [])


def test_no_finalizer_is_taken_off_after_the_deadline(bench: Bench) -> None:
    """The pass reports the missing write, and the next pass makes it."""
    gone = {ABANDON_ANNOTATION: "true"}
    bench.cluster.apply(syncer(deleted=START, finalizers=(CLEANUP_FINALIZER,), annotations=gone))
    bench.clock.stopped = True
    written, errors = bench.settle()
    assert (written, len(errors), bench.wire.calls) == ({}, 1, [])


def test_a_pass_that_is_stopped_before_the_finalizers_says_that_it_was_cut_short() -> None:
    """The registrations that wait for a finalizer were not tried. They did not fail."""
    world = FakeWorld()
    world.cluster.apply(syncer(), service(), piece(endpoint()))
    world.clock.stopped = True
    assert world.run().cut_short
    assert world.wire.writes() == []


def test_a_pass_that_only_renews_says_that_it_was_cut_short() -> None:
    """The cluster's UID cannot be read."""
    world = FakeWorld()
    world.registry.put(stored(instance()))
    world.cluster.uid = DENIED
    assert not world.run().cut_short
    world.clock.stopped = True
    assert world.run().cut_short


def test_a_deadline_that_passes_after_the_last_call_cuts_nothing() -> None:
    """All calls were made before the deadline."""
    world = FakeWorld()
    world.cluster.apply(syncer(), service(), piece(endpoint(1), endpoint(2)))

    def stop_after(renewals: int, calls: int) -> None:
        verbs = world.wire.verbs()
        world.clock.stopped = verbs.count("renew") >= renewals and len(verbs) >= calls

    world.run()
    world.run()
    calls = len(world.wire.calls)
    world.wire.then = lambda: stop_after(2, calls)
    assert not world.run().cut_short
    world.clock.stopped = False
    world.wire.then = lambda: stop_after(1, 1)
    assert world.run().cut_short


def test_a_finalizer_is_set_once_before_the_first_registration(bench: Bench) -> None:
    """An existing finalizer stays, without a call."""
    bench.cluster.apply(syncer())
    assert bench.put_on() == ({}, ())
    assert bench.cluster.syncers[REF].finalizers == (CLEANUP_FINALIZER,)
    bench.wire.calls.clear()
    assert bench.put_on() == ({}, ())
    assert bench.wire.calls == []


def test_a_syncer_whose_finalizer_failed_must_not_register(bench: Bench) -> None:
    """A deletion of that syncer would leave its instances behind."""
    bench.cluster.apply(syncer())
    bench.cluster.refuse["add_finalizer"] = ClusterDenied("403: grant patch")
    barred, errors = bench.put_on()
    assert barred == {
        REF: "not changed, because the finalizer of the syncer could not be set: 403: grant patch"
    }
    assert [str(error) for error in errors] == ["403: grant patch"]


def test_status_is_written_when_it_changed_and_events_when_it_flipped(bench: Bench) -> None:
    """The second pass writes nothing."""
    bench.cluster.apply(syncer())
    written, errors = bench.settle()
    assert (set(written), errors, bench.wire.verbs()) == (
        {REF},
        (),
        ["record_event", "write_status"],
    )
    bench.wire.calls.clear()
    bench.clock.sleep(100)
    assert bench.settle() == ({}, ())
    assert bench.wire.calls == []


@pytest.mark.parametrize("call", ["write_status", "record_event", "remove_finalizer"])
def test_a_write_that_fails_is_reported_and_the_others_go_on(bench: Bench, call: str) -> None:
    """A failed write for one syncer does not affect another."""
    gone = {ABANDON_ANNOTATION: "true"}
    bench.cluster.apply(
        syncer(),
        syncer("b"),
        syncer("c", deleted=1, finalizers=(CLEANUP_FINALIZER,), annotations=gone),
    )
    bench.cluster.refuse[call] = ClusterDenied("403")
    _, errors = bench.settle()
    assert len(errors) == {"remove_finalizer": 1, "write_status": 2, "record_event": 3}[call]
    assert bench.wire.verbs().count("write_status") == 2


@pytest.mark.parametrize(
    ("labels", "told"), [({}, MOST_GOOD_NEWS), ({"app": "other"}, MOST_GOOD_NEWS + 5)]
)
def test_of_much_good_news_a_pass_sends_few_events_and_of_bad_news_all(
    labels: dict[str, str], told: int
) -> None:
    """The API limits its clients, and a first pass may register thousands. The condition of each
    syncer is written."""
    world = FakeWorld()
    for number in range(MOST_GOOD_NEWS + 5):
        name = f"app-{number}"
        world.cluster.apply(
            syncer(name, selector={"app": name}), service(name, labels={"app": name} | labels)
        )
        world.cluster.apply(piece(endpoint(number), service=name))
    report = world.run()
    assert (len(report.statuses), report.cluster_errors) == (MOST_GOOD_NEWS + 5, ())
    assert [event.warning for event in world.cluster.events] == [bool(labels)] * told


def test_a_change_whose_event_was_lost_is_reported_again(bench: Bench) -> None:
    """The status is not written before the event, because it would hide the change from the next
    pass."""
    bench.cluster.apply(syncer())
    bench.cluster.refuse["record_event"] = ClusterUnavailable("no answer")
    written, errors = bench.settle()
    assert (written, len(errors), bench.wire.verbs()) == ({}, 1, ["record_event"])
    bench.cluster.refuse.clear()
    assert set(bench.settle()[0]) == {REF}
    assert len(bench.cluster.events) == 1


def test_a_deletion_waits_and_says_why_and_then_ends(bench: Bench) -> None:
    """It waits 45 s, although no instance is left. Other finalizers stay."""
    bench.cluster.apply(syncer(deleted=START, finalizers=(CLEANUP_FINALIZER, "other"), port="grpc"))
    written, _ = bench.settle()
    ready = written[REF].condition("Ready")
    assert ready is not None
    assert "stays until 45 s after the deletion" in ready.message
    bench.clock.sleep(45)
    bench.settle()
    assert bench.cluster.syncers[REF].finalizers == ("other",)


def test_a_deletion_without_our_finalizer_is_none_of_ours(bench: Bench) -> None:
    """There is no finalizer to remove."""
    bench.cluster.apply(syncer(deleted=START, finalizers=("other",)))
    bench.settle()
    assert "remove_finalizer" not in bench.wire.verbs()


def test_a_deletion_that_is_not_served_keeps_its_finalizer_unless_abandoned(bench: Bench) -> None:
    """The CRD's state is unknown here. A person's annotation removes the finalizer."""
    frozen = desired(
        [
            syncer(deleted=1, finalizers=(CLEANUP_FINALIZER,)),
            syncer(
                "left",
                deleted=1,
                finalizers=(CLEANUP_FINALIZER,),
                annotations={ABANDON_ANNOTATION: "true"},
            ),
        ],
        [service()],
        crd_live=DENIED,
    )
    bench.settle_all(frozen)
    assert [call for call in bench.wire.calls if "finalizer" in call] == [
        "remove_finalizer rating/left"
    ]
