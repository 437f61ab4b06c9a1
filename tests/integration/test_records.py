"""Saved output of `kubectl get` and a recorded pass, compared with the real servers that they came
from."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
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
    time.sleep(1)  # `--at` names a second: each pass needs one of its own
    program.good("--record", str(records), *scope)
    assert registry.status("RATING", ids[0]) is None

    first, second = (one.name[5:20] for one in sorted(records.iterdir()))
    before, then = (offline_plan(records, moment) for moment in (first, second))
    assert [one for one in before if one["action"] == "cancel"] == []
    assert [one["id"] for one in then if one["action"] == "cancel"] == [ids[0]]


def offline_plan(records: Path, moment: str) -> list[dict[str, Any]]:
    """The actions that a dry run plans from the record of this moment, such as `20270115T080130`,
    without a server."""
    at = f"{moment[:4]}-{moment[4:6]}-{moment[6:11]}:{moment[11:13]}:{moment[13:]}"
    done = subprocess.run(
        [
            Path(sys.executable).with_name("eurekube-sync"),
            *("run", "--dry-run", "--from", str(records), "--at", at, "-o", "json"),
        ],
        env={**os.environ, "KUBECONFIG": "/nowhere/none"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    actions: list[dict[str, Any]] = json.loads(done.stdout)["actions"]
    return actions
