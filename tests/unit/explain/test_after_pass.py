"""What the report of a pass says of a syncer, without another call: the same as `explain` says right
after it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.explain.after_pass import explain_after, explain_import_after, look_after
from eurekube_sync.explain.links import Explanation, Mark, Outcome, Part
from eurekube_sync.model.actions import Outcome as Written
from eurekube_sync.model.actions import Outcomes, Register, Result
from eurekube_sync.model.errors import RegistryRejected
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.imports import ImportRef
from eurekube_sync.model.kubernetes import GoodPass, LockRecord, SyncerRef
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.asked import Asked
from tests.unit.worlds.build import NS, REF, endpoint, key, piece, service, syncer
from tests.unit.worlds.imports import REVIEW, ImportWorld, dc, import_object

NO_LOCK = LockRecord(holder="")


def told(asked: Asked, report: PassReport, ref: SyncerRef = REF) -> Explanation:
    """What the report says of a syncer."""
    found = explain_after(look_after(report, at=asked.fake.clock.now(), lock=NO_LOCK), ref)
    assert found is not None
    return found


def marks(found: Explanation) -> list[tuple[Part, Mark]]:
    """Whether each link holds, without those that only one of the two can know: what callers still
    see, and the last pass."""
    return [
        (link.part, link.mark)
        for link in found.links
        if link.part not in (Part.CALLERS, Part.LAST_PASS)
    ]


def newly_registered() -> Asked:
    return Asked(endpoint(1), endpoint(2))


def without_service() -> Asked:
    return Asked(services=[service(labels={"app": "ratings"})])


def not_ready() -> Asked:
    asked = Asked(endpoint(1), endpoint(2))
    asked.fake.run()
    asked.fake.cluster.slices = [piece(endpoint(1, ready=False), endpoint(2))]
    asked.fake.run()
    asked.fake.later(30)
    return asked


def held() -> Asked:
    asked = Asked(*(endpoint(number) for number in range(1, 9)))
    asked.fake.run()
    asked.fake.cluster.slices = [piece()]
    asked.fake.run()
    asked.fake.later(30)
    return asked


def suspended() -> Asked:
    return Asked(endpoint(1), one=syncer(suspend=True))


def limited() -> Asked:
    return Asked(endpoint(1), endpoint(2), one=syncer(limit=1))


def out_of_service() -> Asked:
    asked = Asked(endpoint(1), endpoint(2))
    asked.fake.run()
    asked.fake.registry.overrides[key(1).id] = InstanceStatus.OUT_OF_SERVICE
    asked.fake.run()
    return asked


def refused() -> Asked:
    asked = Asked(endpoint(1), endpoint(2))
    asked.fake.registry.refuse_register[key(2)] = RegistryRejected("400: no")
    return asked


def invalid() -> Asked:
    return Asked(endpoint(1), one=syncer(port="no port"))


def one_gone() -> Asked:
    asked = Asked(endpoint(1), endpoint(2))
    asked.fake.run()
    asked.fake.cluster.slices = [piece(endpoint(1))]
    asked.fake.run()
    asked.fake.later(30)
    return asked


@pytest.mark.parametrize(
    "situation",
    [
        newly_registered,
        without_service,
        not_ready,
        held,
        suspended,
        limited,
        out_of_service,
        refused,
        invalid,
        one_gone,
    ],
)
def test_it_is_what_explain_says_right_after_the_pass(situation: Callable[[], Asked]) -> None:
    """The result, the reason, the numbers, and whether each link holds."""
    asked = situation()
    after = told(asked, asked.fake.run())
    now = asked.why()
    assert (after.outcome, after.reason, after.up, after.of) == (
        now.outcome,
        now.reason,
        now.up,
        now.of,
    )
    assert marks(after) == marks(now)
    assert after.sentence == now.sentence


@pytest.mark.parametrize(
    ("result", "status", "up"),
    [
        (Result.FAILED, InstanceStatus.DOWN, 1),
        (Result.GONE, None, 1),
        (Result.FAILED, None, 2),
        (Result.FAILED, InstanceStatus.UP, 2),
    ],
)
def test_eureka_is_shown_as_the_pass_left_it(
    result: Result, status: InstanceStatus | None, up: int
) -> None:
    """A write that failed changed nothing."""
    asked = newly_registered()
    asked.fake.run()
    report = asked.fake.run()
    (renewal,) = [action for action in report.plan.renewals if action.key == key(1)]
    outcome = Written(action=renewal, result=result, status=status)
    report = replace(report, outcomes=Outcomes.of([outcome]))
    assert told(asked, report).up == up


def test_a_stranger_in_the_way_is_not_ours() -> None:
    """It is neither counted nor taken as gone."""
    asked = newly_registered()
    report = asked.fake.run()
    (first, _) = report.plan.of(Register)
    conflict = Written(action=first, result=Result.FAILED)
    report = replace(report, outcomes=Outcomes.of([conflict]))
    assert told(asked, report).up == 0


def test_a_status_that_stays_is_not_copied() -> None:
    """Nearly all syncers keep theirs from pass to pass."""
    asked = newly_registered()
    asked.fake.run()
    report = asked.fake.run()
    assert report.desired is not None
    look = look_after(report, at=report.at, lock=NO_LOCK)
    assert look.report.desired is not None
    status = report.desired.claims[REF].syncer.status
    assert status is not None
    same = replace(report, all_statuses={REF: status})
    look = look_after(same, at=report.at, lock=NO_LOCK)
    assert look.report.desired is not None
    assert look.report.desired.claims[REF] is report.desired.claims[REF]


def test_it_makes_no_call() -> None:
    """The page that shows it must not be a load for either server."""
    asked = newly_registered()
    report = asked.fake.run()
    calls = len(asked.fake.wire.calls)
    assert told(asked, report).outcome is Outcome.REGISTERED
    assert len(asked.fake.wire.calls) == calls


def test_a_syncer_that_the_pass_did_not_serve_has_no_chain() -> None:
    """Nor has any if the pass ended before it made claims."""
    asked = newly_registered()
    report = asked.fake.run()
    look = look_after(report, at=report.at, lock=NO_LOCK)
    assert explain_after(look, SyncerRef(NS, "cart")) is None
    assert explain_import_after(look, ImportRef(NS, "cart")) is None
    asked.fake.cluster.unknown["identity", ""] = Unknown(cause=Cause.UNAVAILABLE, message="no")
    look = look_after(replace(report, desired=None), at=report.at, lock=NO_LOCK)
    assert explain_after(look, REF) is None


def test_if_eureka_could_not_be_read_what_it_holds_is_unknown() -> None:
    """Unknown is not empty."""
    asked = newly_registered()
    asked.fake.run()
    asked.fake.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    found = told(asked, asked.fake.run())
    assert found.up is None
    assert "what Eureka holds could not be looked at: no answer" in [
        link.text for link in found.links
    ]
    assert found.outcome is not Outcome.REGISTERED


def test_the_last_good_pass_is_that_of_the_process() -> None:
    """An older one is a note here: the link above says what Eureka holds."""
    asked = newly_registered()
    report = asked.fake.run()
    now = asked.fake.clock.now()
    good = GoodPass(
        at=now - 600, holder="this process", owner="prod", scope="all", result="in sync"
    )
    look = look_after(report, at=now, lock=LockRecord(holder="", good=good))
    found = explain_after(look, REF)
    assert found is not None
    last = found.links[-1]
    assert (last.mark, last.text) == (
        Mark.NOTE,
        "last good pass: 10 min ago by this process: in sync",
    )


def test_an_import_counts_what_the_pass_wrote() -> None:
    """Its Service and slices were read before they were written."""
    world = ImportWorld(import_object())
    world.lists(dc(1), dc(2))
    look = look_after(world.run(), at=world.clock.now(), lock=NO_LOCK)
    found = explain_import_after(look, REVIEW)
    assert found is not None
    assert (found.outcome, found.up, found.of) == (Outcome.REGISTERED, 2, 2)
    assert "Service review was made by this pass" in [link.text for link in found.links]
    look = look_after(world.run(), at=world.clock.now(), lock=NO_LOCK)
    found = explain_import_after(look, REVIEW)
    assert found is not None
    assert found.reason != Reason.DIFFERS
    assert "Service review has port 80" in [link.text for link in found.links]
