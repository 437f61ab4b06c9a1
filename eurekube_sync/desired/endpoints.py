"""Reads the endpoints and ports of a syncer's Services from their slices, as one `Backend` for each
instance.

The rules are those of the EndpointSlice API and of kube-proxy: a Service has several slices, with
duplicates between them, and one for each family of a dual-stack Service. The order of slices and
Services does not matter.

An endpoint is an address and a port, so that two processes on one machine are two. So are two
numbers that the slices of one Service give a pod for one port, because kube-proxy sends calls to
both. A pod behind several Services has no more endpoints than behind one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import (
    SLICE_CONTROLLER,
    Endpoint,
    EndpointSlice,
    Service,
    ServicePort,
)
from eurekube_sync.model.values import dataclass

HTTP = "http"  # the name of the port that is the default
Identity: TypeAlias = tuple[str, int]  # a pod's UID, or an address without a pod; and a port


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A pod or an address behind a Service, at one number of the port that the syncer asks for."""

    services: Sequence[Service]  # sorted by name; several if a pod is behind several
    endpoint: Endpoint
    port: int
    ready: bool
    port_name: str = ""  # of the Service's port
    slices: frozenset[str] = frozenset()  # the names of the slices that list it

    @property
    def place(self) -> str:
        """The pod's UID, or the address if there is no pod."""
        return place_of(self.endpoint)

    @property
    def identity(self) -> Identity:
        """The place and the port."""
        return (self.place, self.port)

    @property
    def label(self) -> str:
        """The name for messages."""
        return label_of(self.endpoint)

    @property
    def preference(self) -> tuple[bool, bool, bool, int, str, str]:
        """The sort key of duplicates: not terminating, then ready, then serving; the rest makes the
        order stable."""
        one = self.endpoint
        return (
            one.terminating,
            not self.ready,
            not one.serving,
            self.port,
            one.address,
            self.services[0].name,
        )


def place_of(endpoint: Endpoint) -> str:
    """Return the UID of an endpoint's pod, or its address if there is no pod."""
    return endpoint.pod.uid if endpoint.pod and endpoint.pod.uid else endpoint.address


def label_of(endpoint: Endpoint) -> str:
    """Return the name of an endpoint for messages."""
    return f"pod {endpoint.pod.name}" if endpoint.pod else f"endpoint {endpoint.address}"


# --- Ports of Services ----------------------------------------------------------------------------


def choose_port(
    service: Service, port: str | int | None, *, field: str = "port"
) -> ServicePort | None:
    """Return the Service's port by `field` of the spec, or None if there is no such port.

    `port` is a name, a number, or a target port. The default is the only port, or the one named
    `http`. In a Service without ports, a number is itself the port. Raises
    InvalidSyncer(AmbiguousPort)."""
    if not service.ports and isinstance(
        port, int
    ):  # a headless Service may have no ports, although its pods listen
        return ServicePort(name="", port=port)
    if isinstance(port, str):
        return next((p for p in service.ports if p.name == port), None)
    if port is None:
        found = [
            p for p in service.ports if p.name == HTTP or len(service.ports) == 1
        ] or service.ports
    else:
        found = [p for p in service.ports if p.port == port] or [
            p for p in service.ports if p.target == port
        ]
    if len(found) > 1:
        why = " has the ports" if port is None else f": {port} fits the ports"
        raise InvalidSyncer(
            "AmbiguousPort",
            f"Service {service.name}{why} {_ports(found)}: name one in spec.{field}",
        )
    return found[0] if found else None


