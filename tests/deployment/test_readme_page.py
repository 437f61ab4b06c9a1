"""README.md from top to bottom, as a newcomer follows it: each command runs as it is written, with
`demo --serve` as cluster and Eureka. Its app also runs on a real Kubernetes API."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
import yaml

from eurekube_sync.desired.scope import ALLOWED_APPS
from tests.deployment.rendered import ROOT
from tests.docs.test_addresses import REPOSITORY
from tests.docs.test_documentation import blocks, command_lines, section
from tests.integration.conftest import install_crd, remove_syncers
from tests.integration.hand_made import remove_app
from tests.integration.program import CountingProxy, Program, Registry
from tests.servers.eureka import EurekaServer
from tests.servers.go_builds import kubernetes
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers
PAGE = (ROOT / "README.md").read_text()
INSTALL_PAGE = (ROOT / "docs" / "install.md").read_text()
EXAMPLE_URL = "http://eureka.example.com:8761/eureka"
EXPORT = re.compile(r"^export (\w+)=(\S+)$", re.MULTILINE)
SECONDS = 600.0
MINUTES_OF_WORK = frozenset({"keepalive"})
"""Commands that go on until Ctrl-C."""


@dataclass(kw_only=True)
class Newcomer:
    """A shell in an empty folder, later in the clone."""

    folder: Path
    variables: dict[str, str]

    def follow(self, script: str) -> str:
        """Run the lines as they are, and return what they print."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"{script}\npwd > {self._place}"],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        self.folder = Path(self._place.read_text().strip())
        return done.stdout

    @property
    def _place(self) -> Path:
        return Path(self.variables["HOME"]) / "place"


@pytest.fixture
def newcomer(tmp_path: Path) -> Newcomer:
    """With kubectl, and a git that finds the repository's address in this checkout."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(kubernetes() / "kubectl")
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EUREKUBE_SYNC_", "PIP_CONSTRAINT", "GIT_"))
    }
    variables |= {
        "HOME": str(tmp_path),
        "PATH": f"{programs}{os.pathsep}{variables['PATH']}",
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": f"url.file://{ROOT}.insteadOf",
        "GIT_CONFIG_VALUE_0": f"{REPOSITORY}.git",
        "GIT_CONFIG_KEY_1": "safe.directory",
        "GIT_CONFIG_VALUE_1": "*",
    }
    if "PIP_CACHE_DIR" not in variables and "XDG_CACHE_HOME" not in variables:
        variables["PIP_CACHE_DIR"] = str(Path.home() / ".cache" / "pip")
    return Newcomer(folder=tmp_path, variables=variables)


def lines(text: str) -> list[list[str]]:
    """The words of each command of a script."""
    joined = text.replace("\\\n", " ").replace("&&", "\n")
    return [shlex.split(line) for line in joined.splitlines() if line.strip()]


def test_the_page_leads_to_two_registered_pods(newcomer: Newcomer) -> None:
    """The first lines, both servers, the first syncer, and what the page says to look at. The clone
    has what is committed."""
    (first,) = blocks(section(PAGE, "Try it"), "sh")
    assert "demo --serve" in newcomer.follow(first)
    program = newcomer.folder / ".venv" / "bin"
    newcomer.variables["PATH"] = f"{program}{os.pathsep}{newcomer.variables['PATH']}"

    served = subprocess.Popen(
        ["eurekube-sync", "demo", "--serve"],
        env=newcomer.variables,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert served.stdout is not None
        printed = ""
        while "curl" not in printed:
            line = served.stdout.readline()
            assert line, printed
            printed += line
        newcomer.variables |= dict(EXPORT.findall(printed))
        _first_syncer(newcomer)
    finally:
        served.send_signal(signal.SIGTERM)
        served.communicate(timeout=60)


def _first_syncer(newcomer: Newcomer) -> None:
    (applied,) = blocks(section(PAGE, "The first syncer"), "sh")
    newcomer.follow(applied)
    assert "2 registered" in newcomer.follow("eurekube-sync run")
    assert "valid: " in newcomer.follow("eurekube-sync validate docs/examples")

    (seen,) = blocks(section(PAGE, "See that it works"), "sh")
    url = newcomer.variables["EUREKUBE_SYNC_EUREKA_URL"]
    shown = newcomer.follow(seen.replace(EXAMPLE_URL, url))
    assert "1 in sync" in shown
    listed = json.loads(shown[shown.index("{") :])["application"]["instance"]
    registered = {f"{instance['ipAddr']}:{instance['port']['$']}" for instance in listed}
    for address in registered:
        assert f"`{address}`" in section(PAGE, "The first syncer")
    assert len(registered) == 2
    assert "2/2" in newcomer.follow("kubectl get eurekasyncers -A")

    for arguments in command_lines(section(PAGE, "When something is wrong")):
        if arguments[0] not in MINUTES_OF_WORK:
            newcomer.follow(shlex.join(["eurekube-sync", *arguments]))


def test_the_page_installs_as_the_page_of_the_installation() -> None:
    """Whose commands run on real servers; the image's test builds and pushes it."""
    (shown,) = blocks(section(PAGE, "Install it in a cluster"), "sh")
    commands = []
    for title in ("Build the image", "Install the chart"):
        for block in blocks(section(INSTALL_PAGE, title), "sh"):
            commands += lines(block)
    assert [command for command in lines(shown) if command not in commands] == []
    assert len(lines(shown)) == 3


