"""The difference between what should stand and what stands, as one sorted value.

    claims (desired) + complete registry (observed)  ->  make_plan      -> renew, register, update, cancel
    claims (desired), registry Unknown               ->  plan_blind     -> renew what is wanted, register on a 404
    a cluster that does not tell who it is           ->  plan_renewals  -> renew

Only `make_plan` can withdraw. It takes an `Observed`, which only a complete list can make, and each withdrawal bears
the `Proof` of the source that shows it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar, assert_never

from eurekube_sync.actions import (
    Action,
    Cancel,
    Change,
    Grounds,
    Register,
    Renew,
    Update,
    removes,
    withdraws,
)
from eurekube_sync.conduct import GONE, LIMIT, POLICY, lapses
from eurekube_sync.desired import Deleting, Desired, Frozen, Serving, seniority
from eurekube_sync.drain import DRAINED
from eurekube_sync.duplicates import lacks, registered_by_themselves
from eurekube_sync.instance import Wanted
from eurekube_sync.model import (
    Complete,
    Instance,
    InstanceKey,
    InstanceStatus,
    ObservedInstance,
    Port,
    Proof,
    SyncerRef,
)
from eurekube_sync.observed import Observed
from eurekube_sync.ownership import CLASS, OWNER, our_keys, pod_namespace_of, pod_uid_of, syncer_of

A = TypeVar("A", bound=Action)


class Obstacle(StrEnum):
    """What keeps a change from being made."""

    TAKEN = "Taken"
    """Another's instance stands under our id."""
    DUPLICATE = "Duplicate"
    """The pod registers itself, under an id of its own: its image still has a Eureka client."""
    UNREAD = "Unread"
    """An uncached read failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A wanted instance that cannot be written now, or one of ours that cannot be changed."""

    key: InstanceKey
    syncer: SyncerRef
    why: str
    obstacle: Obstacle
    other: InstanceKey | None = None
    """Another's instance that is in the way, under whatever key."""

    @property
    def conflict(self) -> bool:
        """Whether another's instance is in the way, rather than a call that failed."""
        return self.obstacle is not Obstacle.UNREAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that a pass will do, sorted by kind and key; equal inputs give equal plans."""

    actions: tuple[Action, ...] = ()
    blocked: tuple[Blocked, ...] = ()

    def of(self, kind: type[A]) -> tuple[A, ...]:
        """The actions of one kind."""
        return tuple(action for action in self.actions if isinstance(action, kind))

    @property
    def changes(self) -> tuple[Action, ...]:
        """All but the renewals."""
        return tuple(action for action in self.actions if not isinstance(action, Renew))

    @property
    def withdrawals(self) -> tuple[Update | Cancel, ...]:
        """What callers would lose: cancels of UP instances, and UP to DOWN."""
        return tuple(a for a in self.actions if isinstance(a, Update | Cancel) and withdraws(a))

    @property
    def suspects(self) -> tuple[InstanceKey, ...]:
        """The keys to read uncached before anything is changed."""
        in_the_way = tuple(key for b in self.blocked if b.other for key in {b.key, b.other})
        return tuple(action.key for action in self.changes) + in_the_way


def sorted_plan(actions: Iterable[Action], blocked: Iterable[Blocked] = ()) -> Plan:
    """A plan of these actions, in its order: renewals, then adds and other changes, then what takes away."""
    return Plan(
        actions=tuple(sorted(actions, key=_order)),
        blocked=tuple(sorted(blocked, key=lambda b: (b.key, b.syncer))),
    )


def make_plan(desired: Desired, observed: Observed) -> Plan:
    """The plan of a pass that knows what stands."""
    actions: list[Action] = []
    blocked: list[Blocked] = []
    selves = {
        key: other
        for key, other in registered_by_themselves(desired, observed).items()
        if (claim := desired.server_of(key)) and not claim.conduct.warn_of_duplicates
    }
    for key, instance in observed.ours.items():
        holder = _frozen_holder(instance, desired)
        if holder is not None:
            why = f"syncer {holder} is older and holds it, and cannot be served now"
            blocked.append(Blocked(key=key, syncer=desired.wanted_by[key], why=why, obstacle=Obstacle.TAKEN))
            actions.append(Renew(key=key, syncer=holder, why=why, status=instance.status))
            continue
        if key in selves:
            duplicate, action = _for_duplicate(key, selves[key], desired, observed)
            blocked.append(duplicate)
            actions.append(action)
        else:
            actions.append(_for_ours(key, desired, observed))
    unseen = set(_unseen(desired, observed))
    for key, syncer in desired.wanted_by.items():
        claim = desired.server_of(key)
        wanted = claim.wanted.get(key) if claim else None
        if claim is None or wanted is None or key in observed.ours:
            continue
        if key in observed.unread:
            why = observed.unread[key].why
            blocked.append(Blocked(key=key, syncer=syncer, why=why, obstacle=Obstacle.UNREAD))
        elif key in observed.others:
            why = f"{_holder(observed.others[key])} stands under our id"
            blocked.append(Blocked(key=key, syncer=syncer, why=why, obstacle=Obstacle.TAKEN, other=key))
        elif key in selves:
            blocked.append(_duplicate(key, syncer, selves[key]))
        elif key in claim.idle or (syncer, pod_uid_of(wanted.instance)) in unseen:
            continue  # an older syncer, or the slices that are not there, may say more of this pod: not to stand twice
        elif wanted.instance.status is InstanceStatus.UP:  # a never-ready endpoint is never registered
            actions.append(Register(instance=wanted.instance, syncer=syncer, why=wanted.why))
    actions.extend(_make_sure(desired, observed))
    return sorted_plan(actions, blocked)


def telling_unread(plan: Plan, otherwise: Plan, observed: Observed) -> Plan:
    """The plan, and beside it what it would change of ours and leaves, for an uncached read failed; `otherwise` is the
    plan by the list alone."""
    told = {one.key for one in plan.blocked}
    left = [
        Blocked(key=action.key, syncer=action.syncer, why=observed.unread[action.key].why, obstacle=Obstacle.UNREAD)
        for action in otherwise.actions
        if not isinstance(action, Renew) and action.key in observed.ours and action.key in observed.unread
    ]
    return sorted_plan(plan.actions, (*plan.blocked, *(one for one in left if one.key not in told)))


def warned(desired: Desired, observed: Observed) -> Desired:
    """The claims with a warning where pods register themselves as well, and `onDuplicate` asks for no more."""
    told: dict[SyncerRef, list[str]] = {}
    for key, other in registered_by_themselves(desired, observed).items():
        told.setdefault(desired.wanted_by[key], []).append(f"{key.id} registers itself as {other.key.id} as well")
    claims = dict(desired.claims)
    for ref, doubles in told.items():
        claim = claims[ref]
        if isinstance(claim, Serving) and claim.conduct.warn_of_duplicates:
            more = f" (and {len(doubles) - 1} more)" if len(doubles) > 1 else ""
            claims[ref] = replace(claim, warnings=(*claim.warnings, f"{min(doubles)}{more}: it gets twice the calls"))
    return replace(desired, claims=claims)


def plan_blind(desired: Desired, stood: Collection[InstanceKey] = ()) -> Plan:
    """The plan while the registry cannot be read but its writes may work: nothing is withdrawn. Where a limit lets only
    some in, or nobody can tell what is drained, or a syncer is suspended, only that comes back which this process knows
    to have stood."""
    renewals = []
    for key, syncer in desired.wanted_by.items():
        claim = desired.server_of(key)
        wanted = claim.wanted.get(key) if claim else None
        if claim is not None and wanted is not None:
            returns = claim.conduct.returns_unseen and not wanted.unsure and key not in claim.idle
            returns = returns or key in stood
            heals = returns and wanted.instance.status is InstanceStatus.UP
            why = f"the registry could not be read; {wanted.why}"
            renewals.append(Renew(key=key, syncer=syncer, why=why, heal=wanted.instance if heals else None))
    return sorted_plan(renewals)


def plan_renewals(instances: Iterable[ObservedInstance], why: str, *, now: float) -> Plan:
    """Renew these, but for what its policy lets lapse by now, in Unix seconds; and nothing else."""
    return sorted_plan(
        Renew(key=instance.key, syncer=syncer_of(instance), why=why, status=instance.status)
        for instance in instances
        if not lapses(instance, now)
    )


def withdrawal_id(actions: Iterable[Action]) -> str:
    """A checksum over the withdrawals alone: the same set gives the same 12 hex digits, whatever else a pass does."""
    lines = sorted(f"{type(action).__name__} {action.key}" for action in actions if withdraws(action))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def renewal_of(action: Update | Cancel, why: str) -> Renew:
    """What is done instead of a withdrawal that waits: status and lease are kept."""
    return Renew(key=action.key, syncer=action.syncer, why=why, status=action.was)


def differences(instance: Instance, observed: ObservedInstance) -> tuple[Change, ...]:
    """What a new register would change. Metadata that others added is theirs; a person's override is not fought."""
    if _same(instance, observed):  # nearly all are, in nearly every pass
        return ()
    pairs = [
        ("hostName", observed.host_name, instance.host_name),
        ("ipAddr", observed.ip_addr, instance.ip_addr),
        ("port", _shown(observed.port), _shown(instance.port)),
        ("securePort", _shown(observed.secure_port), _shown(instance.secure_port)),
        ("vipAddress", observed.vip_address, instance.vip_address),
        ("secureVipAddress", observed.secure_vip_address, instance.secure_vip_address),
        ("homePageUrl", observed.home_page_url, instance.home_page_url),
        ("statusPageUrl", observed.status_page_url, instance.status_page_url),
        ("healthCheckUrl", observed.health_check_url, instance.health_check_url),
        (
            "lease",
            f"{observed.lease.renewal}/{observed.lease.duration} s",
            f"{instance.lease.renewal}/{instance.lease.duration} s",
        ),
    ]
    names = our_keys(observed.metadata) - our_keys(instance.metadata)
    keys = {*instance.metadata, *names, CLASS, LIMIT, POLICY, GONE, DRAINED}
    pairs += [
        (f"metadata.{key}", observed.metadata.get(key, ""), instance.metadata.get(key, "")) for key in sorted(keys)
    ]
    if not overridden(observed, instance.status):
        pairs.append(("status", observed.status.value, instance.status.value))
    return tuple(Change(field=field, was=was, becomes=becomes) for field, was, becomes in pairs if was != becomes)


