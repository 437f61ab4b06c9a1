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
    """Yield each link of the chain, then the answer, and what to do."""
    for link in explanation.links:
        yield Line(link.text, mark=sign_of(link.mark), indent=2)
        style = "dim"
        if link.broken:
            style = ""
        for detail in link.details:
            yield Line(detail, indent=4, style=style)
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
        data = msgspec.to_builtins(explanation)
        data["reason"] = explanation.reason
        data["docs"] = explanation.docs
        explanations.append(data)
    return {
        **_installation_data(look),
        "droppedByCrd": list(dropped),
        "explanations": explanations,
    }


def _installation_data(look: Look) -> dict[str, Any]:
    cluster = None
    if isinstance(look.identity, Complete):
        cluster = look.identity.data
    return {
        "owner": look.owner or None,
        "cluster": cluster,
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
    worst = Grade.OK
    for grade in reversed(_GRADES):
        if counts[grade]:
            worst = grade
    _, style = _GRADES[worst]
    parts.append(Text(_how_many(counts), style=style))
    return Group(*parts)


def findings_data(findings: Sequence[Finding]) -> dict[str, Any]:
    counts = Counter(finding.grade for finding in findings)
    all_data = []
    for finding in findings:
        data = msgspec.to_builtins(finding)
        data["docs"] = finding.docs
        all_data.append(data)
    return {"summary": _how_many(counts), "findings": all_data}


def _how_many(counts: Mapping[Grade, int]) -> str:
    parts = []
    failed = counts[Grade.FAILED]
    if failed:
        parts.append(f"{failed} failed")
    warnings = counts[Grade.WARNING]
    if warnings:
        parts.append(counted(warnings, "warning"))
    checks = counted(counts[Grade.OK], "check")
    parts.append(f"{checks} ok")
    return ", ".join(parts)


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
    if found.unselected:
        parts.append(_unselected(found.unselected))
    parts.append(Text(summary(found), style="bold"))
    return Group(*parts)


def _unselected(services: Sequence[str]) -> Line:
    """Name the Services that no syncer selects."""
    number = len(services)
    noun = one_or_more(number, "Service", "Services")
    verb = one_or_more(number, "is", "are")
    names = some_of(services, 10)
    text = f"{noun} {names} {verb} selected by no EurekaSyncer"
    return Line(text, mark=sign_of(Mark.NOTE))


def _not_seen(found: Overview) -> Iterator[Line]:
    """Yield what could not be read, and the namespaces that do not exist."""
    unknown = sign_of(Mark.UNKNOWN)
    if found.eureka is not None:
        text = f"Eureka could not be looked at: {found.eureka.message}"
        if found.reached:
            text = f"{text}. {found.reached}"
        yield Line(text, mark=unknown)
    for failed in found.unread:
        text = f"{failed.name} could not be looked at: {failed.source.message}"
        yield Line(text, mark=unknown)
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
            # The worst is first: it has the reason to begin with.
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
        cluster = look.identity.data
        head.append(f"cluster {cluster[:8]}")
    if look.narrowed:
        head.append(f"only namespace {look.narrowed}")
    if servers:
        names = " or ".join(servers)
        state = "not read"
        if found.eureka is None:
            milliseconds = look.list_seconds * 1000
            state = f"up, {milliseconds:.0f} ms"
        head.append(f"Eureka {names} {state}")
    return "  ".join(head)


def _renewals(found: Renewals) -> Iterator[str]:
    """Say how old the renewals are of the instances that were read, and what was not."""
    if found.oldest is not None:
        age = span(found.oldest)
        instances = counted(found.read, "instance")
        verb = one_or_more(found.read, "was", "were")
        yield f"oldest renewal: {age} ago, of {instances} that {verb} read"
    if found.unread:
        syncers = counted(found.unread, "more syncer")
        lag = span(LIST_LAG)
        yield f"renewals of {syncers}: not read. Eureka's list may lack those of the last {lag}"


def _cells(row: Row, now: float) -> tuple[Cell, ...]:
    up = row.explanation.up
    ready = f"{up}/{row.desired}"
    if up is None and row.desired:
        ready = f"?/{row.desired}"
    elif up is None:
        ready = "-"
    name = str(row.syncer.ref)
    return _with_state(row, now, name=name, apps=row.apps[:2], ready=ready, why=row.why)


def _import_cells(row: ImportRow, now: float) -> tuple[Cell, ...]:
    found = row.explanation
    ready = "-"
    if found.up is not None:
        ready = f"{found.up}/{found.of}"
    why = found.sentence
    return _with_state(row, now, name=found.about, apps=found.apps, ready=ready, why=why)


def _with_state(
    row: Row | ImportRow, now: float, *, name: str, apps: Sequence[str], ready: str, why: str
) -> tuple[Cell, ...]:
    """Return the cells under `_HEADINGS`."""
    sign, _, _ = _STATES[row.explanation.outcome]
    style = str(sign.style)
    age = "-"
    if row.since is not None:
        age = span(now - row.since)
    return (
        (sign.plain, style),
        (name, ""),
        (", ".join(apps) or "-", ""),
        (ready, ""),
        (row.reason, style),
        (f"{age:6}", ""),  # padded, so that the columns do not move with --watch
        (why, ""),
    )


def summary(found: Overview) -> str:
    """Return the counts of syncers by state, of instances and of removals, or that they are
    unknown."""
    if not found.rows and found.unlisted is not None:
        return "syncers unknown; instances unknown"
    parts = [_syncers(found)]
    if found.unlisted is not None:
        parts.append("other syncers unknown")
    if found.eureka is None:
        up = sum(row.explanation.up or 0 for row in found.rows)
        instances = counted(up, "instance")
        parts.append(f"{instances} UP")
    else:
        parts.append("instances unknown")
    if found.imports:
        imports = counted(len(found.imports), "import")
        number_callable = found.count_imports(Outcome.REGISTERED)
        parts.append(f"{imports}: {number_callable} callable")
    if found.held:
        removals = counted(found.held, "removal")
        parts.append(f"{removals} held")
    if found.conflicts:
        parts.append(f"{found.conflicts} in conflict")
    return "; ".join(parts)


def _syncers(found: Overview) -> str:
    """Count the shown syncers by their state."""
    if not found.rows:
        if found.left_out:
            return "no EurekaSyncer has that app or condition"
        return "no EurekaSyncer"
    states = []
    for outcome, (_, _, words) in _STATES.items():
        number = found.count(outcome)
        if number:
            states.append(f"{number} {words}")
    syncers = counted(len(found.rows), "syncer")
    by_state = ", ".join(states)
    return f"{syncers}: {by_state}"


def overview_data(found: Overview, servers: Sequence[str]) -> dict[str, Any]:
    """Return every syncer, with null for an unknown number."""
    unknown = []
    for failed in found.unread:
        source = failed.source
        unknown.append(
            {"source": failed.name, "cause": source.cause.value, "message": source.message}
        )
    failing = None
    if found.failing is not None:
        failing = found.failing.sentence
    hold = None
    if not found.look.narrowed:
        hold = hold_data(found.look.report)
    return {
        "summary": summary(found),
        "at": rfc_3339(found.look.at),
        **_installation_data(found.look),
        "eureka": _eureka_data(found, servers),
        "lastPass": found.last_pass.text,
        "failingPasses": failing,
        "syncers": [_row_data(row) for row in found.rows],
        "imports": [_import_data(row) for row in found.imports],
        "absentNamespaces": list(found.look.report.absent),
        "droppedByCrd": list(found.dropped),
        "unselectedServices": list(found.unselected),
        "held": found.held,
        "hold": hold,
        "conflicts": found.conflicts,
        "unknown": unknown,
    }


def _eureka_data(found: Overview, servers: Sequence[str]) -> dict[str, Any]:
    """Return what is known of Eureka and of the renewals there."""
    message = None
    if found.eureka is not None:
        message = found.eureka.message
    oldest = None
    if found.renewals.oldest is not None:
        oldest = round(found.renewals.oldest)
    return {
        "servers": list(servers),
        "read": found.eureka is None,
        "message": message,
        "oldestRenewalSeconds": oldest,
        "renewalsRead": found.renewals.read,
        "renewalsNotRead": found.renewals.unread,
    }


def _since_data(row: Row | ImportRow) -> str | None:
    if row.since is None:
        return None
    return rfc_3339(row.since)


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
        "since": _since_data(row),
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
        "since": _since_data(row),
    }


