"""The brake: a pass that would take away too much takes away nothing, and says so.

It counts withdrawals, what callers would lose: a cancel of an UP instance, or UP to DOWN (a lost node controller turns
all pods unready while they serve). Per app, after netting: loss = UP now - UP after. An instance whose uncached read
failed counts as lost: the next pass may take it away, and what goes now must not look small. Held instances keep their
status and their lease.

Four brakes, one after the other. What may have lost its syncer to the end of an earlier CRD waits for that, or for a
person. Over the whole pass: all its other withdrawals wait for a person. `maxRemovalPercent` of one syncer: its own
wait for a person. One app that goes to nothing without evidence: what has none waits for a pass that sees the same
again, some time later.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from typing import TypeAlias

from eurekube_sync.actions import Action, Cancel, Grounds, Register, Update, Withdrawal, brings_up, grounds_of
from eurekube_sync.approval import Approval, released_by
from eurekube_sync.model import (
    Condition,
    ConditionStatus,
    Instance,
    InstanceKey,
    InstanceStatus,
    ObservedInstance,
    SyncerRef,
)
from eurekube_sync.observed import Observed
from eurekube_sync.ownership import pod_uid_of
from eurekube_sync.plan import Plan, renewal_of, sorted_plan, withdrawal_id
from eurekube_sync.wording import counted, one_or_more


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakeLimits:
    """Where the brake takes hold."""

    loss_percent: float = 30
    """Of all UP instances that we own ..."""
    loss_floor: float = 10
    """... and more than this many; both, without positive evidence."""
    loss_ceiling: float = 500
    """More than this many, whatever the evidence."""
    apps_percent: float = 5
    """Of our apps that have an UP instance, going to none ..."""
    apps_floor: float = 1
    """... or this many, whichever is more."""
    confirm_after: float = 20
    """Seconds from the first pass that sees an app go to nothing without evidence to one that may do it; 0: at once."""

    def scaled(self, share: float) -> BrakeLimits:
        """The limits of a pass that serves this share of an installation: absolute numbers shrink with it. One app may
        always go, or no syncer of a small shard could be deleted."""
        return replace(
            self,
            loss_floor=self.loss_floor * share,
            loss_ceiling=self.loss_ceiling * share,
            apps_floor=min(self.apps_floor, max(1.0, self.apps_floor * share)),
        )


class HoldReason(StrEnum):
    """Why withdrawals wait: the reason of the condition `RemovalHeld`."""

    TOO_MANY_REMOVALS = "TooManyRemovals"
    """The whole pass would take away too much."""
    MAX_REMOVAL_PERCENT = "MaxRemovalPercent"
    """This syncer would, by its own limit."""
    CRD_INSTALLED = "CRDInstalled"
    """Their syncers may have gone with an earlier CRD, and be created again one after the other."""
    AWAITING_CONFIRMATION = "AwaitingConfirmation"
    """An app would lose its last UP instance, and nothing but absence says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Withdrawals that wait for one reason."""

    reason: HoldReason
    why: str
    """The numbers, as a sentence without its end."""
    withdrawals: tuple[Withdrawal, ...]
    syncer: SyncerRef | None = None
    """Whose they are; None where they may be many syncers'."""
    mark: str = ""
    """Of one that awaits its confirmation: equal marks are the same removal."""
    first: bool = False
    """Nobody saw it before this pass, or too long ago: its wait begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """All withdrawals of a pass that wait; each is in one hold."""

    plan_id: str
    """For `run --approve`: a checksum over these withdrawals alone."""
    holds: tuple[Hold, ...]

    @property
    def withdrawals(self) -> tuple[Withdrawal, ...]:
        """All of them, by key."""
        return tuple(sorted((one for hold in self.holds for one in hold.withdrawals), key=lambda one: one.key))

    @property
    def reason(self) -> str:
        """The numbers of the first holds, as a sentence without its end."""
        more = [f"and {len(self.holds) - 3} more"] if len(self.holds) > 3 else []
        return "; ".join([*(hold.why for hold in self.holds[:3]), *more])


def held_of(holds: Iterable[Hold]) -> Held | None:
    """What these holds come to; None for none. Of two that hold the same withdrawal the first has it."""
    taken: set[InstanceKey] = set()
    kept = []
    for hold in holds:
        own = tuple(one for one in hold.withdrawals if one.key not in taken)
        taken.update(one.key for one in own)
        kept += [replace(hold, withdrawals=own)] if own else []
    plan_id = withdrawal_id(one for hold in kept for one in hold.withdrawals)
    return Held(plan_id=plan_id, holds=tuple(kept)) if kept else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Brake:
    """How one pass is braked: the limits, and what was released or seen before."""

    limits: BrakeLimits = field(default_factory=BrakeLimits)
    syncer_limits: Mapping[SyncerRef, int] = field(default_factory=dict)
    """`maxRemovalPercent` of those that have one."""
    freed: frozenset[SyncerRef] = frozenset()
    """Released by an annotation: their withdrawals are neither counted nor held."""
    approval: Approval | None = None
    approved: frozenset[InstanceKey] = frozenset()
    """What an approval released earlier in this pass: counted, and not held."""
    seen: Mapping[tuple[SyncerRef, str], float] = field(default_factory=dict)
    """For each removal that awaited its confirmation, by its mark: seconds since it was first seen."""
    confirm_within: float = inf
    """Seconds in which a pass has to see it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Braked:
    """What the brake leaves of a plan."""

    plan: Plan
    """Every withdrawal that is held is a renewal."""
    held: Held | None
    approved: frozenset[InstanceKey] = frozenset()
    """The withdrawals that `--approve` released."""


