"""Owns the callers of apps. Each prints one line for each call: `CALL rating ok ANSWER` or
`CALL rating failed WHY`."""

from __future__ import annotations

import sys
from abc import ABC
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tests.waiting import wait_until

from .cache import tail
from .namespaces import NetworkNamespace
from .process import Server

_CALL = "CALL "
_ENOUGH = 300
"""So many calls reach each of ten servers, but for one time in 10,000,000,000,000."""


@dataclass(frozen=True, slots=True)
class Calls:
    """What became of the calls of an app."""

    answered: int
    failed: tuple[str, ...]
    by: Counter[str]
    """How many were answered by whom."""


class Caller(Server, ABC):
    """A process that calls from its start to its end."""

    def calls(self, app: str, *, since: int = 0) -> Calls:
        """Of one app, but for the first `since` calls."""
        beginning = f"{_CALL}{app} "
        lines = self.log_file.read_text(errors="replace").splitlines()
        outcomes = [line.removeprefix(beginning) for line in lines if line.startswith(beginning)]
        good = [line.removeprefix("ok ") for line in outcomes[since:] if line.startswith("ok ")]
        failed = tuple(line for line in outcomes[since:] if not line.startswith("ok "))
        return Calls(len(good), failed, Counter(good))

    def number(self, app: str) -> int:
        """How many calls of an app were made."""
        calls = self.calls(app)
        return calls.answered + len(calls.failed)

    def _is_ready(self) -> bool:
        return _CALL in self.log_file.read_text(errors="replace")


class PodCaller(Caller):
    """Calls a Service by its name, some hundred times a second; `pod_caller.py`."""

    name: ClassVar[str] = "pod-caller"
    start_seconds: ClassVar[float] = 60.0

    def __init__(self, pod: NetworkNamespace, service: str) -> None:
        """`pod` is the network of a pod."""
        super().__init__()
        self._pod = pod
        self._service = service

    def all(self, *, since: int = 0) -> Calls:
        """Return what became of all calls but the first `since`."""
        return self.calls(self._service, since=since)

    def so_far(self) -> int:
        """Return how many calls were made."""
        return self.number(self._service)

    def next(self, number: int) -> Calls:
        """Wait for so many more calls; return what became of them."""
        begin = self.so_far()

        def too_few() -> str:
            return f"only {self.so_far() - begin} of {number} calls: {tail(self.log_file, 1)}"

        wait_until(lambda: self.so_far() >= begin + number, too_few)
        return self.all(since=begin)

    def wait_for_answers_of(self, servers: Collection[str]) -> None:
        """Wait until the next calls are answered by exactly these servers."""
        answers: Counter[str] = Counter()

        def reached() -> bool:
            answers.clear()
            answers.update(self.next(_ENOUGH).by)
            return set(answers) == set(servers)

        wait_until(reached, lambda: f"{dict(answers)} answered, not {sorted(servers)}")

    def _command(self) -> list[str]:
        program = Path(__file__).with_name("pod_caller.py")
        return self._pod.command(sys.executable, "-I", "-S", program, self._service)
