"""What is wrong after a pass, and what somebody may wonder about. The report, the log of outages
and the exit code are views of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from shlex import quote
from typing import TypeVar, assert_never

from eurekube_sync.apply.conditions import OLD_LIST, nothing_wanted
from eurekube_sync.apply.import_status import without_endpoints
from eurekube_sync.brake.approval import approve_command
from eurekube_sync.brake.holds import Held, to_keep
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import (
    Claim,
    Deleting,
    NotServed,
    OverLimit,
    Serving,
    Taken,
    Wanted,
    every,
)
from eurekube_sync.desired.imports import Ending, Importing, NotImported
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, class_of, ignored_value
from eurekube_sync.model.actions import Outcome, Result
from eurekube_sync.model.docs import page
from eurekube_sync.model.errors import ClusterError
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus
from eurekube_sync.model.imports import ImportRef, ImportStatus
from eurekube_sync.model.kubernetes import ConditionStatus, SyncerObject, SyncerRef, SyncerStatus
from eurekube_sync.model.problems import Problem
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Complete, Server, Unknown
from eurekube_sync.model.text import and_more, counted, duration, one_or_more, rfc_3339, some_of
from eurekube_sync.observe.former import FormerRenewed, FormerUnread
from eurekube_sync.observe.kubernetes import SourceKind, Unread, unread
from eurekube_sync.plan.value import Blocked, Obstacle

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

WRITES_TO_EUREKA = "writes to Eureka"
WRITES_TO_KUBERNETES = "writes to Kubernetes"
OWNER_NAME = "owner name"


def problems_of(report: PassReport) -> Iterator[Problem]:
    """Yield the problems of a pass, the first to see to first. Its exit code is that of the first
    which has one."""
    yield from problems_of_the_pass(report)
    yield from _of_claims(report)
    yield from _of_imports(report)
    yield from _of_conflicts(report)
    yield from _of_put_out(report)


def problems_to_decide(report: PassReport) -> Iterator[Problem]:
    """Yield the problems of the whole installation that wait for a person: owners, and what is
    held."""
    yield from _of_owners(report)
    yield from _of_holds(report)
    for problem in _of_held_endpoints(report):
        if problem.reason is Reason.REMOVAL_HELD:
            yield problem


def problems_of_the_pass(report: PassReport) -> Iterator[Problem]:
    """Yield the problems that are of no single syncer."""
    yield from _of_owners(report)
    yield from _of_kubernetes(report)
    yield from _of_eureka(report)
    yield from _of_approval(report)
    yield from _of_the_deadline(report)
    yield from _of_writes_to_eureka(report)
    yield from _of_former_owners(report)
    yield from _of_writes_to_kubernetes(report)
    yield from _of_second_reads(report)
    yield from _of_lost_apps(report)
    yield from _of_holds(report)
    yield from _of_held_endpoints(report)
    yield from _of_scope(report)


def problems_of_sources(report: PassReport) -> list[Problem]:
    """Return the problems of what fails as a whole, such as a list, or the writes to Eureka."""
    return [problem for problem in problems_of_the_pass(report) if problem.source]


# --- Owners ---------------------------------------------------------------------------------------


def _of_owners(report: PassReport) -> Iterator[Problem]:
    """Yield who else may change what this installation changes."""
    clashes = report.clashes
    # A pass that looks goes on in spite of a clash, so its list has them.
    if report.settings.looks and isinstance(report.registry, Complete):
        clashes = report.registry.data.clashes
    for cluster in clashes:
        text = (
            f"owner clash: the cluster with UID {cluster} uses the same --owner; give each "
            "cluster its own. If this cluster replaces that one: eurekube-sync run "
            f"--former-cluster {quote(cluster)}"
        )
        if not report.settings.dry_run:
            text = f"{text}. Our instances were renewed, and nothing else was done"
        yield Problem(reason=Reason.OWNER_CLASH, subject="", text=text, source=OWNER_NAME)
    for other in report.other_owners:
        reason = Reason.OTHER_OWNER
        if other.stops_us:
            reason = Reason.OWNER_CLASH
        yield Problem(reason=reason, subject="", text=other.sentence, source=OWNER_NAME)
    yield from _of_imports_of_others(report)
    for verdict in report.former:
        if isinstance(verdict, FormerRenewed):
            text = verdict.sentence
            yield Problem(reason=Reason.OWNER_CLASH, subject="", text=text, source=OWNER_NAME)


def _of_imports_of_others(report: PassReport) -> Iterator[Problem]:
    """Report the imports that another owner keeps up to date, together for each owner."""
    if report.imports is None:
        return
    kept: list[NotImported] = []
    for claim in report.imports.claims.values():
        if isinstance(claim, NotImported) and claim.reason is Reason.OWNER_CLASH:
            kept.append(claim)
    ours = report.settings.owner
    for owner, claims in _grouped(kept, _keeper):
        first = claims[0].import_.ref
        number = len(claims)
        are = one_or_more(number, "is kept", "are kept")
        left = one_or_more(number, "it is left alone", "they are left alone")
        text = (
            f"owner clash: import {first}{and_more(number)} {are} up to date by owner {owner}, so "
            f"{left}. Is --owner {ours} right? To change the name: eurekube-sync run --owner "
            f"{ours} --former-owner {quote(owner)}"
        )
        yield Problem(reason=Reason.OWNER_CLASH, subject="", text=text, source=OWNER_NAME)


def _keeper(claim: NotImported) -> str:
    """Return the owner that keeps the import up to date."""
    status = claim.import_.status
    assert status is not None  # it names the other owner
    return status.owner


def _of_former_owners(report: PassReport) -> Iterator[Problem]:
    """Report that it is not known whether a former installation is at work. The next pass asks
    again."""
    for verdict in report.former:
        if isinstance(verdict, FormerUnread):
            yield Problem(
                reason=Reason.FORMER_OWNER_UNREAD,
                subject="",
                text=verdict.sentence,
                source=OWNER_NAME,
            )


# --- What could not be read -----------------------------------------------------------------------


def _of_kubernetes(report: PassReport) -> Iterator[Problem]:
    """Yield a problem for each kind of list and each cause, not for each namespace."""
    failed = _grouped(unread_of(report), lambda unread: (unread.kind, unread.source.cause))
    for (kind, cause), alike in failed:
        first, *others = alike
        text = first.source.message
        if others:
            names = [other.name for other in others]
            text = f"{text}; likewise {some_of(names)}"
        server: Server | None = Server.KUBERNETES
        # Without the right to read them, drains are not followed. That must not stop a rollout.
        if not first.needed and cause is Cause.DENIED:
            server = None
        yield Problem(
            reason=Reason(cause), subject=first.name, text=text, source=kind, server=server
        )
    if report.view is not None and isinstance(report.view.identity, Unknown):
        return  # told above
    if report.imports is None or report.imports.doubt is None:
        return
    doubt = report.imports.doubt
    yield Problem(
        reason=Reason(doubt.cause),
        subject=SourceKind.API.value,
        text=doubt.message,
        source=SourceKind.API,
        server=Server.KUBERNETES,
    )


def unread_of(report: PassReport) -> tuple[Unread, ...]:
    """Return the sources that the pass could not read from Kubernetes."""
    if report.imports is None:
        return unread(report.view)
    return unread(report.view, report.imports.view)


def _of_eureka(report: PassReport) -> Iterator[Problem]:
    """Yield why Eureka's list could not be read, or that it is old."""
    registry = report.registry
    if isinstance(registry, Unknown):
        text = registry.message
        alike = 0
        for outcome in report.outcomes.failures:
            if outcome.cause is registry.cause:
                alike += 1
        if alike:
            text = f"{text}. {counted(alike, 'renewal')} failed for the same reason"
        yield Problem(
            reason=Reason(registry.cause),
            subject="Eureka",
            text=text,
            source=Server.EUREKA.value,
            server=Server.EUREKA,
        )
    elif registry.data.outdated is not None:
        age = round(registry.data.asked - registry.data.outdated)
        text = (
            f"{OLD_LIST}. The list is at least {duration(age)} old. Instances were read one by "
            "one where that may matter"
        )
        yield Problem(reason=Reason.LIST_OUTDATED, subject="", text=text)


