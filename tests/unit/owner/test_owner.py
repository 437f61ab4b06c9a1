"""The `owner` commands on a registry and a cluster in memory: what they change and refuse, also after an
interruption."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from eurekube_sync.controller.exit_codes import ExitCode, of_error
from eurekube_sync.desired.conduct import POLICY, Policy
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.actions import Result
from eurekube_sync.model.errors import (
    ClusterDenied,
    ConfigurationError,
    EurekubeError,
    OwnerClash,
    Refused,
    RegistryDenied,
    RegistryRejected,
    RegistryUnavailable,
    SourceUnknown,
    Stopped,
)
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, LeaseTimes, ObservedInstance, Port
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLUSTER as CLUSTER_MARK
from eurekube_sync.model.ownership import OWNER as OWNER_MARK
from eurekube_sync.model.ownership import SYNCER
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.owner.commands import adopt_instances, adopt_old_cluster, look_before_purge, purge, rename_owner
from eurekube_sync.owner.moves import OwnerReport
from eurekube_sync.owner.world import OwnerWorld
from tests.in_process.workers import InTurn
from tests.unit.worlds.build import (
    CLUSTER,
    DOWN,
    NS,
    OUT,
    OWNER,
    REF,
    UP,
    changed,
    endpoint,
    foreign,
    instance,
    key,
    piece,
    seen,
    service,
    stored,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld, Killed, When

DENIED = Unknown(cause=Cause.DENIED, message="403: grant list")
APP = "RATING"


def theirs(number: int = 1, *, status: InstanceStatus = UP, **metadata: str) -> ObservedInstance:
    """The instance that the pod `rating-<number>` registered itself, when its image still had a Eureka client."""
    return seen(
        InstanceKey(APP, f"rating-{number}:rating:8080"),
        host_name=f"rating-{number}.example.com",
        ip_addr=f"10.0.0.{number}",
        port=Port(8080, True),
        secure_port=Port(443, False),
        vip_address="rating",
        secure_vip_address="rating",
        status=status,
        lease=LeaseTimes(10, 30),
        last_dirty_timestamp=10**15,
        metadata={"colour": "blue", **metadata},
        home_page_url="http://rating/",
    )


def of_cluster(uid: str, number: int = 1, owner: str = OWNER) -> ObservedInstance:
    """One of our instances, as another cluster registered it."""
    ours = stored(instance(number))
    return changed(ours, metadata={**ours.metadata, OWNER_MARK: owner, CLUSTER_MARK: uid})


def base() -> FakeWorld:
    """Two pods behind a syncer, and the data centre's own instance."""
    world = FakeWorld()
    world.cluster.apply(syncer(), service(), piece(endpoint(1), endpoint(2)))
    world.registry.put(foreign())
    return world


def owner_world(world: FakeWorld, *, alone: bool = False) -> OwnerWorld:
    """The world of the commands. With `alone` it has no cluster."""
    cluster = None if alone else world.cluster
    return OwnerWorld(registry=world.registry, clock=world.clock, workers=InTurn(), cluster=cluster)


def renewing(world: FakeWorld, *keys: InstanceKey) -> None:
    """Make somebody renew these instances whenever the program waits."""
    sleep = world.clock.sleep

    def slept(seconds: float) -> None:
        sleep(seconds)
        for one in keys:
            world.registry._renew(one)

    world.clock.sleep = slept  # type: ignore[method-assign]


def adopt(world: FakeWorld, *, app: str = "rating", **changes: object) -> OwnerReport:
    """`owner adopt --app`."""
    given: dict[str, object] = {"scope": Scope(), "observe": None, "dry_run": False, **changes}
    return adopt_instances(owner_world(world), owner=OWNER, app=app, **given)  # type: ignore[arg-type]


def rename(world: FakeWorld, *, new: str = "next", **changes: object) -> OwnerReport:
    """`owner rename prod next`."""
    given: dict[str, object] = {"cluster": None, "scope": Scope(), "observe": None, "dry_run": False, **changes}
    return rename_owner(owner_world(world), old=OWNER, new=new, **given)  # type: ignore[arg-type]


def renamed_key(number: int = 1, owner: str = "next") -> InstanceKey:
    """The key under the new owner."""
    app, id_ = key(number)
    return InstanceKey(app, owner + id_.removeprefix(OWNER))


def two_of_ours() -> FakeWorld:
    """Two instances of a `run` that has ended."""
    world = base()
    world.run()
    world.later(10)
    world.wire.calls.clear()
    return world


# --- adopt ------------------------------------------------------------------------------------------------------


def test_instances_that_pods_registered_themselves_become_ours() -> None:
    """Ours is confirmed under our id before theirs is cancelled. All but the marks stays, and `run` has nothing to
    register."""
    world = base()
    world.registry.put(theirs(1), theirs(2, status=DOWN))
    report = adopt(world)
    assert (report.code, report.summary) == (ExitCode.OK, "2 adopted")
    held = world.registry.held
    assert set(held) == {foreign().key, key(1), key(2)}
    one = held[key(1)]
    assert (one.status, one.instance.lease, one.instance.home_page_url, one.instance.host_name) == (
        UP,
        LeaseTimes(10, 30),
        "http://rating/",
        "rating-1.example.com",
    )
    assert (one.metadata["colour"], one.metadata[OWNER_MARK], one.metadata[SYNCER]) == ("blue", OWNER, str(REF))
    assert held[key(2)].status is DOWN
    assert held[foreign().key] == foreign()
    writes = [call for call in world.wire.calls if call.split()[0] in ("register", "renew", "cancel", "add_finalizer")]
    assert writes == [
        f"add_finalizer {REF}",
        *(f"{verb} {key(n)}" for n in (1, 2) for verb in ("register", "renew")),
        *(f"cancel {theirs(n).key}" for n in (1, 2)),
    ]
    assert CLEANUP_FINALIZER in world.cluster.syncers[REF].finalizers
    world.run()
    assert not [call for call in world.wire.calls if call.startswith("cancel")]
    assert world.statuses() == {"RATING 192.0.2.1:0": "UP", "RATING 10.0.0.1:8080": "UP", "RATING 10.0.0.2:8080": "UP"}


