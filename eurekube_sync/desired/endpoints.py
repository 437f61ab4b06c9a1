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
from itertools import combinations
from typing import TypeAlias

from msgspec import Struct

from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import (
    SLICE_CONTROLLER,
    Endpoint,
    EndpointPort,
    EndpointSlice,
    Service,
    ServicePort,
)
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import listed, one_or_more

HTTP = "http"  # the name of the port that is the default
Numbers: TypeAlias = frozenset[int]  # in place of a port that cannot be resolved any more
Identity: TypeAlias = tuple[str, int]  # a pod's UID, or an address without a pod; and a port


class Backend(Struct, frozen=True, kw_only=True):
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
    def service(self) -> str:
        """The name of its Service, the first of several."""
        return self.services[0].name

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
            self.service,
        )


def place_of(endpoint: Endpoint) -> str:
    """Return the UID of an endpoint's pod, or its address if there is no pod."""
    if endpoint.pod and endpoint.pod.uid:
        return endpoint.pod.uid
    return endpoint.address


def label_of(endpoint: Endpoint) -> str:
    """Return the name of an endpoint for messages."""
    if endpoint.pod:
        return f"pod {endpoint.pod.name}"
    return f"endpoint {endpoint.address}"


def names_of(services: Iterable[Service]) -> Sequence[str]:
    """Return the names of Services."""
    return [service.name for service in services]


# --- Ports of Services ---------------------------------------------------------------------------


def choose_port(
    service: Service, port: str | int | None, *, field: str = "port"
) -> ServicePort | None:
    """Return the Service's port by `field` of the spec, or None if there is no such port.

    | spec | the Service's port |
    |---|---|
    | a name | the one of this name |
    | a number | the one of this number, else the one with this target port |
    | a number, and the Service has no ports | the number itself |
    | nothing | the only one, else the one named `http` |

    Raises InvalidSyncer(AmbiguousPort)."""
    if isinstance(port, str):
        return _named_port(service, port)
    if port is None:
        fitting = _default_ports(service)
        fits = " has the ports"
    elif service.ports or service.other_ports:  # TCP, and those that Eureka's clients cannot call
        fitting = _numbered_ports(service, port)
        fits = f": {port} fits the ports"
    else:  # a headless Service may have no ports, although its pods listen
        return ServicePort(name="", port=port)
    if len(fitting) > 1:
        fault = f"Service {service.name}{fits} {_ports(fitting)}: name one in spec.{field}"
        raise InvalidSyncer(Reason.AMBIGUOUS_PORT, fault)
    if fitting:
        return fitting[0]
    return None


def _named_port(service: Service, name: str) -> ServicePort | None:
    """Return the port of this name, which Kubernetes gives to one port alone."""
    for port in service.ports:
        if port.name == name:
            return port
    return None


def _default_ports(service: Service) -> Sequence[ServicePort]:
    """Return the port named `http` among several, or all of them if none has that name."""
    if len(service.ports) > 1:
        http = _named_port(service, HTTP)
        if http is not None:
            return [http]
    return service.ports


def _numbered_ports(service: Service, number: int) -> Sequence[ServicePort]:
    """Return the ports of this number, or else those with this target port."""
    own: list[ServicePort] = []
    targeted: list[ServicePort] = []
    for port in service.ports:
        if port.port == number:
            own.append(port)
        if port.target == number:
            targeted.append(port)
    return own or targeted


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
        offered = choose_port(service, port, field=field)
        if offered is not None:
            chosen.append((service, offered))
    if not chosen:
        raise InvalidSyncer(Reason.NO_SUCH_PORT, _no_such_port(ordered, port, field, where))
    return tuple(chosen)


def _no_such_port(
    services: Sequence[Service], port: str | int | None, field: str, where: str
) -> str:
    """Return what is wrong with Services of which none has the port of a field."""
    first = services[:5]
    offered: list[str] = []
    others: list[str] = []
    for service in first:
        ports = _ports(service.ports)
        offered.append(f"{service.name} has {ports}")
        others += service.other_ports
    if any(service.ports for service in services):
        there = "; ".join(offered)
        return f"no Service has the port {port!r}: {there}; name one of these in spec.{field}"
    names = ", ".join(names_of(first))
    have = one_or_more(len(services), f"Service {names} has", f"Services {names} have")
    if others:
        only = ", ".join(others)
        return f"{have} no TCP port, only {only}: Eureka's clients call TCP ports"
    lacking = "" if port is None else f", so none is named {port!r}"
    return f"{have} no ports{lacking}: set spec.{field} to the number of the port that {where}"


