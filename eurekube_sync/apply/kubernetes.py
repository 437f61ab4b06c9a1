"""The writes to Kubernetes: finalizers before anything is registered, and their removal when all is
gone; changed statuses; events for changed conditions. A write that fails is reported, and tried
again by the next pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter

from eurekube_sync.apply.conditions import PassResult
from eurekube_sync.apply.leases import in_turn
from eurekube_sync.apply.status import (
    EarlierStatuses,
    Recoveries,
    abandoned_event,
    events_of,
    statuses,
    worth_writing,
)
from eurekube_sync.desired.claims import Deleting, Desired
from eurekube_sync.desired.conduct import Policy, is_gone
from eurekube_sync.desired.spec import CLEANUP_FINALIZER, abandoned, selected_namespace
from eurekube_sync.model.actions import Cancel, Outcomes, Register, Renew, Update
from eurekube_sync.model.deadline import FAILURES_IN_A_ROW, Deadline, Streak
from eurekube_sync.model.errors import ClusterError, ClusterUnavailable
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import EventRecord, SyncerObject, SyncerRef, SyncerStatus
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.ports import Clock, Cluster, Workers
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.eureka import Observed


def without_finalizer(
    desired: Desired, actions: Iterable[Register | Update | Renew]
) -> list[SyncerObject]:
    """Return the syncers of these actions that lack our finalizer, and are not being deleted."""
    syncers = {ref: claim.syncer for ref, claim in desired.claims.items()}
    lacking = [
        ref
        for ref, one in syncers.items()
        if one.deleted is None and CLEANUP_FINALIZER not in one.finalizers
    ]
    meant = {action.syncer for action in actions} if lacking else frozenset()
    return [syncers[ref] for ref in sorted(lacking) if ref in meant]


def put_finalizers_on(
    cluster: Cluster,
    workers: Workers,
    deadline: Deadline,
    desired: Desired,
    adds: Iterable[Register | Update | Renew],
) -> tuple[dict[SyncerRef, str], tuple[ClusterError, ...]]:
    """Add our finalizer to each syncer that is about to register, or has instances without it.
    Return the syncers for which it failed, with the reason: they must not register. A server that
    hangs is not called for all of them."""
    without = without_finalizer(desired, adds)
    streak = Streak()

    def put_on(syncer: SyncerObject) -> ClusterError | str | None:
        if streak.broken:
            return f"the Kubernetes API did not answer {FAILURES_IN_A_ROW} calls in a row"
        if deadline.passed:
            return "no time was left for it"
        error = failure(partial(cluster.add_finalizer, syncer))
        streak.note(unreachable=isinstance(error, ClusterUnavailable))
        return error

    turns = in_turn(without, attrgetter("ref"))
    failed = {
        s.ref: error for s, error in zip(turns, workers.each(put_on, turns), strict=True) if error
    }
    barred = {
        ref: f"not changed, because the finalizer of the syncer could not be set: {error}"
        for ref, error in failed.items()
    }
    return barred, tuple(error for error in failed.values() if isinstance(error, ClusterError))


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """The writes of one syncer."""

    syncer: SyncerObject
    status: SyncerStatus | None = (
        None  # None: the finalizer is removed, because the deletion may end
    )
    events: Sequence[EventRecord] = ()
    """Of conditions that changed; for an abandoned deletion, what is left in Eureka."""


def unsettled(
    result: PassResult,
    *,
    words: bool,
    earlier: EarlierStatuses | None = None,
    recoveries: Recoveries | None = None,
) -> tuple[Sequence[Write], Mapping[SyncerRef, SyncerStatus]]:
    """Return the writes of a pass to Kubernetes, and the statuses of all syncers that stay, changed
    or not. With `words`, a failure that continues is reported in its latest words. `earlier` keeps
    what the previous pass computed, `recoveries` the outages that this process saw."""
    claims, waiting = result.desired.claims, {}
    finished: dict[SyncerRef, Write] = {}
    for ref, claim in sorted(claims.items()):
        if CLEANUP_FINALIZER not in claim.syncer.finalizers:
            continue
        if abandoned(claim.syncer):
            left: Collection[InstanceKey] | None = None
            if isinstance(result.registry, Complete):
                observed = result.registry.data
                marked = observed.keys_by_syncer.get(ref, frozenset())
                left = (
                    still_there(claim, observed, result) if isinstance(claim, Deleting) else marked
                )
            event = abandoned_event(claim.syncer, left, result.expires_after)
            finished[ref] = Write(syncer=claim.syncer, events=(event,))
        elif isinstance(claim, Deleting):
            if why := waits_for(claim, result):
                waiting[ref] = why
            else:
                finished[ref] = Write(syncer=claim.syncer)
    due = statuses(result, waiting, earlier=earlier, recoveries=recoveries)
    others = {ref: status for ref, status in sorted(due.items()) if ref not in finished}
    afterwards = ((claims[ref].syncer, status) for ref, status in others.items())
    changed = [
        (one, status)
        for one, status in afterwards
        if worth_writing(one.status, status, words=words)
    ]
    events = events_of(in_turn(changed, lambda one: one[0].ref))
    writes = [Write(syncer=one, status=status, events=events[one.ref]) for one, status in changed]
    return [*finished.values(), *writes], others


def settle(
    cluster: Cluster, clock: Clock, workers: Workers, deadline: Deadline, due: Sequence[Write]
) -> tuple[dict[SyncerRef, SyncerStatus], tuple[ClusterError, ...]]:
    """Write statuses and events, and end finished deletions, in turn. Return the statuses written,
    and the errors."""
    now, writes = clock.now(), in_turn(due, attrgetter("syncer.ref"))

    def write(one: Write) -> ClusterError | None:
        ref = one.syncer.ref
        if deadline.passed:
            undone = (
                f"status of {ref} was not written"
                if one.status
                else f"finalizer of {ref} was not removed"
            )
            return ClusterUnavailable(f"the {undone}, because the pass had ended")
        # Events come first, because after a status is written the next pass does not see the
        # change. But a missing right to write events must not prevent the status, and no failed
        # event the end of a deletion.
        failed: ClusterError | None = None
        for event in one.events:
            failed = failure(partial(cluster.record_event, event, at=now)) or failed
            if isinstance(failed, ClusterUnavailable) and one.status:
                return failed
        if one.status:
            return failure(partial(cluster.write_status, one.syncer, one.status)) or failed
        return failure(partial(cluster.remove_finalizer, one.syncer)) or failed

    ended = list(zip(writes, workers.each(write, writes), strict=True))
    written = {one.syncer.ref: one.status for one, error in ended if error is None and one.status}
    return written, tuple(error for _, error in ended if error)


def failure(call: Callable[[], object]) -> ClusterError | None:
    """Make the call, and return its error."""
    try:
        call()
    except ClusterError as error:
        return error
    return None


def look_elsewhere(
    deleting: Collection[SyncerObject], observed: Observed, *, cache_seconds: float
) -> frozenset[SyncerRef]:
    """Return the deleted syncers for which the other Eureka servers must be listed: all, as soon as
    one deletion may end. No other list shows instances that only those servers hold, and nothing
    owns their ids once the endpoints are gone."""
    ends = any(
        CLEANUP_FINALIZER in syncer.finalizers
        and not abandoned(syncer)
        and not observed.listed.get(syncer.ref)
        and _age(syncer, observed) >= cache_seconds
        for syncer in deleting
    )
    return frozenset(syncer.ref for syncer in deleting) if ends else frozenset()


def waits_for(claim: Deleting, result: PassResult) -> str | None:
    """Return why the finalizer has to stay, as a sentence; None if it may be removed. Then no
    server lists an instance of the syncer, every id that it could have registered answered a
    DELETE, and the deletion is older than the server's cache, which could hide a late registration.
    A server that could not be listed counts until its instances have expired."""
    if isinstance(result.registry, Unknown):
        return f"Eureka could not be read: {result.registry.message}"
    observed = result.registry.data
    if left := still_there(claim, observed, result):
        why = _why_it_stays(left[0], observed, result)
        if heir := result.desired.wanted_by.get(left[0]):
            why = f"syncer {heir} claims it, and could not take it over: {why}"
        elif unread := _heir_of_unlisted(left[0], claim, observed, result):
            why = unread
        such = one_or_more(len(left), "", "such as ")
        return f"the deletion waits for {counted(len(left), 'instance')}, {such}{left[0]}: {why}"
    if observed.listed.get(claim.syncer.ref):
        return "Eureka's cached list still shows instances of this syncer"
    age = _age(claim.syncer, observed)
    if age < result.cache or result.unseen is None:
        begun = "the deletion began"
        if _left_to_expire(claim.syncer, observed):
            begun += f", and until {result.cache:g} s after the syncer's last instance turned DOWN"
        old = f"{result.cache:g} s"
        return f"Eureka's lists may be {old} old, so the finalizer stays until {old} after {begun}"
    if result.unseen and age < result.expires_after:
        end = f"{result.expires_after:g} s after the deletion began"
        may = f"may still hold an instance, which expires at the latest {end}"
        return f"{' and '.join(result.unseen)} could not be listed and {may}"
    return None


def _heir_of_unlisted(
    key: InstanceKey, claim: Deleting, observed: Observed, result: PassResult
) -> str | None:
    """Return why an id that the syncer could have registered was not cancelled, although no list
    shows it: a syncer that could not be read may have registered it by now."""
    heirs = result.desired.heirs
    untried = key not in observed.ours and key not in observed.unread
    if heirs is None or not untried or key in result.outcomes.by_key:
        return None
    return heirs.unread_in(selected_namespace(claim.syncer))


def _why_it_stays(key: InstanceKey, observed: Observed, result: PassResult) -> str:
    """Return the reason, which is the same in every pass, whether the instance's lease was due or
    not."""
    outcome = result.outcomes.by_key.get(key)
    if outcome and outcome.detail:
        return outcome.detail
    action = (
        outcome.action
        if outcome
        else next((one for one in result.plan.actions if one.key == key), None)
    )
    if action is not None and not isinstance(action, Cancel):
        return action.why
    unread = observed.unread.get(key)
    return (
        f"the instance could not be read again: {unread.why}"
        if unread
        else "its removal was not tried"
    )


def still_there(claim: Deleting, observed: Observed, result: PassResult) -> list[InstanceKey]:
    """Return, sorted, the keys that the syncer may have registered, or that have its mark, without
    a successful DELETE."""
    keys = claim.keys | observed.keys_by_syncer.get(claim.syncer.ref, frozenset())
    wanted_by = result.desired.wanted_by
    return sorted(
        key for key in keys if not _gone(key, claim, observed, result.outcomes, key in wanted_by)
    )


def _age(syncer: SyncerObject, observed: Observed) -> float:
    """Return the seconds from the deletion, or the syncer's last instance that was left to expire,
    to the request for the list. A pass may have paused since the request, and other servers may
    still show that instance UP."""
    assert syncer.deleted is not None  # a `Deleting` claim has a deletion time
    changed = (one.last_dirty_timestamp / 1000 for one in _left_to_expire(syncer, observed))
    return observed.asked - max((syncer.deleted, *changed))


def _left_to_expire(syncer: SyncerObject, observed: Observed) -> list[ObservedInstance]:
    registered = (observed.ours[key] for key in observed.keys_by_syncer.get(syncer.ref, ()))
    return [one for one in registered if is_gone(one)]


def _gone(
    key: InstanceKey, claim: Deleting, observed: Observed, outcomes: Outcomes, wanted: bool
) -> bool:
    outcome, registered = outcomes.by_key.get(key), observed.ours.get(key)
    if registered and is_gone(registered):
        return True  # its policy allows no cancel: it is DOWN, and expires
    marked = registered is not None and syncer_of(registered) == claim.syncer.ref
    if marked and (outcome is None or isinstance(outcome.action, Renew)):
        return (
            False  # also if another syncer claims it that is suspended, or whose own change is held
        )
    if outcome is None:
        # Nothing was due: another syncer's endpoint that was never ready, another owner's instance,
        # or a policy under which unlisted instances are not cancelled.
        absent = claim.policy is not Policy.SYNC and registered is None
        return key not in observed.unread and (wanted or key in observed.others or absent)
    if isinstance(outcome.action, Cancel):
        return not outcome.failed
    if outcome.action.syncer == claim.syncer.ref:
        return False  # its removal is held, or could not be decided
    return not outcome.failed or not marked  # another syncer took it over
