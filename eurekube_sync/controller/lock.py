"""The lock: who has it, and whether this replica may take it.

A replica writes only while its own monotonic clock says that no other replica can have the lock yet, so
no clocks of two machines are compared. The holder stops `RENEW_WITHIN` after it began its last
renewal that worked. Another replica begins when it saw no renewal for `LOCK_SECONDS`, which is longer.
The lock spares calls and keeps Eureka's self-preservation exact. What a pass may remove never
depends on it.

While the lock cannot be read, nobody knows who has it. Passes then only renew."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from math import inf
from typing import TypeAlias

from msgspec import Struct

from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.errors import ClusterConflict, ClusterError, EurekubeError, LockLost
from eurekube_sync.model.kubernetes import LOCK_SECONDS, FailedPass, GoodPass, LockName, LockRecord
from eurekube_sync.model.ports import Clock, LockStore
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace

log = logging.getLogger(__name__)

_TRIES = 3  # how often to read and write the lock again when another writer was first
RENEW_WITHIN = 10.0
"""Seconds that the holder works after it began its last renewal. Less than `LOCK_SECONDS`, so that
it stops before another replica begins, even if one of the clocks runs too fast or too slowly."""
EVERY = 2.0  # seconds between two renewals, or two reads of a waiting replica
PATIENCE = LOCK_SECONDS + 2 * EVERY
"""Seconds that a run without `--daemon` waits. The lock of a killed holder is free by then."""


class Held(Struct, frozen=True):
    """This replica has the lock."""


class HeldBy(Struct, frozen=True):
    """Another replica has the lock."""

    holder: str


Standing: TypeAlias = Held | HeldBy | Unknown


class Lock:
    """The lock as this replica sees it. Any thread may call `attempt`, and only the thread of the
    passes the rest."""

    def __init__(self, store: LockStore, clock: Clock, name: LockName, identity: str) -> None:
        """`identity` is unique to this process."""
        self.name = name
        self.identity = identity
        self._store = store
        self._clock = clock
        self._one_at_a_time = threading.Lock()
        self._record: LockRecord | None = (
            None  # as last read; None if there was no object, or it was not read yet
        )
        self._since = -inf  # when its last renewal was seen, in monotonic seconds
        self._held_until = -inf
        self.term = 0
        """How often this replica tried to take the lock; a try without an answer may have taken it. If
        the number is the same before and after a pass, no other replica had the lock meanwhile."""
        self._read_at = -inf
        self._why: Unknown | None = None
        # The last passes, until a renewal wrote them
        self._good: GoodPass | None = None
        self._failed: FailedPass | None = None

    @property
    def held(self) -> bool:
        """Whether this replica may write now."""
        return self._clock.monotonic() < self._held_until

    @property
    def last_good(self) -> GoodPass | None:
        """The last good pass of any replica, as last read from the object."""
        if self._record:
            return self._record.good
        return None

    def renewed_since(self, moment: float) -> bool:
        """Whether another replica was seen to renew or take the lock after that moment, in monotonic
        seconds."""
        return self._since > moment

    def standing(self) -> Standing:
        """Return who has the lock; unknown if it could not be read for as long as a holder may be
        silent."""
        if self.held:
            return Held()
        # A single failed read does not make the holder unknown.
        is_recent = self._clock.monotonic() - self._read_at < LOCK_SECONDS
        is_known = self._why is None or is_recent
        if is_known and self._record is not None and self._is_anothers(self._record):
            return HeldBy(self._record.holder)
        if self._why is not None:
            return self._why
        return self._unknown(Cause.UNAVAILABLE, "this replica did not renew the lock in time")

    def _is_anothers(self, record: LockRecord) -> bool:
        """Say whether another replica has the lock. Without a holder it is free."""
        return record.holder not in ("", self.identity)

    def _unknown(self, cause: Cause, why: str) -> Unknown:
        otherwise = "so instances are only renewed"
        message = f"the lock {self.name} cannot be used, {otherwise}: {why}"
        return Unknown(cause=cause, message=message)

    def attempt(self) -> None:
        """Renew the lock, take it if it is free, or read who has it. A failure is kept for
        `standing`."""
        with self._one_at_a_time:
            try:
                self._try()
            except EurekubeError as error:
                self._why = self._unknown(error.cause or Cause.UNUSABLE, str(error))
            else:
                self._why = None

    def passed(self, last: GoodPass | FailedPass) -> None:
        """Let the next renewal write this pass into the object. A good one ends the failures."""
        if isinstance(last, FailedPass):
            self._failed = last
        else:
            self._good = last
            self._failed = None

    def release(self) -> None:
        """Give up the lock, if this replica has it, so that another may begin at once. A failure
        is logged."""
        with self._one_at_a_time:
            self._held_until = -inf
            record = self._record
            if record is None or record.holder != self.identity:
                return
            free = replace(
                record,
                holder="",
                duration=1.0,
                renewed=self._clock.now(),
                good=self._good,
                failed=self._failed,
            )
            try:
                self._store.replace(free)
            except ClusterError as error:
                log.warning(
                    "cannot release the lock %s, which expires in %g s: %s",
                    self.name,
                    LOCK_SECONDS,
                    error,
                )

    def _try(self) -> None:
        known = self._record
        if known is not None and known.holder == self.identity and self._write(known):
            return
        for _ in range(_TRIES):
            asked = self._clock.monotonic()
            record = self._store.read()
            self._read_at = self._clock.monotonic()
            before = self._record
            # A change of a label makes a new version, and is no renewal.
            if before is None or record is None or _renewal(before) != _renewal(record):
                self._since = self._read_at
            self._record = record
            # `_since` is a time after a read, and `asked` one before: so a renewal never seems
            # older than it is.
            is_alive = asked - self._since < LOCK_SECONDS
            if record is not None and is_alive and self._is_anothers(record):
                self._held_until = -inf
                return
            if self._write(record):
                return
        raise ClusterConflict(f"it changed {_TRIES} times while this process tried to take it")

    def _write(self, before: LockRecord | None) -> bool:
        """Renew or take the lock; return False if another writer was first."""
        begun = self._clock.monotonic()
        now = self._clock.now()
        good = self._good
        failed = self._failed
        if before is not None and before.holder == self.identity:
            record = replace(before, duration=LOCK_SECONDS, renewed=now, good=good, failed=failed)
        else:
            self.term += 1
            record = LockRecord(
                holder=self.identity, acquired=now, renewed=now, good=good, failed=failed
            )
            if before is not None:
                record = replace(record, transitions=before.transitions + 1, version=before.version)
        written = self._store.create(record) if before is None else self._store.replace(record)
        if written is None:
            return False
        # A pass may have ended during the call: then the next renewal writes it.
        if self._good is good:
            self._good = None
        if self._failed is failed:
            self._failed = None
        self._record = written
        self._read_at = self._clock.monotonic()
        self._since = self._read_at
        self._held_until = begun + RENEW_WITHIN
        return True


def _renewal(record: LockRecord) -> tuple[str, float | None, int]:
    """Return what tells two renewals apart."""
    return record.holder, record.renewed, record.transitions


def wait_for(
    lock: Lock, clock: Clock, *, patience: float = inf, waits: Callable[[], None] = lambda: None
) -> Standing | None:
    """Wait until this replica has the lock, or nobody knows who has it. Call `waits` after each try.
    After `patience` seconds return HeldBy, if that holder renewed meanwhile. None: a signal
    came."""
    begun = clock.monotonic()
    looked = inf  # when it was first seen that another copy has the lock
    told = ""  # the holder that was logged last
    while not clock.stopping():
        lock.attempt()
        standing = lock.standing()
        if not isinstance(standing, HeldBy):
            if told and isinstance(standing, Held):
                log.info("acquired the lock %s", lock.name)
            return standing
        looked = min(looked, clock.monotonic())
        if clock.monotonic() - begun >= patience and lock.renewed_since(looked):
            return standing
        if standing.holder != told:
            told = standing.holder
            log.info("waiting for the lock %s, held by %s", lock.name, told)
        waits()
        clock.sleep(EVERY)
    return None


class UnderLock:
    """Check the lock before each pass, and again after it."""

    def __init__(self, lock: Lock, only_while: Callable[[Callable[[], bool]], None]) -> None:
        """`only_while` gets a condition that must be true for any call to begin."""
        self._lock = lock
        self._only_while = only_while
        self._term: int | None = (
            None  # the lock's term when this pass began; None if the pass may only renew
        )

    def one_pass(self, make: Callable[[Unknown | None], PassReport]) -> PassReport:
        """Make a pass: `make` gets why it may only renew, if so. A pass that did nothing because
        the lock ended meanwhile is followed at once by another, which renews without the Kubernetes
        API."""
        report = make(self.before())
        if self.after() and not report.outcomes.succeeded:
            report = make(self.before())
            self.after()
        return report

    def before(self) -> Unknown | None:
        """Return why the pass may only renew, if nobody knows who has the lock; else None. Raises
        LockLost if another replica has it."""
        self._term = None
        standing = self._standing()
        if isinstance(standing, Unknown):
            self._only_while(lambda: True)
            return standing
        term = self._lock.term
        self._term = term
        self._only_while(lambda: self._lock.held and self._lock.term == term)
        return None

    def after(self) -> Unknown | None:
        """Return why the pass may have ended early, if nobody knows any more who has the lock.
        Raises LockLost if another replica took it during the pass."""
        standing = self._standing()
        if self._term is None:
            return None
        if self._term != self._lock.term:
            raise LockLost(
                f"lost the lock {self._lock.name} to another replica; aborting this pass"
            )
        if isinstance(standing, Unknown):
            return standing
        return None

    def _standing(self) -> Standing:
        lock = self._lock
        if not lock.held:
            lock.attempt()
        standing = lock.standing()
        if isinstance(standing, HeldBy):
            raise LockLost(
                f"lost the lock {lock.name} to {standing.holder}: it was not renewed in time, and "
                "nothing was changed since"
            )
        return standing
