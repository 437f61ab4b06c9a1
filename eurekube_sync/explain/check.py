"""`check`: whether an installation can work, and what would fail. Each requirement gives one
finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from eurekube_sync.controller.diagnosis import all_absent
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.look import Look, LookWorld, look, with_details
from eurekube_sync.controller.one_pass import PassReport, PassSettings
from eurekube_sync.desired.claims import Serving
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.explain.chain import owner_links
from eurekube_sync.explain.links import (
    CALLERS_SECONDS,
    RUNS,
    Check,
    Finding,
    Grade,
    Mark,
    failed,
    passed,
    warned,
)
from eurekube_sync.explain.passes import failing, is_recent, see_to_passes
from eurekube_sync.explain.registry import last_pass_link, lease_end
from eurekube_sync.explain.subject import claims_in, slices_of, syncers_in, workload
from eurekube_sync.manifests.schema import lacking_fields
from eurekube_sync.model.docs import page
from eurekube_sync.model.errors import RegistryError, unknown_from
from eurekube_sync.model.eureka import Batching, InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import CrdAge, PodDetail, Right, SyncerRef
from eurekube_sync.model.ownership import OWNER_PATTERN
from eurekube_sync.model.ports import Details, EurekaServer
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from eurekube_sync.model.text import and_more, counted, some_of

SYNCER = "EurekaSyncer"  # the kind
_MOST_NAMESPACES = 50  # whose Pods are listed to see how long they serve at their end
INSTALL = "eurekube-sync crd | kubectl apply --server-side -f -"
_MOST_FIELDS = 5  # that a line about a CRD names
_SKEW = 10.0  # seconds between two clocks that are worth a warning
# Seconds at which a lease may seem to have ended, or a new write may seem older than the last
_LARGE_SKEW = 60.0
# Real ids have four colons.
_NOBODY = InstanceKey("EUREKUBE-SYNC-CHECK", "eurekube-sync-check-no-such-instance")
# Seconds after the end of a lease within which a server evicts, on a timer of one minute
_EVICTED_AFTER = 240.0
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
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
_FIND_RENEWALS = (
    "find out why renewals are missing; while self-preservation lasts, the server lists dead "
    "instances (eureka.server.enable-self-preservation)"
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
    kubernetes = reachable(cluster, world.cluster.identity())
    answers = kubernetes.grade is Grade.OK
    yield kubernetes
    if answers:
        yield clock("the Kubernetes API", cluster.ahead())
        yield definition(cluster, world.cluster.crd_live(), schema, before=before)
    all_read = True
    for finding in servers(world.servers, world.clock.now()):
        if finding.check is Check.EUREKA_READ and finding.grade is not Grade.OK:
            all_read = False
        yield finding
    if before and answers:
        yield from rights(TO_INSTALL, [namespace], cluster)
    # What follows is about an installation that exists. Without an answer of the API, a look would
    # only repeat that there is none.
    if before or not answers:
        return

    names = sorted(settings.scope.namespaces or ())
    looked = look(seen, settings, names)
    # A server that gives no list says nothing of its replicas, and has its finding above.
    batching = world.registry.batching() if all_read else None
    if batching:
        yield replicas(batching)
    lock = namespace if locked else None
    yield from rights(_needed(looked, settings, lock), names, cluster)
    yield from _absent(looked.report)
    yield from _owner(looked)
    if looked.last_pass is not None:
        yield of_last_pass(looked)
    with_pods = with_details(seen, looked, _selected_namespaces(looked)[:_MOST_NAMESPACES])
    yield from pod_ends(with_pods, interval)


def _selected_namespaces(look: Look) -> list[str]:
    """Return the namespaces whose Services the syncers select."""
    namespaces = set()
    for claim in claims_in(look.report).values():
        namespaces.add(selected_namespace(claim.syncer))
    return sorted(namespaces)


def _needed(look: Look, settings: PassSettings, lock: str | None) -> Sequence[Needed]:
    """Return the rights that a pass of this scope needs; `lock` as for `of_a_pass`."""
    gates = False
    for syncer in syncers_in(look.report):
        if look.asked.takes(syncer) and syncer.spec.get("readinessGate"):
            gates = True
    grants = None
    if settings.scope.granted_only:
        grants = "get" if settings.scope.namespaces else "list"
    # A pass lists these only if a syncer needs them.
    view = look.report.view
    nodes = view is not None and view.nodes is not None
    ingresses = view is not None and view.ingresses is not None
    gateways = view is not None and view.routes is not None
    return of_a_pass(
        lock=lock, gates=gates, nodes=nodes, ingresses=ingresses, gateways=gateways, grants=grants
    )


def _absent(report: PassReport) -> Iterator[Finding]:
    """Name the namespaces that do not exist; a pass for no others has nothing to do."""
    grade = Grade.FAILED if all_absent(report) else Grade.WARNING
    for name in report.absent:
        fix = f"correct --namespace, or create it: kubectl create namespace {name}"
        yield Finding(Check.NAMESPACE, grade, f"namespace {name} does not exist", fix)


def of_last_pass(look: Look) -> Finding:
    """Check that the last pass was good, and not long ago."""
    trouble = failing(look)
    if trouble is not None:
        fix = see_to_passes(look)
        # One failure may end by itself.
        if is_recent(look.last_good, look.at):
            return warned(Check.LAST_PASS, trouble.sentence, fix)
        return failed(Check.LAST_PASS, trouble.sentence, fix)
    last = last_pass_link(look, alone=True)
    if last.mark is Mark.OK:
        return passed(Check.LAST_PASS, last.text)
    fix = last.fix or f"give --owner and --lock as run does, or {RUNS}"
    if last.broken:
        return failed(Check.LAST_PASS, last.text, fix)
    text = last.text
    if last.mark is Mark.NOTE and last.cause:
        text = last.cause  # without the fix, which stands beside it here
    return warned(Check.LAST_PASS, text, fix)


def reachable(cluster: Details, identity: Source[str]) -> Finding:
    """Check that the API answers, and says which cluster it is."""
    server = cluster.server()
    if isinstance(server, Unknown):
        fix = "check --kubeconfig and --context: kubectl version"
        return failed(Check.KUBERNETES, server.message, fix)
    if isinstance(identity, Unknown):
        unknown = "it is unknown which cluster this is (the UID of the namespace kube-system)"
        grant = "grant get on the namespace kube-system, as the installation does"
        text = f"{unknown}: {identity.message}"
        return failed(Check.KUBERNETES, text, f"{grant}: {page('install')}")
    short = identity.data[:8]
    return passed(Check.KUBERNETES, f"Kubernetes {server.data} answers, cluster {short}")


def definition(
    cluster: Details,
    live: Source[CrdAge],
    expected: Mapping[str, Any],
    *,
    before: bool,
    kind: str = SYNCER,
) -> Finding:
    """Check that the CRD of a kind exists, is not being deleted, and has this version's schema.
    `before`: it may be missing."""
    name = f"{kind.lower()}s.eurekube.io"
    crd = f"the CustomResourceDefinition {name}"
    schema = cluster.schema(kind)
    if isinstance(schema, Unknown):
        text = schema.message
        if schema.cause is Cause.CRD_MISSING:
            if before:
                return passed(Check.CRD, f"{crd} is not installed yet")
            # The message of a missing CRD has the command, too.
            text = f"{crd} is not installed"
        return failed(Check.CRD, text, f"install it: {INSTALL}")
    if isinstance(live, Unknown) and live.cause is Cause.CRD_TERMINATING:
        fix = f"look at the deletion before anything else: kubectl get crd {name} -o json"
        return failed(Check.CRD, live.message, fix)
    if schema.data == expected:
        return passed(Check.CRD, f"{crd} is of this version")
    return _of_another_version(crd, schema.data, expected)


def _of_another_version(
    crd: str, schema: Mapping[str, Any], expected: Mapping[str, Any]
) -> Finding:
    """Say whether a CRD is older or newer than the program, by the fields that one of them lacks."""
    fix = f"bring it to this version: {INSTALL}"
    lacking = lacking_fields(schema, expected)
    if lacking:
        drops = some_of(lacking, _MOST_FIELDS)
        return warned(Check.CRD, f"{crd} is older than this program: it drops {drops}", fix)
    newer = lacking_fields(expected, schema)
    if newer:
        lacks = some_of(newer, _MOST_FIELDS)
        text = f"{crd} is newer than this program, which lacks {lacks}"
        fix = "keep it, because an older one drops fields, and upgrade eurekube-sync"
        return warned(Check.CRD, text, fix)
    text = f"{crd} is not of this version: its rules or its descriptions differ"
    return warned(Check.CRD, text, fix)


def dropped(cluster: Details, expected: Mapping[str, Any], kind: str = SYNCER) -> str:
    """Say which fields of a kind its CRD drops, and what mends it; empty if it drops none, or if it
    cannot be read."""
    schema = cluster.schema(kind)
    if isinstance(schema, Unknown):
        return ""
    fields = lacking_fields(schema.data, expected)
    if not fields:
        return ""
    older = f"the CustomResourceDefinition {kind.lower()}s.eurekube.io is older than this program"
    text = f"{older}, and drops {some_of(fields, _MOST_FIELDS)}: {INSTALL}"
    if any(field.startswith("spec.") for field in fields):
        text = f"{text}. Then apply each object again that sets a dropped field: it was not stored"
    return text


def clock(name: str, ahead: Source[float]) -> Finding:
    """Compare a server's clock with ours; `ahead` in seconds."""
    if isinstance(ahead, Unknown):
        text = f"the clock of {name} could not be looked at: {ahead.message}"
        return warned(Check.CLOCK, text)
    seconds = abs(ahead.data)
    if seconds < _SKEW:
        return passed(Check.CLOCK, f"the clock of {name} agrees with ours")
    side = "ahead of" if ahead.data > 0 else "behind"
    text = f"the clock of {name} is {seconds:.0f} s {side} ours: the older of two writes may win"
    fix = "set the time on both machines: timedatectl, chronyc tracking"
    if seconds >= _LARGE_SKEW:
        return failed(Check.CLOCK, text, fix)
    return warned(Check.CLOCK, text, fix)


