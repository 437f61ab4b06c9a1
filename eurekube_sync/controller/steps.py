"""The steps of a pass after its lists: decide, carry out in Eureka, write to Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.gates import open_gates, openings
from eurekube_sync.apply.kubernetes import Write, put_finalizers_on, settle, unsettled
from eurekube_sync.apply.lost import lost_apps
from eurekube_sync.apply.tally import PassResult
from eurekube_sync.brake.approval import PlanId, annotation_releases, refusal
from eurekube_sync.brake.braking import Braked, apply_brake
from eurekube_sync.brake.evidence import pod_states
from eurekube_sync.brake.holds import Brake, held_together
from eurekube_sync.brake.removals import removals_left, without_successor, witnesses
from eurekube_sync.controller.one_pass import (
    Basis,
    Ends,
    EurekaWorld,
    Found,
    Given,
    PassReport,
    World,
)
from eurekube_sync.desired.claims import Desired, is_suspended
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import (
    Cancel,
    Outcome,
    Outcomes,
    Register,
    Removal,
    Renew,
    Result,
    Update,
    comes_last,
)
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef, SyncerStatus
from eurekube_sync.model.ownership import CLASS, Ownership, syncer_of
from eurekube_sync.model.sources import Complete, Source, Unknown
from eurekube_sync.observe.eureka import Observed, is_ours, of_doubtful_age
from eurekube_sync.observe.former import (
    Judgement,
    judge,
    to_read_first,
    to_read_next,
    waiting_to_move,
)
from eurekube_sync.observe.installations import served_by_others
from eurekube_sync.observe.kubernetes import pods_behind, readiness_behind
from eurekube_sync.plan.former import under_either_id
from eurekube_sync.plan.make import apply_rules, lost, make_plan, plan_blind, plan_renewals
from eurekube_sync.plan.value import Plan, sorted_plan

# --- Decide ---------------------------------------------------------------------------------------


def decide(given: Given, found: Found) -> tuple[Found, PassReport]:
    """Plan from Eureka's list, read again what would change, plan again, and apply the brake.

    Return the plan in a report, with what was found and read again. If the brake would hold
    removals, their pods are listed, and the brake is applied again."""
    world, settings = given.world, given.settings
    given.deadline.stage_of_rest(0.5, Ends.APPLYING)
    at = world.clock.now()
    refused = refusal(settings.approved, at)
    brake = _brake(given, found.desired, None if refused else settings.approved, at)
    last_up = _last_up(world, found)

    if isinstance(found.registry, Unknown):
        braked = _blind(found.desired, last_up, given.ownership)
    else:
        desired, observed, plan = _read_again(given, found, found.registry.data, last_up)
        found = replace(found, desired=desired, registry=Complete(data=observed))
        plan = without_successor(plan, desired, observed)
        braked = apply_brake(plan, observed, brake)
        unlisted = braked.held.for_a_person if braked.held else ()
        if unlisted:
            pods = pods_behind(world.cluster, found.view, unlisted, observed, settings.scope)
            brake = replace(brake, pods=pods)
            braked = apply_brake(plan, observed, brake)
            braked = _with_evidence(given, braked, observed)

    report = PassReport(
        settings=settings,
        cluster=given.ownership.cluster,
        at=at,
        plan=braked.plan,
        registry=found.registry,
        view=found.view,
        desired=found.desired,
        held=braked.held,
        absent=found.absent,
        approved=settings.approved,
        approval_refused=refused,
        released=braked.approved,
        batching=world.registry.batching(),
        basis=Basis(brake=brake, last_up=last_up, braked=braked, looked=world.clock.monotonic()),
    )
    return found, report


def _last_up(world: World, found: Found) -> frozenset[InstanceKey]:
    """Return the wanted instances that this process last saw UP, where the plan depends on it."""
    claims = found.desired.claims.values()
    if isinstance(found.registry, Complete) and not any(map(is_suspended, claims)):
        return frozenset()
    renewed = world.renewals.renewed_lately()
    return world.memory.last_seen.still_wanted(found.desired, renewed)


def _brake(given: Given, desired: Desired, approval: PlanId | None, now: float) -> Brake:
    """Make the brake from the limits of the installation, and from what a person released."""
    settings = given.settings
    # Passes that are further apart than this let leases expire.
    within = settings.brake.confirm_after + 2 * settings.lease.duration
    claims = desired.claims.items()
    freed = frozenset(ref for ref, claim in claims if annotation_releases(claim.syncer, now))
    statuses = {ref: claim.syncer.status for ref, claim in claims}
    sightings = given.world.memory.sightings
    # The lists of a slow pass may be nearly as old as the pass.
    begun = given.deadline.begun
    took = given.world.clock.monotonic() - begun
    return Brake(
        limits=settings.brake,
        freed_by_annotation=freed,
        approval=approval,
        seen=sightings.before(statuses, begun=begun, now=now - took, within=within),
        confirm_within=within,
    )


def _with_evidence(given: Given, braked: Braked, observed: Observed) -> Braked:
    """Add what the pods of the held removals do now, for the person who decides. What awaits
    confirmation waits for nobody."""
    waiting = braked.held.for_a_person if braked.held else ()
    if braked.held is None or not waiting:
        return braked
    pods = readiness_behind(given.world.cluster, waiting, observed, given.settings.scope)
    states = pod_states(waiting, observed.ours, pods)
    return replace(braked, held=replace(braked.held, pods=states))


def _blind(desired: Desired, last_up: frozenset[InstanceKey], ownership: Ownership) -> Braked:
    """Plan without Eureka's list. Nothing is removed, so the brake has nothing to weigh."""
    plan = plan_blind(desired, last_up)
    if ownership.former:
        plan = under_either_id(plan, ownership)
    return Braked(plan=plan, held=None)


