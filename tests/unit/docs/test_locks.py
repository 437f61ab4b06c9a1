"""The lock of the lowest packages holds what pyproject.toml promises."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROMISED = [
    Requirement(text)
    for text in PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["test"]
]


@pytest.mark.parametrize("promised", PROMISED, ids=str)
def test_each_lower_bound_is_tested(promised: Requirement) -> None:
    """`tox -e unit-lowest` installs this lock. `tox -e lock` writes it after a change of a
    bound."""
    lines = (ROOT / "lowest.lock").read_text(encoding="utf-8").splitlines()
    (locked,) = [line for line in lines if line.startswith(f"{promised.name}==")]
    (pinned,) = Requirement(locked).specifier
    (bound,) = [specifier for specifier in promised.specifier if specifier.operator == ">="]
    assert Version(pinned.version) == Version(bound.version)
