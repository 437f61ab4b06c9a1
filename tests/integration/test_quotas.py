"""Kubernetes' own quota bounds what a tenant can register, as docs/security.md shows it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from tests.integration.hand_made import make_syncer, slices_of, syncers_of
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
SMALL = {
    "count/eurekasyncers.eurekube.io": "2",
    "count/eurekaimports.eurekube.io": "1",
    "count/services": "1",
    "count/endpointslices.discovery.k8s.io": "1",
    "pods": "1",
}


def quota_of_the_page() -> dict[str, Any]:
    """The manifest in the page."""
    found = re.search(
        r"```yaml\n(apiVersion: v1\nkind: ResourceQuota\n.*?)```", PAGE.read_text(), re.DOTALL
    )
    assert found is not None
    quota: dict[str, Any] = yaml.safe_load(found[1])
    return quota


def import_named(name: str) -> dict[str, Any]:
    """An import of the app of that name."""
    return {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaImport",
        "metadata": {"name": name},
        "spec": {},
    }


def test_a_resource_quota_limits_what_a_tenant_can_register(
    crd: None, import_crd: None, kubernetes_world: KubernetesWorld
) -> None:
    """Each resource of the page's quota, with small numbers, is refused above its number."""
    world = kubernetes_world
    quota = quota_of_the_page()
    assert quota["spec"]["hard"].keys() == SMALL.keys()
    namespace = "quotas"
    world.create_namespace(namespace)
    quota["metadata"]["namespace"] = namespace
    quota["spec"]["hard"] = SMALL
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    world.request("POST", path, quota)

    def counted() -> bool:
        status = world.request("GET", f"{path}/eurekube-sync").get("status", {})
        used: dict[str, str] = status.get("used", {})
        return used.keys() == SMALL.keys()

    # The quota controller learns of a new CRD within a minute. Until then the API server refuses
    # each syncer.
    wait_until(counted, "the quota is not in force")

    make_syncer(world, namespace, "first", "rating")
    make_syncer(world, namespace, "second", "rating")
    with pytest.raises(requests.HTTPError) as refused:
        make_syncer(world, namespace, "third", "rating")
    assert refused.value.response.status_code == 403
    assert len(world.request("GET", syncers_of(namespace))["items"]) == 2

    imports = f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekaimports"
    world.request("POST", imports, import_named("first"))
    with pytest.raises(requests.HTTPError, match="403"):
        world.request("POST", imports, import_named("second"))

    world.create_service(namespace, "rating", selector={}, ports={"http": 8080})
    with pytest.raises(requests.HTTPError, match="403"):
        world.create_service(namespace, "another", selector={}, ports={"http": 8080})

    def slice_named(name: str) -> dict[str, Any]:
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "rating"}},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080}],
            "endpoints": [{"addresses": ["10.77.0.1"]}],
        }

    world.request("POST", slices_of(namespace), slice_named("first"))
    with pytest.raises(requests.HTTPError, match="403"):
        world.request("POST", slices_of(namespace), slice_named("second"))
