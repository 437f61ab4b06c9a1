"""A structural schema of Kubernetes -> JSON Schema, and what the API server does to an object before it validates.

CRDs speak a dialect of JSON Schema draft 4. Three things differ: unknown fields are an error under strict field
validation wherever a schema names its properties; `nullable` and `x-kubernetes-int-or-string` say what a type says
elsewhere; patterns are Go's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema
from jsonschema.protocols import Validator

from eurekube_sync.manifests.findings import Path

Schema = Mapping[str, Any]

_COUNTS = {f"{end}{what}" for end in ("min", "max") for what in ("Length", "Items", "Properties", "imum")}
_LOGIC = {"not", "allOf", "anyOf", "oneOf"}
_KEPT = _COUNTS | _LOGIC | {"enum", "pattern", "multipleOf", "required", "exclusiveMinimum", "exclusiveMaximum"}
_LIST_TYPE = "x-kubernetes-list-type"
_LIST_KEYS = "x-kubernetes-list-map-keys"


def to_json_schema(schema: Schema) -> dict[str, Any]:
    """The same as JSON Schema: closed where the API server is strict, list types kept as keywords of their own."""
    found = {key: value for key, value in schema.items() if key in _KEPT or key in (_LIST_TYPE, _LIST_KEYS)}
    types = ["integer", "string"] if schema.get("x-kubernetes-int-or-string") else [*filter(None, [schema.get("type")])]
    if types:
        found["type"] = [*types, "null"] if schema.get("nullable") else types
    if "items" in schema:
        found["items"] = to_json_schema(schema["items"])
    if "properties" in schema:
        found["properties"] = {name: to_json_schema(sub) for name, sub in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), Mapping):
        found["additionalProperties"] = to_json_schema(schema["additionalProperties"])
    elif schema.get("type") == "object" and not is_open(schema):
        found["additionalProperties"] = False
    return found


def is_open(schema: Schema) -> bool:
    """Whether unknown fields are kept."""
    return bool(schema.get("x-kubernetes-preserve-unknown-fields")) or bool(schema.get("additionalProperties"))


def prepared(value: Any, schema: Schema) -> Any:
    """The value as the API server validates it: nulls where null is no value dropped, then defaults filled in."""
    if isinstance(value, Mapping):
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties")
        others = others if isinstance(others, Mapping) else {}
        kept = {}
        for key, item in value.items():
            known = key in properties or bool(others)
            sub = properties.get(key, others)
            if item is None and known and not sub.get("nullable"):
                continue
            kept[key] = prepared(item, sub)
        for key, sub in properties.items():
            if key not in kept and "default" in sub:
                kept[key] = sub["default"]
        return kept
    if isinstance(value, (list, tuple)):
        return [prepared(item, schema.get("items", {})) for item in value]
    return value


@cache
def go_pattern(pattern: str) -> re.Pattern[str]:
    """A Go pattern for Python: there `$` is the very end, here it also stands before a last newline."""
    return re.compile(re.sub(r"\$$", r"\\Z", pattern), re.ASCII)


def _pattern(_: Validator, pattern: str, instance: Any, __: Schema) -> Iterator[jsonschema.ValidationError]:
    if isinstance(instance, str) and not go_pattern(pattern).search(instance):
        yield jsonschema.ValidationError(f"does not match {pattern}")


def _list_type(_: Validator, kind: str, instance: Any, schema: Schema) -> Iterator[jsonschema.ValidationError]:
    """Items of a `set` or `map` list are unique."""
    if kind == "atomic" or not isinstance(instance, list):
        return
    keys = schema.get(_LIST_KEYS, ())
    seen: list[Any] = []
    for index, item in enumerate(instance):
        identity = {key: item.get(key) for key in keys} if kind == "map" and isinstance(item, Mapping) else item
        if identity in seen:
            yield jsonschema.ValidationError(", ".join(keys), path=[index], instance=item)
        seen.append(identity)


def _is_integer(_: Any, instance: Any) -> bool:
    return (isinstance(instance, int) and not isinstance(instance, bool)) or (
        isinstance(instance, float) and instance.is_integer()
    )


_STRUCTURAL: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]  # untyped there
    jsonschema.Draft4Validator,
    {"pattern": _pattern, _LIST_TYPE: _list_type},
    type_checker=jsonschema.Draft4Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One keyword of the schema that a value does not meet."""

    path: Path
    value: Any
    keyword: str
    limit: Any
    """What the schema says under the keyword."""
    known: tuple[str, ...]
    """The properties that the schema names at that place."""
    message: str


def violations(value: Any, json_schema: Schema) -> Iterator[Violation]:
    """All that a value does not meet of what `to_json_schema` gave."""
    for error in _STRUCTURAL(json_schema).iter_errors(value):
        yield Violation(
            path=tuple(error.absolute_path),
            value=error.instance,
            keyword=error.validator,
            limit=error.validator_value,
            known=tuple(error.schema.get("properties", ())),
            message=error.message,
        )
