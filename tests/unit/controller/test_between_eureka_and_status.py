"""What a pass wrote to Eureka counts although its status could not be written, and what Eureka says
in ever new words is written once."""

from __future__ import annotations

from contextlib import suppress

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.apply.status import FIRST_PART_SECONDS, REWORDED_SECONDS
from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.model.deadline import Schedule
from eurekube_sync.model.errors import RegistryRejected
from eurekube_sync.model.kubernetes import EndpointPort, ServicePort
from eurekube_sync.model.ownership import OWNER
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import OwnWrites
from tests.unit.controller.test_lost_apps import setting
from tests.unit.controller.test_reconcile import add_app, article, pods
from tests.unit.worlds.build import (
    REF,
    endpoint,
    foreign,
    instance,
    key,
    piece,
    service,
    stored,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld, Killed

HTTP = ServicePort(name="http", port=80, target=8080)
WEB = ServicePort(name="web", port=90, target=9090)


def ports(world: FakeWorld) -> set[str]:
    """The port numbers under which RATING is registered."""
    return {held.id.rsplit(":", 1)[1] for held in world.registry.held if held.app == "RATING"}


def test_what_eureka_lists_counts_before_an_older_status() -> None:
    """The pass that moved the app to port 9090 ended before it wrote the status. Then the port gets
    another name."""
    world = FakeWorld()
    world.sightings = Sightings()
    for number, name in enumerate(("x", "y"), 50):
        add_app(world, name, number)
    both = (EndpointPort(name="http", port=8080), EndpointPort(name="web", port=9090))
    listed = replace(piece(endpoint(1), endpoint(2)), ports=both)
    world.cluster.apply(syncer(port="http"), service("rating", HTTP, WEB), listed)
    for _ in range(2):
        world.run()
        world.later(30)
    served = world.cluster.syncers[REF]
    world.cluster.syncers[REF] = replace(served, spec={**served.spec, "port": "web"}, generation=2)
    write_status = world.cluster._write_status

    def kill(*_: object) -> None:
        raise Killed

    world.cluster._write_status = kill  # type: ignore[method-assign, assignment]
    with suppress(Killed):
        world.run()
    world.cluster._write_status = write_status  # type: ignore[method-assign]
    assert ports(world) == {"9090"}
    renamed = (both[0], EndpointPort(name="web2", port=9090))
    web2 = ServicePort(name="web2", port=90, target=9090)
    world.cluster.apply(service("rating", HTTP, web2), replace(listed, ports=renamed))
    for _ in range(3):
        world.later(30)
        world.run()
        assert ports(world) == {"9090"}


def test_a_lost_app_is_not_written_again_for_each_new_word_of_eureka() -> None:
    """Its message ends in those of a failed call, which has a new request id in each pass."""
    world = setting()
    world.rewording = Schedule(REWORDED_SECONDS, first_part=FIRST_PART_SECONDS)
    world.later(30)
    world.run()
    world.registry.held.pop(key(1))
    writes = 0
    for number in range(20):
        world.registry.refuse[key(1)] = RegistryRejected(f"500: request id {number}")
        world.later(10)
        world.run()
        writes += sum(call.startswith("write_status") for call in world.wire.calls)
    assert writes <= 3


def test_no_read_renews_what_another_owner_leaves_to_expire() -> None:
    """Another owner serves the syncer, too, and came first. Our instance of an ended pod waits to
    expire, and a read by a batch would renew it."""
    world = article()
    world.registry.batch_size = 1
    world.own_writes = OwnWrites(seconds=45)
    ours, world.owner = world.owner, "other"
    world.run()
    world.later(1)
    for number in (1, 2):
        now = int(world.clock.now() * 1000)
        world.registry.put(replace(stored(instance(number)), last_dirty_timestamp=now))
    world.owner = ours
    world.renewals = RenewalLedger(period=30, slack=15)
    world.run()
    pods(world, endpoint(1))
    world.cluster.ended.add("uid-of-rating-2")
    begun = world.clock.now()
    while key(2) in world.registry.held and world.clock.now() < begun + 900:
        for held, other in list(world.registry.held.items()):
            if other.metadata.get(OWNER) == "other":
                world.registry.renew(held)
        world.registry.renew(foreign().key)
        world.run()
        world.later(10)
        world.registry.evict()
    assert key(2) not in world.registry.held
    assert world.clock.now() - begun < 700
