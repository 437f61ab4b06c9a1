"""Decides which syncer has an address and port that several syncers claim for one app.

Within a namespace, age decides. Between namespaces it does not, because users of one could write
another team's addresses as a host name, an external IP or a slice. There, an address belongs to the
namespace to whose pod or Service the cluster gave it, and any other address to the syncer that was
registered first. Registered instances always stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from eurekube_sync.model.struct import replace

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
    app = instance.key.app
    main = (app, instance.ip_addr, instance.main_port)
    if instance.secure_port.enabled and instance.port.enabled:
        secure = (app, instance.ip_addr, instance.secure_port.number)
        return (main, secure)
    return (main,)


def shared_out(made: Mapping[SyncerRef, Claim]) -> Shares:
    """Give each address and port of an app to one of the syncers that select in the same namespace.

    A syncer of that namespace comes before one of another, then the older one, then the first by
    name. The others register nothing new there. A syncer with limit 0 comes last: another syncer
    takes over its registered instances, which stay UP."""
    claims = dict(made)
    serving = [claim for claim in made.values() if isinstance(claim, Serving)]
    serving.sort(key=_rank)
    if not _claimed_twice(serving):  # the usual case
        wanted_by: dict[InstanceKey, SyncerRef] = {}
        for claim in serving:
            ref = claim.syncer.ref
            for key in claim.wanted:
                wanted_by[key] = ref
        return claims, wanted_by
    sharing = _Sharing()
    for claim in serving:
        sharing.add(claim)
    claims.update(sharing.claims)
    # Between namespaces nobody's claim is taken away: it only registers nothing new.
    rivals: dict[SyncerRef, dict[InstanceKey, Rival | None]] = {}
    for bid, rival in outdone(sharing.bids):
        rivals.setdefault(bid.syncer, {})[bid.key] = rival
    for ref, theirs in rivals.items():
        shared = sharing.claims[ref]
        claims[ref] = shared.with_rivals(theirs)
    return claims, sharing.wanted_by


def _rank(claim: Serving) -> tuple[bool, bool, tuple[float, SyncerRef]]:
    """Return the sort key of the syncer that gets an address first."""
    away = _away(claim.syncer)
    return (claim.spec.claims_nothing, away, seniority(claim))


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
        ref = claim.syncer.ref
        namespace = selected_namespace(claim.syncer)
        # All are looked up before the first is given away: two sockets of one syncer are no
        # conflict.
        held: dict[InstanceKey, _Holder] = {}
        idle: set[InstanceKey] = set()
        for key, wanted in claim.wanted.items():
            other = self._holder_of(key, namespace, sockets_of(wanted.instance))
            if other is None:
                continue
            held[key] = other
            if other.idle and key not in self.wanted_by:
                idle.add(key)
        # With limit 0 it registers nothing, which is no conflict.
        registers = not claim.spec.claims_nothing
        self.claims[ref] = claim
        if held and registers:
            self.claims[ref] = _with_rivals(claim, held, idle)
        holder = _Holder(claim.syncer, idle=claim.spec.suspend)
        for key, wanted in claim.wanted.items():
            if key not in held or key in idle:
                self.wanted_by[key] = ref
            if key in held:
                continue
            sockets = sockets_of(wanted.instance)
            for place in _places(key, namespace, sockets):
                self._holders[place] = holder
            if registers:
                bid = Bid(key, ref, namespace, sockets, wanted.allotted)
                self.bids.append(bid)
        # Of these too little is known to register anything.
        keeper = _Holder(claim.syncer, idle=True)
        for key, kept in claim.of(Kept).items():
            for place in _places(key, namespace, _sockets(key, kept)):
                self._holders.setdefault(place, keeper)

    def _holder_of(
        self, key: InstanceKey, namespace: str, sockets: Iterable[Socket]
    ) -> _Holder | None:
        for place in _places(key, namespace, sockets):
            if place in self._holders:
                return self._holders[place]
        return None


def _with_rivals(
    claim: Serving, held: Mapping[InstanceKey, _Holder], idle: Collection[InstanceKey]
) -> Serving:
    """Return the claim of a syncer of which other syncers hold instances; at those in `idle` they
    register nothing."""
    verdicts: dict[InstanceKey, Verdict] = {}
    is_away = _away(claim.syncer)
    for key, holder in held.items():
        right = Right.AGE
        if is_away and not _away(holder.syncer):
            right = Right.HOME
        rival = Rival(holder.syncer.ref, right)
        wanted = claim.wanted[key]
        if key in idle:
            verdicts[key] = replace(wanted, rival=rival)
        else:
            verdicts[key] = Taken(wanted=wanted, rival=rival)
    return claim.with_verdicts(verdicts)


def _away(syncer: SyncerObject) -> bool:
    """Whether a syncer selects Services in another namespace than its own."""
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
        if bid.allotted:
            continue
        rival = Rival(others[0].syncer, Right.UNDECIDED)
        for other in others:
            if other.allotted:
                rival = Rival(other.syncer, Right.ALLOTTED)
                break
        yield bid, rival
