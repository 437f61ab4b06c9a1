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


class Breach(NamedTuple):
    """A rule that does not hold."""

    at: Path
    """The value that the rule is about."""
    value: Any
    place: Path
    """The field that the API server names."""
    below: tuple[Path, ...]
    """What breaks the rule below that field; `()` for all of it."""
    message: str


def broken_rules(value: Any, schema: Mapping[str, Any], faulty: frozenset[Path]) -> Iterator[tuple[Path, str]]:
    """Path and message of each rule that does not hold, as exactly as the twin can say it."""
    for breach in breaches(value, schema, faulty):
        for below in breach.below:
            yield (*breach.place, *below), breach.message


def breaches(value: Any, schema: Mapping[str, Any], faulty: frozenset[Path], path: Path = ()) -> Iterator[Breach]:
    """Each rule that does not hold. As on the API server, a rule does not run on a value that its schema already
    refuses: `faulty` holds the paths of those and of all above them."""
    if path not in faulty:
        for rule in schema.get(RULES, ()):
            below = tuple(TWINS[rule["rule"]](value))
            if below:
                field = tuple(rule.get("fieldPath", "").split(".")[1:])
                yield Breach(at=path, value=value, place=(*path, *field), below=below, message=_message(rule, value))
    for key, item, sub in _parts(value, schema):
        yield from breaches(item, sub, faulty, (*path, key))


def with_parents(paths: frozenset[Path]) -> frozenset[Path]:
    """The paths and all above them."""
    return frozenset(path[:length] for path in paths for length in range(len(path) + 1))


def _message(rule: Mapping[str, Any], value: Any) -> str:
    expression = rule.get("messageExpression")
    return MESSAGES[expression](value) if expression else str(rule["message"])


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
