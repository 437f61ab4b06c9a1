"""Passes that once went wrong: old lists, instances of others, slow servers, registrations that fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.actions import Cancel
from eurekube_sync.model.errors import RegistryRejected
from eurekube_sync.model.eureka import InstanceStatus, Port
from eurekube_sync.model.kubernetes import Endpoint, Node, ServicePort
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.observe.eureka import OwnWrites
from tests.unit.controller.test_reconcile import A, B, C, add_app, article, ours, pods, slow
from tests.unit.worlds.build import (
    DOWN,
    NS,
    REF,
    TERMINATING,
    UP,
    changed,
    endpoint,
    foreign,
    instance,
    key,
    piece,
    service,
    stored,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld

pytestmark = pytest.mark.usefixtures("both_ways")


def itself(number: int, status: InstanceStatus = UP, vip: str = "rating") -> object:
    """The registration that a pod makes for itself."""
    ip = f"10.0.0.{number}"
    found = changed(foreign(f"pod-{number}:8080"), host_name=ip, ip_addr=ip, port=Port(8080, True))
    return changed(found, status=status, vip_address=vip)


def test_an_instance_of_others_under_our_id_stays_when_a_duplicate_is_gone() -> None:
    """Whatever an uncached read brings up is read uncached itself before it is written."""
    world = article(cache=30)
    duplicate = itself(1)
    world.registry.put(duplicate)  # type: ignore[arg-type]
    world.later(30)
    world.registry.list_instances()
    del world.registry.held[duplicate.key]  # type: ignore[attr-defined]
    stranger = changed(foreign(), key=key(1))
    world.registry.held[key(1)] = stranger
    world.run()
    assert world.registry.held[key(1)] == stranger


@pytest.mark.parametrize("deleted", [False, True])
def test_an_unlisted_instance_of_others_with_an_unknown_status_stays(deleted: bool) -> None:
    """Eureka answers a heartbeat for it with 404. It is neither overwritten, nor cancelled with a deleted syncer."""
    world = FakeWorld(cache=30)
    of_deleted = syncer(deleted=world.clock.now(), finalizers=(CLEANUP_FINALIZER,))
    world.cluster.apply(service(), piece(endpoint(1), endpoint(2)), of_deleted if deleted else syncer())
    world.registry.list_instances()
    stranger = stored(instance(1), metadata={}, status=InstanceStatus.UNKNOWN)
    world.registry.held[key(1)] = stranger
    world.run()
    assert world.registry.held.get(key(1)) == stranger
    assert (key(2) in world.registry.held) is not deleted


def test_the_last_up_instance_stays_until_the_wrongly_listed_one_is_up() -> None:
    """The process that turned the other one DOWN was killed a moment ago, and the list does not know yet."""
    world = FakeWorld(cache=30)
    world.cluster.apply(service(), piece(endpoint(1), endpoint(2)), syncer())
    world.run()
    world.later(30)
    world.registry.list_instances()
    world.registry.held[key(2)] = changed(world.registry.held[key(2)], status=DOWN)
    world.cluster.apply(piece(endpoint(2)))
    world.run()
    assert world.registry.held[key(2)].status is UP
    assert key(1) not in world.registry.held
    written = [call.split()[0].removesuffix("_batch") for call in world.wire.writes()]
    assert written[:2] == ["register", "cancel"]


def test_one_witness_is_enough_that_an_app_keeps_an_up_instance() -> None:
    """A rolling update of many pods costs one read more, not one for each that stays. One that is DOWN is none."""
    world = FakeWorld(cache=30)
    world.cluster.apply(service(), piece(*(endpoint(n) for n in range(1, 9))), syncer())
    world.run()
    world.later(30)
    world.registry.list_instances()
    world.registry.held[key(2)] = changed(world.registry.held[key(2)], status=DOWN)
    world.cluster.apply(piece(*(endpoint(n) for n in range(2, 9))))
    world.run()
    assert sum(call.startswith("read_instance") for call in world.wire.calls) == 3
    assert [one.status for one in world.registry.held.values()] == [UP] * 7


@pytest.mark.parametrize(
    ("status", "vip", "goes", "comes"),
    [(UP, "rating", True, False), (DOWN, "rating", False, False), (UP, "another", True, True)],
)
def test_a_pod_that_registers_itself_replaces_ours_only_when_it_serves(
    status: InstanceStatus, vip: str, goes: bool, comes: bool
) -> None:
    """The last UP instance waits for one that callers find under the same name: the pod's own, or ours beside it."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(endpoint(1)), syncer())
    add_app(world, "other", 9)
    world.run()
    world.registry.put(itself(2, status, vip))  # type: ignore[arg-type]
    world.cluster.apply(piece(endpoint(2)))
    for _ in range(2):  # the last of an app goes at the second look
        world.run()
        world.later(21)
    assert (key(1) not in world.registry.held, key(2) in world.registry.held) == (goes, comes)


