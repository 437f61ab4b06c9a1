"""`orphans` lists slices that an import made, and that are of no import any more."""

from __future__ import annotations

import pytest

from eurekube_sync.cli.output.answers import orphans_data
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.model.struct import replace
from eurekube_sync.owner.orphans import Orphans, look_for_orphans
from tests.unit.worlds.build import DENIED, NS, endpoint, piece, service, syncer
from tests.unit.worlds.imports import SHOP, ImportWorld, dc, import_object

OTHERS = [dc(number, app="other") for number in range(100, 103)]


@pytest.fixture
def world() -> ImportWorld:
    """An import with a slice, and a syncer, without which the owner would be unknown in Eureka."""
    there = ImportWorld(import_object())
    there.cluster.apply(syncer(), service(), piece(endpoint(1)))
    there.registry.put(*OTHERS, dc(1))
    there.run()
    return there


def orphans(there: ImportWorld) -> Orphans:
    return look_for_orphans(there.world, there.settings)


def test_a_slice_without_its_owner_is_listed(world: ImportWorld) -> None:
    """Nothing updates it, and nothing collects it."""
    assert orphans(world).slices == ()
    assert orphans(world).summary == "no orphans"
    (mine,) = [each for each in world.cluster.slices if each.namespace == SHOP]
    world.cluster.apply(replace(mine, owner_uid=""))
    found = orphans(world)
    assert found.slices == (
        f"EndpointSlice shop/{mine.name} is of no EurekaImport: kubectl delete endpointslice "
        f"{mine.name} -n shop",
    )
    assert found.summary == "no orphans; 1 slice of no import"
    assert orphans_data(found)["slices"] == list(found.slices)
    assert found.code(detailed=True) is ExitCode.CHANGES_PENDING
    assert found.code(detailed=False) is ExitCode.OK


def test_nothing_is_said_of_what_could_not_be_read(world: ImportWorld) -> None:
    """Or where imports are off."""
    (mine,) = [each for each in world.cluster.slices if each.namespace == SHOP]
    world.cluster.apply(replace(mine, owner_uid=""))
    world.cluster.unknown["slices", SHOP] = DENIED
    assert orphans(world).slices == ()
    world.cluster.unknown.clear()
    world.imports.unknown = DENIED
    assert orphans(world).slices == ()
    world.imports.unknown = None
    world.scope = replace(world.scope, namespaces=frozenset({NS}))
    assert orphans(world).slices == ()
    world.scope = replace(world.scope, namespaces=None)
    world.networks = ()
    assert orphans(world).slices == ()
