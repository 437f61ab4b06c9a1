"""A syncer that leaves every installation's scope: its instances are not removed, and expire.

These are whole passes of two installations with one owner.
"""

from __future__ import annotations

import pytest

from eurekube_sync.cli.output.report import sentences
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.selector import parse_selector
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.kubernetes import SyncerObject, SyncerRef
from eurekube_sync.model.ownership import OWNER as OF_OWNER
from eurekube_sync.model.struct import replace
from tests.unit.controller.test_reconcile import add_app
from tests.unit.worlds.build import NS, foreign
from tests.unit.worlds.fakes import FakeWorld

ONE, TWO = Scope(selector=parse_selector("team=one")), Scope(selector=parse_selector("team=two"))
PAY, CART = SyncerRef(NS, "pay"), SyncerRef(NS, "cart")


class Two(FakeWorld):
    """Two installations by team. `pay` belongs to the first."""

    def __init__(self) -> None:
        super().__init__()
        self.registry.put(foreign())
        for number, (name, team) in enumerate((("pay", "one"), ("cart", "two")), 1):
            add_app(self, name, number)
            self.label(SyncerRef(NS, name), team=team)
        self.reports: dict[str, PassReport] = {}
        self.calls: list[str] = []

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
                self.reports[f"{self.owner} {scope}"] = self.run()
                self.calls += self.wire.calls
            self.registry.evict()

    def said(self, scope: Scope, owner: str = "prod") -> list[str]:
        """The messages of this installation's last pass."""
        return sentences(self.reports[f"{owner} {scope}"])

    def stands(self, name: str) -> bool:
        """Whether an instance of the app is registered."""
        return any(instance.key.app == name.upper() for instance in self.registry.held.values())


@pytest.fixture
def world() -> Two:
    """A world in which both apps are served."""
    world = Two()
    world.passes(2, ONE, TWO)
    return world


def test_while_both_run_neither_renews_for_the_other(world: Two) -> None:
    """There is no message either."""
    world.passes(30, ONE, TWO)
    renewals = [call for call in world.calls if call.startswith("renew") and "dc:" not in call]
    assert len(renewals) == 60 * 2
    assert (world.said(ONE), world.said(TWO)) == ([], [])


def test_the_instances_of_a_syncer_in_no_scope_are_not_touched_and_expire(world: Two) -> None:
    """No installation knows the scopes of the others, so none of them removes the instances or
    writes to the syncer."""
    world.label(PAY, team="nobody")
    world.passes(4, ONE, TWO)
    assert world.stands("pay")
    world.passes(8, ONE, TWO)
    assert (world.stands("pay"), world.stands("cart")) == (False, True)
    touched = [call for call in world.calls if "pay" in call.lower()]
    assert touched == []


def test_a_syncer_that_comes_back_into_a_scope_in_time_loses_nothing(world: Two) -> None:
    """A lease lives for twice its duration after the last renewal."""
    world.label(PAY, team="nobody")
    world.passes(4, ONE, TWO)
    world.label(PAY, team="one")
    world.passes(12, ONE, TWO)
    assert world.stands("pay")
    assert not [call for call in world.calls if call.startswith(("register", "cancel"))]


def test_of_a_changed_class_the_old_installation_goes_on_renewing() -> None:
    """Its class is in the instances, and only the installation of the new class writes that one
    there."""
    world = Two()
    for ref in (PAY, CART):
        world.label(ref)
    world.passes(1, Scope())
    world.cluster.syncers[PAY] = with_class(world.cluster.syncers[PAY], "nope")
    world.passes(20, Scope())
    assert world.stands("pay")
    assert world.said(Scope()) == []
    edge = Scope(syncer_class="nope")
    world.passes(1, edge, Scope())
    assert (world.said(edge), world.said(Scope())) == ([], [])


def with_class(syncer: SyncerObject, name: str) -> SyncerObject:
    """The syncer with this class."""
    return replace(syncer, spec={**syncer.spec, "syncerClass": name})


def test_the_deletion_of_a_syncer_in_no_scope_waits(world: Two) -> None:
    """It waits for an installation, or for a person who removes the finalizer."""
    world.label(PAY)
    world.cluster.delete(PAY)
    world.passes(12, ONE, TWO)
    assert not world.stands("pay")
    assert world.cluster.syncers[PAY].finalizers == (CLEANUP_FINALIZER,)


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
    owners = {
        stored.metadata.get(OF_OWNER)
        for stored in world.registry.held.values()
        if stored.key.app == "PAY"
    }
    assert owners == {"next"}
    assert world.said(three, "next") == []