def servers(by_address: Mapping[str, EurekaServer], now: float) -> Iterator[Finding]:
    """Check each Eureka server; `now` in Unix seconds."""
    if not by_address:
        fix = "give --eureka-url, or set EUREKUBE_SYNC_EUREKA_URL"
        yield failed(Check.EUREKA_READ, "no Eureka is named", fix)
    for address, server in by_address.items():
        listed = server.list_instances()
        if isinstance(listed, Unknown):
            yield _unlisted(address, listed)
            continue
        instances = counted(len(listed.data), "instance")
        yield passed(Check.EUREKA_READ, f"{address} lists {instances}")
        yield _write(address, server)
        yield _evicts(address, listed.data, now)
        # The clock is a call of its own, which may fail although the list came.
        try:
            yield clock(address, Complete(data=server.ahead()))
        except RegistryError as error:
            yield clock(address, unknown_from(error))


def _unlisted(address: str, listed: Unknown) -> Finding:
    fix = f"see that it runs and can be reached from here: curl -i {address}/apps"
    if listed.cause is Cause.DENIED:
        fix = "give its login: --eureka-username and --eureka-password-file, or --eureka-token-file"
    elif listed.cause is Cause.UNUSABLE:
        fix = _RIGHT_URL
    return failed(Check.EUREKA_READ, listed.message, fix)


