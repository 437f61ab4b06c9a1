"""Who has an address and port that several syncers claim for one app. Pure.

Within a namespace age decides. Between namespaces it does not: whoever may write a host name, an external IP or a slice
of his own could name the addresses of another team. There an address is a namespace's own where the cluster gave it:
to its pods, or to a Service as ClusterIP, node port or load balancer. Its own it always has. For any other address the
first that is registered has it. Whatever is registered stays in either case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from eurekube_sync.model.eureka import Instance, InstanceKey
from eurekube_sync.model.kubernetes import SyncerRef

Socket: TypeAlias = tuple[str, str, int]
"""App, address and port."""


class Right(StrEnum):
    """Why another syncer has an address, in words."""

    AGE = "is older and has the address"
    HOME = "lives in the Service's own namespace and has the address"
    ALLOTTED = "has the address for a pod or Service of its own namespace; nothing new is registered here"
    FIRST = "of another namespace was first and has the address; nothing new is registered here"
    UNDECIDED = "of another namespace claims the address as well; it is unknown which of the two is registered"


class Rival(NamedTuple):
    """Another syncer that claims the same address and port."""

    syncer: SyncerRef
    right: Right

    def __str__(self) -> str:
        return f"syncer {self.syncer} {self.right}"


class Bid(NamedTuple):
    """What a syncer claims, and no other of the same namespace has."""

    key: InstanceKey
    syncer: SyncerRef
    namespace: str
    """Where its Services are."""
    sockets: tuple[Socket, ...]
    allotted: bool
    """Whether the cluster gave the address to that namespace."""


def sockets_of(instance: Instance) -> tuple[Socket, ...]:
    """For each port that is on, the main one first: callers find them all under that app."""
    main = (instance.key.app, instance.ip_addr, instance.main_port)
    if instance.secure_port.enabled and instance.port.enabled:
        return (main, (instance.key.app, instance.ip_addr, instance.secure_port.number))
    return (main,)


def across_namespaces(bids: Sequence[Bid]) -> Iterator[tuple[Bid, Sequence[Bid]]]:
    """Each bid that another namespace makes as well, with theirs, in the order in which they were given."""
    by_socket: dict[Socket, list[Bid]] = {}
    for bid in bids:
        for socket in bid.sockets:
            by_socket.setdefault(socket, []).append(bid)
    for bid in bids:
        others = (other for socket in bid.sockets for other in by_socket[socket] if other.namespace != bid.namespace)
        if rivals := tuple(dict.fromkeys(others)):
            yield bid, rivals


def outdone(bids: Sequence[Bid]) -> Iterator[tuple[Bid, Rival]]:
    """The bids that register nothing new, for another namespace makes them as well. What the cluster gave to none of
    them the first has, which only the registry tells."""
    for bid, others in across_namespaces(bids):
        if not bid.allotted:
            first = min(others, key=lambda other: not other.allotted)
            yield bid, Rival(first.syncer, Right.ALLOTTED if first.allotted else Right.UNDECIDED)
