"""What one namespace holds, indexed: Services by label, slices by Service. Built from complete lists only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from eurekube_sync.model import ClusterView, Complete, EndpointSlice, Service, Unknown
from eurekube_sync.syncer import Selector


class Catalog:
    """The Services and slices of one namespace."""

    def __init__(self, services: Complete[tuple[Service, ...]], slices: Complete[tuple[EndpointSlice, ...]]) -> None:
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


class Catalogs:
    """The catalogs of a pass, each built when a syncer of its namespace first asks."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._known: dict[str, Complete[Catalog] | Unknown] = {}

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
        return Complete(data=Catalog(services, slices))


def pods_by_socket(view: ClusterView) -> Mapping[tuple[str, int], Complete[frozenset[str]]]:
    """For each address and port in a complete list, the UIDs of the pods that listen there and do not terminate.

    Two pods never share an address **and** a port, so another UID there proves that the first pod is gone. The address
    alone would not: pods on the host's network share it.
    """
    found: dict[tuple[str, int], set[str]] = {}
    for source in view.slices.by_namespace.values():
        for piece in source.data if isinstance(source, Complete) else ():
            numbers = [port.port for port in piece.ports if port.port is not None]
            for endpoint in piece.endpoints:
                if endpoint.pod is not None and not endpoint.terminating:
                    for number in numbers:
                        found.setdefault((endpoint.address, number), set()).add(endpoint.pod.uid)
    return {socket: Complete(data=frozenset(uids)) for socket, uids in found.items()}
