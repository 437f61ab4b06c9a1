"""Real time, and a wait that a signal ends."""

from __future__ import annotations

import threading
import time


class SystemClock:
    """The machine's clocks. `stop` may be called from a signal handler."""

    def __init__(self) -> None:
        self._stop = threading.Event()

    def now(self) -> float:
        """Unix seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Waits; a stop ends it at once."""
        self._stop.wait(max(0.0, seconds))

    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Begin nothing new from now on."""
        self._stop.set()
