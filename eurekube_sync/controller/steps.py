"""The steps of a pass after its lists: decide, carry out in Eureka, write to Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.gates import open_gates, openings
from eurekube_sync.apply.kubernetes import Write, put_finalizers_on, settle, unsettled
from eurekube_sync.apply.lost import lost_apps
from eurekube_sync.apply.tally import PassResult
from eurekube_sync.brake.approval import PlanId, annotation_releases, refusal
from eurekube_sync.brake.braking import Braked, apply_brake, to_look_up
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
from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import (
    Cancel,
    Outcome,
    Outcomes,
    Register,
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
from eurekube_sync.observe.kubernetes import pods_behind
from eurekube_sync.plan.duplicates import warned
from eurekube_sync.plan.former import under_either_id
from eurekube_sync.plan.left_alone import is_suspended, lost
from eurekube_sync.plan.make import draft, plan_blind, plan_for, plan_renewals, with_unread
from eurekube_sync.plan.value import Plan, sorted_plan


def decide(given: Given, found: Found) -> tuple[Found, PassReport]:
    """Makes the plan, and gives it in a report, with what was found and read again. The plan is
    drafted from Eureka's list, and made again from uncached reads. If the brake would hold
    removals, their pods are listed, and the brake is applied again."""
    world, settings, desired, registry = given.world, given.settings, found.desired, found.registry
    given.deadline.stage_of_rest(0.5, Ends.APPLYING)
    at, memory = world.clock.now(), world.memory
    refused = refusal(settings.approved, at)
    brake = _brake(given, desired, None if refused else settings.approved, at)
    remembers = isinstance(registry, Unknown) or any(map(is_suspended, desired.claims.values()))
    last_up = frozenset[InstanceKey]()
    if remembers:
        last_up = memory.last_seen.still_wanted(desired, world.renewals.renewed_lately())
    if isinstance(registry, Complete):
        drafted, observed = _read_again(given, found, registry.data, last_up)
        desired, braked = drafted[0], _braked(drafted, observed, last_up, brake)
        if unlisted := to_look_up(braked.held):
            pods = pods_behind(world.cluster, found.view, unlisted, observed, settings.scope)
            brake = replace(brake, pods=pods)
            braked = _braked(drafted, observed, last_up, brake)
        found = replace(found, desired=warned(desired, observed), registry=Complete(data=observed))
    else:
        braked = _blind(desired, last_up, given.ownership)
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
        basis=Basis(brake=brake, last_up=last_up, braked=braked),
    )
    return found, report


def _blind(desired: Desired, last_up: frozenset[InstanceKey], ownership: Ownership) -> Braked:
    plan = plan_blind(desired, last_up)
    if ownership.former:
        plan = under_either_id(plan, ownership)
    return Braked(plan=plan, held=None)


def _read_again(
    given: Given, found: Found, observed: Observed, last_up: frozenset[InstanceKey]
) -> tuple[tuple[Desired, Plan], Observed]:
    """Drafts a plan and reads its instances uncached, until the draft needs no further read. Read
    are those that it would change, those that must stay UP beside them, those that this process
    cancelled a moment ago, because these must not take the place of others, and those that tell the
    age of the list."""
    memory, read = given.world.memory, set[InstanceKey]()
    alone = len(given.world.servers) <= 1  # else another server's list may lack an instance
    # Still listed, but cancelled, or its renewal was a 404: a batch can say that it is absent,
    # without a renewal.
    gone = found.cancelled | {
        key for key, outcome in found.renewed.items() if outcome.result is Result.GONE
    }
    # What has a former mark is renewed only once it is known that its installation has ended.
    apart = gone | {instance.key for instance in observed.former.values()}
    telling = [
        *found.unshown[:1],
        *(of_doubtful_age(found.desired, observed) if memory.first_pass else ()),
    ]
    while True:
        desired, plan = draft(found.desired, observed, last_up, memory.plan)
        comes_back = lost(desired, observed, last_up)
        cancelled = sorted(key for key in found.cancelled if key in observed.ours)
        suspects = (
            *plan.suspects,
            *cancelled,
            *desired.to_read,
            *comes_back,
            *witnesses(plan, observed, read),
        )
        unread = list(dict.fromkeys(key for key in (*suspects, *telling) if key not in read))
        if not unread:
            return (desired, plan), observed
        absent = [key for key in unread if key not in observed.ours and key not in observed.others]
        renewable = [key for key in unread if key in observed.ours and key not in apart]
        unlisted = [*absent, *(key for key in unread if key in gone)]
        readings = found.applier.read(unread, unlisted, plan.in_the_way, renewable)
        memory.own_writes.settle(readings)
        dating = (
            readings
            if alone
            else {key: reading for key, reading in readings.items() if key not in absent}
        )
        observed = observed.dated(dating, given.settings.registry_cache).refreshed(readings)
        read.update(unread)


def _braked(
    drafted: tuple[Desired, Plan], observed: Observed, last_up: frozenset[InstanceKey], brake: Brake
) -> Braked:
    """Applies the brake to the draft, without the removals whose successor cannot even be tried."""
    desired, plan = drafted
    if not observed.unread.keys().isdisjoint(observed.ours):  # nothing is read any more
        plan = with_unread(plan, plan_for(desired, replace(observed, unread={}), last_up), observed)
    return apply_brake(without_successor(plan, desired, observed), observed, brake)


def _brake(given: Given, desired: Desired, approval: PlanId | None, now: float) -> Brake:
    """Makes the brake from the limits of the installation, and from what a person released."""
    settings, claims = given.settings, desired.claims
    # Passes that are further apart than this let leases expire.
    within = settings.brake.confirm_after + 2 * settings.lease.duration
    monotonic = given.world.clock.monotonic()
    return Brake(
        limits=settings.brake,
        freed=frozenset(
            ref for ref, claim in claims.items() if annotation_releases(claim.syncer, now)
        ),
        approval=approval,
        seen=given.world.memory.sightings.before(
            desired, monotonic=monotonic, now=now, within=within
        ),
        confirm_within=within,
    )


def renewed_before(world: EurekaWorld) -> Plan:
    """Plans to renew what this process renewed before, for while Eureka cannot be read."""
    return sorted_plan(
        Renew(key=key, syncer=None, why="it was registered")
        for key in world.renewals.renewed_lately()
    )


def renew_ours(
    world: World, applier: Applier, registry: Source[Observed], cancelled: frozenset[InstanceKey]
) -> Mapping[InstanceKey, Outcome]:
    """Renews our instances before Kubernetes is read, except those `cancelled` a moment ago.
    Instances with the mark of another class wait until the cluster is read, and so do those of a
    syncer that another owner serves, too."""
    if isinstance(registry, Unknown):
        return Outcomes.of(applier.renew(renewed_before(world).renewals)).by_key
    observed = registry.data
    class_, contended = observed.scope.syncer_class, served_by_others(observed)
    due = (observed.ours[key] for key in applier.due(observed.ours) if key not in cancelled)
    # What has a former mark is renewed only by the plan, once it is known that its installation has
    # ended.
    registered = [
        instance
        for instance in due
        if instance.metadata.get(CLASS) == class_
        and syncer_of(instance) not in contended
        and not observed.ownership.is_former(instance)
    ]
    return Outcomes.of(
        applier.renew(plan_renewals(registered, "it is registered").renewals, registered)
    ).by_key


def ask_former(given: Given, found: Found, observed: Observed) -> Judgement:
    """Judges by uncached reads whether the former installations have ended."""
    waiting = waiting_to_move(observed, found.desired)
    first = to_read_first(waiting, given.ownership)
    readings = found.applier.read(first)
    further = to_read_next(waiting, readings, given.ownership)
    readings |= found.applier.read(further)
    return judge(waiting, readings, given.ownership)


def carry_out(given: Given, found: Found, report: PassReport) -> PassReport:
    """Renews the rest, puts finalizers on, adds, updates, and then removes. Before the removals the
    brake is applied again, because adds may have failed. Remembers what the next pass has to
    know."""
    world, deadline, applier, desired = given.world, given.deadline, found.applier, found.desired
    basis = report.basis
    assert basis is not None  # `decide` made it
    plan, held, confirmed = report.plan, report.held, basis.braked.confirmed
    renewals = plan.renewals
    done = [
        found.renewed[action.key].of(action) for action in renewals if action.key in found.renewed
    ]
    done += applier.renew([action for action in renewals if action.key not in found.renewed])
    expired = [
        o.action
        for o in done
        if o.result is Result.GONE and isinstance(o.action, Renew) and o.action.if_gone
    ]
    adds = [
        *(a for a in plan.changes if isinstance(a, Register | Update) and not comes_last(a)),
        *expired,
    ]
    deadline.stage_of_rest(0.5, Ends.APPLYING)
    barred, errors = put_finalizers_on(
        world.cluster, world.workers, deadline, desired, [*adds, *renewals]
    )
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
        renew_former(applier, report.registry.data, outcomes)
    outcomes = renew_the_rest(applier, outcomes)
    failed = (one.action for one in outcomes.failures if one.action.key in confirmed)
    again = tuple(action for action in failed if isinstance(action, Update | Cancel))
    monotonic = world.clock.monotonic()
    memory.own_writes.note(outcomes, monotonic, since=report.at)
    memory.first_pass = False
    memory.sightings.note(held, basis.brake.seen, monotonic=monotonic, confirmed=again)
    if isinstance(report.registry, Complete):
        memory.last_seen.note(
            report.registry.data, outcomes, world.renewals.renewed_lately(), desired
        )
    return replace(
        report, plan=plan, held=held, confirmed=again, outcomes=outcomes, cluster_errors=errors
    )


def renew_former(applier: Applier, observed: Observed, outcomes: Outcomes) -> None:
    """Renews the instances of a former owner that could not be moved. Nothing else does: at the
    pass's begin it was unknown whether their installation has ended."""
    staying: list[ObservedInstance] = []
    for instance in observed.former.values():
        outcome = outcomes.by_key.get(instance.key)
        if outcome is None or outcome.failed:
            staying.append(instance)
    if staying:
        applier.renew(
            plan_renewals(staying, "it could not be moved to its new id yet").renewals, staying
        )


