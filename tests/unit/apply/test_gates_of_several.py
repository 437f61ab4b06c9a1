"""The readiness gate of a pod that two syncers serve: it opens when neither syncer has to wait."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.desired.spec import CLEANUP_FINALIZER, DRAIN_ANNOTATION
from eurekube_sync.model.errors import ClusterUnavailable, RegistryUnavailable
from eurekube_sync.model.eureka import InstanceStatus, Port
from eurekube_sync.model.kubernetes import PodReadiness, SyncerRef
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import NS, changed, endpoint, foreign, key, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

UNREADABLE = Unknown(cause=Cause.UNAVAILABLE, message="it did not answer")
SPECS: dict[str, dict[str, Any]] = {"OverLimit": {"limit": 0}, "Suspended": {"suspend": True}}
ON_PURPOSE = ["OverLimit", "Suspended", "Drained", "SyncerDeleted", "RegistersItself"]
WAITING = ["refused", "unread"]
APPS = ("first", "second")


class Shared(FakeWorld):
    """One pod behind the Services of two syncers. Each syncer has its own app."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__()
        self.brake = BrakeLimits(loss_percent=100, apps_floor=10)
        for app, state in zip(APPS, (first, second), strict=True):
            drained = {DRAIN_ANNOTATION: "true"} if state == "Drained" else {}
            self.cluster.apply(
                syncer(
                    app,
                    selector={"app": app},
                    readinessGate=True,
                    finalizers=(CLEANUP_FINALIZER,),
                    **SPECS.get(state, {}),
                ),
                replace(service(app, labels={"app": app}), annotations=drained),
                piece(endpoint(1, ready=False), service=app),
            )
            if state == "SyncerDeleted":
                self.cluster.delete(SyncerRef(NS, app))
            elif state == "RegistersItself":
                own = foreign(f"itself-{app}", app=app.upper())
                self.registry.put(
                    changed(own, host_name="10.0.0.1", ip_addr="10.0.0.1", port=Port(8080, True))
                )
            elif state == "refused":
                self.registry.refuse_register[key(app=app)] = RegistryUnavailable("no")
            elif state == "unread":
                self.registry.refuse_read[key(app=app)] = RegistryUnavailable("no")
        uid = "uid-of-rating-1"
        self.cluster.readiness[uid] = PodReadiness(
            namespace=NS, name="rating-1", uid=uid, ready=True, registered=False
        )

    def opened(self) -> tuple[str, str] | None:
        """Return reason and message of the gate if it is open."""
        return self.cluster.opened.get("rating-1")


def told(*apps: str) -> tuple[str, str]:
    """The reason and the message of a gate that waited for these apps."""
    return (
        "Registered",
        f"{' and '.join(str(key(app=app)) for app in apps)} {'are' if len(apps) > 1 else 'is'} UP "
        "in Eureka",
    )


@pytest.mark.parametrize("second", ["Registered", *ON_PURPOSE, *WAITING])
@pytest.mark.parametrize("first", ["Registered", *ON_PURPOSE, *WAITING])
def test_a_gate_opens_when_neither_syncer_waits(first: str, second: str) -> None:
    """Each syncer has the pod UP in Eureka, or leaves it out on purpose. A refused registration or
    a failed read keeps the gate closed."""
    world = Shared(first, second)
    world.run()
    registered = [
        app for app, state in zip(APPS, (first, second), strict=True) if state == "Registered"
    ]
    opened = world.opened()
    if {first, second} & set(WAITING):
        assert opened is None
    elif registered:
        assert opened == told(*registered)
    else:
        assert opened is not None
        assert opened[0] == first
    world.registry.refuse_register.clear()
    world.registry.refuse_read.clear()
    world.run()
    assert world.opened() is not None


