"""Former faults of passes: old lists, instances of others, slow servers, and registrations that
fail."""

from __future__ import annotations

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
from eurekube_sync.model.struct import replace
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
    """The instance that a pod registers for itself."""
    ip = f"10.0.0.{number}"
    found = changed(foreign(f"pod-{number}:8080"), host_name=ip, ip_addr=ip, port=Port(8080, True))
    return changed(found, status=status, vip_address=vip)


def test_an_instance_of_others_under_our_id_stays_when_a_duplicate_is_gone() -> None:
    """An instance that an uncached read shows is itself read uncached before it is written."""
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
    """Eureka answers its renewal with 404. The instance is not overwritten, nor cancelled with a
    deleted syncer."""
    world = FakeWorld(cache=30)
    of_deleted = syncer(deleted=world.clock.now(), finalizers=(CLEANUP_FINALIZER,))
    world.cluster.apply(
        service(), piece(endpoint(1), endpoint(2)), of_deleted if deleted else syncer()
    )
    world.registry.list_instances()
    stranger = stored(instance(1), metadata={}, status=InstanceStatus.UNKNOWN)
    world.registry.held[key(1)] = stranger
    world.run()
    assert world.registry.held.get(key(1)) == stranger
    assert (key(2) in world.registry.held) is not deleted


def test_the_last_up_instance_stays_until_the_wrongly_listed_one_is_up() -> None:
    """Another process turned the other instance DOWN and was killed. The list is older than
    that."""
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
    """A rolling update of many pods costs one more read, not one for each instance that stays. An
    instance that is DOWN does not count."""
    world = FakeWorld(cache=30)
    world.cluster.apply(service(), piece(*(endpoint(n) for n in range(1, 9))), syncer())
    world.run()
    world.later(30)
    world.registry.list_instances()
    world.registry.held[key(2)] = changed(world.registry.held[key(2)], status=DOWN)
    world.cluster.apply(piece(*(endpoint(n) for n in range(2, 9))))
    world.run()
    assert read_singly(world) + read_together(world) == 3
    assert [one.status for one in world.registry.held.values()] == [UP] * 7


def read_singly(world: FakeWorld) -> int:
    """How many instances were read by a call each."""
    return world.wire.verbs().count("read_instance")


def read_together(world: FakeWorld) -> int:
    """How many instances were asked for in batches of reads."""
    return sum(int(call.split()[1]) for call in world.wire.calls if call.startswith("read_batch"))


def test_many_changes_are_read_in_batches_and_then_singly() -> None:
    """An instance that this process renews is read by a renewal, but not in each pass: 10 periods
    must pass. One that it cancelled a moment ago is expected to be absent, and a batch says so
    without a renewal."""
    world = FakeWorld(cache=30)
    world.own_writes = OwnWrites(seconds=45)
    world.renewals = RenewalLedger(period=30, slack=5)
    world.registry.batch_size = 2
    world.cluster.apply(service(), piece(*(endpoint(n) for n in range(1, 9))), syncer())
    world.run()
    world.later(30)
    world.registry.list_instances()
    world.cluster.apply(piece(*(endpoint(n) for n in range(5, 13))))
    world.run()
    assert (read_singly(world), read_together(world)) == (0, 5)  # four that go, and one that stays
    world.later(10)
    world.run()
    cancelled = {f"read_instance {key(number)}" for number in range(1, 5)}
    assert cancelled.isdisjoint(world.wire.calls)
    assert world.wire.verbs().count("absent_batch") == 2
    assert {one.instance.ip_addr for one in world.registry.held.values()} == {
        f"10.0.0.{n}" for n in range(5, 13)
    }
    world.cluster.apply(piece(*(endpoint(n, ready=False) for n in range(5, 13))))
    world.later(10)
    world.run()
    assert (read_singly(world), read_together(world)) == (8, 0)


