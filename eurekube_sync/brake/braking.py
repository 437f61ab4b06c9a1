"""The rules of the brake in their order: which removals of a plan are held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

from eurekube_sync.brake.approval import approved_by
from eurekube_sync.brake.confirm import (
    begun_before,
    dead_apart,
    seen_before,
    to_confirm,
    unconfirmed,
)
from eurekube_sync.brake.holds import (
    Brake,
    BrakeLimits,
    Held,
    Hold,
    by_key,
    held_of,
    hold_back,
    not_held,
)
from eurekube_sync.brake.weighing import Scales, hold_for, too_much
from eurekube_sync.model.actions import Grounds, Register, Removal, Update, brings_up
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import Pods, SyncerRef
from eurekube_sync.model.ownership import pod_namespace_of, pod_uid_of
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Source, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted, one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.observe.kubernetes import pod_gone
from eurekube_sync.plan.value import Plan

_AT_ONCE = frozenset({Grounds.DUPLICATE, Grounds.REPLACED})
"""Grounds for removals that need no confirmation. DUPLICATE: callers use the pod's own instance.
REPLACED: callers would reach another pod."""


class Braked(Struct, frozen=True, kw_only=True):
    """The plan after the brake."""

    plan: Plan  # with a renewal in place of each held removal
    held: Held | None
    approved: frozenset[InstanceKey] = frozenset()  # the removals that `--approve` released
    confirmed: frozenset[InstanceKey] = frozenset()  # the removals that an earlier pass saw


def apply_brake(plan: Plan, observed: Observed, brake: Brake) -> Braked:
    """Return the plan with a renewal in place of each removal that has to wait. The rows are in the
    order of the tests, and the first that fits decides.

    | removal                                             | waits             | decided by             |
    |-----------------------------------------------------|-------------------|------------------------|
    | released by annotation                              | never             | `_unweighed`           |
    | of a dead pod that an earlier pass saw dead         | never             | `_seen_dead`           |
    | of an instance older than the CRD, without its      | for a person      | `_older_than_crd`      |
    | syncer, if the pod may live                         |                   |                        |
    | the same, if the pod is dead                        | for a second pass | `dead_apart`           |
    | of a pod that is registered under another key       | never             | `in_other_apps`        |
    | at an address that another pod has                  | never             | `hold_for`, `_AT_ONCE` |
    | if those without evidence are too many: of them,    | for a person      | `too_much`             |
    | those of pods that may live                         |                   |                        |
    | if those of dead pods alone are too many: those     | for a second pass | `dead_apart`           |
    | if several apps would lose their last ones, and no  | for a person      | `too_much`             |
    | person asked for it: those of pods that may live    |                   |                        |
    | the same of many apps, if a person asked for it     | for a person      | `too_much`             |
    | of a pod that registers itself                      | never             | `_AT_ONCE`             |
    | of the last ones of an app, without evidence: those | never             | `_seen_and_dead`       |
    | of dead pods that an earlier pass saw               |                   |                        |
    | the other last ones of an app, without evidence     | for a second pass | `_unexplained_last`    |
    | any other                                           | never             |                        |

    What a person approved is weighed like the rest, and then not held."""
    planned = plan.removals
    if not planned:
        return Braked(plan=plan, held=None)
    dead = dead_pods(planned, observed, brake.pods)
    seen_dead = _seen_dead(planned, dead, brake)
    unweighed = _unweighed(planned, seen_dead, brake)
    scales = _scales(plan, observed, dead, unweighed)
    without_syncer, weighed = _to_weigh(planned, scales)

    # First what waits for a person. Of that, a dead pod waits only for a second pass.
    holds = _older_than_crd(without_syncer)
    holds += _too_much_of_all_or_of_the_dead(scales, weighed, brake.limits)
    holds = dead_apart(holds, dead, brake)
    holds = [_saying_what_is_unknown(hold, observed, brake.pods) for hold in holds]
    # Then what no hold has yet, if its app would have nothing left.
    last = _unexplained_last(scales, not_held(weighed, holds))
    # Dead pods first: what their app loses later waits, so they are not the last.
    seen_and_dead = _seen_and_dead(last, dead, brake)
    last = [removal for removal in last if removal.key not in seen_and_dead]
    seen = seen_before(last, brake)
    holds += unconfirmed(last, seen, brake)

    # Only now, because a plan id may mean exactly the held removals.
    approved = _approved(planned, holds, brake)
    holds = [hold.without(approved) for hold in holds]
    # An approved removal is made now and awaits nothing; no hold has it any more.
    awaited = _for_a_second_pass(scales, planned, weighed, by_key(holds), observed, brake)
    held = held_of(holds, awaited)
    braked = hold_back(plan, held)
    confirmed = seen_dead | seen_and_dead | seen
    return Braked(plan=braked, held=held, approved=approved, confirmed=confirmed)


# --- What is counted, and what is weighed ---------------------------------------------------------


def dead_pods(
    removals: Iterable[Removal], observed: Observed, pods: Pods
) -> frozenset[InstanceKey]:
    """Return the removals whose pod is not in a complete list, or whose address and port another
    pod has. A terminating pod may still serve, and so may an endpoint without a pod, or with an
    unknown list."""
    dead = set()
    for removal in removals:
        key = removal.key
        proven = removal.grounds in (Grounds.REPLACED, Grounds.POD_GONE)
        if proven or pod_gone(observed.ours[key], pods):
            dead.add(key)
    return frozenset(dead)


def _seen_dead(
    planned: Iterable[Removal], dead: Collection[InstanceKey], brake: Brake
) -> frozenset[InstanceKey]:
    """Return the removals whose pods an earlier pass saw dead."""
    may_wait = []
    for removal in planned:
        # A removal never waits if another pod has its address.
        if removal.key in dead and removal.grounds is not Grounds.REPLACED:
            may_wait.append(removal)
    return seen_before(may_wait, brake, dead=True)


def _unweighed(
    planned: Iterable[Removal], seen_dead: frozenset[InstanceKey], brake: Brake
) -> frozenset[InstanceKey]:
    """Return the removals that are neither counted nor held: an earlier pass saw their pods dead,
    or a person released all of their syncer's by annotation."""
    freed = set()
    for removal in planned:
        if removal.syncer in brake.freed_by_annotation:
            freed.add(removal.key)
    return seen_dead | freed


