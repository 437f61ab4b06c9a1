"""Read from Kubernetes what one pass needs. Pods and Nodes cost time and rights, so they are read
only where a syncer needs them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from math import inf
from typing import Any, TypeVar

from eurekube_sync.desired.catalog import Catalogs, Kind, drainable
from eurekube_sync.desired.claims import Desired, NotServed, Serving, every
from eurekube_sync.desired.heirs import is_put_out_and_left, kept_for
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.services import address_kind
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, parse, selected_namespace
from eurekube_sync.model.actions import Removal
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import (
    ClusterView,
    CrdAge,
    Drainable,
    Pod,
    Pods,
    SyncerObject,
    SyncerRef,
)
from eurekube_sync.model.ownership import pod_namespace_of, pod_uid_of, syncer_of
from eurekube_sync.model.ports import Clock, Cluster
from eurekube_sync.model.sources import Cause, Complete, Listed, Proof, Source, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.observe.eureka import Observed

T = TypeVar("T")
U = TypeVar("U")
_FEW_NAMESPACES = 20
_NOT_NEEDED = Unknown(cause=Cause.NOT_READ, message="no syncer needs this namespace")
_NOTHING: Listed[Any] = Listed(by_namespace={}, elsewhere=_NOT_NEEDED)
_MOMENT = 10.0
"""Seconds for which the answer of `SameCluster` is reused: a later write names a UID or a resource
version anyway."""


class SameCluster:
    """Check that the API still serves the cluster whose UID is known. A kubeconfig that is read
    again after a 401, or a host name, may lead to another cluster. Ask it after all lists, before
    the first change, and before a write to Kubernetes. A cluster without a known UID may be any
    cluster, so its lists prove nothing."""

    def __init__(self, cluster: Cluster, clock: Clock, known: Complete[str]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._known = known
        self._confirmed = -inf

    def doubt(self, otherwise: str) -> Unknown | None:
        """Return why it may be another cluster, and that the pass does `otherwise`; None if it is
        the same."""
        if self._clock.monotonic() - self._confirmed < _MOMENT:
            return None
        found = self._cluster.identity(anew=True)
        if found == self._known:
            self._confirmed = self._clock.monotonic()
            return None
        if isinstance(found, Unknown):
            why = "it is unknown whether the Kubernetes API still serves the same cluster"
            return replace(found, message=f"{why}: {found.message}; {otherwise}")
        message = (
            "the Kubernetes API now serves another cluster: the UID of kube-system was "
            f"{self._known.data} and is "
            f"{found.data}; {otherwise}. If this is intended, restart eurekube-sync"
        )
        return Unknown(cause=Cause.UNUSABLE, message=message)


def unread_cluster(identity: Source[str]) -> ClusterView:
    """Return the view of a cluster from which only the identity was read."""
    live: Source[bool] = Complete(data=True)
    return ClusterView(
        identity=identity, syncers=_NOTHING, services=_NOTHING, slices=_NOTHING, crd_live=live
    )


def read_syncers(cluster: Cluster, scope: Scope) -> Listed[SyncerObject]:
    """List all syncers of the scope's namespaces, also those of other labels and classes: a syncer
    that is missing here does not exist, rather than belong to another installation."""
    return cluster.list_syncers(None if scope.namespaces is None else sorted(scope.namespaces))


def absent_namespaces(cluster: Cluster, view: ClusterView, scope: Scope) -> tuple[str, ...]:
    """Return the scope's namespaces that do not exist; only namespaces without any syncer are asked
    for."""
    return tuple(
        name
        for name in sorted(scope.namespaces or ())
        if view.syncers.of(name) == Complete(data=())
        and cluster.namespace_exists(name) == Complete(data=False)
    )


def read_cluster(
    cluster: Cluster,
    identity: Source[str],
    scope: Scope,
    marked: frozenset[SyncerRef] = frozenset(),
    syncers: Listed[SyncerObject] | None = None,
    drains: Collection[Kind] = (),
) -> ClusterView:
    """Read the syncers, unless they were listed before, and the Services and slices that those in
    scope select. The namespace of a syncer that instances name (`marked`) and that is gone is read
    as well, because its addresses may be other pods' now. The CRD is read if a syncer is gone or
    being deleted: the deletion of a CRD deletes all its objects, although nobody wanted that.
    `drains` are the kinds beside Services whose drain annotations are read."""
    syncers = read_syncers(cluster, scope) if syncers is None else syncers
    view = replace(unread_cluster(identity), syncers=syncers)
    listed = list(every(syncers))
    absent = (ref for ref in marked - {syncer.ref for syncer in listed} if scope.covers(ref))
    missing = [ref for ref in absent if isinstance(syncers.of(ref.namespace), Complete)]
    taken = [syncer for syncer in listed if scope.takes(syncer)]
    if missing or any(syncer.deleted is not None for syncer in taken):
        crd = cluster.crd_live()
        installed = crd.data.by_ours if isinstance(crd, Complete) else 0.0
        view = replace(view, crd_live=_crd_live(crd, listed), crd_installed=installed)
    selected = {selected_namespace(syncer) for syncer in taken if scope.may_select(syncer)}
    used = selected | {ref.namespace for ref in missing}
    if not used:
        return view
    granting = None if scope.namespaces is None else sorted({syncer.namespace for syncer in taken})
    view = replace(
        view,
        namespaces=cluster.list_namespaces(granting) if scope.granted_only else None,
        services=cluster.list_services(_one_by_one(used, scope)),
        slices=cluster.list_slices(_one_by_one(used, scope)),
    )
    needs = needs_of(view, scope)
    if needs.nodes:
        view = replace(view, nodes=cluster.list_nodes())
    if needs.pods:
        view = replace(view, pods=cluster.list_pods(_one_by_one(needs.pods, scope)))
    if needs.readiness:
        view = replace(view, readiness=cluster.list_readiness(sorted(needs.readiness)))
    return _with_drains(cluster, view, scope, drains)


def _one_by_one(namespaces: Collection[str], scope: Scope) -> list[str] | None:
    """Return the namespaces to list one by one; None to list the whole cluster at once."""
    few = scope.namespaces is not None or len(namespaces) <= _FEW_NAMESPACES
    return sorted(namespaces) if few else None


def _crd_live(found: Source[CrdAge], listed: Iterable[SyncerObject]) -> Source[bool]:
    """Say whether people made the deletions in these lists: the CRD is installed, and none of the
    deletions is older. A replica of the API server may answer with a list from before an earlier
    CRD was deleted, next to the CRD that was installed later. A syncer that was deleted before this
    CRD was installed went with the earlier one. Creation times show nothing: a syncer that outlives
    a CRD stays older than the next one, and people delete it all the same. A restore of single
    objects (Velero) restores no deletion, and a snapshot of etcd keeps all times. Times are whole
    seconds; a deletion in the same second counts as a person's."""
    if isinstance(found, Unknown):
        return found
    older = [
        syncer.ref
        for syncer in listed
        if syncer.deleted is not None and syncer.deleted < found.data.by_server
    ]
    if not older:
        return Complete(data=True)
    message = (
        f"the deletion of syncer {min(older)} began before the present CustomResourceDefinition "
        "eurekasyncers.eurekube.io was installed. Either the list is old, or the syncer was "
        "deleted with an earlier "
        "definition. If this message stays and the syncer should be deleted, annotate it with "
        f'{ABANDON_ANNOTATION}: "true"'
    )
    return Unknown(cause=Cause.CRD_TERMINATING, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Sources to read beside Services and slices, or to search for drain annotations."""

    pods: frozenset[str] = frozenset()  # namespaces
    readiness: frozenset[str] = frozenset()  # namespaces
    nodes: bool = False


def needs_of(view: ClusterView, scope: Scope) -> Needs:
    """Return what the syncers need: Pods for metadata from them; Nodes for node ports, and for
    zones that the endpoints lack; pod conditions for a readiness gate."""
    catalogs = Catalogs(view)
    pods: set[str] = set()
    readiness: set[str] = set()
    nodes = False
    for syncer in every(view.syncers):
        # Most syncers have none of these fields, and their specs need not be parsed here.
        fields = any(syncer.spec.get(field) for field in ("metadataFrom", "zone", "readinessGate"))
        if (
            not (fields or syncer.spec.get("mode") == "service")
            or not scope.takes(syncer)
            or not scope.may_select(syncer)
        ):
            continue
        namespace = selected_namespace(syncer)
        catalog = catalogs.of(namespace)
        if isinstance(catalog, Unknown):
            continue
        try:
            spec = parse(syncer)
            if spec.mode == "service" and spec.service.hostname is None and not nodes:
                nodes = any(
                    address_kind(one, spec) == "NodePort"
                    for one in catalog.data.matching(spec.selector)
                )
            elif spec.zone.from_endpoint and not nodes:
                chosen = catalog.data.matching(spec.selector)
                pieces = [piece for service in chosen for piece in catalog.data.slices_of(service)]
                nodes = any(
                    endpoint.zone is None for piece in pieces for endpoint in piece.endpoints
                )
        except InvalidSyncer:
            continue  # its condition says why it is not served
        if spec.needs_pods and syncer.deleted is None:
            pods.add(namespace)
        if spec.readiness_gate:
            readiness.add(namespace)
    return Needs(pods=frozenset(pods), nodes=nodes, readiness=frozenset(readiness))


def drain_needs_of(view: ClusterView, scope: Scope, wanted: Collection[Kind]) -> Needs:
    """Return where to look for drain annotations of the `wanted` kinds: on Pods where a syncer of
    mode pod selects, and on Nodes for these, and for node ports. A syncer that is being deleted is
    not drained any more."""
    living = (one for one in (every(view.syncers) if wanted else ()) if one.deleted is None)
    of_pods = (one for one in living if one.spec.get("mode") != "service" and scope.takes(one))
    namespaces = {selected_namespace(one) for one in of_pods if scope.may_select(one)}
    return Needs(
        pods=frozenset(namespaces if Kind.POD in wanted else ()),
        nodes=Kind.NODE in wanted and (view.nodes is not None or bool(namespaces)),
    )


def _with_drains(
    cluster: Cluster, view: ClusterView, scope: Scope, wanted: Collection[Kind]
) -> ClusterView:
    """Return the view with the drain annotations of Pods and Nodes. They are read last, so that a
    failure affects nothing else. Objects that were listed for another reason are not listed
    again."""
    needs = drain_needs_of(view, scope, wanted)
    if needs.pods:
        read = view.pods or _NOTHING
        here = {name: read.of(name) for name in needs.pods if not _is_unread(read.of(name))}
        rest = needs.pods - here.keys()
        more = cluster.list_pod_drains(_one_by_one(rest, scope)) if rest else _NOTHING
        found = {name: _hinting(source, "services") for name, source in more.by_namespace.items()}
        found |= {
            name: _made_of(
                source, lambda pods: tuple(drainable(pod.uid, pod.annotations) for pod in pods)
            )
            for name, source in here.items()
        }
        view = replace(
            view,
            pod_drains=Listed(by_namespace=found, elsewhere=_hinting(more.elsewhere, "services")),
        )
    if not needs.nodes:
        return view
    if view.nodes is None:
        return replace(view, node_drains=_hinting(cluster.list_node_drains(), "pods"))
    read_nodes = _made_of(
        view.nodes,
        lambda nodes: tuple(
            Drainable(id=one.name, drained=one.drained, ignored=one.ignored) for one in nodes
        ),
    )
    return replace(view, node_drains=read_nodes)


def _hinting(source: Source[tuple[Drainable, ...]], instead: str) -> Source[tuple[Drainable, ...]]:
    """Return the source; if the right is missing, with the option that makes it unnecessary."""
    if isinstance(source, Complete) or source.cause is not Cause.DENIED:
        return source
    return replace(
        source, message=f"{source.message}: grant it, or set --drain-annotations {instead}"
    )


def read_pods(
    cluster: Cluster, view: ClusterView, desired: Desired, observed: Observed, scope: Scope
) -> ClusterView:
    """Return the view with the pods of each namespace that has instances which only the list of
    pods shows to be dead, as far as their syncers may select there:

    - of a syncer that is not served, or that waits for slices or an address
    - of a syncer that gives them up, while the syncer that may claim them could not be read
    - that a person set OUT_OF_SERVICE, and that have no endpoint any more

    The last two are kept if that list fails, so its failure is none of the pass."""
    needed = _with_doubted_pods(desired, observed, scope)
    wished = _with_left_pods(desired, observed, scope) - needed
    read = view.pods or _NOTHING
    # A list of the whole cluster names no namespace that has no pod.
    here = {
        name: source for name in needed | wished if isinstance(source := read.of(name), Complete)
    }
    rest = sorted(name for name in needed | wished if _is_unread(read.of(name)))
    if not here and not rest:
        return view
    more = cluster.list_pods(rest) if rest else _NOTHING
    by_namespace: dict[str, Source[tuple[Pod, ...]]] = {**read.by_namespace, **here}
    for name in rest:
        source = more.of(name)
        if name in needed or isinstance(source, Complete):
            by_namespace[name] = source
    return replace(view, pods=replace(read, by_namespace=by_namespace))


def _with_doubted_pods(desired: Desired, observed: Observed, scope: Scope) -> frozenset[str]:
    """Return the namespaces with instances that their own syncers keep until their pods are
    gone."""
    registered = observed.keys_by_syncer
    return frozenset(
        namespace
        for ref, claim in desired.claims.items()
        if isinstance(claim, NotServed | Serving) and claim.reads_pods
        for key in registered.get(ref, ())
        if claim.keeps_until_pod_gone(observed.ours[key])
        and (namespace := pod_namespace_of(observed.ours[key]))
        and scope.may_reach(ref.namespace, namespace)
    )


def _with_left_pods(desired: Desired, observed: Observed, scope: Scope) -> frozenset[str]:
    """Return the namespaces with instances that nobody wants, and that are kept all the same."""
    found: set[str] = set()
    heirs = desired.heirs is not None and desired.heirs.any
    for key, instance in observed.ours.items():
        put_out = instance.status is InstanceStatus.OUT_OF_SERVICE
        if not (heirs or put_out):
            continue  # nearly always
        server = desired.server_of(key)
        # The limits come later, so a syncer with limit 0 still seems to want its instances.
        if server is not None and not server.conduct.claims_nothing:
            continue
        syncer, namespace = syncer_of(instance), pod_namespace_of(instance)
        if syncer is None or namespace is None or not scope.may_reach(syncer.namespace, namespace):
            continue
        left = is_put_out_and_left(instance, desired.claims.get(syncer))
        if left or kept_for(instance, desired) is not None:
            found.add(namespace)
    return frozenset(found)


def pods_behind(
    cluster: Cluster,
    view: ClusterView,
    removals: Iterable[Removal],
    observed: Observed,
    scope: Scope,
) -> Pods:
    """Return the pod UIDs of each namespace that may have the pods of these removals, as far as
    their syncers may select there. Namespaces that were read before are not read again."""
    marked = ((one.syncer, pod_namespace_of(observed.ours[one.key])) for one in removals)
    namespaces = {
        name for syncer, name in marked if name and scope.may_reach(syncer.namespace, name)
    }
    read = view.pods or _NOTHING
    rest = {name for name in namespaces if _is_unread(read.of(name))}
    more = cluster.list_pods(_one_by_one(rest, scope)) if rest else _NOTHING
    return {
        name: _made_of((more if name in rest else read).of(name), _uids)
        for name in sorted(namespaces)
    }


def living_pods(pods: Listed[Pod] | None) -> Mapping[str, Complete[frozenset[str]]]:
    """Return the UIDs of the pods of each namespace whose list is complete."""
    listed = pods.by_namespace.items() if pods else ()
    return {
        name: Complete(data=_uids(source.data))
        for name, source in listed
        if isinstance(source, Complete)
    }


def pod_gone(instance: ObservedInstance, pods: Pods) -> Proof | None:
    """Return the proof that the pod of an instance is gone: a complete list of its namespace's pods
    without its UID."""
    uid, listed = pod_uid_of(instance), pods.get(pod_namespace_of(instance) or "")
    if uid is None or not isinstance(listed, Complete) or uid in listed.data:
        return None
    return listed.proof


def _uids(pods: Iterable[Pod]) -> frozenset[str]:
    return frozenset(pod.uid for pod in pods)


def _made_of(source: Source[T], change: Callable[[T], U]) -> Source[U]:
    return source if isinstance(source, Unknown) else Complete(data=change(source.data))


def _is_unread(source: Source[Any]) -> bool:
    return isinstance(source, Unknown) and source.cause is Cause.NOT_READ


def unread(view: ClusterView | None) -> Iterator[tuple[str, Unknown]]:
    """List all sources that could not be read, with their names; a list that failed for two
    purposes once."""
    return chain.from_iterable(unread_by_kind(view).values())


def unread_by_kind(view: ClusterView | None) -> Mapping[str, list[tuple[str, Unknown]]]:
    """Group the same sources by what was listed, in any namespace."""
    needed = list(_failed(view, _NEEDED))
    reported = {source for *_, source in needed}
    found: dict[str, dict[tuple[str, Cause], Unknown]] = {}
    for kind, name, source in (
        *needed,
        *(one for one in _failed(view, _DRAINS) if one[2] not in reported),
    ):
        found.setdefault(kind, {}).setdefault((name, source.cause), source)
    return {
        kind: [(name, source) for (name, _), source in sources.items()]
        for kind, sources in found.items()
    }


def unknown_sources(view: ClusterView | None) -> Iterator[tuple[str, Unknown]]:
    """List the sources that were needed and could not be read, with their names."""
    return ((name, source) for _, name, source in _failed(view, _NEEDED))


_NEEDED = {
    "identity": "Kubernetes API",
    "syncers": "EurekaSyncers",
    "services": "Services",
    "slices": "EndpointSlices",
    "namespaces": "Namespaces",
    "pods": "Pods",
    "readiness": "Pods",
    "nodes": "Nodes",
    "crd_live": "CRD",
}
_DRAINS = {"pod_drains": "drain annotations of Pods", "node_drains": "drain annotations of Nodes"}


def _failed(
    view: ClusterView | None, kinds: Mapping[str, str]
) -> Iterator[tuple[str, str, Unknown]]:
    for field, kind in kinds.items() if view else ():
        listed: Listed[Any] | Source[Any] | None = getattr(view, field)
        sources = [("", listed)]
        if isinstance(listed, Listed):
            sources = [("", listed.elsewhere), *sorted(listed.by_namespace.items())]
        for namespace, source in sources:
            if isinstance(source, Unknown) and source.cause is not Cause.NOT_READ:
                yield kind, f"{kind} of {namespace}" if namespace else kind, source
