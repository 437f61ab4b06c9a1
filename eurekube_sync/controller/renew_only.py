"""Passes that renew what is ours and change nothing more: the cluster does not say who it is, what was listed may be
another cluster's, another cluster uses our owner's name, or another owner serves our syncers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.controller.carry_out import applier_of, renew_ours, renew_the_rest
from eurekube_sync.controller.one_pass import PassReport, PassSettings, World
from eurekube_sync.model.actions import Renew
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.outcomes import Outcome, Outcomes
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.observe.eureka import held_by_owner, observe
from eurekube_sync.observe.kubernetes import unread_cluster
from eurekube_sync.plan import Plan, plan_renewals


def renew_only(
    report: PassReport,
    applier: Applier,
    deadline: Deadline,
    *,
    renewed: Iterable[Outcome] = (),
    listed: Iterable[ObservedInstance] = (),
) -> PassReport:
    """Renews what the report plans, but for what was `renewed` in this pass; changes nothing else. `listed`: as Eureka
    listed these."""
    early = {outcome.action.key: outcome for outcome in renewed}
    rest = [] if report.dry_run else [one for one in report.plan.of(Renew) if one.key not in early]
    outcomes = renew_the_rest(applier, Outcomes.of([*early.values(), *applier.renew(rest, listed)]))
    return replace(report, outcomes=outcomes, cut_short=deadline.cut_short)


def renew_unidentified(
    world: World,
    settings: PassSettings,
    deadline: Deadline,
    listed: Complete[tuple[ObservedInstance, ...]] | Unknown,
    identity: Unknown,
) -> PassReport:
    """The cluster does not tell who it is: renew whatever carries our owner's name, ask and change nothing more."""
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
        blindly = () if settings.dry_run else renew_ours(world, applier, listed, frozenset())
        return renew_only(report, applier, deadline, renewed=blindly)
    ours = held_by_owner(listed, settings.owner, settings.scope)
    plan = plan_renewals(ours, f"the cluster could not be read: {identity.cause}")
    report = replace(report, plan=plan, batching=world.registry.batching())
    return renew_only(report, applier, deadline, listed=ours)
