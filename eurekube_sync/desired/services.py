"""`mode: service`: each address of each Service is an instance, which is UP while an endpoint
behind it is ready."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from eurekube_sync.desired.catalog import Catalog, drain_of
from eurekube_sync.desired.claims import Found, Incomplete, Leaving
from eurekube_sync.desired.endpoints import (
    Backend,
    Numbers,
    apart,
    backends,
    choose_port,
    chosen_ports,
    healthy,
    missing_slices,
    one_per_port,
    outdone_by_http,
    slices_in_use,
    stays,
    strays_of,
    without_common_pods,
)
from eurekube_sync.desired.entries import (
    Entries,
    entered,
    of_gateways,
    of_ingresses,
    sites_at,
    with_routes_to,
)
from eurekube_sync.desired.instance import Builder, Site, family_of
from eurekube_sync.desired.spec import ENTRIES, ServiceAddress, Syncer
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import Node, Service, ServicePort
from eurekube_sync.model.reasons import Reason

Ports: TypeAlias = tuple[ServicePort | None, ServicePort | None]
"""The plain and the secure port of a Service that a syncer asks for, at least one of them."""

_ALLOTTED = ("ClusterIP", "NodePort", "LoadBalancer")
"""The kinds of IP addresses that the cluster gives to one Service each. A load balancer's host name
is not one of them, because several cloud controllers copy it from an annotation of the Service."""


@dataclass(frozen=True, slots=True)
class _Behind:
    ready: bool
    nodes: Mapping[str, bool]  # for each node with an endpoint, whether one of these is ready

    def serves(self, service: Service, node: Node | None) -> bool:
        """Whether a call is answered at this node's address, or at an address without a node."""
        if node is None:
            return self.ready
        if not node.ready:
            return False
        if service.local:
            return self.nodes.get(node.name, False)
        return self.ready


def serve_services(
    spec: Syncer, services: Sequence[Service], catalog: Catalog, builder: Builder
) -> Iterator[tuple[InstanceKey, Found]]:
    """Yield the verdict of each address of each Service. Raises InvalidSyncer, SourceUnknown."""
    chosen = _chosen(spec, services, builder)
    behind, backed = _behind(spec, chosen, catalog)
    chosen = _of_one_port(chosen, backed, spec, builder)
    separate = without_common_pods(backed)
    if separate is not None and spec.app_name is not None:
        builder.warn(apart(separate, spec.app_name))
    entries = _entries(spec, chosen, catalog)
    builder.remembered.update(service.name for service, _ in chosen)
    for service, ports in chosen:
        if entries is not None and service.name not in entries:
            continue
        builder.warn_of_ports(*strays_of(service, catalog.slices_of(service)))
        app = builder.app_name(service)
        if why := missing_slices(service, catalog.slices_of(service), family=None):
            builder.incomplete.append(Incomplete(reason=Reason.NO_ENDPOINT_SLICES, message=why))
            continue
        if entries is None:
            sites = _places(service, ports, catalog, builder)
        else:
            sites = _entered_sites(service, ports, entries[service.name], builder)
        if isinstance(sites, str):
            builder.incomplete.append(Incomplete(reason=Reason.ADDRESS_PENDING, message=sites))
            continue
        served = behind[service.name]
        for site in sites:
            # With `externalTrafficPolicy: Local`, a node without an endpoint answers no call.
            if service.local and site.node and served.nodes and site.node not in served.nodes:
                continue
            yield _found(service, site, served, app, builder, catalog)


def _entries(
    spec: Syncer, chosen: Sequence[tuple[Service, Ports]], catalog: Catalog
) -> Mapping[str, Entries] | None:
    """Return where calls for the Services enter the cluster, of those that are entered; None if the
    syncer asks for an address of another kind. Raises InvalidSyncer, SourceUnknown."""
    if spec.service.address not in ENTRIES:
        return None
    entries: dict[str, Entries] = {}
    for service, ports in chosen:
        if spec.service.address == "Ingress":
            entries[service.name] = of_ingresses(service, ports, catalog.ingresses.values())
        else:
            # Where there is no Gateway API at all, a message about HTTPRoutes says the most.
            routes = [*catalog.routes(service.namespace).values()]
            grants = catalog.reference_grants.values()
            for namespace in sorted(with_routes_to(grants) - {service.namespace}):
                routes += catalog.routes(namespace).values()
            entries[service.name] = of_gateways(service, ports, routes, grants, catalog.gateway)
    return entered(entries)


def _places(
    service: Service, ports: Ports, catalog: Catalog, builder: Builder
) -> Sequence[Site] | str:
    """Return the same as `places`, with a warning of a ClusterIP. Raises InvalidSyncer,
    SourceUnknown."""
    spec = builder.spec
    kind = None if spec.service.hostname is not None else address_kind(service, spec)
    nodes = catalog.nodes.values() if kind == "NodePort" else ()
    sites = places(service, ports, spec, nodes)
    if kind == "ClusterIP":
        builder.warn("a ClusterIP is rarely reachable from outside the cluster")
    return sites


