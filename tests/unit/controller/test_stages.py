"""Stages of a pass: a server that uses up the time of one stage leaves every later stage its
own."""

from __future__ import annotations

import pytest

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.controller.one_pass import Ends
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.selector import parse_selector
from eurekube_sync.model.deadline import Deadline, TimeLimit
from eurekube_sync.model.kubernetes import PodReadiness
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import NS, endpoint, foreign, piece, service, stored, syncer
from tests.unit.worlds.build import instance as wanted
from tests.unit.worlds.clock import Clock
from tests.unit.worlds.fakes import FakeWorld

SECONDS = 100.0
STAGES = {
    "identity": "identifying",
    "list_instances": "listing",
    "renew": "renewing",
    "list_services": "reading",
    "list_slices": "reading",
    "read_instance": "deciding",
    "identity again": "asking again",
    "add_finalizer": "preparing",
    "register": "adding",
    "cancel": "removing",
    "identity a third time": "reporting",
    "record_event": "reporting",
    "write_status": "reporting",
    "open_gate": "opening",
}
ORDER = list(dict.fromkeys(["identifying", "listing", "choosing", *STAGES.values()]))


class Slow(FakeWorld):
    """A pass with work in every stage. One kind of call takes all the time of its stage."""

    def __init__(self, *, selector: bool = False) -> None:
        super().__init__()
        self.brake = BrakeLimits(loss_percent=100, apps_floor=10, confirm_after=0)
        self.scope = Scope(selector=parse_selector("team=a") if selector else ())
        self.cluster.apply(service(), replace(syncer(readinessGate=True), labels={"team": "a"}))
        self.pods(1, 2)
        self.run()
        young = syncer("young", selector={"app": "young"}, readinessGate=True)
        self.cluster.apply(
            service("young", labels={"app": "young"}),
            replace(young, labels={"team": "a"}),
            piece(endpoint(4, ready=False), service="young"),
        )
        self.pods(1, 3, 4)
        self.hanging = ""
        self.begun = self.clock.now()
        self.left: list[tuple[str, float]] = []
        """The stage of each call, and the time that it had."""
        self.wire.then = self.called

    def pods(self, *numbers: int) -> None:
        self.cluster.apply(
            piece(*(endpoint(number, ready=False) for number in numbers if number != 4))
        )
        for number in numbers:
            uid = f"uid-of-rating-{number}"
            pod = PodReadiness(
                namespace=NS, name=f"rating-{number}", uid=uid, ready=True, registered=False
            )
            self.cluster.readiness.setdefault(uid, pod)

    def called(self) -> None:
        name = self.wire.verbs()[-1]
        if name == "identity":
            name = ["identity", "identity again", "identity a third time"][
                self.wire.verbs().count("identity") - 1
            ]
        stage = "choosing" if name == "list_syncers" and self.scope.selector else STAGES.get(name)
        if stage is None or (
            stage in ("deciding", "renewing") and self.wire.verbs().count("identity") > 1
        ):
            return  # a part of a registration, or of opening a gate
        left = self.time_limit.left()
        self.left.append((stage, left))
        if name == self.hanging:
            self.clock.sleep(left)

    def first(self) -> dict[str, float]:
        """The time that each stage had at its first call."""
        return dict(reversed(self.left))


PASSES = [(name, selector) for name in STAGES for selector in (False, True)]


@pytest.mark.parametrize(("hanging", "selector"), [*PASSES, ("list_syncers", True)])
def test_a_call_that_uses_up_its_stage_leaves_later_stages_their_time(
    hanging: str, selector: bool
) -> None:
    """Each later stage begins with about a twentieth of the pass or more, and the whole pass ends
    in time."""
    world = Slow(selector=selector)
    world.hanging = hanging
    world.run(deadline=SECONDS)
    stages = [stage for stage, _ in world.left]
    assert stages == sorted(stages, key=ORDER.index), "the table above is in order"
    hung = "choosing" if hanging == "list_syncers" else STAGES[hanging]
    assert hung in stages
    later = {
        stage: left
        for stage, left in world.first().items()
        if ORDER.index(stage) > ORDER.index(hung)
    }
    assert {stage: left for stage, left in later.items() if left < 0.04 * SECONDS} == {}
    assert hung in ("identifying", "reporting", "opening") or later
    assert world.clock.now() - world.begun <= SECONDS


