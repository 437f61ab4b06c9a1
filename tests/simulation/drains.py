"""A person drains pods and nodes, and the lists that show it fail: events and troubles on top of
any story.

Apart from the other stories, which stay the same of each seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from . import chance
from .events import Event
from .story import QUIET, Story
from .troubles import Call, Kind, Trouble
from .world import APPS, DRAIN

if TYPE_CHECKING:
    from .stage import Stage

_LISTS = frozenset({Call.PODS, Call.NODES})
"""The lists that show drains of pods and of nodes."""
_KINDS = (
    Kind.TIMEOUT_BEFORE,
    Kind.ERROR_503,
    Kind.FORBIDDEN,
    Kind.FORBIDDEN,
    Kind.EMPTY,
    Kind.CUT,
    Kind.PAGE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDrained(Event):
    """A person annotates a pod, or removes the annotation."""

    app: str
    number: int
    drained: bool = True

    def happen(self, stage: Stage) -> str:
        name = f"{self.app}-{self.number}"
        there = annotate(
            stage, f"/api/v1/namespaces/{APPS[self.app]}/pods/{name}", drained=self.drained
        )
        return (
            f"a person {'drains' if self.drained else 'takes the drain off'} pod {name}"
            if there
            else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDrained(Event):
    """A person annotates a node, or removes the annotation; it counts for all its pods."""

    number: int
    drained: bool = True

    def happen(self, stage: Stage) -> str:
        name = f"node-{self.number}"
        there = annotate(stage, f"/api/v1/nodes/{name}", drained=self.drained)
        return (
            f"a person {'drains' if self.drained else 'takes the drain off'} {name}"
            if there
            else ""
        )


def annotate(stage: Stage, path: str, *, drained: bool) -> bool:
    """Annotates the object; returns whether it was there."""
    body = {"metadata": {"annotations": {DRAIN: "true" if drained else None}}}
    status, _ = stage.world.kubernetes.call("PATCH", path, body)
    return status < 300


def story(seed: int) -> Story:
    """Gives the story of this seed with drains, two nodes, and failing lists of pods and nodes."""
    base = chance.story(seed)
    dice = random.Random(f"drains {seed}")
    apps = sorted({event.app for event in base.events if hasattr(event, "app")})
    last = base.ends - QUIET
    events = list(base.events)
    for _ in range(dice.choice((2, 3, 5, 8))):
        at, drained = round(dice.uniform(1, last), 1), dice.random() < 0.65
        pod = PodDrained(at=at, app=dice.choice(apps), number=dice.randint(0, 2), drained=drained)
        events.append(
            pod
            if dice.random() < 0.7
            else NodeDrained(at=at, number=dice.randint(1, 2), drained=drained)
        )
    troubles = list(base.troubles)
    for _ in range(dice.choice((0, 1, 2, 3))):
        at = round(dice.uniform(0, last), 1)
        until = round(min(last, at + dice.choice((20, 60, 200))), 1)
        calls = dice.choice((_LISTS, frozenset({Call.PODS}), frozenset({Call.NODES})))
        troubles.append(Trouble(at=at, until=until, calls=calls, kind=dice.choice(_KINDS)))
    return replace(
        base,
        installation=replace(base.installation, drains=True),
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=tuple(troubles),
    )
