"""`mode: pod`: each pod behind the Services is an instance, with the pod's address."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from eurekube_sync.desired.catalog import Catalog, drain_of
from eurekube_sync.desired.claims import Found, Incomplete, Kept, Leaving
from eurekube_sync.desired.endpoints import (
    Backend,
    Identity,
    Numbers,
    apart,
    backends,
    chosen_ports,
    label_of,
    missing_slices,
    names_of,
    numbers_of,
    one_per_port,
    outdated,
    outdone_by_http,
    paired,
    place_of,
    renumbered,
    slices_in_use,
    stays,
    strays_of,
)
from eurekube_sync.desired.hosts import site_at_host
from eurekube_sync.desired.instance import Builder, Site
from eurekube_sync.desired.spec import Syncer
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import Endpoint, EndpointSlice, Service, ServicePort
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import one_or_more

_Chosen: TypeAlias = tuple[tuple[Service, ServicePort | Numbers], ...]
"""Services with the port of one field, or with the numbers at which they stay."""


class _Listening(Struct, frozen=True):
    """The Services with the port of one field, and their backends by identity."""

    chosen: _Chosen
    backends: Mapping[Identity, Backend]
    left: Mapping[str, str] = field(default_factory=dict)  # as `Serving.unplaced`


def serve_pods(
    spec: Syncer, services: Sequence[Service], catalog: Catalog, builder: Builder
) -> Iterator[tuple[InstanceKey, Found]]:
    """Yield the verdict of each pod, and add to the builder what is incomplete. Raises
    InvalidSyncer, SourceUnknown."""
    family, listening = _resolve(services, catalog, builder)
    main = next(iter(listening.values()))  # the plain port, unless only the secure one is asked for
    chosen = _services_in([there.chosen for there in listening.values()])
    builder.remembered.update(names_of(chosen))
    apps = _apps(main, builder)
    perhaps = _note_missing(chosen, catalog, family, builder)
    _warn(main, chosen, catalog, builder)

    needs_both = len(listening) > 1
    secure = listening["securePort"].backends if needs_both else {}
    pairs = paired(main.backends, secure)
    sites = _sites(main, pairs, catalog, builder, secure_alone="port" not in listening)
    for identity, site in sites.items():
        backend = main.backends[identity]
        app = _app(backend, apps)
        if app is None:
            continue
        key = builder.key(app, site)
        verdict = _found(backend, site, key, catalog, builder, perhaps)
        # The secure port may be missing only until its slice exists, so the pod waits for both.
        lacks_secure = needs_both and identity not in pairs
        if lacks_secure and not isinstance(verdict, Leaving):
            why = _lacks(backend, spec.secure_port, builder)
            verdict = Kept(why=why, host=site.host, port=site.main_port)
        yield key, verdict

    placed = {backend.place for backend in main.backends.values()}
    builder.unplaced |= _not_on_main_port(main, chosen, placed, catalog, family)
    builder.unplaced |= _on_secure_port_alone(secure, pairs, placed, builder)


def _services_in(of_fields: Iterable[_Chosen]) -> Sequence[Service]:
    """Return the Services that have the port of a field, each once."""
    by_name: dict[str, Service] = {}
    for chosen in of_fields:
        for service, _ in chosen:
            by_name[service.name] = service
    return list(by_name.values())


def _note_missing(
    chosen: Sequence[Service], catalog: Catalog, family: str, builder: Builder
) -> Sequence[Service]:
    """Tell the builder which Services may have more pods than their slices list. Return those
    without slices: a pod may be behind them as well. Raises InvalidSyncer if all are so."""
    perhaps: list[Service] = []
    missing: list[str] = []
    known = False  # whether the slices of a Service are complete
    for service in chosen:
        slices = catalog.slices_of(service)
        if service.is_external_name:  # it proves nothing about pods
            why = _left_slices(service, slices)
        else:
            why = missing_slices(service, slices, family=family)
            if slices and not why:
                known = True
        if why:
            perhaps.append(service)
            missing.append(why)
    if not known:
        faults = "; ".join(missing)
        if not faults:
            names = ", ".join(names_of(chosen))
            faults = f"Service {names} has no EndpointSlice: type ExternalName has no pods"
        raise InvalidSyncer(Reason.NO_ENDPOINT_SLICES, faults)
    for why in missing:
        builder.incomplete.append(Incomplete(reason=Reason.NO_ENDPOINT_SLICES, message=why))
    return perhaps


def _left_slices(service: Service, slices: Sequence[EndpointSlice]) -> str:
    """Return a clause about the slices with endpoints that an ExternalName has from before; empty
    without them."""
    if not any(piece.endpoints for piece in slices):
        return ""
    # No controller updates them any more: an ended pod stays ready there
    # (kubernetes/kubernetes#105986).
    return (
        f"Service {service.name} became an ExternalName, and its EndpointSlices are left from "
        "before: delete them"
    )


def _warn(main: _Listening, chosen: Sequence[Service], catalog: Catalog, builder: Builder) -> None:
    """Warn of stray slices, of Services that may not belong together, of host names at which nobody
    listens, and of drain annotations that may not be read."""
    spec = builder.spec
    builder.warn(*apart(main.backends.values(), spec.app_name))
    if spec.names_nodes and not spec.at_host:
        _warn_of_node_names(main, catalog, builder)
    for service in chosen:
        strays = strays_of(service, catalog.slices_of(service))
        builder.warn_of_ports(*strays)
    drains = catalog.pod_drains
    if isinstance(drains, Unknown) and drains.cause is Cause.DENIED:
        builder.drains_unread = drains


def _warn_of_node_names(main: _Listening, catalog: Catalog, builder: Builder) -> None:
    """Warn if callers are sent to a node's name with a port at which only a pod listens."""
    for backend in main.backends.values():
        host = catalog.hosts_if_read.get(backend.place)
        if host is None or host.host_network:
            continue
        builder.warn(
            f"spec.hostName {builder.spec.host_name} names nodes, where nobody listens on port "
            f"{backend.port} of {backend.label}: set spec.pod.address to HostPort, or "
            "spec.hostName to ip"
        )
        return  # one pod is an example for all