def _entered_sites(
    service: Service, ports: Ports, entries: Entries, builder: Builder
) -> Sequence[Site] | str:
    """Return the same as `places`, of a Service with entries. Raises InvalidSyncer."""
    spec = builder.spec
    builder.warn(*_entry_warnings(entries))
    sites = sites_at(_site(service, ports), entries, spec)
    if isinstance(sites, str):
        return sites
    families = _of_family([site.host for site in sites], service, spec)
    if not families:
        asked = f"no {spec.address_family} address of kind {spec.service.address}"
        raise _no_address(service, asked)
    return [site for site in sites if site.host in families]


def _entry_warnings(entries: Entries) -> Iterator[str]:
    if entries.why and entries.entries:
        yield entries.why
    for entry in entries.entries:
        if entry.warning:
            yield entry.warning


def _chosen(
    spec: Syncer, services: Sequence[Service], builder: Builder
) -> list[tuple[Service, Ports]]:
    """Return the Services to register, with their ports. Raises InvalidSyncer if there is none."""
    named = sorted(services, key=lambda service: service.name)
    # A headless Service has no address. It accompanies another Service, or callers reach it by a
    # fixed host name, an Ingress or a Gateway.
    addressed = [service for service in named if not service.headless]
    elsewhere = spec.service.hostname is not None or spec.service.address in ENTRIES
    if not addressed and not elsewhere:
        names = ", ".join(service.name for service in named)
        raise InvalidSyncer(
            Reason.NO_ADDRESS,
            f"Service {names} is headless and has no address: use mode pod, or select another "
            "Service",
        )
    candidates = addressed or named
    having: dict[str, Mapping[str, ServicePort]] = {}
    for field, asked in spec.ports.items():
        try:
            having[field] = _having(candidates, asked, field, spec)
        except InvalidSyncer as error:
            having[field] = _stay(field, error, candidates, builder)
    chosen: list[tuple[Service, Ports]] = []
    for service in candidates:
        name = service.name
        if all(name in ports for ports in having.values()):
            plain = having["port"][name] if "port" in having else None
            secure = having["securePort"][name] if "securePort" in having else None
            chosen.append((service, (plain, secure)))
    if not chosen:
        raise InvalidSyncer(
            Reason.NO_SUCH_PORT, f"no Service has both ports {spec.port!r} and {spec.secure_port!r}"
        )
    return chosen


def _having(
    candidates: Sequence[Service], asked: str | int | None, field: str, spec: Syncer
) -> Mapping[str, ServicePort]:
    """Return the port of each Service that has the one of a field, by the Service's name. A number
    may be that of a port elsewhere. Raises InvalidSyncer if no Service has it."""
    having: dict[str, ServicePort] = {}
    for service in candidates:
        if _is_a_port_elsewhere(asked, service, spec):
            having[service.name] = ServicePort(name="", port=int(asked or 0))
        elif (port := choose_port(service, asked, field=field)) is not None:
            having[service.name] = port
    if not having:
        hosts = [spec.service.hostname, *(service.external_name for service in candidates)]
        host = next(filter(None, hosts), None)
        where = f"callers use at {host}" if host else "its pods listen on"
        # This raises an error that lists the ports.
        chosen_ports(candidates, asked, field=field, where=where)
    return having


def _stay(
    field: str, error: InvalidSyncer, candidates: Sequence[Service], builder: Builder
) -> Mapping[str, ServicePort]:
    """Return the ports with the number at which each Service was served before, although `field`
    cannot be resolved any more, as in `pods._stay`. Raises the error if no Service has it."""
    stayed: dict[str, ServicePort] = {}
    all_numbers: set[int] = set()
    for service in candidates:
        for port in service.ports:
            numbers = builder.stays_at(field, service, _numbers(port))
            if numbers and service.name not in stayed:
                stayed[service.name] = port
                all_numbers |= numbers
    if not stayed:
        raise error
    builder.warn_of_ports(stays(error, all_numbers))
    builder.remembered.update(service.name for service in candidates)
    return stayed


def _of_one_port(
    chosen: list[tuple[Service, Ports]], backed: Sequence[Backend], spec: Syncer, builder: Builder
) -> list[tuple[Service, Ports]]:
    """Return the Services without those that give the same pods another port, such as a Service for
    metrics. If the field is not set, a port named http is the default, unless the instances are
    registered on another one. Raises InvalidSyncer(AmbiguousService)."""
    try:
        one_per_port(backed)
    except InvalidSyncer as error:
        kept = _kept_at(error, chosen, backed, spec, builder)
        one_per_port(backend for backend in backed if backend.service in kept)
        return [(service, ports) for service, ports in chosen if service.name in kept]
    return chosen


