"""Indexes of the objects of one namespace, such as Services by label and slices by Service, and of
drain annotations. A catalog is built from complete lists only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from operator import is_
from typing import Any, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from eurekube_sync.desired.endpoints import healthy, numbers_of
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
        if self.kind is Kind.SERVICE:
            return f"Service {self.name}"
        return f"pod {self.name}"


class Drain(Struct, frozen=True, kw_only=True):
    """Whether an instance is drained."""

    by: tuple[Kind, ...] = ()  # in the order of `Kind`; empty if it is not drained
    drainer: Drainer | None = None  # the first object that drains it
    unreadable_drain_kinds: frozenset[Kind] = frozenset()
    """The kinds of objects that could not be read."""
    ignored: tuple[str, ...] = ()  # what is wrong with invalid annotations


NO_DRAIN = Drain()

PodSocket: TypeAlias = tuple[str, str, int]  # a pod's namespace, its address, and a port
Known: TypeAlias = Mapping[str, Drainable] | Unknown | None  # pods by UID; None: not read


def drainable(id_: str, annotations: Mapping[str, str]) -> Drainable:
    """Read the drain annotation of a Service or Pod. Only the value "true" drains it."""
    drained = annotations.get(DRAIN_ANNOTATION) == "true"
    ignored = ignored_value(annotations, DRAIN_ANNOTATION)
    return Drainable(id=id_, drained=drained, ignored=ignored)


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
            drainer = Drainer(Kind.SERVICE, service.name)
            annotated.append((drainer, _of_service(service)))
    if pod is not None and pods is not None:
        listed = None if isinstance(pods, Unknown) else pods.get(pod.uid)
        if listed is None:  # the list failed, or is older than the pod
            unknown.add(Kind.POD)
        else:
            drainer = Drainer(Kind.POD, pod.name)
            annotated.append((drainer, listed))
    drained = _drained_by(annotated)
    # Whether the pod is behind such a Service is unknown, so the mark in Eureka counts.
    if Kind.SERVICE not in drained and _any_drains(perhaps):
        unknown.add(Kind.SERVICE)
    if not annotated and not unknown:  # as of nearly all instances
        return NO_DRAIN
    ignored: list[str] = []
    for drainer, read in annotated:
        if read.ignored:
            ignored.append(f"{drainer}: {read.ignored}")
    return Drain(
        by=tuple(drained),
        drainer=next(iter(drained.values()), None),
        unreadable_drain_kinds=frozenset(unknown),
        ignored=tuple(ignored),
    )


def _drained_by(annotated: Sequence[tuple[Drainer, Drainable]]) -> Mapping[Kind, Drainer]:
    """Return the first object of each kind that drains an instance."""
    drained: dict[Kind, Drainer] = {}
    for drainer, read in annotated:
        if read.drained:
            drained.setdefault(drainer.kind, drainer)
    return drained


def _any_drains(services: Sequence[Service]) -> bool:
    return any(_of_service(service).drained for service in services)


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
        self._pods = pods
        self._nodes = nodes
        self._readiness = readiness
        self._hosts = hosts
        self._ingresses = ingresses
        self._reference_grants = reference_grants
        self._routes = routes
        self._gateways = gateways
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
        candidates = self._candidates(selector)
        matching = [service for service in candidates if selector.matches(service)]
        matching.sort(key=lambda service: service.name)
        return tuple(matching)

    def _candidates(self, selector: Selector) -> Collection[Service]:
        """Return the Services by the index that leaves the fewest."""
        if selector.service is not None:
            named = self._by_name.get(selector.service)
            if named is None:
                return []
            return [named]
        if selector.labels:
            having = [self._by_label.get(label, []) for label in selector.labels]
            # The rarest one, because all Services may have one such as `managed-by: Helm`
            return min(having, key=len)
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
        source = _part(self._routes, namespace)
        return self._indexed(f"routes {namespace}", source, lambda route: route.name)

    def gateway(self, namespace: str, name: str) -> Gateway | None:
        """Return a Gateway of any namespace; None if it does not exist. Raises SourceUnknown,
        InvalidSyncer(APIMissing)."""
        source = _part(self._gateways, namespace)
        of_namespace = self._indexed(f"gateways {namespace}", source, lambda gateway: gateway.name)
        return of_namespace.get(name)

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self._indexed("nodes", self._nodes, lambda node: node.name)

    def _indexed(
        self, name: str, source: Source[tuple[T, ...]], id_of: Callable[[T], str]
    ) -> Mapping[str, T]:
        self.asked += 1  # a claim that asked is made anew in each pass
        if isinstance(source, Unknown):
            if source.cause is Cause.API_MISSING:
                # It is known that there is none of them. As with an invalid spec, nothing is
                # removed for that: the CRD may be back soon.
                raise InvalidSyncer(Reason.API_MISSING, source.message)
            raise SourceUnknown(Server.KUBERNETES, source)
        index = self._indexes.get(name)
        if index is None:
            index = {id_of(item): item for item in source.data}
            self._indexes[name] = index
        return index


def _part(listed: Listed[T] | None, namespace: str) -> Source[tuple[T, ...]]:
    """Return the objects of a namespace in a list, if there is a list."""
    if listed is None:
        return _NOT_READ
    return listed.of(namespace)


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
        services = view.services.of(namespace)
        if isinstance(services, Unknown):
            return services
        slices = view.slices.of(namespace)
        if isinstance(slices, Unknown):
            return slices
        services = _of_syncers(services)
        before = self._before.get(namespace, ())
        if same(before, services.data):
            services = Complete(data=tuple(before))
        drains = None
        if view.pod_drains is not None:
            drains = drains_of(view.pod_drains.of(namespace))
        catalog = Catalog(
            services,
            _of_syncers(slices),
            pods=_part(view.pods, namespace),
            nodes=view.nodes or _NOT_READ,
            readiness=_part(view.readiness, namespace),
            pod_drains=drains,
            hosts=_part(view.hosts, namespace),
            ingresses=_part(view.ingresses, namespace),
            reference_grants=_part(view.reference_grants, namespace),
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
    own = [item for item in listed.data if not is_of_an_import(item)]
    return Complete(data=tuple(own))


def same(before: Sequence[object], now: Sequence[object]) -> bool:
    """Whether both hold the identical objects."""
    if len(before) != len(now):
        return False
    return all(map(is_, before, now))


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
            numbers = numbers_of([piece])
            for endpoint in piece.endpoints:
                pod = endpoint.pod
                if pod is None or endpoint.terminating:
                    continue
                sockets = [(endpoint.address, number) for number in numbers]
                if pod.uid in hosts:
                    sockets += _at_node(hosts[pod.uid], numbers)
                is_ready = healthy(endpoint, service)
                for address, number in sockets:
                    socket = (namespace, address, number)
                    listed.setdefault(socket, set()).add(pod.uid)
                    if is_ready:
                        ready.add(socket)
    proofs: dict[PodSocket, Complete[frozenset[str]]] = {}
    for socket in ready:
        uids = frozenset(listed[socket])
        proofs[socket] = Complete(data=uids)
    return proofs


def _hosts_in(namespace: str, view: ClusterView) -> Mapping[str, PodHost]:
    """Return where the pods of a namespace are reached at their nodes, by UID; nothing if that was
    not read."""
    hosts = _part(view.hosts, namespace)
    if isinstance(hosts, Unknown):
        return {}
    return {host.uid: host for host in hosts.data}


def _at_node(host: PodHost, numbers: Iterable[int]) -> list[tuple[str, int]]:
    """Return the addresses and host ports of a pod's ports. On the network of its node, the slices
    have them."""
    sockets: list[tuple[str, int]] = []
    for number in numbers:
        port = host.ports.get(number)
        if port is None or host.host_network:
            continue
        addresses = [port.address] if port.address else host.addresses
        for address in addresses:
            sockets.append((address, port.number))
    return sockets


def _slices_kept_up(namespace: str, view: ClusterView) -> Iterator[tuple[Service, EndpointSlice]]:
    """Yield the slices of a namespace that the cluster keeps up to date, each with its Service."""
    services = view.services.of(namespace)
    slices = view.slices.of(namespace)
    if isinstance(services, Unknown) or isinstance(slices, Unknown):
        return
    selecting: dict[str, Service] = {}
    for service in services.data:
        if service.selects and not service.is_external_name:
            selecting[service.name] = service
    for piece in slices.data:
        owner = selecting.get(piece.service)
        if owner is not None and not is_of_an_import(piece):
            yield owner, piece
