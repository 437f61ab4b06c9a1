"""Runs the twins of the CRD's CEL rules over a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from eurekube_sync.manifests.findings import Path
from eurekube_sync.manifests.twins import MESSAGES, TWINS

RULES = "x-kubernetes-validations"


class Rule(NamedTuple):
    """A CEL rule of a schema and the path of the value that it is about; `*` stands for each item."""

    path: Path
    text: str
    message: str


def rules_of(schema: Mapping[str, Any], path: Path = ()) -> Iterator[Rule]:
    """All rules of a structural schema."""
    for rule in schema.get(RULES, ()):
        yield Rule(path, rule["rule"], rule["message"])
    for name, sub in schema.get("properties", {}).items():
        yield from rules_of(sub, (*path, name))
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), Mapping):
            yield from rules_of(schema[keyword], (*path, "*"))


def broken_rules(
    value: Any, schema: Mapping[str, Any], faulty: frozenset[Path], path: Path = ()
) -> Iterator[tuple[Path, str]]:
    """Path and message of each rule that does not hold. As on the API server, a rule does not run on a value that its
    schema already refuses: `faulty` holds the paths of those and of all above them."""
    if path not in faulty:
        for rule in schema.get(RULES, ()):
            for below in TWINS[rule["rule"]](value):
                yield _place(path, rule, below), _message(rule, value)
    for key, item, sub in _parts(value, schema):
        yield from broken_rules(item, sub, faulty, (*path, key))


def with_parents(paths: frozenset[Path]) -> frozenset[Path]:
    """The paths and all above them."""
    return frozenset(path[:length] for path in paths for length in range(len(path) + 1))


def _message(rule: Mapping[str, Any], value: Any) -> str:
    expression = rule.get("messageExpression")
    return MESSAGES[expression](value) if expression else str(rule["message"])


def _place(path: Path, rule: Mapping[str, Any], below: Path) -> Path:
    """`fieldPath` says which field a rule on a mapping is about; a twin may say it more exactly."""
    field = tuple(rule.get("fieldPath", "").split(".")[1:])
    return (*path, *field, *below)


def _parts(value: Any, schema: Mapping[str, Any]) -> Iterator[tuple[str | int, Any, Mapping[str, Any]]]:
    """The parts of a value that the schema describes."""
    if isinstance(value, Mapping):
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties")
        for key, item in value.items():
            sub = properties.get(key, others)
            if isinstance(sub, Mapping):
                yield key, item, sub
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield index, item, schema["items"]
