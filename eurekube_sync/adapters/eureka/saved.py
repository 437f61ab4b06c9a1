"""What `run --record` keeps of Eureka, in Eureka's own JSON, and a registry that answers from
it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, TypeAlias, cast

import msgspec

from eurekube_sync.adapters.clock import Moment, moment_of
from eurekube_sync.adapters.eureka import wire
from eurekube_sync.model.errors import RegistryError
from eurekube_sync.model.eureka import Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.ports import Batches, Clock, Elsewhere, Registry
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown

_Instances: TypeAlias = Source[tuple[ObservedInstance, ...]]
_Read: TypeAlias = ObservedInstance | str | None  # of an uncached read; a text says why it failed


class KeptRegistry:
    """A registry that keeps what each pass reads. Safe in several threads."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self.begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._registry, name)

    def begin(self) -> None:
        """Forget the answers of the last pass."""
        self._at = moment_of(self._clock)
        self._listed: _Instances = Unknown(
            cause=Cause.NOT_READ, message="the pass did not list Eureka"
        )
        self._read: list[tuple[InstanceKey, _Read]] = []
        self._elsewhere = Elsewhere((), ())

    def data(self) -> dict[str, Any]:
        """Return the answers since the pass began, as JSON data: Eureka's list, the uncached reads,
        and what only other servers hold."""
        found: dict[str, Any] = {"at": self._at}
        if isinstance(self._listed, Unknown):
            found["unknown"] = {"cause": self._listed.cause, "message": self._listed.message}
        else:
            found["apps"] = _applications(self._listed.data)
        found["read"] = [reading_data(key, read) for key, read in self._read]
        found["elsewhere"] = _applications(self._elsewhere.instances)
        found["unseen"] = self._elsewhere.unseen
        return found

    def list_instances(self) -> _Instances:
        self._listed = self._registry.list_instances()
        self._at = moment_of(self._clock)
        return self._listed

    def list_elsewhere(self, listed: Complete[tuple[ObservedInstance, ...]]) -> Elsewhere:
        self._elsewhere = self._registry.list_elsewhere(listed)
        return self._elsewhere

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        return self._reading(key, self._registry.read_instance)

    def read_everywhere(self, key: InstanceKey) -> ObservedInstance | None:
        return self._reading(key, self._registry.read_everywhere)

    def _reading(
        self, key: InstanceKey, read: Callable[[InstanceKey], ObservedInstance | None]
    ) -> ObservedInstance | None:
        try:
            found = read(key)
        except RegistryError as error:
            self._read.append((key, str(error)))
            raise
        self._read.append((key, found))
        return found

    def batches(self) -> Batches | None:
        batches = self._registry.batches()
        return cast(Batches, _KeptBatches(batches, self._read)) if batches is not None else None


class _KeptBatches:
    def __init__(self, batches: Batches, read: list[tuple[InstanceKey, _Read]]) -> None:
        self._batches = batches
        self._read = read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)

    def absent(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        found = self._batches.absent(keys)
        self._read += [(key, None) for key in found]
        return found

    def read(self, keys: Sequence[InstanceKey]) -> Mapping[InstanceKey, ObservedInstance]:
        instances = self._batches.read(keys)
        self._read += instances.items()
        return instances


def _applications(instances: Sequence[ObservedInstance]) -> dict[str, Any]:
    """Return the JSON of `GET /apps`. An app that is listed in several parts has several
    entries."""
    applications: list[dict[str, Any]] = []
    for app, of_app in groupby(instances, lambda instance: instance.key.app):
        applications.append(
            {"name": app, "instance": [wire.observed_document(instance) for instance in of_app]}
        )
    return {"applications": {"application": applications}}


def reading_data(key: InstanceKey, read: _Read) -> dict[str, Any]:
    """Return an uncached read, or a write of ours, as JSON data. None is an absent instance."""
    head = {"app": key.app, "id": key.id}
    if isinstance(read, str):
        return {**head, "failed": read}
    if read is None:
        return {**head, "instance": None}
    return {**head, "instance": wire.observed_document(read), "readAt": read.read_at}


def reading_of(data: Mapping[str, Any]) -> tuple[InstanceKey, ObservedInstance | str | None]:
    """Read what `reading_data` made. Raises a KeyError or a RegistryError for other data."""
    key = InstanceKey(str(data["app"]), str(data["id"]))
    if "failed" in data:
        return key, str(data["failed"])
    if not data["instance"]:
        return key, None
    instance = wire.decode_instance(msgspec.json.encode({"instance": data["instance"]}))
    return key, replace(instance, read_at=int(data["readAt"]))


def all_documents(
    data: Mapping[str, Any], written: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the JSON of each instance in `KeptRegistry.data`, and in these writes."""
    for apps in (data.get("apps"), data["elsewhere"]):
        for application in apps["applications"]["application"] if apps else ():
            yield from application["instance"]
    for reading in (*data["read"], *written):
        if reading.get("instance"):
            yield reading["instance"]


class SavedRegistry(Registry):
    """Answers as the registry did whose answers `KeptRegistry.data` holds. It refuses every
    write."""

    def __init__(
        self, data: Mapping[str, Any], *, moved: Callable[[Moment], None] = lambda _at: None
    ) -> None:
        """`moved` is called with the time of the list. Raises a KeyError, TypeError, ValueError or
        RegistryError for other data."""
        self._moved = moved
        unix, monotonic = data["at"]
        self._at = Moment(float(unix), float(monotonic))
        self._listed: _Instances
        if "unknown" in data:
            self._listed = Unknown(
                cause=Cause(data["unknown"]["cause"]), message=str(data["unknown"]["message"])
            )
        else:
            self._listed = Complete(data=_instances(data["apps"]))
        self._elsewhere = Elsewhere(_instances(data["elsewhere"]), tuple(data["unseen"]))
        self._left: dict[InstanceKey, list[_Read]] = {}
        for reading in data["read"]:
            key, found = reading_of(reading)
            self._left.setdefault(key, []).append(found)

    def list_instances(self) -> _Instances:
        self._moved(self._at)
        return self._listed

    def list_elsewhere(self, listed: Complete[tuple[ObservedInstance, ...]]) -> Elsewhere:
        return self._elsewhere

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        """Answer as the pass was answered; its last answer is repeated. Raises a RegistryError if
        the pass did not read it, or could not."""
        left = self._left.get(key, ["the recorded pass did not read it again"])
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, str):
            raise RegistryError(found)
        return found

    def register(self, instance: Instance, *, dirty_timestamp: int) -> None:
        self._refuse()

    def renew(self, key: InstanceKey) -> bool:
        return self._refuse()

    def cancel(self, key: InstanceKey, *, ours: Callable[[ObservedInstance], bool]) -> bool:
        return self._refuse()

    def try_registration(self) -> None:
        self._refuse()

    def ahead(self) -> float:
        return float(self._refuse())

    def _refuse(self) -> bool:
        raise RegistryError("a record is only read")


def _instances(apps: Any) -> tuple[ObservedInstance, ...]:
    return wire.decode_list(msgspec.json.encode(apps)).instances
