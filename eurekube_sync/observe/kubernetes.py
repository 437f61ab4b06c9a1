"""Read from Kubernetes what one pass needs. Pods and Nodes cost time and rights, so they are
read only where a syncer needs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from math import inf
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from eurekube_sync.desired.catalog import Catalog, Catalogs, drainable
from eurekube_sync.desired.claims import Desired, NotServed, Serving, every
from eurekube_sync.desired.entries import with_routes_to
from eurekube_sync.desired.heirs import is_put_out_and_left, kept_for
from eurekube_sync.desired.imports import ImportView
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.services import address_kind
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, Syncer, parse, selected_namespace
from eurekube_sync.model.actions import Removal
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import (
    ClusterView,
    CrdAge,
    Drainable,
    HttpRoute,
    Pod,
    PodReadiness,
    Pods,
    SyncerObject,
    SyncerRef,
)
from eurekube_sync.model.ownership import pod_namespace_of, pod_uid_of, syncer_of
from eurekube_sync.model.ports import Clock, Cluster
from eurekube_sync.model.sources import Cause, Complete, Listed, Proof, Source, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Observed

T = TypeVar("T")
U = TypeVar("U")
_FEW_NAMESPACES = 20
_MORE = frozenset({"metadataFrom", "readinessGate", "pod", "hostName"})
"""Fields for which a syncer of mode pod may need more than Services and slices."""
_NOT_NEEDED = Unknown(cause=Cause.NOT_READ, message="no syncer needs this namespace")
_NOTHING: Listed[Any] = Listed(by_namespace={}, elsewhere=_NOT_NEEDED)
_NO_FAILURE = (Cause.NOT_READ, Cause.API_MISSING)
"""Why a list is Unknown although no read of it failed. The syncers that need an API which is not
installed say so themselves."""
_MOMENT = 10.0
"""Seconds for which the answer of `SameCluster` is reused: a later write names a UID or a
resource version anyway."""


class SameCluster:
    """Check that the API still serves the cluster whose UID is known. A kubeconfig that is read
    again after a 401, or a host name, may lead to another cluster. Ask it after all lists,
    before the first change, and before a write to Kubernetes. A cluster without a known UID may
    be any cluster, so its lists prove nothing."""

    def __init__(self, cluster: Cluster, clock: Clock, known: Complete[str]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._known = known
        self._confirmed = -inf

    def doubt(self, otherwise: str) -> Unknown | None:
        """Return why it may be another cluster, and that the pass does `otherwise`; None if it
        is the same."""
        if self._clock.monotonic() - self._confirmed < _MOMENT:
            return None
        identity = self._cluster.identity(anew=True)
        if identity == self._known:
            self._confirmed = self._clock.monotonic()
            return None
        if isinstance(identity, Unknown):
            why = "it is unknown whether the Kubernetes API still serves the same cluster"
            return replace(identity, message=f"{why}: {identity.message}; {otherwise}")
        message = (
            "the Kubernetes API now serves another cluster: the UID of kube-system was "
            f"{self._known.data} and is {identity.data}; {otherwise}. If this is intended, restart "
            "eurekube-sync"
        )
        return Unknown(cause=Cause.UNUSABLE, message=message)


def unread_cluster(identity: Source[str]) -> ClusterView:
    """Return the view of a cluster from which only the identity was read."""
    live: Source[bool] = Complete(data=True)
    return ClusterView(
        identity=identity,
        syncers=_NOTHING,
        services=_NOTHING,
        slices=_NOTHING,
        crd_live=live,
    )


def read_syncers(cluster: Cluster, scope: Scope) -> Listed[SyncerObject]:
    """List all syncers of the scope's namespaces, also those of other labels and classes: a
    syncer that is missing here does not exist, rather than belong to another installation."""
    if scope.namespaces is None:
        return cluster.list_syncers(None)
    return cluster.list_syncers(sorted(scope.namespaces))


def absent_namespaces(cluster: Cluster, view: ClusterView, scope: Scope) -> tuple[str, ...]:
    """Return the scope's namespaces that do not exist; only namespaces without any syncer are
    asked for."""
    absent = []
    for namespace in sorted(scope.namespaces or ()):
        is_empty = view.syncers.of(namespace) == Complete(data=())
        if is_empty and cluster.namespace_exists(namespace) == Complete(data=False):
            absent.append(namespace)
    return tuple(absent)


def read_cluster(
    cluster: Cluster,
    identity: Source[str],
    scope: Scope,
    marked: frozenset[SyncerRef] = frozenset(),
    syncers: Listed[SyncerObject] | None = None,
    pod_drains: bool = False,
) -> ClusterView:
    """Read the syncers, unless they were listed before, and the Services and slices that those
    in scope select. The namespace of a syncer that instances name (`marked`) and that is gone is
    read as well, because its addresses may be other pods' now. With `pod_drains`, the drain
    annotations of Pods are read."""
    if syncers is None:
        syncers = read_syncers(cluster, scope)
    view = replace(unread_cluster(identity), syncers=syncers)
    taken: list[SyncerObject] = []
    deleted: list[SyncerObject] = []
    namespaces: set[str] = set()
    for syncer in every(syncers):
        if not scope.takes(syncer):
            continue
        taken.append(syncer)
        if syncer.deleted is not None:
            deleted.append(syncer)
        if scope.may_select(syncer):
            namespaces.add(selected_namespace(syncer))
    gone = _gone(syncers, marked, scope)
    for ref in gone:
        namespaces.add(ref.namespace)

    # The deletion of a CRD deletes all its objects, although nobody wanted that.
    if gone or deleted:
        view = _with_crd(cluster, view)
    if not namespaces:
        return view
    if scope.granted_only:
        view = replace(view, namespaces=cluster.list_namespaces(_granting(taken, scope)))
    listed = one_by_one(namespaces, scope)
    services = cluster.list_services(listed)
    slices = cluster.list_slices(listed)
    view = replace(view, services=services, slices=slices)
    view = _with_needs(cluster, view, scope)
    if pod_drains:
        view = _with_pod_drains(cluster, view, scope)
    return view


def _gone(
    syncers: Listed[SyncerObject],
    marked: frozenset[SyncerRef],
    scope: Scope,
) -> frozenset[SyncerRef]:
    """Return the marked syncers that a complete list of their namespace does not have."""
    present = {syncer.ref for syncer in every(syncers)}
    gone = set()
    for ref in marked - present:
        if scope.covers(ref) and isinstance(syncers.of(ref.namespace), Complete):
            gone.add(ref)
    return frozenset(gone)


def _with_crd(cluster: Cluster, view: ClusterView) -> ClusterView:
    """Return the view with what the CRD says about the deletions of syncers."""
    crd = cluster.crd_live()
    installed = 0.0
    if isinstance(crd, Complete):
        installed = crd.data.by_ours
    live = _crd_live(crd, every(view.syncers))
    return replace(view, crd_live=live, crd_installed=installed)


def _granting(taken: Iterable[SyncerObject], scope: Scope) -> list[str] | None:
    """Return the Namespaces to read for their grants; None for all. With a Role in each namespace,
    Namespaces can only be read by name."""
    if scope.namespaces is None:
        return None
    return sorted({syncer.namespace for syncer in taken})


def _with_needs(cluster: Cluster, view: ClusterView, scope: Scope) -> ClusterView:
    """Return the view with what some syncers need beside Services and slices."""
    needs = needs_of(view, scope)
    if needs.nodes:
        view = replace(view, nodes=cluster.list_nodes())
    if needs.pods:
        pods = cluster.list_pods(one_by_one(needs.pods, scope))
        view = replace(view, pods=pods)
    if needs.hosts:
        hosts = cluster.list_hosts(one_by_one(needs.hosts, scope))
        view = replace(view, hosts=hosts)
    if needs.ingresses:
        ingresses = cluster.list_ingresses(one_by_one(needs.ingresses, scope))
        view = replace(view, ingresses=ingresses)
    if needs.routes:
        view = _with_routes(cluster, view, needs.routes, scope)
    if needs.readiness:
        readiness = cluster.list_readiness(sorted(needs.readiness))
        view = replace(view, readiness=readiness)
    return view


def _with_routes(
    cluster: Cluster, view: ClusterView, namespaces: frozenset[str], scope: Scope
) -> ClusterView:
    """Return the view with the HTTPRoutes that may lead to Services of these namespaces, and with
    their Gateways. What leads where is written in each object, so no other namespace is read."""
    grants = cluster.list_reference_grants(one_by_one(namespaces, scope))
    with_routes = set(namespaces)
    for namespace in namespaces:
        source = grants.of(namespace)
        if isinstance(source, Complete):
            with_routes |= with_routes_to(source.data)
    routes = cluster.list_routes(one_by_one(with_routes, scope))
    gateways = _NOTHING
    with_gateways = _with_gateways(with_routes, routes)
    if with_gateways:
        gateways = cluster.list_gateways(one_by_one(with_gateways, scope))
    return replace(view, reference_grants=grants, routes=routes, gateways=gateways)


def _with_gateways(with_routes: Iterable[str], routes: Listed[HttpRoute]) -> frozenset[str]:
    """Return the namespaces of the Gateways that these namespaces' routes name."""
    namespaces: set[str] = set()
    for namespace in with_routes:
        source = routes.of(namespace)
        if not isinstance(source, Complete):
            continue
        for route in source.data:
            for parent in route.parents:
                namespaces.add(parent.namespace)
    return frozenset(namespaces)


