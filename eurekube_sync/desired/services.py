"""`mode: service`: each address of each Service is an instance, which is UP while an endpoint
behind it is ready."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from eurekube_sync.desired.catalog import Catalog, drain_of
from eurekube_sync.desired.claims import Found, Incomplete, Leaving
from eurekube_sync.desired.endpoints import (
    Backend,
    apart,
    backends,
    choose_port,
    chosen_ports,
    healthy,
    missing_slices,
    names_of,
    one_per_port,
    outdone_by_http,
    slices_in_use,
    stays,
    strays_of,
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
from eurekube_sync.desired.similar import written
from eurekube_sync.desired.spec import ENTRIES, ServiceAddress, Syncer
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import Endpoint, Node, Service, ServicePort
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.struct import replace

Ports: TypeAlias = tuple[ServicePort | None, ServicePort | None]
"""The plain and the secure port of a Service that a syncer asks for, at least one of them."""

_ALLOTTED = ("ClusterIP", "NodePort", "LoadBalancer")
"""The kinds of IP addresses that the cluster gives to one Service each. A load balancer's host name
is not one of them, because several cloud controllers copy it from an annotation of the Service."""


class _Behind(Struct, frozen=True):
    ready: bool
    nodes: Mapping[str, bool]  # for each node with an endpoint, whether one of these is ready

    def serves(self, service: Service, node: Node | None) -> bool:
        """Whether a call is answered at this node's address, or at an address without a node."""
        if node is None:
            return self.ready
        if not node.ready:
            return False
        if service.local:  # the node passes calls only to its own endpoints
            return self.nodes.get(node.name, False)
        return self.ready


def serve_services(
    spec: Syncer, services: Sequence[Service], catalog: Catalog, builder: Builder
) -> Iterator[tuple[InstanceKey, Found]]:
    """Yield the verdict of each address of each Service. Raises InvalidSyncer, SourceUnknown."""
    chosen = _chosen(spec, services, builder)
    behind, backed = _behind(spec, chosen, catalog)
    chosen = _of_one_port(chosen, backed, spec, builder)
    builder.warn(*apart(backed, spec.app_name))
    entries = _entries(spec, chosen, catalog)
    for service, _ in chosen:
        builder.remembered.add(service.name)
    for service, ports in chosen:
        if entries is not None and service.name not in entries:
            continue  # such as a Service for metrics, beside the one that callers enter by
        slices = catalog.slices_of(service)
        builder.warn_of_ports(*strays_of(service, slices))
        app = builder.app_name(service)
        missing = missing_slices(service, slices, family=None)
        if missing:
            builder.incomplete.append(Incomplete(reason=Reason.NO_ENDPOINT_SLICES, message=missing))
            continue
        if entries is None:
            sites = _places(service, ports, catalog, builder)
        else:
            sites = _entered_sites(service, ports, entries[service.name], builder)
        if isinstance(sites, str):
            builder.incomplete.append(Incomplete(reason=Reason.ADDRESS_PENDING, message=sites))
            continue
        served = behind[service.name]
        # With `externalTrafficPolicy: Local`, a node without an endpoint answers no call.
        only_nodes = served.nodes if service.local else {}
        for site in sites:
            if only_nodes and site.node and site.node not in only_nodes:
                continue
            yield _found(service, site, served, app, builder, catalog)


def _entries(
    spec: Syncer, chosen: Sequence[tuple[Service, Ports]], catalog: Catalog
) -> Mapping[str, Entries] | None:
    """Return where calls for the Services enter the cluster, of those that are entered; None if the
    syncer asks for an address of another kind. Raises InvalidSyncer, SourceUnknown."""
    address = spec.service.address
    if address not in ENTRIES:
        return None
    entries: dict[str, Entries] = {}
    for service, ports in chosen:
        if address == "Ingress":
            ingresses = catalog.ingresses.values()
            entries[service.name] = of_ingresses(service, ports, ingresses)
        else:
            # Where there is no Gateway API at all, a message about HTTPRoutes says the most.
            routes = list(catalog.routes(service.namespace).values())
            grants = catalog.reference_grants.values()
            others = with_routes_to(grants) - {service.namespace}
            for namespace in sorted(others):
                routes += catalog.routes(namespace).values()
            entries[service.name] = of_gateways(service, ports, routes, grants, catalog.gateway)
    return entered(entries)


