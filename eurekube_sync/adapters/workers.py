"""Calls side by side, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class ThreadWorkers(AbstractContextManager["ThreadWorkers"]):
    """A pool of threads, kept over passes so that connections stay open; a context manager."""

    def __init__(self, concurrency: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=concurrency, thread_name_prefix="call")

    def each(self, call: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
        return list(self._pool.map(call, items))

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
