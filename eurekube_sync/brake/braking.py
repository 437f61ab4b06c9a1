"""The rules of the brake in their order: which removals of a plan are held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from eurekube_sync.brake.approval import released_by
from eurekube_sync.brake.confirm import parted, seen_before, to_confirm, unconfirmed
from eurekube_sync.brake.holds import Brake, BrakeLimits, Held, Hold, HoldReason, held_of, hold_back
from eurekube_sync.model.actions import Grounds, Register, Removal, Update, brings_up
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import Pods, SyncerRef
from eurekube_sync.model.ownership import pod_namespace_of, pod_uid_of
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.observe.kubernetes import pod_gone
from eurekube_sync.plan.value import Plan

_AT_ONCE = frozenset({Grounds.DUPLICATE, Grounds.REPLACED})
"""Grounds for removals that need no confirmation: callers use the pod's own instance, or would
reach another pod."""

_ASKED_FOR = frozenset({Grounds.SYNCER_DELETED, Grounds.DRAINED, Grounds.OVER_LIMIT})
"""Grounds for removals that a person asked for, of one object: no number of emptied apps holds
them. Deletions have a limit of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Braked:
    """The plan after the brake."""

    plan: Plan  # with a renewal in place of each held removal
    held: Held | None
    approved: frozenset[InstanceKey] = frozenset()  # the removals that `--approve` released
    confirmed: frozenset[InstanceKey] = frozenset()  # the removals that an earlier pass saw


def apply_brake(plan: Plan, observed: Observed, brake: Brake) -> Braked:
    """Return the plan with a renewal in place of each removal that has to wait.

    | removal | waits |
    |---|---|
    | released by annotation; of a pod that an earlier pass saw dead, or that is registered under another app | never |
    | of an instance older than the CRD, whose syncer is missing | for a person |
    | too much; apps emptied; too many apps deleted: see `too_much` | for a person |
    | the same, of dead pods that alone are too many | for a second pass that sees them dead |
    | the last of an app, without evidence | for a second pass |
    | at an address that another pod has | never |

    What a person approved is weighed like the rest, and then not held."""
    planned = plan.removals
    if not planned:
        return Braked(plan=plan, held=None)
    gone = dead(planned, observed, brake.pods)
    confirmed = _seen_dead(planned, gone, brake)
    unweighed = set(confirmed)
    for removal in planned:
        if removal.syncer in brake.freed:
            unweighed.add(removal.key)
    scales = _scales(plan, observed, gone, unweighed)
    swept, weighed = _to_weigh(planned, scales)

    holds = _of_an_earlier_crd(swept)
    holds += _too_much_of_all_or_of_the_dead(scales, weighed, brake.limits)
    holds = parted(holds, gone, brake)
    holds = [_saying_what_is_unknown(hold, observed, brake.pods) for hold in holds]
    last = _unexplained_last(scales, _left(weighed, holds))
    seen = seen_before(last, brake)
    holds += unconfirmed(last, seen, brake)

    approved = _approved(planned, holds, brake)
    holds = [hold.without(approved) for hold in holds]
    held = held_of(holds, _seen_now(scales, planned, weighed, holds, brake))
    return Braked(
        plan=hold_back(plan, held), held=held, approved=approved, confirmed=confirmed | seen
    )


def _seen_dead(
    planned: Iterable[Removal], gone: Collection[InstanceKey], brake: Brake
) -> frozenset[InstanceKey]:
    """Return the removals whose pods an earlier pass saw dead."""
    known = []
    for removal in planned:
        # One whose address another pod has never waits.
        if removal.key in gone and removal.grounds is not Grounds.REPLACED:
            known.append(removal)
    return seen_before(known, brake, dead=True)


def _scales(
    plan: Plan, observed: Observed, gone: frozenset[InstanceKey], unweighed: Collection[InstanceKey]
) -> Scales:
    registered = set()
    for key, instance in observed.ours.items():
        if instance.status is InstanceStatus.UP and key not in unweighed:
            registered.add(key)
    return Scales(
        plan=plan,
        registered=frozenset(registered),
        unread=frozenset(observed.unread) & registered,
        unweighed=frozenset(unweighed),
        moved=moved(plan, observed, registered),
        dead=gone,
    )


