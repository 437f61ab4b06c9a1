"""The conditions of a syncer after a pass, each with a reason and a sentence. They follow from what
the pass gathered about the syncer, its tally. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, assert_never

from eurekube_sync.apply.lost import LAST_INSTANCE_LOST, Lost
from eurekube_sync.brake.approval import APPROVE_ANNOTATION, annotation_refused
from eurekube_sync.brake.holds import Held, Hold, condition_message
from eurekube_sync.desired.claims import (
    Claim,
    Deleting,
    Desired,
    Leaving,
    NotServed,
    OverLimit,
    Serving,
)
from eurekube_sync.desired.conduct import Policy
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, ignored_value
from eurekube_sync.model.actions import Cancel, Outcomes, Removal, Result
from eurekube_sync.model.eureka import CACHE_SECONDS, OUR_LEASE, InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import ConditionStatus, SyncerRef
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import Obstacle, Plan

REGISTRY_UNKNOWN = "RegistryUnknown"  # the reason of Synced while Eureka cannot be read
PARTLY_FAILED = "PartlyFailed"  # the reason of Synced while calls for the syncer fail
LIST_OUTDATED = (
    "ListOutdated"  # the reason of Synced while Eureka's list is older than its own cache makes it
)
_SUSPENDED = "Suspended"
_UNCLEAR = (
    "EndpointUnclear"  # too little is known of an endpoint to decide what should be registered
)
_DIFFERS = "Differs"
"""Eureka and the cluster differ, and nobody has to do anything, because of a policy, or of a
person's override."""
OLD_LIST = (
    "Eureka's list does not show what was registered before: a cache in front of Eureka answers, "
    "or the server's own "
    "cache stands still"
)
_NOT_DONE = {
    Cause.UNAVAILABLE: "did not succeed: Eureka was unavailable, or no time was left",
    Cause.DENIED: "got a refusal",
    Cause.UNUSABLE: "got an unusable answer",
}
"""What became of calls that failed with the whole server."""
_UNREAD = (
    "was not changed, because it could not be read again",
    "were not changed, because they could not be read again",
)
_BESIDE_READY = frozenset({_SUSPENDED, _UNCLEAR, _DIFFERS, LIST_OUTDATED})
"""Reasons of Synced with which a syncer may be Ready."""


