"""Whole passes with held removals: by a confirmation, or until a person approves."""

from __future__ import annotations

import pytest

from eurekube_sync.brake.approval import APPROVE_ANNOTATION, PlanId
from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.cli.output.report import sentences
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.errors import ClusterDenied, RegistryUnavailable
from eurekube_sync.model.kubernetes import EndpointSlice, PodRef, SyncerRef
from eurekube_sync.model.ownership import CLUSTER
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import rfc_3339
from tests.unit.controller.test_reconcile import add_app
from tests.unit.worlds.build import CLUSTER as OF_OURS
from tests.unit.worlds.build import NS, endpoint, instance, key, piece, service, stored, syncer
from tests.unit.worlds.fakes import FakeWorld

WEB = SyncerRef(NS, "web")


@pytest.fixture
def world() -> FakeWorld:
    """The app `web` with one pod and the app `other` with three, all registered. Each pass is a
    separate process."""
    world = FakeWorld()
    add_app(world, "web", 1)
    add_app(world, "other", 9)
    world.cluster.apply(piece(endpoint(7), endpoint(8), endpoint(9), service="other"))
    world.run()
    return world


def web(world: FakeWorld, *ready: bool) -> None:
    """Set the pods of `web`, ready or not."""
    world.cluster.apply(
        piece(*(endpoint(n, ready=one) for n, one in enumerate(ready, 1)), service="web")
    )


def standing(world: FakeWorld) -> str | None:
    """Return the status of the first instance of `web`."""
    return world.statuses().get("WEB 10.0.0.1:8080")


def held(world: FakeWorld, ref: SyncerRef = WEB) -> tuple[str, str]:
    """Return value and reason of the condition RemovalHeld."""
    status = world.cluster.syncers[ref].status
    condition = status.condition("RemovalHeld") if status else None
    assert condition is not None
    return condition.status.value, condition.reason


def said(world: FakeWorld, ref: SyncerRef = WEB) -> str:
    """Return the message of the condition RemovalHeld."""
    status = world.cluster.syncers[ref].status
    condition = status.condition("RemovalHeld") if status else None
    assert condition is not None
    return condition.message


def told(world: FakeWorld) -> list[str]:
    """Return the reasons of the events about held removals."""
    return [
        e.reason
        for e in world.cluster.events
        if e.syncer == WEB and e.key.startswith("RemovalHeld")
    ]


def held_of(report: PassReport) -> str:
    """Return the sentence about held removals."""
    return next(sentence for sentence in sentences(report) if sentence.startswith("held: "))


def single(report: PassReport) -> ExitCode:
    """Return the exit code of a run of one pass."""
    return of_report(report, fail_on_held=True, detailed=False)


def daemon(report: PassReport) -> ExitCode:
    """Return the exit code of a run of many passes."""
    return of_report(report, fail_on_held=False, detailed=False)


def test_the_last_instance_of_an_app_is_removed_20_seconds_later(world: FakeWorld) -> None:
    """Each pass is another process, so the time in the status counts. A held removal gives exit
    code 31 and one event, and the instance is renewed."""
    web(world, False)
    report = world.run()
    assert (standing(world), single(report), daemon(report)) == (
        "UP",
        ExitCode.REMOVAL_HELD,
        ExitCode.OK,
    )
    assert held(world) == ("True", "AwaitingConfirmation")
    assert f"--approve {report.held.plan_id if report.held else ''}" in said(world)
    assert held(world, SyncerRef(NS, "other")) == ("False", "NothingHeld")
    for _ in range(2):
        world.later(10)
        assert world.run().held is not None
        assert world.wire.writes() == []
        assert f"renew {key(1, app='web')}" in world.wire.calls
    world.later(1)
    report = world.run()
    assert (standing(world), single(report), held(world)) == (
        "DOWN",
        ExitCode.OK,
        ("False", "NothingHeld"),
    )
    told = [
        event.reason
        for event in world.cluster.events
        if event.syncer == WEB and event.key.startswith("RemovalHeld")
    ]
    assert told == ["AwaitingConfirmation", "NothingHeld"]


def test_a_flapping_outage_starts_its_wait_again(world: FakeWorld) -> None:
    """The pod is ready for one pass, so the earlier sighting is forgotten."""
    for _ in range(5):
        web(world, False)
        for _ in range(2):
            world.run()
            world.later(9)
        web(world, True)
        world.run()
        world.later(9)
        assert (standing(world), held(world)) == ("UP", ("False", "NothingHeld"))


