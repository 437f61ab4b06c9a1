"""The drain annotation, through whole passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, assert_never

import pytest

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.cli.output.words import sentences
from eurekube_sync.controller.exit_codes import ExitCode, of_report
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.catalog import DRAINED, Kind, drainable
from eurekube_sync.desired.claims import Serving
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
)
from eurekube_sync.model.ownership import POD, SYNCER
from eurekube_sync.model.sources import Cause, Complete, Unknown
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


ALL = frozenset({Kind.POD, Kind.NODE})
FAILED = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
PORTS = (
    ServicePort(name="http", port=80, target=8080),
    ServicePort(name="admin", port=81, target=9090),
)
CASES = [(Kind.POD, {"pods": (1,)}), (Kind.NODE, {"nodes": ("node-a",)})]


def on_nodes(*numbers: int, ready: tuple[int, ...] = (1, 2, 3)) -> EndpointSlice:
    """The first pod is on `node-a`, and the others are on `node-b`."""
    ends = [endpoint(number, ready=number in ready) for number in numbers or (1, 2)]
    return piece(
        *[
            replace(end, node="node-a" if number == 0 else "node-b")
            for number, end in enumerate(ends)
        ]
    )


def on_two_nodes(*, drains: frozenset[Kind] = ALL, **spec: Any) -> FakeWorld:
    """Two pods on different nodes, in sync."""
    world = setting(**spec)
    world.drains = drains
    world.cluster.apply(on_nodes())
    drain(world)
    world.run()
    return world


def drain(world: FakeWorld, *, pods: tuple[int, ...] = (), nodes: tuple[str, ...] = ()) -> None:
    """Put the annotation on these objects and on no others. All lists can be read."""
    world.cluster.unknown.clear()
    refs = [end.pod for end in map(endpoint, pods) if end.pod]
    world.cluster.pods[NS] = tuple(
        Pod(name=r.name, uid=r.uid, annotations={DRAIN_ANNOTATION: "true"}) for r in refs
    )
    world.cluster.nodes = Complete(
        data=tuple(Node(name=name, drained=name in nodes) for name in ("node-a", "node-b"))
    )


def blind(world: FakeWorld, kind: Kind, source: Unknown = DENIED) -> None:
    """Make the list of this kind fail."""
    if kind is Kind.POD:
        world.cluster.unknown["pods", NS] = source
    else:
        world.cluster.nodes = source


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


@pytest.mark.parametrize(("kind", "drained_by"), CASES)
def test_a_drained_pod_or_node_takes_its_own_instances_down(
    kind: Kind, drained_by: dict[str, Any]
) -> None:
    """Other instances stay UP. When the annotation is gone, the instances are UP again, without the
    mark."""
    world = on_two_nodes()
    drain(world, **drained_by)
    plan = world.run().plan
    assert [(action.grounds, action.why.split()[0]) for action in plan.of(Update)] == [
        (Grounds.DRAINED, kind.value)
    ]
    assert (up_and_down(world), mark(world)) == (("DOWN", "UP"), kind.value)
    status = world.cluster.syncers[REF].status
    ready = status.condition("Ready") if status else None
    assert ready is not None
    assert ready.message == "1 of 2 UP as RATING; 1 drained"
    assert world.run().plan.changes == ()
    drain(world)
    world.run()
    assert (up_and_down(world), mark(world)) == (("UP", "UP"), None)


def test_a_pod_without_a_node_or_a_name_is_not_drained() -> None:
    """A bare address has no Pod. A Node that is in no list is not drained."""
    world = on_two_nodes()
    drain(world, pods=(1,), nodes=("node-a",))
    bare = replace(endpoint(5, pod=None), node="")
    world.cluster.apply(piece(endpoint(2), replace(endpoint(3), node="node-c"), bare))
    world.run()
    assert {
        status for name, status in world.statuses().items() if name.startswith("RATING 10.0.0.")
    } == {"UP"}


@pytest.mark.parametrize("source", [DENIED, FAILED], ids=["denied", "failed"])
@pytest.mark.parametrize(("kind", "drained_by"), CASES)
def test_while_drains_are_unknown_drained_instances_stay_down_and_others_are_served(
    kind: Kind, drained_by: dict[str, Any], source: Unknown
) -> None:
    """Each pass is a new process. UP instances stay UP, new pods are registered, and a deletion
    does not wait."""
    world = on_two_nodes()
    drain(world, **drained_by)
    world.run()
    blind(world, kind, source)
    world.cluster.apply(on_nodes(1, 2, 3))
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


@pytest.mark.parametrize("kind", [Kind.POD, Kind.NODE])
def test_a_missing_right_is_reported_once_and_is_no_failure(kind: Kind) -> None:
    """The report has one sentence. The syncers' conditions have the same text in every pass."""
    world = on_two_nodes()
    blind(world, kind)
    report = world.run()
    instead = "services" if kind is Kind.POD else "pods"
    told = f"{DENIED.message}: grant it, or set --drain-annotations {instead}"
    where = f"Pods of {NS}" if kind is Kind.POD else "Nodes"
    assert [sentence for sentence in sentences(report) if "drain" in sentence] == [
        f"drain annotations of {where}: {told}"
    ]
    assert code(report) is ExitCode.OK
    status = world.cluster.syncers[REF].status
    ready = status.condition("Ready") if status else None
    assert ready is not None
    assert ready.message.endswith(
        f"drain annotations of {kind.value.capitalize()}s are not read: {told}"
    )
    world.run()
    assert f"write_status {REF}" not in world.wire.calls


