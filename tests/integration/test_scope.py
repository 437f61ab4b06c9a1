"""Two installations with one owner at the same time, and one that may not read beyond its
namespace."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.deployment.rendered import Form, documents
from tests.deployment.rights import Right, granted, lacking
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

APPS = tuple((f"scope-{number % 2}", f"app{number}") for number in range(6))


@pytest.fixture
def apps(kubernetes_world: KubernetesWorld) -> Iterator[None]:
    """Six apps in two namespaces, with a syncer each."""
    for namespace in {namespace for namespace, _ in APPS}:
        make_namespace(kubernetes_world, namespace)
    for number, (namespace, app) in enumerate(APPS):
        make_app(kubernetes_world, namespace, app, [f"10.22.{number}.1", f"10.22.{number}.2"])
    yield
    for namespace, app in APPS:
        remove_app(kubernetes_world, namespace, app)


@pytest.fixture
def other(
    program: Program, kubernetes_servers: KubernetesServers, eureka: EurekaServer
) -> Iterator[Program]:
    """A second installation with the same owner, whose calls are counted separately."""
    folder = program.folder / "other"
    folder.mkdir()
    with (
        CountingProxy(kubernetes_servers.url, ca_file=kubernetes_servers.ca_file) as kubernetes,
        CountingProxy(eureka.url.removesuffix("/eureka")) as counted,
    ):
        yield Program(
            kubernetes=kubernetes,
            eureka=counted,
            token=program.token,
            folder=folder,
            owner=program.owner,
            options=program.options,
        )


def touched(program: Program) -> set[str]:
    """The apps with any call but a read since the last start."""
    calls = [call.path for call in program.eureka.calls if call.method != "GET"]
    return {found[1].lower() for path in calls if (found := re.search(r"/apps/([^/]+)", path))}


def both(program: Program, other: Program, divided: tuple[list[str], list[str]]) -> None:
    """Let both make two passes at the same time, a second apart."""
    running = [
        (one, one.start(*own, "--passes=2", "--interval=1s", "--eureka-batch=off"))
        for one, own in ((program, divided[0]), (other, divided[1]))
    ]
    for _, process in running:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, out + err


FIRST = {app for number, (_, app) in enumerate(APPS) if number % 2 == 0}
"""The apps of the first installation."""


DIVISIONS = {
    "namespaces": (["--namespace=scope-0"], ["--namespace=scope-1"]),
    "labels": (["--selector=team=even"], ["--selector=team!=even"]),
    "classes": (["--syncer-class=even"], []),
}


@pytest.mark.parametrize("dividing", DIVISIONS)
def test_two_installations_with_one_owner_leave_each_others_instances_alone(
    dividing: str,
    program: Program,
    other: Program,
    registry: Registry,
    apps: None,
    kubernetes_world: KubernetesWorld,
) -> None:
    """They work at the same time, with registrations, renewals, a deletion and an orphan. No call
    of the one concerns an instance of the other, not even a renewal."""
    world, divided, first = kubernetes_world, DIVISIONS[dividing], FIRST
    second = {app for _, app in APPS} - first
    assert first
    assert second
    for number, (namespace, app) in enumerate(APPS):
        even = {"syncerClass": "even"} if dividing == "classes" and number % 2 == 0 else {}
        make_syncer(world, namespace, app, app, **even)
        labels = {"metadata": {"labels": {"team": "odd" if number % 2 else "even"}}}
        world.request("PATCH", f"{syncers_of(namespace)}/{app}", labels)

    for _ in range(2):
        both(program, other, divided)
        assert (touched(program), touched(other)) == (first, second)
        assert len(up(registry, program)) == 12

    namespace, gone = next((namespace, app) for namespace, app in APPS if app in first)
    world.request("DELETE", f"{syncers_of(namespace)}/{gone}")
    deadline = time.monotonic() + 400
    while gone in names(world, namespace):
        assert time.monotonic() < deadline, f"the finalizer of {gone} stays"
        both(program, other, divided)
        assert touched(other) == second
        registry.nudge()
    assert len(up(registry, program)) == 10


def names(world: KubernetesWorld, namespace: str) -> set[str]:
    """The syncers of a namespace."""
    return {
        item["metadata"]["name"] for item in world.request("GET", syncers_of(namespace))["items"]
    }


def up(registry: Registry, program: Program) -> list[str]:
    """The ids of all UP apps, by uncached reads."""
    keys = [
        (app.upper(), f"{program.owner}:{namespace}:{app}:10.22.{number}.{last}:8080")
        for number, (namespace, app) in enumerate(APPS)
        for last in (1, 2)
    ]
    return [id_ for app, id_ in keys if registry.status(app, id_) == "UP"]


# --- Rights in chosen namespaces ------------------------------------------------------------------


def namespaced(namespace: str, *components: str) -> list[dict[str, Any]]:
    """The shipped manifests for one namespace."""
    settings = {"EUREKUBE_SYNC_NAMESPACE": namespace}
    form = Form(folder="namespaced", namespace=namespace, components=components, settings=settings)
    return documents(form.kustomized)


def test_a_role_in_each_namespace_is_enough(
    program: Program, registry: Registry, apps: None, kubernetes_world: KubernetesWorld
) -> None:
    """Its whole life works with the shipped Role, while cluster-wide lists are denied."""
    world = kubernetes_world
    namespace, app = APPS[0]
    make_syncer(world, namespace, app, app)
    with granted(world, namespaced(namespace)) as token:
        program.token = token
        assert program.run().returncode == 11, (
            "without --namespace the whole cluster is listed, and that is denied"
        )
        program.options = (
            *program.options,
            f"--namespace={namespace}",
            f"--lock={namespace}/eurekube-sync",
        )
        program.good()
        assert len(up(registry, program)) == 2
        world.request("DELETE", f"{syncers_of(namespace)}/{app}")
        program.run_until(lambda: app not in names(world, namespace))
    assert up(registry, program) == []


OPTIONAL = {
    "nodes": ["--drain-annotations=all"],
    "endpoints": ["--endpoints-source=endpoints"],
}
"""The options that need this right, and no other missing one."""
NEEDED = {"nodes": 0, "endpoints": 11}
"""The exit code of a pass without the right. A missed drain does not fail a pass, so that no
rollout stops."""


@pytest.mark.parametrize("resource", OPTIONAL)
def test_an_optional_right_is_named_when_missing_and_enough_when_granted(
    resource: str, program: Program, apps: None, kubernetes_world: KubernetesWorld
) -> None:
    """The component in cronjob/rights grants it. Without it the pass names what was denied."""
    world = kubernetes_world
    namespace, app = APPS[0]
    make_syncer(world, namespace, app, app)
    program.options = (*program.options, f"--namespace={namespace}", *OPTIONAL[resource])
    with granted(world, namespaced(namespace)) as token:
        program.token = token
        done = program.run("-o", "json")
        assert done.returncode == NEEDED[resource], done.stdout
        messages = [source["message"] for source in json.loads(done.stdout)["unknown"]]
        assert any(f'cannot list resource "{resource}"' in message for message in messages), (
            messages
        )
    with granted(world, namespaced(namespace, f"rights/{resource}")) as token:
        program.token = token
        assert program.good()["unknown"] == []


def test_a_drained_instance_stays_down_without_the_right_to_see_the_drain(
    program: Program, registry: Registry, apps: None, kubernetes_world: KubernetesWorld
) -> None:
    """Without the right, the instance on a drained node stays DOWN. Others are registered, the exit
    code is 0, and the condition says why."""
    world = kubernetes_world
    namespace, app = APPS[0]
    make_syncer(world, namespace, app, app)
    program.options = (*program.options, f"--namespace={namespace}", "--drain-annotations=all")

    def apply(*numbers: int) -> None:
        ends = [
            {"addresses": [f"10.22.0.{n}"], "conditions": {"ready": True}, "nodeName": f"drain-{n}"}
            for n in numbers
        ]
        world.request("PATCH", f"{slices_of(namespace)}/{app}-1", {"endpoints": ends})

    def annotate(drained: str | None) -> None:
        world.request(
            "PATCH",
            "/api/v1/nodes/drain-1",
            {"metadata": {"annotations": {"eurekube.io/drain": drained}}},
        )

    ids = [f"{program.owner}:{namespace}:{app}:10.22.0.{last}:8080" for last in (1, 2, 3)]

    def statuses() -> list[str | None]:
        return [registry.status(app.upper(), id_) for id_ in ids]

    for number in (1, 2):
        world.request("POST", "/api/v1/nodes", {"metadata": {"name": f"drain-{number}"}})
    try:
        apply(1, 2)
        with granted(world, namespaced(namespace, "rights/nodes")) as token:
            program.token = token
            program.good()
            registry.list_follows(app.upper(), ids[:2])
            annotate("true")
            program.good()
            assert statuses() == ["DOWN", "UP", None]
            registry.list_follows(app.upper(), ids[:2])
        with granted(world, namespaced(namespace)) as token:
            program.token = token
            apply(1, 2, 3)
            (unseen,) = program.good()["unknown"]
            assert unseen["source"] == "drain annotations of Nodes"
            conditions = world.request("GET", f"{syncers_of(namespace)}/{app}")["status"][
                "conditions"
            ]
            (ready,) = (condition for condition in conditions if condition["type"] == "Ready")
            assert "set --drain-annotations pods" in ready["message"]
            annotate(None)
            program.good()
            assert statuses() == ["DOWN", "UP", "UP"]
        with granted(world, namespaced(namespace, "rights/nodes")) as token:
            program.token = token
            program.run_until(lambda: statuses() == ["UP", "UP", "UP"])
    finally:
        for number in (1, 2):
            world.request("DELETE", f"/api/v1/nodes/drain-{number}")


CRD = Right("apiextensions.k8s.io", "customresourcedefinitions", "get")


def test_without_the_right_to_read_the_crd_only_deletions_wait(
    program: Program, registry: Registry, apps: None, kubernetes_world: KubernetesWorld
) -> None:
    """A Role cannot grant it. Registrations continue, and a deletion waits and names the right."""
    world = kubernetes_world
    namespace, app = APPS[0]
    make_syncer(world, namespace, app, app)
    with granted(world, lacking(namespaced(namespace), CRD)) as token:
        program.token = token
        program.options = (
            *program.options,
            f"--namespace={namespace}",
            f"--lock={namespace}/eurekube-sync",
        )
        program.good()
        world.request("DELETE", f"{syncers_of(namespace)}/{app}")
        done = program.run("-o", "json")
        assert done.returncode == 11, done.stdout
        assert "customresourcedefinitions" in json.dumps(json.loads(done.stdout)["unknown"])
    assert len(up(registry, program)) == 2


def test_services_of_another_namespace_need_the_operators_permission(
    program: Program, registry: Registry, apps: None, kubernetes_world: KubernetesWorld
) -> None:
    """They need --allow-namespace. With it they are served, with ids of the syncer's own
    namespace."""
    world = kubernetes_world
    (own, _), (elsewhere, app) = APPS[0], APPS[1]
    make_syncer(world, own, "across", app, selector={"app": app, "namespace": elsewhere})
    ids = [f"{program.owner}:{own}:{app}:10.22.1.{last}:8080" for last in (1, 2)]
    program.good()
    status = world.request("GET", f"{syncers_of(own)}/across")["status"]
    ready = next(condition for condition in status["conditions"] if condition["type"] == "Ready")
    assert (ready["reason"], [registry.status(app.upper(), id_) for id_ in ids]) == (
        "NamespaceNotAllowed",
        [None, None],
    )
    program.good(f"--allow-namespace={own}:{elsewhere}")
    assert [registry.status(app.upper(), id_) for id_ in ids] == ["UP", "UP"]
