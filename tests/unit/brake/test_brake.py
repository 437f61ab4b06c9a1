"""The brake: when a pass would remove too much, and what the brake holds then."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from eurekube_sync.brake.approval import PlanId, approve_command
from eurekube_sync.brake.braking import Braked, apply_brake
from eurekube_sync.brake.holds import (
    Brake,
    BrakeLimits,
    Held,
    Hold,
    condition_message,
    held_of,
)
from eurekube_sync.model.actions import Action, Cancel, Change, Grounds, Register, Renew, Update
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Observed, Unread
from eurekube_sync.plan.value import Blocked, Obstacle, Plan, removal_id, sorted_plan
from tests.unit.worlds.build import DOWN, OUT, PROOF, REF, UP, instance, observed, stored

LIMITS = BrakeLimits(confirm_after=0)
"""Limits without a confirmation, which has its own tests."""


def cancel(number: int, *, app: str = "rating", grounds: Grounds = Grounds.ABSENCE) -> Cancel:
    """A cancel of an UP instance."""
    return Cancel(
        key=instance(number, app=app).key, syncer=REF, why="", grounds=grounds, proof=PROOF, was=UP
    )


def down(number: int, *, app: str = "rating") -> Update:
    """A change from UP to DOWN."""
    wanted = instance(number, app=app, status=DOWN)
    return Update(
        instance=wanted, syncer=REF, why="", changes=(), was=UP, stored_timestamp=1, proof=PROOF
    )


def up(number: int, *, app: str = "rating") -> Update:
    """A change from DOWN to UP."""
    return Update(
        instance=instance(number, app=app),
        syncer=REF,
        why="",
        changes=(Change(field="status", was="DOWN", becomes="UP"),),
        was=DOWN,
        stored_timestamp=1,
        proof=PROOF,
    )


def out_of_service(number: int, *, app: str = "rating") -> Update:
    """A change of metadata of an instance that a person put out of service. Its status stays."""
    changes = (Change(field="metadata.version", was="1", becomes="2"),)
    return replace(up(number, app=app), was=OUT, changes=changes)


def register(number: int, *, app: str = "rating") -> Register:
    """A registration of an UP instance."""
    return Register(instance=instance(number, app=app), syncer=REF, why="")


def weigh(plan: Plan, stands: Observed, limits: BrakeLimits = LIMITS, **rest: Any) -> Braked:
    """Apply the brake to the plan."""
    return apply_brake(plan, stands, Brake(limits=limits, **rest))


def brake(
    total: int,
    actions: list[Action],
    *,
    apps: tuple[str, ...] = ("rating",),
    limits: BrakeLimits = LIMITS,
) -> Held | None:
    """Return what is held of the actions, with `total` UP instances in each app."""
    stands = observed(
        *(stored(instance(number, app=app)) for app in apps for number in range(total))
    )
    braked = weigh(sorted_plan(actions), stands, limits)
    assert (braked.plan == sorted_plan(actions)) is (braked.held is None)
    return braked.held


@pytest.mark.parametrize(
    ("total", "loss", "held"),
    [
        (33, 10, False),  # 30.3 %, and not more than 10
        (36, 11, True),  # 30.6 % and more than 10
        (37, 11, False),  # 29.7 %
        (40, 12, False),  # 30 % exactly
        (40, 13, True),
        (11, 10, False),  # a small installation may lose much
    ],
)
@pytest.mark.parametrize("remove", [cancel, down])
def test_more_than_30_percent_and_more_than_10_are_held(
    total: int, loss: int, held: bool, remove: type[Cancel]
) -> None:
    """A loss must exceed both numbers. A change from UP to DOWN counts like a cancel."""
    assert (brake(total, [remove(number) for number in range(loss)]) is not None) is held  # type: ignore[call-arg, arg-type]


@pytest.mark.parametrize("grounds", list(Grounds))
def test_removals_with_evidence_do_not_count_for_the_limit_of_30_percent(grounds: Grounds) -> None:
    """Many pods may terminate or be dead, and a person may delete many syncers."""
    held = brake(20, [cancel(number, grounds=grounds) for number in range(15)])
    assert (held is None) is (grounds.positive or grounds in (Grounds.REPLACED, Grounds.POD_GONE))


@pytest.mark.parametrize(
    ("apps", "emptied", "held"),
    [(3, 1, False), (3, 2, True), (40, 2, False), (40, 3, True), (39, 2, True)],
)
def test_emptying_more_than_one_app_and_5_percent_of_apps_is_held(
    apps: int, emptied: int, held: bool
) -> None:
    """The limit is one app or 5 % of the apps with an UP instance, whichever is more."""
    names = tuple(f"app{number}" for number in range(apps))
    actions: list[Action] = [
        cancel(0, app=app, grounds=Grounds.TERMINATING) for app in names[:emptied]
    ]
    assert (brake(1, actions, apps=names) is not None) is held


def test_an_instance_that_a_person_put_out_of_service_replaces_nothing() -> None:
    """It is registered again with changed metadata. Callers do not find it afterwards either."""
    gone = [cancel(0, app=app, grounds=Grounds.TERMINATING) for app in ("a", "b")]
    assert brake(1, [*gone, *(up(5, app=app) for app in ("a", "b"))], apps=("a", "b", "c")) is None
    held = brake(
        1, [*gone, *(out_of_service(5, app=app) for app in ("a", "b"))], apps=("a", "b", "c")
    )
    assert held is not None
    assert len(held.removals) == 2


@pytest.mark.parametrize("grounds", [ground for ground in Grounds if ground.positive])
def test_the_only_app_goes_with_evidence(grounds: Grounds) -> None:
    """How many instances we own makes no difference. Without evidence, the app waits for a second
    pass; see below."""
    removals = [cancel(number, grounds=grounds) for number in range(2)]
    assert brake(2, [*removals]) is None
    assert brake(2, [*removals], limits=SECOND_LOOK) is None
    unexplained = brake(2, [cancel(0), cancel(1)], limits=SECOND_LOOK)
    assert unexplained is not None
    assert [hold.reason for hold in unexplained.holds] == [Reason.AWAITING_CONFIRMATION]


@pytest.mark.parametrize("grounds", [Grounds.DRAINED, Grounds.OVER_LIMIT])
def test_what_a_person_asked_for_is_not_held_with_what_nobody_asked_for(grounds: Grounds) -> None:
    """A drain or a limit of 0 takes all three apps. It does not add to what nobody asked for, and
    is not held with that."""
    apps = ("a", "b", "c")
    assert brake(1, [cancel(0, app=app, grounds=grounds) for app in apps], apps=apps) is None
    mixed: list[Action] = [cancel(0, app="a", grounds=grounds), cancel(0, app="b", grounds=grounds)]
    assert brake(1, [*mixed, cancel(0, app="c")], apps=apps) is None
    four = (*apps, "d")
    held = brake(1, [*mixed, cancel(0, app="c"), cancel(0, app="d")], apps=four)
    assert held is not None
    assert held.reason == "2 of 4 apps would have no UP instance left"
    assert {removal.key.app for removal in held.removals} == {"C", "D"}


def test_an_app_that_is_drained_in_part_is_emptied_by_the_rest() -> None:
    """The unready half of each app is held, and the drained half is not."""
    apps = ("a", "b")
    actions: list[Action] = []
    for app in apps:
        actions += [cancel(0, app=app, grounds=Grounds.DRAINED), down(1, app=app)]
    held = brake(2, actions, apps=apps)
    assert held is not None
    assert {removal.key for removal in held.removals} == {instance(1, app=app).key for app in apps}


def test_the_reasons_of_two_holds_are_numbered() -> None:
    """One alone is not."""
    holds = [
        Hold(reason=Reason.TOO_MANY_REMOVALS, why=why, removals=(cancel(number),))
        for number, why in enumerate(["too many", "too many apps"])
    ]
    both, alone = held_of(holds), held_of(holds[:1])
    assert both is not None
    assert both.reason == "(1) too many; (2) too many apps"
    assert alone is not None
    assert alone.reason == "too many"


def test_apps_that_move_to_another_name_are_no_loss() -> None:
    """The same pods are registered under the new names. Other pods prove nothing."""
    apps = ("a", "b")
    gone: list[Action] = [cancel(0, app=app) for app in apps]
    assert brake(1, [*gone, *(register(0, app=f"{app}-2") for app in apps)], apps=apps) is None
    assert brake(1, [*gone, *(register(5, app=f"{app}-2") for app in apps)], apps=apps) is not None


def test_additions_reduce_only_the_loss_of_their_own_app() -> None:
    """A rollout that replaces pods is no loss. Additions to one app do not offset the loss of
    another."""
    losses: list[Action] = [cancel(number) for number in range(15)]
    assert brake(20, [*losses, *(register(100 + n) for n in range(15))]) is None
    assert brake(20, [*losses, *(up(100 + n) for n in range(5))]) is None
    assert brake(20, [*losses, *(up(100 + n) for n in range(4))]) is not None
    assert brake(20, [*losses, *(register(100 + n, app="other") for n in range(15))]) is not None


def test_an_app_that_gains_an_instance_is_not_emptied() -> None:
    """The new instance counts before the old ones are cancelled."""
    actions: list[Action] = [
        action for app in ("a", "b") for action in (cancel(0, app=app), register(1, app=app))
    ]
    assert brake(1, actions, apps=("a", "b")) is None


def test_only_up_instances_count() -> None:
    """Callers lose nothing by the cancel of a DOWN or OUT_OF_SERVICE instance."""
    for status in (DOWN, OUT):
        stands = [stored(instance(number), status=status) for number in range(20)]
        cancels = [replace(cancel(number), was=status) for number in range(20)]
        assert weigh(sorted_plan(cancels), observed(*stands)) == Braked(
            plan=sorted_plan(cancels), held=None
        )


def test_a_plan_without_removals_is_never_held() -> None:
    """This also holds if none of our instances is registered."""
    assert brake(0, [register(0)], apps=()) is None
    assert brake(3, [Renew(key=InstanceKey("RATING", "x"), syncer=REF, why="")]) is None


def test_held_removals_are_renewed_with_their_status_and_the_rest_is_done() -> None:
    """All removals are held, even those that alone would be few. Adds and other cancels are
    done."""
    stands = observed(*(stored(instance(number)) for number in range(2)))
    gone_down = Cancel(
        key=instance(5).key, syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=DOWN
    )
    before = sorted_plan([cancel(0), down(1), gone_down])
    braked = weigh(before, stands, SECOND_LOOK)
    plan, held = braked.plan, braked.held
    assert held is not None
    assert held.removals == tuple(sorted(before.removals, key=lambda one: one.key))
    assert held.plan_id == removal_id(before.removals)
    renewals = plan.of(Renew)
    assert [(r.key, r.status, r.if_gone) for r in renewals] == [
        (instance(n).key, UP, None) for n in range(2)
    ]
    assert {r.why for r in renewals} == {
        f"the removal of the instance is held (plan id {held.plan_id})"
    }
    assert plan.of(Cancel) == (gone_down,)
    assert plan.removals == ()


def test_a_plan_id_releases_exactly_the_held_removals() -> None:
    """It releases nothing if the set of removals is another one."""
    stands = observed(stored(instance(0)))
    plan = sorted_plan([cancel(0)])
    held = weigh(plan, stands, SECOND_LOOK).held
    assert held is not None
    approval = PlanId(held.plan_id)
    assert weigh(plan, stands, SECOND_LOOK, approval=approval) == Braked(
        plan=plan, held=None, approved=frozenset({instance(0).key})
    )
    more = sorted_plan([cancel(0), cancel(1)])
    both = observed(stored(instance(0)), stored(instance(1)))
    assert weigh(more, both, SECOND_LOOK, approval=approval).held is not None


def test_each_limit_of_the_brake_takes_effect() -> None:
    actions: list[Action] = [cancel(number) for number in range(5)]
    assert brake(10, actions, limits=replace(LIMITS, loss_percent=49, loss_floor=4)) is not None
    assert brake(10, actions, limits=replace(LIMITS, loss_percent=50, loss_floor=4)) is None
    assert brake(10, actions, limits=replace(LIMITS, loss_percent=49, loss_floor=5)) is None
    emptied: list[Action] = [cancel(0, app=app) for app in ("a", "b")]
    apps = ("a", "b", "c", "d")
    assert brake(1, emptied, apps=apps, limits=replace(LIMITS, apps_floor=2)) is None
    assert brake(1, emptied, apps=apps, limits=replace(LIMITS, apps_percent=50)) is None
    assert brake(1, emptied, apps=apps, limits=replace(LIMITS, apps_percent=49)) is not None


def test_a_blocked_instance_stays_blocked_while_the_brake_holds() -> None:
    blocked = Blocked(key=instance(1).key, syncer=REF, why="timeout", obstacle=Obstacle.UNREAD)
    braked = weigh(sorted_plan([cancel(0)], [blocked]), observed(stored(instance(0))), SECOND_LOOK)
    assert braked.held is not None
    assert braked.plan.blocked == (blocked,)


def test_an_instance_that_could_not_be_read_again_counts_as_lost() -> None:
    """A failed read during an outage must not make the loss look smaller."""
    stands = observed(stored(instance(0)), stored(instance(1)), stored(instance(2, app="web")))
    drain_unknown = stands.refreshed({instance(0).key: Unread(why="timeout")})
    losses = [cancel(1), cancel(2, app="web")]
    assert weigh(sorted_plan(losses), stands).held is None
    assert weigh(sorted_plan(losses), drain_unknown).held is not None


def test_a_read_that_failed_holds_nothing_by_itself() -> None:
    """A failed read of an instance that is not UP, or is unknown, adds no loss."""
    drain_unknown = observed(stored(instance(0))).refreshed(
        {instance(0).key: Unread(why="timeout")}
    )
    assert weigh(Plan(), drain_unknown) == Braked(plan=Plan(), held=None)
    known = observed(stored(instance(0), status=DOWN), stored(instance(1)), stored(instance(2)))
    unread = {instance(n).key: Unread(why="timeout") for n in (0, 9)}
    assert weigh(sorted_plan([cancel(1)]), known.refreshed(unread)).held is None


def test_new_instances_first_replace_terminating_ones() -> None:
    """A rollout adds as many pods as it ends. Other pods that become unready meanwhile are still a
    loss."""
    ending = [cancel(number, grounds=Grounds.TERMINATING) for number in range(15)]
    coming = [register(100 + number) for number in range(15)]
    unready = [down(20 + number) for number in range(15)]
    held = brake(40, [*ending, *coming, *unready])
    assert held is not None
    assert held.reason == "this installation would lose 15 of its 40 UP instances, more than 30 %"
    assert brake(40, [*ending, *coming]) is None
    few = brake(40, [*ending, *coming, *unready[:10]])
    assert few is None


OTHER = SyncerRef("elsewhere", "web")
STANDS = observed(
    *(stored(instance(number)) for number in range(4)),
    *(stored(instance(10 + n, app="web", ref=OTHER)) for n in range(9)),
)
"""Four instances of `rating`, and nine of another syncer's `web`."""


