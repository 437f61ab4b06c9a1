"""What one namespace holds, indexed: Services by label, slices by Service. Built from complete lists only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from eurekube_sync.desired.drain import Drains, known
from eurekube_sync.desired.selector import Selector
from eurekube_sync.model.kubernetes import ClusterView, EndpointSlice, Node, Pod, PodReadiness, Service
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown

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
        """How often pods, nodes or readiness were asked for."""
        self._readiness = readiness
        self._readiness_by_uid: Mapping[str, PodReadiness] | None = None
        self._pods = pods
        self._nodes = nodes
        self._nodes_by_name: Mapping[str, Node] | None = None
        self._pods_by_uid: Mapping[str, Pod] | None = None
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
            candidates = min((self._by_label.get(label, []) for label in selector.labels), key=lambda found: len(found))
        return tuple(sorted((s for s in candidates if selector.matches(s)), key=lambda s: s.name))

    def slices_of(self, service: Service) -> Sequence[EndpointSlice]:
        """The Service's slices, of every address family."""
        return self._slices.get(service.name, ())

    @property
    def pods(self) -> Mapping[str, Pod]:
        """The Pods by UID. Raises SourceUnknown when they could not be read: no label is not the same as no answer."""
        self.asked += 1
        if isinstance(self._pods, Unknown):
            raise SourceUnknown(self._pods)
        if self._pods_by_uid is None:
            self._pods_by_uid = {pod.uid: pod for pod in self._pods.data}
        return self._pods_by_uid

    @property
    def readiness(self) -> Mapping[str, PodReadiness]:
        """How ready each Pod is but for our gate, by UID. Raises SourceUnknown when that could not be read."""
        self.asked += 1
        if isinstance(self._readiness, Unknown):
            raise SourceUnknown(self._readiness)
        if self._readiness_by_uid is None:
            self._readiness_by_uid = {pod.uid: pod for pod in self._readiness.data}
        return self._readiness_by_uid

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The cluster's Nodes by name. Raises SourceUnknown when they could not be read."""
        self.asked += 1
        if isinstance(self._nodes, Unknown):
            raise SourceUnknown(self._nodes)
        if self._nodes_by_name is None:
            self._nodes_by_name = {node.name: node for node in self._nodes.data}
        return self._nodes_by_name


class Catalogs:
    """The catalogs of a pass, each built when a syncer of its namespace first asks."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._known: dict[str, Complete[Catalog] | Unknown] = {}
        self._node_drains = known(view.node_drains)

    def of(self, namespace: str) -> Complete[Catalog] | Unknown:
        """The namespace's catalog; Unknown when its Services or its slices are."""
        if namespace not in self._known:
            self._known[namespace] = self._build(namespace)
        return self._known[namespace]

    def _build(self, namespace: str) -> Complete[Catalog] | Unknown:
        services = self._view.services.of(namespace)
        slices = self._view.slices.of(namespace)
        if isinstance(services, Unknown):
            return services
        if isinstance(slices, Unknown):
            return slices
        pods = self._view.pods.of(namespace) if self._view.pods else _NOT_READ
        readiness = self._view.readiness.of(namespace) if self._view.readiness else _NOT_READ
        pod_drains = known(self._view.pod_drains.of(namespace)) if self._view.pod_drains else None
        drains = Drains(pod_drains, self._node_drains)
        return Complete(data=Catalog(services, slices, pods, self._view.nodes or _NOT_READ, readiness, drains))


PodSocket: TypeAlias = tuple[str, str, int]
"""A pod's namespace, its address, and a port."""


class Sockets:
    """Which pods listen at an address and port; found out for all when first asked."""

    def __init__(self, view: ClusterView | None = None) -> None:
        self._view = view
        self._found: Mapping[PodSocket, Complete[frozenset[str]]] | None = None

    def at(self, namespace: str, address: str, port: int) -> Complete[frozenset[str]] | None:
        """The UIDs of the namespace's pods there; None where a complete list shows none."""
        if self._found is None:
            self._found = pods_by_socket(self._view) if self._view else {}
        return self._found.get((namespace, address, port))


def pods_by_socket(view: ClusterView) -> Mapping[PodSocket, Complete[frozenset[str]]]:
    """For each namespace, address and port: the UIDs of the namespace's pods that listen there and do not terminate.

    Two pods never share an address **and** a port, so another UID there proves that the first pod is gone. The address
    alone would not: pods on the host's network share it. Another namespace's slices prove nothing: whoever writes there
    could name any address. Only Services that select their pods count, for nobody keeps other slices up to date.
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
