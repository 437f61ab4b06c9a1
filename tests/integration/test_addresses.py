"""Each kind of address between real servers: it is registered, `explain` walks the chain to its
end, and when the address goes, `explain` names what is missing while the instance stays."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import requests

from tests.integration.gateways import API, accepted_by, installed_gateway_api
from tests.integration.hand_made import make_syncer
from tests.integration.program import Program, Registry
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers

NAMESPACE, APP, NODE = "addresses", "addressed", "addresses-node"
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
INGRESSES = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/ingresses"
GATEWAYS = f"{API}/namespaces/{NAMESPACE}/gateways"
ROUTES = f"{API}/namespaces/{NAMESPACE}/httproutes"
CLUSTER_IP = "10.96.77.77"
PORTS: list[dict[str, Any]] = [{"name": "http", "port": 80, "targetPort": "http"}]
BALANCER = {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.9"}]}}}
NO_BALANCER: dict[str, Any] = {"status": {"loadBalancer": None}}
Change = Callable[[KubernetesWorld], object]


def patched(path: str, body: dict[str, Any]) -> Change:
    """Change an object by a merge patch."""
    return lambda world: world.request("PATCH", path, body)


def tainted(world: KubernetesWorld) -> None:
    """The cluster autoscaler is about to delete the node."""
    taint = {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}
    world.request("PATCH", f"/api/v1/nodes/{NODE}", {"spec": {"taints": [taint]}})


def without_ingress(world: KubernetesWorld) -> None:
    world.request("DELETE", f"{INGRESSES}/web")


def without_route(world: KubernetesWorld) -> None:
    world.request("DELETE", f"{ROUTES}/web")


def replaced_by_headless(world: KubernetesWorld) -> None:
    """The Service is created anew, without an address."""
    world.request("DELETE", f"{SERVICES}/{APP}")
    spec = {"selector": {"app": APP}, "ports": PORTS, "clusterIP": "None"}
    metadata = {"name": APP, "labels": {"app": APP}}
    world.request("POST", SERVICES, {"metadata": metadata, "spec": spec})


def pod_without_host_port(world: KubernetesWorld) -> None:
    """A new version of the app has no host port."""
    world.delete_pod(NAMESPACE, "addressed-1")
    make_pod(world, "addressed-2")
    world.wait_for_slices(NAMESPACE, APP, {"10.41.0.2": "Ready"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of address: a Service, a syncer, what is registered, and how the address goes."""

    spec: dict[str, Any]
    service: dict[str, Any] = field(default_factory=dict)
    balancer: bool = False
    place: str  # address and port of the instance
    goes: Change
    words: str  # of `explain` when the address is gone


KINDS = {
    "HostPort": Kind(
        spec={"pod": {"address": "HostPort"}},
        place="192.168.9.1:31080",
        goes=pod_without_host_port,
        words="pod addressed-2 has no hostPort for its port 8080",
    ),
    "NodePort": Kind(
        spec={"mode": "service", "service": {"nodeSelector": {"pool": "edge"}}},
        service={"type": "NodePort", "ports": [{**PORTS[0], "nodePort": 31777}]},
        place="192.168.9.1:31777",
        goes=tainted,
        words=f"node {NODE} has the taint ToBeDeletedByClusterAutoscaler",
    ),
    "LoadBalancer": Kind(
        spec={"mode": "service"},
        service={"type": "LoadBalancer"},
        balancer=True,
        place="203.0.113.9:80",
        goes=patched(f"{SERVICES}/{APP}/status", NO_BALANCER),
        words="Service addressed waits for the address of its load balancer",
    ),
    "ExternalIP": Kind(
        spec={"mode": "service", "service": {"address": "ExternalIP"}},
        service={"externalIPs": ["198.51.100.9"]},
        place="198.51.100.9:80",
        goes=patched(f"{SERVICES}/{APP}", {"spec": {"externalIPs": None}}),
        words="has no address of kind ExternalIP",
    ),
    "ClusterIP": Kind(
        spec={"mode": "service"},
        service={"clusterIP": CLUSTER_IP},
        place=f"{CLUSTER_IP}:80",
        goes=replaced_by_headless,
        words="Service addressed is headless and has no address",
    ),
    "ExternalName": Kind(
        spec={"mode": "service", "service": {"address": "ExternalName"}},
        service={"type": "ExternalName", "externalName": "addressed.example.net"},
        place="addressed.example.net:80",
        goes=patched(f"{SERVICES}/{APP}", {"spec": {"type": "ClusterIP", "externalName": None}}),
        words="Service addressed is of type ClusterIP and has no address of kind ExternalName",
    ),
    "Ingress": Kind(
        spec={"mode": "service", "service": {"address": "Ingress"}},
        place="addressed.example.com:80",
        goes=without_ingress,
        words="no Ingress routes to Service addressed",
    ),
    "Gateway": Kind(
        spec={"mode": "service", "service": {"address": "Gateway"}},
        place="addressed.example.com:8080",
        goes=without_route,
        words="no HTTPRoute leads to Service addressed",
    ),
}


