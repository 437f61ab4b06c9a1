"""Small stories of syncers that are served in another way than the pods of most stories. Random ones
meet some of them once in hundreds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from .apart import PodBehind, SyncerLeaves
from .entries import (
    EntriesServed,
    EntryDeleted,
    EntryGetsAddresses,
    GatewayApplied,
    IngressApplied,
    RouteApplied,
    RoutesPermitted,
)
from .events import Event
from .hostports import HostPodEnds, HostPodStarts, HostPodTells, HostsServed
from .nodeports import NodeJoins, NodeLeaves, NodesServed, NodeTurns
from .run import run
from .story import Story
from .test_stories import assert_kept, plain
from .troubles import OF_GATEWAYS, Call, Kind, Trouble


def starts(number: int, node: str, *, at: float = 0.0, told: bool = True) -> Event:
    """A pod of the app at the host port 30080 of a node."""
    return HostPodStarts(at=at, app="rating", number=number, node=node, port=30080, told=told)


def at_hosts(*events: Event) -> tuple[Event, ...]:
    """Pods at host ports, and the events of a story."""
    return HostsServed(at=0.0, app="rating"), *events


def at_nodes(*events: Event) -> tuple[Event, ...]:
    """A Service at the ports of two nodes of three, and the events of a story."""
    return (
        NodesServed(at=0.0, app="rating"),
        NodeJoins(at=0.0, node="front-1"),
        NodeJoins(at=0.0, node="front-2"),
        NodeJoins(at=0.0, node="back-1"),
        PodBehind(at=0.0, kind="node", app="rating"),
        *events,
    )


def at_ingresses(*events: Event) -> tuple[Event, ...]:
    """A Service at the hosts of two Ingresses, and the events of a story."""
    return (
        EntriesServed(at=0.0, app="rating", by="Ingress"),
        PodBehind(at=0.0, kind="entry", app="rating"),
        IngressApplied(at=0.0, app="rating", number=0, hosts=("shop.example.com",)),
        IngressApplied(at=0.0, app="rating", number=1, hosts=("pay.example.com",)),
        *events,
    )


def at_gateways(*events: Event) -> tuple[Event, ...]:
    """A Service at the addresses of a Gateway, and the events of a story."""
    hosts = ("192.0.2.11",)
    return (
        EntriesServed(at=0.0, app="rating", by="Gateway"),
        PodBehind(at=0.0, kind="entry", app="rating"),
        GatewayApplied(at=0.0, app="rating", number=0, listeners=(("HTTP", ""),)),
        EntryGetsAddresses(at=0.0, app="rating", number=0, by="Gateway", hosts=hosts),
        RouteApplied(at=0.0, app="rating", number=0, hosts=()),
        *events,
    )


FROM_ELSEWHERE = RouteApplied(
    at=0.0, app="rating", number=2, hosts=("other.example.com",), elsewhere=True
)


def deleted(kind: str, number: int = 0) -> Event:
    """The deletion of an entry."""
    return EntryDeleted(at=20, app="rating", number=number, kind=kind)


def long(events: tuple[Event, ...], *troubles: Trouble) -> Story:
    """A story that is long enough for second looks."""
    return replace(plain(events, *troubles), ends=110)


def unread(call: Call, kind: Kind = Kind.FORBIDDEN) -> Trouble:
    """A list that fails from before the event until long after it."""
    return Trouble(at=15, until=60, calls=frozenset({call}), kind=kind)


HOST, NODE, ENTRY = (f"a registration of a syncer {kind}" for kind in ("host", "node", "entry"))
LEFT = {kind: f"what stays of a syncer {kind} that is not served" for kind in ("node", "entry")}

STORIES: dict[str, tuple[Story, dict[str, int]]] = {
    "a pod moves to another node": (
        long(at_hosts(starts(0, "host-1"), starts(1, "host-2"), starts(1, "host-3", at=20))),
        {HOST: 3},
    ),
    "a pod moves to another node while the list of pods fails": (
        long(
            at_hosts(starts(0, "host-1"), starts(1, "host-2"), starts(1, "host-3", at=20)),
            unread(Call.PODS),
        ),
        {HOST: 3},
    ),
    "one of two pods at one host port ends": (
        long(
            at_hosts(
                starts(0, "host-1"),
                starts(1, "host-1"),
                HostPodEnds(at=20, app="rating", number=0),
            )
        ),
        {HOST: 1},
    ),
    "a pod is listed before the address of its node": (
        long(
            at_hosts(starts(0, "host-1", told=False), HostPodTells(at=20, app="rating", number=0))
        ),
        {HOST: 1},
    ),
    "the host port of a pod that ended is another app's": (
        # The list of Eureka is 30 s old at most, and the promise counts from then on.
        long(
            at_hosts(
                HostsServed(at=0.0, app="cart"),
                starts(0, "host-1"),
                HostPodEnds(at=60, app="rating", number=0),
                HostPodStarts(at=60, app="cart", number=0, node="host-1", port=30080),
            )
        ),
        {HOST: 2, "what had another pod's address, and went": 1},
    ),
    "a node leaves while the list of nodes fails": (
        long(
            at_nodes(NodeLeaves(at=20, node="front-1", how="ToBeDeletedByClusterAutoscaler")),
            unread(Call.NODES, Kind.EMPTY),
        ),
        {NODE: 2},
    ),
    "every node leaves": (
        long(
            at_nodes(
                NodeLeaves(at=20, node="front-1", how="deleted"),
                NodeLeaves(at=20, node="front-2", how="node.kubernetes.io/out-of-service"),
            )
        ),
        {NODE: 2, LEFT["node"]: 2},
    ),
    "a node turns unready": (
        long(at_nodes(NodeTurns(at=20, node="front-1", ready=False))),
        {NODE: 2},
    ),
    "an Ingress gets a host with TLS": (
        long(
            at_ingresses(
                IngressApplied(at=20, app="rating", number=1, hosts=("secure.example.com",))
            )
        ),
        {ENTRY: 3},
    ),
    "an Ingress is deleted while their list fails": (
        long(at_ingresses(deleted("Ingress")), unread(Call.INGRESSES)),
        {ENTRY: 2},
    ),
    "every Ingress is deleted": (
        long(at_ingresses(deleted("Ingress"), deleted("Ingress", 1))),
        {ENTRY: 2, LEFT["entry"]: 2},
    ),
    "a Gateway gets another address while their list fails": (
        long(
            at_gateways(
                EntryGetsAddresses(
                    at=20, app="rating", number=0, by="Gateway", hosts=("192.0.2.12",)
                )
            ),
            unread(Call.GATEWAYS),
        ),
        {ENTRY: 2},
    ),
    "a route of another namespace is permitted": (
        long(at_gateways(FROM_ELSEWHERE, RoutesPermitted(at=20, app="rating"))),
        {ENTRY: 2},
    ),
    "a permission goes while the list of them fails": (
        long(
            at_gateways(
                FROM_ELSEWHERE,
                RoutesPermitted(at=0.0, app="rating"),
                RoutesPermitted(at=20, app="rating", permitted=False),
            ),
            unread(Call.REFERENCE_GRANTS),
        ),
        {ENTRY: 2},
    ),
    "the Gateway API is not installed for a while": (
        long(
            at_gateways(RouteApplied(at=20, app="rating", number=0, hosts=("shop.example.com",))),
            replace(unread(Call.ROUTES, Kind.ABSENT_404), calls=frozenset(OF_GATEWAYS)),
        ),
        {ENTRY: 2},
    ),
    "a syncer is deleted, and its Gateway gets another address, between two lists of a pass": (
        long(
            at_gateways(
                SyncerLeaves(at=22, kind="entry", app="rating"),
                EntryGetsAddresses(
                    at=24, app="rating", number=0, by="Gateway", hosts=("192.0.2.12",)
                ),
            ),
            Trouble(
                at=19,
                until=24,
                calls=frozenset({Call.ROUTES}),
                kind=Kind.PAUSE_AFTER,
                strikes=1,
                seconds=7,
            ),
        ),
        {"a registration of a syncer that was deleted meanwhile": 1},
    ),
    "a Gateway does not accept its route any more": (
        long(at_gateways(RouteApplied(at=20, app="rating", number=0, hosts=(), accepted=False))),
        {ENTRY: 1, LEFT["entry"]: 1},
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_callers_reach_the_app_in_its_way(name: str) -> None:
    """Every promise is kept, and the story is about what its name says."""
    story, expected = STORIES[name]
    verdict = run(story)
    assert_kept(verdict)
    assert {what: verdict.reached.get(what, 0) for what in expected} == expected
