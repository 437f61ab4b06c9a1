"""Whose chain answers a question: the syncers that select what was asked about, and which of their instances it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, TypeVar

from eurekube_sync.controller.look import Look
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import Claim, Deleting, Serving, Verdict, every, wanted_in
from eurekube_sync.desired.spec import parse, selected_namespace
from eurekube_sync.explain.near import matches
from eurekube_sync.explain.what import Kind, What
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import Endpoint, Service, SyncerObject, SyncerRef
from eurekube_sync.model.sources import Complete, Source
from eurekube_sync.model.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One syncer, and what of it was asked about."""

    what: What
    report: PassReport
    claim: Claim
    services: tuple[str, ...]
    """Those of its Services that were asked about, by name."""
    keys: frozenset[InstanceKey] | None
    """The instances that were asked about; None for all of the syncer."""
    verdicts: Mapping[InstanceKey, Verdict]
    """What the pass decided of them."""
    listed: tuple[ObservedInstance, ...]
    """What Eureka's list shows of them."""

    @property
    def ref(self) -> SyncerRef:
        """The syncer."""
        return self.claim.syncer.ref

    @property
    def namespace(self) -> str:
        """Of its Services."""
        return selected_namespace(self.claim.syncer)

    @property
    def pod(self) -> str:
        """The one pod that was asked about; empty for all."""
        return self.what.name if self.what.kind is Kind.POD else ""

    def kubectl(self, verb: str) -> str:
        """The command that does this with the syncer."""
        return f"kubectl {verb} esync {self.ref.name} -n {self.ref.namespace}"

    def concerns(self, key: InstanceKey) -> bool:
        """Whether this instance of the syncer was asked about."""
        return self.keys is None or key in self.keys


_Meant: TypeAlias = tuple[tuple[str, ...], frozenset[InstanceKey] | None]
"""The Services and the instances of a syncer that were asked about; None for all instances."""


def subjects(what: What, look: Look) -> tuple[Subject, ...]:
    """Each syncer that has to do with it; empty where there is none, or nobody could tell."""
    return tuple(
        _subject(what, report, claim, look, meant)
        for report in look.reports
        for _, claim in sorted(report.desired.claims.items() if report.desired else ())
        if (meant := _meant(what, report, claim, look))
    )


def whole_syncer(report: PassReport, claim: Claim, look: Look) -> Subject:
    """All of one syncer."""
    what = What(Kind.SYNCER, claim.syncer.name, claim.syncer.namespace)
    return _subject(what, report, claim, look, (services_of(claim, report), None))


def _subject(what: What, report: PassReport, claim: Claim, look: Look, meant: _Meant) -> Subject:
    services, keys = meant
    return Subject(
        what=what,
        report=report,
        claim=claim,
        services=services,
        keys=keys,
        verdicts={key: one for key, one in sorted(_verdicts(claim).items()) if keys is None or key in keys},
        listed=tuple(one for one in look.marked(claim.syncer.ref) if keys is None or one.key in keys),
    )


def _meant(what: What, report: PassReport, claim: Claim, look: Look) -> _Meant | None:
    """None where the syncer has nothing to do with it."""
    if what.kind is Kind.SYNCER:
        return (services_of(claim, report), None) if claim.syncer.ref == (what.namespace, what.name) else None
    if what.kind in (Kind.SERVICE, Kind.POD) and selected_namespace(claim.syncer) != what.namespace:
        return None
    services = services_of(claim, report)
    known = dict.fromkeys(claim.keys) if isinstance(claim, Deleting) else dict(_verdicts(claim))
    keys = frozenset(
        [key for key, verdict in known.items() if is_meant(what, key, _instance(verdict))]
        + [one.key for one in look.marked(claim.syncer.ref) if is_meant(what, one.key, one.instance)]
    )
    match what.kind:
        case Kind.SERVICE if what.name in services:
            return (what.name,), _given_by((what.name,), claim, report, look)
        case Kind.POD:
            there = [one for one in endpoints_of(report, what.namespace, services) if is_pod(one, what.name)]
            of_pod = frozenset(key for key in known if key.id.split(":")[-2] in _hosts(there))
            return (services, of_pod) if there or _selects_pod(look, what, services) else None
        case Kind.APP if keys or what.name in (*apps_of(claim), named_app(claim.syncer)):
            if what.name in apps_of(claim):
                services = tuple(one for one in services if _app_of(claim, one) == what.name)
            return services, _given_by(services, claim, report, look)
        case Kind.ADDRESS | Kind.INSTANCE if keys:
            return services, keys
        case _:
            return None


