"""The image: built by the Dockerfile, and run as Kubernetes runs it."""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from eurekube_sync import __version__
from eurekube_sync.controller.exit_codes import ExitCode
from tests.docs.test_documentation import blocks, section
from tests.image.containers import BASE, IMAGE, ROOT, Containers, install_tools
from tests.integration.conftest import install_crd, remove_syncers
from tests.integration.hand_made import make_app, make_namespace, make_syncer
from tests.integration.program import Registry
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.process import temporary_directory
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
PAGE = (ROOT / "docs" / "install.md").read_text()
MEGABYTE = 1_000_000
START = """import resource, kubernetes, eurekube_sync.cli.command_line, eurekube_sync.cli.commands.run
used = resource.getrusage(resource.RUSAGE_SELF)
print(round(used.ru_utime + used.ru_stime, 1))"""
"""Prints the processor's seconds until all is imported."""
TMP = "--mount=type=tmpfs,destination=/tmp"


@pytest.fixture(scope="module")
def containers() -> Iterator[Containers]:
    """The image, built and pushed as docs/install.md says."""
    install_tools()
    folder = temporary_directory("containers")
    containers = Containers(folder=folder)
    containers.build_base()
    containers.follow("\n".join(blocks(section(PAGE, "Build the image"), "sh")))
    yield containers
    containers.call("buildah", "rmi", "--all", "--force")
    shutil.rmtree(folder, ignore_errors=True)


def test_it_was_pushed(containers: Containers) -> None:
    """As one image with its manifest."""
    assert (containers.pushed / "manifest.json").is_file()


def test_the_image_prints_its_version(containers: Containers) -> None:
    """Without a home folder, a network, or anything that it may write."""
    done = containers.run("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert __version__ in done.stdout


def test_the_image_starts_without_a_shell_as_an_unprivileged_user(containers: Containers) -> None:
    """The program itself is the first process, as a user that no file belongs to."""
    (described,) = json.loads(containers.call("podman", "image", "inspect", IMAGE))
    settings = described["Config"]
    assert (settings["User"], settings["Entrypoint"], settings.get("Cmd")) == (
        "65532:65532",
        ["eurekube-sync"],
        None,
    )


def test_the_image_says_what_it_is(containers: Containers) -> None:
    """As registries show it. A release adds its source, revision and version."""
    (described,) = json.loads(containers.call("podman", "image", "inspect", IMAGE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((ROOT / "cronjob" / "chart" / "Chart.yaml").read_text())
    labels = described["Config"]["Labels"]
    of_the_image = {
        name.removeprefix("org.opencontainers.image."): value
        for name, value in labels.items()
        if name.startswith("org.opencontainers.image.")
    }
    assert of_the_image == {
        "title": project["name"],
        "description": chart["description"],
        "licenses": project["license"],
    }


def test_the_demo_runs(containers: Containers) -> None:
    """With a /tmp for its kubeconfig."""
    done = containers.run("demo", options=("--network=none", TMP))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "2 registered" in done.stdout


def test_the_demo_without_a_folder_names_the_folder(containers: Containers) -> None:
    """In one sentence, which speaks of no port."""
    done = containers.run("demo")
    assert done.returncode == ExitCode.CONFIGURATION
    assert done.stderr.startswith(
        "Error: the demo could not start (No usable temporary directory found in"
    )
    assert "port" not in done.stderr


def test_a_pass_with_the_token_of_a_pod(
    containers: Containers,
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    eureka_fast: EurekaServer,
    tmp_path: Path,
) -> None:
    """Between the real servers, with nothing writable: it finds its account where Kubernetes puts
    it."""
    world, namespace = kubernetes_world, "image"
    install_crd(world)
    make_namespace(world, namespace)
    make_app(world, namespace, "boxed", ["10.31.0.1"])
    make_syncer(world, namespace, "boxed", "boxed")
    files = {
        "token": kubernetes_servers.admin_token,
        "ca.crt": kubernetes_servers.ca_file.read_text(),
        "namespace": namespace,
    }
    account = tmp_path / "account"
    account.mkdir()
    for name, text in files.items():
        (account / name).write_text(text)
    server = urlsplit(kubernetes_servers.url)
    variables = {
        "KUBERNETES_SERVICE_HOST": server.hostname,
        "KUBERNETES_SERVICE_PORT": server.port,
        "EUREKUBE_SYNC_OWNER": "image",
        "EUREKUBE_SYNC_EUREKA_URL": eureka_fast.url,
    }
    given = [part for name, value in variables.items() for part in ("--env", f"{name}={value}")]
    try:
        done = containers.run(
            "run", options=("--network=host", "-v", f"{account}:{ACCOUNT}:ro", *given)
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert (
            Registry(url=eureka_fast.url).status("BOXED", "image:image:boxed:10.31.0.1:8080")
            == "UP"
        )
    finally:
        remove_syncers(world)


def test_it_is_small_and_starts_at_once(
    containers: Containers, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prints its size and what a start costs, for the docs. The bounds tell only of what was
    forgotten: compiled files, or the client's half that is never imported."""
    sizes = {}
    for image in (BASE, IMAGE):
        (described,) = json.loads(containers.call("podman", "image", "inspect", image))
        sizes[image] = described["Size"] / MEGABYTE
    own = sizes[IMAGE] - sizes[BASE]
    done = containers.run(
        "-v", "-c", START, options=("--entrypoint=/opt/eurekube-sync/bin/python", "--network=none")
    )
    assert done.returncode == 0, done.stderr
    compiled = [
        line for line in done.stderr.splitlines() if line.startswith("# code object from '")
    ]
    assert [line for line in compiled if ".pyc'" not in line] == []
    with capsys.disabled():
        sys.stdout.write(
            f"\nimage: {own:.0f} MB on a base of {sizes[BASE]:.0f} MB; a start takes "
            f"{done.stdout.strip()} s\n"
        )
    assert own < 140
