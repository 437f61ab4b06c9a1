"""Readiness gates of pods through whole passes: when each gate opens, and that none is ever
closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import DRAIN_ANNOTATION
from eurekube_sync.model.errors import (
    ClusterDenied,
    ClusterUnavailable,
    RegistryUnavailable,
    RegistryUnusable,
)
from eurekube_sync.model.eureka import InstanceStatus, Port
from eurekube_sync.model.kubernetes import Pod, PodReadiness
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import (
    DENIED,
    NS,
    REF,
    UP,
    changed,
    endpoint,
    foreign,
    key,
    piece,
    service,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld

UNREADABLE = Unknown(cause=Cause.UNAVAILABLE, message="it did not answer")


class Rollout(FakeWorld):
    """An app whose pods have our gate. As with the kubelet, a slice shows a pod as ready only if
    its gate is open."""

    def __init__(self, **spec: Any) -> None:
        super().__init__()
        self.brake = BrakeLimits(loss_percent=100, apps_floor=10)
        self.cluster.apply(service(), syncer(readinessGate=True, **spec))
        self.containers: dict[int, bool] = {}

    def pods(self, *ready: int, starting: tuple[int, ...] = ()) -> None:
        """Set the pods. The containers of those in `starting` are not ready yet."""
        self.containers = {**dict.fromkeys(ready, True), **dict.fromkeys(starting, False)}
        before = self.cluster.readiness
        self.cluster.readiness = {}
        for number, up in self.containers.items():
            uid = f"uid-of-rating-{number}"
            registered = uid in before and before[uid].registered
            self.cluster.readiness[uid] = PodReadiness(
                namespace=NS, name=f"rating-{number}", uid=uid, ready=up, registered=registered
            )
        self.kubelet()

    def kubelet(self) -> None:
        """Set each pod's Ready from its containers and its gate."""
        readiness = self.cluster.readiness
        ready = {
            n: up and readiness[f"uid-of-rating-{n}"].registered
            for n, up in self.containers.items()
        }
        self.cluster.apply(piece(*(endpoint(number, ready=up) for number, up in ready.items())))

    def opened(self) -> dict[str, str]:
        """Return the pods whose gates were opened, with the reason."""
        return {name: reason for name, (reason, _) in self.cluster.opened.items()}


def test_a_gate_opens_when_eureka_holds_its_pod_up() -> None:
    """The pod's containers decide, because the slices show the pod as not ready until then. The
    next pass changes nothing."""
    world = Rollout()
    world.pods(1, starting=(2,))
    world.run()
    assert world.statuses() == {"RATING 10.0.0.1:8080": "UP"}
    assert world.opened() == {"rating-1": "Registered"}
    read = world.wire.calls.index(
        f"read_instance {key(1)}", world.wire.calls.index(f"register {key(1)}")
    )
    assert read < world.wire.calls.index("open_gate rating-1"), (
        "by an uncached read after the registration"
    )
    world.kubelet()
    assert world.run().plan.changes == ()
    assert not [call for call in world.wire.calls if call.startswith("open_gate")]
    world.pods(1, 2)
    world.run()
    assert world.opened() == {"rating-1": "Registered", "rating-2": "Registered"}


def test_a_gate_waits_for_all_instances_of_its_pod() -> None:
    """Two slices of its Service give two numbers for the port, and callers use both."""
    world = Rollout()
    world.pods(1)
    second = key(1, port=8081)
    world.cluster.apply(piece(endpoint(1, ready=False), name="mesh", port=8081))
    world.registry.refuse_register[second] = RegistryUnavailable("no")
    world.run()
    assert world.opened() == {}
    world.registry.refuse_register.clear()
    world.run()
    assert world.opened() == {"rating-1": "Registered"}


def test_a_pod_that_could_not_be_registered_waits() -> None:
    """A refused registration opens no gate, and neither does a failed read after it."""
    world = Rollout()
    world.pods(1, 2)
    world.registry.refuse_register[key(1)] = RegistryUnavailable("no")
    world.registry.refuse_read[key(2)] = RegistryUnavailable("no")
    world.run()
    assert world.opened() == {}
    world.registry.refuse_register.clear()
    world.registry.refuse_read.clear()
    world.run()
    assert set(world.opened()) == {"rating-1", "rating-2"}


