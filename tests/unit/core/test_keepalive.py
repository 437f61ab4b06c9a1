"""Passes without a cluster: all that is ours is renewed, only a snapshot adds, nothing is ever withdrawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from eurekube_sync.actions import Cancel, Update
from eurekube_sync.deadline import TimeLimit
from eurekube_sync.errors import ConfigurationError, RegistryUnavailable
from eurekube_sync.exit_codes import ExitCode, of_report
from eurekube_sync.keepalive import KeepaliveSettings, RegistryWorld, keepalive
from eurekube_sync.model import Cause, Complete, Instance, ObservedInstance, SyncerRef, Unknown
from eurekube_sync.one_pass import PassReport
from eurekube_sync.outcome import Result
from eurekube_sync.ownership import CLUSTER as CLUSTER_MARK
from eurekube_sync.ownership import OWNER as OWNER_MARK
from eurekube_sync.renewals import RenewalLedger
from eurekube_sync.report.machine import as_data
from eurekube_sync.report.words import sentences, summary
from eurekube_sync.scope import Scope, Shard
from eurekube_sync.snapshot import Snapshot, Source
from eurekube_sync.workers import InTurn

from .build import CLUSTER, DOWN, OUT, OWNER, foreign, instance, key, stored
from .fakes import START, FakeWorld

SOURCE = Source(owner=OWNER, cluster=CLUSTER, namespaces=None)
DOWN_LIST = Unknown(cause=Cause.UNAVAILABLE, message="Eureka did not answer")


def snapshot(*instances: Instance, owner: str = OWNER, taken: float = START) -> Snapshot:
    """A snapshot of these."""
    return Snapshot(
        source=replace(SOURCE, owner=owner), taken=int(taken), instances={one.key: one for one in instances}
    )


def run(
    world: FakeWorld,
    load: Callable[[], Snapshot] | None = None,
    *,
    cluster: str | None = None,
    dry_run: bool = False,
    deadline: float = 120,
    scope: Scope | None = None,
) -> PassReport:
    """One pass; the wire then holds its calls alone. It never withdraws."""
    world.wire.calls.clear()
    seen = RegistryWorld(
        registry=world.registry,
        clock=world.clock,
        workers=InTurn(),
        renewals=world.renewals,
        time_limit=TimeLimit(world.clock),
    )
    settings = KeepaliveSettings(
        owner=OWNER, cluster=cluster, scope=scope or Scope(), dry_run=dry_run, deadline=deadline
    )
    report = keepalive(seen, settings, load)
    assert not any(isinstance(action, Cancel | Update) for action in report.plan.actions)
    return report


def code(report: PassReport) -> ExitCode:
    """Its exit code."""
    return of_report(report, fail_on_held=True, detailed=False)


def of_cluster(one: ObservedInstance, uid: str) -> ObservedInstance:
    """The same instance, of another cluster."""
    return replace(one, metadata={**one.metadata, CLUSTER_MARK: uid})


def test_all_that_is_ours_is_renewed_whatever_its_status() -> None:
    """Of every cluster and status; strangers and other owners are not touched."""
    world = FakeWorld()
    other = stored(instance(3), metadata={**instance(3).metadata, OWNER_MARK: "other"})
    world.registry.put(stored(instance(1)), of_cluster(stored(instance(2, status=DOWN)), "elsewhere"), other, foreign())
    report = run(world)
    assert sorted(world.wire.calls) == ["list_instances", f"renew {key(1)}", f"renew {key(2)}"]
    assert (code(report), summary(report), sentences(report)) == (ExitCode.OK, "in sync, 2 renewed", [])
    assert as_data(report, code(report))["unknown"] == []


def test_one_cluster_alone_can_be_chosen() -> None:
    """With --cluster the others' leases are left to lapse."""
    world = FakeWorld()
    world.registry.put(stored(instance(1)), of_cluster(stored(instance(2)), "elsewhere"))
    run(world, cluster="elsewhere")
    assert world.wire.calls == ["list_instances", f"renew {key(2)}"]


def test_a_scope_renews_and_brings_back_its_own_alone() -> None:
    """By namespace and shard, which an instance's mark tells; of a snapshot, too, that holds more."""
    there, elsewhere = instance(1), instance(2, ref=SyncerRef("shop", "cart"))
    shard = next(Shard(index=i, count=2) for i in range(2) if Shard(index=i, count=2).holds(SyncerRef("shop", "cart")))
    for scope in (Scope(namespaces=frozenset({"shop"})), Scope(namespaces=frozenset({"shop"}), shard=shard)):
        world = FakeWorld()
        world.registry.put(stored(there), stored(elsewhere))
        run(world, scope=scope)
        assert world.wire.calls == ["list_instances", f"renew {elsewhere.key}"]
        world.registry.held.clear()
        run(world, lambda: snapshot(there, elsewhere), scope=scope)
        assert world.wire.writes() == [f"register {elsewhere.key}"]
    run(world, scope=Scope(shard=Shard(index=1 - shard.index, count=2), namespaces=frozenset({"shop"})))
    assert world.wire.calls == ["list_instances"]


