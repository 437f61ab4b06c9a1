"""One pass, step by step.

    list Eureka -> renew -> list Kubernetes -> claims -> list other Eureka servers -> plan
    -> read again what would change -> plan again -> brake -> apply -> write statuses -> imports

Eureka is listed first: if Kubernetes were first, an instance that another process registers between
the two lists would look unwanted. Our leases are renewed next, so that a slow Kubernetes API cannot
let them expire. A source that cannot be read is Unknown, and nothing that depends on it is
changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.kubernetes import look_elsewhere, without_finalizer
from eurekube_sync.controller.imports import import_apps, settle_apps
from eurekube_sync.controller.one_pass import (
    Ends,
    EurekaWorld,
    Found,
    Given,
    ImportReport,
    PassReport,
    PassSettings,
    Renewed,
    World,
)
from eurekube_sync.controller.steps import (
    applier_of,
    ask_former,
    carry_out,
    decide,
    renew_ours,
    renewed_before,
    retry_untried_renewals,
    take_due_writes,
    with_lost_apps,
    write_to_kubernetes,
)
from eurekube_sync.desired.claims import Deleting, Desired
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Outcome, Outcomes, Renew, Result, comes_last
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.errors import LockLost
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import ClusterView, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import CLUSTER, Ownership
from eurekube_sync.model.sources import Complete, Listed, Source, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Observed, held_by_owners, marked_cluster, observe
from eurekube_sync.observe.former import NOTHING_TO_MOVE, Judgement
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
    """Make Eureka equal to what Kubernetes says, as far as both can be read."""
    # Such a dry run shows a person what is wrong, and goes on where other passes stop.
    looks = settings.dry_run and settings.looks
    deadline = Deadline(world.clock, settings.deadline, world.time_limit)
    deadline.stage(Ends.IDENTIFYING)
    identity = settings.renew_only or world.cluster.identity()
    deadline.stage(Ends.LISTING)
    asked = world.clock.monotonic()
    asked_at = world.clock.now()
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
    others, former = _other_installations(given, found)
    found = _look_elsewhere(given, listed, found)
    found, report = decide(given, found)
    report = replace(report, other_owners=others, former=former.verdicts)
    if not looks:
        stopped = _stop(given, found, report, former)
        if stopped is not None:
            return stopped

    deadline.stage(Ends.APPLYING)
    report = replace(report, cut_short=deadline.cut_short)
    if settings.dry_run:
        report = with_lost_apps(found, report)
        due = take_due_writes(given, found, report)
        report = replace(report, all_statuses=due.statuses)
        imports = _imported(given, found, listed)
        return replace(report, imports=imports)
    report = carry_out(given, found, report)
    report = with_lost_apps(found, report)
    report = write_to_kubernetes(given, found, report)
    return _with_imports(given, found, listed, report)


def _with_imports(given: Given, found: Found, listed: Listing, report: PassReport) -> PassReport:
    """Make apps of Eureka callable, after all that syncers need. A bug there must not keep the
    leases, statuses and gates of syncers waiting, so it is raised after the report."""
    try:
        imports = _imported(given, found, listed)
    except LockLost:
        raise
    except Exception as error:  # noqa: BLE001 - the loop raises it
        given.world.memory.import_sightings.nothing_seen()
        return replace(report, bug=error)
    return replace(report, imports=imports, cut_short=given.deadline.cut_short)


def _imported(given: Given, found: Found, listed: Listing) -> ImportReport | None:
    """Return what is done for imports; None if they are off."""
    imports = import_apps(given, found, listed)
    if imports is None:
        return None
    return settle_apps(given, imports)


def _choose(given: Given) -> tuple[Scope, Listed[SyncerObject] | None]:
    """List the syncers before the first renewal if the scope has a selector, because Eureka does
    not show their labels. If that list fails, all instances that may be ours are renewed."""
    scope = given.settings.scope
    syncers: Listed[SyncerObject] | None = None
    if scope.selector:
        given.deadline.stage(Ends.CHOOSING)
        syncers = read_syncers(given.world.cluster, scope)
        scope = scope.knowing(syncers)
    given.deadline.stage(Ends.RENEWING)
    return scope, syncers


def _renew(given: Given, scope: Scope, listed: Listing, asked: float, asked_at: float) -> Renewed:
    """Divide Eureka's list, and renew our instances, whatever Kubernetes will say. The list was
    asked for at `asked` in monotonic seconds, `asked_at` in Unix seconds."""
    world = given.world
    memory = world.memory
    remembered = memory.own_writes.recent(asked)
    cancelled: set[InstanceKey] = set()
    for key, wrote in remembered.items():
        if wrote is None:
            cancelled.add(key)

    registry: Source[Observed]
    unshown: Mapping[InstanceKey, ObservedInstance] = {}
    if isinstance(listed, Unknown):
        registry = listed
    else:
        observed = observe(listed, given.ownership, scope, asked=asked_at, before=memory.observed)
        memory.observed = observed
        unshown = memory.own_writes.unshown(asked, observed)
        # Of a key in both, the recent write is the newer one.
        observed = observed.remembering({**unshown, **remembered})
        registry = Complete(data=observed)

    applier = applier_of(world, given.ownership, scope, given.deadline)
    renewed: Mapping[InstanceKey, Outcome] = {}
    if not given.settings.dry_run:
        renewed = renew_ours(world, applier, registry, cancelled)
    return Renewed(
        applier=applier,
        registry=registry,
        renewed=renewed,
        cancelled=frozenset(cancelled),
        unshown=tuple(unshown),
    )


def _claim(
    given: Given, scope: Scope, syncers: Listed[SyncerObject] | None, early: Renewed
) -> Found:
    """List Kubernetes, and make the claims. An instance whose syncer turns out to be in another
    scope is not ours."""
    world = given.world
    settings = given.settings
    registry = early.registry
    given.deadline.stage(Ends.READING)
    marked: frozenset[SyncerRef] = frozenset()
    listed: Mapping[InstanceKey, ObservedInstance] = {}
    if isinstance(registry, Complete):
        marked = frozenset(registry.data.keys_by_syncer)
        listed = registry.data.ours
    view = read_cluster(world.cluster, given.identity, scope, marked, syncers, settings.pod_drains)
    scope = scope.knowing(view.syncers)
    naming = Naming(ownership=given.ownership, lease=settings.lease, listed=listed)
    desired = claim_all(view, naming, scope, world.memory.claims)
    if isinstance(registry, Complete):
        observed = registry.data.narrowed(scope)
        registry = Complete(data=observed)
        view = read_pods(world.cluster, view, desired, observed, scope)
        desired = replace(desired, living_pods=living_pods(view.pods))
    applier = applier_of(world, given.ownership, scope, given.deadline)
    absent = absent_namespaces(world.cluster, view, scope)
    return Found(
        applier=applier,
        registry=registry,
        renewed=early.renewed,
        cancelled=early.cancelled,
        unshown=early.unshown,
        view=view,
        desired=desired,
        absent=absent,
    )


def _other_installations(given: Given, found: Found) -> tuple[tuple[OtherOwner, ...], Judgement]:
    """Return the other owners of our syncers, and whether the former installations have ended."""
    if isinstance(found.registry, Unknown):
        return (), NOTHING_TO_MOVE
    observed = found.registry.data
    others = other_owners(observed, found.desired, given.world.clock.now())
    return others, ask_former(given, found, observed)


def _look_elsewhere(given: Given, listed: Listing, found: Found) -> Found:
    """Add the instances of deleted syncers that only other Eureka servers hold, and the servers
    that cannot be listed. The other servers are listed only if this pass may remove a finalizer."""
    registry = found.registry
    if isinstance(listed, Unknown) or isinstance(registry, Unknown):
        return found
    deleting: list[SyncerObject] = []
    for claim in found.desired.claims.values():
        if isinstance(claim, Deleting):
            deleting.append(claim.syncer)
    deleted = look_elsewhere(deleting, registry.data, cache_seconds=given.settings.registry_cache)
    if not deleted:
        return found
    there, unseen = given.world.registry.list_elsewhere(listed)
    observed = registry.data.beside(there, deleted)
    return replace(found, registry=Complete(data=observed), unseen=unseen)


def _stop(given: Given, found: Found, report: PassReport, former: Judgement) -> PassReport | None:
    """Renew and do nothing else, if another installation is at work, or another cluster may have
    answered; return None if the pass may go on."""
    if former.verdicts or any(other.stops_us for other in report.other_owners):
        return renew_beside(given, found, report, former.left_alone)
    doubt = _doubt(given, found, report)
    if doubt is not None:
        return renew_in_doubt(given, found, report.plan, doubt)
    return None


def _doubt(given: Given, found: Found, report: PassReport) -> Unknown | None:
    """Return why the lists may be another cluster's. Asked after all reads, right before the first
    change."""
    matters = _may_change(found, report)
    given.deadline.stage(Ends.APPLYING, part_of_rest=0.5)  # the reads may have used up their share
    if not matters or given.world.clock.stopping():
        return None
    if given.settings.dry_run:
        return given.same.doubt("no change can be planned from its lists")
    return given.same.doubt("our instances are only renewed")


def _may_change(found: Found, report: PassReport) -> bool:
    """Say whether the rest of the pass may do more than renew leases."""
    if report.plan.changes or report.held:
        return True
    # A lease that is not found leads to a registration.
    if isinstance(found.registry, Unknown):
        return True
    if any(outcome.result is Result.GONE for outcome in found.renewed.values()):
        return True
    # A finalizer may be removed, or added.
    if any(isinstance(claim, Deleting) for claim in found.desired.claims.values()):
        return True
    return bool(without_finalizer(found.desired, report.plan.renewals))


# --- Renewals alone -------------------------------------------------------------------------------


def refuse(given: Given, early: Renewed, observed: Observed) -> PassReport:
    """Renew our instances and read nothing more, because another cluster uses our owner's name."""
    given.world.memory.nothing_seen()
    ours = _not_cancelled(early, observed)
    plan = plan_renewals(ours, "another cluster uses our owner name")
    report = _renew_only(given, early, plan, unread_cluster(given.identity), ours)
    return replace(report, clashes=observed.clashes)


