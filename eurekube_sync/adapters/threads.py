"""Calls in other threads: calls that may hang, a call that repeats, and a pool for parallel
calls."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")
Item = TypeVar("Item")
_END_SECONDS = 6.0  # how long to wait for the last of repeated calls
log = logging.getLogger(__name__)


def in_side_thread(call: Callable[[], T]) -> Future[T]:
    """Start a call that has no timeout, such as a DNS query. The thread does not keep the process
    alive."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - `result` raises it
            future.set_exception(error)

    threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return future


@contextmanager
def repeating(call: Callable[[], None], seconds: float) -> Iterator[None]:
    """Repeat a call in a side thread, each time `seconds` after it ended. An exception is
    logged."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            try:
                call()
            except Exception:
                log.exception("unexpected error; retrying in %g s", seconds)

    running = in_side_thread(repeat)
    try:
        yield
    finally:
        ended.set()
        with suppress(TimeoutError):
            running.result(timeout=_END_SECONDS)


class ThreadWorkers(ThreadPoolExecutor):
    """Implement `Workers` by a thread pool, which lives longer than a pass so that connections stay
    open."""

    def __init__(self, concurrency: int) -> None:
        super().__init__(max_workers=concurrency, thread_name_prefix="call")

    def each(self, call: Callable[[Item], T], items: Iterable[Item]) -> list[T]:
        return list(self.map(call, items))

    def __exit__(self, *_: object) -> None:
        self.shutdown(wait=True, cancel_futures=True)
