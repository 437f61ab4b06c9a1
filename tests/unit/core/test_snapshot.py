"""What a snapshot holds after which pass, and which texts are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from eurekube_sync.errors import ConfigurationError, RegistryRejected
from eurekube_sync.model import InstanceKey
from eurekube_sync.one_pass import PassReport
from eurekube_sync.ownership import CLUSTER as CLUSTER_MARK
from eurekube_sync.scope import Scope
from eurekube_sync.snapshot import Snapshot, Source, check, from_text, source_of, take, to_text, without_withdrawn

from .build import CLUSTER, DENIED, DOWN, NS, OUT, OWNER, endpoint, instance, key, stored, syncer
from .fakes import START, FakeWorld
from .test_reconcile import article, pods

SOURCE = Source(owner=OWNER, cluster=CLUSTER, namespaces=None)


def taken(report: PassReport, now: float = START) -> Snapshot | None:
    """The snapshot of a pass over everything."""
    source = source_of(report, Scope())
    return take(report, source, now) if source else None


def statuses(snapshot: Snapshot | None) -> dict[InstanceKey, str]:
    """What is in it."""
    assert snapshot is not None
    return {key: one.status.value for key, one in snapshot.instances.items()}


def some() -> Snapshot:
    """One UP, one DOWN."""
    instances = (replace(instance(1), home_page_url="http://10.0.0.1/"), instance(2, status=DOWN))
    return Snapshot(source=SOURCE, taken=int(START), instances={one.key: one for one in instances})


def test_a_good_pass_gives_what_it_registered() -> None:
    """Whole instances, as they are sent; a second pass in sync gives the same."""
    world = article()
    first, second = taken(world.run()), taken(world.run())
    assert statuses(first) == {key(1): "UP", key(2): "UP"}
    assert first == second
    assert first is not None
    assert first.instances[key(1)] == instance(1)
    assert (first.source, first.taken) == (SOURCE, START)


def test_what_a_pass_took_away_or_turned_down_is_not_up_in_it() -> None:
    """A cancelled instance is not in it; one that is not ready is DOWN in it."""
    world = article()
    world.run()
    pods(world, endpoint(1, ready=False), endpoint(3))
    snapshot = taken(world.run())
    assert statuses(snapshot) == {key(1): "DOWN", key(3): "UP"}
    assert snapshot is not None
    assert list(snapshot.up) == [key(3)]


def test_held_removals_stand() -> None:
    """What the brake held is still UP in Eureka, and so in the snapshot, although nobody wants it."""
    world = article()
    world.run()
    pods(world)
    report = world.run()
    assert report.held is not None
    assert statuses(taken(report)) == {key(1): "UP", key(2): "UP"}


def test_what_is_frozen_is_kept_as_it_stands_without_what_others_wrote() -> None:
    """No claim wants it any more, so it is taken from Eureka; others' metadata is theirs to write again."""
    world = article()
    world.cluster.apply(syncer(port="http", metadata={"colour": "blue"}))
    world.run()
    held = world.registry.held[key(1)]
    world.registry.put(replace(held, metadata={**held.metadata, "secret": "of another"}))
    world.cluster.apply(syncer(port="nowhere"))
    snapshot = taken(world.run())
    assert statuses(snapshot) == {key(1): "UP", key(2): "UP"}
    assert snapshot is not None
    assert snapshot.instances[key(1)] == instance(1, metadata={"colour": "blue"})


def test_out_of_service_is_not_brought_back() -> None:
    """A person's override is lost with the server's memory; bringing the instance back UP would undo it."""
    world = article()
    world.run()
    world.registry.override(key(1), OUT)
    assert statuses(taken(world.run())) == {key(1): "DOWN", key(2): "UP"}


@pytest.mark.parametrize("trouble", ["slices", "registry", "identity", "refused", "dry run", "cut short"])
def test_no_other_pass_gives_one(trouble: str) -> None:
    """A source that could not be read, a failed action, a pass that ended early, a dry run: no snapshot."""
    world = article()
    world.run()
    if trouble == "slices":
        world.cluster.unknown[("slices", NS)] = DENIED
    elif trouble == "registry":
        world.registry.unreadable = DENIED
    elif trouble == "identity":
        world.cluster.uid = DENIED
    elif trouble == "refused":
        world.registry.refuse[key(2)] = RegistryRejected("no")
    deadline = 0 if trouble == "cut short" else 120
    assert taken(world.run(dry_run=trouble == "dry run", deadline=deadline)) is None


def test_a_pass_that_failed_takes_its_withdrawals_out_of_the_old_one() -> None:
    """Else `keepalive` would bring back to callers what `run` has taken away."""
    world = article()
    before = taken(world.run())
    assert before is not None
    assert without_withdrawn(before, world.run().outcomes) is before, "nothing was withdrawn"
    pods(world, endpoint(2, ready=False), endpoint(3))
    world.registry.refuse[key(4)] = RegistryRejected("no")
    pods(world, endpoint(2, ready=False), endpoint(3), endpoint(4))
    report = world.run()
    assert taken(report) is None
    after = without_withdrawn(before, report.outcomes)
    assert statuses(after) == {key(2): "DOWN"}
    assert after.taken == before.taken


