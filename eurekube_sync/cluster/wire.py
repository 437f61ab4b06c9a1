"""The JSON of the Kubernetes API, as small structs, and their projection to our own dataclasses.

Owns camelCase and the API's rules for absent fields. Decoding raises `msgspec.MsgspecError` (a ValueError) on a type
that the API never gives; whoever lists decides what that means.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from eurekube_sync.model import (
    Condition,
    ConditionStatus,
    Endpoint,
    EndpointPort,
    EndpointSlice,
    PodRef,
    Service,
    ServicePort,
    SyncerObject,
    SyncerStatus,
)

SERVICE_NAME = "kubernetes.io/service-name"
"""The label that ties an EndpointSlice to its Service (well-known labels of the Kubernetes documentation)."""


class _Wire(msgspec.Struct, rename="camel", gc=False):
    """gc=False: a page holds tens of thousands of these, none of them in a cycle."""


class ListMeta(msgspec.Struct):
    """`metadata` of a list."""

    continue_: str = msgspec.field(name="continue", default="")
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class RawPage(msgspec.Struct):
    """One page of any list, its items still as bytes. `items` is required: a page without is no list."""

    kind: str
    items: list[msgspec.Raw] | None
    metadata: ListMeta


class Head(_Wire):
    """What can be read of an item that cannot be read whole."""

    metadata: _HeadMeta


class _HeadMeta(_Wire):
    name: str
    namespace: str = ""


class _Meta(_Wire):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    finalizers: list[str] | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _ShortMeta(_Wire):
    name: str
    namespace: str = ""
    labels: dict[str, str] | None = None


class SyncerItem(_Wire):
    """An EurekaSyncer. `spec` has no type here, `status` is read apart: neither can spoil a list."""

    metadata: _Meta
    spec: Any = None
    status: msgspec.Raw = msgspec.Raw(b"null")


class _ServicePort(_Wire):
    port: int
    name: str = ""
    target_port: int | str | None = None


class _ServiceSpec(_Wire):
    type: str = "ClusterIP"
    cluster_ip: str | None = msgspec.field(name="clusterIP", default=None)
    cluster_ips: list[str] | None = msgspec.field(name="clusterIPs", default=None)
    ip_families: list[str] | None = None
    ports: list[_ServicePort] | None = None
    publish_not_ready_addresses: bool = False


class ServiceItem(_Wire):
    """A Service."""

    metadata: _ShortMeta
    spec: _ServiceSpec


class _Conditions(_Wire):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class _Target(_Wire):
    kind: str = ""
    name: str = ""
    uid: str = ""


class _Endpoint(_Wire):
    addresses: list[str]
    conditions: _Conditions | None = None
    target_ref: _Target | None = None
    node_name: str | None = None
    zone: str | None = None


class _EndpointPort(_Wire):
    name: str | None = None
    port: int | None = None


class SliceItem(_Wire):
    """An EndpointSlice; `endpoints` and `ports` are null when there are none [real 1.36]."""

    metadata: _ShortMeta
    address_type: str
    endpoints: list[_Endpoint] | None = None
    ports: list[_EndpointPort] | None = None


class _Condition(_Wire):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None


class StatusItem(_Wire):
    """`status` of an EurekaSyncer."""

    observed_generation: int = 0
    conditions: list[_Condition] | None = None
    ready: str = ""
    desired: int = 0
    registered: int = 0
    up: int = 0
    down: int = 0
    app_name: str = ""
    vip_address: str = ""
    apps: list[str] | None = None
    errors: list[str] | None = None


class DefinitionItem(_Wire):
    """A CustomResourceDefinition, as far as its end is concerned."""

    metadata: _Meta
    status: _DefinitionStatus | None = None


class _DefinitionStatus(_Wire):
    conditions: list[_Condition] | None = None


class EventItem(_Wire):
    """An Event, as far as it is counted."""

    metadata: _Meta
    count: int | None = None
    last_timestamp: datetime | None = None


_STATUS: msgspec.json.Decoder[StatusItem | None] = msgspec.json.Decoder(StatusItem | None)
_SYNCER = msgspec.json.Decoder(SyncerItem)


def seconds(time: datetime) -> float:
    """Unix seconds; a time without a zone is UTC."""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def timestamp(unix_seconds: float) -> str:
    """A time as the API writes it."""
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_syncer(body: bytes) -> SyncerObject:
    """One EurekaSyncer."""
    return syncer(_SYNCER.decode(body))


def syncer(item: SyncerItem) -> SyncerObject:
    """Our view of an EurekaSyncer; a spec that is no object is an empty one, which is invalid."""
    meta = item.metadata
    return SyncerObject(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        generation=meta.generation,
        resource_version=meta.resource_version,
        created=seconds(meta.creation_timestamp) if meta.creation_timestamp else 0.0,
        deleted=seconds(meta.deletion_timestamp) if meta.deletion_timestamp else None,
        finalizers=tuple(meta.finalizers or ()),
        labels=meta.labels or {},
        annotations=meta.annotations or {},
        spec=item.spec if isinstance(item.spec, dict) else {},
        status=_status(item.status),
    )


def _status(raw: msgspec.Raw) -> SyncerStatus | None:
    """A status is a report, never a source: one that cannot be read is as good as none, and is written anew."""
    try:
        item = _STATUS.decode(raw)
        if item is None:
            return None
        conditions = tuple(_condition(condition) for condition in item.conditions or ())
    except ValueError:
        return None
    return SyncerStatus(
        observed_generation=item.observed_generation,
        conditions=conditions,
        ready=item.ready,
        desired=item.desired,
        registered=item.registered,
        up=item.up,
        down=item.down,
        app_name=item.app_name,
        vip_address=item.vip_address,
        apps=tuple(item.apps or ()),
        errors=tuple(item.errors or ()),
    )


def _condition(item: _Condition) -> Condition:
    return Condition(
        type=item.type,
        status=ConditionStatus(item.status),
        reason=item.reason,
        message=item.message,
        observed_generation=item.observed_generation,
        last_transition=int(seconds(item.last_transition_time)) if item.last_transition_time else 0,
    )


def status_fields(status: SyncerStatus) -> dict[str, Any]:
    """A status as a merge patch: every field we own is in it, null takes one away (RFC 7386)."""
    conditions = [
        {
            "type": condition.type,
            "status": condition.status.value,
            "reason": condition.reason,
            "message": condition.message,
            "observedGeneration": condition.observed_generation,
            "lastTransitionTime": timestamp(condition.last_transition),
        }
        for condition in status.conditions
    ]
    return {
        "observedGeneration": status.observed_generation,
        "conditions": conditions or None,
        "ready": status.ready or None,
        "desired": status.desired,
        "registered": status.registered,
        "up": status.up,
        "down": status.down,
        "appName": status.app_name or None,
        "vipAddress": status.vip_address or None,
        "apps": list(status.apps) or None,
        "errors": list(status.errors) or None,
    }


def service(item: ServiceItem) -> Service:
    """Our view of a Service."""
    spec = item.spec
    return Service(
        namespace=item.metadata.namespace,
        name=item.metadata.name,
        labels=item.metadata.labels or {},
        type=spec.type,
        cluster_ips=tuple(spec.cluster_ips or ([spec.cluster_ip] if spec.cluster_ip else ())),
        ip_families=tuple(spec.ip_families or ()),
        ports=tuple(
            ServicePort(
                name=port.name, port=port.port, target=None if port.target_port == port.port else port.target_port
            )
            for port in spec.ports or ()
        ),
        publish_not_ready=spec.publish_not_ready_addresses,
    )


def endpoint_slice(item: SliceItem) -> EndpointSlice | None:
    """Our view of an EndpointSlice; None for one that belongs to no Service."""
    owner = (item.metadata.labels or {}).get(SERVICE_NAME)
    if not owner:
        return None
    return EndpointSlice(
        namespace=item.metadata.namespace,
        name=item.metadata.name,
        service=owner,
        address_type=item.address_type,
        ports=tuple(EndpointPort(name=port.name or "", port=port.port) for port in item.ports or ()),
        endpoints=tuple(_endpoint(entry) for entry in item.endpoints or () if entry.addresses),
    )


_NO_CONDITIONS = _Conditions()


def _endpoint(item: _Endpoint) -> Endpoint:
    """Nil is true for ready and serving, false for terminating (discovery/v1 EndpointConditions)."""
    conditions = item.conditions or _NO_CONDITIONS
    target = item.target_ref
    return Endpoint(
        address=item.addresses[0],
        ready=conditions.ready is not False,
        serving=conditions.serving is not False,
        terminating=conditions.terminating is True,
        pod=PodRef(target.name, target.uid) if target and target.kind == "Pod" else None,
        node=item.node_name or "",
        zone=item.zone or "",
    )


def is_terminating(item: DefinitionItem) -> bool:
    """Whether a CustomResourceDefinition is going, and takes its objects with it."""
    conditions = (item.status.conditions if item.status else None) or ()
    named = any((condition.type, condition.status) == ("Terminating", "True") for condition in conditions)
    return named or item.metadata.deletion_timestamp is not None
