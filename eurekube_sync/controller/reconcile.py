"""One pass, step by step.

    list Eureka -> renew -> list Kubernetes -> claims -> list other peers -> plan -> read again what would change
    -> plan -> brake -> apply -> statuses

Eureka is listed first. Otherwise an instance that somebody registers in between would look undesired. Our leases are
renewed next, so that a slow Kubernetes API cannot let them expire. A source that cannot be read is Unknown, and nothing
that depends on it is changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.kubernetes import look_elsewhere, without_finalizer
from eurekube_sync.controller.one_pass import Ends, EurekaWorld, Found, Given, PassReport, PassSettings, Renewed, World
from eurekube_sync.controller.steps import (
    applier_of,
    carry_out,
    decide,
    keep_unserved,
    renew_ours,
    renew_the_rest,
    statuses_due,
    unserved_syncers,
    write_to_kubernetes,
)
from eurekube_sync.desired.claims import Deleting
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Outcome, Outcomes, Renew, Result, comes_last
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import ClusterView, SyncerObject
from eurekube_sync.model.ownership import CLUSTER, Ownership
from eurekube_sync.model.sources import Complete, Listed, Unknown
from eurekube_sync.observe.eureka import Observed, held_by_owner, marked_cluster, observe
from eurekube_sync.observe.installations import OtherOwner, other_owners
from eurekube_sync.observe.kubernetes import (
    SameCluster,
    absent_namespaces,
    living_pods,
    read_cluster,
    read_pods,
    read_syncers,
    unread_cluster,
)
from eurekube_sync.plan.make import plan_renewals
from eurekube_sync.plan.value import Plan, sorted_plan


def reconcile(world: World, settings: PassSettings) -> PassReport:
    """Makes Eureka equal to what the cluster says, as far as both could be read."""
    deadline = Deadline(world.clock, settings.deadline, world.time_limit)
    deadline.stage(Ends.IDENTIFYING)
    identity = settings.renew_only or world.cluster.identity()
    deadline.stage(Ends.LISTING)
    asked, asked_at = world.clock.monotonic(), world.clock.now()
    listed = world.registry.list_instances()
    if isinstance(identity, Unknown) and settings.dry_run and settings.looks:
        identity = marked_cluster(listed, settings.owner)
    if isinstance(identity, Unknown):
        deadline.stage(Ends.SETTLING)
        return renew_unidentified(world, settings, deadline, listed, identity)

    given = Given(
        world=world,
        settings=settings,
        deadline=deadline,
        identity=identity,
        ownership=Ownership(owner=settings.owner, cluster=identity.data),
        same=SameCluster(world.cluster, world.clock, identity),
    )
    scope, syncers = _choose(given)
    early = _renew(given, scope, listed, asked, asked_at)
    goes_on = settings.dry_run and settings.looks  # a person is told what is wrong beside all the rest
    if isinstance(early.registry, Complete) and early.registry.data.clashes and not goes_on:
        return refuse(given, early, early.registry.data)

    found = _claim(given, scope, syncers, early)
    others: tuple[OtherOwner, ...] = ()
    if isinstance(found.registry, Complete):
        others = other_owners(found.registry.data, found.desired, world.clock.now())
    found, report = decide(given, _look_elsewhere(given, listed, found))
    if isinstance(found.registry, Complete) and any(other.stops_us for other in others) and not goes_on:
        return renew_beside(given, found, found.registry.data, report, others)
    if doubt := _doubt(given, found, report):
        return renew_in_doubt(given, found, report.plan, doubt)
    deadline.stage(Ends.APPLYING)
    unserved = unserved_syncers(given, found)
    report = replace(report, other_owners=others, unserved=unserved, cut_short=deadline.cut_short)
    if settings.dry_run:
        return replace(report, all_statuses=statuses_due(given, found, report)[1])
    report = carry_out(given, found, report)
    report = keep_unserved(given, found, report)
    return write_to_kubernetes(given, found, report)


def _choose(given: Given) -> tuple[Scope, Listed[SyncerObject] | None]:
    """With a selector the syncers are listed before the first renewal, because nothing else says whose an instance is.
    If that fails, all instances that may be ours are renewed."""
    scope, syncers = given.settings.scope, None
    if scope.selector:
        given.deadline.stage(Ends.CHOOSING)
        syncers = read_syncers(given.world.cluster, scope)
        scope = scope.knowing(syncers)
    given.deadline.stage(Ends.RENEWING)
    return scope, syncers


def _renew(
    given: Given, scope: Scope, listed: Complete[tuple[ObservedInstance, ...]] | Unknown, asked: float, asked_at: float
) -> Renewed:
    """Divides the list, and renews our instances, whatever the cluster will say. The list was asked for at `asked` in
    monotonic, `asked_at` in Unix seconds."""
    world, memory = given.world, given.world.memory
    remembered = memory.own_writes.recent(asked)
    registry: Complete[Observed] | Unknown
    if isinstance(listed, Unknown):
        registry = listed
    else:
        observed = observe(listed, given.ownership, scope, asked=asked_at, before=memory.observed)
        memory.observed = observed
        registry = Complete(data=observed.remembering(remembered))
    cancelled = frozenset(key for key, wrote in remembered.items() if wrote is None)
    applier = applier_of(world, given.ownership, scope, given.deadline)
    outcomes = [] if given.settings.dry_run else renew_ours(world, applier, registry, cancelled)
    renewed = {outcome.action.key: outcome for outcome in outcomes}
    return Renewed(applier=applier, registry=registry, renewed=renewed, cancelled=cancelled)


def _claim(given: Given, scope: Scope, syncers: Listed[SyncerObject] | None, early: Renewed) -> Found:
    """Lists Kubernetes, and makes the claims. The labels of the syncers now say which instances belong to another
    scope: those are not ours."""
    world, settings, registry = given.world, given.settings, early.registry
    given.deadline.stage(Ends.READING)
    marked = frozenset(registry.data.keys_by_syncer) if isinstance(registry, Complete) else frozenset()
    view = read_cluster(world.cluster, given.identity, scope, marked, syncers, settings.drains)
    scope = scope.knowing(view.syncers)
    listed = registry.data.ours if isinstance(registry, Complete) else {}
    naming = Naming(ownership=given.ownership, lease=settings.lease, listed=listed)
    desired = claim_all(view, naming, scope, world.memory.claims)
    if isinstance(registry, Complete):
        registry = Complete(data=registry.data.narrowed(scope))
        view = read_pods(world.cluster, view, desired, registry.data, scope)
        desired = replace(desired, living_pods=living_pods(view.pods))
    return Found(
        applier=applier_of(world, given.ownership, scope, given.deadline),
        registry=registry,
        renewed=early.renewed,
        cancelled=early.cancelled,
        view=view,
        desired=desired,
        absent=absent_namespaces(world.cluster, view, scope),
    )


def _look_elsewhere(given: Given, listed: Complete[tuple[ObservedInstance, ...]] | Unknown, found: Found) -> Found:
    """Adds the instances of deleted syncers that only other Eureka servers hold, before a finalizer is removed; and
    which servers could not be read."""
    registry = found.registry
    deleting = [claim.syncer for claim in found.desired.claims.values() if isinstance(claim, Deleting)]
    if isinstance(listed, Unknown) or isinstance(registry, Unknown) or not deleting:
        return found
    deleted = look_elsewhere(deleting, registry.data, cache_seconds=given.settings.registry_cache)
    if not deleted:
        return found
    there, unseen = given.world.registry.list_elsewhere(listed)
    return replace(found, registry=Complete(data=registry.data.beside(there, deleted)), unseen=unseen)


def _doubt(given: Given, found: Found, report: PassReport) -> Unknown | None:
    """Why the lists may be another cluster's: asked after all reads, right before the first change."""
    settings, plan = given.settings, report.plan
    if settings.dry_run and settings.looks:
        return None  # nothing is changed, and a person is told what could not be read
    matters = (
        plan.changes
        or report.held
        or isinstance(found.registry, Unknown)  # a 404 leads to a registration
        or any(outcome.result is Result.GONE for outcome in found.renewed.values())  # so does this one
        or any(isinstance(claim, Deleting) for claim in found.desired.claims.values())  # a finalizer may be removed
        or without_finalizer(found.desired, plan.renewals)  # and one may be added
    )
    otherwise = "no change can be planned from its lists" if settings.dry_run else "our instances are only renewed"
    given.deadline.stage_of_rest(0.5, Ends.APPLYING)  # the reads may have used up their share
    return given.same.doubt(otherwise) if matters and not given.world.clock.stopping() else None


