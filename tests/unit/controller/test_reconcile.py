"""Whole passes over the fakes: the main story, and what each failure leaves registered."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, CLEANUP_FINALIZER, DRAIN_ANNOTATION
from eurekube_sync.model.actions import Renew
from eurekube_sync.model.errors import RegistryDenied, RegistryRejected, RegistryUnavailable
from eurekube_sync.model.eureka import Port
from eurekube_sync.model.kubernetes import PodRef, ServicePort, SyncerRef
from eurekube_sync.model.ownership import CLUSTER, OWNER, SYNCER
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.kubernetes import unread
from eurekube_sync.plan.value import Obstacle
from tests.unit.worlds.build import (
    DENIED,
    NS,
    OUT,
    REF,
    TERMINATING,
    changed,
    endpoint,
    foreign,
    instance,
    key,
    piece,
    service,
    stored,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld

A, B, C = (f"RATING 10.0.0.{number}:8080" for number in (1, 2, 3))


def article(*, cache: float = 0) -> FakeWorld:
    """The Service `rating` with two pods, its headless and metrics Services, and a syncer that
    names its port."""
    world = FakeWorld(cache=cache)
    pods = (endpoint(1), endpoint(2))
    world.cluster.apply(
        service(),
        service("rating-headless", cluster_ips=("None",)),
        service("rating-metrics", ServicePort(name="metrics", port=9090)),
        piece(*pods),
        piece(*pods, service="rating-headless"),
        piece(*pods, service="rating-metrics", port=9090, port_name="metrics"),
        syncer(port="http"),
    )
    world.registry.put(foreign())
    return world


def pods(world: FakeWorld, *endpoints: object) -> None:
    """Set the pods behind the Service."""
    world.cluster.apply(
        piece(*endpoints),  # type: ignore[arg-type]
        piece(*endpoints, service="rating-headless"),  # type: ignore[arg-type]
    )


def add_app(world: FakeWorld, name: str, number: int) -> None:
    """Add another app: a syncer, its Service and its one pod."""
    world.cluster.apply(
        syncer(name, selector={"app": name}),
        service(name, labels={"app": name}),
        piece(endpoint(number), service=name),
    )


def ours(world: FakeWorld) -> dict[str, str]:
    """Our instances. The data centre's own instance must always be registered, and is left out
    here."""
    standing = world.statuses()
    assert standing.pop("RATING 192.0.2.1:0") == "UP"
    return standing


@pytest.fixture(params=[0, 30], ids=["fresh lists", "lists up to 30 s old"])
def world(request: pytest.FixtureRequest) -> FakeWorld:
    return article(cache=request.param)


def test_eureka_follows_the_pods_until_the_syncer_is_deleted(world: FakeWorld) -> None:
    """It covers register, renew, DOWN, UP, cancel, a new pod and the syncer's deletion, with passes
    40 s apart."""

    def step(expected: dict[str, str], changes: list[str]) -> None:
        world.later(40)
        world.run()
        assert ours(world) == expected
        verbs = [call.split()[0] for call in world.wire.writes()]
        assert [verb for verb in verbs if verb not in ("write_status", "record_event")] == changes

    step({A: "UP", B: "UP"}, ["add_finalizer", "register", "register"])
    status = world.cluster.syncers[REF].status
    assert status is not None
    assert status.ready == "2/2"
    step({A: "UP", B: "UP"}, [])
    assert world.wire.writes() == []
    pods(world, endpoint(1), endpoint(2, ready=False))
    step({A: "UP", B: "DOWN"}, ["register"])
    pods(world, endpoint(1), endpoint(2))
    step({A: "UP", B: "UP"}, ["register"])
    pods(world, endpoint(1), endpoint(2, ready=False, terminating=True))
    step({A: "UP"}, ["cancel"])
    pods(world, endpoint(1), endpoint(3))
    step({A: "UP", C: "UP"}, ["register"])
    world.cluster.delete(REF)
    step({}, ["cancel", "cancel"])
    step({}, ["cancel", "cancel", "remove_finalizer"])
    assert world.cluster.syncers == {}
    step({}, [])


def test_a_second_pass_right_after_the_first_sends_renewals_only(world: FakeWorld) -> None:
    """The list need not show the first pass's writes. No POST, DELETE or PATCH is sent."""
    world.run()
    world.later(1)
    world.run()
    assert world.wire.writes() == []
    assert world.wire.verbs().count("renew") == 2


