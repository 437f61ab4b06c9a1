"""The process around the passes: signals, the lock, metrics, the progress line and Python's garbage
collector."""

from __future__ import annotations

import gc
import logging
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from math import inf
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias, TypeVar, cast

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.threads import repeating
from eurekube_sync.cli.monitoring.metrics import Monitor, scope_text
from eurekube_sync.cli.options.passes import Monitoring, Passes
from eurekube_sync.cli.output.report import summary
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.lock import EVERY, PATIENCE, Held, HeldBy, Lock, wait_for
from eurekube_sync.controller.loop import Between
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.errors import LockLost
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.ports import Clock

_SLACK = 60.0  # seconds, beyond a pass and its interval, after which the loop counts as stopped
_GC_THRESHOLDS = (50_000, 20, 1_000)  # so high that no full collection begins during a pass
_PASSES = 100  # between two full collections
_PATIENCE = 1.0  # seconds before the progress line is shown
_log = logging.getLogger(__name__)
P = TypeVar("P")
Passed: TypeAlias = Callable[[PassReport, ExitCode, float], None]
"""Is called after each pass with its seconds."""


@contextmanager
def stopped_by_signals(clock: SystemClock) -> Iterator[None]:
    """End the work between two calls on SIGTERM or Ctrl-C, and the process at once on a second
    Ctrl-C."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # Before the log line: the signal may have interrupted the writing of another one
        clock.stop()
        _log.info("stopping: %s", signal.Signals(number).name)

    with ended_by_signals(stop):
        yield


@contextmanager
def ended_by_signals(
    handler: Callable[[int, FrameType | None], None] = signal.default_int_handler,
) -> Iterator[None]:
    """Install a handler for SIGTERM and Ctrl-C. The default one ends the process at once."""
    before_term = signal.signal(signal.SIGTERM, handler)
    before_int = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before_term)
        signal.signal(signal.SIGINT, before_int)


def asked_by_signal() -> Callable[[], bool]:
    """Take SIGUSR1 from now on, and return whether one came since the last call. Its default would
    end the process."""
    came = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True

    def asked() -> bool:
        nonlocal came
        before, came = came, False
        return before

    signal.signal(signal.SIGUSR1, note)
    return asked


def avoid_garbage_collection() -> None:
    """Keep the garbage collector from running during a pass. To be called once, after all imports.

    With Python's default thresholds, it took a third of the CPU time of a pass over 60,000
    instances, and there is hardly a cycle among these objects.
    """
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def collecting_garbage(between: Between | None) -> Between:
    """Collect garbage after each pass, then call `between`.

    Only every 100th collection is full, because a full one took an eighth of the CPU time of a
    pass.
    """
    passes = 0

    def collect(registered: tuple[InstanceKey, ...], until: float) -> int:
        nonlocal passes
        passes += 1
        generation = 1
        if passes % _PASSES == 0:
            generation = 2
        gc.collect(generation)
        if between is None:
            return 0
        return between(registered, until)

    return collect


@contextmanager
def watched(
    asked: Monitoring, clock: Clock, owner: str, scope: Scope, passes: Passes
) -> Iterator[tuple[Monitor, Passed]]:
    """Serve, write and push the metrics as the options say. Without such an option, no pass is
    measured.

    Raises ConfigurationError if the address cannot be opened.
    """
    monitor = Monitor(
        clock,
        owner,
        scope_text(scope),
        allowed=passes.pass_timeout + passes.interval + _SLACK,
        keeps_reports=asked.listen is not None,
    )
    if not (asked.listen or asked.metrics_to):
        yield monitor, lambda _report, _code, _seconds: monitor.turned()
        return
    from eurekube_sync.cli.monitoring import exposition

    exports: list[Callable[[], None]] = []
    if isinstance(asked.metrics_to, Path):
        at = exposition.good_in_file(asked.metrics_to)
        if at:
            monitor.was_good(at)
        exports.append(partial(exposition.write_file, monitor, asked.metrics_to))
    elif asked.metrics_to is not None:
        group = {"owner": owner, "scope": scope_text(scope)}
        exports.append(partial(exposition.push, monitor, asked.metrics_to, group))

    def passed(report: PassReport, code: ExitCode, seconds: float) -> None:
        monitor.passed(report, code, summary(report), seconds)
        for export in exports:
            export()

    with _served(monitor, asked, passes):
        yield monitor, passed


def _served(
    monitor: Monitor, asked: Monitoring, passes: Passes
) -> AbstractContextManager[str | None]:
    """Serve the metrics, health and the status page, if the options ask for it."""
    if asked.listen is None:
        return nullcontext()
    from eurekube_sync.cli.monitoring.server import serving

    host, port = asked.listen
    interval = None
    if passes.many:
        interval = passes.interval
    return serving(monitor, host, port, interval=interval)


def under_lock(
    lock: Lock, clock: SystemClock, monitor: Monitor, work: Callable[[], ExitCode], *, daemon: bool
) -> ExitCode:
    """Wait for the lock, renew it while `work` runs, and release it at the end.

    A daemon that lost the lock calls `work` again, which must remember nothing, because another
    replica may have changed Eureka. Without `daemon`, LockLost is raised if this process had the lock
    before.
    """
    monitor.has_lock(str(lock.name), lambda: lock.held)

    def read_last_good() -> None:
        if lock.last_good:
            monitor.was_good(lock.last_good.at)

    def waits() -> None:
        monitor.waits()
        read_last_good()

    def renew() -> None:
        if monitor.live:  # else another replica shall take over
            lock.attempt()

    patience = PATIENCE
    if daemon:
        patience = inf
    while True:
        standing = wait_for(lock, clock, patience=patience, waits=waits)
        read_last_good()
        monitor.turned()
        if standing is None:  # a signal came while it waited
            return ExitCode.OK if daemon else ExitCode.INCOMPLETE
        if isinstance(standing, HeldBy):
            _log.info("skipped: lock %s is held by %s", lock.name, standing.holder)
            return ExitCode.OK
        try:
            with repeating(renew, EVERY):
                return work()
        except LockLost as lost:
            if not daemon and isinstance(standing, Held):
                raise
            _log.warning("%s", lost)
        finally:
            lock.release()


@contextmanager
def progress_line() -> Iterator[Callable[[object], None]]:
    """Show a line on stderr, at a terminal only, and erase it at the end. Give the function that
    sets its text.

    The line appears with the first text. Before, a question to the user may be on the screen.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        SpinnerColumn("line"),
        TextColumn("{task.fields[what]}", markup=False),
        TimeElapsedColumn(),
    )
    watched = console.is_terminal and sys.stderr.isatty()
    line = Progress(*columns, console=console, transient=True, disable=not watched)
    task = line.add_task("", what="")

    def show(what: object) -> None:
        line.update(task, what=what)
        line.start()

    try:
        yield show
    finally:
        if watched:  # before 14.3, rich ends even a line that it never showed
            line.stop()


