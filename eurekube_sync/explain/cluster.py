"""The links about the cluster: the syncer, its spec, who serves it, Services, port, slices and
pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from eurekube_sync.desired.spec import class_of
from eurekube_sync.explain.links import (
    CALLERS_SECONDS,
    Link,
    Part,
    breaks,
    met,
    not_read,
    noted,
)
from eurekube_sync.explain.passes import see_to_passes
from eurekube_sync.explain.registry import is_first, looks_silent
from eurekube_sync.explain.subject import (
    Subject,
    address_of,
    named_app,
    pods_in,
    selectors_in,
    services_in,
    slices_of,
    vips_of,
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
from eurekube_sync.model.struct import replace
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
    claim = subject.claim
    syncer = claim.syncer
    mode = syncer.spec.get("mode") or "pod"
    name = class_of(syncer)
    of_class = f"class {name}" if name else "no class"
    yield met(Part.SYNCER, f"EurekaSyncer {syncer.ref}: mode {mode}, {of_class}")
    refused = _refused(subject, look, held=held)
    # A link about the spec, such as its deletion, stands in the place of these two.
    if refused is None or refused.part is not Part.SPEC:
        yield met(Part.SPEC, "its spec is valid")
        yield _served(syncer, look, registered=registered)
    if refused is not None:
        yield refused
    elif isinstance(claim, Serving):
        yield from _resolved(subject, claim)


def _resolved(subject: Subject, claim: Serving) -> Iterator[Link]:
    """Show what the spec of a served syncer resolves to: Services, port and endpoints."""
    kind = one_or_more(len(claim.services), "Service", "Services")
    yield met(Part.SERVICES, f"it selects {kind} {some_of(claim.services)}")
    yield met(Part.PORT, _registers(claim))
    yield from _under_another_name(subject, claim)
    for warning in claim.port_warnings:
        yield noted(Part.PORT, warning)
    yield from _endpoints(subject, claim)


def _under_another_name(subject: Subject, claim: Serving) -> Iterator[Link]:
    """Note that callers do not find an app by its name, which is what the question has."""
    app = subject.what.name
    is_app = subject.what.kind is Kind.APP and app in claim.apps
    if not is_app or not claim.vip_address:
        return
    if app not in map(str.upper, vips_of(claim)):
        under = f"under the VIP address {claim.vip_address}, and not under {app.lower()}"
        yield noted(Part.PORT, f"callers find app {app} {under}")


def _asked_port(claim: Serving) -> object:
    """Return the port that the spec names; None for the default port."""
    spec = claim.syncer.spec
    return spec.get("port") or spec.get("securePort")


def _numbers(claim: Serving) -> list[str]:
    """Return the ports that the syncer registers."""
    numbers = set()
    for key in claim.verdicts:
        _, _, number = key.id.rpartition(":")
        numbers.add(number)
    return sorted(numbers)


def _registers(claim: Serving) -> str:
    """Return the port, the apps and the VIP address that a syncer registers."""
    asked = _asked_port(claim)
    numbers = ", ".join(_numbers(claim))
    text = "its default port (spec.port is not set)"
    if asked or numbers:
        text = f"port {asked or numbers}"
    # A name stands for a number, or for several.
    if asked and numbers and str(asked) != numbers:
        text += f" ({numbers})"
    if claim.apps:
        apps = ", ".join(claim.apps[:3])
        text += f", as app {apps}"
    if claim.vip_address:
        text += f", VIP {claim.vip_address}"
    return text


def _endpoints(subject: Subject, claim: Serving) -> Iterator[Link]:
    if claim.incomplete:
        first = claim.incomplete[0]
        yield breaks(Part.ENDPOINTS, first.reason, first.message)
        return
    number = _listed(subject)
    if number:
        endpoints = counted(number, "endpoint")
        yield met(Part.ENDPOINTS, f"its EndpointSlices list {endpoints}")


def _listed(subject: Subject) -> int:
    """Count the endpoints in slices, without those that terminate. An address without a pod counts
    for each of its ports. So does a pod if they have one name, in slices of one Service."""
    addresses: set[tuple[str, Sequence[EndpointPort]]] = set()
    pods: dict[str, dict[tuple[str, ...], set[Sequence[EndpointPort]]]] = {}
    for piece in slices_of(subject.report, subject.namespace, subject.services):
        names = [port.name for port in piece.ports]
        service_and_names = (piece.service, *names)
        for endpoint in piece.endpoints:
            if endpoint.terminating:
                continue
            place = place_of(endpoint)
            if endpoint.pod is None:
                addresses.add((place, piece.ports))
            else:
                by_names = pods.setdefault(place, {})
                by_names.setdefault(service_and_names, set()).add(piece.ports)
    number = len(addresses)
    # However many Services select a pod, it is one endpoint for each of its ports.
    for by_names in pods.values():
        number += max(map(len, by_names.values()))
    return number


# --- Syncers that are not served ------------------------------------------------------------------


def _refused(subject: Subject, look: Look, *, held: bool) -> Link | None:
    """Make the link of a syncer that is being deleted or not served; None for any other."""
    claim = subject.claim
    if isinstance(claim, Deleting):
        return _deleting(subject, look, held=held)
    if isinstance(claim, NotServed):
        return _not_served(subject, claim, look)
    # The installation asks for grants, and this look does not, so it only shows what was said.
    message = refused_by_its_installation(claim.syncer, look)
    if message is None:
        return None
    _, cause = _REFUSED[Reason.NOT_GRANTED]
    text = f"its condition Ready says: {message}"
    fix = f"kubectl describe namespace {subject.ref.namespace}"
    return breaks(Part.SPEC, Reason.NOT_GRANTED, text, cause=cause, fix=fix)


def _not_served(subject: Subject, claim: NotServed, look: Look) -> Link:
    """Make the link of a syncer that is not served, by the reason."""
    if claim.source is not None:
        what = "its Services, slices or pods"
        return not_read(Part.SERVICES, what, claim.source, reason=claim.reason)
    if claim.reason is Reason.NO_MATCHING_SERVICE:
        return _no_service(subject, look)
    part, cause = _REFUSED.get(claim.reason, (Part.ENDPOINTS, ""))
    if claim.edit:
        # The fault is in another object, such as the Service whose port no slice has.
        fix = f"kubectl edit {claim.edit} -n {subject.namespace}"
        declared = _declared(subject, look)
        return breaks(part, claim.reason, claim.message, *declared, fix=fix)
    fix = subject.kubectl("edit")
    if claim.reason is Reason.NOT_GRANTED:
        fix = f"kubectl describe namespace {subject.ref.namespace}"
    if claim.reason is Reason.API_MISSING:
        fix = f"install the API, or {fix}"
    return breaks(part, claim.reason, claim.message, cause=cause, fix=fix)


def _declared(subject: Subject, look: Look) -> Iterator[str]:
    """Say which ports the pods of its Services declare, of the first one that does."""
    pods = pods_in(look, subject.namespace)
    declaring = []
    for service in _selectors(subject, look):
        for pod in _selected(service.selector, pods):
            if pod.ports:
                declaring.append(pod)
    if declaring:
        first = min(declaring, key=_by_name)
        yield f"containers of pod {first.name} declare port {_ports(first)}"


def _selectors(subject: Subject, look: Look) -> Iterator[ServiceSelector]:
    """Yield the Services in question that select pods. One without a selector has hand-made
    slices."""
    for service in selectors_in(look, subject.namespace):
        if service.name in subject.services and service.selector:
            yield service


def _selected(selector: Labels, pods: Iterable[PodDetail]) -> list[PodDetail]:
    """Return the pods that have all these labels."""
    selected = []
    for pod in pods:
        if matches(selector, pod.labels):
            selected.append(pod)
    return selected


def _by_name(pod: PodDetail) -> str:
    return pod.name


def _ports(pod: PodDetail) -> str:
    """Return the ports that a pod declares, such as `8080, 8081`."""
    return ", ".join(map(str, pod.ports))


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
    if held:  # the brake has a link of its own, with the way out
        return noted(Part.SPEC, text)
    if _ready_reason(syncer) == Reason.DELETING:
        text = f"{text}: the next pass removes its instances"
        described = f"{subject.kubectl('describe')} says why"
        fix = f"wait for the next pass; if it stays, {described}, or {see_to_passes(look)}"
    else:
        text = f"{text}: no pass has seen the deletion yet"
        # The first pass cancels the instances. The syncer goes when Eureka's lists lack them, too.
        options = subject.report.settings.options
        passes = join(("eurekube-sync", "run", *options, "--passes", "3"))
        if age > _PATIENCE:
            cause = "no installation seems to serve it"
            runs = "see that eurekube-sync runs, and for which namespaces"
            fix = f"{runs}, or make passes for it: {passes}"
            text = f"{text}; {cause}"
            return breaks(Part.SERVED, Reason.NO_INSTALLATION, text, cause=cause, fix=fix)
        fix = f"wait for the next pass; if none comes, make some: {passes}"
    link = breaks(Part.SPEC, Reason.DELETING, text, cause="its syncer is being deleted", fix=fix)
    return replace(link, since=deleted)


def _ready_reason(syncer: SyncerObject) -> str:
    """Return the reason of its condition Ready; empty if no pass wrote one."""
    ready = syncer.status.condition("Ready") if syncer.status else None
    if ready is None:
        return ""
    return ready.reason


def refused_by_its_installation(syncer: SyncerObject, look: Look) -> str | None:
    """Return the message of a missing grant, if the syncer's status has it for the present spec. A
    look that checks grants itself does not need the status."""
    status = syncer.status
    if look.asked.granted_only or status is None:
        return None
    if status.observed_generation < syncer.generation:
        return None
    ready = status.condition("Ready")
    if ready and ready.reason == Reason.NOT_GRANTED:
        return ready.message
    return None


def _no_service(subject: Subject, look: Look) -> Link:
    """Explain which Services or pods nearly have the labels that the syncer selects."""
    syncer = subject.claim.syncer
    namespace = subject.namespace
    spec = subject.claim.spec
    assert spec is not None  # its selector matches no Service
    selector = spec.selector
    labels = dict(selector.labels)
    edit = subject.kubectl("edit")
    fix = edit
    details = []

    having = _selected(labels, pods_in(look, namespace))
    if having:
        pods = counted(len(having), "pod")
        has = one_or_more(len(having), "has", "have")
        details.append(f"{pods} {has} {written(labels)}, but no Service does")
        fix = _label_the_service(labels, having, look, namespace)

    services = services_in(subject.report, namespace)
    candidates = [(service.name, service.labels) for service in services]
    near = near_labels(labels, candidates)
    for label, names, _ in near:
        shown = ", ".join(names[:3])
        have = one_or_more(len(names), f"Service {shown} has", f"Services {shown} have")
        details.append(f"{have} {label}")
    # If only the key differs, the label is the one that is meant, so the syncer is to be edited,
    # whatever the pods have.
    if near and (near[0].other_key or not having):
        fix = f"{_with_label(near[0], syncer)}: {edit}"

    part, cause = _REFUSED[Reason.NO_MATCHING_SERVICE]
    text = f"no Service in namespace {namespace} matches {selector}"
    return breaks(part, Reason.NO_MATCHING_SERVICE, text, *details, cause=cause, fix=fix)


def _label_the_service(
    labels: Labels, pods: Sequence[PodDetail], look: Look, namespace: str
) -> str:
    """Return the command that gives the labels of pods to their Service, or to one to choose."""
    name = "NAME"
    behind = _services_of_pods(pods, look, namespace)
    if len(behind) == 1:
        name = behind[0]
    pairs = written(labels, between=" ")
    return f"kubectl label service {name} -n {namespace} {pairs}"


def _with_label(near: NearLabel, syncer: SyncerObject) -> str:
    """Return what to write so that the syncer selects this label. The shorthand `app` also names
    the app; without it the Service does."""
    key, _, value = near.label.partition("=")
    if key == "app":
        selector = f"{{app: {value}}}"
        app = value
    else:
        selector = f"{{matchLabels: {{{key}: {value}}}}}"
        app = near.names[0]
    text = f"write selector: {selector} in its spec"
    named = named_app(syncer)
    if syncer.spec.get("appName") or named in ("", app.upper()):
        return text
    stays = f"if the app should stay {named} and not become {app.upper()}"
    return f"{text}, and appName: {named.lower()} {stays}"


def _services_of_pods(pods: Sequence[PodDetail], look: Look, namespace: str) -> list[str]:
    """Return the names of the Services that select one of these pods, by the pods' labels."""
    names = []
    for service in selectors_in(look, namespace):
        if _selected(service.selector, pods):
            names.append(service.name)
    return names


