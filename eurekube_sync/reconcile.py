"""One pass, step by step. This file is the documentation of what a pass does; each step lives in a file of its name.

    list Eureka -> renew -> list Kubernetes -> claims -> plan -> read again what would change -> plan -> brake -> apply
    -> settle

Eureka is listed first: what somebody registers in between must not look undesired. What stands is renewed before
anything else is asked, so that no slow server can let leases lapse. A source that cannot be read is Unknown, and what
hangs on it is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from eurekube_sync.actions import Cancel, Register, Renew, Update, Withdrawal, removes
from eurekube_sync.admission import Admission, admit
from eurekube_sync.apply import Applier
from eurekube_sync.approval import Approval, annotated, refusal
from eurekube_sync.brake import Brake, Braked, BrakeLimits, Held, apply_brake, held_of
from eurekube_sync.confirmation import Sighted, Sightings
from eurekube_sync.deadline import Deadline, TimeLimit
from eurekube_sync.desired import Desired, Serving, claim_all
from eurekube_sync.drain import Kind
from eurekube_sync.errors import ClusterError
from eurekube_sync.gates import open_gates, openings
from eurekube_sync.instance import Naming
from eurekube_sync.model import (
    Batching,
    ClusterView,
    Complete,
    InstanceKey,
    LeaseTimes,
    Listed,
    ObservedInstance,
    SyncerObject,
    SyncerRef,
    SyncerStatus,
    Unknown,
)
from eurekube_sync.observed import Observed, held_by_owner, is_ours, keys_by_syncer, observe
from eurekube_sync.outcome import Outcome, Outcomes, Result
from eurekube_sync.own_writes import OwnWrites
from eurekube_sync.ownership import CLASS, Ownership
from eurekube_sync.plan import Plan, make_plan, plan_blind, plan_renewals, warned
from eurekube_sync.ports import Clock, Cluster, Registry, Workers
from eurekube_sync.removals import what_may_go, without_successor, witnesses
from eurekube_sync.renewals import RenewalLedger
from eurekube_sync.restraint import restrain, returning
from eurekube_sync.scope import Scope
from eurekube_sync.settle import put_finalizers_on, settle
from eurekube_sync.still_drained import still_drained
from eurekube_sync.view import another_cluster, living_pods, read_cluster, read_pods, read_syncers, unread_cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All that a pass touches."""

    registry: Registry
    cluster: Cluster
    clock: Clock
    workers: Workers
    renewals: RenewalLedger
    own_writes: OwnWrites
    time_limit: TimeLimit
    """The one that the adapters keep."""
    sightings: Sightings = field(default_factory=Sightings)
    withdrawing: Callable[[PassReport, Iterable[Withdrawal]], None] = lambda _report, _actions: None
    """Told what a pass is about to take away: who could bring it back has to know before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassSettings:
    """How a pass is to be made. Times in seconds."""

    owner: str
    scope: Scope = field(default_factory=Scope)
    lease: LeaseTimes = LeaseTimes(30, 300)  # noqa: RUF009 - a NamedTuple is immutable
    brake: BrakeLimits = field(default_factory=BrakeLimits)
    approved: Approval | None = None
    drains: frozenset[Kind] = frozenset()
    """Kinds beside Services whose drain annotations are looked for: each is a list of its own in every pass."""
    dry_run: bool = False
    deadline: float = 120
    registry_cache: float = 45
    """How long Eureka's lists may hide what was written: 30 s in the server, and some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassReport:
    """All that a pass found and did, for the table, the summary line and the exit code."""

    dry_run: bool
    at: float
    """When it began, in Unix seconds."""
    plan: Plan
    registry: Complete[Observed] | Unknown
    view: ClusterView | None
    """None when no cluster was asked, by `keepalive`."""
    desired: Desired | None = None
    """None when the cluster did not tell who it is, or another cluster uses our name."""
    clashes: tuple[str, ...] = ()
    snapshot_refused: str | None = None
    """Why nothing is brought back from the snapshot, in a sentence."""
    held: Held | None = None
    outcomes: Outcomes = Outcomes(by_key={})  # noqa: RUF009 - immutable
    statuses: dict[SyncerRef, SyncerStatus] = field(default_factory=dict)
    cluster_errors: tuple[ClusterError, ...] = ()
    approved: Approval | None = None
    """What a person released ..."""
    approval_refused: str | None = None
    """... why that cannot be meant for this pass ..."""
    released: frozenset[InstanceKey] = frozenset()
    """... and the withdrawals of this pass that it released."""
    batching: Batching | None = None
    """Whether writes go to Eureka in batches, as its servers say; None where it was not asked."""
    renewed_between: int = 0
    """Leases that a daemon of many renewed since the pass before."""
    cut_short: bool = False
    """The pass's time was over, or it was asked to stop, before all was tried."""

    @property
    def standing(self) -> tuple[InstanceKey, ...]:
        """What is to be renewed until the next pass; of a dry run nothing."""
        return () if self.dry_run else tuple(a.key for a in self.plan.actions if not isinstance(a, Cancel))

    @property
    def approval_spent(self) -> bool:
        """Whether all that was released is done: the same set another day is another removal."""
        ended = [self.outcomes.by_key.get(key) for key in self.released]
        return bool(ended) and all(outcome is not None and outcome.result is Result.DONE for outcome in ended)


