"""The writes of imports: finalizers, Services and slices. A write that fails is an outcome, and the
next pass tries it again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from eurekube_sync.apply.kubernetes import failure
from eurekube_sync.apply.leases import in_turn
from eurekube_sync.apply.status import events_of, worth_writing
from eurekube_sync.desired.imports import ImportClaim, Importing, NotImported, Socket, socket_of
from eurekube_sync.desired.spec import CLEANUP_FINALIZER, abandoned
from eurekube_sync.model.deadline import FAILURES_IN_A_ROW, Deadline, Streak
from eurekube_sync.model.errors import ClusterError, ClusterExists, ClusterUnavailable
from eurekube_sync.model.imports import (
    IMPORT,
    ImportObject,
    ImportRef,
    ImportSlice,
    ImportStatus,
    ImportWrites,
)
from eurekube_sync.model.kubernetes import EventRecord
from eurekube_sync.model.ports import Clock, Cluster, Workers
from eurekube_sync.model.reasons import Reason
from eurekube_sync.plan.imports import ImportWork, ServiceWrite
from eurekube_sync.plan.packing import SliceWrite, Verb


class ImportOutcome(Struct, frozen=True, kw_only=True):
    """What became of the writes of one import."""

    claim: Importing
    written: tuple[SliceWrite, ...] = ()
    made: bool = False  # its Service was made
    error: ClusterError | None = None  # it ended the writes of this import
    refused: ImportSlice | None = None  # a slice that was not made, because its name is taken
    late: bool = False  # the pass ended before all was tried

    @property
    def failed(self) -> bool:
        return self.error is not None or self.late


def write_imports(
    writes: ImportWrites, workers: Workers, deadline: Deadline, work: Sequence[ImportWork]
) -> dict[ImportRef, ImportOutcome]:
    """Make the writes of each import, the namespaces in turn. The first failure ends those of its
    import, because later writes remove what earlier ones replace. A server that hangs is not called
    for all of them."""
    streak = Streak()

    def write(task: ImportWork) -> ImportOutcome:
        if streak.broken:
            why = f"the Kubernetes API did not answer {FAILURES_IN_A_ROW} calls in a row"
            return ImportOutcome(claim=task.claim, error=ClusterUnavailable(why))
        if deadline.passed:
            return ImportOutcome(claim=task.claim, late=True)
        outcome = _write(writes, deadline, task)
        streak.note(unreachable=isinstance(outcome.error, ClusterUnavailable))
        return outcome

    turns = in_turn(work, lambda task: task.claim.import_.ref)
    outcomes = workers.each(write, turns)
    return {outcome.claim.import_.ref: outcome for outcome in outcomes}


def _write(writes: ImportWrites, deadline: Deadline, task: ImportWork) -> ImportOutcome:
    claim = task.claim
    written: list[SliceWrite] = []
    made = False
    error = None
    refused = None
    late = False
    try:
        # Without the finalizer, all slices would go with the import at once.
        if CLEANUP_FINALIZER not in claim.import_.finalizers:
            writes.add_import_finalizer(claim.import_)
        if task.service is not None:
            fits = _write_service(writes, claim, task.service)
            made = not task.service.resource_version
            if not fits:
                # Its address family is another one than was guessed: the next pass knows it.
                return ImportOutcome(claim=claim, made=made)
        for verb, wanted in task.slices:
            if deadline.passed:
                late = True
                break
            if verb is Verb.CREATE:
                refused = wanted
                writes.create_slice(claim.import_, wanted)
                refused = None
            elif verb is Verb.DELETE:
                writes.delete_slice(wanted)
            else:
                writes.write_slice(wanted)
            written.append(SliceWrite(verb, wanted))
    except ClusterError as failed:
        error = failed
        if not isinstance(failed, ClusterExists):
            refused = None
    return ImportOutcome(
        claim=claim, written=tuple(written), made=made, error=error, refused=refused, late=late
    )


def _write_service(writes: ImportWrites, claim: Importing, write: ServiceWrite) -> bool:
    """Make the Service, or write its ports. Say whether slices of the claim's family fit it."""
    if write.resource_version:
        writes.write_service_ports(write.service, resource_version=write.resource_version)
        return True
    service = writes.create_service(write.service)
    return claim.family in service.ip_families or not service.ip_families


