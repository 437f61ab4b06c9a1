"""The status of each syncer after a pass: counts and conditions; and the events of conditions that
changed.

Pure: the same pass gives the same status, equal to the one in the cluster if nothing changed.

A server that fails may word its failure differently each time, with a request id or the time. To
copy each wording into every status would be a write per syncer and pass, to an API server that may
itself be failing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field

from eurekube_sync.apply.conditions import Aspect, conditions
from eurekube_sync.apply.tally import PassResult, Tally, tallies
from eurekube_sync.brake.approval import APPROVE_ANNOTATION, approve_command
from eurekube_sync.brake.confirm import mark_of
from eurekube_sync.brake.holds import Hold
from eurekube_sync.desired.claims import Claim, Deleting, Serving
from eurekube_sync.desired.spec import ABANDON_ANNOTATION
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus
from eurekube_sync.model.imports import IMPORT, ImportObject, ImportStatus
from eurekube_sync.model.kubernetes import (
    TROUBLES,
    Condition,
    ConditionStatus,
    EventRecord,
    SyncerObject,
    SyncerRef,
    SyncerStatus,
)
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sanitize import printable
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted
from eurekube_sync.observe.eureka import Observed

Resource = TypeVar("Resource", SyncerObject, ImportObject)
S = TypeVar("S", SyncerStatus, ImportStatus)
SYNCER = "EurekaSyncer"  # the kind
REWORDED_SECONDS = 300.0
"""A failure that continues is reported in its latest words once in each such period of the wall
clock ..."""
FIRST_PART_SECONDS = 60.0  # ... and by a new process only in the first part of the period.

GOOD_PASSES = 3
"""An outage is over after so many good passes in a row, so that one that comes and goes is told
once. Without a failure in its own memory, such as in its first pass, a process believes the
pass."""

MOST_GOOD_NEWS = 100
"""Events of one pass that are no warnings. When thousands of syncers register first, an event each
would be a third write of each syncer, and clients of the API are limited. The condition says the
same."""

_MOST_APPS = 10
_MOST_ERRORS = 5
_LONGEST_MESSAGE = 1000
"""The CRD allows 1,024 characters in an error. The command that releases removals comes last in its
condition."""
_STATUSES: Mapping[bool | None, ConditionStatus] = {
    True: ConditionStatus.TRUE,
    False: ConditionStatus.FALSE,
    None: ConditionStatus.UNKNOWN,
}
"""By the value of an `Aspect`."""
# Reasons that end by themselves.
_PATIENCE = frozenset({Reason.ADDRESS_PENDING, Reason.DELETING})
_OVER: Mapping[str, str] = {
    Reason.NOTHING_HELD: "no removal is held any more",
    Reason.NO_CONFLICT: "no other instance or syncer is in the way any more",
}
"""The messages of events whose conditions need none."""
_OTHERS_WORDS = frozenset({Reason.PARTLY_FAILED, Reason.LAST_INSTANCE_LOST})
"""Reasons whose message may end in the words of a server."""


class Recoveries(Struct):
    """The outages that this process saw, until each has stayed away."""

    # Good passes in a row, before this one.
    good: Mapping[SyncerRef, int] = field(default_factory=dict)
    _now: dict[SyncerRef, int] = field(default_factory=dict)  # the same with this pass

    def settled(self, claim: Claim, status: SyncerStatus) -> SyncerStatus:
        """Return the status, which tells of an outage until it has stayed away. Only its conditions
        and their errors are from before; all numbers are of this pass. Asked twice in a pass, it
        gives the same."""
        ref = claim.syncer.ref
        if _in_outage(status):
            self._now[ref] = 0
            return status
        before = claim.syncer.status
        if ref not in self.good or before is None or not isinstance(claim, Serving):
            return status
        # A person who changed the spec sees at once what came of it.
        changed = before.observed_generation != status.observed_generation
        good = self.good[ref] + 1
        if changed or good >= GOOD_PASSES or not _in_outage(before):
            return status
        self._now[ref] = good
        return _still_in_outage(claim, before, status)

    def end_of_pass(self) -> None:
        """Count this pass."""
        self.good = self._now
        self._now = {}


Basis: TypeAlias = tuple[Claim, Mapping[InstanceKey, InstanceStatus]]
"""The claim, and the registered instances."""


class EarlierStatuses(Struct):
    """The syncers whose status the last pass computed, and that may not have changed since. Each
    pass changes it."""

    steady: Mapping[SyncerRef, Basis] = field(default_factory=dict)
    """The basis of each status that is in the cluster as computed."""


def statuses(
    result: PassResult,
    waiting: Mapping[SyncerRef, str],
    *,
    earlier: EarlierStatuses | None = None,
    recoveries: Recoveries | None = None,
) -> dict[SyncerRef, SyncerStatus]:
    """Return the status of every syncer. `waiting` says why a deletion waits; `earlier` keeps the
    previous pass's result, `recoveries` the outages."""
    earlier = earlier or EarlierStatuses()
    recoveries = recoveries or Recoveries()
    tallied = tallies(result)
    registry = result.registry
    known = isinstance(registry, Complete) and registry.data.outdated is None
    release = ""
    if result.held is not None:
        release = approve_command(result.held.plan_id, result.options)
    due: dict[SyncerRef, SyncerStatus] = {}
    steady: dict[SyncerRef, Basis] = {}
    for ref, claim in result.desired.claims.items():
        tally = tallied[ref]
        basis = (claim, tally.registered)
        calm = known and not tally.troubled and ref not in result.lost
        before = claim.syncer.status
        if before is not None and calm and earlier.steady.get(ref) == basis:
            # Nearly always: the same basis gives the same status.
            steady[ref] = basis
            due[ref] = before
            continue
        status = _status(claim, tally, result, release, waiting.get(ref, ""))
        status = recoveries.settled(claim, status)
        due[ref] = status
        if calm and not _in_outage(status) and _is_steady(claim, status):
            steady[ref] = basis
    earlier.steady = steady
    return due


