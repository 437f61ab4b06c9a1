"""The table of fields with a real API server, the real controllers of slices and Endpoints, and a
real Eureka. `tests/cases/fields.yaml` is the table."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import ClientConnection, ConnectionSettings
from eurekube_sync.plan.ours import differences
from tests.cases.fields import (
    Row,
    create,
    differences_from,
    field_rows,
    instances_of,
    look,
    remove,
)
from tests.integration.conftest import install_crd, remove_syncers
from tests.integration.gateways import installed_gateway_api
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld, write_kubeconfig

pytestmark = pytest.mark.servers

ROWS = field_rows()
SECONDS = 300.0


@pytest.fixture(scope="module")
def installed(kubernetes_world: KubernetesWorld) -> Iterator[KubernetesWorld]:
    """The cluster with the CRD, and without the nodes of other files, whose addresses would count
    in the rows."""
    install_crd(kubernetes_world)
    for node in kubernetes_world.request("GET", "/api/v1/nodes")["items"]:
        kubernetes_world.request("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")
    with installed_gateway_api(kubernetes_world):
        yield kubernetes_world
    remove_syncers(kubernetes_world)


@pytest.fixture(scope="module")
def kubeconfig(
    kubernetes_servers: KubernetesServers, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The administrator's kubeconfig."""
    path = tmp_path_factory.mktemp("fields") / "kubeconfig"
    servers = kubernetes_servers
    write_kubeconfig(
        path, url=servers.url, token=servers.admin_token, ca_file=Path(servers.ca_file)
    )
    return str(path)


@pytest.mark.parametrize(
    ("number", "row"), list(enumerate(ROWS)), ids=lambda value: getattr(value, "title", "")
)
def test_a_field_does_what_its_row_says(
    number: int, row: Row, installed: KubernetesWorld, kubeconfig: str, eureka_fast: EurekaServer
) -> None:
    """The row has objects and the resulting instances, once the controllers are done. Eureka
    returns each instance as it was sent."""
    namespace = f"fields-{number}"
    clock = SystemClock()

    def send(method: str, path: str, body: Any) -> Any:
        return installed.request(method, path, body)

    installed.create_namespace(namespace)
    try:
        create(row, send, namespace)
        connection = ClientConnection(ConnectionSettings(kubeconfig=kubeconfig), {})
        cluster = KubernetesCluster(connection, clock=clock, random=random.Random(1))
        deadline = time.monotonic() + SECONDS
        while faults := differences_from(row, desired := look(cluster, namespace, row), namespace):
            assert time.monotonic() < deadline, faults
            time.sleep(0.1)
    finally:
        remove(row, send, namespace)
    options = ConnectionOptions(address=EurekaAddress(url=eureka_fast.url))
    with EurekaClient(options, clock=clock, random=random.Random(1)) as registry:
        for instance in instances_of(desired):
            registry.register(instance, dirty_timestamp=int(clock.now() * 1000))
            stored = registry.read_instance(instance.key)
            assert stored is not None
            assert differences(instance, stored) == ()
            registry.cancel(instance.key, ours=lambda found: True)
