"""Many writes in one call, to every Eureka server: when that is safe, and what the servers' answers mean together.

A batch takes the way of Eureka's own replication, which no server hands on. So it is safe only where every server that
replicates is among ours, which the servers themselves are asked; else each write goes singly to one of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol
from urllib.parse import urlsplit

from eurekube_sync.deadline import TimeLimit
from eurekube_sync.errors import RegistryDenied, RegistryError, RegistryRejected, RegistryUnavailable
from eurekube_sync.eureka import replication
from eurekube_sync.eureka.doubts import Doubts
from eurekube_sync.eureka.rests import Rests
from eurekube_sync.model import Batching, Complete, Instance, InstanceKey, ObservedInstance, Source
from eurekube_sync.ports import Batched, Batches, Clock, Dated, Registry, Workers

SIZE = 250
"""The most items of a batch, as servers send them to each other (`PeerEurekaNode.MAX_BATCHING_DELAY_MS` and beside)."""
ASK_SECONDS = 480.0
"""The question whether batches are safe is asked again once in each such stretch of the wall clock."""
TROUBLED_SECONDS = 60.0
"""A server whose answer spoke against batches is asked so often: it may have been about to start, or be mended."""
AWAY_PART = 0.4
"""After a server has been away for so much of a lease's duration, 2 minutes by default, each write goes singly to one
that tells the others: it may be away from us alone, and what it holds of ours would lapse there. A renewed lease lasts
twice its duration."""
_FEWEST = 32
"""A server that has no answer even to so few items at a time, and still answers one, gets no batches."""
_PROBE = InstanceKey("EUREKUBE-SYNC-PROBE", "eurekube-sync-probe")
"""Nothing has this id: a heartbeat for it changes nothing, and must come back as a 404."""
_SINGLY = "Each instance is renewed by a call of its own."
_log = logging.getLogger(__name__)


class BatchMode(StrEnum):
    """`--eureka-batch`."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class Server(Protocol):
    """One Eureka server, as far as batches need it. Raises a RegistryError."""

    def replicate(self, body: bytes, *, items: int) -> tuple[int, ...]:
        """One status code for each item of a body of `replication`."""

    def server_status(self) -> replication.ServerStatus:
        """Who it is and which replicas it has."""

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        """One instance, uncached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    """What a server's answers said. `trouble` None: batches to it are safe."""

    instance_id: str = ""
    replicas: frozenset[str] = frozenset()
    trouble: str | None = None