def _scales(
    plan: Plan,
    observed: Observed,
    dead: frozenset[InstanceKey],
    unweighed: frozenset[InstanceKey],
) -> Scales:
    """Return the numbers against which the removals are weighed."""
    up = set()
    for key, instance in observed.ours.items():
        if instance.status is InstanceStatus.UP and key not in unweighed:
            up.add(key)
    gained: Counter[str] = Counter()
    for action in plan.changes:
        if brings_up(action):
            gained[action.key.app] += 1
    return Scales(
        gained=gained,
        up=frozenset(up),
        # UP in the list, and their uncached read failed: they count as lost.
        unread=frozenset(observed.unread) & up,
        unweighed=unweighed,
        in_other_app=in_other_apps(plan, observed, up),
        dead=dead,
    )


_PodAt: TypeAlias = tuple[SyncerRef | None, str, int, str]
"""A pod with its syncer: syncer, address, port, and the pod's UID."""


def in_other_apps(
    plan: Plan, observed: Observed, up: Collection[InstanceKey]
) -> frozenset[InstanceKey]:
    """Return the removals whose pod the same syncer registers at the same address and port under
    another key, which is nearly always that of another app. The address alone proves nothing,
    because several Services may share a host name."""
    removed: dict[InstanceKey, _PodAt | None] = {}
    losing = set()
    for removal in plan.removals:
        instance = observed.ours[removal.key].instance
        removed[removal.key] = _pod_at(removal.syncer, instance)
        losing.add(removal.syncer)

    served: set[_PodAt | None] = set()
    for action in plan.actions:
        if action.syncer not in losing:
            continue  # nearly always
        if isinstance(action, Register | Update) and brings_up(action):
            served.add(_pod_at(action.syncer, action.instance))
        elif action.key in up and action.key not in removed:
            instance = observed.ours[action.key].instance
            served.add(_pod_at(action.syncer, instance))

    in_other_app = set()
    for key, pod in removed.items():
        if pod is not None and pod in served:
            in_other_app.add(key)
    return frozenset(in_other_app)


def _pod_at(syncer: SyncerRef | None, instance: Instance) -> _PodAt | None:
    """Return the pod of an instance with its syncer, address and port; None if the mark names no
    pod."""
    uid = pod_uid_of(instance)
    if uid is None:
        return None
    return (syncer, instance.ip_addr, instance.main_port, uid)


def _to_weigh(planned: Iterable[Removal], scales: Scales) -> tuple[list[Removal], list[Removal]]:
    """Return the removals that `_older_than_crd` holds, and those that `too_much` and
    `_unexplained_last` weigh."""
    without_syncer: list[Removal] = []
    weighed: list[Removal] = []
    for removal in planned:
        if removal.key in scales.unweighed:
            continue
        if removal.grounds is Grounds.SWEPT:  # older than the CRD, and its syncer is missing
            without_syncer.append(removal)
        elif removal.key not in scales.in_other_app:
            weighed.append(removal)
    return without_syncer, weighed


# --- The holds ------------------------------------------------------------------------------------


def _older_than_crd(without_syncer: Sequence[Removal]) -> list[Hold]:
    """Hold all instances whose syncers may have been deleted with an earlier CRD."""
    if not without_syncer:
        return []
    first, *more = sorted({str(removal.syncer) for removal in without_syncer})
    whose = first
    with_it = "the syncer"
    if more:
        others = counted(len(more), "more syncer")
        whose = f"{first} and of {others}"
        with_it = "the syncers"
    instances = counted(len(without_syncer), "UP instance")
    are = one_or_more(len(without_syncer), "is", "are")
    why = (
        f"{instances} of {whose} {are} older than the CustomResourceDefinition (an "
        f"earlier CustomResourceDefinition may have been deleted, and {with_it} with it)"
    )
    return [hold_for(why, without_syncer, Reason.CRD_INSTALLED)]


