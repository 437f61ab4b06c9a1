"""Make the plan: claims -> RULES -> make_plan.

Only `make_plan` can remove: it needs an `Observed`, which needs a complete list. While Eureka
cannot be read, `plan_blind` is used; while the cluster's identity is unknown, `plan_renewals`. The
brake comes later, because it weighs the finished plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from eurekube_sync.desired.claims import (
    Deleting,
    Desired,
    NotServed,
    Serving,
    Wanted,
    is_suspended,
    seniority,
)
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.model.actions import Action, Cancel, Grounds, Register, Renew
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import OWNER, pod_uid_of, syncer_of
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.duplicates import (
    duplicate,
    give_way,
    stays_beside,
    to_give_way_to,
    unreached_by_callers,
    warned,
)
from eurekube_sync.plan.former import not_to_move
from eurekube_sync.plan.left_out import first_registered, still_drained, within_limits
from eurekube_sync.plan.ours import as_allowed, asked_for, may_cancel, renewal, unread_renewal
from eurekube_sync.plan.value import Blocked, Obstacle, Plan, Ruling, sorted_plan

RULES: tuple[Callable[[Desired, Observed], Ruling], ...] = (
    # First: an endpoint that stays under its former id is not wanted under the new one, so it
    # takes no address and no second place in a limit.
    not_to_move,
    # Before the limits: an endpoint whose address another namespace's syncer has takes no place.
    first_registered,
    # Before the limits: an instance that stays DOWN takes no place.
    still_drained,
    within_limits,
    # Last: only an instance that is wanted after all gets twice the calls.
    warned,
)
"""The rules that change claims by what Eureka lists: an endpoint is not registered, or it stays
DOWN, or its syncer warns. `desired/rivals` divided the addresses before, without Eureka's list,
because a pass that cannot read Eureka needs that as well."""


def apply_rules(desired: Desired, observed: Observed) -> tuple[Desired, Sequence[InstanceKey]]:
    """Return the claims as they are to be planned, and the keys to read uncached before."""
    to_read: list[InstanceKey] = []
    for rule in RULES:
        ruling = rule(desired, observed)
        desired = desired.with_claims(ruling.claims)
        to_read += ruling.to_read
    return desired, to_read


def make_plan(
    desired: Desired, observed: Observed, last_seen_up: Collection[InstanceKey] = ()
) -> Plan:
    """Return the plan of a pass that could read Eureka, before the brake. `last_seen_up` are the
    instances that this process last saw UP."""
    selves = to_give_way_to(desired, observed)
    actions: list[Action] = []
    blocked: list[Blocked] = []
    registered = _of_registered(desired, observed, selves, last_seen_up)
    missing = _of_missing(desired, observed, selves, last_seen_up)
    unseen = _make_sure(desired, observed)
    for planned in chain(registered, missing, unseen):
        if isinstance(planned, Blocked):
            blocked.append(planned)
        else:
            actions.append(planned)
    return sorted_plan(actions, blocked)


def lost(
    desired: Desired, observed: Observed, last_seen_up: Collection[InstanceKey]
) -> frozenset[InstanceKey]:
    """Return the ready instances of suspended syncers that this process saw UP and Eureka lost."""
    gone: set[InstanceKey] = set()
    for key in last_seen_up:
        wanted = desired.wanted(key)
        if wanted is None or wanted.instance.status is not InstanceStatus.UP:
            continue
        listed = key in observed.ours or key in observed.others or key in observed.unread
        if listed:
            continue  # nearly always
        if is_suspended(desired.server_of(key)):
            gone.add(key)
    return frozenset(gone)


# --- Without Eureka's list, or without Kubernetes -------------------------------------------------


def plan_blind(desired: Desired, last_seen_up: Collection[InstanceKey] = ()) -> Plan:
    """Return the plan while Eureka cannot be read but may accept writes. It removes nothing. On a
    404 it registers again what is certainly wanted, or what this process last saw UP."""
    renewals = []
    for key, claim, wanted in desired.each_wanted():
        if_gone = None
        returns = key in last_seen_up or _is_certain(claim, wanted)
        if returns and wanted.instance.status is InstanceStatus.UP:
            if_gone = wanted.instance
        why = f"Eureka could not be read; {wanted.why}"
        syncer = claim.syncer.ref
        renewals.append(Renew(key=key, syncer=syncer, why=why, if_gone=if_gone))
    return sorted_plan(renewals)


def _is_certain(claim: Serving, wanted: Wanted) -> bool:
    """Say whether the instance is wanted whatever Eureka lists, so that no rule could change it."""
    if claim.spec.limit is not None or claim.spec.suspend:
        return False
    return not wanted.unreadable_drain_kinds and wanted.rival is None


def plan_renewals(instances: Iterable[ObservedInstance], why: str) -> Plan:
    """Renew these instances."""
    return sorted_plan(renewal(instance, why) for instance in instances)


# --- Registered instances -------------------------------------------------------------------------


def _of_registered(
    desired: Desired,
    observed: Observed,
    selves: Mapping[InstanceKey, ObservedInstance],
    last_seen_up: Collection[InstanceKey],
) -> Iterator[Action | Blocked]:
    """Yield the action for each instance of ours, and what is in its way."""
    in_doubt = _any_in_doubt(desired)
    for key, instance in observed.ours.items():
        holder = _unserved_holder(instance, desired) if in_doubt else None
        if holder is not None:
            why = (
                f"syncer {holder} is older and has the address, and keeps it although that "
                "syncer cannot be served now"
            )
            wanting = desired.wanted_by[key]
            yield Blocked(key=key, syncer=wanting, why=why, obstacle=Obstacle.TAKEN)
            yield renewal(instance, why)
            continue
        claim = desired.server_of(key)
        own = selves.get(key)
        action: Action | None = None
        if own is not None and claim is not None:
            stays = stays_beside(instance, own, claim, observed)
            yield duplicate(key, claim.syncer.ref, own, stays=stays)
            if stays is None:
                action = give_way(instance, own, claim)
        if action is None:
            action = asked_for(instance, claim, desired, observed)
        action = as_allowed(action, desired, observed, last_seen_up)
        if key not in observed.unread:
            yield action
            continue
        # Its uncached read failed, which prevents any change.
        if own is None and not isinstance(action, Renew):
            yield _unread_again(key, action.syncer, observed)
        yield unread_renewal(instance, observed)


def _any_in_doubt(desired: Desired) -> bool:
    """Say whether a syncer may keep instances of which too little is known."""
    for claim in desired.claims.values():
        if isinstance(claim, NotServed):
            return True
        if isinstance(claim, Serving) and claim.keeps_any:
            return True
    return False


def _unserved_holder(instance: ObservedInstance, desired: Desired) -> SyncerRef | None:
    """Return the older syncer of an instance that a younger one must not take over, because the
    older may be served again."""
    wanting = desired.wanted_by.get(instance.key)
    holder = syncer_of(instance)
    if wanting is None or holder is None or holder == wanting:
        return None
    claim = desired.claims.get(holder)
    if isinstance(claim, Serving) and not claim.holds(instance):
        return None
    if not isinstance(claim, Serving | NotServed):
        return None
    if seniority(claim) < seniority(desired.claims[wanting]):
        return holder
    return None


# --- Instances that are not registered ------------------------------------------------------------


def _of_missing(
    desired: Desired,
    observed: Observed,
    selves: Mapping[InstanceKey, ObservedInstance],
    last_seen_up: Collection[InstanceKey],
) -> Iterator[Action | Blocked]:
    """Register the wanted instances that are not registered, unless something prevents it."""
    kept_pods = _kept_pods(desired, observed)
    comes_back = lost(desired, observed, last_seen_up)
    for key, claim, wanted in desired.each_wanted():
        if key in observed.ours:
            continue  # nearly always
        syncer = claim.syncer.ref
        obstacle = _in_the_way(key, syncer, observed)
        if obstacle is not None:
            yield obstacle
            continue
        # A missing slice may have left the pod registered under another key.
        comes = (syncer, pod_uid_of(wanted.instance)) not in kept_pods
        comes = comes and _is_new(key, wanted, observed)
        if key in selves:
            own = selves[key]
            unreached = None
            if comes and own.status is InstanceStatus.UP:
                unreached = unreached_by_callers(own.instance, wanted.instance)
            yield duplicate(key, syncer, own, stays=unreached)
            comes = unreached is not None
        if claim.spec.suspend and key not in comes_back:
            comes = False
        if comes:
            yield Register(instance=wanted.instance, syncer=syncer, why=wanted.why)


def _is_new(key: InstanceKey, wanted: Wanted, observed: Observed) -> bool:
    """Say whether an endpoint is to be registered: one that was ever ready, and that no other
    syncer may have registered under another key."""
    if wanted.rival is not None:
        return False
    # What has a former id was ready once.
    return wanted.instance.status is InstanceStatus.UP or key in observed.former


def _kept_pods(desired: Desired, observed: Observed) -> set[tuple[SyncerRef | None, str | None]]:
    """Return the syncer and pod of each instance that is kept because a Service has no slices."""
    reading: dict[SyncerRef | None, Serving] = {}
    for ref, claim in desired.claims.items():
        if isinstance(claim, Serving) and claim.reads_pods:
            reading[ref] = claim
    kept_pods: set[tuple[SyncerRef | None, str | None]] = set()
    if not reading:
        return kept_pods  # nearly always
    for instance in observed.ours.values():
        syncer = syncer_of(instance)
        uid = pod_uid_of(instance)
        if syncer in reading and uid and reading[syncer].keeps_until_pod_gone(instance):
            kept_pods.add((syncer, uid))
    return kept_pods


def _in_the_way(key: InstanceKey, syncer: SyncerRef, observed: Observed) -> Blocked | None:
    """Return what keeps a missing instance from being registered; None for nothing."""
    if key in observed.unread:
        return _unread_again(key, syncer, observed)
    other = observed.others.get(key)
    if other is None:
        return None
    whose = "an instance without an owner"
    owner = other.metadata.get(OWNER)
    if owner:
        whose_syncer = syncer_of(other) or "unknown"
        whose = f"another installation's instance (owner {owner}, syncer {whose_syncer})"
    why = f"{whose} is registered with the id that ours needs"
    return Blocked(key=key, syncer=syncer, why=why, obstacle=Obstacle.TAKEN, other=key)


def _unread_again(key: InstanceKey, syncer: SyncerRef, observed: Observed) -> Blocked:
    unread = observed.unread[key]
    return Blocked(
        key=key, syncer=syncer, why=unread.why, obstacle=Obstacle.UNREAD, late=unread.late
    )


def _make_sure(desired: Desired, observed: Observed) -> Iterator[Cancel]:
    """Cancel what a deleting syncer could have registered since the list was made, unless it is
    another owner's. An heir that could not be read may have registered it as well, so then nothing
    is cancelled, and the deletion waits."""
    if not may_cancel(observed):
        return
    heirs = desired.heirs
    written: dict[InstanceKey, Deleting] = {}
    for claim in desired.claims.values():
        if not isinstance(claim, Deleting):
            continue
        namespace = selected_namespace(claim.syncer)
        for key in claim.keys:
            if heirs is None or heirs.of_id(key, namespace) is None:
                written[key] = claim
    for key, claim in written.items():
        listed = key in observed.ours or key in observed.others
        if listed or key in observed.unread or key in desired.wanted_by:
            continue
        yield Cancel(
            key=key,
            syncer=claim.syncer.ref,
            why="its syncer is being deleted",
            grounds=Grounds.SYNCER_DELETED,
            proof=claim.proof,
            was=None,
        )