def _write(address: str, server: EurekaServer) -> Finding:
    """Check that both kinds of writes reach Eureka, and change nothing.

    The renewal of an instance that cannot exist is a 404. Any program says 404, so a registration
    is tried, too: one that Eureka refuses in its own way."""
    try:
        if server.renew(_NOBODY):
            renewed = f"{address} says that it renewed an instance that does not exist"
            text = f"{renewed}: something answers in its place"
            return failed(Check.EUREKA_WRITE, text, _OF_EUREKA_ITSELF)
        server.try_registration()
    except RegistryError as error:
        refusal = unknown_from(error)
        text = f"{address} takes no writes: {refusal.message}"
        fix = _OF_EUREKA_ITSELF
        if refusal.cause is Cause.DENIED:
            fix = _PASS_WRITES
        elif refusal.cause is Cause.UNAVAILABLE:
            fix = "see that it runs and that writes reach it from here"
        return failed(Check.EUREKA_WRITE, text, fix)
    return passed(Check.EUREKA_WRITE, f"{address} takes writes")


def _evicts(address: str, listed: Sequence[ObservedInstance], now: float) -> Finding:
    """Check for instances whose leases ended long ago. A server in self-preservation lists them."""
    overdue = []
    for instance in listed:
        if instance.last_renewal and now - lease_end(instance) > _EVICTED_AFTER:
            overdue.append(instance)
    if not overdue:
        text = f"{address} lists no instance whose lease ended long ago"
        return passed(Check.SELF_PRESERVATION, text)
    instances = counted(len(overdue), "instance")
    first = overdue[0].key
    text = f"{address} evicts nobody: {instances}, such as {first}, did not renew"
    return warned(Check.SELF_PRESERVATION, text, _FIND_RENEWALS)


