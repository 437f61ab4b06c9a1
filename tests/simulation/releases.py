"""The removals that a person released: one syncer's by its annotation, or the set that a plan id
names.

By the words of the contract: an RFC 3339 time, at most one hour ahead, of the clock of the
program's machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from .clock import EPOCH
from .truth import Ref, SyncerTruth
from .view import PassView
from .world import Key

APPROVE = "eurekube.io/approve-removals-until"
_HOUR = 3600.0

T = TypeVar("T")


class Releases:
    """Remembers every annotation and every held set."""

    def __init__(self) -> None:
        self.sets: dict[str, frozenset[Key]] = {}
        """The held removals by plan id."""
        self._annotations: dict[str, list[tuple[float, str]]] = {}
        self._wrong: list[tuple[float, float]] = [(0.0, 0.0)]

    def look(self, syncers: Mapping[Ref, SyncerTruth], now: float) -> None:
        """Notes the annotations of now."""
        for syncer in syncers.values():
            said = syncer.annotations.get(APPROVE, "")
            history = self._annotations.setdefault(syncer.uid, [(0.0, "")])
            if history[-1][1] != said:
                history.append((now, said))

    def clock_is_wrong(self, now: float, by: float) -> None:
        """Notes how far the wall clock of the program's machine is off from now on."""
        self._wrong.append((now, by))

    def may_free(self, view: PassView, syncer: SyncerTruth, now: float) -> bool:
        """Whether this pass may have found an annotation that releases."""
        clocks = {0.0, *(by for _, by in _since(self._wrong, view.begun))}
        said = [text for _, text in _since(self._annotations.get(syncer.uid, []), view.specs)]
        return any(
            _released(text, moment + by)
            for text in said
            if text
            for by in clocks
            for moment in (view.begun, now)
        )

    def any_ends(self, syncers: Mapping[Ref, SyncerTruth], since: float, until: float) -> bool:
        """Whether the time of an annotation ends between these moments, so that a condition says
        that it has no effect any more."""
        ends = [
            _end(syncer.annotations[APPROVE])
            for syncer in syncers.values()
            if APPROVE in syncer.annotations
        ]
        return any(since < end <= until for end in ends)

    def must_free(self, view: PassView, syncer: SyncerTruth, now: float) -> bool:
        """Whether every annotation that this pass may have found releases."""
        clocks = {by for _, by in _since(self._wrong, view.begun)}
        said = [text for _, text in _since(self._annotations.get(syncer.uid, []), view.begun)]
        return all(
            text and _released(text, moment + by)
            for text in said
            for by in clocks
            for moment in (view.begun, now)
        )

    def approved(self, view: PassView) -> frozenset[Key]:
        """The removals of the plan id that the pass was given."""
        return self.sets.get(view.approved or "", frozenset())


def _since(history: list[tuple[float, T]], moment: float) -> list[tuple[float, T]]:
    """The values at that moment, and all later ones."""
    before = [entry for entry in history if entry[0] <= moment]
    return [*before[-1:], *(entry for entry in history if entry[0] > moment)]


def _released(text: str, moment: float) -> bool:
    return moment < _end(text) <= moment + _HOUR


def _end(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() - EPOCH
