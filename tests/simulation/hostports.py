"""Pods that callers reach at the host ports of their nodes, and stories in which they move, share a
socket, or are told of before their node."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.embedded.instances import Listed

from .apart import SyncerLeaves, Way, named, serve, unread
from .events import Event
from .story import QUIET, Story
from .troubles import Call
from .truth import Ref
from .view import pod_of
from .world import APPS, FEW, Key, apart_name, host_port, is_true

if TYPE_CHECKING:
    from .stage import Stage

_NODES = {"host-1": "10.9.0.1", "host-2": "10.9.0.2", "host-3": "10.9.0.3"}
_HOST_PORTS = (30080, 30081)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsServed(Event):
    """A person makes a Service for pods with host ports, and its syncer."""

    app: str

    def happen(self, stage: Stage) -> str:
        for node in _NODES:
            stage.world.kubernetes.call("POST", "/api/v1/nodes", {"metadata": {"name": node}})
        return serve(stage, "host", self.app, {}, {"pod": {"address": "HostPort"}})


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPodStarts(Event):
    """A pod starts on a node, unless a pod of another app has its host port there. If one of its
    name runs, that one ends at once: it moves."""

    app: str
    number: int
    node: str
    port: int
    """The host port."""
    ready: bool = True
    told: bool = True
    """Whether its status names the address of its node."""

    def happen(self, stage: Stage) -> str:
        name = f"{apart_name('host', self.app)}-{self.number}"
        if self._is_full(stage):
            return ""
        moved = stage.world.end_pod(APPS[self.app], name, grace=0)
        ip = stage.world.start_pod(
            self.app,
            name,
            f"10.0.8.{1 + self.number}",
            ready=self.ready,
            label=apart_name("host", self.app),
            node=self.node,
            host_port=self.port,
        )
        if self.told:
            _tell_the_node(stage, self.app, name)
        ready = "ready" if self.ready else "not ready"
        at = f"{self.node}:{self.port}" + ("" if self.told else ", whose address it does not tell")
        return f"pod {name} {'moves' if moved else 'starts'} to {at}, {ready}" if ip else ""

    def _is_full(self, stage: Stage) -> bool:
        """Whether the scheduler finds no room for it."""
        for pod in stage.world.pods():
            others = pod["metadata"]["labels"]["app"] != apart_name("host", self.app)
            here = pod["spec"]["nodeName"] == self.node and host_port(pod) == self.port
            if others and here:
                return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPodTells(Event):
    """The status of a pod gets the address of its node."""

    app: str
    number: int

    def happen(self, stage: Stage) -> str:
        name = f"{apart_name('host', self.app)}-{self.number}"
        return f"pod {name} tells its node" if _tell_the_node(stage, self.app, name) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPodEnds(Event):
    """A pod with a host port ends, after a while or at once."""

    app: str
    number: int
    grace: float = 0.0

    @property
    def over(self) -> float:
        return self.at + self.grace

    def happen(self, stage: Stage) -> str:
        name = f"{apart_name('host', self.app)}-{self.number}"
        there = stage.world.end_pod(APPS[self.app], name, grace=self.grace)
        return f"pod {name} ends in {self.grace:g} s" if there else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPodTurns(Event):
    """A pod with a host port becomes ready, or not."""

    app: str
    number: int
    ready: bool

    def happen(self, stage: Stage) -> str:
        name = f"{apart_name('host', self.app)}-{self.number}"
        there = stage.world.turn(APPS[self.app], name, ready=self.ready)
        return f"pod {name} turns {'ready' if self.ready else 'unready'}" if there else ""


def _tell_the_node(stage: Stage, app: str, name: str) -> bool:
    """Writes the address of its node into a pod's status, as the kubelet does."""
    path = f"/api/v1/namespaces/{APPS[app]}/pods/{name}"
    status, pod = stage.world.kubernetes.call("GET", path)
    if status != 200 or "hostIP" in pod["status"]:
        return False
    address = _NODES[pod["spec"]["nodeName"]]
    told = {"hostIP": address, "hostIPs": [{"ip": address}]}
    stage.world.kubernetes.call("PATCH", f"{path}/status", {"status": told})
    return True


