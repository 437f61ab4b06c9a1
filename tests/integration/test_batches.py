"""Batches to two real peers: how many calls they take, and that each peer comes to hold what the other does."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from eurekube_sync.cli.connect import Connection, connect
from eurekube_sync.clock import SystemClock
from eurekube_sync.exit_codes import ExitCode, of_report
from eurekube_sync.reconcile import PassReport, PassSettings, World, reconcile
from tests.integration.program import CountingProxy, Registry
from tests.integration.test_peers import register_on, wait_until
from tests.integration.test_safety import (
    create_syncer,
    give_endpoints,
    shop,  # noqa: F401 - a fixture
)
from tests.servers.eureka import EurekaServer, eureka_pair
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("crd", "shop")]

OWNER = "batches"


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[EurekaServer, EurekaServer]]:
    """Two peers; every test leaves both running."""
    with eureka_pair() as pair:
        yield pair


@contextmanager
def program(kubernetes: KubernetesServers, *urls: str, mode: str) -> Iterator[World]:
    """The program, living on from pass to pass; each renews all."""
    connection = Connection(
        eureka_url=",".join(urls), kubeconfig=str(kubernetes.kubeconfig), call_timeout=5, eureka_batch=mode
    )
    with connect(connection, SystemClock()) as world:
        yield world


def run(world: World) -> PassReport:
    """A pass, a second after the last."""
    time.sleep(1)
    report = reconcile(world, PassSettings(owner=OWNER, registry_cache=3))
    assert of_report(report, fail_on_held=True, detailed=False) is ExitCode.OK, report
    return report


def batch_sizes(proxy: CountingProxy) -> list[int]:
    """How many items each batch had, the question of one left out."""
    batches = [call.body for call in proxy.calls if call.path.endswith("/peerreplication/batch/")]
    sizes = [len(json.loads(body)["replicationList"]) for body in batches]
    return sorted(size for size in sizes if size > 1)


def all_listed(*servers: EurekaServer, count: int) -> bool:
    """Whether each list shows them. A write empties the server's cache, which may have been filled half-way."""
    registries = [Registry(url=server.url) for server in servers]
    registries[0].register("NUDGE", "nudge", "192.0.2.9")
    return all(len(registry.listed(OWNER)) == count for registry in registries)


def test_300_renewals_are_two_calls_to_each_peer(
    servers: tuple[EurekaServer, EurekaServer],
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
) -> None:
    """Registered in batches on both, renewed in two calls each, and cancelled without one DELETE."""
    addresses = give_endpoints(kubernetes_world, 300)
    create_syncer(kubernetes_world)
    with ExitStack() as stack:
        proxies = [stack.enter_context(CountingProxy(server.url.removesuffix("/eureka"))) for server in servers]
        urls = [f"{proxy.url}/eureka" for proxy in proxies]
        # The servers name each other by addresses that are not the proxies'.
        world = stack.enter_context(program(kubernetes_servers, *urls, mode="on"))
        run(world)
        wait_until(lambda: all_listed(*servers, count=300), lambda: "not all are listed", seconds=20)
        for proxy in proxies:
            proxy.clear()
        report = run(world)
        assert report.outcomes.succeeded == 300
        for proxy in proxies:
            assert batch_sizes(proxy) == [50, 250]
            assert proxy.methods()["PUT"] == 0

        remaining = give_endpoints(kubernetes_world, 290)
        for proxy in proxies:
            proxy.clear()
        run(world)
        gone = {f"{OWNER}:safety:shop:{address}:8080" for address in set(addresses) - set(remaining)}
        for server, proxy in zip(servers, proxies, strict=True):
            assert proxy.methods()["DELETE"] == 0
            assert {Registry(url=server.url).status("SHOP", id_) for id_ in gone} == {None}


def test_with_auto_a_peer_that_comes_back_empty_is_brought_level(
    servers: tuple[EurekaServer, EurekaServer],
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    tmp_path: Path,
) -> None:
    """Within two passes, by uncached reads; a stranger on the other peer is as it was."""
    first, second = servers
    addresses = give_endpoints(kubernetes_world, 300)
    create_syncer(kubernetes_world)
    ids = {f"{OWNER}:safety:shop:{address}:8080" for address in addresses}
    register_on(first, "dc:shop:9", {"colour": "blue"})
    stranger = Registry(url=first.url).instance("SHOP", "dc:shop:9")
    with program(kubernetes_servers, first.url, second.url, mode="auto") as world:
        assert run(world).batching is not None
        batching = world.registry.batching()
        assert batching is not None
        assert batching.on, batching.why
        second.kill()
        addresses = give_endpoints(kubernetes_world, 298)  # two are cancelled on one peer alone
        run(world)
        second.start()
        run(world)
        run(world)
        assert world.registry.batching() == batching
        kept = {f"{OWNER}:safety:shop:{address}:8080" for address in addresses}
        for server in servers:
            registry = Registry(url=server.url)
            assert {id_: registry.status("SHOP", id_) for id_ in ids} == {
                id_: "UP" if id_ in kept else None for id_ in ids
            }
    assert Registry(url=first.url).instance("SHOP", "dc:shop:9") == stranger