def apply_brake(plan: Plan, observed: Observed, brake: Brake) -> Braked:
    """The plan, with every withdrawal that has to wait turned into a renewal, and what is held."""
    freed = frozenset(one.key for one in plan.withdrawals if one.syncer in brake.freed)
    swept = tuple(one for one in plan.withdrawals if grounds_of(one) is Grounds.SWEPT)
    uncounted = freed | {one.key for one in swept}
    counted = tuple(one for one in plan.withdrawals if one.key not in uncounted)
    stands = {key: i for key, i in observed.ours.items() if i.status is InstanceStatus.UP and key not in freed}
    unread = frozenset(observed.unread) & frozenset(stands)
    scales = _Scales(plan=plan, stands=frozenset(stands), unread=unread, freed=freed)
    holds: list[Hold] = []
    if swept:
        holds.append(Hold(reason=HoldReason.CRD_INSTALLED, why=_swept(swept), withdrawals=swept))
    if counted and (why := _too_much(scales, counted, brake.limits)):
        holds.append(Hold(reason=HoldReason.TOO_MANY_REMOVALS, why=why, withdrawals=counted))
    elif counted:
        holds += _over_their_own(scales, counted, brake.syncer_limits)
        waiting = {one.key for hold in holds for one in hold.withdrawals}
        left = tuple(one for one in counted if one.key not in waiting)
        holds += _unconfirmed(scales, left, observed, brake)
    planned = plan.withdrawals
    meant = released_by(brake.approval, planned, [one for hold in holds for one in hold.withdrawals])
    approved = meant | (brake.approved & {one.key for one in planned})
    held = held_of(
        replace(hold, withdrawals=tuple(one for one in hold.withdrawals if one.key not in approved)) for hold in holds
    )
    return Braked(plan=hold_back(plan, held), held=held, approved=approved)


def _swept(withdrawals: Collection[Withdrawal]) -> str:
    syncers = sorted({str(one.syncer) for one in withdrawals})
    more = f" and {len(syncers) - 1} more" if len(syncers) > 1 else ""
    return (
        f"{counted(len(withdrawals), 'UP instance')} of {syncers[0]}{more} would go, registered before the "
        "CustomResourceDefinition that is there now: their syncers may have gone with an earlier one and be yet to come"
    )


