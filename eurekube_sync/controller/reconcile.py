"""One pass, step by step. This file is the documentation of what a pass does; each step lives in a file of its name.

    list Eureka -> renew -> list Kubernetes -> claims -> look elsewhere -> plan -> read again what would change -> plan
    -> brake -> apply -> settle

Eureka is listed first: what somebody registers in between must not look undesired. What stands is renewed before
anything else is asked, so that no slow server can let leases lapse. A source that cannot be read is Unknown, and what
hangs on it is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from math import inf

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.finalizers import look_elsewhere
from eurekube_sync.apply.gates import open_gates, openings
from eurekube_sync.apply.kubernetes import Unsettled, record, settle, unsettled, without_finalizer
from eurekube_sync.brake import Brake, Braked
from eurekube_sync.brake.approval import refusal
from eurekube_sync.controller.carry_out import applier_of, carry_out, renew_ours
from eurekube_sync.controller.decide import brake_of, decide
from eurekube_sync.controller.one_pass import (
    APPLYING,
    CHOOSING,
    IDENTIFYING,
    LISTING,
    READING,
    RENEWING,
    SETTLING,
    PassReport,
    PassSettings,
    World,
)
from eurekube_sync.controller.renew_only import renew_only, renew_unidentified
from eurekube_sync.desired.claims import Deleting, Desired
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Renew, Withdrawal, removes
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import ClusterView, Pods, SyncerObject
from eurekube_sync.model.outcomes import Outcome, Result
from eurekube_sync.model.ownership import Ownership, pod_namespace_of
from eurekube_sync.model.sources import Complete, Listed, Unknown
from eurekube_sync.observe.eureka import Observed, observe
from eurekube_sync.observe.kubernetes import (
    SameCluster,
    absent_namespaces,
    living_pods,
    pods_behind,
    read_cluster,
    read_pods,
    read_syncers,
    unread_cluster,
)
from eurekube_sync.observe.other_owner import OtherOwner, other_owners
from eurekube_sync.observe.unserved import AGAIN, Unserved, living, unserved
from eurekube_sync.plan import Plan, plan_renewals, sorted_plan
from eurekube_sync.plan.suspend import is_suspended


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What every step of one pass is given."""

    world: World
    settings: PassSettings
    deadline: Deadline
    identity: Complete[str]
    ownership: Ownership
    same: SameCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """What stands in Eureka, and was renewed before anything else was asked."""

    applier: Applier
    registry: Complete[Observed] | Unknown
    renewed: list[Outcome]
    cancelled: frozenset[InstanceKey]
    """What this process cancelled a moment ago, and a list may show still: not renewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What stands beside what is claimed, as well as it is known by now."""

    applier: Applier
    registry: Complete[Observed] | Unknown
    view: ClusterView
    desired: Desired
    unseen: tuple[str, ...] | None = None
    """The other Eureka servers that did not show what they hold, None when none was asked."""
    absent: tuple[str, ...] = ()
    """Namespaces of the scope that do not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decided:
    """What is to be done, and by which brake."""

    at: float
    """In Unix seconds."""
    brake: Brake
    braked: Braked
    refused: str | None
    """Why what a person released cannot be meant for this pass."""


def reconcile(world: World, settings: PassSettings) -> PassReport:
    """Makes Eureka equal to what the cluster says, as far as both could be read."""
    deadline = Deadline(world.clock, settings.deadline, world.time_limit)
    deadline.stage(IDENTIFYING)
    identity = world.cluster.identity()
    deadline.stage(LISTING)
    asked, asked_at = world.clock.monotonic(), world.clock.now()
    listed = world.registry.list_instances()
    if isinstance(identity, Unknown):
        deadline.stage(SETTLING)
        return renew_unidentified(world, settings, deadline, listed, identity)

    given = _Given(
        world=world,
        settings=settings,
        deadline=deadline,
        identity=identity,
        ownership=Ownership(owner=settings.owner, cluster=identity.data),
        same=SameCluster(world.cluster, world.clock, identity),
    )
    scope, syncers = _choose(given)
    standing = _renew(given, scope, listed, asked, asked_at)
    if isinstance(standing.registry, Complete) and standing.registry.data.clashes:
        return _refuse(given, standing, standing.registry)

    found = _claim(given, scope, syncers, standing)
    others = _other_owners(given, found)
    found = _look_elsewhere(given, listed, found)
    found, decided = _decide(given, standing, found)
    if isinstance(found.registry, Complete) and any(other.stops_us for other in others):
        return _renew_beside(given, standing, found, found.registry, decided, others)
    if doubt := _doubt(given, standing, found, decided.braked):
        return _renew_doubted(given, standing, found, decided, doubt)
    deadline.stage(APPLYING)
    report = replace(_report(given, found, decided), other_owners=others, unserved=_unserved(given, found))
    if settings.dry_run:
        return replace(report, standings=_unsettled(given, found, report).standings)
    report = _carry_out(given, standing, found, decided, report)
    report = _keep_unserved(given, standing, found, report)
    return _settle(given, found, report)


def _choose(given: _Given) -> tuple[Scope, Listed[SyncerObject] | None]:
    """With a selector the syncers are listed before the first renewal, for nothing else tells whose an instance is.
    While that fails, all that may be ours is renewed."""
    scope = given.settings.scope
    if not scope.selector:
        given.deadline.stage(RENEWING)
        return scope, None
    given.deadline.stage(CHOOSING)
    syncers = read_syncers(given.world.cluster, scope)
    given.deadline.stage(RENEWING)
    return scope.knowing(syncers), syncers


def _renew(
    given: _Given,
    scope: Scope,
    listed: Complete[tuple[ObservedInstance, ...]] | Unknown,
    asked: float,
    asked_at: float,
) -> _Standing:
    """Divides what was `listed`, and renews what stands of ours, whatever the cluster will say. It was asked for at
    `asked` in monotonic, `asked_at` in Unix seconds."""
    world = given.world
    remembered = world.memory.own_writes.recent(asked)
    registry: Complete[Observed] | Unknown = (
        listed
        if isinstance(listed, Unknown)
        else Complete(data=observe(listed, given.ownership, scope, asked=asked_at).remembering(remembered))
    )
    cancelled = frozenset(key for key, wrote in remembered.items() if wrote is None)
    applier = applier_of(world, given.ownership, scope, given.deadline)
    renewed = [] if given.settings.dry_run else renew_ours(world, applier, registry, cancelled)
    return _Standing(applier=applier, registry=registry, renewed=renewed, cancelled=cancelled)


def _refuse(given: _Given, standing: _Standing, registry: Complete[Observed]) -> PassReport:
    """Another cluster uses our owner's name: what is ours is renewed, and nothing more is asked. That is also what
    waited for the cluster's word until now, which does not come."""
    given.deadline.stage(SETTLING)
    given.world.memory.sightings.nothing_seen()
    ours = [one for key, one in registry.data.ours.items() if key not in standing.cancelled]
    plan = plan_renewals(ours, "another cluster uses our owner name")
    report = replace(_bare_report(given, plan, registry, unread_cluster(given.identity)), clashes=registry.data.clashes)
    return renew_only(report, standing.applier, given.deadline, renewed=standing.renewed, listed=ours)