def served(claim: Importing, outcome: ImportOutcome | None) -> frozenset[Socket]:
    """Return the endpoints in the slices of an import after the pass."""
    by_name: dict[str, list[Socket]] = {}
    for piece in claim.slices:
        sockets = [socket_of(piece, endpoint.address) for endpoint in piece.endpoints]
        by_name[piece.name] = sockets
    written = outcome.written if outcome else ()
    for verb, wanted in written:
        sockets = []
        if verb is not Verb.DELETE:
            numbers = {port.port for port in wanted.ports}
            ports = tuple(sorted(numbers))
            sockets = [Socket(address, ports) for address in wanted.endpoints]
        by_name[wanted.name] = sockets
    served: set[Socket] = set()
    for sockets in by_name.values():
        served.update(sockets)
    return frozenset(served)


class EndpointCount(NamedTuple):
    """How many endpoints of an import its callers have, of how many."""

    written: int
    wanted: int  # with those that stay for now: they are served, too


def count_of(
    claim: Importing, outcome: ImportOutcome | None, kept: Collection[Socket]
) -> EndpointCount:
    """Count the endpoints of an import after the pass. `kept` are those that stay, although no
    instance wants them."""
    wanted = claim.wanted.keys() | set(kept)
    written = served(claim, outcome) & wanted
    return EndpointCount(len(written), len(wanted))


Outcomes: TypeAlias = Mapping[ImportRef, ImportOutcome]


class ImportSettling(Struct, frozen=True, kw_only=True):
    """The last writes of one import."""

    import_: ImportObject
    ends: bool = False  # the finalizer is removed, because it may go
    status: ImportStatus | None = None  # None: it stays as it is
    events: Sequence[EventRecord] = ()


def settlings(
    claims: Mapping[ImportRef, ImportClaim],
    endings: Collection[ImportRef],
    statuses: Mapping[ImportRef, ImportStatus],
    outcomes: Outcomes,
    *,
    words: bool,
) -> list[ImportSettling]:
    """Return the last writes that are due. `endings` may go; one that a person abandons goes in any
    case. With `words`, a failure that continues is reported in its latest words."""
    due: list[ImportSettling] = []
    changed: list[tuple[ImportObject, ImportStatus]] = []
    for ref, claim in sorted(claims.items()):
        import_ = claim.import_
        if ref in endings or abandoned(import_):
            if CLEANUP_FINALIZER in import_.finalizers:
                due.append(ImportSettling(import_=import_, ends=True))
        elif isinstance(claim, NotImported) and claim.reason is Reason.OWNER_CLASH:
            continue  # its status is the other installation's
        elif worth_writing(import_.status, statuses[ref], words=words):
            changed.append((import_, statuses[ref]))
    events = events_of(changed)
    for import_, status in changed:
        told = events[import_.uid]
        due.append(ImportSettling(import_=import_, status=status, events=told))
    for ref, outcome in sorted(outcomes.items()):
        import_ = claims[ref].import_
        if outcome.made and _had_service(import_):
            event = _made_again(import_, statuses[ref].service)
            due.append(ImportSettling(import_=import_, events=(event,)))
    return due


def _had_service(import_: ImportObject) -> bool:
    return import_.status is not None and bool(import_.status.ready)


def _made_again(import_: ImportObject, service: str) -> EventRecord:
    return EventRecord(
        syncer=import_.ref,
        uid=import_.uid,
        warning=True,
        reason=Reason.SERVICE_MADE,
        message=f"Service {service} was missing, and was made again, with another ClusterIP",
        key="ServiceMade",
        kind=IMPORT,
    )


def settle_imports(
    cluster: Cluster,
    writes: ImportWrites,
    clock: Clock,
    workers: Workers,
    deadline: Deadline,
    due: Sequence[ImportSettling],
) -> tuple[dict[ImportRef, ImportStatus], tuple[ClusterError, ...]]:
    """Write statuses and events, and end deletions, in turn. Return the statuses written, and the
    errors."""
    now = clock.now()

    def carry_out(write: ImportSettling) -> ClusterError | None:
        if deadline.passed:
            ref = write.import_.ref
            return ClusterUnavailable(f"import {ref} was not written, because the pass had ended")
        failed: ClusterError | None = None
        for event in write.events:
            record = partial(cluster.record_event, event, at=now)
            failed = failure(record) or failed
        if write.ends:
            end = partial(writes.remove_import_finalizer, write.import_)
            return failure(end) or failed
        if write.status is not None:
            end = partial(writes.write_import_status, write.import_, write.status)
            return failure(end) or failed
        return failed

    turns = in_turn(due, lambda write: write.import_.ref)
    ended = workers.each(carry_out, turns)
    written: dict[ImportRef, ImportStatus] = {}
    errors: list[ClusterError] = []
    for write, error in zip(turns, ended, strict=True):
        if error:
            errors.append(error)
        elif write.status:
            written[write.import_.ref] = write.status
    return written, tuple(errors)
