"""Shows a process to those who watch it: serves, writes and pushes its metrics, as far as somebody asked for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from eurekube_sync.cli.monitoring.measure import scope_text
from eurekube_sync.cli.monitoring.monitor import Monitor
from eurekube_sync.cli.options.monitoring import Monitoring
from eurekube_sync.cli.options.passes import Passes
from eurekube_sync.cli.output.summary import summary
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.lock import Lock
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.values import dataclass

_SLACK = 60.0
"""Seconds more than a pass and its interval may take before the loop counts as stopped."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What the loop tells of itself."""

    monitor: Monitor
    exports: tuple[Callable[[], None], ...] = ()
    """Called after each pass."""
    asked: bool = False
    """Whether anybody watches: otherwise passes are not measured."""

    def passed(self, report: PassReport, code: ExitCode, seconds: float) -> None:
        """A pass ended, after so many seconds."""
        if not self.asked:
            self.monitor.turned()
            return
        self.monitor.passed(report, code, summary(report), seconds)
        for export in self.exports:
            export()

    def waits(self, lock: Lock) -> None:
        """Another copy has the lock."""
        self.monitor.waits()
        self.knows(lock)

    def knows(self, lock: Lock) -> None:
        """What the lock says of earlier processes."""
        if lock.last_good:
            self.monitor.was_good(lock.last_good.at)

    def has(self, lock: Lock) -> None:
        """There is a lock to show."""
        self.monitor.has_lock(lambda: f"Lock {lock.name}: {'held' if lock.held else 'not held'}.", lambda: lock.held)


@contextmanager
def watched(asked: Monitoring, clock: Clock, owner: str, scope: Scope, passes: Passes) -> Iterator[Watched]:
    """Raises ConfigurationError when the address cannot be opened. What serves is imported only where it is asked
    for."""
    monitor = Monitor(clock, owner, scope_text(scope), allowed=passes.timeout + passes.interval + _SLACK)
    if not asked.wanted:
        yield Watched(monitor)
        return
    from eurekube_sync.cli.monitoring import exposition

    exports: list[Callable[[], None]] = []
    if file := asked.metrics_file:
        if at := exposition.good_in_file(file):
            monitor.was_good(at)
        exports.append(lambda: exposition.write_file(monitor, file))
    if url := asked.push_metrics:
        group = {"owner": owner, "scope": scope_text(scope)}
        exports.append(lambda: exposition.push(monitor, url, group))
    with ExitStack() as opened:
        if asked.listen:
            from eurekube_sync.cli.monitoring.server import serving

            opened.enter_context(serving(monitor, *asked.listen))
        yield Watched(monitor, tuple(exports), asked=True)
