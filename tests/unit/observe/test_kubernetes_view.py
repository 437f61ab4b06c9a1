"""The view of Kubernetes: what a pass reads, and what it does not need to read."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.kubernetes import ClusterView, CrdAge, SyncerRef
from eurekube_sync.model.sources import Cause, Complete, Listed, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.kubernetes import read_cluster, unread
from tests.unit.worlds.build import (
    CLUSTER,
    DENIED,
    NS,
    REF,
    TERMINATING,
    endpoint,
    nowhere,
    piece,
    service,
    syncer,
    view,
)
from tests.unit.worlds.clock import Clock
from tests.unit.worlds.fakes import Cluster, Wire


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(Wire(), Clock())


CLUSTER_IS = Complete(data=CLUSTER)


def read(cluster: Cluster, *namespaces: str) -> ClusterView:
    """Read the cluster once."""
    return read_cluster(
        cluster, cluster.identity(), Scope(namespaces=frozenset(namespaces) or None)
    )


def test_services_and_slices_are_spared_while_no_syncer_needs_them(cluster: Cluster) -> None:
    """Without syncers no other list is read. A list that was not read is Unknown, not empty."""
    found = read(cluster)
    assert cluster.wire.verbs() == ["identity", "list_syncers"]
    assert (found.services.of(NS), found.slices.of(NS)) == (
        found.services.elsewhere,
        found.slices.elsewhere,
    )
    assert isinstance(found.slices.elsewhere, Unknown)
    assert unread(found) == ()


def test_the_crd_is_asked_for_only_when_a_syncer_is_being_deleted(cluster: Cluster) -> None:
    """Only then must a person's deletion be distinguished from that of the CRD."""
    cluster.apply(syncer())
    read(cluster)
    assert "crd_live" not in cluster.wire.calls
    cluster.apply(syncer("gone", deleted=1, finalizers=("x",)))
    cluster.crd = TERMINATING
    assert read(cluster).crd_live == TERMINATING


def test_a_deletion_older_than_the_crd_is_not_followed(cluster: Cluster) -> None:
    """A list from the time of the old CRD may be read beside the new CRD. A deletion in the same
    second counts as a person's."""
    cluster.apply(syncer(), syncer("gone", deleted=100, finalizers=("x",)))
    cluster.crd = Complete(data=CrdAge(101.0, 0.0))
    live = read(cluster).crd_live
    assert isinstance(live, Unknown)
    assert live.cause is Cause.CRD_TERMINATING
    assert f"the deletion of syncer {NS}/gone began before" in live.message
    cluster.crd = Complete(
        data=CrdAge(100.0, 3700.0)
    )  # our clock is an hour ahead, and deletions have the server's
    assert read(cluster).crd_live == Complete(data=True)


def test_a_syncer_missing_from_a_list_older_than_the_crd_leaves_no_orphan(cluster: Cluster) -> None:
    """Syncers of another class may be the only sign of the list's age."""
    cluster.apply(syncer("gone", deleted=100, finalizers=("x",), syncerClass="another"))
    cluster.crd = Complete(data=CrdAge(101.0, 0.0))
    live = read_cluster(cluster, CLUSTER_IS, Scope(), frozenset({REF})).crd_live
    assert isinstance(live, Unknown)


def test_the_crd_is_asked_for_when_a_syncer_that_eureka_names_is_missing(cluster: Cluster) -> None:
    """If a person removes the finalizers, the syncers may vanish before their CRD. A namespace that
    cannot be read is no reason to ask."""
    cluster.apply(syncer())
    cluster.crd = TERMINATING
    gone = SyncerRef(NS, "gone")
    scope = Scope(namespaces=frozenset({NS}))
    assert read_cluster(
        cluster, CLUSTER_IS, scope, frozenset({REF, SyncerRef("elsewhere", "x")})
    ).crd_live == Complete(data=True)
    assert read_cluster(cluster, CLUSTER_IS, scope, frozenset({gone})).crd_live == TERMINATING
    cluster.unknown["syncers", NS] = DENIED
    assert read_cluster(cluster, CLUSTER_IS, scope, frozenset({gone})).crd_live == Complete(
        data=True
    )


@pytest.mark.parametrize(("namespaces", "expected"), [(20, True), (21, False)])
def test_few_namespaces_are_listed_one_by_one_and_many_in_one_walk(
    cluster: Cluster, namespaces: int, expected: bool
) -> None:
    """Up to 20 namespaces with syncers are listed one by one. For more, one list of all is
    cheaper."""
    cluster.apply(*(syncer(namespace=f"ns-{number}") for number in range(namespaces)))
    assert isinstance(read(cluster).services.elsewhere, Unknown) is expected


def test_a_scope_of_namespaces_is_never_left(cluster: Cluster) -> None:
    """More may not be allowed, however many namespaces there are."""
    chosen = [f"ns-{number}" for number in range(25)]
    cluster.apply(*(syncer(namespace=namespace) for namespace in [*chosen, "another"]))
    found = read(cluster, *chosen)
    assert "another" not in found.syncers.by_namespace
    assert set(found.slices.by_namespace) == set(chosen)


def test_a_namespace_that_cannot_be_read_leaves_the_others_complete(cluster: Cluster) -> None:
    """Only the namespace of the denied list is Unknown."""
    cluster.apply(syncer(), syncer(namespace="other"), service(), piece(endpoint()))
    cluster.unknown["slices", "other"] = DENIED
    found = read(cluster)
    assert found.slices.of("other") == DENIED
    assert found.slices.of(NS) == Complete(data=(piece(endpoint()),))


def test_each_source_that_could_not_be_read_is_named() -> None:
    """The list has what a person has to fix, with the namespace if only one failed."""
    broken = ClusterView(
        identity=DENIED,
        syncers=Listed(
            by_namespace={"a": DENIED, "b": Complete(data=())}, elsewhere=Complete(data=())
        ),
        services=nowhere(DENIED),
        slices=nowhere(Unknown(cause=Cause.NOT_READ, message="")),
        crd_live=TERMINATING,
    )
    assert [failed.name for failed in unread(broken)] == [
        "Kubernetes API",
        "EurekaSyncers of a",
        "Services",
        "CRD",
    ]
    assert unread(view()) == ()


@pytest.mark.parametrize(
    "field", [name for name in ClusterView.__struct_fields__ if name != "crd_installed"]
)
def test_no_source_that_could_not_be_read_is_forgotten(field: str) -> None:
    """Whatever a pass reads, a failure of it is a failure of the pass."""
    of_the_cluster = field in ("identity", "nodes", "crd_live")
    unreadable: dict[str, Any] = {field: DENIED if of_the_cluster else nowhere(DENIED)}
    broken = replace(view(), **unreadable)
    assert [failed.source for failed in unread(broken)] == [DENIED]


def test_the_identity_is_that_of_the_cluster(cluster: Cluster) -> None:
    """It is the UID of kube-system."""
    assert read(cluster).identity == Complete(data=CLUSTER)
