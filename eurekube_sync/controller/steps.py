"""The longer steps of a pass, in its order: renew what Eureka lists, decide, carry out in Eureka,
write to Kubernetes. `reconcile` calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import partial

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.gates import open_gates, openings
from eurekube_sync.apply.kubernetes import Unsettled, put_finalizers_on, settle, unsettled
from eurekube_sync.apply.lost import lost_apps
from eurekube_sync.apply.tally import PassResult
from eurekube_sync.brake.approval import PlanId, annotation_releases, refusal
from eurekube_sync.brake.braking import Braked, apply_brake
from eurekube_sync.brake.confirm import Sighted, overdue, unread_of
from eurekube_sync.brake.evidence import pod_states
from eurekube_sync.brake.holds import Brake, Held, held_together
from eurekube_sync.brake.removals import keep_without_successor, removals_left, witnesses
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
from eurekube_sync.model.struct import replace
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
from eurekube_sync.plan.make import apply_rules, lost, plan_blind, plan_renewals
from eurekube_sync.plan.value import Plan, sorted_plan

# --- Before Kubernetes is read --------------------------------------------------------------------


def applier_of(
    world: EurekaWorld, ownership: Ownership | None, scope: Scope, deadline: Deadline
) -> Applier:
    """Make an applier that may change what is ours in this scope. Without an `ownership` it may
    only renew."""
    may_change = None
    if ownership is not None:
        may_change = partial(is_ours, ownership=ownership, scope=scope)
    return Applier(world.registry, world.clock, world.workers, world.renewals, may_change, deadline)


def renewed_before(world: EurekaWorld) -> Plan:
    """Plan to renew what this process renewed before, for while Eureka cannot be read."""
    lately = world.renewals.renewed_lately()
    return sorted_plan(Renew(key=key, syncer=None, why="it was registered") for key in lately)


def renew_ours(
    world: World, applier: Applier, registry: Source[Observed], cancelled: Set[InstanceKey]
) -> Mapping[InstanceKey, Outcome]:
    """Renew our instances before Kubernetes is read, except those `cancelled` a moment ago.
    Instances with the mark of another class wait until the cluster is read, and so do those of a
    syncer that another owner serves, too."""
    if isinstance(registry, Unknown):
        lately = renewed_before(world).renewals  # a cancelled lease is not among these
        return Outcomes.of(applier.renew(lately)).by_key

    observed = registry.data
    syncer_class = observed.scope.syncer_class
    contended = served_by_others(observed)
    registered: list[ObservedInstance] = []
    for key in applier.due(observed.ours):  # saves judging the others; `renew` asks again
        instance = observed.ours[key]
        if key in cancelled or instance.metadata.get(CLASS) != syncer_class:
            continue
        if syncer_of(instance) in contended:
            continue
        # What has a former mark is renewed only by the plan, once it is known that its
        # installation has ended.
        if not observed.ownership.is_former(instance):
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


# --- Decide ---------------------------------------------------------------------------------------


def decide(given: Given, found: Found) -> tuple[Found, PassReport]:
    """Plan from Eureka's list, read again what would change, plan again, and apply the brake.

    Return the plan in a report, with what was found and read again. If the brake would hold
    removals for a person, or longer than for a second look, their pods are listed, and the brake
    is applied again."""
    world, settings = given.world, given.settings
    # Reads may take half of the time that is left until `APPLYING` ends: writes need the rest.
    given.deadline.stage(Ends.APPLYING, part_of_rest=0.5)
    at = world.clock.now()
    approval_refusal = refusal(settings.approved, at)
    approval = settings.approved if approval_refusal is None else None
    brake = _brake(given, found.desired, approval, at)
    last_seen_up = _last_seen_up(world, found)

    if isinstance(found.registry, Unknown):
        braked = _blind(found.desired, last_seen_up, given.ownership)
    else:
        desired, observed, plan = _read_again(given, found, found.registry.data, last_seen_up)
        found = replace(found, desired=desired, registry=Complete(data=observed))
        # A removal whose successor cannot be registered becomes a renewal. Before the brake: else
        # it would await confirmation for ever.
        plan = keep_without_successor(plan, desired, observed)
        braked = apply_brake(plan, observed, brake)
        to_look_at = _worth_a_look(braked.held, brake)
        if to_look_at:
            # Dead pods are no loss, so the brake may hold less when it knows them.
            pods = pods_behind(world.cluster, found.view, to_look_at, observed, settings.scope)
            brake = replace(brake, pods=pods)
            braked = apply_brake(plan, observed, brake)
            braked = _with_evidence(given, braked, observed)

    batching = world.registry.batching()
    looked = world.clock.monotonic()
    basis = Basis(brake=brake, last_seen_up=last_seen_up, braked=braked, looked=looked)
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
        # What `--approve` gave, and the removals that it released.
        approved=settings.approved,
        approval_refused=approval_refusal,
        released=braked.approved,
        batching=batching,
        basis=basis,
    )
    return found, report


def _last_seen_up(world: World, found: Found) -> frozenset[InstanceKey]:
    """Return the wanted instances that this process last saw UP, where the plan depends on it."""
    claims = found.desired.claims.values()
    # With Eureka's list, only suspended syncers need it, for what Eureka lost.
    if isinstance(found.registry, Complete) and not any(map(is_suspended, claims)):
        return frozenset()
    renewed = world.renewals.renewed_lately()
    return world.memory.last_seen.still_wanted(found.desired, renewed)


def _brake(given: Given, desired: Desired, approval: PlanId | None, at: float) -> Brake:
    """Make the brake from the limits of the installation, and from what a person released."""
    settings = given.settings
    # An earlier sighting counts only for so long: passes that are further apart let leases expire.
    confirm_within = settings.brake.confirm_after + settings.lease.expires_after
    freed: set[SyncerRef] = set()
    statuses: dict[SyncerRef, SyncerStatus | None] = {}
    for ref, claim in desired.claims.items():
        statuses[ref] = claim.syncer.status
        if annotation_releases(claim.syncer, at):
            freed.add(ref)

    # A removal was seen when the lists were made, which may be as old as the pass.
    begun = given.deadline.begun
    begun_at = at - (given.world.clock.monotonic() - begun)  # in Unix seconds
    sightings = given.world.memory.sightings
    seen = sightings.before(statuses, begun=begun, now=begun_at, within=confirm_within)
    return Brake(
        limits=settings.brake,
        freed_by_annotation=frozenset(freed),
        approval=approval,
        seen=seen,
        confirm_within=confirm_within,
    )


def _worth_a_look(held: Held | None, brake: Brake) -> tuple[Removal, ...]:
    """Return the held removals whose pods are to be listed."""
    if held is None:
        return ()
    return (*held.for_a_person, *overdue(held, brake))


def _with_evidence(given: Given, braked: Braked, observed: Observed) -> Braked:
    """Add what the pods of the held removals do now, for the person who decides. What awaits
    confirmation waits for nobody."""
    held = braked.held
    if held is None or not held.for_a_person:
        return braked
    waiting = held.for_a_person
    pods = readiness_behind(given.world.cluster, waiting, observed, given.settings.scope)
    states = pod_states(waiting, observed.ours, pods)
    return replace(braked, held=replace(held, pods=states))


def _blind(desired: Desired, last_seen_up: frozenset[InstanceKey], ownership: Ownership) -> Braked:
    """Plan without Eureka's list. Nothing is removed, so the brake has nothing to weigh."""
    plan = plan_blind(desired, last_seen_up)
    if ownership.former:
        plan = under_either_id(plan, ownership)  # the former id or the new one
    return Braked(plan=plan, held=None)


