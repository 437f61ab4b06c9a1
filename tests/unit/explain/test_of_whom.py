"""Whose instances count: ours alone, by owner and cluster. And which of ours Eureka lost, and which
it never had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest

from eurekube_sync.cli.output.answers import summary
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.explain.chain import code_of
from eurekube_sync.explain.links import Outcome
from eurekube_sync.explain.overview import code_of_overview
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import GoodPass, LockName, LockRecord, PodCondition, PodDetail
from eurekube_sync.model.ownership import CLUSTER, OWNER
from eurekube_sync.model.ports import LockStore
from eurekube_sync.model.sources import Cause, Complete, Unknown
from tests.unit.worlds.asked import Asked, broken, text
from tests.unit.worlds.build import NS, changed, endpoint, key, piece, syncer
from tests.unit.worlds.fakes import FakeWorld

ANOTHER_CLUSTER = "99999999-2222-3333-4444-555555555555"
QUESTIONS = [f"{NS}/rating", f"svc/{NS}/rating", "RATING"]


def _beside(marks: Mapping[str, str], number: int = 3) -> Asked:
    """Two instances of ours, and this many of a syncer of the same name with other marks, which
    nobody renews."""
    asked = Asked(endpoint(1), endpoint(2))
    asked.fake.run()
    ours = asked.fake.registry.held[key(1)]
    for place in range(1, number + 1):
        theirs = InstanceKey("RATING", f"other:{NS}:rating:10.9.0.{place}:8080")
        metadata = {**ours.metadata, **marks}
        other = changed(
            ours, key=theirs, ip_addr=f"10.9.0.{place}", metadata=metadata, last_renewal=1000
        )
        asked.fake.registry.put(other)
    return asked


ANOTHERS = [{OWNER: "east", CLUSTER: ANOTHER_CLUSTER}, {OWNER: "east"}]


@pytest.mark.parametrize("marks", ANOTHERS)
@pytest.mark.parametrize("what", QUESTIONS)
def test_instances_of_another_owner_are_not_counted(marks: dict[str, str], what: str) -> None:
    """Two clusters with two owners may have a syncer of the same name. Their instances say nothing
    of ours."""
    asked = _beside(marks)
    found = asked.why(what)
    assert (found.outcome, found.up, found.of) == (Outcome.REGISTERED, 2, 2)
    assert "Eureka holds 2 instances of this syncer, 2 UP" in text(found)
    assert "10.9.0." not in text(found)
    assert code_of([found], asked.look(what)) == ExitCode.OK


@pytest.mark.parametrize("marks", ANOTHERS)
def test_the_rows_count_no_instances_of_another_owner(marks: dict[str, str]) -> None:
    """`status` counts as `explain` does, and the renewals of others are not those of ours."""
    found = _beside(marks).overview()
    assert [(row.reason, row.explanation.up, row.explanation.of) for row in found.rows] == [
        ("InSync", 2, 2)
    ]
    assert summary(found) == "1 syncer: 1 in sync; 2 instances UP"
    assert found.renewals.oldest == 0
    assert code_of_overview(found) == ExitCode.OK


def test_instances_of_another_cluster_do_not_stand_in_for_ours() -> None:
    """Ours are lost, and theirs are UP."""
    asked = _beside(ANOTHERS[0], 2)
    for number in (1, 2):
        del asked.fake.registry.held[key(number)]
    found = asked.why()
    assert (found.up, broken(found).reason) == (0, "Expired")


def test_another_owner_beside_us_does_not_explain_what_we_lack() -> None:
    """Our owner has instances, so it is not mistaken. One pod is new."""
    asked = _beside(ANOTHERS[1])
    asked.fake.cluster.slices = [piece(*(endpoint(number) for number in (1, 2, 3)))]
    assert broken(asked.why()).reason == "NotYetRegistered"


def test_an_instance_under_our_id_may_be_anothers() -> None:
    """The list shows ours. An uncached read shows that another owner has taken the id since."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.fake.registry.cached_for(30)
    ours = asked.fake.registry.held[key(1)]
    asked.fake.registry.put(changed(ours, metadata={**ours.metadata, OWNER: "east"}))
    found = asked.why()
    assert (found.outcome, found.up) == (Outcome.NOT_REGISTERED, 0)


@pytest.mark.parametrize("marks", [ANOTHERS[0], {}])
def test_a_syncer_that_is_missing_is_not_registered_by_another_cluster(
    marks: dict[str, str],
) -> None:
    """Only our own instances of it are reported beside."""
    asked = _beside(marks, 1)
    asked.remove()
    for number in (1, 2):
        del asked.fake.registry.held[key(number)]
    found = asked.why()
    assert found.sentence.startswith(
        "Not registered" if marks else "Registered, but by no syncer in scope"
    )
    assert ("Eureka holds" in text(found)) is not bool(marks)


def test_without_a_known_cluster_the_owner_decides() -> None:
    """The UID cannot be read, so our owner's instances are counted, and not those of others."""
    asked = _beside(ANOTHERS[0])
    asked.fake.cluster.uid = Unknown(cause=Cause.DENIED, message="403: you may not")
    assert (asked.why().up, asked.overview().rows[0].explanation.up) == (2, 2)