def with_lost_apps(found: Found, report: PassReport) -> PassReport:
    """Adds the apps that have no UP instance after the pass although endpoints of them are
    ready."""
    if isinstance(report.registry, Unknown):
        return report
    settings = report.settings
    observed, plan, outcomes = report.registry.data, report.plan, report.outcomes
    claims = found.desired.claims
    dry = settings.dry_run
    lost = lost_apps(claims, found.view, settings.scope, observed, plan, outcomes, dry_run=dry)
    return replace(report, lost=lost)


def renew_the_rest(applier: Applier, outcomes: Outcomes) -> Outcomes:
    """Tries the renewals for which their stage had no time, now that later stages left some."""
    untried = [o.action for o in outcomes.others if o.result is Result.NOT_TRIED]
    rest = [action for action in untried if isinstance(action, Renew)]
    return Outcomes.of([*outcomes.by_key.values(), *applier.renew(rest)]) if rest else outcomes


def applier_of(
    world: EurekaWorld, ownership: Ownership | None, scope: Scope, deadline: Deadline
) -> Applier:
    """Makes an applier that may change what is ours in this scope. Without an `ownership` it may
    only renew."""
    may_change = None if ownership is None else lambda one: is_ours(one, ownership, scope)
    return Applier(world.registry, world.clock, world.workers, world.renewals, may_change, deadline)


