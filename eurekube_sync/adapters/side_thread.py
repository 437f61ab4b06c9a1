"""What takes no timeout, as a name server or a program that a kubeconfig names, runs in a thread that nobody waits for.

Owns that thread. Who has waited long enough leaves it behind: it ends when the call does, and keeps no process alive.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

T = TypeVar("T")


class SideThread(Generic[T]):
    """One call, begun at once; may be waited for from several threads."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._ended = threading.Event()
        self._begun = time.monotonic()
        self._call = call
        self._answer: list[T] = []
        self._error: BaseException | None = None
        threading.Thread(target=copy_context().run, args=(self._run,), daemon=True).start()

    def ended(self, seconds: float) -> bool:
        """Whether the call is over, within so many seconds."""
        return self._ended.wait(seconds)

    @property
    def age(self) -> float:
        """Seconds since it was begun."""
        return time.monotonic() - self._begun

    def answer(self) -> T:
        """What the call gave, or raised; to be asked when it has ended."""
        if self._error is not None:
            raise self._error
        return self._answer[0]

    def _run(self) -> None:
        try:
            self._answer.append(self._call())
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits
            self._error = error
        finally:
            self._ended.set()
