"""Whether a former installation is at work, and what becomes of its leases while nothing shows it.

These are whole passes, like those of `test_former_marks`.
"""

from __future__ import annotations

import pytest

from eurekube_sync.cli.output.report import sentences
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.errors import RegistryError, RegistryRejected, RegistryUnavailable
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.ownership import CLUSTER, NO_FORMER, OWNER, SYNCER
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.former import FormerUnread, judge
from tests.unit.controller.test_reconcile import add_app, article, pods
from tests.unit.desired.test_drain import drained
from tests.unit.observe.test_former_marks import BOTH, MOVED, NEW, by_owner, code, ended, later
from tests.unit.worlds.build import NS, OWNERSHIP, changed, endpoint, piece, seen, service, syncer
from tests.unit.worlds.build import OWNER as OLD
from tests.unit.worlds.fakes import FakeWorld

DOWN = {"10.0.0.1": "DOWN", "10.0.0.2": "UP"}
APPS = {"cart": 3, "pay": 4, "list": 5}


def moving(world: FakeWorld) -> None:
    """From now on the new installation makes the passes."""
    world.owner, world.former = NEW, MOVED


def of_old(world: FakeWorld) -> list[InstanceKey]:
    """The keys that bear the old mark."""
    return [key for key, stored in world.registry.held.items() if stored.metadata.get(OWNER) == OLD]


def renewed_by_the_old_one(world: FakeWorld, app: str) -> None:
    """The old installation renews the instances of this app."""
    for key in of_old(world):
        if key.app == app.upper():
            world.registry.renew(key)


@pytest.fixture
def world() -> FakeWorld:
    """Four apps that the old owner registered. It ended 100 s ago."""
    world = article()
    for name, number in APPS.items():
        add_app(world, name, number)
    later(world, 1)
    world.run()
    ended(world, 100)
    moving(world)
    return world


ALL = {**BOTH, "10.0.0.3": "UP", "10.0.0.4": "UP", "10.0.0.5": "UP"}


# --- Nothing tells --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [RegistryUnavailable("503"), RegistryRejected("500")], ids=["503", "500"]
)
@pytest.mark.parametrize("app", ["", "pay"], ids=["every read", "one app"])
def test_no_lease_ends_while_single_reads_fail(
    world: FakeWorld, error: RegistryError, app: str
) -> None:
    """Lists work, and say nothing of renewals. Nothing is moved, and for twenty minutes each lease
    is renewed. A pass that can read some of them may take our own renewal for one of the old
    installation."""
    for key in of_old(world):
        if key.app.startswith(app.upper()):
            world.registry.refuse_read[key] = error
    codes = []
    for _ in range(40):
        codes.append(code(world.run()))
        later(world, 30)
        world.registry.evict()
        assert by_owner(world) == {OLD: ALL}
    assert codes[0] is ExitCode.INCOMPLETE
    assert set(codes) <= {ExitCode.INCOMPLETE, *([ExitCode.OWNER_CLASH] if app else [])}
    assert codes.count(ExitCode.INCOMPLETE) > 20
    world.registry.refuse_read.clear()
    for _ in range(5):
        world.run()
        later(world, 30)
    assert by_owner(world) == {NEW: ALL}


def test_an_instance_that_cannot_be_read_proves_nothing(world: FakeWorld) -> None:
    """The report says so, and does not say that the old installation is at work. The next pass may
    move all."""
    for key in of_old(world):
        if key.app == "PAY":
            world.registry.refuse_read[key] = RegistryRejected("500 for PAY")
    report = world.run()
    assert sentences(report)[0] == (
        f"it is not known whether owner {OLD} still renews the instances of 1 syncer, such as "
        f"{NS}/pay. This pass is "
        "refused: the leases that would end were renewed, and nothing else was done. Why it is "
        "not known: 500 for PAY"
    )
    assert (code(report), [type(verdict) for verdict in report.former]) == (
        ExitCode.INCOMPLETE,
        [FormerUnread],
    )
    assert world.wire.writes() == []


