"""Endpoints of a Service: which count, on which port, and how duplicates merge."""

from __future__ import annotations

import itertools

import pytest

from eurekube_sync.desired.endpoints import (
    Backend,
    backends,
    choose_port,
    chosen_ports,
    one_per_port,
    outdated,
)
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import (
    SLICE_CONTROLLER,
    Endpoint,
    EndpointPort,
    EndpointSlice,
    Service,
    ServicePort,
)
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import NS, endpoint, piece, service

HTTP = ServicePort(name="http", port=80, target=8080)
METRICS = ServicePort(name="metrics", port=9090)
ADMIN = ServicePort(name="admin", port=8080, target="admin")
UNNAMED = ServicePort(name="", port=80)


@pytest.mark.parametrize(
    ("ports", "asked", "expected"),
    [
        ((METRICS,), None, METRICS),  # the only port
        ((METRICS, HTTP), None, HTTP),  # otherwise the one named http
        ((METRICS, HTTP), "metrics", METRICS),
        ((METRICS, HTTP), "grpc", None),
        ((METRICS, HTTP), 80, HTTP),  # the Service's own number
        ((METRICS, HTTP), 8080, HTTP),  # otherwise a target port that only one has
        ((ADMIN, HTTP), 8080, ADMIN),  # the Service's own number first
        ((METRICS, HTTP), 9091, None),
        ((UNNAMED,), None, UNNAMED),
    ],
)
def test_a_port_is_chosen_by_name_by_number_or_alone(
    ports: tuple[ServicePort, ...], asked: str | int | None, expected: ServicePort | None
) -> None:
    """A syncer gives a port's name, the Service's port or a unique target port. Without one, the
    only port or http is used."""
    assert choose_port(service("rating", *ports), asked) == expected


@pytest.mark.parametrize(
    ("asked", "expected"), [(None, None), ("http", None), (80, ServicePort(name="", port=80))]
)
def test_in_a_service_without_ports_a_number_means_itself(
    asked: str | int | None, expected: ServicePort | None
) -> None:
    """A headless Service may have no ports. Its slices then have none either, and its pods listen
    all the same."""
    bare = Service(namespace=NS, name="rating", labels={})
    assert choose_port(bare, asked) == expected
    if expected:
        slices = [replace(piece(endpoint()), ports=())]
        assert [found.port for found in backends(bare, expected, slices, family="IPv4")] == [80]


@pytest.mark.parametrize(
    ("ports", "asked"),
    [
        ((METRICS, ADMIN), None),
        ((HTTP, ServicePort(name="other", port=81, target=8080)), 8080),
        ((ServicePort(name="tcp", port=53), ServicePort(name="udp", port=53)), 53),
    ],
)
def test_a_port_that_could_be_several_is_refused(
    ports: tuple[ServicePort, ...], asked: int | None
) -> None:
    """The message names the ports that there are."""
    with pytest.raises(
        InvalidSyncer, match=rf"{ports[0].name} \({ports[0].port}\), {ports[1].name}"
    ) as caught:
        choose_port(service("rating", *ports), asked)
    assert caught.value.reason == "AmbiguousPort"


def test_an_ambiguous_port_names_only_those_that_fit() -> None:
    other = ServicePort(name="other", port=81, target=8080)
    with pytest.raises(
        InvalidSyncer, match=r"8080 fits the ports http \(80\), other \(81\): name one"
    ) as caught:
        choose_port(service("rating", HTTP, METRICS, other), 8080)
    assert METRICS.name not in str(caught.value)


def test_an_ambiguous_port_is_named_in_its_own_field() -> None:
    """`spec.port` does not name a secure port."""
    there = service("rating", HTTP, ServicePort(name="other", port=81, target=8080))
    with pytest.raises(InvalidSyncer, match=r"name one in spec\.securePort$"):
        chosen_ports([there], 8080, field="securePort")


def test_services_without_the_port_are_passed_over() -> None:
    """`rating-metrics` has no port `http`. That is no error while another Service has it."""
    rating, metrics = service("rating", HTTP), service("rating-metrics", METRICS)
    assert chosen_ports([metrics, rating], "http") == ((rating, HTTP),)


