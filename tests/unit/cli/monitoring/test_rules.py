"""Alert rules and dashboard: each query parses, and its metrics and labels exist."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from eurekube_sync.cli.monitoring.metrics import METRICS, Metric

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "cronjob" / "monitoring"
RULES = yaml.safe_load((FOLDER / "rules.yml").read_text(encoding="utf-8"))
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
FROM_PROMETHEUS = {"job", "instance", "pod", "le"}


def series(metric: Metric) -> set[str]:
    """Return the names by which a query may use the metric."""
    return {
        f"{metric.name}{part}"
        for part in (("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",))
    }


LABELS = {name: set(one.labels) for one in METRICS for name in series(one)}
QUERIES = {
    **{rule["alert"]: rule["expr"] for group in RULES["groups"] for rule in group["rules"]},
    **{
        f"{panel['title']} {one['refId']}": one["expr"]
        for panel in DASHBOARD["panels"]
        for one in panel["targets"]
    },
}


def selectors(node: Any) -> Iterator[tuple[str, set[str]]]:
    """Yield the name and the labels of each metric in a parsed query."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node.name or "", {matcher.name for matcher in node.matchers.matchers}
    for name in ("expr", "lhs", "rhs", "selector", "vector_selector"):
        if (inner := getattr(node, name, None)) is not None:
            yield from selectors(inner)
    for inner in getattr(node, "args", ()) or ():
        yield from selectors(inner)


@pytest.mark.parametrize("name", QUERIES)
def test_each_query_names_what_exists(name: str) -> None:
    """After a rename of a metric, an alert with the old name would never fire."""
    found = list(selectors(promql_parser.parse(QUERIES[name])))
    assert found, QUERIES[name]
    for metric, labels in found:
        assert metric in LABELS, metric
        assert labels <= LABELS[metric] | FROM_PROMETHEUS, (metric, labels)


def test_a_query_of_something_else_is_found_out() -> None:
    """The test above can fail, even for a metric deep in a query."""
    query = 'histogram_quantile(0.9, sum by (le) (rate(eurekube_sync_gone_bucket{x="1"}[5m]))) / max(up)'
    assert list(selectors(promql_parser.parse(query))) == [
        ("eurekube_sync_gone_bucket", {"x"}),
        ("up", set()),
    ]


def test_each_metric_is_on_the_dashboard_or_in_a_rule() -> None:
    """An unused metric is not worth its cost. The dashboard's list of jobs uses the version."""
    used = {
        metric for query in QUERIES.values() for metric, _ in selectors(promql_parser.parse(query))
    }
    assert {one.name for one in METRICS if used.isdisjoint(series(one))} == {
        "eurekube_sync_build_info"
    }
    assert "eurekube_sync_build_info" in json.dumps(DASHBOARD["templating"])


def test_no_panel_hides_another() -> None:
    """Grafana moves panels that overlap, and the layout is lost."""
    taken: dict[tuple[int, int], str] = {}
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            assert x < 24, panel["title"]
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids) >= 15


def test_each_alert_has_a_test() -> None:
    """promtool runs tests/cases/alerts.yml."""
    cases = yaml.safe_load((ROOT / "tests" / "cases" / "alerts.yml").read_text(encoding="utf-8"))[
        "tests"
    ]
    fires = {
        one["alertname"] for case in cases for one in case["alert_rule_test"] if one["exp_alerts"]
    }
    assert fires == {rule["alert"] for group in RULES["groups"] for rule in group["rules"]}


def test_the_page_is_what_the_program_has() -> None:
    """After a change of the table, run `python docs/metrics_page.py`."""
    found = importlib.util.spec_from_file_location(
        "metrics_page", ROOT / "docs" / "metrics_page.py"
    )
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page()
