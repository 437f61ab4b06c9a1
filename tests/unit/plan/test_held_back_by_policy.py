"""`policy`, `suspend` and `onDuplicate`: what they keep a pass from doing, through whole passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.cli.output.words import sentences
from eurekube_sync.desired.conduct import GONE, LIMIT, POLICY
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.actions import Change, Renew, Update
from eurekube_sync.model.errors import RegistryUnavailable
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance, Port
from eurekube_sync.model.kubernetes import Condition, PodRef
from eurekube_sync.model.ownership import OWNER, POD
from eurekube_sync.observe.eureka import LastSeen, Unread
from eurekube_sync.plan.left_alone import lost
from tests.unit.worlds.build import (
    DENIED,
    DOWN,
    NS,
    OUT,
    REF,
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

NEVER_CANCELLING = ("UpsertOnly", "CreateOnly")


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


# --- policy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", NEVER_CANCELLING)
def test_the_instance_of_a_gone_endpoint_is_down_not_renewed_and_expires(policy: str) -> None:
    """It is never cancelled. When the endpoint is back, it is registered as before."""
    world = setting(policy=policy)
    world.cluster.apply(piece(endpoint(1)))
    report = world.run()
    assert standing(world) == {key(1): UP, key(2): DOWN}
    assert any("policy" in action.why for action in report.plan.changes)
    for _ in range(9):
        minutes(world, 1)
        assert f"renew {key(1)}" in world.wire.calls
        assert f"renew {key(2)}" not in world.wire.calls
    assert standing(world) == {key(1): UP, key(2): DOWN}
    minutes(world, 3)
    assert standing(world) == {key(1): UP}
    assert not any(call.startswith("cancel") for call in world.wire.calls)
    world.cluster.apply(piece(endpoint(1), endpoint(2)))
    world.run()
    assert standing(world) == {key(1): UP, key(2): UP}
    assert mark(world, 2, GONE) is None


def test_the_report_shows_what_changes_where_a_cancel_becomes_down() -> None:
    """The marks change, and the status too if it was UP. The mark of the policy is a change only if
    it is new."""
    gone = Change(field=f"metadata.{GONE}", was="", becomes="true")
    down = Change(field="status", was="UP", becomes="DOWN")
    marked = Change(field=f"metadata.{POLICY}", was="", becomes="UpsertOnly")
    world = setting(policy="UpsertOnly", pods=3)
    world.cluster.apply(piece(endpoint(1), endpoint(2), endpoint(3, ready=False)))
    world.run()
    world.cluster.apply(piece(endpoint(1)))
    changes = {one.key: one.changes for one in world.run().plan.of(Update)}
    assert changes == {key(2): (gone, down), key(3): (gone,)}
    world = setting()
    world.cluster.apply(syncer(policy="UpsertOnly"), piece(endpoint(1)))
    changes = {one.key: one.changes for one in world.run().plan.of(Update)}
    assert changes == {key(1): (marked,), key(2): (gone, marked, down)}


@pytest.mark.parametrize("policy", NEVER_CANCELLING)
def test_an_endpoint_that_comes_back_in_time_is_up_again(policy: str) -> None:
    """The mark of its end is removed."""
    world = setting(policy=policy)
    world.cluster.apply(piece(endpoint(1)))
    world.run()
    assert mark(world, 2, GONE) == "true"
    world.cluster.apply(piece(endpoint(1), endpoint(2)))
    world.run()
    assert (standing(world)[key(2)], mark(world, 2, GONE)) == (UP, None)
    assert world.run().plan.changes == ()


@pytest.mark.parametrize("policy", NEVER_CANCELLING)
@pytest.mark.parametrize(
    "why",
    [
        {"endpoints": (endpoint(1), endpoint(2, terminating=True, ready=False))},
        {"endpoints": (endpoint(1), endpoint(2, ready=False)), "notReady": "Cancel"},
        {"endpoints": (endpoint(1), endpoint(2)), "limit": 1},
    ],
    ids=["terminating", "notReady: Cancel", "limit"],
)
def test_under_such_a_policy_no_reason_cancels_an_instance(
    policy: str, why: dict[str, Any]
) -> None:
    """The instance is turned DOWN instead, whatever else the spec says."""
    endpoints = why.pop("endpoints") if "endpoints" in why else ()
    world = setting(policy=policy)
    world.cluster.apply(piece(*endpoints), syncer(policy=policy, **why))
    why["endpoints"] = endpoints
    world.run()
    assert sorted(standing(world).values()) == [DOWN, UP]
    assert world.run().plan.changes == ()


@pytest.mark.parametrize("policy", NEVER_CANCELLING)
def test_the_policy_holds_when_the_syncer_is_deleted(policy: str) -> None:
    """Its instances are DOWN and expire. The finalizer waits only for the list."""
    world = setting(policy=policy)
    assert mark(world, 1, POLICY) == policy
    world.cluster.delete(REF)
    world.run()
    assert standing(world) == {key(1): DOWN, key(2): DOWN}
    assert REF in world.cluster.syncers
    world.later(46)
    world.run()
    assert REF not in world.cluster.syncers
    minutes(world, 8)
    assert standing(world) == {key(1): DOWN, key(2): DOWN}
    minutes(world, 4)
    assert standing(world) == {}


def test_a_deleted_syncer_that_registered_nothing_waits_for_nothing_though_its_policy_cancels_nothing() -> (
    None
):
    """An instance that was never registered needs no cancel. One of others under our id stays."""
    world = FakeWorld()
    world.cluster.apply(
        service(),
        piece(endpoint(1, ready=False)),
        syncer(policy="UpsertOnly", finalizers=(CLEANUP_FINALIZER,)),
    )
    world.cluster.delete(REF)
    world.later(46)
    world.run()
    assert REF not in world.cluster.syncers
    assert not any(call.startswith("cancel") for call in world.wire.calls)


def test_the_policy_holds_for_an_orphan() -> None:
    """Its syncer was deleted without its finalizer."""
    world = setting(policy="UpsertOnly")
    del world.cluster.syncers[REF]
    world.run()
    assert standing(world) == {key(1): DOWN, key(2): DOWN}
    assert world.run().plan.changes == ()


def test_a_deleted_syncer_that_can_not_be_read_follows_the_marks() -> None:
    """Its spec is broken now, and the marks of its instances count."""
    world = setting(policy="UpsertOnly")
    world.cluster.apply(syncer(selector={}))
    world.cluster.delete(REF)
    world.run()
    assert standing(world) == {key(1): DOWN, key(2): DOWN}


@pytest.mark.parametrize("policy", NEVER_CANCELLING)
def test_a_new_policy_holds_for_older_instances_after_its_syncer_is_gone(policy: str) -> None:
    """An instance that is left to expire gets the new mark by then."""
    world = setting()
    world.cluster.apply(syncer(policy=policy), piece(endpoint(1)))
    world.run()
    assert (standing(world), mark(world, 2, POLICY)) == ({key(1): UP, key(2): DOWN}, policy)
    del world.cluster.syncers[REF]
    world.run()
    assert standing(world) == {key(1): DOWN, key(2): DOWN}


@pytest.mark.parametrize("policy", NEVER_CANCELLING)
def test_a_new_policy_holds_for_older_instances_of_a_syncer_not_served(policy: str) -> None:
    """No pass marks such instances, so the spec decides."""
    world = setting()
    world.cluster.pods[NS] = (PodRef("rating-1", "uid-of-rating-1"),)
    world.cluster.apply(syncer(policy=policy, port="grpc"), piece(endpoint(1)))
    world.run()
    assert standing(world) == {key(1): UP, key(2): DOWN}


@pytest.mark.parametrize("policy", NEVER_CANCELLING)
def test_a_new_policy_holds_for_older_instances_of_a_deleted_syncer(policy: str) -> None:
    """The policy was changed and the syncer deleted between two passes."""
    world = setting()
    world.cluster.apply(syncer(policy=policy))
    world.cluster.delete(REF)
    world.run()
    assert standing(world) == {key(1): DOWN, key(2): DOWN}


def test_of_two_policies_that_cancel_nothing_the_spec_s_is_marked() -> None:
    """The mark in the instance is older."""
    world = setting(policy="CreateOnly")
    world.cluster.pods[NS] = (PodRef("rating-1", "uid-of-rating-1"),)
    world.cluster.apply(syncer(policy="UpsertOnly", port="grpc"), piece(endpoint(1)))
    world.run()
    assert (standing(world)[key(2)], mark(world, 2, POLICY)) == (DOWN, "UpsertOnly")


def test_a_policy_of_a_later_version_cancels_nothing() -> None:
    """For this version the syncer is invalid."""
    world = setting()
    world.cluster.pods[NS] = (PodRef("rating-1", "uid-of-rating-1"),)
    world.cluster.apply(syncer(policy="Hoard"), piece(endpoint(1)))
    world.run()
    assert standing(world) == {key(1): UP, key(2): DOWN}


def test_back_to_sync_cancels_what_was_left_to_expire() -> None:
    """The mark of the policy is removed from the instances that stay."""
    world = setting(policy="UpsertOnly")
    world.cluster.apply(piece(endpoint(1)))
    world.run()
    world.cluster.apply(syncer())
    world.run()
    assert standing(world) == {key(1): UP}
    assert mark(world, 1, POLICY) is None


@pytest.mark.parametrize("policy", NEVER_CANCELLING)
def test_an_instance_that_a_person_put_out_of_service_stays_so(policy: str) -> None:
    """Eureka trusts DOWN before an override, and does not forget the override."""
    world = setting(policy=policy)
    world.registry.override(key(2), OUT)
    world.cluster.apply(piece(endpoint(1)))
    world.run()
    assert standing(world)[key(2)] is DOWN
    world.cluster.apply(piece(endpoint(1), endpoint(2)))
    world.run()
    assert standing(world)[key(2)] is OUT


def test_an_expiring_instance_is_not_renewed_while_the_clusters_uid_is_unknown() -> None:
    """Its mark is readable without the cluster."""
    world = setting(policy="UpsertOnly")
    world.cluster.apply(piece(endpoint(1)))
    world.run()
    world.later(60)
    world.cluster.uid = DENIED
    world.run()
    assert f"renew {key(2)}" not in world.wire.calls
    assert f"renew {key(1)}" in world.wire.calls


def test_an_expiring_instance_is_not_renewed_while_eureka_cannot_be_read() -> None:
    """A daemon renews what it knows to be registered, and this instance is not part of it."""
    world = setting(policy="UpsertOnly")
    world.renewals = RenewalLedger(period=30, slack=5)
    world.run()
    world.cluster.apply(piece(endpoint(1)))
    world.run()
    world.later(60)
    world.registry.unreadable = DENIED
    world.run()
    assert f"renew {key(2)}" not in world.wire.calls
    assert f"renew {key(1)}" in world.wire.calls


def test_an_expiring_instance_is_not_renewed_for_a_syncer_not_served() -> None:
    """A broken spec brings no endpoint back."""
    world = setting(policy="UpsertOnly")
    world.cluster.apply(piece(endpoint(1)))
    world.run()
    world.later(60)
    world.cluster.pods[NS] = (PodRef("rating-2", "uid-of-rating-2"),)
    world.cluster.apply(syncer(policy="UpsertOnly", hostName="nodeName"))
    world.run()
    assert f"renew {key(2)}" not in world.wire.calls
    assert f"renew {key(1)}" in world.wire.calls


def test_upsert_only_changes_what_differs() -> None:
    """Only cancels are left out."""
    world = setting(policy="UpsertOnly")
    world.cluster.apply(syncer(policy="UpsertOnly", metadata={"version": "2"}))
    world.run()
    assert mark(world, 1, "version") == "2"


def test_create_only_follows_up_and_down_and_changes_nothing_else() -> None:
    """Neither a new spec nor a person's change leads to an update."""
    world = setting(policy="CreateOnly", metadata={"version": "1"})
    by_hand = world.registry.held[key(1)]
    world.registry.put(
        changed(by_hand, host_name="by-hand", metadata={**by_hand.metadata, "added": "x"})
    )
    world.cluster.apply(
        syncer(policy="CreateOnly", metadata={"version": "2"}, vipAddress="another")
    )
    assert world.run().plan.changes == ()
    world.cluster.apply(piece(endpoint(1, ready=False), endpoint(2), endpoint(3)))
    world.run()
    assert standing(world) == {key(1): DOWN, key(2): UP, key(3): UP}
    kept = world.registry.held[key(1)]
    assert (kept.instance.host_name, kept.instance.vip_address) == ("by-hand", "rating")
    assert (kept.metadata["version"], kept.metadata["added"]) == ("1", "x")
    assert world.registry.held[key(3)].metadata["version"] == "2"
    assert world.run().plan.changes == ()


