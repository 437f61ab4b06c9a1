"""Reuse of a plan: a renewal is used again only if the instance and its desired state are the
same."""

from __future__ import annotations

from dataclasses import replace

from eurekube_sync.desired.claims import Desired
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.observe.eureka import Unread
from eurekube_sync.plan.make import make_plan
from eurekube_sync.plan.ours import EarlierPlan
from eurekube_sync.plan.value import Plan
from tests.unit.worlds.build import (
    DOWN,
    REF,
    changed,
    desired,
    endpoint,
    foreign,
    instance,
    key,
    observed,
    piece,
    service,
    stored,
    syncer,
)

SYNCER, SERVICE, SLICE = syncer(), service(), piece(endpoint(1), endpoint(2))
CLAIMS = desired([SYNCER], [SERVICE], [SLICE])
STANDS = (stored(instance(1)), stored(instance(2)))


def planned(earlier: EarlierPlan, claims: Desired, *instances: ObservedInstance) -> Plan:
    """The plan with an earlier one to reuse, which must equal the plan without it."""
    plan = make_plan(claims, observed(*instances), earlier)
    assert plan == make_plan(claims, observed(*instances))
    return plan


def test_the_same_gives_the_same_plan() -> None:
    """A renewal in between is no change."""
    earlier = EarlierPlan()
    first = planned(earlier, CLAIMS, *STANDS)
    assert planned(earlier, CLAIMS, *(replace(one, last_renewal=9) for one in STANDS)) is first


def test_an_unchanged_instance_keeps_its_planned_renewal() -> None:
    """Another instance is planned again."""
    earlier = EarlierPlan()
    first = planned(earlier, CLAIMS, *STANDS)
    second = planned(earlier, CLAIMS, STANDS[0], stored(instance(2), status=DOWN))
    assert second.renewals[0] is first.renewals[0]
    assert [action.key for action in second.changes] == [key(2)]
    assert planned(earlier, CLAIMS, *STANDS) == first


def test_an_equal_instance_that_was_read_anew_is_compared() -> None:
    """Only the very same object needs no comparison."""
    earlier = EarlierPlan()
    first = planned(earlier, CLAIMS, *STANDS)
    again = planned(
        earlier, CLAIMS, STANDS[0], replace(STANDS[1], instance=replace(STANDS[1].instance))
    )
    assert [one is was for one, was in zip(again.renewals, first.renewals, strict=True)] == [
        True,
        False,
    ]


def test_changed_claims_are_compared() -> None:
    """One pod is no longer ready, and another syncer wants an instance."""
    earlier = EarlierPlan()
    planned(earlier, CLAIMS, *STANDS)
    planned(
        earlier,
        desired([SYNCER], [SERVICE], [piece(endpoint(1), endpoint(2, ready=False))]),
        *STANDS,
    )
    planned(earlier, CLAIMS, *STANDS)
    other = SyncerRef(REF.namespace, "other")
    claim = CLAIMS.claims[REF]
    planned(
        earlier,
        replace(CLAIMS, claims={other: claim}, wanted_by=dict.fromkeys(CLAIMS.wanted_by, other)),
        *STANDS,
    )


def test_a_removed_instance_is_forgotten() -> None:
    earlier = EarlierPlan()
    planned(earlier, CLAIMS, *STANDS)
    planned(earlier, desired([SYNCER], [SERVICE], [piece(endpoint(1))]), STANDS[0])
    assert set(earlier.renewals) == {key(1)}


def test_a_plan_of_the_same_is_not_made_again() -> None:
    """Another app's instance does not matter. A new instance at our pod's address does."""
    earlier = EarlierPlan()
    pods_own = changed(foreign(), ip_addr=STANDS[0].instance.ip_addr)
    first = planned(earlier, CLAIMS, *STANDS, foreign(app="dc"))
    assert earlier.plan(CLAIMS, observed(*STANDS, foreign(app="dc"))) is None  # another object
    assert planned(earlier, CLAIMS, *STANDS) is first
    assert earlier.plan(CLAIMS, observed(*STANDS)) is first
    assert earlier.plan(CLAIMS, observed(*STANDS, pods_own)) is None


def test_a_read_that_failed_is_planned_for() -> None:
    """Everything else is the same."""
    earlier = EarlierPlan()
    planned(earlier, CLAIMS, *STANDS)
    unread = observed(*STANDS).refreshed({key(1): Unread(why="it did not answer")})
    assert make_plan(CLAIMS, unread, earlier) == make_plan(CLAIMS, unread)
    assert make_plan(CLAIMS, observed(*STANDS), earlier) == make_plan(CLAIMS, observed(*STANDS))
