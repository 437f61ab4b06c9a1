"""What the brake holds of a pass that would remove too much, and what it does not hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eurekube_sync.brake.braking import Braked
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.model.actions import Action, Cancel, Grounds, Renew
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.observe.eureka import Unread
from eurekube_sync.plan.value import sorted_plan
from tests.unit.brake.test_brake import LIMITS, SECOND_LOOK, STANDS, cancel, down, register, weigh
from tests.unit.worlds.build import REF, UP, instance, observed, stored


def among(apps: dict[str, int], actions: list[Action], limits: BrakeLimits = LIMITS) -> Braked:
    """What the brake leaves of the actions, where each app has so many UP instances."""
    stands = observed(*(stored(instance(n, app=app)) for app, count in apps.items() for n in range(count)))
    return weigh(sorted_plan(actions), stands, limits)


def held(braked: Braked) -> set[InstanceKey]:
    """What is held."""
    return {one.key for one in braked.held.removals} if braked.held else set()


def deleted(app: str, number: int = 0) -> Cancel:
    """A cancel for a person deletes the syncer."""
    return cancel(number, app=app, grounds=Grounds.SYNCER_DELETED)


def test_only_apps_that_would_lose_all_instances_are_held_for_it() -> None:
    """Two apps of one team wait; an app that keeps other instances does not."""
    actions = [cancel(0, app="a"), cancel(0, app="b"), cancel(0, app="c")]
    braked = among({"a": 1, "b": 1, "c": 3}, [*actions])
    assert held(braked) == {actions[0].key, actions[1].key}
    assert braked.plan.of(Cancel) == (actions[2],)


@pytest.mark.parametrize("ceiling", [500, 14])
def test_only_apps_with_a_loss_are_held_when_too_many_instances_are_removed(ceiling: float) -> None:
    """15 of one app turn unready while another one rolls over."""
    unready = [down(number, app="a") for number in range(15)]
    rollout: list[Action] = [cancel(0, app="b"), register(99, app="b")]
    limits = replace(LIMITS, loss_ceiling=ceiling, loss_percent=30 if ceiling == 500 else 100)
    braked = among({"a": 20, "b": 3}, [*unready, *rollout], limits)
    assert held(braked) == {one.key for one in unready}
    assert braked.plan.of(Cancel) == (rollout[0],)


@pytest.mark.parametrize(
    ("total", "gone", "waits"),
    [(40, 39, True), (40, 13, True), (40, 12, False), (36, 11, True), (33, 10, False), (10, 5, False)],
)
def test_many_instances_of_others_hide_no_loss_of_an_app(total: int, gone: int, waits: bool) -> None:
    """4000 instances of a tenant make the loss of one app a small part of all: its own share counts as well."""
    unready = [down(number, app="payment") for number in range(gone)]
    other = down(0, app="tenant")
    for limits in (LIMITS, LIMITS.scaled(0.1)):  # a shard has few of all instances, and all of an app
        braked = among({"payment": total, "tenant": 4000}, [*unready, other], limits)
        assert held(braked) == ({one.key for one in unready} if waits else set())
        if braked.held:
            why = f"{gone} of {total} UP instances of app PAYMENT would be removed, more than 30 %"
            assert braked.held.reason == why


def test_the_share_of_one_app_is_counted_like_the_share_of_all() -> None:
    """No evidence, both numbers, what replaces it, and what moves to another name."""
    lost = [cancel(number, app="payment") for number in range(20)]
    apps = {"payment": 40, "tenant": 4000}
    for grounds in (Grounds.TERMINATING, Grounds.SYNCER_DELETED, Grounds.OVER_LIMIT, Grounds.DRAINED):
        assert among(apps, [replace(one, grounds=grounds) for one in lost]).held is None
    assert among(apps, [*lost, *(register(100 + number, app="payment") for number in range(10))]).held is None
    assert among(apps, [*lost], replace(LIMITS, loss_percent=50)).held is None
    assert among(apps, [*lost], replace(LIMITS, app_loss_floor=20)).held is None
    moving: list[Action] = [*(register(number, app="payments") for number in range(20)), *lost]
    assert among(apps, moving).held is None
    two = among({**apps, "cart": 20}, [*lost, *(down(number, app="cart") for number in range(11))])
    assert two.held is not None
    assert [len(hold.removals) for hold in two.held.holds] == [11, 20]


@pytest.mark.parametrize(
    ("apps", "gone", "waits"),
    [(2, 2, False), (10, 10, False), (11, 11, True), (60, 12, False), (59, 12, True), (60, 10, False)],
)
def test_deletions_by_a_person_have_their_own_limit(apps: int, gone: int, waits: bool) -> None:
    """More than 10 apps and more than 20 % of them: a team's namespace may be deleted."""
    names = [f"app{number}" for number in range(apps)]
    braked = among(dict.fromkeys(names, 1), [deleted(name) for name in names[:gone]])
    assert len(held(braked)) == (gone if waits else 0)
    if braked.held:
        assert braked.held.reason == (
            f"{gone} of {apps} apps would have no UP instance left, because their syncers are being deleted"
        )


