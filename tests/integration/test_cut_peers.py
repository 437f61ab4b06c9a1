"""Two real peers with faults between them: one is killed during a pass, replication is cut, one is
slow, or we are cut from one.

Two programs run at the same time, one with batches and one without, except where the cut is during
a pass. Each time a watch reads both peers without pause, by uncached reads. None of our UP
instances may be gone from both. Instances of another owner, renewed at the second peer, must stay
as they are.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from eurekube_sync.embedded.http import Request
from tests.integration.cut_scene import ADDRESSES, Ours, Scene, program
from tests.integration.program import CountingProxy, Registry
from tests.integration.test_safety import shop  # noqa: F401 - a fixture
from tests.servers.eureka import EurekaServer, ProxiedPair, proxied_eureka_pair
from tests.servers.kube import KubernetesServers
from tests.servers.toxiproxy import Toxiproxy
from tests.servers.world import KubernetesWorld, write_kubeconfig
from tests.soak.strangers import Strangers
from tests.soak.watch import Key, Watch
from tests.waiting import wait_until

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("crd", "shop")]

LEASE = 10
"""In seconds. After a renewal it is twice as long."""
LONG_LEASE = 60
"""No instance may expire by itself before the test looks for it."""
WATCH_SECONDS = 0.5
"""An instance that is gone from both stays so until the next pass, at least a second later."""
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def peers(toxiproxy: Toxiproxy) -> Iterator[ProxiedPair]:
    """Two peers. After each test both run, and their connections work."""
    with proxied_eureka_pair(toxiproxy) as pair:
        yield pair


@pytest.fixture
def modes() -> tuple[str, ...]:
    """`--eureka-batch` of each program."""
    return ("off", "on")


@pytest.fixture
def lease() -> int:
    """The duration of all leases."""
    return LEASE


@pytest.fixture
def scene(
    peers: ProxiedPair,
    toxiproxy: Toxiproxy,
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    tmp_path: Path,
    modes: tuple[str, ...],
    lease: int,
) -> Iterator[Scene]:
    """All connections work, and both peers have our instances and those of others. The owner names
    are the test's own."""
    config = write_kubeconfig(
        tmp_path / "kubeconfig",
        url=kubernetes_servers.url,
        token=kubernetes_servers.admin_token,
        ca_file=kubernetes_servers.ca_file,
    )
    with ExitStack() as opened:
        ways = [
            toxiproxy.proxy(f"{server.host}:{server.port}")
            for server in (peers.first, peers.second)
        ]
        for way in ways:
            opened.callback(toxiproxy.remove, way)
        urls = [f"http://{way.address}/eureka" for way in ways]
        number = next(_numbers)
        programs = [
            Ours(
                batch=batch,
                owner=f"cut-{number}-{batch}",
                lease=lease,
                world=opened.enter_context(program(urls, config, batch, lease)),
            )
            for batch in modes
        ]
        found = Scene(
            peers=peers,
            us_to_first=ways[0],
            us_to_second=ways[1],
            programs=programs,
            cluster=kubernetes_world,
            watch=opened.enter_context(
                Watch(peers.first, peers.second, round_seconds=WATCH_SECONDS)
            ),
            strangers=opened.enter_context(
                Strangers(peers.second, count=5, every=1, duration=LEASE)
            ),
        )
        found.begin()
        yield found
        for way in (peers.to_first, peers.to_second):
            way.if_gone()
        if peers.first.pid is None:
            peers.first.start()


@pytest.mark.parametrize("modes", [("off",), ("on",)], ids=lambda modes: f"batch-{modes[0]}")
def test_a_peer_is_killed_in_mid_pass_and_comes_back_empty(scene: Scene, tmp_path: Path) -> None:
    """The peer answers the list and some renewals of a pass, or the probe for batches, and nothing
    more. The pass ends well with the other peer."""
    (ours,) = scene.programs
    killer = KillerOf(scene.peers.first, spare=5 if ours.batch == "off" else 1)
    with (
        CountingProxy(f"http://{scene.us_to_first.address}", before=killer.before) as to_first,
        program(
            [f"{to_first.url}/eureka", f"http://{scene.us_to_second.address}/eureka"],
            tmp_path / "kubeconfig",
            ours.batch,
            ours.lease,
        ) as ours.world,
    ):
        scene.run(2)
        to_first.clear()
        scene.replace_one()
        killer.armed.set()

        def was_killed() -> bool:
            scene.run()
            return scene.peers.first.pid is None

        wait_until(
            was_killed, "no pass writes to the first peer"
        )  # a busy peer answers late and is left alone
        assert to_first.methods()["GET"] >= 1, "the pass had its list from it"
        assert killer.spared == killer.spare, "and what came before the kill"
        assert scene.stand_on(scene.peers.second, ours) == len(scene.desired)
        scene.watch.check()
        scene.run_for(2 * LEASE)
        with ThreadPoolExecutor(1) as pool:
            started = pool.submit(scene.peers.first.start)
            while not started.done():
                scene.run()
            started.result()
        scene.healed()