def test_slow_reads_leave_time_for_what_they_found() -> None:
    """100 first registrations, each read in more than a second: every pass registers some."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(*(endpoint(n) for n in range(1, 101))), syncer())
    slow(world, ("read_instance", "absent_batch"), 1.2)
    world.run(deadline=120)
    assert len(world.registry.held) > 20
    for _ in range(5):
        world.later(30)
        world.run(deadline=120)
    assert len(world.registry.held) == 100


def test_an_instance_that_was_just_written_is_no_orphan_during_a_crd_deletion() -> None:
    """The memory of a daemon asks for the CRD as the list does."""
    world = article(cache=30)
    world.own_writes = OwnWrites(seconds=45)
    world.run()
    world.later(5)
    del world.cluster.syncers[REF]
    world.cluster.crd = TERMINATING
    world.run()
    assert ours(world) == {A: "UP", B: "UP"}


def test_an_app_that_is_renamed_stays_until_the_new_name_is_registered() -> None:
    """Eureka refuses the new instances; the old ones serve on."""
    world = article()
    add_app(world, "other", 9)
    world.run()
    world.cluster.apply(syncer(port="http", appName="fresh"))
    for number in (1, 2):
        world.registry.refuse[key(number, app="fresh")] = RegistryRejected("400")
    world.later(60)
    world.run()
    assert {A, B} <= set(ours(world))


def test_an_add_that_eureka_always_refuses_changes_the_status_only_once() -> None:
    """The registered pod is unready and the new one is refused: its removal waits, and no condition changes to and
    fro."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(endpoint(1)), syncer())
    add_app(world, "other", 9)
    world.run()
    world.cluster.apply(piece(endpoint(1, ready=False), endpoint(2)))
    world.registry.refuse_register[key(2)] = RegistryRejected("400: no")
    world.run()
    told = len(world.cluster.events)
    for _ in range(8):
        world.later(30)
        report = world.run()
        assert [call for call in world.wire.writes() if not call.startswith("register")] == []
    assert (world.statuses()[A], report.held) == ("UP", None)
    assert len(world.cluster.events) == told
    status = world.cluster.syncers[REF].status
    conditions = {one.type: (one.status.value, one.reason) for one in status.conditions} if status else {}
    assert conditions["RemovalHeld"] == ("False", "NothingHeld")
    assert conditions["Synced"] == conditions["Ready"] == ("False", "PartlyFailed")


