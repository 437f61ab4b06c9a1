"""Reads from Kubernetes all that one pass needs, each source for itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from eurekube_sync.desired.claims import Desired, NotServed, Serving
from eurekube_sync.desired.drain import Kind, drainable
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, selected_namespace
from eurekube_sync.model.actions import Removal
from eurekube_sync.model.kubernetes import ClusterView, Drainable, Node, Pod, Pods, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import pod_namespace_of
from eurekube_sync.model.ports import Cluster
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.observe.needs import drain_needs_of, needs_of

T = TypeVar("T")
U = TypeVar("U")
_FEW_NAMESPACES = 20
_NOT_NEEDED = Unknown(cause=Cause.NOT_READ, message="no syncer needs this namespace")
_NOTHING: Listed[Any] = Listed(by_namespace={}, elsewhere=_NOT_NEEDED)


def unread_cluster(identity: Source[str]) -> ClusterView:
    """A cluster of which nothing else was asked."""
    live: Source[bool] = Complete(data=True)
    return ClusterView(identity=identity, syncers=_NOTHING, services=_NOTHING, slices=_NOTHING, crd_live=live)


def read_syncers(cluster: Cluster, scope: Scope) -> Listed[SyncerObject]:
    """All syncers of the scope's namespaces, those of other labels and classes as well: one that is not in it is gone,
    and not merely somebody else's."""
    return cluster.list_syncers(None if scope.namespaces is None else sorted(scope.namespaces))


def absent_namespaces(cluster: Cluster, view: ClusterView, scope: Scope) -> tuple[str, ...]:
    """Namespaces that the scope names and that do not exist: asked for only where no syncer was listed."""
    empty = [name for name in sorted(scope.namespaces or ()) if view.syncers.of(name) == Complete(data=())]
    return tuple(name for name in empty if cluster.namespace_exists(name) == Complete(data=False))


def read_cluster(
    cluster: Cluster,
    identity: Source[str],
    scope: Scope,
    marked: frozenset[SyncerRef] = frozenset(),
    syncers: Listed[SyncerObject] | None = None,
    drains: Collection[Kind] = (),
) -> ClusterView:
    """The syncers, unless they were listed before, and the Services and slices that those in scope select: namespace
    by namespace while these are few, else the whole cluster in one walk. A namespace whose syncers are gone is read as
    well, as long as Eureka has instances of them: their addresses may be other pods' now.

    `marked` are the syncers that Eureka's instances name. The CRD is asked for when one of them is missing, or some
    syncer is being deleted: while a CRD goes, its objects are deleted, or gone, and nobody wished it. One that was
    installed after a deletion that is listed says nothing about that.

    `drains` are the kinds whose drain annotations are looked for, beside those of Services.
    """
    syncers = read_syncers(cluster, scope) if syncers is None else syncers
    live: Source[bool] = Complete(data=True)
    installed = 0.0
    there = {syncer.ref for syncer in _all(syncers)}
    missing = [
        ref
        for ref in marked
        if ref not in there and scope.covers(ref) and isinstance(syncers.of(ref.namespace), Complete)
    ]
    taken = [syncer for syncer in _all(syncers) if scope.takes(syncer)]
    if missing or any(syncer.deleted is not None for syncer in taken):
        crd = cluster.crd_live()
        installed = crd.data if isinstance(crd, Complete) else 0.0
        live = _crd_live(crd, syncers)
    selected = {selected_namespace(syncer) for syncer in taken if scope.may_select(syncer)}
    used = sorted(selected | {ref.namespace for ref in missing})
    if not used:
        return replace(unread_cluster(identity), syncers=syncers, crd_live=live, crd_installed=installed)
    needed = used if scope.namespaces is not None or len(used) <= _FEW_NAMESPACES else None
    granting = None if scope.namespaces is None else sorted({syncer.namespace for syncer in taken})
    view = ClusterView(
        identity=identity,
        syncers=syncers,
        namespaces=cluster.list_namespaces(granting) if scope.granted_only else None,
        services=cluster.list_services(needed),
        slices=cluster.list_slices(needed),
        crd_live=live,
        crd_installed=installed,
    )
    return _with_drains(cluster, _with_needs(cluster, view, scope), scope, drains)