def _served(syncer: SyncerObject, look: Look, *, registered: bool) -> Link:
    """Say whether an installation serves the syncer, by the given scope and by the status that
    passes wrote."""
    inside = look.asked.takes(syncer)
    status = syncer.status
    seen = registered or (status is not None and status.observed_generation > 0)
    # A pass may not have come yet since the syncer was made.
    new = look.at - syncer.created < _PATIENCE
    if inside and (seen or new):
        scope = f"the scope of owner {look.owner}" if look.owner else "the scope given here"
        return met(Part.SERVED, f"it is in {scope}")
    if is_served_elsewhere(syncer, look):
        name = class_of(syncer)
        scope = f"class {name}" if name else "another scope"
        return met(Part.SERVED, f"another installation serves it ({scope})")
    return _no_installation(syncer, look, inside=inside)


def _no_installation(syncer: SyncerObject, look: Look, *, inside: bool) -> Link:
    """Make the link of a syncer that nobody serves. `inside`: it is in the given scope."""
    name = class_of(syncer)
    served = "it"
    fix = "ask the operator whether eurekube-sync runs, and for which namespaces and labels"
    if name:
        served = f"class {name}"
        ask = f"ask the operator for an installation with --syncer-class {name}"
        fix = f"remove spec.syncerClass, or {ask}"
    elif inside and is_first(look):
        fix = "ask the operator whether eurekube-sync runs, or make a pass: eurekube-sync run"
    unwritten = "a status for its present spec"
    if syncer.status is None:
        unwritten = "its status"
    age = span(look.at - syncer.created)
    cause = f"no installation seems to serve {served}"
    text = f"{cause}: the syncer is {age} old, and no pass has written {unwritten}"
    if not inside:
        scope = str(look.asked) or "all syncers without a class"
        text = f"{text}. The scope of this command: {scope}"
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
    if not answers:
        return False
    held = answers[0]  # the known answers come first
    if isinstance(held, Unknown):
        return False
    return held is None or looks_silent(held, look)


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
    claim = subject.claim
    if not isinstance(claim, Serving):
        return
    unready = []
    for key, verdict in claim.unready.items():
        if key in subject.verdicts:
            unready.append(verdict)
    terminating = subject.terminating
    left = len(subject.verdicts) - terminating
    if unready:
        unready.sort(key=lambda verdict: verdict.why)
        yield _unready(subject, look, unready, left)
    elif left:
        yield _ready(subject, left)
        yield from _undeclared(subject, look)
    elif terminating:
        yield _terminating(subject, claim, terminating, look)
    elif subject.keys and subject.removals:
        yield _removed(subject)
    elif not claim.incomplete:  # else the link of the endpoints says why there are none
        yield _none(subject, claim, look)