def test_an_instance_of_an_earlier_pod_opens_no_gate() -> None:
    """The new pod has the same address."""
    world = Rollout()
    world.pods(1)
    world.run()
    world.cluster.opened.clear()
    readiness = world.cluster.readiness.pop("uid-of-rating-1")
    world.cluster.readiness["uid-of-new"] = replace(
        readiness, name="new", uid="uid-of-new", registered=False
    )
    world.cluster.apply(piece(endpoint(1, pod="new", ready=False)))
    world.registry.refuse_register[key(1)] = RegistryUnavailable("no")
    world.run()
    assert world.opened() == {}
    world.registry.refuse_register.clear()
    world.run()
    assert world.opened() == {"new": "Registered"}


@pytest.mark.parametrize(
    ("spec", "reason"),
    [({"limit": 0}, "OverLimit"), ({"suspend": True}, "Suspended")],
    ids=["limit", "suspend"],
)
def test_a_pod_that_is_not_registered_on_purpose_does_not_wait(
    spec: dict[str, Any], reason: str
) -> None:
    """A rolling update must not wait for a registration that is not planned."""
    world = Rollout(**spec)
    world.pods(1)
    world.run()
    assert world.statuses() == {}
    assert world.opened() == {"rating-1": reason}


def test_a_pod_whose_registration_is_not_granted_does_not_wait() -> None:
    """A missing grant is the operator's intention. A Namespace that cannot be read shows no
    intention."""
    world = Rollout()
    world.scope = Scope(granted_only=True)
    world.pods(1)
    world.cluster.annotations[NS] = {}
    world.cluster.unknown["namespaces", NS] = DENIED
    world.run()
    assert world.opened() == {}
    world.cluster.unknown.clear()
    world.run()
    assert world.statuses() == {}
    assert world.opened() == {"rating-1": "NotGranted"}
    assert "eurekube.io/allowed-apps" in world.cluster.opened["rating-1"][1]


def test_over_a_limit_the_others_open_too() -> None:
    """One pod is registered, and two are over the limit."""
    world = Rollout(limit=1)
    world.pods(1, 2, 3)
    world.run()
    assert sorted(world.opened().values()) == ["OverLimit", "OverLimit", "Registered"]


@pytest.mark.parametrize("not_ready", ["Down", "Cancel"])
def test_a_pod_whose_syncer_is_being_deleted_does_not_wait(not_ready: str) -> None:
    """The slices show the pod as not ready until then. Other objects may wait for the deletion."""
    world = Rollout(notReady=not_ready)
    world.pods(1)
    world.run()
    world.pods(1, 2)
    world.cluster.delete(REF)
    world.run()
    assert world.cluster.opened["rating-2"] == ("SyncerDeleted", "its syncer is being deleted")


def test_a_pod_of_a_drained_service_does_not_wait() -> None:
    """A drain must not stop a rolling update."""
    world = Rollout()
    world.cluster.apply(replace(service(), annotations={DRAIN_ANNOTATION: "true"}))
    world.pods(1)
    world.run()
    assert (world.statuses(), world.opened()) == ({}, {"rating-1": "Drained"})


def test_a_pod_that_was_drained_does_not_wait_for_a_list_either() -> None:
    """While pods cannot be listed, the drained pod stays DOWN. Its gate opens as for a drained
    pod."""
    world = Rollout()
    world.pod_drains = True
    world.cluster.refuse["open_gate"] = ClusterUnavailable("no answer")
    world.pods(1, 2)
    world.run()
    world.cluster.pods[NS] = (
        Pod(name="rating-1", uid="uid-of-rating-1", annotations={DRAIN_ANNOTATION: "true"}),
    )
    world.run()
    assert (world.statuses()["RATING 10.0.0.1:8080"], world.opened()) == ("DOWN", {})
    world.cluster.refuse.clear()
    world.cluster.unknown["pods", NS] = DENIED
    world.run()
    assert world.opened() == {"rating-1": "Drained", "rating-2": "Registered"}


def test_a_pod_that_registers_itself_does_not_wait() -> None:
    """The pod's own registration suffices."""
    world = Rollout()
    world.pods(1)
    own = changed(foreign("itself"), ip_addr="10.0.0.1", port=Port(8080, True))
    world.registry.put(changed(own, host_name="10.0.0.1"))
    world.run()
    assert world.opened() == {"rating-1": "RegistersItself"}


