"""Time limits of a pass and its stages, the limit on calls in a row without an answer, and periodic
tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import inf

from msgspec import Struct, field

from eurekube_sync.model.ports import Clock

FAILURES_IN_A_ROW = 20


class TimeLimit:
    """The end of the current stage, which bounds each call and each try of the adapters.
    Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.end = inf  # in monotonic seconds; infinity is no limit
        self._allowed: Callable[[], bool] = lambda: True

    def only_while(self, allowed: Callable[[], bool]) -> None:
        """Begin calls only while `allowed` is true: a process that slept and lost its lock must not
        write."""
        self._allowed = allowed

    def left(self) -> float:
        """Return the seconds that are left, at least zero; infinity without a limit."""
        if self._allowed():
            return max(0.0, self.end - self._clock.monotonic())
        return 0.0


class Deadline:
    """Whether to begin nothing new: the stage's time is over, the program was asked to stop, or it
    lost the lock."""

    def __init__(self, clock: Clock, seconds: float, limit: TimeLimit | None = None) -> None:
        self._clock = clock
        self.begun = clock.monotonic()  # when the pass began, in monotonic seconds
        self._seconds = seconds
        self._limit = limit or TimeLimit(clock)
        self.cut_short = False  # whether something was not begun because the deadline had passed
        self.stage(1.0)

    def stage(self, share: float, *, part_of_rest: float = 1.0) -> None:
        """Let the current stage end when this share of the pass's time is over, or after this part
        of the time that is left until then."""
        now = self._clock.monotonic()
        left = max(0.0, self.begun + share * self._seconds - now)
        self._limit.end = now + part_of_rest * left

    def stage_for(self, part: float) -> None:
        """Let the current stage take at most this part of the pass's time, and end with the
        pass."""
        longest = self._clock.monotonic() + part * self._seconds
        self._limit.end = min(longest, self.begun + self._seconds)

    @property
    def passed(self) -> bool:
        """Whether the deadline has passed. It is to be asked only before something that is then
        left undone."""
        passed = self._clock.stopping() or not self._limit.left()
        self.cut_short = self.cut_short or passed
        return passed


class Streak(Struct):
    """Count the calls in a row that got no answer from one server, over all threads."""

    most: float = FAILURES_IN_A_ROW
    failures: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, *, unreachable: bool) -> None:
        with self.lock:
            self.failures = self.failures + 1 if unreachable else 0

    @property
    def broken(self) -> bool:
        """Whether the server counts as down, so that no further call is tried."""
        return self.failures >= self.most


class Schedule:
    """A task that is due once in each period of the clock, such as once in each hour."""

    def __init__(self, seconds: float, *, first_part: float = inf) -> None:
        """Let the first call of `due` in a process give True only in the first seconds
        (`first_part`) of a period, so that of the processes that a CronJob starts each minute only
        one does the task."""
        self._seconds = seconds
        self._first_part = first_part
        self._period: float | None = None

    def due(self, now: float) -> bool:
        """Whether the task is due at this time, in Unix seconds. Each call counts as doing the
        task."""
        before = self._period
        self._period, past = divmod(now, self._seconds)
        if before is None:
            return past < self._first_part
        return before != self._period
