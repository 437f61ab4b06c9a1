"""How evenly a daemon renews many leases, and what a stranger's own renewals take meanwhile: all that is due in a pass
at once, against spread between the passes.

Run `python -m bench.evenness [--singly] [--instances N] [URL]` from the checkout; the URL is a Eureka server's address,
such as http://localhost:8761/eureka, and without one the real server of `tox -e servers` is started. A daemon's passes,
those of `keepalive`, are made each 10 s, first the one way, then the other. Prints the machine and both; only their
ratios say something about the code. The stranger is a process of its own, which renews one lease 50 times a second.
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import platform
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

from bench.renewals import instance
from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka import ConnectionOptions, EurekaAddress, EurekaClient
from eurekube_sync.adapters.eureka.batches import BatchingRegistry, BatchMode
from eurekube_sync.adapters.eureka.everywhere import SIZE
from eurekube_sync.adapters.workers import ThreadWorkers
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.controller.between_passes import BetweenPasses
from eurekube_sync.controller.keepalive import KeepaliveSettings, RegistryWorld, keepalive
from eurekube_sync.controller.loop import Schedule, run_passes
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.ports import Dated, Registry

THREADS, INTERVAL, PASSES, WINDOW = 16, 10.0, 7, 0.1
SETTLED = 3
"""Passes that are not counted: the first renews all at once either way, and a period goes by until all is even."""
STRANGER = InstanceKey("STRANGER", "stranger:8080")
Sample = tuple[float, float]
"""When a call of the stranger began, monotonic, and the seconds that it took."""


class CountingClient(EurekaClient):
    """Remembers when each renewal was answered."""

    sent: list[tuple[float, int]]

    def renew(self, key: InstanceKey) -> bool:
        """One."""
        answer = super().renew(key)
        self.sent.append((time.monotonic(), 1))
        return answer

    def replicate(self, body: bytes, *, items: int) -> tuple[int, ...]:
        """A batch."""
        answer = super().replicate(body, items=items)
        if items > 1 or b"PROBE" not in body:
            self.sent.append((time.monotonic(), items))
        return answer


def stranger(url: str, pipe: Connection) -> None:
    """Renews its one lease until it is told to end, then sends its samples."""
    where = urlsplit(url)
    assert where.hostname is not None
    calls = http.client.HTTPConnection(where.hostname, where.port or 80)
    samples: list[Sample] = []
    while not pipe.poll(max(0.0, 0.02 - (samples[-1][1] if samples else 0.0))):
        begun = time.monotonic()
        calls.request("PUT", f"{where.path}/apps/{STRANGER.app}/{STRANGER.id}")
        answer = calls.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        samples.append((begun, time.monotonic() - begun))
    pipe.send(samples)


@contextmanager
def server(url: str | None) -> Iterator[str]:
    """The given one, or a real one for as long."""
    if url is not None:
        yield url
        return
    from tests.servers.eureka import EurekaServer

    with EurekaServer() as real:
        yield real.url


def daemon(registry: Registry, clock: SystemClock, limit: TimeLimit, workers: ThreadWorkers, *, even: bool) -> float:
    """So many passes; when those begin that count."""
    ledger = RenewalLedger(period=30, slack=INTERVAL / 2)
    world = RegistryWorld(registry=registry, clock=clock, workers=workers, time_limit=limit, renewals=ledger)
    begun: list[float] = []

    def one_pass() -> PassReport:
        begun.append(clock.monotonic())
        return keepalive(world, KeepaliveSettings(owner="bench"))

    between = BetweenPasses(world, ledger, interval=INTERVAL) if even else None
    run_passes(one_pass, clock, Schedule(passes=PASSES, interval=INTERVAL), lambda _report, _code: None, between)
    return begun[SETTLED]


def measured(
    url: str, client: CountingClient, registry: Registry, clock: SystemClock, limit: TimeLimit, *, even: bool
) -> tuple[float, float, list[float]]:
    """Renewals in the fullest window, on average in a window, and the stranger's times in ms."""
    here, there = multiprocessing.Pipe()
    other = multiprocessing.get_context("spawn").Process(target=stranger, args=(url, there))
    with ThreadWorkers(THREADS) as workers:
        other.start()
        client.sent = []
        since = daemon(registry, clock, limit, workers, even=even)
        until = since + (PASSES - 1 - SETTLED) * INTERVAL
        here.send(None)
        samples: list[Sample] = here.recv()
        other.join()
    windows: Counter[int] = Counter()
    for at, number in client.sent:
        if since <= at < until:
            windows[int((at - since) / WINDOW)] += number
    took = [1000 * seconds for at, seconds in samples if since <= at < until]
    return max(windows.values()), sum(windows.values()) * WINDOW / (until - since), took


def main() -> None:
    """Measure both, and leave nothing in the server."""
    options = argparse.ArgumentParser()
    options.add_argument("url", nargs="?")
    options.add_argument("--instances", type=int, default=10_000)
    options.add_argument("--singly", action="store_true")
    given = options.parse_args()
    clock = SystemClock()
    limit = TimeLimit(clock)
    with ExitStack() as stack:
        url = stack.enter_context(server(given.url))
        connection = ConnectionOptions(address=EurekaAddress.parse(url), concurrency=THREADS)
        client = stack.enter_context(CountingClient(connection, clock=clock, random=random.Random(0), limit=limit))
        client.sent = []
        own = stack.enter_context(ThreadWorkers(THREADS))
        batching = BatchingRegistry(client, {url: client}, mode=BatchMode.ON, clock=clock, limit=limit, workers=own)
        batching.list_instances()
        batches = batching.batches()
        assert batches is not None, batching.batching()
        instances = [instance(number) for number in range(given.instances)]
        now = int(time.time() * 1000)
        strange = replace(instance(0), key=STRANGER, metadata={})
        chunks = [instances[start : start + SIZE] for start in range(0, len(instances), SIZE)]
        for chunk in [*chunks, [strange]]:
            batches.register([Dated(one, now) for one in chunk])
        time.sleep(2)
        registry: Registry = client if given.singly else batching
        found = {
            way: measured(url, client, registry, clock, limit, even=even)
            for way, even in (("all that is due at once", False), ("spread between the passes", True))
        }
        limit.end_at(float("inf"))
        for chunk in [*chunks, [strange]]:
            batches.cancel([one.key for one in chunk], ours=lambda _: True)
    out = [
        f"{platform.platform()}, Python {platform.python_version()}, {'given' if given.url else 'real Spring'} Eureka",
        f"{given.instances} instances, a pass each {INTERVAL:g} s, {'call by call' if given.singly else 'in batches'}",
        f"{'':28}{'renewals in 100 ms':>20}{'':>9}{'a stranger waits, ms':>26}",
        f"{'':28}{'most':>10}{'average':>10}{'ratio':>9}{'median':>10}{'99 %':>8}{'longest':>10}",
    ]
    for way, (most, average, took) in found.items():
        quantile = statistics.quantiles(took, n=100)[98]
        out.append(
            f"{way:28}{most:>10,.0f}{average:>10,.0f}{most / average:>9.1f}"
            f"{statistics.median(took):>10.1f}{quantile:>8.1f}{max(took):>10.1f}"
        )
    (burst, _, waits), (even, _, waits_even) = found.values()
    spike, spike_even = (statistics.quantiles(took, n=100)[98] for took in (waits, waits_even))
    longest = max(waits) / max(waits_even)
    out.append(f"{'once / spread':28}{burst / even:>10.1f}{'':>29}{spike / spike_even:>8.1f}{longest:>10.1f}")
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
