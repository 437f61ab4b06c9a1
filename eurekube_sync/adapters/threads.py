"""Calls in other threads: left behind when they take too long, repeated beside the work, or several side by side."""

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
_END_SECONDS = 6.0  # how long the last of repeated calls is waited for
log = logging.getLogger(__name__)


def in_side_thread(call: Callable[[], T]) -> Future[T]:
    """Begins at once what takes no timeout, as a name server. Left behind it keeps no process alive."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits
            future.set_exception(error)

    threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return future


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
        with suppress(TimeoutError):
            running.result(timeout=_END_SECONDS)


class ThreadWorkers(ThreadPoolExecutor):
    """`Workers`: a pool of threads, kept over passes so that connections stay open; a context manager."""

    def __init__(self, concurrency: int) -> None:
        super().__init__(max_workers=concurrency, thread_name_prefix="call")

    def each(self, call: Callable[[Item], T], items: Iterable[Item]) -> list[T]:
        return list(self.map(call, items))

    def __exit__(self, *_: object) -> None:
        self.shutdown(wait=True, cancel_futures=True)
