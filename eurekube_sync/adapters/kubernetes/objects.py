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


def seconds_or_none(time: datetime | None) -> float | None:
    """Return the same; None without a time."""
    return None if time is None else seconds(time)


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

    def is_true(self, kind: str) -> bool:
        """Say whether there is a condition of this type with status True."""
        statuses = [
            condition.status for condition in self.conditions or () if condition.type == kind
        ]
        return "True" in statuses


class _ServicePort(Wire):
    port: int
    name: str = ""
    target_port: int | str | None = None
    node_port: int | None = None

    def read(self) -> model.ServicePort:
        target = None if self.target_port == self.port else self.target_port
        return model.ServicePort(
            name=self.name, port=self.port, target=target, node_port=self.node_port or None
        )


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

    def hosts(self) -> tuple[str, ...]:
        """Return the addresses of the load balancer. An IP needs no DNS, so it comes first."""
        balancer = self.load_balancer or _LoadBalancer()
        hosts = [ingress.ip or ingress.hostname for ingress in balancer.ingress or ()]
        return tuple([host for host in hosts if host])


class ServiceItem(Item):
    spec: _ServiceSpec
    status: _ServiceStatus | None = None

    def read(self) -> model.Service:
        meta, spec = self.metadata, self.spec
        cluster_ips = spec.cluster_ips
        if not cluster_ips and spec.cluster_ip:
            cluster_ips = [spec.cluster_ip]
        return model.Service(
            namespace=meta.namespace,
            name=meta.name,
            labels=meta.labels or {},
            type=spec.type,
            cluster_ips=tuple(cluster_ips or ()),
            ip_families=tuple(spec.ip_families or ()),
            ports=tuple([port.read() for port in spec.ports or ()]),
            publish_not_ready=spec.publish_not_ready_addresses,
            selects=bool(spec.selector),
            annotations=meta.annotations or {},
            load_balancer=self.status.hosts() if self.status else (),
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
        endpoints: list[model.Endpoint] = []
        for endpoint in self.endpoints or ():
            if endpoint.addresses:
                endpoints.append(endpoint.read(meta.namespace))
        return model.EndpointSlice(
            namespace=meta.namespace,
            name=meta.name,
            service=service,
            address_type=self.address_type,
            ports=tuple([port.read() for port in self.ports or ()]),
            endpoints=tuple(endpoints),
            managed_by=intern(labels.get(MANAGED_BY, "")),
        )


class _NodeAddress(Wire):
    type: str
    address: str


class _NodeStatus(Conditions):
    addresses: list[_NodeAddress] | None = None

    def of_type(self, kind: str) -> tuple[str, ...]:
        addresses = self.addresses or ()
        return tuple([address.address for address in addresses if address.type == kind])


class NodeItem(Item):
    status: _NodeStatus | None = None

    def read(self) -> model.Node:
        """Return the node. It is ready only if its status says so."""
        labels = self.metadata.labels or {}
        status = self.status or _NodeStatus()
        return model.Node(
            name=self.metadata.name,
            ready=status.is_true("Ready"),
            internal=status.of_type("InternalIP"),
            external=status.of_type("ExternalIP"),
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


class _PodMeta(Meta):
    deletion_timestamp: str | None = None


class _PodIP(Wire):
    ip: str = ""


class _PodStatus(Conditions):
    pod_ips: list[_PodIP] | None = msgspec.field(name="podIPs", default=None)


class ReadinessItem(Wire):
    metadata: _PodMeta
    spec: _PodSpec | None = None
    status: _PodStatus | None = None

    def read(self) -> model.PodReadiness:
        """Compute Ready as the kubelet does, from the containers and all gates, but without our
        gate."""
        status = self.status or _PodStatus()
        spec = self.spec or _PodSpec()
        by_type = {condition.type: condition for condition in status.conditions or ()}
        gates = {gate.condition_type for gate in spec.readiness_gates or ()}
        needed = {"ContainersReady"} | (gates - {REGISTERED})
        true = {kind for kind, condition in by_type.items() if condition.status == "True"}
        return model.PodReadiness(
            namespace=self.metadata.namespace,
            name=self.metadata.name,
            uid=_uid(self.metadata),
            ready=needed <= true and not _taken_back(by_type),
            registered=REGISTERED in true,
            running="Ready" in true and self.metadata.deletion_timestamp is None,
            addresses=tuple([address.ip for address in status.pod_ips or () if address.ip]),
        )


def _taken_back(by_type: Mapping[str, Condition]) -> bool:
    """Say whether Ready became false after our gate had opened, as the node controller sets it
    for a lost node. An earlier false Ready is one that the kubelet has not updated yet since the
    gate opened."""
    ready, gate = by_type.get("Ready"), by_type.get(REGISTERED)
    if ready is None or ready.status == "True":
        return False
    if gate is None or gate.status != "True":
        return False
    since, opened = ready.last_transition_time, gate.last_transition_time
    if since is None or opened is None:
        return False
    return seconds(since) > seconds(opened)
