"""A signal at any moment of a wait: it ends the wait."""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType
from typing import Any

from eurekube_sync.adapters.clock import SystemClock

LONG_SECONDS = 60.0
"""No test waits this long."""


def stopped_at(step: int) -> tuple[bool, bool]:
    """Begin a wait in a thread, and stop it from within at this step of Python. A signal's handler
    also runs between two steps. Return whether the wait ended, and whether the step exists."""
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
    if not reached.wait(0.05):  # the wait has begun: later steps come only after a stop
        clock.stop()
    waiting.join(10)
    return not waiting.is_alive(), reached.is_set()


def test_a_stop_at_any_step_of_a_wait_ends_it() -> None:
    """The handler must not wait for a lock that its own thread holds."""
    for step in range(1, 1000):
        ended, reached = stopped_at(step)
        assert ended, f"it hangs when it is stopped at step {step}"
        if not reached:
            break
    else:
        raise AssertionError("a wait has no end of steps")
    assert step > 3


def test_a_stop_ends_every_wait_and_those_to_come() -> None:
    """This holds for all threads."""
    clock = SystemClock()
    waiting = [
        threading.Thread(target=clock.sleep, args=(LONG_SECONDS,), daemon=True) for _ in range(4)
    ]
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
    """A negative time is no wait."""
    clock = SystemClock()
    begun = clock.monotonic()
    clock.sleep(-1)
    clock.sleep(0.05)
    clock.sleep(0.05)
    assert clock.monotonic() - begun >= 0.1
