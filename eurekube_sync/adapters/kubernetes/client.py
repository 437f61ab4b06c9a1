"""The `Cluster` port on the Kubernetes API: lists, reads and writes. Safe in several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from msgspec.json import Decoder

from eurekube_sync.adapters.clock import ahead
from eurekube_sync.adapters.kubernetes import calls, objects, routing, syncers
from eurekube_sync.adapters.kubernetes.calls import CORE, METADATA_ONLY, NOT_READ, Kind
from eurekube_sync.adapters.kubernetes.connection import Answer, Call, Connection
from eurekube_sync.adapters.tries import Tries
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model import kubernetes as model
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import ClusterConflict, ClusterRejected
from eurekube_sync.model.ownership import CLUSTER_PATTERN
from eurekube_sync.model.ports import Clock, Random
from eurekube_sync.model.sanitize import excerpt
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from eurekube_sync.model.text import rfc_3339

_GROUP = "/apis/eurekube.io/v1"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/eurekasyncers.eurekube.io"
_TRIES = 3  # how often a write is tried if another writer was faster, each time from a new read

CRD_MISSING = Unknown(
    cause=Cause.CRD_MISSING,
    message="the CRD eurekasyncers.eurekube.io is not installed: eurekube-sync crd | kubectl "
    "apply --server-side -f -",
)
_ITEM = Decoder(objects.Item)
_SYNCER = Decoder(syncers.SyncerItem)
_NAMESPACE = Decoder(objects.NamespaceItem)
_DEFINITION = Decoder(syncers.DefinitionItem)
_SYNCERS = Kind(
    _GROUP,
    "eurekasyncers",
    "EurekaSyncerList",
    Decoder(syncers.SyncerItem),
    CRD_MISSING,
    remembered=True,
)
_SERVICES = Kind(CORE, "services", "ServiceList", Decoder(objects.ServiceItem), remembered=True)
_SLICES = Kind(
    "/apis/discovery.k8s.io/v1",
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
_GATEWAY_API = "/apis/gateway.networking.k8s.io/v1"
_NO_GATEWAY_API = Unknown(
    cause=Cause.UNUSABLE,
    message="the Gateway API (gateway.networking.k8s.io/v1) is not installed in the cluster",
)
_ROUTES = Kind(
    _GATEWAY_API, "httproutes", "HTTPRouteList", Decoder(routing.RouteItem), _NO_GATEWAY_API
)
_GATEWAYS = Kind(
    _GATEWAY_API, "gateways", "GatewayList", Decoder(routing.GatewayItem), _NO_GATEWAY_API
)
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
        self._clock = clock
        self._events = syncers.Events(self._calls)
        self._finalized: dict[tuple[str, str], str] = {}
        """The version with our finalizer, by UID and listed version."""
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
        self._finalized.clear()
        return self._calls.list_all(_SYNCERS, namespaces)

    def list_services(self, namespaces: Sequence[str] | None) -> Listed[model.Service]:
        return self._calls.list_all(_SERVICES, namespaces)

    def list_slices(self, namespaces: Sequence[str] | None) -> Listed[model.EndpointSlice]:
        return self._calls.list_all(_SLICES, namespaces)

    def list_ingresses(self, namespaces: Sequence[str] | None) -> Listed[model.Ingress]:
        return self._calls.list_all(_INGRESSES, namespaces)

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
        what = "the CustomResourceDefinition"
        begun = self._clock.now()
        answer = self._calls.read_one(DEFINITION)
        if isinstance(answer, Unknown):
            return answer
        definition = calls.object_in(answer, _DEFINITION.decode, what, absent=CRD_MISSING)
        if isinstance(definition, Unknown):
            return definition
        if definition.data.terminating:
            message = f"{what} eurekasyncers.eurekube.io is being deleted, and every syncer with it"
            return Unknown(cause=Cause.CRD_TERMINATING, message=message)
        created = definition.data.metadata.creation_timestamp
        if created is None:
            return calls.unusable(f"{what} does not say when it was created (creationTimestamp)")
        by_server = objects.seconds(created)
        # Instances have times of our clock. If it is ahead of the server's, they look younger than
        # they are, and so must the CRD. If the server does not tell its time, everything counts as
        # older than the CRD.
        apart = ahead(answer.date, begun, self._clock.now())
        if apart is None:
            return Complete(data=model.CrdAge(by_server, self._clock.now()))
        later = 1 - apart if apart < 0 else 0.0  # the header has whole seconds
        return Complete(data=model.CrdAge(by_server, by_server + later))

    def namespace_exists(self, name: str) -> Source[bool]:
        """Say whether the API knows the Namespace. The Role that we ship does not allow this; a
        person's may."""
        answer = self._calls.read_one(f"{CORE}/namespaces/{name}")
        if isinstance(answer, Unknown):
            return answer
        return Complete(data=answer.status == 200)

    def add_finalizer(self, syncer: model.SyncerObject) -> model.SyncerObject:
        """Add our finalizer, from a new read if the object has changed in between."""
        current: model.SyncerObject | None = syncer
        for _ in range(_TRIES):
            if current is None or not _has_same_spec(current, syncer):
                raise ClusterConflict(
                    f"syncer {syncer.ref} changed or is gone; the next pass handles that"
                )
            if current.deleted is not None:
                raise ClusterConflict(
                    f"syncer {syncer.ref} is being deleted, so no finalizer is added any more"
                )
            if CLEANUP_FINALIZER in current.finalizers:
                return current
            call = _finalizers(current, "add", [*current.finalizers, CLEANUP_FINALIZER])
            answer = self._write("finalizer", current, call, 200, 404, 409, 422)
            if answer.status == 200:
                finalized = _read(call, answer)
                self._finalized[syncer.uid, syncer.resource_version] = finalized.resource_version
                return finalized
            current = self._read_again(syncer) if answer.status != 404 else None
        raise ClusterConflict(f"{syncer.ref} changed {_TRIES} times while its finalizer was added")

    def remove_finalizer(self, syncer: model.SyncerObject) -> None:
        current: model.SyncerObject | None = syncer
        for _ in range(_TRIES):
            if current is None or current.uid != syncer.uid:
                return
            if CLEANUP_FINALIZER not in current.finalizers:
                return
            left = [name for name in current.finalizers if name != CLEANUP_FINALIZER]
            call = _finalizers(current, "replace", left)
            answer = self._write("finalizer", current, call, 200, 404, 409, 422)
            if answer.status in (200, 404):
                return
            current = self._read_again(syncer)
        raise ClusterConflict(
            f"{syncer.ref} changed {_TRIES} times while its finalizer was removed"
        )

    def write_status(self, syncer: model.SyncerObject, status: model.SyncerStatus) -> None:
        """Replace the status by a merge patch with the resourceVersion: if that has changed, the
        answer is 409."""
        listed = syncer.resource_version
        version = self._finalized.pop((syncer.uid, listed), listed)
        for _ in range(_TRIES):
            body = {
                "metadata": {"resourceVersion": version},
                "status": syncers.status_fields(status),
            }
            call = calls.writing("PATCH", f"{_path(syncer)}/status", body, calls.MERGE_PATCH)
            answer = self._write("status", syncer, call, 200, 404, 409)
            if answer.status != 409:
                return
            now = self._read_again(syncer)
            if now is None:
                return
            if not _has_same_spec(now, syncer):
                raise ClusterConflict(
                    f"{syncer.ref} has another spec now: the next pass will report on it"
                )
            if now.status == status:
                return
            version = now.resource_version
        raise ClusterConflict(f"{syncer.ref} changed {_TRIES} times while its status was written")

    def _write(self, what: str, syncer: model.SyncerObject, call: Call, *statuses: int) -> Answer:
        """Return an answer with one of these statuses; raise ClusterRejected if the stored spec is
        refused.

        Before 1.30, Kubernetes checks the whole object at each write, although we write nothing of
        the spec. So a syncer that a new CRD refuses keeps its finalizer: no other try and no later
        pass can change that. From 1.30 on, what a write leaves as it was is not refused."""
        answer = self._calls.send(call)
        in_spec: list[str] = []
        for field, why in calls.refused_fields(answer).items():
            if field == "spec" or field.startswith(("spec.", "spec[")):
                in_spec.append(f"{field}: {why}")
        if in_spec:
            fields = excerpt("; ".join(in_spec), most=300, secrets=answer.secrets)
            raise ClusterRejected(
                f"the {what} of syncer {syncer.ref} cannot be written until somebody mends its "
                f"spec, because the CustomResourceDefinition refuses what is stored: {fields}"
            )
        if answer.status not in statuses:
            raise calls.refusal(call, answer)
        return answer

    def record_event(self, event: model.EventRecord, *, at: float) -> None:
        self._events.record(event, at)

    def _read_again(self, syncer: model.SyncerObject) -> model.SyncerObject | None:
        call = Call(method="GET", path=_path(syncer))
        answer = self._calls.expect(call, 200, 404)
        return _read(call, answer) if answer.status == 200 else None


