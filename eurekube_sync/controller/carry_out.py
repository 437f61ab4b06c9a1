"""What a pass writes to Eureka, in the order in which nothing is lost: renewals, adds, and then removals."""

from __future__ import annotations

from dataclasses import replace

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.kubernetes import put_finalizers_on
from eurekube_sync.brake import held_of
from eurekube_sync.brake.removals import removals_left
from eurekube_sync.controller.one_pass import APPLYING, Decided, Found, Given, PassReport, Renewed, World
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Register, Renew, Update, comes_last
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.outcomes import Outcome, Outcomes, Result
from eurekube_sync.model.ownership import CLASS, Ownership, syncer_of
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.observe.eureka import Observed, is_ours
from eurekube_sync.observe.other_owner import served_by_others
from eurekube_sync.plan import plan_renewals


def renew_ours(
    world: World, applier: Applier, registry: Complete[Observed] | Unknown, cancelled: frozenset[InstanceKey]
) -> list[Outcome]:
    """Renews all of ours that is registered, whatever the cluster will say of it: a lease costs nothing. While
    Eureka cannot be read, what this process renewed before; never what it has `cancelled` a moment ago. Another
    class's mark may be out of date, so what bears one waits for the cluster; so does what may be registered twice,
    under another owner."""
    if isinstance(registry, Unknown):
        lately = sorted(world.memory.renewals.renewed_lately())
        return applier.renew([Renew(key=key, syncer=None, why="it was registered") for key in lately])
    observed = registry.data
    class_, contended = observed.scope.syncer_class, served_by_others(observed)
    due = (observed.ours[key] for key in applier.due(observed.ours) if key not in cancelled)
    registered = [one for one in due if one.metadata.get(CLASS) == class_ and syncer_of(one) not in contended]
    return applier.renew(plan_renewals(registered, "it is registered").renewals, registered)


def carry_out(given: Given, early: Renewed, found: Found, decided: Decided, report: PassReport) -> PassReport:
    """The renewals that are left; finalizers, before anything is registered; adds and other changes; then, weighed
    against what the adds really gained, the removals. What the next pass has to know of it is remembered."""
    world, deadline, applier, desired = given.world, given.deadline, found.applier, found.desired
    brake, plan = replace(decided.brake, approval=None, approved=decided.braked.approved), report.plan
    renewed = {outcome.action.key: outcome for outcome in early.outcomes}
    renewals = plan.renewals
    done = [replace(renewed[action.key], action=action) for action in renewals if action.key in renewed]
    done += applier.renew([action for action in renewals if action.key not in renewed])
    expired = [o.action for o in done if o.result is Result.GONE and isinstance(o.action, Renew) and o.action.if_gone]
    adds = [*(a for a in plan.changes if isinstance(a, Register | Update) and not comes_last(a)), *expired]
    deadline.stage_of_rest(0.5, APPLYING)
    barred, errors = put_finalizers_on(world.cluster, world.workers, deadline, desired, [*adds, *renewals])
    deadline.stage(APPLYING)
    if any(map(comes_last, plan.actions)):
        deadline.stage_of_rest(0.5, APPLYING)  # however many come, some of what goes is cancelled
    done += applier.change(adds, barred)
    deadline.stage(APPLYING)
    done += applier.missed(renewals, done)
    done += applier.level(done, barred)

    held = report.held
    if isinstance(report.registry, Complete):
        removals = removals_left(plan, desired, report.registry.data, done, brake)
        done += applier.remove(removals.actions, removals.kept_back)
        plan = removals.plan
        held = held_of([*(held.holds if held else ()), *(removals.held.holds if removals.held else ())])
    outcomes = renew_the_rest(applier, Outcomes.of(done))
    world.memory.note(report.registry, outcomes, held, brake.seen, monotonic=world.clock.monotonic())
    return replace(report, plan=plan, held=held, outcomes=outcomes, cluster_errors=errors)


def renew_the_rest(applier: Applier, outcomes: Outcomes) -> Outcomes:
    """Renewals that their stage left over, in whatever time the later stages did not need."""
    untried = [o.action for o in outcomes.by_key.values() if o.result is Result.NOT_TRIED]
    rest = [action for action in untried if isinstance(action, Renew)]
    return Outcomes.of([*outcomes.by_key.values(), *applier.renew(rest)]) if rest else outcomes


def applier_of(world: World, ownership: Ownership | None, scope: Scope, deadline: Deadline) -> Applier:
    """Whoever makes the calls: it may change what is ours in this scope; of an unknown cluster nothing."""

    def ours(instance: ObservedInstance) -> bool:
        return ownership is not None and is_ours(instance, ownership, scope)

    may_change = ours if ownership is not None else None
    return Applier(world.registry, world.clock, world.workers, world.memory.renewals, may_change, deadline)
