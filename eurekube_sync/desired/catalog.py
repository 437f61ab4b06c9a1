"""Indexes of the objects of one namespace, such as Services by label and slices by Service, and of
drain annotations. A catalog is built from complete lists only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from operator import is_
from typing import Any, TypeAlias, TypeVar

from eurekube_sync.desired.selector import Selector
from eurekube_sync.desired.spec import DRAIN_ANNOTATION, ignored_value
from eurekube_sync.model.errors import SourceUnknown
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
from eurekube_sync.model.sources import Cause, Complete, Server, Source, Unknown
from eurekube_sync.model.values import dataclass

T = TypeVar("T")

DRAINED = "eurekube.drained"  # the mark of a drained instance: kinds, separated by commas


class Kind(StrEnum):
    """The kinds of objects that can be drained, as in the mark."""

    SERVICE = "service"
    POD = "pod"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Whether an instance is drained."""

    by: tuple[Kind, ...] = ()  # in the order of `Kind`; empty if it is not drained
    why: str = ""
    drain_unknown: frozenset[Kind] = frozenset()  # the kinds of objects that could not be read
    ignored: tuple[str, ...] = ()  # what is wrong with invalid annotations


NO_DRAIN = Drain()

PodSocket: TypeAlias = tuple[str, str, int]  # a pod's namespace, its address, and a port
Known: TypeAlias = Mapping[str, Drainable] | Unknown | None  # by id; None: not read


def drainable(id_: str, annotations: Mapping[str, str]) -> Drainable:
    """Read the drain annotation of a Service, Pod or Node. Only the value "true" drains it."""
    drained = annotations.get(DRAIN_ANNOTATION) == "true"
    return Drainable(id=id_, drained=drained, ignored=ignored_value(annotations, DRAIN_ANNOTATION))


def known(source: Source[tuple[Drainable, ...]] | None) -> Known:
    """Index a list by id."""
    return {one.id: one for one in source.data} if isinstance(source, Complete) else source


@dataclass(frozen=True, slots=True)
class Drains:
    """The drain annotations of a namespace's Pods and of all Nodes."""

    pods: Known = None
    nodes: Known = None

    def of(
        self,
        services: Sequence[Service],
        pod: PodRef | None,
        node: str,
        *,
        perhaps: Sequence[Service] = (),
    ) -> Drain:
        """Return whether the instance of a pod on a node, behind these Services, is drained. It may
        also be behind the Services `perhaps`."""
        found: list[tuple[Kind, str, Drainable | None]] = [
            (Kind.SERVICE, f"Service {one.name}", drainable(one.name, one.annotations))
            for one in services
            if DRAIN_ANNOTATION in one.annotations
        ]
        if pod is not None and self.pods is not None:
            found.append((Kind.POD, f"pod {pod.name}", _found(self.pods, pod.uid)))
        if node and self.nodes is not None:
            found.append((Kind.NODE, f"node {node}", _found(self.nodes, node)))
        if not found and not perhaps:
            return NO_DRAIN
        drained = [(kind, name) for kind, name, one in found if one is not None and one.drained]
        by = tuple(dict.fromkeys(kind for kind, _ in drained))
        unknown = {kind for kind, _, one in found if one is None}
        if Kind.SERVICE not in by and any(
            drainable(one.name, one.annotations).drained for one in perhaps
        ):
            unknown.add(Kind.SERVICE)
        return Drain(
            by=by,
            why=f"{drained[0][1]} has the annotation {DRAIN_ANNOTATION}" if drained else "",
            drain_unknown=frozenset(unknown),
            ignored=tuple(
                f"{name}: {one.ignored}"
                for _, name, one in found
                if one is not None and one.ignored
            ),
        )

    def denied(self) -> Iterator[str]:
        """Yield a sentence if the right to read Pods or Nodes is missing."""
        for what, source in (("Pods", self.pods), ("Nodes", self.nodes)):
            if isinstance(source, Unknown) and source.cause is Cause.DENIED:
                yield f"drain annotations of {what} are not read: {source.message}"


def _found(source: Mapping[str, Drainable] | Unknown, id_: str) -> Drainable | None:
    """Return None if nothing is known of the object, as of one that is not in the list."""
    return None if isinstance(source, Unknown) else source.get(id_)


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
        drains: Drains = Drains(),  # noqa: B008 - immutable
    ) -> None:
        self.services: Sequence[Service] = services.data
        self.drains = drains
        self.asked = 0  # how often Pods, Nodes or readiness were read from here
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
        """Return the Services that match the selector, sorted by name."""
        candidates: Collection[Service] = self._by_name.values()
        if selector.service is not None:
            candidates = (
                [self._by_name[selector.service]] if selector.service in self._by_name else []
            )
        elif (
            selector.labels
        ):  # the rarest one, because all Services may have one such as `managed-by: Helm`
            candidates = min((self._by_label.get(label, []) for label in selector.labels), key=len)
        return tuple(sorted((s for s in candidates if selector.matches(s)), key=lambda s: s.name))

    def slices_of(self, service: Service) -> Sequence[EndpointSlice]:
        return self._slices.get(service.name, ())

    @property
    def pods(self) -> Mapping[str, Pod]:
        """The Pods by UID. Raises SourceUnknown if they could not be read, as do the next two
        properties."""
        return self._indexed("pods", self._pods, lambda pod: pod.uid)

    @property
    def readiness(self) -> Mapping[str, PodReadiness]:
        return self._indexed("readiness", self._readiness, lambda pod: pod.uid)

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self._indexed("nodes", self._nodes, lambda node: node.name)

    def _indexed(
        self, name: str, source: Source[tuple[T, ...]], id_of: Callable[[T], str]
    ) -> Mapping[str, T]:
        self.asked += 1
        if isinstance(source, Unknown):
            raise SourceUnknown(Server.KUBERNETES, source)
        if name not in self._indexes:
            self._indexes[name] = {id_of(one): one for one in source.data}
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
        self._node_drains = known(view.node_drains)

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
        pods = view.pods.of(namespace) if view.pods else _NOT_READ
        readiness = view.readiness.of(namespace) if view.readiness else _NOT_READ
        drains = Drains(
            known(view.pod_drains.of(namespace)) if view.pod_drains else None, self._node_drains
        )
        before = self._before.get(namespace, ())
        if same(before, services.data):
            services = Complete(data=tuple(before))
        return Complete(
            data=Catalog(services, slices, pods, view.nodes or _NOT_READ, readiness, drains)
        )

    def services(self) -> Mapping[str, Sequence[Service]]:
        """Return the Services of each catalog that was built."""
        return {
            name: one.data.services
            for name, one in self._known.items()
            if isinstance(one, Complete)
        }


def same(some: Sequence[object], others: Sequence[object]) -> bool:
    """Whether both hold the identical objects."""
    return len(some) == len(others) and all(map(is_, some, others))


def pods_by_socket(view: ClusterView) -> Mapping[PodSocket, Complete[frozenset[str]]]:
    """Map each namespace, address and port to the UIDs of the namespace's pods that listen there
    and do not terminate.

    Two pods never share an address **and** a port, so that another UID there proves that the first
    pod is gone. Slices of another namespace prove nothing, because its users could write any
    address into them. Slices of a Service without a selector do not count, because no controller
    updates them.
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
                        found.setdefault((namespace, endpoint.address, number), set()).add(
                            endpoint.pod.uid
                        )
    return {socket: Complete(data=frozenset(uids)) for socket, uids in found.items()}
