"""A batch to each Eureka server: which servers get one, how many items at a time, and what they answer."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from eurekube_sync.adapters.eureka import replication
from eurekube_sync.adapters.eureka.rests import Rests
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import RegistryDenied, RegistryError, RegistryRejected, RegistryUnavailable
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.ports import Clock, Workers

SIZE = 250
"""The most items of a batch, as servers send them to each other (`PeerEurekaNode.BATCH_SIZE`)."""
_FEWEST = 32
"""A server that has no answer even to so few items at a time, and still answers one, gets no batches."""
_PROBE = InstanceKey("EUREKUBE-SYNC-PROBE", "eurekube-sync-probe")
"""Nothing has this id: a heartbeat for it changes nothing, and must come back as a 404."""
SINGLY = "Each instance is renewed by its own call."
_log = logging.getLogger(__name__)


class Server(Protocol):
    """One Eureka server, as far as batches need it. Raises a RegistryError."""

    def replicate(self, body: bytes, *, items: int) -> tuple[int, ...]:
        """One status code for each item of a body of `replication`."""

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        """One instance, uncached."""


class Unread:
    """A read that failed."""


UNREAD = Unread()


class BatchCalls:
    """The calls of a pass to several servers, or to one.

    A server that fails is left out until the next list; but one that still answers a single item is too slow for so
    many, and gets half as many at a time: left out of batch after batch, it would let our leases expire. When an answer
    does not have the known form, `trouble` says so and nothing more is sent in batches.
    """

    def __init__(
        self,
        servers: Mapping[str, Server],
        *,
        asked: Mapping[str, Server],
        clock: Clock,
        limit: TimeLimit,
        workers: Workers,
        rests: Rests | None,
    ) -> None:
        self._servers = dict(servers)
        self._asked = dict(asked)
        self._clock = clock
        self._limit = limit
        self._workers = workers
        self._rests = rests
        self._admitted: frozenset[str] = frozenset()
        self.left_out: set[str] = set()
        """Servers that failed since the last list."""
        self._sizes: dict[str, int] = {}
        """How many items at a time a server gets that had no answer to more."""
        self.trouble: str | None = None
        self.silent: dict[str, tuple[float, str]] = {}
        """Servers that have answered no batch since their last one failed: since when (monotonic), and why."""

    @property
    def number(self) -> int:
        """Of all servers, used or not."""
        return len(self._servers)

    @property
    def several(self) -> bool:
        """Whether there is more than one."""
        return self.number > 1

    def anew(self) -> None:
        """All servers are asked again: forget what went wrong, and try longer batches."""
        self.trouble = None
        self.silent.clear()
        self._sizes = {name: 2 * size for name, size in self._sizes.items() if 2 * size < SIZE}

    def begin(self, admitted: Iterable[str]) -> frozenset[str]:
        """With a new list: use these servers; gives them as a set."""
        self._admitted = frozenset(admitted)
        self.left_out = set()
        return self._admitted

    def usable(self) -> list[str]:
        """The servers that a batch goes to, the preferred one first."""
        return [name for name in self._servers if name in self._admitted and name not in self.left_out]

    def everywhere(self, items: Sequence[bytes]) -> dict[str, list[int]]:
        """By server the answers to all items; nothing at all when one did not give them that is not away."""
        names = self.usable()
        answers = dict(zip(names, self._workers.each(lambda name: self.sent(name, items), names), strict=True))
        if any(found is None and name not in self.left_out for name, found in answers.items()):
            return {}
        return {name: found for name, found in answers.items() if found is not None}

    def sent(self, name: str, items: Sequence[bytes], *, may_refuse: bool = False) -> list[int] | None:
        """The answers of one server; None when it gave none, and then it is left out, or batches have ended, or time is
        over, or the items are at fault: one that cannot be read makes a 400 of the whole."""
        found: list[int] = []
        while left := items[len(found) : len(found) + self._sizes.get(name, SIZE)]:
            if self._limit.left() <= 0 or self._clock.stopping() or self.trouble is not None:
                return None
            body, number = next(replication.bodies(left))
            try:
                found += self._servers[name].replicate(body, items=number)
            except RegistryUnavailable as error:
                if not self._shortened(name, number, error):
                    self._fail(name, error)
                    return None
            except RegistryError as error:
                if not (may_refuse and isinstance(error, RegistryRejected)):
                    self._end(refused(error))
                return None
        if found:
            self.silent.pop(name, None)
        return found

    def _shortened(self, name: str, number: int, error: RegistryUnavailable) -> bool:
        """Whether the server that had no answer to so many items still has one to a single item: then it gets half as
        many at a time, or no batches at all. Repeating those that it did all the same is harmless."""
        if number == 1 or self._limit.left() <= 0 or self._clock.stopping():
            return False
        try:
            probed(self._asked[name])
        except RegistryError:
            return False
        if number <= _FEWEST:
            why = str(error).removesuffix(".")
            self._end(f"{name} answers a batch of one item, but not one of {number} ({why}).")
        elif number // 2 < self._sizes.get(name, SIZE):  # else another thread has met the same
            self._sizes[name] = number // 2
            _log.warning("the Eureka server %s gets %d items at a time: %s", name, number // 2, error)
        return True

    def read(self, name: str, key: InstanceKey) -> ObservedInstance | Unread | None:
        """What this server holds; UNREAD if it cannot be read now."""
        if name in self.left_out or self._limit.left() <= 0 or self._clock.stopping():
            return UNREAD
        try:
            return self._servers[name].read_instance(key)
        except RegistryUnavailable as error:
            self._fail(name, error)
        except RegistryError:
            pass  # the single call says why
        return UNREAD

    def _fail(self, name: str, error: RegistryError) -> None:
        if self._limit.left() <= 0:
            return  # the pass had no time left for it: no server is at fault
        self.left_out.add(name)
        self.silent.setdefault(name, (self._clock.monotonic(), str(error).removesuffix(".")))
        if self._rests is not None:
            self._rests.failed(name, error)

    def _end(self, why: str) -> None:
        if self.trouble is None:
            self.trouble = why
            _log.warning("%s %s", why, SINGLY)


def probed(server: Server) -> tuple[int, ...]:
    """The answer to a batch of one heartbeat that renews nothing."""
    body, items = next(replication.bodies([replication.heartbeat(_PROBE)]))
    return server.replicate(body, items=items)


def refused(error: RegistryError) -> str:
    """Why a batch was not answered in the known form, and what to do about it."""
    said = str(error).removesuffix(".")
    if isinstance(error, RegistryDenied):
        return (
            f"Batches are refused: {said}. To have them, let the server's Spring Security allow "
            "/eureka/peerreplication/** like /eureka/apps/**."
        )
    return f"Batches do not work: {said}."
