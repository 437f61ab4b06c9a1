"""The OpenAPI v3 documents, as much as `kubectl apply`, `explain` and their field validation ask for.

kubectl looks for a PATCH with `fieldValidation`: then it leaves validation to the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eurekube_sync.embedded.kubernetes.resources import Resource


def index(found: Iterable[Resource]) -> dict[str, Any]:
    """`GET /openapi/v3`."""
    paths = {_path(resource): {"serverRelativeURL": f"/openapi/v3/{_path(resource)}"} for resource in found}
    return {"paths": paths}


def _path(resource: Resource) -> str:
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"


def document(found: Iterable[Resource], path: str) -> dict[str, Any] | None:
    """`GET /openapi/v3/<path>`; None when nobody serves that group and version."""
    served = [resource for resource in found if _path(resource) == path]
    if not served:
        return None
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for resource in served:
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        scope = "/namespaces/{namespace}" if resource.namespaced else ""
        operation = {
            "operationId": f"patch{resource.kind}",
            "parameters": [
                {"name": "fieldValidation", "in": "query", "schema": {"type": "string", "uniqueItems": True}}
            ],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": kind,
        }
        paths[f"/{path}{scope}/{resource.plural}/{{name}}"] = {"patch": operation}
        name = ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind]).lstrip(".")
        schemas[name] = {**_schema(resource), "x-kubernetes-group-version-kind": [kind]}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "embedded"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _schema(resource: Resource) -> Mapping[str, Any]:
    plain = {"type": "string"}
    head = {"apiVersion": plain, "kind": plain, "metadata": {"type": "object"}}
    own = resource.schema.get("properties") or {}
    return {"type": "object", **resource.schema, "properties": {**head, **own}}
