"""A pass as a table, by app: what comes, what changes, what goes, and why. The one place that imports rich."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import IO

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from eurekube_sync.actions import Action, Cancel, Register, Update, brings_up, withdraws
from eurekube_sync.model import InstanceStatus
from eurekube_sync.outcome import Outcome, Result
from eurekube_sync.reconcile import PassReport
from eurekube_sync.report.words import sentences, summary

_MOST_ROWS = 200


def console_for(stream: IO[str], *, width: int | None = None) -> Console:
    """A console that colours at a terminal only (NO_COLOR and FORCE_COLOR are honoured) and never cuts an id short."""
    console = Console(file=stream, highlight=False, soft_wrap=False, width=width)
    if not console.is_terminal and width is None:
        console.width = 160
    return console


def pass_table(report: PassReport) -> RenderableType:
    """The diff table, when there is a diff; then what to see to; then the summary line."""
    parts: list[RenderableType] = []
    rows = list(_rows(report))
    if rows:
        parts.append(_table(rows))
    parts += [_sentence(sentence) for sentence in sentences(report)]
    parts.append(Text(summary(report), style="bold"))
    return Group(*parts)


_Row = tuple[Text, Text, Text, Text, Text]


def _table(rows: list[tuple[str, _Row]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold dim", show_edge=False)
    table.add_column("APP", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("INSTANCE", overflow="fold")
    table.add_column("STATUS", no_wrap=True)
    table.add_column("WHY", overflow="fold")
    table.add_column("SYNCER", overflow="fold")
    for app, group in groupby(rows[:_MOST_ROWS], key=lambda row: row[0]):
        for index, (_, cells) in enumerate(group):
            table.add_row(Text(app if index == 0 else "", style="bold"), *cells)
    if len(rows) > _MOST_ROWS:
        rest = Text(f"... and {len(rows) - _MOST_ROWS} more; -o json has them all", style="dim")
        table.add_row(Text(""), Text(""), rest)
    return table


def _rows(report: PassReport) -> Iterator[tuple[str, _Row]]:
    held = report.held.withdrawals if report.held else ()
    rows: list[tuple[str, str, _Row]] = []
    for action in report.plan.changes:
        if not (isinstance(action, Cancel) and action.was is None):
            outcome = report.outcomes.by_key.get(action.key)
            rows.append((action.key.app, action.key.id, _row(action, outcome)))
    rows += [(action.key.app, action.key.id, _row(action, None, held=True)) for action in held]
    for blocked in report.plan.blocked:
        cells = ("!", blocked.key.id, "blocked", blocked.why, str(blocked.syncer))
        rows.append((blocked.key.app, blocked.key.id, _cells(cells, "magenta")))
    for app, _, row in sorted(rows, key=lambda row: row[:2]):
        yield app, row


def _row(action: Action, outcome: Outcome | None, *, held: bool = False) -> _Row:
    match action:
        case Register():
            sign, status, style = "+", action.instance.status.value, "green"
        case Update():
            becomes = action.instance.status
            kept = not (withdraws(action) or brings_up(action))
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
        sign, style, why = "!", "bold red", f"{outcome.result.value}: {outcome.detail}"
    return _cells((sign, action.key.id, status, why, str(action.syncer or "")), style)


def _cells(cells: tuple[str, str, str, str, str], style: str) -> _Row:
    sign, id_, status, why, syncer = cells
    return Text(sign, style), Text(id_), Text(status, style), Text(why), Text(syncer, "dim")


def _sentence(sentence: str) -> Text:
    return Text.assemble(("! ", "bold yellow"), sentence)