def _in_outage(status: SyncerStatus) -> bool:
    """Say whether a source could not be read, or calls failed."""
    synced = status.condition("Synced")
    unread = synced is not None and synced.status is ConditionStatus.UNKNOWN
    failed = synced is not None and synced.reason == Reason.PARTLY_FAILED
    return unread or failed


def _still_in_outage(claim: Serving, before: SyncerStatus, after: SyncerStatus) -> SyncerStatus:
    """Return the status of a good pass with the conditions that tell of the outage."""
    synced = before.condition("Synced")
    assert synced is not None  # it tells of the outage
    kept = {"Synced": synced}
    ready = before.condition("Ready")
    if ready is not None and ready.reason == synced.reason:
        kept["Ready"] = ready
    # A gate opens if Eureka could not be read for some time, and that time begins anew.
    unknown_since = before.eureka_unknown_since
    if claim.spec.readiness_gate:
        unknown_since = None
    errors = after.errors
    if synced.reason == Reason.PARTLY_FAILED:
        errors = before.errors
    shown = [kept.get(condition.type, condition) for condition in after.conditions]
    return replace(
        after, conditions=tuple(shown), errors=errors, eureka_unknown_since=unknown_since
    )


def _is_steady(claim: Claim, status: SyncerStatus) -> bool:
    """Say whether the status stays the same while the claim and the registered instances do. It
    contains no time then, and no kept instances, and is already written."""
    if not isinstance(claim, Serving) or claim.keeps_any:
        return False
    timeless = APPROVE_ANNOTATION not in claim.syncer.annotations
    return timeless and status == claim.syncer.status


def flips(
    syncer: SyncerObject | ImportObject, status: SyncerStatus | ImportStatus
) -> tuple[EventRecord, ...]:
    """Return an event for each condition that is new, changed its value, holds removals for another
    reason, or says that the last instance of an app is lost. A new condition without trouble has no
    event, and neither has a Ready with the reason of another event."""
    earlier = syncer.status
    news: list[Condition] = []
    for condition in status.conditions:
        before = earlier.condition(condition.type) if earlier else None
        if _is_news(condition, before):
            news.append(condition)
    told = {condition.reason for condition in news if condition.type != "Ready"}
    events: list[EventRecord] = []
    for condition in news:
        if condition.type != "Ready" or condition.reason not in told:
            events.append(_event(syncer, condition))
    return tuple(events)


def _is_news(condition: Condition, before: Condition | None) -> bool:
    """Say whether a condition has an event.

    | the condition                                   | it has an event                  |
    |-------------------------------------------------|----------------------------------|
    | Synced                                          | never: the others say it as well |
    | is new                                          | unless it is a trouble's absence |
    | has another value than before                   | yes                              |
    | RemovalHeld, or the last instance of an app was | if its reason is another one     |
    | lost, both for some time                        |                                  |
    """
    if condition.type == "Synced":
        return False
    if before is None:
        return condition.type not in TROUBLES or condition.status is not ConditionStatus.FALSE
    if condition.status is not before.status:
        return True
    held = condition.type == "RemovalHeld" and condition.status is ConditionStatus.TRUE
    # An app may go long after its syncer was ready.
    lost = condition.reason == Reason.LAST_INSTANCE_LOST
    return (held or lost) and condition.reason != before.reason


