"""Short ways to build test objects: a test gives only what it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.eureka import (
    Instance,
    InstanceKey,
    InstanceStatus,
    LeaseTimes,
    ObservedInstance,
    Port,
)
from eurekube_sync.model.kubernetes import (
    ClusterView,
    Endpoint,
    EndpointPort,
    EndpointSlice,
    PodRef,
    Service,
    ServicePort,
    SyncerObject,
    SyncerRef,
    SyncerStatus,
)
from eurekube_sync.model.ownership import Ownership, instance_id
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Observed, observe

UP, DOWN, OUT = InstanceStatus.UP, InstanceStatus.DOWN, InstanceStatus.OUT_OF_SERVICE

OWNER = "prod"
CLUSTER = "11111111-2222-3333-4444-555555555555"
OWNERSHIP = Ownership(owner=OWNER, cluster=CLUSTER)
LEASE = LeaseTimes(30, 300)
NAMING = Naming(ownership=OWNERSHIP, lease=LEASE)
NS = "rating"
REF = SyncerRef(NS, "rating")
DENIED = Unknown(cause=Cause.DENIED, message="403: grant list")
PROOF = Complete(data=()).proof
"""For an action that a test builds itself."""
TERMINATING = Unknown(cause=Cause.CRD_TERMINATING, message="the CRD is being deleted")

T = TypeVar("T")


def syncer(
    name: str = "rating",
    *,
    namespace: str = NS,
    created: float = 1000,
    deleted: float | None = None,
    finalizers: tuple[str, ...] = (),
    annotations: Mapping[str, str] | None = None,
    generation: int = 1,
    status: SyncerStatus | None = None,
    **spec: Any,
) -> SyncerObject:
    """A syncer with these keywords as its spec. By default it selects `app: rating`. One that is
    being deleted has our finalizer, because otherwise it would not exist."""
    ours = () if deleted is None else (CLEANUP_FINALIZER,)
    return SyncerObject(
        namespace=namespace,
        name=name,
        uid=f"uid-of-{namespace}-{name}",
        generation=generation,
        resource_version="1",
        created=created,
        deleted=deleted,
        finalizers=finalizers or ours,
        annotations=annotations or {},
        spec={"selector": {"app": "rating"}, **spec},
        status=status,
    )


def service(
    name: str = "rating",
    *ports: ServicePort,
    namespace: str = NS,
    labels: Mapping[str, str] | None = None,
    type: str = "ClusterIP",
    cluster_ips: tuple[str, ...] = ("10.96.0.1",),
    ip_families: tuple[str, ...] = ("IPv4",),
    publish_not_ready: bool = False,
) -> Service:
    """A Service labelled `app: rating` with the one port `http`."""
    return Service(
        namespace=namespace,
        name=name,
        labels={"app": "rating"} if labels is None else labels,
        type=type,
        cluster_ips=cluster_ips,
        ip_families=ip_families,
        ports=ports or (ServicePort(name="http", port=80, target=8080),),
        publish_not_ready=publish_not_ready,
    )


def endpoint(
    number: int = 1,
    *,
    ready: bool = True,
    serving: bool | None = None,
    terminating: bool = False,
    address: str | None = None,
    pod: str | None = "",
) -> Endpoint:
    """The endpoint `10.0.0.<number>` of the pod `rating-<number>`. `pod=None` makes it a bare
    address."""
    name = pod or f"rating-{number}"
    return Endpoint(
        address=address or f"10.0.0.{number}",
        ready=ready,
        serving=ready if serving is None else serving,
        terminating=terminating,
        pod=None if pod is None else PodRef(name, f"uid-of-{name}"),
    )


def piece(
    *endpoints: Endpoint,
    service: str = "rating",
    name: str = "",
    namespace: str = NS,
    family: str = "IPv4",
    port: int | None = 8080,
    port_name: str = "http",
) -> EndpointSlice:
    """A slice of the Service `rating` with one port."""
    return EndpointSlice(
        namespace=namespace,
        name=name or f"{service}-abc",
        service=service,
        address_type=family,
        ports=(EndpointPort(name=port_name, port=port),),
        endpoints=endpoints,
    )


def listed(things: Iterable[Any]) -> Listed[Any]:
    """A complete list of the whole cluster."""
    by_namespace: dict[str, tuple[Any, ...]] = {}
    for thing in things:
        by_namespace[thing.namespace] = (*by_namespace.get(thing.namespace, ()), thing)
    return Listed(
        by_namespace={namespace: Complete(data=found) for namespace, found in by_namespace.items()},
        elsewhere=Complete(data=()),
    )


def nowhere(unknown: Unknown) -> Listed[Any]:
    """A list that failed."""
    return Listed(by_namespace={}, elsewhere=unknown)


def view(
    syncers: Iterable[SyncerObject] | Listed[SyncerObject] = (),
    services: Iterable[Service] | Listed[Service] = (),
    slices: Iterable[EndpointSlice] | Listed[EndpointSlice] = (),
    *,
    crd_live: Source[bool] | None = None,
) -> ClusterView:
    """The view of a pass. Plain objects become complete lists."""
    return ClusterView(
        identity=Complete(data=CLUSTER),
        syncers=syncers if isinstance(syncers, Listed) else listed(syncers),
        services=services if isinstance(services, Listed) else listed(services),
        slices=slices if isinstance(slices, Listed) else listed(slices),
        crd_live=crd_live or Complete(data=True),
    )


def desired(
    syncers: Iterable[SyncerObject] | Listed[SyncerObject] = (),
    services: Iterable[Service] | Listed[Service] = (),
    slices: Iterable[EndpointSlice] | Listed[EndpointSlice] = (),
    *,
    crd_live: Source[bool] | None = None,
    scope: Scope | None = None,
) -> Desired:
    """The claims of this view."""
    return claim_all(view(syncers, services, slices, crd_live=crd_live), NAMING, scope or Scope())


def key(
    number: int = 1, *, app: str = "rating", namespace: str = NS, port: int = 8080
) -> InstanceKey:
    """The key of `10.0.0.<number>:<port>`."""
    id_ = instance_id(
        owner=OWNER, namespace=namespace, app=app, address=f"10.0.0.{number}", port=port
    )
    return InstanceKey(app.upper(), id_)


def instance(
    number: int = 1,
    *,
    app: str = "rating",
    status: InstanceStatus = UP,
    ref: SyncerRef = REF,
    metadata: Mapping[str, str] | None = None,
    vip: str | None = None,
    port: int = 8080,
) -> Instance:
    """The desired instance of the pod `rating-<number>` at `10.0.0.<number>`."""
    pod = PodRef(f"rating-{number}", f"uid-of-rating-{number}")
    return Instance(
        key=key(number, app=app, namespace=ref.namespace, port=port),
        host_name=f"10.0.0.{number}",
        ip_addr=f"10.0.0.{number}",
        port=Port(port, True),
        secure_port=Port(443, False),
        vip_address=vip or app.lower(),
        secure_vip_address=vip or app.lower(),
        status=status,
        lease=LEASE,
        metadata=OWNERSHIP.marked(metadata or {}, ref, pod),
    )


def stored(
    wanted: Instance,
    *,
    status: InstanceStatus | None = None,
    overridden: InstanceStatus = InstanceStatus.UNKNOWN,
    timestamp: int = 1,
    metadata: Mapping[str, str] | None = None,
) -> ObservedInstance:
    """The instance as Eureka lists it."""
    return ObservedInstance(
        instance=replace(
            wanted,
            status=status or wanted.status,
            override=overridden,
            metadata=wanted.metadata if metadata is None else metadata,
        ),
        last_dirty_timestamp=timestamp,
    )


def seen(key: InstanceKey, **fields: Any) -> ObservedInstance:
    """An instance for which Eureka lists only these fields."""
    bare = Instance(
        key=key,
        host_name="",
        ip_addr="",
        port=Port(0, False),
        secure_port=Port(0, False),
        vip_address="",
        secure_vip_address="",
        status=InstanceStatus.UNKNOWN,
        lease=LeaseTimes(0, 0),
        metadata={},
    )
    return changed(ObservedInstance(instance=bare), **fields)


def changed(one: ObservedInstance, **fields: Any) -> ObservedInstance:
    """The same instance with other values of these fields."""
    own: dict[str, Any] = {
        name: fields.pop(name)
        for name in ("last_dirty_timestamp", "last_renewal", "registered")
        if name in fields
    }
    return replace(one, instance=replace(one.instance, **fields), **own)


def foreign(id_: str = "dc:rating:8080", *, app: str = "RATING") -> ObservedInstance:
    """An instance of the data centre that registers itself."""
    key = InstanceKey(app, id_)
    return seen(key, host_name="dc", ip_addr="192.0.2.1", vip_address=app.lower(), status=UP)


def observed(
    *instances: ObservedInstance, scope: Scope | None = None, asked: float = 0
) -> Observed:
    """A complete list of the registry. `asked` is the time of the request, in Unix seconds."""
    return observe(Complete(data=instances), OWNERSHIP, scope or Scope(), asked=asked)
