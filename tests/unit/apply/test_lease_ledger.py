"""The ledger of leases: each lease is renewed every 30 s, whatever the interval of the passes."""

from __future__ import annotations

import pytest

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.model.errors import RegistryRejected
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.sources import Cause, Unknown
from tests.unit.controller.test_reconcile import article
from tests.unit.worlds.build import key
from tests.unit.worlds.fakes import FakeWorld


@pytest.mark.parametrize("interval", [2, 10, 15, 30])
def test_a_daemon_renews_each_lease_every_30_s(interval: int) -> None:
    """More frequent passes renew no more often. Statuses and counts stay the same in the passes
    between."""
    world: FakeWorld = article()
    world.renewals = RenewalLedger(period=30, slack=interval / 2)
    world.run()
    for _ in range(30 // interval):
        world.later(interval)
        world.run()
    counts = []
    for _ in range(60 // interval):
        world.later(interval)
        assert not world.run().statuses
        assert world.wire.writes() == []
        counts.append(world.wire.verbs().count("renew"))
    assert sum(counts) == 4, "two leases, twice in a minute"


def test_a_lease_is_read_by_a_renewal_only_where_it_is_renewed_and_seldom() -> None:
    """Ten periods pass before it is read so again. A lease that was cancelled, or not renewed for
    long, is not."""
    ledger = RenewalLedger(period=30, slack=15)
    keys = [key(number) for number in range(1, 5)]
    for one in keys[:3]:
        ledger.note(one, 100)
    assert ledger.readable(keys, 100) == keys[:3]
    for one in keys[:2]:
        ledger.note_reading(one, 100)
    assert ledger.readable(keys, 130) == [key(3)]
    ledger.drop(key(2))
    ledger.note(key(2), 200)
    assert ledger.readable(keys, 399) == [key(2), key(3)]
    assert ledger.readable(keys, 400) == keys[:3]
    ledger.note(key(1), 1000)
    ledger.note_reading(key(1), 1000)
    ledger.note_reading(key(4), 1000)
    ledger.forget(1000)
    ledger.note(key(4), 1010)
    assert ledger.readable(keys, 1010) == [key(4)]


def test_where_every_pass_renews_the_very_next_one_does() -> None:
    """With a slack of the whole period, all leases are due in each pass, even those that were just
    registered."""
    ledger = RenewalLedger(period=30, slack=30)
    keys = [key(number) for number in range(250)]
    for one in keys:
        ledger.note(one, 100)
    assert ledger.due(keys, 101) == keys


def test_a_lease_is_due_between_passes_after_one_period_oldest_first() -> None:
    """The period is exact: no lease is renewed earlier or later than after 30 s."""
    ledger = RenewalLedger(period=30, slack=15)
    for one, at in ((key(1), 100), (key(2), 90), (key(3), 95)):
        ledger.note(one, 0)
        ledger.note(one, at)
    keys = [key(1), key(2), key(3), key(4)]
    assert [ledger.falling_due(set(keys), moment) for moment in (119, 120, 129, 130)] == [
        [],
        [key(2)],
        [key(2), key(3)],
        [key(2), key(3), key(1)],
    ]


def test_where_each_pass_renews_all_a_new_lease_waits_for_more_than_half_a_period() -> None:
    """Its first renewal is moved a little, so that the renewals do not come all at once."""
    ledger = RenewalLedger(period=30, slack=15)
    keys = [key(number) for number in range(250)]
    for one in keys:
        ledger.note(one, 0)
    assert ledger.falling_due(set(keys), 17.9) == []
    assert 50 < len(ledger.falling_due(set(keys), 30)) < 200
    assert len(ledger.falling_due(set(keys), 42)) == 250


def test_leases_that_came_in_one_pass_are_spread_over_many_passes_too() -> None:
    """Passes come every 2 s. None renews many more than a fifteenth of the leases."""
    ledger = RenewalLedger(period=30, slack=1)
    keys = [key(number % 250, port=8080 + number // 250) for number in range(300)]
    for one in keys:
        ledger.note(one, 0)
    renewed = []
    for now in range(2, 32, 2):
        due = ledger.due(keys, now)
        renewed.append(len(due))
        for one in due:
            ledger.note(one, now)
    assert sum(renewed) == 300
    assert max(renewed) < 50


def test_leases_that_came_in_one_pass_fall_due_in_all_the_passes_of_a_period() -> None:
    """One pass registers 300 leases, and passes come every 10 s. Each pass renews about a third,
    and each lease every 30 s."""
    ledger = RenewalLedger(period=30, slack=5)
    keys = [key(number % 250, port=8080 + number // 250) for number in range(300)]
    for one in keys:
        ledger.note(one, 0)
    renewed: dict[int, list[InstanceKey]] = {}
    for now in range(10, 100, 10):
        renewed[now] = ledger.due(keys, now)
        for one in renewed[now]:
            ledger.note(one, now)
    assert sorted(key for now in (10, 20, 30) for key in renewed[now]) == sorted(keys)
    assert all(renewed[now] == renewed[now + 30] == renewed[now + 60] for now in (10, 20, 30))
    assert all(85 <= len(renewed[now]) <= 115 for now in renewed)


def test_a_lease_that_is_gone_is_forgotten() -> None:
    """The ledger holds only leases that were renewed recently."""
    ledger = RenewalLedger(period=30, slack=5)
    for _ in range(2):
        ledger.note(key(1), 0)
        ledger.note(key(2), 0)
    assert [ledger.due([key(1)], at) for at in (24.9, 25)] == [[], [key(1)]]
    ledger.note(key(2), 595)
    ledger.forget(600)
    assert ledger.renewed_lately() == (key(1), key(2))
    ledger.forget(601)
    assert ledger.renewed_lately() == (key(2),)
    assert (ledger.due([key(1)], 1), ledger.due([key(2)], 596)) == ([key(1)], [])


def test_a_slow_pass_changes_no_lease_to_another_pass() -> None:
    """Each call of one pass takes a second, and other calls take no time. Each lease is still
    renewed in every third pass."""
    world: FakeWorld = article()
    world.renewals = RenewalLedger(period=30, slack=5)
    world.run()
    renewed: list[int] = []
    for number in range(12):
        world.later(10 - world.clock.monotonic() % 10)
        world.wire.then = (lambda: world.clock.sleep(1)) if number == 4 else (lambda: None)
        world.run()
        renewed.append(world.wire.verbs().count("renew"))
    assert all(sum(renewed[start : start + 3]) == 2 for start in range(10)), renewed


def test_a_missing_instance_is_due_again_and_still_known_as_registered() -> None:
    """A pass that cannot read Eureka renews the leases in the ledger. This also holds for leases
    that are renewed between two passes."""
    ledger = RenewalLedger(period=30, slack=5)
    for number in (1, 2):
        ledger.note(key(number), 100)
        ledger.note(key(number), 100)
    ledger.again(key(1))
    assert ledger.due(map(key, (1, 2)), 101) == [key(1)]
    assert ledger.falling_due({key(1), key(2)}, 200) == [
        key(2)
    ]  # only a pass can register it there
    assert set(ledger.renewed_lately()) == {key(1), key(2)}
    ledger.note(key(1), 101)
    assert not ledger.due([key(1)], 102)
    ledger.again(key(1))
    ledger.drop(key(1))
    assert ledger.renewed_lately() == (key(2),)
    ledger.forget(10_000)
    assert ledger.renewed_lately() == ()


def test_a_pass_that_cannot_read_eureka_renews_instances_that_a_server_lacked() -> None:
    """Neither Eureka nor Kubernetes shows the registered instances then. The leases must not
    expire."""
    world: FakeWorld = article()
    world.registry.batch_size = 250
    world.renewals = RenewalLedger(period=30, slack=5)
    world.run()
    world.later(10)
    mine = [one for one in world.registry.held if world.registry.held[one].metadata]
    world.registry.returned, world.registry.lacking = True, set(mine)
    world.registry.refuse = {one: RegistryRejected("not now") for one in mine}
    world.run()
    world.registry.refuse, world.registry.lacking = {}, set()
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="away")
    world.cluster.unknown["syncers", "*"] = Unknown(cause=Cause.UNAVAILABLE, message="away")
    world.later(30)
    before = {one: world.registry.held[one].last_renewal for one in mine}
    world.run()
    assert mine
    assert all(world.registry.held[one].last_renewal > before[one] for one in mine)
