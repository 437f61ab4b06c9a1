"""Calls one after the other, on the caller's thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class InTurn:
    """The same order each time."""

    def each(self, call: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
        """All answers, in the order of the items."""
        return [call(item) for item in items]
