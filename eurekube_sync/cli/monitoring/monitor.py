"""What a process remembers of its passes for those who watch it. May be asked from other threads."""

from __future__ import annotations

import threading
from collections import Counter, deque
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """All that the page shows."""

    owner: str
    scope: str
    lock: str = ""
    now: float
    passes: tuple[Passed, ...] = ()
    """The latest first."""
    syncers: tuple[tuple[SyncerRef, SyncerStatus], ...] = ()
    """Those that are not ready first."""
    values: Values


class Monitor:
    """Counts calls and passes, and knows whether the loop still turns."""

    def __init__(self, clock: Clock, owner: str, scope: str, *, allowed: float) -> None:
        """`allowed`: seconds within which the loop has to turn again."""
        self._clock, self._owner, self._scope, self._allowed = clock, owner, scope, allowed
        self._guard = threading.Lock()
        self._gauges: Values = {BUILD: {(__version__, owner): 1.0}}
        self._counters: dict[Metric, Counter[tuple[str, ...]]] = {}
        self._passes: deque[Passed] = deque(maxlen=KEPT_PASSES)
        self._syncers: tuple[tuple[SyncerRef, SyncerStatus], ...] = ()
        self._turned = clock.monotonic()
        self._lock: tuple[str, Callable[[], bool]] | None = None
        self.ready = False
        """Whether a pass ended, or another copy is at work."""

    # --- Told by the process ----------------------------------------------------------------------------------------

    def has_lock(self, name: str, held: Callable[[], bool]) -> None:
        """There is a lock of this name."""
        self._lock = (name, held)

    def called(self, server: Server, code: str) -> None:
        """One try of a call ended with this status, or without one."""
        with self._guard:
            self._add({CALLS: {(server.value, code): 1.0}})

    def turned(self) -> None:
        """The loop goes on."""
        self._turned = self._clock.monotonic()

    def waits(self) -> None:
        """Another copy has the lock: this one is ready to replace it, and knows nothing of instances any more."""
        self.ready = True
        with self._guard:
            self._gauges = {one: values for one, values in self._gauges.items() if one in (BUILD, LAST_GOOD)}
            self._syncers = ()
        self.turned()

    def was_good(self, at: float) -> None:
        """When an earlier process made the last good pass, in Unix seconds."""
        with self._guard:
            last = max([at, *self._gauges.get(LAST_GOOD, {}).values()])
            self._gauges = {**self._gauges, LAST_GOOD: {(self._scope,): last}}

    def passed(self, report: PassReport, code: ExitCode, summary: str, seconds: float) -> None:
        """A pass ended, after so many seconds."""
        self.turned()
        now = self._clock.now()
        gauges, added = measured(report, code, now=now)
        with self._guard:
            self._gauges = {**self._gauges, **gauges}
            self._add({**added, **took(seconds)})
            self._passes.appendleft(Passed(at=now, seconds=seconds, code=code, summary=summary))
            if report.all_statuses or code in GOOD:
                self._syncers = tuple(sorted(report.all_statuses.items(), key=lambda one: (is_ready(one[1]), one[0])))
        self.ready = True

    def _add(self, values: Values) -> None:
        for metric, added in values.items():
            self._counters.setdefault(metric, Counter()).update(added)

    # --- Asked by others --------------------------------------------------------------------------------------------

    @property
    def live(self) -> bool:
        """Whether the loop still turns. A server that is away does not stop it."""
        return self._clock.monotonic() - self._turned <= self._allowed

    def values(self) -> Values:
        """Gauges and counters as they are now."""
        with self._guard:
            found = {**self._gauges, **{metric: dict(counts) for metric, counts in self._counters.items()}}
        return {**found, LOCK: {(self._scope,): float(self._lock[1]())}} if self._lock else found

    def picture(self) -> Picture:
        """For the page."""
        values, lock = self.values(), ""
        if self._lock:
            lock = f"Lock {self._lock[0]}: {'held' if self._lock[1]() else 'not held'}."
        with self._guard:
            passes, syncers = tuple(self._passes), self._syncers
        return Picture(
            owner=self._owner,
            scope=self._scope,
            lock=lock,
            now=self._clock.now(),
            passes=passes,
            syncers=syncers,
            values=values,
        )


def is_ready(status: SyncerStatus) -> bool:
    ready = status.condition("Ready")
    return ready is not None and ready.status is ConditionStatus.TRUE
