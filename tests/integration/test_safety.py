"""What must not be removed, on real servers, although the CRD is deleted, a right is taken away,
the API server hangs, or all pods become unready."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import requests

from eurekube_sync.embedded.http import Request
from tests.deployment.rendered import shipped
from tests.deployment.rights import SERVICE_ACCOUNT, granted
from tests.integration.conftest import CRD_NAME, CRD_PATH, create_crd, remove_crd, strip_finalizers
from tests.integration.program import CountingProxy, Program, Registry
from tests.servers.kube import KubernetesServers
from tests.servers.toxiproxy import Toxiproxy
from tests.servers.world import KubernetesWorld, write_kubeconfig

pytestmark = pytest.mark.servers

NAMESPACE = "safety"
SYNCERS = f"/apis/eurekube.io/v1/namespaces/{NAMESPACE}/eurekasyncers"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
TIMEOUTS = ("--call-timeout=10s", "--pass-timeout=20s")
"""Eureka on a busy machine has to answer within the first. The cluster gets a part of the
second."""


@pytest.fixture
def shop(kubernetes_world: KubernetesWorld) -> Iterator[None]:
    """A namespace with a Service without a selector, whose slices the test writes."""
    world = kubernetes_world
    with contextlib.suppress(requests.HTTPError):
        world.create_namespace(NAMESPACE)
    service = {
        "metadata": {"name": "shop", "labels": {"app": "shop"}},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    }
    world.request("POST", f"/api/v1/namespaces/{NAMESPACE}/services", service)
    yield
    world.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/services/shop")
    for item in world.request("GET", SLICES)["items"]:
        with contextlib.suppress(requests.HTTPError):
            world.request("DELETE", f"{SLICES}/{item['metadata']['name']}")


def give_endpoints(world: KubernetesWorld, count: int, *, ready: bool = True) -> list[str]:
    """Write the only slice of the Service with this many endpoints; returns their addresses."""
    addresses = [f"10.20.{number // 250}.{number % 250 + 1}" for number in range(count)]
    set_endpoints(world, addresses, ready=ready)
    return addresses


def set_endpoints(world: KubernetesWorld, addresses: list[str], *, ready: bool = True) -> None:
    """Write the only slice of the Service with these endpoints."""
    with contextlib.suppress(requests.HTTPError):
        world.request("DELETE", f"{SLICES}/shop-1")
    body = {
        "metadata": {"name": "shop-1", "labels": {"kubernetes.io/service-name": "shop"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080}],
        "endpoints": [
            {"addresses": [address], "conditions": {"ready": ready}} for address in addresses
        ],
    }
    world.request("POST", SLICES, body)


def create_syncer(world: KubernetesWorld) -> None:
    """Create the namespace's only syncer."""
    body = {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaSyncer",
        "metadata": {"name": "shop"},
        "spec": {"selector": {"app": "shop"}},
    }
    world.request("POST", SYNCERS, body)


def up_ids(program: Program, registry: Registry, addresses: list[str]) -> int:
    """How many of the instances at these addresses are UP, by uncached reads."""
    ids = [f"{program.owner}:{NAMESPACE}:shop:{address}:8080" for address in addresses]
    return sum(registry.status("SHOP", id_) == "UP" for id_ in ids)


def list_follows(program: Program, registry: Registry, addresses: list[str]) -> None:
    """Wait until the list of all agrees with uncached reads about the instances at these
    addresses."""
    registry.list_follows(
        "SHOP", [f"{program.owner}:{NAMESPACE}:shop:{address}:8080" for address in addresses]
    )


