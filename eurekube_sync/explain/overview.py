"""The state of all syncers, a row each, the worst first. A row comes from the status of a syncer
that is in order, or else from its explanation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eurekube_sync.controller.exit_codes import ExitCode, of_cause
from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import Claim, Serving
from eurekube_sync.desired.spec import class_of
from eurekube_sync.explain.chain import explain
from eurekube_sync.explain.cluster import is_served_elsewhere, refused_by_its_installation
from eurekube_sync.explain.links import Explanation, Link, Mark, Outcome, Part
from eurekube_sync.explain.missing import unselected
from eurekube_sync.explain.registry import last_pass_link, looks_silent
from eurekube_sync.explain.subject import claims_in, named_app, subject_of, syncers_in
from eurekube_sync.explain.what import Kind, What
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import (
    Condition,
    ConditionStatus,
    SyncerObject,
    SyncerRef,
    SyncerStatus,
)
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Server, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.observe.kubernetes import unread

_ORDER = list(Outcome)
_MOST_READ = 30  # instances that are read uncached; more would be a load for Eureka
_WHOLE = frozenset(
    {Reason.NOT_READY, Reason.DUPLICATE_REGISTRATION, Reason.OUT_OF_SERVICE, Reason.EXPIRED}
)
"""Reasons whose sentence needs no details."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    syncer: SyncerObject
    status: SyncerStatus | None  # as computed by this look; None if unknown
    found: Explanation  # without links if the status is enough
    reason: str  # a word as in conditions; `InSync` if nothing is wrong
    why: str = ""

    @property
    def since(self) -> float | None:
        """Unix seconds of the last change of the condition Ready, or of the creation. None if the
        condition is True but the syncer is no longer registered: then the time is unknown."""
        ready = _ready(self.syncer.status)
        if self.found.outcome is Outcome.NOT_REGISTERED and _is_true(ready):
            return None
        return ready.last_transition if ready else self.syncer.created


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewals:
    """What uncached reads of a sample of instances show of their renewals (`renewals_to_read`)."""

    oldest: float | None = None  # seconds since the oldest renewal; None if no instance was read
    read: int = 0  # instances
    unread: int = 0  # syncers that look old in Eureka's list and are not in the sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All rows, and the state of the installation."""

    rows: tuple[Row, ...]
    look: Look
    eureka: Unknown | None  # why Eureka could not be read; None if it was read
    last_pass: Link
    renewals: Renewals
    unread: tuple[tuple[str, Unknown], ...]  # the unknown sources of Kubernetes
    unselected: tuple[
        str, ...
    ]  # Services of the named namespaces that no syncer selects, as `namespace/name`
    held: int
    conflicts: int
    left_out: int = 0  # rows that the filters left out

    @property
    def unlisted(self) -> Unknown | None:
        """The reason why syncers may be missing from the rows; None if all were listed."""
        return next(
            (source for name, source in self.unread if name.startswith("EurekaSyncers")), None
        )

    def count(self, outcome: Outcome) -> int:
        return sum(row.found.outcome is outcome for row in self.rows)


def overview(look: Look) -> Overview:
    """Sum up a look. It needs the Pods of the namespaces of `in_need`."""
    report, rows = look.report, [*_served(look), *_others(look)]
    named = sorted(look.asked.namespaces or ())
    return Overview(
        rows=tuple(sorted(rows, key=lambda row: (_ORDER.index(row.found.outcome), row.syncer.ref))),
        look=look,
        eureka=look.listed if isinstance(look.listed, Unknown) else None,
        last_pass=last_pass_link(look, alone=False),
        renewals=_renewals(look),
        unread=tuple(unread(report.view)),
        unselected=tuple(f"{name}/{one}" for name in named for one in unselected(look, name)),
        held=len(report.held.removals) if report.held else 0,
        conflicts=sum(one.conflict for one in report.plan.blocked),
    )


def renewals_to_read(look: Look) -> frozenset[InstanceKey]:
    """Return the instances to read uncached before anything is said of renewals: for each syncer
    that looks as if nobody renewed it, the instance that the list shows with the oldest renewal. If
    there are too many, those of the oldest; if there is none, the oldest instance of all."""
    oldest = _oldest_by_syncer(look)
    suspects = [instance for instance in oldest if looks_silent(instance, look)]
    return frozenset(instance.key for instance in (suspects or oldest[:1])[:_MOST_READ])


def _oldest_by_syncer(look: Look) -> list[ObservedInstance]:
    """Return the listed instance of each served syncer that has the oldest renewal, the oldest
    first."""
    oldest = []
    for ref in claims_in(look.report):
        # Eureka renews no instance whose status is UNKNOWN.
        listed = [
            i for i in look.marked(ref) if i.last_renewal and i.status is not InstanceStatus.UNKNOWN
        ]
        if listed:
            oldest.append(min(listed, key=_by_renewal))
    return sorted(oldest, key=_by_renewal)


def _by_renewal(instance: ObservedInstance) -> tuple[float, InstanceKey]:
    return instance.renewed, instance.key


def _renewals(look: Look) -> Renewals:
    ages = []
    unread = 0
    for instance in _oldest_by_syncer(look):
        answers = look.uncached(instance.key)
        if not answers:
            unread += looks_silent(instance, look)
        elif isinstance(answers[0], ObservedInstance):
            ages.append(max(0.0, look.eureka_time - answers[0].renewed))
    return Renewals(oldest=max(ages, default=None), read=len(ages), unread=unread)


def in_need(look: Look) -> frozenset[str]:
    """Return the namespaces of syncers that are not in order, whose Pods an explanation needs."""
    claims, statuses = claims_in(look.report), look.report.all_statuses
    return frozenset(
        ref.namespace
        for ref, claim in claims.items()
        if not _in_order(claim, statuses.get(ref), look)
    )


