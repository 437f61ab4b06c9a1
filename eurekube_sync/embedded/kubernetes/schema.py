"""What a structural schema does to a custom resource before it is stored: prune unknown fields, add defaults.

Validation proper is not here: `EmbeddedKubernetes` takes it as a callable.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

_ROOT_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
_METADATA_FIELDS = frozenset(
    {
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


def prune(obj: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The object without what the schema does not name, and the dotted names of what was left out."""
    unknown: list[str] = []
    if not schema:
        return dict(obj), unknown
    known = {name: value for name, value in obj.items() if name not in _ROOT_FIELDS}
    pruned = {**{name: obj[name] for name in obj if name in _ROOT_FIELDS}, **_prune(known, schema, "", unknown)}
    metadata = obj.get("metadata") or {}
    pruned["metadata"] = {name: value for name, value in metadata.items() if name in _METADATA_FIELDS}
    of_metadata = sorted(f"metadata.{name}" for name in metadata if name not in _METADATA_FIELDS)
    return pruned, [*sorted(unknown), *of_metadata]


def _prune(value: Any, schema: Mapping[str, Any], path: str, unknown: list[str]) -> Any:
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [_prune(item, items, f"{path}[{index}]", unknown) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    keep = schema.get("x-kubernetes-preserve-unknown-fields") or additional is True
    kept: dict[str, Any] = {}
    for name, inner in value.items():
        where = f"{path}.{name}" if path else name
        if name in properties:
            kept[name] = _prune(inner, properties[name], where, unknown)
        elif isinstance(additional, dict):
            kept[name] = _prune(inner, additional, where, unknown)
        elif keep:
            kept[name] = inner
        else:
            unknown.append(where)
    return kept


def with_defaults(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value with the schema's defaults where a field is absent, and without nulls where none are allowed."""
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [with_defaults(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    properties: Mapping[str, Any] = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    others = additional if isinstance(additional, dict) else {"nullable": True}
    result = {
        name: item
        for name, item in value.items()
        if item is not None or properties.get(name, others).get("nullable") or name in _ROOT_FIELDS
    }
    for name, inner in properties.items():
        if name not in result and "default" in inner:
            result[name] = copy.deepcopy(inner["default"])
    for name in result:
        if name in properties:
            result[name] = with_defaults(result[name], properties[name])
        elif isinstance(additional, dict):
            result[name] = with_defaults(result[name], additional)
    return result
