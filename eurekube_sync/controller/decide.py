"""What a pass is to do: drafted from the list, made from uncached reads of all that would change, then braked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.brake import Brake, Braked, apply_brake, to_look_up
from eurekube_sync.brake.approval import Approval, annotated
from eurekube_sync.brake.removals import without_successor, witnesses
from eurekube_sync.brake.sightings import Sighted
from eurekube_sync.controller.one_pass import PassSettings
from eurekube_sync.desired.claims import Desired, Serving
from eurekube_sync.model.actions import Removal
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import Pods
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan import Choice, Plan, plan_blind, warned, with_unread
from eurekube_sync.plan.filters import choose, plan_for
from eurekube_sync.plan.suspend import lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be done, and what was found on the way to it."""

    braked: Braked
    brake: Brake
    """With the pods that were looked up."""
    desired: Desired
    """The claims within their limits."""
    registry: Complete[Observed] | Unknown


def decide(
    applier: Applier,
    desired: Desired,
    registry: Complete[Observed] | Unknown,
    brake: Brake,
    last_up: Collection[InstanceKey],
    cancelled: Collection[InstanceKey],
    pods_of: Callable[[Collection[Removal], Observed], Pods],
) -> Decision:
    """The plan, and the claims within their limits: drafted from the list, made from uncached reads of all that the
    draft would change, and of what is to stay UP beside it, then braked. Where the brake would hold something, the pods
    of that are listed, and it is braked anew: `pods_of` gives them. `last_up` is what this process last saw UP,
    and `cancelled` what it cancelled a moment ago: a list may show that still, and it must take no other's place."""
    if isinstance(registry, Unknown):
        blind = Braked(plan=plan_blind(desired, last_up), held=None)
        return Decision(braked=blind, brake=brake, desired=desired, registry=registry)
    observed = registry.data

    def rests_on(plan: Plan, choice: Choice, observed: Observed) -> Iterator[InstanceKey]:
        """What is to be read uncached."""
        yield from plan.suspects
        yield from (key for key in cancelled if key in observed.ours)
        yield from choice.to_read
        yield from lost(choice.desired, observed, last_up)
        yield from witnesses(plan, observed, read)

    choice = choose(desired, observed)
    plan = plan_for(choice.desired, observed, last_up)
    read: set[InstanceKey] = set()
    # An uncached read may bring up another suspect.
    while unread := [key for key in rests_on(plan, choice, observed) if key not in read]:
        observed = observed.refreshed(applier.read(unread))
        read.update(unread)
        choice = choose(desired, observed)
        plan = plan_for(choice.desired, observed, last_up)
    if not observed.unread.keys().isdisjoint(observed.ours):
        plan = with_unread(plan, plan_for(choice.desired, replace(observed, unread={}), last_up), observed)
    plan = without_successor(plan, choice.desired, observed)
    braked = apply_brake(plan, observed, brake)
    if unlisted := to_look_up(braked.held):
        brake = replace(brake, pods=pods_of(unlisted, observed))
        braked = apply_brake(plan, observed, brake)
    told = warned(choice.desired, observed)
    return Decision(braked=braked, brake=brake, desired=told, registry=Complete(data=observed))


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
