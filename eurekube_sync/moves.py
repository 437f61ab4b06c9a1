"""What an `owner` command would move, as values: which instance, under which key and marks it is to stand, and why.

A move changes the marks, and the id where it has to; status, override, lease, URLs and everybody's metadata go along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from eurekube_sync.desired import Desired, Frozen
from eurekube_sync.errors import NothingThere, NotKept, OwnerClash
from eurekube_sync.instance import Wanted
from eurekube_sync.model import Cause, Instance, InstanceKey, InstanceStatus, ObservedInstance, SyncerRef
from eurekube_sync.outcome import Result
from eurekube_sync.ownership import (
    CLASS,
    CLUSTER,
    OWNER,
    POD,
    RELEASED,
    SYNCER,
    Ownership,
    instance_id,
    syncer_of,
)

DEFAULT_PERIOD, DEFAULT_DURATION = 30, 90
"""What a server takes for a lease without times (LeaseInfo)."""
_SHOWN = 5


class Address(NamedTuple):
    """Where an instance is called: an address or host name, and its port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def fits(self, instance: ObservedInstance) -> bool:
        """Whether the instance is called there."""
        hosts = {instance.ip_addr, instance.host_name.strip("[]")}
        ports = {port.number for port in (instance.port, instance.secure_port) if port.enabled}
        return self.host.strip("[]") in hosts and self.port in ports


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One instance that is to stand under other marks, and perhaps another id."""

    source: ObservedInstance
    target: InstanceKey
    expects: Mapping[str, str | None]
    """Marks that the source must still bear when it is its turn; None: must not."""
    put: Mapping[str, str]
    drop: frozenset[str] = frozenset()
    why: str

    @property
    def in_place(self) -> bool:
        """Whether it keeps its id."""
        return self.target == self.source.key

    @property
    def syncer(self) -> SyncerRef | None:
        """Whose it will be."""
        return syncer_of(self.made_of(self.source))

    def may_take(self, stands: ObservedInstance) -> bool:
        """Whether the source is still what it was when the move was thought of."""
        return all(stands.metadata.get(mark) == value for mark, value in self.expects.items())

    def made(self, stands: ObservedInstance) -> bool:
        """Whether an instance under the target bears the marks of this move."""
        bears = all(stands.metadata.get(mark) == value for mark, value in self.put.items())
        return bears and not any(mark in stands.metadata for mark in self.drop)

    def made_of(self, stands: ObservedInstance) -> Instance:
        """The instance to register, from what stands now."""
        kept = {key: value for key, value in stands.metadata.items() if key not in self.drop}
        return Instance(
            key=self.target,
            host_name=stands.host_name,
            ip_addr=stands.ip_addr,
            port=stands.port,
            secure_port=stands.secure_port,
            vip_address=stands.vip_address,
            secure_vip_address=stands.secure_vip_address,
            status=stands.status,
            lease=stands.lease,
            metadata={**kept, **self.put},
            home_page_url=stands.home_page_url,
            status_page_url=stands.status_page_url,
            health_check_url=stands.health_check_url,
            # Under its own id the server still knows the override, and an echo could bring back one just taken off.
            override=InstanceStatus.UNKNOWN if self.in_place else stands.overridden_status,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """What an `owner` command does to one instance, or has done."""

    instance: ObservedInstance
    target: InstanceKey | None
    """Where it stands then; None: nowhere."""
    syncer: SyncerRef | None
    why: str
    result: Result | None = None
    """None: a dry run."""
    detail: str = ""
    cause: Cause | None = None

    @property
    def failed(self) -> bool:
        """Whether it was not done, and nothing has done it before."""
        return self.result in (Result.FAILED, Result.CONFLICT, Result.NOT_TRIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """What `owner adopt` is to do, and what it need not."""

    moves: tuple[Move, ...]
    already: tuple[ObservedInstance, ...] = field(default=())
    """Ours before."""


# --- Which instances -------------------------------------------------------------------------------------------------


def adopt_cluster(registry: Iterable[ObservedInstance], *, owner: str, old: str, new: str) -> tuple[Move, ...]:
    """All of the owner's in the cluster `old` become the cluster `new`'s. The id names no cluster, and stays."""
    before = Ownership(owner=owner, cluster=old)
    return tuple(
        Move(
            source=one,
            target=one.key,
            expects={OWNER: owner, CLUSTER: old},
            put={CLUSTER: new},
            why=f"cluster {new} takes the place of {old}",
        )
        for one in _sorted(registry)
        if before.holds(one)
    )


def adopt(
    registry: Iterable[ObservedInstance],
    desired: Desired,
    ownership: Ownership,
    *,
    app: str,
    addresses: Sequence[Address] = (),
    syncer: SyncerRef | None = None,
) -> Adoption:
    """The app's instances at these addresses, or without addresses all that nobody owns and a syncer wants, become ours
    under the id that `run` would give them.

    Only what a syncer wants: `run` would take anything else out at its next pass. Raises NothingThere or NotKept, a
    sentence each.
    """
    standing = [one for one in _sorted(registry) if one.key.app == app.upper()]
    if not standing:
        raise NothingThere(f"Eureka lists no app {app.upper()}.")
    if syncer is not None and syncer not in desired.claims:
        raise NothingThere(
            f"there is no syncer {syncer}: an instance of a syncer that is not there would be cancelled."
        )
    wanted = _by_socket(desired, syncer)
    if addresses:
        chosen = {one.key: one for address in addresses for one in _at(address, standing)}
    else:
        free = [one for one in standing if OWNER not in one.metadata and _socket(one) in wanted]
        chosen = {one.key: one for one in (*free, *filter(ownership.holds, standing))}
    moves, already = [], []
    for instance in chosen.values():
        if ownership.holds(instance):
            already.append(instance)
            continue
        _refuse_owned(instance, ownership)
        moves.append(_adopted(instance, wanted.get(_socket(instance)), desired, syncer))
    if not moves and not already:
        whose = f"syncer {syncer} wants" if syncer else "a syncer wants"
        raise NothingThere(f"{app.upper()} has no instance without an owner at an address that {whose}.")
    return Adoption(moves=tuple(moves), already=tuple(already))


def release(
    registry: Iterable[ObservedInstance],
    ownership: Ownership,
    *,
    apps: frozenset[str] = frozenset(),
    syncers: frozenset[SyncerRef] = frozenset(),
) -> tuple[Move, ...]:
    """Ours, of these apps and syncers when some are given, are to be nobody's; those released before are among them, so
    that they can be renewed again."""
    moves = []
    for one in _sorted(registry):
        released = one.metadata.get(RELEASED) == ownership.released and OWNER not in one.metadata
        chosen = (not apps or one.key.app in apps) and (not syncers or syncer_of(one) in syncers)
        if chosen and (released or ownership.holds(one)):
            marks = {OWNER: None, CLUSTER: None} if released else {OWNER: ownership.owner, CLUSTER: ownership.cluster}
            moves.append(
                Move(
                    source=one,
                    target=one.key,
                    expects=marks,
                    put={RELEASED: ownership.released},
                    drop=frozenset({OWNER, CLUSTER}),
                    why="it was released before" if released else "owner and cluster give it up",
                )
            )
    return tuple(moves)


def rename(registry: Iterable[ObservedInstance], old: Ownership, new: Ownership) -> tuple[Move, ...]:
    """All of the old owner's stand under the new one's name and ids."""
    return tuple(
        Move(
            source=one,
            target=_renamed(one, old.owner, new.owner),
            expects={OWNER: old.owner, CLUSTER: old.cluster},
            put={OWNER: new.owner, CLUSTER: new.cluster},
            why=f"owner {old.owner} becomes {new.owner}",
        )
        for one in _sorted(registry)
        if old.holds(one)
    )


def refuse_clash(registry: Iterable[ObservedInstance], ownership: Ownership) -> None:
    """Raises OwnerClash when another cluster uses the owner's name."""
    others = [one for one in _sorted(registry) if ownership.clashes(one)]
    if others:
        other = others[0].metadata[CLUSTER]
        raise OwnerClash(
            f"owner {ownership.owner} is used by cluster {other} ({names(others)}): take another name. If this cluster "
            f"takes its place: eurekube-sync owner adopt --cluster {other}"
        )


