"""docs/migration.md for callers in the cluster and in the data centre: each command of the page, on
real servers, while both kinds of callers call all the time."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from tests.datapath.instances import register, set_down, wait_for_list
from tests.docs.test_documentation import blocks, section
from tests.integration.program import Program
from tests.servers.caller import PodCaller
from tests.servers.data_path import FIRST, NODE, POD, POD_ADDRESS, SECOND, DataPath
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.namespaces import Forwarder
from tests.servers.spring_reader import SpringReader
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
INSIDE = section(PAGE, "Callers in the cluster")
BEGIN, SCALE, END, HAND_OVER = blocks(INSIDE, "sh")
NS = "rating"
CORE = f"/api/v1/namespaces/{NS}"
CUSTOM = f"/apis/eurekube.io/v1/namespaces/{NS}"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NS}/deployments"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NS}/endpointslices"
IN_SYNC_SECONDS = 180.0
Follow = Callable[[str], None]


@pytest.fixture
def program(program: Program) -> Program:
    """The program, which asks for grants as the chart's installation does."""
    program.options = (*program.options, "--require-app-grant")
    return program


@pytest.fixture
def follow(kubernetes_servers: KubernetesServers, program: Program) -> Follow:
    """Runs commands of the page as they are written. A pass comes before each that waits."""

    def run(script: str) -> None:
        for line in script.strip().splitlines():
            kubectl, *arguments = shlex.split(line)
            assert kubectl == "kubectl"
            if arguments[0] == "wait":
                program.good()
            with contextlib.chdir(ROOT):
                kubernetes_servers.kubectl(*arguments)

    return run


@pytest.fixture
def app(
    data_path: DataPath, kubernetes_world: KubernetesWorld, eureka: EurekaServer
) -> Iterator[None]:
    """Two instances of `rating` in the data centre, and an empty namespace of this name."""
    world = kubernetes_world
    with contextlib.suppress(requests.HTTPError):
        world.request("POST", "/api/v1/namespaces", {"metadata": {"name": NS}})
    register(eureka, "RATING", [FIRST, SECOND])
    wait_for_list(eureka, "RATING", [FIRST, SECOND])
    yield
    for path in (f"{CUSTOM}/eurekaimports", f"{CUSTOM}/eurekasyncers", DEPLOYMENTS, SLICES):
        for item in world.request("GET", path)["items"]:
            name = f"{path}/{item['metadata']['name']}"
            with contextlib.suppress(requests.HTTPError):
                world.request("DELETE", name)
                world.request("PATCH", name, {"metadata": {"finalizers": None}})
    with contextlib.suppress(requests.HTTPError):
        world.request("DELETE", f"{CORE}/services/rating")


@pytest.fixture
def deployment(kubernetes_world: KubernetesWorld, app: None) -> Iterator[Callable[[], None]]:
    """The Deployment of docs/examples/app.yaml, without replicas. What it gives starts the pods
    that it asks for, in place of the cluster's controllers."""
    world = kubernetes_world
    examples = (ROOT / "docs" / "examples" / "app.yaml").read_text()
    (body,) = (each for each in yaml.safe_load_all(examples) if each["kind"] == "Deployment")
    body["spec"]["replicas"] = 0
    world.request("POST", DEPLOYMENTS, body)
    started: list[str] = []

    def start() -> None:
        (asked,) = world.request("GET", DEPLOYMENTS)["items"]
        assert asked["spec"]["replicas"] == 1
        labels, ports = {"app": "rating"}, {"http": 8080}
        world.create_pod(NS, "rating-1", labels=labels, node=NODE, ips=[POD_ADDRESS], ports=ports)
        started.append("rating-1")

    yield start
    for name in started:
        world.delete_pod(NS, name)


@pytest.fixture
def inside(data_path: DataPath, app: None) -> Iterator[PodCaller]:
    """A caller in the cluster, in another namespace than the app."""
    with PodCaller(data_path.pod, "rating.rating") as caller:
        yield caller


@pytest.fixture
def outside(data_path: DataPath, eureka: EurekaServer, app: None) -> Iterator[SpringReader]:
    """A caller in the data centre, which calls by Feign."""
    with (
        Forwarder(data_path.data_centre, eureka.port),
        SpringReader(eureka.url, ["rating"], namespace=data_path.data_centre) as reader,
    ):
        yield reader


