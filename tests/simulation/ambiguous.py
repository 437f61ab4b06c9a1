"""Stories in which a syncer can no longer tell its port, while the app's pods are replaced.

A Service for metrics comes with the same labels, or a headless one with another port; the Service's
port gets another name, or a second port beside it. What the syncer once resolved stands in its
instances, and their number is still a port of its pods. So the oracle goes on: `rest` says that
every ready pod is UP, and `losses` that no app goes to nothing while one is missing. Without any
instance nobody can tell the port (`Anchors`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from . import events as e
from .asked import PLAIN, Asked
from .story import QUIET, Story
from .view import syncer_of
from .world import APPS, OF_THE_FIRST_TEAM, PORT, SERVICE_PORT, Key, service_manifest
from .writers import replaced

if TYPE_CHECKING:
    from .judge import Judge
    from .stage import Stage

NamedPort = tuple[str, int, int]
"""A port's name, its number, and the port of the pods."""
_HTTP: NamedPort = ("http", SERVICE_PORT, PORT)
_WEB: NamedPort = ("web", SERVICE_PORT, PORT)
_METRICS: NamedPort = ("metrics", 9090, 9090)
_CLUSTER: NamedPort = ("cluster", 7946, 7946)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePortsSet(e.Event):
    """A person changes the ports of an app's Service."""

    app: str
    ports: tuple[NamedPort, ...]

    def happen(self, stage: Stage) -> str:
        path = f"/api/v1/namespaces/{APPS[self.app]}/services/{self.app}"
        status, _ = stage.world.kubernetes.call(
            "PATCH", path, {"spec": {"ports": _written(self.ports)}}
        )
        names = ", ".join(name for name, _, _ in self.ports)
        return f"Service {self.app} has the ports {names}" if status < 300 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceJoins(e.Event):
    """A second Service of the same labels and pods appears, with a port of its own."""

    app: str
    port: NamedPort
    headless: bool = False

    def happen(self, stage: Stage) -> str:
        name = f"{self.app}-{self.port[0]}"
        manifest = service_manifest(self.app, name)
        spec = {**manifest["spec"], "ports": _written((self.port,))}
        if self.headless:
            spec["clusterIP"] = "None"
        done = stage.world.apply("api/v1/services", {**manifest, "spec": spec})
        return f"Service {name} is {done}" if done == "created" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts(e.Event):
    """That second Service is deleted."""

    app: str
    port: NamedPort

    def happen(self, stage: Stage) -> str:
        name = f"{self.app}-{self.port[0]}"
        there = stage.world.delete(f"/api/v1/namespaces/{APPS[self.app]}/services/{name}")
        return f"Service {name} is deleted" if there else ""


def _written(ports: Sequence[NamedPort]) -> list[dict[str, Any]]:
    return [{"name": name, "port": port, "targetPort": target} for name, port, target in ports]


def with_an_ambiguous_port(base: Story) -> Story:
    """Adds an app whose Services or ports change so before its pods are replaced."""
    dice = random.Random(f"ambiguous {base.seed}")
    app = dice.choice(OF_THE_FIRST_TEAM)
    changes = round(dice.uniform(15, max(45.0, base.ends - QUIET)), 1)
    back = round(changes + dice.uniform(40, 150), 1)
    asked, first = PLAIN, (_HTTP,)
    change: e.Event
    undone: e.Event = ServicePortsSet(at=back, app=app, ports=(_HTTP,))
    match dice.choice(
        ("metrics", "metrics", "headless", "beside web", "renamed", "renamed", "added")
    ):
        case "metrics":
            change = ServiceJoins(at=changes, app=app, port=_METRICS)
            undone = ServiceParts(at=back, app=app, port=_METRICS)
        case "headless":
            change = ServiceJoins(at=changes, app=app, port=_CLUSTER, headless=True)
            undone = ServiceParts(at=back, app=app, port=_CLUSTER)
        case "beside web":
            first = (_WEB,)
            change = ServiceJoins(at=changes, app=app, port=_METRICS, headless=dice.random() < 0.3)
            undone = ServiceParts(at=back, app=app, port=_METRICS)
        case "renamed":
            asked = Asked(port="http")
            change = ServicePortsSet(at=changes, app=app, ports=(_WEB,))
        case _:
            first = (_WEB,)
            change = ServicePortsSet(at=changes, app=app, ports=(_WEB, _METRICS))
    pods = range(dice.choice((1, 1, 2, 3)))
    events: list[e.Event] = [
        *base.events,
        e.ServiceApplied(at=0.0, app=app),
        ServicePortsSet(at=0.0, app=app, ports=first),
        e.SyncerApplied(at=0.0, name=app, app=app, asked=asked),
        *(
            e.PodStarted(at=0.0, app=app, number=number, ip=f"10.0.5.{1 + number}")
            for number in pods
        ),
        change,
        *replaced(dice, app, round(changes + dice.uniform(0, 40), 1)),
    ]
    if dice.random() < 0.4:
        events.append(undone)
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        ends=max(base.ends, *(event.over for event in events)) + QUIET,
    )


class Anchors:
    """Remembers which syncers have instances that tell their port, or would have them if a pass had
    not removed them."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._anchored: set[str] = set()
        """UIDs of syncers."""

    def look(self) -> None:
        """Notes the instances of now."""
        truth = self._judge.truth
        standing = self._standing()
        wanting = {claim.holder for claim in truth.eligible.values()}
        for ref, syncer in truth.syncers.items():
            if ref in standing:
                self._anchored.add(syncer.uid)
            elif ref not in wanting:
                self._anchored.discard(syncer.uid)

    def eureka_restarted(self) -> None:
        """Notes that a server lost its instances: if no other has them, nothing tells the port."""
        standing = self._standing()
        for ref, syncer in self._judge.truth.syncers.items():
            if ref not in standing:
                self._anchored.discard(syncer.uid)

    def adrift(self, key: Key) -> bool:
        """Whether nobody can tell at which port a pod should be registered."""
        truth = self._judge.truth
        claim = truth.eligible.get(key)
        syncer = truth.syncers.get(claim.holder) if claim is not None else None
        return syncer is not None and not syncer.tells_port and syncer.uid not in self._anchored

    def _standing(self) -> set[tuple[str, str]]:
        known = self._judge.known
        return {syncer_of(state[key][0]) for state in known for key in self._judge.ours_of(state)}
