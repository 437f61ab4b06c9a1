"""The brakes in their order: what a plan may remove now, and what waits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from eurekube_sync.brake.approval import released_by
from eurekube_sync.brake.confirm import parted, seen_before, unconfirmed, without_evidence
from eurekube_sync.brake.holds import Held, Hold, HoldReason, held_of, hold_back
from eurekube_sync.brake.limits import Brake
from eurekube_sync.brake.weigh import Scales, dead, moved, over_their_own, too_much, unlisted
from eurekube_sync.model.actions import Grounds, Removal
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Braked:
    """What the brake leaves of a plan."""

    plan: Plan
    """Every removal that is held is a renewal."""
    held: Held | None
    approved: frozenset[InstanceKey] = frozenset()
    """The removals that `--approve` released."""
    confirmed: frozenset[InstanceKey] = frozenset()
    """Those that an earlier pass saw."""


def apply_brake(plan: Plan, observed: Observed, brake: Brake) -> Braked:
    """The plan, with every removal that has to wait turned into a renewal, and what is held.

    Neither weighed nor held is what a person freed by annotation, a dead pod that an earlier pass saw dead, and a pod
    that is served under another app. Of the rest wait, one brake after the other: what may have lost its syncer to the
    end of an earlier CRD; too much of the whole pass, for a person; too much of one syncer, by its own limit; and the
    last of an app, for a confirmation. Dead pods go beside what is held, and wait for a confirmation where they are too
    much by themselves.
    """
    planned = plan.removals
    if not planned:
        return Braked(plan=plan, held=None)
    gone = dead(planned, observed, brake.pods)
    freed = {one.key for one in planned if one.syncer in brake.freed}
    confirmed = seen_before(_waiting(planned, gone), brake)
    unweighed = freed | confirmed
    up = {key: one for key, one in observed.ours.items() if one.status is InstanceStatus.UP and key not in unweighed}
    registered = frozenset(up)
    elsewhere = moved(plan, observed, registered)
    scales = Scales(
        plan=plan,
        registered=registered,
        unread=frozenset(observed.unread) & registered,
        unweighed=frozenset(unweighed),
        moved=elsewhere,
        dead=gone,
    )
    rest = [one for one in planned if one.key not in unweighed]
    swept = [one for one in rest if one.grounds is Grounds.SWEPT]
    weighed = [one for one in rest if one.grounds is not Grounds.SWEPT and one.key not in elsewhere]

    holds: list[Hold] = []
    if swept:
        holds.append(Hold(reason=HoldReason.CRD_INSTALLED, why=_swept(swept), removals=tuple(swept)))
    holds += _twice(lambda some: too_much(scales, some, brake.limits), weighed, gone)
    holds += _twice(lambda some: over_their_own(scales, some, brake.syncer_limits), _left(weighed, holds), gone)
    holds = [_telling(hold, observed, brake) for hold in parted(holds, gone, brake)]
    last = without_evidence(scales, _left(weighed, holds))
    confirmed |= (seen := seen_before(last, brake))
    holds += unconfirmed(last, seen, brake)

    found = held_of(holds)  # what two tests hold counts once, as in the plan id that a person is reported
    meant = released_by(brake.approval, planned, found.removals if found else ())
    approved = meant | (brake.approved & {one.key for one in planned})
    held = held_of(
        replace(hold, removals=tuple(one for one in hold.removals if one.key not in approved)) for hold in holds
    )
    return Braked(plan=hold_back(plan, held), held=held, approved=approved, confirmed=confirmed)


def _twice(
    test: Callable[[Collection[Removal]], Iterable[Hold]],
    removals: Collection[Removal],
    gone: Collection[InstanceKey],
) -> Iterator[Hold]:
    """Of what is too much the living are held; and the dead, where they are too much by themselves."""
    for hold in test(removals):
        yield replace(hold, removals=tuple(one for one in hold.removals if one.key not in gone))
    yield from test([one for one in removals if one.key in gone])


def _waiting(planned: Collection[Removal], gone: Collection[InstanceKey]) -> list[Removal]:
    """The dead ones that may have to wait: at another pod's address none does."""
    return [one for one in planned if one.key in gone and one.grounds is not Grounds.REPLACED]


def _left(removals: Collection[Removal], holds: Collection[Hold]) -> list[Removal]:
    waiting = {one.key for hold in holds for one in hold.removals}
    return [one for one in removals if one.key not in waiting]


def _telling(hold: Hold, observed: Observed, brake: Brake) -> Hold:
    """The hold, saying where it could not be read whether the pods live."""
    why = unlisted(hold.removals, observed, brake.pods)
    return replace(hold, why=f"{hold.why}; it is unknown whether their pods still exist: {why}") if why else hold


def _swept(removals: Collection[Removal]) -> str:
    syncers = sorted({str(one.syncer) for one in removals})
    more = f" and {len(syncers) - 1} more" if len(syncers) > 1 else ""
    return (
        f"{counted(len(removals), 'UP instance')} of {syncers[0]}{more} would be removed. These instances are older "
        "than the CustomResourceDefinition. So their syncers may have been deleted together with an earlier "
        "CustomResourceDefinition"
    )
