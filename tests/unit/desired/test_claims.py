"""Claims: what a pass makes of syncers, Services and slices."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from eurekube_sync.desired.claims import (
    Claim,
    Deleting,
    Kept,
    Leaving,
    NotServed,
    Right,
    Rival,
    Serving,
    Taken,
)
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Cancel, Renew
from eurekube_sync.model.kubernetes import (
    Endpoint,
    EndpointPort,
    EndpointSlice,
    Pod,
    Service,
    ServicePort,
    SyncerObject,
    SyncerRef,
)
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Listed
from eurekube_sync.model.struct import replace
from eurekube_sync.plan.make import make_plan
from tests.unit.worlds.build import (
    DENIED,
    NAMING,
    NS,
    OWNERSHIP,
    REF,
    TERMINATING,
    UP,
    desired,
    endpoint,
    instance,
    key,
    nowhere,
    observed,
    piece,
    service,
    stored,
    syncer,
    view,
)

TWO_PODS = (piece(endpoint(1), endpoint(2)),)


def claim(
    spec: dict[str, Any] | None = None,
    services: tuple[Service, ...] = (service(),),
    slices: tuple[EndpointSlice, ...] = TWO_PODS,
    **rest: Any,
) -> Claim:
    """The claim of the only syncer."""
    return desired([syncer(**(spec or {}), **rest)], services, slices).claims[REF]


def standing(found: Claim) -> dict[str, str]:
    """The wanted instances of a claim that serves, as `address:port` and status."""
    assert isinstance(found, Serving), found
    return {
        f"{w.instance.ip_addr}:{w.instance.port.number}": w.instance.status.value
        for w in found.wanted.values()
    }


def reason(found: Claim) -> str:
    """Why a syncer is not served."""
    assert isinstance(found, NotServed), found
    return found.reason


def test_two_ready_pods_are_two_instances() -> None:
    """The smallest syncer: app and VIP come from the selector, and the ports from the Service."""
    found = claim()
    assert standing(found) == {"10.0.0.1:8080": "UP", "10.0.0.2:8080": "UP"}
    assert isinstance(found, Serving)
    assert (found.apps, found.vip_address, found.warnings) == (("RATING",), "rating", ())
    assert found.wanted[key(1)].why == "pod rating-1 is ready"


def test_a_rival_at_an_endpoint_that_is_not_wanted_changes_nothing() -> None:
    """The endpoint of another syncer, or one that leaves."""
    found = claim()
    assert isinstance(found, Serving)
    assert found.with_rivals({key(9): None}) == found


@pytest.mark.parametrize(
    ("found", "default", "cancel", "keep"),
    [
        (endpoint(), "UP", "UP", "UP"),
        (endpoint(ready=False), "DOWN", "gone", "DOWN"),
        (endpoint(ready=False, serving=True), "DOWN", "gone", "DOWN"),
        (endpoint(ready=False, serving=True, terminating=True), "terminates", "terminates", "UP"),
        (
            endpoint(ready=False, serving=False, terminating=True),
            "terminates",
            "terminates",
            "terminates",
        ),
    ],
)
def test_an_endpoint_is_up_down_or_leaves(
    found: Endpoint, default: str, cancel: str, keep: str
) -> None:
    """Each condition is tried with the defaults, with notReady: Cancel, and with terminating:
    KeepWhileServing."""
    specs: tuple[dict[str, Any], ...] = (
        {},
        {"notReady": "Cancel"},
        {"terminating": "KeepWhileServing"},
    )
    for spec, expected in zip(specs, (default, cancel, keep), strict=True):
        result = claim(spec, slices=(piece(found),))
        assert isinstance(result, Serving)
        if expected in ("UP", "DOWN"):
            assert standing(result) == {"10.0.0.1:8080": expected}
        else:
            assert (result.wanted, result.of(Leaving)[key()].terminating) == (
                {},
                expected == "terminates",
            )


def test_rating_headless_and_metrics_are_two_instances_for_two_pods() -> None:
    """Three Services have the same pods. Each pod gets one instance, never on the metrics port.
    Without a port called http, one has to be named."""
    services = (
        service("rating"),
        service("rating-headless", cluster_ips=("None",)),
        service("rating-metrics", ServicePort(name="metrics", port=9090)),
    )
    slices = (
        *TWO_PODS,
        piece(endpoint(1), endpoint(2), service="rating-headless"),
        piece(endpoint(1), endpoint(2), service="rating-metrics", port=9090, port_name="metrics"),
    )
    for spec in ({"port": "http"}, {}):
        assert standing(claim(spec, services, slices)) == {
            "10.0.0.1:8080": "UP",
            "10.0.0.2:8080": "UP",
        }
    api = tuple(
        replace(one, ports=(EndpointPort(name="api", port=8080),))
        if one.service != "rating-metrics"
        else one
        for one in slices
    )
    named = [
        service(name, ServicePort(name="api", port=80)) for name in ("rating", "rating-headless")
    ]
    assert reason(claim({}, (*named, services[2]), api)) == "AmbiguousService"


def test_one_pod_in_two_apps_is_ambiguous() -> None:
    """Without an app name each Service is an app, and a pod can be in only one."""
    services = (service("a"), service("b"))
    slices = (piece(endpoint(1), service="a"), piece(endpoint(1), service="b"))
    spec = {"selector": {"matchLabels": {"app": "rating"}}}
    assert reason(claim(spec, services, slices)) == "AmbiguousService"
    assert standing(claim({**spec, "appName": "rating"}, services, slices)) == {
        "10.0.0.1:8080": "UP"
    }


def test_services_of_different_pods_may_be_different_apps() -> None:
    """Each app has the name of its Service."""
    services = (service("a"), service("b"))
    slices = (piece(endpoint(1), service="a"), piece(endpoint(2), service="b"))
    found = claim({"selector": {"matchLabels": {"app": "rating"}}}, services, slices)
    assert isinstance(found, Serving)
    assert (found.apps, found.vip_address) == (("A", "B"), "a"), (
        "the first gives the VIP that is shown"
    )
    assert set(found.wanted) == {key(1, app="a"), key(2, app="b")}


DUAL = service(ip_families=("IPv6", "IPv4"), cluster_ips=("fd00::a", "10.96.0.1"))
DUAL_SLICES = (piece(endpoint(1)), piece(endpoint(1, address="fd00::1"), family="IPv6", name="v6"))


@pytest.mark.parametrize(
    ("spec", "of", "expected"),
    [
        ({}, DUAL, {"fd00::1:8080": "UP"}),
        ({"addressFamily": "IPv4"}, DUAL, {"10.0.0.1:8080": "UP"}),
        ({}, service(ip_families=()), {"10.0.0.1:8080": "UP"}),
        ({"addressFamily": "IPv6"}, service(ip_families=()), {"fd00::1:8080": "UP"}),
        ({"mode": "service"}, DUAL, {"fd00::a:80": "UP"}),
        ({"mode": "service", "addressFamily": "IPv4"}, DUAL, {"10.96.0.1:80": "UP"}),
    ],
)
def test_one_family_of_a_dual_stack_service_is_registered(
    spec: dict[str, Any], of: Service, expected: dict[str, str]
) -> None:
    """It is the requested family, otherwise the Service's first one, otherwise IPv4."""
    assert standing(claim(spec, (of,), DUAL_SLICES)) == expected


