"""The tests of the brake in their order: which removals of a plan are held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from eurekube_sync.brake.approval import released_by
from eurekube_sync.brake.confirm import parted, seen_before, to_confirm, unconfirmed
from eurekube_sync.brake.holds import Brake, BrakeLimits, Held, Hold, HoldReason, held_of, hold_back
from eurekube_sync.model.actions import Grounds, Register, Removal, Update, brings_up
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import Pods, SyncerRef
from eurekube_sync.model.ownership import pod_namespace_of, pod_uid_of
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.observe.kubernetes import pod_gone
from eurekube_sync.plan.value import Plan

_AT_ONCE = frozenset({Grounds.DUPLICATE, Grounds.REPLACED})
"""Grounds for removals that need no confirmation: callers use the pod's own instance, or would reach another pod."""

_ASKED_FOR = frozenset({Grounds.SYNCER_DELETED, Grounds.DRAINED, Grounds.OVER_LIMIT})
"""Grounds for removals that a person asked for, of one object: no number of emptied apps holds them. Deletions have a
limit of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Braked:
    """The plan after the brake."""

    plan: Plan  # with a renewal in place of each held removal
    held: Held | None
    approved: frozenset[InstanceKey] = frozenset()  # the removals that `--approve` released
    confirmed: frozenset[InstanceKey] = frozenset()  # the removals that an earlier pass saw


def apply_brake(plan: Plan, observed: Observed, brake: Brake) -> Braked:
    """Replace each removal that has to wait by a renewal. Not weighed are removals that a person released by
    annotation, of dead pods that an earlier pass saw dead, and of pods that are registered under another app. The
    others are held, test by test: if their syncers may have been deleted with an earlier CRD; if the whole pass, or one
    app, loses too much; and, for confirmation, if an app loses its last
    instance. Dead pods are removed although others are held, but wait for confirmation if they alone are too many."""
    planned = plan.removals
    if not planned:
        return Braked(plan=plan, held=None)
    gone = dead(planned, observed, brake.pods)
    # A dead pod whose address another pod has never waits.
    dead_ones = [one for one in planned if one.key in gone and one.grounds is not Grounds.REPLACED]
    confirmed = seen_before(dead_ones, brake, dead=True)
    unweighed = confirmed | {one.key for one in planned if one.syncer in brake.freed}
    up = (key for key, one in observed.ours.items() if one.status is InstanceStatus.UP)
    registered = frozenset(key for key in up if key not in unweighed)
    elsewhere = moved(plan, observed, registered)
    unread = frozenset(observed.unread) & registered
    scales = Scales(plan=plan, registered=registered, unread=unread, unweighed=unweighed, moved=elsewhere, dead=gone)
    rest = [one for one in planned if one.key not in unweighed]
    swept = [one for one in rest if one.grounds is Grounds.SWEPT]
    weighed = [one for one in rest if one.grounds is not Grounds.SWEPT and one.key not in elsewhere]

    holds: list[Hold] = []
    if swept:
        first, *more = sorted({str(one.syncer) for one in swept})
        owners = f"{first} and of {counted(len(more), 'more syncer')}" if more else first
        are = one_or_more(len(swept), "is", "are")
        their = "the syncers" if more else "the syncer"
        why = (
            f"{counted(len(swept), 'UP instance')} of {owners} {are} older than the CustomResourceDefinition (an "
            f"earlier CustomResourceDefinition may have been deleted, and {their} with it)"
        )
        holds.append(_hold(why, swept, HoldReason.CRD_INSTALLED))
    holds += _twice(lambda some: too_much(scales, some, brake.limits), weighed, gone)
    holds = [_saying_what_is_unknown(hold, observed, brake.pods) for hold in parted(holds, gone, brake)]
    last = _unexplained_last(scales, _left(weighed, holds))
    confirmed |= (seen := seen_before(last, brake))
    holds += unconfirmed(last, seen, brake)

    found = held_of(holds)  # a removal that two tests hold counts once, as in the plan id that is reported
    meant = released_by(brake.approval, planned, found.removals if found else ())
    approved = meant | (brake.approved & {one.key for one in planned})
    holds = [hold.without(approved) for hold in holds]
    # Seen is what this pass would hold for confirmation, also where a larger hold has it for now.
    held_keys = {removal.key for hold in holds for removal in hold.removals}
    seen_now = [removal for removal in _unexplained_last(scales, weighed) if removal.key in held_keys]
    held = held_of(holds, to_confirm(seen_now, brake))
    return Braked(plan=hold_back(plan, held), held=held, approved=approved, confirmed=confirmed)


def _twice(
    test: Callable[[Collection[Removal]], Iterable[Hold]], removals: Collection[Removal], gone: Collection[InstanceKey]
) -> Iterator[Hold]:
    """Hold the living pods' removals if all together are too many, and the dead pods' if they alone are."""
    yield from (hold.without(gone) for hold in test(removals))
    yield from test([one for one in removals if one.key in gone])


def _unexplained_last(scales: Scales, removals: Collection[Removal]) -> list[Removal]:
    """Return the removals that need a second look: without evidence, of apps that would lose their last instance."""
    emptied = scales.emptied(removals)
    return [
        removal
        for removal in removals
        if removal.key.app in emptied and not removal.grounds.positive and removal.grounds not in _AT_ONCE
    ]


def _left(removals: Collection[Removal], holds: Collection[Hold]) -> list[Removal]:
    waiting = {one.key for hold in holds for one in hold.removals}
    return [one for one in removals if one.key not in waiting]


@dataclass(frozen=True, kw_only=True)  # without slots: it keeps what it counted
class Scales:
    """The numbers against which removals are weighed."""

    plan: Plan
    registered: frozenset[InstanceKey]  # UP now, and weighed
    unread: frozenset[InstanceKey]  # UP in the list, but their uncached read failed: they count as lost
    unweighed: frozenset[InstanceKey]  # removals that a person released, or of pods that an earlier pass saw dead
    moved: frozenset[InstanceKey]  # removals whose pods are registered under another app
    dead: frozenset[InstanceKey]  # removals whose pods are gone

    @cached_property
    def gained(self) -> Counter[str]:
        """UP instances that the pass adds, by app."""
        return Counter(action.key.app for action in self.plan.changes if brings_up(action))

    @cached_property
    def replacing(self) -> Counter[str]:
        """Those of them that replace weighed removals, by app; unweighed removals are replaced first."""
        return self.gained - Counter(key.app for key in self.unweighed)

    @cached_property
    def now(self) -> Counter[str]:
        """UP instances by app, without those that move to another app."""
        return Counter(key.app for key in self.registered if key not in self.moved)

    def emptied(self, removals: Iterable[Removal]) -> frozenset[str]:
        """Return the apps that would lose their last UP instance. A duplicate is no loss."""
        lost = Counter(one.key.app for one in removals if one.grounds is not Grounds.DUPLICATE)
        lost += Counter(key.app for key in self.unread)
        return frozenset(app for app, count in self.now.items() if lost[app] - self.gained[app] >= count)


def loss_of(
    removals: Collection[Removal], unread: Collection[InstanceKey], gained: Mapping[str, int]
) -> tuple[Counter[str], Counter[str]]:
    """Return each app's net loss of UP instances, and the part of it without evidence. New instances replace removals
    with evidence first, such as terminating pods in a rollout."""
    unread_of = Counter(key.app for key in unread)
    lost = Counter(one.key.app for one in removals) + unread_of
    doubted = Counter(one.key.app for one in removals if not one.grounds.positive) + unread_of
    net = Counter({app: count - gained.get(app, 0) for app, count in lost.items() if count > gained.get(app, 0)})
    return net, doubted & net


_PodAt: TypeAlias = tuple[SyncerRef | None, str, int, str]


def moved(plan: Plan, observed: Observed, registered: Collection[InstanceKey]) -> frozenset[InstanceKey]:
    """Return the removals whose pod the same syncer registers at the same address and port under another app. The
    address alone proves nothing, because several Services may share a host name."""
    pods = {one.key: _pod_at(one.syncer, observed.ours[one.key].instance) for one in plan.removals}
    losing = {one.syncer for one in plan.removals}
    served: set[_PodAt | None] = set()
    for action in (one for one in plan.actions if one.syncer in losing):
        if isinstance(action, Register | Update) and brings_up(action):
            served.add(_pod_at(action.syncer, action.instance))
        elif action.key in registered and action.key not in pods:
            served.add(_pod_at(action.syncer, observed.ours[action.key].instance))
    served.discard(None)
    return frozenset(key for key, pod in pods.items() if pod in served)


def _pod_at(syncer: SyncerRef | None, instance: Instance) -> _PodAt | None:
    """Return the pod of an instance with its syncer, address and port; None if the mark names no pod."""
    uid = pod_uid_of(instance)
    return None if uid is None else (syncer, instance.ip_addr, instance.main_port, uid)


def to_look_up(held: Held | None) -> tuple[Removal, ...]:
    """Return the held removals that dead pods would release. Those that await confirmation wait anyway."""
    holds = held.holds if held else ()
    return tuple(one for hold in holds if hold.reason is not HoldReason.AWAITING_CONFIRMATION for one in hold.removals)


def dead(removals: Iterable[Removal], observed: Observed, pods: Pods) -> frozenset[InstanceKey]:
    """Return the removals whose pod is not in a complete list, or whose address and port another pod has. A terminating
    pod may still serve, and so may an endpoint without a pod, or with an unknown list."""
    known = (Grounds.REPLACED, Grounds.POD_GONE)
    return frozenset(one.key for one in removals if one.grounds in known or pod_gone(observed.ours[one.key], pods))


def _saying_what_is_unknown(hold: Hold, observed: Observed, pods: Pods) -> Hold:
    """Add to the hold's sentence that the pods could not be read."""
    for one in hold.removals:
        listed = pods.get(pod_namespace_of(observed.ours[one.key]) or "")
        if isinstance(listed, Unknown):
            return replace(hold, why=f"{hold.why}; it is unknown whether their pods still exist: {listed.message}")
    return hold


