"""What the API's fields mean to us: the structs of `wire` become the dataclasses of `model`.

Owns the API's rules for absent fields. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from sys import intern
from typing import Any

import msgspec

from eurekube_sync.adapters.kubernetes import wire
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.desired.drain import drainable, ignored_drain, is_drained
from eurekube_sync.model.kubernetes import (
    Condition,
    ConditionStatus,
    Drainable,
    Endpoint,
    EndpointPort,
    EndpointSlice,
    Namespace,
    Node,
    Pod,
    PodReadiness,
    PodRef,
    Service,
    ServicePort,
    SyncerObject,
    SyncerStatus,
)
from eurekube_sync.model.wording import rfc_3339

SERVICE_NAME = "kubernetes.io/service-name"
"""The label that ties an EndpointSlice to its Service (well-known labels of the Kubernetes documentation)."""
REGISTERED = "eurekube.io/registered"
"""Our readiness gate: the condition of a Pod that Eureka holds."""
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
"""The annotation with which the endpoints controller says that it stopped at 1000 addresses."""

_STATUS: msgspec.json.Decoder[wire.StatusItem | None] = msgspec.json.Decoder(wire.StatusItem | None)
_SYNCER = msgspec.json.Decoder(wire.SyncerItem)


def seconds(time: datetime) -> float:
    """Unix seconds; a time without a zone is UTC."""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def read_syncer(body: bytes) -> SyncerObject:
    return syncer(_SYNCER.decode(body))


def syncer(item: wire.SyncerItem) -> SyncerObject:
    """Our view of a EurekaSyncer; a spec that is no object is an empty one, which is invalid."""
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
        return None if item is None else _read_status(item)
    except UNREADABLE:
        return None


def _read_status(item: wire.StatusItem) -> SyncerStatus:
    return SyncerStatus(
        observed_generation=item.observed_generation,
        conditions=tuple(_condition(condition) for condition in item.conditions or ()),
        ready=item.ready,
        desired=item.desired,
        registered=item.registered,
        up=item.up,
        down=item.down,
        app_name=item.app_name,
        vip_address=item.vip_address,
        apps=tuple(item.apps or ()),
        errors=tuple(item.errors or ()),
        unconfirmed_removal=item.unconfirmed_removal,
        unconfirmed_since=_whole(item.unconfirmed_since),
        eureka_unknown_since=_whole(item.eureka_unknown_since),
    )


def _whole(moment: datetime | None) -> int | None:
    """Whole seconds; ValueError for a time that could not be written again: in UTC its year may have other digits."""
    if moment is not None and not 1000 < moment.year < 9999:
        raise ValueError(f"the year {moment.year}")
    return None if moment is None else int(seconds(moment))


def _condition(item: wire.StatusCondition) -> Condition:
    return Condition(
        type=intern(item.type),
        status=ConditionStatus(item.status),
        reason=intern(item.reason),
        message=intern(item.message),  # nearly all say that all is well
        observed_generation=item.observed_generation,
        last_transition=_whole(item.last_transition_time) or 0,
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
            "lastTransitionTime": rfc_3339(condition.last_transition),
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
        "unconfirmedRemoval": status.unconfirmed_removal or None,
        "unconfirmedSince": _moment(status.unconfirmed_since),
        "eurekaUnknownSince": _moment(status.eureka_unknown_since),
    }


def _moment(at: int | None) -> str | None:
    return None if at is None else rfc_3339(at)


def service(item: wire.ServiceItem) -> Service:
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
                name=port.name,
                port=port.port,
                target=None if port.target_port == port.port else port.target_port,
                node_port=port.node_port or None,
            )
            for port in spec.ports or ()
        ),
        publish_not_ready=spec.publish_not_ready_addresses,
        selects=bool(spec.selector),
        annotations=item.metadata.annotations or {},
        load_balancer=_load_balancer(item.status),
        external_ips=tuple(spec.external_ips or ()),
        external_name=spec.external_name,
        local=spec.external_traffic_policy == "Local",
    )


def _load_balancer(status: wire._ServiceStatus | None) -> tuple[str, ...]:
    """Each entry has an IP or a host name; where it has both, the IP needs no DNS."""
    entries = (status.load_balancer.ingress if status and status.load_balancer else None) or ()
    return tuple(host for entry in entries if (host := entry.ip or entry.hostname))


def endpoint_slice(item: wire.SliceItem) -> EndpointSlice | None:
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
        endpoints=tuple(_endpoint(entry, item.metadata.namespace) for entry in item.endpoints or () if entry.addresses),
    )


def slices_of_endpoints(item: wire.EndpointsItem) -> tuple[EndpointSlice, ...]:
    """What an Endpoints object says, as slices: one for each subset and address family, an empty one where it has none.

    It knows nothing of zones and of serving while terminating: a terminating pod is in none. One that is truncated says
    so in each slice.
    """
    meta = item.metadata
    truncated = (meta.annotations or {}).get(OVER_CAPACITY) == "truncated"
    groups: list[tuple[str, tuple[EndpointPort, ...], list[Endpoint]]] = []
    for subset in item.subsets or ():
        by_family: dict[str, list[Endpoint]] = {}
        for addresses, ready in ((subset.addresses, True), (subset.not_ready_addresses, False)):
            for address in addresses or ():
                family = "IPv6" if ":" in address.ip else "IPv4"
                by_family.setdefault(family, []).append(_of_address(address, meta.namespace, ready=ready))
        ports = tuple(EndpointPort(name=port.name or "", port=port.port) for port in subset.ports or ())
        groups += [(family, ports, endpoints) for family, endpoints in by_family.items()]
    return tuple(
        EndpointSlice(
            namespace=meta.namespace,
            name=f"{meta.name}-{number}",
            service=meta.name,
            address_type=family,
            ports=ports,
            endpoints=tuple(endpoints),
            truncated=truncated,
            of_endpoints=True,
        )
        for number, (family, ports, endpoints) in enumerate(groups or [("IPv4", (), [])])
    )


def _of_address(address: wire._Address, namespace: str, *, ready: bool) -> Endpoint:
    return Endpoint(
        address=address.ip,
        ready=ready,
        serving=ready,
        pod=_pod_ref(address.target_ref, namespace),
        node=address.node_name or "",
        zone=None,
    )


def pod(item: wire.MetadataItem) -> Pod:
    """A Pod's metadata; ValueError when the UID is empty: without one it would be no evidence."""
    meta = item.metadata
    if not meta.uid:
        raise ValueError("a Pod without a UID")
    return Pod(name=meta.name, uid=meta.uid, labels=meta.labels or {}, annotations=meta.annotations or {})