@pytest.mark.parametrize("process", ["a daemon", "single passes"])
@pytest.mark.parametrize("slow", ["list_services", "list_slices"])
def test_a_second_pass_that_takes_long_confirms_nothing_by_that(
    world: FakeWorld, process: str, slow: str
) -> None:
    """It begins 10 s after the first one. Its lists show no more than what was true then."""
    world.sightings = Sightings() if process == "a daemon" else None
    web(world, False)
    world.run()
    world.later(10)

    def takes_long() -> None:
        if world.wire.verbs()[-1] == slow:
            world.later(16)

    world.wire.then = takes_long
    world.run()
    assert standing(world) == "UP"
    world.wire.then = lambda: None
    world.run()
    assert standing(world) == "DOWN"


@pytest.mark.parametrize("process", ["a daemon", "single passes"])
@pytest.mark.parametrize("source", ["syncers", "services", "slices"])
@pytest.mark.parametrize("dead", [True, False], ids=["dead", "unready"])
def test_a_source_that_fails_in_every_second_pass_keeps_no_app_up(
    world: FakeWorld, process: str, source: str, dead: bool
) -> None:
    """A pass that cannot read a syncer's source confirms nothing, and forgets nothing. The passes
    that read it confirm each other."""
    world.sightings = Sightings() if process == "a daemon" else None
    if dead:
        world.cluster.apply(piece(service="web"))
    else:
        web(world, False)
    statuses = []
    for _ in range(2):
        world.run()
        statuses.append(standing(world))
        world.later(11)
        world.cluster.unknown[source, "*"] = Unknown(cause=Cause.UNAVAILABLE, message="why")
        world.run()
        statuses.append(standing(world))
        world.later(11)
        world.cluster.unknown.clear()
    gone = None if dead else "DOWN"
    assert statuses == ["UP", "UP", gone, gone]


@pytest.mark.parametrize("process", ["a daemon", "single passes"])
def test_a_pass_that_could_not_read_eureka_either_starts_the_wait_again(
    world: FakeWorld, process: str
) -> None:
    """It forgets the first look, whatever else it could not read."""
    world.sightings = Sightings() if process == "a daemon" else None
    web(world, False)
    world.run()
    world.later(30)
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="why")
    unread(world)
    world.registry.unreadable = None
    world.later(30)
    world.run()
    assert standing(world) == "UP"


@pytest.mark.parametrize("unread_between", [True, False])
def test_an_unready_pod_does_not_confirm_that_its_syncer_is_missing(
    world: FakeWorld, unread_between: bool
) -> None:
    """A daemon sees the only pod unready. When it is ready again, a list lacks its syncer, as after
    etcd was restored. That is the first look at the missing syncer."""
    world.sightings = Sightings()
    web(world, False)
    world.run()
    world.later(15)
    web(world, True)
    if unread_between:
        unread(world)
    world.later(15)
    world.cluster.syncers.pop(next(ref for ref in world.cluster.syncers if ref.name == "web"))
    world.run()
    assert standing(world) == "UP"
    world.later(21)
    world.run()
    assert standing(world) is None


def unread(world: FakeWorld) -> None:
    """Make a pass that cannot read the slices."""
    world.cluster.unknown["slices", "*"] = Unknown(cause=Cause.UNAVAILABLE, message="why")
    world.run()
    world.cluster.unknown.clear()


@pytest.mark.parametrize("process", ["a daemon", "single passes"])
def test_a_pass_that_reads_nothing_does_not_shorten_the_wait(
    world: FakeWorld, process: str
) -> None:
    """The second look comes at least 20 s after the first one."""
    world.sightings = Sightings() if process == "a daemon" else None
    web(world, False)
    world.run()
    world.later(10)
    unread(world)
    for seconds, status in ((9, "UP"), (2, "DOWN")):
        world.later(seconds)
        world.run()
        assert standing(world) == status


