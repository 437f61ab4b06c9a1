"""Another owner name in this very cluster, as after a typo in `--owner`: one that serves our syncers, and which of the
two installations may go on; and the names that there are, where ours has nothing. Pure.

Both look at one list by one rule, so never are both stopped. Who has registered nothing there is stopped. Where both
have, as when one of them began while Eureka could not be read, it is the one that came later. An installation that has
anything which the other has not is at work, and never stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from shlex import quote

from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.conduct import is_gone
from eurekube_sync.desired.rivals import sockets_of
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLASS, CLUSTER, OWNER, Ownership, syncer_of
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.eureka import Observed

_LATELY = 90.0
"""Seconds: three renewals. What was not renewed for so long may be left over from an owner that works no more. To wait
for its end would be a gap for callers."""

_Socket = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherOwner:
    """An owner that serves syncers which this installation is to serve."""

    name: str
    ours: str
    """Our own owner's name."""
    registered: int
    """How many of its instances stand where ours would, and are renewed."""
    twice: int
    """How many of ours stand beside them."""
    stops_us: bool
    """Whether this installation may do nothing but renew."""

    @property
    def sentence(self) -> str:
        """What a person should see to."""
        if self.stops_us:
            done = "our instances were renewed, and nothing else was done." if self.twice else "nothing was done."
            twice = f"{self.twice} of them {_are(self.twice)} registered twice. " if self.twice else ""
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
        number = f"{counted(self.registered, 'instance')} of this cluster {_are(self.registered)}"
        return f"{number} registered under owner {self.name},"


def other_owners(observed: Observed, desired: Desired, now: float) -> tuple[OtherOwner, ...]:
    """The owners whose instances stand, and are renewed, where `desired` syncers of ours would have theirs. `now` in
    Unix seconds."""
    theirs = _by_owner(_at_work(observed, now))
    wanted = {s: ref for key, ref in desired.wanted_by.items() for s in _wanted(key, desired)} if theirs else {}
    found = []
    for name, instances in sorted(theirs.items()):
        there = [one for one in instances if any(wanted.get(s) == syncer_of(one) for s in _sockets(one))]
        if there:
            found.append(_judged(name, there, observed, desired))
    return tuple(found)


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
        there = ", ".join(f"{name} ({number})" for name, number in sorted(owners.items()))
        parts.append(f"the {one_or_more(len(owners), 'owner', 'owners')} of {where} {_are(len(owners))}: {there}")
    for uid, number in sorted(clusters.items()):
        parts.append(f"owner {ownership.owner} has {counted(number, 'instance')} of cluster {uid}")
    return f"{'; '.join(parts)}. Is {to_read} right?"


def _are(number: int) -> str:
    return one_or_more(number, "is", "are")


def served_by_others(observed: Observed) -> frozenset[SyncerRef]:
    """The syncers that instances of another owner in this cluster name, whoever renews these."""
    return frozenset(syncer for one in _of_others(observed) if (syncer := syncer_of(one)))


def at_work_elsewhere(observed: Observed) -> frozenset[SyncerRef]:
    """The same, of what somebody renews."""
    return frozenset(
        syncer for one in _of_others(observed) if (syncer := syncer_of(one)) and observed.silent(one) <= _LATELY
    )


def _judged(name: str, there: list[ObservedInstance], observed: Observed, desired: Desired) -> OtherOwner:
    taken = {s for one in there for s in _sockets(one)}
    mine = [_sockets(one) for key, one in observed.ours.items() if key in desired.wanted_by]
    beside = sum(not taken.isdisjoint(sockets) for sockets in mine)
    later = not beside or _came_first(name, observed)
    return OtherOwner(
        name=name,
        ours=observed.ownership.owner,
        registered=len(there),
        twice=beside,
        stops_us=later and beside == len(mine),
    )


def _came_first(name: str, observed: Observed) -> bool:
    """Whether the oldest of what is registered twice is the other's. By the marks and times of the whole list, which
    are the same for both installations, whatever their scopes are, on every peer, and after a restart of Eureka."""
    first: dict[str, dict[_Socket, int]] = {name: {}, observed.ownership.owner: {}}
    for one in (*observed.ours.values(), *observed.others.values()):
        owner = one.metadata.get(OWNER, "")
        if owner in first and one.metadata.get(CLUSTER) == observed.ownership.cluster:
            first[owner].update(dict.fromkeys(_sockets(one), one.last_dirty_timestamp))
    its, ours = first[name], first[observed.ownership.owner]
    twice = its.keys() & ours.keys()
    return (min(its[s] for s in twice), name) < (min(ours[s] for s in twice), observed.ownership.owner)


def _at_work(observed: Observed, now: float) -> Iterator[ObservedInstance]:
    """What other owners have in this cluster, and somebody renews. A syncer of another class was another installation's
    to serve: it has moved to ours."""
    for one in _of_others(observed):
        moved = one.metadata.get(CLASS) != observed.scope.syncer_class
        # Where nothing else is renewed either, the list alone does not tell that its owner has ended.
        ended = bool(one.last_renewal) and now - one.renewed > one.instance.lease.duration
        if not (moved or ended or is_gone(one)) and observed.silent(one) <= _LATELY:
            yield one


def _of_others(observed: Observed) -> Iterator[ObservedInstance]:
    owner, cluster = observed.ownership.owner, observed.ownership.cluster
    for one in observed.others.values():
        if one.metadata.get(CLUSTER) == cluster and one.metadata.get(OWNER, owner) != owner:
            yield one


def _by_owner(instances: Iterable[ObservedInstance]) -> Mapping[str, list[ObservedInstance]]:
    found: dict[str, list[ObservedInstance]] = {}
    for one in instances:
        found.setdefault(one.metadata[OWNER], []).append(one)
    return found


def _wanted(key: InstanceKey, desired: Desired) -> tuple[_Socket, ...]:
    wanted = desired.wanted(key)
    return sockets_of(wanted.instance) if wanted else ()


def _sockets(one: ObservedInstance) -> Iterator[_Socket]:
    for port in (one.instance.port, one.instance.secure_port):
        if port.enabled:
            yield one.key.app, one.instance.ip_addr, port.number