def test_an_override_of_a_person_moves_along() -> None:
    """An OUT_OF_SERVICE instance stays so under our id, and `run` does not change it."""
    world = base()
    world.registry.put(theirs())
    world.registry.override(theirs().key, OUT)
    assert adopt(world).code is ExitCode.OK
    assert world.registry.held[key(1)].status is OUT
    assert world.registry.overrides == {key(1).id: OUT}
    world.run()
    assert world.registry.held[key(1)].status is OUT


def test_an_instance_that_somebody_renews_is_refused_and_named() -> None:
    """The command watches before any write, and ends at the first renewal that it sees."""
    world = base()
    world.registry.put(theirs(1), theirs(2))
    renewing(world, theirs(2).key)
    with pytest.raises(Refused, match="rating-2:rating:8080: turn its Eureka client off") as refused:
        adopt(world)
    assert of_error(refused.value) is ExitCode.REFUSED
    assert world.wire.writes() == []
    assert world.clock.now() - 1_800_000_000 < 5


def test_a_watch_lasts_two_periods_of_the_slowest() -> None:
    """A renewal of a newly registered instance falls into it too."""
    world = base()
    world.registry.put(theirs(1))
    adopt(world)
    assert world.clock.now() - 1_800_000_000 == pytest.approx(25)
    world = base()
    world.registry.put(theirs(1))
    adopt(world, observe=3.0)
    assert world.clock.now() - 1_800_000_000 == pytest.approx(3)


def test_an_instance_that_cannot_be_read_is_not_taken_for_nobodys() -> None:
    """Without knowing who renews it, the command may not take it."""
    world = base()
    world.registry.put(theirs())
    world.registry.refuse_read[theirs().key] = RegistryUnavailable("timed out")
    with pytest.raises(RegistryUnavailable, match=r"rating-1:rating:8080: timed out"):
        adopt(world)
    assert world.wire.writes() == []


def test_only_what_a_syncer_wants_is_adopted() -> None:
    """`run` would cancel any other instance. If there is no wanted one, the command says why."""
    world = base()
    world.registry.put(theirs(1), theirs(7))
    assert adopt(world, dry_run=True).summary == "dry run: 1 to adopt"
    del world.registry.held[theirs(1).key]
    with pytest.raises(Refused, match="each has an owner, or no syncer wants its address") as refused:
        adopt(world)
    assert of_error(refused.value) is ExitCode.REFUSED
    assert world.wire.writes() == []


def test_an_app_without_a_free_instance_is_said() -> None:
    with pytest.raises(Refused, match="each has an owner, or no syncer wants its address"):
        adopt(base())
    with pytest.raises(Refused, match="lists no app NOTHING"):
        adopt(base(), app="nothing")


def test_a_command_to_paste_runs_nothing_that_others_wrote() -> None:
    """The marks in Eureka may hold any text of others."""
    world = base()
    world.registry.put(of_cluster("b; reboot", 2))
    with pytest.raises(OwnerClash, match=r"owner adopt --cluster 'b; reboot'$"):
        adopt(world)


def test_instances_that_are_already_ours_are_left() -> None:
    """The command can then be repeated."""
    world = two_of_ours()
    report = adopt(world)
    assert (report.code, report.summary, world.wire.writes()) == (ExitCode.OK, "nothing to adopt", [])
    assert not report.dry_run


def test_another_owners_instances_are_never_adopted() -> None:
    """They belong to another installation, or to our owner in another cluster."""
    world = base()
    world.registry.put(changed(theirs(), metadata={OWNER_MARK: "second", CLUSTER_MARK: "x"}))
    with pytest.raises(Refused, match="each has an owner"):
        adopt(world)
    world.registry.put(of_cluster("old", 1))
    with pytest.raises(OwnerClash, match="prod is used by cluster old"):
        adopt(world)


@pytest.mark.parametrize("kind", ["syncers", "services", "slices"])
def test_adopt_needs_to_see_the_cluster_whole(kind: str) -> None:
    """It must know which instances a syncer wants."""
    world = base()
    world.registry.put(theirs())
    world.cluster.unknown[(kind, "*")] = DENIED
    with pytest.raises(SourceUnknown, match="403"):
        adopt(world)
    world.cluster.uid = DENIED
    with pytest.raises(SourceUnknown):
        adopt(world)


def test_changes_during_the_watch_are_noticed() -> None:
    """The pod disappears, so no instance is left to adopt. A new instance was not watched, and waits."""
    world = base()
    world.registry.put(theirs(1))
    sleep = world.clock.sleep

    def slept(seconds: float) -> None:
        sleep(seconds)
        if theirs(2).key not in world.registry.held:
            world.registry.put(theirs(2))

    world.clock.sleep = slept  # type: ignore[method-assign]
    assert adopt(world).summary == "1 adopted"
    assert set(world.registry.held) == {foreign().key, key(1), theirs(2).key}


def test_a_finalizer_that_cannot_be_set_keeps_its_instances_where_they_are() -> None:
    """A pass of `run` does the same."""
    world = base()
    world.registry.put(theirs())
    world.cluster.refuse["add_finalizer"] = ClusterDenied("403: grant patch")
    report = adopt(world)
    assert (report.code, report.summary) == (ExitCode.INCOMPLETE, "1 failed")
    assert set(world.registry.held) == {foreign().key, theirs().key}


def test_both_registrations_of_one_pod_become_one() -> None:
    """The second one finds ours registered, and is only cancelled."""
    world = base()
    twin = changed(theirs(1), key=InstanceKey(APP, "twin"))
    world.registry.put(theirs(1), twin)
    assert adopt(world).summary == "2 adopted"
    assert set(world.registry.held) == {foreign().key, key(1)}


def test_an_instance_under_our_id_that_nobody_owns_is_adopted_in_its_place() -> None:
    """Somebody removed its marks. It gets them again, and is never cancelled."""
    world = two_of_ours()
    ours = world.registry.held[key(1)]
    marks = {OWNER_MARK, CLUSTER_MARK}
    world.registry.put(changed(ours, metadata={k: v for k, v in ours.metadata.items() if k not in marks}))
    assert adopt(world).summary == "1 adopted"
    assert not [call for call in world.wire.calls if call.startswith("cancel")]
    assert world.run().plan.changes == ()