_FATES = {Fate.CANCEL: "-", Fate.HOLD: "=", Fate.RENEW: "=", Fate.UPDATE: "~"}


def orphans_table(orphans: Orphans) -> RenderableType:
    """Return each orphan with what `run` does with it, then what could not be read, then the
    summary."""
    rows = []
    for orphan in orphans.found:
        instance = orphan.instance
        sign = _FATES[orphan.fate]
        status = instance.status.value
        rows.append(row_of(instance.key, sign, status, orphan.why, syncer_of(instance)))
    see_to = [*orphans.slices, *orphans.unknown]
    return rows_table(rows, see_to, orphans.summary)


def orphans_data(orphans: Orphans) -> dict[str, Any]:
    data = []
    for orphan in orphans.found:
        instance = _instance(orphan.instance)
        instance["run"] = orphan.fate.value
        instance["why"] = orphan.why
        data.append(instance)
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
        was = instance.status.value
        sign = "-"
        status = f"{was} > gone"
        why = purged.why
        if purged.failed:
            sign = "!"
            status = was
            why = purged.detail
        elif purged.result is Result.GONE:
            # Eureka had it no more when it was to be cancelled.
            sign = " "
            status = "gone"
        rows.append(row_of(instance.key, sign, status, why, syncer_of(instance)))
    return rows_table(rows, report.sentences, report.summary)


def purge_data(report: PurgeReport) -> dict[str, Any]:
    instances = []
    for purged in report.purged:
        instance = _instance(purged.instance)
        instance["why"] = purged.why
        instance["result"] = None
        if purged.result is not None:
            instance["result"] = purged.result.value
        instance["detail"] = purged.detail
        instances.append(instance)
    return {
        "command": "purge",
        "dryRun": report.dry_run,
        "summary": report.summary,
        "instances": instances,
        "messages": list(report.sentences),
    }


def _instance(observed: ObservedInstance) -> dict[str, Any]:
    syncer = syncer_of(observed)
    name = None
    if syncer is not None:
        name = str(syncer)
    return {
        "app": observed.key.app,
        "id": observed.key.id,
        "status": observed.status.value,
        "syncer": name,
    }