# --- Renewals alone ---------------------------------------------------------------------------------------------------


def refuse(given: Given, early: Renewed, observed: Observed) -> PassReport:
    """Another cluster uses our owner's name: our instances are renewed, and nothing more is read."""
    given.world.memory.sightings.nothing_seen()
    ours = [one for key, one in observed.ours.items() if key not in early.cancelled]
    plan = plan_renewals(ours, "another cluster uses our owner name")
    return _renew_beside(given, early, plan, unread_cluster(given.identity), ours, clashes=observed.clashes)


def renew_beside(
    given: Given, found: Found, observed: Observed, report: PassReport, others: tuple[OtherOwner, ...]
) -> PassReport:
    """Another owner serves our syncers: wanted instances are renewed, and those that the brake holds. The others are
    left to expire, because the other owner would not remove them."""
    world = given.world
    assert report.basis is not None  # Eureka was read
    world.memory.sightings.note(report.held, report.basis.brake.seen, monotonic=world.clock.monotonic())
    removed = {action.key for action in report.plan.actions if comes_last(action)}
    kept = [one for key, one in observed.ours.items() if key not in removed]
    plan = plan_renewals(kept, "another owner serves its syncer")
    return _renew_beside(given, found, plan, found.view, other_owners=others)


def renew_in_doubt(given: Given, found: Found, planned: Plan, doubt: Unknown) -> PassReport:
    """The lists may be another cluster's: our instances in this scope are renewed; while Eureka cannot be read, those
    that the plan renews. Nothing is registered again on a 404."""
    given.world.memory.sightings.nothing_seen()
    if isinstance(found.registry, Unknown):
        plan = sorted_plan(replace(action, if_gone=None) for action in planned.renewals)
    else:
        ours = [one for key, one in found.registry.data.ours.items() if key not in found.cancelled]
        plan = plan_renewals(ours, f"the cluster could not be read: {doubt.cause}")
    return _renew_beside(given, found, plan, unread_cluster(doubt))


