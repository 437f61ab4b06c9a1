"""An installation gets another owner name, or its cluster is rebuilt: what bears the old mark is
moved by `run`.

These are whole passes. The instances under the old mark are as the old installation left them.
"""

from __future__ import annotations

import pytest

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.cli.output.report import sentences
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.errors import RegistryUnavailable
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLUSTER, NO_FORMER, OWNER, Former
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.controller.test_reconcile import add_app, article, pods
from tests.unit.worlds.build import NS, changed, endpoint, foreign
from tests.unit.worlds.build import OWNER as OLD
from tests.unit.worlds.fakes import FakeWorld

NEW = "next"
MOVED = Former(owners=frozenset({OLD}))


@pytest.fixture
def world() -> FakeWorld:
    """Two pods that the old owner registered. It ended 100 s ago, and the new one is about to
    begin."""
    world = article()
    later(world, 1)
    world.run()
    ended(world, 100)
    world.owner, world.former = NEW, MOVED
    return world


def later(world: FakeWorld, seconds: float) -> None:
    """The data centre's own instance is renewed meanwhile."""
    world.later(seconds)
    world.registry.renew(foreign().key)


def ended(world: FakeWorld, seconds: float) -> None:
    """The old installation is stopped, and so much time passes."""
    later(world, seconds)


def by_owner(world: FakeWorld) -> dict[str, dict[str, str]]:
    """The status of each of our instances by address, by owner."""
    found: dict[str, dict[str, str]] = {}
    for stored in world.registry.held.values():
        if OWNER in stored.metadata:
            found.setdefault(stored.metadata[OWNER], {})[stored.instance.ip_addr] = (
                stored.status.value
            )
    return found


def code(report: PassReport) -> ExitCode:
    """The exit code of a pass."""
    return of_report(report, fail_on_held=True, detailed=False)


BOTH = {"10.0.0.1": "UP", "10.0.0.2": "UP"}


def test_each_instance_is_registered_under_its_new_id_and_then_cancelled_under_the_old(
    world: FakeWorld,
) -> None:
    """Nothing is held, and a pass without the option finds nothing more to do."""
    report = world.run()
    assert [call.split()[0] for call in world.wire.writes()] == [
        "register",
        "register",
        "cancel",
        "cancel",
    ]
    assert (code(report), report.held) == (ExitCode.OK, None)
    assert by_owner(world) == {NEW: BOTH}
    assert {action.why for action in report.plan.actions if "now" in action.why} == {
        f"the id of its endpoint is {NEW}:{NS}:rating:10.0.0.{number}:8080 now" for number in (1, 2)
    }
    world.former = NO_FORMER
    later(world, 30)
    world.run()
    assert world.wire.writes() == []


def test_no_renewal_reads_an_instance_that_waits_to_be_moved(world: FakeWorld) -> None:
    """It looks as if the old installation were at work. So it is read singly, also if this process
    renewed it at the end of the pass before."""
    world.registry.batch_size, world.renewals = 1, RenewalLedger(period=30, slack=5)
    new = [InstanceKey("RATING", f"{NEW}:{NS}:rating:10.0.0.{number}:8080") for number in (1, 2)]
    world.registry.refuse_register.update(
        dict.fromkeys(new, RegistryUnavailable("it is restarted"))
    )
    for _ in range(2):
        world.run()
        later(world, 100)
    assert "renew_batch" in world.wire.verbs()
    assert "read_batch" not in world.wire.verbs()
    assert by_owner(world) == {OLD: BOTH}


def test_without_the_option_the_old_instances_are_another_owners(world: FakeWorld) -> None:
    """They are left to expire, as always."""
    world.former = NO_FORMER
    world.run()
    assert by_owner(world) == {OLD: BOTH, NEW: BOTH}
    assert not [call for call in world.wire.writes() if call.startswith("cancel")]


def test_a_dry_run_shows_the_move_and_writes_nothing(world: FakeWorld) -> None:
    """The new instances and the cancels are planned."""
    report = world.run(dry_run=True)
    assert len(report.plan.changes) == 4
    assert world.wire.writes() == []