# --- adopt --cluster --------------------------------------------------------------------------------------------


def test_a_rebuilt_cluster_takes_over_what_the_old_one_left() -> None:
    """Its id names no cluster, so it stays. `run` then works, where it was refused before."""
    world = base()
    world.registry.put(of_cluster("old", 1), of_cluster("old", 5), of_cluster("old", 6, owner="second"))
    world.registry.override(key(1), OUT)
    assert world.run().clashes == ("old",)
    report = adopt_old_cluster(owner_world(world), owner=OWNER, old="old", scope=Scope(), observe=None, dry_run=False)
    assert (report.code, report.summary) == (ExitCode.OK, "2 adopted")
    assert [world.registry.held[key(n)].metadata[CLUSTER_MARK] for n in (1, 5, 6)] == [CLUSTER, CLUSTER, "old"]
    assert (world.registry.held[key(1)].status, world.registry.held[key(1)].instance.override) == (OUT, OUT)
    assert world.run().clashes == ()
    again = adopt_old_cluster(owner_world(world), owner=OWNER, old="old", scope=Scope(), observe=None, dry_run=False)
    assert (again.code, again.summary) == (
        ExitCode.OK,
        "nothing to adopt: no instance belongs to owner prod and cluster old",
    )


def test_an_adopted_instance_is_renewed_although_the_list_is_older() -> None:
    """The command is repeated while the list is cached. The registered instance has our mark by then."""
    world = base()
    world.registry.put(of_cluster("old"))
    old = Complete(data=tuple(world.registry.held.values()))
    world.registry.put(of_cluster(CLUSTER))
    world.registry.list_instances = lambda: old  # type: ignore[method-assign]
    report = adopt_old_cluster(owner_world(world), owner=OWNER, old="old", scope=Scope(), observe=None, dry_run=False)
    assert (report.code, report.summary) == (ExitCode.OK, "1 adopted")
    assert world.wire.writes() == []
    assert "renew" in world.wire.verbs()


def test_an_old_cluster_that_lives_is_refused() -> None:
    """Its `run` renews the instances. The present cluster is no old one either."""
    world = base()
    world.registry.put(of_cluster("old"))
    renewing(world, key())
    with pytest.raises(Refused, match="cluster old is still in use"):
        adopt_old_cluster(owner_world(world), owner=OWNER, old="old", scope=Scope(), observe=None, dry_run=False)
    with pytest.raises(ConfigurationError, match="is this cluster"):
        adopt_old_cluster(owner_world(world), owner=OWNER, old=CLUSTER, scope=Scope(), observe=None, dry_run=False)
    planned = adopt_old_cluster(owner_world(world), owner=OWNER, old="old", scope=Scope(), observe=None, dry_run=True)
    assert (planned.summary, planned.dry_run) == ("dry run: 1 to adopt", True)
    assert planned.sentences == ("it would first watch for 65 s whether somebody renews them",)
    assert world.wire.writes() == []


# --- rename -----------------------------------------------------------------------------------------------------


def test_a_rename_moves_all_and_the_new_run_finds_nothing_to_do() -> None:
    """New instances are registered and confirmed, and only then the old ones are cancelled. Overrides, statuses and
    metadata stay."""
    world = two_of_ours()
    world.registry.override(key(2), OUT)
    report = rename(world)
    assert (report.code, report.summary) == (ExitCode.OK, "2 renamed")
    assert report.sentences == ("start `run` with --owner next now: else the instances expire in 10 minutes",)
    assert set(world.registry.held) == {foreign().key, renamed_key(1), renamed_key(2)}
    assert world.registry.held[renamed_key(2)].status is OUT
    assert world.registry.held[renamed_key(1)].metadata[OWNER_MARK] == "next"
    assert (
        rename(world).summary
        == f"nothing to rename: no instance belongs to owner prod and cluster {CLUSTER}; owner next has 2"
    )


def test_an_adopted_id_is_renamed_to_the_one_that_run_gives() -> None:
    """An id that does not begin with the owner is made again from its parts."""
    world = base()
    odd = changed(stored(instance(3)), key=InstanceKey(APP, "odd"))
    bare = changed(
        odd, key=InstanceKey(APP, "bare"), metadata={OWNER_MARK: OWNER, CLUSTER_MARK: CLUSTER}, ip_addr="10.0.0.4"
    )
    world.registry.put(odd, bare)
    rename(world)
    assert set(world.registry.held) == {
        foreign().key,
        renamed_key(3),
        InstanceKey(APP, "next::rating:10.0.0.4:8080"),
    }


def test_a_rename_is_refused_while_either_owner_is_in_use() -> None:
    """Nothing is changed."""
    world = two_of_ours()
    world.registry.put(of_cluster("elsewhere", 9, owner="next"))
    with pytest.raises(OwnerClash, match="owner next is used by cluster elsewhere"):
        rename(world)
    del world.registry.held[key(9)]
    renewing(world, key(1))
    with pytest.raises(Refused, match=r"prod:rating:rating:10\.0\.0\.1:8080: stop `run` and `keepalive` of owner"):
        rename(world)
    assert rename(world, dry_run=True).summary == "dry run: 2 to rename"
    assert world.wire.writes() == []


def test_a_rename_that_was_cut_short_is_completed() -> None:
    """An instance that was registered before is not registered again, even if the old one is DOWN by now."""
    world = two_of_ours()
    mine = stored(instance(1))
    moved = changed(mine, key=renamed_key(1), metadata={**mine.metadata, OWNER_MARK: "next"})
    world.registry.put(moved, changed(mine, status=DOWN))
    assert rename(world).summary == "2 renamed"
    assert not [call for call in world.wire.calls if call == f"register {renamed_key(1)}"]
    assert world.registry.held[renamed_key(1)].status is UP


def test_an_up_instance_stays_although_the_command_is_repeated() -> None:
    """The first command left both, because the new instance is DOWN. The second one finds the same."""
    world, _ = rename_at(f"register {renamed_key(1)}", lambda world: world.registry.override(renamed_key(1), DOWN))
    report = rename(world)
    assert report.moves[0].detail == f"it is UP, and the instance {renamed_key(1).id} is DOWN: both stay"
    assert world.registry.held[key(1)].status is UP


