"""A pass in words: the summary line, sentences about problems and other facts, and the state of
each syncer."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Any, assert_never

from eurekube_sync.apply.conditions import OLD_LIST, nothing_wanted
from eurekube_sync.apply.lost import LAST_INSTANCE_LOST
from eurekube_sync.brake.approval import SavedDryRun, approve_command
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
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, class_of, ignored_value
from eurekube_sync.model.actions import Action, Cancel, Register, Result, Update, brings_up, removes
from eurekube_sync.model.errors import ClusterError
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.kubernetes import ConditionStatus, SyncerRef
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, duration, one_or_more
from eurekube_sync.observe.kubernetes import unknown_sources, unread
from eurekube_sync.plan.value import Obstacle

_GATHERED = 3  # the most sentences with the same reason that are shown one by one at a terminal
_STATES: Mapping[type[Claim], str] = {
    Serving: "serving",
    NotServed: "notServed",
    Deleting: "deleting",
}


def summary(report: PassReport) -> str:
    if not report.settings.dry_run:
        return _done(report)
    servers = ["Eureka"] if isinstance(report.registry, Unknown) else []
    servers += ["Kubernetes"] if report.view and isinstance(report.view.identity, Unknown) else []
    if servers:
        return (
            f"dry run incomplete: {' and '.join(servers)} could not be read, so changes are unknown"
        )
    changes = _counted(
        report.plan.actions, ("to register", "to update", "to turn UP", "to turn DOWN", "to cancel")
    )
    if not changes and report.desired is not None:
        changes = ["nothing to change"]
    again = any(blocked.obstacle is Obstacle.UNREAD for blocked in report.plan.blocked)
    doubt = again or report.cut_short or any(unknown_sources(report.view))
    plan = ", ".join([*changes, f"{len(report.plan.renewals)} to renew"]) + _troubles(report)
    return f"dry run{' incomplete, not all changes are known' if doubt else ''}: {plan}"


def renewed(report: PassReport) -> int:
    """Return the number of leases renewed in this pass and since the previous one."""
    return report.outcomes.renewed + report.renewed_between


def not_tried(report: PassReport) -> int:
    """Return the number of actions for which the pass had no time."""
    return report.outcomes.count(Result.NOT_TRIED) + sum(
        blocked.late for blocked in report.plan.blocked
    )


def _done(report: PassReport) -> str:
    troubles, outcomes = _troubles(report), report.outcomes
    did = [o.action for o in outcomes.others if o.result is Result.DONE]
    parts = _counted(did, ("registered", "updated", "turned UP", "turned DOWN", "cancelled"))
    again = outcomes.count(Result.REGISTERED_AGAIN)
    if not parts and not again and report.view is not None:  # without a view, nothing was compared
        conditions = [status.condition("Synced") for status in report.all_statuses.values()]
        synced = bool(conditions) and all(
            one and one.status is ConditionStatus.TRUE for one in conditions
        )
        parts = ["in sync" if synced and not troubles else "nothing changed"]
    parts += [f"{again} registered again"] if again else []
    return ", ".join([*parts, f"{renewed(report)} renewed"]) + troubles


def _counted(actions: Sequence[Action], words: Sequence[str]) -> list[str]:
    """Count the actions of each kind. `words` are for register, update, turn UP, turn DOWN and
    cancel."""
    updates = [action for action in actions if isinstance(action, Update)]
    up, down = (sum(map(turns, updates)) for turns in (brings_up, removes))
    cancels = sum(isinstance(action, Cancel) and action.was is not None for action in actions)
    registers = sum(isinstance(action, Register) for action in actions)
    numbers = (registers, len(updates) - up - down, up, down, cancels)
    return [f"{number} {word}" for number, word in zip(numbers, words, strict=True) if number]


def _troubles(report: PassReport) -> str:
    blocked, outcomes = report.plan.blocked, report.outcomes
    not_served = (
        sum(isinstance(c, NotServed) for c in report.desired.claims.values())
        if report.desired
        else 0
    )
    sources = len(list(unread(report.view)))
    apps = len({lost.app for lost in report.lost.values()})
    found = [
        (apps, one_or_more(apps, "app without an UP instance", "apps without an UP instance")),
        (len(report.held.removals) if report.held else 0, "held"),
        (len(outcomes.failures) - outcomes.count(Result.NOT_TRIED), "failed"),
        (not_tried(report), "not tried"),
        (
            sum(b.obstacle is Obstacle.UNREAD and not b.late for b in blocked),
            "not changed, because not read again",
        ),
        (sum(b.conflict for b in blocked) + outcomes.count(Result.CONFLICT), "in conflict"),
        (not_served, f"{one_or_more(not_served, 'syncer', 'syncers')} not served"),
    ]
    shown = [f"{count} {what}" for count, what in found if count]
    shown += ["Eureka's list not readable"] if isinstance(report.registry, Unknown) else []
    shown += [f"{counted(sources, 'source')} of Kubernetes not readable"] if sources else []
    return f"; {', '.join(shown)}" if shown else ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the report."""

    text: str
    note: bool = False  # no problem, only information
    reason: str = ""  # of a condition; empty if there is none
    about: str = ""  # the syncer with this reason


