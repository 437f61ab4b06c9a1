"""Where a Service is reached from outside its cluster: one `Place` per address, or why there is none yet.

Follows the Service's own fields and the Nodes. Which endpoints stand behind it is not asked here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import assert_never

from eurekube_sync.desired.endpoints import choose_port
from eurekube_sync.desired.presentation import family_of
from eurekube_sync.desired.spec import NodeAddress, ServiceAddress, Syncer
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import Node, Service, ServicePort
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports of one Service that a syncer asks for; one of them is there."""

    plain: ServicePort | None
    secure: ServicePort | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One address that callers may use."""

    host: str
    """An IP address, or a host name."""
    port: int | None
    secure_port: int | None
    node: Node | None = None
    """Whose address it is, when it is a node's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The Service has no address yet, and is to get one."""

    message: str


_BY_TYPE = {
    kind.value: kind
    for kind in (
        ServiceAddress.CLUSTER_IP,
        ServiceAddress.NODE_PORT,
        ServiceAddress.LOAD_BALANCER,
        ServiceAddress.EXTERNAL_NAME,
    )
}


def address_kind(service: Service, spec: Syncer) -> ServiceAddress:
    """Which kind of address is meant; `Auto` goes by the Service's type. Raises InvalidSyncer for an unknown one."""
    if spec.service_address is not ServiceAddress.AUTO:
        return spec.service_address
    kind = _BY_TYPE.get(service.type)
    if kind is None:
        raise _none(service, "no address that eurekube-sync knows")
    return kind


def ports_of(service: Service, spec: Syncer) -> Ports | None:
    """The ports to use; None when the Service lacks one of them. Raises InvalidSyncer(AmbiguousPort).

    Behind a fixed host name, or an external one, a number is the port that callers use there: an Ingress listens on
    443, whatever the Service does.
    """
    secure_alone = spec.secure_port is not None and spec.port is None
    plain = None if secure_alone else _port(service, spec.port, spec)
    secure = None if spec.secure_port is None else _port(service, spec.secure_port, spec)
    if (plain is None and not secure_alone) or (secure is None and spec.secure_port is not None):
        return None
    return Ports(plain=plain, secure=secure)


def elsewhere(service: Service, spec: Syncer) -> bool:
    """Whether callers use a host name that is not the Service's own address."""
    return spec.fixed_host is not None or address_kind(service, spec) is ServiceAddress.EXTERNAL_NAME


def places(service: Service, ports: Ports, spec: Syncer, nodes: Collection[Node]) -> tuple[Place, ...] | Pending:
    """Where the Service is reached; never empty. `nodes` are read for a node port only. Raises InvalidSyncer."""
    if spec.fixed_host is not None:
        return (_place(spec.fixed_host, ports),)
    kind = address_kind(service, spec)
    match kind:
        case ServiceAddress.NODE_PORT:
            return _node_ports(service, ports, spec, nodes)
        case ServiceAddress.LOAD_BALANCER:
            if service.type != "LoadBalancer":
                raise _none(service, "no load balancer")
            if not service.load_balancer:
                return Pending(message=f"Service {service.name} waits for the address of its load balancer")
            hosts = service.load_balancer
        case ServiceAddress.EXTERNAL_IP:
            hosts = service.external_ips
        case ServiceAddress.EXTERNAL_NAME:
            hosts = tuple(name for name in [service.external_name.rstrip(".")] if name)
        case ServiceAddress.CLUSTER_IP:
            hosts = service.cluster_ips if not service.is_external_name and not service.headless else ()
        case ServiceAddress.AUTO:  # pragma: no cover
            raise AssertionError("Auto has become one of the others")
        case _:  # pragma: no cover
            assert_never(kind)
    chosen = _of_family(hosts, service, spec)
    if not chosen:
        family = f"{spec.address_family} " if spec.address_family else ""
        raise _none(service, f"no {family}address of kind {kind.value}")
    return tuple(_place(host, ports) for host in chosen)


def _port(service: Service, port: str | int | None, spec: Syncer) -> ServicePort | None:
    if isinstance(port, int) and elsewhere(service, spec):
        return ServicePort(name="", port=port)
    return choose_port(service, port)


def _place(host: str, ports: Ports) -> Place:
    return Place(
        host=host,
        port=ports.plain.port if ports.plain else None,
        secure_port=ports.secure.port if ports.secure else None,
    )


def _of_family(hosts: Sequence[str], service: Service, spec: Syncer) -> Sequence[str]:
    """Host names, and the addresses of one family: the asked one, else the Service's first that there is any of."""
    hosts = tuple(dict.fromkeys(host for host in hosts if host))
    there = [family for host in hosts if (family := family_of(host))]
    wished = [spec.address_family] if spec.address_family else [*service.ip_families, *there]
    chosen = next((family for family in wished if family in there), None)
    return [host for host in hosts if family_of(host) in (None, chosen)]


def _node_ports(service: Service, ports: Ports, spec: Syncer, nodes: Collection[Node]) -> tuple[Place, ...]:
    asked = [port for port in (ports.plain, ports.secure) if port is not None]
    # Kubernetes checks the number, and gives it to one Service alone, for these types only.
    if service.type not in ("NodePort", "LoadBalancer") or not all(port.node_port for port in asked):
        raise _none(service, "no node port")
    family = spec.address_family or next(iter(service.ip_families), "IPv4")
    found = tuple(
        Place(
            host=host,
            port=ports.plain.node_port if ports.plain else None,
            secure_port=ports.secure.node_port if ports.secure else None,
            node=node,
        )
        for node in sorted(nodes, key=lambda node: node.name)
        if not node.excluded and (host := next(_addresses(node, spec.node_address, family), None))
    )
    if not found:
        kind = spec.node_address.value if spec.node_address else "usable"
        raise InvalidSyncer("NoAddress", f"no node has an {family} address of kind {kind}")
    return found


def _addresses(node: Node, kind: NodeAddress | None, family: str) -> Iterator[str]:
    if kind is not NodeAddress.INTERNAL:
        yield from (address for address in node.external if family_of(address) == family)
    if kind is not NodeAddress.EXTERNAL:
        yield from (address for address in node.internal if family_of(address) == family)


def _none(service: Service, what: str) -> InvalidSyncer:
    return InvalidSyncer("NoAddress", f"Service {service.name} is of type {service.type} and has {what}")