def test_without_a_snapshot_nothing_is_added() -> None:
    """A lease that is gone stays gone, and an owner that nobody has is told."""
    world = FakeWorld(cache=30)
    world.registry.put(stored(instance(1)))
    run(world)
    world.registry.held.clear()
    assert code(run(world)) == ExitCode.OK
    assert world.wire.writes() == []
    world.later(30)
    assert "is --owner right?" in sentences(run(world))[0]


def test_each_lease_is_renewed_every_30_s() -> None:
    """The rule of `run` holds here, too."""
    world = FakeWorld()
    world.renewals = RenewalLedger(period=30, slack=5)
    world.registry.put(stored(instance(1)))
    counts = []
    for _ in range(12):
        run(world)
        counts.append(world.wire.verbs().count("renew"))
        world.later(10)
    assert sum(counts) in (4, 5)


def test_what_eureka_lost_is_brought_back() -> None:
    """Each is read uncached, registered and renewed; what was DOWN in the snapshot is not; then all is in sync."""
    world = FakeWorld(cache=30)
    world.registry.put(foreign())
    before = dict(world.registry.held)
    kept = snapshot(instance(1), instance(2), instance(3, status=DOWN))
    report = run(world, lambda: kept)
    assert [*world.wire.calls[:1], *sorted(world.wire.calls[1:3]), *world.wire.calls[3:]] == [
        "list_instances",
        *(f"read_instance {key(number)}" for number in (1, 2)),
        *(call for number in (1, 2) for call in (f"register {key(number)}", f"renew {key(number)}")),
    ]
    assert (code(report), summary(report)) == (ExitCode.OK, "2 registered, 0 renewed")
    assert world.statuses() == {"RATING 192.0.2.1:0": "UP", **{f"RATING 10.0.0.{n}:8080": "UP" for n in (1, 2)}}
    again = run(world, lambda: kept)
    assert (world.wire.writes(), summary(again)) == ([], "in sync, 2 renewed"), "the list is stale"
    assert {key: world.registry.held[key] for key in before} == before


def test_a_lease_that_lapsed_behind_the_list_is_brought_back() -> None:
    """The list still shows it, the renewal meets a 404; only what was UP last comes back."""
    world = FakeWorld(cache=30)
    world.registry.put(stored(instance(1)), stored(instance(2), status=DOWN), stored(instance(3)))
    kept = snapshot(instance(1), instance(2), instance(3, status=DOWN))
    run(world, lambda: kept)
    world.registry.held.clear()
    report = run(world, lambda: kept)
    assert world.wire.writes() == [f"register {key(1)}"]
    assert summary(report) == "in sync, 1 registered again, 0 renewed"


def test_another_owners_instance_under_our_id_is_a_conflict() -> None:
    """Whether the list shows it or only the uncached read does, it is left alone."""
    world = FakeWorld(cache=30)
    taken = stored(instance(1), metadata={OWNER_MARK: "other"})
    world.registry.put(taken)
    kept = snapshot(instance(1), instance(2))
    run(world, lambda: snapshot())
    stranger = stored(instance(2), metadata={})
    world.registry.put(stranger)
    report = run(world, lambda: kept)
    assert world.wire.writes() == []
    assert "renew" not in world.wire.verbs()
    assert [blocked.why for blocked in report.plan.blocked] == [
        "an instance of owner other stands under our id",
        "an instance without our mark stands under our id",
    ]
    assert "2 in conflict" in summary(report)


def test_what_cannot_be_read_is_not_registered() -> None:
    """A failed uncached read is no absence."""
    world = FakeWorld()
    world.registry.read_instance = _unavailable  # type: ignore[method-assign]
    report = run(world, lambda: snapshot(instance(1)))
    assert (world.wire.writes(), code(report)) == ([], ExitCode.ACTIONS_FAILED)


def _unavailable(key: object) -> None:
    raise RegistryUnavailable("Eureka did not answer")


def test_an_unreadable_registry_has_the_snapshots_ids_renewed() -> None:
    """Reads fail and writes work: all ids are renewed, and what is UP is registered on a 404."""
    world = FakeWorld()
    world.registry.put(stored(instance(1)), stored(instance(3, status=DOWN)))
    world.registry.unreadable = DOWN_LIST
    report = run(world, lambda: snapshot(*(instance(n) for n in (1, 2)), *(instance(n, status=DOWN) for n in (3, 4))))
    renewed = [call for call in world.wire.calls if call.startswith("renew")][:4]
    assert sorted(renewed) == [f"renew {key(n)}" for n in (1, 2, 3, 4)]
    assert world.wire.writes() == [f"register {key(2)}"]
    assert code(report) == ExitCode.REGISTRY_UNAVAILABLE
    assert code(run(world)) == ExitCode.REGISTRY_UNAVAILABLE, "and without a snapshot nothing can be done"
    assert world.wire.calls == ["list_instances"]


