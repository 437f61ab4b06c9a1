"""How many instances a namespace may have registered: beyond that nothing new is registered, and nothing is removed.

What is registered stays. Of what would come, that of the older syncers comes first. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import ceil

from eurekube_sync.desired.claims import Desired, Serving, seniority
from eurekube_sync.desired.verdicts import OverLimit, Wanted
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.wording import counted
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import Choice


def within_quota(desired: Desired, observed: Observed) -> Choice:
    """The claims without what their namespaces have no place for. A shard has its share of the places."""
    most = ceil(observed.scope.most_instances * observed.scope.share)
    limited: dict[SyncerRef, Serving] = {}
    for claims in _crowded(desired, most):
        places = {claim.syncer.ref: _Places.of(claim, desired, observed) for claim in claims}
        free = max(0, most - sum(one.held for one in places.values()))
        for claim in sorted(claims, key=seniority):
            own = places[claim.syncer.ref]
            let_in = own.left_by_own + free
            if out := own.new[let_in:]:
                limited[claim.syncer.ref] = _without(claim, out, most)
            free -= min(free, max(0, len(own.new) - own.left_by_own))
    if not limited:
        return Choice(desired=desired)
    wanted_by = {
        key: ref for key, ref in desired.wanted_by.items() if ref not in limited or limited[ref].wanted_at(key)
    }
    return Choice(desired=replace(desired, claims={**desired.claims, **limited}, wanted_by=wanted_by))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """What one syncer has of its namespace's places, and would like to have."""

    held: int
    left_by_own: int
    """Of these, by instances that it does not want any more: their pods' successors have them, whoever else waits."""
    new: Sequence[InstanceKey]

    @classmethod
    def of(cls, claim: Serving, desired: Desired, observed: Observed) -> _Places:
        """What could not be read again may be registered, and has a place. A suspended syncer registers nothing new."""
        ref, ours, unread = claim.syncer.ref, observed.ours, observed.unread
        wanted = {key: one for key, one in claim.wanted.items() if desired.wanted_by.get(key) == ref}
        kept = sum(key in ours or key in unread for key in wanted)
        held = max(kept, len(observed.keys_by_syncer.get(ref, ())))
        comes = () if claim.conduct.suspend else wanted.items()
        new = [key for key, one in comes if key not in ours and key not in unread and _is_up(one)]
        return cls(held=held, left_by_own=held - kept, new=sorted(new))


def _crowded(desired: Desired, most: int) -> list[list[Serving]]:
    """What is served in each namespace that may want more than it has places."""
    found: dict[str, list[Serving]] = {}
    for claim in desired.claims.values():
        if isinstance(claim, Serving):
            found.setdefault(claim.syncer.namespace, []).append(claim)
    return [claims for claims in found.values() if sum(len(claim.verdicts) for claim in claims) > most]


def _without(claim: Serving, out: Collection[InstanceKey], most: int) -> Serving:
    why = (
        f"namespace {claim.syncer.namespace} may have {counted(most, 'instance')}; the operator may allow more with "
        "--max-instances-per-namespace"
    )
    wanted = claim.wanted
    left_out = {key: OverLimit(wanted=wanted[key], why=why) for key in out}
    return replace(
        claim,
        verdicts={**claim.verdicts, **left_out},
        over_quota=f"{len(out)} ready and not registered: {why}",
    )


def _is_up(one: Wanted) -> bool:
    return one.instance.status is InstanceStatus.UP
