"""What a pass may do to Eureka, as values: renew, register, update, cancel; each with its reason and its syncer."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TypeAlias, assert_never

from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.sources import Proof
from eurekube_sync.model.values import dataclass, derive


class Grounds(StrEnum):
    """What a removal rests on. The first limit of the brake does not count positive evidence."""

    ABSENCE = "Absence"
    """The endpoint is not there any more, or not ready. It could be the cluster that errs."""
    TERMINATING = "Terminating"
    """The endpoint says so itself."""
    SYNCER_DELETED = "SyncerDeleted"
    """A person deletes the syncer."""
    DRAINED = "Drained"
    """A person drains it, by annotation."""
    OVER_LIMIT = "OverLimit"
    """A person lowered the syncer's limit."""
    REPLACED = "Replaced"
    """Another pod listens at its address and port."""
    POD_GONE = "PodGone"
    """Its pod is not in a complete list of its namespace's pods."""
    ORPHANED = "Orphaned"
    """Its namespace was listed completely and has no such syncer."""
    SWEPT = "Swept"
    """The same, and the CRD was installed after it was written: its syncer may have gone with an earlier CRD."""
    DUPLICATE = "Duplicate"
    """Its pod registers itself, and callers need no more than that."""

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
    status: InstanceStatus | None = None
    """What the list showed; None when the registry could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """Register an instance that an uncached read showed absent."""

    instance: Instance
    syncer: SyncerRef
    why: str
    key: InstanceKey = field(init=False)
    """The instance's."""

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
    stored_timestamp: int
    """Unix milliseconds: a register must be newer (AbstractInstanceRegistry.register)."""
    proof: Proof
    """Of the catalog that says how it should be: an UP to DOWN is a removal."""
    grounds: Grounds = Grounds.ABSENCE
    """Of an UP to DOWN: a not-ready endpoint is no positive evidence."""
    override: InstanceStatus = InstanceStatus.UNKNOWN
    """A person's or a tool's status that Eureka keeps for it; UNKNOWN: none."""
    key: InstanceKey = field(init=False)
    """The instance's."""

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
    """Cancel an instance of ours."""

    key: InstanceKey
    syncer: SyncerRef
    why: str
    grounds: Grounds
    proof: Proof
    """Of the source that shows that it should go."""
    was: InstanceStatus | None
    """None: an uncached read showed it absent; the DELETE makes sure of it before a finalizer goes."""


Action: TypeAlias = Renew | Register | Update | Cancel
Removal: TypeAlias = Update | Cancel


def removes(action: Action) -> bool:
    """Whether it takes an UP instance of ours from callers: a cancel of one, or UP to DOWN."""
    match action:
        case Cancel():
            return action.was is InstanceStatus.UP
        case Update():
            return action.was is InstanceStatus.UP and action.instance.status is not InstanceStatus.UP
        case Renew() | Register():
            return False
        case _:  # pragma: no cover
            assert_never(action)


def brings_up(action: Action) -> bool:
    """Whether callers gain an UP instance by it. One that a person put out of service stays so, or becomes so again,
    whatever else of it changes."""
    match action:
        case Register():
            return action.instance.status is InstanceStatus.UP
        case Update():
            return action.was is not InstanceStatus.UP and action.becomes is InstanceStatus.UP
        case Renew() | Cancel():
            return False
        case _:  # pragma: no cover
            assert_never(action)


def comes_last(action: Action) -> bool:
    """Whether it belongs to the last stage of a pass: every cancel, and UP to DOWN."""
    return isinstance(action, Cancel) or removes(action)
