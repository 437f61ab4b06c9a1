"""Syncers that left this installation's scope, by a label or their class, and came into no other's. Pure.

Nobody can know the other installations' scopes. But whoever serves a syncer renews its instances, and has put its class
into them. What is without such a sign of life is renewed here, rarely enough that another installation's sign is seen,
and is reported to a person.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eurekube_sync.desired.claims import every
from eurekube_sync.desired.conduct import is_gone
from eurekube_sync.desired.spec import class_of
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import EventRecord, Pod, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import CLASS, pod_namespace_of, pod_uid_of, syncer_of
from eurekube_sync.model.sources import Complete, Listed
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.observe.other_owner import at_work_elsewhere

_SILENT = 150.0
"""Seconds: five renewals. A restart of the other installation takes less, and leases are four times as long. What
another owner would serve seems left over before (see `other_owner`): so it may come to serve it."""
AGAIN = 600.0
"""Seconds without a sight of it after which a process tells a second time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unserved:
    """One syncer, and what is registered of it."""

    syncer: SyncerObject
    instances: tuple[ObservedInstance, ...]

    @property
    def message(self) -> str:
        """What a person should see to."""
        number = counted(len(self.instances), "instance")
        return (
            "no installation serves it. Its labels or class are not in this scope, and nobody else renews its "
            f"{number}. Until an installation serves it, its instances are renewed here, and do not follow its pods"
        )

    @property
    def event(self) -> EventRecord:
        """The same for whoever looks at the syncer."""
        ref, uid = self.syncer.ref, self.syncer.uid
        return EventRecord(
            syncer=ref, uid=uid, warning=True, reason="NoInstallation", message=self.message, key="NoInstallation"
        )


def unserved(observed: Observed, syncers: Listed[SyncerObject]) -> tuple[Unserved, ...]:
    """Those whose names are in scope, and whose labels or class are not. What a person deletes, and what another owner
    serves now, is left to expire."""
    by_name = replace(observed.scope, elsewhere=frozenset())
    left = {
        one.ref: one
        for one in every(syncers)
        if one.ref in observed.scope.elsewhere and by_name.covers(one.ref) and one.deleted is None
    }
    found: dict[SyncerRef, list[ObservedInstance]] = {}
    for instance in observed.others.values() if left else ():
        ref = syncer_of(instance)
        ours = ref in left and observed.ownership.holds(instance) and not is_gone(instance)
        if ref is not None and ours and _nobodys(instance, left[ref], observed):
            found.setdefault(ref, []).append(instance)
    taken = at_work_elsewhere(observed) if found else frozenset()
    return tuple(
        Unserved(syncer=left[ref], instances=tuple(sorted(some, key=lambda one: one.key)))
        for ref, some in sorted(found.items())
        if ref not in taken
    )


def _nobodys(instance: ObservedInstance, syncer: SyncerObject, observed: Observed) -> bool:
    scope = observed.scope
    if not scope.selector and instance.metadata.get(CLASS) == scope.syncer_class != class_of(syncer):
        return True  # renewed by its mark, which whoever serves it now would have changed
    return observed.silent(instance) > _SILENT


def living(left: Iterable[Unserved], pods: Listed[Pod]) -> tuple[Unserved, ...]:
    """The same without instances whose pod is gone from a complete list: these expire."""
    listed: dict[str, frozenset[str] | None] = {}

    def known(namespace: str) -> frozenset[str] | None:
        if namespace not in listed:
            source = pods.of(namespace)
            listed[namespace] = frozenset(pod.uid for pod in source.data) if isinstance(source, Complete) else None
        return listed[namespace]

    def lives(instance: ObservedInstance) -> bool:
        uid, namespace = pod_uid_of(instance), pod_namespace_of(instance)
        there = known(namespace) if namespace else None
        return uid is None or there is None or uid in there

    return tuple(replace(one, instances=tuple(filter(lives, one.instances))) for one in left)