def test_a_refused_add_holds_no_removal_that_leaves_another_up() -> None:
    """Its app and VIP keep an UP instance, if another syncer's: the dead one is not kept for ever."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(endpoint(1)), syncer())
    world.cluster.apply(service("more", labels={}), piece(endpoint(5), service="more"))
    world.cluster.apply(syncer("more", appName="rating", selector={"service": "more"}))
    world.run()
    assert set(world.statuses().values()) == {"UP"}
    world.cluster.apply(piece(endpoint(1, ready=False), endpoint(2)))
    world.registry.refuse_register[key(2)] = RegistryRejected("400: no")
    world.run()
    assert world.statuses() == {A: "DOWN", "RATING 10.0.0.5:8080": "UP"}


def test_a_pod_that_cannot_move_to_a_new_name_keeps_its_old_instance() -> None:
    """It is ready, and would be nowhere."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(endpoint(1)), syncer())
    world.cluster.apply(service("more", labels={}), piece(endpoint(5), service="more"))
    world.cluster.apply(syncer("more", appName="rating", selector={"service": "more"}))
    world.run()
    world.cluster.apply(syncer(appName="fresh"))
    world.registry.refuse_register[key(1, app="fresh")] = RegistryRejected("400: no")
    for _ in range(3):
        world.run()
        world.later(30)
    assert world.statuses() == {A: "UP", "RATING 10.0.0.5:8080": "UP"}


def test_a_lowered_limit_cancels_no_pod_while_the_other_cannot_be_registered() -> None:
    """One is over the limit and could not be cancelled at once. The other expires, which the list does not show, and
    Eureka refuses it: that another syncer serves the app is no reason to cancel this one's last ready pod."""
    world = FakeWorld(cache=30)
    world.cluster.apply(service("more", labels={}), piece(endpoint(1), service="more"))
    world.cluster.apply(syncer("more", appName="rating", selector={"service": "more"}))
    world.cluster.apply(service(), piece(endpoint(5), endpoint(6)), syncer(limit=2))
    world.run()
    world.cluster.apply(syncer(limit=1))
    world.registry.refuse.update({key(5): RegistryRejected("500"), key(6): RegistryRejected("500")})
    (over,) = (action.key for action in world.run().plan.of(Cancel))
    (stays,) = {key(5), key(6)} - {over}
    del world.registry.refuse[stays]
    world.later(30)
    world.run()
    world.registry.refuse.clear()
    world.later(30)
    world.registry.list_instances()
    del world.registry.held[stays]
    world.registry.refuse_register[stays] = RegistryRejected("400: no")
    report = world.run()
    assert set(world.registry.held) == {key(1), over}
    assert report.outcomes.by_key[over].detail == "not removed, because no replacement is registered yet"
    world.registry.refuse_register.clear()
    world.run()
    assert set(world.registry.held) == {key(1), stays}


def test_leases_are_renewed_again_while_neither_the_cluster_nor_eureka_can_be_read() -> None:
    """A process that never learned whose cluster it is, and then cannot read Eureka's list either."""
    world = article()
    world.run()
    world.renewals = RenewalLedger(period=0, slack=0)
    world.cluster.uid = Unknown(cause=Cause.DENIED, message="403")
    world.later(30)
    world.run()
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="503")
    world.later(30)
    report = world.run()
    assert {outcome.action.key for outcome in report.outcomes.by_key.values()} == {key(1), key(2)}
    assert world.wire.writes() == []


def test_leases_live_while_eureka_cannot_be_read() -> None:
    """A daemon renews what it renewed before, also what the brake holds or a syncer freezes."""
    world = article()
    world.renewals = RenewalLedger(period=30, slack=15)
    world.run()
    pods(world)
    assert world.run().held is not None
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="the wire failed")
    for _ in range(25):
        world.later(30)
        world.run()
        world.registry.evict()
    assert set(world.statuses()) == {A, B}


def test_an_instance_that_came_back_after_its_cancel_is_cancelled_again() -> None:
    """A late heartbeat on another peer revives it; a memory of the cancel hides it not, nor is it renewed."""
    world = article()
    world.own_writes = OwnWrites(seconds=45)
    world.run()
    revived = world.registry.held[key(2)]
    pods(world, endpoint(1))
    world.run()
    world.registry.held[key(2)] = revived
    world.later(10)
    world.run()
    assert f"renew {key(2)}" not in world.wire.calls
    assert ours(world) == {A: "UP"}


