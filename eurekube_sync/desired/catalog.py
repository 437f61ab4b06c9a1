"""Indexes of the objects of one namespace, such as Services by label and slices by Service, and of
drain annotations. A catalog is built from complete lists only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import is_
from typing import Any, NamedTuple, TypeAlias, TypeVar

from eurekube_sync.desired.endpoints import healthy
from eurekube_sync.desired.selector import Selector
from eurekube_sync.desired.spec import DRAIN_ANNOTATION, ignored_value
from eurekube_sync.model.errors import InvalidSyncer, SourceUnknown
from eurekube_sync.model.imports import is_of_an_import
from eurekube_sync.model.kubernetes import (
    ClusterView,
    Drainable,
    EndpointSlice,
    Gateway,
    HttpRoute,
    Ingress,
    Node,
    Pod,
    PodHost,
    PodReadiness,
    PodRef,
    ReferenceGrant,
    Service,
)
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Complete, Listed, Server, Source, Unknown

T = TypeVar("T")
S = TypeVar("S", Service, EndpointSlice)

DRAINED = "eurekube.drained"  # the mark of a drained instance: kinds, separated by commas


class Kind(StrEnum):
    """The kinds of objects that can be drained, as in the mark."""

    SERVICE = "service"
    POD = "pod"


class Drainer(NamedTuple):
    """An object whose annotation drains an instance."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{'Service' if self.kind is Kind.SERVICE else 'pod'} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Whether an instance is drained."""

    by: tuple[Kind, ...] = ()  # in the order of `Kind`; empty if it is not drained
    drainer: Drainer | None = None  # the first object that drains it
    unreadable_drain_kinds: frozenset[Kind] = (
        frozenset()
    )  # the kinds of objects that could not be read
    ignored: tuple[str, ...] = ()  # what is wrong with invalid annotations


NO_DRAIN = Drain()

PodSocket: TypeAlias = tuple[str, str, int]  # a pod's namespace, its address, and a port
Known: TypeAlias = Mapping[str, Drainable] | Unknown | None  # pods by UID; None: not read


def drainable(id_: str, annotations: Mapping[str, str]) -> Drainable:
    """Read the drain annotation of a Service or Pod. Only the value "true" drains it."""
    drained = annotations.get(DRAIN_ANNOTATION) == "true"
    return Drainable(id=id_, drained=drained, ignored=ignored_value(annotations, DRAIN_ANNOTATION))


def drains_of(source: Source[tuple[Drainable, ...]]) -> Known:
    """Index a list of pods by UID."""
    if isinstance(source, Unknown):
        return source
    return {pod.id: pod for pod in source.data}


def drain_of(
    services: Sequence[Service],
    pod: PodRef | None = None,
    pods: Known = None,
    *,
    perhaps: Sequence[Service] = (),
) -> Drain:
    """Return whether the Services or the pod of an instance drain it. The pod may also be behind
    the Services `perhaps`, whose slices do not show it."""
    annotated: list[tuple[Drainer, Drainable]] = []
    unknown: set[Kind] = set()
    for service in services:
        if DRAIN_ANNOTATION in service.annotations:
            annotated.append((Drainer(Kind.SERVICE, service.name), _of_service(service)))
    if pod is not None and pods is not None:
        listed = None if isinstance(pods, Unknown) else pods.get(pod.uid)
        if listed is None:  # the list failed, or is older than the pod
            unknown.add(Kind.POD)
        else:
            annotated.append((Drainer(Kind.POD, pod.name), listed))
    drained = _drained_by(annotated)
    if Kind.SERVICE not in drained and any(_of_service(service).drained for service in perhaps):
        unknown.add(Kind.SERVICE)
    if not annotated and not unknown:  # as of nearly all instances
        return NO_DRAIN
    first = next(iter(drained.values()), None)
    return Drain(
        by=tuple(drained),
        drainer=first,
        unreadable_drain_kinds=frozenset(unknown),
        ignored=tuple(f"{drainer}: {read.ignored}" for drainer, read in annotated if read.ignored),
    )


