"""A daemon tells each problem once when it begins and once when it is over; all again when asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from eurekube_sync.cli.output.passes import ChangesOnly
from eurekube_sync.controller.changes import Standing
from eurekube_sync.controller.diagnosis import problems_of
from eurekube_sync.controller.one_pass import ImportReport, PassReport
from eurekube_sync.desired.imports import ImportView
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.sources import Cause, Complete, Listed, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.plan.imports import ImportPlan
from tests.unit.controller.test_reconcile import article
from tests.unit.worlds.build import DENIED, NS, endpoint, piece, service, syncer

AWAY = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
NOTHING: Listed[Any] = Listed(by_namespace={}, elsewhere=Complete(data=()))
BROKEN = SyncerRef(NS, "cart")


class Told:
    """Passes 30 s apart, and what each says of problems: `+` for a beginning, `-` for an end."""

    def __init__(self) -> None:
        self.world = article()
        self.standing = Standing()
        self.passes(1)

    def passes(
        self, number: int, change: Callable[[PassReport], PassReport] = lambda report: report
    ) -> list[str]:
        told = []
        for _ in range(number):
            self.world.later(30)
            report = change(self.world.run())
            news = self.standing.note(report, problems_of(report))
            told += [f"+ {problem.name}" for problem in news.began]
            told += [f"- {problem.name} {lasted:g}" for problem, lasted in news.ended]
        return told

    def breaks(self) -> None:
        """A syncer that selects no Service."""
        self.world.cluster.apply(syncer("cart", selector={"app": "cart"}))


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_problem_is_told_when_it_begins_and_when_it_is_over(told: Told) -> None:
    """It is over after some good passes, and lasted until the first of them."""
    told.breaks()
    assert told.passes(4) == [f"+ syncer {BROKEN}: NoMatchingService"]
    del told.world.cluster.syncers[BROKEN]
    assert told.passes(2) == []
    assert told.passes(3) == [f"- syncer {BROKEN}: NoMatchingService 120"]


def test_what_comes_back_soon_was_never_over(told: Told) -> None:
    """Otherwise a problem that comes and goes would be two lines in every minute."""
    told.breaks()
    assert told.passes(1) == [f"+ syncer {BROKEN}: NoMatchingService"]
    for _ in range(3):
        gone = told.world.cluster.syncers.pop(BROKEN)
        assert told.passes(2) == []
        told.world.cluster.syncers[BROKEN] = gone
        assert told.passes(1) == []


@pytest.mark.parametrize("unread", ["Eureka", "services", "identity"])
def test_what_was_not_read_is_not_over(told: Told, unread: str) -> None:
    """An error is never read as the absence of a problem."""
    told.breaks()
    told.passes(1)
    del told.world.cluster.syncers[BROKEN]
    if unread == "Eureka":
        told.world.registry.unreadable = AWAY
    elif unread == "services":
        told.world.cluster.unknown["services", "*"] = DENIED
    else:
        told.world.cluster.uid = AWAY
    assert not [line for line in told.passes(6) if line.startswith("-")]


def test_while_imports_read_nothing_no_problem_is_over(told: Told) -> None:
    """A pass may have been cut off from Eureka in its step of imports alone."""
    told.breaks()
    told.passes(1)
    del told.world.cluster.syncers[BROKEN]
    view = ImportView(imports=NOTHING, services=NOTHING, slices=NOTHING)
    unread = ImportReport(view=view, claims={}, plan=ImportPlan(), registry=AWAY)
    assert told.passes(6, lambda report: replace(report, imports=unread)) == []
    lines = told.passes(6)
    assert [line[0] for line in lines] == ["-"]


def test_keepalive_reads_no_cluster_and_ends_what_it_had(told: Told) -> None:
    """Its problems are those of Eureka alone."""
    told.breaks()
    told.passes(1)
    del told.world.cluster.syncers[BROKEN]
    lines = told.passes(6, lambda report: replace(report, view=None))
    assert [line[0] for line in lines] == ["-"]


def test_two_problems_of_one_syncer_with_one_reason_are_two(told: Told) -> None:
    """Each of its warnings is told."""
    told.breaks()
    twice = replace(next(iter(problems_of(told.world.run()))), subject="x")
    report = told.world.run()
    assert len(told.standing.note(report, [twice, twice]).began) == 2
    assert not told.standing.note(report, [twice, twice]).began


def test_another_plan_is_told_again(told: Told) -> None:
    """A person needs its id. The words alone are not told again."""
    report = with_hold(told)
    problem = next(iter(problems_of(report)))
    assert len(told.standing.note(report, [problem]).began) == 1
    assert not told.standing.note(report, [replace(problem, text="other words")]).began
    again = told.standing.note(report, [replace(problem, edition="another")])
    assert len(again.began) == 1
    assert not again.ended
    # A hold that alternates between two plans is not told in every pass.
    assert not told.standing.note(report, [problem]).began


def with_hold(told: Told) -> PassReport:
    """Two apps that would both go, and whose pods still exist."""
    cluster = told.world.cluster
    cluster.apply(syncer("pay", selector={"app": "pay"}))
    cluster.services.append(service("pay", labels={"app": "pay"}))
    cluster.slices.append(piece(endpoint(31), service="pay"))
    told.world.run()
    pods = [end.pod for piece in cluster.slices for end in piece.endpoints if end.pod]
    cluster.pods[NS] = tuple(pods)
    cluster.slices = [replace(piece, endpoints=()) for piece in cluster.slices]
    report = told.world.run()
    assert report.held is not None
    return report


def shown(changes: ChangesOnly, report: PassReport) -> str:
    """What the daemon prints of a pass."""
    table = changes.table(report, at_terminal=False)
    if table is None:
        return ""
    console = Console(width=1000)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_a_daemon_prints_changes_and_a_summary_an_hour() -> None:
    """The first pass is printed as a whole, and a quiet one not at all."""
    world, changes = article(), ChangesOnly(lambda: False)
    world.cluster.apply(syncer("cart", selector={"app": "cart"}))
    first = shown(changes, world.run())
    assert "NoMatchingService" in first
    world.later(30)
    assert "NoMatchingService" not in shown(changes, world.run())
    quiet = []
    for _ in range(125):
        world.later(30)
        quiet.append(shown(changes, world.run()))
    assert [text for text in quiet if text] == ["nothing changed, 2 renewed; 1 syncer not served\n"]
    world.cluster.slices = [piece(endpoint(1), endpoint(2), endpoint(3))]
    world.later(30)
    assert "10.0.0.3" in shown(changes, world.run())
    del world.cluster.syncers[BROKEN]
    ended = ""
    for _ in range(3):
        world.later(30)
        ended += shown(changes, world.run())
    assert f"over after 1h4m: syncer {BROKEN}: NoMatchingService" in ended


def test_a_daemon_prints_all_again_when_it_is_asked() -> None:
    """By SIGUSR1. The next pass is quiet again."""
    asked = [False]

    def wants_all() -> bool:
        before, asked[0] = asked[0], False
        return before

    world, changes = article(), ChangesOnly(wants_all)
    world.cluster.apply(syncer("cart", selector={"app": "cart"}))
    for _ in range(3):
        shown(changes, world.run())
        world.later(30)
    assert shown(changes, world.run()) == ""
    asked[0] = True
    assert "NoMatchingService" in shown(changes, world.run())
    assert shown(changes, world.run()) == ""


def test_a_new_hold_is_printed_with_its_rows_once() -> None:
    """A held row comes again in each pass."""
    told = Told()
    changes = ChangesOnly(lambda: False)
    shown(changes, told.world.run())
    first = shown(changes, with_hold(told))
    assert "held: 3 removals wait" in first
    assert "HELD: " in first
    told.world.later(30)
    assert shown(changes, told.world.run()) == ""