class BatchingRegistry:
    """A `Registry` that also writes in batches where that is safe; it is asked anew with the lists, about every 8
    minutes, of a server that spoke against it each minute, and whenever one comes back.

    All else is `inner`'s. `servers` by printable address, those of `inner`; `asked` are the same with short timeouts,
    for one that hangs must not eat the time of a list. `rests`, None where there is one server, and `doubts` are shared
    with `inner`. `dry_run` asks nothing that is a write in form, and then nothing is written in batches.
    """

    def __init__(
        self,
        inner: Registry,
        servers: Mapping[str, Server],
        *,
        asked: Mapping[str, Server] | None = None,
        mode: BatchMode,
        clock: Clock,
        limit: TimeLimit,
        workers: Workers,
        rests: Rests | None = None,
        doubts: Doubts | None = None,
        dry_run: bool = False,
        ask_seconds: float = ASK_SECONDS,
        lease_duration: float = 300,
    ) -> None:
        self._inner = inner
        self._asked = dict(asked or servers)
        self._required = mode is BatchMode.ON
        self._clock = clock
        self._workers = workers
        self._rests = rests
        self._dry_run = dry_run
        self._ask_seconds = ask_seconds
        self._away_seconds = AWAY_PART * lease_duration
        self._stretch: int | None = None
        self._asked_troubled = 0.0
        """When those were asked last whose answer spoke against batches, in monotonic seconds."""
        self._verdicts: dict[str, _Verdict] = {}
        self._lost: dict[str, tuple[float, str]] = {}
        """Servers that did not answer when they were last called, since when (monotonic), and why."""
        self._told: Batching | None = None
        self._doubts = doubts if doubts is not None else Doubts()
        self._batches = EverywhereBatches(
            servers,
            asked=self._asked,
            clock=clock,
            limit=limit,
            workers=workers,
            rests=rests,
            doubts=self._doubts,
        )

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        """The list; then the servers are asked that have not said yet whether batches are safe, or were away."""
        away = self._away()
        listed = self._inner.list_instances()
        just_failed = self._away() - away
        if isinstance(listed, Complete) or self._verdicts:
            self._consult(away, just_failed)
        return listed

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        """One instance, uncached."""
        return self._inner.read_instance(key)

    def register(self, instance: Instance, *, dirty_timestamp: int) -> None:
        """POST. Whether the other servers have heard of it is looked at when it is renewed."""
        self._inner.register(instance, dirty_timestamp=dirty_timestamp)
        if len(self._asked) > 1:
            self._doubts.posted(instance.key)

    def renew(self, key: InstanceKey) -> bool:
        """PUT."""
        return self._inner.renew(key)

    def cancel(self, key: InstanceKey, *, ours: Callable[[ObservedInstance], bool]) -> bool:
        """DELETE."""
        self._doubts.settle(key)
        return self._inner.cancel(key, ours=ours)

    def batches(self) -> Batches | None:
        """While they are safe, and every answer had the known form."""
        if self._told is None or not self._told.on or self._dry_run:
            return None
        return self._batches if self._batches.trouble is None and self._batches.usable() else None

    def batching(self) -> Batching:
        """What was found."""
        trouble = self._batches.trouble
        if trouble is not None:
            return Batching(on=False, why=f"{trouble} {_SINGLY}")
        return self._told or Batching(on=False, why="No Eureka server has said yet whether batches are safe.")

    def unreached(self) -> tuple[str, ...]:
        """Of the single calls."""
        return self._inner.unreached()

    def _away(self) -> frozenset[str]:
        return self._rests.down() if self._rests is not None else frozenset()

    def _consult(self, away: frozenset[str], just_failed: frozenset[str]) -> None:
        stretch = int(self._clock.now() // self._ask_seconds)
        everybody = stretch != self._stretch
        self._stretch = stretch
        now = self._clock.monotonic()
        called = set(self._asked) if everybody else {*away, *self._lost, *(self._asked.keys() - self._verdicts)}
        if everybody or now - self._asked_troubled >= TROUBLED_SECONDS:
            called |= {name for name, verdict in self._verdicts.items() if verdict.trouble is not None}
            self._asked_troubled = now
        due = [name for name in self._asked if name in called - just_failed]
        if everybody:
            self._batches.anew()
        for name, silence in self._batches.silent.items():
            self._lost.setdefault(name, silence)
        failed = dict.fromkeys(just_failed, "its list could not be had")
        for name, answer in zip(due, self._workers.each(self._ask, due), strict=True):
            if isinstance(answer, _Verdict):
                self._verdicts[name] = answer
                if name not in self._batches.silent:
                    self._lost.pop(name, None)
            else:
                failed[name] = str(answer).removesuffix(".")
        now = self._clock.monotonic()
        for name, why in failed.items():
            self._lost[name] = (self._lost[name][0] if name in self._lost else now), why
            self._batches.silent.pop(name, None)  # it was really away: when it is back, it begins anew
        safe = [name for name, verdict in self._verdicts.items() if verdict.trouble is None and name not in failed]
        self._batches.begin(safe)
        self._tell(self._judged(now))

    def _ask(self, name: str) -> _Verdict | RegistryUnavailable:
        """What the server says, or why it says nothing now."""
        verdict = _Verdict()
        try:
            if not self._required:
                verdict = self._question(name)
            if verdict.trouble is None and not self._dry_run:
                codes = _probed(self._asked[name])
                if codes != (404,):
                    trouble = f"{name} answered a batch of one unknown instance with {codes[0]} instead of 404."
                    verdict = replace(verdict, trouble=trouble)
        except RegistryUnavailable as error:
            return error
        except RegistryError as error:
            verdict = _Verdict(trouble=refused(error))
        if self._rests is not None:
            self._rests.came_back(name)
        return verdict

    def _question(self, name: str) -> _Verdict:
        try:
            status = self._asked[name].server_status()
        except RegistryUnavailable:
            raise
        except RegistryError as error:
            told = str(error).removesuffix(".")
            return _Verdict(
                trouble=f"{name} does not say which replicas it has ({told}); if all of them are in --eureka-url, "
                "--eureka-batch on does without the question."
            )
        ours = {_place(one) for one in self._asked}
        replicas = {_place(one): one for one in status.replicas}
        if _place(name) in replicas:
            return _Verdict(
                trouble=f"{name} names the very address we call it by as its replica, so it may be one of many behind "
                "a load balancer: give each server's own address as --eureka-url."
            )
        strange = sorted(url for place, url in replicas.items() if place not in ours)
        if strange:
            return _Verdict(
                trouble=f"{name} replicates to {', '.join(strange)}, which --eureka-url does not name: a batch would "
                "not reach it; give the address of every server, written as the servers name each other."
            )
        return _Verdict(instance_id=status.instance_id, replicas=frozenset(status.replicas))

    def _judged(self, now: float) -> Batching:
        for verdict in self._verdicts.values():
            if verdict.trouble is not None:
                return Batching(on=False, why=f"{verdict.trouble} {_SINGLY}")
        for name, (since, why) in self._lost.items() if len(self._asked) > 1 or not self._verdicts else ():
            if name not in self._verdicts or now - since >= self._away_seconds:
                told = f"{name} does not answer ({why}), and a batch would reach it through no other server."
                return Batching(on=False, why=f"{told} {_SINGLY}")
        selves = [(one.instance_id, one.replicas) for one in self._verdicts.values() if one.instance_id]
        twice = next((name for name, replicas in selves if selves.count((name, replicas)) > 1), None)
        if twice is not None:
            return Batching(
                on=False,
                why=f"Two addresses of --eureka-url lead to one server, {twice}: give each server's own address, once. "
                f"{_SINGLY}",
            )
        number = len(self._asked)
        where = f"to each of {number} Eureka servers" if number > 1 else "to the Eureka server"
        because = "--eureka-batch is on" if self._required else "all replicas that the servers name are known"
        return Batching(on=True, why=f"Renewals go {where} in batches of {SIZE}: {because}.")

    def _tell(self, found: Batching) -> None:
        if self._told is None or self._told != found:
            level = logging.WARNING if self._required and not found.on else logging.INFO
            _log.log(level, "%s", found.why)
        self._told = found


class EverywhereBatches:
    """The `Batches` of several servers, or of one: each goes to all that can be reached, side by side.

    A server that fails is left out until the next list; but one that still answers a single item is too slow for so
    many, and gets half as many at a time: left out of batch after batch, it would let our leases lapse. When an answer
    has not the known form, `trouble` says so and nothing more is sent in batches.
    """

    size = SIZE

    def __init__(
        self,
        servers: Mapping[str, Server],
        *,
        asked: Mapping[str, Server],
        clock: Clock,
        limit: TimeLimit,
        workers: Workers,
        rests: Rests | None,
        doubts: Doubts,
    ) -> None:
        self._servers = dict(servers)
        self._asked = dict(asked)
        self._clock = clock
        self._limit = limit
        self._workers = workers
        self._rests = rests
        self._doubts = doubts
        self._admitted: frozenset[str] = frozenset()
        self._left_out: set[str] = set()
        self._lacking: dict[InstanceKey, frozenset[str]] = {}
        self._sizes: dict[str, int] = {}
        """How many items at a time a server gets that had no answer to more."""
        self.trouble: str | None = None
        self.silent: dict[str, tuple[float, str]] = {}
        """Servers that have answered no batch since their last one failed: since when (monotonic), and why."""

    def anew(self) -> None:
        """All servers are asked again: forget what went wrong, and try longer batches."""
        self.trouble = None
        self.silent.clear()
        self._sizes = {name: 2 * size for name, size in self._sizes.items() if 2 * size < SIZE}

    def begin(self, admitted: Iterable[str]) -> None:
        """With a new list: use these servers, and forget what was before."""
        self._admitted = frozenset(admitted)
        self._left_out = set()
        self._lacking = {}

    def usable(self) -> list[str]:
        """The servers that a batch goes to, the preferred one first."""
        return [name for name in self._servers if name in self._admitted and name not in self._left_out]

    def renew(self, keys: Sequence[InstanceKey]) -> list[Batched]:
        """A heartbeat of each, everywhere. What is in doubt is looked at, and left to a single call if it differs."""
        sure = [key for key in keys if key not in self._doubts or self._alike(key)]
        codes = self._everywhere([replication.heartbeat(key) for key in sure])
        found = dict.fromkeys(keys, Batched.UNSETTLED)
        for index, key in enumerate(sure):
            of_key = {name: one[index] for name, one in codes.items()}
            found[key] = _renewed(of_key)
            if found[key] is Batched.PARTLY:
                self._lacking[key] = frozenset(name for name, code in of_key.items() if code == 404)
        return [found[key] for key in keys]

    def _alike(self, key: InstanceKey) -> bool:
        """Whether all servers hold the same, which ends the doubt. One that lacks it shows in the heartbeat."""
        copies = [self._read(name, key) for name in self.usable()]
        ages = {copy.last_dirty_timestamp for copy in copies if isinstance(copy, ObservedInstance)}
        if len(ages) > 1:
            return False
        if _UNREAD not in copies and len(copies) == len(self._servers):
            self._doubts.settle(key)
        return True

    def register(self, items: Sequence[Dated]) -> list[Batched]:
        """A registration of each, everywhere, then a heartbeat: a server says 200 of one that it has rejected, too."""
        taken = self._registered(items, self.usable())
        return [Batched.DONE if one and all(code == 200 for code in one) else Batched.UNSETTLED for one in taken]

    def level(self, items: Sequence[Dated], *, ours: Callable[[ObservedInstance], bool]) -> list[Batched]:
        """What a server lacks, to that server alone."""
        found = [Batched.DONE] * len(items)
        for name in self.usable():
            missing = [i for i, item in enumerate(items) if name in self._lacking.get(item.instance.key, ())]
            to_send: list[tuple[int, Dated]] = []
            for index in missing:
                stands = self._read(name, items[index].instance.key)
                if stands is _UNREAD:
                    found[index] = Batched.UNSETTLED
                elif isinstance(stands, ObservedInstance) and not ours(stands):
                    found[index] = Batched.CONFLICT
                else:
                    stored = stands.last_dirty_timestamp if isinstance(stands, ObservedInstance) else 0
                    newer = max(items[index].dirty_timestamp, stored + 1)
                    to_send.append((index, items[index]._replace(dirty_timestamp=newer)))
            taken = self._registered([item for _, item in to_send], [name])
            for (index, _), codes in zip(to_send, taken, strict=True):
                if codes != [200]:
                    found[index] = Batched.UNSETTLED
        return found

    def cancel(self, keys: Sequence[InstanceKey], *, ours: Callable[[ObservedInstance], bool]) -> list[Batched]:
        """A cancel of each wherever it is ours. A single server has been read by the caller; of several each one is."""
        for key in keys:
            self._doubts.settle(key)
        names = self.usable()
        gone = self._workers.each(lambda name: self._cancelled(name, keys, ours), names)
        of_each = [{one[index] for one in gone} for index in range(len(keys))]
        return [Batched.DONE if True in found and False not in found else Batched.UNSETTLED for found in of_each]

    def _cancelled(
        self, name: str, keys: Sequence[InstanceKey], ours: Callable[[ObservedInstance], bool]
    ) -> list[bool | None]:
        """Whether each is settled on this server: cancelled, or another's. None where the server is away."""
        there = list(range(len(keys)))
        settled: list[bool] = [True] * len(keys)
        if len(self._servers) > 1:
            stands = [self._read(name, key) for key in keys]
            settled = [one is not _UNREAD for one in stands]
            there = [i for i in there if isinstance(one := stands[i], ObservedInstance) and ours(one)]
        answered = self._sent(name, [replication.cancel(keys[index]) for index in there])
        for place, index in enumerate(there):
            settled[index] = answered is not None and answered[place] in (200, 404)
        return [True if one else None if name in self._left_out else False for one in settled]

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
            taken = self._sent(name, registrations, may_refuse=True)
            if taken is None or any(code >= 400 for code in taken):
                return None
            return self._sent(name, heartbeats)

        found: list[list[int]] = [[] for _ in items]
        for name, answers in zip(names, self._workers.each(send, names), strict=True):
            if answers is None and name not in self._left_out:
                return [[] for _ in items]
            for index, code in zip(places, answers or [], strict=False):
                found[index].append(code)
        return found

    def _everywhere(self, items: Sequence[bytes]) -> dict[str, list[int]]:
        """By server the answers to all items; nothing at all when one did not give them that is not away."""
        names = self.usable()
        answers = dict(zip(names, self._workers.each(lambda name: self._sent(name, items), names), strict=True))
        if any(found is None and name not in self._left_out for name, found in answers.items()):
            return {}
        return {name: found for name, found in answers.items() if found is not None}

    def _sent(self, name: str, items: Sequence[bytes], *, may_refuse: bool = False) -> list[int] | None:
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
            _probed(self._asked[name])
        except RegistryError:
            return False
        if number <= _FEWEST:
            why = str(error).removesuffix(".")
            self._end(f"{name} answers a batch of one item, and not of {number} ({why}).")
        elif number // 2 < self._sizes.get(name, SIZE):  # else another thread has met the same
            self._sizes[name] = number // 2
            _log.warning("the Eureka server %s gets %d items at a time: %s", name, number // 2, error)
        return True

    def _read(self, name: str, key: InstanceKey) -> ObservedInstance | _Unread | None:
        if name in self._left_out or self._limit.left() <= 0 or self._clock.stopping():
            return _UNREAD
        try:
            return self._servers[name].read_instance(key)
        except RegistryUnavailable as error:
            self._fail(name, error)
        except RegistryError:
            pass  # the single call says why
        return _UNREAD

    def _fail(self, name: str, error: RegistryError) -> None:
        if self._limit.left() <= 0:
            return  # the pass had no time left for it: nobody is to blame
        self._left_out.add(name)
        self.silent.setdefault(name, (self._clock.monotonic(), str(error).removesuffix(".")))
        if self._rests is not None:
            self._rests.failed(name, error)

    def _end(self, why: str) -> None:
        if self.trouble is None:
            self.trouble = why
            _log.warning("%s %s", why, _SINGLY)


def _probed(server: Server) -> tuple[int, ...]:
    """The answer to a batch of one heartbeat that renews nothing."""
    body, items = next(replication.bodies([replication.heartbeat(_PROBE)]))
    return server.replicate(body, items=items)


class _Unread:
    """A read that failed."""


_UNREAD = _Unread()


def refused(error: RegistryError) -> str:
    """Why a batch was not answered in the known form, and what to do about it."""
    told = str(error).removesuffix(".")
    if isinstance(error, RegistryDenied):
        return (
            f"Batches are refused: {told}. To have them, let the server's Spring Security allow "
            "/eureka/peerreplication/** like /eureka/apps/**."
        )
    return f"Batches do not work: {told}."


def _renewed(codes: Mapping[str, int]) -> Batched:
    if not codes or any(code not in (200, 404) for code in codes.values()):
        return Batched.UNSETTLED
    held = [code == 200 for code in codes.values()]
    if all(held):
        return Batched.DONE
    return Batched.PARTLY if any(held) else Batched.ABSENT


def _place(url: str) -> tuple[str, str, int | None, str]:
    """An address in one form: with its port, also where it is the usual one."""
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or usual, parts.path.rstrip("/")