def _of_second_reads(report: PassReport) -> Iterator[Problem]:
    """Report the instances that could not be read again, so that they were not changed."""
    unread: list[Blocked] = []
    for blocked in report.plan.blocked:
        if blocked.obstacle is Obstacle.UNREAD and not blocked.late:
            unread.append(blocked)
    if unread:
        first = unread[0]
        text = f"{first.why}{and_more(len(unread))}"
        yield Problem(reason=Reason.NOT_READ_AGAIN, subject=str(first.key), text=text)


# --- What could not be written --------------------------------------------------------------------


def _of_the_deadline(report: PassReport) -> Iterator[Problem]:
    """Yield that the pass had too little time, and how much it left."""
    if not report.cut_short:
        return
    text = "the pass was cut short by its deadline or a signal"
    left = not_tried(report)
    if left:
        were = one_or_more(left, "was", "were")
        text = f"{text}; {counted(left, 'action')} {were} not tried"
    yield Problem(reason=Reason.CUT_SHORT, subject="", text=f"{text}. The next pass continues")


def not_tried(report: PassReport) -> int:
    """Return the number of actions for which the pass had no time."""
    number = report.outcomes.count(Result.NOT_TRIED)
    for blocked in report.plan.blocked:
        if blocked.late:
            number += 1
    if report.imports is not None:
        for outcome in report.imports.outcomes.values():
            if outcome.late:
                number += 1
    return number


