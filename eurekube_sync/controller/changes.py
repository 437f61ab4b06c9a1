"""Which problems begin and which end, from pass to pass, so that each is told once. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from eurekube_sync.apply.status import GOOD_PASSES
from eurekube_sync.controller.diagnosis import unread_of
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.problems import Problem
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Unknown


class Ended(NamedTuple):
    """A problem that is over, and how long it lasted, in seconds."""

    problem: Problem
    lasted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What a pass has to tell of problems."""

    began: tuple[Problem, ...]
    ended: tuple[Ended, ...]


@dataclass(slots=True)
class _Told:
    """A problem that was told."""

    problem: Problem
    since: float  # Unix seconds
    good: int = 0  # passes in a row without it
    over: float = 0.0  # when the first of these began


_Key: TypeAlias = tuple[Reason, str, int]  # reason, subject, and the number among several alike


class Standing:
    """The problems that were told and are not over. One that comes back within its next good passes
    was never over. Its words may vary from pass to pass; only another edition is told again.

    | the pass shows the problem | it was told | it is told          |
    |----------------------------|-------------|---------------------|
    | yes                        | no          | it began            |
    | yes                        | yes         | only a new edition  |
    | no, and read everything    | yes         | after some passes   |
    | no, and read not all       | yes         | not: nobody knows   |
    """

    def __init__(self) -> None:
        self._told: dict[_Key, _Told] = {}

    def note(self, report: PassReport, problems: Iterable[Problem]) -> News:
        """Return what began and what ended with this pass, which has these problems."""
        began: list[Problem] = []
        present: Counter[tuple[Reason, str]] = Counter()
        keys: set[_Key] = set()
        for problem in problems:
            # A syncer may have several warnings.
            present[problem.reason, problem.subject] += 1
            key = (problem.reason, problem.subject, present[problem.reason, problem.subject])
            keys.add(key)
            told = self._told.get(key)
            if told is None:
                self._told[key] = _Told(problem, report.at)
                began.append(problem)
                continue
            told.good = 0
            if told.problem.edition != problem.edition:
                told.problem = problem
                began.append(problem)
        ended: list[Ended] = []
        if _read_everything(report):
            for key in self._told.keys() - keys:
                ended += self._good_pass(key, report.at)
        ended.sort(key=lambda end: (end.problem.reason, end.problem.subject))
        return News(began=tuple(began), ended=tuple(ended))

    def _good_pass(self, key: _Key, at: float) -> list[Ended]:
        """Count a pass without the problem. After some, it is over."""
        told = self._told[key]
        told.good += 1
        if told.good == 1:
            told.over = at
        if told.good < GOOD_PASSES:
            return []
        del self._told[key]
        return [Ended(told.problem, told.over - told.since)]


def _read_everything(report: PassReport) -> bool:
    """Say whether a problem that the pass does not show is gone. `keepalive` reads no cluster."""
    if isinstance(report.registry, Unknown):
        return False
    if report.imports is not None and (report.imports.registry or report.imports.doubt):
        return False
    if report.view is None:
        return True
    return report.desired is not None and not any(failed.needed for failed in unread_of(report))
