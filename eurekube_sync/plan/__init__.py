"""The difference between what should be registered and what is registered, as one sorted value.

    claims (desired) + complete registry (observed)  ->  make_plan      -> renew, register, update, cancel
    claims (desired), registry Unknown               ->  plan_blind     -> renew what is wanted, register on a 404
    a cluster that does not tell who it is           ->  plan_renewals  -> renew

Only `make_plan` can remove. It takes an `Observed`, which only a complete list can make, and each removal bears
the `Proof` of the source that shows it.

`make` has the rules in their order, and goes through all that is registered and all that is wanted. `ours` says what
becomes of one of ours, `duplicates` of one whose pod registers itself; `value` is the plan.
"""

from eurekube_sync.plan.duplicates import warned
from eurekube_sync.plan.make import make_plan, plan_blind, plan_renewals, with_unread
from eurekube_sync.plan.ours import differences, overridden
from eurekube_sync.plan.value import Blocked, Choice, Obstacle, Plan, removal_id, renewed_instead, sorted_plan

__all__ = [
    "Blocked",
    "Choice",
    "Obstacle",
    "Plan",
    "differences",
    "make_plan",
    "overridden",
    "plan_blind",
    "plan_renewals",
    "removal_id",
    "renewed_instead",
    "sorted_plan",
    "warned",
    "with_unread",
]
