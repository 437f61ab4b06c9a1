"""Batches of writes, sent to every Eureka server in parallel. `batches` finds out whether that is
safe."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias, TypeVar

from msgspec import Struct, field

from eurekube_sync.adapters.eureka import replication
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.eureka.peer import Peer, Silence
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

_FEWEST = 32  # a server that answers one item, but does not answer so few items, gets no batches
_PROBE = InstanceKey("EUREKUBE-SYNC-PROBE", "eurekube-sync-probe")
"""No instance has this id, so the answer to its heartbeat must be 404."""
_REGISTERING = 2
"""The most batches of registrations at a time. More of them are no faster, because the server's
processor limits them, but delay other clients [real]."""
SINGLY = "Until batches work, each instance is renewed by its own call"
Codes: TypeAlias = dict[InstanceKey, int]
A = TypeVar("A")
Ours: TypeAlias = Callable[[ObservedInstance], bool]
_log = logging.getLogger(__name__)


class EverywhereBatches(Struct, kw_only=True):
    """The port `Batches`: sends each batch to all servers that can be reached. Safe in several
    threads, because each change of a set is a single one.

    A server that fails is left out until the next list. But if it still answers a single item, it
    gets half as many at a time, because our leases would expire on a server that is left out again
    and again. After an answer of an unknown form, `trouble` says so, and no more batches are sent.

    An instance that may differ between servers is **in doubt**. It is renewed singly until all
    copies have the same timestamp: a server replicates a single renewal with the timestamp, and
    servers that differ exchange the newer copy (`PeerEurekaNode.heartbeat`). A heartbeat in a batch
    has no timestamp.
    """

    size = replication.SIZE
    peers: Sequence[Peer]  # in the order of preference
    clock: Clock
    limit: TimeLimit
    workers: Workers
    trouble: str | None = None
    posted: set[InstanceKey] = field(default_factory=set)
    """In doubt: written to one server, and perhaps not replicated yet."""
    partly: set[InstanceKey] = field(default_factory=set)
    """A batch with their registration failed, so some servers may lack them."""
    _registering: threading.Semaphore = field(
        default_factory=lambda: threading.Semaphore(_REGISTERING)
    )

    def forget_failures(self) -> None:
        """Forget failures, and double the size of short batches, when all servers are asked
        again."""
        self.trouble = None
        for peer in self.peers:
            peer.silent = None
            peer.batch_size = min(2 * peer.batch_size, replication.SIZE)

    def use(self, admitted: Collection[Peer]) -> None:
        """Use these servers until the next list. A server that was not used before may lack
        instances."""
        for peer in self.peers:
            was_in_use = peer.in_use
            peer.in_use = peer in admitted
            if self.are_several:  # a single server's list shows what it lost
                peer.returned = peer.in_use and (peer.returned or not was_in_use)
            peer.lacking = set()

    def usable(self) -> list[Peer]:
        """Return the servers that get batches, in the order of preference."""
        return [peer for peer in self.peers if peer.in_use]

    @property
    def are_several(self) -> bool:
        return len(self.peers) > 1

    def note_posted(self, key: InstanceKey) -> None:
        """Note that a single call has registered an instance on one server."""
        self.partly.discard(key)
        if self.are_several:
            self.posted.add(key)

    def end_partly(self, key: InstanceKey) -> bool:
        """Remove an instance from `partly`; return whether it was in there."""
        was = key in self.partly
        self.partly.discard(key)
        return was

    def settle(self, key: InstanceKey) -> None:
        """Forget the doubts about an instance that is the same on all servers, or cancelled."""
        self.posted.discard(key)
        self.partly.discard(key)
        for peer in self.peers:
            peer.differing.discard(key)

    def _is_in_doubt(self, key: InstanceKey) -> bool:
        if key in self.posted:
            return True
        return any(key in peer.differing for peer in self.peers)

    def renew(self, keys: Sequence[InstanceKey]) -> list[Batched]:
        """Send a heartbeat of each to all servers, unless its copies differ: those are renewed by
        single calls."""
        heartbeats: dict[InstanceKey, bytes] = {}
        for key in keys:
            if not self._is_in_doubt(key) or self._is_alike(key):
                heartbeats[key] = replication.heartbeat(key)
        answers = self._send_to_all(heartbeats)
        return [self._renewed(key, answers.get(key, {})) for key in keys]

    def _renewed(self, key: InstanceKey, codes: Mapping[Peer, int]) -> Batched:
        """Return what the servers' answers to a heartbeat mean.

        | answers          | the instance is                                     |
        |------------------|-----------------------------------------------------|
        | 200              | renewed everywhere                                  |
        | 404              | nowhere                                             |
        | 200 and 404      | registered on some servers; each notes if it lacks it |
        | others, or none  | to be renewed by a single call                      |
        """
        distinct = set(codes.values())
        if distinct == {200}:
            self.partly.discard(key)
            return Batched.DONE
        if distinct == {404}:
            return Batched.ABSENT
        if distinct != {200, 404}:
            return Batched.UNSETTLED
        for peer in self.peers:
            peer.lacking.discard(key)
            if codes.get(peer) == 404:
                peer.lacking.add(key)
        return Batched.PARTLY

    def _is_alike(self, key: InstanceKey) -> bool:
        """Return whether no two copies differ, and end the doubt if all servers could be read."""
        copies = [self._read(peer, key) for peer in self.usable()]
        timestamps = set()
        for copy in copies:
            if isinstance(copy, ObservedInstance):
                timestamps.add(copy.last_dirty_timestamp)
        if len(timestamps) > 1:
            return False
        if Cause.NOT_READ not in copies and len(copies) == len(self.peers):
            self.settle(key)
        return True

    def absent(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        answers = self._send_to_all({key: replication.question(key) for key in keys})
        return frozenset(key for key, codes in answers.items() if set(codes.values()) == {404})

    def read(self, keys: Sequence[InstanceKey]) -> Mapping[InstanceKey, ObservedInstance]:
        """Ask the server to which single calls go, too. An instance that was written a moment ago
        may not be on every server yet. It is left to the single read, which notes that."""
        working = [peer for peer in self.peers if not peer.is_resting]
        if not working or not working[0].in_use:
            return {}
        items = {key: replication.reading(key) for key in keys if not self._is_in_doubt(key)}
        shown = self._send_to(working[0], items, working[0].client.read_instances) or {}
        now = self.clock.now()
        readings: dict[InstanceKey, ObservedInstance] = {}
        for key, instance in shown.items():
            if instance is None or instance.key != key:
                continue
            age = now - instance.last_dirty_timestamp / 1000
            if not self.are_several or abs(age) >= replication.REPLICATION_SECONDS:
                readings[key] = instance
        return readings

    def register(self, items: Sequence[Dated]) -> list[Batched]:
        """Register each on all servers, then send heartbeats: a server answers 200 even if it
        rejected the instance."""
        with self._registering:
            answers = self._register_on(items, self.usable())
        results: list[Batched] = []
        for item in items:
            key = item.instance.key
            done = set(answers.get(key, {}).values()) == {200}
            results.append(Batched.DONE if done else Batched.UNSETTLED)
            if not done and self.are_several:
                self.partly.add(key)
        return results

    def returned(self) -> bool:
        return any(peer.returned for peer in self.usable())

    def lacking(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        returned = [peer for peer in self.usable() if peer.returned]
        heartbeats = {key: replication.heartbeat(key) for key in keys}
        lacked: set[InstanceKey] = set()
        answers = self.workers.each(lambda peer: self._codes_of(peer, heartbeats), returned)
        for peer, codes in zip(returned, answers, strict=True):
            if codes is None:
                continue
            peer.returned = False
            for key, code in codes.items():
                if code == 404:
                    peer.lacking.add(key)
                    lacked.add(key)
        return frozenset(lacked)

    def level(self, items: Sequence[Dated], *, ours: Ours) -> list[Batched]:
        """Register each on the servers that lack it, unless its status differs elsewhere, as by an
        override."""
        wanted = {item.instance.key: item for item in items}
        results = {key: self._held_elsewhere(item) for key, item in wanted.items()}
        for peer in self.usable():
            to_send: list[Dated] = []
            for key, item in wanted.items():
                if key not in peer.lacking or results[key] is Batched.CONFLICT:
                    continue  # nearly always
                # It may have come meanwhile, also as another owner's.
                registered = self._read(peer, key)
                if isinstance(registered, Cause):
                    results[key] = Batched.UNSETTLED
                elif registered is not None and not ours(registered):
                    results[key] = Batched.CONFLICT
                elif results[key] is Batched.DONE:
                    to_send.append(_newer(item, registered))
            taken = self._register_on(to_send, [peer])
            for item in to_send:
                if taken.get(item.instance.key) != {peer: 200}:
                    results[item.instance.key] = Batched.UNSETTLED
        return [results[item.instance.key] for item in items]

    def _held_elsewhere(self, item: Dated) -> Batched:
        """Return DONE if all servers that do not lack it hold it with this status, else PARTLY."""
        key = item.instance.key
        for peer in [peer for peer in self.usable() if key not in peer.lacking]:
            copy = self._read(peer, key)
            if not isinstance(copy, ObservedInstance) or copy.status is not item.instance.status:
                return Batched.PARTLY
        return Batched.DONE

    def cancel(self, keys: Sequence[InstanceKey], *, ours: Ours) -> list[Batched]:
        """Cancel each where it is ours. With several servers, each is read before; a single one was
        read by the caller.

        Right after a registration on one server nothing is cancelled: the other servers must get it
        before they lose what it replaces. Single calls to the first server are replicated in
        order."""
        if self.are_several and any(peer.has_just_registered for peer in self.peers):
            return [Batched.UNSETTLED] * len(keys)
        for key in keys:
            self.settle(key)
        ends = self.workers.each(lambda peer: self._cancel_on(peer, keys, ours), self.usable())
        results: list[Batched] = []
        for key in keys:
            settled = {of_peer.get(key) for of_peer in ends}
            is_done = True in settled and False not in settled
            results.append(Batched.DONE if is_done else Batched.UNSETTLED)
        return results

    def _cancel_on(
        self, peer: Peer, keys: Sequence[InstanceKey], ours: Ours
    ) -> dict[InstanceKey, bool]:
        """Return whether each is absent, cancelled or another owner's on this server; nothing of
        the others if the server is away."""
        settled: dict[InstanceKey, bool] = {}
        to_cancel: list[InstanceKey] = []
        for key in keys:
            # A read in a batch is a renewal. It would prolong what another owner registered here.
            copy = self._read(peer, key) if self.are_several else None
            if not self.are_several or (isinstance(copy, ObservedInstance) and ours(copy)):
                to_cancel.append(key)
            elif copy is not Cause.NOT_READ:
                settled[key] = True
        cancels = {key: replication.cancel(key) for key in to_cancel}
        codes = self._codes_of(peer, cancels) or {}
        for key, code in codes.items():
            if code in (200, 404):
                settled[key] = True
        if peer.in_use:
            for key in keys:
                settled.setdefault(key, False)
        return settled

    def _register_on(
        self, items: Sequence[Dated], peers: Sequence[Peer]
    ) -> dict[InstanceKey, dict[Peer, int]]:
        """Register items; return the status of each one's heartbeat by server, or nothing if a
        server refused one."""
        registrations: dict[InstanceKey, bytes] = {}
        for item in items:
            with suppress(RegistryRejected):  # the single call reports it
                registrations[item.instance.key] = replication.register(item)
        heartbeats = {key: replication.heartbeat(key) for key in registrations}

        def send(peer: Peer) -> Codes | None:
            # One instance that is refused makes the whole batch a 400. Single calls find it.
            taken = self._codes_of(peer, registrations, may_refuse=True)
            if taken is None or any(code >= 400 for code in taken.values()):
                return None
            return self._codes_of(peer, heartbeats)

        return self._answers(peers, send)

    def _send_to_all(
        self, items: Mapping[InstanceKey, bytes]
    ) -> dict[InstanceKey, dict[Peer, int]]:
        return self._answers(self.usable(), lambda peer: self._codes_of(peer, items))

    def _answers(
        self, peers: Sequence[Peer], send: Callable[[Peer], Codes | None]
    ) -> dict[InstanceKey, dict[Peer, int]]:
        """Return the status of each item by server; nothing if a server that is not away gave no
        answer."""
        answers: dict[InstanceKey, dict[Peer, int]] = {}
        for peer, codes in zip(peers, self.workers.each(send, peers), strict=True):
            if codes is None and peer.in_use:
                return {}
            for key, code in (codes or {}).items():
                answers.setdefault(key, {})[peer] = code
        return answers

    def _codes_of(
        self, peer: Peer, items: Mapping[InstanceKey, bytes], *, may_refuse: bool = False
    ) -> Codes | None:
        """Return the status of each item from one server."""
        return self._send_to(peer, items, peer.client.replicate, may_refuse=may_refuse)

    def _send_to(
        self,
        peer: Peer,
        items: Mapping[InstanceKey, bytes],
        send: Callable[[Sequence[bytes]], list[A]],
        *,
        may_refuse: bool = False,
    ) -> dict[InstanceKey, A] | None:
        """Return the answer to each item from one server. None without an answer, without time, if
        batches have ended, or if an item was refused, which makes the whole batch a 400."""
        written = list(items.values())
        answers: list[A] = []
        while len(answers) < len(written):
            left = written[len(answers) : len(answers) + peer.batch_size]
            batch = replication.fitting(left)
            if self._is_over() or self.trouble is not None:
                return None
            # A server that is away takes the time of a timeout, so it is left out at once. An
            # answer that is not Eureka's means that no batch can be trusted.
            try:
                answers += send(batch)
            except RegistryUnavailable as error:
                if not self._shorten_batches(peer, len(batch), error):
                    self._leave_out(peer, error)
                    return None
            except RegistryError as error:
                if not (may_refuse and isinstance(error, RegistryRejected)):
                    self._stop_batches(refused(error))
                return None
        if answers:
            peer.silent = None
        return dict(zip(items, answers, strict=True))

    def _shorten_batches(self, peer: Peer, number: int, error: RegistryUnavailable) -> bool:
        """If the server answers a single item, send it fewer at a time, or no more batches; return
        whether it does."""
        if number == 1 or self._is_over():
            return False
        # A single item tells whether the batch was too long for it, or it is away.
        try:
            probed(peer.asked)
        except RegistryError:
            return False
        if number <= _FEWEST:
            self._stop_batches(
                f"{peer.url} answers a batch of one item, but not a batch of {number} items "
                f"({error})"
            )
            return True
        half = number // 2
        if half < peer.batch_size:  # else another thread has shortened it
            peer.batch_size = half
            _log.warning(
                "Eureka server %s: reduced the batch size to %d: %s", peer.url, half, error
            )
        return True

    def _read(self, peer: Peer, key: InstanceKey) -> ObservedInstance | Cause | None:
        """Return the instance on this server; NOT_READ if it cannot be read now."""
        if peer.in_use and not self._is_over():
            try:
                return peer.client.read_instance(key)
            except RegistryUnavailable as error:
                self._leave_out(peer, error)
            except RegistryError:
                pass  # the single call reports it
        return Cause.NOT_READ

    def _is_over(self) -> bool:
        return self.limit.left() <= 0 or self.clock.stopping()

    def _leave_out(self, peer: Peer, error: RegistryError) -> None:
        if self.limit.left() <= 0:
            return  # no time was left: the server is not at fault
        peer.in_use = False
        if peer.silent is None:
            peer.silent = Silence(self.clock.monotonic(), str(error))
        if self.are_several:  # a single server does not rest: no other one could be called
            peer.failed(error)

    def _stop_batches(self, why: str) -> None:
        if self.trouble is None:
            self.trouble = why
            _log.warning("%s. %s", why, SINGLY)


def _newer(item: Dated, registered: ObservedInstance | None) -> Dated:
    """Return the registration with a timestamp that replaces what is registered."""
    stored = registered.last_dirty_timestamp if registered is not None else 0
    return item._replace(dirty_timestamp=max(item.dirty_timestamp, stored + 1))


def probed(server: EurekaClient) -> int:
    return server.replicate([replication.heartbeat(_PROBE)])[0]


def refused(error: RegistryError) -> str:
    if not isinstance(error, RegistryDenied):
        return f"batches do not work: {error}"
    return (
        f"batches are refused: {error}. If single writes work, let the server's Spring Security "
        "allow /eureka/peerreplication/** like /eureka/apps/**"
    )
