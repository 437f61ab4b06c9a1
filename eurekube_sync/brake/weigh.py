"""The tests: what is too much for a whole pass, and for one syncer by its own limit.

Each holds no more than it counts: the apps that lose, not those beside them. What has another pod's address now
goes in any case, for its callers would reach another app.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from eurekube_sync.brake.holds import Hold, HoldReason
from eurekube_sync.brake.limits import BrakeLimits
from eurekube_sync.brake.loss import Scales, loss_of
from eurekube_sync.brake.successors import renamed
from eurekube_sync.model.actions import Action, Grounds, Removal, brings_up
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.wording import counted, one_or_more


def too_much(scales: Scales, removals: Collection[Removal], limits: BrakeLimits) -> Iterator[Hold]:
    """What the whole pass would remove too much of, or of one app, however few of all that is. What a person deletes
    has its own limit, and the ceiling."""
    loss = loss_of(removals, scales.unread, scales.replacing)
    total, apps = len(scales.registered), len(scales.now)
    left_up = counted(total, "UP instance")
    losing = [one for one in removals if one.key.app in loss.net]
    unexplained = loss.unexplained.total()
    if unexplained > limits.loss_floor and unexplained * 100 > limits.loss_percent * total:
        why = f"{unexplained} of {left_up} would be removed, more than {limits.loss_percent:g} %"
        yield _hold(why, [one for one in losing if not _asked_for(one)])
    for app, lost in sorted(loss.unexplained.items()):
        if lost > limits.app_loss_floor and lost * 100 > limits.loss_percent * scales.now[app]:
            of_app = f"{lost} of {counted(scales.now[app], 'UP instance')} of app {app}"
            why = f"{of_app} would be removed, more than {limits.loss_percent:g} %"
            yield _hold(why, [one for one in losing if one.key.app == app and not one.grounds.positive])
    if loss.net.total() > limits.loss_ceiling:
        yield _hold(f"{loss.net.total()} of {left_up} would be removed, more than {limits.loss_ceiling:g}", losing)

    emptied = scales.emptied(removals)
    last = [one for one in removals if one.key.app in emptied]
    serving = [one for one in last if one.key not in scales.dead]
    unasked = [one for one in serving if not _asked_for(one)]
    going = {one.key.app for one in unasked} | {key.app for key in scales.unread if key.app in emptied}
    if len(going) > max(limits.apps_floor, apps * limits.apps_percent / 100):
        yield _hold(_last_ones(len(going), apps), unasked)
    deleted = [one for one in serving if _asked_for(one)]
    going = {one.key.app for one in deleted}
    if len(going) > limits.deleted_floor and len(going) * 100 > limits.deleted_percent * apps:
        yield _hold(f"{_last_ones(len(going), apps)}, because their syncers are being deleted", deleted)
    # What a person deletes may be all there is; nothing else may take the last instance of everything.
    unasked = [one for one in last if not _asked_for(one)]
    if emptied and len(emptied) == apps and not renamed(removals, scales.plan):
        yield _hold(f"all that we own would be removed: {left_up}", unasked)


def over_their_own(scales: Scales, removals: Collection[Removal], limits: Mapping[SyncerRef, int]) -> Iterator[Hold]:
    """All of those syncers that would lose more than their `maxRemovalPercent`. Evidence exempts here as in the test of
    sizes, or a syncer that has a limit could never be deleted."""
    own: dict[SyncerRef, list[Removal]] = {}
    for one in removals:
        if one.syncer in limits:
            own.setdefault(one.syncer, []).append(one)
    actions: dict[SyncerRef, list[Action]] = {syncer: [] for syncer in own}
    for action in scales.plan.actions:
        if action.syncer in own:
            actions[action.syncer].append(action)
    for syncer, limit in sorted((syncer, limits[syncer]) for syncer in own):
        registered = sum(action.key in scales.registered for action in actions[syncer])
        unread = [action.key for action in actions[syncer] if action.key in scales.unread]
        gained = Counter(action.key.app for action in actions[syncer] if brings_up(action))
        loss = loss_of(own[syncer], unread, gained).unexplained.total()
        if loss * 100 > limit * registered:
            why = (
                f"{loss} of {counted(registered, 'UP instance')} of {syncer} would be removed, more than its {limit} %"
            )
            yield _hold(why, own[syncer], HoldReason.MAX_REMOVAL_PERCENT)


def _asked_for(one: Removal) -> bool:
    return one.grounds is Grounds.SYNCER_DELETED


def _last_ones(number: int, apps: int) -> str:
    their = one_or_more(number, "its", "their")
    return f"{number} of {counted(apps, 'app')} would lose {their} last UP instance"


def _hold(why: str, removals: Iterable[Removal], reason: HoldReason = HoldReason.TOO_MANY_REMOVALS) -> Hold:
    return Hold(
        reason=reason,
        why=why,
        removals=tuple(one for one in removals if one.grounds is not Grounds.REPLACED),
    )
