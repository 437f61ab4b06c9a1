"""The chain of an import: from Eureka's instances to the endpoints that callers in the cluster
reach, up to the first broken link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from eurekube_sync.apply.import_status import holds_by_import
from eurekube_sync.apply.imports import EndpointCount, count_of
from eurekube_sync.brake.approval import approve_command
from eurekube_sync.brake.holds import Hold
from eurekube_sync.controller.look import Look
from eurekube_sync.controller.one_pass import ImportReport
from eurekube_sync.desired.claims import every
from eurekube_sync.desired.import_spec import class_of
from eurekube_sync.desired.imports import (
    Ending,
    ImportClaim,
    Importing,
    LeftOut,
    NotImported,
)
from eurekube_sync.explain.links import (
    Explanation,
    Link,
    Mark,
    Outcome,
    Part,
    breaks,
    first_broken,
    met,
    not_read,
    noted,
    out_of_scope,
    unseen,
    until_broken,
)
from eurekube_sync.explain.registry import last_pass_link
from eurekube_sync.explain.what import Kind, What, near_names, similar
from eurekube_sync.model.imports import ImportObject, ImportRef
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted, one_or_more

_MOST = 5  # lines about single instances
_PARTS = {
    Reason.NOT_GRANTED: Part.SPEC,
    Reason.NO_SUCH_PORT: Part.PORT,
    Reason.AMBIGUOUS_PORT: Part.PORT,
}
"""The link that a refusal breaks; any other one breaks that of the Service."""


def explained_imports(look: Look) -> Sequence[tuple[ImportRef, Explanation]]:
    """Make the chains of all imports in scope, the worst first."""
    report = look.report.imports
    if report is None:
        return ()
    standing = _Standing(report)
    explained: list[tuple[ImportRef, Explanation]] = []
    for ref in sorted(report.claims):
        what = What(Kind.IMPORT, ref.name, ref.namespace)
        explained.append((ref, _explained(what, look, standing)))
    worst_first = list(Outcome)
    explained.sort(key=lambda pair: worst_first.index(pair[1].outcome))
    return explained


def explain_import(what: What, look: Look) -> Explanation:
    """Make the chain of one import."""
    return _explained(what, look, _Standing(look.report.imports))


class _Standing:
    """What stays for now, and how much is written, of each import."""

    def __init__(self, report: ImportReport | None) -> None:
        self._report = report
        self._holds = holds_by_import(report.held if report else None)

    def holds(self, ref: ImportRef) -> Sequence[Hold]:
        return self._holds.get(SyncerRef(*ref), ())

    def count(self, claim: ImportClaim | None) -> EndpointCount:
        """Count the endpoints. A pass that writes counts what it wrote."""
        report = self._report
        if report is None or not isinstance(claim, Importing):
            return EndpointCount(0, 0)
        ref = claim.import_.ref
        outcome = report.outcomes.get(ref)
        kept = report.plan.kept.get(ref, ())
        return count_of(claim, outcome, kept)


def _explained(what: What, look: Look, standing: _Standing) -> Explanation:
    """Make the chain of an import."""
    ref = ImportRef(what.namespace, what.name)
    report = look.report.imports
    claim = report.claims.get(ref) if report else None
    known = report is not None and report.registry is None
    written, wanted = standing.count(claim)

    links = until_broken(_links(ref, report, standing, look))
    broken = first_broken(links)
    outcome = _outcome(links, written)
    links.append(last_pass_link(look, alone=False))
    return Explanation(
        about=str(what),
        links=tuple(links),
        outcome=outcome,
        sentence=_sentence(outcome, broken, written, wanted),
        fix=broken.fix if broken else "",
        up=written if known else None,
        of=wanted,
        apps=_apps(claim),
    )


def _apps(claim: ImportClaim | None) -> tuple[str, ...]:
    """Return the app or VIP that is imported; empty if the spec does not say it."""
    if not isinstance(claim, Importing):
        return ()
    return (claim.spec.app or claim.spec.vip_address or "",)


def _links(
    ref: ImportRef, report: ImportReport | None, standing: _Standing, look: Look
) -> Iterator[Link]:
    """Make the links of the import, its spec, its instances and its slices."""
    if report is None:
        text = "imports are off: no networks were given"
        fix = "give --import-networks as the installation does"
        yield unseen(Part.IMPORT, text, fix=fix)
        return
    import_ = _listed(ref, report)
    if isinstance(import_, Link):
        yield import_
        return
    yield met(Part.IMPORT, f"EurekaImport {ref} exists")
    claim = report.claims.get(ref)
    match claim:
        case None:
            yield out_of_scope(class_of(import_), fix=_edit(ref))
        case NotImported():
            yield _not_imported(ref, claim)
        case Ending():
            text = "the import is being deleted, and its Service and slices with it"
            fix = f"kubectl describe eimp {ref.name} -n {ref.namespace}"
            link = breaks(Part.SPEC, Reason.DELETING, text, fix=fix)
            yield replace(link, since=import_.deleted)
        case Importing():
            yield from _of_spec(ref, claim, report)
            # Also where Eureka lists nothing, because that may be why
            yield from _of_brake(standing.holds(ref), look)
            yield from _of_eureka(claim, report)
            yield from _of_slices(ref, claim, report, standing.count(claim))
        case _:  # pragma: no cover
            assert_never(claim)


def _listed(ref: ImportRef, report: ImportReport) -> ImportObject | Link:
    """Return the import, or why there is none."""
    source = report.view.imports.of(ref.namespace)
    if isinstance(source, Unknown):
        return not_read(Part.IMPORT, "EurekaImports", source)
    for import_ in source.data:
        if import_.name == ref.name:
            return import_
    text = f"there is no EurekaImport {ref}"
    fix = f"kubectl get eimp -n {ref.namespace}"
    names = [import_.name for import_ in every(report.view.imports)]
    details = similar(near_names(ref.name, names))
    return breaks(Part.IMPORT, Reason.NOTHING_FOUND, text, *details, fix=fix)


def _not_imported(ref: ImportRef, claim: NotImported) -> Link:
    if claim.reason is Reason.OWNER_CLASH:
        fix = "stop one of the two installations, or give the other's name with --former-owner"
        return breaks(Part.SERVED, claim.reason, claim.message, fix=fix)
    if claim.source is None:
        return breaks(Part.SPEC, claim.reason, claim.message, fix=_edit(ref))
    what = "its Services, slices, Namespace or CRD"
    return not_read(Part.SPEC, what, claim.source, reason=claim.reason)


def _of_spec(ref: ImportRef, claim: Importing, report: ImportReport) -> Iterator[Link]:
    """Yield the links about the spec and the Service."""
    refused = _refused(ref, claim)
    if refused is None or refused.part is not Part.SPEC:
        spec = claim.spec
        name = f"app {spec.app}" if spec.app else f"VIP {spec.vip_address}"
        yield met(Part.SPEC, f"its spec is valid: {name}")
    if refused is not None:
        yield refused
    else:
        yield _of_service(ref, claim, report)


def _refused(ref: ImportRef, claim: Importing) -> Link | None:
    """Make the link of the first refusal; None if there is none."""
    if not claim.refusals:
        return None
    first = claim.refusals[0]
    part = _PARTS.get(first.reason, Part.SERVICES)
    return breaks(part, first.reason, first.message, fix=_edit(ref))


def _of_service(ref: ImportRef, claim: Importing, report: ImportReport) -> Link:
    """Show the Service of the import, or who makes it."""
    name = claim.spec.service.name
    outcome = report.outcomes.get(ref)
    # The claim is from before the write, so it has no Service yet.
    if outcome is not None and outcome.made:
        return met(Part.SERVICES, f"Service {name} was made by this pass")
    service = claim.service
    if service is None:
        return noted(Part.SERVICES, f"Service {name} is still to be made by the next pass")
    ports = ", ".join(str(port.port) for port in service.ports)
    return met(Part.SERVICES, f"Service {service.name} has port {ports}")


def _of_eureka(claim: Importing, report: ImportReport) -> Iterator[Link]:
    """Yield the links about the instances."""
    name = claim.spec.app or claim.spec.vip_address
    if report.registry is not None:
        yield not_read(Part.EUREKA, "Eureka", report.registry)
    elif not claim.verdicts:
        text = f"Eureka lists no instance of {name}"
        yield breaks(Part.EUREKA, Reason.NO_INSTANCES, text)
    else:
        listed = counted(len(claim.verdicts), "instance")
        yield met(Part.EUREKA, f"Eureka lists {listed} of {name}")
        yield from _left_out(claim)


def _left_out(claim: Importing) -> Iterator[Link]:
    """Yield why instances are no endpoints, if some are not."""
    left_out = []
    for key, verdict in sorted(claim.verdicts.items()):
        if isinstance(verdict, LeftOut):
            left_out.append(f"{key}: {verdict.reason}: {verdict.why}")
    if not left_out:
        return
    number = counted(len(left_out), "instance")
    are = one_or_more(len(left_out), "is no endpoint", "are no endpoints")
    reason = next(iter(claim.left_out))
    details = left_out[:_MOST]
    text = f"{number} {are}"
    yield breaks(Part.INSTANCES, reason, text, *details, if_=not claim.wanted)


def _of_slices(
    ref: ImportRef, claim: Importing, report: ImportReport, count: EndpointCount
) -> Iterator[Link]:
    """Yield the links about what is written, and what is not."""
    suspended = claim.spec.suspend
    if suspended:
        text = "it is suspended: its Service and slices are not written"
        yield noted(Part.SUSPEND, text)
    # Without Eureka's list it is unknown what they should have.
    if report.registry is not None:
        return
    written, wanted = count
    text = f"its slices have {written} of {counted(wanted, 'endpoint')}"
    if written == wanted:
        yield met(Part.SLICES, text)
    elif suspended:
        yield breaks(Part.SLICES, Reason.SUSPENDED, text, fix=_edit(ref))
    else:
        yield breaks(Part.SLICES, Reason.DIFFERS, text, fix="wait for the next pass")


def _of_brake(held: Sequence[Hold], look: Look) -> Iterator[Link]:
    """Yield what is held, with the command for a person who has to decide. Callers lose nothing by
    it."""
    report = look.report
    imports_held = report.imports.held if report.imports else None
    for hold in held:
        count = len(hold.removals)
        stay = one_or_more(count, "endpoint stays", "endpoints stay")
        details = []
        if hold.for_a_person and imports_held is not None:
            approve = approve_command(imports_held.plan_id, report.settings.options)
            details.append(f"if all held removals are right, {approve}")
        yield noted(Part.BRAKE, f"{count} {stay}: {hold.text}", *details)


def _edit(ref: ImportRef) -> str:
    return f"kubectl edit eimp {ref.name} -n {ref.namespace}"


def _outcome(links: Sequence[Link], written: int) -> Outcome:
    """Sum up the links, without that of the last pass, which does not matter here.

    | a link is broken | a link is unknown | written | outcome        |
    |------------------|-------------------|---------|----------------|
    | no               | no                | any     | REGISTERED     |
    | no               | yes               | any     | UNKNOWN        |
    | yes              | any               | some    | PARTLY         |
    | yes              | any               | none    | NOT_REGISTERED |
    """
    if first_broken(links) is not None:
        if written:
            return Outcome.PARTLY
        return Outcome.NOT_REGISTERED
    if any(link.mark is Mark.UNKNOWN for link in links):
        return Outcome.UNKNOWN
    return Outcome.REGISTERED


def _sentence(outcome: Outcome, broken: Link | None, written: int, wanted: int) -> str:
    """Return the last line."""
    endpoints = f"{written} of {counted(wanted, 'endpoint')} written"
    match outcome:
        case Outcome.REGISTERED:
            return f"Callable: {endpoints}"
        case Outcome.UNKNOWN:
            return "Unknown whether it is callable: something could not be looked at"
        case Outcome.PARTLY:
            assert broken is not None  # as the outcome says
            return f"Partly callable: {endpoints}, because {broken.cause}"
        case _:
            assert broken is not None  # as the outcome says
            return f"Not callable, because {broken.cause}"
