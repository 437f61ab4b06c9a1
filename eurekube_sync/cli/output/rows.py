"""What a pass changes, one row an instance, the most dangerous first: for the table and for Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import IntEnum
from itertools import groupby
from typing import assert_never

from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.actions import Action, Cancel, Register, Renew, Update, brings_up, removes
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.outcomes import Outcome, Result
from eurekube_sync.model.sources import Cause
from eurekube_sync.model.values import dataclass

SIGNS = {
    "!": "failed",
    "=": "held by the brake",
    "-": "cancel",
    "x": "in conflict",
    "?": "could not be read again, so not changed",
    "~": "change",
    "+": "register",
}
"""What the sign before an instance means, in the order of the rows."""
_FOLDED = 3
"""Held rows with one text that are more than this are one row at a terminal."""
_IN_WORDS = {
    Result.FAILED: "failed",
    Result.HELD_BACK: "held back",
    Result.NOT_TRIED: "not tried",
    Result.CONFLICT: "conflict",
}


class Danger(IntEnum):
    """The order of the rows."""

    FAILED = 0
    HELD = 1
    CANCEL = 2
    DOWN = 3
    CONFLICT = 4
    UPDATE = 5
    REGISTER = 6


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
    danger: Danger = Danger.UPDATE

    def __post_init__(self) -> None:
        for name in ("app", "id", "status", "why", "syncer"):  # anybody may register any name
            object.__setattr__(self, name, printable(getattr(self, name)))


def rows_of(report: PassReport) -> list[Row]:
    """All rows of a pass, in their order."""
    return in_order(_rows(report))


def in_order(rows: Iterable[Row]) -> list[Row]:
    """By danger, then by app and instance."""
    return sorted(rows, key=_order)


def signs_in(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """The signs that these rows have, with their meaning."""
    found = {row.sign for row in rows}
    return [(sign, meaning) for sign, meaning in SIGNS.items() if sign in found]


def _order(row: Row) -> tuple[Danger, str, tuple[tuple[int, str], ...]]:
    return (row.danger, row.app, natural(row.id))


def folded(rows: Iterable[Row]) -> Iterator[Row]:
    """Held rows that say the same of one app and syncer as one row."""

    def alike(row: Row) -> tuple[Danger, str, str, str, str]:
        return (row.danger, row.app, row.syncer, row.status, row.why)

    for (danger, *_), group in groupby(rows, key=alike):
        same = list(group)
        if danger is Danger.HELD and len(same) > _FOLDED:
            yield replace(same[0], id=f"{len(same)} instances")
        else:
            yield from same


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """10.0.0.9 before 10.0.0.10. Of two numbers the longer one is greater: Python reads none of 5,000 digits."""
    parts = ((part.lstrip("0") if part.isdecimal() else None, part) for part in re.split(r"(\d+)", text))
    return tuple((-1, part) if digits is None else (len(digits), digits) for digits, part in parts)


def _rows(report: PassReport) -> Iterator[Row]:
    for action in report.plan.changes:
        if not (isinstance(action, Cancel) and action.was is None):
            yield _row(action, report.outcomes.by_key.get(action.key))
    for action in report.held.removals if report.held else ():
        yield _row(action, None, held=True)
    for blocked in report.plan.blocked:
        sign, style, danger = ("x", "magenta", Danger.CONFLICT) if blocked.conflict else ("?", "red", Danger.FAILED)
        yield Row(
            app=blocked.key.app,
            sign=sign,
            id=blocked.key.id,
            status="blocked",
            why=blocked.why,
            syncer=str(blocked.syncer),
            style=style,
            danger=danger,
        )


def _row(action: Action, outcome: Outcome | None, *, held: bool = False) -> Row:
    match action:
        case Register():
            sign, status, style, danger = "+", action.instance.status.value, "green", Danger.REGISTER
        case Update():
            becomes = action.instance.status
            kept = not (removes(action) or brings_up(action))
            status = becomes.value if kept else f"{action.was} > {becomes}"
            sign, style = "~", "green" if becomes is InstanceStatus.UP else "yellow"
            danger = Danger.DOWN if removes(action) else Danger.UPDATE
        case Cancel():
            sign, status, style, danger = "-", f"{action.was} > gone", "red", Danger.CANCEL
        case Renew():
            raise AssertionError(action)  # a renewal is no change
        case _:  # pragma: no cover
            assert_never(action)
    why = action.why
    if isinstance(action, Update):
        changed = [c for c in action.changes if c.field != "status"]
        if changed:
            why += "; " + ", ".join(f"{c.field}: {c.was or 'none'} > {c.becomes or 'none'}" for c in changed[:3])
            why += f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    if held:
        sign, style, why, danger = "=", "bold yellow", f"HELD: {why}", Danger.HELD
    if outcome is not None and (outcome.failed or outcome.result is Result.CONFLICT):
        sign, style, why = "!", "bold red", _trouble(outcome)
        danger = danger if outcome.result is Result.NOT_TRIED else Danger.FAILED
    return Row(
        app=action.key.app,
        sign=sign,
        id=action.key.id,
        status=status,
        why=why,
        syncer=str(action.syncer),
        style=style,
        danger=danger,
    )


def _trouble(outcome: Outcome) -> str:
    """What the server refuses to all alike is said once, in the sentence below the table."""
    if outcome.cause is Cause.DENIED:
        return f"{_IN_WORDS[outcome.result]}: see below"
    return f"{_IN_WORDS[outcome.result]}: {outcome.detail}"
