"""`service.address: Ingress` and `Gateway` through whole passes. `tests/cases/fields.yaml` has a row
for each kind of Ingress and Gateway."""

from __future__ import annotations

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.desired.claims import NotServed, Serving
from eurekube_sync.desired.instance import family_of
from eurekube_sync.model.kubernetes import (
    Gateway,
    HttpRoute,
    Ingress,
    IngressPath,
    Listener,
    ReferenceGrant,
    RouteParent,
    RoutePath,
)
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import NS, REF, endpoint, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

AT_INGRESS = {"address": "Ingress"}


def ingress(*hosts: str, name: str = "web", addresses: tuple[str, ...] = ()) -> Ingress:
    """One that routes each host to the Service `rating`."""
    paths = [IngressPath(host, "/", "rating", "http") for host in hosts]
    return Ingress(name=name, paths=tuple(paths), addresses=addresses)


def world(*ingresses: Ingress, **spec: str) -> FakeWorld:
    """A ready pod behind a Service, and a syncer that registers the Service at its Ingresses."""
    made = FakeWorld()
    made.cluster.apply(service(), piece(endpoint(1)))
    made.cluster.apply(syncer(mode="service", service=AT_INGRESS, **spec))  # type: ignore[arg-type]
    made.cluster.ingresses[NS] = ingresses
    return made


def hosts(made: FakeWorld) -> list[str]:
    """What Eureka has."""
    return sorted(stored.instance.host_name for stored in made.registry.held.values())


def claim_of(made: FakeWorld) -> Serving | NotServed:
    desired = made.run().desired
    assert desired is not None
    claim = desired.claims[REF]
    assert isinstance(claim, Serving | NotServed)
    return claim


def test_a_host_that_is_taken_out_goes_and_the_last_one_stays() -> None:
    """Without any route, the syncer is not served: a person may be about to write another."""
    made = world(ingress("a.example.com", "b.example.com"))
    made.run()
    assert hosts(made) == ["a.example.com", "b.example.com"]
    made.cluster.ingresses[NS] = (ingress("a.example.com"),)
    made.run()
    assert hosts(made) == ["a.example.com"]
    made.cluster.ingresses[NS] = ()
    claim = claim_of(made)
    assert isinstance(claim, NotServed)
    assert claim.reason is Reason.NO_ADDRESS
    assert hosts(made) == ["a.example.com"]


def test_while_the_ingresses_cannot_be_read_all_stays() -> None:
    """A missing right is no missing Ingress."""
    made = world(ingress("a.example.com"))
    made.run()
    unread = Unknown(cause=Cause.DENIED, message="403")
    made.cluster.unknown["ingresses", NS] = unread
    claim = claim_of(made)
    assert isinstance(claim, NotServed)
    assert claim.source == unread
    assert hosts(made) == ["a.example.com"]


def test_two_ingresses_of_one_host_are_one_instance() -> None:
    """As where one of them is for another path. What one of them lacks is a warning."""
    made = world(ingress("a.example.com"), ingress("a.example.com", "*.b.example", name="web-2"))
    claim = claim_of(made)
    assert isinstance(claim, Serving)
    assert hosts(made) == ["a.example.com"]
    assert "Ingress web-2 has the host *.b.example, which is no address" in claim.warnings


@pytest.mark.parametrize(
    ("family", "registered"),
    [(None, ["203.0.113.1"]), ("IPv4", ["203.0.113.1"]), ("IPv6", ["[2001:db8::1]"])],
)
def test_of_a_dual_stack_ingress_one_family_is_registered(
    family: str | None, registered: list[str]
) -> None:
    """The Service's first, unless the spec says which."""
    asked = {} if family is None else {"addressFamily": family}
    made = world(ingress("", addresses=("2001:db8::1", "203.0.113.1")), **asked)
    made.run()
    assert hosts(made) == registered


