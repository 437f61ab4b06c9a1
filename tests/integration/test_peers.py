"""Two real peers that replicate to each other: one dies, one comes back empty, both are down, or
one has an extra instance."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.connect import Installation, connect
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import PassSettings, World
from eurekube_sync.controller.reconcile import reconcile
from tests.integration.program import CountingProxy, Program, Registry
from tests.integration.test_safety import (
    NAMESPACE,
    SYNCERS,
    create_syncer,
    give_endpoints,
    shop,  # noqa: F401 - a fixture
)
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld, write_kubeconfig

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("crd", "shop")]

CALL_SECONDS = 30
"""A busy peer answers sooner. A later one is left alone for a while, and does not get what it
lacks."""
HANG_SECONDS = 4
"""The same for a peer that hangs, where each call waits for its timeout."""
UNREPLICATED = {"x-netflix-discovery-replication": "true"}
"""Peers send it to each other. Such a write is not sent on
(PeerAwareInstanceRegistryImpl.replicateToPeers)."""


@pytest.fixture
def servers(eureka_peers: tuple[EurekaServer, EurekaServer]) -> tuple[EurekaServer, EurekaServer]:
    """Two peers. Every test leaves both running."""
    return eureka_peers


@dataclass(kw_only=True)
class Pair:
    """Both peers, and the program: as a process, or in one process for many passes."""

    first: EurekaServer
    second: EurekaServer
    program: Program
    world: World
    """The world of the lasting program, which lists every peer in every pass."""
    cluster_uid: str

    def run(self) -> ExitCode:
        """Make one more pass of the lasting program, a second after the last."""
        time.sleep(1)
        self.report = reconcile(
            self.world, PassSettings(owner=self.program.owner, registry_cache=3)
        )
        return of_report(self.report, fail_on_held=True, detailed=False)

    def ids(self, addresses: list[str]) -> set[str]:
        """The ids of our instances at these addresses."""
        return {f"{self.program.owner}:{NAMESPACE}:shop:{address}:8080" for address in addresses}

    def both_hold(self, addresses: list[str]) -> None:
        """Wait until both lists show exactly our instances at these addresses, all UP."""
        wanted = dict.fromkeys(self.ids(addresses), "UP")
        for server in (self.first, self.second):
            lists_exactly(Registry(url=server.url), self.program.owner, wanted)

    def up_somewhere(self, addresses: list[str]) -> bool:
        """Whether each is UP on at least one running peer, by uncached reads."""
        running = [
            Registry(url=server.url)
            for server in (self.first, self.second)
            if server.pid is not None
        ]
        return all(
            any(peer.status("SHOP", id_) == "UP" for peer in running) for id_ in self.ids(addresses)
        )


def lists_exactly(registry: Registry, owner: str, wanted: dict[str, str]) -> None:
    """Wait until a list shows exactly these ids of the owner with these statuses."""

    def differences() -> list[str]:
        found = registry.listed(owner)
        return sorted(
            id_ for id_ in wanted.keys() | found.keys() if wanted.get(id_) != found.get(id_)
        )

    registry.wait_for_list(
        lambda: not differences(), lambda: f"{registry.url} lists otherwise: {differences()}"
    )


@pytest.fixture
def call_seconds() -> int:
    """`--call-timeout` of the lasting program."""
    return CALL_SECONDS


@pytest.fixture(params=["off", "auto"])
def pair(
    servers: tuple[EurekaServer, EurekaServer],
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    tmp_path: Path,
    call_seconds: int,
    request: pytest.FixtureRequest,
) -> Iterator[Pair]:
    """Both peers and the program, with the test's own owner name."""
    first, second = servers
    urls = f"{first.url},{second.url}/"
    with (
        CountingProxy(kubernetes_servers.url, ca_file=kubernetes_servers.ca_file) as kubernetes,
        CountingProxy(first.url) as unused,
    ):
        program = Program(
            kubernetes=kubernetes,
            eureka=unused,
            token=kubernetes_servers.admin_token,
            folder=tmp_path,
            owner=f"t{abs(hash(request.node.nodeid)) % 10**8}",
            options=("--registry-cache=3s", f"--eureka-url={urls}"),
            batch=request.param,
            registry=Registry(url=first.url),
        )
        config = write_kubeconfig(tmp_path / "lives-on", url=kubernetes.url, token=program.token)
        installation = Installation(
            eureka_url=urls,
            kubeconfig=str(config),
            call_timeout=call_seconds,
            sweep_interval=1,
            eureka_batch=request.param,
        )
        with connect(installation, SystemClock()) as world:
            uid = kubernetes_world.request("GET", "/api/v1/namespaces/kube-system")["metadata"][
                "uid"
            ]
            yield Pair(first=first, second=second, program=program, world=world, cluster_uid=uid)
        # The next test has another owner. Instances of this one at its addresses would stop it.
        with contextlib.suppress(requests.HTTPError):
            kubernetes_world.request("DELETE", f"{SYNCERS}/shop")
        program.run_until(lambda: not kubernetes_world.request("GET", SYNCERS)["items"])


