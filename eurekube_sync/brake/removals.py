"""The last stage of a pass: what may go, now that it is known what came. Adds may have failed since the brake saw them,
and leases turned out to have expired: what removes is weighed once more, and waits where nothing replaced it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from eurekube_sync.brake.braking import apply_brake
from eurekube_sync.brake.holds import Brake, Held, hold_back
from eurekube_sync.desired.claims import Desired, NotServed, OverQuota, Serving
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
    """What is left to do of a plan when its adds are done."""

    plan: Plan  # as far as it was not held
    actions: tuple[Removal, ...] = ()
    kept_back: Mapping[InstanceKey, str]  # those of them that must wait for a successor, with the reason
    held: Held | None = None  # what was held when the removals were weighed again ...
    confirmed: frozenset[InstanceKey] = frozenset()  # ... and what went then for an earlier pass saw it


def witnesses(plan: Plan, observed: Observed, read: Collection[InstanceKey]) -> tuple[InstanceKey, ...]:
    """What else to read uncached: for each app that loses an UP instance, one that is to stay UP, until one is proven.
    The list may be old, and what it calls UP may be DOWN since: another process wrote a moment ago, or a person. `read`
    are the keys that were read uncached. After each that is no witness twice as many are asked."""
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
        key for app, keys in waiting.items() if app not in proven for key in sorted(keys)[: max(1, refuted[app])]
    )


def without_successor(plan: Plan, desired: Desired, observed: Observed) -> Plan:
    """The plan with what waits for an instance that cannot even be tried renewed, before the brake sees it: braked
    first, it would await its confirmation, get it, be kept back after the adds, and await it anew, for ever."""
    if not plan.blocked and not _refused(desired, observed) and not _awaited(plan, desired):
        return plan
    hoped = [Outcome(action=action, result=Result.DONE) for action in plan.changes if not comes_last(action)]
    return renewed_instead(plan, _kept_back(plan, desired, observed, hoped))


def removals_left(plan: Plan, desired: Desired, observed: Observed, done: Sequence[Outcome], brake: Brake) -> Removals:
    """The removals of the plan after its renewals and adds; `done` is what became of those. What must wait for a
    successor is not weighed: it stays, as in `without_successor`."""
    if not _last_actions(plan):
        return Removals(plan=plan, kept_back={})
    kept_back = _kept_back(plan, desired, observed, done)
    # Weighed against what came about, and without what expired and could not be brought back: it is no UP instance that
    # the losses are few of. What is registered again was gone before.
    failed = {o.action.key for o in done if o.failed and isinstance(o.action, Register | Update)}
    achieved = replace(plan, actions=tuple(action for action in plan.actions if action.key not in failed))
    ended = {outcome.action.key: outcome for outcome in done}
    expired = {key for key, one in ended.items() if isinstance(one.action, Renew) and one.status is None}
    left = replace(observed, ours={key: one for key, one in observed.ours.items() if key not in expired})
    again = apply_brake(renewed_instead(achieved, kept_back), left, brake)
    plan = hold_back(plan, again.held)
    actions = _last_actions(plan)
    return Removals(plan=plan, actions=actions, kept_back=kept_back, held=again.held, confirmed=again.confirmed)


def _kept_back(plan: Plan, desired: Desired, observed: Observed, done: Iterable[Outcome]) -> dict[InstanceKey, str]:
    blocked, refused = _blocked(plan, desired, observed), _refused(desired, observed)
    return failed_adds(_last_actions(plan), done, observed.ours, blocked, _awaited(plan, desired), refused)


def _last_actions(plan: Plan) -> tuple[Removal, ...]:
    """Every cancel, and UP to DOWN."""
    return tuple(a for a in plan.changes if isinstance(a, Update | Cancel) and comes_last(a))


def failed_adds(
    removals: Iterable[Update | Cancel],
    outcomes: Iterable[Outcome],
    registered: Mapping[InstanceKey, ObservedInstance],
    blocked: Iterable[tuple[SyncerRef, Instance]] = (),
    waiting: Iterable[tuple[_PodOf, str]] = (),
    refused: Collection[SyncerRef] = (),
) -> dict[InstanceKey, str]:
    """The removals to hold back: an add of the same app, VIP or syncer failed or was blocked, and no UP instance of it
    would be left.

    None that leaves its app and all its VIPs an UP instance, if another syncer's, for a refused add would keep a dead
    pod for ever; unless it is its own pod that could not be added, under another name, or its pod lives and is merely
    over a limit. What the same pod, or what has no pod at the same address and port, is to be instead, and a call
    failed or a quota has no place for, is waited for in any case, unless the pod has another address now. What has
    another pod's address waits for nothing: its callers would reach another app.

    `outcomes` are those of the renewals and changes so far, `registered` what stood before, `blocked` the wanted
    instances that could not even be tried, `waiting` the pods of those that could not be read, or have no place in a
    quota, with their addresses. What goes of syncers that are `refused` counts as if an add of its app had failed: an
    app that such a syncer merely names may be another team's."""
    taken = {one.key: one.grounds for one in removals if removes(one) and one.grounds is not Grounds.DUPLICATE}
    ended = {outcome.action.key: outcome for outcome in outcomes}
    broken = [one.action for one in ended.values() if one.failed and isinstance(one.action, Register | Update)]
    adds = [(action.syncer, action.instance) for action in broken if brings_up(action)]
    awaited = [*waiting, *(pod for syncer, instance in adds for pod in _same(instance, syncer))]
    # What expired, or what a Eureka server lacks.
    expired = [one.action for one in ended.values() if isinstance(one.action, Renew) and not _stands(one)]
    gone = [(action.syncer, action.if_gone) for action in expired if action.if_gone and action.syncer]
    lacking = [*blocked, *adds, *gone]
    failed = {name for syncer, one in lacking for name in _names(one.key, one.vip_address, syncer)}
    moving = {instance.ip_addr for _, instance in lacking}
    follows: dict[_PodOf, set[str]] = {}
    for pod, address in awaited:
        follows.setdefault(pod, set()).add(address)
    left = _left_up(ended, registered, taken)
    held_back = {}
    for key, grounds in taken.items():
        if grounds is Grounds.REPLACED:
            continue
        there = registered[key]
        names = _names(key, there.instance.vip_address, syncer_of(there))
        lives = grounds is Grounds.OVER_LIMIT or there.instance.ip_addr in moving
        harmless = not lives and all(left[name] for name in _called(key, there.instance.vip_address))
        mine = _same(there.instance, syncer_of(there))
        # A pod that has the one address may still have the other: it has one of each family, and after its sandbox was
        # made anew another one, under the same UID.
        was, now = there.instance.ip_addr, [address for pod, _ in mine for address in follows.get(pod, ())]
        own = any(address == was or (":" in address) is not (":" in was) for address in now)
        own = own and grounds is not Grounds.SYNCER_DELETED
        awaits = names if syncer_of(there) in refused else failed.intersection(names)
        if own or (any(not left[name] for name in awaits) and not harmless):
            held_back[key] = "the instances that should replace it could not be registered"
    return held_back