@pytest.mark.parametrize(("asked", "wanted"), [("grpc", "port 'grpc'"), (1, "port 1")])
def test_a_port_that_no_service_has_is_refused(asked: str | int, wanted: str) -> None:
    """The message names the ports of every Service."""
    with pytest.raises(InvalidSyncer) as caught:
        chosen_ports([service("b", UNNAMED), service("a", HTTP, METRICS)], asked)
    assert caught.value.reason == "NoSuchPort"
    there = "a has http (80), metrics (9090); b has unnamed (80)"
    assert (
        str(caught.value) == f"no Service has the {wanted}: {there}; name one of these in spec.port"
    )


def test_a_service_without_ports_is_named_among_those_with_other_ports() -> None:
    """A headless Service may have none."""
    with pytest.raises(InvalidSyncer, match=r"a has http \(80\); b has none; name one"):
        chosen_ports([service("a", HTTP), Service(namespace=NS, name="b", labels={})], "grpc")


def test_services_without_any_port_are_refused() -> None:
    """An instance would have no port."""
    bare = [Service(namespace=NS, name=name, labels={}) for name in ("rating", "a")]
    with pytest.raises(
        InvalidSyncer,
        match=r"Service rating has no ports: set spec\.port to the number of the port",
    ):
        chosen_ports(bare[:1], None)
    with pytest.raises(
        InvalidSyncer, match=r"Services a, rating have no ports, so none is named 'tls': set spec"
    ):
        chosen_ports(bare, "tls", field="securePort")


@pytest.mark.parametrize(
    ("found", "publish", "ready"),
    [
        (Endpoint(address="a", ready=True, serving=True), False, True),
        (Endpoint(address="a", ready=False, serving=False), False, False),
        (Endpoint(address="a", ready=False, serving=True, terminating=True), False, False),
        (Endpoint(address="a", ready=True, serving=False), True, False),  # published, not healthy
        (Endpoint(address="a", ready=True, serving=True), True, True),
        (Endpoint(address="a", ready=True, serving=True, terminating=True), True, False),
        (
            Endpoint(address="a", ready=False, serving=True),
            True,
            False,
        ),  # a mirrored slice has no `serving`
    ],
)
def test_health_is_ready_or_serving_where_all_are_published(
    found: Endpoint, publish: bool, ready: bool
) -> None:
    """With publishNotReadyAddresses every endpoint is ready. Then only `serving` shows the pod's
    health."""
    (backend,) = backends(service(publish_not_ready=publish), HTTP, [piece(found)], family=None)
    assert backend.ready is ready


def test_each_slice_has_its_own_number_for_a_named_port() -> None:
    """The number of a named target port may differ from pod to pod."""
    slices = [piece(endpoint(1), port=8080), piece(endpoint(2), port=8081)]
    assert [b.port for b in backends(service(), HTTP, slices, family="IPv4")] == [8080, 8081]


def test_a_pod_without_the_named_port_is_none_of_ours() -> None:
    """Its slice lacks the port, or has it without a number."""
    both = service("rating", HTTP, ServicePort(name="metrics", port=9090))
    slices = [
        piece(endpoint(1)),
        piece(endpoint(2), port_name="metrics"),
        piece(endpoint(3), port=None),
    ]
    assert [b.endpoint.address for b in backends(both, HTTP, slices, family="IPv4")] == ["10.0.0.1"]


def test_a_slice_for_ports_that_the_service_had_before_has_no_backend() -> None:
    """While a port is renamed, the controller writes the slices one after the other. `outdated` has
    those endpoints."""
    old = replace(piece(endpoint(2), port_name="web"), managed_by=SLICE_CONTROLLER)
    slices = [piece(endpoint(1)), old]
    assert [found.label for found in backends(service(), HTTP, slices, family="IPv4")] == [
        "pod rating-1"
    ]
    assert [found.address for found in outdated(service(), slices, "IPv4")] == ["10.0.0.2"]
    assert list(outdated(service(), slices, "IPv6")) == []
    assert list(outdated(replace(service(), selects=False), slices, "IPv4")) == []


def test_endpoints_without_the_port_in_any_slice_are_an_error_not_emptiness() -> None:
    """The slices may be older than the Service. No instance may be removed for that."""
    for port, name in ((HTTP, "http"), (UNNAMED, "80")):
        with pytest.raises(InvalidSyncer, match=f"of Service rating has the port {name}") as caught:
            backends(service(), port, [piece(endpoint(1), port_name="metrics")], family="IPv4")
        assert caught.value.reason == "NoSuchPort"


