"""What is said where no syncer has to do with what was asked about: what there is, whose it is, and what would help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from shlex import join, quote
from typing import Any

from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import NotServed
from eurekube_sync.desired.spec import parse, selected_namespace
from eurekube_sync.explain.links import Explanation, Link, Mark, Outcome, Part, breaks, noted, unseen
from eurekube_sync.explain.near import matches, near_labels, near_names, written
from eurekube_sync.explain.subject import apps_of, is_meant, observed_at, read, syncers_in
from eurekube_sync.explain.what import Kind, What
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import Service, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import CLUSTER, OWNER, syncer_of
from eurekube_sync.model.sources import Complete, Source, Unknown


def explain_missing(what: What, look: Look) -> Explanation:
    """The chain that breaks at its first links. What could not be listed is unknown, and never said to be missing."""
    unread = _unknown_syncers(look, what.namespace)
    if unread is not None:
        kind = f"EurekaSyncers of namespace {what.namespace}" if what.namespace else "EurekaSyncers"
        return _explained(what, _unread(Part.SYNCER, kind, unread), *_in_eureka(what, look))
    match what.kind:
        case Kind.SYNCER:
            return _no_syncer(what, look)
        case Kind.SERVICE:
            return _service(what, what.name, look)
        case Kind.POD:
            return _pod(what, look)
        case _:
            return _no_claim(what, look)


def _explained(what: What, first: Link, *beside: Link, manifest: dict[str, Any] | None = None) -> Explanation:
    """The chain ends at its first link; what Eureka holds under the name is then somebody else's."""
    outcome, sentence = Outcome.UNKNOWN, f"Unknown whether it is registered: {first.text}"
    if first.broken:
        held = any(link.mark is Mark.NOTE for link in beside)
        outcome = Outcome.NOT_REGISTERED
        sentence = f"{'Registered, but by no syncer here' if held else 'Not registered'}: {first.cause}"
    return Explanation(
        about=str(what),
        links=(first, *beside),
        outcome=outcome,
        sentence=sentence,
        fix=first.fix,
        manifest=manifest or {},
    )


def _unread(part: Part, kind: str, source: Unknown) -> Link:
    return unseen(part, f"the {kind} could not be looked at: {source.message}", source.cause)


def _nothing(what: What, kind: str, name: str, there: Mapping[str, Any], fix: str) -> Explanation:
    """There is no such object; names that are nearly right."""
    text = f"there is no {kind} {what.namespace}/{name}"
    return _explained(what, breaks(Part.SYNCER, "NothingFound", text, *_nearest(near_names(name, there)), fix=fix))


def _nearest(names: Any) -> tuple[str, ...]:
    return (f"nearest: {', '.join(names)}",) if names else ()


def _in_eureka(what: What, look: Look) -> Iterator[Link]:
    """Instances of the name, whosever they are."""
    if isinstance(look.listed, Unknown):
        yield unseen(Part.EUREKA, f"what Eureka holds could not be looked at: {look.listed.message}")
    for one in _theirs(what, look)[:3]:
        whose = f"syncer {syncer_of(one)}" if syncer_of(one) else "no mark of ours"
        yield noted(Part.EUREKA, f"Eureka holds {one.key} at {observed_at(one)}, {one.status}, {whose}")


def _theirs(what: What, look: Look) -> list[ObservedInstance]:
    """What Eureka lists of what was asked about."""
    if what.kind is Kind.SYNCER:
        return list(look.marked(SyncerRef(what.namespace, what.name)))
    return [one for one in read(look.listed) if is_meant(what, one.key, one.instance)]


def _no_syncer(what: What, look: Look) -> Explanation:
    there = [one.name for one in _syncers(look, what.namespace)]
    near = near_names(what.name, there)
    shown = ", ".join(f"{what.namespace}/{one}" for one in near or sorted(there)[:3])
    details = (f"there is {shown}",) if there else ()
    fix = f"eurekube-sync explain {what.namespace}/{near[0]}" if near else f"kubectl get esync -n {what.namespace}"
    broken = breaks(Part.SYNCER, "NoSyncer", f"there is no EurekaSyncer {what}", *details, fix=fix)
    return _explained(what, broken, *_in_eureka(what, look))


