"""Which resources the embedded Kubernetes API serves, and the discovery documents about them.

The built-in table is fixed; a CustomResourceDefinition adds its own rows (`from_definition`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One printer column of a custom resource."""

    name: str
    type: str
    path: str
    priority: int = 0
    format: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind that can be stored, and how its writes are treated."""

    group: str
    version: str
    plural: str
    kind: str
    singular: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False
    """`/status` is a subresource: each side ignores what is written to the other."""
    generation: bool = False
    """metadata.generation starts at 1 and grows with the spec."""
    custom: bool = False
    definition: str = ""
    """Name of the CustomResourceDefinition a custom resource comes from."""
    schema: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()

    @property
    def api_version(self) -> str:
        """`v1`, or `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> tuple[str, str]:
        """What the store files its objects under: the version does not matter."""
        return self.group, self.plural


CRD_GROUP = "apiextensions.k8s.io"

NAMESPACES = Resource(
    group="",
    version="v1",
    plural="namespaces",
    kind="Namespace",
    namespaced=False,
    short_names=("ns",),
    has_status=True,
)
SERVICES = Resource(
    group="",
    version="v1",
    plural="services",
    kind="Service",
    short_names=("svc",),
    categories=("all",),
    has_status=True,
)
PODS = Resource(
    group="",
    version="v1",
    plural="pods",
    kind="Pod",
    short_names=("po",),
    categories=("all",),
    has_status=True,
    generation=True,
)
NODES = Resource(
    group="", version="v1", plural="nodes", kind="Node", namespaced=False, short_names=("no",), has_status=True
)
ENDPOINTS = Resource(group="", version="v1", plural="endpoints", kind="Endpoints", short_names=("ep",))
EVENTS = Resource(group="", version="v1", plural="events", kind="Event", short_names=("ev",))
SERVICE_ACCOUNTS = Resource(
    group="", version="v1", plural="serviceaccounts", kind="ServiceAccount", short_names=("sa",)
)
ROLES = (
    Resource(group="rbac.authorization.k8s.io", version="v1", plural="roles", kind="Role"),
    Resource(group="rbac.authorization.k8s.io", version="v1", plural="rolebindings", kind="RoleBinding"),
    Resource(
        group="rbac.authorization.k8s.io", version="v1", plural="clusterroles", kind="ClusterRole", namespaced=False
    ),
    Resource(
        group="rbac.authorization.k8s.io",
        version="v1",
        plural="clusterrolebindings",
        kind="ClusterRoleBinding",
        namespaced=False,
    ),
)
"""They are stored, and grant nothing: everything is allowed."""
CRON_JOBS = Resource(
    group="batch",
    version="v1",
    plural="cronjobs",
    kind="CronJob",
    short_names=("cj",),
    categories=("all",),
    has_status=True,
    generation=True,
)
"""They are stored, and nobody runs them."""
SLICES = Resource(
    group="discovery.k8s.io", version="v1", plural="endpointslices", kind="EndpointSlice", generation=True
)
DEFINITIONS = Resource(
    group=CRD_GROUP,
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    has_status=True,
    generation=True,
)

BUILT_IN = (
    NAMESPACES,
    SERVICES,
    PODS,
    NODES,
    ENDPOINTS,
    EVENTS,
    SERVICE_ACCOUNTS,
    *ROLES,
    CRON_JOBS,
    SLICES,
    DEFINITIONS,
)


def from_definition(definition: Mapping[str, Any]) -> tuple[Resource, ...]:
    """The resources a CustomResourceDefinition serves, one per served version."""
    spec = definition["spec"]
    names = spec["names"]
    return tuple(
        Resource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            singular=names.get("singular", names["kind"].lower()),
            namespaced=spec["scope"] == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            has_status="status" in (version.get("subresources") or {}),
            generation=True,
            custom=True,
            definition=definition["metadata"]["name"],
            schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
            columns=tuple(_column(column) for column in version.get("additionalPrinterColumns") or ()),
        )
        for version in spec["versions"]
        if version.get("served")
    )


def _column(column: Mapping[str, Any]) -> Column:
    return Column(
        name=column["name"],
        type=column["type"],
        path=column["jsonPath"],
        priority=column.get("priority", 0),
        format=column.get("format", ""),
        description=column.get("description", ""),
    )


def core_versions() -> dict[str, Any]:
    """`GET /api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def _group(name: str, versions: Iterable[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _groups(resources: Iterable[Resource]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {"authorization.k8s.io": ["v1"]}
    for resource in resources:
        versions = groups.setdefault(resource.group, [])
        if resource.version not in versions:
            versions.append(resource.version)
    groups.pop("", None)
    return groups


def group_list(resources: Iterable[Resource]) -> dict[str, Any]:
    """`GET /apis`."""
    groups = [_group(name, versions) for name, versions in _groups(resources).items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(resources: Iterable[Resource], name: str) -> dict[str, Any] | None:
    """`GET /apis/<group>`; None when nobody serves it."""
    versions = _groups(resources).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions else None


def resource_list(resources: Iterable[Resource], group_name: str, version: str) -> dict[str, Any] | None:
    """`GET /api/v1` and `GET /apis/<group>/<version>`; None when nobody serves it."""
    listed: list[dict[str, Any]] = []
    for resource in resources:
        if (resource.group, resource.version) != (group_name, version):
            continue
        entry: dict[str, Any] = {
            "name": resource.plural,
            "singularName": resource.singular or resource.kind.lower(),
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(VERBS),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        listed.append(entry)
        if resource.has_status:
            listed.append(
                {
                    "name": f"{resource.plural}/status",
                    "singularName": "",
                    "namespaced": resource.namespaced,
                    "kind": resource.kind,
                    "verbs": ["get", "patch", "update"],
                }
            )
    if (group_name, version) == ("authorization.k8s.io", "v1"):
        listed.append(
            {
                "name": "selfsubjectaccessreviews",
                "singularName": "selfsubjectaccessreview",
                "namespaced": False,
                "kind": "SelfSubjectAccessReview",
                "verbs": ["create"],
            }
        )
    if not listed:
        return None
    group_version = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}