def _renew_beside(
    given: Given, found: Renewed, plan: Plan, view: ClusterView, listed: Iterable[ObservedInstance] = (), **told: Any
) -> PassReport:
    """Renews what the plan has and this pass has not renewed yet; the report says what is `told` beside it."""
    given.deadline.stage(Ends.SETTLING)
    report = PassReport(
        settings=given.settings,
        cluster=given.ownership.cluster,
        at=given.world.clock.now(),
        plan=plan,
        registry=found.registry,
        view=view,
        batching=given.world.registry.batching(),
        **told,
    )
    return _renewed(report, found.applier, given.deadline, found.renewed, listed)


def _renewed(
    report: PassReport,
    applier: Applier,
    deadline: Deadline,
    early: Mapping[InstanceKey, Outcome],
    listed: Iterable[ObservedInstance],
) -> PassReport:
    """Renews what the report plans and was not renewed `early`. `listed`: these, as Eureka listed them."""
    rest = [] if report.settings.dry_run else [one for one in report.plan.renewals if one.key not in early]
    outcomes = renew_the_rest(applier, Outcomes.of([*early.values(), *applier.renew(rest, listed)]))
    return replace(report, outcomes=outcomes, cut_short=deadline.cut_short)


def renew_unidentified(
    world: World,
    settings: PassSettings,
    deadline: Deadline,
    listed: Complete[tuple[ObservedInstance, ...]] | Unknown,
    identity: Unknown,
) -> PassReport:
    """The cluster does not say who it is: renews the instances that have our owner's name, and reads nothing more."""
    world.memory.sightings.nothing_seen()
    applier, now = applier_of(world, None, settings.scope, deadline), world.clock.now()
    ours: Sequence[ObservedInstance] = ()
    early: Mapping[InstanceKey, Outcome] = {}
    if isinstance(listed, Complete):
        ours = held_by_owner(listed, settings.owner, settings.scope)
    elif not settings.dry_run:
        early = {one.action.key: one for one in renew_ours(world, applier, listed, frozenset())}
    report = PassReport(
        settings=settings,
        cluster=None,
        at=now,
        plan=plan_renewals(ours, f"the cluster could not be read: {identity.cause}"),
        registry=_divided(listed, Ownership(owner=settings.owner, cluster=""), settings.scope, now),
        view=unread_cluster(identity),
        batching=world.registry.batching() if isinstance(listed, Complete) else None,
    )
    return _renewed(report, applier, deadline, early, ours)


def _divided(
    listed: Complete[tuple[ObservedInstance, ...]] | Unknown, ownership: Ownership, scope: Scope, asked: float
) -> Complete[Observed] | Unknown:
    return listed if isinstance(listed, Unknown) else Complete(data=observe(listed, ownership, scope, asked=asked))


def keepalive(world: EurekaWorld, settings: PassSettings, cluster: str | None = None) -> PassReport:
    """Renews all that is ours, of every cluster or of the one with this UID; while Eureka cannot be listed, what this
    process renewed before. Labels and classes are a cluster's to tell: the scope has none."""
    deadline = Deadline(world.clock, settings.deadline, world.time_limit)
    asked, listed = world.clock.now(), world.registry.list_instances()
    bearing: Sequence[ObservedInstance] = ()
    if isinstance(listed, Complete):
        bearing = held_by_owner(listed, settings.owner, settings.scope)
        if cluster is not None:
            bearing = [one for one in bearing if one.metadata.get(CLUSTER) == cluster]
        plan = plan_renewals(bearing, "it has our owner's name")
    else:
        lately = world.renewals.renewed_lately()
        plan = sorted_plan(Renew(key=key, syncer=None, why="it was registered") for key in lately)
    applier = applier_of(world, None, settings.scope, deadline)
    report = PassReport(
        settings=settings,
        cluster=cluster or None,
        at=asked,
        plan=plan,
        registry=_divided(listed, Ownership(owner=settings.owner, cluster=cluster or ""), settings.scope, asked),
        view=None,
    )
    return replace(_renewed(report, applier, deadline, {}, bearing), batching=world.registry.batching())
