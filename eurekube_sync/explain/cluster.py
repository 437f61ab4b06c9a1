"""The links about the cluster: the syncer, its spec, who serves it, Services, port, slices and
pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import join

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
from eurekube_sync.desired.similar import Labels, NearLabel, matches, near_labels, written
from eurekube_sync.desired.spec import class_of, parse
from eurekube_sync.explain.links import CALLERS_SECONDS, Link, Mark, Part, breaks, not_read
from eurekube_sync.explain.passes import see_to_passes
from eurekube_sync.explain.registry import is_first, looks_silent
from eurekube_sync.explain.subject import (
    Subject,
    address_of,
    named_app,
    read,
    services_in,
    slices_of,
)
from eurekube_sync.explain.what import Kind
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import (
    EndpointPort,
    EndpointSlice,
    PodDetail,
    ServiceSelector,
    SyncerObject,
)
from eurekube_sync.model.ownership import CLASS
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.text import and_more, counted, one_or_more, some_of, span

# Seconds within which a pass should see a new syncer; a CronJob runs a pass each minute
_PATIENCE = 120.0
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


def syncer_links(subject: Subject, look: Look, *, registered: bool, held: bool) -> Iterator[Link]:
    """Make the links up to the endpoints. `registered`: all of it is UP in Eureka, so some
    installation serves it. `held`: the brake holds removals of it."""
    claim, syncer = subject.claim, subject.claim.syncer
    name = class_of(syncer)
    mode, of_class = syncer.spec.get("mode") or "pod", f"class {name}" if name else "no class"
    yield Link(Part.SYNCER, Mark.OK, f"EurekaSyncer {syncer.ref}: mode {mode}, {of_class}")
    refused = _refused(subject, look, held=held)
    if refused is None or refused.part is not Part.SPEC:
        yield Link(Part.SPEC, Mark.OK, "its spec is valid")
        yield _served(syncer, look, registered=registered)
    if refused is not None:
        yield refused
    elif isinstance(claim, Serving):
        kind = one_or_more(len(claim.services), "Service", "Services")
        yield Link(Part.SERVICES, Mark.OK, f"it selects {kind} {some_of(claim.services)}")
        yield Link(Part.PORT, Mark.OK, _registers(claim))
        yield from _under_another_name(subject, claim)
        for warning in claim.port_warnings:
            yield Link(Part.PORT, Mark.NOTE, warning)
        yield from _endpoints(subject, claim)


def _under_another_name(subject: Subject, claim: Serving) -> Iterator[Link]:
    """Note that callers do not find an app by its name, which is what the question has."""
    name, vip = subject.what.name, claim.vip_address
    if subject.what.kind is not Kind.APP or not vip or name not in claim.apps:
        return
    if name not in [address.strip().upper() for address in vip.split(",")]:
        text = f"callers find app {name} under the VIP address {vip}, and not under {name.lower()}"
        yield Link(Part.PORT, Mark.NOTE, text)


def _asked_port(claim: Serving) -> object:
    """Return the port that the spec names; None for the default port."""
    spec = claim.syncer.spec
    return spec.get("port") or spec.get("securePort")


def _numbers(claim: Serving) -> list[str]:
    """Return the ports that the syncer registers."""
    return sorted({key.id.rsplit(":", 1)[1] for key in claim.verdicts})


def _registers(claim: Serving) -> str:
    """Return the port, the apps and the VIP address that a syncer registers."""
    asked, numbers = _asked_port(claim), ", ".join(_numbers(claim))
    text = "its default port (spec.port is not set)"
    if asked or numbers:
        text = f"port {asked or numbers}"
    if asked and numbers and str(asked) != numbers:
        text += f" ({numbers})"
    if claim.apps:
        text += f", as app {', '.join(claim.apps[:3])}"
    if claim.vip_address:
        text += f", VIP {claim.vip_address}"
    return text


def _endpoints(subject: Subject, claim: Serving) -> Iterator[Link]:
    if claim.incomplete:
        reason, text = claim.incomplete[0].reason, claim.incomplete[0].message
        yield breaks(Part.ENDPOINTS, reason, text)
        return
    number = _listed(subject)
    if number:
        text = f"its EndpointSlices list {counted(number, 'endpoint')}"
        yield Link(Part.ENDPOINTS, Mark.OK, text)


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


# --- Syncers that are not served ------------------------------------------------------------------


def _refused(subject: Subject, look: Look, *, held: bool) -> Link | None:
    """Make the link of a syncer that is being deleted or not served; None for any other."""
    claim = subject.claim
    if isinstance(claim, Deleting):
        return _deleting(subject, look, held=held)
    if isinstance(claim, NotServed):
        if claim.source is not None:
            what = "its Services, slices or pods"
            return not_read(Part.SERVICES, what, claim.source, reason=claim.reason)
        if claim.reason is Reason.NO_MATCHING_SERVICE:
            return _no_service(subject, look)
        part, cause = _REFUSED.get(claim.reason, (Part.ENDPOINTS, ""))
        fix = subject.kubectl("edit")
        if claim.reason is Reason.NOT_GRANTED:
            fix = f"kubectl describe namespace {subject.ref.namespace}"
        if claim.reason is Reason.API_MISSING:
            fix = f"install the API, or {fix}"
        details: list[str] = []
        if claim.edit:
            cause, fix = "", f"kubectl edit {claim.edit} -n {subject.namespace}"
            details += _declared(subject, look)
        return breaks(part, claim.reason, claim.message, *details, cause=cause, fix=fix)
    message = refused_by_its_installation(claim.syncer, look)
    if message is None:
        return None
    part, cause = _REFUSED[Reason.NOT_GRANTED]
    text = f"its condition Ready says: {message}"
    fix = f"kubectl describe namespace {subject.ref.namespace}"
    return breaks(part, Reason.NOT_GRANTED, text, cause=cause, fix=fix)


def _declared(subject: Subject, look: Look) -> Iterator[str]:
    """Say which ports the pods of its Services declare, of the first one that does."""
    declaring = []
    for service in read(look.selectors.get(subject.namespace)):
        if service.name not in subject.services or not service.selector:
            continue
        for pod in read(look.pods.get(subject.namespace)):
            if pod.ports and matches(service.selector, pod.labels):
                declaring.append(pod)
    if declaring:
        first = min(declaring, key=lambda pod: pod.name)
        ports = ", ".join(str(number) for number in first.ports)
        yield f"containers of pod {first.name} declare port {ports}"


def _deleting(subject: Subject, look: Look, *, held: bool) -> Link:
    """Say since when the syncer waits for its instances to be removed, and whether a pass does it.

    | the brake holds removals | its status shows the deletion | deleted     | link                    |
    |--------------------------|-------------------------------|-------------|-------------------------|
    | yes                      | any                           | any         | a note                  |
    | no                       | yes                           | any         | broken: Deleting        |
    | no                       | no                            | a moment ago| broken: Deleting        |
    | no                       | no                            | minutes ago | broken: NoInstallation  |
    """
    syncer = subject.claim.syncer
    deleted = syncer.deleted or look.at
    age = look.at - deleted
    text = f"the syncer was deleted {span(age)} ago, and stays until its instances are gone"
    if held:
        return Link(Part.SPEC, Mark.NOTE, text)
    ready = syncer.status.condition("Ready") if syncer.status else None
    if ready is not None and ready.reason == Reason.DELETING:
        text = f"{text}: the next pass removes its instances"
        described = f"{subject.kubectl('describe')} says why"
        fix = f"wait for the next pass; if it stays, {described}, or {see_to_passes(look)}"
    else:
        text = f"{text}: no pass has seen the deletion yet"
        # The first pass cancels the instances. The syncer goes when Eureka's lists lack them, too.
        passes = join(("eurekube-sync", "run", *subject.report.settings.options, "--passes", "3"))
        fix = f"wait for the next pass; if none comes, make some: {passes}"
        if age > _PATIENCE:
            cause = "no installation seems to serve it"
            fix = (
                "see that eurekube-sync runs, and for which namespaces, or make passes for it: "
                f"{passes}"
            )
            text = f"{text}; {cause}"
            return breaks(Part.SERVED, Reason.NO_INSTALLATION, text, cause=cause, fix=fix)
    link = breaks(Part.SPEC, Reason.DELETING, text, cause="its syncer is being deleted", fix=fix)
    return replace(link, since=deleted)


def refused_by_its_installation(syncer: SyncerObject, look: Look) -> str | None:
    """Return the message of a missing grant, if the syncer's status has it for the present spec. A
    look that checks grants itself does not need the status."""
    status = syncer.status
    if look.asked.granted_only or status is None or status.observed_generation < syncer.generation:
        return None
    ready = status.condition("Ready")
    if ready and ready.reason == Reason.NOT_GRANTED:
        return ready.message
    return None


def _no_service(subject: Subject, look: Look) -> Link:
    """Explain which Services or pods nearly have the labels that the syncer selects."""
    selector, namespace = parse(subject.claim.syncer).selector, subject.namespace
    labels = dict(selector.labels)
    wanted, fix = written(labels), ""
    details = []
    having = [pod.labels for pod in read(look.pods.get(namespace)) if matches(labels, pod.labels)]
    if having:
        has = one_or_more(len(having), "has", "have")
        details.append(f"{counted(len(having), 'pod')} {has} {wanted}, but no Service does")
        behind = _services_of_pods(having, look, namespace)
        name = behind[0] if len(behind) == 1 else "NAME"
        fix = f"kubectl label service {name} -n {namespace} {written(labels, between=' ')}"
    services = services_in(subject.report, namespace)
    near = near_labels(labels, [(service.name, service.labels) for service in services])
    for label, names, _ in near:
        has = one_or_more(len(names), "Service {} has", "Services {} have")
        details.append(f"{has.format(', '.join(names[:3]))} {label}")
    if near and (near[0].other_key or not fix):
        fix = f"{_with_label(near[0], subject.claim.syncer)}: {subject.kubectl('edit')}"
    reason = Reason.NO_MATCHING_SERVICE
    part, cause = _REFUSED[reason]
    text = f"no Service in namespace {namespace} matches {selector}"
    fix = fix or subject.kubectl("edit")
    return breaks(part, reason, text, *details, cause=cause, fix=fix)


def _with_label(near: NearLabel, syncer: SyncerObject) -> str:
    """Return what to write so that the syncer selects this label. The shorthand `app` also names
    the app; without it the Service does."""
    key, _, value = near.label.partition("=")
    selector, app = f"{{matchLabels: {{{key}: {value}}}}}", near.names[0]
    if key == "app":
        selector, app = f"{{app: {value}}}", value
    text = f"write selector: {selector} in its spec"
    named = named_app(syncer)
    if syncer.spec.get("appName") or named in ("", app.upper()):
        return text
    stays = f"if the app should stay {named} and not become {app.upper()}"
    return f"{text}, and appName: {named.lower()} {stays}"


def _services_of_pods(pods: Sequence[Labels], look: Look, namespace: str) -> list[str]:
    """Return the names of the Services that select one of these pods, by the pods' labels."""
    names = []
    for service in read(look.selectors.get(namespace)):
        if any(matches(service.selector, labels) for labels in pods):
            names.append(service.name)
    return names


