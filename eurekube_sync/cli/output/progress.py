"""How far a command that waits has come: one line on stderr, at a terminal only, which is gone when it ends."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

_PATIENCE = 1.0
"""Seconds after which a person asks what it is waiting for."""


@contextmanager
def waiting(what: object, *, after: float = _PATIENCE) -> Iterator[None]:
    """Shows `what`, whose text may change all the time, and for how long it lasts, once it has lasted `after`
    seconds."""
    console = Console(stderr=True)
    columns = (SpinnerColumn("line"), _Now(what), TimeElapsedColumn())
    line = Progress(*columns, console=console, transient=True, disable=not _watched(console))
    line.add_task("")
    timer = threading.Timer(after, line.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        line.stop()


class _Now(ProgressColumn):
    def __init__(self, what: object) -> None:
        super().__init__()
        self._what = what

    def render(self, task: Task) -> Text:
        return Text(str(self._what))


def _watched(console: Console) -> bool:
    return console.is_terminal and sys.stderr.isatty()


class ProgressLine(AbstractContextManager["ProgressLine"]):
    """A context manager; `tell` may be called any number of times."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            console=console,
            transient=True,
            disable=not _watched(console),
        )
        self._tasks: dict[str, TaskID] = {}

    def tell(self, what: str, done: float, of: float) -> None:
        """What is being done now, and how much of it is."""
        self._progress.start()  # at the first word: a question may have stood on the screen before
        if what not in self._tasks:
            for task in self._tasks.values():
                self._progress.remove_task(task)
            self._tasks = {what: self._progress.add_task(what, total=of)}
        self._progress.update(self._tasks[what], completed=done, total=of)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
