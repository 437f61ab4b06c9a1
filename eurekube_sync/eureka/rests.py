"""Which peers are left alone for a while, because they failed or refuse us; its begin and its end are said once."""

from __future__ import annotations

import logging
import threading
from typing import NamedTuple

from eurekube_sync.errors import RegistryError, RegistryUnavailable
from eurekube_sync.ports import Clock

REST_SECONDS = 300.0
"""How long a peer that failed is left alone: as long as an empty server keeps its list to itself."""

_log = logging.getLogger(__name__)


class _Rest(NamedTuple):
    """Why and until when (monotonic seconds) a peer is left alone."""

    until: float
    refusing: bool
    """It answered, but not as Eureka does to us: 401, 403, a web page."""
    why: str


class Rests:
    """The rests of all peers, by printable address; safe in several threads."""

    def __init__(self, clock: Clock, *, seconds: float = REST_SECONDS) -> None:
        self._clock = clock
        self._seconds = seconds
        self._lock = threading.Lock()
        self._rests: dict[str, _Rest] = {}
        self._back: set[str] = set()

    def failed(self, name: str, error: RegistryError) -> None:
        """A call to the peer failed."""
        self.begin(name, str(error), refusing=not isinstance(error, RegistryUnavailable))

    def begin(self, name: str, why: str, *, refusing: bool) -> None:
        """Leave the peer alone, or for longer."""
        with self._lock:
            before = self._rests.get(name)
            same = next((n for n, rest in self._rests.items() if n != name and alike(n, rest.why, name, why)), None)
            self._rests[name] = _Rest(self._clock.monotonic() + self._seconds, refusing, why)
            self._back.discard(name)
        if before is None or before.refusing is not refusing:
            told = why if same is None else f"for the same reason as {same}."
            _log.warning("the Eureka peer %s is not used for %g s: %s", name, self._seconds, told)

    def worked(self, name: str, *, listed: bool = False) -> bool:
        """The peer gave a list, or took a write; whether that ended a rest. A list says nothing of writes, which may be
        refused all the same."""
        with self._lock:
            rest = self._rests.get(name)
            if rest is None or (listed and rest.refusing):
                return False
            del self._rests[name]
            self._back.discard(name)
        _log.warning("the Eureka peer %s is used again", name)
        return True

    def came_back(self, name: str) -> None:
        """A peer that could not be reached has answered a question: it is used again when it gives its list."""
        with self._lock:
            if name in self._rests:
                self._back.add(name)

    def end(self) -> list[str]:
        """End the rests whose time is over; gives their peers."""
        now = self._clock.monotonic()
        with self._lock:
            ended = [name for name, rest in self._rests.items() if rest.until <= now]
            for name in ended:
                del self._rests[name]
                self._back.discard(name)
        for name in ended:
            _log.warning("the Eureka peer %s is tried again", name)
        return ended

    def resting(self) -> frozenset[str]:
        """All that are left alone."""
        with self._lock:
            return frozenset(self._rests)

    def down(self) -> frozenset[str]:
        """Those that cannot be reached, rather than refuse us."""
        with self._lock:
            return frozenset(name for name, rest in self._rests.items() if not rest.refusing)

    def back(self) -> frozenset[str]:
        """Those of them that have answered since."""
        with self._lock:
            return frozenset(self._back)


def alike(name: str, why: str, other: str, its: str) -> bool:
    """Whether two peers say the same, but for their addresses."""
    return why.replace(name, "") == its.replace(other, "")