def _event(syncer: SyncerObject | ImportObject, condition: Condition) -> EventRecord:
    what = condition.status.value
    if condition.reason == Reason.LAST_INSTANCE_LOST:
        what = condition.reason
    return EventRecord(
        syncer=syncer.ref,
        uid=syncer.uid,
        warning=condition.bad and condition.reason not in _PATIENCE,
        reason=condition.reason,
        message=condition.message or _OVER.get(condition.reason, ""),
        key=f"{condition.type}={what}",
        kind=IMPORT if isinstance(syncer, ImportObject) else SYNCER,
    )


def events_of(
    changed: Iterable[tuple[Resource, S]],
) -> dict[str, list[EventRecord]]:
    """Return the events of each syncer or import, by its UID: all warnings, and a limited number of
    others."""
    places = MOST_GOOD_NEWS
    events: dict[str, list[EventRecord]] = {}
    for syncer, status in changed:
        told: list[EventRecord] = []
        for event in flips(syncer, status):
            if event.warning:
                told.append(event)
            elif places:
                places -= 1
                told.append(event)
        events[syncer.uid] = told
    return events


def abandoned_event(
    syncer: SyncerObject, left: Collection[InstanceKey] | None, expires_after: float
) -> EventRecord:
    """Return the event about what an abandoned deletion leaves; `left` None: Eureka could not be
    read."""
    end = counted(expires_after / 60, "minute")
    fate = f"If no pass cancels an instance, it expires {end} after its last renewal"
    if left is None:
        rest = f"Eureka could not be read. {fate}"
    elif left:
        instances = counted(len(left), "instance")
        rest = f"{instances} may still be registered. {fate}"
    else:
        rest = "Eureka holds no instance of the syncer"
    return EventRecord(
        syncer=syncer.ref,
        uid=syncer.uid,
        warning=left is None or bool(left),
        reason=Reason.ABANDONED,
        message=f"the annotation {ABANDON_ANNOTATION} ended the deletion early. {rest}",
        key="Abandoned",
    )


def _status(
    claim: Claim, tally: Tally, result: PassResult, release: str, waiting: str
) -> SyncerStatus:
    now = int(result.now)
    before = claim.syncer.status or SyncerStatus(observed_generation=0)
    mark, seen = _unconfirmed(tally, before, now)
    if isinstance(result.registry, Unknown):
        counts = _counts_before(claim, before)
        unknown_since = unknown_from(before, now)
    else:
        counts = _counts(claim, tally, result.registry.data, before)
        unknown_since = None
        if result.desired.is_unread(claim.syncer.ref):
            # This pass saw nothing of it, and so forgets nothing. (One that could not read
            # Eureka's list forgets all.)
            mark, seen = before.unconfirmed_removal, before.unconfirmed_since
    desired = counts.desired
    ready_up = counts.ready_up
    generation = claim.syncer.generation
    judged = conditions(claim, tally, result, release, waiting, desired, ready_up)
    shown = []
    for type_, aspect in judged.items():
        old = before.condition(type_)
        shown.append(as_condition(type_, aspect, old, generation, now))
    # A syncer that is not served keeps its names.
    named = claim if isinstance(claim, Serving) else before
    apps = named.apps
    errors = [*tally.conflicts, *tally.duplicates, *tally.failures]
    return SyncerStatus(
        observed_generation=generation,
        conditions=tuple(shown),
        ready=f"{ready_up}/{desired}",
        desired=desired,
        registered=counts.registered,
        up=counts.up,
        down=counts.down,
        app_name=apps[0] if apps else "",
        vip_address=named.vip_address,
        apps=tuple(apps[:_MOST_APPS]),
        ports=named.ports,
        errors=tuple(short(error) for error in errors[:_MOST_ERRORS]),
        unconfirmed_removal=mark,
        unconfirmed_since=seen,
        eureka_unknown_since=unknown_since,
    )


def unknown_from(before: SyncerStatus | ImportStatus, now: int) -> int:
    """Return since when Eureka could not be read, in Unix seconds. A time in the future, by another
    machine's clock, is now."""
    since = before.eureka_unknown_since
    if since is None:
        return now
    return min(since, now)


class _Counts(NamedTuple):
    """How many instances a syncer has, and should have."""

    desired: int
    registered: int
    up: int
    down: int
    ready_up: int  # of the desired ones


