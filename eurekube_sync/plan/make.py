"""Make the plan: claims -> LEFT_OUT -> make_plan -> left_alone -> claims and plan.

Only `make_plan` can remove: it needs an `Observed`, which needs a complete list. While Eureka
cannot be read, `plan_blind` is used; while the cluster's identity is unknown, `plan_renewals`. The
brake comes later, because it weighs the finished plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from eurekube_sync.desired.claims import Deleting, Desired, NotServed, Serving, seniority
from eurekube_sync.desired.conduct import is_gone
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.model.actions import Action, Cancel, Grounds, Register, Renew
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import OWNER, pod_uid_of, syncer_of
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.duplicates import (
    beside_its_own,
    duplicate,
    to_give_way_to,
    unreached_by_callers,
)
from eurekube_sync.plan.former import not_to_move
from eurekube_sync.plan.left_alone import left_alone
from eurekube_sync.plan.left_out import first_registered, still_drained, within_limits
from eurekube_sync.plan.ours import EarlierPlan, for_ours, renewal
from eurekube_sync.plan.value import Blocked, Obstacle, Plan, sorted_plan

LEFT_OUT: tuple[Callable[[Desired, Observed], Desired], ...] = (
    not_to_move,
    first_registered,
    still_drained,
    within_limits,
)
"""The rules that leave wanted instances unregistered, or keep them DOWN."""


def draft(
    desired: Desired,
    observed: Observed,
    last_up: Collection[InstanceKey],
    earlier: EarlierPlan | None = None,
) -> tuple[Desired, Plan]:
    """Return the claims with limits applied, and their plan before the brake. `last_up` are the
    instances that this process last saw UP; `earlier` keeps the plan of the previous pass."""
    for rule in LEFT_OUT:
        desired = rule(desired, observed)
    return desired, plan_for(desired, observed, last_up, earlier)


def plan_for(
    desired: Desired,
    observed: Observed,
    last_up: Collection[InstanceKey],
    earlier: EarlierPlan | None = None,
) -> Plan:
    """Return the plan without the changes that the instances' syncers forbid."""
    return left_alone(make_plan(desired, observed, earlier), desired, observed, last_up)


def make_plan(desired: Desired, observed: Observed, earlier: EarlierPlan | None = None) -> Plan:
    """Return the plan of a pass that could read Eureka."""
    earlier = earlier if earlier is not None else EarlierPlan()
    if again := earlier.plan(desired, observed):
        return again
    selves = to_give_way_to(desired, observed)
    found = [
        *_of_registered(desired, observed, selves, earlier),
        *_of_missing(desired, observed, selves),
    ]
    return earlier.planned([*found, *_make_sure(desired, observed)], desired, observed)


def _unread_again(key: InstanceKey, syncer: SyncerRef, observed: Observed) -> Blocked:
    unread = observed.unread[key]
    return Blocked(
        key=key, syncer=syncer, why=unread.why, obstacle=Obstacle.UNREAD, late=unread.late
    )


def with_unread(plan: Plan, otherwise: Plan, observed: Observed) -> Plan:
    """Return the plan, with a `Blocked` for each change of ours that only `otherwise`, the plan
    without failed reads, has."""
    unread = (observed.ours.keys() & observed.unread.keys()) - {one.key for one in plan.blocked}
    left = (
        _unread_again(one.key, one.syncer, observed)
        for one in otherwise.changes
        if one.key in unread
    )
    return sorted_plan(plan.actions, (*plan.blocked, *left))


def plan_blind(desired: Desired, last_up: Collection[InstanceKey] = ()) -> Plan:
    """Return the plan while Eureka cannot be read but may accept writes. It removes nothing. On a
    404 it registers again what is certainly wanted, or what this process last saw UP."""
    renewals = []
    for key, syncer in desired.wanted_by.items():
        claim, wanted = desired.server_of(key), desired.wanted(key)
        if claim is not None and wanted is not None:
            sure = claim.conduct.limit is None and not claim.conduct.suspend
            sure = sure and not wanted.drain_unknown and wanted.rival is None
            up = wanted.instance.status is InstanceStatus.UP
            returns = up and (sure or key in last_up)
            why = f"Eureka could not be read; {wanted.why}"
            renewals.append(
                Renew(key=key, syncer=syncer, why=why, if_gone=wanted.instance if returns else None)
            )
    return sorted_plan(renewals)


def plan_renewals(instances: Iterable[ObservedInstance], why: str) -> Plan:
    """Renew these instances, except those that a policy leaves to expire."""
    return sorted_plan(renewal(instance, why) for instance in instances if not is_gone(instance))


