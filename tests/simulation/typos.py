"""Stories in which the selectors of Services are broken for a while.

What they are to show: `overrides` says that what a person put out of service stays so.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from . import events as e
from .story import QUIET, Story
from .world import APPS, OF_THE_FIRST_TEAM

if TYPE_CHECKING:
    from .stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorBroken(e.Event):
    """The Service of an app selects no pod for some seconds, as by a typo in a chart."""

    app: str
    lasts: float

    @property
    def over(self) -> float:
        return self.at + self.lasts

    def happen(self, stage: Stage) -> str:
        if not self._select(stage, f"{self.app}s"):
            return ""
        stage.clock.at(stage.clock.time + self.lasts, lambda: self._mended(stage))
        return f"Service {self.app} selects no pod"

    def _mended(self, stage: Stage) -> None:
        if self._select(stage, self.app):
            stage.happened(f"Service {self.app} selects its pods again")

    def _select(self, stage: Stage, label: str) -> bool:
        path = f"/api/v1/namespaces/{APPS[self.app]}/services/{self.app}"
        body = {"spec": {"selector": {"app": label}}}
        status, _ = stage.world.kubernetes.call("PATCH", path, body)
        return status < 300


def with_a_broken_selector(base: Story) -> Story:
    """Adds apps of which some instances are out of service, and whose selectors break for some
    passes."""
    dice = random.Random(f"selectors {base.seed}")
    apps = dice.sample(OF_THE_FIRST_TEAM, dice.choice((1, 2, 3)))
    begins = base.ends - QUIET
    out = round(begins + dice.uniform(35, 45), 1)
    breaks = round(out + dice.uniform(1, 60), 1)
    lasts = round(dice.choice((3.0, 8.0, 15.0, 35.0, 90.0)) * dice.uniform(0.8, 1.2), 1)
    events: list[e.Event] = list(base.events)
    for place, app in enumerate(apps):
        events += [
            e.ServiceApplied(at=begins, app=app),
            e.SyncerApplied(at=begins, name=app, app=app),
            *(
                e.PodStarted(
                    at=begins, app=app, number=number, ip=f"10.0.7.{10 * place + number + 1}"
                )
                for number in range(dice.choice((1, 2, 3)))
            ),
        ]
    events += [e.PersonOverrides(at=out, which=which) for which in range(dice.choice((1, 3, 5)))]
    events += [
        SelectorBroken(at=breaks, app=app, lasts=lasts) for app in apps if dice.random() < 0.8
    ]
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        ends=max(event.over for event in events) + QUIET,
    )
