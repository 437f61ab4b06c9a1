"""When a pass takes away too much, and what it does then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eurekube_sync.actions import Action, Cancel, Grounds, Register, Renew, Update
from eurekube_sync.brake import BrakeLimits, Held, apply_brake
from eurekube_sync.model import InstanceKey, SyncerRef
from eurekube_sync.observed import Unread
from eurekube_sync.plan import Blocked, Obstacle, Plan, sorted_plan, withdrawal_id

from .build import DOWN, OUT, PROOF, REF, UP, instance, observed, stored

LIMITS = BrakeLimits()
NO_APP_LIMIT = BrakeLimits(apps_percent=100, apps_floor=10_000)


def cancel(number: int, *, app: str = "rating", grounds: Grounds = Grounds.ABSENCE) -> Cancel:
    """A cancel of an UP instance."""
    return Cancel(
        key=instance(number, app=app).key, syncer=REF, why="", grounds=grounds, proof=PROOF, was=UP, vip_address=app
    )


def down(number: int, *, app: str = "rating") -> Update:
    """UP to DOWN."""
    wanted = instance(number, app=app, status=DOWN)
    return Update(instance=wanted, syncer=REF, why="", changes=(), was=UP, stored_timestamp=1, proof=PROOF)


def up(number: int, *, app: str = "rating") -> Update:
    """DOWN to UP."""
    return Update(
        instance=instance(number, app=app), syncer=REF, why="", changes=(), was=DOWN, stored_timestamp=1, proof=PROOF
    )


def register(number: int, *, app: str = "rating") -> Register:
    """A new UP instance."""
    return Register(instance=instance(number, app=app), syncer=REF, why="")


def brake(
    total: int, actions: list[Action], *, apps: tuple[str, ...] = ("rating",), limits: BrakeLimits = LIMITS
) -> Held | None:
    """What is held of the actions, with `total` UP instances in each app."""
    stands = observed(*(stored(instance(number, app=app)) for app in apps for number in range(total)))
    plan, held = apply_brake(sorted_plan(actions), stands, limits)
    assert (plan == sorted_plan(actions)) is (held is None)
    return held


@pytest.mark.parametrize(
    ("total", "loss", "held"),
    [
        (33, 10, False),  # 30.3 %, and not more than 10
        (36, 11, True),  # 30.6 % and more than 10
        (37, 11, False),  # 29.7 %
        (40, 12, False),  # 30 % exactly
        (40, 13, True),
        (11, 10, False),  # a small installation may lose much, but not all
    ],
)
@pytest.mark.parametrize("withdraw", [cancel, down])
def test_more_than_30_percent_and_more_than_10_are_held(
    total: int, loss: int, held: bool, withdraw: type[Cancel]
) -> None:
    """Both numbers must be passed; UP to DOWN counts as a cancel does."""
    assert (brake(total, [withdraw(number) for number in range(loss)]) is not None) is held  # type: ignore[call-arg, arg-type]


@pytest.mark.parametrize("grounds", list(Grounds))
def test_positive_evidence_is_spared_from_the_test_of_sizes(grounds: Grounds) -> None:
    """Pods that terminate and syncers that a person deletes may be many."""
    held = brake(20, [cancel(number, grounds=grounds) for number in range(15)])
    assert (held is None) is grounds.positive


@pytest.mark.parametrize(("loss", "held"), [(500, False), (501, True)])
def test_more_than_500_are_held_whatever_the_evidence(loss: int, held: bool) -> None:
    """A wish for so much is asked for again."""
    actions: list[Action] = [cancel(number, grounds=Grounds.TERMINATING) for number in range(loss)]
    assert (brake(2000, actions) is not None) is held


@pytest.mark.parametrize(
    ("apps", "emptied", "held"),
    [(3, 1, False), (3, 2, True), (40, 2, False), (40, 3, True), (39, 2, True)],
)
def test_more_than_one_app_or_5_percent_going_to_nothing_is_held(apps: int, emptied: int, held: bool) -> None:
    """One app, or 5 % of those that have an UP instance, whichever is more."""
    names = tuple(f"app{number}" for number in range(apps))
    actions: list[Action] = [cancel(0, app=app, grounds=Grounds.TERMINATING) for app in names[:emptied]]
    assert (brake(1, actions, apps=names) is not None) is held


def test_all_that_we_own_is_held() -> None:
    """Even one app of one instance, even when it terminates."""
    held = brake(1, [cancel(0, grounds=Grounds.TERMINATING)])
    assert held is not None
    assert held.reason == "all that we own would go: 1 UP instance"
    many = brake(2, [down(0), down(1)])
    assert many is not None
    assert many.reason == "all that we own would go: 2 UP instances"


def test_the_last_syncer_may_be_deleted() -> None:
    """A person's deletion of all there is goes through, while it is one app."""
    assert brake(2, [cancel(n, grounds=Grounds.SYNCER_DELETED) for n in range(2)]) is None
    mixed: list[Action] = [cancel(0, grounds=Grounds.SYNCER_DELETED), cancel(1, grounds=Grounds.TERMINATING)]
    assert brake(2, mixed) is not None


def test_an_app_that_moves_to_another_name_is_no_loss_of_everything() -> None:
    """Its syncer gains what it loses; another syncer's gain changes nothing for those that lose all."""
    assert brake(1, [cancel(0), register(0, app="renamed")]) is None
    another = replace(register(0, app="new"), syncer=SyncerRef("elsewhere", "new"))
    assert brake(1, [cancel(0), another]) is not None