def _served(syncer: SyncerObject, look: Look, *, registered: bool) -> Link:
    """Say whether an installation serves the syncer, by the given scope and by the status that
    passes wrote."""
    inside, name = look.asked.takes(syncer), class_of(syncer)
    status, age = syncer.status, look.at - syncer.created
    seen = registered or (status is not None and status.observed_generation > 0)
    if inside and (seen or age < _PATIENCE):
        scope = f"the scope of owner {look.owner}" if look.owner else "the scope given here"
        return Link(Part.SERVED, Mark.OK, f"it is in {scope}")
    if is_served_elsewhere(syncer, look):
        scope = f"class {name}" if name else "another scope"
        return Link(Part.SERVED, Mark.OK, f"another installation serves it ({scope})")
    served = "it"
    fix = "ask the operator whether eurekube-sync runs, and for which namespaces and labels"
    if name:
        served = f"class {name}"
        fix = (
            "remove spec.syncerClass, or ask the operator for an installation with "
            f"--syncer-class {name}"
        )
    elif inside and is_first(look):
        fix = "ask the operator whether eurekube-sync runs, or make a pass: eurekube-sync run"
    cause = f"no installation seems to serve {served}"
    unwritten = "its status" if status is None else "a status for its present spec"
    text = f"{cause}: the syncer is {span(age)} old, and no pass has written {unwritten}"
    if not inside:
        text += f". The scope of this command: {str(look.asked) or 'all syncers without a class'}"
    details = _of_another_class(syncer, look)
    return breaks(Part.SERVED, Reason.NO_INSTALLATION, text, *details, cause=cause, fix=fix)


