"""What a pass tells each syncer: counts and conditions, and the events of those that flipped.

Pure: the same pass gives the same status, and one that changes nothing equals what stands already, so that it is not
written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from eurekube_sync.brake import Held, Hold, condition_message
from eurekube_sync.brake.approval import APPROVE_ANNOTATION, annotated, approve_command
from eurekube_sync.desired.claims import Claim, Deleting, Desired, Frozen, Serving
from eurekube_sync.desired.policy import Policy
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, ignored_value
from eurekube_sync.desired.verdicts import Leaving, OverLimit
from eurekube_sync.model.actions import Cancel, Withdrawal
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.kubernetes import (
    Condition,
    ConditionStatus,
    EventRecord,
    SyncerObject,
    SyncerRef,
    SyncerStatus,
)
from eurekube_sync.model.outcomes import Outcomes, Result
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan import Obstacle, Plan

REGISTRY_UNKNOWN = "RegistryUnknown"
"""The reason of Synced while Eureka cannot be read."""
PARTLY_FAILED = "PartlyFailed"
"""The reason of Synced while calls for the syncer fail."""
_SUSPENDED = "Suspended"
_UNCLEAR = "EndpointUnclear"
"""Too little is known of an endpoint to say what should stand."""
_DIFFERS = "Differs"
"""Eureka and the cluster are not equal, and nobody has to do anything: a policy, or a person's override."""
_BESIDE_READY = frozenset({_SUSPENDED, _UNCLEAR, _DIFFERS})
"""Reasons of Synced that do not keep a syncer from being Ready."""
_MOST_APPS = 10
_MOST_ERRORS = 5
_LONGEST_MESSAGE = 500


@dataclass(slots=True)
class _Tally:
    """What a pass gathered about one syncer."""

    standing: dict[InstanceKey, InstanceStatus] = field(default_factory=dict)
    conflicts: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    unreached: Counter[Cause] = field(default_factory=Counter)
    """Calls that failed with the whole server: counted, for their texts and their number differ from pass to pass."""
    unread: int = 0
    held: list[Withdrawal] = field(default_factory=list)
    hold: Hold | None = None
    """The first that has some of its removals."""
    awaited: Hold | None = None
    """The first of those that await their confirmation."""

    def count(self, status: InstanceStatus) -> int:
        return sum(one is status for one in self.standing.values())


def statuses(
    desired: Desired,
    registry: Complete[Observed] | Unknown,
    plan: Plan,
    held: Held | None,
    outcomes: Outcomes,
    waiting: Mapping[SyncerRef, str],
    *,
    options: Sequence[str] = (),
    now: float,
) -> dict[SyncerRef, SyncerStatus]:
    """The status of every syncer after the pass. `waiting` says why a deletion has to wait, `options` what a
    command to paste has to say of its scope; `now` in Unix seconds."""
    tallies = _tallies(desired, registry, plan, held, outcomes)
    release = approve_command(held.plan_id, options) if held else ""
    return {
        ref: _status(claim, tallies.get(ref, _Tally()), registry, release, waiting.get(ref, ""), int(now))
        for ref, claim in desired.claims.items()
    }


def flips(claim: Claim, status: SyncerStatus) -> tuple[EventRecord, ...]:
    """An event for each condition that is new or changed its value, or holds removals for another reason; conditions
    that begin in peace say nothing, and neither does Ready where it tells the trouble of another event."""
    syncer = claim.syncer
    events = []
    for condition in status.conditions:
        before = syncer.status.condition(condition.type) if syncer.status else None
        value = before.status if before else (ConditionStatus.FALSE if condition.type in _TROUBLES else None)
        another = before is not None and condition.reason != before.reason and _is_held(condition)
        if (condition.status is value and not another) or condition.type == "Synced":
            continue
        events.append(
            EventRecord(
                syncer=syncer.ref,
                uid=syncer.uid,
                warning=(condition.status is ConditionStatus.TRUE) is (condition.type in _TROUBLES)
                and condition.reason not in _PATIENCE,
                reason=condition.reason,
                message=condition.message,
                key=f"{condition.type}={condition.status.value}",
            )
        )
    troubles = {event.reason for event in events if not event.key.startswith("Ready")}
    return tuple(event for event in events if not (event.key.startswith("Ready") and event.reason in troubles))


