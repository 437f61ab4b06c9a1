"""What a pass is given, what a process remembers from pass to pass, and what a pass finds and does: values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.apply.status import FIRST_PART_SECONDS, REWORDED_SECONDS, EarlierStatuses
from eurekube_sync.brake.approval import Approval
from eurekube_sync.brake.braking import Braked
from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.brake.holds import Brake, BrakeLimits, Held
from eurekube_sync.desired.catalog import Kind
from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.resolve import EarlierClaims
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Cancel, Outcome, Outcomes, Removal, Result
from eurekube_sync.model.deadline import Deadline, Schedule, TimeLimit
from eurekube_sync.model.errors import ClusterError
from eurekube_sync.model.eureka import CACHE_SECONDS, OUR_LEASE, Batching, InstanceKey, LeaseTimes
from eurekube_sync.model.kubernetes import ClusterView, SyncerRef, SyncerStatus
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.ports import Clock, Cluster, EurekaServer, Registry, Workers
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.observe.eureka import LastSeen, Observed, OwnWrites
from eurekube_sync.observe.installations import OtherOwner, Unserved
from eurekube_sync.observe.kubernetes import SameCluster
from eurekube_sync.plan.ours import EarlierPlan
from eurekube_sync.plan.value import Plan


@dataclass(slots=True, kw_only=True)
class Memory:
    """The parts change from pass to pass; their times are monotonic seconds. A restart loses them, and no promise rests
    on them."""

    own_writes: OwnWrites
    sightings: Sightings = field(default_factory=Sightings)
    last_seen: LastSeen = field(default_factory=LastSeen)
    reported: dict[SyncerRef, float] = field(default_factory=dict)
    """Syncers that nobody serves, and when this process last wrote an event about each."""
    rewording: Schedule = field(default_factory=lambda: Schedule(REWORDED_SECONDS, first_part=FIRST_PART_SECONDS))

    observed: Observed | None = None
    """What the pass before made of its lists, as the next three: the same would be made of the same objects. The
    simulation compares what is taken again with what is made anew."""
    claims: EarlierClaims = field(default_factory=EarlierClaims)
    plan: EarlierPlan = field(default_factory=EarlierPlan)
    statuses: EarlierStatuses = field(default_factory=EarlierStatuses)


@dataclass(frozen=True, slots=True, kw_only=True)
class EurekaWorld:
    """All that `keepalive` touches."""

    registry: Registry
    clock: Clock
    workers: Workers
    renewals: RenewalLedger
    time_limit: TimeLimit  # the one that the adapters keep
    servers: Mapping[str, EurekaServer] = field(default_factory=dict)  # each Eureka server, by its address


@dataclass(frozen=True, slots=True, kw_only=True)
class World(EurekaWorld):
    """All that a pass touches."""

    cluster: Cluster
    memory: Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class PassSettings:
    """How a pass is to be made; `keepalive` heeds owner, namespaces, shard, dry run and deadline. Times in seconds."""

    owner: str
    scope: Scope = field(default_factory=Scope)
    lease: LeaseTimes = OUR_LEASE
    brake: BrakeLimits = field(default_factory=BrakeLimits)
    approved: Approval | None = None
    drains: frozenset[Kind] = frozenset()
    """Kinds beside Services whose drain annotations are looked for: each is a list of its own in every pass."""
    named: tuple[str, ...] = ()
    """Options of the command line beside the scope without which a command to paste would be another one."""
    renew_only: Unknown | None = None  # why nothing may be changed: nobody knows who has the lock
    dry_run: bool = False
    looks: bool = False
    """Of a dry run for a person who may not read which cluster it is: it goes on with the cluster that the marks in
    Eureka name."""
    deadline: float = 120
    registry_cache: float = CACHE_SECONDS  # how long Eureka's lists may hide what was written

    @property
    def options(self) -> tuple[str, ...]:
        """What a command to paste has to say of whose instances it is about."""
        return (*self.named, *self.scope.options)

    @property
    def confirm_within(self) -> float:
        """Until when a pass may confirm what another one saw: passes that are further apart let leases expire."""
        return self.brake.confirm_after + 2 * self.lease.duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """All that the plan of a pass follows from, and the plan: who has it can plan again."""

    ownership: Ownership
    scope: Scope
    lease: LeaseTimes
    view: ClusterView
    registry: Complete[Observed] | Unknown  # with the uncached reads
    brake: Brake
    last_up: frozenset[InstanceKey]  # wanted instances that the process last saw UP, where that matters
    braked: Braked


@dataclass(frozen=True, slots=True, kw_only=True)
class PassReport:
    """All that a pass found and did, for the table, the summary line and the exit code."""

    settings: PassSettings
    cluster: str | None  # UID; None while it is not known, and for `keepalive` of every cluster
    at: float  # when it began, in Unix seconds
    plan: Plan
    registry: Complete[Observed] | Unknown
    view: ClusterView | None  # None when no cluster was asked, by `keepalive`
    desired: Desired | None = None
    """None when the cluster did not tell who it is, another cluster uses our name, or another owner stops us."""
    clashes: tuple[str, ...] = ()
    other_owners: tuple[OtherOwner, ...] = ()  # those that serve our syncers in this cluster
    absent: tuple[str, ...] = ()  # namespaces of the scope that do not exist
    unserved: tuple[Unserved, ...] = ()  # syncers that left our scope and came into nobody's
    held: Held | None = None
    confirmed: tuple[Removal, ...] = ()  # removals that a second pass saw, and that failed: the next tries them again
    outcomes: Outcomes = Outcomes(by_key={})
    all_statuses: Mapping[SyncerRef, SyncerStatus] = field(default_factory=dict)
    """How each syncer stands after the pass, of a dry run now; a deletion that may end is not among them."""
    statuses: Mapping[SyncerRef, SyncerStatus] = field(default_factory=dict)  # those of them that were written
    cluster_errors: tuple[ClusterError, ...] = ()
    approved: Approval | None = None  # what a person released ...
    approval_refused: str | None = None  # ... why that cannot be meant for this pass ...
    released: frozenset[InstanceKey] = frozenset()  # ... and the removals of this pass that it released
    batching: Batching | None = None
    """Whether writes go to Eureka in batches, as its servers say; None where it was not asked."""
    renewed_between: int = 0  # leases that a daemon of many renewed since the pass before
    cut_short: bool = False  # the pass's time was over, or it was asked to stop, before all was tried
    basis: Basis | None = None  # None where the pass could not plan, or did not follow its plan

    @property
    def to_renew(self) -> tuple[InstanceKey, ...]:
        """What is to be renewed until the next pass; of a dry run nothing."""
        plan = self.plan
        added = [action.key for action in plan.changes if not isinstance(action, Cancel)]
        return () if self.settings.dry_run else (*[action.key for action in plan.renewals], *added)

    @property
    def approval_spent(self) -> bool:
        """Whether all that was released is done: the same set another day is another removal."""
        ended = [self.outcomes.by_key.get(key) for key in self.released]
        return bool(ended) and all(outcome is not None and outcome.result is Result.DONE for outcome in ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What every step of one pass is given."""

    world: World
    settings: PassSettings
    deadline: Deadline
    identity: Complete[str]
    ownership: Ownership
    same: SameCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """What Eureka lists, and what was renewed before anything else was asked."""

    applier: Applier
    registry: Complete[Observed] | Unknown
    renewed: Mapping[InstanceKey, Outcome]
    cancelled: frozenset[InstanceKey]
    """What this process cancelled a moment ago, and a list may still show: not renewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Renewed):
    """Beside it what is claimed, as far as it is known now."""

    view: ClusterView
    desired: Desired
    unseen: tuple[str, ...] | None = None
    """The other Eureka servers that did not show what they hold; None when none was asked."""
    absent: tuple[str, ...] = ()  # namespaces of the scope that do not exist


class Ends:
    """When each stage has to end, as a share of the pass's time: one that hangs leaves the later ones theirs."""

    IDENTIFYING, LISTING, CHOOSING, RENEWING, READING, APPLYING, SETTLING = 0.1, 0.3, 0.4, 0.7, 0.8, 0.92, 1.0
