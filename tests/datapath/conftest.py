"""The way of a call from a pod to the data centre, one for the session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.datapath.imported import ImportedService
from tests.datapath.instances import clear
from tests.integration.conftest import install_crd, remove_syncers
from tests.servers.caller import PodCaller
from tests.servers.data_path import NAMESPACE, DataPath
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.plugin import pytest_configure
from tests.servers.world import KubernetesWorld

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
def crd(kubernetes_world: KubernetesWorld) -> Iterator[None]:
    """The established CRD without syncers, which are removed afterwards."""
    install_crd(kubernetes_world)
    yield
    remove_syncers(kubernetes_world)
