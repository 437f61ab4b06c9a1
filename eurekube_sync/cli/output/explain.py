"""An explanation as lines, a mark each, and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import yaml
from rich.console import Group, RenderableType
from rich.text import Text

from eurekube_sync.cli.output.lines import Line, Next, sign_of
from eurekube_sync.controller.look import Look
from eurekube_sync.explain.links import Explanation, Outcome
from eurekube_sync.model.sources import Complete

_STYLES = {
    Outcome.REGISTERED: "bold green",
    Outcome.PARTLY: "bold yellow",
    Outcome.NOT_REGISTERED: "bold red",
    Outcome.UNKNOWN: "bold yellow",
}


def explanations_table(explained: Sequence[Explanation]) -> RenderableType:
    """One block for each syncer; the last line of each is the answer."""
    parts: list[RenderableType] = []
    for index, one in enumerate(explained):
        parts += [Text("")] if index else []
        parts += list(_lines(one, several=len(explained) > 1))
    return Group(*parts)


def _lines(one: Explanation, *, several: bool) -> Iterator[RenderableType]:
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
