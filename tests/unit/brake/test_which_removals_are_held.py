"""Which removals the brake holds in a pass that would remove too much, and which it does not."""

from __future__ import annotations

import pytest

from eurekube_sync.brake.braking import Braked
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.model.actions import Action, Cancel, Grounds, Renew
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Unread
from eurekube_sync.plan.value import sorted_plan
from tests.unit.brake.test_brake import LIMITS, SECOND_LOOK, cancel, down, register, weigh
from tests.unit.worlds.build import REF, UP, instance, observed, stored


def among(apps: dict[str, int], actions: list[Action], limits: BrakeLimits = LIMITS) -> Braked:
    """Apply the brake to the actions. Each app has this number of UP instances."""
    stands = observed(
        *(stored(instance(n, app=app)) for app, count in apps.items() for n in range(count))
    )
    return weigh(sorted_plan(actions), stands, limits)


def held(braked: Braked) -> set[InstanceKey]:
    """Return the keys of the held removals."""
    return {one.key for one in braked.held.removals} if braked.held else set()


def deleted(app: str, number: int = 0) -> Cancel:
    """A cancel because a person deletes the syncer."""
    return cancel(number, app=app, grounds=Grounds.SYNCER_DELETED)


def test_only_apps_that_would_lose_all_instances_are_held_for_it() -> None:
    """Two apps are held. An app that keeps other instances is not."""
    actions = [cancel(0, app="a"), cancel(0, app="b"), cancel(0, app="c")]
    braked = among({"a": 1, "b": 1, "c": 3}, [*actions])
    assert held(braked) == {actions[0].key, actions[1].key}
    assert braked.plan.of(Cancel) == (actions[2],)


def test_only_apps_with_a_loss_are_held_when_too_many_instances_are_removed() -> None:
    """15 instances of one app become unready during a rollout of another."""
    unready = [down(number, app="a") for number in range(15)]
    rollout: list[Action] = [cancel(0, app="b"), register(99, app="b")]
    braked = among({"a": 20, "b": 3}, [*unready, *rollout])
    assert held(braked) == {one.key for one in unready}
    assert braked.plan.of(Cancel) == (rollout[0],)


@pytest.mark.parametrize(
    ("total", "gone", "waits"),
    [
        (40, 39, True),
        (40, 13, True),
        (40, 12, False),
        (36, 11, True),
        (33, 10, False),
        (10, 5, False),
    ],
)
def test_many_instances_of_others_hide_no_loss_of_an_app(
    total: int, gone: int, waits: bool
) -> None:
    """Among a tenant's 4000 instances, the loss of one app is a small share. So the share of the
    app itself counts, too."""
    unready = [down(number, app="payment") for number in range(gone)]
    other = down(0, app="tenant")
    braked = among({"payment": total, "tenant": 4000}, [*unready, other], LIMITS)
    assert held(braked) == ({one.key for one in unready} if waits else set())
    if braked.held:
        why = f"app PAYMENT would lose {gone} of its {total} UP instances, more than 30 %"
        assert braked.held.reason == why


def test_the_share_of_one_app_is_counted_like_the_share_of_all() -> None:
    """Evidence, both numbers, replacements and a change of the name have the same effect."""
    lost = [cancel(number, app="payment") for number in range(20)]
    apps = {"payment": 40, "tenant": 4000}
    for grounds in (
        Grounds.TERMINATING,
        Grounds.SYNCER_DELETED,
        Grounds.OVER_LIMIT,
        Grounds.DRAINED,
    ):
        assert among(apps, [replace(one, grounds=grounds) for one in lost]).held is None
    assert (
        among(apps, [*lost, *(register(100 + number, app="payment") for number in range(10))]).held
        is None
    )
    assert among(apps, [*lost], replace(LIMITS, loss_percent=50)).held is None
    assert among(apps, [*lost], replace(LIMITS, app_loss_floor=20)).held is None
    moving: list[Action] = [*(register(number, app="payments") for number in range(20)), *lost]
    assert among(apps, moving).held is None
    two = among({**apps, "cart": 20}, [*lost, *(down(number, app="cart") for number in range(11))])
    assert two.held is not None
    assert [len(hold.removals) for hold in two.held.holds] == [11, 20]


