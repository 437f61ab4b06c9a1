"""What is done once in each stretch of the wall clock, and not once in each pass."""

from __future__ import annotations

from math import inf


class Schedule:
    """Remembers, from pass to pass, in which stretch it was due last."""

    def __init__(self, seconds: float, *, first_part: float = inf) -> None:
        """A stretch has so many `seconds`. The first time in a process it is due only in their `first_part`: a process
        of a CronJob remembers nothing, and one begins each minute."""
        self._seconds = seconds
        self._first_part = first_part
        self._stretch: int | None = None

    def due(self, now: float) -> bool:
        """Whether it is to be done; `now` in Unix seconds. Asking counts as doing it."""
        before, self._stretch = self._stretch, int(now // self._seconds)
        return now % self._seconds < self._first_part if before is None else before != self._stretch
