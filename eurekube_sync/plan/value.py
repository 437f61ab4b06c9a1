"""The values of this folder: what a rule changes in the claims, and the plan: the sorted actions of
a pass, the changes that are blocked, and the checksum of its removals."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import TypeVar

from msgspec import Struct, field

from eurekube_sync.desired.claims import Serving
from eurekube_sync.model.actions import (
    Action,
    Cancel,
    Register,
    Removal,
    Renew,
    Update,
    removes,
)
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import SyncerRef

A = TypeVar("A", bound=Action)


class Ruling(Struct, frozen=True, kw_only=True):
    """What one rule changes."""

    claims: Mapping[SyncerRef, Serving] = field(default_factory=dict)
    """The claims that it changes, as they are now."""
    to_read: tuple[InstanceKey, ...] = ()
    """To be read uncached before a new instance is registered, because the list may not yet show
    them."""


UNCHANGED = Ruling()


class Obstacle(StrEnum):
    """What prevents a change."""

    TAKEN = "Taken"  # another owner's instance has the id that ours needs
    # The pod registers itself under its own id, because its image still has a Eureka client
    DUPLICATE = "Duplicate"
    UNREAD = "Unread"


class Blocked(Struct, frozen=True, kw_only=True):
    """A wanted instance that cannot be registered now, or one of ours that cannot be changed."""

    key: InstanceKey
    syncer: SyncerRef
    why: str
    obstacle: Obstacle
    other: InstanceKey | None = None  # the instance that is in the way, under any key
    late: bool = False  # the pass ended before the uncached read was tried

    @property
    def conflict(self) -> bool:
        """Whether another instance is in the way, rather than a read that failed."""
        return self.obstacle is not Obstacle.UNREAD


class Plan(Struct, frozen=True, kw_only=True, dict=True):
    """All actions of a pass, sorted by kind and key; equal inputs give equal plans."""

    actions: tuple[Action, ...] = ()
    blocked: tuple[Blocked, ...] = ()

    def of(self, kind: type[A]) -> tuple[A, ...]:
        return tuple(action for action in self.actions if isinstance(action, kind))

    @cached_property
    def renewals(self) -> tuple[Renew, ...]:
        return self.of(Renew)

    @cached_property
    def changes(self) -> tuple[Register | Update | Cancel, ...]:
        """All actions but the renewals."""
        return tuple(action for action in self.actions if not isinstance(action, Renew))

    @property
    def removals(self) -> tuple[Update | Cancel, ...]:
        """The actions that take an UP instance from callers: cancels of UP instances, and changes
        from UP to DOWN."""
        removals = []
        for change in self.changes:
            if isinstance(change, Update | Cancel) and removes(change):
                removals.append(change)
        return tuple(removals)

    @property
    def suspects(self) -> tuple[InstanceKey, ...]:
        """The keys to read uncached before anything is changed."""
        keys = [change.key for change in self.changes]
        for blocked in self.blocked:
            if blocked.other is None:
                continue
            keys.append(blocked.key)
            if blocked.other != blocked.key:
                keys.append(blocked.other)
        return tuple(keys)

    @property
    def in_the_way(self) -> Mapping[InstanceKey, InstanceKey]:
        """By the key of another owner's instance: our key that it blocks."""
        return {blocked.other: blocked.key for blocked in self.blocked if blocked.other}


_KINDS: Mapping[type[Action], int] = {Renew: 0, Register: 1, Update: 2, Cancel: 4}
_TO_DOWN = 3  # an update from UP to DOWN


def sorted_plan(actions: Iterable[Action], blocked: Iterable[Blocked] = ()) -> Plan:
    """Return the actions as a plan: renewals, registrations, updates, changes from UP to DOWN,
    cancels."""
    parts: tuple[list[Action], ...] = ([], [], [], [], [])
    for action in actions:
        kind = _KINDS[type(action)]
        if isinstance(action, Update) and removes(action):
            kind = _TO_DOWN
        parts[kind].append(action)
    in_order: list[Action] = []
    for part in parts:
        in_order += sorted(part, key=attrgetter("key"))
    blocked_in_order = sorted(blocked, key=attrgetter("key", "syncer"))
    return Plan(actions=tuple(in_order), blocked=tuple(blocked_in_order))


def removal_id(removals: Iterable[Removal]) -> str:
    """Return a checksum of the removals: the same set gives the same 12 hex digits, whatever else
    the pass does."""
    return checksum(f"{type(removal).__name__} {removal.key}" for removal in removals)


def checksum(lines: Iterable[str]) -> str:
    """Return 12 hex digits that are equal for the same lines in any order."""
    text = "\n".join(sorted(lines))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def renewed_instead(plan: Plan, reasons: Mapping[InstanceKey, str]) -> Plan:
    """Return the plan with the removals of these keys replaced by renewals, which keep status and
    lease."""
    if not reasons:
        return plan
    actions: list[Action] = []
    for action in plan.actions:
        if isinstance(action, Update | Cancel) and action.key in reasons:
            why = reasons[action.key]
            action = Renew(key=action.key, syncer=action.syncer, why=why, status=action.was)
        actions.append(action)
    return sorted_plan(actions, plan.blocked)