def of_other(number: int) -> Cancel:
    """A cancel of the other syncer's instance."""
    wanted = instance(10 + number, app="web", ref=OTHER)
    return replace(cancel(0), key=wanted.key, syncer=OTHER)


SECOND_LOOK = BrakeLimits()
ALL_OF_RATING = sorted_plan([cancel(number) for number in range(4)])


def awaited(braked: Braked) -> dict[tuple[SyncerRef, str], float]:
    """Return the removals that await confirmation, as if they were first seen 20 s ago."""
    holds = braked.held.holds if braked.held else ()
    assert {hold.reason for hold in holds} <= {Reason.AWAITING_CONFIRMATION}
    return {(hold.syncer, hold.mark): 20.0 for hold in holds if hold.syncer}


def test_the_last_instances_of_an_app_wait_for_a_second_pass() -> None:
    """The second pass comes at least 20 s later. Other removals are done at once. An app that keeps
    an instance does not wait."""
    plan = sorted_plan([*ALL_OF_RATING.actions, of_other(0)])
    first = weigh(plan, STANDS, SECOND_LOOK)
    assert first.plan.of(Cancel) == (of_other(0),)
    assert first.held is not None
    assert first.held.reason == (
        "app RATING would have no UP instance left (no approval is needed if a second pass, at "
        "least 20 s "
        "after the first, plans the same)"
    )
    seen = awaited(first)
    assert weigh(plan, STANDS, SECOND_LOOK, seen=dict.fromkeys(seen, 19.9)).held is not None
    confirmed = frozenset(one.key for one in ALL_OF_RATING.removals)
    assert weigh(plan, STANDS, SECOND_LOOK, seen=seen) == Braked(
        plan=plan, held=None, confirmed=confirmed
    )
    assert weigh(sorted_plan(ALL_OF_RATING.actions[:3]), STANDS, SECOND_LOOK).held is None
    assert weigh(ALL_OF_RATING, STANDS, LIMITS).held is None


