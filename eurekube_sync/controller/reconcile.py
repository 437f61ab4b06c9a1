"""One pass, step by step.

    list Eureka -> renew -> list Kubernetes -> claims -> list other peers -> plan -> read again what would change
    -> plan -> brake -> apply -> statuses

Eureka is listed first. Otherwise an instance that somebody registers in between would look undesired. Our leases are
renewed next, so that a slow Kubernetes API cannot let them expire. A source that cannot be read is Unknown, and nothing
that depends on it is changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eurekube_sync.apply.finalizers import look_elsewhere
from eurekube_sync.apply.kubernetes import without_finalizer
from eurekube_sync.brake import Braked
from eurekube_sync.controller.one_pass import (
    APPLYING,
    CHOOSING,
    IDENTIFYING,
    LISTING,
    READING,
    RENEWING,
    SETTLING,
    Basis,
    Decided,
    Found,
    Given,
    PassReport,
    PassSettings,
    Renewed,
    World,
)
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
from eurekube_sync.desired.claims import Deleting, Desired
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import SyncerObject
from eurekube_sync.model.outcomes import Outcome, Result
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.sources import Complete, Listed, Unknown
from eurekube_sync.observe.eureka import Observed, marked_cluster, observe
from eurekube_sync.observe.kubernetes import (
    absent_namespaces,
    living_pods,
    read_cluster,
    read_pods,
    read_syncers,
)
from eurekube_sync.observe.other_owner import OtherOwner, other_owners
from eurekube_sync.observe.same_cluster import SameCluster
from eurekube_sync.plan import Plan


def reconcile(world: World, settings: PassSettings) -> PassReport:
    """Makes Eureka equal to what the cluster says, as far as both could be read."""
    deadline = Deadline(world.clock, settings.deadline, world.time_limit)
    deadline.stage(IDENTIFYING)
    identity = settings.renew_only or world.cluster.identity()
    deadline.stage(LISTING)
    asked, asked_at = world.clock.monotonic(), world.clock.now()
    listed = world.registry.list_instances()
    if isinstance(identity, Unknown) and settings.dry_run and settings.looks:
        identity = marked_cluster(listed, settings.owner)
    if isinstance(identity, Unknown):
        deadline.stage(SETTLING)
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
        return refuse(given, early, early.registry)

    found = _claim(given, scope, syncers, early)
    others = _other_owners(given, found)
    found = _look_elsewhere(given, listed, found)
    found, decided = decide(given, early, found)
    if isinstance(found.registry, Complete) and any(other.stops_us for other in others) and not goes_on:
        return renew_beside(given, early, found, found.registry, decided, others)
    if doubt := _doubt(given, early, found, decided.braked):
        return renew_in_doubt(given, early, found, decided, doubt)
    deadline.stage(APPLYING)
    report = replace(_report(given, found, decided), other_owners=others, unserved=unserved_syncers(given, found))
    if settings.dry_run:
        return replace(report, all_statuses=statuses_due(given, found, report).all_statuses)
    report = carry_out(given, early, found, decided, report)
    report = keep_unserved(given, early, found, report)
    return write_to_kubernetes(given, found, report)


def _choose(given: Given) -> tuple[Scope, Listed[SyncerObject] | None]:
    """With a selector the syncers are listed before the first renewal, because nothing else says whose an instance is.
    If that fails, all instances that may be ours are renewed."""
    scope = given.settings.scope
    if not scope.selector:
        given.deadline.stage(RENEWING)
        return scope, None
    given.deadline.stage(CHOOSING)
    syncers = read_syncers(given.world.cluster, scope)
    given.deadline.stage(RENEWING)
    return scope.knowing(syncers), syncers


def _renew(
    given: Given, scope: Scope, listed: Complete[tuple[ObservedInstance, ...]] | Unknown, asked: float, asked_at: float
) -> Renewed:
    """Divides the list, and renews our instances, whatever the cluster will say. The list was asked for at `asked` in
    monotonic, `asked_at` in Unix seconds."""
    world = given.world
    remembered, earlier = world.memory.own_writes.recent(asked), world.memory.earlier
    registry: Complete[Observed] | Unknown
    if isinstance(listed, Unknown):
        registry = listed
    else:
        earlier.observed = observe(listed, given.ownership, scope, asked=asked_at, before=earlier.observed)
        registry = Complete(data=earlier.observed.remembering(remembered))
    cancelled = frozenset(key for key, wrote in remembered.items() if wrote is None)
    applier = applier_of(world, given.ownership, scope, given.deadline)
    outcomes = [] if given.settings.dry_run else renew_ours(world, applier, registry, cancelled)
    return Renewed(applier=applier, registry=registry, outcomes=outcomes, cancelled=cancelled)


def _claim(given: Given, scope: Scope, syncers: Listed[SyncerObject] | None, early: Renewed) -> Found:
    """Lists Kubernetes, and makes the claims. The labels of the syncers now say which instances belong to another
    scope: those are not ours."""
    world, settings, registry = given.world, given.settings, early.registry
    given.deadline.stage(READING)
    marked = frozenset(registry.data.keys_by_syncer) if isinstance(registry, Complete) else frozenset()
    view = read_cluster(world.cluster, given.identity, scope, marked, syncers, settings.drains)
    scope = scope.knowing(view.syncers)
    listed = registry.data.ours if isinstance(registry, Complete) else {}
    naming = Naming(ownership=given.ownership, lease=settings.lease, listed=listed)
    desired = claim_all(view, naming, scope, world.memory.earlier.claims)
    if isinstance(registry, Complete):
        registry = Complete(data=registry.data.narrowed(scope))
        view = read_pods(world.cluster, view, desired, registry.data, scope)
        desired = replace(desired, living_pods=living_pods(view))
    applier = applier_of(world, given.ownership, scope, given.deadline)
    absent = absent_namespaces(world.cluster, view, scope)
    return Found(applier=applier, registry=registry, view=view, desired=desired, absent=absent)


def _other_owners(given: Given, found: Found) -> tuple[OtherOwner, ...]:
    """Those that serve our syncers in this cluster; none while Eureka cannot be read."""
    if isinstance(found.registry, Unknown):
        return ()
    return other_owners(found.registry.data, found.desired, given.world.clock.now())


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


def _doubt(given: Given, early: Renewed, found: Found, braked: Braked) -> Unknown | None:
    """Why the lists may be another cluster's: asked after all reads, right before the first change."""
    world, plan = given.world, braked.plan
    if given.settings.dry_run and given.settings.looks:
        return None  # nothing is changed, and a person is told what could not be read
    matters = plan.changes or braked.held or _writes_more(plan, found.desired, found.registry, early.outcomes)
    otherwise = (
        "no change can be planned from its lists" if given.settings.dry_run else "our instances are only renewed"
    )
    given.deadline.stage_of_rest(0.5, APPLYING)  # the reads may have used up their share
    return given.same.doubt(otherwise) if matters and not world.clock.stopping() else None


