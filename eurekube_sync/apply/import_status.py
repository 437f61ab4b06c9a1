"""The status of each import after a pass: counts and conditions. Pure.

| condition   | shows                                                  | without one             |
|-------------|--------------------------------------------------------|-------------------------|
| Synced      | the first problem                                      | InSync                  |
| Ready       | a conflict or a hold, else the first problem that      | how many endpoints are  |
|             | allows no Ready                                        | written                 |
| Conflict    | that the Service has another owner                     | NoConflict              |
| RemovalHeld | the removals that are held                             | NothingHeld             |
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct, field

from eurekube_sync.apply.conditions import (
    Aspect,
    as_before,
    first_of,
    most_urgent,
    view_of,
    with_ignored,
    with_refusal,
)
from eurekube_sync.apply.imports import EndpointCount, ImportOutcome, Outcomes, count_of
from eurekube_sync.apply.status import as_condition, awaited_since, short, unknown_from
from eurekube_sync.brake.approval import approve_command
from eurekube_sync.brake.confirm import by_syncer
from eurekube_sync.brake.holds import Held, Hold
from eurekube_sync.brake.imports import IMPORT_HOLD_REASONS
from eurekube_sync.desired.import_spec import service_name
from eurekube_sync.desired.imports import (
    Ending,
    ImportClaim,
    Importing,
    NotImported,
    Socket,
    is_unread,
)
from eurekube_sync.model.imports import ImportRef, ImportStatus
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.problems import Problem
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted, listed, one_or_more, some_of

_MOST_REASONS = 10


class ImportResult(Struct, frozen=True, kw_only=True):
    """What a pass found, planned and did for imports."""

    claims: Mapping[ImportRef, ImportClaim]
    kept: Mapping[ImportRef, Collection[Socket]] = field(default_factory=dict)
    """The endpoints that stay, although no instance wants them."""
    registry: Unknown | None = None  # why Eureka could not be read
    held: Held | None = None
    outcomes: Outcomes = field(default_factory=dict)
    now: float  # Unix seconds
    options: Sequence[str] = ()  # options for the scope, for commands to paste
    owner: str = ""  # of this installation
    syncer_class: str = ""  # that it serves


def import_statuses(result: ImportResult) -> dict[ImportRef, ImportStatus]:
    """Return the status of each import."""
    own_holds = holds_by_import(result.held)
    awaited: dict[SyncerRef | None, Hold] = {}
    if result.held is not None:
        for hold in result.held.awaited:
            awaited.setdefault(hold.syncer, hold)
    statuses = {}
    for ref, claim in result.claims.items():
        syncer = SyncerRef(*ref)
        holds = own_holds.get(syncer, ())
        statuses[ref] = _status(ref, claim, result, holds, awaited.get(syncer))
    return statuses


def holds_by_import(held: Held | None) -> dict[SyncerRef, list[Hold]]:
    """Return the holds of each import, with its own removals alone."""
    by_import: dict[SyncerRef, list[Hold]] = {}
    holds = held.holds if held else ()
    for hold in holds:
        for ref, removals in by_syncer(hold.removals).items():
            own = replace(hold, removals=tuple(removals))
            by_import.setdefault(ref, []).append(own)
    return by_import


def _status(
    ref: ImportRef,
    claim: ImportClaim,
    result: ImportResult,
    holds: Sequence[Hold],
    awaited: Hold | None,
) -> ImportStatus:
    now = int(result.now)
    import_ = claim.import_
    before = import_.status or ImportStatus(observed_generation=0)
    outcome = result.outcomes.get(ref)
    numbers = EndpointCount(0, 0)
    if isinstance(claim, Importing):
        numbers = count_of(claim, outcome, result.kept.get(ref, ()))
    judged = _conditions(claim, result, outcome, holds, numbers)
    conditions = []
    for type_, aspect in judged.items():
        old = before.condition(type_)
        conditions.append(as_condition(type_, aspect, old, import_.generation, now))
    mark = ""
    since = None
    if awaited is not None:
        mark = awaited.mark
        since = awaited_since(awaited, before, now)
    elif result.registry is None and is_unread(claim):
        # This pass saw nothing of it, and so forgets nothing. (One that could not read Eureka's
        # list forgets all.)
        mark = before.unconfirmed_removal
        since = before.unconfirmed_since
    ready = before.ready
    app = before.app
    instances = before.instances
    left_out = before.left_out
    unknown_since = None
    if result.registry is not None:
        unknown_since = unknown_from(before, now)
    elif isinstance(claim, Importing):
        ready = f"{numbers.written}/{numbers.wanted}"
        app = claim.spec.app or claim.spec.vip_address or ""
        instances = len(claim.verdicts)
        first = list(claim.left_out.items())[:_MOST_REASONS]
        left_out = {reason.value: number for reason, number in first}
    errors: tuple[str, ...] = ()
    if outcome is not None and outcome.error is not None:
        errors = (short(str(outcome.error)),)
    return ImportStatus(
        observed_generation=import_.generation,
        conditions=tuple(conditions),
        owner=result.owner,
        syncer_class=result.syncer_class,
        ready=ready,
        app=app,
        service=service_name(import_),
        instances=instances,
        left_out=left_out,
        errors=errors,
        unconfirmed_removal=mark,
        unconfirmed_since=since,
        eureka_unknown_since=unknown_since,
    )


# --- Conditions -----------------------------------------------------------------------------------


def _conditions(
    claim: ImportClaim,
    result: ImportResult,
    outcome: ImportOutcome | None,
    holds: Sequence[Hold],
    numbers: EndpointCount,
) -> Mapping[str, Aspect]:
    import_ = claim.import_
    problems = list(problems_of_import(claim, result, outcome, holds))
    in_sync = Aspect(True, Reason.IN_SYNC, "its slices hold what Eureka lists")
    synced = first_of(problems) or in_sync
    ready = synced
    if isinstance(claim, Importing):
        ready = _summary(problems) or _counted(claim, numbers, synced)
    conflict = view_of(problems, (Reason.SERVICE_EXISTS,), Reason.NO_CONFLICT)
    held = view_of(problems, IMPORT_HOLD_REASONS, Reason.NOTHING_HELD)
    if result.registry is not None:  # what was known before is the best that is known
        held = as_before(import_.status, "RemovalHeld", held)
    held = with_refusal(held, import_, result.now)
    synced = with_ignored(synced, import_)
    ready = with_ignored(ready, import_)
    return {"Ready": ready, "Synced": synced, "Conflict": conflict, "RemovalHeld": held}


def _summary(problems: Sequence[Problem]) -> Aspect | None:
    """Return Ready of an import with problems. What waits for a person comes first."""
    against = [problem for problem in problems if problem.reason is not Reason.SUSPENDED]
    return most_urgent(against, (Reason.SERVICE_EXISTS,), IMPORT_HOLD_REASONS)


def problems_of_import(
    claim: ImportClaim,
    result: ImportResult,
    outcome: ImportOutcome | None,
    holds: Sequence[Hold],
) -> Iterator[Problem]:
    """Yield what is wrong with an import, the first to see to first."""
    if isinstance(claim, NotImported):
        yield _problem(claim.reason, claim.message, unknown=claim.source is not None)
    if result.registry is not None:
        yield _problem(Reason.REGISTRY_UNKNOWN, result.registry.message, unknown=True)
    if isinstance(claim, Importing):
        for refusal in claim.refusals:
            yield _problem(refusal.reason, refusal.message)
        if claim.spec.suspend:
            yield _problem(Reason.SUSPENDED, "its Service and slices are not written")
    if outcome is not None and outcome.failed:
        why = outcome.error or "the pass ended before all was written"
        yield _problem(Reason.PARTLY_FAILED, str(why))
    for hold in holds:
        yield _problem(hold.reason, _held(hold, result))
    if isinstance(claim, Ending):
        yield _problem(Reason.DELETING, "its Service and slices go with it")


def _problem(reason: Reason, text: str, *, unknown: bool = False) -> Problem:
    return Problem(reason=reason, subject="", text=text, unknown=unknown)


def _held(hold: Hold, result: ImportResult) -> str:
    """Return the message of `RemovalHeld` of an import."""
    assert result.held is not None  # the hold is one of it
    count = len(hold.removals)
    are = one_or_more(count, "endpoint of this import stays", "endpoints of this import stay")
    text = f"{count} {are}: {hold.text}"
    if hold.reason in (Reason.REGISTRY_YOUNG, Reason.SERVER_UNSEEN):
        return text  # it ends by itself
    command = approve_command(result.held.plan_id, result.options)
    return f"{text}. To release the held removals of all imports now: {command}"


def _counted(claim: Importing, numbers: EndpointCount, synced: Aspect) -> Aspect:
    """Return Ready by the number of endpoints."""
    if not numbers.wanted:
        return Aspect(False, *without_endpoints(claim))
    endpoints = counted(numbers.wanted, "endpoint")
    text = f"{numbers.written} of {endpoints} written"
    if claim.left_out:
        left_out = some_of(_left_out(claim))
        text = f"{text}; left out: {left_out}"
    return Aspect(bool(numbers.written), synced.reason, text)


def _left_out(claim: Importing) -> list[str]:
    return [f"{number} {reason}" for reason, number in claim.left_out.items()]


def without_endpoints(claim: Importing) -> tuple[Reason, str]:
    """Return why no instance is an endpoint, without an address: tenants may read a status, and
    not the slices."""
    if not claim.verdicts:
        name = claim.spec.app or claim.spec.vip_address
        return Reason.NO_INSTANCES, f"Eureka lists no instance of {name}"
    first_reason, *_ = claim.left_out
    instances = counted(len(claim.verdicts), "instance")
    left_out = listed(_left_out(claim), "and")
    explain = f"eurekube-sync explain import/{claim.import_.ref}"
    text = f"none of {instances} is an endpoint: {left_out}. To see each: {explain}"
    return first_reason, text
