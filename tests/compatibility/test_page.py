"""docs/compatibility.md is made from what the matrix found, and the matrix has every row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.rows import ROWS, Row
from tests.contract.otherwise import LINES as OTHERWISE
from tests.contract.otherwise import Otherwise
from tests.docs.programs import program
from tests.servers.eureka_lines import LINES

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "docs" / "compatibility.json"


def kept() -> dict[str, Any]:
    """What the last run of each row found."""
    rows: dict[str, Any] = json.loads(RESULT.read_text())["rows"]
    return rows


def test_the_page_is_made_from_the_result() -> None:
    """After a run, or a change of a table: `python -m docs.compatibility_page`."""
    page = program("compatibility_page")
    assert page.PAGE.read_text() == page.page()


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_every_test_of_every_row_passed(row: Row) -> None:
    """A row without a good result has to run: `tox -e compatibility -- ROW`."""
    parts = kept()[row.name]["parts"]
    assert parts.keys() == row.parts.keys() | ({"pair"} if row.pair else set())
    for numbers in parts.values():
        assert numbers["passed"] > 0
        assert numbers["failed"] == 0


def test_the_result_has_no_other_row() -> None:
    assert kept().keys() == ROWS.keys()


def test_every_difference_is_of_a_line() -> None:
    """And every line has its row in the table, also one without a difference."""
    assert OTHERWISE.keys() == LINES.keys()
    assert set(Otherwise) == {difference for found in OTHERWISE.values() for difference in found}


def test_the_readme_names_the_servers_of_the_matrix() -> None:
    readme = (ROOT / "README.md").read_text().splitlines()
    for server, text in program("compatibility_page").needs().items():
        assert f"| {server} | {text} |" in readme


def test_the_quick_rows_are_a_part_of_it() -> None:
    """The rows that are marked as quick are at most a third of all."""
    quick = [row for row in ROWS.values() if row.quick]
    assert 0 < len(quick) <= len(ROWS) / 3