def chosen_ports(
    services: Sequence[Service],
    port: str | int | None,
    *,
    field: str = "port",
    where: str = "its pods listen on",
) -> tuple[tuple[Service, ServicePort], ...]:
    """Return the Services that have the port of `field` of the spec, sorted by name; `where` is a
    part of the error. Raises InvalidSyncer if no Service has it, or if it is ambiguous."""
    ordered = sorted(services, key=lambda service: service.name)
    found = [(service, choose_port(service, port, field=field)) for service in ordered]
    if chosen := tuple((service, port) for service, port in found if port is not None):
        return chosen
    if any(service.ports for service in services):
        there = "; ".join(f"{service.name} has {_ports(service.ports)}" for service in ordered[:5])
        raise InvalidSyncer(
            "NoSuchPort",
            f"no Service has the port {port!r}: {there}; name one of these in spec.{field}",
        )
    names = ", ".join(service.name for service in ordered[:5])
    have = (
        f"Service {names} has no ports" if len(ordered) == 1 else f"Services {names} have no ports"
    )
    lacking = "" if port is None else f", so none is named {port!r}"
    raise InvalidSyncer(
        "NoSuchPort", f"{have}{lacking}: set spec.{field} to the number of the port that {where}"
    )


def services_at(
    number: int, services: Sequence[Service], slices: Mapping[str, Sequence[EndpointSlice]]
) -> tuple[tuple[Service, int], ...]:
    """Return the Services that may have an endpoint on this port number, sorted by name; empty if
    none has one. A Service whose slices show no endpoint may have one later."""
    found = []
    known = False
    for service in sorted(services, key=lambda service: service.name):
        filled = [
            piece for piece in slices_in_use(service, slices[service.name])[0] if piece.endpoints
        ]
        listens = any(port.port == number for piece in filled for port in piece.ports)
        known = known or listens
        if listens or not filled:
            found.append((service, number))
    return tuple(found) if known else ()


def stays(error: InvalidSyncer, number: int) -> str:
    """Return the warning that a port cannot be resolved any more, and that its registered number is
    served on."""
    return (
        f"{error}. Until then port {number} is served on, because the syncer's instances are "
        "registered on it"
    )


def _ports(ports: Iterable[ServicePort]) -> str:
    return ", ".join(f"{p.name or 'unnamed'} ({p.port})" for p in ports) or "none"


# --- Slices ---------------------------------------------------------------------------------------


def slices_in_use(
    service: Service, slices: Sequence[EndpointSlice]
) -> tuple[Sequence[EndpointSlice], Sequence[EndpointSlice]]:
    """Return the slices that count, and the strays.

    A slice that somebody else than the cluster's controller wrote, and that has none of the
    Service's ports, is a stray if another slice shows what the Service has. kube-proxy ignores it.
    With a selector, the controller's own slice shows that even if it has no endpoints, and so no
    ports."""
    strays = [piece for piece in slices if piece.endpoints and _lacks_ports(service, piece)]
    strays = [piece for piece in strays if not written_by_cluster(service, piece)]
    if not strays:  # the usual case
        return slices, ()
    others = [piece for piece in slices if piece not in strays]
    if any(
        written_by_cluster(service, piece) or not _lacks_ports(service, piece) for piece in others
    ):
        return others, sorted(strays, key=lambda piece: piece.name)
    return slices, ()


def written_by_cluster(service: Service, piece: EndpointSlice) -> bool:
    """Whether the cluster's controller writes the slice, and so will soon correct it where it is
    outdated."""
    return service.selects and (piece.of_endpoints or piece.managed_by == SLICE_CONTROLLER)


def strays_of(service: Service, slices: Sequence[EndpointSlice]) -> Iterator[str]:
    """Yield a warning for each stray slice of a Service."""
    _, strays = slices_in_use(service, slices)
    for stray in strays:
        yield (
            f"EndpointSlice {stray.name} ({_writer(stray)}) is ignored, as kube-proxy ignores it: "
            "its port is "
            f"{_slice_ports(stray)}, and Service {service.name} has {_ports(service.ports)}; "
            "delete the slice, or name "
            "its port as the Service does"
        )


