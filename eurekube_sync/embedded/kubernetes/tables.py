"""`as=Table`, the printer columns that `kubectl get` shows, and `as=PartialObjectMetadataList`, metadata alone.

Custom resources print their definition's columns; a few built-in kinds have theirs; the rest have Name and Age.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from eurekube_sync.embedded.kubernetes.resources import Resource

Column = Mapping[str, Any]
"""One of a definition's `additionalPrinterColumns`."""


def _column(name: str, path: str, **others: Any) -> Column:
    return {"name": name, "type": "string", "jsonPath": path, **others}


_NAME = _column("Name", ".metadata.name", format="name")
_AGE = _column("Age", ".metadata.creationTimestamp", type="date")
_BUILT_IN: Mapping[str, tuple[Column, ...]] = {
    "services": (
        _column("Type", ".spec.type"),
        _column("Cluster-IP", ".spec.clusterIP"),
        _column("Port(s)", ".spec.ports[0].port"),
    ),
    "pods": (
        _column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        _column("Status", ".status.phase"),
        _column("IP", ".status.podIP"),
    ),
    "events": (
        _column("Type", ".type"),
        _column("Reason", ".reason"),
        _column("Object", ".involvedObject.name"),
        _column("Message", ".message"),
    ),
}

_STEP = re.compile(
    r"\.(?P<field>[^.\[\]]+)|\[(?P<index>\d+)\]|\['(?P<quoted>[^']+)'\]"
    r"|\[\?\(@\.(?P<key>[\w.]+)\s*==\s*[\"'](?P<value>[^\"']*)[\"']\)\]"
)


def read_path(obj: Any, path: str) -> Any:
    """The value of a simple JSONPath as printer columns use it, or None."""
    for step in _STEP.finditer(path.replace("\\.", "\0")):
        if step["key"]:
            entries = obj if isinstance(obj, list) else []
            obj = next((entry for entry in entries if entry.get(step["key"]) == step["value"]), None)
        elif step["index"]:
            position = int(step["index"])
            obj = obj[position] if isinstance(obj, list) and position < len(obj) else None
        else:
            name = (step["field"] or step["quoted"]).replace("\0", ".")
            obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def age(created: Any, now: float) -> str:
    """`5s`, `3m`, `2d`: kubectl's short duration, in one unit."""
    try:
        seconds = int(now - datetime.fromisoformat(str(created)).timestamp())
    except ValueError:
        return "<unknown>"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"


def table(
    resource: Resource, objects: Iterable[Mapping[str, Any]], metadata: Mapping[str, Any], include: str, now: float
) -> dict[str, Any]:
    """A `meta.k8s.io/v1` Table. `include` is the query's includeObject: Metadata, Object or None."""
    own = resource.columns if resource.custom else (*_BUILT_IN.get(resource.plural, ()), _AGE)
    columns = (_NAME, *own, *(() if own else (_AGE,)))
    rows: list[dict[str, Any]] = []
    for obj in objects:
        row: dict[str, Any] = {"cells": [_cell(column, obj, now) for column in columns]}
        if include == "Object":
            row["object"] = obj
        elif include != "None":
            row["object"] = _metadata(obj)
        rows.append(row)
    unset = {"format": "", "description": "", "priority": 0}
    definitions = [{**unset, **{key: column[key] for key in column if key != "jsonPath"}} for column in columns]
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1"}
    return {**head, "metadata": dict(metadata), "columnDefinitions": definitions, "rows": rows}


def metadata_list(objects: Iterable[Mapping[str, Any]], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A `meta.k8s.io/v1` PartialObjectMetadataList; its items say their kind, also those of built-in resources."""
    head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
    return {**head, "metadata": dict(metadata), "items": [_metadata(obj) for obj in objects]}


def _metadata(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def _cell(column: Column, obj: Mapping[str, Any], now: float) -> Any:
    value = read_path(obj, column["jsonPath"])
    if column["type"] == "date":
        return age(value, now) if value is not None else "<unknown>"
    return value
