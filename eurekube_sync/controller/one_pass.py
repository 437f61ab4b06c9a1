"""The values of a pass: its settings, the memory of the process, what the pass finds, and its
report."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.imports import ImportOutcome
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.apply.lost import Lost
from eurekube_sync.apply.status import (
    FIRST_PART_SECONDS,
    REWORDED_SECONDS,
    EarlierStatuses,
    Recoveries,
)
from eurekube_sync.brake.approval import PlanId
from eurekube_sync.brake.braking import Braked
from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.brake.holds import Brake, BrakeLimits, Held
from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.imports import ImportClaim, ImportView
from eurekube_sync.desired.resolve import EarlierClaims
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Cancel, Outcome, Outcomes, Removal, Result
from eurekube_sync.model.deadline import Deadline, Schedule, TimeLimit
from eurekube_sync.model.errors import ClusterError
from eurekube_sync.model.eureka import CACHE_SECONDS, OUR_LEASE, Batching, InstanceKey, LeaseTimes
from eurekube_sync.model.imports import ImportRef, ImportStatus, ImportWrites
from eurekube_sync.model.kubernetes import ClusterView, SyncerRef, SyncerStatus
from eurekube_sync.model.ownership import NO_FORMER, Former, Ownership
from eurekube_sync.model.ports import Clock, Cluster, EurekaServer, Registry, Workers
from eurekube_sync.model.sources import Complete, Source, Unknown
from eurekube_sync.observe.eureka import LastSeen, Observed, OwnWrites
from eurekube_sync.observe.former import FormerVerdict
from eurekube_sync.observe.installations import OtherOwner
from eurekube_sync.observe.kubernetes import SameCluster
from eurekube_sync.plan.earlier import EarlierPlan
from eurekube_sync.plan.imports import ImportPlan, ImportWork
from eurekube_sync.plan.value import Plan


class Memory(Struct, kw_only=True):
    """What a process remembers from pass to pass; times in monotonic seconds. A restart loses it,
    and no promise of safety needs it."""

    own_writes: OwnWrites
    sightings: Sightings = field(default_factory=Sightings)
    last_seen: LastSeen = field(default_factory=LastSeen)
    first_pass: bool = True  # nothing is remembered yet but what the statuses of syncers say
    recoveries: Recoveries = field(default_factory=Recoveries)
    rewording: Schedule = field(
        default_factory=lambda: Schedule(REWORDED_SECONDS, first_part=FIRST_PART_SECONDS)
    )

    import_sightings: Sightings = field(default_factory=Sightings)
    import_rewording: Schedule = field(
        default_factory=lambda: Schedule(REWORDED_SECONDS, first_part=FIRST_PART_SECONDS)
    )
    slice_names: set[tuple[str, str]] = field(default_factory=set)
    """Namespaces and names of slices that exist, and are in no list."""
    unlisted: dict[str, float] = field(default_factory=dict)
    """When other Eureka servers could not be listed for imports, by their addresses."""

    # Results of the pass before, which are reused while the objects behind them are the same. The
    # simulation compares what is reused with a full computation. By `python -m bench.stages`, with
    # 10,000 instances, a steady pass takes this much longer without the reuse of claims: 150 %, of
    # the plan: 40 %, of statuses: 25 %.
    observed: Observed | None = None
    claims: EarlierClaims = field(default_factory=EarlierClaims)
    plan: EarlierPlan = field(default_factory=EarlierPlan)
    statuses: EarlierStatuses = field(default_factory=EarlierStatuses)

    def nothing_seen(self) -> None:
        """Forget which removals were seen, because a pass ended before it could look."""
        self.sightings.nothing_seen()
        self.import_sightings.nothing_seen()


class EurekaWorld(Struct, frozen=True, kw_only=True):
    """Everything that `keepalive` uses."""

    registry: Registry
    clock: Clock
    workers: Workers
    renewals: RenewalLedger
    time_limit: TimeLimit  # kept by the adapters
    servers: Mapping[str, EurekaServer] = field(default_factory=dict)
    """Each Eureka server by its address."""


class World(EurekaWorld, frozen=True, kw_only=True):
    """Everything that a pass uses."""

    cluster: Cluster
    memory: Memory
    imports: ImportWrites | None = None  # None: imports are off


class PassSettings(Struct, frozen=True, kw_only=True):
    """How to make a pass; times in seconds. `keepalive` uses only owner, namespaces, dry run and
    deadline."""

    owner: str
    former: Former = NO_FORMER
    scope: Scope = field(default_factory=Scope)
    lease: LeaseTimes = OUR_LEASE
    brake: BrakeLimits = field(default_factory=BrakeLimits)
    approved: PlanId | None = None
    pod_drains: bool = False
    """Whether the drain annotations of Pods are read. They cost a list in every pass."""
    named: tuple[str, ...] = ()
    """Options of this installation, beside the scope, that a printed command must repeat."""
    import_networks: tuple[str, ...] = ()
    """The only addresses to which the cluster may be led; without any, imports are off."""
    renew_only: Unknown | None = None  # why nothing may be changed: nobody knows who has the lock
    dry_run: bool = False
    looks: bool = False
    """Whether a dry run goes on where other passes stop. If the cluster's UID cannot be read, it
    takes the UID that the marks in Eureka name."""
    deadline: float = 120
    registry_cache: float = CACHE_SECONDS  # how long Eureka's lists may hide what was written

    @property
    def options(self) -> tuple[str, ...]:
        """The options that a printed command must repeat to mean the same instances."""
        return (*self.named, *self.scope.options)


class Basis(Struct, frozen=True, kw_only=True):
    """The plan after the brake, before anything was carried out, and what the brake knew."""

    brake: Brake
    last_seen_up: frozenset[InstanceKey]
    """Wanted instances that this process last saw UP; empty where not needed."""
    braked: Braked
    looked: float  # when everything was read, in monotonic seconds


class ImportReport(Struct, frozen=True, kw_only=True):
    """What a pass found and did for imports."""

    view: ImportView
    claims: Mapping[ImportRef, ImportClaim]
    plan: ImportPlan  # after the brake
    registry: Unknown | None = None  # why Eureka's list cannot be used
    doubt: Unknown | None = None  # why the lists may be another cluster's
    held: Held | None = None
    approved: frozenset[InstanceKey] = frozenset()  # the removals that `--approve` released
    work: tuple[ImportWork, ...] = ()  # the writes of Services and slices
    outcomes: Mapping[ImportRef, ImportOutcome] = field(default_factory=dict)
    all_statuses: Mapping[ImportRef, ImportStatus] = field(default_factory=dict)
    statuses: Mapping[ImportRef, ImportStatus] = field(default_factory=dict)
    """Those that were written."""
    errors: tuple[ClusterError, ...] = ()  # of statuses, events and finalizers

    @property
    def failures(self) -> tuple[ClusterError, ...]:
        """All errors of writes."""
        failures = []
        for outcome in self.outcomes.values():
            if outcome.error is not None:
                failures.append(outcome.error)
        return (*failures, *self.errors)


class PassReport(Struct, frozen=True, kw_only=True):
    """What a pass found and did, for the table, the summary line and the exit code."""

    settings: PassSettings
    cluster: str | None  # UID; None while it is not known, and for `keepalive` of every cluster
    at: float  # when it began, in Unix seconds
    plan: Plan
    registry: Source[Observed]
    view: ClusterView | None  # None for `keepalive`, which asks no cluster
    desired: Desired | None = None
    """None if the UID of the cluster is unknown, or another installation made us refuse the
    pass."""
    clashes: tuple[str, ...] = ()  # UIDs of other clusters that use our owner's name
    other_owners: tuple[OtherOwner, ...] = ()  # those that serve syncers of ours
    former: tuple[FormerVerdict, ...] = ()  # why nothing of former installations may be moved
    absent: tuple[str, ...] = ()  # namespaces of the scope that do not exist
    held: Held | None = None
    confirmed_failed: tuple[Removal, ...] = ()
    """Confirmed removals that failed: the next pass tries them again."""
    outcomes: Outcomes = field(default_factory=lambda: Outcomes(by_key={}))
    all_statuses: Mapping[SyncerRef, SyncerStatus] = field(default_factory=dict)
    """The status of each syncer after the pass, or now in a dry run, without syncers whose
    finalizer may be removed."""
    statuses: Mapping[SyncerRef, SyncerStatus] = field(default_factory=dict)
    """Those that were written."""
    cluster_errors: tuple[ClusterError, ...] = ()
    approved: PlanId | None = None  # as given by a person
    approval_refused: str | None = None  # why it cannot be meant for this pass
    released: frozenset[InstanceKey] = frozenset()  # the removals of this pass that it released
    batching: Batching | None = None
    """Whether writes go to Eureka in batches, and why; None if unknown."""
    renewed_between: int = 0  # leases that a daemon renewed since the pass before
    cut_short: bool = False  # the time was over, or a signal came, before all was tried
    lost: Mapping[SyncerRef, Lost] = field(default_factory=dict)
    """The apps that have no UP instance any more although endpoints of these syncers are ready."""
    basis: Basis | None = None  # None if the pass could not plan, or did not follow its plan
    imports: ImportReport | None = None  # None if imports are off, or the pass ended before
    bug: Exception | None = None
    """It ended the step of imports. The loop raises it, after it told what was done for syncers."""

    @property
    def to_renew(self) -> tuple[InstanceKey, ...]:
        """The leases to renew until the next pass; none after a dry run."""
        if self.settings.dry_run:
            return ()
        renewed = [renewal.key for renewal in self.plan.renewals]
        added = [change.key for change in self.plan.changes if not isinstance(change, Cancel)]
        return (*renewed, *added)

    @property
    def approval_spent(self) -> bool:
        """Whether all released removals are done, so that the approval must not release the same
        set on another day."""
        for key in self.released:
            outcome = self.outcomes.by_key.get(key)
            if outcome is None or outcome.result is not Result.DONE:
                return False
        if self.imports is None or not self.imports.approved:
            return bool(self.released)
        return not any(outcome.failed for outcome in self.imports.outcomes.values())


class Given(Struct, frozen=True, kw_only=True):
    """The values that every step of one pass gets."""

    world: World
    settings: PassSettings
    deadline: Deadline
    identity: Complete[str]
    ownership: Ownership
    same: SameCluster


class Renewed(Struct, frozen=True, kw_only=True):
    """What Eureka lists, and the leases that were renewed right after the list."""

    applier: Applier
    registry: Source[Observed]
    renewed: Mapping[InstanceKey, Outcome]
    cancelled: frozenset[InstanceKey]
    """Cancelled by this process a moment ago; the list may still show them."""
    unshown: tuple[InstanceKey, ...]
    """Registered by this process so long ago that the list should show them, and it does not; the
    newest first."""


class Found(Renewed, frozen=True, kw_only=True):
    """The same with what Kubernetes says; later steps replace parts of it."""

    view: ClusterView
    desired: Desired
    unseen: tuple[str, ...] | None = None
    """The other Eureka servers that could not be listed; None if none was asked."""
    absent: tuple[str, ...] = ()  # namespaces of the scope that do not exist


class Ends:
    """When each stage has to end, as a share of the pass's time. A stage that hangs leaves time for
    the later ones."""

    IDENTIFYING = 0.1
    LISTING = 0.3
    CHOOSING = 0.4
    RENEWING = 0.7
    READING = 0.8
    APPLYING = 0.92
    SETTLING = 1.0


class Shares:
    """How long a stage of imports may take, as a share of the pass's time. It comes last, and the
    next pass, with its renewals and new pods, waits for it: many new imports take several
    passes."""

    WRITING = 0.15
    SETTLING = 0.2
