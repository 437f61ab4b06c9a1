"""Rival namespaces: which of them gets an address that each claims for one app."""

from __future__ import annotations

import pytest

from eurekube_sync.desired.claims import Right, Rival
from eurekube_sync.desired.rivals import Bid, outdone
from eurekube_sync.model.kubernetes import SyncerRef
from tests.unit.worlds.build import key


def bid(namespace: str, *, allotted: bool = False, socket: int = 8080) -> Bid:
    """The claim of one address by a namespace's syncer."""
    sockets = (("RATING", "10.0.0.1", socket),)
    ref = SyncerRef(namespace, "rating")
    return Bid(
        key=key(namespace=namespace),
        syncer=ref,
        namespace=namespace,
        sockets=sockets,
        allotted=allotted,
    )


@pytest.mark.parametrize("first", ["blue", "zebra"])
def test_an_address_belongs_to_the_namespace_that_the_cluster_gave_it_to(first: str) -> None:
    """The other namespaces register nothing new, and each learns who has the address."""
    own = bid("green", allotted=True)
    bids = [bid(first), own, bid("red"), bid("alone", socket=9090)]
    has = Rival(own.syncer, Right.ALLOTTED)
    assert list(outdone(bids)) == [(bids[0], has), (bids[2], has)]


def test_for_an_address_of_nobody_each_rival_learns_of_the_first_other() -> None:
    """The cluster gave the address to nobody. Only Eureka shows which rival is registered."""
    bids = [bid("red"), bid("blue"), bid("green")]
    told = [(one.namespace, rival) for one, rival in outdone(bids)]
    assert told == [
        ("red", Rival(bids[1].syncer, Right.UNDECIDED)),
        ("blue", Rival(bids[0].syncer, Right.UNDECIDED)),
        ("green", Rival(bids[0].syncer, Right.UNDECIDED)),
    ]
