"""Words for messages: numbers, times, lists, and invalid values."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from msgspec import inspect


def counted(number: float, noun: str, more: str | None = None) -> str:
    """Return `1 instance`, `2 instances`; `more` is the plural, by default the noun with an s."""
    return f"{number:.12g} {one_or_more(number, noun, more or f'{noun}s')}"


def one_or_more(number: float, one: str, more: str) -> str:
    """Return the singular or the plural for a number, such as `is` or `are`."""
    return one if number == 1 else more


def listed(words: Sequence[str], last: str) -> str:
    """Return `a`, `a or b`, `a, b or c`; `last` is the conjunction."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def some_of(words: Sequence[str], most: int = 3) -> str:
    """Return `a, b, c and 4 more`."""
    shown = ", ".join(words[:most])
    return f"{shown} and {len(words) - most} more" if len(words) > most else shown


def and_more(number: int) -> str:
    """Return ` (and 3 more)` for a sentence about the first of 4 things."""
    return f" (and {number - 1} more)" if number > 1 else ""


def duration(seconds: float) -> str:
    """Return `30s`, `20m`, `1h30m`, `1h0m5s`, as in an option; a fraction of a second stays."""
    if seconds < 60 or seconds != int(seconds):
        return f"{seconds:.10g}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h", hours), (minutes, "m", minutes or (hours and rest)), (rest, "s", rest))
    return "".join(f"{number}{unit}" for number, unit, shown in parts if shown)


def rfc_3339(unix_seconds: float) -> str:
    """Return `2026-01-31T12:00:00Z`: the time in UTC, to the second."""
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def without_full_stop(text: str) -> str:
    """Return a sentence without its end, for a line that has its own. Errors of Eureka's adapter
    are whole sentences, and those of Kubernetes are clauses."""
    return text.rstrip(".")


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


def span(seconds: float) -> str:
    """Return `12 s`, `41 min`, `3 h`, `5 d`: one unit, rounded down."""
    whole = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if whole >= (2 * size if size > 60 else size):
            return f"{whole // size} {unit}"
    return f"{whole} s"


Path: TypeAlias = tuple[str | int, ...]  # keys and indexes from an object's root
Fault: TypeAlias = tuple[Path, str]  # the path of an invalid value, and one clause that says why

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TYPES: Mapping[str, tuple[str, type, tuple[type[inspect.Type], ...]]] = {
    "integer": ("a whole number", int, (inspect.IntType,)),
    "string": ("a string", str, (inspect.StrType, inspect.EnumType, inspect.LiteralType)),
    "boolean": ("true or false", bool, (inspect.BoolType,)),
    "object": ("a mapping", dict, (inspect.DictType, inspect.StructType)),
    "array": ("a list", list, (inspect.VarTupleType, inspect.FrozenSetType)),
}
"""By the name of a type in JSON Schema: its words, the type of a JSON value, and msgspec's types
for such values."""


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
    return text if len(text) <= 60 else text[:57] + "..."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean "x"?`, or nothing if no known word is similar."""
    lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.7)
    return f'; did you mean "{lower[close[0]]}"?' if close else ""


def wrong_type(value: Any, wanted: Collection[str]) -> str:
    """Return a clause that names the wanted types of JSON Schema, and how to write such a value."""
    types = [words for name, (words, _, _) in _TYPES.items() if name in wanted]
    text = f"must be {' or '.join(types)}, not {shown(value)}"
    if "string" in wanted and isinstance(value, bool):
        return f"{text} (YAML reads on, off, yes, no, y and n as true or false): put it in quotes"
    if "string" in wanted and "integer" not in wanted and isinstance(value, int | float):
        return f"{text}: put it in quotes"
    if isinstance(value, str) and {"integer", "boolean"} & set(wanted):
        return f"{text}, which is a string"
    return text


def not_one_of(value: Any, choices: Iterable[Any]) -> str:
    known = sorted(choice if isinstance(choice, str) else shown(choice) for choice in choices)
    hint = did_you_mean(value, known) if isinstance(value, str) else ""
    return f"must be {listed(known, 'or')}, not {shown(value)}{hint}"


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
    named = {
        name: one
        for one in kinds
        for name, (_, _, types) in _TYPES.items()
        if isinstance(one, types)
    }
    if not named:  # any value is valid
        return
    match found := next(
        (one for name, one in named.items() if type(value) is _TYPES[name][1]), None
    ):
        case None:
            yield path, wrong_type(value, named)
        case inspect.StructType(fields=fields):
            known = {field.encode_name: field for field in fields}
            for name, item in value.items():
                if name in known:
                    yield from shape_faults(item, known[name].type, (*path, name))
                else:
                    yield (
                        (*path, name),
                        unknown_field(name, [other for other in known if other not in value]),
                    )
            for name, field in known.items():
                if field.required and name not in value:
                    yield (*path, name), missing_field(name)
        case inspect.DictType(value_type=inner):
            for key, item in value.items():
                yield from shape_faults(item, inner, (*path, key))
        case inspect.VarTupleType(item_type=inner) | inspect.FrozenSetType(item_type=inner):
            for index, item in enumerate(value):
                yield from shape_faults(item, inner, (*path, index))
        case inspect.EnumType() | inspect.LiteralType():
            choices = [*found.cls] if isinstance(found, inspect.EnumType) else found.values
            if value not in choices:
                yield path, not_one_of(value, choices)
