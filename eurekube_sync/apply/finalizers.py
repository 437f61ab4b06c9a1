"""When our finalizer may go: nothing of the syncer is listed on any server, every id it could have written answered a
DELETE, and the deletion is older than the server's cache, so that the lists cannot hide a late register. A server that
does not show what it holds is waited for until that has expired."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from eurekube_sync.apply.conditions import PassResult
from eurekube_sync.desired.claims import Deleting
from eurekube_sync.desired.conduct import Policy, is_gone
from eurekube_sync.desired.spec import CLEANUP_FINALIZER, abandoned
from eurekube_sync.model.actions import Cancel, Outcomes, Renew
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerObject, SyncerRef
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan import Plan


def look_elsewhere(
    deleting: Collection[SyncerObject], observed: Observed, *, cache_seconds: float
) -> frozenset[SyncerRef]:
    """The deleted syncers that other servers than the one that gave the list have to be asked about: all, as soon as
    one may come to its end; before that none. What is registered on another alone no list shows, and its ids are
    nobody's once its endpoints are gone."""
    ends = any(
        CLEANUP_FINALIZER in syncer.finalizers
        and not abandoned(syncer)
        and not observed.listed.get(syncer.ref)
        and _age(syncer, observed) >= cache_seconds
        for syncer in deleting
    )
    return frozenset(syncer.ref for syncer in deleting) if ends else frozenset()


def waits_for(
    claim: Deleting, result: PassResult, unseen: Sequence[str] | None, *, cache_seconds: float, expires_after: float
) -> str | None:
    """Why the finalizer has to stay, as a sentence; None when it may go. `unseen` are the other servers that did not
    show what they hold, None when they were not asked; `expires_after` is how long an instance lives after its last
    renewal."""
    if isinstance(result.registry, Unknown):
        return f"Eureka could not be read: {result.registry.message}"
    observed = result.registry.data
    if left := still_there(claim, observed, result):
        why = _why_left(left[0], result.plan, result.outcomes)
        if heir := result.desired.wanted_by.get(left[0]):
            why = f"syncer {heir} claims it: {why}"
        still = one_or_more(len(left), "still has to be removed:", "still have to be removed, such as")
        return f"{counted(len(left), 'instance')} {still} {left[0]}: {why}"
    if observed.listed.get(claim.syncer.ref):
        return "Eureka's cached list still shows its instances"
    age = _age(claim.syncer, observed)
    if age < cache_seconds or unseen is None:
        begun = "the deletion and the last change" if _left_to_expire(claim.syncer, observed) else "the deletion"
        until = f"the finalizer stays until {cache_seconds:g} s after {begun}"
        return f"{until}, because Eureka's lists may be that old"
    if unseen and age < expires_after:
        may = f"may still hold an instance, which expires at the latest {expires_after:g} s after the deletion"
        return f"{' and '.join(unseen)} could not be listed and {may}"
    return None


def still_there(claim: Deleting, observed: Observed, result: PassResult) -> list[InstanceKey]:
    """What it may have written, or has its mark, and did not answer a DELETE; sorted."""
    keys = claim.keys | observed.keys_by_syncer.get(claim.syncer.ref, frozenset())
    wanted_by = result.desired.wanted_by
    return sorted(key for key in keys if not _gone(key, claim, observed, result.outcomes, key in wanted_by))


def _age(syncer: SyncerObject, observed: Observed) -> float:
    """How old the deletion was when the list was asked for, and what its policy left to expire: a pass may have been
    paused since, and other servers may still show that UP."""
    assert syncer.deleted is not None  # a `Deleting` claim is made of a deletion
    changed = (one.last_dirty_timestamp / 1000 for one in _left_to_expire(syncer, observed))
    return observed.asked - max((syncer.deleted, *changed))


def _left_to_expire(syncer: SyncerObject, observed: Observed) -> list[ObservedInstance]:
    registered = (observed.ours[key] for key in observed.keys_by_syncer.get(syncer.ref, ()))
    return [one for one in registered if is_gone(one)]


def _why_left(key: InstanceKey, plan: Plan, outcomes: Outcomes) -> str:
    """The same in every pass, whether the lease of what stays was due or not."""
    outcome = outcomes.by_key.get(key)
    if outcome is not None:
        return outcome.detail or outcome.action.why
    return next((action.why for action in plan.actions if action.key == key), "not tried")


def _gone(key: InstanceKey, claim: Deleting, observed: Observed, outcomes: Outcomes, wanted: bool) -> bool:
    outcome = outcomes.by_key.get(key)
    if (registered := observed.ours.get(key)) and is_gone(registered):
        return True  # its policy lets nothing be cancelled: it is DOWN, and expires
    if (
        registered
        and syncer_of(registered) == claim.syncer.ref
        and (outcome is None or isinstance(outcome.action, Renew))
    ):
        return False  # also where a successor claims it that is suspended, or whose own change is held
    if outcome is None:
        # Nothing was due: a successor's endpoint that was never ready, another owner's instance, or a policy that
        # cancels nothing unseen.
        absent = claim.policy is not Policy.SYNC and registered is None
        return key not in observed.unread and (wanted or key in observed.others or absent)
    if isinstance(outcome.action, Cancel):
        return not outcome.failed
    if outcome.action.syncer == claim.syncer.ref:
        return False  # its removal is held, or could not be decided
    # A successor's from now on, once it bears the successor's mark.
    return not outcome.failed or registered is None or syncer_of(registered) != claim.syncer.ref