def replicas(batching: Batching) -> Finding:
    """Check that --eureka-url names every replica that the servers name."""
    if batching.on:
        return passed(Check.REPLICAS, "--eureka-url names every server")
    fix = "if single calls are enough, use --eureka-batch off"
    return warned(Check.REPLICAS, batching.why, fix)


def _owner(look: Look) -> Iterator[Finding]:
    """Check that no other cluster uses this owner, and that no other owner serves the same
    syncers."""
    if not OWNER_PATTERN.fullmatch(look.owner):
        text = "the owner is not known, so clashes of owners were not looked for"
        yield warned(Check.OWNER, text, "give --owner as run does")
        return
    clashes = list(owner_links(look.report))
    for clash in clashes:
        yield failed(Check.OWNER, clash.text, clash.fix)
    if not clashes and isinstance(look.report.registry, Complete):
        text = f"owner {look.owner} is used by this cluster alone"
        yield passed(Check.OWNER, text)


def pod_ends(look: Look, interval: float) -> Iterator[Finding]:
    """Check that terminating pods of each workload serve for as long as callers may still call
    them. The next pass, at most `interval` seconds later, cancels a terminating pod. Callers use
    their caches after that."""
    needed = round(interval) + CALLERS_SECONDS
    left: set[str] = set()
    for ref, claim in sorted(claims_in(look.report).items()):
        # In mode service, callers know the Service's address, and no pod's.
        of_services = claim.syncer.spec.get("mode") == "service"
        if of_services or not isinstance(claim, Serving) or not claim.wanted:
            continue
        namespace = selected_namespace(claim.syncer)
        pods = look.pods.get(namespace)
        if pods is None:  # it is not among the first, whose pods were listed
            left.add(namespace)
        elif isinstance(pods, Unknown):
            text = f"{ref}: its pods could not be looked at: {pods.message}"
            fix = f"grant list on pods in {namespace}"
            yield warned(Check.POD_END, text, fix)
        else:
            workloads = _by_workload(claim, look, pods.data)
            for name, alike in sorted(workloads.items()):
                yield of_workload(ref, namespace, name, alike, needed)
    if left:
        text = f"the pods of {counted(len(left), 'more namespace')} were not looked at"
        fix = f"look at them by name: eurekube-sync check -n {min(left)}"
        yield warned(Check.POD_END, text, fix)


