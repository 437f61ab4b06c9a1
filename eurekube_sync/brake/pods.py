"""Which of the instances that go are dead: nobody loses what no pod serves."""

from __future__ import annotations

from collections.abc import Iterable

from eurekube_sync.brake.holds import Held, HoldReason
from eurekube_sync.model.actions import Grounds, Removal
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import Pods
from eurekube_sync.model.ownership import pod_namespace_of, pod_uid_of
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.observe.eureka import Observed


def to_look_up(held: Held | None) -> tuple[Removal, ...]:
    """What is held unless its pod is dead. An app that waits for its confirmation waits for it either way."""
    holds = held.holds if held else ()
    return tuple(one for hold in holds if hold.reason is not HoldReason.AWAITING_CONFIRMATION for one in hold.removals)


def dead(removals: Iterable[Removal], observed: Observed, pods: Pods) -> frozenset[InstanceKey]:
    """Those whose pod is not in a complete list, or whose address and port are another pod's. A pod that terminates may
    still serve; so may whatever has no pod, and one whose list failed."""
    return frozenset(
        one.key
        for one in removals
        if one.grounds in (Grounds.REPLACED, Grounds.POD_GONE) or _is_gone(one, observed, pods)
    )


def _is_gone(one: Removal, observed: Observed, pods: Pods) -> bool:
    instance = observed.ours[one.key]
    uid, listed = pod_uid_of(instance), pods.get(pod_namespace_of(instance) or "")
    return uid is not None and isinstance(listed, Complete) and uid not in listed.data


def unlisted(removals: Iterable[Removal], observed: Observed, pods: Pods) -> str:
    """Why it is not known whether the pods of these live; empty where it is known, or nobody looked."""
    for one in removals:
        listed = pods.get(pod_namespace_of(observed.ours[one.key]) or "")
        if isinstance(listed, Unknown):
            return listed.message
    return ""
