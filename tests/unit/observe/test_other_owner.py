"""Another owner serves the same syncers in the same cluster. A typo in `--owner` doubles no
instance and stops no installation.

These are whole passes.
"""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.cli.output.report import sentences
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.selector import parse_selector
from eurekube_sync.model.eureka import LIST_LAG, InstanceKey, LeaseTimes
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLASS, CLUSTER, OWNER
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.installations import OtherOwner
from tests.unit.controller.test_reconcile import add_app, article, pods
from tests.unit.worlds.build import NS, changed, endpoint, foreign, key, piece, service, syncer
from tests.unit.worlds.build import OWNER as RIGHT
from tests.unit.worlds.fakes import FakeWorld

TYPO = "typo"
BLIND = Unknown(cause=Cause.UNAVAILABLE, message="503")


@pytest.fixture(params=[0, 30], ids=["fresh lists", "lists up to 30 s old"])
def world(request: pytest.FixtureRequest) -> FakeWorld:
    """Two pods that the right owner registered half a minute ago."""
    world = article(cache=request.param)
    turn(world, RIGHT, 2)
    return world


def turn(
    world: FakeWorld, owner: str, passes: int = 1, *, every: float = 30, scope: Scope | None = None
) -> PassReport:
    """This many passes of an owner, this many seconds apart; returns the last report."""
    world.owner, world.scope = owner, scope or Scope()
    for _ in range(passes):
        world.later(every)
        world.registry.renew(foreign().key)
        report = world.run()
        world.registry.evict()
    return report


def both(world: FakeWorld, passes: int, *, first: str = RIGHT) -> dict[str, PassReport]:
    """Both installations make passes; returns the last report of each."""
    second = TYPO if first == RIGHT else RIGHT
    reports = {}
    for _ in range(passes):
        reports = {owner: turn(world, owner, every=15) for owner in (first, second)}
    return reports


def of(world: FakeWorld, owner: str) -> dict[str, str]:
    """The instances of an owner: address and status."""
    return {
        one.instance.ip_addr: one.status.value
        for one in world.registry.held.values()
        if one.metadata.get(OWNER) == owner
    }


def code(report: PassReport) -> ExitCode:
    """The exit code of a pass."""
    return of_report(report, fail_on_held=False, detailed=False)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_typo_in_the_owner_registers_and_writes_nothing(world: FakeWorld, dry_run: bool) -> None:
    """Kubernetes is not written either. The message asks about the owner, and names the fix."""
    status = world.cluster.syncers[SyncerRef(NS, "rating")].status
    world.owner = TYPO
    report = world.run(dry_run=dry_run)
    assert world.wire.writes() == []
    assert not any(call.startswith("renew") for call in world.wire.calls)
    assert (of(world, RIGHT), of(world, TYPO)) == ({"10.0.0.1": "UP", "10.0.0.2": "UP"}, {})
    assert world.cluster.syncers[SyncerRef(NS, "rating")].status == status
    assert (code(report), report.desired, report.plan.changes) == (ExitCode.OWNER_CLASH, None, ())
    assert sentences(report) == [
        "owner clash: 2 instances of this cluster are registered under owner prod, at addresses "
        "that this installation "
        "would register under owner typo. Is --owner typo right? To change the name: "
        "eurekube-sync run --owner typo "
        "--former-owner prod. This pass is refused: nothing was done"
    ]


@pytest.mark.parametrize("duration", [90, 300])
def test_an_old_list_does_not_hide_that_the_right_owner_is_at_work(duration: int) -> None:
    """Nothing changes, so the list lacks the renewals of the last minutes, however short a lease
    is."""
    world = article()
    turn(world, RIGHT, 2)
    for one in world.registry.held.values():
        world.registry.put(changed(one, lease=LeaseTimes(30, duration)))
    _renew_all(world)
    world.registry.cached_for(LIST_LAG)
    for _ in range(5):
        _renew_all(world)
    report = turn(world, TYPO)
    assert (code(report), of(world, TYPO)) == (ExitCode.OWNER_CLASH, {})


def _renew_all(world: FakeWorld) -> None:
    world.later(30)
    for one in list(world.registry.held):
        world.registry.renew(one)


