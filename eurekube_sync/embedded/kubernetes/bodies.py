"""Decodes the bodies of requests: objects in JSON or in kubectl's protobuf, and three kinds of
patches.

Only the protobuf messages of kubectl's own commands are known, such as `kubectl create namespace`.
Field numbers are those of `generated.proto` in k8s.io/api v0.36. No function changes its input; a
result may share parts with it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from eurekube_sync.embedded.http import Request
from eurekube_sync.embedded.kubernetes import errors
from eurekube_sync.embedded.kubernetes.resources import Resource

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "secrets": "name",
    "podIPs": "ip",
    "hostIPs": "ip",
    "conditions": "type",
    "addresses": "type",
}
"""`patchMergeKey` of the lists that clients patch here. For `ports` it depends on the object around
the list."""


def whole(request: Request) -> Any:
    """Decode the object in a request. Raises `ApiError`."""
    content = _content_type(request)
    if content == MEDIA_TYPE:
        return decode(request.body)
    if content not in ("", "application/json"):
        raise errors.unsupported_media_type(("application/json",))
    return decoded(request.body)


def patched(request: Request, resource: Resource, obj: Any) -> Any:
    """Apply the patch in a request to an object. Raises `ApiError`."""
    content = _content_type(request)
    accepted = [JSON, MERGE]
    if not resource.custom:
        accepted.append(STRATEGIC)
    if content not in accepted:
        raise errors.unsupported_media_type(accepted)
    patch: Any = decoded(request.body)
    if content == JSON and isinstance(patch, list):
        return json_patch(obj, patch)
    if content != JSON and isinstance(patch, dict):
        return merge_patch(obj, patch, strategic=content == STRATEGIC)
    raise errors.bad_request(
        "error decoding patch: json: cannot unmarshal into Go value of another type"
    )


def decoded(body: bytes) -> Any:
    """Decode JSON. Raises `ApiError`."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip()


def merge_patch(target: Any, patch: Any, *, strategic: bool = False) -> Any:
    """Apply an RFC 7386 merge patch, or a strategic merge patch. The latter merges the lists of
    `_MERGE_KEYS`, replaces other lists, and ignores directives such as `$setElementOrder`."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif not strategic:
            result[name] = merge_patch(result.get(name), value)
        elif name.startswith("$"):
            continue  # a directive
        elif isinstance(value, list):
            result[name] = _merged_list(name, result.get(name) or [], value)
        else:
            result[name] = merge_patch(result.get(name), value, strategic=True)
    return result


def json_patch(target: Any, operations: Any) -> Any:
    """Apply the operations add, replace, remove and test of RFC 6902. Raises `ApiError`, as the
    real server without saying which operation failed."""
    document = copy.deepcopy(target)
    for operation in operations:
        try:
            _apply(document, operation["op"], operation["path"], operation.get("value"))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            message = "the server rejected our request due to an error in our request"
            raise errors.ApiError(422, "Invalid", message, {}) from error
    return document


def _apply(document: Any, verb: str, path: str, value: Any) -> None:
    *parents, last = path.split("/")[1:]
    parent = document
    for token in parents:
        parent = parent[_key_in(parent, token)]
    key = _key_in(parent, last)
    is_list = isinstance(parent, list)
    match verb:
        case "test" if is_list and parent[key] == value:
            pass
        case "test" if not is_list and parent.get(key) == value:
            pass  # `test x null` passes if x is absent, as on the real server
        case "add" if is_list:
            parent.insert(key, value)
        case "add":
            parent[key] = value
        case "replace" if is_list or key in parent:
            parent[key] = value
        case "remove":
            del parent[key]
        case _:
            raise ValueError(verb)


def _key_in(parent: Any, token: str) -> Any:
    """Return the key or index that a token of a JSON Pointer names (RFC 6901); `-` is the end of a
    list."""
    if not isinstance(parent, list):
        return token.replace("~1", "/").replace("~0", "~")
    if token == "-":
        return len(parent)
    return int(token)


def _merged_list(name: str, old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    items = [*old, *new]
    if not all(isinstance(item, dict) for item in items):
        return list(new)
    key = _MERGE_KEYS.get(name)
    if name == "ports":
        of_containers = any("containerPort" in item for item in items)
        key = "containerPort" if of_containers else "port"
    if key is None:
        return list(new)
    merged = list(old)
    for item in new:
        position = 0
        while position < len(merged) and merged[position].get(key) != item.get(key):
            position += 1
        before = merged[position : position + 1] or [{}]
        del merged[position : position + 1]
        if item.get("$patch") != "delete":
            merged.insert(position, merge_patch(before[0], item, strategic=True))
    return merged


MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_Message: TypeAlias = Mapping[int, tuple[str, Any]]
"""Name and kind of each field, by its number. A kind is `str`, `int`, a message, a list with one
message for a repeated field, `dict` for a map of texts, or `int | str` for an IntOrString."""


def decode(body: bytes) -> dict[str, Any]:
    """Decode an object in protobuf. Empty fields are left out, as in JSON from Go. Raises
    `ApiError`."""
    try:
        wrapped: dict[int, Any] = dict(_fields(body.removeprefix(_MAGIC)))
        head = _read(wrapped[1], _texts(apiVersion=1, kind=2))
        message = _KINDS[head.get("apiVersion", ""), head.get("kind", "")]
        return {**head, **_read(wrapped.get(2, b""), message)}
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise errors.unsupported_media_type(("application/json",)) from error


def _read(data: bytes, message: _Message) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for number, raw in _fields(data):
        name, kind = message.get(number, ("", None))
        if kind is str:
            fields[name] = raw.decode()
        elif kind is int:
            fields[name] = raw + 0  # raises TypeError for bytes, as the other kinds do for a number
        elif kind is dict:
            entry = _read(raw, _texts(key=1, value=2))
            fields.setdefault(name, {})[entry.get("key", "")] = entry.get("value", "")
        elif kind == int | str:
            entry = _read(raw, {2: ("number", int), 3: ("name", str)})
            fields[name] = entry.get("name") or entry.get("number")
        elif isinstance(kind, list):
            fields.setdefault(name, []).append(_read(raw, kind[0]))
        elif kind is not None:
            fields[name] = fields.get(name, {}) | _read(raw, kind)
    return {name: value for name, value in fields.items() if value}


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the raw value of each field: an integer or bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, at = _varint(data, at)
        match tag & 7:
            case 0:
                yield tag >> 3, number
            case 2 if at + number <= len(data):
                yield tag >> 3, data[at : at + number]
                at += number
            case _:
                raise ValueError("it is cut, or has a wire type that is not known here")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _texts(**numbers: int) -> _Message:
    return {number: (name, str) for name, number in numbers.items()}


_METADATA: _Message = {1: ("metadata", {**_texts(name=1, namespace=3), 11: ("labels", dict)})}
_PORT = {
    **_texts(name=1, protocol=2),
    3: ("port", int),
    4: ("targetPort", int | str),
    5: ("nodePort", int),
}
_SERVICE = {
    1: ("ports", [_PORT]),
    2: ("selector", dict),
    **_texts(clusterIP=3, type=4, externalName=10),
}
_ASKED = _texts(namespace=1, verb=2, group=3, version=4, resource=5, subresource=6, name=7)
_KINDS: Mapping[tuple[str, str], _Message] = {
    ("v1", "Namespace"): _METADATA,
    ("v1", "ServiceAccount"): _METADATA,
    ("v1", "Service"): {**_METADATA, 2: ("spec", _SERVICE)},
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {
        2: ("spec", {1: ("resourceAttributes", _ASKED)})
    },
}
