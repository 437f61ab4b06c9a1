"""What a pass gathered about each syncer: its instances, and what stands in their way. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from eurekube_sync.apply.lost import Lost
from eurekube_sync.brake.holds import Held, Hold
from eurekube_sync.desired.claims import Desired, Serving
from eurekube_sync.model.actions import Outcome, Outcomes, Removal, Result
from eurekube_sync.model.eureka import CACHE_SECONDS, OUR_LEASE, InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.text import counted
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import Blocked, Obstacle, Plan

_NOT_DONE = {
    Cause.UNAVAILABLE: "did not succeed: Eureka was unavailable, or no time was left",
    Cause.DENIED: "got a refusal",
    Cause.UNUSABLE: "got an unusable answer",
}
"""What became of calls that failed with the whole server."""

Registered = dict[InstanceKey, InstanceStatus]  # the instances of one syncer in Eureka


class Tally(Struct):
    """What a pass gathered about one syncer."""

    registered: Registered = field(default_factory=dict)
    conflicts: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    unreached: dict[Cause, int] = field(default_factory=dict)
    """Calls that failed with the whole server: counted by cause, because their texts differ from
    pass to pass."""
    unread: int = 0
    held: list[Removal] = field(default_factory=list)
    hold: Hold | None = None  # the first hold with some of its removals
    awaited: Hold | None = None
    """What a later pass can confirm, although another hold may have it now."""
    confirmed_failed: list[Removal] = field(default_factory=list)
    """Removals that were confirmed, and failed."""

    @property
    def troubled(self) -> bool:
        """Whether something failed, conflicts or is held."""
        return bool(self.conflicts or self.duplicates or self.failures or self.held)

    def count(self, status: InstanceStatus) -> int:
        return list(self.registered.values()).count(status)


class PassResult(Struct, frozen=True, kw_only=True):
    """What a pass found, planned and did, as far as statuses need it. Times in seconds."""

    desired: Desired
    registry: Complete[Observed] | Unknown
    plan: Plan
    held: Held | None
    confirmed_failed: Sequence[Removal] = ()
    outcomes: Outcomes
    now: float  # Unix
    unseen: Sequence[str] | None = None
    """The other Eureka servers that could not be listed; None if none was asked."""
    options: Sequence[str] = ()  # options for the scope, for commands to paste
    cache: float = CACHE_SECONDS  # how old Eureka's lists may be
    expires_after: float = (
        OUR_LEASE.expires_after
    )  # how long an instance lives after its last renewal
    lost: Mapping[SyncerRef, Lost] = field(default_factory=dict)
    """The apps that have no UP instance although endpoints of these syncers are ready."""


class _Tallies(defaultdict[SyncerRef, Tally]):
    """The tally of each syncer. What belongs to no syncer is lost."""

    def __init__(self) -> None:
        super().__init__(Tally)

    def of(self, syncer: SyncerRef | None) -> Tally:
        if syncer is None:
            return Tally()
        return self[syncer]


def tallies(result: PassResult) -> Mapping[SyncerRef, Tally]:
    """Gather the tally of each syncer."""
    gathered = _Tallies()
    for ref in result.desired.claims:
        gathered[ref] = Tally()
    for syncer, statuses in _registered(result).items():
        gathered.of(syncer).registered = statuses
    # By key, so that the same pass gives the same texts.
    outcomes = sorted(result.outcomes.others, key=lambda outcome: outcome.action.key)
    for outcome in outcomes:
        tally = gathered.of(outcome.action.syncer)
        _add_outcome(tally, outcome)
    for blocked in result.plan.blocked:
        tally = gathered.of(blocked.syncer)
        _add_blocked(tally, blocked)
    if result.held is not None:
        _add_holds(gathered, result.held)
    for removal in result.confirmed_failed:
        tally = gathered.of(removal.syncer)
        tally.confirmed_failed.append(removal)
    for ref, claim in result.desired.claims.items():
        if not isinstance(claim, Serving):
            continue
        for key, rival in claim.rivals.items():
            gathered[ref].conflicts.append(f"{key}: {rival}")
    for tally in gathered.values():
        tally.failures += _common_failures(tally)
    return gathered


def _registered(result: PassResult) -> Mapping[SyncerRef | None, Registered]:
    """Return the instances that each syncer has in Eureka after the pass."""
    registered: dict[SyncerRef | None, Registered] = {}
    # The plan says to which syncer an instance belongs, also if its lease was not due.
    planned = {action.key: action.syncer for action in result.plan.actions}
    ended = result.outcomes.by_key
    if isinstance(result.registry, Complete):
        for key, instance in result.registry.data.ours.items():
            if key not in ended:
                syncer = planned.get(key) or syncer_of(instance)
                registered.setdefault(syncer, {})[key] = instance.status
    for key, outcome in ended.items():
        if outcome.status is not None:
            syncer = outcome.action.syncer
            registered.setdefault(syncer, {})[key] = outcome.status
    return registered


def _add_outcome(tally: Tally, outcome: Outcome) -> None:
    key = outcome.action.key
    if outcome.result is Result.CONFLICT:
        tally.conflicts.append(f"{key}: {outcome.detail}")
    elif outcome.cause or outcome.result is Result.NOT_TRIED:
        cause = outcome.cause or Cause.UNAVAILABLE
        tally.unreached[cause] = tally.unreached.get(cause, 0) + 1
    elif outcome.failed:
        tally.failures.append(f"{key}: {outcome.detail}")


def _add_blocked(tally: Tally, blocked: Blocked) -> None:
    said = f"{blocked.key}: {blocked.why}"
    match blocked.obstacle:
        case Obstacle.UNREAD:
            tally.unread += 1
        case Obstacle.DUPLICATE:
            tally.duplicates.append(said)
        case Obstacle.TAKEN:
            tally.conflicts.append(said)


def _add_holds(gathered: _Tallies, held: Held) -> None:
    for hold in held.holds:
        for removal in hold.removals:
            tally = gathered.of(removal.syncer)
            tally.held.append(removal)
            tally.hold = tally.hold or hold
    for hold in held.awaited:
        tally = gathered.of(hold.syncer)
        tally.awaited = tally.awaited or hold


def _common_failures(tally: Tally) -> list[str]:
    """Return what failed for many instances of a syncer alike."""
    failures = []
    for cause, count in sorted(tally.unreached.items()):
        calls = counted(count, "call")
        what = _NOT_DONE.get(cause, "failed")
        failures.append(f"{calls} to Eureka for this syncer {what}")
    if tally.unread:
        instances = counted(tally.unread, "instance")
        was = "was not changed, because it"
        if tally.unread > 1:
            was = "were not changed, because they"
        failures.append(f"{instances} {was} could not be read again")
    return failures
