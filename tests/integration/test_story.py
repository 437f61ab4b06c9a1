"""The article's story on real servers, twice: with a fast server cache, and with the default cache
of 30 s."""

from __future__ import annotations

import contextlib
import json
from collections import Counter

import pytest
import requests

from tests.integration.program import Program, Registry
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers

APP = "RATING"
NAMESPACE = "rating"
SYNCERS = f"/apis/eurekube.io/v1/namespaces/{NAMESPACE}/eurekasyncers"
SYNCER = {
    "apiVersion": "eurekube.io/v1",
    "kind": "EurekaSyncer",
    "metadata": {"name": "rating", "namespace": NAMESPACE},
    "spec": {"mode": "pod", "selector": {"app": "rating"}, "port": "http"},
}


@pytest.fixture
def rating(kubernetes_world: KubernetesWorld) -> None:
    """The Service rating with two pods, and a headless and a metrics Service of the same pods."""
    world = kubernetes_world
    with contextlib.suppress(requests.HTTPError):
        world.create_node("story-node", zone="a")
    with contextlib.suppress(requests.HTTPError):
        world.create_namespace(NAMESPACE)
    http = [{"name": "http", "port": 80, "targetPort": "http"}]
    labels = {"app": "rating"}
    with contextlib.suppress(requests.HTTPError):
        world.create_service(NAMESPACE, "rating", ports=http)
        world.create_service(
            NAMESPACE, "rating-headless", ports=http, selector=labels, clusterIP="None"
        )
        world.create_service(NAMESPACE, "rating-metrics", ports={"metrics": 9100}, selector=labels)
    for pod in world.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]:
        world.delete_pod(NAMESPACE, pod["metadata"]["name"])
    for number in (1, 2):
        create_pod(world, number)
    for service in ("rating", "rating-headless", "rating-metrics"):
        world.wait_for_slices(NAMESPACE, service, {"10.0.0.1": "Ready", "10.0.0.2": "Ready"})


def create_pod(world: KubernetesWorld, number: int) -> None:
    """Create a ready pod `rating-N` at 10.0.0.N."""
    world.create_pod(
        NAMESPACE,
        f"rating-{number}",
        ips=[f"10.0.0.{number}"],
        labels={"app": "rating"},
        node="story-node",
        ports={"http": 8080},
    )


@pytest.mark.parametrize("eureka", ["eureka_fast", "eureka_stock"], indirect=True)
def test_eureka_follows_the_pods_until_the_syncer_is_deleted(
    program: Program,
    registry: Registry,
    rating: None,
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    request: pytest.FixtureRequest,
) -> None:
    """Pods start, become unready, end and are replaced, and Eureka follows. Then the syncer is
    deleted, and only our instances are removed."""
    world = kubernetes_world
    ids = {n: f"{program.owner}:rating:rating:10.0.0.{n}:8080" for n in (1, 2, 3)}
    registry.register(APP, "dc:rating:1", "192.0.2.1")
    registry.register("BILLING", "dc:billing:1", "192.0.2.2")
    strangers = {
        key: registry.instance(*key) for key in ((APP, "dc:rating:1"), ("BILLING", "dc:billing:1"))
    }
    world.request("POST", SYNCERS, SYNCER)

    dry = program.good("--dry-run")
    assert [a["action"] for a in dry["actions"]] == ["register", "register"]
    assert set(program.kubernetes.methods()) == set(program.eureka.methods()) == {"GET"}

    program.good()
    assert program.eureka.methods()["POST"] == 2
    assert {n: registry.status(APP, ids[n]) for n in (1, 2)} == {1: "UP", 2: "UP"}
    instance = registry.instance(APP, ids[1])
    assert instance is not None
    assert (instance["vipAddress"], instance["hostName"], instance["port"]["$"]) == (
        "rating",
        "10.0.0.1",
        8080,
    )
    table = kubernetes_servers.kubectl("get", "esync", "-n", NAMESPACE).stdout
    assert "2/2" in table, table
    assert "InSync" in table, table
    versions = _resource_versions(world)

    # The runs follow at once: the default cache still hides the latest registrations.
    program.good()
    assert program.eureka.methods().keys() <= {"GET", "PUT"}
    assert program.kubernetes.methods().keys() == {"GET"}
    assert _resource_versions(world) == versions

    registry.list_follows(APP, ids.values())
    program.good()
    assert program.eureka.methods() == Counter(GET=1, PUT=2), (
        "in sync, a pass is one list and its renewals"
    )
    assert all("/status" not in call.path for call in program.eureka.calls)

    world.set_ready(NAMESPACE, "rating-2", False)
    world.wait_for_slices(NAMESPACE, "rating", {"10.0.0.1": "Ready", "10.0.0.2": "NotReady"})
    program.good()
    assert registry.status(APP, ids[2]) == "DOWN"
    assert "1/2" in kubernetes_servers.kubectl("get", "esync", "-n", NAMESPACE).stdout

    world.set_ready(NAMESPACE, "rating-2", True)
    world.wait_for_slices(NAMESPACE, "rating", {"10.0.0.1": "Ready", "10.0.0.2": "Ready"})
    program.run_until(lambda: registry.status(APP, ids[2]) == "UP")

    world.delete_pod(NAMESPACE, "rating-2", grace_seconds=60)
    world.wait_for_slices(NAMESPACE, "rating", {"10.0.0.1": "Ready", "10.0.0.2": "Terminating"})
    program.good()
    assert registry.status(APP, ids[2]) is None

    world.delete_pod(NAMESPACE, "rating-2")
    create_pod(world, 3)
    world.wait_for_slices(NAMESPACE, "rating", {"10.0.0.1": "Ready", "10.0.0.3": "Ready"})
    program.good()
    assert registry.status(APP, ids[3]) == "UP"

    world.request("DELETE", f"{SYNCERS}/rating")
    program.good()
    assert [registry.status(APP, ids[n]) for n in (1, 2, 3)] == [None, None, None]
    program.run_until(lambda: not world.request("GET", SYNCERS)["items"])
    assert {key: registry.instance(*key) for key in strangers} == strangers
    events = world.request("GET", f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
    assert {"InSync"} <= {event["reason"] for event in events}, json.dumps(events)


def _resource_versions(world: KubernetesWorld) -> list[str]:
    return [item["metadata"]["resourceVersion"] for item in world.request("GET", SYNCERS)["items"]]