_IDENTIFYING, _LISTING, _CHOOSING, _RENEWING, _READING, _APPLYING, _SETTLING = 0.1, 0.3, 0.4, 0.7, 0.8, 0.92, 1.0
"""When each stage has to end, as a share of the pass's time: one that hangs leaves the later ones theirs."""


def reconcile(world: World, settings: PassSettings) -> PassReport:
    """Makes Eureka equal to what the cluster says, as far as both could be read."""
    deadline = Deadline(world.clock, settings.deadline, world.time_limit)
    deadline.stage(_IDENTIFYING)
    identity = world.cluster.identity()
    deadline.stage(_LISTING)
    listed = world.registry.list_instances()

    if isinstance(identity, Unknown):
        deadline.stage(_SETTLING)
        return _renew_all(world, settings, deadline, listed, identity)
    ownership = Ownership(owner=settings.owner, cluster=identity.data)
    scope, syncers = _choose(world, settings, deadline)
    applier = _applier(world, ownership, scope, deadline)
    remembered = world.own_writes.recent(world.clock.monotonic())
    registry: Complete[Observed] | Unknown = (
        listed
        if isinstance(listed, Unknown)
        else Complete(data=observe(listed, ownership, scope).remembering(remembered))
    )
    cancelled = frozenset(key for key, wrote in remembered.items() if wrote is None)
    renewed = [] if settings.dry_run else _renew_ours(world, applier, registry, cancelled)
    if isinstance(registry, Complete) and registry.data.clashes:
        deadline.stage(_SETTLING)
        world.sightings.nothing_seen()
        outcomes = _renew_the_rest(applier, Outcomes.of(renewed))
        return _refuse(settings, deadline, registry, outcomes, unread_cluster(identity), world.clock.now())

    deadline.stage(_READING)
    marked = frozenset(keys_by_syncer(registry.data)) if isinstance(registry, Complete) else frozenset()
    view = read_cluster(world.cluster, identity, scope, marked, syncers, settings.drains)
    scope = scope.knowing(view.syncers)
    applier = _applier(world, ownership, scope, deadline)
    desired = claim_all(view, Naming(ownership=ownership, lease=settings.lease), scope)
    if isinstance(registry, Complete):
        registry = Complete(data=registry.data.narrowed(scope))
        view = read_pods(world.cluster, view, desired, registry.data, scope)
        desired = replace(desired, living_pods=living_pods(view))

    deadline.stage_of_rest(0.5, _APPLYING)
    now = world.clock.now()
    refused = refusal(settings.approved, ownership, now)
    seen = world.sightings.before(desired, monotonic=world.clock.monotonic(), now=now)
    brake = _brake(settings, desired, None if refused else settings.approved, seen, now)
    braked, desired, registry = _decide(applier, desired, registry, brake, now)
    matters = braked.plan.changes or braked.held or isinstance(registry, Unknown)  # blind, a 404 is a registration
    if matters and (elsewhere := another_cluster(world.cluster, identity)):
        deadline.stage(_SETTLING)
        return _renew_all(world, settings, deadline, listed, elsewhere)
    deadline.stage(_APPLYING)
    report = PassReport(
        dry_run=settings.dry_run,
        at=now,
        plan=braked.plan,
        registry=registry,
        view=view,
        desired=desired,
        held=braked.held,
        approved=settings.approved,
        batching=world.registry.batching(),
        approval_refused=refused,
        released=braked.approved,
        cut_short=deadline.cut_short,
    )
    if settings.dry_run:
        return report
    brake = replace(brake, approval=None, approved=braked.approved)
    plan, outcomes, held, errors = _carry_out(world, applier, deadline, brake, report, desired, renewed)
    world.sightings.note(held, seen, monotonic=world.clock.monotonic())

    deadline.stage(_SETTLING)
    written, more_errors = settle(
        world.cluster, world.clock, world.workers, deadline, desired, registry, plan, held, outcomes,
        cache_seconds=settings.registry_cache, lapse_seconds=2 * settings.lease.duration,
    )  # fmt: skip
    wished = openings(desired, view, registry, plan, now=world.clock.now())
    gates = open_gates(world.cluster, applier, world.workers, deadline, ownership, wished, now=world.clock.now())
    return replace(
        report,
        plan=plan,
        held=held,
        outcomes=outcomes,
        statuses=written,
        cluster_errors=(*errors, *more_errors, *gates),
        cut_short=deadline.cut_short,
    )