def test_services_of_different_families_share_one_or_are_not_served() -> None:
    """A Service of another family is not one without endpoints. Otherwise its instances would be
    removed."""
    single = service("rating-b", ip_families=("IPv4",))
    slices = (*DUAL_SLICES, piece(endpoint(2), service="rating-b"))
    assert standing(claim({}, (DUAL, single), slices)) == {
        "10.0.0.1:8080": "UP",
        "10.0.0.2:8080": "UP",
    }
    other = service("rating-c", ip_families=("IPv6",))
    assert reason(claim({}, (single, other), slices)) == "NoAddress"
    assert standing(claim({"addressFamily": "IPv4"}, (single, other), slices)) == {
        "10.0.0.2:8080": "UP"
    }


def test_the_cluster_address_is_taken_of_any_type_when_it_is_asked_for() -> None:
    """`ClusterIP` names an address here, not a type."""
    balanced = service(type="LoadBalancer")
    asked = {"mode": "service", "service": {"address": "ClusterIP"}}
    assert standing(claim(asked, (balanced,), TWO_PODS)) == {"10.96.0.1:80": "UP"}


def test_an_address_family_that_no_service_has_is_not_served() -> None:
    """This is a mistake, and not an empty Service."""
    assert reason(claim({"addressFamily": "IPv6"})) == "NoAddress"
    assert reason(claim({"addressFamily": "IPv6", "mode": "service"})) == "NoAddress"


