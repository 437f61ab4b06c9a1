"""Label and field selectors, as LIST takes them.

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

_TERM = re.compile(r"\s*([^\s=!(),]+)\s*(==|=|!=)\s*([^\s=!(),]*)\s*")

_OF_EVENTS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: Mapping[str, Iterable[str]] = {
    "pods": ("spec.nodeName", "status.phase", "status.podIP"),
    "events": ("reason", "type", *(f"involvedObject.{field}" for field in _OF_EVENTS)),
}
"""Which fields a resource can be selected by, beside metadata.name and metadata.namespace."""


def label_test(selector: str) -> LabelTest | None:
    """The predicate of a `labelSelector`; None for an empty one, which selects everything."""
    terms = _terms(selector)
    if not terms:
        return None
    return lambda labels: all((labels.get(key) == value) is equal for key, value, equal in terms)


def field_test(selector: str, plural: str) -> ObjectTest | None:
    """The predicate of a `fieldSelector`; a field the resource does not index is a 400."""
    terms = _terms(selector)
    for field, _, _ in terms:
        if field not in ("metadata.name", "metadata.namespace") and field not in _FIELDS.get(plural, ()):
            raise bad_request(f"field label not supported: {field}")
    if not terms:
        return None
    return lambda obj: all((_text(obj, field) == value) is equal for field, value, equal in terms)


def _terms(selector: str) -> list[tuple[str, str, bool]]:
    """Each key with its value, and whether they have to be equal. Sets, such as `app in (a)`, are not known here."""
    terms = []
    for term in selector.split(",") if selector.strip() else ():
        found = _TERM.fullmatch(term)
        if found is None:
            raise bad_request(f"unable to parse requirement: {selector}")
        terms.append((found[1], found[3], found[2] != "!="))
    return terms


def _text(obj: Mapping[str, Any], field: str) -> str:
    found: Any = obj
    for name in field.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return "" if found is None else str(found)
