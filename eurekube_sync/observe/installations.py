"""Other installations, as far as Eureka's list shows them. Pure.

Another installation of this cluster, with another owner name, may serve our syncers, for example
after a typo in `--owner`. Both decide from the same list by the same rule which one goes on, so
never are both stopped. The one that has registered nothing there is stopped; if both have, the
later one. An installation with any instance that the other has not registered is never stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote

from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.conduct import is_gone
from eurekube_sync.desired.rivals import Socket, sockets_of
from eurekube_sync.model.eureka import LIST_LAG, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLASS, CLUSTER, OWNER, Ownership, syncer_of
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.eureka import Observed, Unread

_LATELY = 90.0
"""Seconds: three renewals. An instance that was not renewed for so long may belong to an owner that
has ended. To wait until it expires would leave callers without instances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherOwner:
    """Another owner that serves syncers of our scope."""

    name: str
    ours: str  # our own owner's name
    registered: (
        int  # how many of its instances are renewed at an address and port that ours would have
    )
    twice: int  # how many of ours are registered at the same addresses and ports
    stops_us: bool  # whether this installation may only renew
    former: bool = (
        False  # its name is that of `--former-owner`, or its cluster that of `--former-cluster`
    )

    @property
    def sentence(self) -> str:
        """The problem, and what a person should do."""
        if self.former:
            return (
                f"owner clash: {self.name} is still at work: it renewed "
                f"{counted(self.registered, 'instance')} in the "
                f"last {_LATELY:.0f} s. Stop it, and run again {_LATELY:.0f} s later. This pass "
                "is refused: our "
                "instances were renewed, and nothing else was done."
            )
        if self.stops_us:
            done = (
                "our instances were renewed, and nothing else was done."
                if self.twice
                else "nothing was done."
            )
            twice = (
                f"{self.twice} of the instances {_are(self.twice)} registered twice. "
                if self.twice
                else ""
            )
            return f"owner clash: {self.question} {twice}This pass is refused: {done}"
        return (
            f"owner clash: {self._registered} at addresses that owner {self.ours} serves. Stop "
            "one of the two "
            "installations, then cancel its instances with eurekube-sync purge"
        )

    @property
    def question(self) -> str:
        """The question whether the owner's name is right, with the reason and the way out."""
        return (
            f"{self._registered} at addresses that this installation would register under owner "
            f"{self.ours}. "
            f"Is --owner {self.ours} right? "
            f"To change the name: eurekube-sync run --owner {self.ours} --former-owner "
            f"{quote(self.name)}."
        )

    @property
    def _registered(self) -> str:
        instances = (
            f"{counted(self.registered, 'instance')} of this cluster {_are(self.registered)}"
        )
        return f"{instances} registered under owner {self.name},"


def other_owners(observed: Observed, desired: Desired, now: float) -> tuple[OtherOwner, ...]:
    """Return the owners that renew instances at addresses of our syncers' instances. `now` in Unix
    seconds."""
    theirs: dict[str, list[ObservedInstance]] = {}
    for one in _of_others(observed):
        moved = (
            one.metadata.get(CLASS) != observed.scope.syncer_class
        )  # its syncer came from another class
        # If nothing in the list is renewed any more, `silent` is small although the owner has
        # ended. A list of a quiet registry looks the same, until it is older than any list can be.
        unrenewed = now - one.renewed
        ended = bool(one.last_renewal) and unrenewed > max(
            one.instance.lease.duration, LIST_LAG + _LATELY
        )
        if not (moved or ended or is_gone(one)) and observed.silent(one) <= _LATELY:
            theirs.setdefault(one.metadata[OWNER], []).append(one)
    wanted: dict[Socket, SyncerRef] = {}
    for key, ref in desired.wanted_by.items() if theirs else ():
        ours = desired.wanted(key)
        wanted.update(dict.fromkeys(sockets_of(ours.instance) if ours else (), ref))
    found = []
    for name, instances in sorted(theirs.items()):
        there = [
            one
            for one in instances
            if any(wanted.get(s) == syncer_of(one) for s in sockets_of(one.instance))
        ]
        if not there:
            continue
        taken = {s for one in there for s in sockets_of(one.instance)}
        mine = [
            sockets_of(one.instance)
            for key, one in observed.ours.items()
            if key in desired.wanted_by
        ]
        beside = sum(not taken.isdisjoint(sockets) for sockets in mine)
        stops_us = beside == len(mine) and (not beside or _came_first(name, observed))
        owner = observed.ownership.owner
        found.append(
            OtherOwner(
                name=name, ours=owner, registered=len(there), twice=beside, stops_us=stops_us
            )
        )
    return tuple(found)


