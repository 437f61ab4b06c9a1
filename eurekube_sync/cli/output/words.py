"""A pass in words: a sentence for everything that a person should see to, or know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from shlex import quote
from typing import assert_never

from eurekube_sync.brake import Held
from eurekube_sync.brake.approval import SavedDryRun, approve_command
from eurekube_sync.cli.output.summary import not_tried
from eurekube_sync.cli.output.syncers import Sentence, come_to_nothing, nobody_in_scope, of_syncer
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import Claim, Deleting, NotServed, Serving
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, ignored_value
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.outcomes import Outcome, Result
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.kubernetes import unread
from eurekube_sync.plan import Obstacle

_GATHERED = 3
"""Sentences of one reason that are more than this are one sentence at a terminal."""


def sentences(report: PassReport) -> list[str]:
    """All of them, the worst first; none is cut."""
    return [one.text for one in told(report)]


def told(report: PassReport) -> list[Sentence]:
    """The same, with what each is about; notes come last."""
    return sorted(_sentences(report), key=lambda one: one.note)


def gathered(found: Sequence[Sentence]) -> Iterator[Sentence]:
    """What a person reads at a terminal: many syncers that share a reason are one sentence, with one as an example."""
    by_reason: dict[tuple[str, bool], list[Sentence]] = {}
    for one in found:
        by_reason.setdefault((one.reason, one.note), []).append(one)
    for one in found:
        same = by_reason[one.reason, one.note]
        if not one.reason or len(same) <= _GATHERED:
            yield one
        elif one is same[0]:
            names = ", ".join(other.about for other in same[:_GATHERED])
            text = (
                f"{one.reason}: {len(same)} syncers: {names} and {len(same) - _GATHERED} more (-o json has each); "
                f"the first: {one.text}"
            )
            yield Sentence(text=text, note=one.note)


def _sentences(report: PassReport) -> Iterator[Sentence]:
    yield from _plain(_of_clashes(report))
    yield from _plain(_of_keepalive(report) if report.view is None else ())
    if isinstance(report.registry, Unknown):
        yield Sentence(text=_of_registry(report, report.registry))
    yield from _plain(_of_sources(report))
    yield from nobody_in_scope(report)
    yield from _plain(_of_approval(report))
    if report.held:
        yield Sentence(text=_held(report.held, approve_command(report.held.plan_id, report.options)))
    yield from _of_syncers(report)
    yield from (of_syncer(one.syncer.ref, "NoInstallation", one.message) for one in report.unserved)
    yield from come_to_nothing(report)
    if report.cut_short:
        left = not_tried(report)
        goes_on = f"{left} not tried; the next pass tries them" if left else "the next pass continues"
        yield Sentence(text=f"cut short by its deadline or a signal: {goes_on}")
    yield from (Sentence(text=f"{b.key}: {b.why}", in_a_row=True) for b in report.plan.blocked if b.conflict)
    unread_again = (b for b in report.plan.blocked if b.obstacle is Obstacle.UNREAD and not b.late)
    yield from _plain(_grouped((b.obstacle, f"{b.key}: {b.why}") for b in unread_again))
    yield from _plain(_grouped((_kind(o), f"{o.action.key}: {o.detail}") for o in _failures(report)))
    yield from _plain(_grouped((type(error).__name__, f"Kubernetes: {error}") for error in report.cluster_errors))


def _plain(texts: Iterable[str]) -> Iterator[Sentence]:
    return (Sentence(text=text) for text in texts)


def _of_clashes(report: PassReport) -> Iterator[str]:
    for cluster in report.clashes if report.view else ():
        yield (
            f"owner clash: cluster {cluster} uses the same --owner; give each cluster its own. If this cluster "
            f"replaces it: eurekube-sync owner adopt --cluster {quote(cluster)}. "
            "Our instances were renewed, and nothing else was done."
        )
    yield from (other.sentence for other in report.other_owners)


def _of_keepalive(report: PassReport) -> Iterator[str]:
    if isinstance(report.registry, Complete) and not (report.plan.actions or report.plan.blocked):
        yield "no instance in Eureka has this owner and cluster: is --owner right?"


def _held(held: Held, command: str) -> str:
    count = len(held.removals)
    waits = one_or_more(count, "1 removal waits", f"{count} removals wait")
    keeps = one_or_more(count, "The instance keeps its status and is", "The instances keep their status and are")
    release = f"To release {one_or_more(count, 'it', 'them')}, even while a daemon runs: {command}"
    return f"held: {waits}, because {held.reason}. {keeps} renewed. {release}"


def _of_approval(report: PassReport) -> Iterator[str]:
    """What became of what a person released."""
    if report.approval_refused is not None:
        yield f"--approve {report.approved}: {report.approval_refused}. Nothing was released"
    elif report.approved is None:
        return
    elif not report.released:
        nothing = "it releases nothing" if report.dry_run else "nothing was released"
        yield f"--approve {report.approved}: no such set of removals is planned now; {nothing}"
    elif isinstance(report.approved, SavedDryRun):
        removals = counted(len(report.approved.removals), "removal")
        are = one_or_more(len(report.released), "is", "are")
        yield f"--approve {report.approved}: {len(report.released)} of its {removals} {are} planned now"


def _of_registry(report: PassReport, registry: Unknown) -> str:
    """Why Eureka could not be read, and how many writes met the same."""
    sentence = registry.message if registry.message.startswith("Eureka") else f"Eureka: {registry.message}"
    same = sum(outcome.cause is registry.cause for outcome in report.outcomes.failures)
    return f"{sentence} {counted(same, 'renewal')} failed for the same reason." if same else sentence


def _failures(report: PassReport) -> Iterator[Outcome]:
    """The failures that no other sentence speaks of."""
    told = report.registry.cause if isinstance(report.registry, Unknown) else None
    for outcome in report.outcomes.failures:
        late = outcome.result is Result.NOT_TRIED and outcome.cause is None
        if not late and (outcome.cause is None or outcome.cause is not told):
            yield outcome


def _kind(outcome: Outcome) -> Hashable:
    return outcome.cause or (outcome.result, outcome.detail)


def _of_sources(report: PassReport) -> Iterator[str]:
    """What could not be read of Kubernetes; one sentence for all that failed for one cause."""
    found = list(unread(report.view))
    identity = report.view.identity if report.view else None
    whole = identity.cause if isinstance(identity, Unknown) else None
    by_cause: dict[Hashable, list[tuple[str, Unknown]]] = {}
    for name, source in found:
        alone = source.cause is Cause.UNUSABLE and whole is not Cause.UNUSABLE
        by_cause.setdefault((source.message,) if alone else source.cause, []).append((name, source))
    for group in by_cause.values():
        names = ", ".join(name for name, _ in group)
        yield f"{names}: {group[-1][1].message if whole else group[0][1].message}"


def _of_syncers(report: PassReport) -> Iterator[Sentence]:
    told = {source.message for _, source in unread(report.view)}
    claims = report.desired.claims if report.desired else {}
    for ref, claim in sorted(claims.items()):
        if ignored := ignored_value(claim.syncer.annotations, ABANDON_ANNOTATION):
            yield Sentence(text=f"syncer {ref}: {ignored}")
        if not (isinstance(claim, NotServed) and claim.unknown and claim.message in told):
            yield from _of_syncer(report, ref, claim, told)


def _of_syncer(report: PassReport, ref: SyncerRef, claim: Claim, told: Collection[str]) -> Iterator[Sentence]:
    match claim:
        case NotServed():
            yield of_syncer(ref, claim.reason, claim.message)
        case Serving():
            yield from (Sentence(text=f"syncer {ref}: {n}", note=True) for n in claim.notes if report.dry_run)
            yield from (of_syncer(ref, one.reason, one.message) for one in claim.incomplete)
            yield from (Sentence(text=f"syncer {ref}: warning: {warning}") for warning in _untold(claim, told))
            held = _grouped((rival, f"syncer {ref}: {key}: {rival}") for key, rival in claim.rivals.items())
            yield from _plain(held)
        case Deleting():
            status = report.all_statuses.get(ref)
            synced = status.condition("Synced") if status and not report.dry_run else None
            yield from [Sentence(text=f"syncer {ref}: deleting: {synced.message}")] if synced else []
        case _:  # pragma: no cover
            assert_never(claim)


def _untold(claim: Serving, told: Collection[str]) -> Iterator[str]:
    """Its warnings but for what a sentence about all syncers says already."""
    return (warning for warning in claim.warnings if not any(message in warning for message in told))


def _grouped(found: Iterable[tuple[Hashable, str]]) -> Iterator[str]:
    """The first sentence of each kind, with how many more there are of it."""
    first: dict[Hashable, str] = {}
    count: Counter[Hashable] = Counter()
    for kind, sentence in found:
        first.setdefault(kind, sentence)
        count[kind] += 1
    for kind, sentence in first.items():
        yield f"{sentence} (and {count[kind] - 1} more)" if count[kind] > 1 else sentence
