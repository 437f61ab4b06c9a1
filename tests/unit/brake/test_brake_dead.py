"""Dead pods in the brake: when removals would be held, pods are listed. Instances of dead pods are
removed after a confirmation."""

from __future__ import annotations

import re
from typing import Any

import pytest

from eurekube_sync.brake.braking import Braked
from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.brake.holds import Hold
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Cancel, Grounds
from eurekube_sync.model.kubernetes import PodRef, Pods, Service, SyncerRef
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import sorted_plan
from tests.unit.brake.test_brake import LIMITS, SECOND_LOOK, cancel, down, weigh
from tests.unit.controller.test_reconcile import add_app
from tests.unit.worlds.build import (
    DENIED,
    NS,
    OUT,
    REF,
    endpoint,
    instance,
    observed,
    piece,
    service,
    stored,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld


def alive(*numbers: int) -> Pods:
    """A complete list with these pods."""
    return {NS: Complete(data=frozenset(f"uid-of-rating-{number}" for number in numbers))}


def holds(braked: Braked) -> list[tuple[Reason, int]]:
    """Return the reasons of the holds, with their numbers of removals."""
    return [(hold.reason, len(hold.removals)) for hold in braked.held.holds] if braked.held else []


def apps(*names: str) -> Observed:
    """Apps with one UP instance each. Each instance has another pod."""
    return observed(*(stored(instance(number, app=app)) for number, app in enumerate(names)))


def later(braked: Braked, seconds: float = 20) -> dict[tuple[SyncerRef, str], float]:
    """Return what a process remembers of the holds after this time."""
    return {
        seen: seconds
        for hold in (braked.held.holds if braked.held else ())
        for seen in hold.sightings
    }


TWO_GONE = sorted_plan([cancel(0, app="a"), cancel(1, app="b")])


def test_an_app_whose_pods_are_gone_is_removed_without_approval() -> None:
    """Two of three apps are scaled to 0. A second pass confirms the removal, as for one app."""
    stands = apps("a", "b", "c")
    assert holds(weigh(TWO_GONE, stands, SECOND_LOOK)) == [(Reason.TOO_MANY_REMOVALS, 2)]
    assert holds(weigh(TWO_GONE, stands, SECOND_LOOK, pods=alive(0, 1))) == [
        (Reason.TOO_MANY_REMOVALS, 2)
    ]
    first = weigh(TWO_GONE, stands, SECOND_LOOK, pods=alive(2))
    assert holds(first) == [(Reason.AWAITING_CONFIRMATION, 2)]
    assert weigh(TWO_GONE, stands, SECOND_LOOK, pods=alive(2), seen=later(first)).held is None


def test_living_pods_of_an_app_are_held_and_its_dead_pods_are_removed() -> None:
    """The nodes of two apps are lost. One of their pods is missing from the list."""
    stands = observed(*(stored(instance(n, app=app)) for n, app in enumerate("aabbccc")))
    plan = sorted_plan([cancel(n, app=app) for n, app in enumerate("aabb")])
    braked = weigh(plan, stands, SECOND_LOOK, pods=alive(1, 2, 3, 4, 5, 6))
    assert holds(braked) == [(Reason.TOO_MANY_REMOVALS, 3)]
    assert braked.plan.of(Cancel) == (cancel(0, app="a"),)


@pytest.mark.parametrize("grounds", [Grounds.SYNCER_DELETED, Grounds.ABSENCE])
def test_deleted_apps_without_pods_are_no_loss(grounds: Grounds) -> None:
    """A deleted namespace of 12 apps is removed when its pods have ended, whatever its share."""
    names = [f"app{number}" for number in range(12)]
    plan = sorted_plan([cancel(n, app=name, grounds=grounds) for n, name in enumerate(names)])
    assert weigh(plan, apps(*names, "x"), LIMITS, pods=alive(*range(13))).held is not None
    assert weigh(plan, apps(*names, "x"), LIMITS, pods=alive(12)).held is None


def test_too_many_dead_pods_wait_for_a_second_pass() -> None:
    """A restored etcd without pods looks the same. All removals count until a later pass sees the
    same."""
    stands = observed(*(stored(instance(number)) for number in range(40)))
    plan = sorted_plan([cancel(number) for number in range(20)])
    pods = alive(*range(20, 40))
    first = weigh(plan, stands, SECOND_LOOK, pods=pods)
    assert holds(first) == [(Reason.AWAITING_CONFIRMATION, 20)]
    assert first.held is not None
    assert first.held.reason == (
        "this installation would lose 20 of its 40 UP instances, more than 30 %; of these, 20 of "
        "syncer rating/rating "
        "have no pod any more (no approval is needed if a second pass, at least 20 s after the "
        "first, plans the same)"
    )
    assert weigh(plan, stands, SECOND_LOOK, pods=pods, seen=later(first, 19)).held is not None
    assert weigh(plan, stands, SECOND_LOOK, pods=pods, seen=later(first)).held is None
    assert weigh(plan, stands, LIMITS, pods=pods).held is None


def test_a_look_at_unready_pods_is_no_look_at_dead_ones() -> None:
    """All pods of two apps are unready, and held. Then the list lacks them, as after a restored
    etcd, and so many dead pods wait for a look of their own. A look at dead pods counts for
    both."""
    two = [*(down(n, app="a") for n in range(12)), *(down(n, app="b") for n in range(12, 24))]
    stands = observed(*(stored(instance(n, app="a" if n < 12 else "b")) for n in range(24)))
    first = weigh(sorted_plan(two), stands, SECOND_LOOK, pods=alive(*range(24)))
    assert holds(first) == [(Reason.TOO_MANY_REMOVALS, 24)]
    assert first.held is not None
    seen = {sighting: 20.0 for hold in first.held.awaited for sighting in hold.sightings}
    assert {syncer for syncer, _ in seen} == {REF}
    second = weigh(sorted_plan(two), stands, SECOND_LOOK, pods=alive(), seen=seen)
    assert holds(second) == [(Reason.AWAITING_CONFIRMATION, 24)]
    assert (
        weigh(sorted_plan(two), stands, SECOND_LOOK, pods=alive(), seen=later(second)).held is None
    )
    one = sorted_plan(two[:12])
    dead_before = weigh(one, stands, SECOND_LOOK, pods=alive(*range(12, 24)))
    assert holds(dead_before) == [(Reason.AWAITING_CONFIRMATION, 12)]
    assert (
        weigh(one, stands, SECOND_LOOK, seen=later(dead_before), pods=alive(*range(12, 24))).held
        is None
    )


def test_a_large_app_among_many_is_scaled_down_with_the_second_pass() -> None:
    """From 40 to 5 instances, no pass saw the pods terminate, but the list lacks them. From 10 to
    5, the removals are done at once."""
    others = [stored(instance(number, app="other")) for number in range(100, 300)]
    plan = sorted_plan([cancel(number) for number in range(35)])
    stands = observed(*others, *(stored(instance(number)) for number in range(40)))
    first = weigh(plan, stands, SECOND_LOOK, pods=alive(*range(35, 40)))
    assert holds(first) == [(Reason.AWAITING_CONFIRMATION, 35)]
    assert (
        weigh(plan, stands, SECOND_LOOK, pods=alive(*range(35, 40)), seen=later(first)).held is None
    )
    ten = observed(*others, *(stored(instance(number)) for number in range(10)))
    assert (
        weigh(sorted_plan([cancel(number) for number in range(5)]), ten, SECOND_LOOK).held is None
    )


def test_each_dead_pod_waits_for_its_own_confirmation() -> None:
    """More pods may die during a hold, and must not delay the others. A condition has one mark for
    all of them."""
    stands = observed(*(stored(instance(number)) for number in range(40)))
    living, gone = (
        [down(number) for number in range(20)],
        [cancel(number) for number in range(20, 33)],
    )
    before, after = (
        sorted_plan([*living, *gone]),
        sorted_plan([*living, *gone, *(cancel(n) for n in range(33, 39))]),
    )
    first = weigh(before, stands, SECOND_LOOK, pods=alive(*range(20)))
    assert holds(first) == [
        (Reason.TOO_MANY_REMOVALS, 20),
        (Reason.AWAITING_CONFIRMATION, 13),
    ]
    second = weigh(after, stands, SECOND_LOOK, pods=alive(*range(20)), seen=later(first))
    assert holds(second) == [(Reason.TOO_MANY_REMOVALS, 20)]
    told = {seen: age for seen, age in later(first).items() if len(seen[1]) == 12}
    assert len(told) == 1
    pods = alive(*range(20))
    assert weigh(before, stands, SECOND_LOOK, pods=pods, seen=told).plan.of(Cancel) == tuple(gone)
    assert weigh(after, stands, SECOND_LOOK, pods=pods, seen=told).plan.of(Cancel) == ()


def test_few_dead_pods_go_beside_what_is_held() -> None:
    """One app has 20 unready pods and one dead pod. Another app has one dead pod. The two dead pods
    alone are not too many removals."""
    stands = observed(*(stored(instance(n, app="a" if n < 30 else "b")) for n in range(40)))
    living, gone = (
        [down(number, app="a") for number in range(20)],
        [cancel(20, app="a"), cancel(30, app="b")],
    )
    braked = weigh(sorted_plan([*living, *gone]), stands, SECOND_LOOK, pods=alive(*range(20)))
    assert holds(braked) == [(Reason.TOO_MANY_REMOVALS, 20)]
    assert braked.plan.of(Cancel) == tuple(gone)
    assert braked.held is not None
    assert (
        braked.held.reason
        == "this installation would lose 22 of its 40 UP instances, more than 30 %"
    )


def test_the_other_removals_are_weighed_without_the_dead_pods() -> None:
    """Each of two apps has one dead and one unready pod. So both apps would lose all instances."""
    stands = observed(*(stored(instance(n, app=app)) for n, app in enumerate("aabbc")))
    plan = sorted_plan([cancel(0, app="a"), down(1, app="a"), cancel(2, app="b"), down(3, app="b")])
    braked = weigh(plan, stands, LIMITS, pods=alive(1, 3, 4))
    assert holds(braked) == [(Reason.TOO_MANY_REMOVALS, 2)]


def test_an_instance_of_an_earlier_crd_is_removed_with_its_pod() -> None:
    """Its syncer may be created again, but would not want an instance without a pod."""
    stands = apps("a", "b")
    plan = sorted_plan([cancel(n, app=app, grounds=Grounds.SWEPT) for n, app in enumerate("ab")])
    first = weigh(plan, stands, SECOND_LOOK, pods=alive(1))
    assert holds(first) == [(Reason.CRD_INSTALLED, 1), (Reason.AWAITING_CONFIRMATION, 1)]
    assert first.held is not None
    assert "run --passes 2" in first.held.holds[1].wait
    braked = weigh(plan, stands, SECOND_LOOK, pods=alive(1), seen=later(first))
    assert holds(braked) == [(Reason.CRD_INSTALLED, 1)]


def test_a_failed_list_of_pods_proves_nothing_and_is_reported() -> None:
    """Held removals stay held. The sentence names the missing right."""
    braked = weigh(TWO_GONE, apps("a", "b", "c"), SECOND_LOOK, pods={NS: DENIED})
    assert braked.held is not None
    assert braked.held.reason == (
        "2 of 3 apps would have no UP instance left; it is unknown whether their pods still "
        "exist: 403: grant list"
    )


def test_a_failed_list_of_pods_forgets_no_look_of_an_earlier_process() -> None:
    """The status has one mark for all dead pods of a syncer. A pass that could not look keeps it,
    and sees nothing for the first time. A list in which the pods live is a look."""
    stands = observed(*(stored(instance(number)) for number in range(40)))
    plan = sorted_plan([cancel(number) for number in range(13)])
    first = weigh(plan, stands, SECOND_LOOK, pods=alive(*range(13, 40)))
    told = {seen: 5.0 for seen in later(first) if len(seen[1]) == 12}
    assert len(told) == 1

    def dead_marks(pods: Pods, seen: dict[tuple[SyncerRef, str], float]) -> list[str]:
        held = weigh(plan, stands, SECOND_LOOK, pods=pods, seen=seen).held
        assert held is not None
        return [hold.mark for hold in held.awaited if hold.dead]

    assert [(REF, mark) for mark in dead_marks({NS: DENIED}, told)] == list(told)
    assert dead_marks({NS: DENIED}, {}) == []
    assert dead_marks(alive(*range(40)), told) == []


def test_a_hold_of_the_living_alone_is_remembered_by_nobody() -> None:
    """Only a person can release it."""
    living = Hold(reason=Reason.TOO_MANY_REMOVALS, why="", removals=(cancel(0),))
    assert living.sightings == ()


# --- What an app loses later ----------------------------------------------------------------------

A_ALONE = sorted_plan([cancel(0, app="a")])
A_AND_MORE = sorted_plan([cancel(0, app="a"), down(1, app="a")])
PUT_OUT = observed(
    stored(instance(0, app="a")),
    stored(instance(1, app="a"), status=OUT),
)
BOTH_UP = observed(
    stored(instance(0, app="a")),
    stored(instance(1, app="a")),
)


def told_to_a_process(braked: Braked, *, by_status: bool) -> dict[tuple[SyncerRef, str], float]:
    """Return what this process remembers after 20 s, or what a new one reads in the status."""
    seen = later(braked)
    if by_status:
        return {sighting: age for sighting, age in seen.items() if len(sighting[1]) == 12}
    return seen


@pytest.mark.parametrize("by_status", [False, True], ids=["one process", "two processes"])
def test_a_dead_pod_waits_for_nothing_that_its_app_loses_later(by_status: bool) -> None:
    """A person takes an OUT_OF_SERVICE back, and then the pod of that instance is not ready. It
    begins its wait, and as it stays UP, the dead pod is not the last of the app."""
    first = weigh(A_ALONE, PUT_OUT, SECOND_LOOK)
    assert holds(first) == [(Reason.AWAITING_CONFIRMATION, 1)]
    seen = told_to_a_process(first, by_status=by_status)
    second = weigh(A_AND_MORE, BOTH_UP, SECOND_LOOK, seen=seen, pods=alive(1))
    assert holds(second) == [(Reason.AWAITING_CONFIRMATION, 1)]
    assert second.plan.of(Cancel) == (cancel(0, app="a"),)
    assert second.confirmed == {cancel(0, app="a").key}


def test_of_two_dead_pods_the_one_that_was_seen_goes() -> None:
    """The other one begins its wait."""
    seen = later(weigh(A_ALONE, PUT_OUT, SECOND_LOOK))
    both = sorted_plan([cancel(0, app="a"), cancel(1, app="a")])
    braked = weigh(both, BOTH_UP, SECOND_LOOK, seen=seen, pods=alive())
    assert holds(braked) == [(Reason.AWAITING_CONFIRMATION, 1)]
    assert braked.plan.of(Cancel) == (cancel(0, app="a"),)


@pytest.mark.parametrize(
    ("seconds", "pods"),
    [(20, alive(0, 1)), (20, {NS: DENIED}), (19, alive(1))],
    ids=["its pod lives", "its pod is unknown", "it was seen too late"],
)
def test_what_its_app_loses_later_delays_a_pod_that_may_live(seconds: float, pods: Pods) -> None:
    """An outage that grows begins its wait anew."""
    seen = later(weigh(A_ALONE, PUT_OUT, SECOND_LOOK), seconds)
    braked = weigh(A_AND_MORE, BOTH_UP, SECOND_LOOK, seen=seen, pods=pods)
    assert holds(braked) == [(Reason.AWAITING_CONFIRMATION, 2)]


# --- Through whole passes -------------------------------------------------------------------------


@pytest.fixture
def world() -> FakeWorld:
    """Three apps with one pod each. Each pass is a separate process."""
    world = FakeWorld()
    for number, name in enumerate(("a", "b", "c"), 1):
        add_app(world, name, number)
    world.run()
    return world


def scale_to_0(world: FakeWorld, *names: str) -> None:
    """Empty the slices of these apps. Their pods do not exist, unless the world lists them."""
    world.cluster.apply(*(piece(service=name) for name in names))


def condition(world: FakeWorld, name: str) -> tuple[str, str, str]:
    """Return the condition RemovalHeld."""
    status = world.cluster.syncers[SyncerRef(NS, name)].status
    found = status.condition("RemovalHeld") if status else None
    assert found is not None
    return found.status.value, found.reason, found.message


@pytest.mark.parametrize("daemon", [False, True])
def test_two_apps_scaled_to_0_are_gone_with_the_second_pass(world: FakeWorld, daemon: bool) -> None:
    """Either one process makes both passes, or the second process reads the status."""
    world.sightings = Sightings() if daemon else None
    scale_to_0(world, "a", "b")
    report = world.run()
    assert world.wire.verbs().count("list_pods") == 1
    assert condition(world, "a")[1] == "AwaitingConfirmation"
    assert of_report(report, fail_on_held=True, detailed=False) is ExitCode.REMOVAL_HELD
    world.later(30)
    assert world.run().held is None
    assert list(world.statuses()) == ["C 10.0.0.3:8080"]
    world.later(30)
    world.run()
    assert "list_pods" not in world.wire.verbs()
    assert condition(world, "a")[0] == "False"


@pytest.mark.parametrize("daemon", [False, True])
def test_most_instances_scaled_to_0_are_removed_in_the_second_pass(daemon: bool) -> None:
    """A nightly scale-down removes more than 30 % and more than 10 instances."""
    world = FakeWorld()
    world.sightings = Sightings() if daemon else None
    for number in range(1, 25):
        add_app(world, f"app{number}", number)
    world.run()
    scale_to_0(world, *(f"app{number}" for number in range(1, 13)))
    assert len(world.statuses()) == 24
    assert world.run().held is not None
    status, reason, message = condition(world, "app1")
    assert (status, reason) == ("True", "AwaitingConfirmation")
    assert re.search(r"of these, 1 of syncer \S+ has no pod any more \(", message)
    world.later(30)
    assert world.run().held is None
    assert len(world.statuses()) == 12


def test_a_syncer_with_both_kinds_says_why_and_is_confirmed_by_its_status() -> None:
    """20 of its pods become unready, and 13 are dead. The condition reports the first, and the
    status marks the second."""
    world = FakeWorld()
    add_app(world, "a", 1)
    pods = [endpoint(number) for number in range(1, 41)]
    world.cluster.apply(piece(*pods, service="a"))
    world.run()
    world.cluster.apply(piece(*(endpoint(n, ready=n > 20) for n in range(1, 28)), service="a"))
    world.run()
    status, reason, message = condition(world, "a")
    assert (status, reason) == ("True", "TooManyRemovals")
    assert "33 removals of this syncer are held" in message
    assert len(world.statuses()) == 40
    world.later(30)
    world.run()
    assert list(world.statuses().values()) == ["UP"] * 27
    assert condition(world, "a")[2].startswith("20 removals of this syncer are held")


def test_a_right_that_is_missing_holds_the_removals_and_is_named(world: FakeWorld) -> None:
    """The exit code is that of held removals, because every necessary source could be read."""
    world.cluster.unknown[("pods", NS)] = DENIED
    scale_to_0(world, "a", "b")
    for _ in range(3):
        report = world.run()
        assert of_report(report, fail_on_held=True, detailed=False) is ExitCode.REMOVAL_HELD
        world.later(30)
    assert condition(world, "a")[1] == "TooManyRemovals"
    assert DENIED.message in condition(world, "a")[2]
    assert len(world.statuses()) == 3


def test_a_pass_that_holds_nothing_lists_no_pods(world: FakeWorld) -> None:
    """A pass whose removals only await confirmation does not list them either."""
    world.run()
    scale_to_0(world, "a")
    world.run()
    assert condition(world, "a")[1] == "AwaitingConfirmation"
    assert "list_pods" not in world.wire.verbs()


def across(**spec: Any) -> FakeWorld:
    """Two apps in `shop`, registered by syncers of another namespace, and one app in that
    namespace."""
    world = FakeWorld()
    world.scope = Scope(allowed=frozenset({(NS, "shop")}))
    add_app(world, "c", 3)
    for number, name in enumerate(("a", "b"), 1):
        there: Service = service(name, labels={"app": name}, namespace="shop")
        world.cluster.apply(
            syncer(name, selector={"app": name, "namespace": "shop"}, **spec), there
        )
        world.cluster.apply(piece(endpoint(number), service=name, namespace="shop"))
    world.run()
    return world


def test_pods_are_listed_where_the_syncer_may_select() -> None:
    """The pods of the syncer's own namespace do not matter."""
    world = across()
    world.cluster.apply(*(piece(service=name, namespace="shop") for name in ("a", "b")))
    world.cluster.pods["shop"] = (
        PodRef("rating-1", "uid-of-rating-1"),
        PodRef("rating-2", "uid-of-rating-2"),
    )
    report = world.run()
    assert "list_pods" in world.wire.verbs()
    assert report.held is not None
    assert [hold.reason for hold in report.held.holds] == [Reason.TOO_MANY_REMOVALS]
    world.cluster.pods["shop"] = ()
    report = world.run()
    assert report.held is not None
    assert {hold.reason for hold in report.held.holds} == {Reason.AWAITING_CONFIRMATION}


def test_pods_of_a_namespace_that_is_not_allowed_are_not_listed() -> None:
    """The operator revoked the permission, and the syncers were deleted. Their instances are held,
    and their pods are not listed."""
    world = across()
    world.scope = Scope()
    for name in ("a", "b"):
        del world.cluster.syncers[SyncerRef(NS, name)]
    report = world.run()
    assert report.held is not None
    assert {hold.reason for hold in report.held.holds} == {Reason.TOO_MANY_REMOVALS}
    assert "list_pods" not in world.wire.verbs()


def test_many_namespaces_are_listed_in_one_walk() -> None:
    """A namespace whose pods were already listed is not listed again."""
    world = FakeWorld()
    names = [f"team{number}" for number in range(25)]
    for number, name in enumerate(names, 1):
        world.cluster.apply(syncer("web", namespace=name), service("web", namespace=name))
        world.cluster.apply(piece(endpoint(number), service="web", namespace=name))
    world.run()
    for name in names[:24]:
        world.cluster.apply(piece(service="web", namespace=name))
    report = world.run()
    assert world.wire.verbs().count("list_pods") == 1
    assert report.held is not None
    assert {hold.reason for hold in report.held.holds} == {Reason.AWAITING_CONFIRMATION}
    frozen = syncer("shelf", namespace="team24", selector={"app": "none"})
    world.cluster.apply(frozen)
    world.cluster.unknown[("pods", "team3")] = DENIED
    report = world.run()
    assert report.held is not None
    assert {hold.reason for hold in report.held.holds} >= {Reason.AWAITING_CONFIRMATION}