def _read_again(
    given: Given, found: Found, observed: Observed, last_up: frozenset[InstanceKey]
) -> tuple[Desired, Observed, Plan]:
    """Plan, and read instances uncached, until the plan needs no further read."""
    memory = given.world.memory
    read: set[InstanceKey] = set()
    # These tell the age of the list.
    telling = list(found.unshown[:1])
    if memory.first_pass:
        telling += of_doubtful_age(found.desired, observed)
    while True:
        desired, to_read = apply_rules(found.desired, observed)
        plan = make_plan(desired, observed, last_up, memory.plan)
        keys = [
            *plan.suspects,
            # Cancelled a moment ago, so they must not take the place of others.
            *sorted(found.cancelled & observed.ours.keys()),
            *to_read,
            *lost(desired, observed, last_up),
            # They must stay UP beside those that are removed.
            *witnesses(plan, observed, read),
            *telling,
        ]
        unread = [key for key in dict.fromkeys(keys) if key not in read]
        if not unread:
            return desired, observed, plan
        observed = _refreshed(given, found, observed, unread, plan.in_the_way)
        read.update(unread)


def _refreshed(
    given: Given,
    found: Found,
    observed: Observed,
    unread: Sequence[InstanceKey],
    in_the_way: Mapping[InstanceKey, InstanceKey],
) -> Observed:
    """Read these instances uncached, and return the list with what was read."""
    gone = _gone(found)
    # What has a former mark is renewed only once it is known that its installation has ended.
    apart = gone | {instance.key for instance in observed.former.values()}
    # What another owner serves as well may be left to expire.
    for syncer in served_by_others(observed):
        apart |= observed.keys_by_syncer.get(syncer, frozenset())
    absent = [key for key in unread if key not in observed.ours and key not in observed.others]
    renewable: list[InstanceKey] = []
    if not given.settings.dry_run:
        renewable = [key for key in unread if key in observed.ours and key not in apart]
    unlisted = [*absent, *(key for key in unread if key in gone)]
    readings = found.applier.read(unread, unlisted, in_the_way, renewable)
    given.world.memory.own_writes.settle(readings)
    dating = dict(readings)
    if len(given.world.servers) > 1:
        # Another server's list may lack an instance, which tells nothing of the age of this one.
        for key in absent:
            dating.pop(key, None)
    return observed.dated(dating, given.settings.registry_cache).refreshed(readings)


def _gone(found: Found) -> frozenset[InstanceKey]:
    """Return what is still listed, and was cancelled, or answered a renewal with 404. A batch can
    say that it is absent, without a renewal."""
    gone = set(found.cancelled)
    for key, outcome in found.renewed.items():
        if outcome.result is Result.GONE:
            gone.add(key)
    return frozenset(gone)


# --- Before Kubernetes is read --------------------------------------------------------------------


def renewed_before(world: EurekaWorld) -> Plan:
    """Plan to renew what this process renewed before, for while Eureka cannot be read."""
    return sorted_plan(
        Renew(key=key, syncer=None, why="it was registered")
        for key in world.renewals.renewed_lately()
    )


