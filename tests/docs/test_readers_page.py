"""docs/readers.md says of each reader what tests/readers holds it to."""

from __future__ import annotations

from pathlib import Path

from tests.readers.cases import CASES, CHANGES, DIFFERENCES, READERS, longest

PAGE = (Path(__file__).parents[2] / "docs" / "readers.md").read_text()


def tables() -> list[list[list[str]]]:
    """The cells of each table, by row."""
    found: list[list[list[str]]] = []
    before = ""
    for line in PAGE.splitlines():
        if line.startswith("|"):
            if not before.startswith("|"):
                found.append([])
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        before = line
    return found


def test_the_first_table_is_that_of_the_cases() -> None:
    """A yes, or the difference."""
    head, _, *rows = tables()[0]
    assert head[2:] == [case.name for case in CASES]
    assert [row[0] for row in rows] == list(READERS)
    for row in rows:
        for case, cell in zip(CASES, row[2:], strict=True):
            difference = DIFFERENCES.get((row[0], case.name))
            assert cell == ("yes" if difference is None else difference.cell)


def test_the_second_table_has_a_time_for_each_reader_and_change() -> None:
    """Whole seconds, after the longest possible time."""
    head, _, *rows = tables()[1]
    assert tuple(head[3:]) == CHANGES
    assert [row[0] for row in rows] == list(READERS)
    for row in rows:
        assert row[2] == f"{longest(row[0])} s"
        for cell in row[3:]:
            assert cell.partition(" s")[0].isdigit(), row
