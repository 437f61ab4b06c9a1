"""Two real peers and what lies between: one is killed in mid-pass, replication is cut, one lags, we are cut from one.

Each time a watch reads both peers all the time, past their caches: whatever happens, no UP instance of ours may be gone
from both. Instances of another owner, renewed at the second peer all the while, have to stay as they are.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.cli.connect import Connection, connect
from eurekube_sync.cli.options.calls import Calls
from eurekube_sync.cli.options.eureka import EurekaAccess
from eurekube_sync.cli.options.kubernetes import KubernetesAccess
from eurekube_sync.clock import SystemClock
from eurekube_sync.embedded.http import Request
from eurekube_sync.exit_codes import ExitCode, of_report
from eurekube_sync.model import LeaseTimes
from eurekube_sync.reconcile import PassReport, PassSettings, World, reconcile
from tests.integration.program import CountingProxy, Registry
from tests.integration.test_safety import (
    NAMESPACE,
    create_syncer,
    set_endpoints,
    shop,  # noqa: F401 - a fixture
)
from tests.servers.eureka import EurekaServer, ProxiedPair, proxied_eureka_pair
from tests.servers.kube import KubernetesServers
from tests.servers.toxiproxy import Proxy, Toxiproxy
from tests.servers.world import KubernetesWorld, write_kubeconfig
from tests.soak.strangers import Strangers
from tests.soak.watch import Key, Watch

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("crd", "shop")]

LEASE = 6
"""Seconds; twice that after a renewal."""
RENEWAL = 2
ADDRESSES = [f"10.40.0.{number}" for number in range(1, 31)]
NEW = "10.40.1.1"
CALL_SECONDS = 2
_numbers = itertools.count(1)


@dataclass(kw_only=True)
class Scene:
    """Both peers, all ways to and between them, and a program that lives on from pass to pass."""

    peers: ProxiedPair
    us_to_first: Proxy
    us_to_second: Proxy
    world: World
    """It lists both peers in every pass."""
    cluster: KubernetesWorld
    watch: Watch
    strangers: Strangers
    owner: str
    desired: list[str] = field(default_factory=list)
    before: dict[Key, dict[str, Any]] = field(default_factory=dict)
    """The strangers as they stood at the second peer."""

    def begin(self) -> None:
        """All of ours stand on both peers, the strangers too."""
        self.desired = list(ADDRESSES)
        set_endpoints(self.cluster, self.desired)
        create_syncer(self.cluster)
        self.run()
        self.both_hold_exactly_ours()
        self.before = {key: instance_on(self.peers.second, key) for key in self.strangers.keys}

    def replace_one(self) -> None:
        """A withdrawal and a registration, at the next pass."""
        before = self.keys()
        self.desired = [NEW, *self.desired[1:]]
        self.watch.forget(set(before) - set(self.keys()))
        set_endpoints(self.cluster, self.desired)

    def run(self, passes: int = 1) -> PassReport:
        """So many passes, each a good one, a second after the one before; what is desired then is watched."""
        for _ in range(passes):
            time.sleep(1)
            report = reconcile(
                self.world, PassSettings(owner=self.owner, lease=LeaseTimes(RENEWAL, LEASE), registry_cache=3)
            )
            assert of_report(report, fail_on_held=True, detailed=False) is ExitCode.OK, report
            self.watch.expect(self.keys())
        return report

    def run_for(self, seconds: float) -> None:
        """Passes until so long is over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.run()

    def healed(self) -> None:
        """Two passes after healing both hold exactly ours, nothing was lost meanwhile and no stranger has changed."""
        self.run(2)
        self.both_hold_exactly_ours()
        self.watch.check()
        assert not self.strangers.refused, self.strangers.refused[:3]
        for key, before in self.before.items():
            assert unrenewed(instance_on(self.peers.second, key)) == unrenewed(before)
            assert unmoved(instance_on(self.peers.first, key)) == unmoved(before)

    def both_hold_exactly_ours(self) -> None:
        """Waits for the caches, a second old, and for the peers' words to each other, half a second late."""
        wanted = dict.fromkeys((key.id for key in self.keys()), "UP")
        deadline = time.monotonic() + LEASE
        while (found := [Registry(url=s.url).listed(self.owner) for s in self.servers]) != [wanted, wanted]:
            differences = [sorted(wanted.keys() ^ one.keys()) or one for one in found]
            assert time.monotonic() < deadline, f"on the first and the second peer: {differences}"
            time.sleep(0.2)

    def stand_on(self, server: EurekaServer) -> int:
        """How many of the desired are UP on one peer."""
        return sum(Registry(url=server.url).status(key.app, key.id) == "UP" for key in self.keys())

    def keys(self) -> list[Key]:
        """What is desired."""
        return [Key("SHOP", f"{self.owner}:{NAMESPACE}:shop:{address}:8080") for address in self.desired]

    @property
    def servers(self) -> tuple[EurekaServer, EurekaServer]:
        """First and second."""
        return self.peers.first, self.peers.second


