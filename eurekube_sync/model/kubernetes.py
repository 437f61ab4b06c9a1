"""Objects of Kubernetes as immutable values, and `ClusterView`, which has all that one pass reads.
Only the adapters know the API's own field names."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from msgspec import Struct, field

from eurekube_sync.model.sources import Listed, Source

if TYPE_CHECKING:
    from eurekube_sync.model.imports import ImportRef


class SyncerRef(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


TROUBLES = frozenset({"Conflict", "RemovalHeld"})
"""The types of conditions that are True if something is wrong."""


class Condition(Struct, frozen=True, kw_only=True):
    """One entry of `status.conditions`."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    observed_generation: int
    last_transition: int  # Unix seconds of the last change of `status`

    @property
    def bad(self) -> bool:
        """Whether it says that something is wrong. An unknown Ready or Synced does, too."""
        return (self.status is ConditionStatus.TRUE) is (self.type in TROUBLES)


class CustomStatus(Struct, frozen=True, kw_only=True):
    """What `status` of each custom resource of ours has."""

    observed_generation: int
    conditions: tuple[Condition, ...] = ()

    def condition(self, type_: str) -> Condition | None:
        for condition in self.conditions:
            if condition.type == type_:
                return condition
        return None


class ServedPort(NamedTuple):
    """The numbers at which a Service was served."""

    service: str
    port: int | None = None  # None: the plain port is off
    secure_port: int | None = None


class SyncerStatus(CustomStatus, frozen=True, kw_only=True):
    """`status` of a EurekaSyncer: counts and conditions, never a list of instances."""

    ready: str = ""  # `UP/desired`, such as `2/2`, for `kubectl get`
    desired: int = 0
    registered: int = 0
    up: int = 0
    down: int = 0
    app_name: str = ""
    vip_address: str = ""
    apps: tuple[str, ...] = ()  # the first 10 app names
    ports: tuple[
        ServedPort, ...
    ] = ()  # an input of later passes, for when a port cannot be resolved any more
    errors: tuple[str, ...] = ()  # a sample
    unconfirmed_removal: str = ""  # identifies the removal that a second pass has to confirm
    unconfirmed_since: int | None = (
        None  # when a pass first wanted that removal, in Unix seconds; None: none waits
    )
    eureka_unknown_since: int | None = None  # Unix seconds; None: Eureka can be read


class CustomObject(Struct, frozen=True, kw_only=True):
    """A custom resource of ours, as the API server has it. `spec` is raw."""

    namespace: str
    name: str
    uid: str
    generation: int
    resource_version: str
    created: float  # Unix seconds
    deleted: float | None = None  # Unix seconds of the deletionTimestamp
    finalizers: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)


class SyncerObject(CustomObject, frozen=True, kw_only=True, dict=True):
    """A EurekaSyncer; `desired/spec.parse` reads its `spec`."""

    status: SyncerStatus | None = None

    @cached_property
    def ref(self) -> SyncerRef:
        return SyncerRef(self.namespace, self.name)


class ServicePort(Struct, frozen=True, kw_only=True):
    """One port of a Service. `target` is a number, a container port's name, or None if it equals
    `port`."""

    name: str
    port: int
    target: int | str | None = None
    node_port: int | None = None


class Service(Struct, frozen=True, kw_only=True):
    namespace: str
    name: str
    labels: Mapping[str, str]
    type: str = "ClusterIP"
    cluster_ips: tuple[str, ...] = ()  # `("None",)` for a headless one
    ip_families: tuple[str, ...] = ()  # `IPv4`, `IPv6`, in the Service's order
    ports: tuple[ServicePort, ...] = ()  # those of protocol TCP
    other_ports: tuple[str, ...] = ()  # the others, such as `514/UDP`
    publish_not_ready: bool = False
    # It has a selector, so the cluster makes its slices, at least one for each address family
    selects: bool = True
    annotations: Mapping[str, str] = field(default_factory=dict)
    load_balancer: tuple[str, ...] = ()  # IP addresses and host names; empty while it waits for one
    external_ips: tuple[str, ...] = ()
    external_name: str = ""
    local: bool = False  # `externalTrafficPolicy: Local`: a node serves only its own endpoints
    uid: str = ""
    resource_version: str = ""
    controller: str = ""  # the kind of its controller; empty without one
    owner_uid: str = ""  # the UID of its controller

    @property
    def headless(self) -> bool:
        return self.cluster_ips == ("None",)

    @property
    def is_external_name(self) -> bool:
        """Whether it is of type ExternalName: no controller makes its slices, or updates those it
        had before."""
        return self.type == "ExternalName"


class Namespace(NamedTuple):
    name: str
    annotations: Mapping[str, str]


class PodRef(NamedTuple):
    """`targetRef` of an endpoint that is a Pod."""

    name: str
    uid: str


class Pod(Struct, frozen=True, kw_only=True):
    """A Pod's metadata: neither spec nor status is read."""

    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


