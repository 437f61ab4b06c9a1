"""Renewals between passes: a daemon spreads many leases evenly, and renews each when it is 30 s
old."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.cli.output.report import summary
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.loop import BetweenPasses, Schedule, run_passes
from eurekube_sync.controller.one_pass import EurekaWorld, PassReport
from eurekube_sync.model.actions import Result
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import RegistryRejected, RegistryUnavailable
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.struct import replace
from tests.in_process.workers import InTurn
from tests.unit.controller.test_reconcile import article, pods
from tests.unit.worlds.build import OWNER, endpoint
from tests.unit.worlds.fakes import FakeWorld

MANY = 120


@dataclass
class Daemon:
    """A daemon of many pods. Its passes take `busy` seconds each, and its clock moves only when
    something waits."""

    interval: float = 10
    busy: float = 0
    number: int = MANY
    many: int = 100
    batch: int | None = None
    call_seconds: float = 0
    renewed: list[tuple[float, str]] = field(default_factory=list)
    """The time, and the key or the size of the batch."""
    begun: list[float] = field(default_factory=list)
    reports: list[PassReport] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world: FakeWorld = article()
        self.clock, self.registry = self.world.clock, self.world.registry
        pods(
            self.world,
            *(endpoint(n, address=f"10.0.{n // 250}.{n % 250 + 1}") for n in range(self.number)),
        )
        self.registry.batch_size = self.batch
        self.world.renewals = RenewalLedger(period=30, slack=self.interval / 2)
        self.world.wire.then = self._called

    def _called(self) -> None:
        verb, _, rest = self.world.wire.calls[-1].partition(" ")
        if verb in ("renew", "renew_batch"):
            self.renewed.append((self.clock.monotonic(), rest))
            self.clock.sleep(self.call_seconds)

    def one_pass(self) -> PassReport:
        self.begun.append(self.clock.monotonic())
        self.reports.append(self.world.run())
        self.world.later(self.busy)
        return self.reports[-1]

    def run(self, passes: int, *, even: bool = True) -> None:
        """Make this many passes, each with the time after it."""
        left = len(self.begun) + passes

        def tell(report: PassReport, _code: ExitCode) -> None:
            self.told.append(summary(report))

        between = BetweenPasses(self.seen(), interval=self.interval, many=self.many)

        def then_stop(standing: tuple[InstanceKey, ...], until: float) -> int:
            found = between(standing, until)
            self.clock.stopped = self.clock.stopped or len(self.begun) >= left
            return found

        self.clock.stopped = False
        schedule = Schedule(passes=None if even else passes, interval=self.interval)
        run_passes(self.one_pass, self.clock, schedule, tell, then_stop if even else None)

    def seen(self) -> EurekaWorld:
        return EurekaWorld(
            registry=self.registry,
            clock=self.clock,
            workers=InTurn(),
            renewals=self.world.renewals,
            time_limit=TimeLimit(self.clock),
        )

    def ours(self) -> list[InstanceKey]:
        return sorted(key for key in self.registry.held if key.id.startswith(OWNER))

    def gaps(self) -> list[float]:
        """The times between two renewals of each lease, in one list."""
        times: dict[str, list[float]] = {}
        for at, one in self.renewed:
            times.setdefault(one, []).append(at)
        return [later - earlier for each in times.values() for earlier, later in pairwise(each)]

    def by_second(self) -> Counter[int]:
        """How many leases were renewed in each second. A batch counts its items."""
        found: Counter[int] = Counter()
        for at, one in self.renewed:
            found[int(at)] += int(one) if one.isdigit() else 1
        return found


def settled(daemon: Daemon) -> Daemon:
    """The daemon after two periods, with its counts cleared."""
    daemon.run(int(90 / daemon.interval) + 1)
    daemon.renewed.clear()
    return daemon


@pytest.mark.parametrize("batch", [None, 5])
@pytest.mark.parametrize("interval", [7, 10, 12, 18, 30, 60])
def test_many_leases_are_renewed_at_an_even_rate(interval: float, batch: int | None) -> None:
    """The rate does not depend on the poll interval. It is 4 a second for 120 leases, never more
    than twice that, and never more than two batches."""
    daemon = settled(Daemon(interval=interval, batch=batch))
    daemon.run(int(120 / interval) + 1)
    seconds = daemon.by_second()
    assert max(seconds.values()) < 8 if batch is None else max(seconds.values()) <= 2 * batch
    lasted = max(seconds) - min(seconds)
    assert sum(seconds.values()) == pytest.approx(4 * lasted, rel=0.1)


@pytest.mark.parametrize("busy", [0, 4])
@pytest.mark.parametrize("interval", [7, 10, 12, 18, 19.9, 30, 60])
def test_each_of_many_leases_is_renewed_about_every_30_s(interval: float, busy: float) -> None:
    """This also holds where a pass takes a large part of the interval. No even renewals happen
    during a pass."""
    daemon = settled(Daemon(interval=interval, busy=busy))
    daemon.run(int(150 / interval) + 1)
    gaps = daemon.gaps()
    assert 25 <= min(gaps) <= max(gaps) <= 35
    assert sum(gaps) / len(gaps) == pytest.approx(30, abs=2)


@pytest.mark.parametrize("batch", [None, 50])
@pytest.mark.parametrize("interval", [7, 10, 11.9, 12, 18, 19.9, 25, 30, 60])
def test_a_single_lease_is_renewed_about_every_30_s(interval: float, batch: int | None) -> None:
    """This also holds where no whole number of intervals is about 30 s. Passes alone would renew
    after 36 s or 40 s."""
    daemon = settled(Daemon(interval=interval, number=1, batch=batch))
    daemon.run(int(150 / interval) + 1)
    gaps = daemon.gaps()
    assert 25 <= min(gaps) <= max(gaps) <= 35


def test_where_one_batch_holds_what_falls_due_a_pass_renews_it() -> None:
    """A single call each 10 s renews 40 of 120 leases."""
    daemon = settled(Daemon(batch=50))
    daemon.run(6)
    assert daemon.renewed
    assert all(30 < int(size) < 50 for _, size in daemon.renewed)
    when = [at for at, _ in daemon.renewed]
    assert sorted(set(when)) == when
    assert set(when) <= set(daemon.begun)


def test_a_pass_finds_nothing_that_is_due() -> None:
    """Neither its reads nor its changes wait for renewals."""
    daemon = settled(Daemon())
    daemon.run(6)
    for report in daemon.reports[-6:]:
        assert not report.outcomes.by_key
    assert daemon.renewed


def test_each_pass_reports_how_many_were_renewed_since_the_one_before() -> None:
    """Otherwise a person would read that no lease was renewed."""
    daemon = settled(Daemon())
    daemon.run(4)
    told = [int(one.removeprefix("in sync, ").removesuffix(" renewed")) for one in daemon.told[-3:]]
    assert sum(told) == pytest.approx(MANY, rel=0.1)


def test_where_a_pass_takes_all_of_its_interval_it_renews_at_once_what_is_due() -> None:
    """To renew in time is more important than an even rate. No time is left between passes, so each
    pass renews first."""
    daemon = settled(Daemon(busy=12))
    daemon.run(10)
    assert {at for at, _ in daemon.renewed} <= set(daemon.begun)
    assert max(daemon.gaps()) <= 36


def test_a_slow_server_is_called_evenly_in_the_end() -> None:
    """Each call takes 170 ms, and the calls of a period take two thirds of it. Only the first
    passes exceed their interval."""
    daemon = settled(Daemon(call_seconds=0.17))
    daemon.run(12)
    assert max(later - earlier for earlier, later in pairwise(daemon.begun[-12:])) < 10.5
    assert max(daemon.by_second().values()) < 8
    assert max(daemon.gaps()) <= 40


def test_the_next_pass_first_renews_leases_that_were_not_renewed_in_time() -> None:
    """The server becomes slow. Late calls take no time from the next pass, which begins when it
    should."""
    daemon = settled(Daemon())
    daemon.call_seconds = 0.4
    daemon.run(2)
    first, second = daemon.begun[-2:]
    assert second - first < 10.5
    assert daemon.reports[-1].outcomes.by_key
    assert second in {at for at, _ in daemon.renewed}


def test_few_leases_are_renewed_by_the_passes_alone() -> None:
    """Nothing is sent between the passes, and each pass reports its renewals."""
    daemon = Daemon(number=20)
    daemon.run(10)
    assert {at for at, _ in daemon.renewed} <= set(daemon.begun)


def test_a_poll_interval_above_the_period_does_not_delay_few_leases() -> None:
    """Each pass is a minute after the last, and every lease is renewed every 30 s."""
    daemon = settled(Daemon(number=20, interval=60))
    daemon.run(5)
    assert max(daemon.gaps()) <= 35


def test_a_number_of_passes_renews_all_at_once() -> None:
    """The next process would otherwise find leases of any age."""
    daemon = Daemon(interval=30)
    daemon.run(2, even=False)
    assert {at for at, _ in daemon.renewed} <= set(daemon.begun)


def test_a_signal_ends_it_between_two_calls() -> None:
    """The calls that remain are not made."""
    daemon = settled(Daemon())
    then = daemon.world.wire.then

    def stop() -> None:
        then()
        daemon.clock.stopped = len(daemon.renewed) >= 5

    daemon.world.wire.then = stop
    daemon.run(10)
    assert len(daemon.renewed) == 5


def test_nothing_is_renewed_that_the_last_pass_cancelled() -> None:
    """A renewal a moment before the cancel makes no difference."""
    daemon = settled(Daemon())
    assert any(":10.0.0.1:" in one.id for one in daemon.ours())
    pods(
        daemon.world,
        *(endpoint(n, address=f"10.0.{n // 250}.{n % 250 + 1}") for n in range(1, MANY)),
    )
    daemon.run(1)
    daemon.renewed.clear()
    daemon.run(6)
    assert not [one for _, one in daemon.renewed if ":10.0.0.1:" in one]


def test_an_instance_that_expired_between_is_registered_again_by_the_next_pass() -> None:
    """One renewal between the passes finds that it is gone. The pass tries it first, because only a
    pass may register."""
    daemon = settled(Daemon())
    lost = daemon.ours()[::20]
    for one in lost:
        daemon.registry._drop(one)
    daemon.registry.cached_for(0)
    before = len(daemon.reports)
    daemon.run(5)
    healed = [
        outcome.action.key
        for report in daemon.reports[before:]
        for outcome in report.outcomes.by_key.values()
        if outcome.result in (Result.REGISTERED_AGAIN, Result.DONE)
    ]
    assert set(lost) <= {*healed}
    assert set(lost) <= set(daemon.registry.held)


def test_an_instance_that_a_peer_lacks_is_registered_there_by_the_next_pass() -> None:
    """A batch between the passes finds that it is missing. Only a pass knows whether it is still
    desired."""
    daemon = settled(Daemon(batch=250))
    daemon.registry.lacking.update(daemon.ours()[:5])
    daemon.run(5)
    assert not daemon.registry.lacking


def test_a_server_that_is_away_is_not_called_for_each_lease() -> None:
    """After twenty calls in a row without an answer, the pass does the rest."""
    daemon = settled(Daemon())
    away = RegistryUnavailable("Eureka did not answer")
    daemon.registry.refuse = dict.fromkeys(daemon.registry.held, away)
    daemon.run(1)
    assert not daemon.reports[-1].outcomes.by_key
    assert len(daemon.renewed) == 20


def test_one_lease_that_is_refused_does_not_keep_the_others_waiting() -> None:
    """A refusal is an answer, and the pass reports it."""
    daemon = settled(Daemon())
    bad = daemon.ours()[0]
    daemon.registry.refuse = {bad: RegistryRejected("400")}
    daemon.run(6)
    assert any(
        outcome.action.key == bad
        for report in daemon.reports[-6:]
        for outcome in report.outcomes.failures
    )
    assert len({one for _, one in daemon.renewed}) == MANY


def test_a_dry_run_renews_nothing_between() -> None:
    daemon = settled(Daemon())
    assert daemon.world.run(dry_run=True).to_renew == ()


def test_a_bug_between_two_passes_ends_no_daemon(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with its place, and the next pass makes the renewals."""
    world = article()
    made = []

    def one_pass() -> PassReport:
        made.append(world.clock.monotonic())
        world.clock.stopped = len(made) == 3
        return world.run()

    def between(_standing: tuple[InstanceKey, ...], _until: float) -> int:
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR):
        run_passes(
            one_pass, world.clock, Schedule(passes=None), lambda _report, _code: None, between
        )
    assert len(made) == 3
    assert "ZeroDivisionError" in caplog.text


def test_an_instance_that_some_servers_lack_is_due_again_in_the_next_pass() -> None:
    """A renewal between passes cannot register it there, because only a pass knows whether it is
    desired."""
    daemon = Daemon(batch=10)
    daemon.run(4)
    ledger, clock = daemon.world.renewals, daemon.clock
    between = BetweenPasses(
        replace(daemon.seen(), renewals=ledger), interval=daemon.interval, many=daemon.many
    )
    for lacking in (set(), set(daemon.ours())):
        daemon.registry.lacking = lacking
        clock.stopped = False
        renewed = between(daemon.ours(), clock.monotonic() + daemon.interval)
        ledger.slack = 0
        again = ledger.due(daemon.ours(), clock.monotonic())
        assert renewed > 0
        assert len(again) == (renewed if lacking else 0)
