"""The `LockStore` port on a Lease of coordination.k8s.io. Safe in several threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from eurekube_sync.adapters.kubernetes import objects
from eurekube_sync.adapters.kubernetes.calls import MERGE_PATCH, Calls, decoded, refusal, writing
from eurekube_sync.adapters.kubernetes.connection import Call, Connection
from eurekube_sync.adapters.kubernetes.syncers import WholeMeta
from eurekube_sync.adapters.tries import Tries
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import ClusterDenied
from eurekube_sync.model.kubernetes import LOCK_SECONDS, FailedPass, GoodPass, LockName, LockRecord
from eurekube_sync.model.ports import Clock, Random
from eurekube_sync.model.text import rfc_3339

CALL_SECONDS = 3.0
"""For one call: after a renewal without an answer, the holder has time for another."""
LAST_GOOD_PASS = "eurekube.io/last-good-pass"  # its time, as RFC 3339
_LAST_GOOD = {  # annotations by field of `GoodPass`
    "holder": "eurekube.io/last-good-holder",
    "result": "eurekube.io/last-good-result",
    "owner": "eurekube.io/owner",
    "scope": "eurekube.io/scope",
}
LAST_FAILED_PASS = "eurekube.io/last-failed-pass"  # its time, as RFC 3339
_LAST_FAILED = {  # annotations by field of `FailedPass`
    "reason": "eurekube.io/last-failed-reason",
    "result": "eurekube.io/last-failed-result",
}


class _LeaseSpec(objects.Wire):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class _LeaseItem(objects.Wire):
    metadata: WholeMeta
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


_LEASE = msgspec.json.Decoder(_LeaseItem)


class LeaseObject:
    def __init__(
        self,
        connection: Connection,
        name: LockName,
        *,
        clock: Clock,
        random: Random,
        count: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._name = name
        limit = TimeLimit(clock)  # of no pass: the lock is renewed while a pass runs
        tries = Tries(clock, random, limit, CALL_SECONDS, most=1, count=count)
        self._calls = Calls(connection, tries)
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{name.namespace}/leases"
        self._path = f"{self._folder}/{name.name}"

    def read(self) -> LockRecord | None:
        return self._record(Call(method="GET", path=self._path), none=(404,))

    def create(self, record: LockRecord) -> LockRecord | None:
        head = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        call = writing("POST", self._folder, {**head, **_body(record, name=self._name.name)})
        return self._record(call, none=(409,))

    def replace(self, record: LockRecord) -> LockRecord | None:
        """Patch the version that was read. A merge patch keeps the labels and annotations of
        others."""
        body = _body(record, resourceVersion=record.version)
        if record.good is not None and record.failed is None:
            gone = dict.fromkeys((LAST_FAILED_PASS, *_LAST_FAILED.values()))
            body["metadata"]["annotations"].update(gone)
        return self._record(writing("PATCH", self._path, body, MERGE_PATCH), none=(404, 409))

    def _record(self, call: Call, *, none: tuple[int, ...]) -> LockRecord | None:
        answer = self._calls.send(call)
        if answer.status in none:
            return None
        if answer.status == 403:
            raise ClusterDenied(
                f"{refusal(call, answer)}. The lock needs a Role in the namespace "
                f"{self._name.namespace} with the verbs create, get and patch for leases of "
                "coordination.k8s.io; --lock off needs no such Role"
            )
        if answer.status not in (200, 201):
            raise refusal(call, answer)
        lease = decoded(call, answer, _LEASE, "a Lease")
        spec = lease.spec
        return LockRecord(
            holder=spec.holder_identity or "",
            duration=float(spec.lease_duration_seconds or LOCK_SECONDS),
            acquired=objects.seconds_or_none(spec.acquire_time),
            renewed=objects.seconds_or_none(spec.renew_time),
            transitions=spec.lease_transitions or 0,
            good=_good(lease.metadata.annotations or {}),
            failed=_failed(lease.metadata.annotations or {}),
            version=lease.metadata.resource_version,
        )


def _body(record: LockRecord, **metadata: str) -> dict[str, Any]:
    annotations = {}
    if record.good is not None:
        annotations[LAST_GOOD_PASS] = rfc_3339(record.good.at)
        for field, annotation in _LAST_GOOD.items():
            annotations[annotation] = getattr(record.good, field)
    if record.failed is not None:
        annotations[LAST_FAILED_PASS] = rfc_3339(record.failed.at)
        for field, annotation in _LAST_FAILED.items():
            annotations[annotation] = getattr(record.failed, field)
    spec = {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": int(record.duration),
        "acquireTime": _micro_time(record.acquired),
        "renewTime": _micro_time(record.renewed),
        "leaseTransitions": record.transitions,
    }
    return {"metadata": {**metadata, "annotations": annotations}, "spec": spec}


def _good(annotations: Mapping[str, str]) -> GoodPass | None:
    """Read the last good pass from a Lease's annotations; None if its time is missing or
    unreadable."""
    at = _time(annotations.get(LAST_GOOD_PASS, ""))
    if at is None:
        return None
    fields = {name: annotations.get(annotation, "") for name, annotation in _LAST_GOOD.items()}
    return GoodPass(at=at, **fields)


def _failed(annotations: Mapping[str, str]) -> FailedPass | None:
    """Read the last pass that failed, as `_good` reads the last good one."""
    at = _time(annotations.get(LAST_FAILED_PASS, ""))
    if at is None:
        return None
    fields = {name: annotations.get(annotation, "") for name, annotation in _LAST_FAILED.items()}
    return FailedPass(at=at, **fields)


def _time(text: str) -> float | None:
    try:
        return objects.seconds(datetime.fromisoformat(text))
    except ValueError:
        return None


def _micro_time(at: float | None) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
