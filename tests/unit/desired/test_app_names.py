"""App names that became ambiguous, because the Service that names the app got another one beside
it.

As with ports, what a syncer once resolved stands in its instances."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from eurekube_sync.desired.claims import Claim, NotServed, Serving
from eurekube_sync.desired.resolve import EarlierClaims, claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import Condition, EndpointSlice, Service, ServicePort
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import (
    NAMING,
    REF,
    endpoint,
    instance,
    key,
    piece,
    service,
    stored,
    syncer,
    view,
)
from tests.unit.worlds.fakes import FakeWorld

BY_LABEL: dict[str, Any] = {"selector": {"matchLabels": {"app": "rating"}}}
RATING = service("rating")
HEADLESS = service("a-rating-headless", cluster_ips=("None",))
BOTH = (RATING, HEADLESS)
A, B, C = (f"RATING 10.0.0.{number}:8080" for number in (1, 2, 3))


def of(name: str, *numbers: int, port_name: str = "http") -> EndpointSlice:
    """The slice of a Service with these pods."""
    return piece(*(endpoint(number) for number in numbers), service=name, port_name=port_name)


BOTH_SLICES = (of("rating", 1, 2), of("a-rating-headless", 1, 2))


def world(*things: Any, **spec: Any) -> FakeWorld:
    """A world after the first pass of a syncer whose app is named by its Service."""
    found = FakeWorld()
    found.cluster.apply(syncer(**(spec or BY_LABEL)), *(things or (RATING, of("rating", 1, 2))))
    found.run()
    assert set(found.statuses()) == {A, B}
    return found


def ready(world: FakeWorld) -> Condition:
    status = world.cluster.syncers[REF].status
    condition = status.condition("Ready") if status else None
    assert condition is not None
    return condition


def under(*apps: str) -> tuple[ObservedInstance, ...]:
    """An instance of the syncer in Eureka for each of these apps."""
    return tuple(stored(instance(9, app=app)) for app in apps)


def claim(
    services: tuple[Service, ...],
    slices: tuple[EndpointSlice, ...],
    *standing: ObservedInstance,
    **spec: Any,
) -> Claim:
    """The claim of the only syncer, with its instances in Eureka."""
    naming = replace(NAMING, listed={one.key: one for one in standing})
    return claim_all(
        view([syncer(**(spec or BY_LABEL))], services, slices), naming, Scope()
    ).claims[REF]


def serving(found: Claim) -> Serving:
    assert isinstance(found, Serving), found
    return found


def named(found: Claim) -> set[tuple[str, str]]:
    """The app and address of the wanted instances."""
    return {(key.app, key.id.split(":")[-2]) for key in serving(found).wanted}


@pytest.mark.parametrize("name", ["a-rating-headless", "rating-metrics"])
def test_an_app_keeps_its_name_when_a_second_service_is_added(name: str) -> None:
    """Pods come and go, in passes of processes that remember nothing. The condition says what to
    do."""
    found = world()
    second = service(name, cluster_ips=("None",))
    found.cluster.apply(second, of(name, 2, 3))
    for _ in range(2):
        found.later(30)
        found.cluster.apply(of("rating", 2, 3))
        found.run()
    assert {place for place, status in found.statuses().items() if status == "UP"} == {B, C}
    first, other = sorted((name.upper(), "RATING"))
    assert ready(found).status.value == "True"
    assert (
        f"is behind the Services {first.lower()}, {other.lower()}: name the app in spec.appName"
        in ready(found).message
    )
    assert "Until then it is app rating, as before" in ready(found).message


def test_the_other_service_gives_neither_app_nor_vip() -> None:
    """Its Namespace may not grant them, and the status shows the first app by name."""
    found = serving(claim(BOTH, BOTH_SLICES, *under("rating")))
    assert (found.apps, found.vip_address, len(found.wanted)) == (("RATING",), "rating", 2)
    assert {one.instance.vip_address for one in found.wanted.values()} == {"rating"}
    assert len(found.port_warnings) == 1


@pytest.mark.parametrize("apps", [(), ("gone",), ("rating", "a-rating-headless")])
def test_without_one_registered_name_a_syncer_is_not_served(apps: tuple[str, ...]) -> None:
    """Nothing is registered, or under a name that no Service has, or under both."""
    found = claim(BOTH, BOTH_SLICES, *under(*apps))
    assert isinstance(found, NotServed)
    assert found.reason == "AmbiguousService"


def test_a_pod_behind_the_other_service_alone_is_not_registered() -> None:
    """It was never registered under that name. It may have left the first Service, so its instance
    goes, too."""
    found = serving(claim(BOTH, (of("rating", 1), of("a-rating-headless", 1, 2)), *under("rating")))
    assert named(found) == {("RATING", "10.0.0.1")}
    assert found.keeps(stored(instance(2))) is None
    assert (
        "A pod behind Service a-rating-headless alone is not registered" in found.port_warnings[0]
    )


def test_other_apps_of_the_same_syncer_do_not_matter() -> None:
    """A syncer may select the Services of a whole team. Each of its apps stays by itself."""
    orders = service("orders")
    slices = (*BOTH_SLICES, of("orders", 5))
    found = claim((*BOTH, orders), slices, *under("rating", "orders"))
    assert named(found) == {("RATING", "10.0.0.1"), ("RATING", "10.0.0.2"), ("ORDERS", "10.0.0.5")}
    assert serving(found).apps == ("ORDERS", "RATING")


def test_a_third_service_beside_the_other_one_names_its_own_pods() -> None:
    """The Service that gives no name makes no other pod ambiguous."""
    orders = service("orders")
    slices = (of("rating", 1), of("a-rating-headless", 1, 5), of("orders", 5))
    for services in itertools.permutations((*BOTH, orders)):
        found = claim(services, slices, *under("rating"))
        assert named(found) == {("RATING", "10.0.0.1"), ("ORDERS", "10.0.0.5")}
    new = claim((*BOTH, orders), slices, *under("orders"))
    assert named(new) == {("RATING", "10.0.0.1"), ("ORDERS", "10.0.0.5")}


def test_a_pod_behind_two_services_that_give_no_name_is_not_registered() -> None:
    """Each of them gave way to the name of another pod's Service."""
    peers = service("rating-peers")
    slices = (of("rating", 1, 2), of("a-rating-headless", 1, 3), of("rating-peers", 2, 3))
    found = claim((*BOTH, peers), slices, *under("rating"))
    assert named(found) == {("RATING", "10.0.0.1"), ("RATING", "10.0.0.2")}