def _drained_by(annotated: Sequence[tuple[Drainer, Drainable]]) -> Mapping[Kind, Drainer]:
    """Return the first object of each kind that drains an instance."""
    drained: dict[Kind, Drainer] = {}
    for drainer, read in annotated:
        if read.drained:
            drained.setdefault(drainer.kind, drainer)
    return drained


def _of_service(service: Service) -> Drainable:
    return drainable(service.name, service.annotations)


def drained_kinds(metadata: Mapping[str, str]) -> Sequence[Kind]:
    """Return the kinds in the mark of an instance, in the order of `Kind`; empty without a mark."""
    names = metadata.get(DRAINED, "").split(",")
    return [kind for kind in Kind if kind in names]


_NOT_READ = Unknown(cause=Cause.NOT_READ, message="what the syncer needs was not read")


class Catalog:
    """The objects of one namespace."""

    def __init__(
        self,
        services: Complete[tuple[Service, ...]],
        slices: Complete[tuple[EndpointSlice, ...]],
        pods: Source[tuple[Pod, ...]] = _NOT_READ,
        nodes: Source[tuple[Node, ...]] = _NOT_READ,
        readiness: Source[tuple[PodReadiness, ...]] = _NOT_READ,
        pod_drains: Known = None,
        hosts: Source[tuple[PodHost, ...]] = _NOT_READ,
        ingresses: Source[tuple[Ingress, ...]] = _NOT_READ,
        reference_grants: Source[tuple[ReferenceGrant, ...]] = _NOT_READ,
        routes: Listed[HttpRoute] | None = None,
        gateways: Listed[Gateway] | None = None,
    ) -> None:
        self.services: Sequence[Service] = services.data
        self.pod_drains = pod_drains
        self.asked = 0  # how often anything but Services and slices was read from here
        self._pods, self._nodes, self._readiness = pods, nodes, readiness
        self._hosts, self._ingresses = hosts, ingresses
        self._reference_grants, self._routes, self._gateways = reference_grants, routes, gateways
        self._indexes: dict[str, Mapping[str, Any]] = {}
        self._by_name = {service.name: service for service in services.data}
        self._by_label: dict[tuple[str, str], list[Service]] = {}
        for service in self._by_name.values():
            for label in service.labels.items():
                self._by_label.setdefault(label, []).append(service)
        self._slices: dict[str, list[EndpointSlice]] = {}
        for piece in slices.data:
            self._slices.setdefault(piece.service, []).append(piece)

    def matching(self, selector: Selector) -> tuple[Service, ...]:
        """Return the Services that match the selector, sorted by name."""
        matching = [service for service in self._candidates(selector) if selector.matches(service)]
        return tuple(sorted(matching, key=lambda service: service.name))

    def _candidates(self, selector: Selector) -> Collection[Service]:
        """Return the Services by the index that leaves the fewest."""
        if selector.service is not None:
            named = self._by_name.get(selector.service)
            if named is None:
                return []
            return [named]
        if selector.labels:
            # The rarest one, because all Services may have one such as `managed-by: Helm`
            return min((self._by_label.get(label, []) for label in selector.labels), key=len)
        return self._by_name.values()

    def slices_of(self, service: Service) -> Sequence[EndpointSlice]:
        return self._slices.get(service.name, ())

    @property
    def pods(self) -> Mapping[str, Pod]:
        """The Pods by UID. Raises SourceUnknown if they could not be read, and
        InvalidSyncer(APIMissing) if the cluster has no such API, as do the other properties."""
        return self._indexed("pods", self._pods, lambda pod: pod.uid)

    @property
    def readiness(self) -> Mapping[str, PodReadiness]:
        return self._indexed("readiness", self._readiness, lambda pod: pod.uid)

    @property
    def hosts(self) -> Mapping[str, PodHost]:
        return self._indexed("hosts", self._hosts, lambda host: host.uid)

    @property
    def hosts_if_read(self) -> Mapping[str, PodHost]:
        """The same, but empty if they could not be read."""
        if isinstance(self._hosts, Unknown):
            return {}
        return self.hosts

    @property
    def ingresses(self) -> Mapping[str, Ingress]:
        return self._indexed("ingresses", self._ingresses, lambda ingress: ingress.name)

    @property
    def reference_grants(self) -> Mapping[str, ReferenceGrant]:
        return self._indexed("reference grants", self._reference_grants, lambda grant: grant.name)

    def routes(self, namespace: str) -> Mapping[str, HttpRoute]:
        """Return the HTTPRoutes of any namespace. Raises SourceUnknown, InvalidSyncer(APIMissing)."""
        source = self._routes.of(namespace) if self._routes else _NOT_READ
        return self._indexed(f"routes {namespace}", source, lambda route: route.name)

    def gateway(self, namespace: str, name: str) -> Gateway | None:
        """Return a Gateway of any namespace; None if it does not exist. Raises SourceUnknown,
        InvalidSyncer(APIMissing)."""
        source = self._gateways.of(namespace) if self._gateways else _NOT_READ
        of_namespace = self._indexed(f"gateways {namespace}", source, lambda gateway: gateway.name)
        return of_namespace.get(name)

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self._indexed("nodes", self._nodes, lambda node: node.name)

    def _indexed(
        self, name: str, source: Source[tuple[T, ...]], id_of: Callable[[T], str]
    ) -> Mapping[str, T]:
        self.asked += 1
        if isinstance(source, Unknown):
            if source.cause is Cause.API_MISSING:
                # It is known that there is none of them. As with an invalid spec, nothing is
                # removed for that: the CRD may be back soon.
                raise InvalidSyncer(Reason.API_MISSING, source.message)
            raise SourceUnknown(Server.KUBERNETES, source)
        if name not in self._indexes:
            self._indexes[name] = {id_of(item): item for item in source.data}
        return self._indexes[name]


