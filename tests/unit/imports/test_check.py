"""`check` of imports: the CRD, the rights, and networks that lead into the cluster."""

from __future__ import annotations

from typing import cast

import pytest

from eurekube_sync.controller.look import LookWorld
from eurekube_sync.desired.imports import parsed_networks
from eurekube_sync.explain.import_check import RIGHTS, check_imports, overlaps
from eurekube_sync.explain.links import Check, Finding, Grade
from eurekube_sync.model import ports
from eurekube_sync.model.kubernetes import Endpoint, EndpointPort, EndpointSlice
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.explain.test_findings import Cluster
from tests.unit.worlds.build import DENIED, listed, nowhere
from tests.unit.worlds.imports import ImportWorld, import_object

CLUSTER_IPS: Source[tuple[str, ...]] = Complete(data=("10.96.0.0/16", "fd00:96::/112"))


def pods(*addresses: str, managed_by: str = "endpointslice-controller.k8s.io") -> EndpointSlice:
    """A slice of the cluster."""
    return EndpointSlice(
        namespace="default",
        name="kubernetes",
        service="kubernetes",
        address_type="IPv4",
        ports=(EndpointPort(name="https", port=6443),),
        endpoints=tuple(Endpoint(address=address) for address in addresses),
        managed_by=managed_by,
    )


def found(*networks: str, slices: tuple[EndpointSlice, ...] = ()) -> list[str]:
    findings = overlaps(parsed_networks(networks), CLUSTER_IPS, listed(slices))
    return [f"{finding.grade} {finding.text}" for finding in findings]


def checked(there: ImportWorld, cluster: Cluster) -> list[Finding]:
    seen = LookWorld(world=there.world, details=cast(ports.Details, cluster))
    return list(check_imports(seen, there.settings, schema={"type": "object"}))


def test_networks_of_the_data_centre_alone_are_fine() -> None:
    """Slices of imports are in them, and host names are in none."""
    slices = (
        pods("10.0.0.1", "host.example.com"),
        pods("10.20.0.1", managed_by="import.eurekube.io"),
    )
    assert found("10.20.0.0/16", "fd00:20::/64", slices=slices) == [
        "ok no address of the cluster is seen in 2 import networks"
    ]


@pytest.mark.parametrize("network", ["10.0.0.0/8", "10.96.7.0/24", "fd00:96::/64"])
def test_a_network_must_not_have_cluster_ips(network: str) -> None:
    (finding,) = found(network)
    assert finding.startswith(f"failed import network {network} overlaps")


def test_a_network_must_not_have_an_address_of_a_slice() -> None:
    """Such as the API server's, or a pod's. The first is named."""
    slices = (pods("10.20.0.1", "10.20.0.2"), replace(pods("10.20.0.3"), name="pods"))
    assert found("10.20.0.0/16", "10.30.0.0/16", slices=slices) == [
        "failed import network 10.20.0.0/16 has 10.20.0.1 of EndpointSlice default/kubernetes "
        "(and 1 more)"
    ]


def test_what_could_not_be_looked_at_is_a_warning() -> None:
    """Before Kubernetes 1.33 the API does not tell the networks of ClusterIPs."""
    unserved = Unknown(cause=Cause.UNUSABLE, message="404")
    networks = parsed_networks(["10.20.0.0/16"])
    findings = list(overlaps(networks, unserved, nowhere(DENIED)))
    assert [finding.grade for finding in findings] == [Grade.WARNING, Grade.WARNING, Grade.OK]
    partly = replace(listed([pods("10.0.0.1")]), by_namespace={"a": DENIED, "b": DENIED})
    findings = list(overlaps(networks, CLUSTER_IPS, partly))
    assert [finding.grade for finding in findings] == [Grade.WARNING, Grade.OK]


def test_the_crd_and_each_right_are_checked() -> None:
    there, cluster = ImportWorld(import_object()), Cluster()
    findings = checked(there, cluster)
    assert [(finding.check, finding.grade) for finding in findings] == [
        (Check.CRD, Grade.OK),
        (Check.RIGHTS, Grade.OK),
        (Check.IMPORT_NETWORKS, Grade.OK),
    ]
    assert "eurekaimports.eurekube.io is of this version" in findings[0].text
    cluster.denied = {(need.verb, need.right.resource, "") for need in RIGHTS}
    missing = [finding for finding in checked(there, cluster) if finding.check is Check.RIGHTS]
    assert len(missing) == len(RIGHTS)
    assert {finding.grade for finding in missing} == {Grade.FAILED}


def test_without_networks_nothing_of_imports_is_checked() -> None:
    assert checked(ImportWorld(import_object(), networks=()), Cluster()) == []
