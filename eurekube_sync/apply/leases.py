"""Which leases are due, and the order of calls. Pure.

Each lease is renewed every 30 s, however often a daemon looks: faster or slower would bend the server's
self-preservation for everybody. A pass renews what would fall due before the next chance, at once. The memory only
spares calls: after a restart all are due, which does no harm.

A pass may end before all calls are made, so that whoever has many must not delay who has few: one call of each
namespace is made, then the next of each; and in a namespace one of each syncer or app."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from itertools import zip_longest
from math import ceil
from operator import itemgetter
from typing import TypeVar
from zlib import crc32

from eurekube_sync.model.actions import Renew
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance

_FORGOTTEN_AFTER = 20
"""Periods: 10 minutes, as long as an instance lives by default that nobody renews. Eureka may be away as long, come
back empty, and not be readable for a while."""
_JITTER = 0.8  # of an interval: less than the whole, for passes do not begin to the second


class RenewalLedger:
    """When each lease was last renewed by this process; all times monotonic seconds."""

    def __init__(self, *, period: float, slack: float) -> None:
        """`period` between two renewals; `slack` is how much earlier one may come, half a poll interval, so that a
        lease that would fall due right after a pass is not left for the next."""
        self.period = period
        self.slack = slack  # may change from pass to pass: half the time to the next chance to renew
        self._passes = max(1, ceil((period - slack) / (2 * slack))) if slack > 0 else 1
        self._interval = 2 * slack
        self._last: dict[InstanceKey, float] = {}
        self._forgotten_at: float | None = None
        self._again: set[InstanceKey] = set()  # of these, what the next pass renews in any case

    def due(self, keys: Iterable[InstanceKey], now: float) -> list[InstanceKey]:
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
        """Remember a renewal. The first time counts as some other time, for each key its own: what came
        in one pass then falls due in all the passes of a period alike, and all through the time between them."""
        self._again.discard(key)
        if key not in self._last:  # some whole passes ago, more or less a part of one
            chance, passes = divmod(crc32(key.id.encode()), self._passes)
            part = chance % 1000 / 1000 - 0.5
            now -= self._interval * passes + _JITTER * part * min(self._interval, self.period)
        self._last[key] = now

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


T = TypeVar("T")
_GOLDEN_RATIO = 0.6180339887498949


def in_turn(items: Iterable[T], whose: Callable[[T], tuple[str, str]]) -> list[T]:
    """The items in turn; `whose` gives the namespace, and the syncer or app. Those of one keep their order."""
    owned = [(whose(item), item) for item in items]
    within = _first_of_each(owned, lambda one: one[0])
    return [item for _, item in _first_of_each(within, lambda one: one[0][0])]


def _first_of_each(items: Sequence[T], owner: Callable[[T], Hashable]) -> Sequence[T]:
    """The first of each owner, then the second of each, and so on."""
    ranks: Counter[Hashable] = Counter()
    ranked: list[tuple[int, T]] = []
    for item in items:
        whose = owner(item)
        ranked.append((ranks[whose], item))
        ranks[whose] += 1
    return [item for _, item in sorted(ranked, key=itemgetter(0))] if len(ranks) > 1 else items


def whose_key(key: InstanceKey) -> tuple[str, str]:
    """Namespace and app, as an id of ours has them (`model.ownership.instance_id`)."""
    return "".join(key.id.split(":", 2)[1:2]), key.app


def keys_in_turn(items: Iterable[T], key: Callable[[T], InstanceKey]) -> list[T]:
    """The same for what is about an instance, by its key."""
    return in_turn(items, lambda item: whose_key(key(item)))


def by_turns(some: Sequence[T], others: Sequence[T]) -> list[T]:
    """One of the first, one of the second, and so on."""
    pairs = zip_longest(([one] for one in some), ([one] for one in others), fillvalue=())
    return [one for pair in pairs for either in pair for one in either]


def chunks(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Of this size, the last one perhaps smaller."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def oldest_first(due: Sequence[Renew], listed: Iterable[ObservedInstance], now: float) -> list[Renew]:
    """Begins with what the list says was renewed longest ago, and where it does not tell somewhere else each time."""
    last: Mapping[InstanceKey, int] = {instance.key: instance.last_renewal for instance in listed}
    return sorted(rotated(due, now), key=lambda action: last.get(action.key, 0))


def rotated(items: Sequence[T], now: float) -> list[T]:
    """Begins somewhere else each time; `now` in Unix seconds."""
    start = int(len(items) * ((now // 10) * _GOLDEN_RATIO % 1))
    return [*items[start:], *items[:start]]
