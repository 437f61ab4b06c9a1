"""The report of a pass: as a table, as Markdown and as data."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Any, TypeAlias

from rich.console import Group, RenderableType
from rich.text import Text

from eurekube_sync import __version__
from eurekube_sync.brake.holds import Held
from eurekube_sync.cli.options.passes import Passes
from eurekube_sync.cli.options.report import ReportForm
from eurekube_sync.cli.output.report import (
    gathered,
    hold_data,
    imports_data,
    problems,
    renewed,
    sentences,
    summary,
    syncers_data,
)
from eurekube_sync.cli.output.table import (
    Danger,
    Diff,
    Line,
    Row,
    folded,
    marked,
    rows_of,
    signs_in,
)
from eurekube_sync.controller.changes import Ended, Standing
from eurekube_sync.controller.diagnosis import unread_of
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.actions import Action, Cancel, Register, Renew, Result, Update, removes
from eurekube_sync.model.eureka import RENEWAL_INTERVAL, InstanceStatus
from eurekube_sync.model.problems import Problem
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sanitize import printable
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.text import rfc_3339
from eurekube_sync.observe.eureka import Headroom, headroom, interval_of
from eurekube_sync.plan.value import Blocked, removal_id

Reporter: TypeAlias = Callable[[PassReport, ExitCode], None]
log = logging.getLogger(__name__)

API_VERSION = "eurekube.io/report/v1"
"""The version of the data. It becomes v2 if a key is removed or changes its meaning, but not if a
key is added."""
_MOST_REGISTRATIONS = 200  # rows at a terminal; all other rows are always shown
_MOST_CHARACTERS = 60_000  # of the rows: GitHub refuses a comment of more than 65,536 characters
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#!~])")
_LINK = re.compile(r"(?<=@)|(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
"""The places where a zero-width space prevents a mention or a link."""


_SUMMARY_SECONDS = 3600.0  # from one summary of a daemon to the next, if nothing changes


def reporter(
    form: ReportForm, passes: Passes, wants_all: Callable[[], bool] = lambda: False
) -> Reporter:
    """Return the function that reports a pass. In the table of a daemon each change is told once;
    it shows all again if `wants_all` says so.

    After the first pass that could read Eureka, it also warns if renewals are too rare for Eureka's
    self-preservation.
    """
    # A daemon also renews between its passes. A single pass does not know when the next one runs.
    renewed_every: float = RENEWAL_INTERVAL
    renews_between = passes.daemon and passes.interval > RENEWAL_INTERVAL
    if passes.many and not renews_between:
        renewed_every = interval_of(passes.interval, slack=passes.renewal_slack)
    warned = False
    changes = None
    if passes.daemon and form.output == "table" and not form.verbose:
        changes = ChangesOnly(wants_all)

    def report_pass(report: PassReport, code: ExitCode) -> None:
        nonlocal warned
        room = None
        if isinstance(report.registry, Complete):
            room = headroom(report.registry.data, renewed_every)
            if room.blocks_eviction and not warned:
                warned = True
                log.warning("%s", room.warning)
        table: RenderableType | None = None
        if changes is not None:
            table = changes.table(report, at_terminal=form.at_terminal)
            if table is None:
                return
        form.write(
            lambda: table or pass_table(report, at_terminal=form.at_terminal),
            lambda: as_data(report, code, room, with_renewals=form.verbose),
            lambda: pass_markdown(report),
            one_of_many=passes.many,
        )

    return report_pass


class ChangesOnly:
    """What a daemon prints: all of its first pass, and then only what changes. A problem is told
    when it begins and when it is over. Outages of whole servers are in the log already."""

    def __init__(self, wants_all: Callable[[], bool]) -> None:
        self._standing = Standing()
        self._wants_all = wants_all
        self._summed = -inf  # when the last summary was printed, in Unix seconds

    def table(self, report: PassReport, *, at_terminal: bool) -> RenderableType | None:
        """Return what to print of this pass; None for nothing."""
        standing = problems(report, with_rows=False)
        news = self._standing.note(report, standing)
        if self._summed == -inf or self._wants_all():
            self._summed = report.at
            return pass_table(report, at_terminal=at_terminal)
        began = [problem for problem in news.began if not problem.source]
        told: Iterable[Problem] = began
        if at_terminal:
            told = gathered(began)
        lines = [*_lines(told), *_over(news.ended)]
        rows = _changed_rows(report, began)
        since_summary = report.at - self._summed
        summed_lately = 0 <= since_summary < _SUMMARY_SECONDS  # below 0, the clock was put back
        if summed_lately and not rows and not lines:
            return None
        self._summed = report.at
        parts: list[RenderableType] = []
        if rows:
            parts.append(Diff(rows))
        return Group(*parts, *lines, Text(summary(report), style="bold"))


def _changed_rows(report: PassReport, began: Iterable[Problem]) -> list[Row]:
    """Return the rows of what was done, and those of a hold that began."""
    changed: list[Row] = []
    held: list[Row] = []
    for row in rows_of(report):
        if row.danger is Danger.HELD:
            held.append(row)
        elif row.danger not in _STANDING and row.sign != "!":
            changed.append(row)
    if any(problem.reason is Reason.REMOVAL_HELD for problem in began):
        changed += folded(held)
    return changed


def _over(ended: Iterable[Ended]) -> Iterator[Line]:
    for end in ended:
        if not end.problem.source:
            yield Line(end.sentence, mark=Text("i", style="cyan"))


_STANDING = frozenset({Danger.HELD, Danger.CONFLICT, Danger.FAILED})
"""Rows that come again in each pass, and whose problems are told."""


def _lines(shown: Iterable[Problem]) -> list[RenderableType]:
    """Return a line for each problem."""
    lines: list[RenderableType] = []
    for problem in shown:
        if problem.note:
            lines.append(Line(problem.sentence, mark=Text("i", style="cyan")))
        else:
            lines.append(marked(problem.sentence))
    return lines


def pass_table(report: PassReport, *, at_terminal: bool = False) -> RenderableType:
    """Return the diff, then the sentences, then the summary.

    At a terminal, similar rows and sentences are joined and a long list of registrations is cut.
    Elsewhere each instance and each syncer has a line.
    """
    rows = rows_of(report)
    shown = problems(report, with_rows=True)
    more = 0
    if at_terminal:
        rows = list(folded(rows))
        shown = list(gathered(shown))
        registrations = sum(row.danger is Danger.REGISTER for row in rows)
        more = max(0, registrations - _MOST_REGISTRATIONS)
    parts: list[RenderableType] = []
    if rows:
        parts.append(Diff(rows[: len(rows) - more]))
    if more:
        parts.append(Text(f"... and {more} more to register; -o json has them all", style="dim"))
    if rows and at_terminal:
        signs = [f"{sign} {meaning}" for sign, meaning in signs_in(rows)]
        parts.append(Text("   ".join(signs), style="dim"))
    parts += _lines(shown)
    parts.append(Text(summary(report), style="bold"))
    return Group(*parts)


def pass_markdown(report: PassReport) -> str:
    """Return the report for a comment on a pull request. Similar held rows are joined;
    registrations are collapsed.

    Only registrations are cut, and the last line of their table says how many.
    """
    rows = list(folded(rows_of(report)))
    dangerous: list[Row] = []
    registrations: list[Row] = []
    for row in rows:
        if row.danger is Danger.REGISTER:
            registrations.append(row)
        else:
            dangerous.append(row)
    heading = _text(summary(report))
    lines = [f"### eurekube-sync: {heading}", ""]
    if dangerous:
        lines += _markdown_table(dangerous)
        lines.append("")
    if registrations:
        left = _MOST_CHARACTERS - sum(len(line) for line in lines)
        lines += [f"<details><summary>{len(registrations)} to register</summary>", ""]
        lines += _markdown_table(registrations, left)
        lines += ["", "</details>", ""]
    shown = problems(report, with_rows=True)
    if shown:
        for problem in gathered(shown):
            sentence = _text(problem.sentence)
            lines.append(f"- {sentence}")
        lines.append("")
    if rows:
        signs = [f"`{sign}` {meaning}" for sign, meaning in signs_in(rows)]
        lines += [", ".join(signs), ""]
    lines.append(_made_by(report))
    return "\n".join(lines) + "\n"


def _made_by(report: PassReport) -> str:
    """Return whose pass it was, and when."""
    owner = f"owner `{report.settings.owner}`"
    if report.cluster:
        cluster = _text(report.cluster)
        owner = f"{owner}, cluster {cluster}"
    at = rfc_3339(report.at)
    return f"{owner}, {at}, eurekube-sync {__version__}"


def _markdown_table(rows: Sequence[Row], most: float = inf) -> Iterator[str]:
    """Return the rows that fit into `most` characters, and the number of the others."""
    yield "| | app | instance | status | why | syncer |"
    yield "|---|---|---|---|---|---|"
    used = 0
    for number, row in enumerate(rows):
        texts = (row.app, row.id, row.status, row.why, row.syncer)
        cells = " | ".join(_text(text) for text in texts)
        line = f"| `{row.sign}` | {cells} |"
        used += len(line) + 1  # with its line break
        if used > most:
            more = len(rows) - number
            yield f"\n... and {more} more; `-o json` has them all"
            return
        yield line


def _text(words: str) -> str:
    """Escape a text, so that it becomes no markup, link or mention."""
    shown = printable(words)
    without_entities = shown.replace("&", "&amp;")
    without_markup = _MARKUP.sub(r"\\\1", without_entities)
    return _LINK.sub("\u200b", without_markup)


def as_data(
    report: PassReport, code: ExitCode, room: Headroom | None = None, *, with_renewals: bool = False
) -> dict[str, Any]:
    """Return the report by docs/report.schema.json. Successful renewals are only counted, unless
    `with_renewals`."""
    plan = report.plan
    actions: list[dict[str, Any]] = []
    for action in plan.actions:
        if with_renewals or not _merely_renewed(action, report):
            actions.append(_action(action, report))
    holds: list[dict[str, Any]] = []
    held: list[dict[str, Any]] = []
    plan_id = None  # what --approve takes
    if report.held is not None:
        plan_id = report.held.plan_id
        holds += _holds(report.held)
        for removal in report.held.removals:
            assert isinstance(removal, Update | Cancel)  # an import's are not in the plan
            held.append(_action(removal, report))
    elif plan.removals:
        plan_id = removal_id(plan.removals)
    batching = None
    if report.batching is not None:
        batching = {"enabled": report.batching.on, "why": report.batching.why}
    self_preservation = None
    if room is not None:
        self_preservation = _headroom(room)
    return {
        "apiVersion": API_VERSION,
        "version": __version__,
        "dryRun": report.settings.dry_run,
        "owner": report.settings.owner,
        "cluster": report.cluster,
        "at": rfc_3339(report.at),
        "exitCode": int(code),
        "summary": summary(report),
        "planId": plan_id,
        "actions": actions,
        "renewals": {"planned": len(plan.renewals), "done": renewed(report)},
        "blocked": [_blocked(blocked) for blocked in plan.blocked],
        "holds": holds,
        "hold": hold_data(report),
        "held": held,
        "syncers": list(syncers_data(report)),
        "imports": imports_of(report),
        "unknown": list(_unknown(report)),
        "eurekaBatch": batching,
        "selfPreservation": self_preservation,
        "messages": sentences(report),
    }


def _holds(held: Held) -> Iterator[dict[str, Any]]:
    """Yield each reason for which removals are held."""
    for hold in held.holds:
        count = len(hold.removals)
        yield {"reason": hold.reason.value, "why": hold.text, "count": count}


def imports_of(report: PassReport) -> dict[str, Any] | None:
    """Return what the pass did for imports; None if they are off."""
    if report.imports is None:
        return None
    endpoints = []
    for change in report.imports.plan.changes:
        kind = type(change).__name__
        endpoints.append(
            {
                "action": kind.lower(),
                "import": str(change.import_),
                "endpoint": str(change.socket),
                "why": change.why,
            }
        )
    plan_id = None
    holds: list[dict[str, Any]] = []
    held = report.imports.held
    if held is not None:
        plan_id = held.plan_id
        holds += _holds(held)
    return {
        "planId": plan_id,
        "endpoints": endpoints,
        "holds": holds,
        "imports": list(imports_data(report)),
    }


def _blocked(blocked: Blocked) -> dict[str, Any]:
    return {
        "app": blocked.key.app,
        "id": blocked.key.id,
        "syncer": str(blocked.syncer),
        "why": blocked.why,
        "conflict": blocked.conflict,
    }


def _unknown(report: PassReport) -> Iterator[dict[str, Any]]:
    """Yield each source that could not be read, Eureka first."""
    if isinstance(report.registry, Unknown):
        yield _unread("Eureka", report.registry)
    for failed in unread_of(report):
        yield _unread(failed.name, failed.source)


def _unread(name: str, source: Unknown) -> dict[str, Any]:
    return {"source": name, "cause": source.cause.value, "message": source.message}


def _headroom(room: Headroom) -> dict[str, Any]:
    return {
        "ours": room.ours,
        "others": room.others,
        "renewalIntervalSeconds": room.interval,
        "renewalsPerMinute": room.renewals,
        "expectedPerMinute": room.expected,
        "threshold": room.threshold,
        "blocksEviction": room.blocks_eviction,
    }


def _merely_renewed(action: Action, report: PassReport) -> bool:
    if not isinstance(action, Renew):
        return False
    outcome = report.outcomes.by_key.get(action.key)
    return outcome is None or outcome.result is Result.DONE


def _action(action: Action, report: PassReport) -> dict[str, Any]:
    kind = type(action).__name__
    syncer = None
    if action.syncer is not None:
        syncer = str(action.syncer)
    data: dict[str, Any] = {
        "action": kind.lower(),
        "app": action.key.app,
        "id": action.key.id,
        "syncer": syncer,
        "why": action.why,
        "removal": removes(action),
    }
    match action:
        case Register():
            data["status"] = action.instance.status.value
        case Update():
            data["status"] = action.instance.status.value
            changes = []
            for change in action.changes:
                changes.append(
                    {"field": change.field, "was": change.was, "becomes": change.becomes}
                )
            data["changes"] = changes
        case Cancel():
            data["was"] = _value(action.was)
            data["grounds"] = action.grounds.value
        case Renew():
            data["status"] = _value(action.status)
    outcome = report.outcomes.by_key.get(action.key)
    if outcome is not None:
        data["result"] = outcome.result.value
        data["detail"] = outcome.detail
    return data


def _value(status: InstanceStatus | None) -> str | None:
    if status is None:
        return None
    return status.value