def _kept_at(
    error: InvalidSyncer,
    chosen: Sequence[tuple[Service, Ports]],
    backed: Sequence[Backend],
    spec: Syncer,
    builder: Builder,
) -> Collection[str]:
    """Return the names of the Services that keep their port, out of those that give the same pods
    different ones. Raises the error if nothing says which."""
    field = next(iter(spec.ports))
    outdone = outdone_by_http(backed) if spec.ports[field] is None else frozenset()
    standing: set[str] = set()
    staying: dict[str, Numbers] = {}
    for service, (plain, secure) in chosen:
        main = plain or secure
        assert main is not None  # a Service without any of them is not chosen
        offered = _numbers(main)
        if builder.may_stand_at(field, service, offered):
            standing.add(service.name)
        if numbers := builder.stays_at(field, service, offered):
            staying[service.name] = numbers
    if outdone and standing.isdisjoint(outdone):
        return {service.name for service, _ in chosen} - outdone
    if not staying:
        raise error
    builder.warn_of_ports(stays(error, frozenset().union(*staying.values())))
    return staying.keys()


def _numbers(port: ServicePort) -> Sequence[int]:
    """Return the numbers with which a port may be registered: the Service's, and the one on its
    nodes."""
    return [number for number in (port.port, port.node_port) if number]


def _is_a_port_elsewhere(asked: str | int | None, service: Service, spec: Syncer) -> bool:
    """Whether a field asks for a port of a host that is not the Service's own address. An Ingress
    or Gateway has ports of its own, if the field is not set."""
    if spec.service.address in ENTRIES:
        return not isinstance(asked, str)
    elsewhere = spec.service.hostname is not None or address_kind(service, spec) == "ExternalName"
    return elsewhere and isinstance(asked, int)


def address_kind(service: Service, spec: Syncer) -> ServiceAddress:
    """Return the kind of address in the spec; `Auto` goes by the Service's type. Raises
    InvalidSyncer for an unknown one."""
    if spec.service.address not in (None, "Auto"):
        return spec.service.address
    by_type: Sequence[ServiceAddress] = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
    for kind in by_type:
        if kind == service.type:
            return kind
    raise _no_address(service, "no address that eurekube-sync knows")


def places(
    service: Service, ports: Ports, spec: Syncer, nodes: Collection[Node]
) -> Sequence[Site] | str:
    """Return the addresses of a Service, never none, or a clause that says why it has no address
    yet. Raises InvalidSyncer."""
    host = spec.service.hostname
    site = _site(service, ports)
    if host is not None:
        return (replace(site, host=host),)
    kind = address_kind(service, spec)
    match kind:
        case "NodePort":
            return _node_ports(service, ports, spec, nodes)
        case "LoadBalancer":
            if service.type != "LoadBalancer":
                raise _no_address(service, "no load balancer")
            if not service.load_balancer:
                return f"Service {service.name} waits for the address of its load balancer"
            hosts = service.load_balancer
        case "ExternalIP":
            hosts = service.external_ips
        case "ExternalName":
            hosts = (service.external_name.rstrip("."),)
        case _:
            hosts = () if service.is_external_name or service.headless else service.cluster_ips
    families = _of_family(hosts, service, spec)
    if not families:
        asked = f"{spec.address_family} " if spec.address_family else ""
        raise _no_address(service, f"no {asked}address of kind {kind}")
    sites = []
    for host, family in families.items():
        allotted = kind in _ALLOTTED and family is not None
        sites.append(replace(site, host=host, allotted=allotted))
    return sites


def _site(service: Service, ports: Ports) -> Site:
    """Return a site without a host, with a Service's own ports."""
    plain, secure = ports
    return Site(
        host="",
        port=plain.port if plain else None,
        secure_port=secure.port if secure else None,
        services=(service,),
        label=f"Service {service.name}",
    )


def _of_family(hosts: Sequence[str], service: Service, spec: Syncer) -> Mapping[str, str | None]:
    """Return the host names, and the addresses of one family: that of the spec, or the first one
    with an address."""
    families = {host: family_of(host) for host in hosts if host}
    wished = [*service.ip_families, *families.values()]
    if spec.address_family:
        wished = [spec.address_family]
    known = {family for family in families.values() if family}
    chosen = next((family for family in wished if family in known), None)
    return {host: family for host, family in families.items() if family in (None, chosen)}


