"""What is said where no syncer has to do with what was asked about: what there is, and what would help."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import every
from eurekube_sync.desired.selector import Selector
from eurekube_sync.desired.spec import parse, selected_namespace
from eurekube_sync.explain.answers import in_eureka, not_registered, nothing_link, unread_answer
from eurekube_sync.explain.links import Explanation, Outcome, Part, Why, breaks, unseen
from eurekube_sync.explain.near import matches, near_labels, near_names
from eurekube_sync.explain.serving import unknown_syncers
from eurekube_sync.explain.unclaimed import explain_unclaimed
from eurekube_sync.explain.what import OfPod, OfService, OfSyncer, What, namespace_of
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import Service, SyncerObject
from eurekube_sync.model.sources import Complete, Unknown


def explain_missing(what: What, look: Look) -> Explanation:
    """The chain that breaks at its first links. What could not be listed is unknown, and never said to be missing."""
    namespace = namespace_of(what)
    unknown = unknown_syncers(look, namespace)
    if unknown is not None:
        return _unknown(what, look, unknown)
    match what:
        case OfSyncer():
            return _no_syncer(what, look)
        case OfService():
            return _service(what, what.name, look)
        case OfPod():
            return _pod(what, look)
        case _:
            return explain_unclaimed(what, look)


def _unknown(what: What, look: Look, unknown: Unknown) -> Explanation:
    where = f" of namespace {namespace_of(what)}" if namespace_of(what) else ""
    link = unseen(
        Part.SYNCER, f"the EurekaSyncers{where} could not be looked at: {unknown.message}", reason=unknown.cause.value
    )
    return Explanation(
        about=str(what),
        links=(link, *in_eureka(what, look)),
        outcome=Outcome.UNKNOWN,
        sentence=f"Unknown whether it is registered: {link.text}",
    )


def _no_syncer(what: OfSyncer, look: Look) -> Explanation:
    namespace, name = what.ref
    there = [one.name for one in _syncers(look, namespace)]
    near = near_names(name, there)
    details = (f"there is {', '.join(f'{namespace}/{one}' for one in near or sorted(there)[:3])}",) if there else ()
    fix = f"eurekube-sync explain {namespace}/{near[0]}" if near else f"kubectl get esync -n {namespace}"
    link = breaks(
        Part.SYNCER,
        Why.NO_SYNCER,
        f"there is no EurekaSyncer {what.ref}",
        details=details,
        cause=f"there is no EurekaSyncer {what.ref}",
        fix=fix,
    )
    return not_registered(what, (link, *in_eureka(what, look)), link)


def _service(what: OfService | OfPod, name: str, look: Look) -> Explanation:
    listed = look.selectors.get(what.namespace)
    if isinstance(listed, Unknown):
        return unread_answer(
            what, f"the Services of namespace {what.namespace} could not be looked at: {listed.message}"
        )
    names = [one.name for one in listed.data] if listed else []
    if name not in names:
        near = near_names(name, names)
        link = nothing_link(
            f"there is no Service {what.namespace}/{name}", near, f"kubectl get svc -n {what.namespace}"
        )
        return not_registered(what, (link,), link)
    found = next(one for one in listed.data if one.name == name) if listed else None
    labels = found.labels if found else {}
    details, fix = _nearly_selecting(what.namespace, name, labels, look)
    link = breaks(
        Part.SYNCER,
        Why.NO_SYNCER,
        f"Service {name} is selected by no EurekaSyncer of namespace {what.namespace}",
        details=tuple(details),
        cause=f"Service {name} is selected by no EurekaSyncer",
        fix=fix or "apply the smallest one, below: kubectl apply -f -",
    )
    return not_registered(what, (link,), link, {} if fix else _smallest(what.namespace, name))


def _pod(what: OfPod, look: Look) -> Explanation:
    pods, selectors = look.pods.get(what.namespace), look.selectors.get(what.namespace)
    for source, kind in ((pods, "Pods"), (selectors, "Services")):
        if isinstance(source, Unknown):
            text = f"the {kind} of namespace {what.namespace} could not be looked at: {source.message}"
            link = unseen(Part.PODS, text)
            return Explanation(about=str(what), links=(link,), outcome=Outcome.UNKNOWN, sentence=f"Unknown: {text}")
    found = [one for one in (pods.data if isinstance(pods, Complete) else ()) if one.name == what.name]
    if not found:
        names = [one.name for one in pods.data] if isinstance(pods, Complete) else []
        near = near_names(what.name, names)
        text = f"there is no pod {what.namespace}/{what.name}"
        link = nothing_link(text, near, f"kubectl get pods -n {what.namespace}")
        return not_registered(what, (link,), link)
    services = selectors.data if isinstance(selectors, Complete) else ()
    behind = [one.name for one in services if matches(one.selector, found[0].labels)]
    if behind:
        return _service(what, behind[0], look)
    nearly = tuple(near_labels_of(found[0].labels, {one.name: one.selector for one in services}))
    link = breaks(
        Part.SERVICES,
        Why.NOT_SELECTED,
        f"pod {what.name} is selected by no Service",
        details=nearly,
        cause="its pod is selected by no Service",
        fix=f"kubectl get svc -n {what.namespace} -o wide",
    )
    return not_registered(what, (link,), link)


def near_labels_of(labels: dict[str, str] | Any, selectors: dict[str, Any]) -> Iterable[str]:
    """Selectors that would take these labels but for one of theirs."""
    for name, selector in sorted(selectors.items()):
        for near in near_labels(selector, [(name, labels)]):
            wanted = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
            yield f"Service {name} selects {wanted}, and the pod has {near.label}"


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
