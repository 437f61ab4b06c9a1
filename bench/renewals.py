"""Renewals call by call and in batches, by our own client in 16 threads: how many times more a second batches make.

Run `python bench/renewals.py URL` with a Eureka server's address, such as http://localhost:8761/eureka; without one it
takes the embedded server, in this very process. Prints the machine and both rates; only their ratio says something
about the code, and on one machine the server's work is in it.
"""

from __future__ import annotations

import platform
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka import ConnectionOptions, EurekaAddress, EurekaClient
from eurekube_sync.adapters.eureka.batches import BatchingRegistry, BatchMode
from eurekube_sync.adapters.eureka.everywhere import SIZE
from eurekube_sync.adapters.workers import ThreadWorkers
from eurekube_sync.embedded.eureka import EmbeddedEureka
from eurekube_sync.embedded.http import LoopbackServer
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, LeaseTimes, Port
from eurekube_sync.model.ports import Batched, Dated

APPS, INSTANCES, THREADS, ROUNDS = 200, 2_000, 16, 3


def instance(number: int) -> Instance:
    """One of ten of its app."""
    app, address = f"BENCH-{number % APPS}", f"10.{number // 62_500}.{number // 250 % 250}.{number % 250}"
    return Instance(
        key=InstanceKey(app, f"bench:shop:{app.lower()}:{address}:8080"),
        host_name=address,
        ip_addr=address,
        port=Port(8080, True),
        secure_port=Port(443, False),
        vip_address=app.lower(),
        secure_vip_address=app.lower(),
        status=InstanceStatus.UP,
        lease=LeaseTimes(30, 300),
        metadata={"eurekube.owner": "bench", "eurekube.syncer": f"shop/{app.lower()}"},
    )


def rate(renew_all: Callable[[], bool]) -> float:
    """Renewals a second, the best of some rounds; every one has to have worked."""
    found = 0.0
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        assert renew_all(), "not all were renewed"
        found = max(found, INSTANCES / (time.perf_counter() - begun))
    return found


def main() -> None:
    """Measure, and leave nothing in the server."""
    clock = SystemClock()
    with ExitStack() as stack:
        if len(sys.argv) > 1:
            url = sys.argv[1]
        else:
            server = stack.enter_context(LoopbackServer(EmbeddedEureka(time.time).handle))
            url = f"{server.url}/eureka"
        options = ConnectionOptions(address=EurekaAddress.parse(url), concurrency=THREADS)
        client = stack.enter_context(EurekaClient(options, clock=clock, random=random.Random(0)))
        workers = stack.enter_context(ThreadWorkers(THREADS))
        own = stack.enter_context(ThreadWorkers(THREADS))
        registry = BatchingRegistry(
            client, {url: client}, mode=BatchMode.ON, clock=clock, limit=TimeLimit(clock), workers=own
        )
        registry.list_instances()
        batches = registry.batches()
        assert batches is not None, registry.batching()
        instances = [instance(number) for number in range(INSTANCES)]
        keys = [one.key for one in instances]
        chunks = [keys[start : start + SIZE] for start in range(0, INSTANCES, SIZE)]
        now = int(time.time() * 1000)
        for start in range(0, INSTANCES, SIZE):
            batches.register([Dated(one, now) for one in instances[start : start + SIZE]])
        many = batches.renew

        singly = rate(lambda: all(workers.each(client.renew, keys)))
        batched = rate(lambda: all(answers == [Batched.DONE] * len(answers) for answers in workers.each(many, chunks)))
        for chunk in chunks:
            batches.cancel(chunk, ours=lambda _: True)
    kind = "given" if len(sys.argv) > 1 else "embedded"
    print(f"{platform.platform()}, Python {platform.python_version()}, {kind} server")
    print(f"call by call {singly:8,.0f} renewals/s")
    print(f"in batches   {batched:8,.0f} renewals/s   {batched / singly:.0f} times as many")


if __name__ == "__main__":
    main()
