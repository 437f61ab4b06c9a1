"""A source or a refusal that comes and goes: one line in the log, one status and its events for the
outage, and not one for each pass. Each test is an hour of a daemon, a pass each 30 s."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from eurekube_sync.apply.status import FIRST_PART_SECONDS, GOOD_PASSES, REWORDED_SECONDS, Recoveries
from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.controller.changes import Standing
from eurekube_sync.controller.diagnosis import problems_of_sources
from eurekube_sync.model.deadline import Schedule
from eurekube_sync.model.errors import ClusterConflict, ClusterUnavailable, RegistryUnavailable
from eurekube_sync.model.kubernetes import SyncerRef, SyncerStatus
from eurekube_sync.model.sources import Cause, Unknown
from tests.unit.controller.test_reconcile import add_app
from tests.unit.worlds.build import NS, endpoint, key, piece, syncer
from tests.unit.worlds.fakes import FakeWorld

APPS = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}
HOUR = 120
AWAY = Unknown(cause=Cause.UNAVAILABLE, message="the connection was refused")
Fault = Callable[[FakeWorld, bool], None]


class Daemon:
    """One process, and what it logs and writes."""

    def __init__(self) -> None:
        self.world = FakeWorld()
        self.world.sightings, self.world.recoveries = Sightings(), Recoveries()
        self.world.rewording = Schedule(REWORDED_SECONDS, first_part=FIRST_PART_SECONDS)
        self.outages = Standing()
        self.lines: list[str] = []
        self.calls: Counter[str] = Counter()
        for name, number in APPS.items():
            add_app(self.world, name, number)
        self.passes(2)
        self.lines.clear()
        self.calls.clear()

    def passes(self, number: int) -> None:
        for _ in range(number):
            self.world.later(30)
            report = self.world.run()
            news = self.outages.note(report, problems_of_sources(report))
            self.lines += [problem.sentence for problem in news.began]
            self.lines += [end.sentence for end in news.ended]
            self.calls.update(self.world.wire.verbs())

    def hour(self, fault: Fault) -> None:
        """Let every second pass fail."""
        for number in range(HOUR):
            fault(self.world, number % 2 == 0)
            self.passes(1)
        fault(self.world, False)

    @property
    def written(self) -> int:
        """How often it wrote to Kubernetes."""
        return self.calls["write_status"] + self.calls["record_event"]

    def status(self, name: str = "a") -> SyncerStatus:
        status = self.world.cluster.syncers[SyncerRef(NS, name)].status
        assert status is not None
        return status

    def reason(self, type_: str = "Synced", name: str = "a") -> str:
        condition = self.status(name).condition(type_)
        assert condition is not None
        return condition.reason


@pytest.fixture
def daemon() -> Daemon:
    return Daemon()


def eureka(world: FakeWorld, fails: bool) -> None:
    world.registry.unreadable = AWAY if fails else None


def slices(world: FakeWorld, fails: bool) -> None:
    world.cluster.unknown = {("slices", NS): AWAY} if fails else {}


def renewals(world: FakeWorld, fails: bool) -> None:
    away = RegistryUnavailable("no answer in time")
    world.registry.refuse = (
        {key(number, app=name): away for name, number in APPS.items()} if fails else {}
    )


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(eureka, "RegistryUnknown"), (slices, "SourceUnknown"), (renewals, "PartlyFailed")],
    ids=["Eureka's list", "a list of Kubernetes", "writes to Eureka"],
)
def test_what_fails_every_second_pass_is_one_outage(
    daemon: Daemon, fault: Fault, reason: str
) -> None:
    """The log has one line, and each of five syncers one status and one event."""
    daemon.hour(fault)
    assert len(daemon.lines) == 1
    assert daemon.reason() == reason
    assert daemon.written <= 2 * len(APPS)
    daemon.passes(GOOD_PASSES)
    assert len(daemon.lines) == 2
    assert daemon.reason() == "InSync"
    assert daemon.written <= 4 * len(APPS)


def test_an_outage_ends_with_the_third_good_pass(daemon: Daemon) -> None:
    """A failure in between begins the count anew."""
    eureka(daemon.world, True)
    daemon.passes(1)
    eureka(daemon.world, False)
    daemon.passes(GOOD_PASSES - 1)
    assert daemon.reason() == daemon.reason("Ready") == "RegistryUnknown"
    eureka(daemon.world, True)
    daemon.passes(1)
    eureka(daemon.world, False)
    daemon.passes(GOOD_PASSES - 1)
    assert daemon.reason() == "RegistryUnknown"
    daemon.passes(1)
    assert daemon.reason() == daemon.reason("Ready") == "InSync"
    assert daemon.lines == [f"Eureka: {AWAY.message}", "Eureka can be read again, after 2m"]


def test_numbers_are_of_the_last_pass(daemon: Daemon) -> None:
    """Only conditions wait. The instance that went DOWN meanwhile is counted at once."""
    eureka(daemon.world, True)
    daemon.passes(1)
    eureka(daemon.world, False)
    daemon.world.cluster.apply(piece(endpoint(1), endpoint(11), service="a"))
    daemon.passes(1)
    status = daemon.status()
    assert (status.ready, status.registered, status.up, daemon.reason()) == (
        "2/2",
        2,
        2,
        "RegistryUnknown",
    )


def test_a_person_who_changes_the_spec_sees_at_once_what_came_of_it(daemon: Daemon) -> None:
    """The condition is of the new generation."""
    eureka(daemon.world, True)
    daemon.passes(1)
    eureka(daemon.world, False)
    daemon.world.cluster.apply(syncer("a", selector={"app": "a"}, metadata={"team": "red"}))
    daemon.passes(1)
    assert (daemon.reason(), daemon.reason(name="b")) == ("InSync", "RegistryUnknown")


def test_another_cause_is_told_once_in_an_outage(daemon: Daemon) -> None:
    """The same two causes take turns for an hour."""
    denied = Unknown(cause=Cause.DENIED, message="Eureka refuses this user")
    for number in range(HOUR):
        daemon.world.registry.unreadable = denied if number % 2 else AWAY
        daemon.passes(1)
    assert len(daemon.lines) == 2


@pytest.mark.parametrize(
    ("error", "lines"),
    [(ClusterUnavailable("the API answered 503"), 1), (ClusterConflict("changed 3 times"), 0)],
)
def test_a_status_that_is_refused_every_second_pass_is_tried_again(
    daemon: Daemon, error: Exception, lines: int
) -> None:
    """Pods come and go, so each pass has a status to write. A conflict is no outage."""
    for number in range(HOUR):
        daemon.world.cluster.refuse = {"write_status": error} if number % 2 == 0 else {}
        daemon.world.cluster.apply(
            piece(endpoint(1), endpoint(11, ready=number % 4 < 2), service="a")
        )
        daemon.passes(1)
    assert len(daemon.lines) == lines
    assert daemon.written <= HOUR + 2


@pytest.mark.parametrize("gated", [False, True])
def test_the_wait_of_a_gate_counts_only_time_without_eureka(daemon: Daemon, gated: bool) -> None:
    """A good pass ends it, although the conditions still tell of the outage."""
    daemon.world.cluster.apply(syncer("a", selector={"app": "a"}, readinessGate=gated))
    eureka(daemon.world, True)
    daemon.passes(1)
    since = daemon.status().eureka_unknown_since
    assert since is not None
    eureka(daemon.world, False)
    daemon.passes(1)
    assert daemon.reason() == "RegistryUnknown"
    assert daemon.status().eureka_unknown_since == (None if gated else since)


def test_held_removals_stay_reported_while_eureka_cannot_be_read(daemon: Daemon) -> None:
    """A pass that could not look does not say that nothing is held."""
    for name in "abcde":
        daemon.world.cluster.apply(piece(endpoint(APPS[name], ready=False), service=name))
    daemon.passes(1)
    assert daemon.reason("RemovalHeld") == "TooManyRemovals"
    daemon.calls.clear()
    daemon.hour(eureka)
    assert daemon.reason("RemovalHeld") == "TooManyRemovals"
    told = Counter(e.reason for e in daemon.world.cluster.events if e.key.startswith("RemovalHeld"))
    assert told == {"TooManyRemovals": len(APPS)}


def test_a_summary_for_another_reason_is_of_the_last_pass(daemon: Daemon) -> None:
    """Removals were held while renewals failed. When the pods are back, Ready says so at once."""
    for name in APPS:
        daemon.world.cluster.apply(piece(endpoint(APPS[name], ready=False), service=name))
    renewals(daemon.world, True)
    daemon.passes(1)
    assert (daemon.reason(), daemon.reason("Ready")) == ("PartlyFailed", "TooManyRemovals")
    for name in APPS:
        daemon.world.cluster.apply(piece(endpoint(APPS[name]), service=name))
    renewals(daemon.world, False)
    daemon.passes(1)
    assert (daemon.reason(), daemon.reason("Ready")) == ("PartlyFailed", "InSync")


def test_a_process_without_memory_believes_its_pass() -> None:
    """A single pass cannot know whether the failure comes back, and a person may wait for its
    status."""
    world = FakeWorld()
    add_app(world, "a", 1)
    eureka(world, True)
    world.run()
    eureka(world, False)
    world.run()
    status = world.cluster.syncers[SyncerRef(NS, "a")].status
    condition = status.condition("Synced") if status else None
    assert condition is not None
    assert condition.reason == "InSync"