def test_both_numbers_of_the_limit_on_deletions_take_effect() -> None:
    """Both of its numbers, and a shard has its share of the first."""
    names = [f"app{number}" for number in range(10)]
    actions: list[Action] = [deleted(name) for name in names[:3]]
    three = replace(LIMITS, deleted_floor=2, deleted_percent=29)
    assert len(held(among(dict.fromkeys(names, 1), actions, three))) == 3
    assert held(among(dict.fromkeys(names, 1), actions, replace(three, deleted_floor=3))) == set()
    assert held(among(dict.fromkeys(names, 1), actions, replace(three, deleted_percent=30))) == set()
    assert BrakeLimits().scaled(0.25).deleted_floor == 2.5
    assert BrakeLimits(deleted_floor=0).scaled(0.25).deleted_floor == 0
    assert BrakeLimits(deleted_floor=2).scaled(0.25).deleted_floor == 1


def test_a_deletion_is_not_held_with_removals_that_nobody_asked_for() -> None:
    """Nor does it add to them: three apps are deleted while one turns unready."""
    actions: list[Action] = [*(deleted(app) for app in ("a", "b", "c")), down(0, app="d")]
    braked = among(dict.fromkeys("abcdef", 1), [*actions])
    assert braked.held is None
    both = among(dict.fromkeys("abcdef", 1), [*actions, down(0, app="e")])
    assert held(both) == {instance(0, app="d").key, instance(0, app="e").key}
    unready = [down(number, app="f") for number in range(12)]
    sizes = among({"a": 1, "f": 20}, [deleted("a"), *unready])
    assert held(sizes) == {one.key for one in unready}


def test_the_ceiling_counts_and_holds_deletions() -> None:
    """A wish for so much is asked for again."""
    actions: list[Action] = [deleted("a", number) for number in range(6)]
    assert len(held(among({"a": 9}, actions, replace(LIMITS, loss_ceiling=5)))) == 6


def test_the_last_apps_may_be_deleted_while_other_removals_wait() -> None:
    """All our instances would be removed: those of a deleted syncer are, and the app that turned unready stays."""
    braked = among({"a": 1, "b": 1}, [deleted("a"), down(0, app="b")])
    assert held(braked) == {instance(0, app="b").key}
    assert braked.held is not None
    assert braked.held.reason == "all that we own would be removed: 2 UP instances"


def test_an_app_that_is_deleted_in_part_keeps_the_other_part() -> None:
    """A syncer of two is deleted, the pods of the other one turn unready, in two apps: these wait."""
    actions: list[Action] = [deleted("a"), down(1, app="a"), deleted("b"), down(1, app="b")]
    braked = among({"a": 2, "b": 2, "c": 2}, actions)
    assert held(braked) == {instance(1, app="a").key, instance(1, app="b").key}


@pytest.mark.parametrize("back", [False, True])
def test_an_app_that_changes_its_name_loses_nothing(back: bool) -> None:
    """40 of 42 move, or move back to a name under which they stand: in no test, and nobody waits for them."""
    moving: list[Action] = [cancel(number, app="pay") for number in range(40)]
    apps = {"pay": 40, "cart": 2}
    if back:
        apps["payments"] = 40
        keys = [instance(number, app="payments").key for number in range(40)]
        moving += [Renew(key=key, syncer=REF, why="", status=UP) for key in keys]
    else:
        moving += [register(number, app="payments") for number in range(40)]
    limits = replace(SECOND_LOOK, loss_ceiling=30)
    assert among(apps, moving, limits).held is None
    stands = observed(*(stored(instance(n, app=app)) for app, count in apps.items() for n in range(count)))
    assert weigh(sorted_plan(moving), stands, limits, syncer_limits={REF: 10}).held is None


