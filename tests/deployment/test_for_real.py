"""CronJob and daemon for real: the controllers make the pods, a stand-in kubelet runs them, and
Eureka has the app."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator

import pytest

from eurekube_sync.desired.scope import ALLOWED_APPS, ALLOWED_HOSTS
from tests.deployment.conftest import Helm, remove_namespace, restricted_namespace
from tests.deployment.rendered import CHART, IMAGE, NAME, Json
from tests.integration.conftest import wait_for_crd
from tests.integration.hand_made import (
    make_app,
    make_namespace,
    make_syncer,
    remove_app,
    syncers_of,
)
from tests.integration.program import Registry
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.kubelet import Kubelet
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers
NAMESPACE = "eurekube-sync"
ADDRESSES = ("10.32.0.1", "10.32.0.2")
IDS = tuple(f"real:rating:rating:{address}:8080" for address in ADDRESSES)
MINUTES = 240.0
"""A CronJob fires within one; two have to come."""
LEASE_SECONDS = 600
GRANTS = {ALLOWED_APPS: "rating", ALLOWED_HOSTS: "10.32.0.0/16"}
"""The latter for the slice, which is made by hand."""


@pytest.fixture
def rating(world: KubernetesWorld, without_crd: None, helm4: Helm) -> Iterator[None]:
    """An app of two pods, whose syncer comes with the CRD; and the namespace of the installation,
    which is gone afterwards with all that it has outside of the namespace."""
    make_namespace(world, "rating")
    world.request("PATCH", "/api/v1/namespaces/rating", {"metadata": {"annotations": GRANTS}})
    make_app(world, "rating", "rating", ADDRESSES)
    restricted_namespace(world, NAMESPACE)
    yield
    remove_app(world, "rating", "rating")
    helm4("uninstall", NAME, "--namespace", NAMESPACE, "--ignore-not-found")
    remove_namespace(world, NAMESPACE)


def renewed(registry: Registry) -> float:
    """When the lease that is the oldest was renewed, in Unix seconds; 0 while an instance is not
    UP."""
    found = [registry.instance("RATING", id_) for id_ in IDS]
    if any(instance is None or instance["status"] != "UP" for instance in found):
        return 0
    leases = [instance["leaseInfo"] for instance in found if instance]
    # Eureka adds the duration at each renewal.
    return min(
        float(lease["lastRenewalTimestamp"]) / 1000 - float(lease["durationInSecs"])
        for lease in leases
    )


def pods(world: KubernetesWorld, *, on: str) -> list[Json]:
    """Of the installation, on one node."""
    items = world.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    return [pod for pod in items if pod["spec"].get("nodeName") == on]


def test_from_the_chart_to_a_synced_app_and_beyond_the_death_of_a_node(
    helm4: Helm,
    node: Callable[[str], Kubelet],
    rating: None,
    registry: Registry,
    eureka_fast: EurekaServer,
    world: KubernetesWorld,
) -> None:
    """Helm installs; the CronJob fires; the app is UP. Then the node dies in the midst of a run:
    its pod stays Terminating for good, the next minute's Job comes all the same, on another node,
    and no lease expires."""
    values = (
        "--set",
        "owner=real",
        "--set",
        f"eurekaUrl={eureka_fast.url}",
        "--set",
        f"image.repository={IMAGE}",
    )
    helm4("install", NAME, CHART, "--namespace", NAMESPACE, *values)
    wait_for_crd(world)
    make_syncer(world, "rating", "rating", "rating")

    first = node("first")
    wait_until(lambda: renewed(registry) > 0, lambda: logs(first), seconds=MINUTES)
    (running,) = [pod for pod in pods(world, on="first") if pod["status"]["phase"] == "Running"]
    first.die()

    second = node("second")
    died = time.time()
    wait_until(lambda: renewed(registry) > died, lambda: logs(second), seconds=MINUTES)
    assert renewed(registry) - died < LEASE_SECONDS / 4
    (left,) = [
        pod
        for pod in pods(world, on="first")
        if pod["metadata"]["uid"] == running["metadata"]["uid"]
    ]
    assert "deletionTimestamp" in left["metadata"]
    wait_until(
        lambda: any(pod["status"]["phase"] == "Succeeded" for pod in pods(world, on="second")),
        lambda: logs(second),
    )
    status = world.request("GET", f"{syncers_of('rating')}/rating")["status"]
    assert (status["ready"], status["up"]) == ("2/2", 2)


def holder(world: KubernetesWorld) -> str:
    """The pod that has the lock; nothing while none has it."""
    leases = world.request("GET", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases")[
        "items"
    ]
    names = [
        pod["metadata"]["name"]
        for pod in world.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    ]
    held = [lease["spec"].get("holderIdentity") or "" for lease in leases]
    return next((name for name in names for identity in held if identity.startswith(name)), "")


def test_of_two_daemons_the_other_goes_on(
    helm4: Helm,
    node: Callable[[str], Kubelet],
    rating: None,
    registry: Registry,
    eureka_fast: EurekaServer,
    cluster: KubernetesServers,
    world: KubernetesWorld,
) -> None:
    """The one that works is killed: the other renews long before a lease expires. Then that one
    stands still; when it goes on, it says that it lost the lock, and leaves the work to who has
    it."""
    values = (
        "--set",
        "owner=real",
        "--set",
        f"eurekaUrl={eureka_fast.url}",
        "--set",
        f"image.repository={IMAGE}",
        "--set",
        "mode=daemon",
    )
    helm4("install", NAME, CHART, "--namespace", NAMESPACE, *values)
    wait_for_crd(world)
    make_syncer(world, "rating", "rating", "rating")
    kubelet = node("daemons")
    wait_until(lambda: renewed(registry) > 0, lambda: logs(kubelet))
    wait_until(lambda: len(pods(world, on="daemons")) == 2, "the Deployment has no two pods")
    first = holder(world)
    assert first
    # The one that waits is ready, too.
    cluster.kubectl(
        "rollout", "status", f"deployment/{NAME}", "--namespace", NAMESPACE, "--timeout=300s"
    )

    killed = time.time()
    kubelet.process(first).kill()
    wait_until(lambda: holder(world) not in ("", first), lambda: logs(kubelet))
    wait_until(lambda: renewed(registry) > killed, lambda: logs(kubelet))
    assert renewed(registry) - killed < LEASE_SECONDS / 4

    second = holder(world)
    wait_until(
        lambda: (
            len([p for p in pods(world, on="daemons") if p["status"]["phase"] == "Running"]) == 2
        ),
        "no third",
    )
    process = kubelet.process(second)
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: holder(world) not in ("", second), lambda: logs(kubelet))
    third = holder(world)
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: "lock" in kubelet.log(second), lambda: logs(kubelet))
    time.sleep(20)
    assert holder(world) == third
    assert renewed(registry) > killed


def logs(kubelet: Kubelet) -> str:
    """What its pods said."""
    return "\n".join(
        kubelet.log(running.pod["metadata"]["name"]) for running in kubelet.pods.values()
    )