def renew_beside(
    given: Given, found: Found, report: PassReport, left_alone: frozenset[InstanceKey]
) -> PassReport:
    """Renew wanted and held instances, because another owner serves our syncers, or nothing may be
    moved from a former one. What was to be removed is left to expire. What was to be moved is
    renewed, except what is `left_alone`."""
    basis = report.basis
    assert basis is not None  # `decide` made it
    assert isinstance(found.registry, Complete)  # the other installation was seen in it
    memory = given.world.memory
    memory.sightings.note(
        report.held, basis.brake.seen, begun=given.deadline.begun, looked=basis.looked
    )
    memory.import_sightings.nothing_seen()

    removed: set[InstanceKey] = set()
    for action in report.plan.actions:
        if comes_last(action):
            removed.add(action.key)
    kept: list[ObservedInstance] = []
    for key, instance in found.registry.data.ours.items():
        stays = key not in removed or _is_moved(instance, found.desired, given.ownership)
        if stays and key not in left_alone:
            kept.append(instance)
    plan = plan_renewals(kept, "this pass is refused because of another installation")
    renewed = _renew_only(given, found, plan, found.view)
    return replace(renewed, other_owners=report.other_owners, former=report.former)


def _is_moved(instance: ObservedInstance, desired: Desired, ownership: Ownership) -> bool:
    """Say whether the plan removes the instance only because its endpoint gets another id."""
    return ownership.is_former(instance) and ownership.key_of(instance) in desired.wanted_by