def sentences(report: PassReport) -> list[str]:
    """Return the texts of all sentences, the worst first."""
    return [one.text for one in all_sentences(report, conflicts=True)]


def all_sentences(report: PassReport, *, conflicts: bool = False) -> list[Sentence]:
    """Return all sentences, the worst first, notes last. Conflicts are left out for a table, which
    has rows of them."""
    return sorted(_sentences(report, conflicts=conflicts), key=lambda one: one.note)


def gathered(found: Sequence[Sentence]) -> Iterator[Sentence]:
    """Join many sentences with the same reason into one, which has the first as an example."""
    by_reason: dict[tuple[str, bool], list[Sentence]] = {}
    for one in found:
        by_reason.setdefault((one.reason, one.note), []).append(one)
    for one in found:
        same = by_reason[one.reason, one.note]
        if not one.reason or len(same) <= _GATHERED:
            yield one
        elif one is same[0]:
            names = ", ".join(other.about for other in same[:_GATHERED])
            more = f"{len(same) - _GATHERED} more (-o json has each)"
            text = f"{one.reason}: {len(same)} syncers: {names} and {more}; the first: {one.text}"
            yield Sentence(text, note=one.note)


def _sentences(report: PassReport, *, conflicts: bool) -> Iterator[Sentence]:
    for cluster in report.clashes if report.view else ():
        yield Sentence(
            f"owner clash: the cluster with UID {cluster} uses the same --owner; give each "
            "cluster its own. If this "
            f"cluster replaces that one: eurekube-sync run --former-cluster {quote(cluster)}. "
            "Our instances were renewed, and nothing else was done."
        )
    yield from (Sentence(other.sentence) for other in report.other_owners)
    yield from map(Sentence, _of_sources(report))
    yield from map(Sentence, _nobody_in_scope(report))
    for ref, lost in sorted(report.lost.items()):
        yield _of_syncer(ref, LAST_INSTANCE_LOST, str(lost))
    yield from map(Sentence, _of_held(report))
    yield from _of_claims(report)
    yield from _of_put_out(report)
    if report.cut_short:
        left = not_tried(report)
        undone = (
            f"; {counted(left, 'action')} {one_or_more(left, 'was', 'were')} not tried"
            if left
            else ""
        )
        yield Sentence(
            f"the pass was cut short by its deadline or a signal{undone}. The next pass continues"
        )
    yield from (
        Sentence(f"{b.key}: {b.why}") for b in report.plan.blocked if conflicts and b.conflict
    )
    yield from map(Sentence, _of_failures(report))


def _of_syncer(ref: SyncerRef, reason: str, message: str, *, note: bool = False) -> Sentence:
    return Sentence(f"syncer {ref}: {reason}: {message}", note=note, reason=reason, about=str(ref))


def _grouped(found: Iterable[tuple[Hashable, str, object]]) -> Iterator[str]:
    """Return a sentence for each kind: the first name, what it says, and the number of the
    others."""
    by_kind: dict[Hashable, list[tuple[str, object]]] = {}
    for kind, name, said in found:
        by_kind.setdefault(kind, []).append((name, said))
    for (name, said), *more in by_kind.values():
        same = all(other == said for _, other in more)
        yield (
            f"{name} and {len(more)} more: {said}"
            if more and same
            else f"{name}: {said}{_like_it(len(more))}"
        )


def _like_it(more: int) -> str:
    return f" ({more} more like it)" if more else ""


