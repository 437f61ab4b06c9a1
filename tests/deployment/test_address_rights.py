"""The rights to what an address of a Service is found by, on the real API server: Nodes, Ingresses,
HTTPRoutes, Gateways and ReferenceGrants. Each has a component and a value of its own. With it, the whole life of such
a syncer is allowed; without one of its rights, the program names the one that is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.deployment.rendered import Form, Json, documents, shipped
from tests.deployment.rights import Right, granted, lacking, right_for, rights_of
from tests.integration.gateways import (
    API,
    GRANT_API,
    GROUP,
    accepted_by,
    grant_to,
    installed_gateway_api,
)
from tests.integration.hand_made import (
    make_app,
    make_namespace,
    make_syncer,
    remove_app,
    syncers_of,
)
from tests.integration.program import CountingProxy, Program, Registry
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers

SHOP, EDGE, APP, HOST = "entries", "edge", "entered", "entered.example.com"
NODE, NODE_ADDRESS = "entries-node", "192.168.11.1"
SERVICE = f"/api/v1/namespaces/{SHOP}/services/{APP}"
INGRESSES = f"/apis/networking.k8s.io/v1/namespaces/{SHOP}/ingresses"
GATEWAYS = f"{API}/namespaces/{EDGE}/gateways"
ROUTES = f"{API}/namespaces/{EDGE}/httproutes"
REFERENCE_GRANTS = f"{GRANT_API}/namespaces/{SHOP}/referencegrants"


def with_node_port(world: KubernetesWorld) -> None:
    """Give the Service a node port, and the cluster a Node."""
    ports = [{"name": "http", "port": 80, "nodePort": 31811}]
    world.request("PATCH", SERVICE, {"spec": {"type": "NodePort", "ports": ports}})
    with suppress(requests.HTTPError):
        world.create_node(NODE)
    status = {
        "addresses": [{"type": "InternalIP", "address": NODE_ADDRESS}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    world.request("PATCH", f"/api/v1/nodes/{NODE}/status", {"status": status})


def with_ingress(world: KubernetesWorld) -> None:
    """Lead a host to the Service by an Ingress."""
    backend = {"service": {"name": APP, "port": {"name": "http"}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    rule = {"host": HOST, "http": {"paths": [path]}}
    world.request("POST", INGRESSES, {"metadata": {"name": APP}, "spec": {"rules": [rule]}})


def with_route(world: KubernetesWorld) -> None:
    """Lead a host to the Service by a route and a Gateway in another namespace, which a
    ReferenceGrant of the Service's namespace permits."""
    world.request("POST", REFERENCE_GRANTS, grant_to(APP, namespace=EDGE))
    head = {"apiVersion": f"{GROUP}/v1", "metadata": {"name": APP}}
    listener = {"name": "http", "port": 8080, "protocol": "HTTP"}
    gateway = {"gatewayClassName": "example", "listeners": [listener]}
    world.request("POST", GATEWAYS, {**head, "kind": "Gateway", "spec": gateway})
    route = {
        "parentRefs": [{"name": APP}],
        "hostnames": [HOST],
        "rules": [{"backendRefs": [{"name": APP, "namespace": SHOP, "port": 80}]}],
    }
    world.request("POST", ROUTES, {**head, "kind": "HTTPRoute", "spec": route})
    world.request("PATCH", f"{ROUTES}/{APP}/status", accepted_by(APP))


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A kind of address, the rights that it needs, and where they are granted."""

    kind: str
    right: str
    """The component and the value of the chart."""
    rights: Sequence[Right]
    make: Callable[[KubernetesWorld], None]
    place: str

    @property
    def forms(self) -> dict[str, Form]:
        """Both installations, for the whole cluster and for one namespace."""
        components, values = (f"rights/{self.right}",), {"rights": {self.right: True}}
        return {
            "cluster": Form(components=components, values=values),
            "namespaced": Form(
                folder="namespaced",
                components=components,
                namespace=SHOP,
                settings={"EUREKUBE_SYNC_NAMESPACE": SHOP},
                values={**values, "namespaces": [SHOP]},
            ),
        }


ADDRESSES = {
    "NodePort": Address(
        kind="NodePort",
        right="nodes",
        rights=[Right("", "nodes", "list")],
        make=with_node_port,
        place=f"{NODE_ADDRESS}:31811",
    ),
    "Ingress": Address(
        kind="Ingress",
        right="ingresses",
        rights=[Right("networking.k8s.io", "ingresses", "list")],
        make=with_ingress,
        place=f"{HOST}:80",
    ),
    "Gateway": Address(
        kind="Gateway",
        right="gateways",
        rights=[
            Right(GROUP, "referencegrants", "list"),
            Right(GROUP, "httproutes", "list"),
            Right(GROUP, "gateways", "list"),
        ],
        make=with_route,
        place=f"{HOST}:8080",
    ),
}
MISSING = [(address, right) for address in ADDRESSES.values() for right in address.rights]


@pytest.fixture(scope="module")
def gateway_api(world: KubernetesWorld) -> Iterator[None]:
    """The cluster has the Gateway API."""
    with installed_gateway_api(world):
        yield


@pytest.fixture
def shop(world: KubernetesWorld, with_crd: None, gateway_api: None) -> Iterator[None]:
    """The app with one endpoint in a namespace, and a namespace for a route and its Gateway."""
    for namespace in (SHOP, EDGE):
        make_namespace(world, namespace)
    make_app(world, SHOP, APP, ["10.37.0.1"])
    yield
    remove_app(world, SHOP, APP)
    for path in (INGRESSES, REFERENCE_GRANTS, ROUTES, GATEWAYS):
        for item in world.request("GET", path)["items"]:
            world.request("DELETE", f"{path}/{item['metadata']['name']}")
    with suppress(requests.HTTPError):
        world.request("DELETE", f"/api/v1/nodes/{NODE}")


@pytest.fixture
def program(
    cluster: KubernetesServers,
    eureka_fast: EurekaServer,
    registry: Registry,
    shop: None,
    tmp_path: Path,
) -> Iterator[Program]:
    """The program, without a token yet."""
    with (
        CountingProxy(cluster.url, ca_file=cluster.ca_file) as kubernetes,
        CountingProxy(eureka_fast.url.removesuffix("/eureka")) as counted,
    ):
        yield Program(
            kubernetes=kubernetes,
            eureka=counted,
            token="",
            folder=tmp_path,
            owner="entries",
            options=("--registry-cache=3s",),
            registry=registry,
        )


def make_address(world: KubernetesWorld, address: Address) -> None:
    """Create what leads to the app, and its syncer."""
    address.make(world)
    spec: dict[str, Any] = {"mode": "service", "service": {"address": address.kind}}
    make_syncer(world, SHOP, APP, APP, **spec)


@pytest.mark.parametrize("form", ["cluster", "namespaced"])
@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES)
def test_the_component_and_the_value_add_the_rights_alone(address: Address, form: str) -> None:
    """Both to a ClusterRole and to a Role."""
    chosen = address.forms[form]
    for text in (chosen.kustomized, chosen.templated()):
        added = rights_of(documents(text)) - rights_of(shipped())
        assert added - {Right("", "namespaces", "get")} == set(address.rights)


@pytest.mark.parametrize("form", ["cluster", "namespaced"])
@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES)
def test_the_life_of_an_address_needs_its_rights_and_no_other(
    address: Address,
    form: str,
    program: Program,
    registry: Registry,
    world: KubernetesWorld,
) -> None:
    """From the registration until the syncer is gone, nothing is refused, and each right is used.
    A route or Gateway of a namespace without a Role needs the right there, too."""
    chosen = address.forms[form]
    found = documents(chosen.kustomized if form == "cluster" else chosen.templated())
    if form == "namespaced":
        found += roles_in_edge(found)
        program = replace(program, options=(*program.options, f"--namespace={SHOP}"))
    make_address(world, address)
    used: set[Right] = set()
    with granted(world, found) as token:
        program.token = token
        program.good()
        used |= {right_for(call) for call in program.kubernetes.calls}
        id_ = f"{program.owner}:{SHOP}:{APP}:{address.place}"
        assert registry.status(APP.upper(), id_) == "UP", program.seen[-1]
        registry.list_follows(APP.upper(), [id_])
        world.request("DELETE", f"{syncers_of(SHOP)}/{APP}")
        program.run_until(lambda: not world.request("GET", syncers_of(SHOP))["items"])
        used |= {right_for(call) for call in program.kubernetes.calls}
    assert set(address.rights) <= used
    assert "cannot" not in "".join(program.seen)
    assert registry.status(APP.upper(), id_) is None


def roles_in_edge(found: Sequence[Json]) -> list[Json]:
    """The Role with the rights of an address, and its binding, in the namespace of the route and
    its Gateway too, as an operator writes them."""
    roles: list[Json] = []
    for document in found:
        metadata = document["metadata"]
        if document["kind"] in ("Role", "RoleBinding") and metadata.get("namespace") == SHOP:
            roles.append({**document, "metadata": {"name": metadata["name"], "namespace": EDGE}})
    return [role for role in roles if not role["metadata"]["name"].endswith("-lock")]


@pytest.mark.parametrize(
    ("address", "right"), MISSING, ids=[str(right) for address, right in MISSING]
)
def test_a_right_of_an_address_that_is_missing_is_named(
    address: Address, right: Right, program: Program, registry: Registry, world: KubernetesWorld
) -> None:
    """In the report, in the API server's own words. What was registered before stays."""
    found = documents(address.forms["cluster"].kustomized)
    make_address(world, address)
    id_ = f"{program.owner}:{SHOP}:{APP}:{address.place}"
    with granted(world, found) as token:
        program.token = token
        program.good()
        registry.list_follows(APP.upper(), [id_])
    with granted(world, lacking(found, right)) as token:
        program.token = token
        done = program.run()
    said = " ".join(done.stdout.split())
    assert done.returncode != 0, said
    assert f'cannot list resource "{right.resource}" in API group "{right.group}"' in said
    assert registry.status(APP.upper(), id_) == "UP"
