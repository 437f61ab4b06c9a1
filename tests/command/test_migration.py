"""The migration of docs/migration.md: each of its commands, and their output."""

from __future__ import annotations

import re
import time
from pathlib import Path

import yaml

from tests.command.program import SYNCERS, Program, rating

PAGE = (Path(__file__).parents[2] / "docs" / "migration.md").read_text(encoding="utf-8")
STEPS = re.findall(
    r"set\s+`limit: (\{share: \d+%\})`[^`]*```sh\n([^`]*)```\n\n```text\n(.*?)```", PAGE, re.DOTALL
)


def apply(program: Program, manifest: str) -> None:
    """Do what `kubectl apply` does with the page's syncer."""
    body = {"spec": yaml.safe_load(manifest)["spec"]}
    status, _ = program.playground.kubernetes.call("PATCH", f"{SYNCERS}/rating", body)
    assert status == 200


def test_the_page_shows_what_the_program_shows(tmp_path: Path) -> None:
    """There are nine instances in the data centre and 20 pods. Each step has a dry run before the
    change, which the next pass carries out after it."""
    assert len(STEPS) == 4
    (manifest,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    with rating(tmp_path, pods=20) as program:
        apply(program, manifest)
        for number in range(9):
            program.playground.register(
                "RATING", f"dc-{number}:rating:8080", f"192.0.2.{10 + number}", 8080
            )
        time.sleep(0.1)
        assert program.run().eureka["POST"] == 0
        for limit, dry_run, shown in STEPS:
            changed = manifest.replace("limit: 0", f"limit: {limit}")
            (program.folder / "rating.yaml").write_text(changed)
            assert dry_run == "eurekube-sync run --dry-run -f rating.yaml\n"
            lines = program.run("--dry-run", "-f", "rating.yaml").out.splitlines()
            for line in shown.strip().splitlines():
                assert line in lines, lines
            apply(program, changed)
            assert program.run().code == 0
            time.sleep(0.1)