def instance_on(server: EurekaServer, key: Key) -> dict[str, Any]:
    """An instance by an uncached read."""
    found = Registry(url=server.url).instance(key.app, key.id)
    assert found is not None, f"{key.id} is not on {server.url}"
    return found


def unrenewed(instance: dict[str, Any]) -> dict[str, Any]:
    """An instance without what its own renewals change."""
    lease = {name: value for name, value in instance["leaseInfo"].items() if name != "lastRenewalTimestamp"}
    return {**instance, "leaseInfo": lease}


def unmoved(instance: dict[str, Any]) -> dict[str, Any]:
    """An instance without what a peer adds when it is told of it: when it came, and by which action."""
    lease = {name: instance["leaseInfo"][name] for name in ("renewalIntervalInSecs", "durationInSecs")}
    moved = {"leaseInfo", "lastUpdatedTimestamp", "actionType"}
    return {name: value for name, value in instance.items() if name not in moved} | lease


@pytest.fixture(scope="module")
def peers(toxiproxy: Toxiproxy) -> Iterator[ProxiedPair]:
    """Two peers; after each test both run and are healed."""
    with proxied_eureka_pair(toxiproxy) as pair:
        yield pair


@pytest.fixture(params=["off", "on"], ids=lambda mode: f"batch-{mode}")
def batch(request: pytest.FixtureRequest) -> str:
    """`--eureka-batch`. Not `auto`: it would see that the peers call each other elsewhere than we call them."""
    return str(request.param)


@pytest.fixture
def scene(
    peers: ProxiedPair,
    toxiproxy: Toxiproxy,
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    tmp_path: Path,
    batch: str,
) -> Iterator[Scene]:
    """All ways healthy, ours and strangers on both peers, under an owner name of the test's own."""
    config = write_kubeconfig(
        tmp_path / "kubeconfig",
        url=kubernetes_servers.url,
        token=kubernetes_servers.admin_token,
        ca_file=kubernetes_servers.ca_file,
    )
    with ExitStack() as opened:
        ways = [toxiproxy.proxy(f"{server.host}:{server.port}") for server in (peers.first, peers.second)]
        for way in ways:
            opened.callback(toxiproxy.remove, way)
        urls = [f"http://{way.address}/eureka" for way in ways]
        found = Scene(
            peers=peers,
            us_to_first=ways[0],
            us_to_second=ways[1],
            world=opened.enter_context(program(urls, config, batch)),
            cluster=kubernetes_world,
            watch=opened.enter_context(Watch(peers.first, peers.second)),
            owner=f"cut-{next(_numbers)}",
            strangers=opened.enter_context(Strangers(peers.second, count=5, every=1, duration=LEASE)),
        )
        found.begin()
        yield found
        for way in (peers.to_first, peers.to_second):
            way.heal()
        if peers.first.pid is None:
            peers.first.start()


@contextmanager
def program(urls: list[str], kubeconfig: Path, batch: str) -> Iterator[World]:
    """One process's worth of the program, with every renewal in time for the short leases."""
    connection = Connection(
        eureka=EurekaAccess(eureka_url=",".join(urls)),
        kubernetes=KubernetesAccess(kubeconfig=str(kubeconfig)),
        calls=Calls(call_timeout=CALL_SECONDS),
        registry_cache=3,
        renewal_interval=RENEWAL,
        renewal_slack=0.5,
        sweep_interval=1,
        eureka_batch=batch,
    )
    with connect(connection, SystemClock()) as world:
        yield world


def test_a_peer_is_killed_in_mid_pass_and_comes_back_empty(scene: Scene, tmp_path: Path, batch: str) -> None:
    """It answers the list and some renewals of a pass, or the question for batches, and not the rest: the pass ends
    well on the other."""
    killer = KillerOf(scene.peers.first, spare=5 if batch == "off" else 1)
    with (
        CountingProxy(f"http://{scene.us_to_first.address}", before=killer.before) as to_first,
        program(
            [f"{to_first.url}/eureka", f"http://{scene.us_to_second.address}/eureka"], tmp_path / "kubeconfig", batch
        ) as scene.world,
    ):
        scene.run(2)
        to_first.clear()
        scene.replace_one()
        killer.armed.set()
        scene.run()
        assert scene.peers.first.pid is None
        assert to_first.methods()["GET"] >= 1, "the pass had its list from it"
        assert killer.spared == killer.spare, "and what came before the kill"
        assert scene.stand_on(scene.peers.second) == len(scene.desired)
        scene.watch.check()
        scene.run_for(2 * LEASE)
        with ThreadPoolExecutor(1) as pool:
            started = pool.submit(scene.peers.first.start)
            while not started.done():
                scene.run()
            started.result()
        scene.healed()


