"""Tries of one HTTP call while it fails in a way that may pass by itself, and limits for the time
and the size of a whole answer. The timeouts of a socket bound only silences."""

from __future__ import annotations

import http.client
import io
import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from math import inf
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from eurekube_sync.adapters.clock import unix_time
from eurekube_sync.adapters.threads import in_side_thread
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import EurekubeError
from eurekube_sync.model.ports import Clock, Random

T = TypeVar("T")
TryResult: TypeAlias = tuple[T | EurekubeError, str | None]
"""Result of one try: an answer or an error; and the header `Retry-After`, or None if another try is
useless."""
NO_ANSWER = "none"
# Seconds; waits are random below this bound ("full jitter"), which doubles from try to try
_FIRST_WAIT = 0.25
_LONGEST_RETRY_AFTER = 10.0  # seconds; if a server asks for more, the next pass calls it again
_LOOK_SECONDS = 0.5  # how often a waiting reader checks whether the program has to stop
# How long an answer may then still take: most arrive, and tell the result of a write
_STOP_SECONDS = 1.0
# Timeouts for a connection: a resolver waits 5 s for a server, and each address has one timeout
_CONNECT_TIMES = 2
_SHORTEST_WAIT = 0.001  # to sockets and urllib3, a timeout of zero means something else
CHUNK = 256 * 1024  # bytes to read at once
_LARGEST = 256 * 1024 * 1024
_SMALLEST = 4 * 1024 * 1024
_MEMORY_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),  # v2
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),  # v1
)
_WITHOUT_ANSWER = 64 * 1024 * 1024  # bytes of memory that the program needs beside an answer
# Memory by the size of an answer: measured are 3.5 for 350,000 small instances, 4.2 for 390,000
# Services
_TIMES = 5


class Tries(Struct, frozen=True):  # safe in several threads
    clock: Clock
    random: Random
    limit: TimeLimit  # no try lasts longer than what is left of it
    answer_seconds: float  # for each whole answer
    most: int = 4  # how often one call is tried
    # Called by the adapter with the status of each try, or NO_ANSWER
    count: Callable[[str], None] = lambda _: None

    def call(
        self, once: Callable[[AnswerTime], TryResult[T]], unanswered: Callable[[str], EurekubeError]
    ) -> T:
        """Return the last answer, or raise the last error; `unanswered` makes one of a clause if
        there was no time."""
        result: T | EurekubeError = unanswered("was not tried: no time was left for it")
        for number in range(self.most):
            if self.limit.left() <= 0 or (number and self.clock.stopping()):
                break
            within = AnswerTime(self.clock, self.answer_seconds, self.limit)
            result, retry_after = once(within)
            if within.over and isinstance(result, EurekubeError):
                raise unanswered(f"was not answered {self._late(within)}") from result
            if retry_after is None or number + 1 == self.most or self.clock.stopping():
                break
            pause = self._pause_asked_for(retry_after)
            if pause > _LONGEST_RETRY_AFTER:
                break
            wait = max(pause, self.random.random() * _FIRST_WAIT * 2.0**number)
            if wait >= self.limit.left():
                break
            self.clock.sleep(wait)
        if isinstance(result, EurekubeError):
            raise result
        return result

    def _late(self, within: AnswerTime) -> str:
        """Return words for the time that was over before the answer was complete."""
        if not within.within_limit:
            return "in the time that was left"
        return f"completely in {self.answer_seconds:g} s: the server or the network is too slow"

    def _pause_asked_for(self, retry_after: str) -> float:
        """Return the seconds of a `Retry-After` (RFC 9110 10.2.3: a number or a date); 0 for
        anything else."""
        text = retry_after.strip()
        if text.isascii() and text.isdigit():
            return float(text)
        when = unix_time(text)
        if when is None:
            return 0.0
        return when - self.clock.now()


def largest_answer(limits: Iterable[Path] = _MEMORY_LIMITS) -> int:
    """Return how many bytes an answer may have, unzipped: 256 MB, or less if the container's memory
    is small. A container that is killed in each pass renews no lease; a pass that refuses an answer
    does."""
    for path in limits:
        with suppress(OSError, ValueError):
            room = (int(path.read_text(encoding="ascii")) - _WITHOUT_ANSWER) // _TIMES
            return min(_LARGEST, max(_SMALLEST, room))
    return _LARGEST