def test_a_pod_that_registers_itself_where_callers_do_not_reach_it_waits_for_ours() -> None:
    """We register our own instance beside the pod's. Eureka refuses it at first."""
    world = Rollout()
    world.pods(1)
    own = changed(foreign("itself"), ip_addr="10.0.0.1", port=Port(8080, True))
    world.registry.put(changed(own, host_name="rating-1"))
    world.registry.refuse[key(1)] = RegistryUnusable("answered 400")
    world.run()
    assert world.opened() == {}
    world.registry.refuse.clear()
    world.run()
    assert world.opened() == {"rating-1": "Registered"}


def test_a_person_who_puts_an_instance_out_of_service_stops_no_rollout() -> None:
    """OUT_OF_SERVICE is the person's intention."""
    world = Rollout()
    world.pods(1)
    world.registry.refuse_read[key(1)] = RegistryUnavailable("no")
    world.run()
    world.registry.refuse_read.clear()
    world.registry.refuse_register.clear()
    world.run()
    world.cluster.opened.clear()
    world.cluster.readiness["uid-of-rating-1"] = replace(
        world.cluster.readiness["uid-of-rating-1"], registered=False
    )
    world.registry.override(key(1), InstanceStatus.OUT_OF_SERVICE)
    world.run()
    assert world.opened() == {"rating-1": "Registered"}


def test_an_unread_eureka_delays_a_rollout_by_five_minutes() -> None:
    """The time is in the syncer's status. So it counts for a CronJob's passes as for a daemon's."""
    world = Rollout()
    world.pods(1)
    world.registry.unreadable = UNREADABLE
    world.run()
    world.later(299)
    world.run()
    assert world.opened() == {}
    world.later(1)
    world.run()
    assert world.opened() == {"rating-1": "RegistryUnknown"}


def test_a_registry_that_cannot_be_read_holds_up_no_pod_whose_containers_come_later() -> None:
    """The five minutes count from Eureka's outage. A pod that starts later does not wait longer,
    ready or not."""
    world = Rollout()
    world.pods(1)
    world.cluster.refuse["open_gate"] = ClusterUnavailable("no answer")
    world.registry.unreadable = UNREADABLE
    world.run()
    world.later(299)
    world.pods(1, starting=(2,))
    world.cluster.refuse.clear()
    world.run()
    assert world.opened() == {}
    world.later(1)
    world.run()
    assert world.opened() == {"rating-1": "RegistryUnknown", "rating-2": "RegistryUnknown"}


def test_a_gate_is_never_shut_and_an_open_one_is_never_written() -> None:
    """The pod becomes unready, the leases are lost, and the limit is lowered."""
    world = Rollout()
    world.pods(1, 2)
    world.run()
    world.kubelet()
    changes: list[Callable[[], None]] = [
        lambda: world.pods(1, starting=(2,)),
        world.registry.held.clear,
        lambda: world.cluster.apply(syncer(readinessGate=True, limit=0)),
    ]
    for change in changes:
        change()
        world.run()
        assert not [call for call in world.wire.calls if call.startswith("open_gate")]
        assert all(pod.registered for pod in world.cluster.readiness.values())


def test_an_instance_whose_containers_fail_is_down_and_up_again() -> None:
    """The result is the same as without a gate."""
    world = Rollout()
    world.pods(1, 2)
    world.run()
    world.pods(1, starting=(2,))
    world.run()
    assert world.statuses()["RATING 10.0.0.2:8080"] == "DOWN"
    world.pods(1, 2)
    world.run()
    assert world.statuses()["RATING 10.0.0.2:8080"] == UP


def test_a_syncer_that_needs_pods_is_not_served_while_they_cannot_be_listed() -> None:
    """Its instances are renewed. Its deletion needs no list of pods."""
    world = Rollout()
    world.pods(1)
    world.run()
    world.cluster.unknown["readiness", NS] = DENIED
    world.pods(starting=(1,))
    report = world.run()
    assert (report.plan.changes, world.statuses()) == ((), {"RATING 10.0.0.1:8080": "UP"})
    world.cluster.delete(REF)
    world.run()
    assert world.statuses() == {}


def test_a_gate_that_may_not_be_opened_is_reported() -> None:
    """The right to patch pods/status is missing. The instance is registered all the same."""
    world = Rollout()
    world.pods(1)
    world.cluster.refuse["open_gate"] = ClusterDenied("403: grant patch on pods/status")
    report = world.run()
    assert [str(error) for error in report.cluster_errors] == ["403: grant patch on pods/status"]
    assert world.statuses() == {"RATING 10.0.0.1:8080": "UP"}


def test_without_a_gate_no_pod_is_read_whole() -> None:
    """No gate is opened either."""
    world = FakeWorld()
    world.cluster.apply(service(), syncer(), piece(endpoint(1)))
    world.run()
    assert not {"list_readiness", "open_gate"} & set(world.wire.verbs())


