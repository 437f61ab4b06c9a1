"""Ports that became ambiguous or lost their name, and slices of other writers, through whole
passes.

What a syncer once resolved stands in its status and in its instances: it stays at that port number
as long as its pods have it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from eurekube_sync.desired.claims import Claim, Kept, Leaving, NotServed, Serving
from eurekube_sync.desired.endpoints import slices_in_use
from eurekube_sync.desired.resolve import EarlierClaims, claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.kubernetes import (
    SLICE_CONTROLLER,
    Condition,
    Endpoint,
    EndpointPort,
    EndpointSlice,
    ServedPort,
    Service,
    ServicePort,
)
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import (
    NAMING,
    NS,
    REF,
    desired,
    endpoint,
    instance,
    key,
    piece,
    seen,
    service,
    stored,
    syncer,
    view,
)
from tests.unit.worlds.fakes import FakeWorld

API = ServicePort(name="api", port=80, target=8080)
WEB = ServicePort(name="web", port=80, target=8080)
RATING = service("rating", API)
METRICS = service("rating-metrics", ServicePort(name="metrics", port=9090))
HTTP = service("rating")
A, B, C = (f"RATING 10.0.0.{number}:8080" for number in (1, 2, 3))


def of_rating(*numbers: int, port: str = "api") -> EndpointSlice:
    """The controller's slice of `rating`."""
    pods = (endpoint(number) for number in numbers)
    return replace(piece(*pods, port_name=port), managed_by=SLICE_CONTROLLER)


def of_metrics(*numbers: int) -> EndpointSlice:
    """The controller's slice of `rating-metrics`."""
    pods = (endpoint(number) for number in numbers)
    found = piece(*pods, service="rating-metrics", port=9090, port_name="metrics")
    return replace(found, managed_by=SLICE_CONTROLLER)


def stray(
    *endpoints: Endpoint, port: str = "", number: int = 9000, name: str = "rating-stray"
) -> EndpointSlice:
    """A slice of `rating` by another writer, with another port."""
    found = piece(*(endpoints or (endpoint(7, pod=None),)), name=name, port=number, port_name=port)
    return replace(found, managed_by="mesh")


def world(*things: Any, **spec: Any) -> FakeWorld:
    """A world after the first pass of a syncer with two pods."""
    found = FakeWorld()
    found.cluster.apply(syncer(**spec), *(things or (RATING, of_rating(1, 2))))
    found.run()
    assert set(found.statuses()) == {A, B}
    return found


def rolled_out(world: FakeWorld, *slices: EndpointSlice) -> set[str]:
    """Pods 2 and 3 have replaced pods 1 and 2; returns what is UP after two passes of two
    processes."""
    for _ in range(2):
        world.later(30)
        world.cluster.apply(of_rating(2, 3), *slices)
        world.run()
    return {place for place, status in world.statuses().items() if status == "UP"}


def served_ports(world: FakeWorld) -> tuple[ServedPort, ...]:
    """What the status remembers."""
    status = world.cluster.syncers[REF].status
    assert status is not None
    return status.ports


def ready(world: FakeWorld) -> Condition:
    status = world.cluster.syncers[REF].status
    condition = status.condition("Ready") if status else None
    assert condition is not None
    return condition


def claim(
    spec: dict[str, Any],
    services: tuple[Service, ...],
    slices: tuple[EndpointSlice, ...],
    *standing: int,
) -> Claim:
    """The claim of the only syncer, with its instances in Eureka on these ports."""
    listed = {key(9, port=port): stored(instance(9, port=port)) for port in standing}
    return claim_all(
        view([syncer(**spec)], services, slices), replace(NAMING, listed=listed), Scope()
    ).claims[REF]


def serving(found: Claim) -> Serving:
    assert isinstance(found, Serving), found
    return found


def places(found: Claim) -> set[str]:
    """The wanted instances, as `address:port`."""
    return {":".join(key.id.split(":")[3:]) for key in serving(found).wanted}


# --- Slices of other writers ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "extra",
    [
        stray(),
        stray(port="other"),
        stray(endpoint(7, pod=None, ready=False)),
        replace(stray(), ports=()),
        replace(stray(), managed_by=""),
    ],
)
def test_a_slice_with_none_of_the_services_ports_is_ignored(extra: EndpointSlice) -> None:
    """kube-proxy ignores it, too. The app follows its pods, and the condition names the slice."""
    found = world()
    found.cluster.apply(extra)
    assert rolled_out(found) == {B, C}
    assert ready(found).status.value == "True"
    assert "EndpointSlice rating-stray" in ready(found).message
    assert "is ignored, as kube-proxy ignores it" in ready(found).message
    writer = "managed by mesh" if extra.managed_by else "without the label managed-by"
    assert writer in ready(found).message


def test_an_empty_slice_of_another_writer_does_not_hide_the_clusters_own() -> None:
    """It shows no port of the Service, and the slice of the cluster beside it does."""
    plain = service()
    empty = replace(stray(), name="a-first", endpoints=())
    own = piece(endpoint(1), name="z-last")
    assert slices_in_use(plain, [empty, stray(), own]) == [empty, own]


def test_the_order_of_slices_does_not_matter() -> None:
    """The stray one may come first, between the others, or last."""
    slices = (
        of_rating(1),
        replace(of_rating(2), name="rating-2"),
        stray(),
        stray(port="x", name="another"),
    )
    claims = [
        desired([syncer()], [RATING], order).claims[REF] for order in itertools.permutations(slices)
    ]
    assert places(claims[0]) == {"10.0.0.1:8080", "10.0.0.2:8080"}
    assert all(serving(one).port_warnings == serving(claims[0]).port_warnings for one in claims)
    assert all(serving(one).wanted == serving(claims[0]).wanted for one in claims)


