"""Each kind of address, as a container outside of the cluster meets it that has no route to pods: a
Spring application finds the app in Eureka and calls it there, and a pod answers.

Each kind has a Service and an app of its own, and all of them have the same pods.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.datapath.instances import listed, wait_for_list
from tests.integration.gateways import API, accepted_by, installed_gateway_api
from tests.integration.hand_made import make_syncer
from tests.integration.program import Program
from tests.servers.caller import Calls
from tests.servers.data_path import NAMESPACE, NODE, NODE_ADDRESS, POD, POD_ADDRESS, DataPath
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.namespaces import Forwarder, NetworkNamespace
from tests.servers.nginx import Entrance
from tests.servers.outside import (
    OTHER_NODE,
    OTHER_NODE_ADDRESS,
    OTHER_POD,
    OTHER_POD_ADDRESS,
    Outside,
)
from tests.servers.spring_reader import SpringReader
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

LABELS = {"pods": "outside"}
HOST_PORT, NODE_PORT, LOCAL_NODE_PORT, LISTENER_PORT = 18080, 31780, 31781, 8080
BALANCER, EXTERNAL = "10.253.0.1", "10.253.0.2"
BY_INGRESS, BY_GATEWAY, BY_HAND = "ingress.example.com", "gateway.example.com", "hand.example.com"
PORT = {"name": "http", "port": 80, "targetPort": 8080}
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
INGRESSES = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/ingresses"
GATEWAYS = f"{API}/namespaces/{NAMESPACE}/gateways"
ROUTES = f"{API}/namespaces/{NAMESPACE}/httproutes"
_ENOUGH = 20
"""So many calls reach each of two servers, but for one time in 500,000."""


def with_host(world: KubernetesWorld, service: str) -> None:
    make_ingress(world, service, {"host": BY_INGRESS})


def without_host(world: KubernetesWorld, service: str) -> None:
    make_ingress(world, service, {})


def make_ingress(world: KubernetesWorld, service: str, host: Mapping[str, str]) -> None:
    """Create an Ingress, with the status that its controller on the first node writes."""
    backend = {"service": {"name": service, "port": {"name": "http"}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    spec = {"rules": [{**host, "http": {"paths": [path]}}]}
    world.request("POST", INGRESSES, {"metadata": {"name": service}, "spec": spec})
    status = {"loadBalancer": {"ingress": [{"ip": NODE_ADDRESS}]}}
    world.request("PATCH", f"{INGRESSES}/{service}/status", {"status": status})


def with_route(world: KubernetesWorld, service: str) -> None:
    """Create a Gateway and a route, which the Gateway's controller on the first node accepts."""
    head = {"apiVersion": "gateway.networking.k8s.io/v1", "metadata": {"name": service}}
    listener = {"name": "http", "port": LISTENER_PORT, "protocol": "HTTP"}
    gateway = {"gatewayClassName": "example", "listeners": [listener]}
    world.request("POST", GATEWAYS, {**head, "kind": "Gateway", "spec": gateway})
    route = {
        "parentRefs": [{"name": service}],
        "hostnames": [BY_GATEWAY],
        "rules": [{"backendRefs": [{"name": service, "port": 80}]}],
    }
    world.request("POST", ROUTES, {**head, "kind": "HTTPRoute", "spec": route})
    world.request("PATCH", f"{ROUTES}/{service}/status", accepted_by(service))


