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
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.values import dataclass

HTTP = "http"  # the name of the port that is the default
Numbers: TypeAlias = frozenset[int]  # in place of a port that cannot be resolved any more
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
        endpoint = self.endpoint
        return (
            endpoint.terminating,
            not self.ready,
            not endpoint.serving,
            self.port,
            endpoint.address,
            self.services[0].name,
        )


def place_of(endpoint: Endpoint) -> str:
    """Return the UID of an endpoint's pod, or its address if there is no pod."""
    return endpoint.pod.uid if endpoint.pod and endpoint.pod.uid else endpoint.address


def label_of(endpoint: Endpoint) -> str:
    """Return the name of an endpoint for messages."""
    return f"pod {endpoint.pod.name}" if endpoint.pod else f"endpoint {endpoint.address}"


# --- Ports of Services
# ------------------------------------------------------------------------------------------------


def choose_port(
    service: Service,
    port: str | int | None,
    *,
    field: str = "port",
) -> ServicePort | None:
    """Return the Service's port by `field` of the spec, or None if there is no such port.

    | spec | the Service's port |
    |---|---|
    | a name | the one of this name |
    | a number | the one of this number, else the one with this target port |
    | a number, and the Service has no ports | the number itself |
    | nothing | the only one, else the one named `http` |

    Raises InvalidSyncer(AmbiguousPort)."""
    if port is None:
        fitting = _default_ports(service)
        fits = " has the ports"
    elif isinstance(port, str):
        fitting = [listed for listed in service.ports if listed.name == port][:1]
        fits = ""
    elif service.ports:
        fitting = _numbered_ports(service, port)
        fits = f": {port} fits the ports"
    else:  # a headless Service may have no ports, although its pods listen
        return ServicePort(name="", port=port)
    if len(fitting) > 1:
        raise InvalidSyncer(
            Reason.AMBIGUOUS_PORT,
            f"Service {service.name}{fits} {_ports(fitting)}: name one in spec.{field}",
        )
    return fitting[0] if fitting else None


def _default_ports(service: Service) -> Sequence[ServicePort]:
    """Return the port named `http` among several, or all of them if none has that name."""
    if len(service.ports) > 1:
        for port in service.ports:
            if port.name == HTTP:
                return [port]
    return service.ports


def _numbered_ports(service: Service, number: int) -> Sequence[ServicePort]:
    """Return the ports of this number, or else those with this target port."""
    own = [port for port in service.ports if port.port == number]
    return own or [port for port in service.ports if port.target == number]


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
    chosen: list[tuple[Service, ServicePort]] = []
    for service in ordered:
        listed = choose_port(service, port, field=field)
        if listed is not None:
            chosen.append((service, listed))
    if not chosen:
        raise _no_such_port(ordered, port, field, where)
    return tuple(chosen)


def _no_such_port(
    services: Sequence[Service],
    port: str | int | None,
    field: str,
    where: str,
) -> InvalidSyncer:
    """Return the error about Services of which none has the port of a field."""
    named = services[:5]
    if any(service.ports for service in services):
        there = "; ".join(f"{service.name} has {_ports(service.ports)}" for service in named)
        message = f"no Service has the port {port!r}: {there}; name one of these in spec.{field}"
        return InvalidSyncer(Reason.NO_SUCH_PORT, message)
    names = ", ".join(service.name for service in named)
    have = f"Services {names} have no ports"
    if len(services) == 1:
        have = f"Service {names} has no ports"
    lacking = "" if port is None else f", so none is named {port!r}"
    message = f"{have}{lacking}: set spec.{field} to the number of the port that {where}"
    return InvalidSyncer(Reason.NO_SUCH_PORT, message)


def numbers_of(pieces: Iterable[EndpointSlice]) -> frozenset[int]:
    """Return all port numbers of these slices."""
    numbers: set[int] = set()
    for piece in pieces:
        numbers.update(port.port for port in piece.ports if port.port is not None)
    return frozenset(numbers)


