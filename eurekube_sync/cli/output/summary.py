"""The one line of a pass. It says no more than was seen."""

from __future__ import annotations

from collections.abc import Sequence

from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import NotServed
from eurekube_sync.model.actions import Action, Cancel, Register, Result, Update, brings_up, removes
from eurekube_sync.model.kubernetes import ConditionStatus
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.kubernetes import unknown_sources, unread
from eurekube_sync.plan import Obstacle


def summary(report: PassReport) -> str:
    if not report.dry_run:
        return _done(report)
    servers = ["Eureka"] if isinstance(report.registry, Unknown) else []
    servers += ["Kubernetes"] if report.view and isinstance(report.view.identity, Unknown) else []
    if servers:
        return f"dry run incomplete: {' and '.join(servers)} could not be read, so changes are unknown"
    changes = _counted(report.plan.actions, ("to register", "to update", "to turn UP", "to turn DOWN", "to cancel"))
    if not changes and report.desired is not None:
        changes = ["nothing to change"]
    plan = ", ".join([*changes, f"{len(report.plan.renewals)} to renew"]) + _troubles(report)
    if doubts := _doubts(report):
        return f"dry run incomplete: {' and '.join(doubts)}, so not all changes are known; known: {plan}"
    return f"dry run: {plan}"


def renewed(report: PassReport) -> int:
    """How many leases were renewed, in the pass and since the one before."""
    return report.outcomes.renewed + report.renewed_between


def not_tried(report: PassReport) -> int:
    """How many actions the pass did not come to."""
    return report.outcomes.count(Result.NOT_TRIED) + sum(blocked.late for blocked in report.plan.blocked)


def _done(report: PassReport) -> str:
    troubles, outcomes = _troubles(report), report.outcomes
    did = [o.action for o in outcomes.others if o.result is Result.DONE]
    parts = _counted(did, ("registered", "updated", "turned UP", "turned DOWN", "cancelled"))
    if not parts and report.view is not None:  # else nothing was compared
        conditions = [status.condition("Synced") for status in report.all_statuses.values()]
        synced = bool(conditions) and all(one and one.status is ConditionStatus.TRUE for one in conditions)
        parts = ["in sync" if synced and not troubles else "nothing changed"]
    again = outcomes.count(Result.REGISTERED_AGAIN)
    parts += [f"{again} registered again"] if again else []
    return ", ".join([*parts, f"{renewed(report)} renewed"]) + troubles


def _doubts(report: PassReport) -> list[str]:
    """Why there may be more to do than is planned."""
    doubts = ["part of Kubernetes could not be read"] if any(unknown_sources(report.view)) else []
    again = sum(blocked.obstacle is Obstacle.UNREAD for blocked in report.plan.blocked)
    doubts += [f"{counted(again, 'instance')} could not be read again"] if again else []
    return doubts + (["its time ended before everything was read"] if report.cut_short else [])


def _counted(actions: Sequence[Action], words: Sequence[str]) -> list[str]:
    """How many register, update, turn UP, turn DOWN and cancel, in these words."""
    updates = [action for action in actions if isinstance(action, Update)]
    up, down = (sum(map(turns, updates)) for turns in (brings_up, removes))
    cancels = sum(isinstance(action, Cancel) and action.was is not None for action in actions)
    registers = sum(isinstance(action, Register) for action in actions)
    numbers = (registers, len(updates) - up - down, up, down, cancels)
    return [f"{number} {word}" for number, word in zip(numbers, words, strict=True) if number]


def _troubles(report: PassReport) -> str:
    blocked, outcomes = report.plan.blocked, report.outcomes
    not_served = sum(isinstance(c, NotServed) for c in report.desired.claims.values()) if report.desired else 0
    sources = len(list(unread(report.view)))
    found = [
        (len(report.held.removals) if report.held else 0, "held"),
        (len(outcomes.failures) - outcomes.count(Result.NOT_TRIED), "failed"),
        (not_tried(report), "not tried"),
        (sum(b.obstacle is Obstacle.UNREAD and not b.late for b in blocked), "not read again"),
        (sum(b.conflict for b in blocked) + outcomes.count(Result.CONFLICT), "in conflict"),
        (not_served, f"{one_or_more(not_served, 'syncer', 'syncers')} not served"),
    ]
    shown = [f"{count} {what}" for count, what in found if count]
    shown += ["Eureka not readable"] if isinstance(report.registry, Unknown) else []
    shown += [f"{counted(sources, 'source')} of Kubernetes not readable"] if sources else []
    return f"; {', '.join(shown)}" if shown else ""
