"""How long a pass may go on, and each of its stages; and what is done once in a stretch of the clock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import field
from math import inf

from eurekube_sync.model.ports import Clock
from eurekube_sync.model.values import dataclass

FAILURES_IN_A_ROW = 20


class TimeLimit:
    """Until when what runs now may go on: a pass sets it, and the adapters bound every call and every try by what is
    left of it. Safe in several threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.end = inf  # in monotonic seconds; infinity is no limit
        self._held: Callable[[], bool] = lambda: True  # whether what runs now may go on at all, whatever its time

    def only_while(self, held: Callable[[], bool]) -> None:
        """From now on no call begins unless this is true: a process that slept must not wake up and write."""
        self._held = held

    def left(self) -> float:
        """Seconds; infinite while nothing is set, and never below zero."""
        return max(0.0, self.end - self._clock.monotonic()) if self._held() else 0.0


class Deadline:
    """When to begin nothing new: the stage's time is over, the program was asked to stop, or it lost the lock."""

    def __init__(self, clock: Clock, seconds: float, limit: TimeLimit | None = None) -> None:
        self._clock = clock
        self.begun = clock.monotonic()  # when the pass began, in monotonic seconds
        self._seconds = seconds
        self._limit = limit or TimeLimit(clock)
        self.cut_short = False  # whether something was not begun because of it
        self.stage(1.0)

    def stage(self, share: float) -> None:
        """From now on, what is begun has to end before this share of the pass's time is over."""
        self._limit.end = self.begun + share * self._seconds

    def stage_of_rest(self, part: float, share: float) -> None:
        """The same, for a part of what is left until that share: a later stage of the same time gets the rest."""
        now = self._clock.monotonic()
        self._limit.end = now + part * max(0.0, self.begun + share * self._seconds - now)

    @property
    def passed(self) -> bool:
        """Whether it has passed; to be asked only by who then leaves something undone."""
        passed = self._clock.stopping() or not self._limit.left()
        self.cut_short = self.cut_short or passed
        return passed


@dataclass(slots=True)
class Streak:
    """Counts the calls in a row that got no answer from one server, over all threads."""

    most: float = FAILURES_IN_A_ROW
    failures: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, *, unreachable: bool) -> None:
        with self.lock:
            self.failures = self.failures + 1 if unreachable else 0

    @property
    def broken(self) -> bool:
        return self.failures >= self.most  # the rest is not tried


class Schedule:
    """Remembers, from pass to pass, in which stretch it was due last."""

    def __init__(self, seconds: float, *, first_part: float = inf) -> None:
        """The first time in a process it is due only in the `first_part`: a CronJob begins one each minute."""
        self._seconds = seconds
        self._first_part = first_part
        self._stretch: int | None = None

    def due(self, now: float) -> bool:
        """Whether it is to be done now, in Unix seconds. Asking counts as doing it."""
        before, self._stretch = self._stretch, int(now // self._seconds)
        return now % self._seconds < self._first_part if before is None else before != self._stretch
