"""Finds the syncers that a question is about, and which of their instances."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from msgspec import Struct

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
    Endpoint,
    EndpointSlice,
    PodDetail,
    Service,
    ServiceSelector,
    SyncerObject,
    SyncerRef,
)
from eurekube_sync.model.ownership import as_in_id
from eurekube_sync.model.sources import Complete, Source
from eurekube_sync.model.struct import replace

T = TypeVar("T")
V = TypeVar("V", bound=Verdict)
Socket = tuple[str, int | None]  # an address as in an id of ours, and its port; None for any


class Subject(Struct, frozen=True, kw_only=True):
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
        number = 0
        for verdict in self.of(Leaving).values():
            number += verdict.terminating
        return number

    def of(self, kind: type[V]) -> Mapping[InstanceKey, V]:
        """Return its verdicts of one kind, by key."""
        verdicts: dict[InstanceKey, V] = {}
        for key, verdict in self.verdicts.items():
            if isinstance(verdict, kind):
                verdicts[key] = verdict
        return verdicts

    def kubectl(self, verb: str) -> str:
        ref = self.ref
        return f"kubectl {verb} esync {ref.name} -n {ref.namespace}"

    @property
    def removals(self) -> Mapping[InstanceKey, str]:
        """What the pass removes of it, each with the reason."""
        removals: dict[InstanceKey, str] = {}
        for action in self.report.plan.changes:
            if self.has(action.syncer, action.key) and comes_last(action):
                removals[action.key] = action.why
        return removals

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
    name = what.name.lower()  # as an app it was put in upper case
    for namespace in _namespaces_with_pod(name, look):
        pod = What(Kind.POD, name, namespace)
        subjects += _subjects(pod, look)
    return subjects


def _namespaces_with_pod(name: str, look: Look) -> list[str]:
    """Return the namespaces whose slices have a pod of this name."""
    namespaces = set()
    for report in look.reports:
        if report.view is None:
            continue
        for source in report.view.slices.by_namespace.values():
            for piece in read(source):
                if any(_is_of_pod(endpoint, name) for endpoint in piece.endpoints):
                    namespaces.add(piece.namespace)
    return sorted(namespaces)


def _is_of_pod(endpoint: Endpoint, name: str) -> bool:
    return endpoint.pod is not None and endpoint.pod.name == name


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
    syncer.

    | the question is about                      | the part                             |
    |--------------------------------------------|--------------------------------------|
    | the syncer, or one of its VIP addresses    | all                                  |
    | a Service that it selects                  | the instances of the Service         |
    | a pod or workload that its Services select | the instances of the pods            |
    | an app that it registers, or that it names | the instances of the app's Services  |
    | the address or id of instances of it       | those instances                      |
    """
    if not _may_reach(what, claim):
        return None
    services = services_of(claim, report)
    keys: frozenset[InstanceKey] | None = None
    match what.kind:
        case Kind.SYNCER:
            if claim.syncer.ref != (what.namespace, what.name):
                return None
        case Kind.VIP:
            if what.name not in map(str.upper, vips_of(claim)):
                return None
        case Kind.SERVICE:
            if what.name not in services:
                return None
            services = (what.name,)
            keys = _given_by(services, claim, report, look)
        case Kind.POD | Kind.DEPLOYMENT | Kind.STATEFUL_SET | Kind.DAEMON_SET:
            keys = _of_pods(what, services, claim, report, look)
            if keys is None:
                return None
        case Kind.APP:
            named = {*apps_of(claim), named_app(claim.syncer)}
            if what.name not in named and not _named_by(what, claim, look):
                return None
            services = _services_of_app(what.name, services, claim)
            keys = _given_by(services, claim, report, look)
        case Kind.ADDRESS | Kind.INSTANCE:
            keys = _named_by(what, claim, look)
            if not keys:
                return None
        case Kind.IMPORT:
            return None
    return _subject(what, report, claim, look, services, keys)


def _may_reach(what: What, claim: Claim) -> bool:
    """Say whether the syncer selects in the namespace of the object that is asked about."""
    if what.kind not in (Kind.SERVICE, Kind.POD, *WORKLOADS):
        return True
    return selected_namespace(claim.syncer) == what.namespace


def _of_pods(
    what: What, services: tuple[str, ...], claim: Claim, report: PassReport, look: Look
) -> frozenset[InstanceKey] | None:
    """Return the instances of a pod, or of a workload's pods; None if these Services have none of
    them."""
    names = [what.name]
    if what.kind is not Kind.POD:
        names = pods_of(what, look)
    there: set[Socket] = set()
    selected = False
    for name in names:
        slices = slices_of(report, what.namespace, services, pod=name)
        there |= _sockets(slices)
        # A pod that is no endpoint yet is in no slice.
        pod = What(Kind.POD, name, what.namespace)
        selected = selected or _selects_pod(look, pod, services)
    if not there and not selected:
        return None
    return frozenset(_at(_keys_of(claim), there))


def pods_of(what: What, look: Look) -> list[str]:
    """Return the names of a workload's pods; empty if they were not read."""
    named = f"{WORKLOADS[what.kind]} {what.name}"
    names = []
    for pod in pods_in(look, what.namespace):
        if workload(pod) == named:
            names.append(pod.name)
    return sorted(names)


