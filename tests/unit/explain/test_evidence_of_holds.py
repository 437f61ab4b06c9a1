"""The evidence that a person needs for a decision about held removals: the same on each screen."""

from __future__ import annotations

import pytest
from rich.console import Console, RenderableType

from eurekube_sync.cli.monitoring.metrics import HELD_PODS, Monitor
from eurekube_sync.cli.monitoring.page import Page
from eurekube_sync.cli.output.answers import explanations_table, overview_data, overview_table
from eurekube_sync.cli.output.passes import as_data, pass_table
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.model.kubernetes import (
    PodDetail,
    PodReadiness,
    PodRef,
    ServiceSelector,
    SyncerRef,
)
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import rfc_3339
from tests.unit.worlds.asked import Asked
from tests.unit.worlds.build import NS, endpoint, piece, service, syncer

APPS = ("rating", "cart", "geo", "pay")
RUN = "still run and are Ready"


def shop() -> Asked:
    """Four apps with two registered pods each: 10.0.0.1 and 2, 11 and 12, and so on."""
    asked = Asked(one=syncer())
    asked.fake.cluster.slices = []
    for number, app in enumerate(APPS):
        if app != "rating":
            labels = {"app": app}
            asked.add(syncer(app, created=asked.fake.clock.now(), selector=labels))
            asked.fake.cluster.services.append(service(app, labels=labels))
        ends = (endpoint(10 * number + 1), endpoint(10 * number + 2))
        asked.fake.cluster.slices.append(piece(*ends, service=app))
    asked.fake.run()
    return asked


def select_nothing(asked: Asked, *, running: bool = True) -> None:
    """The Services select a label that no pod has. The pods go on as before, or are not ready."""
    cluster = asked.fake.cluster
    refs, details = [], []
    for number, app in enumerate(APPS):
        for place in (1, 2):
            name = f"rating-{10 * number + place}"
            uid = f"uid-of-{name}"
            refs.append(PodRef(name, uid))
            cluster.readiness[uid] = PodReadiness(
                namespace=NS, name=name, uid=uid, ready=running, registered=False, running=running
            )
            details.append(PodDetail(name=name, uid=uid, labels={"app": app}))
    cluster.pods[NS] = tuple(refs)
    cluster.slices = [replace(piece, endpoints=()) for piece in cluster.slices]
    selectors = []
    for app in APPS:
        selector = {"app": f"{app}s"}
        selectors.append(ServiceSelector(name=app, labels={"app": app}, selector=selector))
    asked.details.pods = Complete(data=tuple(details))
    asked.details.selectors = Complete(data=tuple(selectors))


def shown(table: RenderableType) -> str:
    """The text of a report, without its line breaks."""
    console = Console(width=500)
    with console.capture() as capture:
        console.print(table)
    return " ".join(capture.get().split())


def test_each_screen_shows_how_many_of_the_pods_still_run() -> None:
    """The number is the same, and so is the advice. Each shows both ways out."""
    asked = shop()
    select_nothing(asked)
    first = asked.fake.run()
    asked.fake.later(30)
    report = asked.fake.run()
    asked.fake.later(90)
    assert report.held is not None
    approve = f"eurekube-sync run --approve {report.held.plan_id}"
    all_run = f"8 of 8 pods {RUN}: this looks like a wrong selector; do not approve"
    two_run = f"2 of 2 pods {RUN}: this looks like a wrong selector; do not approve"

    table = shown(pass_table(report))
    assert "held: 8 removals wait, because " in shown(pass_table(first))
    assert f"held: 8 removals wait since {rfc_3339(first.at)}, because " in table
    for words in (all_run, approve, f"eurekube-sync explain {NS}/cart"):
        assert words in table

    status = report.all_statuses[SyncerRef(NS, "geo")]
    held = status.condition("RemovalHeld")
    assert held is not None
    for words in (two_run, approve, f"eurekube-sync explain {NS}/geo"):
        assert words in held.message

    found = asked.overview()
    table = shown(overview_table(found, (), everything=False))
    assert table.count(all_run) == 1
    assert table.count(two_run) == 4
    assert approve in table

    explained = asked.why(f"{NS}/geo")
    table = shown(explanations_table([explained], ()))
    for words in (two_run, "Service geo selects app=geos: no pod has it; similar: app=geo"):
        assert words in table
    assert "held for 2 min" in table
    assert explained.fix == f"kubectl edit service geo -n {NS}"
    assert explained.otherwise == f"if all held removals are right, {approve}"

    monitor = Monitor(asked.fake.clock, "prod", "all", allowed=60, keeps_reports=True)
    monitor.passed(report, ExitCode.REMOVAL_HELD, "8 held", 1.0)
    assert all_run in Page(monitor).first("").body.decode()
    pods = monitor.values()[HELD_PODS]
    assert pods == {("ready",): 8, ("notReady",): 0, ("gone",): 0, ("unknown",): 0}


