"""The JSON of the Kubernetes API, as small structs: only the fields somebody reads, every other one is skipped.

Owns camelCase. Decoding raises one of `unreadable.UNREADABLE` on what the API never gives; whoever lists decides what
that means.
What the fields mean to us is in `projection`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class _Wire(msgspec.Struct, rename="camel", gc=False):
    """gc=False: a page holds tens of thousands of these, none of them in a cycle."""


class ListMeta(msgspec.Struct):
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
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class SyncerItem(_Wire):
    """A EurekaSyncer. `spec` has no type here, `status` is read apart: neither can spoil a list."""

    metadata: _Meta
    spec: Any = None
    status: msgspec.Raw = msgspec.Raw(b"null")


class _ServicePort(_Wire):
    port: int
    name: str = ""
    target_port: int | str | None = None
    node_port: int | None = None


class _ServiceSpec(_Wire):
    type: str = "ClusterIP"
    cluster_ip: str | None = msgspec.field(name="clusterIP", default=None)
    cluster_ips: list[str] | None = msgspec.field(name="clusterIPs", default=None)
    ip_families: list[str] | None = None
    ports: list[_ServicePort] | None = None
    publish_not_ready_addresses: bool = False
    selector: dict[str, str] | None = None
    external_ips: list[str] | None = msgspec.field(name="externalIPs", default=None)
    external_name: str = ""
    external_traffic_policy: str = ""


class _Ingress(_Wire):
    ip: str | None = None
    hostname: str | None = None


class _LoadBalancer(_Wire):
    ingress: list[_Ingress] | None = None


class _ServiceStatus(_Wire):
    load_balancer: _LoadBalancer | None = None


class ServiceItem(_Wire):
    metadata: _ShortMeta
    spec: _ServiceSpec
    status: _ServiceStatus | None = None


class EndpointConditions(_Wire):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class _Target(_Wire):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EndpointItem(_Wire):
    addresses: list[str]
    conditions: EndpointConditions | None = None
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
    endpoints: list[EndpointItem] | None = None
    ports: list[_EndpointPort] | None = None


class _Subset(_Wire):
    addresses: list[_Address] | None = None
    not_ready_addresses: list[_Address] | None = None
    ports: list[_EndpointPort] | None = None


class _Address(_Wire):
    ip: str
    node_name: str | None = None
    target_ref: _Target | None = None


class EndpointsItem(_Wire):
    """An Endpoints object, which clusters without EndpointSlices have."""

    metadata: _ShortMeta
    subsets: list[_Subset] | None = None


class _NodeAddress(_Wire):
    type: str
    address: str


class _NodeCondition(_Wire):
    type: str
    status: str


class _NodeStatus(_Wire):
    addresses: list[_NodeAddress] | None = None
    conditions: list[_NodeCondition] | None = None


class NodeItem(_Wire):
    metadata: _ShortMeta
    status: _NodeStatus | None = None


class MetadataItem(_Wire):
    """The metadata of a Pod or a Node, and nothing else of it."""

    metadata: _ShortMeta


class _Gate(_Wire):
    condition_type: str = ""


class _PodSpec(_Wire):
    readiness_gates: list[_Gate] | None = None


class PodCondition(_NodeCondition):
    last_transition_time: datetime | None = None


class _PodStatus(_Wire):
    conditions: list[PodCondition] | None = None


class WholePodItem(_Wire):
    """What a readiness gate needs of a Pod."""

    metadata: _ShortMeta
    spec: _PodSpec | None = None
    status: _PodStatus | None = None


class StatusCondition(_Wire):
    """One entry of `status.conditions`, of a syncer or of a CRD."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None


class StatusItem(_Wire):
    observed_generation: int = 0
    conditions: list[StatusCondition] | None = None
    ready: str = ""
    desired: int = 0
    registered: int = 0
    up: int = 0
    down: int = 0
    app_name: str = ""
    vip_address: str = ""
    apps: list[str] | None = None
    errors: list[str] | None = None
    unconfirmed_removal: str = ""
    unconfirmed_since: datetime | None = None
    eureka_unknown_since: datetime | None = None


class DefinitionItem(_Wire):
    metadata: _Meta
    status: _DefinitionStatus | None = None


class _DefinitionStatus(_Wire):
    conditions: list[StatusCondition] | None = None


class EventItem(_Wire):
    metadata: _Meta
    count: int | None = None
    last_timestamp: datetime | None = None


class LeaseSpec(_Wire):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class LeaseItem(_Wire):
    """Of the lock."""

    metadata: _Meta
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)
