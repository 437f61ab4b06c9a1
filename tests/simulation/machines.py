"""Machines outside of the cluster, behind a Service with slices that a person writes, and stories
in which one of them listens at two ports; and the promise about them.

socket      an endpoint is an address and a port: at rest each ready one is registered, and no
            other; no pass removes one that is ready since before the pass looked. If the Service
            is gone and its syncer lives, as after a CRD was restored, the syncer is not served:
            what stands of it stays, because no list of pods can prove that a machine is gone
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.embedded.instances import Listed

from .events import Event
from .story import QUIET, Story
from .troubles import Call
from .truth import Ref
from .view import PassView, Violation, change, is_up, status_of, syncer_of
from .world import APPS, FEW, TEAMS, Key, is_machine, machine_name, syncer_path

if TYPE_CHECKING:
    from .judge import Judge
    from .stage import Stage

_SYNCERS = "apis/eurekube.io/v1/eurekasyncers"
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
        name = machine_name(self.app)
        place = {"namespace": APPS[self.app], "name": name}
        labels = {"app": name, "endpoints": self.how}
        spec = {
            "selector": {"app": name} if self.how == "beside" else None,
            "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
        }
        stage.world.apply(
            "api/v1/services", {"metadata": {**place, "labels": labels}, "spec": spec}
        )
        syncer = {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaSyncer",
            "metadata": {**place, "labels": {"team": TEAMS[self.app]}},
            "spec": {"selector": {"app": name}, "appName": name},
        }
        return f"syncer {name} ({self.how}) is {stage.world.apply(_SYNCERS, syncer)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinesListen(Event):
    """A person writes where the machines listen: one slice, or one subset, for each port."""

    app: str
    sockets: tuple[Socket, ...]

    def happen(self, stage: Stage) -> str:
        namespace, name = APPS[self.app], machine_name(self.app)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinesLeave(Event):
    """A person deletes the syncer of the machines."""

    app: str

    def happen(self, stage: Stage) -> str:
        name = machine_name(self.app)
        there = stage.world.delete(syncer_path(APPS[self.app], name))
        return f"a person deletes syncer {name}" if there else ""


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
        events.append(MachinesLeave(at=round(dice.uniform(20, last), 1), app=app))
    return replace(base, events=tuple(sorted(events, key=lambda event: event.at)))


def _some_sockets(dice: random.Random) -> tuple[Socket, ...]:
    chosen = dice.sample(_SOCKETS, dice.choice((1, 2, 2, 3, 4)))
    return tuple((host, port, dice.random() < 0.85) for host, port in sorted(chosen))


class Machines:
    """Remembers since when each address and port of a machine is ready."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._ready: dict[Key, float] = {}
        """Since when each instance should be UP."""
        self._ready_until: dict[Key, float] = {}
        """When each instance last should have been UP."""

    def look(self, now: float) -> None:
        """Notes what the slices of now say."""
        if not self._judge.truth.machines and not self._ready:
            return
        ready = {key for key, is_ready in self._written() if is_ready}
        self._ready_until.update(dict.fromkeys(self._ready, now))
        self._ready = {key: self._ready.get(key, now) for key in ready}

    def are(self, listed: Listed) -> bool:
        """Whether it is an instance of a machine."""
        return is_machine(syncer_of(listed[0])[1])

    def judge_new(self, view: PassView, key: Key, stands: Listed) -> None:
        """Judges that a pass registered an instance of a machine."""
        self._judge.reached["a machine's registration"] += 1
        looked = min(view.specs, view.lists.get(Call.SLICES, view.moment))
        if key not in self._ready and self._ready_until.get(key, -1.0) < looked and is_up(stands):
            raise Violation("socket", f"{key} was registered, and no slice says that it is ready")

    def judge_removal(self, view: PassView, key: Key, was: Listed, stands: Listed | None) -> None:
        """Judges that a pass cancelled an instance of a machine, or turned it DOWN."""
        since = self._ready.get(key)
        if since is not None and since <= view.moment:
            told = f"it is ready since {since:.1f} s, and the pass looked at {view.moment:.1f} s"
            raise Violation("socket", f"{key} was {change(was, stands)}; {told}")

    def judge_rest(self) -> None:
        """Judges the end of a story."""
        known, written = self._judge.known, dict(self._written())
        for state in known:
            for key in sorted(self._ready):
                listed = state.get(key)
                if self._judge.is_taken(key) or key in self._judge.overrides.out:
                    continue
                if not is_up(listed):
                    says = status_of(listed) or "nothing"
                    raise Violation("socket", f"{key} is ready, and Eureka says {says}")
            for key in sorted(self._judge.ours_of(state)):
                if not self.are(state[key]) or key in self._judge.held:
                    continue
                if self._says_that_no_service_matches(syncer_of(state[key][0])):
                    self._judge.reached["machines of a Service that is gone, at rest"] += 1
                    continue
                if key not in written and status_of(state[key]) != "OUT_OF_SERVICE":
                    raise Violation(
                        "socket", f"{key} stands, and no slice has its address and port"
                    )
        if self._has_two_at_one_address():
            self._judge.reached["two ports at one address at rest"] += 1

    def _has_two_at_one_address(self) -> bool:
        hosts = [key.id.rpartition(":")[0] for key in self._ready]
        return len(set(hosts)) < len(hosts)

    def _written(self) -> Iterator[tuple[Key, bool]]:
        """The instances that the slices of living syncers ask for, and whether they are ready. Of
        two slices with one socket, the ready one counts."""
        world = self._judge.world
        services = {_named(service) for service in world.objects("/api/v1/services")}
        written: dict[Key, bool] = {}
        for piece in world.objects("/apis/discovery.k8s.io/v1/endpointslices"):
            metadata = piece["metadata"]
            ref = metadata["namespace"], metadata["labels"].get("kubernetes.io/service-name", "")
            if ref not in services or not self._has_syncer(ref):
                continue
            numbers = [port["port"] for port in piece["ports"] or () if port["name"] == "http"]
            for endpoint in piece["endpoints"] or ():
                for number in numbers:
                    host = endpoint["addresses"][0]
                    key = self._judge.truth.key(ref[0], ref[1], host, number)
                    written[key] = written.get(key, False) or endpoint["conditions"]["ready"]
        yield from written.items()

    def _says_that_no_service_matches(self, ref: Ref) -> bool:
        """Whether the Service of a living syncer is gone, and its condition tells so."""
        services = {_named(service) for service in self._judge.world.objects("/api/v1/services")}
        if ref in services or not self._has_syncer(ref):
            return False
        conditions = self._judge.truth.machines[ref].get("status", {}).get("conditions", ())
        reasons = {condition["type"]: condition["reason"] for condition in conditions}
        return reasons.get("Synced") == "NoMatchingService"

    def _has_syncer(self, ref: Ref) -> bool:
        syncer = self._judge.truth.machines.get(ref)
        return syncer is not None and "deletionTimestamp" not in syncer["metadata"]


def _named(service: dict[str, Any]) -> tuple[str, str]:
    return service["metadata"]["namespace"], service["metadata"]["name"]
