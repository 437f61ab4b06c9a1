"""`check`: whether an installation can work, and what would fail. Each requirement gives one
finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import yaml

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.look import Look, LookWorld, look, with_details
from eurekube_sync.controller.one_pass import PassSettings
from eurekube_sync.desired.claims import Serving
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.explain.chain import owner_links
from eurekube_sync.explain.links import Check, Finding, Grade, Mark
from eurekube_sync.explain.registry import CALLERS_SECONDS, RUNS, last_pass_link, lease_end
from eurekube_sync.explain.subject import claims_in, endpoints_of, syncers_in
from eurekube_sync.model.errors import RegistryError, unknown_from
from eurekube_sync.model.eureka import Batching, InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import CrdAge, PodDetail, Right, SyncerRef
from eurekube_sync.model.ownership import OWNER_PATTERN
from eurekube_sync.model.ports import Details, EurekaServer
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from eurekube_sync.model.wording import counted

_MOST_NAMESPACES = (
    50  # namespaces whose Pods are listed to see how long their pods serve at their end
)
_INSTALL = "eurekube-sync crd | kubectl apply --server-side -f -"
_SKEW = 10.0  # seconds between two clocks that are worth a warning
# Seconds at which a lease may seem to have ended, or a new write may seem older than the last
_LARGE_SKEW = 60.0
_NOBODY = InstanceKey(
    "EUREKUBE-SYNC-CHECK", "eurekube-sync-check-no-such-instance"
)  # real ids have four colons
_EVICTED_AFTER = (
    240.0  # seconds after the end of a lease within which a server evicts, on a timer of one minute
)
_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_RIGHT_URL = (
    "check the URL: its path is /eureka with Spring Cloud and /eureka/v2 with Netflix's own "
    "server. "
    "No proxy may answer in Eureka's place"
)
_PASS_WRITES = (
    "let Spring Security, and each proxy before it, pass the writes of this login below /eureka/**"
)
_OF_EUREKA_ITSELF = (
    "give the address of Eureka itself, or let the proxy before it pass calls and answers unchanged"
)
_SHUTDOWN = 30  # seconds for an app after its `preStop`, as Kubernetes gives by default


def everything(
    seen: LookWorld,
    settings: PassSettings,
    *,
    schema: Mapping[str, Any],
    interval: float,
    namespace: str,
    locked: bool,
    before: bool,
) -> Iterator[Finding]:
    """Yield each finding as soon as it is known. `interval`: seconds between two passes.
    `namespace`: that of the installation. `locked`: it uses a lock there. `before`: it is not
    installed yet."""
    world, cluster = seen.world, seen.details
    yield (kubernetes := reachable(cluster, world.cluster.identity()))
    answers = kubernetes.grade is Grade.OK
    if answers:
        yield clock("the Kubernetes API", cluster.ahead())
        yield definition(cluster, world.cluster.crd_live(), schema, before=before)
    of_servers = list(servers(world.servers, world.clock.now()))
    yield from of_servers
    if before and answers:
        yield from rights(TO_INSTALL, [namespace], cluster)
    if before or not answers:
        return
    names = sorted(settings.scope.namespaces or ())
    looked = look(seen, settings, names)
    view = looked.report.view
    needed = of_a_pass(
        lock=namespace if locked else None,
        gates=any(
            one.spec.get("readinessGate")
            for one in syncers_in(looked.report)
            if looked.asked.takes(one)
        ),
        nodes=view is not None and view.nodes is not None,
        grants=("get" if names else "list") if settings.scope.granted_only else None,
    )
    all_read = all(one.grade is Grade.OK for one in of_servers if one.check is Check.EUREKA_READ)
    if all_read and (batching := world.registry.batching()):
        yield replicas(batching)
    yield from rights(needed, names, cluster)
    yield from _owner(looked)
    if looked.last_pass is not None:
        last = last_pass_link(looked, alone=True)
        grade = {Mark.OK: Grade.OK, Mark.BROKEN: Grade.FAILED}.get(last.mark, Grade.WARNING)
        fix = last.fix or f"give --owner and --lock as run does, or {RUNS}"
        yield Finding(Check.LAST_PASS, grade, last.text, "" if grade is Grade.OK else fix)
    served = sorted({selected_namespace(one.syncer) for one in claims_in(looked.report).values()})
    yield from pod_ends(with_details(seen, looked, served[:_MOST_NAMESPACES]), interval)


def reachable(cluster: Details, identity: Source[str]) -> Finding:
    """Check that the API answers, and says which cluster it is."""
    server, fix = cluster.server(), "check --kubeconfig and --context: kubectl version"
    if isinstance(server, Unknown):
        return Finding(Check.KUBERNETES, Grade.FAILED, server.message, fix)
    if isinstance(identity, Unknown):
        text = (
            "it is unknown which cluster this is (the UID of the namespace kube-system): "
            f"{identity.message}"
        )
        fix = "grant get on the namespace kube-system, as docs/install.md does"
        return Finding(Check.KUBERNETES, Grade.FAILED, text, fix)
    return Finding(
        Check.KUBERNETES, Grade.OK, f"Kubernetes {server.data} answers, cluster {identity.data[:8]}"
    )


def definition(
    cluster: Details, live: Source[CrdAge], expected: Mapping[str, Any], *, before: bool
) -> Finding:
    """Check that the CRD exists, is not being deleted, and has this version's schema. `before`: it
    may be missing."""
    schema, said = cluster.schema(), "the CustomResourceDefinition eurekasyncers.eurekube.io"
    if isinstance(schema, Unknown):
        if schema.cause is Cause.CRD_MISSING and before:
            return Finding(Check.CRD, Grade.OK, f"{said} is not installed yet")
        return Finding(Check.CRD, Grade.FAILED, schema.message, f"install it: {_INSTALL}")
    if isinstance(live, Unknown) and live.cause is Cause.CRD_TERMINATING:
        fix = (
            "look at the deletion before anything else: kubectl get crd "
            "eurekasyncers.eurekube.io -o json"
        )
        return Finding(Check.CRD, Grade.FAILED, live.message, fix)
    if schema.data != expected:
        text = f"{said} is not of this version: fields of syncers may be refused or dropped"
        return Finding(Check.CRD, Grade.WARNING, text, f"bring it to this version: {_INSTALL}")
    return Finding(Check.CRD, Grade.OK, f"{said} is of this version")


def clock(name: str, ahead: Source[float]) -> Finding:
    if isinstance(ahead, Unknown):
        return Finding(
            Check.CLOCK,
            Grade.WARNING,
            f"the clock of {name} could not be looked at: {ahead.message}",
        )
    seconds = abs(ahead.data)
    if seconds < _SKEW:
        return Finding(Check.CLOCK, Grade.OK, f"the clock of {name} agrees with ours")
    side = "ahead of" if ahead.data > 0 else "behind"
    grade = Grade.FAILED if seconds >= _LARGE_SKEW else Grade.WARNING
    text = f"the clock of {name} is {seconds:.0f} s {side} ours: the older of two writes may win"
    return Finding(
        Check.CLOCK, grade, text, "set the time on both machines: timedatectl, chronyc tracking"
    )


def servers(found: Mapping[str, EurekaServer], now: float) -> Iterator[Finding]:
    """Check each Eureka server, by its address; `now` in Unix seconds."""
    if not found:
        fix = "give --eureka-url, or set EUREKUBE_SYNC_EUREKA_URL"
        yield Finding(Check.EUREKA_READ, Grade.FAILED, "no Eureka is named", fix)
    for address, server in found.items():
        listed = server.list_instances()
        if isinstance(listed, Complete):
            yield Finding(
                Check.EUREKA_READ,
                Grade.OK,
                f"{address} lists {counted(len(listed.data), 'instance')}",
            )
            yield _write(address, server)
            yield _evicts(address, listed.data, now)
            try:
                yield clock(address, Complete(data=server.ahead()))
            except RegistryError as error:
                yield clock(address, unknown_from(error))
        else:
            fix = {
                Cause.DENIED: "give its login: --eureka-username and --eureka-password-file",
                Cause.UNUSABLE: _RIGHT_URL,
            }.get(
                listed.cause,
                f"see that it runs and can be reached from here: curl -i {address}/apps",
            )
            yield Finding(Check.EUREKA_READ, Grade.FAILED, listed.message.rstrip("."), fix)


def _write(address: str, server: EurekaServer) -> Finding:
    """Check that both kinds of writes reach Eureka, and change nothing.

    The renewal of an instance that cannot exist is a 404. Any program says 404, so a registration
    is tried, too: one that Eureka refuses in its own way."""
    try:
        if server.renew(_NOBODY):
            text = (
                f"{address} says that it renewed an instance that does not exist: something "
                "answers in its place"
            )
            return Finding(Check.EUREKA_WRITE, Grade.FAILED, text, _OF_EUREKA_ITSELF)
        server.try_registration()
    except RegistryError as error:
        refusal = unknown_from(error)
        text = f"{address} takes no writes: {refusal.message.rstrip('.')}"
        fix = {
            Cause.DENIED: _PASS_WRITES,
            Cause.UNAVAILABLE: "see that it runs and that writes reach it from here",
        }.get(refusal.cause, _OF_EUREKA_ITSELF)
        return Finding(Check.EUREKA_WRITE, Grade.FAILED, text, fix)
    return Finding(Check.EUREKA_WRITE, Grade.OK, f"{address} takes writes")


def _evicts(address: str, listed: Sequence[ObservedInstance], now: float) -> Finding:
    """Check for instances whose leases ended long ago. A server in self-preservation lists them."""
    overdue = [one for one in listed if one.last_renewal and now - lease_end(one) > _EVICTED_AFTER]
    if not overdue:
        return Finding(
            Check.SELF_PRESERVATION,
            Grade.OK,
            f"{address} lists no instance whose lease ended long ago",
        )
    text = (
        f"{address} evicts nobody: {counted(len(overdue), 'instance')}, such as "
        f"{overdue[0].key}, did not renew"
    )
    until = (
        "while self-preservation lasts, the server lists dead instances "
        "(eureka.server.enable-self-preservation)"
    )
    return Finding(
        Check.SELF_PRESERVATION, Grade.WARNING, text, f"find out why renewals are missing; {until}"
    )


def replicas(batching: Batching) -> Finding:
    """Check that --eureka-url names every replica that the servers name."""
    if batching.on:
        return Finding(Check.REPLICAS, Grade.OK, "--eureka-url names every server")
    fix = "if single calls are enough, use --eureka-batch off"
    return Finding(Check.REPLICAS, Grade.WARNING, batching.why.rstrip("."), fix)


def _owner(look: Look) -> Iterator[Finding]:
    """Check that no other cluster uses this owner, and that no other owner serves the same
    syncers."""
    if not OWNER_PATTERN.fullmatch(look.owner):
        text = "the owner is not known, so clashes of owners were not looked for"
        yield Finding(Check.OWNER, Grade.WARNING, text, "give --owner as run does")
    elif clashes := list(owner_links(look.report)):
        yield from (
            Finding(Check.OWNER, Grade.FAILED, one.text.rstrip("."), one.fix) for one in clashes
        )
    elif isinstance(look.report.registry, Complete):
        yield Finding(Check.OWNER, Grade.OK, f"owner {look.owner} is used by this cluster alone")


def pod_ends(look: Look, interval: float) -> Iterator[Finding]:
    """Check that terminating pods of each workload serve for as long as callers may still call
    them. The next pass, at most `interval` seconds later, cancels a terminating pod. Callers use
    their caches after that."""
    needed = round(interval) + CALLERS_SECONDS
    left: set[str] = set()
    for ref, claim in sorted(claims_in(look.report).items()):
        if (
            not isinstance(claim, Serving)
            or not claim.wanted
            or claim.syncer.spec.get("mode") == "service"
        ):
            continue
        namespace = selected_namespace(claim.syncer)
        pods = look.pods.get(namespace)
        if pods is None:
            left.add(namespace)
        elif isinstance(pods, Unknown):
            text = f"{ref}: its pods could not be looked at: {pods.message}"
            yield Finding(Check.POD_END, Grade.WARNING, text, f"grant list on pods in {namespace}")
        else:
            names = {
                one.pod.name
                for one in endpoints_of(look.report, namespace, claim.services)
                if one.pod
            }
            behind = sorted(
                (one for one in pods.data if one.name in names and not one.terminating),
                key=workload,
            )
            for name, some in groupby(behind, workload):
                yield of_workload(ref, namespace, name, list(some), needed)
    if left:
        text = f"the pods of {counted(len(left), 'more namespace')} were not looked at"
        fix = f"look at them by name: eurekube-sync check -n {min(left)}"
        yield Finding(Check.POD_END, Grade.WARNING, text, fix)


def workload(pod: PodDetail) -> str:
    """Return the object that a person would edit: `Deployment rating`, `StatefulSet db`, or the
    bare pod."""
    kind, _, name = pod.controller.partition(" ")
    if kind == "ReplicaSet":  # its name is its Deployment's name with a hash
        return f"Deployment {name.rpartition('-')[0] or name}"
    return pod.controller or f"pod {pod.name}"


def of_workload(
    ref: SyncerRef, namespace: str, name: str, pods: Sequence[PodDetail], needed: int
) -> Finding:
    """Check that the pods of a workload serve for `needed` seconds after they begin to
    terminate."""
    worst = min(pods, key=_sleeps)
    sleeps, grace = _sleeps(worst), worst.grace
    about = f"{ref}: {name}" + (f" ({counted(len(pods), 'pod')})" if worst.controller else "")
    unreadable = None in worst.pre_stops and not sleeps
    time = "whose time cannot be read" if unreadable else f"of {sleeps:g} s"
    serves = f"{about} has a preStop {time}" if worst.pre_stops else f"{about} has no preStop"
    if sleeps >= needed and grace > sleeps:
        return Finding(Check.POD_END, Grade.OK, serves)
    if unreadable and grace >= needed + _SHUTDOWN:
        killed = f"is killed after {grace:g} s, and its last call comes within {needed} s"
        return Finding(Check.POD_END, Grade.OK, f"{serves}; it {killed}")
    text = f"{serves}, but callers may call it for {needed} s after it begins to terminate"
    if sleeps >= needed:
        text = f"{serves}, but is killed after {grace:g} s"
    container = {
        "name": (*worst.containers, "app")[0],
        "lifecycle": {"preStop": {"sleep": {"seconds": needed}}},
    }
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": needed + _SHUTDOWN,
        "containers": [container],
    }
    fix = "add these lines to the template of the pod, or create the pod again with them"
    if worst.controller:
        kind, _, short = name.partition(" ")
        spec = {"template": {"spec": spec}}
        fix = f"add these lines: kubectl edit {kind.lower()} {short} -n {namespace}"
    manifest = str(yaml.safe_dump({"spec": spec}, sort_keys=False)).rstrip()
    return Finding(Check.POD_END, Grade.WARNING, text, fix, manifest)


def _sleeps(pod: PodDetail) -> float:
    """Return the seconds that a pod's longest `preStop` sleeps."""
    return max((one for one in pod.pre_stops if one is not None), default=0.0)


