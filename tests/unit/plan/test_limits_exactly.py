"""The exact number of places of a limit, counted by another rule than the program's."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eurekube_sync.desired.claims import Desired, Incomplete, OverLimit, Serving
from eurekube_sync.desired.limit import LIMIT
from eurekube_sync.desired.spec import parse
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import OwnWrites, Unread
from eurekube_sync.plan.left_out import within_limits
from eurekube_sync.plan.value import UNCHANGED, Ruling
from tests.unit.worlds.build import (
    DOWN,
    NS,
    OUT,
    REF,
    UP,
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
from tests.unit.worlds.fakes import FakeWorld


def claims(
    *ready: int, not_ready: tuple[int, ...] = (), terminating: tuple[int, ...] = (), **spec: Any
) -> Desired:
    """The claims of one syncer with these endpoints."""
    endpoints = [
        *(endpoint(number) for number in ready),
        *(endpoint(number, ready=False) for number in not_ready),
        *(endpoint(number, ready=False, terminating=True) for number in terminating),
    ]
    return desired([syncer(**spec)], [service()], [piece(*endpoints)])


def serving(admission: Ruling) -> Serving:
    """The syncer's claim within its limit."""
    claim = admission.claims[REF]
    assert isinstance(claim, Serving)
    return claim


def let_in(admission: Ruling) -> set[InstanceKey]:
    """The ready endpoints that have a place."""
    return {
        one for one, wanted in serving(admission).wanted.items() if wanted.instance.status is UP
    }


def beside(number: int, **changes: Any) -> ObservedInstance:
    """An instance of the data centre under the syncer's VIP."""
    return changed(foreign(f"dc-{number}"), **changes)


def standing(number: int, mark: str, status: InstanceStatus = UP) -> ObservedInstance:
    """One of our instances that was registered under this limit. An empty mark means without
    one."""
    return stored(instance(number, metadata={LIMIT: mark} if mark else {}), status=status)


def asked_for(value: Any, *, pods: int, others: int) -> int:
    """The number of places that a limit asks for: the smallest one not below its part."""
    if isinstance(value, int):
        return value
    text = value if isinstance(value, str) else value["share"]
    part = Fraction(int(text.removesuffix("%")), 100)
    if part == 0:
        return 0
    if isinstance(value, str):
        return next(n for n in range(pods + 1) if n >= part * pods)
    if part == 1:
        return 1000
    return next(n for n in range(1, 1000) if Fraction(n, n + others) >= part)


@pytest.mark.parametrize("not_ready_is", ["Down", "Cancel"])
@pytest.mark.parametrize(
    ("percent", "places"), [("50%", 4), ("51%", 5), ("12%", 1), ("13%", 2), ("100%", 5)]
)
def test_a_percentage_is_of_all_pods_but_those_that_terminate(
    not_ready_is: str, percent: str, places: int
) -> None:
    """Five are ready, three are unready and two terminate. That makes eight, however unready pods
    are registered."""
    found = claims(
        1,
        2,
        3,
        4,
        5,
        not_ready=(6, 7, 8),
        terminating=(9, 10),
        notReady=not_ready_is,
        limit=percent,
    )
    assert len(let_in(within_limits(found, observed()))) == places


@pytest.mark.parametrize(
    ("others", "places"),
    [
        ([beside(1), beside(2)], 2),
        ([beside(1), beside(2, vip_address="RATING")], 2),
        ([beside(1), beside(2, vip_address="else,rating")], 2),
        ([beside(1), beside(2, vip_address="rating,second")], 2),
        ([beside(1), beside(2, vip_address="second")], 2),
        ([beside(1), beside(2, vip_address="third")], 1),
        ([beside(1), beside(2, vip_address="rating-2")], 1),
        ([beside(1), beside(2, status=DOWN)], 1),
        ([beside(1), beside(2, status=OUT)], 1),
        ([beside(1), stored(instance(9, app="else", vip="rating"), status=DOWN)], 1),
        ([beside(1), stored(instance(9))], 1),
        ([beside(1), stored(instance(1))], 1),
        ([beside(1), stored(instance(1, ref=SyncerRef(NS, "older")))], 1),
    ],
    ids=[
        "two",
        "in capitals",
        "behind a comma",
        "under both VIPs",
        "under the second VIP",
        "under no VIP of ours",
        "under one that begins alike",
        "one is DOWN",
        "one is out of service",
        "ours, of another app, DOWN",
        "of this syncer, and not wanted any more",
        "of this syncer, and wanted",
        "of another syncer, and wanted by this one",
    ],
)
def test_a_share_is_relative_to_the_others_that_callers_find(
    others: list[ObservedInstance], places: int
) -> None:
    """With a share of half, ours are as many as the others that are UP under our VIPs. Each counts
    once."""
    found = within_limits(
        claims(1, 2, 3, 4, vipAddress="rating,second", limit={"share": "50%"}), observed(*others)
    )
    assert len(let_in(found)) == places


