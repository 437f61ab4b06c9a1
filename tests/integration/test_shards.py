"""The number of shards changes while processes of both numbers run. No instance is lost, and few syncers move."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.desired.scope import Shard
from eurekube_sync.model.kubernetes import SyncerRef
from tests.integration.hand_made import make_app, make_namespace, make_syncer, remove_app, slices_of
from tests.integration.program import CountingProxy, Program, Registry
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

NS, OWNER = "shards", "sharded"
APPS = tuple(f"part{number}" for number in range(12))
ADDRESSES = {app: f"10.23.{number}.1" for number, app in enumerate(APPS)}


def shard_of(app: str, count: int) -> int:
    """The shard of an app, among this many."""
    syncer = SyncerRef(NS, app)
    return next(index for index in range(count) if Shard(index=index, count=count).holds(syncer))


def key(app: str) -> tuple[str, str]:
    """The key of the app's only instance."""
    return app.upper(), f"{OWNER}:{NS}:{app}:{ADDRESSES[app]}:8080"


def dated(registry: Registry, app: str) -> str:
    """The time of its instance's last registration or change."""
    instance = registry.instance(*key(app))
    assert instance is not None
    return str(instance["lastDirtyTimestamp"])


@dataclass
class Process:
    """A daemon of one shard, with a proxy of its own, so that each call can be assigned to it."""

    program: Program
    running: subprocess.Popen[str]

    def touched(self, method: str) -> set[str]:
        """The apps that it called by this method."""
        paths = [call.path for call in self.program.eureka.calls if call.method == method]
        return {found[1].lower() for path in paths if (found := re.search(r"/apps/([^/]+)", path))}

    def end(self) -> None:
        """End it by SIGTERM. It must exit well."""
        self.running.terminate()
        _, err = self.running.communicate(timeout=60)
        assert self.running.returncode == 0, err


class Lookout:
    """Reads every instance all the time, by uncached reads."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.rounds = 0
        self.lost: set[str] = set()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            self.lost |= {app for app in APPS if self._registry.status(*key(app)) != "UP"}
            self.rounds += 1

    def __enter__(self) -> Lookout:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


@pytest.fixture
def processes(
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    eureka: EurekaServer,
    crd: None,
    tmp_path: Path,
) -> Iterator[Any]:
    """Starts the daemons of a number of shards. There are twelve apps, with a syncer each."""
    make_namespace(kubernetes_world, NS)
    for app, address in ADDRESSES.items():
        make_app(kubernetes_world, NS, app, [address])
        make_syncer(kubernetes_world, NS, app, app)
    made: list[Process] = []
    with ExitStack() as opened:

        def start(count: int) -> list[Process]:
            started = []
            for index in range(count):
                folder = tmp_path / f"{len(made)}"
                folder.mkdir()
                program = Program(
                    kubernetes=opened.enter_context(
                        CountingProxy(kubernetes_servers.url, ca_file=kubernetes_servers.ca_file)
                    ),
                    eureka=opened.enter_context(CountingProxy(eureka.url.removesuffix("/eureka"))),
                    token=kubernetes_servers.admin_token,
                    folder=folder,
                    owner=OWNER,
                    options=("--daemon", "--interval=1s", "--registry-cache=3s", f"--lock={NS}/lock"),
                )
                started.append(Process(program, program.start(f"--shard={index}/{count}")))
                made.append(started[-1])
            return started

        yield start
        for process in made:
            process.running.kill()
            process.running.communicate()
    for app in APPS:
        remove_app(kubernetes_world, NS, app)


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2)], ids=["more", "fewer"])
def test_the_number_of_shards_changes_while_both_run(
    before: int, after: int, processes: Any, registry: Registry, kubernetes_world: KubernetesWorld
) -> None:
    """The new processes renew all instances and register none again. Only the shard that is added or removed moves
    apps. Instances that change meanwhile are registered once or twice, and stay."""
    moved = {app for app in APPS if shard_of(app, before) != shard_of(app, after)}
    assert 0 < len(moved) < len(APPS) / 2
    assert {max(shard_of(app, before), shard_of(app, after)) for app in moved} == {2}
    old = processes(before)
    wait_until(lambda: all(registry.status(*key(app)) == "UP" for app in APPS), "the old ones did not register")
    dates = {app: dated(registry, app) for app in APPS}
    for app in APPS:
        registry.list_follows(app.upper(), [key(app)[1]])

    with Lookout(registry) as lookout:
        new = processes(after)
        theirs = [{app for app in APPS if shard_of(app, after) == index} for index in range(after)]
        wait_until(lambda: [process.touched("PUT") for process in new] == theirs, "the new ones renew others")
        changed = next(iter(moved))
        piece = kubernetes_world.request("GET", f"{slices_of(NS)}/{changed}-1")
        piece["endpoints"].append({"addresses": ["10.23.99.1"], "conditions": {"ready": True}})
        kubernetes_world.request("PUT", f"{slices_of(NS)}/{changed}-1", piece)
        added = (changed.upper(), f"{OWNER}:{NS}:{changed}:10.23.99.1:8080")
        wait_until(lambda: registry.status(*added) == "UP", "what came meanwhile is not registered")
        for process in old:
            process.end()
        rounds = lookout.rounds
        wait_until(lambda: lookout.rounds > rounds + 20, "nobody looks any more")
        assert registry.status(*added) == "UP"
        for process in new:
            process.end()

    assert lookout.lost == set()
    assert [process.touched("DELETE") for process in (*old, *new)] == [set()] * (before + after)
    assert set().union(*(process.touched("POST") for process in new)) <= {changed}
    assert {app: dated(registry, app) for app in APPS} == dates