def is_served_elsewhere(syncer: SyncerObject, look: Look) -> bool:
    """Whether its status and Eureka show that another installation serves the syncer.

    | status of the present spec | its instances in Eureka       | served |
    |----------------------------|-------------------------------|--------|
    | yes, and says that none is UP | any                        | yes    |
    | yes                        | not listed                    | yes    |
    | any                        | one of its class, and renewed | yes    |
    | yes                        | one of no class, and renewed  | yes    |
    | any                        | any other                     | no     |

    A status outlives the installation that wrote it, and so do the instances, which the
    installation of their class renews."""
    status = syncer.status
    current = status is not None and status.observed_generation >= syncer.generation
    if isinstance(look.listed, Unknown):
        return current
    if current and status is not None and status.up == 0:
        return True
    for instance in look.marked(syncer.ref):
        if not _is_silent(instance, look):
            named = instance.metadata.get(CLASS)
            if named == class_of(syncer) and (current or named is not None):
                return True
    return False


def _is_silent(instance: ObservedInstance, look: Look) -> bool:
    """Whether an uncached read shows that nobody renews the instance any more."""
    answers = look.uncached(instance.key)
    if not answers or isinstance(answers[0], Unknown):
        return False
    return answers[0] is None or looks_silent(answers[0], look)


