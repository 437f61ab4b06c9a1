"""A syncer that leaves every installation's scope keeps its instances, and a person learns of it.

These are whole passes of two installations with one owner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from eurekube_sync.cli.output.words import sentences
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.selector import parse_selector
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.errors import ClusterUnavailable
from eurekube_sync.model.kubernetes import Pod, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import OWNER as OF_OWNER
from eurekube_sync.model.sources import Complete, Listed
from eurekube_sync.observe.installations import Unserved, living
from eurekube_sync.observe.kubernetes import living_pods
from tests.unit.controller.test_reconcile import add_app
from tests.unit.worlds.build import CLUSTER, DENIED, NS, changed, foreign, instance, service, stored, syncer
from tests.unit.worlds.fakes import FakeWorld

ONE, TWO = Scope(selector=parse_selector("team=one")), Scope(selector=parse_selector("team=two"))
PAY, CART = SyncerRef(NS, "pay"), SyncerRef(NS, "cart")
TOLD = (
    f"syncer {PAY}: NoInstallation: no installation serves it. Its labels or class are not in this scope, and nobody "
    "else renews its 1 instance. Until an installation serves it, its instances are renewed here, and do not follow "
    "its pods"
)


class Two(FakeWorld):
    """Two installations by team, each with a memory, as daemons have. `pay` belongs to the first."""

    def __init__(self) -> None:
        super().__init__()
        self.registry.put(foreign())
        for number, (name, team) in enumerate((("pay", "one"), ("cart", "two")), 1):
            add_app(self, name, number)
            self.label(SyncerRef(NS, name), team=team)
        self.reports: dict[str, PassReport] = {}
        self.calls: list[str] = []
        self.memories: dict[str, dict[SyncerRef, float]] = {}

    def label(self, ref: SyncerRef, **labels: str) -> None:
        """Change the labels, as `kubectl label` does."""
        self.cluster.syncers[ref] = replace(self.cluster.syncers[ref], labels=labels)

    def passes(self, minutes: float, *scopes: Scope, owners: tuple[str, ...] = ()) -> None:
        """The installations make passes in turn, each half minute."""
        self.calls.clear()
        for _ in range(int(minutes * 2)):
            self.later(30)
            self.registry.renew(foreign().key)
            for place, scope in enumerate(scopes):
                self.scope = scope
                self.owner = owners[place] if owners else "prod"
                self.reported = self.memories.setdefault(f"{self.owner} {scope}", {})
                self.reports[f"{self.owner} {scope}"] = self.run()
                self.calls += self.wire.calls
            self.registry.evict()

    def said(self, scope: Scope, owner: str = "prod") -> list[str]:
        """The messages of this installation's last pass about syncers without an installation."""
        told = sentences(self.reports[f"{owner} {scope}"])
        return [one for one in told if "NoInstallation" in one or "owner clash" in one]

    def stands(self, name: str) -> bool:
        """Whether an instance of the app is registered."""
        return any(one.key.app == name.upper() for one in self.registry.held.values())

    def not_served(self) -> list[SyncerRef]:
        """The syncers of the NoInstallation events."""
        return [event.syncer for event in self.cluster.events if event.reason == "NoInstallation"]


@pytest.fixture
def world() -> Two:
    """A world in which both apps are served."""
    world = Two()
    world.passes(2, ONE, TWO)
    return world


def test_while_both_run_neither_renews_for_the_other(world: Two) -> None:
    """There is no message either, because each sees that the other one works."""
    world.passes(30, ONE, TWO)
    renewals = [call for call in world.calls if call.startswith("renew") and "dc:" not in call]
    assert len(renewals) == 60 * 2
    assert (world.said(ONE), world.said(TWO), world.not_served()) == ([], [], [])


def test_a_syncer_that_nobody_serves_keeps_its_instances(world: Two) -> None:
    """Each pass of one installation reports it, and one event. One installation renews it every few minutes."""
    world.label(PAY, team="nobody")
    world.passes(2, ONE, TWO)
    assert (world.said(ONE), world.said(TWO)) == ([], [])
    world.passes(25, ONE, TWO)
    assert world.stands("pay")
    assert len(world.not_served()) <= 2
    assert set(world.not_served()) == {PAY}
    assert 5 <= sum(call.startswith("renew PAY") for call in world.calls) <= 10
    assert not [
        call for call in world.calls if call.startswith(("write_status", "add_finalizer", "cancel", "register"))
    ]
    world.label(PAY, team="one")
    world.passes(1, ONE, TWO)
    assert (world.said(ONE), world.said(TWO)) == ([], [])


def test_a_syncer_of_nobody_is_reported_when_renewed_and_in_a_dry_run(world: Two) -> None:
    """A dry run writes nothing."""
    world.label(PAY)
    world.later(170)
    world.registry.renew(foreign().key)
    world.scope = TWO
    report = world.run(dry_run=True)
    assert sentences(report) == [TOLD]
    assert not [call for call in world.wire.calls if call.startswith(("renew PAY", "record_event"))]
    report = world.run()
    assert sentences(report) == [TOLD]
    assert "renew PAY" in " ".join(world.wire.calls)
    assert world.not_served() == [PAY]


def test_instances_are_kept_for_an_installation_that_pauses(world: Two) -> None:
    """It pauses for half an hour, and continues without a change."""
    world.passes(30, TWO)
    assert world.stands("pay")
    assert world.not_served() == [PAY]
    world.passes(15, ONE, TWO)
    assert (world.said(ONE), world.said(TWO)) == ([], [])
    world.passes(30, TWO)
    assert world.not_served() == [PAY, PAY], "it is another time"