@pytest.mark.parametrize("purpose", ["OverLimit", "Suspended", "Drained", "SyncerDeleted"])
@pytest.mark.parametrize("order", [1, -1])
def test_while_eureka_cannot_be_read_one_waiting_syncer_keeps_the_gate_shut(
    purpose: str, order: int
) -> None:
    """The other syncer does not wait, but cannot open the gate alone before the five minutes are
    over."""
    world = Shared(*(purpose, "Registered")[::order])
    world.registry.unreadable = UNREADABLE
    world.run()
    world.later(299)
    world.run()
    assert world.opened() is None
    world.later(1)
    world.run()
    assert world.opened() is not None


def test_five_minutes_without_eureka_have_to_be_over_for_both() -> None:
    """The second syncer is created later, so its five minutes end later."""
    world = Shared("Registered", "Registered")
    late = world.cluster.syncers.pop(SyncerRef(NS, "second"))
    world.registry.refuse_register[key(app="first")] = RegistryUnavailable("no")
    world.registry.unreadable = UNREADABLE
    world.cluster.refuse["open_gate"] = ClusterUnavailable("not yet")
    world.run()
    world.cluster.refuse.clear()
    world.later(200)
    world.cluster.apply(late)
    world.run()
    world.later(200)
    world.run()
    assert world.opened() is None
    world.later(100)
    world.run()
    assert world.opened() is not None


def test_an_instance_that_is_down_in_eureka_opens_no_gate() -> None:
    """A person set it DOWN by an override, so callers do not find it."""
    world = Shared("Registered", "refused")
    world.run()
    world.registry.refuse_register.clear()
    world.registry.override(key(app="first"), InstanceStatus.DOWN)
    world.run()
    assert world.opened() is None


@pytest.mark.parametrize("mark", ["eurekube.owner", "eurekube.cluster"])
def test_an_instance_of_another_owner_opens_no_gate(mark: str) -> None:
    """The instance has our id and our pod's name, but another owner or cluster."""
    world = Shared("Registered", "Registered")
    world.run()
    ours = world.registry.held[key(app="first")]
    world.cluster.opened.clear()
    uid = "uid-of-rating-1"
    world.cluster.readiness[uid] = replace(world.cluster.readiness[uid], registered=False)
    world.registry.put(changed(ours, metadata={**ours.metadata, mark: "another"}))
    world.run()
    assert world.opened() is None


def test_five_minutes_do_not_count_in_which_the_cluster_could_not_be_read() -> None:
    """The condition was already Unknown, but for another reason. The wait for Eureka starts now."""
    world = Shared("Registered", "OverLimit")
    world.registry.refuse_register[key(app="first")] = RegistryUnavailable("no")
    world.run()
    world.cluster.unknown["services", NS] = UNREADABLE
    world.run()
    world.later(400)
    world.cluster.unknown.clear()
    world.registry.unreadable = UNREADABLE
    world.run()
    assert world.opened() is None


def test_a_pod_whose_containers_fail_again_waits_though_eureka_still_has_it_up() -> None:
    """Its gate could not be opened in time, and Eureka refuses to register it as DOWN."""
    world = Shared("Registered", "OverLimit")
    world.cluster.refuse["open_gate"] = ClusterUnavailable("no")
    world.run()
    world.cluster.refuse.clear()
    uid = "uid-of-rating-1"
    world.cluster.readiness[uid] = replace(world.cluster.readiness[uid], ready=False)
    world.registry.refuse_register[key(app="first")] = RegistryUnavailable("no")
    world.run()
    assert world.registry.held[key(app="first")].status is InstanceStatus.UP
    assert world.opened() is None


def test_a_pass_that_is_over_opens_no_gate_that_has_nothing_to_wait_for() -> None:
    """The report says so, and the next pass opens the gate."""
    world = Shared("OverLimit", "Suspended")
    world.wire.then = lambda: (
        world.later(200) if world.wire.calls[-1].startswith("write_status") else None
    )
    report = world.run()
    assert "open_gate" not in world.wire.verbs()
    assert any("was not opened" in str(error) for error in report.cluster_errors)
    world.wire.then = lambda: None
    world.run()
    assert world.opened() is not None
