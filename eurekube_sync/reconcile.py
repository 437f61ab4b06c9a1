"""One pass, step by step. This file is the documentation of what a pass does; each step lives in a file of its name.

    list Eureka -> list Kubernetes -> claims -> plan -> read again what would change -> plan -> brake -> apply -> settle

Eureka is listed first: what somebody registers in between must not look undesired. A source that cannot be read is
Unknown, and what hangs on it is renewed and otherwise left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eurekube_sync.actions import Cancel, Register, Renew, Update, removes
from eurekube_sync.apply import Applier, failed_adds
from eurekube_sync.brake import BrakeLimits, Held, apply_brake
from eurekube_sync.deadline import Deadline
from eurekube_sync.desired import Desired, claim_all
from eurekube_sync.errors import ClusterError
from eurekube_sync.instance import Naming
from eurekube_sync.model import ClusterView, Complete, LeaseTimes, ObservedInstance, SyncerRef, SyncerStatus, Unknown
from eurekube_sync.observed import Observed, Scope, held_by_owner, marked_syncers, observe
from eurekube_sync.outcome import Outcome, Outcomes, Result
from eurekube_sync.own_writes import OwnWrites
from eurekube_sync.ownership import Ownership
from eurekube_sync.plan import Plan, make_plan, plan_blind, plan_renewals
from eurekube_sync.ports import Clock, Cluster, Registry, Workers
from eurekube_sync.renewals import RenewalLedger
from eurekube_sync.settle import put_finalizers_on, settle
from eurekube_sync.view import read_cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All that a pass touches."""

    registry: Registry
    cluster: Cluster
    clock: Clock
    workers: Workers
    renewals: RenewalLedger
    own_writes: OwnWrites


@dataclass(frozen=True, slots=True, kw_only=True)
class PassSettings:
    """How a pass is to be made. Times in seconds."""

    owner: str
    scope: Scope = field(default_factory=Scope)
    lease: LeaseTimes = LeaseTimes(30, 300)  # noqa: RUF009 - a NamedTuple is immutable
    brake: BrakeLimits = field(default_factory=BrakeLimits)
    approved: str | None = None
    dry_run: bool = False
    deadline: float = 120
    registry_cache: float = 45
    """How long Eureka's lists may hide what was written: 30 s in the server, and some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassReport:
    """All that a pass found and did, for the table, the summary line and the exit code."""

    dry_run: bool
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
    cut_short: bool = False
    """The pass's time was over, or it was asked to stop, before all was tried."""


def reconcile(world: World, settings: PassSettings) -> PassReport:
    """Makes Eureka equal to what the cluster says, as far as both could be read."""
    deadline = Deadline(world.clock, settings.deadline)
    listed = world.registry.list_instances()
    marked = marked_syncers(listed, settings.owner) if isinstance(listed, Complete) else frozenset()
    view = read_cluster(world.cluster, settings.scope, marked)

    if isinstance(view.identity, Unknown):
        return _renew_all(world, settings, deadline, listed, view, view.identity)
    ownership = Ownership(owner=settings.owner, cluster=view.identity.data)
    applier = _applier(world, ownership, deadline)

    registry = listed if isinstance(listed, Unknown) else Complete(data=observe(listed, ownership, settings.scope))
    if isinstance(registry, Complete) and registry.data.clashes:
        return _renew_ours(applier, settings, deadline, registry.data, view)

    if isinstance(registry, Complete):
        registry = Complete(data=registry.data.remembering(world.own_writes.recent(world.clock.monotonic())))
    desired = claim_all(view, Naming(ownership=ownership, lease=settings.lease))
    plan, registry, held = _decide(applier, settings, desired, registry)
    if settings.dry_run:
        return PassReport(
            dry_run=True,
            plan=plan,
            registry=registry,
            view=view,
            desired=desired,
            held=held,
            cut_short=deadline.cut_short,
        )

    outcomes, errors = _carry_out(world, applier, deadline, plan, desired, registry)
    written, more_errors = settle(
        world.cluster, world.clock, world.workers, deadline, desired, registry, plan, held, outcomes,
        cache_seconds=settings.registry_cache,
    )  # fmt: skip
    return PassReport(
        dry_run=False,
        plan=plan,
        registry=registry,
        view=view,
        desired=desired,
        held=held,
        outcomes=outcomes,
        statuses=written,
        cluster_errors=(*errors, *more_errors),
        cut_short=deadline.cut_short,
    )


