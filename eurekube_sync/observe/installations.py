"""Other installations, as far as Eureka's list shows them. Pure.

Another installation of this cluster, with another owner name, may serve our syncers, for example after a typo in
`--owner`. Both decide from the same list by the same rule which one goes on, so never are both stopped. The one that
has registered nothing there is stopped; if both have, the later one. An installation with any instance that the other
has not registered is never stopped.

A syncer that left our scope, by a label or its class, may be in no other scope. We do not know the other scopes. But an
installation that serves a syncer renews its instances, and writes its own class into them. Instances without such a
sign are renewed here, rarely enough that another installation's renewals would be seen, and are reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from shlex import quote

from eurekube_sync.desired.claims import Desired, every
from eurekube_sync.desired.conduct import is_gone
from eurekube_sync.desired.rivals import Socket, sockets_of
from eurekube_sync.desired.spec import class_of
from eurekube_sync.model.eureka import LIST_LAG, ObservedInstance
from eurekube_sync.model.kubernetes import EventRecord, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import CLASS, CLUSTER, OWNER, Ownership, syncer_of
from eurekube_sync.model.sources import Complete, Listed
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.observe.kubernetes import pod_gone

_LATELY = 90.0
"""Seconds: three renewals. An instance that was not renewed for so long may belong to an owner that has ended. To wait
until it expires would leave callers without instances."""
_SILENT = 150.0
"""Seconds: five renewals. A restart of another installation takes less, and leases are four times as long. It is more
than `_LATELY`, so another owner can begin to serve a syncer before we call it unserved."""
AGAIN = 600.0  # seconds; after this time without finding a syncer unserved, a process reports it once more


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherOwner:
    """Another owner that serves syncers of our scope."""

    name: str
    ours: str  # our own owner's name
    registered: int  # how many of its instances are renewed at an address and port that ours would have
    twice: int  # how many of ours are registered at the same addresses and ports
    stops_us: bool  # whether this installation may only renew

    @property
    def sentence(self) -> str:
        """The problem, and what a person should do."""
        if self.stops_us:
            done = "our instances were renewed, and nothing else was done." if self.twice else "nothing was done."
            twice = f"{self.twice} of the instances {_are(self.twice)} registered twice. " if self.twice else ""
            return f"owner clash: {self.question} {twice}This pass is refused: {done}"
        return (
            f"owner clash: {self._registered} at addresses that owner {self.ours} serves. Stop one of the two "
            "installations, then cancel its instances with eurekube-sync owner purge"
        )

    @property
    def question(self) -> str:
        """The question whether the owner's name is right, with the reason and the way out."""
        return (
            f"{self._registered} at addresses that this installation would register under owner {self.ours}. "
            f"Is --owner {self.ours} right? "
            f"To change the name: eurekube-sync owner rename {quote(self.name)} {self.ours}."
        )

    @property
    def _registered(self) -> str:
        instances = f"{counted(self.registered, 'instance')} of this cluster {_are(self.registered)}"
        return f"{instances} registered under owner {self.name},"


def other_owners(observed: Observed, desired: Desired, now: float) -> tuple[OtherOwner, ...]:
    """Return the owners that renew instances at addresses of our syncers' instances. `now` in Unix seconds."""
    theirs: dict[str, list[ObservedInstance]] = {}
    for one in _of_others(observed):
        moved = one.metadata.get(CLASS) != observed.scope.syncer_class  # its syncer came from another class
        # If nothing in the list is renewed any more, `silent` is small although the owner has ended. A list of a quiet
        # registry looks the same, until it is older than any list can be.
        unrenewed = now - one.renewed
        ended = bool(one.last_renewal) and unrenewed > max(one.instance.lease.duration, LIST_LAG + _LATELY)
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
    """Say whether the oldest instance at a shared address is the other owner's. Marks and registration times are the
    same for both installations, on every Eureka server, and after a restart of Eureka."""
    first: dict[str, dict[Socket, int]] = {name: {}, observed.ownership.owner: {}}
    for one in (*observed.ours.values(), *observed.others.values()):
        owner = one.metadata.get(OWNER, "")
        if owner in first and one.metadata.get(CLUSTER) == observed.ownership.cluster:
            first[owner].update(dict.fromkeys(sockets_of(one.instance), one.last_dirty_timestamp))
    its, ours = first[name], first[observed.ownership.owner]
    twice = its.keys() & ours.keys()
    return (min(its[s] for s in twice), name) < (min(ours[s] for s in twice), observed.ownership.owner)


def _of_others(observed: Observed) -> Iterator[ObservedInstance]:
    """Give the instances that other owners registered from this cluster."""
    owner, cluster = observed.ownership.owner, observed.ownership.cluster
    for one in observed.others.values():
        if one.metadata.get(CLUSTER) == cluster and one.metadata.get(OWNER, owner) != owner:
            yield one


def served_by_others(observed: Observed) -> frozenset[SyncerRef]:
    """Return the syncers of this cluster that have instances of another owner, renewed or not."""
    return frozenset(syncer for one in _of_others(observed) if (syncer := syncer_of(one)))


def nothing_of(
    ownership: Ownership,
    registered: Iterable[ObservedInstance],
    *,
    where: str = "this cluster",
    to_read: str = "--owner",
) -> str | None:
    """Return a warning that `to_read` may be wrong, if the owner has no instance in the cluster, with those that
    exist."""
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
    """A syncer that no installation serves, and its instances."""

    syncer: SyncerObject
    instances: tuple[ObservedInstance, ...]

    @property
    def message(self) -> str:
        """The problem, for a person."""
        number = counted(len(self.instances), "instance")
        return (
            "no installation serves it. Its labels or class are not in this scope, and nobody else renews its "
            f"{number}. Until an installation serves it, its instances are renewed here, and do not follow its pods"
        )

    @property
    def event(self) -> EventRecord:
        """An event with the same message."""
        ref, uid, reason = self.syncer.ref, self.syncer.uid, "NoInstallation"
        return EventRecord(syncer=ref, uid=uid, warning=True, reason=reason, message=self.message, key=reason)


def unserved(observed: Observed, syncers: Listed[SyncerObject]) -> tuple[Unserved, ...]:
    """Return the syncers whose names are in scope and whose labels or class are not, and that nobody else serves. The
    instances of deleted syncers, and of those that another owner serves now, are left to expire."""
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
        # `renew_ours` renews an instance with our class, and an installation that serves it would change the class.
        by_mark = not scope.selector and instance.metadata.get(CLASS) == scope.syncer_class != class_of(left[ref])
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
    """Return the syncers without the instances whose pod is gone: those are left to expire."""
    return tuple(
        replace(one, instances=tuple(each for each in one.instances if pod_gone(each, pods) is None)) for one in left
    )
