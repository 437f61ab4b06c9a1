"""The lock: who has it, and whether it may be taken.

A copy writes only while its own monotonic clock says that nobody else can have the lock yet, so no two machines compare
their clocks. The holder stops `RENEW_WITHIN` after the beginning of its last renewal that worked. Another copy begins
when the holder has not renewed it for `DURATION`, which is longer. The duration that the object names is for people.
That one works at a time spares calls and keeps Eureka's self-preservation exact; what a pass may remove never rests on
it.

While the lock cannot be read, nobody knows who has it: passes renew instances then, and change nothing else.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import TypeAlias

from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.errors import ClusterConflict, ClusterError, EurekubeError, LockLost
from eurekube_sync.model.lock import DURATION, EVERY, RENEW_WITHIN, GoodPass, LockName, LockRecord
from eurekube_sync.model.ports import Clock, LockStore
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.values import dataclass

log = logging.getLogger(__name__)

_TRIES = 3
"""How often it is read and written again when somebody else was first."""
PATIENCE = DURATION + 2 * EVERY
"""Seconds that a run of single passes waits: a killed holder's lock is free by then; one that renews is at work."""


@dataclass(frozen=True, slots=True)
class Held:
    """This copy has it."""


@dataclass(frozen=True, slots=True)
class HeldBy:
    """Another copy has it."""

    holder: str


Standing: TypeAlias = Held | HeldBy | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the object said when it was last read."""

    record: LockRecord | None
    """None: there was no object."""
    since: float
    """Since when no renewal was seen, in monotonic seconds."""


def seen_again(before: Seen | None, record: LockRecord | None, now: float) -> Seen:
    """What is known after a read; `now` is after it, so that a renewal never looks older than it is. A label that
    somebody else writes makes a new version, and is no renewal."""
    if before and before.record and record and _renewal(before.record) == _renewal(record):
        return Seen(record=record, since=before.since)
    return Seen(record=record, since=now)


def may_take(seen: Seen, identity: str, asked: float) -> bool:
    """Whether nobody else can hold it any more. `asked`: before the read, so that a renewal never looks older."""
    record = seen.record
    return record is None or record.holder in ("", identity) or asked - seen.since >= DURATION


def _renewal(record: LockRecord) -> tuple[str, float | None, int]:
    return record.holder, record.renewed, record.transitions


class Lock:
    """This copy's side of it. `attempt` is called by one thread or several, the rest by the one that makes passes."""

    def __init__(self, store: LockStore, clock: Clock, name: LockName, identity: str) -> None:
        """`identity` is unique to this process."""
        self.name = name
        self.identity = identity
        self._store = store
        self._clock = clock
        self._one_at_a_time = threading.Lock()
        self._seen: Seen | None = None
        self._held_until = -inf
        self.term = 0
        """How often this copy tried to take it, for a try whose answer is lost may have taken it: the same number
        before and after means that no other copy had it between."""
        self._read_at = -inf
        self._why: Unknown | None = None
        self._good: GoodPass | None = None

    @property
    def held(self) -> bool:
        """Whether this copy may write now."""
        return self._clock.monotonic() < self._held_until

    @property
    def last_good(self) -> GoodPass | None:
        """The last good pass of any copy, as the object was last read."""
        record = self._seen.record if self._seen else None
        return record.good if record else None

    def renewed_since(self, moment: float) -> bool:
        """Whether another copy was seen to renew it, or to take it, after that moment in monotonic seconds."""
        return self._seen is not None and self._seen.since > moment

    def standing(self) -> Standing:
        """Who has it, as far as is known. What could not be read for as long as a holder may be silent is unknown."""
        if self.held:
            return Held()
        record = self._seen.record if self._seen else None
        recent = self._clock.monotonic() - self._read_at < DURATION
        if record is not None and record.holder not in ("", self.identity) and (self._why is None or recent):
            return HeldBy(record.holder)
        return self._why or self._unknown(Cause.UNAVAILABLE, "it was not renewed in time")

    def _unknown(self, cause: Cause, why: str) -> Unknown:
        return Unknown(
            cause=cause, message=f"the lock {self.name} cannot be used, so instances are only renewed: {why}"
        )

    def attempt(self) -> None:
        """Renews it, takes it if it is free, or looks who has it. What fails is kept as the reason."""
        with self._one_at_a_time:
            try:
                self._try()
            except EurekubeError as error:
                self._why = self._unknown(error.cause or Cause.UNUSABLE, str(error))
            else:
                self._why = None

    def passed(self, good: GoodPass) -> None:
        """The next renewal writes this into the object."""
        self._good = good

    def release(self) -> None:
        """Gives it up, if this copy has it: another one may begin at once. What fails is logged."""
        with self._one_at_a_time:
            seen, self._held_until = self._seen, -inf
            if seen is None or seen.record is None or seen.record.holder != self.identity:
                return
            free = replace(seen.record, holder="", duration=1.0, renewed=self._clock.now(), good=self._good)
            try:
                self._store.replace(free)
            except ClusterError as error:
                log.warning("the lock %s was not released, and ends in %g s: %s", self.name, DURATION, error)

    def _try(self) -> None:
        known = self._seen.record if self._seen else None
        if known is not None and known.holder == self.identity and self._write(known):
            return
        for _ in range(_TRIES):
            asked = self._clock.monotonic()
            record = self._store.read()
            self._read_at = self._clock.monotonic()
            self._seen = seen_again(self._seen, record, self._read_at)
            if not may_take(self._seen, self.identity, asked):
                self._held_until = -inf
                return
            if self._write(record):
                return
        raise ClusterConflict(f"it changed {_TRIES} times while this process tried to take it")

    def _write(self, before: LockRecord | None) -> bool:
        """Renews or takes it; False when somebody else changed it first."""
        begun = self._clock.monotonic()
        now, good = self._clock.now(), self._good
        record = LockRecord(holder=self.identity, acquired=now, renewed=now, good=good)
        if before is not None and before.holder == self.identity:
            record = replace(before, duration=DURATION, renewed=now, good=good)
        elif before is not None:
            record = replace(record, transitions=before.transitions + 1, version=before.version)
        self.term += before is None or before.holder != self.identity
        written = self._store.create(record) if before is None else self._store.replace(record)
        if written is None:
            return False
        if self._good is good:
            self._good = None
        self._read_at = self._clock.monotonic()
        self._seen = Seen(record=written, since=self._read_at)
        self._held_until = begun + RENEW_WITHIN
        return True


