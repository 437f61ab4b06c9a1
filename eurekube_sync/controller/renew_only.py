"""What renews our instances and changes nothing else: passes while the cluster does not say who it is, the lists may be
another cluster's, another cluster uses our owner's name, or another owner serves our syncers; `keepalive`, which asks
no cluster; and a daemon between its passes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.leases import RenewalLedger, chunks
from eurekube_sync.controller.one_pass import Basis, Ends, Found, Given, PassReport, PassSettings, Renewed, World
from eurekube_sync.controller.steps import applier_of, renew_ours, renew_the_rest
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Outcome, Outcomes, Renew, Result, comes_last
from eurekube_sync.model.deadline import Deadline, Streak, TimeLimit
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import ClusterView
from eurekube_sync.model.ownership import CLUSTER, Ownership
from eurekube_sync.model.ports import Clock, Registry, Workers
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.observe.eureka import Observed, held_by_owner, observe
from eurekube_sync.observe.installations import OtherOwner
from eurekube_sync.observe.kubernetes import unread_cluster
from eurekube_sync.plan.make import plan_renewals
from eurekube_sync.plan.value import Plan, sorted_plan


def refuse(given: Given, early: Renewed, observed: Observed) -> PassReport:
    """Another cluster uses our owner's name: our instances are renewed, and nothing more is read."""
    given.world.memory.sightings.nothing_seen()
    ours = [one for key, one in observed.ours.items() if key not in early.cancelled]
    plan = plan_renewals(ours, "another cluster uses our owner name")
    return _renew_beside(given, early, plan, unread_cluster(given.identity), ours, clashes=observed.clashes)


def renew_beside(
    given: Given, found: Found, observed: Observed, report: PassReport, basis: Basis, others: tuple[OtherOwner, ...]
) -> PassReport:
    """Another owner serves our syncers: wanted instances are renewed, and those that the brake holds. The others are
    left to expire, because the other owner would not remove them."""
    world = given.world
    world.memory.sightings.note(report.held, basis.brake.seen, monotonic=world.clock.monotonic())
    removed = {action.key for action in report.plan.actions if comes_last(action)}
    kept = [one for key, one in observed.ours.items() if key not in removed]
    plan = plan_renewals(kept, "another owner serves its syncer")
    return _renew_beside(given, found, plan, found.view, other_owners=others)


def renew_in_doubt(given: Given, found: Found, planned: Plan, doubt: Unknown) -> PassReport:
    """The lists may be another cluster's: our instances in this scope are renewed; while Eureka cannot be read, those
    that the plan renews. Nothing is registered again on a 404."""
    given.world.memory.sightings.nothing_seen()
    if isinstance(found.registry, Unknown):
        plan = sorted_plan(replace(action, if_gone=None) for action in planned.renewals)
    else:
        ours = [one for key, one in found.registry.data.ours.items() if key not in found.cancelled]
        plan = plan_renewals(ours, f"the cluster could not be read: {doubt.cause}")
    return _renew_beside(given, found, plan, unread_cluster(doubt))


def _renew_beside(
    given: Given, found: Renewed, plan: Plan, view: ClusterView, listed: Iterable[ObservedInstance] = (), **told: Any
) -> PassReport:
    """Renews what the plan has and this pass has not renewed yet; the report says what is `told` beside it."""
    given.deadline.stage(Ends.SETTLING)
    report = PassReport(
        settings=given.settings,
        cluster=given.ownership.cluster,
        at=given.world.clock.now(),
        plan=plan,
        registry=found.registry,
        view=view,
        batching=given.world.registry.batching(),
        **told,
    )
    return _renewed(report, found.applier, given.deadline, found.renewed, listed)


def _renewed(
    report: PassReport,
    applier: Applier,
    deadline: Deadline,
    early: Mapping[InstanceKey, Outcome],
    listed: Iterable[ObservedInstance],
) -> PassReport:
    """Renews what the report plans and was not renewed `early`. `listed`: these, as Eureka listed them."""
    rest = [] if report.settings.dry_run else [one for one in report.plan.renewals if one.key not in early]
    outcomes = renew_the_rest(applier, Outcomes.of([*early.values(), *applier.renew(rest, listed)]))
    return replace(report, outcomes=outcomes, cut_short=deadline.cut_short)