def test_kubectl_status_and_eureka_show_the_same_number() -> None:
    """Held instances stay, so they count: 2 of 2 UP, although the Service lists no endpoint."""
    asked = shop()
    select_nothing(asked)
    report = asked.fake.run()
    (row,) = [row for row in asked.overview().rows if row.syncer.name == "geo"]
    up = [key for key in asked.fake.registry.held if key.app == "GEO"]
    assert report.all_statuses[SyncerRef(NS, "geo")].ready == "2/2"
    assert (row.explanation.up, row.explanation.of, len(up)) == (2, 2, 2)
    assert asked.why(f"{NS}/geo").sentence.startswith("Still registered: 2 of 2 UP as GEO; ")


def test_data_has_the_numbers_and_the_advice() -> None:
    """A program need not read a sentence."""
    asked = shop()
    select_nothing(asked)
    report = asked.fake.run()
    assert report.held is not None
    hold = as_data(report, ExitCode.REMOVAL_HELD)["hold"]
    assert hold == overview_data(asked.overview(), ())["hold"]
    assert hold["planId"] == report.held.plan_id
    assert (hold["removals"], hold["advice"]) == (8, "WrongSelector")
    assert hold["pods"] == {"ready": 8, "notReady": 0, "gone": 0, "unknown": 0}
    asked.fake.registry.held.clear()
    assert as_data(asked.fake.run(dry_run=True), ExitCode.REMOVAL_HELD)["hold"] is None


def test_pods_that_are_not_ready_may_be_those_of_a_lost_node() -> None:
    """So nobody is told that an approval is harmless, nor that the selector is wrong."""
    asked = shop()
    select_nothing(asked, running=False)
    asked.fake.run()
    explained = asked.why(f"{NS}/geo")
    assert f"0 of 2 pods {RUN}: see why before you approve" in shown(
        explanations_table([explained], ())
    )
    assert explained.fix.startswith("if all held removals are right, ")
    assert explained.otherwise == f"kubectl edit service geo -n {NS}"


@pytest.mark.parametrize("unread", ["pods", "readiness"])
def test_without_the_right_to_list_pods_nothing_is_said_of_them(unread: str) -> None:
    """An unknown pod is neither gone nor running."""
    asked = shop()
    select_nothing(asked)
    asked.fake.cluster.unknown[unread, NS] = Unknown(cause=Cause.DENIED, message="403: grant list")
    report = asked.fake.run()
    hold = as_data(report, ExitCode.REMOVAL_HELD)["hold"]
    if unread == "pods":
        assert hold["pods"]["ready"] == 8  # the list of whole pods works in this world
        return
    assert (hold["pods"]["unknown"], hold["advice"]) == (8, "Unknown")
    assert "it is unknown whether the pods still run" in shown(pass_table(report))


def test_what_awaits_confirmation_has_no_evidence() -> None:
    """It waits for the next pass, not for a person, so no more pods are read for it."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.fake.cluster.slices = [piece()]
    report = asked.fake.run()
    assert report.held is not None
    assert report.held.evidence() is None
    assert "list_readiness" not in asked.fake.wire.verbs()
    assert as_data(report, ExitCode.REMOVAL_HELD)["hold"]["pods"] is None
