"""Passes without a change: they write nothing to Kubernetes, even during a problem that lasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.brake.approval import APPROVE_ANNOTATION
from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.desired.scope import Policy, Scope
from eurekube_sync.desired.spec import CLEANUP_FINALIZER, DRAIN_ANNOTATION
from eurekube_sync.model.errors import ClusterDenied, RegistryRejected, RegistryUnavailable
from eurekube_sync.model.eureka import InstanceStatus, Port
from eurekube_sync.model.kubernetes import ServicePort, SyncerRef
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import LastSeen, OwnWrites
from tests.unit.worlds.build import (
    DENIED,
    NS,
    REF,
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

UNREADABLE = Unknown(cause=Cause.UNAVAILABLE, message="it did not answer")
OTHERS = "finalizers.example/other"
PODS = range(1, 7)
Step: TypeAlias = Callable[[FakeWorld], object]
Refusal: TypeAlias = RegistryRejected | RegistryUnavailable


def pods(world: FakeWorld, *ready: int, not_ready: tuple[int, ...] = ()) -> None:
    world.cluster.apply(
        piece(*(endpoint(n) for n in ready), *(endpoint(n, ready=False) for n in not_ready))
    )


def another(world: FakeWorld, name: str = "other") -> None:
    """A second app, so that the first app's instances are not all that we own."""
    labels = {"app": name}
    world.cluster.apply(
        syncer(name, selector=labels),
        service(name, labels=labels),
        piece(endpoint(50), endpoint(51), service=name),
    )


def refuse(world: FakeWorld, *numbers: int, error: type[Refusal] = RegistryRejected) -> None:
    for number in numbers:
        world.registry.refuse_register[key(number)] = error(f"no {number}")


def deleted(world: FakeWorld) -> None:
    world.cluster.syncers[REF] = replace(
        world.cluster.syncers[REF], finalizers=(CLEANUP_FINALIZER, OTHERS)
    )
    world.cluster.delete(REF)


def respec(**spec: Any) -> Step:
    """Replace the syncer's spec."""
    return lambda world: world.cluster.apply(syncer(**spec))


def strangers(world: FakeWorld) -> None:
    for number in (7, 8, 9):
        world.registry.put(changed(stored(instance(number)), metadata={}))
    pods(world, *PODS, 7, 8, 9)


def younger(world: FakeWorld) -> None:
    for name in ("young", "younger", "youngest"):
        world.cluster.apply(syncer(name, created=2000))


def not_all_read(world: FakeWorld) -> None:
    pods(world, 3, 4, 5)
    for number in (1, 2, 6):
        world.registry.refuse_read[key(number)] = RegistryUnavailable(f"no answer about {number}")


def themselves(world: FakeWorld) -> None:
    for number in (3, 1, 2):
        own = foreign(f"pod-{number}")
        world.registry.put(
            changed(
                own, host_name=f"10.0.0.{number}", ip_addr=f"10.0.0.{number}", port=Port(8080, True)
            )
        )


def ambiguous(world: FakeWorld) -> None:
    two = [ServicePort(name="a", port=1, target=1), ServicePort(name="b", port=2, target=2)]
    world.cluster.apply(service("rating", *two))


def out_of_service(world: FakeWorld) -> None:
    for number in (5, 2):
        world.registry.override(key(number), InstanceStatus.OUT_OF_SERVICE)


def upsert_only(world: FakeWorld) -> None:
    world.scope = Scope(policy=Policy.UPSERT_ONLY)


def in_turn(*steps: Step) -> Step:
    """Make these steps in order, with a pass and a minute after each but the last."""

    def all_of_them(world: FakeWorld) -> None:
        for number, step in enumerate(steps, 1):
            step(world)
            if number < len(steps):
                world.run()
                world.later(60)

    return all_of_them


def eureka_lost_one_and_refuses_it(world: FakeWorld) -> None:
    del world.registry.held[key(1)]
    refuse(world, 1)


def newcomers(error: type[Refusal]) -> Step:
    """Three new pods whose registrations Eureka refuses or does not answer."""

    def come(world: FakeWorld) -> None:
        refuse(world, 8, 7, 9, error=error)
        pods(world, *PODS, 7, 8, 9)

    return come


def share_of_others(world: FakeWorld) -> None:
    world.registry.put(foreign("a"), foreign("b"))
    respec(limit={"share": "50%"})(world)


def drained(world: FakeWorld) -> None:
    world.cluster.apply(replace(service(), annotations={DRAIN_ANNOTATION: "true"}))


def drains_unread(world: FakeWorld) -> None:
    world.pod_drains = True
    world.cluster.unknown["pods", NS] = DENIED


def gate_denied(world: FakeWorld) -> None:
    world.cluster.refuse["open_gate"] = ClusterDenied("403: grant patch on pods/status")
    respec(readinessGate=True)(world)


def cancels_refused(world: FakeWorld) -> None:
    deleted(world)
    world.registry.refuse = {key(number): RegistryRejected("403: no") for number in (3, 1, 2)}


def deleted_unread(world: FakeWorld) -> None:
    deleted(world)
    world.registry.unreadable = UNREADABLE


def deleted_with_a_peer_away(world: FakeWorld) -> None:
    deleted(world)
    world.registry.away = ("http://two",)


def annotated(world: FakeWorld) -> None:
    annotations = {APPROVE_ANNOTATION: "tomorrow"}
    world.cluster.syncers[REF] = replace(world.cluster.syncers[REF], annotations=annotations)