def _of_writes_to_eureka(report: PassReport) -> Iterator[Problem]:
    """Report the failed calls, those of the whole server first. What an unread list explains is not
    told again."""
    explained: Cause | None = None
    if isinstance(report.registry, Unknown):
        explained = report.registry.cause
    of_server: list[Outcome] = []
    of_instances: list[Outcome] = []
    for outcome in report.outcomes.failures:
        if outcome.cause is None:
            if outcome.result is not Result.NOT_TRIED:
                of_instances.append(outcome)
        elif outcome.cause is not explained:
            of_server.append(outcome)
    # A refused login comes first: it does not end by itself.
    of_server.sort(key=lambda outcome: outcome.cause is not Cause.DENIED)

    some_work = report.outcomes.succeeded > 0 or explained is not None
    for cause, alike in _grouped(of_server, lambda outcome: outcome.cause):
        first = alike[0]
        assert cause is not None  # `of_server` has only failures with a cause
        text = f"{first.detail}{and_more(len(alike))}"
        if some_work:
            yield Problem(reason=Reason.WRITE_FAILED, subject=str(first.action.key), text=text)
        else:
            yield Problem(
                reason=Reason(cause),
                subject="no write to Eureka works",
                text=text,
                source=WRITES_TO_EUREKA,
                server=Server.EUREKA,
            )
    for _, alike in _grouped(of_instances, lambda outcome: (outcome.result, outcome.detail)):
        first = alike[0]
        text = f"{first.detail}{and_more(len(alike))}"
        yield Problem(reason=Reason.WRITE_FAILED, subject=str(first.action.key), text=text)


def _of_writes_to_kubernetes(report: PassReport) -> Iterator[Problem]:
    """Report the failed writes of each kind of error together."""
    errors = list(report.cluster_errors)
    if report.imports is not None:
        errors += report.imports.failures
    for _, alike in _grouped(errors, type):
        error: ClusterError = alike[0]
        text = f"{error}{and_more(len(alike))}"
        if error.cause is None:
            yield Problem(reason=Reason.WRITE_FAILED, subject="Kubernetes", text=text)
        else:
            yield Problem(
                reason=Reason(error.cause),
                subject="Kubernetes",
                text=text,
                source=WRITES_TO_KUBERNETES,
                server=Server.KUBERNETES,
            )


# --- Removals -------------------------------------------------------------------------------------


def _of_approval(report: PassReport) -> Iterator[Problem]:
    """Yield why `--approve` released nothing."""
    approve = f"--approve {report.approved}"
    if report.approval_refused is not None:
        text = f"{report.approval_refused}. Nothing was released"
        yield Problem(reason=Reason.APPROVAL_REFUSED, subject=approve, text=text)
    elif report.approved is not None and not _releases(report):
        text = "the plan has changed, so nothing was approved"
        yield Problem(reason=Reason.NOTHING_RELEASED, subject=approve, text=text)


def _releases(report: PassReport) -> bool:
    """Say whether the approval released any removal, of instances or of endpoints."""
    if report.imports is not None and report.imports.approved:
        return True
    return bool(report.released)


