"""docs/install.md from top to bottom: each command runs as it is written, only the example's Eureka
is a real one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from eurekube_sync.desired.scope import ALLOWED_APPS, ALLOWED_HOSTS
from tests.deployment.conftest import Helm, remove_namespace
from tests.deployment.rendered import NAME, NAMESPACE, ROOT, of_kind, shipped
from tests.deployment.rights import PATHS, SERVICE_ACCOUNT
from tests.docs.test_documentation import blocks, section
from tests.integration.hand_made import make_app, make_namespace, remove_app
from tests.integration.program import Registry
from tests.servers.eureka import EurekaServer
from tests.servers.go_builds import helm, kubernetes
from tests.servers.kubelet import Kubelet
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers
PAGE = (ROOT / "docs" / "install.md").read_text()
EXAMPLE_URL = "http://eureka.example.com:8761/eureka"
NEEDED = ("cronjob", "crds", "docs", "eurekube_sync", "pyproject.toml", "README.md", "LICENSE")
SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """A copy of the repository, with the commands of the page at hand."""

    folder: Path
    variables: dict[str, str]
    eureka_url: str

    def follow(self, title: str) -> str:
        """Runs the commands of a section, and gives what they print."""
        script = "\n".join(blocks(section(PAGE, title), "sh")).replace(EXAMPLE_URL, self.eureka_url)
        assert script, title
        # Each section is a shell of its own, in which an earlier one's virtual environment is
        # active.
        lines = f"set -euo pipefail\n[ ! -d .venv ] || . .venv/bin/activate\nset -x\n{script}"
        done = subprocess.run(
            ["bash", "-c", lines],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        assert done.returncode == 0, f"{title}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def checkout(
    helm4: Helm,
    eureka_fast: EurekaServer,
    registry: Registry,
    tmp_path: Path,
    world: KubernetesWorld,
) -> Iterator[Checkout]:
    """With an app of two pods in the cluster."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in NEEDED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in (helm(4), kubernetes() / "kubectl"):
        (programs / program.name).symlink_to(program)
    variables = {
        name: value
        for name, value in helm4.variables.items()
        if not name.startswith("EUREKUBE_SYNC_")
    }
    variables["PATH"] = f"{programs}{os.pathsep}{variables['PATH']}"
    make_namespace(world, "rating")
    # The slice is made by hand; the page grants the app.
    hosts = {"metadata": {"annotations": {ALLOWED_HOSTS: "10.34.0.0/16", ALLOWED_APPS: None}}}
    world.request("PATCH", "/api/v1/namespaces/rating", hosts)
    make_app(world, "rating", "rating", ["10.34.0.1", "10.34.0.2"])
    yield Checkout(folder=folder, variables=variables, eureka_url=eureka_fast.url)
    helm4(
        "uninstall", NAME, "--namespace", NAMESPACE, "--ignore-not-found"
    )  # where the page failed before
    remove_app(world, "rating", "rating")
    remove_namespace(world, NAMESPACE)
    remove_cluster_rights(world)


def remove_cluster_rights(world: KubernetesWorld) -> None:
    """Those of kustomize, which go with no namespace: other tests of this cluster grant theirs."""
    rights = of_kind(shipped(), "ClusterRole", "ClusterRoleBinding")
    for document in rights:
        path = f"{PATHS[document['kind']]}/{document['metadata']['name']}"
        with suppress(requests.HTTPError):  # the page failed before
            world.request("DELETE", path)
    world.wait_for_rules(SERVICE_ACCOUNT, rights, granted=False)


def test_the_page_leads_to_a_synced_app_and_back(
    checkout: Checkout, without_crd: None, node: Callable[[str], Kubelet], registry: Registry
) -> None:
    """Dry run, chart, syncer, other settings, upgrade, uninstall; then the same with kustomize."""
    node("page")
    ids = [f"my-cluster:rating:rating:10.34.0.{last}:8080" for last in (1, 2)]
    assert "dry run: nothing to change" in checkout.follow("Look first")
    assert "no EurekaSyncer in scope" in checkout.follow("Install the chart")
    printed = checkout.follow("Register an app")
    assert "2/2" in printed
    assert all(id_ in printed for id_ in ids)
    checkout.follow("Other forms")
    assert "valid: 1 syncer" in checkout.follow("An app's own chart")
    checkout.follow("Upgrade")
    assert [registry.status("RATING", id_) for id_ in ids] == ["UP", "UP"]
    checkout.follow("Uninstall")
    assert [registry.status("RATING", id_) for id_ in ids] == [None, None]

    (checkout.folder / "my-cluster").mkdir()
    (kustomization,) = blocks(section(PAGE, "With kustomize"), "yaml")
    written = kustomization.replace(EXAMPLE_URL, checkout.eureka_url)
    (checkout.folder / "my-cluster" / "kustomization.yaml").write_text(written)
    checkout.follow("With kustomize")
    assert "2/2" in checkout.follow("Register an app")
    assert [registry.status("RATING", id_) for id_ in ids] == ["UP", "UP"]


def test_the_snippet_of_the_page_is_the_examples_template() -> None:
    """And no section with commands is left out above, or by the image's test."""
    (snippet,) = blocks(PAGE, "gotemplate")
    assert snippet == (ROOT / "docs" / "app-chart" / "templates" / "eurekasyncer.yaml").read_text()
    titles = [part.split("\n", 1)[0] for part in PAGE.split("\n## ")[1:]]
    followed = (ROOT / "tests" / "deployment" / "test_install_page.py").read_text()
    for title in titles:
        if blocks(section(PAGE, title), "sh") and title != "Build the image":
            assert f'follow("{title}")' in followed, title
