"""Instances that only other peers than the first hold, by peer, as their last lists showed them."""

from __future__ import annotations

from collections.abc import Iterable

from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.sources import Complete


class Strays:
    """The instances that only other peers hold."""

    def __init__(self) -> None:
        self._found: dict[InstanceKey, dict[str, ObservedInstance]] = {}

    def __contains__(self, key: InstanceKey) -> bool:
        return key in self._found

    def show(self, name: str, instances: Iterable[ObservedInstance]) -> None:
        """A new list of this peer shows these, and nothing else that the first lacks."""
        for key in list(self._found):
            self.gone(key, name)
        for instance in instances:
            self._found.setdefault(instance.key, {})[name] = instance

    def gone(self, key: InstanceKey, name: str) -> None:
        found = self._found.get(key, {})
        found.pop(name, None)
        if not found:
            self._found.pop(key, None)

    def settle(self, key: InstanceKey) -> None:
        """It is written or cancelled on all."""
        self._found.pop(key, None)

    def holders(self, key: InstanceKey) -> tuple[str, ...]:
        return tuple(self._found.get(key, ()))

    def peers(self) -> frozenset[str]:
        """Those that hold any."""
        return frozenset(name for found in self._found.values() for name in found)

    def all(self) -> tuple[ObservedInstance, ...]:
        """One copy of each."""
        return tuple(next(iter(found.values())) for found in self._found.values())

    def beside(self, listed: Complete[tuple[ObservedInstance, ...]]) -> Complete[tuple[ObservedInstance, ...]]:
        """The first peer's list and these; what it shows now is a stray no longer."""
        if not self._found:
            return listed
        for instance in listed.data:
            self._found.pop(instance.key, None)
        return Complete(data=(*listed.data, *self.all()))