@contextmanager
def waiting(what: object, *, after: float = _PATIENCE) -> Iterator[None]:
    """Show `what` on the progress line, once the block has run for `after` seconds."""
    with progress_line() as show:
        timer = threading.Timer(after, show, [what])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


class Waits:
    """The calls to both servers that have no answer yet, for the progress line."""

    def __init__(self) -> None:
        self._open: list[str] = []  # shared by threads: `append` and `remove` are atomic

    def __str__(self) -> str:
        calls = Counter(self._open.copy())
        if not calls:
            return "waiting for an answer"
        [(words, number)] = calls.most_common(1)
        if number > 1:
            return f"waiting for {words} ({number} calls)"
        return f"waiting for {words}"

    def seen(self) -> AbstractContextManager[None]:
        """Show the calls on the progress line, at a terminal."""
        return waiting(self) if sys.stderr.isatty() else nullcontext()

    def of(self, port: P, server: str) -> P:
        """Wrap a port, so that its calls are recorded while they run, such as `Eureka: list
        instances`."""
        return cast(P, _Noted(port, server, self._open))


class _Noted:
    def __init__(self, port: object, server: str, waits: list[str]) -> None:
        self._port = port
        self._server = server
        self._waits = waits

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._port, name)
        if not callable(member):
            return member
        call = name.replace("_", " ")
        words = f"{self._server}: {call}"

        def noted(*args: Any, **named: Any) -> Any:
            self._waits.append(words)
            try:
                return member(*args, **named)
            finally:
                self._waits.remove(words)

        return noted
