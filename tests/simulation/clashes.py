"""When another cluster used our owner's name, or another owner served our syncers: then a pass only
renews. Which of two owners is stopped, the product decides by what both have registered. It may be
stopped only while an instance of the other owner is registered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_not

from .view import OWNER, PassView, State

_CACHE = 30.0
"""Seconds that Eureka's list may be old."""


class Clashes:
    """Remembers since when such an instance is registered, and until when one was."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._since = self._until = -_CACHE
        self._other_owner = -_CACHE
        """Until when an instance of another owner was registered in our cluster."""
        self._looked_at: list[State] = []
        self._stands = (False, False)
        """Whether an instance of another owner is registered, and whether one of another cluster
        is."""

    def look(self, states: Sequence[State], now: float) -> None:
        """Notes the instances that are registered now. What is gone by now stood until this look,
        as far as anybody knows: while the program is paused, minutes may lie between two looks."""
        stood_another_owners, stood_one = self._stands
        if len(states) != len(self._looked_at) or any(map(is_not, states, self._looked_at)):
            marks = [listed[0].metadata for state in states for listed in state.values()]
            self._looked_at = list(states)
            self._stands = any(map(self._is_anothers, marks)), any(map(self._is_one, marks))
        another_owners, one = self._stands
        if another_owners or stood_another_owners:
            self._other_owner = now
        if one and not stood_one and now - self._until > _CACHE:
            self._since = now
        if one or stood_one:
            self._until = now

    def stopped(self, view: PassView) -> bool:
        """Whether a pass may have seen such an instance in its list."""
        if view.stopped and self._other_owner >= view.begun - _CACHE:
            return True
        return (
            view.eureka is not None
            and self._since <= view.eureka
            and self._until >= view.begun - _CACHE
        )

    def _is_anothers(self, metadata: Mapping[str, str]) -> bool:
        owner = metadata.get("eurekube.owner")
        return (
            owner is not None
            and owner != OWNER
            and metadata.get("eurekube.cluster") == self._cluster
        )

    def _is_one(self, metadata: Mapping[str, str]) -> bool:
        return (
            metadata.get("eurekube.owner") == OWNER
            and metadata.get("eurekube.cluster") != self._cluster
        )