def one_by_one(namespaces: Collection[str], scope: Scope) -> list[str] | None:
    """Return the namespaces to list one by one; None to list the whole cluster at once."""
    # With a Role in each namespace, the whole cluster cannot be listed.
    if scope.namespaces is not None or len(namespaces) <= _FEW_NAMESPACES:
        return sorted(namespaces)
    return None


def _crd_live(crd: Source[CrdAge], listed: Iterable[SyncerObject]) -> Source[bool]:
    """Say whether people made the deletions in these lists: the CRD is installed, and none of
    the deletions is older. A replica of the API server may answer with a list from before an
    earlier CRD was deleted, next to the CRD that was installed later. A syncer that was deleted
    before this CRD was installed went with the earlier one. Creation times show nothing: a
    syncer that outlives a CRD stays older than the next one, and people delete it all the same.
    A restore of single objects (Velero) restores no deletion, and a snapshot of etcd keeps all
    times. Times are whole seconds; a deletion in the same second counts as a person's."""
    if isinstance(crd, Unknown):
        return crd
    older = []
    for syncer in listed:
        if syncer.deleted is not None and syncer.deleted < crd.data.by_server:
            older.append(syncer.ref)
    if not older:
        return Complete(data=True)
    message = (
        f"the deletion of syncer {min(older)} began before the present CustomResourceDefinition "
        "eurekasyncers.eurekube.io was installed. Either the list is old, or the syncer was "
        "deleted with an earlier definition. If this message stays and the syncer should be "
        f'deleted, annotate it with {ABANDON_ANNOTATION}: "true"'
    )
    return Unknown(cause=Cause.CRD_TERMINATING, message=message)


