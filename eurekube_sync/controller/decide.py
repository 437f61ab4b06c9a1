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
from eurekube_sync.model.actions import Withdrawal
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import Pods
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan import Plan, make_plan, plan_blind, telling_unread, warned
from eurekube_sync.plan.drained import still_drained
from eurekube_sync.plan.first_come import first_come
from eurekube_sync.plan.limit import Admission, admit
from eurekube_sync.plan.policy import restrain
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
    stood: Collection[InstanceKey],
    cancelled: Collection[InstanceKey],
    pods_of: Callable[[Collection[Withdrawal], Observed], Pods],
) -> Decision:
    """The plan, and the claims within their limits: drafted from the list, made from uncached reads of all that the
    draft would change, and of what is to stay UP beside it, then braked. Where the brake would hold something, the pods
    of that are listed, and it is braked anew: `pods_of` gives them. `stood` is what this process last saw UP,
    and `cancelled` what it cancelled a moment ago: a list may show that still, and it must take no other's place."""
    if isinstance(registry, Unknown):
        blind = Braked(plan=plan_blind(desired, stood), held=None)
        return Decision(braked=blind, brake=brake, desired=desired, registry=registry)
    observed = registry.data

    def planned(admitted: Admission, observed: Observed) -> Plan:
        plan = make_plan(admitted.desired, observed)
        return restrain(plan, admitted.desired, observed, stood)

    def rests_on(plan: Plan, admitted: Admission, observed: Observed) -> Iterator[InstanceKey]:
        """What is to be read uncached."""
        yield from plan.suspects
        yield from (key for key in cancelled if key in observed.ours)
        yield from admitted.doubtful
        yield from lost(admitted.desired, observed, stood)
        yield from witnesses(plan, observed, read)

    admitted = _admitted(desired, observed)
    plan = planned(admitted, observed)
    read: set[InstanceKey] = set()
    # An uncached read may bring up another suspect.
    while unread := [key for key in rests_on(plan, admitted, observed) if key not in read]:
        observed = observed.refreshed(applier.read(unread))
        read.update(unread)
        admitted = _admitted(desired, observed)
        plan = planned(admitted, observed)
    if not observed.unread.keys().isdisjoint(observed.ours):
        plan = telling_unread(plan, planned(admitted, replace(observed, unread={})), observed)
    plan = without_successor(plan, admitted.desired, observed)
    braked = apply_brake(plan, observed, brake)
    if doubtful := to_look_up(braked.held):
        brake = replace(brake, pods=pods_of(doubtful, observed))
        braked = apply_brake(plan, observed, brake)
    told = warned(admitted.desired, observed)
    return Decision(braked=braked, brake=brake, desired=told, registry=Complete(data=observed))


def _admitted(desired: Desired, observed: Observed) -> Admission:
    first = first_come(desired, observed)
    admission = admit(still_drained(first.desired, observed), observed)
    return replace(admission, doubtful=(*first.doubtful, *admission.doubtful))


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
