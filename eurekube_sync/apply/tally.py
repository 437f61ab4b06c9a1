"""What a pass gathered about each syncer, before it becomes a status. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from eurekube_sync.brake import Held, Hold
from eurekube_sync.desired.claims import Desired, Serving
from eurekube_sync.model.actions import Removal
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.outcomes import Outcomes, Result
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.wording import one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan import Obstacle, Plan


@dataclass(slots=True)
class Tally:
    """What a pass gathered about one syncer."""

    registered: dict[InstanceKey, InstanceStatus] = field(default_factory=dict)
    conflicts: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    unreached: Counter[Cause] = field(default_factory=Counter)
    """Calls that failed with the whole server: counted, for their texts and their number differ from pass to pass."""
    unread: int = 0
    held: list[Removal] = field(default_factory=list)
    hold: Hold | None = None
    """The first that has some of its removals."""
    awaited: Hold | None = None
    """The first of those that await their confirmation."""

    @property
    def troubled(self) -> bool:
        """Whether anything went wrong, or waits."""
        return bool(self.conflicts or self.duplicates or self.failures or self.held)

    def count(self, status: InstanceStatus) -> int:
        return sum(one is status for one in self.registered.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class PassResult:
    """What a pass found, planned and did: all that its statuses rest on."""

    desired: Desired
    registry: Complete[Observed] | Unknown
    plan: Plan
    held: Held | None
    outcomes: Outcomes


def tallies(result: PassResult) -> dict[SyncerRef, Tally]:
    desired, registry, outcomes, held = result.desired, result.registry, result.outcomes, result.held
    tallies: dict[SyncerRef, Tally] = {ref: Tally() for ref in desired.claims}

    def of(syncer: SyncerRef | None) -> Tally:
        if syncer is None:
            return Tally()
        if syncer not in tallies:
            tallies[syncer] = Tally()
        return tallies[syncer]

    registered = registry.data.ours if isinstance(registry, Complete) else {}
    for key, one in registered.items():
        if key not in outcomes.by_key:
            of(desired.wanted_by.get(key) or syncer_of(one)).registered[key] = one.instance.status
    for key, outcome in sorted(outcomes.by_key.items()):
        tally = of(outcome.action.syncer)
        if outcome.status is not None:
            tally.registered[key] = outcome.status
        if outcome.result is Result.CONFLICT:
            tally.conflicts.append(f"{key}: {outcome.detail}")
        elif outcome.cause or outcome.result is Result.NOT_TRIED:
            tally.unreached[outcome.cause or Cause.UNAVAILABLE] += 1
        elif outcome.failed:
            tally.failures.append(f"{key}: {outcome.detail}")
    for blocked in result.plan.blocked:
        if blocked.obstacle is Obstacle.DUPLICATE:
            of(blocked.syncer).duplicates.append(f"{blocked.key}: {blocked.why}")
        elif blocked.obstacle is Obstacle.TAKEN:
            of(blocked.syncer).conflicts.append(f"{blocked.key}: {blocked.why}")
        else:
            of(blocked.syncer).unread += 1
    for hold in held.holds if held else ():
        for removal in hold.removals:
            tally = of(removal.syncer)
            tally.held.append(removal)
            tally.hold = tally.hold or hold
            tally.awaited = tally.awaited or (hold if hold.mark else None)
    for claim in desired.claims.values():
        if isinstance(claim, Serving):
            of(claim.syncer.ref).conflicts.extend(f"{key}: {rival}" for key, rival in claim.rivals.items())
    for tally in tallies.values():
        for cause, count in sorted(tally.unreached.items()):
            were = one_or_more(count, "was", "were")
            tally.failures.append(f"{count} of its calls to Eureka failed or {were} not tried: {cause}")
        if tally.unread:
            tally.failures.append(f"{tally.unread} of its instances could not be read again")
    return tallies
