"""Finds the syncers that a question is about, and which of their instances."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from eurekube_sync.controller.look import Look
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import Claim, Deleting, Leaving, Serving, Verdict, every
from eurekube_sync.desired.selector import Selector
from eurekube_sync.desired.similar import matches
from eurekube_sync.desired.spec import parse, selected_namespace
from eurekube_sync.explain.what import WORKLOADS, Kind, What
from eurekube_sync.model.actions import comes_last
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.imports import is_of_an_import
from eurekube_sync.model.kubernetes import (
    EndpointSlice,
    PodDetail,
    Service,
    ServiceSelector,
    SyncerObject,
    SyncerRef,
)
from eurekube_sync.model.ownership import as_in_id
from eurekube_sync.model.sources import Complete, Source

T = TypeVar("T")
V = TypeVar("V", bound=Verdict)


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
        if self.what.kind is Kind.POD:
            return self.what.name
        return ""

    @property
    def terminating(self) -> int:
        """The number of its endpoints that terminate."""
        leaving = self.of(Leaving).values()
        return sum(verdict.terminating for verdict in leaving)

    def of(self, kind: type[V]) -> Mapping[InstanceKey, V]:
        """Return its verdicts of one kind, by key."""
        return {key: verdict for key, verdict in self.verdicts.items() if isinstance(verdict, kind)}

    def kubectl(self, verb: str) -> str:
        return f"kubectl {verb} esync {self.ref.name} -n {self.ref.namespace}"

    @property
    def removals(self) -> Mapping[InstanceKey, str]:
        """What the pass removes of it, each with the reason."""
        found: dict[InstanceKey, str] = {}
        for action in self.report.plan.changes:
            if action.syncer == self.ref and self.concerns(action.key) and comes_last(action):
                found[action.key] = action.why
        return found

    def concerns(self, key: InstanceKey) -> bool:
        return self.keys is None or key in self.keys

    def has(self, syncer: SyncerRef | None, key: InstanceKey) -> bool:
        """Whether an action is of this syncer and of the part in question."""
        return syncer == self.ref and self.concerns(key)


def subjects(what: What, look: Look) -> tuple[Subject, ...]:
    """Return each syncer that the question is about; empty if there is none, or if that is
    unknown. A name that is no app may be that of a VIP address or of a pod."""
    subjects = _subjects(what, look)
    if subjects or what.kind is not Kind.APP:
        return subjects
    subjects = _subjects(What(Kind.VIP, what.name), look)
    if subjects:
        return subjects
    for namespace in _namespaces_with_pod(what.name.lower(), look):
        subjects += _subjects(What(Kind.POD, what.name.lower(), namespace), look)
    return subjects


def _namespaces_with_pod(name: str, look: Look) -> list[str]:
    """Return the namespaces whose slices have a pod of this name."""
    namespaces = set()
    for report in look.reports:
        if report.view:
            for source in report.view.slices.by_namespace.values():
                for piece in read(source):
                    for endpoint in piece.endpoints:
                        if endpoint.pod is not None and endpoint.pod.name == name:
                            namespaces.add(piece.namespace)
    return sorted(namespaces)


def _subjects(what: What, look: Look) -> tuple[Subject, ...]:
    subjects = []
    for report in look.reports:
        for _, claim in sorted(claims_in(report).items()):
            subject = subject_of(what, report, claim, look)
            if subject is not None:
                subjects.append(subject)
    return tuple(subjects)


def subject_of(what: What, report: PassReport, claim: Claim, look: Look) -> Subject | None:
    """Return the part of a syncer that the question is about; None if it is not about this
    syncer."""
    if not _may_reach(what, claim):
        return None
    services = services_of(claim, report)
    keys: frozenset[InstanceKey] | None = _named_by(what, claim, look)
    match what.kind:
        case Kind.SYNCER if claim.syncer.ref == (what.namespace, what.name):
            keys = None
        case Kind.SERVICE if what.name in services:
            services = (what.name,)
            keys = _given_by(services, claim, report, look)
        case Kind.POD | Kind.DEPLOYMENT | Kind.STATEFUL_SET | Kind.DAEMON_SET:
            names = [what.name] if what.kind is Kind.POD else pods_of(what, look)
            keys = _of_pods(names, what.namespace, claim, report, look, services)
            if keys is None:
                return None
        case Kind.VIP if what.name in map(str.upper, vips_of(claim)):
            keys = None
        case Kind.APP if keys or what.name in (*apps_of(claim), named_app(claim.syncer)):
            services = _services_of_app(what.name, services, claim)
            keys = _given_by(services, claim, report, look)
        case Kind.ADDRESS | Kind.INSTANCE if keys:
            pass
        case _:
            return None
    return _subject(what, report, claim, look, services, keys)


def _may_reach(what: What, claim: Claim) -> bool:
    """Say whether the syncer selects in the namespace of the object that is asked about."""
    if what.kind not in (Kind.SERVICE, Kind.POD, *WORKLOADS):
        return True
    return selected_namespace(claim.syncer) == what.namespace


def _of_pods(
    names: Iterable[str],
    namespace: str,
    claim: Claim,
    report: PassReport,
    look: Look,
    services: tuple[str, ...],
) -> frozenset[InstanceKey] | None:
    """Return the instances of these pods; None if these Services have none of the pods."""
    there: set[tuple[str, int | None]] = set()
    selected = False
    for name in names:
        there |= _sockets(slices_of(report, namespace, services, pod=name))
        selected = selected or _selects_pod(look, What(Kind.POD, name, namespace), services)
    if not there and not selected:
        return None
    return frozenset(key for key in _keys_of(claim) if _is_at(key, there))


def pods_of(what: What, look: Look) -> list[str]:
    """Return the names of a workload's pods; empty if they were not read."""
    named = f"{WORKLOADS[what.kind]} {what.name}"
    pods = pods_in(look, what.namespace)
    return sorted(pod.name for pod in pods if workload(pod) == named)


