"""The reports of `explain`, `check`, `status`, `orphans` and `purge`: as lines or a table, and as
data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import yaml
from rich.console import Group, RenderableType
from rich.text import Text

from eurekube_sync.cli.output.table import Cell, Columns, Line, Next, row_of, rows_table, sign_of
from eurekube_sync.controller.look import Look
from eurekube_sync.explain.links import Explanation, Finding, Grade, Mark, Outcome
from eurekube_sync.explain.overview import Overview, Renewals, Row
from eurekube_sync.model.actions import Result
from eurekube_sync.model.eureka import LIST_LAG, ObservedInstance
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.wording import counted, one_or_more, rfc_3339, some_of, span
from eurekube_sync.owner.orphans import Fate, Orphans
from eurekube_sync.owner.purge import PurgeReport

_STYLES = {
    Outcome.REGISTERED: "bold green",
    Outcome.PARTLY: "bold yellow",
    Outcome.NOT_REGISTERED: "bold red",
    Outcome.UNKNOWN: "bold yellow",
}
_WARNING = Text("!", style="yellow")
_GRADES = {
    Grade.FAILED: (sign_of(Mark.BROKEN), "bold red"),
    Grade.WARNING: (_WARNING, "bold yellow"),
    Grade.OK: (sign_of(Mark.OK), "bold green"),
}
"""The sign and style of each grade, the worst first."""
_STATES = {
    Outcome.REGISTERED: (sign_of(Mark.OK), "inSync", "in sync"),
    Outcome.PARTLY: (_WARNING, "partly", "partly in sync"),
    Outcome.NOT_REGISTERED: (sign_of(Mark.BROKEN), "broken", "broken"),
    Outcome.UNKNOWN: (sign_of(Mark.UNKNOWN), "unknown", "unknown"),
}
"""The sign, the state in JSON, and the state in words."""
_HEADINGS = ("", "SYNCER", "APP", "READY", "STATE", "SINCE", "WHY")


def explanations_table(explained: Sequence[Explanation]) -> RenderableType:
    """Return a block for each syncer. Its last line is the answer."""
    parts: list[RenderableType] = []
    for index, one in enumerate(explained):
        parts += [Text("")] if index else []
        parts += [Line(f"{one.about}: {one.syncer}", style="bold")] if len(explained) > 1 else []
        for link in one.links:
            parts.append(Line(link.text, mark=sign_of(link.mark), indent=2))
            parts += [
                Line(detail, indent=4, style="" if link.broken else "dim")
                for detail in link.details
            ]
        parts.append(Line(one.sentence.removesuffix(".") + ".", style=_STYLES[one.outcome]))
        parts += [Next(one.fix)] if one.fix else []
        manifest = yaml.safe_dump(one.manifest, sort_keys=False) if one.manifest else ""
        parts += [Line(line, indent=2) for line in manifest.splitlines()]
    return Group(*parts)


def explanations_data(explained: Sequence[Explanation], look: Look) -> dict[str, Any]:
    return {
        **_installation_data(look),
        "explanations": [{**msgspec.to_builtins(one), "reason": one.reason} for one in explained],
    }


def _installation_data(look: Look) -> dict[str, Any]:
    return {
        "owner": look.owner or None,
        "cluster": look.identity.data if isinstance(look.identity, Complete) else None,
        "onlyNamespace": look.narrowed or None,
    }


def findings_table(found: Sequence[Finding]) -> RenderableType:
    """Return each finding with its fix, then the counts. A manifest that several findings share is
    shown once."""
    parts: list[RenderableType] = []
    shown: set[str] = set()
    for one in found:
        parts.append(Line(one.text, mark=_GRADES[one.grade][0]))
        parts += [Next(one.fix, indent=2)] if one.fix else []
        again = one.manifest and one.manifest in shown
        lines = ["the same lines as above"] if again else one.manifest.splitlines()
        parts += [Line(line, indent=4) for line in lines]
        parts += [Line(f"See {one.docs}", indent=2, style="dim")] if one.docs else []
        shown.add(one.manifest)
    worst = next(
        (style for grade, (_, style) in _GRADES.items() if any(f.grade is grade for f in found)),
        "bold green",
    )
    return Group(*parts, Text(_how_many(found), style=worst))


def findings_data(found: Sequence[Finding]) -> dict[str, Any]:
    findings = [{**msgspec.to_builtins(one), "docs": one.docs} for one in found]
    return {"summary": _how_many(found), "findings": findings}


def _how_many(found: Sequence[Finding]) -> str:
    grades = Counter(one.grade for one in found)
    parts = [f"{grades[Grade.FAILED]} failed"] if grades[Grade.FAILED] else []
    parts += [counted(grades[Grade.WARNING], "warning")] if grades[Grade.WARNING] else []
    return ", ".join([*parts, f"{counted(grades[Grade.OK], 'check')} ok"])


def overview_table(found: Overview, servers: Sequence[str], *, everything: bool) -> RenderableType:
    look = found.look
    head = [f"owner {look.owner}" if look.owner else "owner unknown"]
    head += [f"cluster {look.identity.data[:8]}"] if isinstance(look.identity, Complete) else []
    head += [f"only namespace {look.narrowed}"] if look.narrowed else []
    how = f"up, {look.list_seconds * 1000:.0f} ms" if found.eureka is None else "not read"
    head += [f"Eureka {' or '.join(servers)} {how}"] if servers else []
    parts: list[RenderableType] = [Line("  ".join(head)), Line(found.last_pass.text)]
    parts += [Line(text) for text in _renewals(found.renewals)]
    unread = [*([("Eureka", found.eureka)] if found.eureka else []), *found.unread]
    for name, source in unread:
        parts.append(
            Line(f"{name} could not be looked at: {source.message}", mark=sign_of(Mark.UNKNOWN))
        )
    parts += [
        Line(f"namespace {name} does not exist", mark=sign_of(Mark.BROKEN))
        for name in look.report.absent
    ]
    rows = [
        row
        for row in found.rows
        if everything or row.found.outcome is not Outcome.REGISTERED or row.why
    ]
    parts += [Columns([_cells(row, look.at) for row in rows], _HEADINGS)] if rows else []
    hidden = len(found.rows) - len(rows)
    parts += [Text(f"+ {hidden} in sync (-a shows them)", style="dim")] if hidden else []
    if names := found.unselected:
        services, are = (
            one_or_more(len(names), "Service", "Services"),
            one_or_more(len(names), "is", "are"),
        )
        text = f"{services} {some_of(names, 10)} {are} selected by no EurekaSyncer"
        parts.append(Line(text, mark=sign_of(Mark.NOTE)))
    return Group(*parts, Text(summary(found), style="bold"))


def _renewals(found: Renewals) -> Iterator[str]:
    """Say how old the renewals are of the instances that were read, and what was not."""
    if found.oldest is not None:
        read = (
            f"{counted(found.read, 'instance')} that {one_or_more(found.read, 'was', 'were')} read"
        )
        yield f"oldest renewal: {span(found.oldest)} ago, of {read}"
    if found.unread:
        syncers = counted(found.unread, "more syncer")
        yield (
            f"renewals of {syncers}: not read. Eureka's list may lack those of the last "
            f"{span(LIST_LAG)}"
        )


def _cells(row: Row, now: float) -> tuple[Cell, ...]:
    sign = _STATES[row.found.outcome][0]
    since = span(now - row.since) if row.since is not None else "-"
    up = row.found.up
    unread = f"?/{row.found.of}" if row.found.of else "-"
    return (
        (sign.plain, str(sign.style)),
        (str(row.syncer.ref), ""),
        (", ".join(row.found.apps[:2]) or "-", ""),
        (unread if up is None else f"{up}/{row.found.of}", ""),
        (row.reason, str(sign.style)),
        (f"{since:6}", ""),  # padded, so that the columns do not move with --watch
        (row.why, ""),
    )


def summary(found: Overview) -> str:
    """Return the counts of syncers by state, of instances and of removals, or that they are
    unknown."""
    if not found.rows and found.unlisted is not None:
        return "syncers unknown; instances unknown"
    counts = [(found.count(outcome), words) for outcome, (_, _, words) in _STATES.items()]
    states = ", ".join(f"{number} {words}" for number, words in counts if number)
    up = sum(row.found.up or 0 for row in found.rows)
    none = "no EurekaSyncer has that app or condition" if found.left_out else "no EurekaSyncer"
    parts = [f"{counted(len(found.rows), 'syncer')}: {states}" if found.rows else none]
    parts += ["other syncers unknown"] if found.unlisted is not None else []
    parts += [f"{counted(up, 'instance')} UP"] if found.eureka is None else ["instances unknown"]
    parts += [f"{counted(found.held, 'removal')} held"] if found.held else []
    parts += [f"{found.conflicts} in conflict"] if found.conflicts else []
    return "; ".join(parts)


def overview_data(found: Overview, servers: Sequence[str]) -> dict[str, Any]:
    """Return every syncer, with null for an unknown number."""
    renewals = found.renewals
    return {
        "summary": summary(found),
        "at": rfc_3339(found.look.at),
        **_installation_data(found.look),
        "eureka": {
            "servers": list(servers),
            "read": found.eureka is None,
            "message": found.eureka.message if found.eureka else None,
            "oldestRenewalSeconds": round(renewals.oldest) if renewals.oldest is not None else None,
            "renewalsRead": renewals.read,
            "renewalsNotRead": renewals.unread,
        },
        "lastPass": found.last_pass.text,
        "syncers": [
            {
                "syncer": str(row.syncer.ref),
                "state": _STATES[row.found.outcome][1],
                "reason": row.reason,
                "why": row.why,
                "apps": list(row.found.apps),
                "up": row.found.up,
                "desired": row.found.of,
                "since": rfc_3339(row.since) if row.since is not None else None,
            }
            for row in found.rows
        ],
        "absentNamespaces": list(found.look.report.absent),
        "unselectedServices": list(found.unselected),
        "held": found.held,
        "conflicts": found.conflicts,
        "unknown": [
            {"source": name, "cause": source.cause.value, "message": source.message}
            for name, source in found.unread
        ],
    }


_FATES = {Fate.CANCEL: "-", Fate.HOLD: "=", Fate.RENEW: "=", Fate.UPDATE: "~", Fate.EXPIRE: "="}


def orphans_table(orphans: Orphans) -> RenderableType:
    """Return each orphan with what `run` does with it, then what could not be read, then the
    summary."""
    rows = (
        row_of(
            one.instance.key,
            _FATES[one.fate],
            one.instance.status.value,
            one.why,
            syncer_of(one.instance),
        )
        for one in orphans.found
    )
    return rows_table(rows, orphans.unknown, orphans.summary)


def orphans_data(orphans: Orphans) -> dict[str, Any]:
    return {
        "summary": orphans.summary,
        "orphans": [
            {**_instance(one.instance), "run": one.fate.value, "why": one.why}
            for one in orphans.found
        ],
        "unknown": list(orphans.unknown),
    }


def purge_table(report: PurgeReport) -> RenderableType:
    """Return each instance that is cancelled, then the sentences, then the summary."""
    rows = []
    for purged in report.purged:
        instance = purged.instance
        sign, status, why = "-", f"{instance.status.value} > gone", purged.why
        if purged.failed:
            sign, status, why = "!", instance.status.value, purged.detail
        elif purged.result is Result.GONE:
            sign, status = " ", "gone"
        rows.append(row_of(instance.key, sign, status, why, syncer_of(instance)))
    return rows_table(rows, report.sentences, report.summary)


def purge_data(report: PurgeReport) -> dict[str, Any]:
    instances = []
    for purged in report.purged:
        result = purged.result.value if purged.result else None
        instances.append(
            {
                **_instance(purged.instance),
                "why": purged.why,
                "result": result,
                "detail": purged.detail,
            }
        )
    return {
        "command": "purge",
        "dryRun": report.dry_run,
        "summary": report.summary,
        "instances": instances,
        "messages": list(report.sentences),
    }


def _instance(one: ObservedInstance) -> dict[str, Any]:
    syncer = syncer_of(one)
    return {
        "app": one.key.app,
        "id": one.key.id,
        "status": one.status.value,
        "syncer": str(syncer) if syncer else None,
    }
