"""The API's JSON of a EurekaSyncer and its CRD; and Events about our objects. A repeated Event
is counted, at most every 5 minutes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from sys import intern
from typing import Any

import msgspec

from eurekube_sync.adapters.kubernetes import objects
from eurekube_sync.adapters.kubernetes.calls import (
    CORE,
    MERGE_PATCH,
    Calls,
    decoded,
    is_terminating,
    refusal,
    writing,
)
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.model.docs import help_on
from eurekube_sync.model.kubernetes import (
    Condition,
    ConditionStatus,
    EventRecord,
    ServedPort,
    SyncerObject,
    SyncerStatus,
)
from eurekube_sync.model.text import rfc_3339


class WholeMeta(objects.Meta):
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    finalizers: list[str] | None = None

    def fields(self, spec: Any) -> dict[str, Any]:
        """Return the fields of a `CustomObject`."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "generation": self.generation,
            "resource_version": self.resource_version,
            "created": objects.seconds_or_none(self.creation_timestamp) or 0.0,
            "deleted": objects.seconds_or_none(self.deletion_timestamp),
            "finalizers": tuple(self.finalizers or ()),
            "labels": self.labels or {},
            "annotations": self.annotations or {},
            "spec": spec if isinstance(spec, dict) else {},
        }


class SyncerItem(objects.Wire):
    metadata: WholeMeta
    # The spec is untyped, and the status is decoded apart, so that neither makes a list unreadable.
    spec: Any = None
    status: msgspec.Raw = msgspec.Raw(b"null")

    def read(self) -> SyncerObject:
        """Return the syncer. If its spec is not an object, it is empty, and so invalid."""
        return SyncerObject(**self.metadata.fields(self.spec), status=_status(self.status))


class ConditionItem(objects.Condition):
    reason: str = ""
    message: str = ""
    observed_generation: int = 0

    def read(self) -> Condition:
        return Condition(
            type=intern(self.type),
            status=ConditionStatus(self.status),
            reason=intern(self.reason),
            message=intern(self.message),  # nearly all are the same
            observed_generation=self.observed_generation,
            last_transition=whole_seconds(self.last_transition_time) or 0,
        )


class _ServedPort(objects.Wire):
    service: str
    port: int | None = None
    secure_port: int | None = None

    def read(self) -> ServedPort:
        return ServedPort(intern(self.service), self.port, self.secure_port)


class _StatusItem(objects.Wire):
    observed_generation: int = 0
    conditions: list[ConditionItem] | None = None
    ready: str = ""
    desired: int = 0
    registered: int = 0
    up: int = 0
    down: int = 0
    app_name: str = ""
    vip_address: str = ""
    apps: list[str] | None = None
    ports: list[_ServedPort] | None = None
    errors: list[str] | None = None
    unconfirmed_removal: str = ""
    unconfirmed_since: datetime | None = None
    eureka_unknown_since: datetime | None = None


_NAMES = {field.name: field.encode_name for field in msgspec.structs.fields(_StatusItem)}
_STATUS: msgspec.json.Decoder[_StatusItem | None] = msgspec.json.Decoder(_StatusItem | None)


def _status(raw: msgspec.Raw) -> SyncerStatus | None:
    """Decode a status; None if it is unreadable: nothing is decided by it, and the pass writes it
    again."""
    try:
        item = _STATUS.decode(raw)
        if item is None:
            return None
        fields: dict[str, Any] = {name: getattr(item, name) for name in _NAMES}
        fields["conditions"] = tuple([condition.read() for condition in item.conditions or ()])
        fields["ports"] = tuple([port.read() for port in item.ports or ()])
        fields["apps"] = tuple(item.apps or ())
        fields["errors"] = tuple(item.errors or ())
        fields["unconfirmed_since"] = whole_seconds(item.unconfirmed_since)
        fields["eureka_unknown_since"] = whole_seconds(item.eureka_unknown_since)
        return SyncerStatus(**fields)
    except UNREADABLE:
        return None


def whole_seconds(moment: datetime | None) -> int | None:
    """Return whole Unix seconds; raise ValueError for a year that in UTC may not have four
    digits."""
    if moment is None:
        return None
    if not 1000 < moment.year < 9999:
        raise ValueError(f"the year {moment.year}")
    return int(objects.seconds(moment))


