"""What each syncer comes to: an entry of the data, and a line of the report where it is less than its pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eurekube_sync.apply.conditions import nothing_wanted
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import Claim, Deleting, NotServed, Serving, every
from eurekube_sync.desired.spec import class_of
from eurekube_sync.desired.verdicts import OverLimit, Taken, Wanted
from eurekube_sync.model.kubernetes import SyncerObject, SyncerRef
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, one_or_more

_STATES: Mapping[type[Claim], str] = {Serving: "serving", NotServed: "notServed", Deleting: "deleting"}
_SUSPENDED = "nothing new is registered and nothing is cancelled; registered instances are renewed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One thing to see to, whole."""

    text: str
    note: bool = False
    """Nothing is wrong: it is good to know."""
    in_a_row: bool = False
    """A row of the table says the same."""
    reason: str = ""
    """A machine word that several syncers may share; empty where the sentence has none."""
    about: str = ""
    """The syncer, where there is a reason."""


def of_syncer(ref: SyncerRef, reason: str, message: str, *, note: bool = False) -> Sentence:
    """A sentence about one syncer, under a machine word."""
    return Sentence(text=f"syncer {ref}: {reason}: {message}", note=note, reason=reason, about=str(ref))


def nobody_in_scope(report: PassReport) -> Iterator[Sentence]:
    """That no syncer is served, or no such namespace is there."""
    if report.desired is None or report.view is None:
        return
    listed = report.view.syncers
    sources = [*listed.by_namespace.values(), *([] if report.scope.namespaces else [listed.elsewhere])]
    if report.desired.claims or any(isinstance(source, Unknown) for source in sources):
        yield from (Sentence(text=f"namespace {name} does not exist") for name in report.absent)
        return
    yield Sentence(text=f"no EurekaSyncer in scope ({_why_nobody(report, list(every(listed)))})")


def _why_nobody(report: PassReport, listed: list[SyncerObject]) -> str:
    scope = report.scope
    names = ", ".join(sorted(scope.namespaces or ()))
    where = f"{one_or_more(len(scope.namespaces or ()), 'namespace', 'namespaces')} {names}" if names else "the cluster"
    if scope.namespaces and len(report.absent) == len(scope.namespaces):
        return f"{where} {one_or_more(len(report.absent), 'does', 'do')} not exist"
    if not listed:
        return f"there is none in {where}"
    if any(class_of(one) == scope.syncer_class for one in listed):
        return f"none of {len(listed)} is selected by {' '.join(scope.options)}"
    has = f"no syncer has class {scope.syncer_class}"
    return (
        has if scope.syncer_class else f"each has a class, such as {class_of(listed[0])}; serve it with --syncer-class"
    )


def come_to_nothing(report: PassReport) -> Iterator[Sentence]:
    """A note for each syncer that is served and has less UP than its Services have endpoints, and why."""
    planned = {action.key for action in report.plan.changes}
    planned |= {action.key for action in report.held.removals} if report.held else set()
    for ref, claim in sorted(report.desired.claims.items()) if report.desired else ():
        if not isinstance(claim, Serving):
            continue
        reason, message = _account(claim)
        told = reason == "NotReady" and claim.unready.keys() <= planned  # by its rows
        if reason and not told:
            yield of_syncer(ref, reason, message, note=True)
    for ref, message in _of_other_classes(report) if report.dry_run else ():
        yield of_syncer(ref, "OtherClass", message, note=True)


def _account(claim: Serving) -> tuple[str, str]:
    """A machine word, and why; empty for one of which all is UP, or will be."""
    if claim.conduct.suspend:
        return "Suspended", _SUSPENDED
    if claim.incomplete or claim.unclear:
        return "", ""  # that has its own sentence
    if not any(isinstance(one, Wanted | OverLimit | Taken) for one in claim.verdicts.values()):
        return nothing_wanted(claim)
    if claim.unready:
        first, *more = sorted(claim.unready.values())
        rest = f" (and {len(more)} more)" if more else ""
        return "NotReady", f"{len(more) + 1} of {counted(claim.endpoints, 'endpoint')} not ready: {first}{rest}"
    wanted = claim.wanted.values()
    if drained := sorted(one.why for one in wanted if one.drained):
        some = len(drained) < len(wanted)
        return "Drained", f"{len(drained)} of {counted(len(wanted), 'instance')}: {drained[0]}" if some else drained[0]
    return "", ""


def _of_other_classes(report: PassReport) -> Iterator[tuple[SyncerRef, str]]:
    """Syncers that were listed, and that somebody else has to serve."""
    served = f"class {report.scope.syncer_class}" if report.scope.syncer_class else "syncers without a class"
    for one in every(report.view.syncers) if report.view and report.desired else ():
        if class_of(one) != report.scope.syncer_class:
            named = class_of(one)
            own = f"spec.syncerClass is {named}" if named else "it names no class"
            yield one.ref, f"{own}, and this installation serves {served}"


def syncers_data(report: PassReport) -> list[dict[str, Any]]:
    """Every syncer that was listed: how many instances it wants, how many are UP in Eureka, how many endpoints are
    ready, each null while unknown; a machine word, and why."""
    claims = report.desired.claims if report.desired else {}
    data = [_entry(report, ref, claim) for ref, claim in sorted(claims.items())]
    unknown = dict.fromkeys(("desired", "up", "ready"))
    others = [
        {"syncer": str(ref), "state": "notServed", **unknown, "reason": "OtherClass", "message": message}
        for ref, message in _of_other_classes(report)
    ]
    return [*data, *others]


def _entry(report: PassReport, ref: SyncerRef, claim: Claim) -> dict[str, Any]:
    status = report.all_statuses.get(ref)
    ready = status.condition("Ready") if status else None
    seen = status if isinstance(report.registry, Complete) else None
    data: dict[str, Any] = {
        "syncer": str(ref),
        "state": _STATES[type(claim)],
        "desired": status.desired if status else None,
        "up": seen.up if seen else None,
        "ready": claim.endpoints - len(claim.unready) if isinstance(claim, Serving) else None,
    }
    reason, message = _account(claim) if isinstance(claim, Serving) else ("", "")
    if not reason and ready is not None:
        reason, message = ready.reason, ready.message
    if isinstance(claim, NotServed):
        reason, message = claim.reason, claim.message
    data |= {"reason": reason, "message": message}
    if isinstance(claim, Serving) and claim.notes:
        data["notes"] = list(claim.notes)
    return data
