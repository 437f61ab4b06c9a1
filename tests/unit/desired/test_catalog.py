"""The catalog: how the Services and slices of a namespace are found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from eurekube_sync.desired.catalog import Catalog, Catalogs, PodSocket, pods_by_socket
from eurekube_sync.desired.claims import Desired, NotServed
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.selector import Expression, Selector
from eurekube_sync.model.imports import IMPORT, MANAGER
from eurekube_sync.model.kubernetes import ClusterView, EndpointSlice, HostPort, PodHost
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Listed
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import (
    DENIED,
    NAMING,
    NS,
    REF,
    desired,
    endpoint,
    key,
    nowhere,
    piece,
    service,
    syncer,
    view,
)

WEB, DB, BARE = (
    service("web", labels={"app": "rating", "tier": "web"}),
    service("db", labels={"app": "rating"}),
    service("bare", labels={}),
)


def names(selector: Selector) -> list[str]:
    """The Services that the selector finds among three."""
    catalog = Catalog(Complete(data=(WEB, DB, BARE)), Complete(data=()))
    return [found.name for found in catalog.matching(selector)]


def test_services_are_found_by_label_by_name_or_by_expression_alone() -> None:
    """All matching Services are found, by any index, in the order of their names."""
    assert names(Selector(app="rating")) == ["db", "web"]
    assert names(Selector(match_labels={"app": "rating", "tier": "web"})) == ["web"]
    assert names(Selector(match_labels={"app": "other"})) == []
    assert names(Selector(service="bare")) == ["bare"]
    assert names(Selector(service="bare", app="rating")) == []
    assert names(Selector(service="missing")) == []
    assert names(Selector(match_expressions=(Expression(key="app", operator="DoesNotExist"),))) == [
        "bare"
    ]


def test_a_service_has_the_slices_that_carry_its_name() -> None:
    """They may be of every address family. A Service without slices is no error."""
    slices = (
        piece(service="web", name="a"),
        piece(service="web", name="b", family="IPv6"),
        piece(service="db"),
    )
    catalog = Catalog(Complete(data=(WEB, BARE)), Complete(data=slices))
    assert [found.name for found in catalog.slices_of(WEB)] == ["a", "b"]
    assert catalog.slices_of(BARE) == ()


def test_a_catalog_is_unknown_when_a_source_is() -> None:
    """Otherwise Services without slices would look empty."""
    assert Catalogs(view(services=nowhere(DENIED))).of(NS) == DENIED
    assert Catalogs(view(slices=nowhere(DENIED))).of(NS) == DENIED


def test_a_catalog_is_built_once_a_pass() -> None:
    """The second syncer of a namespace uses the index of the first."""
    catalogs = Catalogs(view(services=[WEB]))
    assert catalogs.of(NS) is catalogs.of(NS)


def test_the_pods_that_listen_at_an_address_and_port_prove_who_is_gone() -> None:
    """Only living pods of complete lists count, on ports with a number, for their own namespace."""
    slices: Listed[EndpointSlice] = Listed(
        by_namespace={
            "a": Complete(
                data=(
                    piece(endpoint(1), endpoint(2, terminating=True), endpoint(3, pod=None)),
                    piece(endpoint(1, pod="host-network")),
                    piece(endpoint(4), port=None),
                )
            ),
            "b": DENIED,
            "c": Complete(data=(piece(endpoint(1, pod="theirs")),)),
        },
        elsewhere=Complete(data=()),
    )
    services = [service(namespace=namespace) for namespace in ("a", "b", "c")]
    assert pods_by_socket(view(services=services, slices=slices)) == {
        ("a", "10.0.0.1", 8080): Complete(
            data=frozenset({"uid-of-rating-1", "uid-of-host-network"})
        ),
        ("c", "10.0.0.1", 8080): Complete(data=frozenset({"uid-of-theirs"})),
    }


def there(*slices: EndpointSlice, **of_the_service: Any) -> set[str]:
    """The pods at the first pod's socket that prove that another one is gone."""
    services = [service(**of_the_service), service("other", **of_the_service)]
    known = pods_by_socket(view(services=services, slices=[*slices])).get((NS, "10.0.0.1", 8080))
    return set(known.data) if known else set()


