"""Reads the endpoints and ports of a syncer's Services from their slices, as one `Backend` per pod.

The rules are those of the EndpointSlice API: a Service has several slices, with duplicates between them, and one for
each family of a dual-stack Service. The order of slices and Services does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import Endpoint, EndpointSlice, Service, ServicePort
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One pod, or an address without a pod, behind a Service, on the port that the syncer asks for."""

    services: Sequence[Service]  # sorted by name; several if a pod is behind several
    endpoint: Endpoint
    port: int
    ready: bool

    @property
    def identity(self) -> str:
        """The pod's UID, or the address if there is no pod."""
        pod = self.endpoint.pod
        return pod.uid if pod and pod.uid else self.endpoint.address

    @property
    def label(self) -> str:
        """The name for messages."""
        return f"pod {self.endpoint.pod.name}" if self.endpoint.pod else f"endpoint {self.endpoint.address}"

    @property
    def preference(self) -> tuple[bool, bool, bool, int, str, str]:
        """The sort key of duplicates: not terminating, then ready, then serving; the rest makes the order stable."""
        one = self.endpoint
        return (one.terminating, not self.ready, not one.serving, self.port, one.address, self.services[0].name)


def choose_port(service: Service, port: str | int | None, *, field: str = "port") -> ServicePort | None:
    """Return the Service's port by `field` of the spec, or None if there is no such port.

    `port` is a name, a number, or a target port. The default is the only port, or the one named `http`. In a Service
    without ports, a number is itself the port. Raises InvalidSyncer(AmbiguousPort)."""
    if not service.ports and isinstance(port, int):  # a headless Service may have no ports, although its pods listen
        return ServicePort(name="", port=port)
    if isinstance(port, str):
        return next((p for p in service.ports if p.name == port), None)
    if port is None:
        found = [p for p in service.ports if p.name == "http" or len(service.ports) == 1] or service.ports
    else:
        found = [p for p in service.ports if p.port == port] or [p for p in service.ports if p.target == port]
    if len(found) > 1:
        why = " has the ports" if port is None else f": {port} fits the ports"
        raise InvalidSyncer("AmbiguousPort", f"Service {service.name}{why} {_ports(found)}: name one in spec.{field}")
    return found[0] if found else None


def chosen_ports(
    services: Sequence[Service], port: str | int | None, *, field: str = "port", where: str = "its pods listen on"
) -> tuple[tuple[Service, ServicePort], ...]:
    """Return the Services that have the port of `field` of the spec, sorted by name; `where` is a part of the error.
    Raises InvalidSyncer if no Service has it, or if it is ambiguous."""
    ordered = sorted(services, key=lambda service: service.name)
    found = [(service, choose_port(service, port, field=field)) for service in ordered]
    if chosen := tuple((service, port) for service, port in found if port is not None):
        return chosen
    if any(service.ports for service in services):
        there = "; ".join(f"{service.name} has {_ports(service.ports)}" for service in ordered[:5])
        wanted = "port" if port is None else f"port {port!r}"
        raise InvalidSyncer("NoSuchPort", f"no Service has the {wanted}: {there}")
    names = ", ".join(service.name for service in ordered[:5])
    have = f"Service {names} has no ports" if len(ordered) == 1 else f"Services {names} have no ports"
    lacking = "" if port is None else f", so none is named {port!r}"
    raise InvalidSyncer("NoSuchPort", f"{have}{lacking}: set spec.{field} to the number of the port that {where}")


def backends(
    service: Service, port: ServicePort, slices: Iterable[EndpointSlice], *, family: str | None
) -> tuple[Backend, ...]:
    """Return the Service's endpoints of one address family (None: of any), one per pod.

    A slice without the port has no endpoint for us. But if no slice has it, or if a slice has none of the Service's
    ports, the slices are outdated, or the port does not exist. Then this raises InvalidSyncer(NoSuchPort)."""
    best: dict[str, Backend] = {}
    of = (service,)
    filled = [piece for piece in slices if piece.endpoints and family in (None, piece.address_type)]
    matched = [(piece, number) for piece in filled if (number := _number(piece, port, service)) is not None]
    names = {port.name for port in service.ports}
    outdated = any(piece.ports and names.isdisjoint(port.name for port in piece.ports) for piece in filled)
    if (filled and not matched) or outdated:
        raise InvalidSyncer(
            "NoSuchPort", f"no EndpointSlice of Service {service.name} has the port {port.name or port.port} (yet)"
        )
    for piece, number in matched:
        for endpoint in piece.endpoints:
            found = Backend(services=of, endpoint=endpoint, port=number, ready=healthy(endpoint, service))
            identity = found.identity
            known = best.get(identity)
            if known is None or found.preference < known.preference:
                best[identity] = found
    return tuple(best[identity] for identity in sorted(best))


def _number(piece: EndpointSlice, port: ServicePort, service: Service) -> int | None:
    if not piece.ports and not service.ports:
        return port.port
    return next((p.port for p in piece.ports if p.name == port.name), None)


def healthy(endpoint: Endpoint, service: Service) -> bool:
    """Whether an endpoint is ready."""
    # With publishNotReadyAddresses, "ready" is true for every pod, and "serving" is the pod's readiness.
    return endpoint.ready and (not service.publish_not_ready or (endpoint.serving and not endpoint.terminating))


def missing_slices(service: Service, slices: Sequence[EndpointSlice], *, family: str | None) -> str:
    """Return a clause about the slices of a family (None: of any) that a Service lacks; empty if it lacks none.

    The cluster makes a slice for each family of a Service with a selector, even an empty one
    (k8s.io/endpointslice, Reconciler.Reconcile). So a missing slice was not yet made, or was deleted. A Service without
    a selector has the slices that people write, of any family; one of type ExternalName has none."""
    asked = tuple(one for one in service.ip_families if family in (None, one))
    if service.is_external_name or (service.ip_families and not asked):
        return ""
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
    return f"Service {service.name} has no EndpointSlice of {lacking}, not even an empty one" if lacking else ""


def one_per_pod(found: Iterable[Backend]) -> Mapping[str, Backend]:
    """Merge the backends of several Services by identity. Raises InvalidSyncer(AmbiguousService) for two ports of one
    pod."""
    by_pod: dict[str, list[Backend]] = {}
    for backend in found:
        by_pod.setdefault(backend.identity, []).append(backend)
    return {identity: _merged(some) if len(some) > 1 else some[0] for identity, some in sorted(by_pod.items())}


def _merged(some: Sequence[Backend]) -> Backend:
    services = sorted((service for one in some for service in one.services), key=lambda service: service.name)
    ports = {b.port: b.services[0].name for b in sorted(some, key=lambda b: b.services[0].name, reverse=True)}
    if len(ports) > 1:
        offers = ", ".join(f"{service} ({port})" for port, service in sorted(ports.items()))
        raise InvalidSyncer(
            "AmbiguousService",
            f"{some[0].label} is behind Services with different ports, {offers}: name one in spec.port",
        )
    return replace(min(some, key=lambda b: b.preference), services=services)


def _ports(ports: Iterable[ServicePort]) -> str:
    return ", ".join(f"{p.name or 'unnamed'} ({p.port})" for p in ports) or "none"
