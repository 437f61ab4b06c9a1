"""An app has no UP instance any more while a ready pod waits: never a success, whatever the
reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eurekube_sync.apply.lost import Lost
from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.cli.monitoring.metrics import GOOD, LOST, measured
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.loop import Schedule, run_passes
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.scope import ALLOWED_APPS, Scope
from eurekube_sync.desired.spec import DRAIN_ANNOTATION
from eurekube_sync.model.errors import RegistryUnavailable
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import (
    ConditionStatus,
    Endpoint,
    EndpointPort,
    EventRecord,
    ServicePort,
    SyncerRef,
)
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.controller.test_reconcile import add_app
from tests.unit.worlds.build import (
    NS,
    OUT,
    REF,
    changed,
    endpoint,
    foreign,
    key,
    piece,
    service,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld

METRICS = ServicePort(name="metrics", port=9090, target=9090)
HTTP = ServicePort(name="http", port=80, target=8080)


class Rollout(FakeWorld):
    """A world in which a new version of the app is rolled out."""

    new_port = 8080  # where the new version listens

    def pods(self, *endpoints: Endpoint) -> None:
        """These pods of the new version are behind the Service now."""
        self.cluster.apply(piece(*endpoints, port=self.new_port))


def setting(**spec: Any) -> Rollout:
    """One pod, among other apps."""
    world = Rollout()
    world.sightings = Sightings()
    for number, name in enumerate(("x", "y"), 50):
        add_app(world, name, number)
    world.cluster.apply(syncer(**spec), service("rating", HTTP), piece(endpoint(1)))
    world.run()
    return world


def rolled(world: Rollout) -> None:
    """The next pod is ready, and then the last old one ends."""
    world.pods(endpoint(1), endpoint(2))
    passes(world, 1)
    world.pods(endpoint(1, ready=False, terminating=True), endpoint(2))
    world.cluster.ended.add("uid-of-rating-1")
    passes(world, 1)
    world.pods(endpoint(2))


def passes(world: Rollout, number: int) -> None:
    """This many passes, with a minute between them."""
    for _ in range(number):
        world.later(60)
        world.run()


def code(report: PassReport) -> ExitCode:
    """The exit code in a mode that fails as seldom as any."""
    return of_report(report, fail_on_held=False, detailed=False)


def lost_events(world: Rollout) -> list[EventRecord]:
    """The events about the loss."""
    return [event for event in world.cluster.events if event.reason == Reason.LAST_INSTANCE_LOST]


def no_such_port(world: Rollout) -> None:
    """The syncer's port has no such name, and the new version listens on another number than
    before."""
    world.new_port = 9000
    world.cluster.apply(syncer(port="no-such-port"))


def ambiguous_port(world: Rollout) -> None:
    """Two ports fit, and the new version listens on neither of the old numbers."""
    world.new_port = 9000
    world.cluster.apply(service("rating", replace(HTTP, name="web"), METRICS))


def ambiguous_service(world: Rollout) -> None:
    """A chart adds a metrics Service with the same labels, and the new version listens on another
    number."""
    world.new_port = 9000
    api = replace(HTTP, name="api")
    world.cluster.apply(service("rating", api), service("metrics", METRICS))
    slices = piece(endpoint(2), service="metrics", port=9090, port_name="metrics")
    world.cluster.apply(replace(slices, name="metrics-1"))


def not_granted(world: Rollout) -> None:
    """The Namespace grants another app."""
    world.scope = Scope(granted_only=True)
    world.cluster.annotations[NS] = {ALLOWED_APPS: "x, y"}


def with_two_ports(world: Rollout) -> None:
    """The Service gets a second port, which only the slice of an unready pod has (yet)."""
    world.cluster.apply(service("rating", HTTP, replace(HTTP, name="https", port=443)))
    ports = (*piece().ports, EndpointPort(name="https", port=8443))
    world.cluster.apply(replace(piece(endpoint(3, ready=False), name="newer"), ports=ports))


def no_second_port(world: Rollout) -> None:
    """Too little is known of the new pod."""
    with_two_ports(world)
    world.cluster.apply(syncer(port="http", securePort="https"))


def no_first_port(world: Rollout) -> None:
    """The same, and not even its id is known."""
    with_two_ports(world)
    world.cluster.apply(syncer(port="https", securePort="http"))


def taken(world: Rollout) -> None:
    """Another owner has the id of the new pod."""
    world.registry.put(changed(foreign(), key=key(2)))


def refused(world: Rollout) -> None:
    """Eureka refuses the new one."""
    world.registry.refuse_register[key(2)] = RegistryUnavailable("no")


def rival(world: Rollout) -> None:
    """An older suspended syncer has the address of the new pod."""
    world.cluster.apply(syncer("older", created=1, suspend=True))


WHATEVER = (
    no_such_port,
    ambiguous_port,
    ambiguous_service,
    not_granted,
    no_second_port,
    no_first_port,
    taken,
    refused,
    rival,
)


@pytest.mark.parametrize("why", WHATEVER)
def test_a_lost_app_is_never_exit_0_whatever_the_reason(why: Callable[[Rollout], None]) -> None:
    """In the pass that loses it, and in each later one. The condition, one event and the metric say
    so. When the cause is gone, all is well."""
    world = setting()
    stood = (world.scope, list(world.cluster.services), dict(world.cluster.annotations))
    why(world)
    rolled(world)
    world.registry.held.pop(key(1), None)  # it may have been kept back, and Eureka lost it
    passes(world, 2)
    report = world.run()
    assert report.lost == {REF: Lost("RATING", 1)}
    assert code(report) is not ExitCode.OK
    assert code(report) is ExitCode.APP_LOST or report.outcomes.failures
    gauges, _ = measured(report, ExitCode.APP_LOST, now=0)
    assert gauges[LOST] == {(): 1.0}
    status = world.cluster.syncers[REF].status
    ready = status.condition("Ready") if status else None
    assert ready is not None
    assert (ready.status, ready.reason) == (ConditionStatus.FALSE, Reason.LAST_INSTANCE_LOST)
    assert ready.message.startswith(
        "app RATING has no UP instance in Eureka, and 1 ready endpoint of it waits: "
    )
    assert [event.warning for event in lost_events(world)] == [True]

    world.scope, world.cluster.services, world.cluster.annotations = stood
    world.cluster.slices = [one for one in world.cluster.slices if one.service != "metrics"]
    world.new_port = 8080
    world.pods(endpoint(2))
    world.cluster.syncers.pop(SyncerRef(NS, "older"), None)
    world.registry.refuse_register.clear()
    world.registry.held.pop(key(2), None)
    world.cluster.apply(syncer())
    world.cluster.syncers[REF] = replace(world.cluster.syncers[REF], created=1000)
    passes(world, 1)
    report = world.run()
    assert (report.lost, code(report)) == ({}, ExitCode.OK)
    gauges, _ = measured(report, ExitCode.OK, now=0)
    assert gauges[LOST] == {(): 0.0}


def suspended(world: Rollout) -> None:
    """A person suspends the syncer."""
    world.cluster.apply(syncer(suspend=True))


def limit_0(world: Rollout) -> None:
    """A person detaches it."""
    world.cluster.apply(syncer(limit=0))


def limit_0_and_not_served(world: Rollout) -> None:
    """The same, and the port is missing as well."""
    world.cluster.apply(syncer(limit=0, port="no-such-port"))


def drained(world: Rollout) -> None:
    """A person drains the Service."""
    world.cluster.apply(replace(service("rating", HTTP), annotations={DRAIN_ANNOTATION: "true"}))


def drained_and_not_served(world: Rollout) -> None:
    """The same, and the port is missing as well."""
    drained(world)
    no_such_port(world)


def deleted(world: Rollout) -> None:
    """A person deletes the syncer."""
    world.cluster.delete(REF)


def its_own(world: Rollout) -> None:
    """The pod registers itself, and callers need no more than that."""
    own = foreign("rating-2:rating:8080")
    mine = world.registry.held[key(1)].instance
    world.registry.put(
        changed(own, ip_addr="10.0.0.2", host_name="10.0.0.2", port=mine.port, vip_address="rating")
    )


@pytest.mark.parametrize(
    "wish",
    [suspended, limit_0, limit_0_and_not_served, drained, drained_and_not_served, deleted, its_own],
)
def test_what_a_person_asked_for_is_no_loss(wish: Callable[[Rollout], None]) -> None:
    """The app has no UP instance of ours, and this is right."""
    world = setting()
    wish(world)
    rolled(world)
    passes(world, 3)
    report = world.run()
    assert (report.lost, code(report)) == ({}, ExitCode.OK)
    assert lost_events(world) == []


def test_a_stray_slice_makes_no_endpoint_wait() -> None:
    """kube-proxy ignores it, and so does the syncer. The app has no pod any more."""
    world = setting()
    no_such_port(world)
    stray = piece(endpoint(9), name="stray", port=514, port_name="syslog")
    world.cluster.apply(piece(), replace(stray, managed_by="another.example.com"))
    world.cluster.ended.add("uid-of-rating-1")
    passes(world, 3)
    assert key(1) not in world.registry.held
    assert world.run().lost == {}


def test_an_app_without_a_ready_pod_is_not_lost() -> None:
    """It is down in the cluster as well."""
    world = setting(notReady="Cancel")
    no_such_port(world)
    world.cluster.apply(piece(endpoint(1, ready=False), endpoint(2, ready=False, terminating=True)))
    world.cluster.ended.add("uid-of-rating-1")
    passes(world, 3)
    assert world.run().lost == {}


def test_a_syncer_that_never_registered_anything_has_lost_nothing() -> None:
    """A team's first mistake must not make the whole installation fail."""
    world = setting()
    world.cluster.apply(syncer("new", selector={"app": "new"}, port="none"))
    world.cluster.apply(
        service("new", HTTP, labels={"app": "new"}), piece(endpoint(3), service="new")
    )
    passes(world, 1)
    report = world.run()
    assert (report.lost, code(report)) == ({}, ExitCode.OK)


