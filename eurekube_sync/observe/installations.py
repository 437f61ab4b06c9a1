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
from eurekube_sync.desired.rivals import Socket, sockets_of
from eurekube_sync.model.eureka import LIST_LAG, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLASS, CLUSTER, OWNER, Ownership, syncer_of
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.observe.former import LATELY


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

    @property
    def sentence(self) -> str:
        """The problem, and what a person should do."""
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
    at_work = _at_work(observed, now)
    if not at_work:
        return ()  # nearly always
    servers = _servers(desired)
    found: list[OtherOwner] = []
    for name, instances in sorted(at_work.items()):
        contested = [instance for instance in instances if _is_served(instance, servers)]
        if contested:
            found.append(_other_owner(name, contested, observed, desired))
    return tuple(found)


def _at_work(observed: Observed, now: float) -> Mapping[str, Sequence[ObservedInstance]]:
    """Return the instances that other owners of this cluster renew, by owner."""
    at_work: dict[str, list[ObservedInstance]] = {}
    for instance in _of_others(observed):
        from_another_class = instance.metadata.get(CLASS) != observed.scope.syncer_class
        if from_another_class or observed.silent(instance) > LATELY:
            continue
        if not _has_ended(instance, now):
            at_work.setdefault(instance.metadata[OWNER], []).append(instance)
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
        servers.update(dict.fromkeys(sockets_of(wanted.instance), syncer))
    return servers


def _is_served(instance: ObservedInstance, servers: Mapping[Socket, SyncerRef]) -> bool:
    """Say whether the syncer in the instance's mark has an instance of ours at the same socket."""
    syncer = syncer_of(instance)
    return any(servers.get(socket) == syncer for socket in sockets_of(instance.instance))


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
        if key in desired.wanted_by:
            mine += 1
            twice += not theirs.isdisjoint(sockets_of(instance.instance))
    stops_us = twice == mine and (not twice or _came_first(name, observed))
    owner = observed.ownership.owner
    return OtherOwner(
        name=name, ours=owner, registered=len(contested), twice=twice, stops_us=stops_us
    )


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