def numbers_of(pieces: Iterable[EndpointSlice]) -> frozenset[int]:
    """Return all port numbers of these slices."""
    numbers: set[int] = set()
    for piece in pieces:
        for port in piece.ports:
            if port.port is not None:
                numbers.add(port.port)
    return frozenset(numbers)


def stays(error: InvalidSyncer, numbers: Iterable[int]) -> str:
    """Return the warning that a port cannot be resolved any more, and that the numbers of before
    are served on."""
    words = [str(number) for number in sorted(numbers)]
    port = one_or_more(len(words), "port", "ports")
    are = one_or_more(len(words), "is", "are")
    which = listed(words, "and")
    return f"{error}. Until then {port} {which} {are} served on, as before"


def _ports(ports: Iterable[ServicePort | EndpointPort]) -> str:
    words = [f"{port.name or 'unnamed'} ({port.port})" for port in ports]
    return ", ".join(words) or "none"


# --- Slices ---------------------------------------------------------------------------------------


def slices_in_use(service: Service, slices: Sequence[EndpointSlice]) -> Sequence[EndpointSlice]:
    """Return the slices that count: all without the strays.

    A slice that somebody else than the cluster's controller wrote, and that has none of the
    Service's ports, is a stray if another slice shows what the Service has. kube-proxy ignores
    it. With a selector, the controller's own slice shows that even if it has no endpoints, and
    so no ports."""
    others: list[EndpointSlice] = []
    telling = False  # whether another slice shows what the Service has
    for piece in slices:
        if written_by_cluster(service, piece) or not _lacks_ports(service, piece):
            others.append(piece)
            telling = True
        elif not piece.endpoints:  # it leads nowhere, and shows nothing either
            others.append(piece)
    if telling:
        return others
    return slices


def written_by_cluster(service: Service, piece: EndpointSlice) -> bool:
    """Whether the cluster's controller writes the slice, and so will soon correct it where it is
    outdated."""
    return service.selects and piece.managed_by == SLICE_CONTROLLER


def strays_of(service: Service, slices: Sequence[EndpointSlice]) -> Iterator[str]:
    """Yield a warning for each stray slice of a Service."""
    used = slices_in_use(service, slices)
    if len(used) == len(slices):
        return  # nearly always
    offered = _ports(service.ports)
    for stray in sorted(slices, key=lambda piece: piece.name):
        if stray in used:
            continue
        writer = _writer(stray)
        ports = _ports(stray.ports)
        yield (
            f"EndpointSlice {stray.name} ({writer}) is ignored, as kube-proxy ignores it: its port "
            f"is {ports}, and Service {service.name} has {offered}; delete the slice, or name its "
            "port as the Service does"
        )


def outdated(service: Service, slices: Sequence[EndpointSlice], family: str) -> Iterator[Endpoint]:
    """Yield the endpoints of slices that the cluster's controller has not written again since
    the Service's ports changed. It writes one slice after the other."""
    for piece in slices:
        if not piece.ports or piece.address_type != family:
            continue
        if _lacks_ports(service, piece) and written_by_cluster(service, piece):
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
    written_numbers: set[int] = set()
    for piece in slices:
        number = _number(piece, port, service)
        if number is None or piece.address_type != family:
            continue
        if written_by_cluster(service, piece):
            written.append((number, piece))
            written_numbers.add(number)
    if len(written_numbers) < 2:  # the usual case
        return {}
    numbers: dict[str, set[int]] = {}
    endpoints: dict[str, list[Endpoint]] = {}
    for number, piece in written:
        for endpoint in piece.endpoints:
            place = place_of(endpoint)
            numbers.setdefault(place, set()).add(number)
            endpoints.setdefault(place, []).append(endpoint)
    several: dict[str, Sequence[Endpoint]] = {}
    for place, there in endpoints.items():
        if len(numbers[place]) > 1:
            several[place] = there
    return several


def _lacks_ports(service: Service, piece: EndpointSlice) -> bool:
    """Whether a slice has none of the Service's ports, by name. A headless Service without ports
    lacks none."""
    names = {port.name for port in service.ports}
    for port in piece.ports:
        if port.name in names:
            return False
    return bool(names)


def _writer(piece: EndpointSlice) -> str:
    if piece.managed_by:
        return f"managed by {piece.managed_by}"
    return "without the label managed-by"


