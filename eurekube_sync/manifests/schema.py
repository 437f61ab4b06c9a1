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

from eurekube_sync.model.faults import Fault, Path, missing_field, shown, unknown_field, wrong_type
from eurekube_sync.model.text import counted

Schema: TypeAlias = Mapping[str, Any]

_EXAMPLE = re.compile(r"Example: (?:`(.+)`|(\S+))\.\s*\Z", re.DOTALL)
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(rf"{_DNS_LABEL.pattern}(\.{_DNS_LABEL.pattern})*")
_NAME_PART = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")

_OF_EACH_OBJECT = frozenset({"apiVersion", "kind", "metadata"})  # kept whatever a schema says
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


def lacking_fields(schema: Schema, expected: Schema) -> tuple[str, ...]:
    """Return the fields that `expected` has and a structural schema lacks, such as `status.apps`,
    without those within them. The API server drops such fields."""
    return tuple(dict.fromkeys(_lacking(schema, expected, "")))


def _lacking(schema: Schema, expected: Schema, path: str) -> Iterator[str]:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    fields = schema.get("properties", {})
    for name, field in expected.get("properties", {}).items():
        if not path and name in _OF_EACH_OBJECT:
            continue
        if name in fields:
            yield from _lacking(fields[name], field, f"{path}{name}.")
        else:
            yield f"{path}{name}"
    for part in ("items", "additionalProperties"):
        if not isinstance(expected.get(part), Mapping):
            continue
        if isinstance(schema.get(part), Mapping):
            yield from _lacking(schema[part], expected[part], path)
        else:
            yield path.removesuffix(".")


def to_json_schema(schema: Schema) -> dict[str, Any]:
    """Convert a structural schema to JSON Schema. Validators ignore Kubernetes' own keywords, which
    may stay."""
    converted = dict(schema)
    types = []
    if schema.get("x-kubernetes-int-or-string"):
        types = ["integer", "string"]
    elif schema.get("type"):
        types = [schema["type"]]
    if types and schema.get("nullable"):
        types.append("null")
    if types:
        converted["type"] = types
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), Mapping):
            converted[keyword] = to_json_schema(schema[keyword])
    if "properties" in schema:
        properties = {}
        for name, property_ in schema["properties"].items():
            properties[name] = to_json_schema(property_)
        converted["properties"] = properties
    return converted


def conformed(obj: Mapping[str, Any], schema: Schema) -> tuple[dict[str, Any], list[Fault]]:
    """Return an object as the API server stores it, and the unknown fields that it drops. Defaults
    are set, and nulls that are no values are dropped."""
    # A CRD need not describe what each object has.
    own = {**schema.get("properties", {}), "apiVersion": {}, "kind": {}, "metadata": METADATA}
    whole = {**schema, "properties": own}
    unknown: list[Fault] = []
    kept = _conformed(obj, whole, (), unknown)
    return kept, unknown


def _conformed(value: Any, schema: Schema, path: Path, unknown: list[Fault]) -> Any:
    """Return a value as it is stored, and add its unknown fields to `unknown`."""
    if isinstance(value, (list, tuple)):
        of_items = schema.get("items", {})
        items = []
        for index, item in enumerate(value):
            items.append(_conformed(item, of_items, (*path, index), unknown))
        return items
    has_fields = schema.get("properties") or schema.get("additionalProperties")
    if has_fields and isinstance(value, Mapping):
        return _conformed_object(value, schema, path, unknown)
    return value


def _conformed_object(
    obj: Mapping[str, Any], schema: Schema, path: Path, unknown: list[Fault]
) -> dict[str, Any]:
    """Return the fields of an object that are stored: defaults, and given values that its schema
    has."""
    properties = schema.get("properties", {})
    kept = {}
    for name, part in properties.items():
        if "default" in part:
            kept[name] = part["default"]
    for name, value in obj.items():
        part = properties.get(name, _of_others(schema))
        if part is None:
            unused = [field for field in properties if field not in obj]
            unknown.append(((*path, name), unknown_field(name, unused)))
        elif value is None and part and not part.get("nullable"):
            # A null is no value, so a default takes its place, even one under additionalProperties.
            if "default" in part:
                kept[name] = part["default"]
        else:
            kept[name] = _conformed(value, part, (*path, name), unknown)
    return kept