def _applier(world: World, ownership: Ownership | None, scope: Scope, deadline: Deadline) -> Applier:
    def ours(instance: ObservedInstance) -> bool:
        return ownership is not None and is_ours(instance, ownership, scope)

    may_change = ours if ownership is not None else None
    return Applier(world.registry, world.clock, world.workers, world.renewals, may_change, deadline)


def _choose(world: World, settings: PassSettings, deadline: Deadline) -> tuple[Scope, Listed[SyncerObject] | None]:
    """With a selector the syncers are listed before the first renewal, for nothing else tells whose an instance is.
    While that fails, all that may be ours is renewed."""
    if not settings.scope.selector:
        deadline.stage(_RENEWING)
        return settings.scope, None
    deadline.stage(_CHOOSING)
    syncers = read_syncers(world.cluster, settings.scope)
    deadline.stage(_RENEWING)
    return settings.scope.knowing(syncers), syncers


def _renew_ours(
    world: World, applier: Applier, registry: Complete[Observed] | Unknown, cancelled: frozenset[InstanceKey]
) -> list[Outcome]:
    """Renews all of ours that stands, whatever the cluster will say of it: a lease costs nothing. While Eureka cannot
    be read, what this process renewed before; never what it has `cancelled` a moment ago. Another class's mark may be
    out of date, so what bears one waits for the cluster."""
    if isinstance(registry, Unknown):
        return applier.renew([Renew(key=key, syncer=None, why="it stood") for key in world.renewals.renewed_lately()])
    class_ = registry.data.scope.syncer_class
    standing = [i for key, i in registry.data.ours.items() if key not in cancelled and i.metadata.get(CLASS) == class_]
    return applier.renew(plan_renewals(standing, "it stands", now=world.clock.now()).of(Renew))


def _brake(settings: PassSettings, desired: Desired, approval: Approval | None, seen: Sighted, now: float) -> Brake:
    """How this pass is braked: by the limits of the installation and of each syncer, less what was released."""
    claims = desired.claims.items()
    annotations = {ref: annotated(claim.syncer, now) for ref, claim in claims}
    return Brake(
        limits=settings.brake.scaled(settings.scope.share),
        syncer_limits={
            ref: claim.max_removal_percent
            for ref, claim in claims
            if isinstance(claim, Serving) and claim.max_removal_percent is not None
        },
        freed=frozenset(ref for ref, release in annotations.items() if release and release.released),
        approval=approval,
        seen=seen,
    )


def _decide(
    applier: Applier, desired: Desired, registry: Complete[Observed] | Unknown, brake: Brake, now: float
) -> tuple[Braked, Desired, Complete[Observed] | Unknown]:
    """The plan, and the claims within their limits: drafted from the list, made from uncached reads of all that the
    draft would change, and of what is to stay UP beside it, then braked."""
    if isinstance(registry, Unknown):
        return Braked(plan=plan_blind(desired), held=None), desired, registry
    observed = registry.data
    admitted = admit(still_drained(desired, observed), observed)
    plan = restrain(make_plan(admitted.desired, observed), admitted.desired, observed, now=now)
    read: set[InstanceKey] = set()
    # An uncached read may bring up another suspect.
    while unread := [key for key in _to_be_read(plan, admitted, observed, read) if key not in read]:
        observed = observed.refreshed(applier.read(unread))
        read.update(unread)
        admitted = admit(still_drained(desired, observed), observed)
        plan = restrain(make_plan(admitted.desired, observed), admitted.desired, observed, now=now)
    plan = without_successor(plan, admitted.desired, observed)
    return apply_brake(plan, observed, brake), warned(admitted.desired, observed), Complete(data=observed)


