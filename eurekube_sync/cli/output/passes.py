"""The report of a pass: as a table, as Markdown and as data."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, TypeAlias

from rich.console import Group, RenderableType
from rich.text import Text

from eurekube_sync import __version__
from eurekube_sync.cli.options.passes import Passes
from eurekube_sync.cli.options.report import ReportForm
from eurekube_sync.cli.output.report import (
    gathered,
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
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.actions import Action, Cancel, Register, Renew, Result, Update, removes
from eurekube_sync.model.eureka import RENEWAL_INTERVAL
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.wording import rfc_3339
from eurekube_sync.observe.eureka import Headroom, headroom, interval_of
from eurekube_sync.observe.kubernetes import unread
from eurekube_sync.plan.value import removal_id

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


def reporter(form: ReportForm, passes: Passes) -> Reporter:
    """Return the function that reports a pass.

    After the first pass that could read Eureka, it also warns if renewals are too rare for Eureka's
    self-preservation.
    """
    # A daemon also renews between its passes. A single pass does not know when the next one runs.
    alone = not passes.many or (passes.daemon and passes.interval > RENEWAL_INTERVAL)
    renewed_every = (
        RENEWAL_INTERVAL if alone else interval_of(passes.interval, slack=passes.renewal_slack)
    )
    warned = False

    def report_pass(report: PassReport, code: ExitCode) -> None:
        nonlocal warned
        room = None
        if isinstance(report.registry, Complete):
            room = headroom(report.registry.data, renewed_every)
            if room.blocks_eviction and not warned:
                warned = True
                log.warning("%s", room.warning)
        form.write(
            lambda: pass_table(report, at_terminal=form.at_terminal),
            lambda: as_data(report, code, room, with_renewals=form.verbose),
            lambda: pass_markdown(report),
            one_of_many=passes.many,
        )

    return report_pass


def pass_table(report: PassReport, *, at_terminal: bool = False) -> RenderableType:
    """Return the diff, then the sentences, then the summary.

    At a terminal, similar rows and sentences are joined and a long list of registrations is cut.
    Elsewhere each instance and each syncer has a line.
    """
    rows, shown = rows_of(report), problems(report, with_rows=True)
    more = 0
    if at_terminal:
        rows, shown = list(folded(rows)), list(gathered(shown))
        more = max(0, sum(row.danger is Danger.REGISTER for row in rows) - _MOST_REGISTRATIONS)
    parts: list[RenderableType] = [Diff(rows[: len(rows) - more])] if rows else []
    parts += (
        [Text(f"... and {more} more to register; -o json has them all", style="dim")]
        if more
        else []
    )
    if rows and at_terminal:
        parts.append(
            Text("   ".join(f"{sign} {meaning}" for sign, meaning in signs_in(rows)), style="dim")
        )
    for problem in shown:
        if problem.note:
            parts.append(Line(problem.sentence, mark=Text("i", style="cyan")))
        else:
            parts.append(marked(problem.sentence))
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
    lines += [*_markdown_table(dangerous), ""] if dangerous else []
    if registrations:
        left = _MOST_CHARACTERS - sum(map(len, lines))
        lines += [f"<details><summary>{len(registrations)} to register</summary>", ""]
        lines += [*_markdown_table(registrations, left), "", "</details>", ""]
    shown = gathered(problems(report, with_rows=True))
    bullets = [f"- {_text(problem.sentence)}" for problem in shown]
    lines += [*bullets, ""] if bullets else []
    legend = ", ".join(f"`{sign}` {meaning}" for sign, meaning in signs_in(rows))
    lines += [legend, ""] if legend else []
    cluster = f", cluster {_text(report.cluster)}" if report.cluster else ""
    lines += [
        f"owner `{report.settings.owner}`{cluster}, {rfc_3339(report.at)}, eurekube-sync "
        f"{__version__}"
    ]
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
    plan, held, batching = report.plan, report.held, report.batching
    actions = (
        plan.actions
        if with_renewals
        else [one for one in plan.actions if not _merely_renewed(one, report)]
    )
    plan_id = None  # what --approve takes
    if held or plan.removals:
        plan_id = held.plan_id if held else removal_id(plan.actions)
    eureka = [("Eureka", report.registry)] if isinstance(report.registry, Unknown) else []
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
        "actions": [_action(action, report) for action in actions],
        "renewals": {"planned": len(plan.renewals), "done": renewed(report)},
        "blocked": [
            {
                "app": b.key.app,
                "id": b.key.id,
                "syncer": str(b.syncer),
                "why": b.why,
                "conflict": b.conflict,
            }
            for b in plan.blocked
        ],
        "holds": [
            {"reason": hold.reason.value, "why": hold.text, "count": len(hold.removals)}
            for hold in (held.holds if held else ())
        ],
        "held": [_action(action, report) for action in (held.removals if held else ())],
        "syncers": list(syncers_data(report)),
        "unknown": [
            {"source": name, "cause": source.cause.value, "message": source.message}
            for name, source in (*eureka, *unread(report.view))
        ],
        "eurekaBatch": {"enabled": batching.on, "why": batching.why} if batching else None,
        "selfPreservation": _headroom(room) if room else None,
        "messages": sentences(report),
    }


def _headroom(found: Headroom) -> dict[str, Any]:
    return {
        "ours": found.ours,
        "others": found.others,
        "renewalIntervalSeconds": found.interval,
        "renewalsPerMinute": found.renewals,
        "expectedPerMinute": found.expected,
        "threshold": found.threshold,
        "blocksEviction": found.blocks_eviction,
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
                {"field": c.field, "was": c.was, "becomes": c.becomes} for c in action.changes
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
