"""The two-level response cache of a Eureka server (`ResponseCacheImpl`): what makes list reads
stale.

A read fills both levels. A write empties entries of the read-write level only; readers keep the
read-only level until its next tick. Ticks come at whole multiples of the interval on the wall
clock, not an interval after a read.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import cached_property

_EXPIRY = 180_000
"""Milliseconds after which an entry is loaded anew, written or not."""


ALL = ""
"""The whole list, in place of an application's name."""


class Payload:
    """An answer whose content was fixed when it was loaded; it is written out when it is first
    read."""

    def __init__(self, write: Callable[[], bytes] | None) -> None:
        self._write = write

    @cached_property
    def plain(self) -> bytes | None:
        """The answer, or None for a 404, which is cached like any other."""
        return self._write() if self._write is not None else None

    @cached_property
    def gzipped(self) -> bytes:
        """The answer compressed, made once."""
        return gzip.compress(self.plain or b"", compresslevel=6, mtime=0)


class ResponseCache:
    """Both levels, by application. `interval` 0 stands for `useReadOnlyResponseCache=false`. Times
    are milliseconds."""

    def __init__(self, load: Callable[[str], Payload], *, interval: int, start: int) -> None:
        self._load = load
        self._interval = interval
        self._read_only: dict[str, Payload] = {}
        self._read_write: dict[str, tuple[int, Payload]] = {}
        self._ticks = self._ticks_until(start)

    def get(self, app: str, now: int) -> Payload:
        """`getValue`."""
        if not self._interval:
            return self._fresh(app, now)
        if app not in self._read_only:
            self._read_only[app] = self._fresh(app, now)
        return self._read_only[app]

    def invalidate(self, *apps: str) -> None:
        """`invalidate`: the read-write level only."""
        for app in apps:
            self._read_write.pop(app, None)

    def catch_up(self, now: int) -> None:
        """Run the ticks (`getCacheUpdateTask`) that are due at `now`; of several, the last one has
        the say."""
        ticks = self._ticks_until(now)
        if ticks > self._ticks:
            self._ticks = ticks
            for app in self._read_only:
                self._read_only[app] = self._fresh(app, ticks * self._interval)

    def _ticks_until(self, now: int) -> int:
        return now // self._interval if self._interval else 0

    def _fresh(self, app: str, now: int) -> Payload:
        loaded = self._read_write.get(app)
        if loaded is None or now - loaded[0] >= _EXPIRY:
            loaded = (now, self._load(app))
            self._read_write[app] = loaded
        return loaded[1]