def renew_ours(
    world: World, applier: Applier, registry: Source[Observed], cancelled: frozenset[InstanceKey]
) -> Mapping[InstanceKey, Outcome]:
    """Renew our instances before Kubernetes is read, except those `cancelled` a moment ago.
    Instances with the mark of another class wait until the cluster is read, and so do those of a
    syncer that another owner serves, too."""
    if isinstance(registry, Unknown):
        return Outcomes.of(applier.renew(renewed_before(world).renewals)).by_key
    observed = registry.data
    syncer_class, contended = observed.scope.syncer_class, served_by_others(observed)
    registered: list[ObservedInstance] = []
    for key in applier.due(observed.ours):
        instance = observed.ours[key]
        if key in cancelled or instance.metadata.get(CLASS) != syncer_class:
            continue
        # What has a former mark is renewed only by the plan, once it is known that its
        # installation has ended.
        if syncer_of(instance) not in contended and not observed.ownership.is_former(instance):
            registered.append(instance)
    renewals = plan_renewals(registered, "it is registered").renewals
    return Outcomes.of(applier.renew(renewals, registered)).by_key


def ask_former(given: Given, found: Found, observed: Observed) -> Judgement:
    """Judge by uncached reads whether the former installations have ended."""
    waiting = waiting_to_move(observed, found.desired)
    first = to_read_first(waiting, given.ownership)
    readings = found.applier.read(first)
    further = to_read_next(waiting, readings, given.ownership)
    readings |= found.applier.read(further)
    return judge(waiting, readings, given.ownership)


# --- Carry out in Eureka --------------------------------------------------------------------------


def carry_out(given: Given, found: Found, report: PassReport) -> PassReport:
    """Renew the rest, put finalizers on, add, update, and then remove. Remember what the next pass
    has to know."""
    world, deadline, applier = given.world, given.deadline, found.applier
    plan, renewals = report.plan, report.plan.renewals
    done = _renew_the_planned(found, renewals)
    adds = [*_adds(plan), *_expired(done)]
    deadline.stage_of_rest(0.5, Ends.APPLYING)
    barred, errors = put_finalizers_on(
        world.cluster, world.workers, deadline, found.desired, [*adds, *renewals]
    )
    deadline.stage(Ends.APPLYING)
    if any(map(comes_last, plan.changes)):
        deadline.stage_of_rest(0.5, Ends.APPLYING)  # many adds must leave time for cancels
    done += applier.change(adds, barred)
    deadline.stage(Ends.APPLYING)
    done += applier.missed(renewals, done)
    done += applier.level(done, barred)
    report = replace(report, outcomes=Outcomes.of(done), cluster_errors=errors)

    assert report.basis is not None  # `decide` made it
    confirmed = report.basis.braked.confirmed
    if isinstance(report.registry, Complete):
        observed = report.registry.data
        report, confirmed_now = _remove(found, report, observed, done)
        confirmed |= confirmed_now
        renew_former(applier, observed, report.outcomes)
    outcomes = renew_the_rest(applier, report.outcomes)
    report = replace(report, outcomes=outcomes, confirmed=_failed(outcomes, confirmed))
    _remember(given, found.desired, report)
    return report


def _renew_the_planned(found: Found, renewals: Sequence[Renew]) -> list[Outcome]:
    """Renew what was not renewed before Kubernetes was read; return the outcomes of all."""
    done: list[Outcome] = []
    rest: list[Renew] = []
    for action in renewals:
        early = found.renewed.get(action.key)
        if early is None:
            rest.append(action)
        else:
            done.append(early.of(action))
    return done + found.applier.renew(rest)


def _adds(plan: Plan) -> list[Register | Update]:
    adds: list[Register | Update] = []
    for change in plan.changes:
        if isinstance(change, Register | Update) and not comes_last(change):
            adds.append(change)
    return adds


def _expired(done: Sequence[Outcome]) -> list[Renew]:
    """Return the renewals that found no lease, of instances that are to be registered again."""
    expired: list[Renew] = []
    for outcome in done:
        action = outcome.action
        if outcome.result is Result.GONE and isinstance(action, Renew) and action.if_gone:
            expired.append(action)
    return expired


def _remove(
    found: Found, report: PassReport, observed: Observed, done: Sequence[Outcome]
) -> tuple[PassReport, frozenset[InstanceKey]]:
    """Apply the brake again, because adds may have failed, and remove what is left. Return the
    report with that, and the removals that were confirmed."""
    basis = report.basis
    assert basis is not None  # `decide` made it
    brake = replace(basis.brake, approval=None, approved=basis.braked.approved)
    removals = removals_left(report.plan, found.desired, observed, done, brake)
    removed = found.applier.remove(removals.actions, removals.kept_back)
    report = replace(
        report,
        plan=removals.plan,
        held=held_together(report.held, removals.held),
        outcomes=Outcomes.of([*done, *removed]),
    )
    return report, removals.confirmed


