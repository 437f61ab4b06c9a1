"""Decisions of people beside specs: they release held removals, abandon a deletion, delete a whole
namespace."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from .events import Event
from .releases import APPROVE
from .world import APPS, syncer_path

if TYPE_CHECKING:
    from .stage import Stage

_PLAN_ID = re.compile(r"--approve ([0-9a-f]{12})")
_AGAIN = 5.0
"""Seconds between two tries to create a namespace while the old one is still being deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalsReleased(Event):
    """A person annotates a syncer, so that its removals are released until some time."""

    name: str
    app: str
    lasts: float
    """Seconds from now; more than an hour, or less than zero, is a mistake."""

    def happen(self, stage: Stage) -> str:
        until = datetime.fromtimestamp(int(stage.clock.now() + self.lasts), UTC).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        )
        there = stage.world.annotate(syncer_path(APPS[self.app], self.name), {APPROVE: until})
        return (
            f"a person releases the removals of syncer {self.name} for {self.lasts:g} s"
            if there
            else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReleased(Event):
    """A person reads in a condition what is held, and runs the program with the plan id, at once or
    late."""

    late: float = 0.0

    @property
    def over(self) -> float:
        return self.at + self.late

    def happen(self, stage: Stage) -> str:
        syncers = stage.judge.truth.syncers
        said = (syncers[ref].messages.get("RemovalHeld", "") for ref in sorted(syncers))
        ids = [found[1] for message in said if (found := _PLAN_ID.search(message))]
        if not ids:
            return ""
        if not self.late:
            return stage.run_approving(ids[0])
        stage.clock.at(
            stage.clock.time + self.late, lambda: stage.happened(stage.run_approving(ids[0]))
        )
        return f"a person reads that {ids[0]} is held"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionAbandoned(Event):
    """A person annotates a syncer, so that its deletion waits for nothing."""

    name: str
    app: str

    def happen(self, stage: Stage) -> str:
        there = stage.world.annotate(
            syncer_path(APPS[self.app], self.name), {"eurekube.io/abandon": "true"}
        )
        return f"a person abandons the deletion of syncer {self.name}" if there else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceDeleted(Event):
    """A person deletes a namespace with all that is in it, and creates it again when it is gone."""

    namespace: str
    lasts: float

    @property
    def over(self) -> float:
        return self.at + self.lasts

    def happen(self, stage: Stage) -> str:
        if not stage.world.delete_namespace(self.namespace):
            return ""
        stage.clock.at(stage.clock.time + self.lasts, lambda: self._created(stage))
        return f"a person deletes namespace {self.namespace}"

    def _created(self, stage: Stage) -> None:
        if stage.world.create_namespace(self.namespace):
            stage.happened(f"namespace {self.namespace} is created again")
        elif stage.clock.time < stage.story.ends - _AGAIN:
            stage.clock.at(stage.clock.time + _AGAIN, lambda: self._created(stage))
