"""What a daemon registers again while Eureka cannot be listed, through whole passes."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.desired.spec import DRAIN_ANNOTATION
from eurekube_sync.model.errors import RegistryUnavailable
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import Pod
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import LastSeen
from tests.unit.plan.test_left_alone import lose_all, standing
from tests.unit.worlds.build import (
    DENIED,
    DOWN,
    NS,
    REF,
    UP,
    changed,
    endpoint,
    foreign,
    key,
    piece,
    service,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld

PODS = 4
LIMITS: tuple[Any, ...] = (3, "75%", {"share": "75%"})


def daemon(*, cache: float = 0, **spec: Any) -> FakeWorld:
    """An app of four ready pods, in sync with a process that remembers. The brake does not hold its
    last instance. Eureka's lists are up to `cache` seconds old."""
    world = FakeWorld(cache=cache)
    world.brake = BrakeLimits(loss_percent=100, apps_percent=100, apps_floor=10, confirm_after=0)
    world.renewals = RenewalLedger(period=30, slack=15)
    world.last_seen = LastSeen()
    world.cluster.apply(
        service(), syncer(**spec), piece(*(endpoint(n) for n in range(1, PODS + 1)))
    )
    world.cluster.apply(
        syncer("other", selector={"app": "other"}), service("other", labels={"app": "other"})
    )
    world.cluster.apply(piece(endpoint(98), service="other"))
    world.registry.put(changed(foreign(app="dc"), vip_address="rating"))
    passes(world)
    return world


def passes(world: FakeWorld) -> None:
    """Passes for half a minute, so that some leases become due."""
    for _ in range(4):
        world.run()
        world.later(10)


