"""Lines, marks and tables for the reports. All text is made printable."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import groupby
from typing import IO, TypeAlias, assert_never

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from eurekube_sync.controller.one_pass import ImportReport, PassReport
from eurekube_sync.explain.links import Mark
from eurekube_sync.model.actions import (
    Action,
    Cancel,
    Outcome,
    Register,
    Renew,
    Result,
    Update,
    brings_up,
    removes,
)
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.sanitize import printable
from eurekube_sync.model.sources import Cause
from eurekube_sync.plan.imports import Add, Drop, Keep

Cell: TypeAlias = tuple[str, str]  # a text and its style
# Columns where there is no terminal, so that each row and sentence is one line for grep
_UNBOUNDED = 10_000
_GAP = "  "
_ROOM = 36  # the fewest columns in which a reason is wrapped beside its row, and not below it
_COMMAND = re.compile(r"(?P<before>.*?[:,] )?(?P<command>(?:kubectl|curl|eurekube-sync) .*)")
_SIGNS = {
    "!": ("failed", "bold red"),
    "=": ("held by the brake", "bold yellow"),
    "-": ("cancel", "red"),
    "x": ("in conflict", "magenta"),
    "?": ("could not be read again, and stays as it is", "red"),
    "~": ("change", "yellow"),
    "+": ("register", "green"),
}
"""The meaning and the style of the sign before an instance."""
_TROUBLES = {
    Result.FAILED: "failed",
    Result.HELD_BACK: "held back",
    Result.NOT_TRIED: "not tried",
    Result.CONFLICT: "conflict",
}
# The order of the rows.
Danger = IntEnum("Danger", ["FAILED", "HELD", "CANCEL", "DOWN", "CONFLICT", "UPDATE", "REGISTER"])
_FOLDED = 3  # the most similar held rows that are shown one by one
_CHANGES = 3  # the most changed fields in a row
_HEADINGS = ("APP", "", "INSTANCE", "STATUS", "SYNCER", "WHY")
_MARKS = {
    Mark.OK: ("√", "+", "green"),
    Mark.BROKEN: ("×", "x", "bold red"),  # noqa: RUF001 - the multiplication sign is intended
    Mark.UNKNOWN: ("?", "?", "yellow"),
    Mark.NOTE: ("-", "-", "dim"),
}


def console_for(stream: IO[str], *, width: int | None = None) -> Console:
    """Return a console that uses colours and wraps lines only at a terminal. It honours NO_COLOR
    and FORCE_COLOR."""
    console = Console(file=stream, highlight=False, soft_wrap=False, width=width)
    if not console.is_terminal and width is None:
        console.width = _UNBOUNDED
    return console


def sign_of(mark: Mark) -> Text:
    sign, plain, style = _MARKS[mark]
    try:
        sign.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        sign = plain
    return Text(sign, style=style)


def _wrapped(text: Text, console: Console, width: int) -> Iterable[Text]:
    """Return the lines of a text; one of an empty text."""
    return text.wrap(console, width) or [Text("")]


class Line:
    """A text with an indent and a mark. Where it is wrapped, its further lines are aligned with its
    first."""

    def __init__(
        self, text: str, *, mark: Text | None = None, indent: int = 0, style: str = ""
    ) -> None:
        self._text = Text(printable(text), style=style)
        self._head = Text(" " * indent)
        if mark is not None:
            self._head = self._head + mark + Text(" ")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = self._head
        for line in _wrapped(self._text, console, max(10, options.max_width - head.cell_len)):
            line.rstrip()
            yield head + line
            head = Text(" " * head.cell_len)


class Next:
    """The next step for the user. A long command has its own line, which is not wrapped, so that it
    can be copied."""

    def __init__(self, text: str, *, indent: int = 0, word: str = "Next") -> None:
        self._text = printable(text)
        self._indent = indent
        self._word = word

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        mark = Text(f"{self._word}:", style="bold")
        match = _COMMAND.fullmatch(self._text)
        if match is None or self._indent + mark.cell_len + 1 + len(self._text) <= options.max_width:
            yield Line(self._text, mark=mark, indent=self._indent)
            return
        before = (match["before"] or "").rstrip(", ")
        if before:
            yield Line(before, mark=mark, indent=self._indent)
        else:
            yield Text(" " * self._indent) + mark
        yield Text(f"{' ' * self._indent}  {match['command']}", no_wrap=True, overflow="ignore")


def marked(sentence: str) -> Line:
    """Return a sentence with the mark of a problem."""
    return Line(sentence, mark=Text("!", style="bold red"))


class Columns:
    """Rows of cells. The last cell, which is long, is put below the others if there is not enough
    room beside them.

    A row with fewer cells than the others is a heading, and is not aligned.
    """

    def __init__(self, rows: Sequence[tuple[Cell, ...]], headings: Sequence[str] = ()) -> None:
        self._rows: list[tuple[Cell, ...]] = []
        if headings:
            self._rows.append(tuple((heading, "bold dim") for heading in headings))
        for row in rows:
            self._rows.append(tuple((printable(text), style) for text, style in row))
        self._headings = headings
        self._number = max(map(len, self._rows))
        self._widths = [0] * (self._number - 1)
        for row in self._rows:
            if len(row) == self._number:
                for column, (text, _) in enumerate(row[:-1]):
                    self._widths[column] = max(self._widths[column], cell_len(text))
        self._taken = sum(self._widths) + len(_GAP) * len(self._widths)
        self._longest = max(cell_len(row[-1][0]) for row in self._rows)

    def beside(self, width: int) -> bool:
        """Return whether the last cells have room beside the others at this width of the
        terminal."""
        return width - self._taken >= min(_ROOM, self._longest)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width - self._taken
        if self._headings and not self.beside(options.max_width):
            self._rows[0] = (*self._rows[0][:-1], ("", ""))
        if not console.is_terminal and room >= self._longest:  # rich is too slow for 10,000 rows
            lines: list[str] = []
            for row in self._rows:
                texts = [text for text, _ in (*self._padded(row), row[-1])]
                lines.append("".join(texts).rstrip() + "\n")
            yield Segment("".join(lines))
            return
        for row in self._rows:
            line = Text.assemble(*self._padded(row))
            if len(row) == self._number and cell_len(row[-1][0]) > room < _ROOM:
                line.rstrip()
                yield line
                yield Line(row[-1][0], indent=4)
                continue
            for part in _wrapped(Text(*row[-1]), console, max(_ROOM, room)):
                line.append_text(part)
                line.rstrip()
                yield line
                line = Text(" " * self._taken)

    def _padded(self, row: tuple[Cell, ...]) -> list[Cell]:
        """Return each cell but the last, filled up to the width of its column."""
        if len(row) < self._number:
            return [(text + _GAP, style) for text, style in row[:-1]]
        cells: list[Cell] = []
        for (text, style), width in zip(row, self._widths, strict=False):
            cells.append((text + " " * (width - cell_len(text)) + _GAP, style))
        return cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a diff: an instance, its change, and the reason."""

    app: str
    id: str
    sign: str
    status: str
    why: str
    syncer: str
    danger: Danger = Danger.UPDATE


