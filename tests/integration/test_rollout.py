"""A rolling update of 20 pods, 3 at a time, on a real API server: what callers find in a real Eureka at every moment.

The test is the Deployment's controller and the kubelet: a pod is ready when its containers are and, if it has our
readiness gate, when that is open; the next three go when all that are left are ready.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from tests.integration.program import Program, Registry
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers

NAMESPACE = "rollout"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
GATE = "eurekube.io/registered"
LABELS = {"app": "rating"}
COUNT, BATCH = 20, 3
INTERVAL = 2.0
"""Seconds between two passes of the daemon."""


@pytest.fixture
def world(kubernetes_world: KubernetesWorld) -> KubernetesWorld:
    """An empty namespace with the Service `rating`."""
    with contextlib.suppress(requests.HTTPError):
        kubernetes_world.create_node("rollout-node", zone="a")
    with contextlib.suppress(requests.HTTPError):
        kubernetes_world.create_namespace(NAMESPACE)
    with contextlib.suppress(requests.HTTPError):
        kubernetes_world.create_service(NAMESPACE, "rating", ports=[{"name": "http", "port": 80, "targetPort": "http"}])
    for pod in kubernetes_world.request("GET", PODS)["items"]:
        kubernetes_world.delete_pod(NAMESPACE, pod["metadata"]["name"])
    return kubernetes_world


@dataclass
class Deployment:
    """The pods of one rollout; an address is never used twice."""

    world: KubernetesWorld
    gated: bool
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    living: dict[int, float] = field(default_factory=dict)
    """Pods that exist, with the moment they were made."""
    gone: dict[int, float] = field(default_factory=dict)
    """Pods that are deleted, with the moment."""

    def create(self) -> int:
        """A pod whose containers are ready."""
        number = next(self.numbers)
        spec: dict[str, Any] = {"readinessGates": [{"conditionType": GATE}]} if self.gated else {}
        self.world.create_pod(
            NAMESPACE, f"rating-{number}", ips=[f"10.1.0.{number}"], labels=LABELS, node="rollout-node",
            ports={"http": 8080}, ready=False, **spec,
        )  # fmt: skip
        containers = [{"type": "ContainersReady", "status": "True"}]
        self.world.patch_pod_status(NAMESPACE, f"rating-{number}", {"conditions": containers})
        self.living[number] = time.monotonic()
        return number

    def delete(self, number: int) -> None:
        """The pod is gone from the moment that this is called."""
        self.living.pop(number)
        self.gone[number] = time.monotonic()
        self.world.delete_pod(NAMESPACE, f"rating-{number}")

    def kubelet(self) -> bool:
        """Sets Ready where it is due; whether all pods are ready."""
        all_ready = True
        for pod in self.world.request("GET", PODS)["items"]:
            true = {c["type"] for c in pod["status"].get("conditions", ()) if c["status"] == "True"}
            due = {"ContainersReady", *([GATE] if self.gated else [])} <= true
            if due and "Ready" not in true:
                self.world.set_ready(NAMESPACE, pod["metadata"]["name"], True)
            all_ready = all_ready and due
        return all_ready

    def wait(self, seconds: float = 60) -> None:
        """Until all pods are ready."""
        deadline = time.monotonic() + seconds
        while not self.kubelet():
            assert time.monotonic() < deadline, "the pods did not become ready"
            time.sleep(0.05)


@dataclass
class Watch:
    """Reads every instance uncached, over and over: how many are UP whose pods exist, and how long dead ones stand."""

    registry: Registry
    deployment: Deployment
    owner: str
    fewest: int = COUNT
    longest_dead: float = 0
    looks: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None

    def watch(self) -> None:
        """Until it is stopped."""
        try:
            while not self.stopped.is_set():
                self.look()
        except BaseException as error:
            self.failure = error
            raise

    def look(self) -> None:
        """One look. A pod that goes while we read was there when we began, and is counted as it was."""
        living, gone = dict(self.deployment.living), dict(self.deployment.gone)
        up = sum(self._status(number) == "UP" for number in living)
        if not set(living) - set(self.deployment.living):  # else some of what we read went in between
            self.fewest = min(self.fewest, up)
            self.looks += 1
        for number, since in gone.items():
            asked = time.monotonic()
            if self._status(number) is not None:
                self.longest_dead = max(self.longest_dead, asked - since)

    def _status(self, number: int) -> str | None:
        return self.registry.status("RATING", f"{self.owner}:{NAMESPACE}:rating:10.1.0.{number}:8080")


@pytest.mark.parametrize("gated", [True, False], ids=["with readinessGate", "without"])
def test_a_rolling_update_of_20_pods_3_at_a_time(
    program: Program, registry: Registry, world: KubernetesWorld, gated: bool
) -> None:
    """With the gate at least 17 instances are UP at every moment, of pods that exist; without it, as many as the
    interval allows. In both, no instance outlives its pod by more than an interval and the pass in it."""
    deployment = Deployment(world=world, gated=gated)
    world.request(
        "POST",
        f"/apis/eurekube.io/v1/namespaces/{NAMESPACE}/eurekasyncers",
        {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaSyncer",
            "metadata": {"name": "rating"},
            "spec": {"mode": "pod", "selector": LABELS, "readinessGate": gated},
        },
    )
    for _ in range(COUNT):
        deployment.create()
    deployment.kubelet()
    daemon = program.start("--daemon", f"--interval={INTERVAL:g}s")
    watch = Watch(registry=registry, deployment=deployment, owner=program.owner)
    watcher = threading.Thread(target=watch.watch)
    try:
        deployment.wait()
        deadline = time.monotonic() + 60
        while sum(watch._status(number) == "UP" for number in deployment.living) < COUNT:
            assert time.monotonic() < deadline, "the pods were not registered"
            time.sleep(0.1)
        began, passes = time.monotonic(), _passes(program)
        watcher.start()
        old = sorted(deployment.living)
        pace = 0.0
        for start in range(0, COUNT, BATCH):
            step = time.monotonic()
            for number in old[start : start + BATCH]:
                deployment.delete(number)
            for _ in old[start : start + BATCH]:
                deployment.create()
            deployment.wait()
            pace = max(pace, time.monotonic() - step)
            if not gated:
                time.sleep(max(0.0, INTERVAL / 2 - (time.monotonic() - step)))  # pods that start quickly, not at once
        took = time.monotonic() - began
        period = took / max(1, _passes(program) - passes)
        time.sleep(2 * period + 1)
    finally:
        watch.stopped.set()
        watcher.join()
        daemon.terminate()
        daemon.communicate(timeout=60)
    assert watch.failure is None
    assert watch.looks > 20
    measured = f"fewest UP {watch.fewest}, longest dead {watch.longest_dead:.1f} s, a pass each {period:.1f} s"
    # A pass reads the slices at its beginning and writes at its end, so what happens just after that waits for two.
    longest = 2 * max(period, INTERVAL) + 1
    assert watch.longest_dead <= longest, measured
    if gated:
        assert watch.fewest >= COUNT - BATCH, measured
    else:
        steps_between = int(longest / (INTERVAL / 2)) + 1
        assert watch.fewest >= COUNT - BATCH * steps_between, measured
        assert watch.fewest < COUNT - BATCH, f"{measured}: the rollout is not faster than the passes"
    assert all(watch._status(number) == "UP" for number in deployment.living)


def _passes(program: Program) -> int:
    """How many passes the daemon has begun: each lists the syncers."""
    return sum("eurekasyncers" in call.path and call.method == "GET" for call in program.kubernetes.calls)
