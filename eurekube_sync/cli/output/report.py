"""A pass in words: the summary line, sentences about problems and other facts, and the state of
each syncer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from eurekube_sync.controller.diagnosis import (
    account_of,
    held_by,
    held_since,
    not_tried,
    of_other_classes,
    problems_of,
    unread_of,
)
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import Claim, Deleting, NotServed, Serving
from eurekube_sync.desired.imports import Ending, ImportClaim, Importing, NotImported
from eurekube_sync.model.actions import Action, Cancel, Register, Result, Update, brings_up, removes
from eurekube_sync.model.imports import ImportStatus
from eurekube_sync.model.kubernetes import ConditionStatus, SyncerRef, SyncerStatus
from eurekube_sync.model.problems import Problem
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted, one_or_more, rfc_3339
from eurekube_sync.plan.value import Obstacle

_GATHERED = 3  # the most sentences with the same reason that are shown one by one at a terminal
_STATES: Mapping[type[Claim], str] = {
    Serving: "serving",
    NotServed: "notServed",
    Deleting: "deleting",
}
_IMPORT_STATES: Mapping[type[ImportClaim], str] = {
    Importing: "importing",
    NotImported: "notImported",
    Ending: "deleting",
}
_CHANGES = {
    "to register": "registered",
    "to update": "updated",
    "to turn UP": "turned UP",
    "to turn DOWN": "turned DOWN",
    "to cancel": "cancelled",
}
"""Each kind of change, as the summary names it before and after it is made."""


def summary(report: PassReport) -> str:
    """Return the line that says what a pass did, or what a dry run found."""
    if not report.settings.dry_run:
        return _done(report)
    servers: list[str] = []
    if isinstance(report.registry, Unknown):
        servers.append("Eureka")
    if report.view is not None and isinstance(report.view.identity, Unknown):
        servers.append("Kubernetes")
    if servers:
        names = " and ".join(servers)
        return f"dry run incomplete: {names} could not be read, so changes are unknown"
    counts = _changes(report.plan.actions)
    parts: list[str] = []
    for change in _CHANGES:
        if counts[change]:
            parts.append(f"{counts[change]} {change}")
    parts += _of_endpoints(report, "to add", "to remove")
    if not parts and report.desired is not None:
        parts.append("nothing to change")
    parts.append(f"{len(report.plan.renewals)} to renew")
    plan = ", ".join(parts) + _troubles(report)
    if _is_incomplete(report):
        return f"dry run incomplete, not all changes are known: {plan}"
    return f"dry run: {plan}"


def _is_incomplete(report: PassReport) -> bool:
    """Say whether something that could not be read may hide changes."""
    if report.cut_short:
        return True
    for blocked in report.plan.blocked:
        if blocked.obstacle is Obstacle.UNREAD:
            return True
    return any(failed.needed for failed in unread_of(report))


def renewed(report: PassReport) -> int:
    """Return the number of leases renewed in this pass and since the previous one."""
    return report.outcomes.renewed + report.renewed_between


def _done(report: PassReport) -> str:
    """Return the summary of a pass that may write."""
    outcomes = report.outcomes
    troubles = _troubles(report)
    counts = _changes(
        outcome.action for outcome in outcomes.others if outcome.result is Result.DONE
    )
    parts: list[str] = []
    for change, done in _CHANGES.items():
        if counts[change]:
            parts.append(f"{counts[change]} {done}")
    parts += _of_endpoints(report, "added", "removed")
    again = outcomes.count(Result.REGISTERED_AGAIN)
    if again:
        parts.append(f"{again} registered again")
    if not parts and report.view is not None:  # without a view, nothing was compared
        state = "nothing changed"
        if not troubles and _in_sync(report):
            state = "in sync"
        parts.append(state)
    parts.append(f"{renewed(report)} renewed")
    return ", ".join(parts) + troubles


def _of_endpoints(report: PassReport, added: str, removed: str) -> list[str]:
    """Return how many endpoints of imports come and go, without those of failed writes."""
    if report.imports is None:
        return []
    plan = report.imports.plan
    outcomes = report.imports.outcomes
    parts = []
    for changes, what in ((plan.adds, added), (plan.drops, removed)):
        count = 0
        for change in changes:
            outcome = outcomes.get(change.import_)
            if outcome is None or not outcome.failed:
                count += 1
        if count:
            endpoints = counted(count, "endpoint")
            parts.append(f"{endpoints} {what}")
    return parts


def _in_sync(report: PassReport) -> bool:
    """Say whether there are syncers, and all of them are known to be in sync."""
    statuses: list[SyncerStatus | ImportStatus] = [*report.all_statuses.values()]
    if report.imports is not None:
        statuses += report.imports.all_statuses.values()
    for status in statuses:
        synced = status.condition("Synced")
        if synced is None or synced.status is not ConditionStatus.TRUE:
            return False
    return bool(statuses)


def _changes(actions: Iterable[Action]) -> Counter[str]:
    """Count the actions of each kind in `_CHANGES`."""
    counts: Counter[str] = Counter()
    for action in actions:
        match action:
            case Register():
                counts["to register"] += 1
            case Update() if brings_up(action):
                counts["to turn UP"] += 1
            case Update() if removes(action):
                counts["to turn DOWN"] += 1
            case Update():
                counts["to update"] += 1
            case Cancel() if action.was is not None:
                counts["to cancel"] += 1
    return counts


def _troubles(report: PassReport) -> str:
    """Return what was not done or not known, after a semicolon; empty if there is nothing."""
    outcomes = report.outcomes
    lost = len({lost.app for lost in report.lost.values()})
    lost_apps = one_or_more(lost, "app without an UP instance", "apps without an UP instance")
    # What the pass had no time for is counted by itself.
    failed = len(outcomes.failures) - outcomes.count(Result.NOT_TRIED)
    if report.imports is not None:
        failed += len(report.imports.failures)
    unread_again = 0
    conflicts = outcomes.count(Result.CONFLICT)
    for blocked in report.plan.blocked:
        if blocked.conflict:
            conflicts += 1
        elif blocked.obstacle is Obstacle.UNREAD and not blocked.late:
            unread_again += 1  # a late one is not tried
    not_served = 0
    if report.desired is not None:
        for claim in report.desired.claims.values():
            if isinstance(claim, NotServed):
                not_served += 1
    syncers = one_or_more(not_served, "syncer", "syncers")
    counts = {
        lost_apps: lost,
        "held": held_by(report),
        "failed": failed,
        "not tried": not_tried(report),
        "not changed, because not read again": unread_again,
        "in conflict": conflicts,
        f"{syncers} not served": not_served,
    }
    troubles: list[str] = []
    for what, count in counts.items():
        if count:
            troubles.append(f"{count} {what}")
    if isinstance(report.registry, Unknown):
        troubles.append("Eureka's list not readable")
    unread = len(unread_of(report))
    if unread:
        sources = counted(unread, "source")
        troubles.append(f"{sources} of Kubernetes not readable")
    if not troubles:
        return ""
    return "; " + ", ".join(troubles)


def problems(report: PassReport, *, with_rows: bool) -> list[Problem]:
    """Return all problems, notes last. With rows of instances, a problem that a row shows is left
    out."""
    shown: list[Problem] = []
    for problem in problems_of(report):
        if with_rows and problem.in_rows:
            continue
        shown.append(problem)
    shown.sort(key=lambda problem: problem.note)
    return shown


def sentences(report: PassReport) -> list[str]:
    """Return the sentence of each problem."""
    return [problem.sentence for problem in problems(report, with_rows=False)]


def gathered(problems: Sequence[Problem]) -> Iterator[Problem]:
    """Join many problems of syncers with the same reason into one, which has the first as an
    example."""
    alike: dict[tuple[Reason, bool], list[Problem]] = {}
    for problem in problems:
        if problem.syncer:
            alike.setdefault((problem.reason, problem.note), []).append(problem)
    for problem in problems:
        group = alike.get((problem.reason, problem.note), [])
        more = len(group) - _GATHERED
        if not problem.syncer or more <= 0:
            yield problem
        elif problem is group[0]:
            names = ", ".join(other.subject for other in group[:_GATHERED])
            text = (
                f"{len(group)} syncers: {names} and {more} more (-o json has each); the first: "
                f"{problem.text}"
            )
            yield replace(problem, syncer=False, subject=problem.reason.value, text=text)


def hold_data(report: PassReport) -> dict[str, Any] | None:
    """Return what is held, with the evidence of the pods; None for nothing. What awaits
    confirmation has no evidence."""
    held = report.held
    if held is None:
        return None
    since = held_since(report.all_statuses)
    data: dict[str, Any] = {
        "planId": held.plan_id,
        "removals": len(held.removals),
        "since": None,
        "pods": None,
        "advice": None,
    }
    if since is not None:
        data["since"] = rfc_3339(since)
    evidence = held.evidence()
    if evidence is not None:
        data["pods"] = {state.value: number for state, number in evidence.counts.items()}
        data["advice"] = evidence.advice.value
    return data


def syncers_data(report: PassReport) -> Iterator[dict[str, Any]]:
    """Yield the state of every listed syncer: desired and UP instances, ready endpoints, reason
    and message.

    A number is null while it is unknown.
    """
    if report.desired is not None:
        for ref, claim in sorted(report.desired.claims.items()):
            yield _syncer_data(report, ref, claim)
    for ref, message in of_other_classes(report):
        yield {
            "syncer": str(ref),
            "state": "notServed",
            "desired": None,
            "up": None,
            "ready": None,
            "reason": "OtherClass",
            "message": message,
        }


def imports_data(report: PassReport) -> Iterator[dict[str, Any]]:
    """Yield the state of every import in scope: endpoints, instances, reason and message."""
    if report.imports is None:
        return
    for ref, claim in sorted(report.imports.claims.items()):
        status = report.imports.all_statuses[ref]
        ready = status.condition("Ready")
        assert ready is not None  # each status has all conditions
        yield {
            "import": str(ref),
            "state": _IMPORT_STATES[type(claim)],
            "ready": status.ready or None,
            "instances": status.instances,
            "leftOut": dict(status.left_out),
            "reason": ready.reason,
            "message": ready.message,
        }


def _syncer_data(report: PassReport, ref: SyncerRef, claim: Claim) -> dict[str, Any]:
    reason, message = account(report, ref, claim)
    data: dict[str, Any] = {
        "syncer": str(ref),
        "state": _STATES[type(claim)],
        "desired": None,
        "up": None,
        "ready": None,
        "reason": str(reason),
        "message": message,
    }
    status = report.all_statuses.get(ref)
    if status is not None:
        data["desired"] = status.desired
        if isinstance(report.registry, Complete):
            data["up"] = status.up
    if isinstance(claim, Serving):
        data["ready"] = claim.endpoints - len(claim.unready)
        if claim.notes:
            data["notes"] = list(claim.notes)
    return data


def account(report: PassReport, ref: SyncerRef, claim: Claim) -> tuple[str, str]:
    """Return the reason and the message of a syncer; empty without any."""
    if isinstance(claim, NotServed):
        return claim.reason, claim.message
    account = account_of(claim)
    if account:
        return account
    status = report.all_statuses.get(ref)
    if status is None:
        return "", ""
    ready = status.condition("Ready")
    if ready is None:
        return "", ""
    return ready.reason, ready.message
