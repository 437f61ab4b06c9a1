"""`service.address: Ingress`: the hosts and ports at which calls enter the cluster for a Service."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from eurekube_sync.desired.instance import Site
from eurekube_sync.desired.spec import Syncer
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import Ingress, IngressPath, Service, ServicePort
from eurekube_sync.model.reasons import Reason

_HTTP, _HTTPS = 80, 443  # an Ingress is open at these, and says so nowhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A host at which calls for a Service enter the cluster."""

    host: str
    port: int | None  # for plain HTTP
    secure_port: int | None  # for TLS
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """The entries of one Service, and why there may be more of them, or are none."""

    entries: Sequence[Entry] = ()
    why: str = ""  # a clause; empty if nothing is missing
    routed: bool = False  # whether something routes to the Service


def of_ingresses(
    service: Service, ports: Collection[ServicePort | None], ingresses: Collection[Ingress]
) -> Entries:
    """Return the hosts of the Ingresses that route to a Service, or to one of these `ports` of it.

    | a rule or default backend with        | is open at                                          |
    |---------------------------------------|-----------------------------------------------------|
    | a host                                | the host, port 80                                   |
    | a host in `tls`, or `tls` for all     | the host, port 443 alone: 80 is usually a redirect  |
    | a host with a wildcard                | nothing: nobody can call `*.example.com`            |
    | no host                               | the Ingress's addresses in its status               |
    | no host, and no address yet           | nothing yet                                         |
    """
    entries: dict[str, Entry] = {}
    missing: list[str] = []
    routed = False
    for ingress in sorted(ingresses, key=lambda ingress: ingress.name):
        paths_of: dict[str, set[str]] = {}
        for path in ingress.paths:
            if path.service == service.name and _is_of_a_port(path, service, ports):
                paths_of.setdefault(path.host, set()).add(path.path)
        for host, paths in sorted(paths_of.items()):
            routed = True
            if "*" in host:
                missing.append(f"Ingress {ingress.name} has the host {host}, which is no address")
                continue
            hosts = [host] if host else ingress.addresses
            if not hosts:
                missing.append(f"Ingress {ingress.name} waits for its address")
            for address in hosts:
                entry = _entry(address, ingress, _warning(ingress, service, host, paths))
                entries.setdefault(address, entry)
    if not routed:
        missing.append(f"no Ingress routes to Service {service.name}")
    return Entries(entries=list(entries.values()), why="; ".join(missing), routed=routed)


def _is_of_a_port(
    path: IngressPath, service: Service, ports: Collection[ServicePort | None]
) -> bool:
    """Whether a path leads to one of these ports; of a number at the host, it may be any port."""
    named = {port.name: port.port for port in ports if port is not None and port in service.ports}
    return not named or path.port in named or path.port in named.values()


def _entry(host: str, ingress: Ingress, warning: str) -> Entry:
    wildcard = f"*.{host.partition('.')[2]}"
    secure = not {host, wildcard, ""}.isdisjoint(ingress.tls)
    return Entry(
        host=host,
        port=None if secure else _HTTP,
        secure_port=_HTTPS if secure else None,
        warning=warning,
    )


def _warning(ingress: Ingress, service: Service, host: str, paths: Collection[str]) -> str:
    """Return a warning if the Ingress sends other calls to the host elsewhere."""
    if not {"", "/"}.isdisjoint(paths):
        return ""
    below = ", ".join(sorted(paths))
    return (
        f"Ingress {ingress.name} sends to Service {service.name} only calls to {below} of "
        f"{host or 'its address'}: callers have to use that path"
    )


def entered(entries: Mapping[str, Entries]) -> Mapping[str, Entries]:
    """Return the entries of the Services, by name, that callers can reach in this way. A Service
    for metrics beside the app's may have none. Raises InvalidSyncer(NoAddress) if all are so."""
    routed = {name: found for name, found in entries.items() if found.routed}
    if not routed:
        raise InvalidSyncer(Reason.NO_ADDRESS, "; ".join(found.why for found in entries.values()))
    return routed


def sites_at(site: Site, entries: Entries, spec: Syncer) -> Sequence[Site] | str:
    """Return a Service's sites at its entries, or why there is none yet.

    | spec                         | plain port                | secure port                     |
    |------------------------------|---------------------------|---------------------------------|
    | no number                    | the entry's               | the entry's                     |
    | a number in `port`           | that number               | the entry's                     |
    | a number in `securePort`     | off, unless `port` is set | that number, if the entry has TLS |
    """
    sites: list[Site] = []
    for entry in entries.entries:
        plain, secure = entry.port, entry.secure_port
        if spec.secure_port is not None and spec.port is None:
            plain = None
        if isinstance(spec.port, int):
            plain = spec.port
        if isinstance(spec.secure_port, int) and secure is not None:
            secure = spec.secure_port
        if plain is not None or secure is not None:
            sites.append(replace(site, host=entry.host, port=plain, secure_port=secure))
    if sites:
        return sites
    return entries.why or f"{site.label} has no entry with TLS, which spec.securePort asks for"