def answered_by(reader: SpringReader, servers: set[str]) -> None:
    """Wait until 20 calls from the data centre in a row are answered by exactly these servers."""

    def reached() -> bool:
        begin = reader.number("rating")
        wait_until(lambda: reader.number("rating") >= begin + 20, "the reader does not call")
        return set(reader.calls("rating", since=begin).by) == servers

    wait_until(reached, lambda: f"not {servers} answer", seconds=IN_SYNC_SECONDS)


def set_limit(world: KubernetesWorld, limit: Any) -> None:
    world.request("PATCH", f"{CUSTOM}/eurekasyncers/rating", {"spec": {"limit": limit}})


def test_an_app_moves_for_callers_of_both_kinds(
    kubernetes_world: KubernetesWorld,
    eureka: EurekaServer,
    program: Program,
    follow: Follow,
    deployment: Callable[[], None],
    inside: PodCaller,
    outside: SpringReader,
) -> None:
    """First the data centre has all calls, then a pod has its share of both kinds, then the pod has
    all of them. No call fails from the moment on in which the Service leads somewhere."""
    world = kubernetes_world
    follow(BEGIN)
    inside.wait_for_answers_of([FIRST, SECOND])
    begin = inside.so_far()
    (manifest,) = blocks(section(PAGE, "Before the first step"), "yaml")
    world.request("POST", f"{CUSTOM}/eurekasyncers", yaml.safe_load(manifest))
    program.good()

    follow(SCALE)
    deployment()
    program.good()
    inside.wait_for_answers_of([POD, FIRST, SECOND])
    answered_by(outside, {FIRST, SECOND})
    set_limit(world, {"share": "10%"})
    program.good()
    wait_for_list(eureka, "RATING", [POD, FIRST, SECOND])
    answered_by(outside, {POD, FIRST, SECOND})

    # A Spring application that is stopped sets itself DOWN before it cancels itself
    set_down(eureka, "RATING", FIRST)
    wait_for_list(eureka, "RATING", [POD, SECOND])
    program.good()
    inside.wait_for_answers_of([POD, SECOND])
    set_down(eureka, "RATING", SECOND)
    wait_for_list(eureka, "RATING", [POD])
    assert program.run("--passes=2", "--interval=21s").returncode == 0
    inside.wait_for_answers_of([POD])
    answered_by(outside, {POD})

    follow(f"{END.strip()} --wait=false")
    program.good()

    def gone() -> bool:
        slices = world.request("GET", SLICES)["items"]
        return not [item for item in slices if "eurekube.io/import" in item["metadata"]["labels"]]

    wait_until(gone, "slices of the import are left")
    inside.next(300)
    assert world.request("GET", f"{CORE}/services/rating")["spec"]["selector"] == {"app": "rating"}
    assert inside.all(since=begin).failed == ()
    assert outside.calls("rating").failed == ()


def test_a_service_that_an_import_made_becomes_the_apps_own(
    kubernetes_world: KubernetesWorld,
    program: Program,
    follow: Follow,
    deployment: Callable[[], None],
    inside: PodCaller,
) -> None:
    """It keeps its address, pods join, and it outlives the import. No call fails."""
    world = kubernetes_world
    body = {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaImport",
        "metadata": {"name": "rating"},
        "spec": {"app": "rating"},
    }
    world.request("POST", f"{CUSTOM}/eurekaimports", body)
    follow("\n".join(BEGIN.strip().splitlines()[1:]))
    inside.wait_for_answers_of([FIRST, SECOND])
    begin = inside.so_far()
    address = world.request("GET", f"{CORE}/services/rating")["spec"]["clusterIP"]

    follow(HAND_OVER)
    program.good()
    follow(SCALE)
    deployment()
    inside.wait_for_answers_of([POD, FIRST, SECOND])
    program.good()
    assert set(program.kubernetes.methods()) == {"GET"}

    follow(f"{END.strip()} --wait=false")
    program.good()
    inside.wait_for_answers_of([POD])
    assert world.request("GET", f"{CORE}/services/rating")["spec"]["clusterIP"] == address
    assert inside.all(since=begin).failed == ()
