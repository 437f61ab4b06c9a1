"""A pass as a table: what is dangerous first, with what becomes of each instance and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from statistics import median_low
from typing import IO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from eurekube_sync.cli.output.lines import Line
from eurekube_sync.cli.output.rows import Danger, Row, folded, in_order, rows_of, signs_in
from eurekube_sync.cli.output.sentence import Sentence
from eurekube_sync.cli.output.summary import summary
from eurekube_sync.cli.output.words import gathered, told
from eurekube_sync.controller.one_pass import PassReport

_MOST_REGISTRATIONS = 200
"""Shown at a terminal; everything else is always shown."""
_UNBOUNDED = 10_000
"""Columns of what is no terminal: one line a row and a sentence, for grep."""
_HEADINGS = ("APP", "", "INSTANCE", "STATUS", "WHY", "SYNCER")
_GAP = "  "
_NARROWEST = 24
"""Columns that a reason needs beside its instance: with fewer it goes below it."""


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


class Diff:
    """The rows as columns where these fit, else under the app and syncer of each group, else each on two lines: an id
    is never broken without need. A reason that is longer than most is wrapped, and no other row for it."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not console.is_terminal and (text := _plain(self._rows, options.max_width)):
            yield Segment(text)
            return
        for layout in (_columns, _by_group):
            lines = layout(self._rows, console, options.max_width)
            if lines is not None:
                yield from lines
                return
        yield from _stacked(self._rows)


def _plain(rows: Sequence[Row], width: int) -> str:
    """The columns without styles; empty where they do not fit. With 10,000 rows rich takes longer than their pass."""
    table = [_HEADINGS]
    for app, group in groupby(rows, key=lambda row: row.app):
        for index, row in enumerate(group):
            table.append(("" if index else app, row.sign, row.id, row.status, row.why, row.syncer))
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    if sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        return ""
    padded = (
        (cell + " " * (most - cell_len(cell)) for cell, most in zip(row[:-1], widths, strict=False)) for row in table
    )
    return "".join(f"{_GAP.join((*cells, row[-1]))}\n" for cells, row in zip(padded, table, strict=True))


def _columns(rows: Sequence[Row], console: Console, width: int) -> list[Text] | None:
    table = [tuple(Text(heading, style="bold dim") for heading in _HEADINGS)]
    for app, group in groupby(rows, key=lambda row: row.app):
        for index, row in enumerate(group):
            table.append(
                (
                    Text("" if index else app, style="bold"),
                    Text(row.sign, style=row.style),
                    Text(row.id),
                    Text(row.status, style=row.style),
                    Text(row.why),
                    Text(row.syncer, style="dim"),
                )
            )
    aligned = _aligned(table, _HEADINGS.index("WHY"), console, width)
    return None if aligned is None else [line for lines in aligned for line in lines]


def _by_group(rows: Sequence[Row], console: Console, width: int) -> list[Text] | None:
    cells = [(Text(r.sign, r.style), Text(r.id), Text(r.status, r.style), Text(r.why)) for r in rows]
    aligned = _aligned(cells, 3, console, width)
    if aligned is None or any(heading.cell_len > width for heading, _ in _groups(rows)):
        return None
    each = iter(aligned)
    return [line for heading, group in _groups(rows) for line in (heading, *(one for _ in group for one in next(each)))]


def _aligned(table: Sequence[tuple[Text, ...]], long: int, console: Console, width: int) -> list[list[Text]] | None:
    """The lines of each row. Cells of the column `long` are wrapped where most of them fit; None: they do not."""
    widths = [max(cell.cell_len for cell in column) for column in zip(*table, strict=True)]
    room = width - sum(widths) - len(_GAP) * (len(widths) - 1) + widths[long]
    if room < widths[long]:
        if room < max(_NARROWEST, median_low(cells[long].cell_len for cells in table)):
            return None
        widths[long] = room
    indent = sum(widths[:long]) + len(_GAP) * long
    return [_lines(cells, long, widths, indent, console) for cells in table]


def _lines(cells: tuple[Text, ...], long: int, widths: Sequence[int], indent: int, console: Console) -> list[Text]:
    first, *rest = cells[long].wrap(console, widths[long])
    row = [*cells[:long], first, *cells[long + 1 :]]
    for cell, width in zip(row[:-1], widths, strict=False):
        cell.rstrip()
        cell.pad_right(width - cell.cell_len)
    return [Text(_GAP).join(row), *(Text.assemble(" " * indent, line) for line in rest)]


def _groups(rows: Sequence[Row]) -> Iterator[tuple[Text, list[Row]]]:
    for (app, syncer), group in groupby(rows, key=lambda row: (row.app, row.syncer)):
        yield Text.assemble((app, "bold"), (f"  {syncer}", "dim")), list(group)


def _stacked(rows: Sequence[Row]) -> Iterator[RenderableType]:
    for heading, group in _groups(rows):
        yield heading
        for row in group:
            yield Text.assemble((f"{row.sign} ", row.style), row.id, "  ", (row.status, row.style))
            yield Line(row.why, mark=Text(" "))


def _legend(rows: Sequence[Row]) -> RenderableType:
    """The signs that occur."""
    return Text("   ".join(f"{sign} {meaning}" for sign, meaning in signs_in(rows)), style="dim")


def marked(sentence: str) -> RenderableType:
    """A sentence for a person to see to."""
    return Line(sentence, mark=Text("!", style="bold red"))


def _noted(sentence: str) -> RenderableType:
    """A sentence for a person to know."""
    return Line(sentence, mark=Text("i", style="cyan"))