def _of_held_endpoints(report: PassReport) -> Iterator[Problem]:
    """Report the endpoints of imports that stay for now. What only waits for a young registry ends
    by itself, and is no failure."""
    if report.imports is None or report.imports.held is None:
        return
    held = report.imports.held
    count = len(held.removals)
    stay = one_or_more(count, "1 endpoint stays", f"{count} endpoints stay")
    since = _since(report, report.imports.all_statuses)
    text = f"{stay}{since}, because {held.reason}"
    if all(hold.reason is Reason.REGISTRY_YOUNG for hold in held.holds):
        yield Problem(reason=Reason.REGISTRY_YOUNG, subject="imports", text=text)
        return
    command = approve_command(held.plan_id, report.settings.options)
    text = f"{text}. To release the held removals of all imports: {command}"
    yield Problem(reason=Reason.REMOVAL_HELD, subject="imports", text=text, edition=held.plan_id)


def _of_holds(report: PassReport) -> Iterator[Problem]:
    problem = hold_of(report)
    if problem is not None:
        yield problem


def hold_of(report: PassReport) -> Problem | None:
    """Return what is held, with the evidence of the pods and both ways out; None for nothing."""
    held = report.held
    if held is None:
        return None
    count = len(held.removals)
    waits = one_or_more(count, "1 removal waits", f"{count} removals wait")
    since = _since(report, report.all_statuses)
    parts = [f"{waits}{since}, because {held.reason}."]
    evidence = held.evidence()
    if evidence is not None:
        parts.append(f"{evidence.sentence}.")
    parts.append(f"Held instances keep their status and are renewed ({page('brake')}).")
    syncers = holding(report, held)
    if syncers:
        parts.append(to_keep(syncers[0]))
    approve = approve_command(held.plan_id, report.settings.options)
    parts.append(
        f"To release the held removals of all syncers, even while a daemon runs: {approve}"
    )
    text = " ".join(parts)
    return Problem(reason=Reason.REMOVAL_HELD, subject="held", text=text, edition=held.plan_id)


def holding(report: PassReport, held: Held) -> list[SyncerRef]:
    """Return the syncers that exist and have removals which wait for a person."""
    if report.desired is None:
        return []
    syncers: set[SyncerRef] = set()
    for removal in held.for_a_person:
        if removal.syncer in report.desired.claims:
            syncers.add(removal.syncer)
    return sorted(syncers)


def held_by(report: PassReport) -> int:
    """Count the held removals: of instances, and of the endpoints of imports."""
    number = 0
    if report.held is not None:
        number += len(report.held.removals)
    if report.imports is not None and report.imports.held is not None:
        number += len(report.imports.held.removals)
    return number


def _since(report: PassReport, statuses: Mapping[K, SyncerStatus | ImportStatus]) -> str:
    """Return since when removals are held, as words; empty if only since this pass."""
    since = held_since(statuses)
    if since is None or since >= int(report.at):
        return ""
    return f" since {rfc_3339(since)}"


def held_since(statuses: Mapping[K, SyncerStatus | ImportStatus]) -> float | None:
    """Return since when removals are held without a break, in Unix seconds; None if no status
    shows it."""
    times = []
    for status in statuses.values():
        held = status.condition("RemovalHeld")
        if held is not None and held.status is ConditionStatus.TRUE:
            times.append(held.last_transition)
    return min(times, default=None)


# --- Syncers --------------------------------------------------------------------------------------


def _of_lost_apps(report: PassReport) -> Iterator[Problem]:
    for ref, lost in sorted(report.lost.items()):
        yield _of_syncer(ref, Reason.LAST_INSTANCE_LOST, str(lost))


def _of_syncer(ref: SyncerRef, reason: Reason, text: str, *, note: bool = False) -> Problem:
    return Problem(reason=reason, subject=str(ref), text=text, syncer=True, note=note)