class Needed(NamedTuple):
    """A right, and what fails without it."""

    verb: str
    resource: str  # with its group and subresource: `eurekasyncers.eurekube.io/status`
    without: str
    where: str | None = (
        None  # one namespace, `""` for the whole cluster, None for the served namespaces
    )
    optional: bool = False  # a pass goes on without it
    name: str = ""  # of one object; empty for all


_DELETED_WITH_IT = "a deleted syncer keeps its instances, as the CRD may have been deleted, too"
_OF_EACH_PASS = (
    Needed("list", "eurekasyncers.eurekube.io", "no syncer is served"),
    Needed("get", "eurekasyncers.eurekube.io", "a status that changed meanwhile is not written"),
    Needed(
        "patch",
        "eurekasyncers.eurekube.io",
        "no finalizer is set, so a deleted syncer leaves orphans",
    ),
    Needed("patch", "eurekasyncers.eurekube.io/status", "no status of a syncer is written"),
    Needed("list", "services", "no syncer finds its Services"),
    Needed("list", "endpointslices.discovery.k8s.io", "no endpoint is found"),
    Needed(
        "list",
        "pods",
        "an instance of a dead pod stays until a slice shows that the pod is gone",
        optional=True,
    ),
    Needed("create", "events", "held removals and conflicts make no events", optional=True),
    Needed("patch", "events", "an event that comes again is not counted", optional=True),
    Needed(
        "get",
        "namespaces",
        "nobody knows which cluster this is: a pass only renews",
        "",
        name="kube-system",
    ),
    Needed("get", _DEFINITIONS, _DELETED_WITH_IT, "", name="eurekasyncers.eurekube.io"),
)


