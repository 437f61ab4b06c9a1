"""Stories in which the program's credentials for Kubernetes change, or fail for a while."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from . import events as e
from .story import QUIET, Story

if TYPE_CHECKING:
    from .stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialsRotate(e.Event):
    """The token of the kubeconfig is replaced by another."""

    def happen(self, stage: Stage) -> str:
        stage.world.credentials.rotate()
        return "the token of the kubeconfig is replaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialsFail(e.Event):
    """The token ends, and the kubeconfig yields no other for some seconds."""

    lasts: float

    @property
    def over(self) -> float:
        return self.at + self.lasts

    def happen(self, stage: Stage) -> str:
        stage.world.credentials.fail()
        stage.clock.at(stage.clock.time + self.lasts, lambda: self._yields_again(stage))
        return f"the kubeconfig yields no credentials for {self.lasts:g} s"

    def _yields_again(self, stage: Stage) -> None:
        stage.world.credentials.rotate()
        stage.happened("the kubeconfig yields credentials again")


def with_failing_credentials(base: Story) -> Story:
    """Adds credentials that fail for some passes, while pods change."""
    dice = random.Random(f"credentials {base.seed}")
    last = base.ends - QUIET
    apps = sorted({event.app for event in base.events if isinstance(event, e.ServiceApplied)})
    events = list(base.events)
    at = round(dice.uniform(2, last / 2), 1)
    lasts = round(dice.choice((8.0, 25.0, 60.0)) * dice.uniform(0.5, 1.2), 1)
    events.append(CredentialsFail(at=at, lasts=lasts))
    for _ in range(dice.choice((0, 1, 2))):
        events.append(CredentialsRotate(at=round(dice.uniform(2, last), 1)))
    for _ in range(dice.choice((1, 2, 3))):
        app, number = dice.choice(apps), dice.randint(0, 2)
        when = round(at + dice.uniform(0, lasts), 1)
        ends = e.PodEnds(at=when, app=app, number=number, grace=dice.choice((0.0, 5.0)))
        moves = e.PodMoves(at=when, app=app, number=number, ip=f"10.0.0.{dice.randint(1, 6)}")
        deleted = e.SyncerDeleted(at=when, name=app, app=app)
        events.append(dice.choice((ends, moves, moves, deleted)))
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        ends=max(base.ends, at + lasts + QUIET),
    )
