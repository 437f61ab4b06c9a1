"""Whether somebody renews the leases: `status` and `explain` say it by uncached reads, because a
list may be old."""

from __future__ import annotations

from collections import Counter

import pytest
from rich.console import Console

from eurekube_sync.cli.output.answers import overview_data, overview_table
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.explain.links import Mark, Outcome, Part
from eurekube_sync.explain.overview import Overview, code_of_overview, renewals_to_read
from eurekube_sync.model.errors import RegistryUnavailable
from eurekube_sync.model.eureka import LIST_LAG, InstanceStatus
from tests.unit.worlds.asked import Asked, broken, text
from tests.unit.worlds.build import NS, changed, endpoint, key, piece, service, syncer
from tests.unit.worlds.fakes import Registry


def _quiet(*numbers: int, seconds: float = 200) -> Asked:
    """A daemon renews all leases, and nothing changes, so Eureka's list is this old."""
    asked = Asked(*(endpoint(number) for number in numbers or (1,)))
    asked.fake.run()
    asked.fake.registry.cached_for(LIST_LAG)
    for _ in range(int(seconds // 30)):
        asked.fake.later(30)
        asked.fake.run()
    asked.fake.later(6)
    return asked


def test_an_old_list_does_not_say_that_nobody_renews() -> None:
    """The list shows renewals from minutes ago. An uncached read shows one from a moment ago."""
    asked = _quiet(1, 2)
    found = asked.overview()
    assert [(row.reason, row.explanation.outcome, row.explanation.up) for row in found.rows] == [
        ("InSync", Outcome.REGISTERED, 2)
    ]
    assert (found.renewals.oldest, found.renewals.read, found.renewals.unread) == (6, 1, 0)
    assert code_of_overview(found) == ExitCode.OK
    assert overview_data(found, ())["eureka"]["oldestRenewalSeconds"] == 6
    assert asked.why().outcome is Outcome.REGISTERED


def test_behind_an_old_list_a_silence_is_seen_all_the_same() -> None:
    """The daemon ended three minutes ago, and the list is older than that."""
    asked = _quiet(seconds=30)
    asked.fake.later(170)
    found = asked.overview()
    assert [(row.reason, row.explanation.outcome) for row in found.rows] == [
        ("NotRenewed", Outcome.PARTLY)
    ]
    assert (
        found.rows[0].why == "nobody renewed 10.0.0.1:8080 for 2 min; the first lease ends in 7 min"
    )
    assert code_of_overview(found) == ExitCode.NOT_REGISTERED


def test_one_silent_instance_is_seen_beside_others_that_are_renewed() -> None:
    """The program renews one instance of the syncer, and cannot renew the other. The one in
    question is read."""
    asked = Asked(endpoint(1), endpoint(2))
    asked.fake.run()
    asked.fake.later(200)
    asked.fake.registry.renew(key(2))
    (row,) = asked.overview().rows
    assert (row.reason, row.explanation.outcome) == ("NotRenewed", Outcome.PARTLY)
    assert row.why.startswith("nobody renewed 10.0.0.1:8080 for 3 min; ")


def test_a_renewal_that_cannot_be_read_is_unknown() -> None:
    """It is neither in sync nor silent, and the exit code is not 0."""
    asked = _quiet()
    asked.fake.registry.refuse_read[key(1)] = RegistryUnavailable("the proxy answered 502")
    found = asked.overview()
    assert [(row.reason, row.explanation.outcome) for row in found.rows] == [
        ("NotLookedAt", Outcome.UNKNOWN)
    ]
    assert (
        "whether its leases are renewed could not be looked at: the proxy answered 502"
        in found.rows[0].why
    )
    assert (found.renewals.oldest, found.renewals.read) == (None, 0)
    assert code_of_overview(found) == ExitCode.INCOMPLETE
    assert "lease ends" not in text(asked.why())


def test_a_young_list_needs_no_read_to_say_that_all_is_renewed() -> None:
    """A renewal that a list shows did happen. So a read that fails hides nothing."""
    asked = _quiet(seconds=0)
    asked.fake.registry.refuse_read[key(1)] = RegistryUnavailable("the proxy answered 502")
    found = asked.overview()
    assert [row.explanation.outcome for row in found.rows] == [Outcome.REGISTERED]
    assert code_of_overview(found) == ExitCode.OK
    assert asked.why().outcome is Outcome.REGISTERED
    assert "lease ends" not in text(asked.why()), "the list does not show when"


def test_another_server_may_answer_for_one_that_does_not() -> None:
    """The first one fails every read."""
    asked = _quiet()
    failing = Registry(asked.fake.wire, asked.fake.clock)
    failing.refuse_read[key(1)] = RegistryUnavailable("the proxy answered 502")
    asked.servers = {"http://eureka-0/eureka": failing, **asked.servers}
    found = asked.overview()
    assert [row.explanation.outcome for row in found.rows] == [Outcome.REGISTERED]
    assert found.renewals.read == 1


def test_an_instance_that_only_an_old_list_shows_is_gone() -> None:
    """Eureka lost it. The list, which callers get, still shows it."""
    asked = _quiet()
    del asked.fake.registry.held[key(1)]
    (row,) = asked.overview().rows
    assert (row.reason, row.explanation.up) == ("Expired", 0)


@pytest.mark.parametrize("ahead", [-400.0, 400.0])
def test_a_clock_that_differs_from_eurekas_says_nothing_of_renewals(ahead: float) -> None:
    """A person's machine may be minutes off. A silence is measured by Eureka's clock."""
    asked = Asked(endpoint(1))
    asked.fake.registry.seconds_ahead = ahead
    asked.fake.run()
    asked.fake.later(20)
    found = asked.overview()
    assert [row.reason for row in found.rows] == ["InSync"]
    assert found.renewals.oldest == pytest.approx(20)
    asked.fake.later(200)
    assert [row.reason for row in asked.overview().rows] == ["NotRenewed"]
    assert "for 3 min" in broken(asked.why()).text


def _many(number: int) -> Asked:
    """This many syncers with an instance each, which a daemon renews, and a list that is three
    minutes old."""
    asked = Asked()
    asked.remove()
    cluster = asked.fake.cluster
    cluster.services, cluster.slices = [], []
    for place in range(1, number + 1):
        name = f"app{place}"
        asked.add(syncer(name, created=asked.fake.clock.now(), selector={"app": name}))
        cluster.services.append(service(name, labels={"app": name}))
        cluster.slices.append(piece(endpoint(place), service=name))
    asked.fake.run()
    asked.fake.registry.cached_for(LIST_LAG)
    asked.fake.later(180)
    asked.fake.run()
    return asked


def test_a_sample_is_read_where_all_look_old() -> None:
    """The others are not said to be silent, and the head says that they were not read."""
    asked = _many(33)
    asked.fake.wire.calls.clear()
    found = asked.overview()
    reads = [call for call in asked.fake.wire.calls if call.startswith("read_instance")]
    assert len(reads) == 30
    assert {row.reason for row in found.rows} == {"InSync"}
    assert (found.renewals.read, found.renewals.unread) == (30, 3)
    assert "renewals of 3 more syncers: not read" in _shown(found)


def test_where_nothing_looks_old_one_instance_is_read() -> None:
    """It is the oldest of all, for the head."""
    asked = _many(3)
    asked.fake.registry.renew(key(1, app="app1"))
    asked.fake.registry.renew(key(3, app="app3"))
    asked.fake.later(5)
    asked.fake.registry.renew(key(1, app="app1"))
    asked.fake.registry.renew(key(3, app="app3"))
    asked.fake.registry.cached_for(LIST_LAG)
    found = asked.overview()
    assert (found.renewals.oldest, found.renewals.read) == (5, 1)


def test_the_sample_shows_a_silence() -> None:
    """Nobody renews anything any more. What was not read is not said to be silent, but the exit
    code is not 0."""
    asked = _many(33)
    asked.fake.later(170)
    found = asked.overview()
    assert Counter(row.reason for row in found.rows) == {"NotRenewed": 30, "InSync": 3}
    assert code_of_overview(found) == ExitCode.NOT_REGISTERED


def _shown(found: Overview) -> str:
    console = Console(width=120)
    with console.capture() as shown:
        console.print(overview_table(found, (), everything=True))
    return shown.get()


def test_right_after_a_run_an_old_list_does_not_lack_what_was_registered() -> None:
    """One pod is not ready, so the row comes from an explanation. It counts what the pass has read
    again."""
    asked = Asked(endpoint(1), endpoint(2, ready=False))
    asked.fake.registry.cached_for(30)
    asked.fake.run()
    (row,) = asked.overview().rows
    assert (row.reason, row.explanation.outcome, row.explanation.up, row.explanation.of) == (
        "NotReady",
        Outcome.PARTLY,
        1,
        2,
    )


def test_an_instance_that_eureka_cannot_renew_is_in_no_sample() -> None:
    """Its status is UNKNOWN, and it has a reason of its own."""
    asked = _quiet(1, 2)
    held = asked.fake.registry.held
    held[key(1)] = changed(held[key(1)], status=InstanceStatus.UNKNOWN)
    asked.fake.registry.cached_for(LIST_LAG)
    asked.fake.later(160)
    asked.fake.registry.renew(key(2))
    assert renewals_to_read(asked.look(f"{NS}/rating")) == {key(2)}


def test_a_lease_is_shown_only_as_it_was_read() -> None:
    """`explain` reads each instance."""
    asked = _quiet()
    (link,) = (link for link in asked.why().links if link.part is Part.EUREKA)
    assert (link.mark, link.details) == (
        Mark.OK,
        ("RATING 10.0.0.1:8080: UP, lease ends in 9 min",),
    )
