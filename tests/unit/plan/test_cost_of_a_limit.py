"""A limit costs as much as the syncer has endpoints, whatever the limit and their state: one team
with many endpoints must not take the time of the others. Operations on keys are counted, not
seconds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
import pytest

from eurekube_sync.desired.claims import Desired, Kept, Right, Rival, Serving, Wanted
from eurekube_sync.desired.limit import LIMIT, Limit, Measure
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Observed, Unread
from eurekube_sync.plan.left_out import within_limits
from tests.unit.worlds.build import (
    NS,
    OUT,
    REF,
    UP,
    desired,
    endpoint,
    foreign,
    observed,
    piece,
    service,
    stored,
    syncer,
)

SUSPENDED = Rival(SyncerRef(NS, "suspended"), Right.AGE)
OTHERS = 500


class CountingKey(InstanceKey):
    """A key that counts how often it is hashed or compared."""

    operations = 0

    def __hash__(self) -> int:
        CountingKey.operations += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        CountingKey.operations += 1
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        CountingKey.operations += 1
        return super().__lt__(other)


def counting(key: InstanceKey) -> CountingKey:
    """The same key, counted."""
    return CountingKey(key.app, key.id)


@cache
def many(number: int) -> tuple[Desired, Observed]:
    """A syncer with this many ready pods. Of each ten, five are registered; one instance is set
    OUT_OF_SERVICE, one is unread, one endpoint is kept, and one is at a suspended syncer's
    address."""
    pods = [endpoint(n, address=f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}") for n in range(number)]
    made = desired([syncer(limit=1)], [service()], [piece(*pods)])
    claim = made.claims[REF]
    assert isinstance(claim, Serving)
    verdicts: dict[InstanceKey, Any] = {}
    instances: list[ObservedInstance] = []
    unread: dict[InstanceKey, Unread] = {}
    for n, (plain, wanted) in enumerate(claim.wanted.items()):
        key, turn = counting(plain), n % 10
        verdicts[key] = wanted
        if turn == 0:
            verdicts[key] = Kept(why="not in the list of pods", host="10.0.0.1", port=8080)
        if turn == 1:
            verdicts[key] = replace(wanted, rival=SUSPENDED)
        if turn == 2:
            unread[key] = Unread(why="a timeout")
        if turn < 5:
            instances.append(standing(key, wanted, mark=str(turn), status=OUT if turn == 3 else UP))
    theirs = [foreign(f"dc-{n}") for n in range(OTHERS)]
    there = observed(*theirs)
    there = replace(there, ours={one.key: one for one in instances}, unread=unread)
    return replace(
        made, claims={REF: replace(claim, verdicts=verdicts, unplaced={"a": "b"})}
    ), there


def standing(
    key: InstanceKey, wanted: Wanted, *, mark: str, status: InstanceStatus
) -> ObservedInstance:
    """The registered instance of an endpoint, with the mark of the limit under which it came."""
    metadata: Mapping[str, str] = {**wanted.instance.metadata, LIMIT: mark}
    instance: Instance = replace(wanted.instance, key=key, metadata=metadata)
    return stored(instance, status=status)


def operations(number: int, limit: Limit) -> int:
    """How many operations on keys this limit takes with this many pods."""
    wants, stands = many(number)
    claim = wants.claims[REF]
    assert isinstance(claim, Serving)
    spec = msgspec.structs.replace(claim.spec, limit=limit)
    wants = replace(wants, claims={REF: replace(claim, spec=spec)})
    assert stands.keys_by_syncer  # made here, and not counted
    CountingKey.operations = 0
    limited = within_limits(wants, stands).claims[REF]
    counted = CountingKey.operations
    assert isinstance(limited, Serving)
    assert len(limited.verdicts) == number
    return counted


@pytest.mark.parametrize("value", [0, 3, 40])
@pytest.mark.parametrize("measure", Measure)
def test_ten_times_as_many_endpoints_cost_about_ten_times_as_much(
    measure: Measure, value: int
) -> None:
    """With a number, a percentage of the pods, or a share of the VIP."""
    limit = Limit(measure=measure, value=value)
    assert operations(5000, limit) < 12 * operations(500, limit)


def test_the_count_sees_a_search_in_a_list() -> None:
    """Else the test above would compare nothing."""
    keys = [counting(InstanceKey("RATING", str(number))) for number in range(10)]
    CountingKey.operations = 0
    assert counting(InstanceKey("RATING", "9")) in keys
    assert CountingKey.operations == 10