def _same(instance: Instance, observed: ObservedInstance) -> bool:
    return (
        instance.status is observed.status
        and instance.metadata == observed.metadata
        and instance.host_name == observed.host_name
        and instance.ip_addr == observed.ip_addr
        and instance.port == observed.port
        and instance.secure_port == observed.secure_port
        and instance.vip_address == observed.vip_address
        and instance.secure_vip_address == observed.secure_vip_address
        and instance.lease == observed.lease
        and instance.home_page_url == observed.home_page_url
        and instance.status_page_url == observed.status_page_url
        and instance.health_check_url == observed.health_check_url
    )


def overridden(observed: ObservedInstance, wanted: InstanceStatus) -> bool:
    """Whether a person's or a tool's override stands against the wanted status: it is left alone and reported.

    OUT_OF_SERVICE always (a register of UP would be ignored, InstanceStatusOverrideRule); any other override only
    against an UP: a DOWN of ours is trusted first (DownOrStartingRule) and must reach the callers.
    """
    if observed.status is InstanceStatus.OUT_OF_SERVICE:
        return True
    forced = _override(observed) is not None
    return forced and observed.status is observed.overridden_status and wanted is InstanceStatus.UP


def _override(observed: ObservedInstance) -> InstanceStatus | None:
    """What a person or a tool set, and a cancel would forget, though a DOWN of ours may hide it."""
    if observed.status is InstanceStatus.OUT_OF_SERVICE:
        return observed.status
    kept = observed.overridden_status
    return None if kept in (InstanceStatus.UNKNOWN, InstanceStatus.UP) else kept