class Catalogs:
    """The catalogs of a pass by namespace, each built on first use. If no Service of a namespace
    changed since the last pass, its catalog gets the same sequence of Services as `before`, so that
    no selector is evaluated again."""

    def __init__(
        self, view: ClusterView, before: Mapping[str, Sequence[Service]] | None = None
    ) -> None:
        self._view = view
        self._before = before or {}
        self._known: dict[str, Complete[Catalog] | Unknown] = {}

    def of(self, namespace: str) -> Complete[Catalog] | Unknown:
        """Return the namespace's catalog, or Unknown if its Services or slices are."""
        if namespace not in self._known:
            self._known[namespace] = self._build(namespace)
        return self._known[namespace]

    def _build(self, namespace: str) -> Complete[Catalog] | Unknown:
        view = self._view
        services, slices = view.services.of(namespace), view.slices.of(namespace)
        if isinstance(services, Unknown):
            return services
        if isinstance(slices, Unknown):
            return slices
        services, slices = _of_syncers(services), _of_syncers(slices)
        pods = view.pods.of(namespace) if view.pods else _NOT_READ
        readiness = view.readiness.of(namespace) if view.readiness else _NOT_READ
        hosts = view.hosts.of(namespace) if view.hosts else _NOT_READ
        ingresses = view.ingresses.of(namespace) if view.ingresses else _NOT_READ
        grants = view.reference_grants.of(namespace) if view.reference_grants else _NOT_READ
        drains = drains_of(view.pod_drains.of(namespace)) if view.pod_drains else None
        before = self._before.get(namespace, ())
        if same(before, services.data):
            services = Complete(data=tuple(before))
        nodes = view.nodes or _NOT_READ
        catalog = Catalog(
            services,
            slices,
            pods,
            nodes,
            readiness,
            drains,
            hosts=hosts,
            ingresses=ingresses,
            reference_grants=grants,
            routes=view.routes,
            gateways=view.gateways,
        )
        return Complete(data=catalog)

    def services(self) -> Mapping[str, Sequence[Service]]:
        """Return the Services of each catalog that was built."""
        services = {}
        for namespace, catalog in self._known.items():
            if isinstance(catalog, Complete):
                services[namespace] = catalog.data.services
        return services


