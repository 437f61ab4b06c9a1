"""Batches of writes, sent to every Eureka server in parallel. `batches` finds out whether that is
safe."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias, TypeVar

from eurekube_sync.adapters.eureka import replication
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.eureka.rests import Rests
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import (
    RegistryDenied,
    RegistryError,
    RegistryRejected,
    RegistryUnavailable,
)
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.ports import Batched, Clock, Dated, Workers
from eurekube_sync.model.sources import Cause

SIZE = 250  # the most items of a batch, as between servers (`PeerEurekaNode.BATCH_SIZE`)
_FEWEST = 32  # a server that answers one item, but does not answer so few items, gets no batches
_PROBE = InstanceKey("EUREKUBE-SYNC-PROBE", "eurekube-sync-probe")
"""No instance has this id, so the answer to its heartbeat must be 404."""
_REGISTERING = 2
"""The most batches of registrations at a time. More of them are no faster, because the server's
processor limits them, but delay other clients [real]."""
SINGLY = "Until batches work, each instance is renewed by its own call."
Codes: TypeAlias = dict[InstanceKey, int] | None
A = TypeVar("A")
Ours: TypeAlias = Callable[[ObservedInstance], bool]
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Doubts:
    """Instances that may differ between servers. Safe in several threads, because each change is a
    single one of a set.

    Such an instance is renewed singly until all copies have the same timestamp: a server replicates
    a single renewal with the timestamp, and servers that differ exchange the newer copy
    (`PeerEurekaNode.heartbeat`). A heartbeat in a batch has no timestamp.
    """

    posted: set[InstanceKey] = field(
        default_factory=set
    )  # written to one server, and perhaps not replicated yet
    last_posted: float = -inf  # when, in monotonic seconds
    partly: set[InstanceKey] = field(
        default_factory=set
    )  # a batch failed, so some servers may lack it
    differing: dict[str, set[InstanceKey]] = field(default_factory=dict)
    """By server: the instances whose timestamp differs from the one in the list of the first
    server."""

    def __contains__(self, key: InstanceKey) -> bool:
        return any(key in keys for keys in (self.posted, *self.differing.values()))

    def end_partly(self, key: InstanceKey) -> bool:
        """Remove an instance from `partly`; return whether it was in there."""
        was = key in self.partly
        self.partly.discard(key)
        return was

    def settle(self, key: InstanceKey) -> None:
        """Forget an instance that is the same on all servers, or cancelled."""
        for keys in (self.posted, self.partly, *self.differing.values()):
            keys.discard(key)


@dataclass(slots=True, kw_only=True)
class EverywhereBatches:
    """The port `Batches`: sends each batch to all servers that can be reached.

    A server that fails is left out until the next list. But if it still answers a single item, it
    gets half as many at a time, because our leases would expire on a server that is left out again
    and again. After an answer of an unknown form, `trouble` says so, and no more batches are sent.
    """

    size = SIZE
    servers: Mapping[str, EurekaClient]  # by printable address, in the order of preference
    asked: Mapping[str, EurekaClient]  # the same with short timeouts, for questions
    clock: Clock
    limit: TimeLimit
    workers: Workers
    doubts: Doubts = field(default_factory=Doubts)
    rests: Rests | None = None  # None with one server
    trouble: str | None = None
    silent: dict[str, tuple[float, str]] = field(default_factory=dict)
    """Servers whose last batch failed: since when, in monotonic seconds, and why."""
    _used: set[str] = field(
        default_factory=set
    )  # servers that take batches, and have not failed since the last list
    _sizes: dict[str, int] = field(default_factory=dict)  # by server that did not answer more items
    _registering: threading.Semaphore = field(
        default_factory=lambda: threading.Semaphore(_REGISTERING)
    )
    _lacking: dict[InstanceKey, set[str]] = field(
        default_factory=dict
    )  # servers that lack an instance
    _returned: set[str] = field(
        default_factory=set
    )  # servers that may have missed batches, not asked since

    def forget_failures(self) -> None:
        """Forget failures, and double the size of short batches, when all servers are asked
        again."""
        self.trouble = None
        self.silent.clear()
        self._sizes = {name: 2 * size for name, size in self._sizes.items() if 2 * size < SIZE}

    def use(self, admitted: Iterable[str]) -> None:
        """Use these servers until the next list. A server that was not used before may lack
        instances."""
        before, self._used = self._used, set(admitted)
        if len(self.servers) > 1:  # a single server's list shows what it lost
            self._returned = (self._returned | (self._used - before)) & self._used
        self._lacking = {}

    def usable(self) -> list[str]:
        """Return the servers that get batches, in the order of preference."""
        return [name for name in self.servers if name in self._used]

    def renew(self, keys: Sequence[InstanceKey]) -> list[Batched]:
        """Send a heartbeat of each to all servers, unless its copies differ: those are renewed by
        single calls."""
        sure = [key for key in keys if key not in self.doubts or self._alike(key)]
        found = dict.fromkeys(keys, Batched.UNSETTLED)
        for key, codes in self._send_to_all(
            {key: replication.heartbeat(key) for key in sure}
        ).items():
            distinct = set(codes.values())
            if distinct == {200}:
                found[key] = Batched.DONE
                self.doubts.end_partly(key)
            elif distinct == {404}:
                found[key] = Batched.ABSENT
            elif distinct == {200, 404}:
                found[key] = Batched.PARTLY
                self._lacking[key] = {name for name, code in codes.items() if code == 404}
        return [found[key] for key in keys]

    def _alike(self, key: InstanceKey) -> bool:
        """Return whether no two copies differ, and end the doubt if all servers could be read."""
        copies = [self._read(name, key) for name in self.usable()]
        timestamps = {
            copy.last_dirty_timestamp for copy in copies if isinstance(copy, ObservedInstance)
        }
        if len(timestamps) > 1:
            return False
        if Cause.NOT_READ not in copies and len(copies) == len(self.servers):
            self.doubts.settle(key)
        return True

    def absent(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        answers = self._send_to_all({key: replication.question(key) for key in keys})
        return frozenset(key for key, codes in answers.items() if set(codes.values()) == {404})

    def read(self, keys: Sequence[InstanceKey]) -> Mapping[InstanceKey, ObservedInstance]:
        """Ask the server to which single calls go, too. An instance that was written a moment ago
        may not be on every server yet. It is left to the single read, which notes that."""
        resting = {} if self.rests is None else self.rests.resting()
        first = next((name for name in self.servers if name not in resting), None)
        if first is None or first not in self._used:
            return {}
        server = self.servers[first]
        items = {key: replication.reading(key) for key in keys if key not in self.doubts}
        shown = self._send_to(first, items, server.read_instances) or {}
        now = self.clock.now()
        readings: dict[InstanceKey, ObservedInstance] = {}
        for key, instance in shown.items():
            if instance is None or instance.key != key:
                continue
            age = now - instance.last_dirty_timestamp / 1000
            if len(self.servers) == 1 or abs(age) >= replication.REPLICATION_SECONDS:
                readings[key] = instance
        return readings

    def register(self, items: Sequence[Dated]) -> list[Batched]:
        """Register each on all servers, then send heartbeats: a server answers 200 even if it
        rejected the instance."""
        with self._registering:
            answers = self._register_on(items, self.usable())
        done = {key for key, codes in answers.items() if set(codes.values()) == {200}}
        keys = [item.instance.key for item in items]
        if len(self.servers) > 1:
            self.doubts.partly.update(set(keys) - done)
        return [Batched.DONE if key in done else Batched.UNSETTLED for key in keys]

    def returned(self) -> bool:
        return not self._returned.isdisjoint(self._used)

    def lacking(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        names = [name for name in self.usable() if name in self._returned]
        heartbeats = {key: replication.heartbeat(key) for key in keys}
        found: set[InstanceKey] = set()
        answers = self.workers.each(lambda name: self._codes_of(name, heartbeats), names)
        for name, codes in zip(names, answers, strict=True):
            if codes is not None:
                self._returned.discard(name)
                lacked = {key for key, code in codes.items() if code == 404}
                for key in lacked:
                    self._lacking.setdefault(key, set()).add(name)
                found |= lacked
        return frozenset(found)

    def level(self, items: Sequence[Dated], *, ours: Ours) -> list[Batched]:
        """Register each on the servers that lack it, unless its status differs elsewhere, as by an
        override."""
        wanted = {item.instance.key: item for item in items}
        found: dict[InstanceKey, Batched] = {}
        for key, item in wanted.items():
            others = [name for name in self.usable() if name not in self._lacking.get(key, ())]
            copies = (self._read(name, key) for name in others)
            held = all(
                isinstance(one, ObservedInstance) and one.status is item.instance.status
                for one in copies
            )
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
                    stored = (
                        registered.last_dirty_timestamp
                        if isinstance(registered, ObservedInstance)
                        else 0
                    )
                    to_send.append(
                        item._replace(dirty_timestamp=max(item.dirty_timestamp, stored + 1))
                    )
            taken = self._register_on(to_send, [name])
            for key in (item.instance.key for item in to_send):
                if taken.get(key) != {name: 200}:
                    found[key] = Batched.UNSETTLED
        return [found[item.instance.key] for item in items]

    def cancel(self, keys: Sequence[InstanceKey], *, ours: Ours) -> list[Batched]:
        """Cancel each where it is ours. With several servers, each is read before; a single one was
        read by the caller.

        Right after a registration on one server nothing is cancelled: the other servers must get it
        before they lose what it replaces. Single calls to the first server are replicated in
        order."""
        if self.clock.monotonic() - self.doubts.last_posted < replication.REPLICATION_SECONDS:
            return [Batched.UNSETTLED] * len(keys)
        for key in keys:
            self.doubts.settle(key)
        results = self.workers.each(lambda name: self._cancel_on(name, keys, ours), self.usable())
        settled = [{result[key] for result in results} for key in keys]
        return [
            Batched.DONE if True in found and False not in found else Batched.UNSETTLED
            for found in settled
        ]

    def _cancel_on(
        self, name: str, keys: Sequence[InstanceKey], ours: Ours
    ) -> dict[InstanceKey, bool | None]:
        """Return whether each is absent, cancelled or another owner's on this server; None if the
        server is away."""
        there, unsettled = list(keys), set[InstanceKey]()
        if len(self.servers) > 1:
            registered = {key: self._read(name, key) for key in keys}
            there = [
                key
                for key, one in registered.items()
                if isinstance(one, ObservedInstance) and ours(one)
            ]
            unsettled = {key for key, one in registered.items() if one is Cause.NOT_READ}
        codes = self._codes_of(name, {key: replication.cancel(key) for key in there}) or {}
        unsettled.update(key for key in there if codes.get(key) not in (200, 404))
        otherwise = False if name in self._used else None
        return {key: otherwise if key in unsettled else True for key in keys}

    def _register_on(
        self, items: Sequence[Dated], names: Sequence[str]
    ) -> dict[InstanceKey, dict[str, int]]:
        """Register items; return the status of each one's heartbeat by server, or nothing if a
        server refused one."""
        registrations: dict[InstanceKey, bytes] = {}
        for item in items:
            with suppress(RegistryRejected):  # the single call reports it
                registrations[item.instance.key] = replication.register(item)
        heartbeats = {key: replication.heartbeat(key) for key in registrations}

        def send(name: str) -> Codes:
            taken = self._codes_of(name, registrations, may_refuse=True)
            if taken is None or any(code >= 400 for code in taken.values()):
                return None
            return self._codes_of(name, heartbeats)

        return self._answers(names, send)

    def _send_to_all(self, items: Mapping[InstanceKey, bytes]) -> dict[InstanceKey, dict[str, int]]:
        return self._answers(self.usable(), lambda name: self._codes_of(name, items))

    def _answers(
        self, names: Sequence[str], send: Callable[[str], Codes]
    ) -> dict[InstanceKey, dict[str, int]]:
        """Return the status of each item by server; nothing if a server that is not away gave no
        answer."""
        found: dict[InstanceKey, dict[str, int]] = {}
        for name, codes in zip(names, self.workers.each(send, names), strict=True):
            if codes is None and name in self._used:
                return {}
            for key, code in (codes or {}).items():
                found.setdefault(key, {})[name] = code
        return found

    def _codes_of(
        self, name: str, items: Mapping[InstanceKey, bytes], *, may_refuse: bool = False
    ) -> Codes:
        """Return the status of each item from one server."""
        return self._send_to(name, items, self.servers[name].replicate, may_refuse=may_refuse)

    def _send_to(
        self,
        name: str,
        items: Mapping[InstanceKey, bytes],
        send: Callable[[Sequence[bytes]], list[A]],
        *,
        may_refuse: bool = False,
    ) -> dict[InstanceKey, A] | None:
        """Return the answer to each item from one server. None without an answer, without time, if
        batches have ended, or if an item was refused, which makes the whole batch a 400."""
        written = list(items.values())
        answers: list[A] = []
        while left := replication.fitting(
            written[len(answers) : len(answers) + self._sizes.get(name, SIZE)]
        ):
            if self._is_over() or self.trouble is not None:
                return None
            try:
                answers += send(left)
            except RegistryUnavailable as error:
                if not self._shorten_batches(name, len(left), error):
                    self._leave_out(name, error)
                    return None
            except RegistryError as error:
                if not (may_refuse and isinstance(error, RegistryRejected)):
                    self._stop_batches(refused(error))
                return None
        if answers:
            self.silent.pop(name, None)
        return dict(zip(items, answers, strict=True))

    def _shorten_batches(self, name: str, number: int, error: RegistryUnavailable) -> bool:
        """If the server answers a single item, send it fewer at a time, or no more batches; return
        whether it does."""
        if number == 1 or self._is_over():
            return False
        try:
            probed(self.asked[name])
        except RegistryError:
            return False
        if number <= _FEWEST:
            why = str(error).removesuffix(".")
            self._stop_batches(
                f"{name} answers a batch of one item, but not a batch of {number} items ({why})."
            )
        elif number // 2 < self._sizes.get(name, SIZE):  # else another thread has shortened it
            self._sizes[name] = number // 2
            _log.warning(
                "Eureka server %s: reduced the batch size to %d: %s",
                name,
                number // 2,
                error,
            )
        return True

    def _read(self, name: str, key: InstanceKey) -> ObservedInstance | Cause | None:
        """Return the instance on this server; NOT_READ if it cannot be read now."""
        if name in self._used and not self._is_over():
            try:
                return self.servers[name].read_instance(key)
            except RegistryUnavailable as error:
                self._leave_out(name, error)
            except RegistryError:
                pass  # the single call reports it
        return Cause.NOT_READ

    def _is_over(self) -> bool:
        return self.limit.left() <= 0 or self.clock.stopping()

    def _leave_out(self, name: str, error: RegistryError) -> None:
        if self.limit.left() <= 0:
            return  # no time was left: the server is not at fault
        self._used.discard(name)
        self.silent.setdefault(name, (self.clock.monotonic(), str(error).removesuffix(".")))
        if self.rests is not None:
            self.rests.failed(name, error)

    def _stop_batches(self, why: str) -> None:
        if self.trouble is None:
            self.trouble = why
            _log.warning("%s %s", why, SINGLY)


def probed(server: EurekaClient) -> int:
    return server.replicate([replication.heartbeat(_PROBE)])[0]


def refused(error: RegistryError) -> str:
    said = str(error).removesuffix(".")
    if isinstance(error, RegistryDenied):
        fix = (
            "let the server's Spring Security allow /eureka/peerreplication/** like "
            "/eureka/apps/**."
        )
        return f"Batches are refused: {said}. If single writes work, {fix}"
    return f"Batches do not work: {said}{'' if said.endswith('?') else '.'}"
