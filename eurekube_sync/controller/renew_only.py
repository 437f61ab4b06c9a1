"""Passes that renew what is ours and change nothing more: the cluster does not say who it is, what was listed may be
another cluster's, another cluster uses our owner's name, or another owner serves our syncers."""

from __future__ import annotations

from dataclasses import replace

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.controller.carry_out import applier_of, renew_ours, renew_the_rest
from eurekube_sync.controller.one_pass import SETTLING, PassReport, PassSettings, World
from eurekube_sync.desired.claims import Desired
from eurekube_sync.model.actions import Renew, removes
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import ClusterView
from eurekube_sync.model.outcomes import Outcome, Outcomes
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.observe.eureka import Observed, held_by_owner, observe
from eurekube_sync.observe.kubernetes import unread_cluster
from eurekube_sync.observe.other_owner import OtherOwner
from eurekube_sync.plan import Plan, make_plan, plan_renewals, sorted_plan


def renew_unidentified(
    world: World,
    settings: PassSettings,
    deadline: Deadline,
    listed: Complete[tuple[ObservedInstance, ...]] | Unknown,
    identity: Unknown,
) -> PassReport:
    """The cluster does not tell who it is: renew whatever carries our owner's name, ask and change nothing more."""
    world.sightings.nothing_seen()
    view, now = unread_cluster(identity), world.clock.now()
    applier = applier_of(world, None, settings.scope, deadline)
    if isinstance(listed, Unknown):
        blindly = Outcomes.of([] if settings.dry_run else renew_ours(world, applier, listed, frozenset()))
        return PassReport(
            owner=settings.owner,
            cluster=None,
            scope=settings.scope,
            dry_run=settings.dry_run,
            at=now,
            plan=Plan(),
            registry=listed,
            view=view,
            outcomes=blindly,
            cut_short=deadline.cut_short,
        )
    ours = held_by_owner(listed, settings.owner, settings.scope)
    plan = plan_renewals(ours, f"the cluster could not be read: {identity.cause}", now=world.clock.now())
    outcomes = Outcomes.of([] if settings.dry_run else applier.renew(plan.of(Renew), ours))
    observed = observe(listed, Ownership(owner=settings.owner, cluster=""), settings.scope, asked=now)
    return PassReport(
        owner=settings.owner,
        cluster=None,
        scope=settings.scope,
        dry_run=settings.dry_run,
        at=now,
        plan=plan,
        registry=Complete(data=observed),
        view=view,
        outcomes=outcomes,
        batching=world.registry.batching(),
        cut_short=deadline.cut_short,
    )


def renew_doubted(
    world: World,
    settings: PassSettings,
    deadline: Deadline,
    applier: Applier,
    registry: Complete[Observed] | Unknown,
    plan: Plan,
    renewed: list[Outcome],
    cancelled: frozenset[InstanceKey],
    doubt: Unknown,
    cluster: str,
) -> PassReport:
    """What was listed may be another cluster's than `cluster`: renew what is ours in this scope, and was not renewed in
    this pass. In place of what cannot be read of Eureka, what the plan renews; nothing comes back on a 404."""
    deadline.stage(SETTLING)
    world.sightings.nothing_seen()
    now = world.clock.now()
    if isinstance(registry, Unknown):
        plan = sorted_plan(replace(action, heal=None) for action in plan.of(Renew))
    else:
        ours = [one for key, one in registry.data.ours.items() if key not in cancelled]
        plan = plan_renewals(ours, f"the cluster could not be read: {doubt.cause}", now=now)
    early = {outcome.action.key for outcome in renewed}
    rest = [] if settings.dry_run else [action for action in plan.of(Renew) if action.key not in early]
    return PassReport(
        owner=settings.owner,
        cluster=cluster,
        scope=settings.scope,
        dry_run=settings.dry_run,
        at=now,
        plan=plan,
        registry=registry,
        view=unread_cluster(doubt),
        outcomes=renew_the_rest(applier, Outcomes.of([*renewed, *applier.renew(rest)])),
        batching=world.registry.batching(),
        cut_short=deadline.cut_short,
    )


def refuse(
    settings: PassSettings,
    deadline: Deadline,
    registry: Complete[Observed],
    outcomes: Outcomes,
    view: ClusterView,
    now: float,
) -> PassReport:
    """Another cluster uses our owner's name: what is surely ours is renewed, so that refusing to work is no outage."""
    return PassReport(
        owner=settings.owner,
        cluster=registry.data.ownership.cluster,
        scope=settings.scope,
        dry_run=settings.dry_run,
        at=now,
        plan=plan_renewals(registry.data.ours.values(), "another cluster uses our owner name", now=now),
        registry=registry,
        view=view,
        clashes=registry.data.clashes,
        outcomes=outcomes,
        cut_short=deadline.cut_short,
    )


def renew_beside(
    world: World,
    settings: PassSettings,
    deadline: Deadline,
    applier: Applier,
    registry: Complete[Observed],
    view: ClusterView,
    desired: Desired,
    others: tuple[OtherOwner, ...],
    renewed: list[Outcome],
) -> PassReport:
    """Another owner serves our syncers: renew what the cluster says is to stand. What should go is left to expire, for
    the other owner's goes as well, and nobody else would take ours out."""
    deadline.stage(SETTLING)
    world.sightings.nothing_seen()
    now = world.clock.now()
    going = {action.key for action in make_plan(desired, registry.data).actions if removes(action)}
    kept = [one for key, one in registry.data.ours.items() if key not in going]
    plan = plan_renewals(kept, "another owner serves its syncer", now=now)
    early = {outcome.action.key for outcome in renewed}
    rest = [] if settings.dry_run else [action for action in plan.of(Renew) if action.key not in early]
    return PassReport(
        owner=settings.owner,
        cluster=registry.data.ownership.cluster,
        scope=settings.scope,
        dry_run=settings.dry_run,
        at=now,
        plan=plan,
        registry=registry,
        view=view,
        other_owners=others,
        outcomes=renew_the_rest(applier, Outcomes.of([*renewed, *applier.renew(rest)])),
        cut_short=deadline.cut_short,
    )
