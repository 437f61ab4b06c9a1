"""Kubernetes' protobuf, read as the JSON of the same object: `kubectl create namespace` and its like send nothing else.

Only what kubectl's own commands write is known. Field numbers are those of `generated.proto` in k8s.io/api v0.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"


class ProtobufError(ValueError):
    """Bytes that are no message, or a kind or wire type that is not known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    name: str
    kind: _Kind
    repeated: bool = False


_Message: TypeAlias = "Mapping[int, _Field]"
_Kind: TypeAlias = "str | _Message"
"""`string`, `int`, `bool`, `bytes`, `labels` (a map of strings), `port` (a number or a name), or a message."""


def _strings(**numbers: int) -> _Message:
    return {number: _Field(name=name, kind="string") for name, number in numbers.items()}


def _lists(**numbers: int) -> _Message:
    return {number: _Field(name=name, kind="string", repeated=True) for name, number in numbers.items()}


def _numbers(**numbers: int) -> _Message:
    return {number: _Field(name=name, kind="int") for name, number in numbers.items()}


def _flags(**numbers: int) -> _Message:
    return {number: _Field(name=name, kind="bool") for name, number in numbers.items()}


_METADATA = _Field(
    name="metadata",
    kind={
        **_strings(name=1, generateName=2, namespace=3),
        11: _Field(name="labels", kind="labels"),
        12: _Field(name="annotations", kind="labels"),
        **_lists(finalizers=14),
    },
)
_PORT: _Message = {
    **_strings(name=1, protocol=2, appProtocol=6),
    **_numbers(port=3, nodePort=5),
    4: _Field(name="targetPort", kind="port"),
}
_SERVICE: _Message = {
    1: _Field(name="ports", kind=_PORT, repeated=True),
    2: _Field(name="selector", kind="labels"),
    **_strings(clusterIP=3, type=4, sessionAffinity=7, loadBalancerIP=8, externalName=10, externalTrafficPolicy=11),
    **_strings(ipFamilyPolicy=17, loadBalancerClass=21, internalTrafficPolicy=22, trafficDistribution=23),
    **_lists(externalIPs=5, loadBalancerSourceRanges=9, clusterIPs=18, ipFamilies=19),
    **_flags(publishNotReadyAddresses=13, allocateLoadBalancerNodePorts=20),
}
_REVIEW: _Message = {
    1: _Field(
        name="resourceAttributes",
        kind=_strings(namespace=1, verb=2, group=3, version=4, resource=5, subresource=6, name=7),
    ),
    2: _Field(name="nonResourceAttributes", kind=_strings(path=1, verb=2)),
}
_KINDS: Mapping[tuple[str, str], _Message] = {
    ("v1", "Namespace"): {1: _METADATA, 2: _Field(name="spec", kind=_lists(finalizers=1))},
    ("v1", "Service"): {1: _METADATA, 2: _Field(name="spec", kind=_SERVICE)},
    ("v1", "ServiceAccount"): {1: _METADATA, **_flags(automountServiceAccountToken=4)},
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {2: _Field(name="spec", kind=_REVIEW)},
}
_UNKNOWN: _Message = {1: _Field(name="type", kind=_strings(apiVersion=1, kind=2)), 2: _Field(name="raw", kind="bytes")}


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
        field = message.get(number)
        if field is None:
            continue
        value = _value(raw, field.kind)
        if field.repeated:
            found.setdefault(field.name, []).append(value)
        elif field.kind == "labels":
            found.setdefault(field.name, {}).update(value)
        elif value not in ("", 0, {}):
            found[field.name] = value
    return found


def _value(raw: int | bytes, kind: _Kind) -> Any:
    if isinstance(raw, int):
        if kind not in ("int", "bool"):
            raise ProtobufError(f"a number stands where {kind} is expected")
        return bool(raw) if kind == "bool" else raw
    match kind:
        case "bytes":
            return raw
        case "string":
            return raw.decode()
        case "labels":
            entry = _read(raw, _strings(key=1, value=2))
            return {entry.get("key", ""): entry.get("value", "")}
        case "port":
            entry = _read(raw, {**_numbers(type=1, number=2), **_strings(name=3)})
            return entry.get("name", "") if entry.get("type") else entry.get("number", 0)
        case str():
            raise ProtobufError(f"bytes stand where {kind} is expected")
        case _:
            return _read(raw, kind)


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