def _read_again(
    given: Given, found: Found, observed: Observed, last_seen_up: frozenset[InstanceKey]
) -> tuple[Desired, Observed, Plan]:
    """Plan, and read instances uncached, until the plan needs no further read."""
    memory = given.world.memory
    read: set[InstanceKey] = set()
    # What the list should show and may not: reading it tells the list's age. Of what this process
    # registered, the newest suffices.
    age_probes = list(found.unshown[:1])
    if memory.first_pass:
        age_probes += of_doubtful_age(found.desired, observed)
    while True:
        desired, before_adds = apply_rules(found.desired, observed)
        plan = memory.plan.plan(desired, observed, last_seen_up)
        keys = [
            # Those that the plan changes, and those that are in its way.
            *plan.suspects,
            # Cancelled a moment ago and still listed: as UP they would hold places.
            *sorted(found.cancelled & observed.ours.keys()),
            # The list may not show them yet, and then the plan adds too many.
            *before_adds,
            # Of suspended syncers: Eureka may have lost them, or the list may be old.
            *lost(desired, observed, last_seen_up),
            # They must stay UP beside those that are removed.
            *witnesses(plan, observed, read),
            *age_probes,
        ]
        # This ends, because each round reads keys that were not read before.
        to_read = [key for key in dict.fromkeys(keys) if key not in read]
        if not to_read:
            return desired, observed, plan
        observed = _read(given, found, observed, to_read, plan.in_the_way)
        read.update(to_read)


