"""Drop the changes that are not allowed: all of a suspended syncer, and all cancels under `--policy
upsert-only`. Pure.

The instances of a suspended syncer are renewed as they are. An instance that Eureka lost is
registered again if this process saw it UP lately, because a list does not show whether an instance
was lost or cancelled."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from eurekube_sync.desired.claims import Claim, Desired, NotServed, Serving
from eurekube_sync.desired.scope import Policy, no_longer_granted
from eurekube_sync.model.actions import Action, Cancel, Register, Renew, Update
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import Plan, sorted_plan


def left_alone(
    plan: Plan, desired: Desired, observed: Observed, last_up: Collection[InstanceKey]
) -> Plan:
    """Return the plan without the changes that our instances' syncers forbid, except those for
    which a Namespace no longer has a grant. `last_up` are the instances that this process last saw
    UP."""
    suspended = {ref for ref, claim in desired.claims.items() if is_suspended(claim)}
    if not suspended:
        return plan
    comes_back = lost(desired, observed, last_up)
    actions: list[Action] = []
    for action in plan.actions:
        if action.syncer not in suspended:
            actions.append(action)
        elif isinstance(action, Register):
            if action.key in comes_back:
                actions.append(action)
        else:
            claim, registered = desired.claims[action.syncer], observed.ours.get(action.key)
            if isinstance(action, Update) and no_longer_granted(claim, observed.ours[action.key]):
                actions.append(action)
            else:
                actions.append(_as_it_is(action, registered, seen_up=action.key in last_up))
    return plan if actions == [*plan.actions] else sorted_plan(actions, plan.blocked)


def without_cancels(plan: Plan) -> Plan:
    """Return the plan with a renewal in place of each cancel, as `--policy upsert-only` asks. An
    instance that nothing wants any more stays as it is, like a record of external-dns.

    It is renewed, because leases are renewed before Kubernetes is read. Also, an instance that is
    left to expire is removed without a proof, and the brake would not weigh it."""
    actions: list[Action] = []
    for action in plan.actions:
        if not isinstance(action, Cancel):
            actions.append(action)
        elif action.was is not None:  # else no list shows it, and there is nothing to renew
            why = f"{action.why}; not cancelled, because of --policy {Policy.UPSERT_ONLY}"
            renewal = Renew(key=action.key, syncer=action.syncer, why=why, status=action.was)
            actions.append(renewal)
    return sorted_plan(actions, plan.blocked)


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
