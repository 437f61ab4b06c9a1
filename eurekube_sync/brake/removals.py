"""The removals of a pass, after its adds. Adds may have failed, and leases may have expired, since
the brake weighed the plan. So the removals are weighed again, and those without a successor are
held back. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from eurekube_sync.brake.braking import apply_brake
from eurekube_sync.brake.holds import Brake, Held, hold_back
from eurekube_sync.desired.claims import Desired, NotServed
from eurekube_sync.model.actions import (
    Cancel,
    Grounds,
    Outcome,
    Outcomes,
    Register,
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
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.duplicates import lacks
from eurekube_sync.plan.former import not_moved
from eurekube_sync.plan.value import Blocked, Obstacle, Plan, renewed_instead

_PodOf: TypeAlias = tuple[str, str]
"""The app or the syncer, and the pod's UID, or address and port without a pod."""
_Add: TypeAlias = tuple[SyncerRef, Instance]
"""An instance that should be UP, with the syncer that wants it."""


class Removals(Struct, frozen=True, kw_only=True):
    """The part of a plan that is left after its adds."""

    plan: Plan  # with a renewal in place of each held removal
    actions: tuple[Update | Cancel, ...] = ()
    kept_back: Mapping[InstanceKey, str]  # removals that must wait for a successor, with the reason
    held: Held | None = None  # held when the removals were weighed again ...
    confirmed: frozenset[InstanceKey] = frozenset()  # ... and confirmed: an earlier pass saw them


def witnesses(
    plan: Plan,
    observed: Observed,
    read: Collection[InstanceKey],
) -> tuple[InstanceKey, ...]:
    """Return more keys to read uncached: for each app that loses an UP instance, one that should
    stay UP, until one is proven. The list may be old, and its UP instance may be DOWN now. `read`
    are the keys that were read uncached. After each that is not UP, twice as many are read."""
    taken = set()
    losing = set()
    for removal in plan.removals:
        taken.add(removal.key)
        losing.add(removal.key.app)
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
    to_read: list[InstanceKey] = []
    for app, keys in waiting.items():
        if app not in proven:
            number = max(1, refuted[app])
            to_read += sorted(keys)[:number]
    return tuple(to_read)


def keep_without_successor(plan: Plan, desired: Desired, observed: Observed) -> Plan:
    """Renew in place of the removals whose successor cannot even be tried. This comes before
    the brake: else such a removal would await confirmation, get it, be held back after the adds,
    and await it again, for ever."""
    hoped = []
    for action in plan.changes:
        if not comes_last(action):
            hoped.append(Outcome(action=action, result=Result.DONE))
    kept_back = _kept_back(plan, desired, observed, hoped)
    return renewed_instead(plan, kept_back)


def removals_left(
    plan: Plan,
    desired: Desired,
    observed: Observed,
    done: Sequence[Outcome],
    brake: Brake,
) -> Removals:
    """Return the removals left after the plan's renewals and adds (`done`). Removals without a
    successor are not weighed."""
    if not _last_actions(plan):
        return Removals(plan=plan, kept_back={})
    kept_back = _kept_back(plan, desired, observed, done)
    achieved = renewed_instead(_without_failed_adds(plan, done), kept_back)
    left = _without_expired(observed, done)
    again = apply_brake(achieved, left, brake)
    plan = hold_back(plan, again.held)
    return Removals(
        plan=plan,
        actions=_last_actions(plan),
        kept_back=kept_back,
        held=again.held,
        confirmed=again.confirmed,
    )


def _without_failed_adds(plan: Plan, done: Iterable[Outcome]) -> Plan:
    failed = set()
    for outcome in done:
        action = outcome.action
        if outcome.failed and isinstance(action, Register | Update):
            failed.add(action.key)
    left = [action for action in plan.actions if action.key not in failed]
    return replace(plan, actions=tuple(left))


def _without_expired(observed: Observed, done: Iterable[Outcome]) -> Observed:
    """Leave out instances that expired and were not registered again. Among many of them, the
    losses of this pass could seem to be a small part."""
    expired = set()
    for key, outcome in Outcomes.of(done).by_key.items():
        if isinstance(outcome.action, Renew) and outcome.status is None:
            expired.add(key)
    left = {}
    for key, instance in observed.ours.items():
        if key not in expired:
            left[key] = instance
    return replace(observed, ours=left)


def _kept_back(
    plan: Plan,
    desired: Desired,
    observed: Observed,
    done: Sequence[Outcome],
) -> dict[InstanceKey, str]:
    kept_back = failed_adds(
        _last_actions(plan),
        done,
        observed.ours,
        blocked=_blocked(plan, desired, observed),
        waiting=_awaited(plan, desired),
        refused=_refused(desired, observed),
    )
    return kept_back | not_moved(plan, done, observed)