def test_a_stray_slice_without_endpoints_is_not_worth_a_warning() -> None:
    """It says nothing."""
    found = claim({}, (RATING,), (of_rating(1), replace(stray(), endpoints=())))
    assert serving(found).warnings == ()


def test_beside_the_controllers_empty_slice_a_stray_one_is_ignored_too() -> None:
    """That slice has no ports, and shows all the same that the Service has no pods."""
    empty = replace(of_rating(), ports=())
    found = serving(claim({}, (RATING,), (empty, stray())))
    assert (dict(found.verdicts), found.incomplete) == ({}, ())
    assert "rating-stray" in found.port_warnings[0]


def test_slices_of_a_service_without_a_selector_may_be_stray_as_well() -> None:
    """One of the two by hand has the Service's port."""
    by_hand = replace(RATING, selects=False)
    found = claim({}, (by_hand,), (piece(endpoint(1, pod=None), port_name="api"), stray()))
    assert places(found) == {"10.0.0.1:8080"}


def test_many_stray_slices_make_a_short_message() -> None:
    """A user could write thousands of them."""
    found = claim(
        {}, (RATING,), (of_rating(1), *(stray(name=f"stray-{number}") for number in range(20)))
    )
    assert (len(serving(found).port_warnings), serving(found).port_warnings[-1]) == (
        6,
        "and 15 more",
    )


def test_pods_in_a_slice_that_the_controller_has_not_written_again_are_kept() -> None:
    """A port was renamed. The controller writes one slice after the other, and an end in between is
    no end."""
    found = world()
    found.cluster.apply(
        service("rating", WEB), of_rating(1, port="web"), replace(of_rating(2, 3), name="old")
    )
    found.cluster.apply(
        replace(of_rating(4), name="old-4", endpoints=(endpoint(4, terminating=True),))
    )
    found.run()
    assert found.statuses() == {A: "UP", B: "UP"}
    assert "ports that Service rating had before" in ready(found).message or True
    found.cluster.apply(replace(of_rating(2, 3, port="web"), name="old"))
    found.cluster.slices = [one for one in found.cluster.slices if one.name != "old-4"]
    found.run()
    assert found.statuses() == {A: "UP", B: "UP", C: "UP"}


# --- Staying at the registered number -------------------------------------------------------------


def test_an_app_stays_at_its_port_when_a_service_for_metrics_is_added() -> None:
    """Pods come and go, in passes of processes that remember nothing. The condition says what to
    do."""
    found = world()
    found.cluster.apply(METRICS, of_metrics(2, 3))
    assert rolled_out(found) == {B, C}
    assert ready(found).status.value == "True"
    assert (
        "rating (8080), rating-metrics (9090): name one in spec.port. Until then port 8080"
        in ready(found).message
    )


def test_an_app_stays_at_its_port_when_the_port_is_renamed() -> None:
    """The spec names a port that no Service has any more."""
    found = world(port="api")
    found.cluster.apply(service("rating", WEB))
    assert rolled_out(found, of_rating(2, 3, port="web")) == {B, C}
    assert (
        "no Service has the port 'api': rating has web (80); name one of these in spec.port"
        in ready(found).message
    )


def test_an_app_stays_at_its_port_while_no_slice_is_written_again() -> None:
    """The Service has the new name already, and all of its slices have the old one."""
    found = world()
    found.cluster.apply(service("rating", WEB))
    assert rolled_out(found) == {B, C}
    assert "do not have its port web yet: rating-abc has api (8080)" in ready(found).message


def test_an_app_stays_at_its_port_when_the_service_gets_a_second_one() -> None:
    """Neither is called http."""
    found = world()
    found.cluster.apply(service("rating", API, ServicePort(name="admin", port=9000)))
    assert rolled_out(found) == {B, C}
    assert (
        "Service rating has the ports api (80), admin (9000): name one in spec.port"
        in ready(found).message
    )


def test_an_app_stays_at_its_port_beside_a_headless_service_with_another() -> None:
    """The pods are the same."""
    found = world()
    peers = service("rating-peers", ServicePort(name="peers", port=7800), cluster_ips=("None",))
    found.cluster.apply(peers, replace(of_metrics(2, 3), service="rating-peers", name="peers"))
    found.cluster.slices = [
        replace(one, ports=(EndpointPort(name="peers", port=7800),)) if one.name == "peers" else one
        for one in found.cluster.slices
    ]
    assert rolled_out(found) == {B, C}


BOTH = (RATING, METRICS)
BOTH_SLICES = (of_rating(1, 2), of_metrics(1, 2))


@pytest.mark.parametrize("standing", [(), (7000,), (8080, 9090)])
def test_without_one_port_number_that_the_pods_still_have_a_syncer_is_not_served(
    standing: tuple[int, ...],
) -> None:
    """Nothing is registered, or on a port that is gone, or on both."""
    found = claim({}, BOTH, BOTH_SLICES, *standing)
    assert isinstance(found, NotServed)
    assert found.reason == "AmbiguousService"


def test_a_new_name_is_not_taken_for_a_number() -> None:
    """Nothing is registered on a secure port, so a missing one does not stay anywhere."""
    found = claim({"port": 80, "securePort": "https"}, (RATING,), (of_rating(1),), 8080)
    assert isinstance(found, NotServed)
    assert found.reason == "NoSuchPort"