def _applier(world: World, ownership: Ownership | None, deadline: Deadline) -> Applier:
    return Applier(world.registry, world.clock, world.workers, world.renewals, ownership, deadline)


def _decide(
    applier: Applier, settings: PassSettings, desired: Desired, registry: Complete[Observed] | Unknown
) -> tuple[Plan, Complete[Observed] | Unknown, Held | None]:
    """The plan: drafted from the list, made from uncached reads of all that the draft would change, then braked."""
    if isinstance(registry, Unknown):
        return plan_blind(desired), registry, None
    draft = make_plan(desired, registry.data)
    observed = registry.data.refreshed(applier.read(draft.suspects))
    plan, held = apply_brake(make_plan(desired, observed), observed, settings.brake, approved=settings.approved)
    return plan, Complete(data=observed), held


def _carry_out(
    world: World,
    applier: Applier,
    deadline: Deadline,
    plan: Plan,
    desired: Desired,
    registry: Complete[Observed] | Unknown,
) -> tuple[Outcomes, tuple[ClusterError, ...]]:
    """Renewals; then finalizers, before anything is registered; then adds and other changes; then what takes away."""
    done: list[Outcome] = applier.renew(plan.of(Renew))
    lapsed = [o.action for o in done if o.result is Result.GONE and isinstance(o.action, Renew) and o.action.heal]
    adds = [*(a for a in plan.actions if isinstance(a, Register | Update) and not removes(a)), *lapsed]
    barred, errors = put_finalizers_on(world.cluster, world.workers, deadline, desired, adds)
    done += applier.change(adds, barred)
    withdrawals = [a for a in plan.actions if isinstance(a, Update | Cancel) and removes(a)]
    standing = registry.data.ours if isinstance(registry, Complete) else {}
    done += applier.withdraw(withdrawals, failed_adds(withdrawals, done, standing))
    outcomes = Outcomes.of(done)
    world.own_writes.note(outcomes, world.clock.monotonic())
    return outcomes, errors


def _renew_all(
    world: World,
    settings: PassSettings,
    deadline: Deadline,
    listed: Complete[tuple[ObservedInstance, ...]] | Unknown,
    view: ClusterView,
    identity: Unknown,
) -> PassReport:
    """The cluster does not tell who it is: renew whatever carries our owner's name, change nothing."""
    if isinstance(listed, Unknown):
        return PassReport(dry_run=settings.dry_run, plan=Plan(), registry=listed, view=view)
    applier = _applier(world, None, deadline)
    ours = held_by_owner(listed, settings.owner, settings.scope)
    plan = plan_renewals(ours, f"the cluster could not be read: {identity.cause}")
    outcomes = Outcomes.of([] if settings.dry_run else applier.renew(plan.of(Renew)))
    observed = observe(listed, Ownership(owner=settings.owner, cluster=""), settings.scope)
    return PassReport(
        dry_run=settings.dry_run,
        plan=plan,
        registry=Complete(data=observed),
        view=view,
        outcomes=outcomes,
        cut_short=deadline.cut_short,
    )


def _renew_ours(
    applier: Applier, settings: PassSettings, deadline: Deadline, observed: Observed, view: ClusterView
) -> PassReport:
    """Another cluster uses our owner's name: renew what is surely ours, so that refusing to work is no outage."""
    plan = plan_renewals(observed.ours.values(), "another cluster uses our owner name")
    outcomes = Outcomes.of([] if settings.dry_run else applier.renew(plan.of(Renew)))
    return PassReport(
        dry_run=settings.dry_run,
        plan=plan,
        registry=Complete(data=observed),
        view=view,
        clashes=observed.clashes,
        outcomes=outcomes,
        cut_short=deadline.cut_short,
    )
