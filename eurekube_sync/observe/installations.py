"""Other installations, as far as Eureka's list shows them. Pure.

Another installation of this cluster, with another owner name, may serve our syncers, for example
after a typo in `--owner`. Both decide from the same list by the same rule which one goes on, so
never are both stopped. The one that has registered nothing there is stopped; if both have, the
later one. An installation with any instance that the other has not registered is never stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote

from msgspec import Struct

from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.rivals import Socket, sockets_of
from eurekube_sync.model.eureka import LIST_LAG, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLASS, CLUSTER, OWNER, Ownership, syncer_of
from eurekube_sync.model.text import counted, one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.observe.former import LATELY


class OtherOwner(Struct, frozen=True, kw_only=True):
    """Another owner that serves syncers of our scope."""

    name: str
    ours: str  # our own owner's name
    registered: int
    """How many of its instances are renewed at an address and port that ours would have."""
    twice: int  # how many of ours are registered at the same addresses and ports
    stops_us: bool  # whether this installation may only renew

    @property
    def sentence(self) -> str:
        """The problem, and what a person should do."""
        if not self.stops_us:
            return (
                f"owner clash: {self._registered} at addresses that owner {self.ours} serves. Stop "
                "one of the two installations, then cancel its instances with eurekube-sync purge"
            )
        if not self.twice:
            return f"owner clash: {self.question}. This pass is refused: nothing was done"
        are = one_or_more(self.twice, "is", "are")
        return (
            f"owner clash: {self.question}. {self.twice} of the instances {are} registered twice. "
            "This pass is refused: our instances were renewed, and nothing else was done"
        )

    @property
    def question(self) -> str:
        """The question whether the owner's name is right, with the reason and the way out."""
        return (
            f"{self._registered} at addresses that this installation would register under owner "
            f"{self.ours}. Is --owner {self.ours} right? To change the name: eurekube-sync run "
            f"--owner {self.ours} --former-owner {quote(self.name)}"
        )

    @property
    def _registered(self) -> str:
        instances = counted(self.registered, "instance")
        are = one_or_more(self.registered, "is", "are")
        return f"{instances} of this cluster {are} registered under owner {self.name},"


def other_owners(observed: Observed, desired: Desired, now: float) -> tuple[OtherOwner, ...]:
    """Return the owners that renew instances at addresses of our syncers' instances. `now` in Unix
    seconds."""
    at_work = _at_work(observed, now)
    if not at_work:
        return ()  # nearly always
    servers = _servers(desired)
    others: list[OtherOwner] = []
    for name, instances in sorted(at_work.items()):
        contested: list[ObservedInstance] = []
        for instance in instances:
            if _is_served(instance, servers):
                contested.append(instance)
        if contested:
            others.append(_other_owner(name, contested, observed, desired))
    return tuple(others)


def _at_work(observed: Observed, now: float) -> Mapping[str, Sequence[ObservedInstance]]:
    """Return the instances that other owners of this cluster renew, by owner."""
    at_work: dict[str, list[ObservedInstance]] = {}
    for instance in _of_others(observed):
        if instance.metadata.get(CLASS) != observed.scope.syncer_class:
            continue
        if observed.silent(instance) > LATELY or _has_ended(instance, now):
            continue
        owner = instance.metadata[OWNER]
        at_work.setdefault(owner, []).append(instance)
    return at_work


def _has_ended(instance: ObservedInstance, now: float) -> bool:
    """Say whether nobody has renewed the instance for longer than any list is old. If nothing in
    the list is renewed any more, `silent` is small, and the list looks like that of a quiet
    registry."""
    longest = max(instance.instance.lease.duration, LIST_LAG + LATELY)
    return bool(instance.last_renewal) and now - instance.renewed > longest


def _servers(desired: Desired) -> Mapping[Socket, SyncerRef]:
    """Return which syncer has an instance at each socket."""
    servers: dict[Socket, SyncerRef] = {}
    for key, syncer in desired.wanted_by.items():
        wanted = desired.wanted(key)
        assert wanted is not None  # its claim names it
        for socket in sockets_of(wanted.instance):
            servers[socket] = syncer
    return servers


