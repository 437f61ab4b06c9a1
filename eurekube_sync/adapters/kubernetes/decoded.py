"""What the items of the last lists were read as, so that an item whose bytes did not change is not read again.

All is listed in each pass all the same. An item with the same bytes is the same object then, by which later stages
recognise that nothing of it changed (`desired/earlier`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from hashlib import blake2b
from typing import Any, TypeAlias

from eurekube_sync.model.values import dataclass

Read: TypeAlias = tuple[str, Any]
"""The namespace of an item, and what its kind made of it."""
_DIGEST_BYTES = 16


def digest(raw: bytes | memoryview) -> bytes:
    """By which the bytes of an item are known; none but an equal item has the same."""
    return blake2b(raw, digest_size=_DIGEST_BYTES).digest()


@dataclass(slots=True)
class Decoded:
    """The items of the last list of each kind, by the namespace that was listed."""

    _items: dict[Callable[..., Any], Mapping[str | None, Mapping[bytes, Read]]] = field(default_factory=dict)

    def before(self, project: Callable[..., Any], namespace: str | None) -> Mapping[bytes, Read]:
        """Of the last list of this kind, by digest. A kind is known by how it reads an item."""
        return self._items.get(project, {}).get(namespace, {})

    def keep(self, project: Callable[..., Any], lists: Mapping[str | None, Mapping[bytes, Read]]) -> None:
        """Those of a list of now, of each namespace that could be listed; others are forgotten."""
        self._items[project] = lists
