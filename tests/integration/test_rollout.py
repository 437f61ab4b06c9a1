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
READ = 0.5
"""Seconds that the answer with the slices may be older than its arrival here."""
LOOK = 0.1
"""Seconds that one read of Eureka may take to come."""
LOOKS = 3
"""Looks that each state of the rollout is to have."""
LAG = 1.0
"""Seconds until the slice controller has written that a pod is gone."""


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
    seen: list[tuple[float, frozenset[int], int]] = field(default_factory=list)
    """Each look: when it began, the pods that lived all the while, how many were UP."""
    last_seen: dict[int, float] = field(default_factory=dict)
    """Of each dead pod the last moment that its instance was found."""
    listed: dict[int, float] = field(default_factory=dict)
    """When a pod was first found ready in the slices: with the gate, when its containers are."""
    unlisted: dict[int, float] = field(default_factory=dict)
    """When a dead one was first found to be in none."""
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
        began = time.monotonic()
        living, gone = dict(self.deployment.living), dict(self.deployment.gone)
        up = sum(self._status(number) == "UP" for number in living)
        if not set(living) - set(self.deployment.living):  # else some of what we read went in between
            self.fewest = min(self.fewest, up)
            self.seen.append((began, frozenset(living), up))
        for number in gone:
            asked = time.monotonic()
            if self._status(number) is not None:
                self.last_seen[number] = asked

    def wait(self, looks: int, seconds: float = 60) -> None:
        """Until it has looked so many times more, or failed."""
        wanted, deadline = len(self.seen) + looks, time.monotonic() + seconds
        while len(self.seen) < wanted and self.failure is None:
            assert time.monotonic() < deadline, f"{len(self.seen)} looks, not {wanted}"
            time.sleep(0.05)

    def watch_slices(self) -> None:
        """What a pass could know at best, until it is stopped."""
        path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
        while not self.stopped.is_set():
            dead = set(self.deployment.gone)
            pieces = self.deployment.world.request("GET", path)["items"]
            now = time.monotonic()
            ends = {e["addresses"][0]: e["conditions"].get("ready", True) for p in pieces for e in p["endpoints"] or ()}
            ready = {int(address.rpartition(".")[2]) for address, is_ready in ends.items() if is_ready}
            there = {int(address.rpartition(".")[2]) for address in ends}
            for number in ready:
                self.listed.setdefault(number, now)
            for number in dead - there:
                self.unlisted.setdefault(number, now)
            self.stopped.wait(0.02)

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
    watchers = [threading.Thread(target=watch.watch), threading.Thread(target=watch.watch_slices)]
    try:
        deployment.wait()
        deadline = time.monotonic() + 60
        while sum(watch._status(number) == "UP" for number in deployment.living) < COUNT:
            assert time.monotonic() < deadline, "the pods were not registered"
            time.sleep(0.1)
        began = time.monotonic()
        for watcher in watchers:
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
            if gated:
                watch.wait(LOOKS)  # a rollout that waits for Eureka can wait for a busy machine's looks, too
            else:
                time.sleep(max(0.0, INTERVAL / 2 - (time.monotonic() - step)))  # pods that start quickly, not at once
        deadline = time.monotonic() + 60
        while (
            not set(deployment.gone) <= set(watch.unlisted)
            or len([p for p in _passes(program)[:-1] if p.read > max(watch.unlisted.values())]) < 1
        ):
            assert time.monotonic() < deadline, "the daemon stopped making passes"
            time.sleep(0.1)
        watch.wait(LOOKS)  # the last ones
    finally:
        watch.stopped.set()
        for watcher in watchers:
            if watcher.ident is not None:
                watcher.join()
        daemon.terminate()
        daemon.communicate(timeout=60)
    assert watch.failure is None
    passes = _passes(program)
    longest = max(seen - deployment.gone[number] for number, seen in watch.last_seen.items())
    gaps = [later.read - earlier.read for earlier, later in itertools.pairwise(p for p in passes if p.read > began)]
    measured = f"fewest UP {watch.fewest}, longest dead {longest:.1f} s, a pass each {max(gaps):.1f} s at most"
    # The pass that could read that a pod is gone is the one that cancels it: an interval and that pass at most.
    for number, seen in watch.last_seen.items():
        assert seen <= _done_after(watch.unlisted[number], passes) + LOOK, f"pod {number}; {measured}"
    assert longest <= max(gaps) + max(p.wrote - p.read for p in passes) + LAG, measured
    if gated:
        assert watch.fewest >= COUNT - BATCH, measured
    else:
        # So does the pass that could read that a pod is ready register it.
        for at, living, up in watch.seen:
            due = [n for n in living if n in watch.listed and _done_after(watch.listed[n], passes) <= at]
            assert up >= len(due), f"{up} UP and {len(due)} due; {measured}"
        assert watch.fewest < COUNT - BATCH, f"{measured}: the rollout is not faster than the passes"
    assert all(watch._status(number) == "UP" for number in deployment.living)


@dataclass(frozen=True)
class Pass:
    """One pass of the daemon, as its calls tell."""

    read: float
    """When the slices were asked for, or later."""
    wrote: float
    """When its last registration or cancel was answered; `read` if it made none."""


def _passes(program: Program) -> list[Pass]:
    """Each lists the slices once."""
    reads = [at for at, call in list(program.kubernetes.moments) if "endpointslices" in call.path]
    calls = [at for at, call in list(program.eureka.moments) if call.method in ("POST", "DELETE")]
    ends = [*reads[1:], float("inf")]
    found = []
    for read, end in zip(reads, ends, strict=True):
        found.append(Pass(read, max((at for at in calls if read <= at < end), default=read)))
    return found


def _done_after(moment: float, passes: list[Pass]) -> float:
    """When the first pass ended that read the slices after the moment."""
    return next((one.wrote for one in passes if one.read - READ > moment), float("inf"))