def _ready(subject: Subject, left: int) -> Link:
    """Count the ready pods: those that are wanted, over a limit or taken. If there is none, too
    little is known of all that are `left`."""
    ready = 0
    for kind in (Wanted, OverLimit, Taken):
        ready += len(subject.of(kind))
    ready = ready or left
    pods = counted(ready, "pod")
    are = one_or_more(ready, "is", "are")
    return met(Part.PODS, f"{pods} {are} ready")


def _removed(subject: Subject) -> Link:
    """Say why a pass removes the instances in question, which have no endpoint any more."""
    removals = subject.removals
    first = next(iter(removals))
    why = removals[first]
    text = f"a pass removes {address_of(first)}{and_more(len(removals))}: {why}"
    fix = subject.kubectl("describe")
    return breaks(Part.PODS, Reason.NO_ENDPOINTS, text, cause=why, fix=fix)


def _unready(subject: Subject, look: Look, unready: Sequence[Wanted | Leaving], left: int) -> Link:
    """Say of each unready pod why it is not ready, and since when the first one is not. `left`: the
    number of pods that do not terminate."""
    pods = pods_in(look, subject.namespace)
    there = {pod.name: pod for pod in pods}
    unread = _why_not_read(subject, look)
    fix = ""
    since: list[float] = []
    details = []
    for verdict in unready:
        text = verdict.why
        if verdict.pod is not None:
            name = verdict.pod.name
            fix = fix or _describe(name, subject.namespace)
            reason = unread
            if name in there:
                reason = _why_not_ready(there[name], look.at)
                ready = there[name].condition("Ready")
                if ready is not None and ready.since is not None:
                    since.append(ready.since)
            if reason:
                text = f"{text}: {reason}"
        details.append(text)

    number = len(unready)
    are = one_or_more(number, "is", "are")
    cause = f"{number} of its {left} pods {are} not ready"
    if left == 1:
        cause = "its pod is not ready"
    text = f"{number} of {counted(left, 'endpoint')} are not ready"
    if number == 1:
        text = details.pop()
    if len(details) > _MOST:
        more = len(details) - _MOST
        details[_MOST:] = [f"and {more} more"]
    if not subject.listed:
        details.append(
            "a pod is registered only after it was ready once; if it stops being ready, "
            "spec.notReady says what happens"
        )
    link = breaks(Part.PODS, Reason.NOT_READY, text, *details, cause=cause, fix=fix)
    return replace(link, since=min(since, default=None))