def test_a_list_that_fails_otherwise_is_a_failure_as_of_any_list() -> None:
    """The list can be read another time, so no syncer's condition mentions it."""
    world = on_two_nodes()
    blind(world, Kind.NODE, FAILED)
    report = world.run()
    assert code(report) is ExitCode.KUBERNETES_UNREAD
    assert [sentence for sentence in sentences(report) if "drain" in sentence] == [
        "drain annotations of Nodes: no answer"
    ]
    assert f"write_status {REF}" not in world.wire.calls


def test_pods_or_nodes_listed_for_another_reason_are_not_listed_twice() -> None:
    """Pods are listed for their metadata, and Nodes for node ports. A failed list is reported
    once."""
    world = on_two_nodes(metadataFrom=[{"key": "tier", "podLabel": "tier"}])
    drain(world, pods=(1,))
    world.run()
    assert up_and_down(world) == ("DOWN", "UP")
    assert {"list_pods", "list_node_drains"} <= set(world.wire.verbs())
    assert "list_pod_drains" not in world.wire.verbs()
    world.cluster.apply(
        syncer("ports", selector={"app": "rating"}, mode="service", service={"address": "NodePort"})
    )
    drain(world, nodes=("node-a",))
    world.run()
    assert up_and_down(world) == ("DOWN", "UP")
    assert "list_node_drains" not in world.wire.verbs()
    world.cluster.unknown["pods", NS] = FAILED
    world.cluster.nodes = DENIED
    assert [name for name, _ in unread(world.run().view)] == [f"Pods of {NS}", "Nodes"]


def test_a_drained_node_port_without_a_ready_endpoint_stays_down() -> None:
    """With `notReady: Cancel` an instance without endpoints is cancelled, and the mark of its drain
    would be lost. Only the other node's instance goes, and when a pod is ready again it comes back,
    and the drained one stays DOWN."""
    world = on_two_nodes()
    address, labels = {"address": "NodePort"}, {"app": "ports"}
    world.cluster.apply(
        syncer("ports", selector=labels, mode="service", notReady="Cancel", service=address),
        service(
            "ports",
            ServicePort(name="http", port=80, target=8080, node_port=30080),
            labels=labels,
            type="NodePort",
        ),
        piece(endpoint(7), service="ports"),
    )

    def node_ports(*, drained: bool, ready: bool, node_a: bool = True) -> dict[str, str]:
        world.cluster.nodes = Complete(
            data=(
                Node(name="node-a", internal=("10.1.0.1",), drained=drained, ready=node_a),
                Node(name="node-b", internal=("10.1.0.2",)),
            )
        )
        world.cluster.apply(piece(endpoint(7, ready=ready), service="ports"))
        for _ in range(2):
            world.later(30)
            world.run()
        return {
            name.split()[1]: status
            for name, status in world.statuses().items()
            if name.startswith("PORTS")
        }

    a, b = "10.1.0.1:30080", "10.1.0.2:30080"
    assert node_ports(drained=False, ready=True) == {a: "UP", b: "UP"}
    assert node_ports(drained=True, ready=True) == {a: "DOWN", b: "UP"}
    assert node_ports(drained=True, ready=False) == {a: "DOWN"}
    assert node_ports(drained=True, ready=True, node_a=False) == {a: "DOWN", b: "UP"}
    assert node_ports(drained=True, ready=True) == {a: "DOWN", b: "UP"}
    assert node_ports(drained=False, ready=True) == {a: "UP", b: "UP"}


