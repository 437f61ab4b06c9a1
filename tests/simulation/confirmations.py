"""The promise that the last UP instance of an app is removed only at a second look.

confirmed   without evidence, the last UP instance of an app is removed only if two passes, 20 s
            apart, saw that it should not be UP; if no syncer is left whose condition could
            report the first look, both passes are of one process; an instance whose address
            another pod has is removed at once; the times of the passes count, even if their
            lists are old
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from .dead import Dead
from .evidence import Evidence
from .truth import Ref, Truth
from .view import PassView, State, Violation, is_up
from .world import Key

_APART = 20.0
"""Seconds from one look to the next."""
_NEWS = 60.0
"""Seconds in which a pass may not yet see what others did."""


@dataclass(slots=True)
class _Look:
    """One pass, the moments that its lists of Kubernetes show, and when the first and the last of
    them came."""

    view: PassView
    first: float
    last: float
    began: float
    ended: float


class Confirmations:
    """Remembers when each instance should be UP, and when each pass looked."""

    def __init__(self, truth: Truth, evidence: Evidence, dead: Dead, reached: Counter[str]) -> None:
        self._truth = truth
        self._evidence = evidence
        self._dead = dead
        self._reached = reached
        self._wanted: frozenset[Key] = frozenset()
        self._turns: dict[Key, list[tuple[float, bool]]] = {}
        """The moments at which each key came to be wanted UP, or no longer, in order."""
        self._looks: list[_Look] = []
        self._last: dict[int, _Look] = {}
        """The look of each pass that is not over, by the `id` of its view, which lives as long."""

    def look(self, wanted: Set[Key], now: float) -> None:
        """Notes the instances that should be UP now."""
        for key in wanted ^ self._wanted:
            self._turns.setdefault(key, []).append((now, key in wanted))
        self._wanted = frozenset(wanted)

    def saw(self, view: PassView, told_of: float, now: float) -> None:
        """Notes that a pass got at `now` a list of syncers, Services or slices of the moment
        `told_of`."""
        look = self._last.get(id(view))
        if look is None:
            look = self._last[id(view)] = _Look(
                view=view, first=told_of, last=told_of, began=now, ended=now
            )
            self._looks.append(look)
        look.first, look.last = min(look.first, told_of), max(look.last, told_of)
        look.ended = now

    def judge(
        self,
        view: PassView,
        taken: Iterable[Key],
        states: Sequence[State],
        lost_up: Mapping[Key, float],
    ) -> None:
        """Judges the call of a pass that left an app without UP instances. `taken` is what the pass
        removed of it, without what a person released."""
        for key in sorted(taken):
            others = (
                one
                for one, when in lost_up.items()
                if one.app == key.app and when > view.begun - _NEWS
            )
            if any(one not in view.taken for one in others):
                return  # what this pass took was not the last one, for all that it could know
            if (
                self._evidence.of(view, key)
                or self.lives_on(key, states)
                or self._dead.is_anothers(view, key)
            ):
                continue
            self._reached["a last UP instance that went without evidence"] += 1
            looks = self._before(view, view.taken[key])
            if not self.saw_dead(view, key) and not any(self._saw(look, key) for look in looks):
                what = (
                    f"{key}, the last of its app, was taken out, or DOWN, and nobody had seen "
                    "before that it was"
                )
                raise Violation("confirmed", f"{what} not to be UP")

    def saw_dead(self, view: PassView, key: Key) -> bool:
        """Whether an early enough look may have shown that the pod of a removed instance is gone.
        Pods are listed after the uncached reads, which may take long (story 1410861)."""
        uid = view.taken_pods[key]
        ended = self._dead.ended(uid)
        looks = self._before(view, view.taken[key])
        return any(ended <= max(look.last, self._dead.listed(look.view, uid)) for look in looks)

    def _before(self, view: PassView, ref: Ref) -> list[_Look]:
        """The looks that came early enough before this one, of processes that could report them. A
        list does not say how old it is. So the times at which the lists came count, and not the
        moments that they show (story 20002)."""
        own = self._last.get(id(view))
        latest = (own.ended if own else view.begun) - _APART
        told = ref in self._truth.syncers
        return [
            one
            for one in self._looks
            if one.view is not view
            and (told or one.view.process is view.process)
            and one.began <= latest
        ]

    def _saw(self, look: _Look, key: Key) -> bool:
        """Whether the key should not be UP at some moment of that look."""
        turns = self._turns.get(key, [])
        before = [wanted for when, wanted in turns if when <= look.first]
        return not (before and before[-1]) or any(
            not wanted for when, wanted in turns if look.first < when <= look.last
        )

    def lives_on(self, key: Key, states: Sequence[State]) -> bool:
        """Whether an instance at its address and port is UP under another name."""
        socket = key.id.split(":")[3:]
        ours = self._truth.owner
        return any(
            other != key
            and is_up(listed)
            and other.id.split(":")[0] == ours
            and other.id.split(":")[3:] == socket
            for state in states
            for other, listed in state.items()
        )