def test_a_family_that_no_service_has_is_named() -> None:
    """The message names the field with the wrong family. Without that field, it says which one to
    set."""
    asked = claim({"addressFamily": "IPv6"})
    assert isinstance(asked, NotServed)
    assert (
        asked.message == "no Service has an IPv6 address (rating: IPv4): correct spec.addressFamily"
    )


def test_a_service_is_one_instance_at_its_cluster_ip() -> None:
    """It is UP while one endpoint is ready, on the Service's own port."""
    assert standing(claim({"mode": "service"})) == {"10.96.0.1:80": "UP"}
    down = (piece(endpoint(1, ready=False)),)
    assert standing(claim({"mode": "service"}, slices=down)) == {"10.96.0.1:80": "DOWN"}
    found = claim({"mode": "service", "notReady": "Cancel"}, slices=(piece(),))
    assert isinstance(found, Serving)
    assert [leaving.why for leaving in found.of(Leaving).values()] == [
        "Service rating has no ready endpoint"
    ]
    assert found.warnings == ("a ClusterIP is rarely reachable from outside the cluster",)


def test_a_headless_service_beside_another_adds_no_second_address() -> None:
    """`rating-headless` has no address. Alone it cannot be served."""
    headless = service("rating-headless", cluster_ips=("None",))
    slices = (*TWO_PODS, piece(endpoint(1), service="rating-headless"))
    assert standing(claim({"mode": "service"}, (service(), headless), slices)) == {
        "10.96.0.1:80": "UP"
    }
    assert reason(claim({"mode": "service"}, (headless,))) == "NoAddress"


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (service(cluster_ips=()), "NoAddress"),
        (service(cluster_ips=("",)), "NoAddress"),
    ],
)
def test_a_service_without_a_usable_address_is_not_served(of: Service, expected: str) -> None:
    """It may be waiting for its address."""
    assert reason(claim({"mode": "service"}, (of,))) == expected


def test_services_that_give_a_pod_different_ports_are_ambiguous_in_service_mode_too() -> None:
    """The metrics Service is no second address of the app."""
    named = service("rating", ServicePort(name="api", port=80))
    services = (named, service("rating-metrics", ServicePort(name="metrics", port=9090)))
    slices = (
        piece(endpoint(1), port_name="api"),
        piece(endpoint(1), service="rating-metrics", port=9090, port_name="metrics"),
    )
    assert reason(claim({"mode": "service"}, services, slices)) == "AmbiguousService"


def test_the_syncer_of_a_service_without_any_slice_is_not_served() -> None:
    """A Service without pods has an empty slice. One without any slice was deleted with its slices
    while both were listed."""
    assert reason(claim(None, (service(),), ())) == "NoEndpointSlices"
    assert isinstance(claim(None, (service(),), (piece(),)), Serving)