def renew_unidentified(
    world: World,
    settings: PassSettings,
    deadline: Deadline,
    listed: Complete[tuple[ObservedInstance, ...]] | Unknown,
    identity: Unknown,
) -> PassReport:
    """The cluster does not say who it is: renews the instances that have our owner's name, and reads nothing more."""
    world.memory.sightings.nothing_seen()
    applier, now = applier_of(world, None, settings.scope, deadline), world.clock.now()
    ours: Sequence[ObservedInstance] = ()
    early: Mapping[InstanceKey, Outcome] = {}
    if isinstance(listed, Complete):
        ours = held_by_owner(listed, settings.owner, settings.scope)
    elif not settings.dry_run:
        early = {one.action.key: one for one in renew_ours(world, applier, listed, frozenset())}
    report = PassReport(
        settings=settings,
        cluster=None,
        at=now,
        plan=plan_renewals(ours, f"the cluster could not be read: {identity.cause}"),
        registry=_divided(listed, Ownership(owner=settings.owner, cluster=""), settings.scope, now),
        view=unread_cluster(identity),
        batching=world.registry.batching() if isinstance(listed, Complete) else None,
    )
    return _renewed(report, applier, deadline, early, ours)


def _divided(
    listed: Complete[tuple[ObservedInstance, ...]] | Unknown, ownership: Ownership, scope: Scope, asked: float
) -> Complete[Observed] | Unknown:
    return listed if isinstance(listed, Unknown) else Complete(data=observe(listed, ownership, scope, asked=asked))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryWorld:
    """All that `keepalive` touches."""

    registry: Registry
    clock: Clock
    workers: Workers
    renewals: RenewalLedger
    time_limit: TimeLimit
    """The one that the adapter keeps."""


def keepalive(world: RegistryWorld, settings: PassSettings, cluster: str | None = None) -> PassReport:
    """Renews all that is ours, of every cluster or of the one with this UID; while Eureka cannot be listed, what this
    process renewed before. Labels and classes are a cluster's to tell: the scope has none."""
    deadline = Deadline(world.clock, settings.deadline, world.time_limit)
    asked, listed = world.clock.now(), world.registry.list_instances()
    bearing: Sequence[ObservedInstance] = ()
    if isinstance(listed, Complete):
        bearing = held_by_owner(listed, settings.owner, settings.scope)
        if cluster is not None:
            bearing = [one for one in bearing if one.metadata.get(CLUSTER) == cluster]
        plan = plan_renewals(bearing, "it has our owner's name")
    else:
        lately = world.renewals.renewed_lately()
        plan = sorted_plan(Renew(key=key, syncer=None, why="it was registered") for key in lately)
    applier = Applier(world.registry, world.clock, world.workers, world.renewals, None, deadline)
    report = PassReport(
        settings=settings,
        cluster=cluster or None,
        at=asked,
        plan=plan,
        registry=_divided(listed, Ownership(owner=settings.owner, cluster=cluster or ""), settings.scope, asked),
        view=None,
    )
    return replace(_renewed(report, applier, deadline, {}, bearing), batching=world.registry.batching())


MANY = 250
"""Leases; fewer are one short burst, and are renewed by the pass alone, whose report then tells of each."""
_ABOUT = 0.1
"""Part of a period by which passes may renew a lease early or late: Eureka's self-preservation allows 15 % fewer."""
_STRETCH = 5.0
"""Seconds: what falls due in it is spread over all of it, so that a lease is early or late by less."""
_STEP = 0.1
"""Seconds from one group of single calls to the next."""


