"""A pass in words: its one summary line, and a sentence for everything that a person should see to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator

from eurekube_sync.actions import Cancel, Register, Renew, Update, brings_up, takes_out
from eurekube_sync.approval import SavedDryRun
from eurekube_sync.desired import Claim, Deleting, Frozen, Serving
from eurekube_sync.model import Cause, Complete, SyncerRef, Unknown
from eurekube_sync.one_pass import PassReport
from eurekube_sync.outcome import Outcome, Result
from eurekube_sync.plan import Blocked
from eurekube_sync.view import unread
from eurekube_sync.wording import counted, one_or_more

_MOST_SENTENCES = 20


def summary(report: PassReport) -> str:
    """The one line of a pass."""
    plan, outcomes, troubles = report.plan, report.outcomes, _troubles(report)
    cancels = [action for action in plan.of(Cancel) if action.was is not None]
    if report.dry_run:
        up, down = (sum(map(turns, plan.of(Update))) for turns in (brings_up, takes_out))
        counts = [
            (len(plan.of(Register)), "to register"),
            (len(plan.of(Update)) - up - down, "to update"),
            (up, "to turn UP"),
            (down, "to turn DOWN"),
            (len(cancels), "to cancel"),
        ]
        parts = [f"{n} {todo}" for n, todo in counts if n] or ["nothing to change"]
        parts.append(f"{len(plan.of(Renew))} to renew")
        return f"dry run: {', '.join(parts)}{troubles}"
    renewed = sum(isinstance(o.action, Renew) and o.result is Result.DONE for o in outcomes.by_key.values())
    healed = outcomes.count(Result.HEALED)
    parts = [f"{n} {done}" for n, done in _done(report) if n] or ["in sync" if not troubles else "nothing changed"]
    parts += [f"{healed} registered again"] if healed else []
    parts.append(f"{renewed + report.renewed_between} renewed")
    return f"{', '.join(parts)}{troubles}"


def _done(report: PassReport) -> Iterator[tuple[int, str]]:
    done = [o.action for o in report.outcomes.by_key.values() if o.result is Result.DONE]
    yield sum(isinstance(a, Register) for a in done), "registered"
    yield sum(isinstance(a, Update) and not brings_up(a) and not takes_out(a) for a in done), "updated"
    yield sum(isinstance(a, Update) and brings_up(a) for a in done), "turned UP"
    yield sum(isinstance(a, Update) and takes_out(a) for a in done), "turned DOWN"
    yield sum(isinstance(a, Cancel) and a.was is not None for a in done), "cancelled"


def _troubles(report: PassReport) -> str:
    frozen = sum(isinstance(c, Frozen) for c in report.desired.claims.values()) if report.desired else 0
    found = [
        (len(report.held.withdrawals) if report.held else 0, "held"),
        (len(report.outcomes.failures) - report.outcomes.count(Result.NOT_TRIED), "failed"),
        (_not_tried(report), "not tried"),
        (sum(_is_unread(blocked) for blocked in report.plan.blocked), "not read again"),
        (_conflicts(report), "in conflict"),
        (frozen, "syncer frozen" if frozen == 1 else "syncers frozen"),
        (len(list(unread(report.view))) + isinstance(report.registry, Unknown), "not readable"),
    ]
    shown = ", ".join(f"{count} {what}" for count, what in found if count)
    return f"; {shown}" if shown else ""


def _conflicts(report: PassReport) -> int:
    blocked = sum(b.conflict for b in report.plan.blocked)
    return blocked + report.outcomes.count(Result.CONFLICT)


def sentences(report: PassReport) -> list[str]:
    """One sentence for each thing to see to, the worst first; a long list is cut."""
    found = list(_sentences(report))
    more = len(found) - _MOST_SENTENCES
    return [*found[:_MOST_SENTENCES], f"and {more} more"] if more > 0 else found


def _sentences(report: PassReport) -> Iterator[str]:
    for cluster in report.clashes if report.view else ():
        yield (
            f"owner clash: cluster {cluster} uses the same --owner; give each cluster its own. If this cluster takes "
            f"its place: eurekube-sync owner adopt --cluster {cluster}. "
            "What is ours was renewed, nothing else was done."
        )
    yield from (other.sentence for other in report.other_owners)
    yield from _of_keepalive(report) if report.view is None else ()
    if isinstance(report.registry, Unknown):
        yield _of_registry(report, report.registry)
    yield from _of_sources(report)
    yield from _of_approval(report)
    if report.held:
        held = _held(len(report.held.withdrawals), report.held.reason)
        yield f"held: {held}. If it is right: run --approve {report.held.plan_id}"
    yield from _of_syncers(report)
    if report.cut_short:
        left = _not_tried(report)
        goes_on = f"{left} not tried; the next pass goes on with them" if left else "the next pass goes on"
        yield f"cut short by its deadline or a signal: {goes_on}"
    yield from _grouped((b.why, f"{b.key}: {b.why}") for b in report.plan.blocked if b.conflict)
    yield from _grouped((b.obstacle, f"{b.key}: {b.why}") for b in report.plan.blocked if _is_unread(b))
    yield from _grouped((_kind(o), f"{o.action.key}: {o.detail}") for o in _failures(report))
    yield from _grouped((type(error).__name__, f"Kubernetes: {error}") for error in report.cluster_errors)


def _of_keepalive(report: PassReport) -> Iterator[str]:
    if isinstance(report.registry, Complete) and not (report.plan.actions or report.plan.blocked):
        yield "nothing in Eureka bears this owner and cluster: is --owner right?"


def _held(count: int, reason: str) -> str:
    if count == 1:
        return f"1 removal waits, {reason}. It stays and is renewed"
    return f"{count} removals wait, {reason}. They stay and are renewed"


def _of_approval(report: PassReport) -> Iterator[str]:
    """What became of what a person released."""
    if report.approval_refused is not None:
        yield f"--approve {report.approved}: {report.approval_refused}. Nothing was released"
    elif report.approved is None or report.dry_run:
        return
    elif not report.released:
        yield f"--approve {report.approved}: no such set of removals is planned now; nothing was released"
    elif isinstance(report.approved, SavedDryRun):
        removals = counted(len(report.approved.removals), "removal")
        are = one_or_more(len(report.released), "is", "are")
        yield f"--approve {report.approved}: {len(report.released)} of its {removals} {are} planned now"


_ENDED = "the pass ended before"
"""What `apply` says of an action that was not tried any more."""


def _of_registry(report: PassReport, registry: Unknown) -> str:
    """Why Eureka could not be read, and how many writes met the same."""
    sentence = registry.message if registry.message.startswith("Eureka") else f"Eureka: {registry.message}"
    same = sum(outcome.cause is registry.cause for outcome in report.outcomes.failures)
    return f"{sentence} {same} of its instances could not be renewed either." if same else sentence


def _is_unread(blocked: Blocked) -> bool:
    """Whether an uncached read failed, and was not merely left out at the end of a pass."""
    return not blocked.conflict and blocked.why != _ENDED


def _not_tried(report: PassReport) -> int:
    return report.outcomes.count(Result.NOT_TRIED) + sum(blocked.why == _ENDED for blocked in report.plan.blocked)


def _failures(report: PassReport) -> Iterator[Outcome]:
    """The failures that no other sentence speaks of."""
    told = report.registry.cause if isinstance(report.registry, Unknown) else None
    for outcome in report.outcomes.failures:
        if outcome.detail != _ENDED and (outcome.cause is None or outcome.cause is not told):
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
        names = [name for name, _ in group]
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield f"{shown}: {group[-1][1].message if whole else group[0][1].message}"


def _of_syncers(report: PassReport) -> Iterator[str]:
    told = {source.message for _, source in unread(report.view)}
    claims = report.desired.claims if report.desired else {}
    for ref, claim in sorted(claims.items()):
        if not (isinstance(claim, Frozen) and claim.unknown and claim.message in told):
            yield from _of_syncer(report, ref, claim, told)


def _of_syncer(report: PassReport, ref: SyncerRef, claim: Claim, told: Collection[str]) -> Iterator[str]:
    match claim:
        case Frozen():
            yield f"syncer {ref}: {claim.reason}: {claim.message}"
        case Serving():
            yield from (f"syncer {ref}: {note}" for note in claim.notes if report.dry_run)
            yield from (f"syncer {ref}: {one.reason}: {one.message}" for one in claim.incomplete)
            yield from (f"syncer {ref}: warning: {warning}" for warning in _untold(claim, told))
            yield from _grouped(
                (rival, f"syncer {ref}: {key}: {rival}") for key, rival in [*claim.lost.items(), *claim.idle.items()]
            )
        case Deleting():
            status = report.statuses.get(ref)
            synced = status.condition("Synced") if status else None
            yield from [f"syncer {ref}: deleting: {synced.message}"] if synced else []


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
