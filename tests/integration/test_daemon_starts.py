"""A daemon is started many times between two real Eureka servers, and lives through its first
passes: its first calls are made at once, in several threads.

EUREKUBE_SYNC_TEST_STARTS is the number of starts with batches, and of those without.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.integration.program import CountingProxy, Program, Registry
from tests.integration.test_safety import (
    NAMESPACE,
    create_syncer,
    give_endpoints,
    shop,  # noqa: F401 - a fixture
)
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("crd", "shop")]

STARTS_VARIABLE = "EUREKUBE_SYNC_TEST_STARTS"
STARTS = int(os.environ.get(STARTS_VARIABLE, "10"))
PASSES = 3
"""The first one lists, asks for batches and registers; the next ones renew, and list every peer."""


@pytest.fixture
def program(
    eureka_peers: tuple[EurekaServer, EurekaServer],
    kubernetes_servers: KubernetesServers,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Program]:
    """The program between both peers."""
    first, second = eureka_peers
    with (
        CountingProxy(kubernetes_servers.url, ca_file=kubernetes_servers.ca_file) as kubernetes,
        CountingProxy(first.url) as unused,
    ):
        yield Program(
            kubernetes=kubernetes,
            eureka=unused,
            token=kubernetes_servers.admin_token,
            folder=tmp_path,
            owner=f"t{abs(hash(request.node.nodeid)) % 10**8}",
            options=("--registry-cache=3s", f"--eureka-url={first.url},{second.url}"),
            registry=Registry(url=first.url),
        )


@pytest.mark.parametrize("batch", ["auto", "off"])
def test_every_start_of_a_daemon_lives_through_its_first_passes(
    program: Program, batch: str, kubernetes_world: KubernetesWorld
) -> None:
    """With batches and with single calls, each start makes its passes, and SIGTERM ends it with
    exit code 0. Every fourth start finds nothing registered."""
    addresses = give_endpoints(kubernetes_world, 5)
    create_syncer(kubernetes_world)
    program.batch = batch
    for number in range(STARTS):
        daemon = program.start("--daemon", "--interval=1s", "-o", "json")
        assert daemon.stdout is not None
        try:
            reports = [daemon.stdout.readline() for _ in range(PASSES)]
        finally:
            daemon.terminate()
            rest, errors = daemon.communicate(timeout=60)
        which = f"start {number} of {STARTS}: {reports}{rest}{errors}"
        assert daemon.returncode == 0, which
        assert all(json.loads(report) for report in reports), which
        if number % 4 == 0:
            cancel(program, addresses)


def cancel(program: Program, addresses: list[str]) -> None:
    """Cancel the instances at these addresses, so that the next start registers them."""
    assert program.registry is not None
    for address in addresses:
        id_ = f"{program.owner}:{NAMESPACE}:shop:{address}:8080"
        requests.delete(f"{program.registry.url}/apps/SHOP/{id_}", timeout=30).raise_for_status()
