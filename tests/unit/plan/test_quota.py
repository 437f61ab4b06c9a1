"""The quota of a namespace for syncers and instances: more than that waits, and nothing is removed for it."""

from __future__ import annotations

from dataclasses import replace

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.errors import RegistryUnavailable
from eurekube_sync.model.kubernetes import SyncerObject, SyncerRef
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from tests.unit.worlds.build import DENIED, NS, REF, UP, endpoint, key, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

YOUNG = SyncerRef(NS, "young")


def world_of(*numbers: int, most: int = 3, syncers: int = 500) -> FakeWorld:
    """One app with these pods, in a namespace with quotas of `most` instances and of `syncers`."""
    world = FakeWorld()
    world.brake = BrakeLimits(loss_percent=100, apps_percent=100, apps_floor=100, confirm_after=0)
    world.scope = Scope(most_instances=most, most_syncers=syncers)
    world.cluster.apply(service(), syncer())
    pods(world, *numbers)
    return world


def pods(world: FakeWorld, *numbers: int) -> None:
    """Set the pods of the older app."""
    world.cluster.apply(piece(*map(endpoint, numbers)))


def young(world: FakeWorld, *numbers: int, **spec: object) -> None:
    """Add an app of a younger syncer, with these pods."""
    world.cluster.apply(
        service("young", labels={"app": "young"}),
        syncer("young", created=2000, selector={"app": "young"}, **spec),  # type: ignore[arg-type]
        piece(*map(endpoint, numbers), service="young"),
    )


def standing(world: FakeWorld) -> set[int]:
    """The last numbers of the addresses of UP instances."""
    return {int(one.instance.ip_addr.rpartition(".")[2]) for one in world.registry.held.values() if one.status is UP}


def ready(world: FakeWorld, ref: SyncerRef = REF) -> tuple[str, str]:
    """Reason and message of the condition Ready."""
    status = world.cluster.syncers[ref].status
    found = status.condition("Ready") if status else None
    assert found is not None
    return found.reason, found.message


def test_nothing_new_is_registered_beyond_the_quota() -> None:
    """Condition and event say so, and the next pass changes nothing."""
    world = world_of(1, 2, 3, 4, 5)
    world.run()
    assert standing(world) == {1, 2, 3}
    assert ready(world) == (
        "OverQuota",
        "2 ready and not registered: namespace rating may have at most 3 instances; the operator may allow more with "
        "--max-instances-per-namespace",
    )
    assert [(event.reason, event.warning) for event in world.cluster.events] == [("OverQuota", True)]
    world.run()
    assert world.wire.writes() == []
    world.scope = Scope(most_instances=5)
    world.run()
    assert standing(world) == {1, 2, 3, 4, 5}
    assert ready(world)[0] == "InSync"


def test_a_quota_removes_nothing() -> None:
    """The quota is lowered below the number of instances. All of them are renewed, and their pods can still be
    replaced."""
    world = world_of(1, 2, 3, most=9)
    world.run()
    world.scope = Scope(most_instances=1)
    world.run()
    assert world.wire.writes() == []
    assert {1, 2, 3} == {number for number in range(9) if f"renew {key(number)}" in world.wire.calls}
    pods(world, 2, 3, 4)
    world.run()
    assert [call.split()[0] for call in world.wire.writes() if call.split()[0] in ("register", "cancel")] == [
        "register",
        "cancel",
    ]
    assert standing(world) == {2, 3, 4}


def test_the_older_syncer_comes_first_but_takes_no_place_of_a_replaced_pod() -> None:
    """The younger syncer keeps its number of instances, whoever waits. Another namespace has places of its own."""
    world = world_of(1, 2)
    young(world, 11, 12)
    world.cluster.apply(
        service(namespace="other"), syncer(namespace="other"), piece(endpoint(21), endpoint(22), namespace="other")
    )
    world.run()
    assert standing(world) == {1, 2, 11, 21, 22}
    assert ready(world)[0] == "InSync"
    assert ready(world, YOUNG)[0] == "OverQuota"
    pods(world, 1, 2, 3)
    young(world, 12)
    world.run()
    assert standing(world) == {1, 2, 12, 21, 22}
    assert ready(world)[0] == "OverQuota"
    young(world)
    world.run()
    assert standing(world) == {1, 2, 3, 21, 22}


def test_pods_that_are_not_to_be_registered_have_no_place() -> None:
    """This covers unready pods and those of a suspended syncer. An instance that could not be read again has a
    place."""
    world = world_of(1, 2)
    young(world, 11, 12, suspend=True)
    world.cluster.apply(piece(endpoint(1), endpoint(2), endpoint(3, ready=False), endpoint(4)))
    world.run()
    assert standing(world) == {1, 2, 4}
    lost = world_of(1, 2, 3, most=2)
    lost.registry.refuse_read = {key(1): RegistryUnavailable("timeout")}
    lost.run()
    assert standing(lost) == {2}
    assert ready(lost)[0] == "OverQuota" or "not be read" in ready(lost)[1]


def test_while_eureka_cannot_be_read_nothing_is_removed_either() -> None:
    """The number of instances is unknown then."""
    world = world_of(1, 2, 3, most=9)
    world.run()
    world.scope = Scope(most_instances=1)
    world.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="it did not answer")
    world.run()
    assert not [call for call in world.wire.calls if call.startswith("cancel")]
    assert standing(world) == {1, 2, 3}


def test_the_oldest_syncers_are_served() -> None:
    """Syncers of one age compare by name."""
    scope = Scope(most_syncers=2)

    def over(*syncers: SyncerObject) -> set[str]:
        sources: dict[str, Source[tuple[SyncerObject, ...]]] = {NS: Complete(data=syncers), "unread": DENIED}
        return {ref.name for ref in scope.over_quota(Listed(by_namespace=sources, elsewhere=DENIED))}

    b, a, old, oldest = (syncer(name, created=at) for name, at in (("b", 3.0), ("a", 3.0), ("old", 2.0), ("x", 1.0)))
    assert over(b, a, old, oldest) == {"a", "b"}
    assert over(b, a, old) == {"b"}
    assert over(b, a) == set()
    assert over(b, a, old, replace(oldest, deleted=9.0)) == {"b"}, "what is being deleted has no place"
    assert over(b, a, old, replace(oldest, spec={"syncerClass": "internal"})) == {"b"}, "nor has another class"


def test_registered_instances_of_a_syncer_beyond_the_quota_are_kept() -> None:
    """Its pods are not followed, and an instance is removed when its pod is gone. With a free place it is served
    again."""
    world = world_of(1)
    young(world, 11, 12)
    world.run()
    assert standing(world) == {1, 11, 12}
    world.scope = Scope(most_syncers=1)
    young(world, 12, 13)
    world.run()
    assert standing(world) == {1, 12}, "the pod of 11 is gone"
    assert ready(world, YOUNG) == (
        "OverQuota",
        "namespace rating may have at most 1 syncer, so only its oldest are served; the operator may allow more with "
        "--max-syncers-per-namespace",
    )
    assert [event.reason for event in world.cluster.events if event.syncer == YOUNG][-1] == "OverQuota"
    world.cluster.delete(REF)
    world.run()
    assert standing(world) >= {12, 13}


def test_a_command_to_paste_has_the_same_quotas() -> None:
    """The command has those that differ from the defaults."""
    assert Scope(most_syncers=7, most_instances=9).options == (
        "--max-syncers-per-namespace",
        "7",
        "--max-instances-per-namespace",
        "9",
    )
    assert Scope().options == ()
