"""What a pass has to read beside Services and slices: Pods and Nodes cost time and rights, so only where needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from eurekube_sync.desired.catalog import Catalog, Catalogs
from eurekube_sync.desired.claims import every
from eurekube_sync.desired.drain import Kind
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.services import address_kind
from eurekube_sync.desired.spec import Mode, ServiceAddress, Syncer, parse, selected_namespace
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import ClusterView, SyncerObject
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What has to be read beside Services and slices, or where the drain annotation is looked for."""

    pods: frozenset[str] = frozenset()
    """Namespaces."""
    nodes: bool = False
    readiness: frozenset[str] = frozenset()
    """Namespaces."""


def drain_needs_of(view: ClusterView, scope: Scope, wanted: Collection[Kind]) -> Needs:
    """Where the drain annotation is looked for, as far as it is `wanted`: Pods where syncers of mode pod select, and
    Nodes for these, and for node ports, for which they were read. What is being deleted is not drained any more."""
    namespaces = {
        selected_namespace(syncer)
        for syncer in (every(view.syncers) if wanted else ())
        if syncer.deleted is None
        and syncer.spec.get("mode") != "service"
        and scope.takes(syncer)
        and scope.may_select(syncer)
    }
    return Needs(
        pods=frozenset(namespaces if Kind.POD in wanted else ()),
        nodes=Kind.NODE in wanted and (view.nodes is not None or bool(namespaces)),
    )


def needs_of(view: ClusterView, scope: Scope) -> Needs:
    """What the syncers cannot do without: Pods where metadata comes from them, Nodes for node ports, and for zones
    where the endpoints do not tell them, whole Pods for a readiness gate."""
    catalogs = Catalogs(view)
    pods: set[str] = set()
    readiness: set[str] = set()
    nodes = False
    for syncer in _with_wishes(view, scope):
        namespace = selected_namespace(syncer)
        catalog = catalogs.of(namespace)
        if isinstance(catalog, Unknown):
            continue
        try:
            spec = parse(syncer)
            nodes = nodes or _needs_nodes(spec, catalog.data)
        except InvalidSyncer:
            continue  # it will freeze, and says why
        if spec.needs_pods and syncer.deleted is None:
            pods.add(namespace)
        if spec.conduct.readiness_gate:
            readiness.add(namespace)
    return Needs(pods=frozenset(pods), nodes=nodes, readiness=frozenset(readiness))


_WISHES = ("metadataFrom", "zone", "readinessGate")


def _with_wishes(view: ClusterView, scope: Scope) -> Iterator[SyncerObject]:
    """Most syncers have none of the fields that could need more: their specs are not parsed twice."""
    for syncer in every(view.syncers):
        wishes = syncer.spec.get("mode") == "service" or any(syncer.spec.get(field) for field in _WISHES)
        if wishes and scope.takes(syncer) and scope.may_select(syncer):
            yield syncer


def _needs_nodes(spec: Syncer, catalog: Catalog) -> bool:
    if spec.mode is Mode.SERVICE:
        services = catalog.matching(spec.selector) if spec.service.hostname is None else ()
        return any(address_kind(service, spec) is ServiceAddress.NODE_PORT for service in services)
    if not spec.zone.from_endpoint:
        return False
    slices = [piece for service in catalog.matching(spec.selector) for piece in catalog.slices_of(service)]
    return any(endpoint.zone is None for piece in slices for endpoint in piece.endpoints)
