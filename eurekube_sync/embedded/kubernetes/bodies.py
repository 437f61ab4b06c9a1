"""What a request's body stands for: an object in JSON or in kubectl's protobuf, or one of three patches.

Of protobuf only what kubectl's own commands write is known, such as `kubectl create namespace`. Field numbers are those
of `generated.proto` in k8s.io/api v0.36. No function changes its input; a result may share parts with it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from eurekube_sync.embedded.http import Request
from eurekube_sync.embedded.kubernetes import errors
from eurekube_sync.embedded.kubernetes.resources import Resource

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


def whole(request: Request) -> Any:
    """The object in a request. Raises `ApiError`."""
    content = _content_type(request)
    try:
        if content == MEDIA_TYPE:
            return decode(request.body)
    except ProtobufError:
        raise errors.unsupported_media_type(("application/json",)) from None
    if content not in ("", "application/json"):
        raise errors.unsupported_media_type(("application/json",))
    return decoded(request.body)


def patched(request: Request, resource: Resource, obj: Any) -> Any:
    """The object as the patch in a request makes it. Raises `ApiError`."""
    content = _content_type(request)
    accepted = (JSON, MERGE) if resource.custom else (JSON, MERGE, STRATEGIC)
    if content not in accepted:
        raise errors.unsupported_media_type(accepted)
    patch: Any = decoded(request.body)
    expected = list if content == JSON else dict
    if not isinstance(patch, expected):
        name = expected.__name__
        raise errors.bad_request(f"error decoding patch: json: cannot unmarshal into Go value of type {name}")
    if content != JSON:
        return merge_patch(obj, patch, strategic=content == STRATEGIC)
    try:
        return json_patch(obj, list(patch))
    except PatchError:  # a failed `test` included; the message names no cause
        message = "the server rejected our request due to an error in our request"
        raise errors.ApiError(422, "Invalid", message, {}) from None


def decoded(body: bytes) -> Any:
    """Any JSON. Raises `ApiError`."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip()


class PatchError(ValueError):
    """The patch does not fit the object, or a `test` failed."""


def merge_patch(target: Any, patch: Any, *, strategic: bool = False) -> Any:
    """Apply an RFC 7386 merge patch; or a strategic one, for the built-in types: lists of `_MERGE_KEYS` merge, other
    lists are replaced, and directives such as `$setElementOrder` are ignored."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif not strategic:
            result[name] = merge_patch(result.get(name), value)
        elif isinstance(value, list) and not name.startswith("$"):
            result[name] = _merged_list(name, result.get(name) or [], value)
        elif not name.startswith("$"):
            result[name] = merge_patch(result.get(name), value, strategic=True)
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
        merged[position : position + 1] = [] if deleted else [merge_patch(before, item, strategic=True)]
    return merged


MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_Message: TypeAlias = Mapping[int, tuple[str, Callable[[Any], Any]]]
"""Name of each field by its number, and what reads it. Several of a list or of a map are joined."""


class ProtobufError(ValueError):
    """Bytes that are no message, or of a kind or wire type that is not known here."""


def decode(body: bytes) -> dict[str, Any]:
    """The object in protobuf; what is empty is left out, as JSON from Go leaves it out. Raises ProtobufError."""
    if not body.startswith(_MAGIC):
        raise ProtobufError("it does not begin as Kubernetes' protobuf does")
    try:
        wrapped = _read(
            body[len(_MAGIC) :], {1: ("type", _message(_strings(apiVersion=1, kind=2))), 2: ("raw", _bytes)}
        )
        head = wrapped["type"]
        message = _KINDS[head.get("apiVersion", ""), head.get("kind", "")]
        return {**head, **_read(wrapped.get("raw", b""), message)}
    except (LookupError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ProtobufError("it is cut, or of a kind that is not known here") from error


def _read(data: bytes, message: _Message) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, raw in _fields(data):
        if number in message:
            name, read = message[number]
            match read(raw), found.get(name):
                case list(value), list(before):
                    found[name] = before + value
                case dict(value), dict(before):
                    found[name] = before | value
                case value, _:
                    found[name] = value
    return {name: value for name, value in found.items() if value not in ("", 0, {})}


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and raw value of each field."""
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
                raise ProtobufError("it is cut, or has a wire type that is not known here")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _number(raw: int) -> int:
    return raw + 0  # a TypeError for bytes, as the next is for a number


def _bytes(raw: bytes) -> bytes:
    return raw + b""


def _message(message: _Message) -> Callable[[bytes], dict[str, Any]]:
    return lambda raw: _read(raw, message)


def _strings(**numbers: int) -> _Message:
    return {number: (name, bytes.decode) for name, number in numbers.items()}


def _labels(raw: bytes) -> dict[str, str]:
    entry = _read(raw, _strings(key=1, value=2))
    return {entry.get("key", ""): entry.get("value", "")}


def _port(raw: bytes) -> dict[str, Any]:
    numbers: _Message = {3: ("port", _number), 4: ("targetPort", _number_or_name), 5: ("nodePort", _number)}
    return _read(raw, {**_strings(name=1, protocol=2, appProtocol=6), **numbers})


def _number_or_name(raw: bytes) -> int | str:
    entry = _read(raw, {1: ("type", _number), 2: ("number", _number), **_strings(name=3)})
    found: int | str = entry.get("name", "") if entry.get("type") else entry.get("number", 0)
    return found


_METADATA: _Message = {1: ("metadata", _message({**_strings(name=1, namespace=3), 11: ("labels", _labels)}))}
_SERVICE: _Message = {
    1: ("ports", lambda raw: [_port(raw)]),
    2: ("selector", _labels),
    **_strings(clusterIP=3, type=4, sessionAffinity=7, loadBalancerIP=8, externalName=10),
}
_ASKED = _strings(namespace=1, verb=2, group=3, version=4, resource=5, subresource=6, name=7)
_KINDS: Mapping[tuple[str, str], _Message] = {
    ("v1", "Namespace"): _METADATA,
    ("v1", "ServiceAccount"): _METADATA,
    ("v1", "Service"): {**_METADATA, 2: ("spec", _message(_SERVICE))},
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {
        2: ("spec", _message({1: ("resourceAttributes", _message(_ASKED))}))
    },
}
