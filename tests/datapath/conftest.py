"""The way of a call from a pod to the data centre, one for the session."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from eurekube_sync.manifests.crd import load_crds
from tests.datapath.imported import IMPORTS, ImportedService
from tests.datapath.instances import clear
from tests.integration.conftest import CRD_PATH, install_crd, remove_syncers
from tests.integration.program import CountingProxy, Program
from tests.servers.caller import PodCaller
from tests.servers.data_path import NAMESPACE, DataPath
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.plugin import pytest_configure
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

__all__ = ["pytest_configure"]


@pytest.fixture(scope="session")
def data_path(kubernetes_servers: KubernetesServers) -> Iterator[DataPath]:
    """A node, a pod and a data centre, each with its network, and what leads calls between them. A
    machine that does not allow them fails the test, with the reason."""
    with DataPath(kubernetes_servers) as path:
        yield path


@pytest.fixture
def review(data_path: DataPath, kubernetes_world: KubernetesWorld) -> Iterator[ImportedService]:
    """The Service `review` of the pod's namespace, which is not made yet, and its slices. They are
    removed at the end."""
    service = ImportedService(world=kubernetes_world, namespace=NAMESPACE, name="review")
    yield service
    service.remove()


@pytest.fixture
def eureka(eureka_fast: EurekaServer) -> EurekaServer:
    """A real Eureka server without instances."""
    clear(eureka_fast)
    return eureka_fast


@pytest.fixture
def caller(data_path: DataPath, review: ImportedService) -> Iterator[PodCaller]:
    """A caller of `review` in the pod, who calls all the time."""
    with PodCaller(data_path.pod, review.name) as caller:
        yield caller


@pytest.fixture
def crds(kubernetes_world: KubernetesWorld) -> Iterator[None]:
    """The established CRDs without syncers and imports, which are removed afterwards."""
    install_crd(kubernetes_world)
    for definition in load_crds():
        with contextlib.suppress(requests.HTTPError):
            kubernetes_world.request("POST", CRD_PATH, dict(definition))

    def served() -> bool:
        with contextlib.suppress(requests.HTTPError):
            kubernetes_world.request("GET", IMPORTS)
            return True
        return False

    wait_until(served, "the CRD of imports was not established")
    yield
    remove_syncers(kubernetes_world)
    for item in kubernetes_world.request("GET", IMPORTS)["items"]:
        path = f"{IMPORTS}/{item['metadata']['name']}"
        kubernetes_world.request("DELETE", path)
        with contextlib.suppress(requests.HTTPError):  # it had none, and is gone
            kubernetes_world.request("PATCH", path, {"metadata": {"finalizers": None}})


@pytest.fixture
def program(
    kubernetes_servers: KubernetesServers, eureka: EurekaServer, crds: None, tmp_path: Path
) -> Iterator[Program]:
    """The program between the two servers. It may import from the data centre's network."""
    with (
        CountingProxy(kubernetes_servers.url, ca_file=kubernetes_servers.ca_file) as kubernetes,
        CountingProxy(eureka.url.removesuffix("/eureka")) as counted,
    ):
        yield Program(
            kubernetes=kubernetes,
            eureka=counted,
            token=kubernetes_servers.admin_token,
            folder=tmp_path,
            owner="data-path",
            options=("--registry-cache=3s", "--import-networks=10.9.0.0/16"),
        )
