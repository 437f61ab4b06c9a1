"""What a pass is to do: drafted from the list, made from uncached reads of all that would change, then braked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eurekube_sync.brake import Brake, Braked, apply_brake, to_look_up
from eurekube_sync.brake.approval import Approval, annotated, refusal
from eurekube_sync.brake.removals import without_successor, witnesses
from eurekube_sync.brake.sightings import Sighted
from eurekube_sync.controller.one_pass import APPLYING, Basis, Decided, Found, Given, PassSettings, Renewed
from eurekube_sync.desired.claims import Desired, Serving
from eurekube_sync.model.actions import Register
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.observe.kubernetes import pods_behind
from eurekube_sync.plan import Choice, Plan, plan_blind, warned, with_unread
from eurekube_sync.plan.filters import draft, plan_for
from eurekube_sync.plan.quota import beyond_quota, crowded
from eurekube_sync.plan.suspend import is_suspended, lost


def decide(given: Given, early: Renewed, found: Found) -> tuple[Found, Decided]:
    """The plan, and what was found with the uncached reads and the limits applied.

    The plan is drafted from the list, and made again from uncached reads of all that the draft would change, and of
    what is to stay UP beside it. What this process cancelled a moment ago is read too: a list may still show it, and it
    must take no other's place. Where the brake would hold something, the pods of that are listed, and it is braked
    again.
    """
    world, settings, desired, registry = given.world, given.settings, found.desired, found.registry
    given.deadline.stage_of_rest(0.5, APPLYING)
    now, monotonic, memory = world.clock.now(), world.clock.monotonic(), world.memory
    refused = refusal(settings.approved, given.ownership, now)
    seen = memory.sightings.before(desired, monotonic=monotonic, now=now, within=settings.confirm_within)
    brake = brake_of(settings, desired, None if refused else settings.approved, seen, now)
    remembers = isinstance(registry, Unknown) or any(map(is_suspended, desired.claims.values()))
    remembers = remembers or bool(crowded(desired, settings.scope))
    last_up = memory.last_up(desired) if remembers else frozenset()
    if isinstance(registry, Unknown):
        beyond = beyond_quota(desired, settings.scope, last_up)
        braked = Braked(plan=plan_blind(desired, last_up, beyond), held=None)
        return found, Decided(at=now, brake=brake, braked=braked, refused=refused, last_up=last_up)
    observed = registry.data

    def rests_on(plan: Plan, choice: Choice, observed: Observed) -> Iterator[InstanceKey]:
        """What is to be read uncached."""
        yield from plan.suspects
        yield from (key for key in early.cancelled if key in observed.ours)
        yield from choice.to_read
        yield from lost(choice.desired, observed, last_up)
        yield from witnesses(plan, observed, read)

    choice, plan = draft(desired, observed, last_up, memory.earlier.plan)
    read: set[InstanceKey] = set()
    # An uncached read may bring up another suspect.
    while unread := [key for key in rests_on(plan, choice, observed) if key not in read]:
        # A heartbeat finds no stranger whose status is UNKNOWN, so what would be cancelled unseen is read.
        comes = {action.key for action in plan.of(Register)} | lost(choice.desired, observed, last_up)
        absent = [key for key in dict.fromkeys(unread) if key in comes]
        observed = observed.refreshed(found.applier.read(unread, absent, plan.in_the_way))
        read.update(unread)
        choice, plan = draft(desired, observed, last_up, memory.earlier.plan)
    plan = _finished(plan, choice, observed, last_up)
    braked = apply_brake(plan, observed, brake)
    if unlisted := to_look_up(braked.held):
        pods = pods_behind(world.cluster, found.view, unlisted, observed, settings.scope)
        brake = replace(brake, pods=pods)
        braked = apply_brake(plan, observed, brake)
    decided = Decided(at=now, brake=brake, braked=braked, refused=refused, last_up=last_up)
    return replace(found, desired=warned(choice.desired, observed), registry=Complete(data=observed)), decided


def plan_again(desired: Desired, basis: Basis) -> tuple[Desired, Braked]:
    """What `decide` came to when all was read, from the same values: nothing is asked."""
    if isinstance(basis.registry, Unknown):
        beyond = beyond_quota(desired, basis.scope, basis.last_up)
        return desired, Braked(plan=plan_blind(desired, basis.last_up, beyond), held=None)
    observed = basis.registry.data
    choice, plan = draft(desired, observed, basis.last_up)
    plan = _finished(plan, choice, observed, basis.last_up)
    return warned(choice.desired, observed), apply_brake(plan, observed, basis.brake)


def _finished(plan: Plan, choice: Choice, observed: Observed, last_up: frozenset[InstanceKey]) -> Plan:
    """The plan when nothing is read any more."""
    if not observed.unread.keys().isdisjoint(observed.ours):
        plan = with_unread(plan, plan_for(choice.desired, replace(observed, unread={}), last_up), observed)
    return without_successor(plan, choice.desired, observed)


def brake_of(settings: PassSettings, desired: Desired, approval: Approval | None, seen: Sighted, now: float) -> Brake:
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
        confirm_within=settings.confirm_within,
    )