def _of_sources(report: PassReport) -> Iterator[str]:
    """Return a sentence for each cause why sources could not be read, or say that `keepalive` found
    no instance."""
    registry = report.registry
    if isinstance(registry, Unknown):
        sentence = (
            registry.message
            if registry.message.startswith("Eureka")
            else f"Eureka: {registry.message}"
        )
        same = sum(outcome.cause is registry.cause for outcome in report.outcomes.failures)
        yield (
            f"{sentence} {counted(same, 'renewal')} failed for the same reason."
            if same
            else sentence
        )
    elif report.view is None and not (report.plan.actions or report.plan.blocked):
        yield "nothing to renew: are --owner, --cluster and --namespace right?"
    elif registry.data.outdated is not None:
        age = duration(round(registry.data.asked - registry.data.outdated))
        yield (
            f"{OLD_LIST}. The list is at least {age} old. Instances were read one by one where "
            "that may matter"
        )
    by_kind: dict[Hashable, list[tuple[str, str]]] = {}
    for name, source in unread(report.view):
        kind = source.message if source.cause is Cause.UNUSABLE else source.cause
        by_kind.setdefault(kind, []).append((name, source.message))
    for (name, message), *more in by_kind.values():
        others = ", ".join(one for one, _ in more)
        yield f"{name}: {message}{f'; likewise {others}' if more else ''}"


def _nobody_in_scope(report: PassReport) -> Iterator[str]:
    """Say why no syncer is in scope, or which namespaces do not exist."""
    if report.desired is None or report.view is None:
        return
    scope, syncers = report.settings.scope, report.view.syncers
    sources = [*syncers.by_namespace.values(), *([] if scope.namespaces else [syncers.elsewhere])]
    if report.desired.claims or any(isinstance(source, Unknown) for source in sources):
        yield from (f"namespace {name} does not exist" for name in report.absent)
        return
    listed = list(every(syncers))
    if scope.namespaces and len(report.absent) == len(scope.namespaces):
        why = " and ".join(f"namespace {name} does not exist" for name in report.absent)
    elif not listed:
        why = (
            "there is none in "
            f"{', '.join(sorted(scope.namespaces)) if scope.namespaces else 'the cluster'}"
        )
    elif any(class_of(one) == scope.syncer_class for one in listed):
        why = f"{' '.join(scope.options)} selects none of the {counted(len(listed), 'syncer')}"
    elif scope.syncer_class:
        why = f"no syncer has class {scope.syncer_class}"
    else:
        why = f"each has a class, such as {class_of(listed[0])}; serve it with --syncer-class"
    yield f"no EurekaSyncer in scope ({why})"


def _of_held(report: PassReport) -> Iterator[str]:
    """Report the effect of `--approve`, and the removals that are held."""
    if report.approval_refused is not None:
        yield f"--approve {report.approved}: {report.approval_refused}. Nothing was released"
    elif report.approved is not None and not report.released:
        yield (
            f"--approve {report.approved}: no such set of removals is planned now; it releases "
            "nothing"
        )
    elif isinstance(report.approved, SavedDryRun):
        removals = counted(len(report.approved.removals), "removal")
        yield f"--approve {report.approved}: it releases {len(report.released)} of its {removals}"
    if report.held:
        count = len(report.held.removals)
        waits = one_or_more(count, "1 removal waits", f"{count} removals wait")
        command = approve_command(report.held.plan_id, report.settings.options)
        yield (
            f"held: {waits}, because {report.held.reason}. Held instances keep their status and "
            "are renewed. To "
            f"release the held removals of all syncers, even while a daemon runs: {command}"
        )


def _of_failures(report: PassReport) -> Iterator[str]:
    """Report instances that could not be read again, and the failures that no other sentence
    explains."""
    unread_again = (b for b in report.plan.blocked if b.obstacle is Obstacle.UNREAD and not b.late)
    yield from _grouped((b.obstacle, str(b.key), b.why) for b in unread_again)
    explained = report.registry.cause if isinstance(report.registry, Unknown) else None
    failures = (
        one
        for one in report.outcomes.failures
        if (one.result is not Result.NOT_TRIED if one.cause is None else one.cause is not explained)
    )
    yield from _grouped(
        (o.cause or (o.result, o.detail), str(o.action.key), o.detail) for o in failures
    )
    errors: dict[str, list[ClusterError]] = {}
    for error in report.cluster_errors:
        errors.setdefault(type(error).__name__, []).append(error)
    yield from (f"Kubernetes: {first}{_like_it(len(more))}" for first, *more in errors.values())


