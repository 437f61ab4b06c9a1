"""A server that answers a byte at a time, for ever: never silent for long, and never whole."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, repeat

from tests.waiting import wait_until

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
NEVER_ENDING_HANDSHAKE = b"\x16\x03\x03\x40\x00"
"""The head of a TLS record of 16 KB."""
NEVER_ENDING_HEAD = b"HTTP/1.1 200 OK\r\nX-Filler: "


@dataclass(slots=True)
class TricklingServer:
    """Where it is, and how many calls it was asked."""

    port: int
    calls: int = 0
    threads: list[threading.Thread] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def stopped_when_asked(server: TricklingServer, stop: Callable[[], None]) -> Iterator[None]:
    """Calls `stop` a moment after the server was asked something."""

    def wait() -> None:
        wait_until(lambda: server.calls > 0, "nobody asks")
        stop()

    waiting = threading.Thread(target=wait)
    waiting.start()
    try:
        yield
    finally:
        waiting.join()


@contextmanager
def trickling(
    at_once: bytes = HEAD, *, pause: float = 0.02, whole: bool = False, asked: bytes = b"\r\n\r\n"
) -> Iterator[TricklingServer]:
    """Answers each call, once it is `asked`, with `at_once`, and then a space every `pause`
    seconds; with `whole`, it hangs up instead."""
    ended = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    server = TricklingServer(port=listener.getsockname()[1])

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while asked not in (received := connection.recv(65536)):
                if not received:  # nobody asks any more
                    return
            server.calls += 1
            for piece in chain((at_once,), () if whole else repeat(b" ")):
                if ended.wait(pause):
                    return
                connection.sendall(piece)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                server.threads.append(
                    threading.Thread(target=answer, args=(connection,), daemon=True)
                )
                server.threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield server
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join()
        for thread in server.threads:
            thread.join()


SOON_SECONDS = 25
"""On the busiest machine a call that is bounded by a second ends in it; the adapters' own limits
are longer, and what trickles here, or is silent, does not end by itself."""


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    @property
    def seconds(self) -> float:
        """How many passed."""
        return time.monotonic() - self._begun
