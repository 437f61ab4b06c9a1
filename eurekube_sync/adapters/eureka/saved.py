"""What `run --record` keeps of Eureka, in Eureka's own JSON, and a registry that answers from
it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias, cast

import msgspec

from eurekube_sync.adapters.clock import Moment, moment_of
from eurekube_sync.adapters.eureka import wire
from eurekube_sync.model.errors import RegistryError
from eurekube_sync.model.eureka import Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.ports import Batches, Clock, Elsewhere, EurekaServer, Registry
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from eurekube_sync.model.struct import replace

_Instances: TypeAlias = Source[tuple[ObservedInstance, ...]]
_Reading: TypeAlias = ObservedInstance | str | None
"""The result of an uncached read; a text says why it failed."""


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
        self._read: list[tuple[InstanceKey, _Reading]] = []
        self._elsewhere = Elsewhere((), ())
        self._by_server: dict[str, _Instances] = {}

    def servers(self, servers: Mapping[str, EurekaServer]) -> dict[str, EurekaServer]:
        """Wrap the single servers, so that their lists are kept, too."""
        kept: dict[str, EurekaServer] = {}
        for address, server in servers.items():
            kept[address] = cast(EurekaServer, _KeptServer(self, address, server))
        return kept

    def keep(self, address: str, listed: _Instances) -> None:
        """Keep the list of a single server."""
        self._by_server[address] = listed

    def data(self) -> dict[str, Any]:
        """Return the answers since the pass began, as JSON data: Eureka's list, the uncached reads,
        what only other servers hold, and the lists of single servers."""
        by_server = self._by_server.items()
        return {
            "at": self._at,
            **_listed_data(self._listed),
            "servers": {address: _listed_data(listed) for address, listed in by_server},
            "read": [reading_data(key, reading) for key, reading in self._read],
            "elsewhere": _applications(self._elsewhere.instances),
            "unseen": self._elsewhere.unseen,
        }

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
            reading = read(key)
        except RegistryError as error:
            self._read.append((key, str(error)))
            raise
        self._read.append((key, reading))
        return reading

    def batches(self) -> Batches | None:
        batches = self._registry.batches()
        if batches is None:
            return None
        return cast(Batches, _KeptBatches(batches, self._read))


class _KeptServer:
    def __init__(self, kept: KeptRegistry, address: str, server: EurekaServer) -> None:
        self._kept = kept
        self._address = address
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def list_instances(self) -> _Instances:
        listed = self._server.list_instances()
        self._kept.keep(self._address, listed)
        return listed


class _KeptBatches:
    def __init__(self, batches: Batches, read: list[tuple[InstanceKey, _Reading]]) -> None:
        self._batches = batches
        self._read = read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)

    def absent(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        absent = self._batches.absent(keys)
        self._read += [(key, None) for key in absent]
        return absent

    def read(self, keys: Sequence[InstanceKey]) -> Mapping[InstanceKey, ObservedInstance]:
        instances = self._batches.read(keys)
        self._read += instances.items()
        return instances


def _applications(instances: Sequence[ObservedInstance]) -> dict[str, Any]:
    """Return the JSON of `GET /apps`. An app that is listed in several parts has several
    entries."""
    applications: list[dict[str, Any]] = []
    for app, of_app in groupby(instances, lambda instance: instance.key.app):
        applications.append({"name": app, "instance": list(map(wire.observed_document, of_app))})
    return {"applications": {"application": applications}}


def _listed_data(listed: _Instances) -> dict[str, Any]:
    if isinstance(listed, Unknown):
        return {"unknown": {"cause": listed.cause, "message": listed.message}}
    return {"apps": _applications(listed.data)}


def _listed_of(data: Mapping[str, Any]) -> _Instances:
    if "unknown" in data:
        unknown = data["unknown"]
        return Unknown(cause=Cause(unknown["cause"]), message=str(unknown["message"]))
    return Complete(data=_instances(data["apps"]))


def reading_data(key: InstanceKey, reading: _Reading) -> dict[str, Any]:
    """Return an uncached read, or a write of ours, as JSON data. None is an absent instance."""
    head = {"app": key.app, "id": key.id}
    if isinstance(reading, str):
        return {**head, "failed": reading}
    if reading is None:
        return {**head, "instance": None}
    return {**head, "instance": wire.observed_document(reading), "readAt": reading.read_at}


def reading_of(data: Mapping[str, Any]) -> tuple[InstanceKey, _Reading]:
    """Read what `reading_data` made. Raise a KeyError or a RegistryError for other data."""
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
    lists = [data["elsewhere"]]
    for listed in (data, *data["servers"].values()):
        if "apps" in listed:  # else it could not be read
            lists.append(listed["apps"])
    for listed in lists:
        for application in listed["applications"]["application"]:
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
        """Call `moved` with the time of the list, when it is listed. Raise a KeyError, TypeError,
        ValueError or RegistryError for other data."""
        self._moved = moved
        unix, monotonic = data["at"]
        self._at = Moment(float(unix), float(monotonic))
        self._listed = _listed_of(data)
        self._by_server: dict[str, _Instances] = {}
        for address, listed in data["servers"].items():
            self._by_server[str(address)] = _listed_of(listed)
        self._elsewhere = Elsewhere(_instances(data["elsewhere"]), tuple(data["unseen"]))
        self._readings: dict[InstanceKey, list[_Reading]] = {}
        for recorded in data["read"]:
            key, reading = reading_of(recorded)
            self._readings.setdefault(key, []).append(reading)

    def list_instances(self) -> _Instances:
        self._moved(self._at)
        return self._listed

    def servers(self, addresses: Sequence[str]) -> dict[str, EurekaServer]:
        """Return the single servers. One that the pass did not list cannot be listed."""
        servers: dict[str, EurekaServer] = {}
        for address in addresses:
            listed = self._by_server.get(address, _NOT_LISTED)
            servers[address] = cast(EurekaServer, _SavedServer(self, listed))
        return servers

    def list_elsewhere(self, listed: Complete[tuple[ObservedInstance, ...]]) -> Elsewhere:
        return self._elsewhere

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        """Answer as the pass was answered; its last answer is repeated. Raise a RegistryError if
        the pass did not read it, or could not."""
        readings = self._readings.get(key, ["the recorded pass did not read it again"])
        reading = readings.pop(0) if len(readings) > 1 else readings[0]
        if isinstance(reading, str):
            raise RegistryError(reading)
        return reading

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


_NOT_LISTED = Unknown(cause=Cause.NOT_READ, message="the recorded pass did not list it")


class _SavedServer:
    def __init__(self, registry: SavedRegistry, listed: _Instances) -> None:
        self._registry = registry
        self._listed = listed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._registry, name)

    def list_instances(self) -> _Instances:
        return self._listed


def _instances(apps: Any) -> tuple[ObservedInstance, ...]:
    return wire.decode_list(msgspec.json.encode(apps)).instances