def _too_much_of_all_or_of_the_dead(
    scales: Scales, weighed: Collection[Removal], limits: BrakeLimits
) -> list[Hold]:
    """Weigh all removals together, and hold those of living pods among them; then weigh those of
    dead pods alone, and hold them."""
    holds = []
    for hold in too_much(scales, weighed, limits):
        holds.append(hold.without(scales.dead))
    of_dead = _with_keys(weighed, scales.dead)
    holds += too_much(scales, of_dead, limits)
    return holds


def _saying_what_is_unknown(hold: Hold, observed: Observed, pods: Pods) -> Hold:
    """Add to the hold's sentence that the pods could not be read."""
    for removal in hold.removals:
        listed = _pods_beside(removal, observed, pods)
        if isinstance(listed, Unknown):
            unknown = f"it is unknown whether their pods still exist: {listed.message}"
            return replace(hold, why=f"{hold.why}; {unknown}")
    return hold


def _pods_beside(removal: Removal, observed: Observed, pods: Pods) -> Source[frozenset[str]] | None:
    """Return the pods of the namespace in which the removal's pod was; None if they were not read."""
    namespace = pod_namespace_of(observed.ours[removal.key])
    return pods.get(namespace or "")


def _unexplained_last(scales: Scales, removals: Collection[Removal]) -> list[Removal]:
    """Return the removals that a second pass has to confirm: without evidence, of apps that would
    lose their last instance."""
    emptied = scales.emptied(removals)
    last = []
    for removal in removals:
        explained = removal.grounds.positive or removal.grounds in _AT_ONCE
        if removal.key.app in emptied and not explained:
            last.append(removal)
    return last


def _seen_and_dead(
    last: Iterable[Removal], dead: Collection[InstanceKey], brake: Brake
) -> frozenset[InstanceKey]:
    """Return the removals that an earlier pass saw, and whose pods this pass finds dead. Two looks
    are enough for one app, whether the first was at the pod or only at its endpoint."""
    return seen_before(_with_keys(last, dead), brake)


def _with_keys(removals: Iterable[Removal], keys: Collection[InstanceKey]) -> list[Removal]:
    """Return the removals with these keys."""
    return [removal for removal in removals if removal.key in keys]


# --- What ends a hold -----------------------------------------------------------------------------


def _approved(
    planned: Collection[Removal], holds: Iterable[Hold], brake: Brake
) -> frozenset[InstanceKey]:
    """Return the removals that a person approved, by a plan id now or earlier in this pass."""
    # A removal that two rules hold counts once, as in the plan id that is reported.
    held = by_key(holds).values()
    approved = set(approved_by(brake.approval, planned, held))
    for removal in planned:
        if removal.key in brake.approved_before:
            approved.add(removal.key)
    return frozenset(approved)


def _for_a_second_pass(
    scales: Scales,
    planned: Iterable[Removal],
    weighed: Collection[Removal],
    held: Collection[InstanceKey],
    observed: Observed,
    brake: Brake,
) -> list[Hold]:
    """Return what the next pass may confirm of all that is held, even if a larger hold has it in
    this pass."""
    last = _with_keys(_unexplained_last(scales, weighed), held)
    terminating = _with_keys(_last_terminating(scales, weighed), held)
    # Of `planned`: a dead pod older than the CRD is not weighed, but a second pass may confirm it.
    dead = _dead_by_now(scales, _with_keys(planned, held), observed, brake)
    # In this order, because the syncer's status stores only the first for the next process.
    return [
        *to_confirm(last, brake),
        *to_confirm(terminating, brake),
        *to_confirm(dead, brake, dead=True),
    ]


def _last_terminating(scales: Scales, weighed: Collection[Removal]) -> list[Removal]:
    """Return the terminating endpoints of apps that would lose their last instance. If one is
    missing in the next pass, only this pass knows that it was terminating. A deleted syncer proves
    less, because its pods may serve."""
    emptied = scales.emptied(weighed)
    terminating = []
    for removal in weighed:
        if removal.grounds is Grounds.TERMINATING and removal.key.app in emptied:
            terminating.append(removal)
    return terminating


def _dead_by_now(
    scales: Scales, removals: Iterable[Removal], observed: Observed, brake: Brake
) -> list[Removal]:
    """Return the removals whose pods are dead, or were dead in an earlier pass and could not be
    read now: those keep the time of that."""
    dead = []
    not_looked_at = []
    for removal in removals:
        if removal.key in scales.dead:
            dead.append(removal)
            continue
        listed = _pods_beside(removal, observed, brake.pods)
        if not isinstance(listed, Complete):
            not_looked_at.append(removal)
    dead_before = begun_before(not_looked_at, brake, dead=True)
    return dead + _with_keys(not_looked_at, dead_before)