def _by_workload(
    claim: Serving, look: Look, pods: Sequence[PodDetail]
) -> Mapping[str, list[PodDetail]]:
    """Return the pods in the slices of the syncer's Services, without those that terminate, by
    their workload. Bare pods that end alike are one."""
    names: set[str] = set()
    for piece in slices_of(look.report, selected_namespace(claim.syncer), claim.services):
        for endpoint in piece.endpoints:
            if endpoint.pod is not None:
                names.add(endpoint.pod.name)
    alike: dict[str, list[PodDetail]] = {}
    ends_alike: dict[tuple[object, ...], list[PodDetail]] = {}
    for pod in pods:
        if pod.name not in names or pod.terminating:
            continue
        if pod.controller:
            alike.setdefault(workload(pod), []).append(pod)
        else:
            ends_alike.setdefault((pod.pre_stops, pod.grace), []).append(pod)
    for bare in ends_alike.values():
        first = min(map(workload, bare))
        alike[first] = bare
    return alike


def of_workload(
    ref: SyncerRef, namespace: str, name: str, pods: Sequence[PodDetail], needed: int
) -> Finding:
    """Check that the pods of a workload serve for `needed` seconds after they begin to
    terminate.

    | its `preStop`           | its grace period          | finding |
    |-------------------------|---------------------------|---------|
    | sleeps long enough      | is longer                 | passed  |
    | sleeps long enough      | is not                    | warned  |
    | is of an unknown time   | has time for a shutdown   | passed  |
    | is any other, or none   | any                       | warned  |
    """
    worst = min(pods, key=_sleeps)  # they may be of two ReplicaSets
    sleeps = _sleeps(worst)
    unreadable = None in worst.pre_stops and not sleeps
    if unreadable:
        pre_stop = "a preStop whose time cannot be read"
    elif worst.pre_stops:
        pre_stop = f"a preStop of {sleeps:g} s"
    else:
        pre_stop = "no preStop"
    about = f"{ref}: {name}{and_more(len(pods))}"
    if worst.controller:
        number = counted(len(pods), "pod")
        about = f"{ref}: {name} ({number})"
    serves = f"{about} has {pre_stop}"

    grace = worst.grace
    if sleeps >= needed and grace > sleeps:
        return passed(Check.POD_END, serves)
    if unreadable and grace >= needed + _SHUTDOWN:
        killed = f"is killed after {grace:g} s, and its last call comes within {needed} s"
        return passed(Check.POD_END, f"{serves}; it {killed}")
    text = f"{serves}, but callers may call it for {needed} s after it begins to terminate"
    if sleeps >= needed:
        text = f"{serves}, but is killed after {grace:g} s"
    fix = "add these lines to the template of the pod, or create the pod again with them"
    if worst.controller:
        kind, _, short = name.partition(" ")
        fix = f"add these lines: kubectl edit {kind.lower()} {short} -n {namespace}"
    return warned(Check.POD_END, text, fix, _lines_to_add(worst, needed))


def _lines_to_add(pod: PodDetail, needed: int) -> str:
    """Return the YAML with which the pods of a workload, or the bare pod, serve long enough."""
    sleep = {"sleep": {"seconds": needed}}
    container = {
        "name": pod.containers[0] if pod.containers else "app",
        "lifecycle": {"preStop": sleep},
    }
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": needed + _SHUTDOWN,
        "containers": [container],
    }
    if pod.controller:
        spec = {"template": {"spec": spec}}
    lines = yaml.safe_dump({"spec": spec}, sort_keys=False)
    return str(lines).rstrip()


def _sleeps(pod: PodDetail) -> float:
    """Return the seconds that a pod's longest `preStop` sleeps."""
    return max(filter(None, pod.pre_stops), default=0.0)


