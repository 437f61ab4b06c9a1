"""A pass in words: the summary line, sentences about problems and other facts, and the state of
each syncer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eurekube_sync.controller.diagnosis import account_of, not_tried, of_other_classes, problems_of
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import Claim, Deleting, NotServed, Serving
from eurekube_sync.model.actions import Action, Cancel, Register, Result, Update, brings_up, removes
from eurekube_sync.model.kubernetes import ConditionStatus
from eurekube_sync.model.problems import Problem
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.kubernetes import unread
from eurekube_sync.plan.value import Obstacle

_GATHERED = 3  # the most sentences with the same reason that are shown one by one at a terminal
_STATES: Mapping[type[Claim], str] = {
    Serving: "serving",
    NotServed: "notServed",
    Deleting: "deleting",
}


def summary(report: PassReport) -> str:
    if not report.settings.dry_run:
        return _done(report)
    servers = ["Eureka"] if isinstance(report.registry, Unknown) else []
    servers += ["Kubernetes"] if report.view and isinstance(report.view.identity, Unknown) else []
    if servers:
        return (
            f"dry run incomplete: {' and '.join(servers)} could not be read, so changes are unknown"
        )
    changes = _counted(
        report.plan.actions, ("to register", "to update", "to turn UP", "to turn DOWN", "to cancel")
    )
    if not changes and report.desired is not None:
        changes = ["nothing to change"]
    again = any(blocked.obstacle is Obstacle.UNREAD for blocked in report.plan.blocked)
    doubt = again or report.cut_short or any(failed.needed for failed in unread(report.view))
    plan = ", ".join([*changes, f"{len(report.plan.renewals)} to renew"]) + _troubles(report)
    return f"dry run{' incomplete, not all changes are known' if doubt else ''}: {plan}"


def renewed(report: PassReport) -> int:
    """Return the number of leases renewed in this pass and since the previous one."""
    return report.outcomes.renewed + report.renewed_between


def _done(report: PassReport) -> str:
    troubles, outcomes = _troubles(report), report.outcomes
    did = [o.action for o in outcomes.others if o.result is Result.DONE]
    parts = _counted(did, ("registered", "updated", "turned UP", "turned DOWN", "cancelled"))
    again = outcomes.count(Result.REGISTERED_AGAIN)
    if not parts and not again and report.view is not None:  # without a view, nothing was compared
        conditions = [status.condition("Synced") for status in report.all_statuses.values()]
        synced = bool(conditions) and all(
            one and one.status is ConditionStatus.TRUE for one in conditions
        )
        parts = ["in sync" if synced and not troubles else "nothing changed"]
    parts += [f"{again} registered again"] if again else []
    return ", ".join([*parts, f"{renewed(report)} renewed"]) + troubles


def _counted(actions: Sequence[Action], words: Sequence[str]) -> list[str]:
    """Count the actions of each kind. `words` are for register, update, turn UP, turn DOWN and
    cancel."""
    updates = [action for action in actions if isinstance(action, Update)]
    up, down = (sum(map(turns, updates)) for turns in (brings_up, removes))
    cancels = sum(isinstance(action, Cancel) and action.was is not None for action in actions)
    registers = sum(isinstance(action, Register) for action in actions)
    numbers = (registers, len(updates) - up - down, up, down, cancels)
    return [f"{number} {word}" for number, word in zip(numbers, words, strict=True) if number]


def _troubles(report: PassReport) -> str:
    blocked, outcomes = report.plan.blocked, report.outcomes
    not_served = (
        sum(isinstance(c, NotServed) for c in report.desired.claims.values())
        if report.desired
        else 0
    )
    sources = len(unread(report.view))
    apps = len({lost.app for lost in report.lost.values()})
    found = [
        (apps, one_or_more(apps, "app without an UP instance", "apps without an UP instance")),
        (len(report.held.removals) if report.held else 0, "held"),
        (len(outcomes.failures) - outcomes.count(Result.NOT_TRIED), "failed"),
        (not_tried(report), "not tried"),
        (
            sum(b.obstacle is Obstacle.UNREAD and not b.late for b in blocked),
            "not changed, because not read again",
        ),
        (sum(b.conflict for b in blocked) + outcomes.count(Result.CONFLICT), "in conflict"),
        (not_served, f"{one_or_more(not_served, 'syncer', 'syncers')} not served"),
    ]
    shown = [f"{count} {what}" for count, what in found if count]
    shown += ["Eureka's list not readable"] if isinstance(report.registry, Unknown) else []
    shown += [f"{counted(sources, 'source')} of Kubernetes not readable"] if sources else []
    return f"; {', '.join(shown)}" if shown else ""


def problems(report: PassReport, *, with_rows: bool) -> list[Problem]:
    """Return all problems, notes last. With rows of instances, a problem that a row shows is left
    out."""
    shown = [problem for problem in problems_of(report) if not (with_rows and problem.in_rows)]
    return sorted(shown, key=lambda problem: problem.note)


def sentences(report: PassReport) -> list[str]:
    """Return the sentence of each problem."""
    return [problem.sentence for problem in problems(report, with_rows=False)]


def gathered(found: Sequence[Problem]) -> Iterator[Problem]:
    """Join many problems of syncers with the same reason into one, which has the first as an
    example."""
    alike: dict[tuple[Reason, bool], list[Problem]] = {}
    for problem in found:
        if problem.syncer:
            alike.setdefault((problem.reason, problem.note), []).append(problem)
    for problem in found:
        group = alike.get((problem.reason, problem.note), [])
        if not problem.syncer or len(group) <= _GATHERED:
            yield problem
        elif problem is group[0]:
            names = ", ".join(other.subject for other in group[:_GATHERED])
            text = (
                f"{len(group)} syncers: {names} and {len(group) - _GATHERED} more (-o json has "
                "each); "
                f"the first: {problem.text}"
            )
            yield replace(problem, syncer=False, subject=problem.reason.value, text=text)


def syncers_data(report: PassReport) -> Iterator[dict[str, Any]]:
    """Return the state of every listed syncer: desired and UP instances, ready endpoints, reason
    and message.

    A number is null while it is unknown.
    """
    for ref, claim in sorted(report.desired.claims.items()) if report.desired else ():
        status = report.all_statuses.get(ref)
        ready = status.condition("Ready") if status else None
        reason = message = ""
        if isinstance(claim, NotServed):
            reason, message = claim.reason, claim.message
        elif account := account_of(claim):
            reason, message = account
        elif ready is not None:
            reason, message = ready.reason, ready.message
        yield {
            "syncer": str(ref),
            "state": _STATES[type(claim)],
            "desired": status.desired if status else None,
            "up": status.up if status and isinstance(report.registry, Complete) else None,
            "ready": claim.endpoints - len(claim.unready) if isinstance(claim, Serving) else None,
            "reason": str(reason),
            "message": message,
            **({"notes": list(claim.notes)} if isinstance(claim, Serving) and claim.notes else {}),
        }
    unknown = dict.fromkeys(("desired", "up", "ready"))
    for ref, message in of_other_classes(report):
        yield {
            "syncer": str(ref),
            "state": "notServed",
            **unknown,
            "reason": Reason.OTHER_CLASS,
            "message": message,
        }
