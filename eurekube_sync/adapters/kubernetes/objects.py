"""The API's JSON of Kubernetes objects. `read` makes values of `model`; unused fields are skipped.
Decoding and `read` raise `no_answer.UNREADABLE`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from sys import intern

import msgspec

from eurekube_sync.desired.catalog import drainable
from eurekube_sync.model import kubernetes as model

SERVICE_NAME = "kubernetes.io/service-name"  # the label of an EndpointSlice that names its Service
# The label of an EndpointSlice that says who writes it
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
REGISTERED = "eurekube.io/registered"  # our readiness gate: a condition of Pods


def seconds(time: datetime) -> float:
    """Return Unix seconds; a time without a zone is UTC."""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


class Wire(msgspec.Struct, rename="camel", gc=False):
    """The base of all structs. gc=False: a page has tens of thousands of them, and no cycles."""


class Meta(Wire):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Item(Wire):
    metadata: Meta


class Condition(Wire):
    type: str
    status: str
    last_transition_time: datetime | None = None


class Conditions(Wire):
    conditions: list[Condition] | None = None


class _ServicePort(Wire):
    port: int
    name: str = ""
    target_port: int | str | None = None
    node_port: int | None = None


class _ServiceSpec(Wire):
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


class _Ingress(Wire):
    ip: str | None = None
    hostname: str | None = None


class _LoadBalancer(Wire):
    ingress: list[_Ingress] | None = None


class _ServiceStatus(Wire):
    load_balancer: _LoadBalancer | None = None


class ServiceItem(Item):
    spec: _ServiceSpec
    status: _ServiceStatus | None = None

    def read(self) -> model.Service:
        meta, spec, status = self.metadata, self.spec, self.status
        ingress = (status.load_balancer.ingress if status and status.load_balancer else None) or ()
        return model.Service(
            namespace=meta.namespace,
            name=meta.name,
            labels=meta.labels or {},
            type=spec.type,
            cluster_ips=tuple(spec.cluster_ips or ([spec.cluster_ip] if spec.cluster_ip else ())),
            ip_families=tuple(spec.ip_families or ()),
            ports=tuple(
                model.ServicePort(
                    name=port.name,
                    port=port.port,
                    target=None if port.target_port == port.port else port.target_port,
                    node_port=port.node_port or None,
                )
                for port in spec.ports or ()
            ),
            publish_not_ready=spec.publish_not_ready_addresses,
            selects=bool(spec.selector),
            annotations=meta.annotations or {},
            load_balancer=tuple(
                host for one in ingress if (host := one.ip or one.hostname)
            ),  # an IP needs no DNS
            external_ips=tuple(spec.external_ips or ()),
            external_name=spec.external_name,
            local=spec.external_traffic_policy == "Local",
        )


class _Target(Wire):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    def pod(self, namespace: str) -> model.PodRef | None:
        """Return the endpoint's Pod, if it is in the slice's namespace, as the cluster's
        controllers write it. A Pod without a UID is legal, but not identified, so it is None."""
        if self.kind != "Pod" or not self.uid or self.namespace not in ("", namespace):
            return None
        return model.PodRef(self.name, self.uid)


class _EndpointConditions(Wire):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class _Endpoint(Wire):
    addresses: list[str]
    conditions: _EndpointConditions | None = None
    target_ref: _Target | None = None
    node_name: str | None = None
    zone: str | None = None

    def read(self, namespace: str) -> model.Endpoint:
        """Apply the defaults for nil: ready, serving, not terminating (discovery/v1
        EndpointConditions)."""
        conditions = self.conditions or _EndpointConditions()
        return model.Endpoint(
            address=self.addresses[0],
            ready=conditions.ready is not False,
            serving=conditions.serving is not False,
            terminating=conditions.terminating is True,
            pod=self.target_ref.pod(namespace) if self.target_ref else None,
            node=intern(self.node_name or ""),  # few nodes for many pods
            zone=intern(self.zone or ""),
        )


class _EndpointPort(Wire):
    name: str | None = None
    port: int | None = None

    def read(self) -> model.EndpointPort:
        return model.EndpointPort(name=self.name or "", port=self.port)


class SliceItem(Item):
    address_type: str
    endpoints: list[_Endpoint] | None = None  # null if there are none, as for `ports` [real 1.36]
    ports: tuple[_EndpointPort, ...] | None = None

    def read(self) -> model.EndpointSlice | None:
        meta = self.metadata
        labels = meta.labels or {}
        service = labels.get(SERVICE_NAME)
        if not service:
            return None
        return model.EndpointSlice(
            namespace=meta.namespace,
            name=meta.name,
            service=service,
            address_type=self.address_type,
            ports=tuple(port.read() for port in self.ports or ()),
            endpoints=tuple(
                one.read(meta.namespace) for one in self.endpoints or () if one.addresses
            ),
            managed_by=intern(labels.get(MANAGED_BY, "")),
        )


class _NodeAddress(Wire):
    type: str
    address: str


class _NodeStatus(Conditions):
    addresses: list[_NodeAddress] | None = None


class NodeItem(Item):
    status: _NodeStatus | None = None

    def read(self) -> model.Node:
        """Return the node. It is ready only if its status says so."""
        labels = self.metadata.labels or {}
        status = self.status or _NodeStatus()
        addresses = status.addresses or ()
        return model.Node(
            name=self.metadata.name,
            ready=any(
                (one.type, one.status) == ("Ready", "True") for one in status.conditions or ()
            ),
            internal=tuple(one.address for one in addresses if one.type == "InternalIP"),
            external=tuple(one.address for one in addresses if one.type == "ExternalIP"),
            excluded="node.kubernetes.io/exclude-from-external-load-balancers" in labels,
        )


class NamespaceItem(Item):
    def read(self) -> model.Namespace:
        return model.Namespace(self.metadata.name, self.metadata.annotations or {})


def _uid(pod: Meta) -> str:
    if not pod.uid:  # without one, a pod cannot be compared with an endpoint
        raise ValueError("a Pod without a UID")
    return pod.uid


class PodItem(Item):
    def read(self) -> model.Pod:
        meta = self.metadata
        return model.Pod(
            name=meta.name,
            uid=_uid(meta),
            labels=meta.labels or {},
            annotations=meta.annotations or {},
        )


class PodDrainItem(Item):
    def read(self) -> model.Drainable:
        return drainable(_uid(self.metadata), self.metadata.annotations or {})


class _Gate(Wire):
    condition_type: str = ""


class _PodSpec(Wire):
    readiness_gates: list[_Gate] | None = None


class ReadinessItem(Item):
    spec: _PodSpec | None = None
    status: Conditions | None = None

    def read(self) -> model.PodReadiness:
        """Compute Ready as the kubelet does, from the containers and all gates, but without our
        gate."""
        by_type = {one.type: one for one in (self.status.conditions if self.status else None) or ()}
        true = {type_ for type_, one in by_type.items() if one.status == "True"}
        gates = {
            gate.condition_type for gate in (self.spec.readiness_gates if self.spec else None) or ()
        }
        return model.PodReadiness(
            namespace=self.metadata.namespace,
            name=self.metadata.name,
            uid=_uid(self.metadata),
            ready={"ContainersReady", *(gates - {REGISTERED})} <= true and not _taken_back(by_type),
            registered=REGISTERED in true,
        )


def _taken_back(by_type: Mapping[str, Condition]) -> bool:
    """Return whether Ready became false after our gate had opened, as the node controller sets it
    for a lost node. An earlier false Ready is one that the kubelet has not updated yet since the
    gate opened."""
    ready, gate = by_type.get("Ready"), by_type.get(REGISTERED)
    if ready is None or ready.status == "True" or gate is None or gate.status != "True":
        return False
    since, opened = ready.last_transition_time, gate.last_transition_time
    return since is not None and opened is not None and seconds(since) > seconds(opened)
