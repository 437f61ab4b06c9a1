"""How long somebody else's call to a Eureka server takes: one `GET /apps/{APP}` after the other, in
a process of its own."""

from __future__ import annotations

import http.client
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

_PAUSE = 0.02
"""Seconds from one call to the next: 50 a second at most."""


@dataclass(slots=True)
class Waits:
    """Of the calls of a stretch, in ms."""

    milliseconds: list[float] = field(default_factory=list)

    def percentile(self, percent: float) -> float:
        """The nearest rank; 0 without a call."""
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else 0.0


@contextmanager
def stranger(url: str, app: str) -> Iterator[Waits]:
    """Asks for the app from here to the end of the block; the waits are there after it."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_ask, args=(url, app, there))
    process.start()
    here.recv()
    waits = Waits()
    try:
        yield waits
        here.send("end")
        waits.milliseconds += here.recv()
    finally:
        process.kill()
        process.join()


def _ask(url: str, app: str, pipe: Connection) -> None:
    where = urlsplit(url)
    assert where.hostname is not None
    calls = http.client.HTTPConnection(where.hostname, where.port or 80, timeout=60)
    samples: list[float] = []
    pipe.send("begun")
    while not pipe.poll(_PAUSE):
        begun = time.perf_counter()
        calls.request("GET", f"{where.path}/apps/{app}", headers={"Accept": "application/json"})
        calls.getresponse().read()
        samples.append(1000 * (time.perf_counter() - begun))
    pipe.send(samples)
