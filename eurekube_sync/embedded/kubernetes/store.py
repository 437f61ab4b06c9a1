"""Where the embedded Kubernetes API keeps its objects: one revision counter, and immutable versions.

An object, once stored, is never changed in place: a write stores a new one. So what a reader holds stays as it was.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import deque
from typing import Any

import msgspec

Key = tuple[str, str]
"""(group, plural) of a resource."""

_JOURNAL = 2000


class Stored:
    """One version of one object, with its JSON made once."""

    __slots__ = ("_item", "name", "namespace", "obj", "revision")

    def __init__(self, obj: dict[str, Any], revision: int) -> None:
        metadata = obj["metadata"]
        self.obj = obj
        self.revision = revision
        self.namespace: str = metadata.get("namespace", "")
        self.name: str = metadata["name"]
        self._item: bytes | None = None

    def item(self, *, typed: bool) -> bytes:
        """The JSON as an item of a list: a built-in one has no apiVersion and kind there [real 1.36]."""
        if self._item is None:
            bare = self.obj if typed else {k: v for k, v in self.obj.items() if k not in ("apiVersion", "kind")}
            self._item = msgspec.json.encode(bare)
        return self._item


class Store:
    """The objects by resource. Not locked: its owner is. `seed` makes the uids; `revision` is where resourceVersions
    begin: those of two real clusters do not meet."""

    def __init__(self, *, seed: int = 0, revision: int = 1) -> None:
        self.revision = revision
        self.journal: deque[tuple[Key, str, int, Stored]] = deque(maxlen=_JOURNAL)
        """Each write for those who watch: resource, type of event, revision, object."""
        self._seed = seed
        self._uids = 0
        self._objects: dict[Key, dict[str, dict[str, Stored]]] = {}
        self._sorted: dict[tuple[Key, str], tuple[Stored, ...]] = {}
        self._everywhere: dict[Key, tuple[Stored, ...]] = {}

    def new_uid(self) -> str:
        """The next uid: random to look at, the same in every run with one seed."""
        self._uids += 1
        digest = hashlib.sha256(f"{self._seed}/{self._uids}".encode()).digest()
        return str(uuid.UUID(bytes=digest[:16], version=4))

    def get(self, key: Key, namespace: str, name: str) -> Stored | None:
        """The current version, or None."""
        return self._objects.get(key, {}).get(namespace, {}).get(name)

    def all(self, key: Key) -> tuple[Stored, ...]:
        """All current objects of a resource, in the order of their keys in etcd (`namespace/name`)."""
        found = self._everywhere.get(key)
        if found is None:
            namespaces = sorted(self._objects.get(key, {}), key=lambda namespace: f"{namespace}/")
            found = tuple(stored for namespace in namespaces for stored in self.within(key, namespace))
            self._everywhere[key] = found
        return found

    def within(self, key: Key, namespace: str) -> tuple[Stored, ...]:
        """All current objects of a resource in one namespace, by name."""
        found = self._sorted.get((key, namespace))
        if found is None:
            found = tuple(stored for _, stored in sorted(self._objects.get(key, {}).get(namespace, {}).items()))
            self._sorted[key, namespace] = found
        return found

    def keys_in(self, namespace: str) -> tuple[Key, ...]:
        """The resources that have an object in a namespace."""
        return tuple(key for key, namespaces in self._objects.items() if namespaces.get(namespace))

    def put(self, key: Key, obj: dict[str, Any]) -> Stored:
        """Store a new version; stamps its resourceVersion into `obj`."""
        obj["metadata"]["resourceVersion"] = str(self.revision + 1)
        stored = Stored(obj, self.revision + 1)
        objects = self._objects.setdefault(key, {}).setdefault(stored.namespace, {})
        event = "MODIFIED" if stored.name in objects else "ADDED"
        objects[stored.name] = stored
        self._changed(key, stored, event)
        return stored

    def remove(self, key: Key, stored: Stored) -> None:
        """Forget an object."""
        del self._objects[key][stored.namespace][stored.name]
        self._changed(key, stored, "DELETED")

    def _changed(self, key: Key, stored: Stored, event: str) -> None:
        self.revision += 1
        self._sorted.pop((key, stored.namespace), None)
        self._everywhere.pop(key, None)
        self.journal.append((key, event, self.revision, stored))