def with_balancer(world: KubernetesWorld, service: str) -> None:
    """Give the Service the address of a load balancer, which leads to the first node."""
    status = {"status": {"loadBalancer": {"ingress": [{"ip": BALANCER}]}}}
    world.request("PATCH", f"{SERVICES}/{service}/status", status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of address, and where the app is registered while its pods are on the first node, on
    both and on the second."""

    spec: Mapping[str, Any]
    service: Mapping[str, Any] = field(default_factory=dict)
    make: Callable[[KubernetesWorld, str], None] | None = None
    """Makes what the cluster has beside the Service."""
    entrance: tuple[str, str] | None = None
    """Where the proxy on the first node listens for the Service, and for which host."""
    first: Collection[str]
    both: Collection[str] | None = None  # None: as first
    second: Collection[str] | None = None  # None: as first
    drops: bool = False
    """Whether a node drops calls when its pod is no longer ready, sooner than callers can know."""


ON_FIRST, ON_SECOND = f"{NODE_ADDRESS}:{HOST_PORT}", f"{OTHER_NODE_ADDRESS}:{HOST_PORT}"
INGRESS = {"mode": "service", "service": {"address": "Ingress"}}
KINDS = {
    "host-port": Kind(
        spec={"pod": {"address": "HostPort"}},
        first=[ON_FIRST],
        both=[ON_FIRST, ON_SECOND],
        second=[ON_SECOND],
    ),
    "node-port": Kind(
        spec={"mode": "service"},
        service={"type": "NodePort", "ports": [{**PORT, "nodePort": NODE_PORT}]},
        first=[f"{NODE_ADDRESS}:{NODE_PORT}", f"{OTHER_NODE_ADDRESS}:{NODE_PORT}"],
    ),
    "local-node-port": Kind(
        spec={"mode": "service"},
        service={
            "type": "NodePort",
            "externalTrafficPolicy": "Local",
            "ports": [{**PORT, "nodePort": LOCAL_NODE_PORT}],
        },
        first=[f"{NODE_ADDRESS}:{LOCAL_NODE_PORT}"],
        both=[f"{NODE_ADDRESS}:{LOCAL_NODE_PORT}", f"{OTHER_NODE_ADDRESS}:{LOCAL_NODE_PORT}"],
        second=[f"{OTHER_NODE_ADDRESS}:{LOCAL_NODE_PORT}"],
        drops=True,
    ),
    "load-balancer": Kind(
        spec={"mode": "service"},
        service={"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False},
        make=with_balancer,
        first=[f"{BALANCER}:80"],
    ),
    "external-ip": Kind(
        spec={"mode": "service", "service": {"address": "ExternalIP"}},
        service={"externalIPs": [EXTERNAL]},
        first=[f"{EXTERNAL}:80"],
    ),
    "ingress": Kind(
        spec=INGRESS,
        make=with_host,
        entrance=(f"{NODE_ADDRESS}:80", BY_INGRESS),
        first=[f"{BY_INGRESS}:80"],
    ),
    "ingress-without-host": Kind(
        spec=INGRESS,
        make=without_host,
        entrance=(f"{NODE_ADDRESS}:80", NODE_ADDRESS),
        first=[f"{NODE_ADDRESS}:80"],
    ),
    "gateway": Kind(
        spec={"mode": "service", "service": {"address": "Gateway"}},
        make=with_route,
        entrance=(f"{NODE_ADDRESS}:{LISTENER_PORT}", BY_GATEWAY),
        first=[f"{BY_GATEWAY}:{LISTENER_PORT}"],
    ),
    "hostname": Kind(
        spec={"mode": "service", "port": 80, "service": {"hostname": BY_HAND}},
        entrance=(f"{NODE_ADDRESS}:80", BY_HAND),
        first=[f"{BY_HAND}:80"],
    ),
}
POD_IP = "pod-ip"
"""The app of a syncer with nothing but a selector."""
CLUSTER_IP = "cluster-ip"
"""The app of a syncer whose address is for callers in the cluster alone."""


@pytest.fixture
def outside(
    data_path: DataPath, kubernetes_servers: KubernetesServers, kubernetes_world: KubernetesWorld
) -> Iterator[Outside]:
    """A network of callers with a route to each node, and none to pods."""
    network = Outside(
        data_path,
        kubernetes_servers,
        forwarded=[HOST_PORT],
        routed=[BALANCER, EXTERNAL],
        hosts=[BY_INGRESS, BY_GATEWAY, BY_HAND],
    )
    with installed_gateway_api(kubernetes_world), network:
        yield network


@pytest.fixture
def entrance(
    data_path: DataPath, outside: Outside, kubernetes_world: KubernetesWorld, crds: None
) -> Iterator[None]:
    """The Services with their syncers, and the proxy on the first node that leads to some."""
    world = kubernetes_world
    services: dict[str, dict[str, str]] = {}
    for name, kind in KINDS.items():
        made = make_service(world, name, **kind.service)
        if kind.make is not None:
            kind.make(world, name)
        make_syncer(world, NAMESPACE, name, name, **kind.spec)
        if kind.entrance is not None:
            listens, host = kind.entrance
            services.setdefault(listens, {})[host] = f"{made['spec']['clusterIP']}:80"
    make_service(world, POD_IP)
    make_syncer(world, NAMESPACE, POD_IP, POD_IP)
    make_service(world, CLUSTER_IP)
    make_syncer(world, NAMESPACE, CLUSTER_IP, CLUSTER_IP, mode="service")
    with Entrance(data_path.node, services):
        yield
    for item in world.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]:
        world.delete_pod(NAMESPACE, item["metadata"]["name"])
    for path in (INGRESSES, GATEWAYS, ROUTES):
        for item in world.request("GET", path)["items"]:
            world.request("DELETE", f"{path}/{item['metadata']['name']}")
    for name in (*KINDS, POD_IP, CLUSTER_IP):
        world.request("DELETE", f"{SERVICES}/{name}")


def make_service(world: KubernetesWorld, name: str, **fields: Any) -> dict[str, Any]:
    """Create a Service of the pods, with the app's label."""
    spec = {"ports": [PORT], "ipFamilyPolicy": "SingleStack", **fields}
    return world.create_service(NAMESPACE, name, selector=LABELS, labels={"app": name}, **spec)


@dataclass(frozen=True, kw_only=True)
class Apps:
    """The apps of all kinds, which share their pods, between the servers."""

    world: KubernetesWorld
    data_path: DataPath
    eureka: EurekaServer
    program: Program

    @property
    def cluster_ip(self) -> str:
        """The ClusterIP of `CLUSTER_IP`."""
        spec = self.world.request("GET", f"{SERVICES}/{CLUSTER_IP}")["spec"]
        return str(spec["clusterIP"])

    def run_pod(self, name: str, node: str, address: str) -> None:
        """Have a ready pod on a node, as its kubelet reports it."""
        port = {"name": "http", "containerPort": 8080, "hostPort": HOST_PORT}
        container = {"name": "app", "image": "example.invalid/app:1", "ports": [port]}
        self.world.create_pod(
            NAMESPACE, name, labels=LABELS, node=node, ips=[address], containers=[container]
        )
        host_ip = NODE_ADDRESS if node == NODE else OTHER_NODE_ADDRESS
        self.world.patch_pod_status(NAMESPACE, name, {"hostIP": host_ip})

    def follow(self, states: Mapping[str, Any], places: Mapping[str, Collection[str]]) -> None:
        """Let the slices, kube-proxy, the program and Eureka's list follow; each app is then at
        these places."""
        for name in places:
            self.world.wait_for_slices(NAMESPACE, name, states)
        self.data_path.wait_for_kube_proxy()
        self.program.good()
        for name, of_the_app in places.items():
            wait_for_list(self.eureka, name.upper(), of_the_app)


@pytest.fixture
def apps(
    data_path: DataPath,
    entrance: None,
    kubernetes_world: KubernetesWorld,
    eureka: EurekaServer,
    program: Program,
) -> Apps:
    """The apps, still without pods."""
    return Apps(world=kubernetes_world, data_path=data_path, eureka=eureka, program=program)


@pytest.fixture
def reader(outside: Outside, apps: Apps) -> Iterator[SpringReader]:
    """A Spring application in the caller's network that calls each app all the time. It is started
    when a pod on the first node is registered in all ways."""
    apps.run_pod("outside-a", NODE, POD_ADDRESS)
    first = {name: kind.first for name, kind in KINDS.items()}
    apps.follow({POD_ADDRESS: "Ready"}, {**first, POD_IP: [POD]})
    eureka, caller = apps.eureka, outside.caller
    names = [*KINDS, POD_IP]
    with (
        Forwarder(caller, eureka.port),
        SpringReader(eureka.url, names, namespace=caller, refreshed=True) as reader,
    ):
        yield reader


def test_apps_are_called_at_each_kind_of_address_while_their_pod_moves(
    apps: Apps, reader: SpringReader, outside: Outside
) -> None:
    """A second pod starts on another node, the first is no longer ready, and then it is gone. The
    second terminates, and serves callers who do not know yet. No call fails.

    To the pods' own addresses there is no route, and nor to the Service's, which a pod calls."""
    wait_for_answers_of(reader, [POD])
    wait_for_an_answer_within(apps, POD)
    apps.run_pod("outside-b", OTHER_NODE, OTHER_POD_ADDRESS)
    ready = {POD_ADDRESS: "Ready", OTHER_POD_ADDRESS: "Ready"}
    apps.follow(ready, {name: kind.both or kind.first for name, kind in KINDS.items()})
    wait_for_answers_of(reader, [POD, OTHER_POD])

    moved = {name: kind.second or kind.first for name, kind in KINDS.items()}
    apps.world.set_ready(NAMESPACE, "outside-a", False)
    apps.follow({POD_ADDRESS: "NotReady", OTHER_POD_ADDRESS: "Ready"}, moved)
    wait_for_answers_of(reader, [OTHER_POD])
    apps.world.delete_pod(NAMESPACE, "outside-a")
    apps.follow({OTHER_POD_ADDRESS: "Ready"}, moved)
    wait_for_answers_of(reader, [OTHER_POD])
    wait_for_an_answer_within(apps, OTHER_POD)

    begin = {name: reader.number(name) for name in KINDS}
    apps.world.delete_pod(NAMESPACE, "outside-b", grace_seconds=300)
    for name in KINDS:
        apps.world.wait_for_slices(NAMESPACE, name, {OTHER_POD_ADDRESS: "Terminating"})
    apps.data_path.wait_for_kube_proxy()
    wait_for_answers_of(reader, [OTHER_POD])
    for name in KINDS:
        assert reader.calls(name, since=begin[name]).failed == (), name

    for name, kind in KINDS.items():
        assert kind.drops or reader.calls(name).failed == (), name
    assert reader.calls(POD_IP).answered == 0
    assert len(reader.calls(POD_IP).failed) > _ENOUGH
    for address in (POD_ADDRESS, OTHER_POD_ADDRESS, apps.cluster_ip):
        assert error_at(outside.caller, address) == errno.ENETUNREACH


def wait_for_answers_of(reader: SpringReader, servers: Collection[str]) -> None:
    """Wait until the next calls of each app are answered by exactly these servers."""

    def next_calls() -> dict[str, Calls]:
        begin = {name: reader.number(name) for name in KINDS}
        # They are called in turn
        last = list(KINDS)[-1]
        wait_until(lambda: reader.number(last) >= begin[last] + _ENOUGH, "there are no calls")
        return {name: reader.calls(name, since=begin[name]) for name in KINDS}

    wrong: dict[str, Calls] = {}

    def reached() -> bool:
        wrong.clear()
        for name, calls in next_calls().items():
            if set(calls.by) != set(servers):
                wrong[name] = calls
        return not wrong

    wait_until(reached, lambda: f"not {servers} alone answered: {wrong}")


def wait_for_an_answer_within(apps: Apps, server: str) -> None:
    """Wait until a call from a pod, to where Eureka has the Service by its ClusterIP, is answered by
    a server."""
    (place,) = listed(apps.eureka, CLUSTER_IP.upper())
    assert place == f"{apps.cluster_ip}:80"

    def answered() -> bool:
        return apps.data_path.curl(f"http://{place}/").stdout == server

    wait_until(answered, f"{server} does not answer at {place}")


def error_at(caller: NetworkNamespace, address: str) -> int | None:
    """Return the number of the error with which a connection to an address fails; None if it does
    not."""
    try:
        caller.inside(lambda: socket.create_connection((address, 8080), 1.0)).close()
    except OSError as error:
        return error.errno
    return None
