"""The rules between what is wanted and what is done, in their order.

    claims -> LEFT_OUT -> claims -> make_plan -> LEFT_ALONE -> plan -> within_quota -> claims and plan

What the brake holds comes after, for it is weighed by what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from eurekube_sync.desired.claims import Desired
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.drained import still_drained
from eurekube_sync.plan.earlier import EarlierPlan
from eurekube_sync.plan.first_registered import first_registered
from eurekube_sync.plan.limit import within_limits
from eurekube_sync.plan.make import make_plan
from eurekube_sync.plan.policy import by_policy
from eurekube_sync.plan.quota import within_quota
from eurekube_sync.plan.suspend import suspended
from eurekube_sync.plan.value import Choice, Plan

ClaimFilter: TypeAlias = Callable[[Desired, Observed], Choice]
PlanFilter: TypeAlias = Callable[[Plan, Desired, Observed, Collection[InstanceKey]], Plan]
"""The last argument is what this process last saw UP."""

LEFT_OUT: tuple[ClaimFilter, ...] = (first_registered, still_drained, within_limits)
"""Which of the wanted instances are not registered, or only DOWN."""
LEFT_ALONE: tuple[PlanFilter, ...] = (suspended, by_policy)
"""Which changes to our instances their syncers ask not to make."""


def choose(desired: Desired, observed: Observed) -> Choice:
    """The claims without what is left out."""
    to_read: list[InstanceKey] = []
    for rule in LEFT_OUT:
        choice = rule(desired, observed)
        desired = choice.desired
        to_read += choice.to_read
    return Choice(desired=desired, to_read=tuple(to_read))


def draft(
    desired: Desired, observed: Observed, last_up: Collection[InstanceKey], earlier: EarlierPlan | None = None
) -> tuple[Choice, Plan]:
    """The claims without what is left out, and their plan before the brake."""
    choice = choose(desired, observed)
    plan = plan_for(choice.desired, observed, last_up, earlier)
    return within_quota(choice, plan, observed, last_up)


def plan_for(
    desired: Desired, observed: Observed, last_up: Collection[InstanceKey], earlier: EarlierPlan | None = None
) -> Plan:
    """The plan without the changes that are left alone."""
    plan = make_plan(desired, observed, earlier)
    for rule in LEFT_ALONE:
        plan = rule(plan, desired, observed, last_up)
    return plan
