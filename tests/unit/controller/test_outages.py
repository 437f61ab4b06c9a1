"""Outages: one message when an outage of a source begins and one when it ends, although its error
texts vary."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.controller.changes import Standing
from eurekube_sync.controller.diagnosis import problems_of_sources
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.errors import (
    ClusterConflict,
    ClusterDenied,
    ClusterUnavailable,
    RegistryDenied,
    RegistryUnavailable,
)
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.installations import OtherOwner
from tests.unit.controller.test_reconcile import article
from tests.unit.worlds.build import DENIED, NS, key, syncer

AWAY = Unknown(
    cause=Cause.UNAVAILABLE, message="GET http://e/eureka/apps failed: the connection was refused"
)
EUREKA = f"Eureka: {AWAY.message}"


class Watched:
    """Passes 30 s apart, and the messages of each: `+` for a beginning, `-` for an end."""

    def __init__(self) -> None:
        self.world = article()
        self.outages = Standing()
        self.passes()

    def passes(
        self, number: int = 1, change: Callable[[PassReport], PassReport] = lambda report: report
    ) -> list[str]:
        told = []
        for _ in range(number):
            self.world.later(30)
            report = change(self.world.run())
            news = self.outages.note(report, problems_of_sources(report))
            told += [f"+ {problem.sentence}" for problem in news.began]
            told += [f"- {end.sentence}" for end in news.ended]
        return told


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_passes_without_failures_give_no_message(watched: Watched) -> None:
    assert watched.passes(3) == []


def test_an_outage_of_eureka_is_reported_when_it_begins_and_ends(watched: Watched) -> None:
    """The first message has the words of the report. The last one says how long the outage
    lasted."""
    watched.world.registry.unreadable = AWAY
    assert watched.passes(5) == [f"+ {EUREKA}"]
    watched.world.registry.unreadable = None
    assert watched.passes(2) == []
    assert watched.passes(2) == ["- Eureka can be read again, after 2m30s"]


def test_another_text_is_the_same_outage_and_another_cause_is_a_new_one(watched: Watched) -> None:
    """A request id in the text changes with every call. A refused login is another cause, and the
    outage's time goes on."""
    for number in range(3):
        watched.world.registry.unreadable = replace(AWAY, message=f"away, request {number}")
        assert watched.passes() == (["+ Eureka: away, request 0"] if number == 0 else [])
    watched.world.registry.unreadable = Unknown(cause=Cause.DENIED, message="refuses this user")
    assert watched.passes() == ["+ Eureka: refuses this user"]
    watched.world.registry.unreadable = None
    assert watched.passes(3) == ["- Eureka can be read again, after 2m"]


def test_each_failing_list_is_reported_by_itself(watched: Watched) -> None:
    """While the whole API fails, nothing is known of one list. That outage ends when the list can
    be read."""
    watched.world.cluster.unknown["services", "*"] = DENIED
    assert watched.passes(2) == ["+ Services: 403: grant list"]
    watched.world.cluster.uid = Unknown(
        cause=Cause.UNAVAILABLE, message="the connection was refused"
    )
    assert watched.passes(2) == ["+ Kubernetes API: the connection was refused"]
    watched.world.cluster.uid = Complete(data="11111111-2222-3333-4444-555555555555")
    assert watched.passes(3) == ["- the Kubernetes API can be read again, after 1m"]
    watched.world.cluster.unknown.clear()
    assert watched.passes(3) == ["- Services: the reported trouble is over, after 3m30s"]


@pytest.mark.parametrize("other", ["other", "0ther"])
def test_a_list_that_fails_in_many_namespaces_is_one_line(watched: Watched, other: str) -> None:
    """The message names the first namespaces and counts the others. A namespace's name may begin
    with a digit."""
    watched.world.cluster.apply(syncer("other", namespace=other))
    for namespace in (NS, other):
        watched.world.cluster.unknown["slices", namespace] = DENIED
    (told,) = watched.passes()
    first, second = sorted((NS, other))
    assert (
        told == f"+ EndpointSlices of {first}: 403: grant list; likewise EndpointSlices of {second}"
    )


def test_writes_that_all_fail_are_an_outage(watched: Watched) -> None:
    """Eureka can be read, but takes no write. A pass without a write to make gives no message."""
    world = watched.world
    for number in (1, 2):
        world.registry.refuse[key(number)] = RegistryDenied(
            "PUT was answered 403: the CSRF protection refuses writes"
        )
    assert watched.passes(2) == [
        "+ no write to Eureka works: PUT was answered 403: the CSRF protection refuses writes "
        "(and 1 more)"
    ]
    world.registry.refuse.clear()
    world.renewals = RenewalLedger(period=1000, slack=0)
    assert watched.passes(3) == []
    world.renewals = RenewalLedger(period=0, slack=0)
    assert watched.passes(3) == ["- writes to Eureka work again, after 1m"]
    world.renewals = RenewalLedger(period=1000, slack=0)
    assert watched.passes() == []
    for number in (1, 2):
        world.registry.refuse[key(number)] = RegistryUnavailable("no answer in time")
    assert watched.passes() == [], "nothing was due"


def test_one_write_that_fails_is_no_outage(watched: Watched) -> None:
    """The report has the failure, and other writes work."""
    watched.world.registry.refuse[key(1)] = RegistryUnavailable("no answer in time")
    assert watched.passes(2) == []


@pytest.mark.parametrize(
    "error", [ClusterUnavailable("the API answered 503"), ClusterDenied("may not patch")]
)
def test_a_status_that_cannot_be_written_is_an_outage(watched: Watched, error: Exception) -> None:
    """Somebody who looks only at the cluster would not notice it."""

    def failing(report: PassReport) -> PassReport:
        return replace(report, cluster_errors=(error,))  # type: ignore[arg-type]

    assert watched.passes(2, failing) == [f"+ Kubernetes: {error}"]
    assert watched.passes(3) == ["- writes to Kubernetes work again, after 1m"]


def test_a_conflict_is_no_outage(watched: Watched) -> None:
    """Somebody else wrote the same object, and the next pass tries again."""
    conflict = ClusterConflict("changed 3 times")
    assert watched.passes(1, lambda report: replace(report, cluster_errors=(conflict,))) == []


def test_an_owner_clash_is_reported(watched: Watched) -> None:
    """It stops all work, pass after pass."""

    def clash(report: PassReport) -> PassReport:
        return replace(report, clashes=("another",), desired=None)

    (told,) = watched.passes(3, clash)
    assert told.startswith("+ owner clash: the cluster with UID another uses the same --owner")
    assert watched.passes(3) == ["- no owner clash any more, after 1m30s"]

    def doubled(report: PassReport) -> PassReport:
        other = OtherOwner(name="typo", ours="prod", registered=2, twice=0, stops_us=True)
        return replace(report, other_owners=(other,), desired=None)

    (told,) = watched.passes(3, doubled)
    assert told.startswith(
        "+ owner clash: 2 instances of this cluster are registered under owner typo"
    )
    assert watched.passes(3) == ["- no owner clash any more, after 1m30s"]
