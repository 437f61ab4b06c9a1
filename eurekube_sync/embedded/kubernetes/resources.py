"""Which resources the embedded Kubernetes API serves, and the discovery documents about them.

The built-in table is fixed; a CustomResourceDefinition adds its own rows (`from_definition`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind that can be stored, and how its writes are treated."""

    group: str = ""
    version: str = "v1"
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
    columns: tuple[Mapping[str, Any], ...] = ()
    """`additionalPrinterColumns` of a custom resource."""

    @property
    def api_version(self) -> str:
        """`v1`, or `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> tuple[str, str]:
        """What the store files its objects under: the version does not matter."""
        return self.group, self.plural


CRD_GROUP = "apiextensions.k8s.io"

NAMESPACES = Resource(plural="namespaces", kind="Namespace", namespaced=False, short_names=("ns",), has_status=True)
SERVICES = Resource(plural="services", kind="Service", short_names=("svc",), categories=("all",), has_status=True)
PODS = Resource(plural="pods", kind="Pod", short_names=("po",), categories=("all",), has_status=True, generation=True)
NODES = Resource(plural="nodes", kind="Node", namespaced=False, short_names=("no",), has_status=True)
ENDPOINTS = Resource(plural="endpoints", kind="Endpoints", short_names=("ep",))
EVENTS = Resource(plural="events", kind="Event", short_names=("ev",))
SERVICE_ACCOUNTS = Resource(plural="serviceaccounts", kind="ServiceAccount", short_names=("sa",))
CONFIG_MAPS = Resource(plural="configmaps", kind="ConfigMap", short_names=("cm",))
ROLES = tuple(
    Resource(
        group="rbac.authorization.k8s.io",
        plural=f"{kind.lower()}s",
        kind=kind,
        namespaced=not kind.startswith("Cluster"),
    )
    for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
)
"""They are stored, and grant nothing: everything is allowed."""
CRON_JOBS = Resource(
    group="batch", plural="cronjobs", kind="CronJob", short_names=("cj",), has_status=True, generation=True
)
"""They are stored, and nobody runs them."""
NETWORK_POLICIES = Resource(
    group="networking.k8s.io", plural="networkpolicies", kind="NetworkPolicy", short_names=("netpol",), generation=True
)
"""They are stored, and stop nobody."""
SLICES = Resource(group="discovery.k8s.io", plural="endpointslices", kind="EndpointSlice", generation=True)
LEASES = Resource(group="coordination.k8s.io", plural="leases", kind="Lease")
DEFINITIONS = Resource(
    group=CRD_GROUP,
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
    short_names=("crd", "crds"),
    has_status=True,
    generation=True,
)

BUILT_IN = (
    *(NAMESPACES, SERVICES, PODS, NODES, ENDPOINTS, EVENTS, SERVICE_ACCOUNTS, CONFIG_MAPS),
    *(*ROLES, CRON_JOBS, NETWORK_POLICIES, SLICES, LEASES, DEFINITIONS),
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
            columns=tuple(version.get("additionalPrinterColumns") or ()),
        )
        for version in spec["versions"]
        if version.get("served")
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


def resource_list(resources: Iterable[Resource], group_name: str, version: str) -> dict[str, Any] | None:
    """`GET /api/v1` and `GET /apis/<group>/<version>`; None when nobody serves it."""
    listed: list[dict[str, Any]] = []
    for resource in resources:
        if (resource.group, resource.version) != (group_name, version):
            continue
        singular = resource.singular or resource.kind.lower()
        entry = _entry(resource.plural, singular, resource.kind, VERBS, namespaced=resource.namespaced)
        listed.append({**entry, "shortNames": resource.short_names, "categories": resource.categories})
        if resource.has_status:
            verbs = ("get", "patch", "update")
            listed.append(_entry(f"{resource.plural}/status", "", resource.kind, verbs, namespaced=resource.namespaced))
    if (group_name, version) == ("authorization.k8s.io", "v1"):
        kind = "SelfSubjectAccessReview"
        listed.append(_entry(f"{kind.lower()}s", kind.lower(), kind, ("create",), namespaced=False))
    if not listed:
        return None
    group_version = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}


def _entry(name: str, singular: str, kind: str, verbs: Iterable[str], *, namespaced: bool) -> dict[str, Any]:
    return {"name": name, "singularName": singular, "namespaced": namespaced, "kind": kind, "verbs": list(verbs)}