def _writes_more(
    plan: Plan, desired: Desired, registry: Complete[Observed] | Unknown, renewed: Iterable[Outcome]
) -> bool:
    """Whether a plan without changes may change something."""
    return (
        isinstance(registry, Unknown)  # a 404 leads to a registration
        or any(outcome.result is Result.GONE for outcome in renewed)  # so does this one
        or any(isinstance(claim, Deleting) for claim in desired.claims.values())  # a finalizer may be removed
        or bool(without_finalizer(desired, plan.renewals))  # and one may be added
    )


def _report(given: Given, found: Found, decided: Decided) -> PassReport:
    """What a pass is to do; of a dry run all."""
    settings = given.settings
    return PassReport(
        owner=settings.owner,
        cluster=given.ownership.cluster,
        scope=settings.scope,
        options=settings.options,
        dry_run=settings.dry_run,
        at=decided.at,
        plan=decided.braked.plan,
        registry=found.registry,
        view=found.view,
        desired=found.desired,
        absent=found.absent,
        held=decided.braked.held,
        approved=settings.approved,
        approval_refused=decided.refused,
        released=decided.braked.approved,
        batching=given.world.registry.batching(),
        cut_short=given.deadline.cut_short,
        basis=Basis(
            ownership=given.ownership,
            scope=settings.scope,
            lease=settings.lease,
            view=found.view,
            registry=found.registry,
            brake=decided.brake,
            last_up=decided.last_up,
            braked=decided.braked,
        ),
    )
