"""Kubernetes' protobuf, read as the JSON of the same object: `kubectl create namespace` and its like send nothing else.

Only what kubectl's own commands write is known. Field numbers are those of `generated.proto` in k8s.io/api v0.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"


class ProtobufError(ValueError):
    """Bytes that are no message, or a kind or wire type that is not known here."""


_Message: TypeAlias = "Mapping[int, tuple[str, _Kind]]"
"""Name and kind of each field by its number."""
_Kind: TypeAlias = "str | _Message | list[_Message]"
"""`string`, `int`, `bytes`, `labels` (a map of strings), `port` (a number or a name), a message, or a list of one."""


def _strings(**numbers: int) -> _Message:
    return {number: (name, "string") for name, number in numbers.items()}


_METADATA: _Message = {1: ("metadata", {**_strings(name=1, namespace=3), 11: ("labels", "labels")})}
_PORT: _Message = {
    **_strings(name=1, protocol=2, appProtocol=6),
    3: ("port", "int"),
    4: ("targetPort", "port"),
    5: ("nodePort", "int"),
}
_SERVICE: _Message = {
    1: ("ports", [_PORT]),
    2: ("selector", "labels"),
    **_strings(clusterIP=3, type=4, sessionAffinity=7, loadBalancerIP=8, externalName=10),
}
_ASKED = _strings(namespace=1, verb=2, group=3, version=4, resource=5, subresource=6, name=7)
_KINDS: Mapping[tuple[str, str], _Message] = {
    ("v1", "Namespace"): _METADATA,
    ("v1", "Service"): {**_METADATA, 2: ("spec", _SERVICE)},
    ("v1", "ServiceAccount"): _METADATA,
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {2: ("spec", {1: ("resourceAttributes", _ASKED)})},
}
_UNKNOWN: _Message = {1: ("type", _strings(apiVersion=1, kind=2)), 2: ("raw", "bytes")}


def decode(body: bytes) -> dict[str, Any]:
    """The object; what is empty is left out, as JSON from Go leaves it out. Raises ProtobufError."""
    if not body.startswith(_MAGIC):
        raise ProtobufError("it does not begin as Kubernetes' protobuf does")
    try:
        wrapped = _read(body[len(_MAGIC) :], _UNKNOWN)
        head = wrapped["type"]
        message = _KINDS[head.get("apiVersion", ""), head.get("kind", "")]
        return {**head, **_read(wrapped.get("raw", b""), message)}
    except (KeyError, IndexError, UnicodeDecodeError) as error:
        raise ProtobufError("it is cut, or of a kind that is not known here") from error


def _read(data: bytes, message: _Message) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, raw in _fields(data):
        if number not in message:
            continue
        name, kind = message[number]
        if isinstance(kind, list):
            found[name] = [*found.get(name, ()), _value(raw, kind[0])]
        elif kind == "labels":
            found[name] = {**found.get(name, {}), **_value(raw, kind)}
        elif (value := _value(raw, kind)) not in ("", 0, {}):
            found[name] = value
    return found


def _value(raw: int | bytes, kind: str | _Message) -> Any:
    match raw, kind:
        case (int(), "int") | (bytes(), "bytes"):
            return raw
        case bytes(), "string":
            return raw.decode()
        case bytes(), "labels":
            entry = _read(raw, _strings(key=1, value=2))
            return {entry.get("key", ""): entry.get("value", "")}
        case bytes(), "port":
            entry = _read(raw, {1: ("type", "int"), 2: ("number", "int"), 3: ("name", "string")})
            return entry.get("name", "") if entry.get("type") else entry.get("number", 0)
        case bytes(), dict():
            return _read(raw, kind)
    raise ProtobufError(f"something else than {kind}")


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