def test_eureka_is_listed_before_kubernetes(world: FakeWorld) -> None:
    """An instance that somebody registers between the lists must not look undesired. The cluster's
    identity does not change."""
    world.run()
    assert world.wire.calls[:5] == [
        "identity",
        "list_instances",
        "list_syncers",
        "list_services",
        "list_slices",
    ]


def slow(world: FakeWorld, call: str | tuple[str, ...], seconds: float) -> None:
    """Make each such call take this long."""
    world.wire.then = lambda: (
        world.later(seconds) if world.wire.calls[-1].startswith(call) else None
    )


@pytest.mark.parametrize(
    "call", ["identity", "list_instances", "list_syncers", "list_slices", "read_instance"]
)
def test_a_slow_server_takes_no_renewal_its_time(world: FakeWorld, call: str) -> None:
    """Every registered instance is renewed in every pass, whichever server hangs."""
    world.run()
    world.later(60)
    pods(world, endpoint(3), endpoint(4))
    slow(world, call, 40)
    for _ in range(3):
        world.run(deadline=160)
        assert world.wire.verbs().count("renew") >= 2


def test_renewals_that_their_stage_left_over_get_the_time_that_is_left() -> None:
    """A slow Eureka gets more renewals than their stage has time for, if the pass has nothing else
    to do."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(*(endpoint(n) for n in range(1, 51))), syncer())
    world.run()
    world.later(60)
    slow(world, "renew", 1)
    report = world.run(deadline=100)
    assert world.wire.verbs().count("renew") == 50
    assert not report.outcomes.failures
    world.later(30)
    world.run(deadline=60)
    assert world.wire.verbs().count("renew") > 50 * 0.8


@pytest.mark.parametrize("trouble", ["identity", "clash"])
def test_a_pass_that_can_only_renew_has_all_its_time_for_it(trouble: str) -> None:
    """Renewals that do not fit into their stage are not left for the next pass."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(*(endpoint(n) for n in range(1, 51))), syncer())
    world.run()
    world.later(60)
    if trouble == "identity":
        world.cluster.uid = DENIED
    else:
        world.registry.put(
            stored(
                instance(99), metadata={OWNER: "prod", CLUSTER: "another", SYNCER: "rating/rating"}
            )
        )
    slow(world, "renew", 1)
    report = world.run(deadline=60)
    assert {f"renew {key(number)}" for number in range(1, 51)} <= set(world.wire.calls)
    assert not report.outcomes.failures


def test_no_instance_is_removed_while_its_successor_cannot_be_read(world: FakeWorld) -> None:
    """A blocked registration counts as a failed one."""
    world.run()
    world.later(60)
    world.run()
    add_app(world, "other", 9)
    pods(world, endpoint(3))
    world.registry.refuse_read[key(3)] = RegistryUnavailable("timeout")
    world.run()
    assert {A, B} <= set(ours(world))


def test_adds_that_failed_do_not_loosen_the_brake() -> None:
    """One hundred instances are replaced, and Eureka refuses 99 of the new ones."""
    world = FakeWorld()
    world.cluster.apply(service(), piece(*(endpoint(n) for n in range(1, 101))), syncer())
    world.run()
    assert len(world.registry.held) == 100
    world.cluster.apply(piece(*(endpoint(n) for n in range(101, 201))))
    for number in range(102, 201):
        world.registry.refuse[key(number)] = RegistryRejected("400")
    report = world.run()
    assert report.held is not None
    assert len(report.held.removals) == 100
    assert all(key(number) in world.registry.held for number in range(1, 102))


def test_a_finalizer_that_somebody_removed_is_set_again(world: FakeWorld) -> None:
    """A careless client replaced the object without it. A deletion would leave orphans."""
    world.run()
    world.cluster.syncers[REF] = replace(world.cluster.syncers[REF], finalizers=())
    world.later(60)
    world.run()
    assert world.cluster.syncers[REF].finalizers == (CLEANUP_FINALIZER,)


