"""How long one HTTP answer may take, all of it: the time between two bytes is bounded by timeouts, their sum is not.

Owns what both adapters need for that: a reader that looks at the time before every piece, of the head as of the body;
and a connection that is not waited for longer, whatever name servers, many addresses or a slow handshake make of it.
Knows no host, path or status, and neither `requests` nor `kubernetes`: their urllib3 pools are handed in.
"""

from __future__ import annotations

import http.client
import io
import socket
import threading
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from math import inf
from typing import Any, TypeVar

from eurekube_sync.adapters.side_thread import in_side_thread
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.ports import Clock

T = TypeVar("T")

_LOOK_SECONDS = 0.5
"""How often a reader that waits looks whether the program was asked to stop."""
_STOP_SECONDS = 1.0
"""What an answer that is under way still gets then: most come whole, and say what a write did."""
_CONNECT_TIMES = 2
"""A connection may take its timeout so often: resolvers wait 5 s for a name server before they ask again, and each
address of a name is given the whole timeout."""
_SHORTEST_WAIT = 0.001
"""A socket takes a timeout of zero for "do not wait"."""


class AnswerTime:
    """The time of one call, from its beginning to the last byte of its answer."""

    def __init__(self, clock: Clock, seconds: float, limit: TimeLimit) -> None:
        """`seconds` is the call's own bound; `limit` that of what it is part of, which may move."""
        self._clock = clock
        self._limit = limit
        self._end = clock.monotonic() + seconds
        self._stopping = False
        self.over = False
        """Whether it ended a call."""
        self.within_limit = True
        """Whether, when it was over, it was so by the call's own bound, and not by the limit or a stop."""

    def bounded(self, seconds: float) -> float:
        """The shorter of a timeout and what is left; never zero, which sockets and urllib3 take for something else."""
        return max(_SHORTEST_WAIT, min(seconds, self._left()))

    def next_wait(self) -> float:
        """How long the next piece may be waited for before the time is looked at again; TimeoutError when over."""
        if self._clock.stopping() and not self._stopping:
            self._stopping = True
            self._end = min(self._end, self._clock.monotonic() + _STOP_SECONDS)
        if self._left() <= 0:
            self.over = True
            self.within_limit = not self._stopping and self._limit.left() > 0
            raise TimeoutError("the answer took too long")
        return self.bounded(_LOOK_SECONDS)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Bounds the answers that pools made by `bound_answers` receive in this thread meanwhile."""
        before = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(before)

    def waits(self, seconds: float) -> Iterator[float]:
        """Short waits, one after the other; TimeoutError after so many seconds, or when the time is over."""
        while seconds > 0:
            wait = max(_SHORTEST_WAIT, min(seconds, self.next_wait()))
            yield wait
            seconds -= wait
        self.next_wait()  # a wait that was cut to what is left is not the server's
        raise TimeoutError("it took too long")

    def wait_for(self, call: Future[T], seconds: float) -> None:
        """Until the call has ended, however; else as `waits`. A TimeoutError of the call itself does not end it."""
        waits = self.waits(seconds)
        while not futures.wait([call], next(waits)).done:
            pass

    def _left(self) -> float:
        return min(self._end - self._clock.monotonic(), self._limit.left())


_CURRENT: ContextVar[AnswerTime | None] = ContextVar("answer_time", default=None)


class _Received(io.RawIOBase):
    """The bytes of a socket; each wait for them is a short one."""

    def __init__(self, connected: socket.socket, within: AnswerTime, original: io.BufferedIOBase) -> None:
        self._socket = connected
        self._within = within
        self._original = original
        self._silence = connected.gettimeout() or inf

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """As that of a socket's file; TimeoutError after too much silence, or when the whole answer takes too long."""
        waits = self._within.waits(self._silence)
        while True:
            self._socket.settimeout(next(waits))
            with suppress(TimeoutError):
                return self._socket.recv_into(buffer)

    def close(self) -> None:
        """Close the socket's file, too: the socket stays open as long as a file of it is."""
        if not self.closed:
            self._original.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    """Reads through `_Received` where the thread's call has a time."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        within = _CURRENT.get()
        if within is not None:
            self.fp = io.BufferedReader(_Received(sock, within, self.fp))


def bound_answers(manager: Any) -> None:
    """Make all connections of a urllib3 pool manager, also one for proxies, open and read within the time of their
    call."""
    manager.pool_classes_by_scheme = {
        scheme: type(pool.__name__, (pool,), {"ConnectionCls": _bounded(pool.ConnectionCls)})
        for scheme, pool in manager.pool_classes_by_scheme.items()
    }


def _bounded(connection: Any) -> Any:
    def connect(self: Any) -> None:
        within = _CURRENT.get()
        if within is None:
            connection.connect(self)
            return
        left_behind = threading.Event()

        def open_it() -> None:
            connection.connect(self)
            if left_behind.is_set():  # nobody reads from it any more
                self.close()

        opening = in_side_thread(open_it)
        try:
            within.wait_for(opening, _CONNECT_TIMES * (self.timeout or inf))
        except TimeoutError as error:
            left_behind.set()
            if not opening.done():
                raise _not_in_time(self) from error
        opening.result()

    return type(connection.__name__, (connection,), {"response_class": _Answer, "connect": connect})


def _not_in_time(connection: Any) -> Exception:
    """What urllib3 says of a connection that a socket's timeout ends."""
    from urllib3.exceptions import ConnectTimeoutError

    return ConnectTimeoutError(connection, f"Connection to {connection.host} timed out.")