@pytest.mark.parametrize("seconds", [0.5, 1])
def test_the_shortest_wait_is_a_wait(seconds: float) -> None:
    """A removal that no earlier pass saw is not confirmed."""
    assert (
        weigh(ALL_OF_RATING, STANDS, replace(SECOND_LOOK, confirm_after=seconds)).held is not None
    )


def test_another_removal_is_not_confirmed_by_the_first() -> None:
    """Removals of other instances, or of another syncer, start a new wait. A cancel and a change to
    DOWN are the same loss."""
    seen = awaited(weigh(ALL_OF_RATING, STANDS, SECOND_LOOK))
    fewer = observed(*(i for i in STANDS.ours.values() if i.key != instance(3).key))
    assert (
        weigh(sorted_plan(ALL_OF_RATING.actions[:3]), fewer, SECOND_LOOK, seen=seen).held
        is not None
    )
    stolen = {(OTHER, mark): age for (_, mark), age in seen.items()}
    assert weigh(ALL_OF_RATING, STANDS, SECOND_LOOK, seen=stolen).held is not None
    downs = sorted_plan([down(number) for number in range(4)])
    assert weigh(downs, STANDS, SECOND_LOOK, seen=seen).held is None


def test_each_of_an_app_is_remembered_by_itself() -> None:
    """Within a process, a removal that ends does not restart the wait of the others. A new removal
    does."""
    first = weigh(ALL_OF_RATING, STANDS, SECOND_LOOK).held
    assert first is not None
    seen = {one: 20.0 for hold in first.holds for one in hold.sightings}
    fewer = observed(*(i for i in STANDS.ours.values() if i.key != instance(3).key))
    assert weigh(sorted_plan(ALL_OF_RATING.actions[:3]), fewer, SECOND_LOOK, seen=seen).held is None
    more = observed(*STANDS.ours.values(), stored(instance(4)))
    grown = weigh(
        sorted_plan([cancel(number) for number in range(5)]), more, SECOND_LOOK, seen=seen
    ).held
    assert grown is not None
    assert len(grown.removals) == 5


