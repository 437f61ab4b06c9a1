"""Reuse of a plan: it is used again only if it renewed wanted instances, and what it was made of
is the same."""

from __future__ import annotations

from eurekube_sync.desired.claims import Desired
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Unread
from eurekube_sync.plan.earlier import EarlierPlan
from eurekube_sync.plan.make import make_plan
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
    plan = earlier.plan(claims, observed(*instances), ())
    assert plan == make_plan(claims, observed(*instances))
    return plan


def test_the_same_gives_the_same_plan() -> None:
    """A renewal in between is no change."""
    earlier = EarlierPlan()
    first = planned(earlier, CLAIMS, *STANDS)
    assert planned(earlier, CLAIMS, *(replace(one, last_renewal=9) for one in STANDS)) is first


def test_a_changed_instance_is_planned_again() -> None:
    """So is an equal one that was read anew: only the very same object needs no comparison."""
    earlier = EarlierPlan()
    first = planned(earlier, CLAIMS, *STANDS)
    second = planned(earlier, CLAIMS, STANDS[0], stored(instance(2), status=DOWN))
    assert [action.key for action in second.changes] == [key(2)]
    anew = replace(STANDS[1], instance=replace(STANDS[1].instance))
    again = planned(earlier, CLAIMS, STANDS[0], anew)
    assert again == first
    assert again is not first


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


def test_a_removal_is_planned_again() -> None:
    """It needs further evidence, which may have changed."""
    earlier, left = EarlierPlan(), desired([SYNCER], [SERVICE], [piece(endpoint(1))])
    first = planned(earlier, left, *STANDS)
    assert [action.key for action in first.changes] == [key(2)]
    assert planned(earlier, left, *STANDS) is not first
    assert planned(earlier, left, STANDS[0]).changes == ()


def test_the_plan_of_a_suspended_syncer_is_made_again() -> None:
    """It also depends on what this process saw UP."""
    earlier, suspended = EarlierPlan(), desired([syncer(suspend=True)], [SERVICE], [SLICE])
    for last_up in ([], [key(1)], [key(1), key(2)], []):
        plan = earlier.plan(suspended, observed(*STANDS), last_up)
        returning = [action.key for action in plan.renewals if action.if_gone is not None]
        assert returning == last_up


def test_a_plan_of_the_same_is_not_made_again() -> None:
    """Another app's instance does not matter. A new instance at our pod's address does."""
    earlier = EarlierPlan()
    pods_own = changed(foreign(), ip_addr=STANDS[0].instance.ip_addr)
    planned(earlier, CLAIMS, *STANDS, foreign(app="dc"))
    assert earlier.again(CLAIMS, observed(*STANDS, foreign(app="dc"))) is None  # another object
    again = planned(earlier, CLAIMS, *STANDS)
    assert earlier.again(CLAIMS, observed(*STANDS)) is again
    assert earlier.again(CLAIMS, observed(*STANDS, pods_own)) is None


def test_a_read_that_failed_is_planned_for() -> None:
    """Everything else is the same."""
    earlier = EarlierPlan()
    planned(earlier, CLAIMS, *STANDS)
    unread = observed(*STANDS).refreshed({key(1): Unread(why="it did not answer")})
    assert earlier.plan(CLAIMS, unread, ()) == make_plan(CLAIMS, unread)
    assert earlier.plan(CLAIMS, observed(*STANDS), ()) == make_plan(CLAIMS, observed(*STANDS))