def observation_time(instances: Iterable[ObservedInstance]) -> float:
    """Seconds in which whoever renews one of these instances would have done so: two periods of the slowest."""
    periods = [min(one.lease.renewal or DEFAULT_PERIOD, duration_of(one)) for one in instances]
    return 2.0 * max(periods, default=DEFAULT_PERIOD) + 5


def duration_of(instance: ObservedInstance) -> int:
    """Seconds that its lease lasts after a register."""
    return instance.lease.duration or DEFAULT_DURATION


def names(instances: Sequence[ObservedInstance]) -> str:
    """A few of them, and how many more there are."""
    shown = ", ".join(str(one.key) for one in instances[:_SHOWN])
    more = len(instances) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _sorted(registry: Iterable[ObservedInstance]) -> list[ObservedInstance]:
    return sorted(registry, key=lambda one: one.key)


def _at(address: Address, standing: Sequence[ObservedInstance]) -> list[ObservedInstance]:
    found = [one for one in standing if address.fits(one)]
    if not found:
        raise NothingThere(f"{standing[0].key.app} has no instance at {address}; it has {names(standing)}.")
    return found


def _socket(instance: ObservedInstance) -> tuple[str, str, int]:
    return (instance.key.app, instance.ip_addr, instance.main_port)


def _by_socket(desired: Desired, syncer: SyncerRef | None) -> dict[tuple[str, str, int], Wanted]:
    """What the syncers, or the one, want, by app, address and port."""
    found = {}
    for key, ref in desired.wanted_by.items():
        wanted = desired.wanted(key)
        if wanted is not None and syncer in (None, ref):
            found[(key.app, wanted.instance.ip_addr, wanted.instance.main_port)] = wanted
    return found