def of_a_pass(
    *, lock: str | None, gates: bool, nodes: bool, grants: str | None = None
) -> Sequence[Needed]:
    """Return the rights that a pass needs. `lock` is the namespace of the lock. `gates`, `nodes`: a
    syncer needs them. `grants` is how Namespaces are read for grants, `list` or `get`."""
    found = [*_OF_EACH_PASS]
    if grants is not None:
        found.append(
            Needed(grants, "namespaces", "grants are unknown, so nothing new is registered")
        )
    if gates:
        found.append(Needed("patch", "pods/status", "pods with the readiness gate are never ready"))
    if nodes:
        found.append(Needed("list", "nodes", "no instance of a node port is found", ""))
    for verb in ("create", "get", "patch") if lock is not None else ():
        found.append(
            Needed(
                verb, "leases.coordination.k8s.io", "no replica gets the lock", lock, optional=True
            )
        )
    return found


TO_INSTALL = (
    Needed("create", _DEFINITIONS, "the CRD cannot be installed", ""),
    Needed(
        "create", "clusterroles.rbac.authorization.k8s.io", "the program cannot get its rights", ""
    ),
    Needed(
        "create",
        "clusterrolebindings.rbac.authorization.k8s.io",
        "the program cannot get its rights",
        "",
    ),
    Needed("create", "roles.rbac.authorization.k8s.io", "the right of the lock cannot be granted"),
    Needed(
        "create",
        "rolebindings.rbac.authorization.k8s.io",
        "the right of the lock cannot be granted",
    ),
    Needed("create", "serviceaccounts", "the program cannot get an account"),
    Needed("create", "cronjobs.batch", "the program cannot run as a CronJob"),
)
"""The rights of the person who installs the program, in the namespace of the installation."""