def pod_drain(item: wire.MetadataItem) -> Drainable:
    """Whether a Pod is drained; ValueError when the UID is empty."""
    found = pod(item)
    return drainable(found.uid, found.annotations)


def node_drain(item: wire.MetadataItem) -> Drainable:
    return drainable(item.metadata.name, item.metadata.annotations or {})


def namespace(item: wire.MetadataItem) -> Namespace:
    return Namespace(item.metadata.name, item.metadata.annotations or {})


def readiness(item: wire.WholePodItem) -> PodReadiness:
    """How ready a Pod is but for our gate, as the kubelet computes Ready: its containers, and every gate."""
    meta = pod(wire.MetadataItem(metadata=item.metadata))
    conditions = (item.status.conditions if item.status else None) or ()
    true = {condition.type for condition in conditions if condition.status == "True"}
    gates = {gate.condition_type for gate in (item.spec.readiness_gates if item.spec else None) or ()}
    return PodReadiness(
        namespace=item.metadata.namespace,
        name=meta.name,
        uid=meta.uid,
        ready={"ContainersReady", *(gates - {REGISTERED})} <= true and not _taken_back(conditions),
        registered=REGISTERED in true,
    )


def _taken_back(conditions: Sequence[wire.PodCondition]) -> bool:
    """Whether Ready was taken back after our gate had opened. Where a node is lost nobody but the node controller tells
    it, and it leaves all other conditions as they were. Right after the gate opens, the kubelet has yet to follow."""
    by_type = {condition.type: condition for condition in conditions}
    ready, gate = by_type.get("Ready"), by_type.get(REGISTERED)
    if ready is None or ready.status == "True" or gate is None or gate.status != "True":
        return False
    since, opened = ready.last_transition_time, gate.last_transition_time
    return since is not None and opened is not None and seconds(since) > seconds(opened)


def node(item: wire.NodeItem) -> Node:
    """Our view of a Node; one that does not say that it is ready is not."""
    labels = item.metadata.labels or {}
    status = item.status
    addresses = (status.addresses if status else None) or ()
    conditions = (status.conditions if status else None) or ()
    return Node(
        name=item.metadata.name,
        ready=any((condition.type, condition.status) == ("Ready", "True") for condition in conditions),
        internal=tuple(entry.address for entry in addresses if entry.type == "InternalIP"),
        external=tuple(entry.address for entry in addresses if entry.type == "ExternalIP"),
        zone=labels.get("topology.kubernetes.io/zone", ""),
        drained=is_drained(item.metadata.annotations or {}),
        ignored=ignored_drain(item.metadata.annotations or {}),
        excluded="node.kubernetes.io/exclude-from-external-load-balancers" in labels,
    )


_NO_CONDITIONS = wire.EndpointConditions()


def _endpoint(item: wire.EndpointItem, namespace: str) -> Endpoint:
    """Nil is true for ready and serving, false for terminating (discovery/v1 EndpointConditions).

    A pod without a UID is legal, and none: all such would be one and the same.
    """
    conditions = item.conditions or _NO_CONDITIONS
    return Endpoint(
        address=item.addresses[0],
        ready=conditions.ready is not False,
        serving=conditions.serving is not False,
        terminating=conditions.terminating is True,
        pod=_pod_ref(item.target_ref, namespace),
        node=intern(item.node_name or ""),  # few nodes for many pods
        zone=intern(item.zone or ""),
    )


def _pod_ref(target: wire._Target | None, namespace: str) -> PodRef | None:
    """The Pod that an endpoint is, if it is in the slice's own namespace: the cluster's controllers name no other."""
    if target is None or target.kind != "Pod" or not target.uid or target.namespace not in ("", namespace):
        return None
    return PodRef(target.name, target.uid)


def is_terminating(item: wire.DefinitionItem) -> bool:
    """Whether a CustomResourceDefinition is going, and takes its objects with it."""
    conditions = (item.status.conditions if item.status else None) or ()
    named = any((condition.type, condition.status) == ("Terminating", "True") for condition in conditions)
    return named or item.metadata.deletion_timestamp is not None
