"""Label and field selectors, as LIST takes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from eurekube_sync.embedded.kubernetes.errors import bad_request

_TERM = re.compile(r"\s*([^\s=!(),]+)\s*(==|=|!=)\s*([^\s=!(),]*)\s*")
_OF_ALL = ("metadata.name", "metadata.namespace")
_OF_EVENTS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "pods": ("spec.nodeName", "status.phase", "status.podIP"),
    "events": ("reason", "type", *(f"involvedObject.{field}" for field in _OF_EVENTS)),
}
"""Which other fields a resource can be selected by."""


def selected(query: Mapping[str, str], plural: str) -> Callable[[Mapping[str, Any]], bool] | None:
    """The predicate of `labelSelector` and `fieldSelector` on an object; None where both are empty. Raises `ApiError`
    for a selector that cannot be parsed, and for a field that the resource does not index."""
    by_label, by_field = _terms(query.get("labelSelector", "")), _terms(query.get("fieldSelector", ""))
    for field, _, _ in by_field:
        if field not in (*_OF_ALL, *_FIELDS.get(plural, ())):
            raise bad_request(f"field label not supported: {field}")
    if not by_label and not by_field:
        return None

    def test(obj: Mapping[str, Any]) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all((labels.get(key) == value) is equal for key, value, equal in by_label) and all(
            (_text(obj, field) == value) is equal for field, value, equal in by_field
        )

    return test


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
