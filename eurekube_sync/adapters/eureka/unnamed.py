"""A Eureka that nobody named: every read says so, and nothing is written. For commands that can do without."""

from __future__ import annotations

from collections.abc import Callable

from eurekube_sync.model.errors import RegistryError
from eurekube_sync.model.eureka import Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.ports import Registry
from eurekube_sync.model.sources import Cause, Unknown

_WHY = "no Eureka server was named: give --eureka-url to look there as well"


class _Unnamed(RegistryError):
    """There is no server to ask."""

    cause = Cause.NOT_READ


class UnnamedEureka(Registry):
    """A `Registry` without a server."""

    def list_instances(self) -> Unknown:
        return Unknown(cause=Cause.NOT_READ, message=_WHY)

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        raise _Unnamed(_WHY)

    def register(self, instance: Instance, *, dirty_timestamp: int) -> None:
        raise _Unnamed(_WHY)

    def renew(self, key: InstanceKey) -> bool:
        raise _Unnamed(_WHY)

    def cancel(self, key: InstanceKey, *, ours: Callable[[ObservedInstance], bool]) -> bool:
        raise _Unnamed(_WHY)