def _for_ours(key: InstanceKey, desired: Desired, observed: Observed) -> Action:
    instance = observed.ours[key]
    syncer = syncer_of(instance)
    if key in observed.unread:
        why = f"could not be read again: {observed.unread[key].why}"
        return Renew(key=key, syncer=syncer, why=why, status=instance.status)
    claim = desired.server_of(key)
    if claim is not None:
        return _for_wanted(claim, claim.wanted[key], instance)
    return _for_unwanted(instance, desired)


def _frozen_holder(instance: ObservedInstance, desired: Desired) -> SyncerRef | None:
    """The syncer whose instance a younger one wants, and that is frozen, or does not see all that it may want: that is
    not taken over, for it may thaw."""
    wanting, holder = desired.wanted_by.get(instance.key), syncer_of(instance)
    claim = desired.claims.get(holder) if holder and wanting and holder != wanting else None
    if not isinstance(claim, Frozen | Serving) or wanting is None:
        return None
    if not claim.holds(instance) and not (isinstance(claim, Serving) and instance.key in claim.kept):
        return None
    return holder if seniority(claim) < seniority(desired.claims[wanting]) else None


def _for_duplicate(
    key: InstanceKey, other: ObservedInstance, desired: Desired, observed: Observed
) -> tuple[Blocked, Action]:
    """Ours, beside the instance that its pod registered itself: it gives way once callers need no more than that one,
    by uncached reads of both. Until then it stays as it is wanted, or they could lose both."""
    claim, instance = desired.claims[desired.wanted_by[key]], observed.ours[key]
    assert isinstance(claim, Serving)  # it wants the instance
    wanted = claim.wanted[key].instance
    stays = lacks(other, wanted, instance)
    if key in observed.unread or other.key in observed.unread:
        stays = "it could not be read again"
    elif wanted.status is not InstanceStatus.UP:
        stays = "its pod is not to be UP"
    elif (override := _override(instance)) is not None:
        stays = f"a person set ours {override.value}"
    duplicate = _duplicate(key, claim.syncer.ref, other, stays=stays)
    if stays is not None:
        return duplicate, _for_ours(key, desired, observed)
    return duplicate, Cancel(
        key=key,
        syncer=claim.syncer.ref,
        why=f"it registers itself as {other.key.id}",
        grounds=Grounds.DUPLICATE,
        proof=claim.proof,
        was=instance.status,
        vip_address=instance.vip_address,
    )


