"""The system clock, dates of HTTP headers, and how far a server's clock is ahead of ours."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from queue import Empty, SimpleQueue
from typing import NamedTuple

from eurekube_sync.model.ports import Clock

_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # on Linux including suspension


class SystemClock:
    """The machine's clocks. `stop` may be called from a signal handler."""

    def __init__(self) -> None:
        self._stopping = False
        # A signal handler may interrupt the waiting thread, so `stop` must take no lock of it, as
        # `threading.Event` would. `SimpleQueue.put` is reentrant.
        self._wakeups: SimpleQueue[None] = SimpleQueue()

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.clock_gettime(_SINCE_BOOT)

    def sleep(self, seconds: float) -> None:
        """Wait; a stop ends the wait at once."""
        with suppress(Empty):
            self._wakeups.get(timeout=max(0.0, seconds))
            self._wakeups.put(None)  # for other waiting threads, and for later waits

    def stopping(self) -> bool:
        return self._stopping

    def stop(self) -> None:
        self._stopping = True
        self._wakeups.put(None)


class Moment(NamedTuple):
    """A moment by both clocks: somebody may set the time of the machine during a pass."""

    unix: float  # seconds
    monotonic: float  # seconds


def moment_of(clock: Clock) -> Moment:
    """Return the present moment."""
    return Moment(clock.now(), clock.monotonic())


class SavedClock:
    """The clock of a recorded pass: it moves with the answers that come from the record."""

    def __init__(self, begun: Moment) -> None:
        self._moment = begun

    def move(self, moment: Moment) -> None:
        """Move to the time of an answer. It never moves back."""
        if moment.monotonic > self._moment.monotonic:
            self._moment = moment

    def now(self) -> float:
        return self._moment.unix

    def monotonic(self) -> float:
        return self._moment.monotonic

    def sleep(self, seconds: float) -> None:
        """Nothing is waited for."""

    def stopping(self) -> bool:
        return False


def unix_time(date: str) -> float | None:
    """Return the date of an HTTP header in Unix seconds; None for anything else."""
    try:
        moment = parsedate_to_datetime(date)
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def ahead(date: str, begun: float, ended: float) -> float | None:
    """Return by how many seconds an answer's `Date` is ahead of our clock; None without a date. A
    difference that the duration of the call (`begun` to `ended`, Unix seconds) or the header's
    whole seconds can explain is 0."""
    theirs = unix_time(date)
    if theirs is None:
        return None
    if theirs + 1 < begun:
        return theirs + 1 - begun
    return max(0.0, theirs - ended)