def _read(
    given: Given,
    found: Found,
    observed: Observed,
    to_read: Sequence[InstanceKey],
    in_the_way: Mapping[InstanceKey, InstanceKey],
) -> Observed:
    """Read these instances uncached, and return the list with what was read. Many instances are
    read in batches, which renew them."""
    may_be_gone = _may_be_gone(found)
    # Batches renew. So they read neither what may be gone, nor what only the plan may renew, and
    # nothing in a dry run.
    must_not_be_renewed = may_be_gone | _only_by_plan(observed)
    unlisted: list[InstanceKey] = []
    gone: list[InstanceKey] = []
    renewable: list[InstanceKey] = []
    for key in to_read:
        if key not in observed.ours and key not in observed.others:
            unlisted.append(key)
        if key in may_be_gone:
            gone.append(key)
        if key in observed.ours and key not in must_not_be_renewed:
            renewable.append(key)
    if given.settings.dry_run:
        renewable = []
    readings = found.applier.read(
        to_read,
        may_be_absent=[*unlisted, *gone],
        in_the_way_of=in_the_way,
        renewable=renewable,
    )

    readings_for_age = dict(readings)
    for key in given.world.memory.own_writes.settle(readings):
        # Eureka holds an older version than this process wrote. No list can show ours, so this
        # reading says nothing of the list's age.
        del readings_for_age[key]
    if len(given.world.servers) > 1:
        # Another server's list may lack an instance, which tells nothing of the age of this one.
        for key in unlisted:
            readings_for_age.pop(key, None)
    # First the age: it compares the readings with what the list shows, which they replace then.
    dated = observed.dated(readings_for_age, given.settings.registry_cache)
    return dated.refreshed(readings)


def _may_be_gone(found: Found) -> frozenset[InstanceKey]:
    """Return what may be gone even if it is listed: it was cancelled a moment ago, or a renewal was
    answered with 404."""
    may_be_gone = set(found.cancelled)
    for key, outcome in found.renewed.items():
        if outcome.result is Result.GONE:
            may_be_gone.add(key)
    return frozenset(may_be_gone)


def _only_by_plan(observed: Observed) -> frozenset[InstanceKey]:
    """Return our instances that only the plan may renew: those with a former mark, until it is
    known that their installation has ended, and those of syncers that another owner serves as well,
    which may be left to expire."""
    # `former` is keyed by the new ids. Here are the ids that Eureka has.
    keys = {instance.key for instance in observed.former.values()}
    for syncer in served_by_others(observed):
        keys |= observed.keys_by_syncer.get(syncer, frozenset())
    return frozenset(keys)


# --- Carry out in Eureka --------------------------------------------------------------------------


