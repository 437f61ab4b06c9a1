"""Services at the ports of nodes, and stories in which nodes come, turn unready and leave."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .apart import PodBehind, SyncerLeaves, Way, named, serve, unread
from .events import Event
from .story import QUIET, Story
from .troubles import Call
from .truth import Ref
from .world import FEW, Key, is_true

if TYPE_CHECKING:
    from .stage import Stage

_NODES = "/api/v1/nodes"
_ADDRESSES = {f"front-{number}": f"10.9.1.{number}" for number in (1, 2, 3)} | {
    "back-1": "10.9.2.1"
}
_TAINTS = ("ToBeDeletedByClusterAutoscaler", "node.kubernetes.io/out-of-service")
_EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"
_HOW_TO_LEAVE = (*_TAINTS, _EXCLUDED, "deleted", "deleted")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesServed(Event):
    """A person makes a Service with a node port, and its syncer."""

    app: str
    selected: bool = True
    """Whether the syncer selects nodes by their label."""
    local: bool = False
    """Whether only nodes with an endpoint answer calls."""

    def happen(self, stage: Stage) -> str:
        policy = "Local" if self.local else "Cluster"
        reached: dict[str, Any] = {"address": "NodePort"}
        if self.selected:
            reached["nodeSelector"] = {"pool": "front"}
        service = {"type": "NodePort", "externalTrafficPolicy": policy}
        return serve(stage, "node", self.app, service, {"mode": "service", "service": reached})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJoins(Event):
    """A node comes, or is as new again."""

    node: str
    ready: bool = True

    def happen(self, stage: Stage) -> str:
        stage.world.delete(f"{_NODES}/{self.node}")
        addresses = [{"type": "InternalIP", "address": _ADDRESSES[self.node]}]
        node = {
            "metadata": {"name": self.node, "labels": {"pool": self.node.partition("-")[0]}},
            "status": {"addresses": addresses, "conditions": _conditions(self.ready)},
        }
        stage.world.kubernetes.call("POST", _NODES, node)
        return f"node {self.node} joins, {'ready' if self.ready else 'not ready'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTurns(Event):
    """A node becomes ready, or not."""

    node: str
    ready: bool

    def happen(self, stage: Stage) -> str:
        told = {"status": {"conditions": _conditions(self.ready)}}
        path = f"{_NODES}/{self.node}/status"
        status, _ = stage.world.kubernetes.call("PATCH", path, told)
        turns = f"node {self.node} turns {'ready' if self.ready else 'unready'}"
        return turns if status < 300 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLeaves(Event):
    """A node is marked as one that leaves, or is deleted."""

    node: str
    how: str
    """A taint, a label, or `deleted`."""

    def happen(self, stage: Stage) -> str:
        path = f"{_NODES}/{self.node}"
        if self.how == "deleted":
            return f"node {self.node} is deleted" if stage.world.delete(path) else ""
        changed: dict[str, Any] = {"metadata": {"labels": {self.how: ""}}}
        if self.how in _TAINTS:
            changed = {"spec": {"taints": [{"key": self.how, "effect": "NoSchedule"}]}}
        status, _ = stage.world.kubernetes.call("PATCH", path, changed)
        return f"node {self.node} gets {self.how}" if status < 300 else ""


def _conditions(ready: bool) -> list[dict[str, str]]:
    return [{"type": "Ready", "status": str(ready)}]


def with_node_ports(base: Story) -> Story:
    """Adds a Service at node ports, nodes that come and leave, and often a list of them that
    fails."""
    dice = random.Random(f"node ports {base.seed}")
    app, last = dice.choice(FEW), base.ends - QUIET
    local = dice.random() < 0.3
    served = NodesServed(at=0.0, app=app, selected=dice.random() < 0.7, local=local)
    events: list[Event] = [*base.events, served]
    for node in dice.sample(tuple(_ADDRESSES), dice.choice((2, 3, 4))):
        events.append(NodeJoins(at=0.0, node=node, ready=dice.random() < 0.9))
    places = tuple(_ADDRESSES) if local else ("node-1",)
    for node in dice.sample(places, min(len(places), dice.choice((1, 2)))):
        events.append(PodBehind(at=0.0, kind="node", app=app, node=node))
    for _ in range(dice.choice((2, 3, 5, 7))):
        events.append(_of_a_node(dice, app, places, round(dice.uniform(3, last), 1)))
    if dice.random() < 0.3:
        events.append(SyncerLeaves(at=round(dice.uniform(20, last), 1), kind="node", app=app))
    troubles = list(base.troubles)
    if dice.random() < 0.7:
        trouble = unread(dice, Call.NODES, last)
        troubles.append(trouble)
        for _ in range(dice.choice((1, 2, 3))):
            events.append(
                _of_a_node(dice, app, places, round(dice.uniform(trouble.at, trouble.until), 1))
            )
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=tuple(troubles),
    )


def _of_a_node(dice: random.Random, app: str, places: tuple[str, ...], at: float) -> Event:
    node, ready = dice.choice(tuple(_ADDRESSES)), dice.random() < 0.6
    leaves = NodeLeaves(at=at, node=node, how=dice.choice(_HOW_TO_LEAVE))
    joins = NodeJoins(at=at, node=node, ready=dice.random() < 0.8)
    turns = NodeTurns(at=at, node=node, ready=ready)
    pod = PodBehind(at=at, kind="node", app=app, node=dice.choice(places), ready=ready)
    return dice.choice((leaves, leaves, joins, turns, pod))


class AtNodes(Way):
    """Services at the ports of nodes."""

    kind = "node"

    def written(self) -> Iterator[tuple[Key, bool]]:
        for service in self._judge.world.objects("/api/v1/services"):
            ref = named(service)
            if not self.is_living(ref):
                continue
            number = service["spec"]["ports"][0]["nodePort"]
            local = service["spec"]["externalTrafficPolicy"] == "Local"
            behind = self._behind(ref)
            for node in self._staying(ref):
                name = node["metadata"]["name"]
                if local and behind and name not in behind:
                    continue  # it answers no call
                ready = behind.get(name, False) if local else any(behind.values())
                address = node["status"]["addresses"][0]["address"]
                key = self._judge.truth.key(ref[0], ref[1], address, number)
                yield key, ready and is_true(node, "Ready")

    def is_unserved(self, ref: Ref) -> bool:
        """Whether the Service is gone, or no node is left for it."""
        return super().is_unserved(ref) or not any(self._staying(ref))

    def _staying(self, ref: Ref) -> Iterator[dict[str, Any]]:
        """The nodes that a syncer selects, and that have an address and do not leave."""
        syncer = self._judge.truth.apart[ref]
        wished = syncer["spec"]["service"].get("nodeSelector", {})
        for node in self._judge.world.objects(_NODES):
            labels = node["metadata"].get("labels", {})
            addressed = node.get("status", {}).get("addresses")
            if addressed and wished.items() <= labels.items() and not _leaves(node):
                yield node

    def _behind(self, ref: Ref) -> dict[str, bool]:
        """Whether a pod behind a Service is ready, by the node of each. A pod on a node that does
        not exist is in no slice, and one that terminates is not ready."""
        nodes = {node["metadata"]["name"] for node in self._judge.world.objects(_NODES)}
        behind: dict[str, bool] = {}
        for pod in self._judge.world.pods():
            metadata, node = pod["metadata"], pod["spec"]["nodeName"]
            if (metadata["namespace"], metadata["labels"]["app"]) != ref or node not in nodes:
                continue
            ready = is_true(pod, "Ready") and "deletionTimestamp" not in metadata
            behind[node] = ready or behind.get(node, False)
        return behind


def _leaves(node: Mapping[str, Any]) -> bool:
    taints = {taint["key"] for taint in node.get("spec", {}).get("taints", ())}
    marked = _EXCLUDED in node["metadata"].get("labels", {}) or not taints.isdisjoint(_TAINTS)
    return marked or "deletionTimestamp" in node["metadata"]
