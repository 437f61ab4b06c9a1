"""How a spec is refused, and what is wrong with the shape of one that cannot be read, by the types it is read into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import inspect

from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.wording import (
    Fault,
    Path,
    counted,
    missing_field,
    not_one_of,
    unknown_field,
    written,
    wrong_type,
)

_SHOWN = 3
_NAMES: Mapping[type[inspect.Type], str] = {
    inspect.StrType: "string",
    inspect.EnumType: "string",
    inspect.LiteralType: "string",
    inspect.IntType: "integer",
    inspect.BoolType: "boolean",
    inspect.VarTupleType: "array",
    inspect.FrozenSetType: "array",
    inspect.DictType: "object",
    inspect.StructType: "object",
}
"""The types of a spec in the words of JSON Schema."""
_NAMES_OF_VALUES: Mapping[type, str] = {str: "string", int: "integer", bool: "boolean", list: "array", dict: "object"}


class Faults(dict[Fault, str]):
    """What is wrong with a spec, each fault with its reason: all of it, so that a person hears of it at once."""

    def add(self, path: Path, fault: str, reason: str = "InvalidSpec") -> None:
        """`path` leads from the spec to the field."""
        self[("spec", *path), fault] = reason

    def refusal(self) -> InvalidSyncer:
        """Its reason is that of the first fault."""
        told = []
        for path, fault in list(self)[:_SHOWN]:
            between = " " if fault.startswith("must ") else ": "
            told.append(f"{written(path).removeprefix('.')}{between}{fault}")
        more = len(self) - _SHOWN
        told += [f"and {counted(more, 'more fault')}"] if more > 0 else []
        return InvalidSyncer(next(iter(self.values())), "; ".join(told), faults=tuple(self))


def misshapen(spec: Any, kind: type, error: Exception) -> InvalidSyncer:
    """The refusal of a spec that could not be read as `kind`."""
    found = list(_faults(spec, inspect.type_info(kind), ("spec",)))
    return Faults(dict.fromkeys(found or [(("spec",), str(error))], "InvalidSpec")).refusal()


def _faults(value: Any, kind: inspect.Type, path: Path) -> Iterator[Fault]:
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    named = {_NAMES[type(one)]: one for one in kinds if type(one) in _NAMES}
    if not named:  # anything is right here
        return
    found = named.get(_NAMES_OF_VALUES.get(type(value), ""))
    match found:
        case None:
            yield path, wrong_type(value, named)
        case inspect.StructType(fields=fields):
            known = {field.encode_name: field for field in fields}
            for name, item in value.items():
                if name in known:
                    yield from _faults(item, known[name].type, (*path, name))
                else:
                    yield (*path, name), unknown_field(name, [other for other in known if other not in value])
            for name, field in known.items():
                if field.required and name not in value:
                    yield (*path, name), missing_field(name)
        case inspect.DictType(value_type=inner):
            for key, item in value.items():
                yield from _faults(item, inner, (*path, key))
        case inspect.VarTupleType(item_type=inner) | inspect.FrozenSetType(item_type=inner):
            for index, item in enumerate(value):
                yield from _faults(item, inner, (*path, index))
        case inspect.EnumType() | inspect.LiteralType():
            choices = [*found.cls] if isinstance(found, inspect.EnumType) else found.values
            if value not in choices:
                yield path, not_one_of(value, choices)