def _of_another_class(syncer: SyncerObject, look: Look) -> tuple[str, ...]:
    """Say which installation keeps the instances of a syncer whose class changed."""
    for instance in look.marked(syncer.ref):
        named = instance.metadata.get(CLASS)
        if named != class_of(syncer):
            whose = f"class {named}" if named else "syncers without a class"
            return (
                f"its instances in Eureka are from before: an installation of {whose} registered "
                "them, and only renews them now",
            )
    return ()


# --- Pods -----------------------------------------------------------------------------------------


def pod_links(subject: Subject, look: Look) -> Iterator[Link]:
    """Show which pods are ready, and why others are not; or why there are none."""
    claim, verdicts = subject.claim, subject.verdicts
    if not isinstance(claim, Serving):
        return
    unready = [verdict for key, verdict in claim.unready.items() if key in verdicts]
    terminating = subject.terminating
    left = len(verdicts) - terminating
    if unready:
        unready.sort(key=lambda verdict: verdict.why)
        yield _unready(subject, look, unready, left)
    elif left:
        known = [subject.of(Wanted), subject.of(OverLimit), subject.of(Taken)]
        ready = sum(len(verdicts) for verdicts in known) or left
        text = f"{counted(ready, 'pod')} {one_or_more(ready, 'is', 'are')} ready"
        yield Link(Part.PODS, Mark.OK, text)
        yield from _undeclared(subject, look)
    elif terminating:
        yield _terminating(subject, claim, terminating, look)
    elif subject.keys and (removals := subject.removals):
        key, why = next(iter(removals.items()))
        text = f"a pass removes {address_of(key)}{and_more(len(removals))}: {why}"
        fix = subject.kubectl("describe")
        yield breaks(Part.PODS, Reason.NO_ENDPOINTS, text, cause=why, fix=fix)
    elif not claim.incomplete:
        yield _none(subject, claim, look)


def _unready(subject: Subject, look: Look, unready: Sequence[Wanted | Leaving], left: int) -> Link:
    pods = look.pods.get(subject.namespace)
    there = {pod.name: pod for pod in read(pods)}
    number, fix = len(unready), ""
    since: list[float] = []
    details = []
    for verdict in unready:
        text = verdict.why
        if verdict.pod is not None:
            name = verdict.pod.name
            fix = fix or _describe(name, subject.namespace)
            reason = ""
            if isinstance(pods, Unknown):
                reason = f"the reason could not be read: {pods.message}"
            elif name in there:
                reason = _why_not_ready(there[name], look.at)
                ready = there[name].condition("Ready")
                if ready is not None and ready.since is not None:
                    since.append(ready.since)
            text = f"{text}: {reason}" if reason else text
        details.append(text)
    cause = f"{number} of its {left} pods {one_or_more(number, 'is', 'are')} not ready"
    if left == 1:
        cause = "its pod is not ready"
    text = f"{number} of {counted(left, 'endpoint')} are not ready"
    if number == 1:
        text = details.pop()
    if len(details) > _MOST:
        details[_MOST:] = [f"and {len(details) - _MOST} more"]
    if not subject.listed:
        details.append(
            "a pod is registered only after it was ready once; if it stops being ready, "
            "spec.notReady says what happens"
        )
    link = breaks(Part.PODS, Reason.NOT_READY, text, *details, cause=cause, fix=fix)
    return replace(link, since=min(since, default=None))


