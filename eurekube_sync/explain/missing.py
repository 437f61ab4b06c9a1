"""What is said where no syncer has to do with what was asked about: what there is, whose it is, and what would help."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import join, quote
from typing import Any

from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import NotServed, every
from eurekube_sync.desired.selector import Selector
from eurekube_sync.desired.spec import parse, selected_namespace
from eurekube_sync.explain.links import Explanation, Link, Mark, Outcome, Part, Why, breaks, noted, unseen
from eurekube_sync.explain.near import matches, near_labels, near_names, written
from eurekube_sync.explain.serving import unknown_syncers
from eurekube_sync.explain.subject import apps_of, is_at, observed_at
from eurekube_sync.explain.what import OfAddress, OfApp, OfInstance, OfPod, OfService, OfSyncer, What, namespace_of
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import Service, SyncerObject
from eurekube_sync.model.ownership import CLUSTER, OWNER, syncer_of
from eurekube_sync.model.sources import Complete, Unknown


def explain_missing(what: What, look: Look) -> Explanation:
    """The chain that breaks at its first links. What could not be listed is unknown, and never said to be missing."""
    namespace = namespace_of(what)
    unread = unknown_syncers(look, namespace)
    if unread is not None:
        kind = f"EurekaSyncers of namespace {namespace}" if namespace else "EurekaSyncers"
        return _unread(what, Part.SYNCER, kind, unread, *_in_eureka(what, look))
    match what:
        case OfSyncer():
            return _no_syncer(what, look)
        case OfService():
            return _service(what, what.name, look)
        case OfPod():
            return _pod(what, look)
        case _:
            return _no_claim(what, look)


def _unread(what: What, part: Part, kind: str, source: Unknown, *links: Link) -> Explanation:
    return _unknown(what, part, f"the {kind} could not be looked at: {source.message}", *links, reason=source.cause)


def _unknown(
    what: What,
    part: Part,
    text: str,
    *links: Link,
    reason: str = Why.NOT_LOOKED_AT,
    details: tuple[str, ...] = (),
    fix: str = "",
) -> Explanation:
    """Too little was seen to say whether it should be registered."""
    sentence = f"Unknown whether it is registered: {text}"
    links = (unseen(part, text, reason=reason, details=details), *links)
    return Explanation(about=str(what), links=links, outcome=Outcome.UNKNOWN, sentence=sentence, fix=fix)


def _missing(
    what: What,
    part: Part,
    reason: Why,
    text: str,
    *links: Link,
    details: tuple[str, ...] = (),
    cause: str = "",
    fix: str = "",
    manifest: dict[str, Any] | None = None,
) -> Explanation:
    """The chain ends at its first link; what Eureka holds under the name is then somebody else's."""
    broken = breaks(part, reason, text, details=details, cause=cause or text, fix=fix)
    held = any(link.mark is Mark.NOTE for link in links)
    return Explanation(
        about=str(what),
        links=(broken, *links),
        outcome=Outcome.NOT_REGISTERED,
        sentence=f"{'Registered, but by no syncer here' if held else 'Not registered'}: {broken.cause}",
        fix=fix,
        manifest=manifest or {},
    )


def _nothing(what: What, kind: str, name: str, names: list[str], fix: str) -> Explanation:
    """There is no such object; names that are nearly right."""
    near = near_names(name, names)
    details = (f"nearest: {', '.join(near)}",) if near else ()
    text = f"there is no {kind} {namespace_of(what)}/{name}"
    return _missing(what, Part.SYNCER, Why.NOTHING_FOUND, text, details=details, fix=fix)


def _in_eureka(what: What, look: Look) -> Iterator[Link]:
    """Instances of the name, whosever they are."""
    if isinstance(look.listed, Unknown):
        yield unseen(Part.EUREKA, f"what Eureka holds could not be looked at: {look.listed.message}")
        return
    for one in [one for one in look.listed.data if _is_meant(what, one)][:3]:
        whose = f"syncer {syncer_of(one)}" if syncer_of(one) else "no mark of ours"
        yield noted(Part.EUREKA, f"Eureka holds {one.key} at {observed_at(one)}, {one.status}, {whose}")


