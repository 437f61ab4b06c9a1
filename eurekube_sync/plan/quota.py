"""How many instances a namespace may have in Eureka: beyond that nothing new is registered, and nothing is removed.

All counts that Eureka holds under the marks of the namespace's syncers, also if nobody serves them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil

from eurekube_sync.desired.claims import Desired, OverQuota, Serving, seniority
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Action, Cancel, Register, Update
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.wording import counted
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import Obstacle, Plan

_STANDING = (InstanceStatus.UP, InstanceStatus.OUT_OF_SERVICE)  # what a person put out of service comes back


def within_quota(
    desired: Desired, plan: Plan, observed: Observed, last_up: Collection[InstanceKey], braked: Plan | None = None
) -> tuple[Desired, Plan]:
    """Both without what has no place. A shard has its share of places. If `braked`, only that goes which it cancels."""
    most, changing = _places(observed.scope), len(plan.actions) - len(plan.renewals)
    if not changing or len(observed.ours) + len(observed.others) + len(plan.blocked) + changing <= most:
        return desired, plan  # so it is nearly always
    changes = {action.key: action for action in plan.changes}
    coming: dict[str, list[InstanceKey]] = {}
    for action in plan.of(Register):
        coming.setdefault(action.syncer.namespace, []).append(action.key)
    held, cancelled = _held(plan, observed, coming), {action.key for action in (braked or plan).of(Cancel)}
    out: set[InstanceKey] = set()
    for namespace, keys in coming.items():
        if len(held[namespace]) + len(keys) > most:
            in_order = sorted(keys, key=lambda key: _rank(key, desired, last_up))
            out.update(_without_place(in_order, held[namespace], changes, cancelled, most))
    if not out:
        return desired, plan
    actions = tuple(action for action in plan.actions if action.key not in out)
    return _told(desired, out, most), replace(plan, actions=actions)


def crowded(desired: Desired, scope: Scope) -> Mapping[str, Sequence[Serving]]:
    """What is served in each namespace that wants more instances than it has places."""
    found: dict[str, list[Serving]] = {}
    most = _places(scope)
    for claim in desired.claims.values() if len(desired.wanted_by) > most else ():
        if isinstance(claim, Serving):
            found.setdefault(claim.syncer.namespace, []).append(claim)
    return {name: claims for name, claims in found.items() if sum(len(claim.wanted) for claim in claims) > most}


def beyond_quota(desired: Desired, scope: Scope, last_up: Collection[InstanceKey]) -> frozenset[InstanceKey]:
    """While nobody knows what is registered: what is wanted beyond the places that there are."""
    most, found = _places(scope), set[InstanceKey]()
    for claims in crowded(desired, scope).values():
        wanted = ((key, one, claim) for claim in claims for key, one in claim.wanted.items())
        up = [(key, claim) for key, one, claim in wanted if one.instance.status is InstanceStatus.UP]
        keys = [key for key, claim in up if desired.wanted_by.get(key) == claim.syncer.ref]
        found.update(sorted(keys, key=lambda key: _rank(key, desired, last_up))[most:])
    return frozenset(found)


def _places(scope: Scope) -> int:
    return ceil(scope.most_instances * scope.share)


def _rank(
    key: InstanceKey, desired: Desired, last_up: Collection[InstanceKey]
) -> tuple[bool, tuple[float, SyncerRef], InstanceKey]:
    """What this process saw UP comes first, then what the older syncers want."""
    return (key not in last_up, seniority(desired.claims[desired.wanted_by[key]]), key)


def _held(
    plan: Plan, observed: Observed, namespaces: Collection[str]
) -> Mapping[str, dict[InstanceKey, InstanceStatus]]:
    """What Eureka holds of each of these namespaces. What could not be read may be registered."""
    found: dict[str, dict[InstanceKey, InstanceStatus]] = {namespace: {} for namespace in namespaces}
    for ref, keys in observed.keys_by_syncer.items():
        if ref.namespace in found:
            found[ref.namespace].update((key, observed.ours[key].status) for key in keys)
    # What a syncer left that has another class or other labels now. Another shard counts its own.
    scope = observed.scope
    left = {ref for ref in scope.elsewhere if ref.namespace in found and (not scope.shard or scope.shard.holds(ref))}
    for key, one in observed.others.items() if left else ():
        syncer = syncer_of(one)
        if syncer and syncer in left and observed.ownership.holds(one):
            found[syncer.namespace][key] = one.status
    for blocked in plan.blocked:
        if blocked.obstacle is Obstacle.UNREAD and blocked.syncer.namespace in found:
            found[blocked.syncer.namespace].setdefault(blocked.key, InstanceStatus.UP)
    return found


def _without_place(
    coming: Sequence[InstanceKey],
    held: Mapping[InstanceKey, InstanceStatus],
    changes: Mapping[InstanceKey, Action],
    cancelled: Collection[InstanceKey],
    most: int,
) -> Iterator[InstanceKey]:
    """What replaces a cancelled instance of its app has its place. To all else that comes everything counts that stays;
    but only what is UP to an app that has instances that are not UP, or whose removal is held: its pods are replaced,
    first where one turns DOWN now. These may stay for ever, so in all there are at most twice as many as places."""
    going, turning, idle, stay = Counter[str](), Counter[str](), Counter[str](), 0
    for key, status in held.items():
        action = changes.get(key)
        after = action.instance.status if isinstance(action, Update) else status
        if key in cancelled:
            going[key.app] += 1
            continue
        stay += 1
        if after not in _STANDING or isinstance(action, Cancel):
            idle[key.app] += 1
            turning[key.app] += after is not status is InstanceStatus.UP
    replacing: list[InstanceKey] = []
    others: list[InstanceKey] = []
    for key in coming:
        (replacing if going[key.app] > 0 else others).append(key)
        going[key.app] -= 1
    up, stay = stay - idle.total() + len(replacing), stay + len(replacing)
    for key in sorted(others, key=lambda key: turning[key.app] == 0):
        turns, turning[key.app] = turning[key.app] > 0, turning[key.app] - 1
        if stay < 2 * most and (turns or (up if idle[key.app] > 0 else stay) < most):
            up, stay = up + 1, stay + 1
        else:
            yield key


def _told(desired: Desired, out: Collection[InstanceKey], most: int) -> Desired:
    """The claims, saying what has no place."""
    by_syncer: dict[SyncerRef, list[InstanceKey]] = {}
    for key in out:
        by_syncer.setdefault(desired.wanted_by[key], []).append(key)
    claims = dict(desired.claims)
    for ref, keys in by_syncer.items():
        claim = claims[ref]
        assert isinstance(claim, Serving)  # no other wants anything
        why = (
            f"namespace {ref.namespace} may have at most {counted(most, 'instance')}; the operator may allow more with "
            "--max-instances-per-namespace"
        )
        over = {**claim.of(OverQuota), **{key: OverQuota(wanted=claim.wanted[key], why=why) for key in keys}}
        told = f"{len(over)} ready and not registered: {why}"
        claims[ref] = replace(claim, verdicts={**claim.verdicts, **over}, over_quota=told)
    wanted_by = {key: ref for key, ref in desired.wanted_by.items() if key not in out}
    return replace(desired, claims=claims, wanted_by=wanted_by)
