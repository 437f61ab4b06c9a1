"""The margin before Eureka's self-preservation, with the figures of a real server's rules."""

from __future__ import annotations

import pytest

from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Headroom, headroom, interval_of
from tests.unit.worlds.build import foreign, instance, observed, stored


def registry(ours: int, others: int, interval: float) -> Headroom:
    """A registry of this size."""
    return Headroom(ours=ours, others=others, interval=interval)


def test_every_60_s_nobody_is_evicted_from_30_percent_on() -> None:
    """At 29 % there is a margin. At 30 % the renewals no longer exceed the threshold, at any
    size."""
    for size in (100, 1000, 60_000):
        some, many = (
            registry(size * part // 100, size * (100 - part) // 100, 60) for part in (29, 30)
        )
        assert (some.blocks_eviction, many.blocks_eviction) == (False, True)
    assert (many.renewals, many.threshold) == (102_000, 102_000)


@pytest.mark.parametrize("share", [1, 14, 50, 100])
def test_every_30_s_is_neutral(share: int) -> None:
    """The server gets what it expects, whatever part of it is ours."""
    found = registry(share, 100 - share, 30)
    assert (found.renewals, found.threshold, found.blocks_eviction) == (200, 170, False)


@pytest.mark.parametrize("others", [0, 3])
def test_without_instances_of_ours_nothing_is_said(others: int) -> None:
    """The registry is empty, or has only instances of others."""
    assert not any(registry(0, others, interval).blocks_eviction for interval in (15, 30, 60))


def test_the_warning_gives_the_figures_and_what_to_do() -> None:
    """They are the interval, the renewals, the threshold, and the option to change."""
    assert registry(50, 50, 60).warning == (
        "self-preservation: with passes every 60s Eureka gets 150 renewals a minute, not above "
        "its threshold of 170. "
        "So it evicts nobody. Use --interval 30s or less."
    )


def test_ours_is_all_that_bears_our_owner() -> None:
    """Instances of our owner in another scope are also renewed. Instances of others are not
    ours."""
    elsewhere = instance(2, ref=SyncerRef("elsewhere", "x"))
    view = observed(
        stored(instance(1)),
        stored(elsewhere),
        foreign(),
        scope=Scope(namespaces=frozenset({"rating"})),
    )
    assert len(view.ours) == 1
    assert headroom(view, 30) == registry(2, 1, 30)
    assert replace(headroom(view, 30), interval=60).renewals == 4


@pytest.mark.parametrize(
    ("pass_interval", "interval"), [(10, 30), (30, 30), (60, 60), (20, 20), (1, 30)]
)
def test_leases_are_renewed_at_the_passes(pass_interval: float, interval: float) -> None:
    """The pass nearest to its time renews it, and nothing is renewed between two passes."""
    assert interval_of(pass_interval, slack=pass_interval / 2) == interval