def _read(call: Call, answer: Answer) -> model.SyncerObject:
    return calls.decoded(call, answer, _SYNCER, "a EurekaSyncer").read()


def _has_same_spec(current: model.SyncerObject, syncer: model.SyncerObject) -> bool:
    return current.uid == syncer.uid and current.generation == syncer.generation


def _or_without_grants(unknown: Unknown) -> Unknown:
    if unknown.cause is not Cause.DENIED:
        return unknown
    advice = "grant it, or leave out --require-app-grant"
    return replace(unknown, message=f"{unknown.message}; {advice}")


def _path(syncer: model.SyncerObject) -> str:
    return f"{_GROUP}/namespaces/{syncer.namespace}/eurekasyncers/{syncer.name}"


def _finalizers(current: model.SyncerObject, op: str, finalizers: Sequence[str]) -> Call:
    """Patch the finalizers if version and UID are still the same. A merge patch would lose
    finalizers that were added since. The UID is tested because the address may lead to another
    cluster, with resourceVersions of its own."""
    changes = [
        {"op": "test", "path": "/metadata/uid", "value": current.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": current.resource_version},
        {"op": op, "path": "/metadata/finalizers", "value": finalizers},
    ]
    return calls.writing("PATCH", _path(current), changes, calls.JSON_PATCH)
