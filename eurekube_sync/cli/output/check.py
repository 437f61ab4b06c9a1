"""What a check found, as lines and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from eurekube_sync.cli.output.lines import Line, Next, sign_of
from eurekube_sync.explain.check.findings import Finding, Grade
from eurekube_sync.explain.links import Mark
from eurekube_sync.model.wording import counted

_STYLES = {Grade.OK: "bold green", Grade.WARNING: "bold yellow", Grade.FAILED: "bold red"}


def findings_table(found: Sequence[Finding]) -> RenderableType:
    """A line each with what to do, and one that counts them. Lines to add that are the same stand there once."""
    parts: list[RenderableType] = []
    shown: set[str] = set()
    for one in found:
        parts += list(_lines(one, again=one.manifest in shown))
        shown.add(one.manifest)
    worst = next((grade for grade in (Grade.FAILED, Grade.WARNING) if any(f.grade is grade for f in found)), Grade.OK)
    return Group(*parts, Text(summary(found), style=_STYLES[worst]))


def _lines(one: Finding, *, again: bool) -> Iterator[RenderableType]:
    sign = {Grade.OK: sign_of(Mark.OK), Grade.WARNING: Text("!", style="yellow"), Grade.FAILED: sign_of(Mark.BROKEN)}[
        one.grade
    ]
    yield Line(one.text, mark=sign)
    if one.fix:
        yield Next(one.fix, indent=2)
    lines = ["the same lines as above"] if again and one.manifest else one.manifest.splitlines()
    yield from (Line(line, indent=4) for line in lines)
    if one.docs:
        yield Line(f"See {one.docs}", indent=2, style="dim")


def summary(found: Sequence[Finding]) -> str:
    """How many there are of each grade."""
    failed, warned = (sum(one.grade is grade for one in found) for grade in (Grade.FAILED, Grade.WARNING))
    fine = counted(len(found) - failed - warned, "check")
    parts = [f"{failed} failed"] if failed else []
    parts += [counted(warned, "warning")] if warned else []
    return ", ".join([*parts, f"{fine} ok"])


def findings_data(found: Sequence[Finding]) -> dict[str, Any]:
    """The same, under the names of `Finding`."""
    return {
        "summary": summary(found),
        "findings": [{**msgspec.to_builtins(one), "docs": one.docs} for one in found],
    }
