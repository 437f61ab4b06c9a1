"""The headroom under Eureka's self-preservation, with the figures of a real server's rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.observe.self_preservation import Headroom, headroom, interval_of, sentences
from tests.unit.worlds.build import foreign, instance, observed, stored


def registry(ours: int, others: int, interval: float) -> Headroom:
    """A registry of so many."""
    return Headroom(ours=ours, others=others, interval=interval)


def test_every_60_s_nobody_is_evicted_from_30_percent_on() -> None:
    """At 29 % there is room; at 30 % the renewals reach the threshold no more, whatever the size."""
    for size in (100, 1000, 60_000):
        some, many = (registry(size * part // 100, size * (100 - part) // 100, 60) for part in (29, 30))
        assert (some.blocks_eviction, many.blocks_eviction) == (False, True)
        assert many.at_risk
    assert (many.renewals, many.threshold, many.rate) == (102_000, 102_000, 0.5)


@pytest.mark.parametrize("share", [1, 14, 50, 100])
def test_every_30_s_is_neutral(share: int) -> None:
    """The server gets what it expects, and neither blocks nor masks anything, however much is ours."""
    found = registry(share, 100 - share, 30)
    assert (found.renewals, found.threshold, found.rate) == (200, 170, 1)
    assert not found.at_risk


def test_every_15_s_masks_the_failures_of_others() -> None:
    """With 500 of 1000 ours, all others can fail and the server gets as many renewals as if all lived."""
    found = registry(500, 500, 15)
    assert (found.renewals, found.rate, found.masks_failures, found.blocks_eviction) == (3000, 2, True, False)
    assert found.renewals - 2 * found.others == found.expected
    assert "2 times the renewals" in next(iter(sentences(found)))


@pytest.mark.parametrize(("ours", "protects"), [(0, False), (14, False), (15, True), (100, True)])
def test_more_than_15_percent_are_missed(ours: int, protects: bool) -> None:
    """When we stop, the others' renewals alone stay above the threshold only while we hold less."""
    found = registry(ours, 100 - ours, 30)
    assert found.stop_protects == protects
    assert [f"we hold {ours}%" in sentence for sentence in sentences(found)] == [True] * protects


def test_without_instances_of_ours_nothing_is_said() -> None:
    """Neither an empty registry nor one of others is our doing."""
    for others in (0, 3):
        for interval in (15, 30, 60):
            found = registry(0, others, interval)
            assert (found.share, list(sentences(found))) == (0, [])


def test_an_interval_at_risk_is_told_with_its_figures() -> None:
    """The sentence holds interval, share, renewals and threshold, and what to do."""
    first, second = sentences(registry(50, 50, 60))
    assert "every 60s, our 50% of the registry keep Eureka at 150 renewals a minute" in first
    assert "threshold of 170: nobody is ever evicted. Renew every 30s." in first
    assert "if we stop" in second


def test_ours_is_all_that_bears_our_owner() -> None:
    """Another scope's instances of our owner are renewed by us too; strangers are not ours."""
    elsewhere = instance(2, ref=SyncerRef("elsewhere", "x"))
    view = observed(stored(instance(1)), stored(elsewhere), foreign(), scope=Scope(namespaces=frozenset({"rating"})))
    assert len(view.ours) == 1
    assert headroom(view, 30) == registry(2, 1, 30)
    assert replace(headroom(view, 30), interval=60).renewals == 4


@pytest.mark.parametrize(
    ("renewal_interval", "pass_interval", "interval"),
    [(30, 10, 30), (30, 30, 30), (30, 60, 60), (30, 20, 20), (30, 1, 30), (60, 10, 60)],
)
def test_leases_are_renewed_at_the_passes(renewal_interval: float, pass_interval: float, interval: float) -> None:
    """A lease is renewed in the pass that is nearest to its time, and never between two passes."""
    slack = pass_interval / 2
    found = interval_of(renewal_interval=renewal_interval, slack=slack, pass_interval=pass_interval)
    assert found == interval