def _last_actions(plan: Plan) -> tuple[Update | Cancel, ...]:
    """Return every cancel, and every change from UP to DOWN."""
    actions = []
    for action in plan.changes:
        if isinstance(action, Update | Cancel) and comes_last(action):
            actions.append(action)
    return tuple(actions)


def failed_adds(
    removals: Iterable[Update | Cancel],
    outcomes: Iterable[Outcome],
    registered: Mapping[InstanceKey, ObservedInstance],
    blocked: Iterable[_Add] = (),
    waiting: Iterable[_Add] = (),
    refused: Collection[SyncerRef] = (),
) -> dict[InstanceKey, str]:
    """Return the removals to hold back, each with its reason. The first row that fits decides.

    | a removal                                                          | is        |
    |--------------------------------------------------------------------|-----------|
    | of an instance at whose address another pod is: its callers would  | made      |
    | reach another app                                                  |           |
    | whose own pod could not be added under another key, as a call      | held back |
    | failed, and whose syncer is not being deleted                      |           |
    | that leaves an UP instance of its app and all its VIPs, even       | made      |
    | another syncer's: else a refused add would keep a dead pod for     |           |
    | ever. Not a pod that lives, and is over a limit or could not be    |           |
    | added under another name                                           |           |
    | that leaves no UP instance of an app, VIP or syncer of which an    | held back |
    | add failed or was blocked                                          |           |
    | else                                                               | made      |

    `outcomes` are those of renewals and changes so far, `registered` is from before. `blocked` are
    wanted instances that could not be tried, `waiting` those that were unread. Removals of
    `refused` syncers count as if an add of their app had failed. The name of that app proves
    nothing, because it may be another team's."""
    ended = Outcomes.of(outcomes).by_key
    adds = _broken_adds(ended)
    lacking = [*blocked, *adds, *_lost(ended)]
    pods = [*waiting, *adds]
    if not (lacking or pods or refused):
        return {}  # nearly always
    taken = _losses(removals)
    left = _left_up(ended, registered, taken)
    successors = _Successors(lacking, pods, refused)
    held_back = {}
    for key, grounds in taken.items():
        if successors.keep(registered[key], grounds, left):
            held_back[key] = "not removed, because no replacement is registered yet"
    return held_back


def _losses(removals: Iterable[Update | Cancel]) -> dict[InstanceKey, Grounds]:
    """Return the grounds of the removals by which callers lose an UP instance. They keep the pod's
    own."""
    taken: dict[InstanceKey, Grounds] = {}
    for removal in removals:
        if removes(removal) and removal.grounds is not Grounds.DUPLICATE:
            taken[removal.key] = removal.grounds
    return taken


def _broken_adds(ended: Mapping[InstanceKey, Outcome]) -> list[_Add]:
    """Return the instances that a failed call was to bring UP."""
    adds: list[_Add] = []
    for outcome in ended.values():
        action = outcome.action
        if not outcome.failed or not isinstance(action, Register | Update):
            continue
        if brings_up(action):
            adds.append((action.syncer, action.instance))
    return adds


def _lost(ended: Mapping[InstanceKey, Outcome]) -> list[_Add]:
    """Return the wanted instances that Eureka, or one of its servers, has lost and not got
    again."""
    lost: list[_Add] = []
    for outcome in ended.values():
        action = outcome.action
        if not isinstance(action, Renew) or _registered_everywhere(outcome):
            continue
        if action.if_gone and action.syncer:
            lost.append((action.syncer, action.if_gone))
    return lost


class _Successors:
    """The instances that should be UP by now and are not."""

    def __init__(
        self,
        lacking: Iterable[_Add],
        pods: Iterable[_Add],
        refused: Collection[SyncerRef],
    ) -> None:
        self._names: set[str] = set()
        self._addresses: set[str] = set()
        for syncer, instance in lacking:
            self._names.update(_names(instance, syncer))
            self._addresses.add(instance.ip_addr)
        self._addresses_of: dict[_PodOf, list[str]] = {}  # of pods that could not be added
        for syncer, instance in pods:
            for pod in _same(instance, syncer):
                self._addresses_of.setdefault(pod, []).append(instance.ip_addr)
        self._refused = refused

    def keep(self, observed: ObservedInstance, grounds: Grounds, left: Mapping[str, int]) -> bool:
        """Say whether the removal of an instance has to wait, by the table of `failed_adds`. `left`
        has the number of UP instances by name."""
        if grounds is Grounds.REPLACED:
            return False  # its callers would reach another app
        instance = observed.instance
        syncer = syncer_of(observed)
        if grounds is not Grounds.SYNCER_DELETED and self._are_of_its_pod(instance, syncer):
            return True
        # In place of a dead pod, an UP instance of each name is enough, even another syncer's.
        lives = grounds is Grounds.OVER_LIMIT or instance.ip_addr in self._addresses
        if not lives and _have_one(_called(instance), left):
            return False
        names = _names(instance, syncer)
        if syncer in self._refused:
            return not _have_one(names, left)
        # Of its names, only those of an add that failed or was blocked have to be UP.
        awaited = self._names.intersection(names)
        return not _have_one(awaited, left)

    def _are_of_its_pod(self, instance: Instance, syncer: SyncerRef | None) -> bool:
        """Say whether its own pod could not be added under another key. A pod with a new sandbox
        has a new address under the same UID, so its old instance serves nobody."""
        for pod in _same(instance, syncer):
            for address in self._addresses_of.get(pod, ()):
                # A pod has an address of each family. One of another family shows no new sandbox.
                other_family = _is_ipv6(address) is not _is_ipv6(instance.ip_addr)
                if other_family or address == instance.ip_addr:
                    return True
        return False