def _of_syncers(listed: Complete[tuple[S, ...]]) -> Complete[tuple[S, ...]]:
    """Return the Services or slices that syncers may register: those of no import."""
    if not any(map(is_of_an_import, listed.data)):
        return listed  # nearly always
    return Complete(data=tuple([thing for thing in listed.data if not is_of_an_import(thing)]))


def same(before: Sequence[object], now: Sequence[object]) -> bool:
    """Whether both hold the identical objects."""
    return len(before) == len(now) and all(map(is_, before, now))


def pods_by_socket(view: ClusterView) -> Mapping[PodSocket, Complete[frozenset[str]]]:
    """Map each socket at which a ready pod listens to the UIDs of all pods that slices list there.
    A host port is a socket as well, where the whole pods were read.

    Two pods never listen at one address **and** port. So a ready pod there proves that a pod is
    gone which no slice lists there. What proves nothing:

    | what is listed                                | why it proves nothing                             |
    |-----------------------------------------------|---------------------------------------------------|
    | a pod that is not ready                       | on its host's network it may only want the port,  |
    |                                               | which another pod has, and restart for ever       |
    | a pod that terminates                         | the address may have been given away              |
    | a slice of another namespace                  | its users could write any address                 |
    | a slice of a Service without a selector       | no controller updates it                          |
    | a slice of an import                          | it leads to an instance of Eureka                 |
    """
    listed: dict[PodSocket, set[str]] = {}
    ready: set[PodSocket] = set()
    for namespace in view.slices.by_namespace:
        hosts = _hosts_in(namespace, view)
        for service, piece in _slices_kept_up(namespace, view):
            numbers = [port.port for port in piece.ports if port.port is not None]
            for endpoint in piece.endpoints:
                if endpoint.pod is None or endpoint.terminating:
                    continue
                sockets = [(endpoint.address, number) for number in numbers]
                if hosts and endpoint.pod.uid in hosts:
                    sockets += _at_node(hosts[endpoint.pod.uid], numbers)
                for address, number in sockets:
                    socket = (namespace, address, number)
                    listed.setdefault(socket, set()).add(endpoint.pod.uid)
                    if healthy(endpoint, service):
                        ready.add(socket)
    return {socket: Complete(data=frozenset(listed[socket])) for socket in ready}


def _hosts_in(namespace: str, view: ClusterView) -> Mapping[str, PodHost]:
    """Return where the pods of a namespace are reached at their nodes, by UID; nothing if that was
    not read."""
    hosts = view.hosts.of(namespace) if view.hosts else _NOT_READ
    if isinstance(hosts, Unknown):
        return {}
    return {host.uid: host for host in hosts.data}


def _at_node(host: PodHost, numbers: Sequence[int]) -> list[tuple[str, int]]:
    """Return the addresses and host ports of a pod's ports. On the network of its node, the slices
    have them."""
    sockets: list[tuple[str, int]] = []
    for number in numbers:
        port = host.ports.get(number)
        if port is None or host.host_network:
            continue
        for address in [port.address] if port.address else host.addresses:
            sockets.append((address, port.number))
    return sockets


def _slices_kept_up(namespace: str, view: ClusterView) -> Iterator[tuple[Service, EndpointSlice]]:
    """Yield the slices of a namespace that the cluster keeps up to date, each with its Service."""
    services, slices = view.services.of(namespace), view.slices.of(namespace)
    if isinstance(services, Unknown) or isinstance(slices, Unknown):
        return
    selecting = {}
    for service in services.data:
        if service.selects and not service.is_external_name:
            selecting[service.name] = service
    for piece in slices.data:
        if piece.service in selecting and not is_of_an_import(piece):
            yield selecting[piece.service], piece
