"""The cost of a start: a shell asks the program at each TAB, and people ask it for help."""

from __future__ import annotations

import subprocess
import sys

STAGES = ("desired", "observe", "plan", "brake", "apply")


def test_help_and_completion_import_no_stage_of_a_pass() -> None:
    """That would double the time of a start."""
    code = "import sys, eurekube_sync.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = done.stdout.split()
    assert "eurekube_sync.cli.main" in imported
    assert [
        name
        for name in imported
        if name.startswith(tuple(f"eurekube_sync.{stage}" for stage in STAGES))
    ] == []
