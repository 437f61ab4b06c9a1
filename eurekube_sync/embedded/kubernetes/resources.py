"""The resources of the embedded Kubernetes API, and their discovery documents, OpenAPI v3 and
tables for kubectl.

The built-in resources are fixed. A CustomResourceDefinition adds others (`from_definition`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field

_VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")


class Resource(Struct, frozen=True, kw_only=True):
    """One kind in one version, and how its writes are treated."""

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    has_status: bool = (
        False  # `/status` is a subresource: a write to either ignores the fields of the other
    )
    generation: bool = False  # metadata.generation starts at 1 and grows with the spec
    definition: str = ""  # name of a custom resource's CustomResourceDefinition
    schema: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[Mapping[str, Any], ...] = ()  # `additionalPrinterColumns` of a custom resource

    @property
    def custom(self) -> bool:
        return bool(self.definition)

    @property
    def api_version(self) -> str:
        """`v1`, or `group/version`."""
        if self.group:
            return f"{self.group}/{self.version}"
        return self.version

    @property
    def path(self) -> str:
        """`api/v1`, or `apis/group/version`."""
        if self.group:
            return f"apis/{self.api_version}"
        return f"api/{self.version}"

    @property
    def qualified(self) -> str:
        """`services`, or `eurekasyncers.eurekube.io`."""
        if self.group:
            return f"{self.plural}.{self.group}"
        return self.plural

    @property
    def key(self) -> tuple[str, str]:
        """Key of its objects in the store. The version does not matter."""
        return self.group, self.plural


def _built_in(kind: str, *short_names: str, group: str = "", **others: Any) -> Resource:
    plural = others.pop("plural", f"{kind.lower()}s")
    return Resource(kind=kind, plural=plural, group=group, short_names=short_names, **others)


NAMESPACES = _built_in("Namespace", "ns", namespaced=False, has_status=True)
NODES = _built_in("Node", "no", namespaced=False, has_status=True)
SERVICES = _built_in("Service", "svc", has_status=True)
PODS = _built_in("Pod", "po", has_status=True, generation=True)
SLICES = _built_in("EndpointSlice", group="discovery.k8s.io", generation=True)
DEFINITIONS = _built_in(
    "CustomResourceDefinition",
    "crd",
    group="apiextensions.k8s.io",
    namespaced=False,
    has_status=True,
    generation=True,
)
BUILT_IN = (
    NAMESPACES,
    NODES,
    SERVICES,
    PODS,
    SLICES,
    DEFINITIONS,
    _built_in("Event", "ev"),
    _built_in("ServiceAccount", "sa"),
    _built_in("ConfigMap", "cm"),
    _built_in("Lease", group="coordination.k8s.io"),
    _built_in("SelfSubjectAccessReview", group="authorization.k8s.io", namespaced=False),
    # Objects of the following kinds are only stored.
    _built_in("ServiceCIDR", group="networking.k8s.io", namespaced=False),
    _built_in("Role", group="rbac.authorization.k8s.io"),
    _built_in("RoleBinding", group="rbac.authorization.k8s.io"),
    _built_in("ClusterRole", group="rbac.authorization.k8s.io", namespaced=False),
    _built_in("ClusterRoleBinding", group="rbac.authorization.k8s.io", namespaced=False),
    _built_in("CronJob", "cj", group="batch", has_status=True, generation=True),
    _built_in("Deployment", "deploy", group="apps", has_status=True, generation=True),
    _built_in(
        "NetworkPolicy",
        "netpol",
        plural="networkpolicies",
        group="networking.k8s.io",
        generation=True,
    ),
    _built_in(
        "Ingress",
        "ing",
        plural="ingresses",
        group="networking.k8s.io",
        has_status=True,
        generation=True,
    ),
)


def from_definition(definition: Mapping[str, Any]) -> Iterable[Resource]:
    """Make the resources of a CustomResourceDefinition, one per served version."""
    spec = definition["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        schema = version.get("schema") or {}
        yield Resource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec["scope"] == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            has_status="status" in (version.get("subresources") or {}),
            generation=True,
            definition=definition["metadata"]["name"],
            schema=schema.get("openAPIV3Schema") or {},
            columns=tuple(version.get("additionalPrinterColumns") or ()),
        )


def document(served: Iterable[Resource], parts: list[str]) -> Mapping[str, Any] | None:
    """Make the discovery or OpenAPI document of a path; None if there is none."""
    match parts:
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            return _group_list(served)
        case ["api", _] | ["apis", _, _]:
            return _resource_list(served, "/".join(parts))
        case ["openapi", "v3"]:
            paths: dict[str, Any] = {}
            for resource in served:
                paths[resource.path] = {"serverRelativeURL": f"/openapi/v3/{resource.path}"}
            return {"paths": paths}
        case ["openapi", "v3", *rest]:
            return _openapi(served, "/".join(rest))
    return None


def _group_list(served: Iterable[Resource]) -> Mapping[str, Any]:
    groups: dict[str, Any] = {}
    for resource in served:
        if resource.group:
            version = {"groupVersion": resource.api_version, "version": resource.version}
            group = {"name": resource.group, "versions": [version], "preferredVersion": version}
            groups[resource.api_version] = group
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(groups.values())}


def _resource_list(served: Iterable[Resource], path: str) -> Mapping[str, Any] | None:
    listed: list[dict[str, Any]] = []
    for resource in served:
        if resource.path != path:
            continue
        head = {"kind": resource.kind, "namespaced": resource.namespaced}
        listed.append(
            {
                **head,
                "name": resource.plural,
                "singularName": resource.kind.lower(),
                "shortNames": resource.short_names,
                "verbs": _VERBS,
            }
        )
        if resource.has_status:
            status = f"{resource.plural}/status"
            listed.append({**head, "name": status, "verbs": ("get", "patch", "update")})
    if not listed:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": path.partition("/")[2],
        "resources": listed,
    }


def _openapi(served: Iterable[Resource], path: str) -> Mapping[str, Any] | None:
    """Make the OpenAPI document of a group and version. If PATCH has `fieldValidation`, kubectl
    leaves validation to the server. `kubectl explain` reads the schemas."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    plain = {"type": "string"}
    for resource in served:
        if resource.path != path:
            continue
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        operation = {
            "parameters": [{"name": "fieldValidation", "in": "query", "schema": plain}],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": kind,
        }
        scope = "/namespaces/{namespace}" if resource.namespaced else ""
        paths[f"/{path}{scope}/{resource.plural}/{{name}}"] = {"patch": operation}
        fields = {"apiVersion": plain, "kind": plain, "metadata": {"type": "object"}}
        fields |= resource.schema.get("properties") or {}
        schemas[f"{resource.api_version}/{resource.kind}"] = {
            "type": "object",
            **resource.schema,
            "properties": fields,
            "x-kubernetes-group-version-kind": [kind],
        }
    if not paths:
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "embedded"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


