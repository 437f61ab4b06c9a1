"""Defects in the place at which callers reach an app: host ports, node ports, Ingresses, Gateways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from eurekube_sync.adapters.kubernetes import routing
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.objects import NodeItem
from eurekube_sync.controller import record
from eurekube_sync.desired import catalog, entries, pods, services
from eurekube_sync.desired.endpoints import Identity
from eurekube_sync.desired.entries import Entries
from eurekube_sync.desired.hosts import site_at_host
from eurekube_sync.desired.instance import Builder, Site
from eurekube_sync.desired.spec import Syncer
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import Ingress, Node, Service
from eurekube_sync.model.sources import Complete, Listed, Source
from eurekube_sync.model.struct import replace

from .defect import Defect

Behind: Any = vars(services)["_Behind"]
RouteStatus: Any = vars(routing)["_RouteStatus"]
entered_sites: Callable[..., Any] = vars(services)["_entered_sites"]
entry: Callable[..., entries.Entry] = vars(entries)["_entry"]
list_nodes = KubernetesCluster.list_nodes
node_ports: Callable[..., Any] = vars(services)["_node_ports"]


def _at_their_own_addresses(_main: Any, sites: Mapping[Identity, Site], *_: Any) -> Any:
    return sites


def _or_nothing(source: Source[Any]) -> Complete[Any]:
    return source if isinstance(source, Complete) else Complete(data=())


def _read_as_empty(list_: Callable[..., Any]) -> Callable[..., Any]:
    """A list that fails has nothing."""

    def wrong(self: KubernetesCluster, *namespaces: Any) -> Any:
        listed = list_(self, *namespaces)
        read = {name: _or_nothing(source) for name, source in listed.by_namespace.items()}
        return Listed(by_namespace=read, elsewhere=_or_nothing(listed.elsewhere))

    return wrong


def _without_the_hostless(
    _main: Any, sites: Mapping[Identity, Site], known: Any, builder: Builder
) -> Mapping[Identity, Site]:
    """A pod whose node is unknown has no instance."""
    hosted: dict[Identity, Site] = {}
    for identity, site in sites.items():
        there = site_at_host(site, known.hosts, builder.spec.address_family)
        if not isinstance(there, str):
            hosted[identity] = there
    return hosted


def _where_its_name_was_before(site_of: Callable[..., Site | str]) -> Callable[..., Site | str]:
    known: dict[str, Site] = {}

    def wrong(site: Site, *rest: Any) -> Site | str:
        there = site_of(site, *rest)
        if site.pod is None or isinstance(there, str):
            return there
        return known.setdefault(site.pod.name, there)

    return wrong


def _every_node(node_ports: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(service: Service, ports: Any, spec: Syncer, nodes: Any) -> Any:
        at = msgspec.structs.replace(spec.service, node_selector=None)
        return node_ports(service, ports, msgspec.structs.replace(spec, service=at), nodes)

    return wrong


def _none_is_enough(node_ports: Callable[..., Any]) -> Callable[..., Any]:
    """A Service without a node has no address, and is served."""

    def wrong(*arguments: Any) -> Any:
        try:
            return node_ports(*arguments)
        except InvalidSyncer:
            return ()

    return wrong


def _without_a_look_at_the_node(self: Any, service: Service, node: Node | None) -> bool:
    if node is None or not service.local:
        return bool(self.ready)
    return bool(self.nodes.get(node.name, False))


def _nodes_or_none(self: KubernetesCluster) -> Any:
    return _or_nothing(list_nodes(self))


def _routed_or_not(entries: Mapping[str, Entries]) -> Mapping[str, Entries]:
    """A Service to which nothing routes is served as well."""
    return entries


def _none_for_now(*arguments: Any) -> Any:
    """An address that is yet to come is none."""
    sites = entered_sites(*arguments)
    return () if isinstance(sites, str) else sites


def _none_unrouted(service: Service, ports: Any, there: Entries, builder: Builder) -> Any:
    return entered_sites(service, ports, there, builder) if there.routed else ()


def _emptied(name: str) -> tuple[tuple[Any, str, Any], ...]:
    """A list that fails has nothing, and so its Services have no address."""
    list_ = vars(KubernetesCluster)[name]
    return (
        (KubernetesCluster, name, _read_as_empty(list_)),
        (services, "entered", _routed_or_not),
        (services, "_entered_sites", _none_for_now),
    )


def _at_the_plain_port(host: str, ingress: Ingress, warning: str) -> entries.Entry:
    return entry(host, replace(ingress, tls=()), warning)


def misplaced() -> tuple[Defect, ...]:
    """All of these defects, in the order of the table."""
    return (
        Defect(
            name="a pod is registered at its own address, and not at its node",
            about="host ports",
            patches=((pods, "_at_hosts", _at_their_own_addresses),),
        ),
        Defect(
            name="a list of Pods that failed says that no pod has a host port",
            about="host ports",
            patches=(
                (KubernetesCluster, "list_hosts", _read_as_empty(KubernetesCluster.list_hosts)),
                (pods, "_at_hosts", _without_the_hostless),
            ),
        ),
        Defect(
            name="the node of a pod is remembered by the pod's name",
            about="host ports",
            patches=((pods, "site_at_host", _where_its_name_was_before(site_at_host)),),
        ),
        Defect(
            name="the record of a pass forgets where pods are reached",
            about="host ports",
            patches=((record, "_OF_POD_STATUSES", ("conditions", "phase", "podIPs")),),
        ),
        Defect(
            name="a pod at a host port proves nothing about the pod that had it",
            about="host ports",
            patches=((catalog, "_at_node", lambda *_: []),),
        ),
        Defect(
            name="callers are sent to nodes that leave",
            about="node ports",
            patches=((NodeItem, "_leaves", lambda _: ""),),
        ),
        Defect(
            name="callers are sent to nodes that are not ready",
            about="node ports",
            patches=((Behind, "serves", _without_a_look_at_the_node),),
        ),
        Defect(
            name="the labels of nodes are not looked at",
            about="node ports",
            patches=((services, "_node_ports", _every_node(node_ports)),),
        ),
        Defect(
            name="an app goes with the last node that stays",
            about="node ports",
            patches=((services, "_node_ports", _none_is_enough(node_ports)),),
        ),
        Defect(
            name="a list of Nodes that failed says that there is none",
            about="node ports",
            patches=(
                (KubernetesCluster, "list_nodes", _nodes_or_none),
                (services, "_node_ports", _none_is_enough(node_ports)),
            ),
        ),
        Defect(
            name="an app goes with the last Ingress that routes to it",
            about="ingresses",
            patches=(
                (services, "entered", _routed_or_not),
                (services, "_entered_sites", _none_unrouted),
            ),
        ),
        Defect(
            name="an app goes while an Ingress waits for its address",
            about="ingresses",
            patches=((services, "_entered_sites", _none_for_now),),
        ),
        Defect(
            name="a list of Ingresses that failed says that there is none",
            about="ingresses",
            patches=_emptied("list_ingresses"),
        ),
        Defect(
            name="TLS of an Ingress is not looked at",
            about="ingresses",
            patches=((entries, "_entry", _at_the_plain_port),),
        ),
        Defect(
            name="a list of HTTPRoutes that failed says that there is none",
            about="gateways",
            patches=_emptied("list_routes"),
        ),
        Defect(
            name="a list of ReferenceGrants that failed says that there is none",
            about="gateways",
            patches=_emptied("list_reference_grants"),
        ),
        Defect(
            name="a route of another namespace needs no ReferenceGrant for the Service",
            about="gateways",
            patches=((entries, "_permits", lambda *_: True),),
        ),
        Defect(
            name="a list of Gateways that failed says that there is none",
            about="gateways",
            patches=_emptied("list_gateways"),
        ),
        Defect(
            name="a route that its Gateway did not accept is called",
            about="gateways",
            patches=((RouteStatus, "accepts", lambda *_: True),),
        ),
    )
