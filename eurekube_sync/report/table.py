"""A pass as a table, by app: what comes, what changes, what goes, and why. With `stage`, all that imports rich."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import IO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from eurekube_sync.actions import Action, Cancel, Register, Update, brings_up, takes_out
from eurekube_sync.model import Cause, InstanceStatus
from eurekube_sync.one_pass import PassReport
from eurekube_sync.outcome import Outcome, Result
from eurekube_sync.report.words import sentences, summary

_MOST_ROWS = 200
_UNBOUNDED = 10_000
"""Columns of what is no terminal: one line a row and a sentence, for grep."""
_HEADINGS = ("APP", "", "INSTANCE", "STATUS", "WHY", "SYNCER")
_IN_WORDS = {
    Result.FAILED: "failed",
    Result.HELD_BACK: "held back",
    Result.NOT_TRIED: "not tried",
    Result.CONFLICT: "conflict",
}


def console_for(stream: IO[str], *, width: int | None = None) -> Console:
    """A console that colours at a terminal only (NO_COLOR and FORCE_COLOR are honoured) and wraps nothing elsewhere."""
    console = Console(file=stream, highlight=False, soft_wrap=False, width=width)
    if not console.is_terminal and width is None:
        console.width = _UNBOUNDED
    return console


def pass_table(report: PassReport, notices: Sequence[str] = ()) -> RenderableType:
    """The diff, when there is one; then what to see to; then the summary line."""
    batching = report.batching.why if report.dry_run and report.batching is not None else ""
    return rows_table(_rows(report), (*notices, *sentences(report)), summary(report), aside=batching)


def rows_table(rows: Iterable[Row], see_to: Iterable[str], last: str, *, aside: str = "") -> RenderableType:
    """Rows by app, then a sentence for each thing to see to, then the one line."""
    ordered = sorted(rows, key=lambda row: (row.app, natural(row.id)))
    parts: list[RenderableType] = [Diff(ordered[:_MOST_ROWS])] if ordered else []
    if len(ordered) > _MOST_ROWS:
        parts.append(Text(f"... and {len(ordered) - _MOST_ROWS} more; -o json has them all", style="dim"))
    parts += [marked(sentence) for sentence in see_to]
    parts += [Text(aside, style="dim")] if aside else []
    parts.append(Text(last, style="bold"))
    return Group(*parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a diff: an instance, what becomes of it, and why."""

    app: str
    sign: str
    id: str
    status: str
    why: str
    syncer: str
    style: str


class Diff:
    """The rows as columns where these fit, else under the app and syncer of each group, else each on two lines: an id
    is never broken without need."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for lines in (_columns(self._rows), _by_group(self._rows)):
            if max(line.cell_len for line in lines) <= options.max_width:
                yield from lines
                return
        yield from _stacked(self._rows)


def _columns(rows: Sequence[Row]) -> list[Text]:
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
    return _aligned(table)


def _aligned(table: Sequence[tuple[Text, ...]]) -> list[Text]:
    widths = [max(cell.cell_len for cell in column) for column in zip(*table, strict=True)]
    for cells in table:
        for cell, width in zip(cells[:-1], widths, strict=False):
            cell.pad_right(width - cell.cell_len)
    return [Text("  ").join(cells) for cells in table]


def _groups(rows: Sequence[Row]) -> Iterator[tuple[Text, list[Row]]]:
    for (app, syncer), group in groupby(rows, key=lambda row: (row.app, row.syncer)):
        yield Text.assemble((app, "bold"), (f"  {syncer}", "dim")), list(group)


def _by_group(rows: Sequence[Row]) -> list[Text]:
    cells = [(Text(r.sign, r.style), Text(r.id), Text(r.status, r.style), Text(r.why)) for r in rows]
    lines = iter(_aligned(cells))
    return [line for heading, group in _groups(rows) for line in (heading, *(next(lines) for _ in group))]


def _stacked(rows: Sequence[Row]) -> Iterator[RenderableType]:
    for heading, group in _groups(rows):
        yield heading
        for row in group:
            yield Text.assemble((f"{row.sign} ", row.style), row.id, "  ", (row.status, row.style))
            yield _hanging(Text(" "), Text(row.why))


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """10.0.0.9 before 10.0.0.10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text))


def _rows(report: PassReport) -> Iterator[Row]:
    for action in report.plan.changes:
        if not (isinstance(action, Cancel) and action.was is None):
            yield _row(action, report.outcomes.by_key.get(action.key))
    for action in report.held.withdrawals if report.held else ():
        yield _row(action, None, held=True)
    for blocked in report.plan.blocked:
        yield Row(
            app=blocked.key.app,
            sign="!",
            id=blocked.key.id,
            status="blocked",
            why=blocked.why,
            syncer=str(blocked.syncer),
            style="magenta",
        )


def _row(action: Action, outcome: Outcome | None, *, held: bool = False) -> Row:
    match action:
        case Register():
            sign, status, style = "+", action.instance.status.value, "green"
        case Update():
            becomes = action.instance.status
            kept = not (takes_out(action) or brings_up(action))
            status = becomes.value if kept else f"{action.was} > {becomes}"
            sign, style = "~", "green" if becomes is InstanceStatus.UP else "yellow"
        case Cancel():
            sign, status, style = "-", f"{action.was} > gone", "red"
        case _:
            sign, status, style = " ", "", ""
    why = action.why
    if isinstance(action, Update):
        changed = [c for c in action.changes if c.field != "status"]
        if changed:
            why += "; " + ", ".join(f"{c.field}: {c.was or 'none'} > {c.becomes or 'none'}" for c in changed[:3])
            why += f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    if held:
        sign, style, why = "=", "bold yellow", f"HELD: {why}"
    if outcome is not None and (outcome.failed or outcome.result is Result.CONFLICT):
        sign, style, why = "!", "bold red", _trouble(outcome)
    return Row(
        app=action.key.app,
        sign=sign,
        id=action.key.id,
        status=status,
        why=why,
        syncer=str(action.syncer or ""),
        style=style,
    )


def _trouble(outcome: Outcome) -> str:
    """What the server refuses to all alike is said once, in the sentence below the table."""
    if outcome.cause is Cause.DENIED:
        return f"{_IN_WORDS[outcome.result]}: see below"
    return f"{_IN_WORDS[outcome.result]}: {outcome.detail}"


def marked(sentence: str) -> RenderableType:
    """A sentence for a person to see to."""
    return _hanging(Text("!", style="bold yellow"), Text(sentence))


def _hanging(mark: Text, text: Text) -> RenderableType:
    """A mark, and a text whose further lines begin below its first."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(mark, text)
    return grid