def workload(pod: PodDetail) -> str:
    """Return the object that a person would edit: `Deployment rating`, `StatefulSet db`, or the
    bare pod."""
    kind, _, name = pod.controller.partition(" ")
    if kind == "ReplicaSet":  # its name is its Deployment's name with a hash
        deployment, _, _ = name.rpartition("-")
        return f"Deployment {deployment or name}"
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
    """Take the syncer's verdicts and listed instances that are in question, by key."""
    verdicts: dict[InstanceKey, Verdict] = {}
    if isinstance(claim, Serving):
        for key in sorted(claim.verdicts):
            if keys is None or key in keys:
                verdicts[key] = claim.verdicts[key]
    listed = []
    for instance in look.marked(claim.syncer.ref):
        if keys is None or instance.key in keys:
            listed.append(instance)
    return Subject(
        what=what,
        report=report,
        claim=claim,
        services=services,
        keys=keys,
        verdicts=verdicts,
        listed=tuple(listed),
    )


def _services_of_app(app: str, services: tuple[str, ...], claim: Claim) -> tuple[str, ...]:
    """Return the Services that give an app; all if the syncer does not register it now."""
    if app not in apps_of(claim):
        return services
    giving = []
    for service in services:
        if _app_of(claim, service) == app:
            giving.append(service)
    return tuple(giving)


def _keys_of(claim: Claim) -> Collection[InstanceKey]:
    if isinstance(claim, Serving):
        return claim.verdicts
    if isinstance(claim, Deleting):
        return claim.keys
    return ()


def _named_by(what: What, claim: Claim, look: Look) -> frozenset[InstanceKey]:
    """Return the syncer's instances, wanted or listed, whose app, address or id is in question."""
    keys = set()
    for key in _keys_of(claim):
        if is_meant(what, key):
            keys.add(key)
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
    apps = _apps_of_services(names, claim) - _apps_of_services(others, claim)
    # An id has no Service. A Service's app or, in mode pod, its slices tell which ids are its own.
    if claim.syncer.spec.get("mode") == "service":
        if not apps:
            return None
        wanted = _in_apps(claim.verdicts, apps)
    else:
        slices = slices_of(report, selected_namespace(claim.syncer), names)
        wanted = _at(claim.verdicts, _sockets(slices))
    listed = [instance.key for instance in look.marked(claim.syncer.ref)]
    return frozenset([*wanted, *_in_apps(listed, apps)])


def _apps_of_services(services: Iterable[str], claim: Claim) -> set[str]:
    return {_app_of(claim, service) for service in services}


def _in_apps(keys: Iterable[InstanceKey], apps: Collection[str]) -> list[InstanceKey]:
    """Return the keys whose app is one of these."""
    of_apps = []
    for key in keys:
        if key.app in apps:
            of_apps.append(key)
    return of_apps


def _sockets(slices: Iterable[EndpointSlice]) -> frozenset[Socket]:
    """Return the addresses and ports in these slices, as in an instance's id. Without ports, any
    port is meant."""
    sockets: set[Socket] = set()
    for piece in slices:
        ports = [listed.port for listed in piece.ports] or [None]
        for endpoint in piece.endpoints:
            host = as_in_id(endpoint.address)
            for port in ports:
                sockets.add((host, port))
    return frozenset(sockets)


def _at(keys: Iterable[InstanceKey], there: Collection[Socket]) -> list[InstanceKey]:
    """Return the keys of ids of ours at these addresses and ports."""
    at = []
    for key in keys:
        host, port = _socket_of(key)
        if (host, port) in there or (host, None) in there:
            at.append(key)
    return at


def _socket_of(key: InstanceKey) -> tuple[str, int]:
    """Return the address and port in an id of ours, as they stand there."""
    _, host, port = key.id.rsplit(":", 2)
    return host, int(port)


def _selects_pod(look: Look, what: What, services: Collection[str]) -> bool:
    """Whether one of these Services selects the pod, even if it is no endpoint yet."""
    for pod in pods_in(look, what.namespace):
        if pod.name != what.name:
            continue
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
            if instance.ip_addr != what.name:
                return False
            ports: set[int | None] = {None}  # a question without a port is about all
            for port in (instance.port, instance.secure_port):
                if port.enabled:
                    ports.add(port.number)
            return what.port in ports
        case Kind.ADDRESS:
            host, number = _socket_of(key)
            return host == as_in_id(what.name) and what.port in (None, number)
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
    services = []
    for service in read(report.view.services.of(namespace)):
        if not is_of_an_import(service):
            services.append(service)
    return tuple(services)


def services_of(claim: Claim, report: PassReport) -> tuple[str, ...]:
    """Return the names of the Services that a syncer selects, also of one that is not served. Empty
    if they or the selector cannot be read."""
    if isinstance(claim, Serving):
        return claim.services
    spec = claim.spec
    if spec is None:
        return ()
    names = []
    for service in services_in(report, spec.namespace):
        if spec.selector.matches(service):
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
    """Return the app of a Service that the syncer selects, so that its spec is valid."""
    assert claim.spec is not None
    return (claim.spec.app_name or service).upper()


def slices_of(
    report: PassReport, namespace: str, services: Collection[str], *, pod: str = ""
) -> list[EndpointSlice]:
    """Return the slices of these Services that have endpoints for syncers; if a pod is named, with
    its endpoints alone."""
    slices: list[EndpointSlice] = []
    if report.view is None:
        return slices
    for piece in read(report.view.slices.of(namespace)):
        if piece.service not in services or is_of_an_import(piece):
            continue
        endpoints = []
        for endpoint in piece.endpoints:
            if not pod or _is_of_pod(endpoint, pod):
                endpoints.append(endpoint)
        if endpoints:
            slices.append(replace(piece, endpoints=tuple(endpoints)))
    return slices


def observed_at(observed: ObservedInstance) -> str:
    return f"{observed.instance.ip_addr}:{observed.instance.main_port}"


def address_of(key: InstanceKey) -> str:
    """Return `host:port` of an instance of ours, from its id."""
    return ":".join(key.id.split(":")[-2:])
