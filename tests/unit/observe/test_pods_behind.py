"""The pods that are listed to see which removals are of dead pods."""

from __future__ import annotations

from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Cancel, Grounds
from eurekube_sync.model.ownership import POD
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.kubernetes import pods_behind
from tests.unit.worlds.build import NS, REF, UP, instance, key, observed, stored, view
from tests.unit.worlds.fakes import FakeWorld

PROOF = Complete(data=()).proof


def test_only_namespaces_that_the_syncer_may_select_are_listed() -> None:
    """A mark in Eureka, which anybody can write, leads to no namespace of somebody else."""
    world = FakeWorld()
    elsewhere = instance(2)
    elsewhere = replace(elsewhere, metadata={**elsewhere.metadata, POD: "bank/vault/uid-of-vault"})
    held = observed(stored(instance(1)), stored(elsewhere))
    removals = []
    for found in held.ours:
        removals.append(
            Cancel(key=found, syncer=REF, why="gone", grounds=Grounds.ABSENCE, proof=PROOF, was=UP)
        )
    assert {removal.key for removal in removals} == {key(1), key(2)}
    pods = pods_behind(world.cluster, view([]), removals, held, Scope())
    assert set(pods) == {NS}