def _left_up(
    ended: Mapping[InstanceKey, Outcome],
    registered: Mapping[InstanceKey, ObservedInstance],
    taken: Collection[InstanceKey],
) -> Counter[str]:
    """How many UP instances are left, by each name of app, VIP and syncer."""
    left: Counter[str] = Counter()
    for key, outcome in ended.items():
        action = outcome.action
        if isinstance(action, Register | Update) and brings_up(action) and not outcome.failed:
            left.update(_names(key, action.instance.vip_address, action.syncer))
    for key, observed in registered.items():
        gone = key in taken or (key in ended and not _stands(ended[key]))
        if observed.status is InstanceStatus.UP and not gone:
            left.update(_names(key, observed.instance.vip_address, syncer_of(observed)))
    return left


_PodOf: TypeAlias = tuple[str, str]  # the app or the syncer, and the pod's UID, or address and port of what has no pod


def _same(instance: Instance, syncer: SyncerRef | None) -> list[tuple[_PodOf, str]]:
    """What tells that an instance under another name is the same, with its address: by its syncer; and a pod, which has
    a UID, by its app as well."""
    uid = pod_uid_of(instance)
    who = uid or f"{instance.ip_addr}:{instance.main_port}"
    names = [f"syncer {syncer}", *([f"app {instance.key.app}"] if uid else [])]
    return [((name, who), instance.ip_addr) for name in names]


def _awaited(plan: Plan, desired: Desired) -> list[tuple[_PodOf, str]]:
    """The pods of the instances that could not be read, or have no place in a quota, and so are not registered. The
    latter by their syncer alone: an app that it merely names may be another team's."""
    found = [(one.syncer, desired.wanted(one.key)) for one in plan.blocked if one.obstacle is Obstacle.UNREAD]
    awaited = [pod for syncer, wanted in found if wanted for pod in _same(wanted.instance, syncer)]
    for ref, claim in desired.claims.items():
        if isinstance(claim, Serving) and claim.over_quota:
            awaited += [_same(one.wanted.instance, ref)[0] for one in claim.of(OverQuota).values()]
    return awaited


def _stands(outcome: Outcome) -> bool:
    """Whether it is registered, and callers of each Eureka server find it."""
    return outcome.status is not None and not (outcome.lacking and outcome.status is InstanceStatus.UP)


def _names(key: InstanceKey, vip_address: str, syncer: SyncerRef | None) -> tuple[str, ...]:
    return (*_called(key, vip_address), f"syncer {syncer}")


def _called(key: InstanceKey, vip_address: str) -> tuple[str, ...]:
    """What callers know an instance by."""
    return (f"app {key.app}", *(f"vip {name}" for name in vip_address.split(",") if name))


def _blocked(plan: Plan, desired: Desired, observed: Observed) -> list[tuple[SyncerRef, Instance]]:
    """What could not be tried and UP instances wait for."""
    tried = {action.key for action in plan.changes if isinstance(action, Register)}
    blocked = [(one, wanted.instance) for one in plan.blocked if (wanted := desired.wanted(one.key))]
    return [
        (one.syncer, instance)
        for one, instance in blocked
        if one.key not in tried and instance.status is InstanceStatus.UP and not _serves_itself(one, instance, observed)
    ]


def _refused(desired: Desired, observed: Observed) -> frozenset[SyncerRef]:
    """The syncers that want an UP instance more than they have, and that their Namespace does not grant it."""
    return frozenset(
        ref
        for ref, claim in desired.claims.items()
        if isinstance(claim, NotServed) and claim.refused
        for key, one in claim.refused.wanted.items()
        if one.instance.status is InstanceStatus.UP and key not in observed.ours
    )


def _serves_itself(blocked: Blocked, wanted: Instance, observed: Observed) -> bool:
    """Whether the pod's own registration does for its callers what ours would; or ours stands beside it."""
    other = observed.others.get(blocked.other) if blocked.other else None
    if blocked.obstacle is not Obstacle.DUPLICATE or other is None:
        return False
    return blocked.key in observed.ours or lacks(other, wanted) is None