def row_of(
    key: InstanceKey,
    sign: str,
    status: str,
    why: str,
    syncer: SyncerRef | None,
    danger: Danger = Danger.UPDATE,
) -> Row:
    return Row(
        app=key.app,
        id=key.id,
        sign=sign,
        status=status,
        why=why,
        syncer=str(syncer or ""),
        danger=danger,
    )


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Sort by danger, then by app and instance, with 10.0.0.9 before 10.0.0.10."""

    def place(row: Row) -> tuple[Danger, str, str]:
        return row.danger, row.app, re.sub(r"\d+", lambda number: number[0].zfill(5), row.id)

    return sorted(rows, key=place)


def rows_of(report: PassReport) -> list[Row]:
    outcomes = report.outcomes.by_key
    rows: list[Row] = []
    for action in report.plan.changes:
        if not isinstance(action, Cancel) or action.was is not None:
            row = _row(action)
            outcome = outcomes.get(action.key)
            if outcome is not None and outcome.result in _TROUBLES:
                row = _troubled(row, outcome)
            rows.append(row)
    if report.held is not None:
        for removal in report.held.removals:
            assert isinstance(removal, Update | Cancel)  # an import's are not in the plan
            row = _row(removal)
            rows.append(replace(row, sign="=", why=f"HELD: {row.why}", danger=Danger.HELD))
    if report.imports is not None:
        rows += _rows_of_imports(report.imports)
    for blocked in report.plan.blocked:
        sign, danger = "?", Danger.FAILED
        if blocked.conflict:
            sign, danger = "x", Danger.CONFLICT
        rows.append(row_of(blocked.key, sign, "blocked", blocked.why, blocked.syncer, danger))
    return in_order(rows)


def _rows_of_imports(report: ImportReport) -> Iterator[Row]:
    """Yield a row for each endpoint that comes, goes, or stays although it is not wanted."""
    for change in report.plan.changes:
        match change:
            case Add():
                sign, status, danger = "+", "endpoint", Danger.REGISTER
            case Drop():
                sign, status, danger = "-", "endpoint > gone", Danger.CANCEL
            case Keep():
                sign, status, danger = "=", "endpoint", Danger.HELD
            case _:  # pragma: no cover
                assert_never(change)
        row = Row(
            app=str(change.import_),
            id=str(change.socket),
            sign=sign,
            status=status,
            why=change.why,
            syncer="",
            danger=danger,
        )
        outcome = report.outcomes.get(change.import_)
        if outcome is not None and outcome.failed and sign != "=":
            why = "not tried" if outcome.late else f"failed: {outcome.error}"
            row = replace(row, sign="!", why=why, danger=Danger.FAILED)
        yield row


def _row(action: Action) -> Row:
    why = action.why
    match action:
        case Register():
            sign, status, danger = "+", action.instance.status.value, Danger.REGISTER
        case Update():
            sign, status, danger = "~", action.instance.status.value, Danger.UPDATE
            if removes(action):
                danger = Danger.DOWN
            if removes(action) or brings_up(action):
                status = f"{action.was} > {status}"
            changes = _changes(action)
            if changes:
                why = f"{why}; {changes}"
        case Cancel():
            sign, status, danger = "-", f"{action.was} > gone", Danger.CANCEL
        case Renew():
            raise AssertionError(action)  # a renewal is no change
        case _:  # pragma: no cover
            assert_never(action)
    return row_of(action.key, sign, status, why, action.syncer, danger)


def _changes(update: Update) -> str:
    """Return the first changed fields, apart from the status, which has its own column."""
    texts: list[str] = []
    for change in update.changes:
        if change.field != "status":
            texts.append(f"{change.field}: {change.was or 'none'} > {change.becomes or 'none'}")
    first = ", ".join(texts[:_CHANGES])
    if len(texts) > _CHANGES:
        return f"{first} and {len(texts) - _CHANGES} more"
    return first


def _troubled(row: Row, outcome: Outcome) -> Row:
    """Return the row of an action that was not done."""
    # A sentence below the table explains once why the server refuses all changes.
    detail = "see below" if outcome.cause is Cause.DENIED else outcome.detail
    danger = row.danger if outcome.result is Result.NOT_TRIED else Danger.FAILED
    return replace(row, sign="!", why=f"{_TROUBLES[outcome.result]}: {detail}", danger=danger)


def folded(rows: Iterable[Row]) -> Iterator[Row]:
    """Join held rows that differ only in their instance."""

    def alike(row: Row) -> tuple[object, ...]:
        return row.danger, row.app, row.syncer, row.status, row.why

    for (danger, *_), group in groupby(rows, key=alike):
        same = list(group)
        if danger is Danger.HELD and len(same) > _FOLDED:
            yield replace(same[0], id=f"{len(same)} instances")
        else:
            yield from same


def signs_in(rows: Iterable[Row]) -> list[tuple[str, str]]:
    shown = {row.sign for row in rows}
    return [(sign, meaning) for sign, (meaning, _) in _SIGNS.items() if sign in shown]


class Diff:
    """Rows as columns if they fit, else under a heading for each app and syncer."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = Columns(list(self._wide()), _HEADINGS)
        if wide.beside(options.max_width):
            yield wide
        else:
            yield Columns(list(self._by_group()))

    def _wide(self) -> Iterator[tuple[Cell, ...]]:
        app = None
        for row in self._rows:
            *cells, why = _cells(row)
            yield (row.app if row.app != app else "", "bold"), *cells, (row.syncer, "dim"), why
            app = row.app

    def _by_group(self) -> Iterator[tuple[Cell, ...]]:
        for (app, syncer), group in groupby(self._rows, key=lambda row: (row.app, row.syncer)):
            yield (app, "bold"), (syncer, "dim")
            yield from map(_cells, group)


def _cells(row: Row) -> tuple[Cell, ...]:
    _, style = _SIGNS.get(row.sign, ("", "dim"))
    return (row.sign, style), (row.id, ""), (row.status, style), (row.why, "")


def rows_table(rows: Iterable[Row], see_to: Iterable[str], last: str) -> RenderableType:
    """Return the rows, then the sentences `see_to`, then the last line."""
    ordered = in_order(rows)
    parts: list[RenderableType] = []
    if ordered:
        parts.append(Diff(ordered))
    return Group(*parts, *map(marked, see_to), Text(printable(last), style="bold"))