LARGEST = largest_answer()


def read_whole(chunks: Iterable[bytes], too_large: Callable[[str], EurekubeError]) -> bytes:
    """Return the bytes of one answer; raise the error that `too_large` makes of a clause."""
    received = io.BytesIO()  # `getvalue` makes no copy
    for chunk in chunks:
        received.write(chunk)
        if received.tell() <= LARGEST:
            continue
        why = f"was answered with more than {LARGEST // 2**20} MB, the limit for one answer"
        if LARGEST != _LARGEST:
            why += "; a larger memory limit of the container raises it"
        raise too_large(why)
    return received.getvalue()


class AnswerTime:
    """Limit the time of one call, from its begin to the last byte of its answer."""

    over = False  # whether the call ended because its time was over
    within_limit = True  # whether then its own `seconds` were over, and not the limit or a stop
    _stopping = False

    def __init__(self, clock: Clock, seconds: float, limit: TimeLimit) -> None:
        self._clock = clock
        self._limit = limit
        self._end = clock.monotonic() + seconds

    def bounded(self, seconds: float) -> float:
        return max(_SHORTEST_WAIT, min(seconds, self._left()))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Apply this limit to the pools of `bound_answers` in this thread."""
        before = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(before)

    def wait_for(self, call: Future[T], seconds: float) -> None:
        """Return when the call has ended, even by an error; else raise TimeoutError as `waits`
        does."""
        waits = self.waits(seconds)
        while not futures.wait([call], next(waits)).done:
            pass

    def waits(self, seconds: float) -> Iterator[float]:
        """Yield short waits, in seconds; raise TimeoutError after `seconds`, or when the time of
        the call is over."""
        while True:
            if self._clock.stopping() and not self._stopping:
                self._stopping = True
                self._end = min(self._end, self._clock.monotonic() + _STOP_SECONDS)
            # First: a wait that was cut to what is left is no silence of the server.
            if self._left() <= 0:
                self.over = True
                self.within_limit = not self._stopping and self._limit.left() > 0
                raise TimeoutError("the answer took too long")
            if seconds <= 0:
                raise TimeoutError("it took too long")
            wait = self.bounded(min(seconds, _LOOK_SECONDS))
            yield wait
            seconds -= wait

    def _left(self) -> float:
        return min(self._end - self._clock.monotonic(), self._limit.left())


_CURRENT: ContextVar[AnswerTime | None] = ContextVar("answer_time", default=None)


class _Received(io.RawIOBase):
    def __init__(
        self, connected: socket.socket, within: AnswerTime, original: io.BufferedIOBase
    ) -> None:
        self._socket = connected
        self._within = within
        self._original = original
        self._silence = connected.gettimeout() or inf

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read in short waits; raise TimeoutError as `AnswerTime.waits` does."""
        waits = self._within.waits(self._silence)
        while True:
            self._socket.settimeout(next(waits))
            with suppress(TimeoutError):
                return self._socket.recv_into(buffer)

    def close(self) -> None:
        if not self.closed:
            self._original.close()  # the socket stays open while one of its files is open
        super().close()


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        within = _CURRENT.get()
        if within is not None:
            self.fp = io.BufferedReader(_Received(sock, within, self.fp))


def bound_answers(manager: Any) -> None:
    """Make all connections of a urllib3 pool manager obey the `AnswerTime` of their thread."""
    pools = dict(manager.pool_classes_by_scheme)
    for scheme, pool in pools.items():
        connection = _bounded(pool.ConnectionCls)
        pools[scheme] = type(pool.__name__, (pool,), {"ConnectionCls": connection})
    manager.pool_classes_by_scheme = pools


def _bounded(connection: Any) -> Any:
    def connect(self: Any) -> None:
        from urllib3.exceptions import ConnectTimeoutError

        within = _CURRENT.get()
        if within is None:
            connection.connect(self)
            return
        opening = in_side_thread(lambda: connection.connect(self))
        try:
            within.wait_for(opening, _CONNECT_TIMES * (self.timeout or inf))
        except TimeoutError as error:
            if not opening.done():
                opening.add_done_callback(lambda _: self.close())  # nobody uses it any more
                raise ConnectTimeoutError(self, f"Connection to {self.host} timed out.") from error
        opening.result()

    return type(connection.__name__, (connection,), {"response_class": _Answer, "connect": connect})