def test_each_instance_to_change_is_read_again_first(world: FakeWorld) -> None:
    """A first registration needs an uncached 404 and the same cluster. The finalizer follows, then
    POST and a renewal."""
    world.run()
    assert world.wire.verbs()[5:13] == [
        "read_instance",
        "read_instance",
        "identity",
        "add_finalizer",
        "register",
        "renew",
        "register",
        "renew",
    ]


@pytest.mark.parametrize("gone", [True, False], ids=["its pod is gone", "its pod is unready"])
def test_an_instance_to_change_that_cannot_be_read_again_is_reported(gone: bool) -> None:
    """It is left as it is, and the exit code and the condition say so. A failed read of an instance
    that stays unchanged is not reported. One that stays UP is read only as the witness of a
    removal."""
    world = article()
    world.run()
    pods(world, endpoint(1), *([] if gone else [endpoint(2, ready=False)]))
    for number in (1, 2):
        world.registry.refuse_read[key(number)] = RegistryDenied("403")
    report = world.run()
    assert ours(world) == {A: "UP", B: "UP"}
    assert [(one.key, one.why, one.obstacle) for one in report.plan.blocked] == [
        (key(2), "403", Obstacle.UNREAD)
    ]
    assert of_report(report, fail_on_held=True, detailed=False) is ExitCode.INCOMPLETE
    status = world.cluster.syncers[REF].status
    assert status is not None
    assert status.errors == ("1 instance was not changed, because it could not be read again",)
    world.registry.refuse_read.clear()
    assert not world.run().plan.blocked
    assert ours(world) == ({A: "UP"} if gone else {A: "UP", B: "DOWN"})


def test_a_dry_run_writes_nothing_anywhere(world: FakeWorld) -> None:
    """It writes neither to Eureka nor to Kubernetes, and shows the plan."""
    report = world.run(dry_run=True)
    assert (
        [call for call in world.wire.calls if call.startswith("renew")] == world.wire.writes() == []
    )
    assert ({action.key for action in report.plan.changes}, report.settings.dry_run) == (
        {key(1), key(2)},
        True,
    )
    for trouble in ("identity", "clash"):
        world.cluster.uid = DENIED if trouble == "identity" else Complete(data="another")
        world.registry.put(stored(instance()))
        assert world.run(dry_run=True).settings.dry_run
        assert (
            [call for call in world.wire.calls if call.startswith("renew")]
            == world.wire.writes()
            == []
        )


@pytest.mark.parametrize("kind", ["syncers", "services", "slices"])
@pytest.mark.parametrize("namespace", ["*", NS])
@pytest.mark.parametrize("cause", list(Cause))
def test_a_list_that_fails_removes_nothing_and_renews_all(
    kind: str, namespace: str, cause: Cause
) -> None:
    """The list is denied, times out, is cut, or its CRD is gone. All is renewed for ever, even if
    pods or a syncer went meanwhile."""
    world = article()
    world.run()
    pods(world)
    world.cluster.unknown[kind, namespace] = Unknown(cause=cause, message="why")
    for _ in range(3):
        world.later(60)
        world.run()
        assert ours(world) == {A: "UP", B: "UP"}
        assert world.wire.verbs().count("renew") == 2


def test_without_eurekas_list_desired_instances_are_renewed_or_registered_again() -> None:
    """Desired instances are renewed. After a 404 they are registered again, and nothing is
    removed."""
    world = article()
    world.run()
    world.registry.held.pop(key(2))
    pods(world, endpoint(2), endpoint(3, ready=False))
    world.registry.unreadable = DENIED
    report = world.run()
    assert ours(world) == {A: "UP", B: "UP"}
    assert report.registry == DENIED
    assert "cancel" not in world.wire.verbs()


def test_a_first_registration_while_eureka_cannot_be_read_has_its_finalizer() -> None:
    """The 404 of the renewal is the uncached answer. The finalizer is set before the POST."""
    world = article()
    world.registry.unreadable = DENIED
    world.run()
    assert ours(world) == {A: "UP", B: "UP"}
    calls = world.wire.verbs()
    assert calls.index("add_finalizer") < calls.index("register")