def test_the_move_is_refused_while_the_old_installation_renews(world: FakeWorld) -> None:
    """Nothing is done to its instances, not even a renewal, which would look like its own."""
    world.owner, world.former = OLD, NO_FORMER
    world.run()
    world.owner, world.former = NEW, MOVED
    for _ in range(2):
        later(world, 30)
        report = world.run()
        assert code(report) is ExitCode.OWNER_CLASH
        assert [
            call for call in world.wire.calls if call.startswith(("renew", "register", "cancel"))
        ] == []
        assert by_owner(world) == {OLD: BOTH}
    assert sentences(report) == [
        f"owner clash: instances of owner {OLD} were renewed in the last 90 s: those of 1 syncer, "
        f"such as {NS}/rating. "
        "Stop the old installation, and run again 90 s later. This pass is refused: the leases "
        "that would end were "
        "renewed, and nothing else was done"
    ]
    later(world, 40)
    assert code(world.run()) is ExitCode.OK
    assert by_owner(world) == {NEW: BOTH}


def test_an_old_list_does_not_hide_that_the_old_installation_renews() -> None:
    """Eureka's list is cached, and shows no renewal of the last minutes."""
    world = article()
    world.run()
    world.registry.cached_for(300)
    later(world, 150)
    world.run()
    world.owner, world.former = NEW, MOVED
    later(world, 10)
    assert code(world.run()) is ExitCode.OWNER_CLASH
    assert by_owner(world) == {OLD: BOTH}


def test_an_old_instance_stays_until_its_new_one_is_registered(world: FakeWorld) -> None:
    """Eureka refuses the new one. Meanwhile the old one is renewed, and callers lose nothing."""
    new_ids = [InstanceKey("RATING", f"{NEW}:{NS}:rating:{address}:8080") for address in BOTH]
    world.registry.refuse_register = dict.fromkeys(new_ids, RegistryUnavailable("503"))
    world.run()
    assert by_owner(world) == {OLD: BOTH}
    world.registry.refuse_register.clear()
    later(world, 100)
    world.run()
    assert by_owner(world) == {NEW: BOTH}


@pytest.mark.parametrize("passes", [1, 30])
def test_a_persons_out_of_service_stays_under_its_old_id(world: FakeWorld, passes: int) -> None:
    """A new id would forget it. The instance is renewed, the condition says so, and the others
    move."""
    out = InstanceStatus.OUT_OF_SERVICE
    (put_out,) = (key for key in world.registry.held if key.id.endswith("10.0.0.1:8080"))
    stored = world.registry.held[put_out]
    world.registry.held[put_out] = replace(
        stored, instance=replace(stored.instance, status=out, override=out)
    )
    for _ in range(passes):
        world.run()
        later(world, 30)
        world.registry.evict()
    assert by_owner(world) == {OLD: {"10.0.0.1": "OUT_OF_SERVICE"}, NEW: {"10.0.0.2": "UP"}}
    status = world.cluster.syncers[SyncerRef(NS, "rating")].status
    assert status is not None
    synced = status.condition("Synced")
    assert synced is not None
    assert (
        f"a person set {put_out.id} OUT_OF_SERVICE, and a new id would forget that"
        in synced.message
    )


def refused(world: FakeWorld, *numbers: int) -> None:
    """Eureka refuses the new instances of these pods."""
    for number in numbers:
        new = InstanceKey("RATING", f"{NEW}:{NS}:rating:10.0.0.{number}:8080")
        world.registry.refuse_register[new] = RegistryUnavailable("503")


@pytest.mark.parametrize("numbers", [(1,), (1, 2)])
def test_an_old_instance_that_cannot_be_moved_for_long_does_not_expire(
    world: FakeWorld, numbers: tuple[int, ...]
) -> None:
    """It is renewed, and our renewals are not taken for those of the old installation."""
    refused(world, *numbers)
    for _ in range(60):
        later(world, 30)
        world.run()
        world.registry.evict()
        assert by_owner(world).get(OLD, {}).keys() >= {f"10.0.0.{number}" for number in numbers}
    world.registry.refuse_register.clear()
    for _ in range(4):
        later(world, 30)
        world.run()
    assert by_owner(world) == {NEW: BOTH}


