"""The promise that nothing is written to Kubernetes while nothing changes.

churn       while nothing changes in the world and in Eureka, and no trouble strikes a call,
            nothing is written to Kubernetes twice: time alone may change a status once
"""

from __future__ import annotations

from collections import Counter

from .view import PassView, Violation

_SETTLED = 60.0
"""Seconds after which all writes have arrived: as old as Eureka's lists may be, and more than the
20 s to a second look."""
_GOOD_PASSES = 3
"""Passes after which a status no longer tells of an outage: the third may write that."""


class Steady:
    """Counts the writes to Kubernetes since the last change."""

    def __init__(self, reached: Counter[str]) -> None:
        self._reached = reached
        self._since = 0.0
        self._good = 0
        self._written: Counter[str] = Counter()

    def changed(self, now: float) -> None:
        """Notes a change: from now on, other writes may follow."""
        self._since = now
        self._good = 0
        self._written.clear()

    def wrote(self, view: PassView, what: str, now: float) -> None:
        """Judges a write to Kubernetes."""
        if view.troubled or view.troubled_cluster or not self._is_steady(now):
            return
        self._written[what] += 1
        self._reached["a write to Kubernetes in a steady state"] += 1
        if self._written[what] > 1:
            raise Violation(
                "churn", f"{what} a second time, and nothing has changed since {self._since:.1f} s"
            )

    def pass_ended(self, view: PassView, now: float) -> None:
        """Judges the end of a pass."""
        if view.troubled or view.troubled_cluster:
            self.changed(now)
        elif view.begun >= self._since:
            self._good += 1
            self._reached["a pass in a steady state"] += self._is_steady(now)

    def _is_steady(self, now: float) -> bool:
        return self._good >= _GOOD_PASSES and now - self._since >= _SETTLED