def test_a_typo_takes_no_new_syncer(world: FakeWorld) -> None:
    """An app that is deployed meanwhile belongs to the right owner as well."""
    for number, name in ((7, "cart"), (8, "pay")):
        add_app(world, name, number)
        assert code(turn(world, TYPO)) is ExitCode.OWNER_CLASH
        assert of(world, TYPO) == {}
        assert code(turn(world, RIGHT)) is ExitCode.OK
        assert f"10.0.0.{number}" in of(world, RIGHT)


def test_the_right_owner_hears_nothing_of_a_typo(world: FakeWorld) -> None:
    """The wrong owner has no instance."""
    reports = both(world, 5)
    assert (code(reports[RIGHT]), sentences(reports[RIGHT])) == (ExitCode.OK, [])


@pytest.mark.parametrize("ports", [{"port": "http"}, {"securePort": "http"}])
def test_one_registered_address_is_enough(ports: dict[str, Any]) -> None:
    """Many other addresses would be registered as new."""
    world = FakeWorld()
    world.registry.put(foreign())
    world.cluster.apply(service(), piece(endpoint(1)), syncer(**ports))
    turn(world, RIGHT, 2)
    pods(world, *(endpoint(n) for n in range(1, 30)))
    assert code(turn(world, TYPO)) is ExitCode.OWNER_CLASH


# --- No clash -------------------------------------------------------------------------------------


def test_owners_with_disjoint_scopes_live_side_by_side(world: FakeWorld) -> None:
    """Their scopes differ by namespace, label or class. Neither is refused, and each serves its own
    syncers."""
    for number, (name, spec, labels) in enumerate(
        (
            ("plain", {}, {"team": "a"}),
            ("edge", {"syncerClass": "edge"}, {"team": "a"}),
            ("b", {}, {"team": "b"}),
        ),
        5,
    ):
        add_app(world, name, number)
        ref = SyncerRef(NS, name)
        added = world.cluster.syncers[ref]
        world.cluster.syncers[ref] = replace(added, spec={**added.spec, **spec}, labels=labels)
    scopes = {
        "one": Scope(selector=parse_selector("team=a")),
        "two": Scope(selector=parse_selector("team=b")),
        "three": Scope(syncer_class="edge"),
        "four": Scope(namespaces=frozenset({"elsewhere"})),
    }
    for _ in range(4):
        for owner, scope in scopes.items():
            report = turn(world, owner, every=7, scope=scope)
            assert (code(report), report.other_owners) == (ExitCode.OK, ())
    assert {owner: set(of(world, owner)) for owner in scopes} == {
        "one": {"10.0.0.5"},
        "two": {"10.0.0.7"},
        "three": {"10.0.0.6"},
        "four": set(),
    }


def test_a_syncer_that_changed_its_class_is_taken_by_the_other_owner_at_once(
    world: FakeWorld,
) -> None:
    """The mark of the old class shows that the instance was another installation's."""
    ref = SyncerRef(NS, "rating")
    there = world.cluster.syncers[ref]
    world.cluster.syncers[ref] = replace(there, spec={**there.spec, "syncerClass": "edge"})
    report = turn(world, "other", scope=Scope(syncer_class="edge"))
    assert (code(report), set(of(world, "other"))) == (ExitCode.OK, {"10.0.0.1", "10.0.0.2"})
    assert {one.metadata.get(CLASS) for one in world.registry.held.values()} == {None, "edge"}


@pytest.mark.parametrize(
    "strangers", [True, False], ids=["beside the data centre", "alone in Eureka"]
)
def test_instances_of_an_ended_owner_block_a_new_one_only_for_a_while(strangers: bool) -> None:
    """A new name is used without `--former-owner`. Callers find both instances until the old leases
    end, and never none."""
    world = article()
    turn(world, RIGHT, 2)
    if not strangers:
        world.registry.held.pop(foreign().key)
    refused = 0
    for _ in range(30):
        world.owner = "next"
        world.later(30)
        if strangers:
            world.registry.renew(foreign().key)
        refused += code(world.run()) is ExitCode.OWNER_CLASH
        world.registry.evict()
        assert {"10.0.0.1", "10.0.0.2"} <= {
            one.instance.ip_addr for one in world.registry.held.values()
        }
    assert refused == (3 if strangers else 10)
    assert (of(world, RIGHT), set(of(world, "next"))) == ({}, {"10.0.0.1", "10.0.0.2"})