def test_another_instance_of_the_syncer_tells_as_well(world: FakeWorld) -> None:
    """One instance cannot be read for good. The other one of its syncer shows that nobody renews
    them."""
    (first, _) = (key for key in of_old(world) if key.app == "RATING")
    world.registry.refuse_read[first] = RegistryRejected("500")
    world.run()
    assert by_owner(world)[NEW].keys() == ALL.keys()


def test_of_a_dead_pod_nothing_is_renewed_while_nothing_tells(world: FakeWorld) -> None:
    """Its instance ends as it would without the move."""
    pods(world, endpoint(1))
    world.cluster.ended.add("uid-of-rating-2")
    world.registry.refuse_read = {
        key: RegistryUnavailable("503") for key in of_old(world) if key.app == "PAY"
    }
    for _ in range(25):
        world.run()
        later(world, 30)
        world.registry.evict()
    assert by_owner(world) == {OLD: {address: "UP" for address in ALL if address != "10.0.0.2"}}


def test_an_instance_that_bears_the_old_mark_is_renewed_beside_another_owner(
    world: FakeWorld,
) -> None:
    """Half of them are moved when a third owner, older than we are, stops this installation."""
    refused = InstanceKey("RATING", f"{NEW}:{NS}:rating:10.0.0.1:8080")
    world.registry.refuse_register[refused] = RegistryUnavailable("503")
    world.run()
    assert by_owner(world)[OLD].keys() == {"10.0.0.1"}
    for stored in list(world.registry.held.values()):
        if stored.metadata.get(OWNER) == NEW:
            key = InstanceKey(stored.key.app, stored.key.id.replace(NEW, "third", 1))
            metadata = {**stored.metadata, OWNER: "third"}
            third = changed(stored, key=key, metadata=metadata, last_dirty_timestamp=1)
            world.registry.put(third)
    for stored in (world.registry.held[key] for key in of_old(world)):
        key = InstanceKey(stored.key.app, stored.key.id.replace(OLD, "third", 1))
        metadata = {**stored.metadata, OWNER: "third"}
        world.registry.put(changed(stored, key=key, metadata=metadata, last_dirty_timestamp=1))
    for _ in range(25):
        later(world, 30)
        for key, stored in list(world.registry.held.items()):
            if stored.metadata.get(OWNER) == "third":
                world.registry.renew(key)
        assert code(world.run()) is ExitCode.OWNER_CLASH
        world.registry.evict()
    assert by_owner(world)[OLD].keys() == {"10.0.0.1"}


# --- By whose clock -------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [-600, -100, 100, 600])
def test_our_clock_does_not_turn_the_verdict(ahead: float) -> None:
    """Eureka's clock is minutes ahead of ours, or behind it."""
    world = article()
    world.registry.seconds_ahead = ahead
    later(world, 1)
    world.run()
    moving(world)
    for _ in range(3):
        later(world, 30)
        renewed_by_the_old_one(world, "rating")
        later(world, 10)
        assert code(world.run()) is ExitCode.OWNER_CLASH
        assert by_owner(world) == {OLD: BOTH}
    ended(world, 85)
    assert code(world.run()) is ExitCode.OK
    assert by_owner(world) == {NEW: BOTH}


NOW = 1_800_000_000_000  # ms
OF_OLD = {OWNER: OLD, CLUSTER: OWNERSHIP.cluster, SYNCER: f"{NS}/rating"}
REPLACES = replace(OWNERSHIP, owner=NEW, former=MOVED)


def of_old_owner(*, last_renewal: int = 0, read_at: int = 0) -> ObservedInstance:
    """An instance under the old mark with these times of Eureka's."""
    instance = seen(InstanceKey("RATING", "old"), metadata=OF_OLD)
    return replace(instance, last_renewal=last_renewal, registered=last_renewal, read_at=read_at)


