"""The alert rules, checked by Prometheus' own tool: they are well formed, and each fires when it
should. And the dashboard, checked by Grafana's own types of one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.cli.monitoring import exposition
from eurekube_sync.cli.monitoring.metrics import Monitor
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.model.sources import Server
from tests.servers.toolchains import installed_by_pip, promtool
from tests.unit.worlds.build import endpoint, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

pytestmark = pytest.mark.servers
ROOT = Path(__file__).parents[2]
RULES = ROOT / "cronjob" / "monitoring" / "rules.yml"
DASHBOARD = ROOT / "cronjob" / "monitoring" / "dashboard.json"
GRAFANA = "grafana-foundation-sdk==1769699998!10.1.0"  # has no dependencies
READ_AND_WRITTEN = """
import json, sys
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
register_default_plugins()  # the types of panels and of their options
print(json.dumps(Dashboard.from_json(json.load(sys.stdin)), cls=JSONEncoder))
"""


def tool(*arguments: str | Path, stdin: str = "", folder: Path = ROOT) -> str:
    """The output of promtool, which must report no error."""
    done = subprocess.run(
        [promtool(), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_rules_are_well_made() -> None:
    """This covers names, templates and queries."""
    number = RULES.read_text().count("- alert: ")
    assert f"{number} rules found" in tool("check", "rules", RULES)


def test_each_alert_fires_when_it_should(tmp_path: Path) -> None:
    """It does not fire before that."""
    for file in (RULES, ROOT / "tests" / "cases" / "alerts.yml"):
        shutil.copy(file, tmp_path)
    assert "SUCCESS" in tool("test", "rules", "alerts.yml", folder=tmp_path)


def test_the_metrics_are_named_as_prometheus_advises() -> None:
    """promtool's lint covers every metric that a pass can show."""
    world = FakeWorld()
    world.cluster.apply(syncer(), service(), piece(endpoint(1)))
    monitor = Monitor(world.clock, "shop", "all", allowed=1)
    monitor.has_lock("", lambda: True)
    monitor.called(Server.EUREKA, "", "200")
    monitor.passed(world.run(), ExitCode.OK, "", 1)
    world.cluster.apply(piece())
    monitor.passed(world.run(), ExitCode.OK, "", 1)
    tool("check", "metrics", stdin=exposition.text(monitor).decode())


def read_by_grafana(dashboard: Any) -> Any:
    """Return a dashboard as the types of Grafana's foundation SDK read it and write it again."""
    folder = installed_by_pip("grafana-foundation-sdk", GRAFANA)
    done = subprocess.run(
        [sys.executable, "-c", READ_AND_WRITTEN],
        input=json.dumps(dashboard),
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(folder)},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def lost(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Return the fields of ours that are missing or differ in theirs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        missing = []
        for name, value in ours.items():
            missing += lost(value, theirs.get(name), f"{path}.{name}")
        return missing
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        missing = []
        for number, value in enumerate(ours):
            missing += lost(value, theirs[number], f"{path}[{number}]")
        return missing
    return [] if ours == theirs else [path]


def test_grafana_knows_each_field_of_the_dashboard() -> None:
    """What it does not know has no effect, and nobody would miss it. There is no package of Grafana
    itself to render the dashboard with."""
    dashboard = json.loads(DASHBOARD.read_text())
    assert lost(dashboard, read_by_grafana(dashboard)) == []


def test_a_field_that_grafana_does_not_know_is_found() -> None:
    """The test above can fail: for the panel, and deep in the options of its kind."""
    dashboard = json.loads(DASHBOARD.read_text())
    panel = dashboard["panels"][0]
    panel["descriptoin"] = panel.pop("description")
    panel["options"]["graphMood"] = "none"
    panel["targets"][0]["expression"] = "up"
    assert lost(dashboard, read_by_grafana(dashboard)) == [
        ".panels[0].options.graphMood",
        ".panels[0].targets[0].expression",
        ".panels[0].descriptoin",
    ]
