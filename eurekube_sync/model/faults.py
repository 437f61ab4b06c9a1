"""Why a value is invalid, and where: a path and a clause for each fault."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import inspect

from eurekube_sync.model.text import listed

Path: TypeAlias = tuple[str | int, ...]  # keys and indexes from an object's root
Fault: TypeAlias = tuple[Path, str]  # the path of an invalid value, and one clause that says why

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS = {
    "integer": "a whole number",
    "string": "a string",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
}
"""By the name of a type in JSON Schema."""
_NAMES: Mapping[type, str] = {
    int: "integer",
    inspect.IntType: "integer",
    str: "string",
    inspect.StrType: "string",
    inspect.LiteralType: "string",
    bool: "boolean",
    inspect.BoolType: "boolean",
    dict: "object",
    inspect.DictType: "object",
    inspect.StructType: "object",
    list: "array",
    inspect.VarTupleType: "array",
    inspect.FrozenSetType: "array",
}
"""The name in JSON Schema of the type of a value, and of msgspec's types for such values."""


def written(path: Path) -> str:
    """Return a path as `.spec.matchLabels['app.kubernetes.io/name'][0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}"
        else:
            quoted = part.replace("\\", "\\\\").replace("'", "\\'")
            text += f"['{quoted}']"
    return text


def shown(value: Any) -> str:
    """Return a value as JSON, cut to 60 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= 60:
        return text
    return text[:57] + "..."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean "x"?`, or nothing if no known word is similar."""
    lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.7)
    if close:
        return f'; did you mean "{lower[close[0]]}"?'
    return ""


def wrong_type(value: Any, wanted: Collection[str]) -> str:
    """Return a clause that names the wanted types of JSON Schema, and how to write such a value."""
    types = [words for name, words in _WORDS.items() if name in wanted]
    text = f"must be {' or '.join(types)}, not {shown(value)}"
    if "string" in wanted and isinstance(value, bool):
        return f"{text} (YAML reads on, off, yes, no, y and n as true or false): put it in quotes"
    if "string" in wanted and "integer" not in wanted and isinstance(value, int | float):
        return f"{text}: put it in quotes"
    if isinstance(value, str) and {"integer", "boolean"} & set(wanted):
        return f"{text}, which is a string"
    return text


def not_one_of(value: str, choices: Iterable[object]) -> str:
    known = sorted(map(str, choices))
    return f"must be {listed(known, 'or')}, not {shown(value)}{did_you_mean(value, known)}"


def unknown_field(name: str, unused: Iterable[str]) -> str:
    """Return a clause about an unknown field; `unused` are the known fields that the object does
    not have."""
    return f'unknown field "{name}"{did_you_mean(name, unused)}'


def missing_field(name: str) -> str:
    return f'field "{name}" is missing'


def shape_faults(value: Any, kind: inspect.Type, path: Path) -> Iterator[Fault]:
    """Yield why a value is not of this type of msgspec: unknown and missing fields, wrong types and
    words."""
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    wanted = {_NAMES[type(part)]: part for part in kinds if type(part) in _NAMES}
    if not wanted:  # any value is valid
        return
    name = _NAMES.get(type(value))
    if name not in wanted:
        yield path, wrong_type(value, wanted)
        return
    match wanted[name]:
        case inspect.StructType(fields=fields):
            yield from _field_faults(value, fields, path)
        case inspect.DictType(value_type=inner):
            for key, item in value.items():
                yield from shape_faults(item, inner, (*path, key))
        case inspect.VarTupleType(item_type=inner) | inspect.FrozenSetType(item_type=inner):
            for index, item in enumerate(value):
                yield from shape_faults(item, inner, (*path, index))
        case inspect.LiteralType(values=choices):
            if value not in choices:
                yield path, not_one_of(value, choices)


def _field_faults(
    value: Mapping[str, Any], fields: Iterable[inspect.Field], path: Path
) -> Iterator[Fault]:
    """Yield the faults of a mapping with these fields."""
    known = {field.encode_name: field for field in fields}
    for name, item in value.items():
        if name in known:
            yield from shape_faults(item, known[name].type, (*path, name))
        else:
            unused = [other for other in known if other not in value]
            yield (*path, name), unknown_field(name, unused)
    for name, field in known.items():
        if field.required and name not in value:
            yield (*path, name), missing_field(name)