def _service(what: What, name: str, look: Look) -> Explanation:
    namespace, listed = what.namespace, look.selectors.get(what.namespace)
    if isinstance(listed, Unknown):
        return _explained(what, _unread(Part.SERVICES, f"Services of namespace {namespace}", listed))
    there = {one.name: one.labels for one in read(listed)}
    if name not in there:
        return _nothing(what, "Service", name, there, f"kubectl get svc -n {namespace}")
    cause = f"Service {name} is selected by no EurekaSyncer"
    broken = breaks(
        Part.SYNCER,
        "NoSyncer",
        f"{cause} of namespace {namespace}",
        cause=cause,
        fix="apply the smallest one, below: kubectl apply -f -",
    )
    if nearly := list(_nearly_selecting(namespace, name, there[name], look)):
        details = tuple(detail for detail, _ in nearly)
        return _explained(what, replace(broken, details=details, fix=nearly[0][1]))
    smallest = {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaSyncer",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"service": name}},
    }
    return _explained(what, broken, manifest=smallest)


def _nearly_selecting(namespace: str, name: str, labels: Mapping[str, str], look: Look) -> Iterator[tuple[str, str]]:
    """Syncers that would select the Service but for one label, and what to do about each."""
    for syncer in _syncers(look, namespace):
        try:
            selector = parse(syncer).selector
        except InvalidSyncer:
            text = f"EurekaSyncer {syncer.ref}, whose spec is invalid, may be meant to select it"
            yield text, f"eurekube-sync explain {syncer.ref}"
            continue
        found = [one.label for one in near_labels(dict(selector.labels), [(name, labels)])]
        if found or near_names(name, [selector.service or ""]):
            text = f"EurekaSyncer {syncer.ref} selects {selector}, and the Service has {', '.join(found or [name])}"
            yield text, f"kubectl edit esync {syncer.name} -n {namespace}"


def _pod(what: What, look: Look) -> Explanation:
    namespace = what.namespace
    pods, services = look.pods.get(namespace), look.selectors.get(namespace)
    for source, kind in ((pods, "Pods"), (services, "Services")):
        if isinstance(source, Unknown):
            return _explained(what, _unread(Part.PODS, f"{kind} of namespace {namespace}", source))
    labels = {one.name: one.labels for one in read(pods)}
    if what.name not in labels:
        return _nothing(what, "pod", what.name, labels, f"kubectl get pods -n {namespace}")
    mine = labels[what.name]
    selectors = sorted((one.name, one.selector) for one in read(services))
    for name, selector in selectors:
        if matches(selector, mine):
            return _service(what, name, look)
    nearly = [
        f"Service {name} selects {written(selector)}, and the pod has {near.label}"
        for name, selector in selectors
        for near in near_labels(selector, [(name, mine)])
    ]
    text, cause = f"pod {what.name} is selected by no Service", "its pod is selected by no Service"
    fix = f"kubectl get svc -n {namespace} -o wide"
    return _explained(what, breaks(Part.SERVICES, "NotSelected", text, *nearly, cause=cause, fix=fix))


def _no_claim(what: What, look: Look) -> Explanation:
    """An app, an address or an instance id that no claim names: whose it is, or what is near."""
    if theirs := _theirs(what, look):
        return _in_eureka_alone(what, theirs[0], look)
    if unread := _services_unread(look):
        return _explained(what, _unread(Part.SERVICES, "Services", unread))
    claims = [claim for report in look.reports if report.desired for claim in report.desired.claims.values()]
    wanted = {app: claim.syncer.ref for claim in reversed(claims) for app in apps_of(claim)}
    near = near_names(str(what), {one.key.app for one in read(look.listed)} | wanted.keys())
    details = [*_nearest(near), *(f"EurekaSyncer {wanted[app]} registers as {app}" for app in near if app in wanted)]
    broken = breaks(
        Part.SYNCER,
        "NothingFound",
        f"no syncer wants {what}, and Eureka does not list it",
        *details,
        cause=f"nothing is registered as {what}",
        fix=join(("eurekube-sync", "status", "-a", *look.asked.options)),
    )
    if isinstance(look.listed, Unknown):
        text = f"no syncer wants {what}; what Eureka holds could not be looked at: {look.listed.message}"
        broken = replace(broken, mark=Mark.UNKNOWN, reason="NotLookedAt", text=text, cause="")
    return _explained(what, broken)


