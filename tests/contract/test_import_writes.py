"""The writes of imports over HTTP, on the embedded server and the real one."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import ClientConnection, ConnectionSettings
from eurekube_sync.adapters.kubernetes.details import KubernetesDetails
from eurekube_sync.manifests.crd import FILE_NAMES, object_schema
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import ClusterConflict, ClusterExists
from eurekube_sync.model.imports import (
    IMPORT,
    MANAGER,
    ImportObject,
    ImportPort,
    ImportRef,
    ImportService,
    ImportSlice,
    ImportStatus,
)
from eurekube_sync.model.kubernetes import (
    Condition,
    ConditionStatus,
    EndpointSlice,
    EventRecord,
    Service,
)
from eurekube_sync.model.sources import Complete, Listed
from eurekube_sync.model.struct import replace
from tests.contract.client_subject import Subject
from tests.contract.kubernetes_subject import eventually

FINALIZER = "eurekube.io/cleanup"
HTTP = ImportPort(name="http", port=80)
HTTPS = ImportPort(name="https", port=443)
NO_OWNER = "b5b2b1d8-6c5e-4a6e-9f0e-2f7f5a0f4e11"
START = 1_800_000_000
_numbers = itertools.count(1)


@pytest.fixture
def namespace(subject: Subject) -> str:
    name = f"imports-{next(_numbers)}"
    assert subject.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})[0] == 201
    return name


@pytest.fixture
def cluster(subject: Subject) -> KubernetesCluster:
    return subject.cluster()


@pytest.fixture
def owner(subject: Subject, namespace: str, cluster: KubernetesCluster) -> ImportObject:
    """An import that was just made."""
    body = {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaImport",
        "metadata": {"name": "review", "labels": {"team": "one"}},
        "spec": {"app": "review"},
    }
    path = f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekaimports"
    status, made = subject.call("POST", path, body)
    assert status == 201, made
    (found,) = of(cluster.imports.list_imports([namespace]), namespace)
    assert isinstance(found, ImportObject)
    return found


def of(listed: Listed[Any], namespace: str) -> tuple[Any, ...]:
    source = listed.of(namespace)
    assert isinstance(source, Complete), source
    return tuple(source.data)


def service_of(cluster: KubernetesCluster, namespace: str) -> Service:
    (found,) = of(cluster.list_services([namespace]), namespace)
    assert isinstance(found, Service)
    return found


def slice_of(cluster: KubernetesCluster, namespace: str) -> EndpointSlice:
    (found,) = of(cluster.list_slices([namespace]), namespace)
    assert isinstance(found, EndpointSlice)
    return found


def wanted(owner: ImportObject, *addresses: str, port: int = 8080) -> ImportSlice:
    return ImportSlice(
        namespace=owner.namespace,
        name="review-3f393-0",
        service="review",
        address_type="IPv4",
        ports=(ImportPort(name="http", port=port),),
        endpoints=addresses,
        owner_uid=owner.uid,
    )


def as_listed(slice_: ImportSlice, listed: EndpointSlice) -> ImportSlice:
    """The slice to write in place of one that was listed."""
    return replace(slice_, uid=listed.uid, resource_version=listed.resource_version)


def test_imports_are_listed(
    cluster: KubernetesCluster, namespace: str, owner: ImportObject
) -> None:
    """Cluster-wide and by namespace, with what a person wrote."""
    assert (owner.name, owner.spec, owner.labels) == ("review", {"app": "review"}, {"team": "one"})
    assert (owner.generation, owner.finalizers, owner.deleted, owner.status) == (1, (), None, None)
    assert of(cluster.imports.list_imports(None), namespace) == (owner,)
    assert isinstance(cluster.imports.import_crd_live(), Complete)


def test_the_networks_of_services_are_read(subject: Subject) -> None:
    """Of both families, as the cluster was set up; an import into one would lead nowhere."""
    settings = ConnectionSettings(kubeconfig=subject.kubeconfig())
    clock = SystemClock()
    details = KubernetesDetails(
        ClientConnection(settings, {}),
        clock=clock,
        random=random.Random(1),
        limit=TimeLimit(clock),
    )
    assert details.service_networks() == Complete(data=("10.96.0.0/16", "fd00:10:96::/112"))
    for kind in FILE_NAMES:
        assert details.schema(kind) == Complete(data=object_schema(kind))


class TestService:
    def test_it_is_made_without_a_selector(
        self, cluster: KubernetesCluster, namespace: str, owner: ImportObject
    ) -> None:
        """SingleStack, with its ports and the import as its controller; what the server made of it
        is returned, and listed."""
        made = cluster.imports.create_service(
            ImportService(owner=owner, name="review", ports=(HTTP, HTTPS))
        )
        assert service_of(cluster, namespace) == made
        assert (made.name, made.selects, made.headless, made.type) == (
            "review",
            False,
            False,
            "ClusterIP",
        )
        assert made.ip_families == ("IPv4",)
        assert len(made.cluster_ips) == 1
        assert [(port.name, port.port, port.target) for port in made.ports] == [
            ("http", 80, None),
            ("https", 443, None),
        ]
        assert (made.controller, made.owner_uid) == (IMPORT, owner.uid)
        assert made.uid

    def test_it_may_be_headless(
        self, cluster: KubernetesCluster, namespace: str, owner: ImportObject
    ) -> None:
        """Then it has no address."""
        service = ImportService(owner=owner, name="review", ports=(HTTP,), headless=True)
        assert cluster.imports.create_service(service).headless
        assert service_of(cluster, namespace).headless

    def test_one_that_exists_is_left_alone(
        self, subject: Subject, cluster: KubernetesCluster, namespace: str, owner: ImportObject
    ) -> None:
        """A conflict; the other's ports stay."""
        spec = {"selector": {"app": "a"}, "ports": [{"name": "web", "port": 81}]}
        path = f"/api/v1/namespaces/{namespace}/services"
        subject.call("POST", path, {"metadata": {"name": "review"}, "spec": spec})
        before = service_of(cluster, namespace)
        with pytest.raises(ClusterExists, match=r"Service \S+/review exists already"):
            cluster.imports.create_service(ImportService(owner=owner, name="review", ports=(HTTP,)))
        assert service_of(cluster, namespace) == before

    def test_only_its_ports_are_changed(
        self, subject: Subject, cluster: KubernetesCluster, namespace: str, owner: ImportObject
    ) -> None:
        """A person's labels stay; ports of an older version are a conflict."""
        imports = cluster.imports
        service = ImportService(owner=owner, name="review", ports=(HTTP,))
        made = imports.create_service(service)
        path = f"/api/v1/namespaces/{namespace}/services/review"
        subject.call("PATCH", path, {"metadata": {"labels": {"a": "b"}}})
        with pytest.raises(ClusterConflict, match="changed or is gone"):
            imports.write_service_ports(service, resource_version=made.resource_version)
        now = service_of(cluster, namespace)
        imports.write_service_ports(
            replace(service, ports=(HTTPS,)), resource_version=now.resource_version
        )
        changed = service_of(cluster, namespace)
        assert [(port.name, port.port, port.target) for port in changed.ports] == [
            ("https", 443, None)
        ]
        assert replace(changed, resource_version="", ports=()) == replace(
            now, resource_version="", ports=()
        )
        assert changed.labels["a"] == "b"

    def test_ports_of_a_service_that_is_gone_are_a_conflict(
        self, cluster: KubernetesCluster, owner: ImportObject
    ) -> None:
        """The next pass makes it again."""
        with pytest.raises(ClusterConflict, match="changed or is gone"):
            cluster.imports.write_service_ports(
                ImportService(owner=owner, name="review", ports=(HTTP,)), resource_version="1"
            )


