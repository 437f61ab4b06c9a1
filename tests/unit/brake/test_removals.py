"""The last stage of a pass: which removals wait for their replacement, and which instances are read
to confirm it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from eurekube_sync.brake.holds import Brake
from eurekube_sync.brake.removals import (
    failed_adds,
    keep_without_successor,
    removals_left,
    witnesses,
)
from eurekube_sync.model.actions import Action, Cancel, Grounds, Outcome, Register, Renew, Result
from eurekube_sync.model.eureka import Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import POD
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Unread
from eurekube_sync.plan.value import Blocked, Obstacle, Plan, sorted_plan
from tests.unit.brake.test_brake import LIMITS, cancel, register, up
from tests.unit.worlds.build import (
    DOWN,
    REF,
    UP,
    desired,
    endpoint,
    instance,
    key,
    observed,
    piece,
    service,
    stored,
    syncer,
)

WHY = "not removed, because no replacement is registered yet"
OTHER = SyncerRef("elsewhere", "web")


def standing(*instances: Instance) -> dict[InstanceKey, ObservedInstance]:
    """These instances, all UP."""
    return {one.key: stored(one) for one in instances}


def refused(*actions: Action) -> list[Outcome]:
    """The outcomes of actions that Eureka refused."""
    return [Outcome(action=action, result=Result.FAILED) for action in actions]


def done(*actions: Action) -> list[Outcome]:
    """The outcomes of actions that left their instance UP."""
    return [Outcome(action=action, result=Result.DONE, status=UP) for action in actions]


# --- Removals that wait for a successor -----------------------------------------------------------


def test_an_instance_at_another_pods_address_waits_for_nothing_and_others_wait() -> None:
    """Each removal is judged separately. The reason says what it waits for."""
    going = [cancel(1, grounds=Grounds.REPLACED), cancel(2)]
    assert failed_adds(going, refused(register(3)), standing(instance(1), instance(2))) == {
        key(2): WHY
    }


@pytest.mark.parametrize("stands", [True, False])
def test_a_syncer_that_has_another_instance_waits_for_none(stands: bool) -> None:
    """That instance was registered before or in this pass, under any app."""
    third = instance(3, app="third")
    there = standing(instance(1, app="old"), *([third] if stands else []))
    came = [] if stands else done(Register(instance=third, syncer=REF, why=""))
    going = [cancel(1, app="old")]
    assert failed_adds(going, [*came, *refused(register(2))], there) == {}
    assert failed_adds(going, refused(register(2)), standing(instance(1, app="old"))) == {
        key(1, app="old"): WHY
    }


def test_an_instance_that_was_not_registered_again_hides_no_other_failure() -> None:
    """Both are failed adds."""
    lost = Renew(
        key=key(7, app="web"), syncer=OTHER, why="", if_gone=instance(7, app="web", ref=OTHER)
    )
    outcomes = [*refused(register(2)), Outcome(action=lost, result=Result.GONE)]
    assert failed_adds([cancel(1)], outcomes, standing(instance(1))) == {key(1): WHY}


@pytest.mark.parametrize(("vip", "waits"), [("shared", True), ("apart", False)])
def test_each_of_several_vips_counts_whosever_instance_fails(vip: str, waits: bool) -> None:
    """Callers of the shared VIP would find no instance."""
    new = Register(instance=instance(2, app="new", vip=vip, ref=OTHER), syncer=OTHER, why="")
    old = instance(1, app="old", vip="other,shared")
    assert failed_adds([cancel(1, app="old")], refused(new), standing(old)) == (
        {old.key: WHY} if waits else {}
    )


@pytest.mark.parametrize(
    ("address", "grounds", "waits"),
    [
        ("10.0.0.1", Grounds.ABSENCE, True),
        ("fd00::1", Grounds.ABSENCE, True),  # a pod may have one address of each family
        ("10.0.0.9", Grounds.ABSENCE, False),  # the old address does not belong to the pod any more
        ("10.0.0.1", Grounds.SYNCER_DELETED, False),
    ],
)
def test_a_pod_that_could_not_be_registered_under_another_name_keeps_the_one_that_it_has(
    address: str, grounds: Grounds, waits: bool
) -> None:
    """This holds although the old app has other instances."""
    new = Register(instance=replace(instance(1, app="new"), ip_addr=address), syncer=REF, why="")
    old = instance(1, app="old")
    there = standing(old, instance(2, app="old"))
    held = failed_adds([cancel(1, app="old", grounds=grounds)], refused(new), there)
    assert held == ({old.key: WHY} if waits else {})


def bare(number: int, app: str, *, port: int = 8080) -> Instance:
    """An instance of an endpoint or a Service without a pod."""
    found = instance(number, app=app, port=port)
    return replace(
        found, metadata={name: value for name, value in found.metadata.items() if name != POD}
    )


@pytest.mark.parametrize(
    ("port", "ref", "grounds", "waits"),
    [
        (8080, REF, Grounds.ABSENCE, True),
        (8081, REF, Grounds.ABSENCE, False),  # perhaps another Service on the same node
        (8080, OTHER, Grounds.ABSENCE, False),
        (8080, REF, Grounds.SYNCER_DELETED, False),
    ],
)
def test_an_instance_without_a_pod_keeps_the_name_that_it_has_too(
    port: int, ref: SyncerRef, grounds: Grounds, waits: bool
) -> None:
    """Its address and port show that it is the same instance."""
    new = Register(instance=bare(1, "new", port=port), syncer=ref, why="")
    old = bare(1, "old")
    there = standing(old, bare(2, "old"))
    held = failed_adds([cancel(1, app="old", grounds=grounds)], refused(new), there)
    assert held == ({old.key: WHY} if waits else {})


def test_an_address_of_the_same_family_that_changed_is_no_longer_the_pods() -> None:
    """The addresses are IPv6 here."""
    old, new = (
        replace(instance(1, app=app), ip_addr=address)
        for app, address in (("old", "fd00::1"), ("new", "fd00::2"))
    )
    there = standing(old, instance(2, app="old"))
    assert (
        failed_adds(
            [cancel(1, app="old")], refused(Register(instance=new, syncer=REF, why="")), there
        )
        == {}
    )


def test_an_instance_that_waits_for_an_unread_one_is_renewed() -> None:
    """This holds before the brake and after the adds."""
    wants = desired([syncer(appName="new")], [service()], [piece(endpoint(1))])
    unread = Blocked(key=key(1, app="new"), syncer=REF, why="", obstacle=Obstacle.UNREAD)
    plan, stands = (
        sorted_plan([cancel(1)], [unread]),
        observed(stored(instance(1)), stored(instance(2))),
    )
    renewed = Renew(key=key(1), syncer=REF, why=WHY, status=UP)
    assert keep_without_successor(plan, wants, stands) == sorted_plan([renewed], [unread])
    assert removals_left(plan, wants, stands, [], Brake(limits=LIMITS)).kept_back == {key(1): WHY}


def test_an_instance_with_another_replacement_does_not_wait_for_an_unread_one() -> None:
    """Callers find the other replacement."""
    wants = desired([syncer()], [service()], [piece(endpoint(2), endpoint(3))])
    unread = Blocked(key=key(2), syncer=REF, why="", obstacle=Obstacle.UNREAD)
    plan = sorted_plan([cancel(1), register(3)], [unread])
    assert keep_without_successor(plan, wants, observed(stored(instance(1)))) == plan


def test_the_last_stage_does_what_takes_away_and_nothing_else() -> None:
    """Other updates were made in an earlier stage."""
    stands = observed(*(stored(instance(number)) for number in range(9)))
    plan = sorted_plan([cancel(1), up(2), register(20)])
    assert removals_left(plan, desired(), stands, [], Brake(limits=LIMITS)).actions == (cancel(1),)
    assert (
        removals_left(sorted_plan([up(2)]), desired(), stands, [], Brake(limits=LIMITS)).actions
        == ()
    )


@pytest.mark.parametrize(
    "ended_as", [(Result.DONE,), (Result.GONE,), (Result.GONE, Result.REGISTERED_AGAIN)]
)
def test_an_expired_instance_counts_once_it_is_registered_again(
    ended_as: tuple[Result, ...],
) -> None:
    """One of four instances may be cancelled, but not one of two."""
    stands = observed(*(stored(instance(number)) for number in (1, 2, 3, 4)))
    renewals = [Renew(key=key(number), syncer=REF, why="", status=UP) for number in (2, 3, 4)]
    plan = sorted_plan([cancel(1), *renewals])
    ended = [
        Outcome(action=one, result=result, status=None if result is Result.GONE else UP)
        for result in ended_as
        for one in renewals[1:]
    ]
    left = removals_left(
        plan, desired(), stands, ended, Brake(limits=replace(LIMITS, loss_floor=0))
    )
    assert (left.held is not None) is (ended_as[-1] is Result.GONE)


# --- Reads before a removal -----------------------------------------------------------------------


def asked(
    going: Iterable[Cancel],
    stands: Iterable[int],
    *,
    read: Iterable[int] = (),
    lost: Iterable[int] = (),
) -> set[InstanceKey]:
    """Return what else is read. The instances in `stands` are UP in the list. Those in `lost` were
    read and are DOWN, or their read failed."""
    lost = tuple(lost)
    list_ = observed(*(stored(instance(n)) for n in stands), stored(instance(20, app="beside")))
    readings: dict[InstanceKey, ObservedInstance | Unread | None] = {
        key(n): Unread(why="timeout") if n % 2 else stored(instance(n), status=DOWN) for n in lost
    }
    return set(
        witnesses(sorted_plan(going), list_.refreshed(readings), {key(n) for n in (*read, *lost)})
    )


def test_one_that_is_to_stay_up_is_read_for_each_app_that_loses_one() -> None:
    """An instance that is to be removed is not read, and neither is another app's. Without
    removals, nothing is read."""
    assert asked([cancel(1)], [1, 2, 3]) == {key(2)}
    assert asked([cancel(1), cancel(2)], [1, 2, 3]) == {key(3)}
    assert asked([cancel(1)], [1]) == set()
    assert witnesses(Plan(), observed(stored(instance(1))), ()) == ()


def test_one_that_was_read_and_is_up_is_enough() -> None:
    """The uncached read proves that it is UP."""
    assert asked([cancel(1)], [1, 2, 3, 4], read=[3]) == set()


@pytest.mark.parametrize(("lost", "more"), [([2], 1), ([2, 3], 2), ([2, 3, 4], 3)])
def test_each_that_turns_out_not_to_be_up_has_more_read(lost: list[int], more: int) -> None:
    """Each instance that is DOWN or unread causes another read. So the number of reads doubles each
    time."""
    assert asked([cancel(1)], range(1, 20), lost=lost) == {
        key(n) for n in sorted(set(range(1, 20)) - {1, *lost}, key=lambda n: key(n))[:more]
    }