def let_go_event(syncer: SyncerObject, left: Collection[InstanceKey] | None, lapse_seconds: float) -> EventRecord:
    """What an abandoned deletion leaves behind; `left` None: Eureka could not be read."""
    may = None if left is None else f"{counted(len(left), 'instance')} may still be registered"
    fate = (
        f"An instance that no later pass cancels expires {counted(lapse_seconds / 60, 'minute')} after its last renewal"
    )
    known = f"{may or 'Eureka could not be read'}. {fate}"
    rest = known if left or left is None else "no instance of it is left in Eureka"
    return EventRecord(
        syncer=syncer.ref,
        uid=syncer.uid,
        warning=left is None or bool(left),
        reason="Abandoned",
        message=f"deleted without cleaning up, by the annotation {ABANDON_ANNOTATION}: {rest}",
        key="Abandoned",
    )


_PATIENCE = frozenset({"AddressPending"})
"""Reasons that nobody has to see to: time will."""
_TROUBLES = frozenset({"Conflict", "RemovalHeld"})


def _is_held(condition: Condition) -> bool:
    return condition.type == "RemovalHeld" and condition.status is ConditionStatus.TRUE


def _tallies(
    desired: Desired, registry: Complete[Observed] | Unknown, plan: Plan, held: Held | None, outcomes: Outcomes
) -> dict[SyncerRef, _Tally]:
    tallies: dict[SyncerRef, _Tally] = {ref: _Tally() for ref in desired.claims}

    def of(syncer: SyncerRef | None) -> _Tally:
        return tallies.setdefault(syncer, _Tally()) if syncer else _Tally()

    standing = registry.data.ours if isinstance(registry, Complete) else {}
    for key, instance in standing.items():
        if key not in outcomes.by_key:
            of(desired.wanted_by.get(key) or syncer_of(instance)).standing[key] = instance.status
    for key, outcome in sorted(outcomes.by_key.items()):
        tally = of(outcome.action.syncer)
        if outcome.status is not None:
            tally.standing[key] = outcome.status
        if outcome.result is Result.CONFLICT:
            tally.conflicts.append(f"{key}: {outcome.detail}")
        elif outcome.cause or outcome.result is Result.NOT_TRIED:
            tally.unreached[outcome.cause or Cause.UNAVAILABLE] += 1
        elif outcome.failed:
            tally.failures.append(f"{key}: {outcome.detail}")
    for blocked in plan.blocked:
        if blocked.obstacle is Obstacle.DUPLICATE:
            of(blocked.syncer).duplicates.append(f"{blocked.key}: {blocked.why}")
        elif blocked.obstacle is Obstacle.TAKEN:
            of(blocked.syncer).conflicts.append(f"{blocked.key}: {blocked.why}")
        else:
            of(blocked.syncer).unread += 1
    for hold in held.holds if held else ():
        for withdrawal in hold.withdrawals:
            tally = of(withdrawal.syncer)
            tally.held.append(withdrawal)
            tally.hold = tally.hold or hold
            tally.awaited = tally.awaited or (hold if hold.mark else None)
    for claim in desired.claims.values():
        if isinstance(claim, Serving):
            of(claim.syncer.ref).conflicts.extend(f"{key}: {rival}" for key, rival in claim.rivals.items())
    for tally in tallies.values():
        for cause, count in sorted(tally.unreached.items()):
            were = one_or_more(count, "was", "were")
            tally.failures.append(f"{count} of its calls to Eureka failed or {were} not tried: {cause}")
        if tally.unread:
            tally.failures.append(f"{tally.unread} of its instances could not be read again")
    return tallies


