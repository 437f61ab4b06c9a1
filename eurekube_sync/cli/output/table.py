"""Lines, marks and tables for the reports. All text is made printable."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import groupby
from typing import IO, TypeAlias, assert_never

from msgspec import Struct
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
from eurekube_sync.model.struct import replace
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
    """Return the sign of a mark, in plain ASCII if stdout cannot write it."""
    sign, plain, style = _MARKS[mark]
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        sign.encode(encoding)
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
        indent = head.cell_len
        width = max(10, options.max_width - indent)
        for line in _wrapped(self._text, console, width):
            line.rstrip()
            yield head + line
            head = Text(" " * indent)


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
        width = self._indent + mark.cell_len + 1 + len(self._text)
        if match is None or width <= options.max_width:
            yield Line(self._text, mark=mark, indent=self._indent)
            return
        margin = " " * self._indent
        before = match["before"] or ""
        before = before.rstrip(", ")
        if before:
            yield Line(before, mark=mark, indent=self._indent)
        else:
            yield Text(margin) + mark
        command = match["command"]
        yield Text(f"{margin}  {command}", no_wrap=True, overflow="ignore")


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
        self._longest = 0  # of the last cells
        for row in self._rows:
            *cells, (last, _) = row
            self._longest = max(self._longest, cell_len(last))
            if len(row) < self._number:
                continue
            for column, (text, _) in enumerate(cells):
                self._widths[column] = max(self._widths[column], cell_len(text))
        gaps = len(_GAP) * len(self._widths)
        self._taken = sum(self._widths) + gaps

    def beside(self, width: int) -> bool:
        """Return whether the last cells have room beside the others at this width of the
        terminal."""
        room = width - self._taken
        needed = min(_ROOM, self._longest)
        return room >= needed

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width - self._taken
        if self._headings and not self.beside(options.max_width):
            # The last cells are below the others, so that nothing stands under their heading.
            *headings, _ = self._rows[0]
            self._rows[0] = (*headings, ("", ""))
        if not console.is_terminal and room >= self._longest:
            yield self._unwrapped()
            return
        for row in self._rows:
            line = Text.assemble(*self._padded(row))
            text, style = row[-1]
            lacks_room = room < _ROOM and room < cell_len(text)
            if lacks_room and len(row) == self._number:
                line.rstrip()
                yield line
                yield Line(text, indent=4)
                continue
            for part in _wrapped(Text(text, style), console, max(_ROOM, room)):
                line.append_text(part)
                line.rstrip()
                yield line
                line = Text(" " * self._taken)

    def _unwrapped(self) -> Segment:
        """Return all rows as one text without styles. rich's own way is too slow for 10,000
        rows."""
        lines: list[str] = []
        for row in self._rows:
            cells = [*self._padded(row), row[-1]]
            line = "".join(text for text, _ in cells)
            lines.append(f"{line.rstrip()}\n")
        return Segment("".join(lines))

    def _padded(self, row: tuple[Cell, ...]) -> list[Cell]:
        """Return each cell but the last, filled up to the width of its column."""
        is_heading = len(row) < self._number
        cells: list[Cell] = []
        for column, (text, style) in enumerate(row[:-1]):
            padding = ""
            if not is_heading:
                padding = " " * (self._widths[column] - cell_len(text))
            cells.append((f"{text}{padding}{_GAP}", style))
        return cells


class Row(Struct, frozen=True, kw_only=True):
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

    def padded(number: re.Match[str]) -> str:
        return number[0].zfill(5)

    def place(row: Row) -> tuple[Danger, str, str]:
        instance = re.sub(r"\d+", padded, row.id)
        return row.danger, row.app, instance

    return sorted(rows, key=place)


def rows_of(report: PassReport) -> list[Row]:
    """Return a row for each change, held removal, and blocked instance of a pass, in order."""
    rows = list(_rows_of_changes(report))
    if report.held is not None:
        for removal in report.held.removals:
            assert isinstance(removal, Update | Cancel)  # an import's are not in the plan
            row = _row(removal)
            why = f"HELD: {row.why}"
            rows.append(replace(row, sign="=", why=why, danger=Danger.HELD))
    if report.imports is not None:
        rows += _rows_of_imports(report.imports)
    for blocked in report.plan.blocked:
        sign = "?"
        danger = Danger.FAILED
        if blocked.conflict:
            sign = "x"
            danger = Danger.CONFLICT
        rows.append(row_of(blocked.key, sign, "blocked", blocked.why, blocked.syncer, danger))
    return in_order(rows)


def _rows_of_changes(report: PassReport) -> Iterator[Row]:
    """Yield a row for each change of the plan that a reader of Eureka could see."""
    outcomes = report.outcomes.by_key
    for action in report.plan.changes:
        if isinstance(action, Cancel) and action.was is None:
            continue  # it makes sure that an instance is gone, which a read did not find
        row = _row(action)
        outcome = outcomes.get(action.key)
        if outcome is not None and outcome.result in _TROUBLES:
            row = _troubled(row, outcome)
        yield row


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
        if outcome is not None and outcome.failed and not isinstance(change, Keep):
            why = f"failed: {outcome.error}"
            if outcome.late:
                why = "not tried"
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
        if change.field == "status":
            continue
        was = change.was or "none"
        becomes = change.becomes or "none"
        texts.append(f"{change.field}: {was} > {becomes}")
    first = ", ".join(texts[:_CHANGES])
    more = len(texts) - _CHANGES
    if more > 0:
        return f"{first} and {more} more"
    return first


def _troubled(row: Row, outcome: Outcome) -> Row:
    """Return the row of an action that was not done."""
    detail = outcome.detail
    if outcome.cause is Cause.DENIED:
        # A sentence below the table explains once why the server refuses all changes.
        detail = "see below"
    danger = Danger.FAILED
    if outcome.result is Result.NOT_TRIED:
        danger = row.danger
    trouble = _TROUBLES[outcome.result]
    return replace(row, sign="!", why=f"{trouble}: {detail}", danger=danger)


def folded(rows: Iterable[Row]) -> Iterator[Row]:
    """Join held rows that differ only in their instance."""

    def alike(row: Row) -> tuple[object, ...]:
        return row.danger, row.app, row.syncer, row.status, row.why

    for _, group in groupby(rows, key=alike):
        same = list(group)
        first = same[0]
        if first.danger is Danger.HELD and len(same) > _FOLDED:
            yield replace(first, id=f"{len(same)} instances")
        else:
            yield from same


def signs_in(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Return each sign of these rows with its meaning."""
    shown = {row.sign for row in rows}
    signs: list[tuple[str, str]] = []
    for sign, (meaning, _) in _SIGNS.items():
        if sign in shown:
            signs.append((sign, meaning))
    return signs


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
        """Yield a row of columns for each row; an app is named once."""
        app = ""
        for row in self._rows:
            *cells, why = _cells(row)
            name = ""
            if row.app != app:
                name = row.app
            yield (name, "bold"), *cells, (row.syncer, "dim"), why
            app = row.app

    def _by_group(self) -> Iterator[tuple[Cell, ...]]:
        """Yield a heading for each app and syncer, then its rows."""
        heading = None
        for row in self._rows:
            app_and_syncer = (row.app, row.syncer)
            if app_and_syncer != heading:
                heading = app_and_syncer
                yield (row.app, "bold"), (row.syncer, "dim")
            yield _cells(row)


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
