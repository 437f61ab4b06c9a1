"""Drop the changes that the syncer of an instance forbids by `suspend` or `policy`. Pure.

The instances of a suspended syncer are renewed as they are. An instance that Eureka lost is
registered again if this process saw it UP lately, because a list does not show whether an instance
was lost or cancelled. A policy other than Sync cancels nothing; if the syncer of an instance is
gone, the policy in the instance's mark counts."""

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
from eurekube_sync.plan.value import Plan, sorted_plan


def left_alone(
    plan: Plan, desired: Desired, observed: Observed, last_up: Collection[InstanceKey]
) -> Plan:
    """Return the plan without the changes that our instances' syncers forbid, except those for
    which a Namespace no longer has a grant. `last_up` are the instances that this process last saw
    UP."""
    syncers = {ref for ref, claim in desired.claims.items() if is_suspended(claim)}
    wanted_by = desired.wanted_by
    if not (syncers or plan.changes) and all(
        map(wanted_by.__contains__, map(attrgetter("key"), plan.renewals))
    ):
        return plan
    comes_back = lost(desired, observed, last_up) if syncers else frozenset[InstanceKey]()
    actions: list[Action] = []
    for action in plan.actions:
        suspended = bool(syncers) and action.syncer in syncers
        if isinstance(action, Register):  # no policy forbids it
            actions += [] if suspended and action.key not in comes_back else [action]
        elif (
            isinstance(action, Renew) and not suspended and action.key in wanted_by
        ):  # whatever syncer its mark names
            actions.append(action)
        else:
            claim = desired.claims.get(action.syncer) if action.syncer else None
            registered = observed.ours.get(action.key)
            if isinstance(action, Update) and no_longer_granted(claim, observed.ours[action.key]):
                actions.append(action)
            elif suspended:
                actions.append(_as_it_is(action, registered, seen_up=action.key in last_up))
            elif kept := _by_policy(action, claim, registered, desired):
                actions.append(kept)
    return plan if actions == [*plan.actions] else sorted_plan(actions, plan.blocked)


def is_suspended(claim: Claim | None) -> bool:
    """Say whether the syncer is suspended, also if it cannot be served; a deletion never is."""
    if isinstance(claim, NotServed):
        return claim.syncer.spec.get("suspend") is True
    return isinstance(claim, Serving) and claim.conduct.suspend


def lost(
    desired: Desired, observed: Observed, last_up: Collection[InstanceKey]
) -> frozenset[InstanceKey]:
    """Return the ready instances of suspended syncers that this process saw UP and Eureka lost."""
    return frozenset(
        key
        for key in last_up
        if (one := desired.wanted(key)) is not None
        and one.instance.status is InstanceStatus.UP
        and is_suspended(desired.claims.get(desired.wanted_by[key]))
        and not any(key in there for there in (observed.ours, observed.others, observed.unread))
    )


def _as_it_is(
    action: Renew | Update | Cancel, registered: ObservedInstance | None, *, seen_up: bool
) -> Renew:
    """Replace an action of a suspended syncer by a renewal. A 404 registers only what this process
    last saw UP."""
    if isinstance(action, Renew):
        return action if seen_up else replace(action, if_gone=None)
    assert (
        registered is not None
    )  # only a deleting syncer cancels unlisted instances, and it is not suspended
    returns = isinstance(action, Update) and registered.status is InstanceStatus.UP and seen_up
    why = f"not changed, because syncer {action.syncer} is suspended"
    if_gone = registered.unchanged() if returns else None
    return Renew(
        key=action.key, syncer=action.syncer, why=why, if_gone=if_gone, status=registered.status
    )


def _by_policy(
    action: Renew | Update | Cancel,
    claim: Claim | None,
    registered: ObservedInstance | None,
    desired: Desired,
) -> Action | None:
    """Return the action that the policy allows instead; None for no action."""
    policy = _policy(claim, registered)
    match action:
        case Renew() if registered is not None and is_gone(registered):
            return None
        case Update() if policy is Policy.CREATE_ONLY and registered is not None:
            return _created_only(action, registered, desired.wanted(action.key))
        case Cancel() if policy is not Policy.SYNC:
            return (
                None
                if registered is None or is_gone(registered)
                else _left_to_expire(action, registered, policy)
            )
        case _:
            return action


def _policy(claim: Claim | None, registered: ObservedInstance | None) -> Policy:
    """Return the policy of the spec. While the syncer is not served or its object is gone, its mark
    counts as well: an instance that either of them never cancels is not cancelled."""
    if isinstance(claim, Serving):
        return claim.conduct.policy
    marked = policy_of(registered.metadata) if registered is not None else Policy.SYNC
    asked = policy_of(claim.syncer.spec, "policy") if claim is not None else Policy.SYNC
    return marked if asked is Policy.SYNC else asked


def _created_only(action: Update, registered: ObservedInstance, wanted: Wanted | None) -> Action:
    """Keep only changes of the status and of our marks, unless another pod has the address."""
    if any(change.field == f"metadata.{POD}" for change in action.changes):
        return action
    changes = tuple(
        c
        for c in action.changes
        if c.field == "status" or _is_mark(c.field.removeprefix("metadata."))
    )
    if not changes:
        if_gone = wanted.if_gone if wanted is not None else None
        return Renew(
            key=action.key,
            syncer=action.syncer,
            why=action.why,
            if_gone=if_gone,
            status=registered.status,
        )
    marks = {key: value for key, value in action.instance.metadata.items() if _is_mark(key)}
    kept = {key: value for key, value in registered.metadata.items() if not _is_mark(key)}
    instance = replace(
        registered.unchanged(), status=action.instance.status, metadata={**kept, **marks}
    )
    return replace(action, instance=instance, changes=changes)


def _is_mark(key: str) -> bool:
    return key.startswith("eurekube.") and key != KEYS


def _left_to_expire(action: Cancel, registered: ObservedInstance, policy: Policy) -> Action:
    """Turn the instance DOWN instead of cancelling it; from then on it is not renewed. The policy
    is marked in the instance, because it must outlive the syncer."""
    marks, status = {GONE: "true", POLICY: policy.value}, InstanceStatus.DOWN
    pairs = [
        (f"metadata.{key}", registered.metadata.get(key, ""), mark) for key, mark in marks.items()
    ]
    pairs.append(("status", registered.status.value, status.value))
    return Update(
        instance=replace(
            registered.unchanged(), status=status, metadata={**registered.metadata, **marks}
        ),
        syncer=action.syncer,
        why=f"{action.why}; policy {policy} allows no cancel, so it is turned DOWN, not renewed, "
        "and expires",
        changes=tuple(
            Change(field=field, was=was, becomes=becomes)
            for field, was, becomes in pairs
            if was != becomes
        ),
        was=registered.status,
        stored_timestamp=registered.last_dirty_timestamp,
        proof=action.proof,
        grounds=action.grounds,
    )
