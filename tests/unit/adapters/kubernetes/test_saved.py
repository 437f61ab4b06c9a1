"""Files instead of a cluster: their objects are listed, and kinds that they lack are unknown."""

from __future__ import annotations

import random
from typing import Any

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.saved import (
    KeptAnswers,
    SavedConnection,
    lists_of,
    namespaces_of,
)
from eurekube_sync.model.sources import Cause, Complete, Listed, Unknown
from tests.unit.adapters.kubernetes.world import SYNCERS, World


def thing(kind: str, namespace: str, name: str, **more: Any) -> dict[str, Any]:
    """An object in the form that kubectl writes."""
    metadata = {"namespace": namespace, "name": name} if namespace else {"name": name}
    ours = dict.fromkeys(("EurekaSyncer", "EurekaImport"), "eurekube.io/v1")
    version = {"EndpointSlice": "discovery.k8s.io/v1", **ours}.get(kind, "v1")
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
    connection = SavedConnection(
        lists_of(objects), missing=": add what kubectl get {plural} -A -o json writes"
    )
    return KubernetesCluster(connection, clock=SystemClock(), random=random.Random())


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
    assert namespaces_of(SERVICES) == frozenset({"shop", "ship"})


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


def test_imports_of_the_files_are_listed() -> None:
    """As syncers; without any they are unknown."""
    found = cluster(*SERVICES, thing("EurekaImport", "shop", "review", spec={"app": "review"}))
    (import_,) = found.imports.list_imports(["shop"]).of("shop").data  # type: ignore[union-attr]
    assert (import_.name, import_.spec) == ("review", {"app": "review"})
    without = cluster(*SERVICES).imports
    assert "has any EurekaImport" in unknown(without.list_imports(["shop"]).of("shop"))
    told = unknown(without.import_crd_live())
    assert "has the CustomResourceDefinition eurekaimports.eurekube.io" in told


def test_a_single_read_before_a_write_is_not_kept() -> None:
    """The plan is not made from it."""
    world = World()
    kept = KeptAnswers(world.connection, world.clock)
    client = KubernetesCluster(kept, clock=world.clock, random=random.Random())
    made = world.make_syncer()
    client.list_syncers(["shop"])
    client.imports.list_imports(["shop"])
    world.patch(f"{SYNCERS}/rating", {"metadata": {"labels": {"a": "b"}}})
    client.add_finalizer(made)
    assert [(saved.path.rsplit("/", 1)[1], saved.status) for saved in kept.answers()] == [
        ("eurekasyncers", 200),
        ("eurekaimports", 404),
    ]


def test_a_kind_of_another_group_is_another_kind() -> None:
    """Knative has Services too, and an older API version has other fields."""
    knative = thing("Service", "shop", "b") | {"apiVersion": "serving.knative.dev/v1"}
    assert "has any Service" in unknown(cluster(knative).list_services(None).of("shop"))
    assert names(cluster(knative, *SERVICES).list_services(None), "shop") == ["web"]
    older = thing("EndpointSlice", "shop", "c") | {"apiVersion": "discovery.k8s.io/v1beta1"}
    assert "has any EndpointSlice" in unknown(cluster(older).list_slices(["shop"]).of("shop"))


def test_files_without_namespaced_objects_name_no_namespace() -> None:
    """A scope of no namespaces would have no syncers, and no unknown source."""
    assert namespaces_of([thing("Namespace", "", "shop")]) is None


def test_the_cluster_is_known_where_its_namespace_was_saved() -> None:
    """The UID of kube-system identifies the cluster, as with the API."""
    found = cluster(thing("Namespace", "", "kube-system"))
    assert found.identity() == Complete(data="uid-kube-system")
    assert found.namespace_exists("kube-system") == Complete(data=True)
