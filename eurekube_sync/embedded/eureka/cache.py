"""The two-level response cache of a Eureka server (`ResponseCacheImpl`): what makes list reads stale.

A read fills both levels. A write empties entries of the read-write level only; readers keep the read-only level until
its next tick. Ticks come at whole multiples of the interval on the wall clock, not an interval after a read.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cached_property
from typing import NamedTuple

_EXPIRY = 180_000
"""Milliseconds after which an entry is loaded anew, written or not."""


class Entity(Enum):
    """`Key.EntityType`, with the reserved application name of the whole list apart."""

    ALL = "all"
    APPLICATION = "application"
    VIP = "vip"


class Key(NamedTuple):
    """`Key`: the same list in JSON and in XML are two entries, and may be stale by different amounts."""

    entity: Entity
    name: str
    json: bool


class Payload:
    """An answer whose content was fixed when it was loaded; it is written out when it is first read."""

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
    """Both levels. `interval` 0 stands for `useReadOnlyResponseCache=false`. Times are milliseconds."""

    def __init__(self, load: Callable[[Key, int], Payload], *, interval: int, start: int) -> None:
        self._load = load
        self._interval = interval
        self._read_only: dict[Key, Payload] = {}
        self._read_write: dict[Key, tuple[int, Payload]] = {}
        self._ticks = self._ticks_until(start)

    def get(self, key: Key, now: int) -> Payload:
        """`getValue`."""
        if not self._interval:
            return self._fresh(key, now)
        if key not in self._read_only:
            self._read_only[key] = self._fresh(key, now)
        return self._read_only[key]

    def invalidate(self, keys: Iterable[Key]) -> None:
        """`invalidate`: the read-write level only."""
        for key in keys:
            self._read_write.pop(key, None)

    def catch_up(self, now: int) -> None:
        """Run the ticks (`getCacheUpdateTask`) that are due at `now`; of several, the last one has the say."""
        ticks = self._ticks_until(now)
        if ticks > self._ticks:
            self._ticks = ticks
            for key in self._read_only:
                self._read_only[key] = self._fresh(key, ticks * self._interval)

    def _ticks_until(self, now: int) -> int:
        return now // self._interval if self._interval else 0

    def _fresh(self, key: Key, now: int) -> Payload:
        loaded = self._read_write.get(key)
        if loaded is None or now - loaded[0] >= _EXPIRY:
            loaded = (now, self._load(key, now))
            self._read_write[key] = loaded
        return loaded[1]