def _of_registered(
    desired: Desired,
    observed: Observed,
    selves: Mapping[InstanceKey, ObservedInstance],
    earlier: EarlierPlan,
) -> Iterator[Action | Blocked]:
    claims = desired.claims.values()
    in_doubt = any(
        isinstance(one, NotServed) or (isinstance(one, Serving) and one.keeps_any) for one in claims
    )
    for key, instance in observed.ours.items():
        holder = _unserved_holder(instance, desired) if in_doubt else None
        if holder is not None:
            why = (
                f"syncer {holder} is older and has the address, and keeps it although that "
                "syncer cannot be served now"
            )
            yield Blocked(key=key, syncer=desired.wanted_by[key], why=why, obstacle=Obstacle.TAKEN)
            yield renewal(instance, why)
        elif key in selves:
            yield from beside_its_own(key, selves[key], desired, observed)
        else:
            yield for_ours(key, desired, observed, earlier)


def _unserved_holder(instance: ObservedInstance, desired: Desired) -> SyncerRef | None:
    """Return the older syncer of an instance that a younger one must not take over, because the
    older may be served again."""
    wanting, holder = desired.wanted_by.get(instance.key), syncer_of(instance)
    claim = desired.claims.get(holder) if holder and wanting and holder != wanting else None
    held = isinstance(claim, NotServed) or (isinstance(claim, Serving) and claim.holds(instance))
    older = claim and wanting and seniority(claim) < seniority(desired.claims[wanting])
    return holder if held and older else None


def _of_missing(
    desired: Desired, observed: Observed, selves: Mapping[InstanceKey, ObservedInstance]
) -> Iterator[Action | Blocked]:
    """Register the wanted instances that are not registered, unless something prevents it."""
    reading = {
        ref: c for ref, c in desired.claims.items() if isinstance(c, Serving) and c.reads_pods
    }
    unseen = {  # syncer and pod of the instances that are kept because a Service has no slices
        (syncer_of(one), pod_uid_of(one))
        for one in (observed.ours.values() if reading else ())
        if (ref := syncer_of(one)) in reading
        and pod_uid_of(one)
        and reading[ref].keeps_until_pod_gone(one)
    }
    for key, syncer in desired.wanted_by.items():
        if key in observed.ours or (wanted := desired.wanted(key)) is None:
            continue
        if key in observed.unread:
            yield _unread_again(key, syncer, observed)
        elif key in observed.others:
            one = observed.others[key]
            whose = "an instance without an owner"
            if owner := one.metadata.get(OWNER):
                whose = (
                    f"another installation's instance (owner {owner}, syncer "
                    f"{syncer_of(one) or 'unknown'})"
                )
            why = f"{whose} is registered with the id that ours needs"
            yield Blocked(key=key, syncer=syncer, why=why, obstacle=Obstacle.TAKEN, other=key)
        else:
            # An endpoint that was never ready is not registered. Neither is one that an older
            # syncer, or a missing slice, may already have registered under another key.
            comes = wanted.instance.status is InstanceStatus.UP and not wanted.rival
            comes = comes and (syncer, pod_uid_of(wanted.instance)) not in unseen
            if key in selves:
                own = selves[key]
                comes = comes and own.status is InstanceStatus.UP
                unreached = unreached_by_callers(own.instance, wanted.instance) if comes else None
                yield duplicate(key, syncer, own, stays=unreached)
                comes = unreached is not None
            if comes:
                yield Register(instance=wanted.instance, syncer=syncer, why=wanted.why)


def _make_sure(desired: Desired, observed: Observed) -> Iterator[Cancel]:
    """Cancel what a deleting syncer could have registered since the list was made, unless it is
    another owner's. An heir that could not be read may have registered it as well, so then nothing
    is cancelled, and the deletion waits."""
    heirs = desired.heirs
    written: dict[InstanceKey, Deleting] = {}
    for claim in desired.claims.values():
        if not isinstance(claim, Deleting):
            continue
        if claim.keys and heirs is not None and heirs.unread_in(selected_namespace(claim.syncer)):
            continue
        written.update(dict.fromkeys(claim.keys, claim))
    for key, claim in written.items():
        taken = key in desired.wanted_by or key in observed.ours or key in observed.others
        if not taken and key not in observed.unread:
            yield Cancel(
                key=key,
                syncer=claim.syncer.ref,
                why="its syncer is being deleted",
                grounds=Grounds.SYNCER_DELETED,
                proof=claim.proof,
                was=None,
            )
