"""Passes that renew our instances and change nothing else: the cluster does not say who it is, the lists may be another
cluster's, another cluster uses our owner's name, or another owner serves our syncers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.controller.one_pass import (
    SETTLING,
    Decided,
    Found,
    Given,
    PassReport,
    PassSettings,
    Renewed,
    World,
)
from eurekube_sync.controller.steps import applier_of, renew_ours, renew_the_rest
from eurekube_sync.model.actions import comes_last
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import ClusterView
from eurekube_sync.model.outcomes import Outcome, Outcomes
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.observe.eureka import Observed, held_by_owner, observe
from eurekube_sync.observe.kubernetes import unread_cluster
from eurekube_sync.observe.other_owner import OtherOwner
from eurekube_sync.plan import Plan, plan_renewals, sorted_plan


def refuse(given: Given, early: Renewed, registry: Complete[Observed]) -> PassReport:
    """Another cluster uses our owner's name: our instances are renewed, and nothing more is read."""
    given.deadline.stage(SETTLING)
    given.world.memory.sightings.nothing_seen()
    ours = [one for key, one in registry.data.ours.items() if key not in early.cancelled]
    plan = plan_renewals(ours, "another cluster uses our owner name")
    report = replace(_report(given, plan, registry, unread_cluster(given.identity)), clashes=registry.data.clashes)
    return renew_only(report, early.applier, given.deadline, renewed=early.outcomes, listed=ours)


def renew_beside(
    given: Given,
    early: Renewed,
    found: Found,
    registry: Complete[Observed],
    decided: Decided,
    others: tuple[OtherOwner, ...],
) -> PassReport:
    """Another owner serves our syncers: wanted instances are renewed, and those that the brake holds. The others are
    left to expire, because the other owner would not remove them."""
    world, held = given.world, decided.braked.held
    given.deadline.stage(SETTLING)
    world.memory.sightings.note(held, decided.brake.seen, monotonic=world.clock.monotonic())
    removed = {action.key for action in decided.braked.plan.actions if comes_last(action)}
    kept = [one for key, one in registry.data.ours.items() if key not in removed]
    plan = plan_renewals(kept, "another owner serves its syncer")
    report = replace(_report(given, plan, registry, found.view), other_owners=others)
    return renew_only(report, found.applier, given.deadline, renewed=early.outcomes)


def renew_in_doubt(given: Given, early: Renewed, found: Found, decided: Decided, doubt: Unknown) -> PassReport:
    """The lists may be another cluster's: our instances in this scope are renewed; while Eureka cannot be read, those
    that the plan renews. Nothing is registered again on a 404."""
    given.deadline.stage(SETTLING)
    given.world.memory.sightings.nothing_seen()
    if isinstance(found.registry, Unknown):
        plan = sorted_plan(replace(action, if_gone=None) for action in decided.braked.plan.renewals)
    else:
        ours = [one for key, one in found.registry.data.ours.items() if key not in early.cancelled]
        plan = plan_renewals(ours, f"the cluster could not be read: {doubt.cause}")
    report = _report(given, plan, found.registry, unread_cluster(doubt))
    return renew_only(report, found.applier, given.deadline, renewed=early.outcomes)


def _report(given: Given, plan: Plan, registry: Complete[Observed] | Unknown, view: ClusterView) -> PassReport:
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


def renew_only(
    report: PassReport,
    applier: Applier,
    deadline: Deadline,
    *,
    renewed: Iterable[Outcome] = (),
    listed: Iterable[ObservedInstance] = (),
) -> PassReport:
    """Renews what the report plans and this pass has not `renewed` yet. `listed`: these, as Eureka listed them."""
    early = {outcome.action.key: outcome for outcome in renewed}
    rest = [] if report.dry_run else [one for one in report.plan.renewals if one.key not in early]
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
    report = PassReport(
        owner=settings.owner,
        cluster=None,
        scope=settings.scope,
        dry_run=settings.dry_run,
        at=now,
        plan=Plan(),
        registry=listed
        if isinstance(listed, Unknown)
        else Complete(data=observe(listed, Ownership(owner=settings.owner, cluster=""), settings.scope, asked=now)),
        view=unread_cluster(identity),
    )
    if isinstance(listed, Unknown):
        renewed = () if settings.dry_run else renew_ours(world, applier, listed, frozenset())
        return renew_only(report, applier, deadline, renewed=renewed)
    ours = held_by_owner(listed, settings.owner, settings.scope)
    plan = plan_renewals(ours, f"the cluster could not be read: {identity.cause}")
    report = replace(report, plan=plan, batching=world.registry.batching())
    return renew_only(report, applier, deadline, listed=ours)
