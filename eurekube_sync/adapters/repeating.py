"""A call that is made again and again beside the work, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from eurekube_sync.adapters.side_thread import in_side_thread

_END_SECONDS = 6.0
"""How long the last call is waited for."""
log = logging.getLogger(__name__)


@contextmanager
def repeating(call: Callable[[], None], seconds: float) -> Iterator[None]:
    """Calls it so many seconds after it last ended. One that raises is logged, and made again."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            try:
                call()
            except Exception:
                log.exception("a bug ended this call; it is made again in %g s", seconds)

    running = in_side_thread(repeat)
    try:
        yield
    finally:
        ended.set()
        try:
            running.result(timeout=_END_SECONDS)
        except TimeoutError:
            log.debug("a call in the background did not end in time")