def workload(pod: PodDetail) -> str:
    """Return the object that a person would edit: `Deployment rating`, `StatefulSet db`, or the
    bare pod."""
    kind, _, name = pod.controller.partition(" ")
    if kind == "ReplicaSet":  # its name is its Deployment's name with a hash
        return f"Deployment {name.rpartition('-')[0] or name}"
    return pod.controller or f"pod {pod.name}"


def vips_of(claim: Claim) -> list[str]:
    """Return the VIP addresses of a syncer; empty if they are unknown."""
    if not isinstance(claim, Serving):
        return []
    return [vip.strip() for vip in claim.vip_address.split(",")]


def _subject(
    what: What,
    report: PassReport,
    claim: Claim,
    look: Look,
    services: tuple[str, ...],
    keys: frozenset[InstanceKey] | None,
) -> Subject:
    verdicts = claim.verdicts if isinstance(claim, Serving) else {}
    listed = look.marked(claim.syncer.ref)
    return Subject(
        what=what,
        report=report,
        claim=claim,
        services=services,
        keys=keys,
        verdicts={key: verdicts[key] for key in sorted(verdicts) if keys is None or key in keys},
        listed=tuple(instance for instance in listed if keys is None or instance.key in keys),
    )


def _services_of_app(app: str, services: tuple[str, ...], claim: Claim) -> tuple[str, ...]:
    """Return the Services that give an app; all if the syncer does not register it now."""
    if app not in apps_of(claim):
        return services
    return tuple(name for name in services if _app_of(claim, name) == app)


def _keys_of(claim: Claim) -> Collection[InstanceKey]:
    if isinstance(claim, Serving):
        return claim.verdicts
    if isinstance(claim, Deleting):
        return claim.keys
    return ()


def _named_by(what: What, claim: Claim, look: Look) -> frozenset[InstanceKey]:
    """Return the syncer's instances, wanted or listed, whose app, address or id is in question."""
    keys = {key for key in _keys_of(claim) if is_meant(what, key)}
    for instance in look.marked(claim.syncer.ref):
        if is_meant(what, instance.key, instance.instance):
            keys.add(instance.key)
    return frozenset(keys)


def _given_by(
    names: tuple[str, ...], claim: Claim, report: PassReport, look: Look
) -> frozenset[InstanceKey] | None:
    """Return the instances of these Services, and those that Eureka lists under apps of no other
    Service of the syncer. None stands for all instances."""
    others = set(services_of(claim, report)) - set(names)
    if not isinstance(claim, Serving) or not others:
        return None
    apps = {_app_of(claim, name) for name in names} - {_app_of(claim, name) for name in others}
    keys = {listed.key for listed in look.marked(claim.syncer.ref) if listed.key.app in apps}
    if claim.syncer.spec.get("mode") == "service":
        if not apps:
            return None
        keys.update(key for key in claim.verdicts if key.app in apps)
    else:
        there = _sockets(slices_of(report, selected_namespace(claim.syncer), names))
        keys.update(key for key in claim.verdicts if _is_at(key, there))
    return frozenset(keys)


def _sockets(slices: Iterable[EndpointSlice]) -> frozenset[tuple[str, int | None]]:
    """Return the addresses and ports in these slices, as in an instance's id. Without ports, any
    port is meant."""
    sockets: set[tuple[str, int | None]] = set()
    for piece in slices:
        ports = [listed.port for listed in piece.ports] or [None]
        for endpoint in piece.endpoints:
            sockets.update((as_in_id(endpoint.address), port) for port in ports)
    return frozenset(sockets)


def _is_at(key: InstanceKey, there: Collection[tuple[str, int | None]]) -> bool:
    host, port = _socket_of(key)
    return (host, port) in there or (host, None) in there


