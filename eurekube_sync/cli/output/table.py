"""A pass as a table: what is dangerous first, with what becomes of each instance and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import IO, TypeAlias

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from eurekube_sync.cli.output.lines import Line
from eurekube_sync.cli.output.rows import Danger, Row, folded, in_order, rows_of, signs_in
from eurekube_sync.cli.output.summary import summary
from eurekube_sync.cli.output.syncers import Sentence
from eurekube_sync.cli.output.words import gathered, told
from eurekube_sync.controller.one_pass import PassReport

_MOST_REGISTRATIONS = 200
"""Shown at a terminal; everything else is always shown."""
_UNBOUNDED = 10_000
"""Columns of what is no terminal: one line a row and a sentence, for grep."""
_HEADINGS = ("APP", "", "INSTANCE", "STATUS", "SYNCER", "WHY")
_GAP = "  "
_ROOM = 36
"""Columns in which a reason is wrapped beside its row; with fewer it goes below."""
Cell: TypeAlias = tuple[str, str]
"""A text and its style."""


def console_for(stream: IO[str], *, width: int | None = None) -> Console:
    """A console that colours at a terminal only (NO_COLOR and FORCE_COLOR are honoured) and wraps nothing elsewhere."""
    console = Console(file=stream, highlight=False, soft_wrap=False, width=width)
    if not console.is_terminal and width is None:
        console.width = _UNBOUNDED
    return console


def pass_table(report: PassReport, notices: Sequence[str] = (), *, at_terminal: bool = False) -> RenderableType:
    """The diff, when there is one; then what to see to; then the summary line. At a terminal what is alike is gathered
    and a long list of registrations is cut; elsewhere each instance and each syncer has its line."""
    rows = rows_of(report)
    found = [*(Sentence(text=notice) for notice in notices), *(one for one in told(report) if not one.in_a_row)]
    shown = list(gathered(found)) if at_terminal else found
    shown_rows = list(folded(rows)) if at_terminal else rows
    registrations = sum(row.danger is Danger.REGISTER for row in shown_rows)
    more = max(0, registrations - _MOST_REGISTRATIONS) if at_terminal else 0
    parts: list[RenderableType] = [Diff(shown_rows[: len(shown_rows) - more])] if rows else []
    parts += [Text(f"... and {more} more to register; -o json has them all", style="dim")] if more else []
    parts += [_legend(rows)] if rows and at_terminal else []
    parts += [_noted(one.text) if one.note else marked(one.text) for one in shown]
    return Group(*parts, Text(summary(report), style="bold"))


def rows_table(rows: Iterable[Row], see_to: Iterable[str], last: str) -> RenderableType:
    """Rows by app, then a sentence for each thing to see to, then the one line."""
    ordered = in_order(rows)
    parts: list[RenderableType] = [Diff(ordered)] if ordered else []
    return Group(*parts, *(marked(sentence) for sentence in see_to), Text(last, style="bold"))


class Columns:
    """Rows of cells. The last cell is long: it stands beside the others if it fits or if there is much room, else below
    them. A row of fewer cells than the others is a heading, which is not aligned."""

    def __init__(self, rows: Sequence[tuple[Cell, ...]], headings: Sequence[str] = ()) -> None:
        self._rows = rows = [tuple((heading, "bold dim") for heading in headings), *rows] if headings else rows
        self._headings = headings
        self._number = max(map(len, rows))
        others = zip(*(row[:-1] for row in rows if len(row) == self._number), strict=True)
        self._widths = [max(cell_len(text) for text, _ in column) for column in others]
        self._taken = sum(self._widths) + len(_GAP) * len(self._widths)
        self._longest = max(cell_len(row[-1][0]) for row in rows)

    def beside(self, width: int) -> bool:
        """Whether the last cells stand beside the others in so many columns of the terminal."""
        return width - self._taken >= min(_ROOM, self._longest)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width - self._taken
        if self._headings and not self.beside(options.max_width):
            self._rows = [(*self._rows[0][:-1], ("", "")), *self._rows[1:]]
        if not console.is_terminal and room >= self._longest:  # with 10,000 rows rich takes longer than their pass
            yield Segment("".join(f"{self._plain(row)}\n" for row in self._rows))
            return
        for row in self._rows:
            long = Text(*row[-1])
            line = Text.assemble(*((text + " " * pad, style) for text, style, pad in self._padded(row)))
            if len(row) == self._number and cell_len(row[-1][0]) > room < _ROOM:
                line.rstrip()
                yield line
                yield Line(long.plain, indent=4)
                continue
            first, *rest = long.wrap(console, max(_ROOM, room)) or [Text("")]
            line.append_text(first)
            line.rstrip()
            yield line
            yield from (Text(" " * self._taken) + one for one in rest)

    def _plain(self, row: tuple[Cell, ...]) -> str:
        return "".join([*(text + " " * pad for text, _, pad in self._padded(row)), row[-1][0]]).rstrip()

    def _padded(self, row: tuple[Cell, ...]) -> Iterator[tuple[str, str, int]]:
        """Each cell but the last: its text, its style, and how many spaces follow it."""
        whole = len(row) == self._number
        for (text, style), width in zip(row[:-1], self._widths, strict=False):
            yield text, style, (max(0, width - cell_len(text)) if whole else 0) + len(_GAP)


class Diff:
    """The rows as columns where these fit, else under the app and syncer of each group: an id is never broken without
    need."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = Columns(list(_wide(self._rows)), _HEADINGS)
        yield wide if wide.beside(options.max_width) else Columns(list(_by_group(self._rows)))


def _wide(rows: Sequence[Row]) -> Iterator[tuple[Cell, ...]]:
    for app, group in groupby(rows, key=lambda row: row.app):
        for index, row in enumerate(group):
            yield ("" if index else app, "bold"), *_cells(row)[:-1], (row.syncer, "dim"), (row.why, "")


def _by_group(rows: Sequence[Row]) -> Iterator[tuple[Cell, ...]]:
    for (app, syncer), group in groupby(rows, key=lambda row: (row.app, row.syncer)):
        yield (app, "bold"), (syncer, "dim")
        yield from map(_cells, group)


def _cells(row: Row) -> tuple[Cell, ...]:
    return (row.sign, row.style), (row.id, ""), (row.status, row.style), (row.why, "")


def _legend(rows: Sequence[Row]) -> RenderableType:
    """The signs that occur."""
    return Text("   ".join(f"{sign} {meaning}" for sign, meaning in signs_in(rows)), style="dim")


def marked(sentence: str) -> RenderableType:
    """A sentence for a person to see to."""
    return Line(sentence, mark=Text("!", style="bold red"))


def _noted(sentence: str) -> RenderableType:
    """A sentence for a person to know."""
    return Line(sentence, mark=Text("i", style="cyan"))