def outdated(service: Service, slices: Sequence[EndpointSlice], family: str) -> Iterator[Endpoint]:
    """Yield the endpoints of slices that the cluster's controller has not written again since the
    Service's ports changed. It writes one slice after the other."""
    for piece in slices:
        if piece.ports and piece.address_type == family and written_by_cluster(service, piece):
            yield from piece.endpoints if _lacks_ports(service, piece) else ()


def renumbered(
    service: Service, port: ServicePort, slices: Sequence[EndpointSlice], family: str
) -> Mapping[str, Sequence[Endpoint]]:
    """Return, by place, the endpoints to which the cluster's controller gives several numbers for a
    port of the Service.

    It means one number for each pod, and writes one slice after the other when a targetPort
    changes. Until then all but one are outdated. Which one is not is unknown: the Service was
    listed at another time than the slices, and its targetPort may be a name. Slices of other
    writers do not count: nobody will correct them, and kube-proxy sends calls to all of their
    endpoints."""
    written: list[tuple[int, EndpointSlice]] = []
    for piece in slices:
        number = _number(piece, port, service)
        if (
            number is not None
            and piece.address_type == family
            and written_by_cluster(service, piece)
        ):
            written.append((number, piece))
    if len({number for number, _ in written}) < 2:  # the usual case
        return {}
    numbers: dict[str, set[int]] = {}
    endpoints: dict[str, list[Endpoint]] = {}
    for number, piece in written:
        for endpoint in piece.endpoints:
            place = place_of(endpoint)
            numbers.setdefault(place, set()).add(number)
            endpoints.setdefault(place, []).append(endpoint)
    return {place: there for place, there in endpoints.items() if len(numbers[place]) > 1}


def _lacks_ports(service: Service, piece: EndpointSlice) -> bool:
    names = {port.name for port in service.ports}
    return bool(names) and names.isdisjoint(port.name for port in piece.ports)


def _writer(piece: EndpointSlice) -> str:
    return f"managed by {piece.managed_by}" if piece.managed_by else "without the label managed-by"


def _slice_ports(piece: EndpointSlice) -> str:
    return ", ".join(f"{port.name or 'unnamed'} ({port.port})" for port in piece.ports) or "none"


# --- Backends -------------------------------------------------------------------------------------


def backends(
    service: Service,
    port: ServicePort | int,
    slices: Sequence[EndpointSlice],
    *,
    family: str | None,
) -> tuple[Backend, ...]:
    """Return the Service's endpoints of one address family (None: of any) on a port of the Service,
    or on a port number of its slices.

    A slice without the port has no endpoint for us. But if there are endpoints, and no slice has
    the port, this raises InvalidSyncer(NoSuchPort), because the slices are outdated, or the port
    does not exist."""
    used, _ = slices_in_use(service, slices)
    filled = [piece for piece in used if piece.endpoints and family in (None, piece.address_type)]
    name = port.name if isinstance(port, ServicePort) else ""
    of = (service,)
    best: dict[Identity, Backend] = {}
    matched = False
    for piece in filled:
        number = _number(piece, port, service)
        if number is None:
            continue
        matched = True
        slice_name = frozenset({piece.name})
        for endpoint in piece.endpoints:
            found = Backend(
                services=of,
                endpoint=endpoint,
                port=number,
                ready=healthy(endpoint, service),
                port_name=name,
                slices=slice_name,
            )
            identity = found.identity
            known = best.get(identity)
            if known is not None:
                better = min(known, found, key=lambda backend: backend.preference)
                found = replace(better, slices=known.slices | found.slices)
            best[identity] = found
    if filled and not matched:
        raise _no_slice_has(port, service, filled)
    return tuple(best[identity] for identity in sorted(best))


def _number(piece: EndpointSlice, port: ServicePort | int, service: Service) -> int | None:
    if isinstance(port, int):
        return port if any(listed.port == port for listed in piece.ports) else None
    if not piece.ports and not service.ports:
        return port.port
    return next((listed.port for listed in piece.ports if listed.name == port.name), None)