MARKS = st.sampled_from(
    ["", "1", "4", "30%", "60%", "share 30%", "share 60%", "a person wrote this"]
)
VALUES = st.one_of(
    st.integers(0, 7),
    st.sampled_from(["0%", "1%", "30%", "33%", "60%", "99%", "100%"]),
    st.sampled_from(["0%", "1%", "10%", "30%", "50%", "60%", "90%", "100%"]).map(
        lambda percent: {"share": percent}
    ),
)


@given(
    value=VALUES,
    ready=st.integers(0, 6),
    not_ready=st.integers(0, 3),
    others=st.integers(0, 12),
    stood=st.dictionaries(st.integers(1, 6), st.tuples(MARKS, st.sampled_from([UP, OUT, DOWN]))),
)
def test_a_limit_is_reached_exactly(
    value: Any,
    ready: int,
    not_ready: int,
    others: int,
    stood: dict[int, tuple[str, InstanceStatus]],
) -> None:
    """There are as many as the limit asks for, or as are ready. Instances under the same percentage
    stay, unless they are DOWN."""
    found = claims(*range(1, ready + 1), not_ready=tuple(range(11, 11 + not_ready)), limit=value)
    there = [
        standing(number, mark, status)
        for number, (mark, status) in stood.items()
        if number <= ready
    ]
    admitted = within_limits(found, observed(*there, *(beside(number) for number in range(others))))
    limit = parse(syncer(limit=value)).limit
    assert limit is not None
    placed = [one for one in there if one.status is not DOWN]
    stay = {
        one.key
        for one in placed
        if not isinstance(value, int) and limit.value and limit.lets_in(one.metadata.get(LIMIT, ""))
    }
    places = asked_for(value, pods=ready + not_ready, others=others)
    inside = let_in(admitted)
    assert len(inside) == max(len(stay), min(ready, places))
    assert stay <= inside
    assert (
        set(serving(admitted).of(OverLimit))
        >= {key(number) for number in range(1, ready + 1)} - inside
    )
    up = {one.key for one in there if one.status is UP}
    assert up <= inside or inside <= {one.key for one in placed}, (
        "nobody comes in while one that is UP goes"
    )


@pytest.mark.parametrize("wanted_stands", [True, False])
@pytest.mark.parametrize(("value", "inside"), [(3, 2), ("75%", 2), ({"share": "100%"}, 4)])
def test_an_instance_that_may_still_be_wanted_has_its_place(
    value: Any, inside: int, wanted_stands: bool
) -> None:
    """It is kept, so one of four ready pods fewer is registered. A DOWN instance has no place."""
    found = claims(1, 2, 3, 4, limit=value)
    claim = found.claims[REF]
    assert isinstance(claim, Serving)
    doubted = replace(
        claim, incomplete=(Incomplete(reason=Reason.SOURCE_UNKNOWN, message="a slice is missing"),)
    )
    found = replace(found, claims={REF: doubted})
    mark = str(parse(syncer(limit=value)).limit)
    there = [standing(number, mark, status) for number, status in ((7, UP), (8, DOWN), (1, UP))]
    there = there if wanted_stands else there[:2]
    assert len(let_in(within_limits(found, observed(*there)))) == inside
    assert len(let_in(within_limits(claims(1, 2, 3, 4, limit=value), observed(*there)))) == min(
        4, inside + 1
    )


