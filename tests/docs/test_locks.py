"""The locks, compared with what else names versions of packages."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROMISED = [
    Requirement(text)
    for text in PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["test"]
]


@pytest.mark.parametrize("promised", PROMISED, ids=str)
def test_each_lower_bound_is_tested(promised: Requirement) -> None:
    """`tox -e coverage` installs this lock. `tox -e lock` writes it after a change of a
    bound."""
    lines = (ROOT / "lowest.lock").read_text(encoding="utf-8").splitlines()
    (locked,) = [line for line in lines if line.startswith(f"{promised.name}==")]
    (pinned,) = Requirement(locked).specifier
    (bound,) = [specifier for specifier in promised.specifier if specifier.operator == ">="]
    assert Version(pinned.version) == Version(bound.version)


def test_pre_commit_has_the_locked_packages() -> None:
    """So that a commit is checked as `tox -e lint` checks it."""
    locked = (ROOT / "constraints.lock").read_text(encoding="utf-8").splitlines()
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    needed = []
    for repository in config["repos"]:
        for hook in repository["hooks"]:
            needed += hook["additional_dependencies"]
    assert needed
    assert [package for package in needed if package not in locked] == []