def test_an_ingress_of_another_family_has_no_address() -> None:
    """The sentence says which one is asked for."""
    made = world(ingress("", addresses=("203.0.113.1",)), addressFamily="IPv6")
    assert family_of("203.0.113.1") == "IPv4"
    claim = claim_of(made)
    assert isinstance(claim, NotServed)
    assert "no IPv6 address of kind Ingress" in claim.message


def gateway_world(
    *parents: RouteParent, hostnames: tuple[str, ...] = ("a.example.com",)
) -> FakeWorld:
    """A ready pod behind a Service, a route to it, and a Gateway `infra/edge`."""
    made = FakeWorld()
    made.cluster.apply(service(), piece(endpoint(1)))
    made.cluster.apply(syncer(mode="service", service={"address": "Gateway"}))
    paths = (RoutePath("/", NS, "rating", 80),)
    route = HttpRoute(namespace=NS, name="web", hostnames=hostnames, parents=parents, paths=paths)
    made.cluster.routes[NS] = (route,)
    listeners = (Listener("http", 80), Listener("again", 8080), Listener("https", 443, secure=True))
    made.cluster.gateways["infra"] = (Gateway(name="edge", listeners=listeners),)
    return made


EDGE = RouteParent("infra", "edge", accepted=True)


def test_a_gateway_of_another_namespace_is_read_there() -> None:
    """Of two listeners of one kind, the first one counts."""
    made = gateway_world(EDGE)
    made.run()
    (stored,) = made.registry.held.values()
    instance = stored.instance
    assert (instance.host_name, instance.port.number) == ("a.example.com", 80)
    assert instance.secure_port.number == 443
    assert made.wire.verbs().count("list_gateways") == 1


@pytest.mark.parametrize("source", [("routes", NS), ("gateways", "infra")])
def test_while_routes_or_gateways_cannot_be_read_all_stays(source: tuple[str, str]) -> None:
    """A failed list is no empty one."""
    made = gateway_world(EDGE)
    made.run()
    unread = Unknown(cause=Cause.UNUSABLE, message="the answer is damaged")
    made.cluster.unknown[source] = unread
    claim = claim_of(made)
    assert isinstance(claim, NotServed)
    assert claim.source == unread
    assert hosts(made) == ["a.example.com"]


GRANT = ReferenceGrant(
    name="from-shop", routes_of=frozenset({"shop"}), services=frozenset({"rating"})
)


def granted_world() -> FakeWorld:
    """A Service with a route of its own namespace, and one of the namespace `shop`, as granted."""
    made = gateway_world(EDGE)
    paths = (RoutePath("/", NS, "rating", 80),)
    of_shop = HttpRoute(
        namespace="shop", name="web", hostnames=("b.example.com",), parents=(EDGE,), paths=paths
    )
    made.cluster.routes["shop"] = (of_shop,)
    made.cluster.reference_grants[NS] = (GRANT,)
    return made


def test_a_route_of_another_namespace_goes_with_its_reference_grant() -> None:
    """The route itself stays, and so does what is not granted that way."""
    made = granted_world()
    made.run()
    assert hosts(made) == ["a.example.com", "b.example.com"]
    made.cluster.reference_grants[NS] = (replace(GRANT, services=frozenset({"another"})),)
    claim = claim_of(made)
    assert isinstance(claim, Serving)
    refused = "no ReferenceGrant permits HTTPRoute shop/web to lead to Service rating"
    assert refused in claim.warnings
    assert hosts(made) == ["a.example.com"]


@pytest.mark.parametrize("source", [("referencegrants", NS), ("routes", "shop")])
@pytest.mark.parametrize("cause", [Cause.DENIED, Cause.API_MISSING])
def test_while_reference_grants_or_their_routes_cannot_be_read_all_stays(
    source: tuple[str, str], cause: Cause
) -> None:
    """A grant that is not seen is not revoked."""
    made = granted_world()
    made.run()
    made.cluster.unknown[source] = Unknown(cause=cause, message="it was not read")
    claim = claim_of(made)
    assert isinstance(claim, NotServed)
    assert hosts(made) == ["a.example.com", "b.example.com"]