@pytest.mark.parametrize(
    ("spec", "services", "expected"),
    [
        ({}, (), "NoMatchingService"),
        ({}, (service(labels={"app": "other"}),), "NoMatchingService"),
        ({"port": "grpc"}, (service(),), "NoSuchPort"),
        ({"limit": -1}, (service(),), "InvalidSpec"),
        ({"selector": {}}, (service(),), "InvalidSpec"),
        ({"selector": {"service": "x_"}, "appName": None}, (service("x_"),), "InvalidName"),
    ],
)
def test_a_syncer_that_cannot_be_served_says_why(
    spec: dict[str, Any], services: tuple[Service, ...], expected: str
) -> None:
    """Its reason is in its condition. The syncer is not Unknown."""
    found = claim(spec, services)
    assert reason(found) == expected
    assert isinstance(found, NotServed)
    assert found.source is None


def test_a_broken_syncer_blocks_no_other() -> None:
    """Each syncer has a claim of its own."""
    claims = desired([syncer("broken", port="grpc"), syncer()], [service()], TWO_PODS).claims
    assert reason(claims[SyncerRef(NS, "broken")]) == "NoSuchPort"
    assert len(standing(claims[REF])) == 2


@pytest.mark.parametrize("deleted", [None, 1.0])
@pytest.mark.parametrize("failed", ["services", "slices"])
def test_living_and_deleted_syncers_are_not_served_while_a_source_cannot_be_read(
    failed: str, deleted: float | None
) -> None:
    """Nothing is known of their endpoints, so nothing is removed."""
    sources: dict[str, Any] = {"services": [service()], "slices": TWO_PODS, failed: nowhere(DENIED)}
    found = desired([syncer(deleted=deleted)], **sources).claims[REF]
    assert isinstance(found, NotServed)
    assert (found.reason, found.message, found.source) == (
        Reason.SOURCE_UNKNOWN,
        DENIED.message,
        DENIED,
    )


def test_syncers_of_an_unknown_namespace_make_no_claims() -> None:
    """They were not listed. The plan renews their instances."""
    syncers: Listed[SyncerObject] = Listed(
        by_namespace={NS: Complete(data=(syncer(),)), "other": DENIED}, elsewhere=Complete(data=())
    )
    assert set(desired(syncers, [service()], TWO_PODS).claims) == {REF}


def test_a_deleted_syncer_claims_nothing_and_names_what_it_may_have_written() -> None:
    """It names every id of its endpoints, wanted or leaving."""
    slices = (piece(endpoint(1), endpoint(2, terminating=True, ready=False)),)
    found = claim(slices=slices, deleted=1.0)
    assert isinstance(found, Deleting)
    assert found.keys == {key(1), key(2)}


def test_a_deleted_syncer_that_cannot_be_served_names_nothing() -> None:
    """Only the instances that Eureka lists with its mark are known."""
    found = claim(services=(), deleted=1.0)
    assert isinstance(found, Deleting)
    assert found.keys == frozenset()


def test_deletions_are_not_followed_while_the_crd_is_being_deleted() -> None:
    """Every syncer is being deleted then. None is served until the CRD is known to stay."""
    found = desired([syncer(deleted=1)], [service()], TWO_PODS, crd_live=TERMINATING).claims[REF]
    assert isinstance(found, NotServed)
    assert (found.reason, found.source) == (Reason.CRD_TERMINATING, TERMINATING)


def test_a_missing_syncer_leaves_no_orphans_while_the_crd_is_being_deleted() -> None:
    """A missing syncer proves nothing then, so its instances are renewed."""
    claims = desired(
        [syncer("other", deleted=1)], [service()], [piece(endpoint())], crd_live=TERMINATING
    )
    (action,) = make_plan(claims, observed(stored(instance()))).actions
    assert action.why == "its syncers could not be listed"


