"""Instances of a former owner, which the plan moves to their new ids, except where callers or a
person would lose something by that. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from eurekube_sync.desired.claims import Desired, Kept, Serving
from eurekube_sync.model.actions import Outcome, Register, Renew
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.ours import override_of
from eurekube_sync.plan.value import Plan, Ruling, sorted_plan


def not_to_move(desired: Desired, observed: Observed) -> Ruling:
    """Keep instances under their former ids, and register nothing in their place, where

    - a person set an override: Eureka keeps it with the id, so the endpoint would get calls
      again under the new one;
    - another owner's instance has the new id: the endpoint would be registered under neither.
    """
    kept_by_syncer: dict[SyncerRef, dict[InstanceKey, Kept]] = {}
    for instance in _former(observed):
        successor = observed.ownership.key_of(instance)
        syncer = desired.wanted_by.get(successor)
        why = _why_kept(instance, successor, observed)
        if syncer is None or why is None or successor in observed.ours:
            continue
        there = instance.instance
        verdict = Kept(why=why, host=there.ip_addr, port=there.main_port)
        kept = kept_by_syncer.setdefault(syncer, {})
        kept[instance.key] = verdict
        kept[successor] = verdict

    claims: dict[SyncerRef, Serving] = {}
    for syncer, kept in kept_by_syncer.items():
        claim = desired.claims[syncer]
        assert isinstance(claim, Serving)  # no other wants anything
        claims[syncer] = claim.with_verdicts(kept)
    return Ruling(claims=claims)


def not_moved(plan: Plan, done: Iterable[Outcome], observed: Observed) -> dict[InstanceKey, str]:
    """Return the instances, UP or DOWN, that must stay under their former ids, because they are not
    registered under the new ones: that failed, or it could not be tried."""
    without_successor = [blocked.key for blocked in plan.blocked]
    for outcome in done:
        action = outcome.action
        if outcome.failed and isinstance(action, Register):
            without_successor.append(action.key)
    kept: dict[InstanceKey, str] = {}
    for successor in without_successor:
        instance = observed.former.get(successor)
        if instance is not None:
            kept[instance.key] = f"not removed, because it is not registered as {successor.id} yet"
    return kept


def under_either_id(blind: Plan, ownership: Ownership) -> Plan:
    """Return the plan of a pass that cannot read Eureka, for instances that may or may not be
    moved: renew each under its new id and its former ones, and register none on a 404."""
    renewals: list[Renew] = []
    for renewal in blind.renewals:
        keys = [renewal.key, *ownership.former_keys(renewal.key)]
        for key in keys:
            renewals.append(replace(renewal, key=key, if_gone=None))
    return sorted_plan(renewals)


def _former(observed: Observed) -> list[ObservedInstance]:
    ownership = observed.ownership
    if not ownership.former:
        return []  # nearly always
    former = []
    for instance in observed.ours.values():
        if ownership.is_former(instance):
            former.append(instance)
    return former


def _why_kept(instance: ObservedInstance, successor: InstanceKey, observed: Observed) -> str | None:
    former_id = instance.key.id
    override = override_of(instance)
    if override is not None:
        return (
            f"a person set {former_id} {override.value}, and a new id would forget that: "
            "end it in Eureka, or leave it under its former id"
        )
    if successor in observed.others:
        return f"another owner's instance is registered as {successor.id}, so {former_id} stays"
    return None
