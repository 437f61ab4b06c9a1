"""What should stand in Eureka: every syncer, with its Services and slices, becomes a claim.

A claim is one of three. `Serving`: these instances, no others. `Frozen`: what stands is renewed, nothing is added or
removed. `Deleting`: nothing is wanted, and these keys may have been written. Only a complete catalog makes a claim that
could remove anything: `_serve` and `_delete` take `Complete`, and the type checker holds callers to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from eurekube_sync.catalog import Catalog, Catalogs, pods_by_socket
from eurekube_sync.conduct import Conduct
from eurekube_sync.endpoints import Backend, backends, chosen_ports, one_per_pod
from eurekube_sync.errors import InvalidSyncer
from eurekube_sync.instance import Builder, Naming, Wanted, better
from eurekube_sync.model import (
    ClusterView,
    Complete,
    InstanceKey,
    Listed,
    Proof,
    Service,
    Source,
    SyncerObject,
    SyncerRef,
    Unknown,
)
from eurekube_sync.scope import Scope
from eurekube_sync.syncer import Mode, Syncer, parse, selected_namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """An endpoint that is there and is not wanted."""

    why: str
    terminating: bool
    """Positive evidence; an endpoint that is merely not ready is none."""


Found: TypeAlias = Wanted | Leaving
"""What an endpoint comes to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A syncer in order."""

    syncer: SyncerObject
    proof: Proof
    """Of its Services and slices."""
    wanted: Mapping[InstanceKey, Wanted]
    leaving: Mapping[InstanceKey, Leaving] = field(default_factory=dict)
    lost: Mapping[InstanceKey, SyncerRef] = field(default_factory=dict)
    """Keys that an older syncer holds."""
    apps: tuple[str, ...] = ()
    vip_address: str = ""
    warnings: tuple[str, ...] = ()
    conduct: Conduct = Conduct()  # noqa: RUF009 - immutable
    over: Mapping[InstanceKey, str] = field(default_factory=dict)
    """Ready endpoints that its limit keeps out, with the reason."""
    notes: tuple[str, ...] = ()
    """What its limit comes to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """A syncer that cannot be served now: it is wrong, or a source of its is Unknown."""

    syncer: SyncerObject
    reason: str
    message: str
    unknown: bool = False
    """True when a source is Unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleting:
    """A syncer that a person deletes. `keys` are what its endpoints would have given, listed in Eureka or not."""

    syncer: SyncerObject
    proof: Proof
    """Of the CRD that lives: the deletion is a person's."""
    keys: frozenset[InstanceKey] = frozenset()


Claim: TypeAlias = Serving | Frozen | Deleting


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """All claims of a pass, and what else the cluster proves."""

    claims: Mapping[SyncerRef, Claim]
    wanted_by: Mapping[InstanceKey, SyncerRef]
    syncers: Listed[SyncerObject]
    """Where a syncer's absence proves that it was deleted."""
    living_pods: Mapping[str, Complete[frozenset[str]]] = field(default_factory=dict)
    """UIDs of all pods, for each namespace whose pods were listed completely."""
    pods_by_socket: Mapping[tuple[str, int], Complete[frozenset[str]]] = field(default_factory=dict)
    """See `catalog.pods_by_socket`; empty while no syncer is frozen."""

    def wanted(self, key: InstanceKey) -> Wanted | None:
        """What should stand under the key."""
        claim = self.server_of(key)
        return claim.wanted[key] if claim else None

    def server_of(self, key: InstanceKey) -> Serving | None:
        """The claim that wants something under the key."""
        syncer = self.wanted_by.get(key)
        claim = self.claims[syncer] if syncer else None
        return claim if isinstance(claim, Serving) else None


def claim_all(view: ClusterView, naming: Naming, scope: Scope) -> Desired:
    """One claim per syncer that was listed and is in scope. One that is broken freezes alone; of two that claim one
    address and port for one app the older holds it (equal age: by name), also across namespaces."""
    catalogs = Catalogs(view)
    claims = {
        syncer.ref: _claim(syncer, view, catalogs, naming, scope)
        for syncer in _listed(view.syncers)
        if scope.takes(syncer)
    }
    wanted_by: dict[InstanceKey, SyncerRef] = {}
    holders: dict[_Socket, SyncerRef] = {}
    for claim in sorted((c for c in claims.values() if isinstance(c, Serving)), key=_seniority):
        sockets = {key: _socket(wanted) for key, wanted in claim.wanted.items()}
        lost = {key: holders[socket] for key, socket in sockets.items() if socket in holders}
        if lost:
            kept = {key: wanted for key, wanted in claim.wanted.items() if key not in lost}
            claims[claim.syncer.ref] = replace(claim, wanted=kept, lost=lost)
        for key, socket in sockets.items():
            if key not in lost:
                wanted_by[key] = holders[socket] = claim.syncer.ref
    frozen = any(isinstance(claim, Frozen) for claim in claims.values())
    return Desired(
        claims=claims,
        wanted_by=wanted_by,
        syncers=_proven(view),
        pods_by_socket=pods_by_socket(view) if frozen else {},
    )