@pytest.mark.parametrize(("theirs_is", "ours_is"), [(UP, DOWN), (OUT, UP)])
def test_one_beside_ours_that_cannot_become_ours_is_left(theirs_is: InstanceStatus, ours_is: InstanceStatus) -> None:
    """Callers reach no other instance, or a person put it out of service."""
    world = base()
    world.registry.put(theirs(1, status=theirs_is), changed(stored(instance(1)), status=ours_is))
    report = adopt(world)
    assert (report.code, report.summary) == (ExitCode.INCOMPLETE, "1 failed")
    assert world.registry.held[theirs().key].status is theirs_is


def test_a_foreign_instance_under_the_new_id_is_left_like_the_old_one() -> None:
    """A conflict is reported as a failure. The others are renamed."""
    world = two_of_ours()
    world.registry.put(changed(theirs(), key=renamed_key(1)))
    report = rename(world)
    assert (report.code, report.summary) == (ExitCode.INCOMPLETE, "1 renamed, 1 in conflict")
    assert f"{key(1)}: another owner's instance is registered as {renamed_key(1).id}" in report.sentences
    assert {key(1), renamed_key(1), renamed_key(2)} <= set(world.registry.held)


def test_a_foreign_instance_on_another_server_under_the_new_id_is_left() -> None:
    """Eureka's replication would overwrite it."""
    world = two_of_ours()
    read = world.registry.read_instance

    def read_everywhere(key: InstanceKey) -> ObservedInstance | None:
        return changed(theirs(), key=key) if key == renamed_key(1) else read(key)

    world.registry.read_everywhere = read_everywhere  # type: ignore[method-assign]
    assert rename(world).summary == "1 renamed, 1 in conflict"
    assert renamed_key(1) not in world.registry.held


def rename_at(event: str, happens: Callable[[FakeWorld], object]) -> tuple[FakeWorld, OwnerReport]:
    """A rename during which something happens right after the first call of that name."""
    world = two_of_ours()
    happened = False

    def then() -> None:
        nonlocal happened
        if not happened and world.wire.calls[-1].startswith(event):
            happened = True
            happens(world)

    world.wire.then = then
    return world, rename(world)


def test_changes_by_others_are_noticed_before_anything_is_cancelled() -> None:
    """The old instance is renewed again, belongs to others or is gone. Or the new one is gone or belongs to others."""
    first = str(renamed_key(1))

    def override(world: FakeWorld) -> None:
        world.registry.override(renamed_key(1), DOWN)

    def someone_else(world: FakeWorld) -> None:
        world.registry.held[key(1)] = changed(theirs(), key=key(1))

    def lost(world: FakeWorld) -> None:
        del world.registry.held[renamed_key(1)]

    def taken(world: FakeWorld) -> None:
        world.registry.held[renamed_key(1)] = changed(theirs(), key=renamed_key(1))

    _, report = rename_at(f"register {first}", lambda world: world.registry._renew(key(1)))
    assert "somebody renews it again: it stays as it is, and is registered twice" in report.moves[0].detail
    assert rename_at(f"register {first}", someone_else)[1].moves[0].result is Result.CONFLICT
    assert rename_at(f"register {first}", lambda world: world.registry.held.pop(key(1)))[1].code is ExitCode.OK
    _, report = rename_at(f"register {first}", lost)
    assert report.moves[0].detail == "Eureka did not show it a moment later"
    _, report = rename_at(f"renew {first}", taken)
    assert report.moves[0].detail == "Eureka did not show it as ours a moment later"
    world, report = rename_at(f"register {first}", override)
    assert report.moves[0].detail == "Eureka shows it DOWN, and it was UP: both stay"
    assert key(1) in world.registry.held


def test_an_instance_that_cannot_be_moved_stays() -> None:
    """It has a status that nothing renews, or its registration or all calls fail."""
    world = two_of_ours()
    world.registry.held[key(1)] = changed(world.registry.held[key(1)], status=InstanceStatus.UNKNOWN)
    assert "its status is UNKNOWN" in rename(world).moves[0].detail
    world = two_of_ours()
    world.registry.refuse_register[renamed_key(1)] = RegistryRejected("400: no")
    report = rename(world)
    assert (report.code, report.summary) == (ExitCode.INCOMPLETE, "1 renamed, 1 failed")
    world = two_of_ours()
    world.registry.refuse[key(1)] = world.registry.refuse[key(2)] = RegistryDenied("403")
    report = rename(world)
    assert (report.code, report.summary) == (ExitCode.EUREKA_DENIED, "2 failed")
    assert f"{key(1)} (and 1 more): it is registered twice: 403" in report.sentences


def test_a_stale_list_moves_nothing_twice() -> None:
    """Instances in the list that are gone, or belong to others by now, are left."""
    world = two_of_ours()
    lister = world.registry.list_instances
    stale = lister()
    world.registry.list_instances = lambda: stale  # type: ignore[method-assign]
    rename(world)
    report = rename(world)
    assert (report.code, report.summary) == (ExitCode.OK, "2 already gone")
    world.registry.put(changed(theirs(), key=key(1)))
    assert rename(world).summary == "1 already gone, 1 in conflict"


SCENES: dict[str, tuple[Callable[[], FakeWorld], Callable[[FakeWorld], OwnerReport]]] = {}


def scene(
    start: Callable[[], FakeWorld],
) -> Callable[[Callable[[FakeWorld], OwnerReport]], Callable[[FakeWorld], OwnerReport]]:
    """A command and the world that it starts in."""

    def kept(command: Callable[[FakeWorld], OwnerReport]) -> Callable[[FakeWorld], OwnerReport]:
        SCENES[command.__name__] = (start, command)
        return command

    return kept


def strangers() -> FakeWorld:
    """Two pods that registered themselves, one of them out of service."""
    world = base()
    world.registry.put(theirs(1), theirs(2))
    world.registry.override(theirs(2).key, OUT)
    return world