SITUATIONS: dict[str, Step] = {
    "in sync": lambda world: None,
    "some are not ready": lambda world: pods(world, 1, 2, 3, not_ready=(4, 5)),
    "one endpoint is left": lambda world: pods(world, 4),
    "registrations are refused": newcomers(RegistryRejected),
    "registrations get no answer": newcomers(RegistryUnavailable),
    "strangers stand under our ids": strangers,
    "younger syncers want the same": younger,
    "younger syncers want what one that cannot be served holds": in_turn(
        respec(port="nope"), younger
    ),
    "some cannot be read again": not_all_read,
    "pods register themselves": themselves,
    "two ports": ambiguous,
    "no Service": lambda world: world.cluster.services.clear(),
    "a namespace that is not allowed": respec(selector={"app": "rating", "namespace": "else"}),
    "an invalid spec": respec(limit="many"),
    "Services cannot be listed": lambda world: world.cluster.unknown.update(
        {("services", NS): DENIED}
    ),
    "slices cannot be listed": lambda world: world.cluster.unknown.update(
        {("slices", NS): UNREADABLE}
    ),
    "Eureka cannot be read": lambda world: setattr(world.registry, "unreadable", UNREADABLE),
    "the cluster does not say who it is": lambda world: setattr(world.cluster, "uid", UNREADABLE),
    "too much would go": in_turn(another, lambda world: pods(world, not_ready=(1, 2))),
    "all slices are gone": lambda world: world.cluster.slices.clear(),
    "suspended": respec(suspend=True),
    "suspended, and Eureka lost one": in_turn(respec(suspend=True), eureka_lost_one_and_refuses_it),
    "a limit": respec(limit=2),
    "a share": share_of_others,
    "detached": in_turn(another, respec(limit=0)),
    "drained": in_turn(another, drained),
    "drains cannot be read": drains_unread,
    "out of service by hand": out_of_service,
    "a policy that cancels nothing": in_turn(upsert_only, lambda world: pods(world, 1, 2, 3)),
    "a gate that may not be opened": gate_denied,
    "a deletion that another finalizer keeps": deleted,
    "a deletion while Eureka cannot be read": deleted_unread,
    "a deletion whose cancels are refused": cancels_refused,
    "a deletion while a peer is away": deleted_with_a_peer_away,
    "an annotation that releases nothing": annotated,
}


@pytest.mark.parametrize("daemon", [True, False], ids=["daemon", "processes"])
@pytest.mark.parametrize("refused", [PODS, range(1, 4)], ids=["all", "some"])
def test_a_removal_that_was_confirmed_and_failed_does_not_wait_again(
    refused: range, daemon: bool
) -> None:
    """Each pass tries it again, by its memory or by the status. `RemovalHeld` does not change. A
    process that reads the confirmation in the status uses it for 620 s."""
    world = FakeWorld()
    world.brake = BrakeLimits(loss_floor=30)
    if daemon:
        world.sightings = Sightings()
    world.cluster.apply(service(), syncer())
    another(world)
    pods(world, *PODS)
    world.run()
    world.later(60)
    pods(world)
    world.registry.refuse = {key(number): RegistryRejected("403: no") for number in refused}
    assert world.run().held
    for number in range(18):
        world.later(30)
        assert world.run().held is None
        assert {call for call in world.wire.calls if call.startswith("cancel")} >= {
            f"cancel {key(n)}" for n in refused
        }
        written = [
            call for call in world.wire.calls if call.startswith(("write_status", "record_event"))
        ]
        assert written == [] or number == 0
    world.registry.refuse = {}
    world.later(30)
    assert world.run().held is None
    assert not any(key(number) in world.registry.held for number in PODS)


def shuffle(world: FakeWorld) -> None:
    """Reverse the order of every list."""
    world.registry.held = dict(reversed(world.registry.held.items()))
    world.cluster.syncers = dict(reversed(world.cluster.syncers.items()))
    world.cluster.services.reverse()
    world.cluster.slices = [
        replace(one, endpoints=one.endpoints[::-1]) for one in reversed(world.cluster.slices)
    ]


@pytest.mark.parametrize("daemon", [True, False], ids=["daemon", "processes"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_pass_that_finds_nothing_new_writes_nothing_to_kubernetes(
    situation: str, daemon: bool
) -> None:
    """For an hour, no pass writes a status, an event or a finalizer. This does not depend on the
    leases that are due, or on the order of the lists."""
    world = FakeWorld()
    world.brake = BrakeLimits(loss_floor=3)
    if daemon:
        world.renewals = RenewalLedger(period=30, slack=5)
        world.own_writes = OwnWrites(seconds=45)
        world.sightings, world.last_seen = Sightings(), LastSeen()
    world.cluster.apply(service(), syncer())
    pods(world, *PODS)
    world.run()
    world.later(60)
    SITUATIONS[situation](world)
    for seconds in (30, 30, 30, 600, 30, 30):
        world.run()
        world.later(seconds)
    before = {ref: found.status for ref, found in world.cluster.syncers.items()}
    for seconds in (7, 23, 30, 31, 100, 600, 3000):
        shuffle(world)
        world.run()
        world.later(seconds)
        telling = ("write_status", "record_event", "add_finalizer", "remove_finalizer")
        assert [call for call in world.wire.calls if call.startswith(telling)] == []
    assert {ref: found.status for ref, found in world.cluster.syncers.items()} == before
    assert SyncerRef(NS, "rating") in before or "deletion" in situation
