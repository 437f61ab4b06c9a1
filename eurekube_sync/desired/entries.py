"""`service.address: Ingress` and `Gateway`: the hosts and ports at which calls for a Service enter the
cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set

from msgspec import Struct

from eurekube_sync.desired.instance import Site
from eurekube_sync.desired.spec import Syncer
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import (
    Gateway,
    HttpRoute,
    Ingress,
    IngressPath,
    Listener,
    ReferenceGrant,
    RouteParent,
    RoutePath,
    Service,
    ServicePort,
)
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.struct import replace

_HTTP, _HTTPS = 80, 443  # an Ingress is open at these, and says so nowhere


class Entry(Struct, frozen=True, kw_only=True):
    """A host at which calls for a Service enter the cluster."""

    host: str
    port: int | None  # for plain HTTP
    secure_port: int | None  # for TLS
    warning: str = ""


class Entries(Struct, frozen=True, kw_only=True):
    """The entries of one Service, and why there may be more of them, or are none."""

    entries: Sequence[Entry] = ()
    why: str = ""  # a clause; empty if nothing is missing
    routed: bool = False  # whether something routes to the Service


def of_ingresses(
    service: Service, ports: Collection[ServicePort | None], ingresses: Collection[Ingress]
) -> Entries:
    """Return the hosts of the Ingresses that route to a Service, or to one of these `ports` of it.

    | a rule or default backend with        | is open at                                          |
    |---------------------------------------|-----------------------------------------------------|
    | a host                                | the host, port 80                                   |
    | a host in `tls`, or `tls` for all     | the host, port 443 alone: 80 is usually a redirect  |
    | a host with a wildcard                | nothing: nobody can call `*.example.com`            |
    | no host                               | the Ingress's addresses in its status               |
    | no host, and no address yet           | nothing yet                                         |
    """
    entries: dict[str, Entry] = {}
    missing: list[str] = []
    routed = False
    for ingress in sorted(ingresses, key=lambda ingress: ingress.name):
        by = f"Ingress {ingress.name}"
        paths_of: dict[str, set[str]] = {}
        for path in ingress.paths:
            if _leads_to(path, service, ports):
                paths_of.setdefault(path.host, set()).add(path.path)
        for host in sorted(paths_of):
            routed = True
            if "*" in host:  # nobody can call it
                missing.append(f"{by} has the host {host}, which is no address")
                continue
            addresses = [host] if host else ingress.addresses
            if not addresses:
                missing.append(f"{by} waits for its address")
            warning = _warning(by, service, host, paths_of[host])
            for address in addresses:
                # The first Ingress by name has a host that several have.
                entries.setdefault(address, _entry(address, ingress, warning))
    if not routed:
        missing.append(f"no Ingress routes to Service {service.name}")
    return _entries(entries, missing, routed=routed)


def of_gateways(
    service: Service,
    ports: Collection[ServicePort | None],
    routes: Collection[HttpRoute],
    grants: Collection[ReferenceGrant],
    gateway_of: Callable[[str, str], Gateway | None],
) -> Entries:
    """Return the hosts of the Gateways whose HTTPRoutes lead to a Service, or to one of these
    `ports` of it. `grants` are of the Service's namespace: a route of another one leads to it only
    if one of them permits that. `gateway_of` finds a Gateway by namespace and name.

    | a listener of a Gateway that accepted the route | is open at                             |
    |-------------------------------------------------|----------------------------------------|
    | for a host that the route has as well           | that host, at the listener's port      |
    | for all hosts, or a route for all hosts         | the hosts of the other                 |
    | for all hosts, and a route for all hosts        | the Gateway's addresses in its status  |
    | for a wildcard alone                            | nothing: nobody can call it            |
    """
    entries: dict[str, Entry] = {}
    missing: list[str] = []
    routed = False
    by_name = sorted(routes, key=lambda route: (route.namespace, route.name))
    for route in by_name:
        paths = _paths_to(service, ports, route)
        if not paths:
            continue
        by = f"HTTPRoute {route.name}"
        if route.namespace != service.namespace:
            # In the Gateway API, only a grant in the Service's namespace permits such a route.
            by = f"HTTPRoute {route.namespace}/{route.name}"
            if not any(_permits(grant, route, service) for grant in grants):
                missing.append(f"no ReferenceGrant permits {by} to lead to Service {service.name}")
                continue
        routed = True
        for host, listener in _open_to(route, by, gateway_of, missing):
            warning = _warning(by, service, host, paths)
            entries[host] = _with_listener(entries.get(host), host, listener, warning)
    if not routed:
        needs = "one of another namespace needs a ReferenceGrant"
        missing.append(f"no HTTPRoute leads to Service {service.name}; {needs}")
    return _entries(entries, missing, routed=routed)


def _open_to(
    route: HttpRoute,
    by: str,
    gateway_of: Callable[[str, str], Gateway | None],
    missing: list[str],
) -> Iterator[tuple[str, Listener]]:
    """Yield each host and listener by which calls come to a route, and add what is missing. `by`
    names the route."""
    if not route.parents:
        missing.append(f"{by} names no Gateway")
    for parent in route.parents:
        at = f"Gateway {parent.namespace}/{parent.name}"
        gateway = gateway_of(parent.namespace, parent.name)
        if gateway is None:
            missing.append(f"{at} of {by} does not exist")
            continue
        if not parent.accepted:
            missing.append(f"{at} has not accepted {by}")
            continue
        listeners = _listeners(gateway, parent, route)
        if not listeners:
            missing.append(f"{at} has no listener for {by}")
        for listener in listeners:
            for host in _hosts(route, listener, gateway, at, missing):
                yield host, listener


def _entries(entries: Mapping[str, Entry], missing: Sequence[str], *, routed: bool) -> Entries:
    hosts = list(entries.values())
    whys = dict.fromkeys(missing)  # each once
    return Entries(entries=hosts, why="; ".join(whys), routed=routed)


def _paths_to(
    service: Service, ports: Collection[ServicePort | None], route: HttpRoute
) -> set[str]:
    """Return the paths by which a route leads to the Service, or to one of its `ports`."""
    paths: set[str] = set()
    for path in route.paths:
        if path.namespace == service.namespace and _leads_to(path, service, ports):
            paths.add(path.path)
    return paths


def with_routes_to(grants: Collection[ReferenceGrant]) -> Set[str]:
    """Return the namespaces whose HTTPRoutes may lead to Services of a namespace with these
    grants."""
    namespaces: set[str] = set()
    for grant in grants:
        namespaces |= grant.routes_of
    return namespaces


def _permits(grant: ReferenceGrant, route: HttpRoute, service: Service) -> bool:
    """Whether a grant lets a route of another namespace lead to the Service."""
    for_service = not grant.services or service.name in grant.services
    return for_service and route.namespace in grant.routes_of


def _listeners(gateway: Gateway, parent: RouteParent, route: HttpRoute) -> Sequence[Listener]:
    """Return the listeners of a Gateway to which a route is attached."""
    listeners: list[Listener] = []
    for listener in gateway.listeners:
        is_named = parent.section in ("", listener.name)
        if not is_named or parent.port not in (None, listener.port):
            continue
        for host in route.hostnames or ("",):
            if _common(host, listener.hostname) is not None:
                listeners.append(listener)
                break
    return listeners


def _hosts(
    route: HttpRoute, listener: Listener, gateway: Gateway, at: str, missing: list[str]
) -> Sequence[str]:
    """Return the hosts at which a listener is open for a route, and add what is missing."""
    hosts: list[str] = []
    for host in route.hostnames or ("",):
        both = _common(host, listener.hostname)
        if both is None:
            continue
        if "*" in both:
            missing.append(f"{at} has the host {both}, which is no address")
        elif both:
            hosts.append(both)
        elif gateway.addresses:
            hosts += gateway.addresses
        else:
            missing.append(f"{at} waits for its address")
    return hosts


def _common(first: str, second: str) -> str | None:
    """Return the narrower of two hosts, of which each may be empty or have a wildcard; None if
    they have no host in common. In the Gateway API, `*` stands for one label or more."""
    for wide, narrow in ((first, second), (second, first)):
        if wide in ("", narrow):
            return narrow
        if wide.startswith("*.") and narrow.endswith(wide[1:]):
            return narrow
    return None


def _with_listener(entry: Entry | None, host: str, listener: Listener, warning: str) -> Entry:
    """Return the entry of a host with the port of one more listener; the first of each kind
    stays."""
    entry = entry or Entry(host=host, port=None, secure_port=None, warning=warning)
    if listener.secure and entry.secure_port is None:
        return replace(entry, secure_port=listener.port)
    if not listener.secure and entry.port is None:
        return replace(entry, port=listener.port)
    return entry


def _leads_to(
    path: IngressPath | RoutePath, service: Service, ports: Collection[ServicePort | None]
) -> bool:
    """Whether a path leads to one of these ports; of a number at the host, it may be any port."""
    if path.service != service.name:
        return False
    own: list[str | int] = []  # each port of the Service by name and by number
    for port in ports:
        if port is not None and port in service.ports:
            own += [port.name, port.port]
    return not own or path.port in own


def _entry(host: str, ingress: Ingress, warning: str) -> Entry:
    """Return the entry of a host, or of an address, at an Ingress."""
    _, _, domain = host.partition(".")
    with_tls = {host, f"*.{domain}", ""}  # an entry of `tls` without hosts is for all
    if with_tls.isdisjoint(ingress.tls):
        return Entry(host=host, port=_HTTP, secure_port=None, warning=warning)
    return Entry(host=host, port=None, secure_port=_HTTPS, warning=warning)


def _warning(by: str, service: Service, host: str, paths: Collection[str]) -> str:
    """Return a warning if other calls to the host are sent elsewhere."""
    if "" in paths or "/" in paths:
        return ""
    below = ", ".join(sorted(paths))
    at = host or "its address"
    return (
        f"{by} sends to Service {service.name} only calls to {below} of {at}: callers have to use "
        "that path"
    )


def entered(entries: Mapping[str, Entries]) -> Mapping[str, Entries]:
    """Return the entries of the Services, by name, that callers can reach in this way. A Service
    for metrics beside the app's may have none. Raises InvalidSyncer(NoAddress) if all are so."""
    routed: dict[str, Entries] = {}
    whys: list[str] = []
    for name, there in entries.items():
        whys.append(there.why)
        if there.routed:
            routed[name] = there
    if not routed:
        raise InvalidSyncer(Reason.NO_ADDRESS, "; ".join(whys))
    return routed


def sites_at(site: Site, entries: Entries, spec: Syncer) -> Sequence[Site] | str:
    """Return a Service's sites at its entries, or why there is none yet.

    | spec                         | plain port                | secure port                     |
    |------------------------------|---------------------------|---------------------------------|
    | no number                    | the entry's               | the entry's                     |
    | a number in `port`           | that number               | the entry's                     |
    | a number in `securePort`     | off, unless `port` is set | that number, if the entry has TLS |
    """
    sites: list[Site] = []
    for entry in entries.entries:
        plain = entry.port
        secure = entry.secure_port
        if isinstance(spec.port, int):
            plain = spec.port
        elif spec.port is None and spec.secure_port is not None:
            plain = None  # only the secure port is asked for
        if isinstance(spec.secure_port, int) and secure is not None:
            secure = spec.secure_port
        if plain is not None or secure is not None:
            sites.append(replace(site, host=entry.host, port=plain, secure_port=secure))
    if sites:
        return sites
    return entries.why or f"{site.label} has no entry with TLS, which spec.securePort asks for"
