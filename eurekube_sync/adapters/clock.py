"""Real time, a wait that a signal ends, and how far another clock is from ours."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from queue import Empty, SimpleQueue

_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # on Linux it goes on while a machine is suspended


class SystemClock:
    """The machine's clocks. `stop` may be called from a signal handler."""

    def __init__(self) -> None:
        self._stopping = False
        # A handler may interrupt the thread that waits, and must not want a lock that this one holds, as that of
        # `threading.Event`; `SimpleQueue.put` is made to be called so.
        self._bell: SimpleQueue[None] = SimpleQueue()

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.clock_gettime(_SINCE_BOOT)

    def sleep(self, seconds: float) -> None:
        """Waits; a stop ends it at once."""
        with suppress(Empty):
            self._bell.get(timeout=max(0.0, seconds))
            self._bell.put(None)  # for the others who wait, and for all waits to come

    def stopping(self) -> bool:
        return self._stopping

    def stop(self) -> None:
        self._stopping = True
        self._bell.put(None)


def unix_time(date: str) -> float | None:
    """Of a date as HTTP's headers have it; None for anything else."""
    try:
        found = parsedate_to_datetime(date)
        return found.replace(tzinfo=found.tzinfo or UTC).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def ahead(date: str, begun: float, ended: float) -> float | None:
    """Seconds that the clock of an answer's header `Date` is ahead of ours, where the call took from `begun` to `ended`
    in Unix seconds; 0 for what the call or a whole second of the header may explain. None for no such header."""
    said = unix_time(date)
    if said is not None and said + 1 < begun:
        return said + 1 - begun
    return None if said is None else max(0.0, said - ended)