def test_while_the_clusters_uid_is_unknown_our_instances_are_only_renewed() -> None:
    """Nothing else is done. If Eureka is unknown as well, nothing at all is done."""
    world = article()
    world.run()
    pods(world)
    world.cluster.uid = DENIED
    report = world.run()
    assert (world.wire.writes(), world.wire.verbs().count("renew"), report.desired) == ([], 2, None)
    world.registry.unreadable = DENIED
    report = world.run()
    assert (report.plan.actions, report.registry) == ((), DENIED)
    assert ours(world) == {A: "UP", B: "UP"}
    assert world.run(dry_run=True).outcomes.by_key == {}


def test_another_cluster_under_our_name_stops_all_but_renewals() -> None:
    """Two clusters with one copied values file would cancel each other's instances."""
    world = article()
    world.run()
    pods(world)
    twin = stored(
        instance(9), metadata={OWNER: "prod", CLUSTER: "another", SYNCER: "rating/rating"}
    )
    world.registry.put(twin)
    report = world.run()
    assert (report.clashes, world.wire.writes(), report.desired) == (("another",), [], None)
    assert {call for call in world.wire.calls if call.startswith("renew")} == {
        f"renew {key(1)}",
        f"renew {key(2)}",
    }


@pytest.mark.parametrize("syncers", [1, 50])
def test_the_deletion_of_the_crd_removes_nothing(syncers: int) -> None:
    """Every syncer is being deleted. Nothing is cancelled and no finalizer is removed, however long
    it lasts."""
    world = FakeWorld()
    for number in range(syncers):
        name = f"app{number}"
        add_app(world, name, number)
    world.run()
    before = world.statuses()
    assert len(before) == syncers
    world.cluster.crd = TERMINATING
    for ref in list(world.cluster.syncers):
        world.cluster.delete(ref)
    for _ in range(3):
        world.later(60)
        world.run()
        assert world.statuses() == before
        assert {s.finalizers for s in world.cluster.syncers.values()} == {(CLEANUP_FINALIZER,)}


def test_an_abandoned_deletion_ends_while_the_crd_is_being_deleted() -> None:
    """A person's annotation ends it, and the instances expire by themselves."""
    world = article()
    world.run()
    world.cluster.crd = TERMINATING
    world.cluster.delete(REF)
    world.cluster.syncers[REF] = replace(
        world.cluster.syncers[REF], annotations={ABANDON_ANNOTATION: "true"}
    )
    world.run()
    assert world.cluster.syncers == {}
    assert ours(world) == {A: "UP", B: "UP"}


def test_a_deletion_waits_for_eureka_and_says_so() -> None:
    """The finalizer stays while Eureka cannot be read."""
    world = article()
    world.run()
    world.cluster.delete(REF)
    world.registry.unreadable = DENIED
    world.later(600)
    world.run()
    status = world.cluster.syncers[REF].status
    assert status is not None
    assert "Eureka could not be read" in status.conditions[0].message


def test_a_deletion_does_not_end_by_a_list_that_is_older_than_it() -> None:
    """A pass was paused after its list. The list lacks an instance that was registered just before,
    and its pod is gone."""
    world = article()
    world.run()
    hidden = {**world.registry.held}
    world.registry.held.clear()
    world.registry.cached_for(30)
    world.registry.held.update(hidden)

    def pause() -> None:
        if world.wire.calls[-1] == "list_instances":
            pods(world)
            world.cluster.delete(REF)
            world.later(60)

    world.wire.then = pause
    world.run()
    assert CLEANUP_FINALIZER in world.cluster.syncers[REF].finalizers
    world.wire.then = lambda: None
    world.run()
    assert ours(world) == {}


def test_a_successor_registers_in_the_same_pass_and_nothing_goes_down() -> None:
    """The old syncer is deleted, and the new one claims its pods. The deletion then ends."""
    world = article()
    world.run()
    world.cluster.apply(syncer("successor", port="http", created=2000))
    world.cluster.delete(REF)
    for _ in range(3):
        world.later(46)
        world.run()
        assert ours(world) == {A: "UP", B: "UP"}
        assert "cancel" not in world.wire.verbs()
    assert set(world.cluster.syncers) == {SyncerRef(NS, "successor")}


def test_a_persons_out_of_service_is_kept() -> None:
    """It survives further passes and a change of readiness. It is reported, and not counted as
    UP."""
    world = article()
    world.run()
    world.registry.override(key(1), OUT)
    for ready in (True, False, True):
        pods(world, endpoint(1, ready=ready), endpoint(2))
        world.later(40)
        world.run()
        assert ours(world) == {A: "OUT_OF_SERVICE", B: "UP"}
        assert world.registry.overrides == {key(1).id: OUT}
    status = world.cluster.syncers[REF].status
    assert status is not None
    assert status.ready == "1/2"
    assert "by hand" in status.conditions[0].message


