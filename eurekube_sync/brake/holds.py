"""The limits of the brake, and which removals a pass holds, why, and the sentences about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import inf
from typing import TypeVar

from msgspec import Struct, field

from eurekube_sync.brake.approval import PlanId
from eurekube_sync.brake.evidence import SYNCER_MISSING, Evidence, PodState, evidence_of
from eurekube_sync.model.actions import Cancel, Grounds, Removal
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import Pods, SyncerRef
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted, one_or_more
from eurekube_sync.plan.value import Plan, removal_id, renewed_instead

R = TypeVar("R", bound=Removal)
_MOST_TEXTS = 3  # of holds in one sentence


class BrakeLimits(Struct, frozen=True, kw_only=True):
    """The thresholds of the brake."""

    loss_percent: float = 30.0  # of all UP instances that we own, or of those of one app ...
    loss_floor: float = 10  # ... and more than this many of all ...
    app_loss_floor: float = 10  # ... or of one app, without positive evidence
    apps_percent: float = 5.0  # of our apps that have an UP instance, going to none ...
    apps_floor: float = 1  # ... or this many, whichever is more
    asked_percent: float = 20  # of our apps, going to none because a person asked for it ...
    asked_floor: float = 10  # ... and more than this many; both
    confirm_after: float = 20
    """Seconds from the first pass that sees the removal to one that may confirm it; 0: no wait. For
    an app that loses its last UP instance without evidence, and for dead pods among too many
    removals."""


class Brake(Struct, frozen=True, kw_only=True):
    """The brake of one pass: the limits, and what was released, seen before or read for it."""

    limits: BrakeLimits = field(default_factory=BrakeLimits)
    freed_by_annotation: frozenset[SyncerRef] = frozenset()
    """Their removals are neither counted nor held."""
    approval: PlanId | None = None
    approved_before: frozenset[InstanceKey] = frozenset()
    """By an `approval`, when this pass was weighed before: counted, but not held."""
    seen: Mapping[tuple[SyncerRef, str], float] = field(default_factory=dict)
    """Seconds since each removal that awaits confirmation was first seen, by syncer and mark."""
    confirm_within: float = inf  # seconds in which a pass has to see it again
    pods: Pods = field(default_factory=dict)
    """Of namespaces where removals would be held; empty until they are read."""


HOLD_REASONS = (
    Reason.TOO_MANY_REMOVALS,  # the whole pass would remove too much
    # The syncers may have been deleted with an earlier CRD, and may be created again.
    Reason.CRD_INSTALLED,
    # An app would lose its last UP instance without evidence, or dead pods are among too many
    # removals.
    Reason.AWAITING_CONFIRMATION,
)
"""Why removals are held: the reasons of the condition `RemovalHeld`."""


_ENDING_BY_THEMSELVES = frozenset(
    {Reason.AWAITING_CONFIRMATION, Reason.REGISTRY_YOUNG, Reason.SERVER_UNSEEN}
)


def seen_as(removal: Removal, *, dead: bool) -> str:
    """Return what a pass remembers of a removal that it saw. That its pod was dead is more than
    that it was unready: only that lets it go among too many. And that its pod was unready says
    nothing of a syncer that is missing in a list."""
    if dead:
        return f"gone {removal.key}"
    if removal.grounds in SYNCER_MISSING:
        return f"orphan {removal.key}"
    return str(removal.key)


class Hold(Struct, frozen=True, kw_only=True):
    """Removals that are held for one reason."""

    reason: Reason  # of HOLD_REASONS
    among: str = ""  # of dead pods: why the removals that they are among are held, as in `why`
    why: str  # the numbers, as a sentence without its end
    wait: str = ""  # what makes an approval unnecessary, as a clause
    removals: tuple[Removal, ...]
    syncer: SyncerRef | None = None  # None where the removals may be of several syncers
    mark: str = ""  # of removals that await confirmation: equal marks are the same removals
    dead: bool = False  # it awaits a second pass that sees its pods dead
    first: bool = False  # no earlier pass saw it, or too long ago: its wait begins

    @property
    def text(self) -> str:
        """All that a person needs to know of it, as a sentence without its end."""
        if self.among:
            return f"{self.among}; {self.own_text}"
        return self.own_text

    @property
    def own_text(self) -> str:
        """The text without that of `among`."""
        why = self.why
        if self.among:
            why = f"of these, {why}"
        if self.wait:
            return f"{why} ({self.wait})"
        return why

    @property
    def sightings(self) -> tuple[tuple[SyncerRef, str], ...]:
        """What a later pass of this process needs to confirm the removals: the mark of all, and of
        each alone."""
        if self.syncer is None or not self.mark:
            return ()
        marks = [self.mark]
        for removal in self.removals:
            marks.append(seen_as(removal, dead=False))
            if self.dead:  # who saw its pod dead saw as well that it does not serve
                marks.append(seen_as(removal, dead=True))
        return tuple((self.syncer, mark) for mark in marks)

    @property
    def for_a_person(self) -> bool:
        """Whether a person may have to decide. What awaits confirmation, or what Eureka's list may
        lack for a while, goes or stays with the next passes."""
        return self.reason not in _ENDING_BY_THEMSELVES

    def without(self, keys: Collection[InstanceKey]) -> Hold:
        """Return the hold without the removals with these keys."""
        left = []
        for removal in self.removals:
            if removal.key not in keys:
                left.append(removal)
        return replace(self, removals=tuple(left))


class Held(Struct, frozen=True, kw_only=True):
    """All held removals of a pass; each is in one hold."""

    plan_id: str  # for `run --approve`: a checksum over these removals alone
    holds: tuple[Hold, ...]
    awaited: tuple[Hold, ...] = ()
    """What a second pass can confirm, although another hold may have it in this pass."""
    pods: Mapping[InstanceKey, PodState] = field(default_factory=dict)
    """The pods behind the removals, as far as they were read."""

    @property
    def for_a_person(self) -> tuple[Removal, ...]:
        """The removals that a person may have to decide about."""
        removals: list[Removal] = []
        for hold in self.holds:
            if hold.for_a_person:
                removals += hold.removals
        return tuple(removals)

    def evidence(self, syncer: SyncerRef | None = None) -> Evidence | None:
        """Return what the pods say of all removals that wait for a person, or of one syncer's; None
        if there are none."""
        removals = []
        for removal in self.for_a_person:
            if syncer is None or removal.syncer == syncer:
                removals.append(removal)
        if removals:
            return evidence_of(removals, self.pods)
        return None

    @property
    def removals(self) -> tuple[Removal, ...]:
        """All held removals, by key."""
        removals = by_key(self.holds).values()
        return tuple(sorted(removals, key=lambda removal: removal.key))

    @property
    def reason(self) -> str:
        """The texts of the first holds, as a sentence without its end."""
        by_text = {hold.text: hold for hold in self.holds}
        if len(by_text) == 1:
            return self.holds[0].text
        first_holds = list(by_text.values())[:_MOST_TEXTS]
        shown = []
        before = ""
        for number, hold in enumerate(first_holds, 1):
            text = hold.text
            if hold.among == before:  # it need not be told again
                text = hold.own_text
            shown.append(f"({number}) {text}")
            before = hold.why
        more = len(by_text) - len(first_holds)
        if more:
            shown.append(f"and {more} more")
        return "; ".join(shown)


def by_key(holds: Iterable[Hold]) -> dict[InstanceKey, Removal]:
    """Return the removals of all holds, each once."""
    removals: dict[InstanceKey, Removal] = {}
    for hold in holds:
        for removal in hold.removals:
            removals.setdefault(removal.key, removal)
    return removals


def not_held(removals: Iterable[R], holds: Iterable[Hold]) -> list[R]:
    """Return the removals that no hold has."""
    held = by_key(holds)
    return [removal for removal in removals if removal.key not in held]


def held_of(holds: Iterable[Hold], awaited: Iterable[Hold] = ()) -> Held | None:
    """Combine the holds; None without any removal. A removal of two holds stays in the first.
    `awaited` would await confirmation if no other hold had them; the holds that do need not be
    given again."""
    taken: set[InstanceKey] = set()
    kept = []
    for hold in holds:
        own = hold.without(taken)
        taken.update(removal.key for removal in own.removals)
        if own.removals:
            kept.append(own)
    if not kept:
        return None
    to_confirm = []
    # What awaits in this pass comes first: the status of a syncer has place for one mark.
    for hold in (*kept, *awaited):
        if hold.mark and hold.removals:
            to_confirm.append(hold)
    plan_id = removal_id(by_key(kept).values())
    return Held(plan_id=plan_id, holds=tuple(kept), awaited=tuple(to_confirm))


def held_together(*parts: Held | None) -> Held | None:
    """Combine what a pass held at different times; None if it held nothing."""
    holds: list[Hold] = []
    awaited: list[Hold] = []
    pods: dict[InstanceKey, PodState] = {}
    for part in parts:
        if part is not None:
            holds += part.holds
            awaited += part.awaited
            pods |= part.pods
    held = held_of(holds, awaited)
    if held is None:
        return None
    return replace(held, pods=pods)


_UNEXPLAINED = (Grounds.ABSENCE, Grounds.POD_GONE, Grounds.ORPHANED, Grounds.SWEPT)
"""Grounds of cancels that rest on what is missing, and that nobody asked for."""


def hold_back(plan: Plan, held: Held | None) -> Plan:
    """Return the plan with a renewal in place of each held removal. An instance that a person set
    OUT_OF_SERVICE waits with the others of its app: a cancel would forget that."""
    if held is None:
        return plan
    by_id = f"(plan id {held.plan_id})"
    reasons = {}
    apps = set()
    for removal in held.removals:
        reasons[removal.key] = f"the removal of the instance is held {by_id}"
        apps.add(removal.key.app)
    for cancel in plan.of(Cancel):
        put_out = cancel.was is InstanceStatus.OUT_OF_SERVICE
        if put_out and cancel.key.app in apps and cancel.grounds in _UNEXPLAINED:
            reasons[cancel.key] = f"a person set it OUT_OF_SERVICE, and its app is held {by_id}"
    return renewed_instead(plan, reasons)


def condition_message(
    hold: Hold, count: int, evidence: Evidence | None, syncer: SyncerRef, command: str
) -> str:
    """Return the message of `RemovalHeld` for a syncer with `count` held removals. `command`
    releases them."""
    removals = counted(count, "removal")
    are_held = one_or_more(count, "is held", "are held")
    keeps = one_or_more(
        count,
        "The instance keeps its status and is",
        "The instances keep their status and are",
    )
    parts = [f"{removals} of this syncer {are_held}: {hold.text}."]
    if evidence is not None:
        parts.append(f"{evidence.sentence}.")
    parts.append(f"{keeps} renewed.")
    if evidence is not None:
        parts.append(to_keep(syncer))
    parts.append(f"To release the held removals of all syncers now: {command}")
    return " ".join(parts)


def to_keep(syncer: SyncerRef) -> str:
    """Return the way out of a hold that keeps the instances, as a sentence with a command."""
    return f"To see what to correct: eurekube-sync explain {syncer}."