def _why_not_read(subject: Subject, look: Look) -> str:
    """Return why the pods could not be read; empty if they were."""
    pods = look.pods.get(subject.namespace)
    if isinstance(pods, Unknown):
        return f"the reason could not be read: {pods.message}"
    return ""


def _terminating(subject: Subject, claim: Serving, terminating: int, look: Look) -> Link:
    """Say what happens next to pods that terminate. The question may be about one of several."""
    endpoints = counted(terminating, "endpoint")
    end = one_or_more(terminating, "terminates", "terminate")
    its = one_or_more(terminating, "its instance", "their instances")
    follow = f"callers follow within {CALLERS_SECONDS} s"
    text = f"{endpoints} {end}: the next pass cancels {its}, and {follow}"
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
    there = {pod.uid: pod for pod in pods_in(look, subject.namespace)}
    lacking: dict[int, list[PodDetail]] = {}
    for wanted in subject.of(Wanted).values():
        if wanted.pod is None:
            continue
        pod = there.get(wanted.pod.uid)
        port = wanted.instance.main_port
        if pod is not None and pod.ports and port not in pod.ports:
            lacking.setdefault(port, []).append(pod)
    for port, pods in sorted(lacking.items()):
        first = min(pods, key=_by_name)
        whose = f"pod {first.name}{and_more(len(pods))}"
        declares = f"no container of {whose} declares port {port}"
        yield noted(Part.PORT, f"{declares}; declared: {_ports(first)}")