def _terminating(subject: Subject, claim: Serving, terminating: int, look: Look) -> Link:
    """Say what happens next to pods that terminate. The question may be about one of several."""
    end = one_or_more(terminating, "terminates", "terminate")
    its = one_or_more(terminating, "its instance", "their instances")
    text = (
        f"{counted(terminating, 'endpoint')} {end}: the next pass cancels {its}, and callers "
        f"follow within {CALLERS_SECONDS} s"
    )
    cause = one_or_more(terminating, "its pod terminates", "its pods terminate")
    others = len(claim.verdicts) - len(claim.of(Leaving))
    if others:
        stay = one_or_more(others, "other endpoint stays", "other endpoints stay")
        text = f"{text}; {others} {stay}"
        fix = f"wait for the next pass; if nothing changes, {see_to_passes(look)}"
    else:
        text = f"{text}; there is no other"
        fix = f"kubectl get pods -n {subject.namespace}"
    return breaks(Part.PODS, Reason.TERMINATING, text, cause=cause, fix=fix)


def _undeclared(subject: Subject, look: Look) -> Iterator[Link]:
    """Note a registered port that no container of a pod declares. A declaration is optional, so a
    pod that declares no port is as good as any."""
    pods = {pod.uid: pod for pod in read(look.pods.get(subject.namespace))}
    lacking: dict[int, list[PodDetail]] = {}
    for wanted in subject.of(Wanted).values():
        pod = pods.get(wanted.pod.uid) if wanted.pod else None
        port = wanted.instance.main_port
        if pod is not None and pod.ports and port not in pod.ports:
            lacking.setdefault(port, []).append(pod)
    for port, undeclared in sorted(lacking.items()):
        first = min(undeclared, key=lambda pod: pod.name)
        declared = ", ".join(str(number) for number in first.ports)
        text = (
            f"no container of pod {first.name}{and_more(len(undeclared))} declares port {port}; "
            f"declared: {declared}"
        )
        yield Link(Part.PORT, Mark.NOTE, text)


def _describe(pod: str, namespace: str) -> str:
    return f"kubectl describe pod {pod} -n {namespace}"


def _why_not_ready(pod: PodDetail, now: float) -> str:
    """Return what a pod's conditions say, and for how long; empty for nothing. `now` in Unix
    seconds."""
    ready, scheduled = pod.condition("Ready"), pod.condition("PodScheduled")
    if scheduled is not None and not scheduled.true:
        ready, clause = scheduled, f"not scheduled: {scheduled.message or scheduled.reason}"
    else:
        clause = _says(pod)
    if ready is None or ready.since is None:
        return clause
    since = span(now - ready.since)
    if clause:
        return f"{clause} ({since})"
    return f"for {since}"


def _says(pod: PodDetail) -> str:
    """Return why a scheduled pod waits: what its containers wait for, else its condition, else its
    readiness gates."""
    ready = pod.condition("Ready")
    clause = "; ".join(pod.waiting)
    if not clause and ready is not None:
        clause = ready.message or ready.reason
    if not clause:
        gates = [gate.type for gate in pod.conditions if not gate.true and "/" in gate.type]
        if gates:
            clause = f"readiness gate {', '.join(gates)} is not open"
    if pod.phase in ("", "Running"):
        return clause
    if clause:
        return f"{pod.phase}, {clause}"
    return pod.phase


def _none(subject: Subject, claim: Serving, look: Look) -> Link:
    """Explain why there are no endpoints: the Services do not have the port, select no pod, or only
    pods without an address."""
    namespace, services = subject.namespace, subject.services
    names = f"{one_or_more(len(services), 'Service', 'Services')} {', '.join(services[:3])}"
    slices = slices_of(subject.report, namespace, services, pod=subject.pod)
    if slices:
        return _without_port(subject, claim, names, slices)
    hints = list(_nothing_selected(subject, look))
    if subject.pod:
        text = f"pod {subject.pod} is in no EndpointSlice of {names}"
        fix = _describe(subject.pod, namespace)
    else:
        text = f"{names} {one_or_more(len(services), 'has', 'have')} no endpoints"
        fix = hints[0][1] if hints else ""
    details = [detail for detail, _ in hints]
    return breaks(Part.PODS, Reason.NO_ENDPOINTS, text, *details, fix=fix)


