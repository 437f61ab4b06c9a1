"""What a signal does to a command that waits."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from eurekube_sync.clock import SystemClock

log = logging.getLogger(__name__)


@contextmanager
def stopped_by_signals(clock: SystemClock) -> Iterator[None]:
    """SIGTERM and the first Ctrl-C end the work between two calls; a second Ctrl-C ends the process at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        log.info("stopping: %s", signal.Signals(number).name)
        clock.stop()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