ASKED_FOR = {
    Grounds.SYNCER_DELETED: "their syncers are being deleted",
    Grounds.DRAINED: "they are drained",
    Grounds.OVER_LIMIT: "the limits of their syncers are lower",
}


@pytest.mark.parametrize(
    ("apps", "gone", "waits"),
    [
        (2, 2, False),
        (10, 10, False),
        (11, 11, True),
        (60, 12, False),
        (59, 12, True),
        (60, 6, False),
    ],
)
@pytest.mark.parametrize("grounds", ASKED_FOR)
def test_what_a_person_asked_for_has_its_own_limit(
    grounds: Grounds, apps: int, gone: int, waits: bool
) -> None:
    """The limit is more than 10 apps and more than 20 % of them. So a team's namespace may be
    deleted, drained or detached, and a chart's fault that does it to every syncer waits."""
    names = [f"app{number}" for number in range(apps)]
    removals = [replace(deleted(name), grounds=grounds) for name in names[:gone]]
    braked = among(dict.fromkeys(names, 1), [*removals])
    assert len(held(braked)) == (gone if waits else 0)
    if braked.held:
        assert braked.held.reason == (
            f"{gone} of {apps} apps would have no UP instance left, because {ASKED_FOR[grounds]}"
        )


def test_all_that_a_person_asked_for_counts_together() -> None:
    """Six apps are deleted, and five are drained. What nobody asked for waits for its own rule."""
    names = [f"app{number}" for number in range(12)]
    asked: list[Action] = [deleted(name) for name in names[:6]]
    asked += [replace(down(0, app=name), grounds=Grounds.DRAINED) for name in names[6:11]]
    braked = among(dict.fromkeys(names, 1), [*asked, down(0, app="app11")])
    assert held(braked) == {action.key for action in asked}
    assert braked.held is not None
    assert braked.held.reason == (
        "11 of 12 apps would have no UP instance left, because their syncers are being deleted or "
        "they are drained"
    )


def test_a_lower_limit_that_empties_no_app_is_not_held() -> None:
    """It takes all but one instance of each of 20 apps."""
    names = [f"app{number}" for number in range(20)]
    fewer = [cancel(n, app=name, grounds=Grounds.OVER_LIMIT) for name in names for n in range(4)]
    assert among(dict.fromkeys(names, 5), [*fewer]).held is None


def test_both_numbers_of_that_limit_take_effect() -> None:
    """Deletions are held only above both."""
    names = [f"app{number}" for number in range(10)]
    actions: list[Action] = [deleted(name) for name in names[:3]]
    three = replace(LIMITS, asked_floor=2, asked_percent=29)
    assert len(held(among(dict.fromkeys(names, 1), actions, three))) == 3
    assert held(among(dict.fromkeys(names, 1), actions, replace(three, asked_floor=3))) == set()
    assert held(among(dict.fromkeys(names, 1), actions, replace(three, asked_percent=30))) == set()


def test_a_deletion_is_not_held_with_removals_that_nobody_asked_for() -> None:
    """It does not add to them either. Three apps are deleted while one becomes unready."""
    actions: list[Action] = [*(deleted(app) for app in ("a", "b", "c")), down(0, app="d")]
    braked = among(dict.fromkeys("abcdef", 1), [*actions])
    assert braked.held is None
    both = among(dict.fromkeys("abcdef", 1), [*actions, down(0, app="e")])
    assert held(both) == {instance(0, app="d").key, instance(0, app="e").key}
    unready = [down(number, app="f") for number in range(12)]
    sizes = among({"a": 1, "f": 20}, [deleted("a"), *unready])
    assert held(sizes) == {one.key for one in unready}


def test_the_last_apps_may_be_deleted_while_another_removal_waits() -> None:
    """All our instances would be removed. Those of the deleted syncer are, and the unready app
    waits for its second look."""
    braked = among({"a": 1, "b": 1}, [deleted("a"), down(0, app="b")], SECOND_LOOK)
    assert held(braked) == {instance(0, app="b").key}


def test_an_app_that_is_deleted_in_part_keeps_the_other_part() -> None:
    """In two apps, one of two syncers is deleted, and the pods of the other become unready. The
    unready ones are held."""
    actions: list[Action] = [deleted("a"), down(1, app="a"), deleted("b"), down(1, app="b")]
    braked = among({"a": 2, "b": 2, "c": 2}, actions)
    assert held(braked) == {instance(1, app="a").key, instance(1, app="b").key}