def test_differences_that_create_only_ignores_are_no_change_in_the_report() -> None:
    """A pod becomes unready while its spec changes, and only the status changes. An instance with
    ignored differences is renewed as it is. After a 404 an UP one is registered again."""
    world = setting(policy="CreateOnly", metadata={"version": "1"}, pods=3)
    world.cluster.apply(piece(endpoint(1), endpoint(2), endpoint(3, ready=False)))
    world.run()
    world.cluster.apply(
        syncer(policy="CreateOnly", metadata={"version": "2"}),
        piece(endpoint(1), endpoint(2, ready=False), endpoint(3, ready=False)),
    )
    plan = world.run().plan
    assert [(one.key, one.changes) for one in plan.of(Update)] == [
        (key(2), (Change(field="status", was="UP", becomes="DOWN"),))
    ]
    renewals = {one.key: one for one in plan.of(Renew)}
    up, down = renewals[key(1)], renewals[key(3)]
    assert (up.syncer, up.status, up.if_gone and up.if_gone.metadata["version"]) == (REF, UP, "2")
    assert (down.syncer, down.status, down.if_gone) == (REF, DOWN, None)


def test_create_only_registers_lost_instances_again_and_new_pods_at_old_addresses() -> None:
    """A lost lease, and a new pod at an old address, are registrations."""
    world = setting(policy="CreateOnly", metadata={"version": "1"})
    world.cluster.apply(
        syncer(policy="CreateOnly", metadata={"version": "2"}),
        piece(endpoint(1), endpoint(2, pod="new")),
    )
    world.run()
    assert mark(world, 1, "version") == "1"
    assert (mark(world, 2, "version"), mark(world, 2, POD)) == ("2", "new/uid-of-new")
    world.registry.held.clear()
    world.run()
    assert standing(world) == {key(1): UP, key(2): UP}


