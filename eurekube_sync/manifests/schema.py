"""What the CRD's schema says of an object: a structural schema of Kubernetes is read as JSON Schema.

CRDs speak a dialect of JSON Schema draft 4. Three things differ: unknown fields are an error under strict field
validation wherever a schema names its properties; `nullable` and `x-kubernetes-int-or-string` say what a type says
elsewhere; patterns are Go's. CEL rules and list types are not read: the program's own parse refuses what they refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

import jsonschema
from jsonschema.protocols import Validator

from eurekube_sync.model.wording import Path, counted, missing_field, shown, unknown_field, wrong_type

Schema: TypeAlias = Mapping[str, Any]

_EXAMPLE = re.compile(r"Example: (?:`(.+)`|(\S+))\.\s*\Z", re.DOTALL)
_EXAMPLE = re.compile(r"Example: (?:`(.+)`|(\S+))\.\s*\Z", re.DOTALL)
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(rf"{_DNS_LABEL.pattern}(\.{_DNS_LABEL.pattern})*")
_NAME_PART = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")

_TEXT = {"type": ["string", "null"]}
_NUMBER = {"type": ["integer", "null"]}
_TEXTS = {"type": ["object", "null"], "additionalProperties": _TEXT}
METADATA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        **dict.fromkeys(("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), _TEXT),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TEXT),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _NUMBER),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {"type": ["array", "null"], "items": {"type": "string"}},
        **{key: {"type": ["array", "null"]} for key in ("ownerReferences", "managedFields")},
    },
}
"""JSON Schema of ObjectMeta, which a CRD does not describe. Null means absent, as Go reads it."""


def to_json_schema(schema: Schema) -> dict[str, Any]:
    """The same as JSON Schema: closed where the API server is strict. A validator ignores Kubernetes' own keywords."""
    found = dict(schema)
    types = ["integer", "string"] if schema.get("x-kubernetes-int-or-string") else [*filter(None, [schema.get("type")])]
    if types:
        found["type"] = [*types, "null"] if schema.get("nullable") else types
    if "items" in schema:
        found["items"] = to_json_schema(schema["items"])
    if "properties" in schema:
        found["properties"] = {name: to_json_schema(sub) for name, sub in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), Mapping):
        found["additionalProperties"] = to_json_schema(schema["additionalProperties"])
    elif schema.get("type") == "object" and not schema.get("x-kubernetes-preserve-unknown-fields"):
        found["additionalProperties"] = False
    return found


def prepared(value: Any, schema: Schema) -> Any:
    """The value as the API server validates it: nulls where null is no value dropped, then defaults filled in."""
    if isinstance(value, Mapping):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        parts = {key: properties.get(key, others if isinstance(others, Mapping) else {}) for key in value}
        kept = {
            key: prepared(item, parts[key])
            for key, item in value.items()
            if item is not None or not parts[key] or parts[key].get("nullable")
        }
        return {key: part["default"] for key, part in properties.items() if "default" in part} | kept
    if isinstance(value, (list, tuple)):
        return [prepared(item, schema.get("items", {})) for item in value]
    return value


def schema_faults(value: Any, json_schema: Schema, *, dropped: str = "") -> dict[Path, str]:
    """Each unknown field and each missing one, and of every other value the first rule that it breaks. Of the field
    `dropped` only unknown fields are told."""
    found: dict[Path, str] = {}
    for error in _STRUCTURAL(json_schema).iter_errors(value):
        path = tuple(error.absolute_path)
        if error.validator == "additionalProperties":
            known = error.schema.get("properties", ())
            unused = [name for name in known if name not in error.instance]
            found |= {(*path, name): unknown_field(name, unused) for name in error.instance if name not in known}
        elif path[:1] == (dropped,):
            continue
        elif error.validator == "required":
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
            return f"has {counted(len(error.instance), 'entry', 'entries')}, at most {limit} are allowed"
        case "pattern":
            example = _EXAMPLE.search(error.schema.get("description", ""))
            such_as = f", such as {example[1] or example[2]}" if example else ""
            rule = f"it must match {limit.encode('ascii', 'backslashreplace').decode()}{such_as}"
        case keyword:
            rule = f"{keyword} is {shown(limit)}"
    return f"{shown(error.instance)} is not allowed: {rule}"


@cache
def go_pattern(pattern: str) -> re.Pattern[str]:
    """A Go pattern for Python: there `$` is the very end, here it also matches before a last newline."""
    return re.compile(re.sub(r"\$$", r"\\Z", pattern), re.ASCII)


def _pattern(_: Validator, pattern: str, instance: Any, __: Schema) -> Iterator[jsonschema.ValidationError]:
    if isinstance(instance, str) and not go_pattern(pattern).search(instance):
        yield jsonschema.ValidationError(f"does not match {pattern}")


_STRUCTURAL: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]  # untyped there
    jsonschema.Draft6Validator,  # the first draft to which 1.0 is an integer, as it is to Kubernetes
    {"pattern": _pattern},
)


def metadata_faults(metadata: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """What is wrong with the names, labels and annotations of a `metadata` that meets the schema."""
    name, namespace = metadata.get("name") or "", metadata.get("namespace") or ""
    if not name and not metadata.get("generateName"):
        yield ("name",), 'field "name" is missing'
    if name and (len(name) > 253 or not _DNS_SUBDOMAIN.fullmatch(name)):
        yield ("name",), f'"{name[:60]}" is not a DNS name: lower-case letters, digits, hyphens and dots, at most 253'
    if namespace and (len(namespace) > 63 or not _DNS_LABEL.fullmatch(namespace)):
        text = f'"{namespace[:60]}" is not a namespace: lower-case letters, digits and hyphens, at most 63'
        yield ("namespace",), text
    for key, value in (metadata.get("labels") or {}).items():
        yield from _key(("labels", key), key)
        if value and (len(value) > 63 or not _NAME_PART.fullmatch(value)):
            yield ("labels", key), "a label's value has at most 63 letters, digits, dots, hyphens and underscores"
    for key in metadata.get("annotations") or ():
        yield from _key(("annotations", key), key.lower())


def _key(path: Path, key: str) -> Iterator[tuple[Path, str]]:
    """A qualified name: `name`, or `dns.prefix/name`."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _DNS_SUBDOMAIN.fullmatch(prefix)):
        yield path, f'"{prefix[:60]}" before the slash is not a DNS name'
    if len(name) > 63 or not _NAME_PART.fullmatch(name):
        yield path, f'"{name[:60]}" is not a name: at most 63 letters, digits, dots, hyphens and underscores'
