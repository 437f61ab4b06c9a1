"""`pod.address: HostPort`: a pod is registered at its node's address and host port, as a container of
Docker was before."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence

from eurekube_sync.desired.instance import Site, family_of
from eurekube_sync.model.kubernetes import HostPort, PodHost
from eurekube_sync.model.struct import replace


def site_at_host(site: Site, hosts: Mapping[str, PodHost], family: str | None) -> Site | str:
    """Return a pod's site at its node, or why it has none. `family` is that of the spec.

    | the pod                               | address and port                                      |
    |---------------------------------------|-------------------------------------------------------|
    | uses the network of its node          | the node's, and the port at which it listens          |
    | has a `hostPort` for the port         | the node's, or the port's own `hostIP`; the `hostPort`|
    | has none, or at the loopback address  | none                                                  |
    | has no node's address in its status   | none yet                                              |
    | is not in the list of pods            | none: the list is older or newer than the slice       |

    An address without a pod has no host port.
    """
    if site.pod is None:
        return f"{site.label} is no pod, so it has no host port"
    host = hosts.get(site.pod.uid)
    if host is None:
        return f"{site.label} is not in the list of pods, so its host port is unknown"
    numbers: list[int | None] = []
    host_ips: list[str] = []
    for port in (site.port, site.secure_port):
        if port is None:
            numbers.append(None)
            continue
        socket = _at_host(port, host)
        if socket is None:
            return f"{site.label} has no hostPort for its port {port}"
        numbers.append(socket.number)
        if socket.address:
            host_ips.append(socket.address)
    # With a `hostIP`, the port is open at that address alone.
    address = _first_address(host_ips or host.addresses, family)
    if address is None:
        asked = f"{family} " if family else ""
        return f"{site.label} has no {asked}address of its node in its status"
    plain, secure = numbers
    of_pod = (site.port, site.secure_port)
    return replace(site, host=address, port=plain, secure_port=secure, of_pod=of_pod)


def _first_address(addresses: Sequence[str], family: str | None) -> str | None:
    """Return the first IP address, of this family if one is given."""
    for address in addresses:
        its_family = family_of(address)
        if its_family is not None and family in (None, its_family):
            return address
    return None


def _at_host(port: int, host: PodHost) -> HostPort | None:
    """Return the socket of the node for a port of a pod; None if callers have none."""
    if host.host_network:
        return HostPort(port)
    socket = host.ports.get(port)
    if socket is None or _is_loopback(socket.address):  # which only its node reaches
        return None
    return socket


def _is_loopback(address: str) -> bool:
    if family_of(address) is None:
        return False
    return ipaddress.ip_address(address).is_loopback
