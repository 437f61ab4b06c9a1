"""Which endpoints of imports stay for now, although Eureka's list does not want them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from eurekube_sync.brake.approval import approved_by
from eurekube_sync.brake.confirm import (
    awaiting,
    begun_before,
    by_syncer,
    seen_before,
    to_confirm,
    unconfirmed,
)
from eurekube_sync.brake.holds import Brake, Held, Hold, by_key, held_of, not_held
from eurekube_sync.brake.weighing import Nouns, Scales, hold_for, too_much
from eurekube_sync.desired.imports import Ending, Importing, may_be_at, sockets_of
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.imports import ImportRef
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.text import one_or_more, some_of
from eurekube_sync.plan.imports import Drop, ImportPlan, absent, keeping

YOUNG = 300.0
"""Seconds. In this time each instance registers again after Eureka started: heartbeats come each
30 s, lists may be 95 s old, and some apps start slowly."""
IMPORT_HOLD_REASONS = (
    Reason.TOO_MANY_REMOVALS,
    Reason.AWAITING_CONFIRMATION,
    Reason.REGISTRY_YOUNG,
    Reason.SERVER_UNSEEN,
    Reason.MALFORMED,
)
"""Why removals of endpoints are held: the reasons of the condition `RemovalHeld` of imports."""
_NOUNS = Nouns(instance="endpoint", app="import", syncer="import")


class Doubts(Struct, frozen=True, kw_only=True):
    """What may keep an instance from Eureka's list although it lives."""

    age: float | None  # of the registry, in seconds; None: it gives no time of registration
    unseen: Sequence[str] = ()  # other Eureka servers that could not be listed
    young: Sequence[str] = ()  # other Eureka servers that have just started


def is_young(age: float | None) -> bool:
    """Say whether a registry of this age may lack instances that live."""
    return age is not None and age < YOUNG


class BrakedImports(Struct, frozen=True, kw_only=True):
    """The plan after the brake."""

    plan: ImportPlan
    held: Held | None = None
    approved: frozenset[InstanceKey] = frozenset()  # the removals that `--approve` released


def brake_imports(plan: ImportPlan, doubts: Doubts, brake: Brake) -> BrakedImports:
    """Return the plan without the removals that have to wait. The first row that fits decides.

    | the endpoint                                                         | waits         |
    |----------------------------------------------------------------------|---------------|
    | its instance is not listed, and the registry is young                | until it is   |
    |                                                                      | older         |
    | its instance is not listed, and another Eureka server could not be   | for that      |
    | listed                                                               | server        |
    | its instance is not listed, and another Eureka server is young       | until it is   |
    |                                                                      | older         |
    | of an import that a person released by annotation                    | no longer     |
    | its instance is not listed, and one that is malformed may be it      | until that    |
    |                                                                      | can be read   |
    | too much; imports emptied; too many imports deleted: see `too_much`  | for a person  |
    | the last of an import, which nobody deletes                          | for a second  |
    | its instance is not listed, and no instance has a time of            | pass          |
    | registration                                                         |               |
    """
    if not plan.drops:
        return BrakedImports(plan=plan)
    # Even what is released: an annotation stands for up to an hour, in which Eureka may start again.
    holds = list(_missing(plan.drops, doubts))
    drops = []
    for drop in plan.drops:
        if drop.syncer not in brake.freed_by_annotation:
            drops.append(drop)
    holds += _malformed(not_held(drops, holds), plan)

    # What is left now is gone, as far as the list shows. It may be too much, or the last.
    left = not_held(drops, holds)
    certain = {drop.key for drop in left}
    scales = _scales(plan, brake)
    holds += too_much(scales, left, brake.limits)
    last = _last(not_held(left, holds), scales)
    confirmed = seen_before(last, brake)
    holds += unconfirmed(last, confirmed, brake, _NOUNS)
    if doubts.age is None:
        holds += _untimed(not_held(left, holds), brake)

    approved = approved_by(brake.approval, plan.drops, by_key(holds).values())
    holds = [hold.without(approved) for hold in holds]
    # A second pass can confirm what this one saw gone, whatever holds it now.
    gone = _seen_gone(_last(drops, scales), certain, brake)
    held = held_of(holds, to_confirm(gone, brake))
    if held is None:
        return BrakedImports(plan=plan, approved=approved)
    why = f"its removal is held (plan id {held.plan_id})"
    kept = keeping(plan, by_key(held.holds), why)
    return BrakedImports(plan=kept, held=held, approved=approved)


