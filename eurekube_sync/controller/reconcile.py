"""One pass, step by step.

    list Eureka -> renew -> list Kubernetes -> claims -> list other Eureka servers -> plan -> read again what would
    change -> plan again -> brake -> apply -> write statuses

Eureka is listed first: if Kubernetes were first, an instance that another process registers between
the two lists would look unwanted. Our leases are renewed next, so that a slow Kubernetes API cannot
let them expire. A source that cannot be read is Unknown, and nothing that depends on it is
changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.kubernetes import look_elsewhere, without_finalizer
from eurekube_sync.controller.one_pass import (
    Ends,
    EurekaWorld,
    Found,
    Given,
    PassReport,
    PassSettings,
    Renewed,
    World,
)
from eurekube_sync.controller.steps import (
    applier_of,
    carry_out,
    decide,
    former_at_work,
    renew_ours,
    renew_the_rest,
    renewed_before,
    statuses_due,
    with_lost_apps,
    write_to_kubernetes,
)
from eurekube_sync.desired.claims import Deleting
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Outcome, Outcomes, Result, comes_last
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import ClusterView, SyncerObject
from eurekube_sync.model.ownership import CLUSTER, Ownership
from eurekube_sync.model.sources import Complete, Listed, Source, Unknown
from eurekube_sync.observe.eureka import Observed, held_by_owners, marked_cluster, observe
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

Listing: TypeAlias = Source[tuple[ObservedInstance, ...]]  # Eureka's list, as it came


def reconcile(world: World, settings: PassSettings) -> PassReport:
    """Makes Eureka equal to what Kubernetes says, as far as both can be read."""
    looks = (
        settings.dry_run and settings.looks
    )  # shows a person what is wrong, and goes on where other passes stop
    deadline = Deadline(world.clock, settings.deadline, world.time_limit)
    deadline.stage(Ends.IDENTIFYING)
    identity = settings.renew_only or world.cluster.identity()
    deadline.stage(Ends.LISTING)
    asked, asked_at = world.clock.monotonic(), world.clock.now()
    listed = world.registry.list_instances()
    if isinstance(identity, Unknown) and looks:
        identity = marked_cluster(listed, settings.owner)
    if isinstance(identity, Unknown):
        return renew_unidentified(world, settings, deadline, listed, identity)

    given = Given(
        world=world,
        settings=settings,
        deadline=deadline,
        identity=identity,
        ownership=Ownership(owner=settings.owner, cluster=identity.data, former=settings.former),
        same=SameCluster(world.cluster, world.clock, identity),
    )
    scope, syncers = _choose(given)
    early = _renew(given, scope, listed, asked, asked_at)
    if isinstance(early.registry, Complete) and early.registry.data.clashes and not looks:
        return refuse(given, early, early.registry.data)

    found = _claim(given, scope, syncers, early)
    others: tuple[OtherOwner, ...] = ()
    if isinstance(found.registry, Complete):
        others = other_owners(found.registry.data, found.desired, world.clock.now())
        others += former_at_work(given, found, found.registry.data)
    found, report = decide(given, _look_elsewhere(given, listed, found))
    if any(other.stops_us for other in others) and not looks:
        return renew_beside(given, found, report, others)
    if not looks and (doubt := _doubt(given, found, report)):
        return renew_in_doubt(given, found, report.plan, doubt)
    deadline.stage(Ends.APPLYING)
    report = replace(report, other_owners=others, cut_short=deadline.cut_short)
    if settings.dry_run:
        report = with_lost_apps(found, report)
        return replace(report, all_statuses=statuses_due(given, found, report)[1])
    report = carry_out(given, found, report)
    report = with_lost_apps(found, report)
    return write_to_kubernetes(given, found, report)


def _choose(given: Given) -> tuple[Scope, Listed[SyncerObject] | None]:
    """Lists the syncers before the first renewal if the scope has a selector, because Eureka does
    not show their labels. If that list fails, all instances that may be ours are renewed."""
    scope, syncers = given.settings.scope, None
    if scope.selector:
        given.deadline.stage(Ends.CHOOSING)
        syncers = read_syncers(given.world.cluster, scope)
        scope = scope.knowing(syncers)
    given.deadline.stage(Ends.RENEWING)
    return scope, syncers


def _renew(given: Given, scope: Scope, listed: Listing, asked: float, asked_at: float) -> Renewed:
    """Divides Eureka's list, and renews our instances, whatever Kubernetes will say. The list was
    asked for at `asked` in monotonic seconds, `asked_at` in Unix seconds."""
    world, memory = given.world, given.world.memory
    remembered = memory.own_writes.recent(asked)
    registry: Source[Observed]
    unshown: Mapping[InstanceKey, ObservedInstance] = {}
    if isinstance(listed, Unknown):
        registry = listed
    else:
        observed = observe(listed, given.ownership, scope, asked=asked_at, before=memory.observed)
        memory.observed = observed
        unshown = memory.own_writes.unshown(asked, observed)
        registry = Complete(data=observed.remembering({**unshown, **remembered}))
    cancelled = frozenset(key for key, wrote in remembered.items() if wrote is None)
    applier = applier_of(world, given.ownership, scope, given.deadline)
    renewed = {} if given.settings.dry_run else renew_ours(world, applier, registry, cancelled)
    return Renewed(
        applier=applier,
        registry=registry,
        renewed=renewed,
        cancelled=cancelled,
        unshown=tuple(unshown),
    )


def _claim(
    given: Given, scope: Scope, syncers: Listed[SyncerObject] | None, early: Renewed
) -> Found:
    """Lists Kubernetes, and makes the claims. An instance whose syncer turns out to be in another
    scope is not ours."""
    world, settings, registry = given.world, given.settings, early.registry
    given.deadline.stage(Ends.READING)
    marked = (
        frozenset(registry.data.keys_by_syncer) if isinstance(registry, Complete) else frozenset()
    )
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
        unshown=early.unshown,
        view=view,
        desired=desired,
        absent=absent_namespaces(world.cluster, view, scope),
    )


def _look_elsewhere(given: Given, listed: Listing, found: Found) -> Found:
    """Adds the instances of deleted syncers that only other Eureka servers hold, and the servers
    that cannot be listed. The other servers are listed only if this pass may remove a finalizer."""
    registry = found.registry
    deleting = [
        claim.syncer for claim in found.desired.claims.values() if isinstance(claim, Deleting)
    ]
    if isinstance(listed, Unknown) or isinstance(registry, Unknown):
        return found
    deleted = look_elsewhere(deleting, registry.data, cache_seconds=given.settings.registry_cache)
    if not deleted:
        return found
    there, unseen = given.world.registry.list_elsewhere(listed)
    return replace(
        found, registry=Complete(data=registry.data.beside(there, deleted)), unseen=unseen
    )


def _doubt(given: Given, found: Found, report: PassReport) -> Unknown | None:
    """Gives why the lists may be another cluster's. Asked after all reads, right before the first
    change."""
    settings, plan = given.settings, report.plan
    matters = (
        plan.changes
        or report.held
        or isinstance(found.registry, Unknown)  # a 404 leads to a registration
        or any(
            outcome.result is Result.GONE for outcome in found.renewed.values()
        )  # so does this one
        or any(
            isinstance(claim, Deleting) for claim in found.desired.claims.values()
        )  # a finalizer may be removed
        or without_finalizer(found.desired, plan.renewals)  # and one may be added
    )
    otherwise = (
        "no change can be planned from its lists"
        if settings.dry_run
        else "our instances are only renewed"
    )
    given.deadline.stage_of_rest(0.5, Ends.APPLYING)  # the reads may have used up their share
    return given.same.doubt(otherwise) if matters and not given.world.clock.stopping() else None


# --- Renewals alone -------------------------------------------------------------------------------


def refuse(given: Given, early: Renewed, observed: Observed) -> PassReport:
    """Renews our instances and reads nothing more, because another cluster uses our owner's
    name."""
    given.world.memory.sightings.nothing_seen()
    ours = [one for key, one in observed.ours.items() if key not in early.cancelled]
    plan = plan_renewals(ours, "another cluster uses our owner name")
    return _renew_only(
        given, early, plan, unread_cluster(given.identity), ours, clashes=observed.clashes
    )


def renew_beside(
    given: Given, found: Found, report: PassReport, others: tuple[OtherOwner, ...]
) -> PassReport:
    """Renews wanted and held instances, because another owner serves our syncers. The others are
    left to expire, because the other owner would not remove them."""
    world = given.world
    assert report.basis is not None  # `decide` made it
    assert isinstance(found.registry, Complete)  # the other owner was seen in it
    world.memory.sightings.note(
        report.held, report.basis.brake.seen, monotonic=world.clock.monotonic()
    )
    removed = {action.key for action in report.plan.actions if comes_last(action)}
    observed = found.registry.data
    # A renewal of ours would look as if the former installation were still at work, for ever.
    kept = [
        instance
        for key, instance in observed.ours.items()
        if key not in removed and not observed.ownership.is_former(instance)
    ]
    plan = plan_renewals(kept, "another owner serves its syncer")
    return _renew_only(given, found, plan, found.view, other_owners=others)


def renew_in_doubt(given: Given, found: Found, planned: Plan, doubt: Unknown) -> PassReport:
    """Renews our instances, and registers none again on a 404, because the lists may be another
    cluster's. While Eureka cannot be read, it renews what the plan renews."""
    given.world.memory.sightings.nothing_seen()
    if isinstance(found.registry, Unknown):
        plan = sorted_plan(replace(action, if_gone=None) for action in planned.renewals)
    else:
        ours = [one for key, one in found.registry.data.ours.items() if key not in found.cancelled]
        plan = plan_renewals(ours, f"the cluster could not be read: {doubt.cause}")
    return _renew_only(given, found, plan, unread_cluster(doubt))


