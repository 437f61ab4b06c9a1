"""Works while this copy has the lock: waits for it, renews it beside the work, and gives it up at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import inf

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.threads import repeating
from eurekube_sync.cli.watched import Watched
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.lock import PATIENCE, Held, HeldBy, Lock, wait_for
from eurekube_sync.model.errors import LockLost
from eurekube_sync.model.lock import EVERY

log = logging.getLogger(__name__)


def under_lock(
    lock: Lock, clock: SystemClock, watched: Watched, work: Callable[[], ExitCode], *, daemon: bool
) -> ExitCode:
    """A daemon waits as long as another copy has the lock. Other runs wait for a while, and leave the work to it.

    A daemon that lost the lock begins anew, and remembers nothing: what it saw last may be long gone. Of another run
    LockLost is raised, unless it never had the lock: then it waits. While the loop does not turn, the lock is not
    renewed: another copy takes over.
    """
    watched.has(lock)

    def renew() -> None:
        if watched.monitor.live:
            lock.attempt()

    while True:
        standing = wait_for(lock, clock, patience=inf if daemon else PATIENCE, waits=lambda: watched.waits(lock))
        watched.knows(lock)
        watched.monitor.turned()
        if standing is None:
            return ExitCode.OK if daemon else ExitCode.INCOMPLETE
        if isinstance(standing, HeldBy):
            log.info("nothing was done: %s holds the lock %s and is at work", standing.holder, lock.name)
            return ExitCode.OK
        try:
            with repeating(renew, EVERY):
                return work()
        except LockLost as lost:
            if not daemon and isinstance(standing, Held):
                raise
            log.warning("%s", lost)
        finally:
            lock.release()