def _without_port(
    subject: Subject, claim: Serving, names: str, slices: Sequence[EndpointSlice]
) -> Link:
    """Explain why there are endpoints, and none on the port that the syncer registers.

    | the first slice                    | to edit           |
    |------------------------------------|-------------------|
    | has host names                     | the EndpointSlice |
    | has no port                        | the Service       |
    | has a pod whose instances are kept | the Service       |
    | has the port                       | the syncer        |
    | has other ports                    | the syncer        |
    """
    first = min(slices, key=lambda piece: piece.name)
    place, label = place_of(first.endpoints[0]), label_of(first.endpoints[0])
    fix = f"kubectl edit service {first.service} -n {subject.namespace}"
    if first.address_type == "FQDN":
        text = f"EndpointSlice {first.name} is of addressType FQDN, and mode pod registers IP addresses"
        fix = f"kubectl edit endpointslice {first.name} -n {subject.namespace}"
        return breaks(Part.PORT, Reason.NO_SUCH_PORT, text, fix=fix)
    if not first.ports:
        text = (
            f"{label} has no container port with a name that Service {first.service} has as "
            "targetPort"
        )
        return breaks(Part.PORT, Reason.NO_SUCH_PORT, text, fix=fix)
    if place in claim.unplaced:
        cause = claim.unplaced[place]
        text = f"{cause}: nothing new of it is registered, and its instances are kept"
        return breaks(Part.PORT, Reason.NO_SUCH_PORT, text, cause=cause, fix=fix)
    text, fix = (
        f"{names} {one_or_more(len(subject.services), 'does', 'do')}",
        subject.kubectl("edit"),
    )
    listed = {str(port.port) for port in first.ports}
    if listed.intersection(_numbers(claim)):
        text = f"{text} not name the app that its syncer registers"
        return breaks(Part.PORT, Reason.AMBIGUOUS_SERVICE, text, fix=fix)
    port = _asked_port(claim)
    text = f"{text} not have the port that its syncer registers"
    if port:
        text = f"{text}, {port}"
    return breaks(Part.PORT, Reason.NO_SUCH_PORT, text, fix=fix)


def _nothing_selected(subject: Subject, look: Look) -> Iterator[tuple[str, str]]:
    """Yield what the selected pods wait for, or the most similar labels, each with a fix."""
    namespace = subject.namespace
    pods, selectors = look.pods.get(namespace), look.selectors.get(namespace)
    for source in (selectors, pods):
        if isinstance(source, Unknown):
            yield f"the reason could not be read: {source.message}", ""
            return
    for service in read(selectors):
        if service.name not in subject.services or not service.selector:
            continue
        selected = []
        for pod in read(pods):
            if subject.pod in ("", pod.name) and matches(service.selector, pod.labels):
                selected.append(pod)
        for pod in selected[:_MOST]:
            waits = _why_not_ready(pod, look.at) or "no EndpointSlice lists it"
            yield f"pod {pod.name}: {waits}", _describe(pod.name, namespace)
        if not selected:
            yield _without_pods(service, read(pods), namespace)


def selecting_nothing(subject: Subject, look: Look) -> Iterator[tuple[str, str]]:
    """Yield the Services in question that select no pod, with the most similar labels and a fix.
    None if the pods were not read."""
    pods = look.pods.get(subject.namespace)
    if not isinstance(pods, Complete):
        return
    for service in read(look.selectors.get(subject.namespace)):
        if service.name not in subject.services or not service.selector:
            continue
        if not any(matches(service.selector, pod.labels) for pod in pods.data):
            yield _without_pods(service, pods.data, subject.namespace)


def _without_pods(
    service: ServiceSelector, pods: Sequence[PodDetail], namespace: str
) -> tuple[str, str]:
    """Return what a Service selects that no pod has, with the most similar labels, and a fix."""
    text = f"Service {service.name} selects {written(service.selector)}: no pod has it"
    near = near_labels(service.selector, [(pod.name, pod.labels) for pod in pods])
    if near:
        labels = [f"{label} ({counted(len(names), 'pod')})" for label, names, _ in near]
        text = f"{text}; similar: {', '.join(labels)}"
    return text, f"kubectl edit service {service.name} -n {namespace}"