@pytest.mark.parametrize("process", ["a daemon", "single passes"])
def test_what_was_seen_before_a_long_outage_is_forgotten(world: FakeWorld, process: str) -> None:
    """No pass could read the slices for longer than a first look is valid."""
    world.sightings = Sightings() if process == "a daemon" else None
    web(world, False)
    world.run()
    for _ in range(11):
        world.later(60)
        unread(world)
    for seconds, status in ((1, "UP"), (19, "UP"), (2, "DOWN")):
        world.later(seconds)
        world.run()
        assert standing(world) == status


@pytest.mark.parametrize("trouble", ["identity", "clash"])
def test_a_pass_that_could_only_renew_starts_the_wait_again(world: FakeWorld, trouble: str) -> None:
    """The cluster's UID could not be read, or another cluster uses our owner. Such a pass confirms
    nothing."""
    world.sightings = Sightings()
    web(world, False)
    world.run()
    world.later(15)
    theirs = stored(
        instance(6, app="theirs"), metadata={**stored(instance(6)).metadata, CLUSTER: "another"}
    )
    if trouble == "identity":
        world.cluster.uid = Unknown(cause=Cause.UNAVAILABLE, message="why")
    else:
        world.registry.put(theirs)
    assert world.run().desired is None
    world.cluster.uid = Complete(data=OF_OURS)
    world.registry.held.pop(theirs.key, None)
    for seconds, status in ((15, "UP"), (19, "UP"), (1, "DOWN")):
        world.later(seconds)
        world.run()
        assert standing(world) == status


def test_a_process_that_starts_without_the_cluster_uid_starts_the_wait_again(
    world: FakeWorld,
) -> None:
    """The first pass of the process could not read the cluster's UID. So the statuses do not count
    as a first pass."""
    web(world, False)
    world.run()
    world.later(15)
    world.sightings = Sightings()
    world.cluster.uid = Unknown(cause=Cause.UNAVAILABLE, message="why")
    world.run()
    world.cluster.uid = Complete(data=OF_OURS)
    world.later(15)
    world.run()
    assert standing(world) == "UP"


def test_a_daemon_remembers_by_itself(world: FakeWorld) -> None:
    """Its own memory counts, even if no status can be written."""
    world.sightings = Sightings()
    world.cluster.refuse["write_status"] = ClusterDenied("403")
    web(world, False)
    world.run()
    world.later(19)
    assert world.run().held is not None
    world.later(1)
    world.run()
    assert standing(world) == "DOWN"


def test_a_new_process_takes_over_what_the_condition_says(world: FakeWorld) -> None:
    """A restart of the daemon neither restarts nor shortens the wait."""
    web(world, False)
    world.run()
    world.later(15)
    world.sightings = Sightings()
    assert world.run().held is not None
    world.later(5)
    assert world.run().held is not None
    world.later(1)
    world.run()
    assert standing(world) == "DOWN"


@pytest.mark.parametrize("process", ["one each pass", "a daemon that was paused"])
def test_a_pass_of_long_ago_does_not_count_as_the_first_pass(
    world: FakeWorld, process: str
) -> None:
    """No pass ran for three days, while `keepalive` renewed. The outage after that is another
    one."""
    world.sightings = Sightings() if process == "a daemon that was paused" else None
    web(world, False)
    world.run()
    assert held(world) == ("True", "AwaitingConfirmation")
    world.later(3 * 86400)
    for seconds, status in ((0, "UP"), (19, "UP"), (2, "DOWN")):
        world.later(seconds)
        world.run()
        assert standing(world) == status


def test_passes_every_10_minutes_confirm_each_other_and_every_15_do_not(world: FakeWorld) -> None:
    """A sighting is valid as long as a lease without renewals. The sentence about held removals
    gives this time."""
    web(world, False)
    for _ in range(3):
        report = world.run()
        assert standing(world) == "UP"
        assert (
            "no approval is needed if a second pass, 20 s to 620 s after the first, plans the same"
            in held_of(report)
        )
        world.later(900)
    world.run()
    world.later(600)
    world.run()
    assert standing(world) == "DOWN"


def test_a_removal_that_waits_for_days_can_still_be_confirmed(world: FakeWorld) -> None:
    """An orphan of the app holds it up, because no process makes a second pass. A CronJob makes a
    pass each minute, so its status is always new enough."""
    orphan = stored(instance(5, app="web", ref=SyncerRef(NS, "gone")))
    world.registry.put(orphan)
    web(world, False)
    for _ in range(60):
        world.run()
        assert held(world) == ("True", "AwaitingConfirmation")
        world.later(60)
    world.registry.held.pop(orphan.key)
    passes = 0
    while standing(world) == "UP":
        passes += 1
        assert passes <= 2
        world.run()
        world.later(60)