def rebuilt() -> FakeWorld:
    """Two instances of an old cluster."""
    world = base()
    world.registry.put(of_cluster("old", 1), of_cluster("old", 2))
    return world


@scene(two_of_ours)
def a_rename(world: FakeWorld) -> OwnerReport:
    """A rename of two instances."""
    return rename(world)


@scene(strangers)
def an_adoption(world: FakeWorld) -> OwnerReport:
    """An adoption of two instances. When all are ours, a repeated command says so."""
    return adopt(world)


@scene(rebuilt)
def an_adoption_of_a_cluster(world: FakeWorld) -> OwnerReport:
    """An adoption of a cluster's two instances."""
    return adopt_old_cluster(owner_world(world), owner=OWNER, old="old", scope=Scope(), observe=None, dry_run=False)


def addresses(world: FakeWorld) -> set[str]:
    """The addresses at which a caller finds instances of RATING."""
    return {one.instance.ip_addr for one in world.registry.held.values()}


def standing(world: FakeWorld) -> object:
    """The result that must be the same after every interruption."""
    return {one.key: (one.status, one.instance.override, dict(one.metadata)) for one in world.registry.held.values()}


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("trouble", ["kill", "fail"])
def test_a_command_that_is_killed_or_fails_anywhere_is_finished_by_the_next(name: str, trouble: str) -> None:
    """It is interrupted before and after every call. A caller never misses an instance, and the result is the same."""
    start, command = SCENES[name]
    untouched = start()
    untouched.wire.calls.clear()
    all_there = addresses(untouched)
    assert command(untouched).code is ExitCode.OK
    expected, calls = standing(untouched), len(untouched.wire.calls)
    for number in range(calls):
        for when in When:
            world = start()
            world.wire.calls.clear()
            missing: list[int] = []
            world.wire.then = lambda world=world, missing=missing: missing.extend(  # type: ignore[misc]
                [len(world.wire.calls)] if not all_there <= addresses(world) else []
            )
            setattr(world.wire, trouble, (number, when))
            with suppress(Killed, EurekubeError):
                command(world)
            setattr(world.wire, trouble, None)
            world.later(46)
            assert command(world).code is ExitCode.OK, (number, when)
            assert standing(world) == expected, (number, when)
            assert not missing, (number, when)


def test_a_signal_ends_a_command_between_two_calls() -> None:
    """During the watch nothing was changed. Later, work that has not begun is reported."""
    world = two_of_ours()
    world.clock.stopped = True
    with pytest.raises(Stopped) as stopped:
        rename(world)
    assert of_error(stopped.value) is ExitCode.INCOMPLETE
    world = two_of_ours()
    sleep = world.clock.sleep

    def slept(seconds: float) -> None:
        sleep(seconds)
        world.clock.stopped = True

    world.clock.sleep = slept  # type: ignore[method-assign]
    with pytest.raises(Stopped, match="nothing was changed"):
        rename(world)
    assert world.wire.writes() == []
    world = two_of_ours()
    world.wire.then = lambda: setattr(world.clock, "stopped", bool(world.wire.writes()))
    report = rename(world)
    assert (report.code, report.summary) == (ExitCode.INCOMPLETE, "1 renamed, 1 not tried")
    assert report.sentences[1:] == (
        "1 was not renamed: give the command again, and then start `run` with --owner next: else the "
        "instances expire in 10 minutes",
    )


@pytest.mark.parametrize("renews", [False, True], ids=["nobody renews it", "somebody renews it"])
def test_instances_that_appear_during_the_watch_are_watched_as_well(renews: bool) -> None:
    """The list was old, or somebody registers it now. If nobody renews it, it is renamed too; otherwise the command is
    refused."""
    world = two_of_ours()
    sleep, begun = world.clock.sleep, world.clock.time

    def slept(seconds: float) -> None:
        sleep(seconds)
        if key(5) not in world.registry.held:
            world.registry.put(stored(instance(5)))
        elif renews and world.clock.time > begun + 70:
            world.registry._renew(key(5))

    world.clock.sleep = slept  # type: ignore[method-assign]
    if renews:
        with pytest.raises(Refused, match=r"10\.0\.0\.5"):
            rename(world)
        assert world.wire.writes() == []
    else:
        assert rename(world).summary == "3 renamed"
        assert world.clock.time - begun > 120, "it was watched for as long as the others"


@pytest.mark.parametrize("order", [(UP, DOWN), (DOWN, UP)], ids=["the first is UP", "the second is UP"])
@pytest.mark.parametrize("command", ["adopt", "rename"])
def test_of_two_at_one_address_the_one_that_callers_reach_is_kept(
    command: str, order: tuple[InstanceStatus, InstanceStatus]
) -> None:
    """Both become one instance, which is UP all the time, in either order."""
    world = base()
    if command == "adopt":
        both = zip(order, "ab", strict=True)
        world.registry.put(*(changed(theirs(1, status=of), key=InstanceKey(APP, id_)) for of, id_ in both))
        report, target = adopt(world), key(1)
    else:
        ours = stored(instance(1))
        by_hand = changed(ours, key=InstanceKey(APP, "by-hand"), status=order[0])
        world.registry.put(changed(ours, status=order[1]), by_hand)
        report, target = rename(world), renamed_key()
    assert report.code is ExitCode.OK
    assert {one: it.status for one, it in world.registry.held.items()} == {foreign().key: UP, target: UP}


@pytest.mark.parametrize(("listed", "standing"), [((UP, DOWN), (DOWN, UP)), ((UP, OUT), (UP, OUT))])
def test_two_at_one_address_that_cannot_be_one_are_left(
    listed: tuple[InstanceStatus, InstanceStatus], standing: tuple[InstanceStatus, InstanceStatus]
) -> None:
    """The list did not show which one is UP. A status that a person set is not lost."""
    a, b = InstanceKey(APP, "a"), InstanceKey(APP, "b")
    world = base()
    world.registry.put(*(changed(theirs(1, status=of), key=one) for of, one in zip(listed, (a, b), strict=True)))
    old = Complete(data=tuple(world.registry.held.values()))
    world.registry.list_instances = lambda: old  # type: ignore[method-assign]
    world.registry.put(*(changed(theirs(1, status=of), key=one) for of, one in zip(standing, (a, b), strict=True)))
    report = adopt(world)
    assert (report.code, report.summary) == (ExitCode.INCOMPLETE, "1 adopted, 1 failed")
    assert report.sentences == (f"{b}: it is {standing[1]}, and the instance {key(1).id} is {standing[0]}: both stay",)
    assert world.registry.held[b].status is standing[1]


