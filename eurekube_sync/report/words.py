"""A pass in words: its one summary line, and a sentence for everything that a person should see to."""

from __future__ import annotations

from collections.abc import Iterator

from eurekube_sync.actions import Cancel, Register, Renew, Update, withdraws
from eurekube_sync.desired import Deleting, Frozen, Serving
from eurekube_sync.model import Unknown
from eurekube_sync.outcome import Result
from eurekube_sync.reconcile import PassReport
from eurekube_sync.view import unknown_sources

_MOST_SENTENCES = 20


def summary(report: PassReport) -> str:
    """The one line of a pass."""
    plan, outcomes, troubles = report.plan, report.outcomes, _troubles(report)
    cancels = [action for action in plan.of(Cancel) if action.was is not None]
    down = sum(withdraws(action) for action in plan.of(Update))
    counts = [
        (len(plan.of(Register)), "to register", "registered"),
        (len(plan.of(Update)) - down, "to update", "updated"),
        (down, "to turn DOWN", "turned DOWN"),
        (len(cancels), "to cancel", "cancelled"),
    ]
    if report.dry_run:
        parts = [f"{n} {todo}" for n, todo, _ in counts if n] or ["nothing to change"]
        parts.append(f"{len(plan.of(Renew))} to renew")
        return f"dry run: {', '.join(parts)}{troubles}"
    renewed = sum(isinstance(o.action, Renew) and o.result is Result.DONE for o in outcomes.by_key.values())
    healed = outcomes.count(Result.HEALED)
    parts = [f"{n} {done}" for n, _, done in _done(report) if n] or ["in sync" if not troubles else "nothing changed"]
    parts += [f"{healed} registered again"] if healed else []
    parts.append(f"{renewed} renewed")
    return f"{', '.join(parts)}{troubles}"


def _done(report: PassReport) -> Iterator[tuple[int, str, str]]:
    done = [o.action for o in report.outcomes.by_key.values() if o.result is Result.DONE]
    yield sum(isinstance(a, Register) for a in done), "", "registered"
    yield sum(isinstance(a, Update) and not withdraws(a) for a in done), "", "updated"
    yield sum(isinstance(a, Update) and withdraws(a) for a in done), "", "turned DOWN"
    yield sum(isinstance(a, Cancel) and a.was is not None for a in done), "", "cancelled"


def _troubles(report: PassReport) -> str:
    frozen = sum(isinstance(c, Frozen) for c in report.desired.claims.values()) if report.desired else 0
    found = [
        (len(report.held.withdrawals) if report.held else 0, "held"),
        (len(report.outcomes.failures), "failed"),
        (_conflicts(report), "in conflict"),
        (frozen, "syncer frozen" if frozen == 1 else "syncers frozen"),
        (len(list(unknown_sources(report.view))) + isinstance(report.registry, Unknown), "not readable"),
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
    for cluster in report.clashes:
        yield (
            f"owner clash: cluster {cluster} uses the same --owner; give each cluster its own. "
            "What is ours was renewed, nothing else was done."
        )
    if isinstance(report.registry, Unknown):
        yield f"Eureka: {report.registry.message}"
    for name, source in unknown_sources(report.view):
        yield f"{name}: {source.message}"
    if report.held:
        yield (
            f"held: {len(report.held.withdrawals)} removals wait, {report.held.reason}. "
            f"They stay and are renewed. If it is right: run --approve {report.held.plan_id}"
        )
    claims = report.desired.claims if report.desired else {}
    for ref, claim in sorted(claims.items()):
        match claim:
            case Frozen():
                yield f"syncer {ref}: {claim.reason}: {claim.message}"
            case Serving():
                yield from (f"syncer {ref}: warning: {warning}" for warning in claim.warnings)
                yield from (f"syncer {ref}: {key} is held by the older {older}" for key, older in claim.lost.items())
            case Deleting():
                status = report.statuses.get(ref)
                synced = status.condition("Synced") if status else None
                yield from [f"syncer {ref}: deleting: {synced.message}"] if synced else []
    for blocked in report.plan.blocked:
        yield f"{blocked.key}: {blocked.why}"
    for outcome in report.outcomes.failures:
        yield f"{outcome.action.key}: {outcome.detail}"
    yield from (f"Kubernetes: {error}" for error in report.cluster_errors)
