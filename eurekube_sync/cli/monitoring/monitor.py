"""What a process remembers of its passes for those who watch it. May be asked from other threads."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from eurekube_sync import __version__
from eurekube_sync.cli.monitoring.definitions import BUCKETS, BUILD, CALLS, LAST_GOOD, LOCK, Metric
from eurekube_sync.cli.monitoring.measure import Series, measured
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.kubernetes import ConditionStatus, SyncerRef, SyncerStatus
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.sources import Server

KEPT_PASSES = 20
KEPT_SYNCERS = 500
"""The most that a page shows; those that are not ready come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One pass, in short."""

    at: float
    """When it ended, in Unix seconds."""
    seconds: float
    code: ExitCode
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSyncer:
    """One syncer, in short."""

    ref: SyncerRef
    app: str
    ready: str
    """`2/2`."""
    works: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """All that the page shows."""

    owner: str
    scope: str
    lock: str
    now: float
    passes: tuple[Passed, ...]
    """The latest first."""
    syncers: tuple[ShownSyncer, ...]
    left_out: int
    """Syncers that are not shown."""
    series: tuple[tuple[Series, float], ...]


class Monitor:
    """Counts calls and passes, and knows whether the loop still turns."""

    def __init__(self, clock: Clock, owner: str, scope: str, *, allowed: float) -> None:
        """`allowed`: seconds within which the loop has to turn again."""
        self._clock, self._owner, self._scope, self._allowed = clock, owner, scope, allowed
        self._guard = threading.Lock()
        self._shown: dict[Series, float] = {(BUILD, (__version__, owner)): 1.0}
        self._added: Counter[Series] = Counter()
        self._durations: Counter[float] = Counter()
        self._seconds = 0.0
        self._passes: deque[Passed] = deque(maxlen=KEPT_PASSES)
        self._syncers: tuple[ShownSyncer, ...] = ()
        self._left_out = 0
        self._turned = clock.monotonic()
        self._ready = False
        self._lock: Callable[[], str] = lambda: ""
        self._lock_held: Callable[[], bool] | None = None

    # --- Told by the process ----------------------------------------------------------------------------------------

    def has_lock(self, told: Callable[[], str], held: Callable[[], bool]) -> None:
        """There is a lock: how the page shows it, and whether it is held."""
        self._lock, self._lock_held = told, held

    def called(self, server: Server, code: str) -> None:
        """One try of a call ended with this status, or without one."""
        with self._guard:
            self._added[CALLS, (server.value, code)] += 1

    def turned(self) -> None:
        """The loop goes on."""
        self._turned = self._clock.monotonic()

    def waits(self) -> None:
        """Another copy has the lock: this one is ready to replace it, and knows nothing of instances any more."""
        self._ready = True
        with self._guard:
            self._shown = {one: value for one, value in self._shown.items() if one[0] in (BUILD, LAST_GOOD)}
            self._syncers, self._left_out = (), 0
        self.turned()

    def was_good(self, at: float) -> None:
        """When an earlier process made the last good pass, in Unix seconds."""
        with self._guard:
            series = LAST_GOOD, (self._scope,)
            self._shown[series] = max(at, self._shown.get(series, 0.0))

    def passed(self, report: PassReport, code: ExitCode, summary: str, seconds: float) -> None:
        """A pass ended, after so many seconds."""
        self.turned()
        now = self._clock.now()
        found = measured(report, code, now=now)
        with self._guard:
            kept = {one: value for one, value in self._shown.items() if one[0] not in found.renewed}
            self._shown = kept | dict(found.shown)
            self._added.update(found.added)
            self._durations[next((bound for bound in BUCKETS if seconds <= bound), float("inf"))] += 1
            self._seconds += seconds
            self._passes.appendleft(Passed(at=now, seconds=seconds, code=code, summary=summary))
            if report.all_statuses:
                shown = sorted((_shown(ref, status) for ref, status in report.all_statuses.items()), key=_order)
                self._syncers, self._left_out = tuple(shown[:KEPT_SYNCERS]), max(0, len(shown) - KEPT_SYNCERS)
        self._ready = True

    # --- Asked by others --------------------------------------------------------------------------------------------

    @property
    def live(self) -> bool:
        """Whether the loop still turns. A server that is away does not stop it."""
        return self._clock.monotonic() - self._turned <= self._allowed

    @property
    def ready(self) -> bool:
        """Whether a pass ended, or another copy is at work."""
        return self._ready

    def series(self) -> list[tuple[Series, float]]:
        """Gauges and counters as they are now."""
        with self._guard:
            found = [*self._shown.items(), *((one, float(value)) for one, value in self._added.items())]
        if self._lock_held is not None:
            found.append(((LOCK, (self._scope,)), float(self._lock_held())))
        return found

    def durations(self) -> tuple[list[tuple[str, float]], float]:
        """The cumulative buckets of how long passes took, and the sum."""
        with self._guard:
            counts, total = dict(self._durations), self._seconds
        buckets, sum_ = [], 0.0
        for bound in (*BUCKETS, float("inf")):
            sum_ += counts.get(bound, 0)
            buckets.append(("+Inf" if bound == float("inf") else f"{bound:g}", sum_))
        return buckets, total

    def picture(self) -> Picture:
        """For the page."""
        series = tuple(self.series())
        with self._guard:
            return Picture(
                owner=self._owner,
                scope=self._scope,
                lock=self._lock(),
                now=self._clock.now(),
                passes=tuple(self._passes),
                syncers=self._syncers,
                left_out=self._left_out,
                series=series,
            )


def by_metric(series: list[tuple[Series, float]], metric: Metric) -> list[tuple[tuple[str, ...], float]]:
    """The label values of one metric, sorted, and its values."""
    return sorted((labels, value) for (one, labels), value in series if one is metric)


def _shown(ref: SyncerRef, status: SyncerStatus) -> ShownSyncer:
    ready = status.condition("Ready")
    return ShownSyncer(
        ref=ref,
        app=status.app_name or ", ".join(status.apps),
        ready=status.ready,
        works=ready is not None and ready.status is ConditionStatus.TRUE,
        reason=ready.reason if ready else "",
        message=ready.message if ready else "",
    )


def _order(one: ShownSyncer) -> tuple[bool, SyncerRef]:
    return one.works, one.ref