@pytest.mark.parametrize("selector", [False, True])
def test_each_stage_ends_before_the_next_one_has_to(selector: bool) -> None:
    """If no call takes time, a stage has more time than each one before it."""
    world = Slow(selector=selector)
    world.run(deadline=SECONDS)
    ends = world.first()
    assert set(ends) == set(STAGES.values()) | ({"choosing"} if selector else set())
    halves = ("deciding", "asking again", "preparing", "adding")
    whole = [
        stage for stage in ORDER if stage in ends and stage not in (*halves, "reporting", "opening")
    ]
    assert [ends[stage] for stage in whole] == sorted({ends[stage] for stage in whole})
    assert ends["opening"] == SECONDS == 2 * ends["reporting"], "so have the gates"
    for half in halves:
        assert ends[half] == ends["removing"] / 2, (
            "those that come after it in the same stage have the other half"
        )


@pytest.mark.parametrize("cause", ["identity", "another cluster"])
def test_a_pass_that_only_renews_has_all_the_time_for_it(cause: str) -> None:
    """Nothing comes after its renewals."""
    world = Slow()
    if cause == "identity":
        world.cluster.uid = Unknown(cause=Cause.UNAVAILABLE, message="it did not answer")
    else:
        another = replace(wanted(9), metadata={**wanted(9).metadata, "eurekube.cluster": "another"})
        world.registry.put(stored(another), foreign())
    world.left.clear()
    world.hanging = "renew"
    world.run(deadline=SECONDS)
    renewing = [left for stage, left in world.left if stage == "renewing"]
    if cause == "identity":
        assert renewing[0] == SECONDS
        assert world.clock.now() - world.begun == SECONDS
    else:
        assert len(renewing) == 2, "the second is renewed in the time of what a refusal leaves out"


def test_renewals_that_wait_for_the_cluster_have_all_the_time_of_their_stage() -> None:
    """While Eureka cannot be listed, only the cluster shows which instances a new process has to
    renew. The check of the cluster has half of that time, and the renewals get what it leaves."""
    world = Slow()
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="it did not answer")
    left: list[float] = []
    young = "renew YOUNG"
    world.wire.then = lambda: (
        left.append(world.time_limit.left()) if world.wire.calls[-1].startswith(young) else None
    )
    world.run(deadline=SECONDS)
    assert left[0] == Ends.APPLYING * SECONDS


@pytest.mark.parametrize(
    ("part", "share", "spent", "left"), [(0.5, 0.9, 0, 45), (0.5, 0.9, 50, 20), (0.5, 0.9, 95, 0)]
)
def test_a_part_of_the_rest_is_counted_from_now(
    part: float, share: float, spent: float, left: float
) -> None:
    """It is zero, never negative, after the share is used up."""
    clock = Clock()
    limit = TimeLimit(clock)
    deadline = Deadline(clock, SECONDS, limit)
    clock.sleep(spent)
    deadline.stage(share, part_of_rest=part)
    assert limit.left() == pytest.approx(left)
    assert deadline.passed is (left == 0)


def test_a_pass_that_was_cut_short_stays_so() -> None:
    """A later stage with time of its own does not hide it. A program that is asked to stop has no
    time."""
    clock = Clock()
    deadline = Deadline(clock, SECONDS)
    deadline.stage(0.5)
    assert (deadline.passed, deadline.cut_short) == (False, False)
    clock.sleep(50)
    assert (deadline.passed, deadline.cut_short) == (True, True)
    deadline.stage(1.0)
    assert (deadline.passed, deadline.cut_short) == (False, True)
    clock.stopped = True
    assert deadline.passed


def test_a_pass_in_which_everything_is_slow_still_does_some_of_each_kind() -> None:
    """Each call takes a twentieth of the pass. Renewals, registrations and statuses are all written
    within three passes."""
    world = Slow()
    done: set[str] = set()

    def slow() -> None:
        world.called()
        world.clock.sleep(0.05 * SECONDS)

    world.wire.then = slow
    for _ in range(3):
        report = world.run(deadline=SECONDS)
        done |= {call.split()[0] for call in world.wire.calls} | set(map(str, report.statuses))
    assert {
        "renew",
        "add_finalizer",
        "register",
        "cancel",
        "write_status",
        "open_gate",
        f"{NS}/young",
    } <= done