@dataclass(slots=True)
class Tally:
    """What a pass gathered about one syncer."""

    registered: dict[InstanceKey, InstanceStatus] = field(default_factory=dict)
    conflicts: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    unreached: dict[Cause, int] = field(default_factory=dict)
    """Calls that failed with the whole server: counted by cause, because their texts differ from
    pass to pass."""
    unread: int = 0
    held: list[Removal] = field(default_factory=list)
    hold: Hold | None = None  # the first hold with some of its removals
    awaited: Hold | None = (
        None  # what a later pass can confirm, although another hold may have it now
    )
    confirmed: list[Removal] = field(
        default_factory=list
    )  # removals that were confirmed, and failed

    @property
    def troubled(self) -> bool:
        """Whether something failed, conflicts or is held."""
        return bool(self.conflicts or self.duplicates or self.failures or self.held)

    def count(self, status: InstanceStatus) -> int:
        return sum(one is status for one in self.registered.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class PassResult:
    """What a pass found, planned and did, as far as statuses need it. Times in seconds."""

    desired: Desired
    registry: Complete[Observed] | Unknown
    plan: Plan
    held: Held | None
    confirmed: Sequence[Removal] = ()
    outcomes: Outcomes
    now: float  # Unix
    unseen: Sequence[str] | None = None
    """The other Eureka servers that could not be listed; None if none was asked."""
    options: Sequence[str] = ()  # options for the scope, for commands to paste
    cache: float = CACHE_SECONDS  # how old Eureka's lists may be
    expires_after: float = (
        2 * OUR_LEASE.duration
    )  # how long an instance lives after its last renewal
    lost: Mapping[SyncerRef, Lost] = field(default_factory=dict)
    """The apps that have no UP instance although endpoints of these syncers are ready."""


def tallies(
    result: PassResult,
    registered: Mapping[SyncerRef, dict[InstanceKey, InstanceStatus]] | None = None,
) -> dict[SyncerRef, Tally]:
    """Gather the tally of each syncer. `registered` are the instances that each has in Eureka, if
    already known."""
    desired, outcomes, held = result.desired, result.outcomes, result.held
    tallies = defaultdict[SyncerRef, Tally](Tally, {ref: Tally() for ref in desired.claims})

    def of(syncer: SyncerRef | None) -> Tally:
        return tallies[syncer] if syncer else Tally()

    for ref, statuses in (_registered(result) if registered is None else registered).items():
        of(ref).registered = statuses
    for outcome in sorted(outcomes.others, key=lambda one: one.action.key):
        key, tally = outcome.action.key, of(outcome.action.syncer)
        if outcome.result is Result.CONFLICT:
            tally.conflicts.append(f"{key}: {outcome.detail}")
        elif outcome.cause or outcome.result is Result.NOT_TRIED:
            cause = outcome.cause or Cause.UNAVAILABLE
            tally.unreached[cause] = tally.unreached.get(cause, 0) + 1
        elif outcome.failed:
            tally.failures.append(f"{key}: {outcome.detail}")
    for blocked in result.plan.blocked:
        tally = of(blocked.syncer)
        if blocked.obstacle is Obstacle.UNREAD:
            tally.unread += 1
        else:
            found = tally.duplicates if blocked.obstacle is Obstacle.DUPLICATE else tally.conflicts
            found.append(f"{blocked.key}: {blocked.why}")
    for hold in held.holds if held else ():
        for removal in hold.removals:
            tally = of(removal.syncer)
            tally.held.append(removal)
            tally.hold = tally.hold or hold
    for hold in held.awaited if held else ():
        tally = of(hold.syncer)
        tally.awaited = tally.awaited or hold
    for removal in result.confirmed:
        of(removal.syncer).confirmed.append(removal)
    for claim in desired.claims.values():
        if isinstance(claim, Serving):
            of(claim.syncer.ref).conflicts.extend(
                f"{key}: {rival}" for key, rival in claim.rivals.items()
            )
    for tally in tallies.values():
        for cause, count in sorted(tally.unreached.items()):
            tally.failures.append(
                f"{counted(count, 'call')} to Eureka for this syncer "
                f"{_NOT_DONE.get(cause, 'failed')}"
            )
        if tally.unread:
            tally.failures.append(
                f"{counted(tally.unread, 'instance')} {_UNREAD[tally.unread > 1]}"
            )
    return tallies


def _registered(result: PassResult) -> dict[SyncerRef | None, dict[InstanceKey, InstanceStatus]]:
    """Return the instances that each syncer has in Eureka after the pass."""
    found: dict[SyncerRef | None, dict[InstanceKey, InstanceStatus]] = {}
    # The plan says to which syncer an instance belongs, also if its lease was not due.
    planned = {action.key: action.syncer for action in result.plan.actions}
    ended = result.outcomes.by_key
    for key, one in (
        result.registry.data.ours.items() if isinstance(result.registry, Complete) else ()
    ):
        if key not in ended:
            found.setdefault(planned.get(key) or syncer_of(one), {})[key] = one.status
    for key, outcome in ended.items():
        if outcome.status is not None:
            found.setdefault(outcome.action.syncer, {})[key] = outcome.status
    return found


class Aspect(NamedTuple):
    """A condition without its type and times; `value` None is Unknown."""

    value: bool | None
    reason: str
    message: str


def conditions(
    claim: Claim,
    tally: Tally,
    result: PassResult,
    release: str,
    waiting: str,
    desired: int,
    up: int,
) -> Mapping[str, Aspect]:
    """Return all four conditions by type. `release` is the command that releases held removals,
    `waiting` says why a deletion waits. Ready and Synced also report an annotation that is
    ignored."""
    ignored = ignored_value(claim.syncer.annotations, ABANDON_ANNOTATION)

    def with_ignored(aspect: Aspect) -> Aspect:
        said = not ignored or ignored in aspect.message
        return aspect if said else aspect._replace(message=f"{aspect.message}; {ignored}")

    held, conflict = _removal_held(claim, tally, release, result.now), _conflict(tally)
    synced = with_ignored(_synced(claim, tally, result.registry, waiting))
    ready = _ready(claim, tally, synced, (conflict, held), desired=desired, up=up)
    if lost := result.lost.get(claim.syncer.ref):
        ready = _last_instance_lost(lost, ready)
    ready = with_ignored(ready)
    if isinstance(result.registry, Unknown):  # what was known before is the best that is known
        conflict, held = (
            _as_before(claim, "Conflict", conflict),
            _as_before(claim, "RemovalHeld", held),
        )
    return {"Ready": ready, "Synced": synced, "Conflict": conflict, "RemovalHeld": held}


def _last_instance_lost(lost: Lost, ready: Aspect) -> Aspect:
    """Return Ready for an app that callers do not find any more; its own reason becomes the
    cause."""
    return Aspect(False, LAST_INSTANCE_LOST, f"{lost}: {ready.reason}: {ready.message}")


def _as_before(claim: Claim, type_: str, now: Aspect) -> Aspect:
    """Return the condition that the syncer has; without one, what this pass found."""
    status = claim.syncer.status
    before = status.condition(type_) if status else None
    if before is None or now.value:
        return now
    return Aspect(before.status is ConditionStatus.TRUE, before.reason, before.message)


def _conflict(tally: Tally) -> Aspect:
    if tally.conflicts:
        return Aspect(True, "Conflict", _sample(tally.conflicts, "conflict"))
    if tally.duplicates:
        return Aspect(True, "DuplicateRegistration", _sample(tally.duplicates, "pod"))
    return Aspect(False, "NoConflict", "")


def _removal_held(claim: Claim, tally: Tally, release: str, now: float) -> Aspect:
    why = annotation_refused(claim.syncer, now)
    refused = f"the annotation {APPROVE_ANNOTATION} has no effect: {why}" if why else ""
    if tally.hold is None:
        return Aspect(False, "NothingHeld", refused)
    message = condition_message(tally.hold, len(tally.held), release)
    message = f"{refused}. {message}" if refused else message
    return Aspect(True, tally.hold.reason.value, message)


def _synced(
    claim: Claim, tally: Tally, registry: Complete[Observed] | Unknown, waiting: str
) -> Aspect:
    match claim:
        case Deleting():
            # The deletion does not wait for these instances.
            left = (
                f"Eureka still holds {counted(len(tally.registered), 'instance')} of it"
                if tally.registered
                else ""
            )
            if isinstance(registry, Unknown):
                left = f"it is not known whether its instances are gone: {registry.message}"
            return Aspect(False, "Deleting", waiting or left or "its instances are gone")
        case NotServed():
            return Aspect(None if claim.unknown else False, claim.reason, claim.message)
        case Serving() if isinstance(registry, Unknown):
            return Aspect(None, REGISTRY_UNKNOWN, registry.message)
        case Serving() if tally.failures:
            return Aspect(False, PARTLY_FAILED, _sample(tally.failures, "problem"))
        case Serving() if tally.held:
            gone = sum(isinstance(one, Cancel) for one in tally.held)
            parts = [f"holds {counted(gone, 'instance')} that should be cancelled"] if gone else []
            if down := len(tally.held) - gone:
                parts.append(f"shows {counted(down, 'instance')} UP that should be DOWN")
            return Aspect(False, "RemovalHeld", f"Eureka still {', and still '.join(parts)}")
        case Serving() if claim.conduct.suspend:
            return Aspect(
                False,
                _SUSPENDED,
                "its instances are renewed, and not changed (docs/suspend.md has the exceptions)",
            )
        case Serving() if claim.incomplete:
            first = claim.incomplete[0]
            message = (
                f"{_sample([one.message for one in claim.incomplete], 'problem')}; "
                "registered instances are renewed"
            )
            return Aspect(None if first.unknown else False, first.reason, message)
        case Serving() if tally.conflicts or tally.duplicates:
            return _conflict(tally)._replace(value=False)
        case Serving() if unclear := claim.unclear:
            return Aspect(
                False, _UNCLEAR, f"{_sample(unclear, 'problem')}; registered instances are renewed"
            )
        case Serving() if registry.data.outdated is not None:
            return Aspect(
                None, LIST_OUTDATED, f"{OLD_LIST}. What this pass would change was read again"
            )
        case Serving() if differences := _differences(claim, tally):
            return Aspect(False, _DIFFERS, "; ".join(differences))
        case Serving():
            return Aspect(True, "InSync", "Eureka holds what the cluster says")
        case _:  # pragma: no cover
            assert_never(claim)


def _differences(claim: Serving, tally: Tally) -> list[str]:
    """Return the differences between Eureka and the cluster, one phrase each. Instances that were
    never ready do not count."""
    registered, wanted = (
        tally.registered,
        {key: one.instance.status for key, one in claim.wanted.items()},
    )
    put_out = sum(registered.get(key) is InstanceStatus.OUT_OF_SERVICE for key in wanted)
    lacking = sum(
        status is InstanceStatus.UP and key not in registered for key, status in wanted.items()
    )
    others = (InstanceStatus.OUT_OF_SERVICE, None)
    wrong = sum(registered.get(key) not in (status, *others) for key, status in wanted.items())
    left = [status for key, status in registered.items() if key not in wanted]
    left_out = sum(status is InstanceStatus.OUT_OF_SERVICE for status in left)
    policy = "" if claim.conduct.policy is Policy.SYNC else f" (policy {claim.conduct.policy})"
    found = [
        (lacking, "not registered yet"),
        (wrong, "registered with the wrong status"),
        (put_out, "set OUT_OF_SERVICE by hand"),
        (left_out, "no longer wanted, and stays as a person set it: OUT_OF_SERVICE"),
        (len(left) - left_out, f"registered and no longer wanted{policy}"),
    ]
    return [
        f"{counted(n, 'instance')} {one_or_more(n, 'is', 'are')} {what}" for n, what in found if n
    ]


def _ready(
    claim: Claim, tally: Tally, synced: Aspect, troubles: Sequence[Aspect], *, desired: int, up: int
) -> Aspect:
    if not isinstance(claim, Serving):
        return synced
    if trouble := next((one for one in troubles if one.value), None):
        return trouble._replace(value=False)
    if synced.value is not True and synced.reason not in _BESIDE_READY:
        return synced
    if not desired and claim.of(OverLimit):
        return Aspect(False, "LimitZero", "; ".join(claim.notes))
    if not desired:
        return Aspect(False, *nothing_wanted(claim))
    names = ", ".join(claim.apps[:3])
    out = tally.count(InstanceStatus.OUT_OF_SERVICE)
    drained = sum(wanted.drained for wanted in claim.wanted.values())
    notes = [_unready(claim)] if claim.unready else []
    notes += [f"{drained} drained"] if drained else []
    notes += (
        [synced.message]
        if synced.reason in (_DIFFERS, LIST_OUTDATED)
        else [f"{out} set OUT_OF_SERVICE by hand"]
        if out
        else []
    )
    message = "; ".join([f"{up} of {desired} UP as {names}", *claim.notes, *notes, *claim.warnings])
    reason = synced.reason if up or synced.reason == _SUSPENDED else "NoneUp"
    return Aspect(bool(up), reason, message)


def _unready(claim: Serving) -> str:
    first, more = min(claim.unready.values()), len(claim.unready) - 1
    return f"{first} (likewise {more} more)" if more else first


def nothing_wanted(claim: Serving) -> tuple[str, str]:
    """Return the reason, and the message, why there is nothing to register."""
    names = (
        f"{one_or_more(len(claim.services), 'Service', 'Services')} {', '.join(claim.services[:3])}"
    )
    names += f" and {len(claim.services) - 3} more" if len(claim.services) > 3 else ""
    if claim.unready:
        return "NotReady", _unready(claim)
    if claim.of(Leaving):
        return "NoEndpoints", f"all endpoints of {names} terminate"
    return "NoEndpoints", f"{names} {one_or_more(len(claim.services), 'has', 'have')} no endpoints"


def _sample(troubles: Sequence[str], noun: str) -> str:
    """Return the first text; if there are several, also their number, with `noun`."""
    return (
        troubles[0]
        if len(troubles) == 1
        else f"{counted(len(troubles), noun)}; the first: {troubles[0]}"
    )
