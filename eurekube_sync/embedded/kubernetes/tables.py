"""`as=Table`, the printer columns that `kubectl get` shows, and `as=PartialObjectMetadataList`, metadata alone.

Custom resources print their definition's columns; a few built-in kinds have theirs; the rest have Name and Age.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from eurekube_sync.embedded.kubernetes.resources import Column, Resource

_NAME = Column(name="Name", type="string", path=".metadata.name", format="name")
_AGE = Column(name="Age", type="date", path=".metadata.creationTimestamp")

_BUILT_IN: Mapping[str, tuple[Column, ...]] = {
    "services": (
        Column(name="Type", type="string", path=".spec.type"),
        Column(name="Cluster-IP", type="string", path=".spec.clusterIP"),
        Column(name="Port(s)", type="string", path=".spec.ports[0].port"),
    ),
    "pods": (
        Column(name="Ready", type="string", path='.status.conditions[?(@.type=="Ready")].status'),
        Column(name="Status", type="string", path=".status.phase"),
        Column(name="IP", type="string", path=".status.podIP", priority=1),
        Column(name="Node", type="string", path=".spec.nodeName", priority=1),
    ),
    "namespaces": (Column(name="Status", type="string", path=".status.phase"),),
    "endpointslices": (
        Column(name="AddressType", type="string", path=".addressType"),
        Column(name="Ports", type="string", path=".ports[0].port"),
        Column(name="Endpoints", type="string", path=".endpoints[0].addresses[0]"),
    ),
    "events": (
        Column(name="Type", type="string", path=".type"),
        Column(name="Reason", type="string", path=".reason"),
        Column(name="Object", type="string", path=".involvedObject.name"),
        Column(name="Message", type="string", path=".message"),
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
    """`5s`, `3m20s`, `2d4h`: kubectl's short duration."""
    try:
        seconds = int(now - datetime.fromisoformat(str(created)).timestamp())
    except ValueError:
        return "<unknown>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    return f"{days}d"


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
    definitions = [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in columns
    ]
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1"}
    return {**head, "metadata": dict(metadata), "columnDefinitions": definitions, "rows": rows}


def metadata_list(objects: Iterable[Mapping[str, Any]], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A `meta.k8s.io/v1` PartialObjectMetadataList; its items say their kind, also those of built-in resources."""
    head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
    return {**head, "metadata": dict(metadata), "items": [_metadata(obj) for obj in objects]}


def _metadata(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def _cell(column: Column, obj: Mapping[str, Any], now: float) -> Any:
    value = read_path(obj, column.path)
    if column.type == "date":
        return age(value, now) if value is not None else "<unknown>"
    return value