def test_the_brake_counts_only_instances_that_are_still_registered() -> None:
    """70 of 100 expired and could not be registered again; the last 30 may not be removed as if they were few."""
    world = FakeWorld(cache=30)
    world.cluster.apply(service(), piece(*(endpoint(n) for n in range(1, 101))), syncer())
    world.run()
    world.later(60)
    world.run()
    for number in range(1, 71):
        del world.registry.held[key(number)]
        world.registry.refuse_register[key(number)] = RegistryRejected("400")
    ready = [endpoint(n) for n in range(1, 72)]
    world.cluster.apply(piece(*ready, *(endpoint(n, ready=False) for n in range(72, 101))))
    report = world.run()
    assert report.held is not None
    assert sum(one.status is UP for one in world.registry.held.values()) == 30


def test_a_renewal_that_was_late_in_its_pass_is_no_trouble_of_its_syncer() -> None:
    """What the left-over time brought is in the status."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(*(endpoint(n) for n in range(1, 51))), syncer())
    world.run()
    world.later(60)
    slow(world, "renew", 1)
    assert not world.run(deadline=100).statuses
    assert NS in {ref.namespace for ref in world.cluster.syncers}


def terminating(numbers: range, *, serving: bool) -> list[Endpoint]:
    """Pods that go; while they serve or not."""
    return [endpoint(n, ready=False, serving=serving, terminating=True) for n in numbers]


def keeping(pods: int) -> FakeWorld:
    """An app whose instances stay while their pods still serve; the brake as it is by default."""
    world = FakeWorld()
    world.cluster.apply(
        service(), piece(*(endpoint(n) for n in range(1, pods + 1))), syncer(terminating="KeepWhileServing")
    )
    world.run()
    return world


def test_all_pods_that_terminate_at_once_stay_for_as_long_as_they_serve() -> None:
    """Nothing is removed, so the brake has nothing to hold; they go when their successors stand."""
    world = keeping(30)
    world.cluster.apply(piece(*terminating(range(1, 31), serving=True)))
    report = world.run()
    assert (report.plan.changes, report.held) == ((), None)
    world.cluster.apply(
        piece(*terminating(range(1, 31), serving=False), *(endpoint(n) for n in range(31, 61))),
    )
    assert world.run().held is None
    assert set(world.registry.held) == {key(n) for n in range(31, 61)}


def test_a_pod_that_ends_its_service_is_evidence_to_the_brake_and_one_that_vanishes_is_none() -> None:
    """25 of 30 that terminate stop serving: they go. As many that are gone without having terminated: held."""
    world = keeping(30)
    left = [endpoint(n) for n in range(26, 31)]
    world.cluster.apply(piece(*terminating(range(1, 26), serving=False), *left))
    assert world.run().held is None
    assert len(world.registry.held) == 5
    world = keeping(30)
    world.cluster.apply(piece(*terminating(range(1, 26), serving=True), *left))
    world.run()
    world.cluster.apply(piece(*left))
    report = world.run()
    assert report.held is not None
    assert len(world.registry.held) == 30


def test_the_last_that_serves_while_it_terminates_is_no_reason_to_empty_everything() -> None:
    """All that we own would go: that is a person's decision, whatever the evidence."""
    world = keeping(3)
    world.cluster.apply(piece(*terminating(range(1, 4), serving=True)))
    world.run()
    world.cluster.apply(piece(*terminating(range(1, 4), serving=False)))
    report = world.run()
    assert report.held is not None
    assert [one.status for one in world.registry.held.values()] == [UP, UP, UP]