def renew_in_doubt(given: Given, found: Found, planned: Plan, doubt: Unknown) -> PassReport:
    """Renew our instances, and register none again on a 404, because the lists may be another
    cluster's. While Eureka cannot be read, renew what the plan renews."""
    given.world.memory.nothing_seen()
    if isinstance(found.registry, Unknown):
        renewals = [replace(renewal, if_gone=None) for renewal in planned.renewals]
        plan = sorted_plan(renewals)
    else:
        ours = _not_cancelled(found, found.registry.data)
        plan = plan_renewals(ours, f"the cluster could not be read: {doubt.cause}")
    return _renew_only(given, found, plan, unread_cluster(doubt))


def _not_cancelled(early: Renewed, observed: Observed) -> list[ObservedInstance]:
    """Return our instances, except those that were cancelled a moment ago and are still listed."""
    return [instance for key, instance in observed.ours.items() if key not in early.cancelled]


def _renew_only(
    given: Given,
    found: Renewed,
    plan: Plan,
    view: ClusterView,
    listed: Iterable[ObservedInstance] = (),
) -> PassReport:
    """Renew what the plan has and this pass has not renewed yet."""
    given.deadline.stage(Ends.SETTLING)
    report = PassReport(
        settings=given.settings,
        cluster=given.ownership.cluster,
        at=given.world.clock.now(),
        plan=plan,
        registry=found.registry,
        view=view,
        batching=given.world.registry.batching(),
    )
    return _renew_planned(report, found.applier, given.deadline, found.renewed, listed)