# --- Backends -------------------------------------------------------------------------------------


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
    name = port.name if isinstance(port, ServicePort) else ""
    of = (service,)
    best: dict[Identity, Backend] = {}
    unmatched: list[EndpointSlice] = []
    matched = False
    for piece in slices_in_use(service, slices):
        if not piece.endpoints or family not in (None, piece.address_type):
            continue
        number = _number(piece, port, service)
        if number is None:
            unmatched.append(piece)
            continue
        matched = True
        slice_name = frozenset({piece.name})
        for endpoint in piece.endpoints:
            backend = Backend(
                services=of,
                endpoint=endpoint,
                port=number,
                ready=healthy(endpoint, service),
                port_name=name,
                slices=slice_name,
            )
            identity = backend.identity
            if identity in best:
                backend = _best([best[identity], backend])
            best[identity] = backend
    if unmatched and not matched:
        edit, fault = _no_slice_has(port, service, unmatched)
        raise InvalidSyncer(Reason.NO_SUCH_PORT, fault, edit=edit)
    return tuple([best[identity] for identity in sorted(best)])


def _best(same: Sequence[Backend]) -> Backend:
    """Return the preferred one of several backends with one identity, with the slices of all."""
    best = min(same, key=lambda backend: backend.preference)
    slices: set[str] = set()
    for backend in same:
        slices |= backend.slices
    return replace(best, slices=frozenset(slices))


def _number(piece: EndpointSlice, port: ServicePort | Numbers, service: Service) -> int | None:
    """Return the number of the port in a slice; None if the slice does not have it."""
    if isinstance(port, frozenset):
        for own in piece.ports:
            if own.port in port:
                return own.port
        return None
    if not piece.ports and not service.ports:  # of a headless Service: the pods listen on it
        return port.port
    for own in piece.ports:
        if own.name == port.name:
            return own.port
    return None


def _no_slice_has(
    port: ServicePort | Numbers, service: Service, filled: Sequence[EndpointSlice]
) -> tuple[str, str]:
    """Return which object to correct if no slice with endpoints has the Service's port, and why."""
    target = None
    if isinstance(port, frozenset):
        name = ", ".join([str(number) for number in sorted(port)])
    else:
        name = port.name or str(port.port)
        target = port.target
    ours: list[EndpointSlice] = []
    labels: list[str] = []  # of endpoints in slices of ours that are not outdated
    for piece in filled:
        if not written_by_cluster(service, piece):
            continue
        ours.append(piece)
        if not piece.ports or not _lacks_ports(service, piece):
            labels += [label_of(endpoint) for endpoint in piece.endpoints]
    first = min(ours or filled, key=lambda piece: piece.name)
    ports = _ports(first.ports)
    if not ours:
        writer = _writer(first)
        fault = (
            f"no EndpointSlice of Service {service.name} has the port {name}: {first.name} "
            f"({writer}) has {ports}; name its port as the Service does"
        )
        return f"endpointslice {first.name}", fault
    if isinstance(target, str) and labels:
        # The controller leaves out a port whose target no container of the pod has
        # (podutil.FindPort).
        fault = (
            f"{min(labels)} has no container port named {target}, the targetPort of port {name} of "
            f"Service {service.name}: correct targetPort in the Service, or name the port in the "
            "pod's containers"
        )
    else:
        fault = (
            f"the EndpointSlices of Service {service.name} do not have its port {name} yet: "
            f"{first.name} has {ports}; the cluster writes them again after the Service's ports "
            "have changed"
        )
    return f"service {service.name}", fault


def healthy(endpoint: Endpoint, service: Service) -> bool:
    """Whether an endpoint is ready."""
    if service.publish_not_ready:
        # "ready" is true for every pod, and "serving" is the pod's readiness.
        return endpoint.ready and endpoint.serving and not endpoint.terminating
    return endpoint.ready


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
    families = service.ip_families
    if family is not None and families:
        if family not in families:
            return ""
        families = (family,)
    if service.is_external_name:
        return ""
    if not service.selects:
        return _missing_by_hand(service, slices, family)
    if not slices:
        return f"Service {service.name} has no EndpointSlice, not even an empty one"
    there = {piece.address_type for piece in slices}
    lacking = [ip_family for ip_family in families if ip_family not in there]
    if not lacking:
        return ""
    which = " and ".join(lacking)
    return f"Service {service.name} has no EndpointSlice of {which}, not even an empty one"


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
    filled = False
    for piece in slices:
        if piece.address_type != "FQDN":
            return False
        filled = filled or bool(piece.endpoints)
    return filled


# --- Backends of several Services ----------------------------------------------------------------