def _node_ports(
    service: Service, ports: Ports, spec: Syncer, nodes: Collection[Node]
) -> Sequence[Site]:
    _check_node_ports(service, ports)
    family = spec.address_family or (*service.ip_families, "IPv4")[0]
    kind = spec.service.node_address
    wished = spec.service.node_selector or {}
    selected = [node for node in nodes if wished.items() <= node.labels.items()]
    sites: list[Site] = []
    leaving: list[str] = []
    for node in sorted(selected, key=lambda node: node.name):
        usable = _addresses(node, family, kind)
        if not usable:
            continue
        sites.append(_at_node(service, ports, node, usable[0]))
        if node.leaves:
            leaving.append(_leaves(node))
    if len(leaving) < len(sites):
        return sites
    kinds = kind or "InternalIP or ExternalIP"
    fault = f"no node has an {family} address of kind {kinds}"
    if leaving:
        # It may be the start of a new cluster beside the old one, so no app goes for that alone.
        fault = f"every node with an {family} address leaves: {leaving[0]}"
    elif nodes and not selected:
        labels = ", ".join(f"{label}={value}" for label, value in sorted(wished.items()))
        fault = f"no node has the labels of spec.service.nodeSelector, {labels}"
    raise InvalidSyncer(Reason.NO_ADDRESS, fault)


def _check_node_ports(service: Service, ports: Ports) -> None:
    """Raise InvalidSyncer(NoAddress) unless each port has a node port of its own."""
    # Only for these types does Kubernetes check the node port, and give it to one Service alone.
    checked = service.type in ("NodePort", "LoadBalancer")
    if not checked or any(port and not port.node_port for port in ports):
        raise _no_address(service, "no node port")


def _at_node(service: Service, ports: Ports, node: Node, address: str) -> Site:
    plain, secure = ports
    return Site(
        host=address,
        port=plain.node_port if plain else None,
        secure_port=secure.node_port if secure else None,
        node=node.name,
        services=(service,),
        label=f"Service {service.name} on node {node.name}",
        allotted=True,
    )


def _leaves(node: Node) -> str:
    return f"node {node.name} {node.leaves}"


def _addresses(node: Node, family: str, kind: str | None) -> Sequence[str]:
    """Return the addresses of a node of one family, of one kind or of both, the external ones
    first."""
    addresses: list[str] = []
    if kind != "InternalIP":
        addresses += node.external
    if kind != "ExternalIP":
        addresses += node.internal
    return [address for address in addresses if family_of(address) == family]


def _no_address(service: Service, what: str) -> InvalidSyncer:
    return InvalidSyncer(
        Reason.NO_ADDRESS, f"Service {service.name} is of type {service.type} and has {what}"
    )


def _behind(
    spec: Syncer, chosen: Sequence[tuple[Service, Ports]], catalog: Catalog
) -> tuple[Mapping[str, _Behind], Sequence[Backend]]:
    """Return what is behind each Service, and all backends on the main port. Raises
    InvalidSyncer(NoSuchPort)."""
    behind: dict[str, _Behind] = {}
    backed: list[Backend] = []
    keep = spec.terminating == "KeepWhileServing"
    asked = next(iter(spec.ports.values()))
    for service, (plain, secure) in chosen:
        # A Service that became an ExternalName may have old slices, which no controller updates.
        slices = () if service.is_external_name else catalog.slices_of(service)
        port = plain or secure
        if port is None or _is_a_port_elsewhere(asked, service, spec):
            # It is not the Service's port, so all of its endpoints count.
            used = slices_in_use(service, slices)
            endpoints = [endpoint for piece in used for endpoint in piece.endpoints]
        else:
            its_own = backends(service, port, slices, family=None)
            backed += its_own
            endpoints = [backend.endpoint for backend in its_own]
        nodes: dict[str, bool] = {}
        for endpoint in endpoints:
            serves_on = keep and endpoint.terminating and endpoint.serving
            ready = healthy(endpoint, service) or serves_on
            nodes[endpoint.node] = ready or nodes.get(endpoint.node, False)
        behind[service.name] = _Behind(service.is_external_name or any(nodes.values()), nodes)
    return behind, backed


def _found(
    service: Service, site: Site, behind: _Behind, app: str, builder: Builder, catalog: Catalog
) -> tuple[InstanceKey, Found]:
    key = builder.key(app, site)
    node = catalog.nodes[site.node] if site.node else None
    if node is not None and node.leaves:
        return key, Leaving(why=_leaves(node), terminating=True)
    up = behind.serves(service, node)
    if node is not None and not node.ready:
        why = f"node {node.name} is not ready"
    elif service.is_external_name:
        why = f"{site.label} is of type ExternalName"
    else:
        why = f"{site.label} has {'a' if up else 'no'} ready endpoint"
    drain = drain_of((service,))
    builder.warn(*drain.ignored)
    if not up and builder.spec.not_ready == "Cancel" and not drain.by:
        # With a cancel, the drain's mark would be lost.
        return key, Leaving(why=why, terminating=False)
    return key, builder.wanted(key, site, up=up, why=why, drain=drain)