def _missing(drops: Collection[Drop], doubts: Doubts) -> Iterator[Hold]:
    """Hold what may only be missing in the list."""
    missing = absent(drops)
    nothing = f"nothing that was registered more than {YOUNG:g} s ago, as after a start"
    if is_young(doubts.age):
        yield hold_for(f"Eureka lists {nothing}", missing, Reason.REGISTRY_YOUNG)
    elif doubts.unseen:
        servers = some_of(doubts.unseen)
        why = f"{servers} could not be listed, where their instances may be UP"
        yield hold_for(why, missing, Reason.SERVER_UNSEEN)
    elif doubts.young:
        servers = some_of(doubts.young)
        verb = one_or_more(len(doubts.young), "lists", "list")
        yield hold_for(f"{servers} {verb} {nothing}", missing, Reason.REGISTRY_YOUNG)


def _malformed(drops: Collection[Drop], plan: ImportPlan) -> Iterator[Hold]:
    """Hold what may be an instance that is listed and cannot be read, for each import by itself:
    the text names instances."""
    missing: dict[ImportRef, list[Drop]] = {}
    for drop in absent(drops):
        missing.setdefault(drop.import_, []).append(drop)
    for ref, own in sorted(missing.items()):
        claim = plan.claims[ref]
        assert isinstance(claim, Importing)  # others drop nothing for absence
        kept = []
        for drop in own:
            if may_be_at(claim.malformed, drop.socket):
                kept.append(drop)
        if not kept:
            continue
        keys = [str(instance.key) for instance in claim.malformed]
        shown = some_of(keys)
        are = one_or_more(len(keys), "is malformed", "are malformed")
        why = f"{shown} {are} in Eureka's list, and may be there"
        yield hold_for(why, kept, Reason.MALFORMED)


def _scales(plan: ImportPlan, brake: Brake) -> Scales:
    """Return what the imports have, and what they gain."""
    registered: set[InstanceKey] = set()
    for ref, claim in plan.claims.items():
        if SyncerRef(*ref) in brake.freed_by_annotation:
            continue
        if isinstance(claim, Importing | Ending):
            for socket in sockets_of(claim.slices):
                registered.add(InstanceKey(str(ref), str(socket)))
    gained = Counter(str(add.import_) for add in plan.adds)
    return Scales(
        gained=gained,
        up=frozenset(registered),
        unread=frozenset(),
        unweighed=frozenset(),
        in_other_app=frozenset(),
        dead=frozenset(),
        nouns=_NOUNS,
    )


def _last(drops: Collection[Drop], scales: Scales) -> list[Drop]:
    """Return the last endpoints of imports, which nobody deletes."""
    emptied = scales.emptied(drops)
    last = []
    for drop in drops:
        if drop.key.app in emptied and not drop.grounds.positive:
            last.append(drop)
    return last


def _seen_gone(
    last: Collection[Drop], certain: Collection[InstanceKey], brake: Brake
) -> list[Drop]:
    """Return the removals that count as seen in this pass: the `certain` ones, and the doubted ones
    of which an earlier pass was certain. What the lists may only lack, or have malformed, may live:
    to see that begins no wait. It ends none either: else a server that fails now and then would
    keep for ever what is gone."""
    begun = begun_before(last, brake)
    gone = begun.union(certain)
    return [drop for drop in last if drop.key in gone]


def _untimed(left: Collection[Drop], brake: Brake) -> Iterator[Hold]:
    """Hold what is missing in the list of a registry whose age nobody knows."""
    untimed = absent(left)
    seen = seen_before(untimed, brake)
    unseen = []
    for drop in untimed:
        if drop.key not in seen:
            unseen.append(drop)
    for syncer, own in by_syncer(unseen).items():
        why = "Eureka gives no time of registration, so it may have started just now"
        yield awaiting(syncer, own, why, brake)