@pytest.mark.parametrize("process", ["one each pass", "a daemon"])
def test_a_wait_that_is_long_by_option_ends(world: FakeWorld, process: str) -> None:
    """The wait is longer than a single sighting is valid."""
    world.brake = replace(world.brake, confirm_after=3600)
    world.sightings = Sightings() if process == "a daemon" else None
    web(world, False)
    for _ in range(60):
        world.run()
        assert standing(world) == "UP"
        world.later(60)
    world.later(1)
    world.run()
    assert standing(world) == "DOWN"


def test_a_condition_of_the_future_is_written_anew(world: FakeWorld) -> None:
    """Another machine's clock was ahead. Otherwise the app would wait until that time."""
    web(world, False)
    world.later(3600)
    world.run()
    world.later(-3600)
    world.run()
    world.later(21)
    world.run()
    assert standing(world) == "DOWN"


def test_a_hold_of_another_kind_counts_as_the_first_look(world: FakeWorld) -> None:
    """All removals were held for ten minutes. When the other app is back, this app was seen unready
    by eleven passes."""
    web(world, False)
    world.cluster.apply(piece(*(endpoint(n, ready=False) for n in (7, 8, 9)), service="other"))
    for _ in range(10):
        world.run()
        world.later(60)
    assert held(world) == ("True", "TooManyRemovals")
    world.cluster.apply(piece(endpoint(7), endpoint(8), endpoint(9), service="other"))
    world.run()
    assert standing(world) == "DOWN"
    assert told(world) == ["TooManyRemovals", "NothingHeld"]


def test_an_apps_last_orphan_waits_for_a_second_pass_of_the_same_process(world: FakeWorld) -> None:
    """No syncer has a status that the next process could read. A person can approve the removal."""
    orphan = stored(instance(5, app="gone", ref=SyncerRef(NS, "gone")))
    world.registry.put(orphan)
    for _ in range(2):
        report = world.run()
        world.later(30)
        assert (orphan.key in world.registry.held, single(report)) == (True, ExitCode.REMOVAL_HELD)
        assert (
            "both passes must be of one process, because the syncer is gone: use run --passes 2"
            in held_of(report)
        )
    world.run(approved=report.held.plan_id if report.held else None)
    assert orphan.key not in world.registry.held
    world.registry.put(orphan)
    world.sightings = Sightings()
    world.run()
    world.later(20)
    world.run()
    assert orphan.key not in world.registry.held


def test_the_brake_weighs_one_pass_and_remembers_none(world: FakeWorld) -> None:
    """Pods become unready one by one, and each pass stays below the limits. Only the last instance
    waits for its confirmation."""
    numbers = range(100, 120)
    world.cluster.apply(
        syncer("slow", selector={"app": "slow"}), service("slow", labels={"app": "slow"})
    )
    world.cluster.apply(piece(*(endpoint(n) for n in numbers), service="slow"))
    world.run()
    for unready in range(1, 20):
        pods = (endpoint(n, ready=n - 100 >= unready) for n in numbers)
        world.cluster.apply(piece(*pods, service="slow"))
        report = world.run()
        world.later(30)
        down = [
            name
            for name, status in world.statuses().items()
            if name.startswith("SLOW") and status == "DOWN"
        ]
        assert (len(down), report.held) == (unready, None)
    world.cluster.apply(piece(*(endpoint(n, ready=False) for n in numbers), service="slow"))
    assert world.run().held is not None
    world.later(30)
    world.run()
    assert "SLOW 10.0.0.119:8080" in world.statuses()
    assert world.statuses()["SLOW 10.0.0.119:8080"] == "DOWN"


@pytest.fixture
def outage(world: FakeWorld) -> FakeWorld:
    """All pods of both apps are unready, and the removals are held."""
    web(world, False)
    world.cluster.apply(piece(*(endpoint(n, ready=False) for n in (7, 8, 9)), service="other"))
    assert world.run().held is not None
    return world