def test_of_two_syncers_that_claim_a_pod_the_older_holds_it() -> None:
    """The younger syncer learns who has it, in any order of the list. Syncers of one age compare by
    name."""
    older, younger = syncer("z", created=1), syncer("a", created=2)
    for order in itertools.permutations([older, younger]):
        found = desired(order, [service()], [piece(endpoint(1))])
        assert found.wanted_by == {key(): older.ref}
        losing = found.claims[younger.ref]
        assert isinstance(losing, Serving)
        assert (losing.wanted, losing.rivals) == ({}, {key(): Rival(older.ref, Right.AGE)})
    twins = desired([syncer("b"), syncer("a")], [service()], [piece(endpoint(1))])
    assert twins.wanted_by == {key(): SyncerRef(NS, "a")}


def test_the_wanted_instance_of_a_key_comes_from_its_holder() -> None:
    """A key without a holder has no wanted instance."""
    found = desired([syncer()], [service()], TWO_PODS)
    wanted = found.wanted(key(1))
    assert wanted is not None
    assert wanted.instance.status is UP
    assert found.wanted(key(9)) is None


def test_a_claim_that_is_not_served_wants_nothing() -> None:
    """This is defence in depth, because only a claim that serves wants an instance."""
    found = desired([syncer()], [], [])
    assert replace(found, wanted_by={key(): REF}).wanted(key()) is None


def test_a_new_pod_that_takes_over_an_address_outweighs_the_one_that_leaves() -> None:
    """Address, port and id are the same. The instance stays, with the new pod's mark."""
    slices = (piece(endpoint(1, terminating=True, ready=False), endpoint(1, pod="rating-9")),)
    found = claim(slices=slices)
    assert standing(found) == {"10.0.0.1:8080": "UP"}
    assert isinstance(found, Serving)
    assert found.of(Leaving) == {}


def test_two_pods_at_one_address_are_one_instance() -> None:
    """Two pods on the host's network are behind one Service. The ready one wins, then the first by
    name."""
    slices = (piece(endpoint(1, pod="b"), endpoint(1, pod="a"), endpoint(1, pod="c", ready=False)),)
    found = claim(slices=slices)
    assert isinstance(found, Serving)
    assert found.wanted[key()].why == "pod a is ready"


LABEL: dict[str, Any] = {"metadataFrom": [{"key": "version", "podLabel": "version"}]}
NODE_PORTS = (
    service("rating", ServicePort(name="http", port=80, node_port=30080), type="NodePort"),
)


def with_sources(
    spec: dict[str, Any], services: tuple[Service, ...] = (service(),), **sources: Any
) -> Claim:
    """The claim of the only syncer, after Pods or Nodes were read."""
    deleted = sources.pop("deleted", None)
    seen = replace(view([syncer(deleted=deleted, **spec)], services, TWO_PODS), **sources)
    return claim_all(seen, NAMING, Scope()).claims[REF]


def labelled(*numbers: int) -> Listed[Any]:
    """The pods `rating-<number>` with labels."""
    pods = tuple(
        Pod(name=f"rating-{n}", uid=f"uid-of-rating-{n}", labels={"version": str(n)})
        for n in numbers
    )
    return Listed(by_namespace={NS: Complete(data=pods)}, elsewhere=DENIED)


def test_labels_of_pods_become_metadata() -> None:
    """Each instance has the labels of its own pod."""
    found = with_sources(LABEL, pods=labelled(1, 2))
    assert isinstance(found, Serving)
    assert [w.instance.metadata["version"] for w in found.wanted.values()] == ["1", "2"]


@pytest.mark.parametrize("pods", [None, nowhere(DENIED)])
def test_while_pods_cannot_be_read_only_syncers_that_need_them_are_not_served(
    pods: Listed[Any] | None,
) -> None:
    """An error never removes metadata."""
    found = with_sources(LABEL, pods=pods)
    assert isinstance(found, NotServed)
    assert found.reason is Reason.SOURCE_UNKNOWN
    assert found.source is not None
    assert len(standing(with_sources({}, pods=pods))) == 2