@pytest.mark.parametrize(
    ("reading", "why"),
    [
        (of_old_owner(last_renewal=NOW), "Eureka's answer has no time (Date)"),
        (of_old_owner(read_at=NOW), "Eureka's answer does not say when the instance was renewed"),
    ],
    ids=["no date", "no lease"],
)
def test_an_answer_without_times_proves_nothing(reading: ObservedInstance, why: str) -> None:
    """Its zeros are no times."""
    (verdict,) = judge([reading], {reading.key: reading}, REPLACES).verdicts
    assert isinstance(verdict, FormerUnread)
    assert verdict.why == why


# --- An installation that renews only a part ------------------------------------------------------


def test_an_old_installation_that_serves_one_syncer_of_many_is_not_overlooked() -> None:
    """There are a hundred others in its namespace, each with more instances."""
    world = article()
    pods(world, *(endpoint(number) for number in range(1, 41)))
    for number in range(100, 200):
        add_app(world, f"app-{number}", number)
    later(world, 1)
    world.run()
    ended(world, 100)
    renewed_by_the_old_one(world, "app-151")
    moving(world)
    report = world.run()
    assert code(report) is ExitCode.OWNER_CLASH
    assert sentences(report) == [
        f"owner clash: instances of owner {OLD} were renewed in the last 90 s: those of 1 syncer, "
        "such as "
        f"{NS}/app-151. Stop the old installation, and run again 90 s later. This pass is "
        "refused: the leases that "
        "would end were renewed, and nothing else was done"
    ]
    assert world.wire.writes() == []


def test_one_that_serves_only_another_namespace_is_not_overlooked() -> None:
    """Of two old installations, each with `-n`, one was stopped."""
    world = article()
    for name, number in (("cart", 7), ("pay", 8)):
        world.cluster.apply(
            syncer(name, namespace="other", selector={"app": name}),
            service(name, namespace="other", labels={"app": name}),
            piece(endpoint(number), service=name, namespace="other"),
        )
    later(world, 1)
    world.run()
    ended(world, 60)
    world.scope = Scope(namespaces=frozenset({"other"}))
    world.run()
    ended(world, 60)
    world.scope = Scope()
    moving(world)
    assert code(world.run()) is ExitCode.OWNER_CLASH


def test_what_an_ended_part_of_the_old_installation_left_is_renewed_while_another_part_works(
    world: FakeWorld,
) -> None:
    """Else its leases would end in ten minutes, because nobody else renews them."""
    for _ in range(40):
        renewed_by_the_old_one(world, "cart")
        assert code(world.run()) is ExitCode.OWNER_CLASH
        assert not [call for call in world.wire.calls if call.startswith("renew CART")], (
            "they are left to it"
        )
        later(world, 30)
        world.registry.evict()
        assert by_owner(world) == {OLD: ALL}
    for _ in range(5):
        world.run()
        later(world, 30)
    assert by_owner(world) == {NEW: ALL}


@pytest.mark.parametrize("gone", [1, 2])
def test_an_instance_that_the_old_installation_has_just_cancelled_hides_it_not(gone: int) -> None:
    """It is still in the list, and its syncer has another one, which is renewed."""
    world = article()
    later(world, 1)
    world.run()
    world.registry.cached_for(300)
    later(world, 20)
    key = InstanceKey("RATING", f"{OLD}:{NS}:rating:10.0.0.{gone}:8080")
    world.registry.cancel(key)
    moving(world)
    assert code(world.run()) is ExitCode.OWNER_CLASH


def test_what_moved_or_ended_meanwhile_stops_nothing() -> None:
    """Readings show a newer state than the list."""
    moved = of_old_owner(last_renewal=NOW, read_at=NOW)
    moved = changed(moved, metadata={**OF_OLD, OWNER: NEW})
    listed = of_old_owner()
    assert judge([listed], {listed.key: moved}, REPLACES).verdicts == ()
    assert judge([listed], {listed.key: None}, REPLACES).verdicts == ()