def test_a_plan_id_of_which_nothing_is_planned_any_more_is_no_success(outage: FakeWorld) -> None:
    """All pods are ready again. A sentence says that nothing is released."""
    held = outage.run(dry_run=True).held
    assert held is not None
    web(outage, True)
    outage.cluster.apply(piece(endpoint(7), endpoint(8), endpoint(9), service="other"))
    report = outage.run(approved=held.plan_id)
    assert (report.held, single(report), daemon(report)) == (
        None,
        ExitCode.REMOVAL_HELD,
        ExitCode.REMOVAL_HELD,
    )
    told = f"--approve {held.plan_id}: the plan has changed, so nothing was approved"
    assert sentences(report) == [told]


def test_an_approval_is_used_up_when_all_its_removals_are_done(outage: FakeWorld) -> None:
    """While Eureka refuses some of them, the same process tries again."""
    dry = outage.run(dry_run=True)
    assert dry.held is not None
    assert not dry.approval_spent
    outage.registry.refuse[key(1, app="web")] = RegistryUnavailable("no")
    report = outage.run(approved=dry.held.plan_id)
    assert (report.approval_spent, single(report)) == (False, ExitCode.INCOMPLETE)
    outage.registry.refuse.clear()
    again = outage.run(dry_run=True)
    assert again.held is not None
    report = outage.run(approved=again.held.plan_id)
    assert (report.approval_spent, single(report)) == (True, ExitCode.OK)


def annotate(world: FakeWorld, ref: SyncerRef, text: str) -> None:
    """Annotate the syncer, as with `kubectl annotate`."""
    found = world.cluster.syncers[ref]
    world.cluster.syncers[ref] = replace(found, annotations={APPROVE_ANNOTATION: text})


def test_an_annotation_releases_only_one_syncers_removals(outage: FakeWorld) -> None:
    """They are done at once, without a second pass. The other removals are weighed without them and
    stay held."""
    annotate(outage, WEB, rfc_3339(outage.clock.now() + 600))
    report = outage.run()
    assert (standing(outage), held(outage)) == ("DOWN", ("False", "NothingHeld"))
    assert report.held is not None
    assert report.held.reason.startswith("app OTHER would have no UP instance left")
    assert {one.syncer for one in report.held.removals} == {SyncerRef(NS, "other")}


@pytest.mark.parametrize(
    ("seconds", "why"),
    [(-1, "it expired at"), (3601, "is more than an hour ahead"), (None, "is not a time such as")],
)
def test_an_annotation_that_releases_nothing_is_reported_in_the_condition(
    outage: FakeWorld, seconds: float | None, why: str
) -> None:
    """The time has passed, is too far ahead, or is no time."""
    annotate(outage, WEB, "soon" if seconds is None else rfc_3339(outage.clock.now() + seconds))
    outage.run()
    assert (standing(outage), held(outage)) == ("UP", ("True", "TooManyRemovals"))
    assert f"annotation {APPROVE_ANNOTATION} has no effect: " in said(outage)
    assert why in said(outage)


def test_removals_held_late_in_a_pass_are_held_with_the_rest(world: FakeWorld) -> None:
    """A successor could not be registered, so the removal of the instance is held. The report shows
    it only as held."""
    world.brake = BrakeLimits(loss_floor=1)
    world.cluster.apply(piece(*(endpoint(n) for n in (17, 18, 19)), service="other"))
    for number in (18, 19):
        world.registry.refuse_register[key(number, app="other")] = RegistryUnavailable("no")
    report = world.run()
    assert report.held is not None
    assert len(report.held.removals) == 3
    assert report.plan.removals == ()
    assert held(world, SyncerRef(NS, "other")) == ("True", "TooManyRemovals")


def test_the_status_stays_while_a_removal_waits_for_a_blocked_successor(world: FakeWorld) -> None:
    """Another owner's instance has the id of the new pod. The old instance stays in every pass, and
    the status is written once."""
    world.registry.held[key(2, app="web")] = stored(instance(2, app="web"), metadata={})
    world.cluster.apply(piece(endpoint(2), service="web"))
    world.run()
    first = world.cluster.syncers[WEB].status
    for _ in range(4):
        world.clock.sleep(30)
        report = world.run()
        assert world.cluster.syncers[WEB].status == first
        assert (standing(world), held(world)) == ("UP", ("False", "NothingHeld"))
    assert report.plan.removals == ()
    assert first is not None
    assert [(c.type, c.reason) for c in first.conditions if c.type in ("Ready", "Conflict")] == [
        ("Ready", "Conflict"),
        ("Conflict", "Conflict"),
    ]


