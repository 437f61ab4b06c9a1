"""The four conditions of a syncer after a pass: views of its problems. Pure.

| condition   | shows                                                               | without one       |
|-------------|---------------------------------------------------------------------|-------------------|
| Synced      | the first problem                                                   | InSync            |
| Ready       | a conflict or a hold, else the first problem that allows no Ready   | how many are UP   |
| Conflict    | the first problem with another instance or syncer                   | NoConflict        |
| RemovalHeld | the removals that are held                                          | NothingHeld       |
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from eurekube_sync.apply.lost import Lost
from eurekube_sync.apply.tally import PassResult, Tally
from eurekube_sync.brake.approval import APPROVE_ANNOTATION, annotation_refused
from eurekube_sync.brake.holds import HOLD_REASONS, Held, condition_message
from eurekube_sync.desired.claims import Claim, Deleting, Leaving, NotServed, OverLimit, Serving
from eurekube_sync.desired.scope import Policy, Scope
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, ignored_value
from eurekube_sync.model.docs import page
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.imports import ImportObject
from eurekube_sync.model.kubernetes import ConditionStatus, CustomStatus, SyncerObject
from eurekube_sync.model.problems import Problem
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.text import and_more, counted, one_or_more, some_of
from eurekube_sync.observe.eureka import Observed

OLD_LIST = (
    "Eureka's list does not show what was registered before: a cache in front of Eureka answers, "
    "or the server's own "
    "cache stands still"
)
_BESIDE_READY = frozenset(
    {Reason.SUSPENDED, Reason.ENDPOINT_UNCLEAR, Reason.LIST_OUTDATED, Reason.DIFFERS}
)
"""With these problems a syncer may be Ready."""
_CONFLICTS = frozenset({Reason.CONFLICT, Reason.DUPLICATE_REGISTRATION})


class Aspect(NamedTuple):
    """A condition without its type and times; `value` None is Unknown."""

    value: bool | None
    reason: str
    message: str


def conditions(
    claim: Claim,
    tally: Tally,
    result: PassResult,
    release: str,
    waiting: str,
    desired: int,
    up: int,
) -> Mapping[str, Aspect]:
    """Return all four conditions by type. `release` is the command that releases held removals,
    `waiting` says why a deletion waits. Ready and Synced also report an annotation that is
    ignored."""
    syncer = claim.syncer
    registry = result.registry
    problems = [
        *_of_claim(claim, tally, registry, waiting),
        *_of_calls(claim, tally, registry),
        *_of_holds(claim, tally, result.held, release),
        *_of_others(tally),
        *_of_sources(claim),
        *_of_differences(claim, tally, registry),
    ]
    in_sync = Aspect(True, Reason.IN_SYNC, "Eureka holds what the cluster says")
    synced = first_of(problems) or in_sync
    ready = synced
    if isinstance(claim, Serving):
        ready = _summary(problems) or _counted(claim, tally, synced, desired=desired, up=up)
    lost = result.lost.get(syncer.ref)
    if lost is not None:
        ready = _last_instance_lost(lost, ready)
    conflict = view_of(problems, _CONFLICTS, Reason.NO_CONFLICT)
    held = view_of(problems, HOLD_REASONS, Reason.NOTHING_HELD)
    held = with_refusal(held, syncer, result.now)
    if isinstance(registry, Unknown):  # what was known before is the best that is known
        conflict = as_before(syncer.status, "Conflict", conflict)
        held = as_before(syncer.status, "RemovalHeld", held)
    synced = with_ignored(synced, syncer)
    ready = with_ignored(ready, syncer)
    return {"Ready": ready, "Synced": synced, "Conflict": conflict, "RemovalHeld": held}


def first_of(problems: Sequence[Problem]) -> Aspect | None:
    """Return a condition that shows the first of some problems."""
    if not problems:
        return None
    first = problems[0]
    value: bool | None = False
    if first.unknown:
        value = None
    return Aspect(value, first.reason, first.text)


def view_of(problems: Sequence[Problem], reasons: Collection[str], without: Reason) -> Aspect:
    """Return a condition that is True with the first problem of these `reasons`, and False with the
    reason `without` if there is none."""
    first = first_of(_with_reasons(problems, reasons))
    if first is None:
        return Aspect(False, without, "")
    return first._replace(value=True)


def _with_reasons(problems: Sequence[Problem], reasons: Collection[str]) -> list[Problem]:
    return [problem for problem in problems if problem.reason in reasons]


def _summary(problems: Sequence[Problem]) -> Aspect | None:
    """Return Ready of a syncer that is served. What waits for a person comes before what may end by
    itself."""
    against = [problem for problem in problems if problem.reason not in _BESIDE_READY]
    return most_urgent(against, _CONFLICTS, HOLD_REASONS)


def most_urgent(problems: Sequence[Problem], *urgent: Collection[str]) -> Aspect | None:
    """Return a condition that shows the first problem with one of the `urgent` reasons, in their
    order, else the first of all."""
    for reasons in urgent:
        waiting = first_of(_with_reasons(problems, reasons))
        if waiting is not None:
            return waiting
    return first_of(problems)


def _last_instance_lost(lost: Lost, ready: Aspect) -> Aspect:
    """Return Ready for an app that callers do not find any more; its own reason becomes the
    cause."""
    message = f"{lost}: {ready.reason}: {ready.message}"
    return Aspect(False, Reason.LAST_INSTANCE_LOST, message)


def with_refusal(held: Aspect, syncer: SyncerObject | ImportObject, now: float) -> Aspect:
    """Return RemovalHeld, which also tells of an annotation that releases nothing."""
    why = annotation_refused(syncer, now)
    if not why:
        return held
    message = f"the annotation {APPROVE_ANNOTATION} has no effect: {why}"
    if held.message:
        message = f"{message}. {held.message}"
    return held._replace(message=message)


def with_ignored(aspect: Aspect, syncer: SyncerObject | ImportObject) -> Aspect:
    """Return the condition, which also tells of a value of the annotation that is ignored."""
    ignored = ignored_value(syncer.annotations, ABANDON_ANNOTATION)
    if not ignored:
        return aspect
    return aspect._replace(message=f"{aspect.message}; {ignored}")


def as_before(status: CustomStatus | None, type_: str, now: Aspect) -> Aspect:
    """Return the condition that the status has; without one, what this pass found."""
    before = status.condition(type_) if status else None
    if before is None or now.value:
        return now
    return Aspect(before.status is ConditionStatus.TRUE, before.reason, before.message)


# --- The problems of a syncer, the first to see to first ------------------------------------------


def _of_claim(
    claim: Claim, tally: Tally, registry: Complete[Observed] | Unknown, waiting: str
) -> Iterator[Problem]:
    if isinstance(claim, NotServed):
        yield _problem(claim.reason, claim.message, unknown=claim.source is not None)
    if isinstance(claim, Deleting):
        yield _problem(Reason.DELETING, waiting or _left_in_eureka(tally, registry))


def _left_in_eureka(tally: Tally, registry: Complete[Observed] | Unknown) -> str:
    """Say what is left of a syncer whose deletion does not wait for its instances."""
    if isinstance(registry, Unknown):
        return f"it is not known whether its instances are gone: {registry.message}"
    if tally.registered:
        instances = counted(len(tally.registered), "instance")
        return f"Eureka still holds {instances} of it"
    return "its instances are gone"


def _of_calls(
    claim: Claim, tally: Tally, registry: Complete[Observed] | Unknown
) -> Iterator[Problem]:
    if isinstance(registry, Unknown):
        yield _problem(Reason.REGISTRY_UNKNOWN, registry.message, unknown=True)
    elif tally.failures and isinstance(claim, Serving):
        yield _problem(Reason.PARTLY_FAILED, _sample(tally.failures))


def _of_holds(claim: Claim, tally: Tally, held: Held | None, release: str) -> Iterator[Problem]:
    hold = tally.hold
    if hold is None or held is None:
        return
    ref = claim.syncer.ref
    evidence = held.evidence(ref)
    message = condition_message(hold, len(tally.held), evidence, ref, release)
    yield _problem(hold.reason, message)


def _of_others(tally: Tally) -> Iterator[Problem]:
    if tally.conflicts:
        yield _problem(Reason.CONFLICT, _sample(tally.conflicts))
    if tally.duplicates:
        yield _problem(Reason.DUPLICATE_REGISTRATION, _sample(tally.duplicates))


def _of_sources(claim: Claim) -> Iterator[Problem]:
    """Yield what is known too little of, so that registered instances are only renewed."""
    if not isinstance(claim, Serving):
        return
    if claim.incomplete:
        first = claim.incomplete[0]
        messages = [incomplete.message for incomplete in claim.incomplete]
        said = _sample(messages)
        yield _problem(first.reason, f"{said}; registered instances are renewed")
    if claim.unclear:
        said = _sample(claim.unclear)
        yield _problem(Reason.ENDPOINT_UNCLEAR, f"{said}; registered instances are renewed")


def _of_differences(
    claim: Claim, tally: Tally, registry: Complete[Observed] | Unknown
) -> Iterator[Problem]:
    """Yield why Eureka and the cluster differ although nothing failed."""
    if not isinstance(claim, Serving) or isinstance(registry, Unknown):
        return
    if claim.spec.suspend:
        text = f"its instances are renewed, and not changed (exceptions: {page('suspend')})"
        yield _problem(Reason.SUSPENDED, text)
    if registry.data.outdated is not None:
        text = f"{OLD_LIST}. What this pass would change was read again"
        yield _problem(Reason.LIST_OUTDATED, text, unknown=True)
    differences = _differences(claim, tally, registry.data.scope)
    if differences:
        yield _problem(Reason.DIFFERS, "; ".join(differences))


def _differences(claim: Serving, tally: Tally, scope: Scope) -> list[str]:
    """Return the differences between Eureka and the cluster, one phrase each. Instances that were
    never ready do not count."""
    lacking = wrong = put_out = 0
    for key, wanted in claim.wanted.items():
        status = tally.registered.get(key)
        if status is None:
            if wanted.instance.status is InstanceStatus.UP:
                lacking += 1
        elif status is InstanceStatus.OUT_OF_SERVICE:
            put_out += 1
        elif status is not wanted.instance.status:
            wrong += 1
    unwanted = left_out = 0
    for key, status in tally.registered.items():
        if key in claim.wanted:
            continue
        if status is InstanceStatus.OUT_OF_SERVICE:
            left_out += 1
        else:
            unwanted += 1
    policy = ""
    if scope.policy is not Policy.SYNC:
        policy = f" (--policy {scope.policy})"
    counts = (
        (lacking, "not registered yet"),
        (wrong, "registered with the wrong status"),
        (put_out, "set OUT_OF_SERVICE by hand"),
        (left_out, "no longer wanted, and stays as a person set it: OUT_OF_SERVICE"),
        (unwanted, f"registered and no longer wanted{policy}"),
    )
    phrases = []
    for number, what in counts:
        if number:
            instances = counted(number, "instance")
            are = one_or_more(number, "is", "are")
            phrases.append(f"{instances} {are} {what}")
    return phrases


def _problem(reason: Reason, text: str, *, unknown: bool = False) -> Problem:
    return Problem(reason=reason, subject="", text=text, unknown=unknown)


def _sample(texts: Sequence[str]) -> str:
    return f"{texts[0]}{and_more(len(texts))}"


# --- Ready without a problem ----------------------------------------------------------------------


def _counted(claim: Serving, tally: Tally, synced: Aspect, *, desired: int, up: int) -> Aspect:
    """Return Ready by the number of instances that are UP."""
    if not desired:
        if claim.of(OverLimit):
            return Aspect(False, Reason.LIMIT_ZERO, "; ".join(claim.notes))
        return Aspect(False, *nothing_wanted(claim))
    apps = ", ".join(claim.apps[:3])
    notes = [f"{up} of {desired} UP as {apps}", *claim.notes]
    if claim.unready:
        notes.append(_unready(claim))
    drained = 0
    for wanted in claim.wanted.values():
        if wanted.drained:
            drained += 1
    if drained:
        notes.append(f"{drained} drained")
    put_out = tally.count(InstanceStatus.OUT_OF_SERVICE)
    if synced.reason in (Reason.DIFFERS, Reason.LIST_OUTDATED):
        notes.append(synced.message)
    elif put_out:
        notes.append(f"{put_out} set OUT_OF_SERVICE by hand")
    notes += claim.warnings
    notes += claim.drain_warnings
    reason = synced.reason
    if not up and reason != Reason.SUSPENDED:
        reason = Reason.NONE_UP
    return Aspect(bool(up), reason, "; ".join(notes))


def _unready(claim: Serving) -> str:
    reasons = [verdict.why for verdict in claim.unready.values()]
    return f"{min(reasons)}{and_more(len(reasons))}"


def nothing_wanted(claim: Serving) -> tuple[Reason, str]:
    """Return the reason, and the message, why there is nothing to register."""
    if claim.unready:
        return Reason.NOT_READY, _unready(claim)
    number = len(claim.services)
    noun = one_or_more(number, "Service", "Services")
    names = f"{noun} {some_of(claim.services)}"
    if claim.of(Leaving):
        return Reason.NO_ENDPOINTS, f"all endpoints of {names} terminate"
    have = one_or_more(number, "has", "have")
    return Reason.NO_ENDPOINTS, f"{names} {have} no endpoints"
