"""Instances of a former owner, which the plan moves to their new ids, except where callers or a
person would lose something by that. Pure."""

from __future__ import annotations

from dataclasses import replace

from eurekube_sync.desired.claims import Desired, Kept, Serving
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.ours import override_of


def not_to_move(desired: Desired, observed: Observed) -> Desired:
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
        verdict = Kept(why=why, host=instance.instance.ip_addr, port=instance.instance.main_port)
        kept_by_syncer.setdefault(syncer, {}).update({instance.key: verdict, successor: verdict})
    if not kept_by_syncer:
        return desired

    claims = dict(desired.claims)
    wanted_by = dict(desired.wanted_by)
    for syncer, kept in kept_by_syncer.items():
        claim = claims[syncer]
        assert isinstance(claim, Serving)  # no other wants anything
        claims[syncer] = replace(claim, verdicts={**claim.verdicts, **kept})
        for key in kept:
            wanted_by.pop(key, None)
    return replace(desired, claims=claims, wanted_by=wanted_by)


def _former(observed: Observed) -> list[ObservedInstance]:
    if not observed.ownership.former:
        return []
    return [
        instance for instance in observed.ours.values() if observed.ownership.is_former(instance)
    ]


def _why_kept(instance: ObservedInstance, successor: InstanceKey, observed: Observed) -> str | None:
    override = override_of(instance)
    if override is not None:
        return (
            f"a person set {instance.key.id} {override.value}, and a new id would forget that: "
            "end it in Eureka, or "
            "leave it under its former id"
        )
    if successor in observed.others:
        return (
            f"another owner's instance is registered as {successor.id}, so {instance.key.id} stays"
        )
    return None
