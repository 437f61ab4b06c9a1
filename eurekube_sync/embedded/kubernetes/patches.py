"""The three patches kubectl and clients send: RFC 7386 merge, RFC 6902 JSON Patch, strategic merge.

Pure functions on JSON values. They never change their input; the result may share parts with it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
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


def json_patch(target: Json, operations: Json) -> Json:
    """Apply an RFC 6902 patch; raises `PatchError` on anything that does not fit."""
    if not isinstance(operations, list):
        raise PatchError("a JSON Patch is a list of operations")
    document = copy.deepcopy(target)
    for operation in operations:
        document = _step(document, operation)
    return document


def _step(document: Json, operation: Json) -> Json:
    if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
        raise PatchError("an operation is an object with a path")
    path = operation["path"]
    verb = operation.get("op")
    if verb == "test":
        if not _equal(_read(document, path, missing=None), operation.get("value")):
            raise PatchError(f"testing value {path} failed")
        return document
    if verb == "remove":
        return _removed(document, path)
    if verb in ("add", "replace"):
        if "value" not in operation:
            raise PatchError("an operation without a value")
        if verb == "replace":
            _read(document, path)
        return _written(document, path, copy.deepcopy(operation["value"]), insert=verb == "add")
    if verb in ("copy", "move"):
        source = str(operation.get("from"))
        value = copy.deepcopy(_read(document, source))
        if verb == "move":
            document = _removed(document, source)
        return _written(document, path, value, insert=True)
    raise PatchError(f"unexpected kind: {verb}")


def _equal(left: Json, right: Json) -> bool:
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    return bool(left == right)


def _tokens(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise PatchError(f"{path} is no JSON pointer")
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]


_REQUIRED = object()


def _read(document: Json, path: str, missing: Json = _REQUIRED) -> Json:
    """The value at `path`. A last key that is absent gives `missing`; `test x null` on it holds, as in the real one."""
    tokens = _tokens(path)
    for index, token in enumerate(tokens):
        if isinstance(document, dict):
            if token not in document:
                if missing is _REQUIRED or index < len(tokens) - 1:
                    raise PatchError(f"missing value at {path}")
                return missing
            document = document[token]
        elif isinstance(document, list):
            document = document[_index(token, len(document) - 1)]
        else:
            raise PatchError(f"missing value at {path}")
    return document


def _index(token: str, last: int) -> int:
    if not token.isdigit() or int(token) > last:
        raise PatchError(f"index {token} is out of range")
    return int(token)


def _parent(document: Json, path: str) -> tuple[Json, str]:
    tokens = _tokens(path)
    return _read(document, path.rsplit("/", 1)[0]), tokens[-1]


def _written(document: Json, path: str, value: Json, *, insert: bool) -> Json:
    if not path:
        return value
    parent, token = _parent(document, path)
    if isinstance(parent, dict):
        parent[token] = value
    elif isinstance(parent, list) and insert:
        parent.insert(len(parent) if token == "-" else _index(token, len(parent)), value)
    elif isinstance(parent, list):
        parent[_index(token, len(parent) - 1)] = value
    else:
        raise PatchError(f"{path} has no parent")
    return document


def _removed(document: Json, path: str) -> Json:
    _read(document, path)
    parent, token = _parent(document, path)
    del parent[int(token) if isinstance(parent, list) else token]
    return document


def strategic_merge_patch(target: Json, patch: Json) -> Json:
    """Apply a strategic merge patch, for the built-in types: lists of `_MERGE_KEYS` merge, other lists are replaced."""
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    result = dict(target) if isinstance(target, dict) else {}
    if "$retainKeys" in patch:
        result = {name: value for name, value in result.items() if name in patch["$retainKeys"]}
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            result[field] = [item for item in result.get(field) or [] if item not in value]
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        if value is None:
            result.pop(name, None)
        elif isinstance(value, list):
            order = patch.get(f"$setElementOrder/{name}")
            result[name] = _merged_list(name, result.get(name) or [], value, order)
        else:
            result[name] = strategic_merge_patch(result.get(name), value)
    return result


def _merged_list(name: str, old: Sequence[Json], new: Sequence[Json], order: Sequence[Json] | None) -> list[Json]:
    if name == "finalizers":
        merged = [*old, *(item for item in new if item not in old)]
        return _ordered(merged, order, lambda item: item)
    key = _merge_key(name, [*old, *new])
    if key is None or any(not isinstance(item, dict) for item in [*old, *new]):
        return list(new)
    if any(item.get("$patch") == "replace" for item in new):
        return [item for item in new if "$patch" not in item]
    merged = list(old)
    for item in new:
        position = next((at for at, present in enumerate(merged) if present.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            if position is not None:
                del merged[position]
        elif position is None:
            merged.append(item)
        else:
            merged[position] = strategic_merge_patch(merged[position], item)
    return _ordered(merged, order, lambda item: item.get(key))


def _merge_key(name: str, items: Sequence[Json]) -> str | None:
    if name != "ports":
        return _MERGE_KEYS.get(name)
    in_container = any(isinstance(item, dict) and "containerPort" in item for item in items)
    return "containerPort" if in_container else "port"


def _ordered(items: list[Json], order: Sequence[Json] | None, identity: Callable[[Json], Json]) -> list[Json]:
    if not order:
        return items
    wanted = [identity(item) for item in order]
    return sorted(items, key=lambda item: wanted.index(identity(item)) if identity(item) in wanted else len(wanted))
