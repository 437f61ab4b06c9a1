"""The rights of the manifests: what a whole life uses is what they grant, no more; without any one
of them the program names the one that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests
import yaml

from eurekube_sync.desired.scope import ALLOWED_APPS, ALLOWED_HOSTS
from eurekube_sync.embedded.http import Request
from tests.deployment.conftest import hands
from tests.deployment.rendered import CRONJOB, NAMESPACE, Form, documents, shipped
from tests.deployment.rights import Right, granted, lacking, right_for, rights_of
from tests.integration.conftest import remove_syncers
from tests.integration.hand_made import (
    make_app,
    make_namespace,
    make_syncer,
    remove_app,
    slices_of,
    syncers_of,
)
from tests.integration.program import CountingProxy, Program, Registry
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers
SHOP = "rights"
APPS = ("shop", "stall", "late")
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
RIGHTS = rights_of(list(yaml.safe_load_all((CRONJOB / "base" / "rights.yaml").read_text())))


@pytest.fixture
def shop(world: KubernetesWorld, with_crd: None) -> Iterator[None]:
    """A namespace of apps."""
    make_namespace(world, SHOP)
    world.request(
        "PATCH",
        f"/api/v1/namespaces/{SHOP}",
        {"metadata": {"annotations": {ALLOWED_APPS: "*", ALLOWED_HOSTS: "*"}}},
    )
    yield
    remove_syncers(world)
    for app in APPS:
        remove_app(world, SHOP, app)
    for lease in world.request("GET", LEASES)["items"]:
        world.request("DELETE", f"{LEASES}/{lease['metadata']['name']}")
    for event in world.request("GET", f"/api/v1/namespaces/{SHOP}/events")["items"]:
        world.request("DELETE", f"/api/v1/namespaces/{SHOP}/events/{event['metadata']['name']}")


@pytest.fixture
def program(
    cluster: KubernetesServers,
    eureka_fast: EurekaServer,
    registry: Registry,
    shop: None,
    tmp_path: Path,
) -> Iterator[Program]:
    """The program; somebody else changes a syncer a moment before its status is written for the
    first time."""
    other = hands(cluster)
    raced: list[str] = []

    def race(call: Request) -> None:
        if call.method == "PATCH" and call.path.endswith("/shop/status") and not raced:
            raced.append(call.path)
            with suppress(requests.HTTPError):
                other.request(
                    "PATCH",
                    call.path.removesuffix("/status"),
                    {"metadata": {"labels": {"raced": "yes"}}},
                )

    with (
        CountingProxy(cluster.url, ca_file=cluster.ca_file, before=race) as kubernetes,
        CountingProxy(eureka_fast.url.removesuffix("/eureka")) as counted,
    ):
        yield Program(
            kubernetes=kubernetes,
            eureka=counted,
            token="",
            folder=tmp_path,
            owner="rights",
            # As in its pod.
            options=(
                "--registry-cache=3s",
                f"--lock={NAMESPACE}/eurekube-sync-rights",
                "--require-app-grant",
            ),
            registry=registry,
        )


PODS = Right("", "pods", "list")


def life(program: Program, world: KubernetesWorld) -> Iterator[str]:
    """What the program says in each pass from the first registration to the last deletion."""

    def said() -> str:
        done = program.run()
        return done.stdout + done.stderr

    for number, app in enumerate(("shop", "stall")):
        make_app(world, SHOP, app, [])
        pod = {"kind": "Pod", "namespace": SHOP, "name": f"{app}-1", "uid": f"{app}-1"}
        end = {"addresses": [f"10.33.0.{number}"], "conditions": {"ready": True}, "targetRef": pod}
        world.request("PATCH", f"{slices_of(SHOP)}/{app}-1", {"endpoints": [end]})
        make_syncer(world, SHOP, app, app)
    make_syncer(world, SHOP, "late", "late")
    yield said()
    make_app(world, SHOP, "late", ["10.33.1.1"])
    yield said()
    remove_app(world, SHOP, "late")
    yield said()  # the event of the first pass again
    for number, app in enumerate(("shop", "stall")):
        assert program.registry is not None
        program.registry.list_follows(
            app.upper(), [f"{program.owner}:{SHOP}:{app}:10.33.0.{number}:8080"]
        )
        world.request("PATCH", f"{slices_of(SHOP)}/{app}-1", {"endpoints": []})
    yield said()  # the brake would hold these removals: are the pods dead?
    for name in APPS:
        world.request("DELETE", f"{syncers_of(SHOP)}/{name}")
    yield said()


def test_a_syncers_whole_life_uses_every_right_and_no_other(
    program: Program, registry: Registry, world: KubernetesWorld
) -> None:
    """From the first registration until the syncers are gone, nothing is refused. Pods are listed
    only where the brake asks whether they are dead, and nodes never."""
    passes: list[set[Right]] = []
    found = shipped()
    with granted(world, found) as token:
        program.token = token
        for said in life(program, world):
            assert "cannot" not in said
            passes.append({right_for(call) for call in program.kubernetes.calls})
        program.run_until(lambda: not world.request("GET", syncers_of(SHOP))["items"])
    assert set().union(*passes) == rights_of(found) == RIGHTS
    assert [PODS in used for used in passes] == [False, False, False, True, False]
    assert registry.listed(program.owner) == {}


@pytest.mark.parametrize("right", sorted(RIGHTS), ids=str)
def test_a_right_that_is_missing_is_named(
    right: Right, program: Program, world: KubernetesWorld
) -> None:
    """In a report or a log, in the API server's own words, in the first pass that needs it."""
    with granted(world, lacking(shipped(), right)) as token:
        program.token = token
        sentence = f'cannot {right.verb} resource "{right.resource}"'
        told: list[str] = []
        for said in life(program, world):
            told.append(said)
            if sentence in said:
                return
    raise AssertionError(f"{sentence}: not in\n" + "\n".join(told))


GATE = "eurekube.io/registered"


@pytest.mark.parametrize("component", [(), ("rights/readiness-gate",)], ids=["without", "with"])
def test_the_right_of_a_readiness_gate(
    component: tuple[str, ...], program: Program, world: KubernetesWorld
) -> None:
    """With its component the condition is written; without it the pass names the right."""
    with suppress(requests.HTTPError):
        world.create_node("gates")
    world.create_service(SHOP, "gated", ports={"http": 8080})
    gates = [{"conditionType": GATE}]
    ips, labels = ["10.36.0.1"], {"app": "gated"}
    world.create_pod(
        SHOP, "gated-1", labels=labels, node="gates", ips=ips, ready=False, readinessGates=gates
    )
    world.patch_pod_status(
        SHOP, "gated-1", {"conditions": [{"type": "ContainersReady", "status": "True"}]}
    )
    world.wait_for_slices(SHOP, "gated", {"10.36.0.1": "NotReady"})
    make_syncer(world, SHOP, "gated", "gated", readinessGate=True)

    def opened() -> bool:
        status = world.request("GET", f"/api/v1/namespaces/{SHOP}/pods/gated-1")["status"]
        return {"True"} == {each["status"] for each in status["conditions"] if each["type"] == GATE}

    try:
        with granted(world, documents(Form(components=component).kustomized)) as token:
            program.token = token
            said = [program.run() for _ in range(2)]
        assert opened() is bool(component)
        denied = [
            done.stdout + done.stderr
            for done in said
            if 'cannot patch resource "pods/status"' in done.stdout + done.stderr
        ]
        assert (denied == []) is bool(component), said
    finally:
        world.delete_pod(SHOP, "gated-1")
        remove_app(world, SHOP, "gated")