def test_after_a_restart_of_eureka_an_old_list_is_no_sign_that_nobody_renews(world: Two) -> None:
    """The server has registered what another server holds, and its list shows one renewal since, for minutes."""
    world.passes(10, ONE, TWO)
    held = world.registry.held
    now = int(world.clock.now() * 1000)
    held |= {one.key: changed(one, last_renewal=now, registered=now) for one in held.values()}
    world.later(20)
    world.registry.renew(foreign().key)
    world.registry.cached_for(200)
    for _ in range(3):
        world.passes(0.5, ONE, TWO)
        assert (world.said(ONE), world.said(TWO)) == ([], [])
    assert world.not_served() == []


def test_of_a_pod_that_is_gone_nothing_is_kept(world: Two) -> None:
    """It expires, as it always did."""
    world.label(PAY)
    world.cluster.ended.add("uid-of-rating-1")
    world.passes(11, ONE, TWO)
    assert (world.stands("pay"), world.stands("cart")) == (False, True)


class Walked(tuple[Pod, ...]):
    """Pods that count how often they are read through."""

    walks = 0

    def __iter__(self) -> Iterator[Pod]:
        self.walks += 1
        return super().__iter__()


def test_the_pods_of_a_namespace_are_walked_over_once() -> None:
    """The number of instances does not matter. Otherwise a tenant's instances could take all the time of a pass."""
    pods = Walked(Pod(name=f"rating-{number}", uid=f"uid-of-rating-{number}") for number in range(50))
    left = [
        Unserved(syncer=syncer(), instances=tuple(stored(instance(number)) for number in some))
        for some in (range(40), range(40, 60))
    ]
    found = living(left, living_pods(Listed(by_namespace={NS: Complete(data=pods)}, elsewhere=DENIED)))
    assert [len(one.instances) for one in found] == [40, 10]
    assert pods.walks == 1


@pytest.mark.parametrize("unknown", [True, False])
def test_an_instance_that_is_not_known_to_be_gone_is_kept(world: Two, unknown: bool) -> None:
    """Its pods may not be listed, or it names no pod."""
    world.label(PAY)
    world.cluster.ended.add("uid-of-rating-1")
    if unknown:
        world.cluster.unknown[("pods", NS)] = DENIED
    else:
        for one in list(world.registry.held.values()):
            kept = {name: value for name, value in one.metadata.items() if name != "eurekube.pod"}
            world.registry.held[one.key] = changed(one, metadata=kept)
    world.passes(20, TWO)
    assert world.stands("pay")


def test_the_instances_of_a_deleted_syncer_are_not_kept(world: Two) -> None:
    """The syncer waits for an installation, or for a person who removes the finalizer."""
    world.label(PAY)
    world.cluster.delete(PAY)
    world.passes(12, ONE, TWO)
    assert not world.stands("pay")
    assert world.cluster.syncers[PAY].finalizers == (CLEANUP_FINALIZER,)
    assert world.not_served() == []


def test_another_names_are_left_alone(world: Two) -> None:
    """A namespace shows whose they are."""
    scope = Scope(namespaces=frozenset({"elsewhere"}), selector=TWO.selector)
    world.label(PAY)
    world.passes(11, scope)
    assert not world.stands("pay")


def test_a_class_that_nobody_has_is_reported_at_once() -> None:
    """Its instances have the mark of the old class, so every pass renews them as before."""
    world = Two()
    for ref in (PAY, CART):
        world.label(ref)
    world.passes(1, Scope())
    world.cluster.syncers[PAY] = with_class(world.cluster.syncers[PAY], "nope")
    world.passes(20, Scope())
    assert world.stands("pay")
    assert world.said(Scope()) == [TOLD]
    assert world.not_served() == [PAY]
    assert sum(call.startswith("renew PAY") for call in world.calls) == 40
    edge = Scope(syncer_class="nope")
    world.passes(1, edge, Scope())
    assert (world.said(edge), world.said(Scope())) == ([], [])


def with_class(one: SyncerObject, name: str) -> SyncerObject:
    """The syncer with this class."""
    return replace(one, spec={**one.spec, "syncerClass": name})


@pytest.mark.parametrize("working", [True, False], ids=["that is at work", "that has nothing yet"])
def test_another_owners_installation_takes_it_over(world: Two, working: bool) -> None:
    """Callers find it all the time, and twice while the old leases last."""
    if working:
        world.label(CART, team="two")
        world.passes(1, TWO, owners=("next",))
    world.label(PAY, team="three")
    three = Scope(selector=parse_selector("team in (two,three)" if working else "team=three"))
    for _ in range(40):
        world.passes(0.5, ONE, three, owners=("prod", "next"))
        assert world.stands("pay")
    owners = {one.metadata.get(OF_OWNER) for one in world.registry.held.values() if one.key.app == "PAY"}
    assert owners == {"next"}
    assert (world.said(ONE), world.said(three, "next")) == ([], [])


def test_an_event_that_is_refused_is_reported(world: Two) -> None:
    """The instance is renewed all the same."""
    world.label(PAY)
    world.cluster.refuse["record_event"] = ClusterUnavailable("503")
    world.later(170)
    world.registry.renew(foreign().key)
    world.scope = TWO
    report = world.run()
    assert sentences(report) == [TOLD, "Kubernetes: 503"]
    assert any(call.startswith("renew PAY") for call in world.wire.calls)
    world.cluster.refuse.clear()
    world.passes(10, TWO)
    assert world.not_served() == [PAY]


def test_no_event_is_written_where_another_cluster_may_answer(world: Two) -> None:
    """A syncer of that name is not ours there."""
    world.label(PAY)
    world.passes(2, TWO)
    world.cluster.remembered = Complete(data=CLUSTER)
    world.cluster.uid = DENIED
    world.passes(10, TWO)
    assert world.stands("pay")
    assert world.not_served() == []
    assert service().namespace == NS