def test_each_port_stays_by_itself() -> None:
    """The secure port was renamed, the plain one was not."""
    tls = ServicePort(name="https", port=443, target=8443)
    ports = (EndpointPort(name="api", port=8080), EndpointPort(name="tls", port=8443))
    found = FakeWorld()
    found.cluster.apply(
        syncer(port="api", securePort="tls"), service("rating", API, replace(tls, name="tls"))
    )
    found.cluster.apply(replace(of_rating(1), ports=ports))
    found.run()
    found.cluster.apply(
        service("rating", API, tls),
        replace(of_rating(1, 2), ports=(ports[0], EndpointPort(name="https", port=8443))),
    )
    found.run()
    registered = {
        one.instance.ip_addr: one.instance.secure_port.number
        for one in found.registry.held.values()
    }
    assert registered == {"10.0.0.1": 8443, "10.0.0.2": 8443}
    assert "no Service has the port 'tls'" in ready(found).message


def test_pods_on_another_port_keep_their_instances_while_a_syncer_stays() -> None:
    """It is unknown where they listen. A pod that terminates goes."""
    green = service("rating-green", ServicePort(name="api", port=80, target="api"))
    lost = replace(
        piece(endpoint(2), endpoint(3, terminating=True, ready=False), service="rating-green"),
        ports=(),
    )
    other_family = replace(of_rating(4), name="rating-6", address_type="IPv6")
    slices = (of_rating(1), other_family, replace(lost, managed_by=SLICE_CONTROLLER))
    found = serving(claim({}, (RATING, green), slices, 8080))
    assert places(found) == {"10.0.0.1:8080"}
    assert (
        found.keeps(stored(instance(2)))
        == "pod rating-2 does not listen on the port at which its syncer stays"
    )
    assert found.keeps(stored(instance(3))) is None
    assert "pod rating-2 has no container port named api" in found.port_warnings[0]


def test_services_of_type_external_name_have_no_part_in_it() -> None:
    """Their slices prove nothing."""
    alias = replace(METRICS, type="ExternalName")
    found = claim(
        {},
        (*BOTH, replace(alias, name="alias")),
        (*BOTH_SLICES, replace(of_metrics(5), service="alias")),
        8080,
    )
    assert places(found) == {"10.0.0.1:8080", "10.0.0.2:8080"}


def test_a_service_without_a_slice_may_have_the_port() -> None:
    """Its pods are unknown, so nothing is removed for that."""
    found = serving(claim({}, (*BOTH, service("rating-new", API)), BOTH_SLICES, 8080))
    assert places(found) == {"10.0.0.1:8080", "10.0.0.2:8080"}
    assert [one.reason for one in found.incomplete] == ["NoEndpointSlices"]


def test_a_renamed_syncer_stays_at_the_port_of_the_one_before() -> None:
    """The ids are the same, with the old name in their marks. The new syncer takes them over in one
    pass."""
    found = world()
    found.cluster.apply(METRICS, of_metrics(1, 2), syncer("renamed", created=2000))
    found.run()
    found.cluster.delete(REF)
    found.run()
    assert found.statuses() == {A: "UP", B: "UP"}
    marks = {one.metadata["eurekube.syncer"] for one in found.registry.held.values()}
    assert marks == {f"{NS}/renamed"}


def test_another_living_syncer_of_the_app_lends_its_port_to_nobody() -> None:
    """Its pods are others. The new syncer never resolved a port."""
    found = world(selector={"service": "rating"}, appName="rating")
    new = syncer("new", created=2000, selector={"matchLabels": {"new": "yes"}}, appName="rating")
    labelled = [replace(one, name=f"new-{one.name}", labels={"new": "yes"}) for one in BOTH]
    pods = [
        replace(of_rating(5), service="new-rating", name="5"),
        replace(of_metrics(5), service="new-rating-metrics", name="6"),
    ]
    found.cluster.apply(new, *labelled, *pods)
    found.run()
    assert found.statuses() == {A: "UP", B: "UP"}


def test_a_claim_is_made_again_when_eureka_answers_otherwise() -> None:
    """It is used again while its instances have the same port, and no longer."""
    earlier, seen_now = EarlierClaims(), view([syncer()], BOTH, BOTH_SLICES)

    def made(*standing: int) -> Claim:
        listed = {key(9, port=port): stored(instance(9, port=port)) for port in standing}
        return claim_all(seen_now, replace(NAMING, listed=listed), Scope(), earlier).claims[REF]

    first = serving(made(8080))
    assert serving(made(8080)).verdicts is first.verdicts
    assert isinstance(made(), NotServed)
    assert isinstance(made(8080, 9090), NotServed)
    assert places(made(9090)) == {"10.0.0.1:9090", "10.0.0.2:9090"}


def test_instances_without_a_readable_mark_are_passed_over() -> None:
    """Nobody knows whose they are."""
    listed = {key(9): seen(key(9))}
    found = claim_all(
        view([syncer()], BOTH, BOTH_SLICES), replace(NAMING, listed=listed), Scope()
    ).claims[REF]
    assert isinstance(found, NotServed)


# --- While Eureka does not tell the number --------------------------------------------------------


def unread(world: FakeWorld) -> None:
    """Eureka's lists and reads fail, and its writes work."""
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="down")


def empty(world: FakeWorld) -> None:
    """Eureka restarts, and has nothing."""
    world.registry.held.clear()


def add_metrics(world: FakeWorld) -> None:
    """A Service for metrics has the pods of the app, one of which is new."""
    world.cluster.apply(METRICS, of_metrics(2, 3), of_rating(2, 3))


