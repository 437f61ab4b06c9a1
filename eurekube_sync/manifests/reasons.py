"""A value that the schema refuses -> where it is and one clause that says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from eurekube_sync.manifests.findings import Path
from eurekube_sync.manifests.structural import Violation
from eurekube_sync.model.value_faults import missing_field, not_one_of, shown, unknown_field, wrong_type
from eurekube_sync.model.wording import counted, one_or_more

Fault = tuple[Path, str]
"""A path and its reason."""

_FIRST = ("type", "enum", "not", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum")
_EXAMPLE = re.compile(r"Example: (?:`(.+)`|(\S+))\.\s*\Z", re.DOTALL)


def faults(violated: Iterable[Violation], schema: Mapping[str, Any]) -> list[Fault]:
    """One fault for each unknown field and each missing one, and at most one for each value."""
    found: list[Fault] = []
    values: dict[Path, Violation] = {}
    for error in violated:
        path = error.path
        described = _described(schema, path)
        if error.keyword == "additionalProperties":
            found.extend(_unknown(path, error))
        elif error.keyword == "required" and not _is_union(described):
            found.extend(_missing(path, error))
        elif path not in values or _rank(error) < _rank(values[path]):
            values[path] = error
    found.extend((path, _reason(error, _described(schema, path))) for path, error in values.items())
    return list(dict.fromkeys(found))


def _is_union(schema: Mapping[str, Any]) -> bool:
    """Whether values of several types are allowed, which only the description can tell."""
    return "type" not in schema and bool(schema.get("x-kubernetes-preserve-unknown-fields"))


def _rank(error: Violation) -> int:
    return _FIRST.index(error.keyword) if error.keyword in _FIRST else len(_FIRST)


def _described(schema: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The structural schema of what the path names."""
    for part in path:
        if isinstance(part, int):
            schema = schema.get("items", {})
        else:
            others = schema.get("additionalProperties")
            schema = schema.get("properties", {}).get(part, others if isinstance(others, Mapping) else {})
    return schema


def _unknown(path: Path, error: Violation) -> Iterator[Fault]:
    for name in error.value:
        if name not in error.known:
            unused = [other for other in error.known if other not in error.value]
            yield (*path, name), unknown_field(name, unused)


def _missing(path: Path, error: Violation) -> Iterator[Fault]:
    for name in error.limit:
        if name not in error.value:
            yield (*path, name), missing_field(name)


def _reason(error: Violation, schema: Mapping[str, Any]) -> str:
    """One clause on a value that is not allowed."""
    value = shown(error.value)
    limit = error.limit
    if _is_union(schema):
        meaning = schema["description"].split(". ")[0]
        return f"{value} is not allowed: {meaning[0].lower()}{meaning[1:]}{_example(schema)}"
    match error.keyword:
        case "type":
            return wrong_type(error.value, [limit] if isinstance(limit, str) else limit)
        case "enum":
            return not_one_of(error.value, limit)
        case "pattern":
            printable = limit.encode("ascii", "backslashreplace").decode()
            return f"{value} is not allowed: it must match {printable}{_example(schema)}"
        case "minLength" | "minItems" | "minProperties" if limit == 1:
            return f"must not be empty{_example(schema)}"
        case "maxLength":
            return f"{value} is longer than {limit} characters"
        case "maxItems" | "maxProperties":
            are = one_or_more(limit, "is", "are")
            return f"has {counted(len(error.value), 'entry', 'entries')}, at most {limit} {are} allowed"
        case "minimum":
            return f"{value} is less than {limit}"
        case "maximum":
            return f"{value} is more than {limit}"
        case "x-kubernetes-list-type":
            return f"another entry has the same {error.message}" if error.message else "is there twice"
        case _:
            return f"{value} is not allowed: {error.message}"


def _example(schema: Mapping[str, Any]) -> str:
    match = _EXAMPLE.search(schema.get("description", ""))
    return f", such as {match[1] or match[2]}" if match else ""
