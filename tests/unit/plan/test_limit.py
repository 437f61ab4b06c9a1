"""A syncer with a limit, through whole passes: which instances are registered, stay, or are
removed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.cli.output.report import sentences
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.limit import LIMIT
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Cancel, Grounds, Update
from eurekube_sync.model.errors import RegistryUnavailable
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.plan.left_out import within_limits
from tests.processor_time import processor_seconds
from tests.unit.worlds.build import (
    DOWN,
    NS,
    REF,
    changed,
    desired,
    endpoint,
    foreign,
    instance,
    key,
    observed,
    piece,
    service,
    stored,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld

UNREADABLE = Unknown(cause=Cause.UNAVAILABLE, message="it did not answer")


def data_centre(count: int) -> list[ObservedInstance]:
    """This many instances of the VIP register themselves."""
    return [
        changed(foreign(f"dc-{number}:rating:8080"), ip_addr=f"192.0.2.{number}")
        for number in range(count)
    ]


def setting(*, pods: int, others: int = 0, cache: float = 0, **spec: Any) -> FakeWorld:
    """A Service with this many ready pods, and this many instances in the data centre."""
    world = FakeWorld(cache=cache)
    world.brake = BrakeLimits(loss_percent=100, apps_floor=10)
    world.cluster.apply(service(), syncer(**spec))
    ready(world, range(1, pods + 1))
    world.registry.put(*data_centre(others))
    return world


def ready(world: FakeWorld, numbers: Iterable[int], not_ready: Iterable[int] = ()) -> None:
    """Set the pods behind the Service."""
    world.cluster.apply(
        piece(*(endpoint(n) for n in numbers), *(endpoint(n, ready=False) for n in not_ready))
    )


def limit(world: FakeWorld, value: Any) -> None:
    """Edit the limit; None removes it."""
    world.cluster.apply(syncer(**({} if value is None else {"limit": value})))


def up(world: FakeWorld) -> set[InstanceKey]:
    """Our UP instances."""
    held = world.registry.held.values()
    return {
        one.key
        for one in held
        if one.status is InstanceStatus.UP and "eurekube.owner" in one.metadata
    }


def others_gone(world: FakeWorld, left: int) -> None:
    """Remove all but `left` instances of the data centre."""
    for one in data_centre(100)[left:]:
        world.registry.held.pop(one.key, None)


def settled(world: FakeWorld) -> PassReport:
    """Make a pass, after which another one changes nothing."""
    report = world.run()
    assert world.run().plan.changes == ()
    return report


@pytest.mark.parametrize(
    ("value", "others", "expected"),
    [
        (3, 0, 3),
        (20, 0, 10),
        ("25%", 0, 3),
        ({"share": "10%"}, 9, 1),
        ({"share": "50%"}, 9, 9),
        ({"share": "50%"}, 100, 10),
        ({"share": "100%"}, 9, 10),
        ({"share": "10%"}, 0, 1),
        (0, 5, 0),
    ],
)
def test_so_many_are_registered_and_no_more(value: Any, others: int, expected: int) -> None:
    """There are ten ready pods, and the next pass changes nothing."""
    world = setting(pods=10, others=others, limit=value)
    settled(world)
    assert len(up(world)) == expected


def test_raising_only_adds_and_lowering_only_takes_away() -> None:
    """The sets of every step are nested, for a number, a share and a percentage of pods."""
    world = setting(pods=10, others=10, limit=1)
    settled(world)
    before = up(world)
    for value in (3, {"share": "30%"}, "60%", 8, None):
        limit(world, value)
        settled(world)
        assert before <= up(world), value
        before = up(world)
    assert len(before) == 10
    for value in (8, "60%", {"share": "30%"}, 3, 1):
        limit(world, value)
        settled(world)
        assert up(world) < before, value
        before = up(world)


def test_the_same_ones_are_chosen_whatever_the_order_and_after_a_restart_of_eureka() -> None:
    """New instances are ordered by a hash of their ids."""
    world = setting(pods=10, limit=3)
    settled(world)
    first = up(world)
    world.registry.held.clear()
    ready(world, range(10, 0, -1))
    settled(world)
    assert up(world) == first
    assert first != set(sorted(key(n) for n in range(1, 11))[:3])


def test_a_substitute_stays_when_the_first_pod_is_ready_again() -> None:
    """Callers cannot use an unready instance, so another one is registered. It stays when the first
    is ready again."""
    world = setting(pods=4, limit=1)
    settled(world)
    (first,) = up(world)
    number = int(first.id.split(":")[3].rsplit(".", 1)[1])
    rest = [n for n in (1, 2, 3, 4) if n != number]
    ready(world, rest, not_ready=[number])
    world.run()
    (second,) = up(world)
    assert second != first
    assert world.registry.held[first].status is DOWN
    ready(world, [1, 2, 3, 4])
    settled(world)
    assert up(world) == {second}
    assert first not in world.registry.held


@pytest.mark.parametrize("value", [{"share": "50%"}, "50%"])
def test_a_percentage_that_falls_by_itself_removes_nothing(value: Any) -> None:
    """The data centre shrinks, or half of our pods end. Our instances that are left and serve
    stay."""
    world = setting(pods=10, others=6, limit=value)
    settled(world)
    standing = up(world)
    others_gone(world, 1)
    alive = {int(one.id.split(":")[3].rsplit(".", 1)[1]) for one in standing}
    ready(world, alive)
    assert settled(world).plan.changes == ()
    assert up(world) == standing


def test_a_share_is_raised_after_the_data_centre_shrank() -> None:
    """A raised limit is not a lowered one. Nothing is removed, although the present numbers would
    give fewer places."""
    world = setting(pods=10, others=9, limit={"share": "40%"})
    settled(world)
    standing = up(world)
    assert len(standing) == 6
    others_gone(world, 2)
    limit(world, {"share": "50%"})
    settled(world)
    assert up(world) == standing


def test_a_share_is_lowered_after_the_data_centre_shrank() -> None:
    """A person asked for it, so the present numbers count."""
    world = setting(pods=10, others=9, limit={"share": "50%"})
    settled(world)
    assert len(up(world)) == 9
    others_gone(world, 3)
    limit(world, {"share": "40%"})
    settled(world)
    assert len(up(world)) == 2


def test_limit_zero_removes_all_instances_ready_or_not() -> None:
    """The condition says so. Without the limit the syncer registers again."""
    world = setting(pods=3)
    add_another_app(world)
    settled(world)
    ready(world, [1, 2], not_ready=[3])
    settled(world)
    limit(world, 0)
    settled(world)
    assert {one.app for one in world.registry.held} == {"OTHER"}
    status = world.cluster.syncers[REF].status
    assert status is not None
    condition = status.condition("Ready")
    assert condition is not None
    assert (condition.reason, condition.message) == (
        "LimitZero",
        "limit 0: registers 0 of 2 ready endpoints",
    )
    limit(world, None)
    settled(world)
    assert len(up(world)) == 3


def add_another_app(world: FakeWorld) -> None:
    """Add an app, so that a removal does not concern all our instances."""
    world.cluster.apply(
        syncer("other", selector={"app": "other"}),
        service("other", labels={"app": "other"}),
        piece(endpoint(99), service="other"),
    )


def test_a_lowered_limit_may_remove_many_instances_and_all() -> None:
    """It may remove 40 of 50, and with 0 the rest: a person asked for it."""
    world = setting(pods=50)
    world.brake = BrakeLimits()
    settled(world)
    limit(world, 10)
    assert settled(world).held is None
    assert len(up(world)) == 10
    limit(world, 0)
    assert settled(world).held is None
    assert len(up(world)) == 0


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("value", [1, "20%"])
def test_a_lowered_limit_keeps_an_up_instance_and_the_one_out_of_service(
    number: int, value: Any
) -> None:
    """Another instance stays UP, whichever of the three is out of service. The override is not
    forgotten."""
    world = setting(pods=3)
    settled(world)
    world.registry.override(key(number), InstanceStatus.OUT_OF_SERVICE)
    limit(world, value)
    settled(world)
    assert len(up(world)) == 1
    assert world.registry.held[key(number)].status is InstanceStatus.OUT_OF_SERVICE
    world.registry.override(key(number), InstanceStatus.UP)
    settled(world)
    assert len(up(world)) == 1


def test_a_lowered_limit_lets_a_successor_in_before_what_a_person_put_out_of_service() -> None:
    """The instance that callers reach moves to another address. Its app must not lose its last
    one."""
    world = setting(pods=2)
    settled(world)
    world.registry.override(key(1), InstanceStatus.OUT_OF_SERVICE)
    limit(world, 1)
    settled(world)
    assert up(world) == {key(2)}
    world.cluster.apply(piece(endpoint(1), endpoint(3)))
    settled(world)
    assert up(world) == {key(3)}
    assert world.registry.held[key(1)].status is InstanceStatus.OUT_OF_SERVICE


def test_an_out_of_service_instance_keeps_its_place_and_its_override() -> None:
    """No other instance gets its place, and a lowered limit does not cancel it."""
    world = setting(pods=3, limit=1)
    settled(world)
    (first,) = up(world)
    world.registry.override(first, InstanceStatus.OUT_OF_SERVICE)
    settled(world)
    assert up(world) == set()
    limit(world, 0)
    world.run()
    assert world.registry.held[first].status is InstanceStatus.OUT_OF_SERVICE


def test_an_outdated_list_registers_no_pod_beyond_the_limit() -> None:
    """Before another pod is registered, a recent substitute is read uncached."""
    world = setting(pods=6, limit=1, cache=30)
    world.run()
    world.later(31)
    (first,) = up(world)
    number = int(first.id.split(":")[3].rsplit(".", 1)[1])
    rest = [n for n in range(1, 7) if n != number]
    ready(world, rest)
    world.run()
    (second,) = up(world)
    lost = next(n for n in rest if key(n) != second)
    ready(world, [n for n in rest if n != lost])
    world.run()  # the list still shows the first one
    assert up(world) == {second}


def test_an_outdated_list_registers_no_pod_that_comes_first_in_the_order() -> None:
    """Another process registered one a moment ago. It is read uncached, although the list gives it
    no place."""
    every = setting(pods=6, limit=1)
    every.run()
    (comes_first,) = up(every)
    world = setting(pods=6, limit=1, cache=30)
    ready(world, [number for number in range(1, 7) if key(number) != comes_first])
    world.registry.list_instances()  # the list is empty for 30 s
    world.run()
    stands = up(world)
    ready(world, range(1, 7))
    world.run()
    assert up(world) == stands != {comes_first}


@pytest.mark.parametrize("lowered", [2, "50%"])
def test_an_outdated_list_lets_none_in_for_one_that_is_no_longer_out_of_service(
    lowered: int | str,
) -> None:
    """The limit was lowered while a person had set it OUT_OF_SERVICE. Before another pod takes the
    next free place, it is read uncached. What a percentage let in would stay beyond the limit."""
    world = setting(pods=4, cache=30)
    settled(world)
    put_out = min(up(world))
    world.registry.override(put_out, InstanceStatus.OUT_OF_SERVICE)
    limit(world, lowered)
    world.later(31)
    settled(world)
    world.later(31)
    leaving, staying = sorted(up(world))
    world.registry.list_instances()  # the list stays like this for 30 s
    world.registry.override(put_out, InstanceStatus.UP)
    others = [number for number in range(1, 5) if key(number) != leaving]
    ready(world, others, not_ready=[n for n in range(1, 5) if key(n) == leaving])
    for _ in range(3):
        world.run()
        assert up(world) == {put_out, staying}
        world.later(60)


def test_an_instance_that_cannot_be_read_keeps_its_place() -> None:
    """It may be registered, so nothing is decided on it."""
    world = setting(pods=4, limit=1, cache=30)
    world.registry.list_instances()  # the list is empty for 30 s
    world.run()
    (first,) = up(world)
    world.registry.refuse_read[first] = RegistryUnavailable("it did not answer")
    report = world.run()
    assert up(world) == {first}
    assert [one.key for one in report.plan.blocked] == [first]


def test_an_unread_instance_takes_no_place_of_one_known_to_be_up() -> None:
    """Two that were DOWN become ready, and cannot be read. The instance that callers reach is not
    over the limit because of them."""
    world = setting(pods=3, limit=3)
    settled(world)
    ready(world, [1], not_ready=[2, 3])
    add_another_app(world)
    settled(world)
    limit(world, 2)
    settled(world)
    ready(world, [1, 2, 3])
    for number in (2, 3):
        world.registry.refuse_read[key(number)] = RegistryUnavailable("it did not answer")
    world.run()
    assert key(1) in up(world)
    world.registry.refuse_read.clear()
    settled(world)
    assert key(1) in up(world)
    assert len(up(world)) == 3, "two of it, and the other app"


def test_a_lowered_limit_removes_no_one_for_one_that_cannot_be_read() -> None:
    """The list may be old. The unread instance may be gone, and the other one may be the last."""
    world = setting(pods=2, limit=2)
    add_another_app(world)
    settled(world)
    limit(world, 1)
    world.registry.refuse_read[key(2)] = RegistryUnavailable("it did not answer")
    world.run()
    assert key(1) in up(world)
    world.registry.refuse_read.clear()
    settled(world)
    assert len(up(world)) == 2, "one of it, and the other app"


def test_a_registry_that_cannot_be_read_decides_nothing() -> None:
    """Every instance that may be registered is renewed, and none is added. A new process does not
    know which are registered."""
    world = setting(pods=4, limit=1)
    world.run()
    world.registry.unreadable = UNREADABLE
    world.run()
    assert len(up(world)) == 1
    world.registry.held.clear()
    world.run()
    assert up(world) == set()


def test_instances_of_another_syncer_count_as_others_and_its_own_dead_do_not() -> None:
    """A share counts what callers find. Instances that this syncer removes in the same pass do not
    count."""
    mine = [stored(instance(number)) for number in (7, 8, 9)]
    theirs = changed(stored(instance(5, app="else")), vip_address="a,Rating")
    theirs = changed(theirs, metadata={**theirs.metadata, "eurekube.syncer": "rating/else"})
    claims = desired(
        [syncer(limit={"share": "50%"})], [service()], [piece(*(endpoint(n) for n in (1, 2, 3, 4)))]
    )
    down = (
        changed(foreign("dc-down:rating:8080"), status=DOWN),
        stored(instance(6, app="z", vip="rating"), status=DOWN),
    )
    found = within_limits(claims, observed(*mine, theirs, *data_centre(2), *down))
    claim = found.claims[REF]
    assert getattr(claim, "notes", ()) == (
        "share 50% of VIP rating allows 3 with 3 other UP instances: registers 3",
    )
    assert len(claims.with_claims(found.claims).wanted_by) == 3


def test_many_shares_of_one_vip_cost_in_a_straight_line() -> None:
    """Otherwise one tenant could take all the time of a pass."""

    def seconds(number: int) -> float:
        """The time for this many syncers with one registered instance each."""
        names = [f"app-{n}" for n in range(number)]
        wants = desired(
            [
                syncer(name, selector={"app": name}, vipAddress="v,w", limit={"share": "50%"})
                for name in names
            ],
            [service(name, labels={"app": name}) for name in names],
            [
                piece(endpoint(1, address=f"11.0.{n // 250}.{n % 250}"), service=name)
                for n, name in enumerate(names)
            ],
        )
        stands = observed(
            *(stored(one.instance) for key in wants.wanted_by if (one := wants.wanted(key)))
        )
        return processor_seconds(lambda: within_limits(wants, stands))

    assert seconds(1600) < 80 * min(seconds(100) for _ in range(3))


def test_the_dry_run_shows_the_share_before_it_is_applied() -> None:
    """It also shows what the share asks for, if there are too few pods. JSON has it too."""
    world = setting(pods=5, others=9, limit={"share": "10%"})
    report = world.run(dry_run=True)
    assert (
        "syncer rating/rating: OverLimit: share 10% of VIP rating allows 1 with 9 other UP "
        "instances: registers 1" in sentences(report)
    )
    assert [r for r in world.registry.held.values() if LIMIT in r.metadata] == []
    limit(world, {"share": "50%"})
    found = sentences(world.run(dry_run=True))
    assert (
        "syncer rating/rating: OverLimit: share 50% of VIP rating allows 9 with 9 other UP "
        "instances: registers 5" in found
    )
    assert not any("share" in sentence for sentence in sentences(world.run()))


VALUES = st.one_of(
    st.integers(0, 6),
    st.integers(0, 100).map("{}%".format),
    st.integers(0, 100).map(lambda percent: {"share": f"{percent}%"}),
)


@given(st.data(), VALUES)
def test_no_ready_instance_is_removed_while_pods_and_others_come_and_go(
    data: st.DataObject, value: Any
) -> None:
    """The limit stays the same. Only instances that are no longer ready are removed, and nothing is
    changed twice."""
    world = setting(pods=4, others=3, limit=value)
    world.brake = BrakeLimits(loss_percent=100, apps_percent=100, apps_floor=10)
    world.run()
    for _ in range(3):
        before = up(world)
        alive = data.draw(st.sets(st.integers(1, 6), min_size=1))
        ready(world, alive)
        others_gone(world, 0)
        world.registry.put(*data_centre(data.draw(st.integers(0, 5))))
        world.run()
        assert {one for one in before if one in {key(n) for n in alive}} <= up(world)


YOUNG = SyncerRef(NS, "young")


def two_syncers(*, pods: int = 2, older: Any = None, younger: Any = None, **spec: Any) -> FakeWorld:
    """An older syncer that registered all pods and a younger one of the same app, with these
    limits."""
    world = setting(pods=pods)
    world.brake = BrakeLimits()
    settled(world)
    world.cluster.apply(syncer(limit=older), syncer("young", created=2000, limit=younger, **spec))
    return world


def held_by(world: FakeWorld) -> dict[str, tuple[str, str]]:
    """Status and syncer of each address."""
    held = world.registry.held.values()
    return {
        one.instance.ip_addr: (one.status.value, one.metadata["eurekube.syncer"]) for one in held
    }


def condition_of(world: FakeWorld, ref: SyncerRef, type_: str) -> tuple[str, str, str]:
    """Value, reason and message of a condition."""
    status = world.cluster.syncers[ref].status
    condition = status.condition(type_) if status else None
    assert condition is not None
    return condition.status.value, condition.reason, condition.message


@pytest.mark.parametrize("zero", [0, "0%", {"share": "0%"}], ids=str)
def test_with_limit_zero_a_younger_syncer_takes_over_without_a_gap(zero: Any) -> None:
    """The instances stay UP and change their syncer. Neither is in conflict, and nothing is
    cancelled."""
    world = two_syncers(older=zero)
    report = settled(world)
    assert [type(action) for action in report.plan.changes] == [Update, Update]
    assert not any(call.startswith("cancel") for call in world.wire.calls)
    assert held_by(world) == {f"10.0.0.{n}": ("UP", str(YOUNG)) for n in (1, 2)}
    assert condition_of(world, REF, "Ready")[:2] == ("False", "LimitZero")
    assert condition_of(world, YOUNG, "Ready")[:2] == ("True", "InSync")
    for ref in (REF, YOUNG):
        assert condition_of(world, ref, "Conflict")[0] == "False"


def test_with_limit_zero_a_younger_syncer_takes_over_under_another_id_without_a_gap() -> None:
    """A syncer of another namespace has another id for the same address. It is UP before the old
    instance is cancelled."""
    world = setting(pods=1)
    settled(world)
    world.scope = Scope(allowed=frozenset({("other", NS)}))
    selector = {"app": "rating", "namespace": NS}
    world.cluster.apply(
        syncer(limit=0), syncer("young", namespace="other", created=2000, selector=selector)
    )
    world.run()
    calls = [
        call.split()[0] for call in world.wire.calls if call.startswith(("register", "cancel"))
    ]
    assert calls == ["register", "cancel"]
    assert world.run().plan.changes == ()
    assert held_by(world) == {"10.0.0.1": ("UP", "other/young")}


def test_with_limit_zero_instances_stay_until_another_app_replaces_them() -> None:
    """Both have one VIP. While the younger syncer's app cannot be registered, the older one's stays
    UP."""
    world = two_syncers(older=0, appName="rating-2", vipAddress="rating")
    fresh = [key(n, app="rating-2") for n in (1, 2)]
    world.registry.refuse_register = dict.fromkeys(fresh, RegistryUnavailable("no"))
    world.run()
    assert up(world) == {key(1), key(2)}
    world.registry.refuse_register.clear()
    assert world.run().held is None
    assert up(world) == set(fresh)


def test_the_younger_ones_own_limit_decides_how_many_stay() -> None:
    """Instances beyond it are removed because of the older syncer's lowered limit, which a person
    asked for."""
    world = two_syncers(pods=4, older=0, younger=1)
    report = settled(world)
    assert sorted(whose for _, whose in held_by(world).values()) == [str(YOUNG)]
    assert {a.grounds for a in report.plan.of(Cancel)} == {Grounds.OVER_LIMIT}


def test_a_syncer_whose_limit_was_zero_gets_its_addresses_back_without_a_gap() -> None:
    """They change their syncer again. The younger one is in conflict, and may be deleted."""
    world = two_syncers(older=0)
    settled(world)
    limit(world, None)
    world.run()
    assert not any(call.startswith("cancel") for call in world.wire.calls)
    assert world.run().plan.changes == ()
    assert held_by(world) == {f"10.0.0.{n}": ("UP", str(REF)) for n in (1, 2)}
    assert condition_of(world, YOUNG, "Conflict")[0] == "True"
    world.cluster.delete(YOUNG)
    settled(world)
    assert held_by(world) == {f"10.0.0.{n}": ("UP", str(REF)) for n in (1, 2)}


def test_an_older_syncer_with_a_limit_removes_a_younger_ones_instance_without_a_place() -> None:
    """The removed instance was the younger syncer's, whose limit nobody lowered. The brake has no
    evidence for that."""
    world = two_syncers(pods=3, older=0)
    settled(world)
    limit(world, 2)
    (gone,) = settled(world).plan.of(Cancel)
    assert gone.grounds is Grounds.ABSENCE
    assert sorted(whose for _, whose in held_by(world).values()) == [str(REF)] * 2


def test_two_syncers_with_limit_zero_are_in_no_conflict() -> None:
    """No instance of either is registered."""
    world = two_syncers()
    add_another_app(world)
    settled(world)
    world.cluster.apply(syncer(limit=0), syncer("young", created=2000, limit=0))
    settled(world)
    assert {one.app for one in world.registry.held} == {"OTHER"}
    for ref in (REF, YOUNG):
        assert condition_of(world, ref, "Conflict")[0] == "False"
        assert condition_of(world, ref, "Ready")[1] == "LimitZero"


def test_a_limit_above_zero_keeps_the_addresses_that_it_keeps_out() -> None:
    """The number of places changes by itself, and two syncers would exchange instances. The younger
    one is in conflict."""
    world = two_syncers(pods=3, older=1)
    settled(world)
    assert sorted(whose for _, whose in held_by(world).values()) == [str(REF)]
    assert condition_of(world, YOUNG, "Conflict") == (
        "True",
        "Conflict",
        f"{key(1)}: syncer {REF} is older and has the address (and 2 more)",
    )


def test_a_suspended_syncer_holds_what_it_has_whatever_its_limit() -> None:
    """A suspended syncer changes nothing. It is not detached, and the younger one takes over
    nothing."""
    world = two_syncers(older=0)
    world.cluster.apply(syncer(limit=0, suspend=True))
    settled(world)
    assert held_by(world) == {f"10.0.0.{n}": ("UP", str(REF)) for n in (1, 2)}
    assert condition_of(world, YOUNG, "Conflict")[0] == "True"


def test_an_instance_that_cannot_be_read_again_is_not_handed_over_yet() -> None:
    """It is renewed as it is, and the next pass hands it over."""
    world = two_syncers(older=0)
    world.registry.refuse_read[key(1)] = RegistryUnavailable("it did not answer")
    world.run()
    assert held_by(world) == {"10.0.0.1": ("UP", str(REF)), "10.0.0.2": ("UP", str(YOUNG))}
    assert condition_of(world, REF, "Ready")[1] == "LimitZero"
    world.registry.refuse_read.clear()
    settled(world)
    assert held_by(world) == {f"10.0.0.{n}": ("UP", str(YOUNG)) for n in (1, 2)}


def test_while_eureka_cannot_be_read_a_limited_syncer_desires_what_it_did() -> None:
    """Its number of places is unknown. It never desires all its pods."""
    world = setting(pods=4, limit=1)
    settled(world)
    world.registry.unreadable = UNREADABLE
    world.run()
    status = world.cluster.syncers[REF].status
    assert status is not None
    assert (status.desired, status.ready) == (1, "1/1")
