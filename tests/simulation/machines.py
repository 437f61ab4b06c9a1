"""Machines outside of the cluster, behind a Service with slices that a person writes, and stories
in which one of them listens at two ports."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .apart import SyncerLeaves, Way, serve
from .events import Event
from .story import QUIET, Story
from .world import APPS, FEW, Key, apart_name

if TYPE_CHECKING:
    from .stage import Stage

_PORTS = (8080, 8081)
_HOSTS = ("203.0.113.1", "203.0.113.2")
_SOCKETS = tuple((host, port) for host in _HOSTS for port in _PORTS)
_HOW = ("slices", "slices", "subsets", "beside")

Socket = tuple[str, int, bool]
"""An address, a port, and whether it is ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinesServed(Event):
    """A person makes a Service for machines, and its syncer."""

    app: str
    how: str
    """`slices`: the Service has no selector, and slices are written for it; `subsets`: Endpoints
    are written, and a controller mirrors them; `beside`: it selects no pod, and slices are
    written."""

    def happen(self, stage: Stage) -> str:
        pods = {"app": apart_name("machine", self.app)} if self.how == "beside" else None
        return serve(stage, "machine", self.app, {"selector": pods}, {}, endpoints=self.how)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinesListen(Event):
    """A person writes where the machines listen: one slice, or one subset, for each port."""

    app: str
    sockets: tuple[Socket, ...]

    def happen(self, stage: Stage) -> str:
        namespace, name = APPS[self.app], apart_name("machine", self.app)
        path = f"/api/v1/namespaces/{namespace}/services/{name}"
        status, service = stage.world.kubernetes.call("GET", path)
        if status != 200:
            return ""
        if service["metadata"]["labels"]["endpoints"] == "subsets":
            self._write_endpoints(stage, namespace, name)
        else:
            for port in _PORTS:
                self._write_slice(stage, namespace, name, port)
        written = (
            f"{host}:{port}{'' if ready else ' (not ready)'}" for host, port, ready in self.sockets
        )
        return f"machines of {self.app} listen at {', '.join(written) or 'no address'}"

    def _write_slice(self, stage: Stage, namespace: str, service: str, port: int) -> None:
        endpoints = [
            {"addresses": [host], "conditions": {"ready": ready}}
            for host, number, ready in self.sockets
            if number == port
        ]
        name = f"{service}-{port}"
        labels = {"kubernetes.io/service-name": service}
        body = {
            "metadata": {"name": name, "labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": port}],
            "endpoints": endpoints,
        }
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        _write(stage, path, name, body)

    def _write_endpoints(self, stage: Stage, namespace: str, name: str) -> None:
        subsets = []
        for port in _PORTS:
            hosts = {True: list[dict[str, str]](), False: list[dict[str, str]]()}
            for host, number, ready in self.sockets:
                if number == port:
                    hosts[ready].append({"ip": host})
            if hosts[True] or hosts[False]:
                ports = [{"name": "http", "port": port, "protocol": "TCP"}]
                both = {"addresses": hosts[True], "notReadyAddresses": hosts[False]}
                subsets.append(
                    {"ports": ports, **{kind: entries for kind, entries in both.items() if entries}}
                )
        body = {"metadata": {"name": name}, "subsets": subsets}
        _write(stage, f"/api/v1/namespaces/{namespace}/endpoints", name, body)


def _write(stage: Stage, path: str, name: str, body: dict[str, Any]) -> None:
    status, _ = stage.world.kubernetes.call("POST", path, body)
    if status == 409:
        changed = {key: value for key, value in body.items() if key in ("endpoints", "subsets")}
        stage.world.kubernetes.call("PATCH", f"{path}/{name}", changed)


def with_machines(base: Story) -> Story:
    """Adds machines of an app, which listen at one port or two, and come and go."""
    dice = random.Random(f"machines {base.seed}")
    app, last = dice.choice(FEW), base.ends - QUIET
    events = [
        *base.events,
        MachinesServed(at=0.0, app=app, how=dice.choice(_HOW)),
        MachinesListen(at=0.0, app=app, sockets=_some_sockets(dice)),
    ]
    for _ in range(dice.choice((0, 1, 2, 3))):
        at = round(dice.uniform(3, last), 1)
        events.append(MachinesListen(at=at, app=app, sockets=_some_sockets(dice)))
    if dice.random() < 0.3:
        events.append(SyncerLeaves(at=round(dice.uniform(20, last), 1), kind="machine", app=app))
    return replace(base, events=tuple(sorted(events, key=lambda event: event.at)))


def _some_sockets(dice: random.Random) -> tuple[Socket, ...]:
    chosen = dice.sample(_SOCKETS, dice.choice((1, 2, 2, 3, 4)))
    return tuple((host, port, dice.random() < 0.85) for host, port in sorted(chosen))


class Machines(Way):
    """Machines outside of the cluster, by the slices of now."""

    kind = "machine"

    def written(self) -> Iterator[tuple[Key, bool]]:
        services, truth = self.services(), self._judge.truth
        for piece in self._judge.world.objects("/apis/discovery.k8s.io/v1/endpointslices"):
            metadata = piece["metadata"]
            ref = metadata["namespace"], metadata["labels"].get("kubernetes.io/service-name", "")
            if ref not in services or not self.is_living(ref):
                continue
            numbers = [port["port"] for port in piece["ports"] or () if port["name"] == "http"]
            for endpoint in piece["endpoints"] or ():
                host = endpoint["addresses"][0]
                for number in numbers:
                    key = truth.key(ref[0], ref[1], host, number)
                    yield key, endpoint["conditions"]["ready"]
