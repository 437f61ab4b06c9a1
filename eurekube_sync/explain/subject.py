"""Finds the syncers that a question is about, and which of their instances."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from eurekube_sync.controller.look import Look
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import Claim, Deleting, Serving, Verdict, every
from eurekube_sync.desired.spec import parse, selected_namespace
from eurekube_sync.explain.what import Kind, What, matches
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import Endpoint, EndpointSlice, Service, SyncerObject, SyncerRef
from eurekube_sync.model.sources import Complete, Source
from eurekube_sync.model.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One syncer, and the part of it that the question is about."""

    what: What
    report: PassReport
    claim: Claim
    services: tuple[str, ...]  # names of the Services in question
    keys: frozenset[InstanceKey] | None  # the instances in question; None for all of the syncer
    verdicts: Mapping[InstanceKey, Verdict]
    listed: tuple[ObservedInstance, ...]

    @property
    def ref(self) -> SyncerRef:
        return self.claim.syncer.ref

    @property
    def namespace(self) -> str:
        """The namespace of its Services."""
        return selected_namespace(self.claim.syncer)

    @property
    def pod(self) -> str:
        """The pod in question; empty if the question is not about one pod."""
        return self.what.name if self.what.kind is Kind.POD else ""

    def kubectl(self, verb: str) -> str:
        return f"kubectl {verb} esync {self.ref.name} -n {self.ref.namespace}"

    def concerns(self, key: InstanceKey) -> bool:
        return self.keys is None or key in self.keys


def subjects(what: What, look: Look) -> tuple[Subject, ...]:
    """Return each syncer that the question is about; empty if there is none, or if that is
    unknown."""
    return tuple(
        one
        for report in look.reports
        for _, claim in sorted(claims_in(report).items())
        if (one := subject_of(what, report, claim, look))
    )


def subject_of(what: What, report: PassReport, claim: Claim, look: Look) -> Subject | None:
    """Return the part of a syncer that the question is about; None if it is not about this
    syncer."""
    if what.kind in (Kind.SERVICE, Kind.POD) and selected_namespace(claim.syncer) != what.namespace:
        return None
    services, marked = services_of(claim, report), look.marked(claim.syncer.ref)
    given = claim.verdicts if isinstance(claim, Serving) else {}
    known = claim.keys if isinstance(claim, Deleting) else given
    keys: frozenset[InstanceKey] | None = frozenset(
        {key for key in known if is_meant(what, key)}
        | {one.key for one in marked if is_meant(what, one.key, one.instance)}
    )
    match what.kind:
        case Kind.SYNCER if claim.syncer.ref == (what.namespace, what.name):
            keys = None
        case Kind.SERVICE if what.name in services:
            services = (what.name,)
            keys = _given_by(services, claim, report, look)
        case Kind.POD:
            there = _sockets(slices_of(report, what.namespace, services, pod=what.name))
            keys = frozenset(key for key in known if _is_at(key, there))
            if not there and not _selects_pod(look, what, services):
                return None
        case Kind.APP if keys or what.name in (*apps_of(claim), named_app(claim.syncer)):
            if what.name in apps_of(claim):
                services = tuple(one for one in services if _app_of(claim, one) == what.name)
            keys = _given_by(services, claim, report, look)
        case Kind.ADDRESS | Kind.INSTANCE if keys:
            pass
        case _:
            return None
    return Subject(
        what=what,
        report=report,
        claim=claim,
        services=services,
        keys=keys,
        verdicts={key: one for key, one in sorted(given.items()) if keys is None or key in keys},
        listed=tuple(one for one in marked if keys is None or one.key in keys),
    )


def _given_by(
    names: tuple[str, ...], claim: Claim, report: PassReport, look: Look
) -> frozenset[InstanceKey] | None:
    """Return the instances of these Services, and those that Eureka lists under apps of no other
    Service of the syncer. None stands for all instances."""
    others = set(services_of(claim, report)) - set(names)
    if not isinstance(claim, Serving) or not others:
        return None
    apps = {_app_of(claim, one) for one in names} - {_app_of(claim, one) for one in others}
    found = {one.key for one in look.marked(claim.syncer.ref) if one.key.app in apps}
    if claim.syncer.spec.get("mode") == "service":
        return (
            frozenset(found.union(key for key in claim.verdicts if key.app in apps))
            if apps
            else None
        )
    there = _sockets(slices_of(report, selected_namespace(claim.syncer), names))
    return frozenset(found.union(key for key in claim.verdicts if _is_at(key, there)))


def _sockets(pieces: Iterable[EndpointSlice]) -> frozenset[tuple[str, int | None]]:
    """Return the addresses and ports in these slices, as in an instance's id. Without ports, any
    port is meant."""
    return frozenset(
        (_host(endpoint.address), port)
        for piece in pieces
        for endpoint in piece.endpoints
        for port in [listed.port for listed in piece.ports] or [None]
    )