def test_metadata_that_others_added_stays_until_the_instance_is_registered_anew() -> None:
    """It is no difference of its own; an update and a lost lease both register what the spec says, and no more."""
    for anew in ("update", "lost"):
        world = FakeWorld()
        world.cluster.apply(service(), piece(endpoint(1)), syncer(metadata={"team": "red"}))
        world.run()
        held = world.registry.held[key(1)]
        world.registry.held[key(1)] = changed(held, metadata={**held.metadata, "colour": "blue"})
        assert world.run().plan.changes == ()
        assert world.registry.held[key(1)].metadata["colour"] == "blue"
        if anew == "update":
            world.cluster.apply(syncer(metadata={"team": "green"}))
        else:
            world.later(60)
            del world.registry.held[key(1)]
        world.run()
        assert "colour" not in world.registry.held[key(1)].metadata


def test_an_out_of_service_instance_replaces_nothing_when_it_is_ready_again() -> None:
    """Its spec changed while it was not ready, so it was registered as DOWN, which is trusted before an override. A
    register of UP makes it OUT_OF_SERVICE again."""
    world = FakeWorld()
    every = [endpoint(n) for n in (1, 2, 3)]
    world.cluster.apply(service(), piece(*every), syncer())
    world.run()
    world.registry.override(key(3), InstanceStatus.OUT_OF_SERVICE)
    world.cluster.apply(piece(*(replace(one, ready=False) for one in every)), syncer(metadata={"version": "2"}))
    for _ in range(2):
        world.run()
        assert world.statuses() == {A: "UP", B: "UP", C: "DOWN"}
        world.later(30)
    world.cluster.apply(piece(*(replace(one, ready=one is every[2]) for one in every)))
    report = world.run()
    assert world.statuses() == {A: "UP", B: "UP", C: "OUT_OF_SERVICE"}
    assert report.held is not None
    assert report.outcomes.by_key[key(3)].status is InstanceStatus.OUT_OF_SERVICE


SHOP = {"part": "shop"}


@pytest.mark.parametrize(
    "spec", [{"securePort": 443, "service": {"hostname": "shop.example.com"}}, {"securePort": 443}]
)
@pytest.mark.parametrize("not_ready", ["Down", "Cancel"])
def test_one_of_several_services_behind_one_host_waits_for_a_second_pass(spec: dict[str, Any], not_ready: str) -> None:
    """An Ingress, or a node with a secure port alone: what is UP there of another Service says nothing of this one."""
    world = FakeWorld()
    world.cluster.nodes = Complete(data=(Node(name="node-1", ready=True, internal=("192.168.0.1",)),))
    for number, app in enumerate(("cart", "pay", "search"), 1):
        port = ServicePort(name="https", port=443, node_port=30000 + number)
        world.cluster.apply(
            replace(service(app, port, labels=SHOP), type="NodePort"),
            piece(endpoint(number), service=app, port_name="https"),
        )
    world.cluster.apply(syncer(mode="service", selector={"matchLabels": SHOP}, notReady=not_ready, **spec))
    world.run()
    before = world.statuses()
    assert set(before.values()) == {"UP"}
    world.cluster.apply(piece(endpoint(1, ready=False), service="cart", port_name="https"))
    for _ in range(2):
        report = world.run()
        assert world.statuses() == before
        assert report.held is not None
        assert report.held.reason.startswith("app CART would have no UP instance left")
        world.later(15)
    world.run()
    (cart,) = before.keys() - {name for name, status in world.statuses().items() if status == "UP"}
    assert cart.startswith("CART ")


