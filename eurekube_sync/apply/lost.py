"""Which apps callers cannot find any more, although endpoints of them are ready. Pure.

Whatever the reason is, such a pass is never a success: somebody has to know that the app is
gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from eurekube_sync.desired.catalog import Catalogs
from eurekube_sync.desired.claims import (
    Claim,
    Deleting,
    Kept,
    NotServed,
    OverLimit,
    Serving,
    Verdict,
    is_suspended,
    wanted_in,
)
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.desired.waiting import ready_behind
from eurekube_sync.model.actions import Outcomes, Register, Update
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import ClusterView, SyncerRef
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.text import counted, one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.duplicates import lacks
from eurekube_sync.plan.value import Obstacle, Plan


class Lost(NamedTuple):
    """An app without an UP instance of ours, and how many ready endpoints of a syncer wait."""

    app: str
    waiting: int

    def __str__(self) -> str:
        endpoints = counted(self.waiting, "ready endpoint")
        waits = one_or_more(self.waiting, "waits", "wait")
        return f"app {self.app} has no UP instance in Eureka, and {endpoints} of it {waits}"


def lost_apps(
    claims: Mapping[SyncerRef, Claim],
    view: ClusterView,
    scope: Scope,
    observed: Observed,
    plan: Plan,
    outcomes: Outcomes,
    *,
    dry_run: bool = False,
) -> Mapping[SyncerRef, Lost]:
    """Return, for each syncer whose ready endpoints wait, the first such app by name.

    | the app has no UP instance, and           | it counts                                     |
    |-------------------------------------------|-----------------------------------------------|
    | the syncer never had an instance          | only in passes after another syncer lost it   |
    | no endpoint is ready                      | no                                            |
    | a person asked for it: deletion, suspend, | no                                            |
    | limit, drain, OUT_OF_SERVICE              |                                               |
    | the pods' own instances serve callers, or | no                                            |
    | ours under the app's former name          |                                               |
    | anything else                             | yes: not served, in conflict, blocked, failed |
    """
    up_before, up_after = _apps_up(observed, outcomes)
    lost_now = up_before - up_after
    provided = _served_alone(plan, claims, observed)
    if dry_run:
        # Nothing was done, so what it would register does not wait.
        for action in plan.changes:
            if isinstance(action, Register | Update):
                provided.add(action.key)
    catalogs = Catalogs(view)
    lost: dict[SyncerRef, Lost] = {}
    for ref, claim in claims.items():
        if isinstance(claim, Serving) and up_after.issuperset(claim.apps):
            continue  # nearly always
        if isinstance(claim, Deleting) or is_suspended(claim):
            continue
        had_one = _had_one(claim)
        if not had_one and not lost_now:
            continue
        reached = _reached(ref, observed, outcomes)
        if isinstance(claim, NotServed):
            waiting = _behind(claim, catalogs, scope, reached)
        else:
            waiting = _of_verdicts(claim, observed, outcomes, provided, reached)
            waiting += _of_unclear(claim, catalogs, reached)
        apps = waiting.keys() - up_after
        # A syncer that never had an instance only tells of an app that another one lost.
        if not had_one:
            apps &= lost_now
        if apps:
            first = min(apps)
            lost[ref] = Lost(first, waiting[first])
    return lost


def _apps_up(observed: Observed, outcomes: Outcomes) -> tuple[set[str], set[str]]:
    """Return the apps that have an UP instance of ours before the pass, and after it."""
    changed = {outcome.action.key for outcome in outcomes.others}
    before: set[str] = set()
    after: set[str] = set()
    for key, instance in observed.ours.items():
        if instance.status is InstanceStatus.UP:
            before.add(key.app)
            if key not in changed:
                after.add(key.app)
    for key in changed:
        status = _status_after(key, observed, outcomes)
        if status is InstanceStatus.UP:
            after.add(key.app)
    return before, after


def _status_after(
    key: InstanceKey, observed: Observed, outcomes: Outcomes
) -> InstanceStatus | None:
    """Return the status of an instance after the pass, as far as it is known; None if it is not
    there."""
    outcome = outcomes.by_key.get(key)
    if outcome is not None and (outcome.status is not None or not outcome.failed):
        return outcome.status
    listed = observed.ours.get(key)
    if listed is None:
        return None
    return listed.status


def _had_one(claim: Claim) -> bool:
    """Say whether the syncer had an instance before: our finalizer comes before the first registration.
    One that inherited an app without any instance had none, and its status still says so."""
    syncer = claim.syncer
    if CLEANUP_FINALIZER in syncer.finalizers:
        return True
    ready = syncer.status.condition("Ready") if syncer.status else None
    return ready is not None and ready.reason == Reason.LAST_INSTANCE_LOST


def _reached(ref: SyncerRef, observed: Observed, outcomes: Outcomes) -> frozenset[str]:
    """Return the addresses of the syncer's UP instances. While an app changes its name, callers may
    reach its pods under the old one."""
    reached = set()
    for key in observed.keys_by_syncer.get(ref, ()):
        status = _status_after(key, observed, outcomes)
        if status is InstanceStatus.UP:
            reached.add(observed.ours[key].instance.ip_addr)
    return frozenset(reached)


def _of_verdicts(
    claim: Serving,
    observed: Observed,
    outcomes: Outcomes,
    provided: Collection[InstanceKey],
    reached: Collection[str],
) -> Counter[str]:
    """Count the ready endpoints that are not registered, by app, without those that are `provided`
    for. What is registered and not UP is as a person or an earlier pass set it, unless a change of
    it failed."""
    waiting: Counter[str] = Counter()
    for key, verdict in claim.verdicts.items():
        outcome = outcomes.by_key.get(key)
        failed = outcome is not None and outcome.failed
        absent = failed or _status_after(key, observed, outcomes) is None
        ready = _ready_instance(verdict)
        if not absent or ready is None or key in provided:
            continue
        if ready.ip_addr not in reached:
            waiting[key.app] += 1
    return waiting


def _ready_instance(verdict: Verdict) -> Instance | None:
    """Return the instance of a ready endpoint that no person left out by a limit or a drain."""
    if isinstance(verdict, OverLimit):
        return None
    wanted = wanted_in(verdict)
    if wanted is None or wanted.instance.status is not InstanceStatus.UP:
        return None
    return wanted.instance


def _served_alone(
    plan: Plan, claims: Mapping[SyncerRef, Claim], observed: Observed
) -> set[InstanceKey]:
    """Return the endpoints whose pods register themselves, so that callers need no instance of
    ours."""
    alone: set[InstanceKey] = set()
    for blocked in plan.blocked:
        claim = claims.get(blocked.syncer)
        if blocked.obstacle is not Obstacle.DUPLICATE or not isinstance(claim, Serving):
            continue
        other = observed.others.get(blocked.other) if blocked.other else None
        wanted = claim.wanted_at(blocked.key)
        if other and wanted and lacks(other, wanted.instance) is None:
            alone.add(blocked.key)
    return alone


def _of_unclear(claim: Serving, catalogs: Catalogs, reached: Collection[str]) -> Counter[str]:
    """Count the ready endpoints of which too little is known, by app."""
    hosts = {verdict.host for verdict in claim.of(Kept).values()}
    if not hosts and not claim.unplaced:
        return Counter()
    waiting: set[tuple[str, str]] = set()
    for app, endpoint in ready_behind(claim.spec, catalogs):
        address = endpoint.address
        if address in reached:
            continue
        uid = endpoint.pod.uid if endpoint.pod else ""
        unplaced = uid in claim.unplaced or address in claim.unplaced
        if unplaced or address in hosts:
            waiting.add((app, address))
    return _by_app(waiting)


def _behind(
    claim: NotServed, catalogs: Catalogs, scope: Scope, reached: Collection[str]
) -> Counter[str]:
    """Count the ready endpoints of a syncer that is not served, by app."""
    if not scope.may_select(claim.syncer):
        return Counter()
    waiting: set[tuple[str, str]] = set()
    for app, endpoint in ready_behind(claim.spec, catalogs):
        if endpoint.address not in reached:
            waiting.add((app, endpoint.address))
    return _by_app(waiting)


def _by_app(waiting: Collection[tuple[str, str]]) -> Counter[str]:
    """Count endpoints, each an app and an address, by app."""
    return Counter(app for app, _ in waiting)
