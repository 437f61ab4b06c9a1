"""The undo of a deletion of many syncers that the brake holds, as docs/brake.md says it: abandon, one
pass, and the syncers again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import NS, endpoint, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

PAGE = (Path(__file__).parents[3] / "docs" / "brake.md").read_text()
APPS = [f"app{number}" for number in range(16)]
REFS = [SyncerRef(NS, app) for app in APPS]


def _apply(world: FakeWorld, app: str) -> None:
    selector = {"app": app}
    world.cluster.apply(syncer(app, selector=selector, finalizers=(CLEANUP_FINALIZER,)))


def _deleted(number: int) -> FakeWorld:
    """Sixteen apps, whose first syncers are deleted, and their instances held."""
    world = FakeWorld()
    for place, app in enumerate(APPS, start=1):
        _apply(world, app)
        slice_ = replace(piece(endpoint(place), service=app), name=f"{app}-1")
        world.cluster.apply(service(app, labels={"app": app}))
        world.cluster.slices.append(slice_)
    world.run()
    for ref in REFS[:number]:
        world.cluster.delete(ref)
    world.later(30)
    report = world.run()
    assert report.held is not None
    assert len(report.held.removals) == number
    return world


def _annotation() -> dict[str, str]:
    """The annotation of the page's command."""
    section = PAGE.split("## Undoing a deletion", 1)[1].split("\n## ", 1)[0]
    match = re.search(
        r"kubectl annotate esync \S.* (eurekube\.io/\S+)=(\S+)$", section, re.MULTILINE
    )
    assert match is not None
    return {match[1]: match[2]}


@pytest.mark.parametrize("passes_between", [1, 3])
def test_abandoned_syncers_that_are_created_again_keep_their_instances(
    passes_between: int,
) -> None:
    """Nothing of them is cancelled in between, even if the syncers come back late."""
    world = _deleted(12)
    before = dict(world.statuses())
    for ref in REFS[:12]:
        world.cluster.syncers[ref] = replace(world.cluster.syncers[ref], annotations=_annotation())
    for _ in range(passes_between):
        world.later(60)
        world.run()
    assert set(world.cluster.syncers) == set(REFS[12:])
    assert world.statuses() == before
    for app in APPS[:12]:
        _apply(world, app)
    world.later(60)
    assert world.run().held is None
    assert world.statuses() == before
