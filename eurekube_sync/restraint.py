"""What a plan leaves alone: a suspended syncer changes nothing, a policy other than Sync cancels nothing.

A filter on a plan, so that whatever else a plan may hold, it is held to the same rules. The policy of an instance whose
syncer is gone, or cannot be served, is the one that its mark names. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eurekube_sync.actions import Action, Cancel, Change, Register, Renew, Update, grounds_of
from eurekube_sync.conduct import GONE, Policy, is_gone, lapses, policy_of
from eurekube_sync.desired import Claim, Deleting, Desired, Serving
from eurekube_sync.model import Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.observed import Observed, keys_by_syncer
from eurekube_sync.ownership import KEYS, POD
from eurekube_sync.plan import Plan, sorted_plan

_OURS = "eurekube."
_SUSPENDED = "suspended"


def restrain(plan: Plan, desired: Desired, observed: Observed, *, now: float) -> Plan:
    """The plan without what a syncer asked not to be done; `now` in Unix seconds."""
    lost = _lost(desired, observed)
    actions = [kept for action in plan.actions for kept in _restrained(action, desired, observed, lost, now)]
    return plan if actions == [*plan.actions] else sorted_plan(actions, plan.blocked)


def _lost(desired: Desired, observed: Observed) -> frozenset[InstanceKey]:
    """What existed of suspended syncers, as far as anybody knows, when Eureka has none of it any more: it has lost its
    memory, and nobody asked for an outage."""
    suspended = [c for c in desired.claims.values() if isinstance(c, Serving) and c.conduct.suspend and c.syncer.status]
    standing = keys_by_syncer(observed) if suspended else {}
    lost: set[InstanceKey] = set()
    for claim in suspended:
        before = claim.syncer.status
        if claim.syncer.ref not in standing and before is not None:
            ready = (key for key, one in claim.wanted.items() if one.instance.status is InstanceStatus.UP)
            lost.update(sorted(ready)[: before.up])
    return frozenset(lost)


def _restrained(
    action: Action, desired: Desired, observed: Observed, lost: frozenset[InstanceKey], now: float
) -> Iterator[Action]:
    if isinstance(action, Renew) and action.key in desired.wanted_by:
        yield action
        return
    claim = desired.claims.get(action.syncer) if action.syncer else None
    stands = observed.ours.get(action.key)
    if isinstance(claim, Serving) and claim.conduct.suspend:
        yield from _suspended(action, stands, lost)
        return
    policy = _policy(claim, stands)
    match action:
        case Renew() if stands is not None and lapses(stands, now):
            return
        case Update() if policy is Policy.CREATE_ONLY and stands is not None:
            yield _created_only(action, stands)
        case Cancel() if policy is not Policy.SYNC:
            yield from [] if stands is None else _left_to_lapse(action, stands, policy, now)
        case _:
            yield action


def _policy(claim: Claim | None, stands: ObservedInstance | None) -> Policy:
    if isinstance(claim, Serving):
        return claim.conduct.policy
    if stands is not None:
        return policy_of(stands.metadata)
    return claim.policy if isinstance(claim, Deleting) else Policy.SYNC


def _suspended(action: Action, stands: ObservedInstance | None, lost: frozenset[InstanceKey]) -> Iterator[Action]:
    """What exists is renewed, and comes back as it was."""
    if isinstance(action, Renew) or (isinstance(action, Register) and action.key in lost):
        yield action
    if isinstance(action, Update | Cancel):
        assert stands is not None  # a claim that serves changes what stands alone
        lives = isinstance(action, Update) and stands.status is InstanceStatus.UP
        yield Renew(
            key=action.key,
            syncer=action.syncer,
            why=f"{_SUSPENDED}; {action.why}",
            heal=as_it_stands(stands) if lives else None,
            status=stands.status,
        )


def _created_only(action: Update, stands: ObservedInstance) -> Action:
    """UP, DOWN and our own marks; but another pod under the same address is another instance."""
    if any(change.field == f"metadata.{POD}" for change in action.changes):
        return action
    changes = tuple(change for change in action.changes if change.field == "status" or _is_mark(change.field))
    marks = {key: value for key, value in action.instance.metadata.items() if key.startswith(_OURS) and key != KEYS}
    kept = {key: value for key, value in stands.metadata.items() if not key.startswith(_OURS) or key == KEYS}
    instance = replace(as_it_stands(stands), status=action.instance.status, metadata={**kept, **marks})
    if changes:
        return replace(action, instance=instance, changes=changes)
    heal = action.instance if action.instance.status is InstanceStatus.UP else None
    return Renew(key=action.key, syncer=action.syncer, why=action.why, heal=heal, status=stands.status)


def _is_mark(field: str) -> bool:
    return field.startswith(f"metadata.{_OURS}") and field != f"metadata.{KEYS}"


def _left_to_lapse(action: Cancel, stands: ObservedInstance, policy: Policy, now: float) -> Iterator[Action]:
    """DOWN instead of cancelled; renewed for an hour, and then no more."""
    why = f"{action.why}; policy {policy} cancels nothing"
    if lapses(stands, now):
        return
    if is_gone(stands):
        yield Renew(key=action.key, syncer=action.syncer, why=why, status=stands.status)
        return
    mark = str(int(now))
    down = as_it_stands(stands)
    yield Update(
        instance=replace(down, status=InstanceStatus.DOWN, metadata={**down.metadata, GONE: mark}),
        syncer=action.syncer,
        why=why,
        changes=(
            Change(field=f"metadata.{GONE}", was=stands.metadata.get(GONE, ""), becomes=mark),
            *(
                [Change(field="status", was=stands.status.value, becomes=InstanceStatus.DOWN.value)]
                if stands.status is not InstanceStatus.DOWN
                else []
            ),
        ),
        was=stands.status,
        stored_timestamp=stands.last_dirty_timestamp,
        proof=action.proof,
        grounds=grounds_of(action),
    )


def as_it_stands(stands: ObservedInstance) -> Instance:
    """What would be registered to leave everything as it is."""
    return Instance(
        key=stands.key,
        host_name=stands.host_name,
        ip_addr=stands.ip_addr,
        port=stands.port,
        secure_port=stands.secure_port,
        vip_address=stands.vip_address,
        secure_vip_address=stands.secure_vip_address,
        status=InstanceStatus.UP if stands.status is InstanceStatus.UP else InstanceStatus.DOWN,
        lease=stands.lease,
        metadata=stands.metadata,
        home_page_url=stands.home_page_url,
        status_page_url=stands.status_page_url,
        health_check_url=stands.health_check_url,
    )
