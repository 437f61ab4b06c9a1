"""One pass, step by step.

    list Eureka -> renew -> list Kubernetes -> claims -> list other peers -> plan -> read again what would change
    -> plan -> brake -> apply -> statuses

Eureka is listed first. Otherwise an instance that somebody registers in between would look undesired. Our leases are
renewed next, so that a slow Kubernetes API cannot let them expire. A source that cannot be read is Unknown, and nothing
that depends on it is changed."""

from __future__ import annotations

from dataclasses import replace

from eurekube_sync.apply.kubernetes import look_elsewhere, without_finalizer
from eurekube_sync.controller.one_pass import Ends, Found, Given, PassReport, PassSettings, Renewed, World
from eurekube_sync.controller.renew_only import refuse, renew_beside, renew_in_doubt, renew_unidentified
from eurekube_sync.controller.steps import (
    applier_of,
    carry_out,
    decide,
    keep_unserved,
    renew_ours,
    statuses_due,
    unserved_syncers,
    write_to_kubernetes,
)
from eurekube_sync.desired.claims import Deleting
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Result
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import SyncerObject
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.sources import Complete, Listed, Unknown
from eurekube_sync.observe.eureka import Observed, marked_cluster, observe
from eurekube_sync.observe.installations import OtherOwner, other_owners
from eurekube_sync.observe.kubernetes import (
    SameCluster,
    absent_namespaces,
    living_pods,
    read_cluster,
    read_pods,
    read_syncers,
)


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
    found, basis, report = decide(given, _look_elsewhere(given, listed, found))
    if isinstance(found.registry, Complete) and any(other.stops_us for other in others) and not goes_on:
        return renew_beside(given, found, found.registry.data, report, basis, others)
    if doubt := _doubt(given, found, report):
        return renew_in_doubt(given, found, report.plan, doubt)
    deadline.stage(Ends.APPLYING)
    unserved = unserved_syncers(given, found)
    report = replace(report, other_owners=others, unserved=unserved, cut_short=deadline.cut_short)
    if settings.dry_run:
        return replace(report, all_statuses=statuses_due(given, found, report).all_statuses)
    report = carry_out(given, found, basis, report)
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
