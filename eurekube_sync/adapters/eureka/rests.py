"""Which peers are left alone for a while, because they failed or refuse us; its begin and its end are said once."""

from __future__ import annotations

import logging
import threading
from typing import NamedTuple

from eurekube_sync.model.errors import RegistryError, RegistryUnavailable
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.wording import duration

FIRST_REST_SECONDS = 10.0  # after a first failure, which may be one lost call; each rest in a row is twice as long ...
REST_SECONDS = 300.0  # ... up to this: as long as an empty server keeps its list to itself
_ASKED_AGAIN_SECONDS = 10.0  # so long after its last failure a resting peer may be asked by who waits for its answer
_log = logging.getLogger(__name__)


class Trouble(NamedTuple):
    since: float  # the first failure, in monotonic seconds; it ends when the peer works
    failed: float  # when it failed last
    length: float  # of its rest, which began then
    refusing: bool  # it answered, but not as Eureka does to us: 401, 403, a web page
    resting: bool = True
    back: bool = False  # it has answered a question since


class Rests:  # by printable address; safe in several threads
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._troubles: dict[str, Trouble] = {}

    def failed(self, name: str, error: RegistryError) -> None:
        self.begin(name, str(error), refusing=not isinstance(error, RegistryUnavailable))

    def begin(self, name: str, why: str, *, refusing: bool) -> None:
        """Leave the peer alone, or until later; for twice as long when it has not worked since its last rest."""
        now = self._clock.monotonic()
        with self._lock:
            before = self._troubles.get(name)
            since, length = (before.since, before.length) if before else (now, FIRST_REST_SECONDS)
            if before and not before.resting:
                length = min(2 * length, REST_SECONDS)
            self._troubles[name] = Trouble(since=since, failed=now, length=length, refusing=refusing)
        if before is None or before.refusing is not refusing:
            _log.warning("the Eureka peer %s is not used until it works: %s", name, why)

    def worked(self, name: str, *, listed: bool = False) -> bool:
        """The peer gave a list, or took a write; whether that ended a rest. After a list, writes may be refused."""
        with self._lock:
            trouble = self._troubles.get(name)
            if trouble is None or (listed and trouble.refusing):
                return False
            del self._troubles[name]
        lasted = duration(round(self._clock.monotonic() - trouble.since))
        _log.info("the Eureka peer %s is used again, after %s", name, lasted)
        return trouble.resting

    def came_back(self, name: str) -> None:
        """A peer that could not be reached has answered a question: it is used again when it gives its list."""
        with self._lock:
            if name in self.resting():
                self._troubles[name] = self._troubles[name]._replace(back=True)

    def end(self) -> list[str]:
        """End the rests whose time is over; gives their peers."""
        now = self._clock.monotonic()
        with self._lock:
            ended = [name for name, one in self.resting().items() if one.failed + one.length <= now]
            self._troubles |= {name: self._troubles[name]._replace(resting=False, back=False) for name in ended}
        return ended

    def resting(self) -> dict[str, Trouble]:
        with self._lock:
            return {name: trouble for name, trouble in self._troubles.items() if trouble.resting}

    def down(self) -> frozenset[str]:
        """Those that cannot be reached, rather than refuse us."""
        return frozenset(name for name, trouble in self.resting().items() if not trouble.refusing)

    def just_failed(self) -> frozenset[str]:
        """Those of them that failed a moment ago: to ask them again now would give the same."""
        recent = self._clock.monotonic() - _ASKED_AGAIN_SECONDS
        resting = self.resting().items()
        return frozenset(name for name, trouble in resting if not trouble.refusing and trouble.failed > recent)

    def back(self) -> frozenset[str]:
        """Those of the resting that have answered since."""
        return frozenset(name for name, trouble in self.resting().items() if trouble.back)