def test_services_with_their_own_pods_keep_their_names() -> None:
    """Nothing is ambiguous, whatever is registered."""
    found = claim(BOTH, (of("rating", 1), of("a-rating-headless", 2)), *under("rating"))
    assert named(found) == {("RATING", "10.0.0.1"), ("A-RATING-HEADLESS", "10.0.0.2")}
    assert serving(found).port_warnings == ()


def test_a_name_in_the_spec_settles_it() -> None:
    """The registered one does not count."""
    found = claim(BOTH, BOTH_SLICES, *under("rating"), **BY_LABEL, appName="shop")
    assert {app for app, _ in named(found)} == {"SHOP"}
    assert serving(found).port_warnings == ()


def test_the_port_and_the_name_stay_together() -> None:
    """The Service for metrics has the labels and the pods of the app, another port, and no port
    called http."""
    api = service("rating", ServicePort(name="api", port=80, target=8080))
    metrics = service("rating-metrics", ServicePort(name="metrics", port=9090))
    peers = service("rating-peers", ServicePort(name="api", port=80, target=8080))
    beside = piece(endpoint(1), service="rating-metrics", port=9090, port_name="metrics")
    slices = (of("rating", 1, port_name="api"), of("rating-peers", 1, port_name="api"), beside)
    found = serving(claim((api, metrics, peers), slices, *under("rating")))
    assert named(found) == {("RATING", "10.0.0.1")}
    assert [
        "Until then port 8080" in one or "Until then it is app rating" in one
        for one in found.port_warnings
    ] == [True] * 2


def test_a_renamed_syncer_keeps_the_name_of_the_one_before() -> None:
    """It takes the instances over in one pass."""
    found = world()
    found.cluster.apply(
        HEADLESS, of("a-rating-headless", 1, 2), syncer("renamed", created=2000, **BY_LABEL)
    )
    found.run()
    found.cluster.delete(REF)
    found.run()
    assert found.statuses() == {A: "UP", B: "UP"}


def test_while_eureka_cannot_be_read_the_name_stays() -> None:
    """The status has it. So leases are renewed, and a new pod comes."""
    found = world()
    found.cluster.apply(HEADLESS, of("a-rating-headless", 2, 3), of("rating", 2, 3))
    found.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="down")
    for _ in range(2):
        found.run()
        assert {f"renew {key(2)}", f"renew {key(3)}"} <= set(found.wire.calls)
    assert found.statuses() == {A: "UP", B: "UP", C: "UP"}


def test_the_name_stays_after_eureka_lost_everything() -> None:
    """The status has it, and the other Service's name is none of its apps."""
    found = world()
    found.cluster.apply(HEADLESS, of("a-rating-headless", 2, 3), of("rating", 2, 3))
    found.registry.held.clear()
    report = found.run()
    assert found.statuses() == {B: "UP", C: "UP"}
    assert report.lost == {}


def test_a_claim_is_made_again_when_eureka_has_another_name() -> None:
    """It is used again while the answer is the same."""
    earlier, seen_now = EarlierClaims(), view([syncer(**BY_LABEL)], BOTH, BOTH_SLICES)

    def made(*standing: ObservedInstance) -> Claim:
        naming = replace(NAMING, listed={one.key: one for one in standing})
        return claim_all(seen_now, naming, Scope(), earlier).claims[REF]

    first = serving(made(*under("rating")))
    assert serving(made(*under("rating"))).verdicts is first.verdicts
    assert isinstance(made(), NotServed)
    assert {app for app, _ in named(made(*under("a-rating-headless")))} == {"A-RATING-HEADLESS"}
