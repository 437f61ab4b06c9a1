"""What a pass writes to Kubernetes, and what it leaves for the next one."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from eurekube_sync.actions import Register
from eurekube_sync.apply import Deadline
from eurekube_sync.desired import Desired
from eurekube_sync.errors import ClusterError
from eurekube_sync.model import Complete, SyncerRef, SyncerStatus
from eurekube_sync.outcome import Outcomes
from eurekube_sync.plan import Plan
from eurekube_sync.settle import put_finalizers_on, settle
from eurekube_sync.syncer import ABANDON_ANNOTATION, CLEANUP_FINALIZER
from eurekube_sync.workers import InTurn

from .build import DENIED, REF, desired, endpoint, instance, observed, piece, service, stored, syncer
from .fakes import START, Clock, Cluster, FakeWorld, Wire


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
        return settle(
            self.cluster,
            self.clock,
            InTurn(),
            self.deadline,
            self.claims(),
            Complete(data=observed()),
            Plan(),
            None,
            Outcomes(by_key={}),
            cache_seconds=45,
        )

    def put_on(self) -> tuple[dict[SyncerRef, str], tuple[ClusterError, ...]]:
        adds = [Register(instance=instance(), syncer=REF, why="")]
        return put_finalizers_on(self.cluster, InTurn(), self.deadline, self.claims(), adds)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_no_finalizer_is_put_on_after_the_deadline(bench: Bench) -> None:
    """A pass that was asked to stop begins no write; without its finalizer the syncer must not register."""
    bench.cluster.apply(syncer())
    bench.clock.stopped = True
    barred, errors = bench.put_on()
    assert (set(barred), errors, bench.wire.calls) == ({REF}, (), [])


def test_no_finalizer_is_taken_off_after_the_deadline(bench: Bench) -> None:
    """What is left undone is said, and the next pass does it."""
    gone = {ABANDON_ANNOTATION: "true"}
    bench.cluster.apply(syncer(deleted=START, finalizers=(CLEANUP_FINALIZER,), annotations=gone))
    bench.clock.stopped = True
    written, errors = bench.settle()
    assert (written, len(errors), bench.wire.calls) == ({}, 1, [])


def test_a_pass_that_is_stopped_before_the_finalizers_says_that_it_was_cut_short() -> None:
    """The registrations that wait for a finalizer were not tried; they did not fail."""
    world = FakeWorld()
    world.cluster.apply(syncer(), service(), piece(endpoint()))
    world.clock.stopped = True
    assert world.run().cut_short
    assert world.wire.writes() == []


def test_a_pass_that_only_renews_says_that_it_was_cut_short() -> None:
    """Also where the cluster does not tell who it is."""
    world = FakeWorld()
    world.registry.put(stored(instance()))
    world.cluster.uid = DENIED
    assert not world.run().cut_short
    world.clock.stopped = True
    assert world.run().cut_short


def test_a_deadline_that_passes_after_the_last_call_cuts_nothing() -> None:
    """All was tried, so nothing was cut short."""
    world = FakeWorld()
    world.cluster.apply(syncer(), service(), piece(endpoint()))

    def stop_at(last: int) -> None:
        world.clock.stopped = len(world.wire.calls) == last

    world.run()
    world.run()
    calls = len(world.wire.calls)
    world.wire.then = lambda: stop_at(calls)
    assert not world.run().cut_short
    world.wire.then = lambda: stop_at(calls - 1)
    assert world.run().cut_short
