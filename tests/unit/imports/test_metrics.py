"""The metrics of imports: absent where imports are off or unknown."""

from __future__ import annotations

from eurekube_sync.cli.monitoring.metrics import (
    ENDPOINTS,
    HELD_ENDPOINTS,
    IMPORTS,
    UNKNOWN,
    Metric,
    measured,
)
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.sources import Cause, Unknown
from tests.unit.worlds.build import DENIED
from tests.unit.worlds.imports import ImportWorld, dc, import_object

OTHERS = [dc(number, app="other") for number in range(100, 103)]


def values(report: PassReport, metric: Metric) -> dict[tuple[str, ...], float]:
    gauges, _ = measured(report, ExitCode.OK, now=5.0)
    return dict(gauges.get(metric, {}))


def test_endpoints_are_counted_after_the_pass() -> None:
    """Written or not, and by what holds their removal."""
    there = ImportWorld(import_object(), import_object("invalid", aps="x"))
    there.lists(*OTHERS, dc(1), dc(2))
    report = there.run()
    assert values(report, ENDPOINTS) == {("written",): 2, ("missing",): 0}
    assert values(report, IMPORTS)["Ready", "True"] == 1
    assert values(report, IMPORTS)["Ready", "False"] == 1
    assert set(values(report, HELD_ENDPOINTS).values()) == {0}
    there.lists(dc(3))
    report = there.run(dry_run=True)
    assert values(report, ENDPOINTS) == {("written",): 0, ("missing",): 1}
    there.lists()
    report = there.run()
    assert values(report, HELD_ENDPOINTS)["RegistryYoung",] == 2
    assert values(report, ENDPOINTS) == {("written",): 2, ("missing",): 0}


def test_what_is_unknown_or_off_has_no_value() -> None:
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1))
    there.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    report = there.run()
    there.registry.unreadable = None
    there.networks = ()
    for each in (report, there.run()):
        for metric in (ENDPOINTS, IMPORTS, HELD_ENDPOINTS):
            assert values(each, metric) == {}


def test_lists_of_imports_that_failed_are_unknown_sources() -> None:
    there = ImportWorld(import_object())
    there.imports.unknown = DENIED
    assert values(there.run(), UNKNOWN)["Kubernetes",] == 1
