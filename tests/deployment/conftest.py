"""A real Kubernetes API whose pods get tokens of their service accounts, and Helm for it."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from tests.deployment.rendered import Json
from tests.integration.conftest import install_crd, remove_crd, remove_syncers
from tests.integration.hand_made import make_namespace
from tests.integration.program import Registry
from tests.servers.eureka import EurekaServer
from tests.servers.go_builds import helm
from tests.servers.kube import KubernetesServers
from tests.servers.kubelet import Kubelet
from tests.servers.plugin import pytest_configure
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

__all__ = ["pytest_configure"]

RESTRICTED = {
    f"pod-security.kubernetes.io/{mode}{part}": value
    for mode in ("enforce", "warn")
    for part, value in (("", "restricted"), ("-version", "latest"))
}


@dataclass(frozen=True, kw_only=True)
class Helm:
    """The helm command of one major version, with folders of its own."""

    major: int
    servers: KubernetesServers
    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        """What it needs to know."""
        folders = {
            f"HELM_{kind}_HOME": str(self.folder / kind.lower())
            for kind in ("CACHE", "CONFIG", "DATA")
        }
        return {**os.environ, **folders, "KUBECONFIG": str(self.servers.kubeconfig)}

    def run(
        self, *arguments: str | Path, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """One command; never raises on an exit code."""
        command = [helm(self.major), *arguments]
        return subprocess.run(
            command,
            input=stdin,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def __call__(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """What a command prints. AssertionError when it fails."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="session")
def cluster() -> Iterator[KubernetesServers]:
    """The servers."""
    with KubernetesServers(service_accounts=True) as servers:
        yield servers


@pytest.fixture(scope="session")
def world(cluster: KubernetesServers) -> KubernetesWorld:
    """The administrator's hands in it."""
    return hands(cluster)


def hands(cluster: KubernetesServers) -> KubernetesWorld:
    """Of the administrator; one thread each."""
    return KubernetesWorld(cluster.url, token=cluster.admin_token, ca_file=cluster.ca_file)


@pytest.fixture
def node(cluster: KubernetesServers) -> Iterator[Callable[[str], Kubelet]]:
    """Makes nodes by their names."""
    with ExitStack() as running:
        yield lambda name: running.enter_context(Kubelet(world=hands(cluster), name=name))


@pytest.fixture
def with_crd(world: KubernetesWorld) -> Iterator[None]:
    """The CRD without syncers; afterwards they are gone."""
    install_crd(world)
    yield
    remove_syncers(world)


@pytest.fixture
def without_crd(world: KubernetesWorld) -> Iterator[None]:
    """No CRD, before and afterwards."""
    remove_crd(world)
    yield
    remove_crd(world)


@pytest.fixture
def registry(eureka_fast: EurekaServer) -> Registry:
    """An empty Eureka."""
    found = Registry(url=eureka_fast.url)
    found.clear(eureka_fast.session())
    return found


@pytest.fixture(params=[4, pytest.param(3, marks=pytest.mark.oldest)], ids=["helm4", "helm3"])
def helms(request: pytest.FixtureRequest, cluster: KubernetesServers, tmp_path: Path) -> Helm:
    """Each major version."""
    return Helm(major=request.param, servers=cluster, folder=tmp_path)


@pytest.fixture
def helm4(cluster: KubernetesServers, tmp_path: Path) -> Helm:
    """The newest."""
    return Helm(major=4, servers=cluster, folder=tmp_path)


def restricted_namespace(world: KubernetesWorld, name: str) -> None:
    """A namespace, which may be there, where only pods that Pod Security calls restricted may run.
    Its default account is there."""
    make_namespace(world, name)
    world.request("PATCH", f"/api/v1/namespaces/{name}", {"metadata": {"labels": RESTRICTED}})
    wait_until(lambda: _accounts(world, name) != [], "the namespace has no service account")


def remove_namespace(world: KubernetesWorld, name: str) -> None:
    """With all that is in it, also the pods of a node that died, and wait until it is gone; it may
    be gone already."""
    with contextlib.suppress(requests.HTTPError):
        world.request("DELETE", f"/api/v1/namespaces/{name}")

    def gone() -> bool:
        for pod in world.request("GET", f"/api/v1/namespaces/{name}/pods")["items"]:
            with contextlib.suppress(requests.HTTPError):
                world.delete_pod(name, pod["metadata"]["name"])
        return name not in [
            each["metadata"]["name"] for each in world.request("GET", "/api/v1/namespaces")["items"]
        ]

    wait_until(gone, f"the namespace {name} stays")


def _accounts(world: KubernetesWorld, namespace: str) -> list[Json]:
    found: list[Json] = world.request("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts")[
        "items"
    ]
    return found
