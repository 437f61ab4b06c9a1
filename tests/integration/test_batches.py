"""Batches to two real peers: how many calls they need, and that both peers have the same instances
in the end."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import requests

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka import replication
from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.cli.connect import Installation, connect
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import PassReport, PassSettings, World
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, LeaseTimes, Port
from eurekube_sync.model.ports import Dated
from tests.integration.program import CountingProxy, Registry
from tests.integration.test_peers import UNREPLICATED, lists_exactly, register_on
from tests.integration.test_safety import (
    create_syncer,
    give_endpoints,
    shop,  # noqa: F401 - a fixture
)
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("crd", "shop")]

OWNER = "batches"


@pytest.fixture
def servers(eureka_peers: tuple[EurekaServer, EurekaServer]) -> tuple[EurekaServer, EurekaServer]:
    """Two peers. Every test leaves both running."""
    return eureka_peers


@contextmanager
def program(
    kubernetes: KubernetesServers, *urls: str, mode: str, sweep_interval: float | None = None
) -> Iterator[World]:
    """The program in one process for many passes, each of which renews everything."""
    installation = Installation(
        eureka_url=",".join(urls),
        kubeconfig=str(kubernetes.kubeconfig),
        call_timeout=30,  # a peer that answers late is left alone for a while
        eureka_batch=mode,
        sweep_interval=sweep_interval,
    )
    with connect(installation, SystemClock()) as world:
        yield world


def run(world: World, owner: str = OWNER) -> PassReport:
    """Make a pass, a second after the last."""
    time.sleep(1)
    report = reconcile(world, PassSettings(owner=owner, registry_cache=3))
    assert of_report(report, fail_on_held=True, detailed=False) is ExitCode.OK, report
    return report


def batch_sizes(proxy: CountingProxy) -> list[int]:
    """The number of items of each batch, without the probe of one."""
    batches = [call.body for call in proxy.calls if call.path.endswith("/peerreplication/batch/")]
    sizes = [len(json.loads(body)["replicationList"]) for body in batches]
    return sorted(size for size in sizes if size > 1)


def test_300_renewals_are_two_calls_to_each_peer(
    servers: tuple[EurekaServer, EurekaServer],
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
) -> None:
    """They are registered in batches on both peers, renewed in two calls each, and cancelled
    without a DELETE."""
    addresses = give_endpoints(kubernetes_world, 300)
    create_syncer(kubernetes_world)
    with ExitStack() as stack:
        proxies = [
            stack.enter_context(CountingProxy(server.url.removesuffix("/eureka")))
            for server in servers
        ]
        urls = [f"{proxy.url}/eureka" for proxy in proxies]
        # The servers name each other by addresses that are not the proxies'.
        world = stack.enter_context(program(kubernetes_servers, *urls, mode="on"))
        run(world)
        for server in servers:
            wanted = dict.fromkeys(
                (f"{OWNER}:safety:shop:{address}:8080" for address in addresses), "UP"
            )
            lists_exactly(Registry(url=server.url), OWNER, wanted)
        for proxy in proxies:
            proxy.clear()
        report = run(world)
        assert report.outcomes.succeeded == 300
        for proxy in proxies:
            assert batch_sizes(proxy) == [50, 250]
            assert proxy.methods()["PUT"] == 0

        # Until then another process may have registered them on one server alone, and single cancels
        # go there.
        time.sleep(replication.REPLICATION_SECONDS)
        remaining = give_endpoints(kubernetes_world, 290)
        for proxy in proxies:
            proxy.clear()
        run(world)
        gone = {
            f"{OWNER}:safety:shop:{address}:8080" for address in set(addresses) - set(remaining)
        }
        for server, proxy in zip(servers, proxies, strict=True):
            assert proxy.methods()["DELETE"] == 0
            assert {Registry(url=server.url).status("SHOP", id_) for id_ in gone} == {None}


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_an_id_that_others_have_on_the_second_peer_alone_is_not_registered(
    mode: str,
    servers: tuple[EurekaServer, EurekaServer],
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
) -> None:
    """Its status does not matter. No list of the first peer shows it, and a renewal of an UNKNOWN
    one is a 404."""
    addresses = give_endpoints(kubernetes_world, 3)
    create_syncer(kubernetes_world)
    ids = [f"taken-{mode}:safety:shop:{address}:8080" for address in addresses]
    first, second = (Registry(url=server.url) for server in servers)
    register_on(servers[1], ids[0], {})
    register_on(servers[1], ids[1], {}, status="UNKNOWN")
    theirs = [second.instance("SHOP", id_) for id_ in ids[:2]]
    with program(kubernetes_servers, first.url, second.url, mode=mode) as world:
        report = reconcile(world, PassSettings(owner=f"taken-{mode}", registry_cache=3))
        batching = world.registry.batching()
        assert (batching is not None and batching.on) is (mode == "auto")
        assert report.outcomes.succeeded == 1
        wait_until(
            lambda: second.status("SHOP", ids[2]) == "UP", "the third one was not registered"
        )
    assert [first.status("SHOP", id_) for id_ in ids] == [None, None, "UP"]
    assert [second.instance("SHOP", id_) for id_ in ids[:2]] == theirs


def test_with_auto_a_peer_that_restarts_empty_gets_all_instances_again(
    servers: tuple[EurekaServer, EurekaServer],
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    tmp_path: Path,
) -> None:
    """It takes two passes, by uncached reads. An instance of others on the other peer does not
    change."""
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
        addresses = give_endpoints(kubernetes_world, 298)  # two are cancelled on one peer only
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


@pytest.mark.parametrize("younger", [0, 1])
def test_a_change_that_one_peer_missed_reaches_it(
    servers: tuple[EurekaServer, EurekaServer],
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    younger: int,
) -> None:
    """A batch cannot bring it there. An instance that differs is renewed singly, and the servers
    exchange the younger copy."""
    addresses = give_endpoints(kubernetes_world, 3)
    create_syncer(kubernetes_world)
    owner = f"younger-{younger}"
    id_ = f"{owner}:safety:shop:{addresses[0]}:8080"
    registries = [Registry(url=server.url) for server in servers]

    def ages() -> list[str]:
        return [
            str((one.instance("SHOP", id_) or {}).get("lastDirtyTimestamp")) for one in registries
        ]

    with program(
        kubernetes_servers, *(server.url for server in servers), mode="auto", sweep_interval=1
    ) as world:
        run(world, owner)
        body = {
            **(registries[0].instance("SHOP", id_) or {}),
            "lastDirtyTimestamp": str(int(time.time() * 1000) + 5000),
        }
        body["overriddenstatus"] = body.pop("overriddenStatus", "UNKNOWN")
        url = f"{servers[younger].url}/apps/SHOP"
        requests.post(
            url, json={"instance": body}, headers=UNREPLICATED, timeout=30
        ).raise_for_status()
        assert len(set(ages())) == 2
        registries[younger].list_follows("SHOP", [id_])

        def agree() -> bool:
            """A pass does not touch what this process wrote less than `registry_cache` ago."""
            run(world, owner)
            return len(set(ages())) == 1

        wait_until(agree, lambda: f"their ages are {ages()}")
        batching = world.registry.batching()
        assert batching is not None
        assert batching.on
        assert ages()[0] == body["lastDirtyTimestamp"]


def test_a_peer_that_lacks_an_instance_gets_it_with_a_persons_override(
    servers: tuple[EurekaServer, EurekaServer],
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
) -> None:
    """A batch would make it UP. A single renewal is replicated, and the first peer then sends its
    own copy."""
    (address,) = give_endpoints(kubernetes_world, 1)
    create_syncer(kubernetes_world)
    first, second = servers
    id_ = f"overridden:safety:shop:{address}:8080"
    with program(kubernetes_servers, first.url, second.url, mode="on") as world:
        run(world, "overridden")
        requests.delete(
            f"{second.url}/apps/SHOP/{id_}", headers=UNREPLICATED, timeout=30
        ).raise_for_status()
        override = {"value": "OUT_OF_SERVICE"}
        requests.put(
            f"{first.url}/apps/SHOP/{id_}/status", params=override, timeout=30
        ).raise_for_status()
        assert Registry(url=second.url).status("SHOP", id_) is None

        def arrived() -> bool:
            run(world, "overridden")
            return Registry(url=second.url).status("SHOP", id_) == "OUT_OF_SERVICE"

        wait_until(arrived, "the second peer lacks it")
        copies = [Registry(url=server.url).instance("SHOP", id_) or {} for server in servers]
        assert [copy["overriddenStatus"] for copy in copies] == ["OUT_OF_SERVICE"] * 2
        assert copies[0]["lastDirtyTimestamp"] == copies[1]["lastDirtyTimestamp"]
        batching = world.registry.batching()
        assert batching is not None
        assert batching.on


def test_a_peer_replicates_no_batch(servers: tuple[EurekaServer, EurekaServer]) -> None:
    """An instance that is registered in a batch is on that server only, even after a renewal. So a
    batch goes to every server."""
    first, second = servers
    options = ConnectionOptions(address=EurekaAddress.parse(first.url))
    with EurekaClient(options, clock=SystemClock(), random=random.Random(0)) as client:
        key = InstanceKey("HANDED", "handed:1")
        wanted = Instance(
            key=key,
            host_name="10.0.0.1",
            ip_addr="10.0.0.1",
            port=Port(8080, True),
            secure_port=Port(443, False),
            vip_address="handed",
            secure_vip_address="handed",
            status=InstanceStatus.UP,
            lease=LeaseTimes(30, 300),
            metadata={},
        )
        for item in (replication.register(Dated(wanted, 1)), replication.heartbeat(key)):
            assert client.replicate([item]) == [200]
        # Peers are told in order. When they have what came later, they also have everything before
        # it.
        Registry(url=first.url).register("LATER", "later:1", "192.0.2.9")
        wait_until(
            lambda: Registry(url=second.url).status("LATER", "later:1") == "UP",
            "the peer was not told",
        )
        held = [Registry(url=server.url).status(*key) for server in servers]
        assert held == ["UP", None]
        assert client.cancel(key)
    assert Registry(url=second.url).status(*key) is None
