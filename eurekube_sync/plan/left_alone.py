"""What the syncer of an instance asks not to be done to it.

The instances of a suspended syncer are renewed as they are. One that Eureka lost comes back if this process saw it UP
lately: a list cannot tell what Eureka lost from what was cancelled before. A policy other than Sync cancels nothing; of
an instance whose syncer is gone it is the one that its mark names. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from operator import attrgetter

from eurekube_sync.desired.claims import Claim, Desired, NotServed, Serving, Wanted
from eurekube_sync.desired.conduct import GONE, POLICY, Policy, is_gone, policy_of
from eurekube_sync.desired.scope import no_longer_granted
from eurekube_sync.model.actions import Action, Cancel, Change, Register, Renew, Update
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.ownership import KEYS, POD
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.ours import renewal
from eurekube_sync.plan.value import Plan, sorted_plan


def left_alone(plan: Plan, desired: Desired, observed: Observed, last_up: Collection[InstanceKey]) -> Plan:
    """The plan without what the syncers of our instances ask not to be done. What a Namespace no longer grants changes
    all the same. `last_up`: what this process last saw UP."""
    syncers = {ref for ref, claim in desired.claims.items() if is_suspended(claim)}
    wanted_by = desired.wanted_by
    if not (syncers or plan.changes) and all(map(wanted_by.__contains__, map(attrgetter("key"), plan.renewals))):
        return plan
    comes_back = lost(desired, observed, last_up) if syncers else frozenset[InstanceKey]()
    actions: list[Action] = []
    for action in plan.actions:
        asleep = bool(syncers) and action.syncer in syncers
        if isinstance(action, Register):  # no policy forbids it
            actions += [] if asleep and action.key not in comes_back else [action]
        elif isinstance(action, Renew) and not asleep and action.key in wanted_by:  # whosever it is by its mark
            actions.append(action)
        else:
            claim = desired.claims.get(action.syncer) if action.syncer else None
            registered = observed.ours.get(action.key)
            if isinstance(action, Update) and no_longer_granted(claim, observed.ours[action.key]):
                actions.append(action)
            elif asleep:
                actions.append(_as_it_is(action, registered, seen_up=action.key in last_up))
            elif kept := _by_policy(action, claim, registered, desired):
                actions.append(kept)
    return plan if actions == [*plan.actions] else sorted_plan(actions, plan.blocked)


def is_suspended(claim: Claim | None) -> bool:
    """A syncer that cannot be served is suspended all the same: its raw spec says so. A deletion is not."""
    if isinstance(claim, NotServed):
        return claim.syncer.spec.get("suspend") is True
    return isinstance(claim, Serving) and claim.conduct.suspend


def lost(desired: Desired, observed: Observed, last_up: Collection[InstanceKey]) -> frozenset[InstanceKey]:
    """The ready instances of suspended syncers that this process saw UP and Eureka lost: they come back."""
    return frozenset(
        key
        for key in last_up
        if (one := desired.wanted(key)) is not None
        and one.instance.status is InstanceStatus.UP
        and is_suspended(desired.claims.get(desired.wanted_by[key]))
        and not any(key in there for there in (observed.ours, observed.others, observed.unread))
    )


def _as_it_is(action: Renew | Update | Cancel, registered: ObservedInstance | None, *, seen_up: bool) -> Renew:
    """What is left of an action: a renewal that registers, if it finds no lease, only what this process last saw UP."""
    if isinstance(action, Renew):
        return action if seen_up else replace(action, if_gone=None)
    assert registered is not None  # a claim that serves, or is not served, changes what is registered alone
    returns = isinstance(action, Update) and registered.status is InstanceStatus.UP and seen_up
    renews = renewal(registered, f"not changed, because syncer {action.syncer} is suspended")
    return replace(renews, syncer=action.syncer, if_gone=registered.unchanged() if returns else None)


_OURS = "eurekube."


def _by_policy(
    action: Renew | Update | Cancel, claim: Claim | None, registered: ObservedInstance | None, desired: Desired
) -> Action | None:
    """What a policy leaves of it; None for nothing."""
    policy = _policy(claim, registered)
    match action:
        case Renew() if registered is not None and is_gone(registered):
            return None
        case Update() if policy is Policy.CREATE_ONLY and registered is not None:
            return _created_only(action, registered, desired.wanted(action.key))
        case Cancel() if policy is not Policy.SYNC:
            return None if registered is None or is_gone(registered) else _left_to_expire(action, registered, policy)
        case _:
            return action


def _policy(claim: Claim | None, registered: ObservedInstance | None) -> Policy:
    """The spec's; of one that ends or cannot be served also the mark's: what either never cancels is not cancelled."""
    if isinstance(claim, Serving):
        return claim.conduct.policy
    marked = policy_of(registered.metadata) if registered is not None else Policy.SYNC
    asked = policy_of(claim.syncer.spec, "policy") if claim is not None else Policy.SYNC
    return marked if asked is Policy.SYNC else asked


def _created_only(action: Update, registered: ObservedInstance, wanted: Wanted | None) -> Action:
    """UP, DOWN and our own marks; but another pod under the same address is another instance."""
    if any(change.field == f"metadata.{POD}" for change in action.changes):
        return action
    allowed = {"status"} | {one.field for one in action.changes if one.field.startswith(f"metadata.{_OURS}")}
    changes = tuple(one for one in action.changes if one.field in allowed - {f"metadata.{KEYS}"})
    marks = {key: value for key, value in action.instance.metadata.items() if key.startswith(_OURS) and key != KEYS}
    kept = {key: value for key, value in registered.metadata.items() if not key.startswith(_OURS) or key == KEYS}
    instance = replace(registered.unchanged(), status=action.instance.status, metadata={**kept, **marks})
    if changes:
        return replace(action, instance=instance, changes=changes)
    if_gone = wanted.if_gone if wanted is not None else None
    return replace(renewal(registered, action.why), syncer=action.syncer, if_gone=if_gone)


def _left_to_expire(action: Cancel, registered: ObservedInstance, policy: Policy) -> Action:
    """DOWN instead of cancelled, and from now on not renewed. The policy is marked here at the latest, or the end of
    the syncer would be the end of the policy."""
    marks, status = {GONE: "true", POLICY: policy.value}, InstanceStatus.DOWN
    pairs = [(f"metadata.{key}", registered.metadata.get(key, ""), mark) for key, mark in marks.items()]
    pairs.append(("status", registered.status.value, status.value))
    return Update(
        instance=replace(registered.unchanged(), status=status, metadata={**registered.metadata, **marks}),
        syncer=action.syncer,
        why=f"{action.why}; by policy {policy}, the instance turns DOWN and expires",
        changes=tuple(Change(field=field, was=was, becomes=becomes) for field, was, becomes in pairs if was != becomes),
        was=registered.status,
        stored_timestamp=registered.last_dirty_timestamp,
        proof=action.proof,
        grounds=action.grounds,
    )