@pytest.mark.parametrize(
    ("status", "vip", "goes", "comes"),
    [(UP, "rating", True, False), (DOWN, "rating", False, False), (UP, "another", True, True)],
)
def test_a_pod_that_registers_itself_replaces_ours_only_when_it_serves(
    status: InstanceStatus, vip: str, goes: bool, comes: bool
) -> None:
    """The last UP instance stays until callers find another one under the same name. That is the
    pod's own instance, or ours beside it."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(endpoint(1)), syncer())
    add_app(world, "other", 9)
    world.run()
    world.registry.put(itself(2, status, vip))  # type: ignore[arg-type]
    world.cluster.apply(piece(endpoint(2)))
    for _ in range(2):  # the last instance of an app is removed at the second look
        world.run()
        world.later(21)
    assert (key(1) not in world.registry.held, key(2) in world.registry.held) == (goes, comes)


def test_slow_reads_leave_time_for_what_they_found() -> None:
    """Each of 100 first registrations is read in more than a second. Every pass still registers
    some."""
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
    """A daemon remembers its registration, and asks for the CRD as it does for a listed
    instance."""
    world = article(cache=30)
    world.own_writes = OwnWrites(seconds=45)
    world.run()
    world.later(5)
    del world.cluster.syncers[REF]
    world.cluster.crd = TERMINATING
    world.run()
    assert ours(world) == {A: "UP", B: "UP"}


def test_an_app_that_is_renamed_stays_until_the_new_name_is_registered() -> None:
    """Eureka refuses the new instances, and the old ones stay registered."""
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
    """The registered pod is not ready and the new one is refused, so the removal waits. No
    condition changes to and fro."""
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
    conditions = (
        {one.type: (one.status.value, one.reason) for one in status.conditions} if status else {}
    )
    assert conditions["RemovalHeld"] == ("False", "NothingHeld")
    assert conditions["Synced"] == conditions["Ready"] == ("False", "PartlyFailed")


def test_a_refused_add_holds_no_removal_that_leaves_another_up() -> None:
    """Another syncer's instance keeps the app and the VIP UP, so the unready one is not kept for
    ever."""
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
    """The pod is ready, and would have no instance at all."""
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
    """One pod is over the limit, and could be cancelled at once. The other one's lease expires,
    which the list does not show, and Eureka refuses to register it. The UP instances of another
    syncer are no reason to cancel this syncer's last ready pod."""
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
    assert (
        report.outcomes.by_key[over].detail
        == "not removed, because no replacement is registered yet"
    )
    world.registry.refuse_register.clear()
    world.run()
    assert set(world.registry.held) == {key(1), over}, (
        "a read shows that it alone is registered, so it has the place"
    )