@pytest.mark.parametrize(
    "slices", [[], [piece()], [piece(port=None)], [piece(endpoint(1), family="IPv6")]]
)
def test_no_endpoints_of_the_family_is_empty(slices: list[EndpointSlice]) -> None:
    """A Service that matches and has no endpoints is empty, and its instances are removed."""
    assert backends(service(), HTTP, slices, family="IPv4") == ()


def test_one_family_of_a_dual_stack_service_counts() -> None:
    """A slice per family has the same pods. Without a given family they merge by pod."""
    slices = [piece(endpoint(1)), piece(endpoint(1, address="fd00::1"), family="IPv6")]
    for family, address in (("IPv4", "10.0.0.1"), ("IPv6", "fd00::1"), (None, "10.0.0.1")):
        (backend,) = backends(service(), HTTP, slices, family=family)
        assert backend.endpoint.address == address


COPIES = [
    endpoint(),
    endpoint(ready=False, serving=True),
    endpoint(ready=False),
    endpoint(ready=True, terminating=True),
    endpoint(ready=False, serving=True, terminating=True),
    endpoint(ready=False, serving=False, terminating=True),
]


@pytest.mark.parametrize(("better", "worse"), list(itertools.combinations(COPIES, 2)))
def test_of_two_copies_the_one_that_lives_and_is_ready_counts(
    better: Endpoint, worse: Endpoint
) -> None:
    """The one that does not terminate counts, then ready, then serving. The order of the slices
    does not matter."""
    for first, second in ((better, worse), (worse, better)):
        (merged,) = backends(service(), HTTP, [piece(first), piece(second)], family="IPv4")
        told, wanted = merged.endpoint, (better.terminating, better.ready, better.serving)
        assert (told.terminating, merged.ready, told.serving) == wanted


def test_bare_addresses_merge_by_address() -> None:
    """Mirrored Endpoints have no pods."""
    slices = [piece(endpoint(1, pod=None), endpoint(2, pod=None)), piece(endpoint(1, pod=None))]
    found = backends(service(), HTTP, slices, family="IPv4")
    assert [backend.label for backend in found] == ["endpoint 10.0.0.1", "endpoint 10.0.0.2"]


def backend(name: str, *, port: int = 8080, number: int = 1) -> Backend:
    """The one pod behind a Service."""
    return Backend(services=(service(name),), endpoint=endpoint(number), port=port, ready=True)


def test_the_same_pod_behind_several_services_on_one_port_is_one() -> None:
    """`rating` and `rating-headless` give two instances for two pods, not four."""
    found = [
        backend(name, number=number) for name in ("rating-headless", "rating") for number in (1, 2)
    ]
    merged = one_per_port(found).values()
    assert [([s.name for s in b.services], b.endpoint.address) for b in merged] == [
        (["rating", "rating-headless"], "10.0.0.1"),
        (["rating", "rating-headless"], "10.0.0.2"),
    ]


@pytest.mark.parametrize(("better", "worse"), list(itertools.combinations(COPIES, 2)))
def test_a_pod_behind_two_services_counts_as_the_one_that_lives(
    better: Endpoint, worse: Endpoint
) -> None:
    """Their slices are written one after the other, so the pod may still terminate, or be unready,
    in one of them."""
    for first, second in ((better, worse), (worse, better)):
        found = [
            replace(backend(name), endpoint=copy, ready=copy.ready)
            for name, copy in (("rating", first), ("rating-headless", second))
        ]
        (merged,) = one_per_port(found).values()
        told, wanted = merged.endpoint, (better.terminating, better.ready, better.serving)
        assert (told.terminating, merged.ready, told.serving) == wanted


def test_a_pod_behind_services_with_different_ports_is_ambiguous() -> None:
    """With `rating` and `rating-metrics`, the syncer has to say which one callers mean."""
    with pytest.raises(
        InvalidSyncer, match=r"pod rating-1 .* rating \(8080\), rating-metrics \(9090\)"
    ) as caught:
        one_per_port([backend("rating-metrics", port=9090), backend("rating")])
    assert caught.value.reason == "AmbiguousService"


def test_a_port_that_a_slice_gives_twice_is_its_first() -> None:
    """The API forbids it, and the answer is stable all the same."""
    ports = (EndpointPort(name="http", port=1), EndpointPort(name="http", port=2))
    doubled = EndpointSlice(
        namespace=NS,
        name="a",
        service="rating",
        address_type="IPv4",
        ports=ports,
        endpoints=(endpoint(),),
    )
    assert [b.port for b in backends(service(), HTTP, [doubled], family="IPv4")] == [1]