def _sites(
    main: _Listening,
    pairs: Mapping[Identity, Backend],
    catalog: Catalog,
    builder: Builder,
    *,
    secure_alone: bool,
) -> Mapping[Identity, Site]:
    """Return the site of each backend on the main port, by its identity. Raises InvalidSyncer,
    SourceUnknown."""
    sites: dict[Identity, Site] = {}
    for identity, backend in main.backends.items():
        pair = pairs.get(identity)
        sites[identity] = _site(backend, pair, secure_alone=secure_alone)
    if builder.spec.at_host:
        return _at_hosts(main, sites, catalog, builder)
    return sites


def _at_hosts(
    main: _Listening, sites: Mapping[Identity, Site], catalog: Catalog, builder: Builder
) -> Mapping[Identity, Site]:
    """Return the sites at the pods' nodes. A pod without one keeps its instances, unless it ends.
    Raises InvalidSyncer(NoSuchPort) if no pod has one, and SourceUnknown."""
    hosted: dict[Identity, Site] = {}
    nowhere: dict[str, str] = {}
    for identity, site in sites.items():
        backend = main.backends[identity]
        there = site_at_host(site, catalog.hosts, builder.spec.address_family)
        if not isinstance(there, str):
            hosted[identity] = there
        elif not _ends(backend.endpoint, builder.spec):
            nowhere[backend.place] = there
    if nowhere and not hosted:
        raise InvalidSyncer(Reason.NO_SUCH_PORT, min(nowhere.values()))
    for why in nowhere.values():
        _warn_of_kept(why, builder)
    builder.unplaced |= nowhere
    return hosted


def _site(backend: Backend, pair: Backend | None, *, secure_alone: bool) -> Site:
    """Return the address of a pod with its plain and its secure port, which is that of `pair`."""
    endpoint = backend.endpoint
    plain: int | None = backend.port
    secure = pair.port if pair else None
    if secure_alone:
        plain, secure = None, backend.port
    return Site(
        host=endpoint.address,
        port=plain,
        secure_port=secure,
        pod=endpoint.pod,
        node=endpoint.node,
        zone=endpoint.zone,
        services=backend.services,
        label=backend.label,
        allotted=endpoint.pod is not None,
    )


def _on_secure_port_alone(
    secure: Mapping[Identity, Backend],
    pairs: Mapping[Identity, Backend],
    placed: Collection[str],
    builder: Builder,
) -> Mapping[str, str]:
    """Return why the instances of pods are kept that have the secure port, and not the main one
    (yet)."""
    used = {backend.identity for backend in pairs.values()}
    left: dict[str, str] = {}
    port = builder.spec.port
    for identity, backend in secure.items():
        endpoint = backend.endpoint
        place = backend.place
        # At an address without a pod there may be another process.
        known = endpoint.pod is not None and place in placed
        if known or identity in used or endpoint.terminating:
            continue
        left[place] = _lacks(backend, port, builder)
    return left


