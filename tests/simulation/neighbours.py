"""Stories in which another namespace's syncers claim an app's addresses, and the promise about
them.

tenant      a claim from another namespace neither cancels instances of a namespace's ready pods
            nor keeps them out; an instance that only claims their address is not registered
            beside them, and a condition says so; of two written addresses the second is not
            registered beside the first

The oracle ignores such syncers when it decides what should be UP, so each of their effects breaks a
promise.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.embedded.instances import InstanceInfo, Listed

from .events import Event, PodMoves, PodStarted, ServiceApplied, SyncerApplied
from .story import QUIET, Story
from .view import PassView, State, Violation, is_up, named, pod_of, syncer_of
from .world import APPS, PORT, TEAMS, Key, is_shelf, shelf_name, syncer_path

if TYPE_CHECKING:
    from .judge import Judge
    from .stage import Stage

_SYNCERS = "apis/eurekube.io/v1/eurekasyncers"
_SLICES = "/apis/discovery.k8s.io/v1/namespaces"
_HOSTS = tuple(f"10.0.0.{number}" for number in range(1, 7))
"""Addresses that pods of stories may have."""
_INGRESS = "in.example.com"
_ENDPOINT = "203.0.113.9"
"""The endpoint of a Service whose own address is written by hand."""
_WRITTEN = ("host", "external", "slice")
_FORGED = ("pods", "their pods")


def neighbour_of(app: str) -> str:
    """Gives the namespace of the other team."""
    return {"bank": "shop", "shop": "bank"}[APPS[app]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourClaims(Event):
    """A syncer claims addresses under an app's name: with a Service without a selector, and a slice
    written by hand."""

    app: str
    namespace: str
    how: str
    """`host`: a fixed host name; `external`: external IPs; `slice`: endpoints without a pod;
    `pods`: endpoints that name pods of the slice's own namespace; `their pods`: those with the UIDs
    of the app's pods."""
    hosts: tuple[str, ...]
    number: int = 0
    ready: bool = True
    suspend: bool = False

    def happen(self, stage: Stage) -> str:
        name, world = shelf_name(self.app, self.number), stage.world
        place = {"namespace": self.namespace, "name": name}
        ports = [{"name": "http", "port": PORT}]
        external = list(self.hosts) if self.how == "external" else None
        manifest = {
            "metadata": {**place, "labels": {"app": name}},
            "spec": {"ports": ports, "externalIPs": external},
        }
        world.apply("api/v1/services", manifest)
        self._write_slice(stage, name)
        spec: dict[str, Any] = {
            "selector": {"app": name},
            "appName": self.app,
            "mode": "service" if self.how in ("host", "external") else "pod",
            "service": {
                "host": {"hostname": self.hosts[0]},
                "external": {"address": "ExternalIP"},
            }.get(self.how),
            "port": PORT if self.how == "host" else None,
            "suspend": self.suspend or None,
        }
        labels = {"team": TEAMS[self.app]}
        syncer = {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaSyncer",
            "metadata": {**place, "labels": labels},
        }
        done = world.apply(_SYNCERS, {**syncer, "spec": spec})
        how = (
            f"{self.how}, "
            f"{'ready' if self.ready else 'not ready'}{', suspended' if self.suspend else ''}"
        )
        return (
            f"syncer {name} of {self.namespace} claims {', '.join(self.hosts)} as {self.app} "
            f"({how}): {done}"
        )

    def _write_slice(self, stage: Stage, name: str) -> None:
        uids = {address: uid for uid, address in stage.judge.truth.addresses.items()}
        endpoints: list[dict[str, Any]] = []
        for host in self.hosts if self.how in ("slice", *_FORGED) else (_ENDPOINT,):
            endpoint: dict[str, Any] = {"addresses": [host], "conditions": {"ready": self.ready}}
            if self.how in _FORGED:
                uid = uids.get(host, "") if self.how == "their pods" else ""
                target = {
                    "kind": "Pod",
                    "namespace": self.namespace,
                    "name": name,
                    "uid": uid or f"forged-{host}",
                }
                endpoint["targetRef"] = target
            endpoints.append(endpoint)
        body = {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": PORT}],
            "endpoints": endpoints,
        }
        path = f"{_SLICES}/{self.namespace}/endpointslices"
        status, _ = stage.world.kubernetes.call("POST", path, body)
        if status == 409:
            stage.world.kubernetes.call("PATCH", f"{path}/{name}", {"endpoints": endpoints})


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourLeaves(Event):
    """The neighbour's syncer is deleted."""

    app: str
    namespace: str
    number: int = 0

    def happen(self, stage: Stage) -> str:
        name = shelf_name(self.app, self.number)
        there = stage.world.delete(syncer_path(self.namespace, name))
        return f"a person deletes syncer {name} of {self.namespace}" if there else ""