def with_host_ports(base: Story) -> Story:
    """Adds pods of an app that are reached at their nodes, and often a list of pods that fails."""
    dice = random.Random(f"host ports {base.seed}")
    app, last = dice.choice(FEW), base.ends - QUIET
    events: list[Event] = [*base.events, HostsServed(at=0.0, app=app)]
    for number in range(dice.choice((1, 2, 2, 3))):
        events.append(_a_start(dice, app, number, 0.0))
    if dice.random() < 0.5:
        events += _with_another_app(dice, app, last)
    for _ in range(dice.choice((2, 3, 5, 7))):
        events += _of_a_pod(dice, app, round(dice.uniform(3, last), 1))
    # Whoever waits for the address of its node gets it in most stories.
    if dice.random() < 0.7:
        for number in range(4):
            events.append(HostPodTells(at=round(last, 1), app=app, number=number))
    if dice.random() < 0.35:
        events.append(SyncerLeaves(at=round(dice.uniform(20, last), 1), kind="host", app=app))
    troubles = list(base.troubles)
    if dice.random() < 0.7:
        trouble = unread(dice, Call.PODS, last)
        troubles.append(trouble)
        for _ in range(dice.choice((1, 2, 3))):
            events += _of_a_pod(dice, app, round(dice.uniform(trouble.at, trouble.until), 1))
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=tuple(troubles),
        ends=max(base.ends, *(event.over + QUIET for event in events)),
    )


def _with_another_app(dice: random.Random, app: str, last: float) -> list[Event]:
    """Gives the pods of another app of the namespace. They come to sockets that the first app's had
    a moment ago."""
    other = next(name for name in FEW if name != app and APPS[name] == APPS[app])
    events: list[Event] = [HostsServed(at=0.0, app=other)]
    for number in range(dice.choice((1, 2))):
        at = round(dice.uniform(20, last), 1)
        starts = _a_start(dice, other, number, round(at + dice.choice((0.0, 1.0, 8.0)), 1))
        for ended in range(4):
            events.append(HostPodEnds(at=at, app=app, number=ended))
        events.append(starts)
    return events


def _a_start(dice: random.Random, app: str, number: int, at: float) -> HostPodStarts:
    return HostPodStarts(
        at=at,
        app=app,
        number=number,
        node=dice.choice(tuple(_NODES)),
        port=_HOST_PORTS[0] if dice.random() < 0.85 else _HOST_PORTS[1],
        ready=dice.random() < 0.9,
        told=dice.random() < 0.85,
    )


def _of_a_pod(dice: random.Random, app: str, at: float) -> list[Event]:
    number = dice.randint(0, 3)
    ready = dice.random() < 0.6
    grace = dice.choice((0.0, 0.0, 5.0, 20.0))
    ends: Event = HostPodEnds(at=at, app=app, number=number, grace=grace)
    starts: Event = _a_start(dice, app, number, at)
    tells: Event = HostPodTells(at=at, app=app, number=number)
    turns: Event = HostPodTurns(at=at, app=app, number=number, ready=ready)
    return dice.choice(([ends], [starts], [starts], [turns], [tells, turns]))


class AtHosts(Way):
    """Pods at the host ports of their nodes."""

    kind = "host"

    def written(self) -> Iterator[tuple[Key, bool]]:
        services = self.services()
        for ref, _ in self.living():
            if ref not in services:
                continue
            for pod in self._pods(ref):
                address, port = pod["status"].get("hostIP"), host_port(pod)
                if address is None or port is None or "deletionTimestamp" in pod["metadata"]:
                    continue
                key = self._judge.truth.key(ref[0], ref[1], address, port)
                yield key, is_true(pod, "Ready")

    def is_gone(self, listed: Listed) -> bool:
        return pod_of(listed[0]) not in self._judge.truth.pods

    def _pods(self, ref: Ref) -> Iterator[dict[str, Any]]:
        """The pods behind a Service of this name."""
        for pod in self._judge.world.pods():
            metadata = pod["metadata"]
            if (named(pod)[0], metadata["labels"]["app"]) == ref and pod["status"].get("podIP"):
                yield pod