def _status(
    claim: Claim,
    tally: _Tally,
    registry: Complete[Observed] | Unknown,
    release: str,
    waiting: str,
    now: int,
) -> SyncerStatus:
    before = claim.syncer.status or SyncerStatus(observed_generation=0)
    wanted = claim.wanted if isinstance(claim, Serving) else {}
    desired = 0 if isinstance(claim, Deleting) else before.desired
    # What stood is the best that is known.
    if isinstance(registry, Unknown):
        registered, up, down = before.registered, before.up, before.down
        if isinstance(claim, Serving) and claim.conduct.lets_all_in:  # else it depends on what stands
            desired = max(len(wanted), desired if claim.incomplete else 0)
        ready_up = min(up, desired)
    else:
        registered, up = len(tally.standing), tally.count(InstanceStatus.UP)
        down = registered - up
        meant = [*wanted, *_kept(claim, tally, registry.data)] if isinstance(claim, Serving) else []
        desired = len(meant) if isinstance(claim, Serving) else desired
        ready_up = sum(tally.standing.get(key) is InstanceStatus.UP for key in meant)
    serving = isinstance(claim, Serving)
    apps = claim.apps if isinstance(claim, Serving) else before.apps
    trouble = (*tally.conflicts, *tally.duplicates, *tally.failures)
    removal_held = _removal_held(claim, tally, release, now)
    mark, seen = _unconfirmed(tally.awaited, before, now)
    judged = _conditions(claim, tally, registry, removal_held, waiting, desired, ready_up if serving else up)
    return SyncerStatus(
        observed_generation=claim.syncer.generation,
        conditions=tuple(_condition(claim, verdict, before, now) for verdict in judged),
        ready=f"{ready_up if serving else up}/{desired}",
        desired=desired,
        registered=registered,
        up=up,
        down=down,
        app_name=apps[0] if apps else "",
        vip_address=claim.vip_address if isinstance(claim, Serving) else before.vip_address,
        apps=tuple(apps[:_MOST_APPS]),
        errors=tuple(_short(error) for error in trouble[:_MOST_ERRORS]),
        unconfirmed_removal=mark,
        unconfirmed_since=seen,
        eureka_unknown_since=_unknown_since(before, registry, now),
    )


def _unconfirmed(awaited: Hold | None, before: SyncerStatus, now: int) -> tuple[str, int | None]:
    """The mark of the removal that waits for a second pass, and when it was first seen. Another removal begins its
    wait anew, and so does one whose time lies ahead, by another machine's clock: it would wait too long."""
    if awaited is None:
        return "", None
    since = before.unconfirmed_since
    same = since is not None and since <= now and before.unconfirmed_removal == awaited.mark and not awaited.first
    return awaited.mark, since if same else now


def _unknown_since(before: SyncerStatus, registry: Complete[Observed] | Unknown, now: int) -> int | None:
    """Since when Eureka could not be read, in Unix seconds; None where it was read now."""
    if isinstance(registry, Complete):
        return None
    since = before.eureka_unknown_since
    return now if since is None else min(since, now)


def _kept(claim: Serving, tally: _Tally, observed: Observed) -> Iterator[InstanceKey]:
    """What stands and is meant to, although nobody can tell this time that it is wanted."""
    if not claim.doubts:
        return
    for key in tally.standing:
        instance = observed.ours.get(key) if not claim.wanted_at(key) else None
        if instance is not None and claim.keeps(instance):
            yield key


@dataclass(frozen=True, slots=True)
class _Verdict:
    type: str
    value: bool | None
    reason: str
    message: str


def _conditions(
    claim: Claim,
    tally: _Tally,
    registry: Complete[Observed] | Unknown,
    removal_held: _Verdict,
    waiting: str,
    desired: int,
    up: int,
) -> Sequence[_Verdict]:
    synced = _telling(_synced(claim, tally, registry, waiting), claim.syncer)
    if tally.conflicts:
        conflict = _Verdict("Conflict", True, "Conflict", _sample(tally.conflicts))
    elif tally.duplicates:
        conflict = _Verdict("Conflict", True, "DuplicateRegistration", _sample(tally.duplicates))
    else:
        conflict = _Verdict("Conflict", False, "NoConflict", "")
    ready = _ready(claim, tally, (synced, conflict, removal_held), desired=desired, up=up)
    return (_telling(ready, claim.syncer), synced, conflict, removal_held)


