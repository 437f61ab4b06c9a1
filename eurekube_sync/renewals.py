"""Which leases are due: each is renewed every 30 s, however often a daemon looks.

Faster or slower would bend the server's self-preservation for everybody. The memory only spares calls: after a restart
all are due, which does no harm.
"""

from __future__ import annotations

from math import ceil
from zlib import crc32

from eurekube_sync.model import InstanceKey

_FORGOTTEN_AFTER = 4
"""Periods."""


class RenewalLedger:
    """When each lease was last renewed by this process; all times monotonic seconds."""

    def __init__(self, *, period: float, slack: float) -> None:
        """`period` between two renewals; `slack` is how much earlier one may come, half a poll interval, so that a
        lease that would fall due right after a pass is not left for the next."""
        self._period = period
        self._wait = period - slack
        self._passes = max(1, ceil(self._wait / (2 * slack))) if slack > 0 else 1
        self._interval = 2 * slack
        self._last: dict[InstanceKey, float] = {}

    def due(self, key: InstanceKey, now: float) -> bool:
        """Whether the lease is to be renewed in this pass."""
        last = self._last.get(key)
        return last is None or now - last >= self._wait

    def note(self, key: InstanceKey, now: float) -> None:
        """Remember that the lease was renewed.

        The first time counts as if it had been some whole passes ago, for each key another number: what came in one
        pass then falls due in all the passes of a period alike, and not 60,000 at once in every third.
        """
        first = key not in self._last
        self._last[key] = now - (self._interval * (crc32(key.id.encode()) % self._passes) if first else 0)

    def drop(self, key: InstanceKey) -> None:
        """Forget a lease that is cancelled."""
        self._last.pop(key, None)

    def renewed_lately(self) -> tuple[InstanceKey, ...]:
        """The leases that this process renewed lately: what stood when Eureka could last be read."""
        return tuple(sorted(self._last))

    def forget(self, now: float) -> None:
        """Forget what was not renewed for long: it is gone, or due anyway."""
        oldest = now - _FORGOTTEN_AFTER * self._period
        self._last = {key: at for key, at in self._last.items() if at >= oldest}