def _places(
    service: Service, ports: Ports, catalog: Catalog, builder: Builder
) -> Sequence[Site] | str:
    """Return the same as `places`, with a warning of a ClusterIP. Raises InvalidSyncer,
    SourceUnknown."""
    spec = builder.spec
    nodes: Collection[Node] = ()
    kind = None  # of a fixed host name
    if spec.service.hostname is None:
        kind = address_kind(service, spec)
    if kind == "NodePort":
        nodes = catalog.nodes.values()
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
    hosts = [site.host for site in sites]
    families = _of_family(hosts, service, spec)
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
    candidates = _addressed(services, spec)
    having: dict[str, Mapping[str, ServicePort]] = {}
    for field, asked in spec.ports.items():
        try:
            having[field] = _having(candidates, asked, field, spec)
        except InvalidSyncer as error:
            having[field] = _stay(field, error, candidates, builder)
    chosen: list[tuple[Service, Ports]] = []
    for service in candidates:
        own: dict[str, ServicePort] = {}
        for field, ports in having.items():
            if service.name in ports:
                own[field] = ports[service.name]
        if len(own) == len(having):
            plain = own.get("port")
            secure = own.get("securePort")
            chosen.append((service, (plain, secure)))
    if not chosen:
        fault = f"no Service has both ports {spec.port!r} and {spec.secure_port!r}"
        raise InvalidSyncer(Reason.NO_SUCH_PORT, fault)
    return chosen


def _addressed(services: Sequence[Service], spec: Syncer) -> Sequence[Service]:
    """Return the Services with an address, or all if callers reach them elsewhere. Raises
    InvalidSyncer(NoAddress)."""
    # A headless Service has no address. It accompanies another Service, or callers reach it by a
    # fixed host name, an Ingress or a Gateway.
    addressed = [service for service in services if not service.headless]
    if addressed:
        return addressed
    if spec.service.hostname is not None or spec.service.address in ENTRIES:
        return services
    names = ", ".join(names_of(services))
    raise InvalidSyncer(
        Reason.NO_ADDRESS,
        f"Service {names} is headless and has no address: use mode pod, or select another Service",
    )


def _having(
    candidates: Sequence[Service], asked: str | int | None, field: str, spec: Syncer
) -> Mapping[str, ServicePort]:
    """Return the port of each Service that has the one of a field, by the Service's name. A number
    may be that of a port elsewhere. Raises InvalidSyncer if no Service has it."""
    having: dict[str, ServicePort] = {}
    for service in candidates:
        if _is_a_port_elsewhere(asked, service, spec):
            having[service.name] = ServicePort(name="", port=int(asked or 0))
            continue
        port = choose_port(service, asked, field=field)
        if port is not None:
            having[service.name] = port
    if not having:
        host = _host_elsewhere(candidates, spec)
        where = f"callers use at {host}" if host else "its pods listen on"
        # This raises an error that lists the ports.
        chosen_ports(candidates, asked, field=field, where=where)
    return having


def _host_elsewhere(services: Sequence[Service], spec: Syncer) -> str | None:
    """Return the host name in the spec, or else of the first Service of type ExternalName."""
    host = spec.service.hostname
    for service in services:
        host = host or service.external_name
    return host


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
    builder.remembered.update(names_of(candidates))
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
        names = _kept_at(error, chosen, backed, spec, builder)
    else:
        return chosen
    # Those that keep their port may still differ, which raises the error again.
    one_per_port([backend for backend in backed if backend.service in names])
    kept: list[tuple[Service, Ports]] = []
    for service, ports in chosen:
        if service.name in names:
            kept.append((service, ports))
    return kept


