"""The drain annotation, through whole passes."""

from __future__ import annotations

from typing import Any, assert_never

import pytest

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.cli.output.report import sentences
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.catalog import DRAINED, Kind
from eurekube_sync.desired.claims import Serving, Taken
from eurekube_sync.desired.spec import DRAIN_ANNOTATION
from eurekube_sync.model.actions import Grounds, Update
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.kubernetes import (
    EndpointPort,
    EndpointSlice,
    Node,
    Pod,
    PodRef,
    Service,
    ServicePort,
    SyncerRef,
)
from eurekube_sync.model.ownership import POD, SYNCER
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import LastSeen
from eurekube_sync.observe.kubernetes import unread
from tests.unit.worlds.build import (
    DENIED,
    NS,
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

A, B = (f"RATING 10.0.0.{number}:8080" for number in (1, 2))


def drained(of: Service, value: str = "true") -> Service:
    """The Service with the drain annotation."""
    return replace(of, annotations={DRAIN_ANNOTATION: value})


def setting(**spec: Any) -> FakeWorld:
    """An app in sync. The brake does not hold the removal of its last instances."""
    world = FakeWorld()
    world.brake = BrakeLimits(loss_percent=100, apps_percent=100, apps_floor=10)
    world.cluster.apply(service(), piece(endpoint(1), endpoint(2)), syncer(**spec))
    world.cluster.apply(
        syncer("other", selector={"app": "other"}), service("other", labels={"app": "other"})
    )
    world.cluster.apply(piece(endpoint(99), service="other"))
    world.registry.put(foreign())
    world.run()
    return world


@pytest.mark.parametrize("not_ready", ["Down", "Cancel"])
def test_a_drained_service_is_down_until_the_annotation_is_removed(not_ready: str) -> None:
    """They stay registered, whatever `notReady` says. After a restart of Eureka they are not
    registered again."""
    world = setting(notReady=not_ready)
    world.cluster.apply(drained(service()))
    plan = world.run().plan
    assert {action.grounds for action in plan.of(Update)} == {Grounds.DRAINED}
    assert (world.statuses()[A], world.statuses()[B]) == ("DOWN", "DOWN")
    assert world.run().plan.changes == ()
    world.registry.held.clear()
    world.run()
    assert A not in world.statuses(), "a drained instance is not brought back"
    world.cluster.apply(service())
    world.run()
    assert (world.statuses()[A], world.statuses()[B]) == ("UP", "UP")


def test_one_drained_service_of_several_is_enough() -> None:
    """A pod is behind two Services, and one of them is drained."""
    world = setting()
    twin = service("rating-headless", cluster_ips=("None",))
    world.cluster.apply(drained(twin), piece(endpoint(1), service="rating-headless"))
    report = world.run()
    assert (world.statuses()[A], world.statuses()[B]) == ("DOWN", "UP")
    assert [action.why for action in report.plan.changes] == [
        "Service rating-headless has the annotation eurekube.io/drain"
    ]


def test_only_true_drains() -> None:
    """Kubernetes writes booleans like this."""
    world = setting()
    world.cluster.apply(drained(service(), "false"))
    assert world.run().plan.changes == ()


def test_a_drained_address_of_a_service_is_down() -> None:
    """The syncer is of mode service."""
    world = setting()
    world.cluster.apply(
        syncer("other", selector={"app": "other"}, mode="service", service={"address": "ClusterIP"})
    )
    world.run()
    world.cluster.apply(drained(service("other", labels={"app": "other"})))
    world.run()
    assert [status for name, status in world.statuses().items() if name.startswith("OTHER")] == [
        "DOWN"
    ]


FAILED = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
PORTS = (
    ServicePort(name="http", port=80, target=8080),
    ServicePort(name="admin", port=81, target=9090),
)


def slice_of(*numbers: int, ready: tuple[int, ...] = (1, 2, 3)) -> EndpointSlice:
    """The slice with these pods."""
    return piece(*[endpoint(number, ready=number in ready) for number in numbers or (1, 2)])


def two_pods(**spec: Any) -> FakeWorld:
    """Two pods in sync, whose drain annotations are read."""
    world = setting(**spec)
    world.pod_drains = True
    drain(world)
    world.run()
    return world


def drain(world: FakeWorld, *numbers: int) -> None:
    """Put the annotation on these pods and on no others. Their list can be read."""
    world.cluster.unknown.clear()
    refs = [end.pod for end in map(endpoint, numbers) if end.pod]
    world.cluster.pods[NS] = tuple(
        Pod(name=r.name, uid=r.uid, annotations={DRAIN_ANNOTATION: "true"}) for r in refs
    )


def blind(world: FakeWorld, source: Unknown = DENIED) -> None:
    """Make the list of pods fail."""
    world.cluster.unknown["pods", NS] = source


def up_and_down(world: FakeWorld) -> tuple[str | None, str | None]:
    """The statuses of both pods' instances."""
    return world.statuses().get(A), world.statuses().get(B)


def mark(world: FakeWorld) -> str | None:
    """The mark of the first pod's instance, which names what drains it."""
    return next(
        one.metadata.get(DRAINED)
        for one in world.registry.held.values()
        if one.instance.ip_addr == "10.0.0.1"
    )


def code(report: PassReport) -> ExitCode:
    """The exit code of a pass."""
    return of_report(report, fail_on_held=True, detailed=False)


def test_a_drained_pod_takes_its_own_instance_down() -> None:
    """The other instance stays UP. When the annotation is gone, the instance is UP again, without
    the mark."""
    world = two_pods()
    drain(world, 1)
    plan = world.run().plan
    assert [(action.grounds, action.why.split()[0]) for action in plan.of(Update)] == [
        (Grounds.DRAINED, "pod")
    ]
    assert (up_and_down(world), mark(world)) == (("DOWN", "UP"), "pod")
    status = world.cluster.syncers[REF].status
    ready = status.condition("Ready") if status else None
    assert ready is not None
    assert ready.message == "1 of 2 UP as RATING; 1 drained"
    assert world.run().plan.changes == ()
    drain(world)
    world.run()
    assert (up_and_down(world), mark(world)) == (("UP", "UP"), None)


def test_an_address_without_a_pod_is_not_drained() -> None:
    """A bare address has no Pod."""
    world = two_pods()
    drain(world, 1)
    world.cluster.apply(piece(endpoint(2), endpoint(3), endpoint(5, pod=None)))
    world.run()
    assert {
        status for name, status in world.statuses().items() if name.startswith("RATING 10.0.0.")
    } == {"UP"}


@pytest.mark.parametrize("source", [DENIED, FAILED], ids=["denied", "failed"])
def test_while_drains_are_unknown_drained_instances_stay_down_and_others_are_served(
    source: Unknown,
) -> None:
    """Each pass is a new process. UP instances stay UP, new pods are registered, and a deletion
    does not wait."""
    world = two_pods()
    drain(world, 1)
    world.run()
    blind(world, source)
    world.cluster.apply(slice_of(1, 2, 3))
    report = world.run()
    assert up_and_down(world) == ("DOWN", "UP")
    assert world.statuses()["RATING 10.0.0.3:8080"] == "UP"
    assert report.desired is not None
    assert {type(claim) for claim in report.desired.claims.values()} == {Serving}
    assert world.run().plan.changes == ()
    world.cluster.delete(REF)
    world.run()
    world.later(60)
    world.run()
    assert up_and_down(world) == (None, None)


def test_a_missing_right_is_reported_once_and_is_no_failure() -> None:
    """The report has one sentence. The syncers' conditions have the same text in every pass."""
    world = two_pods()
    blind(world)
    report = world.run()
    told = f"{DENIED.message}: grant it, or leave out --drain-annotations"
    assert [sentence for sentence in sentences(report) if "drain" in sentence] == [
        f"drain annotations of Pods of {NS}: {told}"
    ]
    assert code(report) is ExitCode.OK
    status = world.cluster.syncers[REF].status
    ready = status.condition("Ready") if status else None
    assert ready is not None
    assert ready.message.endswith(f"drain annotations of Pods are not read: {told}")
    world.run()
    assert f"write_status {REF}" not in world.wire.calls


def test_a_list_that_fails_otherwise_is_a_failure_as_of_any_list() -> None:
    """The list can be read another time, so no syncer's condition mentions it."""
    world = two_pods()
    blind(world, FAILED)
    report = world.run()
    assert code(report) is ExitCode.KUBERNETES_UNREAD
    assert [sentence for sentence in sentences(report) if "drain" in sentence] == [
        f"drain annotations of Pods of {NS}: no answer"
    ]
    assert f"write_status {REF}" not in world.wire.calls


def test_pods_listed_for_another_reason_are_not_listed_twice() -> None:
    """Pods are listed for their metadata. A failed list is reported once."""
    world = two_pods(metadataFrom=[{"key": "tier", "podLabel": "tier"}])
    drain(world, 1)
    world.run()
    assert up_and_down(world) == ("DOWN", "UP")
    assert "list_pods" in world.wire.verbs()
    assert "list_pod_drains" not in world.wire.verbs()
    blind(world, FAILED)
    assert [failed.name for failed in unread(world.run().view)] == [f"Pods of {NS}"]


def test_a_drained_service_of_mode_service_without_a_ready_endpoint_stays_down() -> None:
    """With `notReady: Cancel` an instance without endpoints is cancelled, and the mark of its drain
    would be lost."""
    world = setting()
    labels = {"app": "other"}
    address = {"address": "ClusterIP"}
    world.cluster.apply(
        syncer("other", selector=labels, mode="service", notReady="Cancel", service=address)
    )

    def other(*, is_drained: bool, ready: bool) -> list[str]:
        plain = service("other", labels=labels)
        world.cluster.apply(drained(plain) if is_drained else plain)
        world.cluster.apply(piece(endpoint(99, ready=ready), service="other"))
        for _ in range(2):
            world.later(30)
            world.run()
        return [status for name, status in world.statuses().items() if name.startswith("OTHER")]

    assert other(is_drained=False, ready=True) == ["UP"]
    assert other(is_drained=True, ready=True) == ["DOWN"]
    assert other(is_drained=True, ready=False) == ["DOWN"]
    assert other(is_drained=False, ready=False) == []
    assert other(is_drained=False, ready=True) == ["UP"]


def test_a_node_port_of_a_node_that_is_not_ready_says_so() -> None:
    """The Service has a ready endpoint, so that is not the reason."""
    world = two_pods()
    address, labels = {"address": "NodePort"}, {"app": "ports"}
    port = ServicePort(name="http", port=80, target=8080, node_port=30080)
    world.cluster.apply(
        syncer("ports", selector=labels, mode="service", service=address),
        service("ports", port, labels=labels, type="NodePort"),
        piece(endpoint(7), service="ports"),
    )
    nodes = [
        Node(name=name, internal=(host,))
        for name, host in (("node-a", "10.1.0.1"), ("node-b", "10.1.0.2"))
    ]
    world.cluster.nodes = Complete(data=tuple(nodes))
    world.run()
    world.cluster.nodes = Complete(data=(replace(nodes[0], ready=False), nodes[1]))
    (update,) = world.run(dry_run=True).plan.of(Update)
    assert (update.instance.ip_addr, update.why) == ("10.1.0.1", "node node-a is not ready")


def test_a_pod_that_was_only_not_ready_comes_up_although_the_list_fails() -> None:
    """The missing right keeps drained pods DOWN, and nothing else."""
    world = two_pods()
    world.cluster.apply(slice_of(1, 2, ready=(2,)))
    world.run()
    assert up_and_down(world) == ("DOWN", "UP")
    blind(world)
    world.cluster.apply(slice_of())
    world.run()
    assert up_and_down(world) == ("UP", "UP")


def test_another_pod_at_the_address_of_a_drained_one_is_not_drained() -> None:
    """The mark names the pod that had the annotation."""
    world = two_pods()
    drain(world, 1)
    world.run()
    blind(world)
    other = replace(endpoint(1), pod=PodRef("rating-9", "uid-9"))
    world.cluster.apply(piece(other, endpoint(2)))
    world.run()
    assert up_and_down(world) == ("UP", "UP")


@pytest.mark.parametrize("unready", [False, True], ids=["ready", "unready for a while"])
@pytest.mark.parametrize(
    ("spec", "becomes"), [({"appName": "fresh"}, "FRESH"), ({"port": "admin"}, "RATING")]
)
def test_a_drained_pod_does_not_become_up_under_another_name_or_port(
    spec: dict[str, Any], becomes: str, unready: bool
) -> None:
    """The name or the port changes while drains cannot be read. The instance with the pod's mark
    stays, and every pass says so; the other pod moves. Later passes that can read drains continue
    or end the drain."""
    world = two_pods(notReady="Cancel")
    world.cluster.apply(service("rating", *PORTS))
    drain(world, 1)
    world.run()
    blind(world)
    world.cluster.apply(syncer(notReady="Cancel", **spec))
    number = 9090 if "port" in spec else 8080

    def pods(*ready: int) -> None:
        both = slice_of(1, 2, ready=ready)
        if "port" in spec:
            both = replace(
                both,
                ports=(EndpointPort(name="http", port=8080), EndpointPort(name="admin", port=9090)),
            )
        world.cluster.apply(both)

    for ready in [(2,), (1, 2)] if unready else [(1, 2)]:
        pods(*ready)
        for _ in range(2):
            world.later(60)
            world.run()
            mine = {
                name: status
                for name, status in world.statuses().items()
                if "10.0.0." in name and "99" not in name
            }
            assert mine == {A: "DOWN", f"{becomes} 10.0.0.2:{number}": "UP"}
            assert mark(world) == "pod"
    assert world.run().plan.changes == ()
    drain(world)
    world.run()
    assert (world.statuses().get(A), world.statuses()[f"{becomes} 10.0.0.1:{number}"]) == (
        None,
        "UP",
    )


def test_a_pod_is_drained_for_all_syncers_while_drains_cannot_be_read() -> None:
    """This includes a syncer that is created meanwhile. An UP instance of another syncer stays
    UP."""
    world = two_pods()
    drain(world, 1)
    world.run()
    blind(world)
    world.cluster.apply(syncer("later", appName="later"))
    world.run()
    assert world.statuses().get("LATER 10.0.0.1:8080") is None
    assert world.statuses()["LATER 10.0.0.2:8080"] == "UP"
    drain(world)
    world.run()
    assert world.statuses()["LATER 10.0.0.1:8080"] == "UP"
    other = changed(world.registry.held[key(1)], status=InstanceStatus.DOWN)
    world.registry.held[key(1)] = changed(other, metadata={**other.metadata, DRAINED: "pod"})
    blind(world)
    assert world.run().plan.removals == ()


def test_another_pod_at_the_address_stays_up_whatever_the_mark_of_its_pod_elsewhere_says() -> None:
    """There is no proof for its removal. A mark alone turns no UP instance DOWN."""
    world = two_pods()
    world.cluster.apply(syncer("later", appName="later"))
    drain(world, 1)
    world.run()
    standing = world.registry.held[key(1)]
    world.registry.held[key(1)] = changed(
        standing, status=InstanceStatus.UP, metadata={**standing.metadata, POD: "gone/uid-of-gone"}
    )
    world.registry.held[key(1, app="later")] = changed(
        standing, key=key(1, app="later"), metadata={**standing.metadata, SYNCER: f"{NS}/later"}
    )
    blind(world)
    assert world.run().plan.removals == ()


def test_the_instance_of_a_pod_that_is_gone_is_removed_drained_or_not() -> None:
    """An unreadable drain keeps no instance that the slices lack, and a dead pod is not registered
    again."""
    world = two_pods()
    drain(world, 1)
    world.run()
    blind(world)
    world.cluster.apply(slice_of(2))
    world.run()
    assert up_and_down(world) == (None, "UP")
    world.registry.held.clear()
    world.run()
    assert up_and_down(world) == (None, "UP")


def test_a_drained_pod_that_turns_unready_is_not_cancelled() -> None:
    """A cancel would forget the mark. The instance stays DOWN under `notReady: Cancel`, also while
    drains cannot be read."""
    world = two_pods(notReady="Cancel")
    drain(world, 1)
    world.run()
    world.cluster.apply(slice_of(1, 2, ready=(2,)))
    assert world.run().plan.changes == ()
    blind(world)
    report = world.run()
    assert (report.plan.changes, up_and_down(world)) == ((), ("DOWN", "UP"))
    world.cluster.apply(slice_of())
    world.run()
    assert up_and_down(world) == ("DOWN", "UP")
    drain(world)
    world.cluster.apply(slice_of(1, 2, ready=(2,)))
    world.run()
    assert up_and_down(world) == (None, "UP")


def test_a_drain_by_two_ends_with_the_later() -> None:
    """While the pods cannot be read, the end of the Service's drain turns no instance UP."""
    world = two_pods()
    drain(world, 1)
    world.cluster.apply(drained(service()))
    world.run()
    assert mark(world) == "service,pod"
    blind(world)
    assert world.run().plan.changes == ()
    world.cluster.apply(service())
    world.run()
    assert (up_and_down(world), mark(world)) == (("DOWN", "UP"), "pod")
    world.cluster.apply(drained(service()))
    world.run()
    assert mark(world) == "service,pod"
    drain(world)
    world.run()
    assert mark(world) == "service"


def test_nothing_is_turned_down_for_a_mark_alone() -> None:
    """A person set the instance UP in Eureka. While drains cannot be read, nothing proves that it
    should be DOWN."""
    world = two_pods()
    drain(world, 1)
    world.run()
    key = next(
        key for key, one in world.registry.held.items() if one.instance.ip_addr == "10.0.0.1"
    )
    world.registry.held[key] = changed(world.registry.held[key], status=InstanceStatus.UP)
    blind(world)
    assert world.run().plan.removals == ()
    assert up_and_down(world) == ("UP", "UP")


def test_an_instance_lost_while_drains_cannot_be_read_is_registered_up() -> None:
    """The mark is lost with it. A missing right must not keep an app away after a restart of
    Eureka."""
    world = two_pods()
    drain(world, 1)
    world.run()
    blind(world)
    world.registry.held.clear()
    world.run()
    assert up_and_down(world) == ("UP", "UP")


@pytest.mark.parametrize("how", ["service", "pods"])
def test_a_person_drains_the_only_app(how: str) -> None:
    """It is all that we own, and a person asked for it, so nothing is held."""
    world = FakeWorld()
    world.pod_drains = True
    world.cluster.apply(service(), slice_of(), syncer())
    world.run()
    if how == "service":
        world.cluster.apply(drained(service()))
    else:
        drain(world, 1, 2)
    assert world.run().held is None
    assert up_and_down(world) == ("DOWN", "DOWN")


def test_the_brake_takes_a_drain_as_evidence() -> None:
    """A drain is exempt from the share of all instances, which an unready pod is not."""
    world = two_pods()
    world.brake = BrakeLimits(loss_percent=10, loss_floor=0)
    world.cluster.apply(slice_of(1, 2, ready=(2,)))
    assert world.run().held is not None
    assert up_and_down(world) == ("UP", "UP")
    drain(world, 1)
    assert world.run().held is None
    assert up_and_down(world) == ("DOWN", "UP")


def test_a_limit_counts_what_is_up() -> None:
    """A pod is drained, and another pod gets its place."""
    world = two_pods(limit=1)
    (first,) = (
        int(name[-6])
        for name, status in world.statuses().items()
        if (name in (A, B)) and status == "UP"
    )
    drain(world, first)
    world.run()
    assert up_and_down(world) == (("DOWN", "UP") if first == 1 else ("UP", "DOWN"))


def test_a_suspended_syncer_changes_nothing_for_a_drain() -> None:
    """The annotation is read all the same: a drained instance is not registered again after Eureka
    lost its leases."""
    world = two_pods()
    world.last_seen, world.renewals = LastSeen(), RenewalLedger(period=30, slack=15)
    drain(world, 1)
    world.run()
    world.cluster.apply(syncer(suspend=True))
    drain(world, 2)
    assert world.run().plan.changes == ()
    assert up_and_down(world) == ("DOWN", "UP")
    world.registry.held.clear()
    world.run()
    assert up_and_down(world) == (None, None)
    drain(world)
    world.run()
    assert up_and_down(world) == (None, "UP"), "what was DOWN is not among what this process saw UP"


def test_without_the_option_nothing_is_listed_and_only_services_drain() -> None:
    """The annotations of Pods are not read, and the instances that they drained turn UP."""
    world = two_pods()
    drain(world, 1)
    world.run()
    world.pod_drains = False
    world.run()
    assert up_and_down(world) == ("UP", "UP")
    assert "list_pod_drains" not in world.wire.verbs()


def test_while_no_syncer_serves_nothing_is_listed_for_drains() -> None:
    """A syncer that is being deleted, or of mode service, needs no such list. In mode service pods
    are no instances."""
    world = two_pods()
    world.cluster.apply(
        syncer("other", selector={"app": "other"}, mode="service", service={"address": "ClusterIP"})
    )
    world.cluster.delete(REF)
    world.run()
    assert "list_pod_drains" not in world.wire.verbs()


def say(world: FakeWorld, kind: Kind, value: str) -> None:
    """Put this annotation on the Service or the first pod."""
    match kind:
        case Kind.SERVICE:
            world.cluster.apply(drained(service(), value))
        case Kind.POD:
            ref = endpoint(1).pod
            assert ref is not None
            world.cluster.pods[NS] = (
                Pod(name=ref.name, uid=ref.uid, annotations={DRAIN_ANNOTATION: value}),
            )
        case _:
            assert_never(kind)


@pytest.mark.parametrize("kind", list(Kind))
def test_an_invalid_drain_annotation_is_reported(kind: Kind) -> None:
    """Condition and report name the object and the valid value. The annotation drains nothing."""
    world = two_pods()
    say(world, kind, "yes")
    report = world.run()
    assert up_and_down(world) == ("UP", "UP")
    where = {Kind.SERVICE: "Service rating", Kind.POD: "pod rating-1"}[kind]
    told = f"{where}: annotation eurekube.io/drain: 'yes' is ignored: write \"true\""
    assert f"syncer {REF}: Warning: {told}" in sentences(report)
    status = world.cluster.syncers[REF].status
    ready = status.condition("Ready") if status else None
    assert ready is not None
    assert told in ready.message
    say(world, kind, "false")
    assert not any("ignored" in sentence for sentence in sentences(world.run()))


def test_an_invalid_drain_annotation_is_reported_in_mode_service() -> None:
    """In that mode the Service is the instance."""
    world = setting()
    world.cluster.apply(
        syncer("other", selector={"app": "other"}, mode="service", service={"address": "ClusterIP"})
    )
    wrong = replace(
        service("other", labels={"app": "other"}), annotations={DRAIN_ANNOTATION: "yes"}
    )
    world.cluster.apply(wrong)
    told = "Service other: annotation eurekube.io/drain: 'yes' is ignored"
    assert any(told in sentence for sentence in sentences(world.run()))


@pytest.mark.parametrize("number", [8080, 9090])
def test_the_endpoints_of_a_pod_tell_together_what_cannot_be_read(number: int) -> None:
    """One Service has a pod at two numbers of its port, so the pod has two instances. Another
    Service drains it at one of them, and so does a third, whose slices are missing now. The app
    gets another name. The drained instance stays for the same reason at either number."""
    world = setting()
    team = {"team": "x"}
    port = ServicePort(name="http", port=80, target="http")
    spec: dict[str, Any] = {"selector": {"matchLabels": team}}
    for name, numbers in {"both": (8080, 9090), "single": (number,), "missing": (number,)}.items():
        world.cluster.apply(service(name, port, labels=team))
        for at in numbers:
            listed = piece(endpoint(1), service=name, name=f"{name}-{at}")
            world.cluster.apply(replace(listed, ports=(EndpointPort(name="http", port=at),)))
    world.cluster.apply(syncer("three", **spec, appName="three"))
    world.run()
    for name in ("single", "missing"):
        world.cluster.apply(drained(service(name, port, labels=team)))
    world.run()
    marked = f"THREE 10.0.0.1:{number}"
    assert world.statuses()[marked] == "DOWN"

    world.cluster.slices = [
        listed for listed in world.cluster.slices if listed.service != "missing"
    ]
    world.cluster.apply(syncer("three", **spec, appName="fresh"))
    report = world.run()
    assert world.statuses()[marked] == "DOWN"
    reasons = {
        f"{action.key.app} {action.key.id[-13:]}": action.why for action in report.plan.actions
    }
    assert reasons[marked] == (
        "a person drained an instance, and it is unknown whether it is still drained"
    )


def test_a_drained_instance_whose_address_another_syncer_has_is_left_to_that_one() -> None:
    """It has the mark of a younger syncer, which registers the pod at another port as well. The
    older one has the address, and keeps it DOWN while drains cannot be read."""
    world = two_pods()
    drain(world, 1)
    world.run()
    labels = {"app": "both"}
    world.cluster.apply(
        syncer("young", selector=labels, appName="rating", created=2000),
        service("both", ServicePort(name="http", port=80, target="http"), labels=labels),
    )
    for number in (8080, 9090):
        listed = piece(endpoint(1), service="both", name=f"both-{number}")
        world.cluster.apply(replace(listed, ports=(EndpointPort(name="http", port=number),)))
    standing = world.registry.held[key(1)]
    world.registry.held[key(1)] = changed(
        standing, metadata={**standing.metadata, SYNCER: f"{NS}/young"}
    )
    blind(world)
    report = world.run()
    assert up_and_down(world) == ("DOWN", "UP")
    assert report.desired is not None
    young = report.desired.claims[SyncerRef(NS, "young")]
    assert isinstance(young, Serving)
    assert (set(young.wanted), set(young.of(Taken))) == ({key(1, port=9090)}, {key(1)})