def wait_for(
    lock: Lock, clock: Clock, *, patience: float = inf, waits: Callable[[], None] = lambda: None
) -> Standing | None:
    """Waits until this copy has the lock, or nobody knows who has it; says once who has it meanwhile. `waits` is called
    after each look.

    After `patience` it gives the HeldBy that it waited for, if that one renewed meanwhile. None: it was asked to stop.
    """
    begun, told, looked = clock.monotonic(), "", inf
    while not clock.stopping():
        lock.attempt()
        standing = lock.standing()
        if not isinstance(standing, HeldBy):
            if told and isinstance(standing, Held):
                log.info("took the lock %s", lock.name)
            return standing
        looked = min(looked, clock.monotonic())
        if clock.monotonic() - begun >= patience and lock.renewed_since(looked):
            return standing
        if standing.holder != told:
            told = standing.holder
            log.info("waiting for the lock %s, which %s holds", lock.name, told)
        waits()
        clock.sleep(EVERY)
    return None


class UnderLock:
    """Asks before each pass whether it may change anything, and after it whether it still could."""

    def __init__(self, lock: Lock, only_while: Callable[[Callable[[], bool]], None]) -> None:
        """`only_while` is given what must be true for any call to begin."""
        self._lock = lock
        self._only_while = only_while
        self._term: int | None = None
        """The lock's, when this pass began; None while it may only renew."""

    def one_pass(self, make: Callable[[Unknown | None], PassReport]) -> PassReport:
        """Gives `make` what `before` gives. A pass that could do nothing because the lock ended meanwhile is followed
        at once by another, which may renew whatever the Kubernetes API does."""
        report = make(self.before())
        if self.after() is None or report.outcomes.succeeded:
            return report
        report = make(self.before())
        self.after()
        return report

    def before(self) -> Unknown | None:
        """None: all may be done. Why the pass may only renew, when nobody knows who has the lock. Raises LockLost when
        another copy has it."""
        self._term = None
        standing = self._standing()
        if isinstance(standing, Unknown):
            self._only_while(lambda: True)
            return standing
        self._term = term = self._lock.term
        self._only_while(lambda: self._lock.held and self._lock.term == term)
        return None

    def after(self) -> Unknown | None:
        """Why the pass may have ended before its time: nobody knows any more who has the lock. Raises LockLost when
        another copy took it during the pass."""
        standing = self._standing()
        if self._term is not None and self._term != self._lock.term:
            raise LockLost(f"another copy held the lock {self._lock.name} meanwhile: this pass is too old to go on")
        return standing if isinstance(standing, Unknown) and self._term is not None else None

    def _standing(self) -> Standing:
        lock = self._lock
        if not lock.held:
            lock.attempt()
        standing = lock.standing()
        if isinstance(standing, HeldBy):
            raise LockLost(
                f"{standing.holder} holds the lock {lock.name} now: this process did not renew it in time, "
                "and has changed nothing since"
            )
        return standing