def test_routes_are_read_where_a_reference_grant_names_their_namespace() -> None:
    """Without one, of the Service's own namespace alone."""
    made = granted_world()
    made.run()
    view = made.run().view
    assert view is not None
    assert view.routes is not None
    assert set(view.routes.by_namespace) == {NS, "shop"}
    made.cluster.reference_grants[NS] = ()
    view = made.run().view
    assert view is not None
    assert view.routes is not None
    assert set(view.routes.by_namespace) == {NS}


NOT_INSTALLED = Unknown(cause=Cause.API_MISSING, message="the Gateway API is not installed")


@pytest.mark.parametrize("source", [("routes", NS), ("gateways", "infra")])
def test_without_the_gateway_api_its_syncer_alone_is_not_served(source: tuple[str, str]) -> None:
    """It is a definite answer, so the pass is a good one. What is registered stays, and is served
    again when the API is back."""
    made = gateway_world(EDGE)
    made.cluster.apply(syncer("second", appName="second"))
    made.run()
    made.cluster.unknown[source] = NOT_INSTALLED
    made.cluster.apply(piece(endpoint(1), endpoint(2)))
    report = made.run()
    assert report.desired is not None
    claim = report.desired.claims[REF]
    assert isinstance(claim, NotServed)
    assert (claim.reason, claim.message) == (Reason.API_MISSING, NOT_INSTALLED.message)
    assert of_report(report, fail_on_held=True, detailed=False) is ExitCode.OK
    assert hosts(made) == ["10.0.0.1", "10.0.0.2", "a.example.com"]
    del made.cluster.unknown[source]
    assert isinstance(claim_of(made), Serving)


def test_without_the_gateway_api_a_renamed_syncer_keeps_what_the_old_one_had() -> None:
    """The new one may claim it, when the API is back. If there is no new one, the old one's
    deletion is what a person asked for, and ends."""
    made = gateway_world(EDGE)
    made.run()
    renamed = syncer("renamed", mode="service", service={"address": "Gateway"}, created=2000)
    made.cluster.apply(renamed)
    made.cluster.unknown["routes", NS] = NOT_INSTALLED
    made.cluster.delete(REF)
    for _ in range(3):
        made.run()
        made.clock.sleep(60.0)
    assert hosts(made) == ["a.example.com"]
    made.cluster.delete(renamed.ref)
    for _ in range(3):
        made.run()
        made.clock.sleep(60.0)
    assert hosts(made) == []


def test_a_gateway_without_an_address_gets_one_later() -> None:
    """Until then nothing is registered for a route without a host."""
    made = gateway_world(EDGE, hostnames=())
    claim = claim_of(made)
    assert isinstance(claim, Serving)
    assert [incomplete.reason for incomplete in claim.incomplete] == [Reason.ADDRESS_PENDING]
    assert claim.incomplete[0].message == "Gateway infra/edge waits for its address"
    (edge,) = made.cluster.gateways["infra"]
    made.cluster.gateways["infra"] = (replace(edge, addresses=("203.0.113.1",)),)
    made.run()
    assert hosts(made) == ["203.0.113.1"]


def test_a_route_without_a_gateway_has_no_address() -> None:
    """As one of a service mesh alone: no Gateway is listed for it."""
    made = gateway_world()
    claim = claim_of(made)
    assert isinstance(claim, Serving)
    assert claim.incomplete[0].message == "HTTPRoute web names no Gateway"
    assert "list_gateways" not in made.wire.verbs()


@pytest.mark.parametrize(
    ("parent", "hostnames"),
    [(EDGE._replace(section="grpc"), ("a.example.com",)), (EDGE._replace(port=81), ())],
)
def test_a_route_that_fits_no_listener_has_no_address(
    parent: RouteParent, hostnames: tuple[str, ...]
) -> None:
    """The sentence names both."""
    claim = claim_of(gateway_world(parent, hostnames=hostnames))
    assert isinstance(claim, Serving)
    assert claim.incomplete[0].message == ("Gateway infra/edge has no listener for HTTPRoute web")