def add_admin(world: FakeWorld) -> None:
    """A Service for administrators has the pods of the app, and its port is called http."""
    admin = service("rating-admin", ServicePort(name="http", port=80, target=9000))
    pods = replace(
        of_rating(2, 3),
        service="rating-admin",
        name="rating-admin",
        ports=(EndpointPort(name="http", port=9000),),
    )
    world.cluster.apply(admin, pods, of_rating(2, 3))


def rename(world: FakeWorld) -> None:
    """The Service's port has another name, and one pod is new."""
    world.cluster.apply(service("rating", WEB), of_rating(2, 3, port="web"))


CHANGES = (add_metrics, add_admin, rename)


@pytest.mark.parametrize("change", CHANGES)
def test_while_eureka_cannot_be_read_an_app_stays_at_its_port(
    change: Callable[[FakeWorld], None],
) -> None:
    """Each pass is a process of its own, as of a CronJob. The status has the number, so leases are
    renewed, and new pods come."""
    found = world(port="api") if change is rename else world()
    change(found)
    unread(found)
    for _ in range(2):
        found.run()
        assert {f"renew {key(2)}", f"renew {key(3)}"} <= set(found.wire.calls)
    assert found.statuses() == {A: "UP", B: "UP", C: "UP"}
    assert isinstance(ready(found), Condition)
    assert (
        "Until then port 8080 is served on" in ready(found).message
        or ready(found).status.value == "Unknown"
    )


@pytest.mark.parametrize("change", CHANGES)
def test_an_app_comes_back_at_its_port_after_eureka_lost_everything(
    change: Callable[[FakeWorld], None],
) -> None:
    """The list is complete, and has nothing. The status has the number."""
    found = world(port="api") if change is rename else world()
    change(found)
    empty(found)
    report = found.run()
    assert found.statuses() == {B: "UP", C: "UP"}
    assert report.lost == {}
    assert "Until then port 8080 is served on" in ready(found).message


def test_an_app_without_a_pod_for_some_time_comes_back_at_its_port() -> None:
    """It was scaled to 0 before somebody added a Service for metrics."""
    found = world()
    found.cluster.apply(of_rating())
    found.cluster.ended |= {"uid-of-rating-1", "uid-of-rating-2"}
    for _ in range(3):
        found.later(60)
        found.run()
    assert found.statuses() == {}
    found.cluster.apply(METRICS, of_metrics(3), of_rating(3))
    found.run()
    assert found.statuses() == {C: "UP"}


def test_a_service_without_the_port_is_forgotten() -> None:
    """Else its number would be in the way of the other one later. One that only lacks pods is
    not."""
    found = FakeWorld()
    metrics = service("rating-metrics", ServicePort(name="metrics", port=9090))
    found.cluster.apply(syncer(), RATING, of_rating(1), metrics, of_metrics(3))
    found.run()
    both = (ServedPort("rating", 8080), ServedPort("rating-metrics", 9090))
    assert served_ports(found) == both
    found.cluster.apply(of_metrics())
    found.run()
    assert served_ports(found) == both
    found.cluster.apply(syncer(port="api"))
    found.run()
    assert served_ports(found) == (ServedPort("rating", 8080),)
    found.cluster.apply(syncer(port="none"))
    found.run()
    assert served_ports(found) == (ServedPort("rating", 8080),)


def test_a_status_keeps_a_limited_number_of_services() -> None:
    """It is a part of every list of syncers."""
    services = tuple(service(f"app-{number:03}", labels={"team": "a"}) for number in range(120))
    slices = tuple(
        piece(endpoint(number), service=one.name) for number, one in enumerate(services, 1)
    )
    found = serving(claim({"selector": {"matchLabels": {"team": "a"}}}, services, slices))
    assert len(found.wanted) == 120
    assert [one.service for one in found.ports] == [f"app-{number:03}" for number in range(100)]


# --- Several Services, each at a number of its own ------------------------------------------------

JOBS = service("jobs", ServicePort(name="jobs", port=80, target=9090))
BY_TEAM: dict[str, Any] = {"selector": {"matchLabels": {"app": "rating"}}, "appName": "rating"}
JOB = "RATING 10.0.0.5:9090"


def of_jobs(*numbers: int, port: str = "jobs") -> EndpointSlice:
    """The controller's slice of `jobs`."""
    pods = (endpoint(number) for number in numbers)
    return replace(
        piece(*pods, service="jobs", port=9090, port_name=port), managed_by=SLICE_CONTROLLER
    )


def two_services() -> FakeWorld:
    """One app of two Services with different pods and ports."""
    found = FakeWorld()
    found.cluster.apply(syncer(**BY_TEAM), RATING, of_rating(1, 2), JOBS, of_jobs(5))
    found.run()
    assert set(found.statuses()) == {A, B, JOB}
    return found


@pytest.mark.parametrize("trouble", [None, unread, empty])
def test_each_service_stays_at_its_own_number(trouble: Callable[[FakeWorld], None] | None) -> None:
    """The Service for metrics has the number of the other Service."""
    found = two_services()
    add_metrics(found)
    found.cluster.apply(of_jobs(5, 6))
    if trouble:
        trouble(found)
    found.run()
    statuses = found.statuses()
    assert {place for place in statuses if place != A} == {B, C, JOB, "RATING 10.0.0.6:9090"}
    assert (A in statuses) is (trouble is unread)  # nothing is removed then
    assert (
        trouble is unread or "Until then ports 8080 and 9090 are served on" in ready(found).message
    )


