"""The program on real servers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from eurekube_sync.manifests import load_crd
from tests.integration.program import CountingProxy, Program, Registry
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld

CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD_NAME = "eurekasyncers.eurekube.io"


@pytest.fixture
def crd(kubernetes_world: KubernetesWorld) -> Iterator[None]:
    """The CRD, established; afterwards it is deleted with all that is left, finalizers or not."""
    create_crd(kubernetes_world)
    yield
    remove_crd(kubernetes_world)


def create_crd(world: KubernetesWorld) -> None:
    """Creates the CRD anew, whatever another suite left, and waits until its objects can be listed."""
    remove_crd(world)
    world.request("POST", CRD_PATH, dict(load_crd()))
    deadline = time.monotonic() + 20
    while True:
        with contextlib.suppress(requests.HTTPError):
            world.request("GET", "/apis/eurekube.io/v1/eurekasyncers")
            return
        assert time.monotonic() < deadline, "the CRD was not established"
        time.sleep(0.1)


def remove_crd(world: KubernetesWorld) -> None:
    """Deletes the CRD and every syncer, and waits until it is gone."""
    with contextlib.suppress(requests.HTTPError):
        world.request("DELETE", f"{CRD_PATH}/{CRD_NAME}")
    deadline = time.monotonic() + 30
    while True:
        try:
            world.request("GET", f"{CRD_PATH}/{CRD_NAME}")
            strip_finalizers(world)
        except requests.HTTPError as error:
            if error.response is not None and error.response.status_code == 404:
                return
        assert time.monotonic() < deadline, "the CRD did not go"
        time.sleep(0.1)


def strip_finalizers(world: KubernetesWorld) -> None:
    """Takes every finalizer off every syncer, as a person in a hurry does."""
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
    """A real Eureka server: fast, unless the test asks for another by indirect parametrisation."""
    server = request.getfixturevalue(getattr(request, "param", "eureka_fast"))
    assert isinstance(server, EurekaServer)
    return server


@pytest.fixture
def registry(eureka: EurekaServer) -> Registry:
    """What stands in it."""
    return Registry(url=eureka.url)


@pytest.fixture
def program(
    kubernetes_servers: KubernetesServers,
    eureka: EurekaServer,
    crd: None,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Program]:
    """The program as the cluster's administrator, under an owner name of the test's own."""
    fast = getattr(request, "param", None) is None and "eureka_stock" not in request.fixturenames
    with (
        CountingProxy(kubernetes_servers.url, ca_file=kubernetes_servers.ca_file) as kubernetes,
        CountingProxy(eureka.url.removesuffix("/eureka")) as counted,
    ):
        yield Program(
            kubernetes=kubernetes,
            eureka=counted,
            token=kubernetes_servers.admin_token,
            folder=tmp_path,
            owner=f"t{abs(hash(request.node.nodeid)) % 10**8}",
            options=("--registry-cache=3s",) if fast else (),
        )