def test_a_rename_that_was_interrupted_stops_neither_name(world: FakeWorld) -> None:
    """One instance has the new name. The other has the old one, and the rename saw that nobody
    renews it."""
    world.later(70)
    moved = world.registry.held.pop(key(1))
    target = InstanceKey("RATING", key(1).id.replace("prod:", "next:"))
    world.registry.put(changed(moved, key=target, metadata={**moved.metadata, OWNER: "next"}))
    world.registry.renew(target)
    report = turn(world, "next", 2)
    assert code(report) is ExitCode.OK
    assert set(of(world, "next")) == {"10.0.0.1", "10.0.0.2"}


def test_nothing_is_decided_by_a_list_that_could_not_be_read(world: FakeWorld) -> None:
    """Both owners may then register one address."""
    world.registry.unreadable = BLIND
    report = turn(world, TYPO)
    assert (code(report), report.other_owners) == (ExitCode.EUREKA_UNREAD, ())


# --- Both owners have instances -------------------------------------------------------------------


def doubled(cache: float = 0, *, more: tuple[str, ...] = ()) -> FakeWorld:
    """The typo began while Eureka could not be listed, so each address is registered twice. `more`
    names further apps of one pod."""
    world = article(cache=cache)
    for number, name in enumerate(more, start=7):
        add_app(world, name, number)
    turn(world, RIGHT, 2)
    world.registry.unreadable = BLIND
    turn(world, TYPO, every=5)
    turn(world, RIGHT, every=5)
    world.registry.unreadable = None
    assert set(of(world, TYPO)) == set(of(world, RIGHT)) >= {"10.0.0.1", "10.0.0.2"}
    return world


@pytest.mark.parametrize("first", [RIGHT, TYPO])
@pytest.mark.parametrize("cache", [0, 30])
def test_the_first_owner_continues_and_the_second_only_renews(first: str, cache: float) -> None:
    """The order of the passes does not matter. Both report it, each in its own words."""
    world = doubled(cache)
    reports = both(world, 4, first=first)
    assert (code(reports[RIGHT]), code(reports[TYPO])) == (ExitCode.OK, ExitCode.OWNER_CLASH)
    assert sentences(reports[RIGHT]) == [
        "owner clash: 2 instances of this cluster are registered under owner typo, at addresses "
        "that owner prod "
        "serves. Stop one of the two installations, then cancel its instances with eurekube-sync "
        "purge"
    ]
    end = (
        "2 of the instances are registered twice. This pass is refused: our instances were "
        "renewed, and nothing else"
    )
    assert sentences(reports[TYPO])[0].endswith(f"{end} was done")
    pods(world, endpoint(2), endpoint(3))
    both(world, 30, first=first)
    assert of(world, RIGHT) == {"10.0.0.2": "UP", "10.0.0.3": "UP"}
    assert of(world, TYPO) == {"10.0.0.2": "UP"}, "of a pod that is gone nothing is renewed"


@pytest.mark.parametrize("owner", [RIGHT, TYPO])
def test_instances_registered_twice_are_renewed_while_another_cluster_uses_the_name(
    owner: str,
) -> None:
    """Such a pass does not ask the cluster, so it could not find out later what to renew."""
    world = doubled()
    ours = {one.key for one in world.registry.held.values() if one.metadata.get(OWNER) == owner}
    world.registry.put(
        changed(foreign(), key=InstanceKey("A", "a"), metadata={OWNER: owner, CLUSTER: "elsewhere"})
    )
    report = turn(world, owner)
    assert (report.clashes, code(report)) == (("elsewhere",), ExitCode.OWNER_CLASH)
    assert {f"renew {key}" for key in ours} <= set(world.wire.calls)