def _to_weigh(planned: Iterable[Removal], scales: Scales) -> tuple[list[Removal], list[Removal]]:
    """Return the removals from before the CRD, and those that the three rules weigh."""
    swept, weighed = [], []
    for removal in planned:
        if removal.key in scales.unweighed:
            continue
        if removal.grounds is Grounds.SWEPT:
            swept.append(removal)
        elif removal.key not in scales.moved:
            weighed.append(removal)
    return swept, weighed


def _of_an_earlier_crd(swept: Sequence[Removal]) -> list[Hold]:
    """Hold all instances whose syncers may have been deleted with an earlier CRD."""
    if not swept:
        return []
    first, *more = sorted({str(removal.syncer) for removal in swept})
    owners, their = first, "the syncer"
    if more:
        owners, their = f"{first} and of {counted(len(more), 'more syncer')}", "the syncers"
    are = one_or_more(len(swept), "is", "are")
    why = (
        f"{counted(len(swept), 'UP instance')} of {owners} {are} older than the "
        "CustomResourceDefinition (an "
        f"earlier CustomResourceDefinition may have been deleted, and {their} with it)"
    )
    return [_hold(why, swept, HoldReason.CRD_INSTALLED)]


def _too_much_of_all_or_of_the_dead(
    scales: Scales, weighed: Collection[Removal], limits: BrakeLimits
) -> list[Hold]:
    """Hold the living pods' removals if all together are too many, and the dead pods' if they alone
    are."""
    of_dead = [removal for removal in weighed if removal.key in scales.dead]
    living = [hold.without(scales.dead) for hold in too_much(scales, weighed, limits)]
    return [*living, *too_much(scales, of_dead, limits)]


def _approved(
    planned: Iterable[Removal], holds: Iterable[Hold], brake: Brake
) -> frozenset[InstanceKey]:
    """Return the removals that a person approved, in this pass or earlier in it."""
    found = held_of(
        holds
    )  # a removal that two rules hold counts once, as in the plan id that is reported
    meant = released_by(brake.approval, planned, found.removals if found else ())
    return meant | (brake.approved & {removal.key for removal in planned})


def _seen_now(
    scales: Scales,
    planned: Iterable[Removal],
    weighed: Collection[Removal],
    holds: Iterable[Hold],
    brake: Brake,
) -> list[Hold]:
    """Return what a second pass can confirm, although a larger hold has it in this one."""
    held = {removal.key for hold in holds for removal in hold.removals}
    last = [removal for removal in _unexplained_last(scales, weighed) if removal.key in held]
    emptied = scales.emptied(weighed)
    terminating = []
    for removal in weighed:
        # Its endpoint may be missing in the next pass. A deleted syncer says nothing of the pod.
        ends = removal.grounds is Grounds.TERMINATING
        if ends and removal.key in held and removal.key.app in emptied:
            terminating.append(removal)
    gone = [removal for removal in planned if removal.key in held and removal.key in scales.dead]
    # The first are those whose mark a status keeps.
    return [
        *to_confirm(last, brake),
        *to_confirm(terminating, brake),
        *to_confirm(gone, brake, dead=True),
    ]


def _unexplained_last(scales: Scales, removals: Collection[Removal]) -> list[Removal]:
    """Return the removals that need a second look: without evidence, of apps that would lose their
    last instance."""
    emptied = scales.emptied(removals)
    return [
        removal
        for removal in removals
        if removal.key.app in emptied
        and not removal.grounds.positive
        and removal.grounds not in _AT_ONCE
    ]


def _left(removals: Collection[Removal], holds: Collection[Hold]) -> list[Removal]:
    waiting = {removal.key for hold in holds for removal in hold.removals}
    return [removal for removal in removals if removal.key not in waiting]


