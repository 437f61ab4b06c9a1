"""The state of all syncers, a row each, the worst first. A row comes from the status of a syncer
that is in order, or else from its explanation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from eurekube_sync.apply.lost import Lost
from eurekube_sync.controller.diagnosis import held_by, problems_to_decide, unread_of
from eurekube_sync.controller.exit_codes import ExitCode, of_cause
from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import Claim, NotServed, Serving
from eurekube_sync.desired.similar import near_services
from eurekube_sync.desired.spec import class_of, parse, selected_namespace
from eurekube_sync.explain.chain import explain, limit_text
from eurekube_sync.explain.cluster import is_served_elsewhere, refused_by_its_installation
from eurekube_sync.explain.imports import explained_imports
from eurekube_sync.explain.links import (
    Explanation,
    Link,
    Mark,
    Outcome,
    Part,
    breaks,
    first_broken,
    noted,
)
from eurekube_sync.explain.missing import unselected
from eurekube_sync.explain.passes import failing, reached_by_passes
from eurekube_sync.explain.registry import last_pass_link, looks_silent
from eurekube_sync.explain.subject import (
    claims_in,
    named_app,
    services_in,
    subject_of,
    syncers_in,
)
from eurekube_sync.explain.what import Kind, What
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.faults import did_you_mean
from eurekube_sync.model.imports import ImportObject, ImportStatus
from eurekube_sync.model.kubernetes import (
    Condition,
    ConditionStatus,
    CustomStatus,
    SyncerObject,
    SyncerRef,
    SyncerStatus,
)
from eurekube_sync.model.problems import Problem
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Server, Unknown
from eurekube_sync.observe.kubernetes import SourceKind, Unread

_ORDER = list(Outcome)
CONDITIONS = ("Ready", "Synced", "Conflict", "RemovalHeld")  # as `apply/conditions` has them
_MOST_READ = 30  # instances that are read uncached; more would be a load for Eureka
_WHOLE = frozenset(
    {Reason.NOT_READY, Reason.DUPLICATE_REGISTRATION, Reason.OUT_OF_SERVICE, Reason.EXPIRED}
)
"""Reasons whose sentence needs no details."""
_NOTABLE = (Part.SUSPEND, Part.LIMIT, Part.DRAIN)
"""Of a registered syncer, show for example that it is suspended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    syncer: SyncerObject
    status: SyncerStatus | None  # as computed by this look; None if unknown
    found: Explanation  # without links if all is well by the status
    lost: Lost | None = None  # of an app that callers do not find any more

    @property
    def apps(self) -> tuple[str, ...]:
        """Its app names; those of the last pass that resolved them, if it is not served."""
        return self.found.apps or (self.status.apps if self.status is not None else ())

    @property
    def desired(self) -> int:
        """How many instances it should have; as its status says, if its app was lost."""
        if self.lost is not None and self.status is not None:
            return max(self.found.of, self.status.desired)
        return self.found.of

    @property
    def reason(self) -> str:
        """A word as in conditions; `InSync` if nothing is wrong."""
        if self.found.broken:
            return self.found.broken.reason
        if self.found.outcome is Outcome.UNKNOWN:
            return Reason.NOT_LOOKED_AT
        ready = _ready(self.status)
        return ready.reason if ready else Reason.IN_SYNC

    @property
    def why(self) -> str:
        """The first broken link, the first unknown one, or what is notable; empty for nothing."""
        broken = self.found.broken
        if broken:
            details = () if broken.reason in _WHOLE else broken.details[:1]
            texts = [broken.text, *details]
            if self.lost is not None:
                texts.append(f"{Reason.LAST_INSTANCE_LOST}: {self.lost}")
            return "; ".join(texts)
        for link in self.found.links:
            if self.found.outcome is Outcome.UNKNOWN:
                tells = link.mark is Mark.UNKNOWN
            else:
                tells = link.mark is Mark.NOTE and link.part in _NOTABLE
            if tells:
                return link.text
        return ""

    @property
    def since(self) -> float | None:
        """Since when the row's reason holds, in Unix seconds: as the broken link says, as the
        latest condition with this reason, or since the creation, if no pass wrote a status. None if
        it is unknown."""
        return _since(self.syncer, self.found, self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRow:
    import_: ImportObject
    status: ImportStatus  # as computed by this look
    found: Explanation

    @property
    def reason(self) -> str:
        """A word as in conditions; `InSync` if nothing is wrong."""
        if self.found.outcome is Outcome.UNKNOWN and not self.found.broken:
            return Reason.NOT_LOOKED_AT
        return self.found.reason or Reason.IN_SYNC

    @property
    def since(self) -> float | None:
        """As `Row.since`."""
        return _since(self.import_, self.found, self.reason)


def _since(row_of: SyncerObject | ImportObject, found: Explanation, reason: str) -> float | None:
    broken = found.broken
    if broken is not None and broken.since is not None:
        return broken.since
    status = row_of.status
    if status is None or not status.conditions:
        return row_of.created
    reasons = {reason}
    if found.outcome is Outcome.NOT_REGISTERED:
        reasons.add(Reason.NONE_UP)  # its cause is what the row names
    times = []
    for condition in status.conditions:
        if condition.reason in reasons:
            times.append(condition.last_transition)
    return max(times, default=None)


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
    unread: tuple[Unread, ...]  # the unknown sources of Kubernetes
    # Services of the named namespaces that no syncer selects, as `namespace/name`
    unselected: tuple[str, ...]
    held: int
    problems: tuple[Problem, ...] = ()  # those of the whole installation that wait for a person
    conflicts: int
    imports: tuple[ImportRow, ...] = ()  # the worst first
    left_out: int = 0  # rows that the filters left out
    dropped: tuple[str, ...] = ()  # for each CRD that is older: which fields it drops
    failing: Problem | None = None  # why the passes of the installation are not good
    reached: str = ""  # that the passes can read Eureka, and this machine cannot; else empty

    @property
    def unlisted(self) -> Unknown | None:
        """The reason why syncers may be missing from the rows; None if all were listed."""
        for failed in self.unread:
            if failed.kind is SourceKind.SYNCERS:
                return failed.source
        return None

    def count(self, *outcomes: Outcome) -> int:
        return len([row for row in self.rows if row.found.outcome in outcomes])

    def count_imports(self, *outcomes: Outcome) -> int:
        return len([row for row in self.imports if row.found.outcome in outcomes])


def overview(look: Look) -> Overview:
    """Sum up a look. It needs the Pods of the namespaces of `in_need`."""
    report = look.report
    rows = [*_served(look), *_others(look)]
    rows.sort(key=lambda row: (_ORDER.index(row.found.outcome), row.syncer.ref))
    hinted = _hinted(look)
    services = []
    for namespace in sorted(look.asked.namespaces or ()):
        for name in unselected(look, namespace):
            if (namespace, name) not in hinted:
                services.append(f"{namespace}/{name}")
    return Overview(
        rows=tuple(rows),
        look=look,
        eureka=look.listed if isinstance(look.listed, Unknown) else None,
        last_pass=last_pass_link(look, alone=False),
        renewals=_renewals(look),
        unread=unread_of(report),
        unselected=tuple(services),
        held=held_by(report),
        # The brake weighs all namespaces, so a look at one of them does not judge it.
        problems=() if look.narrowed else tuple(problems_to_decide(report)),
        conflicts=len([blocked for blocked in report.plan.blocked if blocked.conflict]),
        imports=tuple(_imports(look)),
        failing=failing(look),
        reached=reached_by_passes(look),
    )


def _imports(look: Look) -> Iterator[ImportRow]:
    report = look.report.imports
    if report is None:
        return
    for ref, found in explained_imports(look):
        import_ = report.claims[ref].import_
        yield ImportRow(import_=import_, status=report.all_statuses[ref], found=found)


def _hinted(look: Look) -> set[tuple[str, str]]:
    """Return the Services, by namespace and name, that a row names because its syncer nearly
    selects them."""
    hinted: set[tuple[str, str]] = set()
    for claim in claims_in(look.report).values():
        if isinstance(claim, NotServed) and claim.reason is Reason.NO_MATCHING_SERVICE:
            namespace = selected_namespace(claim.syncer)
            labels = dict(parse(claim.syncer).selector.labels)
            for near in near_services(labels, services_in(look.report, namespace)):
                hinted.update((namespace, name) for name in near.names)
    return hinted


def renewals_to_read(look: Look) -> frozenset[InstanceKey]:
    """Return the instances to read uncached before anything is said of renewals: for each syncer
    that looks as if nobody renewed it, the instance that the list shows with the oldest renewal. If
    there are too many, those of the oldest; if there is none, the oldest instance of all."""
    oldest = _oldest_by_syncer(look, claims_in(look.report))
    beside = [syncer.ref for syncer in syncers_in(look.report) if not look.asked.takes(syncer)]
    suspects = []
    for instance in (*oldest, *_oldest_by_syncer(look, beside)):
        if looks_silent(instance, look):
            suspects.append(instance)
    return frozenset(instance.key for instance in (suspects or oldest[:1])[:_MOST_READ])


def _oldest_by_syncer(look: Look, syncers: Iterable[SyncerRef]) -> list[ObservedInstance]:
    """Return the listed instance of each of these syncers that has the oldest renewal, the oldest
    first."""
    oldest = []
    for ref in syncers:
        renewed = []
        for instance in look.marked(ref):
            # Eureka renews no instance whose status is UNKNOWN.
            if instance.last_renewal and instance.status is not InstanceStatus.UNKNOWN:
                renewed.append(instance)
        if renewed:
            oldest.append(min(renewed, key=_by_renewal))
    return sorted(oldest, key=_by_renewal)


def _by_renewal(instance: ObservedInstance) -> tuple[float, InstanceKey]:
    return instance.renewed, instance.key


def _renewals(look: Look) -> Renewals:
    ages = []
    unread = 0
    for instance in _oldest_by_syncer(look, claims_in(look.report)):
        answers = look.uncached(instance.key)
        if not answers:
            unread += looks_silent(instance, look)
        elif isinstance(answers[0], ObservedInstance):
            ages.append(max(0.0, look.eureka_time - answers[0].renewed))
    return Renewals(oldest=max(ages, default=None), read=len(ages), unread=unread)


def in_need(look: Look) -> frozenset[str]:
    """Return the namespaces of syncers that are not in order, whose Pods an explanation needs."""
    namespaces = set()
    for ref, claim in claims_in(look.report).items():
        if not _in_order(claim, look):
            namespaces.add(ref.namespace)
    return frozenset(namespaces)


def _served(look: Look) -> Iterator[Row]:
    report = look.report
    for ref, claim in claims_in(report).items():
        status = report.all_statuses.get(ref)
        if status is not None and _in_order(claim, look) and _is_renewed(ref, look):
            yield _by_its_status(claim.syncer, status, limit_text(claim, status.up))
            continue
        subject = subject_of(What(Kind.SYNCER, ref.name, ref.namespace), report, claim, look)
        if subject is not None:
            found = explain(subject, look)
            yield Row(syncer=claim.syncer, status=status, found=found, lost=report.lost.get(ref))


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


def _in_order(claim: Claim, look: Look) -> bool:
    """Whether all wanted instances are UP by the pass's own count, and nothing waits."""
    status = look.report.all_statuses.get(claim.syncer.ref)
    if status is None or not isinstance(claim, Serving) or claim.unready or claim.incomplete:
        return False
    if refused_by_its_installation(claim.syncer, look) is not None:
        return False
    if look.unread(claim.syncer) is not None:
        return False
    synced = _is_true(_ready(status)) and _is_true(status.condition("Synced"))
    return synced and status.up >= status.desired > 0


def _ready(status: SyncerStatus | None) -> Condition | None:
    return status.condition("Ready") if status else None


def _is_true(condition: Condition | None) -> bool:
    return condition is not None and condition.status is ConditionStatus.TRUE


def _by_its_status(syncer: SyncerObject, status: SyncerStatus, limited: str = "") -> Row:
    """Make a row without an explanation. A Ready that is not True is its one link, or else what a
    limit leaves out."""
    ready = _ready(status)
    links: list[Link] = []
    if limited:
        links.append(noted(Part.LIMIT, limited))
    if not _is_true(ready):
        reason, text = (ready.reason, ready.message) if ready else (Reason.IN_SYNC, "")
        links.append(Link(Part.STATUS, Mark.BROKEN, text, reason))
    found = Explanation(
        about=str(syncer.ref),
        links=tuple(links),
        outcome=Outcome.REGISTERED if first_broken(links) is None else Outcome.NOT_REGISTERED,
        up=status.up,
        of=status.desired,
        apps=status.apps,
    )
    return Row(syncer=syncer, status=status, found=found)


def _others(look: Look) -> Iterator[Row]:
    """Make the rows of syncers out of scope. Their own status shows whether another installation
    serves them."""
    claims = claims_in(look.report)
    for syncer in syncers_in(look.report):
        if syncer.ref in claims:
            continue
        if syncer.status is not None and is_served_elsewhere(syncer, look):
            yield _by_its_status(syncer, syncer.status)
            continue
        name = class_of(syncer)
        served = f"class {name}" if name else "it, and the scope given here excludes it"
        text = f"no installation seems to serve {served}"
        link = breaks(Part.SERVED, Reason.NO_INSTALLATION, text)
        found = Explanation(about=str(syncer.ref), links=(link,), outcome=Outcome.NOT_REGISTERED)
        yield Row(syncer=syncer, status=None, found=found)


def chosen(found: Overview, *, app: str | None = None, condition: str | None = None) -> Overview:
    """Return only the rows of an app, and of a condition or reason: `RemovalHeld`, `Ready=False`,
    `NotReady`."""
    rows = []
    for row in found.rows:
        of_app = app is None or app.upper() in (*row.apps, named_app(row.syncer))
        if of_app and (condition is None or _has(row, condition)):
            rows.append(row)
    imports = []
    for import_row in found.imports:
        of_app = app is None or app.upper() in import_row.found.apps
        if of_app and (condition is None or _has(import_row, condition)):
            imports.append(import_row)
    left_out = len(found.rows) - len(rows)
    return replace(found, rows=tuple(rows), imports=tuple(imports), left_out=left_out)


def parse_condition(given: str) -> str:
    """Read a condition or reason, as `chosen` takes it. Raises ValueError with a message for the
    user: a typo would choose nothing, and look like a cluster in order."""
    name, equals, status = given.strip().partition("=")
    if equals and status not in list(ConditionStatus):
        raise ValueError(f"{given!r}: write {name}=True, {name}=False or {name}=Unknown")
    known = [*CONDITIONS, *([] if equals else Reason)]
    if name not in known:
        raise ValueError(f"there is no condition or reason {name!r}{did_you_mean(name, known)}")
    return given.strip()


def _has(row: Row | ImportRow, condition: str) -> bool:
    """Whether the row has this reason, or a condition of this type and status, True by default."""
    return row.reason == condition or has_condition(row.status, condition)


def has_condition(status: CustomStatus | None, condition: str) -> bool:
    """Whether a status has this reason, or a condition of this type and status, True by default."""
    type_, _, value = condition.partition("=")
    wanted = (type_, value or ConditionStatus.TRUE)
    for present in status.conditions if status else ():
        if present.reason == condition or (present.type, present.status) == wanted:
            return True
    return False


def code_of_overview(found: Overview) -> ExitCode:
    """Return 0 only if all is known to be in sync. A broken syncer comes before a failed read."""
    wrong = (Outcome.NOT_REGISTERED, Outcome.PARTLY)
    if found.count(*wrong) or found.count_imports(*wrong) or found.look.report.absent:
        return ExitCode.NOT_REGISTERED
    unknown = found.count(Outcome.UNKNOWN) + found.count_imports(Outcome.UNKNOWN)
    if unknown and found.eureka is not None:
        return of_cause(Server.EUREKA, found.eureka.cause)
    if found.unlisted is not None:
        return of_cause(Server.KUBERNETES, found.unlisted.cause)
    if found.unread and (unknown or not found.rows):
        return of_cause(Server.KUBERNETES, found.unread[0].source.cause)
    if unknown or found.failing is not None:
        return ExitCode.INCOMPLETE
    return ExitCode.OK