def rights(
    needed: Sequence[Needed], namespaces: Sequence[str], cluster: Details
) -> Iterator[Finding]:
    """Report each missing right, and the number of those granted. `namespaces` are the served ones;
    empty for the whole cluster."""
    granted = 0
    for one in needed:
        whole, slash, part = one.resource.partition("/")
        plural, _, group = whole.partition(".")
        right = Right(verb=one.verb, resource=f"{plural}{slash}{part}", group=group, name=one.name)
        missing = []
        for place in (namespaces or [""]) if one.where is None else [one.where]:
            answer = cluster.may(right, place)
            if isinstance(answer, Unknown):
                text = f"the rights could not be looked at: {answer.message}"
                yield Finding(
                    Check.RIGHTS, Grade.FAILED, text, "see that the Kubernetes API answers"
                )
                return
            granted += answer.data
            missing += [] if answer.data else [place]
        if missing:
            grade = Grade.WARNING if one.optional else Grade.FAILED
            where = "for the whole cluster" if missing == [""] else f"in {', '.join(missing[:3])}"
            named = f" -n {missing[0]}" if missing[0] else " -A" if one.where is None else ""
            name = f"/{one.name}" if one.name else ""
            subresource = f" --subresource {part}" if part else ""
            asked = f"{whole}{name}{subresource}{named}"
            fix = f"grant it, then ask again: kubectl auth can-i {one.verb} {asked}"
            text = (
                f"the right to {right} is not granted {where}: where it is missing, {one.without}"
            )
            yield Finding(Check.RIGHTS, grade, text, fix)
    if granted:
        yield Finding(Check.RIGHTS, Grade.OK, f"{granted} rights are granted")


def code_of_check(found: Iterable[Finding]) -> ExitCode:
    """Return 0 unless something failed. Warnings do not count."""
    return ExitCode.CHECK_FAILED if any(one.grade is Grade.FAILED for one in found) else ExitCode.OK
