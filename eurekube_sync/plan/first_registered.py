"""Of an address that several namespaces claim, and the cluster gave to none of them, the first that is registered has
it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eurekube_sync.desired.claims import Desired, Serving, seniority
from eurekube_sync.desired.rivals import Bid, Right, Rival, across_namespaces, sockets_of
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import Choice


def first_registered(desired: Desired, observed: Observed) -> Choice:
    """The claims, of which one may register at each such address: the one that is registered there, else the one that
    would be now, of the older syncer first."""
    bidding = {bid: claim for claim in desired.claims.values() if isinstance(claim, Serving) for bid in _bids(claim)}
    settled: dict[SyncerRef, dict[InstanceKey, Rival]] = {bid.syncer: {} for bid in bidding}
    to_read: list[InstanceKey] = []

    def rank(bid: Bid) -> tuple[bool, bool, tuple[float, SyncerRef]]:
        return (bid.key not in observed.ours, not _comes_in(bidding[bid], bid.key), seniority(bidding[bid]))

    for bid, others in across_namespaces(tuple(bidding)):
        first = min(others, key=rank)
        if rank(first) < rank(bid):
            settled[bid.syncer][bid.key] = Rival(first.syncer, Right.FIRST)
        elif bid.key not in observed.ours and _comes_in(bidding[bid], bid.key):
            to_read += [other.key for other in others]
    claims = dict(desired.claims)
    for ref, outdone in settled.items():
        claim = claims[ref]
        assert isinstance(claim, Serving)  # no other bids
        undecided = dict.fromkeys(bid.key for bid in bidding if bid.syncer == ref)
        claims[ref] = claim.outdone_by({**undecided, **outdone})
    return Choice(desired=replace(desired, claims=claims), to_read=tuple(to_read))


def _bids(claim: Serving) -> Iterator[Bid]:
    for key, rival in claim.rivals.items():
        wanted = claim.wanted_at(key) if rival.right is Right.UNDECIDED else None
        if wanted is not None:
            sockets = sockets_of(wanted.instance)
            namespace = selected_namespace(claim.syncer)
            yield Bid(key, claim.syncer.ref, namespace, sockets, allotted=False)


def _comes_in(claim: Serving, key: InstanceKey) -> bool:
    """Whether it would be registered if nobody else claimed its address."""
    wanted = claim.wanted_at(key)
    return wanted is not None and wanted.instance.status is InstanceStatus.UP and not claim.conduct.suspend
