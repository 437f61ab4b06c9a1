"""A signal that comes at any moment of a wait ends it."""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType
from typing import Any

from eurekube_sync.adapters.clock import SystemClock

LONG_SECONDS = 60.0
"""Nobody waits for so long here."""


def stopped_at(step: int) -> tuple[bool, bool]:
    """Begins a wait in a thread, and stops it from within at its so manieth step of Python, as a signal's handler does,
    which runs between two of them. Whether the wait ended, and whether there was such a step."""
    clock, left, reached = SystemClock(), step, threading.Event()

    def look(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        frame.f_trace_opcodes = True
        left -= 1
        if left == 0:
            sys.settrace(None)
            reached.set()
            clock.stop()
            return None
        return look

    def wait() -> None:
        sys.settrace(look)
        try:
            clock.sleep(LONG_SECONDS)
        finally:
            sys.settrace(None)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    if not reached.wait(0.05):  # it waits: the other steps are those after a stop
        clock.stop()
    waiting.join(10)
    return not waiting.is_alive(), reached.is_set()


def test_a_stop_at_any_step_of_a_wait_ends_it() -> None:
    """Whoever is told to stop while it takes up its wait must not wait for a lock that it holds itself."""
    for step in range(1, 1000):
        ended, reached = stopped_at(step)
        assert ended, f"it hangs when it is stopped at step {step}"
        if not reached:
            break
    else:
        raise AssertionError("a wait has no end of steps")
    assert step > 3


def test_a_stop_ends_every_wait_and_those_to_come() -> None:
    """Of all threads."""
    clock = SystemClock()
    waiting = [threading.Thread(target=clock.sleep, args=(LONG_SECONDS,), daemon=True) for _ in range(4)]
    for thread in waiting:
        thread.start()
    assert not clock.stopping()
    clock.stop()
    clock.stop()
    for thread in waiting:
        thread.join(10)
    assert clock.stopping()
    assert not any(thread.is_alive() for thread in waiting)
    begun = time.monotonic()
    clock.sleep(LONG_SECONDS)
    assert time.monotonic() - begun < LONG_SECONDS / 2


def test_a_wait_takes_its_time() -> None:
    """And none where none is left."""
    clock = SystemClock()
    begun = clock.monotonic()
    clock.sleep(-1)
    clock.sleep(0.05)
    clock.sleep(0.05)
    assert clock.monotonic() - begun >= 0.1
