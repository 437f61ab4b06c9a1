"""docs/versions.md: what a release promised is still so. `python -m tests.cases.release VERSION`
wrote it down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases.release import NAMES, names

RELEASES = sorted(NAMES.glob("*.yaml"))
EACH_RELEASE = pytest.mark.parametrize("release", RELEASES, ids=lambda file: file.stem)


def promised(release: Path) -> dict[str, Any]:
    """Return what was written down then."""
    content: dict[str, Any] = yaml.safe_load(release.read_text(encoding="utf-8"))
    return content


@EACH_RELEASE
def test_each_exit_code_has_its_name_and_number(release: Path) -> None:
    """A version may add codes."""
    assert promised(release)["exitCodes"].items() <= names()["exitCodes"].items()


@EACH_RELEASE
def test_each_reason_is_there(release: Path) -> None:
    """A version may add reasons."""
    assert set(promised(release)["reasons"]) <= set(names()["reasons"])


@EACH_RELEASE
def test_each_key_of_the_report_is_there(release: Path) -> None:
    """Or the report has another version. A version may add keys."""
    today = names()
    for version in [name for name in promised(release) if name.startswith("eurekube.io/report/")]:
        if version in today:
            assert set(promised(release)[version]) <= set(today[version])


@EACH_RELEASE
def test_each_instance_has_its_id(release: Path) -> None:
    """With another one it would be a second instance."""
    assert promised(release)["ids"] == names()["ids"]
