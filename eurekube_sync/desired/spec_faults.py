"""How a spec is refused, and what is wrong with the shape of one: unknown and missing fields, wrong types and words.

The shape is looked at only when a spec could not be read. The types are those that it is read into.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import inspect

from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.value_faults import (
    Fault,
    Path,
    missing_field,
    not_one_of,
    unknown_field,
    written,
    wrong_type,
)
from eurekube_sync.model.wording import counted

_SHOWN = 3
_NAMES: Mapping[type[inspect.Type], str] = {
    inspect.StrType: "string",
    inspect.EnumType: "string",
    inspect.LiteralType: "string",
    inspect.IntType: "integer",
    inspect.FloatType: "integer",
    inspect.BoolType: "boolean",
    inspect.ListType: "array",
    inspect.DictType: "object",
    inspect.StructType: "object",
}
"""The types of a spec in the words of JSON Schema. A float is a whole number that was written as one: `8080.0`."""
_PYTHON: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


class Faults:
    """What is wrong with a spec. A parse adds to it and goes on, so that a person hears of all of it at once."""

    def __init__(self) -> None:
        self._found: dict[Fault, str] = {}

    def add(self, path: Path, fault: str, reason: str = "InvalidSpec") -> None:
        """`path` leads from the spec to the field."""
        self._found[("spec", *path), fault] = reason

    def refuse(self) -> None:
        """Raises InvalidSyncer if there is any fault; its reason is that of the first."""
        if self._found:
            raise _refusal(tuple(self._found), next(iter(self._found.values())))


def refused(path: Path, fault: str, reason: str = "InvalidSpec") -> InvalidSyncer:
    """The refusal of a spec for one fault; `path` leads from the spec to the field."""
    return _refusal(((("spec", *path), fault),), reason)


def misshapen(spec: Any, kind: type, error: Exception) -> InvalidSyncer:
    """The refusal of a spec that could not be read as `kind`."""
    found = tuple(_faults(spec, inspect.type_info(kind), ("spec",)))
    return _refusal(found or ((("spec",), str(error)),), "InvalidSpec")


def _refusal(faults: tuple[Fault, ...], reason: str) -> InvalidSyncer:
    more = len(faults) - _SHOWN
    told = [_told(path, fault) for path, fault in faults[:_SHOWN]]
    told += [f"and {counted(more, 'more fault')}"] if more > 0 else []
    return InvalidSyncer(reason, "; ".join(told), faults=faults)


def _told(path: Path, reason: str) -> str:
    """A fault as a person reads it: `spec.mode must be pod or service`."""
    between = " " if reason.startswith("must ") else ": "
    return f"{written(path).removeprefix('.')}{between}{reason}"


def _faults(value: Any, kind: inspect.Type, path: Path) -> Iterator[Fault]:
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    if any(isinstance(one, inspect.AnyType) for one in kinds):
        return
    if value is None and any(isinstance(one, inspect.NoneType) for one in kinds):
        return
    names = {_NAMES[type(one)]: one for one in kinds if not isinstance(one, inspect.NoneType)}
    name = next((name for name in names if _is(value, name)), None)
    if name is None:
        yield path, wrong_type(value, names)
        return
    match names[name]:
        case inspect.StructType(fields=fields):
            yield from _field_faults(value, fields, path)
        case inspect.DictType(value_type=inner):
            for key, item in value.items():
                yield from _faults(item, inner, (*path, key))
        case inspect.ListType(item_type=inner):
            for index, item in enumerate(value):
                yield from _faults(item, inner, (*path, index))
        case inspect.EnumType(cls=words):
            choices = [word.value for word in words]
            if value not in choices:
                yield path, not_one_of(value, choices)
        case inspect.LiteralType(values=choices) if value not in choices:
            yield path, not_one_of(value, choices)


def _field_faults(value: Mapping[str, Any], fields: tuple[inspect.Field, ...], path: Path) -> Iterator[Fault]:
    known = {field.encode_name: field for field in fields}
    for name, item in value.items():
        if name in known:
            yield from _faults(item, known[name].type, (*path, name))
        else:
            yield (*path, name), unknown_field(name, [other for other in known if other not in value])
    for name, field in known.items():
        if field.required and name not in value:
            yield (*path, name), missing_field(name)


def _is(value: Any, name: str) -> bool:
    return isinstance(value, _PYTHON[name]) and isinstance(value, bool) is (name == "boolean")
