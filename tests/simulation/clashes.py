"""When another cluster used our owner's name: then a pass renews what is ours, and does nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .view import OWNER, PassView, State

_CACHE = 30.0
"""Seconds that a list of Eureka may be old."""


class Clashes:
    """Remembers since when such an instance stands, and until when one stood."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._since = self._until = -_CACHE

    def look(self, states: Iterable[State], now: float) -> None:
        """What stands now."""
        if any(self._is_one(listed[0].metadata) for state in states for listed in state.values()):
            if now - self._until > _CACHE:
                self._since = now
            self._until = now

    def stopped(self, view: PassView) -> bool:
        """Whether a pass may have seen one in the list that it got."""
        return view.eureka is not None and self._since <= view.eureka and self._until >= view.begun - _CACHE

    def _is_one(self, metadata: Mapping[str, str]) -> bool:
        return metadata.get("eurekube.owner") == OWNER and metadata.get("eurekube.cluster") != self._cluster
