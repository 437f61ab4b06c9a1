"""The API that answers may belong to another cluster, or may not say which: what a pass still
does."""

from __future__ import annotations

import pytest

from eurekube_sync.cli.output.report import sentences
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, CLEANUP_FINALIZER
from eurekube_sync.model.ownership import CLASS
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import OwnWrites
from tests.unit.apply.test_gates import Rollout
from tests.unit.controller.test_reconcile import A, B, add_app, article, ours, pods, slow
from tests.unit.worlds.build import CLUSTER, REF, endpoint, foreign, key, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

pytestmark = pytest.mark.usefixtures("both_ways")

ANOTHER: Complete[str] = Complete(data="another")
SILENT = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
FORBIDDEN = Unknown(cause=Cause.DENIED, message="403")
IN_DOUBT = [
    (ANOTHER, ExitCode.KUBERNETES_UNREAD),
    (SILENT, ExitCode.KUBERNETES_UNREAD),
    (FORBIDDEN, ExitCode.KUBERNETES_DENIED),
]
IDS = ["another", "silent", "forbidden"]


def turn(world: FakeWorld, uid: Source[str]) -> None:
    """Make the API give this UID to a process that already knows its cluster."""
    world.cluster.remembered = Complete(data=CLUSTER)
    world.cluster.uid = uid


def told(uid: Source[str], end: str = "our instances are only renewed") -> str:
    """The message of a pass."""
    if isinstance(uid, Unknown):
        why = (
            "it is unknown whether the Kubernetes API still serves the same cluster: "
            f"{uid.message}; {end}"
        )
    else:
        why = (
            f"the Kubernetes API now serves another cluster: the UID of kube-system was {CLUSTER} "
            f"and is {uid.data}; "
            f"{end}. If this is intended, restart eurekube-sync"
        )
    return f"Kubernetes API: {why}"


def code(report: PassReport) -> ExitCode:
    """The exit code of a pass."""
    return of_report(report, fail_on_held=False, detailed=False)


def renewals(world: FakeWorld) -> int:
    """How many renewals were sent, one by one or in batches."""
    sent = [call.split() for call in world.wire.calls if call.startswith("renew")]
    return sum(int(what) if verb == "renew_batch" else 1 for verb, what in sent)


@pytest.mark.parametrize(("uid", "ends_with"), IN_DOUBT, ids=IDS)
@pytest.mark.parametrize(
    "numbers", [(1, 2), (7, 8), ()], ids=["the same pods", "other pods", "no pods"]
)
def test_a_cluster_that_may_be_another_one_adds_and_removes_nothing(
    numbers: tuple[int, ...], uid: Source[str], ends_with: ExitCode
) -> None:
    """A daemon's kubeconfig or a name leads elsewhere now, perhaps to a cluster made of the same
    manifests. Its lists are true, but do not describe our instances. Nothing is added, removed or
    written there until the cluster is known."""
    world = article()
    world.run()
    before = ours(world)
    turn(world, uid)
    world.cluster.apply(syncer(port="http", metadata={"from": "elsewhere"}))
    pods(world, *(endpoint(n) for n in numbers))
    for _ in range(3):
        world.later(30)
        report = world.run()
        assert (ours(world), world.wire.writes()) == (before, [])
        assert (sentences(report), code(report)) == ([told(uid)], ends_with)
        assert (report.desired, world.wire.verbs().count("identity"), renewals(world)) == (
            None,
            1,
            2,
        )
        shown = world.run(dry_run=True)
        assert (shown.plan.changes, renewals(world)) == ((), 0)
        assert sentences(shown) == [told(uid, "no change can be planned from its lists")]
    turn(world, Complete(data=CLUSTER))
    world.run()
    assert all(world.registry.held[key(n)].metadata["from"] == "elsewhere" for n in numbers)