def test_an_expired_instance_is_registered_again_while_its_pod_is_ready() -> None:
    """The list may still show it. The 404 of the renewal shows that it is gone."""
    world = article(cache=30)
    world.run()
    world.later(31)
    world.run()
    world.registry.held.pop(key(1))
    world.run()
    assert ours(world) == {A: "UP", B: "UP"}


def test_a_404_registers_nothing_for_a_syncer_that_is_not_served() -> None:
    """Nothing shows that its pod is alive."""
    world = article(cache=30)
    world.run()
    world.later(31)
    world.run()
    world.registry.held.pop(key(1))
    world.cluster.apply(syncer(selector={"app": "nosuch"}))
    world.run()
    assert ours(world) == {B: "UP"}


def test_a_held_removal_keeps_status_and_lease_until_it_is_approved() -> None:
    """The pods of two apps disappear at once, and live. The removals are held and renewed, with one
    plan id in each pass, until a person approves."""
    world = article()
    add_app(world, "web", 7)
    world.run()
    world.cluster.pods[NS] = tuple(PodRef(f"rating-{n}", f"uid-of-rating-{n}") for n in (1, 2, 7))
    pods(world)
    world.cluster.apply(piece(service="web"))
    ids = set()
    for _ in range(3):
        world.later(40)
        report = world.run()
        assert report.held is not None
        ids.add(report.held.plan_id)
        assert ours(world) == {A: "UP", B: "UP", "WEB 10.0.0.7:8080": "UP"}
        assert world.wire.verbs().count("renew") == 3
    (plan_id,) = ids
    status = world.cluster.syncers[REF].status
    assert status is not None
    assert status.conditions[0].reason == "TooManyRemovals"
    assert world.run(approved="another").held is not None
    assert world.run(approved=plan_id).held is None
    assert ours(world) == {}


def test_a_held_deletion_keeps_its_finalizer() -> None:
    """Eleven of twelve apps are deleted at once. The removals are held, and the syncers stay until
    they are approved."""
    world = FakeWorld()
    for name in "abcdefghijkl":
        add_app(world, name, ord(name))
    world.run()
    for name in "abdefghijkl":
        world.cluster.delete(SyncerRef(NS, name))
    world.later(100)
    report = world.run()
    assert report.held is not None
    assert report.held.reason.startswith(
        "11 of 12 apps would have no UP instance left, because their syncers are being"
    )
    assert (len(world.statuses()), len(world.cluster.syncers)) == (12, 12)
    world.run(approved=report.held.plan_id)
    world.later(1)
    world.run()
    assert (len(world.statuses()), set(world.cluster.syncers)) == (1, {SyncerRef(NS, "c")})


def limit_0(world: FakeWorld, name: str) -> None:
    """A chart's value gives the syncer the limit 0."""
    world.cluster.apply(syncer(name, selector={"app": name}, limit=0))


def drained(world: FakeWorld, name: str) -> None:
    """The same of the annotation of its Service."""
    there = service(name, labels={"app": name})
    world.cluster.apply(replace(there, annotations={DRAIN_ANNOTATION: "true"}))


@pytest.mark.parametrize("fault", [limit_0, drained])
@pytest.mark.parametrize(("apps", "holds"), [("abcdefghijk", True), ("abcdef", False)])
def test_a_limit_or_a_drain_of_every_app_is_held(
    fault: Callable[[FakeWorld, str], None], apps: str, holds: bool
) -> None:
    """A fault of a chart asks for it as well as a person. Six apps may go, as those of a
    namespace."""
    world = FakeWorld()
    for name in apps:
        add_app(world, name, ord(name))
    world.run()
    for name in apps:
        fault(world, name)
    world.later(100)
    report = world.run()
    up = [status for status in world.statuses().values() if status == "UP"]
    assert len(up) == (len(apps) if holds else 0)
    assert (report.held is not None) is holds
    if report.held:
        world.run(approved=report.held.plan_id)
        assert "UP" not in world.statuses().values()


