"""`LeaseObject`: the `LockStore` port on a Lease of coordination.k8s.io.

A merge patch that insists on the resourceVersion leaves labels and annotations of others as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from eurekube_sync.adapters.kubernetes import projection, wire
from eurekube_sync.adapters.kubernetes.calls import MERGE_PATCH, Calls, refusal
from eurekube_sync.adapters.kubernetes.connection import Answer, Call, Connection
from eurekube_sync.adapters.no_answer import UNREADABLE, reason
from eurekube_sync.adapters.tries import Tries
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import ClusterDenied, ClusterError, ClusterRejected
from eurekube_sync.model.lock import DURATION, GoodPass, LockName, LockRecord
from eurekube_sync.model.ports import Clock, Random
from eurekube_sync.model.wording import rfc_3339

CALL_SECONDS = 3.0
"""The longest time of one call: a renewal that got no answer can be tried again before the holder has to stop."""
LAST_GOOD_PASS = "eurekube.io/last-good-pass"
"""When it was, as RFC 3339. It and the others are written together."""
LAST_GOOD_HOLDER = "eurekube.io/last-good-holder"
LAST_RESULT = "eurekube.io/last-good-result"
LAST_OWNER = "eurekube.io/owner"
LAST_SCOPE = "eurekube.io/scope"


class LeaseObject:
    """The lock as one object. May be used from several threads."""

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
        # No pass bounds these calls: the lock has to be renewed while one is under way.
        self._calls = Calls(
            connection,
            Tries(clock=clock, random=random, limit=TimeLimit(clock), answer_seconds=CALL_SECONDS, most=1, count=count),
        )
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{name.namespace}/leases"

    def read(self) -> LockRecord | None:
        call = Call(method="GET", path=f"{self._folder}/{self._name.name}")
        answer = self._calls.send(call)
        if answer.status == 404:
            return None
        return self._record(call, answer)

    def create(self, record: LockRecord) -> LockRecord | None:
        whole = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name.name, "annotations": _annotations(record)},
            "spec": _spec(record),
        }
        call = Call(method="POST", path=self._folder, body=msgspec.json.encode(whole))
        answer = self._calls.send(call)
        if answer.status == 409:
            return None
        return self._record(call, answer)

    def replace(self, record: LockRecord) -> LockRecord | None:
        body = {
            "metadata": {"resourceVersion": record.version, "annotations": _annotations(record)},
            "spec": _spec(record),
        }
        path = f"{self._folder}/{self._name.name}"
        call = Call(method="PATCH", path=path, body=msgspec.json.encode(body), content_type=MERGE_PATCH)
        answer = self._calls.send(call)
        if answer.status in (404, 409):
            return None
        return self._record(call, answer)

    def _record(self, call: Call, answer: Answer) -> LockRecord:
        if answer.status not in (200, 201):
            raise self._refusal(call, answer)
        try:
            lease = msgspec.json.decode(answer.body, type=wire.LeaseItem)
        except UNREADABLE as error:
            raise ClusterRejected(f"the answer to {call} is not a Lease: {reason(error)}") from error
        spec = lease.spec
        return LockRecord(
            holder=spec.holder_identity or "",
            duration=float(spec.lease_duration_seconds or DURATION),
            acquired=projection.seconds(spec.acquire_time) if spec.acquire_time else None,
            renewed=projection.seconds(spec.renew_time) if spec.renew_time else None,
            transitions=spec.lease_transitions or 0,
            good=_good(lease.metadata.annotations or {}),
            version=lease.metadata.resource_version,
        )

    def _refusal(self, call: Call, answer: Answer) -> ClusterError:
        error = refusal(call, answer)
        if not isinstance(error, ClusterDenied):
            return error
        return ClusterDenied(
            f"{error}. The lock needs a Role in the namespace {self._name.namespace} with the verbs create, get and "
            "patch for leases of coordination.k8s.io; --lock off needs no such Role"
        )


def _spec(record: LockRecord) -> Mapping[str, Any]:
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": int(record.duration),
        "acquireTime": _micro_time(record.acquired),
        "renewTime": _micro_time(record.renewed),
        "leaseTransitions": record.transitions,
    }


def _annotations(record: LockRecord) -> Mapping[str, str]:
    good = record.good
    if good is None:
        return {}
    return {
        LAST_GOOD_PASS: rfc_3339(good.at),
        LAST_GOOD_HOLDER: good.holder,
        LAST_RESULT: good.result,
        LAST_OWNER: good.owner,
        LAST_SCOPE: good.scope,
    }


def _good(annotations: Mapping[str, str]) -> GoodPass | None:
    """What they show; None where they show no time, or somebody spoilt it."""
    try:
        at = datetime.fromisoformat(annotations.get(LAST_GOOD_PASS, ""))
    except ValueError:
        return None
    return GoodPass(
        at=projection.seconds(at),
        holder=annotations.get(LAST_GOOD_HOLDER, ""),
        owner=annotations.get(LAST_OWNER, ""),
        scope=annotations.get(LAST_SCOPE, ""),
        result=annotations.get(LAST_RESULT, ""),
    )


def _micro_time(unix_seconds: float | None) -> str | None:
    if unix_seconds is None:
        return None
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