def test_leases_are_renewed_again_while_neither_the_cluster_nor_eureka_can_be_read() -> None:
    """The process never learned its cluster, and then cannot read Eureka's list either."""
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
    """A daemon renews what it renewed before. That includes held removals, and instances of a
    syncer that is not served."""
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
    """A late renewal on another peer brings it back. The memory of the cancel does not hide it, and
    it is not renewed."""
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
    """Of 100 instances 70 expired and could not be registered again. The last 30 must not count as
    a small part of 100."""
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
    """The status has the renewals that were made in the time left at the end."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(*(endpoint(n) for n in range(1, 51))), syncer())
    world.run()
    world.later(60)
    slow(world, "renew", 1)
    assert not world.run(deadline=100).statuses
    assert NS in {ref.namespace for ref in world.cluster.syncers}


def terminating(numbers: range, *, serving: bool) -> list[Endpoint]:
    """Pods that terminate, and whether they still serve."""
    return [endpoint(n, ready=False, serving=serving, terminating=True) for n in numbers]


def keeping(pods: int) -> FakeWorld:
    """An app whose instances stay while their terminating pods serve. The brake has its
    defaults."""
    world = FakeWorld()
    world.cluster.apply(
        service(),
        piece(*(endpoint(n) for n in range(1, pods + 1))),
        syncer(terminating="KeepWhileServing"),
    )
    world.run()
    return world


def test_all_pods_that_terminate_at_once_stay_for_as_long_as_they_serve() -> None:
    """Nothing is removed, so the brake has nothing to hold. They are removed when their successors
    are registered."""
    world = keeping(30)
    world.cluster.apply(piece(*terminating(range(1, 31), serving=True)))
    report = world.run()
    assert (report.plan.changes, report.held) == ((), None)
    world.cluster.apply(
        piece(*terminating(range(1, 31), serving=False), *(endpoint(n) for n in range(31, 61))),
    )
    assert world.run().held is None
    assert set(world.registry.held) == {key(n) for n in range(31, 61)}


def test_a_pod_that_ends_its_service_is_evidence_to_the_brake_and_one_that_vanishes_is_none() -> (
    None
):
    """Of 30 pods 25 terminate and stop serving: their instances are removed. As many vanish without
    terminating: held."""
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


def test_apps_whose_last_pods_terminate_wait_for_a_person() -> None:
    """A terminating pod is evidence, and may serve on behind a lost kubelet. So one app goes, and
    two apps of three are held."""
    world = FakeWorld()
    for name, number in (("a", 1), ("b", 2), ("c", 3)):
        add_app(world, name, number)
    world.run()
    world.cluster.apply(piece(*terminating(range(1, 2), serving=False), service="a"))
    assert world.run().held is None
    for name, number in (("b", 2), ("c", 3)):
        ending = terminating(range(number, number + 1), serving=False)
        world.cluster.apply(piece(*ending, service=name))
    report = world.run()
    assert report.held is not None
    assert [instance.status for instance in world.registry.held.values()] == [UP, UP]


def test_metadata_that_others_added_stays_until_the_instance_is_registered_anew() -> None:
    """It is no difference. An update and a lost lease both register the metadata of the spec, and
    nothing else."""
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
    """Its spec changed while the pod was not ready. It was registered as DOWN, which Eureka trusts
    before an override. A registration as UP makes it OUT_OF_SERVICE again."""
    world = FakeWorld()
    every = [endpoint(n) for n in (1, 2, 3)]
    world.cluster.apply(service(), piece(*every), syncer())
    world.run()
    world.registry.override(key(3), InstanceStatus.OUT_OF_SERVICE)
    world.cluster.apply(
        piece(*(replace(one, ready=False) for one in every)), syncer(metadata={"version": "2"})
    )
    world.run()
    assert world.statuses() == {A: "UP", B: "UP", C: "DOWN"}
    world.later(10)
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
def test_one_of_several_services_behind_one_host_waits_for_a_second_pass(
    spec: dict[str, Any], not_ready: str
) -> None:
    """The host is an Ingress, or a node with a secure port alone. Another Service's UP instance
    there is no proof that this one serves."""
    world = FakeWorld()
    world.cluster.nodes = Complete(
        data=(Node(name="node-1", ready=True, internal=("192.168.0.1",)),)
    )
    for number, app in enumerate(("cart", "pay", "search"), 1):
        port = ServicePort(name="https", port=443, node_port=30000 + number)
        world.cluster.apply(
            replace(service(app, port, labels=SHOP), type="NodePort"),
            piece(endpoint(number), service=app, port_name="https"),
        )
    world.cluster.apply(
        syncer(mode="service", selector={"matchLabels": SHOP}, notReady=not_ready, **spec)
    )
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
def test_a_pod_keeps_its_instance_until_the_next_one_is_registered(
    trouble: str, change: str
) -> None:
    """This also holds where the app has other instances. A failed call removes no pod that
    serves."""
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
        standing = {
            one for one in world.registry.held if one in {*following, key(1), key(2), key(3)}
        }
        assert standing == {following[0], following[1], key(3)}
    refused.clear()
    for _ in range(3):
        world.run()
        world.later(30)
    assert {*following} <= set(world.registry.held)
    assert key(3) not in world.registry.held


def test_another_witness_is_asked_where_one_cannot_be_read() -> None:
    """An instance that the list shows as UP may be DOWN. The last one that is surely UP stays until
    the other is UP again."""
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
    """A person asked for the deletion, and the app has other instances."""
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
    """The pod's sandbox was created again. At the old address callers find nobody, or another
    pod."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(endpoint(1), endpoint(2)), syncer())
    add_app(world, "other", 9)
    world.run()
    getattr(world.registry, trouble)[key(7)] = RegistryRejected("not now")
    world.cluster.apply(piece(replace(endpoint(1), address="10.0.0.7"), endpoint(2)))
    world.run()
    assert {one.id.split(":")[-2] for one in world.registry.held if one.app == "RATING"} == {
        "10.0.0.2"
    }


def test_a_pod_keeps_its_instance_until_its_other_address_family_is_registered() -> None:
    """The pod has an address of each family."""
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
    assert {one.id.split(":")[-2] for one in world.registry.held if one.app == "RATING"} == {
        "10.0.0.1",
        "fd00--2",
    }


@pytest.mark.parametrize(
    ("really", "counts"), [(DOWN, (1, 1)), (InstanceStatus.OUT_OF_SERVICE, (1, 1)), (UP, (2, 0))]
)
def test_a_status_shows_what_an_uncached_read_of_its_pass_showed(
    really: InstanceStatus, counts: tuple[int, int]
) -> None:
    """The first pass of a process renews an instance that the list shows UP. Then it reads it
    again, because the pod is not ready. Another process turned it DOWN before, or a person put it
    out of service."""
    world = article(cache=30)
    world.run()
    world.later(30)
    world.registry.list_instances()
    if really is InstanceStatus.OUT_OF_SERVICE:
        world.registry.override(key(2), really)
    else:
        world.registry.held[key(2)] = changed(world.registry.held[key(2)], status=really)
    if really is not UP:
        pods(world, endpoint(1), endpoint(2, ready=False))
    world.run()
    status = world.cluster.syncers[REF].status
    assert status is not None
    assert (status.up, status.down) == counts