def _renew_only(
    given: Given,
    found: Renewed,
    plan: Plan,
    view: ClusterView,
    listed: Iterable[ObservedInstance] = (),
    **more: Any,
) -> PassReport:
    """Renews what the plan has and this pass has not renewed yet. `more` are further fields of the
    report."""
    given.deadline.stage(Ends.SETTLING)
    report = PassReport(
        settings=given.settings,
        cluster=given.ownership.cluster,
        at=given.world.clock.now(),
        plan=plan,
        registry=found.registry,
        view=view,
        batching=given.world.registry.batching(),
        **more,
    )
    return _renew_planned(report, found.applier, given.deadline, found.renewed, listed)


def _renew_planned(
    report: PassReport,
    applier: Applier,
    deadline: Deadline,
    early: Mapping[InstanceKey, Outcome],
    listed: Iterable[ObservedInstance],
) -> PassReport:
    """Renews what the report plans and was not renewed `early`. `listed` shows which lease is the
    oldest."""
    rest = (
        []
        if report.settings.dry_run
        else [one for one in report.plan.renewals if one.key not in early]
    )
    outcomes = renew_the_rest(applier, Outcomes.of([*early.values(), *applier.renew(rest, listed)]))
    return replace(report, outcomes=outcomes, cut_short=deadline.cut_short)