def _given_by(names: tuple[str, ...], claim: Claim, report: PassReport, look: Look) -> frozenset[InstanceKey] | None:
    """What these Services of it give, and what Eureka lists under an app that they alone give; None for all of it."""
    every_one = services_of(claim, report)
    if not isinstance(claim, Serving) or set(names) >= set(every_one):
        return None
    apps = {_app_of(claim, one) for one in names} - {_app_of(claim, one) for one in every_one if one not in names}
    theirs = {one.key for one in look.marked(claim.syncer.ref) if one.key.app in apps}
    if claim.syncer.spec.get("mode") == "service":
        return frozenset({key for key in claim.verdicts if key.app in apps} | theirs) if apps else None
    hosts = _hosts(endpoints_of(report, selected_namespace(claim.syncer), names))
    return frozenset({key for key in claim.verdicts if key.id.split(":")[-2] in hosts} | theirs)


def _selects_pod(look: Look, what: What, services: tuple[str, ...]) -> bool:
    """Whether one of these Services selects the pod, be it an endpoint yet or not."""
    labels = [one.labels for one in read(look.pods.get(what.namespace)) if one.name == what.name]
    selectors = [one.selector for one in read(look.selectors.get(what.namespace)) if one.name in services]
    return any(matches(selector, some) for selector in selectors for some in labels)


def is_meant(what: What, key: InstanceKey, instance: Instance | None) -> bool:
    """Whether it is the app, the address or the id that was asked about. `instance`: None where only its key is
    known."""
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
            return host == what.name.replace(":", "-") and what.port in (None, int(port))
        case _:
            return False


def read(source: Source[tuple[T, ...]] | None) -> tuple[T, ...]:
    """What was read; nothing where it could not be."""
    return source.data if isinstance(source, Complete) else ()


def syncers_in(report: PassReport) -> tuple[SyncerObject, ...]:
    """All syncers that were listed, in the scope or not."""
    return tuple(every(report.view.syncers)) if report.view else ()


def services_in(report: PassReport, namespace: str) -> tuple[Service, ...]:
    """The Services of a namespace, as far as they were read."""
    return read(report.view.services.of(namespace)) if report.view else ()


def services_of(claim: Claim, report: PassReport) -> tuple[str, ...]:
    """The Services that it selects, by name, served or not; none where they or its selector cannot be read."""
    if isinstance(claim, Serving):
        return claim.services
    try:
        selector = parse(claim.syncer).selector
    except InvalidSyncer:
        return ()
    return tuple(one.name for one in services_in(report, selected_namespace(claim.syncer)) if selector.matches(one))


def apps_of(claim: Claim) -> tuple[str, ...]:
    """Its apps, as far as they are known."""
    return claim.apps if isinstance(claim, Serving) else ()


def named_app(syncer: SyncerObject) -> str:
    """The app that its spec names, served or not; empty where the Services name it."""
    selector = syncer.spec.get("selector")
    by_selector = (selector.get("app") or selector.get("service")) if isinstance(selector, Mapping) else None
    return str(syncer.spec.get("appName") or by_selector or "").upper()


def _app_of(claim: Claim, service: str) -> str:
    return (parse(claim.syncer).app_name or service).upper()


def endpoints_of(report: PassReport, namespace: str, services: tuple[str, ...]) -> Iterator[Endpoint]:
    """All endpoints of these Services, as the slices show them."""
    for piece in read(report.view.slices.of(namespace)) if report.view else ():
        if piece.service in services:
            yield from piece.endpoints


def is_pod(endpoint: Endpoint, name: str) -> bool:
    """Whether it is the pod of that name."""
    return endpoint.pod is not None and endpoint.pod.name == name


def observed_at(one: ObservedInstance) -> str:
    """`host:port` of an instance in Eureka."""
    return f"{one.instance.ip_addr}:{one.instance.main_port}"


def address_of(key: InstanceKey, verdict: Verdict | None = None) -> str:
    """`host:port` of an instance, as a person writes it."""
    instance = _instance(verdict)
    return f"{instance.ip_addr}:{instance.main_port}" if instance else ":".join(key.id.split(":")[-2:])


def _verdicts(claim: Claim) -> Mapping[InstanceKey, Verdict]:
    return claim.verdicts if isinstance(claim, Serving) else {}


def _instance(verdict: Verdict | None) -> Instance | None:
    wanted = wanted_in(verdict)
    return wanted.instance if wanted else None


def _hosts(endpoints: Iterator[Endpoint] | list[Endpoint]) -> frozenset[str]:
    """Their addresses, as an instance id has them."""
    return frozenset(one.address.replace(":", "-") for one in endpoints)