class Needed(NamedTuple):
    """A right, and what fails without it."""

    verb: str
    resource: str  # with its group and subresource: `eurekasyncers.eurekube.io/status`
    without: str
    where: str | None = None  # a namespace; "" for the whole cluster; None for those served
    optional: bool = False  # a pass goes on without it
    name: str = ""  # of one object; empty for all

    @property
    def right(self) -> Right:
        whole, slash, subresource = self.resource.partition("/")
        plural, _, group = whole.partition(".")
        resource = f"{plural}{slash}{subresource}"
        return Right(verb=self.verb, resource=resource, group=group, name=self.name)


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
    Needed("get", DEFINITIONS, _DELETED_WITH_IT, "", name="eurekasyncers.eurekube.io"),
)


def of_a_pass(
    *,
    lock: str | None,
    gates: bool,
    nodes: bool,
    ingresses: bool = False,
    gateways: bool = False,
    grants: str | None = None,
) -> Sequence[Needed]:
    """Return the rights that a pass needs. `lock` is the namespace of the lock. `gates`, `nodes`,
    `ingresses`, `gateways`: a syncer needs them. `grants` is how Namespaces are read for grants,
    `list` or `get`."""
    needed = [*_OF_EACH_PASS]
    if grants is not None:
        without = "grants are unknown, so nothing new is registered"
        needed.append(Needed(grants, "namespaces", without))
    if gates:
        without = "pods with the readiness gate are never ready"
        needed.append(Needed("patch", "pods/status", without))
    if nodes:
        needed.append(Needed("list", "nodes", "no instance of a node port is found", ""))
    if ingresses:
        without = "no instance of an Ingress is found"
        needed.append(Needed("list", "ingresses.networking.k8s.io", without))
    if gateways:
        for plural in ("referencegrants", "httproutes", "gateways"):
            without = "no instance of a Gateway is found"
            needed.append(Needed("list", f"{plural}.gateway.networking.k8s.io", without))
    if lock is not None:
        leases, without = "leases.coordination.k8s.io", "no replica gets the lock"
        for verb in ("create", "get", "patch"):
            needed.append(Needed(verb, leases, without, lock, optional=True))
    return needed


TO_INSTALL = (
    Needed("create", DEFINITIONS, "the CRD cannot be installed", ""),
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
    for need in needed:
        missing = []
        places = [need.where] if need.where is not None else namespaces or [""]
        for place in places:
            answer = cluster.may(need.right, place)
            # The next question would be answered no better.
            if isinstance(answer, Unknown):
                text = f"the rights could not be looked at: {answer.message}"
                yield failed(Check.RIGHTS, text, "see that the Kubernetes API answers")
                return
            if answer.data:
                granted += 1
            else:
                missing.append(place)
        if missing:
            yield _missing(need, missing)
    if granted:
        yield passed(Check.RIGHTS, f"{granted} rights are granted")


def _missing(need: Needed, places: Sequence[str]) -> Finding:
    """Report a right that is missing in these namespaces, or in the whole cluster."""
    where = f"in {', '.join(places[:3])}"
    if places == [""]:
        where = "for the whole cluster"
    text = f"the right to {need.right} is not granted {where}: where it is missing, {need.without}"
    fix = f"grant it, then ask again: kubectl auth can-i {_asked(need, places[0])}"
    if need.optional:
        return warned(Check.RIGHTS, text, fix)
    return failed(Check.RIGHTS, text, fix)


def _asked(need: Needed, place: str) -> str:
    """Return the arguments of `kubectl auth can-i` that ask for a right in a namespace; empty for
    the whole cluster."""
    resource, _, subresource = need.resource.partition("/")
    asked = f"{need.verb} {resource}"
    if need.name:
        asked += f"/{need.name}"
    if subresource:
        asked += f" --subresource {subresource}"
    if place:
        asked += f" -n {place}"
    elif need.where is None:  # a resource of no namespace takes no -A
        asked += " -A"
    return asked


def code_of_check(findings: Iterable[Finding]) -> ExitCode:
    """Return 0 unless something failed. Warnings do not count."""
    if any(finding.grade is Grade.FAILED for finding in findings):
        return ExitCode.CHECK_FAILED
    return ExitCode.OK