def _no_slice_has(
    port: ServicePort | int, service: Service, filled: Sequence[EndpointSlice]
) -> InvalidSyncer:
    """Return the error about slices with endpoints, none of which has the Service's port."""
    name = port if isinstance(port, int) else port.name or port.port
    target = port.target if isinstance(port, ServicePort) else None
    ours = [piece for piece in filled if written_by_cluster(service, piece)]
    first = min(ours or filled, key=lambda piece: piece.name)
    if not ours:
        return InvalidSyncer(
            "NoSuchPort",
            f"no EndpointSlice of Service {service.name} has the port {name}: {first.name} "
            f"({_writer(first)}) has "
            f"{_slice_ports(first)}; name its port as the Service does",
            edit=f"endpointslice {first.name}",
        )
    current = [piece for piece in ours if not (piece.ports and _lacks_ports(service, piece))]
    if isinstance(target, str) and current:
        # The controller leaves out a port whose target no container of the pod has
        # (podutil.FindPort).
        label = min(label_of(endpoint) for piece in current for endpoint in piece.endpoints)
        return InvalidSyncer(
            "NoSuchPort",
            f"{label} has no container port named {target}, the targetPort of port {name} of "
            f"Service {service.name}: "
            "name the port in the pod's containers, or give its number as targetPort",
            edit=f"service {service.name}",
        )
    return InvalidSyncer(
        "NoSuchPort",
        f"the EndpointSlices of Service {service.name} do not have its port {name} yet: "
        f"{first.name} has "
        f"{_slice_ports(first)}; the cluster writes them again after the Service's ports have "
        "changed",
        edit=f"service {service.name}",
    )


def healthy(endpoint: Endpoint, service: Service) -> bool:
    """Whether an endpoint is ready."""
    # With publishNotReadyAddresses, "ready" is true for every pod, and "serving" is the pod's
    # readiness.
    return endpoint.ready and (
        not service.publish_not_ready or (endpoint.serving and not endpoint.terminating)
    )


def missing_slices(service: Service, slices: Sequence[EndpointSlice], *, family: str | None) -> str:
    """Return a clause about the slices of a family (None: of any) that a Service lacks; empty if it
    lacks none.

    The cluster makes a slice for each family of a Service with a selector, even an empty one
    (k8s.io/endpointslice, Reconciler.Reconcile). So a missing slice was not yet made, or was
    deleted. A Service without a selector has the slices that people write, of any family; one of
    type ExternalName has none."""
    asked = tuple(one for one in service.ip_families if family in (None, one))
    if service.is_external_name or (service.ip_families and not asked):
        return ""
    if family and not service.selects and _only_host_names(slices):
        return (
            f"the EndpointSlices of Service {service.name} are of addressType FQDN, and mode pod "
            "registers IP "
            "addresses: write slices of IPv4 or IPv6, or use mode service with service.hostname"
        )
    if not slices:
        if service.selects:
            return f"Service {service.name} has no EndpointSlice, not even an empty one"
        alone = "without a selector it gets none by itself: write one, even an empty one"
        return f"Service {service.name} has no EndpointSlice, and {alone}"
    if not service.selects or (family is None and any(piece.of_endpoints for piece in slices)):
        return ""
    there = {piece.address_type for piece in slices if piece.endpoints or not piece.of_endpoints}
    first = service.ip_families[:1] if any(piece.of_endpoints for piece in slices) else ()
    lacking = " and ".join(one for one in asked if one not in there and one not in first)
    return (
        f"Service {service.name} has no EndpointSlice of {lacking}, not even an empty one"
        if lacking
        else ""
    )


def _only_host_names(slices: Sequence[EndpointSlice]) -> bool:
    hosts = any(piece.endpoints for piece in slices)
    return hosts and all(piece.address_type == "FQDN" for piece in slices)


# --- Backends of several Services -----------------------------------------------------------------


