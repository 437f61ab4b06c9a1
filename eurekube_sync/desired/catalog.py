"""What one namespace holds, indexed: Services by label, slices by Service; and what a person drains by annotation.
Built from complete lists only. An instance's mark tells what drained it while the list of Pods or Nodes is Unknown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from operator import is_
from typing import Any, TypeAlias, TypeVar

from eurekube_sync.desired.selector import Selector
from eurekube_sync.desired.spec import DRAIN_ANNOTATION, ignored_value
from eurekube_sync.model.kubernetes import (
    ClusterView,
    Drainable,
    EndpointSlice,
    Node,
    Pod,
    PodReadiness,
    PodRef,
    Service,
)
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from eurekube_sync.model.values import dataclass

T = TypeVar("T")

DRAINED = "eurekube.drained"  # what drains the instance: kinds, with commas between


class Kind(StrEnum):
    """What may be drained, as the mark has it."""

    SERVICE = "service"
    POD = "pod"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """What is known of one place."""

    by: tuple[Kind, ...] = ()  # in the order of `Kind`; empty while nobody drains it
    why: str = ""
    drain_unknown: frozenset[Kind] = frozenset()
    ignored: tuple[str, ...] = ()  # what is wrong with annotations that say neither


NO_DRAIN = Drain()

PodSocket: TypeAlias = tuple[str, str, int]  # a pod's namespace, its address, and a port
Known: TypeAlias = Mapping[str, Drainable] | Unknown | None  # by its id; None when nobody asked


def drainable(id_: str, annotations: Mapping[str, str]) -> Drainable:
    """What a Service's, a Pod's or a Node's annotations say: nothing but "true" drains it."""
    drained = annotations.get(DRAIN_ANNOTATION) == "true"
    return Drainable(id=id_, drained=drained, ignored=ignored_value(annotations, DRAIN_ANNOTATION))


def known(source: Source[tuple[Drainable, ...]] | None) -> Known:
    """The list by id."""
    return {one.id: one for one in source.data} if isinstance(source, Complete) else source


@dataclass(frozen=True, slots=True)
class Drains:
    """What the Pods of a namespace and all Nodes say."""

    pods: Known = None
    nodes: Known = None

    def of(
        self, services: Sequence[Service], pod: PodRef | None, node: str, *, perhaps: Sequence[Service] = ()
    ) -> Drain:
        """Of an instance behind these Services, and `perhaps` those, of this pod on this node."""
        marked = [one for one in services if DRAIN_ANNOTATION in one.annotations]
        found: list[tuple[Kind, str, Drainable | None]]
        found = [(Kind.SERVICE, f"Service {one.name}", drainable(one.name, one.annotations)) for one in marked]
        if pod is not None and self.pods is not None:
            found.append((Kind.POD, f"pod {pod.name}", _found(self.pods, pod.uid)))
        if node and self.nodes is not None:
            found.append((Kind.NODE, f"node {node}", _found(self.nodes, node)))
        if not found and not perhaps:
            return NO_DRAIN
        drained = [(kind, name) for kind, name, one in found if one is not None and one.drained]
        by = tuple(dict.fromkeys(kind for kind, _ in drained))
        unknown = {kind for kind, _, one in found if one is None}
        if Kind.SERVICE not in by and any(drainable(one.name, one.annotations).drained for one in perhaps):
            unknown.add(Kind.SERVICE)
        return Drain(
            by=by,
            why=f"{drained[0][1]} is drained by its annotation" if drained else "",
            drain_unknown=frozenset(unknown),
            ignored=tuple(f"{name}: {one.ignored}" for _, name, one in found if one is not None and one.ignored),
        )

    def denied(self) -> Iterator[str]:
        """Why Pods or Nodes will not be looked at until somebody grants a right, or asks for less."""
        for what, source in (("Pods", self.pods), ("Nodes", self.nodes)):
            if isinstance(source, Unknown) and source.cause is Cause.DENIED:
                yield f"drain annotations of {what} are not read: {source.message}"


def _found(those: Mapping[str, Drainable] | Unknown, id_: str) -> Drainable | None:
    """None also for one that is not in the list: it went between two of them, and is no reason to bring anything up."""
    return None if isinstance(those, Unknown) else those.get(id_)


_NOT_READ = Unknown(cause=Cause.NOT_READ, message="what the syncer needs was not read")


class SourceUnknown(Exception):
    """A syncer needs a source that is Unknown: it is left as it is."""

    def __init__(self, unknown: Unknown) -> None:
        super().__init__(unknown.message)
        self.unknown = unknown


