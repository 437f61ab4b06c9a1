"""What the API server demands of `metadata`, which a CRD's schema does not describe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from eurekube_sync.manifests.findings import Path

_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(_SUBDOMAIN)
_NAME_PART = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_ANNOTATIONS_BYTES = 256 * 1024

_TEXT = {"type": ["string", "null"]}
_NUMBER = {"type": ["integer", "null"]}
_TEXTS = {"type": ["object", "null"], "additionalProperties": _TEXT}
_OWNER = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "name", "uid"],
    "properties": {
        **{key: {"type": "string", "minLength": 1} for key in ("apiVersion", "kind", "name", "uid")},
        **{key: {"type": ["boolean", "null"]} for key in ("controller", "blockOwnerDeletion")},
    },
}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        **dict.fromkeys(("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), _TEXT),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TEXT),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _NUMBER),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {"type": ["array", "null"], "items": {"type": "string"}},
        "ownerReferences": {"type": ["array", "null"], "items": _OWNER},
        "managedFields": {"type": ["array", "null"]},
    },
}
"""JSON Schema of ObjectMeta. Null means absent, as Go reads it."""


def metadata_faults(metadata: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """What is wrong with the names, labels and annotations of a `metadata` that meets the schema."""
    yield from _names(metadata)
    for key, value in (metadata.get("labels") or {}).items():
        yield from _key(("labels", key), key)
        if value and (len(value) > 63 or not _NAME_PART.fullmatch(value)):
            yield ("labels", key), "a label's value has at most 63 letters, digits, dots, hyphens and underscores"
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        yield from _key(("annotations", key), key.lower())
    size = sum(len(key.encode()) + len((value or "").encode()) for key, value in annotations.items())
    if size > _ANNOTATIONS_BYTES:
        yield ("annotations",), f"annotations have {size} bytes, at most {_ANNOTATIONS_BYTES} are allowed"
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        yield from _key(("finalizers", index), finalizer)


def _names(metadata: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    name, prefix = metadata.get("name") or "", metadata.get("generateName") or ""
    if not name and not prefix:
        yield ("name",), 'field "name" is missing'
    if name and (len(name) > 253 or not _DNS_SUBDOMAIN.fullmatch(name)):
        yield ("name",), f'"{name[:60]}" is not a DNS name: lower-case letters, digits, hyphens and dots, at most 253'
    whole = f"{prefix[:-2]}a" if prefix[1:].endswith("-") else prefix  # as the API server tries it
    if prefix and (len(prefix) > 253 or not _DNS_SUBDOMAIN.fullmatch(whole)):
        yield ("generateName",), f'"{prefix[:60]}" is not the beginning of a DNS name'
    namespace = metadata.get("namespace") or ""
    if namespace and (len(namespace) > 63 or not _DNS_LABEL.fullmatch(namespace)):
        yield (
            ("namespace",),
            f'"{namespace[:60]}" is not a namespace: lower-case letters, digits and hyphens, at most 63',
        )


def _key(path: Path, key: str) -> Iterator[tuple[Path, str]]:
    """A qualified name: `name`, or `dns.prefix/name`."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _DNS_SUBDOMAIN.fullmatch(prefix)):
        yield path, f'"{prefix[:60]}" before the slash is not a DNS name'
    if len(name) > 63 or not _NAME_PART.fullmatch(name):
        yield path, f'"{name[:60]}" is not a name: at most 63 letters, digits, dots, hyphens and underscores'
