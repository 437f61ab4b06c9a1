"""`check` of imports: their CRD, their rights, and networks that lead into the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_network
from typing import Any

from eurekube_sync.controller.look import LookWorld
from eurekube_sync.controller.one_pass import PassSettings
from eurekube_sync.desired.imports import Network, parsed_networks
from eurekube_sync.desired.scope import parsed_address
from eurekube_sync.explain.check import DEFINITIONS, Needed, definition, rights
from eurekube_sync.explain.links import Check, Finding, failed, passed, warned
from eurekube_sync.model.imports import IMPORT, is_of_an_import
from eurekube_sync.model.kubernetes import EndpointSlice
from eurekube_sync.model.sources import Listed, Source, Unknown
from eurekube_sync.model.text import and_more, counted

_OBJECTS = "eurekaimports.eurekube.io"
_SLICES = "endpointslices.discovery.k8s.io"
_NO_SLICE = "no endpoint of an import is written"
RIGHTS = (
    Needed("list", _OBJECTS, "no import is served"),
    Needed("get", _OBJECTS, "a status that changed meanwhile is not written"),
    Needed("patch", _OBJECTS, "no finalizer is set, so no import gets a Service"),
    Needed("patch", f"{_OBJECTS}/status", "no status of an import is written"),
    Needed("create", "services", "no Service of an import is made"),
    Needed("patch", "services", "edited ports of an import's Service are not written again"),
    Needed("create", _SLICES, _NO_SLICE),
    Needed("patch", _SLICES, _NO_SLICE),
    Needed("delete", _SLICES, "empty slices of imports stay"),
    Needed("get", DEFINITIONS, "a deleted import stays", "", name=_OBJECTS),
)
"""The rights of a pass that imports, beside those of syncers."""


def check_imports(
    seen: LookWorld, settings: PassSettings, *, schema: Mapping[str, Any]
) -> Iterator[Finding]:
    """Yield each finding about imports; none if they are off. `schema` is that of this version."""
    imports = seen.world.imports
    if imports is None or not settings.import_networks:
        return
    names = sorted(settings.scope.namespaces or ())
    live = imports.import_crd_live()
    yield definition(seen.details, live, schema, before=False, kind=IMPORT)
    yield from rights(RIGHTS, names, seen.details)
    slices = seen.world.cluster.list_slices(names or None)
    networks = parsed_networks(settings.import_networks)
    yield from overlaps(networks, seen.details.service_networks(), slices)


def overlaps(
    networks: Sequence[Network],
    of_services: Source[tuple[str, ...]],
    slices: Listed[EndpointSlice],
) -> Iterator[Finding]:
    """Check that no network of the data centre leads into the cluster: to ClusterIPs, to the API
    server, or to pods."""
    wrong = [*_of_cluster_ips(networks, of_services), *_of_endpoints(networks, slices)]
    for text in wrong:
        fix = "leave that network out of --import-networks, or name smaller ones"
        yield failed(Check.IMPORT_NETWORKS, text, fix)
    for name, source in _unread(of_services, slices):
        text = f"{name} could not be looked at: {source.message}"
        fix = "see that --import-networks names the data centre alone"
        yield warned(Check.IMPORT_NETWORKS, text, fix)
    if not wrong:
        seen_in = counted(len(networks), "import network")
        yield passed(Check.IMPORT_NETWORKS, f"no address of the cluster is seen in {seen_in}")


def _unread(
    of_services: Source[tuple[str, ...]], slices: Listed[EndpointSlice]
) -> Iterator[tuple[str, Unknown]]:
    """Yield what could not be read. The first namespace stands for all."""
    if isinstance(of_services, Unknown):
        yield "the networks of ClusterIPs", of_services
    sources: list[Source[Any]] = [*slices.by_namespace.values()]
    if not slices.by_namespace:
        sources.append(slices.elsewhere)
    for source in sources:
        if isinstance(source, Unknown):
            yield "EndpointSlices", source
            return


def _of_cluster_ips(
    networks: Sequence[Network], of_services: Source[tuple[str, ...]]
) -> Iterator[str]:
    """Yield the networks that overlap those of ClusterIPs."""
    if isinstance(of_services, Unknown):
        return
    for text in of_services.data:
        taken = ip_network(text)
        for network in networks:
            if network.overlaps(taken):
                yield f"import network {network} overlaps {taken}, the network of ClusterIPs"


def _of_endpoints(networks: Sequence[Network], slices: Listed[EndpointSlice]) -> Iterator[str]:
    """Yield the networks that have addresses of endpoints, with the first one."""
    for network in networks:
        inside = sorted(_inside(network, slices))
        if inside:
            yield f"import network {network} has {inside[0]}{and_more(len(inside))}"


def _inside(network: Network, slices: Listed[EndpointSlice]) -> Iterator[str]:
    """Yield each slice of others with an address in the network, with that address."""
    for source in slices.by_namespace.values():
        if isinstance(source, Unknown):
            continue
        for piece in source.data:
            # Slices of imports have addresses of the data centre, as they should.
            if is_of_an_import(piece):
                continue
            for endpoint in piece.endpoints:
                address = parsed_address(endpoint.address)
                if address is not None and address in network:
                    yield f"{endpoint.address} of EndpointSlice {piece.namespace}/{piece.name}"
                    break  # one address of a slice is enough