def with_neighbours(base: Story) -> Story:
    """Adds an app whose addresses another namespace claims, mostly with an older syncer."""
    dice = random.Random(f"neighbours {base.seed}")
    last = base.ends - QUIET
    app = dice.choice(
        sorted({event.app for event in base.events if isinstance(event, ServiceApplied)})
    )
    other, how = neighbour_of(app), dice.choice((*_WRITTEN, *_WRITTEN, *_FORGED))
    first = min(last, 3.0)
    events = [
        replace(event, at=first)
        if event.at == 0 and isinstance(event, SyncerApplied) and event.app == app
        else event
        for event in base.events
    ]
    for number in range(2 if how == "host" else 1):
        for at in (
            0.0,
            *(round(dice.uniform(3, last), 1) for _ in range(dice.choice((0, 1, 1, 2)))),
        ):
            claim = NeighbourClaims(
                at=at,
                app=app,
                namespace=other,
                how=how,
                hosts=tuple(
                    sorted(dice.sample(_HOSTS, 1 if how == "host" else dice.choice((1, 3, 6))))
                ),
                number=number,
                ready=dice.random() < 0.6,
                suspend=dice.random() < 0.3,
            )
            events.append(claim)
        if dice.random() < 0.3:
            leaves = NeighbourLeaves(
                at=round(dice.uniform(5, last), 1), app=app, namespace=other, number=number
            )
            events.append(leaves)
    if dice.random() < 0.4:  # two namespaces behind one Ingress
        for place in (APPS[app], other):
            at = round(dice.choice((0.0, dice.uniform(0, last))), 1)
            ingress = NeighbourClaims(
                at=at, app=app, namespace=place, how="host", hosts=(_INGRESS,), number=5
            )
            events.append(ingress)
    for _ in range(dice.choice((1, 2, 3))):  # new pods come to addresses that are claimed
        at, number, ip = round(dice.uniform(3, last), 1), dice.randint(0, 3), dice.choice(_HOSTS)
        moves = PodMoves(at=at, app=app, number=number, ip=ip)
        events.append(
            moves if dice.random() < 0.5 else PodStarted(at=at, app=app, number=number, ip=ip)
        )
    return replace(base, events=tuple(sorted(events, key=lambda event: event.at)))


_Where = tuple[str, str]
"""App, in upper case, and address."""