def test_a_peer_dies_and_comes_back_empty(pair: Pair, kubernetes_world: KubernetesWorld) -> None:
    """Passes with the other peer continue and exit with 0. When the peer is back, both have exactly
    our instances, and no UP one was missing."""
    addresses = give_endpoints(kubernetes_world, 5)
    create_syncer(kubernetes_world)
    assert pair.run() is ExitCode.OK
    pair.both_hold(addresses)

    pair.first.kill()
    for _ in range(2):
        assert pair.run() is ExitCode.OK
        assert pair.up_somewhere(addresses)
    pair.program.good()  # a process without memory
    addresses = give_endpoints(kubernetes_world, 6)
    assert pair.run() is ExitCode.OK
    assert pair.up_somewhere(addresses)

    pair.first.start()
    for _ in range(2):
        assert pair.run() is ExitCode.OK
        assert pair.up_somewhere(addresses)
    pair.both_hold(addresses)
    pair.program.good()  # it uses the first again
    assert pair.up_somewhere(addresses)
    pair.both_hold(addresses)

    kubernetes_world.request("DELETE", f"{SYNCERS}/shop")
    pair.program.run_until(lambda: not kubernetes_world.request("GET", SYNCERS)["items"])
    pair.both_hold([])


def test_both_peers_are_down(pair: Pair, kubernetes_world: KubernetesWorld) -> None:
    """The exit code is 20, and each peer is named. When both are back, empty, both get exactly our
    instances."""
    addresses = give_endpoints(kubernetes_world, 5)
    create_syncer(kubernetes_world)
    pair.program.good()
    pair.both_hold(addresses)

    pair.first.kill()
    pair.second.kill()
    done = pair.program.run("-o", "json")
    assert done.returncode == 20, done.stdout + done.stderr
    assert f"{pair.first.url}/apps" in done.stdout
    assert f"and {pair.second.url} failed in the same way: " in done.stdout
    assert pair.run() is ExitCode.EUREKA_UNREAD

    with ThreadPoolExecutor(2) as pool:
        for started in [pool.submit(server.start) for server in (pair.first, pair.second)]:
            started.result()
    for _ in range(2):
        assert pair.run() is ExitCode.OK
    pair.both_hold(addresses)


@pytest.mark.parametrize("call_seconds", [HANG_SECONDS])
def test_a_peer_hangs(pair: Pair, kubernetes_world: KubernetesWorld) -> None:
    """A peer that takes calls without answering costs a pass two timeouts: when it is used, and
    when it is swept."""
    addresses = give_endpoints(kubernetes_world, 5)
    create_syncer(kubernetes_world)
    assert pair.run() is ExitCode.OK
    pair.both_hold(addresses)
    begun = time.monotonic()
    assert pair.run() is ExitCode.OK
    healthy = time.monotonic() - begun  # the time of this machine at this moment

    pair.first.pause()
    try:
        for _ in range(2):
            addresses = give_endpoints(kubernetes_world, len(addresses) + 1)
            begun = time.monotonic()
            assert pair.run() is ExitCode.OK
            # This is two timeouts, and for all else less than another one, or several times as long
            # as before.
            assert time.monotonic() - begun < 2 * HANG_SECONDS + max(HANG_SECONDS, 5 * healthy)
            held = Registry(url=pair.second.url)
            assert {held.status("SHOP", id_) for id_ in pair.ids(addresses)} == {"UP"}
    finally:
        pair.first.resume()
    assert pair.run() is ExitCode.OK
    pair.both_hold(addresses)


def test_an_undesired_instance_on_one_peer_is_cancelled(
    pair: Pair, kubernetes_world: KubernetesWorld
) -> None:
    """Only the second peer has the instance, which is ours, and it is cancelled there. An instance
    of another owner stays."""
    addresses = give_endpoints(kubernetes_world, 2)
    create_syncer(kubernetes_world)
    assert pair.run() is ExitCode.OK
    pair.both_hold(addresses)

    marks = {
        "eurekube.owner": pair.program.owner,
        "eurekube.cluster": pair.cluster_uid,
        "eurekube.syncer": f"{NAMESPACE}/shop",
    }
    second = Registry(url=pair.second.url)
    ghost, stranger = f"{pair.program.owner}:{NAMESPACE}:shop:10.20.9.9:8080", "dc:shop:1"
    register_on(pair.second, ghost, marks)
    register_on(pair.second, stranger, {**marks, "eurekube.owner": "another"})
    second.list_follows("SHOP", [ghost])
    assert Registry(url=pair.first.url).status("SHOP", ghost) is None

    assert pair.run() is ExitCode.OK
    cancelled = [str(action.key) for action in pair.report.plan.changes]
    assert cancelled == [f"SHOP/{ghost}"]
    assert second.status("SHOP", ghost) is None
    assert Registry(url=pair.first.url).status("SHOP", ghost) is None
    assert second.status("SHOP", stranger) == "UP"
    pair.both_hold(addresses)
    with contextlib.suppress(requests.HTTPError):
        requests.delete(f"{pair.second.url}/apps/SHOP/{stranger}", timeout=30).raise_for_status()


def register_on(
    server: EurekaServer, id_: str, metadata: dict[str, str], *, status: str = "UP"
) -> None:
    """Register an instance on this peer only, with a long lease."""
    body = {
        "instance": {
            "instanceId": id_,
            "hostName": "10.20.9.9",
            "ipAddr": "10.20.9.9",
            "app": "SHOP",
            "vipAddress": "shop",
            "status": status,
            "port": {"$": 8080, "@enabled": "true"},
            "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": 3600},
            "dataCenterInfo": {
                "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
                "name": "MyOwn",
            },
            "metadata": metadata,
        }
    }
    requests.post(
        f"{server.url}/apps/SHOP", json=body, headers=UNREPLICATED, timeout=30
    ).raise_for_status()