def test_a_pod_that_its_slice_knows_and_the_list_of_pods_does_not_is_left_as_it_is() -> None:
    """The two lists are from different moments. The pod is neither registered without its metadata
    nor removed. It keeps its address from a younger syncer."""
    found = with_sources(LABEL, pods=labelled(1))
    assert isinstance(found, Serving)
    assert (set(found.wanted), set(found.of(Kept))) == ({key(1)}, {key(2)})
    seen = replace(
        view([syncer(**LABEL), syncer("young", created=2000)], [service()], TWO_PODS),
        pods=labelled(1),
    )
    both = claim_all(seen, NAMING, Scope())
    young = both.claims[SyncerRef(NS, "young")]
    assert isinstance(young, Serving)
    assert (
        both.wanted_by,
        {at: one.rival for at, one in young.of(Taken).items()},
        young.wanted[key(2)].rival,
    ) == (
        {key(1): REF, key(2): young.syncer.ref},
        {key(1): Rival(REF, Right.AGE)},
        Rival(REF, Right.AGE),
    )


@pytest.mark.parametrize(("deleted", "cls"), [(None, NotServed), (1.0, NotServed)])
def test_node_ports_are_not_served_while_nodes_cannot_be_read(
    deleted: float | None, cls: type[Claim]
) -> None:
    """This holds for living and deleted syncers, because their ids are not known."""
    found = with_sources({"mode": "service"}, NODE_PORTS, nodes=DENIED, deleted=deleted)
    assert isinstance(found, cls)
    assert isinstance(found, NotServed)
    assert (found.reason, found.message, found.source) == (
        Reason.SOURCE_UNKNOWN,
        DENIED.message,
        DENIED,
    )


def test_a_deletion_does_not_wait_for_pods() -> None:
    """The ids of its endpoints hold no metadata."""
    found = with_sources(LABEL, pods=nowhere(DENIED), deleted=1.0)
    assert isinstance(found, Deleting)
    assert found.keys == {key(1), key(2)}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"port": "grpc"}, "port 'grpc'"),
        ({"port": "http", "securePort": "https"}, "port 'https'"),
        ({"securePort": "https"}, "port 'https'"),
    ],
)
def test_a_port_that_no_service_has_is_named_in_service_mode_too(
    spec: dict[str, Any], message: str
) -> None:
    """This holds for the plain port and for the secure one."""
    found = claim({"mode": "service", **spec})
    assert isinstance(found, NotServed)
    assert found.reason == "NoSuchPort"
    assert message in found.message


def test_two_ports_of_two_services_are_no_address_of_both() -> None:
    """In mode service both ports must belong to one Service."""
    services = (service("rating"), service("rating-tls", ServicePort(name="https", port=443)))
    found = claim({"mode": "service", "port": "http", "securePort": "https"}, services, slices=())
    assert isinstance(found, NotServed)
    assert "no Service has both ports" in found.message


def test_a_service_stays_up_while_a_terminating_pod_serves_when_it_is_asked_for() -> None:
    """Mode pod has the same rule."""
    slices = (piece(endpoint(ready=False, serving=True, terminating=True)),)
    spec: dict[str, Any] = {"mode": "service", "terminating": "KeepWhileServing"}
    assert standing(claim(spec, slices=slices)) == {"10.96.0.1:80": "UP"}
    fixed = {**spec, "service": {"hostname": "a.b"}}
    assert standing(claim(fixed, slices=slices)) == {"a.b:80": "UP"}
    assert standing(claim({"mode": "service"}, slices=slices)) == {"10.96.0.1:80": "DOWN"}


