"""The state of all syncers: broken ones first, each with its reason, and nothing that was not
read."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.cli.output.answers import summary
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.explain.links import Outcome
from eurekube_sync.explain.overview import (
    Overview,
    chosen,
    code_of_overview,
    in_need,
    parse_condition,
)
from eurekube_sync.model.kubernetes import ServiceSelector
from eurekube_sync.model.sources import Cause, Complete, Unknown
from tests.unit.worlds.asked import Asked
from tests.unit.worlds.build import NS, endpoint, syncer
from tests.unit.worlds.fakes import FakeWorld

DENIED = Unknown(cause=Cause.DENIED, message="403: you may not")


def of(asked: Asked) -> Overview:
    """The result of `status`."""
    return asked.overview()


def _three() -> Asked:
    asked = Asked(endpoint(1))
    now = asked.fake.clock.now()
    asked.fake.run()
    asked.add(syncer("absent", created=now, selector={"app": "nothing"}))
    asked.add(syncer("of-others", created=now, syncerClass="internal"))
    return asked


def test_the_broken_come_first() -> None:
    """Each row has its reason, and the exit code is theirs."""
    found = of(_three())
    assert [(row.syncer.name, row.explanation.outcome, row.reason) for row in found.rows] == [
        ("absent", Outcome.NOT_REGISTERED, "NoMatchingService"),
        ("of-others", Outcome.NOT_REGISTERED, "NoInstallation"),
        ("rating", Outcome.REGISTERED, "InSync"),
    ]
    assert code_of_overview(found) == ExitCode.NOT_REGISTERED


def test_all_in_order_is_zero() -> None:
    """The summary has the number of instances and the oldest renewal."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    found = of(asked)
    assert [
        (row.explanation.up, row.explanation.of, row.explanation.outcome) for row in found.rows
    ] == [(1, 1, Outcome.REGISTERED)]
    assert code_of_overview(found) == ExitCode.OK
    assert in_need(asked.look(f"{NS}/rating")) == frozenset()


def test_an_expired_instance_is_broken_whatever_its_status_says() -> None:
    """The condition does not show since when."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.fake.registry.held.clear()
    (row,) = of(asked).rows
    assert (row.reason, row.explanation.outcome, row.since) == (
        "Expired",
        Outcome.NOT_REGISTERED,
        None,
    )


def test_an_instance_that_nobody_renews_is_not_in_sync_although_it_is_up() -> None:
    """Its leases are about to end. `explain` says the same."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.fake.later(200)
    found = of(asked)
    assert [(row.reason, row.explanation.outcome) for row in found.rows] == [
        ("NotRenewed", Outcome.PARTLY)
    ]
    assert code_of_overview(found) == ExitCode.NOT_REGISTERED


def test_without_eureka_nothing_is_said_to_be_in_sync() -> None:
    """The status says in sync, but nobody could check it."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.fake.registry.unreadable = DENIED
    found = of(asked)
    assert [(row.explanation.outcome, row.explanation.up) for row in found.rows] == [
        (Outcome.UNKNOWN, None)
    ]
    assert code_of_overview(found) == ExitCode.EUREKA_DENIED


def test_a_namespace_that_may_not_be_listed_is_no_empty_one() -> None:
    """It has no rows, and an exit code of its own."""
    asked = Asked(endpoint(1))
    asked.fake.cluster.unknown[("syncers", "*")] = DENIED
    found = of(asked)
    assert not found.rows
    assert [failed.source for failed in found.unread] == [DENIED]
    assert summary(found) == "syncers unknown; instances unknown"
    assert code_of_overview(found) == ExitCode.KUBERNETES_DENIED


def test_one_denied_namespace_among_several_is_no_empty_one() -> None:
    """The listed syncers are in sync, but not all were listed."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.in_scope(namespaces=frozenset({NS, "bills"}))
    asked.fake.cluster.unknown[("syncers", "bills")] = DENIED
    found = of(asked)
    assert [row.explanation.outcome for row in found.rows] == [Outcome.REGISTERED]
    assert summary(found) == "1 syncer: 1 in sync; other syncers unknown; 1 instance UP"
    assert code_of_overview(found) == ExitCode.KUBERNETES_DENIED


def test_the_status_of_a_syncer_in_no_scope_is_not_believed_against_eureka() -> None:
    """Its installation ended: the instances have expired. While Eureka cannot be read, the status
    is all there is."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.in_scope(syncer_class="internal")
    assert [row.reason for row in of(asked).rows] == ["InSync"]
    asked.fake.registry.held.clear()
    assert [row.reason for row in of(asked).rows] == ["NoInstallation"]
    asked.fake.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    assert [row.reason for row in of(asked).rows] == ["InSync"]


def test_rows_are_chosen_by_app_and_condition() -> None:
    """A condition is given as a type, a type with a value, or a reason."""
    found = of(_three())

    def names(**by: str) -> list[str]:
        return [row.syncer.name for row in chosen(found, **by).rows]

    assert names(app="rating") == ["of-others", "rating"]
    assert names(condition="Ready") == ["rating"]
    assert names(condition="Ready=False") == ["absent"]
    assert names(condition="NoInstallation") == ["of-others"]


@pytest.mark.parametrize(
    "spec",
    [
        {"port": "nope"},
        {"selector": {"service": "rating"}, "mode": "pods"},
        {"appName": "Rating", "limit": "x"},
    ],
)
def test_a_broken_syncer_is_shown_for_its_app(spec: dict[str, Any]) -> None:
    """It has no instances, so only its spec names its app. The exit code is not 0."""
    asked = Asked(endpoint(1), one=syncer(**spec))
    found = chosen(of(asked), app="rating")
    assert code_of_overview(found) == ExitCode.NOT_REGISTERED
    assert [row.syncer.name for row in found.rows] == ["rating"]
    assert summary(chosen(of(asked), app="typo")).startswith(
        "no EurekaSyncer has that app or condition;"
    )


def test_services_that_no_syncer_selects_are_listed() -> None:
    """The selectors of all syncers count, served or not. The namespace is the one that was
    given."""
    asked = Asked(endpoint(1))
    asked.details.selectors = Complete(
        data=(
            ServiceSelector(name="rating", labels={"app": "rating"}),
            ServiceSelector(name="other"),
            ServiceSelector(name="review", controller="EurekaImport"),  # no syncer registers it
        )
    )
    assert of(asked).unselected == ()
    asked.in_scope(namespaces=frozenset({NS}))
    assert of(asked).unselected == (f"{NS}/other",)


def test_an_owner_of_nobody_shows_no_heartbeat() -> None:
    """The answer says so, and no lock is read."""
    asked = Asked(endpoint(1))
    asked.owner = ""
    assert FakeWorld().owner not in of(asked).last_pass.text
    assert "give --owner" in of(asked).last_pass.text


@pytest.mark.parametrize("text", ["RemovalHeld", "Ready=False", "Synced=Unknown", "NotReady"])
def test_a_condition_or_reason_is_read(text: str) -> None:
    """Each form of the help."""
    assert parse_condition(f" {text} ") == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "RemovalHolds",
            "there is no condition or reason 'RemovalHolds'; did you mean \"RemovalHeld\"",
        ),
        ("Held", "there is no condition or reason 'Held'"),
        ("Ready=no", "write Ready=True, Ready=False or Ready=Unknown"),
        ("NotReady=True", "there is no condition or reason 'NotReady'"),
    ],
)
def test_an_unknown_condition_is_refused(text: str, message: str) -> None:
    """A script with a typo would otherwise stay green."""
    with pytest.raises(ValueError, match=message):
        parse_condition(text)
