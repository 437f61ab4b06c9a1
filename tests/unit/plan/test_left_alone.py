"""`--policy upsert-only`, `suspend` and `onDuplicate`: what they keep a pass from doing, through
whole passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.cli.output.report import sentences
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.desired.scope import Policy, Scope
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.actions import Renew
from eurekube_sync.model.errors import RegistryUnavailable
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance, Port
from eurekube_sync.model.kubernetes import Condition, EndpointSlice, PodRef
from eurekube_sync.model.ownership import OWNER
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import LastSeen, Unread
from eurekube_sync.plan.make import lost
from tests.unit.worlds.build import (
    DENIED,
    DOWN,
    NS,
    OUT,
    REF,
    TERMINATING,
    UP,
    changed,
    desired,
    endpoint,
    foreign,
    instance,
    key,
    observed,
    piece,
    service,
    stored,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld, When


def setting(*, pods: int = 2, **spec: Any) -> FakeWorld:
    """An app with this many ready pods, in sync. Another app exists, so that a removal does not
    concern all our instances."""
    world = FakeWorld()
    world.brake = BrakeLimits(loss_percent=100, apps_percent=100, apps_floor=10, confirm_after=0)
    world.cluster.apply(
        service(),
        syncer(**spec),
        *(piece(*(endpoint(n) for n in range(1, pods + 1))),),
        syncer("other", selector={"app": "other"}),
        service("other", labels={"app": "other"}),
        piece(endpoint(99), service="other"),
    )
    world.run()
    return world


def standing(world: FakeWorld) -> dict[InstanceKey, InstanceStatus]:
    """The instances of the app, with their statuses."""
    return {one.key: one.status for one in world.registry.held.values() if one.key.app == "RATING"}


def mark(world: FakeWorld, number: int, name: str) -> str | None:
    """A mark of the pod's instance."""
    return world.registry.held[key(number)].metadata.get(name)


def condition(world: FakeWorld, type_: str) -> Condition:
    """A condition of the syncer."""
    status = world.cluster.syncers[REF].status
    assert status is not None
    found = status.condition(type_)
    assert found is not None
    return found


def minutes(world: FakeWorld, count: int, *, scope: Scope | None = None) -> None:
    """Make passes, one a minute, each followed by Eureka's eviction."""
    world.scope = scope or world.scope
    for _ in range(count):
        world.later(60)
        world.run()
        world.registry.evict()


def lose_all(world: FakeWorld) -> None:
    """Eureka loses its leases, and its cached list still shows the instances."""
    world.registry.cached_for(30)
    world.registry.held.clear()


# --- --policy upsert-only -------------------------------------------------------------------------


UPSERT_ONLY = Scope(policy=Policy.UPSERT_ONLY)


def upserting(*, pods: int = 2, **spec: Any) -> FakeWorld:
    """As `setting`, of an installation that removes nothing."""
    world = setting(pods=pods, **spec)
    world.scope = UPSERT_ONLY
    return world


def cancels(world: FakeWorld) -> list[str]:
    """All cancels of this world, in every pass."""
    return [call for call in world.wire.calls if call.startswith("cancel")]


def test_an_instance_without_an_endpoint_stays_as_it_is_and_is_renewed() -> None:
    """It costs no read. The first pass under `sync` cancels it: nothing in Eureka remembers the
    policy."""
    world = upserting()
    world.cluster.apply(piece(endpoint(1)))
    for _ in range(15):
        minutes(world, 1)
        assert f"renew {key(2)}" in world.wire.calls
        assert f"read {key(2)}" not in world.wire.calls
    assert standing(world) == {key(1): UP, key(2): UP}
    assert cancels(world) == []
    world.scope = Scope()
    world.run()
    assert standing(world) == {key(1): UP}


@pytest.mark.parametrize(
    ("there", "spec"),
    [
        (piece(endpoint(1), endpoint(2, terminating=True, ready=False)), {}),
        (piece(endpoint(1), endpoint(2, ready=False)), {"notReady": "Cancel"}),
        (piece(endpoint(1), endpoint(2)), {"limit": 1}),
        (piece(endpoint(1), endpoint(2)), {"limit": 0}),
        (piece(endpoint(1), endpoint(2)), {"appName": "fresh"}),
        (piece(endpoint(1), endpoint(2), port=9090), {}),
        (piece(), {}),
    ],
    ids=[
        "terminating",
        "notReady",
        "limit",
        "limit 0",
        "another name",
        "another port",
        "none left",
    ],
)
def test_no_reason_removes_an_instance(there: EndpointSlice, spec: dict[str, Any]) -> None:
    """The pass plans no removal, so none is held or waits for a second look."""
    world = upserting()
    world.brake = BrakeLimits()
    world.cluster.apply(there, syncer(**spec))
    report = world.run()
    assert {key(1): UP, key(2): UP}.items() <= standing(world).items()
    assert (report.plan.removals, report.held, cancels(world)) == ((), None, [])