def _is_meant(what: What, one: ObservedInstance) -> bool:
    """Whether an instance in Eureka is what was asked about."""
    match what:
        case OfSyncer(ref=ref):
            return syncer_of(one) == ref
        case OfApp(name=name):
            return one.key.app == name
        case OfAddress():
            return is_at(one, what)
        case OfInstance(id=id_):
            return one.key.id == id_
        case _:
            return False


def _no_syncer(what: OfSyncer, look: Look) -> Explanation:
    namespace, name = what.ref
    there = [one.name for one in _syncers(look, namespace)]
    near = near_names(name, there)
    details = (f"there is {', '.join(f'{namespace}/{one}' for one in near or sorted(there)[:3])}",) if there else ()
    fix = f"eurekube-sync explain {namespace}/{near[0]}" if near else f"kubectl get esync -n {namespace}"
    text, beside = f"there is no EurekaSyncer {what.ref}", _in_eureka(what, look)
    return _missing(what, Part.SYNCER, Why.NO_SYNCER, text, *beside, details=details, fix=fix)


def _service(what: OfService | OfPod, name: str, look: Look) -> Explanation:
    namespace, listed = what.namespace, look.selectors.get(what.namespace)
    if isinstance(listed, Unknown):
        return _unread(what, Part.SERVICES, f"Services of namespace {namespace}", listed)
    there = {one.name: one.labels for one in listed.data} if listed else {}
    if name not in there:
        return _nothing(what, "Service", name, list(there), f"kubectl get svc -n {namespace}")
    details, fix = _nearly_selecting(namespace, name, there[name], look)
    cause = f"Service {name} is selected by no EurekaSyncer"
    return _missing(
        what,
        Part.SYNCER,
        Why.NO_SYNCER,
        f"{cause} of namespace {namespace}",
        details=tuple(details),
        cause=cause,
        fix=fix or "apply the smallest one, below: kubectl apply -f -",
        manifest={} if fix else _smallest(namespace, name),
    )


def _pod(what: OfPod, look: Look) -> Explanation:
    namespace = what.namespace
    pods, services = look.pods.get(namespace), look.selectors.get(namespace)
    for source, kind in ((pods, "Pods"), (services, "Services")):
        if isinstance(source, Unknown):
            return _unread(what, Part.PODS, f"{kind} of namespace {namespace}", source)
    labels = {one.name: one.labels for one in pods.data} if isinstance(pods, Complete) else {}
    if what.name not in labels:
        return _nothing(what, "pod", what.name, list(labels), f"kubectl get pods -n {namespace}")
    mine = labels[what.name]
    selectors = {one.name: one.selector for one in services.data} if isinstance(services, Complete) else {}
    for name, selector in selectors.items():
        if matches(selector, mine):
            return _service(what, name, look)
    nearly = [
        f"Service {name} selects {written(selector)}, and the pod has {near.label}"
        for name, selector in sorted(selectors.items())
        for near in near_labels(selector, [(name, mine)])
    ]
    return _missing(
        what,
        Part.SERVICES,
        Why.NOT_SELECTED,
        f"pod {what.name} is selected by no Service",
        details=tuple(nearly),
        cause="its pod is selected by no Service",
        fix=f"kubectl get svc -n {namespace} -o wide",
    )


def _nearly_selecting(namespace: str, name: str, labels: Any, look: Look) -> tuple[list[str], str]:
    """Syncers that would select the Service but for one label."""
    details: list[str] = []
    fix = ""
    for syncer in _syncers(look, namespace):
        try:
            selector = parse(syncer).selector
        except InvalidSyncer:
            details.append(f"EurekaSyncer {syncer.ref}, whose spec is invalid, may be meant to select it")
            fix = fix or f"eurekube-sync explain {syncer.ref}"
            continue
        near = near_names(name, [selector.service] if selector.service else [])
        found = [one.label for one in near_labels(dict(selector.labels), [(name, labels)])]
        if near or found:
            details.append(
                f"EurekaSyncer {syncer.ref} selects {selector}, and the Service has {', '.join(found or [name])}"
            )
            fix = fix or f"kubectl edit esync {syncer.name} -n {namespace}"
    return details, fix


