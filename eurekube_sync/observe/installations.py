"""Other installations, as far as Eureka's list shows them. Pure.

Another owner name in this very cluster, as after a typo in `--owner`, may serve our syncers. Both decide on one list by
one rule which of the two may go on, so never are both stopped. Who has registered nothing there is stopped. Where both
have, it is the one that came later. An installation that has anything which the other has not is never stopped.

A syncer that left this installation's scope, by a label or its class, may have come into no other's. Nobody can know
the other scopes. But whoever serves a syncer renews its instances, and has put its class into them. What is without
such a sign of life is renewed here, rarely enough that another's sign is seen, and is reported to a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from shlex import quote

from eurekube_sync.desired.claims import Desired, every
from eurekube_sync.desired.conduct import is_gone
from eurekube_sync.desired.rivals import Socket, sockets_of
from eurekube_sync.desired.spec import class_of
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import EventRecord, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import CLASS, CLUSTER, OWNER, Ownership, pod_namespace_of, pod_uid_of, syncer_of
from eurekube_sync.model.sources import Complete, Listed
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.eureka import Observed

_LATELY = 90.0
"""Seconds: three renewals. What was not renewed for so long may be left over from an owner that works no more. To wait
for its end would be a gap for callers."""
_SILENT = 150.0
"""Seconds: five renewals. A restart of the other installation takes less, and leases are four times as long. What
another owner would serve seems left over before: so it may come to serve it."""
AGAIN = 600.0  # seconds without a sight of a syncer that nobody serves after which a process tells a second time


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherOwner:
    """An owner that serves syncers which this installation is to serve."""

    name: str
    ours: str  # our own owner's name
    registered: int  # how many of its instances stand where ours would, and are renewed
    twice: int  # how many of ours stand beside them
    stops_us: bool  # whether this installation may do nothing but renew

    @property
    def sentence(self) -> str:
        """What a person should see to."""
        if self.stops_us:
            done = "our instances were renewed, and nothing else was done." if self.twice else "nothing was done."
            twice = f"{self.twice} of the instances {_are(self.twice)} registered twice. " if self.twice else ""
            return f"owner clash: {self.question} {twice}This pass is refused: {done}"
        return (
            f"owner clash: {self._stand} at addresses that owner {self.ours} serves. Stop one of the two "
            "installations, then cancel its instances with eurekube-sync owner purge"
        )

    @property
    def question(self) -> str:
        """Whether the owner's name is right, with what speaks against it and the way out."""
        return (
            f"{self._stand} at addresses that this installation would register under owner {self.ours}. "
            f"Is --owner {self.ours} right? "
            f"To change the name: eurekube-sync owner rename {quote(self.name)} {self.ours}."
        )

    @property
    def _stand(self) -> str:
        instances = f"{counted(self.registered, 'instance')} of this cluster {_are(self.registered)}"
        return f"{instances} registered under owner {self.name},"


def other_owners(observed: Observed, desired: Desired, now: float) -> tuple[OtherOwner, ...]:
    """The owners whose instances are renewed where syncers of ours would have theirs. `now` in Unix seconds."""
    theirs: dict[str, list[ObservedInstance]] = {}
    for one in _of_others(observed):
        moved = one.metadata.get(CLASS) != observed.scope.syncer_class  # to us, from another installation's class
        # Where nothing else is renewed either, the list alone does not tell that its owner has ended.
        ended = bool(one.last_renewal) and now - one.renewed > one.instance.lease.duration
        if not (moved or ended or is_gone(one)) and observed.silent(one) <= _LATELY:
            theirs.setdefault(one.metadata[OWNER], []).append(one)
    wanted: dict[Socket, SyncerRef] = {}
    for key, ref in desired.wanted_by.items() if theirs else ():
        ours = desired.wanted(key)
        wanted.update(dict.fromkeys(sockets_of(ours.instance) if ours else (), ref))
    found = []
    for name, instances in sorted(theirs.items()):
        there = [one for one in instances if any(wanted.get(s) == syncer_of(one) for s in sockets_of(one.instance))]
        if not there:
            continue
        taken = {s for one in there for s in sockets_of(one.instance)}
        mine = [sockets_of(one.instance) for key, one in observed.ours.items() if key in desired.wanted_by]
        beside = sum(not taken.isdisjoint(sockets) for sockets in mine)
        stops_us = beside == len(mine) and (not beside or _came_first(name, observed))
        owner = observed.ownership.owner
        found.append(OtherOwner(name=name, ours=owner, registered=len(there), twice=beside, stops_us=stops_us))
    return tuple(found)