@pytest.mark.parametrize("back", [False, True])
def test_an_app_that_changes_its_name_loses_nothing(back: bool) -> None:
    """40 of 42 instances move to a new name, or back to a name that is still registered. No limit
    counts them, and nothing is held."""
    moving: list[Action] = [cancel(number, app="pay") for number in range(40)]
    apps = {"pay": 40, "cart": 2}
    if back:
        apps["payments"] = 40
        keys = [instance(number, app="payments").key for number in range(40)]
        moving += [Renew(key=key, syncer=REF, why="", status=UP) for key in keys]
    else:
        moving += [register(number, app="payments") for number in range(40)]
    assert among(apps, moving, SECOND_LOOK).held is None


def test_losses_beside_a_change_of_name_are_weighed_as_usual() -> None:
    """38 of 40 instances move, and two pods are gone. Those two are the last instances of the old
    name."""
    moving: list[Action] = [cancel(number, app="pay") for number in range(40)]
    moving += [register(number, app="payments") for number in range(38)]
    lost = {instance(number, app="pay").key for number in (38, 39)}
    braked = among({"pay": 40, "cart": 2}, moving, SECOND_LOOK)
    assert held(braked) == lost
    assert braked.held is not None
    assert braked.held.reason.startswith("app PAY would have no UP instance left")


def test_cancels_for_duplicates_count_only_for_the_limit_on_the_number_of_removals() -> None:
    """A client that can register our pods' addresses must not remove most of our instances. A few
    are cancelled, even an app's last."""
    beside: list[Action] = [cancel(number, grounds=Grounds.DUPLICATE) for number in range(15)]
    assert len(held(among({"rating": 20}, beside))) == 15
    stands = observed(*(stored(instance(number)) for number in range(4)))
    few = sorted_plan(beside[:3])
    assert weigh(few, stands, SECOND_LOOK).held is None
    assert (
        among(
            {"a": 1, "b": 1},
            [cancel(0, app=a, grounds=Grounds.DUPLICATE) for a in "ab"],
            SECOND_LOOK,
        ).held
        is None
    )


def test_an_instance_at_another_pods_address_is_never_held() -> None:
    """Its callers would reach another app. It still counts as a removal."""
    unready = [down(number, app="a") for number in range(10)]
    wrong = cancel(10, app="a", grounds=Grounds.REPLACED)
    braked = among({"a": 30}, [*unready, wrong])
    assert held(braked) == {one.key for one in unready}
    assert braked.plan.of(Cancel) == (wrong,)
    last = among({"a": 1, "b": 1}, [cancel(0, app="a", grounds=Grounds.REPLACED)], SECOND_LOOK)
    assert last.held is None
    mixed = among(
        {"a": 2, "b": 1},
        [cancel(0, app="a", grounds=Grounds.REPLACED), cancel(1, app="a")],
        SECOND_LOOK,
    )
    assert held(mixed) == {instance(1, app="a").key}


def test_a_read_that_failed_may_be_of_one_that_serves() -> None:
    """Two apps lose instances of a deleted syncer, or an unready one. Their other instances could
    not be read, and may still serve callers."""
    stands = observed(*(stored(instance(n, app=app)) for app in "abc" for n in range(2)))
    drain_unknown = stands.refreshed(
        {instance(1, app=app).key: Unread(why="timeout") for app in "ab"}
    )
    plan = sorted_plan([deleted("a"), deleted("b")])
    assert weigh(plan, drain_unknown).held is None
    mixed = sorted_plan([deleted("a"), down(0, app="b")])
    assert held(weigh(mixed, drain_unknown)) == {instance(0, app="b").key}


def test_wanted_removals_do_not_wait_with_the_unready_pods_of_their_app() -> None:
    """A drained and a terminating pod need no approval, although eleven other pods of their app are
    unready."""
    drained = replace(down(19, app="a"), grounds=Grounds.DRAINED)
    ending = cancel(18, app="a", grounds=Grounds.TERMINATING)
    unready = [down(number, app="a") for number in range(11)]
    for others in (200, 5):  # too much of one app, or of all
        braked = among({"a": 20, "b": others}, [*unready, drained, ending])
        assert held(braked) == {one.key for one in unready}