def test_loss_is_netted_within_an_app() -> None:
    """A rollout that replaces pods loses nothing; what one app gains does not outweigh what another loses."""
    losses: list[Action] = [cancel(number) for number in range(15)]
    assert brake(20, [*losses, *(register(100 + n) for n in range(15))]) is None
    assert brake(20, [*losses, *(up(100 + n) for n in range(5))]) is None
    assert brake(20, [*losses, *(up(100 + n) for n in range(4))]) is not None
    assert brake(20, [*losses, *(register(100 + n, app="other") for n in range(15))]) is not None


def test_an_app_that_gains_an_instance_is_not_emptied() -> None:
    """The new one counts before the old ones go."""
    actions: list[Action] = [action for app in ("a", "b") for action in (cancel(0, app=app), register(1, app=app))]
    assert brake(1, actions, apps=("a", "b")) is None


def test_only_up_instances_count() -> None:
    """What callers never saw is no loss: a cancel of a DOWN or OUT_OF_SERVICE instance."""
    for status in (DOWN, OUT):
        stands = [stored(instance(number), status=status) for number in range(20)]
        cancels = [replace(cancel(number), was=status) for number in range(20)]
        plan, held = apply_brake(sorted_plan(cancels), observed(*stands), LIMITS)
        assert (plan.actions, held) == (tuple(sorted_plan(cancels).actions), None)


def test_a_plan_without_withdrawals_is_never_held() -> None:
    """Nor is one for a registry where nothing of ours stands."""
    assert brake(0, [register(0)], apps=()) is None
    assert brake(3, [Renew(key=InstanceKey("RATING", "x"), syncer=REF, why="")]) is None


def test_held_withdrawals_are_renewed_with_their_status_and_the_rest_is_done() -> None:
    """All of them, also those that alone would have been few; adds and other cancels go on."""
    stands = observed(*(stored(instance(number)) for number in range(2)))
    gone_down = Cancel(key=instance(5).key, syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=DOWN)
    before = sorted_plan([cancel(0), down(1), gone_down])
    plan, held = apply_brake(before, stands, LIMITS)
    assert held is not None
    assert held.withdrawals == before.withdrawals
    assert held.plan_id == withdrawal_id(before.actions)
    renewals = plan.of(Renew)
    assert [(r.key, r.status, r.heal) for r in renewals] == [(instance(n).key, UP, None) for n in range(2)]
    assert {r.why for r in renewals} == {f"its removal is held ({held.plan_id})"}
    assert plan.of(Cancel) == (gone_down,)
    assert plan.withdrawals == ()


def test_a_plan_id_releases_exactly_what_was_held() -> None:
    """The same set of withdrawals, or nothing."""
    stands = observed(stored(instance(0)))
    plan = sorted_plan([cancel(0)])
    _, held = apply_brake(plan, stands, LIMITS)
    assert held is not None
    assert apply_brake(plan, stands, LIMITS, approved=held.plan_id) == (plan, None)
    more = sorted_plan([cancel(0), cancel(1)])
    both = observed(stored(instance(0)), stored(instance(1)))
    assert apply_brake(more, both, LIMITS, approved=held.plan_id)[1] is not None


def test_every_number_is_an_option() -> None:
    """Each limit is the one that takes hold."""
    actions: list[Action] = [cancel(number) for number in range(5)]
    assert brake(10, actions, limits=BrakeLimits(loss_percent=49, loss_floor=4)) is not None
    assert brake(10, actions, limits=BrakeLimits(loss_percent=50, loss_floor=4)) is None
    assert brake(10, actions, limits=BrakeLimits(loss_percent=49, loss_floor=5)) is None
    assert brake(10, actions, limits=BrakeLimits(loss_ceiling=4)) is not None
    emptied: list[Action] = [cancel(0, app=app) for app in ("a", "b")]
    apps = ("a", "b", "c", "d")
    assert brake(1, emptied, apps=apps, limits=BrakeLimits(apps_floor=2)) is None
    assert brake(1, emptied, apps=apps, limits=BrakeLimits(apps_percent=50)) is None
    assert brake(1, emptied, apps=apps, limits=BrakeLimits(apps_percent=49)) is not None


def test_a_blocked_instance_stays_blocked_while_the_brake_holds() -> None:
    """The plan keeps what else it says."""
    blocked = Blocked(key=instance(1).key, syncer=REF, why="timeout", obstacle=Obstacle.UNREAD)
    plan, held = apply_brake(sorted_plan([cancel(0)], [blocked]), observed(stored(instance(0))), LIMITS)
    assert held is not None
    assert plan.blocked == (blocked,)


def test_an_instance_that_could_not_be_read_again_counts_as_lost() -> None:
    """A read that fails in the midst of a loss must not make the rest of it look small."""
    stands = observed(stored(instance(0)), stored(instance(1)), stored(instance(2, app="web")))
    unsure = stands.refreshed({instance(0).key: Unread(why="timeout")})
    losses = [cancel(1), cancel(2, app="web")]
    assert apply_brake(sorted_plan(losses), stands, LIMITS)[1] is None
    assert apply_brake(sorted_plan(losses), unsure, LIMITS)[1] is not None


def test_a_read_that_failed_holds_nothing_by_itself() -> None:
    """Nor does one of an instance that is not UP, or not known at all."""
    unsure = observed(stored(instance(0))).refreshed({instance(0).key: Unread(why="timeout")})
    assert apply_brake(Plan(), unsure, LIMITS) == (Plan(), None)
    known = observed(stored(instance(0), status=DOWN), stored(instance(1)), stored(instance(2)))
    unread = {instance(n).key: Unread(why="timeout") for n in (0, 9)}
    assert apply_brake(sorted_plan([cancel(1)]), known.refreshed(unread), LIMITS)[1] is None