def test_addresses_that_an_older_syncer_only_holds_take_no_place() -> None:
    """The older syncer is suspended. The younger one registers nothing at its addresses, and uses
    two others."""
    older = syncer(
        "older", created=500, suspend=True, selector={"service": "older"}, appName="rating"
    )
    behind_both = [piece(endpoint(1), endpoint(2), endpoint(3), endpoint(4))]
    behind_older = [piece(endpoint(1), endpoint(2), service="older")]
    found = desired(
        [older, syncer(limit=2)],
        [service(), service("older")],
        [*behind_both, *behind_older],
    )
    claim = serving(within_limits(found, observed()))
    assert set(claim.wanted) - set(claim.rivals) == {key(3), key(4)}


def test_a_suspended_syncer_keeps_what_it_has_whatever_its_limit() -> None:
    """Its limit neither removes nor registers an instance."""
    found = claims(1, 2, 3, limit=1, suspend=True)
    assert within_limits(found, observed(standing(1, ""), standing(2, "share 5%"))) == UNCHANGED


def test_a_lowered_limit_keeps_an_up_instance_rather_than_one_out_of_service() -> None:
    """One place is left for two instances."""
    found = claims(1, 2, limit=1)
    assert let_in(within_limits(found, observed(standing(1, "2", UP), standing(2, "1", OUT)))) == {
        key(1)
    }
    assert let_in(within_limits(found, observed(standing(1, "1", OUT), standing(2, "2", UP)))) == {
        key(2)
    }


@pytest.mark.parametrize("unread", [1, 2])
def test_no_instance_is_removed_for_one_that_cannot_be_read(unread: int) -> None:
    """The unread instance may be gone, and the other one may be the last. Their order does not
    matter."""
    there = observed(standing(1, "2"), standing(2, "2")).refreshed(
        {key(unread): Unread(why="timeout")}
    )
    assert let_in(within_limits(claims(1, 2, limit=1), there)) == {key(1), key(2)}


def test_nothing_is_registered_for_an_unread_instance_beside_one_out_of_service() -> None:
    """Both keep their places, and no others are free."""
    there = observed(standing(1, "2", OUT), standing(2, "2")).refreshed(
        {key(2): Unread(why="timeout")}
    )
    assert let_in(within_limits(claims(1, 2, 3, 4, limit=2), there)) == {key(1), key(2)}


def test_nothing_is_read_again_where_nothing_new_is_registered() -> None:
    """A steady state needs no reads. If a pod is to be registered, the others that wait are read,
    because they may be registered."""
    found = claims(1, 2, 3, limit=1)
    assert within_limits(found, observed(standing(1, "1"))).to_read == ()
    assert len(within_limits(found, observed()).to_read) == 2


def test_the_note_says_the_limit_and_how_many_pods_are_ready() -> None:
    """It also does so if fewer pods are ready than the limit allows."""
    assert serving(within_limits(claims(1, 2, limit=3), observed())).notes == (
        "limit 3: registers 2 of 2 ready endpoints",
    )
    assert serving(within_limits(claims(1, 2, 3, limit=3), observed())).notes == (
        "limit 3: registers 3 of 3 ready endpoints",
    )


def test_a_cancelled_instance_that_is_still_listed_takes_no_place() -> None:
    """Another pod has its place. The list is older than the cancel, and a renewal would have
    registered it again."""
    world = FakeWorld()
    world.own_writes = OwnWrites(seconds=45)
    pods = range(1, 6)
    world.cluster.apply(
        service(), syncer(limit="67%", notReady="Cancel"), piece(*(endpoint(n) for n in pods))
    )
    world.run()
    up = [n for n in pods if key(n) in world.registry.held]
    assert len(up) == 4
    world.later(40)
    world.registry.cached_for(30)
    world.cluster.apply(piece(*(endpoint(n, ready=n != up[0]) for n in pods)))
    world.run()
    (other,) = set(pods) - set(up)
    assert set(world.registry.held) == {key(n) for n in (*up[1:], other)}
    world.later(10)
    world.cluster.apply(piece(*(endpoint(n) for n in pods)))
    world.run()
    assert set(world.registry.held) == {key(n) for n in (*up[1:], other)}