def test_a_service_that_lacks_its_number_for_a_moment_is_not_forgotten() -> None:
    """Its pods have no container port of the targetPort's name, in one pass. Its instances are kept
    meanwhile."""
    found = two_services()
    add_metrics(found)
    found.cluster.apply(replace(of_jobs(5), ports=()))
    for _ in range(2):
        found.run()
        assert {B, C, JOB} <= set(found.statuses())
    empty(found)
    found.cluster.apply(of_jobs(5))
    found.run()
    assert set(found.statuses()) == {B, C, JOB}


def test_each_service_stays_when_all_ports_are_renamed() -> None:
    """No Service has a port that the spec names."""
    found = FakeWorld()
    spec: dict[str, Any] = {**BY_TEAM, "port": "api"}
    jobs = replace(JOBS, ports=(replace(JOBS.ports[0], name="api"),))
    found.cluster.apply(syncer(**spec), RATING, of_rating(1, 2), jobs, of_jobs(5, port="api"))
    found.run()
    found.cluster.apply(service("rating", WEB), of_rating(1, 2, port="web"), JOBS, of_jobs(5))
    empty(found)
    found.run()
    assert set(found.statuses()) == {A, B, JOB}


def test_without_a_status_the_app_tells_the_number_of_its_service() -> None:
    """Each Service names an app. A restored syncer may have no status."""
    spec: dict[str, Any] = {"selector": {"matchLabels": {"app": "rating"}}}
    listed = {one.key: stored(one) for one in (instance(1), instance(5, app="jobs", port=9090))}
    seen_now = view([syncer(**spec)], (*BOTH, JOBS), (*BOTH_SLICES, of_jobs(5, 6)))
    found = claim_all(seen_now, replace(NAMING, listed=listed), Scope()).claims[REF]
    assert places(found) == {"10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.5:9090", "10.0.0.6:9090"}


def test_two_processes_stay_at_their_numbers_when_their_port_is_renamed() -> None:
    """Slices by hand, one for each number."""
    found = FakeWorld()
    hands = [
        piece(endpoint(7, pod=None), name=f"hand-{number}", port=number) for number in (8080, 8081)
    ]
    found.cluster.apply(syncer(port="http"), replace(HTTP, selects=False), *hands)
    found.run()
    renamed = replace(HTTP, selects=False, ports=(WEB,))
    found.cluster.apply(
        renamed, *(replace(one, ports=(replace(one.ports[0], name="web"),)) for one in hands)
    )
    found.run()
    assert set(found.statuses()) == {"RATING 10.0.0.7:8080", "RATING 10.0.0.7:8081"}
    assert "Until then ports 8080 and 8081 are served on" in ready(found).message

    both = (EndpointPort(name="web", port=8080), EndpointPort(name="more", port=8081))
    found.cluster.apply(replace(hands[0], ports=both))
    found.run()  # which of the two is meant there?
    assert ready(found).reason == "NoSuchPort"
    assert set(found.statuses()) == {"RATING 10.0.0.7:8080", "RATING 10.0.0.7:8081"}


def test_a_number_of_the_other_address_family_alone_does_not_stay() -> None:
    """The instances are IPv4, and only the slice of IPv6 addresses has the number."""
    moved = replace(of_rating(1), ports=(EndpointPort(name="api", port=9000),))
    other_family = replace(of_rating(1), name="rating-6", address_type="IPv6")
    found = claim({"port": "gone"}, (RATING,), (moved, other_family), 8080)
    assert isinstance(found, NotServed)
    assert "do not have its port 8080 yet" in found.message


def test_in_mode_service_each_service_stays_at_its_own_number() -> None:
    """With another address for each."""
    jobs = service("jobs", ServicePort(name="api", port=81), cluster_ips=("10.96.0.3",))
    found = FakeWorld()
    found.cluster.apply(
        syncer(mode="service", port="api"), RATING, of_rating(1), jobs, of_jobs(5, port="api")
    )
    found.run()
    standing = set(found.statuses())
    assert standing == {"RATING 10.96.0.1:80", "RATING 10.96.0.3:81"}
    web = replace(jobs, ports=(replace(jobs.ports[0], name="web"),))
    found.cluster.apply(
        service("rating", WEB), of_rating(1, port="web"), web, of_jobs(5, port="web")
    )
    for trouble in (unread, empty):
        trouble(found)
        found.run()
        assert set(found.statuses()) == standing
        found.registry.unreadable = None


# --- A port called http ---------------------------------------------------------------------------

HTTP_SLICE = of_rating(1, 2, port="http")


def test_a_port_called_http_comes_before_the_only_port_of_another_service() -> None:
    """For a pod behind both. The message has nothing to say."""
    found = serving(claim({}, (HTTP, METRICS), (HTTP_SLICE, of_metrics(1, 2))))
    assert places(found) == {"10.0.0.1:8080", "10.0.0.2:8080"}
    assert found.warnings == ()


def test_a_pod_behind_the_other_service_alone_is_not_registered_on_its_port() -> None:
    """A job with the labels of the app has a port for metrics and no other."""
    found = claim({}, (HTTP, METRICS), (HTTP_SLICE, of_metrics(1, 2, 3)))
    assert places(found) == {"10.0.0.1:8080", "10.0.0.2:8080"}


def test_a_service_with_other_pods_keeps_its_port() -> None:
    """Nothing is ambiguous."""
    found = claim({}, (HTTP, METRICS), (HTTP_SLICE, of_metrics(3)))
    assert places(found) == {"10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:9090"}


