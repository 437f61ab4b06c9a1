"""The API's JSON of Kubernetes objects. `read` makes values of `model`; unused fields are skipped.
Decoding and `read` raise `no_answer.UNREADABLE`. Pure."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from sys import intern

import msgspec

from eurekube_sync.desired.catalog import drainable
from eurekube_sync.model import imports
from eurekube_sync.model import kubernetes as model

SERVICE_NAME = "kubernetes.io/service-name"  # the label of an EndpointSlice that names its Service
# The label of an EndpointSlice that says who writes it
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
TCP = "TCP"  # the one protocol of Eureka's clients; the default of ports
_EACH_ADDRESS = (None, "", "0.0.0.0", "::")  # `hostIP` of a port that is open at all of a node's
_EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"
_LEAVING_TAINTS = ("ToBeDeletedByClusterAutoscaler", "node.kubernetes.io/out-of-service")
REGISTERED = "eurekube.io/registered"  # our readiness gate: a condition of Pods

# As plain numbers: the members of an enumeration take longer for each endpoint.
_IPV4, _IPV6 = int(socket.AF_INET), int(socket.AF_INET6)
_FOUR_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+){3}")


def canonical(address: str) -> str:
    """Return an IP address in its canonical form, and any other text as it is.

    Before 1.36 the API takes `010.0.0.1` and `2001:DB8:0::1` in a slice, and external IPs in such
    forms to this day. kube-proxy reads zeros as decimal (netutils.ParseIPSloppy). As texts they
    would be other addresses than those of the pods that have them."""
    try:
        if ":" in address:
            return socket.inet_ntop(_IPV6, socket.inet_pton(_IPV6, address))
        socket.inet_pton(_IPV4, address)  # takes the canonical form alone
    except (OSError, ValueError):  # ValueError: it has a null character
        if _FOUR_NUMBERS.fullmatch(address):
            return ".".join([part.lstrip("0") or "0" for part in address.split(".")])
    return address


def seconds(time: datetime) -> float:
    """Return Unix seconds; a time without a zone is UTC."""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def seconds_or_none(time: datetime | None) -> float | None:
    """Return the same; None without a time."""
    if time is None:
        return None
    return seconds(time)


class Wire(msgspec.Struct, rename="camel", gc=False):
    """The base of all structs. gc=False: a page has tens of thousands of them, and no cycles."""


class _OwnerReference(Wire):
    kind: str = ""
    uid: str = ""
    controller: bool | None = None


class Meta(Wire):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: datetime | None = None


class OwnedMeta(Meta):
    resource_version: str = ""
    owner_references: list[_OwnerReference] | None = None

    def controller(self) -> _OwnerReference:
        """Return the reference to the object's controller; an empty one without a controller."""
        for reference in self.owner_references or ():
            if reference.controller:
                return reference
        return _OwnerReference()


class Item(Wire):
    metadata: Meta


class OwnedItem(Wire):
    metadata: OwnedMeta


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
    protocol: str = TCP
    target_port: int | str | None = None
    node_port: int | None = None

    def read(self) -> model.ServicePort:
        target = None if self.target_port == self.port else self.target_port
        return model.ServicePort(
            name=self.name, port=self.port, target=target, node_port=self.node_port or None
        )

    def __str__(self) -> str:
        return f"{self.port}/{self.protocol}"


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


class BalancerStatus(Wire):
    load_balancer: _LoadBalancer | None = None

    def hosts(self) -> tuple[str, ...]:
        """Return the addresses of the load balancer. An IP needs no DNS, so it comes first."""
        balancer = self.load_balancer or _LoadBalancer()
        hosts = [
            canonical(ingress.ip) if ingress.ip else ingress.hostname
            for ingress in balancer.ingress or ()
        ]
        return tuple([host for host in hosts if host])