def test_a_renewal_that_met_a_404_takes_nothing_out() -> None:
    """Eureka lost its memory while Kubernetes did not answer: this is what the snapshot is for."""
    world = article()
    before = taken(world.run())
    assert before is not None
    world.cluster.uid = DENIED
    listed = world.registry.list_instances()
    world.registry.list_instances = lambda: listed  # type: ignore[method-assign]
    world.registry.held.clear()
    assert without_withdrawn(before, world.run().outcomes) is before


def test_the_source_names_scope_and_installation() -> None:
    """Two installations differ in it; a pass that does not know its cluster has none."""
    world = article()
    report = world.run()
    assert source_of(report, Scope(namespaces=frozenset({"b", "a"}))) == replace(SOURCE, namespaces=("a", "b"))
    assert str(replace(SOURCE, namespaces=("a", "b"))) == f"owner prod, cluster {CLUSTER}, namespaces a, b"
    assert str(SOURCE) == f"owner prod, cluster {CLUSTER}"
    part = source_of(report, Scope(syncer_class="edge"))
    assert part == replace(SOURCE, part="class edge")
    assert str(part) == f"owner prod, cluster {CLUSTER}, class edge"
    written = to_text(Snapshot(source=part, taken=1, instances={}))
    assert from_text(written).source == part
    world.cluster.uid = DENIED
    assert source_of(world.run(), Scope()) is None


@pytest.mark.parametrize("namespaces", [None, (), ("a", "b")])
def test_text_and_back(namespaces: tuple[str, ...] | None) -> None:
    """What is written is read back whole; the form is JSON with its version and time."""
    snapshot = replace(some(), source=replace(SOURCE, namespaces=namespaces))
    assert from_text(to_text(snapshot)) == snapshot
    document = json.loads(to_text(snapshot))
    assert (document["kind"], document["version"]) == ("eurekube-sync/snapshot", 1)
    assert (document["owner"], document["time"]) == (OWNER, "2027-01-15T08:00:00Z")
    assert snapshot.time == document["time"]
    assert snapshot.ownership.holds(stored(instance(1)))


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    """The text with something else in it."""
    document = json.loads(to_text(some()))
    change(document)
    return json.dumps(document).encode()


WRONG: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is cut"),
    "cut": (to_text(some())[:-20], "is cut"),
    "text": (b"hello", "is cut, or no snapshot"),
    "binary": (b"\xff\xfe", "no snapshot"),
    "bad UTF-8": (b'{"kind":"\xff","version":1}', "no snapshot"),
    "another document": (b'{"kind":"Pod","apiVersion":"v1"}', "is no snapshot of this program"),
    "another kind": (changed(lambda d: d.update(kind="other")), "is no snapshot of this program"),
    "another version": (changed(lambda d: d.update(version=2)), "version 2, and this program reads version 1"),
    "no instances": (changed(lambda d: d.pop("instances")), "damaged snapshot"),
    "no zone": (changed(lambda d: d.update(time="2027-01-15T08:00:00")), "has no zone"),
    "bad port": (changed(lambda d: d["instances"][0]["port"].update(number=70000)), "damaged snapshot"),
    "bad status": (changed(lambda d: d["instances"][0].update(status="ON")), "damaged snapshot"),
    "other status": (changed(lambda d: d["instances"][0].update(status="STARTING")), "has the status STARTING"),
    "twice": (changed(lambda d: d["instances"].append(d["instances"][0])), "in it twice"),
    "no syncer": (changed(lambda d: d["instances"][0]["metadata"].pop("eurekube.syncer")), "does not bear the marks"),
    "another's": (changed(lambda d: d["instances"][0]["metadata"].update({CLUSTER_MARK: "x"})), "not bear the marks"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_whole_snapshot_is_refused_in_a_sentence(name: str) -> None:
    """Cut, of another kind or version, damaged, or with instances that are not its owner's."""
    text, words = WRONG[name]
    with pytest.raises(ConfigurationError, match=r"^is ") as caught:
        from_text(text)
    assert words in str(caught.value)


def test_a_snapshot_of_another_or_of_another_time_is_refused() -> None:
    """Owner, cluster and age are checked; clocks may differ by minutes."""

    def refusal(owner: str = OWNER, cluster: str | None = None, later: float = 0) -> str:
        try:
            check(some(), owner=owner, cluster=cluster, now=START + later, max_age=7200)
        except ConfigurationError as error:
            return str(error)
        return ""

    assert [refusal(), refusal(cluster=CLUSTER), refusal(later=7200), refusal(later=-300)] == [""] * 4
    assert refusal(owner="test") == "the snapshot is of owner prod, and this is test"
    assert refusal(cluster="other") == f"the snapshot is of cluster {CLUSTER}, and --cluster is other"
    assert (
        refusal(later=9000)
        == "the snapshot is of 2027-01-15T08:00:00Z, 2.5 hours old, and --snapshot-max-age is 2 hours"
    )
    assert "yet to come" in refusal(later=-301)


def test_where_nothing_stands_the_snapshot_is_empty() -> None:
    """It is one all the same: nothing is to be brought back."""
    assert statuses(taken(FakeWorld().run())) == {}
