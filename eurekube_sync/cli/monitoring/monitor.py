"""What a process remembers of its passes for those who watch it. May be asked from other threads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from eurekube_sync import __version__
from eurekube_sync.cli.monitoring.metrics import BUILD, CALLS, GOOD, LAST_GOOD, LOCK, Metric, Values, measured, took
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.kubernetes import ConditionStatus, SyncerRef, SyncerStatus
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.sources import Server
from eurekube_sync.model.values import dataclass

KEPT_PASSES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One pass, in short."""

    at: float
    """When it ended, in Unix seconds."""
    seconds: float
    code: ExitCode
    summary: str


class Monitor:
    """Counts calls and passes, and knows whether the loop still turns."""

    def __init__(self, clock: Clock, owner: str, scope: str, *, allowed: float) -> None:
        """`allowed`: seconds within which the loop has to turn again."""
        self.clock, self.owner, self.scope, self._allowed = clock, owner, scope, allowed
        self.passes: tuple[Passed, ...] = ()
        """The latest first."""
        self.syncers: tuple[tuple[SyncerRef, SyncerStatus], ...] = ()
        """Those that are not ready first."""
        self.ready = False
        """Whether a pass ended, or another copy is at work."""
        self._guard = threading.Lock()
        self._gauges: Values = {BUILD: {(__version__, owner): 1.0}}
        self._counters: dict[Metric, Counter[tuple[str, ...]]] = {}
        self._turned = clock.monotonic()
        self._lock: tuple[str, Callable[[], bool]] | None = None

    def has_lock(self, name: str, held: Callable[[], bool]) -> None:
        """There is a lock of this name."""
        self._lock = (name, held)

    def called(self, server: Server, code: str) -> None:
        """One try of a call ended with this status, or without one."""
        with self._guard:
            self._add({CALLS: {(server.value, code): 1.0}})

    def turned(self) -> None:
        """The loop goes on."""
        self._turned = self.clock.monotonic()

    def waits(self) -> None:
        """Another copy has the lock: this one is ready to replace it, and knows nothing of instances any more."""
        self.ready = True
        with self._guard:
            self._gauges = {one: values for one, values in self._gauges.items() if one in (BUILD, LAST_GOOD)}
            self.syncers = ()
        self.turned()

    def was_good(self, at: float) -> None:
        """When an earlier process made the last good pass, in Unix seconds."""
        with self._guard:
            last = max([at, *self._gauges.get(LAST_GOOD, {}).values()])
            self._gauges = {**self._gauges, LAST_GOOD: {(self.scope,): last}}

    def passed(self, report: PassReport, code: ExitCode, summary: str, seconds: float) -> None:
        """A pass ended, after so many seconds."""
        self.turned()
        now = self.clock.now()
        gauges, added = measured(report, code, now=now)
        with self._guard:
            self._gauges = {**self._gauges, **gauges}
            self._add({**added, **took(seconds)})
            passed = Passed(at=now, seconds=seconds, code=code, summary=summary)
            self.passes = (passed, *self.passes[: KEPT_PASSES - 1])
            if report.all_statuses or code in GOOD:
                self.syncers = tuple(sorted(report.all_statuses.items(), key=lambda one: (is_ready(one[1]), one[0])))
        self.ready = True

    def _add(self, values: Values) -> None:
        for metric, added in values.items():
            self._counters.setdefault(metric, Counter()).update(added)

    @property
    def live(self) -> bool:
        """Whether the loop still turns. A server that is away does not stop it."""
        return self.clock.monotonic() - self._turned <= self._allowed

    @property
    def lock(self) -> str:
        """For the page; empty without one."""
        return f"Lock {self._lock[0]}: {'held' if self._lock[1]() else 'not held'}." if self._lock else ""

    def values(self) -> Values:
        """Gauges and counters as they are now."""
        with self._guard:
            found = {**self._gauges, **{metric: dict(counts) for metric, counts in self._counters.items()}}
        return {**found, LOCK: {(self.scope,): float(self._lock[1]())}} if self._lock else found


def is_ready(status: SyncerStatus) -> bool:
    ready = status.condition("Ready")
    return ready is not None and ready.status is ConditionStatus.TRUE