@pytest.fixture
def program(
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    eureka_fast: EurekaServer,
    tmp_path: Path,
) -> Iterator[Program]:
    """The program between real servers, with the CRD."""
    install_crd(kubernetes_world)
    registry = Registry(url=eureka_fast.url)
    registry.clear(eureka_fast.session())
    with (
        CountingProxy(kubernetes_servers.url, ca_file=kubernetes_servers.ca_file) as counted,
        CountingProxy(eureka_fast.url.removesuffix("/eureka")) as eureka,
    ):
        yield Program(
            kubernetes=counted,
            eureka=eureka,
            token=kubernetes_servers.admin_token,
            folder=tmp_path,
            owner="readme",
            options=("--registry-cache=3s", "--require-app-grant"),
            registry=registry,
        )
    remove_syncers(kubernetes_world)


def test_the_app_runs_on_a_real_cluster(
    program: Program, kubernetes_servers: KubernetesServers, kubernetes_world: KubernetesWorld
) -> None:
    """The API server takes each field. Pods of the Deployment's template, made by hand because no
    controller of Deployments runs here, are behind the Service, and the smallest syncer registers
    them."""
    world = kubernetes_world
    (applied,) = blocks(section(PAGE, "The first syncer"), "sh")
    apply_app, annotate, apply_syncer = lines(applied)
    remove_app(world, "rating", "rating")
    kubernetes_servers.kubectl(*apply_app[1:], "--validate=strict")
    kubernetes_servers.kubectl(*annotate[1:], "--overwrite")
    kubernetes_servers.kubectl(*apply_syncer[1:])
    documents = list(yaml.safe_load_all((ROOT / "docs" / "examples" / "app.yaml").read_text()))
    (deployment,) = [document for document in documents if document["kind"] == "Deployment"]
    template = deployment["spec"]["template"]
    with contextlib.suppress(requests.HTTPError):
        world.create_node("readme")
    try:
        for number in range(deployment["spec"]["replicas"]):
            metadata = {**template["metadata"], "name": f"rating-{number}"}
            pod = {"metadata": metadata, "spec": {**template["spec"], "nodeName": "readme"}}
            world.request("POST", "/api/v1/namespaces/rating/pods", pod)
            address = f"10.36.0.{number}"
            status = {
                "phase": "Running",
                "podIP": address,
                "podIPs": [{"ip": address}],
                "conditions": [{"type": "Ready", "status": "True"}],
            }
            world.patch_pod_status("rating", f"rating-{number}", status)
        world.wait_for_slices("rating", "rating", {"10.36.0.0": "Ready", "10.36.0.1": "Ready"})
        assert program.good()["summary"].startswith("2 registered")
        grants = world.request("GET", "/api/v1/namespaces/rating")["metadata"]["annotations"]
        assert grants[ALLOWED_APPS] == "rating"
    finally:
        kubernetes_servers.kubectl("delete", "deployment", "rating", "-n", "rating")
        for number in range(deployment["spec"]["replicas"]):
            world.delete_pod("rating", f"rating-{number}")
        remove_app(world, "rating", "rating")
