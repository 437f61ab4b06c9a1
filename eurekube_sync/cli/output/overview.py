"""The state of all syncers, as a table and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from eurekube_sync.cli.output.lines import Line, sign_of
from eurekube_sync.cli.output.table import Cell, Columns
from eurekube_sync.explain.links import Mark
from eurekube_sync.explain.overview import Overview, Row, State
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.wording import counted, one_or_more, rfc_3339, span

_HEADINGS = ("", "SYNCER", "APP", "READY", "STATE", "SINCE", "WHY")
_MARKS = {State.BROKEN: Mark.BROKEN, State.PARTLY: Mark.BROKEN, State.UNKNOWN: Mark.UNKNOWN, State.IN_SYNC: Mark.OK}
_SHOWN = 10
"""Services that no syncer selects."""


def overview_table(found: Overview, servers: Sequence[str], *, everything: bool) -> RenderableType:
    """A line about the installation, the rows, and a line that counts them."""
    parts: list[RenderableType] = [Line(line) for line in _head(found, servers)]
    parts += [Line(text, mark=sign_of(Mark.UNKNOWN)) for text in _unknown(found)]
    parts += [Line(f"namespace {name} does not exist", mark=sign_of(Mark.BROKEN)) for name in found.look.report.absent]
    rows = [row for row in found.rows if everything or row.state is not State.IN_SYNC or row.why]
    parts += [Columns([_cells(row, found.look.at) for row in rows], _HEADINGS)] if rows else []
    hidden = len(found.rows) - len(rows)
    parts += [Text(f"+ {hidden} in sync (-a shows them)", style="dim")] if hidden else []
    parts += [Line(_unselected(found.unselected), mark=sign_of(Mark.NOTE))] if found.unselected else []
    return Group(*parts, Text(summary(found), style="bold"))


def _head(found: Overview, servers: Sequence[str]) -> Iterator[str]:
    look = found.look
    parts = [f"owner {look.owner}" if look.owner else "owner unknown"]
    parts += [f"cluster {look.identity.data[:8]}"] if isinstance(look.identity, Complete) else []
    parts += [f"only namespace {look.narrowed}"] if look.narrowed else []
    url = ", ".join(servers)
    parts += (
        [f"Eureka {url} {f'up, {look.list_seconds * 1000:.0f} ms' if found.eureka is None else 'not read'}"]
        if servers
        else []
    )
    yield "  ".join(parts)
    yield found.last_pass.text
    if found.oldest_lease is not None:
        yield f"oldest renewal: {span(found.oldest_lease)} ago"


def _unselected(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    services, are = one_or_more(len(names), "Service", "Services"), one_or_more(len(names), "is", "are")
    return f"{services} {', '.join(names[:_SHOWN])}{more} {are} selected by no EurekaSyncer"


def _unknown(found: Overview) -> Iterator[str]:
    if found.eureka is not None:
        yield f"Eureka could not be looked at: {found.eureka.message}"
    for name, source in found.unread:
        yield f"{name} could not be looked at: {source.message}"


def summary(found: Overview) -> str:
    """How many there are, and how they are; no more than was seen."""
    if not found.rows and found.unlisted is not None:
        return "syncers unknown; instances unknown"
    counts = [
        (found.count(State.IN_SYNC), "in sync"),
        (found.count(State.PARTLY), "partly in sync"),
        (found.count(State.BROKEN), "broken"),
        (found.count(State.UNKNOWN), "unknown"),
    ]
    told = ", ".join(f"{number} {what}" for number, what in counts if number)
    up = sum(row.up or 0 for row in found.rows)
    none = "no EurekaSyncer has that app or condition" if found.left_out else "no EurekaSyncer"
    parts = [counted(len(found.rows), "syncer") + (f": {told}" if told else "")] if found.rows else [none]
    parts += ["other syncers unknown"] if found.unlisted is not None else []
    parts += [f"{counted(up, 'instance')} UP"] if found.eureka is None else ["instances unknown"]
    parts += [f"{found.held} held"] if found.held else []
    parts += [f"{found.conflicts} in conflict"] if found.conflicts else []
    return "; ".join(parts)


def _cells(row: Row, now: float) -> tuple[Cell, ...]:
    sign = sign_of(_MARKS[row.state])
    since = span(now - row.since) if row.since is not None else "-"
    return (
        (sign.plain, str(sign.style)),
        (str(row.syncer.ref), ""),
        (printable(", ".join(row.apps[:2])) or "-", ""),
        (row.ready, ""),
        (row.reason, str(sign.style)),
        (f"{since:6}", ""),  # a table that is watched stands still
        (printable(row.why), ""),
    )


def overview_data(found: Overview, servers: Sequence[str]) -> dict[str, Any]:
    """The same with every syncer; keys are camelCase, a number is null while it is unknown."""
    look = found.look
    return {
        "summary": summary(found),
        "at": rfc_3339(look.at),
        "owner": look.owner or None,
        "cluster": look.identity.data if isinstance(look.identity, Complete) else None,
        "onlyNamespace": look.narrowed or None,
        "eureka": {
            "servers": list(servers),
            "read": found.eureka is None,
            "message": found.eureka.message if found.eureka else None,
            "oldestRenewalSeconds": round(found.oldest_lease) if found.oldest_lease is not None else None,
        },
        "lastPass": found.last_pass.text,
        "syncers": [_row_data(row) for row in found.rows],
        "absentNamespaces": list(look.report.absent),
        "unselectedServices": list(found.unselected),
        "held": found.held,
        "conflicts": found.conflicts,
        "unknown": [
            {"source": name, "cause": source.cause.value, "message": source.message} for name, source in found.unread
        ],
    }


def _row_data(row: Row) -> dict[str, Any]:
    return {
        "syncer": str(row.syncer.ref),
        "state": row.state.value,
        "reason": row.reason,
        "why": row.why,
        "apps": list(row.apps),
        "up": row.up,
        "desired": row.of,
        "since": rfc_3339(row.since) if row.since is not None else None,
    }
