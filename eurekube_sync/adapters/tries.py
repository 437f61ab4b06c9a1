"""One call over HTTP, tried again while it fails in a way that may pass by itself: the same for both servers.

Owns how often and how far apart, the server's `Retry-After`, the time of a call, and the size of an answer. Knows no
host, path or status: an adapter makes each try, and says what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from io import BytesIO
from math import inf
from pathlib import Path
from typing import TypeAlias, TypeVar

from eurekube_sync.adapters.answer_time import AnswerTime
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import EurekubeError
from eurekube_sync.model.ports import Clock, Random
from eurekube_sync.model.values import dataclass

A = TypeVar("A")
Came: TypeAlias = tuple[A | EurekubeError, str | None]
"""Of one try: an answer, or the error to raise if it was the last; and `Retry-After`, or None where it is useless."""
NO_ANSWER = "none"
CHUNK = 256 * 1024
"""Bytes to read at once."""
_LARGEST = 256 * 1024 * 1024
_SMALLEST = 4 * 1024 * 1024
_MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Of the container: cgroup v2 and v1. A word means none."""
_WITHOUT_ANSWER = 64 * 1024 * 1024
_TIMES = 5
"""As much memory as an answer has bytes: measured are 3.5 for 350,000 small instances, 4.2 for 390,000 Services."""
_FIRST_WAIT = 0.25
"""Seconds. A wait is random between nothing and its bound ("full jitter"), which doubles from try to try."""
_LONGEST_RETRY_AFTER = 10.0
"""Seconds. A server that asks for more is left to the next pass."""


def largest_answer(limits: Iterable[Path] = _MEMORY_LIMITS) -> int:
    """Bytes of one answer, unzipped: 256 MB, or less where the container would be killed over it. Then each pass would
    be, and no lease renewed; after an answer that is refused, the leases are."""
    for path in limits:
        with suppress(OSError, ValueError):
            room = (int(path.read_text(encoding="ascii")) - _WITHOUT_ANSWER) // _TIMES
            return min(_LARGEST, max(_SMALLEST, room))
    return _LARGEST


LARGEST = largest_answer()


def read_whole(chunks: Iterable[bytes], too_large: Callable[[str], EurekubeError]) -> bytes:
    """The bytes of one answer; raises what `too_large` makes of a clause."""
    received = BytesIO()  # gives its bytes away without a copy
    for chunk in chunks:
        received.write(chunk)
        if received.tell() > LARGEST:
            why = "" if LARGEST == _LARGEST else ", which a larger memory limit of the container raises"
            raise too_large(f"was answered with more than {LARGEST // 2**20} MB, the limit for one answer{why}")
    return received.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """Makes the tries of each call. May be used from several threads."""

    clock: Clock
    random: Random
    limit: TimeLimit
    """Bounds every try by what is left of it."""
    answer_seconds: float
    """Bounds each answer as a whole."""
    most: int = 4
    """How often one call is tried."""
    count: Callable[[str], None] = lambda _: None
    """Given the status of each try, or NO_ANSWER, by the adapter that makes it."""

    def call(self, once: Callable[[AnswerTime], Came[A]], unanswered: Callable[[str], EurekubeError]) -> A:
        """The last answer; raises the last error, or what `unanswered` makes of a clause when there was no time."""
        came: A | EurekubeError = unanswered("was not tried: no time was left for it")
        for number in range(self.most):
            if self.limit.left() <= 0 or (number and self.clock.stopping()):
                break
            within = AnswerTime(self.clock, self.answer_seconds, self.limit)
            came, again = once(within)
            if within.over and isinstance(came, EurekubeError):
                own = f"completely in {self.answer_seconds:g} s: the server or the network is too slow"
                late = own if within.within_limit else "in the time that was left"
                raise unanswered(f"was not answered {late}") from came
            if again is None or number + 1 == self.most or self.clock.stopping():
                break
            wait = self._wait(number, again)
            if wait >= self.limit.left():
                break
            self.clock.sleep(wait)
        if isinstance(came, EurekubeError):
            raise came
        return came

    def _wait(self, number: int, retry_after: str) -> float:
        asked = self._asked(retry_after)
        return inf if asked > _LONGEST_RETRY_AFTER else max(asked, self.random.random() * _FIRST_WAIT * 2.0**number)

    def _asked(self, retry_after: str) -> float:
        """`Retry-After` in seconds (RFC 9110 10.2.3: a number or a date); 0 for none or nonsense."""
        text = retry_after.strip()
        if text.isascii() and text.isdigit():
            return float(text)
        try:
            when = parsedate_to_datetime(text)
            now = datetime.fromtimestamp(self.clock.now(), UTC)
            return (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds()
        except (TypeError, ValueError, OverflowError):
            return 0.0
