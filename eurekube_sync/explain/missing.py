"""Explains things that no syncer registers: which similar things exist, who registers them, and
what would help."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from shlex import join, quote
from typing import Any

from eurekube_sync.controller.look import Look
from eurekube_sync.desired.spec import parse, selected_namespace
from eurekube_sync.explain.links import Explanation, Link, Mark, Outcome, Part, breaks, unseen
from eurekube_sync.explain.subject import (
    apps_of,
    claims_in,
    is_meant,
    observed_at,
    read,
    syncers_in,
)
from eurekube_sync.explain.what import Kind, What, matches, near_labels, near_names, written
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import Service, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import CLUSTER, OWNER, syncer_of
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Source, Unknown
from eurekube_sync.observe.kubernetes import unknown_sources

_APPLY = (
    "apply the EurekaSyncer below, which selects the Service by its name (selector.service): "
    "kubectl apply -f -"
)


def explain_missing(what: What, look: Look) -> Explanation:
    """Make a chain whose first link is broken, or unknown if a list failed."""
    manifest: dict[str, Any] = {}
    service: str | Link = ""
    unread, theirs = (
        _unknown_syncers(look, what.namespace),
        list(look.marked(SyncerRef(what.namespace, what.name))),
    )
    if what.kind is not Kind.SYNCER:
        theirs = [one for one in read(look.listed) if is_meant(what, one.key, one.instance)]
    if unread is not None:
        kind = f"EurekaSyncers of namespace {what.namespace}" if what.namespace else "EurekaSyncers"
        first = _unread(Part.SYNCER, kind, unread)
    elif what.kind is Kind.SYNCER:
        there, fix = (
            [one.name for one in _syncers(look, what.namespace)],
            f"kubectl get esync -n {what.namespace}",
        )
        first = _nothing("EurekaSyncer", what.namespace, what.name, there, fix, Reason.NO_SYNCER)
    elif what.kind in (Kind.SERVICE, Kind.POD):
        service = (
            what.name if what.kind is Kind.SERVICE else _service_of(what.namespace, what.name, look)
        )
        first = service if isinstance(service, Link) else _service(what.namespace, service, look)
    else:
        first = _in_eureka_alone(theirs[0], look) if theirs else _no_claim(what, look)
    beside = list(_in_eureka(theirs, look)) if unread or theirs or what.kind is Kind.SYNCER else []
    outcome, sentence = Outcome.UNKNOWN, f"Unknown whether it is registered: {first.text}"
    if first.broken:
        outcome = Outcome.NOT_REGISTERED
        sentence = (
            f"{'Registered, but by no syncer in scope' if theirs else 'Not registered'}: "
            f"{first.cause}"
        )
    if first.fix == _APPLY:
        meta, spec = (
            {"name": service, "namespace": what.namespace},
            {"selector": {"service": service}},
        )
        manifest = {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaSyncer",
            "metadata": meta,
            "spec": spec,
        }
    links, fix = (first, *beside), first.fix
    return Explanation(
        about=str(what), links=links, outcome=outcome, sentence=sentence, fix=fix, manifest=manifest
    )


def _unread(part: Part, kind: str, source: Unknown) -> Link:
    return unseen(part, f"the {kind} could not be looked at: {source.message}", reason=source.cause)


def _nothing(
    kind: str,
    namespace: str,
    name: str,
    there: Collection[str],
    fix: str,
    reason: Reason = Reason.NOTHING_FOUND,
) -> Link:
    """Report that an object does not exist, with similar names."""
    near = [f"{namespace}/{one}" for one in near_names(name, there) or sorted(there)[:3]]
    details = [f"there is {', '.join(near)}"] if near else []
    return breaks(Part.SYNCER, reason, f"there is no {kind} {namespace}/{name}", *details, fix=fix)


def _in_eureka(theirs: list[ObservedInstance], look: Look) -> Iterator[Link]:
    if isinstance(look.listed, Unknown):
        yield unseen(
            Part.EUREKA, f"what Eureka holds could not be looked at: {look.listed.message}"
        )
    for one in theirs[:3]:
        whose = f"syncer {syncer_of(one)}" if syncer_of(one) else "no mark of ours"
        yield Link(
            Part.EUREKA,
            Mark.NOTE,
            f"Eureka holds {one.key} at {observed_at(one)}, {one.status}, {whose}",
        )


def _service(namespace: str, name: str, look: Look) -> Link:
    listed = look.selectors.get(namespace)
    if isinstance(listed, Unknown):
        return _unread(Part.SERVICES, f"Services of namespace {namespace}", listed)
    there = {one.name: one.labels for one in read(listed)}
    if name not in there:
        return _nothing("Service", namespace, name, there, f"kubectl get svc -n {namespace}")
    nearly = list(_nearly_selecting(namespace, name, there[name], look))
    details, fix = [detail for detail, _ in nearly], nearly[0][1] if nearly else _APPLY
    return breaks(
        Part.SYNCER,
        Reason.NO_SYNCER,
        f"Service {name} is selected by no EurekaSyncer",
        *details,
        fix=fix,
    )


def _nearly_selecting(
    namespace: str, name: str, labels: Mapping[str, str], look: Look
) -> Iterator[tuple[str, str]]:
    """Yield syncers that select the Service except for one label, each with a fix."""
    for syncer in _syncers(look, namespace):
        try:
            selector = parse(syncer).selector
        except InvalidSyncer:
            text = f"EurekaSyncer {syncer.ref} might select it, but its spec is invalid"
            yield text, f"eurekube-sync explain {syncer.ref}"
            continue
        found = [label for label, _, _ in near_labels(dict(selector.labels), [(name, labels)])]
        if found or near_names(name, [selector.service or ""]):
            text = (
                f"EurekaSyncer {syncer.ref} selects {selector}, and the Service has "
                f"{', '.join(found or [name])}"
            )
            yield text, f"kubectl edit esync {syncer.name} -n {namespace}"


def _service_of(namespace: str, pod: str, look: Look) -> str | Link:
    """Return the Service that selects the pod, or a link with the reason why there is none."""
    pods, services = look.pods.get(namespace), look.selectors.get(namespace)
    for source, kind in ((pods, "Pods"), (services, "Services")):
        if isinstance(source, Unknown):
            return _unread(Part.PODS, f"{kind} of namespace {namespace}", source)
    there = {one.name: one.labels for one in read(pods)}
    if pod not in there:
        return _nothing("pod", namespace, pod, there, f"kubectl get pods -n {namespace}")
    selectors = sorted((one.name, one.selector) for one in read(services))
    if behind := [name for name, selector in selectors if matches(selector, there[pod])]:
        return behind[0]
    nearly = [
        f"Service {name} selects {written(selector)}, and the pod has {label}"
        for name, selector in selectors
        for label, _, _ in near_labels(selector, [(name, there[pod])])
    ]
    text, fix = f"pod {pod} is selected by no Service", f"kubectl get svc -n {namespace} -o wide"
    return breaks(Part.SERVICES, Reason.NOT_SELECTED, text, *nearly, fix=fix)


def _no_claim(what: What, look: Look) -> Link:
    """Report an app, address or instance id that no claim and no instance has, with similar
    apps."""
    failed = [each for report in look.reports for each in unknown_sources(report.view)]
    for name, source in failed:
        if name.startswith(("Services", "EndpointSlices")):
            return _unread(Part.SERVICES, "Services", source)
    claims = [claim for report in look.reports for claim in claims_in(report).values()]
    wanted = {app: claim.syncer.ref for claim in reversed(claims) for app in apps_of(claim)}
    near = near_names(str(what), {one.key.app for one in read(look.listed)} | wanted.keys())
    details = [f"similar: {', '.join(near)}"] if near else []
    details += [f"EurekaSyncer {wanted[app]} registers as {app}" for app in near if app in wanted]
    fix = join(("eurekube-sync", "status", "-a", *look.asked.options))
    if isinstance(look.listed, Unknown):
        text = (
            f"no syncer wants {what}; what Eureka holds could not be looked at: "
            f"{look.listed.message}"
        )
        return unseen(Part.SYNCER, text, *details, fix=fix)
    text = f"no syncer wants {what}, and Eureka does not list it"
    return breaks(Part.SYNCER, Reason.NOTHING_FOUND, text, *details, fix=fix)


def _in_eureka_alone(one: ObservedInstance, look: Look) -> Link:
    """Explain by its marks an instance that no syncer in scope registers."""
    ref, owner, of_cluster = syncer_of(one), one.metadata.get(OWNER, ""), one.metadata.get(CLUSTER)
    cluster = look.identity.data if isinstance(look.identity, Complete) else of_cluster
    if ref is None or owner not in ("", look.owner) or of_cluster != cluster:
        cluster_too = "" if of_cluster in (None, cluster) else " of another cluster"
        cause = (
            f"owner {owner}{cluster_too} registered it"
            if owner
            else "it has no mark of eurekube-sync"
        )
        return breaks(
            Part.SYNCER,
            Reason.NO_SYNCER,
            f"no EurekaSyncer in scope registers it: {cause}",
            cause=cause,
        )
    if not look.asked.covers(ref) or any(
        syncer.ref == ref for syncer in _syncers(look, ref.namespace)
    ):
        fix = f"eurekube-sync explain {quote(str(ref))} -n {quote(ref.namespace)}"
        text = f"EurekaSyncer {ref} registers it, but is outside of the given scope"
        return unseen(Part.SERVICES, text, fix=fix)
    text = f"there is no EurekaSyncer {ref} any more, so it is an orphan"
    fix = join(("eurekube-sync", "orphans", *look.asked.options))
    return breaks(Part.SYNCER, Reason.NO_SYNCER, text, cause="its syncer is gone", fix=fix)


def _syncers(look: Look, namespace: str) -> list[SyncerObject]:
    return [one for one in syncers_in(look.report) if one.namespace == namespace]


def _unknown_syncers(look: Look, namespace: str) -> Unknown | None:
    """Return the reason why the syncers of a namespace, or of the whole scope, are unknown; None if
    all were listed."""
    view = look.report.view
    if view is None:
        return None
    sources: list[Source[Any]] = [view.identity]
    sources += [view.syncers.of(namespace)] if namespace else view.syncers.by_namespace.values()
    if not namespace and not look.report.settings.scope.namespaces:
        sources.append(view.syncers.elsewhere)
    return next((one for one in sources if isinstance(one, Unknown)), None)


def unselected(look: Look, namespace: str) -> list[str]:
    """Return the names of the namespace's Services that no syncer selects; empty if that is
    unknown."""
    if look.report.view is None or isinstance(look.report.view.syncers.of(namespace), Unknown):
        return []
    selectors = []
    for syncer in syncers_in(look.report):
        if selected_namespace(syncer) == namespace:
            with suppress(InvalidSyncer):
                selectors.append(parse(syncer).selector)
    listed = read(look.selectors.get(namespace))
    services = [Service(namespace=namespace, name=one.name, labels=one.labels) for one in listed]
    return sorted(
        one.name for one in services if not any(selector.matches(one) for selector in selectors)
    )
