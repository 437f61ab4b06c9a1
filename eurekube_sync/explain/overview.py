"""The state of all syncers, a row each, the worst first. A row comes from the status of a syncer
that is in order, or else from its explanation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from eurekube_sync.apply.lost import Lost
from eurekube_sync.controller.diagnosis import held_by, problems_to_decide, unread_of
from eurekube_sync.controller.exit_codes import ExitCode, of_cause
from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import Claim, NotServed, Serving
from eurekube_sync.desired.similar import near_services
from eurekube_sync.desired.spec import class_of
from eurekube_sync.explain.chain import explain, limit_text
from eurekube_sync.explain.cluster import is_served_elsewhere, refused_by_its_installation
from eurekube_sync.explain.imports import explained_imports
from eurekube_sync.explain.links import (
    Explanation,
    Link,
    Mark,
    Outcome,
    Part,
    noted,
    out_of_scope,
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
from eurekube_sync.model.struct import replace
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


class Row(Struct, frozen=True, kw_only=True):
    syncer: SyncerObject
    status: SyncerStatus | None  # as computed by this look; None if unknown
    explanation: Explanation  # without links if all is well by the status
    lost: Lost | None = None  # of an app that callers do not find any more

    @property
    def apps(self) -> tuple[str, ...]:
        """Its app names; those of the last pass that resolved them, if it is not served."""
        if self.explanation.apps or self.status is None:
            return self.explanation.apps
        return self.status.apps

    @property
    def desired(self) -> int:
        """How many instances it should have; as its status says, if its app was lost."""
        if self.lost is not None and self.status is not None:
            return max(self.explanation.of, self.status.desired)
        return self.explanation.of

    @property
    def reason(self) -> str:
        """A word as in conditions; `InSync` if nothing is wrong."""
        if self.explanation.broken:
            return self.explanation.broken.reason
        if self.explanation.outcome is Outcome.UNKNOWN:
            return Reason.NOT_LOOKED_AT
        ready = _ready(self.status)
        if ready is None:
            return Reason.IN_SYNC
        return ready.reason

    @property
    def why(self) -> str:
        """The first broken link, the first unknown one, or what is notable; empty for nothing."""
        broken = self.explanation.broken
        if broken:
            texts = [broken.text]
            if broken.reason not in _WHOLE:
                texts += broken.details[:1]
            if self.lost is not None:
                texts.append(f"{Reason.LAST_INSTANCE_LOST}: {self.lost}")
            return "; ".join(texts)
        for link in self.explanation.links:
            if self.explanation.outcome is Outcome.UNKNOWN:
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
        return _since(self.syncer, self.explanation, self.reason)


class ImportRow(Struct, frozen=True, kw_only=True):
    import_: ImportObject
    status: ImportStatus  # as computed by this look
    explanation: Explanation

    @property
    def reason(self) -> str:
        """A word as in conditions; `InSync` if nothing is wrong."""
        if self.explanation.outcome is Outcome.UNKNOWN and not self.explanation.broken:
            return Reason.NOT_LOOKED_AT
        return self.explanation.reason or Reason.IN_SYNC

    @property
    def since(self) -> float | None:
        """As `Row.since`."""
        return _since(self.import_, self.explanation, self.reason)


def _since(
    row_of: SyncerObject | ImportObject, explanation: Explanation, reason: str
) -> float | None:
    """Return since when the reason of a row holds, as `Row.since` says."""
    broken = explanation.broken
    if broken is not None and broken.since is not None:
        return broken.since
    status = row_of.status
    if status is None or not status.conditions:
        return row_of.created
    reasons = {reason}
    if explanation.outcome is Outcome.NOT_REGISTERED:
        reasons.add(Reason.NONE_UP)  # its cause is what the row names
    times = []
    for condition in status.conditions:
        if condition.reason in reasons:
            times.append(condition.last_transition)
    return max(times, default=None)


class Renewals(Struct, frozen=True, kw_only=True):
    """What uncached reads of a sample of instances show of their renewals (`renewals_to_read`)."""

    oldest: float | None = None  # seconds since the oldest renewal; None if no instance was read
    read: int = 0  # instances
    unread: int = 0  # syncers that look old in Eureka's list and are not in the sample


class Overview(Struct, frozen=True, kw_only=True):
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
        return _number(self.rows, outcomes)

    def count_imports(self, *outcomes: Outcome) -> int:
        return _number(self.imports, outcomes)


def _number(rows: Iterable[Row | ImportRow], outcomes: Collection[Outcome]) -> int:
    number = 0
    for row in rows:
        if row.explanation.outcome in outcomes:
            number += 1
    return number


def overview(look: Look) -> Overview:
    """Sum up a look. It needs the Pods of the namespaces of `in_need`."""
    report = look.report
    rows = [*_served(look), *_others(look)]
    rows.sort(key=_worst_first)
    # The brake weighs all namespaces, so a look at one of them does not judge it.
    problems: tuple[Problem, ...] = ()
    if not look.narrowed:
        problems = tuple(problems_to_decide(report))
    conflicts = 0
    for block in report.plan.blocked:
        if block.conflict:
            conflicts += 1
    return Overview(
        rows=tuple(rows),
        look=look,
        eureka=look.listed if isinstance(look.listed, Unknown) else None,
        last_pass=last_pass_link(look, alone=False),
        renewals=_renewals(look),
        unread=unread_of(report),
        unselected=tuple(_unselected(look)),
        held=held_by(report),
        problems=problems,
        conflicts=conflicts,
        imports=tuple(_imports(look)),
        failing=failing(look),
        reached=reached_by_passes(look),
    )


def _worst_first(row: Row) -> tuple[int, SyncerRef]:
    return _ORDER.index(row.explanation.outcome), row.syncer.ref


def _unselected(look: Look) -> Iterator[str]:
    """Yield the Services of the named namespaces that no syncer selects, and no row names."""
    hinted = _hinted(look)
    for namespace in sorted(look.asked.namespaces or ()):
        for name in unselected(look, namespace):
            if (namespace, name) not in hinted:
                yield f"{namespace}/{name}"


def _imports(look: Look) -> Iterator[ImportRow]:
    report = look.report.imports
    if report is None:
        return
    for ref, explanation in explained_imports(look):
        import_ = report.claims[ref].import_
        status = report.all_statuses[ref]
        yield ImportRow(import_=import_, status=status, explanation=explanation)


def _hinted(look: Look) -> set[tuple[str, str]]:
    """Return the Services, by namespace and name, that a row names because its syncer nearly
    selects them."""
    hinted: set[tuple[str, str]] = set()
    for claim in claims_in(look.report).values():
        if isinstance(claim, NotServed) and claim.reason is Reason.NO_MATCHING_SERVICE:
            assert claim.spec is not None  # its selector matches no Service
            namespace = claim.spec.namespace
            labels = dict(claim.spec.selector.labels)
            services = services_in(look.report, namespace)
            for near in near_services(labels, services):
                hinted.update((namespace, name) for name in near.names)
    return hinted


def renewals_to_read(look: Look) -> frozenset[InstanceKey]:
    """Return the instances to read uncached before anything is said of renewals: for each syncer
    that looks as if nobody renewed it, the instance that the list shows with the oldest renewal. If
    there are too many, those of the oldest; if there is none, the oldest instance of all."""
    oldest = _oldest_by_syncer(look, claims_in(look.report))
    beside = _oldest_by_syncer(look, _out_of_scope(look))
    suspects = []
    for instance in (*oldest, *beside):
        if looks_silent(instance, look):
            suspects.append(instance)
    # Where nobody is suspected, one read shows that renewals go on.
    sample = suspects[:_MOST_READ] or oldest[:1]
    return frozenset(instance.key for instance in sample)


def _out_of_scope(look: Look) -> list[SyncerRef]:
    """Return the listed syncers that the given scope does not take."""
    beside = []
    for syncer in syncers_in(look.report):
        if not look.asked.takes(syncer):
            beside.append(syncer.ref)
    return beside


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
    """Sum up the uncached reads of `renewals_to_read`."""
    ages = []
    unread = 0
    for instance in _oldest_by_syncer(look, claims_in(look.report)):
        answers = look.uncached(instance.key)
        if not answers:
            if looks_silent(instance, look):
                unread += 1
        elif isinstance(answers[0], ObservedInstance):
            age = look.eureka_time - answers[0].renewed
            ages.append(max(0.0, age))  # their clocks may differ
    return Renewals(oldest=max(ages, default=None), read=len(ages), unread=unread)


def in_need(look: Look) -> frozenset[str]:
    """Return the namespaces of syncers that are not in order, whose Pods an explanation needs."""
    namespaces = set()
    for ref, claim in claims_in(look.report).items():
        if not _in_order(claim, look):
            namespaces.add(ref.namespace)
    return frozenset(namespaces)


def _served(look: Look) -> Iterator[Row]:
    """Make the rows of the syncers in scope. Only those that are not in order are explained."""
    report = look.report
    for ref, claim in claims_in(report).items():
        syncer = claim.syncer
        status = report.all_statuses.get(ref)
        if status is not None and _in_order(claim, look) and _is_renewed(ref, look):
            yield _by_its_status(syncer, status, limit_text(claim, status.up))
            continue
        what = What(Kind.SYNCER, ref.name, ref.namespace)
        subject = subject_of(what, report, claim, look)
        if subject is not None:
            explanation = explain(subject, look)
            lost = report.lost.get(ref)
            yield Row(syncer=syncer, status=status, explanation=explanation, lost=lost)


def _is_renewed(ref: SyncerRef, look: Look) -> bool:
    """Whether no instance of the syncer that was read uncached looks as if nobody renewed it. What
    was not read counts as renewed, because a list proves nothing else."""
    if isinstance(look.listed, Unknown):
        return False
    for instance in look.marked(ref):
        answers = look.uncached(instance.key)
        if not answers:
            continue
        held = answers[0]
        if isinstance(held, Unknown):
            held = instance  # no server answered, so the list is all there is
        if held is None or looks_silent(held, look):
            return False
    return True


def _in_order(claim: Claim, look: Look) -> bool:
    """Whether all wanted instances are UP by the pass's own count, and nothing waits."""
    syncer = claim.syncer
    status = look.report.all_statuses.get(syncer.ref)
    if status is None or not isinstance(claim, Serving) or claim.unready or claim.incomplete:
        return False
    # The installation may refuse, or not have read, what this look did.
    if refused_by_its_installation(syncer, look) is not None:
        return False
    if look.unread(syncer) is not None:
        return False
    for type_ in ("Ready", "Synced"):
        if not _is_true(status.condition(type_)):
            return False
    return status.up >= status.desired > 0