@pytest.mark.parametrize(("uid", "ends_with"), IN_DOUBT, ids=IDS)
def test_a_deletion_keeps_its_finalizer(uid: Source[str], ends_with: ExitCode) -> None:
    """Eureka would not change, and the other cluster's clean-up would be cut short. An abandoned
    syncer keeps its finalizer too."""
    for annotated in ({}, {ABANDON_ANNOTATION: "true"}):
        world = FakeWorld()
        deleted = world.clock.now() - 100
        world.cluster.apply(
            syncer(deleted=deleted, finalizers=(CLEANUP_FINALIZER,), annotations=annotated)
        )
        turn(world, uid)
        assert code(world.run()) is ends_with
        assert world.wire.writes() == []


@pytest.mark.parametrize("uid", [ANOTHER, SILENT], ids=["another", "silent"])
def test_nothing_is_added_while_eureka_cannot_be_read(uid: Source[str]) -> None:
    """Pods would be registered after a 404, without a look at Eureka. Wanted instances are renewed,
    even by a new process."""
    world = article()
    world.run()
    before = ours(world)
    turn(world, uid)
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="503")
    pods(world, endpoint(2), endpoint(7))
    world.later(30)
    world.run()
    assert (ours(world), world.wire.writes()) == (before, [])
    assert f"renew {key(2)}" in world.wire.calls or "renew_batch 2" in world.wire.calls


@pytest.mark.parametrize(("uid", "ends_with"), IN_DOUBT, ids=IDS)
def test_no_status_is_written_though_nothing_would_change_in_eureka(
    uid: Source[str], ends_with: ExitCode
) -> None:
    """The other cluster's syncer looks like ours, except for its status."""
    world = article()
    world.run()
    world.cluster.syncers[REF] = replace(world.cluster.syncers[REF], status=None)
    turn(world, uid)
    world.later(30)
    report = world.run()
    assert (world.wire.writes(), world.wire.verbs().count("identity")) == ([], 1)
    assert (sentences(report), code(report)) == ([told(uid, "no status is written")], ends_with)
    assert report.statuses == {}
    turn(world, Complete(data=CLUSTER))
    assert code(world.run()) is ExitCode.OK
    assert world.wire.writes() == ["record_event rating/rating", "write_status rating/rating"]


@pytest.mark.parametrize(("uid", "ends_with"), IN_DOUBT, ids=IDS)
@pytest.mark.parametrize("lacking", ["finalizer", "lease"])
def test_no_lost_instance_or_finalizer_is_restored(
    lacking: str, uid: Source[str], ends_with: ExitCode
) -> None:
    """Neither a finalizer nor an instance that Eureka lost is restored. The list does not show the
    loss yet."""
    world = article(cache=30)
    world.run()
    world.later(30)
    world.registry.list_instances()
    if lacking == "lease":
        world.registry.held.pop(key(2))
    else:
        world.cluster.syncers[REF] = replace(world.cluster.syncers[REF], finalizers=())
    turn(world, uid)
    assert code(world.run()) is ends_with
    assert world.wire.writes() == []
    turn(world, Complete(data=CLUSTER))
    world.run()
    assert ours(world) == {A: "UP", B: "UP"}
    assert world.cluster.syncers[REF].finalizers == (CLEANUP_FINALIZER,)


@pytest.mark.parametrize(("uid", "ends_with"), IN_DOUBT, ids=IDS)
def test_no_gate_is_opened(uid: Source[str], ends_with: ExitCode) -> None:
    """Its pod belongs to another cluster. It would become ready because of an instance of a pod in
    ours."""
    world = Rollout()
    world.pods(1)
    world.run()
    world.cluster.opened.clear()
    there = world.cluster.readiness
    there["uid-of-rating-1"] = replace(there["uid-of-rating-1"], registered=False)
    turn(world, uid)
    assert code(world.run()) is ends_with
    assert (world.opened(), world.wire.writes()) == ({}, [])


