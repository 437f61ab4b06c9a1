"""What became of each action. A failed one is an outcome, not an exception: the others go on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from eurekube_sync.model.actions import Action, Register, Renew, Update
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus
from eurekube_sync.model.sources import Cause


class Result(StrEnum):
    """How an action ended."""

    DONE = "Done"
    REGISTERED_AGAIN = "RegisteredAgain"
    """A renewal met a 404, and the instance was registered anew."""
    GONE = "Gone"
    """A renewal met a 404, and nothing says that the instance lives."""
    CONFLICT = "Conflict"
    """Another owner's instance is registered under our id."""
    FAILED = "Failed"
    HELD_BACK = "HeldBack"
    """A removal that would have left no UP instance, after an add had failed."""
    NOT_TRIED = "NotTried"
    """The pass ended before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One action and its end."""

    action: Action
    result: Result
    detail: str = ""
    status: InstanceStatus | None = None
    """What is registered now, as far as we know; None: nothing."""
    cause: Cause | None = None
    """Of a failure, where it has one of these."""
    lacking: bool = False
    """It was renewed, and some Eureka servers lack it."""

    @property
    def failed(self) -> bool:
        """Whether the next pass has it to do again."""
        return self.result in (Result.FAILED, Result.HELD_BACK, Result.NOT_TRIED)

    @property
    def registered(self) -> Instance | None:
        """What it registered; None where it only renewed, cancelled, or failed."""
        match self.action:
            case Register() | Update() if not self.failed:
                return self.action.instance
            case Renew() if self.result is Result.REGISTERED_AGAIN:
                return self.action.if_gone
            case _:
                return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """All outcomes of a pass, one per key."""

    by_key: Mapping[InstanceKey, Outcome]

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> Outcomes:
        """A later outcome of the same key replaces an earlier one: such a registration follows its renewal."""
        return cls(by_key={outcome.action.key: outcome for outcome in outcomes})

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """What the next pass has to do again, by key."""
        return tuple(self.by_key[key] for key in sorted(key for key, one in self.by_key.items() if one.failed))

    @property
    def succeeded(self) -> int:
        """How many did what they were to do."""
        return self.count(Result.DONE) + self.count(Result.REGISTERED_AGAIN)

    def count(self, result: Result) -> int:
        """How many ended so."""
        return sum(outcome.result is result for outcome in self.by_key.values())