def _is_served(instance: ObservedInstance, servers: Mapping[Socket, SyncerRef]) -> bool:
    """Say whether the syncer in the instance's mark has an instance of ours at the same socket."""
    syncer = syncer_of(instance)
    sockets = sockets_of(instance.instance)
    return any(servers.get(socket) == syncer for socket in sockets)


def _other_owner(
    name: str, contested: Sequence[ObservedInstance], observed: Observed, desired: Desired
) -> OtherOwner:
    """Return the other owner, and whether it stops us.

    | of our wanted instances there are registered   | this installation                            |
    |------------------------------------------------|----------------------------------------------|
    | none                                           | is stopped                                   |
    | some, and one of them where the other has none | continues                                    |
    | some, each beside one of the other's           | is stopped, unless it registered there first |
    """
    theirs: set[Socket] = set()
    for instance in contested:
        theirs.update(sockets_of(instance.instance))
    mine = 0
    twice = 0
    for key, instance in observed.ours.items():
        if key not in desired.wanted_by:
            continue
        mine += 1
        if not theirs.isdisjoint(sockets_of(instance.instance)):
            twice += 1

    if mine == 0:
        stops_us = True
    elif twice < mine:
        stops_us = False
    else:
        stops_us = _came_first(name, observed)
    return OtherOwner(
        name=name,
        ours=observed.ownership.owner,
        registered=len(contested),
        twice=twice,
        stops_us=stops_us,
    )


def _came_first(name: str, observed: Observed) -> bool:
    """Say whether the oldest instance at a shared address is the other owner's. Marks and
    registration times are the same for both installations, on every Eureka server, and after a
    restart of Eureka."""
    our_name = observed.ownership.owner
    theirs: dict[Socket, int] = {}
    ours: dict[Socket, int] = {}
    registered = {name: theirs, our_name: ours}
    for instance in (*observed.ours.values(), *observed.others.values()):
        owner = instance.metadata.get(OWNER, "")
        if owner not in registered:
            continue
        if instance.metadata.get(CLUSTER) != observed.ownership.cluster:
            continue
        for socket in sockets_of(instance.instance):
            registered[owner][socket] = instance.last_dirty_timestamp
    shared = theirs.keys() & ours.keys()
    their_first = min(theirs[socket] for socket in shared)
    our_first = min(ours[socket] for socket in shared)
    # At the same millisecond the name decides, for both installations alike.
    return (their_first, name) < (our_first, our_name)


def _of_others(observed: Observed) -> Iterator[ObservedInstance]:
    """Yield the instances that other owners registered from this cluster."""
    owner = observed.ownership.owner
    cluster = observed.ownership.cluster
    for instance in observed.others.values():
        marks = instance.metadata
        if marks.get(CLUSTER) == cluster and marks.get(OWNER, owner) != owner:
            yield instance


def served_by_others(observed: Observed) -> frozenset[SyncerRef]:
    """Return the syncers of this cluster that have instances of another owner, renewed or not."""
    syncers: set[SyncerRef] = set()
    for instance in _of_others(observed):
        syncer = syncer_of(instance)
        if syncer is not None:
            syncers.add(syncer)
    return frozenset(syncers)


def nothing_of(
    ownership: Ownership,
    registered: Iterable[ObservedInstance],
    *,
    where: str = "this cluster",
    to_read: str = "--owner",
) -> str | None:
    """Return a warning that `to_read` may be wrong, if the owner has no instance in the cluster,
    with those that exist."""
    owners: Counter[str] = Counter()  # of this cluster
    clusters: Counter[str] = Counter()  # of this owner
    for instance in registered:
        owner = instance.metadata.get(OWNER, "")
        cluster = instance.metadata.get(CLUSTER, "")
        if owner and cluster == ownership.cluster:
            owners[owner] += 1
        elif cluster and owner == ownership.owner:
            clusters[cluster] += 1
    if ownership.owner in owners:
        return None
    clauses = [f"no instance of owner {ownership.owner} in {where}"]
    there: list[str] = []
    for name, number in sorted(owners.items()):
        instances = counted(number, "instance")
        there.append(f"{name} ({instances})")
    if there:
        names = ", ".join(there)
        clauses.append(f"the instances of {where} belong to {names}")
    for uid, number in sorted(clusters.items()):
        instances = counted(number, "instance")
        clauses.append(f"owner {ownership.owner} has {instances} of cluster {uid}")
    return f"{'; '.join(clauses)}. Is {to_read} right?"