class Tenants:
    """Remembers which addresses the syncers of `NeighbourClaims` claim, and since when."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._has_neighbours = any(
            isinstance(event, NeighbourClaims) for event in judge.story.events
        )
        self._since: dict[tuple[str, _Where], float] = {}
        """Since when a living syncer of each namespace claims an address."""
        self._ups: dict[Key, float] = {}
        """Since when each of our instances is UP on every server."""

    def look(self, now: float) -> None:
        """Notes the claims and the instances of now."""
        if not self._has_neighbours:
            return
        claims = {(namespace, where) for namespace, _, where in self._claims()}
        self._since = {claim: self._since.get(claim, now) for claim in claims}
        known = self._judge.known
        ups = [
            key
            for key in self._judge.ours_of(known[0])
            if all(is_up(state.get(key)) for state in known)
        ]
        self._ups = {key: self._ups.get(key, now) for key in ups}

    def judge_loss(self, key: Key) -> None:
        """Judges that a pod's instance was removed or not added, if a neighbour claims its
        address."""
        namespace, where = _place(key)
        if any(claimed == where and whose != namespace for whose, claimed in self._since):
            raise Violation(
                "tenant",
                f"{key} is not UP, its pod is ready, and another namespace claims its address",
            )

    def is_theirs(self, listed: Listed) -> bool:
        """Whether an instance is of such a syncer."""
        return is_shelf(syncer_of(listed[0])[1])

    def judge_new(self, view: PassView, key: Key, stands: InstanceInfo) -> None:
        """Judges that a pass registered an instance of such a syncer."""
        self._judge.reached["a neighbour's registration"] += 1
        if pod_of(stands) or view.troubled or view.older:
            return  # a slice names a pod of its own namespace: nobody can tell that it is forged
        namespace, where = _place(key)
        for other, wanted in self._judge.truth.up.items():
            if (
                _place(other)[1] == where
                and _place(other)[0] != namespace
                and wanted.since <= view.begun
            ):
                raise Violation(
                    "tenant",
                    f"{key} was registered, and {other} is of a pod of another namespace there",
                )
        for other, since in self._ups.items():
            claimed = self._since.get((_place(other)[0], where), view.begun)
            if other != key and _place(other)[1] == where and max(since, claimed) < view.begun:
                raise Violation("tenant", f"{key} was registered, and {other} stood there before")

    def judge_rest(self) -> None:
        """Judges the end of a story: a syncer that is kept out has a condition that says so."""
        truth, known = self._judge.truth, self._judge.known
        for namespace, ref, where in self._claims():
            others = [
                key for key in truth.up if _place(key)[1] == where and _place(key)[0] != namespace
            ]
            if not others:
                continue
            self._judge.reached["a pod at rest whose address a neighbour claims"] += 1
            if not self._is_written(ref) or self._is_deleting(ref):
                continue
            beside = any(
                _place(key) == (namespace, where) for state in known for key in self._theirs(state)
            )
            self._judge.reached[
                f"a neighbour that {'stands beside a pod' if beside else 'is kept out'} at rest"
            ] += 1
            if self._condition(ref) != "True":
                raise Violation(
                    "tenant",
                    f"{others[0]} has its address, and no condition of {named(ref)} says so",
                )

    def _claims(self) -> Iterator[tuple[str, tuple[str, str], _Where]]:
        """Namespace, syncer, and the addresses that it claims."""
        world = self._judge.world
        services = {_named(one): one for one in world.objects("/api/v1/services")}
        slices = {
            _named(one): one for one in world.objects("/apis/discovery.k8s.io/v1/endpointslices")
        }
        for ref, syncer in self._judge.truth.shelves.items():
            if (
                "deletionTimestamp" in syncer["metadata"]
                or ref not in services
                or ref not in slices
            ):
                continue
            spec = syncer["spec"]
            if spec["mode"] == "pod":
                hosts = [entry["addresses"][0] for entry in slices[ref]["endpoints"] or ()]
            elif "hostname" in spec["service"]:
                hosts = [spec["service"]["hostname"]]
            else:
                hosts = services[ref]["spec"].get("externalIPs", [])
            yield from ((ref[0], ref, (spec["appName"].upper(), host)) for host in hosts)

    def _theirs(self, state: State) -> Iterator[Key]:
        return (key for key in self._judge.ours_of(state) if self.is_theirs(state[key]))

    def _is_written(self, ref: tuple[str, str]) -> bool:
        found = self._judge.world.objects(f"{_SLICES}/{ref[0]}/endpointslices")
        endpoints = [
            entry for one in found if _named(one) == ref for entry in one["endpoints"] or ()
        ]
        return not any("targetRef" in entry for entry in endpoints)

    def _is_deleting(self, ref: tuple[str, str]) -> bool:
        return "deletionTimestamp" in self._judge.truth.shelves[ref]["metadata"]

    def _condition(self, ref: tuple[str, str]) -> str:
        conditions = self._judge.truth.shelves[ref].get("status", {}).get("conditions", ())
        return next((one["status"] for one in conditions if one["type"] == "Conflict"), "")


def _place(key: Key) -> tuple[str, _Where]:
    """Namespace, and app and address."""
    _, namespace, _, address, *_ = key.id.split(":")
    return namespace, (key.app, address)


def _named(found: dict[str, Any]) -> tuple[str, str]:
    return found["metadata"]["namespace"], found["metadata"]["name"]