def _to_be_read(
    plan: Plan, admitted: Admission, observed: Observed, read: Collection[InstanceKey]
) -> tuple[InstanceKey, ...]:
    """What a plan rests on, to be read uncached."""
    back = returning(admitted.desired, observed)
    return (*plan.suspects, *admitted.doubtful, *back, *witnesses(plan, observed, read))


def _carry_out(
    world: World,
    applier: Applier,
    deadline: Deadline,
    brake: Brake,
    report: PassReport,
    desired: Desired,
    renewed: list[Outcome],
) -> tuple[Plan, Outcomes, Held | None, tuple[ClusterError, ...]]:
    """The renewals that are left; finalizers, before anything is registered; adds and other changes; then, weighed
    against what the adds really gained, what takes away."""
    plan = report.plan
    early = {outcome.action.key: outcome for outcome in renewed}
    renewals = plan.of(Renew)
    done = [replace(early[action.key], action=action) for action in renewals if action.key in early]
    done += applier.renew([action for action in renewals if action.key not in early])
    lapsed = [o.action for o in done if o.result is Result.GONE and isinstance(o.action, Renew) and o.action.heal]
    adds = [*(a for a in plan.actions if isinstance(a, Register | Update) and not removes(a)), *lapsed]
    deadline.stage_of_rest(0.5, _APPLYING)
    barred, errors = put_finalizers_on(world.cluster, world.workers, deadline, desired, [*adds, *renewals])
    deadline.stage(_APPLYING)
    done += applier.change(adds, barred)
    done += applier.level(done, barred)

    held = report.held
    if isinstance(report.registry, Complete):
        removals = what_may_go(plan, desired, report.registry.data, done, brake)
        going = [action for action in removals.actions if action.key not in removals.kept_back]
        if going:
            world.withdrawing(report, going)
        done += applier.withdraw(removals.actions, removals.kept_back)
        plan = removals.plan
        held = held_of([*(held.holds if held else ()), *(removals.held.holds if removals.held else ())])
    outcomes = _renew_the_rest(applier, Outcomes.of(done))
    world.own_writes.note(outcomes, world.clock.monotonic())
    return plan, outcomes, held, errors


def _renew_the_rest(applier: Applier, outcomes: Outcomes) -> Outcomes:
    """Renewals that their stage left over, in whatever time the later stages did not need."""
    untried = [o.action for o in outcomes.by_key.values() if o.result is Result.NOT_TRIED]
    rest = [action for action in untried if isinstance(action, Renew)]
    return Outcomes.of([*outcomes.by_key.values(), *applier.renew(rest)]) if rest else outcomes


def _renew_all(
    world: World,
    settings: PassSettings,
    deadline: Deadline,
    listed: Complete[tuple[ObservedInstance, ...]] | Unknown,
    identity: Unknown,
) -> PassReport:
    """The cluster does not tell who it is: renew whatever carries our owner's name, ask and change nothing more."""
    world.sightings.nothing_seen()
    view, now = unread_cluster(identity), world.clock.now()
    if isinstance(listed, Unknown):
        return PassReport(dry_run=settings.dry_run, at=now, plan=Plan(), registry=listed, view=view)
    applier = _applier(world, None, settings.scope, deadline)
    ours = held_by_owner(listed, settings.owner, settings.scope)
    plan = plan_renewals(ours, f"the cluster could not be read: {identity.cause}", now=world.clock.now())
    outcomes = Outcomes.of([] if settings.dry_run else applier.renew(plan.of(Renew)))
    observed = observe(listed, Ownership(owner=settings.owner, cluster=""), settings.scope)
    return PassReport(
        dry_run=settings.dry_run,
        at=now,
        plan=plan,
        registry=Complete(data=observed),
        view=view,
        outcomes=outcomes,
        batching=world.registry.batching(),
        cut_short=deadline.cut_short,
    )


def _refuse(
    settings: PassSettings,
    deadline: Deadline,
    registry: Complete[Observed],
    outcomes: Outcomes,
    view: ClusterView,
    now: float,
) -> PassReport:
    """Another cluster uses our owner's name: what is surely ours is renewed, so that refusing to work is no outage."""
    return PassReport(
        dry_run=settings.dry_run,
        at=now,
        plan=plan_renewals(registry.data.ours.values(), "another cluster uses our owner name", now=now),
        registry=registry,
        view=view,
        clashes=registry.data.clashes,
        outcomes=outcomes,
        cut_short=deadline.cut_short,
    )