def test_losses_beside_a_change_of_name_are_weighed_as_usual() -> None:
    """38 of 40 move, and two of the pods are gone: they are the last of the old name."""
    moving: list[Action] = [cancel(number, app="pay") for number in range(40)]
    moving += [register(number, app="payments") for number in range(38)]
    lost = {instance(number, app="pay").key for number in (38, 39)}
    braked = among({"pay": 40, "cart": 2}, moving, SECOND_LOOK)
    assert held(braked) == lost
    assert braked.held is not None
    assert braked.held.reason.startswith("app PAY would have no UP instance left")


def test_cancels_for_duplicates_count_only_for_limits_on_the_number_of_removals() -> None:
    """Somebody who can register where our pods are removes no more than a share of our instances; a few are cancelled,
    an app's last, too."""
    beside: list[Action] = [cancel(number, grounds=Grounds.DUPLICATE) for number in range(15)]
    assert len(held(among({"rating": 20}, beside))) == 15
    assert len(held(among({"rating": 90}, beside, replace(LIMITS, loss_ceiling=14)))) == 15
    stands = observed(*(stored(instance(number)) for number in range(4)))
    few = sorted_plan(beside[:3])
    assert weigh(few, stands, SECOND_LOOK).held is None
    assert weigh(few, stands, SECOND_LOOK, syncer_limits={REF: 50}).held is not None
    assert (
        among({"a": 1, "b": 1}, [cancel(0, app=a, grounds=Grounds.DUPLICATE) for a in "ab"], SECOND_LOOK).held is None
    )


def test_an_instance_at_another_pods_address_is_never_held() -> None:
    """Its callers would reach another app. It counts all the same."""
    unready = [down(number, app="a") for number in range(10)]
    wrong = cancel(10, app="a", grounds=Grounds.REPLACED)
    braked = among({"a": 30}, [*unready, wrong])
    assert held(braked) == {one.key for one in unready}
    assert braked.plan.of(Cancel) == (wrong,)
    last = among({"a": 1, "b": 1}, [cancel(0, app="a", grounds=Grounds.REPLACED)], SECOND_LOOK)
    assert last.held is None
    mixed = among({"a": 2, "b": 1}, [cancel(0, app="a", grounds=Grounds.REPLACED), cancel(1, app="a")], SECOND_LOOK)
    assert held(mixed) == {instance(1, app="a").key}
    own = weigh(sorted_plan([wrong]), observed(stored(instance(10, app="a"))), syncer_limits={REF: 0})
    assert own.held is None


def test_each_syncers_own_limit_is_weighed_without_what_waits_already() -> None:
    """Two apps go to nothing and wait: what goes beside them is within the limit."""
    actions: list[Action] = [cancel(number) for number in range(4)]
    actions += [cancel(22, app="b"), cancel(20, app="c"), Renew(key=instance(21, app="c").key, syncer=REF, why="")]
    stands = observed(
        *STANDS.ours.values(), stored(instance(22, app="b")), *(stored(instance(n, app="c")) for n in (20, 21))
    )
    braked = weigh(sorted_plan(actions), stands, syncer_limits={REF: 20})
    assert braked.plan.of(Cancel) == (cancel(20, app="c"),)


def test_a_read_that_failed_may_be_of_one_that_serves() -> None:
    """Two apps lose what is seen to be deleted or dead; the rest of each could not be read, and nothing may wait."""
    stands = observed(*(stored(instance(n, app=app)) for app in "abc" for n in range(2)))
    drain_unknown = stands.refreshed({instance(1, app=app).key: Unread(why="timeout") for app in "ab"})
    plan = sorted_plan([deleted("a"), deleted("b")])
    assert weigh(plan, drain_unknown).held is None
    mixed = sorted_plan([deleted("a"), down(0, app="b")])
    assert held(weigh(mixed, drain_unknown)) == {instance(0, app="b").key}


def test_wanted_removals_do_not_wait_with_the_unready_pods_of_their_app() -> None:
    """A drain, and a pod that ends, wait for no approval because eleven others of their app are unready."""
    drained = replace(down(19, app="a"), grounds=Grounds.DRAINED)
    ending = cancel(18, app="a", grounds=Grounds.TERMINATING)
    unready = [down(number, app="a") for number in range(11)]
    assert held(among({"a": 20, "b": 200}, [*unready, drained, ending])) == {one.key for one in unready}
