"""Many writes in one call, to every Eureka server side by side. `batches` finds out whether that is safe at all."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from math import inf
from typing import TypeAlias

from eurekube_sync.adapters.eureka import replication
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.eureka.rests import Rests
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import RegistryDenied, RegistryError, RegistryRejected, RegistryUnavailable
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.ports import Batched, Clock, Dated, Workers
from eurekube_sync.model.sources import Cause
from eurekube_sync.model.values import dataclass

SIZE = 250  # the most items of a batch, as servers send them to each other (`PeerEurekaNode.BATCH_SIZE`)
_FEWEST = 32  # a server that has no answer even to so few items at a time, and still answers one, gets no batches
_PROBE = InstanceKey("EUREKUBE-SYNC-PROBE", "eurekube-sync-probe")
"""Nothing has this id: a heartbeat for it changes nothing, and must come back as a 404."""
_REGISTERING = 2
"""Batches of registrations that are under way at a time. With more another client waits longer for an answer, and the
registrations take as long: they are limited by the server's processor [real]."""
SINGLY = "Meanwhile, each instance is renewed by a call of its own, and not in batches."
Codes: TypeAlias = dict[InstanceKey, int] | None
Ours: TypeAlias = Callable[[ObservedInstance], bool]
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Doubts:
    """Which instances may differ between servers; safe in several threads, for each change is a single one of a set.

    A heartbeat in a batch does not show it, for it has no timestamp. A single renewal does: its server replicates it
    with the instance's timestamp, and servers that differ then exchange the younger copy (`PeerEurekaNode.heartbeat`).
    So what is in doubt is renewed singly until all copies are the same age.
    """

    posted: set[InstanceKey] = field(default_factory=set)  # written to one server; the others may not have heard of it
    last_posted: float = -inf  # when, in monotonic seconds
    partly: set[InstanceKey] = field(
        default_factory=set
    )  # some servers may lack it: a batch failed, and none hands it on
    differing: dict[str, set[InstanceKey]] = field(default_factory=dict)
    """What each server's last list showed with another age than the preferred one's."""

    def __contains__(self, key: InstanceKey) -> bool:
        return any(key in keys for keys in (self.posted, *self.differing.values()))

    def end_partly(self, key: InstanceKey) -> bool:
        """Whether it was there partly; from now on it is not."""
        was = key in self.partly
        self.partly.discard(key)
        return was

    def settle(self, key: InstanceKey) -> None:
        """All servers hold the same, or it is cancelled."""
        for keys in (self.posted, self.partly, *self.differing.values()):
            keys.discard(key)


