"""Where the embedded Kubernetes API keeps its objects: one revision counter, immutable versions, consistent snapshots.

An object, once stored, is never changed in place: a write stores a new one. That is what lets a list that is walked in
pages stay the list of its first page, as etcd's history does for the real server.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

Key = tuple[str, str]
"""(group, plural) of a resource."""

_SNAPSHOTS = 64
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

    @property
    def path(self) -> str:
        """The key that lists are ordered by."""
        return f"{self.namespace}/{self.name}"

    def item(self, *, typed: bool) -> bytes:
        """The JSON as an item of a list: a built-in one has no apiVersion and kind there [real 1.36]."""
        if self._item is None:
            bare = self.obj if typed else {k: v for k, v in self.obj.items() if k not in ("apiVersion", "kind")}
            self._item = msgspec.json.encode(bare)
        return self._item


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One write, for those who watch."""

    key: Key
    revision: int
    type: str
    stored: Stored


class Store:
    """The objects by resource, and the snapshots that `continue` tokens refer to. Not locked: its owner is."""

    def __init__(self, *, seed: int, revision: int = 1) -> None:
        self.revision = revision
        self.journal: deque[Change] = deque(maxlen=_JOURNAL)
        self._seed = seed
        self._uids = 0
        self._objects: dict[Key, dict[str, dict[str, Stored]]] = {}
        self._sorted: dict[tuple[Key, str], tuple[Stored, ...]] = {}
        self._everywhere: dict[Key, tuple[Stored, ...]] = {}
        self.snapshots: OrderedDict[tuple[Key, int], tuple[Stored, ...]] = OrderedDict()

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
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        stored = Stored(obj, self.revision)
        objects = self._objects.setdefault(key, {}).setdefault(stored.namespace, {})
        kind = "MODIFIED" if stored.name in objects else "ADDED"
        objects[stored.name] = stored
        self._changed(key, stored, kind)
        return stored

    def remove(self, key: Key, stored: Stored) -> None:
        """Forget an object."""
        self.revision += 1
        del self._objects[key][stored.namespace][stored.name]
        self._changed(key, stored, "DELETED")

    def _changed(self, key: Key, stored: Stored, kind: str) -> None:
        self._sorted.pop((key, stored.namespace), None)
        self._everywhere.pop(key, None)
        self.journal.append(Change(key=key, revision=self.revision, type=kind, stored=stored))

    def keep_snapshot(self, key: Key, revision: int, objects: Iterable[Stored]) -> None:
        """Remember what a list saw, for the pages after its first; the oldest is forgotten."""
        self.snapshots[(key, revision)] = tuple(objects)
        self.snapshots.move_to_end((key, revision))
        while len(self.snapshots) > _SNAPSHOTS:
            self.snapshots.popitem(last=False)

    def snapshot(self, key: Key, revision: int) -> tuple[Stored, ...] | None:
        """What a list at `revision` saw, or None when that is compacted."""
        return self.snapshots.get((key, revision))