def stays(error: InvalidSyncer, numbers: Iterable[int]) -> str:
    """Return the warning that a port cannot be resolved any more, and that the numbers of before
    are served on."""
    ordered = [str(number) for number in sorted(numbers)]
    if len(ordered) == 1:
        return f"{error}. Until then port {ordered[0]} is served on, as before"
    others = ", ".join(ordered[:-1])
    return f"{error}. Until then ports {others} and {ordered[-1]} are served on, as before"


def _ports(ports: Iterable[ServicePort]) -> str:
    return ", ".join(f"{port.name or 'unnamed'} ({port.port})" for port in ports) or "none"


# --- Slices ---------------------------------------------------------------------------------------
# --------------------


def slices_in_use(
    service: Service, slices: Sequence[EndpointSlice]
) -> tuple[Sequence[EndpointSlice], Sequence[EndpointSlice]]:
    """Return the slices that count, and the strays.

    A slice that somebody else than the cluster's controller wrote, and that has none of the
    Service's ports, is a stray if another slice shows what the Service has. kube-proxy ignores
    it. With a selector, the controller's own slice shows that even if it has no endpoints, and
    so no ports."""
    strays = []
    for piece in slices:
        lacks_all = piece.endpoints and _lacks_ports(service, piece)
        if lacks_all and not written_by_cluster(service, piece):
            strays.append(piece)
    if not strays:  # the usual case
        return slices, ()
    others = [piece for piece in slices if piece not in strays]
    for piece in others:
        if written_by_cluster(service, piece) or not _lacks_ports(service, piece):
            return others, sorted(strays, key=lambda stray: stray.name)
    return slices, ()


def written_by_cluster(service: Service, piece: EndpointSlice) -> bool:
    """Whether the cluster's controller writes the slice, and so will soon correct it where it is
    outdated."""
    return service.selects and piece.managed_by == SLICE_CONTROLLER


def strays_of(service: Service, slices: Sequence[EndpointSlice]) -> Iterator[str]:
    """Yield a warning for each stray slice of a Service."""
    _, strays = slices_in_use(service, slices)
    for stray in strays:
        yield (
            f"EndpointSlice {stray.name} ({_writer(stray)}) is ignored, as kube-proxy ignores it: "
            f"its port is {_slice_ports(stray)}, and Service {service.name} has "
            f"{_ports(service.ports)}; delete the slice, or name its port as the Service does"
        )


def outdated(service: Service, slices: Sequence[EndpointSlice], family: str) -> Iterator[Endpoint]:
    """Yield the endpoints of slices that the cluster's controller has not written again since
    the Service's ports changed. It writes one slice after the other."""
    for piece in slices:
        if not piece.ports or piece.address_type != family:
            continue
        if written_by_cluster(service, piece) and _lacks_ports(service, piece):
            yield from piece.endpoints


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
        if number is None or piece.address_type != family:
            continue
        if written_by_cluster(service, piece):
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
# --------------------


def backends(
    service: Service,
    port: ServicePort | Numbers,
    slices: Sequence[EndpointSlice],
    *,
    family: str | None,
) -> tuple[Backend, ...]:
    """Return the Service's endpoints of one address family (None: of any) on a port of the Service,
    or on those of some numbers that each of its slices has.

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


def _number(piece: EndpointSlice, port: ServicePort | Numbers, service: Service) -> int | None:
    """Return the number of the port in a slice; None if the slice does not have it."""
    if isinstance(port, frozenset):
        for listed_port in piece.ports:
            if listed_port.port in port:
                return listed_port.port
        return None
    if not piece.ports and not service.ports:
        return port.port
    for listed in piece.ports:
        if listed.name == port.name:
            return listed.port
    return None


def _no_slice_has(
    port: ServicePort | Numbers,
    service: Service,
    filled: Sequence[EndpointSlice],
) -> InvalidSyncer:
    """Return the error about slices with endpoints, none of which has the Service's port."""
    name = _name_of(port)
    target = port.target if isinstance(port, ServicePort) else None
    ours = [piece for piece in filled if written_by_cluster(service, piece)]
    first = min(ours or filled, key=lambda piece: piece.name)
    if not ours:
        return InvalidSyncer(
            Reason.NO_SUCH_PORT,
            f"no EndpointSlice of Service {service.name} has the port {name}: {first.name} "
            f"({_writer(first)}) has {_slice_ports(first)}; name its port as the Service does",
            edit=f"endpointslice {first.name}",
        )
    current = [piece for piece in ours if not (piece.ports and _lacks_ports(service, piece))]
    if isinstance(target, str) and current:
        # The controller leaves out a port whose target no container of the pod has
        # (podutil.FindPort).
        label = min(label_of(endpoint) for piece in current for endpoint in piece.endpoints)
        return InvalidSyncer(
            Reason.NO_SUCH_PORT,
            f"{label} has no container port named {target}, the targetPort of port {name} of "
            f"Service {service.name}: name the port in the pod's containers, or give its number as "
            "targetPort",
            edit=f"service {service.name}",
        )
    return InvalidSyncer(
        Reason.NO_SUCH_PORT,
        f"the EndpointSlices of Service {service.name} do not have its port {name} yet: "
        f"{first.name} has {_slice_ports(first)}; the cluster writes them again after the "
        "Service's ports have changed",
        edit=f"service {service.name}",
    )