class Needs(Struct, frozen=True, kw_only=True):
    """Sources to read beside Services and slices."""

    pods: frozenset[str] = frozenset()  # namespaces
    readiness: frozenset[str] = frozenset()  # namespaces
    hosts: frozenset[str] = frozenset()  # namespaces
    ingresses: frozenset[str] = frozenset()  # namespaces
    routes: frozenset[str] = frozenset()  # namespaces
    nodes: bool = False


def needs_of(view: ClusterView, scope: Scope) -> Needs:
    """Return what the syncers need.

    | source | for |
    |---|---|
    | Pods | metadata of pods |
    | Nodes | node ports |
    | Ingresses | addresses of Ingresses |
    | HTTPRoutes, ReferenceGrants and Gateways | addresses of Gateways |
    | whole Pods | a readiness gate, which needs the pods' conditions; host ports; names of nodes |
    """
    catalogs = Catalogs(view)
    pods: set[str] = set()
    readiness: set[str] = set()
    hosts: set[str] = set()
    ingresses: set[str] = set()
    routes: set[str] = set()
    nodes = False
    for syncer in every(view.syncers):
        if not _may_need_more(syncer, scope):
            continue
        namespace = selected_namespace(syncer)
        catalog = catalogs.of(namespace)
        if isinstance(catalog, Unknown):
            continue
        try:
            spec = parse(syncer)
            nodes = nodes or _has_node_ports(spec, catalog.data)
        except InvalidSyncer:
            continue  # its condition says why it is not served
        if spec.needs_pods and syncer.deleted is None:  # the keys of its instances need no metadata
            pods.add(namespace)
        if spec.readiness_gate:
            readiness.add(namespace)
        if spec.at_host or spec.names_nodes:
            hosts.add(namespace)
        if spec.service.address == "Ingress":
            ingresses.add(namespace)
        if spec.service.address == "Gateway":
            routes.add(namespace)
    return Needs(
        pods=frozenset(pods),
        nodes=nodes,
        readiness=frozenset(readiness),
        hosts=frozenset(hosts),
        ingresses=frozenset(ingresses),
        routes=frozenset(routes),
    )


