"""What a cluster holds, as immutable values: syncers, Services, slices, pods, nodes, the lock; and what one pass reads
of it. Names are ours: camelCase lives in the adapters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from eurekube_sync.model.sources import Listed, Source
from eurekube_sync.model.values import dataclass, derive


class SyncerRef(NamedTuple):
    """A syncer's `namespace/name`, as it is in `eurekube.syncer`."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One entry of `status.conditions`."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    observed_generation: int
    last_transition: int  # Unix seconds; moves only when `status` flips


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncerStatus:
    """`status` of a EurekaSyncer: counts and conditions, never a list of instances."""

    observed_generation: int
    conditions: tuple[Condition, ...] = ()
    ready: str = ""  # `UP/desired`, such as `2/2`: printer columns do no arithmetic
    desired: int = 0
    registered: int = 0
    up: int = 0
    down: int = 0
    app_name: str = ""
    vip_address: str = ""
    apps: tuple[str, ...] = ()  # the first 10 app names
    errors: tuple[str, ...] = ()  # a capped sample
    unconfirmed_removal: str = ""
    """The mark of the removal that waits for a second pass to see it too; equal marks are the same removal."""
    unconfirmed_since: int | None = None  # when a pass first saw that removal, in Unix seconds; None: none waits
    eureka_unknown_since: int | None = None
    """Since when no pass could read Eureka, in Unix seconds; None: the last one could."""

    def condition(self, type_: str) -> Condition | None:
        return next((c for c in self.conditions if c.type == type_), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncerObject:
    """A EurekaSyncer as the cluster holds it. `spec` is raw: `syncer.parse` gives it meaning."""

    namespace: str
    name: str
    uid: str
    generation: int
    resource_version: str
    created: float  # Unix seconds
    deleted: float | None = None  # Unix seconds of the deletion; None while it lives
    finalizers: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    status: SyncerStatus | None = None
    ref: SyncerRef = field(init=False)  # its `namespace/name`

    def __post_init__(self) -> None:
        derive(self, "ref", SyncerRef(self.namespace, self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePort:
    """One port of a Service. `target` is a number, a container port's name, or None when it equals `port`."""

    name: str
    port: int
    target: int | str | None = None
    node_port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    namespace: str
    name: str
    labels: Mapping[str, str]
    type: str = "ClusterIP"
    cluster_ips: tuple[str, ...] = ()  # `("None",)` for a headless one
    ip_families: tuple[str, ...] = ()  # `IPv4`, `IPv6`, in the Service's order
    ports: tuple[ServicePort, ...] = ()
    publish_not_ready: bool = False
    selects: bool = True
    """It has a selector, so the cluster makes its slices, one for each address family at least. Else people do."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    load_balancer: tuple[str, ...] = ()
    """What its load balancer is reached at, IP addresses and host names; empty while it waits for one."""
    external_ips: tuple[str, ...] = ()
    external_name: str = ""
    local: bool = False  # `externalTrafficPolicy: Local`: a node answers only for endpoints of its own

    @property
    def headless(self) -> bool:
        return self.cluster_ips == ("None",)

    @property
    def is_external_name(self) -> bool:
        """Whether it is a name elsewhere: no controller makes slices of it, nor looks at those that it had before."""
        return self.type == "ExternalName"


class Namespace(NamedTuple):
    name: str
    annotations: Mapping[str, str]


class PodRef(NamedTuple):
    """`targetRef` of an endpoint that is a Pod."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A Pod's metadata: neither spec nor status is read."""

    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodReadiness:
    """How ready a Pod is but for our readiness gate, which stays shut until Eureka holds its instance."""

    namespace: str
    name: str
    uid: str
    ready: bool  # its containers are, every other gate of its own is open, and nobody took Ready back since ours opened
    registered: bool  # the condition `eurekube.io/registered` is True, which it stays


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str
    ready: bool = True
    internal: tuple[str, ...] = ()  # addresses of type InternalIP
    external: tuple[str, ...] = ()  # addresses of type ExternalIP
    zone: str = ""  # label `topology.kubernetes.io/zone`
    drained: bool = False  # annotation `eurekube.io/drain`
    ignored: str = ""  # what is wrong with one that says neither
    excluded: bool = False
    """Label `node.kubernetes.io/exclude-from-external-load-balancers`: no traffic from outside is wanted there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drainable:
    """Whether a person drains a Pod or a Node by annotation."""

    id: str  # UID of a Pod, name of a Node
    drained: bool
    ignored: str = ""  # what is wrong with an annotation that says neither


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One endpoint of a slice, with the API's nil rules applied: ready nil = true, serving nil = true,
    terminating nil = false."""

    address: str  # `addresses[0]`: the API says that the others are to be ignored
    ready: bool = True
    serving: bool = True
    terminating: bool = False
    pod: PodRef | None = None
    node: str = ""
    zone: str | None = ""
    """Of its node, empty when that has none; None where the source does not say, as Endpoints objects do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointPort:
    name: str = ""
    port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSlice:
    namespace: str
    name: str
    service: str  # label `kubernetes.io/service-name`; slices without it belong to no Service and are not read
    address_type: str  # `IPv4`, `IPv6` or `FQDN`
    ports: tuple[EndpointPort, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    truncated: bool = False
    """There are more endpoints than were written down: only of an Endpoints object, which ends at 1000."""
    of_endpoints: bool = False
    """Made from an Endpoints object, which tells of one family where the cluster writes it, the Service's first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """A Kubernetes Event about one syncer. Written on flips only, under a name made of uid, reason and `key`."""

    syncer: SyncerRef
    uid: str
    warning: bool
    reason: str  # CamelCase
    message: str
    key: str  # the class of the message: two events with the same uid, reason and key are one, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """All that one pass reads from Kubernetes."""

    identity: Source[str]  # UID of the namespace kube-system
    syncers: Listed[SyncerObject]
    services: Listed[Service]
    slices: Listed[EndpointSlice]
    pods: Listed[Pod] | None = None  # None while nobody needs to know which pods live, or what their labels are
    nodes: Source[tuple[Node, ...]] | None = None  # None while nobody needs them
    namespaces: Listed[Namespace] | None = None  # None where they need not grant what their syncers register
    readiness: Listed[PodReadiness] | None = None  # None while no syncer has a readiness gate
    pod_drains: Listed[Drainable] | None = None  # None while nobody asks for their annotations
    node_drains: Source[tuple[Drainable, ...]] | None = None  # the same
    crd_live: Source[bool]
    """Complete(True) when deletions of syncers are people's; Unknown(CRD_TERMINATING) when the CRD itself goes, or was
    installed after one of them."""
    crd_installed: float = 0.0  # when the CRD that lives was installed, in Unix seconds; 0 when nobody asked


Pods: TypeAlias = Mapping[str, Source[frozenset[str]]]  # the UIDs of all pods of a namespace, by its name


LOCK_SECONDS = 15.0
"""Without a renewal, after which another copy may take the lock: a Lease object of `coordination.k8s.io`, where it is
written as `leaseDurationSeconds`. Elsewhere the word lease always means an instance's lease in Eureka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockName:
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodPass:
    """The last pass that did all that it had to do, as the lock's annotations show it."""

    at: float  # Unix seconds
    holder: str
    owner: str
    scope: str  # `all`, or the options that give it
    result: str  # the summary of its report


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRecord:
    """What the object says, or is to say."""

    holder: str  # who has it; empty when nobody does
    duration: float = LOCK_SECONDS  # seconds, as the holder wrote it, for people to read
    acquired: float | None = None
    """Unix seconds by the holder's clock, for people to read; so is the next. Nothing is decided by them."""
    renewed: float | None = None
    transitions: int = 0  # how often it went from one holder to another
    good: GoodPass | None = None  # None in a record to write: what is there stays
    version: str = ""  # the resourceVersion that was read


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCondition:
    type: str
    true: bool
    reason: str = ""
    message: str = ""
    since: float | None = None  # Unix seconds of its last transition


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDetail:
    """Why a Pod is not ready, and how it ends: for a person who asks, as what follows. A pass decides without it."""

    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    node: str = ""
    phase: str = ""
    terminating: bool = False
    conditions: tuple[PodCondition, ...] = ()
    waiting: tuple[str, ...] = ()  # why containers do not run, such as `app: CrashLoopBackOff`
    controller: str = ""  # what made it, such as `ReplicaSet rating-6c9f`; empty for a bare pod
    containers: tuple[str, ...] = ()
    grace: float = 30.0  # `terminationGracePeriodSeconds`
    pre_stops: tuple[float | None, ...] = ()
    """The seconds that each `preStop` sleeps; None for one whose time nobody can read."""

    def condition(self, type_: str) -> PodCondition | None:
        return next((one for one in self.conditions if one.type == type_), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """What RBAC allows or does not."""

    verb: str
    resource: str  # with its subresource: `eurekasyncers/status`
    group: str = ""
    name: str = ""  # of the one object; empty for all

    def __str__(self) -> str:
        whole, slash, part = self.resource.partition("/")
        group, named = f".{self.group}" if self.group else "", f" {self.name}" if self.name else ""
        return f"{self.verb} {whole}{group}{slash}{part}{named}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSelector:
    """Which pods a Service selects; empty for one without a selector."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)  # its own
    selector: Mapping[str, str] = field(default_factory=dict)
