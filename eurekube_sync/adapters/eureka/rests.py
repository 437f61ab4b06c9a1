"""Rests: for how long a peer that failed or refused us is not used. Begin and end of a rest are
logged."""

from __future__ import annotations

import logging
import threading
from typing import NamedTuple

from eurekube_sync.model.errors import RegistryError, unknown_from
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.text import duration

# After a first failure, which may be one lost call; each further rest is twice as long ...
FIRST_REST_SECONDS = 10.0
REST_SECONDS = 300.0  # ... up to this: the warm-up of an empty server
_ASKED_AGAIN_SECONDS = (
    10.0  # how long after its last failure a peer is not called, even if its answer is needed
)
_log = logging.getLogger(__name__)


class Trouble(NamedTuple):
    since: float  # the first failure since the peer worked, in monotonic seconds
    failed: float  # the last failure, which began the rest
    length: float  # of the rest
    refusing: bool  # it answered, but refused us, as by 401, 403 or a web page
    resting: bool = True
    back: bool = False  # it has answered since


class Rests:  # by printable address; safe in several threads
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._troubles: dict[str, Trouble] = {}

    def failed(self, name: str, error: RegistryError) -> None:
        self.begin(name, unknown_from(error))

    def begin(self, name: str, why: Unknown) -> None:
        """Begin a rest. It is twice as long if the peer has not worked since its last one."""
        now, refusing = self._clock.monotonic(), why.cause is not Cause.UNAVAILABLE
        with self._lock:
            before = self._troubles.get(name)
            since, length = (before.since, before.length) if before else (now, FIRST_REST_SECONDS)
            if before and not before.resting:
                length = min(2 * length, REST_SECONDS)
            self._troubles[name] = Trouble(
                since=since, failed=now, length=length, refusing=refusing
            )
        if before is None or before.refusing is not refusing:
            _log.warning("skipping Eureka peer %s until it works: %s", name, why.message)

    def worked(self, name: str, *, listed: bool = False) -> bool:
        """Note that a call worked; return whether that ended a rest. A list does not end a refusal:
        writes may fail."""
        with self._lock:
            trouble = self._troubles.get(name)
            if trouble is None or (listed and trouble.refusing):
                return False
            del self._troubles[name]
        lasted = duration(round(self._clock.monotonic() - trouble.since))
        _log.info("Eureka peer %s works again, after %s", name, lasted)
        return trouble.resting

    def came_back(self, name: str) -> None:
        """Note that a resting peer has answered. It is used again when it gives its list."""
        with self._lock:
            if name in self.resting():
                self._troubles[name] = self._troubles[name]._replace(back=True)

    def end(self) -> list[str]:
        """End the rests whose time is over; return their peers."""
        now = self._clock.monotonic()
        with self._lock:
            ended = [name for name, one in self.resting().items() if one.failed + one.length <= now]
            self._troubles |= {
                name: self._troubles[name]._replace(resting=False, back=False) for name in ended
            }
        return ended

    def resting(self) -> dict[str, Trouble]:
        with self._lock:
            return {name: trouble for name, trouble in self._troubles.items() if trouble.resting}

    def down(self) -> frozenset[str]:
        """Return the resting peers that cannot be reached, without those that refuse us."""
        return frozenset(name for name, trouble in self.resting().items() if not trouble.refusing)

    def just_failed(self) -> frozenset[str]:
        """Return those of `down` that failed a moment ago, so that another call now would fail,
        too."""
        recent = self._clock.monotonic() - _ASKED_AGAIN_SECONDS
        resting = self.resting().items()
        return frozenset(
            name for name, trouble in resting if not trouble.refusing and trouble.failed > recent
        )

    def back(self) -> frozenset[str]:
        """Return the resting peers that have answered since."""
        return frozenset(name for name, trouble in self.resting().items() if trouble.back)
