"""The program dies, or a call fails, at every call of a pass. Two clean passes later the result is
the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from eurekube_sync.model.actions import Renew
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import (
    DENIED,
    NS,
    OUT,
    REF,
    changed,
    endpoint,
    foreign,
    instance,
    key,
    piece,
    service,
    stored,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld, Killed, When

pytestmark = pytest.mark.usefixtures("both_ways")


def base(*, cache: float = 30) -> FakeWorld:
    """Two syncers of three pods and the data centre's own instance, after the first passes."""
    world = FakeWorld(cache=cache)
    world.registry.put(foreign())
    world.cluster.apply(
        syncer(),
        service(),
        piece(endpoint(1), endpoint(2)),
        syncer("web", selector={"app": "web"}),
        service("web", labels={"app": "web"}),
        piece(endpoint(3), service="web"),
    )
    return world


def settled(*, cache: float = 30) -> FakeWorld:
    """The world some passes later."""
    world = base(cache=cache)
    for _ in range(2):
        world.run()
        world.later(46)
    world.run()
    assert world.wire.writes() == []
    world.later(46)
    return world


def first_pass() -> FakeWorld:
    """None of our instances is registered."""
    return base()


def rollout() -> FakeWorld:
    """One pod terminates, one is new, one is no longer ready, and one is ready again."""
    world = settled()
    world.cluster.apply(piece(endpoint(1), endpoint(2, ready=False), endpoint(5)))
    world.run()
    world.later(46)
    world.cluster.apply(
        piece(endpoint(1, ready=False), endpoint(2), endpoint(4), endpoint(5, terminating=True))
    )
    return world


def deletion() -> FakeWorld:
    """A syncer is being deleted."""
    world = settled()
    world.cluster.delete(REF)
    return world


def deletion_at_its_end() -> FakeWorld:
    """Every instance is cancelled, and the finalizer is removed next."""
    world = deletion()
    world.run()
    world.later(46)
    return world


def succession() -> FakeWorld:
    """A syncer is being deleted and another claims its pods."""
    world = settled()
    world.cluster.apply(syncer("successor"))
    world.cluster.delete(REF)
    return world


def lapse() -> FakeWorld:
    """Eureka lost two instances, which its list still shows."""
    world = settled()
    world.registry.list_instances()
    for lost in (key(1), key(3, app="web")):
        del world.registry.held[lost]
    return world


def renaming() -> FakeWorld:
    """The app gets another name under the same VIP."""
    world = settled()
    world.cluster.apply(syncer(appName="stars", vipAddress="rating", metadata={"a": "1"}))
    return world


def trouble() -> FakeWorld:
    """A conflict, an orphan, an override, a broken syncer."""
    world = settled()
    world.registry.override(key(1), OUT)
    world.registry.put(stored(instance(7, ref=SyncerRef(NS, "gone"))))
    world.registry.put(changed(foreign(), key=key(4)))
    world.cluster.apply(piece(endpoint(1), endpoint(2), endpoint(4)))
    world.cluster.apply(syncer("web", selector={"app": "web"}, port="grpc"))
    return world


def held() -> FakeWorld:
    """All our instances would be removed."""
    world = settled()
    world.cluster.apply(piece(), piece(service="web"))
    return world


SCENES: dict[str, Callable[[], FakeWorld]] = {
    scene.__name__: scene
    for scene in (
        first_pass,
        rollout,
        deletion,
        deletion_at_its_end,
        succession,
        lapse,
        renaming,
        trouble,
        held,
    )
}


def fixpoint(world: FakeWorld) -> tuple[Any, ...]:
    """The state that must be the same: the instances and their owners, the syncers, their
    finalizers and conditions."""
    instances = {
        one.key: changed(
            one, last_dirty_timestamp=0, last_renewal=0, registered=0, metadata=dict(one.metadata)
        )
        for one in world.registry.held.values()
    }
    syncers = {
        ref: (
            one.finalizers,
            one.status and replace(one.status, conditions=()),
            one.status and [(c.type, c.status, c.reason, c.message) for c in one.status.conditions],
        )
        for ref, one in world.cluster.syncers.items()
    }
    return instances, syncers


def finish(world: FakeWorld) -> tuple[Any, ...]:
    """Make two clean passes, and a third one that only renews."""
    for _ in range(2):
        world.later(46)
        world.run()
    world.later(46)
    report = world.run()
    assert world.wire.writes() == []
    assert {type(action) for action in report.plan.actions} <= {Renew}
    return fixpoint(world)


def points(scene: Callable[[], FakeWorld]) -> Iterator[tuple[int, When]]:
    """Every call of the scene's next pass, before and after its effect."""
    world = scene()
    world.run()
    for number in range(len(world.wire.calls)):
        for when in When:
            yield number, when


@pytest.mark.parametrize("name", SCENES)
def test_a_pass_that_is_killed_anywhere_ends_where_it_would_have(name: str) -> None:
    """It is killed before and after every call to Eureka and to Kubernetes."""
    scene = SCENES[name]
    untouched = scene()
    untouched.run()
    expected = finish(untouched)
    for point in points(scene):
        world = scene()
        world.wire.kill = point
        with pytest.raises(Killed):
            world.run()
        world.wire.kill = None
        assert finish(world) == expected, point


@pytest.mark.parametrize("name", SCENES)
def test_a_pass_in_which_any_call_fails_ends_where_it_would_have(name: str) -> None:
    """Each call fails once with its port's error, before or after its effect. No instance is
    removed that should stay."""
    scene = SCENES[name]
    untouched = scene()
    before = untouched.statuses()
    untouched.run()
    after = untouched.statuses()
    expected = finish(untouched)
    for point in points(scene):
        world = scene()
        world.wire.fail = point
        world.run()
        world.wire.fail = None
        call = world.wire.calls[point[0]]
        assert gone(before, world.statuses()) <= gone(before, after), call
        assert finish(world) == expected, call


def gone(before: dict[str, str], now: dict[str, str]) -> set[str]:
    """The instances that callers lost."""
    return {name for name, status in before.items() if status == "UP" and now.get(name) != "UP"}


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("verb", ["renew", "register", "cancel", "write_status"])
def test_a_call_that_fails_stops_no_other_of_its_kind(name: str, verb: str) -> None:
    """A failed action is an outcome, and every other action is still tried."""
    scene = SCENES[name]
    untouched = scene()
    untouched.run()
    calls = list(untouched.wire.calls)
    kind = {call for call in calls if call.startswith(f"{verb} ")}
    for number, call in enumerate(calls):
        if call in kind:
            world = scene()
            world.wire.fail = (number, When.AFTER)
            world.run()
            assert kind <= set(world.wire.calls), call


def test_a_killed_first_pass_without_eurekas_list_is_completed_later() -> None:
    """The pass registers while Eureka cannot be read, and is killed. A later pass finishes when
    Eureka can be read."""
    untouched = base()
    untouched.run()
    expected = finish(untouched)

    def blind() -> FakeWorld:
        world = base()
        world.registry.unreadable = DENIED
        return world

    for point in points(blind):
        world = blind()
        world.wire.kill = point
        with pytest.raises(Killed):
            world.run()
        world.wire.kill = None
        world.registry.unreadable = None
        assert finish(world) == expected, point