_NAME = {"name": "Name", "type": "string", "jsonPath": ".metadata.name", "format": "name"}
_STEP = re.compile(
    r"\.(?P<field>[^.\[\]]+)|\[\?\(@\.(?P<key>[\w.]+)\s*==\s*[\"'](?P<value>[^\"']*)[\"']\)\]"
)


def _read(obj: Any, path: str) -> Any:
    """Return the value at a JSONPath of fields and equality filters, or None."""
    value: Any = obj
    for step in _STEP.finditer(path):
        if step["field"]:
            value = value.get(step["field"]) if isinstance(value, dict) else None
            continue
        entries = value if isinstance(value, list) else []
        value = None
        for entry in entries:
            if entry.get(step["key"]) == step["value"]:
                value = entry
                break
    return value


def _age(created: str, now: float) -> str:
    """Format an age as `5s`, or as `3m` from two minutes on."""
    seconds = max(0, int(now - datetime.fromisoformat(created).timestamp()))
    if seconds >= 120:
        return f"{seconds // 60}m"
    return f"{seconds}s"


def table(resource: Resource, objects: Iterable[Mapping[str, Any]], now: float) -> dict[str, Any]:
    """Make a `meta.k8s.io/v1` Table with the columns of a custom resource. For built-in kinds,
    kubectl itself prints name and age."""
    columns = (_NAME, *resource.columns)
    rows: list[dict[str, Any]] = []
    for obj in objects:
        cells: list[Any] = []
        for column in columns:
            value = _read(obj, column["jsonPath"])
            if column["type"] == "date":
                value = _age(value, now)
            cells.append(value)
        rows.append({"cells": cells, "object": metadata_of(obj)})
    unset = {"format": "", "description": "", "priority": 0}
    definitions: list[dict[str, Any]] = []
    for column in columns:
        definition = {**unset, **column}
        del definition["jsonPath"]
        definitions.append(definition)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "columnDefinitions": definitions,
        "rows": rows,
    }


def metadata_of(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Make a PartialObjectMetadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }
