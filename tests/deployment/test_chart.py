"""What Helm does to what is there: an installation over a CRD, upgrades, and the end, in any
order."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from tests.deployment.conftest import Helm, remove_namespace, restricted_namespace
from tests.deployment.rendered import CHART, IMAGE, NAME, NAMESPACE, ROOT
from tests.integration.conftest import CRD_NAME, CRD_PATH, wait_for_crd
from tests.integration.hand_made import (
    make_app,
    make_namespace,
    make_syncer,
    remove_app,
    syncers_of,
)
from tests.integration.program import CountingProxy, Program, Registry
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers
VALUES = (
    "--set",
    "owner=chart",
    "--set",
    "eurekaUrl=http://eureka.example.com:8761/eureka",
    "--set",
    f"image.repository={IMAGE}",
)
WHERE = ("--namespace", NAMESPACE)
SHOP = "chart"
BINARY = Path(sys.executable).with_name("eurekube-sync")
CLIENT_SIDE = ("apply", "-f", str(ROOT / "crds"))
SERVER_SIDE = ("apply", "--server-side", "-f", str(ROOT / "crds"))


@pytest.fixture
def shop(world: KubernetesWorld, without_crd: None) -> Iterator[None]:
    """A namespace for apps, and one for the installation, where Pod Security is strict."""
    make_namespace(world, SHOP)
    restricted_namespace(world, NAMESPACE)
    yield
    remove_app(world, SHOP, "rating")
    remove_namespace(world, NAMESPACE)


@pytest.fixture
def program(
    cluster: KubernetesServers,
    eureka_fast: EurekaServer,
    registry: Registry,
    shop: None,
    tmp_path: Path,
) -> Iterator[Program]:
    """The program beside the installation, whose pods nobody runs here."""
    with (
        CountingProxy(cluster.url, ca_file=cluster.ca_file) as kubernetes,
        CountingProxy(eureka_fast.url.removesuffix("/eureka")) as counted,
    ):
        yield Program(
            kubernetes=kubernetes,
            eureka=counted,
            token=cluster.admin_token,
            folder=tmp_path,
            owner="chart",
            options=("--registry-cache=3s",),
            registry=registry,
        )


def syncer(world: KubernetesWorld) -> tuple[Any, ...]:
    """What must not change."""
    metadata = world.request("GET", f"{syncers_of(SHOP)}/rating")["metadata"]
    return metadata["uid"], metadata["generation"], metadata["finalizers"]


def test_upgrades_leave_syncers_finalizers_and_instances(
    helms: Helm, program: Program, registry: Registry, world: KubernetesWorld
) -> None:
    """An upgrade, a rollback, and the uninstallation: the CRD stays, and so does all that is of
    it."""
    helms("install", NAME, CHART, *WHERE, *VALUES)
    wait_for_crd(world)
    make_app(world, SHOP, "rating", ["10.35.0.1"])
    make_syncer(world, SHOP, "rating", "rating")
    program.good()
    before = syncer(world)
    assert before[2] == ["eurekube.io/cleanup"]
    helms("upgrade", NAME, CHART, *WHERE, *VALUES, "--set", "mode=daemon")
    deployment = world.request("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}")
    assert deployment["spec"]["replicas"] == 2
    helms("rollback", NAME, "1", *WHERE)
    helms("uninstall", NAME, *WHERE)
    assert syncer(world) == before
    program.good()
    assert program.eureka.methods()["DELETE"] == program.eureka.methods()["POST"] == 0
    assert registry.status("RATING", f"chart:{SHOP}:rating:10.35.0.1:8080") == "UP"


@pytest.mark.parametrize("applied", [CLIENT_SIDE, SERVER_SIDE], ids=["client-side", "server-side"])
def test_it_installs_over_a_crd_that_is_there(
    applied: tuple[str, ...], helms: Helm, cluster: KubernetesServers, shop: None
) -> None:
    """However it came; and the CRD of the next version is applied over it."""
    cluster.kubectl(*applied)
    helms("install", NAME, CHART, *WHERE, *VALUES)
    cluster.kubectl(*SERVER_SIDE, "--force-conflicts")
    helms("uninstall", NAME, *WHERE)


def test_a_purge_is_undone_while_run_goes_on(
    program: Program, registry: Registry, world: KubernetesWorld, helm4: Helm
) -> None:
    """And says so; after the uninstallation, the deletion of the CRD waits for the finalizers until
    the purge."""
    helm4("install", NAME, CHART, *WHERE, *VALUES)
    wait_for_crd(world)
    make_app(world, SHOP, "rating", ["10.35.0.1"])
    make_syncer(world, SHOP, "rating", "rating")
    program.good()
    id_ = f"chart:{SHOP}:rating:10.35.0.1:8080"
    registry.list_follows("RATING", [id_])
    assert "`run`" in purged(program)
    assert registry.status("RATING", id_) is None
    registry.list_follows("RATING", [id_])
    program.good()
    assert registry.status("RATING", id_) == "UP"

    registry.list_follows("RATING", [id_])
    world.request("DELETE", f"{CRD_PATH}/{CRD_NAME}")
    done = program.run()
    assert done.returncode == ExitCode.KUBERNETES_UNREAD, done.stdout
    assert registry.status("RATING", id_) == "UP"
    helm4("uninstall", NAME, *WHERE)
    assert syncer(world)[2] == ["eurekube.io/cleanup"]
    purged(program)
    assert registry.status("RATING", id_) is None


def purged(program: Program) -> str:
    """What `purge` says."""
    variables = {
        "KUBECONFIG": str(program.folder / "kubeconfig"),
        "EUREKUBE_SYNC_EUREKA_URL": f"{program.eureka.url}/eureka",
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run(
        [BINARY, "purge", "--owner", program.owner, "--yes"],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_an_app_brings_its_syncer(
    helms: Helm, shop: None, cluster: KubernetesServers, world: KubernetesWorld
) -> None:
    """The example's chart: what it renders is valid offline and to the API server, and goes with
    the release."""
    cluster.kubectl(*SERVER_SIDE)
    wait_for_crd(world)
    chart = ROOT / "docs" / "app-chart"
    rendered = helms("template", "payment", chart, "--set", "eureka.limit=0")
    done = subprocess.run(
        [BINARY, "validate", "-"], input=rendered, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    helms("install", "payment", chart, "--namespace", SHOP, "--set", "eureka.limit=0")
    made = world.request("GET", f"{syncers_of(SHOP)}/payment")
    assert made["spec"] == {"mode": "pod", "selector": {"app": "payment"}, "limit": 0}
    helms("uninstall", "payment", "--namespace", SHOP)
    assert world.request("GET", syncers_of(SHOP))["items"] == []
    assert "EurekaSyncer" not in helms("template", "payment", chart, "--set", "eureka=null")
