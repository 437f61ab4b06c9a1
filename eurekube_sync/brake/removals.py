"""The removals of a pass, after its adds. Adds may have failed, and leases may have expired, since
the brake weighed the plan. So the removals are weighed again, and those without a successor are
held back. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from eurekube_sync.brake.braking import apply_brake
from eurekube_sync.brake.holds import Brake, Held, hold_back
from eurekube_sync.desired.claims import Desired, NotServed
from eurekube_sync.model.actions import (
    Cancel,
    Grounds,
    Outcome,
    Register,
    Removal,
    Renew,
    Result,
    Update,
    brings_up,
    comes_last,
    removes,
)
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import pod_uid_of, syncer_of
from eurekube_sync.model.values import dataclass
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.duplicates import lacks
from eurekube_sync.plan.value import Blocked, Obstacle, Plan, renewed_instead


@dataclass(frozen=True, slots=True, kw_only=True)
class Removals:
    """The part of a plan that is left after its adds."""

    plan: Plan  # with a renewal in place of each held removal
    actions: tuple[Removal, ...] = ()
    kept_back: Mapping[InstanceKey, str]  # removals that must wait for a successor, with the reason
    held: Held | None = None  # held when the removals were weighed again ...
    confirmed: frozenset[InstanceKey] = (
        frozenset()
    )  # ... and confirmed then, because an earlier pass saw them


def witnesses(
    plan: Plan, observed: Observed, read: Collection[InstanceKey]
) -> tuple[InstanceKey, ...]:
    """Return more keys to read uncached: for each app that loses an UP instance, one that should
    stay UP, until one is proven. The list may be old, and its UP instance may be DOWN now. `read`
    are the keys that were read uncached. After each that is not UP, twice as many are read."""
    taken = {action.key for action in plan.removals}
    losing = {key.app for key in taken}
    if not losing:
        return ()
    proven: set[str] = set()
    refuted: Counter[str] = Counter()
    waiting: dict[str, list[InstanceKey]] = {}
    for key, instance in observed.ours.items():
        if key.app not in losing or key in taken:
            continue
        up = instance.status is InstanceStatus.UP
        if key in read and up and key not in observed.unread:
            proven.add(key.app)
        elif key in read:
            refuted[key.app] += 1
        elif up:
            waiting.setdefault(key.app, []).append(key)
    return tuple(
        key
        for app, keys in waiting.items()
        if app not in proven
        for key in sorted(keys)[: max(1, refuted[app])]
    )


def without_successor(plan: Plan, desired: Desired, observed: Observed) -> Plan:
    """Return the plan without the removals whose successor cannot even be tried. This comes before
    the brake: else such a removal would await confirmation, get it, be held back after the adds,
    and await it again, for ever."""
    hoped = [
        Outcome(action=action, result=Result.DONE)
        for action in plan.changes
        if not comes_last(action)
    ]
    return renewed_instead(plan, _kept_back(plan, desired, observed, hoped))


def removals_left(
    plan: Plan, desired: Desired, observed: Observed, done: Sequence[Outcome], brake: Brake
) -> Removals:
    """Return the removals left after the plan's renewals and adds (`done`). Removals without a
    successor are not weighed."""
    if not _last_actions(plan):
        return Removals(plan=plan, kept_back={})
    kept_back = _kept_back(plan, desired, observed, done)
    # Weighed without the adds that failed, and without instances that expired and were not
    # registered again: these are no UP instances any more, of which the losses could be a small
    # part.
    failed = {o.action.key for o in done if o.failed and isinstance(o.action, Register | Update)}
    achieved = replace(
        plan, actions=tuple(action for action in plan.actions if action.key not in failed)
    )
    ended = {outcome.action.key: outcome for outcome in done}
    expired = {
        key for key, one in ended.items() if isinstance(one.action, Renew) and one.status is None
    }
    left = replace(
        observed, ours={key: one for key, one in observed.ours.items() if key not in expired}
    )
    again = apply_brake(renewed_instead(achieved, kept_back), left, brake)
    plan = hold_back(plan, again.held)
    actions = _last_actions(plan)
    return Removals(
        plan=plan, actions=actions, kept_back=kept_back, held=again.held, confirmed=again.confirmed
    )


def _kept_back(
    plan: Plan, desired: Desired, observed: Observed, done: Iterable[Outcome]
) -> dict[InstanceKey, str]:
    blocked, refused = _blocked(plan, desired, observed), _refused(desired, observed)
    return failed_adds(
        _last_actions(plan), done, observed.ours, blocked, _awaited(plan, desired), refused
    )


def _last_actions(plan: Plan) -> tuple[Removal, ...]:
    """Return every cancel, and every change from UP to DOWN."""
    return tuple(a for a in plan.changes if isinstance(a, Update | Cancel) and comes_last(a))


def failed_adds(
    removals: Iterable[Update | Cancel],
    outcomes: Iterable[Outcome],
    registered: Mapping[InstanceKey, ObservedInstance],
    blocked: Iterable[tuple[SyncerRef, Instance]] = (),
    waiting: Iterable[tuple[_PodOf, str]] = (),
    refused: Collection[SyncerRef] = (),
) -> dict[InstanceKey, str]:
    """Return the removals to hold back, each with its reason.

    A removal is held back if an add of the same app, VIP or syncer failed or was blocked, and no UP
    instance of that name would be left. More exactly:

    - It is made if its app and all its VIPs keep an UP instance, even another syncer's: else a
      refused add would keep a dead pod for ever. This does not apply to a pod that lives and is
      only over a limit, or that could not be added under another name.
    - It is held back in any case if its own pod could not be added under another key, because a
      call failed. An endpoint without a pod is known by address and port. A pod that has another
      address now does not count.
    - It is made if another pod has its address: its callers would reach another app.

    `outcomes` are those of renewals and changes so far, `registered` is from before. `blocked` are
    wanted instances that could not be tried. `waiting` are the pods, with addresses, of instances
    that were unread. Removals of `refused` syncers count as if an add of their app had failed. The
    name of that app proves nothing, because it may be another team's.
    """
    taken = {
        one.key: one.grounds
        for one in removals
        if removes(one) and one.grounds is not Grounds.DUPLICATE
    }
    ended = {outcome.action.key: outcome for outcome in outcomes}
    broken = [
        one.action
        for one in ended.values()
        if one.failed and isinstance(one.action, Register | Update)
    ]
    adds = [(action.syncer, action.instance) for action in broken if brings_up(action)]
    awaited = [*waiting, *(pod for syncer, instance in adds for pod in _same(instance, syncer))]
    expired = [
        one.action
        for one in ended.values()
        if isinstance(one.action, Renew) and not _registered_everywhere(one)
    ]
    gone = [
        (action.syncer, action.if_gone) for action in expired if action.if_gone and action.syncer
    ]
    lacking = [*blocked, *adds, *gone]
    if not (lacking or awaited or refused):
        return {}  # nearly always
    failed = {name for syncer, one in lacking for name in _names(one.key, one.vip_address, syncer)}
    moving = {instance.ip_addr for _, instance in lacking}
    addresses: dict[_PodOf, set[str]] = {}
    for pod, address in awaited:
        addresses.setdefault(pod, set()).add(address)
    left = _left_up(ended, registered, taken)
    held_back = {}
    for key, grounds in taken.items():
        if grounds is Grounds.REPLACED:
            continue
        there, syncer = registered[key].instance, syncer_of(registered[key])
        lives = grounds is Grounds.OVER_LIMIT or there.ip_addr in moving
        harmless = not lives and all(left[name] for name in _called(key, there.vip_address))
        # A pod has an address of each family, so an IPv4 address does not show that it lost its
        # IPv6 address. Within a family, a pod with a new sandbox has a new address under the same
        # UID.
        now = [address for pod, _ in _same(there, syncer) for address in addresses.get(pod, ())]
        own = any(
            address == there.ip_addr or (":" in address) is not (":" in there.ip_addr)
            for address in now
        )
        own = own and grounds is not Grounds.SYNCER_DELETED
        names = _names(key, there.vip_address, syncer)
        awaits = names if syncer in refused else failed.intersection(names)
        if own or (any(not left[name] for name in awaits) and not harmless):
            held_back[key] = "not removed, because no replacement is registered yet"
    return held_back


def _left_up(
    ended: Mapping[InstanceKey, Outcome],
    registered: Mapping[InstanceKey, ObservedInstance],
    taken: Collection[InstanceKey],
) -> Counter[str]:
    """Count the UP instances that are left, by each name of app, VIP and syncer."""
    left: Counter[str] = Counter()
    for key, outcome in ended.items():
        action = outcome.action
        if isinstance(action, Register | Update) and brings_up(action) and not outcome.failed:
            left.update(_names(key, action.instance.vip_address, action.syncer))
    for key, observed in registered.items():
        gone = key in taken or (key in ended and not _registered_everywhere(ended[key]))
        if observed.status is InstanceStatus.UP and not gone:
            left.update(_names(key, observed.instance.vip_address, syncer_of(observed)))
    return left


_PodOf: TypeAlias = tuple[
    str, str
]  # the app or the syncer, and the pod's UID, or address and port without a pod


def _same(instance: Instance, syncer: SyncerRef | None) -> list[tuple[_PodOf, str]]:
    """Return the names under which another instance is of the same pod, with its address: by
    syncer, and if there is a pod UID also by app."""
    uid = pod_uid_of(instance)
    who = uid or f"{instance.ip_addr}:{instance.main_port}"
    names = [f"syncer {syncer}", *([f"app {instance.key.app}"] if uid else [])]
    return [((name, who), instance.ip_addr) for name in names]


def _awaited(plan: Plan, desired: Desired) -> list[tuple[_PodOf, str]]:
    """Return the pods of instances that are unread, and so are not registered."""
    awaited: list[tuple[_PodOf, str]] = []
    for blocked in plan.blocked:
        wanted = desired.wanted(blocked.key)
        if blocked.obstacle is Obstacle.UNREAD and wanted is not None:
            awaited += _same(wanted.instance, blocked.syncer)
    return awaited


def _registered_everywhere(outcome: Outcome) -> bool:
    """Say whether the instance is registered, and callers of each Eureka server find it."""
    return outcome.status is not None and not (
        outcome.lacking and outcome.status is InstanceStatus.UP
    )


def _names(key: InstanceKey, vip_address: str, syncer: SyncerRef | None) -> tuple[str, ...]:
    return (*_called(key, vip_address), f"syncer {syncer}")


def _called(key: InstanceKey, vip_address: str) -> tuple[str, ...]:
    """Return the names by which callers know an instance."""
    return (f"app {key.app}", *(f"vip {name}" for name in vip_address.split(",") if name))


def _blocked(plan: Plan, desired: Desired, observed: Observed) -> list[tuple[SyncerRef, Instance]]:
    """Return the wanted UP instances that could not be tried."""
    tried = {action.key for action in plan.changes if isinstance(action, Register)}
    blocked = [
        (one, wanted.instance) for one in plan.blocked if (wanted := desired.wanted(one.key))
    ]
    return [
        (one.syncer, instance)
        for one, instance in blocked
        if one.key not in tried
        and instance.status is InstanceStatus.UP
        and not _is_served(one, instance, observed)
    ]


def _refused(desired: Desired, observed: Observed) -> frozenset[SyncerRef]:
    """Return the syncers without a grant of their Namespace that want an UP instance that is not
    registered."""
    return frozenset(
        ref
        for ref, claim in desired.claims.items()
        if isinstance(claim, NotServed) and claim.refused
        for key, one in claim.refused.wanted.items()
        if one.instance.status is InstanceStatus.UP and key not in observed.ours
    )


def _is_served(blocked: Blocked, wanted: Instance, observed: Observed) -> bool:
    """Say whether the pod's own instance serves callers as ours would, or ours is registered as
    well."""
    other = observed.others.get(blocked.other) if blocked.other else None
    if blocked.obstacle is not Obstacle.DUPLICATE or other is None:
        return False
    return blocked.key in observed.ours or lacks(other, wanted) is None