def test_addresses_without_a_known_family_are_those_of_the_first() -> None:
    """A Service that names no family still has addresses of one."""
    bare = service(ip_families=(), type="LoadBalancer")
    mixed = replace(bare, load_balancer=("203.0.113.1", "2001:db8::1"))
    assert standing(claim({"mode": "service"}, (mixed,))) == {"203.0.113.1:80": "UP"}


def test_node_ports_that_were_not_allocated_are_a_mistake() -> None:
    """A load balancer may have none."""
    spec: dict[str, Any] = {"mode": "service", "service": {"address": "NodePort"}}
    found = with_sources(spec, (service(type="LoadBalancer"),), nodes=Complete(data=()))
    assert isinstance(found, NotServed)
    assert (found.reason, "has no node port" in found.message) == ("NoAddress", True)


def test_a_pod_that_lacks_the_secure_port_is_not_removed_for_it() -> None:
    """A new Service may have no slices yet. Registered instances are renewed, and none is added."""
    tls = service("rating-tls", ServicePort(name="https", port=443))
    spec = {"port": "http", "securePort": "https"}
    leaving = piece(endpoint(1), endpoint(2, terminating=True, ready=False))
    found = claim(spec, (service(), tls), (leaving,))
    assert isinstance(found, Serving)
    assert (found.wanted, set(found.of(Kept)), set(found.of(Leaving))) == ({}, {key(1)}, {key(2)})
    assert found.of(Kept)[key(1)].why == "pod rating-1 has no port 'https' (yet)"


def test_a_pod_that_only_the_secure_port_shows_is_not_removed() -> None:
    """The plain Service's slices may also be late. A registered instance is renewed if its pod or
    its bare address is found."""
    tls = service("rating-tls", ServicePort(name="https", port=443))
    both = (piece(endpoint(1)), piece(*(endpoint(n) for n in (1, 2)), endpoint(3, pod=None), endpoint(4, ready=False,
            terminating=True), service="rating-tls", port=8443, port_name="https"))  # fmt: skip
    claims = desired([syncer(port="http", securePort="https")], [service(), tls], both)
    bare = stored(instance(3), metadata=OWNERSHIP.marked({}, REF, None))
    plan = make_plan(
        claims, observed(stored(instance(2)), bare, stored(instance(4)), stored(instance(5)))
    )
    assert [(action.key, action.why) for action in plan.of(Renew)] == [
        (key(2), "pod rating-2 has no port 'http' (yet)"),
        (key(3), "endpoint 10.0.0.3 has no port 'http' (yet)"),
    ]
    assert [action.key for action in plan.of(Cancel)] == [key(4), key(5)]


def test_a_syncer_claims_each_port_that_is_on() -> None:
    """The secure port counts beside the plain one. Otherwise a caller would find the same socket
    twice."""
    ports = (
        ServicePort(name="http", port=80, target=8080),
        ServicePort(name="https", port=443, target=8443),
    )
    there = (EndpointPort(name="http", port=8080), EndpointPort(name="https", port=8443))
    slices = [replace(piece(endpoint()), ports=there)]
    both: dict[str, Any] = {"port": "http", "securePort": "https"}
    alone: dict[str, Any] = {"securePort": "https"}
    for first, second in ((both, alone), (alone, both)):
        syncers = [syncer("z", created=1, **first), syncer("a", created=2, **second)]
        found = desired(syncers, [service("rating", *ports)], slices)
        losing = found.claims[SyncerRef(NS, "a")]
        assert isinstance(losing, Serving)
        assert set(found.wanted_by.values()) == {syncers[0].ref}
        assert set(losing.rivals.values()) == {Rival(syncers[0].ref, Right.AGE)}


def test_a_service_of_a_type_that_nobody_knows_is_left_alone() -> None:
    """A later Kubernetes may have more types."""
    found = claim({"mode": "service"}, (service(type="Quantum"),))
    assert isinstance(found, NotServed)
    assert (found.reason, "of type Quantum" in found.message) == ("NoAddress", True)
