"""What a process does beside its passes: signals, the lock, metrics, what it waits for, and looks for cycles."""

from __future__ import annotations

import gc
import logging
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from math import inf
from types import FrameType
from typing import Any, TypeAlias, TypeVar, cast

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.threads import repeating
from eurekube_sync.cli.monitoring.metrics import Monitor, scope_text
from eurekube_sync.cli.options.passes import Monitoring, Passes
from eurekube_sync.cli.output.words import summary
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.lock import EVERY, PATIENCE, Held, HeldBy, Lock, wait_for
from eurekube_sync.controller.loop import Between
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.errors import LockLost
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.ports import Clock

_SLACK = 60.0  # seconds more than a pass and its interval may take before the loop counts as stopped
_YOUNG, _MIDDLE, _ALL = 50_000, 20, 1_000
"""Objects until the youngest are looked at, and how often that is until the older, and all, are: never in a pass."""
_PASSES = 100  # from one look at all that there is to the next
_PATIENCE = 1.0  # seconds after which a person asks what it is waiting for
_log = logging.getLogger(__name__)
P = TypeVar("P")
Passed: TypeAlias = Callable[[PassReport, ExitCode, float], None]  # told of each pass, with its seconds


@contextmanager
def stopped_by_signals(clock: SystemClock) -> Iterator[None]:
    """SIGTERM and the first Ctrl-C end the work between two calls; a second Ctrl-C ends the process at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        clock.stop()  # first: what it interrupted may be writing a log line itself
        _log.info("stopping: %s", signal.Signals(number).name)

    with ended_by_signals(stop):
        yield


@contextmanager
def ended_by_signals(handler: Callable[[int, FrameType | None], None] = signal.default_int_handler) -> Iterator[None]:
    """While a person is asked: SIGTERM and Ctrl-C end the process at once, for nothing has begun."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def look_rarely_for_cycles() -> None:
    """To be called once, when all is imported. Python's own rule walks all objects of a pass again and again while they
    grow, and hardly a cycle is among them: of 60,000 instances it took a third of the processor time of a pass."""
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _ALL)


def looking_for_cycles(between: Between | None) -> Between:
    """Looks after each pass, when hardly anything is left of it, and then does what is to be done between passes. What
    a pass keeps for the next is looked at once: to walk all of it took an eighth of the processor time of a pass."""
    passes = 0

    def look(registered: tuple[InstanceKey, ...], until: float) -> int:
        nonlocal passes
        passes += 1
        gc.collect(1 if passes % _PASSES else 2)
        return between(registered, until) if between is not None else 0

    return look


@contextmanager
def watched(
    asked: Monitoring, clock: Clock, owner: str, scope: Scope, passes: Passes
) -> Iterator[tuple[Monitor, Passed]]:
    """Serves, writes and pushes the metrics, as far as somebody asked for it: what serves is imported only then, and
    passes are measured only then. Raises ConfigurationError when the address cannot be opened."""
    monitor = Monitor(clock, owner, scope_text(scope), allowed=passes.pass_timeout + passes.interval + _SLACK)
    if not (asked.listen or asked.metrics_file or asked.push_metrics):
        yield monitor, lambda _report, _code, _seconds: monitor.turned()
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

    def passed(report: PassReport, code: ExitCode, seconds: float) -> None:
        monitor.passed(report, code, summary(report), seconds)
        for export in exports:
            export()

    with ExitStack() as opened:
        if asked.listen:
            opened.enter_context(exposition.serving(monitor, *asked.listen))
        yield monitor, passed


def under_lock(
    lock: Lock, clock: SystemClock, monitor: Monitor, work: Callable[[], ExitCode], *, daemon: bool
) -> ExitCode:
    """Works while this copy has the lock: waits for it, renews it beside the work, and gives it up at the end.

    A daemon that lost the lock begins anew, and remembers nothing: what it saw last may be long gone. Of another run
    LockLost is raised, unless it never had the lock. While the loop does not turn, the lock is not renewed: another
    copy takes over.
    """
    monitor.has_lock(str(lock.name), lambda: lock.held)

    def knows() -> None:
        """What the lock says of earlier processes."""
        if lock.last_good:
            monitor.was_good(lock.last_good.at)

    def waits() -> None:
        monitor.waits()
        knows()

    def renew() -> None:
        if monitor.live:
            lock.attempt()

    while True:
        standing = wait_for(lock, clock, patience=inf if daemon else PATIENCE, waits=waits)
        knows()
        monitor.turned()
        if standing is None:
            return ExitCode.OK if daemon else ExitCode.INCOMPLETE
        if isinstance(standing, HeldBy):
            _log.info("nothing was done: %s holds the lock %s and is at work", standing.holder, lock.name)
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
    """One line on stderr, at a terminal only, which is gone at the end. It shows what it was told last, whose text may
    change all the time, and for how long; nothing before, for a question may stand on the screen."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = SpinnerColumn("line"), TextColumn("{task.fields[what]}", markup=False), TimeElapsedColumn()
    unwatched = not (console.is_terminal and sys.stderr.isatty())
    line = Progress(*columns, console=console, transient=True, disable=unwatched)
    task = line.add_task("", what="")

    def tell(what: object) -> None:
        line.update(task, what=what)
        line.start()

    try:
        yield tell
    finally:
        line.stop()


@contextmanager
def waiting(what: object, *, after: float = _PATIENCE) -> Iterator[None]:
    """Shows `what` once it has lasted `after` seconds."""
    with progress_line() as tell:
        timer = threading.Timer(after, tell, [what])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


class Waits:
    """Which answer the program waits for. It stands between the pass and the adapters, and changes no call."""

    def __init__(self) -> None:
        self._open: list[str] = []  # several threads append to it and remove from it, which Python does in one step

    def __str__(self) -> str:
        found = Counter(self._open.copy()).most_common(1)
        words, calls = found[0] if found else ("an answer", 1)
        return f"waiting for {words}{f' ({calls} calls)' if calls > 1 else ''}"

    def seen(self) -> AbstractContextManager[None]:
        """Shows them while it is entered, at a terminal."""
        return waiting(self) if sys.stderr.isatty() else nullcontext()

    def of(self, port: P, server: str) -> P:
        """The same port, whose calls are noted while they last, such as `Eureka: list instances`."""
        return cast(P, _Noted(port, server, self._open))


class _Noted:
    def __init__(self, port: object, server: str, waits: list[str]) -> None:
        self._port, self._server, self._waits = port, server, waits

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        words = f"{self._server}: {name.replace('_', ' ')}"

        def noted(*args: Any, **named: Any) -> Any:
            self._waits.append(words)
            try:
                return found(*args, **named)
            finally:
                self._waits.remove(words)

        return noted if callable(found) else found
