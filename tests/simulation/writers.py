"""Stories in which another controller, or a person, writes a slice for an app's Service that has
none of its ports, while the app's pods are replaced.

Kube-proxy ignores such a slice, and so does the oracle: `rest` says that every ready pod is UP, and
`losses` that no app goes to nothing while one is missing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from . import events as e
from .rollout import Rollout
from .story import QUIET, Story
from .world import APPS, OF_THE_FIRST_TEAM

if TYPE_CHECKING:
    from .stage import Stage

_OTHER_PORTS = (("", 8080), ("", 9090), ("metrics", 9090), ("web", 8080))
_HOSTS = ("203.0.113.9", "10.0.5.1", "10.0.5.11")
"""A machine outside of the cluster, and addresses that pods of these stories have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StraySliceWritten(e.Event):
    """Another writer makes a slice for the Service of an app."""

    app: str
    port: tuple[str, int]
    """The name and number of its port."""
    host: str
    ready: bool

    def happen(self, stage: Stage) -> str:
        name, (port_name, number) = f"{self.app}-stray", self.port
        labels = {
            "kubernetes.io/service-name": self.app,
            "endpointslice.kubernetes.io/managed-by": "mesh.example.com",
        }
        body = {
            "metadata": {"name": name, "labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": port_name, "port": number}],
            "endpoints": [{"addresses": [self.host], "conditions": {"ready": self.ready}}],
        }
        path = f"/apis/discovery.k8s.io/v1/namespaces/{APPS[self.app]}/endpointslices"
        status, _ = stage.world.kubernetes.call("POST", path, body)
        port = f"port {port_name or 'without a name'} ({number})"
        return f"another writer makes the slice {name} with {port}" if status < 300 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StraySliceDeleted(e.Event):
    """The other writer deletes its slice."""

    app: str

    def happen(self, stage: Stage) -> str:
        path = f"/apis/discovery.k8s.io/v1/namespaces/{APPS[self.app]}/endpointslices"
        there = stage.world.delete(f"{path}/{self.app}-stray")
        return f"the slice {self.app}-stray is deleted" if there else ""


def with_a_stray_slice(base: Story) -> Story:
    """Adds an app that gets such a slice before its pods are replaced."""
    dice = random.Random(f"writers {base.seed}")
    app = dice.choice(OF_THE_FIRST_TEAM)
    written = round(dice.uniform(0.5, max(45.0, base.ends - QUIET)), 1)
    stray = StraySliceWritten(
        at=written,
        app=app,
        port=dice.choice(_OTHER_PORTS),
        host=dice.choice(_HOSTS),
        ready=dice.random() < 0.5,
    )
    events = [*base.events, *deployed(app, dice.choice((1, 1, 2, 3)), at=0.0), stray]
    events += replaced(dice, app, round(written + dice.uniform(0, 40), 1))
    if dice.random() < 0.3:
        gone = round(written + dice.uniform(30, 120), 1)
        events.append(StraySliceDeleted(at=gone, app=app))
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        ends=max(base.ends, *(event.over for event in events)) + QUIET,
    )


def deployed(app: str, pods: int, *, at: float) -> list[e.Event]:
    """Gives the events that make an app of so many pods."""
    return [
        e.ServiceApplied(at=at, app=app),
        e.SyncerApplied(at=at, name=app, app=app),
        *(
            e.PodStarted(at=at, app=app, number=number, ip=f"10.0.5.{1 + number}")
            for number in range(pods)
        ),
    ]


def replaced(dice: random.Random, app: str, at: float) -> list[e.Event]:
    """Gives the events that replace the pods of an app: a rolling update, or one by one at any
    time."""
    if dice.random() < 0.5:
        grace = dice.choice((0.0, 5.0, 20.0))
        return [Rollout(at=at, app=app, ip="10.0.5.11", gated=False, grace=grace)]
    events: list[e.Event] = []
    for number in range(3):
        starts = round(at + dice.uniform(0, 30), 1)
        ends = round(starts + dice.uniform(2, 40), 1)
        grace = dice.choice((0.0, 5.0, 20.0))
        events += [
            e.PodStarted(at=starts, app=app, number=10 + number, ip=f"10.0.5.{11 + number}"),
            e.PodEnds(at=ends, app=app, number=number, grace=grace),
        ]
    return events