def hold_back(plan: Plan, held: Held | None) -> Plan:
    """The plan with all that is held renewed instead."""
    if held is None:
        return plan
    keys = {one.key for one in held.withdrawals}
    why = f"its removal is held ({held.plan_id})"
    return sorted_plan(
        (
            renewal_of(action, why) if isinstance(action, Update | Cancel) and action.key in keys else action
            for action in plan.actions
        ),
        plan.blocked,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scales:
    """What is weighed against the withdrawals."""

    plan: Plan
    stands: frozenset[InstanceKey]
    """UP now."""
    unread: frozenset[InstanceKey]
    """UP in the list, and not to be read again: as good as lost."""
    freed: frozenset[InstanceKey]
    """Withdrawals that are not weighed."""

    @property
    def gained(self) -> Counter[str]:
        """UP instances that come, by app."""
        return Counter(action.key.app for action in self.plan.actions if brings_up(action))

    @property
    def replacing(self) -> Counter[str]:
        """Those of them that may replace what is weighed: what goes unweighed is replaced first."""
        return self.gained - Counter(key.app for key in self.freed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loss:
    """Of each app, UP now - UP after, where that is a loss."""

    lost: Counter[str]
    """Without netting."""
    net: Counter[str]
    unexplained: int
    """Of the whole net loss, what no evidence explains: what comes in a rollout replaces what terminates in it, not
    what turned unready meanwhile."""


def _loss(withdrawals: Collection[Withdrawal], unread: Collection[InstanceKey], gained: Mapping[str, int]) -> _Loss:
    unsure = Counter(key.app for key in unread)
    lost = Counter(one.key.app for one in withdrawals) + unsure
    doubted = Counter(one.key.app for one in withdrawals if not grounds_of(one).positive) + unsure
    net = Counter({app: count - gained.get(app, 0) for app, count in lost.items() if count > gained.get(app, 0)})
    return _Loss(lost=lost, net=net, unexplained=sum(min(count, net[app]) for app, count in doubted.items()))


def _too_much(scales: _Scales, withdrawals: Collection[Withdrawal], limits: BrakeLimits) -> str | None:
    loss = _loss(withdrawals, scales.unread, scales.replacing)
    now = Counter(key.app for key in scales.stands)
    total, apps = now.total(), len(now)
    standing = counted(total, "UP instance")
    emptied = _emptied(loss, now, scales.gained)
    if loss.unexplained > limits.loss_floor and loss.unexplained * 100 > limits.loss_percent * total:
        return f"{loss.unexplained} of {standing} would go, more than {limits.loss_percent:g} %"
    if loss.net.total() > limits.loss_ceiling:
        return f"{loss.net.total()} of {standing} would go, more than {limits.loss_ceiling:g}"
    if len(emptied) > max(limits.apps_floor, apps * limits.apps_percent / 100):
        their = one_or_more(len(emptied), "its", "their")
        return f"{len(emptied)} of {counted(apps, 'app')} would lose {their} last UP instance"
    # One syncer that a person deletes may be all there is; nothing else may take the last instance of everything.
    asked_for = all(grounds_of(one) is Grounds.SYNCER_DELETED for one in withdrawals)
    if emptied and len(emptied) == apps and not asked_for and not _renamed(withdrawals, scales.plan):
        return f"all that we own would go: {standing}"
    return None


def _emptied(loss: _Loss, now: Mapping[str, int], gained: Mapping[str, int]) -> frozenset[str]:
    return frozenset(app for app, count in now.items() if loss.lost[app] - gained.get(app, 0) >= count)


def _renamed(withdrawals: Iterable[Withdrawal], plan: Plan) -> bool:
    """Whether every syncer that loses something gains something under another app: it changed its name."""
    losing = {one.syncer for one in withdrawals}
    gaining = {action.syncer for action in plan.actions if brings_up(action)}
    return losing <= gaining


def _over_their_own(
    scales: _Scales, withdrawals: Collection[Withdrawal], limits: Mapping[SyncerRef, int]
) -> list[Hold]:
    """All of those syncers that would lose more than their `maxRemovalPercent`. Evidence exempts here as in the test of
    sizes, or a syncer that has a limit could never be deleted."""
    own: dict[SyncerRef, list[Withdrawal]] = {}
    for one in withdrawals:
        if one.syncer in limits:
            own.setdefault(one.syncer, []).append(one)
    actions: dict[SyncerRef, list[Action]] = {syncer: [] for syncer in own}
    for action in scales.plan.actions:
        if action.syncer in own:
            actions[action.syncer].append(action)
    holds = []
    for syncer, limit in sorted((syncer, limits[syncer]) for syncer in own):
        stands = sum(action.key in scales.stands for action in actions[syncer])
        unread = [action.key for action in actions[syncer] if action.key in scales.unread]
        gained = Counter(action.key.app for action in actions[syncer] if brings_up(action))
        loss = _loss(own[syncer], unread, gained).unexplained
        if loss * 100 > limit * stands:
            why = f"{loss} of {counted(stands, 'UP instance')} of {syncer} would go, more than its {limit} %"
            reason = HoldReason.MAX_REMOVAL_PERCENT
            holds.append(Hold(reason=reason, why=why, withdrawals=tuple(own[syncer]), syncer=syncer))
    return holds


def _unconfirmed(scales: _Scales, withdrawals: Collection[Withdrawal], observed: Observed, brake: Brake) -> list[Hold]:
    """Of each app that would go to nothing, what no evidence takes away and no pass saw before.

    A removal is the same when its syncer would lose the same instances without evidence, whichever way: an outage that
    comes back, or grows, begins its wait anew. An app waits until all syncers that it would lose are seen again.
    """
    if not brake.limits.confirm_after:
        return []
    loss = _loss(withdrawals, scales.unread, scales.replacing)
    emptied = _emptied(loss, Counter(key.app for key in scales.stands), scales.gained)
    moved = _pods_served(scales, withdrawals, observed)
    waiting: dict[SyncerRef, list[Withdrawal]] = {}
    for one in withdrawals:
        pod = _pod_at(one.syncer, observed.ours[one.key])
        if one.key.app in emptied and not grounds_of(one).positive and pod not in moved:
            waiting.setdefault(one.syncer, []).append(one)
    marks = {syncer: _mark(own) for syncer, own in waiting.items()}
    fresh = {
        syncer for syncer, mark in marks.items() if brake.seen.get((syncer, mark), -1.0) < brake.limits.confirm_after
    }
    apps = {one.key.app for syncer in fresh for one in waiting[syncer]}
    holds = []
    for syncer, own in sorted(waiting.items()):
        held = tuple(one for one in own if one.key.app in apps)
        names = sorted({one.key.app for one in held})
        shown = f"{names[0]} and {counted(len(names) - 1, 'more app')}" if len(names) > 1 else f"app {''.join(names)}"
        when = f"at least {brake.limits.confirm_after:g} s"
        when += f" and at most {brake.confirm_within:g} s" if brake.confirm_within < inf else ""
        why = f"{shown} would go to nothing; a pass {when} later has to see the same"
        if any(grounds_of(one) is Grounds.ORPHANED for one in own):
            why += f", {_SAME_PROCESS}"
        if held:
            hold = Hold(
                reason=HoldReason.AWAITING_CONFIRMATION,
                why=why,
                withdrawals=held,
                syncer=syncer,
                mark=marks[syncer],
                first=(syncer, marks[syncer]) not in brake.seen,
            )
            holds.append(hold)
    return holds


_SAME_PROCESS = "of the same process, for an orphan has no condition to tell another: run --passes 2, or --daemon"


_PodAt: TypeAlias = tuple[SyncerRef | None, str, int, str]


def _pods_served(scales: _Scales, withdrawals: Iterable[Withdrawal], observed: Observed) -> frozenset[_PodAt | None]:
    """Where a syncer still serves a pod, or will, under whatever app: one that moves to another name at its address and
    port is evidence that it lives. The address alone is none: several Services may stand behind one host name."""
    going = {one.key for one in withdrawals}
    served: set[_PodAt | None] = set()
    for action in scales.plan.actions:
        if isinstance(action, Register | Update) and brings_up(action):
            served.add(_pod_at(action.syncer, action.instance))
        elif action.key in scales.stands and action.key not in going:
            served.add(_pod_at(action.syncer, observed.ours[action.key]))
    return frozenset(served - {None})


def _pod_at(syncer: SyncerRef | None, instance: Instance | ObservedInstance) -> _PodAt | None:
    """None where the mark names no pod."""
    uid = pod_uid_of(instance)
    return None if uid is None else (syncer, instance.ip_addr, instance.main_port, uid)


def _mark(withdrawals: Iterable[Withdrawal]) -> str:
    return hashlib.sha256("\n".join(sorted(str(one.key) for one in withdrawals)).encode()).hexdigest()[:12]


def condition_message(hold: Hold, count: int, command: str) -> str:
    """What `RemovalHeld` says to a syncer of which a hold has this many withdrawals; `command` releases them."""
    mark = f"removal {hold.mark}: " if hold.mark else ""
    held = one_or_more(count, "is held, it stays and is renewed", "are held, they stay and are renewed")
    return f"{mark}{count} of its removals {held}: {hold.why}; to release them: {command}"


def awaited_mark(condition: Condition | None) -> str | None:
    """The mark of the removal that a condition says awaits its confirmation."""
    if condition is None or condition.status is not ConditionStatus.TRUE:
        return None
    if condition.type != "RemovalHeld" or condition.reason != HoldReason.AWAITING_CONFIRMATION:
        return None
    first, colon, _ = condition.message.partition(":")
    return first.removeprefix("removal ") if colon else None