def warms_up(world: FakeWorld, *, away: int = 0) -> None:
    """Eureka is away for this many seconds and comes back empty. It refuses lists, and takes
    writes."""
    world.registry.unreadable = DENIED
    keys = [*world.registry.held]
    world.registry.held.clear()
    world.registry.refuse = dict.fromkeys(keys, RegistryUnavailable("it did not answer"))
    for _ in range(away // 10):
        world.run()
        world.later(10)
    world.registry.refuse = {}


def up(world: FakeWorld) -> set[InstanceKey]:
    """The UP instances of the app."""
    return {one for one, status in standing(world).items() if status is UP}


def replica_of(world: FakeWorld) -> FakeWorld:
    """Another process with the same servers, without a lock between the two."""
    beside = FakeWorld()
    beside.cluster, beside.registry = world.cluster, world.registry
    beside.clock, beside.brake = world.clock, world.brake
    return beside


def test_an_instance_that_another_process_cancelled_is_not_registered_again() -> None:
    """Another process ran with `--approve` beside the daemon. Eureka did not lose the instance."""
    world = daemon()
    beside = replica_of(world)
    world.cluster.apply(syncer(appName="next"))
    beside.run()
    world.run()
    left = world.statuses()
    assert {name.split()[0] for name in left} == {"dc", "NEXT", "OTHER"}
    world.cluster.apply(syncer(suspend=True))
    passes(world)
    assert world.statuses() == left


@pytest.mark.parametrize("what", ["limit", "not ready", "terminating", "down and lost"])
def test_nor_is_one_that_its_syncer_left_out_when_it_was_missing(what: str) -> None:
    """Another process did what the syncer asked for before the daemon looked. The suspension comes
    with the old spec and the old endpoints, and changes nothing."""
    world = daemon()
    beside = replica_of(world)
    others = [endpoint(number) for number in range(1, PODS)]
    match what:
        case "limit":
            world.cluster.apply(syncer(limit=1))
        case "not ready":
            world.cluster.apply(
                syncer(notReady="Cancel"), piece(*others, endpoint(PODS, ready=False))
            )
        case "terminating":
            ending = endpoint(PODS, ready=False, terminating=True)
            world.cluster.apply(piece(*others, ending))
        case "down and lost":
            world.cluster.apply(piece(*others, endpoint(PODS, ready=False)))
    beside.run()
    world.registry.held.pop(key(PODS), None)
    world.run()
    left = up(world)
    assert len(left) < PODS
    world.cluster.apply(syncer(suspend=True), piece(*others, endpoint(PODS)))
    passes(world)
    assert up(world) == left


def test_nor_is_one_that_it_cancelled_while_eureka_could_not_be_read_here() -> None:
    """The daemon saw that nothing wants the instance, and not that it went."""
    world = daemon()
    beside = replica_of(world)
    world.cluster.apply(syncer(appName="next"))
    world.registry.unreadable = DENIED
    world.run()
    world.registry.unreadable = None
    beside.run()
    left = world.statuses()
    assert {name.split()[0] for name in left} == {"dc", "NEXT", "OTHER"}
    world.cluster.apply(syncer(suspend=True))
    passes(world)
    assert world.statuses() == left


@pytest.mark.parametrize("then", [{}, {"limit": 3}])
@pytest.mark.parametrize("limit", [2, "50%", {"share": "50%"}, 0])
@pytest.mark.parametrize("read", [True, False])
def test_nor_is_one_that_it_cancelled_for_a_limit_that_was_lifted(
    limit: object, then: dict[str, Any], read: bool
) -> None:
    """The daemon saw the limit, with Eureka's list or without it, before the person suspended the
    syncer and lifted the limit."""
    world = daemon(**then)
    beside = replica_of(world)
    world.cluster.apply(syncer(limit=limit))
    if read:
        beside.run()
        world.run()
    else:
        world.registry.unreadable = DENIED
        world.run()
        world.registry.unreadable = None
        beside.run()
    left = standing(world)
    assert len(left) < 3
    world.cluster.apply(syncer(suspend=True, **then))
    passes(world)
    assert standing(world) == left


def test_one_over_a_limit_does_not_come_back_while_eureka_cannot_be_read() -> None:
    """Other pods have its place, and the limit is the same."""
    world = daemon(limit=2, notReady="Cancel")
    before = standing(world)
    others = {key(n) for n in range(1, PODS + 1)} - before.keys()
    ready = {n: key(n) in others for n in range(1, PODS + 1)}
    world.cluster.apply(piece(*(endpoint(n, ready=ready[n]) for n in ready)))
    beside = replica_of(world)
    beside.run()
    world.cluster.apply(piece(*(endpoint(n) for n in ready)))
    world.run()
    left = standing(world)
    assert sum(status is UP for status in left.values()) == 2
    warms_up(world)
    passes(world)
    assert len(up(world)) <= 2


def test_one_that_was_unwanted_for_a_moment_and_stands_comes_back_if_eureka_loses_it() -> None:
    """A renewal showed after that moment that nobody cancelled it."""
    world = daemon()
    before = standing(world)
    world.registry.unreadable = DENIED
    world.cluster.apply(syncer(appName="next"))
    world.run()
    world.cluster.apply(syncer(suspend=True))
    world.registry.unreadable = None
    passes(world)
    assert standing(world) == before
    world.registry.held.clear()
    passes(world)
    assert standing(world) == before


@pytest.mark.parametrize("away", [0, 300])
@pytest.mark.parametrize("limit", LIMITS)
def test_a_limited_app_is_registered_again_at_once(limit: object, away: int) -> None:
    """The instances that were registered come back, and no others."""
    world = daemon(limit=limit)
    before = standing(world)
    assert len(before) == 3
    warms_up(world, away=away)
    for _ in range(3):
        passes(world)
        assert standing(world) == before


def test_an_instance_whose_lease_must_have_expired_is_forgotten() -> None:
    """It would have expired in a Eureka without an outage too."""
    world = daemon(limit=3)
    warms_up(world, away=630)
    passes(world)
    assert up(world) == set()


def test_a_suspended_app_is_registered_again_as_it_was() -> None:
    """An instance that was DOWN stays away, even if its pod is ready now. So does one that was
    never registered."""
    world = daemon(notReady="Down")
    world.cluster.apply(piece(*(endpoint(n, ready=n != 4) for n in range(1, PODS + 1))))
    passes(world)
    world.cluster.apply(syncer(suspend=True), piece(*(endpoint(n) for n in range(1, PODS + 2))))
    passes(world)
    assert standing(world) == {key(1): UP, key(2): UP, key(3): UP, key(4): DOWN}
    warms_up(world)
    for _ in range(3):
        passes(world)
        assert standing(world) == dict.fromkeys((key(1), key(2), key(3)), UP)


def test_a_syncer_suspended_during_an_outage_gets_its_instances_back() -> None:
    """To suspend may be a person's first reaction to the outage."""
    world = daemon()
    before = standing(world)
    warms_up(world, away=60)
    world.cluster.apply(syncer(suspend=True))
    passes(world)
    assert standing(world) == before


def test_an_instance_that_was_just_cancelled_is_not_registered_again() -> None:
    """A lowered limit removed it in the last pass that could list Eureka."""
    world = daemon(limit=3)
    world.cluster.apply(syncer(limit=2))
    world.run()
    before = standing(world)
    assert len(before) == 2
    warms_up(world)
    for _ in range(3):
        passes(world)
        assert standing(world) == before


@pytest.mark.parametrize(("limit", "places"), [(2, 2), ("50%", 2), ({"share": "50%"}, 1), (0, 0)])
def test_under_another_limit_nothing_is_registered_again(limit: object, places: int) -> None:
    """The new limit may have fewer places, and the mark would name the wrong limit."""
    world = daemon(limit="75%")
    warms_up(world)
    world.cluster.apply(syncer(limit=limit))
    passes(world)
    assert up(world) == set()
    world.registry.unreadable = None
    passes(world)
    assert len(up(world)) == places


def test_another_pod_at_a_remembered_address_is_not_registered() -> None:
    """The suspended syncer did not have this pod."""
    world = daemon()
    world.cluster.apply(syncer(suspend=True))
    passes(world)
    others = [endpoint(1, pod="rating-9"), *(endpoint(n) for n in range(2, PODS + 1))]
    world.cluster.apply(piece(*others))
    warms_up(world)
    passes(world)
    assert up(world) == {key(2), key(3), key(4)}


def test_instances_are_remembered_under_the_limit_of_the_pass_that_wrote_them() -> None:
    """In the last pass before the outage two instances are registered and one is updated."""
    world = daemon(limit=1)
    world.cluster.apply(syncer(limit=3))
    world.run()
    before = standing(world)
    assert len(before) == 3
    warms_up(world)
    passes(world)
    assert standing(world) == before


def test_an_instance_that_is_registered_again_is_remembered() -> None:
    """Eureka loses all instances twice. The first time an old list still shows them."""
    world = daemon(limit=3)
    before = standing(world)
    lose_all(world)
    world.later(29)
    world.run()
    assert standing(world) == before
    warms_up(world)
    passes(world)
    assert standing(world) == before


def test_an_instance_whose_update_failed_is_remembered_under_the_old_limit() -> None:
    """Its mark has the earlier limit, so it does not count as registered under the new one."""
    world = daemon(limit=3)
    before = standing(world)
    refused = min(before)
    world.registry.refuse_register[refused] = RegistryUnavailable("it did not answer")
    world.cluster.apply(syncer(limit=4))
    world.run()
    assert len(up(world)) == 4
    world.registry.refuse_register.clear()
    warms_up(world)
    passes(world)
    assert up(world) == {key(n) for n in range(1, PODS + 1)} - {refused}


def test_a_process_that_starts_then_registers_nothing_again() -> None:
    """It cannot know what was registered."""
    world = daemon(limit=3)
    world.last_seen = LastSeen()
    warms_up(world)
    passes(world)
    assert up(world) == set()


@pytest.mark.parametrize("spec", [{}, {"appName": "fresh"}])
def test_while_drains_cannot_be_read_only_former_up_instances_are_registered_again(
    spec: dict[str, Any],
) -> None:
    """A pod that is drained, or may be, does not come back under any name."""
    world = daemon()
    world.pod_drains = True
    drained = Pod(name="rating-1", uid="uid-of-rating-1", annotations={DRAIN_ANNOTATION: "true"})
    world.cluster.pods[NS] = (drained,)
    passes(world)
    assert standing(world)[key(1)] is DOWN
    world.cluster.unknown["pods", NS] = DENIED
    world.cluster.apply(syncer(**spec), piece(*(endpoint(n) for n in range(1, PODS + 2))))
    warms_up(world)
    passes(world)
    found = {one for one in world.registry.held if one.app in ("RATING", "FRESH")}
    assert found == (set() if spec else {key(2), key(3), key(4)})
    world.registry.unreadable = None
    world.cluster.unknown.clear()
    passes(world)
    app = spec.get("appName", "rating")
    assert standing_of(world, app) == {
        f"10.0.0.{n}": "DOWN" if n == 1 else "UP" for n in range(2, PODS + 2)
    }


def test_a_pod_that_is_known_not_to_be_drained_comes_up_though_eureka_cannot_be_read() -> None:
    world = daemon()
    world.pod_drains = True
    world.cluster.apply(piece(*(endpoint(n) for n in range(1, PODS + 2))))
    warms_up(world)
    passes(world)
    assert len(up(world)) == PODS + 1


def standing_of(world: FakeWorld, app: str) -> dict[str, str]:
    """The statuses by address."""
    return {
        one.instance.ip_addr: one.status.value
        for one in world.registry.held.values()
        if one.key.app == app.upper()
    }


# --- Another syncer -------------------------------------------------------------------------------

SUCCESSORS = pytest.mark.parametrize("name", ["rating", "rating-next"])


def succeeded(world: FakeWorld, name: str) -> None:
    """Create a suspended syncer in the place of the one that is gone."""
    world.cluster.apply(replace(syncer(name, suspend=True), uid="uid-of-the-successor"))


@SUCCESSORS
@pytest.mark.parametrize("meanwhile", ["no pass", "a pass", "a pass without a list of syncers"])
def test_nothing_that_a_deletion_cancelled_comes_back_for_a_suspended_successor(
    name: str, meanwhile: str
) -> None:
    """Another replica ended the deletion."""
    world = daemon()
    beside = replica_of(world)
    world.cluster.delete(REF)
    beside.run()
    world.later(50)
    beside.run()
    assert REF not in world.cluster.syncers
    if meanwhile == "a pass without a list of syncers":
        world.cluster.unknown["syncers", "*"] = DENIED
    if meanwhile != "no pass":
        world.run()
    world.cluster.unknown.clear()
    succeeded(world, name)
    for _ in range(3):
        passes(world)
        assert standing(world) == {}


@SUCCESSORS
def test_an_old_list_does_not_hide_that_a_deletion_cancelled_an_instance(name: str) -> None:
    """The deletion ends at once, because a person abandons it."""
    world = daemon(cache=30)
    beside = replica_of(world)
    world.run()
    world.cluster.delete(REF)
    abandoned = replace(world.cluster.syncers[REF], annotations={"eurekube.io/abandon": "true"})
    world.cluster.syncers[REF] = abandoned
    beside.run()
    assert REF not in world.cluster.syncers
    succeeded(world, name)
    for _ in range(3):
        passes(world)
        assert standing(world) == {}


@SUCCESSORS
def test_what_stands_for_a_suspended_successor_comes_back(name: str) -> None:
    """Nobody cancelled it when the first syncer went."""
    world = daemon()
    succeeded(world, name)
    if name == "rating":
        world.cluster.syncers[REF] = replace(world.cluster.syncers[REF], uid="uid-of-the-successor")
    else:
        del world.cluster.syncers[REF]
    passes(world)
    before = standing(world)
    assert len(before) == PODS
    world.registry.held.clear()
    passes(world)
    assert standing(world) == before


def test_what_was_seen_before_the_syncers_could_be_listed_comes_back() -> None:
    """The process starts while the API server refuses that list."""
    world = daemon()
    world.cluster.apply(syncer(suspend=True))
    world.last_seen, world.renewals = LastSeen(), RenewalLedger(period=30, slack=15)
    world.cluster.unknown["syncers", "*"] = DENIED
    passes(world)
    before = standing(world)
    world.registry.held.clear()
    world.run()
    world.cluster.unknown.clear()
    passes(world)
    assert standing(world) == before


def test_what_is_renewed_between_passes_comes_back_for_a_suspended_successor() -> None:
    """No lease is due in a pass. So the pass that sees the successor lets the next one renew."""
    world = daemon()
    del world.cluster.syncers[REF]
    succeeded(world, "rating")
    before = standing(world)
    for _ in range(3):
        falling_due = world.renewals.falling_due(frozenset(before), world.clock.time + 20)
        for due in falling_due:
            world.renewals.note(due, world.clock.time)
        world.run()
        world.later(10)
    world.registry.held.clear()
    passes(world)
    assert standing(world) == before
