"""Apps of Eureka made callable in the cluster, between the real servers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import requests

from eurekube_sync.controller.exit_codes import ExitCode
from tests.integration.hand_made import make_namespace, slices_of
from tests.integration.program import Program, Registry
from tests.servers.eureka import EurekaServer
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

NS = "callable"
IMPORTS = f"/apis/eurekube.io/v1/namespaces/{NS}/eurekaimports"
SERVICES = f"/api/v1/namespaces/{NS}/services"
NETWORKS = "--import-networks=10.20.0.0/16"
REVIEW = {
    "apiVersion": "eurekube.io/v1",
    "kind": "EurekaImport",
    "metadata": {"name": "review"},
    "spec": {},
}
WRITES = {"POST", "PUT", "PATCH", "DELETE"}


@pytest.fixture
def imports(import_crd: None, kubernetes_world: KubernetesWorld) -> Iterator[None]:
    """A namespace without an import. Afterwards all is gone, also what the garbage collector
    takes."""
    make_namespace(kubernetes_world, NS)
    yield
    for item in kubernetes_world.request("GET", IMPORTS)["items"]:
        path = f"{IMPORTS}/{item['metadata']['name']}"
        with contextlib.suppress(requests.HTTPError):
            kubernetes_world.request("PATCH", path, {"metadata": {"finalizers": None}})
            kubernetes_world.request("DELETE", path)

    def gone() -> bool:
        paths = (IMPORTS, SERVICES, slices_of(NS))
        return not any(kubernetes_world.request("GET", path)["items"] for path in paths)

    wait_until(gone, "an import has left something")


def endpoints(world: KubernetesWorld) -> list[str]:
    """The endpoints in the slices of imports."""
    found = []
    for piece in world.request("GET", slices_of(NS))["items"]:
        if piece["metadata"]["labels"].get("eurekube.io/import"):
            for endpoint in piece["endpoints"] or ():
                found += endpoint["addresses"]
    return sorted(found)


def ready(world: KubernetesWorld) -> str:
    conditions = world.request("GET", f"{IMPORTS}/review")["status"]["conditions"]
    (found,) = [each for each in conditions if each["type"] == "Ready"]
    return f"{found['status']} {found['reason']}"


def test_an_app_is_callable_follows_its_instances_and_goes_with_its_import(
    program: Program, registry: Registry, kubernetes_world: KubernetesWorld, imports: None
) -> None:
    """Four lines make the Service. What is DOWN leaves, an equal registry writes nothing, and the
    garbage collector takes all that the import made."""
    world = kubernetes_world
    world.request("POST", IMPORTS, REVIEW)
    for number in (1, 2):
        registry.register("REVIEW", f"dc-{number}", f"10.20.0.{number}")
    registry.list_follows("REVIEW", ["dc-1", "dc-2"])
    report = program.good(NETWORKS)
    assert endpoints(world) == ["10.20.0.1", "10.20.0.2"]
    assert ready(world) == "True InSync"
    assert len(report["imports"]["endpoints"]) == 2
    service = world.request("GET", f"{SERVICES}/review")
    assert service["spec"]["ports"][0]["port"] == 80
    assert service["spec"]["clusterIP"] not in ("", "None")

    program.good(NETWORKS)
    assert WRITES.isdisjoint(program.kubernetes.methods())

    put = f"{registry.url}/apps/REVIEW/dc-2/status"
    requests.put(put, params={"value": "DOWN"}, timeout=30).raise_for_status()
    registry.list_follows("REVIEW", ["dc-2"])
    program.good(NETWORKS)
    assert endpoints(world) == ["10.20.0.1"]
    assert program.kubernetes.methods()["PATCH"] == 2  # a slice and a status

    world.request("DELETE", f"{IMPORTS}/review")
    assert endpoints(world) == ["10.20.0.1"]
    program.good(NETWORKS)

    def gone() -> bool:
        services = [each["metadata"]["name"] for each in world.request("GET", SERVICES)["items"]]
        return not endpoints(world) and "review" not in services

    wait_until(gone, "the garbage collector left the Service or the slices")


def test_a_eureka_that_starts_again_costs_no_endpoint(
    program: Program, kubernetes_world: KubernetesWorld, imports: None
) -> None:
    """It answers with an empty list at once, then with one of two instances, then with both. No
    slice is written, and no pass fails."""
    world = kubernetes_world
    world.request("POST", IMPORTS, REVIEW)
    with EurekaServer() as eureka:
        registry = Registry(url=eureka.url)
        program.options = (*program.options, f"--eureka-url={eureka.url}")
        for number in (1, 2):
            registry.register("REVIEW", f"dc-{number}", f"10.20.0.{number}")
        registry.list_follows("REVIEW", ["dc-1", "dc-2"])
        program.good(NETWORKS)
        before = world.request("GET", slices_of(NS))["items"]
        assert endpoints(world) == ["10.20.0.1", "10.20.0.2"]

        eureka.restart()
        reasons = []
        for back in ((), (1,), (2,)):
            for number in back:
                registry.register("REVIEW", f"dc-{number}", f"10.20.0.{number}")
                registry.list_follows("REVIEW", [f"dc-{number}"])
            report = program.good(NETWORKS)
            reasons.append([hold["reason"] for hold in report["imports"]["holds"]])
        assert reasons == [["RegistryYoung"], ["RegistryYoung"], []]
        assert versions(world) == [each["metadata"]["resourceVersion"] for each in before]
        assert ready(world) == "True InSync"


def versions(world: KubernetesWorld) -> list[Any]:
    items = world.request("GET", slices_of(NS))["items"]
    return [each["metadata"]["resourceVersion"] for each in items]


def test_what_was_there_before_is_left_alone(
    program: Program, registry: Registry, kubernetes_world: KubernetesWorld, imports: None
) -> None:
    """A Service of the import's name, and its slice. `explain` says why nothing is callable."""
    world = kubernetes_world
    spec = {"ports": [{"name": "http", "port": 80}]}
    before = world.request("POST", SERVICES, {"metadata": {"name": "review"}, "spec": spec})
    world.request("POST", IMPORTS, REVIEW)
    registry.register("REVIEW", "dc-1", "10.20.0.1")
    registry.list_follows("REVIEW", ["dc-1"])
    program.good(NETWORKS)
    try:
        assert endpoints(world) == []
        assert ready(world) == "False ServiceExists"
        after = world.request("GET", f"{SERVICES}/review")
        assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        program.options = ()  # which `explain` does not have
        process = program.start(f"import/{NS}/review", NETWORKS, "-o", "json", command="explain")
        out, _ = process.communicate(timeout=300)
        (found,) = json.loads(out)["explanations"]
        assert (found["reason"], process.returncode) == ("ServiceExists", 6)
    finally:
        world.request("DELETE", f"{SERVICES}/review")


