"""Properties that hold for every cluster and every registry."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.desired.claims import Desired, NotServed
from eurekube_sync.model.actions import Cancel, Register, Renew, Update
from eurekube_sync.model.eureka import InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import EndpointSlice
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.sources import Complete, Listed, Source
from eurekube_sync.model.struct import replace
from eurekube_sync.plan.make import make_plan, plan_blind
from tests.unit.worlds.build import DENIED, OWNERSHIP, TERMINATING, desired, listed, observed
from tests.unit.worlds.fakes import FakeWorld
from tests.unit.worlds.strategies import NAMESPACES, REGISTRIES, STATUSES, Scenery, sceneries

pytestmark = pytest.mark.usefixtures("both_ways")

NO_BRAKE = BrakeLimits(loss_percent=100, apps_floor=10**6)


def claims_of(scenery: Scenery) -> Desired:
    """All claims, from complete lists."""
    return desired(scenery.syncers, scenery.services, scenery.slices)


@given(sceneries(), REGISTRIES, st.data())
def test_the_order_and_number_of_what_is_listed_change_nothing(
    scenery: Scenery, registry: list[ObservedInstance], data: st.DataObject
) -> None:
    """Slices, Services and endpoints are reordered and listed twice. Claims and plan stay the
    same."""

    def shaken(things: tuple[Any, ...]) -> tuple[Any, ...]:
        twice = data.draw(st.lists(st.sampled_from(things), max_size=3)) if things else []
        return tuple(data.draw(st.permutations([*things, *twice])))

    def endpoints_shaken(one: EndpointSlice) -> EndpointSlice:
        return replace(one, endpoints=shaken(one.endpoints))

    other = Scenery(
        syncers=shaken(scenery.syncers),
        services=shaken(scenery.services),
        slices=tuple(endpoints_shaken(one) for one in shaken(scenery.slices)),
    )
    claims, of_other = claims_of(scenery), claims_of(other)
    assert of_other == replace(
        claims,
        syncers=listed(other.syncers),
        # These two compute more on request, and are other objects each time.
        sockets=of_other.sockets,
        heirs=of_other.heirs,
    )
    plan = make_plan(claims, observed(*registry))
    assert make_plan(of_other, observed(*data.draw(st.permutations(registry)))) == plan


@given(sceneries(), REGISTRIES)
def test_a_plan_has_one_action_for_a_key_and_none_for_anothers(
    scenery: Scenery, registry: list[ObservedInstance]
) -> None:
    """No action concerns an instance of others. Only absent instances are registered."""
    stands = {one.key: one for one in registry}
    plan = make_plan(claims_of(scenery), observed(*registry))
    keys = [action.key for action in plan.actions]
    assert len(set(keys)) == len(keys)
    for action in plan.actions:
        found = stands.get(action.key)
        assert found is None or OWNERSHIP.holds(found)
        match action:
            case Register():
                assert found is None
                assert action.instance.status is InstanceStatus.UP
            case Renew() | Update():
                assert found is not None
            case Cancel():
                assert (found is None) is (action.was is None)


def unknown_somewhere(data: st.DataObject, things: tuple[Any, ...]) -> tuple[Listed[Any], set[str]]:
    """The namespaces whose lists failed, for one kind."""
    failed = data.draw(st.sets(st.sampled_from(NAMESPACES)))
    whole = listed(things)
    by_namespace: dict[str, Source[tuple[Any, ...]]] = {
        **whole.by_namespace,
        **dict.fromkeys(failed, DENIED),
    }
    return Listed(by_namespace=by_namespace, elsewhere=whole.elsewhere), failed


@given(sceneries(), REGISTRIES, st.data())
def test_an_unknown_source_causes_no_removal(
    scenery: Scenery, registry: list[ObservedInstance], data: st.DataObject
) -> None:
    """Each cancel or change belongs to a syncer whose namespace was listed completely, while the
    CRD exists."""
    syncers, no_syncers = unknown_somewhere(data, scenery.syncers)
    services, no_services = unknown_somewhere(data, scenery.services)
    slices, no_slices = unknown_somewhere(data, scenery.slices)
    crd_live: Source[bool] = Complete(data=True) if data.draw(st.booleans()) else TERMINATING
    claims = desired(syncers, services, slices, crd_live=crd_live)
    instances = {one.key: one for one in registry}
    for action in make_plan(claims, observed(*registry)).actions:
        if isinstance(action, Cancel):
            syncer = action.syncer
            claim = claims.claims.get(syncer)
            assert syncer.namespace not in no_syncers
            assert not (isinstance(claim, NotServed) and claim.source)
            if claim is None or claim.syncer.deleted is not None:
                assert isinstance(crd_live, Complete)
            if claim is not None:
                assert syncer.namespace not in no_services | no_slices
            assert action.key not in instances or syncer_of(instances[action.key]) == syncer


@given(sceneries())
def test_a_plan_without_eurekas_list_only_renews(scenery: Scenery) -> None:
    """While the registry is Unknown nothing else is planned."""
    claims = claims_of(scenery)
    assert {action.key for action in plan_blind(claims).of(Renew)} == set(claims.wanted_by)
    assert plan_blind(claims).changes == ()


def world_of(scenery: Scenery, registry: list[ObservedInstance], *, cache: float) -> FakeWorld:
    """A world with this scenery and registry, for passes."""
    world = FakeWorld(cache=cache)
    world.brake = NO_BRAKE
    world.cluster.syncers = {one.ref: one for one in scenery.syncers}
    world.cluster.services = list(scenery.services)
    world.cluster.slices = list(scenery.slices)
    world.registry.put(*registry)
    return world


def come_to_rest(world: FakeWorld) -> None:
    """Make three passes. Held removals are approved, because they are all our instances."""
    for _ in range(3):
        held = world.run().held
        if held is not None:
            assert world.run(approved=held.plan_id).held is None
        world.later(46)


@given(
    sceneries(),
    REGISTRIES,
    st.lists(st.tuples(st.integers(0, 7), st.sampled_from(STATUSES)), max_size=3),
    st.sampled_from((0, 30)),
)
def test_after_a_pass_nothing_but_renewals_is_left(
    scenery: Scenery,
    registry: list[ObservedInstance],
    overrides: list[tuple[int, InstanceStatus]],
    cache: float,
) -> None:
    """Every world reaches this state, despite overrides and lists that are 30 s old. Instances of
    others are unchanged."""
    world = world_of(scenery, registry, cache=cache)
    for number, status in overrides:
        if registry:
            world.registry.override(registry[number % len(registry)].key, status)
    others = {
        key: one for key, one in world.registry.held.items() if key in observed(*registry).others
    }
    come_to_rest(world)
    report = world.run()
    assert world.wire.writes() == []
    assert report.plan.changes == ()
    assert {key: world.registry.held.get(key) for key in others} == others


@given(sceneries(), REGISTRIES)
def test_a_plan_leaves_undone_only_what_it_reports(
    scenery: Scenery, registry: list[ObservedInstance]
) -> None:
    """Each instance that a syncer wants UP is registered, unless it is blocked or a person's
    override applies."""
    world = world_of(scenery, registry, cache=0)
    come_to_rest(world)
    report = world.run()
    assert report.desired is not None
    blocked = {one.key for one in report.plan.blocked}
    for key in set(report.desired.wanted_by) - blocked:
        wanted = report.desired.wanted(key)
        standing = world.registry.held.get(key)
        assert wanted is not None
        if standing is None:
            assert wanted.instance.status is InstanceStatus.DOWN
        else:
            assert standing.status in (wanted.instance.status, InstanceStatus.OUT_OF_SERVICE)


@given(sceneries(), REGISTRIES)
def test_the_same_world_gives_the_same_plan_and_statuses(
    scenery: Scenery, registry: list[ObservedInstance]
) -> None:
    """The result depends on no memory, no chance and no order of sets."""
    first, second = (world_of(scenery, registry, cache=0) for _ in range(2))
    assert first.run().plan == second.run().plan
    assert {r: s.status for r, s in first.cluster.syncers.items()} == {
        r: s.status for r, s in second.cluster.syncers.items()
    }
    assert first.wire.calls == second.wire.calls
