"""Instances of a former owner, which the plan moves to their new ids: what a person set on the old id stays. Pure."""

from __future__ import annotations

from dataclasses import replace

from eurekube_sync.desired.claims import Desired, Kept, Serving
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.observe.eureka import Observed


def put_out_before(desired: Desired, observed: Observed) -> Desired:
    """Keep what a person set OUT_OF_SERVICE under a former id, and register nothing in its place: Eureka keeps an
    override with the id, so the endpoint would get calls again under the new one."""
    kept_by_syncer: dict[SyncerRef, dict[InstanceKey, Kept]] = {}
    for instance in _put_out(observed):
        successor = observed.ownership.key_of(instance)
        if successor in observed.ours:
            continue
        syncer = desired.wanted_by.get(successor)
        if syncer is not None:
            verdict = _kept(instance)
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


def _put_out(observed: Observed) -> list[ObservedInstance]:
    if not observed.ownership.former:
        return []
    return [
        instance
        for instance in observed.ours.values()
        if instance.status is InstanceStatus.OUT_OF_SERVICE and observed.ownership.is_former(instance)
    ]


def _kept(instance: ObservedInstance) -> Kept:
    why = (
        f"a person set {instance.key.id} OUT_OF_SERVICE, and a new id would forget that: end it in Eureka, or leave it "
        "under its former id"
    )
    return Kept(why=why, host=instance.instance.ip_addr, port=instance.instance.main_port)