def _of_scope(report: PassReport) -> Iterator[Problem]:
    """Say why no syncer is in scope, or which namespaces do not exist; or that `keepalive` found no
    instance."""
    if report.view is None:
        if isinstance(report.registry, Unknown) or report.plan.actions or report.plan.blocked:
            return
        text = "nothing to renew: are --owner, --cluster and --namespace right?"
        yield Problem(reason=Reason.NOTHING_FOUND, subject="", text=text)
        return
    if report.desired is None:
        return
    if report.imports is not None and report.imports.claims:
        return  # an installation may be for imports alone
    syncers = report.view.syncers
    sources = list(syncers.by_namespace.values())
    if not report.settings.scope.namespaces:
        sources.append(syncers.elsewhere)
    # What could not be listed may have syncers.
    if report.desired.claims or any(isinstance(source, Unknown) for source in sources):
        for name in report.absent:
            text = f"namespace {name} does not exist"
            yield Problem(reason=Reason.NOTHING_FOUND, subject="", text=text)
        return
    listed = list(every(syncers))
    text = f"no EurekaSyncer in scope ({_why_none(report, listed)})"
    yield Problem(reason=Reason.NO_SYNCER, subject="", text=text)


def all_absent(report: PassReport) -> bool:
    """Say whether the pass was only for namespaces that do not exist."""
    return bool(report.absent) and frozenset(report.absent) == report.settings.scope.namespaces


def _why_none(report: PassReport, listed: list[SyncerObject]) -> str:
    """Return why none of the listed syncers is in scope."""
    scope = report.settings.scope
    if all_absent(report):
        return " and ".join(f"namespace {name} does not exist" for name in report.absent)
    if not listed:
        where = "the cluster"
        if scope.namespaces:
            where = ", ".join(sorted(scope.namespaces))
        return f"there is none in {where}"
    if any(class_of(syncer) == scope.syncer_class for syncer in listed):
        options = " ".join(scope.options)
        return f"{options} selects none of the {counted(len(listed), 'syncer')}"
    if scope.syncer_class:
        return f"no syncer has class {scope.syncer_class}"
    return f"each has a class, such as {class_of(listed[0])}; serve it with --syncer-class"


def _of_claims(report: PassReport) -> Iterator[Problem]:
    """Report the problems of each syncer, and why a syncer has fewer instances UP than its Services
    have endpoints."""
    if report.desired is None:
        return
    reported = {failed.source for failed in unread_of(report)}
    in_rows = _in_rows(report)
    for ref, claim in sorted(report.desired.claims.items()):
        ignored = ignored_value(claim.syncer.annotations, ABANDON_ANNOTATION)
        if ignored:
            yield _of_syncer(ref, Reason.IGNORED_ANNOTATION, ignored)
        match claim:
            case NotServed():
                # A list that failed is reported once, and not for each syncer.
                if claim.source not in reported:
                    yield _of_syncer(ref, claim.reason, claim.message)
            case Serving():
                yield from _of_serving(ref, claim, report, in_rows)
            case Deleting():
                yield from _of_deleting(ref, report)
            case _:  # pragma: no cover
                assert_never(claim)
    if report.settings.dry_run:
        for ref, message in of_other_classes(report):
            yield _of_syncer(ref, Reason.OTHER_CLASS, message, note=True)


def _of_serving(
    ref: SyncerRef, claim: Serving, report: PassReport, in_rows: Set[InstanceKey]
) -> Iterator[Problem]:
    """Yield the problems of a served syncer. `in_rows` are the instances with a row of a table."""
    if report.settings.dry_run:
        for note in claim.notes:
            yield _of_syncer(ref, Reason.OVER_LIMIT, note, note=True)
    for incomplete in claim.incomplete:
        yield _of_syncer(ref, incomplete.reason, incomplete.message)
    for warning in claim.warnings:
        yield _of_syncer(ref, Reason.WARNING, warning)
    for rival, alike in _grouped(claim.rivals.items(), lambda item: item[1]):
        key, _ = alike[0]
        text = f"{key}: {rival}{and_more(len(alike))}"
        yield _of_syncer(ref, Reason.CONFLICT, text)
    account = account_of(claim)
    if account is None:
        return
    reason, message = account
    if reason is Reason.NOT_READY and claim.unready.keys() <= in_rows:
        return  # the rows of the table say it
    yield _of_syncer(ref, reason, message, note=True)


def _in_rows(report: PassReport) -> set[InstanceKey]:
    """Return the instances that the table has a row of."""
    in_rows = {change.key for change in report.plan.changes}
    if report.held is not None:
        in_rows.update(removal.key for removal in report.held.removals)
    return in_rows


