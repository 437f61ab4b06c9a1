"""Label and field selectors, as LIST and DELETE of a collection take them.

Parses the text once into a predicate on labels or on an object. Knows no store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from eurekube_sync.embedded.kubernetes.errors import bad_request

Labels = Mapping[str, str]
LabelTest = Callable[[Labels], bool]
ObjectTest = Callable[[Mapping[str, Any]], bool]

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_REQUIREMENT = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<missing>{_NAME})"
    rf"|(?P<set>{_NAME})\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)"
    rf"|(?P<key>{_NAME})\s*(?P<equals>==|=|!=)\s*(?P<value>[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?|)"
    rf"|(?P<present>{_NAME}))\s*(?:,|$)"
)

_OF_EVENTS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: Mapping[str, Iterable[str]] = {
    "pods": ("spec.nodeName", "status.phase", "status.podIP"),
    "events": ("reason", "type", *(f"involvedObject.{field}" for field in _OF_EVENTS)),
}
"""Which fields a resource can be selected by, beside metadata.name and metadata.namespace."""


def label_test(selector: str) -> LabelTest | None:
    """The predicate of a `labelSelector`; None for an empty one, which selects everything."""
    if not selector.strip():
        return None
    tests: list[LabelTest] = []
    position = 0
    while position < len(selector):
        found = _REQUIREMENT.match(selector, position)
        if found is None:
            raise bad_request(f"unable to parse requirement: {selector}")
        tests.append(_requirement(found))
        position = found.end()
    return lambda labels: all(test(labels) for test in tests)


def _requirement(found: re.Match[str]) -> LabelTest:
    if found["absent"]:
        missing = found["missing"]
        return lambda labels: missing not in labels
    if found["present"]:
        present = found["present"]
        return lambda labels: present in labels
    if found["set"]:
        key = found["set"]
        values = frozenset(value.strip() for value in found["values"].split(","))
        if found["operator"] == "in":
            return lambda labels: key in labels and labels[key] in values
        return lambda labels: key not in labels or labels[key] not in values
    key, value = found["key"], found["value"]
    if found["equals"] == "!=":
        return lambda labels: labels.get(key) != value
    return lambda labels: labels.get(key) == value


def field_test(selector: str, plural: str) -> ObjectTest | None:
    """The predicate of a `fieldSelector`; a field the resource does not index is a 400."""
    if not selector.strip():
        return None
    tests: list[ObjectTest] = []
    for term in selector.split(","):
        found = re.fullmatch(r"\s*([\w.]+?)\s*(==|=|!=)\s*(.*?)\s*", term)
        if found is None:
            raise bad_request(f"invalid selector: '{selector}'; can't understand '{term}'")
        field, operator, value = found.groups()
        if field not in ("metadata.name", "metadata.namespace") and field not in _FIELDS.get(plural, ()):
            raise bad_request(f"field label not supported: {field}")
        tests.append(_field(tuple(field.split(".")), value, wanted=operator != "!="))
    return lambda obj: all(test(obj) for test in tests)


def _field(path: tuple[str, ...], value: str, *, wanted: bool) -> ObjectTest:
    def test(obj: Mapping[str, Any]) -> bool:
        found: Any = obj
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return (str(found if found is not None else "") == value) is wanted

    return test