@pytest.mark.parametrize("trouble", ["owner", "old", "unreadable"])
def test_a_refused_snapshot_stops_no_renewal(trouble: str) -> None:
    """What stands is renewed, nothing is brought back, one sentence says why, and the exit code is its own."""
    world = FakeWorld()
    world.registry.put(stored(instance(1)))

    def load() -> Snapshot:
        if trouble == "unreadable":
            raise ConfigurationError("the snapshot x is cut")
        owner, taken = ("other", START) if trouble == "owner" else (OWNER, START - 90_000)
        return snapshot(instance(2), owner=owner, taken=taken)

    report = run(world, load)
    assert world.wire.calls == ["list_instances", f"renew {key(1)}"]
    assert code(report) == ExitCode.CONFIGURATION
    (sentence,) = sentences(report)
    assert sentence.endswith(". What stands was renewed, nothing was brought back.")


def test_another_clusters_instances_of_our_owner_make_the_snapshot_ambiguous() -> None:
    """A rebuilt cluster runs under the same name: all is renewed, nothing comes back until --cluster says which."""
    world = FakeWorld()
    world.registry.put(of_cluster(stored(instance(1)), "rebuilt"))
    report = run(world, lambda: snapshot(instance(2)))
    assert world.wire.calls == ["list_instances", f"renew {key(1)}"]
    assert (code(report), report.clashes) == (ExitCode.OWNER_CLASH, ("rebuilt",))
    assert "--cluster" in sentences(report)[0]
    assert code(run(world, lambda: snapshot(instance(2)), cluster=CLUSTER)) == ExitCode.OK
    assert world.wire.writes() == [f"register {key(2)}"]


def test_what_run_takes_out_of_the_snapshot_meanwhile_is_not_brought_back() -> None:
    """`run` cancels an instance while we look for it: the snapshot is read again before anything is registered."""
    world = FakeWorld()
    versions = [snapshot(instance(1), instance(2)), snapshot(instance(2), instance(1, status=DOWN))]
    report = run(world, lambda: versions.pop(0) if len(versions) > 1 else versions[0])
    assert world.wire.writes() == [f"register {key(2)}"]
    assert not report.plan.blocked


@pytest.mark.parametrize("listed", [True, False])
def test_what_run_cancels_during_the_pass_does_not_come_back(listed: bool) -> None:
    """A stale list shows it still, or it was read before: the snapshot is asked when all renewals are made."""
    world = FakeWorld(cache=30)
    world.registry.put(stored(instance(1)), stored(instance(2)))
    world.registry.list_instances()
    world.registry.held.clear()
    if not listed:
        world.later(30)
    without = snapshot(instance(2), instance(1, status=DOWN))

    def load() -> Snapshot:
        done = "renew" if listed else "read_instance"
        return without if done in world.wire.verbs() else snapshot(instance(1), instance(2))

    report = run(world, load)
    assert world.wire.writes() == [f"register {key(2)}"]
    assert code(report) is ExitCode.OK


def test_what_comes_to_stand_under_our_id_meanwhile_is_not_written_over() -> None:
    """The list shows ours, whose lease has lapsed; before it is brought back, another has come."""
    world = FakeWorld(cache=30)
    world.registry.put(stored(instance(1)))
    world.registry.list_instances()
    world.registry.held.clear()
    other = stored(instance(1), metadata={OWNER_MARK: "other"})
    world.wire.then = lambda: world.registry.put(other) if world.wire.verbs()[-1] == "renew" else None
    report = run(world, lambda: snapshot(instance(1)))
    assert world.wire.writes() == []
    assert report.outcomes.by_key[key(1)].result is Result.CONFLICT


def test_what_run_cancels_on_one_server_after_the_other_is_not_brought_back_there() -> None:
    """A batch that comes between finds it on one of them."""
    world = FakeWorld()
    world.registry.batch_size = 250
    world.registry.put(stored(instance(1)))
    world.registry.lacking.add(key(1))
    run(world, lambda: snapshot() if "renew_batch" in world.wire.verbs() else snapshot(instance(1)))
    assert world.wire.writes() == []
    run(world, lambda: snapshot(instance(1)))
    assert world.wire.writes() == ["level_batch 1"]


def test_a_dry_run_reads_only() -> None:
    """It shows what would come back."""
    world = FakeWorld()
    world.registry.put(stored(instance(1)))
    report = run(world, lambda: snapshot(instance(1), instance(2)), dry_run=True)
    assert set(world.wire.verbs()) == {"list_instances", "read_instance"}
    assert summary(report) == "dry run: 1 to register, 1 to renew"


def test_a_pass_ends_at_its_deadline() -> None:
    """What was not tried is told, and the exit code with it."""
    world = FakeWorld()
    world.registry.put(stored(instance(1)))
    report = run(world, deadline=0)
    assert (world.wire.calls, code(report)) == (["list_instances"], ExitCode.CUT_SHORT)


def test_out_of_service_stays_out_of_service() -> None:
    """A person's override is renewed, and not brought back UP when it lapsed behind the list."""
    world = FakeWorld(cache=30)
    world.registry.put(stored(instance(1)))
    world.registry.override(key(1), OUT)
    run(world, lambda: snapshot(instance(1)))
    world.registry.held.clear()
    run(world, lambda: snapshot(instance(1)))
    assert world.wire.writes() == []
    assert isinstance(world.registry.list_instances(), Complete)
