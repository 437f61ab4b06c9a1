"""`mode: pod`: each pod behind the Services is an instance, with the pod's address."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from eurekube_sync.desired.catalog import Catalog
from eurekube_sync.desired.claims import Found, Incomplete, Kept, Leaving
from eurekube_sync.desired.endpoints import Backend, backends, chosen_ports, missing_slices, one_per_pod
from eurekube_sync.desired.instance import Builder, Site
from eurekube_sync.desired.spec import Syncer
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import Service, ServicePort


def serve_pods(
    spec: Syncer, services: Sequence[Service], catalog: Catalog, builder: Builder
) -> Iterator[tuple[InstanceKey, Found]]:
    """Yield the verdict of each pod, and add to the builder what is incomplete. Raises InvalidSyncer, SourceUnknown."""
    asked = {field: chosen_ports(services, port, field=field) for field, port in spec.ports.items()}
    chosen = {service.name: service for found in asked.values() for service, _ in found}
    apps = {service.name: builder.app_name(service) for service, _ in next(iter(asked.values()))}
    family = _family(spec, list(chosen.values()))
    missing = _missing(chosen.values(), catalog, family)
    builder.incomplete += [Incomplete(reason="NoEndpointSlices", message=why) for _, why in missing]
    cut = [name for name, service in chosen.items() if any(piece.truncated for piece in catalog.slices_of(service))]
    if cut:
        message = f"the Endpoints of Service {', '.join(cut)} are truncated: they do not list all of its addresses"
        builder.incomplete.append(Incomplete(reason="EndpointsTruncated", message=message, unknown=True))
    builder.warn(*_without_readiness(chosen.values(), catalog), *catalog.drains.denied())
    listening = {field: _listening(found, catalog, family, cut) for field, found in asked.items()}
    main = next(iter(listening.values()))
    secure = listening.get("securePort", {})
    perhaps = [service for service, _ in missing]
    for identity, backend in main.items():
        endpoint = backend.endpoint
        zone = endpoint.zone
        if zone is None and spec.zone.from_endpoint:
            node = catalog.nodes.get(endpoint.node)
            zone = node.zone if node else ""
        site = Site(
            host=endpoint.address,
            port=backend.port if "port" in listening else None,
            secure_port=secure[identity].port if identity in secure else None,
            pod=endpoint.pod,
            node=endpoint.node,
            zone=zone or "",
            services=backend.services,
            label=backend.label,
            allotted=endpoint.pod is not None,
        )
        key = builder.key(_app(backend, apps), site)
        verdict = _found(backend, site, key, catalog, builder, perhaps)
        if len(listening) > 1 and identity not in secure and not isinstance(verdict, Leaving):
            verdict = Kept(why=_lacks(backend, spec.secure_port, builder), host=site.host, port=site.main_port)
        yield key, verdict
    for identity, backend in secure.items():
        if identity not in main and not backend.endpoint.terminating:
            builder.unplaced[identity] = _lacks(backend, spec.port, builder)


def _lacks(backend: Backend, port: str | int | None, builder: Builder) -> str:
    """Return why a backend without one of two ports is kept: it may lack the port, or a slice may not exist yet."""
    why = f"{backend.label} has no port {port!r} (yet)"
    builder.warn(f"{why}: nothing new of it is registered, and its instances are kept")
    return why


def _family(spec: Syncer, services: Sequence[Service]) -> str:
    """Return the family in the spec, or else the first one that all Services have, so that none seems to be empty."""
    known = [service.ip_families for service in services if service.ip_families]
    shared = [family for family in known[0] if all(family in families for families in known)] if known else ["IPv4"]
    if spec.address_family is None and shared:
        return shared[0]
    if spec.address_family is not None and (not known or any(spec.address_family in families for families in known)):
        return spec.address_family
    offers = "; ".join(f"{service.name}: {', '.join(service.ip_families)}" for service in services)
    wrong, do = f"no Service has an {spec.address_family} address", "correct"
    if spec.address_family is None:
        wrong, do = "the Services have no address family in common", "set"
    raise InvalidSyncer("NoAddress", f"{wrong} ({offers}): {do} spec.addressFamily")


def _missing(services: Collection[Service], catalog: Catalog, family: str) -> list[tuple[Service, str]]:
    """Return the Services whose slices do not list all of their pods, and why. Raises InvalidSyncer if all are so."""
    missing = []
    known = False
    for service in services:
        slices = catalog.slices_of(service)
        why = missing_slices(service, slices, family=family)
        known = known or (bool(slices) and not service.is_external_name and not why)
        if service.is_external_name and any(piece.endpoints for piece in slices):
            # No controller updates them any more: an ended pod stays ready there (kubernetes/kubernetes#105986).
            left = "became an ExternalName, and its EndpointSlices are left from before: delete them"
            why = f"Service {service.name} {left}"
        if why:
            missing.append((service, why))
    if not known:
        names = f"Service {', '.join(one.name for one in services)} has no EndpointSlice: type ExternalName has no pods"
        raise InvalidSyncer("NoEndpointSlices", "; ".join(why for _, why in missing) or names)
    return missing


def _without_readiness(services: Iterable[Service], catalog: Catalog) -> Iterator[str]:
    for service in services:
        slices = catalog.slices_of(service) if service.publish_not_ready else ()
        # A slice made from Endpoints has no zones, and knows only "ready".
        if any(endpoint.zone is None for piece in slices for endpoint in piece.endpoints):
            unclear = f"the Endpoints of Service {service.name} do not say which pods are ready"
            yield f"{unclear}, because of publishNotReadyAddresses"


def _listening(
    chosen: Sequence[tuple[Service, ServicePort]], catalog: Catalog, family: str, cut: Collection[str]
) -> Mapping[str, Backend]:
    """Return the backends of one port, by identity."""
    return one_per_pod(
        backend
        for service, port in chosen
        if not service.is_external_name
        for backend in backends(service, port, catalog.slices_of(service), family=family)
        if service.name not in cut or backend.ready  # a truncated list removes nothing
    )


def _app(backend: Backend, apps: Mapping[str, str]) -> str:
    app, *others = sorted({apps[service.name] for service in backend.services})
    if others:
        raise InvalidSyncer(
            "AmbiguousService",
            f"{backend.label} is behind the Services {', '.join([app, *others])}: name the app in spec.appName",
        )
    return app


def _found(
    backend: Backend, site: Site, key: InstanceKey, catalog: Catalog, builder: Builder, perhaps: Sequence[Service]
) -> Found:
    """Return the verdict of a pod. It may also be behind the Services `perhaps`."""
    spec, ready, endpoint, pod = builder.spec, backend.ready, backend.endpoint, backend.endpoint.pod
    if spec.readiness_gate and pod and not endpoint.terminating:
        # In the slices a pod is not ready until our gate opens, which happens after it is registered. So the readiness
        # without the gate decides. A pod that is not in the list is newer than the list.
        pod_readiness = catalog.readiness.get(pod.uid)
        ready = pod_readiness.ready if pod_readiness else ready
    if endpoint.terminating and not (endpoint.serving and spec.terminating == "KeepWhileServing"):
        return Leaving(why=f"{backend.label} terminates", terminating=True)
    up = ready or endpoint.terminating
    why = f"{backend.label} is {'ready' if up else 'not ready'}"
    drain = catalog.drains.of(site.services, pod, endpoint.node, perhaps=perhaps)
    if drain.ignored:
        builder.warn(*drain.ignored)
    if not up and spec.not_ready == "Cancel" and not drain.by:  # with a cancel, the mark of the drain would be lost
        uid = pod.uid if pod else None
        return Leaving(why=why, terminating=False, drain_unknown=drain.drain_unknown, pod_uid=uid)
    if spec.needs_pods and pod is not None:
        known = catalog.pods.get(pod.uid)
        if known is None:  # the slice and the list of pods were read at different times
            why = f"{backend.label} is not in the list of pods, so its labels and annotations are unknown"
            return Kept(why=why, host=site.host, port=site.main_port)
        site = replace(site, pod_metadata=known)
    return builder.wanted(key, site, up=up, why=why, drain=drain)