def _listed(syncers: Listed[SyncerObject]) -> Iterator[SyncerObject]:
    for namespace in sorted(syncers.by_namespace):
        source = syncers.of(namespace)
        if isinstance(source, Complete):
            yield from sorted(source.data, key=lambda syncer: syncer.name)


def _proven(view: ClusterView) -> Listed[SyncerObject]:
    # While the CRD goes, or may go, a syncer that is not there was perhaps deleted by nobody.
    if isinstance(view.crd_live, Unknown):
        return Listed(by_namespace={}, elsewhere=view.crd_live)
    return view.syncers


_Socket: TypeAlias = tuple[str, str, int]


def _socket(wanted: Wanted) -> _Socket:
    instance = wanted.instance
    return (instance.key.app, instance.ip_addr, instance.port.number)


def _seniority(claim: Serving) -> tuple[float, SyncerRef]:
    return (claim.syncer.created, claim.syncer.ref)


def _claim(syncer: SyncerObject, view: ClusterView, catalogs: Catalogs, naming: Naming, scope: Scope) -> Claim:
    catalog = catalogs.of(selected_namespace(syncer)) if scope.may_select(syncer) else None
    if syncer.deleted is not None:
        return _delete(syncer, catalog, view.crd_live, naming)
    if catalog is None:
        return _forbidden(syncer)
    if isinstance(catalog, Unknown):
        return _unknown(syncer, "SourceUnknown", catalog)
    try:
        return _serve(syncer, catalog, naming)
    except InvalidSyncer as error:
        return Frozen(syncer=syncer, reason=error.reason, message=str(error))


def _unknown(syncer: SyncerObject, reason: str, source: Unknown) -> Frozen:
    return Frozen(syncer=syncer, reason=reason, message=source.message, unknown=True)


def _forbidden(syncer: SyncerObject) -> Frozen:
    """Its Services must not be looked at."""
    pair = f"{syncer.namespace}:{selected_namespace(syncer)}"
    return Frozen(
        syncer=syncer,
        reason="NamespaceNotAllowed",
        message=f"spec.selector.namespace: Services of namespace {selected_namespace(syncer)} are not for this "
        f"namespace's syncers; whoever runs eurekube-sync may allow it with --allow-namespace {pair}",
    )


def _delete(
    syncer: SyncerObject, catalog: Complete[Catalog] | Unknown | None, crd_live: Source[bool], naming: Naming
) -> Deleting | Frozen:
    """`catalog` None: its Services must not be looked at any more, and what stands tells all that is known."""
    if isinstance(crd_live, Unknown):
        return _unknown(syncer, crd_live.cause.value, crd_live)
    if isinstance(catalog, Unknown):
        return _unknown(syncer, "SourceUnknown", catalog)
    try:
        served = _serve(syncer, catalog, naming) if catalog else None
    except InvalidSyncer:
        served = None
    keys = frozenset(served.wanted) | frozenset(served.leaving) if served else frozenset()
    return Deleting(syncer=syncer, proof=crd_live.proof, keys=keys)


def _serve(syncer: SyncerObject, catalog: Complete[Catalog], naming: Naming) -> Serving:
    spec = parse(syncer)
    services = catalog.data.matching(spec.selector)
    if not services:
        raise InvalidSyncer(
            "NoMatchingService",
            f"no Service in namespace {spec.namespace} matches {spec.selector}: create it, or mend spec.selector",
        )
    builder = Builder(spec, naming)
    serve = _serve_pods if spec.mode is Mode.POD else _serve_services
    wanted: dict[InstanceKey, Wanted] = {}
    leaving: dict[InstanceKey, Leaving] = {}
    for key, found in serve(spec, services, catalog.data, builder):
        if isinstance(found, Wanted):
            wanted[key] = better(wanted.get(key, found), found)
        else:
            leaving[key] = found
    return Serving(
        syncer=syncer,
        proof=catalog.proof,
        wanted=_marked(wanted, spec.conduct),
        leaving={key: found for key, found in leaving.items() if key not in wanted},
        apps=builder.apps,
        vip_address=builder.vip_address,
        warnings=builder.warnings(),
        conduct=spec.conduct,
    )