def test_removals_with_evidence_need_no_second_pass() -> None:
    """Only the removal without evidence waits, so the app keeps an instance."""
    mixed = sorted_plan(
        [*(cancel(number, grounds=Grounds.TERMINATING) for number in range(3)), cancel(3)]
    )
    braked = weigh(mixed, STANDS, SECOND_LOOK)
    assert braked.held is not None
    assert [one.key for one in braked.held.removals] == [instance(3).key]
    alone = sorted_plan([cancel(number, grounds=Grounds.SYNCER_DELETED) for number in range(4)])
    assert weigh(alone, STANDS, SECOND_LOOK).held is None


def test_an_app_that_changes_its_name_needs_no_second_pass() -> None:
    """Its pods still serve at their addresses, under the same syncer. Additions of other pods do
    not count."""
    renamed = [register(number, app="fresh") for number in range(4)]
    assert weigh(sorted_plan([*ALL_OF_RATING.actions, *renamed]), STANDS, SECOND_LOOK).held is None
    standing = observed(
        *STANDS.ours.values(), *(stored(instance(number, app="fresh")) for number in range(4))
    )
    renewed = [
        Renew(key=instance(number, app="fresh").key, syncer=REF, why="", status=UP)
        for number in range(4)
    ]
    assert (
        weigh(sorted_plan([*ALL_OF_RATING.actions, *renewed]), standing, SECOND_LOOK).held is None
    )
    others = [register(20 + number, app="fresh") for number in range(4)]
    assert (
        weigh(sorted_plan([*ALL_OF_RATING.actions, *others]), STANDS, SECOND_LOOK).held is not None
    )
    strangers = [replace(one, syncer=OTHER) for one in renamed]
    assert (
        weigh(sorted_plan([*ALL_OF_RATING.actions, *strangers]), STANDS, SECOND_LOOK).held
        is not None
    )


