"""What a pass reads for imports: the imports themselves, Services and slices, and how old Eureka's
registry is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eurekube_sync.desired.claims import every
from eurekube_sync.desired.imports import ImportView
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.imports import ImportObject, ImportWrites
from eurekube_sync.model.kubernetes import ClusterView, CrdAge, EndpointSlice, Service
from eurekube_sync.model.ports import Cluster
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.kubernetes import one_by_one

_NOT_NEEDED = Unknown(cause=Cause.NOT_READ, message="no import needs it")
_NOTHING: Listed[Any] = Listed(by_namespace={}, elsewhere=_NOT_NEEDED)


def read_imports(
    cluster: Cluster, writes: ImportWrites, exports: ClusterView, scope: Scope
) -> ImportView:
    """List the imports, and what those in scope need. What was listed for the syncers is not listed
    again. The slices are those of the whole scope, because they show which addresses are in the
    cluster."""
    namespaces = None
    if scope.namespaces is not None:
        namespaces = sorted(scope.namespaces)
    imports = writes.list_imports(namespaces)
    view = ImportView(imports=imports, services=_NOTHING, slices=_NOTHING)
    needed: set[str] = set()
    deleted: list[ImportObject] = []
    for import_ in every(imports):
        if not scope.takes_import(import_):
            continue
        needed.add(import_.namespace)
        if import_.deleted is not None:
            deleted.append(import_)
    if not needed:
        return view

    # The deletion of a CRD deletes all its objects, although nobody wanted that.
    if deleted:
        crd = writes.import_crd_live()
        view = replace(view, crd_live=_crd_live(crd, deleted))
    if scope.granted_only:
        granting = None if namespaces is None else sorted(needed)
        view = replace(view, namespaces=cluster.list_namespaces(granting))
    services = _services(cluster, exports, needed, scope)
    slices = _slices(cluster, exports, namespaces)
    return replace(view, services=services, slices=slices)


def _services(
    cluster: Cluster, exports: ClusterView, needed: set[str], scope: Scope
) -> Listed[Service]:
    """Return the Services of these namespaces. A list that is needed has those of the syncers as
    well, so that the adapter keeps to know them."""
    listed = exports.services
    if isinstance(listed.elsewhere, Complete) or needed <= listed.by_namespace.keys():
        return listed
    together = needed.union(listed.by_namespace)
    return cluster.list_services(one_by_one(together, scope))


def _slices(
    cluster: Cluster, exports: ClusterView, namespaces: list[str] | None
) -> Listed[EndpointSlice]:
    """Return the EndpointSlices of these namespaces; None for all."""
    listed = exports.slices
    if isinstance(listed.elsewhere, Complete):
        return listed
    if namespaces is not None and listed.by_namespace.keys() >= set(namespaces):
        return listed
    return cluster.list_slices(namespaces)


def _crd_live(crd: Source[CrdAge], imports: Iterable[ImportObject]) -> Source[bool]:
    """Say whether people made the deletions, as `observe/kubernetes` does of syncers."""
    if isinstance(crd, Unknown):
        return crd
    for import_ in imports:
        if import_.deleted is not None and import_.deleted < crd.data.by_server:
            message = (
                f"the deletion of import {import_.ref} began before the present "
                "CustomResourceDefinition eurekaimports.eurekube.io was installed, so it may have "
                "been deleted with an earlier one"
            )
            return Unknown(cause=Cause.CRD_TERMINATING, message=message)
    return Complete(data=True)


def registry_age(instances: Iterable[ObservedInstance], newest: float) -> float | None:
    """Return for how many seconds at least the registry has had its oldest instance; None if no
    instance has a time of registration, 0 without instances. A Eureka that starts again answers
    with an empty list, and then with new registrations. `newest` is the latest renewal in the list,
    in Unix seconds: so only the server's own clock counts."""
    times = {instance.registered for instance in instances}
    if not times:
        return 0.0
    times.discard(0)  # Eureka gave no time of registration
    if not times:
        return None
    oldest = min(times) / 1000
    return max(0.0, newest - oldest)