def _marked(wanted: Mapping[InstanceKey, Wanted], conduct: Conduct) -> Mapping[InstanceKey, Wanted]:
    if not conduct.marks:
        return wanted
    return {
        key: replace(one, instance=replace(one.instance, metadata={**one.instance.metadata, **conduct.marks}))
        for key, one in wanted.items()
    }


def _serve_pods(
    spec: Syncer, services: Sequence[Service], catalog: Catalog, builder: Builder
) -> Iterator[tuple[InstanceKey, Found]]:
    chosen = chosen_ports(services, spec.port)
    family = _family(spec, [service for service, _ in chosen])
    found: list[Backend] = []
    apps: dict[str, set[str]] = {}
    for service, port in chosen:
        app = builder.app_name(service)
        for backend in backends(service, port, catalog.slices_of(service), family=family):
            found.append(backend)
            apps.setdefault(backend.identity, set()).add(app)
    for backend in one_per_pod(found):
        app, *others = sorted(apps[backend.identity])
        if others:
            names = ", ".join([app, *others])
            raise InvalidSyncer(
                "AmbiguousService", f"{backend.label} is behind the Services {names}: name the app in spec.appName"
            )
        yield builder.key(app, backend.address, backend.port), _found(spec, backend, app, builder)


def _family(spec: Syncer, services: Sequence[Service]) -> str:
    """The one address family of the syncer's instances: the spec's, else the first that all its Services share, so that
    a Service of another family does not read as one without endpoints."""
    known = [service.ip_families for service in services if service.ip_families]
    shared = [family for family in known[0] if all(family in families for families in known)] if known else ["IPv4"]
    if spec.address_family is None and shared:
        return shared[0]
    if spec.address_family is not None and (not known or any(spec.address_family in families for families in known)):
        return spec.address_family
    offers = "; ".join(f"{service.name}: {', '.join(service.ip_families)}" for service in services)
    raise InvalidSyncer("NoAddress", f"the Services have no address family in common, {offers}: set spec.addressFamily")


def _found(spec: Syncer, backend: Backend, app: str, builder: Builder) -> Found:
    kept = spec.keep_while_serving and backend.serving
    if backend.terminating and not kept:
        return Leaving(why=f"{backend.label} terminates", terminating=True)
    up = backend.ready or (backend.terminating and kept)
    if not up and spec.cancel_not_ready:
        return Leaving(why=f"{backend.label} is not ready", terminating=False)
    key = builder.key(app, backend.address, backend.port)
    why = f"{backend.label} is {'ready' if up else 'not ready'}"
    return builder.wanted(key, backend.address, backend.port, up=up, why=why, pod=backend.pod)


def _serve_services(
    spec: Syncer, services: Sequence[Service], catalog: Catalog, builder: Builder
) -> Iterator[tuple[InstanceKey, Found]]:
    chosen = [(service, port) for service, port in chosen_ports(services, spec.port) if not service.headless]
    if not chosen:
        names = ", ".join(service.name for service in services)
        raise InvalidSyncer(
            "NoAddress", f"Service {names} is headless and has no address: use mode pod, or select another Service"
        )
    behind = {s.name: backends(s, port, catalog.slices_of(s), family=None) for s, port in chosen}
    # The same pods on another port are the app's metrics or admin Service, not a second address of the app.
    one_per_pod(backend for found in behind.values() for backend in found)
    for service, port in chosen:
        address = _cluster_ip(service, spec)
        key = builder.key(builder.app_name(service), address, port.port)
        up = any(backend.ready for backend in behind[service.name])
        why = f"Service {service.name} has {'a' if up else 'no'} ready endpoint"
        if not up and spec.cancel_not_ready:
            yield key, Leaving(why=why, terminating=False)
        else:
            yield key, builder.wanted(key, address, port.port, up=up, why=why, pod=None)


def _cluster_ip(service: Service, spec: Syncer) -> str:
    family = spec.address_family
    if service.type != "ClusterIP" and not spec.cluster_ip:
        raise InvalidSyncer(
            "NotSupportedYet",
            f"Service {service.name} is of type {service.type}, which mode service does not support in this version; "
            "nothing is registered for it",
        )
    by_family = dict(zip(service.ip_families, service.cluster_ips, strict=False))
    address = by_family.get(family) if family else next(iter(service.cluster_ips), None)
    if not address:
        raise InvalidSyncer("NoAddress", f"Service {service.name} has no {family or 'cluster'} address")
    return address
