"""When leases are due, and the order of calls. Pure.

Each lease is renewed every 30 s, however often a daemon makes a pass: other intervals would change
Eureka's self-preservation for all its clients. A pass also renews what would fall due before the
next chance. The memory only saves calls: after a restart all leases are due, which does no harm.

A pass may end before all calls are made, and a namespace with many must not delay others. So
namespaces take turns, one call each, and in a namespace its syncers or apps do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from math import ceil, inf
from operator import itemgetter
from typing import TypeVar
from zlib import crc32

from eurekube_sync.model.actions import Renew
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance

_FORGOTTEN_AFTER = 20
"""Periods: 10 minutes, for which an instance lives by default without a renewal. Eureka may be down
as long, come back empty, and not be readable for some time."""
_READ_AGAIN_AFTER = 10  # periods, so that readings are at most a tenth more renewals
_JITTER = 0.8  # of an interval: less than one, because passes do not begin to the second


class RenewalLedger:
    """When this process last renewed each lease; all times in monotonic seconds."""

    def __init__(self, *, period: float, slack: float) -> None:
        """`period` is the time between two renewals. `slack`, half of the poll interval, is how
        much earlier a renewal may come, so that a lease that falls due right after a pass does not
        wait for the next."""
        self.period = period
        self.slack = slack  # may change from pass to pass: half of the time to the next chance
        self._interval = 2 * slack
        self._passes = 1  # from one renewal to the next
        if slack > 0:
            passes = ceil((period - slack) / self._interval)
            self._passes = max(1, passes)
        self._last: dict[InstanceKey, float] = {}
        self._forgotten_at: float | None = None
        self._again: set[InstanceKey] = set()  # the next pass renews these in any case
        self._read: dict[InstanceKey, float] = {}  # when each lease was last read by a renewal

    def due(self, keys: Iterable[InstanceKey], now: float) -> list[InstanceKey]:
        """Return the leases to renew in this pass."""
        if self.slack >= self.period:
            return list(keys)  # every pass renews everything
        age = self.period - self.slack
        last = self._last
        again = self._again
        due = []
        for key in keys:
            if key in again or now - last.get(key, -inf) >= age:
                due.append(key)
        return due

    def falling_due(self, keys: Set[InstanceKey], moment: float) -> list[InstanceKey]:
        """Return the leases, renewed before by this process, that are a period old at that moment;
        the oldest first. Those marked by `again` are left to the next pass."""
        latest = moment - self.period
        last = self._last
        falling: list[InstanceKey] = []
        for key, at in last.items():
            if at <= latest and key in keys and key not in self._again:
                falling.append(key)
        return sorted(falling, key=last.__getitem__)

    def note(self, key: InstanceKey, now: float) -> None:
        """Remember a renewal. The first one counts as if at another time, different for each key:
        else leases that were registered in one pass would always fall due together."""
        self._again.discard(key)
        if key not in self._last:
            now -= self._earlier(key)
        self._last[key] = now

    def _earlier(self, key: InstanceKey) -> float:
        """Return how much earlier the first renewal counts: some whole passes, and a part of one
        earlier or later."""
        chance, passes = divmod(crc32(key.id.encode()), self._passes)
        part = chance % 1000 / 1000 - 0.5
        jitter = _JITTER * part * min(self._interval, self.period)
        return self._interval * passes + jitter

    def readable(self, keys: Iterable[InstanceKey], now: float) -> list[InstanceKey]:
        """Return the leases that may be read by a renewal: those that this process renews, and has
        not read so for a while. Held removals are read in each pass, and renewals by many reads
        would hide from Eureka that other clients' renewals fail
        (`PeerAwareInstanceRegistryImpl.isLeaseExpirationEnabled`)."""
        latest = now - _READ_AGAIN_AFTER * self.period
        last = self._last
        read = self._read
        readable = []
        for key in keys:
            if key in last and read.get(key, -inf) <= latest:
                readable.append(key)
        return readable

    def note_reading(self, key: InstanceKey, now: float) -> None:
        """Remember a reading by a renewal. It does not count as one: it reached one server only."""
        self._read[key] = now

    def again(self, key: InstanceKey) -> None:
        """Make the next pass renew the lease, whether it is due or not."""
        self._again.add(key)

    def drop(self, key: InstanceKey) -> None:
        """Forget a lease that is cancelled."""
        self._last.pop(key, None)
        self._read.pop(key, None)

    def renewed_lately(self) -> tuple[InstanceKey, ...]:
        """Return the leases that this process renewed lately."""
        return tuple(self._last)

    def forget(self, now: float) -> None:
        """Forget leases that were not renewed for long."""
        if now == self._forgotten_at:
            return  # a pass asks several times
        self._forgotten_at = now
        oldest = now - _FORGOTTEN_AFTER * self.period
        self._last = {key: at for key, at in self._last.items() if at >= oldest}
        self._read = {key: at for key, at in self._read.items() if key in self._last}
        self._again = {key for key in self._again if key in self._last}


T = TypeVar("T")
_GOLDEN_RATIO = 0.6180339887498949


def in_turn(items: Iterable[T], whose: Callable[[T], tuple[str, str]]) -> list[T]:
    """Return the items in turn; `whose` gives the namespace, and the syncer or app. Each owner's
    items keep their order."""
    owned = [(whose(item), item) for item in items]
    within_namespaces = _first_of_each(owned, itemgetter(0))
    in_order = _first_of_each(within_namespaces, lambda pair: pair[0][0])
    return [item for _, item in in_order]


def _first_of_each(items: Sequence[T], owner: Callable[[T], Hashable]) -> Sequence[T]:
    """Return the first item of each owner, then the second of each, and so on."""
    ranks: Counter[Hashable] = Counter()
    ranked: list[tuple[int, T]] = []
    for item in items:
        whose = owner(item)
        ranked.append((ranks[whose], item))
        ranks[whose] += 1
    if len(ranks) < 2:
        return items
    ranked.sort(key=itemgetter(0))
    return [item for _, item in ranked]


def whose_key(key: InstanceKey) -> tuple[str, str]:
    """Return the namespace and the app of an instance of ours, from its id
    (`model.ownership.instance_id`)."""
    parts = key.id.split(":", 2)
    namespace = "".join(parts[1:2])  # an id of another form has none
    return namespace, key.app


def keys_in_turn(items: Iterable[T], key: Callable[[T], InstanceKey]) -> list[T]:
    """Return items about instances in turn, by their keys."""
    return in_turn(items, lambda item: whose_key(key(item)))


def by_turns(first: Sequence[T], second: Sequence[T]) -> list[T]:
    """Return one item of the first, one of the second, and so on."""
    items: list[T] = []
    longest = max(len(first), len(second))
    for index in range(longest):
        items.extend(first[index : index + 1])
        items.extend(second[index : index + 1])
    return items


def chunks(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Divide the items into parts of this size; the last may be smaller."""
    starts = range(0, len(items), size)
    return [items[start : start + size] for start in starts]


def oldest_first(
    due: Sequence[Renew], listed: Iterable[ObservedInstance], now: float
) -> list[Renew]:
    """Return the renewals by their last renewal in the list, the oldest first; those without one
    from another start each time."""
    last: dict[InstanceKey, int] = {}
    for instance in listed:
        last[instance.key] = instance.last_renewal
    return sorted(rotated(due, now), key=lambda action: last.get(action.key, 0))


def rotated(items: Sequence[T], now: float) -> list[T]:
    """Begin at another item each time; `now` in Unix seconds."""
    part = (now // 10) * _GOLDEN_RATIO % 1
    start = int(len(items) * part)
    return [*items[start:], *items[:start]]
