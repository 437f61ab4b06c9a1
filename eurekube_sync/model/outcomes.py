"""What became of each action. A failed one is an outcome, not an exception: the others go on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property

from eurekube_sync.model.actions import Action, Register, Renew, Update
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus
from eurekube_sync.model.sources import Cause
from eurekube_sync.model.values import dataclass


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

    def of(self, action: Action) -> Outcome:
        """The same end of another action on the same instance."""
        return Outcome(
            action=action,
            result=self.result,
            detail=self.detail,
            status=self.status,
            cause=self.cause,
            lacking=self.lacking,
        )

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


@dataclass(frozen=True, kw_only=True)  # without slots: it keeps how they divide
class Outcomes:
    """All outcomes of a pass, one per key."""

    by_key: Mapping[InstanceKey, Outcome]

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> Outcomes:
        """A later outcome of the same key replaces an earlier one: such a registration follows its renewal."""
        return cls(by_key={outcome.action.key: outcome for outcome in outcomes})

    @cached_property
    def others(self) -> tuple[Outcome, ...]:
        """All but the renewals that were done, which nearly all of a pass are."""
        return tuple(o for o in self.by_key.values() if o.result is not Result.DONE or not isinstance(o.action, Renew))

    @property
    def renewed(self) -> int:
        """How many renewals were done."""
        return len(self.by_key) - len(self.others)

    @cached_property
    def failures(self) -> tuple[Outcome, ...]:
        """What the next pass has to do again, by key."""
        return tuple(sorted((one for one in self.others if one.failed), key=lambda one: one.action.key))

    @property
    def succeeded(self) -> int:
        """How many did what they were to do."""
        return self.count(Result.DONE) + self.count(Result.REGISTERED_AGAIN)

    def count(self, result: Result) -> int:
        """How many ended so."""
        return sum(one.result is result for one in self.others) + (self.renewed if result is Result.DONE else 0)