def _describe(pod: str, namespace: str) -> str:
    return f"kubectl describe pod {pod} -n {namespace}"


def _why_not_ready(pod: PodDetail, now: float) -> str:
    """Return what a pod's conditions say, and for how long; empty for nothing. `now` in Unix
    seconds."""
    condition = pod.condition("Ready")
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and not scheduled.true:
        condition = scheduled
        clause = f"not scheduled: {scheduled.message or scheduled.reason}"
    else:
        clause = _says(pod)
    if condition is None or condition.since is None:
        return clause
    lasted = span(now - condition.since)
    if clause:
        return f"{clause} ({lasted})"
    return f"for {lasted}"


def _says(pod: PodDetail) -> str:
    """Return why a scheduled pod waits: what its containers wait for, else its condition, else its
    readiness gates."""
    ready = pod.condition("Ready")
    clause = "; ".join(pod.waiting)
    if not clause and ready is not None:
        clause = ready.message or ready.reason
    if not clause:
        clause = _closed_gates(pod)
    if pod.phase in ("", "Running"):
        return clause
    if clause:
        return f"{pod.phase}, {clause}"
    return pod.phase


def _closed_gates(pod: PodDetail) -> str:
    """Return which readiness gates of a pod are not open; empty for none. Their conditions have a
    domain in their names, unlike Kubernetes' own, such as `Initialized`."""
    gates = []
    for condition in pod.conditions:
        if "/" in condition.type and not condition.true:
            gates.append(condition.type)
    if not gates:
        return ""
    return f"readiness gate {', '.join(gates)} is not open"


