"""Whether GitHub would take `.github`, and whether its workflows are safe."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.servers.go_builds import actionlint
from tests.workflows.workflow import FOLDER, ROOT, jobs, tox_environments, workflow

WORKFLOWS = sorted(FOLDER.glob("*.yml"))
SCRIPTS = Path(sys.executable).parent
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.dependabot": [ROOT / ".github" / "dependabot.yml"],
    "vendor.github-issue-config": [ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml"],
    "vendor.github-issue-forms": sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")),
}
_ACTION = re.compile(r"uses: (\S+)(.*)")
_PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}")


def checked(*command: str | Path) -> None:
    """Run a checker; AssertionError with what it found. It finds shellcheck on its PATH."""
    variables = {**os.environ, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_actionlint_finds_no_fault() -> None:
    """Names, types and expressions, and shellcheck in each shell step."""
    checked(actionlint(), "-no-color", *WORKFLOWS)


def test_zizmor_finds_no_weakness() -> None:
    """Rights, pins, credentials that stay, and expressions in a shell."""
    checked(SCRIPTS / "zizmor", "--offline", "--no-progress", "--persona=pedantic", ".github")


@pytest.mark.parametrize("schema", SCHEMAS)
def test_each_file_follows_its_schema(schema: str) -> None:
    """GitHub ignores a form with a fault without a word."""
    assert SCHEMAS[schema]
    checked(SCRIPTS / "check-jsonschema", "--builtin-schema", schema, *SCHEMAS[schema])


def test_each_action_is_pinned_and_says_its_version() -> None:
    """A tag can be moved, a commit cannot. One action has one commit everywhere."""
    pins: dict[str, set[str]] = {}
    for file in WORKFLOWS:
        for action, comment in _ACTION.findall(file.read_text()):
            if action.startswith("./"):
                continue
            assert _PINNED.fullmatch(action), action
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action + comment
            name, _, commit = action.partition("@")
            pins.setdefault(name, set()).add(commit + comment)
    assert len(pins) > 8
    assert {name: found for name, found in pins.items() if len(found) > 1} == {}


def test_ci_runs_each_environment_that_tox_runs() -> None:
    """In a job of its own, and no other."""
    ours = [job.matrix["environment"] for job in jobs("ci.yml") if job.matrix]
    assert ours == tox_environments()


def test_each_supported_python_is_set_up() -> None:
    """Those of the classifiers; the first of them runs tox."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = [
        classifier.rpartition(" ")[2]
        for classifier in project["classifiers"]
        if re.search(r"Python :: 3\.\d+$", classifier)
    ]
    (setup,) = [
        step
        for step in workflow("ci.yml")["jobs"]["tox"]["steps"]
        if step.get("uses", "").startswith("actions/setup-python@")
    ]
    assert setup["with"]["python-version"].split() == supported[::-1]