def test_a_node_port_of_a_node_that_is_not_ready_says_so() -> None:
    """The Service has a ready endpoint, so that is not the reason."""
    world = on_two_nodes()
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


def test_a_pod_that_was_only_not_ready_comes_up_although_the_lists_fail() -> None:
    """The missing right keeps drained pods DOWN, and nothing else."""
    world = on_two_nodes()
    world.cluster.apply(on_nodes(1, 2, ready=(2,)))
    world.run()
    assert up_and_down(world) == ("DOWN", "UP")
    blind(world, Kind.POD)
    blind(world, Kind.NODE)
    world.cluster.apply(on_nodes())
    world.run()
    assert up_and_down(world) == ("UP", "UP")


def test_another_pod_at_the_address_of_a_drained_one_is_not_drained() -> None:
    """The mark names the pod that had the annotation."""
    world = on_two_nodes()
    drain(world, pods=(1,))
    world.run()
    blind(world, Kind.POD)
    other = replace(endpoint(1), node="node-a", pod=PodRef("rating-9", "uid-9"))
    world.cluster.apply(piece(other, replace(endpoint(2), node="node-b")))
    world.run()
    assert up_and_down(world) == ("UP", "UP")


@pytest.mark.parametrize("unready", [False, True], ids=["ready", "unready for a while"])
@pytest.mark.parametrize(("kind", "drained_by"), CASES)
@pytest.mark.parametrize(
    ("spec", "becomes"), [({"appName": "fresh"}, "FRESH"), ({"port": "admin"}, "RATING")]
)
def test_a_drained_pod_does_not_become_up_under_another_name_or_port(
    kind: Kind, drained_by: dict[str, Any], spec: dict[str, Any], becomes: str, unready: bool
) -> None:
    """The name or the port changes while drains cannot be read. The instance with the pod's mark
    stays, and every pass says so; the other pod moves. Later passes that can read drains continue
    or end the drain."""
    world = on_two_nodes(notReady="Cancel")
    world.cluster.apply(service("rating", *PORTS))
    drain(world, **drained_by)
    world.run()
    blind(world, kind)
    world.cluster.apply(syncer(notReady="Cancel", **spec))
    number = 9090 if "port" in spec else 8080

    def pods(*ready: int) -> None:
        both = on_nodes(1, 2, ready=ready)
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
            assert mark(world) == kind.value
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
    world = on_two_nodes()
    drain(world, pods=(1,))
    world.run()
    blind(world, Kind.POD)
    world.cluster.apply(syncer("later", appName="later"))
    world.run()
    assert world.statuses().get("LATER 10.0.0.1:8080") is None
    assert world.statuses()["LATER 10.0.0.2:8080"] == "UP"
    drain(world)
    world.run()
    assert world.statuses()["LATER 10.0.0.1:8080"] == "UP"
    other = changed(world.registry.held[key(1)], status=InstanceStatus.DOWN)
    world.registry.held[key(1)] = changed(other, metadata={**other.metadata, DRAINED: "pod"})
    blind(world, Kind.POD)
    assert world.run().plan.removals == ()


def test_another_pod_at_the_address_stays_up_whatever_the_mark_of_its_pod_elsewhere_says() -> None:
    """There is no proof for its removal. A mark alone turns no UP instance DOWN."""
    world = on_two_nodes()
    world.cluster.apply(syncer("later", appName="later"))
    drain(world, pods=(1,))
    world.run()
    standing = world.registry.held[key(1)]
    world.registry.held[key(1)] = changed(
        standing, status=InstanceStatus.UP, metadata={**standing.metadata, POD: "gone/uid-of-gone"}
    )
    world.registry.held[key(1, app="later")] = changed(
        standing, key=key(1, app="later"), metadata={**standing.metadata, SYNCER: f"{NS}/later"}
    )
    blind(world, Kind.POD)
    assert world.run().plan.removals == ()


def test_the_instance_of_a_pod_that_is_gone_is_removed_drained_or_not() -> None:
    """An unreadable drain keeps no instance that the slices lack, and a dead pod is not registered
    again."""
    world = on_two_nodes()
    drain(world, pods=(1,))
    world.run()
    blind(world, Kind.POD)
    world.cluster.apply(on_nodes(2))
    world.run()
    assert up_and_down(world) == (None, "UP")
    world.registry.held.clear()
    world.run()
    assert up_and_down(world) == (None, "UP")