def _in_eureka_alone(what: What, one: ObservedInstance, look: Look) -> Explanation:
    """It is registered, and no syncer that was looked at has to do with it: whose it is, by its marks."""
    ref, owner, of_cluster = syncer_of(one), one.metadata.get(OWNER, ""), one.metadata.get(CLUSTER)
    cluster = look.identity.data if isinstance(look.identity, Complete) else of_cluster
    fix = ""
    if ref is None or owner not in ("", look.owner) or of_cluster != cluster:
        cluster_too = "" if of_cluster in (None, cluster) else " of another cluster"
        cause = f"owner {owner}{cluster_too} registered it" if owner else "it has no mark of eurekube-sync"
        text = f"no EurekaSyncer registers it: {cause}"
    elif not look.asked.covers(ref) or any(syncer.ref == ref for syncer in _syncers(look, ref.namespace)):
        text = f"EurekaSyncer {ref} registers it, but is outside of the given scope"
        fix = f"eurekube-sync explain {quote(str(ref))} -n {quote(ref.namespace)}"
        return _explained(what, replace(unseen(Part.SERVICES, text), fix=fix), *_in_eureka(what, look))
    else:
        text = f"there is no EurekaSyncer {ref} any more, so it is an orphan"
        cause, fix = "its syncer is gone", join(("eurekube-sync", "orphans", *look.asked.options))
    return _explained(what, breaks(Part.SYNCER, "NoSyncer", text, cause=cause, fix=fix), *_in_eureka(what, look))


def _syncers(look: Look, namespace: str) -> list[SyncerObject]:
    return [one for one in syncers_in(look.report) if one.namespace == namespace]


def _unknown_syncers(look: Look, namespace: str) -> Unknown | None:
    """Why the syncers of a namespace, or of all that were asked for, could not be listed; None where they were."""
    view = look.report.view
    if view is None:
        return None
    sources: list[Source[Any]] = [view.identity]
    sources += [view.syncers.of(namespace)] if namespace else view.syncers.by_namespace.values()
    if not namespace and not look.report.scope.namespaces:
        sources.append(view.syncers.elsewhere)
    return next((one for one in sources if isinstance(one, Unknown)), None)


def _services_unread(look: Look) -> Unknown | None:
    """Why it is not known what some syncer wants; None where it is known of all."""
    for report in look.reports:
        for claim in report.desired.claims.values() if report.desired and report.view else ():
            if isinstance(claim, NotServed) and claim.unknown and report.view:
                namespace = selected_namespace(claim.syncer)
                sources = (report.view.services.of(namespace), report.view.slices.of(namespace))
                if found := next((one for one in sources if isinstance(one, Unknown)), None):
                    return found
    return None


def unselected(look: Look, namespace: str) -> list[str]:
    """Services of the namespace that no syncer selects, by name; none where that is not known."""
    if look.report.view is None or isinstance(look.report.view.syncers.of(namespace), Unknown):
        return []
    selectors = []
    for syncer in syncers_in(look.report):
        if selected_namespace(syncer) == namespace:
            with suppress(InvalidSyncer):
                selectors.append(parse(syncer).selector)
    found = [
        Service(namespace=namespace, name=one.name, labels=one.labels) for one in read(look.selectors.get(namespace))
    ]
    return sorted(one.name for one in found if not any(selector.matches(one) for selector in selectors))
