"""LIST: one page of a resource, consistent with the page before it.

Owns the `continue` tokens. A token names the revision of its first page; when that snapshot is gone the answer is 410,
as the real server's after compaction.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from eurekube_sync.embedded.kubernetes import errors
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.selection import field_test, label_test
from eurekube_sync.embedded.kubernetes.store import Store, Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The objects of one page, and the list's metadata."""

    items: tuple[Stored, ...]
    metadata: Mapping[str, Any]


def page(store: Store, resource: Resource, namespace: str, query: Mapping[str, str]) -> Page:
    """Answer one LIST."""
    labels = label_test(query.get("labelSelector", ""))
    fields = field_test(query.get("fieldSelector", ""), resource.plural)
    limit = int(query.get("limit") or 0)
    revision, start, found = _source(store, resource, namespace, query.get("continue", ""), limit)
    first = next((i for i, stored in enumerate(found) if stored.path >= start), len(found)) if start else 0
    items: list[Stored] = []
    position = first
    for position in range(first, len(found)):
        stored = found[position]
        if limit and len(items) == limit:
            break
        if labels is not None and not labels(stored.obj["metadata"].get("labels") or {}):
            continue
        if fields is not None and not fields(stored.obj):
            continue
        items.append(stored)
    else:
        position = len(found)
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if position < len(found):
        metadata["continue"] = _token(revision, found[position].path)
        if labels is None and fields is None:
            metadata["remainingItemCount"] = len(found) - position
    return Page(items=tuple(items), metadata=metadata)


def _source(
    store: Store, resource: Resource, namespace: str, token: str, limit: int
) -> tuple[int, str, tuple[Stored, ...]]:
    """The revision, the key to start at, and what there was to list."""
    if token:
        revision, start = _parsed(token)
        snapshot = store.snapshot(_scope(resource, namespace), revision)
        if snapshot is None:
            raise errors.expired()
        return revision, start, snapshot
    found = store.within(resource.key, namespace) if namespace else store.all(resource.key)
    if limit:
        store.keep_snapshot(_scope(resource, namespace), store.revision, found)
    return store.revision, "", found


def _scope(resource: Resource, namespace: str) -> tuple[str, str]:
    return resource.group, f"{resource.plural}/{namespace}"


def _token(revision: int, start: str) -> str:
    fields = {"v": "meta.k8s.io/v1", "rv": revision, "start": start}
    return base64.urlsafe_b64encode(msgspec.json.encode(fields)).rstrip(b"=").decode()


def _parsed(token: str) -> tuple[int, str]:
    try:
        fields = msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(fields["rv"]), str(fields["start"])
    except (ValueError, KeyError, TypeError):
        raise errors.bad_request("invalid continue token: continue key is not valid") from None