def test_an_instance_that_stays_keeps_no_other_waiting(world: FakeWorld) -> None:
    """A person put one out of service. New pods are registered and dead ones go, in each pass."""
    put_out(world)
    codes = []
    for number in range(3, 8):
        later(world, 30)
        pods(world, endpoint(1), endpoint(number))
        world.cluster.ended.add(f"uid-of-rating-{number - 1}")
        codes.append(code(world.run()))
        assert f"10.0.0.{number}" in by_owner(world)[NEW]
    assert codes == [ExitCode.OK] * 5
    assert by_owner(world)[OLD] == {"10.0.0.1": "OUT_OF_SERVICE"}


def test_a_suspended_syncer_is_not_moved_and_keeps_no_other_waiting(world: FakeWorld) -> None:
    """Its instances are renewed under their old ids."""
    add_app(world, "cart", 9)
    world.cluster.syncers[SyncerRef(NS, "rating")] = replace(
        world.cluster.syncers[SyncerRef(NS, "rating")],
        spec={"selector": {"app": "rating"}, "port": "http", "suspend": True},
    )
    for _ in range(30):
        later(world, 30)
        assert code(world.run()) is ExitCode.OK
        world.registry.evict()
    assert by_owner(world) == {OLD: BOTH, NEW: {"10.0.0.9": "UP"}}


def test_an_override_that_our_down_hides_is_kept_as_well(world: FakeWorld) -> None:
    """Eureka would forget it with the old id."""
    out = InstanceStatus.OUT_OF_SERVICE
    for key, stored in list(world.registry.held.items()):
        if key.id == f"{OLD}:{NS}:rating:10.0.0.1:8080":
            instance = replace(stored.instance, status=InstanceStatus.DOWN, override=out)
            world.registry.held[key] = replace(stored, instance=instance)
    world.run()
    assert by_owner(world)[NEW] == {"10.0.0.2": "UP"}
    assert "10.0.0.1" in by_owner(world)[OLD]


def test_a_stranger_under_the_new_id_leaves_the_old_instance_where_it_is(world: FakeWorld) -> None:
    """Else the pod would be registered under neither."""
    stranger = InstanceKey("RATING", f"{NEW}:{NS}:rating:10.0.0.1:8080")
    world.registry.put(changed(foreign(), key=stranger))
    world.run()
    assert by_owner(world) == {OLD: {"10.0.0.1": "UP"}, NEW: {"10.0.0.2": "UP"}}


def test_a_limit_keeps_the_pods_that_have_a_place(world: FakeWorld) -> None:
    """The order of the pods depends on their ids, and the move changes these."""
    world.owner, world.former = OLD, NO_FORMER
    pods(world, *(endpoint(number) for number in range(1, 7)))
    rating = world.cluster.syncers[SyncerRef(NS, "rating")]
    world.cluster.syncers[rating.ref] = replace(rating, spec={**rating.spec, "limit": 2})
    later(world, 30)
    world.run()
    before = by_owner(world)[OLD].keys()
    later(world, 100)
    world.owner, world.former = NEW, MOVED
    world.run()
    assert by_owner(world) == {NEW: dict.fromkeys(before, "UP")}


def test_while_eureka_cannot_be_listed_nothing_gets_a_new_id(world: FakeWorld) -> None:
    """It may be registered under its old one."""
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    world.run()
    world.registry.unreadable = None
    assert by_owner(world) == {OLD: BOTH}


