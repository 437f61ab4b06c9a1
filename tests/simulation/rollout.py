"""A rolling update, as a Deployment makes it: the next pod ends when the last new one is Ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .events import Event
from .world import APPS, is_true

if TYPE_CHECKING:
    from .stage import Stage

_LOOKS_EACH = 2.0
_DEADLINE = 60.0
"""Seconds after which it stops, like a Deployment whose progress deadline is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout(Event):
    """Each pod of an app is replaced, one after the other. A new pod starts before an old one
    ends."""

    app: str
    ip: str
    gated: bool
    grace: float = 0.0

    @property
    def over(self) -> float:
        return self.at + _DEADLINE + _LOOKS_EACH + self.grace

    def happen(self, stage: Stage) -> str:
        old = [name for name in _pods(stage, self.app) if not name.startswith(f"{self.app}-new")]
        if not old or len(old) < len(_pods(stage, self.app)):
            return ""
        self._start(stage, old, 0)
        return f"a rolling update of {self.app} begins"

    def _start(self, stage: Stage, old: list[str], number: int) -> None:
        name = f"{self.app}-new-{number}"
        if stage.world.start_pod(self.app, name, self.ip, ready=True, gated=self.gated) is None:
            return
        stage.clock.at(stage.clock.time + _LOOKS_EACH, lambda: self._look(stage, old, number))

    def _look(self, stage: Stage, old: list[str], number: int) -> None:
        if stage.clock.time > self.at + _DEADLINE:
            return
        new = _pods(stage, self.app).get(f"{self.app}-new-{number}")
        if new is None:
            return
        if not new:
            stage.clock.at(stage.clock.time + _LOOKS_EACH, lambda: self._look(stage, old, number))
            return
        stage.world.end_pod(APPS[self.app], old[0], grace=self.grace)
        stage.happened(f"pod {self.app}-new-{number} is Ready, and {old[0]} goes")
        stage.judge.reached["a pod replaced by a rolling update"] += 1
        if len(old) > 1:
            self._start(stage, old[1:], number + 1)


def _pods(stage: Stage, app: str) -> dict[str, bool]:
    """The app's pods by name, and whether each is Ready."""
    return {
        pod["metadata"]["name"]: is_true(pod, "Ready")
        for pod in stage.world.pods()
        if pod["metadata"]["labels"]["app"] == app and pod["metadata"]["namespace"] == APPS[app]
    }