def test_an_app_of_two_syncers_waits_until_both_are_seen_again() -> None:
    """The removal that was seen earlier waits for the other. One sentence reports several apps of a
    syncer."""
    both = observed(
        stored(instance(0)),
        stored(instance(1, ref=OTHER)),
        *(stored(instance(n, app=f"app{n}")) for n in range(5, 30)),
    )
    theirs = replace(cancel(1), key=instance(1, ref=OTHER).key, syncer=OTHER)
    plan = sorted_plan([cancel(0), theirs])
    seen = awaited(weigh(plan, both, SECOND_LOOK))
    assert len(seen) == 2
    half = {known: 20.0 if known[0] == REF else 5.0 for known in seen}
    braked = weigh(plan, both, SECOND_LOOK, seen=half)
    assert braked.held is not None
    assert len(braked.held.removals) == 2
    assert weigh(plan, both, SECOND_LOOK, seen=seen).held is None
    limits = replace(SECOND_LOOK, apps_floor=10)
    several = weigh(sorted_plan([cancel(n, app=f"app{n}") for n in range(5, 9)]), both, limits).held
    assert several is not None
    assert several.reason.startswith("APP5 and 3 more apps would have no UP instance left")


def test_many_holds_are_reported_in_few_words() -> None:
    """The sentence has three of them, and the number of the others."""
    refs = [SyncerRef(f"ns{number}", "web") for number in range(5)]
    stands = observed(
        *(stored(instance(n, app=f"app{n}", ref=ref)) for n, ref in enumerate(refs)),
        *STANDS.ours.values(),
    )
    cancels = [
        replace(cancel(0), key=instance(n, app=f"app{n}", ref=ref).key, syncer=ref)
        for n, ref in enumerate(refs)
    ]
    held = weigh(sorted_plan(cancels), stands, replace(SECOND_LOOK, apps_floor=10)).held
    assert held is not None
    assert (len(held.holds), held.reason.count("would have no UP instance left")) == (5, 3)
    assert held.reason.endswith("; and 2 more")