def test_a_held_deletion_of_a_daemon_writes_its_status_once() -> None:
    """The status gives the same reason whether or not a held instance is renewed in that pass."""
    world = FakeWorld()
    world.renewals = RenewalLedger(period=30, slack=5)
    for name in "abcdefghijkl":
        add_app(world, name, ord(name))
    world.run()
    for name in "abcdefghijkl":
        world.cluster.delete(SyncerRef(NS, name))
    world.later(10)
    assert world.run().held is not None
    for _ in range(6):
        world.later(10)
        world.run()
        assert world.wire.writes() == []


def test_the_last_up_instance_stays_until_its_successor_is_registered() -> None:
    """A pod is replaced while Eureka refuses the new one."""
    world = article()
    pods(world, endpoint(1))
    world.run()
    pods(world, endpoint(1, ready=False, terminating=True), endpoint(2))
    world.registry.refuse[key(2)] = RegistryUnavailable("no")
    world.run()
    assert ours(world) == {A: "UP"}
    world.registry.refuse.clear()
    world.run()
    assert ours(world) == {B: "UP"}


def test_a_pod_that_is_replaced_at_its_address_keeps_the_instance() -> None:
    """The id stays, the mark names the new pod, and nothing is DOWN."""
    world = article()
    world.run()
    pods(world, endpoint(1, pod="rating-9"), endpoint(2))
    world.run()
    assert world.registry.held[key(1)].metadata["eurekube.pod"] == "rating-9/uid-of-rating-9"
    assert "cancel" not in world.wire.verbs()


def test_two_scopes_never_touch_each_others_instances() -> None:
    """Two installations have one owner and disjoint namespaces. The end of the one's pods changes
    no instance of the other."""
    world = article()
    world.run()
    world.cluster.apply(
        syncer(namespace="other"), service(namespace="other"), piece(endpoint(7), namespace="other")
    )
    world.scope = Scope(namespaces=frozenset({"other"}))
    pods(world)
    world.run()
    world.cluster.syncers.clear()
    world.run()
    assert ours(world) == {
        A: "UP",
        B: "UP",
        "RATING 10.0.0.7:8080": "UP",
    }  # the last instance of its scope is held
    assert all(str(key(number)) not in call for call in world.wire.calls for number in (1, 2))


def test_an_orphan_is_cancelled() -> None:
    """Its syncer was deleted while no process ran, and its finalizer was removed by hand."""
    world = article()
    world.registry.put(stored(instance(5, ref=SyncerRef(NS, "gone"))))
    world.run()
    assert ours(world) == {A: "UP", B: "UP"}


def test_our_id_with_anothers_mark_is_a_conflict_and_stays() -> None:
    """It is neither changed nor renewed, and the syncer's condition says so."""
    world = article()
    theirs = stored(instance(1), metadata={"team": "x"})
    world.registry.put(theirs)
    world.run()
    assert world.registry.held[key(1)] == theirs
    status = world.cluster.syncers[REF].status
    assert status is not None
    assert status.conditions[0].reason == "Conflict"


def test_changed_metadata_is_one_register_and_then_none() -> None:
    """A key that is removed from the spec is a change as well."""
    world = article()
    for metadata in ({"a": "1"}, {"a": "2"}, {}):
        world.cluster.apply(syncer(port="http", metadata=metadata))
        world.run()
        assert world.registry.held[key(1)].metadata.get("a") == metadata.get("a")
        world.run()
        assert "register" not in world.wire.verbs()


def test_passes_without_changes_write_nothing_for_hours() -> None:
    """No status, event or registration is written. Only renewals are sent, with lists up to 30 s
    old."""
    world = article(cache=30)
    world.run()
    for _ in range(50):
        world.later(37)
        report = world.run()
        assert world.wire.writes() == []
        assert {type(action) for action in report.plan.actions} == {Renew}
        world.registry.put(foreign())
        world.registry.evict()
    assert ours(world) == {A: "UP", B: "UP"}


def test_a_lease_is_only_a_lease() -> None:
    """Without renewals the instances expire after twice the lease duration."""
    world = article()
    world.run()
    world.later(599)
    world.registry.evict()
    assert set(world.registry.held) >= {key(1), key(2)}
    world.later(2)
    world.registry.evict()
    assert not {key(1), key(2)} & set(world.registry.held)


