"""The refusal of an EurekaSyncer in the API server's own words, for a server that stands in its place.

The words are those of kube-apiserver 1.36: `validate` has plainer ones. Both go by the same schema and the same twins.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from eurekube_sync.manifests import object_meta
from eurekube_sync.manifests.crd import object_schema
from eurekube_sync.manifests.findings import Path
from eurekube_sync.manifests.rules import breaches, with_parents
from eurekube_sync.manifests.structural import Violation, prepared, to_json_schema, violations
from eurekube_sync.model.wording import counted

Cause = tuple[str, str, str]
"""Field, reason and text, as a Status has them."""

_BLOCKING = frozenset(f"FieldValue{what}" for what in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"))
"""After these no rule is run (`hasBlockingErr` in apiextensions-apiserver)."""
_UNCHECKED: Cause = (
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)
_BOUNDS = {
    "minLength": "should be at least {} chars long",
    "minimum": "should be greater than or equal to {}",
    "maximum": "should be less than or equal to {}",
    "multipleOf": "should be a multiple of {}",
    "minItems": "should have at least {} items",
    "minProperties": "should have at least {} properties",
    "pattern": "should match '{}'",
}
_COUNTED = ("minItems", "minProperties", "maxItems", "maxProperties")

_GO_ESCAPES = {'"': '\\"', "\\": "\\\\"} | dict(zip("\a\b\f\n\r\t\v", ("\\" + one for one in "abfnrtv"), strict=True))


class _Fault(NamedTuple):
    at: Path
    """The value that is judged."""
    cause: Cause


def refusal(new: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> tuple[Cause, ...]:
    """Why an object is refused: nothing if it is taken. What an update leaves as it was in `old` is not judged."""
    schema = object_schema()
    ready = prepared(new, schema)
    before = None if old is None else prepared(old, schema)
    violated = list(_told(violations(ready, _json_schema())))
    found = [fault for one in violated for fault in _faults(one) if _changed(fault.at, ready, before)]
    causes = [fault.cause for fault in found]
    if any(reason in _BLOCKING for _, reason, _ in causes):
        causes.append(_UNCHECKED)
    else:
        faulty = with_parents(frozenset(one.path for one in violated if one.keyword in ("type", "required")))
        for breach in breaches(ready, schema, faulty):
            if _changed(breach.at, ready, before):
                value = "" if isinstance(breach.value, dict | list) else f"{_quoted(breach.value)}: "
                causes.append((_field(breach.place), "FieldValueInvalid", f"Invalid value: {value}{breach.message}"))
    if _changed(("metadata",), ready, before):
        causes.extend(_metadata_causes(ready.get("metadata") or {}))
    return tuple(dict.fromkeys(causes))


@cache
def _json_schema() -> dict[str, Any]:
    return to_json_schema({**object_schema(), "x-kubernetes-preserve-unknown-fields": True})


def _told(violated: Iterable[Violation]) -> Iterator[Violation]:
    """Of the bounds of one string the API server tells the first that is not met."""
    of_strings = ("maxLength", "minLength", "pattern")
    told: set[Path] = set()
    for one in sorted(violated, key=lambda one: of_strings.index(one.keyword) if one.keyword in of_strings else 0):
        if one.keyword not in of_strings or one.path not in told:
            yield one
        if one.keyword in of_strings:
            told.add(one.path)


def _faults(one: Violation) -> Iterator[_Fault]:
    """The causes of one keyword that is not met. Unknown fields are none: they are dropped before."""
    field = _field(one.path)
    body = f"{field} in body"
    match one.keyword:
        case "additionalProperties":
            return
        case "required":
            for name in one.limit:
                if name not in one.value:
                    cause = (_field((*one.path, name)), "FieldValueRequired", "Required value")
                    yield _Fault(one.path, cause)
            return
        case "type":
            kind = _kind(one.value)
            wanted = one.limit if isinstance(one.limit, str) else ",".join(one.limit)
            text = f'Invalid value: "{kind}": {body} must be of type {wanted}: "{kind}"'
            cause = (field, "FieldValueTypeInvalid", text)
        case "enum":
            choices = ", ".join(f'"{choice}"' for choice in one.limit)
            text = f"Unsupported value: {_quoted(one.value)}: supported values: {choices}"
            cause = (field, "FieldValueNotSupported", text)
        case "maxLength":
            cause = (field, "FieldValueTooLong", f"Too long: may not be more than {counted(one.limit, 'byte')}")
        case "maxItems" | "maxProperties":
            text = f"Too many: {len(one.value)}: must have at most {counted(one.limit, 'item')}"
            cause = (field, "FieldValueTooMany", text)
        case "not":
            cause = ("<nil>", "FieldValueInvalid", f'Invalid value: "": "{field}" must not validate the schema (not)')
        case "x-kubernetes-list-type":
            keys = one.message.split(", ")
            twice = {key: one.value.get(key) for key in keys} if isinstance(one.value, dict) else one.value
            cause = (field, "FieldValueDuplicate", f"Duplicate value: {json.dumps(twice, separators=(',', ':'))}")
        case keyword:
            value = len(one.value) if keyword in _COUNTED else one.value
            text = f"Invalid value: {_quoted(value)}: {body} {_BOUNDS[keyword].format(one.limit)}"
            cause = (field, "FieldValueInvalid", text)
    yield _Fault(one.path, cause)


def _metadata_causes(metadata: Mapping[str, Any]) -> Iterator[Cause]:
    """Of all but the names, which the server that asks has judged itself."""
    for path, reason in object_meta.metadata_faults(metadata):
        if path[0] in ("labels", "annotations", "finalizers"):
            yield f"metadata.{path[0]}", "FieldValueInvalid", f"Invalid value: {reason}"
    for owner in metadata.get("ownerReferences") or ():
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                what = "version must" if name == "apiVersion" else "must"
                field = f"metadata.ownerReferences.{name}"
                yield field, "FieldValueInvalid", f'Invalid value: "": {what} not be empty'


def _changed(path: Path, new: Any, old: Any) -> bool:
    """Whether an update touches the value: an object that an older CRD let through can still be labelled."""
    return old is None or _at(path, new) != _at(path, old)


def _at(path: Path, value: Any) -> Any:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _field(path: Path) -> str:
    """Keys of a mapping are written with dots, whatever is in them."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int() if -(2**63) <= value < 2**63:
            return "integer"
        case int() | float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"


def _quoted(value: Any) -> str:
    """A scalar as Go's %q and %v write it."""
    if not isinstance(value, str):
        return json.dumps(value)
    return '"' + "".join(_GO_ESCAPES.get(one) or _escaped(one) for one in value) + '"'


def _escaped(one: str) -> str:
    if one == " " or one.isprintable():
        return one
    width = "x{:02x}" if one < "\x80" else "u{:04x}" if one < "\U00010000" else "U{:08x}"
    return "\\" + width.format(ord(one))
