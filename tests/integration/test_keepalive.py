"""Only `keepalive` runs, beside a real Eureka that evicts and has instances of others."""

from __future__ import annotations

import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from eurekube_sync.controller.exit_codes import ExitCode
from tests.command.program import IDS, Program, rating
from tests.integration.program import Registry
from tests.servers.eureka import EurekaServer
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

LEASE = 25
"""In seconds. Twice as long after a renewal, so a busy machine has 20 s more than the 30 s between
two."""


@pytest.fixture
def registry(eureka: EurekaServer) -> Registry:
    """Instances in the registry."""
    return Registry(url=eureka.url)


@pytest.fixture
def program(eureka: EurekaServer, registry: Registry, tmp_path: Path) -> Iterator[Program]:
    """Two instances with short leases. The `run` that registered them is gone, and so is its
    cluster."""
    with rating(tmp_path) as found:
        found.eureka_url = eureka.url
        done = found.run()
        assert done.code == 0, done.out + done.err
        found.kubeconfig()  # nothing listens at its address any more
    for id_ in IDS:
        shorten(registry, id_)
    assert [registry.status("RATING", id_) for id_ in IDS] == ["UP", "UP"]
    yield found
    for id_ in IDS:
        requests.delete(f"{eureka.url}/apps/RATING/{id_}", timeout=30)


def shorten(registry: Registry, id_: str) -> None:
    """Register the same instance with a short lease, so that it could expire during this test.
    `run` gives longer ones."""
    found = registry.instance("RATING", id_)
    assert found is not None
    body = {**found, "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": LEASE}}
    del body["lastDirtyTimestamp"]
    requests.post(
        f"{registry.url}/apps/RATING", json={"instance": body}, timeout=30
    ).raise_for_status()


def register(
    registry: Registry, app: str, id_: str, *, duration: int, owner: str
) -> dict[str, Any]:
    """Register an instance of another owner with its own lease; returns it as Eureka has it."""
    body = {
        "instanceId": id_,
        "hostName": "192.0.2.7",
        "ipAddr": "192.0.2.7",
        "app": app,
        "vipAddress": app.lower(),
        "status": "UP",
        "port": {"$": 8080, "@enabled": "true"},
        "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": duration},
        "dataCenterInfo": {
            "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
            "name": "MyOwn",
        },
        "metadata": {
            "eurekube.owner": owner,
            "eurekube.cluster": "elsewhere",
            "eurekube.syncer": "a/b",
        },
    }
    requests.post(
        f"{registry.url}/apps/{app}", json={"instance": body}, timeout=30
    ).raise_for_status()
    found = registry.instance(app, id_)
    assert found is not None
    return found


def renewed_until_it_does(process: subprocess.Popen[str], registry: Registry) -> None:
    """Renew the leases until a keepalive reports its first pass. A process starts slowly on a busy
    machine, and nobody can renew an expired lease."""
    assert process.stdout is not None
    told = [process.stdout]

    def begun() -> bool:
        for id_ in IDS:
            requests.put(f"{registry.url}/apps/RATING/{id_}", timeout=30).raise_for_status()
        return bool(select.select(told, [], [], LEASE / 8)[0])

    wait_until(begun, "no keepalive has begun")


def test_leases_outlive_cluster_and_operator(program: Program, registry: Registry) -> None:
    """Ours stay UP for longer than even a renewed lease lasts. One instance of others has expired,
    and another was never renewed."""
    kubeconfig = str(program.folder / "changed-kubeconfig")
    process = program.start("keepalive", "--daemon", "--interval", "1s", KUBECONFIG=kubeconfig)
    renewed_until_it_does(process, registry)
    begun = time.monotonic()
    stranger = register(registry, "BILLING", "other:billing:1", duration=3600, owner="other")
    register(registry, "BILLING", "other:billing:2", duration=LEASE, owner="other")
    assert program.run("--dry-run", KUBECONFIG=kubeconfig).code == ExitCode.KUBERNETES_UNREAD
    while time.monotonic() < begun + 2 * LEASE + 4:
        assert [registry.status("RATING", id_) for id_ in IDS] == ["UP", "UP"]
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    ended = program.end(process)
    assert ended.code == 0, ended.out + ended.err
    wait_until(
        lambda: registry.status("BILLING", "other:billing:2") is None, "this server evicts nobody"
    )
    assert registry.instance("BILLING", "other:billing:1") == stranger
    wait_until(lambda: registry.status("RATING", IDS[0]) is None, "ours outlive keepalive")
