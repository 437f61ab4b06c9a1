"""The plan as a value: the sorted actions of a pass, the changes that are blocked, and the checksum
of its removals."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import TypeVar

from eurekube_sync.model.actions import Action, Cancel, Register, Renew, Update, removes
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.values import dataclass

A = TypeVar("A", bound=Action)


class Obstacle(StrEnum):
    """What prevents a change."""

    TAKEN = "Taken"  # another owner's instance has the id that ours needs
    # The pod registers itself under its own id, because its image still has a Eureka client
    DUPLICATE = "Duplicate"
    UNREAD = "Unread"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
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


@dataclass(frozen=True, kw_only=True)  # without slots: it keeps how its actions divide
class Plan:
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
        return tuple(a for a in self.changes if isinstance(a, Update | Cancel) and removes(a))

    @property
    def suspects(self) -> tuple[InstanceKey, ...]:
        """The keys to read uncached before anything is changed."""
        in_the_way = tuple(
            key for b in self.blocked if b.other for key in dict.fromkeys((b.key, b.other))
        )
        return tuple(action.key for action in self.changes) + in_the_way

    @property
    def in_the_way(self) -> Mapping[InstanceKey, InstanceKey]:
        """By the key of another owner's instance: our key that it blocks."""
        return {one.other: one.key for one in self.blocked if one.other}


_KINDS: Mapping[type[Action], int] = {Renew: 0, Register: 1, Update: 2, Cancel: 4}


def sorted_plan(actions: Iterable[Action], blocked: Iterable[Blocked] = ()) -> Plan:
    """Return the actions as a plan: renewals, registrations, updates, changes from UP to DOWN,
    cancels."""
    parts: tuple[list[Action], ...] = ([], [], [], [], [])
    for action in actions:
        to_down = isinstance(action, Update) and removes(action)
        parts[3 if to_down else _KINDS[type(action)]].append(action)
    return Plan(
        actions=tuple(action for part in parts for action in sorted(part, key=attrgetter("key"))),
        blocked=tuple(sorted(blocked, key=lambda b: (b.key, b.syncer))),
    )


def removal_id(actions: Iterable[Action]) -> str:
    """Return a checksum of the removals: the same set gives the same 12 hex digits, whatever else
    the pass does."""
    lines = sorted(f"{type(action).__name__} {action.key}" for action in actions if removes(action))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def renewed_instead(plan: Plan, reasons: Mapping[InstanceKey, str]) -> Plan:
    """Return the plan with the removals of these keys replaced by renewals, which keep status and
    lease."""
    if not reasons:
        return plan
    actions = (
        Renew(key=action.key, syncer=action.syncer, why=reasons[action.key], status=action.was)
        if isinstance(action, Update | Cancel) and action.key in reasons
        else action
        for action in plan.actions
    )
    return sorted_plan(actions, plan.blocked)