class ServiceItem(OwnedItem):
    spec: _ServiceSpec
    status: BalancerStatus | None = None

    def read(self) -> model.Service:
        meta, spec = self.metadata, self.spec
        controller = meta.controller()
        cluster_ips = spec.cluster_ips
        if not cluster_ips and spec.cluster_ip:
            cluster_ips = [spec.cluster_ip]
        ports: list[model.ServicePort] = []
        other_ports: list[str] = []
        for port in spec.ports or ():
            if port.protocol == TCP:
                ports.append(port.read())
            else:
                other_ports.append(str(port))
        return model.Service(
            namespace=meta.namespace,
            name=meta.name,
            labels=meta.labels or {},
            type=spec.type,
            cluster_ips=tuple(cluster_ips or ()),
            ip_families=tuple(spec.ip_families or ()),
            ports=tuple(ports),
            other_ports=tuple(other_ports),
            publish_not_ready=spec.publish_not_ready_addresses,
            selects=bool(spec.selector),
            annotations=meta.annotations or {},
            load_balancer=self.status.hosts() if self.status else (),
            external_ips=tuple([canonical(address) for address in spec.external_ips or ()]),
            external_name=spec.external_name,
            local=spec.external_traffic_policy == "Local",
            uid=meta.uid,
            resource_version=meta.resource_version,
            controller=intern(controller.kind),
            owner_uid=controller.uid,
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
            address=canonical(self.addresses[0]),
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
    protocol: str | None = None  # None: TCP

    def read(self) -> model.EndpointPort:
        return model.EndpointPort(name=self.name or "", port=self.port)


class SliceItem(OwnedItem):
    address_type: str
    endpoints: list[_Endpoint] | None = None  # null if there are none, as for `ports` [real 1.36]
    ports: tuple[_EndpointPort, ...] | None = None

    def read(self) -> model.EndpointSlice | None:
        meta = self.metadata
        labels = meta.labels or {}
        service = labels.get(SERVICE_NAME, "")
        managed_by = intern(labels.get(MANAGED_BY, ""))
        of_import = managed_by == imports.MANAGER
        if not service and not of_import:
            return None  # an import finds its slice without the label, and writes it again
        endpoints: list[model.Endpoint] = []
        for endpoint in self.endpoints or ():
            if endpoint.addresses:
                endpoints.append(endpoint.read(meta.namespace))
        return model.EndpointSlice(
            namespace=meta.namespace,
            name=meta.name,
            service=service,
            address_type=self.address_type,
            ports=tuple([port.read() for port in self.ports or () if port.protocol in (TCP, None)]),
            endpoints=tuple(endpoints),
            managed_by=managed_by,
            uid=meta.uid if of_import else "",
            resource_version=meta.resource_version if of_import else "",
            owner_uid=meta.controller().uid if of_import else "",
        )


class _NodeAddress(Wire):
    type: str
    address: str


class _NodeStatus(Conditions):
    addresses: list[_NodeAddress] | None = None

    def of_type(self, kind: str) -> tuple[str, ...]:
        addresses = self.addresses or ()
        return tuple([address.address for address in addresses if address.type == kind])


class _Taint(Wire):
    key: str


class _NodeSpec(Wire):
    taints: list[_Taint] | None = None


class NodeItem(Item):
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None

    def read(self) -> model.Node:
        """Return the node. It is ready only if its status says so."""
        status = self.status or _NodeStatus()
        return model.Node(
            name=self.metadata.name,
            ready=status.is_true("Ready"),
            internal=status.of_type("InternalIP"),
            external=status.of_type("ExternalIP"),
            labels=self.metadata.labels or {},
            leaves=self._leaves(),
        )

    def _leaves(self) -> str:
        """Return why the node leaves; empty if it stays.

        The label, the deletion and the autoscaler's taint are the tests of Kubernetes' own service
        controller (k8s.io/cloud-provider, controllers/service, stableNodeSetPredicates). A person
        gives a node that is dead for good the taint out-of-service."""
        if self.metadata.deletion_timestamp is not None:
            return "is being deleted"
        if _EXCLUDED in (self.metadata.labels or {}):
            return f"has the label {_EXCLUDED}"
        taints = self.spec.taints if self.spec else None
        for taint in taints or ():
            if taint.key in _LEAVING_TAINTS:
                return f"has the taint {taint.key}"
        return ""


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


class _ContainerPort(Wire):
    container_port: int
    host_port: int | None = None
    host_ip: str | None = msgspec.field(name="hostIP", default=None)
    protocol: str = TCP


class _Container(Wire):
    ports: list[_ContainerPort] | None = None


class _HostedSpec(Wire):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None  # a sidecar is one of them
    host_network: bool | None = None

    @property
    def host_ports(self) -> Mapping[int, model.HostPort]:
        """The TCP ports of the host that lead to the Pod, by the container's port."""
        ports: dict[int, model.HostPort] = {}
        for container in (*(self.init_containers or ()), *(self.containers or ())):
            for port in container.ports or ():
                if port.host_port and port.protocol == TCP:
                    address = "" if port.host_ip in _EACH_ADDRESS else port.host_ip or ""
                    ports[port.container_port] = model.HostPort(port.host_port, address)
        return ports


class _HostIp(Wire):
    ip: str = ""


class _HostedStatus(Wire):
    host_ip: str | None = msgspec.field(name="hostIP", default=None)
    host_ips: list[_HostIp] | None = msgspec.field(name="hostIPs", default=None)  # since 1.30

    @property
    def addresses(self) -> tuple[str, ...]:
        if not self.host_ips:
            if self.host_ip:
                return (self.host_ip,)
            return ()
        return tuple([host.ip for host in self.host_ips if host.ip])


class PodHostItem(Item):
    spec: _HostedSpec | None = None
    status: _HostedStatus | None = None

    def read(self) -> model.PodHost:
        spec, status = self.spec or _HostedSpec(), self.status or _HostedStatus()
        return model.PodHost(
            uid=_uid(self.metadata),
            addresses=status.addresses,
            host_network=bool(spec.host_network),
            ports=spec.host_ports,
        )


class _Gate(Wire):
    condition_type: str = ""


class _PodSpec(Wire):
    readiness_gates: list[_Gate] | None = None


class _PodIP(Wire):
    ip: str = ""


class _PodStatus(Conditions):
    pod_ips: list[_PodIP] | None = msgspec.field(name="podIPs", default=None)


class ReadinessItem(Item):
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