def _is_at(key: InstanceKey, there: Collection[tuple[str, int | None]]) -> bool:
    host, port = key.id.split(":")[-2:]
    return (host, int(port)) in there or (host, None) in there


def _selects_pod(look: Look, what: What, services: Iterable[str]) -> bool:
    """Whether one of these Services selects the pod, even if it is no endpoint yet."""
    labels = [one.labels for one in read(look.pods.get(what.namespace)) if one.name == what.name]
    selectors = [
        one.selector for one in read(look.selectors.get(what.namespace)) if one.name in services
    ]
    return any(matches(selector, some) for selector in selectors for some in labels)


def is_meant(what: What, key: InstanceKey, instance: Instance | None = None) -> bool:
    """Whether the question is about this instance, by its app, address or id. Without `instance`,
    the address is read from the key, as our ids have it."""
    match what.kind:
        case Kind.APP:
            return key.app == what.name
        case Kind.INSTANCE:
            return key.id == what.name
        case Kind.ADDRESS if instance is not None:
            ports = {one.number for one in (instance.port, instance.secure_port) if one.enabled}
            return instance.ip_addr == what.name and what.port in (None, *ports)
        case Kind.ADDRESS:
            host, port = key.id.split(":")[-2:]
            return host == _host(what.name) and what.port in (None, int(port))
        case _:
            return False


def _host(address: str) -> str:
    """Write an address as in an instance id."""
    return address.replace(":", "-")


def read(source: Source[tuple[T, ...]] | None) -> tuple[T, ...]:
    """Return the data of a source; empty if the source is unknown. For explanations only."""
    return source.data if isinstance(source, Complete) else ()


def claims_in(report: PassReport) -> Mapping[SyncerRef, Claim]:
    """Return the claims of a pass; empty if the pass made none."""
    return report.desired.claims if report.desired else {}


def syncers_in(report: PassReport) -> tuple[SyncerObject, ...]:
    """Return all syncers that were listed, also those out of scope."""
    return tuple(every(report.view.syncers)) if report.view else ()


def services_in(report: PassReport, namespace: str) -> tuple[Service, ...]:
    """Return the Services of a namespace; empty if it could not be read."""
    return read(report.view.services.of(namespace)) if report.view else ()


def services_of(claim: Claim, report: PassReport) -> tuple[str, ...]:
    """Return the names of the Services that a syncer selects, also of one that is not served. Empty
    if they or the selector cannot be read."""
    if isinstance(claim, Serving):
        return claim.services
    try:
        selector = parse(claim.syncer).selector
    except InvalidSyncer:
        return ()
    return tuple(
        one.name
        for one in services_in(report, selected_namespace(claim.syncer))
        if selector.matches(one)
    )


def apps_of(claim: Claim) -> tuple[str, ...]:
    """Return the apps of a syncer; empty if they are unknown."""
    return claim.apps if isinstance(claim, Serving) else ()


def named_app(syncer: SyncerObject) -> str:
    """Return the app that a spec names, even if the spec is invalid; empty if the Services name the
    app."""
    selector = syncer.spec.get("selector")
    by_selector = (
        (selector.get("app") or selector.get("service")) if isinstance(selector, Mapping) else None
    )
    return str(syncer.spec.get("appName") or by_selector or "").upper()


def _app_of(claim: Claim, service: str) -> str:
    return (parse(claim.syncer).app_name or service).upper()


def slices_of(
    report: PassReport, namespace: str, services: Collection[str], *, pod: str = ""
) -> list[EndpointSlice]:
    """Return the slices of these Services that have endpoints; if a pod is named, with its
    endpoints alone."""
    found = []
    for piece in read(report.view.slices.of(namespace)) if report.view else ():
        there = piece.endpoints if piece.service in services else ()
        if pod:
            there = tuple(
                endpoint for endpoint in there if endpoint.pod and endpoint.pod.name == pod
            )
        if there:
            found.append(replace(piece, endpoints=there))
    return found


def endpoints_of(
    report: PassReport, namespace: str, services: Collection[str], *, pod: str = ""
) -> list[Endpoint]:
    """Return the endpoints of these Services from their slices; only those of one pod, if it is
    named."""
    return [
        endpoint
        for piece in slices_of(report, namespace, services, pod=pod)
        for endpoint in piece.endpoints
    ]


def observed_at(one: ObservedInstance) -> str:
    return f"{one.instance.ip_addr}:{one.instance.main_port}"


def address_of(key: InstanceKey) -> str:
    """Return `host:port` of an instance of ours, from its id."""
    return ":".join(key.id.split(":")[-2:])
