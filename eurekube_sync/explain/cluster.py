"""The links about the cluster: the syncer, its spec, who serves it, Services, port, slices and
pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import (
    Deleting,
    Leaving,
    NotServed,
    OverLimit,
    Serving,
    Taken,
    Wanted,
)
from eurekube_sync.desired.endpoints import label_of, place_of
from eurekube_sync.desired.spec import class_of, parse
from eurekube_sync.explain.links import Link, Mark, Part, breaks, unseen
from eurekube_sync.explain.subject import Subject, endpoints_of, read, services_in, slices_of
from eurekube_sync.explain.what import matches, near_labels, written
from eurekube_sync.model.kubernetes import EndpointPort, PodDetail, SyncerObject
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.wording import counted, one_or_more, some_of, span

_PATIENCE = (
    120.0  # seconds within which a pass should see a new syncer; a CronJob runs a pass each minute
)
_MOST = 5  # lines about single pods
_REFUSED: Mapping[str, tuple[Part, str]] = {
    Reason.INVALID_SPEC: (Part.SPEC, "its spec is invalid"),
    Reason.INVALID_NAME: (Part.SPEC, ""),
    Reason.INVALID_METADATA: (Part.SPEC, ""),
    Reason.NOT_GRANTED: (Part.SPEC, "its Namespace does not grant what it registers"),
    Reason.NAMESPACE_NOT_ALLOWED: (Part.SERVICES, "it may not select Services of that namespace"),
    Reason.NO_MATCHING_SERVICE: (Part.SERVICES, "no Service matches its selector"),
    Reason.NO_SUCH_PORT: (Part.PORT, "its Services have no such port"),
    Reason.AMBIGUOUS_PORT: (Part.PORT, ""),
    Reason.AMBIGUOUS_SERVICE: (Part.PORT, ""),
}
"""The broken link of a syncer that is not served, by the reason, and the cause in few words. Other
reasons break the link of the endpoints."""


def syncer_links(subject: Subject, look: Look, *, registered: bool) -> Iterator[Link]:
    """Make the links up to the endpoints. `registered`: all of it is UP in Eureka, so some
    installation serves it."""
    claim, syncer = subject.claim, subject.claim.syncer
    named = f"class {class_of(syncer)}" if class_of(syncer) else "no class"
    yield Link(
        Part.SYNCER,
        Mark.OK,
        f"EurekaSyncer {syncer.ref}: mode {syncer.spec.get('mode') or 'pod'}, {named}",
    )
    refused = _refused(subject, look)
    if refused is None or refused.part is not Part.SPEC:
        yield Link(Part.SPEC, Mark.OK, "its spec is valid")
        yield _served(syncer, look, registered=registered)
    if refused is not None:
        yield refused
    elif isinstance(claim, Serving):
        kind = one_or_more(len(claim.services), "Service", "Services")
        yield Link(Part.SERVICES, Mark.OK, f"it selects {kind} {some_of(claim.services)}")
        asked = syncer.spec.get("port") or syncer.spec.get("securePort")
        numbers = ", ".join(sorted({key.id.rsplit(":", 1)[1] for key in claim.verdicts}))
        port = (
            f"port {asked or numbers}"
            if asked or numbers
            else "its default port (spec.port is not set)"
        )
        port += f" ({numbers})" if asked and numbers and str(asked) != numbers else ""
        port += f", as app {', '.join(claim.apps[:3])}" if claim.apps else ""
        yield Link(
            Part.PORT, Mark.OK, f"{port}{f', VIP {claim.vip_address}' if claim.vip_address else ''}"
        )
        yield from (Link(Part.PORT, Mark.NOTE, warning) for warning in claim.port_warnings)
        if claim.incomplete:
            first = claim.incomplete[0]
            yield Link(
                Part.ENDPOINTS, Mark.BROKEN, first.message, first.reason, cause=first.message
            )
        else:
            number = _listed(subject)
            if number:
                yield Link(
                    Part.ENDPOINTS,
                    Mark.OK,
                    f"its EndpointSlices list {counted(number, 'endpoint')}",
                )


def _listed(subject: Subject) -> int:
    """Count the endpoints in slices, without those that terminate. An address without a pod counts
    for each of its ports. So does a pod if they have one name, in slices of one Service."""
    addresses: set[tuple[str, Sequence[EndpointPort]]] = set()
    pods: dict[str, dict[tuple[str, ...], set[Sequence[EndpointPort]]]] = {}
    for piece in slices_of(subject.report, subject.namespace, subject.services):
        named = (piece.service, *(port.name for port in piece.ports))
        for endpoint in piece.endpoints:
            place = place_of(endpoint)
            if endpoint.terminating:
                continue
            if endpoint.pod is None:
                addresses.add((place, piece.ports))
            else:
                pods.setdefault(place, {}).setdefault(named, set()).add(piece.ports)
    number = len(addresses)
    for by_name in pods.values():
        number += max(len(ports) for ports in by_name.values())
    return number


def _refused(subject: Subject, look: Look) -> Link | None:
    """Make the link of a syncer that is being deleted or not served; None for any other."""
    claim = subject.claim
    if isinstance(claim, Deleting):
        text, cause = (
            "the syncer is being deleted, so its instances are removed",
            "its syncer is being deleted",
        )
        return breaks(
            Part.SPEC, Reason.DELETING, text, cause=cause, fix=subject.kubectl("describe")
        )
    if isinstance(claim, NotServed):
        if claim.unknown:
            text = f"its Services, slices or pods could not be looked at: {claim.message}"
            return unseen(Part.SERVICES, text, reason=claim.reason)
        if claim.reason == Reason.NO_MATCHING_SERVICE:
            return _no_service(subject, look)
        reason, text = claim.reason, claim.message
    elif (message := refused_by_its_installation(claim.syncer, look)) is not None:
        reason, text = Reason.NOT_GRANTED, f"its condition Ready says: {message}"
    else:
        return None
    part, cause = _REFUSED.get(reason, (Part.ENDPOINTS, ""))
    namespace = subject.ref.namespace
    fix = subject.kubectl("edit")
    if reason == Reason.NOT_GRANTED:
        fix = f"kubectl describe namespace {namespace}"
    if isinstance(claim, NotServed) and claim.edit:
        cause = text
        fix = f"kubectl edit {claim.edit} -n {subject.namespace}"
    return breaks(part, reason, text, cause=cause, fix=fix)


def refused_by_its_installation(syncer: SyncerObject, look: Look) -> str | None:
    """Return the message of a missing grant, if the syncer's status has it for the present spec. A
    look that checks grants itself does not need the status."""
    status = syncer.status if not look.asked.granted_only else None
    ready = (
        status.condition("Ready")
        if status and status.observed_generation >= syncer.generation
        else None
    )
    return ready.message if ready and ready.reason == Reason.NOT_GRANTED else None


def _no_service(subject: Subject, look: Look) -> Link:
    selector, namespace = parse(subject.claim.syncer).selector, subject.namespace
    labels = dict(selector.labels)
    details, fix = [], ""
    having = [one.labels for one in read(look.pods.get(namespace)) if matches(labels, one.labels)]
    if having:
        has = one_or_more(len(having), "has", "have")
        details.append(
            f"{counted(len(having), 'pod')} {has} {written(labels)}, but no Service does"
        )
        services = read(look.selectors.get(namespace))
        behind = [one.name for one in services if any(matches(one.selector, its) for its in having)]
        name = behind[0] if len(behind) == 1 else "NAME"
        fix = f"kubectl label service {name} -n {namespace} {written(labels).replace(',', ' ')}"
    near = near_labels(
        labels, [(one.name, one.labels) for one in services_in(subject.report, namespace)]
    )
    for label, names, _ in near:
        services_have = one_or_more(len(names), "Service {} has", "Services {} have").format(
            ", ".join(names[:3])
        )
        details.append(f"{services_have} {label}")
    if near and (near[0][2] or not fix):
        key, _, value = near[0][0].partition("=")
        fix = (
            f"write selector: {{matchLabels: {{{key}: {value}}}}} in its spec: "
            f"{subject.kubectl('edit')}"
        )
    part, cause = _REFUSED[Reason.NO_MATCHING_SERVICE]
    text = f"no Service in namespace {namespace} matches {selector}"
    return breaks(
        part,
        Reason.NO_MATCHING_SERVICE,
        text,
        *details,
        cause=cause,
        fix=fix or subject.kubectl("edit"),
    )


def _served(syncer: SyncerObject, look: Look, *, registered: bool) -> Link:
    """Say whether an installation serves the syncer, by the given scope and by the status that
    passes wrote."""
    inside, name = look.asked.takes(syncer), class_of(syncer)
    seen = registered or (syncer.status is not None and syncer.status.observed_generation > 0)
    if inside and (seen or look.at - syncer.created < _PATIENCE):
        scope = f"the scope of owner {look.owner}" if look.owner else "the scope given here"
        return Link(Part.SERVED, Mark.OK, f"it is in {scope}")
    if registered or is_served_elsewhere(syncer, look):
        scope = f"class {name}" if name else "another scope"
        return Link(Part.SERVED, Mark.OK, f"another installation serves it ({scope})")
    age = span(look.at - syncer.created)
    served = f"class {name}" if name else "it"
    written = "its status" if syncer.status is None else "a status for its present spec"
    text = (
        f"no installation seems to serve {served}: the syncer is {age} old, and no pass has "
        f"written {written}"
    )
    if not inside:
        text += f". The scope of this command: {str(look.asked) or 'all syncers without a class'}"
    fix = "ask the operator whether eurekube-sync runs, and for which namespaces and labels"
    if name:
        fix = (
            "remove spec.syncerClass, or ask the operator for an installation with "
            f"--syncer-class {name}"
        )
    return breaks(
        Part.SERVED,
        Reason.NO_INSTALLATION,
        text,
        cause=f"no installation seems to serve {served}",
        fix=fix,
    )


def is_served_elsewhere(syncer: SyncerObject, look: Look) -> bool:
    """Whether its status and Eureka show that another installation serves the syncer. A status
    outlives the installation that wrote it: the instances that it calls UP have then expired."""
    status = syncer.status
    if status is None or status.observed_generation < syncer.generation:
        return False
    return status.up == 0 or isinstance(look.listed, Unknown) or bool(look.marked(syncer.ref))


def pod_links(subject: Subject, look: Look) -> Iterator[Link]:
    """Show which pods are ready, and why others are not; or why there are none."""
    claim = subject.claim
    if not isinstance(claim, Serving):
        return
    unready = sorted(why for key, why in claim.unready.items() if key in subject.verdicts)
    terminating = sum(
        isinstance(one, Leaving) and one.terminating for one in subject.verdicts.values()
    )
    left = len(subject.verdicts) - terminating
    if unready:
        yield _unready(subject, look, unready, left)
    elif left:
        ready = (
            sum(isinstance(one, Wanted | OverLimit | Taken) for one in subject.verdicts.values())
            or left
        )
        yield Link(
            Part.PODS, Mark.OK, f"{counted(ready, 'pod')} {one_or_more(ready, 'is', 'are')} ready"
        )
    elif terminating:
        end = one_or_more(terminating, "terminates", "terminate")
        text = f"{counted(terminating, 'endpoint')} {end}, and there is no other"
        cause = one_or_more(terminating, "its pod terminates", "its pods terminate")
        yield breaks(
            Part.PODS,
            Reason.TERMINATING,
            text,
            cause=cause,
            fix=f"kubectl get pods -n {subject.namespace}",
        )
    elif not claim.incomplete:
        yield _none(subject, claim, look)


def _unready(subject: Subject, look: Look, whys: Sequence[str], left: int) -> Link:
    pods = look.pods.get(subject.namespace)
    there = {one.name: one for one in read(pods)}
    names = []
    details = []
    for why in whys:
        kind, name, *_ = why.split()
        reason = ""
        if kind == "pod":  # and not an endpoint without a pod, or a Service
            names.append(name)
            if isinstance(pods, Unknown):
                reason = f"the reason could not be read: {pods.message}"
            elif name in there:
                reason = _why_not_ready(there[name], look.at)
        details.append(f"{why}: {reason}" if reason else why)
    text = f"{len(whys)} of {counted(left, 'endpoint')} are not ready"
    if len(whys) == 1:
        text = details.pop()
    details[_MOST:] = [f"and {len(details) - _MOST} more"] if len(details) > _MOST else []
    if not subject.listed:
        details.append(
            "a pod is registered only after it was ready once; if it stops being ready, "
            "spec.notReady says what happens"
        )
    some = f"{len(whys)} of its {left} pods {one_or_more(len(whys), 'is', 'are')} not ready"
    fix = f"kubectl describe pod {names[0]} -n {subject.namespace}" if names else ""
    return breaks(
        Part.PODS,
        Reason.NOT_READY,
        text,
        *details,
        cause="its pod is not ready" if left == 1 else some,
        fix=fix,
    )


def _why_not_ready(pod: PodDetail, now: float) -> str:
    """Return what a pod's conditions say, and for how long; empty for nothing. `now` in Unix
    seconds."""
    ready, scheduled = pod.condition("Ready"), pod.condition("PodScheduled")
    if scheduled is not None and not scheduled.true:
        ready, said = scheduled, f"not scheduled: {scheduled.message or scheduled.reason}"
    else:
        gates = [one.type for one in pod.conditions if not one.true and "/" in one.type]
        said = "; ".join(pod.waiting) or (ready.message or ready.reason if ready else "")
        said = said or (f"readiness gate {', '.join(gates)} is not open" if gates else "")
        said = ", ".join(filter(None, [pod.phase if pod.phase != "Running" else "", said]))
    if ready is None or ready.since is None:
        return said
    since = span(now - ready.since)
    return f"{said} ({since})" if said else f"for {since}"


def _none(subject: Subject, claim: Serving, look: Look) -> Link:
    """Explain why there are no endpoints: the Services do not have the port, select no pod, or only
    pods without an address."""
    number, namespace = len(subject.services), subject.namespace
    names = f"{one_or_more(number, 'Service', 'Services')} {', '.join(subject.services[:3])}"
    if endpoints_of(subject.report, namespace, subject.services, pod=subject.pod):
        return _without_port(subject, claim, names)
    found = list(_nothing_selected(subject, look))
    text, fix = (
        f"{names} {one_or_more(number, 'has', 'have')} no endpoints",
        found[0][1] if found else "",
    )
    if subject.pod:
        text = f"pod {subject.pod} is in no EndpointSlice of {names}"
        fix = f"kubectl describe pod {subject.pod} -n {namespace}"
    return breaks(Part.PODS, Reason.NO_ENDPOINTS, text, *(detail for detail, _ in found), fix=fix)


def _without_port(subject: Subject, claim: Serving, names: str) -> Link:
    """Explain why there are endpoints, and none on the port that the syncer registers."""
    port = claim.syncer.spec.get("port") or claim.syncer.spec.get("securePort")
    pieces = slices_of(subject.report, subject.namespace, subject.services, pod=subject.pod)
    piece = min(pieces, key=lambda piece: piece.name)
    label = label_of(piece.endpoints[0])
    of_service = f"kubectl edit service {piece.service} -n {subject.namespace}"
    if piece.address_type == "FQDN":
        text = (
            f"EndpointSlice {piece.name} is of addressType FQDN, and mode pod registers IP "
            "addresses"
        )
        return breaks(
            Part.PORT,
            Reason.NO_SUCH_PORT,
            text,
            fix=f"kubectl edit endpointslice {piece.name} -n {subject.namespace}",
        )
    if not piece.ports:
        text = (
            f"{label} has no container port with a name that Service {piece.service} has as "
            "targetPort"
        )
        return breaks(Part.PORT, Reason.NO_SUCH_PORT, text, fix=of_service)
    kept = claim.unplaced.get(place_of(piece.endpoints[0]))
    if kept is not None:
        text = f"{kept}: nothing new of it is registered, and its instances are kept"
        return breaks(Part.PORT, Reason.NO_SUCH_PORT, text, cause=kept, fix=of_service)
    have = one_or_more(len(subject.services), "does", "do")
    numbers = {key.id.rsplit(":", 1)[1] for key in claim.verdicts}
    if any(str(listed.port) in numbers for listed in piece.ports):
        text = f"{names} {have} not name the app that its syncer registers"
        return breaks(Part.PORT, Reason.AMBIGUOUS_SERVICE, text, fix=subject.kubectl("edit"))
    text = f"{names} {have} not have the port that its syncer registers"
    return breaks(
        Part.PORT,
        Reason.NO_SUCH_PORT,
        f"{text}, {port}" if port else text,
        fix=subject.kubectl("edit"),
    )


def _nothing_selected(subject: Subject, look: Look) -> Iterator[tuple[str, str]]:
    """Yield what the selected pods wait for, or the most similar labels, each with a fix."""
    pods, selectors = look.pods.get(subject.namespace), look.selectors.get(subject.namespace)
    for source in (selectors, pods):
        if isinstance(source, Unknown):
            yield f"the reason could not be read: {source.message}", ""
            return
    for one in (
        each for each in read(selectors) if each.name in subject.services and each.selector
    ):
        selected = [
            pod
            for pod in read(pods)
            if matches(one.selector, pod.labels) and subject.pod in ("", pod.name)
        ]
        for pod in selected[:_MOST]:
            waits = _why_not_ready(pod, look.at) or "no EndpointSlice lists it"
            yield (
                f"pod {pod.name}: {waits}",
                f"kubectl describe pod {pod.name} -n {subject.namespace}",
            )
        if not selected:
            near = near_labels(one.selector, [(pod.name, pod.labels) for pod in read(pods)])
            nearest = ", ".join(
                f"{label} ({counted(len(names), 'pod')})" for label, names, _ in near
            )
            text = f"Service {one.name} selects {written(one.selector)}: no pod has it"
            fix = f"kubectl edit service {one.name} -n {subject.namespace}"
            yield f"{text}; similar: {nearest}" if near else text, fix