def _refuse_owned(instance: ObservedInstance, ownership: Ownership) -> None:
    owner = instance.metadata.get(OWNER)
    if owner is not None:
        raise NotKept(
            f"{instance.key} is of owner {owner}: let that one release it, or move all of its instances with "
            f"eurekube-sync owner rename {owner} {ownership.owner}"
        )


def _adopted(instance: ObservedInstance, wanted: Wanted | None, desired: Desired, syncer: SyncerRef | None) -> Move:
    if wanted is None:
        raise NotKept(f"{instance.key} stays as it is: {_unwanted(instance, desired, syncer)}")
    marks = wanted.instance.metadata
    return Move(
        source=instance,
        target=wanted.instance.key,
        expects={OWNER: None},
        put={mark: marks[mark] for mark in (OWNER, CLUSTER, SYNCER, CLASS, POD) if mark in marks},
        drop=frozenset({RELEASED}),
        why=wanted.why,
    )


def _unwanted(instance: ObservedInstance, desired: Desired, syncer: SyncerRef | None) -> str:
    where = f"{instance.ip_addr}:{instance.main_port}"
    claim = desired.claims.get(syncer) if syncer else None
    if isinstance(claim, Frozen):
        return f"syncer {syncer} cannot be served ({claim.reason}: {claim.message})"
    frozen = sorted(ref for ref, one in desired.claims.items() if isinstance(one, Frozen))
    hint = f" (syncers that cannot be served now: {', '.join(map(str, frozen[:_SHOWN]))})" if frozen else ""
    whose = f"syncer {syncer} wants" if syncer else "no syncer wants"
    nothing = "nothing" if syncer else "an instance"
    return f"{whose} {nothing} of {instance.key.app} at {where}, and `run` would cancel it{hint}"


def _renamed(instance: ObservedInstance, old: str, new: str) -> InstanceKey:
    app, id_ = instance.key
    if id_.startswith(f"{old}:"):
        return InstanceKey(app, new + id_.removeprefix(old))
    syncer = syncer_of(instance)
    namespace = syncer.namespace if syncer else ""
    number = instance.main_port
    return InstanceKey(app, instance_id(owner=new, namespace=namespace, app=app, address=instance.ip_addr, port=number))
