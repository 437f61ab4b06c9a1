"""The objects of the embedded Kubernetes API, and the selectors of a LIST.

There is one revision counter. A write stores a new object and never changes a stored one, so
readers may keep theirs.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from eurekube_sync.embedded.kubernetes.errors import bad_request

Object = dict[str, Any]
Key = tuple[str, str]  # (group, plural) of a resource

_JOURNAL = 2000


def namespace_of(obj: Object) -> str:
    """Return an object's namespace; empty if the object is cluster-scoped."""
    namespace: str = obj["metadata"].get("namespace", "")
    return namespace


class Store:
    """The objects by resource. The caller locks. `seed` makes the uids; `revision` is the first
    resourceVersion, so that two servers need not use the same ones."""

    def __init__(self, *, seed: int = 0, revision: int = 1) -> None:
        self.revision = revision
        self.journal: deque[tuple[Key, str, int, Object]] = deque(maxlen=_JOURNAL)
        """The latest writes, for watches: resource, type of event, revision, object."""
        self._seed = seed
        self._uids = 0
        self._objects: dict[Key, dict[str, dict[str, Object]]] = {}
        self._lists: dict[tuple[Key, str], tuple[Object, ...]] = {}

    def new_uid(self) -> str:
        """Make a uid that looks random. All runs with one seed make the same uids."""
        self._uids += 1
        digest = hashlib.sha256(f"{self._seed}/{self._uids}".encode()).digest()
        return str(uuid.UUID(bytes=digest[:16], version=4))

    def get(self, key: Key, namespace: str, name: str) -> Object | None:
        return self._objects.get(key, {}).get(namespace, {}).get(name)

    def list_(self, key: Key, namespace: str = "") -> tuple[Object, ...]:
        """List the objects of a resource, in all namespaces or in one, in the order of their etcd
        keys (`namespace/name`)."""
        known = self._lists.get((key, namespace))
        if known is not None:
            return known
        by_namespace = self._objects.get(key, {})
        namespaces = [namespace]
        if not namespace:
            namespaces = sorted(by_namespace, key=lambda name: f"{name}/")
        objects: list[Object] = []
        for name in namespaces:
            stored = by_namespace.get(name, {})
            objects += [stored[object_name] for object_name in sorted(stored)]
        listed = self._lists[key, namespace] = tuple(objects)
        return listed

    def keys_in(self, namespace: str) -> tuple[Key, ...]:
        """Return the resources that have an object in a namespace."""
        return tuple(key for key, namespaces in self._objects.items() if namespaces.get(namespace))

    def put(self, key: Key, obj: Object) -> Object:
        """Store a new version, and write its resourceVersion into `obj`."""
        obj["metadata"]["resourceVersion"] = str(self.revision + 1)
        objects = self._objects.setdefault(key, {}).setdefault(namespace_of(obj), {})
        name = obj["metadata"]["name"]
        event = "MODIFIED" if name in objects else "ADDED"
        objects[name] = obj
        self._changed(key, obj, event)
        return obj

    def remove(self, key: Key, obj: Object) -> None:
        del self._objects[key][namespace_of(obj)][obj["metadata"]["name"]]
        self._changed(key, obj, "DELETED")

    def _changed(self, key: Key, obj: Object, event: str) -> None:
        self.revision += 1
        self._lists.pop((key, namespace_of(obj)), None)
        self._lists.pop((key, ""), None)
        self.journal.append((key, event, self.revision, obj))


_TERM = re.compile(r"\s*([^\s=!(),]+)\s*(==|=|!=)\s*([^\s=!(),]*)\s*")


def selected(query: Mapping[str, str]) -> Callable[[Mapping[str, Any]], bool] | None:
    """Make a predicate of `labelSelector` and `fieldSelector`; None if both are empty. Raises
    `ApiError` for an invalid selector."""
    by_label = terms(query.get("labelSelector", ""))
    by_field = terms(query.get("fieldSelector", ""))
    if not by_label and not by_field:
        return None

    def test(obj: Mapping[str, Any]) -> bool:
        labels = obj["metadata"].get("labels") or {}
        for label, value, equal in by_label:
            if (labels.get(label) == value) is not equal:
                return False
        return all((_text(obj, field) == value) is equal for field, value, equal in by_field)

    return test


def terms(selector: str) -> list[tuple[str, str, bool]]:
    """Parse a selector into keys, values, and whether both must be equal. Sets, such as `app in
    (a)`, are not known."""
    parsed: list[tuple[str, str, bool]] = []
    if not selector.strip():
        return parsed
    for term in selector.split(","):
        match = _TERM.fullmatch(term)
        if match is None:
            raise bad_request(f"unable to parse requirement: {selector}")
        key, operator, value = match.groups()
        parsed.append((key, value, operator != "!="))
    return parsed


def _text(obj: Mapping[str, Any], field: str) -> str:
    value: Any = obj
    for name in field.split("."):
        if not isinstance(value, dict):
            return ""
        value = value.get(name)
    if value is None:
        return ""
    return str(value)