@pytest.mark.parametrize("former", [MOVED, Former(owners=frozenset({OLD, "older"}))])
def test_no_lease_ends_while_eureka_cannot_be_listed(world: FakeWorld, former: Former) -> None:
    """Its writes work. The old installation has ended, and the first list comes twenty minutes
    later."""
    world.former = former
    world.renewals = RenewalLedger(period=30, slack=15)  # a new process has renewed nothing
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    for _ in range(40):
        world.run()
        later(world, 30)
        world.registry.evict()
        assert by_owner(world) == {OLD: BOTH}
    world.registry.unreadable = None
    for _ in range(5):
        world.run()
        later(world, 30)
    assert by_owner(world) == {NEW: BOTH}


def put_out(world: FakeWorld) -> None:
    """A person sets the first old instance OUT_OF_SERVICE."""
    out = InstanceStatus.OUT_OF_SERVICE
    for key, stored in list(world.registry.held.items()):
        if key.id == f"{OLD}:{NS}:rating:10.0.0.1:8080":
            instance = replace(stored.instance, status=out, override=out)
            world.registry.held[key] = replace(stored, instance=instance)


def test_what_a_person_put_out_stays_also_beside_a_new_instance(world: FakeWorld) -> None:
    """A pass without the option had registered both pods again."""
    world.former = NO_FORMER
    world.run()
    put_out(world)
    world.former = MOVED
    later(world, 100)
    world.run()
    assert by_owner(world) == {OLD: {"10.0.0.1": "OUT_OF_SERVICE"}, NEW: BOTH}


def test_what_a_person_put_out_goes_with_its_pod(world: FakeWorld) -> None:
    """As any instance that is out of service."""
    put_out(world)
    pods(world, endpoint(2))
    world.cluster.ended.add("uid-of-rating-1")
    world.run()
    later(world, 100)
    world.run()
    assert by_owner(world) == {NEW: {"10.0.0.2": "UP"}}


def test_while_kubernetes_cannot_be_read_the_old_instances_are_renewed(world: FakeWorld) -> None:
    """The old installation has ended, so nobody else renews them. It is unknown which cluster this
    is."""
    world.cluster.uid = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    world.run()
    assert by_owner(world) == {OLD: BOTH}
    assert len([call for call in world.wire.calls if call.startswith("renew")]) == 2


def test_a_pod_that_is_gone_by_now_is_not_moved(world: FakeWorld) -> None:
    """The ordinary plan cancels it, as it would under its present name."""
    pods(world, endpoint(1))
    world.run()
    assert by_owner(world) == {NEW: {"10.0.0.1": "UP"}}


def test_a_rebuilt_cluster_takes_over_what_the_old_one_left(world: FakeWorld) -> None:
    """The ids name no cluster, so each instance gets the new mark in its place, and none is ever
    missing."""
    world.owner, world.former = OLD, NO_FORMER
    for key, stored in list(world.registry.held.items()):
        if stored.metadata.get(OWNER) == OLD:
            metadata = {**stored.metadata, CLUSTER: "old"}
            world.registry.held[key] = changed(stored, metadata=metadata)
    assert code(world.run()) is ExitCode.OWNER_CLASH
    later(world, 100)
    world.former = Former(clusters=frozenset({"old"}))
    report = world.run()
    assert code(report) is ExitCode.OK
    assert [call.split()[0] for call in world.wire.writes()] == ["register", "register"]
    clusters = {
        stored.metadata[CLUSTER]
        for stored in world.registry.held.values()
        if OWNER in stored.metadata
    }
    assert clusters == {report.cluster}
    assert by_owner(world) == {OLD: BOTH}


def test_an_old_cluster_that_lives_is_not_replaced(world: FakeWorld) -> None:
    """Its `run` renews the instances."""
    world.owner = OLD
    for key, stored in list(world.registry.held.items()):
        if stored.metadata.get(OWNER) == OLD:
            world.registry.held[key] = changed(stored, metadata={**stored.metadata, CLUSTER: "old"})
            world.registry.renew(key)
    world.former = Former(clusters=frozenset({"old"}))
    report = world.run()
    assert code(report) is ExitCode.OWNER_CLASH
    assert sentences(report)[0].startswith(
        f"owner clash: instances of owner {OLD} of cluster old were renewed in"
    )