LOOPING = endpoint(1, pod="looping", ready=False)
"""A pod on its host's network that wants a port which another pod has, and is restarted for
ever."""
BOTH = {"uid-of-rating-1", "uid-of-looping"}


def test_only_a_ready_pod_proves_that_another_one_is_gone() -> None:
    """A pod that is not ready may only want the port. One that terminates may have had it before,
    also while it still serves."""
    assert there(piece(LOOPING)) == set()
    assert there(piece(endpoint(1, ready=False, serving=True, terminating=True))) == set()
    assert there(piece(endpoint(1, ready=False, terminating=True))) == set()
    assert there(piece(endpoint(1))) == {"uid-of-rating-1"}


def test_with_published_addresses_that_are_not_ready_only_a_serving_pod_proves_it() -> None:
    """There every endpoint is ready, and `serving` is the readiness of its pod."""
    assert there(piece(endpoint(1, serving=False)), publish_not_ready=True) == set()
    assert there(piece(endpoint(1)), publish_not_ready=True) == {"uid-of-rating-1"}


def test_a_pod_that_is_not_ready_is_not_proven_gone_where_a_slice_lists_it() -> None:
    """Whichever of the two slices that name the socket has the ready pod."""
    assert there(piece(endpoint(1), LOOPING)) == BOTH
    assert there(piece(LOOPING), piece(endpoint(1), service="other")) == BOTH
    assert there(piece(endpoint(1)), piece(LOOPING, service="other")) == BOTH
    assert there(piece(LOOPING), piece(LOOPING, service="other")) == set()


def at_node(pod: str = "rating-1", **fields: Any) -> PodHost:
    """Where a pod with the port 8080 is reached at its node, by default at 10.9.0.1:31080."""
    ports = {8080: HostPort(31080)}
    return replace(PodHost(uid=f"uid-of-{pod}", addresses=("10.9.0.1",), ports=ports), **fields)


def there_at_the_node(*hosts: PodHost, ready: bool = True) -> set[str]:
    """The pods at 10.9.0.1:31080 that prove that another one is gone."""
    slices = [piece(endpoint(1, ready=ready), endpoint(2, pod="other", ready=False))]
    known = replace(
        view(services=[service()], slices=slices),
        hosts=Listed(by_namespace={NS: Complete(data=hosts)}, elsewhere=DENIED),
    )
    found = pods_by_socket(known).get((NS, "10.9.0.1", 31080))
    return set(found.data) if found else set()


def test_a_ready_pod_at_a_host_port_proves_that_another_one_is_gone() -> None:
    """Callers reach it at each address of its node, or at the port's own one alone."""
    assert there_at_the_node(at_node()) == {"uid-of-rating-1"}
    assert there_at_the_node(at_node(addresses=("fd00::1", "10.9.0.1"))) == {"uid-of-rating-1"}
    own = {8080: HostPort(31080, "10.9.0.1")}
    assert there_at_the_node(at_node(ports=own, addresses=())) == {"uid-of-rating-1"}
    # A pod that is not ready, and waits for the port, is not proven gone.
    both = {"uid-of-rating-1", "uid-of-other"}
    assert there_at_the_node(at_node(), at_node("other")) == both


@pytest.mark.parametrize(
    "host",
    [
        at_node(ports={}),
        at_node(ports={8081: HostPort(31080)}),
        at_node(ports={8080: HostPort(31080, "10.9.0.2")}),
        at_node(addresses=()),
        at_node(host_network=True),
        at_node("listed-by-no-slice"),
    ],
)
def test_a_pod_that_callers_do_not_reach_at_a_host_port_proves_nothing_there(
    host: PodHost,
) -> None:
    """On the network of its node, it listens at its own port."""
    assert there_at_the_node(host) == set()


