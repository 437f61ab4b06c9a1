"""The one line of a pass. It says no more than was seen."""

from __future__ import annotations

from collections.abc import Iterator

from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import Frozen
from eurekube_sync.model.actions import Cancel, Register, Renew, Update, brings_up, withdraws
from eurekube_sync.model.kubernetes import ConditionStatus
from eurekube_sync.model.outcomes import Result
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.wording import counted
from eurekube_sync.observe.kubernetes import unknown_sources, unread
from eurekube_sync.plan import Obstacle


def summary(report: PassReport) -> str:
    if not report.dry_run:
        return _done(report)
    if unseen := _unseen(report):
        return f"dry run incomplete: {unseen} could not be read, so changes are unknown"
    plan = ", ".join(_planned(report)) + _troubles(report)
    if doubts := _doubts(report):
        return f"dry run incomplete: {' and '.join(doubts)}, so not all changes are known; known: {plan}"
    return f"dry run: {plan}"


def _unseen(report: PassReport) -> str:
    """Without which nothing can be said."""
    unseen = ["Eureka"] if isinstance(report.registry, Unknown) else []
    unseen += ["Kubernetes"] if report.view and isinstance(report.view.identity, Unknown) else []
    return " and ".join(unseen)


def _doubts(report: PassReport) -> list[str]:
    """Why there may be more to do than is planned."""
    doubts = ["part of Kubernetes could not be read"] if any(unknown_sources(report.view)) else []
    again = sum(blocked.obstacle is Obstacle.UNREAD for blocked in report.plan.blocked)
    doubts += [f"{counted(again, 'instance')} could not be read again"] if again else []
    return doubts + (["its time was over before all was read"] if report.cut_short else [])


def _planned(report: PassReport) -> list[str]:
    plan = report.plan
    up, down = (sum(map(turns, plan.of(Update))) for turns in (brings_up, withdraws))
    counts = [
        (len(plan.of(Register)), "to register"),
        (len(plan.of(Update)) - up - down, "to update"),
        (up, "to turn UP"),
        (down, "to turn DOWN"),
        (sum(action.was is not None for action in plan.of(Cancel)), "to cancel"),
    ]
    changes = [f"{number} {todo}" for number, todo in counts if number]
    compared = report.desired is not None
    return [*(changes or (["nothing to change"] if compared else [])), f"{len(plan.of(Renew))} to renew"]


def _done(report: PassReport) -> str:
    troubles, outcomes = _troubles(report), report.outcomes
    renewed = sum(isinstance(o.action, Renew) and o.result is Result.DONE for o in outcomes.by_key.values())
    healed = outcomes.count(Result.HEALED)
    parts = [f"{number} {done}" for number, done in _changes(report) if number]
    if not parts and report.view is not None:  # else nothing was compared
        parts = ["in sync" if _in_sync(report) and not troubles else "nothing changed"]
    parts += [f"{healed} registered again"] if healed else []
    parts.append(f"{renewed + report.renewed_between} renewed")
    return f"{', '.join(parts)}{troubles}"


def _changes(report: PassReport) -> Iterator[tuple[int, str]]:
    done = [o.action for o in report.outcomes.by_key.values() if o.result is Result.DONE]
    yield sum(isinstance(a, Register) for a in done), "registered"
    yield sum(isinstance(a, Update) and not brings_up(a) and not withdraws(a) for a in done), "updated"
    yield sum(isinstance(a, Update) and brings_up(a) for a in done), "turned UP"
    yield sum(isinstance(a, Update) and withdraws(a) for a in done), "turned DOWN"
    yield sum(isinstance(a, Cancel) and a.was is not None for a in done), "cancelled"


def _in_sync(report: PassReport) -> bool:
    """Whether Eureka holds what the cluster says, of every syncer."""
    conditions = [status.condition("Synced") for status in report.standings.values()]
    return bool(conditions) and all(one is not None and one.status is ConditionStatus.TRUE for one in conditions)


def _troubles(report: PassReport) -> str:
    blocked = report.plan.blocked
    not_served = sum(isinstance(c, Frozen) for c in report.desired.claims.values()) if report.desired else 0
    sources = len(list(unread(report.view)))
    found = [
        (len(report.held.withdrawals) if report.held else 0, "held"),
        (len(report.outcomes.failures) - report.outcomes.count(Result.NOT_TRIED), "failed"),
        (not_tried(report), "not tried"),
        (sum(b.obstacle is Obstacle.UNREAD and not b.late for b in blocked), "not read again"),
        (sum(b.conflict for b in blocked) + report.outcomes.count(Result.CONFLICT), "in conflict"),
        (not_served, "syncer not served" if not_served == 1 else "syncers not served"),
    ]
    shown = [f"{count} {what}" for count, what in found if count]
    shown += ["Eureka not readable"] if isinstance(report.registry, Unknown) else []
    shown += [f"{counted(sources, 'source')} of Kubernetes not readable"] if sources else []
    return f"; {', '.join(shown)}" if shown else ""


def not_tried(report: PassReport) -> int:
    """How many actions the pass did not come to."""
    return report.outcomes.count(Result.NOT_TRIED) + sum(blocked.late for blocked in report.plan.blocked)
