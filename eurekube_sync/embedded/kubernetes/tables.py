"""`as=Table`, the printer columns of a custom resource that `kubectl get` shows. Of other kinds kubectl shows name and
age by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from eurekube_sync.embedded.kubernetes.resources import Resource

_NAME = {"name": "Name", "type": "string", "jsonPath": ".metadata.name", "format": "name"}
_STEP = re.compile(r"\.(?P<field>[^.\[\]]+)|\[\?\(@\.(?P<key>[\w.]+)\s*==\s*[\"'](?P<value>[^\"']*)[\"']\)\]")


def _read(obj: Any, path: str) -> Any:
    """The value of a simple JSONPath as our columns have it, or None."""
    for step in _STEP.finditer(path):
        if step["key"]:
            entries = obj if isinstance(obj, list) else []
            obj = next((entry for entry in entries if entry.get(step["key"]) == step["value"]), None)
        else:
            obj = obj.get(step["field"]) if isinstance(obj, dict) else None
    return obj


def _age(created: str, now: float) -> str:
    """`5s`, `3m`, `2d`: kubectl's short duration, in one unit."""
    seconds = int(now - datetime.fromisoformat(created).timestamp())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"


def table(
    resource: Resource, objects: Iterable[Mapping[str, Any]], metadata: Mapping[str, Any], include: str, now: float
) -> dict[str, Any]:
    """A `meta.k8s.io/v1` Table. `include` is the query's includeObject: Metadata, Object or None."""
    columns = (_NAME, *resource.columns)
    rows: list[dict[str, Any]] = []
    for obj in objects:
        values = [(column["type"], _read(obj, column["jsonPath"])) for column in columns]
        row: dict[str, Any] = {"cells": [_age(value, now) if type_ == "date" else value for type_, value in values]}
        if include != "None":
            row["object"] = obj if include == "Object" else metadata_of(obj)
        rows.append(row)
    unset = {"format": "", "description": "", "priority": 0}
    definitions = [{**unset, **{key: column[key] for key in column if key != "jsonPath"}} for column in columns]
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1"}
    return {**head, "metadata": metadata, "columnDefinitions": definitions, "rows": rows}


def metadata_of(obj: Mapping[str, Any]) -> dict[str, Any]:
    """A PartialObjectMetadata; it says its kind, also that of a built-in resource."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