def carry_out(given: Given, found: Found, report: PassReport) -> PassReport:
    """Renew what is not renewed yet, put finalizers on, add, update, and then remove. Remember what
    the next pass has to know."""
    world = given.world
    deadline = given.deadline
    applier = found.applier
    plan = report.plan
    renewals = plan.renewals
    done = _renew_planned(found, renewals)
    adds = [*_adds(plan), *_expired(done)]
    deadline.stage(Ends.APPLYING, part_of_rest=0.5)
    # On each syncer with an instance, registered or renewed: its deletion then waits until we have
    # cancelled them. `barred` are the syncers without one, which must not register.
    barred, errors = put_finalizers_on(
        world.cluster, world.workers, deadline, found.desired, [*adds, *renewals]
    )
    # Many adds must leave time for the removals and updates that come last.
    if any(comes_last(change) for change in plan.changes):
        deadline.stage(Ends.APPLYING, part_of_rest=0.5)
    else:
        deadline.stage(Ends.APPLYING)
    done += applier.change(adds, barred)
    deadline.stage(Ends.APPLYING)
    # A server that was unreachable may lack instances whose leases were not due. These outcomes
    # say so, and the next call registers the instances there.
    done += applier.ask_returned_servers(renewals, done)
    # No instance is removed before each server has its successor.
    done += applier.register_where_lacking(done, barred)
    # Of several outcomes of a key, the last one counts.
    report = replace(report, outcomes=Outcomes.of(done), cluster_errors=errors)

    assert report.basis is not None  # `decide` made it
    confirmed = report.basis.braked.confirmed
    if isinstance(report.registry, Complete):
        observed = report.registry.data
        report, confirmed_since = _remove(found, report, observed, done)
        confirmed |= confirmed_since
        _renew_unmoved(applier, observed, report.outcomes)
    outcomes = retry_untried_renewals(applier, report.outcomes)
    failed = _confirmed_but_failed(outcomes, confirmed)
    report = replace(report, outcomes=outcomes, confirmed_failed=failed)
    _remember(given, found.desired, report)
    return report


def _renew_planned(found: Found, renewals: Sequence[Renew]) -> list[Outcome]:
    """Renew what was not renewed before Kubernetes was read; return the outcomes of all."""
    done: list[Outcome] = []
    not_renewed_yet: list[Renew] = []
    for action in renewals:
        early = found.renewed.get(action.key)
        if early is None:
            not_renewed_yet.append(action)
        else:
            done.append(early.of(action))  # the same outcome, under the planned action
    return done + found.applier.renew(not_renewed_yet)


def _adds(plan: Plan) -> list[Register | Update]:
    """Return the registrations and updates that come before the removals."""
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
    report with that, and the removals that the brake confirmed now."""
    basis = report.basis
    assert basis is not None  # `decide` made it
    # Failed adds may have changed the set of removals, so that its plan id no longer fits. What was
    # approved stays so, by its keys.
    brake = replace(basis.brake, approval=None, approved_before=basis.braked.approved)
    removals = removals_left(report.plan, found.desired, observed, done, brake)
    removed = found.applier.remove(removals.actions, removals.kept_back)
    held = held_together(report.held, removals.held)
    outcomes = Outcomes.of([*done, *removed])
    report = replace(report, plan=removals.plan, held=held, outcomes=outcomes)
    return report, removals.confirmed


def _confirmed_but_failed(
    outcomes: Outcomes, confirmed: frozenset[InstanceKey]
) -> tuple[Removal, ...]:
    """Return the removals that were confirmed and failed. The next pass need not confirm them
    again."""
    failed: list[Removal] = []
    for outcome in outcomes.failures:
        action = outcome.action
        if action.key in confirmed and isinstance(action, Update | Cancel):
            failed.append(action)
    return tuple(failed)


def _remember(given: Given, desired: Desired, report: PassReport) -> None:
    """Note what the next pass has to know."""
    world = given.world
    memory = world.memory
    outcomes = report.outcomes
    memory.own_writes.note(outcomes, world.clock.monotonic(), since=report.at)
    memory.first_pass = False

    basis = report.basis
    assert basis is not None  # `decide` made it
    brake = basis.brake
    unread: Sighted = {}
    # A pass that could not read Eureka's list either forgets all.
    if isinstance(report.registry, Complete):
        unread = unread_of(brake.seen, desired.is_unread, within=brake.confirm_within)
    memory.sightings.note(
        report.held,
        before=brake.seen,
        begun=given.deadline.begun,
        looked=basis.looked,
        confirmed=report.confirmed_failed,
        unread=unread,
    )

    if isinstance(report.registry, Complete):
        renewed = world.renewals.renewed_lately()
        observed = report.registry.data
        # `unproven` were UP for another syncer before, and the list may be older than their cancel.
        # The next pass renews them at once, which shows whether Eureka still holds them.
        unproven = memory.last_seen.note(observed, outcomes, renewed, desired)
        for key in unproven:
            world.renewals.again(key)
    else:
        memory.last_seen.note_unread(desired)


def _renew_unmoved(applier: Applier, observed: Observed, outcomes: Outcomes) -> None:
    """Renew the instances of a former owner that could not be moved. Nothing else does: at the
    pass's begin it was unknown whether their installation has ended."""
    staying: list[ObservedInstance] = []
    for instance in observed.former.values():
        outcome = outcomes.by_key.get(instance.key)
        if outcome is None or outcome.failed:
            staying.append(instance)
    if staying:
        renewals = plan_renewals(staying, "it could not be moved to its new id yet").renewals
        # Not reported: the report already says why each was not moved.
        applier.renew(renewals, staying)