def test_an_app_that_is_registered_on_another_port_stays_there() -> None:
    """A Service with a port http was added, such as one for administrators."""
    admin = service("rating-admin", ServicePort(name="http", port=80, target=9000))
    slices = (
        of_rating(1, 2),
        replace(piece(endpoint(1), endpoint(2), service="rating-admin", port=9000)),
    )
    assert places(claim({}, (RATING, admin), slices, 8080)) == {"10.0.0.1:8080", "10.0.0.2:8080"}
    assert places(claim({}, (RATING, admin), slices)) == {"10.0.0.1:9000", "10.0.0.2:9000"}
    assert places(claim({}, (RATING, admin), slices, 7000)) == {"10.0.0.1:9000", "10.0.0.2:9000"}


def test_apps_that_are_named_by_their_services_keep_the_name_with_the_port() -> None:
    """Without an app name in the spec, the Service for metrics would give another one."""
    spec = {"selector": {"matchLabels": {"app": "rating"}}}
    assert serving(claim(spec, (HTTP, METRICS), (HTTP_SLICE, of_metrics(1, 2)))).apps == ("RATING",)


# --- mode service ---------------------------------------------------------------------------------


def at_services(
    services: tuple[Service, ...], slices: tuple[EndpointSlice, ...], *standing: int, **spec: Any
) -> Claim:
    return claim({"mode": "service", **spec}, services, slices, *standing)


OTHER_IP = replace(METRICS, cluster_ips=("10.96.0.2",))


def test_in_mode_service_a_port_called_http_comes_first() -> None:
    """The Service for metrics is no second address of the app."""
    assert places(at_services((HTTP, OTHER_IP), (HTTP_SLICE, of_metrics(1, 2)))) == {"10.96.0.1:80"}


def test_in_mode_service_a_port_in_the_spec_is_asked_of_each_service() -> None:
    """Both have port 80, and lead the same pods' calls to different ones. Without the field, http
    would come first."""
    metrics = ServicePort(name="metrics", port=80, target=9090)
    beside = replace(OTHER_IP, ports=(metrics,))
    slices = (HTTP_SLICE, of_metrics(1, 2))
    refused = at_services((HTTP, beside), slices, port=80)
    assert isinstance(refused, NotServed)
    assert refused.reason is Reason.AMBIGUOUS_SERVICE
    assert places(at_services((HTTP, beside), slices)) == {"10.96.0.1:80"}


def test_an_external_name_has_no_cluster_ip() -> None:
    """Not even one that the Service had before its type was changed."""
    changed = replace(service(type="ExternalName"), external_name="rating.example.com")
    found = at_services((changed,), (), service={"address": "ClusterIP"})
    assert isinstance(found, NotServed)
    assert "has no address of kind ClusterIP" in found.message


def test_in_mode_service_the_registered_port_stays() -> None:
    """With a Service for metrics, a renamed port, or a second port."""
    beside = at_services((RATING, OTHER_IP), (of_rating(1), of_metrics(1)), 80)
    renamed = at_services((service("rating", WEB),), (of_rating(1, port="web"),), 80, port="api")
    second = at_services(
        (service("rating", API, ServicePort(name="admin", port=81)),), (of_rating(1),), 80
    )
    for found in (beside, renamed, second):
        assert places(found) == {"10.96.0.1:80"}
        assert "Until then port 80 is served on" in serving(found).warnings[0]
    assert isinstance(
        at_services((RATING, OTHER_IP), (of_rating(1), of_metrics(1)), 80, 9090), NotServed
    )
    assert isinstance(
        at_services((RATING, OTHER_IP), (of_rating(1), of_metrics(1)), 7000), NotServed
    )
    assert isinstance(
        at_services((service("rating", WEB),), (of_rating(1),), 7000, port="api"), NotServed
    )


def test_in_mode_service_a_registered_second_service_is_not_dropped_for_http() -> None:
    """Both were registered before a pod came behind both."""
    found = at_services((HTTP, OTHER_IP), (HTTP_SLICE, of_metrics(1, 2)), 80, 9090)
    assert isinstance(found, NotServed)
    assert found.reason == "AmbiguousService"


# --- Two processes at one address -----------------------------------------------------------------


def process(number: int, secure: int = 0, *, name: str = "") -> EndpointSlice:
    """A slice by hand, with one address and its ports."""
    named = (("http", number), ("https", secure))
    ports = tuple(EndpointPort(name=called, port=port) for called, port in named if port)
    return replace(
        piece(endpoint(7, pod=None), name=name or f"hand-{number or secure}"), ports=ports
    )


BY_HAND = replace(HTTP, selects=False)


def test_two_ports_at_one_address_are_two_instances() -> None:
    """An endpoint is an address and a port. The same one in two slices counts once."""
    slices = (process(8080), process(8081), process(8081, name="again"))
    found = serving(claim({}, (BY_HAND,), slices))
    assert places(found) == {"10.0.0.7:8080", "10.0.0.7:8081"}
    assert found.endpoints == 2


def test_a_pod_in_two_slices_of_its_service_counts_once() -> None:
    """A slice per family, or while endpoints move from one slice to the other."""
    found = claim({}, (HTTP,), (HTTP_SLICE, replace(HTTP_SLICE, name="again")))
    assert places(found) == {"10.0.0.1:8080", "10.0.0.2:8080"}