def test_a_denied_namespace_alone_is_not_served() -> None:
    """The other namespaces are served. An invalid syncer does not affect the other syncers of its
    namespace."""
    world = FakeWorld()

    def pods(namespace: str, name: str, *numbers: int) -> EndpointSlice:
        first = {"one": 0, "two": 10}[namespace]
        found = (endpoint(first + number, pod=f"{namespace}-{name}-{number}") for number in numbers)
        return piece(*found, service=name, namespace=namespace)

    for namespace in ("one", "two"):
        for name in ("web", "shop"):
            world.cluster.apply(
                syncer(name, namespace=namespace, selector={"app": name}),
                service(name, namespace=namespace, labels={"app": name}),
                pods(namespace, name, 1, 2),
            )
    world.run()
    before = set(world.registry.held)
    assert len(before) == 8
    world.cluster.pods["two"] = tuple(
        PodRef(name, f"uid-of-{name}") for name in ("two-shop-1", "two-shop-2")
    )
    for namespace in ("one", "two"):
        for name in ("web", "shop"):
            world.cluster.apply(pods(namespace, name, 1))
    world.cluster.unknown["slices", "one"] = Unknown(cause=Cause.DENIED, message="403")
    world.cluster.apply(syncer("shop", namespace="two", selector={"app": ""}))
    report = world.run()
    assert before - set(world.registry.held) == {key(12, app="web", namespace="two")}
    assert single(report) is ExitCode.KUBERNETES_DENIED


def test_a_flapping_outage_starts_its_wait_again_without_a_written_status(world: FakeWorld) -> None:
    """The process saw that the pod was ready again. This counts more than the old status."""
    world.sightings = Sightings()
    web(world, False)
    world.run()
    assert held(world) == ("True", "AwaitingConfirmation")
    world.later(10)
    web(world, True)
    world.cluster.refuse["write_status"] = ClusterDenied("403")
    world.run()
    world.cluster.refuse.clear()
    assert held(world) == ("True", "AwaitingConfirmation")
    world.later(15)
    web(world, False)
    world.run()
    assert standing(world) == "UP"
    world.later(20)
    world.run()
    assert standing(world) == "DOWN"


def test_a_plan_id_that_released_nothing_for_an_hour_releases_nothing_any_more(
    outage: FakeWorld,
) -> None:
    """A daemon keeps its options for weeks. The same pods may fail again, and nobody has checked
    that outage."""
    report = outage.run()
    assert report.held is not None
    approval = PlanId(report.held.plan_id, given=outage.clock.now())
    web(outage, True)
    outage.cluster.apply(piece(endpoint(7), endpoint(8), endpoint(9), service="other"))
    assert not outage.run(approved=approval).approval_spent
    outage.later(3601)
    web(outage, False)
    outage.cluster.apply(piece(*(endpoint(n, ready=False) for n in (7, 8, 9)), service="other"))
    report = outage.run(approved=approval)
    assert set(outage.statuses().values()) == {"UP"}
    assert report.held is not None
    assert report.held.plan_id == approval.value
    assert single(report) is daemon(report) is ExitCode.CONFIGURATION
    assert sentences(report)[0] == (
        f"--approve {approval}: was given 60 minutes ago, and is valid for 60 minutes: see what "
        "is held now. "
        "Nothing was released"
    )


def test_a_plan_id_releases_what_two_tests_hold_beside_what_is_not_held() -> None:
    """Two apps become unready, and a person deletes the third. Two limits are exceeded: the number
    of apps, and all that we own."""
    world = FakeWorld()
    for number, name in enumerate("abc", 1):
        add_app(world, name, number)
    world.run()
    world.cluster.apply(
        piece(endpoint(1, ready=False), service="a"), piece(endpoint(2, ready=False), service="b")
    )
    world.cluster.delete(SyncerRef(NS, "c"))
    plan_held = world.run(dry_run=True).held
    assert plan_held is not None
    assert len(plan_held.removals) == 2
    assert world.run(approved=plan_held.plan_id).held is None
    assert world.statuses() == {"A 10.0.0.1:8080": "DOWN", "B 10.0.0.2:8080": "DOWN"}
