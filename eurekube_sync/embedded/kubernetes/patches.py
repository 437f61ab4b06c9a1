"""The three patches kubectl and clients send: RFC 7386 merge, RFC 6902 JSON Patch, strategic merge.

Pure functions on JSON values. They never change their input; the result may share parts with it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_MERGE_KEYS: Mapping[str, str] = {
    **dict.fromkeys(("containers", "initContainers", "env", "volumes", "imagePullSecrets", "secrets"), "name"),
    **dict.fromkeys(("podIPs", "hostIPs"), "ip"),
    **dict.fromkeys(("conditions", "addresses"), "type"),
    "volumeMounts": "mountPath",
    "ownerReferences": "uid",
}
"""`patchMergeKey` of the built-in types that this server stores; `ports` depends on what it is in."""


class PatchError(ValueError):
    """The patch does not fit the object, or a `test` failed."""


def merge_patch(target: Any, patch: Any) -> Any:
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


def json_patch(target: Any, operations: Sequence[Any]) -> Any:
    """Apply the operations add, replace, remove and test of RFC 6902; raises `PatchError` on all that does not fit."""
    document = copy.deepcopy(target)
    for operation in operations:
        try:
            _apply(document, operation["op"], operation["path"], operation.get("value"))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise PatchError(f"it does not fit: {operation}") from error
    return document


def _apply(document: Any, verb: str, path: str, value: Any) -> None:
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


def strategic_merge_patch(target: Any, patch: Any) -> Any:
    """Apply a strategic merge patch, for the built-in types: lists of `_MERGE_KEYS` merge, other lists are replaced,
    and `$setElementOrder` is ignored."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, list) and not name.startswith("$"):
            result[name] = _merged_list(name, result.get(name) or [], value)
        elif not name.startswith("$"):
            result[name] = strategic_merge_patch(result.get(name), value)
    return result


def _merged_list(name: str, old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    items = [*old, *new]
    if not all(isinstance(item, dict) for item in items):
        return list(new)
    key = _MERGE_KEYS.get(name)
    if name == "ports":
        key = "containerPort" if any("containerPort" in item for item in items) else "port"
    if key is None:
        return list(new)
    merged = list(old)
    for item in new:
        position = next((at for at, present in enumerate(merged) if present.get(key) == item.get(key)), len(merged))
        before = merged[position] if position < len(merged) else {}
        deleted = item.get("$patch") == "delete"
        merged[position : position + 1] = [] if deleted else [strategic_merge_patch(before, item)]
    return merged
