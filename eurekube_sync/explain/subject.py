"""Whose chain answers a question: the syncers that select what was asked about, and which of their instances it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import assert_never

from eurekube_sync.controller.look import Look
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import Claim, Deleting, Serving, wanted_in
from eurekube_sync.desired.spec import parse, selected_namespace
from eurekube_sync.desired.verdicts import Leaving, Verdict
from eurekube_sync.explain.near import matches
from eurekube_sync.explain.what import OfAddress, OfApp, OfInstance, OfPod, OfService, OfSyncer, What
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import Endpoint, SyncerObject, SyncerRef
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One syncer, and what of it was asked about."""

    what: What
    report: PassReport
    claim: Claim
    pod: str = ""
    """The one pod that was asked about; empty for all."""
    keys: frozenset[InstanceKey] | None = None
    """The instances that were asked about; None for all of the syncer."""

    @property
    def ref(self) -> SyncerRef:
        """The syncer."""
        return self.claim.syncer.ref

    @property
    def edit(self) -> str:
        """The command that edits the syncer."""
        return f"kubectl edit esync {self.ref.name} -n {self.ref.namespace}"

    @property
    def describe(self) -> str:
        """The command that shows the syncer with its conditions and events."""
        return f"kubectl describe esync {self.ref.name} -n {self.ref.namespace}"

    @property
    def namespace(self) -> str:
        """Of its Services."""
        return selected_namespace(self.claim.syncer)

    @property
    def services(self) -> tuple[str, ...]:
        """Those of its Services that were asked about, by name."""
        return _services_meant(self.what, self.claim, self.report)

    @property
    def verdicts(self) -> Mapping[InstanceKey, Verdict]:
        """What the pass decided of what was asked about."""
        found = self.claim.verdicts if isinstance(self.claim, Serving) else {}
        return {key: one for key, one in sorted(found.items()) if self.keys is None or key in self.keys}

    def listed(self, look: Look) -> Iterator[ObservedInstance]:
        """What Eureka's list shows of it."""
        for one in look.marked(self.ref):
            meant = self.keys is None or one.key in self.keys
            if meant or (isinstance(self.what, OfAddress) and is_at(one, self.what)):
                yield one


def subjects(what: What, look: Look) -> tuple[Subject, ...]:
    """Each syncer that has to do with it; empty where there is none, or nobody could tell."""
    return tuple(found for report in look.reports for found in _in_report(what, report, look))


def _in_report(what: What, report: PassReport, look: Look) -> Iterator[Subject]:
    for ref, claim in sorted(report.desired.claims.items()) if report.desired else ():
        match what:
            case OfSyncer():
                if what.ref == ref:
                    yield Subject(what=what, report=report, claim=claim)
            case OfService():
                if selected_namespace(claim.syncer) == what.namespace and what.name in services_of(claim, report):
                    keys = _of_services((what.name,), claim, report, look)
                    yield Subject(what=what, report=report, claim=claim, keys=keys)
            case OfPod():
                yield from _of_pod(what, report, claim, look)
            case OfApp():
                keys = frozenset(key for key in _keys(claim) if key.app == what.name)
                named = what.name in (*apps_of(claim), named_app(claim.syncer))
                if keys or named or _marked(look, ref, lambda one: one.key.app == what.name):
                    meant = _services_meant(what, claim, report)
                    yield Subject(what=what, report=report, claim=claim, keys=_of_services(meant, claim, report, look))
            case OfAddress():
                keys = frozenset(key for key, one in _verdicts(claim) if _at(key, one, what))
                if keys or _marked(look, ref, lambda one: is_at(one, what)):
                    yield Subject(what=what, report=report, claim=claim, keys=keys)
            case OfInstance():
                keys = frozenset(key for key in _keys(claim) if key.id == what.id)
                theirs = frozenset(one.key for one in look.marked(ref) if one.key.id == what.id)
                if keys or theirs:
                    yield Subject(what=what, report=report, claim=claim, keys=keys | theirs)
            case _:  # pragma: no cover
                assert_never(what)


def services_of(claim: Claim, report: PassReport) -> tuple[str, ...]:
    """The Services that it selects, by name, served or not; none where they or its selector cannot be read."""
    if isinstance(claim, Serving):
        return claim.services
    namespace = selected_namespace(claim.syncer)
    listed = report.view.services.of(namespace) if report.view else None
    try:
        selector = parse(claim.syncer).selector
    except InvalidSyncer:
        return ()
    return tuple(one.name for one in (listed.data if isinstance(listed, Complete) else ()) if selector.matches(one))


def _services_meant(what: What, claim: Claim, report: PassReport) -> tuple[str, ...]:
    match what:
        case OfService(name=name):
            return (name,)
        case OfApp(name=app) if app in apps_of(claim):
            return tuple(one for one in services_of(claim, report) if _app_of(claim, one) == app)
        case _:
            return services_of(claim, report)


def _app_of(claim: Claim, service: str) -> str:
    return (parse(claim.syncer).app_name or service).upper()


