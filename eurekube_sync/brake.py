"""The brake: a pass that would take away too much takes away nothing, and says so.

It counts withdrawals, what callers would lose: a cancel of an UP instance, or UP to DOWN (a lost node controller turns
all pods unready while they serve). Per app, after netting: loss = UP now - UP after. An instance whose uncached read
failed counts as lost: the next pass may take it away, and what goes now must not look small. Held instances keep their
status and their lease.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from eurekube_sync.actions import Cancel, Grounds, Update, Withdrawal, brings_up, grounds_of, withdraws
from eurekube_sync.model import InstanceStatus
from eurekube_sync.observed import Observed
from eurekube_sync.plan import Plan, renewal_of, sorted_plan, withdrawal_id


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakeLimits:
    """Where the brake takes hold."""

    loss_percent: float = 30
    """Of all UP instances that we own ..."""
    loss_floor: int = 10
    """... and more than this many; both, without positive evidence."""
    loss_ceiling: int = 500
    """More than this many, whatever the evidence."""
    apps_percent: float = 5
    """Of our apps that have an UP instance, going to none ..."""
    apps_floor: int = 1
    """... or this many, whichever is more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Withdrawals that wait."""

    plan_id: str
    """For `run --approve`: a checksum over these withdrawals alone."""
    withdrawals: tuple[Withdrawal, ...]
    reason: str
    """The numbers, as a sentence."""


def apply_brake(
    plan: Plan, observed: Observed, limits: BrakeLimits, *, approved: str | None = None
) -> tuple[Plan, Held | None]:
    """The plan itself, or the plan with every withdrawal turned into a renewal and what was held.

    `approved` is the plan id that a person released: the same set of withdrawals or nothing.
    """
    reason = _too_much(plan, observed, limits)
    plan_id = withdrawal_id(plan.actions)
    if reason is None or plan_id == approved:
        return plan, None
    why = f"its removal is held ({plan_id})"
    kept = [
        renewal_of(action, why) if isinstance(action, Update | Cancel) and withdraws(action) else action
        for action in plan.actions
    ]
    held = Held(plan_id=plan_id, withdrawals=plan.withdrawals, reason=reason)
    return sorted_plan(kept, plan.blocked), held


def _renamed(plan: Plan) -> bool:
    """Whether every syncer that loses something gains something under another app: it changed its name."""
    losing = {action.syncer for action in plan.withdrawals}
    gaining = {action.syncer for action in plan.actions if brings_up(action)}
    return losing <= gaining


def _too_much(plan: Plan, observed: Observed, limits: BrakeLimits) -> str | None:
    now = Counter(key.app for key, i in observed.ours.items() if i.status is InstanceStatus.UP)
    gained = Counter(action.key.app for action in plan.actions if brings_up(action))
    if not plan.withdrawals:
        return None
    ours = observed.ours
    unsure = Counter(key.app for key in observed.unread if key in ours and ours[key].status is InstanceStatus.UP)
    lost = Counter(action.key.app for action in plan.withdrawals) + unsure
    unexplained = Counter(a.key.app for a in plan.withdrawals if not grounds_of(a).positive) + unsure
    loss = sum(max(0, count - gained[app]) for app, count in lost.items())
    unexplained_loss = sum(max(0, count - gained[app]) for app, count in unexplained.items())
    total, apps = now.total(), len(now)
    emptied = [app for app, count in now.items() if lost[app] and count - lost[app] + gained[app] <= 0]
    if unexplained_loss > limits.loss_floor and unexplained_loss * 100 > limits.loss_percent * total:
        return f"{unexplained_loss} of {total} UP instances would go, more than {limits.loss_percent:g} %"
    if loss > limits.loss_ceiling:
        return f"{loss} of {total} UP instances would go, more than {limits.loss_ceiling}"
    if len(emptied) > max(limits.apps_floor, apps * limits.apps_percent / 100):
        return f"{len(emptied)} of {apps} apps would lose their last UP instance"
    # One syncer that a person deletes may be all there is; nothing else may take the last instance of everything.
    asked_for = all(grounds_of(action) is Grounds.SYNCER_DELETED for action in plan.withdrawals)
    if emptied and len(emptied) == apps and not asked_for and not _renamed(plan):
        return f"all that we own would go: {total} UP {'instance' if total == 1 else 'instances'}"
    return None