def _ready(status: SyncerStatus | None) -> Condition | None:
    return status.condition("Ready") if status else None


def _is_true(condition: Condition | None) -> bool:
    return condition is not None and condition.status is ConditionStatus.TRUE


def _by_its_status(syncer: SyncerObject, status: SyncerStatus, limited: str = "") -> Row:
    """Make a row without an explanation. A Ready that is not True is its one link, or else what a
    limit leaves out."""
    ready = _ready(status)
    outcome = Outcome.REGISTERED
    links: list[Link] = []
    if limited:
        links.append(noted(Part.LIMIT, limited))
    if ready is None:
        outcome = Outcome.NOT_REGISTERED
        links.append(Link(Part.STATUS, Mark.BROKEN, "", Reason.IN_SYNC))
    elif ready.status is not ConditionStatus.TRUE:
        outcome = Outcome.NOT_REGISTERED
        links.append(Link(Part.STATUS, Mark.BROKEN, ready.message, ready.reason))
    explanation = Explanation(
        about=str(syncer.ref),
        links=tuple(links),
        outcome=outcome,
        up=status.up,
        of=status.desired,
        apps=status.apps,
    )
    return Row(syncer=syncer, status=status, explanation=explanation)


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
        link = out_of_scope(class_of(syncer))
        outcome = Outcome.NOT_REGISTERED
        explanation = Explanation(about=str(syncer.ref), links=(link,), outcome=outcome)
        yield Row(syncer=syncer, status=None, explanation=explanation)