def _syncers(look: Look, namespace: str) -> list[SyncerObject]:
    listed = look.report.view.syncers if look.report.view else None
    return [one for one in (every(listed) if listed else ()) if one.namespace == namespace]


def _smallest(namespace: str, service: str) -> dict[str, Any]:
    return {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaSyncer",
        "metadata": {"name": service, "namespace": namespace},
        "spec": {"selector": {"service": service}},
    }


def _no_claim(what: What, look: Look) -> Explanation:
    """An app, an address or an instance id that no claim names: whose it is, or what is near."""
    instances = look.listed.data if isinstance(look.listed, Complete) else ()
    theirs = [one for one in instances if _is_meant(what, one)]
    if theirs:
        return _in_eureka_alone(what, theirs[0], look)
    if unread := _services_unread(look):
        return _unread(what, Part.SERVICES, "Services", unread)
    claims = [claim for report in look.reports if report.desired for claim in report.desired.claims.values()]
    wanted = {app: claim.syncer.ref for claim in reversed(claims) for app in apps_of(claim)}
    near = near_names(str(what), {one.key.app for one in instances} | wanted.keys())
    details = [f"nearest: {', '.join(near)}"] if near else []
    details += [f"EurekaSyncer {wanted[app]} registers as {app}" for app in near if app in wanted]
    fix = join(("eurekube-sync", "status", "-a", *look.asked.options))
    if isinstance(look.listed, Unknown):
        text = f"no syncer wants {what}; what Eureka holds could not be looked at: {look.listed.message}"
        return _unknown(what, Part.SYNCER, text, details=tuple(details), fix=fix)
    text, cause = (
        f"no syncer wants {what}, and Eureka does not list it",
        f"nothing is registered as {what}",
    )
    return _missing(what, Part.SYNCER, Why.NOTHING_FOUND, text, details=tuple(details), cause=cause, fix=fix)


def _in_eureka_alone(what: What, one: ObservedInstance, look: Look) -> Explanation:
    """It is registered, and no syncer that was looked at has to do with it: whose it is, by its marks."""
    ref, owner = syncer_of(one), one.metadata.get(OWNER, "")
    cluster = look.identity.data if isinstance(look.identity, Complete) else one.metadata.get(CLUSTER)
    there = list(_in_eureka(what, look))
    if ref is not None and owner in ("", look.owner) and one.metadata.get(CLUSTER) == cluster:
        is_there = any(syncer.ref == ref for syncer in _syncers(look, ref.namespace))
        if is_there or not look.asked.covers(ref):
            text = f"EurekaSyncer {ref} registers it, but is outside of the given scope"
            fix = f"eurekube-sync explain {quote(str(ref))} -n {quote(ref.namespace)}"
            return _unknown(what, Part.SERVICES, text, *there, fix=fix)
        text = f"there is no EurekaSyncer {ref} any more, so it is an orphan"
        cause, fix = "its syncer is gone", join(("eurekube-sync", "orphans", *look.asked.options))
    else:
        cluster_too = "" if one.metadata.get(CLUSTER) in (None, cluster) else " of another cluster"
        whose = f"owner {owner}{cluster_too} registered it" if owner else "it has no mark of eurekube-sync"
        text, cause, fix = f"no EurekaSyncer registers it: {whose}", whose, ""
    return _missing(what, Part.SYNCER, Why.NO_SYNCER, text, *there, cause=cause, fix=fix)


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
    services, listed = look.selectors.get(namespace), look.report.view.syncers if look.report.view else None
    if not isinstance(services, Complete) or listed is None or isinstance(listed.of(namespace), Unknown):
        return []
    selectors = [selector for one in every(listed) if (selector := _selector_in(one, namespace))]
    found = [Service(namespace=namespace, name=one.name, labels=one.labels) for one in services.data]
    return sorted(one.name for one in found if not any(selector.matches(one) for selector in selectors))


def _selector_in(syncer: SyncerObject, namespace: str) -> Selector | None:
    try:
        return parse(syncer).selector if selected_namespace(syncer) == namespace else None
    except InvalidSyncer:
        return None