def _counts_before(claim: Claim, before: SyncerStatus) -> _Counts:
    """Return the counts while Eureka cannot be read: those before are the best that is known."""
    desired = 0 if isinstance(claim, Deleting) else before.desired
    ready_up = before.up
    if isinstance(claim, Serving):
        # How many a limit lets in depends on what is in Eureka.
        if claim.spec.limit is None or claim.spec.suspend:
            desired = max(len(claim.wanted), desired if claim.incomplete else 0)
        ready_up = min(before.up, desired)
    return _Counts(
        desired=desired,
        registered=before.registered,
        up=before.up,
        down=before.down,
        ready_up=ready_up,
    )


def _counts(claim: Claim, tally: Tally, observed: Observed, before: SyncerStatus) -> _Counts:
    registered = len(tally.registered)
    up = tally.count(InstanceStatus.UP)
    desired = 0 if isinstance(claim, Deleting) else before.desired
    ready_up = up
    if isinstance(claim, Serving):
        meant = {*claim.wanted, *_kept(claim, tally, observed)}
        # Held instances stay, so they count like wanted ones.
        for removal in tally.held:
            meant.add(removal.key)
        desired = len(meant)
        ready_up = 0
        for key in meant:
            if tally.registered.get(key) is InstanceStatus.UP:
                ready_up += 1
    return _Counts(
        desired=desired, registered=registered, up=up, down=registered - up, ready_up=ready_up
    )


def _unconfirmed(tally: Tally, before: SyncerStatus, now: int) -> tuple[str, int | None]:
    """Return the mark of the removals that await confirmation, or that were confirmed and failed,
    and when they were first seen."""
    awaited = tally.awaited
    if awaited is not None:
        return awaited.mark, awaited_since(awaited, before, now)
    if tally.confirmed_failed:
        # As dead, because that is confirmed for each kind of wait.
        return mark_of(tally.confirmed_failed, dead=True), _known_since(before, now)
    return "", None


def awaited_since(awaited: Hold, before: SyncerStatus | ImportStatus, now: int) -> int:
    """Return when removals that await confirmation were first seen. For other removals the wait
    begins anew."""
    if awaited.first or before.unconfirmed_removal != awaited.mark:
        return now
    return _known_since(before, now)


def _known_since(before: SyncerStatus | ImportStatus, now: int) -> int:
    """Return the time in the status. One in the future, by another machine's clock, is now."""
    since = before.unconfirmed_since
    if since is None:
        return now
    return min(since, now)


def _kept(claim: Serving, tally: Tally, observed: Observed) -> Iterator[InstanceKey]:
    """Yield the instances that are kept although they are not wanted now."""
    if not claim.keeps_any:
        return
    for key in tally.registered:
        instance = observed.ours.get(key)
        if instance is not None and not claim.wanted_at(key) and claim.keeps(instance):
            yield key


def as_condition(
    type_: str, aspect: Aspect, old: Condition | None, generation: int, now: int
) -> Condition:
    """Return the condition of the spec of this generation; `old` is that of before, `now` in Unix
    seconds."""
    status = _STATUSES[aspect.value]
    transition = now
    if old is not None and old.status is status:
        transition = old.last_transition
    return Condition(
        type=type_,
        status=status,
        reason=str(aspect.reason),
        message=short(aspect.message),
        observed_generation=generation,
        last_transition=transition,
    )


def short(message: str) -> str:
    """Return a message as the CRD allows it."""
    message = printable(message[: _LONGEST_MESSAGE + 1])  # of a large selector it is long
    if len(message) <= _LONGEST_MESSAGE:
        return message
    return f"{message[: _LONGEST_MESSAGE - 3]}..."


def worth_writing(before: S | None, after: S, *, words: bool) -> bool:
    """Say whether a status says something new. Another wording of a failure that continues counts
    only with `words`; the text about held removals always counts, because it names the command that
    releases them."""
    if before == after:
        return False
    if before is None or words:
        return True
    return _without_words(before) != _without_words(after)


def _without_words(status: S) -> S:
    """Return the status without the messages that may be a server's own words."""
    conditions: list[Condition] = []
    for condition in status.conditions:
        unknown = condition.status is ConditionStatus.UNKNOWN
        if unknown or condition.reason in _OTHERS_WORDS:
            condition = replace(condition, message="")
        conditions.append(condition)
    if conditions == list(status.conditions):
        return status
    errors = ("",) * len(status.errors)
    return replace(status, conditions=tuple(conditions), errors=errors)
