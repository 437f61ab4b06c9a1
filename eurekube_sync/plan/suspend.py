"""What a suspended syncer keeps: its instances are renewed as they are, and nothing else is done to them.

An instance that Eureka lost comes back if this process saw it UP lately, for the same pod. A process that just began
brings nothing back: a list cannot tell what Eureka lost from what was cancelled before. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from eurekube_sync.desired.claims import Claim, Desired, NotServed, Serving
from eurekube_sync.desired.grants import no_longer_granted
from eurekube_sync.model.actions import Action, Cancel, Register, Renew, Update
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import Plan, sorted_plan

_SUSPENDED = "suspended"


def suspended(plan: Plan, desired: Desired, observed: Observed, last_up: Collection[InstanceKey]) -> Plan:
    """The plan that only renews the instances of suspended syncers, and registers those that come back."""
    syncers = {ref for ref, claim in desired.claims.items() if is_suspended(claim)}
    if not syncers:
        return plan

    def stays(action: Action) -> bool:
        if action.syncer not in syncers:
            return False
        claim = desired.claims[action.syncer]
        return not (isinstance(action, Update) and no_longer_granted(claim, observed.ours[action.key]))

    comes_back = lost(desired, observed, last_up)
    actions = [
        kept
        for action in plan.actions
        for kept in (left_as_it_is(action, observed, comes_back, last_up) if stays(action) else (action,))
    ]
    return sorted_plan(actions, plan.blocked)


def is_suspended(claim: Claim | None) -> bool:
    """A syncer that cannot be served is suspended all the same: its raw spec says so. A deletion is not."""
    if isinstance(claim, NotServed):
        return claim.syncer.spec.get("suspend") is True
    return isinstance(claim, Serving) and claim.conduct.suspend


def lost(desired: Desired, observed: Observed, last_up: Collection[InstanceKey]) -> frozenset[InstanceKey]:
    """The instances of suspended syncers that come back: they are ready, this process saw them UP (`last_up`), and
    Eureka does not have them."""
    known = (observed.ours, observed.others, observed.unread)
    return frozenset(
        key
        for key in last_up
        if (one := desired.wanted(key)) is not None
        and one.instance.status is InstanceStatus.UP
        and is_suspended(desired.claims.get(desired.wanted_by[key]))
        and not any(key in there for there in known)
    )


def left_as_it_is(
    action: Action, observed: Observed, comes_back: Collection[InstanceKey], last_up: Collection[InstanceKey]
) -> Iterator[Action]:
    """What is left of an action on a suspended syncer's instance. `comes_back` is what was `lost`, and `last_up` what
    this process last saw UP: a renewal that finds no lease registers only that."""
    if isinstance(action, Register) and action.key in comes_back:
        yield action
    if isinstance(action, Renew):
        yield action if action.key in last_up else replace(action, if_gone=None)
    if isinstance(action, Update | Cancel):
        registered: ObservedInstance | None = observed.ours.get(action.key)
        assert registered is not None  # a claim that serves, or is not served, changes what is registered alone
        returns = isinstance(action, Update) and registered.status is InstanceStatus.UP and action.key in last_up
        yield Renew(
            key=action.key,
            syncer=action.syncer,
            why=f"{_SUSPENDED}; {action.why}",
            if_gone=registered.unchanged() if returns else None,
            status=registered.status,
        )