def _lacks(backend: Backend, port: str | int | None, builder: Builder) -> str:
    """Return why a backend without one of two ports is kept: it may lack the port, or a slice may
    not exist yet."""
    why = f"{backend.label} has no port {port!r} (yet)"
    _warn_of_kept(why, builder)
    return why


def _warn_of_kept(why: str, builder: Builder) -> None:
    builder.warn(f"{why}: nothing new of it is registered, and its instances are kept")


def _not_on_main_port(
    main: _Listening,
    chosen: Sequence[Service],
    placed: Collection[str],
    catalog: Catalog,
    family: str,
) -> Mapping[str, str]:
    """Return why the instances of pods are kept whose main port is unknown. Nothing new of them is
    registered."""
    left = dict(main.left)
    for service in chosen:
        endpoints = outdated(service, catalog.slices_of(service), family)
        why = f"is in an EndpointSlice with ports that Service {service.name} had before"
        left |= _kept(endpoints, why)
    unplaced: dict[str, str] = {}
    for place, why in left.items():
        if place not in placed:
            unplaced[place] = why
    return unplaced


def _kept(endpoints: Iterable[Endpoint], why: str) -> dict[str, str]:
    """Return `why` for each endpoint that does not terminate, by pod UID or address."""
    kept: dict[str, str] = {}
    for endpoint in endpoints:
        if not endpoint.terminating:
            label = label_of(endpoint)
            kept[place_of(endpoint)] = f"{label} {why}"
    return kept


# --- Apps -----------------------------------------------------------------------------------------


def _apps(main: _Listening, builder: Builder) -> Mapping[str, str]:
    """Return the app of each Service that names one, by the Service's name. Raises
    InvalidSyncer(AmbiguousService).

    | a Service                                          | names                         |
    |----------------------------------------------------|-------------------------------|
    | of a syncer with spec.appName                      | that app                      |
    | whose pods are behind no other Service             | the app of its own name       |
    | whose name alone stays (`Builder.names_that_stay`) | the app of its own name       |
    | with pods behind that one                          | none                          |
    | with pods behind another, if not one name stays    | none: the error says it       |

    A Service that gave way names no app for its other pods either: a new pod may appear in its
    slices first, and would come and go under a second name. A pod that left the first Service goes,
    even if the others still have it."""
    services = [service for service, _ in main.chosen]
    shared: Mapping[tuple[str, ...], Backend] = {}
    if not builder.spec.app_name:  # with it, all Services are of one app
        shared = _shared_pods(main)
    outdone = _outdone_names(services, shared, builder)
    for names in sorted(shared):
        error = _ambiguous(shared[names], names)
        naming = [name for name in names if name not in outdone]
        if len(naming) > 1:  # no name alone stays
            raise error
        for app in naming:
            builder.warn_of_ports(_app_stays(error, app, names))
    apps: dict[str, str] = {}
    for service in services:
        if service.name not in outdone:
            apps[service.name] = builder.app_name(service)
    return apps


def _shared_pods(main: _Listening) -> Mapping[tuple[str, ...], Backend]:
    """Return a pod behind each set of several Services, by their names."""
    shared: dict[tuple[str, ...], Backend] = {}
    for backend in main.backends.values():
        if len(backend.services) < 2:
            continue  # nearly always
        names = tuple(names_of(backend.services))
        shared.setdefault(names, backend)
    return shared


def _outdone_names(
    services: Sequence[Service], shared: Iterable[tuple[str, ...]], builder: Builder
) -> Collection[str]:
    """Return the Services that give way to the one whose name stays, because a pod is behind
    both."""
    outdone: set[str] = set()
    for names in shared:
        sharing = [service for service in services if service.name in names]
        standing = builder.names_that_stay(sharing)
        if len(standing) == 1:
            outdone |= set(names) - standing
    return outdone


def _ambiguous(backend: Backend, names: Sequence[str]) -> InvalidSyncer:
    behind = f"{backend.label} is behind the Services {', '.join(names)}"
    return InvalidSyncer(Reason.AMBIGUOUS_SERVICE, f"{behind}: name the app in spec.appName")


def _app_stays(error: InvalidSyncer, app: str, names: Sequence[str]) -> str:
    """Return the warning that the name of before stays, and that the other Services give none."""
    others = [name for name in names if name != app]
    service = one_or_more(len(others), "Service", "Services")
    alone = ", ".join(others)
    return (
        f"{error}. Until then it is app {app}, as before. A pod behind {service} {alone} alone is "
        "not registered"
    )


def _app(backend: Backend, apps: Mapping[str, str]) -> str | None:
    """Return the app of a pod, of which there is at most one after `_apps`."""
    for service in backend.services:
        if service.name in apps:
            return apps[service.name]
    return None


