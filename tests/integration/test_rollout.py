"""A rolling update of 20 pods, 3 at a time, on a real API server: what callers find in a real
Eureka at every moment.

The test acts as the Deployment's controller and the kubelet. A pod is ready when its containers
are, and its readiness gate is open, if it has one. The next three end when all remaining pods are
ready.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from tests.integration.program import Program, Registry
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

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
        kubernetes_world.create_service(
            NAMESPACE, "rating", ports=[{"name": "http", "port": 80, "targetPort": "http"}]
        )
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
    """Existing pods, with the time of their creation."""
    gone: dict[int, float] = field(default_factory=dict)
    """Deleted pods, with the time of their deletion."""

    def create(self) -> int:
        """Create a pod whose containers are ready."""
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
        """Delete the pod. It counts as gone from the moment of this call."""
        self.living.pop(number)
        self.gone[number] = time.monotonic()
        self.world.delete_pod(NAMESPACE, f"rating-{number}")

    def kubelet(self) -> bool:
        """Set Ready where it is due. Returns whether all pods are ready."""
        all_ready = True
        for pod in self.world.request("GET", PODS)["items"]:
            true = {c["type"] for c in pod["status"].get("conditions", ()) if c["status"] == "True"}
            due = {"ContainersReady", *([GATE] if self.gated else [])} <= true
            if due and "Ready" not in true:
                self.world.set_ready(NAMESPACE, pod["metadata"]["name"], True)
            all_ready = all_ready and due
        return all_ready

    def wait(self) -> None:
        """Wait until all pods are ready."""
        wait_until(self.kubelet, "the pods did not become ready")


@dataclass
class Watch:
    """Reads every instance uncached, without pause: how many existing pods are UP, and how long
    dead ones stay registered."""

    registry: Registry
    deployment: Deployment
    owner: str
    fewest: int = COUNT
    looks: int = 0
    seen: list[tuple[float, frozenset[int], int]] = field(default_factory=list)
    """Each look: its start, the pods that existed until its end, and how many were UP."""
    last_seen: dict[int, float] = field(default_factory=dict)
    """The last time at which the instance of each dead pod was found."""
    listed: dict[int, float] = field(default_factory=dict)
    """The time at which each pod was first found ready in the slices. With the gate, its containers
    are ready."""
    unlisted: dict[int, float] = field(default_factory=dict)
    """The time at which each dead pod was first found in no slice."""
    stopped: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None

    def watch(self) -> None:
        """Look until it is stopped."""
        try:
            while not self.stopped.is_set():
                self.look()
        except BaseException as error:
            self.failure = error
            raise

    def look(self) -> None:
        """Make one look. A pod that is deleted during it counts as existing."""
        began = time.monotonic()
        living, gone = dict(self.deployment.living), dict(self.deployment.gone)
        up = sum(self._status(number) == "UP" for number in living)
        if not set(living) - set(
            self.deployment.living
        ):  # otherwise a pod was deleted during the reads
            self.fewest = min(self.fewest, up)
            self.seen.append((began, frozenset(living), up))
        for number in gone:
            asked = time.monotonic()
            if self._status(number) is not None:
                self.last_seen[number] = asked
        self.looks += 1

    def watch_slices(self) -> None:
        """Record what a pass could know at best, until it is stopped."""
        path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
        while not self.stopped.is_set():
            dead = set(self.deployment.gone)
            pieces = self.deployment.world.request("GET", path)["items"]
            now = time.monotonic()
            ends = {
                e["addresses"][0]: e["conditions"].get("ready", True)
                for p in pieces
                for e in p["endpoints"] or ()
            }
            ready = {
                int(address.rpartition(".")[2]) for address, is_ready in ends.items() if is_ready
            }
            there = {int(address.rpartition(".")[2]) for address in ends}
            for number in ready:
                self.listed.setdefault(number, now)
            for number in dead - there:
                self.unlisted.setdefault(number, now)
            self.stopped.wait(0.02)

    def _status(self, number: int) -> str | None:
        return self.registry.status(
            "RATING", f"{self.owner}:{NAMESPACE}:rating:10.1.0.{number}:8080"
        )


def a_pass_ends(daemon: subprocess.Popen[str]) -> None:
    """Wait until the daemon reports a pass."""
    assert daemon.stdout is not None
    pipe = daemon.stdout.fileno()

    def said() -> int:
        """The number of bytes that nobody has read yet."""
        return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)

    before = said()
    wait_until(lambda: said() > before, "the daemon reports on no pass")


def a_look(watch: Watch) -> None:
    """Wait until every instance was read after this moment."""
    looks = watch.looks
    wait_until(lambda: watch.looks >= looks + 2, "nobody looks any more")


@pytest.mark.parametrize("gated", [True, False], ids=["with readinessGate", "without"])
def test_a_rolling_update_of_20_pods_3_at_a_time(
    program: Program, registry: Registry, world: KubernetesWorld, gated: bool
) -> None:
    """With the gate at least 17 instances of existing pods are UP at every moment. Without it,
    there are as many as the passes allow, one of which is delayed. No instance outlives its pod, as
    the slices show it, by more than an interval and a pass."""
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
    # With JSON each pass is told, also one that changes nothing.
    daemon = program.start("--daemon", f"--interval={INTERVAL:g}s", "-o", "json")
    watch = Watch(registry=registry, deployment=deployment, owner=program.owner)
    watchers = [threading.Thread(target=watch.watch), threading.Thread(target=watch.watch_slices)]
    try:
        deployment.wait()
        wait_until(
            lambda: all(watch._status(number) == "UP" for number in deployment.living),
            "the pods were not registered",
        )
        # A pass cancels only what the list shows.
        registry.list_follows(
            "RATING",
            [
                f"{program.owner}:{NAMESPACE}:rating:10.1.0.{number}:8080"
                for number in deployment.living
            ],
        )
        for watcher in watchers:
            watcher.start()
        old = sorted(deployment.living)
        if not gated:
            a_pass_ends(daemon)  # a call that is stopped halfway is no part of this test
            daemon.send_signal(signal.SIGSTOP)  # as long as a pass on a busy machine
        for start in range(0, COUNT, BATCH):
            step = time.monotonic()
            for number in old[start : start + BATCH]:
                deployment.delete(number)
            for _ in old[start : start + BATCH]:
                deployment.create()
            deployment.wait()
            a_look(watch)
            if start == BATCH and not gated:
                wait_until(
                    lambda: watch.fewest <= COUNT - 2 * BATCH,
                    "nobody missed the pods that were replaced",
                )
                daemon.send_signal(signal.SIGCONT)
            if not gated:
                time.sleep(
                    max(0.0, INTERVAL / 2 - (time.monotonic() - step))
                )  # pods start quickly, but not at once
        wait_until(
            lambda: (
                set(deployment.gone) <= set(watch.unlisted)
                and any(p.read > max(watch.unlisted.values()) for p in _passes(program)[:-1])
            ),
            "the daemon stopped making passes",
        )
        a_look(watch)
    finally:
        watch.stopped.set()
        for watcher in watchers:
            if watcher.ident is not None:
                watcher.join()
        daemon.send_signal(signal.SIGCONT)
        daemon.terminate()
        daemon.communicate(timeout=300)
    assert watch.failure is None
    assert len(watch.seen) >= COUNT / BATCH
    passes = _passes(program)
    longest = max(
        (seen - deployment.gone[number] for number, seen in watch.last_seen.items()), default=0.0
    )
    gaps = [later.read - earlier.read for earlier, later in itertools.pairwise(passes)]
    measured = (
        f"fewest UP {watch.fewest}, longest dead {longest:.1f} s, a pass each "
        f"{max(gaps):.1f} s at most"
    )
    # The first pass that could read the pod's end cancels it, within an interval and that pass.
    for number, seen in watch.last_seen.items():
        assert seen <= _done_after(watch.unlisted[number], passes), f"pod {number}; {measured}"
    lag = max(watch.unlisted[number] - gone for number, gone in deployment.gone.items())
    assert longest <= lag + max(gaps) + max(p.wrote - p.read for p in passes), (
        f"slices late by {lag:.1f} s; {measured}"
    )
    if gated:
        assert watch.fewest >= COUNT - BATCH, measured
    else:
        # The first pass that could read that a pod is ready registers it.
        for at, living, up in watch.seen:
            due = [
                n
                for n in living
                if n in watch.listed and _done_after(watch.listed[n], passes) <= at
            ]
            assert up >= len(due), f"{up} UP and {len(due)} due; {measured}"
    assert all(watch._status(number) == "UP" for number in deployment.living)


@dataclass(frozen=True)
class Pass:
    """One pass of the daemon, as its calls show it."""

    read: float
    """The time of the request for the slices."""
    wrote: float
    """The time of the answer to its last registration or cancel. It is `read` if there was none."""


def _passes(program: Program) -> list[Pass]:
    """The daemon's passes. Each of them lists the slices once."""
    reads = sorted(
        one.asked for one in list(program.kubernetes.moments) if "endpointslices" in one.call.path
    )
    calls = [
        one.answered
        for one in list(program.eureka.moments)
        if one.call.method in ("POST", "DELETE")
    ]
    ends = [*reads[1:], float("inf")]
    found = []
    for read, end in zip(reads, ends, strict=True):
        found.append(Pass(read, max((at for at in calls if read <= at < end), default=read)))
    return found


def _done_after(moment: float, passes: list[Pass]) -> float:
    """The end of the first pass that read the slices after this moment."""
    return next((one.wrote for one in passes if one.read > moment), float("inf"))