def test_replication_is_cut_for_longer_than_a_lease(scene: Scene, batch: str) -> None:
    """What the second peer is not told of lapses there, unless batches tell it; once healed, both hold all, and what
    came meanwhile."""
    scene.peers.to_first.drop()
    scene.peers.to_second.drop()
    scene.run_for(2 * LEASE + 4)
    assert scene.stand_on(scene.peers.first) == len(ADDRESSES)
    assert scene.stand_on(scene.peers.second) == (0 if batch == "off" else len(ADDRESSES))
    scene.replace_one()
    scene.run(2)
    scene.peers.to_first.heal()
    scene.peers.to_second.heal()
    scene.healed()


@pytest.mark.parametrize("lagging", ["first", "second"])
def test_a_peer_lags(scene: Scene, lagging: str) -> None:
    """Its answers come late to us and, later than it waits for them, to the other peer, until two leases are over."""
    first = lagging == "first"
    for way in (scene.us_to_first, scene.peers.to_first) if first else (scene.us_to_second, scene.peers.to_second):
        way.lag(0.4)
    scene.run_for(LEASE)
    scene.replace_one()
    scene.run_for(LEASE)
    scene.watch.check()
    for way in (scene.us_to_first, scene.us_to_second, scene.peers.to_first, scene.peers.to_second):
        way.heal()
    scene.healed()


@pytest.mark.parametrize("cut", ["first", "second"])
def test_we_are_cut_from_one_peer(scene: Scene, cut: str) -> None:
    """The other one tells it of a withdrawal and of a registration."""
    way = scene.us_to_first if cut == "first" else scene.us_to_second
    way.drop()
    scene.run_for(LEASE)
    scene.replace_one()
    scene.run_for(LEASE)
    scene.watch.check()
    way.heal()
    scene.healed()


def test_the_second_peer_is_cut_from_all(scene: Scene) -> None:
    """A withdrawal meanwhile leaves a ghost there; it goes once healed."""
    ways = (scene.us_to_second, scene.peers.to_second, scene.peers.to_first)
    for way in ways:
        way.drop()
    scene.run(1)
    scene.replace_one()
    scene.run(2)
    for way in ways:
        way.heal()
    scene.healed()


class KillerOf:
    """Once armed, kills a server in the midst of the writes of a pass."""

    def __init__(self, server: EurekaServer, *, spare: int) -> None:
        """`spare`: so many writes get through."""
        self._server = server
        self._lock = threading.Lock()
        self.spare = spare
        self.armed = threading.Event()
        self.spared = 0
        """Writes that were let through."""

    def before(self, request: Request) -> None:
        """For each call that is about to be forwarded."""
        if request.method == "GET":
            return
        with self._lock:
            if not self.armed.is_set():
                return
            if self.spared < self.spare:
                self.spared += 1
            else:
                self._server.kill()
                self.armed.clear()


def test_the_watch_sees_what_is_gone_from_both(peers: ProxiedPair) -> None:
    """A stranger that is on one peer is not lost; cancelled on both it is, and it is said which. One that registers
    again is noticed."""
    with (
        Watch(peers.second, peers.first) as watch,
        Strangers(peers.second, count=2, every=60, duration=60, owner="seen") as strangers,
    ):
        kept, gone = strangers.keys
        watch.expect([kept, gone])
        time.sleep(2)
        watch.check()
        strangers.register(kept)
        time.sleep(1)
        assert {key: watch.registered_again(key) for key in strangers.keys} == {kept: 1, gone: 0}
        delete(peers.first, gone, replicated=True)
        time.sleep(1)
        watch.check()
        delete(peers.second, gone)
        time.sleep(1)
        with pytest.raises(AssertionError, match=f"{gone.id} was UP nowhere"):
            watch.check()
        assert watch.lost.keys() == {gone}
        watch.forget([kept])
        delete(peers.second, kept)


def delete(server: EurekaServer, key: Key, *, replicated: bool = False) -> None:
    """Cancels an instance; `replicated`: as if the other peer had told of it, so that it is not told."""
    headers = {"x-netflix-discovery-replication": "true"} if replicated else {}
    with server.session() as session:
        session.delete(f"{server.url}/apps/{key.app}/{key.id}", headers=headers, timeout=10).raise_for_status()