def one_per_port(found: Iterable[Backend]) -> Mapping[Identity, Backend]:
    """Merge the backends of several Services by identity.

    Raises InvalidSyncer(AmbiguousService) if Services give a pod different ports, or an address
    different ports by different names. It is not ambiguous if one Service has all of them."""
    by_place: dict[str, list[Backend]] = {}
    for backend in found:
        by_place.setdefault(backend.place, []).append(backend)
    merged: dict[Identity, Backend] = {}
    for _, there in sorted(by_place.items()):
        if len(there) == 1:
            merged[there[0].identity] = there[0]
        else:
            merged |= _merged(there)
    return merged


def _merged(there: Sequence[Backend]) -> Mapping[Identity, Backend]:
    """Merge the backends of one place."""
    by_service = sorted(there, key=lambda backend: (backend.services[0].name, backend.port))
    # Two processes at one address are called by one name. Another name may be a port of the same
    # process.
    names = {backend.port_name for backend in there}
    ports = {backend.port: backend.services[0].name for backend in reversed(by_service)}
    ports_of: dict[str, set[int]] = {}
    for backend in there:
        ports_of.setdefault(backend.services[0].name, set()).add(backend.port)
    # A Service calls all of its numbers by one name, so each of them is an endpoint of the app.
    agreed = any(its == ports.keys() for its in ports_of.values())
    if not agreed and (there[0].endpoint.pod or len(names) > 1):
        offers = ", ".join(f"{service} ({port})" for port, service in sorted(ports.items()))
        raise InvalidSyncer(
            "AmbiguousService",
            f"{there[0].label} is behind Services with different ports, {offers}: name one in "
            "spec.port",
        )
    merged: dict[Identity, Backend] = {}
    for number in sorted(ports):
        same = [backend for backend in by_service if backend.port == number]
        slices = frozenset[str]().union(*(backend.slices for backend in same))
        best = min(same, key=lambda backend: backend.preference)
        services = [backend.services[0] for backend in same]
        merged[best.identity] = replace(best, services=services, slices=slices)
    return merged


def outdone_by_http(found: Iterable[Backend]) -> frozenset[str]:
    """Return the names of the Services whose port gives way to another Service's port `http`,
    because a pod is behind both. Such a Service is no default for its other pods either, so that
    none is registered on its port for metrics."""
    by_place: dict[str, list[Backend]] = {}
    for backend in found:
        by_place.setdefault(backend.place, []).append(backend)
    outdone = set()
    for there in by_place.values():
        ports = {backend.port for backend in there if backend.port_name == HTTP}
        for backend in there:
            if ports and backend.port_name != HTTP and backend.port not in ports:
                outdone.add(backend.services[0].name)
    return frozenset(outdone)


def paired(
    main: Mapping[Identity, Backend], secure: Mapping[Identity, Backend]
) -> Mapping[Identity, Backend]:
    """Return the backend on the secure port of each backend on the main one, where there is one, by
    the main one's identity. Of a pod it is the lowest port in the same slice, or else in any.
    Without a pod, both are in one slice, or they are the only ones at their address."""
    if not secure:  # the usual case
        return {}
    at: dict[str, list[Backend]] = {}
    processes: dict[str, int] = {}
    for backend in secure.values():
        at.setdefault(backend.place, []).append(backend)
    for backend in main.values():
        processes[backend.place] = processes.get(backend.place, 0) + 1
    pairs: dict[Identity, Backend] = {}
    for identity, backend in main.items():
        there = at.get(backend.place, [])
        beside = [other for other in there if not other.slices.isdisjoint(backend.slices)]
        if backend.endpoint.pod is not None:
            there = sorted(beside or there, key=lambda other: other.port)[:1]
        elif len(there) > 1 or processes[backend.place] > 1:
            there = beside
        if len(there) == 1:
            pairs[identity] = there[0]
    return pairs