def _renew_beside(
    given: _Given,
    standing: _Standing,
    found: _Found,
    registry: Complete[Observed],
    decided: _Decided,
    others: tuple[OtherOwner, ...],
) -> PassReport:
    """Another owner serves our syncers: what the cluster wants is renewed, and what the brake holds. What should be
    removed is left to expire, for the other owner removes its own, and nobody else would remove ours."""
    world, held = given.world, decided.braked.held
    given.deadline.stage(SETTLING)
    world.memory.sightings.note(held, decided.brake.seen, monotonic=world.clock.monotonic())
    removed = {action.key for action in decided.braked.plan.actions if removes(action)}
    kept = [one for key, one in registry.data.ours.items() if key not in removed]
    plan = plan_renewals(kept, "another owner serves its syncer")
    report = replace(_bare_report(given, plan, registry, found.view), other_owners=others)
    return renew_only(report, found.applier, given.deadline, renewed=standing.renewed)


def _renew_doubted(given: _Given, standing: _Standing, found: _Found, decided: _Decided, doubt: Unknown) -> PassReport:
    """What was listed may be another cluster's: what is ours in this scope is renewed; while Eureka cannot be read,
    what the plan renews. Nothing comes back on a 404."""
    given.deadline.stage(SETTLING)
    given.world.memory.sightings.nothing_seen()
    if isinstance(found.registry, Unknown):
        plan = sorted_plan(replace(action, heal=None) for action in decided.braked.plan.of(Renew))
    else:
        ours = [one for key, one in found.registry.data.ours.items() if key not in standing.cancelled]
        plan = plan_renewals(ours, f"the cluster could not be read: {doubt.cause}")
    report = _bare_report(given, plan, found.registry, unread_cluster(doubt))
    return renew_only(report, found.applier, given.deadline, renewed=standing.renewed)


