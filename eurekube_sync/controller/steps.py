"""The steps of a pass after its lists: decide, carry out in Eureka, write to Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf

from eurekube_sync.apply.conditions import PassResult
from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.gates import open_gates, openings
from eurekube_sync.apply.kubernetes import Write, failure, put_finalizers_on, settle, unsettled
from eurekube_sync.brake.approval import Approval, annotation_releases, refusal
from eurekube_sync.brake.braking import Braked, apply_brake, to_look_up
from eurekube_sync.brake.holds import Brake, held_together
from eurekube_sync.brake.removals import removals_left, without_successor, witnesses
from eurekube_sync.controller.one_pass import Basis, Ends, EurekaWorld, Found, Given, PassReport, PassSettings, World
from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Cancel, Outcome, Outcomes, Register, Renew, Result, Update, comes_last
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import SyncerRef, SyncerStatus
from eurekube_sync.model.ownership import CLASS, Ownership, pod_namespace_of, syncer_of
from eurekube_sync.model.sources import Complete, Source, Unknown
from eurekube_sync.observe.eureka import Observed, is_ours
from eurekube_sync.observe.installations import AGAIN, Unserved, living, served_by_others, unserved
from eurekube_sync.observe.kubernetes import living_pods, pods_behind
from eurekube_sync.plan.duplicates import warned
from eurekube_sync.plan.left_alone import is_suspended, lost
from eurekube_sync.plan.make import draft, plan_blind, plan_for, plan_renewals, with_unread
from eurekube_sync.plan.quota import beyond_quota, crowded, within_quota
from eurekube_sync.plan.value import Plan, sorted_plan


def decide(given: Given, found: Found) -> tuple[Found, PassReport]:
    """Makes the plan, and gives it in a report, with what was found and read again. The plan is drafted from Eureka's
    list, and made again from uncached reads. If the brake would hold removals, their pods are listed, and the brake is
    applied again."""
    world, settings, desired, registry = given.world, given.settings, found.desired, found.registry
    given.deadline.stage_of_rest(0.5, Ends.APPLYING)
    at, memory = world.clock.now(), world.memory
    refused = refusal(settings.approved, given.ownership, at)
    brake = _brake(given, desired, None if refused else settings.approved, at)
    remembers = isinstance(registry, Unknown) or any(map(is_suspended, desired.claims.values()))
    last_up = frozenset[InstanceKey]()
    if remembers or crowded(desired, settings.scope):
        last_up = memory.last_seen.still_wanted(desired, world.renewals.renewed_lately())
    if isinstance(registry, Complete):
        drafted, observed = _read_again(given, found, registry.data, last_up)
        desired, braked = _braked(drafted, observed, last_up, brake)
        if unlisted := to_look_up(braked.held):
            pods = pods_behind(world.cluster, found.view, unlisted, observed, settings.scope)
            brake = replace(brake, pods=pods)
            desired, braked = _braked(drafted, observed, last_up, brake)
        found = replace(found, desired=warned(desired, observed), registry=Complete(data=observed))
    else:
        braked = _blind(desired, settings.scope, last_up)
    basis = Basis(
        ownership=given.ownership,
        scope=settings.scope,
        lease=settings.lease,
        view=found.view,
        registry=found.registry,
        brake=brake,
        last_up=last_up,
        braked=braked,
    )
    report = replace(
        _report(settings, at, found.desired, basis),
        absent=found.absent,
        approved=settings.approved,
        approval_refused=refused,
        released=braked.approved,
        batching=world.registry.batching(),
    )
    return found, report


def decide_again(settings: PassSettings, at: float, desired: Desired, basis: Basis) -> PassReport:
    """Repeats `decide` from what it planned from, without a call to a server; `at` in Unix seconds."""
    last_up = basis.last_up
    if isinstance(basis.registry, Unknown):
        return _report(settings, at, desired, replace(basis, braked=_blind(desired, basis.scope, last_up)))
    observed = basis.registry.data
    desired, braked = _braked(draft(desired, observed, last_up), observed, last_up, basis.brake)
    return _report(settings, at, warned(desired, observed), replace(basis, braked=braked))


def _report(settings: PassSettings, at: float, desired: Desired, basis: Basis) -> PassReport:
    return PassReport(
        settings=settings,
        cluster=basis.ownership.cluster,
        at=at,
        plan=basis.braked.plan,
        registry=basis.registry,
        view=basis.view,
        desired=desired,
        held=basis.braked.held,
        basis=basis,
    )


def _blind(desired: Desired, scope: Scope, last_up: frozenset[InstanceKey]) -> Braked:
    return Braked(plan=plan_blind(desired, last_up, beyond_quota(desired, scope, last_up)), held=None)


def _read_again(
    given: Given, found: Found, observed: Observed, last_up: frozenset[InstanceKey]
) -> tuple[tuple[Desired, Plan], Observed]:
    """Drafts a plan and reads its instances uncached, until the draft needs no further read. Read are those that it
    would change, those that must stay UP beside them, and those that this process cancelled a moment ago, because these
    must not take the place of others."""
    read: set[InstanceKey] = set()
    while True:
        desired, plan = draft(found.desired, observed, last_up, given.world.memory.plan)
        comes_back = lost(desired, observed, last_up)
        cancelled = sorted(key for key in found.cancelled if key in observed.ours)
        suspects = (*plan.suspects, *cancelled, *desired.to_read, *comes_back, *witnesses(plan, observed, read))
        unread = [key for key in suspects if key not in read]
        if not unread:
            return (desired, plan), observed
        absent = [key for key in unread if key not in observed.ours and key not in observed.others]
        observed = observed.refreshed(found.applier.read(unread, absent, plan.in_the_way))
        read.update(unread)


def _braked(
    drafted: tuple[Desired, Plan], observed: Observed, last_up: frozenset[InstanceKey], brake: Brake
) -> tuple[Desired, Braked]:
    """Applies the brake to the draft, and repeats it while a quota changes the draft: a held removal keeps its place of
    the quota, so fewer instances are added, and the brake has to count that."""
    while True:
        desired, plan = finished = drafted
        if not observed.unread.keys().isdisjoint(observed.ours):  # nothing is read any more
            plan = with_unread(plan, plan_for(desired, replace(observed, unread={}), last_up), observed)
        braked = apply_brake(without_successor(plan, desired, observed), observed, brake)
        drafted = within_quota(*finished, observed, last_up, braked.plan)
        if drafted[1] is finished[1]:
            return desired, braked


def _brake(given: Given, desired: Desired, approval: Approval | None, now: float) -> Brake:
    """Makes the brake from the limits of the installation, and from what a person released."""
    settings, claims = given.settings, desired.claims
    # Passes that are further apart than this let leases expire.
    within = settings.brake.confirm_after + 2 * settings.lease.duration
    monotonic = given.world.clock.monotonic()
    return Brake(
        limits=settings.brake.scaled(settings.scope.share),
        freed=frozenset(ref for ref, claim in claims.items() if annotation_releases(claim.syncer, now)),
        approval=approval,
        seen=given.world.memory.sightings.before(desired, monotonic=monotonic, now=now, within=within),
        confirm_within=within,
    )


def renewed_before(world: EurekaWorld) -> Plan:
    """Plans to renew what this process renewed before, for while Eureka cannot be read."""
    return sorted_plan(Renew(key=key, syncer=None, why="it was registered") for key in world.renewals.renewed_lately())


def renew_ours(
    world: World, applier: Applier, registry: Source[Observed], cancelled: frozenset[InstanceKey]
) -> Mapping[InstanceKey, Outcome]:
    """Renews our instances before Kubernetes is read, except those `cancelled` a moment ago. Instances with the mark of
    another class wait until the cluster is read, and so do those of a syncer that another owner serves, too."""
    if isinstance(registry, Unknown):
        return Outcomes.of(applier.renew(renewed_before(world).renewals)).by_key
    observed = registry.data
    class_, contended = observed.scope.syncer_class, served_by_others(observed)
    due = (observed.ours[key] for key in applier.due(observed.ours) if key not in cancelled)
    registered = [one for one in due if one.metadata.get(CLASS) == class_ and syncer_of(one) not in contended]
    return Outcomes.of(applier.renew(plan_renewals(registered, "it is registered").renewals, registered)).by_key


def carry_out(given: Given, found: Found, report: PassReport) -> PassReport:
    """Renews the rest, puts finalizers on, adds, updates, and then removes. Before the removals the brake is applied
    again, because adds may have failed. Remembers what the next pass has to know."""
    world, deadline, applier, desired = given.world, given.deadline, found.applier, found.desired
    basis = report.basis
    assert basis is not None  # `decide` made it
    plan, held, confirmed = report.plan, report.held, basis.braked.confirmed
    renewals = plan.renewals
    done = [found.renewed[action.key].of(action) for action in renewals if action.key in found.renewed]
    done += applier.renew([action for action in renewals if action.key not in found.renewed])
    expired = [o.action for o in done if o.result is Result.GONE and isinstance(o.action, Renew) and o.action.if_gone]
    adds = [*(a for a in plan.changes if isinstance(a, Register | Update) and not comes_last(a)), *expired]
    deadline.stage_of_rest(0.5, Ends.APPLYING)
    barred, errors = put_finalizers_on(world.cluster, world.workers, deadline, desired, [*adds, *renewals])
    deadline.stage(Ends.APPLYING)
    if any(map(comes_last, plan.changes)):
        deadline.stage_of_rest(0.5, Ends.APPLYING)  # many adds must leave time for cancels
    done += applier.change(adds, barred)
    deadline.stage(Ends.APPLYING)
    done += applier.missed(renewals, done)
    done += applier.level(done, barred)

    memory, outcomes = world.memory, Outcomes.of(done)
    if isinstance(report.registry, Complete):
        brake = replace(basis.brake, approval=None, approved=basis.braked.approved)
        removals = removals_left(plan, desired, report.registry.data, done, brake)
        outcomes = Outcomes.of([*done, *applier.remove(removals.actions, removals.kept_back)])
        plan, confirmed = removals.plan, confirmed | removals.confirmed
        held = held_together(held, removals.held)
    outcomes = renew_the_rest(applier, outcomes)
    failed = (one.action for one in outcomes.failures if one.action.key in confirmed)
    again = tuple(action for action in failed if isinstance(action, Update | Cancel))
    monotonic = world.clock.monotonic()
    memory.own_writes.note(outcomes, monotonic)
    memory.sightings.note(held, basis.brake.seen, monotonic=monotonic, confirmed=again)
    if isinstance(report.registry, Complete):
        memory.last_seen.note(report.registry.data, outcomes, world.renewals.renewed_lately(), desired)
    return replace(report, plan=plan, held=held, confirmed=again, outcomes=outcomes, cluster_errors=errors)


def renew_the_rest(applier: Applier, outcomes: Outcomes) -> Outcomes:
    """Tries the renewals for which their stage had no time, now that later stages left some."""
    untried = [o.action for o in outcomes.others if o.result is Result.NOT_TRIED]
    rest = [action for action in untried if isinstance(action, Renew)]
    return Outcomes.of([*outcomes.by_key.values(), *applier.renew(rest)]) if rest else outcomes


def applier_of(world: EurekaWorld, ownership: Ownership | None, scope: Scope, deadline: Deadline) -> Applier:
    """Makes an applier that may change what is ours in this scope. Without an `ownership` it may only renew."""
    may_change = None if ownership is None else lambda one: is_ours(one, ownership, scope)
    return Applier(world.registry, world.clock, world.workers, world.renewals, may_change, deadline)


def unserved_syncers(given: Given, found: Found) -> tuple[Unserved, ...]:
    """Finds the syncers that left our scope and that no installation serves, with the instances of living pods."""
    left = () if isinstance(found.registry, Unknown) else unserved(found.registry.data, found.view.syncers)
    namespaces = {name for each in left for one in each.instances if (name := pod_namespace_of(one))}
    pods = given.world.cluster.list_pods(sorted(namespaces)) if namespaces else None
    return living(left, living_pods(pods))


def keep_unserved(given: Given, found: Found, report: PassReport) -> PassReport:
    """Renews the instances of syncers that nobody serves, and writes an event about each such syncer."""
    world, reported = given.world, given.world.memory.reported
    silent = [one for each in report.unserved for one in each.instances if one.key not in found.renewed]
    found.applier.renew(plan_renewals(silent, "nobody serves its syncer").renewals)
    now = world.clock.monotonic()
    fresh = [one for one in report.unserved if now - reported.get(one.syncer.ref, -inf) > AGAIN]
    reported.update({one.syncer.ref: now for one in report.unserved if one not in fresh})
    if not fresh or given.same.doubt("no event is written"):
        return report
    clock, write = world.clock, world.cluster.record_event
    told = [(one.syncer.ref, failure(partial(write, one.event, at=clock.now()))) for one in fresh]
    reported.update({ref: now for ref, error in told if error is None})
    return replace(report, cluster_errors=(*report.cluster_errors, *(error for _, error in told if error)))


def write_to_kubernetes(given: Given, found: Found, report: PassReport) -> PassReport:
    """Removes finalizers, writes statuses and opens gates, unless another cluster may answer now."""
    world, deadline, now = given.world, given.deadline, given.world.clock.now()
    deadline.stage(Ends.SETTLING)
    due, statuses = statuses_due(given, found, report)
    wished = openings(found.desired, found.view, found.registry, report.plan, now=now)
    doubt = given.same.doubt("no status is written") if (due or wished) and not world.clock.stopping() else None
    if doubt is not None:
        return replace(report, view=replace(found.view, identity=doubt), cut_short=deadline.cut_short)
    if wished:
        deadline.stage_of_rest(0.5, Ends.SETTLING)  # many statuses must leave time for the gates of a rollout
    cluster, workers = world.cluster, world.workers
    written, errors = settle(cluster, world.clock, workers, deadline, due)
    now = world.clock.now()
    gates = open_gates(cluster, found.applier, workers, deadline, given.ownership, wished, share=Ends.SETTLING, now=now)
    return replace(
        report,
        all_statuses=statuses,
        statuses=written,
        cluster_errors=(*report.cluster_errors, *errors, *gates),
        cut_short=deadline.cut_short,
    )


def statuses_due(
    given: Given, found: Found, report: PassReport
) -> tuple[Sequence[Write], Mapping[SyncerRef, SyncerStatus]]:
    """Gives the writes that are due for the syncers, and the status of each syncer."""
    settings, memory, now = given.settings, given.world.memory, given.world.clock.now()
    result = PassResult(
        desired=found.desired,
        registry=found.registry,
        plan=report.plan,
        held=report.held,
        confirmed=report.confirmed,
        outcomes=report.outcomes,
        now=now,
        unseen=found.unseen,
        options=settings.options,
        cache=settings.registry_cache,
        expires_after=2 * settings.lease.duration,
    )
    words = memory.rewording.due(now)
    due = unsettled(result, words=words, earlier=memory.statuses, recoveries=memory.recoveries)
    memory.recoveries.end_of_pass()
    return due
