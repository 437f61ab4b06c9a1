"""The reports of `explain`, `check`, `status`, `orphans` and `purge`: as lines or a table, and as
data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import yaml
from rich.console import Group, RenderableType
from rich.text import Text

from eurekube_sync.cli.output.report import hold_data
from eurekube_sync.cli.output.table import (
    Cell,
    Columns,
    Line,
    Next,
    marked,
    row_of,
    rows_table,
    sign_of,
)
from eurekube_sync.controller.look import Look
from eurekube_sync.explain.links import Explanation, Finding, Grade, Mark, Outcome
from eurekube_sync.explain.overview import ImportRow, Overview, Renewals, Row
from eurekube_sync.model.actions import Result
from eurekube_sync.model.eureka import LIST_LAG, ObservedInstance
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.text import (
    counted,
    one_or_more,
    rfc_3339,
    some_of,
    span,
)
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
_IMPORT_HEADINGS = ("", "IMPORT", "APP", "READY", "STATE", "SINCE", "WHY")


def explanations_table(explained: Sequence[Explanation], dropped: Sequence[str]) -> RenderableType:
    """Return what an older CRD drops, then a block for each syncer. Its last line is the answer."""
    parts: list[RenderableType] = [Line(text, mark=_WARNING) for text in dropped]
    for index, explanation in enumerate(explained):
        if index:
            parts.append(Text(""))
        if len(explained) > 1:
            parts.append(Line(f"{explanation.about}: {explanation.syncer}", style="bold"))
        parts += _explanation(explanation)
    return Group(*parts)


def _explanation(explanation: Explanation) -> Iterator[RenderableType]:
    for link in explanation.links:
        yield Line(link.text, mark=sign_of(link.mark), indent=2)
        for detail in link.details:
            yield Line(detail, indent=4, style="" if link.broken else "dim")
    yield Line(f"{explanation.sentence}.", style=_STYLES[explanation.outcome])
    if explanation.fix:
        yield Next(explanation.fix)
    if explanation.otherwise:
        yield Next(explanation.otherwise, word="Or")
    if explanation.docs:
        yield Line(f"See {explanation.docs}", style="dim")
    if explanation.manifest:
        manifest = yaml.safe_dump(explanation.manifest, sort_keys=False)
        for line in manifest.splitlines():
            yield Line(line, indent=2)


def explanations_data(
    explained: Sequence[Explanation], look: Look, dropped: Sequence[str]
) -> dict[str, Any]:
    explanations = []
    for explanation in explained:
        explanations.append(
            {
                **msgspec.to_builtins(explanation),
                "reason": explanation.reason,
                "docs": explanation.docs,
            }
        )
    return {
        **_installation_data(look),
        "droppedByCrd": list(dropped),
        "explanations": explanations,
    }


def _installation_data(look: Look) -> dict[str, Any]:
    return {
        "owner": look.owner or None,
        "cluster": look.identity.data if isinstance(look.identity, Complete) else None,
        "onlyNamespace": look.narrowed or None,
    }


def findings_table(findings: Sequence[Finding]) -> RenderableType:
    """Return each finding with its fix, then the counts. A manifest that several findings share is
    shown once."""
    parts: list[RenderableType] = []
    shown: set[str] = set()
    for finding in findings:
        sign, _ = _GRADES[finding.grade]
        parts.append(Line(finding.text, mark=sign))
        if finding.fix:
            parts.append(Next(finding.fix, indent=2))
        lines = finding.manifest.splitlines()
        if lines and finding.manifest in shown:
            lines = ["the same lines as above"]
        shown.add(finding.manifest)
        parts += [Line(line, indent=4) for line in lines]
        if finding.docs:
            parts.append(Line(f"See {finding.docs}", indent=2, style="dim"))
    counts = Counter(finding.grade for finding in findings)
    worst = min(counts, key=list(_GRADES).index, default=Grade.OK)
    _, style = _GRADES[worst]
    return Group(*parts, Text(_how_many(counts), style=style))


def findings_data(findings: Sequence[Finding]) -> dict[str, Any]:
    counts = Counter(finding.grade for finding in findings)
    data = [{**msgspec.to_builtins(finding), "docs": finding.docs} for finding in findings]
    return {"summary": _how_many(counts), "findings": data}


def _how_many(counts: Mapping[Grade, int]) -> str:
    parts = []
    if failed := counts[Grade.FAILED]:
        parts.append(f"{failed} failed")
    if warnings := counts[Grade.WARNING]:
        parts.append(counted(warnings, "warning"))
    return ", ".join([*parts, f"{counted(counts[Grade.OK], 'check')} ok"])


def overview_table(found: Overview, servers: Sequence[str], *, everything: bool) -> RenderableType:
    """Return what the look found: the installation, a table each of syncers and imports, and the
    counts."""
    parts: list[RenderableType] = [Line(_head(found, servers)), Line(found.last_pass.text)]
    if found.failing is not None:
        parts.append(Line(found.failing.sentence, mark=_WARNING))
    parts += [Line(text) for text in _renewals(found.renewals)]
    parts += _not_seen(found)
    parts += [Line(text, mark=_WARNING) for text in found.dropped]
    parts += [marked(problem.sentence) for problem in found.problems]
    parts += _tables(found, everything=everything)
    names = found.unselected
    if names:
        number = len(names)
        services = f"{one_or_more(number, 'Service', 'Services')} {some_of(names, 10)}"
        text = f"{services} {one_or_more(number, 'is', 'are')} selected by no EurekaSyncer"
        parts.append(Line(text, mark=sign_of(Mark.NOTE)))
    return Group(*parts, Text(summary(found), style="bold"))


def _not_seen(found: Overview) -> Iterator[Line]:
    """Yield what could not be read, and the namespaces that do not exist."""
    unread = [(failed.name, failed.source) for failed in found.unread]
    if found.eureka is not None:
        unread.insert(0, ("Eureka", found.eureka))
    for name, source in unread:
        text = f"{name} could not be looked at: {source.message}"
        if source is found.eureka and found.reached:
            text = f"{text}. {found.reached}"
        yield Line(text, mark=sign_of(Mark.UNKNOWN))
    for name in found.look.report.absent:
        yield Line(f"namespace {name} does not exist", mark=sign_of(Mark.BROKEN))


def _tables(found: Overview, *, everything: bool) -> Iterator[RenderableType]:
    """Yield the rows of syncers and of imports, the worst first, and the help for the first. Rows
    in order are counted, unless `everything`."""
    now = found.look.at
    syncers = []
    for row in found.rows:
        if everything or row.explanation.outcome is not Outcome.REGISTERED or row.why:
            syncers.append(_cells(row, now))
    imports = []
    for import_row in found.imports:
        if everything or import_row.explanation.outcome is not Outcome.REGISTERED:
            imports.append(_import_cells(import_row, now))
    if syncers:
        yield Columns(syncers, _HEADINGS)
    if imports:
        yield Columns(imports, _IMPORT_HEADINGS)
    all_rows: list[Row | ImportRow] = [*found.rows, *found.imports]
    for shown in all_rows:
        if shown.explanation.broken is not None:
            yield Text(f"eurekube-sync help {shown.reason} says what to do", style="dim")
            break
    hidden = len(all_rows) - len(syncers) - len(imports)
    if hidden:
        yield Text(f"+ {hidden} in sync (-a shows them)", style="dim")


def _head(found: Overview, servers: Sequence[str]) -> str:
    """Return the owner, the cluster and the servers."""
    look = found.look
    head = ["owner unknown"]
    if look.owner:
        head = [f"owner {look.owner}"]
    if isinstance(look.identity, Complete):
        head.append(f"cluster {look.identity.data[:8]}")
    if look.narrowed:
        head.append(f"only namespace {look.narrowed}")
    if servers:
        how = f"up, {look.list_seconds * 1000:.0f} ms" if found.eureka is None else "not read"
        head.append(f"Eureka {' or '.join(servers)} {how}")
    return "  ".join(head)


def _renewals(found: Renewals) -> Iterator[str]:
    """Say how old the renewals are of the instances that were read, and what was not."""
    if found.oldest is not None:
        read = f"that {one_or_more(found.read, 'was', 'were')} read"
        yield f"oldest renewal: {span(found.oldest)} ago, of {counted(found.read, 'instance')} {read}"
    if found.unread:
        syncers = counted(found.unread, "more syncer")
        yield (
            f"renewals of {syncers}: not read. Eureka's list may lack those of the last "
            f"{span(LIST_LAG)}"
        )


def _cells(row: Row, now: float) -> tuple[Cell, ...]:
    sign = _STATES[row.explanation.outcome][0]
    up, of = row.explanation.up, row.desired
    ready = f"{up}/{of}"
    if up is None:
        ready = f"?/{of}" if of else "-"
    return (
        (sign.plain, str(sign.style)),
        (str(row.syncer.ref), ""),
        (", ".join(row.apps[:2]) or "-", ""),
        (ready, ""),
        (row.reason, str(sign.style)),
        (_age(row.since, now), ""),
        (row.why, ""),
    )


def _age(since: float | None, now: float) -> str:
    age = span(now - since) if since is not None else "-"
    return f"{age:6}"  # padded, so that the columns do not move with --watch


def _import_cells(row: ImportRow, now: float) -> tuple[Cell, ...]:
    found = row.explanation
    sign = _STATES[found.outcome][0]
    ready = "-" if found.up is None else f"{found.up}/{found.of}"
    return (
        (sign.plain, str(sign.style)),
        (found.about, ""),
        (", ".join(found.apps) or "-", ""),
        (ready, ""),
        (row.reason, str(sign.style)),
        (_age(row.since, now), ""),
        (found.sentence, ""),
    )


def summary(found: Overview) -> str:
    """Return the counts of syncers by state, of instances and of removals, or that they are
    unknown."""
    if not found.rows and found.unlisted is not None:
        return "syncers unknown; instances unknown"
    states = []
    for outcome, (_, _, words) in _STATES.items():
        number = found.count(outcome)
        if number:
            states.append(f"{number} {words}")
    parts = ["no EurekaSyncer"]
    if found.rows:
        parts = [f"{counted(len(found.rows), 'syncer')}: {', '.join(states)}"]
    elif found.left_out:
        parts = ["no EurekaSyncer has that app or condition"]
    if found.unlisted is not None:
        parts.append("other syncers unknown")
    if found.eureka is None:
        up = sum(row.explanation.up or 0 for row in found.rows)
        parts.append(f"{counted(up, 'instance')} UP")
    else:
        parts.append("instances unknown")
    if found.imports:
        callable_ = found.count_imports(Outcome.REGISTERED)
        parts.append(f"{counted(len(found.imports), 'import')}: {callable_} callable")
    if found.held:
        parts.append(f"{counted(found.held, 'removal')} held")
    if found.conflicts:
        parts.append(f"{found.conflicts} in conflict")
    return "; ".join(parts)


def overview_data(found: Overview, servers: Sequence[str]) -> dict[str, Any]:
    """Return every syncer, with null for an unknown number."""
    renewals = found.renewals
    unknown = []
    for failed in found.unread:
        source = failed.source
        unknown.append(
            {"source": failed.name, "cause": source.cause.value, "message": source.message}
        )
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
        "failingPasses": found.failing.sentence if found.failing is not None else None,
        "syncers": [_row_data(row) for row in found.rows],
        "imports": [_import_data(row) for row in found.imports],
        "absentNamespaces": list(found.look.report.absent),
        "droppedByCrd": list(found.dropped),
        "unselectedServices": list(found.unselected),
        "held": found.held,
        "hold": None if found.look.narrowed else hold_data(found.look.report),
        "conflicts": found.conflicts,
        "unknown": unknown,
    }


def _row_data(row: Row) -> dict[str, Any]:
    _, state, _ = _STATES[row.explanation.outcome]
    return {
        "syncer": str(row.syncer.ref),
        "state": state,
        "reason": row.reason,
        "why": row.why,
        "apps": list(row.apps),
        "up": row.explanation.up,
        "desired": row.desired,
        "since": rfc_3339(row.since) if row.since is not None else None,
    }


def _import_data(row: ImportRow) -> dict[str, Any]:
    found = row.explanation
    _, state, _ = _STATES[found.outcome]
    return {
        "import": found.about,
        "state": state,
        "reason": row.reason,
        "why": found.sentence,
        "apps": list(found.apps),
        "written": found.up,
        "wanted": found.of,
        "since": rfc_3339(row.since) if row.since is not None else None,
    }


_FATES = {Fate.CANCEL: "-", Fate.HOLD: "=", Fate.RENEW: "=", Fate.UPDATE: "~"}


def orphans_table(orphans: Orphans) -> RenderableType:
    """Return each orphan with what `run` does with it, then what could not be read, then the
    summary."""
    rows = []
    for orphan in orphans.found:
        instance, sign = orphan.instance, _FATES[orphan.fate]
        status, syncer = instance.status.value, syncer_of(instance)
        rows.append(row_of(instance.key, sign, status, orphan.why, syncer))
    return rows_table(rows, (*orphans.slices, *orphans.unknown), orphans.summary)


def orphans_data(orphans: Orphans) -> dict[str, Any]:
    data = []
    for orphan in orphans.found:
        instance = _instance(orphan.instance)
        data.append({**instance, "run": orphan.fate.value, "why": orphan.why})
    return {
        "summary": orphans.summary,
        "orphans": data,
        "slices": list(orphans.slices),
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


def _instance(observed: ObservedInstance) -> dict[str, Any]:
    syncer = syncer_of(observed)
    return {
        "app": observed.key.app,
        "id": observed.key.id,
        "status": observed.status.value,
        "syncer": str(syncer) if syncer else None,
    }
