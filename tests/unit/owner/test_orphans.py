"""`orphans`: which instances are orphans, what `run` will do with each, and what is unknown."""

from __future__ import annotations

import pytest

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.controller.exit_codes import ExitCode, of_error
from eurekube_sync.controller.one_pass import Memory, PassSettings, World
from eurekube_sync.desired.scope import Policy, Scope
from eurekube_sync.desired.selector import parse_selector
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import OwnerClash, Refused, RegistryDenied, SourceUnknown, Stopped
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLUSTER
from eurekube_sync.model.ownership import OWNER as OF_OWNER
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import OwnWrites
from eurekube_sync.owner.orphans import Fate, Orphans, look_for_orphans
from tests.in_process.workers import InTurn
from tests.unit.worlds.build import CLUSTER as OF_OURS
from tests.unit.worlds.build import (
    NS,
    OWNER,
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

DENIED = Unknown(cause=Cause.DENIED, message="403: grant list")
GONE = SyncerRef(NS, "gone")
NOWHERE = SyncerRef("nowhere", "web")


def settled(pods: int = 4) -> FakeWorld:
    """A syncer whose pods are registered, and an instance of others."""
    world = FakeWorld()
    world.cluster.apply(syncer(), service(), piece(*(endpoint(n) for n in range(1, pods + 1))))
    world.registry.put(foreign(), *(stored(instance(n)) for n in range(1, pods + 1)))
    return world


def look(world: FakeWorld, scope: Scope | None = None) -> Orphans:
    """The result of `orphans`, which writes nothing."""
    world.wire.calls.clear()
    whole = World(
        registry=world.registry,
        cluster=world.cluster,
        clock=world.clock,
        workers=InTurn(),
        renewals=RenewalLedger(period=0, slack=0),
        memory=Memory(own_writes=OwnWrites(seconds=0)),
        time_limit=TimeLimit(world.clock),
    )
    found = look_for_orphans(whole, PassSettings(owner=world.owner, scope=scope or Scope()))
    assert world.wire.writes() == []
    assert not [call for call in world.wire.calls if call.startswith("renew")]
    return found


def told(orphans: Orphans) -> list[tuple[str, Fate]]:
    """Address and fate of each orphan."""
    return [(one.instance.instance.ip_addr, one.fate) for one in orphans.found]


def test_no_orphans_is_said_where_all_was_read() -> None:
    """The exit code is 0, with --detailed-exitcode too."""
    found = look(settled())
    assert (found.found, found.summary, found.code(detailed=True)) == (
        (),
        "no orphans",
        ExitCode.OK,
    )


def test_a_syncer_that_is_gone_leaves_orphans_that_run_cancels() -> None:
    """The next pass does what the command says."""
    world = settled()
    world.registry.put(stored(instance(8, ref=GONE)), stored(instance(9, ref=NOWHERE)))
    found = look(world)
    assert told(found) == [
        ("10.0.0.9", Fate.CANCEL),
        ("10.0.0.8", Fate.CANCEL),
    ]
    assert [one.why for one in found.found] == [
        "there is no syncer nowhere/web; the next `run` cancels it",
        "there is no syncer rating/gone; the next `run` cancels it",
    ]
    assert found.summary == "2 orphans: 2 to be cancelled"
    assert (found.code(detailed=False), found.code(detailed=True)) == (
        ExitCode.OK,
        ExitCode.CHANGES_PENDING,
    )
    world.run()
    assert {call for call in world.wire.calls if call.startswith("cancel")} == {
        f"cancel {one.instance.key}" for one in found.found
    }


@pytest.mark.parametrize("pods", [0, 2])
def test_an_instance_that_a_deletion_will_cancel_is_no_orphan(pods: int) -> None:
    """Its syncer exists until every peer was asked, even after Eureka's list no longer shows the
    instance."""
    world = settled(pods)
    world.cluster.syncers[REF] = syncer(finalizers=(CLEANUP_FINALIZER,))
    world.run()
    world.registry.put(stored(instance(9, ref=NOWHERE)))
    world.cluster.delete(REF)
    assert REF in world.cluster.syncers
    world.later(60)
    assert [address for address, _ in told(look(world))] == ["10.0.0.9"]


def test_a_held_orphan_is_reported_with_its_plan_id() -> None:
    """All our instances would be removed."""
    world = FakeWorld()
    world.registry.put(stored(instance(8, ref=GONE)))
    found = look(world)
    assert told(found) == [("10.0.0.8", Fate.HOLD)]
    held = world.run().held
    assert held is not None
    release = (
        f"To release the held removals of all syncers: eurekube-sync run --approve {held.plan_id}"
    )
    assert f"held by the brake: {held.reason}. {release}" in found.found[0].why
    assert found.summary == "1 orphan: 1 held"


def test_an_orphan_that_another_syncer_wants_is_taken_over() -> None:
    """The syncer has a new name. The id stays, and the mark changes."""
    world = settled()
    world.registry.put(stored(instance(1, ref=GONE)))
    found = look(world)
    assert told(found) == [("10.0.0.1", Fate.UPDATE)]
    assert found.found[0].why.endswith("the next `run` gives it to syncer rating/rating")


def test_an_orphan_stays_where_nothing_is_cancelled() -> None:
    """The command is given the options of `run`."""
    world = settled()
    world.registry.put(stored(instance(8, ref=GONE)))
    found = look(world, Scope(policy=Policy.UPSERT_ONLY))
    assert told(found) == [("10.0.0.8", Fate.RENEW)]
    assert found.found[0].why.endswith("not cancelled, because of --policy upsert-only")


def test_an_orphan_that_cannot_be_read_again_is_renewed() -> None:
    """Its cancel needs an uncached read."""
    world = settled()
    world.registry.put(stored(instance(8, ref=GONE)))
    world.registry.refuse_read[key(8)] = RegistryDenied("403")
    found = look(world)
    assert told(found) == [("10.0.0.8", Fate.RENEW)]
    assert "`run` renews it: the instance could not be read again: 403" in found.found[0].why


def test_a_signal_ends_the_command_without_a_report_of_unread_instances() -> None:
    """Unread instances would otherwise be reported as renewed by `run`."""
    world = settled()
    world.registry.put(stored(instance(8, ref=GONE)))
    world.wire.then = lambda: setattr(world.clock, "stopped", True)
    with pytest.raises(Stopped) as stopped:
        look(world)
    assert of_error(stopped.value) is ExitCode.INCOMPLETE


def test_a_look_whose_time_is_over_says_so() -> None:
    """Instances that could not be read again in time are unknown."""
    world = settled()
    world.registry.put(stored(instance(8, ref=GONE)))
    world.wire.then = lambda: setattr(world.clock, "time", world.clock.time + 40)
    found = look(world)
    assert found.unknown == (
        "no time was left to read every instance again: what `run` does is partly unknown",
    )
    assert found.code(detailed=True) is ExitCode.INCOMPLETE


def test_a_listed_instance_that_is_gone_is_no_orphan() -> None:
    """An uncached read shows that."""
    world = FakeWorld(cache=30)
    world.registry.put(stored(instance(8, ref=GONE)))
    world.registry.list_instances()
    del world.registry.held[key(8)]
    assert look(world).found == ()


def test_a_namespace_that_cannot_be_read_is_unknown_and_never_none() -> None:
    """Its instances have no verdict, and the others do. The exit code is 30."""
    world = settled()
    world.cluster.apply(syncer("web", namespace="web"))
    world.cluster.unknown[("syncers", "web")] = DENIED
    world.registry.put(
        stored(instance(9, app="web", ref=SyncerRef("web", "gone"))), stored(instance(8, ref=GONE))
    )
    found = look(world)
    assert told(found) == [("10.0.0.8", Fate.CANCEL)]
    assert found.unknown == ("EurekaSyncers of web: 403: grant list",)
    assert found.code(detailed=True) is ExitCode.INCOMPLETE
    assert found.summary == "1 orphan (1 to be cancelled) in what could be read"
    del world.registry.held[key(8)]
    assert look(world).summary == "no orphan in what could be read"


@pytest.mark.parametrize("trouble", ["denied", "terminating"])
def test_while_no_syncer_can_be_listed_nothing_is_an_orphan(trouble: str) -> None:
    """While the CRD is being deleted, its syncers are gone and nobody intended that."""
    world = settled()
    world.registry.put(stored(instance(8, ref=GONE)))
    if trouble == "denied":
        world.cluster.unknown[("syncers", "*")] = DENIED
    else:
        world.cluster.crd = TERMINATING
    found = look(world)
    assert found.found == ()
    assert (len(found.unknown), found.code(detailed=False)) == (1, ExitCode.INCOMPLETE)


def test_an_unreachable_peer_is_reported_and_the_list_is_called_incomplete() -> None:
    """Instances that only this peer has were not seen. The command never says "no orphans", and
    exits with 30."""
    world = settled()
    world.registry.away = ("http://two/eureka", "http://three/eureka")
    found = look(world)
    assert found.unknown == (
        "http://two/eureka, http://three/eureka could not be reached: orphans that are only there "
        "are not in this list",
    )
    assert (found.summary, found.code(detailed=True)) == (
        "no orphan in what could be read",
        ExitCode.INCOMPLETE,
    )
    world.registry.put(stored(instance(8, ref=GONE)))
    assert look(world).summary == "1 orphan (1 to be cancelled) in what could be read"


def test_beside_another_clusters_instances_nothing_is_said_of_orphans() -> None:
    """`run` would be refused, and would remove none. The message names the fix."""
    world = settled()
    old = stored(instance(7))
    world.registry.put(
        changed(old, metadata={**old.metadata, CLUSTER: "old"}), stored(instance(8, ref=GONE))
    )
    with pytest.raises(OwnerClash, match="eurekube-sync run --former-cluster old"):
        look(world)
    assert world.run().clashes == ("old",)


def test_a_command_to_paste_runs_nothing_that_others_wrote() -> None:
    """The marks in Eureka may hold any text of others."""
    world = settled()
    old = stored(instance(7))
    world.registry.put(changed(old, metadata={**old.metadata, CLUSTER: "b; reboot"}))
    with pytest.raises(OwnerClash, match=r"run --former-cluster 'b; reboot'$"):
        look(world)


def test_a_scope_is_all_that_is_judged() -> None:
    """An instance of another namespace is outside of it."""
    world = settled()
    world.registry.put(stored(instance(8, ref=GONE)), stored(instance(9, ref=NOWHERE)))
    assert told(look(world, Scope(namespaces=frozenset({NS})))) == [("10.0.0.8", Fate.CANCEL)]


def test_a_syncer_of_somebody_elses_class_leaves_no_orphans() -> None:
    """The syncer exists, and its instances belong to another installation."""
    world = settled()
    world.cluster.apply(syncer("other", syncerClass="second"))
    world.registry.put(stored(instance(8, ref=SyncerRef(NS, "other"))))
    assert look(world).found == ()


OTHER = SyncerRef(NS, "other")


@pytest.mark.parametrize(
    "scope",
    [
        Scope(selector=parse_selector("team=a")),
        Scope(selector=parse_selector("!team")),
        Scope(syncer_class="first"),
        Scope(namespaces=frozenset({"shop"})),
        Scope(namespaces=frozenset({"shop", NS}), selector=parse_selector("team=a")),
    ],
    ids=["selector", "no label", "class", "namespaces", "both"],
)
@pytest.mark.parametrize("deleted", [None, 1.0], ids=["living", "deleting"])
@pytest.mark.parametrize("partial", [False, True], ids=["all read", "one namespace unread"])
def test_one_that_exists_and_is_not_in_scope_is_somebody_elses(
    scope: Scope, deleted: float | None, partial: bool
) -> None:
    """This holds for every form of a scope. It also holds while another namespace cannot be listed,
    and until its finalizer is removed."""
    world = settled()
    there = replace(
        syncer("other"), labels={"team": "b"}, deleted=deleted, finalizers=("somebody/else",)
    )
    world.cluster.apply(replace(there, spec={**there.spec, "syncerClass": "second"}))
    world.registry.put(stored(instance(8, ref=OTHER)))
    if partial:
        world.cluster.unknown[("syncers", "shop")] = DENIED
    found = look(world, scope)
    assert key(8) not in {one.instance.key for one in found.found}
    world.scope = scope
    world.run()
    assert key(8) in world.registry.held
    assert not [call for call in world.wire.writes() if str(key(8)) in call]


def test_one_that_is_gone_is_an_orphan_of_every_scope_that_its_name_falls_into() -> None:
    """Its labels and class are gone with it, so no installation remains whose instance it could
    be."""
    for scope, falls in (
        (Scope(selector=parse_selector("team=a")), True),
        (Scope(syncer_class="first"), True),
        (Scope(namespaces=frozenset({"shop"})), False),
        (Scope(namespaces=frozenset({NS})), True),
    ):
        world = settled()
        world.registry.put(stored(instance(8, ref=OTHER)))
        assert (key(8) in {one.instance.key for one in look(world, scope).found}) is falls, scope


def test_a_namespace_that_does_not_exist_has_orphans_or_may_be_a_wrong_name() -> None:
    """Only where Eureka holds something of it is nothing left to say."""
    world = settled(1)
    scope = Scope(namespaces=frozenset({NS, NOWHERE.namespace}))
    found = look(world, scope)
    assert found.unknown == ("namespace nowhere does not exist",)
    assert (found.summary, found.code(detailed=False)) == (
        "no orphan in what could be read",
        ExitCode.INCOMPLETE,
    )
    world.registry.put(stored(instance(9, ref=NOWHERE)))
    assert look(world, scope).unknown == ()


def test_a_cluster_that_may_be_another_one_by_now_is_no_answer() -> None:
    """Its address leads elsewhere since the first call. No instance is called renewed."""
    world = settled()
    world.registry.put(stored(instance(8, ref=GONE)))
    world.cluster.remembered = Complete(data=OF_OURS)
    world.cluster.uid = Complete(data="another")
    with pytest.raises(
        SourceUnknown,
        match=r"now serves another cluster.*; no change can be planned from its lists",
    ):
        look(world)


def test_without_eureka_or_the_clusters_identity_nothing_can_be_said() -> None:
    """The error has the exit code of its cause."""
    world = settled()
    world.registry.unreadable = DENIED
    with pytest.raises(SourceUnknown) as told:
        look(world)
    assert of_error(told.value) is ExitCode.EUREKA_DENIED
    world = settled()
    world.cluster.uid = DENIED
    with pytest.raises(SourceUnknown) as told:
        look(world)
    assert of_error(told.value) is ExitCode.KUBERNETES_DENIED


def test_under_another_owners_syncers_nothing_is_said_of_orphans() -> None:
    """The owner is a typo. `run` would do nothing with these instances, and the command says so."""
    world = settled()
    world.run()
    world.owner = "typo"
    with pytest.raises(
        OwnerClash, match=r"Is --owner typo right\? .* --former-owner prod\. So `run` is refused"
    ) as told:
        look(world)
    assert of_error(told.value) is ExitCode.OWNER_CLASH


def test_another_owner_that_does_not_stop_run_hides_no_orphan() -> None:
    """Our owner was here first, so `run` continues and removes the orphan."""
    world = settled()
    world.run()
    one, ours = stored(instance(9, ref=GONE)), world.registry.held[key(1)]
    theirs = key(1)._replace(id=key(1).id.replace(OWNER, "typo", 1))
    world.registry.put(one, changed(ours, key=theirs, metadata={**ours.metadata, OF_OWNER: "typo"}))
    report = look(world)
    assert [orphan.instance.key for orphan in report.found] == [one.key]


def test_an_owner_that_has_nothing_has_no_verdict() -> None:
    """The owner may be a typo, so the command never says "no orphans". A peer that is away, or an
    unreadable cluster, is reported."""
    world = settled(0)
    there, asked = "no instance of owner prod in this cluster", r"\. Is --owner right\?$"
    with pytest.raises(Refused, match=f"^{there}{asked}") as told:
        look(world)
    assert of_error(told.value) is ExitCode.REFUSED
    one = stored(instance(9, ref=NOWHERE))
    world.registry.put(changed(one, metadata={**one.metadata, OF_OWNER: "demo"}))
    with pytest.raises(
        Refused,
        match=rf"^{there}; the instances of this cluster belong to demo \(1 instance\){asked}",
    ):
        look(world)
    world.registry.away = ("http://two/eureka",)
    assert look(world).code(detailed=False) is ExitCode.INCOMPLETE
    world.registry.away = ()
    world.cluster.uid = DENIED
    with pytest.raises(SourceUnknown):
        look(world)
