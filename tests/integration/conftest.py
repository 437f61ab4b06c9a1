"""The program on real servers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from eurekube_sync.manifests.crd import load_crd
from tests.integration.program import CountingProxy, Program, Registry
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.plugin import pytest_configure
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

__all__ = ["pytest_configure"]

CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD_NAME = "eurekasyncers.eurekube.io"


LONGEST = ("test_short_soak.py", "test_quiet_list.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the longest files, so that no worker waits long for another at the end. Their
    names on the command line would not do this if their folder is named as well."""
    items.sort(
        key=lambda item: (
            LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST)
        )
    )


@pytest.fixture
def crd(kubernetes_world: KubernetesWorld) -> Iterator[None]:
    """The established CRD without syncers. Afterwards they are removed, with or without
    finalizers."""
    install_crd(kubernetes_world)
    yield
    remove_syncers(kubernetes_world)


def install_crd(world: KubernetesWorld) -> None:
    """Install the CRD, if it is missing, without a syncer. It stays from test to test, because the
    API server takes 5 s to delete it."""
    with contextlib.suppress(requests.HTTPError):
        world.request("POST", CRD_PATH, dict(load_crd()))
    wait_for_crd(world)
    remove_syncers(world)


def create_crd(world: KubernetesWorld) -> None:
    """Create the CRD again, and wait until its objects can be listed."""
    remove_crd(world)
    world.request("POST", CRD_PATH, dict(load_crd()))
    wait_for_crd(world)


def wait_for_crd(world: KubernetesWorld) -> None:
    """Wait until its objects can be listed."""

    def served() -> bool:
        with contextlib.suppress(requests.HTTPError):
            world.request("GET", "/apis/eurekube.io/v1/eurekasyncers")
            return True
        return False

    wait_until(served, "the CRD was not established")


def remove_crd(world: KubernetesWorld) -> None:
    """Delete the CRD and every syncer, and wait until they are gone."""
    with contextlib.suppress(requests.HTTPError):
        world.request("DELETE", f"{CRD_PATH}/{CRD_NAME}")

    def gone() -> bool:
        try:
            world.request("GET", f"{CRD_PATH}/{CRD_NAME}")
            strip_finalizers(world)
        except requests.HTTPError as error:
            return error.response is not None and error.response.status_code == 404
        return False

    wait_until(gone, "the CRD did not go")


def remove_syncers(world: KubernetesWorld) -> None:
    """Delete every syncer, and wait until they are gone."""

    def gone() -> bool:
        items = world.request("GET", "/apis/eurekube.io/v1/eurekasyncers")["items"]
        for meta in (item["metadata"] for item in items):
            path = (
                f"/apis/eurekube.io/v1/namespaces/{meta['namespace']}/eurekasyncers/{meta['name']}"
            )
            with contextlib.suppress(requests.HTTPError):
                world.request("DELETE", path)
        strip_finalizers(world)
        return not items

    wait_until(gone, "the syncers did not go")


def strip_finalizers(world: KubernetesWorld) -> None:
    """Remove every finalizer of every syncer, as a person in a hurry does."""
    for item in world.request("GET", "/apis/eurekube.io/v1/eurekasyncers")["items"]:
        meta = item["metadata"]
        with contextlib.suppress(requests.HTTPError):
            world.request(
                "PATCH",
                f"/apis/eurekube.io/v1/namespaces/{meta['namespace']}/eurekasyncers/{meta['name']}",
                {"metadata": {"finalizers": None}},
            )


@pytest.fixture
def eureka(request: pytest.FixtureRequest) -> EurekaServer:
    """A real Eureka server. It is a fast one, unless the test asks for another by indirect
    parametrisation."""
    server = request.getfixturevalue(getattr(request, "param", "eureka_fast"))
    assert isinstance(server, EurekaServer)
    return server


@pytest.fixture(autouse=True)
def nothing_of_other_owners(request: pytest.FixtureRequest) -> None:
    """Remove what an earlier test left in the Eureka servers of this one."""
    servers = [
        request.getfixturevalue(name)
        for name in ("eureka", "eureka_peers")
        if name in request.fixturenames
    ]
    for server in (each for one in servers for each in (one if isinstance(one, tuple) else (one,))):
        Registry(url=server.url).clear(server.session())


@pytest.fixture
def registry(eureka: EurekaServer) -> Registry:
    """A reader of the Eureka server."""
    return Registry(url=eureka.url)


@pytest.fixture
def program(
    kubernetes_servers: KubernetesServers,
    eureka: EurekaServer,
    crd: None,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Program]:
    """The program as the cluster's administrator, with the test's own owner name."""
    fast = getattr(request, "param", None) is None and "eureka_stock" not in request.fixturenames
    with (
        CountingProxy(kubernetes_servers.url, ca_file=kubernetes_servers.ca_file) as kubernetes,
        CountingProxy(eureka.root) as counted,
    ):
        yield Program(
            kubernetes=kubernetes,
            eureka=counted,
            eureka_path=eureka.path,
            token=kubernetes_servers.admin_token,
            folder=tmp_path,
            owner=f"t{abs(hash(request.node.nodeid)) % 10**8}",
            options=("--registry-cache=3s",) if fast else (),
            registry=Registry(url=eureka.url) if eureka.basic_auth is None else None,
        )