def _have_one(names: Iterable[str], left: Mapping[str, int]) -> bool:
    """Say whether each app, VIP or syncer has an UP instance left."""
    return all(left[name] for name in names)


def _is_ipv6(address: str) -> bool:
    return ":" in address


def _left_up(
    ended: Mapping[InstanceKey, Outcome],
    registered: Mapping[InstanceKey, ObservedInstance],
    taken: Collection[InstanceKey],
) -> Counter[str]:
    """Count the UP instances that are left, by each name of app, VIP and syncer."""
    left: Counter[str] = Counter()
    for outcome in ended.values():
        action = outcome.action
        if outcome.failed or not isinstance(action, Register | Update):
            continue
        if brings_up(action):
            left.update(_names(action.instance, action.syncer))
    for key, observed in registered.items():
        if observed.status is not InstanceStatus.UP or key in taken:
            continue
        if key in ended and not _registered_everywhere(ended[key]):
            continue
        syncer = syncer_of(observed)
        left.update(_names(observed.instance, syncer))
    return left


def _same(instance: Instance, syncer: SyncerRef | None) -> list[_PodOf]:
    """Return the names under which another instance is of the same pod: by syncer, and if there is
    a pod UID also by app."""
    of_syncer = f"syncer {syncer}"
    uid = pod_uid_of(instance)
    if uid is None:
        socket = f"{instance.ip_addr}:{instance.main_port}"
        return [(of_syncer, socket)]
    of_app = f"app {instance.key.app}"
    return [(of_syncer, uid), (of_app, uid)]


def _awaited(plan: Plan, desired: Desired) -> list[_Add]:
    """Return the wanted instances that are unread, and so are not registered."""
    awaited: list[_Add] = []
    for blocked in plan.blocked:
        wanted = desired.wanted(blocked.key)
        if blocked.obstacle is Obstacle.UNREAD and wanted is not None:
            awaited.append((blocked.syncer, wanted.instance))
    return awaited


def _registered_everywhere(outcome: Outcome) -> bool:
    """Say whether the instance is registered, and callers of each Eureka server find it."""
    if outcome.lacking and outcome.status is InstanceStatus.UP:
        return False
    return outcome.status is not None


def _names(instance: Instance, syncer: SyncerRef | None) -> tuple[str, ...]:
    return (*_called(instance), f"syncer {syncer}")


def _called(instance: Instance) -> tuple[str, ...]:
    """Return the names by which callers know an instance."""
    vips = [f"vip {name}" for name in instance.vip_address.split(",") if name]
    return (f"app {instance.key.app}", *vips)


def _blocked(plan: Plan, desired: Desired, observed: Observed) -> list[_Add]:
    """Return the wanted UP instances that could not be tried."""
    tried = {register.key for register in plan.of(Register)}
    adds: list[_Add] = []
    for blocked in plan.blocked:
        wanted = desired.wanted(blocked.key)
        if wanted is None or blocked.key in tried:
            continue
        up = wanted.instance.status is InstanceStatus.UP
        if up and not _is_served(blocked, wanted.instance, observed):
            adds.append((blocked.syncer, wanted.instance))
    return adds


def _refused(desired: Desired, observed: Observed) -> frozenset[SyncerRef]:
    """Return the syncers without a grant of their Namespace that want an UP instance that is not
    registered."""
    refused = set()
    for ref, claim in desired.claims.items():
        if not isinstance(claim, NotServed) or claim.refused is None:
            continue
        for key, wanted in claim.refused.wanted.items():
            up = wanted.instance.status is InstanceStatus.UP
            if up and key not in observed.ours:
                refused.add(ref)
    return frozenset(refused)


def _is_served(blocked: Blocked, wanted: Instance, observed: Observed) -> bool:
    """Say whether the pod's own instance serves callers as ours would, or ours is registered as
    well."""
    other = observed.others.get(blocked.other) if blocked.other else None
    if blocked.obstacle is not Obstacle.DUPLICATE or other is None:
        return False
    if blocked.key in observed.ours:
        return True
    return lacks(other, wanted) is None
