"""The clock of the unit tests: nobody waits for it."""

from __future__ import annotations

from dataclasses import dataclass, field

START = 1_800_000_000.0


@dataclass(slots=True)
class Clock:
    """Time that passes only where somebody sleeps, or a test moves it."""

    time: float = START
    slept: list[float] = field(default_factory=list)
    stopped: bool = False

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    def stopping(self) -> bool:
        return self.stopped
