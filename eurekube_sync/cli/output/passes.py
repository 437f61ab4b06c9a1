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
from eurekube_sync.model.eureka import RENEWAL_INTERVAL
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
    if passes.many and not (passes.daemon and passes.interval > RENEWAL_INTERVAL):
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
        rows = _changed_rows(report, began)
        lines = _lines(gathered(began) if at_terminal else began)
        lines += _over(news.ended)
        if not rows and not lines and 0 <= report.at - self._summed < _SUMMARY_SECONDS:
            return None
        self._summed = report.at
        diff: list[RenderableType] = []
        if rows:
            diff.append(Diff(rows))
        return Group(*diff, *lines, Text(summary(report), style="bold"))


def _changed_rows(report: PassReport, began: Iterable[Problem]) -> list[Row]:
    """Return the rows of what was done, and those of a hold that began."""
    rows = rows_of(report)
    changed = [row for row in rows if row.danger not in _STANDING and row.sign != "!"]
    if any(problem.reason is Reason.REMOVAL_HELD for problem in began):
        changed += folded(row for row in rows if row.danger is Danger.HELD)
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
    return Group(*parts, Text(summary(report), style="bold"))


def pass_markdown(report: PassReport) -> str:
    """Return the report for a comment on a pull request. Similar held rows are joined;
    registrations are collapsed.

    Only registrations are cut, and the last line of their table says how many.
    """
    rows = list(folded(rows_of(report)))
    dangerous = [row for row in rows if row.danger is not Danger.REGISTER]
    registrations = [row for row in rows if row.danger is Danger.REGISTER]
    lines = [f"### eurekube-sync: {_text(summary(report))}", ""]
    if dangerous:
        lines += [*_markdown_table(dangerous), ""]
    if registrations:
        left = _MOST_CHARACTERS - sum(map(len, lines))
        lines += [f"<details><summary>{len(registrations)} to register</summary>", ""]
        lines += [*_markdown_table(registrations, left), "", "</details>", ""]
    shown = problems(report, with_rows=True)
    if shown:
        lines += [f"- {_text(problem.sentence)}" for problem in gathered(shown)]
        lines.append("")
    if rows:
        lines += [", ".join(f"`{sign}` {meaning}" for sign, meaning in signs_in(rows)), ""]
    owner = f"owner `{report.settings.owner}`"
    if report.cluster:
        owner += f", cluster {_text(report.cluster)}"
    lines.append(f"{owner}, {rfc_3339(report.at)}, eurekube-sync {__version__}")
    return "\n".join(lines) + "\n"


def _markdown_table(rows: Sequence[Row], most: float = inf) -> Iterator[str]:
    """Return the rows that fit into `most` characters, and the number of the others."""
    yield "| | app | instance | status | why | syncer |"
    yield "|---|---|---|---|---|---|"
    used = 0
    for number, row in enumerate(rows):
        cells = map(_text, (row.app, row.id, row.status, row.why, row.syncer))
        line = f"| `{row.sign}` | {' | '.join(cells)} |"
        used += len(line) + 1
        if used > most:
            yield f"\n... and {len(rows) - number} more; `-o json` has them all"
            return
        yield line


def _text(words: str) -> str:
    """Escape a text, so that it becomes no markup, link or mention."""
    escaped = _MARKUP.sub(r"\\\1", printable(words).replace("&", "&amp;"))
    return _LINK.sub("\u200b", escaped)


def as_data(
    report: PassReport, code: ExitCode, room: Headroom | None = None, *, with_renewals: bool = False
) -> dict[str, Any]:
    """Return the report by docs/report.schema.json. Successful renewals are only counted, unless
    `with_renewals`."""
    plan, batching = report.plan, report.batching
    actions: list[dict[str, Any]] = []
    for action in plan.actions:
        if with_renewals or not _merely_renewed(action, report):
            actions.append(_action(action, report))
    holds: list[dict[str, Any]] = []
    held: list[dict[str, Any]] = []
    plan_id = None  # what --approve takes
    if report.held is not None:
        plan_id = report.held.plan_id
        for removal in report.held.removals:
            assert isinstance(removal, Update | Cancel)  # an import's are not in the plan
            held.append(_action(removal, report))
        for hold in report.held.holds:
            count = len(hold.removals)
            holds.append({"reason": hold.reason.value, "why": hold.text, "count": count})
    elif plan.removals:
        plan_id = removal_id(plan.removals)
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
        "eurekaBatch": {"enabled": batching.on, "why": batching.why} if batching else None,
        "selfPreservation": _headroom(room) if room else None,
        "messages": sentences(report),
    }


def imports_of(report: PassReport) -> dict[str, Any] | None:
    """Return what the pass did for imports; None if they are off."""
    if report.imports is None:
        return None
    endpoints = []
    for change in report.imports.plan.changes:
        endpoints.append(
            {
                "action": type(change).__name__.lower(),
                "import": str(change.import_),
                "endpoint": str(change.socket),
                "why": change.why,
            }
        )
    held = report.imports.held
    holds = []
    if held:
        for hold in held.holds:
            count = len(hold.removals)
            holds.append({"reason": hold.reason.value, "why": hold.text, "count": count})
    return {
        "planId": held.plan_id if held else None,
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
    sources = [(kubernetes.name, kubernetes.source) for kubernetes in unread_of(report)]
    if isinstance(report.registry, Unknown):
        sources.insert(0, ("Eureka", report.registry))
    for name, source in sources:
        yield {"source": name, "cause": source.cause.value, "message": source.message}


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
    outcome = report.outcomes.by_key.get(action.key)
    return isinstance(action, Renew) and (outcome is None or outcome.result is Result.DONE)


def _action(action: Action, report: PassReport) -> dict[str, Any]:
    outcome = report.outcomes.by_key.get(action.key)
    data: dict[str, Any] = {
        "action": type(action).__name__.lower(),
        "app": action.key.app,
        "id": action.key.id,
        "syncer": str(action.syncer) if action.syncer else None,
        "why": action.why,
        "removal": removes(action),
    }
    match action:
        case Register():
            data["status"] = action.instance.status.value
        case Update():
            data["status"] = action.instance.status.value
            data["changes"] = [
                {"field": change.field, "was": change.was, "becomes": change.becomes}
                for change in action.changes
            ]
        case Cancel():
            data["was"] = action.was.value if action.was else None
            data["grounds"] = action.grounds.value
        case Renew():
            data["status"] = action.status.value if action.status else None
    if outcome is not None:
        data["result"] = outcome.result.value
        data["detail"] = outcome.detail
    return data
