"""Decides which syncer has an address and port that several syncers claim for one app.

Within a namespace, age decides. Between namespaces it does not, because users of one could write
another team's addresses as a host name, an external IP or a slice. There, an address belongs to the
namespace to whose pod or Service the cluster gave it, and any other address to the syncer that was
registered first. Registered instances always stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    claims = dict(made)
    if not _claimed_twice(serving):  # the usual case
        return claims, {key: claim.syncer.ref for claim in serving for key in claim.wanted}
    wanted_by: dict[InstanceKey, SyncerRef] = {}
    holders: dict[_Place, _Holder] = {}
    bids: list[Bid] = []
    for claim in serving:
        ref, namespace, wanted = claim.syncer.ref, selected_namespace(claim.syncer), claim.wanted
        sockets = {key: sockets_of(one.instance) for key, one in wanted.items()}
        places = {key: _places(key, namespace, taken) for key, taken in sockets.items()}
        held = {
            key: holders[place]
            for key, taken in places.items()
            for place in reversed(taken)
            if place in holders
        }
        idle = {key for key, one in held.items() if one.idle and key not in wanted_by}
        if (
            held and not claim.conduct.claims_nothing
        ):  # with limit 0 it registers nothing, which is no conflict
            verdicts = dict(claim.verdicts)
            for key, one in held.items():
                at_home = _away(claim.syncer) and not _away(one.syncer)
                rival = Rival(one.syncer.ref, Right.HOME if at_home else Right.AGE)
                mine = wanted[key]
                verdicts[key] = (
                    replace(mine, rival=rival) if key in idle else Taken(wanted=mine, rival=rival)
                )
            claims[ref] = replace(claim, verdicts=verdicts)
        for key, taken in places.items():
            if key not in held or key in idle:
                wanted_by[key] = ref
            if key not in held:
                holders.update(
                    dict.fromkeys(taken, _Holder(claim.syncer, idle=claim.conduct.suspend))
                )
                if not claim.conduct.claims_nothing:
                    bids.append(
                        Bid(key, ref, namespace, sockets[key], allotted=wanted[key].allotted)
                    )
        for key, kept in claim.of(Kept).items():
            for place in _places(key, namespace, _sockets(key, kept)):
                holders.setdefault(place, _Holder(claim.syncer, idle=True))
    rivals: dict[SyncerRef, dict[InstanceKey, Rival | None]] = {}
    for bid, rival in outdone(bids):
        rivals.setdefault(bid.syncer, {})[bid.key] = rival
    for ref, theirs in rivals.items():
        outbid = claims[ref]
        assert isinstance(outbid, Serving)  # only such claims bid
        claims[ref] = outbid.outdone_by(theirs)
    return claims, wanted_by


def _away(syncer: SyncerObject) -> bool:
    return selected_namespace(syncer) != syncer.namespace


def _claimed_twice(serving: Iterable[Serving]) -> bool:
    """Whether a key, or an address and port of an app, is claimed or kept more than once."""
    seen: set[InstanceKey | Socket] = set()
    for claim in serving:
        for key, one in claim.verdicts.items():
            if sockets := _sockets(key, one):
                if key in seen or not seen.isdisjoint(sockets):
                    return True
                seen.update((key, *sockets))
    return False


def _sockets(key: InstanceKey, verdict: Verdict) -> tuple[Socket, ...]:
    if isinstance(verdict, Wanted):
        return sockets_of(verdict.instance)
    return ((key.app, verdict.host, verdict.port),) if isinstance(verdict, Kept) else ()


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
        others = (
            other
            for socket in bid.sockets
            for other in by_socket[socket]
            if other.namespace != bid.namespace
        )
        if rivals := tuple(dict.fromkeys(others)):
            yield bid, rivals


def outdone(bids: Sequence[Bid]) -> Iterator[tuple[Bid, Rival]]:
    """Yield the bids that another namespace makes, too, so that no new instance is registered. If
    the cluster gave the address to neither, the instance that is registered first decides, which
    `plan` finds out."""
    for bid, others in across_namespaces(bids):
        if not bid.allotted:
            first = min(others, key=lambda other: not other.allotted)
            yield bid, Rival(first.syncer, Right.ALLOTTED if first.allotted else Right.UNDECIDED)
