"""Shrinks a story that breaks a promise: leaves out events and troubles while it still breaks
one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from .run import Verdict, run
from .story import Installation, Story, over

T = TypeVar("T")


def shrink(verdict: Verdict, play: Callable[[Story], Verdict] = run, *, runs: int = 400) -> Verdict:
    """Gives the verdict of the smallest story found in at most so many runs. `play` may run a
    product with a defect."""
    return _Shrinking(verdict, play, runs).smallest()


class _Shrinking:
    def __init__(self, verdict: Verdict, play: Callable[[Story], Verdict], runs: int) -> None:
        self._best = verdict
        self._play = play
        self._left = runs

    def smallest(self) -> Verdict:
        before = None
        while before is not self._best and self._left > 0:
            before = self._best
            self._without_events()
            self._without_troubles()
            self._simpler()
        return self._best

    def _try(self, story: Story) -> bool:
        if self._left <= 0 or story == self._best.story:
            return False
        self._left -= 1
        verdict = self._play(story)
        if verdict.promise != self._best.promise:
            return False
        self._best = verdict
        return True

    def _without_events(self) -> None:
        for part in _parts(len(self._best.story.events)):
            position = 0
            while position < len(self._best.story.events):
                if not self._try(
                    replace(self._best.story, events=_cut(self._best.story.events, position, part))
                ):
                    position += part

    def _without_troubles(self) -> None:
        position = 0
        while position < len(self._best.story.troubles):
            if not self._try(
                replace(self._best.story, troubles=_cut(self._best.story.troubles, position, 1))
            ):
                position += 1

    def _simpler(self) -> None:
        story = self._best.story
        for installation in (Installation(), replace(story.installation, scoped=False)):
            if self._try(replace(self._best.story, installation=installation)):
                break
        for number, trouble in enumerate(self._best.story.troubles):
            for strikes in (1, 2, 3):
                if strikes < trouble.strikes:
                    troubles = list(self._best.story.troubles)
                    troubles[number] = replace(trouble, strikes=strikes)
                    if self._try(replace(self._best.story, troubles=tuple(troubles))):
                        break
        ends = over(self._best.story.events, self._best.story.troubles)
        if ends < self._best.story.ends:
            self._try(replace(self._best.story, ends=ends))


def _parts(length: int) -> list[int]:
    found = []
    while length > 1:
        length //= 2
        found.append(length)
    return found or [1]


def _cut(items: tuple[T, ...], position: int, number: int) -> tuple[T, ...]:
    return (*items[:position], *items[position + number :])
