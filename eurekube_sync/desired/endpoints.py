"""Which endpoints the Services of one syncer give, and on which port: slices in, one `Backend` per pod out.

The rules are the EndpointSlice API's: nil conditions, several slices per Service, duplicates between them, a slice per
family of a dual-stack Service. The order of slices and Services never matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import Endpoint, EndpointSlice, Service, ServicePort
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One pod (or bare address) behind a Service, on the port that the syncer asks for."""

    services: Sequence[Service]  # by name; several when they are merged
    endpoint: Endpoint
    port: int
    ready: bool

    @property
    def identity(self) -> str:
        """What makes two endpoints the same: the pod's UID, or the bare address."""
        pod = self.endpoint.pod
        return pod.uid if pod and pod.uid else self.endpoint.address

    @property
    def label(self) -> str:
        """What a person calls it."""
        return f"pod {self.endpoint.pod.name}" if self.endpoint.pod else f"endpoint {self.endpoint.address}"

    @property
    def preference(self) -> tuple[bool, bool, bool, int, str, str]:
        """The order among duplicates: not terminating, then ready, then serving, then whatever is stable."""
        one = self.endpoint
        return (one.terminating, not self.ready, not one.serving, self.port, one.address, self.services[0].name)


def choose_port(service: Service, port: str | int | None, *, field: str = "port") -> ServicePort | None:
    """The Service's port that `field` of the spec means; None when this Service has no such port: by its name, by its
    number, else by a target port that only one has; by default the only port, else the one named `http`. In a Service
    without ports a number stands for itself. Raises InvalidSyncer(AmbiguousPort)."""
    there = service.ports
    if not there and isinstance(port, int):  # a headless Service may have none; its pods listen all the same
        return ServicePort(name="", port=port)
    if isinstance(port, str):
        return next((p for p in there if p.name == port), None)
    if port is None:
        fitting = there if len(there) == 1 else [p for p in there if p.name == "http"] or there
    else:
        fitting = [p for p in there if p.port == port] or [p for p in there if p.target == port]
    if len(fitting) > 1:
        why = " has the ports" if port is None else f": {port} fits the ports"
        raise InvalidSyncer("AmbiguousPort", f"Service {service.name}{why} {_ports(fitting)}: name one in spec.{field}")
    return fitting[0] if fitting else None


def chosen_ports(
    services: Sequence[Service], port: str | int | None, *, field: str = "port", where: str = "its pods listen on"
) -> tuple[tuple[Service, ServicePort], ...]:
    """The Services that have the port that `field` of the spec asks for, by name; `where` says where a number of its
    own would be. Raises InvalidSyncer when none has it, or when it is ambiguous."""
    pairs = [(service, choose_port(service, port, field=field)) for service in sorted(services, key=lambda s: s.name)]
    chosen = tuple((service, found) for service, found in pairs if found is not None)
    if not chosen and not any(service.ports for service in services):
        names = ", ".join(service.name for service, _ in pairs[:5])
        have = f"Service {names} has no ports" if len(pairs) == 1 else f"Services {names} have no ports"
        lacking = "" if port is None else f", so none is named {port!r}"
        raise InvalidSyncer("NoSuchPort", f"{have}{lacking}: set spec.{field} to the number of the port that {where}")
    if not chosen:
        there = "; ".join(f"{service.name} has {_ports(service.ports)}" for service, _ in pairs[:5])
        wanted = "port" if port is None else f"port {port!r}"
        raise InvalidSyncer("NoSuchPort", f"no Service has the {wanted}: {there}")
    return chosen


def backends(
    service: Service, port: ServicePort, slices: Iterable[EndpointSlice], *, family: str | None
) -> tuple[Backend, ...]:
    """The Service's endpoints of one address family (None: of any), one per pod, duplicates merged.

    A slice without the port has no pods of ours. But if none has it, or one has none of the Service's ports, they are
    older than the Service, or the port does not exist: that is not "no endpoints". Raises InvalidSyncer(NoSuchPort)."""
    best: dict[str, Backend] = {}
    of = (service,)
    filled = [piece for piece in slices if piece.endpoints and family in (None, piece.address_type)]
    matched = [(piece, number) for piece in filled if (number := _number(piece, port, service)) is not None]
    names = {port.name for port in service.ports}
    older = any(piece.ports and names.isdisjoint(port.name for port in piece.ports) for piece in filled)
    if (filled and not matched) or older:
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
    """Whether an endpoint takes calls."""
    # With publishNotReadyAddresses "ready" is true of every pod and says nothing; "serving" is the pod's own readiness.
    # Slices that are made of hand-written Endpoints say nothing but "ready".
    return endpoint.ready and (not service.publish_not_ready or (endpoint.serving and not endpoint.terminating))


def untold(service: Service, slices: Sequence[EndpointSlice], *, family: str | None) -> str:
    """Which slices of that family (None: of one of its families) a Service lacks, in words; empty for none.

    The cluster makes a slice for each family of a Service with a selector, an empty one where it selects nothing
    (k8s.io/endpointslice, Reconciler.Reconcile): what is not there was not made yet, or was taken away. A Service
    without a selector has the slices that people write, of whichever family; one that is a name elsewhere has none."""
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
    """What several Services give, by identity. Raises InvalidSyncer(AmbiguousService) for one pod on two ports."""
    by_pod: dict[str, list[Backend]] = {}
    for backend in found:
        by_pod.setdefault(backend.identity, []).append(backend)
    merged = {}
    for identity, some in sorted(by_pod.items()):
        merged[identity] = some[0]
        if len(some) == 1:
            continue
        services = sorted((service for one in some for service in one.services), key=lambda service: service.name)
        merged[identity] = replace(min(some, key=lambda b: b.preference), services=services)
        ports = {b.port: b.services[0].name for b in sorted(some, key=lambda b: b.services[0].name, reverse=True)}
        if len(ports) > 1:
            offers = ", ".join(f"{service} ({port})" for port, service in sorted(ports.items()))
            raise InvalidSyncer(
                "AmbiguousService",
                f"{some[0].label} is behind Services with different ports, {offers}: name one in spec.port",
            )
    return merged


def _ports(ports: Iterable[ServicePort]) -> str:
    return ", ".join(f"{p.name or 'unnamed'} ({p.port})" for p in ports) or "none"
