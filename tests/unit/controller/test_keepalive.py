"""Passes without a cluster: every instance of ours is renewed, nothing is added or removed."""

from __future__ import annotations

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.cli.output.passes import as_data
from eurekube_sync.cli.output.report import sentences, summary
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import EurekaWorld, PassReport, PassSettings
from eurekube_sync.controller.reconcile import keepalive
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Renew
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLUSTER as CLUSTER_MARK
from eurekube_sync.model.ownership import OWNER as OWNER_MARK
from eurekube_sync.model.sources import Cause, Complete, Unknown
from tests.in_process.workers import InTurn
from tests.unit.worlds.build import DOWN, OUT, OWNER, changed, foreign, instance, key, stored
from tests.unit.worlds.fakes import FakeWorld


def run(
    world: FakeWorld,
    *,
    cluster: str | None = None,
    dry_run: bool = False,
    deadline: float = 120,
    scope: Scope | None = None,
) -> PassReport:
    """Make one pass, which may only renew. Afterwards the wire holds this pass's calls."""
    world.wire.calls.clear()
    seen = EurekaWorld(
        registry=world.registry,
        clock=world.clock,
        workers=InTurn(),
        renewals=world.renewals,
        time_limit=TimeLimit(world.clock),
    )
    settings = PassSettings(owner=OWNER, scope=scope or Scope(), dry_run=dry_run, deadline=deadline)
    report = keepalive(seen, settings, cluster)
    assert not any(not isinstance(action, Renew) for action in report.plan.actions)
    return report


def code(report: PassReport) -> ExitCode:
    """The exit code of a pass."""
    return of_report(report, fail_on_held=True, detailed=False)


def of_cluster(one: ObservedInstance, uid: str) -> ObservedInstance:
    """The same instance, registered by another cluster."""
    return changed(one, metadata={**one.metadata, CLUSTER_MARK: uid})


def test_all_that_is_ours_is_renewed_whatever_its_status() -> None:
    """Every cluster and every status counts. Instances without an owner and of other owners are not
    touched."""
    world = FakeWorld()
    other = stored(instance(3), metadata={**instance(3).metadata, OWNER_MARK: "other"})
    world.registry.put(
        stored(instance(1)),
        of_cluster(stored(instance(2, status=DOWN)), "elsewhere"),
        other,
        foreign(),
    )
    report = run(world)
    assert sorted(world.wire.calls) == ["list_instances", f"renew {key(1)}", f"renew {key(2)}"]
    assert (code(report), summary(report), sentences(report)) == (ExitCode.OK, "2 renewed", [])
    assert as_data(report, code(report))["unknown"] == []


def test_one_cluster_alone_can_be_chosen() -> None:
    """With --cluster the others' leases are left to expire."""
    world = FakeWorld()
    world.registry.put(stored(instance(1)), of_cluster(stored(instance(2)), "elsewhere"))
    run(world, cluster="elsewhere")
    assert world.wire.calls == ["list_instances", f"renew {key(2)}"]


def test_a_scope_renews_its_own_alone() -> None:
    """The scope is a namespace, and the mark in an instance shows its syncer."""
    there, elsewhere = instance(1), instance(2, ref=SyncerRef("shop", "cart"))
    world = FakeWorld()
    world.registry.put(stored(there), stored(elsewhere))
    run(world, scope=Scope(namespaces=frozenset({"shop"})))
    assert world.wire.calls == ["list_instances", f"renew {elsewhere.key}"]


def test_nothing_is_added() -> None:
    """A lost instance is not registered again, and a pass that finds no instance of its owner
    reports that."""
    world = FakeWorld(cache=30)
    world.registry.put(stored(instance(1)))
    run(world)
    world.registry.held.clear()
    assert code(run(world)) == ExitCode.OK
    assert world.wire.writes() == []
    world.later(30)
    assert "are --owner, --cluster and --namespace right?" in sentences(run(world))[0]


def test_each_lease_is_renewed_every_30_s() -> None:
    """`run` has the same rule."""
    world = FakeWorld()
    world.renewals = RenewalLedger(period=30, slack=5)
    world.registry.put(stored(instance(1)))
    counts = []
    for _ in range(12):
        run(world)
        counts.append(world.wire.verbs().count("renew"))
        world.later(10)
    assert sum(counts) in (4, 5)


def test_a_dry_run_reads_only() -> None:
    """It shows the plan."""
    world = FakeWorld()
    world.registry.put(stored(instance(1)))
    report = run(world, dry_run=True)
    assert world.wire.calls == ["list_instances"]
    assert summary(report) == "dry run: 1 to renew"


def test_a_registry_that_cannot_be_read_is_its_own_exit_code() -> None:
    """A new process knows no instance, so it can renew none."""
    world = FakeWorld()
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="Eureka did not answer")
    assert code(run(world)) == ExitCode.EUREKA_UNREAD
    assert world.wire.calls == ["list_instances"]


def test_while_eureka_cannot_be_listed_it_renews_what_it_renewed_before() -> None:
    """`run` does the same. A list that fails is not an empty list, and writes to Eureka may still
    work."""
    world = FakeWorld()
    world.registry.put(stored(instance(1)))
    run(world)
    world.later(30)
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="Eureka did not answer")
    report = run(world)
    assert (world.wire.verbs(), code(report)) == (
        ["list_instances", "renew"],
        ExitCode.EUREKA_UNREAD,
    )
    assert report.to_renew == (key(1),)


def test_a_pass_ends_at_its_deadline() -> None:
    """The exit code says that some calls were not made."""
    world = FakeWorld()
    world.registry.put(stored(instance(1)))
    report = run(world, deadline=0)
    assert (world.wire.calls, code(report)) == (["list_instances"], ExitCode.INCOMPLETE)


def test_out_of_service_stays_out_of_service() -> None:
    """A person's override is renewed. It does not become UP if the lease expired after the list was
    made."""
    world = FakeWorld(cache=30)
    world.registry.put(stored(instance(1)))
    world.registry.override(key(1), OUT)
    run(world)
    world.registry.held.clear()
    run(world)
    assert world.wire.writes() == []
    assert isinstance(world.registry.list_instances(), Complete)
