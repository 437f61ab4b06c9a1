"""What a pass says about imports: rows, sentences, data and exit codes."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from eurekube_sync.brake.imports import IMPORT_HOLD_REASONS
from eurekube_sync.cli.output.passes import ChangesOnly, as_data, pass_table
from eurekube_sync.cli.output.report import sentences, summary
from eurekube_sync.cli.output.table import console_for, rows_of
from eurekube_sync.controller.changes import Ended, Standing
from eurekube_sync.controller.diagnosis import problems_of
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.controller.record import decisions
from eurekube_sync.model.errors import ClusterDenied
from eurekube_sync.model.imports import ImportRef
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.text import rfc_3339
from tests.report_schema import SCHEMA, faults
from tests.unit.worlds.build import DENIED, DOWN, service
from tests.unit.worlds.imports import REVIEW, SHOP, START, ImportWorld, dc, import_object

OTHERS = [dc(number, app="other") for number in range(100, 103)]


def rows(report: PassReport) -> list[str]:
    return [f"{row.sign} {row.app} {row.id}" for row in rows_of(report)]


def code(report: PassReport, **options: bool) -> ExitCode:
    given = {"fail_on_held": True, "detailed": True, **options}
    return of_report(report, **given)


def data(report: PassReport) -> dict[str, Any]:
    found = json.loads(json.dumps(as_data(report, code(report))))
    assert faults(found) == []
    return dict(found)


@pytest.fixture
def world() -> ImportWorld:
    """An import of three instances, which are written."""
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1), dc(2), dc(3))
    there.passes()
    return there


def test_a_dry_run_shows_each_endpoint_that_would_come() -> None:
    """With --detailed-exitcode that is a change."""
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1))
    report = there.run(dry_run=True)
    assert rows(report) == ["+ shop/review 10.20.0.1:8080"]
    assert summary(report) == "dry run: 1 endpoint to add, 0 to renew"
    assert code(report) is ExitCode.CHANGES_PENDING
    assert code(report, detailed=False) is ExitCode.OK
    told = data(report)["imports"]
    assert told["endpoints"] == [
        {
            "action": "add",
            "import": "shop/review",
            "endpoint": "10.20.0.1:8080",
            "why": "Eureka lists it UP",
        }
    ]
    assert told["imports"][0]["state"] == "importing"


def test_a_deletion_alone_is_a_change_of_a_dry_run(world: ImportWorld) -> None:
    world.imports.delete(REVIEW, world.clock.now())
    report = world.run(dry_run=True)
    assert code(report) is ExitCode.CHANGES_PENDING
    assert rows(report) == [f"- shop/review 10.20.0.{number}:8080" for number in (1, 2, 3)]
    assert data(report)["imports"]["imports"][0]["state"] == "deleting"


def test_the_summary_counts_what_came_and_went(world: ImportWorld) -> None:
    world.lists(*OTHERS, dc(1), dc(2), dc(4))
    report = world.run()
    assert rows(report) == ["- shop/review 10.20.0.3:8080", "+ shop/review 10.20.0.4:8080"]
    assert summary(report) == "1 endpoint added, 1 endpoint removed, 0 renewed"
    assert code(report) is ExitCode.OK
    assert sentences(report) == []
    assert summary(world.run()) == "in sync, 0 renewed"
    assert ("drop", "shop/review", "10.20.0.3:8080", "Eureka lists no instance there") in decisions(
        report
    )


def test_a_held_endpoint_is_told_with_the_command_that_releases_it(world: ImportWorld) -> None:
    world.lists(*OTHERS)
    report = world.run()
    assert report.imports is not None
    assert report.imports.held is not None
    plan_id = report.imports.held.plan_id
    assert rows(report) == [f"= shop/review 10.20.0.{number}:8080" for number in (1, 2, 3)]
    (told,) = [text for text in sentences(report) if "stay" in text]
    assert told.startswith("imports: 3 endpoints stay, because import shop/review would have no")
    assert told.endswith(f"eurekube-sync run --approve {plan_id}")
    assert code(report) is ExitCode.REMOVAL_HELD
    assert code(report, fail_on_held=False) is ExitCode.OK
    assert summary(report) == "nothing changed, 0 renewed; 3 held"
    assert data(report)["imports"]["planId"] == plan_id


def test_since_when_endpoints_are_held_is_told_from_the_second_pass_on() -> None:
    there = ImportWorld(import_object(), import_object("cart"))
    there.lists(*OTHERS, dc(1), dc(2, app="cart"))
    there.passes()
    there.lists(*OTHERS)
    began = there.clock.now()
    for since in (",", f" since {rfc_3339(began)}, "):
        (told,) = [text for text in sentences(there.run()) if "stay" in text]
        assert told.startswith(f"imports: 2 endpoints stay{since}")
        there.later(60)


def test_a_daemon_prints_what_changes_of_imports() -> None:
    """Endpoints that come or go, a problem when it begins and when it is over, and a hold once."""
    there = ImportWorld(import_object(), import_object("cart"))
    there.daemon = True
    cart = dc(9, app="cart")
    there.lists(*OTHERS, cart, dc(1), dc(2))
    changes = ChangesOnly(lambda: False)

    def told() -> str:
        there.later(30)
        shown = changes.table(there.run(), at_terminal=False)
        if shown is None:
            return ""
        stream = io.StringIO()
        console_for(stream).print(shown)
        return stream.getvalue()

    told()
    assert told() == ""
    there.lists(*OTHERS, cart, dc(1), dc(2), dc(3))
    assert "10.20.0.3:8080" in told()
    assert told() == ""
    there.imports.apply(import_object("none"))
    assert "! import shop/none: NoInstances: Eureka lists no instance of NONE" in told()
    assert told() == ""
    there.imports.delete(ImportRef(SHOP, "none"), there.clock.now())
    assert "over after 1m: import shop/none: NoInstances" in told() + told() + told() + told()
    there.lists(*OTHERS)
    held = told()
    assert "! imports: 4 endpoints stay, because " in held
    assert "= " in held
    assert told() == ""


def test_what_was_not_read_for_imports_is_not_over() -> None:
    there = ImportWorld(import_object(), import_object("none"))
    there.lists(*OTHERS, dc(1))
    standing = Standing()
    report = there.run()
    assert len(standing.note(report, problems_of(report)).began) == 1
    there.imports.delete(ImportRef(SHOP, "none"), there.clock.now())
    there.imports.unknown = DENIED
    for _ in range(5):
        report = there.run()
        assert standing.note(report, problems_of(report)).ended == ()
    there.imports.unknown = None
    ended: list[Ended] = []
    for _ in range(5):
        report = there.run()
        ended += standing.note(report, problems_of(report)).ended
    assert "import shop/none: NoInstances" in {end.problem.name for end in ended}


def test_a_young_registry_alone_is_no_failure() -> None:
    """It ends by itself. Beside another hold, that one counts."""
    there = ImportWorld(import_object(), import_object("single"))
    there.lists(*OTHERS, dc(1), dc(2), dc(9, app="single"))
    there.passes()
    young: dict[str, Any] = {"registered": START + 2000, "renewed": START + 2020}
    there.lists(dc(9, app="single", **young))
    report = there.run()
    assert code(report) is ExitCode.OK
    assert any(text.startswith("imports: 2 endpoints stay") for text in sentences(report))
    there.lists(dc(9, app="single", status=DOWN, **young))
    assert code(there.run()) is ExitCode.REMOVAL_HELD


def test_the_holds_are_those_of_the_schema() -> None:
    holds = SCHEMA["properties"]["imports"]["anyOf"][1]["properties"]["holds"]
    assert tuple(holds["items"]["properties"]["reason"]["enum"]) == IMPORT_HOLD_REASONS


def test_an_approval_that_released_endpoints_released_something(world: ImportWorld) -> None:
    world.lists(*OTHERS)
    report = world.run()
    assert report.imports is not None
    assert report.imports.held is not None
    done = world.run(approved=report.imports.held.plan_id)
    assert code(done) is ExitCode.OK
    assert world.endpoints() == []
    again = world.run(approved="0" * 12)
    assert code(again) is ExitCode.REMOVAL_HELD


def test_each_import_without_endpoints_is_told_with_its_reason() -> None:
    """One for which nothing may be added, one that is invalid, one of an app that nobody has."""
    there = ImportWorld(
        import_object(),
        import_object("invalid", aps="x"),
        import_object("none"),
    )
    there.cluster.apply(service("review", namespace=SHOP))
    there.lists(*OTHERS, dc(1))
    report = there.run()
    told = {problem.subject: problem.reason for problem in problems_of(report)}
    assert told == {
        "import shop/review": "ServiceExists",
        "import shop/invalid": "InvalidSpec",
        "import shop/none": "NoInstances",
    }
    assert code(report) is ExitCode.OK
    assert {each["state"] for each in data(report)["imports"]["imports"]} == {
        "importing",
        "notImported",
    }


def test_lists_that_failed_are_told_once() -> None:
    """And not for each import."""
    there = ImportWorld(import_object(), import_object("second"))
    there.cluster.unknown["services", "*"] = DENIED
    there.lists(*OTHERS)
    report = there.run()
    assert [problem.subject for problem in problems_of(report)] == ["Services"]
    assert code(report) is ExitCode.KUBERNETES_DENIED
    there.imports.unknown = Unknown(cause=Cause.CRD_MISSING, message="the CRD is not installed")
    report = there.run()
    assert code(report) is ExitCode.KUBERNETES_UNREAD
    assert data(report)["unknown"] == [
        {"source": "EurekaImports", "cause": "CRDMissing", "message": "the CRD is not installed"}
    ]


def test_a_failed_write_makes_the_pass_incomplete(world: ImportWorld) -> None:
    world.lists(*OTHERS, dc(1))
    world.imports.refuse["write_slice"] = ClusterDenied("403: grant patch endpointslices")
    report = world.run()
    assert code(report) is ExitCode.KUBERNETES_DENIED
    assert rows(report) == [f"! shop/review 10.20.0.{number}:8080" for number in (2, 3)]
    assert summary(report) == "nothing changed, 0 renewed; 1 failed"


def test_what_had_no_time_makes_the_pass_incomplete() -> None:
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1))

    def then() -> None:
        if there.wire.calls[-1] == "create_service review":
            there.clock.sleep(1000)

    there.wire.then = then
    report = there.run()
    assert code(report) is ExitCode.INCOMPLETE
    assert any("1 action was not tried" in text for text in sentences(report))


def test_another_cluster_is_told(world: ImportWorld) -> None:
    """The lists may be of another one, so nothing is written."""
    world.lists(*OTHERS, dc(1))

    def then() -> None:
        if world.wire.calls[-1] == "list_slices":
            world.cluster.uid = Unknown(cause=Cause.UNAVAILABLE, message="no answer")

    world.wire.then = then
    report = world.run()
    assert world.endpoints() == [f"10.20.0.{number}:8080" for number in (1, 2, 3)]
    assert code(report) is ExitCode.KUBERNETES_UNREAD
    (told,) = [problem for problem in problems_of(report) if problem.subject == "Kubernetes API"]
    assert told.text.endswith("no answer; no import is written")
    assert world.wire.writes() == []


def test_without_imports_a_report_says_nothing_of_them() -> None:
    there = ImportWorld(import_object(), networks=())
    there.lists(*OTHERS, dc(1))
    report = there.run()
    assert data(report)["imports"] is None
    assert "no EurekaSyncer in scope" in sentences(report)[0]


def test_a_table_has_a_row_for_each_endpoint(world: ImportWorld) -> None:
    world.lists(*OTHERS, dc(1), dc(2), dc(3), dc(4))
    assert pass_table(world.run(dry_run=True), at_terminal=True) is not None