def retry_untried_renewals(applier: Applier, outcomes: Outcomes) -> Outcomes:
    """Try the renewals for which their stage had no time, now that later stages left some."""
    untried: list[Renew] = []
    for outcome in outcomes.others:
        if outcome.result is Result.NOT_TRIED and isinstance(outcome.action, Renew):
            untried.append(outcome.action)
    if not untried:
        return outcomes
    renewed = applier.renew(untried)
    return Outcomes.of([*outcomes.by_key.values(), *renewed])


def with_lost_apps(found: Found, report: PassReport) -> PassReport:
    """Add the apps that have no UP instance after the pass although endpoints of them are ready."""
    if isinstance(report.registry, Unknown):
        return report
    apps = lost_apps(
        found.desired.claims,
        found.view,
        report.settings.scope,
        report.registry.data,
        report.plan,
        report.outcomes,
        dry_run=report.settings.dry_run,
    )
    return replace(report, lost=apps)


# --- Write to Kubernetes --------------------------------------------------------------------------


def write_to_kubernetes(given: Given, found: Found, report: PassReport) -> PassReport:
    """Remove finalizers, write statuses and open gates, unless another cluster may answer now."""
    world = given.world
    deadline = given.deadline
    now = world.clock.now()
    deadline.stage(Ends.SETTLING)
    due = take_due_writes(given, found, report)
    wished = openings(found.desired, found.view, found.registry, report.plan, now=now)
    doubt = None
    # A process that stops has no time left: nothing is written below.
    if (due.writes or wished) and not world.clock.stopping():
        doubt = given.same.doubt(otherwise="no status is written")
    if doubt is not None:
        view = replace(found.view, identity=doubt)
        return replace(report, view=view, cut_short=deadline.cut_short)

    if wished:
        # Many statuses must leave time for the gates of a rollout.
        deadline.stage(Ends.SETTLING, part_of_rest=0.5)
    written, errors = settle(world.cluster, world.clock, world.workers, deadline, due.writes)
    gate_errors = open_gates(
        world.cluster,
        found.applier,
        world.workers,
        deadline,
        given.ownership,
        wished,
        share=Ends.SETTLING,
        now=world.clock.now(),
    )
    return replace(
        report,
        all_statuses=due.statuses,
        statuses=written,
        cluster_errors=(*report.cluster_errors, *errors, *gate_errors),
        cut_short=deadline.cut_short,
    )


def take_due_writes(given: Given, found: Found, report: PassReport) -> Unsettled:
    """Return the writes that are due for the syncers, and the status of each syncer. It counts the
    pass in the memory of the process, so it is called once in a pass."""
    settings = given.settings
    memory = given.world.memory
    now = given.world.clock.now()
    result = PassResult(
        desired=found.desired,
        registry=found.registry,
        plan=report.plan,
        held=report.held,
        confirmed_failed=report.confirmed_failed,
        outcomes=report.outcomes,
        now=now,
        unseen=found.unseen,
        options=settings.options,
        cache=settings.registry_cache,
        expires_after=settings.lease.expires_after,
        lost=report.lost,
    )
    # Statuses of which only the words changed are written now and then.
    words_due = memory.rewording.due(now)
    due = unsettled(result, words=words_due, earlier=memory.statuses, recoveries=memory.recoveries)
    memory.recoveries.end_of_pass()
    return due
