"""Virtual time. It moves while something waits, and runs in order whatever is due meanwhile."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

EPOCH = 1_800_000_000.0
"""Unix seconds at which every story begins."""


class VirtualClock:
    """Seconds since the story began, and an agenda."""

    def __init__(self) -> None:
        self.time = 0.0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def now(self) -> float:
        """The time in Unix seconds, as the servers see it."""
        return EPOCH + self.time

    def at(self, moment: float, what: Callable[[], None]) -> None:
        """Puts an event on the agenda. Of two at one moment, the one that was put there first comes
        first."""
        heapq.heappush(self._agenda, (moment, next(self._order), what))

    def advance(self, seconds: float) -> None:
        """Lets time pass. An event on the agenda may take time itself, as a pass of a second copy
        does."""
        target = self.time + seconds
        while self._agenda and self._agenda[0][0] <= max(target, self.time):
            moment, _, what = heapq.heappop(self._agenda)
            self.time = max(self.time, moment)
            what()
        self.time = max(self.time, target)


class MachineClock:
    """The clock of the machine that runs a copy of the program; its wall clock may be wrong. A
    `Clock` port."""

    def __init__(self, virtual: VirtualClock) -> None:
        self._virtual = virtual
        self.wrong_by = 0.0
        self.stopped = False

    def now(self) -> float:
        return self._virtual.now() + self.wrong_by

    def monotonic(self) -> float:
        return self._virtual.time

    def sleep(self, seconds: float) -> None:
        self._virtual.advance(seconds)

    def stopping(self) -> bool:
        return self.stopped
