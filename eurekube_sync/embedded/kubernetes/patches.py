"""The three patches kubectl and clients send: RFC 7386 merge, RFC 6902 JSON Patch, strategic merge.

Pure functions on JSON values. They never change their input; the result may share parts with it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

Json = Any

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_MERGE_KEYS: Mapping[str, str] = {
    "conditions": "type",
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "hostIPs": "ip",
    "addresses": "type",
    "imagePullSecrets": "name",
    "secrets": "name",
}
"""`patchMergeKey` of the built-in types that this server stores; `ports` depends on what it is in."""


class PatchError(ValueError):
    """The patch does not fit the object, or a `test` failed."""


def merge_patch(target: Json, patch: Json) -> Json:
    """Apply an RFC 7386 merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def json_patch(target: Json, operations: Sequence[Json]) -> Json:
    """Apply the operations add, replace, remove and test of RFC 6902; raises `PatchError` on all that does not fit."""
    document = copy.deepcopy(target)
    for operation in operations:
        try:
            _apply(document, operation["op"], operation["path"], operation.get("value"))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise PatchError(f"it does not fit: {operation}") from error
    return document


def _apply(document: Json, verb: str, path: str, value: Json) -> None:
    *parents, last = [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]
    parent = document
    for token in parents:
        parent = parent[int(token) if isinstance(parent, list) else token]
    is_list = isinstance(parent, list)
    key: Any = int(last) if is_list and last != "-" else last
    match verb:
        case "test" if (parent[key] if is_list else parent.get(key)) == value:
            pass  # `test x null` holds where x is absent, as in the real one
        case "add" if is_list:
            parent.insert(len(parent) if key == "-" else key, value)
        case "add":
            parent[key] = value
        case "replace" if is_list or key in parent:
            parent[key] = value
        case "remove":
            del parent[key]
        case _:
            raise ValueError(verb)


def strategic_merge_patch(target: Json, patch: Json) -> Json:
    """Apply a strategic merge patch, for the built-in types: lists of `_MERGE_KEYS` merge, other lists are replaced,
    and `$setElementOrder` is ignored."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        if value is None:
            result.pop(name, None)
        elif isinstance(value, list):
            result[name] = _merged_list(name, result.get(name) or [], value)
        else:
            result[name] = strategic_merge_patch(result.get(name), value)
    return result


def _merged_list(name: str, old: Sequence[Json], new: Sequence[Json]) -> list[Json]:
    key = _merge_key(name, [*old, *new])
    if key is None or any(not isinstance(item, dict) for item in [*old, *new]):
        return list(new)
    merged = list(old)
    for item in new:
        position = next((at for at, present in enumerate(merged) if present.get(key) == item.get(key)), len(merged))
        before = merged[position] if position < len(merged) else {}
        deleted = item.get("$patch") == "delete"
        merged[position : position + 1] = [] if deleted else [strategic_merge_patch(before, item)]
    return merged


def _merge_key(name: str, items: Sequence[Json]) -> str | None:
    if name != "ports":
        return _MERGE_KEYS.get(name)
    in_container = any(isinstance(item, dict) and "containerPort" in item for item in items)
    return "containerPort" if in_container else "port"
