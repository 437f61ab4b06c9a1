"""What a signal does to a command that waits."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from eurekube_sync.adapters.clock import SystemClock

log = logging.getLogger(__name__)


@contextmanager
def stopped_by_signals(clock: SystemClock) -> Iterator[None]:
    """SIGTERM and the first Ctrl-C end the work between two calls; a second Ctrl-C ends the process at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        clock.stop()  # first: what it interrupted may be writing a log line itself
        log.info("stopping: %s", signal.Signals(number).name)

    with _handled_by(stop):
        yield


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """While a person is asked: SIGTERM and Ctrl-C end the process at once, for nothing has begun."""
    with _handled_by(signal.default_int_handler):
        yield


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