@dataclass(frozen=True, kw_only=True)  # without slots: it keeps what it counted
class Scales:
    """The numbers against which removals are weighed."""

    plan: Plan
    registered: frozenset[InstanceKey]  # UP now, and weighed
    unread: frozenset[
        InstanceKey
    ]  # UP in the list, but their uncached read failed: they count as lost
    unweighed: frozenset[
        InstanceKey
    ]  # removals that a person released, or of pods that an earlier pass saw dead
    moved: frozenset[InstanceKey]  # removals whose pods are registered under another app
    dead: frozenset[InstanceKey]  # removals whose pods are gone

    @cached_property
    def gained(self) -> Counter[str]:
        """UP instances that the pass adds, by app."""
        return Counter(action.key.app for action in self.plan.changes if brings_up(action))

    @cached_property
    def replacing(self) -> Counter[str]:
        """Those of them that replace weighed removals, by app; unweighed removals are replaced
        first."""
        return self.gained - Counter(key.app for key in self.unweighed)

    @cached_property
    def now(self) -> Counter[str]:
        """UP instances by app, without those that move to another app."""
        return Counter(key.app for key in self.registered if key not in self.moved)

    def emptied(self, removals: Iterable[Removal]) -> frozenset[str]:
        """Return the apps that would lose their last UP instance. A duplicate is no loss."""
        lost = Counter(one.key.app for one in removals if one.grounds is not Grounds.DUPLICATE)
        lost += Counter(key.app for key in self.unread)
        return frozenset(
            app for app, count in self.now.items() if lost[app] - self.gained[app] >= count
        )


def loss_of(
    removals: Collection[Removal], unread: Collection[InstanceKey], gained: Mapping[str, int]
) -> tuple[Counter[str], Counter[str]]:
    """Return each app's net loss of UP instances, and the part of it without evidence. New
    instances replace removals with evidence first, such as terminating pods in a rollout."""
    unread_of = Counter(key.app for key in unread)
    lost = Counter(one.key.app for one in removals) + unread_of
    doubted = Counter(one.key.app for one in removals if not one.grounds.positive) + unread_of
    net = Counter(
        {
            app: count - gained.get(app, 0)
            for app, count in lost.items()
            if count > gained.get(app, 0)
        }
    )
    return net, doubted & net


_PodAt: TypeAlias = tuple[SyncerRef | None, str, int, str]


def moved(
    plan: Plan, observed: Observed, registered: Collection[InstanceKey]
) -> frozenset[InstanceKey]:
    """Return the removals whose pod the same syncer registers at the same address and port under
    another app. The address alone proves nothing, because several Services may share a host
    name."""
    pods = {one.key: _pod_at(one.syncer, observed.ours[one.key].instance) for one in plan.removals}
    losing = {one.syncer for one in plan.removals}
    served: set[_PodAt | None] = set()
    for action in (one for one in plan.actions if one.syncer in losing):
        if isinstance(action, Register | Update) and brings_up(action):
            served.add(_pod_at(action.syncer, action.instance))
        elif action.key in registered and action.key not in pods:
            served.add(_pod_at(action.syncer, observed.ours[action.key].instance))
    served.discard(None)
    return frozenset(key for key, pod in pods.items() if pod in served)


def _pod_at(syncer: SyncerRef | None, instance: Instance) -> _PodAt | None:
    """Return the pod of an instance with its syncer, address and port; None if the mark names no
    pod."""
    uid = pod_uid_of(instance)
    return None if uid is None else (syncer, instance.ip_addr, instance.main_port, uid)


def to_look_up(held: Held | None) -> tuple[Removal, ...]:
    """Return the held removals that dead pods would release. Those that await confirmation wait
    anyway."""
    holds = held.holds if held else ()
    return tuple(
        one
        for hold in holds
        if hold.reason is not HoldReason.AWAITING_CONFIRMATION
        for one in hold.removals
    )


def dead(removals: Iterable[Removal], observed: Observed, pods: Pods) -> frozenset[InstanceKey]:
    """Return the removals whose pod is not in a complete list, or whose address and port another
    pod has. A terminating pod may still serve, and so may an endpoint without a pod, or with an
    unknown list."""
    known = (Grounds.REPLACED, Grounds.POD_GONE)
    return frozenset(
        one.key
        for one in removals
        if one.grounds in known or pod_gone(observed.ours[one.key], pods)
    )