def test_two_ports_of_one_address_with_two_names_are_ambiguous() -> None:
    """The second may be the port for metrics of the same process. A port called http comes
    first."""
    metrics = replace(METRICS, selects=False)
    beside = replace(
        process(9090), service="rating-metrics", ports=(EndpointPort(name="metrics", port=9090),)
    )
    assert places(claim({}, (BY_HAND, metrics), (process(8080), process(8081), beside))) == {
        "10.0.0.7:8080",
        "10.0.0.7:8081",
    }
    api = replace(RATING, selects=False)
    by_name = replace(process(8080), ports=(EndpointPort(name="api", port=8080),))
    found = claim({}, (api, metrics), (by_name, beside))
    assert isinstance(found, NotServed)
    assert found.reason == "AmbiguousService"


TLS = replace(BY_HAND, ports=(*HTTP.ports, ServicePort(name="https", port=443)))
ENCRYPTED = {"port": "http", "securePort": "https"}


def test_each_process_has_the_secure_port_of_its_slice() -> None:
    """The other one's would lead callers to the other process."""
    found = serving(claim(ENCRYPTED, (TLS,), (process(8080, 8443), process(8081, 8444))))
    pairs = {
        (one.instance.port.number, one.instance.secure_port.number) for one in found.wanted.values()
    }
    assert pairs == {(8080, 8443), (8081, 8444)}


def test_one_process_may_have_its_ports_in_two_slices() -> None:
    """Only one at its address."""
    found = serving(claim(ENCRYPTED, (TLS,), (process(8080), process(0, 8443))))
    pairs = {
        (one.instance.port.number, one.instance.secure_port.number) for one in found.wanted.values()
    }
    assert pairs == {(8080, 8443)}


def test_a_process_without_its_secure_port_is_kept_as_it_is() -> None:
    """Which of the two has it is unknown."""
    found = serving(claim(ENCRYPTED, (TLS,), (process(8080), process(8081), process(0, 8443))))
    assert (dict(found.wanted), set(found.of(Kept))) == ({}, {key(7), key(7, port=8081)})
    bare = replace(instance(7, port=8082), metadata={})
    assert found.keeps(stored(bare)) == "endpoint 10.0.0.7 has no port 'http' (yet)"


# --- One pod with two numbers for one port --------------------------------------------------------


def numbered(
    *numbers: int, port: int = 8080, name: str = "", of: str = "rating", by: str = "mesh"
) -> EndpointSlice:
    """A slice of a Service with these pods on a number of its port http."""
    pods = (endpoint(number) for number in numbers)
    return replace(piece(*pods, service=of, name=name or f"{of}-{port}", port=port), managed_by=by)


PODS_BY_HAND = (numbered(1, port=8080), numbered(1, port=8081))


def test_one_pod_with_two_numbers_of_one_port_is_two_instances() -> None:
    """kube-proxy sends calls to both. Only the writer of the slices could know that one is
    wrong."""
    found = serving(claim({}, (BY_HAND,), PODS_BY_HAND))
    assert places(found) == {"10.0.0.1:8080", "10.0.0.1:8081"}
    assert found.endpoints == 2
    assert found.warnings == ()
    second = serving(claim({}, (HTTP,), (numbered(1, by=SLICE_CONTROLLER), numbered(1, port=8081))))
    assert places(second) == {"10.0.0.1:8080", "10.0.0.1:8081"}


def test_the_same_two_numbers_of_two_services_merge() -> None:
    """Each Service has the same endpoints, or one has all those of the other."""
    headless = replace(service("rating-headless"), selects=False)
    beside = tuple(
        replace(one, service="rating-headless", name=f"h-{one.name}") for one in PODS_BY_HAND
    )
    for slices in (beside, beside[:1], beside[1:]):
        found = claim({}, (BY_HAND, headless), (*PODS_BY_HAND, *slices))
        assert places(found) == {"10.0.0.1:8080", "10.0.0.1:8081"}


def test_different_numbers_of_two_services_are_ambiguous_beside_two_of_one() -> None:
    """No Service has all of the three numbers, so one of them may be for something else."""
    other = replace(service("rating-other"), selects=False)
    slices = (*PODS_BY_HAND, numbered(1, port=9000, of="rating-other"))
    found = claim({}, (BY_HAND, other), slices)
    assert isinstance(found, NotServed)
    assert found.reason == "AmbiguousService"
    assert places(claim({}, (BY_HAND, other), slices, 8081)) == {"10.0.0.1:8081"}


def test_two_numbers_of_a_pod_have_the_secure_port_of_their_slices() -> None:
    """As with two processes at an address without a pod."""
    slices = tuple(
        replace(one, endpoints=(endpoint(7),)) for one in (process(8080, 8443), process(8081, 8444))
    )
    found = serving(claim(ENCRYPTED, (TLS,), slices))
    pairs = {
        (one.instance.port.number, one.instance.secure_port.number) for one in found.wanted.values()
    }
    assert pairs == {(8080, 8443), (8081, 8444)}


def test_in_mode_service_two_numbers_of_a_pod_are_no_ambiguity() -> None:
    """The Service is registered, and it is ready while one of them is."""
    unready = replace(PODS_BY_HAND[0], endpoints=(endpoint(1, ready=False),))
    found = serving(at_services((BY_HAND,), (unready, PODS_BY_HAND[1])))
    assert {one.instance.status.value for one in found.wanted.values()} == {"UP"}


def mid_write(*endpoints: Endpoint) -> tuple[EndpointSlice, ...]:
    """The controller's slices while a targetPort changes from 8080 to 8081: one is not yet
    written."""
    old, new = (numbered(port=port, by=SLICE_CONTROLLER) for port in (8080, 8081))
    return (replace(old, endpoints=endpoints), replace(new, endpoints=endpoints))


