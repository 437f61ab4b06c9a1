"""The writes to Kubernetes: finalizers before anything is registered, and their removal when all is
gone; changed statuses; events for changed conditions. A write that fails is reported, and tried
again by the next pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct

from eurekube_sync.apply.leases import in_turn
from eurekube_sync.apply.status import (
    EarlierStatuses,
    Recoveries,
    abandoned_event,
    events_of,
    statuses,
    worth_writing,
)
from eurekube_sync.apply.tally import PassResult
from eurekube_sync.desired.claims import Claim, Deleting, Desired
from eurekube_sync.desired.spec import CLEANUP_FINALIZER, abandoned, selected_namespace
from eurekube_sync.model.actions import Action, Cancel, Outcomes, Register, Renew, Update
from eurekube_sync.model.deadline import FAILURES_IN_A_ROW, Deadline, Streak
from eurekube_sync.model.errors import ClusterError, ClusterUnavailable
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import EventRecord, SyncerObject, SyncerRef, SyncerStatus
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.ports import Clock, Cluster, Workers
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.text import counted, one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import Plan


def without_finalizer(
    desired: Desired, actions: Iterable[Register | Update | Renew]
) -> list[SyncerObject]:
    """Return the syncers of these actions that lack our finalizer, and are not being deleted."""
    lacking: dict[SyncerRef, SyncerObject] = {}
    for ref, claim in desired.claims.items():
        syncer = claim.syncer
        if syncer.deleted is None and CLEANUP_FINALIZER not in syncer.finalizers:
            lacking[ref] = syncer
    if not lacking:
        return []  # nearly always
    meant = {action.syncer for action in actions}
    due = sorted(lacking.keys() & meant)
    return [lacking[ref] for ref in due]


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
    put = workers.each(put_on, turns)
    barred: dict[SyncerRef, str] = {}
    errors: list[ClusterError] = []
    for syncer, error in zip(turns, put, strict=True):
        if not error:
            continue
        why = f"not changed, because the finalizer of the syncer could not be set: {error}"
        barred[syncer.ref] = why
        if isinstance(error, ClusterError):
            errors.append(error)
    return barred, tuple(errors)


class Write(Struct, frozen=True, kw_only=True):
    """The writes of one syncer."""

    syncer: SyncerObject
    status: SyncerStatus | None = None
    """None: the finalizer is removed, because the deletion may end."""
    events: Sequence[EventRecord] = ()
    """Of conditions that changed; for an abandoned deletion, what is left in Eureka."""


class Unsettled(NamedTuple):
    """What a pass has to tell Kubernetes."""

    writes: Sequence[Write]
    statuses: Mapping[SyncerRef, SyncerStatus]
    """Of all syncers that stay, changed or not."""


def unsettled(
    result: PassResult,
    *,
    words: bool,
    earlier: EarlierStatuses | None = None,
    recoveries: Recoveries | None = None,
) -> Unsettled:
    """Return the writes of a pass to Kubernetes, and the statuses of all syncers that stay, changed
    or not. With `words`, a failure that continues is reported in its latest words. `earlier` keeps
    what the previous pass computed, `recoveries` the outages that this process saw."""
    claims = result.desired.claims
    waiting, finished = _deletions(result)
    due = statuses(result, waiting, earlier=earlier, recoveries=recoveries)
    others: dict[SyncerRef, SyncerStatus] = {}
    changed: list[tuple[SyncerObject, SyncerStatus]] = []
    for ref, status in sorted(due.items()):
        if ref in finished:
            continue
        others[ref] = status
        syncer = claims[ref].syncer
        if worth_writing(syncer.status, status, words=words):
            changed.append((syncer, status))
    # In turn, because the events that are no warnings are limited.
    turns = in_turn(changed, lambda pair: pair[0].ref)
    events = events_of(turns)
    writes = list(finished.values())
    for syncer, status in changed:
        writes.append(Write(syncer=syncer, status=status, events=events[syncer.uid]))
    return Unsettled(writes, others)


def _deletions(result: PassResult) -> tuple[dict[SyncerRef, str], dict[SyncerRef, Write]]:
    """Return why deletions wait, and the writes that end the others."""
    waiting: dict[SyncerRef, str] = {}
    finished: dict[SyncerRef, Write] = {}
    for ref, claim in sorted(result.desired.claims.items()):
        syncer = claim.syncer
        if CLEANUP_FINALIZER not in syncer.finalizers:
            continue
        if abandoned(syncer):
            left = _left_behind(claim, result)
            event = abandoned_event(syncer, left, result.expires_after)
            finished[ref] = Write(syncer=syncer, events=(event,))
        elif isinstance(claim, Deleting):
            why = waits_for(claim, result)
            if why is None:
                finished[ref] = Write(syncer=syncer)
            else:
                waiting[ref] = why
    return waiting, finished


def _left_behind(claim: Claim, result: PassResult) -> Collection[InstanceKey] | None:
    """Return the instances that an abandoned deletion may leave; None if Eureka could not be
    read."""
    if isinstance(result.registry, Unknown):
        return None
    observed = result.registry.data
    if isinstance(claim, Deleting):
        return still_there(claim, observed, result)
    return observed.keys_by_syncer.get(claim.syncer.ref, frozenset())


def settle(
    cluster: Cluster, clock: Clock, workers: Workers, deadline: Deadline, due: Sequence[Write]
) -> tuple[dict[SyncerRef, SyncerStatus], tuple[ClusterError, ...]]:
    """Write statuses and events, and end finished deletions, in turn. Return the statuses written,
    and the errors."""
    now = clock.now()

    def carry_out(write: Write) -> ClusterError | None:
        ref = write.syncer.ref
        if deadline.passed:
            undone = f"finalizer of {ref} was not removed"
            if write.status:
                undone = f"status of {ref} was not written"
            return ClusterUnavailable(f"the {undone}, because the pass had ended")
        # Events come first, because after a status is written the next pass does not see the
        # change. But a missing right to write events must not prevent the status, and no failed
        # event the end of a deletion.
        failed: ClusterError | None = None
        for event in write.events:
            record = partial(cluster.record_event, event, at=now)
            failed = failure(record) or failed
            if isinstance(failed, ClusterUnavailable) and write.status:
                return failed
        end = partial(cluster.remove_finalizer, write.syncer)
        if write.status:
            end = partial(cluster.write_status, write.syncer, write.status)
        return failure(end) or failed

    writes = in_turn(due, attrgetter("syncer.ref"))
    ended = workers.each(carry_out, writes)
    written: dict[SyncerRef, SyncerStatus] = {}
    errors: list[ClusterError] = []
    for write, error in zip(writes, ended, strict=True):
        if error:
            errors.append(error)
        elif write.status:
            written[write.syncer.ref] = write.status
    return written, tuple(errors)


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
    for syncer in deleting:
        if CLEANUP_FINALIZER not in syncer.finalizers or abandoned(syncer):
            continue
        listed = observed.listed.get(syncer.ref)
        if not listed and _age(syncer, observed) >= cache_seconds:
            return frozenset(syncer.ref for syncer in deleting)
    return frozenset()


def waits_for(claim: Deleting, result: PassResult) -> str | None:
    """Return why the finalizer has to stay, as a sentence; None if it may be removed. Then no
    server lists an instance of the syncer, every id that it could have registered answered a
    DELETE, and the deletion is older than the server's cache, which could hide a late registration.
    A server that could not be listed counts until its instances have expired. Where the instances
    stay, nothing is waited for."""
    if claim.instances_stay:
        return None
    if isinstance(result.registry, Unknown):
        return f"Eureka could not be read: {result.registry.message}"
    observed = result.registry.data
    left = still_there(claim, observed, result)
    if left:
        instances = counted(len(left), "instance")
        such = one_or_more(len(left), "", "such as ")
        why = _why_unfinished(left[0], claim, observed, result)
        return f"the deletion waits for {instances}, {such}{left[0]}: {why}"
    if observed.listed.get(claim.syncer.ref):
        return "Eureka's cached list still shows instances of this syncer"
    # The cache could hide a late registration.
    age = _age(claim.syncer, observed)
    if age < result.cache or result.unseen is None:
        old = f"{result.cache:g} s"
        return (
            f"Eureka's lists may be {old} old, so the finalizer stays until {old} after the "
            "deletion began"
        )
    # What only a server holds that could not be listed expires by itself.
    if result.unseen and age < result.expires_after:
        servers = " and ".join(result.unseen)
        end = f"{result.expires_after:g} s after the deletion began"
        may = f"may still hold an instance, which expires at the latest {end}"
        return f"{servers} could not be listed and {may}"
    return None


def _why_unfinished(
    key: InstanceKey, claim: Deleting, observed: Observed, result: PassResult
) -> str:
    """Return why a deletion waits for this instance."""
    why = _why_it_stays(key, observed, result)
    heir = result.desired.wanted_by.get(key)
    if heir:
        return f"syncer {heir} claims it, and could not take it over: {why}"
    return _heir_of_unlisted(key, claim, observed, result) or why


def _heir_of_unlisted(
    key: InstanceKey, claim: Deleting, observed: Observed, result: PassResult
) -> str | None:
    """Return why an id that the syncer could have registered was not cancelled, although no list
    shows it: a syncer that could not be read may have registered it by now."""
    heirs = result.desired.heirs
    if heirs is None or key in result.outcomes.by_key:
        return None
    if key in observed.ours or key in observed.unread:
        return None
    namespace = selected_namespace(claim.syncer)
    return heirs.of_id(key, namespace)


def _why_it_stays(key: InstanceKey, observed: Observed, result: PassResult) -> str:
    """Return the reason, which is the same in every pass, whether the instance's lease was due or
    not."""
    outcome = result.outcomes.by_key.get(key)
    if outcome and outcome.detail:
        return outcome.detail
    action = outcome.action if outcome else _planned(key, result.plan)
    if action is not None and not isinstance(action, Cancel):
        return action.why
    unread = observed.unread.get(key)
    if unread:
        return f"the instance could not be read again: {unread.why}"
    return "its removal was not tried"


def _planned(key: InstanceKey, plan: Plan) -> Action | None:
    for action in plan.actions:
        if action.key == key:
            return action
    return None


def still_there(claim: Deleting, observed: Observed, result: PassResult) -> list[InstanceKey]:
    """Return, sorted, the keys that the syncer may have registered, or that have its mark, without
    a successful DELETE."""
    marked = observed.keys_by_syncer.get(claim.syncer.ref, frozenset())
    left: list[InstanceKey] = []
    for key in sorted(claim.keys | marked):
        wanted = key in result.desired.wanted_by
        if not _gone(key, claim, observed, result.outcomes, wanted):
            left.append(key)
    return left


def _age(syncer: SyncerObject, observed: Observed) -> float:
    """Return the seconds from the deletion to the request for the list. A pass may have paused
    since the request."""
    assert syncer.deleted is not None  # a `Deleting` claim has a deletion time
    return observed.asked - syncer.deleted


def _gone(
    key: InstanceKey, claim: Deleting, observed: Observed, outcomes: Outcomes, wanted: bool
) -> bool:
    """Say whether nothing is left of the syncer under a key.

    | what the pass did with the key                       | it is gone                        |
    |------------------------------------------------------|-----------------------------------|
    | nothing, or it was renewed, and its mark names the   | no, whoever claims it: that one   |
    | syncer                                               | may be suspended, or held back    |
    | nothing, and it has another mark, or is not listed   | if it is wanted, or another       |
    |                                                      | owner's, and could be read        |
    | it was cancelled                                     | if that did not fail              |
    | its removal is held, or could not be decided         | no                                |
    | another syncer took it over                          | if that did not fail, or it has   |
    |                                                      | another mark                      |
    """
    outcome = outcomes.by_key.get(key)
    registered = observed.ours.get(key)
    syncer = claim.syncer.ref
    marked = registered is not None and syncer_of(registered) == syncer
    if outcome is None:
        if marked or key in observed.unread:
            return False
        # Nothing was due: another syncer's endpoint that was never ready, or another owner's
        # instance.
        return wanted or key in observed.others
    action = outcome.action
    if isinstance(action, Cancel):
        return not outcome.failed
    if action.syncer == syncer:
        return False
    if not marked:
        return True
    return not outcome.failed and not isinstance(action, Renew)