def test_removals_that_an_annotation_released_are_neither_held_nor_counted() -> None:
    """The other removals are weighed as if the released ones were already done."""
    plan = sorted_plan([*ALL_OF_RATING.actions, of_other(0)])
    freed = frozenset({REF})
    assert weigh(plan, STANDS, SECOND_LOOK, freed_by_annotation=freed) == Braked(
        plan=plan, held=None
    )
    everything = sorted_plan([*ALL_OF_RATING.actions, *(of_other(number) for number in range(9))])
    braked = weigh(everything, STANDS, SECOND_LOOK, freed_by_annotation=freed)
    assert braked.held is not None
    assert braked.held.reason.startswith("app WEB would have no UP instance left")
    assert {one.syncer for one in braked.held.removals} == {OTHER}
    assert {one.syncer for one in braked.plan.removals} == {REF}


def test_instances_that_replace_released_removals_offset_no_other_loss() -> None:
    """A person released one syncer's removals, and that syncer does a rollout. Meanwhile another
    syncer's pods of the same app fail."""
    web = SyncerRef("shop", "web")
    stands = observed(*(stored(instance(number)) for number in range(25)))
    rollout: list[Action] = [replace(cancel(number), syncer=web) for number in range(10)]
    rollout += [replace(register(100 + number), syncer=web) for number in range(10)]
    failing: list[Action] = [down(number) for number in range(10, 22)]
    held = weigh(
        sorted_plan([*rollout, *failing]), stands, freed_by_annotation=frozenset({web})
    ).held
    assert held is not None
    assert {one.syncer for one in held.removals} == {REF}
    assert held.reason == "this installation would lose 12 of its 15 UP instances, more than 30 %"