def one_per_port(backends: Iterable[Backend]) -> Mapping[Identity, Backend]:
    """Merge the backends of several Services by identity.

    Raises InvalidSyncer(AmbiguousService) if Services give a pod different ports, or an address
    different ports by different names. It is not ambiguous if one Service has all of them."""
    merged: dict[Identity, Backend] = {}
    by_place = _by_place(backends)
    for place in sorted(by_place):
        there = by_place[place]
        if len(there) == 1:
            merged[there[0].identity] = there[0]
        else:
            merged |= _merged(there)
    return merged


def _by_place(backends: Iterable[Backend]) -> Mapping[str, list[Backend]]:
    by_place: dict[str, list[Backend]] = {}
    for backend in backends:
        by_place.setdefault(backend.place, []).append(backend)
    return by_place


def _merged(there: Sequence[Backend]) -> Mapping[Identity, Backend]:
    """Merge the backends of one place."""
    by_port: dict[int, list[Backend]] = {}
    ports_of: dict[str, set[int]] = {}
    ordered = sorted(there, key=lambda backend: (backend.service, backend.port))
    for backend in ordered:
        by_port.setdefault(backend.port, []).append(backend)
        ports_of.setdefault(backend.service, set()).add(backend.port)
    # A Service calls all of its numbers by one name, so each of them is an endpoint of the app.
    agreed = by_port.keys() in ports_of.values()
    # Two processes at one address are called by one name. Another name may be a port of the same
    # process.
    names = {backend.port_name for backend in there}
    is_pod = there[0].endpoint.pod is not None
    merged: dict[Identity, Backend] = {}
    offers: list[str] = []
    for port in sorted(by_port):
        same = by_port[port]
        best = _best(same)
        services = [backend.services[0] for backend in same]
        merged[best.identity] = replace(best, services=services)
        offers.append(f"{services[0].name} ({port})")
    if not agreed and (is_pod or len(names) > 1):
        label = there[0].label
        different = ", ".join(offers)
        raise InvalidSyncer(
            Reason.AMBIGUOUS_SERVICE,
            f"{label} is behind Services with different ports, {different}: name one in spec.port",
        )
    return merged


def outdone_by_http(backends: Iterable[Backend]) -> frozenset[str]:
    """Return the names of the Services whose port gives way to another Service's port `http`,
    because a pod is behind both. Such a Service is no default for its other pods either, so that
    none is registered on its port for metrics."""
    outdone: set[str] = set()
    for there in _by_place(backends).values():
        http = {backend.port for backend in there if backend.port_name == HTTP}
        if not http:
            continue
        for backend in there:
            if backend.port_name != HTTP and backend.port not in http:
                outdone.add(backend.service)
    return frozenset(outdone)


def apart(listening: Iterable[Backend], app: str | None) -> Iterator[str]:
    """Yield a warning if two Services of one app have pods and none in common. Terminating pods do
    not count, because a Service may have lost them already."""
    if app is None:  # each Service is an app of its own
        return
    pods_of: dict[str, set[str]] = {}
    for backend in listening:
        if backend.endpoint.pod is None or backend.endpoint.terminating:
            continue
        for service in backend.services:
            pods_of.setdefault(service.name, set()).add(backend.place)
    for first, second in combinations(sorted(pods_of), 2):
        if pods_of[first].isdisjoint(pods_of[second]):
            yield (
                f"Services {first} and {second} have no pod in common, and both are registered as "
                f"{app.upper()}: if one of them is a preview or a canary, select the other by "
                "spec.selector.service"
            )
            return


def paired(
    main: Mapping[Identity, Backend], secure: Mapping[Identity, Backend]
) -> Mapping[Identity, Backend]:
    """Return the backend on the secure port of each backend on the main one, where there is one, by
    the main one's identity. Of a pod it is the lowest port in the same slice, or else in any.
    Without a pod, both are in one slice, or they are the only ones at their address."""
    if not secure:  # the usual case
        return {}
    secure_at = _by_place(secure.values())
    pairs: dict[Identity, Backend] = {}
    for place, there in _by_place(main.values()).items():
        others = secure_at.get(place)
        if others is None:
            continue
        only_ones = len(others) == 1 and len(there) == 1
        for backend in there:
            identity = backend.identity
            beside = [other for other in others if not other.slices.isdisjoint(backend.slices)]
            if backend.endpoint.pod is not None:
                pairs[identity] = min(beside or others, key=lambda other: other.port)
            # Without a pod there may be several processes at one address.
            elif only_ones:
                pairs[identity] = others[0]
            elif len(beside) == 1:
                pairs[identity] = beside[0]
    return pairs
