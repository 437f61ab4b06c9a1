"""How far a command that waits has come: one line on stderr, at a terminal only, which is gone when it ends."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

_PATIENCE = 1.0  # seconds after which a person asks what it is waiting for


def _line(*columns: ProgressColumn) -> Progress:
    console = Console(stderr=True)
    watched = console.is_terminal and sys.stderr.isatty()
    return Progress(*columns, console=console, transient=True, disable=not watched)


@contextmanager
def waiting(what: object, *, after: float = _PATIENCE) -> Iterator[None]:
    """Shows `what`, whose text may change all the time, and for how long it lasts, once it has lasted `after`
    seconds."""
    line = _line(SpinnerColumn("line"), TextColumn("{task.fields[what]}", markup=False), TimeElapsedColumn())
    line.add_task("", what=what)
    timer = threading.Timer(after, line.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        line.stop()


@contextmanager
def progress_line() -> Iterator[Callable[[str, float, float], None]]:
    """To be told what is being done now, how much of it is done, and of how much; from the first word on it is shown,
    for a question may stand on the screen before."""
    line = _line(
        TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.completed:.0f}/{task.total:.0f}")
    )
    task = line.add_task("", total=1)

    def tell(what: str, done: float, of: float) -> None:
        line.start()
        line.update(task, description=what, completed=done, total=of)

    try:
        yield tell
    finally:
        line.stop()