def _served(look: Look) -> Iterator[Row]:
    report = look.report
    for ref, claim in claims_in(report).items():
        status = report.all_statuses.get(ref)
        if status is not None and _in_order(claim, status, look) and _is_renewed(ref, look):
            yield _by_its_status(claim.syncer, status)
        elif subject := subject_of(What(Kind.SYNCER, ref.name, ref.namespace), report, claim, look):
            yield _by_its_links(claim.syncer, status, explain(subject, look))


def _is_renewed(ref: SyncerRef, look: Look) -> bool:
    """Whether no instance of the syncer that was read uncached looks as if nobody renewed it. What
    was not read counts as renewed, because a list proves nothing else."""
    if isinstance(look.listed, Unknown):
        return False
    for instance in look.marked(ref):
        for answer in look.uncached(instance.key)[:1]:
            seen = instance if isinstance(answer, Unknown) else answer
            if seen is None or looks_silent(seen, look):
                return False
    return True


def _in_order(claim: Claim, status: SyncerStatus | None, look: Look) -> bool:
    """Whether all wanted instances are UP by the pass's own count, and nothing waits."""
    if status is None or not isinstance(claim, Serving) or claim.unready or claim.incomplete:
        return False
    if refused_by_its_installation(claim.syncer, look) is not None:
        return False
    return (
        _is_true(_ready(status))
        and _is_true(status.condition("Synced"))
        and status.up >= status.desired > 0
    )


def _ready(status: SyncerStatus | None) -> Condition | None:
    return status.condition("Ready") if status else None


def _is_true(condition: Condition | None) -> bool:
    return condition is not None and condition.status is ConditionStatus.TRUE


def _by_its_status(syncer: SyncerObject, status: SyncerStatus) -> Row:
    ready, outcome, why = _ready(status), Outcome.REGISTERED, ""
    if not _is_true(ready):
        outcome, why = Outcome.NOT_REGISTERED, ready.message if ready else ""
    found = Explanation(
        about=str(syncer.ref),
        links=(),
        outcome=outcome,
        up=status.up,
        of=status.desired,
        apps=status.apps,
    )
    return Row(
        syncer=syncer,
        status=status,
        found=found,
        reason=ready.reason if ready else Reason.IN_SYNC,
        why=why,
    )


def _by_its_links(syncer: SyncerObject, status: SyncerStatus | None, found: Explanation) -> Row:
    broken, now = found.broken, _ready(status)
    # Of a registered syncer, show for example that it is suspended.
    notable = (Part.SUSPEND, Part.LIMIT, Part.DRAIN)
    why = next(
        (one.text for one in found.links if one.mark is Mark.NOTE and one.part in notable), ""
    )
    reason = now.reason if now else Reason.IN_SYNC
    if broken:
        more = "" if broken.reason in _WHOLE else "; ".join(broken.details[:1])
        reason, why = broken.reason, "; ".join(filter(None, [broken.text, more]))
    elif found.outcome is Outcome.UNKNOWN:
        reason, why = (
            Reason.NOT_LOOKED_AT,
            next(one.text for one in found.links if one.mark is Mark.UNKNOWN),
        )
    return Row(syncer=syncer, status=status, found=found, reason=reason, why=why)


def _others(look: Look) -> Iterator[Row]:
    """Make the rows of syncers out of scope. Their own status shows whether another installation
    serves them."""
    claims = claims_in(look.report)
    for syncer in (one for one in syncers_in(look.report) if one.ref not in claims):
        status, name = syncer.status, class_of(syncer)
        if status is not None and is_served_elsewhere(syncer, look):
            yield _by_its_status(syncer, status)
        else:
            found = Explanation(about=str(syncer.ref), links=(), outcome=Outcome.NOT_REGISTERED)
            served = f"class {name}" if name else "it, and the scope given here excludes it"
            why = f"no installation seems to serve {served}"
            yield Row(
                syncer=syncer, status=None, found=found, reason=Reason.NO_INSTALLATION, why=why
            )


def chosen(found: Overview, *, app: str | None = None, condition: str | None = None) -> Overview:
    """Return only the rows of an app, and of a condition or reason: `RemovalHeld`, `Ready=False`,
    `NotReady`."""
    rows = tuple(
        row
        for row in found.rows
        if (app is None or app.upper() in (*row.found.apps, named_app(row.syncer)))
        and (condition is None or _has(row, condition))
    )
    return replace(found, rows=rows, left_out=len(found.rows) - len(rows))


def _has(row: Row, condition: str) -> bool:
    type_, _, value = condition.partition("=")
    conditions = row.status.conditions if row.status else ()
    return row.reason == condition or any(
        one.reason == condition
        or (one.type == type_ and one.status == (value or ConditionStatus.TRUE))
        for one in conditions
    )


def code_of_overview(found: Overview) -> ExitCode:
    """Return 0 only if all is known to be in sync. A broken syncer comes before a failed read."""
    if (
        found.count(Outcome.NOT_REGISTERED)
        or found.count(Outcome.PARTLY)
        or found.look.report.absent
    ):
        return ExitCode.NOT_REGISTERED
    if found.eureka is not None and found.count(Outcome.UNKNOWN):
        return of_cause(Server.EUREKA, found.eureka.cause)
    if found.unlisted is not None:
        return of_cause(Server.KUBERNETES, found.unlisted.cause)
    if found.unread and (found.count(Outcome.UNKNOWN) or not found.rows):
        return of_cause(Server.KUBERNETES, found.unread[0][1].cause)
    return ExitCode.INCOMPLETE if found.count(Outcome.UNKNOWN) else ExitCode.OK
