"""Events about syncers: written once, and counted when they repeat, at most every five minutes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from eurekube_sync.adapters.kubernetes import objects
from eurekube_sync.adapters.kubernetes.calls import MERGE_PATCH, Calls, decoded, refusal, writing
from eurekube_sync.adapters.kubernetes.syncers import WholeMeta
from eurekube_sync.model.kubernetes import EventRecord
from eurekube_sync.model.wording import rfc_3339

LONGEST_MESSAGE = 1024  # the API's bound on an Event's message
_COMPONENT = "eurekube-sync"
_COUNT_SECONDS = 300


class _EventItem(objects.Wire):
    metadata: WholeMeta
    count: int | None = None
    last_timestamp: datetime | None = None


class Events:
    """Remembers which events it wrote or counted a moment ago."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._counted: dict[str, float] = {}

    def record(self, event: EventRecord, at: float) -> None:
        name = _name(event)
        if at - self._counted.get(name, float("-inf")) < _COUNT_SECONDS:
            return
        path = f"/api/v1/namespaces/{event.syncer.namespace}/events"
        call = writing("POST", path, _new(event, name, at))
        answer = self._calls.send(call)
        if answer.status == 409:
            self._count(f"{path}/{name}", event, at)
        elif answer.status == 403 and b'"NamespaceTerminating"' in answer.body:
            pass  # the cause of a Status: nothing new is let in there, whatever we may [real 1.36]
        elif answer.status not in (201, 404):
            raise refusal(call, answer)
        self._counted = {key: time for key, time in self._counted.items() if at - time < _COUNT_SECONDS} | {name: at}

    def _count(self, path: str, event: EventRecord, at: float) -> None:
        """An empty patch reads the event: our role may create and patch events, not get them."""
        read = writing("PATCH", path, {}, MERGE_PATCH)
        answer = self._calls.expect(read, 200, 404)
        if answer.status == 404:
            return
        known = decoded(read, answer, _EventItem, "an Event")
        if known.last_timestamp and at - objects.seconds(known.last_timestamp) < _COUNT_SECONDS:
            return
        body = {
            "metadata": {"resourceVersion": known.metadata.resource_version},
            "count": (known.count or 1) + 1,
            "lastTimestamp": rfc_3339(at),
            "message": event.message[:LONGEST_MESSAGE],
        }
        self._calls.expect(writing("PATCH", path, body, MERGE_PATCH), 200, 404, 409)


def _name(event: EventRecord) -> str:
    """The same for the same object, reason and class of message: an Event is counted, not repeated."""
    digest = hashlib.sha256("\0".join((event.uid, event.reason, event.key)).encode()).hexdigest()[:16]
    return f"{event.syncer.name[:200].rstrip('.-')}.{digest}"


def _new(event: EventRecord, name: str, at: float) -> Mapping[str, Any]:
    time = rfc_3339(at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": event.syncer.namespace},
        "involvedObject": {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaSyncer",
            "namespace": event.syncer.namespace,
            "name": event.syncer.name,
            "uid": event.uid,
        },
        "type": "Warning" if event.warning else "Normal",
        "reason": event.reason,
        "message": event.message[:LONGEST_MESSAGE],
        "count": 1,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
    }