def test_not_even_an_address_that_another_pod_has_removes_an_instance() -> None:
    """Under `sync`, nothing holds such an instance."""
    world = upserting()
    world.cluster.apply(
        piece(endpoint(1)), piece(endpoint(2, pod="another"), endpoint(99), service="other")
    )
    world.run()
    assert standing(world) == {key(1): UP, key(2): UP}
    world.scope = Scope()
    world.run()
    assert standing(world) == {key(1): UP}


def test_a_pod_that_registers_itself_takes_nothing_away() -> None:
    """Ours stays beside it."""
    world = upserting()
    world.registry.put(itself(1))
    world.run()
    assert standing(world) == {key(1): UP, key(2): UP, itself(1).key: UP}
    assert condition(world, "Conflict").reason == "DuplicateRegistration"


def test_all_else_is_done() -> None:
    """A new pod is registered. An endpoint that is not ready turns DOWN and UP again. The spec is
    followed."""
    world = upserting()
    world.cluster.apply(piece(endpoint(1), endpoint(2, ready=False), endpoint(3)))
    world.run()
    assert standing(world) == {key(1): UP, key(2): DOWN, key(3): UP}
    world.cluster.apply(
        piece(endpoint(1), endpoint(2), endpoint(3)), syncer(metadata={"version": "2"})
    )
    world.run()
    assert standing(world) == {key(1): UP, key(2): UP, key(3): UP}
    assert mark(world, 2, "version") == "2"


def test_the_brake_still_holds_what_turns_down() -> None:
    """An instance of an endpoint that is not ready is wanted, and its change is a removal."""
    world = upserting(pods=12)
    world.brake = BrakeLimits()
    world.cluster.apply(piece(*(endpoint(number, ready=False) for number in range(1, 13))))
    report = world.run()
    assert report.held is not None
    assert set(standing(world).values()) == {UP}


def test_a_lost_instance_that_nothing_wants_does_not_come_back() -> None:
    """Its pod may be gone."""
    world = upserting()
    world.cluster.apply(piece(endpoint(1)))
    world.run()
    lose_all(world)
    world.run()
    assert standing(world) == {key(1): UP}


def test_the_deletion_of_a_syncer_ends_in_the_first_pass_and_its_instances_stay() -> None:
    """There is nothing to wait for. They are renewed as orphans, until a person removes them."""
    world = upserting()
    world.cluster.delete(REF)
    world.run()
    assert REF not in world.cluster.syncers
    minutes(world, 15)
    assert standing(world) == {key(1): UP, key(2): UP}
    assert cancels(world) == []
    world.scope = Scope()
    minutes(world, 2)
    assert standing(world) == {}


def test_a_deletion_waits_neither_for_eureka_nor_for_the_services() -> None:
    """Nothing in Eureka would change."""
    world = upserting()
    world.cluster.delete(REF)
    world.registry.unreadable = DENIED
    world.run()
    assert REF not in world.cluster.syncers


def test_what_a_deleted_syncer_could_have_registered_is_not_cancelled() -> None:
    """Under `sync`, a DELETE makes sure of each id of its endpoints."""
    world = FakeWorld()
    world.scope = UPSERT_ONLY
    world.cluster.apply(
        service(), piece(endpoint(1, ready=False)), syncer(finalizers=(CLEANUP_FINALIZER,))
    )
    world.cluster.delete(REF)
    world.run()
    assert REF not in world.cluster.syncers
    assert cancels(world) == []


def test_while_the_crd_is_being_deleted_the_finalizer_stays() -> None:
    """No person has deleted the syncer, and the finalizer keeps its spec."""
    world = upserting()
    world.cluster.delete(REF)
    world.cluster.crd = TERMINATING
    world.run()
    assert REF in world.cluster.syncers