def _of_services(names: tuple[str, ...], claim: Claim, report: PassReport, look: Look) -> frozenset[InstanceKey] | None:
    """What these Services of it give, and what Eureka lists under an app that they alone give; None for all of it."""
    every_one = services_of(claim, report)
    if not isinstance(claim, Serving) or set(names) >= set(every_one):
        return None
    apps = {_app_of(claim, one) for one in names} - {_app_of(claim, one) for one in every_one if one not in names}
    theirs = {one.key for one in look.marked(claim.syncer.ref) if one.key.app in apps}
    if claim.syncer.spec.get("mode") == "service":
        return frozenset({key for key in claim.verdicts if key.app in apps} | theirs) if apps else None
    there = endpoints_of(report, selected_namespace(claim.syncer), names)
    hosts = {one.address.replace(":", "-") for one in there}
    return frozenset({key for key in claim.verdicts if key.id.split(":")[-2] in hosts} | theirs)


def apps_of(claim: Claim) -> tuple[str, ...]:
    """Its apps, as far as they are known."""
    return claim.apps if isinstance(claim, Serving) else ()


def named_app(syncer: SyncerObject) -> str:
    """The app that its spec names, served or not; empty where the Services name it."""
    selector = syncer.spec.get("selector")
    by_selector = (selector.get("app") or selector.get("service")) if isinstance(selector, Mapping) else None
    return str(syncer.spec.get("appName") or by_selector or "").upper()


def observed_at(one: ObservedInstance) -> str:
    """`host:port` of an instance in Eureka."""
    return f"{one.instance.ip_addr}:{one.instance.main_port}"


def address_of(key: InstanceKey, verdict: Verdict | None = None) -> str:
    """`host:port` of an instance, as a person writes it."""
    wanted = wanted_in(verdict)
    if wanted is not None:
        return f"{wanted.instance.ip_addr}:{wanted.instance.main_port}"
    return ":".join(key.id.split(":")[-2:])


def endpoints_of(report: PassReport, namespace: str, services: tuple[str, ...]) -> Iterator[Endpoint]:
    """All endpoints of these Services, as the slices show them."""
    listed = report.view.slices.of(namespace) if report.view else None
    for piece in listed.data if isinstance(listed, Complete) else ():
        if piece.service in services:
            yield from piece.endpoints


def _of_pod(what: OfPod, report: PassReport, claim: Claim, look: Look) -> Iterator[Subject]:
    if selected_namespace(claim.syncer) != what.namespace:
        return
    services = services_of(claim, report)
    there = [one for one in endpoints_of(report, what.namespace, services) if is_pod(one, what.name)]
    if there or selects_pod(look, what, services):
        hosts = {one.address.replace(":", "-") for one in there}
        keys = frozenset(key for key in _keys(claim) if key.id.split(":")[-2] in hosts)
        yield Subject(what=what, report=report, claim=claim, pod=what.name, keys=keys)


def selects_pod(look: Look, what: OfPod, services: tuple[str, ...]) -> bool:
    """Whether one of these Services selects the pod, be it an endpoint yet or not."""
    pods, selectors = look.pods.get(what.namespace), look.selectors.get(what.namespace)
    if not isinstance(pods, Complete) or not isinstance(selectors, Complete):
        return False
    labels = [one.labels for one in pods.data if one.name == what.name]
    return any(matches(one.selector, some) for one in selectors.data if one.name in services for some in labels)


def is_pod(endpoint: Endpoint, name: str) -> bool:
    """Whether it is the pod of that name."""
    return endpoint.pod is not None and endpoint.pod.name == name


def _verdicts(claim: Claim) -> Iterator[tuple[InstanceKey, Verdict]]:
    yield from claim.verdicts.items() if isinstance(claim, Serving) else ()


def _keys(claim: Claim) -> frozenset[InstanceKey]:
    return (
        frozenset(claim.verdicts)
        if isinstance(claim, Serving)
        else frozenset(claim.keys if isinstance(claim, Deleting) else ())
    )


def _at(key: InstanceKey, verdict: Verdict, what: OfAddress) -> bool:
    wanted = wanted_in(verdict)
    if wanted is not None:
        ports = {one.number for one in (wanted.instance.port, wanted.instance.secure_port) if one.enabled}
        return wanted.instance.ip_addr == what.host and what.port in (None, *ports)
    host, port = key.id.split(":")[-2:]
    return host == what.host.replace(":", "-") and what.port in (None, int(port))


def is_at(instance: ObservedInstance, what: OfAddress) -> bool:
    """Whether an instance in Eureka has the address."""
    found = instance.instance
    ports = {one.number for one in (found.port, found.secure_port) if one.enabled}
    return found.ip_addr == what.host and what.port in (None, *ports)


def _marked(look: Look, ref: SyncerRef, test: Callable[[ObservedInstance], bool]) -> bool:
    return any(test(one) for one in look.marked(ref))


def terminates(verdict: Verdict) -> bool:
    """Whether its endpoint is about to end."""
    return isinstance(verdict, Leaving) and verdict.terminating
