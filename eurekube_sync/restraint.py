"""What a plan leaves alone: a suspended syncer changes nothing, a policy other than Sync cancels nothing.

A filter on a plan, so that whatever else a plan may hold, it is held to the same rules. The policy of an instance whose
syncer is gone is the one that its mark names. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eurekube_sync.actions import Action, Cancel, Change, Register, Renew, Update, grounds_of
from eurekube_sync.conduct import GONE, POLICY, Policy, is_gone, lapses, policy_asked, policy_of
from eurekube_sync.desired import Claim, Desired, Frozen, Serving
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


def returning(desired: Desired, observed: Observed) -> tuple[InstanceKey, ...]:
    """All that a suspended syncer may have, when the list shows nothing of it: to be read uncached before anything of
    it is brought back, for the list may not show yet what stands."""
    return tuple(sorted(key for claim in _bereft(desired, observed) for key in _ready(claim)))


def _lost(desired: Desired, observed: Observed) -> frozenset[InstanceKey]:
    """What existed of suspended syncers, as far as anybody knows, when Eureka has none of it any more: it has lost its
    memory, and nobody asked for an outage."""
    lost: set[InstanceKey] = set()
    for claim in _bereft(desired, observed):
        ready = sorted(_ready(claim))
        if claim.syncer.status is not None and not any(key in observed.unread for key in ready):
            lost.update(ready[: claim.syncer.status.up])
    return frozenset(lost)


def _bereft(desired: Desired, observed: Observed) -> Sequence[Serving]:
    """The suspended syncers that had instances, and have none in sight."""
    suspended = [c for c in desired.claims.values() if isinstance(c, Serving) and c.conduct.suspend and c.syncer.status]
    standing = keys_by_syncer(observed) if suspended else {}
    return [claim for claim in suspended if claim.syncer.ref not in standing]


def _ready(claim: Serving) -> Iterator[InstanceKey]:
    return (key for key, one in claim.wanted.items() if one.instance.status is InstanceStatus.UP)


def _restrained(
    action: Action, desired: Desired, observed: Observed, lost: frozenset[InstanceKey], now: float
) -> Iterator[Action]:
    if isinstance(action, Renew) and action.key in desired.wanted_by:
        yield action
        return
    claim = desired.claims.get(action.syncer) if action.syncer else None
    stands = observed.ours.get(action.key)
    if _is_suspended(claim):
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


def _is_suspended(claim: Claim | None) -> bool:
    """A syncer that cannot be served is suspended all the same: its raw spec says so. A deletion is not."""
    if isinstance(claim, Frozen):
        return claim.syncer.spec.get("suspend") is True
    return isinstance(claim, Serving) and claim.conduct.suspend


def _policy(claim: Claim | None, stands: ObservedInstance | None) -> Policy:
    """The spec's; and of a syncer that ends, or cannot be served, the mark's as well: what either never cancels is not
    cancelled."""
    if isinstance(claim, Serving):
        return claim.conduct.policy
    marked = policy_of(stands.metadata) if stands is not None else Policy.SYNC
    return marked if claim is None or marked is not Policy.SYNC else policy_asked(claim.syncer.spec)


def _suspended(action: Action, stands: ObservedInstance | None, lost: frozenset[InstanceKey]) -> Iterator[Action]:
    """What exists is renewed, and comes back as it was."""
    if isinstance(action, Renew) or (isinstance(action, Register) and action.key in lost):
        yield action
    if isinstance(action, Update | Cancel):
        assert stands is not None  # a claim that serves, or is frozen, changes what stands alone
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
    """DOWN instead of cancelled; renewed for an hour, and then no more. The policy may be younger than what stands: it
    is marked here at the latest, or the end of the syncer would be the end of the policy."""
    why = f"{action.why}; policy {policy} cancels nothing"
    if lapses(stands, now):
        return
    if is_gone(stands):
        yield Renew(key=action.key, syncer=action.syncer, why=why, status=stands.status)
        return
    marks = {GONE: str(int(now)), POLICY: policy.value}
    down = as_it_stands(stands)
    yield Update(
        instance=replace(down, status=InstanceStatus.DOWN, metadata={**down.metadata, **marks}),
        syncer=action.syncer,
        why=why,
        changes=(
            *(
                Change(field=f"metadata.{key}", was=stands.metadata.get(key, ""), becomes=mark)
                for key, mark in marks.items()
                if stands.metadata.get(key) != mark
            ),
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