# --- An owner that has nothing ----------------------------------------------------------------------------------


def of_others(*owners: str) -> FakeWorld:
    """The owner has no instance, and others have this many. Healthy syncers have our finalizer."""
    world = base()
    world.cluster.syncers[REF] = replace(world.cluster.syncers[REF], finalizers=(CLEANUP_FINALIZER,))
    for number, owner in enumerate(owners, 1):
        one = of_cluster(CLUSTER, number, owner)
        world.registry.put(changed(one, key=InstanceKey(APP, f"{owner}:{number}")))
    return world


@pytest.mark.parametrize(
    ("owners", "named"),
    [
        ((), ""),
        (("demo", "demo"), "; the instances of this cluster belong to demo (2 instances)"),
        (("demo", "other", "demo"), "; the instances of this cluster belong to demo (2 instances), other (1 instance)"),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_an_owner_that_has_nothing_is_asked_about(owners: tuple[str, ...], named: str, dry_run: bool) -> None:
    """No command gives advice if its owner may be a typo."""
    world = of_others(*owners)
    sentence = f"no instance of owner prod in this cluster{named}. Is --owner right?"
    report = purged(world, dry_run=dry_run)
    assert (report.code, report.summary, report.sentences) == (ExitCode.OK, f"nothing to purge: {sentence}", ())
    with pytest.raises(Refused) as told:
        rename(world, dry_run=dry_run)
    assert str(told.value) == sentence.replace("--owner", "prod")
    assert world.wire.writes() == []


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_old_cluster_without_instances_is_refused_with_a_question(dry_run: bool) -> None:
    """It is accepted if it was adopted before and no other cluster has instances."""

    def adopt_nothing(world: FakeWorld) -> OwnerReport:
        where = owner_world(world)
        return adopt_old_cluster(where, owner=OWNER, old="nosuch", scope=Scope(), observe=None, dry_run=dry_run)

    with pytest.raises(Refused, match=r"^no instance of owner prod in cluster nosuch\. Is --cluster right\?$"):
        adopt_nothing(base())
    world = two_of_ours()
    assert adopt_nothing(world).code is ExitCode.OK
    world.registry.put(of_cluster("real", 7))
    with pytest.raises(Refused, match=r"; owner prod has 1 instance of cluster real\. Is --cluster right\?$"):
        adopt_nothing(world)


def test_a_rename_under_a_name_that_was_right_is_found_done() -> None:
    """The command is repeated after a rename, or given for a part without instances."""
    assert rename(of_others("next")).summary.endswith("; owner next has 1")
    assert rename(two_of_ours(), scope=Scope(namespaces=frozenset({"empty"}))).code is ExitCode.OK


def test_a_recent_deletion_keeps_its_finalizer_when_the_purged_owner_has_nothing() -> None:
    """The other owner's `run` is about to remove the finalizer. After the cache time of Eureka's list, no owner has an
    instance there."""
    world = of_others()
    world.registry.put(changed(of_cluster(CLUSTER, 9, "demo"), metadata={OWNER_MARK: "demo", CLUSTER_MARK: CLUSTER}))
    world.cluster.delete(REF)
    assert "our finalizer is left on 1 syncer being deleted" in purged(world).sentences[0]
    world.later(46)
    assert purged(world).sentences == ("our finalizer was removed from 1 syncer being deleted",)


def test_short_leases_are_given_in_seconds() -> None:
    """The time is twice their duration."""
    world = base()
    world.registry.put(changed(stored(instance()), lease=LeaseTimes(2, 45)))
    assert "expire in 90 s" in rename(world).sentences[-1]


# --- purge ------------------------------------------------------------------------------------------------------


def purged(world: FakeWorld, *, alone: bool = False, dry_run: bool = False, scope: Scope | None = None) -> OwnerReport:
    """The result of `owner purge --yes`."""
    where = owner_world(world, alone=alone)
    found = look_before_purge(where, owner=OWNER, cluster=CLUSTER if alone else None, scope=scope or Scope())
    return purge(where, found, dry_run=dry_run)


def test_a_purge_takes_all_of_ours_and_nothing_else() -> None:
    """It needs only Eureka. A dry run counts, and a second purge finds nothing."""
    world = two_of_ours()
    elsewhere = of_cluster("elsewhere", 9)
    world.registry.put(elsewhere)
    world.later(100)
    planned = purged(world, alone=True, dry_run=True)
    assert (planned.summary, len(planned.moves), world.wire.writes()) == (
        f"dry run: 2 to cancel, of owner prod and cluster {CLUSTER}",
        2,
        [],
    )
    report = purged(world, alone=True)
    assert (report.code, report.summary, report.sentences) == (ExitCode.OK, "2 cancelled", ())
    assert set(world.registry.held) == {foreign().key, elsewhere.key}
    left = f"no instance of owner prod in cluster {CLUSTER}; owner prod has 1 instance of cluster elsewhere. "
    left += "Is --owner right?"
    assert purged(world, alone=True).summary == f"nothing to purge: {left}"


@pytest.mark.parametrize("command", ["rename", "adopt a cluster"])
def test_a_command_of_a_scope_leaves_another_scopes_instances(command: str) -> None:
    """`run` does the same. Of two installations with one owner, each changes its own instances."""
    world = rebuilt() if command == "adopt a cluster" else two_of_ours()
    cart = stored(instance(9, ref=SyncerRef("shop", "cart")))
    if command == "adopt a cluster":
        cart = changed(cart, metadata={**cart.metadata, CLUSTER_MARK: "old"})
    world.registry.put(cart)
    own, shop, none = (Scope(namespaces=frozenset({name})) for name in (NS, "shop", "empty"))

    def give(scope: Scope) -> OwnerReport:
        if command == "rename":
            return rename(world, scope=scope)
        where = owner_world(world)
        return adopt_old_cluster(where, owner=OWNER, old="old", scope=scope, observe=None, dry_run=False)

    assert give(none).summary.endswith(", namespace empty")
    assert len(give(own).moves) == 2
    assert world.registry.held[cart.key] == cart
    assert [one.source.key for one in give(shop).moves] == [cart.key]


def test_a_purge_of_the_wrong_cluster_names_the_right_one() -> None:
    """The report names the cluster that has instances, because the given id may be a mistake."""
    world = two_of_ours()
    found = look_before_purge(owner_world(world), owner=OWNER, cluster="mistaken", scope=Scope())
    for dry_run in (True, False):
        report = purge(owner_world(world, alone=True), found, dry_run=dry_run)
        assert (report.code, report.sentences) == (ExitCode.OK, ())
        assert report.summary == (
            "nothing to purge: no instance of owner prod in cluster mistaken; "
            f"owner prod has 2 instances of cluster {CLUSTER}. "
            "Is --owner right?"
        )


def test_a_purge_of_a_scope_leaves_another_scopes_instances_and_finalizers() -> None:
    """One owner has two namespaces with an installation each. Instances that name no syncer belong to the whole
    owner."""
    world = two_of_ours()
    ref = SyncerRef("shop", "cart")
    odd = stored(instance(8))
    cart = stored(instance(9, ref=ref))
    world.registry.put(cart, changed(odd, metadata={**odd.metadata, SYNCER: "cart"}))
    world.cluster.apply(replace(syncer("cart"), namespace="shop", finalizers=(CLEANUP_FINALIZER,), deleted=1.0))
    world.later(600)
    purged(world, scope=Scope(namespaces=frozenset({NS})))
    assert set(world.registry.held) == {foreign().key, key(8), cart.key}
    assert world.cluster.syncers[ref].finalizers == (CLEANUP_FINALIZER,)
    world.later(600)
    purged(world)
    assert set(world.registry.held) == {foreign().key}
    assert ref not in world.cluster.syncers


def test_a_peer_that_is_away_is_no_success() -> None:
    """It may still have instances. The report says so with exit code 30, and a dry run only says it."""
    world = two_of_ours()
    world.registry.away = ("http://two/eureka",)
    for dry_run, code in ((True, ExitCode.OK), (False, ExitCode.INCOMPLETE)):
        report = replace(purged(world, dry_run=dry_run), unreached=world.registry.unreached())
        assert report.code is code
        assert report.sentences[-1].startswith("http://two/eureka could not be reached: the instances there stay")
    world.registry.away = ()
    assert replace(purged(world), unreached=world.registry.unreached()).code is ExitCode.OK


def deleted_with_two() -> FakeWorld:
    """A syncer that somebody deleted long ago, with two registered instances."""
    world = two_of_ours()
    world.cluster.delete(REF)
    world.later(600)
    return world


@pytest.mark.parametrize("trouble", ["kill", "fail"])
def test_a_purge_that_is_killed_or_fails_anywhere_is_finished_by_the_next(trouble: str) -> None:
    """It is interrupted before and after every call. No finalizer is removed while an instance is registered, and
    instances of others are not touched."""
    untouched = deleted_with_two()
    untouched.wire.calls.clear()
    assert purged(untouched).code is ExitCode.OK
    assert (set(untouched.registry.held), untouched.cluster.syncers) == ({foreign().key}, {})
    for number in range(len(untouched.wire.calls)):
        for when in When:
            world = deleted_with_two()
            world.wire.calls.clear()
            broken: list[int] = []

            def look(world: FakeWorld = world, broken: list[int] = broken) -> None:
                ours = set(world.registry.held) - {foreign().key}
                if ours and not world.cluster.syncers:
                    broken.append(len(world.wire.calls))

            world.wire.then = look
            setattr(world.wire, trouble, (number, when))
            with suppress(Killed, EurekubeError):
                purged(world)
            setattr(world.wire, trouble, None)
            world.later(46)
            assert purged(world).code is ExitCode.OK, (number, when)
            assert (set(world.registry.held), world.cluster.syncers) == ({foreign().key}, {}), (number, when)
            assert not broken, (number, when)


def policied(*policies: Policy | None) -> FakeWorld:
    """An instance of each policy, renewed long ago."""
    world = base()
    for number, policy in enumerate(policies, start=1):
        one = stored(instance(number))
        mark = {POLICY: policy.value} if policy else {}
        world.registry.put(changed(one, metadata={**one.metadata, **mark}))
    world.later(600)
    return world


def test_a_purge_takes_every_policys_instances_and_says_how_many_run_would_keep() -> None:
    """A person ordered it. The question, the dry run and the report have the number."""
    world = policied(None, Policy.UPSERT_ONLY, Policy.UPSERT_ONLY, Policy.CREATE_ONLY)
    said = "3 of them have policy UpsertOnly or CreateOnly: a purge cancels them, `run` never does"
    planned = purged(world, alone=True, dry_run=True)
    assert planned.sentences == (said,)
    plain = "a purge cancels all that is ours"
    despite = [f"{plain}, despite policy {policy}" for policy in ("UpsertOnly", "UpsertOnly", "CreateOnly")]
    assert [one.why for one in planned.moves] == [plain, *despite]
    found = look_before_purge(owner_world(world), owner=OWNER, cluster=None, scope=Scope())
    assert found.cautions == (said,)
    report = purge(owner_world(world, alone=True), found, dry_run=False)
    assert (report.code, report.summary, report.sentences) == (ExitCode.OK, "4 cancelled", (said,))
    assert set(world.registry.held) == {foreign().key}
    one = purged(policied(Policy.CREATE_ONLY), alone=True).sentences
    assert one == ("1 of them has policy UpsertOnly or CreateOnly: a purge cancels it, `run` never does",)


def test_a_policy_is_kept_by_a_rename() -> None:
    """The next owner has to follow it."""
    world = policied(None, Policy.UPSERT_ONLY)
    rename(world)
    after = {one.instance.ip_addr: one.metadata for one in world.registry.held.values()}
    assert after["10.0.0.2"][POLICY] == "UpsertOnly"
    assert POLICY not in after["10.0.0.1"]


def test_a_purge_says_that_a_run_would_register_them_again() -> None:
    """They were renewed a short time ago."""
    world = two_of_ours()
    report = purged(world, alone=True)
    assert report.sentences == (
        "they were renewed 10 s ago: a `run` that still runs would register them again; stop it first",
    )


def test_a_purge_cancels_by_uncached_reads() -> None:
    """An instance that belongs to others by now stays, a failure is reported, and a signal ends the command."""
    world = two_of_ours()
    found = look_before_purge(owner_world(world), owner=OWNER, cluster=None, scope=Scope())
    world.registry.held[key(1)] = changed(theirs(), key=key(1))
    del world.registry.held[key(2)]
    report = purge(owner_world(world), found, dry_run=False)
    assert (report.code, report.summary) == (ExitCode.INCOMPLETE, "1 already gone, 1 in conflict")
    assert key(1) in world.registry.held
    world = two_of_ours()
    world.registry.refuse[key(1)] = RegistryUnavailable("timed out")
    report = purged(world)
    assert (report.code, report.summary) == (ExitCode.INCOMPLETE, "1 cancelled, 1 failed")
    world = two_of_ours()
    world.wire.then = lambda: setattr(world.clock, "stopped", bool(world.wire.writes()))
    report = purged(world)
    assert (report.code, report.summary) == (ExitCode.INCOMPLETE, "1 cancelled, 1 not tried")


def test_an_instance_that_appears_during_the_question_is_left_with_its_finalizer() -> None:
    """It was not shown in the question, and its syncer was deleted meanwhile. It must not outlive its finalizer."""
    world = two_of_ours()
    world.later(100)
    found = look_before_purge(owner_world(world), owner=OWNER, cluster=None, scope=Scope())
    world.registry.put(stored(instance(5)))
    world.cluster.delete(REF)
    now = look_before_purge(owner_world(world), owner=OWNER, cluster=found.ownership.cluster, scope=Scope())
    report = purge(owner_world(world), replace(now, instances=found.instances), dry_run=False)
    assert report.summary == "2 cancelled"
    assert "1 more came meanwhile and was left: stop what registers them, and purge again" in report.sentences
    assert CLEANUP_FINALIZER in world.cluster.syncers[REF].finalizers
    assert key(5) in world.registry.held


def deleted() -> FakeWorld:
    """Two syncers, one of them being deleted, and no `run`."""
    world = two_of_ours()
    world.cluster.apply(syncer("living", selector={"app": "none"}, finalizers=(CLEANUP_FINALIZER,)))
    world.cluster.delete(REF)
    world.later(100)
    return world


def test_a_purge_lets_go_the_finalizers_of_deleted_syncers() -> None:
    """They are removed from deleted syncers without instances. Living syncers are counted, and a dry run lists the
    candidates."""
    world = deleted()
    assert purged(world, dry_run=True).sentences == (
        "1 syncer still has our finalizer: delete the syncer, and purge again",
        "it would remove our finalizer from 1 syncer being deleted",
    )
    assert world.cluster.syncers[REF].finalizers == (CLEANUP_FINALIZER,)
    report = purged(world)
    assert report.code is ExitCode.OK
    assert report.sentences == (
        "1 syncer still has our finalizer: delete the syncer, and purge again",
        "our finalizer was removed from 1 syncer being deleted",
    )
    assert set(world.cluster.syncers) == {SyncerRef(NS, "living")}


def test_a_finalizer_stays_while_an_instance_may_be_registered() -> None:
    """It is another owner's instance of this syncer, one that Eureka's list may still hide, or one whose cancel
    failed."""
    world = deleted()
    world.registry.put(replace(of_cluster(CLUSTER, 9, owner="second")))
    assert purged(world).sentences == ("1 syncer still has our finalizer: delete the syncer, and purge again",)
    assert REF in world.cluster.syncers
    world = deleted()
    world.registry._renew(key(1))
    assert "purge again in a minute" in purged(world).sentences[-1]
    assert REF in world.cluster.syncers
    world = deleted()
    world.registry.refuse[key(1)] = RegistryUnavailable("timed out")
    assert purged(world).code is ExitCode.INCOMPLETE
    assert REF in world.cluster.syncers


def test_another_clusters_instance_keeps_no_finalizer() -> None:
    """Its syncer has the same name, as where two clusters run the same charts."""
    world = deleted()
    world.registry.put(of_cluster("another", 9, owner="second"))
    assert purged(world).sentences[-1] == "our finalizer was removed from 1 syncer being deleted"
    assert REF not in world.cluster.syncers


def test_a_cluster_that_fails_keeps_its_finalizers_and_is_reported() -> None:
    """The list fails, or the write."""
    world = deleted()
    world.cluster.unknown[("syncers", "*")] = DENIED
    report = purged(world)
    assert report.sentences == ("finalizers are left: 403: grant list",)
    world = deleted()
    world.cluster.refuse["remove_finalizer"] = ClusterDenied("403: grant patch")
    report = purged(world)
    assert (report.code, report.errors[0].args) == (ExitCode.KUBERNETES_DENIED, ("403: grant patch",))
    assert report.sentences[-1] == "our finalizer is left on 1 syncer being deleted: 403: grant patch"


# --- All commands -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [adopt, rename, purged])
def test_the_cluster_is_asked_once_who_it_is(command: Callable[[FakeWorld], OwnerReport]) -> None:
    """This holds for any number of lists of its syncers."""
    world = two_of_ours()
    world.registry.put(theirs())
    command(world)
    assert world.wire.verbs().count("identity") == 1


def test_without_a_cluster_or_eureka_nothing_is_begun() -> None:
    """Each error says what is missing."""
    world = two_of_ours()
    with pytest.raises(ConfigurationError, match="give --cluster, or a kubeconfig"):
        look_before_purge(owner_world(world, alone=True), owner=OWNER, cluster=None, scope=Scope())
    world.registry.unreadable = DENIED
    with pytest.raises(SourceUnknown) as told:
        look_before_purge(owner_world(world), owner=OWNER, cluster=None, scope=Scope())
    assert of_error(told.value) is ExitCode.EUREKA_DENIED