def condition(world: KubernetesWorld, kind: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition of the namespace's syncer."""
    conditions = world.request("GET", f"{SYNCERS}/shop")["status"]["conditions"]
    found = next(one for one in conditions if one["type"] == kind)
    return (found["status"], found["reason"], found["message"])


def events(world: KubernetesWorld, reason: str) -> list[dict[str, Any]]:
    """The events with this reason for the present syncer."""
    uid = world.request("GET", f"{SYNCERS}/shop")["metadata"]["uid"]
    found = world.request("GET", f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
    return [one for one in found if one["involvedObject"]["uid"] == uid and one["reason"] == reason]


@pytest.mark.parametrize("count", [1, 10, 50])
def test_a_deleted_crd_removes_nothing(
    count: int, program: Program, registry: Registry, shop: None, kubernetes_world: KubernetesWorld
) -> None:
    """Every instance stays UP and is renewed while the CRD is being deleted, is gone, or is back
    empty. The condition and one event say why. Two passes after its syncer is applied again, all is
    in sync."""
    world = kubernetes_world
    addresses = give_endpoints(world, count)
    create_syncer(world)
    program.good()
    assert up_ids(program, registry, addresses) == count
    list_follows(program, registry, addresses)

    world.request("DELETE", f"{CRD_PATH}/{CRD_NAME}")
    for _ in range(2):
        done = program.run()
        assert done.returncode == 10, done.stdout + done.stderr
        assert program.eureka.methods() == {"GET": 1, "PUT": count}
        items = world.request("GET", SYNCERS)["items"]
        assert [bool(item["metadata"].get("deletionTimestamp")) for item in items] == [True]
        assert items[0]["metadata"]["finalizers"] == ["eurekube.io/cleanup"]
    assert "CRD" in done.stdout
    assert up_ids(program, registry, addresses) == count
    status, reason, message = condition(world, "Ready")
    assert (status, reason) == ("Unknown", "CRDTerminating")
    assert "being deleted" in message
    assert [one.get("count", 1) for one in events(world, "CRDTerminating")] == [1]

    strip_finalizers(world)
    remove_crd(world)
    done = program.run()
    assert done.returncode == 10, done.stdout + done.stderr
    assert program.eureka.methods() == {"GET": 1, "PUT": count}
    assert up_ids(program, registry, addresses) == count

    create_crd(world)
    done = program.run()
    assert done.returncode == 31, done.stdout + done.stderr
    assert "older than the CustomResourceDefinition" in done.stdout
    assert "--approve" in done.stdout
    assert program.eureka.methods()["DELETE"] == 0
    assert up_ids(program, registry, addresses) == count

    create_syncer(world)
    program.good()
    program.good()
    assert program.eureka.methods() == {"GET": 1, "PUT": count}
    assert condition(world, "Ready")[:2] == ("True", "InSync")
    assert condition(world, "RemovalHeld")[0] == "False"
    assert world.request("GET", f"{SYNCERS}/shop")["metadata"]["finalizers"] == [
        "eurekube.io/cleanup"
    ]
    assert up_ids(program, registry, addresses) == count


def test_a_right_that_is_revoked_removes_nothing(
    program: Program, registry: Registry, shop: None, kubernetes_world: KubernetesWorld
) -> None:
    """Without the right to list slices all instances are renewed, and the exit code says why."""
    world = kubernetes_world
    with granted(world, shipped()) as token:
        program.token = token
        addresses = give_endpoints(world, 50)
        create_syncer(world)
        program.good()
        list_follows(program, registry, addresses)

        role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/eurekube-sync"
        rules = world.request("GET", role)["rules"]
        without = [rule for rule in rules if "endpointslices" not in rule["resources"]]
        world.request("PATCH", role, {"rules": without})
        world.wait_for_right(
            SERVICE_ACCOUNT, "list", "endpointslices", group="discovery.k8s.io", granted=False
        )
        give_endpoints(world, 45)
        done = program.run()
        assert done.returncode == 11, done.stdout + done.stderr
        assert "endpointslices" in done.stdout
        assert program.eureka.methods() == {"GET": 1, "PUT": 50}
        status, reason, message = condition(world, "Ready")
        assert (status, reason) == ("Unknown", "SourceUnknown")
        assert "endpointslices" in message
        assert [one.get("count", 1) for one in events(world, "SourceUnknown")] == [1]
        assert program.run().returncode == 11
        assert [one.get("count", 1) for one in events(world, "SourceUnknown")] == [1], (
            "it is told once"
        )

        world.request("PATCH", role, {"rules": rules})
        world.wait_for_right(SERVICE_ACCOUNT, "list", "endpointslices", group="discovery.k8s.io")
        program.good()
        assert up_ids(program, registry, addresses) == 45
        program.good()
        assert program.eureka.methods()["POST"] == program.eureka.methods()["DELETE"] == 0
        assert condition(world, "Ready")[:2] == ("True", "InSync")


def test_a_list_that_times_out_removes_nothing(
    program: Program,
    registry: Registry,
    shop: None,
    kubernetes_world: KubernetesWorld,
    kubernetes_servers: KubernetesServers,
) -> None:
    """Only slices time out, and all instances are renewed. The exit code, the condition and one
    event say why. The changes made meanwhile follow when slices can be listed again."""
    world = kubernetes_world
    healed = threading.Event()

    def hang(request: Request) -> None:
        if "endpointslices" in request.path:
            healed.wait(300)

    addresses = give_endpoints(world, 50)
    create_syncer(world)
    program.good()
    list_follows(program, registry, addresses)
    give_endpoints(world, 45)
    with CountingProxy(
        kubernetes_servers.url, ca_file=kubernetes_servers.ca_file, before=hang
    ) as hanging:
        behind = replace(program, kubernetes=hanging)
        for _ in range(2):
            done = behind.run(*TIMEOUTS)
            assert done.returncode == 10, done.stdout + done.stderr
            assert program.eureka.methods() == {"GET": 1, "PUT": 50}
        status, reason, message = condition(world, "Ready")
        assert (status, reason) == ("Unknown", "SourceUnknown")
        assert "endpointslices" in message
        assert [one.get("count", 1) for one in events(world, "SourceUnknown")] == [1]
        assert up_ids(program, registry, addresses) == 50

        healed.set()
        behind.good()
        assert up_ids(program, registry, addresses) == 45
        behind.good()
        assert program.eureka.methods()["POST"] == program.eureka.methods()["DELETE"] == 0
        assert condition(world, "Ready")[:2] == ("True", "InSync")


def test_an_api_server_that_hangs_removes_nothing(
    program: Program,
    registry: Registry,
    shop: None,
    kubernetes_world: KubernetesWorld,
    kubernetes_servers: KubernetesServers,
    toxiproxy: Toxiproxy,
) -> None:
    """The API server gives no answer. All instances are renewed, and the exit code and a sentence
    say why. The condition cannot be written, and keeps its old value until the server answers
    again. Then it is updated, and the changes made meanwhile follow."""
    world = kubernetes_world
    proxy = toxiproxy.proxy(kubernetes_servers.url.removeprefix("https://"))
    # The certificate is for the address, which is the same, and for no port.
    path = write_kubeconfig(
        program.folder / "through-toxiproxy",
        url=f"https://{proxy.address}",
        token=kubernetes_servers.admin_token,
        ca_file=kubernetes_servers.ca_file,
    )
    options = (f"--kubeconfig={path}", *TIMEOUTS)
    try:
        addresses = give_endpoints(world, 50)
        create_syncer(world)
        program.good(*options)
        list_follows(program, registry, addresses)
        before = world.request("GET", f"{SYNCERS}/shop")

        give_endpoints(world, 45)
        proxy.drop()
        for _ in range(2):
            done = program.run(*options)
            assert done.returncode == 10, done.stdout + done.stderr
            assert proxy.address in done.stdout + done.stderr
            assert program.eureka.methods() == {"GET": 1, "PUT": 50}
        assert up_ids(program, registry, addresses) == 50
        assert world.request("GET", f"{SYNCERS}/shop") == before

        proxy.if_gone()
        program.good(*options)
        assert up_ids(program, registry, addresses) == 45
        program.good(*options)
        assert program.eureka.methods()["POST"] == program.eureka.methods()["DELETE"] == 0
        assert condition(world, "Ready")[:2] == ("True", "InSync")
        assert world.request("GET", f"{SYNCERS}/shop")["status"]["registered"] == 45
    finally:
        toxiproxy.remove(proxy)


def test_fifty_pods_that_turn_unready_at_once_stay_up(
    program: Program, registry: Registry, shop: None, kubernetes_world: KubernetesWorld
) -> None:
    """This happens when the node controller is lost. All instances are renewed, and exit code,
    condition and one event say why. When the pods are ready again, there is nothing to change."""
    world = kubernetes_world
    addresses = give_endpoints(world, 50)
    create_syncer(world)
    program.good()
    list_follows(program, registry, addresses)

    give_endpoints(world, 50, ready=False)
    for _ in range(2):
        done = program.run()
        assert done.returncode == 31, done.stdout + done.stderr
        assert "this installation would lose 50 of its 50 UP instances" in done.stdout
        methods = program.eureka.methods()
        assert (methods["PUT"], methods["POST"], methods["DELETE"]) == (50, 0, 0)
        assert up_ids(program, registry, addresses) == 50
    status = world.request("GET", f"{SYNCERS}/shop")["status"]
    held = next(c for c in status["conditions"] if c["type"] == "RemovalHeld")
    assert (held["status"], held["reason"]) == ("True", "TooManyRemovals")
    assert "--approve" in held["message"]
    events = world.request("GET", f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
    uid = world.request("GET", f"{SYNCERS}/shop")["metadata"]["uid"]
    told = [e for e in events if e["involvedObject"]["uid"] == uid and "are held" in e["message"]]
    assert {e.get("count", 1) for e in told} == {1}

    give_endpoints(world, 50)
    program.good()
    program.good()
    assert program.eureka.methods()["POST"] == program.eureka.methods()["DELETE"] == 0
    status = world.request("GET", f"{SYNCERS}/shop")["status"]
    assert {c["type"]: c["status"] for c in status["conditions"]}["RemovalHeld"] == "False"
    assert up_ids(program, registry, addresses) == 50