def test_a_renamed_syncer_that_is_not_served_keeps_the_app_of_the_old_one() -> None:
    """A person deleted the old one, and not the app. Its instance waits for the new one."""
    world = setting()
    world.cluster.apply(syncer("heir", hostName="nodeName", created=2000))
    passes(world, 1)
    deleted(world)
    for _ in range(3):
        world.later(60)
        assert world.run().lost == {}


def test_a_renamed_syncer_that_is_not_granted_loses_the_app_of_the_old_one() -> None:
    """A person deleted the old one, and not the app, and nothing waits for a syncer that the
    operator does not allow. Each later pass says so as well."""
    world = setting()
    world.scope = Scope(granted_only=True)
    world.cluster.annotations = {NS: {ALLOWED_APPS: "rating"}}
    heir = SyncerRef(NS, "heir")
    world.cluster.apply(syncer("heir", vipAddress="foreign", created=2000))
    passes(world, 1)
    deleted(world)
    for _ in range(3):
        world.later(60)
        report = world.run()
        assert report.lost == {heir: Lost("RATING", 1)}
        assert code(report) is ExitCode.APP_LOST


def test_an_out_of_service_instance_is_no_loss() -> None:
    """A person took the last one out."""
    world = setting()
    world.registry.override(key(1), OUT)
    passes(world, 2)
    assert world.run().lost == {}


