"""What a pass may do to Eureka, as values, each with its reason and its syncer; and what became of each. A failed
one is an outcome, not an exception: the others go on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.sources import Cause, Proof
from eurekube_sync.model.values import dataclass, derive


class Grounds(StrEnum):
    """What a removal rests on. The first limit of the brake does not count positive evidence."""

    ABSENCE = "Absence"  # The endpoint is not there any more, or not ready. It could be the cluster that errs.
    TERMINATING = "Terminating"  # the endpoint says so itself
    SYNCER_DELETED = "SyncerDeleted"  # a person deletes the syncer
    DRAINED = "Drained"  # a person drains it, by annotation
    OVER_LIMIT = "OverLimit"  # a person lowered the syncer's limit
    REPLACED = "Replaced"  # another pod listens at its address and port
    POD_GONE = "PodGone"  # its pod is not in a complete list of its namespace's pods
    ORPHANED = "Orphaned"  # its namespace was listed completely and has no such syncer
    SWEPT = "Swept"
    """The same, and the CRD was installed after it was written: its syncer may have gone with an earlier CRD."""
    DUPLICATE = "Duplicate"  # its pod registers itself, and callers need no more than that

    @property
    def positive(self) -> bool:
        """Whether it is evidence that somebody wanted it so."""
        return self in (Grounds.TERMINATING, Grounds.SYNCER_DELETED, Grounds.OVER_LIMIT, Grounds.DRAINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference between what is registered and what should."""

    field: str
    was: str
    becomes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Renew:
    """Renew the lease. On a 404 `if_gone` is registered; None: it is left alone, for we do not know that it lives."""

    key: InstanceKey
    syncer: SyncerRef | None
    why: str
    if_gone: Instance | None = None
    status: InstanceStatus | None = None  # what the list showed; None when the registry could not be read


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """Register an instance that an uncached read showed absent."""

    instance: Instance
    syncer: SyncerRef
    why: str
    key: InstanceKey = field(init=False)  # the instance's

    def __post_init__(self) -> None:
        derive(self, "key", self.instance.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Register anew an instance of ours that differs, as an uncached read showed."""

    instance: Instance
    syncer: SyncerRef
    why: str
    changes: tuple[Change, ...]
    was: InstanceStatus
    stored_timestamp: int  # Unix milliseconds: a register must be newer (AbstractInstanceRegistry.register)
    proof: Proof  # of the catalog that says how it should be: an UP to DOWN is a removal
    grounds: Grounds = Grounds.ABSENCE  # of an UP to DOWN: a not-ready endpoint is no positive evidence
    override: InstanceStatus = InstanceStatus.UNKNOWN
    """A person's or a tool's status that Eureka keeps for it; UNKNOWN: none."""
    key: InstanceKey = field(init=False)  # the instance's

    def __post_init__(self) -> None:
        derive(self, "key", self.instance.key)

    @property
    def becomes(self) -> InstanceStatus:
        """What is registered afterwards. An override outlives a register of UP; a DOWN is trusted first
        (InstanceStatusOverrideRule, and DownOrStartingRule before it)."""
        if self.instance.status is not InstanceStatus.UP:
            return self.instance.status
        if self.was is InstanceStatus.OUT_OF_SERVICE:
            return self.was
        return self.instance.status if self.override is InstanceStatus.UNKNOWN else self.override


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    key: InstanceKey
    syncer: SyncerRef
    why: str
    grounds: Grounds
    proof: Proof  # of the source that shows that it should go
    was: InstanceStatus | None
    """None: an uncached read showed it absent; the DELETE makes sure of it before a finalizer goes."""


Action: TypeAlias = Renew | Register | Update | Cancel
Removal: TypeAlias = Update | Cancel


def removes(action: Action) -> bool:
    """Whether it takes an UP instance of ours from callers: a cancel of one, or UP to DOWN."""
    if isinstance(action, Update):
        return action.was is InstanceStatus.UP and action.instance.status is not InstanceStatus.UP
    return isinstance(action, Cancel) and action.was is InstanceStatus.UP


def brings_up(action: Action) -> bool:
    """Whether callers gain an UP instance by it. One that a person put out of service stays so, or becomes so again,
    whatever else of it changes."""
    if isinstance(action, Update):
        return action.was is not InstanceStatus.UP and action.becomes is InstanceStatus.UP
    return isinstance(action, Register) and action.instance.status is InstanceStatus.UP


def comes_last(action: Action) -> bool:
    """Whether it belongs to the last stage of a pass: every cancel, and UP to DOWN."""
    return isinstance(action, Cancel) or removes(action)


class Result(StrEnum):
    DONE = "Done"
    REGISTERED_AGAIN = "RegisteredAgain"  # a renewal met a 404, and the instance was registered anew
    GONE = "Gone"  # a renewal met a 404, and nothing says that the instance lives
    CONFLICT = "Conflict"  # another owner's instance is registered under our id
    FAILED = "Failed"
    HELD_BACK = "HeldBack"  # a removal that would have left no UP instance, after an add had failed
    NOT_TRIED = "NotTried"  # the pass ended before


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    action: Action
    result: Result
    detail: str = ""
    status: InstanceStatus | None = None  # what is registered now, as far as we know; None: nothing
    cause: Cause | None = None  # of a failure, where it has one of these
    lacking: bool = False  # it was renewed, and some Eureka servers lack it

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
        return len(self.by_key) - len(self.others)

    @cached_property
    def failures(self) -> tuple[Outcome, ...]:
        """What the next pass has to do again, by key."""
        return tuple(sorted((one for one in self.others if one.failed), key=lambda one: one.action.key))

    @property
    def succeeded(self) -> int:
        return self.count(Result.DONE) + self.count(Result.REGISTERED_AGAIN)

    def count(self, result: Result) -> int:
        return sum(one.result is result for one in self.others) + (self.renewed if result is Result.DONE else 0)