class TestSlice:
    def test_it_is_made(
        self, subject: Subject, cluster: KubernetesCluster, namespace: str, owner: ImportObject
    ) -> None:
        """With our labels, and a reference without blockOwnerDeletion."""
        cluster.imports.create_slice(owner, wanted(owner, "192.0.2.1", "192.0.2.2"))
        listed = slice_of(cluster, namespace)
        assert (listed.service, listed.managed_by, listed.owner_uid) == (
            "review",
            MANAGER,
            owner.uid,
        )
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices/review-3f393-0"
        stored = subject.call("GET", path)[1]
        assert stored["metadata"]["labels"]["eurekube.io/import"] == "review"
        assert stored["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "eurekube.io/v1",
                "kind": "EurekaImport",
                "name": "review",
                "uid": owner.uid,
                "controller": True,
            }
        ]
        assert stored["endpoints"] == [
            {"addresses": ["192.0.2.1"], "conditions": {"ready": True}},
            {"addresses": ["192.0.2.2"], "conditions": {"ready": True}},
        ]
        assert stored["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]

    def test_making_it_twice_is_a_conflict(
        self, cluster: KubernetesCluster, namespace: str, owner: ImportObject
    ) -> None:
        """And makes no second one."""
        cluster.imports.create_slice(owner, wanted(owner, "192.0.2.1"))
        before = slice_of(cluster, namespace)
        with pytest.raises(ClusterExists, match="exists already"):
            cluster.imports.create_slice(owner, wanted(owner))
        assert slice_of(cluster, namespace) == before

    def test_it_is_replaced(
        self, subject: Subject, cluster: KubernetesCluster, namespace: str, owner: ImportObject
    ) -> None:
        """Endpoints, ports and the labels that lead to them; an equal one is no change."""
        imports = cluster.imports
        imports.create_slice(owner, wanted(owner, "192.0.2.1"))
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices/review-3f393-0"
        theirs = {"metadata": {"labels": {"a": "b", "kubernetes.io/service-name": "other"}}}
        subject.call("PATCH", path, theirs)
        target = wanted(owner, "192.0.2.7", port=9090)
        imports.write_slice(as_listed(target, slice_of(cluster, namespace)))
        changed = slice_of(cluster, namespace)
        assert (changed.service, [endpoint.address for endpoint in changed.endpoints]) == (
            "review",
            ["192.0.2.7"],
        )
        assert changed.ports[0].port == 9090
        assert subject.call("GET", path)[1]["metadata"]["labels"]["a"] == "b"
        imports.write_slice(as_listed(target, changed))
        assert slice_of(cluster, namespace) == changed

    def test_the_last_endpoint_may_leave(
        self, cluster: KubernetesCluster, namespace: str, owner: ImportObject
    ) -> None:
        """The slice stays, empty."""
        cluster.imports.create_slice(owner, wanted(owner, "192.0.2.1"))
        cluster.imports.write_slice(as_listed(wanted(owner), slice_of(cluster, namespace)))
        assert slice_of(cluster, namespace).endpoints == ()

    @pytest.mark.parametrize("field", ["uid", "resource_version"])
    def test_another_one_is_not_changed(
        self, cluster: KubernetesCluster, namespace: str, owner: ImportObject, field: str
    ) -> None:
        """Neither of another version nor of another UID: nothing is written or deleted."""
        imports = cluster.imports
        imports.create_slice(owner, wanted(owner, "192.0.2.1"))
        listed = slice_of(cluster, namespace)
        stale = replace(as_listed(wanted(owner), listed), uid=NO_OWNER)
        if field == "resource_version":
            stale = replace(stale, uid=listed.uid, resource_version="1")
        with pytest.raises(ClusterConflict):
            imports.write_slice(stale)
        with pytest.raises(ClusterConflict):
            imports.delete_slice(stale)
        assert slice_of(cluster, namespace) == listed

    def test_it_is_deleted_once(
        self, cluster: KubernetesCluster, namespace: str, owner: ImportObject
    ) -> None:
        """One that is gone is deleted; writing it is a conflict."""
        imports = cluster.imports
        imports.create_slice(owner, wanted(owner, "192.0.2.1"))
        listed = as_listed(wanted(owner), slice_of(cluster, namespace))
        imports.delete_slice(listed)
        imports.delete_slice(listed)
        assert of(cluster.list_slices([namespace]), namespace) == ()
        with pytest.raises(ClusterConflict, match="changed or is gone"):
            imports.write_slice(listed)


class TestImport:
    def test_a_finalizer_is_put_on_and_taken_off(
        self, cluster: KubernetesCluster, namespace: str, owner: ImportObject
    ) -> None:
        """As of a syncer."""
        imports = cluster.imports
        assert imports.add_import_finalizer(owner).finalizers == (FINALIZER,)
        (listed,) = of(imports.list_imports([namespace]), namespace)
        assert listed.finalizers == (FINALIZER,)
        imports.remove_import_finalizer(listed)
        (listed,) = of(imports.list_imports([namespace]), namespace)
        assert listed.finalizers == ()

    def test_the_status_comes_back_as_it_was_written(
        self, cluster: KubernetesCluster, namespace: str, owner: ImportObject
    ) -> None:
        """Each field; reasons of before are gone, and an equal status is no change."""
        imports = cluster.imports
        ready = Condition(
            type="Ready",
            status=ConditionStatus.TRUE,
            reason="InSync",
            message="2 endpoints",
            observed_generation=1,
            last_transition=START,
        )
        full = ImportStatus(
            observed_generation=1,
            conditions=(ready,),
            ready="2/2",
            app="REVIEW",
            service="review",
            instances=5,
            left_out={"NotUp": 2, "OtherZone": 1},
            errors=("one",),
            unconfirmed_removal="abc",
            unconfirmed_since=START,
            eureka_unknown_since=START,
        )
        plain = ImportStatus(observed_generation=1, conditions=(ready,), left_out={"NotUp": 1})
        for status in (full, plain):
            imports.write_import_status(owner, status)
            (listed,) = of(imports.list_imports([namespace]), namespace)
            assert listed.status == status
        imports.write_import_status(listed, plain)
        assert of(imports.list_imports([namespace]), namespace) == (listed,)

    def test_nothing_is_made_in_a_namespace_that_ends(
        self, subject: Subject, cluster: KubernetesCluster, namespace: str, owner: ImportObject
    ) -> None:
        """That is no lack of rights."""
        finalized = cluster.imports.add_import_finalizer(owner)
        subject.call("DELETE", f"/api/v1/namespaces/{namespace}")
        with pytest.raises(ClusterConflict, match="its namespace is deleted"):
            cluster.imports.create_service(ImportService(owner=owner, name="review", ports=(HTTP,)))
        with pytest.raises(ClusterConflict, match="its namespace is deleted"):
            cluster.imports.create_slice(owner, wanted(owner, "192.0.2.1"))
        cluster.imports.remove_import_finalizer(finalized)

    def test_its_service_and_slices_go_with_it(
        self, subject: Subject, cluster: KubernetesCluster, namespace: str, owner: ImportObject
    ) -> None:
        """The collector deletes them, when the finalizer is gone."""
        imports = cluster.imports
        finalized = imports.add_import_finalizer(owner)
        imports.create_service(ImportService(owner=owner, name="review", ports=(HTTP,)))
        imports.create_slice(owner, wanted(owner, "192.0.2.1"))
        path = f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekaimports/review"
        subject.call("DELETE", path)
        (deleted,) = of(imports.list_imports([namespace]), namespace)
        assert deleted.deleted is not None
        assert slice_of(cluster, namespace).endpoints
        imports.remove_import_finalizer(finalized)
        eventually(lambda: of(cluster.list_services([namespace]), namespace) == ())
        eventually(lambda: of(cluster.list_slices([namespace]), namespace) == ())

    def test_an_event_names_the_kind(
        self, subject: Subject, cluster: KubernetesCluster, namespace: str, owner: ImportObject
    ) -> None:
        """`kubectl describe eimp` finds it."""
        event = EventRecord(
            syncer=ImportRef(namespace, "review"),
            kind=IMPORT,
            uid=owner.uid,
            warning=True,
            reason="ServiceExists",
            message="the Service review exists",
            key="Conflict",
        )
        cluster.record_event(event, at=START)
        items = subject.call("GET", f"/api/v1/namespaces/{namespace}/events")[1]["items"]
        assert [(item["involvedObject"]["kind"], item["reason"]) for item in items] == [
            ("EurekaImport", "ServiceExists")
        ]