def test_the_condition_says_what_stays_and_the_exit_code_is_zero() -> None:
    """Eureka differs from the cluster, as the operator wants it."""
    world = upserting()
    world.cluster.apply(piece(endpoint(1)))
    report = world.run()
    synced, ready = condition(world, "Synced"), condition(world, "Ready")
    told = "1 instance is registered and no longer wanted (--policy upsert-only)"
    assert (synced.status, synced.reason, synced.message) == ("False", "Differs", told)
    assert (ready.status, ready.message) == ("True", f"1 of 1 UP as RATING; {told}")
    assert of_report(report, fail_on_held=True, detailed=True) is ExitCode.OK
    (kept,) = (action for action in report.plan.of(Renew) if action.key == key(2))
    assert kept.why == "it has no endpoint any more; not cancelled, because of --policy upsert-only"


# --- suspend --------------------------------------------------------------------------------------


def test_a_suspended_syncer_renews_and_changes_nothing() -> None:
    """Pods may appear, disappear or become unready. The spec or a limit may change."""
    world = setting(pods=3)
    world.cluster.apply(
        syncer(suspend=True, limit=0, metadata={"version": "2"}),
        piece(endpoint(1, ready=False), endpoint(2), endpoint(4)),
    )
    report = world.run()
    assert report.plan.changes == ()
    assert standing(world) == {key(1): UP, key(2): UP, key(3): UP}
    assert sum(call.startswith("renew") for call in world.wire.calls) == 4
    assert (condition(world, "Ready").reason, condition(world, "Ready").status) == (
        "Suspended",
        "True",
    )
    assert (condition(world, "Synced").reason, condition(world, "Synced").status) == (
        "Suspended",
        "False",
    )
    world.cluster.apply(syncer())
    world.run()
    assert standing(world) == {key(1): DOWN, key(2): UP, key(4): UP}


def suspended(*, pods: int = 3, **spec: Any) -> FakeWorld:
    """A syncer that was in sync is suspended. The daemon remembers which instances were UP."""
    world = setting(pods=pods, **spec)
    world.last_seen, world.renewals = LastSeen(), RenewalLedger(period=30, slack=15)
    world.run()
    world.cluster.apply(syncer(suspend=True, **spec))
    world.run()
    return world


def test_a_suspended_syncer_registers_expired_instances_again_as_they_were() -> None:
    """They are listed and have no lease any more, and their pods may be unready. Instances without
    an endpoint stay away."""
    world = suspended(pods=3, metadata={"version": "1"})
    world.cluster.apply(syncer(suspend=True, metadata={"version": "2"}))
    world.cluster.apply(piece(endpoint(1), endpoint(2, ready=False)))
    world.later(40)
    lose_all(world)
    world.run()
    assert standing(world) == {key(1): UP, key(2): UP}
    assert mark(world, 1, "version") == "1"


@pytest.mark.parametrize("listed", [True, False])
def test_a_new_process_registers_nothing_again_for_a_suspended_syncer(listed: bool) -> None:
    """It cannot distinguish lost instances from cancelled ones. Every registered instance is
    renewed."""
    world = suspended()
    world.last_seen, world.renewals = LastSeen(), RenewalLedger(period=30, slack=15)
    if listed:
        lose_all(world)
    else:
        world.registry.held.clear()
    for _ in range(4):
        world.run()
        assert standing(world) == {}
        world.later(11)
    assert condition(world, "Ready").reason == "Suspended"
    world.cluster.apply(syncer())
    world.run()
    assert len(standing(world)) == 3


def test_a_persons_status_of_a_suspended_syncer_is_not_made_up_for() -> None:
    """The process last saw the instance UP, and the spec would change it. If its lease is lost now,
    nothing registers it again without the status that the person set."""
    world = suspended(pods=1)
    world.registry.override(key(1), OUT)
    world.cluster.apply(syncer(suspend=True, metadata={"version": "2"}))
    world.later(40)
    (renewal,) = (
        action for action in world.run(dry_run=True).plan.of(Renew) if action.key == key(1)
    )
    assert (renewal.if_gone, renewal.status) == (None, OUT)
    world.run()
    assert standing(world) == {key(1): OUT}


def test_only_ready_instances_of_a_suspended_syncer_come_back() -> None:
    """A pod that is not ready any more was UP when the process last saw it."""
    for ready in (True, False):
        wanted = desired([syncer(suspend=True)], [service()], [piece(endpoint(1, ready=ready))])
        assert lost(wanted, observed(), {key(1)}) == ({key(1)} if ready else set())


