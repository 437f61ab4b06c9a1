"""Lists of Pods and Nodes: a pass reads them only if a syncer needs them."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.kubernetes import EndpointSlice, Service, SyncerObject
from eurekube_sync.observe.kubernetes import Needs, drainable_in, needs_of
from tests.unit.worlds.build import DENIED, NS, endpoint, nowhere, piece, service, syncer, view

LABEL: dict[str, Any] = {"metadataFrom": [{"key": "a", "podLabel": "b"}]}
ZONE: dict[str, Any] = {"zone": {"fromEndpoint": True}}


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


def drainable(syncer_: SyncerObject, scope: Scope | None = None) -> frozenset[str]:
    """The namespaces whose Pods are looked at for drains, for one syncer."""
    return drainable_in(view([syncer_]), scope or Scope())


def test_where_drains_of_pods_are_looked_for() -> None:
    """Mode pod needs the Pods of its namespace. A syncer that is being deleted, or is not ours,
    does not."""
    assert drainable(syncer()) == {NS}
    assert drainable(syncer(suspend=True)) == {NS}
    assert drainable(syncer(mode="service")) == frozenset()
    assert drainable(syncer(deleted=1.0)) == frozenset()
    assert drainable(syncer(), Scope(syncer_class="other")) == frozenset()
    assert drainable(syncer(selector={"app": "rating", "namespace": "shared"})) == frozenset()