def chosen(whole: Overview, *, app: str | None = None, condition: str | None = None) -> Overview:
    """Return only the rows of an app, and of a condition or reason: `RemovalHeld`, `Ready=False`,
    `NotReady`."""
    rows = []
    for row in whole.rows:
        apps = (*row.apps, named_app(row.syncer))
        if _is_chosen(row, apps, app, condition):
            rows.append(row)
    imports = []
    for import_row in whole.imports:
        if _is_chosen(import_row, import_row.explanation.apps, app, condition):
            imports.append(import_row)
    left_out = len(whole.rows) - len(rows)
    return replace(whole, rows=tuple(rows), imports=tuple(imports), left_out=left_out)


def _is_chosen(
    row: Row | ImportRow, apps: Collection[str], app: str | None, condition: str | None
) -> bool:
    if app is not None and app.upper() not in apps:
        return False
    if condition is None or row.reason == condition:
        return True
    return has_condition(row.status, condition)


def parse_condition(given: str) -> str:
    """Read a condition or reason, as `chosen` takes it. Raises ValueError with a message for the
    user: a typo would choose nothing, and look like a cluster in order."""
    name, equals, status = given.strip().partition("=")
    if equals and status not in list(ConditionStatus):
        raise ValueError(f"{given!r}: write {name}=True, {name}=False or {name}=Unknown")
    known: list[str] = [*CONDITIONS]
    if not equals:
        known += list(Reason)
    if name not in known:
        raise ValueError(f"there is no condition or reason {name!r}{did_you_mean(name, known)}")
    return given.strip()


def has_condition(status: CustomStatus | None, condition: str) -> bool:
    """Whether a status has this reason, or a condition of this type and status, True by default."""
    if status is None:
        return False
    type_, _, value = condition.partition("=")
    present = status.condition(type_)
    if present is not None and present.status == (value or ConditionStatus.TRUE):
        return True
    return condition in [present.reason for present in status.conditions]


def code_of_overview(whole: Overview) -> ExitCode:
    """Return 0 only if all is known to be in sync. A broken syncer comes before a failed read."""
    broken = (Outcome.NOT_REGISTERED, Outcome.PARTLY)
    wrong = whole.count(*broken) + whole.count_imports(*broken)
    if wrong or whole.look.report.absent:
        return ExitCode.NOT_REGISTERED
    unknown = whole.count(Outcome.UNKNOWN) + whole.count_imports(Outcome.UNKNOWN)
    if unknown and whole.eureka is not None:
        return of_cause(Server.EUREKA, whole.eureka.cause)
    if whole.unlisted is not None:
        return of_cause(Server.KUBERNETES, whole.unlisted.cause)
    # What could not be read counts only if it leaves something unknown.
    if whole.unread and (unknown or not whole.rows):
        return of_cause(Server.KUBERNETES, whole.unread[0].source.cause)
    if unknown or whole.failing is not None:
        return ExitCode.INCOMPLETE
    return ExitCode.OK
