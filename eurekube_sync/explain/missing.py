"""Explains things that no syncer registers: which similar things exist, who registers them, and
what would help."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from shlex import join, quote
from typing import Any

from eurekube_sync.controller.look import Look
from eurekube_sync.desired.similar import matches, near_labels, written
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.explain.links import (
    Explanation,
    Link,
    Outcome,
    Part,
    breaks,
    not_read,
    noted,
    unseen,
)
from eurekube_sync.explain.subject import (
    address_of,
    apps_of,
    claims_in,
    is_meant,
    named_app,
    observed_at,
    pods_in,
    pods_of,
    read,
    selector_of,
    selectors_in,
    subjects,
    syncers_in,
    workload,
)
from eurekube_sync.explain.what import (
    WORKLOADS,
    Kind,
    What,
    near_names,
    similar,
)
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.imports import is_of_an_import
from eurekube_sync.model.kubernetes import Service, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import CLUSTER, OWNER, syncer_of
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Source, Unknown
from eurekube_sync.observe.kubernetes import SourceKind, unread

_MOST = 3  # instances in Eureka with a link each
_APPLY = (
    "apply the EurekaSyncer below, which selects the Service by its name (selector.service): "
    "kubectl apply -f -"
)


def explain_missing(what: What, look: Look, *, absent: bool = False) -> Explanation:
    """Make a chain whose first link is broken, or unknown if a list failed. `absent`: the namespace
    in question does not exist."""
    theirs = _held_by_eureka(what, look)
    failed = _unknown_syncers(look, what.namespace)
    service = ""
    if failed is not None:
        first = _syncers_not_read(what, failed, look)
    elif absent:
        text = f"namespace {what.namespace} does not exist"
        fix = "kubectl get namespaces"
        first = breaks(Part.SYNCER, Reason.NOTHING_FOUND, text, fix=fix)
    else:
        first, service = _first_link(what, theirs, look)
    links = [first]
    # Eureka has no names of Services and pods, and of an app or address the first link tells.
    if failed is not None or theirs or what.kind is Kind.SYNCER:
        links += _in_eureka(theirs, look)

    outcome = Outcome.UNKNOWN
    sentence = f"Unknown whether it is registered: {first.text}"
    if first.broken:
        outcome = Outcome.NOT_REGISTERED
        head = "Registered, but by no syncer in scope" if theirs else "Not registered"
        sentence = f"{head}: {first.cause}"
    manifest: dict[str, Any] = {}
    if service:
        manifest = _smallest_syncer(what.namespace, service)
    return Explanation(
        about=str(what),
        links=tuple(links),
        outcome=outcome,
        sentence=sentence,
        fix=first.fix,
        manifest=manifest,
    )


def _syncers_not_read(what: What, failed: Unknown, look: Look) -> Link:
    """Make the link of syncers that could not be listed, or were not asked for."""
    if failed.cause is Cause.NOT_READ:
        return _out_of_scope(what, look)
    kind = "EurekaSyncers"
    if what.namespace:
        kind = f"{kind} of namespace {what.namespace}"
    return _not_read(Part.SYNCER, kind, failed)


def _first_link(what: What, theirs: Sequence[ObservedInstance], look: Look) -> tuple[Link, str]:
    """Return why no syncer registers it, and the Service for which to apply a syncer; empty for
    none. `theirs` are the instances in question that Eureka lists."""
    if what.kind is Kind.SYNCER:
        names = [syncer.name for syncer in _syncers(look, what.namespace)]
        fix = f"kubectl get esync -n {what.namespace}"
        return _nothing("EurekaSyncer", what, names, fix, Reason.NO_SYNCER), ""
    if what.kind is Kind.SERVICE:
        return _service(what, look)
    if what.kind is Kind.POD:
        return _pod(what, look)
    if what.kind in WORKLOADS:
        return _workload(what, look)
    if theirs:
        return _in_eureka_alone(theirs[0], look), ""
    return _no_claim(what, look), ""


def _pod(what: What, look: Look) -> tuple[Link, str]:
    """Explain a pod that no syncer selects, by its Service; or that has none."""
    behind = _service_of(what, look)
    if isinstance(behind, Link):
        return behind, ""
    return _service(behind, look)


def _held_by_eureka(what: What, look: Look) -> list[ObservedInstance]:
    """Return the instances in question that Eureka lists, whoever registered them."""
    if what.kind is Kind.SYNCER:
        return list(look.marked(SyncerRef(what.namespace, what.name)))
    theirs = []
    for instance in read(look.listed):
        if is_meant(what, instance.key, instance.instance):
            theirs.append(instance)
    return theirs


def _smallest_syncer(namespace: str, service: str) -> dict[str, Any]:
    return {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaSyncer",
        "metadata": {"name": service, "namespace": namespace},
        "spec": {"selector": {"service": service}},
    }


def _not_read(part: Part, kind: str, source: Unknown) -> Link:
    return not_read(part, f"the {kind}", source, reason=Reason(source.cause))


def _out_of_scope(what: What, look: Look) -> Link:
    """Ask again with the namespace, which the installation does not serve."""
    served = ", ".join(sorted(look.asked.namespaces or ()))
    text = (
        f"namespace {what.namespace} is outside of the scope of the installation: --namespace is "
        f"{served}"
    )
    fix = join(("eurekube-sync", "explain", str(what), "-n", what.namespace))
    return unseen(Part.SYNCER, text, fix=fix)


def _nothing(
    kind: str,
    what: What,
    names: Collection[str],
    fix: str,
    reason: Reason = Reason.NOTHING_FOUND,
) -> Link:
    """Report that an object does not exist, with similar names."""
    there = [f"{what.namespace}/{name}" for name in _nearest(what.name, names)]
    details = []
    if there:
        details.append(f"there is {', '.join(there)}")
    text = f"there is no {kind} {what.namespace}/{what.name}"
    return breaks(Part.SYNCER, reason, text, *details, fix=fix)


def _nearest(name: str, names: Collection[str]) -> Sequence[str]:
    """Return similar names; the first ones if none is similar."""
    return near_names(name, names) or sorted(names)[:3]


def _in_eureka(theirs: list[ObservedInstance], look: Look) -> Iterator[Link]:
    """Note the instances in question that Eureka lists, and whose they are."""
    if isinstance(look.listed, Unknown):
        yield not_read(Part.EUREKA, "what Eureka holds", look.listed)
    for instance in theirs[:_MOST]:
        syncer = syncer_of(instance)
        whose = f"syncer {syncer}" if syncer else "no mark of ours"
        at = f"{instance.key} at {observed_at(instance)}"
        yield noted(Part.EUREKA, f"Eureka holds {at}, {instance.status}, {whose}")


def _workload(what: What, look: Look) -> tuple[Link, str]:
    """Explain a workload whose pods no syncer selects, by its first pod; or that has no pod."""
    listed = look.pods.get(what.namespace)
    if isinstance(listed, Unknown):
        return _not_read(Part.PODS, f"Pods of namespace {what.namespace}", listed), ""
    pods = pods_of(what, look)
    if not pods:
        return _no_pod(what, look), ""
    # All its pods have the labels of its template.
    first = What(Kind.POD, pods[0], what.namespace)
    return _pod(first, look)


def _no_pod(what: What, look: Look) -> Link:
    """Report a workload without pods, with similar names of its kind."""
    kind = WORKLOADS[what.kind]
    names = set()
    for pod in pods_in(look, what.namespace):
        of_kind, _, name = workload(pod).partition(" ")
        if of_kind == kind:
            names.add(name)
    details = similar(_nearest(what.name, names))
    text = f"no pod is of {kind} {what.namespace}/{what.name}"
    fix = f"kubectl get {what.kind} -n {what.namespace}"
    return breaks(Part.PODS, Reason.NOTHING_FOUND, text, *details, fix=fix)


def _service(what: What, look: Look) -> tuple[Link, str]:
    """Explain a Service that no syncer selects, or that does not exist. Return its name, too, if a
    syncer is to be applied for it: not where one nearly selects it."""
    name = what.name
    namespace = what.namespace
    listed = look.selectors.get(namespace)
    if isinstance(listed, Unknown):
        return _not_read(Part.SERVICES, f"Services of namespace {namespace}", listed), ""
    there = {service.name: service.labels for service in read(listed)}
    if name not in there:
        return _nothing("Service", what, there, f"kubectl get svc -n {namespace}"), ""
    text = f"Service {name} is selected by no EurekaSyncer"
    nearly = list(_nearly_selecting(namespace, name, there[name], look))
    if not nearly:
        return breaks(Part.SYNCER, Reason.NO_SYNCER, text, fix=_APPLY), name
    details = [detail for detail, _ in nearly]
    _, fix = nearly[0]
    return breaks(Part.SYNCER, Reason.NO_SYNCER, text, *details, fix=fix), ""


def _nearly_selecting(
    namespace: str, name: str, labels: Mapping[str, str], look: Look
) -> Iterator[tuple[str, str]]:
    """Yield syncers that select the Service except for one label, each with a fix."""
    for syncer in _syncers(look, namespace):
        selector = selector_of(syncer)
        if selector is None:
            text = f"EurekaSyncer {syncer.ref} might select it, but its spec is invalid"
            yield text, f"eurekube-sync explain {syncer.ref}"
            continue
        near = near_labels(dict(selector.labels), [(name, labels)])
        has = [label for label, _, _ in near]
        # A selector by name has no labels.
        if not has and near_names(name, [selector.service or ""]):
            has = [name]
        if has:
            selects = f"EurekaSyncer {syncer.ref} selects {selector}"
            text = f"{selects}, and the Service has {', '.join(has)}"
            yield text, f"kubectl edit esync {syncer.name} -n {namespace}"


def _service_of(what: What, look: Look) -> What | Link:
    """Return the Service that selects the pod, or a link with the reason why there is none."""
    namespace = what.namespace
    pods = look.pods.get(namespace)
    if isinstance(pods, Unknown):
        return _not_read(Part.PODS, f"Pods of namespace {namespace}", pods)
    services = look.selectors.get(namespace)
    if isinstance(services, Unknown):
        return _not_read(Part.PODS, f"Services of namespace {namespace}", services)
    there = {pod.name: pod.labels for pod in read(pods)}
    if what.name not in there:
        return _nothing("pod", what, there, f"kubectl get pods -n {namespace}")
    labels = there[what.name]
    details = []
    for service in sorted(read(services), key=lambda service: service.name):
        if matches(service.selector, labels):
            return What(Kind.SERVICE, service.name, namespace)
        selects = f"Service {service.name} selects {written(service.selector)}"
        for label, _, _ in near_labels(service.selector, [(service.name, labels)]):
            details.append(f"{selects}, and the pod has {label}")
    text = f"pod {what.name} is selected by no Service"
    fix = f"kubectl get svc -n {namespace} -o wide"
    return breaks(Part.SERVICES, Reason.NOT_SELECTED, text, *details, fix=fix)


def _no_claim(what: What, look: Look) -> Link:
    """Report an app, address or instance id that no claim and no instance has, with similar
    apps."""
    # A Service that was not read may give it.
    failed = _unread_services(look)
    if failed is not None:
        return _not_read(Part.SERVICES, "Services", failed)
    details = list(_similar_apps(what, look))
    beside = list(_other_ports(what, look))
    details += beside
    fix = join(("eurekube-sync", "status", "-a", *look.asked.options))
    if beside:
        fix = join(("eurekube-sync", "explain", what.name, *look.asked.options))
    text = f"no syncer wants {what}"
    if isinstance(look.listed, Unknown):
        text = f"{text}; what Eureka holds could not be looked at: {look.listed.message}"
        return unseen(Part.SYNCER, text, *details, fix=fix)
    text = f"{text}, and Eureka does not list it"
    return breaks(Part.SYNCER, Reason.NOTHING_FOUND, text, *details, fix=fix)


def _unread_services(look: Look) -> Unknown | None:
    """Return why Services or slices could not be read; None if they were."""
    for report in look.reports:
        for failed in unread(report.view):
            if failed.kind in (SourceKind.SERVICES, SourceKind.SLICES):
                return failed.source
    return None


def _similar_apps(what: What, look: Look) -> Iterator[str]:
    """Yield similar apps that Eureka or a syncer has, and which syncers register them."""
    wanted: dict[str, SyncerRef] = {}
    for report in look.reports:
        for ref, claim in claims_in(report).items():
            for app in apps_of(claim):
                wanted.setdefault(app, ref)
    apps = {instance.key.app for instance in read(look.listed)}
    near = near_names(str(what), apps.union(wanted))
    yield from similar(near)
    for app in near:
        if app in wanted:
            yield f"EurekaSyncer {wanted[app]} registers as {app}"


def _other_ports(what: What, look: Look) -> Iterator[str]:
    """Yield what syncers register at the address in question at other ports."""
    if what.kind is not Kind.ADDRESS or what.port is None:
        return
    at_any_port = What(Kind.ADDRESS, what.name)
    for subject in subjects(at_any_port, look):
        for key in sorted(subject.keys or ()):
            registers = f"EurekaSyncer {subject.ref} registers {address_of(key)} as {key.app}"
            yield f"{registers}, and not port {what.port}"


def _in_eureka_alone(instance: ObservedInstance, look: Look) -> Link:
    """Explain by its marks an instance that no syncer in scope registers.

    | its marks           | its syncer                 | link                 |
    |---------------------|----------------------------|----------------------|
    | none, or not ours   | any                        | broken: NoSyncer     |
    | ours                | exists, or is out of scope | unknown              |
    | ours                | is in scope, and is gone   | broken: NoSyncer     |
    """
    ref = syncer_of(instance)
    owner = instance.metadata.get(OWNER, "")
    cluster = instance.metadata.get(CLUSTER)
    # If it is unknown which cluster this is, the instance may be of this one.
    here = isinstance(look.identity, Unknown) or cluster == look.identity.data
    by_our_owner = owner in ("", look.owner)
    if ref is None or not by_our_owner or not here:
        cause = "it has no mark of eurekube-sync"
        if owner:
            elsewhere = "" if here or cluster is None else " of another cluster"
            cause = f"owner {owner}{elsewhere} registered it"
        text = f"no EurekaSyncer in scope registers it: {cause}"
        return breaks(Part.SYNCER, Reason.NO_SYNCER, text, cause=cause)
    refs = [syncer.ref for syncer in syncers_in(look.report)]
    exists = ref in refs
    if exists or not look.asked.covers(ref):
        fix = f"eurekube-sync explain {quote(str(ref))} -n {quote(ref.namespace)}"
        text = f"EurekaSyncer {ref} registers it, but is outside of the given scope"
        return unseen(Part.SERVICES, text, fix=fix)
    text = f"there is no EurekaSyncer {ref} any more, so it is an orphan"
    fix = join(("eurekube-sync", "orphans", *look.asked.options))
    return breaks(Part.SYNCER, Reason.NO_SYNCER, text, cause="its syncer is gone", fix=fix)


def namespaces_beside(what: What, look: Look) -> list[str]:
    """Return the namespaces of the listed syncers out of scope that name the app in question, or
    whose instances are in question."""
    marked = {syncer_of(instance) for instance in _held_by_eureka(what, look)}
    namespaces = set()
    for syncer in syncers_in(look.report):
        if look.asked.takes(syncer):
            continue
        named = what.kind is Kind.APP and named_app(syncer) == what.name
        if named or syncer.ref in marked:
            namespaces.add(syncer.namespace)
    return sorted(namespaces)


def _syncers(look: Look, namespace: str) -> list[SyncerObject]:
    """Return the listed syncers of a namespace."""
    syncers = []
    for syncer in syncers_in(look.report):
        if syncer.namespace == namespace:
            syncers.append(syncer)
    return syncers


def _unknown_syncers(look: Look, namespace: str) -> Unknown | None:
    """Return the reason why the syncers of a namespace, or of the whole scope, are unknown; None if
    all were listed."""
    view = look.report.view
    if view is None:
        return None
    sources: list[Source[Any]] = [view.identity]
    if namespace:
        sources.append(view.syncers.of(namespace))
    else:
        sources += view.syncers.by_namespace.values()
        if not look.report.settings.scope.namespaces:
            sources.append(view.syncers.elsewhere)
    for source in sources:
        if isinstance(source, Unknown):
            return source
    return None


def unselected(look: Look, namespace: str) -> list[str]:
    """Return the names of the namespace's Services that no syncer selects; empty if that is
    unknown."""
    view = look.report.view
    if view is None or isinstance(view.syncers.of(namespace), Unknown):
        return []
    selectors = []
    for syncer in syncers_in(look.report):
        selector = selector_of(syncer)
        if selector is not None and selected_namespace(syncer) == namespace:
            selectors.append(selector)
    names = []
    for listed in selectors_in(look, namespace):
        if is_of_an_import(listed):
            continue
        service = Service(namespace=namespace, name=listed.name, labels=listed.labels)
        if not any(selector.matches(service) for selector in selectors):
            names.append(service.name)
    return sorted(names)