# --- Ports ----------------------------------------------------------------------------------------


def _resolve(
    services: Sequence[Service], catalog: Catalog, builder: Builder
) -> tuple[str, Mapping[str, _Listening]]:
    """Return the address family, and what listens on the port of each field. A port that cannot be
    resolved any more stays at the numbers of before. Raises InvalidSyncer."""
    asked: dict[str, _Chosen] = {}
    for name, port in builder.spec.ports.items():
        try:
            asked[name] = chosen_ports(services, port, field=name)
        except InvalidSyncer as error:
            asked[name] = _stay(name, error, services, catalog, builder)
    family = _family(builder.spec, _services_in(asked.values()))
    # For all fields, before the first one: a pod with one unclear port is registered on none.
    unclear = _renumbered(asked.values(), catalog, builder, family)
    listening: dict[str, _Listening] = {}
    for name, chosen in asked.items():
        try:
            there = _listen(name, chosen, unclear, catalog, builder, family)
        except InvalidSyncer as error:  # the slices disagree with the Services
            stayed = _stay(name, error, services, catalog, builder)
            there = _listen(name, stayed, unclear, catalog, builder, family)
        if _stays(there.chosen):
            elsewhere = _elsewhere(services, catalog, family)
            there = replace(there, left={**elsewhere, **unclear})
        listening[name] = there
    return family, listening


def _stays(chosen: _Chosen) -> bool:
    """Whether a Service stays at the numbers of before."""
    return any(isinstance(port, frozenset) for _, port in chosen)


def _renumbered(
    asked: Iterable[_Chosen], catalog: Catalog, builder: Builder, family: str
) -> Mapping[str, str]:
    """Return why pods are kept to which the controller gives several numbers for a port, by UID.

    A new instance at an outdated number would get no answer, and a registered one may be at the
    right number. So nothing new of these pods is registered, and none of their instances is
    removed, until the controller has written the other slices, usually within a second. A pod that
    ends is not kept."""
    unclear: dict[str, str] = {}
    for chosen in asked:
        for service, port in chosen:
            if isinstance(port, frozenset) or service.is_external_name:
                continue
            slices = catalog.slices_of(service)
            name = port.name or port.port
            why = f"is in EndpointSlices with different numbers for port {name} of Service"
            for place, endpoints in renumbered(service, port, slices, family).items():
                if all(_ends(endpoint, builder.spec) for endpoint in endpoints):
                    continue
                label = label_of(endpoints[0])
                unclear[place] = f"{label} {why} {service.name}"
    return unclear


def _ends(endpoint: Endpoint, spec: Syncer) -> bool:
    """Whether a terminating endpoint is to lose its instance."""
    if not endpoint.terminating:
        return False
    return not endpoint.serving or spec.terminating != "KeepWhileServing"


def _elsewhere(services: Sequence[Service], catalog: Catalog, family: str) -> Mapping[str, str]:
    """Return why endpoints are kept that are on no port at which a Service stays: it is unknown
    what they listen on."""
    why = "does not listen on the port at which its syncer stays"
    kept: dict[str, str] = {}
    for service in services:
        if service.is_external_name:  # its slices prove nothing
            continue
        for piece in slices_in_use(service, catalog.slices_of(service)):
            if piece.address_type == family:
                kept |= _kept(piece.endpoints, why)
    return kept


def _stay(
    name: str, error: InvalidSyncer, services: Sequence[Service], catalog: Catalog, builder: Builder
) -> _Chosen:
    """Return the Services with the numbers at which they were served before, although the field
    `name` cannot be resolved any more: a Service was added, or a port has another name. Without
    this, no new pod would be registered, and the app would go with its last old pod. Raises the
    error if no pod has such a number.

    | a slice of the Service has       | its endpoints are                             |
    |----------------------------------|-----------------------------------------------|
    | one number of `Builder.stays_at` | served at it                                  |
    | several of them                  | the error stands: which one is meant?         |
    | none of them                     | kept as they are (`_elsewhere`)               |
    | no endpoint                      | none, but the Service may have one later      |
    """
    stayed: list[tuple[Service, Numbers]] = []
    all_numbers: set[int] = set()
    for service in services:
        if service.is_external_name:  # its slices prove nothing
            continue
        filled = _filled(service, catalog)
        numbers = builder.stays_at(name, service, numbers_of(filled))
        for piece in filled:
            at_several = len(numbers & numbers_of([piece])) > 1
            if at_several:
                raise error
        if numbers or not filled:
            stayed.append((service, numbers))
        all_numbers |= numbers
    if not all_numbers:
        raise error
    builder.warn_of_ports(stays(error, all_numbers))
    # A Service that lacks its number in this pass, as while its slices are written, may have it
    # again.
    builder.remembered.update(names_of(services))
    return tuple(stayed)