def _came_first(name: str, observed: Observed) -> bool:
    """Whether the oldest of what is registered twice is the other's. By the marks and times of the whole list, which
    are the same for both installations, whatever their scopes are, on every peer, and after a restart of Eureka."""
    first: dict[str, dict[Socket, int]] = {name: {}, observed.ownership.owner: {}}
    for one in (*observed.ours.values(), *observed.others.values()):
        owner = one.metadata.get(OWNER, "")
        if owner in first and one.metadata.get(CLUSTER) == observed.ownership.cluster:
            first[owner].update(dict.fromkeys(sockets_of(one.instance), one.last_dirty_timestamp))
    its, ours = first[name], first[observed.ownership.owner]
    twice = its.keys() & ours.keys()
    return (min(its[s] for s in twice), name) < (min(ours[s] for s in twice), observed.ownership.owner)


def _of_others(observed: Observed) -> Iterator[ObservedInstance]:
    """What other owners have in this cluster."""
    owner, cluster = observed.ownership.owner, observed.ownership.cluster
    for one in observed.others.values():
        if one.metadata.get(CLUSTER) == cluster and one.metadata.get(OWNER, owner) != owner:
            yield one


def served_by_others(observed: Observed) -> frozenset[SyncerRef]:
    """The syncers that instances of another owner in this cluster name, whoever renews these."""
    return frozenset(syncer for one in _of_others(observed) if (syncer := syncer_of(one)))


def nothing_of(
    ownership: Ownership,
    registered: Iterable[ObservedInstance],
    *,
    where: str = "this cluster",
    to_read: str = "--owner",
) -> str | None:
    """Where the owner has no instance in the cluster: that its name, or what else is `to_read`, may be wrong, and what
    there is instead. None where it has one: then its name is right."""
    owners, clusters = Counter[str](), Counter[str]()
    for one in registered:
        owner, cluster = one.metadata.get(OWNER, ""), one.metadata.get(CLUSTER, "")
        if owner and cluster == ownership.cluster:
            owners[owner] += 1
        elif cluster and owner == ownership.owner:
            clusters[cluster] += 1
    if ownership.owner in owners:
        return None
    parts = [f"no instance of owner {ownership.owner} in {where}"]
    if owners:
        there = ", ".join(f"{name} ({counted(number, 'instance')})" for name, number in sorted(owners.items()))
        parts.append(f"the instances of {where} belong to {there}")
    for uid, number in sorted(clusters.items()):
        parts.append(f"owner {ownership.owner} has {counted(number, 'instance')} of cluster {uid}")
    return f"{'; '.join(parts)}. Is {to_read} right?"


def _are(number: int) -> str:
    return one_or_more(number, "is", "are")


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
        ref, uid, reason = self.syncer.ref, self.syncer.uid, "NoInstallation"
        return EventRecord(syncer=ref, uid=uid, warning=True, reason=reason, message=self.message, key=reason)


def unserved(observed: Observed, syncers: Listed[SyncerObject]) -> tuple[Unserved, ...]:
    """Those whose names are in scope, and whose labels or class are not. What a person deletes, and what another owner
    serves now, is left to expire."""
    scope, by_name = observed.scope, replace(observed.scope, elsewhere=frozenset())
    left = {
        one.ref: one
        for one in every(syncers)
        if one.ref in scope.elsewhere and by_name.covers(one.ref) and one.deleted is None
    }
    found: dict[SyncerRef, list[ObservedInstance]] = {}
    for instance in observed.others.values() if left else ():
        ref = syncer_of(instance)
        if ref is None or ref not in left or not observed.ownership.holds(instance) or is_gone(instance):
            continue
        mark = instance.metadata.get(CLASS)
        # It is renewed by this mark, which whoever serves it now would have changed.
        by_mark = not scope.selector and mark == scope.syncer_class != class_of(left[ref])
        if by_mark or observed.silent(instance) > _SILENT:
            found.setdefault(ref, []).append(instance)
    at_work = (one for one in _of_others(observed) if observed.silent(one) <= _LATELY) if found else ()
    taken = {syncer_of(one) for one in at_work}
    return tuple(
        Unserved(syncer=left[ref], instances=tuple(sorted(some, key=lambda one: one.key)))
        for ref, some in sorted(found.items())
        if ref not in taken
    )


def living(left: Iterable[Unserved], pods: Mapping[str, Complete[frozenset[str]]]) -> tuple[Unserved, ...]:
    """The same without instances whose pod is gone from a complete list: these expire."""

    def lives(instance: ObservedInstance) -> bool:
        uid, there = pod_uid_of(instance), pods.get(pod_namespace_of(instance) or "")
        return uid is None or there is None or uid in there.data

    return tuple(replace(one, instances=tuple(filter(lives, one.instances))) for one in left)