def test_a_drained_pod_that_turns_unready_is_not_cancelled() -> None:
    """A cancel would forget the mark. The instance stays DOWN under `notReady: Cancel`, also while
    drains cannot be read."""
    world = on_two_nodes(notReady="Cancel")
    drain(world, pods=(1,))
    world.run()
    world.cluster.apply(on_nodes(1, 2, ready=(2,)))
    assert world.run().plan.changes == ()
    blind(world, Kind.POD)
    report = world.run()
    assert (report.plan.changes, up_and_down(world)) == ((), ("DOWN", "UP"))
    world.cluster.apply(on_nodes())
    world.run()
    assert up_and_down(world) == ("DOWN", "UP")
    drain(world)
    world.cluster.apply(on_nodes(1, 2, ready=(2,)))
    world.run()
    assert up_and_down(world) == (None, "UP")


def test_a_drain_by_two_ends_with_the_later() -> None:
    """While one of the drains cannot be read, the end of the other one turns no instance UP."""
    world = on_two_nodes()
    drain(world, pods=(1,), nodes=("node-a",))
    world.run()
    assert mark(world) == "pod,node"
    blind(world, Kind.POD)
    assert world.run().plan.changes == ()
    drain(world)
    blind(world, Kind.POD)
    world.run()
    assert (up_and_down(world), mark(world)) == (("DOWN", "UP"), "pod")
    drain(world, nodes=("node-a",))
    blind(world, Kind.POD)
    world.run()
    assert mark(world) == "pod,node"
    drain(world, nodes=("node-a",))
    world.run()
    assert mark(world) == "node"


def test_a_drained_node_that_is_deleted_turns_nothing_up() -> None:
    """Its pods are in the slices a while longer."""
    world = on_two_nodes()
    drain(world, nodes=("node-a",))
    world.run()
    world.cluster.nodes = Complete(data=(Node(name="node-b"),))
    world.run()
    assert up_and_down(world) == ("DOWN", "UP")


def test_nothing_is_turned_down_for_a_mark_alone() -> None:
    """A person set the instance UP in Eureka. While drains cannot be read, nothing proves that it
    should be DOWN."""
    world = on_two_nodes()
    drain(world, pods=(1,))
    world.run()
    key = next(
        key for key, one in world.registry.held.items() if one.instance.ip_addr == "10.0.0.1"
    )
    world.registry.held[key] = changed(world.registry.held[key], status=InstanceStatus.UP)
    blind(world, Kind.POD)
    assert world.run().plan.removals == ()
    assert up_and_down(world) == ("UP", "UP")


def test_an_instance_lost_while_drains_cannot_be_read_is_registered_up() -> None:
    """The mark is lost with it. A missing right must not keep an app away after a restart of
    Eureka."""
    world = on_two_nodes()
    drain(world, pods=(1,))
    world.run()
    blind(world, Kind.POD)
    world.registry.held.clear()
    world.run()
    assert up_and_down(world) == ("UP", "UP")


def test_all_that_drains_a_pod_is_marked() -> None:
    """Otherwise the end of one drain would turn an instance UP that is drained by another, whose
    list fails."""
    world = on_two_nodes()
    drain(world, pods=(1,))
    world.cluster.apply(replace(service(), annotations={DRAIN_ANNOTATION: "true"}))
    world.run()
    assert mark(world) == "service,pod"
    world.cluster.apply(service())
    blind(world, Kind.POD)
    world.run()
    assert up_and_down(world)[0] == "DOWN"


@pytest.mark.parametrize("how", ["service", "pods", "nodes"])
def test_a_person_drains_the_only_app(how: str) -> None:
    """It is all that we own, and a person asked for it, so nothing is held. An unready app
    waits."""
    world = FakeWorld()
    world.drains = ALL
    world.cluster.apply(service(), on_nodes(), syncer())
    drain(world)
    world.run()
    match how:
        case "service":
            world.cluster.apply(replace(service(), annotations={DRAIN_ANNOTATION: "true"}))
        case "pods":
            drain(world, pods=(1, 2))
        case _:
            drain(world, nodes=("node-a", "node-b"))
    assert world.run().held is None
    assert up_and_down(world) == ("DOWN", "DOWN")


