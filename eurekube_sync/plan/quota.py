"""The quota: how many instances a namespace may have in Eureka. Above it nothing new is registered, and nothing
removed.

All instances count that Eureka holds with the marks of the namespace's syncers, also if no one serves them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from eurekube_sync.desired.claims import Desired, OverQuota, Serving, seniority
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Action, Cancel, Register, Update
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.wording import counted
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.left_out import HAS_PLACE
from eurekube_sync.plan.value import Obstacle, Plan


def within_quota(
    desired: Desired, plan: Plan, observed: Observed, last_up: Collection[InstanceKey], braked: Plan | None = None
) -> tuple[Desired, Plan]:
    """Return both without the registrations above the quota. With `braked`, only the cancels that the brake left
    make room."""
    most, changing = _places(observed.scope), len(plan.actions) - len(plan.renewals)
    if not changing or len(observed.ours) + len(observed.others) + len(plan.blocked) + changing <= most:
        return desired, plan  # nearly always
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
    return _without(desired, out, most), replace(plan, actions=actions)


def crowded(desired: Desired, scope: Scope) -> Mapping[str, Sequence[Serving]]:
    """Return, for each namespace that wants more instances than its quota, the syncers that are served."""
    found: dict[str, list[Serving]] = {}
    most = _places(scope)
    for claim in desired.claims.values() if len(desired.wanted_by) > most else ():
        if isinstance(claim, Serving):
            found.setdefault(claim.syncer.namespace, []).append(claim)
    return {name: claims for name, claims in found.items() if sum(len(claim.wanted) for claim in claims) > most}


def beyond_quota(desired: Desired, scope: Scope, last_up: Collection[InstanceKey]) -> frozenset[InstanceKey]:
    """Return the wanted instances above the quota, while it is unknown what is registered."""
    most, found = _places(scope), set[InstanceKey]()
    for claims in crowded(desired, scope).values():
        wanted = ((key, one, claim) for claim in claims for key, one in claim.wanted.items())
        up = [(key, claim) for key, one, claim in wanted if one.instance.status is InstanceStatus.UP]
        keys = [key for key, claim in up if desired.wanted_by.get(key) == claim.syncer.ref]
        found.update(sorted(keys, key=lambda key: _rank(key, desired, last_up))[most:])
    return frozenset(found)


def _places(scope: Scope) -> int:
    return scope.most_instances


def _rank(
    key: InstanceKey, desired: Desired, last_up: Collection[InstanceKey]
) -> tuple[bool, tuple[float, SyncerRef], InstanceKey]:
    """Order instances: first those that this process last saw UP, then those of older syncers."""
    return (key not in last_up, seniority(desired.claims[desired.wanted_by[key]]), key)


def _held(
    plan: Plan, observed: Observed, namespaces: Collection[str]
) -> Mapping[str, dict[InstanceKey, InstanceStatus]]:
    """Return what Eureka holds of each of these namespaces. An unread instance counts as registered."""
    found: dict[str, dict[InstanceKey, InstanceStatus]] = {namespace: {} for namespace in namespaces}
    for ref, keys in observed.keys_by_syncer.items():
        if ref.namespace in found:
            found[ref.namespace].update((key, observed.ours[key].status) for key in keys)
    # Instances of syncers that have another class or other labels now.
    scope = observed.scope
    left = {ref for ref in scope.elsewhere if ref.namespace in found}
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
    """Return the new instances above the quota. An instance that replaces a cancelled one of its app always has a
    place. For another, all instances that stay count. But in an app with instances that are not UP, or whose removal is
    held, pods are being replaced: there only UP instances count, and apps of which one turns DOWN now come first. Such
    instances may stay for ever, so a namespace has at most twice its quota."""
    freed, turning, idle, stay = Counter[str](), Counter[str](), Counter[str](), 0
    for key, status in held.items():
        action = changes.get(key)
        after = action.instance.status if isinstance(action, Update) else status
        if key in cancelled:
            freed[key.app] += 1
            continue
        stay += 1
        if after not in HAS_PLACE or isinstance(action, Cancel):
            idle[key.app] += 1
            turning[key.app] += after is not status is InstanceStatus.UP
    replacing: list[InstanceKey] = []
    others: list[InstanceKey] = []
    for key in coming:
        (replacing if freed[key.app] > 0 else others).append(key)
        freed[key.app] -= 1
    up, stay = stay - idle.total() + len(replacing), stay + len(replacing)
    for key in sorted(others, key=lambda key: turning[key.app] == 0):
        turns, turning[key.app] = turning[key.app] > 0, turning[key.app] - 1
        if stay < 2 * most and (turns or (up if idle[key.app] > 0 else stay) < most):
            up, stay = up + 1, stay + 1
        else:
            yield key


def _without(desired: Desired, out: Collection[InstanceKey], most: int) -> Desired:
    """Return the claims, with the verdict `OverQuota` for these keys."""
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
        text = f"{len(over)} ready and not registered: {why}"
        claims[ref] = replace(claim, verdicts={**claim.verdicts, **over}, over_quota=text)
    wanted_by = {key: ref for key, ref in desired.wanted_by.items() if key not in out}
    return replace(desired, claims=claims, wanted_by=wanted_by)
