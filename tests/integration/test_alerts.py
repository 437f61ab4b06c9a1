"""The alert rules, checked by Prometheus' own tool: they are well formed, and each fires when it
should."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from eurekube_sync.cli.monitoring import exposition
from eurekube_sync.cli.monitoring.metrics import Monitor
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.model.sources import Server
from tests.servers.toolchains import promtool
from tests.unit.worlds.build import endpoint, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

pytestmark = pytest.mark.servers
ROOT = Path(__file__).parents[2]
RULES = ROOT / "cronjob" / "monitoring" / "rules.yml"


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