def test_what_an_owner_of_that_name_has_in_another_cluster_does_not_count() -> None:
    """It was registered long before, at an address of ours, and decides nothing."""
    world = doubled()
    theirs = next(one for one in world.registry.held.values() if one.metadata.get(OWNER) == TYPO)
    elsewhere = {**theirs.metadata, CLUSTER: "elsewhere"}
    key = InstanceKey(theirs.key.app, "elsewhere")
    world.registry.put(changed(theirs, key=key, metadata=elsewhere, last_dirty_timestamp=1))
    reports = both(world, 2)
    assert (code(reports[RIGHT]), code(reports[TYPO])) == (ExitCode.OK, ExitCode.OWNER_CLASH)


def test_the_refused_one_renews_what_the_brake_holds() -> None:
    """Three apps lose their last endpoint at once, and a fourth one continues. None of the held
    instances expires."""
    names = ("cart", "pay", "list")
    world = doubled(more=names)
    for name in names:
        world.cluster.apply(piece(service=name))
    reports = both(world, 1)
    assert code(reports[TYPO]) is ExitCode.OWNER_CLASH
    kept = {one.key for one in world.registry.held.values() if one.metadata.get(OWNER) == TYPO}
    assert {action.key for action in reports[TYPO].plan.actions} == kept
    assert len(kept) == 5


def test_the_refused_owner_keeps_its_instances_when_the_other_is_purged() -> None:
    """Callers lose nothing, even if the judgement was wrong. The owner that is left continues by
    itself."""
    world = doubled()
    both(world, 3)
    for one in list(world.registry.held.values()):
        if one.metadata.get(OWNER) == RIGHT:
            world.registry.cancel(one.key)
    assert of(world, TYPO) == {"10.0.0.1": "UP", "10.0.0.2": "UP"}
    assert code(turn(world, TYPO, 2)) is ExitCode.OK


def test_an_installation_at_work_is_not_stopped_by_one_that_came_before_it_elsewhere() -> None:
    """It has an instance that the other has not. Both report it."""
    world = doubled()
    add_app(world, "cart", 7)
    report = turn(world, RIGHT)
    for one in list(world.registry.held.values()):  # the times suggest the opposite order
        if one.metadata.get(OWNER) == RIGHT:
            world.registry.held[one.key] = replace(
                one, last_dirty_timestamp=one.last_dirty_timestamp + 10**9
            )
    report = turn(world, RIGHT)
    assert (code(report), [one.stops_us for one in report.other_owners]) == (ExitCode.OK, [False])
    report = turn(world, TYPO)
    assert [one.stops_us for one in report.other_owners] == [False]


@pytest.mark.parametrize("stamps", [(5, 5), (5, 6), (6, 5)])
def test_two_owners_are_never_both_stopped(stamps: tuple[int, int]) -> None:
    """If both have the same age, the first by name continues."""
    world = doubled()
    times = dict(zip((RIGHT, TYPO), stamps, strict=True))
    for one in list(world.registry.held.values()):
        if OWNER in one.metadata:
            world.registry.held[one.key] = replace(
                one, last_dirty_timestamp=times[one.metadata[OWNER]]
            )
    reports = both(world, 1)
    stopped = [owner for owner, report in reports.items() if code(report) is ExitCode.OWNER_CLASH]
    assert stopped == ([RIGHT] if stamps == (6, 5) else [TYPO])


def test_an_instance_that_was_changed_by_hand_is_no_bug() -> None:
    """Its port is off, so no address is registered twice. A pass that ends with an unexpected error
    would never repair it."""
    world = doubled()
    for one in list(world.registry.held.values()):
        if one.metadata.get(OWNER) == RIGHT:
            off = replace(one.instance, port=one.instance.port._replace(enabled=False))
            world.registry.held[one.key] = replace(one, instance=off)
    assert [other.stops_us for other in turn(world, RIGHT).other_owners] == [False]
    reports = both(world, 2)
    assert sorted(map(code, reports.values())) == [ExitCode.OK, ExitCode.OWNER_CLASH], (
        "it is registered anew"
    )


def test_one_instance_is_reported_in_the_singular() -> None:
    other = OtherOwner(name="demo", ours="typo", registered=1, twice=1, stops_us=True)
    assert "1 instance of this cluster is registered under owner demo" in other.sentence
    assert "1 of the instances is registered twice." in other.sentence