def _duplicate(key: InstanceKey, syncer: SyncerRef, other: ObservedInstance, stays: str | None = None) -> Blocked:
    beside = f", and ours stays beside it ({stays})" if stays else ""
    why = f"it registers itself as {other.key.id}{beside}: turn its Eureka client off, or delete the syncer"
    return Blocked(key=key, syncer=syncer, why=why, obstacle=Obstacle.DUPLICATE, other=other.key)


def _unseen(desired: Desired, observed: Observed) -> Iterator[tuple[SyncerRef, str]]:
    """Syncer and pod of what stays because a Service has no slices."""
    claims = {ref: c for ref, c in desired.claims.items() if isinstance(c, Serving) and c.heeds_pods}
    for instance in observed.ours.values() if claims else ():
        syncer, uid = syncer_of(instance), pod_uid_of(instance)
        if syncer in claims and uid is not None and claims[syncer].keeps_unseen(instance):
            yield syncer, uid


def _for_wanted(claim: Serving, wanted: Wanted, observed: ObservedInstance) -> Action:
    syncer = claim.syncer.ref
    changes = differences(wanted.instance, observed)
    if not changes:
        # A not-ready endpoint that Eureka lost is not brought back: it would be a first registration.
        heal = wanted.instance if wanted.instance.status is InstanceStatus.UP else None
        return Renew(key=observed.key, syncer=syncer, why=wanted.why, heal=heal, status=observed.status)
    return Update(
        instance=wanted.instance,
        syncer=syncer,
        why=wanted.why,
        changes=changes,
        was=observed.status,
        stored_timestamp=observed.last_dirty_timestamp,
        proof=claim.proof,
        grounds=Grounds.DRAINED if wanted.drained else Grounds.ABSENCE,
        override=observed.overridden_status,
    )


