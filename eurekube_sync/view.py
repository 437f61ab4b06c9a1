"""Reads from Kubernetes all that one pass needs, each source for itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from eurekube_sync.desired import Desired, Frozen
from eurekube_sync.model import Cause, ClusterView, Complete, Listed, Source, SyncerObject, SyncerRef, Unknown
from eurekube_sync.observed import Observed, Scope, keys_by_syncer
from eurekube_sync.ports import Cluster

_FEW_NAMESPACES = 20
_NOT_NEEDED = Unknown(cause=Cause.NOT_READ, message="no syncer needs this namespace")


def unread_cluster(identity: Source[str]) -> ClusterView:
    """A cluster of which nothing else was asked."""
    nothing: Listed[Any] = Listed(by_namespace={}, elsewhere=_NOT_NEEDED)
    live: Source[bool] = Complete(data=True)
    return ClusterView(identity=identity, syncers=nothing, services=nothing, slices=nothing, crd_live=live)


def read_cluster(
    cluster: Cluster, identity: Source[str], scope: Scope, marked: frozenset[SyncerRef] = frozenset()
) -> ClusterView:
    """The syncers in scope, and the Services and slices of their namespaces: namespace by namespace while these are
    few, else the whole cluster in one walk.

    `marked` are the syncers that Eureka's instances name. The CRD is asked for when one of them is missing, or some
    syncer is being deleted: while a CRD goes, its objects are deleted, or gone, and nobody wished it.
    """
    chosen = None if scope.namespaces is None else sorted(scope.namespaces)
    syncers = cluster.list_syncers(chosen)
    live: Source[bool] = Complete(data=True)
    there = {syncer.ref for syncer in _all(syncers)}
    missing = any(
        ref not in there and scope.covers(ref) and isinstance(syncers.of(ref.namespace), Complete) for ref in marked
    )
    if missing or any(syncer.deleted is not None for syncer in _all(syncers)):
        live = cluster.crd_live()
    used = sorted({syncer.namespace for syncer in _all(syncers)})
    if not used:
        return replace(unread_cluster(identity), syncers=syncers, crd_live=live)
    needed = used if chosen is not None or len(used) <= _FEW_NAMESPACES else None
    return ClusterView(
        identity=identity,
        syncers=syncers,
        services=cluster.list_services(needed),
        slices=cluster.list_slices(needed),
        crd_live=live,
    )


def read_pods(cluster: Cluster, view: ClusterView, desired: Desired, observed: Observed) -> ClusterView:
    """The view with the pods of each namespace where instances of a frozen syncer stand: nothing else tells which of
    them still live."""
    standing = keys_by_syncer(observed)
    namespaces = {
        ref.namespace
        for ref, claim in desired.claims.items()
        if isinstance(claim, Frozen) and not claim.unknown and ref in standing
    }
    return replace(view, pods=cluster.list_pods(sorted(namespaces))) if namespaces else view


def living_pods(view: ClusterView) -> Mapping[str, Complete[frozenset[str]]]:
    """UIDs of the pods of each namespace whose list is complete."""
    listed = view.pods.by_namespace if view.pods else {}
    return {
        namespace: Complete(data=frozenset(pod.uid for pod in source.data))
        for namespace, source in listed.items()
        if isinstance(source, Complete)
    }


def unknown_sources(view: ClusterView | None) -> Iterator[tuple[str, Unknown]]:
    """What could not be read, by name; a source that was not needed is not among it."""
    if view is None:
        return
    if isinstance(view.identity, Unknown):
        yield "cluster identity", view.identity
    for name, listed in (
        ("EurekaSyncers", view.syncers),
        ("Services", view.services),
        ("EndpointSlices", view.slices),
        *((("Pods", view.pods),) if view.pods else ()),
    ):
        sources = [("", listed.elsewhere), *((f" of {n}", s) for n, s in sorted(listed.by_namespace.items()))]
        for where, source in sources:
            if isinstance(source, Unknown) and source.cause is not Cause.NOT_READ:
                yield name + where, source
    if isinstance(view.crd_live, Unknown):
        yield "CRD", view.crd_live


def _all(syncers: Listed[SyncerObject]) -> Iterator[SyncerObject]:
    for source in syncers.by_namespace.values():
        if isinstance(source, Complete):
            yield from source.data
