"""`mode: service`: each Service is an instance, or one per address of it, UP while an endpoint behind it is ready."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from eurekube_sync.desired.addresses import Pending, Place, Ports, address_kind, elsewhere, places, ports_of
from eurekube_sync.desired.catalog import Catalog
from eurekube_sync.desired.drain import Drains
from eurekube_sync.desired.endpoints import Backend, backends, chosen_ports, healthy, one_per_pod, untold
from eurekube_sync.desired.instance import Builder, Site
from eurekube_sync.desired.presentation import family_of
from eurekube_sync.desired.spec import ServiceAddress, Syncer
from eurekube_sync.desired.verdicts import Found, Incomplete, Leaving
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import Endpoint, Node, Service
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True)
class _Behind:
    """What is registered behind a Service."""

    ready: bool
    nodes: Mapping[str, bool]
    """Each node that has an endpoint, and whether one of them is ready."""

    def serves(self, service: Service, place: Place) -> bool:
        """Whether a call to the place is answered."""
        if place.node is None:
            return self.ready
        return place.node.ready and (self.nodes.get(place.node.name, False) if service.local else self.ready)


_ALLOTTED = (ServiceAddress.CLUSTER_IP, ServiceAddress.NODE_PORT, ServiceAddress.LOAD_BALANCER)
"""Addresses that the cluster gives, each to one Service; all others a person writes. The name of a load
balancer is none: several cloud controllers copy it from an annotation of the Service."""


def serve_services(
    spec: Syncer, services: Sequence[Service], catalog: Catalog, builder: Builder
) -> Iterator[tuple[InstanceKey, Found] | Incomplete]:
    """What each address of each Service comes to. Raises InvalidSyncer, SourceUnknown."""
    chosen = _chosen(spec, services)
    behind = _behind(spec, chosen, catalog)
    for service, ports in chosen:
        app = builder.app_name(service)
        if why := untold(service, catalog.slices_of(service), family=None):
            yield Incomplete(reason="NoEndpointSlices", message=why)
            continue
        if any(piece.truncated for piece in catalog.slices_of(service)) and not behind[service.name].ready:
            message = f"the Endpoints of Service {service.name} are truncated, and no address in them is ready"
            yield Incomplete(reason="EndpointsTruncated", message=message, unknown=True)
            continue
        kind = None if spec.fixed_host else address_kind(service, spec)
        found = places(service, ports, spec, _nodes(catalog, kind))
        if isinstance(found, Pending):
            yield Incomplete(reason="AddressPending", message=found.message)
            continue
        if kind is ServiceAddress.CLUSTER_IP:
            builder.warn("a ClusterIP is rarely reachable from outside the cluster")
        for place in found:
            allotted = kind in _ALLOTTED and family_of(place.host) is not None
            outcome = _found(spec, service, place, behind[service.name], app, builder, catalog.drains, allotted)
            if outcome is not None:
                yield outcome


def _nodes(catalog: Catalog, kind: ServiceAddress | None) -> Collection[Node]:
    return catalog.nodes.values() if kind is ServiceAddress.NODE_PORT else ()


def _chosen(spec: Syncer, services: Sequence[Service]) -> list[tuple[Service, Ports]]:
    """The Services that have what is asked for, by name."""
    named = sorted(services, key=lambda service: service.name)
    # A headless Service has no address: it is the twin of another, or stands behind a fixed host name.
    addressed = [service for service in named if not service.headless]
    if not addressed and spec.fixed_host is None:
        names = ", ".join(service.name for service in named)
        raise InvalidSyncer(
            "NoAddress", f"Service {names} is headless and has no address: use mode pod, or select another Service"
        )
    candidates = addressed or named
    found = [(service, ports) for service in candidates if (ports := ports_of(service, spec)) is not None]
    if not found:
        fields: list[tuple[str, str | int | None]] = [("port", spec.port), ("securePort", spec.secure_port)]
        for name, port in [(name, port) for name, port in fields if port] or fields[:1]:
            chosen_ports(candidates, port, field=name, where=_where(spec, candidates))  # says which are there
        raise InvalidSyncer("NoSuchPort", f"no Service has both ports {spec.port!r} and {spec.secure_port!r}")
    return found


def _where(spec: Syncer, services: Sequence[Service]) -> str:
    """Whose a port is that no Service has, in words."""
    host = spec.fixed_host or next((service.external_name for service in services if service.external_name), "")
    return f"callers use at {host}" if host else "its pods listen on"


def _behind(spec: Syncer, chosen: Sequence[tuple[Service, Ports]], catalog: Catalog) -> Mapping[str, _Behind]:
    found: dict[str, _Behind] = {}
    same: list[Backend] = []
    for service, ports in chosen:
        # What is left of a Service that became a name elsewhere nobody looks at any more.
        slices = () if service.is_external_name else catalog.slices_of(service)
        port = ports.plain or ports.secure
        asked = spec.secure_port if spec.port is None else spec.port
        if port is None or (isinstance(asked, int) and elsewhere(service, spec)):  # a port there is none of the Service
            endpoints = [endpoint for piece in slices for endpoint in piece.endpoints]
            serving = [(endpoint.node, _serves(endpoint, service, spec)) for endpoint in endpoints]
        else:
            backed = backends(service, port, slices, family=None)
            same += backed
            keep = spec.keep_while_serving
            serving = [(b.node, b.ready or (keep and b.terminating and b.serving)) for b in backed]
        found[service.name] = _Behind(
            service.is_external_name or any(serves for _, serves in serving), _by_node(serving)
        )
    # The same pods on another port are the app's metrics or admin Service, not a second address of the app.
    one_per_pod(same)
    return found


def _serves(endpoint: Endpoint, service: Service, spec: Syncer) -> bool:
    return healthy(endpoint, service) or (spec.keep_while_serving and endpoint.terminating and endpoint.serving)


def _by_node(serving: Collection[tuple[str, bool]]) -> Mapping[str, bool]:
    nodes: dict[str, bool] = {}
    for node, serves in serving:
        nodes[node] = serves or nodes.get(node, False)
    return nodes


def _found(
    spec: Syncer,
    service: Service,
    place: Place,
    behind: _Behind,
    app: str,
    builder: Builder,
    drains: Drains,
    allotted: bool,
) -> tuple[InstanceKey, Found] | None:
    """None for a node that has no endpoint of a Service whose nodes answer for their own only."""
    if place.node is not None and service.local and behind.nodes and place.node.name not in behind.nodes:
        return None
    label = f"Service {service.name}" + (f" on node {place.node.name}" if place.node else "")
    site = Site(
        host=place.host,
        port=place.port,
        secure_port=place.secure_port,
        services=(service,),
        label=label,
        allotted=allotted,
    )
    key = builder.key(app, site)
    up = behind.serves(service, place)
    if place.node is not None and not place.node.ready:
        why = f"node {place.node.name} is not ready"
    elif service.is_external_name:
        why = f"{label} is of type ExternalName"
    else:
        why = f"{label} has {'a' if up else 'no'} ready endpoint"
    node = place.node.name if place.node else ""
    drain = drains.of((service,), None, node)
    for ignored in drains.ignored((service,), None, node):
        builder.warn(ignored)
    if not up and spec.cancel_not_ready and not drain.by:  # a cancel would forget the drain
        return key, Leaving(why=why, terminating=False)
    return key, builder.wanted(key, site, up=up, why=why, drain=drain)
