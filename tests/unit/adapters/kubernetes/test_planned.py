"""Lists of a living cluster in which some of our objects are as they would be after an apply."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.adapters.kubernetes import calls
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.planned import PlannedConnection
from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.manifests.planned import PlannedObject
from eurekube_sync.model.errors import ClusterError
from eurekube_sync.model.kubernetes import SyncerObject
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.adapters.kubernetes.world import SYNCERS, Half, World, answer


def planned(name: str, namespace: str = "shop", **spec: Any) -> PlannedObject:
    return PlannedObject(
        kind="EurekaSyncer",
        namespace=namespace,
        name=name,
        labels={"team": "a"},
        annotations={"note": "b"},
        spec={"mode": "pod", "selector": {"app": name}, **spec},
    )


@pytest.fixture
def world() -> World:
    return World()


def cluster_of(world: World, *things: PlannedObject) -> KubernetesCluster:
    connection = PlannedConnection(world.connection, things, world.clock)
    return KubernetesCluster(connection, clock=world.clock, random=Half())


def data_of(source: Source[tuple[SyncerObject, ...]]) -> tuple[SyncerObject, ...]:
    assert isinstance(source, Complete)
    return source.data


def names(listed: Listed[SyncerObject]) -> list[str]:
    found: list[str] = []
    for source in listed.by_namespace.values():
        found += [str(syncer.ref) for syncer in data_of(source)]
    return sorted(found)


def test_an_existing_syncer_keeps_what_the_server_gave_it(world: World) -> None:
    """Its UID, age and deletion stay; spec, labels and annotations are the planned ones, and the
    generation is the next one."""
    world.make_syncer(labels={"old": "1"}, finalizers=["eurekube.io/cleanup"])
    world.server.call("DELETE", f"{SYNCERS}/rating")
    before = world.read()
    assert before.deleted is not None
    thing = planned("rating", limit=1)
    (now,) = data_of(cluster_of(world, thing).list_syncers(None).of("shop"))
    assert now == replace(
        before,
        spec=thing.spec,
        labels={"team": "a"},
        annotations={"note": "b"},
        generation=before.generation + 1,
    )


def test_a_syncer_as_it_stands_keeps_its_generation(world: World) -> None:
    """Only another spec makes a new one."""
    before = world.make_syncer()
    same = replace(planned("rating"), spec=before.spec)
    (now,) = data_of(cluster_of(world, same).list_syncers(None).of("shop"))
    assert now.generation == before.generation


def test_a_new_syncer_is_one_that_was_just_made(world: World) -> None:
    """Also in a namespace that has none, and in a list of one namespace."""
    cluster = cluster_of(world, planned("one"), planned("two", "other"))
    assert names(cluster.list_syncers(None)) == ["other/two", "shop/one"]
    assert names(cluster.list_syncers(["other", "none"])) == ["other/two"]
    first, second = names(cluster.list_syncers(["shop"])), names(cluster.list_syncers(["shop"]))
    assert first == second == ["shop/one"]
    (new,) = data_of(cluster.list_syncers(None).of("shop"))
    assert (new.created, new.deleted, new.status, new.finalizers, new.generation) == (
        int(world.clock.now()),
        None,
        None,
        (),
        1,
    )
    assert len(new.uid) == 36


def test_each_page_is_changed_and_the_last_has_the_new_ones(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None comes twice."""
    monkeypatch.setattr(calls, "PAGE", 2)
    for name in "abcde":
        world.make_syncer(name)
    cluster = cluster_of(world, planned("c", limit=1), planned("z"))
    found = data_of(cluster.list_syncers(None).of("shop"))
    assert [syncer.name for syncer in found] == ["a", "b", "c", "d", "e", "z"]
    assert [syncer.name for syncer in found if "limit" in syncer.spec] == ["c"]


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (403, {"kind": "Status", "message": "you may not"}, Cause.DENIED),
        (404, {"kind": "Status"}, Cause.CRD_MISSING),
        (200, "<html>log in</html>", Cause.UNUSABLE),
        (200, {"kind": "EurekaSyncerList", "metadata": {}, "items": [{"metadata": 1}]}, None),
    ],
)
def test_what_could_not_be_listed_is_not_made_up(
    world: World, status: int, body: Any, cause: Cause | None
) -> None:
    """A planned object says nothing of the others."""

    def fault(request: Request, number: int) -> Response | None:
        return answer(status, body) if "eurekasyncers" in request.path else None

    world.fault = fault
    listed = cluster_of(world, planned("one")).list_syncers(None)
    assert isinstance(listed.of("shop"), Unknown)
    assert cause in (None, getattr(listed.of("shop"), "cause", None))


def test_other_lists_are_as_they_are(world: World) -> None:
    world.make_service("rating")
    cluster = cluster_of(world, planned("one"))
    assert len(data_of(cluster.list_services(None).of("shop"))) == 1  # type: ignore[arg-type]


def test_nothing_is_written(world: World) -> None:
    """The object may not exist."""
    syncer = world.make_syncer()
    before = len(world.requests)
    with pytest.raises(ClusterError, match="a plan writes nothing"):
        cluster_of(world, planned("rating")).add_finalizer(syncer)
    assert len(world.requests) == before