def test_a_second_owner_leaves_an_import_alone_until_it_may_take_it_over(
    program: Program, registry: Registry, kubernetes_world: KubernetesWorld, imports: None
) -> None:
    """Neither the slices nor the status are written, and the exit code is that of an owner clash.
    With the former owner's name the import changes hands, and the first owner leaves it alone."""
    world = kubernetes_world
    world.request("POST", IMPORTS, {**REVIEW, "spec": {"app": "owned"}})
    for number in (1, 2, 3):
        registry.register("OWNED", f"owned-{number}", f"10.20.0.{number}")
    registry.list_follows("OWNED", ["owned-1", "owned-2", "owned-3"])
    program.good(NETWORKS)
    assert world.request("GET", f"{IMPORTS}/review")["status"]["owner"] == program.owner

    put = f"{registry.url}/apps/OWNED/owned-3/status"
    requests.put(put, params={"value": "DOWN"}, timeout=30).raise_for_status()
    registry.list_follows("OWNED", ["owned-1", "owned-2", "owned-3"])
    second = replace(program, owner="second")
    assert second.run(NETWORKS).returncode == ExitCode.OWNER_CLASH
    assert WRITES.isdisjoint(program.kubernetes.methods())
    assert len(endpoints(world)) == 3

    second.good(NETWORKS, f"--former-owner={program.owner}")
    assert endpoints(world) == ["10.20.0.1", "10.20.0.2"]
    assert program.run(NETWORKS).returncode == ExitCode.OWNER_CLASH
