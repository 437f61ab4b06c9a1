"""`mode: pod`: each pod behind the Services is an instance, with the pod's address."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from eurekube_sync.desired.catalog import Catalog
from eurekube_sync.desired.claims import Found, Incomplete, Kept, Leaving
from eurekube_sync.desired.endpoints import (
    Backend,
    Identity,
    backends,
    chosen_ports,
    label_of,
    missing_slices,
    one_per_port,
    outdated,
    outdone_by_http,
    paired,
    place_of,
    renumbered,
    services_at,
    slices_in_use,
    stays,
    strays_of,
)
from eurekube_sync.desired.instance import Builder, Site
from eurekube_sync.desired.spec import Syncer
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import Endpoint, Service, ServicePort
from eurekube_sync.model.values import dataclass

_Chosen: TypeAlias = tuple[tuple[Service, ServicePort | int], ...]
"""Services with the port of one field; a number stands for that port of their slices."""


@dataclass(frozen=True, slots=True)
class _Listening:
    """The Services with the port of one field, and their backends by identity."""

    chosen: _Chosen
    backends: Mapping[Identity, Backend]
    left: Mapping[str, str] = field(default_factory=dict)  # as `Serving.unplaced`


def serve_pods(
    spec: Syncer, services: Sequence[Service], catalog: Catalog, builder: Builder
) -> Iterator[tuple[InstanceKey, Found]]:
    """Yield the verdict of each pod, and add to the builder what is incomplete. Raises
    InvalidSyncer, SourceUnknown."""
    family, listening = _resolve(spec, services, catalog, builder)
    first = next(iter(listening.values()))
    chosen = {service.name: service for found in listening.values() for service, _ in found.chosen}
    apps = _apps(first, builder)
    missing = _missing(chosen.values(), catalog, family)
    builder.incomplete += [Incomplete(reason="NoEndpointSlices", message=why) for _, why in missing]
    cut = [name for name, service in chosen.items() if _truncated(service, catalog)]
    if cut:
        message = (
            f"the Endpoints of Service {', '.join(cut)} are truncated: they do not list all "
            "of its addresses"
        )
        builder.incomplete.append(
            Incomplete(reason="EndpointsTruncated", message=message, unknown=True)
        )
    for service in chosen.values():
        builder.warn_of_ports(*strays_of(service, catalog.slices_of(service)))
    builder.warn(*_without_readiness(chosen.values(), catalog), *catalog.drains.denied())
    secure = listening["securePort"].backends if len(listening) > 1 else {}
    pairs = paired(first.backends, secure)
    perhaps = [service for service, _ in missing]
    for identity, backend in first.backends.items():
        app = _app(backend, apps)
        if app is None:
            continue
        endpoint = backend.endpoint
        zone = endpoint.zone
        if zone is None and spec.zone.from_endpoint:
            node = catalog.nodes.get(endpoint.node)
            zone = node.zone if node else ""
        secure_port = pairs[identity].port if identity in pairs else None
        site = Site(
            host=endpoint.address,
            port=backend.port if "port" in listening else None,
            secure_port=secure_port if "port" in listening else backend.port,
            pod=endpoint.pod,
            node=endpoint.node,
            zone=zone or "",
            services=backend.services,
            label=backend.label,
            allotted=endpoint.pod is not None,
        )
        key = builder.key(app, site)
        verdict = _found(backend, site, key, catalog, builder, perhaps)
        if len(listening) > 1 and identity not in pairs and not isinstance(verdict, Leaving):
            verdict = Kept(
                why=_lacks(backend, spec.secure_port, builder), host=site.host, port=site.main_port
            )
        yield key, verdict
    # The instances of pods whose main port is unknown are kept, and nothing new of these pods is
    # registered.
    placed = {backend.place for backend in first.backends.values()}
    left = dict(first.left)
    for service in chosen.values():
        left |= _outdated(service, catalog, family)
    builder.unplaced |= {place: why for place, why in left.items() if place not in placed}
    used = {backend.identity for backend in pairs.values()}
    for identity, backend in secure.items():
        # At an address without a pod there may be another process.
        known = identity in used or (backend.endpoint.pod is not None and backend.place in placed)
        if not known and not backend.endpoint.terminating:
            builder.unplaced[backend.place] = _lacks(backend, spec.port, builder)


def _lacks(backend: Backend, port: str | int | None, builder: Builder) -> str:
    """Return why a backend without one of two ports is kept: it may lack the port, or a slice may
    not exist yet."""
    why = f"{backend.label} has no port {port!r} (yet)"
    builder.warn(f"{why}: nothing new of it is registered, and its instances are kept")
    return why


def _outdated(service: Service, catalog: Catalog, family: str) -> Mapping[str, str]:
    """Return why endpoints are kept that are in slices with the ports that a Service had before."""
    why = f"is in an EndpointSlice with ports that Service {service.name} had before"
    return _kept(outdated(service, catalog.slices_of(service), family), why)


def _kept(endpoints: Iterable[Endpoint], why: str) -> dict[str, str]:
    """Return `why` for each endpoint that does not terminate, by pod UID or address."""
    return {place_of(one): f"{label_of(one)} {why}" for one in endpoints if not one.terminating}


# --- Apps -----------------------------------------------------------------------------------------


def _apps(first: _Listening, builder: Builder) -> Mapping[str, str]:
    """Return the app of each Service that names one, by the Service's name.

    If a pod is behind Services with different names, the one under which the syncer is registered
    stays, as in `_stay`. The others then name no app at all: a new pod may appear in their slices
    first, and would come and go under a second name. A pod that left the first Service goes, even
    if they still have it. Raises InvalidSyncer(AmbiguousService)."""
    services = [service for service, _ in first.chosen]
    if builder.spec.app_name:
        return {service.name: builder.app_name(service) for service in services}
    shared: dict[tuple[str, ...], Backend] = {}
    for backend in first.backends.values():
        names = tuple(service.name for service in backend.services)
        if len(names) > 1:
            shared.setdefault(names, backend)
    registered = builder.registered_apps(services) if shared else frozenset()
    outdone: set[str] = set()
    for names in shared:
        standing = [name for name in names if name.upper() in registered]
        if len(standing) == 1:
            outdone |= {name for name in names if name not in standing}
    for names, backend in sorted(shared.items(), key=lambda item: item[0]):
        naming = [name for name in names if name not in outdone]
        error = _ambiguous(backend, names)
        if len(naming) > 1:
            raise error
        for app in naming:
            builder.warn_of_ports(_app_stays(error, app, names))
    kept = [service for service in services if service.name not in outdone]
    return {service.name: builder.app_name(service) for service in kept}


def _ambiguous(backend: Backend, names: Sequence[str]) -> InvalidSyncer:
    return InvalidSyncer(
        "AmbiguousService",
        f"{backend.label} is behind the Services {', '.join(names)}: name the app in spec.appName",
    )


def _app_stays(error: InvalidSyncer, app: str, names: Sequence[str]) -> str:
    """Return the warning that the registered name stays, and that the other Services give none."""
    others = [name for name in names if name != app]
    alone = f"Service {others[0]}" if len(others) == 1 else f"Services {', '.join(others)}"
    return (
        f"{error}. Until then it is app {app}, because no instance of the syncer is registered "
        "under "
        f"another of these names. A pod behind {alone} alone is not registered"
    )


def _app(backend: Backend, apps: Mapping[str, str]) -> str | None:
    """Return the app of a pod, of which there is at most one after `_apps`."""
    return next((apps[service.name] for service in backend.services if service.name in apps), None)


# --- Ports ----------------------------------------------------------------------------------------


def _resolve(
    spec: Syncer, services: Sequence[Service], catalog: Catalog, builder: Builder
) -> tuple[str, Mapping[str, _Listening]]:
    """Return the address family, and what listens on the port of each field. A port that cannot be
    resolved any more stays at the number of the registered instances. Raises InvalidSyncer."""
    asked: dict[str, _Chosen] = {}
    for name, port in spec.ports.items():
        try:
            asked[name] = chosen_ports(services, port, field=name)
        except InvalidSyncer as error:
            asked[name] = _stay(name, error, services, catalog, builder)
    known = {service.name: service for chosen in asked.values() for service, _ in chosen}
    family = _family(spec, list(known.values()))
    unclear = _renumbered(asked.values(), catalog, builder, family)
    listening: dict[str, _Listening] = {}
    for name, chosen in asked.items():
        try:
            listening[name] = _listen(name, chosen, unclear, catalog, builder, family)
        except InvalidSyncer as error:
            stayed = _stay(name, error, services, catalog, builder)
            listening[name] = _listen(name, stayed, unclear, catalog, builder, family)
    for name, found in listening.items():
        if any(isinstance(port, int) for _, port in found.chosen):
            elsewhere = _elsewhere(services, catalog, family)
            listening[name] = replace(found, left={**elsewhere, **unclear})
    return family, listening


def _renumbered(
    asked: Iterable[_Chosen], catalog: Catalog, builder: Builder, family: str
) -> Mapping[str, str]:
    """Return why pods are kept to which the controller gives several numbers for a port, by UID.

    A new instance at an outdated number would get no answer, and a registered one may be at the
    right number. So nothing new of these pods is registered, and none of their instances is
    removed, until the controller has written the other slices, usually within a second. A pod that
    ends is not kept."""
    found: dict[str, str] = {}
    for chosen in asked:
        for service, port in chosen:
            if isinstance(port, int) or service.is_external_name:
                continue
            name = port.name or port.port
            why = (
                f"is in EndpointSlices with different numbers for port {name} of Service "
                f"{service.name}"
            )
            doubled = renumbered(service, port, catalog.slices_of(service), family)
            for place, endpoints in doubled.items():
                if not all(_ends(endpoint, builder.spec) for endpoint in endpoints):
                    found[place] = f"{label_of(endpoints[0])} {why}"
    return found


def _ends(endpoint: Endpoint, spec: Syncer) -> bool:
    """Whether a terminating endpoint is to lose its instance."""
    return endpoint.terminating and not (
        endpoint.serving and spec.terminating == "KeepWhileServing"
    )


def _elsewhere(services: Sequence[Service], catalog: Catalog, family: str) -> Mapping[str, str]:
    """Return why endpoints are kept that are on no port at which a syncer stays: it is unknown what
    they listen on."""
    found: dict[str, str] = {}
    for service in services:
        used, _ = slices_in_use(
            service, () if service.is_external_name else catalog.slices_of(service)
        )
        for piece in used:
            if piece.address_type == family:
                found |= _kept(
                    piece.endpoints, "does not listen on the port at which its syncer stays"
                )
    return found


def _stay(
    name: str, error: InvalidSyncer, services: Sequence[Service], catalog: Catalog, builder: Builder
) -> tuple[tuple[Service, int], ...]:
    """Return the Services with the port number on which the syncer's instances are registered,
    although the field `name` cannot be resolved any more: a Service was added, or a port has
    another name. What the syncer once resolved stands in its instances. Without this, no new pod
    would be registered, and the app would go with its last old pod. Raises the error if there is no
    such number."""
    slices = {one.name: catalog.slices_of(one) for one in services if not one.is_external_name}
    registered = builder.registered_ports(name, services)
    if len(registered) != 1:
        raise error
    number = min(registered)
    stayed = services_at(number, [one for one in services if one.name in slices], slices)
    if not stayed:
        raise error
    builder.warn_of_ports(stays(error, number))
    return stayed


def _listen(
    name: str,
    chosen: _Chosen,
    unclear: Mapping[str, str],
    catalog: Catalog,
    builder: Builder,
    family: str,
) -> _Listening:
    """Find the backends on the port of the field `name`, without the pods in `unclear`. If the
    field is not set, a port named http is the default, also beside the only port of another
    Service. Raises InvalidSyncer."""
    found: list[Backend] = []
    for service, port in chosen:
        if service.is_external_name:
            continue
        cut = _truncated(service, catalog)
        for backend in backends(service, port, catalog.slices_of(service), family=family):
            removable = not cut  # a truncated list removes nothing
            if (backend.ready or removable) and backend.place not in unclear:
                found.append(backend)
    outdone = outdone_by_http(found) if builder.spec.ports[name] is None else frozenset()
    if outdone:
        kept = [backend for backend in found if backend.services[0].name not in outdone]
        others = {backend.port for backend in found} - {backend.port for backend in kept}
        # An app that is registered on another port stays there, like one whose port became
        # ambiguous.
        if others.isdisjoint(builder.registered_ports(name, [service for service, _ in chosen])):
            found = kept
            chosen = tuple(
                (service, port) for service, port in chosen if service.name not in outdone
            )
    return _Listening(chosen, one_per_port(found), unclear)


def _truncated(service: Service, catalog: Catalog) -> bool:
    return any(piece.truncated for piece in catalog.slices_of(service))


def _family(spec: Syncer, services: Sequence[Service]) -> str:
    """Return the family in the spec, or else the first one that all Services have, so that none
    seems to be empty."""
    known = [service.ip_families for service in services if service.ip_families]
    shared = (
        [family for family in known[0] if all(family in families for families in known)]
        if known
        else ["IPv4"]
    )
    if spec.address_family is None and shared:
        return shared[0]
    if spec.address_family is not None and (
        not known or any(spec.address_family in families for families in known)
    ):
        return spec.address_family
    offers = "; ".join(f"{service.name}: {', '.join(service.ip_families)}" for service in services)
    wrong, do = f"no Service has an {spec.address_family} address", "correct"
    if spec.address_family is None:
        wrong, do = "the Services have no address family in common", "set"
    raise InvalidSyncer("NoAddress", f"{wrong} ({offers}): {do} spec.addressFamily")


def _missing(
    services: Collection[Service], catalog: Catalog, family: str
) -> list[tuple[Service, str]]:
    """Return the Services whose slices do not list all of their pods, and why. Raises InvalidSyncer
    if all are so."""
    missing = []
    known = False
    for service in services:
        slices = catalog.slices_of(service)
        why = missing_slices(service, slices, family=family)
        known = known or (bool(slices) and not service.is_external_name and not why)
        if service.is_external_name and any(piece.endpoints for piece in slices):
            # No controller updates them any more: an ended pod stays ready there
            # (kubernetes/kubernetes#105986).
            left = (
                "became an ExternalName, and its EndpointSlices are left from before: delete them"
            )
            why = f"Service {service.name} {left}"
        if why:
            missing.append((service, why))
    if not known:
        names = (
            f"Service {', '.join(one.name for one in services)} has no EndpointSlice: type "
            "ExternalName has no pods"
        )
        raise InvalidSyncer("NoEndpointSlices", "; ".join(why for _, why in missing) or names)
    return missing


def _without_readiness(services: Iterable[Service], catalog: Catalog) -> Iterator[str]:
    for service in services:
        slices = catalog.slices_of(service) if service.publish_not_ready else ()
        # A slice made from Endpoints has no zones, and knows only "ready".
        if any(endpoint.zone is None for piece in slices for endpoint in piece.endpoints):
            unclear = f"the Endpoints of Service {service.name} do not say which pods are ready"
            yield f"{unclear}, because of publishNotReadyAddresses"


def _found(
    backend: Backend,
    site: Site,
    key: InstanceKey,
    catalog: Catalog,
    builder: Builder,
    perhaps: Sequence[Service],
) -> Found:
    """Return the verdict of a pod. It may also be behind the Services `perhaps`."""
    spec, ready, endpoint, pod = builder.spec, backend.ready, backend.endpoint, backend.endpoint.pod
    if spec.readiness_gate and pod and not endpoint.terminating:
        # In the slices a pod is not ready until our gate opens, which happens after it is
        # registered. So the readiness without the gate decides. A pod that is not in the list is
        # newer than the list.
        pod_readiness = catalog.readiness.get(pod.uid)
        ready = pod_readiness.ready if pod_readiness else ready
    if _ends(endpoint, spec):
        return Leaving(why=f"{backend.label} terminates", terminating=True)
    up = ready or endpoint.terminating
    why = f"{backend.label} is {'ready' if up else 'not ready'}"
    drain = catalog.drains.of(site.services, pod, endpoint.node, perhaps=perhaps)
    if drain.ignored:
        builder.warn(*drain.ignored)
    if (
        not up and spec.not_ready == "Cancel" and not drain.by
    ):  # with a cancel, the mark of the drain would be lost
        uid = pod.uid if pod else None
        return Leaving(why=why, terminating=False, drain_unknown=drain.drain_unknown, pod_uid=uid)
    if spec.needs_pods and pod is not None:
        known = catalog.pods.get(pod.uid)
        if known is None:  # the slice and the list of pods were read at different times
            why = (
                f"{backend.label} is not in the list of pods, so its labels and annotations are "
                "unknown"
            )
            return Kept(why=why, host=site.host, port=site.main_port)
        site = replace(site, pod_metadata=known)
    return builder.wanted(key, site, up=up, why=why, drain=drain)