def _filled(service: Service, catalog: Catalog) -> Sequence[EndpointSlice]:
    """Return the slices of a Service that count and have endpoints."""
    filled: list[EndpointSlice] = []
    for piece in slices_in_use(service, catalog.slices_of(service)):
        if piece.endpoints:
            filled.append(piece)
    return filled


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
    listeners: list[Backend] = []
    for service, port in chosen:
        if service.is_external_name:
            continue
        slices = catalog.slices_of(service)
        for backend in backends(service, port, slices, family=family):
            if backend.place not in unclear:
                listeners.append(backend)
    if builder.spec.ports[name] is not None:
        return _Listening(chosen, one_per_port(listeners), unclear)
    outdone = outdone_by_http(listeners)
    for service, _ in chosen:
        if service.name not in outdone:
            continue  # nearly always
        # An app that was served at another port stays there, like one whose port became ambiguous.
        numbers = [backend.port for backend in listeners if backend.service == service.name]
        if builder.may_stand_at(name, service, numbers):
            outdone = frozenset()
    listeners = [backend for backend in listeners if backend.service not in outdone]
    staying: list[tuple[Service, ServicePort | Numbers]] = []
    for service, port in chosen:
        if service.name not in outdone:
            staying.append((service, port))
    return _Listening(tuple(staying), one_per_port(listeners), unclear)


def _family(spec: Syncer, services: Sequence[Service]) -> str:
    """Return the family in the spec, or else the first one that all Services have, so that none
    seems to be empty."""
    asked = spec.address_family
    known: list[Sequence[str]] = []
    offers: list[str] = []
    for service in services:
        families = service.ip_families
        offers.append(f"{service.name}: {', '.join(families)}")
        if families:
            known.append(families)
    if not known:  # a Service of type ExternalName has none
        return asked or "IPv4"
    if asked is None:
        for family in known[0]:
            if all(family in families for families in known):
                return family
        wrong, do = "the Services have no address family in common", "set"
    else:
        if any(asked in families for families in known):
            return asked
        wrong, do = f"no Service has an {asked} address", "correct"
    there = "; ".join(offers)
    raise InvalidSyncer(Reason.NO_ADDRESS, f"{wrong} ({there}): {do} spec.addressFamily")


def _is_up(backend: Backend, catalog: Catalog, spec: Syncer) -> bool:
    """Whether a pod that does not end is ready, or serves while it terminates."""
    endpoint = backend.endpoint
    if endpoint.terminating:
        return True
    if spec.readiness_gate and endpoint.pod:
        # In the slices a pod is not ready until our gate opens, which happens after it is
        # registered. So the readiness without the gate decides. A pod that is not in the list is
        # newer than the list.
        without_gate = catalog.readiness.get(endpoint.pod.uid)
        if without_gate is not None:
            return without_gate.ready
    return backend.ready


def _found(
    backend: Backend,
    site: Site,
    key: InstanceKey,
    catalog: Catalog,
    builder: Builder,
    perhaps: Sequence[Service],
) -> Found:
    """Return the verdict of a pod. It may also be behind the Services `perhaps`."""
    spec = builder.spec
    pod = backend.endpoint.pod
    if _ends(backend.endpoint, spec):
        return Leaving(why=f"{backend.label} terminates", terminating=True)
    up = _is_up(backend, catalog, spec)
    state = "ready" if up else "not ready"
    why = f"{backend.label} is {state}"
    drain = drain_of(site.services, pod, catalog.pod_drains, perhaps=perhaps)
    if drain.ignored:
        builder.warn(*drain.ignored)
    if not up and spec.not_ready == "Cancel" and not drain.by:
        # With a cancel, the mark of a drain would be lost.
        return Leaving(
            why=why,
            terminating=False,
            unreadable_drain_kinds=drain.unreadable_drain_kinds,
            pod=pod,
        )
    if spec.needs_pods and pod is not None:
        metadata = catalog.pods.get(pod.uid)
        if metadata is None:  # the slice and the list of pods were read at different times
            unlisted = "is not in the list of pods, so its labels and annotations are unknown"
            why = f"{backend.label} {unlisted}"
            return Kept(why=why, host=site.host, port=site.main_port)
        site = replace(site, pod_metadata=metadata)
    return builder.wanted(key, site, up=up, why=why, drain=drain)
