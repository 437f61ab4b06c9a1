"""When our finalizer may go: nothing of the syncer is listed, every id it could have written answered a DELETE, and the
deletion is older than the server's cache, so that the list cannot hide a late register."""

from __future__ import annotations

from eurekube_sync.desired import Deleting
from eurekube_sync.model import Complete, InstanceKey, SyncerObject, Unknown
from eurekube_sync.observed import Observed
from eurekube_sync.outcome import Outcomes
from eurekube_sync.ownership import syncer_of
from eurekube_sync.syncer import ABANDON_ANNOTATION


def abandoned(syncer: SyncerObject) -> bool:
    """Whether a person lets the deletion go on without its clean-up."""
    return syncer.deleted is not None and syncer.annotations.get(ABANDON_ANNOTATION) == "true"


def waits_for(
    claim: Deleting, registry: Complete[Observed] | Unknown, outcomes: Outcomes, *, now: float, cache_seconds: float
) -> str | None:
    """Why the finalizer has to stay, as a sentence; None when it may go. `now` in Unix seconds."""
    deleted = claim.syncer.deleted
    assert deleted is not None  # a `Deleting` claim is made of a deletion
    if isinstance(registry, Unknown):
        return f"Eureka could not be read: {registry.message}"
    observed = registry.data
    left = [key for key in _keys(claim, observed) if not _gone(key, claim, observed, outcomes)]
    if left:
        outcome = outcomes.by_key.get(left[0])
        return f"{len(left)} instances are still to go, such as {left[0]}: {outcome.detail if outcome else 'not tried'}"
    if observed.listed.get(claim.syncer.ref):
        return "Eureka's list, which may be 30 s old, still shows its instances"
    if now - deleted < cache_seconds:
        return f"it is taken off {cache_seconds:g} s after the deletion, when Eureka's list must show a late register"
    return None


def _keys(claim: Deleting, observed: Observed) -> frozenset[InstanceKey]:
    tagged = {key for key, instance in observed.ours.items() if syncer_of(instance) == claim.syncer.ref}
    return claim.keys | tagged


def _gone(key: InstanceKey, claim: Deleting, observed: Observed, outcomes: Outcomes) -> bool:
    outcome = outcomes.by_key.get(key)
    if outcome is not None and not outcome.failed:
        return True  # cancelled; or it went to a successor, which renews it
    if key in observed.unread or outcome is not None:
        return False
    instance = observed.ours.get(key) or observed.others.get(key)
    return instance is not None and syncer_of(instance) != claim.syncer.ref