def _bare_report(given: _Given, plan: Plan, registry: Complete[Observed] | Unknown, view: ClusterView) -> PassReport:
    """Of a pass that only renews."""
    return PassReport(
        owner=given.settings.owner,
        cluster=given.ownership.cluster,
        scope=given.settings.scope,
        dry_run=given.settings.dry_run,
        at=given.world.clock.now(),
        plan=plan,
        registry=registry,
        view=view,
        batching=given.world.registry.batching(),
    )


def _claim(given: _Given, scope: Scope, syncers: Listed[SyncerObject] | None, standing: _Standing) -> _Found:
    """Lists Kubernetes, and makes the claims of what it says. By now it is known whose the instances are: what is
    another scope's is ours no more."""
    world, settings, registry = given.world, given.settings, standing.registry
    given.deadline.stage(READING)
    marked = frozenset(registry.data.keys_by_syncer) if isinstance(registry, Complete) else frozenset()
    view = read_cluster(world.cluster, given.identity, scope, marked, syncers, settings.drains)
    scope = scope.knowing(view.syncers)
    desired = claim_all(view, Naming(ownership=given.ownership, lease=settings.lease), scope)
    if isinstance(registry, Complete):
        registry = Complete(data=registry.data.narrowed(scope))
        view = read_pods(world.cluster, view, desired, registry.data, scope)
        desired = replace(desired, living_pods=living_pods(view))
    applier = applier_of(world, given.ownership, scope, given.deadline)
    absent = absent_namespaces(world.cluster, view, scope)
    return _Found(applier=applier, registry=registry, view=view, desired=desired, absent=absent)


def _other_owners(given: _Given, found: _Found) -> tuple[OtherOwner, ...]:
    """Those that serve our syncers in this cluster. What cannot be read shows none."""
    if isinstance(found.registry, Unknown):
        return ()
    return other_owners(found.registry.data, found.desired, given.world.clock.now())


def _look_elsewhere(given: _Given, listed: Complete[tuple[ObservedInstance, ...]] | Unknown, found: _Found) -> _Found:
    """With what other Eureka servers hold of deleted syncers, before one of those may go; and which servers did not
    show it. A process that begins knows nothing of what those before it could not reach."""
    registry = found.registry
    if isinstance(listed, Unknown) or isinstance(registry, Unknown):
        return found
    cache_seconds = given.settings.registry_cache
    deleted = look_elsewhere(found.desired.claims.values(), registry.data, cache_seconds=cache_seconds)
    if not deleted:
        return found
    there, unseen = given.world.registry.list_elsewhere(listed)
    return replace(found, registry=Complete(data=registry.data.beside(there, deleted)), unseen=unseen)


def _decide(given: _Given, standing: _Standing, found: _Found) -> tuple[_Found, _Decided]:
    """The plan, made of uncached reads and braked; and what was found, as those reads and the limits have it."""
    world, settings, desired = given.world, given.settings, found.desired
    given.deadline.stage_of_rest(0.5, APPLYING)
    now = world.clock.now()
    refused = refusal(settings.approved, given.ownership, now)
    monotonic, memory = world.clock.monotonic(), world.memory
    seen = memory.sightings.before(desired, monotonic=monotonic, now=now, within=settings.confirm_within)
    brake = brake_of(settings, desired, None if refused else settings.approved, seen, now)
    remembers = isinstance(found.registry, Unknown) or any(map(is_suspended, desired.claims.values()))
    last_up = memory.last_up(desired) if remembers else ()

    def pods_of(going: Collection[Withdrawal], observed: Observed) -> Pods:
        return pods_behind(world.cluster, found.view, going, observed, settings.scope)

    made = decide(found.applier, desired, found.registry, brake, last_up, standing.cancelled, pods_of)
    decided = _Decided(at=now, brake=made.brake, braked=made.braked, refused=refused)
    return replace(found, desired=made.desired, registry=made.registry), decided


def _doubt(given: _Given, standing: _Standing, found: _Found, braked: Braked) -> Unknown | None:
    """Why what was listed may be another cluster's: asked after all reads, right before anything is changed for it."""
    world, plan = given.world, braked.plan
    matters = plan.changes or braked.held or _writes_more(plan, found.desired, found.registry, standing.renewed)
    otherwise = "its lists prove nothing" if given.settings.dry_run else "our instances are only renewed"
    given.deadline.stage_of_rest(0.5, APPLYING)  # the reads may have taken all of theirs
    return given.same.doubt(otherwise) if matters and not world.clock.stopping() else None


def _writes_more(
    plan: Plan, desired: Desired, registry: Complete[Observed] | Unknown, renewed: Iterable[Outcome]
) -> bool:
    """Whether a plan without changes may change something."""
    return (
        isinstance(registry, Unknown)  # a 404 is a registration
        or any(outcome.result is Result.GONE for outcome in renewed)  # so was this one
        or any(isinstance(claim, Deleting) for claim in desired.claims.values())  # a finalizer may go
        or bool(without_finalizer(desired, plan.of(Renew)))  # and one may come
    )