def account_of(claim: Claim) -> tuple[Reason, str] | None:
    """Return the reason and message why a served syncer has instances not UP; None if its instances
    are UP or will be, or if other problems explain it."""
    if not isinstance(claim, Serving):
        return None
    if claim.spec.suspend:
        return Reason.SUSPENDED, "its instances are renewed, and not changed"
    if claim.incomplete or claim.unclear:
        return None
    verdicts = claim.verdicts.values()
    meant = any(isinstance(verdict, Wanted | OverLimit | Taken) for verdict in verdicts)
    if claim.unready or not meant:
        return nothing_wanted(claim)
    whys: list[str] = []
    for wanted in claim.wanted.values():
        if wanted.drained:
            whys.append(wanted.why)
    if not whys:
        return None
    message = min(whys)
    if len(whys) < len(claim.wanted):
        message = f"{len(whys)} of {counted(len(claim.wanted), 'instance')}: {message}"
    return Reason.DRAINED, message


def _of_deleting(ref: SyncerRef, report: PassReport) -> Iterator[Problem]:
    """Yield why the syncer is not gone yet, as its status says it."""
    if report.settings.dry_run or ref not in report.all_statuses:
        return
    synced = report.all_statuses[ref].condition("Synced")
    if synced is not None:
        yield _of_syncer(ref, Reason.DELETING, synced.message)


def of_other_classes(report: PassReport) -> Iterator[tuple[SyncerRef, str]]:
    """Yield the listed syncers of other classes, which this installation does not serve, each with
    a message."""
    if report.view is None or report.desired is None:
        return
    ours = report.settings.scope.syncer_class
    served = f"class {ours}" if ours else "syncers without a class"
    for syncer in every(report.view.syncers):
        named = class_of(syncer)
        if named == ours:
            continue
        own = f"spec.syncerClass is {named}" if named else "it names no class"
        yield syncer.ref, f"{own}, and this installation serves {served}"


def _of_imports(report: PassReport) -> Iterator[Problem]:
    """Report the imports of which something keeps instances away. What holds removals, or failed,
    is reported for all of them together."""
    if report.imports is None:
        return
    reported = {failed.source for failed in unread_of(report)}
    for ref, claim in sorted(report.imports.claims.items()):
        match claim:
            case NotImported():
                if claim.reason is not Reason.OWNER_CLASH and claim.source not in reported:
                    yield _of_import(ref, claim.reason, claim.message)
            case Importing():
                for refusal in claim.refusals:
                    yield _of_import(ref, refusal.reason, refusal.message)
                if not claim.refusals and report.imports.registry is None and not claim.wanted:
                    reason, text = without_endpoints(claim)
                    yield _of_import(ref, reason, text)
            case Ending():
                pass
            case _:  # pragma: no cover
                assert_never(claim)


def _of_import(ref: ImportRef, reason: Reason, text: str) -> Problem:
    return Problem(reason=reason, subject=f"import {ref}", text=f"{reason}: {text}")


def _of_conflicts(report: PassReport) -> Iterator[Problem]:
    """Report the other instances in the way; a table has rows of them."""
    for blocked in report.plan.blocked:
        if blocked.conflict:
            key = str(blocked.key)
            yield Problem(reason=Reason.CONFLICT, subject=key, text=blocked.why, in_rows=True)


def _of_put_out(report: PassReport) -> Iterator[Problem]:
    """Name the instances that nobody wants any more, and that stay as a person set them."""
    desired = report.desired
    if isinstance(report.registry, Unknown) or desired is None:
        return
    for renewal in report.plan.renewals:
        if renewal.status is not InstanceStatus.OUT_OF_SERVICE:
            continue  # nearly always
        if renewal.syncer is None or renewal.key in desired.wanted_by:
            continue
        claim = desired.claims.get(renewal.syncer)
        if isinstance(claim, Serving):
            key = str(renewal.key)
            yield Problem(reason=Reason.OUT_OF_SERVICE, subject=key, text=renewal.why, note=True)


# --- Groups ---------------------------------------------------------------------------------------


def _grouped(items: Iterable[T], kind: Callable[[T], K]) -> Iterator[tuple[K, list[T]]]:
    """Yield the items of each kind, in the order of the first."""
    by_kind: dict[K, list[T]] = {}
    for item in items:
        by_kind.setdefault(kind(item), []).append(item)
    yield from by_kind.items()