def _crd_live(found: Source[float], syncers: Listed[SyncerObject]) -> Source[bool]:
    """Whether the deletions in these lists are people's: the CRD lives, and none of them is older than it.

    A replica of the API server may answer a list as it was while an earlier CRD went, and the CRD beside it is the one
    that was installed since: what was deleted before that went, or was going, with the earlier one. When syncers were
    created is not asked: those that outlive a CRD whose own finalizer was taken off by hand are older than the next one
    for ever, and people delete them all the same. Only if that was before the next CRD is the deletion held, for nobody
    knows whose wish it was, until it is abandoned.

    A restore from a backup holds nothing: one object by object (Velero: CRDs first) gives every time anew and brings no
    deletion along, and a snapshot of etcd keeps all times as they were. The API tells whole seconds, and the same
    second counts for the person; where the clocks of two API servers differ, a deletion is held that was made sooner
    than that after the CRD was installed.
    """
    if isinstance(found, Unknown):
        return found
    older = [syncer.ref for syncer in _all(syncers) if syncer.deleted is not None and syncer.deleted < found.data]
    if not older:
        return Complete(data=True)
    message = (
        f"syncer {min(older)} was deleted before the CustomResourceDefinition eurekasyncers.eurekube.io was installed. "
        "Either the list is old, or the syncer was deleted with an earlier CRD. If this message stays and the syncer "
        f'should be deleted, annotate it with {ABANDON_ANNOTATION}: "true"'
    )
    return Unknown(cause=Cause.CRD_TERMINATING, message=message)


def _with_needs(cluster: Cluster, view: ClusterView, scope: Scope) -> ClusterView:
    """The view with Pods and Nodes, where a syncer cannot do without."""
    needs = needs_of(view, scope)
    if needs.nodes:
        view = replace(view, nodes=cluster.list_nodes())
    if needs.pods:
        many = scope.namespaces is None and len(needs.pods) > _FEW_NAMESPACES
        view = replace(view, pods=cluster.list_pods(None if many else sorted(needs.pods)))
    if needs.readiness:
        view = replace(view, readiness=cluster.list_readiness(sorted(needs.readiness)))
    return view


def _with_drains(cluster: Cluster, view: ClusterView, scope: Scope, wanted: Collection[Kind]) -> ClusterView:
    """The view with what tells which Pods and Nodes are drained. Read last: where it fails, nothing else does. What was
    listed for another reason is not listed twice."""
    needs = drain_needs_of(view, scope, wanted)
    if needs.pods:
        read = view.pods or _NOTHING
        here = {name: _made_of(read.of(name), _drained_pods) for name in needs.pods if not _is_unread(read.of(name))}
        rest = sorted(needs.pods - here.keys())
        many = scope.namespaces is None and len(rest) > _FEW_NAMESPACES
        more = cluster.list_pod_drains(None if many else rest) if rest else _NOTHING
        by_namespace = {**{name: _hinting(source, "services") for name, source in more.by_namespace.items()}, **here}
        view = replace(
            view, pod_drains=Listed(by_namespace=by_namespace, elsewhere=_hinting(more.elsewhere, "services"))
        )
    if needs.nodes:
        read_nodes = _made_of(view.nodes, _drained_nodes) if view.nodes is not None else None
        view = replace(view, node_drains=read_nodes or _hinting(cluster.list_node_drains(), "pods"))
    return view


def _drained_pods(pods: Iterable[Pod]) -> tuple[Drainable, ...]:
    return tuple(drainable(pod.uid, pod.annotations) for pod in pods)


def _drained_nodes(nodes: Iterable[Node]) -> tuple[Drainable, ...]:
    return tuple(Drainable(id=node.name, drained=node.drained, ignored=node.ignored) for node in nodes)


def _hinting(source: Source[tuple[Drainable, ...]], instead: str) -> Source[tuple[Drainable, ...]]:
    """Nobody needs this right who does not want it."""
    if isinstance(source, Complete) or source.cause is not Cause.DENIED:
        return source
    return replace(source, message=f"{source.message}: grant it, or set --drain-annotations {instead}")


