"""An explanation and the findings of a check as lines, a mark each, and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import yaml
from rich.console import Group, RenderableType
from rich.text import Text

from eurekube_sync.cli.output.lines import Line, Next, sign_of
from eurekube_sync.controller.look import Look
from eurekube_sync.explain.check.findings import Finding, Grade
from eurekube_sync.explain.links import Explanation, Mark, Outcome
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.wording import counted

_STYLES = {
    Outcome.REGISTERED: "bold green",
    Outcome.PARTLY: "bold yellow",
    Outcome.NOT_REGISTERED: "bold red",
    Outcome.UNKNOWN: "bold yellow",
}
_GRADES = {
    Grade.OK: (sign_of(Mark.OK), "bold green"),
    Grade.WARNING: (Text("!", style="yellow"), "bold yellow"),
    Grade.FAILED: (sign_of(Mark.BROKEN), "bold red"),
}


def explanations_table(explained: Sequence[Explanation]) -> RenderableType:
    """One block for each syncer; the last line of each is the answer."""
    parts: list[RenderableType] = []
    for index, one in enumerate(explained):
        parts += [Text("")] if index else []
        parts += list(_explanation(one, several=len(explained) > 1))
    return Group(*parts)


def _explanation(one: Explanation, *, several: bool) -> Iterator[RenderableType]:
    if several:
        yield Line(f"{one.about}: {one.syncer}", style="bold")
    for link in one.links:
        yield Line(link.text, mark=sign_of(link.mark), indent=2)
        yield from (Line(detail, indent=4, style="" if link.broken else "dim") for detail in link.details)
    end = "" if one.sentence.endswith(".") else "."
    yield Line(f"{one.sentence}{end}", style=_STYLES[one.outcome])
    if one.fix:
        yield Next(one.fix)
    if one.manifest:
        document = yaml.safe_dump(one.manifest, sort_keys=False).rstrip()
        yield from (Line(line, indent=2) for line in document.splitlines())


def explanations_data(explained: Sequence[Explanation], look: Look) -> dict[str, Any]:
    """The same as links with machine words, under the names of `Explanation` and `Link`."""
    identity = look.identity
    return {
        "owner": look.owner or None,
        "cluster": identity.data if isinstance(identity, Complete) else None,
        "onlyNamespace": look.narrowed or None,
        "explanations": [{**msgspec.to_builtins(one), "reason": one.reason} for one in explained],
    }


def findings_table(found: Sequence[Finding]) -> RenderableType:
    """A line each with what to do, and one that counts them. Lines to add that are the same stand there once."""
    parts: list[RenderableType] = []
    shown: set[str] = set()
    for one in found:
        parts += list(_finding(one, again=one.manifest in shown))
        shown.add(one.manifest)
    worst = next((grade for grade in (Grade.FAILED, Grade.WARNING) if any(f.grade is grade for f in found)), Grade.OK)
    return Group(*parts, Text(summary(found), style=_GRADES[worst][1]))


def _finding(one: Finding, *, again: bool) -> Iterator[RenderableType]:
    yield Line(one.text, mark=_GRADES[one.grade][0])
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