def _none(subject: Subject, claim: Serving, look: Look) -> Link:
    """Explain why there are no endpoints: the Services do not have the port, select no pod, or only
    pods without an address."""
    namespace = subject.namespace
    services = subject.services
    kind = one_or_more(len(services), "Service", "Services")
    names = f"{kind} {', '.join(services[:3])}"
    slices = slices_of(subject.report, namespace, services, pod=subject.pod)
    if slices:
        return _without_port(subject, claim, names, slices)
    hints = list(_nothing_selected(subject, look))
    details = [hint for hint, _ in hints]
    if subject.pod:
        text = f"pod {subject.pod} is in no EndpointSlice of {names}"
        fix = _describe(subject.pod, namespace)
    else:
        have = one_or_more(len(services), "has", "have")
        text = f"{names} {have} no endpoints"
        fix = hints[0][1] if hints else ""
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
    if first.address_type == "FQDN":
        of_names = f"EndpointSlice {first.name} is of addressType FQDN"
        text = f"{of_names}, and mode pod registers IP addresses"
        fix = f"kubectl edit endpointslice {first.name} -n {subject.namespace}"
        return breaks(Part.PORT, Reason.NO_SUCH_PORT, text, fix=fix)

    endpoint = first.endpoints[0]
    fix = f"kubectl edit service {first.service} -n {subject.namespace}"
    if not first.ports:
        port = f"a name that Service {first.service} has as targetPort"
        text = f"{label_of(endpoint)} has no container port with {port}"
        return breaks(Part.PORT, Reason.NO_SUCH_PORT, text, fix=fix)
    cause = claim.unplaced.get(place_of(endpoint))
    if cause is not None:
        text = f"{cause}: nothing new of it is registered, and its instances are kept"
        return breaks(Part.PORT, Reason.NO_SUCH_PORT, text, cause=cause, fix=fix)

    fix = subject.kubectl("edit")
    do = one_or_more(len(subject.services), "does", "do")
    listed = {str(port.port) for port in first.ports}
    if listed.intersection(_numbers(claim)):
        text = f"{names} {do} not name the app that its syncer registers"
        return breaks(Part.PORT, Reason.AMBIGUOUS_SERVICE, text, fix=fix)
    text = f"{names} {do} not have the port that its syncer registers"
    asked = _asked_port(claim)
    if asked:
        text = f"{text}, {asked}"
    return breaks(Part.PORT, Reason.NO_SUCH_PORT, text, fix=fix)


def _nothing_selected(subject: Subject, look: Look) -> Iterator[tuple[str, str]]:
    """Yield what the selected pods wait for, or the most similar labels, each with a fix."""
    namespace = subject.namespace
    sources = (look.selectors.get(namespace), look.pods.get(namespace))
    for source in sources:
        if isinstance(source, Unknown):
            yield f"the reason could not be read: {source.message}", ""
            return
    pods = pods_in(look, namespace)
    for service in _selectors(subject, look):
        selected = []
        for pod in _selected(service.selector, pods):
            if subject.pod in ("", pod.name):
                selected.append(pod)
        for pod in selected[:_MOST]:
            waits = _why_not_ready(pod, look.at) or "no EndpointSlice lists it"
            yield f"pod {pod.name}: {waits}", _describe(pod.name, namespace)
        if not selected:
            yield _without_pods(service, pods, namespace)


def selecting_nothing(subject: Subject, look: Look) -> Iterator[tuple[str, str]]:
    """Yield the Services in question that select no pod, with the most similar labels and a fix.
    None if the pods were not read."""
    pods = look.pods.get(subject.namespace)
    if not isinstance(pods, Complete):
        return
    for service in _selectors(subject, look):
        if not _selected(service.selector, pods.data):
            yield _without_pods(service, pods.data, subject.namespace)


def _without_pods(
    service: ServiceSelector, pods: Sequence[PodDetail], namespace: str
) -> tuple[str, str]:
    """Return what a Service selects that no pod has, with the most similar labels, and a fix."""
    selector = service.selector
    text = f"Service {service.name} selects {written(selector)}: no pod has it"
    similar = []
    candidates = [(pod.name, pod.labels) for pod in pods]
    for label, names, _ in near_labels(selector, candidates):
        having = counted(len(names), "pod")
        similar.append(f"{label} ({having})")
    if similar:
        text = f"{text}; similar: {', '.join(similar)}"
    return text, f"kubectl edit service {service.name} -n {namespace}"