def _failed(outcomes: Outcomes, confirmed: frozenset[InstanceKey]) -> tuple[Removal, ...]:
    """Return the confirmed removals that failed. The next pass need not confirm them again."""
    failed: list[Removal] = []
    for outcome in outcomes.failures:
        action = outcome.action
        if action.key in confirmed and isinstance(action, Update | Cancel):
            failed.append(action)
    return tuple(failed)


def _remember(given: Given, desired: Desired, report: PassReport) -> None:
    """Note what the next pass has to know."""
    world, basis = given.world, report.basis
    assert basis is not None  # `decide` made it
    memory, outcomes = world.memory, report.outcomes
    memory.own_writes.note(outcomes, world.clock.monotonic(), since=report.at)
    memory.first_pass = False
    memory.sightings.note(
        report.held,
        basis.brake.seen,
        begun=given.deadline.begun,
        looked=basis.looked,
        confirmed=report.confirmed,
    )
    if isinstance(report.registry, Complete):
        renewed = world.renewals.renewed_lately()
        observed = report.registry.data
        for key in memory.last_seen.note(observed, outcomes, renewed, desired):
            world.renewals.again(key)


def renew_former(applier: Applier, observed: Observed, outcomes: Outcomes) -> None:
    """Renew the instances of a former owner that could not be moved. Nothing else does: at the
    pass's begin it was unknown whether their installation has ended."""
    staying: list[ObservedInstance] = []
    for instance in observed.former.values():
        outcome = outcomes.by_key.get(instance.key)
        if outcome is None or outcome.failed:
            staying.append(instance)
    if staying:
        why = "it could not be moved to its new id yet"
        applier.renew(plan_renewals(staying, why).renewals, staying)


def renew_the_rest(applier: Applier, outcomes: Outcomes) -> Outcomes:
    """Try the renewals for which their stage had no time, now that later stages left some."""
    rest: list[Renew] = []
    for outcome in outcomes.others:
        if outcome.result is Result.NOT_TRIED and isinstance(outcome.action, Renew):
            rest.append(outcome.action)
    if not rest:
        return outcomes
    return Outcomes.of([*outcomes.by_key.values(), *applier.renew(rest)])


def applier_of(
    world: EurekaWorld, ownership: Ownership | None, scope: Scope, deadline: Deadline
) -> Applier:
    """Make an applier that may change what is ours in this scope. Without an `ownership` it may
    only renew."""
    may_change = None
    if ownership is not None:
        may_change = partial(is_ours, ownership=ownership, scope=scope)
    return Applier(world.registry, world.clock, world.workers, world.renewals, may_change, deadline)


def with_lost_apps(found: Found, report: PassReport) -> PassReport:
    """Add the apps that have no UP instance after the pass although endpoints of them are ready."""
    if isinstance(report.registry, Unknown):
        return report
    lost = lost_apps(
        found.desired.claims,
        found.view,
        report.settings.scope,
        report.registry.data,
        report.plan,
        report.outcomes,
        dry_run=report.settings.dry_run,
    )
    return replace(report, lost=lost)


# --- Write to Kubernetes --------------------------------------------------------------------------


def write_to_kubernetes(given: Given, found: Found, report: PassReport) -> PassReport:
    """Remove finalizers, write statuses and open gates, unless another cluster may answer now."""
    world, deadline, now = given.world, given.deadline, given.world.clock.now()
    deadline.stage(Ends.SETTLING)
    due, statuses = statuses_due(given, found, report)
    wished = openings(found.desired, found.view, found.registry, report.plan, now=now)
    doubt = None
    if (due or wished) and not world.clock.stopping():
        doubt = given.same.doubt("no status is written")
    if doubt is not None:
        view = replace(found.view, identity=doubt)
        return replace(report, view=view, cut_short=deadline.cut_short)

    if wished:
        # Many statuses must leave time for the gates of a rollout.
        deadline.stage_of_rest(0.5, Ends.SETTLING)
    cluster, workers = world.cluster, world.workers
    written, errors = settle(cluster, world.clock, workers, deadline, due)
    gates = open_gates(
        cluster,
        found.applier,
        workers,
        deadline,
        given.ownership,
        wished,
        share=Ends.SETTLING,
        now=world.clock.now(),
    )
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
    """Return the writes that are due for the syncers, and the status of each syncer."""
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
        lost=report.lost,
    )
    words = memory.rewording.due(now)
    due = unsettled(result, words=words, earlier=memory.statuses, recoveries=memory.recoveries)
    memory.recoveries.end_of_pass()
    return due