def test_instances_that_replace_released_removals_keep_their_app_from_being_empty() -> None:
    """Callers find them, whatever they replace."""
    web = SyncerRef("shop", "web")
    stands = observed(
        *(stored(instance(number, app=app)) for app in ("rating", "other") for number in range(3))
    )
    plan = sorted_plan(
        [replace(cancel(0), syncer=web), replace(register(9), syncer=web), down(1), down(2)]
    )
    assert weigh(plan, stands, LIMITS, freed_by_annotation=frozenset({web})).held is None
    waiting = BrakeLimits(confirm_after=20)
    assert weigh(plan, stands, waiting, freed_by_annotation=frozenset({web})).held is None


@pytest.mark.parametrize(
    ("names", "said", "whose"),
    [
        (["b"], "1 UP instance of rating/b is", "the syncer"),
        (["b", "a"], "2 UP instances of rating/a and of 1 more syncer are", "the syncers"),
        (
            ["b", "a", "c", "b"],
            "4 UP instances of rating/a and of 2 more syncers are",
            "the syncers",
        ),
    ],
)
def test_a_hold_for_an_earlier_crd_names_one_syncer_and_counts_the_others(
    names: list[str], said: str, whose: str
) -> None:
    """The sentence shows a person which syncer to create again."""
    swept = [
        replace(cancel(number, grounds=Grounds.SWEPT), syncer=SyncerRef("rating", name))
        for number, name in enumerate(names)
    ]
    held = brake(9, [*swept])
    assert held is not None
    assert held.reason == (
        f"{said} older than the CustomResourceDefinition (an earlier CustomResourceDefinition may "
        "have been deleted, "
        f"and {whose} with it)"
    )


def test_of_two_holds_of_one_removal_the_first_has_it() -> None:
    """So each removal is reported once to its syncer."""
    one, two, three = cancel(1), cancel(2), cancel(3)
    first = Hold(reason=Reason.TOO_MANY_REMOVALS, why="first", removals=(one, two))
    second = Hold(reason=Reason.CRD_INSTALLED, why="second", removals=(two, three))
    again = replace(second, removals=(one,))
    held = held_of([first, second, again])
    assert held is not None
    assert held.holds == (first, replace(second, removals=(three,)))
    assert held.removals == (one, two, three)
    assert held_of([]) is None


@pytest.mark.parametrize(
    ("count", "removals", "held", "keeps"),
    [
        (1, "removal", "is held", "The instance keeps its status and is renewed."),
        (2, "removals", "are held", "The instances keep their status and are renewed."),
    ],
)
def test_a_syncers_condition_says_what_becomes_of_its_removals_and_what_releases_them(
    count: int, removals: str, held: str, keeps: str
) -> None:
    """A person copies the command. It releases all held removals, including those of other
    syncers."""
    hold = Hold(reason=Reason.TOO_MANY_REMOVALS, why="3 of 9 would go", removals=(cancel(1),))
    command = approve_command("0123456789ab", ["--owner", "my cluster"])
    assert condition_message(hold, count, None, REF, command) == (
        f"{count} {removals} of this syncer {held}: 3 of 9 would go. {keeps} To release the held "
        "removals of all "
        "syncers now: "
        "eurekube-sync run --owner 'my cluster' --approve 0123456789ab"
    )


def test_one_app_that_may_not_go_loses_its_last_instance() -> None:
    """The limit allows no app to lose all instances."""
    held = brake(
        1,
        [cancel(0, grounds=Grounds.TERMINATING)],
        apps=("rating", "b"),
        limits=replace(LIMITS, apps_floor=0, apps_percent=0),
    )
    assert held is not None
    assert held.reason == "1 of 2 apps would have no UP instance left"


class Compared(Cancel, frozen=True, kw_only=True):
    """A cancel that counts its comparisons."""

    comparisons: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        Compared.comparisons += 1
        return self is other

    __hash__ = Cancel.__hash__


def test_the_cost_of_holds_for_an_earlier_crd_is_linear() -> None:
    """All instances may be held at once, and their leases are renewed only after this step."""
    keys = [instance(number).key for number in range(200)]
    swept = [
        Compared(key=key, syncer=REF, why="", grounds=Grounds.SWEPT, proof=PROOF, was=UP)
        for key in keys
    ]
    stands = observed(*(stored(instance(number)) for number in range(200)))
    Compared.comparisons = 0
    held = weigh(Plan(actions=tuple(swept)), stands).held
    assert held is not None
    assert len(held.removals) == len(keys)
    assert Compared.comparisons <= len(keys)
