"""A pass as plain data, for `-o json` and `-o yaml`: the same plan that the table shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eurekube_sync import __version__
from eurekube_sync.cli.output.summary import renewed, summary
from eurekube_sync.cli.output.syncers import syncers_data
from eurekube_sync.cli.output.words import sentences
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.actions import Action, Cancel, Register, Renew, Update, removes
from eurekube_sync.model.outcomes import Result
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.wording import rfc_3339
from eurekube_sync.observe.kubernetes import unread
from eurekube_sync.observe.self_preservation import Headroom
from eurekube_sync.plan import removal_id

API_VERSION = "eurekube.io/report/v1"
"""Of the report: a key that goes, or means something else, makes it v2. New keys may come."""


def as_data(
    report: PassReport,
    code: ExitCode,
    notices: Sequence[str] = (),
    headroom: Headroom | None = None,
    *,
    with_renewals: bool = False,
) -> dict[str, Any]:
    """The pass as dictionaries, lists, texts and numbers; keys are camelCase, as Kubernetes and Eureka write them.
    docs/report.schema.json describes it.

    What was merely renewed is a count, unless it is asked for: it would fill a log."""
    return {
        "apiVersion": API_VERSION,
        "version": __version__,
        "dryRun": report.dry_run,
        "owner": report.owner,
        "cluster": report.cluster,
        "at": rfc_3339(report.at),
        "exitCode": int(code),
        "summary": summary(report),
        "planId": _plan_id(report),
        "actions": [
            _action(action, report)
            for action in report.plan.actions
            if with_renewals or not _merely_renewed(action, report)
        ],
        "renewals": {"planned": len(report.plan.renewals), "done": renewed(report)},
        "blocked": [
            {"app": b.key.app, "id": b.key.id, "syncer": str(b.syncer), "why": b.why, "conflict": b.conflict}
            for b in report.plan.blocked
        ],
        "holds": [
            {"reason": hold.reason.value, "why": hold.why, "count": len(hold.removals)}
            for hold in (report.held.holds if report.held else ())
        ],
        "held": [_action(action, report) for action in (report.held.removals if report.held else ())],
        "syncers": syncers_data(report),
        "unknown": [
            {"source": name, "cause": source.cause.value, "message": source.message}
            for name, source in _unknown(report)
        ],
        "eurekaBatch": {"enabled": report.batching.on, "why": report.batching.why} if report.batching else None,
        "selfPreservation": _headroom(headroom) if headroom else None,
        "messages": [*notices, *sentences(report)],
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


def _plan_id(report: PassReport) -> str | None:
    """What `--approve` takes; None when nothing would be removed."""
    if report.held is not None:
        return report.held.plan_id
    return removal_id(report.plan.actions) if report.plan.removals else None


def _unknown(report: PassReport) -> list[tuple[str, Unknown]]:
    registry = [("Eureka", report.registry)] if isinstance(report.registry, Unknown) else []
    return [*registry, *unread(report.view)]


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
            data["changes"] = [{"field": c.field, "was": c.was, "becomes": c.becomes} for c in action.changes]
        case Cancel():
            data["was"] = action.was.value if action.was else None
            data["grounds"] = action.grounds.value
        case Renew():
            data["status"] = action.status.value if action.status else None
    if outcome is not None:
        data["result"] = outcome.result.value
        data["detail"] = outcome.detail
    return data