def _came_first(name: str, observed: Observed) -> bool:
    """Say whether the oldest instance at a shared address is the other owner's. Marks and
    registration times are the same for both installations, on every Eureka server, and after a
    restart of Eureka."""
    first: dict[str, dict[Socket, int]] = {name: {}, observed.ownership.owner: {}}
    for one in (*observed.ours.values(), *observed.others.values()):
        owner = one.metadata.get(OWNER, "")
        if owner in first and one.metadata.get(CLUSTER) == observed.ownership.cluster:
            first[owner].update(dict.fromkeys(sockets_of(one.instance), one.last_dirty_timestamp))
    its, ours = first[name], first[observed.ownership.owner]
    twice = its.keys() & ours.keys()
    return (min(its[s] for s in twice), name) < (
        min(ours[s] for s in twice),
        observed.ownership.owner,
    )


def _of_others(observed: Observed) -> Iterator[ObservedInstance]:
    """Give the instances that other owners registered from this cluster."""
    owner, cluster = observed.ownership.owner, observed.ownership.cluster
    for one in observed.others.values():
        if one.metadata.get(CLUSTER) == cluster and one.metadata.get(OWNER, owner) != owner:
            yield one


def waiting_to_move(observed: Observed, desired: Desired) -> Sequence[ObservedInstance]:
    """Return the instances with a former mark that a first pass would move; none once the move has
    begun.

    From then on, this installation renews what it does not move yet, and its renewals look like
    those of the former one. A former installation that is started again finds our instances at its
    addresses, and refuses itself."""
    former: list[ObservedInstance] = []
    for instance in observed.ours.values():
        if not observed.ownership.is_former(instance):
            return []
        former.append(instance)
    waiting: list[ObservedInstance] = []
    for instance in former:
        claim = desired.server_of(observed.ownership.key_of(instance))
        put_out = instance.instance.override is not InstanceStatus.UNKNOWN
        if claim is not None and not claim.conduct.suspend and not put_out:
            waiting.append(instance)
    return waiting


def still_renewed(
    sample: Sequence[ObservedInstance],
    readings: Mapping[InstanceKey, ObservedInstance | Unread | None],
    ownership: Ownership,
    now: float,
) -> tuple[OtherOwner, ...]:
    """Return the former installations that renewed an instance of the sample lately, by uncached
    readings. An instance that could not be read may have been renewed. `now` in Unix seconds."""
    renewed: Counter[str] = Counter()
    for instance in sample:
        reading = readings[instance.key]
        gone = reading is None or (
            not isinstance(reading, Unread) and not ownership.is_former(reading)
        )
        silent = isinstance(reading, ObservedInstance) and now - reading.renewed > _LATELY
        if not gone and not silent:
            renewed[_installation(instance, ownership)] += 1
    return tuple(
        OtherOwner(
            name=name, ours=ownership.owner, registered=number, twice=0, stops_us=True, former=True
        )
        for name, number in sorted(renewed.items())
    )


def _installation(instance: ObservedInstance, ownership: Ownership) -> str:
    owner, cluster = instance.metadata[OWNER], instance.metadata[CLUSTER]
    return (
        f"owner {owner}" if cluster == ownership.cluster else f"owner {owner} of cluster {cluster}"
    )


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
    """Return a warning that `to_read` may be wrong, if the owner has no instance in the cluster,
    with those that exist."""
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
        there = ", ".join(
            f"{name} ({counted(number, 'instance')})" for name, number in sorted(owners.items())
        )
        parts.append(f"the instances of {where} belong to {there}")
    for uid, number in sorted(clusters.items()):
        parts.append(f"owner {ownership.owner} has {counted(number, 'instance')} of cluster {uid}")
    return f"{'; '.join(parts)}. Is {to_read} right?"


def _are(number: int) -> str:
    return one_or_more(number, "is", "are")