# --- Endpoints that are not ready -----------------------------------------------------------------


def unready(world: FakeWorld) -> None:
    """The first pod fails its readiness probe."""
    pods(world, endpoint(1, ready=False), endpoint(2))


@pytest.fixture
def down() -> FakeWorld:
    """The old owner registered two pods. The first one was ready once, and is DOWN now."""
    world = article()
    later(world, 1)
    world.run()
    unready(world)
    for _ in range(3):
        later(world, 30)
        world.run()
    assert by_owner(world) == {OLD: DOWN}
    ended(world, 100)
    moving(world)
    return world


def test_an_instance_that_is_down_moves_as_it_is(down: FakeWorld) -> None:
    """It was ready once, so it is registered DOWN under the new id, and UP when its pod is ready
    again."""
    report = down.run()
    assert [call.split()[0] for call in down.wire.writes()[:4]] == [
        "register",
        "register",
        "cancel",
        "cancel",
    ]
    assert (code(report), by_owner(down)) == (ExitCode.OK, {NEW: DOWN})
    pods(down, endpoint(1), endpoint(2))
    later(down, 30)
    down.run()
    assert by_owner(down) == {NEW: BOTH}


def test_an_instance_that_is_down_stays_until_its_new_one_is_registered(down: FakeWorld) -> None:
    """Eureka refuses the new one."""
    new = InstanceKey("RATING", f"{NEW}:{NS}:rating:10.0.0.1:8080")
    down.registry.refuse_register[new] = RegistryUnavailable("503")
    for _ in range(30):
        down.run()
        later(down, 30)
        down.registry.evict()
        assert by_owner(down)[OLD] == {"10.0.0.1": "DOWN"}
    down.registry.refuse_register.clear()
    down.run()
    assert by_owner(down) == {NEW: DOWN}


def test_an_instance_that_is_down_stays_while_its_new_id_cannot_be_read(down: FakeWorld) -> None:
    """Another owner's instance may have that id."""
    new = InstanceKey("RATING", f"{NEW}:{NS}:rating:10.0.0.1:8080")
    down.registry.refuse_read[new] = RegistryRejected("500")
    for _ in range(30):
        down.run()
        later(down, 30)
        down.registry.evict()
        assert by_owner(down) == {OLD: {"10.0.0.1": "DOWN"}, NEW: {"10.0.0.2": "UP"}}
    down.registry.refuse_read.clear()
    down.run()
    assert by_owner(down) == {NEW: DOWN}


def test_a_drained_instance_moves_as_it_is(down: FakeWorld) -> None:
    """A person drained the Service while the old installation worked."""
    down.owner, down.former = OLD, NO_FORMER
    pods(down, endpoint(1), endpoint(2))
    down.run()
    down.cluster.apply(drained(service()))
    later(down, 30)
    down.run()
    both = {"10.0.0.1": "DOWN", "10.0.0.2": "DOWN"}
    assert by_owner(down) == {OLD: both}
    ended(down, 100)
    moving(down)
    for _ in range(3):
        down.run()
        later(down, 30)
    assert by_owner(down) == {NEW: both}


def test_a_pod_that_was_never_ready_is_not_registered_by_a_move(down: FakeWorld) -> None:
    """Nothing bears the old mark for it."""
    pods(down, endpoint(1, ready=False), endpoint(2), endpoint(3, ready=False))
    down.run()
    assert by_owner(down) == {NEW: DOWN}


def test_a_pod_that_became_unready_meanwhile_is_moved_to_down() -> None:
    """The old installation left it UP."""
    world = article()
    later(world, 1)
    world.run()
    ended(world, 100)
    unready(world)
    moving(world)
    for _ in range(3):
        world.run()
        later(world, 30)
    assert by_owner(world) == {NEW: DOWN}