def _report(given: _Given, found: _Found, decided: _Decided) -> PassReport:
    """What a pass is to do; of a dry run all."""
    return PassReport(
        owner=given.settings.owner,
        cluster=given.ownership.cluster,
        scope=given.settings.scope,
        options=given.settings.options,
        dry_run=given.settings.dry_run,
        at=decided.at,
        plan=decided.braked.plan,
        registry=found.registry,
        view=found.view,
        desired=found.desired,
        absent=found.absent,
        held=decided.braked.held,
        approved=given.settings.approved,
        batching=given.world.registry.batching(),
        approval_refused=decided.refused,
        released=decided.braked.approved,
        cut_short=given.deadline.cut_short,
    )


def _carry_out(given: _Given, standing: _Standing, found: _Found, decided: _Decided, report: PassReport) -> PassReport:
    """Writes to Eureka."""
    brake = replace(decided.brake, approval=None, approved=decided.braked.approved)
    return carry_out(given.world, found.applier, given.deadline, brake, report, found.desired, standing.renewed)


def _unserved(given: _Given, found: _Found) -> tuple[Unserved, ...]:
    """Syncers that left our scope and came into nobody's, with what stands of living pods."""
    left = () if isinstance(found.registry, Unknown) else unserved(found.registry.data, found.view.syncers)
    instances = [one for each in left for one in each.instances]
    namespaces = {namespace for one in instances if (namespace := pod_namespace_of(one))}
    pods = given.world.cluster.list_pods(sorted(namespaces)) if namespaces else None
    return tuple(living(one, pods) for one in left) if pods else left


def _keep_unserved(given: _Given, standing: _Standing, found: _Found, report: PassReport) -> PassReport:
    """Renews what nobody renewed, and writes an event about each syncer, once."""
    world, reported = given.world, given.world.memory.reported
    renewed = {outcome.action.key for outcome in standing.renewed}
    silent = [one for each in report.unserved for one in each.instances if one.key not in renewed]
    found.applier.renew(plan_renewals(silent, "nobody serves its syncer").of(Renew))
    now = world.clock.monotonic()
    fresh = [one for one in report.unserved if now - reported.get(one.syncer.ref, -inf) > AGAIN]
    reported.update({one.syncer.ref: now for one in report.unserved if one not in fresh})
    if not fresh or given.same.doubt("no event is written"):
        return report
    errors = []
    for one in fresh:
        if error := record(world.cluster, one.event, world.clock.now()):
            errors.append(error)
        else:
            reported[one.syncer.ref] = now
    return replace(report, cluster_errors=(*report.cluster_errors, *errors))


def _settle(given: _Given, found: _Found, report: PassReport) -> PassReport:
    """Writes to Kubernetes, last of all: finalizers off, statuses and gates tell what became of it. Nothing of that
    where another cluster may answer by now."""
    world, deadline = given.world, given.deadline
    desired, registry, plan, outcomes = found.desired, found.registry, report.plan, report.outcomes
    deadline.stage(SETTLING)
    due = _unsettled(given, found, report)
    wished = openings(desired, found.view, registry, plan, now=world.clock.now())
    doubt = given.same.doubt("no status is written") if (due or wished) and not world.clock.stopping() else None
    if doubt is not None:
        return replace(report, view=replace(found.view, identity=doubt), cut_short=deadline.cut_short)
    written, errors = settle(
        world.cluster, world.clock, world.workers, deadline, desired, registry, outcomes, due,
        lapse_seconds=2 * given.settings.lease.duration,
    )  # fmt: skip
    gates = open_gates(
        world.cluster, found.applier, world.workers, deadline, given.ownership, wished, now=world.clock.now()
    )
    return replace(
        report,
        standings=due.standings,
        statuses=written,
        cluster_errors=(*report.cluster_errors, *errors, *gates),
        cut_short=deadline.cut_short,
    )


def _unsettled(given: _Given, found: _Found, report: PassReport) -> Unsettled:
    """How each syncer stands, and what of that the cluster is to be told."""
    settings, now = given.settings, given.world.clock.now()
    return unsettled(
        found.desired,
        found.registry,
        report.plan,
        report.held,
        report.outcomes,
        found.unseen,
        options=settings.options,
        now=now,
        cache_seconds=settings.registry_cache,
        lapse_seconds=2 * settings.lease.duration,
        words=given.world.memory.retelling.due(now),
    )