@pytest.mark.parametrize(("uid", "ends_with"), IN_DOUBT, ids=IDS)
@pytest.mark.parametrize("seconds", [1, 6])
def test_long_writes_are_followed_by_another_check_of_the_cluster(
    seconds: int, uid: Source[str], ends_with: ExitCode
) -> None:
    """The address leads elsewhere while two instances are registered, and their syncer's status is
    not written there. Short writes are followed by no second check."""
    world = article()
    asked = [world.cluster.uid]
    turn(world, Complete(data=CLUSTER))

    def elapse() -> None:
        if world.wire.calls[-1].startswith("register"):
            world.later(seconds * (2 if world.wire.calls[-1].endswith("_batch 2") else 1))
            world.cluster.uid = uid

    world.wire.then = elapse
    report = world.run()
    assert ours(world) == {A: "UP", B: "UP"}
    late = seconds > 1
    assert world.wire.verbs().count("identity") == len(asked) + late
    assert ("write_status" in world.wire.verbs()) is not late
    assert code(report) is (ends_with if late else ExitCode.OK)
    assert sentences(report) == ([told(uid, "no status is written")] if late else [])


def test_a_pass_without_changes_does_not_check_the_cluster() -> None:
    """A daemon without changes sends only lists and renewals."""
    world = article()
    world.run()
    turn(world, ANOTHER)
    world.run()
    assert code(world.run()) is ExitCode.OK
    assert "identity" not in world.wire.verbs()


def test_no_lease_is_renewed_twice_and_none_of_another_installation() -> None:
    """The pass begins to doubt its cluster. It renews the instances of its own class, and those
    that changed over to it, once each."""
    world = FakeWorld()
    world.registry.put(foreign())
    for name, number, class_ in (
        ("mine", 1, "edge"),
        ("theirs", 2, "inner"),
        ("moved", 3, "inner"),
    ):
        add_app(world, name, number)
        world.cluster.apply(syncer(name, selector={"app": name}, syncerClass=class_))
    for class_ in ("edge", "inner"):
        world.scope = Scope(syncer_class=class_)
        world.run()
    assert {one.metadata.get(CLASS) for one in world.registry.held.values()} == {
        "edge",
        "inner",
        None,
    }
    world.scope = Scope(syncer_class="edge")
    world.cluster.apply(syncer("moved", selector={"app": "moved"}, syncerClass="edge"))
    turn(world, SILENT)
    world.later(30)
    renewed = world.run().outcomes.by_key
    assert (set(renewed), renewals(world)) == ({key(1, app="mine"), key(3, app="moved")}, 2)
    assert world.wire.writes() == []


def test_an_instance_that_was_just_cancelled_is_not_renewed() -> None:
    """A daemon in doubt renews what its list shows, except that instance."""
    world = article(cache=30)
    world.own_writes = OwnWrites(seconds=45)
    world.run()
    world.later(40)
    pods(world, endpoint(1))
    world.run()
    assert ours(world) == {A: "UP"}
    pods(world, endpoint(1), endpoint(3))
    turn(world, SILENT)
    world.later(1)
    renewed = world.run().outcomes.by_key
    assert (set(renewed), renewals(world)) == ({key(1)}, 1)
    assert ours(world) == {A: "UP"}


def test_the_check_of_the_cluster_has_time_of_its_own() -> None:
    """Slow uncached reads use up their whole stage. Without time for the check no pass would
    register anything."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(*(endpoint(n) for n in range(1, 101))), syncer())
    slow(world, ("read_instance", "absent_batch"), 1.2)
    answer = world.cluster.identity

    def within_limit(*, anew: bool = False) -> Source[str]:
        return answer(anew=anew) if world.time_limit.left() > 0 else SILENT

    world.cluster.identity = within_limit  # type: ignore[method-assign]
    report = world.run(deadline=120)
    assert len(world.registry.held) > 20
    assert code(report) is ExitCode.INCOMPLETE
