"""A browser for all tests, and status pages of several sizes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from eurekube_sync.cli.monitoring.metrics import Monitor
from eurekube_sync.cli.monitoring.server import serving
from eurekube_sync.cli.output.report import summary
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.model.kubernetes import PodReadiness
from eurekube_sync.model.sources import Server
from eurekube_sync.model.struct import replace
from tests.browser.chromium import Chromium, chromium
from tests.servers import toolchains
from tests.unit.worlds.build import endpoint, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

SERVERS = {
    "http://eureka-1.shop.example.com:8761/eureka": "200",
    "http://eureka-2.shop.example.com:8761/eureka": "none",
}
"""Their last answers."""


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """It fails, and is never skipped, where no Chromium can be had."""
    with chromium(toolchains.chromium(), tmp_path_factory.mktemp("chromium")) as started:
        yield started


def town(syncers: int, broken: int, *, held: bool = False) -> Monitor:
    """A daemon's monitor after some passes over so many syncers in seven namespaces. Of the broken
    ones each third has no Service, no ready pod, or one of two. With `held`, the Services of most
    select nothing any more, while the pods run."""
    world = FakeWorld()
    for number in range(syncers):
        namespace, app = f"team-{number % 7}", f"app-{number:03}"
        is_broken = number < broken
        labels = {"app": f"{app}s" if is_broken and number % 3 == 0 else app}
        ready = [not is_broken or number % 3 == 2, not is_broken]
        ends = []
        for place, is_ready in enumerate(ready):
            address = f"10.{number // 250}.{number % 250}.{place + 1}"
            ends.append(endpoint(address=address, ready=is_ready, pod=f"{app}-{place}"))
        world.cluster.apply(
            syncer(app, namespace=namespace, created=world.clock.now(), selector={"app": app}),
            service(app, namespace=namespace, labels=labels),
            piece(*ends, namespace=namespace, service=app),
        )
    monitor = Monitor(world.clock, "prod", "all", allowed=200, keeps_reports=True)
    monitor.has_lock("eurekube-sync/prod", lambda: True)
    monitor.uses(SERVERS)
    for number in range(6):
        if held and number == 3:
            _select_nothing(world)
        report = world.run()
        code = of_report(report, fail_on_held=False, detailed=False)
        monitor.passed(report, code, summary(report), 0.41)
        world.later(30)
    for address, answer in SERVERS.items():
        monitor.called(Server.EUREKA, address, answer)
    world.later(12)
    return monitor


def _select_nothing(world: FakeWorld) -> None:
    for slice_ in world.cluster.slices:
        for end in slice_.endpoints:
            assert end.pod is not None
            world.cluster.pods.setdefault(slice_.namespace, ())
            world.cluster.pods[slice_.namespace] += (end.pod,)
            world.cluster.readiness[end.pod.uid] = PodReadiness(
                namespace=slice_.namespace,
                name=end.pod.name,
                uid=end.pod.uid,
                ready=end.ready,
                registered=False,
                running=end.ready,
            )
    world.cluster.slices = [replace(slice_, endpoints=()) for slice_ in world.cluster.slices]


@contextmanager
def served(monitor: Monitor) -> Iterator[str]:
    """The address of its first page."""
    with serving(monitor, "127.0.0.1", 0, interval=30) as url:
        yield f"{url}/"


@pytest.fixture(scope="session")
def village() -> Iterator[str]:
    """The page of three syncers, of which one is broken."""
    with served(town(3, 1)) as url:
        yield url


@pytest.fixture(scope="session")
def city() -> Iterator[str]:
    """The page of 311 syncers, of which 34 are broken."""
    with served(town(311, 34)) as url:
        yield url


@pytest.fixture(scope="session")
def night() -> Iterator[str]:
    """The same when a change of labels is held."""
    with served(town(311, 34, held=True)) as url:
        yield url