def _saying_what_is_unknown(hold: Hold, observed: Observed, pods: Pods) -> Hold:
    """Add to the hold's sentence that the pods could not be read."""
    for one in hold.removals:
        listed = pods.get(pod_namespace_of(observed.ours[one.key]) or "")
        if isinstance(listed, Unknown):
            return replace(
                hold,
                why=f"{hold.why}; it is unknown whether their pods still exist: {listed.message}",
            )
    return hold


def too_much(scales: Scales, removals: Collection[Removal], limits: BrakeLimits) -> Iterator[Hold]:
    """Hold what is too much for one pass, by three rules.

    | rule | holds | counts |
    |---|---|---|
    | too much | more than 30 % and more than 10, of all or of one app | removals without evidence |
    | emptied | more than 5 % of our apps and more than one | all that may serve, but what a person asked for |
    | deleted | more than 20 % of our apps and more than 10 | those of deleted syncers that may serve |
    """
    yield from _over_the_share(scales, removals, limits)
    emptied = scales.emptied(removals)
    # A dead pod serves nobody: it empties no app.
    serving = []
    for removal in removals:
        if removal.key.app in emptied and removal.key not in scales.dead:
            serving.append(removal)
    yield from _emptied(scales, serving, emptied, limits)
    yield from _deleted(scales, serving, limits)


def _over_the_share(
    scales: Scales, removals: Collection[Removal], limits: BrakeLimits
) -> Iterator[Hold]:
    """Hold what is too much of all our instances, or of one app. Dead pods count."""
    net, doubted = loss_of(removals, scales.unread, scales.replacing)
    unexplained = [
        removal for removal in removals if removal.key.app in net and not removal.grounds.positive
    ]
    than = f"more than {limits.loss_percent:g} %"

    # too much of all
    total, lost = len(scales.registered), doubted.total()
    if lost > limits.loss_floor and lost * 100 > limits.loss_percent * total:
        why = f"this installation would lose {lost} of its {counted(total, 'UP instance')}, {than}"
        yield _hold(why, unexplained)

    # too much of one app, which another team's many instances must not hide
    by_app: dict[str, list[Removal]] = {}
    for removal in unexplained:
        by_app.setdefault(removal.key.app, []).append(removal)
    for app, lost in sorted(doubted.items()):
        total = scales.now[app]
        if lost > limits.app_loss_floor and lost * 100 > limits.loss_percent * total:
            why = f"app {app} would lose {lost} of its {counted(total, 'UP instance')}, {than}"
            yield _hold(why, by_app.get(app, ()))


def _emptied(
    scales: Scales, serving: Collection[Removal], emptied: Collection[str], limits: BrakeLimits
) -> Iterator[Hold]:
    """Hold the last instances of several apps, unless a person asked for them. One app alone waits
    for a second pass instead: see `confirm`. An unread instance may be the last that is left of its
    app."""
    unasked = [removal for removal in serving if removal.grounds not in _ASKED_FOR]
    apps = {removal.key.app for removal in unasked}
    apps.update(key.app for key in scales.unread if key.app in emptied)
    total = len(scales.now)
    if len(apps) > max(limits.apps_floor, total * limits.apps_percent / 100):
        yield _hold(_last_ones(len(apps), total), unasked)


def _deleted(scales: Scales, serving: Collection[Removal], limits: BrakeLimits) -> Iterator[Hold]:
    """Hold the last instances of many apps whose syncers are being deleted: a team's namespace may
    go, but not everything."""
    deleted = [removal for removal in serving if removal.grounds is Grounds.SYNCER_DELETED]
    apps = {removal.key.app for removal in deleted}
    total = len(scales.now)
    if len(apps) > limits.deleted_floor and len(apps) * 100 > limits.deleted_percent * total:
        yield _hold(
            f"{_last_ones(len(apps), total)}, because their syncers are being deleted", deleted
        )


def _last_ones(number: int, apps: int) -> str:
    return f"{number} of {counted(apps, 'app')} would have no UP instance left"


def _hold(
    why: str, removals: Iterable[Removal], reason: HoldReason = HoldReason.TOO_MANY_REMOVALS
) -> Hold:
    # At another pod's address callers would reach another app: nothing holds such an instance.
    kept = [removal for removal in removals if removal.grounds is not Grounds.REPLACED]
    return Hold(reason=reason, why=why, removals=tuple(kept))