def test_a_dry_run_counts_what_it_would_register_as_registered() -> None:
    """The app is lost now, and the next pass brings it back."""
    world = setting()
    no_such_port(world)
    rolled(world)
    passes(world, 2)
    assert world.run(dry_run=True).lost == {REF: Lost("RATING", 1)}
    world.cluster.apply(syncer())
    assert world.run(dry_run=True).lost == {}


def test_it_is_not_judged_while_eureka_cannot_be_read() -> None:
    """Its own exit code says that."""
    world = setting()
    no_such_port(world)
    rolled(world)
    passes(world, 2)
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="away")
    report = world.run()
    assert (report.lost, code(report)) == ({}, ExitCode.EUREKA_UNREAD)


@pytest.mark.parametrize("passes_", [1, 2, None], ids=["once", "--passes", "--daemon"])
def test_in_every_mode_the_last_code_is_that_of_a_lost_app(passes_: int | None) -> None:
    """A daemon that is stopped says it, too."""
    world = setting()
    no_such_port(world)
    rolled(world)
    passes(world, 2)
    world.clock.stopped = passes_ is None
    schedule = Schedule(passes=passes_, fail_on_held=False)
    assert (
        run_passes(world.run, world.clock, schedule, lambda _report, _code: None)
        is ExitCode.APP_LOST
    )


def test_such_a_pass_is_a_good_one_that_did_all_it_could() -> None:
    """Else another alert would say that the program does not run."""
    assert ExitCode.APP_LOST in GOOD


@pytest.mark.parametrize(
    "spec",
    [
        {"limit": "a few"},
        {"selector": {"app": "none"}},
        {"selector": {"app": "rating", "namespace": "else"}},
    ],
)
def test_a_spec_that_selects_nothing_has_nothing_that_waits(spec: dict[str, Any]) -> None:
    """It is wrong, or finds no Service, or selects where it may not."""
    world = setting()
    world.cluster.apply(syncer(**spec))
    rolled(world)
    passes(world, 3)
    assert key(1) not in world.registry.held
    assert world.run().lost == {}


@pytest.mark.parametrize("port", ["http", "no-such-port"])
def test_an_app_that_could_not_change_its_name_is_not_lost(port: str) -> None:
    """Callers reach its pod under the old name."""
    world = setting()
    world.registry.refuse_register[InstanceKey("OTHER", key(1, app="other").id)] = (
        RegistryUnavailable("no")
    )
    world.cluster.apply(syncer(appName="other", port=port))
    passes(world, 3)
    assert key(1) in world.registry.held
    assert world.run().lost == {}


def test_endpoints_that_wait_for_different_reasons_count_once_each() -> None:
    """Of one too little is known, and another owner has the id of the other."""
    world = setting()
    no_second_port(world)
    slices = {one.name: one for one in world.cluster.slices}
    world.cluster.apply(replace(slices["newer"], endpoints=(endpoint(3),)))
    world.registry.put(changed(foreign(), key=key(3)))
    rolled(world)
    world.registry.held.pop(key(1), None)
    passes(world, 2)
    assert world.run().lost == {REF: Lost("RATING", 2)}
