"""A person drains pods, and the list that shows it fails: events and troubles on top of any story.

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

_LIST = frozenset({Call.PODS})
"""The list that shows drains."""
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


def annotate(stage: Stage, path: str, *, drained: bool) -> bool:
    """Annotates the object; returns whether it was there."""
    body = {"metadata": {"annotations": {DRAIN: "true" if drained else None}}}
    status, _ = stage.world.kubernetes.call("PATCH", path, body)
    return status < 300


def story(seed: int) -> Story:
    """Gives the story of this seed with drains, and with a list of pods that fails."""
    base = chance.story(seed)
    dice = random.Random(f"drains {seed}")
    named = {event.app for event in base.events if hasattr(event, "app")}
    apps = sorted(named & APPS.keys())  # others are of the data centre, and have no pods
    last = base.ends - QUIET
    events = list(base.events)
    for _ in range(dice.choice((2, 3, 5, 8))):
        at, drained = round(dice.uniform(1, last), 1), dice.random() < 0.65
        events.append(
            PodDrained(at=at, app=dice.choice(apps), number=dice.randint(0, 2), drained=drained)
        )
    troubles = list(base.troubles)
    for _ in range(dice.choice((0, 1, 2, 3))):
        at = round(dice.uniform(0, last), 1)
        until = round(min(last, at + dice.choice((20, 60, 200))), 1)
        troubles.append(Trouble(at=at, until=until, calls=_LIST, kind=dice.choice(_KINDS)))
    return replace(
        base,
        installation=replace(base.installation, drains=True),
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=tuple(troubles),
    )