def test_without_a_known_owner_the_cluster_decides() -> None:
    """Two owners have instances here, so no one of them is taken for ours. Another cluster's do not
    count."""
    asked = _beside({OWNER: "east"}, 1)
    ours = asked.fake.registry.held[key(1)]
    for place in (1, 2, 3):
        theirs = InstanceKey("RATING", f"west:{NS}:rating:10.8.0.{place}:8080")
        metadata = {**ours.metadata, OWNER: "west", CLUSTER: ANOTHER_CLUSTER}
        asked.fake.registry.put(changed(ours, key=theirs, metadata=metadata))
    asked.owner = ""
    asked.details.pods = _ready(1, 2, since=None)
    assert asked.look(f"{NS}/rating").owner == ""
    assert asked.why().up == 3


# --- Lost, or not yet registered ------------------------------------------------------------------


def _replaced(*numbers: int) -> Asked:
    """Pods 1 and 2 are registered. Since the last pass, these are the pods."""
    asked = Asked(endpoint(1), endpoint(2))
    asked.fake.run()
    asked.fake.cluster.slices = [piece(*(endpoint(number) for number in numbers))]
    return asked


@pytest.mark.parametrize("numbers", [(1, 3), (3, 4), (1, 2, 3)])
@pytest.mark.parametrize("what", [f"{NS}/rating", f"pod/{NS}/rating-3", "10.0.0.3:8080"])
def test_a_pod_that_no_pass_has_seen_is_not_lost(numbers: tuple[int, ...], what: str) -> None:
    """It replaces another, or it is one more. Eureka holds as many as the last pass left there."""
    asked = _replaced(*numbers)
    found = asked.why(what)
    assert broken(found).reason == "NotYetRegistered"
    assert "Eureka does not hold 10.0.0.3:8080" in text(found)
    assert found.fix.startswith("wait for the next pass")


def test_the_row_of_a_replaced_pod_says_the_same() -> None:
    """An operator has nothing to look for in a rolling update."""
    (row,) = _replaced(1, 3).overview().rows
    assert row.reason == "NotYetRegistered"


def test_the_next_pod_within_a_limit_is_not_lost() -> None:
    """The limit lets in a pod that is older than the last pass."""
    asked = Asked(endpoint(1), endpoint(2), one=syncer(created=FakeWorld().clock.now(), limit=1))
    asked.fake.run()
    (registered,) = asked.fake.registry.held
    number = 1 if registered == key(1) else 2
    asked.fake.cluster.slices = [piece(endpoint(3 - number))]
    assert broken(asked.why()).reason == "NotYetRegistered"


def test_a_persons_status_is_no_lost_instance() -> None:
    """Fewer are UP than the status says, because a person set one OUT_OF_SERVICE. All are there."""
    asked = _replaced(1, 2, 3)
    held = asked.fake.registry.held
    held[key(2)] = changed(
        held[key(2)], status=InstanceStatus.OUT_OF_SERVICE, override=InstanceStatus.OUT_OF_SERVICE
    )
    assert broken(asked.why(f"pod/{NS}/rating-3")).reason == "NotYetRegistered"


def test_of_two_pods_the_one_that_eureka_lost_has_expired() -> None:
    """The other one is still there."""
    asked = _replaced(1, 2)
    del asked.fake.registry.held[key(2)]
    assert broken(asked.why()).reason == "Expired"
    assert broken(asked.why(f"pod/{NS}/rating-2")).reason == "Expired"


class _Lock:
    """A lock whose last good pass ended a moment ago."""

    def __init__(self, at: float) -> None:
        self.at = at

    def read(self) -> LockRecord | None:
        good = GoodPass(at=self.at, holder="a", owner="prod", scope="all", result="in sync")
        return LockRecord(holder="a", good=good)


def _ready(*numbers: int, since: float | None) -> Complete[tuple[PodDetail, ...]]:
    """These pods, ready since then in Unix seconds."""
    ready = PodCondition(type="Ready", true=True, since=since)
    return Complete(
        data=tuple(
            PodDetail(name=f"rating-{n}", uid=f"uid-of-rating-{n}", conditions=(ready,))
            for n in numbers
        )
    )


@pytest.mark.parametrize(
    ("since", "reason"), [(10.0, "NotYetRegistered"), (-10.0, "Expired"), (None, "Expired")]
)
def test_a_pod_that_is_younger_than_the_last_pass_cannot_have_expired(
    since: float | None, reason: str
) -> None:
    """A pass is at work: it has cancelled pod 2, and has not registered pod 3 yet. Or Eureka lost
    an instance."""
    asked = _replaced(1, 3)
    del asked.fake.registry.held[key(2)]
    at = asked.fake.clock.now()
    asked.locks.append((LockName(namespace="ops", name="prod"), cast(LockStore, _Lock(at))))
    asked.details.pods = _ready(1, 3, since=None if since is None else at + since)
    assert broken(asked.why()).reason == reason
    asked.details.pods = Complete(data=())
    assert broken(asked.why()).reason == "Expired"
    asked.details.pods = Complete(data=(PodDetail(name="rating-3", uid="uid-of-rating-3"),))
    assert broken(asked.why()).reason == "Expired"


def test_only_the_lost_ones_are_said_to_be_lost() -> None:
    """Pod 2 is older than the last pass, and pod 3 is younger."""
    asked = _replaced(1, 2, 3)
    del asked.fake.registry.held[key(2)]
    at = asked.fake.clock.now()
    asked.locks.append((LockName(namespace="ops", name="prod"), cast(LockStore, _Lock(at))))
    asked.details.pods = _ready(3, since=at + 10)
    assert (
        broken(asked.why()).text
        == "Eureka does not hold 10.0.0.2:8080, but the syncer's status says 2 UP"
    )
