"""A TCP relay in front of a server, which counts the bytes that go through it, encrypted or not."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from contextlib import suppress
from typing import Self

_CHUNK = 1024 * 1024


class Relay:
    """Listens on a free port of one host, and hands everything on; a context manager."""

    def __init__(self, host: str, port: int, *, listen: str = "127.0.0.1") -> None:
        self._to = host, port
        self._listening = socket.create_server((listen, 0), backlog=256)
        self.port: int = self._listening.getsockname()[1]
        self.bytes = 0
        """In both directions."""
        self.last = 0.0
        """When the last of them came, as `time.perf_counter` has it."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with (
            client,
            suppress(OSError),
            socket.create_connection(self._to) as server,
            selectors.DefaultSelector() as ready,
        ):
            for one, other in ((client, server), (server, client)):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ready.register(one, selectors.EVENT_READ, (one, other))
            while True:
                for key, _ in ready.select():
                    said_by, said_to = key.data
                    data = said_by.recv(_CHUNK)
                    if not data:
                        return
                    self.bytes += len(data)
                    self.last = time.perf_counter()
                    said_to.sendall(data)