def _may_need_more(syncer: SyncerObject, scope: Scope) -> bool:
    """Return whether the syncer is served and has a field that needs more than Services and slices.
    Most syncers have none, and their specs need not be parsed here."""
    spec = syncer.spec
    asks = spec.get("mode") == "service" or not _MORE.isdisjoint(spec)
    return asks and scope.takes(syncer) and scope.may_select(syncer)


def _has_node_ports(spec: Syncer, catalog: Catalog) -> bool:
    """Return whether instances have the addresses of nodes. Raises InvalidSyncer."""
    if spec.mode != "service" or spec.service.hostname is not None:
        return False
    services = catalog.matching(spec.selector)
    return any(address_kind(service, spec) == "NodePort" for service in services)


def drainable_in(view: ClusterView, scope: Scope) -> frozenset[str]:
    """Return the namespaces whose Pods may be drained by annotation: those in which a syncer of
    mode pod selects. A syncer that is being deleted is not drained any more."""
    namespaces: set[str] = set()
    for syncer in every(view.syncers):
        if syncer.deleted is not None or syncer.spec.get("mode") == "service":
            continue
        if scope.takes(syncer) and scope.may_select(syncer):
            namespaces.add(selected_namespace(syncer))
    return frozenset(namespaces)


def _with_pod_drains(cluster: Cluster, view: ClusterView, scope: Scope) -> ClusterView:
    """Return the view with the drain annotations of Pods. They are read last, so that a failure
    affects nothing else. Pods that were listed for another reason are not listed again."""
    needed = drainable_in(view, scope)
    if not needed:
        return view
    read = view.pods or _NOTHING
    rest = _without_pods(needed, read)
    listed = _NOTHING
    if rest:
        listed = cluster.list_pod_drains(one_by_one(rest, scope))
    drains: dict[str, Source[tuple[Drainable, ...]]] = {}
    for namespace, source in listed.by_namespace.items():
        drains[namespace] = _hinting(source)
    for namespace in needed - rest:
        pods = read.of(namespace)
        drains[namespace] = _made_of(pods, _drains)
    elsewhere = _hinting(listed.elsewhere)
    return replace(view, pod_drains=Listed(by_namespace=drains, elsewhere=elsewhere))


def _drains(pods: Iterable[Pod]) -> tuple[Drainable, ...]:
    return tuple(drainable(pod.uid, pod.annotations) for pod in pods)


def _hinting(source: Source[tuple[Drainable, ...]]) -> Source[tuple[Drainable, ...]]:
    """Return the source; if the right is missing, with the option that needs it."""
    if isinstance(source, Complete) or source.cause is not Cause.DENIED:
        return source
    return replace(source, message=f"{source.message}: grant it, or leave out --drain-annotations")


def read_pods(
    cluster: Cluster,
    view: ClusterView,
    desired: Desired,
    observed: Observed,
    scope: Scope,
) -> ClusterView:
    """Return the view with the pods of each namespace that has instances which only the list of
    pods shows to be dead, as far as their syncers may select there:

    - of a syncer that is not served, or that waits for slices or an address
    - of a syncer that gives them up, while the syncer that may claim them could not be read
    - that a person set OUT_OF_SERVICE, and that have no endpoint any more

    The last two are kept if that list fails, so its failure is none of the pass."""
    needed = _with_doubted_pods(desired, observed, scope)
    wished = _with_left_pods(desired, observed, scope)
    read = view.pods or _NOTHING
    pods: dict[str, Source[tuple[Pod, ...]]] = {}
    rest: list[str] = []
    for namespace in sorted(needed | wished):
        source = read.of(namespace)
        if isinstance(source, Complete):
            # A list of the whole cluster names no namespace that has no pod.
            pods[namespace] = source
        elif _is_unread(source):
            rest.append(namespace)
    if rest:
        listed = cluster.list_pods(rest)
        for namespace in rest:
            source = listed.of(namespace)
            if namespace in needed or isinstance(source, Complete):
                pods[namespace] = source
    if not pods:
        return view
    return replace(view, pods=replace(read, by_namespace={**read.by_namespace, **pods}))


