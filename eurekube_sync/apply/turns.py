"""The order of calls: a pass may end before all are made, so that whoever has many must not delay who has few.

One call of each namespace is made, then the next of each; and in a namespace one of each syncer or app. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import zip_longest
from operator import itemgetter
from typing import TypeVar

from eurekube_sync.model.actions import Action, Renew
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance

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


def whose_action(action: Action) -> tuple[str, str]:
    """The same of an action's key."""
    return whose_key(action.key)


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
