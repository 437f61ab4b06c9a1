"""Stories in which another client registers under the id that a pod is about to get, unseen by
lists: with the status UNKNOWN, whose lease Eureka does not renew, or only on the second of two
servers.

What they are to show: `other owner` says that such an instance stays, and that no other server gets
ours in its place.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from . import events as e
from .story import QUIET, Story

if TYPE_CHECKING:
    from .stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class IdTaken(e.Event):
    """Another client registers an instance, older than any of ours."""

    app: str
    ip: str
    status: str
    peer: int | None
    """The one server that gets it; None for all."""

    def happen(self, stage: Stage) -> str:
        stranger = replace(stage.stranger("id", self.app, self.ip), status=self.status, older=True)
        if any(stage.is_ours(stranger.key, peer) for peer in range(stage.story.installation.peers)):
            return ""
        stage.world.register(stranger, peer=self.peer)
        where = "" if self.peer is None else f" on Eureka {self.peer + 1} alone"
        return f"a stranger that is {self.status} registers {stranger.key}{where}"


def with_taken_ids(base: Story) -> Story:
    """Adds an app of some pods, of whose ids another client has some."""
    dice = random.Random(f"taken {base.seed}")
    app = dice.choice(
        sorted({event.app for event in base.events if isinstance(event, e.ServiceApplied)})
    )
    begins = base.ends - QUIET
    peers, batches = dice.choice((1, 2, 2)), dice.random() < 0.7
    events: list[e.Event] = [
        *base.events,
        e.ServiceApplied(at=begins, app=app),
        e.SyncerApplied(at=begins, name=app, app=app),
    ]
    for number in range(5, 5 + dice.choice((2, 3, 6))):
        at, ip = round(begins + dice.uniform(30, 60), 1), f"10.0.0.{number + 20}"
        events.append(e.PodStarted(at=at, app=app, number=number, ip=ip))
        if dice.random() < 0.6:
            when = round(at + dice.choice((-25, -10, -3, 0, 1, 8)) * dice.random(), 1)
            status, peer = dice.choice(("UP", "UNKNOWN", "UNKNOWN")), dice.choice((None, peers - 1))
            events.append(IdTaken(at=when, app=app, ip=ip, status=status, peer=peer))
    return replace(
        base,
        installation=replace(base.installation, peers=peers, batches=batches),
        events=tuple(sorted(events, key=lambda event: event.at)),
        ends=max(event.over for event in events) + QUIET,
    )