def write_to_kubernetes(given: Given, found: Found, report: PassReport) -> PassReport:
    """Removes finalizers, writes statuses and opens gates, unless another cluster may answer
    now."""
    world, deadline, now = given.world, given.deadline, given.world.clock.now()
    deadline.stage(Ends.SETTLING)
    due, statuses = statuses_due(given, found, report)
    wished = openings(found.desired, found.view, found.registry, report.plan, now=now)
    doubt = (
        given.same.doubt("no status is written")
        if (due or wished) and not world.clock.stopping()
        else None
    )
    if doubt is not None:
        return replace(
            report, view=replace(found.view, identity=doubt), cut_short=deadline.cut_short
        )
    if wished:
        deadline.stage_of_rest(
            0.5, Ends.SETTLING
        )  # many statuses must leave time for the gates of a rollout
    cluster, workers = world.cluster, world.workers
    written, errors = settle(cluster, world.clock, workers, deadline, due)
    now = world.clock.now()
    gates = open_gates(
        cluster,
        found.applier,
        workers,
        deadline,
        given.ownership,
        wished,
        share=Ends.SETTLING,
        now=now,
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
        lost=report.lost,
    )
    words = memory.rewording.due(now)
    due = unsettled(result, words=words, earlier=memory.statuses, recoveries=memory.recoveries)
    memory.recoveries.end_of_pass()
    return due
