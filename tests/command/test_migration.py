"""The migration of docs/migration.md: each of its commands, and their output."""

from __future__ import annotations

import json
import re
import shlex
import time
from pathlib import Path

import yaml

from tests.command.program import SYNCERS, Program, rating

PAGE = (Path(__file__).parents[2] / "docs" / "migration.md").read_text(encoding="utf-8")
STEPS = re.findall(r"```sh\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


def patch(program: Program, line: str) -> None:
    """The body of the page's `kubectl patch`."""
    words = shlex.split(line)
    assert words[:6] == ["kubectl", "patch", "esync", "rating", "-n", "rating"]
    body = json.loads(words[words.index("-p") + 1])
    status, _ = program.playground.kubernetes.call("PATCH", f"{SYNCERS}/rating", body)
    assert status == 200


def test_the_page_shows_what_the_program_shows(tmp_path: Path) -> None:
    """There are nine instances in the data centre and 20 pods. Each step has a dry run, which the
    next pass carries out."""
    assert len(STEPS) == 4
    (manifest,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    with rating(tmp_path, pods=20) as program:
        program.playground.kubernetes.call(
            "PATCH", f"{SYNCERS}/rating", {"spec": yaml.safe_load(manifest)["spec"]}
        )
        for number in range(9):
            program.playground.register(
                "RATING", f"dc-{number}:rating:8080", f"192.0.2.{10 + number}", 8080
            )
        time.sleep(0.1)
        assert program.run().eureka["POST"] == 0
        for commands, shown in STEPS:
            change, dry_run = commands.strip().splitlines()
            patch(program, change)
            assert dry_run == "eurekube-sync run --dry-run"
            lines = program.run("--dry-run").out.splitlines()
            for line in shown.strip().splitlines():
                assert line in lines, lines
            assert program.run().code == 0
            time.sleep(0.1)
