"""A dry run on a laptop plans what the installation would: its settings are read back from what the
chart and the kustomization made on a real API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.desired.scope import ALLOWED_APPS, ALLOWED_HOSTS
from tests.deployment.conftest import remove_namespace, restricted_namespace
from tests.deployment.rendered import (
    FORMS,
    Form,
    Json,
    documents,
    of_kind,
    output,
    pod_template,
    workload,
)
from tests.integration.hand_made import make_app, make_namespace, make_syncer, remove_app
from tests.integration.program import Registry
from tests.servers.eureka import EurekaServer
from tests.servers.go_builds import kubernetes
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld, write_kubeconfig

pytestmark = pytest.mark.servers
BINARY = Path(sys.executable).with_name("eurekube-sync")
APPS = ("shop", "stall")
GRANTS = {ALLOWED_APPS: "shop", ALLOWED_HOSTS: "10.34.0.0/16"}


@pytest.fixture
def apps(world: KubernetesWorld, with_crd: None) -> Iterator[None]:
    """Two apps with a syncer each; only one namespace has a grant."""
    for number, app in enumerate(APPS):
        make_namespace(world, app)
        make_app(world, app, app, [f"10.34.{number}.1"])
        make_syncer(world, app, app, app)
    world.request("PATCH", "/api/v1/namespaces/shop", {"metadata": {"annotations": GRANTS}})
    yield
    for app in APPS:
        remove_app(world, app, app)
        remove_namespace(world, app)


def on_laptop(
    kubeconfig: Path, *words: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the program with a kubeconfig, and no other variables of ours than these."""
    kept = {name: value for name, value in os.environ.items() if "EUREKUBE_SYNC" not in name}
    return subprocess.run(
        [BINARY, *words],
        env={**kept, "KUBECONFIG": str(kubeconfig), **(variables or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def plan_of(done: subprocess.CompletedProcess[str]) -> Any:
    """What the pass would do, and what it says of each syncer."""
    assert done.returncode == ExitCode.OK, done.stdout + done.stderr
    report = json.loads(done.stdout)
    return report["owner"], report["actions"], report["syncers"]


def in_its_pod(kubeconfig: Path, found: list[Json]) -> subprocess.CompletedProcess[str]:
    """Run the program as its pod would, but as a dry run: the variables of its ConfigMap, and its
    arguments."""
    container = pod_template(workload(found))["spec"]["containers"][0]
    name = container["envFrom"][0]["configMapRef"]["name"]
    (settings,) = [each for each in of_kind(found, "ConfigMap") if each["metadata"]["name"] == name]
    arguments = [word for word in container["args"] if not word.startswith(("--daemon", "--list"))]
    words = (*arguments, "--passes=1", "--dry-run", "--installation=off", "-o", "json")
    return on_laptop(kubeconfig, *words, variables=settings["data"])


@pytest.mark.parametrize("tool", ["kustomize", "helm"])
@pytest.mark.parametrize("name", ["cronjob", "daemon", "namespaced"])
def test_a_dry_run_on_a_laptop_is_the_installations(
    name: str,
    tool: str,
    cluster: KubernetesServers,
    world: KubernetesWorld,
    apps: None,
    registry: Registry,
    eureka_fast: EurekaServer,
) -> None:
    """Grants included: without its settings the plan promises an instance that it refuses. The
    lines on stderr and the data name it."""
    form: Form = replace(FORMS[name], owner="laptop", eureka_url=eureka_fast.url)
    text = form.kustomized if tool == "kustomize" else form.templated()
    restricted_namespace(world, form.namespace)
    kubectl = (kubernetes() / "kubectl", f"--kubeconfig={cluster.kubeconfig}")
    output(*kubectl, "apply", "--server-side", "-f", "-", stdin=text)
    try:
        laptop = on_laptop(cluster.kubeconfig, "run", "--dry-run", "-o", "json")
        assert plan_of(laptop) == plan_of(in_its_pod(cluster.kubeconfig, documents(text)))
        ref, kind = f"{form.namespace}/eurekube-sync", workload(documents(text))["kind"]
        assert f"settings of the installation {ref} ({kind})" in laptop.stderr
        installation = json.loads(laptop.stdout)["installation"]
        assert (installation["name"], installation["kind"]) == ("eurekube-sync", kind)
        registered = [action["app"] for action in plan_of(laptop)[1]]
        assert registered == ["SHOP"]

        by_hand = ("--owner=laptop", f"--eureka-url={eureka_fast.url}", "--installation=off")
        without = on_laptop(cluster.kubeconfig, "run", "--dry-run", "-o", "json", *by_hand)
        assert len(plan_of(without)[1]) == 2

        status = on_laptop(cluster.kubeconfig, "status", "-a", "-o", "json")
        assert json.loads(status.stdout)["installation"]["namespace"] == form.namespace
        explained = on_laptop(cluster.kubeconfig, "explain", "shop/shop")
        assert f"settings of the installation {ref}" in explained.stderr
        assert "SHOP" in explained.stdout
    finally:
        output(*kubectl, "delete", "--ignore-not-found", "-f", "-", stdin=text)
        if form.namespace not in APPS:
            remove_namespace(world, form.namespace)


def test_without_the_right_to_read_it_the_sentence_says_so(
    cluster: KubernetesServers,
    world: KubernetesWorld,
    apps: None,
    registry: Registry,
    eureka_fast: EurekaServer,
    tmp_path: Path,
) -> None:
    """In the API server's words. With the owner and Eureka's URL given, the dry run goes on as far
    as the rights allow."""
    kubeconfig = write_kubeconfig(
        tmp_path / "config",
        url=cluster.url,
        token=world.mint_token("shop", "default"),
        ca_file=cluster.ca_file,
    )
    refused = on_laptop(kubeconfig, "run", "--dry-run")
    assert refused.returncode == ExitCode.USAGE
    assert "Missing options '--owner' and '--eureka-url': the installation could not be looked" in (
        refused.stderr
    )
    assert 'cannot list resource "deployments"' in refused.stderr
    by_hand = ("--owner=laptop", f"--eureka-url={eureka_fast.url}")
    done = on_laptop(kubeconfig, "run", "--dry-run", *by_hand)
    assert "the installation could not be looked for" in done.stderr
    assert done.returncode == ExitCode.KUBERNETES_DENIED
