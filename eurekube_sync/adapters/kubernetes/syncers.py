"""A EurekaSyncer and its CRD as the API's JSON has them, and what they mean to us. As `objects`."""

from __future__ import annotations

from datetime import datetime
from sys import intern
from typing import Any

import msgspec

from eurekube_sync.adapters.kubernetes import objects
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.model.kubernetes import Condition, ConditionStatus, SyncerObject, SyncerStatus
from eurekube_sync.model.wording import rfc_3339


class WholeMeta(objects.Meta):
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    finalizers: list[str] | None = None


class SyncerItem(objects.Wire):
    """`spec` has no type here, `status` is read apart: neither can spoil a list."""

    metadata: WholeMeta
    spec: Any = None
    status: msgspec.Raw = msgspec.Raw(b"null")

    def read(self) -> SyncerObject:
        """A spec that is no object is an empty one, which is invalid."""
        meta = self.metadata
        return SyncerObject(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            generation=meta.generation,
            resource_version=meta.resource_version,
            created=objects.seconds(meta.creation_timestamp) if meta.creation_timestamp else 0.0,
            deleted=objects.seconds(meta.deletion_timestamp) if meta.deletion_timestamp else None,
            finalizers=tuple(meta.finalizers or ()),
            labels=meta.labels or {},
            annotations=meta.annotations or {},
            spec=self.spec if isinstance(self.spec, dict) else {},
            status=_status(self.status),
        )


class _Condition(objects.Condition):
    reason: str = ""
    message: str = ""
    observed_generation: int = 0

    def read(self) -> Condition:
        return Condition(
            type=intern(self.type),
            status=ConditionStatus(self.status),
            reason=intern(self.reason),
            message=intern(self.message),  # nearly all say that all is well
            observed_generation=self.observed_generation,
            last_transition=_whole(self.last_transition_time) or 0,
        )


class _StatusItem(objects.Wire):
    observed_generation: int = 0
    conditions: list[_Condition] | None = None
    ready: str = ""
    desired: int = 0
    registered: int = 0
    up: int = 0
    down: int = 0
    app_name: str = ""
    vip_address: str = ""
    apps: list[str] | None = None
    errors: list[str] | None = None
    unconfirmed_removal: str = ""
    unconfirmed_since: datetime | None = None
    eureka_unknown_since: datetime | None = None


_NAMES = {one.name: one.encode_name for one in msgspec.structs.fields(_StatusItem)}
_STATUS: msgspec.json.Decoder[_StatusItem | None] = msgspec.json.Decoder(_StatusItem | None)


def _status(raw: msgspec.Raw) -> SyncerStatus | None:
    """A status is a report, never a source: one that cannot be read is as good as none, and is written anew."""
    try:
        item = _STATUS.decode(raw)
        if item is None:
            return None
        return SyncerStatus(
            observed_generation=item.observed_generation,
            conditions=tuple([one.read() for one in item.conditions or ()]),
            ready=item.ready,
            desired=item.desired,
            registered=item.registered,
            up=item.up,
            down=item.down,
            app_name=item.app_name,
            vip_address=item.vip_address,
            apps=tuple(item.apps or ()),
            errors=tuple(item.errors or ()),
            unconfirmed_removal=item.unconfirmed_removal,
            unconfirmed_since=_whole(item.unconfirmed_since),
            eureka_unknown_since=_whole(item.eureka_unknown_since),
        )
    except UNREADABLE:
        return None


def _whole(moment: datetime | None) -> int | None:
    """Whole seconds; ValueError for a time that could not be written again: in UTC its year may have other digits."""
    if moment is not None and not 1000 < moment.year < 9999:
        raise ValueError(f"the year {moment.year}")
    return None if moment is None else int(objects.seconds(moment))


def status_fields(status: SyncerStatus) -> dict[str, Any]:
    """A status as a merge patch: every field we own is in it, null takes one away (RFC 7386)."""
    conditions = [
        {
            "type": condition.type,
            "status": condition.status.value,
            "reason": condition.reason,
            "message": condition.message,
            "observedGeneration": condition.observed_generation,
            "lastTransitionTime": rfc_3339(condition.last_transition),
        }
        for condition in status.conditions
    ]
    fields = {name: getattr(status, ours) for ours, name in _NAMES.items()}
    fields |= {"conditions": conditions, "unconfirmedSince": _moment(status.unconfirmed_since)}
    fields |= {"eurekaUnknownSince": _moment(status.eureka_unknown_since)}
    return {name: value if isinstance(value, int) else value or None for name, value in fields.items()}


def _moment(at: int | None) -> str | None:
    return None if at is None else rfc_3339(at)


class DefinitionItem(objects.Wire):
    metadata: WholeMeta
    status: objects.Conditions | None = None

    @property
    def terminating(self) -> bool:
        """Whether it is going, and takes its objects with it."""
        conditions = (self.status.conditions if self.status else None) or ()
        named = any((condition.type, condition.status) == ("Terminating", "True") for condition in conditions)
        return named or self.metadata.deletion_timestamp is not None