def test_while_the_controller_renumbers_a_pod_its_instances_are_kept() -> None:
    """One of the two numbers is outdated. Nothing new is registered, and nothing is removed, at any
    number."""
    found = serving(
        claim({}, (HTTP,), (*mid_write(endpoint(1)), numbered(2, name="2", by=SLICE_CONTROLLER)))
    )
    assert places(found) == {"10.0.0.2:8080"}
    why = "pod rating-1 is in EndpointSlices with different numbers for port http of Service rating"
    for port in (7000, 8080, 8081):
        assert found.keeps(stored(instance(1, port=port))) == why
    assert found.unclear == [why]


def test_an_app_moves_to_a_new_number_once_its_slices_agree() -> None:
    """No instance is at the old number alone before, or at none in between."""
    found = world(HTTP, numbered(1, 2, by=SLICE_CONTROLLER))
    found.cluster.apply(service("rating", ServicePort(name="http", port=80, target=8081)))
    found.cluster.slices = [*mid_write(endpoint(1), endpoint(2))]
    found.run()
    assert found.statuses() == {A: "UP", B: "UP"}
    assert [call for call in found.wire.writes() if call.split()[0] == "cancel"] == []
    found.cluster.slices = [numbered(1, 2, port=8081, by=SLICE_CONTROLLER)]
    for _ in range(2):
        found.later(30)
        found.run()
    up = {place for place, status in found.statuses().items() if status == "UP"}
    assert up == {"RATING 10.0.0.1:8081", "RATING 10.0.0.2:8081"}


def test_a_pod_that_terminates_goes_although_it_is_renumbered() -> None:
    """Both of its numbers lose their callers. One that serves until its end is kept if the spec
    says so."""
    ending = endpoint(1, ready=False, serving=True, terminating=True)
    found = serving(claim({}, (HTTP,), mid_write(ending)))
    assert all(
        isinstance(verdict, Leaving) and verdict.terminating for verdict in found.verdicts.values()
    )
    assert found.verdicts.keys() == {key(1), key(1, port=8081)}
    kept = serving(claim({"terminating": "KeepWhileServing"}, (HTTP,), mid_write(ending)))
    assert (dict(kept.verdicts), kept.keeps(stored(instance(1))) is not None) == ({}, True)


def test_a_renumbered_secure_port_is_kept_as_well() -> None:
    """The plain port is clear, and yet the instance would get one of two secure ports."""
    tls = replace(TLS, selects=True)
    ports = [
        (EndpointPort(name="http", port=8080), EndpointPort(name="https", port=port))
        for port in (8443, 8444)
    ]
    slices = tuple(
        replace(one, ports=its) for one, its in zip(mid_write(endpoint(1)), ports, strict=True)
    )
    found = serving(claim(ENCRYPTED, (tls,), slices))
    assert dict(found.verdicts) == {}
    why = (
        "pod rating-1 is in EndpointSlices with different numbers for port https of Service rating"
    )
    assert (found.unclear, found.warnings) == ([why], ())


def test_a_renumbered_port_of_two_services_is_no_ambiguity() -> None:
    """The controller has written the slices of the second one already."""
    headless = service("rating-headless", cluster_ips=("None",))
    written = numbered(1, port=8081, of="rating-headless", by=SLICE_CONTROLLER)
    found = serving(claim({}, (HTTP, headless), (*mid_write(endpoint(1)), written)))
    assert (dict(found.verdicts), len(found.unplaced)) == ({}, 1)


def test_in_mode_service_a_renumbered_pod_serves_on() -> None:
    """Callers use the Service's own port."""
    found = serving(at_services((HTTP,), mid_write(endpoint(1))))
    assert {one.instance.status.value for one in found.wanted.values()} == {"UP"}


def test_a_limit_counts_the_two_numbers_of_a_pod() -> None:
    """Each is an endpoint that callers use, and the percentage is of the endpoints."""
    for limit, number in ((1, 1), ("50%", 1), (2, 2)):
        found = FakeWorld()
        found.cluster.apply(syncer(limit=limit), BY_HAND, *PODS_BY_HAND)
        found.run()
        assert len(found.statuses()) == number


# --- What the sentence blames ---------------------------------------------------------------------


def test_slices_of_host_names_are_told_and_prove_nothing() -> None:
    """Mode pod needs IP addresses. What stands is kept."""
    hosts = replace(piece(endpoint(1, pod=None, address="rating.example.com")), address_type="FQDN")
    found = claim({}, (BY_HAND,), (hosts,))
    assert isinstance(found, NotServed)
    assert "are of addressType FQDN, and mode pod registers IP addresses" in found.message
    empty = claim({}, (BY_HAND,), (replace(hosts, endpoints=()),))
    assert isinstance(empty, Serving)


def test_the_object_to_correct_is_named() -> None:
    """It is the slice of another writer, or the Service, and not the syncer."""
    alone = claim({}, (BY_HAND,), (stray(),))
    named = replace(HTTP, ports=(ServicePort(name="http", port=80, target="http"),))
    lacking = claim({}, (named,), (replace(HTTP_SLICE, ports=()),))
    late = claim({}, (HTTP,), (replace(HTTP_SLICE, ports=()),))
    missing = claim({"port": "grpc"}, (HTTP,), (HTTP_SLICE,))
    for found, edit in (
        (alone, "endpointslice rating-stray"),
        (lacking, "service rating"),
        (late, "service rating"),
        (missing, ""),
    ):
        assert isinstance(found, NotServed)
        assert (found.reason, found.edit) == ("NoSuchPort", edit)
