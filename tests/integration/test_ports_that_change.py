"""Services and slices that somebody changes beside a rollout, on a real API server: whoever calls
the app finds an instance in a real Eureka at every moment.

The test acts as the Deployment's controller and the kubelet. Two pods are replaced one at a time,
after a slice of another writer came, a Service for metrics or a headless one was added, or the
Service's port was renamed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import requests

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.embedded.http import Request
from tests.integration import forked
from tests.integration.hand_made import make_namespace, slices_of, syncers_of
from tests.integration.program import CountingProxy, Program, Registry
from tests.servers.eureka import EurekaServer
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

NAMESPACE = "ports"
NODE = "ports-node"
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
LABELS = {"app": "rating"}
Json = dict[str, Any]


@pytest.fixture
def world(kubernetes_world: KubernetesWorld) -> Iterator[KubernetesWorld]:
    """A node, and a namespace that is empty before and afterwards."""
    world = kubernetes_world
    make_namespace(world, NAMESPACE)
    with contextlib.suppress(requests.HTTPError):
        world.create_node(NODE)
    empty(world)
    yield world
    empty(world)


def empty(world: KubernetesWorld) -> None:
    """Remove the namespace's Services, pods, and slices that no controller removes."""
    for path in (SERVICES, PODS, slices_of(NAMESPACE)):
        for item in world.request("GET", path)["items"]:
            with contextlib.suppress(requests.HTTPError):
                world.request(
                    "DELETE", f"{path}/{item['metadata']['name']}", {"gracePeriodSeconds": 0}
                )


def add_stray_slice(world: KubernetesWorld) -> None:
    """A second controller writes a slice whose port has no name."""
    write_slice(world, "rating-stray", {"port": 9000}, "192.0.2.7", by="mesh")


def add_metrics_service(world: KubernetesWorld) -> None:
    """The chart's new version has a Service for metrics with the labels of the app."""
    world.create_service(NAMESPACE, "rating-metrics", selector=LABELS, ports={"metrics": 9090})


def add_headless_service(world: KubernetesWorld) -> None:
    """The chart's new version has a headless Service with the labels and the port of the app."""
    ports = [{"name": "api", "port": 80, "targetPort": "app"}]
    world.create_service(NAMESPACE, "a-headless", selector=LABELS, ports=ports, clusterIP="None")


def rename_port(world: KubernetesWorld) -> None:
    """The chart's new version calls the port by another name."""
    ports = [{"name": "web", "port": 80, "targetPort": "app"}]
    world.request("PATCH", f"{SERVICES}/rating", {"spec": {"ports": ports}})


def write_slice(
    world: KubernetesWorld, name: str, port: Json, address: str, *, by: str = ""
) -> None:
    """Write a slice of the Service `rating` with one address and port."""
    labels = {"kubernetes.io/service-name": "rating"}
    if by:
        labels["endpointslice.kubernetes.io/managed-by"] = by
    piece = {
        "metadata": {"name": name, "labels": labels},
        "addressType": "IPv4",
        "ports": [port],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
    }
    world.request("POST", slices_of(NAMESPACE), piece)


def create_syncer(world: KubernetesWorld, **spec: Any) -> None:
    head = {"apiVersion": "eurekube.io/v1", "kind": "EurekaSyncer", "metadata": {"name": "rating"}}
    world.request("POST", syncers_of(NAMESPACE), {**head, "spec": {"selector": LABELS, **spec}})


def ready(world: KubernetesWorld) -> tuple[str, str]:
    """Status and message of the syncer's condition Ready."""
    conditions = (
        world.request("GET", f"{syncers_of(NAMESPACE)}/rating")
        .get("status", {})
        .get("conditions", [])
    )
    found = [one for one in conditions if one["type"] == "Ready"]
    return (found[0]["status"], found[0]["message"]) if found else ("", "")


def explain(program: Program) -> str:
    """What `explain` says of the syncer, in one line."""
    done = forked.run(
        ["explain", f"{NAMESPACE}/rating"],
        forked.environment(
            EUREKUBE_SYNC_OWNER=program.owner,
            EUREKUBE_SYNC_EUREKA_URL=f"{program.eureka.url}/eureka",
            KUBECONFIG=str(program.folder / "kubeconfig"),
        ),
        timeout=300,
    )
    return " ".join(done.stdout.split())