def _kept_at(
    error: InvalidSyncer,
    chosen: Sequence[tuple[Service, Ports]],
    backed: Sequence[Backend],
    spec: Syncer,
    builder: Builder,
) -> Collection[str]:
    """Return the names of the Services that keep their port, out of those that give the same pods
    different ones. Raises the error if nothing says which."""
    field, asked = next(iter(spec.ports.items()))
    names: set[str] = set()
    standing: set[str] = set()
    staying: set[str] = set()
    numbers: set[int] = set()
    for service, (plain, secure) in chosen:
        main = plain or secure
        assert main is not None  # a Service without any of them is not chosen
        offered = _numbers(main)
        names.add(service.name)
        if builder.may_stand_at(field, service, offered):
            standing.add(service.name)
        before = builder.stays_at(field, service, offered)
        if before:
            staying.add(service.name)
            numbers |= before
    if asked is None:
        outdone = outdone_by_http(backed)
        # An app that is registered on another port than http stays there.
        if outdone and standing.isdisjoint(outdone):
            return names - outdone
    if not staying:
        raise error
    builder.warn_of_ports(stays(error, numbers))
    return staying


def _numbers(port: ServicePort) -> Sequence[int]:
    """Return the numbers with which a port may be registered: the Service's, and the one on its
    nodes."""
    return [number for number in (port.port, port.node_port) if number]


def _is_a_port_elsewhere(asked: str | int | None, service: Service, spec: Syncer) -> bool:
    """Whether a field asks for a port of a host that is not the Service's own address. An Ingress
    or Gateway has ports of its own, if the field is not set."""
    if spec.service.address in ENTRIES:
        return not isinstance(asked, str)
    if spec.service.hostname is None and address_kind(service, spec) != "ExternalName":
        return False
    return isinstance(asked, int)


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
    if host is not None:  # a person wrote it, so it is not allotted
        return (replace(site, host=host),)
    kind = address_kind(service, spec)
    hosts: Sequence[str] = ()
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
            if not service.is_external_name and not service.headless:
                hosts = service.cluster_ips
    families = _of_family(hosts, service, spec)
    if not families:
        asked = f"{spec.address_family} " if spec.address_family else ""
        raise _no_address(service, f"no {asked}address of kind {kind}")
    sites: list[Site] = []
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
    families: dict[str, str | None] = {}
    for host in hosts:
        if host:
            families[host] = family_of(host)
    chosen = spec.address_family or _first_family(service, families.values())
    of_family: dict[str, str | None] = {}
    for host, family in families.items():
        if family is None or family == chosen:
            of_family[host] = family
    return of_family


def _first_family(service: Service, families: Collection[str | None]) -> str | None:
    """Return the first family of a Service that its addresses have, or else that of its first
    address; None if it has only host names."""
    for family in (*service.ip_families, *families):
        if family is not None and family in families:
            return family
    return None


def _node_ports(
    service: Service, ports: Ports, spec: Syncer, nodes: Collection[Node]
) -> Sequence[Site]:
    _check_node_ports(service, ports)
    at = spec.service
    families = (*service.ip_families, "IPv4")
    family = spec.address_family or families[0]
    wished = at.node_selector or {}
    selected = [node for node in nodes if wished.items() <= node.labels.items()]
    selected.sort(key=lambda node: node.name)
    sites: list[Site] = []
    leaving: list[str] = []
    for node in selected:
        usable = _addresses(node, family, at.node_address)
        if not usable:
            continue
        site = _at_node(service, ports, node, usable[0])
        sites.append(site)
        if node.leaves:
            leaving.append(_leaves(node))
    if len(leaving) < len(sites):
        return sites
    if leaving:
        # It may be the start of a new cluster beside the old one, so no app goes for that alone.
        fault = f"every node with an {family} address leaves: {leaving[0]}"
    elif nodes and not selected:
        labels = written(wished, between=", ")
        fault = f"no node has the labels of spec.service.nodeSelector, {labels}"
    else:
        kinds = at.node_address or "InternalIP or ExternalIP"
        fault = f"no node has an {family} address of kind {kinds}"
    raise InvalidSyncer(Reason.NO_ADDRESS, fault)


