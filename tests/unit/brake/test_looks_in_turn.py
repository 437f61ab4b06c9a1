"""A pass that plans a removal is a look at it, also if another rule holds it, or for another reason
than in the pass before. Each test is one process of several passes."""

from __future__ import annotations

import pytest

from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.model.actions import Cancel, Grounds, Update
from eurekube_sync.model.kubernetes import Pods
from eurekube_sync.model.reasons import Reason
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import sorted_plan
from tests.unit.brake.test_brake import SECOND_LOOK, cancel, down, weigh
from tests.unit.brake.test_brake_dead import alive, apps, holds

TOO_MANY, AWAITING, CRD = (
    Reason.TOO_MANY_REMOVALS,
    Reason.AWAITING_CONFIRMATION,
    Reason.CRD_INSTALLED,
)
STANDS = apps("a", "b", "c", "d")
ALL_LIVE, A_IS_DEAD = alive(0, 1, 2, 3), alive(1, 2, 3)


class Daemon:
    """A process that makes a pass each 10 s over apps of one pod each."""

    def __init__(self, stands: Observed = STANDS) -> None:
        self._stands = stands
        self._sightings = Sightings()
        self._now = 0.0

    def plans(
        self, *removals: Update | Cancel, pods: Pods | None = None
    ) -> list[tuple[Reason, int]]:
        """Make a pass that plans these removals; return what it holds."""
        self._now += 10
        before = self._sightings.before({}, begun=self._now, now=0.0, within=620)
        braked = weigh(
            sorted_plan(removals), self._stands, SECOND_LOOK, pods=pods or {}, seen=before
        )
        self._sightings.note(braked.held, before, begun=self._now, looked=self._now)
        return holds(braked)


A = cancel(0, app="a")
A_SWEPT = cancel(0, app="a", grounds=Grounds.SWEPT)
A_GONE = cancel(0, app="a", grounds=Grounds.POD_GONE)
A_TERMINATING = cancel(0, app="a", grounds=Grounds.TERMINATING)
B_SWEPT = cancel(1, app="b", grounds=Grounds.SWEPT)
B_DOWN = down(1, app="b")


@pytest.mark.parametrize(
    "back", [A_GONE, A], ids=["its pod is seen dead", "its endpoint is missing"]
)
def test_a_dead_pod_waits_no_longer_because_its_syncer_is_back(back: Update | Cancel) -> None:
    """The CRD was installed again. The syncer comes back before the second look."""
    daemon = Daemon()
    assert daemon.plans(A_SWEPT, B_SWEPT, pods=A_IS_DEAD) == [(CRD, 1), (AWAITING, 1)]
    assert daemon.plans(back) == [(AWAITING, 1)]
    assert daemon.plans(back) == []


def test_a_living_pod_was_not_seen_while_its_syncer_was_away() -> None:
    """Nobody could see whether the syncer would want it."""
    daemon = Daemon()
    assert daemon.plans(A_SWEPT, pods=ALL_LIVE) == [(CRD, 1)]
    assert daemon.plans(A) == [(AWAITING, 1)]
    assert daemon.plans(A) == [(AWAITING, 1)]
    assert daemon.plans(A) == []


def test_a_pod_that_is_seen_dead_alone_was_seen_for_a_larger_hold() -> None:
    """The syncer of A is there for one pass, and the CRD is deleted once more."""
    daemon = Daemon()
    assert daemon.plans(A_SWEPT, pods=A_IS_DEAD) == [(AWAITING, 1)]
    assert daemon.plans(A_GONE, pods=A_IS_DEAD) == [(AWAITING, 1)]
    assert daemon.plans(A_SWEPT, pods=A_IS_DEAD) == []


def test_evidence_that_ends_leaves_the_look_at_it() -> None:
    """A node is lost, and the endpoints of two apps terminate. Then the slices no longer have them,
    and the other app is back."""
    daemon = Daemon()
    assert daemon.plans(A_TERMINATING, B_DOWN, pods=ALL_LIVE) == [(TOO_MANY, 2)]
    assert daemon.plans(A) == [(AWAITING, 1)]
    assert daemon.plans(A) == []


def test_evidence_that_begins_keeps_the_look_before_it() -> None:
    """The endpoint is unready, then terminating, then missing."""
    daemon = Daemon()
    assert daemon.plans(A) == [(AWAITING, 1)]
    assert daemon.plans(A_TERMINATING, B_DOWN, pods=ALL_LIVE) == [(TOO_MANY, 2)]
    assert daemon.plans(A) == []


def test_a_deletion_that_is_held_is_no_look_at_the_pod() -> None:
    """The syncers of 12 apps are deleted, and created again before anything is lost. The endpoint
    of one is missing."""
    names = [f"app{number}" for number in range(12)]
    deleted = [
        cancel(number, app=name, grounds=Grounds.SYNCER_DELETED)
        for number, name in enumerate(names)
    ]
    missing = cancel(0, app="app0")
    daemon = Daemon(apps(*names))
    for _ in range(3):
        assert daemon.plans(*deleted, pods=alive(*range(12))) == [(TOO_MANY, 12)]
    assert daemon.plans(missing) == [(AWAITING, 1)]
    assert daemon.plans(missing) == [(AWAITING, 1)]
    assert daemon.plans(missing) == []


def test_a_pass_that_plans_it_no_longer_ends_the_wait_of_each_kind() -> None:
    """The pods of both are ready for one pass."""
    daemon = Daemon()
    assert daemon.plans(A_TERMINATING, B_DOWN, pods=ALL_LIVE) == [(TOO_MANY, 2)]
    assert daemon.plans() == []
    assert daemon.plans(A) == [(AWAITING, 1)]
    assert daemon.plans(A_SWEPT, pods=A_IS_DEAD) == [(AWAITING, 1)]
    assert daemon.plans() == []
    assert daemon.plans(A_GONE) == [(AWAITING, 1)]