@pytest.mark.parametrize("trouble", ["refuse_read", "refuse_register"])
@pytest.mark.parametrize("change", ["another name", "an older syncer"])
def test_a_pod_keeps_its_instance_until_the_next_one_is_registered(trouble: str, change: str) -> None:
    """Also where the app has others: a call that failed takes no pod that serves out of it."""
    world = FakeWorld()
    world.scope = Scope(allowed=frozenset({("ops", "shop"), (NS, "shop")}))
    across = {"app": "rating", "namespace": "shop"}
    three = [endpoint(number) for number in (1, 2, 3)]
    world.cluster.apply(service(namespace="shop"), piece(*three, namespace="shop"))
    world.cluster.apply(syncer(created=2000, selector=across))
    add_app(world, "other", 9)
    world.run()
    if change == "another name":
        world.cluster.apply(syncer(appName="fresh", selector=across))
        following = [key(number, app="fresh") for number in (1, 2, 3)]
    else:
        world.cluster.apply(syncer("older", namespace="ops", created=1000, selector=across))
        following = [key(number, namespace="ops") for number in (1, 2, 3)]
    refused = getattr(world.registry, trouble)
    refused[following[2]] = RegistryRejected("not now")
    for _ in range(3):
        world.run()
        world.later(30)
        standing = {one for one in world.registry.held if one in {*following, key(1), key(2), key(3)}}
        assert standing == {following[0], following[1], key(3)}
    refused.clear()
    for _ in range(3):
        world.run()
        world.later(30)
    assert {*following} <= set(world.registry.held)
    assert key(3) not in world.registry.held


def test_another_witness_is_asked_where_one_cannot_be_read() -> None:
    """What the list calls UP may be DOWN: the last that is surely UP stays until that is up again."""
    world = FakeWorld(cache=30)
    world.cluster.apply(service(), piece(*(endpoint(number) for number in (1, 2, 3))), syncer())
    add_app(world, "other", 9)
    world.run()
    world.later(30)
    world.registry.list_instances()
    world.registry.held[key(3)] = changed(world.registry.held[key(3)], status=DOWN)
    world.registry.refuse_read[key(2)] = RegistryRejected("not now")
    world.cluster.apply(piece(endpoint(1, ready=False, terminating=True), endpoint(2), endpoint(3)))
    world.run()
    assert world.registry.held[key(3)].status is UP


def test_a_deletion_does_not_wait_for_what_cannot_be_registered_in_its_place() -> None:
    """A person asked for it, and the app has others."""
    world = FakeWorld()
    world.scope = Scope(allowed=frozenset({("ops", NS)}))
    world.cluster.apply(service(), piece(endpoint(1), endpoint(2)), syncer())
    world.run()
    across = {"app": "rating", "namespace": NS}
    world.cluster.apply(syncer("heir", namespace="ops", created=2000, selector=across))
    world.registry.refuse_register[key(2, namespace="ops")] = RegistryRejected("not now")
    world.cluster.delete(REF)
    world.run()
    assert {*world.registry.held} == {key(1, namespace="ops")}


@pytest.mark.parametrize("trouble", ["refuse_read", "refuse_register"])
def test_the_former_address_of_a_pod_is_cancelled_although_other_calls_fail(trouble: str) -> None:
    """Its sandbox was created again: callers find nobody there, or another pod."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(endpoint(1), endpoint(2)), syncer())
    add_app(world, "other", 9)
    world.run()
    getattr(world.registry, trouble)[key(7)] = RegistryRejected("not now")
    world.cluster.apply(piece(replace(endpoint(1), address="10.0.0.7"), endpoint(2)))
    world.run()
    assert {one.id.split(":")[-2] for one in world.registry.held if one.app == "RATING"} == {"10.0.0.2"}


def test_a_pod_keeps_its_instance_until_its_other_address_family_is_registered() -> None:
    """It has both addresses."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(endpoint(1), endpoint(2)), syncer())
    add_app(world, "other", 9)
    world.run()
    v6 = [replace(endpoint(number), address=f"fd00::{number}") for number in (1, 2)]
    six = replace(service(), ip_families=("IPv6",))
    world.cluster.apply(six, replace(piece(*v6), address_type="IPv6"))
    moved = key(1)._replace(id="prod:rating:rating:fd00--1:8080")
    world.registry.refuse_register[moved] = RegistryRejected("not now")
    world.run()
    assert {one.id.split(":")[-2] for one in world.registry.held if one.app == "RATING"} == {"10.0.0.1", "fd00--2"}