def test_an_outage_of_eureka_is_reported_once_in_the_statuses() -> None:
    """Each pass begins its renewals elsewhere, so other calls fail. The status is not rewritten for
    that."""
    world = FakeWorld()
    for app in range(3):
        name = f"app{app}"
        world.cluster.apply(
            syncer(name, selector={"app": name}), service(name, labels={"app": name})
        )
        pods = [endpoint(20 * app + number) for number in range(20)]
        world.cluster.apply(piece(*pods, service=name))
    world.run()
    for number, one in enumerate(world.registry.held):
        world.registry.refuse[one] = RegistryUnavailable(f"connection {number} timed out")
    world.later(40)
    assert len(world.run().statuses) == 3
    for _ in range(6):
        world.later(10)
        assert world.run().statuses == {}


def test_a_pod_that_registers_itself_gets_no_second_instance(world: FakeWorld) -> None:
    """Its image still has a Eureka client. The condition says so, and ours is registered when the
    pod's own is gone."""
    itself = changed(
        foreign("rating-1.rating:8080"),
        host_name="10.0.0.1",
        ip_addr="10.0.0.1",
        port=Port(8080, True),
    )
    world.registry.put(itself)
    world.later(60)
    report = world.run()
    assert [blocked.other for blocked in report.plan.blocked] == [itself.key]
    assert ours(world)[A] == "UP"
    assert set(world.registry.held) == {foreign().key, itself.key, key(2)}
    conflict = report.statuses[REF].condition("Conflict")
    assert conflict is not None
    assert (
        conflict.reason,
        "Turn off the pod's registration (eureka.client.register-with-eureka=false)"
        in conflict.message,
    ) == ("DuplicateRegistration", True)
    del world.registry.held[itself.key]
    world.later(60)
    world.run()
    assert key(1) in world.registry.held


@pytest.mark.parametrize(
    ("listed", "left"),
    [
        ("both", {A, B}),  # whatever happens to Services and slices
        ("the first", {A}),
        ("none known", {A, B}),
    ],
)
def test_a_syncer_not_served_loses_an_instance_when_its_pod_is_gone(
    world: FakeWorld, listed: str, left: set[str]
) -> None:
    """A complete list of pods is evidence. A list that could not be read is none."""
    world.run()
    world.later(60)
    add_app(world, "other", 9)
    world.run()
    world.later(60)
    alive = [one.pod for one in (endpoint(1), endpoint(2)) if one.pod]
    world.cluster.pods[NS] = tuple(alive if listed == "both" else alive[:1])
    if listed == "none known":
        world.cluster.unknown["pods", NS] = DENIED
    world.cluster.services = [one for one in world.cluster.services if one.name == "other"]
    world.cluster.slices = [one for one in world.cluster.slices if one.service == "other"]
    report = world.run()
    assert {name for name in ours(world) if name.startswith("RATING")} == left
    failed = [(failed.name, failed.source) for failed in unread(report.view)]
    assert ("Pods of rating", DENIED) in failed or listed != "none known"
    assert world.wire.verbs().count("list_pods") == 1


def test_a_list_of_all_pods_proves_that_a_syncers_last_pods_are_gone(world: FakeWorld) -> None:
    """The list does not name a namespace without pods."""
    for number in range(21):
        team = f"team-{number}"
        asks = syncer(namespace=team, metadataFrom=[{"key": "version", "podLabel": "version"}])
        world.cluster.apply(
            asks, service(namespace=team), piece(endpoint(pod=f"of-{team}"), namespace=team)
        )
    world.run()
    world.later(60)
    world.cluster.services = [one for one in world.cluster.services if one.namespace != NS]
    world.cluster.slices = [one for one in world.cluster.slices if one.namespace != NS]
    for _ in range(2):
        world.run()
        world.later(60)
    assert {key(1), key(2)} & world.registry.held.keys() == set()


def test_pods_are_not_listed_while_all_syncers_are_served(world: FakeWorld) -> None:
    """They are not listed either for a syncer that is not served and has no instances."""
    world.cluster.apply(syncer("broken", selector={"app": "nobody"}))
    world.run()
    world.later(60)
    world.run()
    assert "list_pods" not in world.wire.verbs()