class PodReadiness(Struct, frozen=True, kw_only=True):
    """The readiness of a Pod without our readiness gate, which stays closed until its instance is
    registered."""

    namespace: str
    name: str
    uid: str
    # Its containers are ready, its other gates are open, and it stayed Ready since our gate opened
    ready: bool
    registered: bool  # the condition `eurekube.io/registered` is True; it never changes back
    running: bool = False  # its condition Ready is True, and it does not terminate
    addresses: tuple[str, ...] = ()


class IngressPath(NamedTuple):
    """A path of an Ingress, and the Service to which it leads."""

    host: str  # empty: each host
    path: str  # empty for the default backend
    service: str
    port: int | str  # of the Service, by number or name


class Ingress(Struct, frozen=True, kw_only=True):
    name: str
    paths: tuple[IngressPath, ...] = ()
    tls: tuple[str, ...] = ()  # the hosts with TLS, some as `*.example.com`; an empty one for each
    addresses: tuple[str, ...] = ()  # IP addresses and host names; empty while it waits for one


class RouteParent(NamedTuple):
    """A Gateway to which an HTTPRoute is attached."""

    namespace: str
    name: str
    section: str = ""  # the name of one listener; empty for all
    port: int | None = None  # of one listener; None for all
    accepted: bool = False  # the Gateway's controller says so


class RoutePath(NamedTuple):
    """A path of an HTTPRoute, and the Service to which it leads."""

    path: str
    namespace: str  # the Service's
    service: str
    port: int


class HttpRoute(Struct, frozen=True, kw_only=True):
    """An HTTPRoute of the Gateway API."""

    namespace: str
    name: str
    hostnames: tuple[str, ...] = ()  # some as `*.example.com`; empty for each host
    parents: tuple[RouteParent, ...] = ()
    paths: tuple[RoutePath, ...] = ()


class ReferenceGrant(Struct, frozen=True, kw_only=True):
    """A permission that HTTPRoutes of other namespaces lead to Services of its own namespace."""

    name: str
    routes_of: frozenset[str]  # namespaces
    services: frozenset[str] = frozenset()  # empty for each Service


class Listener(NamedTuple):
    """A listener of a Gateway for HTTP or HTTPS."""

    name: str
    port: int
    secure: bool = False
    hostname: str = ""  # may be `*.example.com`; empty for each host


class Gateway(Struct, frozen=True, kw_only=True):
    """A Gateway of the Gateway API."""

    name: str
    listeners: tuple[Listener, ...] = ()
    addresses: tuple[str, ...] = ()  # IP addresses and host names; empty while it waits for one


class HostPort(NamedTuple):
    """A port of a node that is passed on to a Pod."""

    number: int
    address: str = ""  # empty: at each address of the node


class PodHost(Struct, frozen=True, kw_only=True):
    """Where a Pod is reached at its node."""

    uid: str
    addresses: tuple[str, ...] = ()  # of its node, the first family first; empty without a node
    host_network: bool = False  # it listens at the node's own addresses
    ports: Mapping[int, HostPort] = field(default_factory=dict)  # by container port


class Node(Struct, frozen=True, kw_only=True):
    name: str
    ready: bool = True
    internal: tuple[str, ...] = ()  # addresses of type InternalIP
    external: tuple[str, ...] = ()  # addresses of type ExternalIP
    labels: Mapping[str, str] = field(default_factory=dict)
    leaves: str = ""  # why nobody should call it any more, such as a taint; empty if it stays


class Drainable(Struct, frozen=True, kw_only=True):
    """Whether a Service or Pod is drained by annotation."""

    id: str  # the UID of a Pod, the name of a Service
    drained: bool
    ignored: str = ""  # what is wrong with an invalid annotation


class Endpoint(Struct, frozen=True, kw_only=True):
    """One endpoint of a slice. As in the API, the default of `ready` and `serving` is True, of
    `terminating` False."""

    address: str  # `addresses[0]`, as the API ignores the others
    ready: bool = True
    serving: bool = True
    terminating: bool = False
    pod: PodRef | None = None
    node: str = ""
    zone: str = ""  # empty if its node has none


class EndpointPort(Struct, frozen=True, kw_only=True):
    name: str = ""
    port: int | None = None


SLICE_CONTROLLER = "endpointslice-controller.k8s.io"
"""Who writes the slices of a Service with a selector (k8s.io/kubernetes,
pkg/controller/endpointslice)."""


class EndpointSlice(Struct, frozen=True, kw_only=True):
    namespace: str
    name: str
    # The label `kubernetes.io/service-name`. Slices without it are not read, except those of imports
    service: str
    address_type: str  # `IPv4`, `IPv6` or `FQDN`
    ports: tuple[EndpointPort, ...] = ()  # those of protocol TCP
    endpoints: tuple[Endpoint, ...] = ()
    managed_by: str = ""  # label `endpointslice.kubernetes.io/managed-by`: who writes it
    # Read only of slices of imports; empty of others, which are many
    uid: str = ""
    resource_version: str = ""
    owner_uid: str = ""  # the UID of its controller