class BetweenPasses:
    """Called after each pass of a daemon: renews evenly, while it waits for the next, the leases that fall due by then.

    Of many leases a pass would send all that are due as fast as it can, and then nothing for the rest of its interval;
    and spread within the pass they would delay its adds and removals. So they are renewed in the time that is left
    over, each when it is a period old. What is not renewed by then, a pass renews at once, before anything else: on
    time comes before even. Where batches are safe, and one holds all that falls due from pass to pass, the passes renew
    it: spread, it would be many calls instead of one. Passes renew alone only where a whole number of intervals is
    about a period. A process that makes one pass, or a number of them, knows of no lease when it was renewed.

    Only what the last pass found to be ours and to stay is renewed. Nothing is registered again here: a lease that is
    gone, or that some servers lack, is due in the next pass, which knows what is desired."""

    def __init__(
        self, world: World | RegistryWorld, renewals: RenewalLedger, *, interval: float, many: int = MANY
    ) -> None:
        """`interval` between the beginnings of two passes, in seconds."""
        self._world = world
        self._ledger = renewals
        self._interval = interval
        self._many = many

    def __call__(self, to_renew: Collection[InstanceKey], until: float) -> int:
        """Renews what of these falls due until that moment, in monotonic seconds, at which the next pass begins. A pass
        that came late, or took all of its interval, leaves no time for it; the next then renews what falls due before
        the one after, as it does where leases are few. Gives how many were renewed."""
        clock = self._world.clock
        busy = clock.monotonic() - (until - self._interval)
        batches = self._world.registry.batches()
        most = batches.size if batches is not None else None
        if not self._worth_it(len(to_renew), most) or busy >= self._interval:
            self._ledger.slack = self._interval / 2
            return 0
        # While the next pass is busy nothing is renewed evenly: half of what falls due then comes before, half after.
        self._ledger.slack = busy / 2
        renewed = 0
        failed: set[InstanceKey] = set()
        wanted, unanswered = frozenset(to_renew), Streak()
        while (now := clock.monotonic()) < until and not clock.stopping():
            end = min(until, now + _STRETCH)
            falling = self._ledger.falling_due(wanted, end + (busy / 2 if end == until else 0.0))
            due = [key for key in falling if key not in failed]
            # Full batches, or single calls of one number, so that one group a step is enough.
            groups = chunks(due, most or max(1, ceil(len(due) * _STEP / (end - now))))
            for number, group in enumerate(groups):
                self._wait(now)
                # After one that took long the rest is spread over the rest of the time, not sent to catch up.
                begun = clock.monotonic()
                now = begun + (end - begun) / (len(groups) - number)
                if clock.stopping() or begun >= end or unanswered.broken:
                    break
                missed = self._renew(group, unanswered, until)
                renewed += len(group) - len(missed)
                failed.update(missed)
            if unanswered.broken:
                break  # the pass lists first, which finds a peer that answers
            self._wait(end)
        return renewed

    def _worth_it(self, leases: int, most: int | None) -> bool:
        """Whether the passes do not renew so many by themselves; `most` in a batch, None for single calls."""
        period = self._ledger.period
        passes = period / self._interval
        if passes < 1 or abs(round(passes) * self._interval - period) > _ABOUT * period:
            return leases > 0
        return leases >= self._many if most is None else leases > most * passes

    def _wait(self, until: float) -> None:
        self._world.clock.sleep(max(0.0, until - self._world.clock.monotonic()))

    def _renew(self, group: Sequence[InstanceKey], unanswered: Streak, until: float) -> list[InstanceKey]:
        """Those that were not renewed; they stay due."""
        world = self._world
        deadline = Deadline(world.clock, until - world.clock.monotonic(), world.time_limit)
        applier = Applier(world.registry, world.clock, world.workers, self._ledger, None, deadline)
        outcomes = applier.renew_now([Renew(key=key, syncer=None, why="it falls due") for key in group])
        for outcome in outcomes:
            unanswered.note(unreachable=outcome.cause is Cause.UNAVAILABLE)
            if outcome.lacking:
                self._ledger.again(outcome.action.key)
        return [outcome.action.key for outcome in outcomes if outcome.result is not Result.DONE]
