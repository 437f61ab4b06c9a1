"""LIST in pages, each consistent with the page before it.

Owns the `continue` tokens. A token names the revision of its first page; when that snapshot is gone
the answer is 410, as the real server's after compaction.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from eurekube_sync.embedded.kubernetes import errors
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.store import Object, Store, namespace_of, selected

_SNAPSHOTS = 64


class Pages:
    """What lists saw, for the pages after their first; the oldest is forgotten."""

    def __init__(self) -> None:
        self.snapshots: OrderedDict[tuple[str, str, int], Sequence[Object]] = OrderedDict()

    def page(
        self, store: Store, resource: Resource, namespace: str, query: Mapping[str, str]
    ) -> tuple[list[Object], dict[str, Any]]:
        """The objects of one page, and the list's metadata."""
        test = selected(query)
        limit = int(query.get("limit") or 0)
        revision, start, found = self._source(
            store, resource, namespace, query.get("continue", ""), limit
        )
        first = (
            next((i for i, stored in enumerate(found) if _path(stored) >= start), len(found))
            if start
            else 0
        )
        items: list[Object] = []
        position = first
        for position in range(first, len(found)):
            if limit and len(items) == limit:
                break
            if test is None or test(found[position]):
                items.append(found[position])
        else:
            position = len(found)
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if position < len(found):
            metadata["continue"] = _token(revision, _path(found[position]))
            if test is None:
                metadata["remainingItemCount"] = len(found) - position
        return items, metadata

    def _source(
        self, store: Store, resource: Resource, namespace: str, token: str, limit: int
    ) -> tuple[int, str, Sequence[Object]]:
        """The revision, the key to start at, and what there was to list."""
        if token:
            revision, start = _parsed(token)
            snapshot = self.snapshots.get((resource.qualified, namespace, revision))
            if snapshot is None:
                message = (
                    "The provided continue parameter is too old to display a consistent "
                    "list result."
                )
                raise errors.ApiError(410, "Expired", message)
            return revision, start, snapshot
        found = store.list_(resource.key, namespace)
        if limit:
            key = (resource.qualified, namespace, store.revision)
            self.snapshots[key] = found
            self.snapshots.move_to_end(key)
            while len(self.snapshots) > _SNAPSHOTS:
                self.snapshots.popitem(last=False)
        return store.revision, "", found


def _path(stored: Object) -> str:
    """The key that lists are ordered by."""
    return f"{namespace_of(stored)}/{stored['metadata']['name']}"


def _token(revision: int, start: str) -> str:
    fields = {"v": "meta.k8s.io/v1", "rv": revision, "start": start}
    return base64.urlsafe_b64encode(msgspec.json.encode(fields)).rstrip(b"=").decode()


def _parsed(token: str) -> tuple[int, str]:
    try:
        fields = msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(fields["rv"]), str(fields["start"])
    except (ValueError, KeyError, TypeError):
        raise errors.bad_request("invalid continue token: continue key is not valid") from None