def _renew_planned(
    report: PassReport,
    applier: Applier,
    deadline: Deadline,
    early: Mapping[InstanceKey, Outcome],
    listed: Iterable[ObservedInstance],
) -> PassReport:
    """Renew what the report plans and was not renewed `early`. `listed` shows which lease is the
    oldest."""
    rest: list[Renew] = []
    if not report.settings.dry_run:
        for renewal in report.plan.renewals:
            if renewal.key not in early:
                rest.append(renewal)
    renewed = applier.renew(rest, listed)
    outcomes = Outcomes.of([*early.values(), *renewed])
    outcomes = retry_untried_renewals(applier, outcomes)
    return replace(report, outcomes=outcomes, cut_short=deadline.cut_short)


def renew_unidentified(
    world: World, settings: PassSettings, deadline: Deadline, listed: Listing, identity: Unknown
) -> PassReport:
    """Renew the instances of our owner and read nothing more, because it is unknown which cluster
    this is."""
    deadline.stage(Ends.SETTLING)
    world.memory.nothing_seen()
    applier = applier_of(world, None, settings.scope, deadline)
    now = world.clock.now()
    ours, registry = _of_owner(listed, settings, "", now)
    early: Mapping[InstanceKey, Outcome] = {}
    if isinstance(registry, Unknown) and not settings.dry_run:
        early = renew_ours(world, applier, registry, frozenset())
    report = PassReport(
        settings=settings,
        cluster=None,
        at=now,
        plan=plan_renewals(ours, f"the cluster could not be read: {identity.cause}"),
        registry=registry,
        view=unread_cluster(identity),
    )
    if isinstance(registry, Complete):
        report = replace(report, batching=world.registry.batching())
    return _renew_planned(report, applier, deadline, early, ours)


def keepalive(world: EurekaWorld, settings: PassSettings, cluster: str | None = None) -> PassReport:
    """Renew the instances of our owner, in every cluster or in the one with this UID, without
    asking a cluster. While Eureka cannot be listed, renew what this process renewed before."""
    deadline = Deadline(world.clock, settings.deadline, world.time_limit)
    asked = world.clock.now()
    listed = world.registry.list_instances()
    ours, registry = _of_owner(listed, settings, cluster or "", asked)
    if cluster is not None:
        ours = [instance for instance in ours if instance.metadata.get(CLUSTER) == cluster]
    if isinstance(registry, Complete):
        plan = plan_renewals(ours, "it has our owner's name")
    else:
        plan = renewed_before(world)
    report = PassReport(
        settings=settings,
        cluster=cluster or None,
        at=asked,
        plan=plan,
        registry=registry,
        view=None,
    )
    applier = applier_of(world, None, settings.scope, deadline)
    report = _renew_planned(report, applier, deadline, {}, ours)
    return replace(report, batching=world.registry.batching())


def _of_owner(
    listed: Listing, settings: PassSettings, cluster: str, asked: float
) -> tuple[Sequence[ObservedInstance], Source[Observed]]:
    """Return the instances of our owner in any cluster, and the list as this cluster (a UID) sees
    it."""
    if isinstance(listed, Unknown):
        return (), listed
    ownership = Ownership(owner=settings.owner, cluster=cluster)
    observed = observe(listed, ownership, settings.scope, asked=asked)
    owners = {settings.owner, *settings.former.owners}
    return held_by_owners(listed, owners, settings.scope), Complete(data=observed)
