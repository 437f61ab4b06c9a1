"""When Pods and Nodes are read: only where a syncer cannot do without them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eurekube_sync.model import EndpointSlice, Service
from eurekube_sync.needs import Needs, needs_of
from eurekube_sync.scope import Scope

from .build import DENIED, NS, endpoint, nowhere, piece, service, syncer, view

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
    """What one such syncer needs."""
    return needs_of(view([syncer(deleted=deleted, **spec)], services, slices), Scope())


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({}, False),
        (LABEL, True),
        ({"metadataFrom": [{"key": "a", "serviceLabel": "b"}]}, False),
        ({**LABEL, "port": ""}, False),  # it freezes
        ({**LABEL, "deleted": 1.0}, False),  # its keys need no metadata
    ],
)
def test_pods_are_read_for_metadata_of_pods(spec: dict[str, Any], pods: bool) -> None:
    """In the syncer's namespace."""
    assert needs(**spec) == Needs(pods=frozenset({NS} if pods else ()))


@pytest.mark.parametrize(
    ("spec", "kind", "nodes"),
    [
        ({"mode": "service"}, "ClusterIP", False),
        ({"mode": "service"}, "NodePort", True),
        ({"mode": "service", "deleted": 1.0}, "NodePort", True),  # its keys are the nodes' addresses
        ({"mode": "service", "service": {"address": "NodePort"}}, "LoadBalancer", True),
        ({"mode": "service", "service": {"address": "ClusterIP"}}, "NodePort", False),
        ({"mode": "service", "service": {"hostname": "a.b"}}, "NodePort", False),
        ({"mode": "service"}, "Quantum", False),  # it freezes
        ({}, "NodePort", False),
        (ZONE, "ClusterIP", False),
    ],
)
def test_nodes_are_read_for_node_ports(spec: dict[str, Any], kind: str, nodes: bool) -> None:
    """Auto goes by the Service's type."""
    assert needs(services=(service(type=kind),), **spec) == Needs(nodes=nodes)


def test_nodes_are_read_for_zones_that_the_endpoints_do_not_tell() -> None:
    """Endpoints objects know none; without a zone in the spec nobody asks."""
    assert needs(slices=OLD, **ZONE).nodes
    assert not needs(slices=OLD).nodes


def test_where_services_are_unknown_nothing_more_is_read() -> None:
    """The syncer is frozen anyway."""
    assert needs_of(view([syncer(**LABEL)], nowhere(DENIED), []), Scope()) == Needs()


def test_a_syncer_that_is_not_served_needs_nothing() -> None:
    """Out of scope, or without leave to select where it does."""
    assert needs_of(view([syncer(**LABEL)], [service()], []), Scope(syncer_class="other")) == Needs()
    away = {**LABEL, "selector": {"app": "rating", "namespace": "shared"}}
    assert needs(**away) == Needs()
    shared = view([syncer(**away)], [service(namespace="shared")], [])
    assert needs_of(shared, Scope(allowed=frozenset({(NS, "shared")}))) == Needs(pods=frozenset({"shared"}))