class Catalog:
    """The Services and slices of one namespace, and its Pods where they were read."""

    def __init__(
        self,
        services: Complete[tuple[Service, ...]],
        slices: Complete[tuple[EndpointSlice, ...]],
        pods: Source[tuple[Pod, ...]] = _NOT_READ,
        nodes: Source[tuple[Node, ...]] = _NOT_READ,
        readiness: Source[tuple[PodReadiness, ...]] = _NOT_READ,
        drains: Drains = Drains(),  # noqa: B008 - immutable
    ) -> None:
        self.services: Sequence[Service] = services.data
        self.drains = drains
        self.asked = 0
        self._pods, self._nodes, self._readiness = pods, nodes, readiness
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
        """The Services that the selector means, by name; a label narrows the walk."""
        candidates: Collection[Service] = self._by_name.values()
        if selector.service is not None:
            candidates = [self._by_name[selector.service]] if selector.service in self._by_name else []
        elif selector.labels:  # the rarest: `managed-by: Helm` is on all of them
            candidates = min((self._by_label.get(label, []) for label in selector.labels), key=len)
        return tuple(sorted((s for s in candidates if selector.matches(s)), key=lambda s: s.name))

    def slices_of(self, service: Service) -> Sequence[EndpointSlice]:
        """The Service's slices, of every address family."""
        return self._slices.get(service.name, ())

    @property
    def pods(self) -> Mapping[str, Pod]:
        """The Pods by UID. Raises SourceUnknown when they could not be read, as the others do."""
        return self._indexed("pods", self._pods, lambda pod: pod.uid)

    @property
    def readiness(self) -> Mapping[str, PodReadiness]:
        """How ready each Pod is but for our gate, by UID."""
        return self._indexed("readiness", self._readiness, lambda pod: pod.uid)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The cluster's Nodes by name."""
        return self._indexed("nodes", self._nodes, lambda node: node.name)

    def _indexed(self, name: str, source: Source[tuple[T, ...]], id_of: Callable[[T], str]) -> Mapping[str, T]:
        self.asked += 1
        if isinstance(source, Unknown):
            raise SourceUnknown(source)
        if name not in self._indexes:
            self._indexes[name] = {id_of(one): one for one in source.data}
        return self._indexes[name]


class Catalogs:
    """The catalogs of a pass, each built when a syncer of its namespace first asks. If the objects are the same, it has
    the very sequence of Services that was there `before`: what a selector means is then not looked for again."""

    def __init__(self, view: ClusterView, before: Mapping[str, Sequence[Service]] | None = None) -> None:
        self._view = view
        self._before = before or {}
        self._known: dict[str, Complete[Catalog] | Unknown] = {}
        self._node_drains = known(view.node_drains)

    def of(self, namespace: str) -> Complete[Catalog] | Unknown:
        """The namespace's catalog; Unknown when its Services or its slices are."""
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
        pods = view.pods.of(namespace) if view.pods else _NOT_READ
        readiness = view.readiness.of(namespace) if view.readiness else _NOT_READ
        drains = Drains(known(view.pod_drains.of(namespace)) if view.pod_drains else None, self._node_drains)
        before = self._before.get(namespace, ())
        if same(before, services.data):
            services = Complete(data=tuple(before))
        return Complete(data=Catalog(services, slices, pods, view.nodes or _NOT_READ, readiness, drains))

    def services(self) -> Mapping[str, Sequence[Service]]:
        """Of each namespace that was asked for."""
        return {name: one.data.services for name, one in self._known.items() if isinstance(one, Complete)}


def same(some: Sequence[object], others: Sequence[object]) -> bool:
    """Whether these are the very same objects."""
    return len(some) == len(others) and all(map(is_, some, others))


def pods_by_socket(view: ClusterView) -> Mapping[PodSocket, Complete[frozenset[str]]]:
    """For each namespace, address and port: the UIDs of the namespace's pods that listen there and do not terminate.

    Two pods never share an address **and** a port, so another UID there proves that the first pod is gone; pods on the
    host's network share an address alone. Another namespace's slices prove nothing: whoever writes there could name any
    address. Only Services that select their pods count, for nobody keeps other slices up to date.
    """
    found: dict[PodSocket, set[str]] = {}
    for namespace, source in view.slices.by_namespace.items():
        services = view.services.of(namespace)
        if isinstance(source, Unknown) or isinstance(services, Unknown):
            continue
        kept_up = {one.name for one in services.data if one.selects and not one.is_external_name}
        for piece in (one for one in source.data if one.service in kept_up):
            numbers = [port.port for port in piece.ports if port.port is not None]
            for endpoint in piece.endpoints:
                if endpoint.pod is not None and not endpoint.terminating:
                    for number in numbers:
                        found.setdefault((namespace, endpoint.address, number), set()).add(endpoint.pod.uid)
    return {socket: Complete(data=frozenset(uids)) for socket, uids in found.items()}