def status_fields(status: SyncerStatus) -> dict[str, Any]:
    """Return a status for a merge patch. It has all our fields; null removes a field (RFC 7386)."""
    fields: dict[str, Any] = {name: getattr(status, ours) for ours, name in _NAMES.items()}
    fields["conditions"] = condition_fields(status.conditions)
    fields["ports"] = [_served_port_fields(served) for served in status.ports]
    for name in ("unconfirmedSince", "eurekaUnknownSince"):
        if fields[name] is not None:
            fields[name] = rfc_3339(fields[name])
    for name, value in fields.items():
        if not isinstance(value, int):  # a count may be 0
            fields[name] = value or None
    return fields


def condition_fields(conditions: Iterable[Condition]) -> list[dict[str, Any]]:
    """Return conditions for a merge patch. For a reader of `kubectl describe`, a bad one has the
    address of its help, which no pass reads."""
    written = []
    for condition in conditions:
        fields: dict[str, Any] = {
            "type": condition.type,
            "status": condition.status.value,
            "reason": condition.reason,
            "message": condition.message,
            "observedGeneration": condition.observed_generation,
            "lastTransitionTime": rfc_3339(condition.last_transition),
        }
        if condition.bad:
            fields["help"] = help_on(condition.reason)
        written.append(fields)
    return written


def _served_port_fields(served: ServedPort) -> dict[str, Any]:
    fields: dict[str, Any] = {"service": served.service}
    if served.port is not None:
        fields["port"] = served.port
    if served.secure_port is not None:
        fields["securePort"] = served.secure_port
    return fields


class DefinitionItem(objects.Wire):
    metadata: WholeMeta
    status: objects.Conditions | None = None

    @property
    def terminating(self) -> bool:
        """Say whether the CRD is being deleted, and all its objects with it."""
        named = self.status is not None and self.status.is_true("Terminating")
        return named or self.metadata.deletion_timestamp is not None


LONGEST_MESSAGE = 1024  # the API's bound on an Event's message
_COMPONENT = "eurekube-sync"
_COUNT_SECONDS = 300


class _EventItem(objects.Wire):
    metadata: WholeMeta
    count: int | None = None
    last_timestamp: datetime | None = None


_EVENT = msgspec.json.Decoder(_EventItem)


class Events:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._counted: dict[str, float] = {}  # Unix seconds of the last write, by the Event's name

    def record(self, event: EventRecord, at: float) -> None:
        name = _name(event)
        if at - self._counted.get(name, float("-inf")) < _COUNT_SECONDS:
            return
        path = f"{CORE}/namespaces/{event.syncer.namespace}/events"
        call = writing("POST", path, _new(event, name, at))
        answer = self._calls.send(call)
        if answer.status == 409:
            self._count(f"{path}/{name}", event, at)
        elif answer.status not in (201, 404) and not is_terminating(answer):
            raise refusal(call, answer)
        recent = {key: time for key, time in self._counted.items() if at - time < _COUNT_SECONDS}
        recent[name] = at
        self._counted = recent  # a new one, because several threads read it

    def _count(self, path: str, event: EventRecord, at: float) -> None:
        """Count an Event again. It is read by an empty patch, because our role may not get
        Events."""
        read = writing("PATCH", path, {}, MERGE_PATCH)
        answer = self._calls.expect(read, 200, 404)
        if answer.status == 404:
            return
        known = decoded(read, answer, _EVENT, "an Event")
        last = objects.seconds_or_none(known.last_timestamp)
        if last is not None and at - last < _COUNT_SECONDS:
            return
        body = {
            "metadata": {"resourceVersion": known.metadata.resource_version},
            "count": (known.count or 1) + 1,
            "lastTimestamp": rfc_3339(at),
            "message": _message(event),
        }
        self._calls.expect(writing("PATCH", path, body, MERGE_PATCH), 200, 404, 409)


def _name(event: EventRecord) -> str:
    """Return a name that is the same for the same syncer, reason and key, so that the Event is
    counted."""
    key = "\0".join((event.uid, event.reason, event.key))
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return f"{event.syncer.name[:200].rstrip('.-')}.{digest}"


def _message(event: EventRecord) -> str:
    """Return the message within the bound. That of a warning ends in the address of its help."""
    see = f". See {help_on(event.reason)}" if event.warning else ""
    return f"{event.message[: LONGEST_MESSAGE - len(see)]}{see}"


def _new(event: EventRecord, name: str, at: float) -> Mapping[str, Any]:
    time = rfc_3339(at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": event.syncer.namespace},
        "involvedObject": {
            "apiVersion": "eurekube.io/v1",
            "kind": event.kind,
            "namespace": event.syncer.namespace,
            "name": event.syncer.name,
            "uid": event.uid,
        },
        "type": "Warning" if event.warning else "Normal",
        "reason": event.reason,
        "message": _message(event),
        "count": 1,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
    }
