"""Lists of Pods and Nodes: a pass reads them only if a syncer needs them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eurekube_sync.desired.catalog import Kind
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.kubernetes import EndpointSlice, Service, SyncerObject
from eurekube_sync.model.sources import Complete
from eurekube_sync.observe.kubernetes import Needs, drain_needs_of, needs_of
from tests.unit.worlds.build import DENIED, NS, endpoint, nowhere, piece, service, syncer, view

LABEL: dict[str, Any] = {"metadataFrom": [{"key": "a", "podLabel": "b"}]}
ZONE: dict[str, Any] = {"zone": {"fromEndpoint": True}}
OLD = (piece(replace(endpoint(), zone=None)),)


def needs(
    *,
    services: tuple[Service, ...] = (service(),),
    slices: tuple[EndpointSlice, ...] = (piece(endpoint()),),
    deleted: float | None = None,
    **spec: Any,
) -> Needs:
    """The needs of one such syncer."""
    return needs_of(view([syncer(deleted=deleted, **spec)], services, slices), Scope())


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({}, False),
        (LABEL, True),
        ({"metadataFrom": [{"key": "a", "serviceLabel": "b"}]}, False),
        ({**LABEL, "port": ""}, False),  # it is not served
        ({**LABEL, "deleted": 1.0}, False),  # its keys need no metadata
    ],
)
def test_pods_are_read_for_metadata_of_pods(spec: dict[str, Any], pods: bool) -> None:
    """They are listed in the syncer's namespace."""
    assert needs(**spec) == Needs(pods=frozenset({NS} if pods else ()))


@pytest.mark.parametrize(
    ("spec", "kind", "nodes"),
    [
        ({"mode": "service"}, "ClusterIP", False),
        ({"mode": "service"}, "NodePort", True),
        (
            {"mode": "service", "deleted": 1.0},
            "NodePort",
            True,
        ),  # its keys have the nodes' addresses
        ({"mode": "service", "service": {"address": "NodePort"}}, "LoadBalancer", True),
        ({"mode": "service", "service": {"address": "ClusterIP"}}, "NodePort", False),
        ({"mode": "service", "service": {"hostname": "a.b"}}, "NodePort", False),
        ({"mode": "service"}, "Quantum", False),  # it is not served
        ({}, "NodePort", False),
        (ZONE, "ClusterIP", False),
    ],
)
def test_nodes_are_read_for_node_ports(spec: dict[str, Any], kind: str, nodes: bool) -> None:
    """With Auto the Service's type decides."""
    assert needs(services=(service(type=kind),), **spec) == Needs(nodes=nodes)


def test_nodes_are_read_for_zones_that_the_endpoints_do_not_name() -> None:
    """Endpoints objects have no zones. Without a zone in the spec no list is needed."""
    assert needs(slices=OLD, **ZONE).nodes
    assert not needs(slices=OLD).nodes


def test_where_services_are_unknown_nothing_more_is_read() -> None:
    """The syncer is not served then."""
    assert needs_of(view([syncer(**LABEL)], nowhere(DENIED), []), Scope()) == Needs()


def test_a_syncer_that_is_not_served_needs_nothing() -> None:
    """It is out of scope, or may not select in that namespace."""
    assert (
        needs_of(view([syncer(**LABEL)], [service()], []), Scope(syncer_class="other")) == Needs()
    )
    away = {**LABEL, "selector": {"app": "rating", "namespace": "shared"}}
    assert needs(**away) == Needs()
    shared = view([syncer(**away)], [service(namespace="shared")], [])
    assert needs_of(shared, Scope(allowed=frozenset({(NS, "shared")}))) == Needs(
        pods=frozenset({"shared"})
    )


BOTH = frozenset({Kind.POD, Kind.NODE})


def drain_needs(
    one: SyncerObject, wanted: frozenset[Kind] = BOTH, scope: Scope | None = None
) -> Needs:
    """The lists for drains that one syncer needs."""
    return drain_needs_of(view([one]), scope or Scope(), wanted)


def test_where_drains_are_looked_for() -> None:
    """Mode pod needs the Pods of its namespace, and the Nodes. A syncer that is being deleted, or
    is not ours, needs neither."""
    assert drain_needs(syncer()) == Needs(pods=frozenset({NS}), nodes=True)
    assert drain_needs(syncer(suspend=True)) == Needs(pods=frozenset({NS}), nodes=True)
    assert drain_needs(syncer(), frozenset({Kind.POD})) == Needs(pods=frozenset({NS}))
    assert drain_needs(syncer(), frozenset({Kind.NODE})) == Needs(nodes=True)
    assert drain_needs(syncer(), frozenset()) == Needs()
    assert drain_needs(syncer(mode="service")) == Needs()
    assert drain_needs(syncer(deleted=1.0)) == Needs()
    assert drain_needs(syncer(), scope=Scope(syncer_class="other")) == Needs()
    assert drain_needs(syncer(selector={"app": "rating", "namespace": "shared"})) == Needs()


def test_nodes_that_were_read_for_node_ports_show_drains_too() -> None:
    """Their drains concern these instances."""
    ports = replace(view([syncer(mode="service")]), nodes=Complete(data=()))
    assert drain_needs_of(ports, Scope(), BOTH) == Needs(nodes=True)
    assert drain_needs_of(ports, Scope(), frozenset({Kind.POD})) == Needs()
