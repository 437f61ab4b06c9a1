"""What takes no timeout, as a name server or a program that a kubeconfig names, runs in a thread that nobody waits for.

Owns that thread. Who has waited long enough leaves it behind: it ends when the call does, and keeps no process alive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def in_side_thread(call: Callable[[], T]) -> Future[T]:
    """Begins the call at once; what it gives may be waited for from several threads."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits
            future.set_exception(error)

    threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return future
