"""The actions of a pass on Eureka, each with its reason and its syncer, and their outcomes. A
failed action is an outcome and not an exception, so that the other actions are carried out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Protocol, TypeAlias

from msgspec import Struct

from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.sources import Cause, Proof


class Grounds(StrEnum):
    """The reason of a removal."""

    ABSENCE = (
        "Absence"  # the endpoint is missing or not ready, which may be an error of the cluster
    )
    TERMINATING = "Terminating"  # the endpoint is marked as terminating
    SYNCER_DELETED = "SyncerDeleted"  # a person deletes the syncer
    DRAINED = "Drained"  # a person drains it, by annotation
    OVER_LIMIT = "OverLimit"  # a person lowered the syncer's limit
    REPLACED = "Replaced"  # another pod listens at its address and port
    POD_GONE = "PodGone"  # its pod is not in a complete list of its namespace's pods
    ORPHANED = "Orphaned"  # its namespace was listed completely and has no such syncer
    # An orphan older than the CRD: its syncer may have been deleted with an earlier CRD
    SWEPT = "Swept"
    DUPLICATE = "Duplicate"  # its pod registers itself, and callers need no more than that

    @property
    def positive(self) -> bool:
        """Whether this is evidence that the removal is wanted. The brake's first limit does not
        count such removals."""
        return self in (
            Grounds.TERMINATING,
            Grounds.SYNCER_DELETED,
            Grounds.OVER_LIMIT,
            Grounds.DRAINED,
        )


class Change(Struct, frozen=True, kw_only=True):
    """One field in which a registered instance differs from the desired one."""

    field: str
    was: str
    becomes: str


class Renew(Struct, frozen=True, kw_only=True):
    """Renew the lease. On a 404, register `if_gone`; with None register nothing, because its pod
    may be gone."""

    key: InstanceKey
    syncer: SyncerRef | None
    why: str
    if_gone: Instance | None = None
    status: InstanceStatus | None = None  # as listed; None when the registry could not be read


class Register(Struct, frozen=True, kw_only=True):
    """Register an instance that an uncached read did not find."""

    instance: Instance
    syncer: SyncerRef
    why: str

    @property
    def key(self) -> InstanceKey:
        return self.instance.key


class Update(Struct, frozen=True, kw_only=True):
    """Register an instance of ours again, because an uncached read showed that it differs."""

    instance: Instance
    syncer: SyncerRef
    why: str
    changes: tuple[Change, ...]
    was: InstanceStatus
    stored_timestamp: (
        int  # Unix milliseconds: a registration must be newer (AbstractInstanceRegistry.register)
    )
    proof: Proof  # of the catalog, because a change from UP to DOWN is a removal
    grounds: Grounds = Grounds.ABSENCE  # of a change from UP to DOWN
    override: InstanceStatus = (
        InstanceStatus.UNKNOWN
    )  # the overridden status in Eureka; UNKNOWN: none

    @property
    def key(self) -> InstanceKey:
        return self.instance.key

    @property
    def becomes(self) -> InstanceStatus:
        """The status in Eureka afterwards. A registered DOWN wins over an override, an override
        over a registered UP (DownOrStartingRule, InstanceStatusOverrideRule)."""
        if self.instance.status is not InstanceStatus.UP:
            return self.instance.status
        if self.was is InstanceStatus.OUT_OF_SERVICE:
            return self.was
        if self.override is InstanceStatus.UNKNOWN:
            return self.instance.status
        return self.override


class Cancel(Struct, frozen=True, kw_only=True):
    key: InstanceKey
    syncer: SyncerRef
    why: str
    grounds: Grounds
    proof: Proof  # of the source that shows that it has to be removed
    was: InstanceStatus | None
    """None: an uncached read did not find it. A DELETE makes sure of that before a finalizer is
    removed."""


Action: TypeAlias = Renew | Register | Update | Cancel


class Removal(Protocol):
    """What callers lose, as the brake weighs it: an UP instance in Eureka, by `Update` or `Cancel`,
    or an endpoint of an import."""

    @property
    def key(self) -> InstanceKey: ...  # of an import: its name, and the endpoint

    @property
    def syncer(self) -> SyncerRef: ...  # or the import

    @property
    def grounds(self) -> Grounds: ...

    @property
    def why(self) -> str: ...


def removes(action: Action) -> bool:
    """Whether the action is a removal: the cancel of an UP instance, or a change from UP to
    DOWN."""
    if isinstance(action, Update):
        return action.was is InstanceStatus.UP and action.instance.status is not InstanceStatus.UP
    return isinstance(action, Cancel) and action.was is InstanceStatus.UP


def brings_up(action: Action) -> bool:
    """Whether callers gain an UP instance. An instance that a person put out of service stays out
    of service."""
    if isinstance(action, Update):
        return action.was is not InstanceStatus.UP and action.becomes is InstanceStatus.UP
    return isinstance(action, Register) and action.instance.status is InstanceStatus.UP


def comes_last(action: Action) -> bool:
    """Whether the action belongs to the last stage of a pass: every cancel, and every change from
    UP to DOWN."""
    return isinstance(action, Cancel) or removes(action)


class Result(StrEnum):
    DONE = "Done"
    REGISTERED_AGAIN = (
        "RegisteredAgain"  # the renewal got a 404, and the instance was registered again
    )
    GONE = "Gone"  # the renewal got a 404, and nothing shows that the endpoint still exists
    CONFLICT = "Conflict"  # another owner's instance has the id that ours needs
    FAILED = "Failed"
    HELD_BACK = (
        "HeldBack"  # a removal that would have left no UP instance, after a registration had failed
    )
    NOT_TRIED = "NotTried"  # the pass ended before


class Outcome(Struct, frozen=True, kw_only=True):
    action: Action
    result: Result
    detail: str = ""
    status: InstanceStatus | None = None  # the last known status in Eureka; None: not registered
    cause: Cause | None = None  # of a failure
    lacking: bool = False  # it was renewed, and some Eureka servers lack it

    def of(self, action: Action) -> Outcome:
        """Return this outcome for another action on the same instance.

        A renewal is early: it knows the status from a cached list. The later action may know it
        from an uncached read, which counts more. An instance that the renewal did not find has no
        status."""
        status = self.status
        if status is not None and isinstance(action, Renew) and action.status is not None:
            status = action.status
        return Outcome(
            action=action,
            result=self.result,
            detail=self.detail,
            status=status,
            cause=self.cause,
            lacking=self.lacking,
        )

    @property
    def failed(self) -> bool:
        """Whether the next pass has to try again."""
        return self.result in (Result.FAILED, Result.HELD_BACK, Result.NOT_TRIED)

    @property
    def registered(self) -> Instance | None:
        """The instance that was registered; None for a renewal, a cancel or a failure."""
        match self.action:
            case Register() | Update() if not self.failed:
                return self.action.instance
            case Renew() if self.result is Result.REGISTERED_AGAIN:
                return self.action.if_gone
            case _:
                return None


class Outcomes(Struct, frozen=True, kw_only=True, dict=True):
    """All outcomes of a pass, one per key."""

    by_key: Mapping[InstanceKey, Outcome]

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> Outcomes:
        """Keep the last outcome of each key, such as that of a registration after a failed
        renewal."""
        return cls(by_key={outcome.action.key: outcome for outcome in outcomes})

    @cached_property
    def others(self) -> tuple[Outcome, ...]:
        """All but the successful renewals, which are nearly all outcomes of a usual pass."""
        return tuple(
            outcome
            for outcome in self.by_key.values()
            if not (outcome.result is Result.DONE and isinstance(outcome.action, Renew))
        )

    @property
    def renewed(self) -> int:
        return len(self.by_key) - len(self.others)

    @cached_property
    def failures(self) -> tuple[Outcome, ...]:
        """The outcomes that the next pass has to try again, sorted by key."""
        failures = [outcome for outcome in self.others if outcome.failed]
        return tuple(sorted(failures, key=lambda outcome: outcome.action.key))

    @property
    def succeeded(self) -> int:
        return self.count(Result.DONE) + self.count(Result.REGISTERED_AGAIN)

    def count(self, result: Result) -> int:
        counted = [outcome for outcome in self.others if outcome.result is result]
        return len(counted) + (self.renewed if result is Result.DONE else 0)