def too_much(scales: Scales, removals: Collection[Removal], limits: BrakeLimits) -> Iterator[Hold]:
    """Hold what is too much for the whole pass, or for one app. Deletions by a person have limits of their own."""
    net, doubted = loss_of(removals, scales.unread, scales.replacing)
    total, apps = len(scales.registered), len(scales.now)
    left_up = counted(total, "UP instance")
    losing = [one for one in removals if one.key.app in net]
    unexplained = doubted.total()
    if unexplained > limits.loss_floor and unexplained * 100 > limits.loss_percent * total:
        why = f"this installation would lose {unexplained} of its {left_up}, more than {limits.loss_percent:g} %"
        yield _hold(why, [one for one in losing if not one.grounds.positive])
    for app, lost in sorted(doubted.items()):
        if lost > limits.app_loss_floor and lost * 100 > limits.loss_percent * scales.now[app]:
            of_app = f"app {app} would lose {lost} of its {counted(scales.now[app], 'UP instance')}"
            why = f"{of_app}, more than {limits.loss_percent:g} %"
            yield _hold(why, [one for one in losing if one.key.app == app and not one.grounds.positive])

    emptied = scales.emptied(removals)
    last = [one for one in removals if one.key.app in emptied]
    serving = [one for one in last if one.key not in scales.dead]
    unasked = [one for one in serving if one.grounds not in _ASKED_FOR]
    losing_apps = {one.key.app for one in unasked} | {key.app for key in scales.unread if key.app in emptied}
    if len(losing_apps) > max(limits.apps_floor, apps * limits.apps_percent / 100):
        yield _hold(_last_ones(len(losing_apps), apps), unasked)
    deleted = [one for one in serving if one.grounds is Grounds.SYNCER_DELETED]
    losing_apps = {one.key.app for one in deleted}
    if len(losing_apps) > limits.deleted_floor and len(losing_apps) * 100 > limits.deleted_percent * apps:
        yield _hold(f"{_last_ones(len(losing_apps), apps)}, because their syncers are being deleted", deleted)


def _last_ones(number: int, apps: int) -> str:
    return f"{number} of {counted(apps, 'app')} would have no UP instance left"


def _hold(why: str, removals: Iterable[Removal], reason: HoldReason = HoldReason.TOO_MANY_REMOVALS) -> Hold:
    return Hold(reason=reason, why=why, removals=tuple(one for one in removals if one.grounds is not Grounds.REPLACED))
