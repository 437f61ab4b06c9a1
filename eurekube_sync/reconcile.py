"""One pass, step by step. This file is the documentation of what a pass does; each step lives in a file of its name.

    list Eureka -> renew -> list Kubernetes -> claims -> look elsewhere -> plan -> read again what would change -> plan
    -> brake -> apply -> settle

Eureka is listed first: what somebody registers in between must not look undesired. What stands is renewed before
anything else is asked, so that no slow server can let leases lapse. A source that cannot be read is Unknown, and what
hangs on it is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eurekube_sync.actions import Renew
from eurekube_sync.approval import refusal
from eurekube_sync.carry_out import applier_of, carry_out, renew_ours, renew_the_rest
from eurekube_sync.cleanup import look_elsewhere
from eurekube_sync.deadline import Deadline
from eurekube_sync.decide import brake_of, decide
from eurekube_sync.desired import Deleting, Desired, claim_all
from eurekube_sync.gates import open_gates, openings
from eurekube_sync.instance import Naming
from eurekube_sync.model import (
    Complete,
    Listed,
    ObservedInstance,
    SyncerObject,
    Unknown,
)
from eurekube_sync.observed import Observed, observe
from eurekube_sync.one_pass import (
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
from eurekube_sync.outcome import Outcome, Outcomes, Result
from eurekube_sync.ownership import Ownership
from eurekube_sync.plan import Plan
from eurekube_sync.renew_only import refuse, renew_doubted, renew_unidentified
from eurekube_sync.scope import Scope
from eurekube_sync.settle import settle, unsettled, without_finalizer
from eurekube_sync.view import SameCluster, living_pods, read_cluster, read_pods, read_syncers, unread_cluster


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
    ownership = Ownership(owner=settings.owner, cluster=identity.data)
    scope, syncers = _choose(world, settings, deadline)
    applier = applier_of(world, ownership, scope, deadline)
    remembered = world.own_writes.recent(asked)
    registry: Complete[Observed] | Unknown = (
        listed
        if isinstance(listed, Unknown)
        else Complete(data=observe(listed, ownership, scope, asked=asked_at).remembering(remembered))
    )
    cancelled = frozenset(key for key, wrote in remembered.items() if wrote is None)
    renewed = [] if settings.dry_run else renew_ours(world, applier, registry, cancelled)
    if isinstance(registry, Complete) and registry.data.clashes:
        deadline.stage(SETTLING)
        world.sightings.nothing_seen()
        outcomes = renew_the_rest(applier, Outcomes.of(renewed))
        return refuse(settings, deadline, registry, outcomes, unread_cluster(identity), world.clock.now())

    deadline.stage(READING)
    marked = frozenset(registry.data.keys_by_syncer) if isinstance(registry, Complete) else frozenset()
    view = read_cluster(world.cluster, identity, scope, marked, syncers, settings.drains)
    scope = scope.knowing(view.syncers)
    applier = applier_of(world, ownership, scope, deadline)
    desired = claim_all(view, Naming(ownership=ownership, lease=settings.lease), scope)
    if isinstance(registry, Complete):
        registry = Complete(data=registry.data.narrowed(scope))
        view = read_pods(world.cluster, view, desired, registry.data, scope)
        desired = replace(desired, living_pods=living_pods(view))
    registry, unseen = _look_elsewhere(world, settings, listed, registry, desired)

    deadline.stage_of_rest(0.5, APPLYING)
    now = world.clock.now()
    refused = refusal(settings.approved, ownership, now)
    seen = world.sightings.before(desired, monotonic=world.clock.monotonic(), now=now, within=settings.confirm_within)
    brake = brake_of(settings, desired, None if refused else settings.approved, seen, now)
    unlisted = isinstance(registry, Unknown)
    stood = world.last_seen.still_wanted(desired, world.renewals.renewed_lately()) if unlisted else ()
    braked, desired, registry = decide(
        applier, desired, registry, brake, stood, now=now, cache_seconds=settings.registry_cache
    )
    matters = braked.plan.changes or braked.held or _writes_more(braked.plan, desired, registry, renewed)
    same = SameCluster(world.cluster, world.clock, identity)
    otherwise = "what it listed proves nothing" if settings.dry_run else "what is ours is renewed alone"
    deadline.stage_of_rest(0.5, APPLYING)  # the reads may have taken all of theirs
    if matters and not world.clock.stopping() and (doubt := same.doubt(otherwise)):
        return renew_doubted(world, settings, deadline, applier, registry, braked.plan, renewed, cancelled, doubt)
    deadline.stage(APPLYING)
    report = PassReport(
        dry_run=settings.dry_run,
        at=now,
        plan=braked.plan,
        registry=registry,
        view=view,
        desired=desired,
        held=braked.held,
        approved=settings.approved,
        batching=world.registry.batching(),
        approval_refused=refused,
        released=braked.approved,
        cut_short=deadline.cut_short,
    )
    if settings.dry_run:
        return report
    brake = replace(brake, approval=None, approved=braked.approved)
    plan, outcomes, held, errors = carry_out(world, applier, deadline, brake, report, desired, renewed)
    world.sightings.note(held, seen, monotonic=world.clock.monotonic())
    if isinstance(registry, Complete):
        world.last_seen.note(registry.data, outcomes, world.renewals.renewed_lately())

    deadline.stage(SETTLING)
    report = replace(report, plan=plan, held=held, outcomes=outcomes, cluster_errors=errors)
    now = world.clock.now()
    due = unsettled(
        desired, registry, plan, held, outcomes, unseen,
        now=now, cache_seconds=settings.registry_cache, lapse_seconds=2 * settings.lease.duration,
    )  # fmt: skip
    wished = openings(desired, view, registry, plan, now=now)
    doubt = same.doubt("no status is written") if (due or wished) and not world.clock.stopping() else None
    if doubt is not None:
        return replace(report, view=replace(view, identity=doubt), cut_short=deadline.cut_short)
    written, more_errors = settle(
        world.cluster, world.clock, world.workers, deadline, desired, registry, outcomes, due,
        lapse_seconds=2 * settings.lease.duration,
    )  # fmt: skip
    gates = open_gates(world.cluster, applier, world.workers, deadline, ownership, wished, now=world.clock.now())
    return replace(
        report,
        statuses=written,
        cluster_errors=(*errors, *more_errors, *gates),
        cut_short=deadline.cut_short,
    )


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


def _choose(world: World, settings: PassSettings, deadline: Deadline) -> tuple[Scope, Listed[SyncerObject] | None]:
    """With a selector the syncers are listed before the first renewal, for nothing else tells whose an instance is.
    While that fails, all that may be ours is renewed."""
    if not settings.scope.selector:
        deadline.stage(RENEWING)
        return settings.scope, None
    deadline.stage(CHOOSING)
    syncers = read_syncers(world.cluster, settings.scope)
    deadline.stage(RENEWING)
    return settings.scope.knowing(syncers), syncers


def _look_elsewhere(
    world: World,
    settings: PassSettings,
    listed: Complete[tuple[ObservedInstance, ...]] | Unknown,
    registry: Complete[Observed] | Unknown,
    desired: Desired,
) -> tuple[Complete[Observed] | Unknown, tuple[str, ...] | None]:
    """With what other Eureka servers hold of deleted syncers, before one of those may go; and which servers did not
    show it, None when none was asked. A process that begins knows nothing of what those before it could not reach."""
    if isinstance(listed, Unknown) or isinstance(registry, Unknown):
        return registry, None
    deleted = look_elsewhere(desired.claims.values(), registry.data, cache_seconds=settings.registry_cache)
    if not deleted:
        return registry, None
    found, unseen = world.registry.list_elsewhere(listed)
    return Complete(data=registry.data.beside(found, deleted)), unseen