class EventRecord(Struct, frozen=True, kw_only=True):
    """A Kubernetes Event about one syncer or import, written only when a condition changes."""

    syncer: SyncerRef | ImportRef
    uid: str
    warning: bool
    reason: str  # CamelCase
    message: str
    key: str  # events with the same uid, reason and key are one Event with a count
    kind: str = "EurekaSyncer"


class CrdAge(Struct, frozen=True):
    """When the CRD was installed, in Unix seconds of two clocks that may differ. Deletions of
    syncers have times of the API server's clock, and instances have times of ours."""

    by_server: float
    by_ours: float  # at the latest; where nobody knows, now


class ClusterView(Struct, frozen=True, kw_only=True):
    """All that one pass reads from Kubernetes. None: not read, because no syncer or option needs
    it."""

    identity: Source[str]  # UID of the namespace kube-system
    syncers: Listed[SyncerObject]
    services: Listed[Service]
    slices: Listed[EndpointSlice]
    pods: Listed[Pod] | None = None
    nodes: Source[tuple[Node, ...]] | None = None
    namespaces: Listed[Namespace] | None = None  # for the grants in their annotations
    readiness: Listed[PodReadiness] | None = None
    pod_drains: Listed[Drainable] | None = None
    hosts: Listed[PodHost] | None = None
    ingresses: Listed[Ingress] | None = None
    reference_grants: Listed[ReferenceGrant] | None = None
    routes: Listed[HttpRoute] | None = None  # also of the namespaces that these grants name
    gateways: Listed[Gateway] | None = None  # of the namespaces that the routes name
    crd_live: Source[bool]
    """Complete(True) if only a person can have deleted a deleted syncer; Unknown(CRD_TERMINATING)
    if the CRD is being deleted, or was installed after a syncer's deletion."""
    crd_installed: float = 0.0  # when the CRD was installed, in Unix seconds; 0 if not read


Pods: TypeAlias = Mapping[str, Source[frozenset[str]]]  # the UIDs of all pods, by namespace


# `leaseDurationSeconds` of the lock: after that time without a renewal another replica may take it
LOCK_SECONDS = 15.0


class LockName(Struct, frozen=True, kw_only=True):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class GoodPass(Struct, frozen=True, kw_only=True):
    """The last successful pass, as in the lock's annotations."""

    at: float  # Unix seconds
    holder: str
    owner: str
    scope: str  # `all`, or the options that set it
    result: str  # the summary in its report


class FailedPass(Struct, frozen=True, kw_only=True):
    """The last pass, if it was no good one, as in the lock's annotations."""

    at: float  # Unix seconds
    reason: str  # of its first problem, as in `Reason`
    result: str  # the sentence of that problem


class LockRecord(Struct, frozen=True, kw_only=True):
    """The fields of the lock. The program decides nothing by its times, which people read."""

    holder: str  # empty: nobody
    duration: float = LOCK_SECONDS  # seconds
    acquired: float | None = None  # Unix seconds by the holder's clock
    renewed: float | None = None  # the same
    transitions: int = 0  # how often the holder changed
    # None in a record to write: the annotations stay as they are
    good: GoodPass | None = None
    # The same. A good pass that is written without one removes its annotations
    failed: FailedPass | None = None
    version: str = ""  # the resourceVersion that was read


class PodCondition(Struct, frozen=True, kw_only=True):
    type: str
    true: bool
    reason: str = ""
    message: str = ""
    since: float | None = None  # Unix seconds of its last transition


class PodDetail(Struct, frozen=True, kw_only=True):
    """Why a Pod is not ready, and how it ends. Only `explain` and `check` use this class and the
    next two."""

    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    node: str = ""
    phase: str = ""
    terminating: bool = False
    conditions: tuple[PodCondition, ...] = ()
    waiting: tuple[str, ...] = ()  # why containers do not run, such as `app: CrashLoopBackOff`
    controller: str = ""  # its owner, such as `ReplicaSet rating-6c9f`; empty for a bare pod
    containers: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()  # TCP ports that its containers declare
    grace: float = 30.0  # `terminationGracePeriodSeconds`
    pre_stops: tuple[
        float | None, ...
    ] = ()  # the seconds that each `preStop` sleeps; None: unknown

    def condition(self, type_: str) -> PodCondition | None:
        for condition in self.conditions:
            if condition.type == type_:
                return condition
        return None


class Right(Struct, frozen=True, kw_only=True):
    """A right that RBAC may grant."""

    verb: str
    resource: str  # with a subresource `eurekasyncers/status`
    group: str = ""
    name: str = ""  # of one object; empty for all

    def __str__(self) -> str:
        whole, slash, part = self.resource.partition("/")
        group = f".{self.group}" if self.group else ""
        named = f" {self.name}" if self.name else ""
        return f"{self.verb} {whole}{group}{slash}{part}{named}"


class ServiceSelector(Struct, frozen=True, kw_only=True):
    """The labels of a Service, and its selector, which may be empty."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    selector: Mapping[str, str] = field(default_factory=dict)
    controller: str = ""  # the kind of its controller, such as `EurekaImport`; empty without one