def test_replication_is_cut_for_longer_than_a_lease(scene: Scene) -> None:
    """Instances that only the first peer renews expire on the second, unless batches reach it. When
    replication works again, both have all instances, and the changes made meanwhile."""
    single, batched = scene.programs
    scene.peers.to_first.drop()
    scene.peers.to_second.drop()
    scene.run_for(2 * LEASE)

    def lapsed() -> bool:
        scene.run()
        return scene.stand_on(scene.peers.second, single) == 0

    wait_until(lapsed, "the second peer holds what nobody renews there")
    assert scene.stand_on(scene.peers.first, single) == len(ADDRESSES)
    assert [scene.stand_on(server, batched) for server in scene.servers] == [len(ADDRESSES)] * 2
    scene.replace_one()
    scene.run(2)
    scene.peers.to_first.if_gone()
    scene.peers.to_second.if_gone()
    scene.healed()


@pytest.mark.parametrize("lagging", ["first", "second"])
def test_a_peer_answers_late(scene: Scene, lagging: str) -> None:
    """It answers us late, and the other peer later than that one waits. This lasts for two
    leases."""
    first = lagging == "first"
    for way in (
        (scene.us_to_first, scene.peers.to_first)
        if first
        else (scene.us_to_second, scene.peers.to_second)
    ):
        way.lag(0.4)
    scene.run_for(LEASE)
    scene.replace_one()
    scene.run_for(LEASE)
    scene.watch.check()
    for way in (scene.us_to_first, scene.us_to_second, scene.peers.to_first, scene.peers.to_second):
        way.if_gone()
    scene.healed()


@pytest.mark.parametrize("lease", [LONG_LEASE])
@pytest.mark.parametrize("cut", ["first", "second"])
def test_the_program_is_cut_from_one_peer(scene: Scene, cut: str) -> None:
    """A removal and a registration reach it by replication from the other peer."""
    way = scene.us_to_first if cut == "first" else scene.us_to_second
    way.drop()
    scene.run(2)
    scene.replace_one()
    scene.run(2)
    scene.watch.check()
    way.if_gone()
    scene.healed()


@pytest.mark.parametrize("lease", [LONG_LEASE])
def test_the_second_peer_is_cut_from_all(scene: Scene) -> None:
    """An instance that is cancelled meanwhile stays there. It is cancelled when the connection
    works again."""
    ways = (scene.us_to_second, scene.peers.to_second, scene.peers.to_first)
    for way in ways:
        way.drop()
    scene.run(1)
    scene.replace_one()
    scene.run(2)
    ghosts = [ours.key(address) for ours in scene.programs for address in scene.gone]
    assert [Registry(url=scene.peers.second.url).status(*key) for key in ghosts] == ["UP"] * len(
        ghosts
    )
    for way in ways:
        way.if_gone()
    scene.healed()


class KillerOf:
    """Kills a server in the middle of a pass's writes, when it is armed."""

    def __init__(self, server: EurekaServer, *, spare: int) -> None:
        """`spare` is the number of writes that still get through."""
        self._server = server
        self._lock = threading.Lock()
        self.spare = spare
        self.armed = threading.Event()
        self.spared = 0
        """The number of writes that got through."""

    def before(self, request: Request) -> None:
        """It is called for each call before it is forwarded."""
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
    """An instance on one peer is not lost. Cancelled on both it is, and the watch names it. A new
    registration is noticed."""
    with (
        Watch(peers.second, peers.first) as watch,
        Strangers(peers.second, count=2, every=60, duration=60, owner="seen") as strangers,
    ):
        kept, gone = strangers.keys
        watch.expect([kept, gone])
        first = Registry(url=peers.first.url)
        wait_until(
            lambda: all(first.status(*key) for key in strangers.keys), "the first peer was not told"
        )
        a_round(watch)
        watch.check()
        strangers.register(kept)
        wait_until(
            lambda: watch.registered_again(kept) == 1,
            "it was not noticed that one registered again",
        )
        assert watch.registered_again(gone) == 0
        delete(peers.first, gone, replicated=True)
        a_round(watch)
        watch.check()
        delete(peers.second, gone)
        a_round(watch)
        with pytest.raises(AssertionError, match=f"{gone.id} was UP nowhere"):
            watch.check()
        assert watch.lost.keys() == {gone}
        watch.forget([kept])
        delete(peers.second, kept)


def a_round(watch: Watch) -> None:
    """Wait until every instance was read after this moment."""
    rounds = watch.rounds
    wait_until(lambda: watch.rounds >= rounds + 2, "nobody looks any more")


def delete(server: EurekaServer, key: Key, *, replicated: bool = False) -> None:
    """Cancel an instance. `replicated` makes it look as if the other peer sent it, so that it is
    not sent on."""
    headers = {"x-netflix-discovery-replication": "true"} if replicated else {}
    with server.session() as session:
        session.delete(
            f"{server.url}/apps/{key.app}/{key.id}", headers=headers, timeout=30
        ).raise_for_status()
