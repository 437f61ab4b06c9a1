"""Many writes in one call, to every Eureka server side by side, and what the servers' answers mean together.

`batches` finds out whether that is safe at all, `batch_calls` makes the calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence

from eurekube_sync.adapters.eureka import replication
from eurekube_sync.adapters.eureka.batch_calls import SIZE, UNREAD, BatchCalls
from eurekube_sync.adapters.eureka.doubts import Doubts
from eurekube_sync.model.errors import RegistryRejected
from eurekube_sync.model.eureka import Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.ports import Batched, Clock, Dated, Workers

_REGISTERING = 2
"""Batches of registrations that are under way at a time. With more another client waits longer for an answer, and the
registrations take as long: they are limited by the server's processor [real]."""


class EverywhereBatches:
    """The `Batches` of several servers, or of one: each goes to all that can be reached, side by side."""

    size = SIZE

    def __init__(self, calls: BatchCalls, *, clock: Clock, workers: Workers, doubts: Doubts) -> None:
        self._calls = calls
        self._clock = clock
        self._workers = workers
        self._doubts = doubts
        self._registering = threading.BoundedSemaphore(_REGISTERING)
        self._lacking: dict[InstanceKey, frozenset[str]] = {}
        self._returned: frozenset[str] = frozenset()
        """Servers that missed batches, or may have, and were not asked since what they lack."""

    def begin(self, admitted: Iterable[str]) -> None:
        """With a new list: use these servers, and forget what was before; but those that were not used until now may
        lack what came meanwhile."""
        before = self._calls.usable()
        now = self._calls.begin(admitted)
        if self._calls.several:  # what a single one has lost, its list shows
            self._returned = (self._returned | now.difference(before)) & now
        self._lacking = {}

    def renew(self, keys: Sequence[InstanceKey]) -> list[Batched]:
        """A heartbeat of each, everywhere. What is in doubt is looked at, and left to a single call if it differs."""
        sure = [key for key in keys if key not in self._doubts or self._alike(key)]
        codes = self._calls.everywhere([replication.heartbeat(key) for key in sure])
        found = dict.fromkeys(keys, Batched.UNSETTLED)
        for index, key in enumerate(sure):
            of_key = {name: one[index] for name, one in codes.items()}
            found[key] = _renewed(of_key.values())
            if found[key] is Batched.DONE:
                self._doubts.end_partly(key)
            if found[key] is Batched.PARTLY:
                self._lacking[key] = frozenset(name for name, code in of_key.items() if code == 404)
        return [found[key] for key in keys]

    def absent(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        """Those of which each server that can be reached says 404."""
        codes = self._calls.everywhere([replication.question(key) for key in keys])
        return frozenset(key for key, *of_key in zip(keys, *codes.values(), strict=False) if {*of_key} == {404})

    def _alike(self, key: InstanceKey) -> bool:
        """Whether all servers hold the same, which ends the doubt. One that lacks it shows in the heartbeat."""
        copies = [self._calls.read(name, key) for name in self._calls.usable()]
        ages = {copy.last_dirty_timestamp for copy in copies if isinstance(copy, ObservedInstance)}
        if len(ages) > 1:
            return False
        if UNREAD not in copies and len(copies) == self._calls.number:
            self._doubts.settle(key)
        return True

    def register(self, items: Sequence[Dated]) -> list[Batched]:
        """A registration of each, everywhere, then a heartbeat: a server says 200 of one that it has rejected, too."""
        with self._registering:
            taken = self._registered(items, self._calls.usable())
        done = [bool(codes) and all(code == 200 for code in codes) for codes in taken]
        for item, settled in zip(items, done, strict=True):
            if not settled and self._calls.several:
                self._doubts.partly(item.instance.key)
        return [Batched.DONE if settled else Batched.UNSETTLED for settled in done]

    def returned(self) -> bool:
        """Whether a server is used again, and was not asked yet what it lacks."""
        return bool(self._returned.intersection(self._calls.usable()))

    def lacking(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        """A heartbeat of each to those servers alone: what they lack of these."""
        names = [name for name in self._calls.usable() if name in self._returned]
        heartbeats = [replication.heartbeat(key) for key in keys]
        found: set[InstanceKey] = set()
        answers = self._workers.each(lambda name: self._calls.sent(name, heartbeats), names)
        for name, codes in zip(names, answers, strict=True):
            if codes is None:
                continue
            self._returned -= {name}
            lacked = [key for key, code in zip(keys, codes, strict=True) if code == 404]
            self._lacking.update({key: self._lacking.get(key, frozenset()) | {name} for key in lacked})
            found.update(lacked)
        return frozenset(found)

    def level(self, items: Sequence[Dated], *, ours: Callable[[ObservedInstance], bool]) -> list[Batched]:
        """What a server lacks, to that server alone. Not what a person overrode where it is: a list may hide that, and
        it would come up."""
        found = [Batched.DONE if self._holds_as_wanted(item.instance) else Batched.PARTLY for item in items]
        for name in self._calls.usable():
            to_send: list[tuple[int, Dated]] = []
            for index, item in enumerate(items):
                if name not in self._lacking.get(item.instance.key, ()) or found[index] is Batched.CONFLICT:
                    continue
                registered = self._calls.read(name, item.instance.key)
                if registered is UNREAD:
                    found[index] = Batched.UNSETTLED
                elif isinstance(registered, ObservedInstance) and not ours(registered):
                    found[index] = Batched.CONFLICT
                elif found[index] is Batched.DONE:
                    stored = registered.last_dirty_timestamp if isinstance(registered, ObservedInstance) else 0
                    to_send.append((index, item._replace(dirty_timestamp=max(item.dirty_timestamp, stored + 1))))
            taken = self._registered([item for _, item in to_send], [name])
            for (index, _), codes in zip(to_send, taken, strict=True):
                if codes != [200]:
                    found[index] = Batched.UNSETTLED
        return found

    def _holds_as_wanted(self, wanted: Instance) -> bool:
        """Whether all servers that do not lack it hold it with this status."""
        lacking = self._lacking.get(wanted.key, frozenset())
        copies = (self._calls.read(name, wanted.key) for name in self._calls.usable() if name not in lacking)
        return all(isinstance(copy, ObservedInstance) and copy.status is wanted.status for copy in copies)

    def cancel(self, keys: Sequence[InstanceKey], *, ours: Callable[[ObservedInstance], bool]) -> list[Batched]:
        """A cancel of each wherever it is ours. A single server has been read by the caller; of several each one is.

        None right after a registration on one server alone: the server hands it on a moment later, and what it replaces
        must not be cancelled on the others before. With single calls the first server hands on both, in order."""
        if self._clock.monotonic() - self._doubts.last_posted < replication.REPLICATION_SECONDS:
            return [Batched.UNSETTLED] * len(keys)
        for key in keys:
            self._doubts.settle(key)
        names = self._calls.usable()
        gone = self._workers.each(lambda name: self._cancelled(name, keys, ours), names)
        of_each = [{one[index] for one in gone} for index in range(len(keys))]
        return [Batched.DONE if True in found and False not in found else Batched.UNSETTLED for found in of_each]

    def _cancelled(
        self, name: str, keys: Sequence[InstanceKey], ours: Callable[[ObservedInstance], bool]
    ) -> list[bool | None]:
        """Whether each is settled on this server: cancelled, or another owner's. None where the server is away."""
        there = list(range(len(keys)))
        settled: list[bool] = [True] * len(keys)
        if self._calls.several:
            registered = [self._calls.read(name, key) for key in keys]
            settled = [one is not UNREAD for one in registered]
            there = [i for i in there if isinstance(one := registered[i], ObservedInstance) and ours(one)]
        answered = self._calls.sent(name, [replication.cancel(keys[index]) for index in there])
        for place, index in enumerate(there):
            settled[index] = answered is not None and answered[place] in (200, 404)
        return [True if one else None if name in self._calls.left_out else False for one in settled]

    def _registered(self, items: Sequence[Dated], names: Sequence[str]) -> list[list[int]]:
        """For each item the answers to its heartbeat on each of these servers that could be reached; none where a
        server did not take it, or it cannot be sent."""
        written: list[bytes | None] = []
        for item in items:
            try:
                written.append(replication.register(item))
            except RegistryRejected:  # the single call says why
                written.append(None)
        places = [index for index, one in enumerate(written) if one is not None]
        registrations = [one for one in written if one is not None]
        heartbeats = [replication.heartbeat(items[index].instance.key) for index in places]

        def send(name: str) -> list[int] | None:
            taken = self._calls.sent(name, registrations, may_refuse=True)
            if taken is None or any(code >= 400 for code in taken):
                return None
            return self._calls.sent(name, heartbeats)

        found: list[list[int]] = [[] for _ in items]
        for name, answers in zip(names, self._workers.each(send, names), strict=True):
            if answers is None and name not in self._calls.left_out:
                return [[] for _ in items]
            for index, code in zip(places, answers or [], strict=False):
                found[index].append(code)
        return found


def _renewed(codes: Collection[int]) -> Batched:
    found = set(codes)
    if found == {200}:
        return Batched.DONE
    if found == {404}:
        return Batched.ABSENT
    return Batched.PARTLY if found == {200, 404} else Batched.UNSETTLED
