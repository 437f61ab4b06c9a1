"""The links from the syncer to its endpoints: found, valid, served by somebody, Services, port, slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import Claim, Deleting, NotServed, Serving
from eurekube_sync.desired.spec import class_of, parse
from eurekube_sync.explain.links import Link, Mark, Part, breaks, holds, noted, unseen
from eurekube_sync.explain.near import matches, near_labels, written
from eurekube_sync.explain.subject import Subject, endpoints_of
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import Service, SyncerObject
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.wording import counted, one_or_more, span

_PATIENCE = 120.0
"""Seconds in which a pass should have seen a new syncer: passes come each 30 s, or of a CronJob each minute."""
_NOT_GRANTED = "NotGranted"
_OVER_QUOTA = "OverQuota"
_PART_OF: Mapping[str, Part] = {
    "InvalidSpec": Part.SPEC,
    "InvalidName": Part.SPEC,
    "InvalidMetadata": Part.SPEC,
    "NamespaceNotAllowed": Part.SERVICES,
    _NOT_GRANTED: Part.SPEC,
    _OVER_QUOTA: Part.SPEC,
    "NoMatchingService": Part.SERVICES,
    "NoSuchPort": Part.PORT,
    "AmbiguousPort": Part.PORT,
    "AmbiguousService": Part.PORT,
}
"""Which link a syncer that is not served breaks; every other reason breaks that of the endpoints."""
_ORDER = (Part.SPEC, Part.SERVICES, Part.PORT, Part.ENDPOINTS)


def syncer_links(subject: Subject, look: Look, *, registered: bool) -> Iterator[Link]:
    """In the order of the chain. `registered`: all of it is UP in Eureka, so that somebody serves it."""
    claim = subject.claim
    yield _found(claim)
    if isinstance(claim, Deleting):
        yield breaks(
            Part.SPEC,
            "Deleting",
            "the syncer is being deleted, so its instances are removed",
            cause="its syncer is being deleted",
            fix=subject.describe,
        )
        return
    broken = _broken_part(claim) or _not_granted(claim, look)
    for part in _ORDER:
        if broken is not None and part is broken.part:
            yield _with_near_misses(broken, subject, look)
            return
        if part is Part.SPEC:
            yield holds(Part.SPEC, "its spec is valid")
            yield _served(claim.syncer, look, registered=registered)
        elif isinstance(claim, Serving):
            yield _of_part(part, subject, claim)


def _found(claim: Claim) -> Link:
    spec = claim.syncer.spec
    mode = spec.get("mode") or "pod"
    named = f"class {class_of(claim.syncer)}" if class_of(claim.syncer) else "no class"
    return holds(Part.SYNCER, f"EurekaSyncer {claim.syncer.ref}: mode {mode}, {named}")


def _served(syncer: SyncerObject, look: Look, *, registered: bool) -> Link:
    """Whether an installation serves it: in the scope that was given, and by what passes wrote into its status."""
    inside = look.asked.takes(syncer)
    scope = str(look.asked) or "syncers without a class"
    age = span(look.at - syncer.created)
    seen = syncer.status is not None and syncer.status.observed_generation > 0
    fresh = syncer.status is not None and syncer.status.observed_generation >= syncer.generation
    name = class_of(syncer)
    if inside and (fresh or registered or look.at - syncer.created < _PATIENCE):
        told = f"owner {look.owner}" if look.owner else "passes write the syncer's status"
        return holds(Part.SERVED, f"an installation serves it ({told})")
    if fresh or registered:
        where = f"class {name}" if name else "another scope"
        return holds(Part.SERVED, f"another installation serves it ({where})")
    if seen and inside:
        return noted(Part.SERVED, f"no pass has seen its last change (generation {syncer.generation}) yet")
    if not inside:
        own = f"class {name}" if name else "it is out of the scope given here"
        given = f"the options given here are for {scope}"
        text = f"{own}: no installation serves it; {given}; the syncer was created {age} ago"
        cause = f"no installation serves {'class ' + name if name else 'it'}"
    else:
        text, cause = f"no installation serves it: no pass has written its status in {age}", "no installation serves it"
    fix = (
        f"remove spec.syncerClass, or ask the operator for an installation with --syncer-class {name}"
        if name
        else "ask the operator whether eurekube-sync runs, and for which namespaces, labels and shards"
    )
    return breaks(Part.SERVED, "NoInstallation", text, cause=cause, fix=fix)


def _broken_part(claim: Serving | NotServed) -> Link | None:
    if not isinstance(claim, NotServed):
        return None
    part = _PART_OF.get(claim.reason, Part.ENDPOINTS)
    if claim.unknown:
        return unseen(
            Part.SERVICES, f"its Services, slices or pods could not be looked at: {claim.message}", reason=claim.reason
        )
    return breaks(
        part,
        claim.reason,
        claim.message,
        cause=_CAUSES.get(claim.reason, claim.message),
        fix=_FIXES.get(claim.reason, "kubectl edit esync {name} -n {namespace}").format(
            name=claim.syncer.name, namespace=claim.syncer.namespace
        ),
    )


def refused_by_its_installation(syncer: SyncerObject, look: Look) -> str | None:
    """Why the last pass of its installation refused it for want of a grant, as its status says of the present spec;
    None where it did not. A look that asks for grants itself has read newer annotations."""
    status = syncer.status if not look.asked.granted_only else None
    ready = status.condition("Ready") if status and status.observed_generation >= syncer.generation else None
    return ready.message if ready and ready.reason == _NOT_GRANTED else None


def _not_granted(claim: Claim, look: Look) -> Link | None:
    message = refused_by_its_installation(claim.syncer, look)
    if message is None:
        return None
    return breaks(
        Part.SPEC,
        _NOT_GRANTED,
        f"its status says: {message}",
        cause=_CAUSES[_NOT_GRANTED],
        fix=_FIXES[_NOT_GRANTED].format(namespace=claim.syncer.namespace),
    )


_FIXES: Mapping[str, str] = {
    _NOT_GRANTED: "kubectl describe namespace {namespace}",
    _OVER_QUOTA: "kubectl get esync -n {namespace}",
}
_CAUSES: Mapping[str, str] = {
    "InvalidSpec": "its spec is invalid",
    "NoMatchingService": "no Service matches its selector",
    "NoSuchPort": "its Services have no such port",
    "NamespaceNotAllowed": "it may not select Services of that namespace",
    _NOT_GRANTED: "its Namespace does not grant what it registers",
    _OVER_QUOTA: "its namespace has more syncers than are served",
}


def _with_near_misses(link: Link, subject: Subject, look: Look) -> Link:
    if link.reason != "NoMatchingService":
        return link
    try:
        labels = dict(parse(subject.claim.syncer).selector.labels)
    except InvalidSyncer:
        return link
    details, fix = _service_near_misses(labels, subject, look)
    return Link(
        part=link.part,
        mark=link.mark,
        reason=link.reason,
        text=f"no Service in namespace {subject.namespace} matches {_selector(subject.claim.syncer)}",
        details=tuple(details),
        cause=link.cause,
        fix=fix or link.fix,
    )


def _selector(syncer: SyncerObject) -> str:
    try:
        return str(parse(syncer).selector)
    except InvalidSyncer:
        return "its selector"


def _service_near_misses(labels: Mapping[str, str], subject: Subject, look: Look) -> tuple[list[str], str]:
    """What was nearly right, and what to do about it."""
    details: list[str] = []
    fix = ""
    if not labels:
        return details, fix
    pods = look.pods.get(subject.namespace)
    if isinstance(pods, Complete):
        having = [one.name for one in pods.data if labels.items() <= one.labels.items()]
        if having:
            has = one_or_more(len(having), "has", "have")
            details.append(f"{counted(len(having), 'pod')} {has} {written(labels)}, but no Service does")
            fix = f"kubectl label service NAME -n {subject.namespace} {written(labels).replace(',', ' ')}"
    services = _services(subject)
    for near in near_labels(labels, [(one.name, one.labels) for one in services]):
        names = ", ".join(near.names[:3])
        has = one_or_more(len(near.names), "has", "have")
        details.append(f"{one_or_more(len(near.names), 'Service', 'Services')} {names} {has} {near.label}")
        key, _, value = near.label.partition("=")
        if near.same_value or not fix:
            shown = f"selector: {{matchLabels: {{{key}: {value}}}}}"
            fix = f"write {shown} in its spec: {subject.edit}"
            if near.same_value:
                break
    if fix.startswith("kubectl label service NAME") and isinstance(pods, Complete):
        behind = _services_of_pods(labels, subject, look)
        fix = fix.replace("NAME", behind) if behind else fix
    return details, fix


def _services_of_pods(labels: Mapping[str, str], subject: Subject, look: Look) -> str:
    """The Service that selects the pods with these labels, if it is one."""
    selectors, pods = look.selectors.get(subject.namespace), look.pods.get(subject.namespace)
    if not isinstance(selectors, Complete) or not isinstance(pods, Complete):
        return ""
    some = [one.labels for one in pods.data if labels.items() <= one.labels.items()]
    names = [one.name for one in selectors.data if any(matches(one.selector, its) for its in some)]
    return names[0] if len(names) == 1 else ""


def _services(subject: Subject) -> tuple[Service, ...]:
    listed = subject.report.view.services.of(subject.namespace) if subject.report.view else None
    return listed.data if isinstance(listed, Complete) else ()


def _of_part(part: Part, subject: Subject, claim: Serving) -> Link:
    names = ", ".join(claim.services[:3]) + (f" and {len(claim.services) - 3} more" if len(claim.services) > 3 else "")
    kind = one_or_more(len(claim.services), "Service", "Services")
    match part:
        case Part.SERVICES:
            return holds(part, f"it selects {kind} {names}")
        case Part.PORT:
            return holds(part, _port(subject, claim))
        case _:
            return _slices(subject, claim)


def _port(subject: Subject, claim: Serving) -> str:
    """`port http (8080), as app ORDERS, VIP orders`."""
    asked = subject.claim.syncer.spec.get("port") or subject.claim.syncer.spec.get("securePort")
    numbers = ", ".join(sorted({key.id.rsplit(":", 1)[1] for key in claim.verdicts}))
    port = f"port {asked or numbers}" if asked or numbers else "its only port, or the one named http"
    port += f" ({numbers})" if asked and numbers and str(asked) != numbers else ""
    apps = f", as app {', '.join(claim.apps[:3])}" if claim.apps else ""
    vip = f", VIP {claim.vip_address}" if claim.vip_address else ""
    return f"{port}{apps}{vip}"


def _slices(subject: Subject, claim: Serving) -> Link:
    if claim.incomplete:
        first = claim.incomplete[0]
        mark = Mark.UNKNOWN if first.unknown else Mark.BROKEN
        return Link(part=Part.ENDPOINTS, mark=mark, reason=first.reason, text=first.message, cause=first.message)
    there = list(endpoints_of(subject.report, subject.namespace, subject.services))
    number = len({one.address for one in there if not one.terminating})
    return holds(Part.ENDPOINTS, f"its EndpointSlices list {counted(number, 'endpoint')}")


def unknown_syncers(look: Look, namespace: str) -> Unknown | None:
    """Why the syncers of a namespace, or of all that were asked for, could not be listed; None where they were."""
    view = look.report.view
    if view is None or isinstance(view.identity, Unknown):
        return view.identity if view and isinstance(view.identity, Unknown) else None
    sources = [view.syncers.of(namespace)] if namespace else [*view.syncers.by_namespace.values()]
    if not namespace and not look.report.scope.namespaces:
        sources.append(view.syncers.elsewhere)
    return next((one for one in sources if isinstance(one, Unknown)), None)