def test_only_what_is_known_to_be_gone_comes_back_for_a_suspended_syncer() -> None:
    """Another owner has its id now, or it could not be read. Other syncers register by their
    plan."""
    wanted = desired([syncer(suspend=True)], [service()], [piece(endpoint(1))])
    ours = stored(instance(1))
    anothers = changed(ours, metadata={**ours.metadata, OWNER: "another"})
    unread = replace(observed(), unread={key(1): Unread(why="503")})
    for there in (observed(ours), observed(anothers), unread):
        assert lost(wanted, there, {key(1)}) == set()
    active = desired([syncer()], [service()], [piece(endpoint(1))])
    assert lost(active, observed(), {key(1)}) == set()


def test_a_suspended_syncer_outlives_a_restart_of_eureka() -> None:
    """Eureka comes back empty. The UP instances are registered again, and no others."""
    world = suspended(limit=2)
    world.registry.held.clear()
    world.run()
    assert sorted(standing(world).values()) == [UP, UP]
    assert world.run().plan.changes == ()


def test_a_suspended_syncer_gets_nothing_back_that_we_cancelled() -> None:
    """Its app had another name for a moment. The list still shows the instances with the first
    name."""
    world = setting(pods=1)
    world.registry.cached_for(30)
    world.cluster.apply(syncer(appName="fresh"))
    world.run()
    world.later(10)
    world.cluster.apply(syncer(suspend=True))
    for _ in range(6):
        world.run()
        assert standing(world) == {}
        world.later(10)
    assert [one.status for one in world.registry.held.values() if one.key.app == "FRESH"] == [UP]


def test_a_syncer_that_is_created_suspended_gets_nothing_back_from_an_older_one() -> None:
    """The list still shows the instances of its predecessor."""
    world = setting(pods=1)
    world.registry.cached_for(30)
    world.cluster.delete(REF)
    world.run()
    world.cluster.syncers.pop(REF)
    world.later(5)
    world.cluster.apply(syncer(suspend=True))
    for _ in range(6):
        world.run()
        assert standing(world) == {}
        world.later(10)


def test_a_suspended_syncer_gains_nothing_by_another_mode() -> None:
    """Another copy made the last registration after this list, and its writes are unknown here."""
    world = setting(pods=1)
    held = dict(world.registry.held)
    world.registry.held.clear()
    world.registry.cached_for(30)
    world.registry.held.update(held)
    world.cluster.apply(syncer(suspend=True, mode="service"))
    for _ in range(6):
        world.run()
        assert standing(world) == {key(1): UP}
        world.later(10)


def test_a_suspended_syncer_gains_nothing_from_a_list_without_its_instances() -> None:
    """The list may be older than the registrations, and the process may be new."""
    world = setting(pods=0)
    world.registry.cached_for(30)
    world.cluster.apply(piece(endpoint(2)))
    world.run()
    world.cluster.apply(syncer(suspend=True), piece(endpoint(1), endpoint(2)))
    world.run()
    assert standing(world) == {key(2): UP}


def test_an_instance_that_cannot_be_read_is_not_registered_again() -> None:
    """It may be registered. The next pass reads it again."""
    world = suspended(pods=1)
    world.registry.held.clear()
    world.run()
    world.wire.fail = (world.wire.calls.index(f"read_instance {key(1)}"), When.BEFORE)
    world.registry.held.clear()
    world.run()
    assert standing(world) == {}
    world.wire.fail = None
    world.run()
    assert standing(world) == {key(1): UP}


def unreadable_slices(world: FakeWorld) -> None:
    world.cluster.unknown[("slices", "*")] = DENIED


def unready_pods(world: FakeWorld) -> None:
    world.cluster.apply(piece(*(endpoint(n, ready=False) for n in (1, 2, 3))))


def no_service(world: FakeWorld) -> None:
    world.cluster.services.clear()


def no_registrations(world: FakeWorld) -> None:
    world.registry.refuse_register.update({key(n): RegistryUnavailable("503") for n in (1, 2)})


@pytest.mark.parametrize("trouble", [unreadable_slices, unready_pods, no_service, no_registrations])
@pytest.mark.parametrize("listed", [True, False])
def test_a_lost_instance_is_registered_again_in_a_later_pass_despite_trouble(
    trouble: Callable[[FakeWorld], None], listed: bool
) -> None:
    """An instance that was UP is not forgotten because of the failure, nor because others could be
    registered."""
    world = suspended()
    if listed:
        lose_all(world)
    else:
        world.registry.held.clear()
    trouble(world)
    world.run()
    world.cluster.unknown.clear()
    world.registry.refuse_register.clear()
    world.cluster.apply(piece(*(endpoint(n) for n in (1, 2, 3))), service())
    for _ in range(2):
        world.later(40)
        world.run()
    assert standing(world) == {key(1): UP, key(2): UP, key(3): UP}
    assert world.run().plan.changes == ()


