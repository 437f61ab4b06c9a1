"""Lines, marks and tables for the reports. All text is made printable."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from itertools import groupby
from typing import IO, TypeAlias, assert_never

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from eurekube_sync.controller.one_pass import PassReport
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
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.sources import Cause
from eurekube_sync.model.values import dataclass

Cell: TypeAlias = tuple[str, str]  # a text and its style
_UNBOUNDED = (
    10_000  # columns where there is no terminal, so that each row and sentence is one line for grep
)
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


class Line:
    """A text with an indent and a mark. Where it is wrapped, its further lines are aligned with its
    first."""

    def __init__(
        self, text: str, *, mark: Text | None = None, indent: int = 0, style: str = ""
    ) -> None:
        self._text = Text(printable(text), style=style)
        self._head = Text(" " * indent) + (mark + Text(" ") if mark is not None else Text(""))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = self._head
        for line in self._text.wrap(console, max(10, options.max_width - head.cell_len)) or [
            Text("")
        ]:
            line.rstrip()
            yield head + line
            head = Text(" " * head.cell_len)


class Next:
    """The next step for the user. A long command has its own line, which is not wrapped, so that it
    can be copied."""

    def __init__(self, text: str, *, indent: int = 0) -> None:
        self._text = printable(text)
        self._indent = indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        mark = Text("Next:", style="bold")
        found = _COMMAND.fullmatch(self._text)
        if found is None or self._indent + mark.cell_len + 1 + len(self._text) <= options.max_width:
            yield Line(self._text, mark=mark, indent=self._indent)
            return
        before = (found["before"] or "").rstrip(", ")
        yield (
            Line(before, mark=mark, indent=self._indent)
            if before
            else Text(" " * self._indent) + mark
        )
        yield Text(f"{' ' * self._indent}  {found['command']}", no_wrap=True, overflow="ignore")


def marked(sentence: str) -> Line:
    """Return a sentence with the mark of a problem."""
    return Line(sentence, mark=Text("!", style="bold red"))


class Columns:
    """Rows of cells. The last cell, which is long, is put below the others if there is not enough
    room beside them.

    A row with fewer cells than the others is a heading, and is not aligned.
    """

    def __init__(self, rows: Sequence[tuple[Cell, ...]], headings: Sequence[str] = ()) -> None:
        shown = [tuple((printable(text), style) for text, style in row) for row in rows]
        self._rows = rows = (
            [tuple((heading, "bold dim") for heading in headings), *shown] if headings else shown
        )
        self._headings = headings
        self._number = max(map(len, rows))
        others = zip(*(row[:-1] for row in rows if len(row) == self._number), strict=True)
        self._widths = [max(cell_len(text) for text, _ in column) for column in others]
        self._taken = sum(self._widths) + len(_GAP) * len(self._widths)
        self._longest = max(cell_len(row[-1][0]) for row in rows)

    def beside(self, width: int) -> bool:
        """Return whether the last cells have room beside the others at this width of the
        terminal."""
        return width - self._taken >= min(_ROOM, self._longest)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width - self._taken
        if self._headings and not self.beside(options.max_width):
            self._rows = [(*self._rows[0][:-1], ("", "")), *self._rows[1:]]
        if not console.is_terminal and room >= self._longest:  # rich is too slow for 10,000 rows
            lines = [
                "".join([text for text, _ in (*self._padded(row), row[-1])]).rstrip()
                for row in self._rows
            ]
            yield Segment("\n".join([*lines, ""]))
            return
        for row in self._rows:
            line = Text.assemble(*self._padded(row))
            if len(row) == self._number and cell_len(row[-1][0]) > room < _ROOM:
                line.rstrip()
                yield line
                yield Line(row[-1][0], indent=4)
                continue
            for part in Text(*row[-1]).wrap(console, max(_ROOM, room)) or [Text("")]:
                line.append_text(part)
                line.rstrip()
                yield line
                line = Text(" " * self._taken)

    def _padded(self, row: tuple[Cell, ...]) -> list[Cell]:
        """Return each cell but the last, filled up to the width of its column."""
        whole = len(row) == self._number
        return [
            (text + " " * (width - cell_len(text) if whole else 0) + _GAP, style)
            for (text, style), width in zip(row[:-1], self._widths, strict=False)
        ]


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
    return sorted(
        rows,
        key=lambda row: (row.danger, row.app, re.sub(r"\d+", lambda one: one[0].zfill(5), row.id)),
    )


def rows_of(report: PassReport) -> list[Row]:
    outcomes = report.outcomes.by_key
    changes = (
        one for one in report.plan.changes if not (isinstance(one, Cancel) and one.was is None)
    )
    rows = [_row(action, outcomes.get(action.key)) for action in changes]
    for action in report.held.removals if report.held else ():
        row = _row(action, None)
        rows.append(replace(row, sign="=", why=f"HELD: {row.why}", danger=Danger.HELD))
    for one in report.plan.blocked:
        sign, danger = ("x", Danger.CONFLICT) if one.conflict else ("?", Danger.FAILED)
        rows.append(row_of(one.key, sign, "blocked", one.why, one.syncer, danger))
    return in_order(rows)


def _row(action: Action, outcome: Outcome | None) -> Row:
    why = action.why
    match action:
        case Register():
            sign, status, danger = "+", action.instance.status.value, Danger.REGISTER
        case Update():
            becomes = action.instance.status
            turns = removes(action) or brings_up(action)
            sign, status = "~", f"{action.was} > {becomes}" if turns else becomes.value
            danger = Danger.DOWN if removes(action) else Danger.UPDATE
            changed = [
                f"{c.field}: {c.was or 'none'} > {c.becomes or 'none'}"
                for c in action.changes
                if c.field != "status"
            ]
            more = f" and {len(changed) - _CHANGES} more" if len(changed) > _CHANGES else ""
            why += f"; {', '.join(changed[:_CHANGES])}{more}" if changed else ""
        case Cancel():
            sign, status, danger = "-", f"{action.was} > gone", Danger.CANCEL
        case Renew():
            raise AssertionError(action)  # a renewal is no change
        case _:  # pragma: no cover
            assert_never(action)
    if outcome is not None and outcome.result in _TROUBLES:
        # A sentence below the table explains once why the server refuses all changes.
        detail = "see below" if outcome.cause is Cause.DENIED else outcome.detail
        sign, why = "!", f"{_TROUBLES[outcome.result]}: {detail}"
        danger = danger if outcome.result is Result.NOT_TRIED else Danger.FAILED
    return row_of(action.key, sign, status, why, action.syncer, danger)


def folded(rows: Iterable[Row]) -> Iterator[Row]:
    """Join held rows that differ only in their instance."""
    for (danger, *_), group in groupby(
        rows, key=lambda row: (row.danger, row.app, row.syncer, row.status, row.why)
    ):
        same = list(group)
        if danger is Danger.HELD and len(same) > _FOLDED:
            yield replace(same[0], id=f"{len(same)} instances")
        else:
            yield from same


def signs_in(rows: Iterable[Row]) -> list[tuple[str, str]]:
    found = {row.sign for row in rows}
    return [(sign, meaning) for sign, (meaning, _) in _SIGNS.items() if sign in found]


class Diff:
    """Rows as columns if they fit, else under a heading for each app and syncer."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = Columns(list(self._wide()), _HEADINGS)
        yield wide if wide.beside(options.max_width) else Columns(list(self._by_group()))

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
    parts: list[RenderableType] = [Diff(ordered)] if ordered else []
    return Group(*parts, *map(marked, see_to), Text(printable(last), style="bold"))
