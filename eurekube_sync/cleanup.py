"""When our finalizer may go: nothing of the syncer is listed, every id it could have written answered a DELETE, and the
deletion is older than the server's cache, so that the list cannot hide a late register."""

from __future__ import annotations

from collections.abc import Mapping

from eurekube_sync.actions import Cancel
from eurekube_sync.conduct import Policy, is_gone
from eurekube_sync.desired import Deleting
from eurekube_sync.model import Complete, InstanceKey, SyncerRef, Unknown
from eurekube_sync.observed import Observed
from eurekube_sync.outcome import Outcomes
from eurekube_sync.ownership import syncer_of
from eurekube_sync.plan import Plan
from eurekube_sync.wording import counted, one_or_more


def waits_for(
    claim: Deleting,
    registry: Complete[Observed] | Unknown,
    plan: Plan,
    outcomes: Outcomes,
    wanted_by: Mapping[InstanceKey, SyncerRef],
    marked: frozenset[InstanceKey],
    *,
    now: float,
    cache_seconds: float,
) -> str | None:
    """Why the finalizer has to stay, as a sentence; None when it may go. `wanted_by` are the keys that living syncers
    claim, `marked` those of ours that bear this syncer's mark; `now` in Unix seconds."""
    deleted = claim.syncer.deleted
    assert deleted is not None  # a `Deleting` claim is made of a deletion
    if isinstance(registry, Unknown):
        return f"Eureka could not be read: {registry.message}"
    observed = registry.data
    if left := still_there(claim, observed, outcomes, wanted_by, marked):
        why = _why_left(left[0], plan, outcomes)
        still = one_or_more(len(left), "is still to go,", "are still to go, such as")
        return f"{counted(len(left), 'instance')} {still} {left[0]}: {why}"
    if observed.listed.get(claim.syncer.ref):
        return "Eureka's cached list still shows its instances"
    if now - deleted < cache_seconds:
        return f"it is taken off {cache_seconds:g} s after the deletion, when Eureka's list must show a late register"
    return None


def still_there(
    claim: Deleting,
    observed: Observed,
    outcomes: Outcomes,
    wanted_by: Mapping[InstanceKey, SyncerRef],
    marked: frozenset[InstanceKey],
) -> list[InstanceKey]:
    """What it may have written and did not answer a DELETE; sorted."""
    return sorted(k for k in claim.keys | marked if not _gone(k, claim, observed, outcomes, k in wanted_by))


def _why_left(key: InstanceKey, plan: Plan, outcomes: Outcomes) -> str:
    """The same in every pass, whether the lease of what stays was due or not."""
    outcome = outcomes.by_key.get(key)
    if outcome is not None:
        return outcome.detail or outcome.action.why
    return next((action.why for action in plan.actions if action.key == key), "not tried")


def _gone(key: InstanceKey, claim: Deleting, observed: Observed, outcomes: Outcomes, wanted: bool) -> bool:
    outcome = outcomes.by_key.get(key)
    if (stands := observed.ours.get(key)) and is_gone(stands):
        return True  # its policy lets nothing be cancelled: it is DOWN, and lapses
    if outcome is None:
        # Nothing was due: a successor's endpoint that was never ready, another's instance, or a policy that cancels
        # nothing unseen.
        absent = claim.policy is not Policy.SYNC and stands is None
        return key not in observed.unread and (wanted or key in observed.others or absent)
    if isinstance(outcome.action, Cancel):
        return not outcome.failed
    if outcome.action.syncer == claim.syncer.ref:
        return False  # its removal is held, or could not be decided
    standing = observed.ours.get(key)  # a successor's from now on, once it bears the successor's mark
    return not outcome.failed or standing is None or syncer_of(standing) != claim.syncer.ref
