"""Saved output of `kubectl get` and a recorded pass, compared with the real servers that they came
from."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.integration.program import Program, Registry
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers

NAMESPACE, NODE = "recorded", "recorded-node"
SYNCERS = f"/apis/eurekube.io/v1/namespaces/{NAMESPACE}/eurekasyncers"


@pytest.fixture
def world(kubernetes_world: KubernetesWorld) -> KubernetesWorld:
    """Two ready pods behind the Service `rating`, and a syncer that selects it."""
    world = kubernetes_world
    with contextlib.suppress(requests.HTTPError):
        world.create_node(NODE)
    world.create_namespace(NAMESPACE)
    world.create_service(NAMESPACE, "rating", ports={"http": 8080})
    for number in (1, 2):
        world.create_pod(
            NAMESPACE,
            f"rating-{number}",
            labels={"app": "rating"},
            node=NODE,
            ips=[f"10.77.0.{number}"],
        )
    world.wait_for_slices(NAMESPACE, "rating", {"10.77.0.1": "Ready", "10.77.0.2": "Ready"})
    head = {"apiVersion": "eurekube.io/v1", "kind": "EurekaSyncer", "metadata": {"name": "rating"}}
    world.request("POST", SYNCERS, {**head, "spec": {"selector": {"service": "rating"}}})
    return world


def test_saved_objects_give_the_same_plan_and_a_record_shows_a_removal(
    program: Program,
    registry: Registry,
    world: KubernetesWorld,
    kubernetes_servers: KubernetesServers,
    tmp_path: Path,
) -> None:
    """The real kubectl writes JSON and YAML. The record answers while both servers are out of
    reach."""
    saved = []
    for kinds, form in (("eurekasyncers,services", "json"), ("endpointslices", "yaml")):
        file = tmp_path / f"saved.{form}"
        file.write_text(
            kubernetes_servers.kubectl("get", kinds, "-n", NAMESPACE, "-o", form).stdout
        )
        saved += ["--from", str(file)]
    scope = ("-n", NAMESPACE)
    live = program.good("--dry-run", *scope)
    offline = program.good("--dry-run", *scope, *saved)
    assert not program.kubernetes.calls
    assert [one["action"] for one in offline["actions"]] == ["register", "register"]
    assert offline["actions"] == live["actions"]

    records = tmp_path / "records"
    program.good("--record", str(records), *scope)
    ids = [f"{program.owner}:{NAMESPACE}:rating:10.77.0.{number}:8080" for number in (1, 2)]
    registry.list_follows("RATING", ids)
    world.delete_pod(NAMESPACE, "rating-1")
    world.wait_for_slices(NAMESPACE, "rating", {"10.77.0.2": "Ready"})
    program.good("--record", str(records), *scope)
    assert registry.status("RATING", ids[0]) is None

    first, second = replayed(records, "10.77.0.1")
    assert '"cancel"' not in json.dumps(first)
    told = json.dumps(second)
    assert '"cancel"' in told
    assert ids[0] in told
    assert ids[1] not in told
    (last,) = replayed(records, "--at", "2100-01-01 00:00")
    assert last["samePlan"] is True


def replayed(records: Path, *arguments: str) -> list[dict[str, Any]]:
    """The passes that `replay` shows, without a server."""
    done = subprocess.run(
        [
            Path(sys.executable).with_name("eurekube-sync"),
            "replay",
            str(records),
            *arguments,
            "-o",
            "json",
        ],
        env={**os.environ, "KUBECONFIG": "/nowhere/none"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passes: list[dict[str, Any]] = json.loads(done.stdout)["passes"]
    return passes