@dataclass
class Watch:
    """Reads the instances uncached, without pause, and notes each look that finds none UP."""

    registry: Registry
    ids: list[str]
    looks: int = 0
    empty: list[dict[str, str | None]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None

    def watch(self) -> None:
        """Look until it is stopped."""
        try:
            while not self.stopped.is_set():
                # The older ones first: a pass registers before it cancels.
                found = {id_: self.registry.status("RATING", id_) for id_ in list(self.ids)}
                if "UP" not in found.values():
                    self.empty.append(found)
                self.looks += 1
        except BaseException as error:
            self.failure = error
            raise


@pytest.mark.parametrize(
    ("change", "spec", "told"),
    [
        (add_stray_slice, {}, "EndpointSlice rating-stray (managed by mesh) is ignored"),
        (add_metrics_service, {}, "rating (8080), rating-metrics (9090): name one in spec.port"),
        (rename_port, {"port": "api"}, "no Service has the port 'api': rating has web (80)"),
        (
            add_headless_service,
            {"selector": {"matchLabels": LABELS}},
            "name the app in spec.appName",
        ),
    ],
    ids=["a stray slice", "a Service for metrics", "a renamed port", "a headless Service"],
)
def test_a_rollout_leaves_no_gap_although_the_port_became_unclear(
    change: Callable[[KubernetesWorld], None],
    spec: Json,
    told: str,
    program: Program,
    registry: Registry,
    world: KubernetesWorld,
) -> None:
    """Eureka has an instance that is UP at every look. In the end the new pods are UP, the old ones
    gone, and the condition and `explain` say what somebody should mend."""
    world.create_service(
        NAMESPACE, "rating", ports=[{"name": "api", "port": 80, "targetPort": "app"}]
    )
    for number in (1, 2):
        create_pod(world, number)
    create_syncer(world, **spec)
    ids = [f"{program.owner}:{NAMESPACE}:rating:10.1.0.{number}:8080" for number in (1, 2, 3, 4)]
    daemon = program.start("--daemon", "--interval=2s")
    watch = Watch(registry=registry, ids=ids)
    watcher = threading.Thread(target=watch.watch)

    def is_up(number: int) -> Callable[[], bool]:
        return lambda: registry.status("RATING", ids[number - 1]) == "UP"

    try:
        wait_until(lambda: is_up(1)() and is_up(2)(), "the first pods were not registered")
        registry.list_follows("RATING", ids)
        watcher.start()
        change(world)
        wait_until(lambda: told in ready(world)[1], lambda: f"the condition says {ready(world)}")
        for old, new in ((1, 3), (2, 4)):
            create_pod(world, new)
            wait_until(is_up(new), lambda new=new: f"pod {new} was not registered: {ready(world)}")  # type: ignore[misc]
            world.delete_pod(NAMESPACE, f"rating-{old}")
            wait_until(
                lambda old=old: registry.status("RATING", ids[old - 1]) is None,  # type: ignore[misc]
                lambda old=old: f"pod {old} stays registered: {ready(world)}",  # type: ignore[misc]
            )
        looks = watch.looks
        wait_until(lambda: watch.looks > looks + 2, "nobody looks any more")
    finally:
        watch.stopped.set()
        if watcher.ident is not None:
            watcher.join()
        daemon.terminate()
        daemon.communicate(timeout=300)
    assert watch.failure is None
    assert watch.empty == []
    status, message = ready(world)
    assert status == "True", message
    assert told in message
    assert told in explain(program)
    registry.list_follows("RATING", ids)
    program.good()  # a process that remembers nothing does the same
    assert [registry.status("RATING", id_) for id_ in ids] == [None, None, "UP", "UP"]


@dataclass
class Outage:
    """Eureka's reads fail, and its writes work."""

    lasts: bool = False

    def before(self, call: Request) -> None:
        """Hang up on a read."""
        if self.lasts and call.method == "GET":
            raise ConnectionResetError


@pytest.mark.parametrize(
    ("change", "spec", "told"),
    [
        (add_metrics_service, {}, "Until then port 8080 is served on, as before"),
        (
            add_headless_service,
            {"selector": {"matchLabels": LABELS}},
            "Until then it is app rating, as before",
        ),
    ],
    ids=["a Service for metrics", "a headless Service"],
)
def test_an_app_stays_at_its_port_while_eureka_cannot_be_read_and_after_it_came_back_empty(
    change: Callable[[KubernetesWorld], None],
    spec: Json,
    told: str,
    program: Program,
    registry: Registry,
    eureka: EurekaServer,
    world: KubernetesWorld,
) -> None:
    """Each pass is a process of its own, as of a CronJob. Leases are renewed, a new pod comes, and
    what Eureka lost is registered again."""
    world.create_service(
        NAMESPACE, "rating", ports=[{"name": "api", "port": 80, "targetPort": "app"}]
    )
    create_pod(world, 1)
    create_syncer(world, **spec)
    ids = [f"{program.owner}:{NAMESPACE}:rating:10.1.0.{number}:8080" for number in (1, 2)]

    def renewed() -> int:
        instance = registry.instance("RATING", ids[0])
        assert instance is not None
        return int(instance["leaseInfo"]["lastRenewalTimestamp"])

    outage = Outage()
    with CountingProxy(eureka.url.removesuffix("/eureka"), before=outage.before) as between:
        program = replace(program, eureka=between)
        program.good()
        registry.list_follows("RATING", ids[:1])
        change(world)
        create_pod(world, 2)
        outage.lasts = True
        before = renewed()
        done = program.run()
        assert done.returncode == ExitCode.EUREKA_UNREAD, done.stdout + done.stderr
        assert renewed() > before
        assert registry.status("RATING", ids[1]) == "UP"

        outage.lasts = False
        registry.clear(eureka.session())
        program.good()
    assert [registry.status("RATING", id_) for id_ in ids] == ["UP", "UP"]
    status, message = ready(world)
    assert status == "True", message
    assert told in message


def test_an_app_moves_to_another_target_port_without_a_gap(
    program: Program, registry: Registry, world: KubernetesWorld
) -> None:
    """The real controller writes the slices anew. Callers find an instance at every moment, and in
    the end only the new number is registered."""
    world.create_service(
        NAMESPACE, "rating", ports=[{"name": "api", "port": 80, "targetPort": 8080}]
    )
    for number in (1, 2):
        create_pod(world, number)
    create_syncer(world)
    old, new = (
        [f"{program.owner}:{NAMESPACE}:rating:10.1.0.{number}:{port}" for number in (1, 2)]
        for port in (8080, 8081)
    )

    def statuses() -> list[str | None]:
        return [registry.status("RATING", id_) for id_ in [*old, *new]]

    daemon = program.start("--daemon", "--interval=2s")
    watch = Watch(registry=registry, ids=[*old, *new])
    watcher = threading.Thread(target=watch.watch)
    try:
        wait_until(lambda: statuses() == ["UP", "UP", None, None], "the pods were not registered")
        registry.list_follows("RATING", old)
        watcher.start()
        ports = [{"name": "api", "port": 80, "targetPort": 8081}]
        world.request("PATCH", f"{SERVICES}/rating", {"spec": {"ports": ports}})
        moved = [None, None, "UP", "UP"]
        wait_until(lambda: statuses() == moved, lambda: f"{statuses()}: {ready(world)}")
    finally:
        watch.stopped.set()
        if watcher.ident is not None:
            watcher.join()
        daemon.terminate()
        daemon.communicate(timeout=300)
    assert watch.failure is None
    assert watch.empty == []
    assert watch.looks > 2


def create_pod(world: KubernetesWorld, number: int) -> None:
    """Create a pod that is ready, and wait until it is in the slices."""
    address = f"10.1.0.{number}"
    name = f"rating-{number}"
    world.create_pod(NAMESPACE, name, labels=LABELS, node=NODE, ips=[address], ports={"app": 8080})
    wait_until(
        lambda: world.endpoint_states(NAMESPACE, "rating").get(address) == "Ready",
        f"{name} is in no slice",
    )


def test_two_processes_at_one_address_are_two_instances(
    program: Program, registry: Registry, world: KubernetesWorld
) -> None:
    """A Service without a selector has two slices by hand: one address, one port name, two numbers.
    Without the second slice, its instance goes, and the other stays."""
    service = {
        "metadata": {"name": "rating", "labels": LABELS},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    }
    world.request("POST", SERVICES, service)
    for number in (8080, 8081):
        write_slice(world, f"rating-{number}", {"name": "http", "port": number}, "192.0.2.7")
    create_syncer(world)
    program.good()
    ids = [f"{program.owner}:{NAMESPACE}:rating:192.0.2.7:{number}" for number in (8080, 8081)]
    assert [registry.status("RATING", id_) for id_ in ids] == ["UP", "UP"]
    registry.list_follows("RATING", ids)
    shown = explain(program)
    assert "its EndpointSlices list 2 endpoints" in shown
    assert "2 of 2 UP as RATING" in shown

    world.request("DELETE", f"{slices_of(NAMESPACE)}/rating-8081")
    program.good()
    assert [registry.status("RATING", id_) for id_ in ids] == ["UP", None]