def make_route(world: KubernetesWorld) -> None:
    """A Gateway with a listener for HTTP, and a route that its controller accepted."""
    listener = {"name": "http", "port": 8080, "protocol": "HTTP"}
    gateway = {"gatewayClassName": "example", "listeners": [listener]}
    head = {"apiVersion": "gateway.networking.k8s.io/v1", "metadata": {"name": "edge"}}
    world.request("POST", GATEWAYS, {**head, "kind": "Gateway", "spec": gateway})
    route = {
        "parentRefs": [{"name": "edge"}],
        "hostnames": ["addressed.example.com"],
        "rules": [{"backendRefs": [{"name": APP, "port": 80}]}],
    }
    head = {"apiVersion": "gateway.networking.k8s.io/v1", "metadata": {"name": "web"}}
    world.request("POST", ROUTES, {**head, "kind": "HTTPRoute", "spec": route})
    world.request("PATCH", f"{ROUTES}/web/status", accepted_by("edge"))


def make_pod(world: KubernetesWorld, name: str, *, host_port: int | None = None) -> None:
    """A ready pod on the node, which gives it a host port or none."""
    port: dict[str, Any] = {"name": "http", "containerPort": 8080}
    if host_port is not None:
        port["hostPort"] = host_port
    number = name.rpartition("-")[2]
    world.request(
        "POST",
        f"/api/v1/namespaces/{NAMESPACE}/pods",
        {
            "metadata": {"name": name, "labels": {"app": APP}},
            "spec": {
                "nodeName": NODE,
                "containers": [{"name": "app", "image": "example.invalid/app", "ports": [port]}],
            },
        },
    )
    world.patch_pod_status(
        NAMESPACE,
        name,
        {
            "phase": "Running",
            "hostIP": "192.168.9.1",
            "podIP": f"10.41.0.{number}",
            "podIPs": [{"ip": f"10.41.0.{number}"}],
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "ContainersReady", "status": "True"},
            ],
        },
    )


@pytest.fixture(scope="module")
def gateways(kubernetes_world: KubernetesWorld) -> Iterator[None]:
    """The cluster has the Gateway API."""
    with installed_gateway_api(kubernetes_world):
        yield


@pytest.fixture
def cluster(kubernetes_world: KubernetesWorld, crd: None, gateways: None) -> KubernetesWorld:
    """A cluster with the node and the namespace, and without Services, Ingresses and pods."""
    world = kubernetes_world
    with contextlib.suppress(requests.HTTPError):
        world.create_namespace(NAMESPACE)
    with contextlib.suppress(requests.HTTPError):
        world.request("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
    labels = {"metadata": {"labels": {"pool": "edge"}}, "spec": {"taints": None}}
    world.request("PATCH", f"/api/v1/nodes/{NODE}", labels)
    status = {
        "addresses": [{"type": "InternalIP", "address": "192.168.9.1"}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    world.request("PATCH", f"/api/v1/nodes/{NODE}/status", {"status": status})
    for path in (SERVICES, INGRESSES, GATEWAYS, ROUTES):
        for item in world.request("GET", path)["items"]:
            world.request("DELETE", f"{path}/{item['metadata']['name']}")
    for item in world.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]:
        world.delete_pod(NAMESPACE, item["metadata"]["name"])
    return world


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_kind_of_address_is_registered_explained_and_kept(
    kind: Kind, program: Program, registry: Registry, cluster: KubernetesWorld
) -> None:
    """`explain` exits with 0 while it is UP, and with 6 when the address is gone."""
    service = {"selector": {"app": APP}, "ports": PORTS, **kind.service}
    labels = {"name": APP, "labels": {"app": APP}}
    cluster.request("POST", SERVICES, {"metadata": labels, "spec": service})
    backend = {"service": {"name": APP, "port": {"name": "http"}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    rule = {"host": "addressed.example.com", "http": {"paths": [path]}}
    cluster.request("POST", INGRESSES, {"metadata": {"name": "web"}, "spec": {"rules": [rule]}})
    make_route(cluster)
    make_pod(cluster, "addressed-1", host_port=31080)
    if kind.service.get("type") != "ExternalName":  # for which the cluster makes no slices
        cluster.wait_for_slices(NAMESPACE, APP, {"10.41.0.1": "Ready"})
    if kind.balancer:
        cluster.request("PATCH", f"{SERVICES}/{APP}/status", BALANCER)
    make_syncer(cluster, NAMESPACE, APP, APP, **kind.spec)

    id_ = f"{program.owner}:{NAMESPACE}:{APP}:{kind.place}"
    program.run_until(lambda: "in sync, 1 renewed" in program.seen[-1])
    assert registry.status(APP.upper(), id_) == "UP"
    code, said = explained_of(program, f"{NAMESPACE}/{APP}")
    assert code == 0, said

    kind.goes(cluster)
    code, said = explained_of(program, f"{NAMESPACE}/{APP}")
    assert code == 6, said
    assert kind.words in said
    done = program.run()
    assert kind.words in " ".join(done.stdout.split())
    assert registry.status(APP.upper(), id_) == "UP"


def explained_of(program: Program, subject: str) -> tuple[int, str]:
    """The exit code of `explain`, and what it says in one line."""
    asked = replace(program, options=())  # which are those of `run`
    process = asked.start(subject, command="explain")
    out, err = process.communicate(timeout=300)
    assert "Traceback" not in err, err
    return process.returncode, " ".join(out.split())
