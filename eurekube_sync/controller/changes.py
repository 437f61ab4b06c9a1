"""Which problems begin and which end, from pass to pass, so that each is told once. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from eurekube_sync.apply.status import GOOD_PASSES
from eurekube_sync.controller.diagnosis import (
    OWNER_NAME,
    WRITES_TO_EUREKA,
    WRITES_TO_KUBERNETES,
    unread_of,
)
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.problems import Problem
from eurekube_sync.model.sources import Server, Unknown
from eurekube_sync.model.text import duration

_AGAIN = {
    Server.EUREKA.value: "Eureka can be read again",
    WRITES_TO_EUREKA: "writes to Eureka work again",
    "Kubernetes API": "the Kubernetes API can be read again",
    WRITES_TO_KUBERNETES: "writes to Kubernetes work again",
    OWNER_NAME: "no owner clash any more",
}
"""By what failed as a whole: that it works again."""


class Ended(NamedTuple):
    """A problem that is over, and how long it lasted, in seconds."""

    problem: Problem
    lasted: float

    @property
    def sentence(self) -> str:
        """Return what is over, and how long it lasted."""
        seconds = max(0, round(self.lasted))
        lasted = duration(seconds)
        source = self.problem.source
        if not source:
            return f"over after {lasted}: {self.problem.name}"
        # The source may no longer be needed, so that nothing says that it works again.
        again = _AGAIN.get(source, f"{source}: the reported trouble is over")
        return f"{again}, after {lasted}"


class News(Struct, frozen=True, kw_only=True):
    """What a pass has to tell of problems."""

    began: tuple[Problem, ...]
    ended: tuple[Ended, ...]


class _Told(Struct):
    """A problem that was told."""

    problem: Problem
    since: float  # Unix seconds
    editions: set[str]  # that were told, each once
    good: int = 0  # passes in a row without it
    over: float = 0.0  # when the first of these began


_Key: TypeAlias = tuple[str, str, int]  # reason, subject, and the number among several alike


class Standing:
    """The problems that were told and are not over. One that comes back within its next good passes
    was never over. Its words may vary from pass to pass; only another edition is told again, each
    once.

    A source that fails as a whole is one problem, and its causes are the editions.

    | the pass shows the problem | it was told | it is told          |
    |----------------------------|-------------|---------------------|
    | yes                        | no          | it began            |
    | yes                        | yes         | only a new edition  |
    | no, and would have         | yes         | after some passes   |
    | no, and read too little    | yes         | not: nobody knows   |
    """

    def __init__(self) -> None:
        self._told: dict[_Key, _Told] = {}

    def note(self, report: PassReport, problems: Iterable[Problem]) -> News:
        """Return what began and what ended with this pass, which has these problems."""
        began: list[Problem] = []
        present: Counter[tuple[str, str]] = Counter()
        keys: set[_Key] = set()
        for problem in problems:
            key: _Key
            if problem.source:
                key = ("", problem.source, 0)
                edition: str = problem.reason
            else:
                # A syncer may have several warnings.
                present[problem.reason, problem.subject] += 1
                number = present[problem.reason, problem.subject]
                key = (problem.reason, problem.subject, number)
                edition = problem.edition
            keys.add(key)
            told = self._told.setdefault(key, _Told(problem, report.at, set()))
            told.good = 0
            if edition not in told.editions:
                told.editions.add(edition)
                told.problem = problem
                began.append(problem)

        ended: list[Ended] = []
        everything = _read_everything(report)
        for key in self._told.keys() - keys:
            source = self._told[key].problem.source
            would_show = everything
            if source:
                would_show = _used(report, source)
            if would_show:
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


def _used(report: PassReport, source: str) -> bool:
    """Say whether the pass used this source, so that a failure would have shown."""
    if source == WRITES_TO_EUREKA:
        return report.outcomes.succeeded > 0
    return source in _AGAIN or report.desired is not None


def _read_everything(report: PassReport) -> bool:
    """Say whether a problem that the pass does not show is gone. `keepalive` reads no cluster."""
    if isinstance(report.registry, Unknown):
        return False
    if report.imports is not None and (report.imports.registry or report.imports.doubt):
        return False
    if report.view is None:
        return True
    return report.desired is not None and not any(failed.needed for failed in unread_of(report))
