"""What is checked before an object is written, with which words it is refused, and what a structural schema does to a
custom resource: unknown fields are pruned, defaults are added.

Functions of the request, the resource and the version that is stored; no store, no clock. Custom resources are
validated proper by the function that the server is given.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from eurekube_sync.embedded.kubernetes import errors
from eurekube_sync.embedded.kubernetes.resources import Resource

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
_ROOT_FIELDS = ("apiVersion", "kind", "metadata")
_METADATA_FIELDS = (
    *("annotations", "labels", "finalizers", "ownerReferences", "managedFields"),
    *("name", "namespace", "generateName", "uid", "resourceVersion", "generation", "selfLink"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
)


class _Metadata(msgspec.Struct):
    """What of ObjectMeta has to be text; a null is as Go reads it."""

    name: str | None = None
    namespace: str | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None


def typed(resource: Resource, body: Any) -> Object:
    """The body with its kind and apiVersion, or a refusal if it is of another shape."""
    if not isinstance(body, dict):
        raise errors.bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    metadata = body.get("metadata") or {}
    try:
        msgspec.convert(metadata, _Metadata)
    except msgspec.ValidationError as error:
        raise errors.unreadable(resource, f"json: cannot unmarshal metadata: {error}") from None
    for field in ("labels", "annotations"):
        if metadata.get(field):
            metadata = {**metadata, field: {key: value or "" for key, value in metadata[field].items()}}
    return {**body, "kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}


def check_name(resource: Resource, name: str) -> None:
    """A name is given, and a DNS subdomain."""
    faults = []
    if not name:
        faults = [("metadata.name", "FieldValueRequired", "Required value: name or generateName is required")]
        faults += [_UNCHECKED] if resource.custom else []
    elif not re.fullmatch(_SUBDOMAIN, name) or len(name) > 253:
        faults = [("metadata.name", "FieldValueInvalid", f'Invalid value: "{name}": {_SUBDOMAIN_TEXT}')]
    if faults:
        raise errors.invalid(resource.kind, resource.group, name, faults)


def check_version(resource: Resource, old: Mapping[str, Any], new: Mapping[str, Any], *, patch: bool) -> None:
    """Refuse another uid and an older version. The uid of a PATCH's outcome is no precondition."""
    name, uid, revision = old["name"], new.get("uid"), new.get("resourceVersion")
    if uid and uid != old["uid"] and patch:
        fault = ("metadata.uid", "FieldValueInvalid", f'Invalid value: "{uid}": field is immutable')
        raise errors.invalid(resource.kind, resource.group, name, [fault])
    if uid and uid != old["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
        raise errors.conflict(resource, name, why)
    if revision and revision != old["resourceVersion"]:
        raise errors.conflict(resource, name)


def pruned(obj: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[Object, list[str]]:
    """The object without what the schema does not name, and the dotted names of what was left out."""
    unknown: list[str] = []
    if not schema:
        return dict(obj), unknown
    own = {name: value for name, value in obj.items() if name not in _ROOT_FIELDS}
    metadata = obj.get("metadata") or {}
    kept = {name: obj[name] for name in obj if name in _ROOT_FIELDS} | _pruned(own, schema, "", unknown)
    kept["metadata"] = {name: value for name, value in metadata.items() if name in _METADATA_FIELDS}
    return kept, sorted(unknown) + sorted(f"metadata.{name}" for name in metadata if name not in _METADATA_FIELDS)


def _pruned(value: Any, schema: Mapping[str, Any], path: str, unknown: list[str]) -> Any:
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [_pruned(item, items, f"{path}[{index}]", unknown) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    additional = schema.get("additionalProperties")
    kept: Object = {}
    for name, inner in value.items():
        where = f"{path}.{name}" if path else name
        below = (schema.get("properties") or {}).get(name, additional)
        if isinstance(below, dict):
            kept[name] = _pruned(inner, below, where, unknown)
        elif below is True or schema.get("x-kubernetes-preserve-unknown-fields"):
            kept[name] = inner
        else:
            unknown.append(where)
    return kept


def with_defaults(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value with the schema's defaults where a field is absent, and without nulls where none are allowed."""
    if isinstance(value, list):
        return [with_defaults(item, schema.get("items") or {}) for item in value]
    if not isinstance(value, dict):
        return value
    properties: Mapping[str, Any] = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    others = additional if isinstance(additional, dict) else {"nullable": True}
    result = {
        name: with_defaults(item, properties.get(name, others))
        for name, item in value.items()
        if item is not None or properties.get(name, others).get("nullable") or name in _ROOT_FIELDS
    }
    for name, inner in properties.items():
        if name not in result and "default" in inner:
            result[name] = with_defaults(copy.deepcopy(inner["default"]), inner)
    return result