def _for_unwanted(instance: ObservedInstance, desired: Desired) -> Action:
    syncer = syncer_of(instance)
    assert syncer is not None  # `Observed.ours` holds none without
    claim = desired.claims.get(syncer)

    def renew(why: str) -> Renew:
        return Renew(key=instance.key, syncer=syncer, why=why, status=instance.status)

    def cancel(why: str, grounds: Grounds, proof: Proof) -> Cancel:
        return Cancel(
            key=instance.key,
            syncer=syncer,
            why=why,
            grounds=grounds,
            proof=proof,
            was=instance.status,
            vip_address=instance.vip_address,
        )

    if isinstance(claim, Frozen | Serving) and claim.keeps_unseen(instance):
        if proof := _replaced(instance, desired):
            return cancel("another pod has its address and port", Grounds.REPLACED, proof)
        if proof := _pod_gone(instance, desired):
            return cancel("its pod is gone", Grounds.POD_GONE, proof)
    match claim:
        case Deleting():
            return cancel("its syncer is being deleted", Grounds.SYNCER_DELETED, claim.proof)
        case Frozen():
            return renew(f"frozen: {claim.reason}")
        case Serving():
            leaving = claim.leaving.get(instance.key)
            if instance.key in claim.lost:
                why = f"syncer {claim.lost[instance.key]} is older and holds its address"
                return cancel(why, Grounds.ABSENCE, claim.proof)
            if instance.key in claim.over:
                if instance.status is InstanceStatus.OUT_OF_SERVICE:
                    return renew(f"{claim.over[instance.key].why}; {_PUT_OUT}")
                return cancel(claim.over[instance.key].why, Grounds.OVER_LIMIT, claim.proof)
            if why_kept := claim.keeps(instance):
                return renew(why_kept)
            if leaving is None:
                return cancel("it has no endpoint any more", Grounds.ABSENCE, claim.proof)
            if leaving.terminating:
                return cancel(leaving.why, Grounds.TERMINATING, claim.proof)
            if instance.status is InstanceStatus.OUT_OF_SERVICE:
                return renew(f"{leaving.why}; {_PUT_OUT}")
            return cancel(leaving.why, Grounds.ABSENCE, claim.proof)
        case None:
            listed = desired.syncers.of(syncer.namespace)
            if isinstance(listed, Complete):
                swept = instance.last_dirty_timestamp < desired.crd_installed * 1000
                grounds = Grounds.SWEPT if swept else Grounds.ORPHANED
                return cancel(f"there is no syncer {syncer}", grounds, listed.proof)
            return renew("its syncers could not be listed")
        case _:  # pragma: no cover
            assert_never(claim)


_PUT_OUT = "a cancel would forget that a person put it out of service"


def _make_sure(desired: Desired, observed: Observed) -> Iterator[Cancel]:
    """A register may be younger than the list: what a deleting syncer could have written is deleted unseen, unless it
    is another's."""
    written = {key: c for c in desired.claims.values() if isinstance(c, Deleting) for key in c.keys}
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


def _replaced(instance: ObservedInstance, desired: Desired) -> Proof | None:
    uid = pod_uid_of(instance)
    there = desired.pods_by_socket.get((instance.ip_addr, instance.main_port))
    return there.proof if uid is not None and there is not None and uid not in there.data else None


def _pod_gone(instance: ObservedInstance, desired: Desired) -> Proof | None:
    uid = pod_uid_of(instance)
    living = desired.living_pods.get(pod_namespace_of(instance) or "")
    return living.proof if uid is not None and living is not None and uid not in living.data else None


def _holder(instance: ObservedInstance) -> str:
    owner = instance.metadata.get(OWNER)
    return f"an instance of owner {owner}, syncer {syncer_of(instance)}," if owner else "an instance without our mark"


def _shown(port: Port) -> str:
    return str(port.number) if port.enabled else "off"


_KINDS: Mapping[type[Action], int] = {Renew: 0, Register: 1, Update: 2, Cancel: 4}


def _order(action: Action) -> tuple[int, InstanceKey]:
    return (3 if isinstance(action, Update) and removes(action) else _KINDS[type(action)], action.key)