def test_without_the_list_of_pods_no_host_port_proves_anything() -> None:
    """A pod that is not ready proves nothing there either."""
    assert there_at_the_node(at_node(), ready=False) == set()
    known = view(services=[service()], slices=[piece(endpoint(1))])
    unread = replace(known, hosts=nowhere(DENIED))
    assert set(pods_by_socket(unread)) == {(NS, "10.0.0.1", 8080)}


def test_slices_whose_services_are_not_known_prove_nothing() -> None:
    """A Service may be of type ExternalName now, with slices from before."""
    assert pods_by_socket(view(services=nowhere(DENIED), slices=[piece(endpoint(1))])) == {}


def test_where_pods_listen_is_found_out_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is computed once for all addresses. A pass without removals does not need it."""
    walks: list[ClusterView] = []

    def counted(there: ClusterView) -> Mapping[PodSocket, Complete[frozenset[str]]]:
        walks.append(there)
        return pods_by_socket(there)

    monkeypatch.setattr("eurekube_sync.desired.resolve.pods_by_socket", counted)
    found = claim_all(view(services=[service()], slices=[piece(endpoint(1))]), NAMING, Scope())
    assert walks == []
    assert found.sockets().get((NS, "10.0.0.1", 8080)) == Complete(
        data=frozenset({"uid-of-rating-1"})
    )
    assert found.sockets().get((NS, "10.0.0.2", 8080)) is None
    assert len(walks) == 1
    assert Desired(claims={}, wanted_by={}, syncers=nowhere(DENIED)).sockets() == {}


def test_a_service_that_is_listed_twice_is_one() -> None:
    """It is matched once."""
    catalog = Catalog(Complete(data=(WEB, WEB)), Complete(data=()))
    assert catalog.matching(Selector(app="rating")) == (WEB,)
    assert catalog.matching(
        Selector(match_expressions=(Expression(key="app", operator="Exists"),))
    ) == (WEB,)


IMPORTED = replace(piece(endpoint(9, pod=None), name="review-3f393-0"), managed_by=MANAGER)


def test_what_an_import_brings_into_the_cluster_is_registered_by_no_syncer() -> None:
    """A slice of any installation's import beside the cluster's own, and a Service of an import in
    any mode: they would go back to Eureka, from where they came."""
    cluster = replace(piece(endpoint(1)), managed_by="endpointslice-controller.k8s.io")
    imported = replace(service("imported", ip_families=("IPv4",)), controller=IMPORT)
    mixed = desired([syncer()], [service()], [cluster, IMPORTED])
    assert mixed.wanted_by == {key(1): REF}
    for mode in ("pod", "service"):
        claims = desired([syncer(mode=mode)], [imported], [replace(IMPORTED, service="imported")])
        claim = claims.claims[REF]
        assert isinstance(claim, NotServed)
        assert claim.reason is Reason.NO_MATCHING_SERVICE


def test_a_service_of_another_controller_is_registered() -> None:
    """Only the kind EurekaImport makes a Service that of an import."""
    owned = replace(service(), controller="Operator")
    assert key(1) in desired([syncer()], [owned], [piece(endpoint(1))]).wanted_by


def test_services_beside_those_of_imports_count_as_unchanged() -> None:
    """Else every selector would be evaluated again in each pass."""
    imported = replace(service("imported"), controller=IMPORT)
    first = Catalogs(view(services=[WEB, imported]))
    first.of(NS)
    again = Catalogs(view(services=[WEB, imported]), first.services())
    again.of(NS)
    assert again.services()[NS] is first.services()[NS]


def test_a_slice_of_an_import_proves_no_pod_gone() -> None:
    """It names no pod that the cluster's controllers gave an address to."""
    selecting = service()
    assert selecting.selects
    forged = replace(IMPORTED, endpoints=(endpoint(9),))
    assert pods_by_socket(view(services=[selecting], slices=[forged])) == {}