def _of_claims(report: PassReport) -> Iterator[Sentence]:
    """Report the problems of each syncer, and why a syncer has fewer instances UP than its Services
    have endpoints."""
    rows = {
        action.key
        for action in (*report.plan.changes, *(report.held.removals if report.held else ()))
    }
    reported = {source.message for _, source in unread(report.view)}
    for ref, claim in sorted(report.desired.claims.items()) if report.desired else ():
        if ignored := ignored_value(claim.syncer.annotations, ABANDON_ANNOTATION):
            yield Sentence(f"syncer {ref}: {ignored}")
        match claim:
            case NotServed():
                if not (claim.unknown and claim.message in reported):
                    yield _of_syncer(ref, claim.reason, claim.message)
            case Serving():
                yield from (
                    Sentence(f"syncer {ref}: {n}", note=True)
                    for n in claim.notes
                    if report.settings.dry_run
                )
                yield from (_of_syncer(ref, one.reason, one.message) for one in claim.incomplete)
                # A sentence about all syncers may contain the same message.
                new = (
                    warning
                    for warning in claim.warnings
                    if not any(message in warning for message in reported)
                )
                yield from (Sentence(f"syncer {ref}: warning: {warning}") for warning in new)
                rivals = claim.rivals.items()
                yield from map(
                    Sentence,
                    _grouped((rival, f"syncer {ref}: {key}", rival) for key, rival in rivals),
                )
                reason, message = _account(claim)
                if reason and not (reason == "NotReady" and claim.unready.keys() <= rows):
                    yield _of_syncer(ref, reason, message, note=True)
            case Deleting():
                status = report.all_statuses.get(ref)
                if (
                    status
                    and not report.settings.dry_run
                    and (synced := status.condition("Synced"))
                ):
                    yield Sentence(f"syncer {ref}: deleting: {synced.message}")
            case _:  # pragma: no cover
                assert_never(claim)
    for ref, message in _of_other_classes(report) if report.settings.dry_run else ():
        yield _of_syncer(ref, "OtherClass", message, note=True)


def _of_put_out(report: PassReport) -> Iterator[Sentence]:
    """Name the instances that nobody wants any more, and that stay as a person set them."""
    registry, desired = report.registry, report.desired
    if isinstance(registry, Unknown) or desired is None:
        return
    for action in report.plan.renewals:
        put_out = action.status is InstanceStatus.OUT_OF_SERVICE
        claim = desired.claims.get(action.syncer) if action.syncer else None
        if put_out and action.key not in desired.wanted_by and isinstance(claim, Serving):
            yield Sentence(f"{action.key}: {action.why}", note=True)


def _account(claim: Claim) -> tuple[str, str]:
    """Return the reason and message why a served syncer has instances not UP.

    Both are empty if its instances are UP or will be, or if other sentences explain it.
    """
    if not isinstance(claim, Serving):
        return "", ""
    if claim.conduct.suspend:
        return "Suspended", "its instances are renewed, and not changed"
    if claim.incomplete or claim.unclear:
        return "", ""
    if claim.unready or not any(
        isinstance(one, Wanted | OverLimit | Taken) for one in claim.verdicts.values()
    ):
        return nothing_wanted(claim)
    wanted = claim.wanted.values()
    if drained := sorted(one.why for one in wanted if one.drained):
        some = len(drained) < len(wanted)
        return (
            "Drained",
            f"{len(drained)} of {counted(len(wanted), 'instance')}: {drained[0]}"
            if some
            else drained[0],
        )
    return "", ""


def _of_other_classes(report: PassReport) -> Iterator[tuple[SyncerRef, str]]:
    """Return the listed syncers of other classes, which this installation does not serve, each with
    a message."""
    ours = report.settings.scope.syncer_class
    served = f"class {ours}" if ours else "syncers without a class"
    for one in every(report.view.syncers) if report.view and report.desired else ():
        if (named := class_of(one)) != ours:
            own = f"spec.syncerClass is {named}" if named else "it names no class"
            yield one.ref, f"{own}, and this installation serves {served}"


def syncers_data(report: PassReport) -> Iterator[dict[str, Any]]:
    """Return the state of every listed syncer: desired and UP instances, ready endpoints, reason
    and message.

    A number is null while it is unknown.
    """
    for ref, claim in sorted(report.desired.claims.items()) if report.desired else ():
        status = report.all_statuses.get(ref)
        ready = status.condition("Ready") if status else None
        reason, message = (
            (claim.reason, claim.message) if isinstance(claim, NotServed) else _account(claim)
        )
        if not reason and ready is not None:
            reason, message = ready.reason, ready.message
        yield {
            "syncer": str(ref),
            "state": _STATES[type(claim)],
            "desired": status.desired if status else None,
            "up": status.up if status and isinstance(report.registry, Complete) else None,
            "ready": claim.endpoints - len(claim.unready) if isinstance(claim, Serving) else None,
            "reason": reason,
            "message": message,
            **({"notes": list(claim.notes)} if isinstance(claim, Serving) and claim.notes else {}),
        }
    unknown = dict.fromkeys(("desired", "up", "ready"))
    for ref, message in _of_other_classes(report):
        yield {
            "syncer": str(ref),
            "state": "notServed",
            **unknown,
            "reason": "OtherClass",
            "message": message,
        }
