"""Which pods go under one app's name and are served under another: nobody loses them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

from eurekube_sync.model.actions import Register, Removal, Update, brings_up
from eurekube_sync.model.eureka import Instance, InstanceKey
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import pod_uid_of
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan import Plan

_PodAt: TypeAlias = tuple[SyncerRef | None, str, int, str]


def moved(plan: Plan, observed: Observed, registered: Collection[InstanceKey]) -> frozenset[InstanceKey]:
    """The removals whose pod the same syncer still serves, or will, at the same address and port under another app.
    The address alone would tell nothing: several Services may be registered behind one host name."""
    going = {one.key: _pod_at(one.syncer, observed.ours[one.key].instance) for one in plan.removals}
    losing = {one.syncer for one in plan.removals}
    served: set[_PodAt | None] = set()
    for action in (one for one in plan.actions if one.syncer in losing):
        if isinstance(action, Register | Update) and brings_up(action):
            served.add(_pod_at(action.syncer, action.instance))
        elif action.key in registered and action.key not in going:
            served.add(_pod_at(action.syncer, observed.ours[action.key].instance))
    served.discard(None)
    return frozenset(key for key, pod in going.items() if pod in served)


def renamed(removals: Iterable[Removal], plan: Plan) -> bool:
    """Whether every syncer that loses something gains something under another app: it changed its name."""
    losing = {one.syncer for one in removals}
    gaining = {action.syncer for action in plan.actions if brings_up(action)}
    return losing <= gaining


def _pod_at(syncer: SyncerRef | None, instance: Instance) -> _PodAt | None:
    """None where the mark names no pod."""
    uid = pod_uid_of(instance)
    return None if uid is None else (syncer, instance.ip_addr, instance.main_port, uid)