def _telling(verdict: _Verdict, syncer: SyncerObject) -> _Verdict:
    """The same, with what is wrong with an annotation of the syncer's own."""
    ignored = ignored_value(syncer.annotations, ABANDON_ANNOTATION)
    if not ignored or ignored in verdict.message:
        return verdict
    return replace(verdict, message=f"{verdict.message}; {ignored}")


def _removal_held(claim: Claim, tally: _Tally, release: str, now: float) -> _Verdict:
    """`release` is the command that releases all that is held."""
    freed = annotated(claim.syncer, now)
    refused = f"annotation {APPROVE_ANNOTATION}: {freed.why}" if freed and not freed.released else ""
    if tally.hold is None:
        return _Verdict("RemovalHeld", False, "NothingHeld", refused)
    message = condition_message(tally.hold, len(tally.held), release)
    message = f"{message}; {refused}" if refused else message
    return _Verdict("RemovalHeld", True, tally.hold.reason.value, message)


def _synced(claim: Claim, tally: _Tally, registry: Complete[Observed] | Unknown, waiting: str) -> _Verdict:
    match claim:
        case Deleting():
            return _Verdict("Synced", False, "Deleting", waiting or _left_over(tally, registry))
        case Frozen():
            return _Verdict("Synced", None if claim.unknown else False, claim.reason, claim.message)
        case Serving() if isinstance(registry, Unknown):
            return _Verdict("Synced", None, REGISTRY_UNKNOWN, registry.message)
        case Serving() if tally.failures:
            return _Verdict("Synced", False, PARTLY_FAILED, _sample(tally.failures))
        case Serving() if tally.held:
            return _Verdict("Synced", False, "RemovalsHeld", _still_held(tally.held))
        case Serving() if claim.conduct.suspend:
            return _Verdict("Synced", False, _SUSPENDED, "its instances are renewed, and nothing else is changed")
        case Serving() if claim.incomplete:
            first = claim.incomplete[0]
            message = f"{_sample([one.message for one in claim.incomplete])}; registered instances are renewed"
            return _Verdict("Synced", None if first.unknown else False, first.reason, message)
        case Serving() if tally.conflicts:
            return _Verdict("Synced", False, "Conflict", _sample(tally.conflicts))
        case Serving() if tally.duplicates:
            return _Verdict("Synced", False, "DuplicateRegistration", _sample(tally.duplicates))
        case Serving() if unclear := claim.unclear:
            return _Verdict("Synced", False, _UNCLEAR, f"{_sample(unclear)}; registered instances are renewed")
        case Serving() if differences := _differences(claim, tally):
            return _Verdict("Synced", False, _DIFFERS, "; ".join(differences))
        case Serving():
            return _Verdict("Synced", True, "InSync", "Eureka holds what the cluster says")
        case _:  # pragma: no cover
            assert_never(claim)


def _left_over(tally: _Tally, registry: Complete[Observed] | Unknown) -> str:
    """What a deletion that waits for nothing of ours leaves behind."""
    if isinstance(registry, Unknown):
        return f"it is not known whether its instances are gone: {registry.message}"
    standing = len(tally.standing)
    return f"Eureka still holds {counted(standing, 'instance')} of it" if standing else "its instances are gone"


def _still_held(withdrawals: Collection[Withdrawal]) -> str:
    gone = sum(isinstance(one, Cancel) for one in withdrawals)
    down = len(withdrawals) - gone
    parts = [f"holds {counted(gone, 'instance')} that the cluster no longer has"] if gone else []
    parts += [f"shows {counted(down, 'instance')} UP that should be DOWN"] if down else []
    return f"Eureka still {' and '.join(parts)}"