def renew_unidentified(
    world: World, settings: PassSettings, deadline: Deadline, listed: Listing, identity: Unknown
) -> PassReport:
    """Renews the instances of our owner and reads nothing more, because it is unknown which cluster
    this is."""
    deadline.stage(Ends.SETTLING)
    world.memory.sightings.nothing_seen()
    applier, now = applier_of(world, None, settings.scope, deadline), world.clock.now()
    ours, registry = _of_owner(listed, settings, "", now)
    blind = isinstance(registry, Unknown) and not settings.dry_run
    early = renew_ours(world, applier, registry, frozenset()) if blind else {}
    report = PassReport(
        settings=settings,
        cluster=None,
        at=now,
        plan=plan_renewals(ours, f"the cluster could not be read: {identity.cause}"),
        registry=registry,
        view=unread_cluster(identity),
        batching=world.registry.batching() if isinstance(registry, Complete) else None,
    )
    return _renew_planned(report, applier, deadline, early, ours)


def keepalive(world: EurekaWorld, settings: PassSettings, cluster: str | None = None) -> PassReport:
    """Renews the instances of our owner, in every cluster or in the one with this UID, without
    asking a cluster. While Eureka cannot be listed, it renews what this process renewed before."""
    deadline = Deadline(world.clock, settings.deadline, world.time_limit)
    asked, listed = world.clock.now(), world.registry.list_instances()
    ours, registry = _of_owner(listed, settings, cluster or "", asked)
    if cluster is not None:
        ours = [one for one in ours if one.metadata.get(CLUSTER) == cluster]
    why = "it has our owner's name"
    report = PassReport(
        settings=settings,
        cluster=cluster or None,
        at=asked,
        plan=plan_renewals(ours, why) if isinstance(registry, Complete) else renewed_before(world),
        registry=registry,
        view=None,
    )
    report = _renew_planned(
        report, applier_of(world, None, settings.scope, deadline), deadline, {}, ours
    )
    return replace(report, batching=world.registry.batching())


def _of_owner(
    listed: Listing, settings: PassSettings, cluster: str, asked: float
) -> tuple[Sequence[ObservedInstance], Source[Observed]]:
    """Gives the instances of our owner in any cluster, and the list as this cluster (a UID) sees
    it."""
    if isinstance(listed, Unknown):
        return (), listed
    ownership = Ownership(owner=settings.owner, cluster=cluster)
    observed = observe(listed, ownership, settings.scope, asked=asked)
    owners = {settings.owner, *settings.former.owners}
    return held_by_owners(listed, owners, settings.scope), Complete(data=observed)