def test_a_terminating_pod_and_one_younger_than_the_list_are_judged_by_their_slices() -> None:
    """The list of pods does not show them."""
    world = Rollout()
    world.pods(1)
    world.cluster.readiness.clear()
    world.cluster.apply(
        piece(endpoint(1, terminating=True, ready=False), endpoint(2), endpoint(3, ready=False))
    )
    world.run()
    assert world.statuses() == {"RATING 10.0.0.2:8080": "UP"}


def test_a_pass_that_is_over_leaves_gates_to_the_next() -> None:
    """The report says that the pass was cut short."""
    world = Rollout()
    world.pods(1)
    world.cluster.readiness["uid-of-rating-1"] = replace(
        world.cluster.readiness["uid-of-rating-1"], ready=True
    )
    world.wire.then = lambda: (
        world.clock.sleep(200) if world.wire.calls[-1].startswith("write_status") else None
    )
    report = world.run()
    world.wire.then = lambda: None
    assert world.opened() == {}
    assert report.cut_short
    world.run()
    assert world.opened() == {"rating-1": "Registered"}


def test_with_limit_zero_gates_open_whether_eureka_can_be_read_or_not() -> None:
    """The limit is 0 whatever is registered, so a read of Eureka changes nothing."""
    world = Rollout(limit=0)
    world.pods(1)
    world.registry.unreadable = UNREADABLE
    world.run()
    assert world.opened() == {"rating-1": "OverLimit"}


@pytest.mark.parametrize(
    "leave",
    [
        lambda world: world.cluster.apply(syncer(readinessGate=True, limit=0)),
        lambda world: world.cluster.apply(syncer(readinessGate=True, suspend=True, appName="old")),
        lambda world: world.cluster.delete(REF),
    ],
    ids=["detached", "suspended, of another app", "deleted"],
)
def test_a_pod_that_another_syncer_is_about_to_register_waits_for_that(
    leave: Callable[[Rollout], None],
) -> None:
    """The older syncer does not register the pod any more. The younger one does."""
    world = Rollout()
    world.pods(1)
    world.run()
    world.cluster.apply(syncer("a-younger-one", created=2000, readinessGate=True))
    leave(world)
    world.pods(1, 2)
    world.registry.refuse_register[key(2)] = RegistryUnavailable("no")
    world.run()
    assert set(world.opened()) == {"rating-1"}
    world.registry.refuse_register.clear()
    world.run()
    assert world.opened()["rating-2"] == "Registered"


def test_a_pod_of_two_apps_waits_for_both() -> None:
    """The instance of each syncer has to be UP."""
    world = Rollout()
    world.cluster.apply(syncer("a-second", readinessGate=True, appName="second"))
    world.pods(1)
    world.registry.refuse_read[key(1, app="second")] = RegistryUnavailable("no")
    world.run()
    assert world.opened() == {}
    world.registry.refuse_read.clear()
    world.run()
    assert world.opened() == {"rating-1": "Registered"}
    assert "SECOND" in world.cluster.opened["rating-1"][1]


def test_a_pod_that_an_older_syncer_without_a_gate_holds_does_not_wait() -> None:
    """The older syncer registers only ready pods, and the pod is not ready before its gate
    opens."""
    world = Rollout()
    world.cluster.apply(syncer(created=2000, readinessGate=True), syncer("old", created=500))
    world.pods(1)
    world.run()
    assert (world.statuses(), world.opened()) == ({}, {"rating-1": "Conflict"})
    world.kubelet()
    world.run()
    assert world.statuses() == {"RATING 10.0.0.1:8080": "UP"}


def test_the_pods_of_a_younger_syncer_wait_for_the_older_one_that_registers_them() -> None:
    """Both syncers have a gate, but only the older one has an instance."""
    world = Rollout()
    world.cluster.apply(syncer("young", created=2000, readinessGate=True))
    world.pods(1)
    world.registry.refuse_register[key(1)] = RegistryUnavailable("no")
    world.run()
    assert world.opened() == {}
    world.registry.refuse_register.clear()
    world.run()
    assert world.opened() == {"rating-1": "Registered"}