def _with_doubted_pods(desired: Desired, observed: Observed, scope: Scope) -> frozenset[str]:
    """Return the namespaces with instances that their own syncers keep until their pods are
    gone."""
    doubted: set[str] = set()
    for ref, claim in desired.claims.items():
        if not isinstance(claim, NotServed | Serving) or not claim.reads_pods:
            continue
        for key in observed.keys_by_syncer.get(ref, ()):
            instance = observed.ours[key]
            namespace = pod_namespace_of(instance)
            if namespace is None or not scope.may_reach(ref.namespace, namespace):
                continue
            if claim.keeps_until_pod_gone(instance):
                doubted.add(namespace)
    return frozenset(doubted)


def _with_left_pods(desired: Desired, observed: Observed, scope: Scope) -> frozenset[str]:
    """Return the namespaces with instances that nobody wants, and that are kept all the same."""
    namespaces: set[str] = set()
    heirs = desired.heirs is not None and desired.heirs.any
    for key, instance in observed.ours.items():
        put_out = instance.status is InstanceStatus.OUT_OF_SERVICE
        if not (heirs or put_out):
            continue  # nearly always
        server = desired.server_of(key)
        # The limits come later, so a syncer with limit 0 still seems to want its instances.
        if server is not None and not server.spec.claims_nothing:
            continue
        syncer = syncer_of(instance)
        namespace = pod_namespace_of(instance)
        if syncer is None or namespace is None or not scope.may_reach(syncer.namespace, namespace):
            continue
        claim = desired.claims.get(syncer)
        if is_put_out_and_left(instance, claim) or kept_for(instance, desired) is not None:
            namespaces.add(namespace)
    return frozenset(namespaces)


def pods_behind(
    cluster: Cluster,
    view: ClusterView,
    removals: Iterable[Removal],
    observed: Observed,
    scope: Scope,
) -> Pods:
    """Return the pod UIDs of each namespace that may have the pods of these removals, as far as
    their syncers may select there. Namespaces that were read before are not read again."""
    namespaces = _with_removed_pods(removals, observed, scope)
    read = view.pods or _NOTHING
    rest = _without_pods(namespaces, read)
    listed = _NOTHING
    if rest:
        listed = cluster.list_pods(one_by_one(rest, scope))
    pods: dict[str, Source[frozenset[str]]] = {}
    for namespace in sorted(namespaces):
        source = listed.of(namespace) if namespace in rest else read.of(namespace)
        pods[namespace] = _made_of(source, _uids)
    return pods


def _with_removed_pods(
    removals: Iterable[Removal], observed: Observed, scope: Scope
) -> Counter[str]:
    """Return the namespaces that may have the pods of these removals, with the number of the
    removals in each."""
    namespaces: Counter[str] = Counter()
    for removal in removals:
        namespace = pod_namespace_of(observed.ours[removal.key])
        if namespace and scope.may_reach(removal.syncer.namespace, namespace):
            namespaces[namespace] += 1
    return namespaces


def readiness_behind(
    cluster: Cluster, removals: Iterable[Removal], observed: Observed, scope: Scope
) -> Mapping[str, Source[tuple[PodReadiness, ...]]]:
    """Return the whole pods of the namespaces with the most of these removals. Whole pods are
    large, so of a fault of the whole cluster some namespaces have to do."""
    counts = _with_removed_pods(removals, observed, scope)
    # A list of metadata alone, as the brake's proof of dead pods takes it, has no readiness. The
    # slices have it, but not of a pod that a wrong selector leaves out, and a lost node controller
    # makes them differ from the pods: to tell these two apart is what the evidence is for.
    # Equal numbers by name, so that each pass of a hold reads the same namespaces.
    by_count = sorted(counts, key=lambda namespace: (-counts[namespace], namespace))
    if not by_count:
        return {}
    most = by_count[:_FEW_NAMESPACES]
    listed = cluster.list_readiness(sorted(most))
    return {namespace: listed.of(namespace) for namespace in most}


def living_pods(pods: Listed[Pod] | None) -> Mapping[str, Complete[frozenset[str]]]:
    """Return the UIDs of the pods of each namespace whose list is complete."""
    living: dict[str, Complete[frozenset[str]]] = {}
    if pods is None:
        return living
    for namespace, source in pods.by_namespace.items():
        if isinstance(source, Complete):
            living[namespace] = Complete(data=_uids(source.data))
    return living


def pod_gone(instance: ObservedInstance, pods: Pods) -> Proof | None:
    """Return the proof that the pod of an instance is gone: a complete list of its namespace's
    pods without its UID."""
    uid = pod_uid_of(instance)
    namespace = pod_namespace_of(instance)
    if uid is None or namespace is None:
        return None
    listed = pods.get(namespace)
    if not isinstance(listed, Complete) or uid in listed.data:
        return None
    return listed.proof


