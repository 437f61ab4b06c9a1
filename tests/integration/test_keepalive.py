"""Nothing but `keepalive` runs, and a real Eureka evicts, and holds strangers."""

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
"""Seconds; twice that after a renewal, which leaves a busy machine 20 s over the 30 s between two."""


@pytest.fixture
def registry(eureka: EurekaServer) -> Registry:
    """What stands in it."""
    return Registry(url=eureka.url)


@pytest.fixture
def program(eureka: EurekaServer, registry: Registry, tmp_path: Path) -> Iterator[Program]:
    """Two instances with short leases, registered by `run`, which is gone, like its cluster."""
    with rating(tmp_path) as found:
        found.eureka_url = eureka.url
        done = found.run()
        assert done.code == 0, done.out + done.err
        found.kubeconfig()  # it points where nobody listens any more
    for id_ in IDS:
        shorten(registry, id_)
    assert [registry.status("RATING", id_) for id_ in IDS] == ["UP", "UP"]
    yield found
    for id_ in IDS:
        requests.delete(f"{eureka.url}/apps/RATING/{id_}", timeout=30)


def shorten(registry: Registry, id_: str) -> None:
    """The same instance with a lease that this test can outlast: `run` gives none so short."""
    found = registry.instance("RATING", id_)
    assert found is not None
    body = {**found, "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": LEASE}}
    del body["lastDirtyTimestamp"]
    requests.post(f"{registry.url}/apps/RATING", json={"instance": body}, timeout=30).raise_for_status()


def register(registry: Registry, app: str, id_: str, *, duration: int, owner: str) -> dict[str, Any]:
    """An instance of another owner, with a lease of its own; gives what stands."""
    body = {
        "instanceId": id_,
        "hostName": "192.0.2.7",
        "ipAddr": "192.0.2.7",
        "app": app,
        "vipAddress": app.lower(),
        "status": "UP",
        "port": {"$": 8080, "@enabled": "true"},
        "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": duration},
        "dataCenterInfo": {"@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo", "name": "MyOwn"},
        "metadata": {"eurekube.owner": owner, "eurekube.cluster": "elsewhere", "eurekube.syncer": "a/b"},
    }
    requests.post(f"{registry.url}/apps/{app}", json={"instance": body}, timeout=30).raise_for_status()
    found = registry.instance(app, id_)
    assert found is not None
    return found


def renewed_until_it_does(process: subprocess.Popen[str], registry: Registry) -> None:
    """Keeps the leases until a keepalive has told of its first pass: on a busy machine a process takes its time to
    begin, and what has lapsed by then nobody can renew."""
    assert process.stdout is not None
    told = [process.stdout]

    def begun() -> bool:
        for id_ in IDS:
            requests.put(f"{registry.url}/apps/RATING/{id_}", timeout=30).raise_for_status()
        return bool(select.select(told, [], [], LEASE / 8)[0])

    wait_until(begun, "no keepalive has begun")


def test_leases_outlive_cluster_and_operator(program: Program, registry: Registry) -> None:
    """For longer than even a renewed lease lasts ours are UP; a stranger's lease has lapsed, another's was never
    renewed."""
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
    wait_until(lambda: registry.status("BILLING", "other:billing:2") is None, "this server evicts nobody")
    assert registry.instance("BILLING", "other:billing:1") == stranger
    wait_until(lambda: registry.status("RATING", IDS[0]) is None, "ours outlive keepalive")