def _differences(claim: Serving, tally: _Tally) -> list[str]:
    """What sets Eureka apart from the cluster, a phrase each; empty where they are equal. An instance that was never
    ready is not registered, and nobody misses it."""
    standing, wanted = tally.standing, {key: one.instance.status for key, one in claim.wanted.items()}
    put_out = sum(standing.get(key) is InstanceStatus.OUT_OF_SERVICE for key in wanted)
    lacking = sum(status is InstanceStatus.UP and key not in standing for key, status in wanted.items())
    others = (InstanceStatus.OUT_OF_SERVICE, None)
    wrong = sum(standing.get(key) not in (status, *others) for key, status in wanted.items())
    beyond = sum(key not in wanted for key in standing)
    policy = "" if claim.conduct.policy is Policy.SYNC else f" (policy {claim.conduct.policy})"
    found = [
        (lacking, "not registered"),
        (wrong, "with another status than the cluster says"),
        (put_out, "set OUT_OF_SERVICE by hand"),
        (beyond, f"that the cluster no longer has{policy}"),
    ]
    return [f"{counted(number, 'instance')} {what}" for number, what in found if number]


def _ready(
    claim: Claim, tally: _Tally, others: tuple[_Verdict, _Verdict, _Verdict], *, desired: int, up: int
) -> _Verdict:
    synced, conflict, removal_held = others
    if not isinstance(claim, Serving):
        return _Verdict("Ready", synced.value, synced.reason, synced.message)
    for trouble in (conflict, removal_held):
        if trouble.value:
            return _Verdict("Ready", False, trouble.reason, trouble.message)
    if synced.value is not True and synced.reason not in _BESIDE_READY:
        return _Verdict("Ready", synced.value, synced.reason, synced.message)
    if not desired and claim.of(OverLimit):
        return _Verdict("Ready", False, "Detached", "; ".join(claim.notes))
    if not desired:
        return _Verdict("Ready", False, *nothing_wanted(claim))
    names = ", ".join(claim.apps[:3])
    out = tally.count(InstanceStatus.OUT_OF_SERVICE)
    drained = sum(wanted.drained for wanted in claim.wanted.values())
    notes = [f"{len(claim.unready)} not ready: {_sample(sorted(claim.unready.values()))}"] if claim.unready else []
    notes += [f"{drained} drained"] if drained else []
    notes += [f"{out} set OUT_OF_SERVICE by hand"] if out else []
    message = "; ".join([f"{up} of {desired} UP as {names}", *claim.notes, *notes, *claim.warnings])
    reason = synced.reason if up or synced.reason == _SUSPENDED else "NoneUp"
    return _Verdict("Ready", bool(up), reason, message)


def nothing_wanted(claim: Serving) -> tuple[str, str]:
    """Why there is nothing to register, as a machine word and in words."""
    names = f"{one_or_more(len(claim.services), 'Service', 'Services')} {', '.join(claim.services[:3])}"
    names += f" and {len(claim.services) - 3} more" if len(claim.services) > 3 else ""
    if claim.unready:
        why = _sample(sorted(claim.unready.values()))
        return "NotReady", f"{len(claim.unready)} of {counted(claim.endpoints, 'endpoint')} not ready: {why}"
    if claim.of(Leaving):
        return "NoEndpoints", f"all endpoints of {names} terminate"
    return "NoEndpoints", f"{names} {one_or_more(len(claim.services), 'has', 'have')} no endpoints"


def _condition(claim: Claim, verdict: _Verdict, before: SyncerStatus, now: int) -> Condition:
    status = {True: ConditionStatus.TRUE, False: ConditionStatus.FALSE, None: ConditionStatus.UNKNOWN}[verdict.value]
    old = before.condition(verdict.type)
    return Condition(
        type=verdict.type,
        status=status,
        reason=verdict.reason,
        message=_short(verdict.message),
        observed_generation=claim.syncer.generation,
        last_transition=old.last_transition if old is not None and old.status is status else now,
    )


def _sample(troubles: Sequence[str]) -> str:
    more = f" (and {len(troubles) - 1} more)" if len(troubles) > 1 else ""
    return f"{troubles[0]}{more}"


def _short(message: str) -> str:
    message = printable(message)
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 3]}..."
