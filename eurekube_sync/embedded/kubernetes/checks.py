"""What is checked before an object is written, and with which words it is refused.

Functions of the request, the resource and the version that is stored; no store, no clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from eurekube_sync.embedded.kubernetes import errors, resources
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.store import Stored

Object = dict[str, Any]

_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_UNCHECKED = (
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The query of a write."""

    dry_run: bool = False
    patch: bool = False
    """The object is the outcome of a PATCH: its uid is no precondition."""
    strict: bool = False
    """fieldValidation=Strict: an unknown field is a 400 instead of being dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """The body of a DELETE, as far as it is understood."""

    dry_run: bool = False
    grace_seconds: int | None = None


class _Metadata(msgspec.Struct):
    """What of ObjectMeta has to be text; a null is as Go reads it."""

    name: str | None = None
    namespace: str | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None


def typed(resource: Resource, body: Any) -> Object:
    """The body with its kind and apiVersion, or a refusal if it is of another kind or shape."""
    if not isinstance(body, dict):
        raise errors.bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    if resource.custom and not body.get("kind"):
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): Object 'Kind' is missing"
        )
    kind, version = body.get("kind") or resource.kind, body.get("apiVersion") or resource.api_version
    if version != resource.api_version:
        raise errors.bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})"
        )
    metadata = body.get("metadata") or {}
    try:
        msgspec.convert(metadata, _Metadata)
    except msgspec.ValidationError as error:
        raise errors.unreadable(resource.kind, resource.version, f"json: cannot unmarshal metadata: {error}") from None
    texts = {field: metadata[field] for field in ("labels", "annotations") if metadata.get(field)}
    no_nulls = {field: {key: value or "" for key, value in values.items()} for field, values in texts.items()}
    metadata = {**metadata, **no_nulls}
    if kind != resource.kind and resource.custom:
        fault = ("kind", "FieldValueInvalid", f'Invalid value: "{kind}": must be {resource.kind}')
        raise errors.invalid(kind, resource.group, metadata.get("name", ""), [fault])
    if kind != resource.kind:
        raise errors.unreadable(resource.kind, resource.version, f"converting ({kind}): unknown conversion")
    return {**body, "kind": kind, "apiVersion": version, **({"metadata": metadata} if "metadata" in body else {})}


def check_identity(resource: Resource, stored: Stored, metadata: Mapping[str, Any], options: WriteOptions) -> None:
    """Refuse another name, another uid and an older version."""
    old = stored.obj["metadata"]
    name = metadata.get("name", stored.name)
    if name != stored.name:
        raise errors.bad_request(f"the name of the object ({name}) does not match the name on the URL ({stored.name})")
    if metadata.get("namespace", stored.namespace) != stored.namespace:
        raise errors.bad_request(
            f"the namespace of the object ({metadata['namespace']}) does not match the namespace on the request "
            f"({stored.namespace})"
        )
    uid = metadata.get("uid")
    if uid and uid != old["uid"] and options.patch:
        fault = ("metadata.uid", "FieldValueInvalid", f'Invalid value: "{uid}": field is immutable')
        raise errors.invalid(resource.kind, resource.group, stored.name, [fault])
    if uid and uid != old["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
        raise errors.conflict(resource.plural, resource.group, stored.name, why)
    revision = metadata.get("resourceVersion")
    if not revision and resource.custom:
        fault = ("metadata.resourceVersion", "FieldValueInvalid", "Invalid value: 0: must be specified for an update")
        raise errors.invalid(resource.plural, resource.group, stored.name, [fault])
    if revision and revision != old["resourceVersion"]:
        raise errors.conflict(resource.plural, resource.group, stored.name)


def check_finalizers(resource: Resource, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """A deleting object takes no new finalizer."""
    added = [name for name in new.get("finalizers") or () if name not in (old.get("finalizers") or ())]
    if "deletionTimestamp" in old and added:
        listed = ", ".join(f'"{name}"' for name in added)
        text = (
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{listed}}}"
        )
        fault = ("metadata.finalizers", "FieldValueForbidden", text)
        times = 2 if resource.custom else 1  # the real server names it twice for a custom resource
        raise errors.invalid(resource.kind, resource.group, old["name"], [fault] * times)


def is_over(obj: Mapping[str, Any]) -> bool:
    """Whether nothing keeps a deleting object any longer."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    return obj["kind"] != "Namespace" and not metadata.get("deletionGracePeriodSeconds")


def grace_seconds(resource: Resource, obj: Mapping[str, Any], options: DeleteOptions) -> int:
    """Seconds a Pod may take to end; without a node, or when it ended, nobody would end it [pod strategy]."""
    if resource != resources.PODS:
        return 0
    if not obj["spec"].get("nodeName") or obj["status"].get("phase") in ("Succeeded", "Failed"):
        return 0
    if options.grace_seconds is not None:
        return options.grace_seconds
    return int(obj["spec"]["terminationGracePeriodSeconds"])


def check_name(resource: Resource, name: str) -> None:
    """A name is given, and a DNS subdomain."""
    if not name:
        faults = [("metadata.name", "FieldValueRequired", "Required value: name or generateName is required")]
        faults += [_UNCHECKED] if resource.custom else []
        raise errors.invalid(resource.kind, resource.group, "", faults)
    if not re.fullmatch(_SUBDOMAIN, name) or len(name) > 253:
        fault = ("metadata.name", "FieldValueInvalid", f'Invalid value: "{name}": {_SUBDOMAIN_TEXT}')
        raise errors.invalid(resource.kind, resource.group, name, [fault])
