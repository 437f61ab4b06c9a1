"""What a process remembers from pass to pass. A restart loses it, and no promise rests on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.apply.status import FIRST_PART_SECONDS, REWORDED_SECONDS, EarlierStatuses
from eurekube_sync.brake import Held
from eurekube_sync.brake.confirm import Sighted, Sightings
from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.earlier import EarlierClaims
from eurekube_sync.model.actions import Removal
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.outcomes import Outcomes
from eurekube_sync.model.schedule import Schedule
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.observe.last_seen import LastSeen
from eurekube_sync.observe.own_writes import OwnWrites
from eurekube_sync.plan.ours import EarlierPlan


@dataclass(slots=True)
class Earlier:
    """What the pass before made of its lists, to take again what would be made of the same objects. Each pass lists all
    anew, and an object is the same one only while it is equal. The simulation compares what is taken with what is made
    anew."""

    observed: Observed | None = None
    claims: EarlierClaims = field(default_factory=EarlierClaims)
    plan: EarlierPlan = field(default_factory=EarlierPlan)
    statuses: EarlierStatuses = field(default_factory=EarlierStatuses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The parts change from pass to pass; their times are monotonic seconds."""

    renewals: RenewalLedger
    own_writes: OwnWrites
    earlier: Earlier = field(default_factory=Earlier)
    sightings: Sightings = field(default_factory=Sightings)
    last_seen: LastSeen = field(default_factory=LastSeen)
    reported: dict[SyncerRef, float] = field(default_factory=dict)
    """Syncers that nobody serves, and when this process last wrote an event about each."""
    rewording: Schedule = field(default_factory=lambda: Schedule(REWORDED_SECONDS, first_part=FIRST_PART_SECONDS))

    def last_up(self, desired: Desired) -> frozenset[InstanceKey]:
        """The wanted instances that this process last saw UP."""
        return self.last_seen.still_wanted(desired, self.renewals.renewed_lately())

    def note(
        self,
        registry: Complete[Observed] | Unknown,
        outcomes: Outcomes,
        desired: Desired,
        held: Held | None,
        seen: Sighted,
        confirmed: Iterable[Removal],
        *,
        monotonic: float,
    ) -> None:
        """Remember what a pass wrote to Eureka, and what it `held`; `seen` is what an earlier pass had held, and
        what of it was `confirmed` and failed."""
        self.own_writes.note(outcomes, monotonic)
        self.sightings.note(held, seen, monotonic=monotonic, confirmed=confirmed)
        if isinstance(registry, Complete):
            self.last_seen.note(registry.data, outcomes, self.renewals.renewed_lately(), desired)