@pytest.mark.parametrize("when", list(When))
def test_lost_instances_are_registered_again_whichever_call_fails(when: When) -> None:
    """Later passes do what is left."""
    world = suspended()
    world.registry.held.clear()
    world.run()
    calls = len(world.wire.calls)
    assert calls > 10
    for number in range(calls):
        world = suspended()
        world.registry.held.clear()
        world.wire.fail = (number, when)
        world.run()
        world.wire.fail = None
        for _ in range(3):
            world.later(30)
            world.run()
        assert len(standing(world)) == 3, number


def test_an_instance_cancelled_between_two_suspensions_is_not_registered_again() -> None:
    """The pass that cancelled it could write no status."""
    world = suspended()
    world.registry.cached_for(30)
    world.cluster.apply(syncer(limit=1))

    def suspend_again() -> None:
        if world.wire.calls[-1].startswith("cancel"):
            world.cluster.apply(syncer(suspend=True))

    world.wire.then = suspend_again
    world.run()
    world.wire.then = lambda: None
    for _ in range(12):
        world.later(10)
        world.run()
        assert len(standing(world)) == 1


def test_a_suspended_syncer_that_cannot_be_served_loses_nothing() -> None:
    """Nothing is changed, even without the pod."""
    world = setting()
    world.cluster.pods[NS] = (PodRef("rating-1", "uid-of-rating-1"),)
    world.cluster.apply(syncer(suspend=True, port="grpc"), piece(endpoint(1)))
    world.run()
    assert standing(world) == {key(1): UP, key(2): UP}


def test_a_suspended_syncer_that_never_registered_does_not_begin() -> None:
    """It has nothing to restore."""
    world = setting(suspend=True)
    world.run()
    assert standing(world) == {}


def test_a_suspended_syncer_can_be_deleted() -> None:
    """A suspension does not prevent that."""
    world = setting(suspend=False)
    world.cluster.apply(syncer(suspend=True))
    world.cluster.delete(REF)
    world.run()
    assert standing(world) == {}
    world.later(46)
    world.run()
    assert REF not in world.cluster.syncers


def test_a_suspended_syncer_registers_nothing_while_the_registry_cannot_be_read() -> None:
    """Its registered instances are unknown, and this process never saw them."""
    world = setting()
    world.cluster.apply(syncer(suspend=True))
    world.registry.held.clear()
    world.registry.unreadable = DENIED
    world.run()
    assert standing(world) == {}


# --- onDuplicate ----------------------------------------------------------------------------------


def itself(number: int) -> ObservedInstance:
    """The instance that the pod's own Eureka client registered."""
    ip = f"10.0.0.{number}"
    return changed(
        foreign(f"rating-{number}:rating"), host_name=ip, ip_addr=ip, port=Port(8080, True)
    )


def test_with_warn_a_pod_that_registers_itself_is_registered_a_second_time() -> None:
    """The syncer's Ready message says so, and so does every pass."""
    world = FakeWorld()
    world.cluster.apply(service(), syncer(onDuplicate="Warn"), piece(endpoint(1), endpoint(2)))
    world.registry.put(itself(1), itself(2))
    for _ in range(2):
        report = world.run()
        assert sum("registers itself as" in sentence for sentence in sentences(report)) == 1
    assert {key(1), key(2)} <= set(world.registry.held)
    assert condition(world, "Conflict").status == "False"
    ready = condition(world, "Ready")
    assert ready.status == "True"
    assert (
        "the pod of prod:rating:rating:10.0.0.1:8080 registers itself as rating-1:rating as well, "
        "and gets twice the "
        "calls; so does 1 more pod"
    ) in ready.message


def test_with_skip_a_pod_that_registers_itself_is_not_registered_a_second_time() -> None:
    """It is the default. The conflict names the pod's own instance."""
    world = FakeWorld()
    world.cluster.apply(service(), syncer(onDuplicate="Skip"), piece(endpoint(1), endpoint(2)))
    world.registry.put(itself(1))
    world.run()
    assert key(1) not in world.registry.held
    assert condition(world, "Conflict").reason == "DuplicateRegistration"
