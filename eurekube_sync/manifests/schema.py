"""Checks objects against the structural schema of a CRD, which is read as JSON Schema.

Structural schemas differ from JSON Schema draft 4 in three ways. Unknown fields are an error under
strict field validation (`conformed`). `nullable` and `x-kubernetes-int-or-string` stand for types.
Patterns are Go's. CEL rules and list types are not checked here: the parser of a spec refuses the
same values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

import jsonschema
from jsonschema.protocols import Validator

from eurekube_sync.model.wording import (
    Fault,
    Path,
    counted,
    missing_field,
    shown,
    unknown_field,
    wrong_type,
)

Schema: TypeAlias = Mapping[str, Any]

_EXAMPLE = re.compile(r"Example: (?:`(.+)`|(\S+))\.\s*\Z", re.DOTALL)
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(rf"{_DNS_LABEL.pattern}(\.{_DNS_LABEL.pattern})*")
_NAME_PART = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_TEXTS = {"type": "object", "additionalProperties": {**_TEXT, "default": ""}}  # Go reads null as ""
_ANYTHING = {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}
METADATA: Schema = {
    "type": "object",
    "properties": {
        **dict.fromkeys(
            ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), _TEXT
        ),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TEXT),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _NUMBER),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        "finalizers": {"type": "array", "items": _TEXT},
        **dict.fromkeys(("ownerReferences", "managedFields"), _ANYTHING),
    },
}
"""The structural schema of ObjectMeta, which a CRD does not describe."""


def to_json_schema(schema: Schema) -> dict[str, Any]:
    """Convert a structural schema to JSON Schema. Validators ignore Kubernetes' own keywords, which
    may stay."""
    found = dict(schema)
    types = (
        ["integer", "string"]
        if schema.get("x-kubernetes-int-or-string")
        else [*filter(None, [schema.get("type")])]
    )
    if types:
        found["type"] = [*types, "null"] if schema.get("nullable") else types
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            found[name] = to_json_schema(schema[name])
    if "properties" in schema:
        found["properties"] = {
            name: to_json_schema(sub) for name, sub in schema["properties"].items()
        }
    return found


def conformed(obj: Mapping[str, Any], schema: Schema) -> tuple[dict[str, Any], list[Fault]]:
    """Return an object as the API server stores it, and the unknown fields that it drops. Defaults
    are set, and nulls that are no values are dropped."""
    unknown: list[Fault] = []
    own = {**schema.get("properties", {}), "apiVersion": {}, "kind": {}, "metadata": METADATA}
    return _conformed(obj, {**schema, "properties": own}, (), unknown), unknown


def _conformed(value: Any, schema: Schema, path: Path, unknown: list[Fault]) -> Any:
    if isinstance(value, (list, tuple)):
        items = schema.get("items", {})
        return [
            _conformed(item, items, (*path, index), unknown) for index, item in enumerate(value)
        ]
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    if not isinstance(value, Mapping) or not (properties or others):
        return value
    kept = {name: part["default"] for name, part in properties.items() if "default" in part}
    for name, item in value.items():
        part = properties.get(name, {} if others is True else others)
        if part is None and not schema.get("x-kubernetes-preserve-unknown-fields"):
            unused = [other for other in properties if other not in value]
            unknown.append(((*path, name), unknown_field(name, unused)))
        elif item is not None or not part or part.get("nullable"):
            kept[name] = _conformed(item, part or {}, (*path, name), unknown)
        elif "default" in part:
            kept[name] = part["default"]
    return kept


def schema_faults(value: Any, json_schema: Schema, *, dropped: str = "") -> dict[Path, str]:
    """Return each missing field, and the first broken rule of each other value. The field `dropped`
    is not checked."""
    found: dict[Path, str] = {}
    for error in _STRUCTURAL(json_schema).iter_errors(value):
        path = tuple(error.absolute_path)
        if path[:1] == (dropped,):
            continue
        if error.validator == "required":
            missing = (name for name in error.validator_value if name not in error.instance)
            found |= {(*path, name): missing_field(name) for name in missing}
        else:
            found.setdefault(path, _reason(error))
    return found


def _reason(error: Any) -> str:
    limit = error.validator_value
    match error.validator:
        case "type":
            return wrong_type(error.instance, [limit] if isinstance(limit, str) else limit)
        case "minLength" | "minItems" | "minProperties" if limit == 1:
            return "must not be empty"
        case "maxItems" | "maxProperties":
            return (
                f"has {counted(len(error.instance), 'entry', 'entries')}, at most "
                f"{counted(limit, 'is', 'are')} allowed"
            )
        case "pattern":
            example = _EXAMPLE.search(error.schema.get("description", ""))
            such_as = f", such as {example[1] or example[2]}" if example else ""
            rule = f"it must match {limit.encode('ascii', 'backslashreplace').decode()}{such_as}"
        case keyword:
            rule = f"{keyword} is {shown(limit)}"
    return f"{shown(error.instance)} is not allowed: {rule}"


@cache
def go_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a Go pattern. In Go `$` matches only at the very end; in Python it also matches
    before a last newline."""
    return re.compile(re.sub(r"\$$", r"\\Z", pattern), re.ASCII)


def _pattern(
    _: Validator, pattern: str, instance: Any, __: Schema
) -> Iterator[jsonschema.ValidationError]:
    if isinstance(instance, str) and not go_pattern(pattern).search(instance):
        yield jsonschema.ValidationError(f"does not match {pattern}")


_STRUCTURAL: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]  # untyped there
    jsonschema.Draft6Validator,  # the first draft in which 1.0 is an integer, as in Kubernetes
    {"pattern": _pattern},
)


def metadata_faults(metadata: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Check the names, labels and annotations of a `metadata` that meets the schema."""
    name, namespace = metadata.get("name") or "", metadata.get("namespace") or ""
    if not name and not metadata.get("generateName"):
        yield ("name",), 'field "name" is missing'
    if name and (len(name) > 253 or not _DNS_SUBDOMAIN.fullmatch(name)):
        yield (
            ("name",),
            f'"{name[:60]}" is not a DNS name: lower-case letters, digits, hyphens and dots, at most 253',
        )
    if namespace and (len(namespace) > 63 or not _DNS_LABEL.fullmatch(namespace)):
        text = f'"{namespace[:60]}" is not a namespace: lower-case letters, digits and hyphens, at most 63'
        yield ("namespace",), text
    for key, value in (metadata.get("labels") or {}).items():
        yield from _key(("labels", key), key)
        if value and (len(value) > 63 or not _NAME_PART.fullmatch(value)):
            yield (
                ("labels", key),
                "a label's value has at most 63 letters, digits, dots, hyphens and underscores",
            )
    for key in metadata.get("annotations") or ():
        yield from _key(("annotations", key), key.lower())


def _key(path: Path, key: str) -> Iterator[tuple[Path, str]]:
    """Check a qualified name: `name`, or `dns.prefix/name`."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _DNS_SUBDOMAIN.fullmatch(prefix)):
        yield path, f'"{prefix[:60]}" before the slash is not a DNS name'
    if len(name) > 63 or not _NAME_PART.fullmatch(name):
        yield (
            path,
            f'"{name[:60]}" is not a name: at most 63 letters, digits, dots, hyphens and underscores',
        )