def _of_others(schema: Schema) -> Schema | None:
    """Return the schema of fields without one of their own, or None if there may be none."""
    others = schema.get("additionalProperties")
    if others is True or (others is None and schema.get("x-kubernetes-preserve-unknown-fields")):
        return {}
    return others


def schema_faults(value: Any, json_schema: Schema, *, dropped: str = "") -> dict[Path, str]:
    """Return each missing field, and the first broken rule of each other value. The field `dropped`
    is not checked."""
    faults: dict[Path, str] = {}
    for error in _STRUCTURAL(json_schema).iter_errors(value):
        path = tuple(error.absolute_path)
        if path[:1] == (dropped,):
            continue
        if error.validator != "required":
            faults.setdefault(path, _reason(error))
            continue
        # Its message names one field, and is about the object.
        for name in error.validator_value:
            if name not in error.instance:
                faults[*path, name] = missing_field(name)
    return faults


def _reason(error: Any) -> str:
    """Return the sentence about a broken rule of JSON Schema."""
    limit = error.validator_value
    match error.validator:
        case "type":
            types = [limit] if isinstance(limit, str) else limit
            return wrong_type(error.instance, types)
        case "minLength" | "minItems" | "minProperties" if limit == 1:
            return "must not be empty"
        case "maxItems" | "maxProperties":
            entries = counted(len(error.instance), "entry", "entries")
            most = counted(limit, "is", "are")
            return f"has {entries}, at most {most} allowed"
        case "pattern":
            pattern = limit.encode("ascii", "backslashreplace").decode()
            rule = f"it must match {pattern}"
            example = _EXAMPLE.search(error.schema.get("description", ""))
            if example:
                rule = f"{rule}, such as {example[1] or example[2]}"
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
    yield from _name_faults(metadata)
    labels = metadata.get("labels") or {}
    for key, value in labels.items():
        yield from _key_faults(("labels", key), key)
        if value and not _fits(value, _NAME_PART, 63):
            rule = "at most 63 letters, digits, dots, hyphens and underscores"
            yield ("labels", key), f"a label's value has {rule}"
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        yield from _key_faults(("annotations", key), key.lower())


def _name_faults(metadata: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Check the name and the namespace, which may be absent."""
    name = metadata.get("name") or ""
    if name and not _fits(name, _DNS_SUBDOMAIN, 253):
        rule = "lower-case letters, digits, hyphens and dots, at most 253"
        yield ("name",), f'"{name[:60]}" is not a DNS name: {rule}'
    # The API server makes a name from `generateName`.
    if not name and not metadata.get("generateName"):
        yield ("name",), missing_field("name")
    namespace = metadata.get("namespace") or ""
    if namespace and not _fits(namespace, _DNS_LABEL, 63):
        rule = "lower-case letters, digits and hyphens, at most 63"
        yield ("namespace",), f'"{namespace[:60]}" is not a namespace: {rule}'


def _key_faults(path: Path, key: str) -> Iterator[tuple[Path, str]]:
    """Check a qualified name: `name`, or `dns.prefix/name`."""
    prefix, slash, name = key.rpartition("/")
    if slash and not _fits(prefix, _DNS_SUBDOMAIN, 253):
        yield path, f'"{prefix[:60]}" before the slash is not a DNS name'
    if not _fits(name, _NAME_PART, 63):
        rule = "at most 63 letters, digits, dots, hyphens and underscores"
        yield path, f'"{name[:60]}" is not a name: {rule}'


def _fits(text: str, pattern: re.Pattern[str], most: int) -> bool:
    return len(text) <= most and pattern.fullmatch(text) is not None