def _check_node_ports(service: Service, ports: Ports) -> None:
    """Raise InvalidSyncer(NoAddress) unless each port has a node port of its own."""
    # Only for these types does Kubernetes check the node port, and give it to one Service alone.
    if service.type not in ("NodePort", "LoadBalancer"):
        raise _no_address(service, "no node port")
    for port in ports:
        if port is not None and not port.node_port:
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
    if kind != "InternalIP":  # callers are outside of the cluster
        addresses += node.external
    if kind != "ExternalIP":
        addresses += node.internal
    return [address for address in addresses if family_of(address) == family]


def _no_address(service: Service, what: str) -> InvalidSyncer:
    fault = f"Service {service.name} is of type {service.type} and has {what}"
    return InvalidSyncer(Reason.NO_ADDRESS, fault)


def _behind(
    spec: Syncer, chosen: Sequence[tuple[Service, Ports]], catalog: Catalog
) -> tuple[Mapping[str, _Behind], Sequence[Backend]]:
    """Return what is behind each Service, and all backends on the main port. Raises
    InvalidSyncer(NoSuchPort)."""
    behind: dict[str, _Behind] = {}
    backed: list[Backend] = []
    asked = next(iter(spec.ports.values()))
    for service, (plain, secure) in chosen:
        if service.is_external_name:
            # It may have old slices, which no controller updates.
            behind[service.name] = _Behind(ready=True, nodes={})
            continue
        slices = catalog.slices_of(service)
        port = plain or secure
        endpoints: list[Endpoint] = []
        if port is None or _is_a_port_elsewhere(asked, service, spec):
            # It is not the Service's port, so all of its endpoints count.
            for piece in slices_in_use(service, slices):
                endpoints += piece.endpoints
        else:
            own = backends(service, port, slices, family=None)
            backed += own
            endpoints += [backend.endpoint for backend in own]
        behind[service.name] = _ready_at(service, endpoints, spec)
    return behind, backed


def _ready_at(service: Service, endpoints: Sequence[Endpoint], spec: Syncer) -> _Behind:
    """Return where one of a Service's endpoints is ready, or still serves."""
    keep = spec.terminating == "KeepWhileServing"
    nodes: dict[str, bool] = {}
    for endpoint in endpoints:
        node = endpoint.node
        serves_on = keep and endpoint.terminating and endpoint.serving
        ready = healthy(endpoint, service) or serves_on
        nodes[node] = ready or nodes.get(node, False)
    return _Behind(any(nodes.values()), nodes)


def _found(
    service: Service, site: Site, behind: _Behind, app: str, builder: Builder, catalog: Catalog
) -> tuple[InstanceKey, Found]:
    key = builder.key(app, site)
    node = None
    if site.node:
        node = catalog.nodes[site.node]
        if node.leaves:
            return key, Leaving(why=_leaves(node), terminating=True)
    up = behind.serves(service, node)
    if node is not None and not node.ready:
        why = f"node {node.name} is not ready"
    elif service.is_external_name:
        why = f"{site.label} is of type ExternalName"
    elif up:
        why = f"{site.label} has a ready endpoint"
    else:
        why = f"{site.label} has no ready endpoint"
    drain = drain_of((service,))
    builder.warn(*drain.ignored)
    cancel = builder.spec.not_ready == "Cancel"
    if not up and cancel and not drain.by:
        # With a cancel, the drain's mark would be lost.
        return key, Leaving(why=why, terminating=False)
    wanted = builder.wanted(key, site, up=up, why=why, drain=drain)
    return key, wanted
