"""The loop of passes: how many, how far apart, and how they end."""

from __future__ import annotations

import logging

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.loop import Schedule, run_passes
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.errors import LockLost
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.sources import Cause, Unknown
from tests.unit.controller.test_reconcile import article
from tests.unit.worlds.fakes import FakeWorld


class Passes:
    """Makes passes that take `seconds` each. Those with a number in `trouble` raise an unexpected
    error."""

    def __init__(
        self,
        world: FakeWorld,
        *,
        seconds: float = 0,
        trouble: tuple[int, ...] = (),
        error: Exception | None = None,
        stop_in: int = 0,
    ) -> None:
        self.world = world
        self.seconds = seconds
        self.trouble = trouble
        self.error = error or ZeroDivisionError()
        self.stop_in = stop_in
        self.begun: list[float] = []

    def __call__(self) -> PassReport:
        self.begun.append(self.world.clock.monotonic())
        self.world.later(self.seconds)
        self.world.clock.stopped = len(self.begun) == self.stop_in
        if len(self.begun) in self.trouble:
            raise self.error
        return self.world.run()


def loop(passes: Passes, schedule: Schedule) -> tuple[ExitCode, list[ExitCode]]:
    """The exit code of the loop, and that of each pass."""
    told: list[ExitCode] = []
    code = run_passes(passes, passes.world.clock, schedule, lambda _, code: told.append(code))
    return code, told


@pytest.fixture
def world() -> FakeWorld:
    return article()


@pytest.mark.parametrize(("seconds", "apart"), [(0, 30), (12, 30), (45, 45)])
def test_passes_begin_an_interval_apart_however_long_they_take(
    world: FakeWorld, seconds: float, apart: float
) -> None:
    """The interval counts from start to start. A pass that takes longer is followed at once."""
    passes = Passes(world, seconds=seconds)
    assert loop(passes, Schedule(passes=3)) == (ExitCode.OK, [ExitCode.OK] * 3)
    begun = passes.begun
    assert [begun[1] - begun[0], begun[2] - begun[1]] == [apart, apart]


@pytest.mark.parametrize(("passes", "code"), [(None, ExitCode.OK), (5, ExitCode.INCOMPLETE)])
def test_a_signal_ends_the_loop(world: FakeWorld, passes: int | None, code: ExitCode) -> None:
    """A daemon ends like that. A number of passes that was not reached counts as cut short."""
    running = Passes(world, stop_in=2)
    assert loop(running, Schedule(passes=passes))[0] is code
    assert len(running.begun) == 2


def test_a_bug_in_one_pass_is_not_the_end_of_the_next(
    world: FakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged with its place. After the last pass, the caller gets it as well."""
    with caplog.at_level(logging.ERROR):
        assert loop(Passes(world, trouble=(1,)), Schedule(passes=2)) == (ExitCode.OK, [ExitCode.OK])
    assert "ZeroDivisionError" in caplog.text
    with pytest.raises(ZeroDivisionError):
        loop(Passes(world, trouble=(2,)), Schedule(passes=2))


def test_a_lost_lock_ends_the_passes_at_once(world: FakeWorld) -> None:
    """Another copy makes the passes then."""
    passes = Passes(world, trouble=(2,), error=LockLost("another copy has it"))
    with pytest.raises(LockLost):
        loop(passes, Schedule(passes=None))
    assert len(passes.begun) == 2


def test_a_bug_in_a_report_is_not_the_end_of_the_next_pass(
    world: FakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """Leases are renewed whatever raises the error, also until the next pass."""
    told: list[ExitCode] = []
    renewed: list[int] = []

    def tell(_: PassReport, code: ExitCode) -> None:
        told.append(code)
        if len(told) == 1:
            raise ZeroDivisionError

    def between(to_renew: tuple[InstanceKey, ...], _: float) -> int:
        renewed.append(len(to_renew))
        return 0

    assert run_passes(Passes(world), world.clock, Schedule(passes=2), tell, between) is ExitCode.OK
    assert (told, renewed) == ([ExitCode.OK] * 2, [2])
    assert "ZeroDivisionError" in caplog.text


OUTAGE = Unknown(cause=Cause.UNAVAILABLE, message="the connection was refused")


def test_an_outage_is_in_the_log_when_it_begins_and_when_it_ends(
    world: FakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has one warning and one line, however many passes it lasts. A daemon's report has
    neither time nor level."""

    class Outage(Passes):
        def __call__(self) -> PassReport:
            self.world.registry.unreadable = OUTAGE if 2 <= len(self.begun) + 1 <= 4 else None
            return super().__call__()

    with caplog.at_level(logging.INFO):
        loop(Outage(world), Schedule(passes=7))
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", f"Eureka: {OUTAGE.message}"),
        ("INFO", "Eureka can be read again, after 1m30s"),
    ]


@pytest.mark.parametrize(
    ("watched", "passes", "lines"), [(False, 1, 1), (True, 1, 0), (True, 2, 1)]
)
def test_who_reads_the_report_of_one_pass_needs_no_log_of_it(
    world: FakeWorld, caplog: pytest.LogCaptureFixture, watched: bool, passes: int, lines: int
) -> None:
    """A CronJob, a pipeline and a daemon do need it. The log has a time and a level."""
    world.registry.unreadable = OUTAGE
    loop(Passes(world), Schedule(passes=passes, watched=watched))
    assert len(caplog.records) == lines