def read_pods(cluster: Cluster, view: ClusterView, desired: Desired, observed: Observed, scope: Scope) -> ClusterView:
    """The view with the pods of each namespace that has instances of a syncer that is not served, or that awaits slices
    or an address: nothing else says which of them still live. A namespace that the syncer may not select from is not
    read."""
    registered = observed.keys_by_syncer
    namespaces = {
        namespace
        for ref, claim in desired.claims.items()
        if isinstance(claim, NotServed | Serving) and claim.reads_pods
        for key in registered.get(ref, ())
        if claim.keeps_until_pod_gone(observed.ours[key])
        and (namespace := pod_namespace_of(observed.ours[key]))
        and scope.may_reach(ref.namespace, namespace)
    }
    read = view.pods or _NOTHING
    # A list of the whole cluster names no namespace that has no pod.
    here = {name: source for name in namespaces if isinstance(source := read.of(name), Complete)}
    rest = sorted(name for name in namespaces if _is_unread(read.of(name)))
    if not here and not rest:
        return view
    more = cluster.list_pods(rest) if rest else _NOTHING
    by_namespace = {**read.by_namespace, **here, **{name: more.of(name) for name in rest}}
    return replace(view, pods=replace(read, by_namespace=by_namespace))


def pods_behind(
    cluster: Cluster, view: ClusterView, going: Iterable[Removal], observed: Observed, scope: Scope
) -> Pods:
    """The pods of each namespace where one of these may have its own, as far as its syncer may select there: namespace
    by namespace while these are few, else the whole cluster in one walk. What was read already is not read twice."""
    marked = ((one.syncer, pod_namespace_of(observed.ours[one.key])) for one in going)
    namespaces = {name for syncer, name in marked if name and scope.may_reach(syncer.namespace, name)}
    read = view.pods or _NOTHING
    here = {name: read.of(name) for name in namespaces if not _is_unread(read.of(name))}
    rest = sorted(namespaces - here.keys())
    many = scope.namespaces is None and len(rest) > _FEW_NAMESPACES
    more = cluster.list_pods(None if many else rest) if rest else _NOTHING
    return {name: _made_of(here.get(name) or more.of(name), _uids) for name in sorted(namespaces)}


def _uids(pods: Iterable[Pod]) -> frozenset[str]:
    return frozenset(pod.uid for pod in pods)


def _made_of(source: Source[T], change: Callable[[T], U]) -> Source[U]:
    return source if isinstance(source, Unknown) else Complete(data=change(source.data))


def _is_unread(source: Source[Any]) -> bool:
    return isinstance(source, Unknown) and source.cause is Cause.NOT_READ


def living_pods(view: ClusterView) -> Mapping[str, Complete[frozenset[str]]]:
    """UIDs of the pods of each namespace whose list is complete."""
    listed = view.pods.by_namespace if view.pods else {}
    return {
        namespace: Complete(data=_uids(source.data))
        for namespace, source in listed.items()
        if isinstance(source, Complete)
    }


def unread(view: ClusterView | None) -> Iterator[tuple[str, Unknown]]:
    """All that could not be read, by name; what tells of drains, too, and each failed list once."""
    told = list(unknown_sources(view))
    yield from told
    failed = {source for _, source in told}
    for name, source in _failed("drain annotations of Pods", view.pod_drains) if view else ():
        if source not in failed:
            yield name, source
    if view and isinstance(view.node_drains, Unknown) and view.node_drains not in failed:
        yield "drain annotations of Nodes", view.node_drains


def unknown_sources(view: ClusterView | None) -> Iterator[tuple[str, Unknown]]:
    """What could not be read and holds something up, by name; a source that was not needed is not among it."""
    if view is None:
        return
    if isinstance(view.identity, Unknown):
        yield "Kubernetes API", view.identity
    yield from _failed("EurekaSyncers", view.syncers)
    yield from _failed("Services", view.services)
    yield from _failed("EndpointSlices", view.slices)
    yield from _failed("Namespaces", view.namespaces)
    yield from _failed("Pods", view.pods)
    yield from _failed("Pods", view.readiness)
    if isinstance(view.nodes, Unknown):
        yield "Nodes", view.nodes
    if isinstance(view.crd_live, Unknown):
        yield "CRD", view.crd_live


def _failed(name: str, listed: Listed[Any] | None) -> Iterator[tuple[str, Unknown]]:
    sources = [("", listed.elsewhere), *sorted(listed.by_namespace.items())] if listed else []
    for namespace, source in sources:
        if isinstance(source, Unknown) and source.cause is not Cause.NOT_READ:
            yield f"{name} of {namespace}" if namespace else name, source


def _all(syncers: Listed[SyncerObject]) -> Iterator[SyncerObject]:
    for source in syncers.by_namespace.values():
        if isinstance(source, Complete):
            yield from source.data