def _socket_of(key: InstanceKey) -> tuple[str, int]:
    """Return the address and port in an id of ours, as they stand there."""
    _, host, port = key.id.rsplit(":", 2)
    return host, int(port)


def _selects_pod(look: Look, what: What, services: Collection[str]) -> bool:
    """Whether one of these Services selects the pod, even if it is no endpoint yet."""
    for pod in pods_in(look, what.namespace):
        if pod.name == what.name:
            for service in selectors_in(look, what.namespace):
                if service.name in services and matches(service.selector, pod.labels):
                    return True
    return False


def is_meant(what: What, key: InstanceKey, instance: Instance | None = None) -> bool:
    """Whether the question is about this instance, by its app, address or id. Without `instance`,
    the address is read from the key, as our ids have it."""
    match what.kind:
        case Kind.APP:
            return key.app == what.name
        case Kind.INSTANCE:
            return key.id == what.name
        case Kind.ADDRESS if instance is not None:
            ports = {port.number for port in (instance.port, instance.secure_port) if port.enabled}
            return instance.ip_addr == what.name and what.port in (None, *ports)
        case Kind.ADDRESS:
            host, port = _socket_of(key)
            return host == as_in_id(what.name) and what.port in (None, port)
        case _:
            return False


def read(source: Source[tuple[T, ...]] | None) -> tuple[T, ...]:
    """Return the data of a source; empty if the source is unknown. For explanations only."""
    if isinstance(source, Complete):
        return source.data
    return ()


def pods_in(look: Look, namespace: str) -> tuple[PodDetail, ...]:
    """Return the listed pods of a namespace; empty if they were not read."""
    return read(look.pods.get(namespace))


def selectors_in(look: Look, namespace: str) -> tuple[ServiceSelector, ...]:
    """Return the selectors of a namespace's Services; empty if they were not read."""
    return read(look.selectors.get(namespace))


def claims_in(report: PassReport) -> Mapping[SyncerRef, Claim]:
    """Return the claims of a pass; empty if the pass made none."""
    if report.desired:
        return report.desired.claims
    return {}


def syncers_in(report: PassReport) -> tuple[SyncerObject, ...]:
    """Return all syncers that were listed, also those out of scope."""
    if report.view:
        return tuple(every(report.view.syncers))
    return ()


def services_in(report: PassReport, namespace: str) -> tuple[Service, ...]:
    """Return the Services of a namespace that a syncer may select; empty if it could not be
    read."""
    if report.view is None:
        return ()
    listed = read(report.view.services.of(namespace))
    return tuple(service for service in listed if not is_of_an_import(service))


def services_of(claim: Claim, report: PassReport) -> tuple[str, ...]:
    """Return the names of the Services that a syncer selects, also of one that is not served. Empty
    if they or the selector cannot be read."""
    if isinstance(claim, Serving):
        return claim.services
    selector = selector_of(claim.syncer)
    if selector is None:
        return ()
    names = []
    for service in services_in(report, selected_namespace(claim.syncer)):
        if selector.matches(service):
            names.append(service.name)
    return tuple(names)


def selector_of(syncer: SyncerObject) -> Selector | None:
    """Return the selector of a syncer; None if its spec is invalid."""
    try:
        return parse(syncer).selector
    except InvalidSyncer:
        return None


def apps_of(claim: Claim) -> tuple[str, ...]:
    """Return the apps of a syncer; empty if they are unknown."""
    if isinstance(claim, Serving):
        return claim.apps
    return ()


def named_app(syncer: SyncerObject) -> str:
    """Return the app that a spec names, even if the spec is invalid; empty if the Services name the
    app."""
    app = syncer.spec.get("appName")
    selector = syncer.spec.get("selector")
    if not app and isinstance(selector, Mapping):
        app = selector.get("app") or selector.get("service")
    return str(app or "").upper()


def _app_of(claim: Claim, service: str) -> str:
    return (parse(claim.syncer).app_name or service).upper()


def slices_of(
    report: PassReport, namespace: str, services: Collection[str], *, pod: str = ""
) -> list[EndpointSlice]:
    """Return the slices of these Services that have endpoints for syncers; if a pod is named, with
    its endpoints alone."""
    slices = []
    if report.view:
        for piece in read(report.view.slices.of(namespace)):
            if piece.service not in services or is_of_an_import(piece):
                continue
            endpoints = []
            for endpoint in piece.endpoints:
                if not pod or (endpoint.pod is not None and endpoint.pod.name == pod):
                    endpoints.append(endpoint)
            if endpoints:
                slices.append(replace(piece, endpoints=tuple(endpoints)))
    return slices


def observed_at(observed: ObservedInstance) -> str:
    return f"{observed.instance.ip_addr}:{observed.instance.main_port}"


def address_of(key: InstanceKey) -> str:
    """Return `host:port` of an instance of ours, from its id."""
    return ":".join(key.id.split(":")[-2:])