def test_five_minutes_without_eureka_are_counted_anew_after_it_was_read() -> None:
    """The time counts from the start of each outage."""
    world = Rollout()
    world.pods(1)
    world.registry.refuse_register[key(1)] = RegistryUnavailable("no")
    world.registry.unreadable = UNREADABLE
    world.run()
    world.later(200)
    world.registry.unreadable = None
    world.run()
    world.registry.unreadable = UNREADABLE
    world.run()
    world.later(299)
    world.run()
    assert world.opened() == {}
    world.later(1)
    world.run()
    assert world.opened() == {"rating-1": "RegistryUnknown"}


def test_five_minutes_without_eureka_do_not_begin_when_the_cluster_cannot_be_read() -> None:
    """The condition is Unknown in both cases. Only its reason shows the start of Eureka's
    outage."""
    world = Rollout()
    world.pods(1)
    world.registry.refuse_register[key(1)] = RegistryUnavailable("no")
    world.run()
    world.cluster.unknown["services", NS] = UNREADABLE
    world.run()
    world.later(200)
    world.cluster.unknown.clear()
    world.registry.unreadable = UNREADABLE
    world.run()
    world.later(299)
    world.run()
    assert world.opened() == {}
    world.later(1)
    world.run()
    assert world.opened() == {"rating-1": "RegistryUnknown"}


@pytest.mark.parametrize(
    "trouble",
    ["limit", "suspend", "delete", "unknown", "drain", "itself"],
)
def test_an_open_gate_stays_open_whatever_comes(trouble: str) -> None:
    """Neither a reason to open a gate nor its end causes a write to an open gate."""
    world = Rollout()
    world.pods(1)
    world.run()
    world.kubelet()
    world.cluster.opened.clear()
    changes: dict[str, Callable[[], object]] = {
        "limit": lambda: world.cluster.apply(syncer(readinessGate=True, limit=0)),
        "suspend": lambda: world.cluster.apply(syncer(readinessGate=True, suspend=True)),
        "delete": lambda: world.cluster.delete(REF),
        "unknown": lambda: setattr(world.registry, "unreadable", UNREADABLE),
        "drain": lambda: world.cluster.apply(
            replace(service(), annotations={DRAIN_ANNOTATION: "true"})
        ),
        "itself": lambda: world.registry.put(
            changed(foreign("itself"), ip_addr="10.0.0.1", port=Port(8080, True)),
        ),
    }
    changes[trouble]()
    for _ in range(3):
        world.run()
        world.later(200)
    if trouble == "unknown":
        world.registry.unreadable = None
    if trouble != "delete":
        world.cluster.apply(syncer(readinessGate=True), service())
    world.run()
    assert world.opened() == {}
    assert all(pod.registered for pod in world.cluster.readiness.values())


def registered(world: Rollout) -> None:
    """Eureka holds the pod UP."""


def away(world: Rollout) -> None:
    """Eureka cannot be read for five minutes."""
    world.registry.unreadable = UNREADABLE
    world.run()
    world.later(300)


def by_itself(world: Rollout) -> None:
    """The pod registers itself."""
    own = changed(foreign("itself"), ip_addr="10.0.0.1", port=Port(8080, True))
    world.registry.put(changed(own, host_name="10.0.0.1"))


OPENS: dict[str, tuple[dict[str, Any], Callable[[Rollout], None], str]] = {
    "Registered": ({}, registered, f"{key(1)} is UP in Eureka"),
    "and of two syncers": (
        {},
        lambda world: world.cluster.apply(syncer("a-second", readinessGate=True, appName="second")),
        f"{key(1, app='second')} and {key(1)} are UP in Eureka",
    ),
    "RegistryUnknown": ({}, away, "Eureka could not be read for 300 s: it did not answer"),
    "RegistersItself": (
        {},
        by_itself,
        "its pod registers itself as itself. Turn off the pod's registration "
        "(eureka.client.register-with-eureka=false), or delete the syncer",
    ),
    "Suspended": ({"suspend": True}, registered, "its syncer is suspended"),
    "OverLimit": ({"limit": 0}, registered, "limit 0: registers 0 of 1 ready endpoint"),
    "Conflict": (
        {},
        lambda world: world.cluster.apply(syncer("old", created=500)),
        f"another syncer has the address of the pod, so syncer {REF} does not register the pod",
    ),
}


@pytest.mark.parametrize("why", OPENS)
def test_the_pods_condition_says_why_its_gate_opened(why: str) -> None:
    """A person sees the message with kubectl."""
    spec, leave, message = OPENS[why]
    world = Rollout(**spec)
    world.pods(1)
    leave(world)
    world.run()
    assert world.cluster.opened["rating-1"][1] == message