def test_a_renewal_that_meets_no_lease_registers_the_create_only_instance_again() -> None:
    """It is registered although it differs from the present spec, and although the list still shows
    it."""
    world = setting(policy="CreateOnly", metadata={"version": "1"})
    world.cluster.apply(syncer(policy="CreateOnly", metadata={"version": "2"}))
    lose_all(world)
    world.run()
    assert standing(world) == {key(1): UP, key(2): UP}


def test_a_not_ready_instance_under_create_only_is_not_registered_again() -> None:
    """A not-ready endpoint is never registered."""
    world = setting(policy="CreateOnly", metadata={"version": "1"})
    world.cluster.apply(piece(endpoint(1), endpoint(2, ready=False)))
    world.run()
    world.cluster.apply(syncer(policy="CreateOnly", metadata={"version": "2"}))
    report = world.run()
    assert report.plan.changes == ()
    assert standing(world)[key(2)] is DOWN


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


def test_marks_are_written_for_limit_and_policy_together() -> None:
    """Both can be read back from Eureka alone."""
    world = setting(policy="UpsertOnly", limit={"share": "50%"})
    found = next(one for one in world.registry.held.values() if one.key.app == "RATING")
    assert (found.metadata[POLICY], found.metadata[LIMIT]) == ("UpsertOnly", "share 50%")
