"""Makes the tables of docs/readers.md from what a run found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.report import machine

from .cases import CASES, CHANGES, DIFFERENCES, DOWN, READERS, longest
from .programs import version
from .reader import PAGE, PROCESSES
from .story import Found

BEGIN, END = "<!-- python -m tests.readers --record -->\n", "<!-- end -->\n"
"""Between these lines the page has what the last run wrote."""


def into_page(text: str) -> None:
    """Put the tables into the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def tables(found: Mapping[str, Found], rounds: int) -> str:
    """Return what each reader finds, and after how long it follows."""
    rows = [*_finds(), "", *_follows(found), "", f"{rounds} rounds on {machine()}."]
    return "\n".join(rows) + "\n"


def _finds() -> Iterator[str]:
    yield from _head(["reader", "version", *(case.name for case in CASES)])
    packages: dict[str, str] = {}
    for process in PROCESSES:
        packages |= process.readers
    for reader in READERS:
        cells = [reader, version(packages[reader])]
        for case in CASES:
            difference = DIFFERENCES.get((reader, case.name))
            cells.append("yes" if difference is None else difference.cell)
        yield _row(cells)


def _follows(found: Mapping[str, Found]) -> Iterator[str]:
    yield from _head(["reader", "refreshes", "at most", *CHANGES])
    for reader, intervals in READERS.items():
        refreshes = " + ".join(f"{seconds} s ({what})" for what, seconds in intervals.items())
        cells = [reader, refreshes, f"{longest(reader)} s"]
        for change in CHANGES:
            cell = f"{found[reader].after[change]:.0f} s"
            if change == DOWN and found[reader].shows_down:
                cell += ", shown as DOWN"
            cells.append(cell)
        yield _row(cells)


def _head(columns: Sequence[str]) -> Iterator[str]:
    yield _row(columns)
    yield f"|{'---|' * len(columns)}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
