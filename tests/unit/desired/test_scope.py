"""The scope of an installation: namespaces, labels and classes, and which namespaces a syncer may
select from."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.desired.claims import Serving
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.selector import parse_selector
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import SyncerObject, SyncerRef
from eurekube_sync.model.ownership import CLASS, SYNCER, syncer_of
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import (
    DENIED,
    NS,
    OWNERSHIP,
    REF,
    desired,
    endpoint,
    listed,
    piece,
    service,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld
from tests.unit.worlds.strategies import NAMESPACES, REGISTRIES, Scenery, sceneries

TEAM_A, TEAM_B = parse_selector("team=a"), parse_selector("team=b")
NO_BRAKE = BrakeLimits(loss_percent=100, apps_floor=10**6)


def labelled(one: SyncerObject, **labels: str) -> SyncerObject:
    """A syncer with only these labels."""
    return replace(one, labels=labels)


# --- Selectors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("team=a", {"team": "a"}, True),
        ("team==a", {"team": "b"}, False),
        ("team != a", {}, True),
        ("team!=a", {"team": "a"}, False),
        ("team in (a, b)", {"team": "b"}, True),
        ("team in (a,b),tier", {"team": "b"}, False),
        ("team notin (a)", {"team": "a"}, False),
        ("eurekube.io/team", {"eurekube.io/team": ""}, True),
        ("!team", {"team": ""}, False),
        ("! team", {}, True),
        ("team=", {"team": ""}, True),
        ("team in (a,b) , !canary", {"team": "a"}, True),
    ],
)
def test_a_selector_means_what_kubectl_means(
    text: str, labels: Mapping[str, str], matches: bool
) -> None:
    """Equality, sets and existence, which must all hold."""
    assert Scope(selector=parse_selector(text)).takes(labelled(syncer(), **labels)) is matches


@pytest.mark.parametrize(
    "text", ["", "team=a,", "=a", "team=a b", "team in a", "team in (a", "te am", "a/b/c", "ä=b"]
)
def test_a_selector_that_is_none_is_refused(text: str) -> None:
    """A misread selector would serve every syncer or none."""
    with pytest.raises(ValueError, match="is no valid part of a label selector"):
        parse_selector(text)


# --- What a scope covers --------------------------------------------------------------------------


def test_a_class_is_taken_by_the_installation_that_has_it() -> None:
    """A syncer without a class belongs to the installation without one."""
    classes = (None, "internal", "edge")
    one_of_each = [syncer(), syncer(syncerClass="internal"), syncer(syncerClass="edge")]
    for own in classes:
        taken = [Scope(syncer_class=own).takes(one) for one in one_of_each]
        assert taken == [own == other for other in classes]


def test_an_empty_class_is_none() -> None:
    """The present CRD refuses it. An instance has no mark of it, so another installation without a
    class would take it for a syncer that has changed its class."""
    claim = desired([syncer(syncerClass="")], [service()], [piece(endpoint())]).claims[REF]
    assert isinstance(claim, Serving)
    assert claim.wanted
    assert not any(CLASS in one.instance.metadata for one in claim.wanted.values())


def test_only_complete_lists_show_that_an_instance_belongs_to_others() -> None:
    """While the list of a namespace is unknown, any syncer there may be ours."""
    theirs = syncer(syncerClass="edge")
    assert not Scope().knowing(listed([theirs])).covers(REF)
    assert Scope().knowing(replace(listed([]), by_namespace={NS: DENIED})).covers(REF)


@pytest.mark.parametrize(
    "text",
    [
        "team=a",
        "team!=a",
        "team in (a, b)",
        "team notin (a, b)",
        "team",
        "!team",
        "team=",
        "a=b,!c,d in (e, f)",
    ],
)
def test_a_selector_is_written_as_it_is_read(text: str) -> None:
    """A pasted command then has the same scope."""
    found = parse_selector(text)
    assert parse_selector(",".join(str(one) for one in found)) == found
    assert Scope(selector=found).options == ("--selector", ",".join(str(one) for one in found))


def test_a_scope_says_in_words_what_part_it_is() -> None:
    """It distinguishes two installations."""
    scope = Scope(selector=parse_selector("team=a,!canary"), syncer_class="edge")
    assert str(scope) == "selector team=a, !canary; class edge"
    assert str(Scope()) == ""


@pytest.mark.parametrize(
    ("pairs", "allowed"),
    [
        ({("rating", "shop")}, True),
        ({("rating", "*")}, True),
        ({("*", "shop")}, True),
        ({("*", "*")}, True),
        ({("shop", "rating")}, False),
        ({("rating", "other"), ("other", "shop")}, False),
        (set(), False),
    ],
)
def test_services_of_another_namespace_need_the_operators_permission(
    pairs: set[tuple[str, str]], allowed: bool
) -> None:
    """From and to are not interchangeable, and two permissions do not make a third."""
    scope = Scope(allowed=frozenset(pairs))
    assert scope.may_select(syncer(selector={"app": "rating", "namespace": "shop"})) is allowed
    assert scope.may_select(syncer(selector={"app": "rating", "namespace": NS}))
    assert scope.may_select(syncer(selector={"app": "rating"}))


# --- Passes ---------------------------------------------------------------------------------------


@pytest.fixture
def world() -> FakeWorld:
    """Two syncers of one namespace, of team a and team b, with a pod each."""
    world = FakeWorld()
    world.brake = NO_BRAKE
    world.cluster.apply(
        labelled(syncer("a", selector={"service": "a"}), team="a"),
        labelled(syncer("b", selector={"service": "b"}), team="b"),
        service("a"),
        service("b"),
        piece(endpoint(1), service="a"),
        piece(endpoint(2), service="b"),
    )
    return world


def touches(world: FakeWorld, scope: Scope) -> set[str]:
    """The apps that a pass in this scope calls for anything but a read."""
    world.scope = scope
    world.run()
    return {call.split()[1].split("/")[0] for call in calls_to_eureka(world.wire.calls)}


def relabel(world: FakeWorld, name: str, **labels: str) -> None:
    """Change the labels, as `kubectl label` does."""
    ref = SyncerRef(NS, name)
    world.cluster.syncers[ref] = labelled(world.cluster.syncers[ref], **labels)


def test_a_selector_serves_its_own_and_leaves_the_others(world: FakeWorld) -> None:
    """Not even a renewal concerns the other installation's instance, although both have the same
    owner."""
    for scope, own in ((Scope(selector=TEAM_B), {"B"}), (Scope(selector=TEAM_A), {"A"})) * 2:
        assert touches(world, scope) == own
    assert world.statuses() == {"A 10.0.0.1:8080": "UP", "B 10.0.0.2:8080": "UP"}


def test_the_syncers_are_listed_once_and_before_the_renewals_when_labels_choose(
    world: FakeWorld,
) -> None:
    """With a label selector only that list shows whose instances they are. Otherwise instances are
    renewed before the cluster is asked."""
    for scope, first in ((Scope(selector=TEAM_A), "list_syncers"), (Scope(), "renew")):
        world.scope = scope
        world.run()
        world.run()
        verbs = world.wire.verbs()
        assert verbs.count("list_syncers") == 1
        assert min(("list_syncers", "renew"), key=verbs.index) == first


def test_while_the_syncers_cannot_be_listed_all_that_may_be_ours_is_renewed(
    world: FakeWorld,
) -> None:
    """In doubt every lease is renewed, even if it may be another installation's. Nothing else is
    done."""
    world.run()
    world.cluster.unknown[("syncers", "*")] = DENIED
    assert touches(world, Scope(selector=TEAM_A)) == {"A", "B"}
    assert world.wire.writes() == []


def test_classes_share_an_owner_without_touching_each_other(world: FakeWorld) -> None:
    """The mark in the instance shows its class before the cluster is asked."""
    ref = SyncerRef(NS, "a")
    world.cluster.apply(
        replace(
            world.cluster.syncers[ref], spec={"selector": {"service": "a"}, "syncerClass": "edge"}
        )
    )
    for scope, own in ((Scope(), {"B"}), (Scope(syncer_class="edge"), {"A"})) * 2:
        assert touches(world, scope) == own
    assert sorted(one.metadata.get(CLASS, "") for one in world.registry.held.values()) == [
        "",
        "edge",
    ]


def test_a_syncer_that_changes_its_class_is_taken_over_without_a_gap(world: FakeWorld) -> None:
    """Its old installation stops renewing, and its new one writes its mark. The test also changes
    it back."""
    plain, edge = Scope(), Scope(syncer_class="edge")
    touches(world, plain)
    there, spec = world.cluster.syncers[SyncerRef(NS, "a")], {"selector": {"service": "a"}}
    world.cluster.apply(replace(there, spec={**spec, "syncerClass": "edge"}))
    assert touches(world, edge) == {"A"}
    assert touches(world, plain) == {"B"}
    world.cluster.apply(replace(there, spec=spec))
    assert touches(world, plain) == {"A", "B"}
    assert touches(world, edge) == set()
    assert world.statuses() == {"A 10.0.0.1:8080": "UP", "B 10.0.0.2:8080": "UP"}
    assert "cancel" not in world.wire.verbs()


def test_a_syncer_that_left_the_scope_is_left_as_it_is(world: FakeWorld) -> None:
    """The syncer exists, so its instance is no orphan. Others renew it, or let it expire."""
    world.scope = Scope(selector=TEAM_A)
    world.run()
    relabel(world, "a", team="b")
    assert touches(world, Scope(selector=TEAM_A)) == set()
    assert touches(world, Scope(selector=TEAM_B)) == {"A", "B"}
    relabel(world, "b", team="c")
    world.cluster.delete(SyncerRef(NS, "b"))
    world.later(46)
    assert touches(world, Scope(selector=TEAM_B)) == {"A"}
    assert world.cluster.syncers[SyncerRef(NS, "b")].finalizers == (CLEANUP_FINALIZER,)


def test_an_orphan_is_one_whose_syncer_is_not_in_the_whole_list(world: FakeWorld) -> None:
    """In a list filtered by the selector, the instances of every other team would be orphans."""
    world.run()
    del world.cluster.syncers[SyncerRef(NS, "b")]
    world.scope = Scope(selector=TEAM_A)
    world.sightings = Sightings()
    for _ in range(2):  # the last instance of an app is removed at the second look
        world.run()
        world.later(20)
    assert world.statuses() == {"A 10.0.0.1:8080": "UP"}


def test_an_older_instance_of_another_scope_is_a_conflict(world: FakeWorld) -> None:
    """Two installations that claim one address do not fight. The registered instance stays."""
    world.cluster.apply(labelled(syncer("c", selector={"service": "a"}), team="b"))
    touches(world, Scope(selector=TEAM_A))
    for _ in range(2):
        touches(world, Scope(selector=TEAM_B))
        assert [
            call for call in world.wire.calls if " A/" in call and not call.startswith("read_")
        ] == []
    status = world.cluster.syncers[SyncerRef(NS, "c")].status
    conflict = status.condition("Conflict") if status else None
    assert conflict is not None
    assert f"syncer {NS}/a) is registered with the id that ours needs" in conflict.message


def test_an_instance_that_another_scope_just_registered_is_not_overwritten(
    world: FakeWorld,
) -> None:
    """The list still shows ours, whose lease has expired. Before ours is registered again, the
    other installation registered it."""
    a = SyncerRef(NS, "a")
    touches(world, Scope(selector=TEAM_A))
    theirs = dict(world.registry.held)
    world.registry.held.clear()
    world.cluster.apply(labelled(syncer("c", selector={"service": "a"}), team="b"))
    relabel(world, "a", team="x")
    del world.cluster.syncers[a]
    touches(world, Scope(selector=TEAM_B))
    world.cluster.apply(labelled(syncer("a", selector={"service": "a"}), team="a"))
    world.registry.cached_for(600)
    ours = world.registry.held
    for one in theirs:
        del ours[one]
    world.wire.then = lambda: (
        ours.update(theirs) if world.wire.calls[-1].startswith("renew A") else None
    )
    touches(world, Scope(selector=TEAM_B))
    assert "read_instance" in world.wire.verbs(), "it was about to be healed"
    assert ours[next(iter(theirs))].metadata[SYNCER] == str(a)


# --- Two installations at once --------------------------------------------------------------------


SELECTED = (TEAM_A, parse_selector("team!=a"))
PARTITIONS: st.SearchStrategy[tuple[Scope, ...]] = st.sampled_from(
    (
        tuple(Scope(namespaces=frozenset({name})) for name in (*NAMESPACES, "third")),
        tuple(Scope(selector=selector) for selector in SELECTED),
        tuple(Scope(syncer_class=name) for name in (None, "edge", "internal")),
        tuple(Scope(namespaces=frozenset({NS}), selector=selector) for selector in SELECTED),
    )
)


@st.composite
def assorted(draw: st.DrawFn) -> Scenery:
    """A cluster whose syncers have labels and classes."""
    found = draw(sceneries())
    return replace(found, syncers=tuple(draw(dressed(one)) for one in found.syncers))


@st.composite
def dressed(draw: st.DrawFn, one: SyncerObject) -> SyncerObject:
    """The syncer with other labels and another class."""
    labels = draw(st.sampled_from(({}, {"team": "a"}, {"team": "b"})))
    named = draw(st.sampled_from((None, "edge", "internal")))
    spec = {name: value for name, value in one.spec.items() if name != "syncerClass"}
    return replace(one, labels=labels, spec={**spec, "syncerClass": named} if named else spec)


@given(assorted(), REGISTRIES, PARTITIONS, st.sampled_from((0, 30)), st.data())
def test_disjoint_scopes_never_touch_each_others(
    scenery: Scenery,
    registry: list[ObservedInstance],
    scopes: tuple[Scope, ...],
    cache: float,
    data: st.DataObject,
) -> None:
    """They have one owner and make passes in turn, while syncers move between them. Each call
    concerns the scope of its pass, or an id without an instance. In the end nothing changes any
    more."""
    world = FakeWorld(cache=cache)
    world.brake = NO_BRAKE
    world.cluster.syncers = {one.ref: one for one in scenery.syncers}
    world.cluster.services = list(scenery.services)
    world.cluster.slices = list(scenery.slices)
    world.registry.put(*registry)
    for number in range(4):
        if number == 1:
            world.cluster.syncers = {
                ref: data.draw(dressed(one)) for ref, one in world.cluster.syncers.items()
            }
        for scope in scopes:
            world.scope = scope
            pass_and_check(world, scope)
        world.later(46)
    for scope in scopes:
        world.scope = scope
        world.run()
        # The event about a syncer that no scope takes is repeated; the adapter counts it, at most
        # every 5 minutes.
        repeated = [call for call in world.wire.writes() if call.startswith("record_event ")]
        assert [call for call in world.wire.writes() if call not in repeated] == []


def pass_and_check(world: FakeWorld, scope: Scope) -> None:
    """Make one pass and approve what the brake holds. Each call is checked before its effect."""
    syncers, standing = dict(world.cluster.syncers), dict(world.registry.held)
    held = world.run().held
    calls = list(world.wire.calls)
    if held is not None:
        assert world.run(approved=held.plan_id).held is None
        calls += world.wire.calls
    names = {str(key): key for key in (*standing, *world.registry.held)}
    for verb, about in map(str.split, calls_to_eureka(calls)):
        for one in (
            (standing.get(names[about]), world.registry.held.get(names[about]))
            if about in names
            else ()
        ):
            by_mark = (
                verb == "renew"
                and one is not None
                and one.metadata.get(CLASS) == scope.syncer_class
            )
            assert one is None or lies_in(scope, one, syncers, by_mark=by_mark), (verb, about)


def calls_to_eureka(calls: list[str]) -> list[str]:
    """The calls that may change an instance or a lease."""
    return [call for call in calls if call.split()[0] in ("register", "renew", "cancel")]


def lies_in(
    scope: Scope, one: ObservedInstance, syncers: Mapping[SyncerRef, SyncerObject], *, by_mark: bool
) -> bool:
    """Whether the true state of the cluster puts an instance into this scope. For a syncer that is
    gone, or a lease that still has the class, only the name counts."""
    ref = syncer_of(one) if OWNERSHIP.holds(one) else None
    if ref is None:
        return False
    there = syncers.get(ref)
    return (
        scope.covers(ref)
        if there is None or (by_mark and not scope.selector)
        else scope.takes(there)
    )
