"""A rolling update with the advice of `check` loses no call of a Spring application outside.
Without the advice it loses some. The caches of Spring and of Eureka have their defaults: 30 s, 30 s
and 35 s.

The test acts as the Deployment's controller and the kubelet: a pod answers until its `preStop` has
slept.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
import yaml

from eurekube_sync.embedded.http import LoopbackServer, Request, Response
from tests.integration import forked
from tests.integration.program import Program, Registry
from tests.servers.eureka import EurekaServer
from tests.servers.spring_reader import SpringReader
from tests.servers.world import KubernetesWorld, write_kubeconfig
from tests.situations import NODE
from tests.waiting import wait_until

NAMESPACE, HEEDED, UNHEEDED = "zero-downtime", "heeded", "unheeded"
INTERVAL = 5.0
"""Seconds between two passes."""
_ENDS = 2.0
"""Seconds that a process takes to end after its SIGTERM."""


@dataclass
class Pods:
    """All pods, behind one address. A call names its pod as the host."""

    world: KubernetesWorld
    names: dict[str, str] = field(default_factory=dict)
    """The pod that answers at each address."""
    _ends: list[threading.Thread] = field(default_factory=list)

    def answer(self, request: Request) -> Response:
        """A pod that is gone gives no answer."""
        name = self.names.get(request.headers.get("host", "").partition(":")[0])
        if name is None:
            raise ConnectionResetError
        return Response(status=200, body=name.encode(), content_type="text/plain")

    def create(self, app: str, number: int, spec: dict[str, Any]) -> None:
        address = self.address(app, number)
        self.names[address] = f"{app}-{number}"
        self.world.create_pod(
            NAMESPACE, f"{app}-{number}", labels={"app": app}, node=NODE, ips=[address], **spec
        )

    @staticmethod
    def address(app: str, number: int) -> str:
        return f"10.9.{7 if app == HEEDED else 8}.{number}"

    def end(self, app: str, number: int, sleeps: float) -> None:
        """End a pod as a Deployment does. It answers until its preStop has slept, and is then
        gone."""
        name, address = f"{app}-{number}", self.address(app, number)
        self.world.delete_pod(NAMESPACE, name, grace_seconds=round(sleeps) + 30)

        def stop() -> None:
            time.sleep(sleeps + (_ENDS if sleeps else 0))
            del self.names[address]
            self.world.delete_pod(NAMESPACE, name)

        thread = threading.Thread(target=stop)
        thread.start()
        self._ends.append(thread)

    def wait_for_ends(self) -> None:
        for thread in self._ends:
            thread.join()


@pytest.fixture
def pods(kubernetes_world: KubernetesWorld) -> Iterator[Pods]:
    """A Service and a syncer for each of the two apps."""
    world = kubernetes_world
    world.create_namespace(NAMESPACE)
    with contextlib.suppress(requests.HTTPError):  # another test may have created it
        world.create_node(NODE)
    for app in (HEEDED, UNHEEDED):
        world.create_service(NAMESPACE, app, ports={"http": 8080})
    found = Pods(world=world)
    yield found
    found.wait_for_ends()
    for pod in world.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]:
        world.delete_pod(NAMESPACE, pod["metadata"]["name"])
    world.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


def _syncer(world: KubernetesWorld, app: str) -> None:
    path = f"/apis/eurekube.io/v1/namespaces/{NAMESPACE}/eurekasyncers"
    head = {"apiVersion": "eurekube.io/v1", "kind": "EurekaSyncer", "metadata": {"name": app}}
    world.request("POST", path, {**head, "spec": {"selector": {"app": app}}})


def _advice(program: Program, registry: Registry) -> dict[str, dict[str, Any]]:
    """The advice of `check` about the drain time, by syncer: the lines to add, or none."""
    kubeconfig = write_kubeconfig(
        program.folder / "check", url=program.kubernetes.url, token=program.token
    )
    ended = forked.run(
        ["check", "--lock=off", f"--interval={INTERVAL:g}s", "--output=json"],
        forked.environment(
            EUREKUBE_SYNC_OWNER=program.owner,
            EUREKUBE_SYNC_EUREKA_URL=registry.url,
            KUBECONFIG=str(kubeconfig),
        ),
        timeout=300,
    )
    assert ended.stdout, ended.stderr
    found = [one for one in json.loads(ended.stdout)["findings"] if one["check"] == "PodEnd"]
    return {one["text"].partition(":")[0]: yaml.safe_load(one["manifest"] or "{}") for one in found}


@pytest.mark.parametrize("eureka", ["eureka_stock"], indirect=True)
def test_the_advice_followed_loses_no_call_and_unheeded_loses_some(
    program: Program,
    registry: Registry,
    eureka: EurekaServer,
    kubernetes_world: KubernetesWorld,
    pods: Pods,
) -> None:
    """One caller calls both apps at once. The pods of one have the lines that `check` prints, and
    the others have not."""
    for app in (HEEDED, UNHEEDED):
        _syncer(kubernetes_world, app)
        pods.create(app, 1, {})
        kubernetes_world.wait_for_slices(NAMESPACE, app, {pods.address(app, 1): "Ready"})
    lines = _advice(program, registry)[f"{NAMESPACE}/{HEEDED}"]["spec"]
    (container,) = lines["containers"]
    sleeps = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert lines["terminationGracePeriodSeconds"] > sleeps
    whole = {**lines, "containers": [{"image": "example.invalid/app:1", **container}]}
    pods.create(HEEDED, 2, whole)
    pods.end(HEEDED, 1, 0)
    pods.wait_for_ends()
    kubernetes_world.wait_for_slices(NAMESPACE, HEEDED, {pods.address(HEEDED, 2): "Ready"})
    advice = _advice(program, registry)
    assert advice[f"{NAMESPACE}/{HEEDED}"] == {}
    assert advice[f"{NAMESPACE}/{UNHEEDED}"]["spec"] == lines | {"containers": [container]}

    daemon = program.start("--daemon", f"--interval={INTERVAL:g}s")
    with (
        LoopbackServer(pods.answer) as proxy,
        SpringReader(
            registry.url, [HEEDED, UNHEEDED], proxy_port=int(proxy.url.rpartition(":")[2])
        ) as reader,
    ):
        try:
            for app in (HEEDED, UNHEEDED):
                wait_until(
                    lambda app=app: reader.calls(app).answered > 0,  # type: ignore[misc]
                    lambda: f"nobody was found: {reader.log_file.read_text()[-3000:]}",
                    seconds=300,
                )
            before = {app: reader.number(app) for app in (HEEDED, UNHEEDED)}
            pods.create(HEEDED, 3, whole)
            pods.create(UNHEEDED, 3, {})
            pods.end(HEEDED, 2, sleeps)
            pods.end(UNHEEDED, 1, 0)
            pods.wait_for_ends()
            for app in (HEEDED, UNHEEDED):
                at = reader.number(app)
                wait_until(
                    lambda app=app, at=at: reader.calls(app, since=at).by[f"{app}-3"] > 10,  # type: ignore[misc]
                    "the new pod was not called",
                    seconds=300,
                )
            heeded, unheeded = (reader.calls(app, since=before[app]) for app in (HEEDED, UNHEEDED))
        finally:
            daemon.terminate()
            daemon.communicate(timeout=300)
    assert heeded.failed == (), (
        f"{len(heeded.failed)} of {heeded.answered} failed: {heeded.failed[0]}"
    )
    assert set(heeded.by) == {f"{HEEDED}-2", f"{HEEDED}-3"}, heeded.by
    assert unheeded.failed, "without the advice no call failed: the test shows nothing"
    assert unheeded.by[f"{UNHEEDED}-3"]