def _name_of(port: ServicePort | Numbers) -> str:
    if isinstance(port, frozenset):
        return ", ".join(str(number) for number in sorted(port))
    return port.name or str(port.port)


def healthy(endpoint: Endpoint, service: Service) -> bool:
    """Whether an endpoint is ready."""
    # With publishNotReadyAddresses, "ready" is true for every pod, and "serving" is the pod's
    # readiness.
    serves = endpoint.serving and not endpoint.terminating
    return endpoint.ready and (serves or not service.publish_not_ready)


def missing_slices(service: Service, slices: Sequence[EndpointSlice], *, family: str | None) -> str:
    """Return a clause about the slices of a family (None: of any) that a Service lacks; empty if it
    lacks none.

    | Service | lacks |
    |---|---|
    | of type ExternalName, or of another family | none: it has no slices |
    | without a selector | one that people write, of any family; for mode pod, of IP addresses |
    | with a selector | one of each family |

    The cluster makes the slices of a Service with a selector, even empty ones
    (k8s.io/endpointslice, Reconciler.Reconcile). So a missing one was not yet made, or was
    deleted."""
    families = [listed for listed in service.ip_families if family in (None, listed)]
    is_of_another_family = bool(service.ip_families) and not families
    if service.is_external_name or is_of_another_family:
        return ""
    if not service.selects:
        return _missing_by_hand(service, slices, family)
    if not slices:
        return f"Service {service.name} has no EndpointSlice, not even an empty one"
    there = {piece.address_type for piece in slices}
    lacking = " and ".join(listed for listed in families if listed not in there)
    if not lacking:
        return ""
    return f"Service {service.name} has no EndpointSlice of {lacking}, not even an empty one"


def _missing_by_hand(service: Service, slices: Sequence[EndpointSlice], family: str | None) -> str:
    """Return the same clause about a Service without a selector."""
    if not slices:
        return (
            f"Service {service.name} has no EndpointSlice, and without a selector it gets none by "
            "itself: write one, even an empty one"
        )
    if family is not None and _only_host_names(slices):
        return (
            f"the EndpointSlices of Service {service.name} are of addressType FQDN, and mode pod "
            "registers IP addresses: write slices of IPv4 or IPv6, or use mode service with "
            "service.hostname"
        )
    return ""


def _only_host_names(slices: Sequence[EndpointSlice]) -> bool:
    hosts = any(piece.endpoints for piece in slices)
    return hosts and all(piece.address_type == "FQDN" for piece in slices)


# --- Backends of several Services
# -------------------------------------------------------------------------------------


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
        behind = f"{there[0].label} is behind Services with different ports, {offers}"
        raise InvalidSyncer(Reason.AMBIGUOUS_SERVICE, f"{behind}: name one in spec.port")
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
    main: Mapping[Identity, Backend],
    secure: Mapping[Identity, Backend],
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