def _uids(pods: Iterable[Pod]) -> frozenset[str]:
    return frozenset(pod.uid for pod in pods)


def _made_of(source: Source[T], change: Callable[[T], U]) -> Source[U]:
    if isinstance(source, Unknown):
        return source
    return Complete(data=change(source.data))


def _without_pods(namespaces: Iterable[str], pods: Listed[Pod]) -> set[str]:
    """Return those of the namespaces whose Pods were not listed before."""
    without: set[str] = set()
    for namespace in namespaces:
        if _is_unread(pods.of(namespace)):
            without.add(namespace)
    return without


def _is_unread(source: Source[Any]) -> bool:
    """Say whether nobody tried to read it. A list that failed is not tried again in this pass."""
    return isinstance(source, Unknown) and source.cause is Cause.NOT_READ


class SourceKind(StrEnum):
    """What is read from Kubernetes, as messages name it."""

    API = "Kubernetes API"
    SYNCERS = "EurekaSyncers"
    IMPORTS = "EurekaImports"
    SERVICES = "Services"
    SLICES = "EndpointSlices"
    NAMESPACES = "Namespaces"
    PODS = "Pods"
    NODES = "Nodes"
    INGRESSES = "Ingresses"
    REFERENCE_GRANTS = "ReferenceGrants"
    ROUTES = "HTTPRoutes"
    GATEWAYS = "Gateways"
    CRD = "CRD"
    DRAINS = "drain annotations of Pods"


class Unread(NamedTuple):
    """A source that could not be read."""

    kind: SourceKind
    namespace: str  # empty for the whole cluster, and for what is of no namespace
    source: Unknown

    @property
    def name(self) -> str:
        if not self.namespace:
            return self.kind.value
        return f"{self.kind} of {self.namespace}"

    @property
    def needed(self) -> bool:
        """Whether more than drains is unknown without it."""
        return self.kind is not SourceKind.DRAINS


_FIELDS = {
    "identity": SourceKind.API,
    "syncers": SourceKind.SYNCERS,
    "services": SourceKind.SERVICES,
    "slices": SourceKind.SLICES,
    "namespaces": SourceKind.NAMESPACES,
    "pods": SourceKind.PODS,
    "readiness": SourceKind.PODS,
    "hosts": SourceKind.PODS,
    "nodes": SourceKind.NODES,
    "ingresses": SourceKind.INGRESSES,
    "reference_grants": SourceKind.REFERENCE_GRANTS,
    "routes": SourceKind.ROUTES,
    "gateways": SourceKind.GATEWAYS,
    "crd_live": SourceKind.CRD,
    "pod_drains": SourceKind.DRAINS,
}
"""The fields of a view in the order of the messages."""


def unread(view: ClusterView | None, imports: ImportView | None = None) -> tuple[Unread, ...]:
    """Return all sources that could not be read. A list that failed for two purposes, with one
    cause, counts once."""
    failed: dict[tuple[SourceKind, str, Cause], Unread] = {}
    sources: set[Unknown] = set()
    for read, field, kind in _fields_of(view, imports):
        for namespace, source in _parts(getattr(read, field)):
            if not isinstance(source, Unknown) or source.cause in _NO_FAILURE:
                continue
            # Drain annotations may be those of Pods that were listed for another purpose.
            if kind is SourceKind.DRAINS and source in sources:
                continue
            sources.add(source)
            key = kind, namespace, source.cause
            failed.setdefault(key, Unread(kind, namespace, source))
    return tuple(failed.values())


def _fields_of(
    view: ClusterView | None, imports: ImportView | None
) -> Iterator[tuple[object, str, SourceKind]]:
    """Yield each field of the views, with its kind."""
    if view is not None:
        for field, kind in _FIELDS.items():
            yield view, field, kind
    if imports is not None:
        yield imports, "imports", SourceKind.IMPORTS
        for field in ("services", "slices", "namespaces", "crd_live"):
            yield imports, field, _FIELDS[field]


def _parts(
    read: Listed[Any] | Source[Any] | None,
) -> Iterator[tuple[str, Source[Any] | None]]:
    """Yield the parts of a field, each with its namespace; that of all others first."""
    if isinstance(read, Listed):
        yield "", read.elsewhere
        yield from sorted(read.by_namespace.items())
    else:
        yield "", read
