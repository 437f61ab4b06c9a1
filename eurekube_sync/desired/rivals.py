"""Decides which syncer has an address and port that several syncers claim for one app.

Within a namespace, age decides. Between namespaces it does not, because users of one could write
another team's addresses as a host name, an external IP or a slice. There, an address belongs to the
namespace to whose pod or Service the cluster gave it, and any other address to the syncer that was
registered first. Registered instances always stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from eurekube_sync.desired.claims import (
    Claim,
    Kept,
    Right,
    Rival,
    Serving,
    Taken,
    Verdict,
    Wanted,
    seniority,
)
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.model.eureka import Instance, InstanceKey
from eurekube_sync.model.kubernetes import SyncerObject, SyncerRef

Socket: TypeAlias = tuple[str, str, int]  # app, address and port
Shares: TypeAlias = tuple[Mapping[SyncerRef, Claim], Mapping[InstanceKey, SyncerRef]]
"""All claims, and the syncer that wants each key."""
_Place: TypeAlias = (
    tuple[str, Socket] | InstanceKey
)  # a socket among the syncers that select in a namespace, or a key


class Bid(NamedTuple):
    """An instance that a syncer claims, and that no other syncer of the same namespace has."""

    key: InstanceKey
    syncer: SyncerRef
    namespace: str  # where its Services are
    sockets: tuple[Socket, ...]
    allotted: bool  # whether the cluster gave the address to that namespace


class _Holder(NamedTuple):
    """The first syncer, by rank, at a place."""

    syncer: SyncerObject
    idle: bool  # it registers nothing there, so that another syncer's instance stays


def sockets_of(instance: Instance) -> tuple[Socket, ...]:
    """Return a socket for each enabled port, the main one first."""
    main = (instance.key.app, instance.ip_addr, instance.main_port)
    if instance.secure_port.enabled and instance.port.enabled:
        return (main, (instance.key.app, instance.ip_addr, instance.secure_port.number))
    return (main,)


def shared_out(made: Mapping[SyncerRef, Claim]) -> Shares:
    """Give each address and port of an app to one of the syncers that select in the same namespace.

    A syncer of that namespace comes before one of another, then the older one, then the first by
    name. The others register nothing new there. A syncer with limit 0 comes last: another syncer
    takes over its registered instances, which stay UP."""
    serving = [claim for claim in made.values() if isinstance(claim, Serving)]
    serving.sort(
        key=lambda claim: (claim.conduct.claims_nothing, _away(claim.syncer), seniority(claim))
    )
    if not _claimed_twice(serving):  # the usual case
        wanted_by = {}
        for claim in serving:
            wanted_by.update(dict.fromkeys(claim.wanted, claim.syncer.ref))
        return dict(made), wanted_by
    sharing = _Sharing()
    for claim in serving:
        sharing.add(claim)
    claims = {**made, **sharing.claims}
    rivals: dict[SyncerRef, dict[InstanceKey, Rival | None]] = {}
    for bid, rival in outdone(sharing.bids):
        rivals.setdefault(bid.syncer, {})[bid.key] = rival
    for ref, theirs in rivals.items():
        claims[ref] = sharing.claims[ref].with_rivals(theirs)
    return claims, sharing.wanted_by


class _Sharing:
    """What has been given to the syncers so far. They are added by rank, the first one first.

    | who has the place already             | the syncer                                                |
    |---------------------------------------|-----------------------------------------------------------|
    | nobody                                | has it now                                                |
    | one that registers nothing there, and | updates what stands there, and registers nothing new      |
    | nobody else wants the key             |                                                           |
    | another one                           | does not want the instance any more                       |
    """

    def __init__(self) -> None:
        self.claims: dict[SyncerRef, Serving] = {}
        self.wanted_by: dict[InstanceKey, SyncerRef] = {}
        self.bids: list[Bid] = []
        self._holders: dict[_Place, _Holder] = {}

    def add(self, claim: Serving) -> None:
        """Give the syncer what nobody of a higher rank has."""
        ref, namespace = claim.syncer.ref, selected_namespace(claim.syncer)
        # With limit 0 it registers nothing, which is no conflict.
        registers = not claim.conduct.claims_nothing
        places = {}
        for key, wanted in claim.wanted.items():
            places[key] = _places(key, namespace, sockets_of(wanted.instance))
        # All are looked up before the first is given away: two sockets of one syncer are no
        # conflict.
        held: dict[InstanceKey, _Holder] = {}
        for key, there in places.items():
            holder = self._holder_of(there)
            if holder is not None:
                held[key] = holder
        idle = {key for key, holder in held.items() if holder.idle and key not in self.wanted_by}
        self.claims[ref] = _with_rivals(claim, held, idle) if held and registers else claim
        for key, there in places.items():
            if key not in held or key in idle:
                self.wanted_by[key] = ref
            if key in held:
                continue
            self._holders.update(
                dict.fromkeys(there, _Holder(claim.syncer, idle=claim.conduct.suspend))
            )
            if registers:
                wanted = claim.wanted[key]
                self.bids.append(
                    Bid(key, ref, namespace, sockets_of(wanted.instance), allotted=wanted.allotted)
                )
        for key, kept in claim.of(Kept).items():
            for place in _places(key, namespace, _sockets(key, kept)):
                self._holders.setdefault(place, _Holder(claim.syncer, idle=True))

    def _holder_of(self, places: Iterable[_Place]) -> _Holder | None:
        for place in places:
            if place in self._holders:
                return self._holders[place]
        return None


def _with_rivals(
    claim: Serving, held: Mapping[InstanceKey, _Holder], idle: Collection[InstanceKey]
) -> Serving:
    """Return the claim of a syncer of which other syncers hold instances; at those in `idle` they
    register nothing."""
    verdicts: dict[InstanceKey, Verdict] = {}
    for key, holder in held.items():
        at_home = _away(claim.syncer) and not _away(holder.syncer)
        rival = Rival(holder.syncer.ref, Right.HOME if at_home else Right.AGE)
        wanted = claim.wanted[key]
        if key in idle:
            verdicts[key] = replace(wanted, rival=rival)
        else:
            verdicts[key] = Taken(wanted=wanted, rival=rival)
    return claim.with_verdicts(verdicts)


def _away(syncer: SyncerObject) -> bool:
    return selected_namespace(syncer) != syncer.namespace


def _claimed_twice(serving: Iterable[Serving]) -> bool:
    """Whether a key, or an address and port of an app, is claimed or kept more than once."""
    seen: set[InstanceKey | Socket] = set()
    for claim in serving:
        for key, verdict in claim.verdicts.items():
            sockets = _sockets(key, verdict)
            if not sockets:
                continue
            if key in seen or not seen.isdisjoint(sockets):
                return True
            seen.update((key, *sockets))
    return False


def _sockets(key: InstanceKey, verdict: Verdict) -> tuple[Socket, ...]:
    if isinstance(verdict, Wanted):
        return sockets_of(verdict.instance)
    if isinstance(verdict, Kept):
        return ((key.app, verdict.host, verdict.port),)
    return ()


def _places(key: InstanceKey, namespace: str, sockets: Iterable[Socket]) -> tuple[_Place, ...]:
    return (*((namespace, socket) for socket in sockets), key)


def across_namespaces(bids: Sequence[Bid]) -> Iterator[tuple[Bid, Sequence[Bid]]]:
    """Yield each bid for a socket for which other namespaces bid, too, and their bids, in the given
    order."""
    by_socket: dict[Socket, list[Bid]] = {}
    for bid in bids:
        for socket in bid.sockets:
            by_socket.setdefault(socket, []).append(bid)
    for bid in bids:
        rivals: dict[Bid, None] = {}
        for socket in bid.sockets:
            for other in by_socket[socket]:
                if other.namespace != bid.namespace:
                    rivals[other] = None
        if rivals:
            yield bid, tuple(rivals)


def outdone(bids: Sequence[Bid]) -> Iterator[tuple[Bid, Rival]]:
    """Yield the bids that another namespace makes, too, so that no new instance is registered. If
    the cluster gave the address to neither, the instance that is registered first decides, which
    `plan` finds out."""
    for bid, others in across_namespaces(bids):
        if not bid.allotted:
            first = min(others, key=lambda other: not other.allotted)
            yield bid, Rival(first.syncer, Right.ALLOTTED if first.allotted else Right.UNDECIDED)
