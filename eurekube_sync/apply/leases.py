"""Which leases are due: each is renewed every 30 s, however often a daemon looks.

A pass renews what would fall due before the next chance, at once. Where leases are many a daemon renews them between
its passes (`between_passes`), and a pass finds few that are left.

Faster or slower would bend the server's self-preservation for everybody. The memory only spares calls: after a restart
all are due, which does no harm."""

from __future__ import annotations

from collections.abc import Iterable, Set
from math import ceil
from zlib import crc32

from eurekube_sync.model.eureka import InstanceKey

_FORGOTTEN_AFTER = 20
"""Periods: 10 minutes, as long as an instance lives by default that nobody renews. Eureka may be away as long, come
back empty, and not be readable for a while."""
_JITTER = 0.8
"""Of an interval: less than the whole, for passes do not begin to the second."""


class RenewalLedger:
    """When each lease was last renewed by this process; all times monotonic seconds."""

    def __init__(self, *, period: float, slack: float) -> None:
        """`period` between two renewals; `slack` is how much earlier one may come, half a poll interval, so that a
        lease that would fall due right after a pass is not left for the next."""
        self.period = period
        self.slack = slack
        """May change from pass to pass: half the time to the next chance to renew."""
        self._passes = max(1, ceil((period - slack) / (2 * slack))) if slack > 0 else 1
        self._interval = 2 * slack
        self._last: dict[InstanceKey, float] = {}
        self._forgotten_at: float | None = None
        self._again: set[InstanceKey] = set()
        """Of these, what the next pass renews in any case."""

    def due(self, key: InstanceKey, now: float) -> bool:
        """Whether the lease is to be renewed in this pass."""
        return bool(self.all_due((key,), now))

    def all_due(self, keys: Iterable[InstanceKey], now: float) -> list[InstanceKey]:
        """Which of these leases are to be renewed in this pass."""
        if self.slack >= self.period:
            return list(keys)  # where every pass renews, the very next one does: a feigned age may lie ahead
        last, again, age = self._last, self._again, self.period - self.slack
        if not again:
            return [key for key in keys if (at := last.get(key)) is None or now - at >= age]
        return [key for key in keys if key in again or (at := last.get(key)) is None or now - at >= age]

    def falling_due(self, keys: Set[InstanceKey], moment: float) -> list[InstanceKey]:
        """Those of these leases, renewed before by this process, that are a period old by then; the oldest first. What
        is due again is left to the next pass."""
        latest = moment - self.period
        old = {key: at for key, at in self._last.items() if at <= latest}
        return sorted((key for key in old if key in keys and key not in self._again), key=old.__getitem__)

    def note(self, key: InstanceKey, now: float) -> None:
        """Remember that the lease was renewed. The first time counts as if it had been some other time, for each key
        its own: what came in one pass then falls due in all the passes of a period alike, and all through the time
        between them, not 60,000 at once in every third."""
        self._again.discard(key)
        self._last[key] = now if key in self._last else now - self._feigned_age(key)

    def _feigned_age(self, key: InstanceKey) -> float:
        """Some whole passes, more or less a part of one."""
        chance, passes = divmod(crc32(key.id.encode()), self._passes)
        part = chance % 1000 / 1000 - 0.5
        return self._interval * passes + _JITTER * part * min(self._interval, self.period)

    def again(self, key: InstanceKey) -> None:
        """The next pass renews it, whenever its turn would be. It is not forgotten: it was registered."""
        self._again.add(key)

    def drop(self, key: InstanceKey) -> None:
        """Forget a lease that is cancelled."""
        self._last.pop(key, None)

    def renewed_lately(self) -> tuple[InstanceKey, ...]:
        """The leases that this process renewed lately: what stood when Eureka could last be read."""
        return tuple(self._last)

    def forget(self, now: float) -> None:
        """Forget what was not renewed for long: it is gone, or due anyway."""
        if now == self._forgotten_at:
            return  # a pass asks several times
        self._forgotten_at = now
        oldest = now - _FORGOTTEN_AFTER * self.period
        self._last = {key: at for key, at in self._last.items() if at >= oldest}
        self._again = {key for key in self._again if key in self._last}
