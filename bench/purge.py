"""`owner purge` of 5,000 instances: seconds, and how much of them its reads take, which no batch would spare.

Run `python bench/purge.py [URL]` with the address of a Eureka server that nobody else uses, such as
http://localhost:8761/eureka; without one it takes the embedded server, in this very process. The server's work is in
the figures.
"""

from __future__ import annotations

import platform
import sys
import time
from contextlib import ExitStack

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka.everywhere import SIZE
from eurekube_sync.cli.connect import Connection, connect_registry
from eurekube_sync.cli.options.eureka import EurekaAccess
from eurekube_sync.desired.scope import Scope
from eurekube_sync.embedded.eureka import EmbeddedEureka
from eurekube_sync.embedded.http import LoopbackServer
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, LeaseTimes, Port
from eurekube_sync.model.ports import Dated
from eurekube_sync.owner.purge import look_before_purge, purge
from eurekube_sync.owner.world import OwnerWorld

APPS, INSTANCES = 500, 5_000
OWNER, CLUSTER = "bench", "bench-cluster"


def instance(number: int) -> Instance:
    """One of ten of its app."""
    app, address = f"BENCH-{number % APPS}", f"10.{number // 62_500}.{number // 250 % 250}.{number % 250}"
    return Instance(
        key=InstanceKey(app, f"{OWNER}:shop:{app.lower()}:{address}:8080"),
        host_name=address,
        ip_addr=address,
        port=Port(8080, True),
        secure_port=Port(443, False),
        vip_address=app.lower(),
        secure_vip_address=app.lower(),
        status=InstanceStatus.UP,
        lease=LeaseTimes(30, 300),
        metadata={"eurekube.owner": OWNER, "eurekube.cluster": CLUSTER, "eurekube.syncer": f"shop/{app.lower()}"},
    )


def register(url: str) -> None:
    """All of them, in batches; waits until the server's list shows them."""
    clock = SystemClock()
    with connect_registry(Connection(eureka=EurekaAccess(eureka_url=url), eureka_batch="on"), clock) as world:
        world.registry.list_instances()
        batches = world.registry.batches()
        assert batches is not None, world.registry.batching()
        now = int(time.time() * 1000)
        for start in range(0, INSTANCES, SIZE):
            batches.register([Dated(instance(one), now) for one in range(start, min(start + SIZE, INSTANCES))])
        while True:
            listed = world.registry.list_instances()
            if sum(one.metadata.get("eurekube.owner") == OWNER for one in getattr(listed, "data", ())) == INSTANCES:
                return
            time.sleep(0.5)


def seconds(url: str) -> tuple[float, float]:
    """How long the command takes from its list to its last answer; and before it an uncached read of each instance."""
    clock = SystemClock()
    with connect_registry(Connection(eureka=EurekaAccess(eureka_url=url), sweep_interval=1.0), clock) as made:
        world = OwnerWorld(registry=made.registry, clock=clock, workers=made.workers)
        keys = [instance(number).key for number in range(INSTANCES)]
        begun = time.perf_counter()
        assert None not in world.transfer.read(keys).values()
        reads = time.perf_counter() - begun
        begun = time.perf_counter()
        report = purge(world, look_before_purge(world, owner=OWNER, cluster=CLUSTER, scope=Scope()), dry_run=False)
        took = time.perf_counter() - begun
    assert report.summary == f"{INSTANCES} cancelled", report.summary
    return took, reads


def main() -> None:
    """Measure, and leave nothing in the server."""
    with ExitStack() as stack:
        if len(sys.argv) > 1:
            url = sys.argv[1]
        else:
            server = stack.enter_context(LoopbackServer(EmbeddedEureka(time.time).handle))
            url = f"{server.url}/eureka"
        register(url)
        took, reads = seconds(url)
    kind = "given" if len(sys.argv) > 1 else "embedded"
    print(f"{platform.platform()}, Python {platform.python_version()}, {kind} server")
    print(f"purge of {INSTANCES} instances {took:6.1f} s; to read them uncached alone {reads:.1f} s")


if __name__ == "__main__":
    main()