@dataclass(slots=True, kw_only=True)
class EverywhereBatches:
    """The `Batches` of several servers, or of one: each goes to all that can be reached, side by side.

    A server that fails is left out until the next list; but one that still answers a single item gets half as many at a
    time: left out of batch after batch, it would let our leases expire. When an answer does not have the known form,
    `trouble` says so and nothing more is sent in batches.
    """

    size = SIZE
    servers: Mapping[str, EurekaClient]  # by printable address, the preferred one first
    asked: Mapping[str, EurekaClient]  # the same with short timeouts: one that hangs must not eat the time of a list
    clock: Clock
    limit: TimeLimit
    workers: Workers
    doubts: Doubts = field(default_factory=Doubts)
    rests: Rests | None = None  # None where there is one server
    trouble: str | None = None
    silent: dict[str, tuple[float, str]] = field(default_factory=dict)
    """Servers that have answered no batch since their last one failed: since when (monotonic), and why."""
    _used: set[str] = field(default_factory=set)  # servers that may have batches, and did not fail since the last list
    _sizes: dict[str, int] = field(default_factory=dict)  # how many items a server gets that had no answer to more
    _registering: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_REGISTERING))
    _lacking: dict[InstanceKey, set[str]] = field(default_factory=dict)
    _returned: set[str] = field(default_factory=set)  # servers that may have missed batches, and were not asked since

    def anew(self) -> None:
        """All servers are asked again: forget what went wrong, and try longer batches."""
        self.trouble = None
        self.silent.clear()
        self._sizes = {name: 2 * size for name, size in self._sizes.items() if 2 * size < SIZE}

    def begin(self, admitted: Iterable[str]) -> None:
        """With a new list: use these servers. Those that were not used until now may lack what came meanwhile."""
        before, self._used = self._used, set(admitted)
        if len(self.servers) > 1:  # what a single one has lost, its list shows
            self._returned = (self._returned | (self._used - before)) & self._used
        self._lacking = {}

    def usable(self) -> list[str]:
        """The servers that a batch goes to, the preferred one first."""
        return [name for name in self.servers if name in self._used]

    def renew(self, keys: Sequence[InstanceKey]) -> list[Batched]:
        """A heartbeat of each, everywhere. What is in doubt is looked at, and left to a single call if it differs."""
        sure = [key for key in keys if key not in self.doubts or self._alike(key)]
        found = dict.fromkeys(keys, Batched.UNSETTLED)
        for key, codes in self._everywhere({key: replication.heartbeat(key) for key in sure}).items():
            said = set(codes.values())
            if said == {200}:
                found[key] = Batched.DONE
                self.doubts.end_partly(key)
            elif said == {404}:
                found[key] = Batched.ABSENT
            elif said == {200, 404}:
                found[key] = Batched.PARTLY
                self._lacking[key] = {name for name, code in codes.items() if code == 404}
        return [found[key] for key in keys]

    def _alike(self, key: InstanceKey) -> bool:
        """Whether all servers hold the same, which ends the doubt. One that lacks it shows in the heartbeat."""
        copies = [self._read(name, key) for name in self.usable()]
        ages = {copy.last_dirty_timestamp for copy in copies if isinstance(copy, ObservedInstance)}
        if len(ages) > 1:
            return False
        if Cause.NOT_READ not in copies and len(copies) == len(self.servers):
            self.doubts.settle(key)
        return True

    def absent(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        answers = self._everywhere({key: replication.question(key) for key in keys})
        return frozenset(key for key, codes in answers.items() if set(codes.values()) == {404})

    def register(self, items: Sequence[Dated]) -> list[Batched]:
        """A registration of each, everywhere, then a heartbeat: a server says 200 of one that it has rejected, too."""
        with self._registering:
            taken = self._registered(items, self.usable())
        done = {item.instance.key: set(taken.get(item.instance.key, {}).values()) == {200} for item in items}
        if len(self.servers) > 1:
            self.doubts.partly.update(key for key, settled in done.items() if not settled)
        return [Batched.DONE if done[item.instance.key] else Batched.UNSETTLED for item in items]

    def returned(self) -> bool:
        return not self._returned.isdisjoint(self._used)

    def lacking(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        names = [name for name in self.usable() if name in self._returned]
        heartbeats = {key: replication.heartbeat(key) for key in keys}
        found: set[InstanceKey] = set()
        answers = self.workers.each(lambda name: self._sent(name, heartbeats), names)
        for name, codes in zip(names, answers, strict=True):
            if codes is not None:
                self._returned.discard(name)
                lacked = {key for key, code in codes.items() if code == 404}
                for key in lacked:
                    self._lacking.setdefault(key, set()).add(name)
                found |= lacked
        return frozenset(found)

    def level(self, items: Sequence[Dated], *, ours: Ours) -> list[Batched]:
        """What a server lacks, to it alone; not what a person overrode elsewhere, which a list may hide."""
        wanted = {item.instance.key: item for item in items}
        found: dict[InstanceKey, Batched] = {}
        for key, item in wanted.items():
            others = [name for name in self.usable() if name not in self._lacking.get(key, ())]
            copies = (self._read(name, key) for name in others)
            held = all(isinstance(one, ObservedInstance) and one.status is item.instance.status for one in copies)
            found[key] = Batched.DONE if held else Batched.PARTLY
        for name in self.usable():
            to_send: list[Dated] = []
            for key, item in wanted.items():
                if name not in self._lacking.get(key, ()) or found[key] is Batched.CONFLICT:
                    continue
                registered = self._read(name, key)
                if registered is Cause.NOT_READ:
                    found[key] = Batched.UNSETTLED
                elif isinstance(registered, ObservedInstance) and not ours(registered):
                    found[key] = Batched.CONFLICT
                elif found[key] is Batched.DONE:
                    stored = registered.last_dirty_timestamp if isinstance(registered, ObservedInstance) else 0
                    to_send.append(item._replace(dirty_timestamp=max(item.dirty_timestamp, stored + 1)))
            taken = self._registered(to_send, [name])
            for key in (item.instance.key for item in to_send):
                if taken.get(key) != {name: 200}:
                    found[key] = Batched.UNSETTLED
        return [found[item.instance.key] for item in items]

    def cancel(self, keys: Sequence[InstanceKey], *, ours: Ours) -> list[Batched]:
        """A cancel of each wherever it is ours. A single server has been read by the caller; of several each one is.

        None right after a registration on one server: what it replaces must not be cancelled on the others before it
        comes. With single calls the first server hands on both, in order."""
        if self.clock.monotonic() - self.doubts.last_posted < replication.REPLICATION_SECONDS:
            return [Batched.UNSETTLED] * len(keys)
        for key in keys:
            self.doubts.settle(key)
        gone = self.workers.each(lambda name: self._cancelled(name, keys, ours), self.usable())
        of_each = [{one[key] for one in gone} for key in keys]
        return [Batched.DONE if True in found and False not in found else Batched.UNSETTLED for found in of_each]

    def _cancelled(self, name: str, keys: Sequence[InstanceKey], ours: Ours) -> dict[InstanceKey, bool | None]:
        """Whether each is settled on this server: cancelled, or another owner's. None where the server is away."""
        there, unsettled = list(keys), set[InstanceKey]()
        if len(self.servers) > 1:
            registered = {key: self._read(name, key) for key in keys}
            there = [key for key, one in registered.items() if isinstance(one, ObservedInstance) and ours(one)]
            unsettled = {key for key, one in registered.items() if one is Cause.NOT_READ}
        codes = self._sent(name, {key: replication.cancel(key) for key in there}) or {}
        unsettled.update(key for key in there if codes.get(key) not in (200, 404))
        otherwise = False if name in self._used else None
        return {key: otherwise if key in unsettled else True for key in keys}

    def _registered(self, items: Sequence[Dated], names: Sequence[str]) -> dict[InstanceKey, dict[str, int]]:
        """By item the answers to its heartbeat of the servers that could be reached; none where one did not take it."""
        registrations: dict[InstanceKey, bytes] = {}
        for item in items:
            with suppress(RegistryRejected):  # the single call says why
                registrations[item.instance.key] = replication.register(item)
        heartbeats = {key: replication.heartbeat(key) for key in registrations}

        def send(name: str) -> Codes:
            taken = self._sent(name, registrations, may_refuse=True)
            if taken is None or any(code >= 400 for code in taken.values()):
                return None
            return self._sent(name, heartbeats)

        return self._answers(names, send)

    def _everywhere(self, items: Mapping[InstanceKey, bytes]) -> dict[InstanceKey, dict[str, int]]:
        return self._answers(self.usable(), lambda name: self._sent(name, items))

    def _answers(self, names: Sequence[str], send: Callable[[str], Codes]) -> dict[InstanceKey, dict[str, int]]:
        """To each item, by server; nothing at all when a server gave none that is not away."""
        found: dict[InstanceKey, dict[str, int]] = {}
        for name, codes in zip(names, self.workers.each(send, names), strict=True):
            if codes is None and name in self._used:
                return {}
            for key, code in (codes or {}).items():
                found.setdefault(key, {})[name] = code
        return found

    def _sent(self, name: str, items: Mapping[InstanceKey, bytes], *, may_refuse: bool = False) -> Codes:
        """The answers of one server. None when it gave none and is left out, when batches have ended or time is over,
        or when the items are at fault: one that cannot be read makes a 400 of the whole."""
        written = list(items.values())
        codes: list[int] = []
        while left := replication.fitting(written[len(codes) : len(codes) + self._sizes.get(name, SIZE)]):
            if self._is_over() or self.trouble is not None:
                return None
            try:
                codes += self.servers[name].replicate(left)
            except RegistryUnavailable as error:
                if not self._shortened(name, len(left), error):
                    self._fail(name, error)
                    return None
            except RegistryError as error:
                if not (may_refuse and isinstance(error, RegistryRejected)):
                    self._end(refused(error))
                return None
        if codes:
            self.silent.pop(name, None)
        return dict(zip(items, codes, strict=True))

    def _shortened(self, name: str, number: int, error: RegistryUnavailable) -> bool:
        """Whether one item is still answered: the server then gets half as many at a time, or no batches at all."""
        if number == 1 or self._is_over():
            return False
        try:
            probed(self.asked[name])
        except RegistryError:
            return False
        if number <= _FEWEST:
            why = str(error).removesuffix(".")
            self._end(f"{name} answers a batch of one item, but not a batch of {number} items ({why}).")
        elif number // 2 < self._sizes.get(name, SIZE):  # else another thread has met the same
            self._sizes[name] = number // 2
            _log.warning(
                "the Eureka server %s gets only %d items at a time from now on, because %s", name, number // 2, error
            )
        return True

    def _read(self, name: str, key: InstanceKey) -> ObservedInstance | Cause | None:
        """What this server holds; NOT_READ if it cannot be read now."""
        if name in self._used and not self._is_over():
            try:
                return self.servers[name].read_instance(key)
            except RegistryUnavailable as error:
                self._fail(name, error)
            except RegistryError:
                pass  # the single call says why
        return Cause.NOT_READ

    def _is_over(self) -> bool:
        return self.limit.left() <= 0 or self.clock.stopping()

    def _fail(self, name: str, error: RegistryError) -> None:
        if self.limit.left() <= 0:
            return  # the pass had no time left for it: no server is at fault
        self._used.discard(name)
        self.silent.setdefault(name, (self.clock.monotonic(), str(error).removesuffix(".")))
        if self.rests is not None:
            self.rests.failed(name, error)

    def _end(self, why: str) -> None:
        if self.trouble is None:
            self.trouble = why
            _log.warning("%s %s", why, SINGLY)


def probed(server: EurekaClient) -> int:
    return server.replicate([replication.heartbeat(_PROBE)])[0]


def refused(error: RegistryError) -> str:
    said = str(error).removesuffix(".")
    if isinstance(error, RegistryDenied):
        fix = "let the server's Spring Security allow /eureka/peerreplication/** like /eureka/apps/**."
        return f"Batches are refused: {said}. If single writes work, {fix}"
    return f"Batches do not work: {said}{'' if said.endswith('?') else '.'}"
