"""The `Cluster` port on the Kubernetes API: lists, reads and writes. Safe in several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.json import Decoder

from eurekube_sync.adapters.kubernetes import calls, objects, routing, syncers
from eurekube_sync.adapters.kubernetes.calls import CORE, METADATA_ONLY, NOT_READ, Kind
from eurekube_sync.adapters.kubernetes.connection import Connection
from eurekube_sync.adapters.kubernetes.custom import (
    GROUP,
    CustomKind,
    CustomObjects,
    crd_missing,
)
from eurekube_sync.adapters.kubernetes.imports import Imports
from eurekube_sync.adapters.tries import Tries
from eurekube_sync.model import kubernetes as model
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.ownership import CLUSTER_PATTERN
from eurekube_sync.model.ports import Clock, Random
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import rfc_3339

_ITEM = Decoder(objects.Item)
_NAMESPACE = Decoder(objects.NamespaceItem)
SYNCERS = CustomKind(
    listed=Kind(
        GROUP,
        "eurekasyncers",
        "EurekaSyncerList",
        Decoder(syncers.SyncerItem),
        crd_missing("eurekasyncers"),
        remembered=True,
    ),
    noun="syncer",
    article="a EurekaSyncer",
    status_fields=syncers.status_fields,
)
_SERVICES = Kind(CORE, "services", "ServiceList", Decoder(objects.ServiceItem), remembered=True)
_SLICES = Kind(
    calls.DISCOVERY,
    "endpointslices",
    "EndpointSliceList",
    Decoder(objects.SliceItem),
    remembered=True,
)
_NODES = Kind(CORE, "nodes", "NodeList", Decoder(objects.NodeItem), namespaced=False)
_NAMESPACES = Kind(
    CORE, "namespaces", METADATA_ONLY, Decoder(objects.NamespaceItem), namespaced=False
)
_INGRESSES = Kind(
    "/apis/networking.k8s.io/v1", "ingresses", "IngressList", Decoder(routing.IngressItem)
)


def _of_gateway_api(version: str, plural: str, list_kind: str, items: Decoder[Any]) -> Kind[Any]:
    """Return a kind of the Gateway API, whose CRDs many clusters do not have."""
    group = "gateway.networking.k8s.io"
    message = (
        f"the Gateway API is not installed, or has no {plural} of {version}: "
        f"kubectl get crd {plural}.{group}"
    )
    missing = Unknown(cause=Cause.API_MISSING, message=message)
    return Kind(f"/apis/{group}/{version}", plural, list_kind, items, missing)


_ROUTES = _of_gateway_api("v1", "httproutes", "HTTPRouteList", Decoder(routing.RouteItem))
_REFERENCE_GRANTS = _of_gateway_api(
    "v1beta1", "referencegrants", "ReferenceGrantList", Decoder(routing.GrantItem)
)
_GATEWAYS = _of_gateway_api("v1", "gateways", "GatewayList", Decoder(routing.GatewayItem))
_PODS = Kind(CORE, "pods", METADATA_ONLY, Decoder(objects.PodItem))
_POD_DRAINS = Kind(CORE, "pods", METADATA_ONLY, Decoder(objects.PodDrainItem))
_HOSTS = Kind(CORE, "pods", "PodList", Decoder(objects.PodHostItem))
_WHOLE_PODS = Kind(CORE, "pods", "PodList", Decoder(objects.ReadinessItem))


class KubernetesCluster:
    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock,
        random: Random,
        tries: int = 4,
        limit: TimeLimit | None = None,
        answer_seconds: float = 60.0,
        count: Callable[[str], None] = lambda _: None,
    ) -> None:
        bounds = limit or TimeLimit(clock)
        limited = Tries(clock, random, bounds, answer_seconds, most=tries, count=count)
        self._calls = calls.Calls(connection, limited)
        self._syncers = CustomObjects(self._calls, clock, SYNCERS)
        self.imports = Imports(self._calls, clock)
        self._events = syncers.Events(self._calls)
        self._identity: Complete[str] | None = None

    def identity(self, *, anew: bool = False) -> Source[str]:
        """Return the UID of the namespace kube-system. Once known it is read again only if
        `anew`."""
        if self._identity is not None and not anew:
            return self._identity
        path = f"{CORE}/namespaces/kube-system"
        absent = calls.unusable("the Kubernetes API shows no namespace kube-system with a UID")
        namespace = self._calls.read_object(
            path, _ITEM.decode, "the namespace kube-system", absent=absent
        )
        if isinstance(namespace, Unknown):
            return namespace
        uid = namespace.data.metadata.uid
        if not CLUSTER_PATTERN.fullmatch(uid):
            return absent
        identity = Complete(data=uid)
        self._identity = self._identity or identity
        return identity

    def list_syncers(self, namespaces: Sequence[str] | None) -> Listed[model.SyncerObject]:
        return self._syncers.list_all(namespaces)

    def list_services(self, namespaces: Sequence[str] | None) -> Listed[model.Service]:
        return self._calls.list_all(_SERVICES, namespaces)

    def list_slices(self, namespaces: Sequence[str] | None) -> Listed[model.EndpointSlice]:
        return self._calls.list_all(_SLICES, namespaces)

    def list_ingresses(self, namespaces: Sequence[str] | None) -> Listed[model.Ingress]:
        return self._calls.list_all(_INGRESSES, namespaces)

    def list_reference_grants(
        self, namespaces: Sequence[str] | None
    ) -> Listed[model.ReferenceGrant]:
        return self._calls.list_all(_REFERENCE_GRANTS, namespaces)

    def list_routes(self, namespaces: Sequence[str] | None) -> Listed[model.HttpRoute]:
        return self._calls.list_all(_ROUTES, namespaces)

    def list_gateways(self, namespaces: Sequence[str] | None) -> Listed[model.Gateway]:
        return self._calls.list_all(_GATEWAYS, namespaces)

    def list_pods(self, namespaces: Sequence[str] | None) -> Listed[model.Pod]:
        return self._calls.list_all(_PODS, namespaces)

    def list_pod_drains(self, namespaces: Sequence[str] | None) -> Listed[model.Drainable]:
        return self._calls.list_all(_POD_DRAINS, namespaces)

    def list_readiness(self, namespaces: Sequence[str]) -> Listed[model.PodReadiness]:
        return self._calls.list_all(_WHOLE_PODS, namespaces)

    def list_hosts(self, namespaces: Sequence[str] | None) -> Listed[model.PodHost]:
        return self._calls.list_all(_HOSTS, namespaces)

    def open_gate(self, pod: model.PodReadiness, *, reason: str, message: str, at: float) -> None:
        """Patch strategically, which keeps other conditions. The UID makes the API refuse another
        Pod of that name."""
        condition = {
            "type": objects.REGISTERED,
            "status": "True",
            "reason": reason,
            "message": message[: syncers.LONGEST_MESSAGE],
            "lastTransitionTime": rfc_3339(at),
        }
        body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
        path = f"{CORE}/namespaces/{pod.namespace}/pods/{pod.name}/status"
        call = calls.writing("PATCH", path, body, calls.STRATEGIC_MERGE_PATCH)
        answer = self._calls.send(call)
        another = "metadata.uid" in calls.refused_fields(answer)  # it is immutable [real 1.36]
        if answer.status not in (200, 404) and not another:
            raise calls.refusal(call, answer)

    def list_nodes(self) -> Source[tuple[model.Node, ...]]:
        return self._calls.list_all(_NODES, None).of("")

    def list_namespaces(self, names: Sequence[str] | None) -> Listed[model.Namespace]:
        """List all Namespaces, or get each: a Role may allow to get its own Namespace, but not to
        list them."""
        sources: dict[str, Source[tuple[model.Namespace, ...]]] = {}
        if names is None:
            listed = self._calls.list_all(_NAMESPACES, None).of("")
            if isinstance(listed, Unknown):
                return Listed(by_namespace={}, elsewhere=_or_without_grants(listed))
            for namespace in listed.data:
                sources[namespace.name] = Complete(data=(namespace,))
            return Listed(by_namespace=sources, elsewhere=Complete(data=()))
        for name in names:
            source = sources[name] = self._namespace(name)
            if isinstance(source, Complete) or source.cause is not Cause.UNAVAILABLE:
                continue
            # Each other Namespace would take all tries, too.
            message = (
                f"this Namespace was not read, because the API gave no answer for Namespace {name}"
            )
            rest = Unknown(cause=Cause.UNAVAILABLE, message=message)
            return Listed(by_namespace=dict.fromkeys(names, rest) | sources, elsewhere=NOT_READ)
        return Listed(by_namespace=sources, elsewhere=NOT_READ)

    def _namespace(self, name: str) -> Source[tuple[model.Namespace, ...]]:
        path, absent = f"{CORE}/namespaces/{name}", calls.unusable("there is none")
        namespace = self._calls.read_object(
            path, _NAMESPACE.decode, f"Namespace {name}", absent=absent
        )
        if namespace is absent:
            return Complete(data=())
        if isinstance(namespace, Unknown):
            return _or_without_grants(namespace)
        if namespace.data.metadata.name != name:
            return calls.unusable(f"the Kubernetes API answered with a Namespace other than {name}")
        return Complete(data=(namespace.data.read(),))

    def crd_live(self) -> Source[model.CrdAge]:
        return self._syncers.crd_live()

    def namespace_exists(self, name: str) -> Source[bool]:
        """Say whether the API knows the Namespace. The Role that we ship does not allow this; a
        person's may."""
        answer = self._calls.read_one(f"{CORE}/namespaces/{name}")
        if isinstance(answer, Unknown):
            return answer
        return Complete(data=answer.status == 200)

    def add_finalizer(self, syncer: model.SyncerObject) -> model.SyncerObject:
        return self._syncers.add_finalizer(syncer)

    def remove_finalizer(self, syncer: model.SyncerObject) -> None:
        self._syncers.remove_finalizer(syncer)

    def write_status(self, syncer: model.SyncerObject, status: model.SyncerStatus) -> None:
        self._syncers.write_status(syncer, status)

    def record_event(self, event: model.EventRecord, *, at: float) -> None:
        self._events.record(event, at)


def _or_without_grants(unknown: Unknown) -> Unknown:
    if unknown.cause is not Cause.DENIED:
        return unknown
    advice = "grant it, or leave out --require-app-grant"
    return replace(unknown, message=f"{unknown.message}; {advice}")
