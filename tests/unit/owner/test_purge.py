"""`purge` on a registry and a cluster in memory: what it cancels and refuses, also after an
interruption."""

from __future__ import annotations

from contextlib import suppress

import pytest

from eurekube_sync.controller.exit_codes import ExitCode, of_error
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.errors import (
    ClusterDenied,
    ConfigurationError,
    EurekubeError,
    RegistryUnavailable,
    SourceUnknown,
    Stopped,
)
from eurekube_sync.model.eureka import (
    InstanceKey,
    InstanceStatus,
    LeaseTimes,
    ObservedInstance,
    Port,
)
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLUSTER as CLUSTER_MARK
from eurekube_sync.model.ownership import OWNER as OWNER_MARK
from eurekube_sync.model.ownership import SYNCER
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.owner.purge import PurgeReport, PurgeWorld, look_before_purge, purge
from tests.in_process.workers import InTurn
from tests.unit.worlds.build import (
    CLUSTER,
    NS,
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
    """The instance that the pod `rating-<number>` registered itself, when its image still had a
    Eureka client."""
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


def purge_world(world: FakeWorld, *, alone: bool = False) -> PurgeWorld:
    """The world of the commands. With `alone` it has no cluster."""
    cluster = None if alone else world.cluster
    return PurgeWorld(registry=world.registry, clock=world.clock, workers=InTurn(), cluster=cluster)


def two_of_ours() -> FakeWorld:
    """Two instances of a `run` that has ended."""
    world = base()
    world.run()
    world.later(10)
    world.wire.calls.clear()
    return world


# --- purge ----------------------------------------------------------------------------------------


def purged(
    world: FakeWorld, *, alone: bool = False, dry_run: bool = False, scope: Scope | None = None
) -> PurgeReport:
    """The result of `purge --yes`."""
    where = purge_world(world, alone=alone)
    found = look_before_purge(
        where, owner=OWNER, cluster=CLUSTER if alone else None, scope=scope or Scope()
    )
    return purge(where, found, dry_run=dry_run)


def of_others(*owners: str) -> FakeWorld:
    """The owner has no instance, and others have this many. Healthy syncers have our finalizer."""
    world = base()
    world.cluster.syncers[REF] = replace(
        world.cluster.syncers[REF], finalizers=(CLEANUP_FINALIZER,)
    )
    for number, owner in enumerate(owners, 1):
        one = of_cluster(CLUSTER, number, owner)
        world.registry.put(changed(one, key=InstanceKey(APP, f"{owner}:{number}")))
    return world


@pytest.mark.parametrize(
    ("owners", "named"),
    [
        ((), ""),
        (("demo", "demo"), "; the instances of this cluster belong to demo (2 instances)"),
        (
            ("demo", "other", "demo"),
            "; the instances of this cluster belong to demo (2 instances), other (1 instance)",
        ),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
def test_an_owner_that_has_nothing_is_asked_about(
    owners: tuple[str, ...], named: str, dry_run: bool
) -> None:
    """No command gives advice if its owner may be a typo."""
    world = of_others(*owners)
    sentence = f"no instance of owner prod in this cluster{named}. Is --owner right?"
    report = purged(world, dry_run=dry_run)
    assert (report.code, report.summary, report.sentences) == (
        ExitCode.OK,
        f"nothing to purge: {sentence}",
        (),
    )
    assert world.wire.writes() == []


def test_a_recent_deletion_keeps_its_finalizer_when_the_purged_owner_has_nothing() -> None:
    """The other owner's `run` is about to remove the finalizer. After the cache time of Eureka's
    list, no owner has an instance there."""
    world = of_others()
    world.registry.put(
        changed(
            of_cluster(CLUSTER, 9, "demo"), metadata={OWNER_MARK: "demo", CLUSTER_MARK: CLUSTER}
        )
    )
    world.cluster.delete(REF)
    assert "our finalizer is left on 1 syncer being deleted" in purged(world).sentences[0]
    world.later(46)
    assert purged(world).sentences == ("our finalizer was removed from 1 syncer being deleted",)


def test_a_purge_takes_all_of_ours_and_nothing_else() -> None:
    """It needs only Eureka. A dry run counts, and a second purge finds nothing."""
    world = two_of_ours()
    elsewhere = of_cluster("elsewhere", 9)
    world.registry.put(elsewhere)
    world.later(100)
    planned = purged(world, alone=True, dry_run=True)
    assert (planned.summary, len(planned.purged), world.wire.writes()) == (
        f"dry run: 2 to cancel, of owner prod and cluster {CLUSTER}",
        2,
        [],
    )
    report = purged(world, alone=True)
    assert (report.code, report.summary, report.sentences) == (ExitCode.OK, "2 cancelled", ())
    assert set(world.registry.held) == {foreign().key, elsewhere.key}
    left = (
        f"no instance of owner prod in cluster {CLUSTER}; owner prod has 1 instance of cluster "
        "elsewhere. "
    )
    left += "Is --owner right?"
    assert purged(world, alone=True).summary == f"nothing to purge: {left}"


def test_a_purge_of_the_wrong_cluster_names_the_right_one() -> None:
    """The report names the cluster that has instances, because the given id may be a mistake."""
    world = two_of_ours()
    found = look_before_purge(purge_world(world), owner=OWNER, cluster="mistaken", scope=Scope())
    for dry_run in (True, False):
        report = purge(purge_world(world, alone=True), found, dry_run=dry_run)
        assert (report.code, report.sentences) == (ExitCode.OK, ())
        assert report.summary == (
            "nothing to purge: no instance of owner prod in cluster mistaken; "
            f"owner prod has 2 instances of cluster {CLUSTER}. "
            "Is --owner right?"
        )


def test_a_purge_of_a_scope_leaves_another_scopes_instances_and_finalizers() -> None:
    """One owner has two namespaces with an installation each. Instances that name no syncer belong
    to the whole owner."""
    world = two_of_ours()
    ref = SyncerRef("shop", "cart")
    odd = stored(instance(8))
    cart = stored(instance(9, ref=ref))
    world.registry.put(cart, changed(odd, metadata={**odd.metadata, SYNCER: "cart"}))
    for registered in (cart.key, odd.key):
        world.registry._renew(registered)
    world.cluster.apply(
        replace(syncer("cart"), namespace="shop", finalizers=(CLEANUP_FINALIZER,), deleted=1.0)
    )
    world.later(600)
    purged(world, scope=Scope(namespaces=frozenset({NS})))
    assert set(world.registry.held) == {foreign().key, key(8), cart.key}
    assert world.cluster.syncers[ref].finalizers == (CLEANUP_FINALIZER,)
    world.later(600)
    purged(world)
    assert set(world.registry.held) == {foreign().key}
    assert ref not in world.cluster.syncers


def test_a_peer_that_is_away_is_no_success() -> None:
    """It may still have instances. The report says so with exit code 30, and a dry run only says
    it."""
    world = two_of_ours()
    world.registry.away = ("http://two/eureka",)
    for dry_run, code in ((True, ExitCode.OK), (False, ExitCode.INCOMPLETE)):
        report = replace(purged(world, dry_run=dry_run), unreached=world.registry.unreached())
        assert report.code is code
        assert report.sentences[-1].startswith(
            "http://two/eureka could not be reached: the instances there stay"
        )
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
    """It is interrupted before and after every call. No finalizer is removed while an instance is
    registered, and instances of others are not touched."""
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
            assert (set(world.registry.held), world.cluster.syncers) == ({foreign().key}, {}), (
                number,
                when,
            )
            assert not broken, (number, when)


def test_a_purge_says_that_a_run_would_register_them_again() -> None:
    """They were renewed a short time ago."""
    world = two_of_ours()
    report = purged(world, alone=True)
    assert report.sentences == (
        "they were renewed 10 s ago: a `run` that still runs would register them again; stop it "
        "first",
    )


@pytest.mark.parametrize("ahead", [-600, -100, 100, 600])
def test_our_clock_does_not_decide_whether_a_run_still_runs(ahead: float) -> None:
    """Eureka's clock is minutes ahead of ours, or behind it."""
    world = base()
    world.registry.seconds_ahead = ahead
    world.run()
    world.later(10)
    assert "they were renewed 10 s ago" in purged(world, alone=True, dry_run=True).sentences[0]
    world.later(90)
    assert purged(world, alone=True, dry_run=True).sentences == ()


def test_each_syncer_is_asked_who_renews_it() -> None:
    """Two installations of one owner have their own syncers, and only one of them has ended."""
    world = base()
    for number in range(1, 61):
        world.registry.put(stored(instance(number, ref=SyncerRef(NS, f"syncer-{number:02}"))))
    for ended in range(1, 61):
        world.registry._renew(key(ended))
    world.later(1000)
    assert purged(world, dry_run=True).sentences == ()
    for renewed in (1, 30, 60):
        held = world.registry.held[key(renewed)]
        world.registry._renew(key(renewed))
        assert "they were renewed 0 s ago" in purged(world, dry_run=True).sentences[0]
        world.registry.held[key(renewed)] = held


def test_another_instance_of_the_syncer_tells_where_the_latest_is_gone() -> None:
    """Eureka's list is old. The instance that it shows with the latest renewal is gone, or it is
    another owner's by now."""
    for gone in (True, False):
        world = two_of_ours()
        world.later(100)
        world.registry._renew(key(2))
        world.registry.cached_for(60)
        world.registry._renew(key(1))
        if gone:
            del world.registry.held[key(2)]
        else:
            world.registry.held[key(2)] = changed(theirs(), key=key(2))
        assert "they were renewed 0 s ago" in purged(world, dry_run=True).sentences[0]


@pytest.mark.parametrize("missing", ["read_at", "last_renewal"])
def test_a_server_without_times_is_named_and_keeps_the_finalizers(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy leaves out the header Date, or a server the times of a lease."""
    world = deleted()
    read = world.registry._read

    def without_time(asked: InstanceKey) -> ObservedInstance | None:
        reading = read(asked)
        if reading is None:
            return None
        if missing == "read_at":
            return replace(reading, read_at=0)
        return replace(reading, last_renewal=0)

    monkeypatch.setattr(world.registry, "_read", without_time)
    sentences = purged(world).sentences
    assert sentences[0].startswith("Eureka does not say when they were renewed: a `run` that")
    assert "our finalizer is left on 1 syncer being deleted" in sentences[-1]
    world.later(60)
    assert "our finalizer was removed from 1 syncer" in purged(world).sentences[-1]


def test_a_purge_cancels_by_uncached_reads() -> None:
    """An instance that belongs to others by now stays, a failure is reported, and a signal ends the
    command."""
    world = two_of_ours()
    found = look_before_purge(purge_world(world), owner=OWNER, cluster=None, scope=Scope())
    world.registry.held[key(1)] = changed(theirs(), key=key(1))
    del world.registry.held[key(2)]
    report = purge(purge_world(world), found, dry_run=False)
    assert (report.code, report.summary) == (ExitCode.INCOMPLETE, "1 already gone, 1 in conflict")
    assert report.sentences[0] == f"{key(1)}: it belongs to another owner now, and stays as it is"
    assert key(1) in world.registry.held
    world = two_of_ours()
    world.registry.refuse[key(1)] = RegistryUnavailable("timed out")
    report = purged(world)
    assert (report.code, report.summary) == (ExitCode.INCOMPLETE, "1 cancelled, 1 failed")
    world = two_of_ours()
    world.wire.then = lambda: setattr(world.clock, "stopped", bool(world.wire.writes()))
    report = purged(world)
    assert (report.code, report.summary) == (ExitCode.INCOMPLETE, "1 cancelled, 1 not tried")


def test_nothing_is_asked_of_instances_that_could_not_be_read() -> None:
    """Without the age of a renewal, a purge could fight with a `run` that still runs."""
    world = two_of_ours()
    for number in (1, 2):
        world.registry.refuse_read[key(number)] = RegistryUnavailable("timed out")
    with pytest.raises(RegistryUnavailable, match="timed out"):
        purged(world)
    world.clock.stopped = True
    with pytest.raises(Stopped, match="nothing was changed"):
        purged(world)
    assert world.wire.writes() == []


def test_an_instance_that_an_old_list_shows_has_no_age() -> None:
    """It is gone. The purge of the others goes on."""
    world = two_of_ours()
    world.registry.cached_for(60)
    del world.registry.held[key(1)]
    assert purged(world).summary == "1 cancelled, 1 already gone"


def test_an_instance_that_appears_during_the_question_is_left_with_its_finalizer() -> None:
    """It was not shown in the question, and its syncer was deleted meanwhile. It must not outlive
    its finalizer."""
    world = two_of_ours()
    world.later(100)
    found = look_before_purge(purge_world(world), owner=OWNER, cluster=None, scope=Scope())
    world.registry.put(stored(instance(5)))
    world.cluster.delete(REF)
    now = look_before_purge(
        purge_world(world), owner=OWNER, cluster=found.ownership.cluster, scope=Scope()
    )
    report = purge(purge_world(world), replace(now, instances=found.instances), dry_run=False)
    assert report.summary == "2 cancelled"
    assert (
        "1 more came meanwhile and was left: stop what registers them, and purge again"
        in report.sentences
    )
    assert CLEANUP_FINALIZER in world.cluster.syncers[REF].finalizers
    assert key(5) in world.registry.held


def deleted() -> FakeWorld:
    """Two syncers, one of them being deleted, and no `run`."""
    world = two_of_ours()
    world.cluster.apply(syncer("living", selector={"app": "none"}, finalizers=(CLEANUP_FINALIZER,)))
    world.cluster.apply(
        syncer("of-others", selector={"app": "none"}, finalizers=("another/finalizer",))
    )
    world.cluster.delete(REF)
    world.later(100)
    return world


def test_a_purge_lets_go_the_finalizers_of_deleted_syncers() -> None:
    """They are removed from deleted syncers without instances. Living syncers are counted, and a
    dry run lists the candidates."""
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
    assert set(world.cluster.syncers) == {SyncerRef(NS, "living"), SyncerRef(NS, "of-others")}


def test_a_finalizer_stays_while_an_instance_may_be_registered() -> None:
    """It is another owner's instance of this syncer, one that Eureka's list may still hide, or one
    whose cancel failed."""
    world = deleted()
    world.registry.put(replace(of_cluster(CLUSTER, 9, owner="second")))
    assert purged(world).sentences == (
        "1 syncer still has our finalizer: delete the syncer, and purge again",
    )
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
    assert (report.code, report.errors[0].args) == (
        ExitCode.KUBERNETES_DENIED,
        ("403: grant patch",),
    )
    assert (
        report.sentences[-1] == "our finalizer is left on 1 syncer being deleted: 403: grant patch"
    )


# --- All commands ---------------------------------------------------------------------------------


def test_the_cluster_is_asked_once_who_it_is() -> None:
    """This holds for any number of lists of its syncers."""
    world = two_of_ours()
    world.registry.put(theirs())
    purged(world)
    assert world.wire.verbs().count("identity") == 1


def test_without_a_cluster_or_eureka_nothing_is_begun() -> None:
    """Each error says what is missing."""
    world = two_of_ours()
    with pytest.raises(ConfigurationError, match="give --cluster, or a kubeconfig"):
        look_before_purge(purge_world(world, alone=True), owner=OWNER, cluster=None, scope=Scope())
    world.registry.unreadable = DENIED
    with pytest.raises(SourceUnknown) as told:
        look_before_purge(purge_world(world), owner=OWNER, cluster=None, scope=Scope())
    assert of_error(told.value) is ExitCode.EUREKA_DENIED