def test_the_brake_takes_a_drain_as_evidence() -> None:
    """A drain is exempt from the share of all instances, which an unready pod is not."""
    world = on_two_nodes()
    world.brake = BrakeLimits(loss_percent=10, loss_floor=0)
    world.cluster.apply(on_nodes(1, 2, ready=(2,)))
    assert world.run().held is not None
    assert up_and_down(world) == ("UP", "UP")
    drain(world, nodes=("node-a",))
    assert world.run().held is None
    assert up_and_down(world) == ("DOWN", "UP")


def test_a_limit_counts_what_is_up() -> None:
    """A pod is drained, and another pod gets its place."""
    world = on_two_nodes(limit=1)
    (first,) = (
        int(name[-6])
        for name, status in world.statuses().items()
        if (name in (A, B)) and status == "UP"
    )
    drain(world, pods=(first,))
    world.run()
    assert up_and_down(world) == (("DOWN", "UP") if first == 1 else ("UP", "DOWN"))


def test_a_suspended_syncer_changes_nothing_for_a_drain() -> None:
    """The annotation is read all the same: a drained instance is not registered again after Eureka
    lost its leases."""
    world = on_two_nodes()
    world.last_seen, world.renewals = LastSeen(), RenewalLedger(period=30, slack=15)
    drain(world, pods=(1,))
    world.run()
    world.cluster.apply(syncer(suspend=True))
    drain(world, pods=(2,))
    assert world.run().plan.changes == ()
    assert up_and_down(world) == ("DOWN", "UP")
    world.registry.held.clear()
    world.run()
    assert up_and_down(world) == (None, None)
    drain(world)
    world.run()
    assert up_and_down(world) == (None, "UP"), "what was DOWN is not among what this process saw UP"


def test_create_only_follows_a_drain() -> None:
    """That policy allows changes between UP and DOWN, and of our marks with them."""
    world = on_two_nodes(policy="CreateOnly")
    drain(world, pods=(1,))
    world.run()
    blind(world, Kind.POD)
    world.run()
    assert (up_and_down(world), mark(world)) == (("DOWN", "UP"), "pod")
    drain(world)
    world.run()
    assert (up_and_down(world), mark(world)) == (("UP", "UP"), None)


def test_without_the_option_nothing_is_listed_and_only_services_drain() -> None:
    """The annotations of Pods and Nodes are not read, and the instances that they drained turn
    UP."""
    world = on_two_nodes()
    drain(world, pods=(1,))
    world.run()
    world.drains = frozenset()
    world.run()
    assert up_and_down(world) == ("UP", "UP")
    assert not {"list_pod_drains", "list_node_drains"} & set(world.wire.verbs())


def test_while_no_syncer_serves_nothing_is_listed_for_drains() -> None:
    """A syncer that is being deleted, or of mode service, needs no such list. In mode service pods
    are no instances."""
    world = on_two_nodes()
    world.cluster.apply(
        syncer("other", selector={"app": "other"}, mode="service", service={"address": "ClusterIP"})
    )
    world.cluster.delete(REF)
    world.run()
    assert not {"list_pod_drains", "list_node_drains"} & set(world.wire.verbs())


def say(world: FakeWorld, kind: Kind, value: str) -> None:
    """Put this annotation on the Service, the first pod or its node."""
    annotations = {DRAIN_ANNOTATION: value}
    match kind:
        case Kind.SERVICE:
            world.cluster.apply(replace(service(), annotations=annotations))
        case Kind.POD:
            ref = endpoint(1).pod
            assert ref is not None
            world.cluster.pods[NS] = (Pod(name=ref.name, uid=ref.uid, annotations=annotations),)
        case Kind.NODE:
            first = Node(name="node-a", ignored=drainable("node-a", annotations).ignored)
            world.cluster.nodes = Complete(data=(first, Node(name="node-b")))
        case _:
            assert_never(kind)


@pytest.mark.parametrize("kind", list(Kind))
def test_an_invalid_drain_annotation_is_reported(kind: Kind) -> None:
    """Condition and report name the object and the valid value. The annotation drains nothing."""
    world = on_two_nodes()
    say(world, kind, "yes")
    report = world.run()
    assert up_and_down(world) == ("UP", "UP")
    where = {Kind.SERVICE: "Service rating", Kind.POD: "pod rating-1", Kind.NODE: "node node-a"}[
        kind
    ]
    told = f"{where}: annotation eurekube.io/drain: 'yes' is ignored: write \"true\""
    assert f"syncer {REF}: warning: {told}" in sentences(report)
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
