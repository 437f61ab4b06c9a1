"""Files instead of a cluster: their objects are listed, and kinds that they lack are unknown."""

from __future__ import annotations

import random
from typing import Any

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.dumped import DumpedConnection
from eurekube_sync.model.sources import Cause, Complete, Listed, Unknown


def thing(kind: str, namespace: str, name: str, **more: Any) -> dict[str, Any]:
    """An object in the form that kubectl writes."""
    metadata = {"namespace": namespace, "name": name} if namespace else {"name": name}
    version = {"EndpointSlice": "discovery.k8s.io/v1", "EurekaSyncer": "eurekube.io/v1"}.get(
        kind, "v1"
    )
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {**metadata, "uid": f"uid-{name}"},
        **more,
    }


SERVICES = [
    thing("Service", namespace, "web", spec={"ports": [{"port": 80}]})
    for namespace in ("shop", "ship")
]


def cluster(*objects: dict[str, Any]) -> KubernetesCluster:
    """A cluster port that reads these objects."""
    return KubernetesCluster(DumpedConnection(objects), clock=SystemClock(), random=random.Random())


def unknown(source: Any) -> str:
    """Return why the source is unknown."""
    assert isinstance(source, Unknown)
    assert source.cause is Cause.UNUSABLE
    return source.message


def names(listed: Listed[Any], namespace: str) -> list[str]:
    """Return the names that were listed in the namespace."""
    source = listed.of(namespace)
    assert isinstance(source, Complete)
    return [one.name for one in source.data]


def test_objects_of_the_files_are_listed() -> None:
    """The list is of the whole cluster, or of one namespace. Objects of other kinds are ignored."""
    found = cluster(*SERVICES, thing("Pod", "shop", "a"), thing("ConfigMap", "shop", "c"))
    assert names(found.list_services(None), "shop") == ["web"]
    assert names(found.list_services(["ship", "other"]), "ship") == ["web"]
    assert names(found.list_services(["ship", "other"]), "other") == []
    assert names(found.list_pods(["shop"]), "shop") == ["a"]
    assert DumpedConnection(SERVICES).namespaces == frozenset({"shop", "ship"})


def test_a_kind_that_no_file_has_is_unknown() -> None:
    """An empty list would let a plan remove instances."""
    found = cluster(*SERVICES)
    told = unknown(found.list_slices(["shop"]).of("shop"))
    assert (
        told
        == "no file of --from has any EndpointSlice: add what kubectl get endpointslices -A -o "
        "json writes"
    )
    assert "has any EurekaSyncer" in unknown(found.list_syncers(None).of("shop"))
    assert "has any Node" in unknown(found.list_nodes())
    assert "has the CustomResourceDefinition eurekasyncers.eurekube.io" in unknown(found.crd_live())
    assert "has the Namespace kube-system" in unknown(found.identity())
    assert "has the Namespace shop" in unknown(found.namespace_exists("shop"))


def test_a_kind_of_another_group_is_another_kind() -> None:
    """Knative has Services too, and an older API version has other fields."""
    knative = thing("Service", "shop", "b") | {"apiVersion": "serving.knative.dev/v1"}
    assert "has any Service" in unknown(cluster(knative).list_services(None).of("shop"))
    assert names(cluster(knative, *SERVICES).list_services(None), "shop") == ["web"]
    older = thing("EndpointSlice", "shop", "c") | {"apiVersion": "discovery.k8s.io/v1beta1"}
    assert "has any EndpointSlice" in unknown(cluster(older).list_slices(["shop"]).of("shop"))


def test_files_without_namespaced_objects_name_no_namespace() -> None:
    """A scope of no namespaces would have no syncers, and no unknown source."""
    assert DumpedConnection([thing("Namespace", "", "shop")]).namespaces is None


def test_the_cluster_is_known_where_its_namespace_was_saved() -> None:
    """The UID of kube-system identifies the cluster, as with the API."""
    found = cluster(thing("Namespace", "", "kube-system"))
    assert found.identity() == Complete(data="uid-kube-system")
    assert found.namespace_exists("kube-system") == Complete(data=True)
